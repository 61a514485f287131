/* slow_gemm.h - an interpreter of docs/semantics.md sections 2, 3, 5, 7 and 8, one element at a
 * time, for tests.
 *
 * Formats are decoded by their fields and rounded in long double arithmetic (64 bits of
 * significand): a product of two numbers of at most 24 bits is exact there; of a sum the lost part
 * is known, and breaks ties. Nothing of round.h, codec16.h or gemm.c is used. struct ref_gemm as in
 * gemm.h.
 */
#ifndef REFERENCE_TEST_SLOW_GEMM_H
#define REFERENCE_TEST_SLOW_GEMM_H

#include "reference/gemm.h"

#include <math.h>
#include <string.h>

static inline long double power(int e)
{
    return ldexpl(1.0L, e);
}

static inline long double field_value(const struct dtype *t, uint32_t code)
{
    uint32_t man = code & ((1u << t->man_bits) - 1), top = (1u << t->exp_bits) - 1;
    uint32_t exp = (uint32_t)((uint64_t)code >> t->man_bits) & top;
    bool negative = t->is_signed && code >> (t->bits - 1) & 1;
    long double x;

    if (!t->is_float) { /* two's complement */
        int v = (int)(code & ((1u << t->bits) - 1));

        return (long double)(negative ? v - (1 << t->bits) : v);
    }
    if (t->exp_bits == 0)
        x = man;
    else if (t->top == DTYPE_TOP_INF_NAN && exp == top)
        x = man ? (long double)NAN : HUGE_VALL;
    else if (t->top == DTYPE_TOP_ONE_NAN && exp == top && man == (1u << t->man_bits) - 1)
        x = (long double)NAN;
    else if (exp == 0 && (t->is_signed || t->man_bits))
        x = man * power(1 - t->bias - t->man_bits);
    else
        x = (power(t->man_bits) + man) * power((int)exp - t->bias - t->man_bits);
    return negative ? -x : x;
}

/* x to nearest, ties to even, in a format of `bits` significant bits, smallest normal 2^low and
 * overflow beyond 2^high. `side` tells on which side of x the exact value lies (0: x is exact). */
static inline double nearest(long double x, int side, int bits, int low, int high)
{
    int e;
    long double q, whole, rest;

    if (!isfinite(x) || x == 0.0L)
        return (double)x;
    e = ilogbl(x) < low ? low : ilogbl(x);
    q = fabsl(x) * power(bits - 1 - e);
    whole = floorl(q);
    rest = q - whole;
    if (x < 0.0L)
        side = -side;
    if (rest > 0.5L || (rest == 0.5L && (side > 0 || (side == 0 && fmodl(whole, 2.0L) == 1.0L))))
        whole += 1.0L;
    q = whole * power(e + 1 - bits);
    if (q >= power(high))
        q = HUGE_VALL;
    return (double)copysignl(q, x);
}

static inline double to_f32(long double x)
{
    return nearest(x, 0, 24, -126, 128);
}

static inline double to_16(const struct dtype *t, long double x, int side)
{
    return t->exp_bits == 5 ? nearest(x, side, 11, -14, 16) : nearest(x, side, 8, -126, 128);
}

/* RN_t(x y + z), one rounding. */
static inline double fused_16(const struct dtype *t, double x, double y, double z)
{
    long double p = (long double)x * (long double)y, c = (long double)z, s = p + c, lost;

    if (!isfinite(s))
        return (double)s;
    lost = fabsl(p) > fabsl(c) ? c - (s - p) : p - (s - c); /* exact: Dekker */
    return to_16(t, s, lost > 0.0L ? 1 : lost < 0.0L ? -1 : 0);
}

static inline long double bs_value(const struct ref_gemm *p, uint32_t code)
{
    return field_value(p->bs, code);
}

static inline double row_scale(const struct ref_gemm *p, int64_t col, int64_t l)
{
    int64_t groups = p->group ? (p->k + p->group - 1) / p->group : 1;
    int64_t g = p->group ? l / p->group : 0;

    if (p->scale == REF_SCALE_TENSOR)
        return (double)bs_value(p, p->bs_codes[0]);
    if (p->scale == REF_SCALE_BLOCK)
        return (double)bs_value(p, p->bs_codes[col / p->group_n * groups + g]);
    return (double)bs_value(p, p->bs_codes[p->scale == REF_SCALE_CHANNEL ? col : col * groups + g]);
}

/* Section 8: nearest e2m1 of v 2^-delta, ties away from zero, found by comparing with midpoints. */
static inline long double requantized(long double v, int delta)
{
    static const double value[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    static const double middle[] = {0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5};
    long double m = fabsl(v) * power(-delta);
    int i = 0;

    while (i < 7 && m >= (long double)middle[i])
        i++;
    return v < 0.0L ? -(long double)value[i] : (long double)value[i];
}

static inline double fused_weight(const struct ref_gemm *p, int64_t col, int64_t l, uint32_t code)
{
    int64_t groups = p->k / p->group, first = 0, count = p->n * groups;
    int hi = 0, lo = 255, s = (int)p->bs_codes[col * groups + l / p->group], base;
    long double v = field_value(p->b, code);

    if (p->scale_2 == REF_SCALE_2_CHANNEL) {
        first = col * groups;
        count = groups;
    }
    for (int64_t i = first; i < first + count; i++) {
        hi = (int)p->bs_codes[i] > hi ? (int)p->bs_codes[i] : hi;
        lo = (int)p->bs_codes[i] < lo ? (int)p->bs_codes[i] : lo;
    }
    base = hi - lo < p->fused_range ? lo : hi - p->fused_range;
    if (s < base) {
        v = requantized(v, base - s);
        s = base;
    }
    if (s == 255)
        return (double)NAN;
    return v == 0.0L ? 0.0 : (double)(v * power(s - 127));
}

static inline double slow_weight(const struct ref_gemm *p, int64_t col, int64_t l, uint32_t code)
{
    int64_t groups = p->group ? (p->k + p->group - 1) / p->group : 1;
    int64_t at = col * groups + (p->group ? l / p->group : 0);
    double v, s;

    if (p->fused_e8m0)
        return fused_weight(p, col, l, code);
    if (p->b->is_float)
        v = (double)field_value(p->b, code);
    else if (p->zero == REF_ZERO_NONE)
        v = (double)code - (double)(1 << (p->b->bits - 1));
    else if (p->zero == REF_ZERO_INT)
        v = (double)code - (double)p->zero_codes[at];
    else /* fused_16 breaks the ties of far apart numbers */
        v = fused_16(p->a, (double)code, 1.0, -(double)field_value(p->a, p->zero_codes[at]));
    if (p->a->bits != 16 || p->scale != REF_SCALE_GROUP)
        return v;
    s = to_16(p->a, (long double)row_scale(p, col, l), 0);
    return to_16(p->a, (long double)v * (long double)s, 0);
}

static inline double slow_flush(const struct ref_gemm *p, int64_t row, int64_t col, int64_t l)
{
    int64_t inputs = p->input_group ? (p->k + p->input_group - 1) / p->input_group : 1;
    bool has_as = p->input_group > 0;
    bool has_bs = p->scale == REF_SCALE_BLOCK ||
                  (p->scale == REF_SCALE_GROUP && p->a->bits < 16 && !p->fused_e8m0);
    double as = has_as ? (double)p->input_scale[row * inputs + l / p->input_group] : 1.0;
    double bs = has_bs ? row_scale(p, col, l) : 1.0;

    if (!p->f16_accum)
        return to_f32((long double)as * (long double)bs);
    as = to_16(p->c, (long double)as, 0);
    bs = to_16(p->c, (long double)bs, 0);
    return to_16(p->c, (long double)as * (long double)bs, 0);
}

static inline double slow_epilogue(const struct ref_gemm *p, int64_t row, int64_t col, double x,
                                   double int_factor, bool with_bias)
{
    bool has_as = p->a->bits < 16 && p->input_group == 0, has_t = true, has_s = true;
    bool has_bias = p->has_bias && with_bias;
    double as = has_as ? (double)p->input_scale[row] : 1.0, t = 1.0, s = 1.0, f, h;
    double bias = has_bias ? (double)field_value(p->c, p->bias_codes[col]) : 0.0;

    if (p->scale == REF_SCALE_TENSOR)
        t = (double)bs_value(p, p->bs_codes[0]);
    else if (p->scale_2 == REF_SCALE_2_TENSOR)
        t = (double)field_value(dtype_find("f32"), p->scale_2_codes[0]);
    else
        has_t = false;
    if (p->int_scale) {
        t = has_t ? to_f32((long double)t * (long double)int_factor) : int_factor;
        has_t = true;
    }
    if (p->scale == REF_SCALE_CHANNEL)
        s = to_16(p->c, bs_value(p, p->bs_codes[col]), 0);
    else if (p->scale_2 == REF_SCALE_2_CHANNEL)
        s = (double)field_value(p->c, p->scale_2_codes[col]);
    else
        has_s = false;
    if (p->f16_accum) {
        h = to_16(p->c, (long double)x, 0);
        as = to_16(p->c, (long double)as, 0);
        t = to_16(p->c, (long double)t, 0);
        f = has_as && has_t ? to_16(p->c, (long double)as * (long double)t, 0) : has_as ? as : t;
        h = has_as || has_t ? to_16(p->c, (long double)h * (long double)f, 0) : h;
        h = has_s ? to_16(p->c, (long double)h * (long double)s, 0) : h;
        return has_bias ? fused_16(p->c, h, 1.0, bias) : h;
    }
    x = to_f32((long double)x);
    f = has_as && has_t ? to_f32((long double)as * (long double)t) : has_as ? as : t;
    if (has_as || has_t)
        x = to_f32((long double)x * (long double)f);
    h = to_16(p->c, (long double)x, 0);
    if (has_s && has_bias)
        return fused_16(p->c, h, s, bias);
    if (has_s)
        return to_16(p->c, (long double)h * (long double)s, 0);
    return has_bias ? fused_16(p->c, h, 1.0, bias) : h;
}

/* A code of t: random, or one of the extremes (zeros, smallest, largest; NaN and infinity where
 * `special`). */
static inline uint32_t any_code(const struct dtype *t, uint64_t r, bool special)
{
    uint32_t mask = t->bits == 32 ? UINT32_MAX : (1u << t->bits) - 1,
             sign = t->is_signed ? 1u << (t->bits - 1) : 0;
    const uint32_t corners[] = {
        0,        1,           sign,      sign | 1,          mask,
        mask - 1, mask - sign, mask >> 1, 1u << t->man_bits, (1u << t->man_bits) - 1};
    uint32_t code = (uint32_t)(r >> 32) & mask;

    if (t->bits == 32 && r % 8) /* f32: near 1 more often */
        code = (code & 0x83ffffffu) | 0x3c000000u;
    if (r % 4 == 0)
        code = corners[(r >> 8) % (sizeof corners / sizeof corners[0])] & mask;
    if (!special && !isfinite(field_value(t, code)))
        code = (uint32_t)t->bias << t->man_bits;
    return code;
}

static inline float any_f32(uint64_t r, bool special)
{
    uint32_t code = any_code(dtype_find("f32"), r, special);
    float x;

    memcpy(&x, &code, sizeof x);
    return x;
}

/* The same number, signs of zeros included; any two NaNs are. */
static inline bool same(double x, double y)
{
    return (isnan(x) && isnan(y)) || (x == y && signbit(x) == signbit(y));
}

#endif
