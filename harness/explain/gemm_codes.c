/* Codes that are decoded to other numbers. */
#include "harness/explain/gemm.h"
#include "harness/explain/gemm_variants.h"

#include "reference/round.h"

#include <math.h>

static const struct ref_gemm *gemm(const struct probe *p)
{
    return &gemm_of(p)->q->ref;
}

/* ---- weight codes ---------------------------------------------------------------------------- */

static bool is_uint4(const struct probe *p)
{
    return gemm(p)->b->bits == 4 && !gemm(p)->b->is_float;
}
static bool is_offset_binary(const struct probe *p)
{
    return !gemm(p)->b->is_float && gemm(p)->zero == REF_ZERO_NONE;
}

typedef uint8_t code_fn(uint8_t code, int bits);

static void map_codes(struct twin *t, code_fn *map)
{
    size_t count = (size_t)(ref_columns(&t->ref) * t->ref.k);
    uint8_t *codes = twin_copy(t, t->ref.b_codes, count, 1);

    for (size_t i = 0; codes && i < count; i++)
        codes[i] = map(codes[i], t->ref.b->bits);
    t->ref.b_codes = codes;
}

static uint8_t map_15(uint8_t code, int bits)
{
    (void)bits;
    return code == 15 ? 14 : code;
}
static uint8_t map_0(uint8_t code, int bits)
{
    (void)bits;
    return code == 0 ? 8 : code;
}
static uint8_t map_sign(uint8_t code, int bits)
{
    return (uint8_t)(code ^ 1u << (bits - 1));
}
static void code_15_as_14(struct twin *t)
{
    map_codes(t, map_15);
}
static void code_0_as_8(struct twin *t)
{
    map_codes(t, map_0);
}
static void twos_complement(struct twin *t)
{
    map_codes(t, map_sign);
}

/* ---- int8, e4m3 ------------------------------------------------------------------------------ */

static bool is_int8(const struct probe *p)
{
    return !gemm(p)->a->is_float && gemm(p)->a->bits == 8;
}
static bool is_e4m3(const struct probe *p)
{
    return gemm(p)->a->is_float && gemm(p)->a->bits == 8 && gemm(p)->a->man_bits == 3;
}

static void min_activations(const struct twin *t, int64_t arow, float *a)
{
    (void)arow;
    for (int64_t l = 0; l < t->ref.k; l++)
        a[l] = a[l] == -128.0f ? -127.0f : a[l];
}
static void min_weights(const struct twin *t, int64_t gcol, float *w)
{
    (void)gcol;
    for (int64_t l = 0; l < t->ref.k; l++)
        w[l] = w[l] == -128.0f ? -127.0f : w[l];
}

/* Variant 1: of activations alone, 2: of weights alone. */
static void int8_min(struct twin *t)
{
    t->activations = t->variant != 2 ? min_activations : NULL;
    t->weights = t->variant != 1 ? min_weights : NULL;
}

static void nan_as_480(const struct twin *t, int64_t arow, float *a)
{
    for (int64_t l = 0; l < t->ref.k; l++)
        if (isnan(a[l]))
            a[l] = t->ref.a_codes[arow * t->ref.k + l] & 0x80 ? -480.0f : 480.0f;
}
static void e4m3_nan(struct twin *t)
{
    t->activations = nan_as_480;
}

/* ---- roundings of operands ------------------------------------------------------------------- */

static bool scales_operand(const struct probe *p)
{
    return twin_scales_operand(gemm(p));
}

static bool has_16_bits(const struct probe *p)
{
    return gemm(p)->a->bits == 16;
}

static void flush_weights(const struct twin *t, int64_t gcol, float *w)
{
    double least = ldexp(1.0, dtype_min_exponent(t->ref.a));

    (void)gcol;
    for (int64_t l = 0; l < t->ref.k; l++)
        w[l] = fabs((double)w[l]) < least ? 0.0f * w[l] : w[l];
}
static void subnormal_weights(struct twin *t)
{
    t->weights = flush_weights;
}

/* Towards zero: the code nearest to x, or the one below it in magnitude. */
static double truncated(const struct dtype *type, double x)
{
    uint32_t code = dtype_encode(type, x, DTYPE_TO_TOP);
    double y = dtype_decode(type, code);

    return isfinite(x) && fabs(y) > fabs(x) ? dtype_decode(type, code - 1) : y;
}
static double cut_weight(const struct twin *t, uint32_t code, double zero, double scale)
{
    double v = twin_raw(t, code) - zero;

    v = t->ref.zero == REF_ZERO_FLOAT ? twin_to_a(t, v) : v;
    return truncated(t->ref.a, v * scale);
}
static void weight_truncated(struct twin *t)
{
    t->weight = cut_weight;
}

/* ---- fused e8m0 (semantics.md section 8) ----------------------------------------------------- */

static bool is_fused(const struct probe *p)
{
    return gemm(p)->fused_e8m0;
}

enum fused_how { FUSED_DELTA_LESS, FUSED_AS_IT_IS, FUSED_TIES_EVEN };

/* The nearest e2m1 magnitude; ties away from zero, or to even. */
static double nearest_e2m1(double m, bool even)
{
    static const double all[] = {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0};
    int best = 0;

    for (int i = 1; i < 8; i++) {
        double d = fabs(all[i] - m), e = fabs(all[best] - m);

        if (d < e || (d == e && (!even || i % 2 == 0)))
            best = i;
    }
    return all[best];
}

static void fused_weights(const struct twin *t, int64_t gcol, float *w, enum fused_how how)
{
    int base = twin_fused_base(t, gcol);

    for (int64_t l = 0; l < t->ref.k; l++) {
        int s = twin_fused_code(t, gcol, l), delta = base - s;
        double v = dtype_decode(t->ref.b, twin_code(t, gcol, l)) + 0.0;

        if (delta <= 0)
            continue;
        delta = how == FUSED_AS_IT_IS ? 0 : how == FUSED_DELTA_LESS ? delta - 1 : delta;
        v = copysign(nearest_e2m1(ldexp(fabs(v), -delta), how == FUSED_TIES_EVEN), v) + 0.0;
        w[l] = (float)(v * dtype_decode(t->ref.bs, (uint32_t)base));
    }
}

static void less_weights(const struct twin *t, int64_t gcol, float *w)
{
    fused_weights(t, gcol, w, FUSED_DELTA_LESS);
}
static void same_weights(const struct twin *t, int64_t gcol, float *w)
{
    fused_weights(t, gcol, w, FUSED_AS_IT_IS);
}
static void even_weights(const struct twin *t, int64_t gcol, float *w)
{
    fused_weights(t, gcol, w, FUSED_TIES_EVEN);
}
static void fused_delta(struct twin *t)
{
    t->weights = less_weights;
}
static void fused_kept(struct twin *t)
{
    t->weights = same_weights;
}
static void fused_even(struct twin *t)
{
    t->weights = even_weights;
}

/* clang-format off */
static const struct hypothesis rows[] = {
    {.name = "code-15-as-14", .sentence = "the 4-bit integer code 15 is read as 14",
     .applies = is_uint4, GEMM_TWIST(code_15_as_14)},
    {.name = "code-0-as-8", .sentence = "the 4-bit integer code 0 is read as 8",
     .applies = is_uint4, GEMM_TWIST(code_0_as_8)},
    {.name = "twos-complement", .sentence = "offset binary codes are read as two's complement",
     .applies = is_offset_binary, GEMM_TWIST(twos_complement)},
    {.name = "int8-min-as-minus-127", .sentence = "the int8 number -128 is read as -127",
     .applies = is_int8, .variants = gemm_variants_3, GEMM_TWIST(int8_min)},
    {.name = "e4m3-nan-is-480", .sentence = "the NaN codes of e4m3 activations are read as numbers",
     .applies = is_e4m3, GEMM_TWIST(e4m3_nan)},
    {.name = "subnormal-weights-flushed",
     .sentence = "weights below the smallest normal number of the activations' format become 0",
     .applies = has_16_bits, GEMM_TWIST(subnormal_weights)},
    {.name = "weight-truncated",
     .sentence = "the product of weight and scale is truncated to the activations' format",
     .applies = scales_operand, GEMM_TWIST(weight_truncated)},
    {.name = "fused-delta-minus-1",
     .sentence = "fused e8m0: groups below the base are shifted one binade too little",
     .applies = is_fused, GEMM_TWIST(fused_delta)},
    {.name = "fused-not-requantized",
     .sentence = "fused e8m0: scales below the base saturate while the codes stay as they are",
     .applies = is_fused, GEMM_TWIST(fused_kept)},
    {.name = "fused-ties-to-even",
     .sentence = "fused e8m0: requantized codes are rounded with ties to even",
     .applies = is_fused, GEMM_TWIST(fused_even)},
};
/* clang-format on */

GEMM_TABLE(gemm_codes_hypotheses, rows);
