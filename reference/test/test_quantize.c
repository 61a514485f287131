#include "reference/quantize.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { COLS = 512, ROWS = 128 }; /* all codes of a 16-bit format */

static uint32_t bits_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static bool is_float_weight(const struct dtype *t)
{
    return t->is_float && t->is_signed && t->bits <= 8 && t->top == DTYPE_TOP_FINITE;
}

/* ---- dequant_weight -------------------------------------------------------------------------- */

/* Section 2 read aloud: sign to bit 31, the rest shifted left by 23 - Y, times 2^(128 - 2^(X-1)).
 */
START_TEST(dequant)
{
    const struct dtype *t = &dtypes[_i];

    if (!is_float_weight(t) || !t->exp_bits)
        return;
    for (uint32_t code = 0; code < 1u << t->bits; code++) {
        uint32_t sign = code >> (t->bits - 1), rest = code & ((1u << (t->bits - 1)) - 1u);
        uint32_t pattern = sign << 31 | rest << (23 - t->man_bits), dirty = code | ~0u << t->bits;
        float want, got;

        memcpy(&want, &pattern, sizeof want);
        want *= ldexpf(1.0f, 128 - (1 << (t->exp_bits - 1)));
        ref_dequant_weight(t, &dirty, 1, &got);
        ck_assert_msg(bits_of(got) == bits_of(want), "%s 0x%x: %a", t->name, code, (double)got);
    }
}
END_TEST

/* ---- nearest values -------------------------------------------------------------------------- */

/* Number `i` of the format's magnitudes if its exponent went on for ever. */
static double magnitude(const struct dtype *t, uint64_t i)
{
    uint64_t field = i >> t->man_bits, man = i & ((UINT64_C(1) << t->man_bits) - 1u);
    double fraction = ldexp((double)man, -t->man_bits);

    if (!t->exp_bits)
        return (double)i;
    return field ? ldexp(1.0 + fraction, (int)field - t->bias) : ldexp(fraction, 1 - t->bias);
}

/* Between two magnitudes: the number of the lower one, and the middle. */
struct cursor {
    uint64_t number;
    double middle;
};

static struct cursor cursor_at(const struct dtype *t, uint64_t i)
{
    return (struct cursor){i, (magnitude(t, i) + magnitude(t, i + 1)) / 2.0};
}

/* The number of middles strictly below y: the nearest magnitude, ties going down. y never falls. */
static uint64_t nearest(const struct dtype *t, double y, struct cursor *c)
{
    if (!t->exp_bits)
        return y < 0.5 ? 0 : (uint64_t)ceil(y - 0.5);
    while (c->middle < y)
        *c = cursor_at(t, c->number + 1);
    return c->number;
}

static double top_of(const struct dtype *t)
{
    if (!strcmp(t->name, "float8e4m3"))
        return 448.0;                                                   /* OFP8's E4M3 */
    return strcmp(t->name, "float8e5m2") != 0 ? dtype_max(t) : 57344.0; /* OFP8's E5M2 */
}

/* c is where the last input left it, which was not larger. */
static uint32_t expected(const struct ref_quant *q, double top, float x, struct cursor *c)
{
    const struct dtype *t = q->target;
    double y = fabs((double)x);
    uint32_t sign = signbit(x) ? 1u << (t->bits - 1) : 0u, mask = (1u << t->bits) - 1u;

    if (isnan(x) || (isinf(x) && q->rule == REF_QUANT_RULE_2026_05))
        return REF_CODE_ANY;
    if (q->rule == REF_QUANT_RULE_2026_08 && y > top)
        y = top;
    if (!t->exp_bits && y >= 0x1p31)
        return REF_CODE_ANY;
    return (sign + (uint32_t)nearest(t, y, c)) & mask;
}

/* Every f16 and bf16 input to every float target, by both rules. */
START_TEST(all_inputs)
{
    static float inputs[ROWS * COLS];
    static uint32_t codes[ROWS * COLS];
    const struct dtype *source = dtype_find(_i % 2 ? "bf16" : "f16");
    struct ref_quant q = {.target = &dtypes[_i / 4],
                          .rows = ROWS,
                          .cols = COLS,
                          .rule = _i / 2 % 2 ? REF_QUANT_RULE_2026_05 : REF_QUANT_RULE_2026_08,
                          .inputs = inputs};
    struct cursor c = {0, 0.0};
    double top = top_of(q.target);
    uint32_t wrong = 0, first = 0;

    if (!is_float_weight(q.target))
        return;
    for (uint32_t i = 0; i < ROWS * COLS; i++)
        inputs[i] = (float)dtype_decode(source, i);
    ck_assert_ptr_null(ref_quant_valid(&q));
    ref_quant_weight(&q, codes, NULL, NULL);
    for (uint32_t i = 0; i < ROWS * COLS; i++) { /* ascending magnitudes, twice */
        uint32_t want;

        if (i % 0x8000 == 0)
            c = cursor_at(q.target, 0);
        want = expected(&q, top, inputs[i], &c);

        if (codes[i] != want && !wrong++)
            first = i;
    }
    ck_assert_msg(!wrong, "%s of %s: %u are wrong, first 0x%x: 0x%x", q.target->name, source->name,
                  wrong, first, codes[first]);
}
END_TEST

/* ---- single groups, by hand ------------------------------------------------------------------ */

#define R05 REF_QUANT_RULE_2026_05
#define R08 REF_QUANT_RULE_2026_08
#define ANY REF_CODE_ANY

/* clang-format off */
static const struct {
    const char *target;
    bool e8m0, zero, fp_zero, negative;
    enum ref_quant_rule rule;
    float v[8];
    float scale; /* or the e8m0 code */
    float zero_point;
    uint32_t codes[8];
} groups[] = {
    /* absmax 448: scale 1. 1 is 0x38, the tie 2^-10 goes to 0, 19 to 18, -0 stays. */
    {"float8e4m3", 0, 0, 0, 0, R08, {448, 1, 0x1p-9f, 0x1p-10f, 19, -0.0f, -240, 0}, 1, 0,
     {0x7E, 0x38, 1, 0, 0x59, 0x80, 0xF7, 0}},
    {"float8e4m3", 0, 0, 0, 0, R05, {-448, 1, 0x1p-9f, 0x1.8p-9f, 21, -0.0f, -240, 0}, 1, 0,
     {0xFE, 0x38, 1, 1, 0x5A, 0x80, 0xF7, 0}},
    {"float8e5m2", 0, 0, 0, 0, R08, {57344, 1, 0x1p-16f, 0x1p-17f, 9, -9, 11, 0}, 1, 0,
     {0x7B, 0x3C, 1, 0, 0x48, 0xC8, 0x49, 0}},
    /* 9 / 6 = 1.5: up to 2 (128), 4.5 goes to 4; or stored as 1 (127), the data seeing 1.5. */
    {"e2m1", 1, 0, 0, 0, R08, {9, 2, 3, -10 / 4.0f, 0, 0, 0, 0}, 128, 0, {6, 2, 3, 0xA, 0, 0, 0, 0}},
    {"e2m1", 1, 0, 0, 0, R05, {9, 2, 3, -9, 0, 0, 0, 0}, 127, 0, {7, 3, 4, 0xF, 0, 0, 0, 0}},
    {"e2m1", 0, 0, 0, 0, R08, {6, 5, 3.5f, 2.5f, 1.75f, 0.25f, -0.25f, 0.75f}, 1, 0,
     {7, 6, 5, 4, 3, 0, 8, 1}},
    /* The negative side has one code more. */
    {"int4", 0, 0, 0, 0, R08, {7, -8, 0.5f, 1.5f, -0.5f, -1.5f, 0, 3}, 1, 0,
     {15, 0, 8, 10, 8, 6, 8, 11}},
    {"uint4", 0, 0, 0, 1, R08, {8, -7, 1, -1, 0, 0, 2.5f, 3.5f}, -1, 0, {0, 15, 7, 9, 8, 8, 6, 4}},
    {"uint4", 0, 0, 0, 1, R08, {7, -8, 1, -1, 0, 0, 0, 0}, 1, 0, {15, 0, 9, 7, 8, 8, 8, 8}},
    {"uint4", 1, 0, 0, 1, R08, {8, -7, 1, -1, 0, 0, 0, 0}, 128, 0, {12, 4, 8, 8, 8, 8, 8, 8}},
    {"uint4", 1, 0, 0, 0, R05, {8, -7, 1, -1, 0, 0, 0, 0}, 127, 0, {15, 1, 9, 7, 8, 8, 8, 8}},
    {"int4", 0, 0, 0, 0, R05, {7.499f, -8.499f, 1, -1, 0.5f, 0, 0, 0}, 1, 0,
     {15, 0, 9, 7, 8, 8, 8, 8}},
    {"int4", 0, 0, 0, 1, R05, {8.499f, -7.499f, 1, -1, 0, 0, 0, 0}, -1, 0,
     {0, 15, 7, 9, 8, 8, 8, 8}},
    {"uint1", 0, 0, 0, 1, R08, {1.499f, -0.499f, 0, 0, 0, 0, 0, 1}, -1, 0,
     {0, 1, 1, 1, 1, 1, 1, 0}},
    {"uint1", 0, 0, 0, 0, R05, {0.499f, -1.499f, 0, 0, 0, 0, 0, -1}, 1, 0,
     {1, 0, 1, 1, 1, 1, 1, 0}},
    {"uint4", 0, 1, 0, 0, R08, {-5, 10, 0, 1, 2.5f, 3.5f, -4.5f, 9}, 1, 5,
     {0, 15, 5, 6, 8, 8, 0, 14}},
    {"uint4", 0, 1, 1, 0, R05, {-5.25f, 9.75f, 0, 1, 0, 0, 0, 0}, 1, 5.25f,
     {0, 15, 5, 6, 5, 5, 5, 5}},
    {"uint4", 0, 1, 0, 0, R08, {-30, -16, -1, -15, -16, -17, -18, -2}, 2, 15,
     {0, 7, 14, 8, 7, 6, 6, 14}},
    {"uint4", 0, 1, 0, 0, R08, {20, 30, 21, 22, 23, 24, 25, 26}, 2, 0,
     {10, 15, 10, 11, 12, 12, 12, 13}},
    {"uint4", 1, 1, 0, 0, R08, {20, 18, 0, 0, 0, 0, 0, 1}, 128, 0, {10, 9, 0, 0, 0, 0, 0, 0}},
    /* A NaN takes no part; infinities leave no number. */
    {"int4", 0, 0, 0, 0, R08, {NAN, 7, -8, 0, 0, 0, 0, 0}, 1, 0, {ANY, 15, 0, 8, 8, 8, 8, 8}},
    {"e2m1", 0, 0, 0, 0, R08, {6, -6, 0, 0, 0, 0, 0, NAN}, 1, 0, {7, 15, 0, 0, 0, 0, 0, ANY}},
    {"e2m1", 0, 0, 0, 0, R08, {HUGE_VALF, 6, -6, 0, 0, 0, 0, 0}, HUGE_VALF, 0,
     {ANY, 0, 8, 0, 0, 0, 0, 0}},
    {"uint4", 0, 1, 0, 0, R08, {-HUGE_VALF, 6, -6, 0, 0, 0, 0, 0}, HUGE_VALF, NAN,
     {ANY, ANY, ANY, ANY, ANY, ANY, ANY, ANY}},
};
/* clang-format on */

START_TEST(by_hand)
{
    struct ref_quant q = {.target = dtype_find_weight(groups[_i].target),
                          .rows = 1,
                          .cols = 8,
                          .group = 8,
                          .has_scale = true,
                          .use_e8m0_scale = groups[_i].e8m0,
                          .has_zero_point = groups[_i].zero,
                          .is_fp_zero_point = groups[_i].fp_zero,
                          .allow_negative_scale = groups[_i].negative,
                          .rule = groups[_i].rule,
                          .inputs = groups[_i].v};
    uint32_t codes[8], scale;
    float zero;

    ck_assert_ptr_null(ref_quant_valid(&q));
    ref_quant_weight(&q, codes, &scale, q.has_zero_point ? &zero : NULL);
    if (q.use_e8m0_scale)
        ck_assert_uint_eq(scale, (uint32_t)groups[_i].scale);
    else
        ck_assert_msg(scale == bits_of(groups[_i].scale), "row %d: 0x%x", _i, scale);
    for (int i = 0; i < 8; i++)
        ck_assert_msg(codes[i] == groups[_i].codes[i], "row %d, code %d: %u", _i, i, codes[i]);
    if (q.has_zero_point)
        ck_assert_msg(isnan(groups[_i].zero_point)
                          ? isnan(zero)
                          : !(zero < groups[_i].zero_point) && !(zero > groups[_i].zero_point),
                      "row %d: zero point %g", _i, (double)zero);
}
END_TEST

/* ---- integers, in wider arithmetic ----------------------------------------------------------- */

/* A quotient of two f32 numbers rounded to double and then to f32 is rounded correctly (53 >= 2 x
 * 24 + 2; Figueroa, When is double rounding innocuous?, 1995); their product is exact in double. */
static float quotient(double x, double d)
{
    return (float)(x / d);
}

static double larger(double x, double y)
{
    return x > y ? x : y;
}

static double wanted_scale(const struct ref_quant *q, double hi, double lo)
{
    double m = ldexp(1.0, q->target->bits - 1) - 1.0;
    bool old = q->rule == R05 || q->target->bits == 1;
    double more = (double)(float)(m + (old ? (double)1.499f : 1.0));
    double less = (double)(float)(m + (old ? (double)0.499f : 0.0));

    if (q->allow_negative_scale && hi > -lo)
        return -larger((double)quotient(hi, more), (double)quotient(-lo, less));
    return larger((double)quotient(hi, less), (double)quotient(-lo, more));
}

static float some_value(uint32_t i)
{
    uint32_t x = i * 2654435761u;

    x ^= x >> 15;
    x *= 0x85ebca6bu;
    x ^= x >> 13;
    return ((float)(x & 0xFFFF) - 32768.0f) * 0x1.234p-10f * (float)(1 + i / 64 % 7);
}

/* Integers without zero point: scales and codes; and no code wraps, or it would be far from its
 * value. */
START_TEST(integers)
{
    static float v[8192];
    static uint32_t codes[8192], scales[1024];
    int bits = _i / 4 + 1;
    struct ref_quant q = {.target = dtype_find_id(10000000 + bits * 10000, true),
                          .rows = 4,
                          .cols = 2048,
                          .group = 8,
                          .has_scale = true,
                          .allow_negative_scale = _i % 2,
                          .rule = _i / 2 % 2 ? R05 : R08,
                          .inputs = v};
    double half = ldexp(1.0, bits - 1);

    for (uint32_t i = 0; i < 8192; i++)
        v[i] = some_value(i);
    ref_quant_weight(&q, codes, scales, NULL);
    ck_assert(!ref_quant_can_wrap(&q));
    for (int g = 0; g < 1024; g++) {
        double hi = 1e-30, lo = -1e-30, want;
        float got, inverse;

        for (int i = 0; i < 8; i++) {
            double x = (double)v[g * 8 + i];

            hi = x > hi ? x : hi;
            lo = x < lo ? x : lo;
        }
        want = wanted_scale(&q, hi, lo);
        memcpy(&got, &scales[g], sizeof got);
        ck_assert_msg(bits_of(got) == bits_of((float)want), "group %d: %a not %a", g, (double)got,
                      want);
        inverse = (float)(1.0 / want);
        for (int i = g * 8; i < g * 8 + 8; i++) {
            float y = (float)((double)v[i] * (double)inverse);
            double code = nearbyint((double)y) + half;

            ck_assert_uint_eq(codes[i], (uint32_t)code);
            ck_assert(fabs(((double)codes[i] - half) * want - (double)v[i]) <=
                      0.50001 * fabs(want));
        }
    }
}
END_TEST

/* ---- e8m0 and wrapping ----------------------------------------------------------------------- */

START_TEST(e8m0_up)
{
    static const uint32_t corners[] = {0, 1, 0x400000, 0x7FFFFE, 0x7FFFFF};

    for (uint32_t field = 0; field < 255; field++)
        for (int i = 0; i < 5; i++) {
            uint32_t bits = field << 23 | corners[i];
            float x, got;
            int e = -126;

            memcpy(&x, &bits, sizeof x);
            got = ref_e8m0_round_up(x);
            while (ldexp(1.0, e) < (double)x)
                e++;
            if (!bits)
                ck_assert_uint_eq(bits_of(got), 0);
            else if (e > 127)
                ck_assert(isinf(got) && ref_e8m0_code(got) == 255);
            else
                ck_assert(got <= ldexpf(1.0f, e) && got >= ldexpf(1.0f, e) &&
                          ref_e8m0_code(got) == (uint32_t)(e + 127));
        }
}
END_TEST

START_TEST(wrapping)
{
    static const float beyond[8] = {6.9f, 7.1f, -7.1f, 9, 13, -100, 0x1p100f, HUGE_VALF};
    static const uint32_t wrapped[8] = {7, 8, 0, 8, 9, 7, 10, ANY}; /* 8 has number 8, 12 has 9 */
    struct ref_quant q = {.target = dtype_find("e2m1"), .rows = 1, .cols = 8, .inputs = beyond};
    static const float small[8] = {0};
    uint32_t codes[8], scale;

    q.rule = R05;
    ref_quant_weight(&q, codes, NULL, NULL);
    for (int i = 0; i < 8; i++)
        ck_assert_msg(codes[i] == wrapped[i], "%d: %u", i, codes[i]);
    ck_assert(ref_quant_can_wrap(&q));
    q.rule = R08;
    ck_assert(!ref_quant_can_wrap(&q));
    q.rule = R05;
    q.has_scale = true;
    q.inputs = small;
    for (int i = 0; i < dtype_count; i++) {
        q.target = &dtypes[i];
        if (!is_float_weight(q.target))
            continue;
        ck_assert_msg(ref_quant_can_wrap(&q) == (q.target->exp_bits >= 6), "%s", q.target->name);
        ref_quant_weight(&q, codes, &scale, NULL); /* zeros times an infinite reciprocal */
        ck_assert_msg(codes[0] == (q.target->exp_bits >= 6 ? ANY : 0u), "%s", q.target->name);
    }
}
END_TEST

START_TEST(int_wrapping)
{
    static const float v[8] = {7, 8, -8, -9, 2.5f, 0x1p31f, -0x1p31f, 300};
    static const uint32_t old[8] = {15, 0, 0, 15, 10, ANY, 8, 4};
    static const uint32_t new[8] = {15, 15, 0, 0, 10, 15, 0, 15};
    struct ref_quant q = {.target = dtype_find("int4"), .rows = 1, .cols = 8, .inputs = v};
    uint32_t codes[8];

    q.rule = R05;
    ref_quant_weight(&q, codes, NULL, NULL);
    ck_assert_mem_eq(codes, old, sizeof old);
    ck_assert(ref_quant_can_wrap(&q));
    q.rule = R08;
    ref_quant_weight(&q, codes, NULL, NULL);
    ck_assert_mem_eq(codes, new, sizeof new);
}
END_TEST

START_TEST(sentences)
{
    struct ref_quant good = {
        .target = dtype_find("uint4"), .rows = 1, .cols = 64, .group = 32, .has_scale = true};
    struct ref_quant q = good;

    ck_assert_ptr_null(ref_quant_valid(&q));
    q.group = 12;
    ck_assert_ptr_nonnull(ref_quant_valid(&q));
    q.group = 24;
    ck_assert_ptr_nonnull(ref_quant_valid(&q));
    q = good;
    q.target = dtype_find("e4m3"); /* an activation: one code is NaN */
    ck_assert_ptr_nonnull(ref_quant_valid(&q));
    q.target = dtype_find("float8e4m3");
    ck_assert_ptr_null(ref_quant_valid(&q));
    q.has_zero_point = true;
    ck_assert_ptr_nonnull(ref_quant_valid(&q));
    q = good;
    q.has_scale = false;
    q.has_zero_point = true;
    ck_assert_ptr_nonnull(ref_quant_valid(&q));
    q = good;
    q.cols = 0;
    ck_assert_ptr_nonnull(ref_quant_valid(&q));
}
END_TEST

START_TEST(comparison)
{
    const struct dtype *t = dtype_find("e4m3");

    ck_assert(ref_code_holds(t, 0x7F, 0xFF) && !ref_code_holds(t, 0x7E, 0x7F));
    ck_assert(!ref_code_holds(t, 0x7F, 0x7E) && !ref_code_holds(t, 0x00, 0x80));
    ck_assert(ref_code_holds(t, 0x7F, REF_CODE_ANY) && ref_code_holds(t, 3, 3));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("quantize");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_loop_test(tc, dequant, 0, dtype_count);
    tcase_add_loop_test(tc, all_inputs, 0, 4 * dtype_count);
    tcase_add_loop_test(tc, by_hand, 0, (int)(sizeof groups / sizeof groups[0]));
    tcase_add_loop_test(tc, integers, 0, 32);
    tcase_add_test(tc, e8m0_up);
    tcase_add_test(tc, wrapping);
    tcase_add_test(tc, int_wrapping);
    tcase_add_test(tc, sentences);
    tcase_add_test(tc, comparison);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
