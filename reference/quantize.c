#include "reference/quantize.h"

#include "reference/fault.h"

#include <stddef.h>
#include <string.h>

static uint32_t bits_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

float ref_e8m0_round_up(float x)
{
    uint32_t bits = (bits_of(x) + 0x7FFFFFu) & 0x7F800000u;

    memcpy(&x, &bits, sizeof x);
    return x;
}

uint32_t ref_e8m0_code(float x)
{
    return bits_of(x) >> 23 & 0xFFu;
}

void ref_dequant_weight(const struct dtype *t, const uint32_t *codes, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)dtype_decode(t, codes[i]);
}

const char *ref_quant_valid(const struct ref_quant *q)
{
    const struct dtype *t = q->target;

    if (t->bits > 8 || t->top != DTYPE_TOP_FINITE || (t->is_float && !t->is_signed))
        return "the target must be an integer of 1 to 8 bits or a weight format";
    if (q->rows < 0 || q->cols < 1)
        return "rows must be at least 0 and cols at least 1";
    if (q->group < 0 || q->group % 8 || (q->group && q->cols % q->group))
        return "the group must be a multiple of 8 that divides cols";
    if (!q->has_scale && (q->has_zero_point || q->use_e8m0_scale))
        return "zero points and e8m0 scales need a scale";
    if (q->has_zero_point && t->is_float)
        return "zero points need an integer target";
    return NULL;
}

/* ---- scale and zero point of a group --------------------------------------------------------- */

struct group {
    float scale, inverse; /* what the data use */
    float zero;           /* NaN: open */
    float least;          /* what code 0 stands for; of zero_on_minimum */
};

/* A NaN is neither above nor below anything. */
static void extremes(const float *v, int64_t n, float *hi, float *lo)
{
    *hi = 1e-30f;
    *lo = -1e-30f;
    for (int64_t i = 0; i < n; i++) {
        if (v[i] > *hi)
            *hi = v[i];
        if (v[i] < *lo)
            *lo = v[i];
    }
}

/* The largest value that a scale aims at: OFP8's where the format is one of its two, else the
 * weight format's own. */
static float top_of(const struct dtype *t)
{
    if (t->bits == 8 && t->exp_bits == 4)
        return 448.0f;
    if (t->bits == 8 && t->exp_bits == 5)
        return 57344.0f;
    return (float)dtype_max(t);
}

/* Rule sides_by_size. Divisors are binary64, which shows with 1.499 alone: quotients by whole
 * numbers round to the same f32. */
static float scale_by_size(const struct ref_quant *q, float hi, float lo)
{
    double m = ldexp(1.0, q->target->bits - 1) - 1.0;
    bool widened = q->rule == REF_QUANT_RULE_2026_05 || q->target->bits == 1;
    float larger = (float)((double)fmaxf(hi, -lo) / (m + (widened ? 1.499 : 1.0)));
    float smaller = (float)((double)fminf(hi, -lo) / (m + (widened ? 0.499 : 0.0)));
    float scale = fmaxf(larger, smaller);

    return q->allow_negative_scale && !q->use_e8m0_scale && hi > -lo ? -scale : scale;
}

/* Integers without zero point: the side below zero has one code more, so it takes the larger
 * divisor; with a negative scale the sides change places. */
static float int_scale(const struct ref_quant *q, float hi, float lo)
{
    float m = (float)((1 << (q->target->bits - 1)) - 1);
    bool widened = q->rule == REF_QUANT_RULE_2026_05 || m <= 0.0f;
    float more = m + (widened ? 1.499f : 1.0f);
    float less = m + (widened ? 0.499f : 0.0f);

    if (q->sides_by_size)
        return scale_by_size(q, hi, lo);
    if (!q->allow_negative_scale || q->use_e8m0_scale || hi <= -lo)
        return fmaxf(hi / less, -lo / more);
    return -fmaxf(hi / more, -lo / less);
}

static float unrounded_scale(const struct ref_quant *q, float hi, float lo)
{
    float all_ones = (float)((1 << q->target->bits) - 1);

    if (q->target->is_float)
        return fmaxf(hi, -lo) / top_of(q->target);
    if (q->has_zero_point)
        return (hi - lo) / all_ones;
    return int_scale(q, hi, lo);
}

static float zero_of(const struct ref_quant *q, float lo, float scale)
{
    float zero = -lo / scale;
    float all_ones = (float)((1 << q->target->bits) - 1);

    if (q->is_fp_zero_point || isnan(zero))
        return zero;
    zero = (float)rint((double)zero);
    return zero > all_ones ? all_ones : zero;
}

/* *stored: what is written as the scale. Rule 2026_05 truncates it to e8m0 for storage alone. */
static struct group group_of(const struct ref_quant *q, const float *v, int64_t n, uint32_t *stored)
{
    struct group g = {.scale = 1.0f, .inverse = 1.0f, .zero = 0.0f};
    float hi, lo;

    *stored = 0;
    if (!q->has_scale)
        return g;
    extremes(v, n, &hi, &lo);
    g.scale = unrounded_scale(q, hi, lo);
    if (q->use_e8m0_scale && q->rule == REF_QUANT_RULE_2026_08)
        g.scale = ref_e8m0_round_up(g.scale);
    g.inverse = 1.0f / g.scale;
    if (q->has_zero_point) {
        g.zero = zero_of(q, lo, g.scale);
        g.least = q->is_fp_zero_point ? lo : g.zero * -g.scale;
    }
    *stored = q->use_e8m0_scale ? ref_e8m0_code(g.scale) : bits_of(g.scale);
    return g;
}

/* ---- codes ----------------------------------------------------------------------------------- */

/* The number of the magnitude nearest to y >= 0, a tie going down, counted as if the exponent had
 * no upper end: magnitudes of a format are numbered in ascending order, (e - e_min) 2^man_bits +
 * y / quantum. Finite y only. */
static double magnitude_number(const struct dtype *t, double y)
{
    int e_min = dtype_min_exponent(t), e;
    double steps, down;

    (void)frexp(y, &e); /* y is in [2^(e-1), 2^e) */
    e = t->exp_bits && y > 0.0 && e - 1 > e_min ? e - 1 : e_min;
    steps = ldexp(y, t->man_bits - e);
    down = floor(steps);
    if (steps - down > 0.5 ||
        (REF_FAULT(REFERENCE_QUANT_TIES_TO_EVEN) && steps - down == 0.5 && fmod(down, 2.0) != 0.0))
        down += 1.0;
    return down + (double)((e - e_min) * (1 << t->man_bits));
}

static uint32_t float_code(const struct ref_quant *q, double top, float y)
{
    const struct dtype *t = q->target;
    double magnitude = fabs((double)y);
    uint32_t sign = signbit(y) ? 1u << (t->bits - 1) : 0u;
    double number;

    if (isnan(y))
        return REF_CODE_ANY;
    if (q->rule == REF_QUANT_RULE_2026_08 && magnitude > top)
        magnitude = top;
    if (isinf(magnitude))
        return REF_CODE_ANY;
    number = magnitude_number(t, magnitude);
    if (!(number < 0x1p31))
        return REF_CODE_ANY;
    return (sign + (uint32_t)number) & ((1u << t->bits) - 1u);
}

static uint32_t clamp_code(double x, double last)
{
    if (isnan(x))
        return REF_CODE_ANY;
    return (uint32_t)(x < 0.0 ? 0.0 : x > last ? last : x);
}

static uint32_t int_code(const struct ref_quant *q, float y)
{
    int bits = q->target->bits;
    double last = ldexp(1.0, bits) - 1.0, half = ldexp(1.0, bits - 1), x = rint((double)y);

    if (q->has_zero_point)
        return clamp_code(x, last);
    if (q->twos_complement && q->target->is_signed)
        return isnan(x) ? REF_CODE_ANY : clamp_code(x + half, last) - (uint32_t)half;
    if (q->rule == REF_QUANT_RULE_2026_08)
        return clamp_code(x + half, last);
    if (!(x >= -2147483648.0 && x < 2147483648.0))
        return REF_CODE_ANY;
    return (uint32_t)(int64_t)(x + half) & ((1u << bits) - 1u);
}

/* What is rounded to a code, each operation in f32. Rule scaled_quotient: as the kernel holds it,
 * divided by what separates the exponents of the target from those of f32. */
static float quotient(const struct ref_quant *q, const struct group *g, float v)
{
    float y;

    if (q->has_zero_point && q->zero_on_minimum) {
        y = v - g->least;
        return y * g->inverse;
    }
    y = v * g->inverse;
    if (q->has_zero_point)
        return y + g->zero;
    if (q->scaled_quotient && q->target->exp_bits) {
        int apart = 128 - (1 << (q->target->exp_bits - 1));

        y = (float)ldexp((double)y, -apart);
        y = (float)ldexp((double)y, apart);
    }
    return y;
}

static void encode_group(const struct ref_quant *q, const struct group *g, const float *v,
                         int64_t n, uint32_t *codes)
{
    double top = (double)top_of(q->target);

    for (int64_t i = 0; i < n; i++) {
        float y = quotient(q, g, v[i]);

        codes[i] = q->target->is_float ? float_code(q, top, y) : int_code(q, y);
    }
}

void ref_quant_weight(const struct ref_quant *q, uint32_t *codes, uint32_t *scale,
                      float *zero_point)
{
    int64_t groups = ref_quant_groups(q), n = q->cols / groups;

    for (int64_t i = 0; i < q->rows * groups; i++) {
        uint32_t stored;
        struct group g = group_of(q, q->inputs + i * n, n, &stored);

        encode_group(q, &g, q->inputs + i * n, n, codes + i * n);
        if (scale)
            scale[i] = stored;
        if (zero_point)
            zero_point[i] = g.zero;
    }
}

bool ref_quant_can_wrap(const struct ref_quant *q)
{
    if (q->rule != REF_QUANT_RULE_2026_05 || q->has_zero_point)
        return false;
    if (!q->has_scale)
        return true;
    return q->target->is_float && isinf(1.0f / (1e-30f / top_of(q->target)));
}
