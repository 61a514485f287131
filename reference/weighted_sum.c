#include "reference/weighted_sum.h"

#include "reference/fault.h"

#include <math.h>
#include <stddef.h>

bool ref_weighted_sum_skips(const struct ref_weighted_sum *s, int64_t token, int64_t j)
{
    int32_t id;

    if (!s->topk_ids)
        return false;
    id = s->topk_ids[token * s->top_k + j];
    return id < 0 || (s->expert_map && s->expert_map[id] < 0);
}

static const char *check_ids(const struct ref_weighted_sum *s)
{
    if (!s->expert_map)
        return NULL;
    if (!s->topk_ids)
        return "an expert map needs topk_ids";
    for (int64_t i = 0; i < s->tokens * s->top_k; i++)
        if (s->topk_ids[i] >= s->experts)
            return "a topk_id is not below the number of experts";
    return NULL;
}

/* One rounding a slot: a negative product below the least f32 leaves -0, not +0. */
static float fused_sum(const struct ref_weighted_sum *s, int64_t token, int64_t h)
{
    float acc = 0.0f;

    for (int64_t j = 0; j < s->top_k; j++) {
        int64_t slot = token * s->top_k + j;
        bool skips = ref_weighted_sum_skips(s, token, j);

        acc = fmaf(skips ? 0.0f : s->inputs[slot * s->width + h], s->weights[slot], acc);
    }
    return acc;
}

static void sum_token(const struct ref_weighted_sum *s, int64_t token, uint32_t *codes)
{
    for (int64_t h = 0; h < s->width; h++) {
        float acc = s->fused ? fused_sum(s, token, h) : 0.0f;

        for (int64_t j = 0; !s->fused && j < s->top_k; j++) {
            int64_t slot = token * s->top_k + j;
            float product;

            if (ref_weighted_sum_skips(s, token, j))
                continue;
            product = s->inputs[slot * s->width + h] * s->weights[slot];
            acc += product;
            if (REF_FAULT(REFERENCE_SUM_IN_16_BITS))
                acc = (float)dtype_decode(s->t, dtype_encode(s->t, (double)acc, DTYPE_TO_TOP));
        }
        codes[h] = dtype_encode(s->t, (double)acc, DTYPE_TO_TOP);
    }
}

const char *ref_weighted_sum(const struct ref_weighted_sum *s, uint32_t *codes)
{
    const char *problem = check_ids(s);

    if (problem)
        return problem;
    for (int64_t token = 0; token < s->tokens; token++)
        sum_token(s, token, codes + token * s->width);
    return NULL;
}
