#include "reference/mxfp4.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* OCP MX 1.0: the magnitudes of E2M1. */
static const double magnitudes[8] = {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0};

/* The tables of section 4. */
static const uint8_t requantized[4][8] = {
    {0, 1, 2, 3, 4, 5, 6, 7},
    {0, 1, 1, 2, 2, 3, 4, 5},
    {0, 0, 1, 1, 1, 2, 2, 3},
    {0, 0, 0, 0, 1, 1, 1, 2},
};

START_TEST(tables)
{
    for (int delta = 0; delta < 4; delta++)
        for (uint8_t c = 0; c < 8; c++) {
            uint8_t want = requantized[delta][c];

            ck_assert_uint_eq(ref_mxfp4_requantize(c, delta), want);
            ck_assert_uint_eq(ref_mxfp4_requantize(c | 8, delta), want ? want | 8 : 0);
        }
}
END_TEST

/* The nearest of all eight, the larger one of a tie. */
START_TEST(nearest)
{
    for (int delta = 0; delta < 256; delta++)
        for (uint8_t c = 0; c < 8; c++) {
            double x = ldexp(magnitudes[c], -delta);
            uint8_t best = 0;

            for (uint8_t i = 1; i < 8; i++)
                if (fabs(magnitudes[i] - x) <= fabs(magnitudes[best] - x))
                    best = i;
            ck_assert_uint_eq(ref_mxfp4_requantize(c, delta), best);
        }
}
END_TEST

/* Two rows of two groups of two codes, 0 15 7 15 | 8 1 2 15; scales s 130 | 128 129. The base of
 * the tensor is 130 - R or s, that of the second row alone 128. */
static const struct {
    int range;
    bool per_row;
    uint8_t first; /* s */
    uint8_t codes[8], scales[4];
    float factor[2];
} cases[] = {
    {11, false, 117, {0, 11, 7, 15, 0, 1, 2, 15}, {0, 11, 9, 10}, {0x1p-8f, 0}}, /* 6 2^-2 */
    {11, false, 119, {0, 15, 7, 15, 0, 1, 2, 15}, {0, 11, 9, 10}, {0x1p-8f, 0}},
    {3, false, 100, {0, 0, 7, 15, 0, 1, 2, 15}, {0, 3, 1, 2}, {1, 0}},
    {11, true, 117, {0, 11, 7, 15, 0, 1, 2, 15}, {0, 11, 0, 1}, {0x1p-8f, 2}},
    {3, true, 126, {0, 13, 7, 15, 0, 1, 2, 15}, {0, 3, 0, 1}, {1, 2}}, /* 6 / 2 */
    {255, false, 100, {0, 15, 7, 15, 0, 1, 2, 15}, {0, 30, 28, 29}, {0x1p-27f, 0}},
};

START_TEST(by_hand)
{
    uint8_t codes[8] = {0, 15, 7, 15, 8, 1, 2, 15}, scales[4] = {0, 130, 128, 129};
    float factor[2] = {0, 0};
    struct ref_mxfp4 p = {.n = 2,
                          .groups = 2,
                          .group = 2,
                          .range = cases[_i].range,
                          .per_row = cases[_i].per_row,
                          .codes = codes,
                          .scales = scales,
                          .factor = factor};

    scales[0] = cases[_i].first;
    ref_process_mxfp4(&p);
    ck_assert_mem_eq(codes, cases[_i].codes, sizeof codes);
    ck_assert_mem_eq(scales, cases[_i].scales, sizeof scales);
    for (int i = 0; i < 2; i++)
        ck_assert(factor[i] <= cases[_i].factor[i] && factor[i] >= cases[_i].factor[i]);
}
END_TEST

static uint8_t some(uint32_t i)
{
    uint32_t x = (i + 1) * 2654435761u;

    return (uint8_t)(x >> 24 ^ x >> 13);
}

/* Code x 2^offset x factor is the old value where a group was kept, and the requantized one
 * elsewhere. */
START_TEST(values)
{
    enum { N = 8, GROUPS = 6, GROUP = 32 };
    uint8_t codes[N * GROUPS * GROUP], old[N * GROUPS * GROUP] = {0}, scales[N * GROUPS];
    uint8_t old_scales[N * GROUPS] = {0};
    float factor[N];
    struct ref_mxfp4 p = {N, GROUPS, GROUP, _i % 2 ? 11 : 3, _i / 2, codes, scales, factor};
    int kept = 0, changed = 0;

    for (uint32_t i = 0; i < sizeof codes; i++)
        codes[i] = old[i] = some(i) & 15;
    for (uint32_t i = 0; i < sizeof scales; i++)
        scales[i] = old_scales[i] = (uint8_t)(110 + some(i + 99) % 20);
    ref_process_mxfp4(&p);
    for (int g = 0; g < N * GROUPS; g++) {
        double f = (double)factor[p.per_row ? g / GROUPS : 0];
        int base = (int)lrint(log2(f)) + 127;
        int delta = old_scales[g] < base ? base - old_scales[g] : 0;

        ck_assert(scales[g] <= p.range);
        for (int i = g * GROUP; i < (g + 1) * GROUP; i++) {
            double now = magnitudes[codes[i] & 7] * ldexp(f, scales[g]);
            double was = ldexp(magnitudes[old[i] & 7], old_scales[g] - 127);

            ck_assert_uint_ne(codes[i], 8);
            ck_assert(!(codes[i] & 8) || old[i] & 8);
            if (delta)
                ck_assert(fabs(now - was) <= 1.0 * f);
            else
                ck_assert(now <= was && now >= was);
        }
        delta ? changed++ : kept++;
    }
    ck_assert(kept > 0 && changed > 0);
}
END_TEST

START_TEST(ranges)
{
    ck_assert_int_eq(ref_mxfp4_range(dtype_find("e4m3")), 11);
    ck_assert_int_eq(ref_mxfp4_range(dtype_find("int8")), 3);
    ck_assert_int_eq(ref_mxfp4_range(dtype_find("f16")), -1);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("mxfp4");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_test(tc, tables);
    tcase_add_test(tc, nearest);
    tcase_add_loop_test(tc, by_hand, 0, (int)(sizeof cases / sizeof cases[0]));
    tcase_add_loop_test(tc, values, 0, 4);
    tcase_add_test(tc, ranges);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
