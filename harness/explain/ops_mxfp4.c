/* process_mxfp4 (docs/semantics-ops.md section 4), right and with one mistake. */
#include "harness/explain/ops_families.h"
#include "harness/explain/ops_table.h"
#include "reference/mxfp4.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* clang-format off */
enum {
    ROUND = 1,      /* requantized values are rounded in another way */
    MINUS_ZERO,     /* -0 stays where a group is not requantized; n 1: where it is, too */
    RANGE_E4M3,     /* 11 whatever the activations */
    RANGE_ADD,      /* the range is n larger */
    OF_TENSOR,      /* extremes of the whole tensor although by rows */
    OF_ROW,         /* extremes of each row (factor of the first) although of the tensor */
    FACTOR,         /* the factor is 2^n times too large */
    OFFSET,         /* the stored scale is n larger */
    DELTA,          /* groups are shifted by n more */
    WRAP,           /* the stored scale is s - base modulo 256 */
    NIBBLES,        /* the two codes of each pair are exchanged */
    SKIP_LAST,      /* the last group takes no part in the extremes */
    NEIGHBOUR,      /* codes are requantized by the scale of group g + n of the row */
    NOT_REQUANTIZED, /* codes stay; scales are stored as they must be */
    BASE_LOWEST,    /* base is lo */
    BASE_RANGE,     /* base is hi - R although hi - lo is less */
};
/* clang-format on */

/* From 5 on all magnitudes fall below half the smallest number. */
enum { DELTAS = 7 };

struct mx {
    const struct ops_twist *twist;
    int64_t rows, groups, size;
    int range;
    const uint8_t *scales, *nibbles;
    uint32_t map[DELTAS][16]; /* a code shifted by so many binades, by the last of them or more */
};

static bool is(const struct mx *m, int kind)
{
    return m->twist->kind == kind;
}

static int base_of(const struct mx *m, const uint8_t *scales, int64_t n)
{
    int hi = scales[0], lo = scales[0];

    for (int64_t i = 1; i < n - is(m, SKIP_LAST); i++) {
        hi = scales[i] > hi ? scales[i] : hi;
        lo = scales[i] < lo ? scales[i] : lo;
    }
    if (is(m, BASE_LOWEST))
        return lo;
    if (is(m, BASE_RANGE))
        return hi - m->range;
    return hi - (hi - lo < m->range ? hi - lo : m->range);
}

static uint32_t requantize(const struct mx *m, uint32_t code, int delta)
{
    const struct dtype *t = dtype_find("e2m1");
    const uint32_t sign = code & 8u;
    double x;

    if (is(m, NOT_REQUANTIZED))
        return code;
    if (is(m, MINUS_ZERO) && code == 8u && (!delta || m->twist->n))
        return code;
    if (!is(m, ROUND))
        return ref_mxfp4_requantize((uint8_t)code, delta);
    x = ops_magnitude(t, ldexp(dtype_decode(t, code & 7u), -delta), m->twist->rounding);
    return x > 0.0 ? (uint32_t)x | sign : 0u;
}

/* The scale that decides how far group i is shifted. */
static int shift_of(const struct mx *m, int64_t i, int base)
{
    const int64_t g = i % m->groups + m->twist->n;
    const bool other = is(m, NEIGHBOUR) && g >= 0 && g < m->groups;
    const int s = m->scales[other ? i + m->twist->n : i];
    const int delta = s < base ? base - s : 0;

    return is(m, DELTA) && delta + m->twist->n > 0 ? delta + m->twist->n : is(m, DELTA) ? 0 : delta;
}

static void put_group(const struct mx *m, int64_t i, int base, struct ops_answer *out)
{
    const int delta = shift_of(m, i, base), s = m->scales[i];
    int stored = s < base && !is(m, WRAP) ? 0 : s - base;

    if (is(m, OFFSET))
        stored += m->twist->n;
    for (int64_t j = i * m->size; j < (i + 1) * m->size; j++)
        out->codes[0][is(m, NIBBLES) ? j ^ 1 : j] =
            m->map[delta < DELTAS ? delta : DELTAS - 1][ops_element(m->nibbles, 4, j)];
    out->codes[1][i] = (uint32_t)stored & 255u;
}

static void put_factor(const struct mx *m, int64_t at, int base, struct ops_answer *out)
{
    const float factor = (float)ldexp(1.0, base - 127 + (is(m, FACTOR) ? m->twist->n : 0));

    memcpy(&out->codes[2][at], &factor, sizeof factor);
}

static int range_of(const struct hum_process_mxfp4_args *a, const struct ops_twist *twist)
{
    const int own = a->a_dtype == HUM_INT8 && twist->kind != RANGE_E4M3 ? 3 : 11;
    const int range = a->range ? a->range : own;

    return twist->kind == RANGE_ADD ? range + twist->n : range;
}

static bool answer(const struct ops_seen *s, const struct ops_twist *twist, struct ops_answer *out)
{
    const struct hum_process_mxfp4_args *a = s->args;
    struct mx m = {.twist = twist,
                   .rows = a->scale.shape[0],
                   .groups = a->scale.shape[1],
                   .range = range_of(a, twist),
                   .scales = a->scale.data,
                   .nibbles = a->weight.data};
    const bool by_row = (a->per_row && !is(&m, OF_TENSOR)) || is(&m, OF_ROW);
    int base = 0;

    m.size = a->weight.shape[1] * 8 / m.groups;
    if (m.range < 0)
        return false;
    for (int i = 0; i < DELTAS * 16; i++)
        m.map[i / 16][i % 16] = requantize(&m, (uint32_t)i % 16, i / 16);
    for (int64_t i = 0; i < m.rows * m.groups; i++) {
        const int64_t row = i / m.groups;

        if (i % m.groups == 0 && (by_row || row == 0))
            base = base_of(&m, m.scales + i, by_row ? m.groups : m.rows * m.groups);
        if (i % m.groups == 0 && (a->per_row || row == 0))
            put_factor(&m, row, base, out);
        if (ops_asked(out, row))
            put_group(&m, i, base, out);
    }
    return true;
}

static void shape(const void *args, struct ops_output *out)
{
    const struct hum_process_mxfp4_args *a = args;

    if (!strcmp(out->name, "weight")) {
        out->type = dtype_find("e2m1");
        out->bits = 4;
        out->width = a->weight.shape[1] * 8;
    }
    if (!strcmp(out->name, "factor"))
        out->width = 1;
    if (!strcmp(out->name, "scale"))
        out->type = NULL;
}

static enum hum_code run(const struct hum_ops *ops, void *handle, const void *args,
                         char reason[HUM_REASON_BYTES])
{
    return ops->process_mxfp4(handle, args, reason);
}

static const struct ops_tensor tensors[] = {
    {"weight", offsetof(struct hum_process_mxfp4_args, weight), OPS_CHANGE},
    {"scale", offsetof(struct hum_process_mxfp4_args, scale), OPS_CHANGE},
    {"factor", offsetof(struct hum_process_mxfp4_args, factor), OPS_WRITE},
};

const struct ops_operation ops_process_mxfp4 = {.name = "process_mxfp4",
                                                .args_size = sizeof(struct hum_process_mxfp4_args),
                                                .tensors = tensors,
                                                .tensor_count = 3,
                                                .run = run,
                                                .shape = shape,
                                                .by_rows = true,
                                                .answer = answer};

/* ---- hypotheses ------------------------------------------------------------------------------ */

#define ROW(name, kind, rounding, n, sentence) \
    OPS_ROW(name, ops_process_mxfp4, kind, rounding, n, sentence)

/* clang-format off */
static const struct hypothesis rows[] = {
    ROW("ties-to-even", ROUND, OPS_TIES_TO_EVEN, 0, "a tie goes to the even code"),
    ROW("ties-toward-zero", ROUND, OPS_TIES_TO_ZERO, 0, "a tie goes to the code nearer zero"),
    ROW("truncation", ROUND, OPS_TRUNCATED, 0, "requantized values are cut off"),
    ROW("minus-zero-kept", MINUS_ZERO, 0, 0, "-0 stays -0 in groups that are not requantized"),
    ROW("minus-zero-kept-everywhere", MINUS_ZERO, 0, 1, "-0 stays -0"),
    ROW("range-of-e4m3", RANGE_E4M3, 0, 0,
        "the range is that of float8e4m3 activations whatever they are"),
    ROW("range-plus-1", RANGE_ADD, 0, 1, "the range is one binade too large"),
    ROW("range-minus-1", RANGE_ADD, 0, -1, "the range is one binade too small"),
    ROW("base-of-tensor", OF_TENSOR, 0, 0, "the extremes are those of the tensor, not of a row"),
    ROW("base-of-row", OF_ROW, 0, 0, "the extremes are those of a row, not of the tensor"),
    ROW("e8m0-bias-128", FACTOR, 0, -1, "the factor is half of what it should be"),
    ROW("e8m0-bias-126", FACTOR, 0, 1, "the factor is twice what it should be"),
    ROW("scale-plus-1", OFFSET, 0, 1, "stored scales are one binade too large"),
    ROW("scale-minus-1", OFFSET, 0, -1, "stored scales are one binade too small"),
    ROW("shift-plus-1", DELTA, 0, 1, "groups are requantized one binade too far"),
    ROW("shift-minus-1", DELTA, 0, -1, "groups are requantized one binade too little"),
    ROW("code-wraps", WRAP, 0, 0, "the stored scale of a requantized group is its negative offset "
        "modulo 256"),
    ROW("nibble-order", NIBBLES, 0, 0, "the two codes of each pair are exchanged"),
    ROW("extremes-skip-last", SKIP_LAST, 0, 0, "the last group takes no part in the extremes"),
    ROW("group-index-minus-1", NEIGHBOUR, 0, -1,
        "codes are requantized by the scale of the group before"),
    ROW("group-index-plus-1", NEIGHBOUR, 0, 1,
        "codes are requantized by the scale of the next group"),
    ROW("not-requantized", NOT_REQUANTIZED, 0, 0, "codes stay what they were"),
    ROW("base-is-lowest", BASE_LOWEST, 0, 0, "the base is the smallest scale"),
    ROW("base-without-lowest", BASE_RANGE, 0, 0,
        "the base is the largest scale less the range, whatever the smallest is"),
};
/* clang-format on */

static const struct hypotheses all = {rows, sizeof rows / sizeof rows[0]};
static const struct hypotheses *const tables[] = {&all, NULL};

const struct explain_family explain_process_mxfp4 = {
    .run = ops_run, .vary = ops_vary, .locate = ops_locate, .hypotheses = tables};
