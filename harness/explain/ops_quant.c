/* quant_weight (docs/semantics-ops.md section 3), right and with one mistake. */
#include "harness/explain/ops_families.h"
#include "harness/explain/ops_table.h"
#include "harness/kernel/semantics.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* clang-format off */
enum {
    ROUND = 1,       /* quotients are rounded in another way */
    WRAP,            /* codes beyond the largest wrap */
    SATURATE,        /* and where they must wrap, they do not */
    NARROW,          /* integers saturate to -M */
    CLAMP_EARLY,     /* rint(v inv) limited, then the zero point added: to signed codes and limited
                      * again (n 0), to codes and then taken modulo 2^b (1) */
    ZERO_APART,      /* rint(v inv) + rint(zp), then limited */
    ZERO_MISSING,
    ZERO_ADD,        /* n is added to the zero point, for data and storage */
    ZERO_ROUND,      /* the integer zero point is rounded in another way */
    ZERO_LOST,       /* the code of -0 becomes +0; n 0: where the quotient is -0 only */
    SKIP,            /* extremes without element n (from the end: -1) */
    NEIGHBOUR,       /* data use the scale of group g + n; where there is none, their own */
    STORED,          /* the scale that is stored is that of group g + n; likewise */
    BOTH,            /* data and storage */
    ROW_SCALE,       /* the extremes are those of the row */
    DIVIDE,          /* v / scale for v RN(1 / scale) */
    TOP_RECIPROCAL,  /* absmax RN(1 / divisor) for absmax / divisor */
    E8M0,            /* scale := power of two below, nearest, above */
    RULE_SCALE,      /* the scale by the other rule */
    DIVISORS_ALIKE,  /* integers: M for both sides */
    FLOOR_LOST,      /* no 1e-30 */
    ZERO_GROUP,      /* the scale of a group of zeros is n; -1: NaN, -2: NaN is stored */
    POSITIVE_ONLY,   /* lo takes no part */
    ALL_CODES,       /* top is the all-ones code of float8e4m3 and float8e5m2 */
    NO_NEGATIVE,     /* the sign of a negative scale is lost in storage */
    NEVER_NEGATIVE,  /* allow_negative_scale is ignored */
    TWOS_COMPLEMENT, /* integers without zero point are not offset binary */
    NAN_SPREADS,     /* a NaN makes the scale NaN */
    ROW_BEFORE,      /* everything of row r - 1 */
};
/* clang-format on */

struct quant {
    const struct hum_quant_weight_args *a;
    const struct ops_twist *twist;
    const struct dtype *t;
    int64_t rows, cols, groups, size;
    const float *v;
    int bits;
    bool newest_scale, newest_codes;
    uint32_t rules; /* of the provider */
};

struct group {
    float scale, inverse, zero, least;
    uint32_t stored;
};

static bool is(const struct quant *q, int kind)
{
    return q->twist->kind == kind;
}

/* ---- scales ---------------------------------------------------------------------------------- */

static void extremes(const struct quant *q, const float *v, int64_t n, float *hi, float *lo)
{
    const float least = is(q, FLOOR_LOST) ? 0.0f : 1e-30f;
    const int64_t skipped = !is(q, SKIP) ? n : q->twist->n < 0 ? n + q->twist->n : q->twist->n;

    *hi = least;
    *lo = -least;
    for (int64_t i = 0; i < n; i++) {
        if (i == skipped)
            continue;
        if (is(q, NAN_SPREADS) && isnan(v[i]))
            *hi = *lo = v[i];
        if (v[i] > *hi)
            *hi = v[i];
        if (v[i] < *lo && !is(q, POSITIVE_ONLY))
            *lo = v[i];
    }
}

static float top_of(const struct quant *q)
{
    if (!is(q, ALL_CODES) && q->t->bits == 8 && q->t->exp_bits == 4)
        return 448.0f;
    if (!is(q, ALL_CODES) && q->t->bits == 8 && q->t->exp_bits == 5)
        return 57344.0f;
    return (float)dtype_max(q->t);
}

static float quotient(const struct quant *q, float x, float divisor)
{
    if (is(q, TOP_RECIPROCAL))
        return x * (1.0f / divisor);
    return x / divisor;
}

static float larger(float x, float y)
{
    return x > y || isnan(x) ? x : y;
}

/* Rule sides-by-size: divisors are binary64. */
static float scale_by_size(const struct quant *q, float hi, float lo)
{
    const double less = q->bits == 1 ? 0.499 : (double)((1 << (q->bits - 1)) - 1);
    const float first = (float)((double)larger(hi, -lo) / (less + 1.0));
    const float scale = larger(first, (float)((double)fminf(hi, -lo) / less));

    return q->a->allow_negative_scale && !q->a->use_e8m0_scale && hi > -lo && !is(q, NEVER_NEGATIVE)
               ? -scale
               : scale;
}

static float integer_scale(const struct quant *q, float hi, float lo)
{
    const float m = (float)((1 << (q->bits - 1)) - 1);
    const bool whole = q->newest_scale && m > 0.0f;
    const float less = m + (whole ? 0.0f : 0.499f);
    const float more = is(q, DIVISORS_ALIKE) ? less : m + (whole ? 1.0f : 1.499f);

    if (semantics_has(q->rules, SEMANTICS_SIDES_BY_SIZE) && !is(q, DIVISORS_ALIKE))
        return scale_by_size(q, hi, lo);
    if (q->a->allow_negative_scale && !q->a->use_e8m0_scale && hi > -lo && !is(q, NEVER_NEGATIVE))
        return -larger(quotient(q, hi, more), quotient(q, -lo, less));
    return larger(quotient(q, hi, less), quotient(q, -lo, more));
}

static float raw_scale(const struct quant *q, float hi, float lo)
{
    if (q->t->is_float)
        return quotient(q, larger(hi, -lo), top_of(q));
    if (q->a->has_zero_point)
        return quotient(q, hi - lo, (float)((1 << q->bits) - 1));
    return integer_scale(q, hi, lo);
}

/* The power of two: above, below, or nearest in value (a tie goes up). */
static float power_of_two(const struct quant *q, float x)
{
    uint32_t bits;

    if (!is(q, E8M0))
        return q->newest_scale ? ref_e8m0_round_up(x) : x;
    if (q->twist->rounding == OPS_UP)
        return ref_e8m0_round_up(x);
    memcpy(&bits, &x, sizeof bits);
    if (q->twist->rounding == OPS_TIES_AWAY)
        bits += 0x400000u;
    bits &= 0x7f800000u;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static float zero_point(const struct quant *q, float lo, float scale)
{
    const float last = (float)((1 << q->bits) - 1);
    float zero = -lo / scale;

    if (!q->a->is_fp_zero_point && !isnan(zero)) {
        zero = (float)ops_round((double)zero,
                                is(q, ZERO_ROUND) ? q->twist->rounding : OPS_TIES_TO_EVEN);
        zero = zero > last ? last : zero;
    }
    return is(q, ZERO_ADD) ? zero + (float)q->twist->n : zero;
}

static bool all_zero(const float *v, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!(fabsf(v[i]) <= 0.0f))
            return false;
    return true;
}

static struct group make_group(const struct quant *q, const float *v, int64_t n)
{
    struct group g = {.scale = 1.0f, .inverse = 1.0f};
    float hi, lo;

    if (!q->a->has_scale)
        return g;
    extremes(q, v, n, &hi, &lo);
    g.scale = raw_scale(q, hi, lo);
    if (q->a->use_e8m0_scale)
        g.scale = power_of_two(q, g.scale);
    if (is(q, ZERO_GROUP) && q->twist->n > -2 && all_zero(v, n))
        g.scale = q->twist->n < 0 ? (float)NAN : (float)q->twist->n;
    g.inverse = 1.0f / g.scale;
    if (q->a->has_zero_point)
        g.zero = zero_point(q, lo, g.scale);
    g.least = q->a->is_fp_zero_point ? lo : g.zero * -g.scale;
    memcpy(&g.stored, &g.scale, sizeof g.stored);
    if (is(q, NO_NEGATIVE))
        g.stored &= 0x7fffffffu;
    if (is(q, ZERO_GROUP) && q->twist->n == -2 && all_zero(v, n))
        g.stored = q->a->use_e8m0_scale ? 0x7f800000u : 0x7fc00000u;
    if (q->a->use_e8m0_scale)
        g.stored = isnan(g.scale) ? 255u : g.stored >> 23 & 255u;
    return g;
}

/* ---- codes ----------------------------------------------------------------------------------- */

static enum ops_rounding rounding(const struct quant *q)
{
    if (is(q, ROUND))
        return q->twist->rounding;
    return q->t->is_float ? OPS_TIES_TO_ZERO : OPS_TIES_TO_EVEN;
}

static uint32_t modulo(double x, int bits)
{
    if (!(x >= -2147483648.0 && x < 4294967296.0))
        return REF_CODE_ANY;
    return (uint32_t)(int64_t)x & ((1u << bits) - 1u);
}

static uint32_t float_code(const struct quant *q, float y)
{
    const double top = (double)top_of(q);
    const bool wraps = is(q, WRAP) || (!q->newest_codes && !is(q, SATURATE));
    const uint32_t sign = signbit(y) ? 1u << (q->bits - 1) : 0u;
    double x = fabs((double)y);

    if (isnan(y) || (wraps && isinf(y)))
        return REF_CODE_ANY;
    if (!wraps && x > top)
        x = top;
    x = fabs(ops_magnitude(q->t, signbit(y) ? -x : x, rounding(q)));
    if (!(x < 0x1p31))
        return REF_CODE_ANY;
    if (is(q, ZERO_LOST) && x <= 0.0 && (q->twist->n || (y <= 0.0f && y >= 0.0f)))
        return 0;
    return modulo(x + (double)sign, q->bits);
}

static uint32_t clamped(double x, double low, double high)
{
    if (isnan(x))
        return REF_CODE_ANY;
    return (uint32_t)(x < low ? low : x > high ? high : x);
}

static uint32_t asymmetric_code(const struct quant *q, const struct group *g, float y)
{
    const double last = ldexp(1.0, q->bits) - 1.0, half = (last + 1.0) / 2.0;
    double x = (double)y;

    if (is(q, ZERO_APART))
        return clamped(rint(x) + rint((double)g->zero), 0.0, last);
    if (is(q, CLAMP_EARLY) && q->twist->n) {
        x = isnan(x) ? x : fmin(fmax(rint(x), 0.0), last);
        return modulo(rint((double)((float)x + g->zero)), q->bits);
    }
    if (is(q, CLAMP_EARLY)) {
        x = isnan(x) ? x : fmin(fmax(rint(x), -half), half - 1.0);
        return clamped(x + rint((double)g->zero), 0.0, last);
    }
    if (!is(q, ZERO_MISSING))
        x = (double)(y + g->zero);
    x = ops_round(x, rounding(q));
    return is(q, WRAP) ? modulo(x, q->bits) : clamped(x, 0.0, last);
}

static uint32_t symmetric_code(const struct quant *q, float y)
{
    const double half = ldexp(1.0, q->bits - 1), x = ops_round((double)y, rounding(q));
    const bool wraps = is(q, WRAP) || (!q->newest_codes && !is(q, SATURATE));
    uint32_t code;

    if (wraps)
        return !(x >= -2147483648.0 && x < 2147483648.0) ? REF_CODE_ANY : modulo(x + half, q->bits);
    code = clamped(x + half, is(q, NARROW) ? 1.0 : 0.0, 2.0 * half - 1.0);
    if (code == REF_CODE_ANY || semantics_has(q->rules, SEMANTICS_TWOS_COMPLEMENT))
        return code - (q->t->is_signed && code != REF_CODE_ANY ? (uint32_t)half : 0u);
    return is(q, TWOS_COMPLEMENT) ? code ^ (uint32_t)half : code;
}

static uint32_t code_of(const struct quant *q, float v, const struct group *g)
{
    const bool adds = is(q, ZERO_APART) || is(q, CLAMP_EARLY) || is(q, ZERO_MISSING);
    const bool from_least =
        q->a->has_zero_point && semantics_has(q->rules, SEMANTICS_ZERO_ON_MINIMUM) && !adds;
    const float x = from_least ? v - g->least : v;
    const float y = is(q, DIVIDE) ? x / g->scale : x * g->inverse;
    const int apart = q->t->is_float ? 128 - (1 << (q->t->exp_bits - 1)) : 0;

    if (q->t->is_float)
        return float_code(q, semantics_has(q->rules, SEMANTICS_SCALED_QUOTIENT)
                                 ? ldexpf(ldexpf(y, -apart), apart)
                                 : y);
    if (from_least)
        return asymmetric_code(q, &(struct group){.zero = 0.0f}, y);
    return q->a->has_zero_point ? asymmetric_code(q, g, y) : symmetric_code(q, y);
}

/* ---- the call -------------------------------------------------------------------------------- */

static void make_groups(const struct quant *q, const struct ops_answer *asked, struct group *out)
{
    for (int64_t i = 0; i < q->rows * q->groups; i++) {
        const int64_t row = i / q->groups;

        if (!ops_asked(asked, row))
            continue;
        out[i] = is(q, ROW_SCALE) ? make_group(q, q->v + row * q->cols, q->cols)
                                  : make_group(q, q->v + i * q->size, q->size);
    }
}

/* The group n further on in the row, if there is one. */
static int64_t neighbour(const struct quant *q, int64_t i, bool twisted)
{
    const int64_t g = i % q->groups + q->twist->n;

    return twisted && g >= 0 && g < q->groups ? i + q->twist->n : i;
}

static void put_group(const struct quant *q, const struct group *groups, int64_t i,
                      struct ops_answer *out)
{
    const struct group *used = &groups[neighbour(q, i, is(q, NEIGHBOUR) || is(q, BOTH))];
    const struct group *kept = &groups[neighbour(q, i, is(q, STORED) || is(q, BOTH))];
    int next = 1;

    for (int64_t j = i * q->size; j < (i + 1) * q->size; j++)
        out->codes[0][j] = ops_code(code_of(q, q->v[j], used));
    if (q->a->has_scale)
        out->codes[next++][i] = kept->stored;
    if (!q->a->has_zero_point)
        return;
    memcpy(&out->codes[next][i], &kept->zero, sizeof kept->zero);
    if (isnan(kept->zero) && !q->a->is_fp_zero_point)
        out->codes[next][i] = OPS_OPEN;
}

/* Every row gets what the row before it should have. */
static void shift_rows(const struct ops_seen *s, const struct quant *q, struct ops_answer *out)
{
    for (int i = 0; i < s->outs; i++) {
        const int64_t row = s->out[i].count / q->rows;

        memmove(out->codes[i] + row, out->codes[i],
                (size_t)(s->out[i].count - row) * sizeof *out->codes[i]);
    }
}

/* Sums with the zero point that are below 0 are limited anyway: twists that differ there only are
 * others under another name. */
static bool has_meaning(const struct quant *q)
{
    const enum ops_rounding how = q->twist->rounding;

    return !(is(q, ROUND) && q->a->has_zero_point && (how == OPS_DOWN || how == OPS_TIES_UP));
}

static bool answer(const struct ops_seen *s, const struct ops_twist *twist, struct ops_answer *out)
{
    const struct hum_quant_weight_args *a = s->args;
    const bool newest = a->rule == HUM_QUANT_RULE_2026_08;
    struct quant q = {.a = a,
                      .twist = twist,
                      .t = dtype_find_id(a->target_dtype, true),
                      .rows = a->inputs.shape[0],
                      .cols = a->inputs.shape[1],
                      .bits = hum_dtype_bits(a->target_dtype),
                      .newest_scale = newest != (twist->kind == RULE_SCALE),
                      .newest_codes = newest,
                      .rules = s->rules};
    struct group *groups;

    q.t = q.t ? q.t : dtype_find_id(a->target_dtype, false);
    q.size = a->group_size ? a->group_size : q.cols;
    q.groups = q.cols / q.size;
    q.v = ops_values(&a->inputs, out->arena);
    groups = arena_alloc(out->arena, (size_t)(q.rows * q.groups) + 1, sizeof *groups);
    if (!q.t || !q.v || !groups || !has_meaning(&q))
        return false;
    if (is(&q, ROW_BEFORE)) /* rows beside those asked for are needed, too */
        out->rows = NULL;
    make_groups(&q, out, groups);
    for (int64_t i = 0; i < q.rows * q.groups; i++)
        if (ops_asked(out, i / q.groups))
            put_group(&q, groups, i, out);
    if (is(&q, ROW_BEFORE) && q.rows)
        shift_rows(s, &q, out);
    return true;
}

#define AT(field) offsetof(struct hum_quant_weight_args, field)

static const struct ops_tensor tensors[] = {
    {"inputs", AT(inputs), OPS_READ},
    {"codes", AT(codes), OPS_WRITE},
    {"scale", AT(scale), OPS_WRITE},
    {"zero_point", AT(zero_point), OPS_WRITE},
};

static enum hum_code run(const struct hum_ops *ops, void *handle, const void *args,
                         char reason[HUM_REASON_BYTES])
{
    return ops->quant_weight(handle, args, reason);
}

const struct ops_operation ops_quant_weight = {.name = "quant_weight",
                                               .args_size = sizeof(struct hum_quant_weight_args),
                                               .tensors = tensors,
                                               .tensor_count = 4,
                                               .run = run,
                                               .by_rows = true,
                                               .answer = answer};

/* ---- hypotheses ------------------------------------------------------------------------------ */

#define ROW(name, kind, rounding, n, sentence) \
    OPS_ROW(name, ops_quant_weight, kind, rounding, n, sentence)

/* clang-format off */
static const struct hypothesis rows[] = {
    ROW("ties-toward-zero", ROUND, OPS_TIES_TO_ZERO, 0,
        "a quotient in the middle of two codes goes to the one nearer zero"),
    ROW("ties-away-from-zero", ROUND, OPS_TIES_AWAY, 0,
        "a quotient in the middle of two codes goes to the one farther from zero"),
    ROW("ties-to-even", ROUND, OPS_TIES_TO_EVEN, 0,
        "a quotient in the middle of two codes goes to the even one"),
    ROW("ties-up", ROUND, OPS_TIES_UP, 0,
        "a quotient in the middle of two codes goes to the larger one: floor(x + 1/2)"),
    ROW("truncation", ROUND, OPS_TRUNCATED, 0, "quotients are cut off toward zero"),
    ROW("rounds-down", ROUND, OPS_DOWN, 0, "quotients are rounded down: floor(x)"),
    ROW("rounds-up", ROUND, OPS_UP, 0, "quotients are rounded up: ceil(x)"),
    ROW("code-wraps", WRAP, 0, 0, "codes beyond the largest wrap instead of saturating"),
    ROW("code-saturates", SATURATE, 0, 0, "codes beyond the largest saturate instead of wrapping"),
    ROW("narrow-range", NARROW, 0, 0, "the lowest code of integers is never given"),
    ROW("clamp-before-zero-point", CLAMP_EARLY, 0, 1,
        "quotients are limited to codes before the zero point is added, sums are not"),
    ROW("signed-clamp-before-zero-point", CLAMP_EARLY, 0, 0,
        "quotients are limited to signed codes before the zero point is added"),
    ROW("zero-point-after-rounding", ZERO_APART, 0, 0,
        "quotient and zero point are rounded apart and added then"),
    ROW("zero-point-missing", ZERO_MISSING, 0, 0, "the zero point is not added to the codes"),
    ROW("zero-point-plus-1", ZERO_ADD, 0, 1, "the zero point is one too large"),
    ROW("zero-point-minus-1", ZERO_ADD, 0, -1, "the zero point is one too small"),
    ROW("zero-point-truncated", ZERO_ROUND, OPS_TRUNCATED, 0, "the zero point is cut off"),
    ROW("zero-point-rounded-up", ZERO_ROUND, OPS_UP, 0, "the zero point is rounded up"),
    ROW("zero-point-ties-away", ZERO_ROUND, OPS_TIES_AWAY, 0,
        "the zero point is rounded with ties away from zero"),
    ROW("minus-zero-lost", ZERO_LOST, 0, 0, "-0 becomes the code of +0"),
    ROW("negative-zero-code-lost", ZERO_LOST, 0, 1,
        "whatever is rounded to -0 becomes the code of +0"),
    ROW("absmax-skips-last", SKIP, 0, -1, "the extremes leave out the last element of a group"),
    ROW("absmax-skips-first", SKIP, 0, 0, "the extremes leave out the first element of a group"),
    ROW("group-index-minus-1", NEIGHBOUR, 0, -1,
        "data are encoded with the scale of the group before"),
    ROW("group-index-plus-1", NEIGHBOUR, 0, 1, "data are encoded with the scale of the next group"),
    ROW("stored-scale-index-minus-1", STORED, 0, -1, "the scale of the group before is stored"),
    ROW("stored-scale-index-plus-1", STORED, 0, 1, "the scale of the next group is stored"),
    ROW("scale-index-minus-1", BOTH, 0, -1, "the scale of the group before is used and stored"),
    ROW("scale-index-plus-1", BOTH, 0, 1, "the scale of the next group is used and stored"),
    ROW("scale-of-row", ROW_SCALE, 0, 0, "all groups have the scale of the row"),
    ROW("division-for-reciprocal", DIVIDE, 0, 0,
        "data are divided by the scale instead of multiplied by its rounded reciprocal"),
    ROW("reciprocal-of-top", TOP_RECIPROCAL, 0, 0,
        "the extreme is multiplied by a rounded reciprocal instead of divided"),
    ROW("e8m0-rounds-down", E8M0, OPS_DOWN, 0, "e8m0 scales are cut off to a power of two"),
    ROW("e8m0-rounds-up", E8M0, OPS_UP, 0, "e8m0 scales are rounded up to a power of two"),
    ROW("e8m0-rounds-nearest", E8M0, OPS_TIES_AWAY, 0,
        "e8m0 scales are rounded to the nearest power of two"),
    ROW("scale-by-other-rule", RULE_SCALE, 0, 0, "scales follow the other generation's rule"),
    ROW("divisors-alike", DIVISORS_ALIKE, 0, 0,
        "both sides are divided by the largest positive code"),
    ROW("scale-floor-lost", FLOOR_LOST, 0, 0, "a scale may be 0: the floor of 1e-30 is missing"),
    ROW("zero-group-scale-nan", ZERO_GROUP, 0, -1, "the scale of a group of zeros is NaN"),
    ROW("zero-group-scale-stored-nan", ZERO_GROUP, 0, -2,
        "the scale of a group of zeros is stored as NaN"),
    ROW("zero-group-scale-0", ZERO_GROUP, 0, 0, "the scale of a group of zeros is 0"),
    ROW("zero-group-scale-1", ZERO_GROUP, 0, 1, "the scale of a group of zeros is 1"),
    ROW("absmax-without-negatives", POSITIVE_ONLY, 0, 0,
        "negative values take no part in the extremes"),
    ROW("top-is-all-ones", ALL_CODES, 0, 0,
        "the scale aims at the all-ones code instead of the format's largest number"),
    ROW("scale-sign-lost", NO_NEGATIVE, 0, 0, "negative scales are stored without their sign"),
    ROW("negative-scale-ignored", NEVER_NEGATIVE, 0, 0, "no scale is negative"),
    ROW("twos-complement", TWOS_COMPLEMENT, 0, 0,
        "integer codes are two's complement instead of offset binary"),
    ROW("nan-in-scale", NAN_SPREADS, 0, 0, "a NaN makes the scale of its group NaN"),
    ROW("row-minus-1", ROW_BEFORE, 0, 0, "rows after the first hold the results of the row before"),
};
/* clang-format on */

static const struct hypotheses all = {rows, sizeof rows / sizeof rows[0]};
static const struct hypotheses *const tables[] = {&all, NULL};

const struct explain_family explain_quant_weight = {
    .run = ops_run, .vary = ops_vary, .locate = ops_locate, .hypotheses = tables};
