#include "kernels/cpu/routing.h"

#include "kernels/cpu/config.h"
#include "kernels/cpu/fault.h"
#include "kernels/cpu/fault_effects.h"

#include <string.h>

static int64_t layout_value(const struct hum_gemm_args *args, int64_t i)
{
    const struct hum_tensor *t = &args->expert_layout;

    if (FAULT(LAYOUT_INT64_AS_INT32))
        return ((const int32_t *)t->data)[i];
    return t->dtype == HUM_INT64 ? ((const int64_t *)t->data)[i] : ((const int32_t *)t->data)[i];
}

static int64_t max_tokens(const struct hum_gemm_args *args)
{
    return args->inputs.shape[0] / args->layer->num_experts;
}

static int64_t run_count(const struct hum_gemm_args *args)
{
    switch (args->compute->gemm_type) {
    case HUM_GEMM_DENSE:
        return 1;
    case HUM_GEMM_INDEXED:
        return *(const int32_t *)args->num_tokens_padded.data / args->tuning->block_m;
    case HUM_GEMM_GROUPED_CONTIGUOUS:
    case HUM_GEMM_GROUPED_MASKED:
        return args->layer->num_experts;
    }
    return 0;
}

static struct run run_get(const struct hum_gemm_args *args, int64_t i)
{
    const int64_t block_m = args->tuning->block_m;

    switch (args->compute->gemm_type) {
    case HUM_GEMM_DENSE:
        return (struct run){0, 0, args->inputs.shape[0]};
    case HUM_GEMM_INDEXED:
        return (struct run){((const int32_t *)args->expert_ids.data)[i], i * block_m, block_m};
    case HUM_GEMM_GROUPED_CONTIGUOUS:
        return (struct run){i, layout_value(args, i),
                            layout_value(args, i + 1) - layout_value(args, i)};
    case HUM_GEMM_GROUPED_MASKED:
        return (struct run){i, i * max_tokens(args), layout_value(args, i)};
    }
    return (struct run){0};
}

static enum hum_code check_indexed(const struct hum_gemm_args *args, char reason[HUM_REASON_BYTES])
{
    const int64_t padded = *(const int32_t *)args->num_tokens_padded.data;
    const int64_t block_m = args->tuning->block_m;
    const int32_t *ids = args->sorted_ids.data;

    if (padded < 0 || padded > args->sorted_ids.shape[0] || padded % block_m != 0)
        return refuse(reason, HUM_INVALID,
                      "num_tokens_padded must be a multiple of block_m, from 0 to the length of "
                      "sorted_ids");
    for (int64_t b = 0; b < padded / block_m; b++) {
        const int64_t expert = run_get(args, b).expert;

        if (expert < -1 || expert >= args->layer->num_experts)
            return refuse(reason, HUM_INVALID, "expert_ids must be from -1 to num_experts - 1");
        for (int64_t i = b * block_m; expert >= 0 && i < (b + 1) * block_m; i++)
            if (ids[i] < 0)
                return refuse(reason, HUM_INVALID, "sorted_ids must not be negative");
    }
    return HUM_OK;
}

static enum hum_code check_offsets(const struct hum_gemm_args *args, char reason[HUM_REASON_BYTES])
{
    const int64_t experts = args->layer->num_experts;

    if (layout_value(args, 0) != 0)
        return refuse(reason, HUM_INVALID, "expert_layout must start with offset 0");
    for (int64_t e = 0; e < experts; e++)
        if (layout_value(args, e + 1) < layout_value(args, e) && !FAULT(LAYOUT_INT64_AS_INT32))
            return refuse(reason, HUM_INVALID, "the offsets of expert_layout must not decrease");
    if (layout_value(args, experts) > args->inputs.shape[0])
        return refuse(reason, HUM_INVALID,
                      "the last offset of expert_layout must be at most the rows of inputs");
    return HUM_OK;
}

static enum hum_code check_counts(const struct hum_gemm_args *args, char reason[HUM_REASON_BYTES])
{
    for (int64_t e = 0; e < args->layer->num_experts; e++)
        if (layout_value(args, e) < 0 || layout_value(args, e) > max_tokens(args))
            return refuse(reason, HUM_INVALID,
                          "the counts of expert_layout must be from 0 to the rows of inputs "
                          "divided by num_experts");
    return HUM_OK;
}

enum hum_code routing_check(const struct hum_gemm_args *args, char reason[HUM_REASON_BYTES])
{
    switch (args->compute->gemm_type) {
    case HUM_GEMM_DENSE:
        return HUM_OK;
    case HUM_GEMM_INDEXED:
        return check_indexed(args, reason);
    case HUM_GEMM_GROUPED_CONTIGUOUS:
        return check_offsets(args, reason);
    case HUM_GEMM_GROUPED_MASKED:
        return check_counts(args, reason);
    }
    return HUM_OK;
}

size_t routing_layout(const struct hum_gemm_args *args, void *memory, struct routing *out)
{
    const size_t segments = (size_t)run_count(args);
    const size_t rows = (size_t)args->outputs.shape[0];
    const size_t at_segment = (rows + FAULT_ROOM(args)) * sizeof *out->row;
    const size_t at_taken = at_segment + segments * sizeof *out->segment;
    const bool indexed = args->compute->gemm_type == HUM_GEMM_INDEXED;

    *out = (struct routing){0};
    if (memory) {
        out->row = memory;
        out->segment = (void *)((char *)memory + at_segment);
        out->taken = indexed ? (uint8_t *)memory + at_taken : NULL;
    }
    return at_taken + (indexed ? rows : 0);
}

/* False: the row is taken. */
static bool add_row(const struct hum_gemm_args *args, struct routing *r, int64_t place,
                    int64_t tile)
{
    int64_t id = r->taken ? ((const int32_t *)args->sorted_ids.data)[place] : place;

    if (FAULT(PADDED_ID_CLAMPED) && id >= args->outputs.shape[0]) {
        id = args->outputs.shape[0] - 1;
        r->taken[id] = 0;
    }
    if (id >= args->outputs.shape[0])
        return true; /* padding */
    if (FAULT(MINUS_1_NOT_SKIPPED) && (id < 0 || (r->taken && r->taken[id])))
        return true;
    if (r->taken && r->taken[id]++)
        return false;
    if (FAULT(DUPLICATE_EXPERT_DROPPED) && r->taken && fault_has_token(r, id / args->top_k))
        return true;
    r->row[r->rows++] = (struct routed_row){.in = id / args->top_k, .out = id, .tile = tile};
    return true;
}

static struct run run_to_do(const struct hum_gemm_args *args, int64_t i)
{
    struct run run = run_get(args, i);

    (void)FAULT_EFFECT(fault_run(args, i, i == run_count(args) - 1, &run));
    return run;
}

/* Run i joins its neighbour's segment if the two have one expert. */
static bool add_run(const struct hum_gemm_args *args, struct routing *r, int64_t i)
{
    const struct run run = run_to_do(args, i);
    const int64_t block_m = args->tuning->block_m, tiles = (run.count + block_m - 1) / block_m;
    struct segment *s;

    if (run.expert < 0 || run.count <= 0)
        return true;
    if (i == 0 || run_to_do(args, i - 1).expert != run.expert)
        r->segment[r->segments++] =
            (struct segment){.expert = run.expert, .begin = r->rows, .tiles_before = r->row_tiles};
    s = &r->segment[r->segments - 1];
    for (int64_t j = 0; j < run.count; j++)
        if (!add_row(args, r, run.first + j, s->row_tiles + j / block_m))
            return false;
    s->rows = r->rows - s->begin;
    s->row_tiles += tiles;
    r->row_tiles += tiles;
    r->most_rows = s->rows > r->most_rows ? s->rows : r->most_rows;
    return true;
}

enum hum_code routing_fill(const struct hum_gemm_args *args, struct routing *out,
                           char reason[HUM_REASON_BYTES])
{
    if (out->taken)
        memset(out->taken, 0, (size_t)args->outputs.shape[0]);
    for (int64_t i = 0; i < run_count(args); i++)
        if (!add_run(args, out, i))
            return refuse(reason, HUM_INVALID, "sorted_ids must not hold an id twice");
    return HUM_OK;
}
