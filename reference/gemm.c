#include "reference/gemm.h"

#include "reference/codec16.h"
#include "reference/fault.h"
#include "reference/round.h"

#include <math.h>
#include <string.h>

static float f32_of_bits(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

static double decode_scale(const struct dtype *t, uint32_t code)
{
    return t->bits == 32 ? (double)f32_of_bits(code) : dtype_decode(t, code);
}

/* Row of block scales that serves a column: blocks do not reach across experts. */
static int64_t block_row(const struct ref_gemm *p, int64_t col)
{
    int64_t blocks = (p->n + p->group_n - 1) / p->group_n;

    return col / p->n * blocks + col % p->n / p->group_n;
}

/* The weight scale of (col, l) as stored, an exact value. */
static double weight_scale(const struct ref_gemm *p, int64_t col, int64_t l)
{
    int64_t groups = ref_groups(p);
    int64_t g = p->group ? l / p->group : 0;

    if (REF_FAULT(REFERENCE_GROUP_INDEX_MINUS_1) && g > 0)
        g--;
    switch (p->scale) {
    case REF_SCALE_CHANNEL:
        return decode_scale(p->bs, p->bs_codes[col]);
    case REF_SCALE_GROUP:
        return decode_scale(p->bs, p->bs_codes[col * groups + g]);
    case REF_SCALE_BLOCK:
        return decode_scale(p->bs, p->bs_codes[block_row(p, col) * groups + g]);
    case REF_SCALE_TENSOR:
        return decode_scale(p->bs, p->bs_codes[col / p->n]);
    }
    return (double)NAN;
}

void ref_operand_a(const struct ref_gemm *p, float *a_out)
{
    size_t n = (size_t)(p->m * p->k);
    float table[256];

    if (p->a->bits == 16) {
        codec16_decode_f32(p->a, p->a_codes, a_out, n);
        return;
    }
    for (uint32_t c = 0; c < 256; c++) /* bits above those of the format are ignored */
        table[c] = (float)dtype_decode(p->a, c);
    for (size_t i = 0; i < n; i++)
        a_out[i] = table[p->a_codes[i] & 0xff];
}

/* ---- fused e8m0 (semantics.md section 8) ----------------------------------------------------- */

/* Over n scale codes: the smallest that is kept. Groups below it are requantized. */
static int fused_base(const struct ref_gemm *p, const uint32_t *codes, size_t n)
{
    int hi = 0, lo = 255, range;

    for (size_t i = 0; i < n; i++) {
        int s = (int)codes[i];

        hi = s > hi ? s : hi;
        lo = s < lo ? s : lo;
    }
    range = hi - lo < p->fused_range ? hi - lo : p->fused_range;
    return hi - range;
}

/* The base that holds for a column: its own with channel weight_scale_2, else its expert's. */
static int fused_base_of(const struct ref_gemm *p, int64_t col)
{
    int64_t groups = ref_groups(p);

    if (p->scale_2 == REF_SCALE_2_CHANNEL)
        return fused_base(p, p->bs_codes + col * groups, (size_t)groups);
    return fused_base(p, p->bs_codes + col / p->n * p->n * groups, (size_t)(p->n * groups));
}

/* |x| 2^-delta to the nearest e2m1 magnitude, ties away from zero; the sign is kept. */
static double requantize_e2m1(double x, int delta)
{
    static const double magnitudes[] = {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0};
    double m = ldexp(fabs(x), -delta), best = 0.0;

    for (size_t i = 1; i < sizeof magnitudes / sizeof magnitudes[0]; i++)
        if (fabs(magnitudes[i] - m) <= fabs(best - m))
            best = magnitudes[i];
    return x < 0.0 ? -best : best;
}

/* The weight under scale code s; -0, given or produced, is +0. */
static double fused_value(const struct ref_gemm *p, int base, int s, uint32_t code)
{
    double v = dtype_decode(p->b, code);

    if (s < base) {
        v = requantize_e2m1(v, base - s);
        s = base;
    }
    return (v + 0.0) * dtype_decode(p->bs, (uint32_t)s);
}

static void fused_row(const struct ref_gemm *p, int base, int64_t col, float *w)
{
    int64_t groups = ref_groups(p);

    for (int64_t g = 0; g < groups; g++) {
        int s = (int)p->bs_codes[col * groups + g];
        int64_t end = (g + 1) * p->group < p->k ? (g + 1) * p->group : p->k;
        float table[16];

        for (uint32_t c = 0; c < 16; c++)
            table[c] = (float)fused_value(p, base, s, c);
        for (int64_t l = g * p->group; l < end; l++)
            w[l] = table[p->b_codes[col * p->k + l] & 15];
    }
}

/* ---- all other weights ----------------------------------------------------------------------- */

/* Offset binary: q - 2^(B-1) unless zero points say otherwise; floats by their row. */
static void value_table(const struct ref_gemm *p, float table[256])
{
    double offset = p->zero == REF_ZERO_NONE ? ldexp(1.0, p->b->bits - 1) : 0.0;

    for (uint32_t c = 0; c < 256; c++) { /* bits above those of the format are ignored */
        uint32_t code = c & ((1u << p->b->bits) - 1);

        table[c] = (float)(p->b->is_float ? dtype_decode(p->b, code) : (double)code - offset);
    }
}

/* w := RN_a(w - z), one rounding. */
static void subtract_float(const struct dtype *a, double z, float *w, int64_t n)
{
    enum { CHUNK = 256 };
    double x[CHUNK];
    uint16_t codes[CHUNK];

    for (int64_t at = 0; at < n; at += CHUNK) {
        int64_t count = n - at < CHUNK ? n - at : CHUNK;

        for (int64_t i = 0; i < count; i++)
            x[i] = round_odd_sum((double)w[at + i], -z);
        codec16_encode_f64(a, x, codes, (size_t)count);
        codec16_decode_f32(a, codes, w + at, (size_t)count);
    }
}

/* n values v of weights (before zero point and scale) of column col, all in the group of l, to
 * operands. In f32 each step is exact before its rounding: codes have at most 8 significant bits
 * (11 after a floating zero point) and scales 11, and a product that f32 cannot hold (below 2^-149)
 * has too few bits to sit beside a rounding boundary of a. */
static void to_operands(const struct ref_gemm *p, int64_t col, int64_t l, float *v, int64_t n)
{
    int64_t at = col * ref_groups(p) + (p->group ? l / p->group : 0);

    if (p->zero == REF_ZERO_INT) {
        float z = (float)p->zero_codes[at];

        for (int64_t i = 0; i < n; i++)
            v[i] -= z;
    } else if (p->zero == REF_ZERO_FLOAT) {
        subtract_float(p->a, dtype_decode(p->a, p->zero_codes[at]), v, n);
    }
    if (ref_scales_operand(p)) {
        float s = (float)round_to(p->a, weight_scale(p, col, l));

        for (int64_t i = 0; i < n; i++)
            v[i] *= s;
        codec16_round_f32(p->a, v, (size_t)n);
    }
}

/* One run of a column that shares its group. Where it is longer than the table of codes, the table
 * is converted instead. */
static void operand_run(const struct ref_gemm *p, int64_t col, int64_t begin, int64_t end,
                        const float values[256], float *w)
{
    const uint8_t *codes = p->b_codes + col * p->k;
    int64_t count = (int64_t)1 << p->b->bits;
    uint32_t mask = (uint32_t)count - 1;
    float table[256];

    if (end - begin > count) {
        memcpy(table, values, (size_t)count * sizeof *table);
        to_operands(p, col, begin, table, count);
        for (int64_t l = begin; l < end; l++)
            w[l] = table[codes[l] & mask];
        return;
    }
    for (int64_t l = begin; l < end; l++)
        w[l] = values[codes[l]];
    to_operands(p, col, begin, w + begin, end - begin);
}

void ref_operand_w(const struct ref_gemm *p, int64_t n0, int64_t n1, float *w_out)
{
    int64_t run = p->group ? p->group : p->k;
    bool by_row = p->scale_2 == REF_SCALE_2_CHANNEL;
    int64_t expert = -1; /* of which `base` is */
    int base = 0;
    float values[256];

    value_table(p, values);
    for (int64_t j = n0; j < n1; j++) {
        float *w = w_out + (j - n0) * p->k;

        if (p->fused_e8m0) {
            base = by_row || j / p->n != expert ? fused_base_of(p, j) : base;
            expert = j / p->n;
            fused_row(p, base, j, w);
        }
        for (int64_t l = 0; !p->fused_e8m0 && l < p->k; l += run)
            operand_run(p, j, l, l + run < p->k ? l + run : p->k, values, w);
    }
}

double ref_weight(const struct ref_gemm *p, int64_t col, int64_t l, uint32_t code)
{
    float values[256], w;

    if (p->fused_e8m0) {
        int64_t at = col * ref_groups(p) + l / p->group;

        return (double)(float)fused_value(p, fused_base_of(p, col), (int)p->bs_codes[at], code);
    }
    value_table(p, values);
    w = values[code & 0xff];
    to_operands(p, col, l, &w, 1);
    return (double)w;
}

/* ---- scales on accumulators ------------------------------------------------------------------ */

double ref_flush_factor(const struct ref_gemm *p, int64_t row, int64_t col, int64_t l)
{
    bool has_as = p->input_group > 0;
    bool has_bs = ref_scales_on_c(p);
    double as =
        has_as ? (double)p->input_scale[row * ref_input_groups(p) + l / p->input_group] : 1.0;
    double bs = has_bs ? weight_scale(p, col, l) : 1.0;

    if (p->f16_accum) {
        const struct dtype *f16 = dtype_find("f16");

        return round_to(f16, round_to(f16, as) * round_to(f16, bs));
    }
    return (double)(float)(as * bs);
}

void ref_int_scales(const struct ref_gemm *p, int32_t *s_int, float *factor)
{
    size_t n = (size_t)(ref_columns(p) * ref_groups(p));
    float top = 0.0f;

    for (size_t i = 0; i < n; i++) {
        float s = fabsf((float)round_to(p->c, decode_scale(p->bs, p->bs_codes[i])));

        top = s > top ? s : top;
    }
    *factor = top / 1024.0f;
    for (size_t i = 0; i < n; i++) {
        float s = (float)round_to(p->c, decode_scale(p->bs, p->bs_codes[i]));

        s = *factor > 0.0f ? rintf(s / *factor) : 0.0f;
        s_int[i] = isfinite(s) ? (int32_t)s : 0;
    }
}

/* ---- epilogue (semantics.md section 5) ------------------------------------------------------- */

void ref_epilogue_init(const struct ref_gemm *p, float int_factor, struct ref_epilogue *e)
{
    *e = (struct ref_epilogue){.p = p, .int_factor = p->int_scale ? int_factor : 1.0f};
    e->has_token = p->a->bits <= 8 && p->input_group == 0 && p->input_scale;
    e->has_tensor =
        p->scale == REF_SCALE_TENSOR || p->scale_2 == REF_SCALE_2_TENSOR || p->int_scale;
    e->has_channel = p->scale == REF_SCALE_CHANNEL || p->scale_2 == REF_SCALE_2_CHANNEL;
}

/* t of section 5: of the column's expert. */
static float tensor_factor(const struct ref_epilogue *e, int64_t col)
{
    const struct ref_gemm *p = e->p;

    if (p->scale == REF_SCALE_TENSOR)
        return f32_of_bits(p->bs_codes[col / p->n]);
    if (p->scale_2 == REF_SCALE_2_TENSOR)
        return f32_of_bits(p->scale_2_codes[col / p->n]) * e->int_factor;
    return e->int_factor;
}

/* The f32 (or f16) factor of step 1 for one row. */
static double row_factor(const struct ref_epilogue *e, int64_t row, int64_t col)
{
    const struct ref_gemm *p = e->p;
    double as = e->has_token ? (double)p->input_scale[row] : 1.0;
    double t = e->has_tensor ? (double)tensor_factor(e, col) : 1.0;

    if (p->f16_accum) {
        const struct dtype *f16 = dtype_find("f16");

        return round_to(f16, round_to(f16, as) * round_to(f16, t));
    }
    return (double)(float)(as * t);
}

static double channel_scale(const struct ref_gemm *p, int64_t col)
{
    if (p->scale_2 == REF_SCALE_2_CHANNEL)
        return dtype_decode(p->c, p->scale_2_codes[col]);
    return round_to(p->c, decode_scale(p->bs, p->bs_codes[col]));
}

double ref_epilogue_one(const struct ref_epilogue *e, int64_t row, int64_t col, double x,
                        bool with_bias)
{
    const struct ref_gemm *p = e->p;
    bool has_factor = e->has_token || e->has_tensor;
    bool has_bias = with_bias && p->has_bias;
    double s = e->has_channel ? channel_scale(p, col) : 1.0;
    double bias = has_bias ? dtype_decode(p->c, p->bias_codes[col]) : 0.0;
    double factor = has_factor ? row_factor(e, row, col) : 1.0;
    double up = ldexp(1.0, e->output_shift), h;

    x *= ldexp(1.0, -e->output_shift);
    if (e->has_tensor) {
        factor *= up;
        up = 1.0;
    }
    if (p->f16_accum) {
        h = round_to(p->c, x);
        h = has_factor ? round_to(p->c, h * factor) : h;
        h = e->has_channel ? round_to(p->c, h * s) : h;
        h = round_to(p->c, h * up);
        return has_bias ? round_fma(p->c, h, 1.0, bias) : h;
    }
    x = (double)(float)x;
    h = round_to(p->c, round_to(p->c, has_factor ? (double)(float)(x * factor) : x) * up);
    if (e->has_channel && has_bias)
        return round_fma(p->c, h, s, bias);
    if (e->has_channel)
        return round_to(p->c, h * s);
    return has_bias ? round_fma(p->c, h, 1.0, bias) : h;
}

/* The channel step of one row, every column at once; h comes in and goes out as codes. */
static void channel_row(const struct ref_epilogue *e, int64_t n, const double *scale,
                        const double *bias, double *work, uint16_t *codes)
{
    const struct ref_gemm *p = e->p;

    codec16_decode_f64(p->c, codes, work, (size_t)n);
    for (int64_t j = 0; j < n; j++)
        work[j] = round_odd_sum(work[j] * scale[j], bias[j]);
    codec16_encode_f64(p->c, work, codes, (size_t)n);
}

static int64_t block_col(const struct ref_block *block, int64_t j)
{
    return block->cols ? block->cols[j] : j;
}

void ref_epilogue_rows(const struct ref_epilogue *e, const struct ref_block *block, const double *x,
                       double *work, uint16_t *codes)
{
    const struct ref_gemm *p = e->p;
    const int64_t n = block->n;
    double *scale = work, *bias = work + n, *row_work = work + 2 * n;

    for (int64_t j = 0; j < n; j++) {
        int64_t col = block_col(block, j);

        scale[j] = e->has_channel ? channel_scale(p, col) : 1.0;
        bias[j] = p->has_bias ? dtype_decode(p->c, p->bias_codes[col]) : -0.0;
    }
    for (int64_t i = block->row0; i < block->row1; i++, x += n, codes += n) {
        double f = row_factor(e, i, block_col(block, 0));

        for (int64_t j = 0; p->f16_accum && j < n; j++)
            codes[j] = (uint16_t)dtype_encode(
                p->c, ref_epilogue_one(e, i, block_col(block, j), x[j], true), DTYPE_TO_TOP);
        if (p->f16_accum)
            continue;
        for (int64_t j = 0; j < n; j++)
            row_work[j] = (double)(float)((double)(float)x[j] * f);
        codec16_encode_f64(p->c, row_work, codes, (size_t)n);
        if (e->has_channel || p->has_bias)
            channel_row(e, n, scale, bias, row_work, codes);
    }
}

double ref_epilogue(const struct ref_gemm *p, int64_t row, int64_t col, double x, bool with_bias)
{
    struct ref_epilogue e;

    ref_epilogue_init(p, 1.0f, &e);
    return ref_epilogue_one(&e, row, col, x, with_bias);
}
