/* Scales of another group, column, row or expert; scales that are decoded wrongly or missing. */
#include "harness/explain/gemm.h"
#include "harness/explain/gemm_variants.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct ref_gemm *gemm(const struct probe *p)
{
    return &gemm_of(p)->q->ref;
}
static bool has_groups(const struct probe *p)
{
    const struct ref_gemm *r = gemm(p);

    return (r->scale == REF_SCALE_GROUP || r->scale == REF_SCALE_BLOCK) && ref_groups(r) > 1;
}
static bool has_operand_groups(const struct probe *p)
{
    return has_groups(p) && (twin_scales_operand(gemm(p)) || gemm(p)->fused_e8m0);
}
static bool has_columns(const struct probe *p)
{
    return gemm(p)->n > 1 && gemm(p)->scale != REF_SCALE_TENSOR;
}
static bool has_experts(const struct probe *p)
{
    return ref_experts(gemm(p)) > 1;
}

/* ---- whose scale ----------------------------------------------------------------------------- */

/* Variant 1: the zero points move along. */
static void move_groups(struct twin *t, void (*at)(const struct twin *t, int64_t *gcol, int64_t *l))
{
    t->scale_at = at;
    if (t->variant && t->ref.zero != REF_ZERO_NONE)
        t->zero_at = at;
    t->none = t->variant && t->ref.zero == REF_ZERO_NONE;
}

static void minus_1_at(const struct twin *t, int64_t *gcol, int64_t *l)
{
    (void)gcol;
    *l = *l >= t->ref.group ? *l - t->ref.group : *l;
}
static void plus_1_at(const struct twin *t, int64_t *gcol, int64_t *l)
{
    (void)gcol;
    *l = *l / t->ref.group + 1 < ref_groups(&t->ref) ? (*l / t->ref.group + 1) * t->ref.group : *l;
}
static void last_at(const struct twin *t, int64_t *gcol, int64_t *l)
{
    (void)gcol;
    *l = *l / t->ref.group + 1 == ref_groups(&t->ref) ? *l - t->ref.group : *l;
}
static void halved_at(const struct twin *t, int64_t *gcol, int64_t *l)
{
    int64_t g = *l / (t->ref.group / 2), last = ref_groups(&t->ref) - 1;

    (void)gcol;
    *l = (g < last ? g : last) * t->ref.group;
}
static void doubled_at(const struct twin *t, int64_t *gcol, int64_t *l)
{
    (void)gcol;
    *l = *l / (2 * t->ref.group) * t->ref.group;
}
static void group_0_at(const struct twin *t, int64_t *gcol, int64_t *l)
{
    (void)t;
    (void)gcol;
    *l = 0;
}

static void group_minus_1(struct twin *t)
{
    move_groups(t, minus_1_at);
}
static void group_plus_1(struct twin *t)
{
    move_groups(t, plus_1_at);
}
static void last_group(struct twin *t)
{
    move_groups(t, last_at);
}
static void group_halved(struct twin *t)
{
    move_groups(t, halved_at);
    if (t->g->tuning.warp_k > t->ref.group / 2)
        t->flush_k = t->ref.group / 2;
}
static void group_doubled(struct twin *t)
{
    move_groups(t, doubled_at);
}
static void group_0(struct twin *t)
{
    move_groups(t, group_0_at);
}

/* The first 4, 8, 16 or 32 k of a group. */
static void late_at(const struct twin *t, int64_t *gcol, int64_t *l)
{
    (void)gcol;
    *l = *l % t->ref.group < 4 << t->variant && *l >= t->ref.group ? *l - t->ref.group : *l;
}
static void group_late(struct twin *t)
{
    t->none = 4 << t->variant >= t->ref.group;
    t->scale_at = late_at;
}
static void late_detail(const struct hypothesis *h, const struct probe *p, int64_t variant,
                        char buf[HYPOTHESIS_DETAIL])
{
    (void)h;
    (void)p;
    (void)snprintf(buf, HYPOTHESIS_DETAIL, "the first %d k", 4 << variant);
}

/* No mistake, but every scale is looked up here instead of by the oracle: where that makes the
 * kernel's outputs of the wrong ones, it is the oracle that is mistaken. */
static void same_at(const struct twin *t, int64_t *gcol, int64_t *l)
{
    (void)t;
    (void)gcol;
    (void)l;
}
static void reference_scale(struct twin *t)
{
    t->scale_at = same_at;
}

static void expert_0_at(const struct twin *t, int64_t *gcol, int64_t *l)
{
    (void)l;
    *gcol %= t->ref.n;
}
static void scale_of_expert_0(struct twin *t)
{
    t->scale_at = expert_0_at;
}

/* ---- one column ------------------------------------------------------------------------------ */

/* 2 * (column + 1) + side, in the columns that are wrong if they are few, or all. */
static int64_t column_sides(const struct probes *all, int64_t out[HYPOTHESIS_VARIANTS])
{
    int64_t columns[4], count = gemm_wrong_columns(all, columns, 4);

    if (count > 4 || count == 0)
        columns[0] = -1;
    count = count > 4 || count == 0 ? 1 : count;
    for (int64_t i = 0; i < 2 * count; i++)
        out[i] = 2 * (columns[i / 2] + 1) + i % 2;
    return 2 * count;
}
static bool side_has(const struct twin *t, int64_t gcol)
{
    return t->variant / 2 == 0 || gcol % t->ref.n == t->variant / 2 - 1;
}
static void side_detail(const struct hypothesis *h, const struct probe *p, int64_t variant,
                        char buf[HYPOTHESIS_DETAIL])
{
    char column[HYPOTHESIS_DETAIL];

    gemm_column_detail(h, p, variant / 2, column);
    (void)snprintf(buf, HYPOTHESIS_DETAIL, "%.80s: %s", column, variant % 2 ? "above" : "below");
}

static void neighbour_at(const struct twin *t, int64_t *gcol, int64_t *l)
{
    int64_t to = *gcol % t->ref.n + (t->variant % 2 ? 1 : -1);

    (void)l;
    if (side_has(t, *gcol) && to >= 0 && to < t->ref.n)
        *gcol += t->variant % 2 ? 1 : -1;
}
static void scale_of_neighbour(struct twin *t)
{
    t->scale_at = neighbour_at;
}

/* The neighbouring code, by magnitude. */
static double ulp_value(const struct twin *t, int64_t gcol, double scale)
{
    const struct dtype *type = t->ref.bs;
    float x = (float)scale;

    if (!side_has(t, gcol))
        return scale;
    if (type->bits == 32)
        return (double)nextafterf(x, t->variant % 2 ? INFINITY * copysignf(1.0f, x) : 0.0f);
    return dtype_decode(type, dtype_encode(type, scale, DTYPE_TO_TOP) +
                                  (t->variant % 2 ? 1u : (uint32_t)-1));
}
static void scale_one_ulp(struct twin *t)
{
    t->none = t->ref.int_scale;
    t->scale_value = ulp_value;
}

/* ---- decoding of scales ---------------------------------------------------------------------- */

static bool is_e8m0(const struct probe *p)
{
    return gemm(p)->bs->bits == 8 && gemm(p)->bs->man_bits == 0 && gemm(p)->bs->exp_bits == 8;
}
static bool is_wide(const struct probe *p)
{
    return gemm(p)->bs->man_bits > 3;
}
static bool is_8_bits(const struct probe *p)
{
    return gemm(p)->bs->bits == 8;
}

/* Variants: 3, 2, 4, 7 bits. */
static double short_value(const struct twin *t, int64_t gcol, double scale)
{
    static const int bits[] = {3, 2, 4, 7};
    int e;

    (void)gcol;
    if (scale == 0.0 || !isfinite(scale))
        return scale;
    (void)frexp(scale, &e);
    return ldexp(trunc(ldexp(scale, bits[t->variant] + 1 - e)), e - bits[t->variant] - 1);
}
static double bias_128_value(const struct twin *t, int64_t gcol, double scale)
{
    (void)t;
    (void)gcol;
    return scale / 2.0;
}
static double bias_126_value(const struct twin *t, int64_t gcol, double scale)
{
    (void)t;
    (void)gcol;
    return scale * 2.0;
}
static double ff_value(const struct twin *t, int64_t gcol, double scale)
{
    (void)t;
    (void)gcol;
    return isnan(scale) ? (double)INFINITY : scale;
}
static double zero_value(const struct twin *t, int64_t gcol, double scale)
{
    (void)t;
    (void)gcol;
    return scale == 0x1p-127 ? 0.0 : scale;
}
static double value_128(const struct twin *t, int64_t gcol, double scale)
{
    (void)t;
    (void)gcol;
    return isnan(scale) ? (double)INFINITY : scale == 128.0 ? (double)NAN : scale;
}
static double raw_value(const struct twin *t, int64_t gcol, double scale)
{
    (void)gcol;
    return dtype_encode(t->ref.bs, scale, DTYPE_TO_TOP);
}

/* Fused scales are codes: those that are decoded differently change the operand. */
static void fused_value(const struct twin *t, int64_t gcol, float *w)
{
    int base = twin_fused_base(t, gcol);

    for (int64_t l = 0; l < t->ref.k; l++) {
        int s = twin_fused_code(t, gcol, l);
        double own = dtype_decode(t->ref.bs, (uint32_t)(s < base ? base : s));

        w[l] = (float)((double)w[l] / own * t->scale_value(t, gcol, own));
    }
}
static void decode(struct twin *t, double (*value)(const struct twin *t, int64_t gcol, double s))
{
    t->scale_value = value;
    t->weights = t->ref.fused_e8m0 ? fused_value : NULL;
    t->none = t->none || t->ref.int_scale;
}

static void scale_short(struct twin *t)
{
    decode(t, short_value);
}
static void e8m0_bias_128(struct twin *t)
{
    decode(t, bias_128_value);
}
static void e8m0_bias_126(struct twin *t)
{
    decode(t, bias_126_value);
}
static void e8m0_ff(struct twin *t)
{
    decode(t, ff_value);
}
static void e8m0_00(struct twin *t)
{
    decode(t, zero_value);
}
static void scale_128(struct twin *t)
{
    decode(t, value_128);
}
static void scale_raw(struct twin *t)
{
    decode(t, raw_value);
}

/* ---- second, channel and input scales -------------------------------------------------------- */

static bool has_second(const struct probe *p)
{
    return gemm(p)->scale_2 != REF_SCALE_2_NONE;
}
static bool has_second_experts(const struct probe *p)
{
    return has_second(p) && has_experts(p);
}
static bool has_channel(const struct probe *p)
{
    return gemm(p)->scale == REF_SCALE_CHANNEL;
}
static bool has_input(const struct probe *p)
{
    return gemm(p)->input_scale != NULL;
}
static bool has_input_rows(const struct probe *p)
{
    return has_input(p) && gemm(p)->m > 1;
}
static bool has_input_groups(const struct probe *p)
{
    return has_input(p) && ref_input_groups(gemm(p)) > 1;
}

static int64_t second_of_expert_0(const struct twin *t, int64_t gcol)
{
    return gcol % t->ref.n;
}
static void second_missing(struct twin *t)
{
    t->no_second = true;
}
static void second_expert_0(struct twin *t)
{
    t->second_at = second_of_expert_0;
}
static void channel_missing(struct twin *t)
{
    t->no_channel = true;
}
static void input_missing(struct twin *t)
{
    t->no_input_scale = true;
}

/* scales[row][group] of A. */
static float *input_scales(struct twin *t)
{
    size_t count = (size_t)(t->ref.m * ref_input_groups(&t->ref));
    float *scales = twin_copy(t, t->ref.input_scale, count, sizeof *scales);

    t->ref.input_scale = scales;
    return scales;
}
static void input_row_minus_1(struct twin *t)
{
    int64_t groups = ref_input_groups(&t->ref);
    float *scales = input_scales(t);

    if (scales)
        memcpy(scales + groups, t->q->ref.input_scale,
               (size_t)((t->ref.m - 1) * groups) * sizeof *scales);
}
static void input_group_0(struct twin *t)
{
    int64_t groups = ref_input_groups(&t->ref);
    float *scales = input_scales(t);

    for (int64_t i = 0; scales && i < t->ref.m * groups; i++)
        scales[i] = t->q->ref.input_scale[i / groups * groups];
}

/* clang-format off */
static const struct hypothesis rows[] = {
    {.name = "group-index-minus-1",
     .sentence = "every group but the first uses the scale of the group before it",
     .applies = has_groups, .variants = gemm_variants_2, GEMM_TWIST(group_minus_1)},
    {.name = "group-index-plus-1",
     .sentence = "every group but the last uses the scale of the next one",
     .applies = has_groups, .variants = gemm_variants_2, GEMM_TWIST(group_plus_1)},
    {.name = "group-start-late",
     .sentence = "the first k of each group use the scale of the group before it",
     .applies = has_operand_groups, .variants = gemm_variants_4, .detail = late_detail,
     GEMM_TWIST(group_late)},
    {.name = "last-group-previous-scale",
     .sentence = "the last group uses the scale of the group before it",
     .applies = has_groups, .variants = gemm_variants_2, GEMM_TWIST(last_group)},
    {.name = "group-size-halved",
     .sentence = "groups are taken to be half as long, the last scale holds from there on",
     .applies = has_groups, .variants = gemm_variants_2, GEMM_TWIST(group_halved)},
    {.name = "group-size-doubled", .sentence = "groups are taken to be twice as long",
     .applies = has_groups, .variants = gemm_variants_2, GEMM_TWIST(group_doubled)},
    {.name = "scale-of-group-0", .sentence = "all groups use the scale of the first",
     .applies = has_groups, .variants = gemm_variants_2, GEMM_TWIST(group_0)},
    {.name = "reference-scale",
     .sentence = "the kernel is right: the reference scales weights by other groups' scales",
     .applies = has_operand_groups, GEMM_TWIST(reference_scale)},
    {.name = "scale-of-neighbour-column", .sentence = "a column uses the scales of its neighbour",
     .applies = has_columns, .variants = column_sides, .detail = side_detail,
     GEMM_TWIST(scale_of_neighbour)},
    {.name = "scale-one-ulp", .sentence = "the scales of a column are one ulp off",
     .variants = column_sides, .detail = side_detail, GEMM_TWIST(scale_one_ulp)},
    {.name = "scale-of-expert-0", .sentence = "all experts use the weight scales of the first",
     .applies = has_experts, GEMM_TWIST(scale_of_expert_0)},
    {.name = "scale-mantissa-3-bits", .sentence = "the mantissas of weight scales are cut",
     .applies = is_wide, .variants = gemm_variants_4, GEMM_TWIST(scale_short)},
    {.name = "e8m0-bias-128", .sentence = "e8m0 scales are decoded with the bias 128",
     .applies = is_e8m0, GEMM_TWIST(e8m0_bias_128)},
    {.name = "e8m0-bias-126", .sentence = "e8m0 scales are decoded with the bias 126",
     .applies = is_e8m0, GEMM_TWIST(e8m0_bias_126)},
    {.name = "e8m0-ff-is-inf", .sentence = "the e8m0 scale 255 is infinity instead of NaN",
     .applies = is_e8m0, GEMM_TWIST(e8m0_ff)},
    {.name = "e8m0-00-is-zero", .sentence = "the e8m0 scale 0 is zero instead of 2^-127",
     .applies = is_e8m0, GEMM_TWIST(e8m0_00)},
    {.name = "scale-128-is-nan",
     .sentence = "the e8m0 scale of value 128 is NaN, while 255 is infinity",
     .applies = is_e8m0, GEMM_TWIST(scale_128)},
    {.name = "raw-scale-byte", .sentence = "the byte of an 8-bit scale is used as a number",
     .applies = is_8_bits, GEMM_TWIST(scale_raw)},
    {.name = "second-scale-missing", .sentence = "the second weight scale is not applied",
     .applies = has_second, GEMM_TWIST(second_missing)},
    {.name = "global-scale-of-expert-0",
     .sentence = "all experts use the second weight scale of the first",
     .applies = has_second_experts, GEMM_TWIST(second_expert_0)},
    {.name = "channel-scale-missing", .sentence = "the channel scale is not applied",
     .applies = has_channel, GEMM_TWIST(channel_missing)},
    {.name = "input-scale-missing", .sentence = "the input scale is not applied",
     .applies = has_input, GEMM_TWIST(input_missing)},
    {.name = "input-scale-row-minus-1",
     .sentence = "every row but the first uses the input scales of the row before it",
     .applies = has_input_rows, GEMM_TWIST(input_row_minus_1)},
    {.name = "input-scale-of-group-0", .sentence = "all groups use the input scale of the first",
     .applies = has_input_groups, GEMM_TWIST(input_group_0)},
};
/* clang-format on */

GEMM_TABLE(gemm_scale_hypotheses, rows);
