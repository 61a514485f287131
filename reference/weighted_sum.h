/* weighted_sum.h - the sum of a token's expert rows under its routing weights, in the order of
 * the slots.
 *
 * The oracle of `moe_fused_mul_sum` (docs/semantics-ops.md section 9): acc = +0, then for each
 * slot j that is not left out acc = RN(acc + RN(x w)), f32; out = RN_t(acc). One right answer,
 * bit for bit (any NaN for NaN). Arrays are row-major and borrowed. */
#ifndef REFERENCE_WEIGHTED_SUM_H
#define REFERENCE_WEIGHTED_SUM_H

#include "reference/dtype.h"

struct ref_weighted_sum {
    const struct dtype *t; /* of the output (and inputs): f16, bf16 or f32 */
    int64_t tokens, top_k, width;
    const float *inputs;       /* tokens x top_k x width, exact values */
    const float *weights;      /* tokens x top_k */
    const int32_t *topk_ids;   /* tokens x top_k; NULL: nothing is left out */
    const int32_t *expert_map; /* experts; NULL: none. Only with topk_ids */
    int64_t experts;

    /* A rule of a provider (docs/semantics-rules.md): acc = fma(x, w, acc); a slot that is left
     * out counts as x = +0 with its own weight. */
    bool fused;
};

/* Is the entry in slot j of a token left out: its id is negative, or maps to a negative index? */
bool ref_weighted_sum_skips(const struct ref_weighted_sum *s, int64_t token, int64_t j);

/* NULL and codes (tokens x width, of t) are written; or what is wrong with the ids: one is beyond
 * expert_map. */
const char *ref_weighted_sum(const struct ref_weighted_sum *s, uint32_t *codes);

#endif
