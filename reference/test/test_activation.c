#include "reference/activation.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(table) ((int)(sizeof(table) / sizeof(table)[0]))

static struct ref_activation make(enum ref_activation_kind kind, enum ref_activation_form form)
{
    return (struct ref_activation){
        .kind = kind, .form = form, .alpha = 1.702f, .beta = 1, .limit = 7};
}

/* ---- an independent evaluation in binary128 (113 bits), from series -------------------------- */

__extension__ typedef __float128 quad;

/* Taylor after halving the argument until it is small, then squaring as often. */
static quad exp_quad(quad x)
{
    quad term = 1, sum = 1;
    int halved = 0;

    while (x * 1024 > 1 || x * 1024 < -1) {
        x /= 2;
        halved++;
    }
    for (int i = 1; i < 20; i++) {
        term *= x / i;
        sum += term;
    }
    while (halved-- > 0)
        sum *= sum;
    return sum;
}

/* Abramowitz and Stegun 7.1.6: erf x = 2/sqrt(pi) e^(-x^2) sum 2^n x^(2n+1) / (1 3 ... (2n+1)),
 * all terms positive. */
static quad erf_quad(quad x, quad two_by_root_pi)
{
    quad term = x, sum = x;

    for (int n = 1; n < 400; n++) {
        term *= 2 * x * x / (2 * n + 1);
        sum += term;
    }
    return two_by_root_pi * exp_quad(-x * x) * sum;
}

/* The same, 7.1.14: erfc x = e^(-x^2)/sqrt(pi) / (x + (1/2)/(x + 1/(x + (3/2)/(x + ...)))), x >
 * 0. */
static quad erfc_quad(quad x, quad two_by_root_pi)
{
    quad f = x;

    for (int n = 4000; n > 0; n--)
        f = x + (quad)n / 2 / f;
    return two_by_root_pi / 2 * exp_quad(-x * x) / f;
}

static quad root_quad(quad x)
{
    quad r = (quad)sqrtl((long double)x);

    return (r + x / r) / 2;
}

static quad true_value(enum ref_activation_kind kind, quad a)
{
    const quad pi = (quad)3.14159265358979323846L - (quad)5.0165576126683320e-20L;
    quad x = -a / root_quad(2), scale = 2 / root_quad(pi);

    if (kind == REF_ACTIVATION_SILU)
        return a / (1 + exp_quad(-a));
    if (kind == REF_ACTIVATION_GELU)
        return a / 2 *
               (x > 1 ? erfc_quad(x, scale)
                      : 1 - (x < 0 ? -erf_quad(-x, scale) : erf_quad(x, scale)));
    x = root_quad(2 / pi) * (a + (quad)44715 / 1000000 * a * a * a);
    return a / (1 + exp_quad(-2 * x));
}

static const enum ref_activation_kind smooth[] = {REF_ACTIVATION_SILU, REF_ACTIVATION_GELU,
                                                  REF_ACTIVATION_GELU_TANH};

/* Within the stated error, which is far below half an ulp of f32. */
START_TEST(series)
{
    struct ref_activation f = make(smooth[_i], REF_ACTIVATION_UNARY);

    for (int i = -640; i <= 640; i++) {
        float a = (float)i * (smooth[_i] == REF_ACTIVATION_SILU ? 0x1.234p-3f : 0x1.234p-6f);
        struct ref_near r = ref_activation_at(&f, a, 0.0f);
        quad want = true_value(smooth[_i], (quad)a), off = (quad)r.value - want;

        if (!(off <= (quad)r.error && -off <= (quad)r.error))
            ck_abort_msg("kind %d at %a: %a, off by %g", (int)f.kind, (double)a, r.value,
                         (double)off);
        if (!(r.error <= fabs(r.value) * 0x1p-49 + 0x1p-1073))
            ck_abort_msg("kind %d at %a: error %g", (int)f.kind, (double)a, r.error);
    }
}
END_TEST

/* ---- constants ------------------------------------------------------------------------------- */

/* From 40-digit arithmetic; Phi(1) = 0.84134474606854294859 also in Abramowitz and Stegun, table
 * 26.1. */
static const struct {
    enum ref_activation_kind kind;
    float a, b; /* b: swiglu with alpha 1.702f, beta 1, limit 7 */
    long double value;
} constants[] = {
    {REF_ACTIVATION_SILU, -80, 0, -1.443881110276332137849703e-33L},
    {REF_ACTIVATION_SILU, -1, 0, -0.2689414213699951207488408L},
    {REF_ACTIVATION_SILU, 0x1p-20f, 0, 4.768373855768004432148265e-7L},
    {REF_ACTIVATION_SILU, 1, 0, 0.7310585786300048792511592L},
    {REF_ACTIVATION_SILU, 20, 0, 19.99999995877692763619593L},
    {REF_ACTIVATION_GELU, -10, 0, -7.619853024160526065973343e-23L},
    {REF_ACTIVATION_GELU, -3, 0, -0.004049694094890283579955444L},
    {REF_ACTIVATION_GELU, -0.125f, 0, -0.05628272189623588837758805L},
    {REF_ACTIVATION_GELU, 1, 0, 0.8413447460685429485852325L},
    {REF_ACTIVATION_GELU, 5, 0, 4.999998566742140604030442L},
    {REF_ACTIVATION_GELU_TANH, -10, 0, -1.20409234820980599365925e-37L},
    {REF_ACTIVATION_GELU_TANH, -3, 0, -0.003637392081773018837816466L},
    {REF_ACTIVATION_GELU_TANH, 1, 0, 0.8411919906082767047819958L},
    {REF_ACTIVATION_GELU_TANH, 5, 0, 4.999999770820380337049395L},
    {REF_ACTIVATION_SWIGLU, 1, 2, 2.537387306380907908235321L},
    {REF_ACTIVATION_SWIGLU, -3, 0.5f, -0.02710696278868991298716195L},
    {REF_ACTIVATION_SWIGLU, 9, -9, -41.99971876986308341825506L},
    {REF_ACTIVATION_SWIGLU, -20, 7, -2.634727037290351002959753e-13L},
};

START_TEST(published)
{
    enum ref_activation_kind kind = constants[_i].kind;
    bool swiglu = kind == REF_ACTIVATION_SWIGLU;
    struct ref_activation f = make(kind, swiglu ? REF_ACTIVATION_SPLIT : REF_ACTIVATION_UNARY);
    struct ref_near r = ref_activation_at(&f, constants[_i].a, constants[_i].b);

    ck_assert(!isnan(r.value) && r.error > 0.0);
    ck_assert_msg(fabsl((long double)r.value - constants[_i].value) <= (long double)r.error,
                  "row %d: %a", _i, r.value);
    if (swiglu)
        return;
    f.form = REF_ACTIVATION_SPLIT; /* times a power of two: exactly as far */
    r = ref_activation_at(&f, constants[_i].a, -4.0f);
    ck_assert(fabsl((long double)r.value + 4.0L * constants[_i].value) <= (long double)r.error);
}
END_TEST

/* f(a) - f(-a) = a for all three. */
START_TEST(symmetry)
{
    struct ref_activation f = make(smooth[_i], REF_ACTIVATION_UNARY);

    for (int i = 0; i < 2000; i++) {
        float a = ldexpf(1.0f + (float)(i % 16) / 16.0f, i / 16 - 100);
        struct ref_near up = ref_activation_at(&f, a, 0), down = ref_activation_at(&f, -a, 0);

        if (!(fabs(up.value - down.value - (double)a) <=
              up.error + down.error + (double)a * 0x1p-52))
            ck_abort_msg("kind %d at %a", (int)f.kind, (double)a);
    }
}
END_TEST

START_TEST(clamps)
{
    struct ref_activation f = make(REF_ACTIVATION_SWIGLU, REF_ACTIVATION_SPLIT);
    struct ref_activation silu = make(REF_ACTIVATION_SILU, REF_ACTIVATION_SPLIT);
    struct ref_near r, s;

    r = ref_activation_at(&f, 100, 1), s = ref_activation_at(&f, 7, 1);
    ck_assert_mem_eq(&r, &s, sizeof r);
    r = ref_activation_at(&f, 1, 100), s = ref_activation_at(&f, 1, 7);
    ck_assert_mem_eq(&r, &s, sizeof r);
    r = ref_activation_at(&f, 1, -100), s = ref_activation_at(&f, 1, -7);
    ck_assert_mem_eq(&r, &s, sizeof r);
    f.alpha = 1, f.beta = 0, f.limit = 0;
    r = ref_activation_at(&f, 100, -300), s = ref_activation_at(&silu, 100, -300);
    ck_assert_mem_eq(&r, &s, sizeof r);
}
END_TEST

/* ---- exact operations, forms, special values ------------------------------------------------- */

START_TEST(exact)
{
    static const float in[6] = {1.5f, -2, 0x1.000002p0f, 3, -0.0f, 0x1p100f};
    static const float square[6] = {2.25f, 0, 0x1.000004p0f, 9, 0, HUGE_VALF};
    struct ref_activation f = make(REF_ACTIVATION_RELU2, REF_ACTIVATION_UNARY);
    struct ref_near r[6];

    ck_assert(ref_activation_exact(&f));
    ref_activation_row(&f, in, 6, r);
    for (int i = 0; i < 6; i++)
        ck_assert_msg((float)r[i].value <= square[i] && (float)r[i].value >= square[i] &&
                          r[i].error <= 0.0,
                      "%d", i);
    f.form = REF_ACTIVATION_SPLIT; /* 2.25 * 3, 0 * -0, RN(RN((1 + 2^-23)^2) 2^100) */
    ref_activation_row(&f, in, 6, r);
    ck_assert(r[0].value <= 6.75 && r[0].value >= 6.75);
    ck_assert(!(r[1].value < 0.0) && signbit(r[1].value));
    ck_assert(r[2].value <= 0x1.000004p100 && r[2].value >= 0x1.000004p100);
    f = make(REF_ACTIVATION_NONE, REF_ACTIVATION_INTERLEAVED);
    ref_activation_row(&f, in, 6, r); /* the second product is a tie: 3 + 3 2^-23 */
    ck_assert(r[0].value <= -3.0 && r[0].value >= -3.0);
    ck_assert(r[1].value <= 0x1.8p1 + 0x1p-21 && r[1].value >= 0x1.8p1 + 0x1p-21);
    ck_assert(r[2].value >= 0.0 && signbit(r[2].value));
    f.form = REF_ACTIVATION_UNARY;
    ref_activation_row(&f, in, 6, r);
    ck_assert(r[1].value <= -2.0 && r[1].value >= -2.0 && signbit(r[4].value));
}
END_TEST

START_TEST(forms)
{
    static const float in[4] = {1, 2, 3, 4};
    struct ref_activation f = make(REF_ACTIVATION_SILU, REF_ACTIVATION_SPLIT);
    struct ref_near r[2], want;

    ck_assert_int_eq(ref_activation_width(&f, 4), 2);
    ref_activation_row(&f, in, 4, r);
    want = ref_activation_at(&f, 2, 4);
    ck_assert_mem_eq(&r[1], &want, sizeof want);
    f.form = REF_ACTIVATION_INTERLEAVED;
    ref_activation_row(&f, in, 4, r);
    want = ref_activation_at(&f, 3, 4);
    ck_assert_mem_eq(&r[1], &want, sizeof want);
    ck_assert_ptr_nonnull(ref_activation_valid(&f, 3));
    ck_assert_ptr_null(ref_activation_valid(&f, 4));
    f = make(REF_ACTIVATION_SWIGLU, REF_ACTIVATION_UNARY);
    ck_assert_ptr_nonnull(ref_activation_valid(&f, 4));
    f.form = REF_ACTIVATION_SPLIT;
    ck_assert_ptr_null(ref_activation_valid(&f, 4));
    f.limit = NAN;
    ck_assert_ptr_nonnull(ref_activation_valid(&f, 4));
    f.limit = -1;
    ck_assert_ptr_nonnull(ref_activation_valid(&f, 4));
}
END_TEST

START_TEST(special)
{
    struct ref_activation f = make(smooth[_i], REF_ACTIVATION_SPLIT);
    struct ref_activation swiglu = make(REF_ACTIVATION_SWIGLU, REF_ACTIVATION_SPLIT);
    struct ref_activation relu2 = make(REF_ACTIVATION_RELU2, REF_ACTIVATION_SPLIT);

    ck_assert(isnan(ref_activation_at(&f, NAN, 1).value) &&
              isnan(ref_activation_at(&f, 1, NAN).value));
    ck_assert(ref_activation_at(&f, NAN, 1).error <= 0.0);
    ck_assert(isinf(ref_activation_at(&f, -HUGE_VALF, 1).error));
    ck_assert(isinf(ref_activation_at(&f, 1, HUGE_VALF).error));
    ck_assert(isinf(ref_activation_at(&swiglu, NAN, 1).error));
    ck_assert(
        !isinf(ref_activation_at(&swiglu, HUGE_VALF, -HUGE_VALF).error)); /* both are clamped */
    ck_assert(isinf(ref_activation_at(&swiglu, -HUGE_VALF, 1).error));
    ck_assert(isinf(ref_activation_at(&relu2, NAN, 1).error));
    ck_assert(isnan(ref_activation_at(&relu2, 1, NAN).value));
    for (int i = 0; i < 2; i++) { /* the ends of f32 */
        struct ref_near r = ref_activation_at(&f, i ? -0x1p127f : 0x1p127f, 0x1p127f);

        ck_assert(r.value <= (i ? 0.0 : 0x1p254) && r.value >= (i ? 0.0 : 0x1p254) * (1 - 0x1p-50));
        ck_assert(r.error <= 0x1p205);
    }
}
END_TEST

/* ---- comparison ------------------------------------------------------------------------------ */

static const struct {
    const char *t;
    double value, error;
    int64_t ulp; /* allowed */
    uint32_t got;
    bool holds;
    int64_t ulps;
} comparisons[] = {
    {"f32", 1.0, 0x1p-50, 0, 0x3F800000, true, 0},
    {"f32", 1.0, 0x1p-50, 0, 0x3F800001, false, 1},
    {"f32", 1.0, 0x1p-50, 1, 0x3F800001, true, 1},
    {"f32", 1.0, 0x1p-50, 1, 0x3F7FFFFE, false, 2},
    {"f32", 1.0, 0x1p-50, 2, 0x3F7FFFFE, true, 2},
    {"f32", 1.0 + 0x1p-24, 0x1p-50, 0, 0x3F800001, true, 0}, /* a tie that is not decided: both */
    {"f32", 1.0 + 0x1p-24, 0x1p-50, 0, 0x3F800000, true, 0},
    {"f32", 1.0 + 0x1.2p-24, 0x1p-50, 0, 0x3F800000, false, 1},
    {"f32", -0x1p-149, 0x1p-1074, 1, 0x00000000, true, 1}, /* across zero */
    {"f32", -0x1p-149, 0x1p-1074, 1, 0x00000001, false, 2},
    {"f32", 0.0, 0x1p-1074, 0, 0x80000000, true, 0},
    {"f32", 0.0, 0.0, 9, 0x80000000, false, 0}, /* exact: bit for bit */
    {"f32", 2.0, 0.0, 9, 0x40000001, false, 1},
    {"f32", (double)NAN, 0.0, 9, 0xFFC00001, true, 0},
    {"f32", (double)NAN, 0.0, 9, 0x7F800000, false, INT64_MAX},
    {"f32", 1.0, 0x1p-50, 9, 0x7FC00000, false, INT64_MAX},
    {"f32", 0.0, HUGE_VAL, 0, 0x7FC00000, true, 0},
    {"f32", 1e77, 1e60, 0, 0x7F800000, true, 0},
    {"f32", 0x1.fffffep127, 0x1p60, 1, 0x7F800000, true, 1},
    {"f32", 0x1.fffffep127, 0x1p60, 0, 0x7F800000, false, 1},
    {"f32", -1e77, 1e60, 5, 0xFF7FFFFB, true, 5},
    /* f16: one ulp of f32 beside the tie 1 + 2^-11 may fall to both sides, far from it to one. */
    {"f16", 1.0 + 0x1.001p-11, 0x1p-50, 1, 0x3C01, true, 0},
    {"f16", 1.0 + 0x1.001p-11, 0x1p-50, 1, 0x3C00, true, 1},
    {"f16", 1.0 + 0x1.001p-11, 0x1p-50, 0, 0x3C00, false, 1},
    {"f16", 1.0, 0x1p-50, 4, 0x3C01, false, 1},
    {"bf16", 1.0, 0x1p-50, 4, 0x3F80, true, 0},
    {"f16", 65520.0, 0x1p-30, 1, 0x7BFF, true, 0},
    {"f16", 65520.0, 0x1p-30, 1, 0x7C00, true, 0},
};

START_TEST(distance)
{
    const struct dtype *t = dtype_find(comparisons[_i].t);
    struct ref_near r = {comparisons[_i].value, comparisons[_i].error};

    ck_assert(ref_near_holds(&r, t, comparisons[_i].ulp, comparisons[_i].got) ==
              comparisons[_i].holds);
    ck_assert_int_eq(ref_near_ulps(&r, t, comparisons[_i].got), comparisons[_i].ulps);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("activation");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_loop_test(tc, series, 0, COUNT(smooth));
    tcase_add_loop_test(tc, published, 0, COUNT(constants));
    tcase_add_loop_test(tc, symmetry, 0, COUNT(smooth));
    tcase_add_test(tc, clamps);
    tcase_add_test(tc, exact);
    tcase_add_test(tc, forms);
    tcase_add_loop_test(tc, special, 0, COUNT(smooth));
    tcase_add_loop_test(tc, distance, 0, COUNT(comparisons));
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
