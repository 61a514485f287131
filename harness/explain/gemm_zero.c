/* Zero points: missing, added, of another group, at the wrong moment. */
#include "harness/explain/gemm.h"
#include "harness/explain/gemm_variants.h"

#include "reference/round.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static bool has_zero(const struct probe *p)
{
    return gemm_of(p)->q->ref.zero != REF_ZERO_NONE;
}
static bool has_int_zero(const struct probe *p)
{
    return gemm_of(p)->q->ref.zero == REF_ZERO_INT;
}
static bool has_float_zero(const struct probe *p)
{
    return gemm_of(p)->q->ref.zero == REF_ZERO_FLOAT;
}
static bool has_scaled_zero(const struct probe *p)
{
    return has_zero(p) && twin_scales_operand(&gemm_of(p)->q->ref);
}
static bool has_zero_groups(const struct probe *p)
{
    return has_zero(p) && ref_groups(&gemm_of(p)->q->ref) > 1;
}
static bool has_expert_zeros(const struct probe *p)
{
    return has_zero(p) && ref_experts(&gemm_of(p)->q->ref) > 1;
}

/* ---- the operand as a function of code, zero point and scale --------------------------------- */

/* RN_a of the difference where the zero point is a floating one; then the scale. */
static double scaled(const struct twin *t, double v, double scale)
{
    v = t->ref.zero == REF_ZERO_FLOAT ? twin_to_a(t, v) : v;
    return twin_scales_operand(&t->ref) ? twin_to_a(t, v * scale) : v;
}

static double missing(const struct twin *t, uint32_t code, double zero, double scale)
{
    (void)zero;
    return scaled(t, twin_raw(t, code), scale);
}

static double added(const struct twin *t, uint32_t code, double zero, double scale)
{
    return scaled(t, twin_raw(t, code) + zero, scale);
}

/* Variant 1: with a rounding in between. */
static double twice(const struct twin *t, uint32_t code, double zero, double scale)
{
    double v = twin_raw(t, code) - zero;

    v = t->variant && t->ref.zero == REF_ZERO_FLOAT ? twin_to_a(t, v) : v;
    return scaled(t, v - zero, scale);
}

/* Variant 1: the scaled code is not rounded before the difference. */
static double after_scale(const struct twin *t, uint32_t code, double zero, double scale)
{
    double v = twin_raw(t, code) * scale;

    return twin_to_a(t, (t->variant ? v : twin_to_a(t, v)) - zero);
}

/* In the bits of a code; variant 1: as two's complement. */
static double wraps(const struct twin *t, uint32_t code, double zero, double scale)
{
    uint32_t mask = (1u << t->ref.b->bits) - 1, sign = (mask >> 1) + 1;
    uint32_t v = (code - (uint32_t)zero) & mask;

    return scaled(t, t->variant && v & sign ? (double)v - (double)(mask + 1) : (double)v, scale);
}

/* Variant 1: in f32 operations. */
static double fused(const struct twin *t, uint32_t code, double zero, double scale)
{
    double v = twin_raw(t, code) - zero;

    if (t->variant)
        return twin_to_a(t, (double)((float)v * (float)scale));
    return twin_to_a(t, v * scale);
}

static double scaled_apart(const struct twin *t, uint32_t code, double zero, double scale)
{
    double a = twin_to_a(t, twin_raw(t, code) * scale), b = twin_to_a(t, zero * scale);

    return twin_to_a(t, a - b);
}

static void zero_missing(struct twin *t)
{
    t->weight = missing;
}
static void zero_added(struct twin *t)
{
    t->weight = added;
}
static void zero_twice(struct twin *t)
{
    t->weight = twice;
}
static void zero_after_scale(struct twin *t)
{
    t->weight = after_scale;
}
static void zero_wraps(struct twin *t)
{
    t->weight = wraps;
}
static void zero_fused(struct twin *t)
{
    t->weight = fused;
}
static void zero_scaled_apart(struct twin *t)
{
    t->weight = scaled_apart;
}

/* ---- whose zero point ------------------------------------------------------------------------ */

static void group_0_at(const struct twin *t, int64_t *gcol, int64_t *l)
{
    (void)t;
    (void)gcol;
    *l = 0;
}
static void expert_0_at(const struct twin *t, int64_t *gcol, int64_t *l)
{
    (void)l;
    *gcol %= t->ref.n;
}
static void before_at(const struct twin *t, int64_t *gcol, int64_t *l)
{
    (void)gcol;
    *l = *l >= t->ref.group ? *l - t->ref.group : *l;
}
static void zero_of_group_0(struct twin *t)
{
    t->zero_at = group_0_at;
}
static void zero_of_expert_0(struct twin *t)
{
    t->zero_at = expert_0_at;
}
static void zero_of_group_before(struct twin *t)
{
    t->zero_at = before_at;
}

/* ---- one too large --------------------------------------------------------------------------- */

/* A variant is group * (n + 1) + column + 1, group + 1 = number of groups for all of them; in every
 * expert, or behind all those in the last column of the last expert alone. */
static int64_t zero_places(const struct probes *all, int64_t out[HYPOTHESIS_VARIANTS])
{
    const struct ref_gemm *p = &gemm_of(&all->items[0])->q->ref;
    int64_t col = -1, used = 0, groups = ref_groups(p);

    if (gemm_wrong_columns(all, &col, 1) != 1)
        col = -1;
    for (int64_t g = 0; g <= groups && used < HYPOTHESIS_VARIANTS; g++)
        if (g == groups || col >= 0)
            out[used++] = g * (p->n + 1) + col + 1;
    return used;
}

static void zero_changed(struct twin *t, int change)
{
    int64_t groups = ref_groups(&t->ref), n = t->ref.n, only = t->variant / (n + 1);
    uint16_t *zero =
        twin_copy(t, t->ref.zero_codes, (size_t)(ref_columns(&t->ref) * groups), sizeof *zero);

    for (int64_t i = 0; zero && i < ref_columns(&t->ref) * groups; i++)
        if ((only == groups || i % groups == only) && place_has(t, i / groups))
            zero[i] = (uint16_t)(zero[i] + change);
    t->ref.zero_codes = zero;
}

static void zero_plus_1(struct twin *t)
{
    zero_changed(t, 1);
}
static void zero_minus_1(struct twin *t)
{
    zero_changed(t, -1);
}

static void zero_detail(const struct hypothesis *h, const struct probe *p, int64_t variant,
                        char buf[HYPOTHESIS_DETAIL])
{
    const struct ref_gemm *r = &gemm_of(p)->q->ref;
    int64_t g = variant / (r->n + 1);
    char column[HYPOTHESIS_DETAIL];

    gemm_column_detail(h, p, variant, column);
    if (g == ref_groups(r))
        (void)snprintf(buf, HYPOTHESIS_DETAIL, "%.80s, all groups", column);
    else
        (void)snprintf(buf, HYPOTHESIS_DETAIL, "%.80s, group %" PRId64, column, g);
}

/* clang-format off */
static const struct hypothesis rows[] = {
    {.name = "zero-point-plus-1", .sentence = "an integer zero point is one too large",
     .applies = has_int_zero, .variants = zero_places, .detail = zero_detail,
     GEMM_TWIST(zero_plus_1)},
    {.name = "zero-point-minus-1", .sentence = "an integer zero point is one too small",
     .applies = has_int_zero, .variants = zero_places, .detail = zero_detail,
     GEMM_TWIST(zero_minus_1)},
    {.name = "zero-point-added", .sentence = "zero points are added instead of subtracted",
     .applies = has_zero, GEMM_TWIST(zero_added)},
    {.name = "zero-point-missing", .sentence = "zero points are not subtracted",
     .applies = has_zero, GEMM_TWIST(zero_missing)},
    {.name = "zero-point-twice", .sentence = "zero points are subtracted twice",
     .applies = has_zero, .variants = gemm_variants_2, GEMM_TWIST(zero_twice)},
    {.name = "zero-point-after-scale",
     .sentence = "the zero point is subtracted from the scaled weight",
     .applies = has_scaled_zero, .variants = gemm_variants_2, GEMM_TWIST(zero_after_scale)},
    {.name = "zero-point-wraps",
     .sentence = "the difference of code and zero point wraps in the bits of a code",
     .applies = has_int_zero, .variants = gemm_variants_2, GEMM_TWIST(zero_wraps)},
    {.name = "zero-point-of-group-0", .sentence = "all groups use the zero points of the first",
     .applies = has_zero_groups, GEMM_TWIST(zero_of_group_0)},
    {.name = "zero-point-of-group-before",
     .sentence = "every group but the first uses the zero points of the group before it",
     .applies = has_zero_groups, GEMM_TWIST(zero_of_group_before)},
    {.name = "zero-point-of-expert-0", .sentence = "all experts use the zero points of the first",
     .applies = has_expert_zeros, GEMM_TWIST(zero_of_expert_0)},
    {.name = "fp-zero-point-fused",
     .sentence = "the difference of code and floating zero point is not rounded before the scale",
     .applies = has_float_zero, .variants = gemm_variants_2, GEMM_TWIST(zero_fused)},
    {.name = "fp-zero-point-scaled",
     .sentence = "code and floating zero point are scaled and rounded apart, then subtracted",
     .applies = has_float_zero, GEMM_TWIST(zero_scaled_apart)},
};
/* clang-format on */

GEMM_TABLE(gemm_zero_hypotheses, rows);
