/* Scales, zero points and bias of all fills. */
#include "reference/fill_plan.h"

#include "reference/fault.h"

#include <math.h>
#include <string.h>

static uint32_t encode_scale(const struct dtype *t, double x)
{
    float f = (float)x;
    uint32_t bits;

    if (t->bits < 32)
        return dtype_encode(t, x, DTYPE_SATURATE);
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/* A significand of as many bits as the format has, in [1, 2). */
static double full_significand(const struct dtype *t, uint64_t r)
{
    int bits = t->man_bits < 23 ? t->man_bits : 23;

    return 1.0 + ldexp((double)(r >> 8 & ((1u << bits) - 1)), -bits);
}

bool ref_fill_takes(const struct ref_gemm *p, uint32_t code)
{
    const bool has_zero = p->zero != REF_ZERO_NONE;
    double s = dtype_decode(p->bs, code), top = ldexp(1.0, p->b->bits - (has_zero ? 0 : 1));

    if (!isfinite(s) || p->bs->man_bits != 0 || !ref_scales_operand(p) || p->a->bits != 16)
        return isfinite(s);
    if (p->b->is_float)
        top = fmin(dtype_max(p->b), dtype_max(p->a)); /* larger codes do not occur */
    return s * top <= dtype_max(p->a);
}

/* Every code in turn, but for those left out: NaN and infinity are fill X's. */
static uint32_t code_in_turn(const struct dtype *t, uint64_t index)
{
    uint32_t code = (uint32_t)(index & ((1u << t->bits) - 1));

    return isfinite(dtype_decode(t, code)) ? code : encode_scale(t, 1.0);
}

static uint32_t scale_in_turn(const struct ref_gemm *p, uint64_t index)
{
    uint32_t code = code_in_turn(p->bs, index);

    return ref_fill_takes(p, code) ? code : encode_scale(p->bs, 1.0);
}

/* Fused scales: codes above 250 make weights that f32 cannot hold (6 2^128), which no contract
 * defines. */
static uint32_t fused_code(uint64_t index)
{
    return (index & 255) <= 250 ? (uint32_t)(index & 255) : 127;
}

enum { FRACTIONS = 8 };

/* Fill C: columns cycle through these fractions of a unit in the last place of the output: nothing,
 * exactly half, half less and more one unit of the scale's significand, and the same around a
 * whole. */
static double fraction(const struct fill_plan *s, int64_t col)
{
    double u = ldexp(1.0, -s->p->bs->man_bits - 1);
    const double fractions[FRACTIONS] = {0.0, 0.5, 0.5 - u / 2, 0.5 + u, 1.0 - u, 1.0, -0.5, 0.25};

    return fractions[col % FRACTIONS];
}

/* Scale number `index`, first output column `col` that it serves. */
/* NOLINTNEXTLINE(readability-function-cognitive-complexity): one row a kind of fill */
static uint32_t weight_scale_code(const struct fill_plan *s, uint64_t index, int64_t col)
{
    const struct dtype *t = s->p->bs;
    uint64_t r = rng_word(s->f.seed, RNG_BS, index);
    int f = fill_scale_exponent(s, col);
    double sign = t->is_signed && r & 1 ? -1.0 : 1.0, x = 1.0;

    if (s->f.all_scales && s->p->fused_e8m0 && s->groups == 2) /* all pairs within a row */
        return fused_code(index & 1 ? (uint64_t)col : (uint64_t)col >> 8);
    if (s->f.all_scales && s->p->fused_e8m0 && s->f.kind == REF_FILL_R) /* has sums of infinities */
        return fused_code(fill_turn(s, index));
    if (s->f.all_scales && t->bits <= 16)
        return scale_in_turn(s->p, fill_turn(s, index));
    switch (s->f.kind) {
    case REF_FILL_P:
    case REF_FILL_R:
    case REF_FILL_O:
        x = ldexp(full_significand(t, r), f + (int)(r >> 4 & 3));
        break;
    case REF_FILL_E2: /* one magnitude a column: signs (or one binade) tell the groups apart */
        x = t->is_signed ? ldexp(1.0, f) : ldexp(1.0, f + (int)(r & 1));
        break;
    case REF_FILL_C:
        x = index % (uint64_t)s->groups == 0 ? 1.0 : fraction(s, col);
        sign = 1.0;
        break;
    case REF_FILL_S:
        x = ldexp((double)(1 + (r >> 4) % 8), f);
        break;
    case REF_FILL_W: /* few groups may all have the largest: no further factor */
        x = ldexp(s->sigma[(r >> 4) % (uint64_t)s->sigmas], f);
        break;
    case REF_FILL_E1:
    case REF_FILL_X:
        x = ldexp(s->sigma[(r >> 4) % (uint64_t)s->sigmas],
                  f + (int)(r >> 8 & 1) * (REF_FAULT(FILL_UNIT_TOO_SMALL) ? 20 : 1));
        break;
    }
    if (REF_FAULT(FILL_SHORT_SCALES) && x != 0.0)
        x = ldexp(1.0, ilogb(x));
    if (s->f.kind == REF_FILL_X && s->p->f16_accum)
        x = ldexp(1.0, f);
    if (s->f.kind == REF_FILL_W)
        sign = 1.0;
    return encode_scale(t, sign * x);
}

/* The first column of a block; blocks are numbered through all experts and do not reach across
 * them. */
static int64_t block_begin(const struct ref_gemm *p, int64_t block)
{
    int64_t blocks = (p->n + p->group_n - 1) / p->group_n;

    return block / blocks * p->n + block % blocks * p->group_n;
}

/* X: here and there infinity, or NaN where the format has no infinity: rarer where a column has
 * many scales, which one NaN hides. On accumulators an infinity's outcome depends on where they
 * are flushed, a NaN's does not. Not where one scale changes others: integer scales have a
 * factor of all, fused ones a range. */
static uint32_t special_scale(const struct fill_plan *s, uint64_t index, uint32_t code)
{
    const struct dtype *t = s->p->bs;
    const uint64_t r = rng_word(s->f.seed, RNG_SPECIAL, index);

    if (s->p->int_scale || s->p->fused_e8m0)
        return code;
    if (t->top == DTYPE_TOP_INF_NAN && !ref_scales_on_c(s->p) && r % 61 == 0)
        return dtype_encode(t, HUGE_VAL, DTYPE_TO_TOP);
    if (t->top == DTYPE_TOP_ONE_NAN && r % (61 * (1 + (uint64_t)s->groups / 8)) == 0)
        return dtype_encode(t, (double)NAN, DTYPE_TO_TOP);
    return code;
}

static void fill_weight_scales(const struct fill_plan *s, uint32_t *out)
{
    size_t count = ref_input_sizes(s->p).bs;

    for (size_t i = 0; i < count; i++) {
        int64_t col = (int64_t)i / s->groups;

        if (s->p->scale == REF_SCALE_BLOCK)
            col = block_begin(s->p, col);
        out[i] = weight_scale_code(s, i, col);
        if (s->f.kind == REF_FILL_X)
            out[i] = special_scale(s, i, out[i]);
    }
}

/* E2's lie in the middle half of the codes (of uint1: are both), which leaves pairs about each of
 * them half of the codes or more; W's leave all weights the sign they have (codes above the middle,
 * or, of uint1, below). */
uint32_t fill_whole_zero(const struct fill_plan *s, uint64_t index)
{
    uint32_t r = (uint32_t)rng_word(s->f.seed, RNG_ZERO, index);
    uint32_t half = 1u << (s->p->b->bits - 1);

    if (fill_is_paired(s) && REF_FAULT(FILL_FACTORS_ALIKE))
        return half;
    if (fill_is_paired(s))
        return half == 1 ? r & 1 : half / 2 + r % half;
    if (s->f.kind == REF_FILL_W && half == 1)
        return half;
    return r & (s->f.kind == REF_FILL_W ? half - 1 : 2 * half - 1);
}

static void fill_zero_points(const struct fill_plan *s, uint16_t *out)
{
    size_t count = ref_input_sizes(s->p).zero;
    uint32_t top = (1u << s->p->b->bits) - 1;

    for (size_t i = 0; i < count; i++) {
        uint64_t r = rng_word(s->f.seed, RNG_ZERO, i), turn = fill_turn(s, i);
        double z = fill_whole_zero(s, i);

        if (s->p->zero == REF_ZERO_INT) {
            out[i] = (uint16_t)(s->f.all_scales ? turn & top : (uint64_t)z);
            continue;
        }
        if (s->f.kind == REF_FILL_P || s->f.kind == REF_FILL_R)
            z += ldexp((double)(r >> 40), -24);
        else if (s->f.kind != REF_FILL_W && !fill_is_paired(s))
            z += ldexp((double)(r >> 32 & 1), -1);
        out[i] = (uint16_t)(s->f.all_scales ? code_in_turn(s->p->a, turn)
                                            : dtype_encode(s->p->a, z, DTYPE_SATURATE));
    }
}

/* One a row: any f32 (the rounding it causes is defined); one a group: short, since it multiplies
 * exact accumulators. E2: one binade tells rows and groups apart. */
static void fill_input_scales(const struct fill_plan *s, float *out)
{
    size_t count = ref_input_sizes(s->p).input_scale;

    for (size_t i = 0; i < count; i++) {
        uint64_t r = rng_word(s->f.seed, RNG_INPUT_SCALE, i);
        bool exact = s->f.kind == REF_FILL_W || s->f.kind == REF_FILL_S;
        bool grouped = s->p->input_group > 0;
        double x = 1.0 + ldexp((double)(r >> 40), -24);

        if (fill_is_paired(s))
            x = r >> 16 & 1 && !REF_FAULT(FILL_FACTORS_ALIKE) ? 0.5 : 1.0;
        else if (exact)
            x = 1.0;
        else if (grouped && s->f.kind != REF_FILL_P && s->f.kind != REF_FILL_R)
            x = r >> 16 & 1 ? (s->sigmas > 1 ? 3.0 : 1.0) : 2.0;
        else if (s->p->f16_accum)
            x = 1.0 + ldexp((double)(r >> 54), -10);
        out[i] = (float)ldexp(x, s->row_exponent);
    }
}

static void fill_second_scales(const struct fill_plan *s, uint32_t *out)
{
    size_t count = ref_input_sizes(s->p).scale_2;
    bool tensor = s->p->scale_2 == REF_SCALE_2_TENSOR;
    const struct dtype *t = tensor ? dtype_find("f32") : s->p->c;

    for (size_t i = 0; i < count; i++) {
        uint64_t r = rng_word(s->f.seed, RNG_SCALE_2, i);
        double x = fill_is_paired(s) ? 1.0 : full_significand(t, r);

        if (s->f.kind == REF_FILL_C) {
            out[i] = encode_scale(t, 1.0);
            continue;
        }
        out[i] = encode_scale(t, ldexp(r & 1 && !tensor ? -x : x, (int)(r >> 1 & 1) - 1));
    }
}

/* The exponent of the scales that output column `col` really has: a block's follow its first
 * column. */
static int served_exponent(const struct fill_plan *s, int64_t col)
{
    int64_t n = s->p->n, within = col % n;

    if (s->p->scale == REF_SCALE_BLOCK)
        col += within / s->p->group_n * s->p->group_n - within;
    return fill_scale_exponent(s, col);
}

/* As large as the outputs; E2: whole units of the column, so that no sum leaves the grid. */
static void fill_bias(const struct fill_plan *s, uint16_t *out)
{
    size_t count = ref_input_sizes(s->p).bias;

    for (size_t i = 0; i < count; i++) {
        uint64_t r = rng_word(s->f.seed, RNG_BIAS, i);
        int exponent = fill_output_exponent(s, (int64_t)i);
        int size = s->f.kind == REF_FILL_C ? 1
                   : fill_is_paired(s)     ? (1 << (s->unit_bits - 3))
                                           : 128;
        double x = s->f.kind == REF_FILL_C ? 0.0 : (double)(1 + (int)(r >> 8 & 0xffff) % size);

        if (fill_is_paired(s))
            exponent =
                fill_window(s, (int64_t)i)->unit + s->row_exponent + served_exponent(s, (int64_t)i);
        else
            exponent -= 6;
        out[i] = (uint16_t)dtype_encode(s->p->c, ldexp(r & 1 ? -x : x, exponent), DTYPE_SATURATE);
    }
}

/* Tensor scales, one an expert, have no column to follow: a plain f32; of E2 a power of two that
 * tells even experts from odd ones. */
static void fill_tensor_scale(const struct fill_plan *s, uint32_t *out)
{
    for (int64_t e = 0; e < ref_experts(s->p); e++) {
        uint64_t r = rng_word(s->f.seed, RNG_BS, (uint64_t)e);
        double x = fill_is_paired(s) ? (e % 2 ? 1.0 : 0.5) : full_significand(s->p->bs, r);

        if (s->f.kind == REF_FILL_S)
            x = (double)(1 + (r >> 4) % 8);
        out[e] = encode_scale(s->p->bs, ldexp(x, fill_scale_exponent(s, 0)));
    }
}

void fill_all_scales(const struct fill_plan *s, const struct ref_inputs *out)
{
    if (out->bs && s->p->scale == REF_SCALE_TENSOR)
        fill_tensor_scale(s, out->bs);
    else if (out->bs)
        fill_weight_scales(s, out->bs);
    if (out->zero)
        fill_zero_points(s, out->zero);
    if (out->input_scale)
        fill_input_scales(s, out->input_scale);
    if (out->scale_2)
        fill_second_scales(s, out->scale_2);
    if (out->bias)
        fill_bias(s, out->bias);
}
