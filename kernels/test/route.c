#include "kernels/test/route.h"

#include <check.h>
#include <stdlib.h>

enum { GARBAGE_BLOCKS = 2, NO_BLOCK = -2 };

static int64_t below(uint64_t *state, int64_t limit)
{
    return (int64_t)(sample_random(state) % (uint64_t)limit);
}

static int64_t tiles_of(int64_t rows, int64_t block_m)
{
    return (rows + block_m - 1) / block_m;
}

/* ---- grouped --------------------------------------------------------------------------------- */

/* Rows of expert e; `left` of them are not dealt out yet. */
static int64_t draw_count(const struct sample *s, enum route_kind kind, int64_t e, int64_t left,
                          uint64_t *state)
{
    const int64_t experts = s->layer.num_experts;
    const bool masked = s->compute.gemm_type == HUM_GEMM_GROUPED_MASKED;
    const int64_t most = masked ? s->m / experts : left;

    if (kind == ROUTE_EMPTY)
        return 0;
    if (kind == ROUTE_SINGLE)
        return e == experts / 2 ? most : 0;
    if (kind == ROUTE_MISSING && below(state, 2))
        return 0;
    if (kind == ROUTE_SPARE)
        return below(state, most / 2 + 1);
    return !masked && e == experts - 1 ? most : below(state, most + 1);
}

static void put_layout(const struct hum_tensor *t, int64_t i, int64_t value)
{
    if (t->dtype == HUM_INT64)
        ((int64_t *)t->data)[i] = value;
    else
        ((int32_t *)t->data)[i] = (int32_t)value;
}

static void make_grouped(struct sample *s, enum route_kind kind, bool wide, uint64_t *state,
                         struct route *out)
{
    const int64_t experts = s->layer.num_experts, block_m = s->tuning.block_m;
    const bool masked = s->compute.gemm_type == HUM_GEMM_GROUPED_MASKED;
    int64_t begin = 0;

    s->expert_layout = sample_tensor(wide ? HUM_INT64 : HUM_INT32, experts + !masked, 0, 1);
    for (int64_t e = 0; e < experts; e++) {
        const int64_t count = draw_count(s, kind, e, s->m - begin, state);

        put_layout(&s->expert_layout, e, masked ? count : begin);
        if (masked)
            begin = e * (s->m / experts);
        for (int64_t i = 0; i < count; i++)
            out->rows[begin + i] = (struct route_row){.expert = e,
                                                      .in = begin + i,
                                                      .before = out->row_tiles,
                                                      .of_segment = tiles_of(count, block_m),
                                                      .tile = i / block_m};
        out->row_tiles += tiles_of(count, block_m);
        begin += count;
    }
    if (!masked)
        put_layout(&s->expert_layout, experts, begin);
}

/* ---- indexed --------------------------------------------------------------------------------- */

/* An expert an id; -1: a block of -1; NO_BLOCK: nowhere. */
static int64_t draw_expert(const struct sample *s, enum route_kind kind, uint64_t *state)
{
    if (kind == ROUTE_EMPTY)
        return NO_BLOCK;
    if (kind == ROUTE_SINGLE)
        return s->layer.num_experts - 1;
    if (kind == ROUTE_MISSING)
        return below(state, s->layer.num_experts + 2) - 2;
    return below(state, s->layer.num_experts);
}

/* Blocks in the making: (capacity, block_m) ids and one expert each. */
struct blocks {
    int32_t *ids, *experts;
    int64_t count, block_m, padding;
};

static int32_t draw_padding(const struct blocks *b, uint64_t *state)
{
    return (int32_t)(below(state, 4) ? b->padding : b->padding + below(state, 1000));
}

/* A block of one expert with the ids that are left; one in ten places is padding, whatever is
 * left. */
static int64_t add_block(struct blocks *b, int64_t expert, const int32_t *left, int64_t count,
                         uint64_t *state)
{
    int32_t *ids = b->ids + b->count * b->block_m;
    int64_t used = 0;

    for (int64_t i = 0; i < b->block_m; i++) {
        const bool pads = used == count || below(state, 10) == 0;

        ids[i] = pads ? draw_padding(b, state) : left[used++];
    }
    b->experts[b->count++] = (int32_t)expert;
    return used;
}

/* All blocks of one expert, in one case of four one more, of padding alone. Blocks of -1 hold an id
 * twice, and one that no other block could. */
static void add_expert(struct blocks *b, int64_t expert, const int64_t *expert_of, int64_t rows,
                       uint64_t *state)
{
    int32_t *mine = malloc((size_t)rows * sizeof *mine);
    int64_t count = 0;

    ck_assert_ptr_nonnull(mine);
    for (int64_t id = 0; id < rows; id++)
        if (expert_of[id] == expert)
            mine[count++] = (int32_t)id;
    for (int64_t i = count - 1; i > 0; i--) {
        const int64_t j = below(state, i + 1);
        const int32_t id = mine[i];

        mine[i] = mine[j];
        mine[j] = id;
    }
    for (int64_t at = 0; at < count;) {
        at += add_block(b, expert, mine + at, count - at, state);
        if (expert < 0) {
            b->ids[(b->count - 1) * b->block_m] = -7;
            b->ids[(b->count - 1) * b->block_m + 1] = mine[0];
        }
    }
    if (expert >= 0 && below(state, 4) == 0)
        (void)add_block(b, expert, NULL, 0, state);
    free(mine);
}

static void swap_blocks(struct blocks *b, int64_t x, int64_t y)
{
    const int32_t expert = b->experts[x];

    b->experts[x] = b->experts[y];
    b->experts[y] = expert;
    for (int64_t i = 0; i < b->block_m; i++) {
        const int32_t id = b->ids[x * b->block_m + i];

        b->ids[x * b->block_m + i] = b->ids[y * b->block_m + i];
        b->ids[y * b->block_m + i] = id;
    }
}

/* Reads the blocks back. */
static void tile_blocks(const struct blocks *b, int32_t top_k, struct route *out)
{
    for (int64_t begin = 0, end; begin < b->count; begin = end) {
        for (end = begin; end < b->count && b->experts[end] == b->experts[begin];)
            end++;
        if (b->experts[begin] < 0)
            continue;
        for (int64_t i = begin * b->block_m; i < end * b->block_m; i++)
            if (b->ids[i] < b->padding)
                out->rows[b->ids[i]] = (struct route_row){.expert = b->experts[begin],
                                                          .in = b->ids[i] / top_k,
                                                          .before = out->row_tiles,
                                                          .of_segment = end - begin,
                                                          .tile = i / b->block_m - begin};
        out->row_tiles += end - begin;
    }
}

static void make_indexed(struct sample *s, enum route_kind kind, uint64_t *state, struct route *out)
{
    const int64_t experts = s->layer.num_experts, rows = s->m * s->top_k;
    const int64_t block_m = s->tuning.block_m, spare = kind == ROUTE_SPARE ? GARBAGE_BLOCKS : 0;
    /* a block holds at least one id in the mean of its draws; the rest is room */
    const int64_t capacity = 2 * rows + 2 * experts + 8;
    struct blocks b = {.block_m = block_m, .padding = rows};
    int64_t *expert_of = malloc((size_t)rows * sizeof *expert_of);

    ck_assert_ptr_nonnull(expert_of);
    s->sorted_ids = sample_tensor(HUM_INT32, capacity * block_m, 0, 1);
    s->expert_ids = sample_tensor(HUM_INT32, capacity, 0, 1);
    s->num_tokens_padded = sample_tensor(HUM_INT32, 1, 0, 1);
    b.ids = s->sorted_ids.data;
    b.experts = s->expert_ids.data;
    for (int64_t id = 0; id < rows; id++)
        expert_of[id] = kind == ROUTE_DUPLICATE && id % s->top_k ? expert_of[id - 1]
                                                                 : draw_expert(s, kind, state);
    for (int64_t e = -1; e < experts; e++)
        add_expert(&b, e, expert_of, rows, state);
    if (below(state, 2))
        for (int64_t i = b.count - 1; i > 0; i--)
            swap_blocks(&b, i, below(state, i + 1));
    tile_blocks(&b, s->top_k, out);
    *(int32_t *)s->num_tokens_padded.data = (int32_t)(b.count * block_m);
    for (int64_t i = b.count; i < b.count + spare; i++) {
        b.experts[i] = i % 2 ? 77 : -5;
        for (int64_t j = 0; j < block_m; j++)
            b.ids[i * block_m + j] = (int32_t)(j % 3 - 1);
    }
    s->expert_ids.shape[0] = b.count + spare;
    s->expert_ids.bytes = (size_t)s->expert_ids.shape[0] * sizeof(int32_t);
    s->sorted_ids.shape[0] = s->expert_ids.shape[0] * block_m;
    s->sorted_ids.bytes = (size_t)s->sorted_ids.shape[0] * sizeof(int32_t);
    free(expert_of);
}

/* ---- all ------------------------------------------------------------------------------------- */

void route_make(struct sample *s, enum route_kind kind, bool wide, uint64_t *state,
                struct route *out)
{
    const int64_t rows = s->outputs.shape[0];

    *out = (struct route){.rows = calloc((size_t)rows + 1, sizeof *out->rows)};
    ck_assert_ptr_nonnull(out->rows);
    for (int64_t i = 0; i < rows; i++)
        out->rows[i].expert = -1;
    if (s->compute.gemm_type == HUM_GEMM_INDEXED)
        make_indexed(s, kind, state, out);
    else
        make_grouped(s, kind, wide, state, out);
    free(s->locks.data);
    s->locks =
        sample_tensor(HUM_INT32, out->row_tiles * (s->layer.shape_n / s->tuning.block_n), 0, 1);
}

void route_free(struct route *r)
{
    free(r->rows);
    r->rows = NULL;
}

void route_dense_place(const struct route *r, const struct sample *s, int64_t row, int64_t col,
                       int64_t *dense_row, int64_t *dense_col)
{
    const struct route_row *at = &r->rows[row];
    const int64_t columns = s->layer.shape_n / s->tuning.block_n;
    const int64_t number =
        at->before * columns + col / s->tuning.block_n * at->of_segment + at->tile;

    *dense_row = number % r->row_tiles * s->tuning.block_m;
    *dense_col = number / r->row_tiles * s->tuning.block_n;
}
