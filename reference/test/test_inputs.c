#include "reference/inputs.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(table) ((int)(sizeof(table) / sizeof(table)[0]))
#define ANY          REF_CODE_ANY

static uint32_t bits_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

static bool same(double x, double y)
{
    return x <= y && x >= y;
}

/* ---- single scales --------------------------------------------------------------------------- */

/* Largest finite values: OFP8 1.0, OCP MX 1.0, the tensor core's E3M4; integers are symmetric. */
static const struct {
    const char *t;
    float target_max;
} targets[] = {
    {"e4m3", 448}, {"e5m2", 57344}, {"e3m4", 30}, {"e2m1", 6},
    {"e0m3", 7},   {"int8", 127},   {"int4", 7},
};

START_TEST(target_max)
{
    const struct dtype *t = dtype_find(targets[_i].t);

    ck_assert(same((double)ref_input_target_max(t), (double)targets[_i].target_max));
    ck_assert(same((double)ref_input_target_max(t), dtype_max(t)));
    ck_assert(same((double)ref_input_raw_scale(t, 3 * targets[_i].target_max), 3));
    ck_assert_uint_eq(bits_of(ref_input_raw_scale(t, 0)), bits_of(1e-30f));
    ck_assert(isnan(ref_input_raw_scale(t, NAN)) && isinf(ref_input_raw_scale(t, HUGE_VALF)));
    ck_assert(!(ref_input_target_max(dtype_find("f16")) > 0.0f));
}
END_TEST

START_TEST(absmax)
{
    static const float x[5] = {1, -3, 2, NAN, 5};

    ck_assert(same((double)ref_absmax(x, 3), 3) && isnan(ref_absmax(x, 4)) &&
              isnan(ref_absmax(x, 5)) && isnan(ref_absmax(x + 3, 2)));
    ck_assert(same((double)ref_absmax(x, 0), 0));
}
END_TEST

/* The nearest of the neighbours with 4 significant bits, found among all of one octave. */
START_TEST(three_bits)
{
    for (uint32_t i = 0; i < 4096; i++) {
        float x = float_of(bits_of(1e-30f) + i * 0x71235u), got = ref_round_to_3_bits(x);
        double best = 0.0;
        int e = ilogb((double)x);

        for (int n = 8; n <= 16; n++) {
            double c = ldexp(n, e - 3), d = fabs(c - (double)x) - fabs(best - (double)x);

            if (d < 0.0 || (same(d, 0.0) && n % 2 == 0))
                best = c;
        }
        if (!same((double)got, best))
            ck_abort_msg("%a: %a, not %a", (double)x, (double)got, best);
    }
    ck_assert(same((double)ref_round_to_3_bits(1.0625f), 1)); /* ties: to 1, to 1.25 */
    ck_assert(same((double)ref_round_to_3_bits(1.1875f), 1.25));
    ck_assert(isnan(ref_round_to_3_bits(NAN)) && isinf(ref_round_to_3_bits(HUGE_VALF)));
}
END_TEST

START_TEST(token_scales)
{
    for (uint32_t i = 0; i < 2000; i++) {
        float largest = float_of(bits_of(1e-30f) + i * 0xE7654u);
        double token = (double)ref_token_scale(largest);

        ck_assert(isfinite(largest) && same(token, ldexp(1.0, ilogb(token))));
        ck_assert((double)largest / token <= 448.0 && !((double)largest / token * 2 <= 448.0));
    }
    ck_assert(same((double)ref_token_scale(448), 1) && same((double)ref_token_scale(480), 2));
    ck_assert(same((double)ref_token_scale(224), 0.5));
}
END_TEST

static const struct {
    const char *format;
    float raw;
    uint32_t code;
} encodings[] = {
    {"f32", 1.5f, 0x3FC00000}, {"e8m0", 1.0f, 127},
    {"e8m0", 1.0000001f, 128}, {"e8m0", 1e-30f, 28},
    {"e8m0", 0x1p127f, 254},   {"e8m0", NAN, 255},
    {"e8m0", HUGE_VALF, 255},  {"e4m3", 448, 0x7E},
    {"e4m3", 1e9f, 0x7E},      {"e4m3", HUGE_VALF, 0x7E},
    {"e4m3", 0x1p-10f, 0},     {"e4m3", 0x1.8p-9f, 2},
    {"e4m3", 1e-30f, 0},       {"e4m3", NAN, 0x7F},
    {"e4m3", 1.0625f, 0x38},   {"f32", HUGE_VALF, 0x7F800000},
};

START_TEST(encoding)
{
    const struct dtype *format = dtype_find(encodings[_i].format);
    uint32_t code = ref_group_scale_encode(format, encodings[_i].raw);
    double back = (double)ref_group_scale_decode(format, code);

    ck_assert_uint_eq(code, encodings[_i].code);
    ck_assert(same(back, dtype_decode(format, code)) || isnan(back));
}
END_TEST

/* ---- conversion ------------------------------------------------------------------------------ */

/* The nearest of all codes, the even one of a tie; the largest beyond. */
START_TEST(nearest)
{
    const struct dtype *t = dtype_find(targets[_i].t);
    double top = dtype_max(t), table[256];

    dtype_table(t, table);
    for (int i = -3000; i <= 3000; i++) {
        float y = i % 3 ? (float)i * (float)top * 0x1p-11f : (float)i / 64.0f;
        uint32_t got = ref_input_convert(t, y), best = 0;

        if (!strcmp(t->name, "int4") && !(fabsf(y) < 7.5f))
            continue;
        for (uint32_t c = 0; c < 1u << t->bits; c++) {
            double d = fabs(table[c] - (double)y) - fabs(table[best] - (double)y);
            bool negative = t->bits ? c >> (t->bits - 1) & 1u : 0;

            if (isfinite(table[c]) && negative == (signbit(y) != 0) &&
                (d < 0.0 || (same(d, 0.0) && !(c & 1)) || (!c && !negative)))
                best = c;
        }
        if (!same(table[got], table[best]))
            ck_abort_msg("%s %a: 0x%x, not 0x%x", t->name, (double)y, got, best);
    }
}
END_TEST

static const struct {
    const char *t;
    float y;
    uint32_t code;
} conversions[] = {
    {"e4m3", NAN, 0x7F},
    {"e4m3", HUGE_VALF, 0x7E},
    {"e4m3", -500, 0xFE},
    {"e4m3", -0.0f, 0x80},
    {"e5m2", HUGE_VALF, 0x7B},
    {"e5m2", 60000, 0x7B},
    {"e3m4", 31, 0x7E},
    {"e2m1", NAN, ANY},
    {"e2m1", -100, 15},
    {"e2m1", -0.1f, 8},
    {"e2m1", 2.5f, 4},
    {"e0m3", 7.6f, 7},
    {"e0m3", -2.5f, 10},
    {"e0m3", NAN, ANY},
    {"int8", 127.6f, 127},
    {"int8", -128.6f, 128},
    {"int8", -HUGE_VALF, 128},
    {"int8", 0.5f, 0},
    {"int8", 1.5f, 2},
    {"int8", -1.5f, 254},
    {"int8", NAN, ANY},
    {"int4", 7.4f, 7},
    {"int4", 8, 8},
    {"int4", -9, 7},
    {"int4", -1.5f, 14},
    {"int4", 19.7f, 4},
    {"int4", 0x1p31f, ANY},
    {"int4", -0x1p31f, 0},
    {"int4", NAN, ANY},
    {"f16", 65520, 0x7C00},
    {"f16", 0x1.002p0f, 0x3C00},
    {"bf16", 0x1.ffp127f, 0x7F80},
    {"f32", 1.5f, 0x3FC00000},
};

START_TEST(conversion)
{
    const struct dtype *t = dtype_find(conversions[_i].t);
    uint32_t got = ref_input_convert(t, conversions[_i].y);

    ck_assert_msg(got == conversions[_i].code, "%s %a: 0x%x", t->name, (double)conversions[_i].y,
                  got);
}
END_TEST

START_TEST(nibbles)
{
    static const uint8_t bytes[2] = {0x21, 0xF8};
    static const uint32_t want[4] = {1, 2, 8, 15};
    uint32_t codes[4];

    ref_unpack_nibbles(bytes, 4, codes);
    ck_assert_mem_eq(codes, want, sizeof want);
}
END_TEST

/* ---- modes, by hand: rows of two groups of four ---------------------------------------------- */

/* clang-format off */
static const struct {
    enum ref_input_mode mode;
    const char *t, *group_scale;
    float static_scale, v[8];
    uint32_t codes[8], scales[2], token;
} modes[] = {
    {REF_INPUT_DISABLED, "f16", NULL, 0, {1, -2, 0x1.004p0f, 1e6f, NAN, -0.0f, 0, 3},
     {0x3C00, 0xC000, 0x3C01, 0x7C00, 0x7E00, 0x8000, 0, 0x4200}, {0}, 0},
    {REF_INPUT_STATIC_TENSOR, "int8", NULL, 0.5f, {1, -2, 100, -100, 0.25f, 0.75f, 63.5f, 0},
     {2, 252, 127, 128, 0, 2, 127, 0}, {0}, 0},
    {REF_INPUT_DYNAMIC_TOKEN, "int8", NULL, 0, {127, -254, 1, 3, 5, 0, 2, -1},
     {64, 129, 0, 2, 2, 0, 1, 0}, {0}, 0x40000000},
    {REF_INPUT_DYNAMIC_TOKEN, "e4m3", NULL, 0, {0, 0, 0, 0, -0.0f, 0, 0, 0},
     {0, 0, 0, 0, 0x80, 0, 0, 0}, {0}, 0x0DA24260},
    {REF_INPUT_DYNAMIC_TOKEN, "e4m3", NULL, 0, {NAN, 1, 2, 3, 4, 5, 6, 7},
     {0x7F, 0x7F, 0x7F, 0x7F, 0x7F, 0x7F, 0x7F, 0x7F}, {0}, 0x7FC00000},
    {REF_INPUT_DYNAMIC_TOKEN, "int8", NULL, 0, {HUGE_VALF, 1, -2, 3, 4, 5, 6, 7},
     {ANY, 0, 0, 0, 0, 0, 0, 0}, {0}, 0x7F800000},
    {REF_INPUT_DYNAMIC_GROUP, "e2m1", "e8m0", 0, {6, 3, -1, 0.5f, 9, 12, -3, 2.5f},
     {7, 5, 10, 1, 6, 7, 11, 2}, {127, 128}, 0}, /* 9 / 2 = 4.5 is 4; 1.25 ties to 1 */
    {REF_INPUT_DYNAMIC_GROUP, "e2m1", "e8m0", 0, {6.5f, 3, -1, 0.5f, NAN, 12, -3, 2.5f},
     {5, 3, 9, 0, ANY, ANY, ANY, ANY}, {128, 255}, 0},
    {REF_INPUT_DYNAMIC_GROUP, "e2m1", "e4m3", 0, {12, 3, -1, 0, 0x1p-9f, -0x1p-9f, 0, 0},
     {7, 3, 9, 0, 0, 8, 0, 0}, {0x40, 0}, 0}, /* a scale of 0 multiplies by 0 */
    {REF_INPUT_DYNAMIC_GROUP, "e4m3", "e4m3", 0, {0.25f, -0.125f, 0, 0, 448, 0, 0, 0},
     {0, 0x80, 0, 0, 0x7E, 0, 0, 0}, {0, 0x38}, 0},
    {REF_INPUT_DYNAMIC_GROUP, "int4", "f32", 0, {7, -7, 3.5f, 2.5f, 14, -1, 1, 3},
     {7, 9, 4, 2, 7, 0, 0, 2}, {0x3F800000, 0x40000000}, 0},
    {REF_INPUT_STATIC_TENSOR_DYNAMIC_GROUP, "e2m1", "e4m3", 0.5f, {6, 3, -1, 0, 3, 1.5f, 0, -3},
     {7, 5, 10, 0, 7, 5, 0, 15}, {0x40, 0x38}, 0},
    /* raw 1.0625 is m3 1, raw 448 stays: token 1. 6.375 / 1 saturates. */
    {REF_INPUT_DYNAMIC_GROUP_TOKEN, "e2m1", "e4m3", 0, {6.375f, 3, -1, 0, 2688, 448, -1344, 0},
     {7, 5, 10, 0, 7, 2, 13, 0}, {0x38, 0x7E}, 0x3F800000},
    /* 19 / 1 is a tie and becomes 20; 19 / 1.0625 would be 18. */
    {REF_INPUT_DYNAMIC_GROUP_TOKEN, "e4m3", "e4m3", 0, {476, 19, 0, 0, 448, 19, 0, 0},
     {0x7E, 0x5A, 0, 0, 0x7E, 0x5A, 0, 0}, {0x78, 0x78}, 0x3B800000},
    /* raw 896: token 2; raw 2^-8 / 2 is subnormal in e4m3, raw 2^-10 / 2 would be 0, the data see m3. */
    {REF_INPUT_DYNAMIC_GROUP_TOKEN, "e2m1", "e4m3", 0, {5376, 0, 0, 0, 6 * 0x1p-8f, 0, 0x1p-8f, 0},
     {7, 0, 0, 0, 7, 0, 2, 0}, {0x7E, 1}, 0x40000000},
    {REF_INPUT_DYNAMIC_GROUP_TOKEN, "e2m1", "e4m3", 0, {5376, 0, 0, 0, 6 * 0x1p-10f, 0, 0x1p-10f, 0},
     {7, 0, 0, 0, 7, 0, 2, 0}, {0x7E, 0}, 0x40000000},
    {REF_INPUT_DYNAMIC_GROUP_TOKEN, "e4m3", "e4m3", 0, {NAN, 0, 1, 0, 448, 0, 1, 0},
     {0x7F, 0x7F, 0x7F, 0x7F, 0x7E, 0, 0x38, 0}, {ANY, ANY}, ANY},
};
/* clang-format on */

static void check_mode(int i, const struct ref_input *q, const uint32_t *codes,
                       const uint32_t *scales, uint32_t token)
{
    for (int j = 0; j < 8; j++)
        ck_assert_msg(codes[j] == modes[i].codes[j], "row %d, code %d: 0x%x", i, j, codes[j]);
    for (int j = 0; j < 2 && ref_input_has_groups(q->mode); j++)
        ck_assert_msg(scales[j] == modes[i].scales[j], "row %d, scale %d: 0x%x", i, j, scales[j]);
    if (ref_input_has_tokens(q->mode))
        ck_assert_msg(token == modes[i].token, "row %d, token 0x%x", i, token);
}

START_TEST(by_hand)
{
    struct ref_input q = {.mode = modes[_i].mode,
                          .t = dtype_find(modes[_i].t),
                          .group_scale =
                              modes[_i].group_scale ? dtype_find(modes[_i].group_scale) : NULL,
                          .rows = 2,
                          .width = 8,
                          .group = 4,
                          .static_scale = modes[_i].static_scale};
    uint32_t codes[16], scales[4] = {0}, tokens[2] = {0};
    float values[16];

    memcpy(values, modes[_i].v, sizeof modes[_i].v);
    memcpy(values + 8, modes[_i].v, sizeof modes[_i].v);
    q.values = values;
    ck_assert_ptr_null(ref_input_valid(&q));
    ref_input_quantize(&q, codes, scales, tokens);
    check_mode(_i, &q, codes, scales, tokens[0]);
    check_mode(_i, &q, codes + 8, scales + 2, tokens[1]);
    ref_input_quantize(&q, codes, scales, tokens);
    q.given_group = q.mode == REF_INPUT_DYNAMIC_GROUP_TOKEN ? NULL : scales; /* the right ones */
    q.given_token = tokens;
    ref_input_quantize(&q, codes, scales, tokens);
    check_mode(_i, &q, codes, scales, tokens[0]);
}
END_TEST

/* A wrong scale of the provider's moves the data, not the expected scale. The last group is
 * short. */
START_TEST(given)
{
    static const float v[6] = {6, 3, 1, 2, 12, 6};
    static const uint32_t wrong[2] = {0x40000000, 0x40800000}, right[2] = {0x3F800000, 0x40000000};
    static const uint32_t want[6] = {5, 3, 1, 2, 5, 3};
    struct ref_input q = {.mode = REF_INPUT_DYNAMIC_GROUP,
                          .t = dtype_find("e2m1"),
                          .group_scale = dtype_find("f32"),
                          .rows = 1,
                          .width = 6,
                          .group = 4,
                          .values = v,
                          .given_group = wrong};
    uint32_t codes[6], scales[2], token;

    ref_input_quantize(&q, codes, scales, &token);
    ck_assert_mem_eq(scales, right, sizeof right);
    ck_assert_mem_eq(codes, want, sizeof want);
    q.mode = REF_INPUT_DYNAMIC_TOKEN;
    q.given_token = wrong + 1;
    ref_input_quantize(&q, codes, scales, &token);
    ck_assert_uint_eq(token, 0x40000000);
    ck_assert_uint_eq(codes[4], 5);
}
END_TEST

START_TEST(sentences)
{
    struct ref_input good = {.mode = REF_INPUT_DYNAMIC_GROUP,
                             .t = dtype_find("e2m1"),
                             .group_scale = dtype_find("e8m0"),
                             .rows = 1,
                             .width = 8,
                             .group = 4};
    struct ref_input q = good;

    ck_assert_ptr_null(ref_input_valid(&q));
    q.width = 7;
    ck_assert_ptr_nonnull(ref_input_valid(&q));
    q = good, q.group = 0;
    ck_assert_ptr_nonnull(ref_input_valid(&q));
    q = good, q.group_scale = NULL;
    ck_assert_ptr_nonnull(ref_input_valid(&q));
    q = good, q.group_scale = dtype_find("e5m2");
    ck_assert_ptr_nonnull(ref_input_valid(&q));
    q = good, q.mode = REF_INPUT_DYNAMIC_GROUP_TOKEN;
    ck_assert_ptr_nonnull(ref_input_valid(&q));
    q = good, q.mode = REF_INPUT_DISABLED;
    ck_assert_ptr_nonnull(ref_input_valid(&q));
    q = good, q.t = dtype_find("f16");
    ck_assert_ptr_nonnull(ref_input_valid(&q));
    q = good, q.t = dtype_find("e3m2");
    ck_assert_ptr_nonnull(ref_input_valid(&q));
    q = good, q.mode = REF_INPUT_STATIC_TENSOR;
    ck_assert_ptr_nonnull(ref_input_valid(&q));
    q.static_scale = 0.25f;
    ck_assert_ptr_null(ref_input_valid(&q));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("inputs");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_loop_test(tc, target_max, 0, COUNT(targets));
    tcase_add_test(tc, absmax);
    tcase_add_test(tc, three_bits);
    tcase_add_test(tc, token_scales);
    tcase_add_loop_test(tc, encoding, 0, COUNT(encodings));
    tcase_add_loop_test(tc, nearest, 0, COUNT(targets));
    tcase_add_loop_test(tc, conversion, 0, COUNT(conversions));
    tcase_add_test(tc, nibbles);
    tcase_add_loop_test(tc, by_hand, 0, COUNT(modes));
    tcase_add_test(tc, given);
    tcase_add_test(tc, sentences);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
