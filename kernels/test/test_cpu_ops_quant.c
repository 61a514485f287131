#include "kernels/cpu/ops.h"
#include "kernels/test/ops_tensor.h"
#include "kernels/test/oracle.h"

#include <math.h>

enum { ROWS = 4, COLS = 64 };

static char reason[HUM_REASON_BYTES];

/* Every target: integers 1 to 16 (unsigned, signed), then all floats. */
static int32_t target(int index)
{
    if (index < 8)
        return HUM_UINT(index + 1);
    if (index < 16)
        return HUM_INT(index - 7);
    index -= 16;
    for (int bits = 2; bits <= 8; bits++)
        for (int x = 1; x < bits; x++)
            if (index-- == 0)
                return HUM_FLOAT(bits, x, bits - 1 - x);
    return HUM_NONE;
}

enum { TARGETS = 16 + 28 };

struct call {
    struct hum_quant_weight_args a;
    struct hum_tensor before; /* inputs */
};

static struct call call_make(int32_t dtype, int32_t target_dtype, int64_t group)
{
    const int64_t groups = group ? COLS / group : 1;
    struct call c = {.a = {.target_dtype = target_dtype, .group_size = group}};

    c.a.inputs = tensor_make(dtype, 2, ROWS, COLS, 0);
    c.a.codes = tensor_make(HUM_INT32, 2, ROWS, COLS, 0);
    c.a.scale = tensor_make(HUM_F32, 2, ROWS, groups, 0);
    c.a.zero_point = tensor_make(HUM_F32, 2, ROWS, groups, 0);
    return c;
}

/* Leaves out the tensors that the options do not ask for; owners keep c. */
static struct hum_quant_weight_args call_args(const struct call *c)
{
    struct hum_quant_weight_args a = c->a;

    if (a.use_e8m0_scale) {
        a.scale.dtype = HUM_E8M0;
        a.scale.bytes /= 4;
    }
    if (!a.has_scale)
        a.scale = (struct hum_tensor){0};
    if (!a.has_zero_point)
        a.zero_point = (struct hum_tensor){0};
    return a;
}

static void call_free(struct call *c)
{
    free(c->a.inputs.data);
    free(c->a.codes.data);
    free(c->a.scale.data);
    free(c->a.zero_point.data);
}

static float input_at(const struct hum_tensor *t, int64_t i)
{
    if (t->dtype == HUM_F32)
        return ((const float *)t->data)[i];
    return (float)oracle_decode(t->dtype, ((const uint16_t *)t->data)[i], false);
}

static float power_of_two_up(float x)
{
    int e;

    return frexpf(x, &e) > 0.5f ? ldexpf(1.0f, e) : ldexpf(1.0f, e - 1);
}

/* Section 3: the scale of a group from its extremes. */
static float oracle_scale(const struct hum_quant_weight_args *a, float hi, float lo, double top)
{
    const int b = hum_dtype_bits(a->target_dtype);
    const float m = (float)((1 << (b - 1)) - 1);
    const bool old = a->rule == HUM_QUANT_RULE_2026_05 || b == 1;
    const float d1 = old ? m + 1.499f : m + 1.0f, d0 = old ? m + 0.499f : m;

    if (hum_dtype_is_float(a->target_dtype))
        return fmaxf(hi, -lo) / (float)top;
    if (a->has_zero_point)
        return (hi - lo) / (float)((1 << b) - 1);
    if (a->allow_negative_scale && !a->use_e8m0_scale)
        return hi > -lo ? -fmaxf(hi / d1, -lo / d0) : fmaxf(-lo / d1, hi / d0);
    return fmaxf(hi / d0, -lo / d1);
}

/* Nearest of codes 0 to `top`, a tie to the smaller one. */
static uint32_t oracle_float_code(int32_t dtype, uint32_t top, float y)
{
    const double x = fabs((double)y);
    uint32_t best = 0;

    for (uint32_t c = 1; c <= top; c++)
        if (fabs(oracle_decode(dtype, c, true) - x) < fabs(oracle_decode(dtype, best, true) - x))
            best = c;
    return best | (signbit(y) ? 1u << (hum_dtype_bits(dtype) - 1) : 0);
}

static float clamp(float x, float low, float high)
{
    return fminf(fmaxf(x, low), high);
}

static uint32_t oracle_code(const struct hum_quant_weight_args *a, uint32_t top, float v,
                            float scale, float zp)
{
    const int b = hum_dtype_bits(a->target_dtype);
    const float y = v * (1.0f / scale), half = (float)(1 << (b - 1));

    if (hum_dtype_is_float(a->target_dtype))
        return oracle_float_code(a->target_dtype, top, y);
    if (a->has_zero_point)
        return (uint32_t)clamp(rintf(y + zp), 0, 2 * half - 1);
    if (a->rule == HUM_QUANT_RULE_2026_08)
        return (uint32_t)clamp(rintf(y) + half, 0, 2 * half - 1);
    return (uint32_t)(int32_t)(rintf(y) + half) & ((1u << b) - 1u);
}

static void check_group(const struct hum_quant_weight_args *a, int64_t group, int64_t size)
{
    const int32_t t = a->target_dtype;
    const uint32_t ones = (1u << (hum_dtype_bits(t) - 1)) - 1u;
    const uint32_t top = t == HUM_E4M3 ? 0x7e : t == HUM_E5M2 ? 0x7b : ones;
    float hi = 1e-30f, lo = -1e-30f, scale = 1, zp = 0;

    for (int64_t i = group * size; i < (group + 1) * size; i++) {
        hi = fmaxf(hi, input_at(&a->inputs, i));
        lo = fminf(lo, input_at(&a->inputs, i));
    }
    if (a->has_scale)
        scale = oracle_scale(a, hi, lo, oracle_decode(t, top, true));
    if (a->use_e8m0_scale && a->rule == HUM_QUANT_RULE_2026_08)
        scale = power_of_two_up(scale);
    if (a->use_e8m0_scale)
        ck_assert_int_eq(((uint8_t *)a->scale.data)[group], ilogbf(scale) + 127);
    else if (a->has_scale)
        ck_assert(((float *)a->scale.data)[group] == scale);
    if (a->has_zero_point) {
        zp = -lo / scale;
        if (!a->is_fp_zero_point)
            zp = clamp(rintf(zp), 0, (float)((1 << hum_dtype_bits(t)) - 1));
        ck_assert(((float *)a->zero_point.data)[group] == zp);
    }
    for (int64_t i = group * size; i < (group + 1) * size; i++) {
        const uint32_t want = oracle_code(a, top, input_at(&a->inputs, i), scale, zp);
        const uint32_t got = ((uint32_t *)a->codes.data)[i];

        REQUIRE(got == want, "target %d, element %d: code %x, not %x", (int)t, (int)i, got, want);
    }
}

/* Row 2 of f32 holds halves of an 8-bit step, where every rounding of the quotient counts. */
static void fill(const struct hum_tensor *t, uint64_t seed)
{
    const float step = 1.0f + random_unit(&seed) / 4;

    for (int64_t i = 0; i < ROWS * COLS; i++) {
        const int exponent = (int)(next_random(&seed) % 12) - (i < COLS ? 8 : 4);
        const int halves = i % 8 ? (int)(next_random(&seed) % 511) : 510;
        const float plain = ldexpf(random_unit(&seed), exponent) * (float)(i % 7 != 0);
        const float x = i / COLS == 2 ? (float)halves / 2 * step : plain;
        uint32_t u;

        memcpy(&u, &x, sizeof u);
        if (t->dtype == HUM_F32)
            ((float *)t->data)[i] = x;
        else /* any number of the 16-bit format that is not too large */
            ((uint16_t *)t->data)[i] = t->dtype == HUM_BF16
                                           ? (uint16_t)(u >> 16)
                                           : (uint16_t)(next_random(&seed) & 0xdfffu);
    }
}

/* Are the options a combination that the contract allows? */
static bool set_options(struct hum_quant_weight_args *a, int options)
{
    a->has_scale = options & 1;
    a->use_e8m0_scale = options & 2;
    a->has_zero_point = options & 4;
    a->is_fp_zero_point = options & 8;
    a->allow_negative_scale = options & 16;
    a->rule = options & 32 ? HUM_QUANT_RULE_2026_08 : HUM_QUANT_RULE_2026_05;
    if ((a->use_e8m0_scale || a->has_zero_point) && !a->has_scale)
        return false;
    if (a->is_fp_zero_point && !a->has_zero_point)
        return false;
    return !(a->has_zero_point && hum_dtype_is_float(a->target_dtype));
}

/* Without scale numbers must lie inside the format: what wraps is tested on its own. */
static void run_options(struct call *c, int options)
{
    const int64_t size = c->a.group_size ? c->a.group_size : COLS;
    const bool legal = set_options(&c->a, options);
    const struct hum_quant_weight_args a = call_args(c);
    const enum hum_code rc = hum_cpu_ops.quant_weight(NULL, &a, reason);

    ck_assert_msg(rc == (legal ? HUM_OK : HUM_INVALID), "options %d: %s", options, reason);
    if (legal && (a.has_scale || a.rule == HUM_QUANT_RULE_2026_08))
        for (int64_t g = 0; g < ROWS * COLS / size; g++)
            check_group(&a, g, size);
    ck_assert(tensor_guard_intact(&c->a.codes) && tensor_guard_intact(&c->a.scale) &&
              tensor_guard_intact(&c->a.zero_point));
}

START_TEST(quantizes_by_the_page)
{
    static const int32_t formats[] = {HUM_F32, HUM_BF16, HUM_F16};
    static const int64_t sizes[] = {0, 8, 32};

    for (int f = 0; f < 3; f++) {
        struct call c = call_make(formats[f], target(_i), sizes[f]);

        fill(&c.a.inputs, (uint64_t)_i * 3 + (uint64_t)f);
        c.before = tensor_copy(&c.a.inputs);
        for (int options = 0; options < 64; options++)
            run_options(&c, options);
        ck_assert(tensor_equal(&c.a.inputs, &c.before));
        free(c.before.data);
        call_free(&c);
    }
}
END_TEST

/* A group made of all codes times 2^-3 comes back as it was: the largest number is there, so that
 * the scale is exact. */
START_TEST(exact_groups_are_lossless)
{
    const int32_t t = target(16 + _i);
    const int count = 1 << hum_dtype_bits(t);
    const int last = t == HUM_E4M3 ? 0x7e : t == HUM_E5M2 ? 0x7b : count / 2 - 1;
    struct hum_quant_weight_args a = {.target_dtype = t, .has_scale = true};
    float *in;

    a.rule = HUM_QUANT_RULE_2026_08;
    a.inputs = tensor_make(HUM_F32, 2, 1, count, 0);
    a.codes = tensor_make(HUM_INT32, 2, 1, count, 0);
    a.scale = tensor_make(HUM_F32, 2, 1, 1, 0);
    in = a.inputs.data;
    for (int c = 0; c < count; c++) {
        const int magnitude = c % (count / 2) <= last ? c % (count / 2) : last;

        in[c] = ldexpf((float)oracle_decode(t, (uint32_t)magnitude, true), -3);
        in[c] = c < count / 2 ? in[c] : -in[c];
    }
    ck_assert_int_eq(hum_cpu_ops.quant_weight(NULL, &a, reason), HUM_OK);
    ck_assert(*(float *)a.scale.data == 0.125f);
    for (int c = 0; c < count; c++)
        ck_assert_int_eq(((int32_t *)a.codes.data)[c],
                         (c & count / 2) | (c % (count / 2) <= last ? c % (count / 2) : last));
    free(a.inputs.data);
    free(a.codes.data);
    free(a.scale.data);
}
END_TEST

/* What the page says of single values, without scale. */
static const struct {
    int32_t target;
    enum hum_quant_rule rule;
    float v;
    int code;
} single[] = {
    {HUM_E2M1, HUM_QUANT_RULE_2026_08, 2.5f, 4}, /* ties go to zero */
    {HUM_E2M1, HUM_QUANT_RULE_2026_08, 0.25f, 0},
    {HUM_E2M1, HUM_QUANT_RULE_2026_08, 0.75f, 1},
    {HUM_E2M1, HUM_QUANT_RULE_2026_08, 5.0f, 6},
    {HUM_E2M1, HUM_QUANT_RULE_2026_08, -5.0f, 14},
    {HUM_E2M1, HUM_QUANT_RULE_2026_08, -0.0f, 8},
    {HUM_E2M1, HUM_QUANT_RULE_2026_08, 1e9f, 7},
    {HUM_E2M1, HUM_QUANT_RULE_2026_08, -1e9f, 15},
    {HUM_E2M1, HUM_QUANT_RULE_2026_05, 8.0f, 8},
    {HUM_E2M1, HUM_QUANT_RULE_2026_05, 6.5f, 7},
    {HUM_E2M1, HUM_QUANT_RULE_2026_05, 12.0f, 9},
    {HUM_E2M1, HUM_QUANT_RULE_2026_05, -64.0f, 6},
    {HUM_E4M3, HUM_QUANT_RULE_2026_08, 500.0f, 0x7e},
    {HUM_E4M3, HUM_QUANT_RULE_2026_05, 480.0f, 0x7f},
    {HUM_E4M3, HUM_QUANT_RULE_2026_05, 512.0f, 0x80},
    {HUM_E4M3, HUM_QUANT_RULE_2026_08, 0x1.8p-10f, 1}, /* 0.75 of the smallest */
    {HUM_E4M3, HUM_QUANT_RULE_2026_08, 0x1.000002p-10f, 1},
    {HUM_E4M3, HUM_QUANT_RULE_2026_08, 0x1p-10f, 0},
    {HUM_E4M3, HUM_QUANT_RULE_2026_08, 1e-40f, 0},
    {HUM_UINT(4), HUM_QUANT_RULE_2026_08, 2.5f, 10},
    {HUM_UINT(4), HUM_QUANT_RULE_2026_08, 3.5f, 12},
    {HUM_INT4, HUM_QUANT_RULE_2026_08, 100.0f, 15},
    {HUM_INT4, HUM_QUANT_RULE_2026_08, -1e30f, 0},
    {HUM_INT4, HUM_QUANT_RULE_2026_05, 9.0f, 1},
    {HUM_INT4, HUM_QUANT_RULE_2026_05, -9.0f, 15},
    {HUM_INT8, HUM_QUANT_RULE_2026_05, 1e30f, 128},
    {HUM_INT8, HUM_QUANT_RULE_2026_05, 129.0f, 1},
};

START_TEST(rounds_single_values)
{
    struct hum_quant_weight_args a = {.target_dtype = single[_i].target, .rule = single[_i].rule};

    a.inputs = tensor_make(HUM_F32, 2, 1, 1, 0);
    a.codes = tensor_make(HUM_INT32, 2, 1, 1, 0);
    *(float *)a.inputs.data = single[_i].v;
    ck_assert_int_eq(hum_cpu_ops.quant_weight(NULL, &a, reason), HUM_OK);
    ck_assert_int_eq(*(int32_t *)a.codes.data, single[_i].code);
    free(a.inputs.data);
    free(a.codes.data);
}
END_TEST

/* NaN takes no part in the scale; whatever comes in, codes have no more bits than their format. */
START_TEST(survives_what_is_not_a_number)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY, 3.4e38f, -3.4e38f, 1e-45f, 0.0f, -0.0f};
    struct call c = call_make(HUM_F32, target(_i), 8);
    const uint32_t most = (1u << hum_dtype_bits(target(_i))) - 1u;
    uint64_t state = 1;

    for (int options = 0; options < 64; options++) {
        if (!set_options(&c.a, options))
            continue;
        for (int i = 0; i < ROWS * COLS; i++)
            ((float *)c.a.inputs.data)[i] = i < 8 ? (i ? 1.0f : NAN) : odd[next_random(&state) % 8];
        {
            const struct hum_quant_weight_args a = call_args(&c);

            ck_assert_int_eq(hum_cpu_ops.quant_weight(NULL, &a, reason), HUM_OK);
            for (int i = 0; i < ROWS * COLS; i++)
                REQUIRE(((uint32_t *)a.codes.data)[i] <= most, "code of element %d", i);
            if (a.has_scale && !a.use_e8m0_scale)
                ck_assert(isfinite(*(float *)a.scale.data));
        }
    }
    call_free(&c);
}
END_TEST

START_TEST(refuses)
{
    static const int32_t formats[] = {HUM_NONE, HUM_F16, HUM_E8M0, HUM_E0M3, HUM_INT(9), 77};
    struct call c = call_make(HUM_F32, HUM_E4M3, 32);
    struct hum_quant_weight_args good, bad[10];

    c.a.has_scale = true;
    good = call_args(&c);
    for (int i = 0; i < COUNT(bad); i++)
        bad[i] = good;
    bad[0].group_size = 12;
    bad[1].group_size = 24;
    bad[2].inputs.dtype = HUM_INT32;
    bad[3].scale.dtype = HUM_E8M0;
    bad[4].zero_point = c.a.zero_point;
    bad[5].rule = (enum hum_quant_rule)9;
    bad[6].codes.data = c.a.inputs.data;
    bad[7].inputs.shape[1] = 0;
    bad[8].scale = (struct hum_tensor){0};
    bad[9].group_size = -8;
    for (int i = 0; i < COUNT(bad); i++)
        ck_assert_int_eq(hum_cpu_ops.quant_weight(NULL, &bad[i], reason), HUM_INVALID);
    for (int i = 0; i < COUNT(formats); i++) {
        bad[0] = good;
        bad[0].target_dtype = formats[i];
        ck_assert_int_eq(hum_cpu_ops.quant_weight(NULL, &bad[0], reason), HUM_INVALID);
    }
    ck_assert_int_eq(hum_cpu_ops.quant_weight(NULL, NULL, reason), HUM_INVALID);
    ck_assert(tensor_untouched(&c.a.codes) && tensor_untouched(&c.a.scale));
    ck_assert_int_eq(hum_cpu_ops.quant_weight(NULL, &good, reason), HUM_OK);
    call_free(&c);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cpu_ops_quant");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, quantizes_by_the_page, 0, TARGETS);
    tcase_add_loop_test(tc, exact_groups_are_lossless, 0, 28);
    tcase_add_loop_test(tc, rounds_single_values, 0, COUNT(single));
    tcase_add_loop_test(tc, survives_what_is_not_a_number, 0, TARGETS);
    tcase_add_test(tc, refuses);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
