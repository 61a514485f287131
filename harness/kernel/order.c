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

/* With experts, tiles numbered with n fastest: about the launch itself, in row tiles of block_m
 * rows that stand one after the other. */
static enum hum_code ask_row_tile(const struct launch *l, int64_t row, int64_t col,
                                  struct hum_accumulation *s, char *reason)
{
    int64_t block_m = l->tuning->block_m, at = routing_tile_of(l->routing, row) * block_m;
    enum hum_code code =
        l->provider->accumulation(l->handle, l->layer, l->compute, l->tuning,
                                  l->routing->row_tiles * block_m, at, col, s, reason);

    if (!(s->row_begin <= at && at < s->row_end))
        s->slices = 0;
    s->row_begin = row;
    s->row_end = row + 1;
    return code;
}

/* With experts: of the tile of the same number in a dense product. The place stands in `s` when
 * it returns. */
static enum hum_code ask_routed(const struct launch *l, int64_t row, int64_t col,
                                struct hum_accumulation *s, char *reason)
{
    struct routing_place place = routing_place_of(l->routing, l->layer, l->tuning, row, col);
    struct hum_compute_config compute = *l->compute;
    struct hum_layer_config layer = *l->layer;
    int64_t in_tile = col % l->tuning->block_n;
    enum hum_code code;

    layer.num_experts = layer.pad_shape_n = 0;
    compute.gemm_type = HUM_GEMM_DENSE;
    code = l->provider->accumulation(l->handle, &layer, &compute, l->tuning, place.m, place.row,
                                     place.col, s, reason);
    if (!(s->row_begin <= place.row && place.row < s->row_end && s->col_begin <= place.col &&
          place.col < s->col_end))
        s->slices = 0;
    s->row_begin = row;
    s->row_end = row + 1;
    s->col_begin = col;
    s->col_end =
        col + (s->col_end - place.col < l->tuning->block_n ? 1 : l->tuning->block_n - in_tile);
    return code;
}

static enum hum_code ask(const struct launch *l, int64_t row, int64_t col,
                         struct hum_accumulation *s, char *reason)
{
    if (l->routing)
        return l->provider->tiles_n_fastest ? ask_row_tile(l, row, col, s, reason)
                                            : ask_routed(l, row, col, s, reason);
    return l->provider->accumulation(l->handle, l->layer, l->compute, l->tuning, l->m, row, col, s,
                                     reason);
}

static void copy(const struct hum_accumulation *s, struct order *out)
{
    out->accum = (struct ref_accum){.instruction_k = s->instruction_k,
                                    .block_k = s->block_k,
                                    .warp_k = s->warp_k,
                                    .flush_k = s->flush_k,
                                    .slices = s->slices,
                                    .ordered = s->ordered,
                                    .warps_in_order = s->warps_in_order,
                                    .operand_shift = s->operand_shift,
                                    .flush_shift = s->flush_shift,
                                    .output_shift = s->output_shift};
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
    if (ask(l, row, col, &s, reason) != HUM_OK)
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

bool order_stated(const struct launch *l, int64_t row, int64_t col, struct hum_accumulation *out)
{
    char reason[HUM_REASON_BYTES];

    return l->provider->accumulation && ask(l, row, col, out, reason) == HUM_OK &&
           out->slices >= 1 && out->slices <= HUM_MAX_SLICES && out->col_begin <= col &&
           col < out->col_end;
}

const char *order_instruction(const struct launch *l, int64_t row)
{
    struct hum_accumulation s = {0};

    if (!order_stated(l, row, 0, &s) || s.arithmetic != HUM_ARITHMETIC_TENSOR_CORE)
        return "";
    switch (s.mma_type) {
    case HUM_MMA_MMA:
        return "mma";
    case HUM_MMA_WGMMA:
        return "wgmma";
    case HUM_MMA_UMMA:
        return "umma";
    case HUM_MMA_AUTO:
    case HUM_MMA_MXMMA:
        break;
    }
    return "";
}

/* An unknown order is no order, were it stated twice. */
static bool alike(const struct hum_accumulation *x, const struct hum_accumulation *y)
{
    if (x->arithmetic != y->arithmetic || x->mma_type != y->mma_type || x->sm != y->sm ||
        x->instruction_k != y->instruction_k || x->block_k != y->block_k ||
        x->warp_k != y->warp_k || x->flush_k != y->flush_k || x->slices != y->slices ||
        x->warps_in_order != y->warps_in_order || x->operand_shift != y->operand_shift ||
        x->flush_shift != y->flush_shift || x->output_shift != y->output_shift)
        return false;
    if (x->slices > 1 && !(x->ordered && y->ordered))
        return false;
    for (int i = 0; i < x->slices; i++)
        if (x->slice[i].k_begin != y->slice[i].k_begin || x->slice[i].k_end != y->slice[i].k_end)
            return false;
    return true;
}

/* Without statements: the same tile of the same tiles. */
static bool same_place(const struct launch *a, int64_t row_a, const struct launch *b, int64_t row_b)
{
    const struct routing_tensors *x = a->routing, *y = b->routing;

    if (a->tuning != b->tuning)
        return false;
    if (!x || !y)
        return a->m == b->m && row_a == row_b;
    return x->row_tiles == y->row_tiles && x->tiles[row_a].before == y->tiles[row_b].before &&
           x->tiles[row_a].of_segment == y->tiles[row_b].of_segment &&
           x->tiles[row_a].index == y->tiles[row_b].index;
}

bool order_same(const struct launch *a, int64_t row_a, const struct launch *b, int64_t row_b,
                int64_t col, int64_t *col_end)
{
    int64_t n = a->layer->shape_n - a->layer->pad_shape_n;
    struct hum_accumulation x = {0}, y = {0};

    *col_end = n;
    if (!a->provider->accumulation)
        return same_place(a, row_a, b, row_b);
    if (!order_stated(a, row_a, col, &x) || !order_stated(b, row_b, col, &y))
        return false;
    *col_end = x.col_end < y.col_end ? x.col_end : y.col_end;
    *col_end = *col_end < n ? *col_end : n;
    return alike(&x, &y);
}
