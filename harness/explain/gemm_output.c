/* From the sum to the output: roundings, bias, special results. */
#include "harness/explain/gemm.h"
#include "harness/explain/gemm_variants.h"

#include "reference/round.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static const struct ref_gemm *gemm(const struct probe *p)
{
    return &gemm_of(p)->q->ref;
}
static bool has_bias(const struct probe *p)
{
    return gemm(p)->has_bias;
}
static bool has_bias_and_slices(const struct probe *p)
{
    return has_bias(p) && gemm_of(p)->tuning.use_stream_k;
}
static bool has_bias_and_channel(const struct probe *p)
{
    return has_bias(p) &&
           (gemm(p)->scale == REF_SCALE_CHANNEL || gemm(p)->scale_2 == REF_SCALE_2_CHANNEL);
}
static bool has_bias_and_experts(const struct probe *p)
{
    return has_bias(p) && ref_experts(gemm(p)) > 1;
}
static bool is_f16(const struct probe *p)
{
    return gemm(p)->c == dtype_find("f16");
}

/* ---- roundings ------------------------------------------------------------------------------- */

/* Where a variant applies: everywhere, at the last rounding of a slice, at the first, not between
 * slices. */
static bool applies_at(const struct twin *t, enum twin_rounding where)
{
    bool later = t->epilogue.has_channel || t->ref.has_bias;
    enum twin_rounding last = later ? ROUND_FINAL : ROUND_SUM;

    return t->variant == 0 || (t->variant == 1 && where == last) ||
           (t->variant == 2 && where == ROUND_SUM) || (t->variant == 3 && where != ROUND_SLICES);
}

static double truncate(const struct twin *t, enum twin_rounding where, double x)
{
    uint32_t code = dtype_encode(t->ref.c, x, DTYPE_TO_TOP);
    double y = dtype_decode(t->ref.c, code);

    if (!applies_at(t, where) || !isfinite(x) || !(fabs(y) > fabs(x)))
        return y;
    return dtype_decode(t->ref.c, code - 1);
}
static void truncation(struct twin *t)
{
    t->round = truncate;
}

static double round_twice(const struct twin *t, enum twin_rounding where, double x)
{
    return round_to(t->ref.c, applies_at(t, where) ? round_to(dtype_find("bf16"), x) : x);
}
static void double_rounding(struct twin *t)
{
    t->round = round_twice;
}

/* Variant 4: everywhere, but infinities stay that were there before. */
static double saturate(const struct twin *t, enum twin_rounding where, double x)
{
    double y = round_to(t->ref.c, x);
    bool here = t->variant == 4 ? isfinite(x) : applies_at(t, where);

    return here && isinf(y) ? copysign(dtype_max(t->ref.c), y) : y;
}
static void overflow_saturates(struct twin *t)
{
    t->round = saturate;
}

static double subnormal_sum(const struct twin *t, double x)
{
    return t->variant == 0 && fabs(x) < 0x1p-126 ? 0.0 * x : x;
}
static double subnormal_round(const struct twin *t, enum twin_rounding where, double x)
{
    bool flushed = (t->variant == 1 && where == ROUND_SUM) || t->variant == 2;

    return round_to(t->ref.c, flushed && fabs(x) < 0x1p-126 ? 0.0 * x : x);
}
static void f32_subnormals(struct twin *t)
{
    t->sum = subnormal_sum;
    t->round = subnormal_round;
}

static double subnormal_output(const struct twin *t, double x)
{
    return fabs(x) < ldexp(1.0, dtype_min_exponent(t->ref.c)) ? 0.0 * x : x;
}
static void output_subnormals(struct twin *t)
{
    t->finish = subnormal_output;
}

static double early(const struct twin *t, double x)
{
    return round_to(t->ref.c, x);
}
static bool has_factor(const struct probe *p)
{
    const struct ref_gemm *r = gemm(p);

    return (r->input_scale && !r->input_group) || r->scale == REF_SCALE_TENSOR ||
           r->scale_2 == REF_SCALE_2_TENSOR || r->int_scale;
}
static void premature(struct twin *t)
{
    t->sum = early;
}

static double no_nan(const struct twin *t, double x)
{
    (void)t;
    return isnan(x) ? 0.0 : x;
}
static void nan_swallowed(struct twin *t)
{
    t->finish = no_nan;
}

/* ---- bias ------------------------------------------------------------------------------------ */

static bool in_every_slice(const struct twin *t, int64_t col, int slice)
{
    (void)t;
    (void)col;
    (void)slice;
    return true;
}
static void bias_per_slice(struct twin *t)
{
    t->has_bias = in_every_slice;
}

/* Tiles along n that are wrong: 0 for all, else the number of the tile plus 1. */
static int64_t wrong_tiles(const struct probes *all, int64_t out[HYPOTHESIS_VARIANTS])
{
    int64_t col = 0, block_n = gemm_of(&all->items[0])->tuning.block_n;
    int64_t count = gemm_count_up(1, out);

    if (gemm_wrong_columns(all, &col, 1) > 0 && block_n > 0)
        out[count++] = col / block_n + 1;
    return count;
}
static bool not_in_tile(const struct twin *t, int64_t col, int slice)
{
    return slice == 0 && t->variant != 0 && col / t->g->tuning.block_n != t->variant - 1;
}
static void bias_missing(struct twin *t)
{
    t->has_bias = not_in_tile;
}
static void tile_detail(const struct hypothesis *h, const struct probe *p, int64_t variant,
                        char buf[HYPOTHESIS_DETAIL])
{
    int64_t block_n = gemm_of(p)->tuning.block_n;

    (void)h;
    if (variant)
        (void)snprintf(buf, HYPOTHESIS_DETAIL, "columns %" PRId64 " to %" PRId64,
                       (variant - 1) * block_n, variant * block_n - 1);
    else
        (void)snprintf(buf, HYPOTHESIS_DETAIL, "all columns");
}

static void bias_twice(struct twin *t)
{
    t->bias_times = 2;
}

static int64_t next_bias(const struct twin *t, int64_t gcol)
{
    return gcol % t->ref.n + 1 < t->ref.n ? gcol + 1 : gcol;
}
static int64_t previous_bias(const struct twin *t, int64_t gcol)
{
    return gcol % t->ref.n > 0 ? gcol - 1 : gcol;
}
static int64_t first_bias(const struct twin *t, int64_t gcol)
{
    return gcol % t->ref.n;
}
static void bias_plus_1(struct twin *t)
{
    t->bias_at = next_bias;
}
static void bias_minus_1(struct twin *t)
{
    t->bias_at = previous_bias;
}
static void bias_of_expert_0(struct twin *t)
{
    t->bias_at = first_bias;
}
static void bias_other_format(struct twin *t)
{
    t->bias_type = dtype_find(t->ref.c == dtype_find("f16") ? "bf16" : "f16");
}
static void bias_before_scale(struct twin *t)
{
    static const enum twin_bias orders[] = {BIAS_SCALED, BIAS_SCALED_ONCE, BIAS_SCALED_APART};

    t->bias_order = orders[t->variant];
}

/* clang-format off */
static const struct hypothesis rows[] = {
    {.name = "truncation", .sentence = "results are truncated to the output's format",
     .variants = gemm_variants_4, GEMM_TWIST(truncation)},
    {.name = "double-rounding", .sentence = "f16 results are rounded to bf16 first",
     .applies = is_f16, .variants = gemm_variants_4, GEMM_TWIST(double_rounding)},
    {.name = "premature-rounding",
     .sentence = "sums are rounded to the output's format before the f32 factor",
     .applies = has_factor, GEMM_TWIST(premature)},
    {.name = "f32-subnormals-flushed", .sentence = "subnormal f32 results become 0",
     .variants = gemm_variants_3, GEMM_TWIST(f32_subnormals)},
    {.name = "output-subnormals-flushed",
     .sentence = "results below the smallest normal number of the output's format become 0",
     .applies = is_f16,
     GEMM_TWIST(output_subnormals)},
    {.name = "overflow-saturates",
     .sentence = "results beyond the largest number of the output's format become that number",
     .variants = gemm_variants_5, GEMM_TWIST(overflow_saturates)},
    {.name = "nan-swallowed", .sentence = "a result that is NaN becomes 0",
     GEMM_TWIST(nan_swallowed)},
    {.name = "bias-per-slice", .sentence = "every slice of a tile adds the bias",
     .applies = has_bias_and_slices, GEMM_TWIST(bias_per_slice)},
    {.name = "bias-missing", .sentence = "the bias is not added", .applies = has_bias,
     .variants = wrong_tiles, .detail = tile_detail, GEMM_TWIST(bias_missing)},
    {.name = "bias-twice", .sentence = "the bias is added twice", .applies = has_bias,
     GEMM_TWIST(bias_twice)},
    {.name = "bias-index-plus-1",
     .sentence = "every column but the last has the bias of the next one", .applies = has_bias,
     GEMM_TWIST(bias_plus_1)},
    {.name = "bias-index-minus-1",
     .sentence = "every column but the first has the bias of the one before it",
     .applies = has_bias, GEMM_TWIST(bias_minus_1)},
    {.name = "bias-other-format",
     .sentence = "the bits of a bias are read as the other 16-bit format", .applies = has_bias,
     GEMM_TWIST(bias_other_format)},
    {.name = "bias-before-scale", .sentence = "the channel scale multiplies the bias, too",
     .applies = has_bias_and_channel, .variants = gemm_variants_3, GEMM_TWIST(bias_before_scale)},
    {.name = "bias-of-expert-0", .sentence = "all experts use the bias of the first",
     .applies = has_bias_and_experts, GEMM_TWIST(bias_of_expert_0)},
};
/* clang-format on */

GEMM_TABLE(gemm_output_hypotheses, rows);
