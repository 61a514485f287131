/* Operands, scales and the epilogue of the twin. */
#include "harness/explain/gemm_twin.h"

#include "reference/round.h"

#include <math.h>
#include <string.h>

static double pattern(const struct dtype *type, uint32_t code)
{
    float x;

    if (type->bits < 32)
        return dtype_decode(type, code);
    memcpy(&x, &code, sizeof x);
    return (double)x;
}

/* ---- scales and zero points ------------------------------------------------------------------ */

static int64_t scale_index(const struct ref_gemm *p, int64_t gcol, int64_t l)
{
    int64_t g = p->group ? l / p->group : 0, blocks;

    switch (p->scale) {
    case REF_SCALE_CHANNEL:
        return gcol;
    case REF_SCALE_GROUP:
        return gcol * ref_groups(p) + g;
    case REF_SCALE_BLOCK:
        blocks = (p->n + p->group_n - 1) / p->group_n;
        return (gcol / p->n * blocks + gcol % p->n / p->group_n) * ref_groups(p) + g;
    case REF_SCALE_TENSOR:
        return gcol / p->n;
    }
    return 0;
}

double twin_scale(const struct twin *t, int64_t gcol, int64_t l)
{
    int64_t at_col = gcol, at_l = l;
    double s;

    if (t->scale_at)
        t->scale_at(t, &at_col, &at_l);
    s = pattern(t->ref.bs, t->ref.bs_codes[scale_index(&t->ref, at_col, at_l)]);
    return t->scale_value ? t->scale_value(t, gcol, s) : s;
}

double twin_zero(const struct twin *t, int64_t gcol, int64_t l)
{
    const struct ref_gemm *p = &t->ref;
    int64_t at;

    if (t->zero_at)
        t->zero_at(t, &gcol, &l);
    at = gcol * ref_groups(p) + twin_group_of(t, l);
    switch (p->zero) {
    case REF_ZERO_NONE:
        return p->b->is_float ? 0.0 : ldexp(1.0, p->b->bits - 1);
    case REF_ZERO_INT:
        return p->zero_codes[at];
    case REF_ZERO_FLOAT:
        return dtype_decode(p->a, p->zero_codes[at]);
    }
    return 0.0;
}

double twin_raw(const struct twin *t, uint32_t code)
{
    return t->ref.b->is_float ? dtype_decode(t->ref.b, code) : (double)code;
}

double twin_to_a(const struct twin *t, double x)
{
    return t->ref.a->bits == 16 ? round_to(t->ref.a, x) : x;
}

/* ---- weights --------------------------------------------------------------------------------- */

int twin_fused_code(const struct twin *t, int64_t gcol, int64_t l)
{
    if (t->scale_at)
        t->scale_at(t, &gcol, &l);
    return (int)t->ref.bs_codes[scale_index(&t->ref, gcol, l)];
}

int twin_fused_base(const struct twin *t, int64_t gcol)
{
    const struct ref_gemm *p = &t->ref;
    bool own = p->scale_2 == REF_SCALE_2_CHANNEL;
    int64_t groups = ref_groups(p), first = (own ? gcol : gcol / p->n * p->n) * groups;
    int64_t count = (own ? 1 : p->n) * groups;
    int hi = 0, lo = 255;

    for (int64_t i = first; i < first + count; i++) {
        int s = (int)p->bs_codes[i];

        hi = s > hi ? s : hi;
        lo = s < lo ? s : lo;
    }
    return hi - (hi - lo < p->fused_range ? hi - lo : p->fused_range);
}

/* Weights were requantized by their own scale; the one that is applied may be another's. */
static void fused_moved(const struct twin *t, int64_t gcol, float *w)
{
    int base = twin_fused_base(t, gcol);

    for (int64_t l = 0; l < t->ref.k; l++) {
        int own = (int)t->ref.bs_codes[scale_index(&t->ref, gcol, l)];
        int used = twin_fused_code(t, gcol, l);

        own = own < base ? base : own;
        used = used < base ? base : used;
        w[l] = (float)ldexp((double)w[l], used - own);
    }
}

static double right_weight(const struct twin *t, uint32_t code, double zero, double scale)
{
    double v = twin_raw(t, code) - zero;

    v = t->ref.zero == REF_ZERO_FLOAT ? twin_to_a(t, v) : v;
    return twin_scales_operand(&t->ref) ? twin_to_a(t, v * scale) : v;
}

static bool changes_weights(const struct twin *t)
{
    return t->weight || t->zero_at ||
           ((t->scale_at || t->scale_value) && twin_scales_operand(&t->ref));
}

void twin_weights(const struct twin *t, int64_t gcol, float *w)
{
    bool scaled = twin_scales_operand(&t->ref);

    ref_operand_w(&t->ref, gcol, gcol + 1, w);
    for (int64_t l = 0; l < t->ref.k && changes_weights(t) && !t->ref.fused_e8m0; l++) {
        double zero = twin_zero(t, gcol, l);
        double scale = scaled ? round_to(t->ref.a, twin_scale(t, gcol, l)) : 1.0;

        w[l] = (float)(t->weight ? t->weight(t, twin_code(t, gcol, l), zero, scale)
                                 : right_weight(t, twin_code(t, gcol, l), zero, scale));
    }
    if (t->ref.fused_e8m0 && t->scale_at)
        fused_moved(t, gcol, w);
    if (t->weights)
        t->weights(t, gcol, w);
}

double twin_flush_factor(const struct twin *t, int64_t arow, int64_t gcol, int64_t l)
{
    const struct ref_gemm *p = &t->ref;
    bool has_as = p->input_group > 0 && !t->no_input_scale;
    double as =
        has_as ? (double)p->input_scale[arow * ref_input_groups(p) + l / p->input_group] : 1.0;
    double bs = ref_scales_on_c(p) ? twin_scale(t, gcol, l) : 1.0;

    if (p->f16_accum)
        return round_to(t->f16, round_to(t->f16, as) * round_to(t->f16, bs));
    return (double)(float)(as * bs);
}

/* ---- epilogue -------------------------------------------------------------------------------- */

static double rounded(const struct twin *t, enum twin_rounding where, double x)
{
    return t->round ? t->round(t, where, x) : round_to(t->ref.c, x);
}

/* as(m) and t of section 5. */
static double row_factor(const struct twin *t, int64_t arow, int64_t gcol)
{
    const struct ref_gemm *p = &t->ref;
    bool token = t->epilogue.has_token && !t->no_input_scale;
    double as = token ? (double)p->input_scale[arow] : 1.0, f = (double)t->int_factor;
    int64_t second = t->second_at ? t->second_at(t, gcol) : gcol;

    if (p->scale == REF_SCALE_TENSOR)
        f = twin_scale(t, gcol, 0);
    else if (p->scale_2 == REF_SCALE_2_TENSOR && !t->no_second)
        f = (double)((float)pattern(t->f32, p->scale_2_codes[second / p->n]) * t->int_factor);
    if (p->f16_accum)
        return round_to(t->f16, round_to(t->f16, as) * round_to(t->f16, f));
    return (double)(float)(as * f);
}

static double channel_scale(const struct twin *t, int64_t gcol)
{
    const struct ref_gemm *p = &t->ref;
    int64_t second = t->second_at ? t->second_at(t, gcol) : gcol;

    if (p->scale_2 == REF_SCALE_2_CHANNEL)
        return t->no_second ? 1.0 : dtype_decode(p->c, p->scale_2_codes[second]);
    return t->no_channel ? 1.0 : round_to(p->c, twin_scale(t, gcol, 0));
}

static double epilogue_f16(const struct twin *t, double x, double f, double s, double bias)
{
    double h = rounded(t, ROUND_SUM, x);

    h = f != 1.0 ? rounded(t, ROUND_SUM, h * f) : h;
    h = t->epilogue.has_channel ? rounded(t, ROUND_FINAL, h * s) : h;
    return rounded(t, ROUND_FINAL, round_odd_sum(h, bias));
}

double twin_epilogue(const struct twin *t, int64_t arow, int64_t gcol, double x, int slice)
{
    const struct ref_gemm *p = &t->ref;
    bool channel = t->epilogue.has_channel;
    bool biased = p->has_bias && (t->has_bias ? t->has_bias(t, gcol % p->n, slice) : slice == 0);
    bool factor = t->epilogue.has_token || t->epilogue.has_tensor;
    double f = factor ? row_factor(t, arow, gcol) : 1.0, s = channel ? channel_scale(t, gcol) : 1.0;
    int64_t at = t->bias_at ? t->bias_at(t, gcol) : gcol;
    double bias = biased ? t->bias_times * dtype_decode(t->bias_type, p->bias_codes[at]) : 0.0, h;

    x = t->sum ? t->sum(t, x) : x;
    if (p->f16_accum)
        return epilogue_f16(t, x, f, s, bias);
    h = rounded(t, ROUND_SUM, factor ? (double)((float)x * (float)f) : (double)(float)x);
    if (!biased)
        return channel ? rounded(t, ROUND_FINAL, h * s) : h;
    switch (t->bias_order) {
    case BIAS_STATED:
        return rounded(t, ROUND_FINAL, round_odd_sum(h * s, bias));
    case BIAS_SCALED:
        return rounded(t, ROUND_FINAL, rounded(t, ROUND_FINAL, round_odd_sum(h, bias)) * s);
    case BIAS_SCALED_ONCE:
        return rounded(t, ROUND_FINAL, round_odd_sum(h * s, bias * s));
    case BIAS_SCALED_APART:
        return rounded(t, ROUND_FINAL, round_odd_sum(h * s, rounded(t, ROUND_FINAL, bias * s)));
    }
    return h;
}
