#include "reference/pack.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 100, GUARD = 0x5A };

static uint8_t code_at(size_t i, int seed)
{
    return (uint8_t)((i * 2654435761u + (size_t)seed * 40503u) >> 7);
}

/* The header's definition read aloud, one bit at a time. */
static void pack_by_bits(const uint8_t *codes, size_t n, int bits, uint32_t *words)
{
    for (size_t i = 0; i < n * (size_t)bits; i++) {
        uint32_t bit = (uint32_t)codes[i / (size_t)bits] >> (i % (size_t)bits) & 1u;

        words[i / 32] |= bit << (i % 32);
    }
}

static void check_row(const uint8_t *codes, size_t n, int bits)
{
    uint32_t want[MOST] = {0}, got[MOST];
    uint8_t back[MOST + 1], masked[MOST + 1];
    size_t words = pack_words(n, bits);

    memset(got, GUARD, sizeof got);
    memset(back, GUARD, sizeof back);
    pack_by_bits(codes, n, bits, want);
    pack_row(codes, n, bits, got);
    ck_assert_uint_eq(words, (n * (size_t)bits + 31) / 32);
    ck_assert_mem_eq(got, want, words * sizeof got[0]);
    ck_assert_uint_eq(got[words], 0x5A5A5A5Au);
    unpack_row(got, n, bits, back);
    for (size_t i = 0; i < n; i++)
        masked[i] = (uint8_t)(codes[i] & ((1u << bits) - 1u));
    masked[n] = GUARD;
    ck_assert_mem_eq(back, masked, n + 1);
}

START_TEST(all_lengths)
{
    for (size_t n = 1; n <= MOST; n++) {
        uint8_t codes[MOST];

        for (size_t i = 0; i < n; i++) /* upper bits too: they must be ignored */
            codes[i] = code_at(i, (int)n + _i);
        check_row(codes, n, _i);
        memset(codes, 0xFF, n);
        check_row(codes, n, _i);
    }
}
END_TEST

/* Each single bit of a row has one place. */
START_TEST(single_bits)
{
    const size_t n = 64;

    for (size_t i = 0; i < n * (size_t)_i; i++) {
        uint8_t codes[64] = {0};
        uint32_t words[16], want[16] = {0};

        codes[i / (size_t)_i] = (uint8_t)(1u << (i % (size_t)_i));
        pack_row(codes, n, _i, words);
        want[i / 32] = 1u << (i % 32);
        ck_assert_mem_eq(words, want, pack_words(n, _i) * sizeof words[0]);
    }
}
END_TEST

START_TEST(sizes)
{
    ck_assert_uint_eq(pack_words(0, 3), 0);
    ck_assert_uint_eq(pack_words(11, 3), 2); /* 33 bits */
    ck_assert_uint_eq(pack_words(SIZE_MAX, 8), SIZE_MAX / 4 + 1);
    ck_assert_uint_eq(pack_words((size_t)1 << 62, 8), (size_t)1 << 60);
    pack_row(NULL, 0, 5, NULL);
    unpack_row(NULL, 0, 5, NULL);
}
END_TEST

/* Eleven 3-bit codes, by hand: the eleventh straddles the first two words. */
START_TEST(straddling)
{
    const uint8_t codes[11] = {1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 7};
    uint32_t words[2];

    pack_row(codes, 11, 3, words);
    ck_assert_uint_eq(words[0], 0xD11F58D1u);
    ck_assert_uint_eq(words[1], 1u);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("pack");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_loop_test(tc, all_lengths, 1, 9);
    tcase_add_loop_test(tc, single_bits, 1, 9);
    tcase_add_test(tc, sizes);
    tcase_add_test(tc, straddling);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
