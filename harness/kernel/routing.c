#include "harness/kernel/routing.h"

#include "harness/kernel/words.h"

/* ---- rows ------------------------------------------------------------------------------------ */

static void dense_rows(int64_t rows, int32_t *row_a, int32_t *row_expert)
{
    for (int64_t i = 0; i < rows; i++) {
        row_a[i] = (int32_t)i;
        row_expert[i] = 0;
    }
}

static void indexed_rows(const struct routing *r, int32_t *row_a, int32_t *row_expert)
{
    for (int64_t i = 0; i < r->rows; i++) {
        bool written = r->ids[i] >= 0;

        row_a[i] = written ? (int32_t)(i / r->top_k) : -1;
        row_expert[i] = written ? r->ids[i] : -1;
    }
}

/* Row r of expert e lies at `begin` + r; its place stands a multiple of max_tokens in with
 * masks, else behind the rows before. */
static int64_t group_begin(const struct routing *r, int64_t e)
{
    int64_t begin = 0;

    if (r->max_tokens)
        return e * r->max_tokens;
    for (int64_t i = 0; i < e; i++)
        begin += r->counts[i];
    return begin;
}

static void grouped_rows(const struct routing *r, int32_t *row_a, int32_t *row_expert)
{
    for (int64_t i = 0; i < r->rows; i++)
        row_a[i] = row_expert[i] = -1;
    for (int64_t e = 0; e < r->experts; e++) {
        int64_t begin = group_begin(r, e);

        for (int64_t i = begin; i < begin + r->counts[e]; i++) {
            row_a[i] = (int32_t)i;
            row_expert[i] = (int32_t)e;
        }
    }
}

enum ref_routing_kind routing_kind(int64_t word)
{
    static const enum ref_routing_kind kinds[] = {
        [ROUTING_NONE] = REF_ROUTING_UNIFORM,    [ROUTING_UNIFORM] = REF_ROUTING_UNIFORM,
        [ROUTING_SKEWED] = REF_ROUTING_SKEWED,   [ROUTING_EMPTY] = REF_ROUTING_EMPTY,
        [ROUTING_SINGLE] = REF_ROUTING_SINGLE,   [ROUTING_DUPLICATE] = REF_ROUTING_DUPLICATE,
        [ROUTING_MISSING] = REF_ROUTING_MISSING, [ROUTING_SPARE] = REF_ROUTING_SPARE,
    };

    return kinds[word];
}

/* row_a and row_expert of a routing whose other members are set. */
static bool fill_rows(struct routing *r, struct arena *arena)
{
    int32_t *row_a = arena_alloc(arena, (size_t)r->rows, sizeof *row_a);
    int32_t *row_expert = arena_alloc(arena, (size_t)r->rows, sizeof *row_expert);

    if (!row_a || !row_expert)
        return false;
    if (r->ids)
        indexed_rows(r, row_a, row_expert);
    else if (r->counts)
        grouped_rows(r, row_a, row_expert);
    else
        dense_rows(r->rows, row_a, row_expert);
    r->row_a = row_a;
    r->row_expert = row_expert;
    return true;
}

static struct ref_routing spec_of(const int64_t v[AX_COUNT], const struct routing *r)
{
    return (struct ref_routing){.kind = routing_kind(v[AX_ROUTING]),
                                .seed = (uint64_t)v[AX_SEED],
                                .m = r->m,
                                .experts = r->experts,
                                .top_k = r->top_k,
                                .max_tokens = r->max_tokens};
}

/* The ids or counts of a product with experts. */
static bool route(const int64_t v[AX_COUNT], struct arena *arena, struct routing *r)
{
    struct ref_routing spec = spec_of(v, r);

    if (r->type == HUM_GEMM_INDEXED) {
        int32_t *ids = arena_alloc(arena, (size_t)r->rows, sizeof *ids);

        if (ids)
            ref_route_tokens(&spec, ids);
        r->ids = ids;
        return ids != NULL;
    }
    if (r->type != HUM_GEMM_DENSE) {
        int64_t *counts = arena_alloc(arena, (size_t)r->experts, sizeof *counts);

        if (counts)
            ref_route_counts(&spec, counts);
        r->counts = counts;
        return counts != NULL;
    }
    return true;
}

bool routing_make(const int64_t v[AX_COUNT], int64_t m, struct arena *arena, struct routing *out)
{
    static const enum hum_gemm_type types[] = {
        HUM_GEMM_DENSE, HUM_GEMM_INDEXED, HUM_GEMM_GROUPED_CONTIGUOUS, HUM_GEMM_GROUPED_MASKED};

    *out = (struct routing){.type = types[v[AX_GEMM_TYPE]],
                            .m = m,
                            .experts = v[AX_EXPERTS] ? v[AX_EXPERTS] : 1,
                            .top_k = v[AX_TOP_K],
                            .max_tokens = v[AX_MAX_TOKENS],
                            .has_spare = v[AX_ROUTING] == ROUTING_SPARE,
                            .rows = m * v[AX_TOP_K]};
    return route(v, arena, out) && fill_rows(out, arena);
}

int32_t *routing_index(const struct routing *r, struct arena *arena)
{
    int32_t *index = arena_alloc(arena, (size_t)(r->m * r->experts), sizeof *index);

    for (int64_t i = 0; index && i < r->m * r->experts; i++)
        index[i] = -1;
    for (int64_t i = 0; index && i < r->rows; i++)
        if (r->row_expert[i] >= 0)
            index[r->row_a[i] * r->experts + r->row_expert[i]] = (int32_t)i;
    return index;
}

/* ---- mixes ----------------------------------------------------------------------------------- */

static void take_in_turn(const struct routing *r, struct mix *out)
{
    int64_t count = 0, routed = 0;

    for (int64_t e = 0; e < r->experts; e++)
        routed += r->counts[e];
    for (int64_t i = 0; count < routed; i++)
        for (int64_t e = 0; e < r->experts; e++) {
            if (i >= r->counts[e])
                continue;
            out->rows[count] = group_begin(r, e) + i;
            out->experts[count++] = (int32_t)e;
        }
    for (int64_t i = 0; i < r->m; i++) {
        if (r->row_expert[i] >= 0)
            continue;
        out->rows[count] = i;
        out->experts[count++] = REF_NOWHERE;
    }
}

bool mix_make(const struct routing *r, int64_t m, int64_t more, struct arena *arena,
              struct mix *out)
{
    out->count = m;
    out->rows = arena_alloc(arena, (size_t)(m + more), sizeof *out->rows);
    out->experts = arena_alloc(arena, (size_t)((m + more) * r->top_k), sizeof *out->experts);
    if (!out->rows || !out->experts)
        return false;
    if (r->counts) {
        take_in_turn(r, out);
        return true;
    }
    for (int64_t i = 0; i < m; i++)
        out->rows[i] = i;
    for (int64_t i = 0; i < m * r->top_k; i++)
        out->experts[i] = r->ids ? r->ids[i] : 0;
    return true;
}

/* Rows in the order in which the experts have them; counts and max_tokens are set. */
static void gather_rows(const struct routing *to, const struct mix *b, int64_t filler,
                        int64_t *rows)
{
    int64_t at = 0;

    for (int64_t e = 0; e < to->experts; e++) {
        for (int64_t i = 0; i < b->count; i++)
            if (b->experts[i] == e)
                rows[at++] = b->rows[i];
        while (at < (e + 1) * to->max_tokens)
            rows[at++] = filler;
    }
    for (int64_t i = 0; at < to->m; i++)
        if (b->experts[i] < 0)
            rows[at++] = b->rows[i];
}

/* Rows of A of a grouped type, in all; sets counts and max_tokens. -1: memory is out. */
static int64_t count_rows(struct routing *to, const struct mix *b, struct arena *arena)
{
    int64_t *counts = arena_zalloc(arena, (size_t)to->experts, sizeof *counts);
    int64_t most = 0;

    if (!counts)
        return -1;
    for (int64_t i = 0; i < b->count; i++)
        if (b->experts[i] >= 0 && ++counts[b->experts[i]] > most)
            most = counts[b->experts[i]];
    to->counts = counts;
    if (to->type != HUM_GEMM_GROUPED_MASKED)
        return b->count;
    to->max_tokens = b->count ? most + 1 : 0;
    return to->experts * to->max_tokens;
}

bool mix_to_launch(const struct routing *r, const struct mix *b, int64_t filler,
                   struct arena *arena, struct mix_launch *out)
{
    struct routing *to = &out->routing;

    *to = *r;
    to->m = r->counts ? count_rows(to, b, arena) : b->count;
    if (to->m < 0)
        return false;
    to->ids = r->ids ? b->experts : NULL;
    to->rows = to->m * to->top_k;
    out->m = to->m;
    out->rows = arena_alloc(arena, (size_t)to->m, sizeof *out->rows);
    if (!out->rows)
        return false;
    if (to->counts)
        gather_rows(to, b, filler, out->rows);
    else
        for (int64_t i = 0; i < b->count; i++)
            out->rows[i] = b->rows[i];
    return fill_rows(to, arena);
}

/* ---- tiles ----------------------------------------------------------------------------------- */

static int64_t tiles_of(int64_t rows, int64_t block_m)
{
    return (rows + block_m - 1) / block_m;
}

/* `count` rows from `begin` on are a segment. */
static void tile_rows(int64_t begin, int64_t count, int64_t block_m, struct routing_tensors *out,
                      struct routing_tile *tiles)
{
    int64_t of_segment = tiles_of(count, block_m);

    for (int64_t i = 0; i < count; i++)
        tiles[begin + i] = (struct routing_tile){(int32_t)out->row_tiles, (int32_t)of_segment,
                                                 (int32_t)(i / block_m)};
    out->row_tiles += of_segment;
}

/* Blocks [begin, end) are a segment. */
static void tile_blocks(const struct routing *r, const int32_t *sorted, int64_t begin, int64_t end,
                        int64_t block_m, struct routing_tensors *out, struct routing_tile *tiles)
{
    for (int64_t i = begin * block_m; i < end * block_m; i++)
        if (sorted[i] < r->rows)
            tiles[sorted[i]] = (struct routing_tile){
                (int32_t)out->row_tiles, (int32_t)(end - begin), (int32_t)(i / block_m - begin)};
    out->row_tiles += end - begin;
}

static void tile_segments(const struct routing *r, const int32_t *sorted, const int32_t *experts,
                          int64_t blocks, int64_t block_m, struct routing_tensors *out,
                          struct routing_tile *tiles)
{
    for (int64_t begin = 0, end; begin < blocks; begin = end) {
        for (end = begin + 1; end < blocks && experts[end] == experts[begin];)
            end++;
        if (experts[begin] >= 0)
            tile_blocks(r, sorted, begin, end, block_m, out, tiles);
    }
}

/* ---- tensors --------------------------------------------------------------------------------- */

static struct hum_tensor vector(void *data, int32_t dtype, int64_t n, size_t size)
{
    return (struct hum_tensor){
        .data = data, .dtype = dtype, .rank = 1, .shape = {n}, .bytes = (size_t)n * size};
}

/* What lies behind the end is valid, so that a kernel that reads on computes something: rows of
 * other experts with expert 0. */
static void fill_spare(const struct routing *r, int32_t *sorted, int64_t from, int64_t to,
                       int32_t *experts, int64_t block_m)
{
    for (int64_t i = from; i < to; i++)
        sorted[i] = r->rows ? (int32_t)((i - from) % r->rows) : 0;
    for (int64_t b = from / block_m; b < to / block_m; b++)
        experts[b] = (int32_t)(b % r->experts);
}

static bool indexed_tensors(const struct routing *r, int64_t block_m, struct arena *arena,
                            struct routing_tensors *out, struct routing_tile *tiles)
{
    int64_t padded = ref_sort_ids(r->ids, r->rows, r->experts, block_m, NULL, NULL);
    int64_t spare = r->has_spare ? 2 * block_m : padded ? 0 : block_m; /* no tensor is empty */
    int64_t capacity = padded + spare;
    int32_t *sorted = arena_alloc(arena, (size_t)capacity, sizeof *sorted);
    int32_t *experts = arena_alloc(arena, (size_t)(capacity / block_m), sizeof *experts);
    int32_t *end = arena_alloc(arena, 1, sizeof *end);

    if (!sorted || !experts || !end)
        return false;
    (void)ref_sort_ids(r->ids, r->rows, r->experts, block_m, sorted, experts);
    fill_spare(r, sorted, padded, capacity, experts, block_m);
    tile_segments(r, sorted, experts, padded / block_m, block_m, out, tiles);
    *end = (int32_t)padded;
    out->sorted_ids = vector(sorted, HUM_INT32, capacity, sizeof *sorted);
    out->expert_ids = vector(experts, HUM_INT32, capacity / block_m, sizeof *experts);
    out->num_tokens_padded = vector(end, HUM_INT32, 1, sizeof *end);
    return true;
}

/* Offsets (one more than experts) or counts, in either width. */
static bool grouped_tensors(const struct routing *r, int32_t dtype, struct arena *arena,
                            struct routing_tensors *out)
{
    bool offsets = r->type == HUM_GEMM_GROUPED_CONTIGUOUS;
    int64_t n = r->experts + offsets;
    int32_t *narrow = arena_alloc(arena, (size_t)n, sizeof *narrow);
    int64_t *wide = arena_alloc(arena, (size_t)n, sizeof *wide);

    if (!narrow || !wide)
        return false;
    for (int64_t e = 0; e < n; e++) {
        wide[e] = offsets ? group_begin(r, e) : r->counts[e];
        narrow[e] = (int32_t)wide[e];
    }
    out->expert_layout = dtype == HUM_INT64 ? vector(wide, HUM_INT64, n, sizeof *wide)
                                            : vector(narrow, HUM_INT32, n, sizeof *narrow);
    return true;
}

bool routing_tensors_make(const struct routing *r, int64_t block_m, int32_t layout_dtype,
                          struct arena *arena, struct routing_tensors *out)
{
    struct routing_tile *tiles = arena_zalloc(arena, (size_t)r->rows, sizeof *tiles);

    *out = (struct routing_tensors){.tiles = tiles};
    if (!tiles)
        return false;
    if (r->ids)
        return indexed_tensors(r, block_m, arena, out, tiles);
    if (!r->counts) {
        tile_rows(0, r->rows, block_m, out, tiles);
        return true;
    }
    for (int64_t e = 0; e < r->experts; e++)
        tile_rows(group_begin(r, e), r->counts[e], block_m, out, tiles);
    return grouped_tensors(r, layout_dtype, arena, out);
}

struct routing_place routing_place_of(const struct routing_tensors *t,
                                      const struct hum_layer_config *layer,
                                      const struct hum_tuning_config *tuning, int64_t at_row,
                                      int64_t at_col)
{
    const struct routing_tile *at = &t->tiles[at_row];
    int64_t columns = layer->shape_n / tuning->block_n;
    int64_t number = at->before * columns + at_col / tuning->block_n * at->of_segment + at->index;

    return (struct routing_place){.m = t->row_tiles * tuning->block_m,
                                  .row = number % t->row_tiles * tuning->block_m,
                                  .col = number / t->row_tiles * tuning->block_n};
}
