#include "harness/eval/mt19937.h"

#include <check.h>
#include <stdlib.h>

#define COUNT(a) (int)(sizeof(a) / sizeof(a)[0])

/* mt19937ar.out of Matsumoto and Nishimura: the first outputs after init_by_array of this key,
 * and the last of its 1000. */
START_TEST(outputs_of_the_authors)
{
    static const uint32_t key[] = {0x123, 0x234, 0x345, 0x456};
    static const uint32_t first[] = {1067595299, 955945823, 477289528, 4107218783, 4228976476};
    struct mt19937 m;
    uint32_t x = 0;

    mt_init_by_array(&m, key, 4);
    for (int i = 0; i < 1000; i++) {
        x = mt_next(&m);
        if (i < COUNT(first))
            ck_assert_uint_eq(x, first[i]);
    }
    ck_assert_uint_eq(x, 3460025646u);
}
END_TEST

/* random.Random(seed).getrandbits(32), three times, CPython 3.11. */
static const struct {
    uint64_t seed;
    uint32_t bits[3];
} seeds[] = {
    {0, {3626764237u, 1654615998u, 3255389356u}},
    {1, {577090037u, 2444712010u, 3639700191u}},
    {1234, {4150886329u, 3342196574u, 1892932127u}},
    {0x100000000u, {485306839u, 1508871100u, 1794561286u}},
    {UINT64_MAX, {93740670u, 1068495656u, 1452108352u}},
};

START_TEST(seeds_are_those_of_python)
{
    struct mt19937 m;

    mt_seed(&m, seeds[_i].seed);
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(mt_next(&m), seeds[_i].bits[i]);
}
END_TEST

/* random.Random(1234).sample(range(n), k): its first (at most eight) rows, and the 32 bits that
 * come after, on both sides of the size where Python changes the method. */
/* clang-format off */
static const struct {
    size_t k;
    uint32_t n, rows[8], after;
} samples[] = {
    {5, 7473, {6374, 3610, 957, 61, 742}, 3912611952u},
    {5, 21, {14, 3, 0, 2, 1}, 2884343186u},
    {5, 22, {14, 3, 0, 2, 18}, 150006740u},
    {8, 40, {28, 7, 0, 5, 2, 36, 6, 22}, 1017090249u},
    {8, 85, {56, 14, 0, 11, 74, 4, 10, 12}, 3292010550u},
    {8, 86, {56, 14, 0, 11, 74, 4, 85, 10}, 422719469u},
    {64, 277, {225, 59, 3, 46, 17, 42, 50, 181}, 2523415722u},
    {64, 278, {225, 59, 3, 46, 17, 42, 50, 181}, 3282465220u},
};
/* clang-format on */

START_TEST(samples_are_those_of_python)
{
    struct mt19937 m;
    uint32_t rows[MT_SAMPLE_MAX];
    size_t k = samples[_i].k;

    mt_seed(&m, 1234);
    ck_assert(mt_sample(&m, samples[_i].n, k, rows));
    for (size_t i = 0; i < k && i < 8; i++)
        ck_assert_uint_eq(rows[i], samples[_i].rows[i]);
    ck_assert_uint_eq(mt_next(&m), samples[_i].after);
}
END_TEST

/* Any n, k: rows are in range and differ, and all of them are drawn when k = n. */
START_TEST(samples_have_no_row_twice)
{
    struct mt19937 m;

    mt_seed(&m, 7);
    for (uint32_t n = 0; n <= 70; n++)
        for (size_t k = 0; k <= MT_SAMPLE_MAX && k <= n; k++) {
            uint32_t rows[MT_SAMPLE_MAX];
            int seen[70] = {0};

            ck_assert(mt_sample(&m, n, k, rows));
            for (size_t i = 0; i < k; i++)
                ck_assert(rows[i] < n && !seen[rows[i]]++);
        }
}
END_TEST

START_TEST(impossible_samples_are_refused)
{
    struct mt19937 m, before;
    uint32_t rows[1];

    mt_seed(&m, 1);
    before = m;
    ck_assert(!mt_sample(&m, 3, 4, rows));
    ck_assert(!mt_sample(&m, 1000, MT_SAMPLE_MAX + 1, rows));
    ck_assert_uint_eq(mt_next(&m), mt_next(&before));
}
END_TEST

START_TEST(every_value_below_n_comes)
{
    struct mt19937 m;
    int seen[10] = {0};

    mt_seed(&m, 5);
    for (int i = 0; i < 1000; i++)
        seen[mt_below(&m, 10)]++;
    for (int i = 0; i < 10; i++)
        ck_assert_int_gt(seen[i], 50);
    for (int i = 0; i < 100; i++)
        ck_assert_uint_eq(mt_below(&m, 1), 0);
    ck_assert_uint_lt(mt_below(&m, UINT32_MAX), UINT32_MAX);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("mt19937");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_test(tc, outputs_of_the_authors);
    tcase_add_loop_test(tc, seeds_are_those_of_python, 0, COUNT(seeds));
    tcase_add_loop_test(tc, samples_are_those_of_python, 0, COUNT(samples));
    tcase_add_test(tc, samples_have_no_row_twice);
    tcase_add_test(tc, impossible_samples_are_refused);
    tcase_add_test(tc, every_value_below_n_comes);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
