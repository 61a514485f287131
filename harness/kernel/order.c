#include "harness/kernel/order.h"

#include "reference/dtype.h"
#include "reference/tensor_core.h"

#include <stdio.h>

static const struct tc_row *tensor_core(const struct launch *l, const struct hum_accumulation *s)
{
    enum tc_instruction instruction = s->mma_type == HUM_MMA_WGMMA  ? TC_WGMMA
                                      : s->mma_type == HUM_MMA_UMMA ? TC_TCGEN05
                                                                    : TC_MMA;

    return tc_find(s->sm, instruction, dtype_find_id(l->layer->a_dtype, false),
                   l->compute->use_f16_accum);
}

static void copy(const struct hum_accumulation *s, struct order *out)
{
    out->accum = (struct ref_accum){.instruction_k = s->instruction_k,
                                    .block_k = s->block_k,
                                    .warp_k = s->warp_k,
                                    .flush_k = s->flush_k,
                                    .slices = s->slices,
                                    .ordered = s->ordered};
    for (int i = 0; i < s->slices && i < REF_MAX_SLICES; i++) {
        out->accum.slice[i].k_begin = s->slice[i].k_begin;
        out->accum.slice[i].k_end = s->slice[i].k_end;
    }
    out->row_begin = s->row_begin;
    out->row_end = s->row_end;
    out->col_begin = s->col_begin;
    out->col_end = s->col_end;
}

const char *order_of(const struct launch *l, int64_t row, int64_t col, struct order *out,
                     char *reason)
{
    bool integer = l->layer->a_dtype == HUM_INT8 || l->layer->a_dtype == HUM_INT4;
    struct hum_accumulation s = {0};
    const char *wrong;

    if (!l->provider->accumulation)
        return "the provider does not state its order of summation";
    if (l->provider->accumulation(l->handle, l->layer, l->compute, l->tuning, l->m, row, col, &s,
                                  reason) != HUM_OK)
        return reason;
    if (s.slices < 1 || s.slices > REF_MAX_SLICES || !(s.row_begin <= row && row < s.row_end) ||
        !(s.col_begin <= col && col < s.col_end))
        return "the provider's statement of its order does not cover the output";
    copy(&s, out);
    wrong = ref_accum_valid(&out->accum, l->layer->shape_k);
    if (wrong) {
        (void)snprintf(reason, HUM_REASON_BYTES,
                       "the provider's statement of its order is wrong: %s", wrong);
        return reason;
    }
    if (s.arithmetic == HUM_ARITHMETIC_TENSOR_CORE && !integer) {
        out->accum.tensor_core = tensor_core(l, &s);
        if (!out->accum.tensor_core)
            return "there is no model of this tensor core instruction";
    }
    return NULL;
}
