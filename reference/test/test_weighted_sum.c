#include "reference/weighted_sum.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* 3 tokens, 2 slots, 2 columns, by hand. */
static const float inputs[12] = {1, 2, 3, 4, 5, 6, 7, 8, -1, -2, 0.5f, 0};
static const float weights[6] = {0.5f, 2, 1, -1, 0, 4};
static const int32_t ids[6] = {0, 1, 2, -1, 1, 0};
static const int32_t map[3] = {0, -1, 5};

static const struct {
    bool ids, map;
    float out[6];
} cases[] = {
    {false, false, {6.5f, 9, -2, -2, 2, 0}},
    {true, false, {6.5f, 9, 5, 6, 2, 0}},
    {true, true, {0.5f, 1, 5, 6, 2, 0}},
};

START_TEST(by_hand)
{
    static const char *const formats[] = {"f32", "f16", "bf16"};
    struct ref_weighted_sum s = {.tokens = 3,
                                 .top_k = 2,
                                 .width = 2,
                                 .inputs = inputs,
                                 .weights = weights,
                                 .topk_ids = cases[_i].ids ? ids : NULL,
                                 .expert_map = cases[_i].map ? map : NULL,
                                 .experts = 3};

    for (int f = 0; f < 3; f++) {
        uint32_t codes[6];

        s.t = dtype_find(formats[f]);
        ck_assert_ptr_null(ref_weighted_sum(&s, codes));
        for (int i = 0; i < 6; i++)
            ck_assert_uint_eq(codes[i], dtype_encode(s.t, (double)cases[_i].out[i], DTYPE_TO_TOP));
    }
}
END_TEST

/* f32 sums of one column: which operations round, and in which order. */
/* clang-format off */
static const struct {
    const char *t;
    float x[3], w[3];
    int32_t id[3];
    uint32_t code;
} roundings[] = {
    /* 2^24 + 1 is a tie to even, twice; the other order would give 2^24 + 2. */
    {"f32", {0x1p24f, 1, 1}, {1, 1, 1}, {0, 0, 0}, 0x4B800000},
    {"f32", {1, 1, 0x1p24f}, {1, 1, 1}, {0, 0, 0}, 0x4B800001},
    /* The product (1 + 2^-12)^2 loses 2^-24: with one rounding the sum would be 2^-24. */
    {"f32", {1, 0x1p-11f, 0x1.001p0f}, {-1, -1, 0x1.001p0f}, {0, 0, 0}, 0},
    /* The sum is rounded once more: 1 + 2^-11 is a tie of f16, 2^-24 above it is not. */
    {"f16", {1, 0x1p-11f, 0}, {1, 1, 0}, {0, 0, 0}, 0x3C00},
    {"f16", {1, 0x1.002p-11f, 0}, {1, 1, 0}, {0, 0, 0}, 0x3C01},
    {"f16", {65504, 16, 0}, {1, 1, 0}, {0, 0, 0}, 0x7C00},
    {"bf16", {1, 0x1p-8f, 0}, {1, 1, 0}, {0, 0, 0}, 0x3F80},
    /* Partial sums have the precision of f32. */
    {"f16", {1, 0x1p-11f, 0x1p-11f}, {1, 1, 1}, {0, 0, 0}, 0x3C01},
    {"bf16", {1, 0x1p-8f, 0x1p-8f}, {1, 1, 1}, {0, 0, 0}, 0x3F81},
    /* Sums start from +0. All left out, even NaN and infinity: +0. */
    {"f16", {-0.0f, -0.0f, -0.0f}, {1, 1, 1}, {0, 0, 0}, 0},
    {"f16", {NAN, HUGE_VALF, 1}, {1, 1, 1}, {-1, -1, -7}, 0},
    {"f16", {NAN, 2, 1}, {1, 1, 1}, {-1, 0, 0}, 0x4200},
    {"f32", {HUGE_VALF, 2, 1}, {1, 1, 1}, {0, 0, 0}, 0x7F800000},
};
/* clang-format on */

START_TEST(rounding)
{
    struct ref_weighted_sum s = {.t = dtype_find(roundings[_i].t),
                                 .tokens = 1,
                                 .top_k = 3,
                                 .width = 1,
                                 .inputs = roundings[_i].x,
                                 .weights = roundings[_i].w,
                                 .topk_ids = roundings[_i].id};
    uint32_t code;

    ck_assert_ptr_null(ref_weighted_sum(&s, &code));
    ck_assert_msg(code == roundings[_i].code, "row %d: 0x%x", _i, code);
}
END_TEST

START_TEST(nan_and_sentences)
{
    static const float x[2] = {NAN, HUGE_VALF}, w[2] = {1, 0};
    static const int32_t bad[2] = {3, 0};
    struct ref_weighted_sum s = {.t = dtype_find("f16"),
                                 .tokens = 1,
                                 .top_k = 1,
                                 .width = 1,
                                 .inputs = x,
                                 .weights = w,
                                 .experts = 3};
    uint32_t code;

    ck_assert_ptr_null(ref_weighted_sum(&s, &code));
    ck_assert(isnan(dtype_decode(s.t, code)));
    s.inputs = x + 1; /* infinity times 0 */
    s.weights = w + 1;
    ck_assert_ptr_null(ref_weighted_sum(&s, &code));
    ck_assert(isnan(dtype_decode(s.t, code)));
    s.expert_map = map;
    ck_assert_ptr_nonnull(ref_weighted_sum(&s, &code));
    s.topk_ids = bad;
    ck_assert_ptr_nonnull(ref_weighted_sum(&s, &code));
    s.topk_ids = bad + 1;
    ck_assert_ptr_null(ref_weighted_sum(&s, &code));
    s.expert_map = NULL; /* nothing to look up: any id is good */
    s.topk_ids = bad;
    ck_assert_ptr_null(ref_weighted_sum(&s, &code));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("weighted_sum");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_loop_test(tc, by_hand, 0, (int)(sizeof cases / sizeof cases[0]));
    tcase_add_loop_test(tc, rounding, 0, (int)(sizeof roundings / sizeof roundings[0]));
    tcase_add_test(tc, nan_and_sentences);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
