/* Rules of docs/semantics-rules.md beside the formulas that they replace, on numbers by hand. */
#include "reference/gemm.h"
#include "reference/inputs.h"
#include "reference/quantize.h"
#include "reference/weighted_sum.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint32_t bits_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* ---- quant_weight ---------------------------------------------------------------------------- */

enum rule { MINIMUM, SIZE, QUOTIENT, COMPLEMENT };

/* clang-format off */
static const struct {
    const char *target;
    enum rule rule;
    bool has_scale, e8m0, zero, fp_zero, negative;
    float v[8];
    uint32_t scale[2], codes[2][8]; /* by the contract, by the rule */
} groups[] = {
    /* scale = RN(6.59375 / 15), zp = 15: -3.296875 lies in the middle of two codes, and what rounds
     * on the way decides */
    {"uint4", MINIMUM, 1, 0, 1, 0, 0, {-6.375f, 0.21875f, -3.296875f, 0, 0, 0, 0, 0},
     {0x3ee11111, 0x3ee11111}, {{0, 15, 7, 15, 15, 15, 15, 15}, {0, 15, 8, 15, 15, 15, 15, 15}}},
    {"uint4", MINIMUM, 1, 0, 1, 1, 0, {-4.53125f, 3.65625f, -0.4375f, 0, 0, 0, 0, 0},
     {0x3f0bbbbc, 0x3f0bbbbc}, {{0, 15, 7, 8, 8, 8, 8, 8}, {0, 15, 8, 8, 8, 8, 8, 8}}},
    /* 8 / 7 rounds up to 2, 8 / 8 is 1: then 8 is clipped to 7 */
    {"uint4", SIZE, 1, 1, 0, 0, 1, {8, -1, 3, 0, 0, 0, 0, 0},
     {128, 127}, {{12, 8, 10, 8, 8, 8, 8, 8}, {15, 7, 11, 8, 8, 8, 8, 8}}},
    {"uint4", SIZE, 1, 0, 0, 0, 0, {8, -1, 4, 0, 0, 0, 0, 0},
     {0x3f924925, 0x3f800000}, {{15, 7, 11, 8, 8, 8, 8, 8}, {15, 7, 12, 8, 8, 8, 8, 8}}},
    /* the side below zero decides: no difference */
    {"uint4", SIZE, 1, 0, 0, 0, 1, {-8, 1, -3, 0, 0, 0, 0, 0},
     {0x3f800000, 0x3f800000}, {{0, 9, 5, 8, 8, 8, 8, 8}, {0, 9, 5, 8, 8, 8, 8, 8}}},
    /* one bit: 0.125 / 1.499, the divisor in f32 or in binary64 */
    {"uint1", SIZE, 1, 0, 0, 0, 1, {0.125f, 0, 0, 0, 0, 0, 0, 0},
     {0xbdaac7d1, 0xbdaac7d0}, {{0, 1, 1, 1, 1, 1, 1, 1}, {0, 1, 1, 1, 1, 1, 1, 1}}},
    /* 2^-126 (1/4 + 2^-25) is no multiple of 2^-149: to the even one, and there a tie, to 0 */
    {"e2m1", QUOTIENT, 0, 0, 0, 0, 0, {0x1.000002p-2f, -0x1.000002p-2f, 0x1.000008p-2f, 0.25f, 6, 7, -0.75f, 0},
     {0, 0}, {{1, 9, 1, 0, 7, 7, 9, 0}, {0, 8, 1, 0, 7, 7, 9, 0}}},
    {"int4", COMPLEMENT, 0, 0, 0, 0, 0, {-9, -8, -1, 0, 2.5f, 7, 8, 1e9f},
     {0, 0}, {{0, 0, 7, 8, 10, 15, 15, 15},
              {0xfffffff8, 0xfffffff8, 0xffffffff, 0, 2, 7, 7, 7}}},
    {"uint4", COMPLEMENT, 0, 0, 0, 0, 0, {-9, -8, -1, 0, 2.5f, 7, 8, 1e9f},
     {0, 0}, {{0, 0, 7, 8, 10, 15, 15, 15}, {0, 0, 7, 8, 10, 15, 15, 15}}},
};
/* clang-format on */

static void expect_group(const struct ref_quant *q, int row, int on)
{
    uint32_t codes[8], scale = 0;
    float zero;

    ck_assert_ptr_null(ref_quant_valid(q));
    ref_quant_weight(q, codes, q->has_scale ? &scale : NULL, q->has_zero_point ? &zero : NULL);
    ck_assert_msg(scale == groups[row].scale[on], "row %d, rule %d: scale 0x%x", row, on, scale);
    for (int i = 0; i < 8; i++)
        ck_assert_msg(codes[i] == groups[row].codes[on][i], "row %d, rule %d, code %d: 0x%x", row,
                      on, i, codes[i]);
}

START_TEST(weights)
{
    struct ref_quant q = {.target = dtype_find_weight(groups[_i].target),
                          .rows = 1,
                          .cols = 8,
                          .has_scale = groups[_i].has_scale,
                          .use_e8m0_scale = groups[_i].e8m0,
                          .has_zero_point = groups[_i].zero,
                          .is_fp_zero_point = groups[_i].fp_zero,
                          .allow_negative_scale = groups[_i].negative,
                          .rule = REF_QUANT_RULE_2026_08,
                          .inputs = groups[_i].v};

    if (!q.target)
        q.target = dtype_find(groups[_i].target);
    expect_group(&q, _i, 0);
    q.zero_on_minimum = groups[_i].rule == MINIMUM;
    q.sides_by_size = groups[_i].rule == SIZE;
    q.scaled_quotient = groups[_i].rule == QUOTIENT;
    q.twos_complement = groups[_i].rule == COMPLEMENT;
    expect_group(&q, _i, 1);
}
END_TEST

/* ---- process_input --------------------------------------------------------------------------- */

/* clang-format off */
static const struct {
    const char *t;
    float v[2];
    bool by_side, reciprocal;
    uint32_t plain, ruled; /* scale */
    uint32_t codes[2];     /* by the rule */
} scales[] = {
    {"int8", {-128, 5},  1, 0, 0x3f810204, 0x3f800000, {0x80, 5}}, /* 128 / 127, 128 / 128 */
    {"int8", {127, -5},  1, 0, 0x3f800000, 0x3f800000, {127, 0xfb}},
    {"int4", {-8, 3},    1, 0, 0x3f924925, 0x3f800000, {8, 3}},
    {"e4m3", {-448, 2},  1, 0, 0x3f800000, 0x3f800000, {0xfe, 0x40}},
    {"e4m3", {0, -0.0f}, 1, 0, 0x0da24260, 0x0939706e, {0, 0x80}}, /* 1e-30, 1e-30 / 448 */
    {"e4m3", {3, 0},     0, 1, 0x3bdb6db7, 0x3bdb6db8, {0x7e, 0}}, /* 3 / 448 */
    {"int8", {9, 0},     0, 1, 0x3d912245, 0x3d912244, {127, 0}},  /* 9 / 127 */
    {"int8", {0, 0},     0, 1, 0x0da24260, 0x0da24260, {0, 0}},
    {"int8", {-9, 0},    1, 1, 0x3d912245, 0x3d900000, {0x80, 0}}, /* 9 / 128 */
};
/* clang-format on */

START_TEST(inputs)
{
    struct ref_input q = {.mode = REF_INPUT_DYNAMIC_TOKEN,
                          .t = dtype_find(scales[_i].t),
                          .rows = 1,
                          .width = 2,
                          .static_scale = 1.0f,
                          .values = scales[_i].v};
    uint32_t codes[2], scale;

    ref_input_quantize(&q, codes, NULL, &scale);
    ck_assert_msg(scale == scales[_i].plain, "row %d: 0x%x", _i, scale);
    q.by_side = scales[_i].by_side;
    q.reciprocal_limit = scales[_i].reciprocal;
    ref_input_quantize(&q, codes, NULL, &scale);
    ck_assert_msg(scale == scales[_i].ruled, "row %d by rule: 0x%x", _i, scale);
    for (int i = 0; i < 2; i++)
        ck_assert_msg(codes[i] == scales[_i].codes[i], "row %d: code 0x%x", _i, codes[i]);
}
END_TEST

/* A NaN takes no part by side, and is the scale by the contract. */
START_TEST(input_nan)
{
    static const float v[2] = {NAN, -448};
    struct ref_input q = {.mode = REF_INPUT_DYNAMIC_TOKEN,
                          .t = dtype_find("e4m3"),
                          .rows = 1,
                          .width = 2,
                          .static_scale = 1.0f,
                          .values = v};
    uint32_t codes[2], scale;
    float s;

    ref_input_quantize(&q, codes, NULL, &scale);
    memcpy(&s, &scale, sizeof s);
    ck_assert(isnan(s));
    q.by_side = true;
    ref_input_quantize(&q, codes, NULL, &scale);
    ck_assert_uint_eq(scale, bits_of(1.0f));
    ck_assert_uint_eq(codes[1], 0xfe);
}
END_TEST

/* 25 / 448 lies between the e4m3 numbers 0.0546875 (0x16) and 0.05859375 (0x17), nearer to the
 * first; above 448 there is 448 alone; 28 is a number. */
START_TEST(scales_round_up)
{
    static const float v[6] = {25, 0, 449 * 448.0f, 0, 28 * 448.0f, 0};
    static const uint32_t nearest[3] = {0x16, 0x7e, 0x5e}, up[3] = {0x17, 0x7e, 0x5e};
    struct ref_input q = {.mode = REF_INPUT_DYNAMIC_GROUP,
                          .t = dtype_find("e4m3"),
                          .group_scale = dtype_find("e4m3"),
                          .rows = 1,
                          .width = 6,
                          .group = 2,
                          .static_scale = 1.0f,
                          .values = v};
    uint32_t codes[6], found[3];

    ref_input_quantize(&q, codes, found, NULL);
    ck_assert_mem_eq(found, nearest, sizeof found);
    q.scales_up = true;
    ref_input_quantize(&q, codes, found, NULL);
    ck_assert_mem_eq(found, up, sizeof found);
}
END_TEST

/* To 3 mantissa bits: what lies below, nearest, above. */
START_TEST(bits_round_up)
{
    static const float rows[][3] = {
        {66.9f, 64, 72}, {120.5f, 120, 128}, {72, 72, 72}, {HUGE_VALF, HUGE_VALF, HUGE_VALF}};
    struct ref_input q = {.scales_up = false};

    ck_assert_uint_eq(bits_of(ref_input_m3(&q, rows[_i][0])), bits_of(rows[_i][1]));
    q.scales_up = true;
    ck_assert_uint_eq(bits_of(ref_input_m3(&q, rows[_i][0])), bits_of(rows[_i][2]));
    ck_assert(isnan(ref_input_m3(&q, NAN)));
}
END_TEST

/* 9 / 127 / 3, or 9 (1 / 3) / 127, each step rounded. */
START_TEST(static_scales)
{
    static const float v[2] = {-9, 4.5f};
    struct ref_input q = {.mode = REF_INPUT_STATIC_TENSOR_DYNAMIC_GROUP,
                          .t = dtype_find("int8"),
                          .group_scale = dtype_find("f32"),
                          .rows = 1,
                          .width = 2,
                          .group = 2,
                          .static_scale = 3.0f,
                          .values = v};
    uint32_t codes[2], scale;
    float raw = 9.0f / 127.0f;

    q.static_on_scale = true;
    ref_input_quantize(&q, codes, &scale, NULL);
    ck_assert_uint_eq(scale, bits_of(raw / 3.0f));
    ck_assert_uint_eq(codes[0], 0x81);
    ck_assert_uint_eq(codes[1], 64); /* 63.5 to even */
    q.static_on_scale = false;
    ref_input_quantize(&q, codes, &scale, NULL);
    ck_assert_uint_eq(scale, bits_of(9.0f * (1.0f / 3.0f) / 127.0f));
}
END_TEST

START_TEST(int4_limits)
{
    static const float v[4] = {7.5f, -8.5f, 100, -100};
    static const uint32_t low[4] = {8, 8, 4, 12}, limited[4] = {7, 8, 7, 8};
    struct ref_input q = {.mode = REF_INPUT_STATIC_TENSOR,
                          .t = dtype_find("int4"),
                          .rows = 1,
                          .width = 4,
                          .static_scale = 1.0f,
                          .values = v};
    uint32_t codes[4];

    ref_input_quantize(&q, codes, NULL, NULL);
    ck_assert_mem_eq(codes, low, sizeof codes);
    q.int4_saturates = true;
    ref_input_quantize(&q, codes, NULL, NULL);
    ck_assert_mem_eq(codes, limited, sizeof codes);
}
END_TEST

/* ---- moe_fused_mul_sum ----------------------------------------------------------------------- */

/* 1 + 2^-23, then 2^-24 (1 - 2^-46): the rounded product makes the sum a tie, to 1 + 2^-22. A
 * product of -2^-200 is -0, or lost in +0. */
START_TEST(sums)
{
    static const float x[3][2] = {{0x1.000002p0f, 0x1.000002p0f}, {-0x1p-100f, 0}, {NAN, 1}};
    static const float w[3][2] = {{1, 0x1.fffffcp-25f}, {0x1p-100f, 1}, {HUGE_VALF, 1}};
    static const int32_t ids[3][2] = {{0, 0}, {0, 0}, {-1, 0}};
    static const uint32_t want[2][3] = {{0x3f800002, 0, 0x3f800000}, {0x3f800001, 0, 0}};
    struct ref_weighted_sum s = {.t = dtype_find("f32"),
                                 .tokens = 3,
                                 .top_k = 2,
                                 .width = 1,
                                 .inputs = x[0],
                                 .weights = w[0],
                                 .topk_ids = ids[0]};
    uint32_t codes[3];

    ck_assert_ptr_null(ref_weighted_sum(&s, codes));
    ck_assert_mem_eq(codes, want[0], sizeof codes);
    s.fused = true;
    ck_assert_ptr_null(ref_weighted_sum(&s, codes));
    ck_assert_uint_eq(codes[0], want[1][0]);
    ck_assert_uint_eq(codes[1], 0); /* fma(0, 1, -0) is +0 */
    ck_assert(isnan(dtype_decode(s.t, codes[2])));
    s.top_k = 1; /* rows 1 x -2^-100 alone */
    s.tokens = 1;
    s.inputs = x[1];
    s.weights = w[1];
    ck_assert_ptr_null(ref_weighted_sum(&s, codes));
    ck_assert_uint_eq(codes[0], 0x80000000);
    s.fused = false;
    ck_assert_ptr_null(ref_weighted_sum(&s, codes));
    ck_assert_uint_eq(codes[0], 0);
}
END_TEST

/* ---- block scales of 16-bit activations ------------------------------------------------------ */

/* 1 + 2^-8 + 2^-20 is 1 + 2^-7 in bf16 (three times that the tie 3.0234375, to 3 + 2^-5), and
 * 1 + 2^-8 in f16. */
START_TEST(block_scales)
{
    static const struct {
        const char *a;
        double w[3]; /* of the codes 9, 11, 0 */
    } rows[] = {{"bf16", {1.0078125, 3.03125, -8.0625}},
                {"f16", {1.00390625, 3.01171875, -8.03125}}};
    uint8_t codes[3] = {9, 11, 0};
    uint32_t scale = bits_of(0x1.01001p0f);
    struct ref_gemm p = {.a = dtype_find(rows[_i].a),
                         .b = dtype_find_weight("uint4"),
                         .c = dtype_find(rows[_i].a),
                         .bs = dtype_find("f32"),
                         .m = 1,
                         .n = 1,
                         .k = 3,
                         .scale = REF_SCALE_BLOCK,
                         .group = 128,
                         .group_n = 128,
                         .b_codes = codes,
                         .bs_codes = &scale};
    float w[3];

    if (!p.b)
        p.b = dtype_find("uint4");
    ck_assert(ref_scales_on_c(&p) && !ref_scales_operand(&p));
    ref_operand_w(&p, 0, 1, w);
    ck_assert(bits_of(w[0]) == bits_of(1) && bits_of(w[1]) == bits_of(3));
    ck_assert(ref_flush_factor(&p, 0, 0, 0) > 1.0);
    p.block_on_operand = true;
    ck_assert(!ref_scales_on_c(&p) && ref_scales_operand(&p));
    ref_operand_w(&p, 0, 1, w);
    for (int i = 0; i < 3; i++)
        ck_assert_msg(bits_of(w[i]) == bits_of((float)rows[_i].w[i]), "%s, weight %d: %.9g",
                      rows[_i].a, i, (double)w[i]);
    ck_assert_uint_eq(bits_of((float)ref_weight(&p, 0, 1, 11)), bits_of((float)rows[_i].w[1]));
    ck_assert_uint_eq(bits_of((float)ref_flush_factor(&p, 0, 0, 0)), bits_of(1));
    p.a = dtype_find("e4m3"); /* other activations: no rule */
    ck_assert(ref_scales_on_c(&p));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rules");
    TCase *tests = tcase_create("all");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_loop_test(tests, weights, 0, sizeof groups / sizeof groups[0]);
    tcase_add_loop_test(tests, inputs, 0, sizeof scales / sizeof scales[0]);
    tcase_add_test(tests, input_nan);
    tcase_add_test(tests, scales_round_up);
    tcase_add_loop_test(tests, bits_round_up, 0, 4);
    tcase_add_test(tests, static_scales);
    tcase_add_test(tests, int4_limits);
    tcase_add_test(tests, sums);
    tcase_add_loop_test(tests, block_scales, 0, 2);
    suite_add_tcase(suite, tests);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
