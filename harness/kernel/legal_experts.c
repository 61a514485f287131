/* Rules about products with experts (docs/semantics.md section 10). */
#include "harness/kernel/layer.h"
#include "harness/kernel/legal_parts.h"
#include "harness/kernel/words.h"

static bool is_dense(const int64_t *v)
{
    return v[AX_GEMM_TYPE] == GEMM_DENSE;
}

bool legal_experts(const int64_t *v)
{
    return is_dense(v) == (v[AX_EXPERTS] == 0);
}

bool legal_top_k(const int64_t *v)
{
    return v[AX_TOP_K] == 1 || (v[AX_GEMM_TYPE] == GEMM_INDEXED && v[AX_TOP_K] <= v[AX_EXPERTS]);
}

bool legal_routing(const int64_t *v)
{
    return is_dense(v) == (v[AX_ROUTING] == ROUTING_NONE);
}

bool legal_routing_duplicate(const int64_t *v)
{
    return v[AX_ROUTING] != ROUTING_DUPLICATE || v[AX_TOP_K] > 1;
}

bool legal_max_tokens(const int64_t *v)
{
    return v[AX_GEMM_TYPE] == GEMM_GROUPED_MASKED ? v[AX_MAX_TOKENS] * v[AX_EXPERTS] == v[AX_M]
                                                  : v[AX_MAX_TOKENS] == 0;
}

bool legal_layout_dtype(const int64_t *v)
{
    return v[AX_LAYOUT_DTYPE] == LAYOUT_INT32 || v[AX_GEMM_TYPE] == GEMM_GROUPED_CONTIGUOUS ||
           v[AX_GEMM_TYPE] == GEMM_GROUPED_MASKED;
}

/* Rows that are gathered and scattered are not boxes. */
bool legal_indexed_tma(const int64_t *v)
{
    const struct layer_copies *c = layer_copies(v);

    return v[AX_GEMM_TYPE] != GEMM_INDEXED || !(c->a || c->c || c->as);
}

bool legal_scale_layout(const int64_t *v)
{
    return v[AX_SCALE_LAYOUT] == SCALES_ROW_MAJOR ||
           (v[AX_SCALE_LAYOUT] == SCALES_M_MAJOR && v[AX_GEMM_TYPE] != GEMM_INDEXED &&
            legal_type(v, AX_A)->bits < 16);
}
