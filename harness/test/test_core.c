#include "harness/core/arena.h"
#include "harness/core/err.h"
#include "harness/core/utf8.h"
#include "harness/core/verdict.h"

#include <check.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* ---- UTF-8 ---- */

/* The encoder of RFC 3629, section 3, written from its table. */
static size_t encode(uint32_t c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

START_TEST(utf8_reads_every_character)
{
    for (uint32_t c = 0; c <= 0x10ffff + 0x100; c++) {
        char s[4];
        size_t n = encode(c, s), got;
        uint32_t back = 0xdead;
        int valid = c <= 0x10ffff && !(c >= 0xd800 && c <= 0xdfff);

        got = utf8_next(s, n, &back);
        if (got != (valid ? n : 0) || (valid && back != c) || utf8_next(s, n - 1, &back))
            ck_abort_msg("U+%04X: %zu bytes, came back as U+%04X", c, got, back);
    }
}
END_TEST

/* Of all strings of n bytes, as many are one character as the standard has characters of n
 * bytes: 128, 2^11 - 2^7, and 2^16 - 2^11 less 2^11 surrogates. With the test above: exactly
 * those. */
START_TEST(utf8_reads_nothing_else)
{
    size_t counts[4] = {0};

    for (uint32_t i = 0; i < 1u << 24; i++) {
        const char s[3] = {(char)(i >> 16), (char)(i >> 8), (char)i};
        uint32_t c;

        counts[utf8_next(s, 3, &c)]++;
    }
    ck_assert_uint_eq(counts[1], 128u << 16);
    ck_assert_uint_eq(counts[2], 1920u << 8);
    ck_assert_uint_eq(counts[3], 61440u);
}
END_TEST

START_TEST(utf8_counts_characters)
{
    ck_assert_uint_eq(utf8_count("", 0), 0);
    ck_assert_uint_eq(utf8_count("gr\xc3\xb6\xc3\x9f"
                                 "e",
                                 7),
                      5);
    ck_assert_uint_eq(utf8_count("\xf0\x9f\x98\x80\xff\xc3", 6), 3);
}
END_TEST

/* ---- arena ---- */

START_TEST(arena_gives_aligned_memory_up_to_its_limit)
{
    struct arena a;
    unsigned char *p[4];

    ck_assert(arena_init(&a, 256));
    for (int i = 0; i < 4; i++) {
        p[i] = arena_alloc(&a, 1, (size_t)(i + 1) * 15);
        ck_assert_ptr_nonnull(p[i]);
        ck_assert_uint_eq((uintptr_t)p[i] % 64, 0);
        memset(p[i], i, (size_t)(i + 1) * 15);
    }
    ck_assert_ptr_null(arena_alloc(&a, 1, 1));
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < (i + 1) * 15; j++)
            ck_assert_int_eq(p[i][j], i);
    ck_assert_uint_eq(a.peak, 256);
    arena_free(&a);
    ck_assert_ptr_null(arena_alloc(&a, 1, 1));
}
END_TEST

START_TEST(arena_limit_is_exact)
{
    struct arena a;

    ck_assert(arena_init(&a, 100));
    ck_assert_ptr_null(arena_alloc(&a, 101, 1));
    ck_assert_ptr_nonnull(arena_alloc(&a, 64, 1));
    ck_assert_ptr_null(arena_alloc(&a, 37, 1));
    ck_assert_ptr_nonnull(arena_alloc(&a, 36, 1));
    ck_assert_ptr_null(arena_alloc(&a, 0, 1));
    arena_free(&a);
    ck_assert(arena_init(&a, 0));
    ck_assert_ptr_null(arena_alloc(&a, 1, 1));
    arena_free(&a);
}
END_TEST

START_TEST(arena_sees_overflow)
{
    struct arena a;

    ck_assert(arena_init(&a, 1 << 20));
    ck_assert_ptr_null(arena_alloc(&a, SIZE_MAX, 2));
    ck_assert_ptr_null(arena_alloc(&a, SIZE_MAX / 2 + 2, 2));
    ck_assert_ptr_null(arena_alloc(&a, SIZE_MAX, 1));
    ck_assert_ptr_null(arena_alloc(&a, SIZE_MAX - 62, 1));
    ck_assert_uint_eq(a.used, 0);
    arena_free(&a);
    ck_assert(!arena_init(&a, SIZE_MAX / 2));
    ck_assert_ptr_null(arena_alloc(&a, 1, 1));
    arena_free(&a);
}
END_TEST

START_TEST(arena_reset_starts_again)
{
    struct arena a;
    unsigned char *first, *again;

    ck_assert(arena_init(&a, 4096));
    first = arena_alloc(&a, 1000, 1);
    memset(first, 0xff, 1000);
    ck_assert_ptr_ne(arena_alloc(&a, 0, 8), arena_alloc(&a, 0, 8));
    arena_reset(&a);
    again = arena_zalloc(&a, 250, 4);
    ck_assert_ptr_eq(first, again);
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(again[i], 0);
    ck_assert_uint_eq(a.peak, 1024 + 128);
    arena_free(&a);
}
END_TEST

START_TEST(arena_copies_text)
{
    struct arena a;
    char *s;

    ck_assert(arena_init(&a, 256));
    ck_assert_str_eq(arena_strdup(&a, "one"), "one");
    ck_assert_str_eq(arena_printf(&a, "%s %d", "two", 2), "two 2");
    s = arena_printf(&a, "%0*d", 127, 0);
    ck_assert_uint_eq(strlen(s), 127);
    ck_assert_ptr_null(arena_printf(&a, "x"));
    ck_assert_ptr_null(arena_strdup(&a, ""));
    arena_free(&a);
}
END_TEST

/* ---- errors ---- */

/* clang-format off */
static const struct {
    const char *given, *kept;
} texts[] = {
    {"plain", "plain"},
    {"a\nb\r\tc", "a\\nb\\r\\tc"},
    {"\x1b[31m\x7f", "\\x1b[31m\\x7f"},
    {"gr\xc3\xb6\xc3\x9f" "e \xf0\x9f\x98\x80", "gr\xc3\xb6\xc3\x9f" "e \xf0\x9f\x98\x80"},
    {"\xff\xc3", "\\xff\\xc3"},
    {"\xc2\x9b" "31m", "\\u009b31m"},
    {"\xe2\x80\xae" "abc\xe2\x80\xa8", "\\u202eabc\\u2028"},
    {"\xef\xbb\xbf", "\\ufeff"},
};
/* clang-format on */

START_TEST(error_text_is_one_visible_line)
{
    struct errs e = {0};

    ck_assert_int_eq(errs_add(&e, ERR_IO, NOWHERE, "%s", texts[_i].given), ERR_IO);
    ck_assert_str_eq(e.items[0].text, texts[_i].kept);
    errs_free(&e);
    ck_assert_uint_eq(e.count, 0);
}
END_TEST

/* Every length around the limit, of characters of 1 and 3 bytes: whole characters, then "..."
 * if any is missing. */
START_TEST(error_text_is_cut_between_characters)
{
    static const char *const pieces[] = {"a", "\xe6\xbc\xa2", "\n"};
    static const size_t lengths[] = {1, 3, 2}; /* as kept */
    char text[4 * ERR_TEXT] = "";
    struct errs e = {0};

    for (size_t n = 1; n < ERR_TEXT + 10; n++) {
        const char *kept;
        size_t whole = n * lengths[_i];

        strncat(text, pieces[_i], 4);
        (void)errs_add(&e, ERR_CONFIG, NOWHERE, "%s", text);
        kept = e.items[0].text;
        if (whole < ERR_TEXT)
            ck_assert_uint_eq(strlen(kept), whole);
        else
            ck_assert_uint_eq(strlen(kept), (ERR_TEXT - 4) / lengths[_i] * lengths[_i] + 3);
        ck_assert_int_eq(!strstr(kept, "..."), whole < ERR_TEXT);
        errs_free(&e);
    }
}
END_TEST

START_TEST(errors_are_kept_up_to_a_limit)
{
    struct errs e = {0};

    for (int i = 0; i < ERRS_MAX + 7; i++)
        (void)errs_add(&e, ERR_CONFIG, place_at("f", i + 1, 1), "%d", i);
    ck_assert_uint_eq(e.count, ERRS_MAX);
    ck_assert_uint_eq(e.dropped, 7);
    ck_assert_str_eq(e.items[ERRS_MAX - 1].text, "199");
    ck_assert_int_eq(e.items[ERRS_MAX - 1].at.line, ERRS_MAX);
    errs_free(&e);
}
END_TEST

START_TEST(error_format_has_the_place)
{
    const struct err at = {ERR_CONFIG, {"a.yaml", 12, 9}, "text"};
    const struct err whole = {ERR_CONFIG, {"a\n.yaml", 0, 0}, "text"};
    const struct err none = {ERR_USAGE, {NULL, 0, 0}, "text"};
    char buf[64], small[8];

    ck_assert_str_eq(err_format(&at, buf, sizeof buf), "a.yaml:12:9: text");
    ck_assert_str_eq(err_format(&whole, buf, sizeof buf), "a\\n.yaml: text");
    ck_assert_str_eq(err_format(&none, buf, sizeof buf), "text");
    ck_assert_str_eq(err_format(&at, small, sizeof small), "a.yaml:");
}
END_TEST

/* DESIGN section 3: 2 usage or configuration, 3 infrastructure. */
START_TEST(error_exit_codes)
{
    static const int want[ERR_COUNT] = {0, 2, 2, 3, 3, 3};

    for (int c = 0; c < ERR_COUNT; c++)
        ck_assert_int_eq(err_exit_code((enum err_code)c), want[c]);
}
END_TEST

/* ---- verdicts ---- */

/* All 32 patterns of which verdicts occurred, against the sentence: fail > infra > untrusted >
 * pass; skips never change it; a run in which nothing passed or failed is infra. */
START_TEST(verdict_of_every_pattern)
{
    for (unsigned p = 0; p < 1u << VERDICT_COUNT; p++) {
        unsigned long counts[VERDICT_COUNT];
        bool pass = p & 1, untrusted = p >> 2 & 1, infra = p >> 3 & 1, fails = p >> 4 & 1;
        enum verdict want = fails       ? VERDICT_FAIL
                            : infra     ? VERDICT_INFRA
                            : !pass     ? VERDICT_INFRA
                            : untrusted ? VERDICT_UNTRUSTED
                                        : VERDICT_PASS;

        for (int v = 0; v < VERDICT_COUNT; v++)
            counts[v] = (p >> v & 1) * (unsigned long)(v + 1);
        ck_assert_msg(verdict_of_run(counts) == want, "pattern %x", p);
    }
}
END_TEST

START_TEST(verdict_names_and_codes)
{
    static const char *const names[] = {"pass", "skip", "untrusted", "infra", "fail"};
    static const int codes[] = {0, 3, 1, 3, 1};

    for (int v = 0; v < VERDICT_COUNT; v++) {
        ck_assert_str_eq(verdict_name((enum verdict)v), names[v]);
        ck_assert_int_eq(verdict_exit_code((enum verdict)v), codes[v]);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("core");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_test(tc, utf8_reads_every_character);
    tcase_add_test(tc, utf8_reads_nothing_else);
    tcase_add_test(tc, utf8_counts_characters);
    tcase_add_test(tc, arena_gives_aligned_memory_up_to_its_limit);
    tcase_add_test(tc, arena_limit_is_exact);
    tcase_add_test(tc, arena_sees_overflow);
    tcase_add_test(tc, arena_reset_starts_again);
    tcase_add_test(tc, arena_copies_text);
    tcase_add_loop_test(tc, error_text_is_one_visible_line, 0, (int)COUNT(texts));
    tcase_add_loop_test(tc, error_text_is_cut_between_characters, 0, 3);
    tcase_add_test(tc, errors_are_kept_up_to_a_limit);
    tcase_add_test(tc, error_format_has_the_place);
    tcase_add_test(tc, error_exit_codes);
    tcase_add_test(tc, verdict_of_every_pattern);
    tcase_add_test(tc, verdict_names_and_codes);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
