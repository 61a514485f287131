/* Rules about the experts pipeline (docs/semantics-ops.md section 10). */
#include "harness/kernel/experts.h"
#include "harness/kernel/legal.h"
#include "harness/kernel/legal_parts.h"
#include "harness/kernel/words.h"

bool legal_pipeline_type(const int64_t *v)
{
    return v[AX_GEMM_TYPE] != GEMM_DENSE && v[AX_EXPERTS] >= 1;
}

bool legal_pipeline_top_k(const int64_t *v)
{
    return v[AX_TOP_K] == 1 ||
           (v[AX_GEMM_TYPE] != GEMM_GROUPED_MASKED && v[AX_TOP_K] <= v[AX_EXPERTS]);
}

bool legal_pipeline_routing(const int64_t *v)
{
    return v[AX_ROUTING] != ROUTING_NONE && legal_routing_duplicate(v);
}

bool legal_pipeline_columns(const int64_t *v)
{
    return v[AX_FORM] == 0 || v[AX_N] % 2 == 0;
}

/* Of a layer that follows from axes that are all known. */
static bool layer_holds(const int64_t *v, int layer)
{
    int64_t of_layer[AX_COUNT];

    experts_layer_axes(v, layer, of_layer);
    return !legal_broken(of_layer);
}

bool legal_pipeline_gate_up(const int64_t *v)
{
    return layer_holds(v, LAYER_GATE_UP);
}

bool legal_pipeline_down(const int64_t *v)
{
    return layer_holds(v, LAYER_DOWN);
}
