/* What lies where in the slab of a run. */
#include "harness/kernel/experts_slab.h"

#include "harness/kernel/layer.h"

#include <stdio.h>
#include <string.h>

static bool memory_out(struct device *d)
{
    (void)snprintf(d->reason, sizeof d->reason, "more memory is needed than the limit of a worker");
    return false;
}

/* ---- routing --------------------------------------------------------------------------------- */

/* Without rows there are no blocks, but the tensors are there: one block that nobody looks at. */
static bool no_blocks(int64_t block_m, struct arena *arena, struct routing_tensors *out)
{
    int32_t *zeros = arena_zalloc(arena, (size_t)block_m, sizeof *zeros);
    struct hum_tensor t = {.data = zeros,
                           .dtype = HUM_INT32,
                           .rank = 1,
                           .shape = {block_m},
                           .bytes = (size_t)block_m * 4};

    memset(out, 0, sizeof *out);
    out->sorted_ids = t;
    t.shape[0] = 1;
    t.bytes = 4;
    out->expert_ids = out->num_tokens_padded = t;
    return zeros != NULL;
}

static bool put_routing(struct run_slab *s, const struct experts_trial *t, const struct batch *b,
                        struct arena *arena, struct run_out *out)
{
    for (int layer = 0; layer < LAYER_COUNT; layer++) {
        struct routing_tensors *to = &out->routing[layer];
        int64_t block_m = t->tuning[layer].block_m;
        bool fine = b->rows == 0 && t->x->type == HUM_GEMM_INDEXED
                        ? no_blocks(block_m, arena, to)
                        : routing_tensors_make(&b->routing[layer], block_m,
                                               layer_layout_dtype(t->x->v), arena, to);

        if (!fine)
            return false;
        run_slab_put_tensor(s, SLAB_SORTED_IDS + layer, &to->sorted_ids);
        run_slab_put_tensor(s, SLAB_EXPERT_IDS + layer, &to->expert_ids);
        run_slab_put_tensor(s, SLAB_NUM_TOKENS_PADDED + layer, &to->num_tokens_padded);
        run_slab_put_tensor(s, SLAB_EXPERT_LAYOUT, &to->expert_layout);
    }
    return true;
}

/* The row of a slot, and the slot of a row. */
static bool put_indices(struct run_slab *s, const struct experts *x, const struct batch *b,
                        struct arena *arena, bool **slot_live)
{
    int64_t slots = b->m * x->top_k;
    int64_t *scatter = arena_alloc(arena, (size_t)slots, sizeof *scatter);
    int32_t *back = arena_alloc(arena, (size_t)b->rows, sizeof *back);

    *slot_live = arena_alloc(arena, (size_t)slots, sizeof **slot_live);
    if (!scatter || !back || !*slot_live)
        return false;
    for (int64_t i = 0; i < b->rows; i++)
        back[i] = -1;
    for (int64_t i = 0; i < slots; i++) {
        scatter[i] = b->row_of[i];
        (*slot_live)[i] = scatter[i] >= 0;
        if (scatter[i] >= 0)
            back[scatter[i]] = (int32_t)i;
    }
    if (x->type == HUM_GEMM_GROUPED_CONTIGUOUS) {
        run_slab_put(s, SLAB_SCATTER, scatter, (size_t)slots * sizeof *scatter);
        run_slab_put(s, SLAB_BACK, back, (size_t)b->rows * sizeof *back);
    }
    return true;
}

/* ---- everything else ------------------------------------------------------------------------- */

static void put_tokens(struct run_slab *s, const struct experts *x, const struct batch *b)
{
    size_t slots = (size_t)(b->m * x->top_k);

    run_slab_put(s, SLAB_INPUTS, b->inputs, (size_t)(b->m * x->hidden) * sizeof *b->inputs);
    if (experts_batched(x))
        return;
    run_slab_put(s, SLAB_TOPK_IDS, b->ids, slots * sizeof *b->ids);
    run_slab_put(s, SLAB_TOPK_WEIGHTS, b->weights, slots * sizeof *b->weights);
}

static void put_weights(struct run_slab *s, const struct experts_trial *t)
{
    for (int layer = 0; layer < LAYER_COUNT; layer++) {
        const struct hum_weights *w = &t->kernel_form[layer];
        const struct hum_tensor *all[] = {&w->weight, &w->weight_scale, &w->zero_point,
                                          &w->weight_scale_2, &w->bias};

        for (int i = 0; i < 5; i++)
            run_slab_put_tensor(s, SLAB_KERNEL_FORM + 5 * layer + i, all[i]);
    }
}

/* Each workspace is as large as its largest buffer. */
static void put_buffers(struct run_slab *s, const struct run_options *o, bool batched,
                        const struct hum_buffer_meta metas[HUM_BUFFER_COUNT])
{
    int last = batched ? HUM_BUFFER_DOWN_OUTPUT : HUM_BUFFER_OUTPUT;
    size_t workspace[2] = {0, 0};

    for (int i = 0; i < HUM_BUFFER_COUNT; i++) {
        size_t bytes = metas[i].bytes;

        if (bytes && bytes > workspace[metas[i].workspace - 1])
            workspace[metas[i].workspace - 1] = bytes;
        if (!o->shared && i != last)
            run_slab_put(s, SLAB_BUFFER + i, NULL, bytes);
    }
    if (o->shared)
        for (int i = 0; i < 2; i++)
            run_slab_put(s, SLAB_WORKSPACE + i, NULL, workspace[i]);
    if (!(o->shared && o->result_in_shared))
        run_slab_put(s, SLAB_RESULT, NULL, metas[last].bytes);
}

bool run_slab_fill(struct run_slab *s, const struct experts_trial *t, const struct run_options *o,
                   const struct hum_buffer_meta metas[HUM_BUFFER_COUNT], struct device *d,
                   struct run_out *out, bool **slot_live)
{
    const struct experts *x = t->x;
    const struct batch *b = o->batch;

    memset(s, 0, sizeof *s);
    if (!put_routing(s, t, b, d->arena, out) || !put_indices(s, x, b, d->arena, slot_live))
        return memory_out(d);
    put_tokens(s, x, b);
    put_weights(s, t);
    put_buffers(s, o, experts_batched(x), metas);
    if (experts_quantizes(x)) {
        run_slab_put(s, SLAB_TOKEN_SCALES, NULL, (size_t)b->entered * sizeof(float));
        run_slab_put(s, SLAB_TOKEN_SCALES + 1, NULL, (size_t)b->rows * sizeof(float));
    } else if (experts_has(x, STEP_ENTER)) {
        run_slab_put(s, SLAB_ENTERED, NULL, (size_t)(b->entered * x->hidden) * 2);
    }
    if (experts_has(x, STEP_ORDER))
        run_slab_put(s, SLAB_ORDERED, NULL, (size_t)(b->rows * x->hidden) * 2);
    return run_slab_make(s, d, o->poison);
}
