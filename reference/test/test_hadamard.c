#include "reference/hadamard.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static float whole(uint32_t i)
{
    return (float)((i + 1) * 2654435761u >> 20 & 0xFFF) -
           2048.0f; /* 512 of them add up below 2^24 */
}

static int parity(int64_t x)
{
    int odd = 0;

    for (; x; x &= x - 1)
        odd ^= 1;
    return odd;
}

/* Against the dense matrix of +-1: whole numbers are added exactly, so only the last product
 * rounds. */
START_TEST(dense)
{
    enum { BLOCKS = 2 };
    int64_t block = INT64_C(1) << _i;
    float x[BLOCKS * REF_HADAMARD_MAX] = {0}, y[BLOCKS * REF_HADAMARD_MAX] = {0};

    for (uint32_t i = 0; i < BLOCKS * block; i++)
        x[i] = y[i] = whole(i);
    ref_hadamard(y, 1, BLOCKS * block, block);
    for (int64_t i = 0; i < BLOCKS * block; i++) {
        const float *in = x + i / block * block;
        double sum = 0.0;
        float want;

        for (int64_t j = 0; j < block; j++)
            sum += parity(i % block & j) ? -(double)in[j] : (double)in[j];
        want = (float)(sum * (double)ref_hadamard_factor(block));
        ck_assert_msg(y[i] <= want && y[i] >= want, "block %d, %d", (int)block, (int)i);
    }
}
END_TEST

/* Twice is once back: exactly where sqrt(H) is a power of two, within rounding elsewhere. */
START_TEST(twice)
{
    int64_t block = INT64_C(1) << _i;
    float x[3 * REF_HADAMARD_MAX] = {0}, y[3 * REF_HADAMARD_MAX] = {0};

    for (uint32_t i = 0; i < 3 * block; i++)
        x[i] = y[i] = whole(i + 7);
    ref_hadamard(y, 3, block, block);
    ck_assert(block == 1 || memcmp(x, y, sizeof x[0] * (size_t)block) != 0);
    ref_hadamard(y, 3, block, block);
    for (int64_t i = 0; i < 3 * block; i++)
        ck_assert(fabsf(x[i] - y[i]) <= (_i % 2 ? 2048.0f * 0x1p-18f : 0.0f));
}
END_TEST

/* Rounding shows the order: 2^24 + 1 is a tie. Stages: (2^24, 2^24 - 1, 1, 1), (2^24, 2^24, 2^24
 * - 1, 2^24 - 2). */
START_TEST(butterflies)
{
    float x[4] = {0x1p24f, 1.0f, 1.0f, 0.0f};
    static const float want[4] = {0x1p23f, 0x1p23f, 0x1p23f - 0.5f, 0x1p23f - 1.0f};

    ref_hadamard(x, 1, 4, 4);
    ck_assert_mem_eq(x, want, sizeof x);
}
END_TEST

/* 1 / sqrt(2) = 0.70710678118654752440...: 0x1.6a09e6p-1 is the nearest f32. */
START_TEST(factors)
{
    for (int h = 0; h <= 9; h++) {
        float want = h % 2 ? ldexpf(0x1.6a09e6p-1f, -h / 2) : ldexpf(1.0f, -h / 2);
        float got = ref_hadamard_factor(INT64_C(1) << h);

        ck_assert(got <= want && got >= want);
    }
}
END_TEST

START_TEST(valid)
{
    ck_assert(ref_hadamard_valid(1, 7) && ref_hadamard_valid(512, 1024));
    ck_assert(!ref_hadamard_valid(0, 7) && !ref_hadamard_valid(-2, 8));
    ck_assert(!ref_hadamard_valid(1024, 1024) && !ref_hadamard_valid(24, 48));
    ck_assert(!ref_hadamard_valid(16, 24));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("hadamard");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_loop_test(tc, dense, 0, 10);
    tcase_add_loop_test(tc, twice, 0, 10);
    tcase_add_test(tc, butterflies);
    tcase_add_test(tc, factors);
    tcase_add_test(tc, valid);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
