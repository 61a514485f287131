/* moe_fused_mul_sum (docs/semantics-ops.md section 9), right and with one mistake. */
#include "harness/explain/ops_sum.h"

#include "harness/explain/ops_seen.h"
#include "harness/kernel/semantics.h"

#include <math.h>
#include <stddef.h>

struct sum {
    const struct ops_twist *twist;
    const struct dtype *t;
    int64_t tokens, k, width;
    const float *x, *weights;
    const int32_t *ids, *map;
    bool fused; /* by rule */
};

static bool is(const struct sum *s, int kind)
{
    return s->twist->kind == kind;
}

static bool counts(const struct sum *s, int64_t slot)
{
    int32_t id;

    if (!s->ids || is(s, SUM_IDS_IGNORED))
        return true;
    id = s->ids[slot];
    if (id < 0 && is(s, SUM_COUNTED_AS_0))
        return s->map[0] >= 0;
    if (id < 0)
        return is(s, SUM_COUNTED);
    if (is(s, SUM_ZERO_LEFT_OUT) && id == 0)
        return false;
    if (!s->map || is(s, SUM_MAP_IGNORED))
        return true;
    return is(s, SUM_GLOBAL) ? s->map[id] == id : s->map[id] >= 0;
}

static int64_t lost_slot(const struct sum *s, int64_t token)
{
    if (is(s, SUM_LOST))
        return s->twist->n < 0 ? s->k + s->twist->n : s->twist->n;
    if (!is(s, SUM_LOST_COUNTED))
        return -1;
    for (int64_t i = 0; i < s->k; i++) {
        const int64_t j = s->twist->n < 0 ? s->k - 1 - i : i;

        if (counts(s, token * s->k + j))
            return j;
    }
    return -1;
}

static float rounded(const struct sum *s, float x)
{
    const struct dtype *t = s->twist->n == 0 ? s->t : dtype_find(s->twist->n == 1 ? "bf16" : "f16");

    return (float)dtype_decode(t, dtype_encode(t, (double)x, DTYPE_TO_TOP));
}

static float weight_of(const struct sum *s, int64_t token, int64_t j)
{
    const int64_t other = token + s->twist->n;
    float w = s->weights[token * s->k + j];

    if (is(s, SUM_WEIGHT_OF_SLOT))
        w = s->weights[token * s->k + (j + s->twist->n + s->k) % s->k];
    if (is(s, SUM_WEIGHT_OF_TOKEN) && other >= 0 && other < s->tokens)
        w = s->weights[other * s->k + j];
    if (is(s, SUM_WEIGHT_SQUARED))
        w *= w;
    return is(s, SUM_WEIGHT_ROUNDED) ? rounded(s, w) : w;
}

static float product(const struct sum *s, float x, float w)
{
    if (is(s, SUM_WEIGHT_TIMES) && s->twist->n == 0)
        return x;
    x *= w;
    if (is(s, SUM_WEIGHT_TIMES) && s->twist->n == 2)
        x *= w;
    return is(s, SUM_NARROW_PRODUCT) ? rounded(s, x) : x;
}

/* Slot j on top of acc. */
static double add(const struct sum *s, double acc, float x, float w)
{
    float sum;

    if (is(s, SUM_WIDE))
        return acc + (double)x * (double)w;
    if (is(s, SUM_FUSED))
        return (double)fmaf(x, w, (float)acc);
    if (s->fused && !is(s, SUM_WEIGHT_TIMES) && !is(s, SUM_NARROW_PRODUCT))
        sum = fmaf(x, w, (float)acc);
    else
        sum = (float)acc + product(s, x, w);
    return (double)(is(s, SUM_NARROW) ? rounded(s, sum) : sum);
}

static float sum_of(const struct sum *s, int64_t token, int64_t column)
{
    const int64_t lost = lost_slot(s, token);
    double acc[2] = {0.0, 0.0};

    for (int64_t i = 0; i < s->k; i++) {
        const int64_t j = is(s, SUM_REVERSED) ? s->k - 1 - i : i, slot = token * s->k + j;
        double *to = &acc[is(s, SUM_PAIRWISE) ? j % 2 : 0];

        if (j != lost && counts(s, slot))
            *to = add(s, *to, s->x[slot * s->width + column], weight_of(s, token, j));
    }
    return is(s, SUM_PAIRWISE) ? (float)acc[0] + (float)acc[1] : (float)acc[0];
}

static bool is_empty(const struct sum *s, int64_t token)
{
    for (int64_t j = 0; j < s->k; j++)
        if (counts(s, token * s->k + j))
            return false;
    return true;
}

static void put_token(const struct sum *s, int64_t token, uint64_t *codes)
{
    const int64_t from = is(s, SUM_ROW_BEFORE) && token ? token - 1 : token;
    const int64_t end = is(s, SUM_TAIL_KEPT) ? s->width / s->twist->n * s->twist->n : s->width;
    const enum ops_rounding how = is(s, SUM_TRUNCATE) ? OPS_TRUNCATED : OPS_TIES_TO_EVEN;

    if (is(s, SUM_EMPTY_KEPT) && is_empty(s, token))
        return;
    for (int64_t i = 0; i < end; i++)
        codes[i] = ops_encode(s->t, (double)sum_of(s, from, i), how, OPS_TO_SPECIAL);
}

/* Is an entry left out anywhere, so that the last slot may not be the last one counted? */
static bool leaves_out(const struct sum *s)
{
    for (int64_t slot = 0; slot < s->tokens * s->k; slot++)
        if (!counts(s, slot))
            return s->k > 1;
    return false;
}

/* Twists that would be another one, or none at all, with these arguments. */
static bool has_meaning(const struct sum *s)
{
    const bool narrow = is(s, SUM_NARROW) || is(s, SUM_NARROW_PRODUCT) || is(s, SUM_WEIGHT_ROUNDED);
    const char *const formats[] = {"f32", "bf16", "f16"};

    if (narrow && s->t == dtype_find(formats[s->twist->n]))
        return false;
    if ((is(s, SUM_COUNTED_AS_0) || is(s, SUM_MAP_IGNORED) || is(s, SUM_IDS_IGNORED) ||
         is(s, SUM_GLOBAL)) &&
        !s->map)
        return false;
    if (is(s, SUM_COUNTED_AS_0) && s->map[0] >= 0)
        return false;
    if (is(s, SUM_LOST_COUNTED) && !leaves_out(s))
        return false;
    return !(is(s, SUM_LOST) && s->twist->n >= 0 && s->twist->n + 1 >= s->k);
}

static bool answer(const struct ops_seen *seen, const struct ops_twist *twist,
                   struct ops_answer *out)
{
    const struct hum_moe_fused_mul_sum_args *a = seen->args;
    struct sum s = {.twist = twist,
                    .t = dtype_find_id(a->outputs.dtype, false),
                    .fused = semantics_has(seen->rules, SEMANTICS_FUSED_SUM),
                    .tokens = a->inputs.shape[0],
                    .k = a->inputs.shape[1],
                    .width = a->inputs.shape[2],
                    .x = ops_values(&a->inputs, out->arena),
                    .weights = a->weights.data,
                    .ids = a->topk_ids.bytes ? a->topk_ids.data : NULL,
                    .map = a->expert_map.bytes ? a->expert_map.data : NULL};

    if (!s.x || !has_meaning(&s))
        return false;
    for (int64_t token = 0; seen->outs && token < s.tokens; token++)
        if (ops_asked(out, token))
            put_token(&s, token, out->codes[0] + token * s.width);
    return true;
}

static enum hum_code run(const struct hum_ops *ops, void *handle, const void *args,
                         char reason[HUM_REASON_BYTES])
{
    return ops->moe_fused_mul_sum(handle, args, reason);
}

#define AT(field) offsetof(struct hum_moe_fused_mul_sum_args, field)

static const struct ops_tensor tensors[] = {
    {"inputs", AT(inputs), OPS_READ},     {"weights", AT(weights), OPS_READ},
    {"topk_ids", AT(topk_ids), OPS_READ}, {"expert_map", AT(expert_map), OPS_READ},
    {"outputs", AT(outputs), OPS_WRITE},
};

const struct ops_operation ops_moe_sum = {.name = "moe_fused_mul_sum",
                                          .args_size = sizeof(struct hum_moe_fused_mul_sum_args),
                                          .tensors = tensors,
                                          .tensor_count = 5,
                                          .run = run,
                                          .by_rows = true,
                                          .answer = answer};
