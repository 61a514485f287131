/* Rows, columns and experts that are mistaken for others; outputs that are not written. */
#include "harness/explain/gemm.h"
#include "harness/explain/gemm_variants.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static const struct routing *routing(const struct probe *p)
{
    return &gemm_of(p)->q->routing;
}
static bool is_moe(const struct probe *p)
{
    return routing(p)->type != HUM_GEMM_DENSE;
}
static bool is_grouped(const struct probe *p)
{
    return is_moe(p) && routing(p)->type != HUM_GEMM_INDEXED;
}
static bool has_top_k(const struct probe *p)
{
    return routing(p)->type == HUM_GEMM_INDEXED && routing(p)->top_k > 1;
}
static bool has_scaled_top_k(const struct probe *p)
{
    return has_top_k(p) && gemm_of(p)->q->ref.input_scale;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Is a row the last of a tile that is not full, with the row before it in the same tile? */
static bool is_last_of_partial(const struct twin *t, int64_t row)
{
    const struct routing *r = &t->q->routing;
    const struct routing_tensors *tensors = &t->g->routing;
    int64_t block_m = t->g->tuning.block_m, first = row;

    if (r->type == HUM_GEMM_DENSE)
        return row == t->g->rows - 1 && t->g->rows % block_m > 1;
    if (row + 1 < r->rows && r->row_expert[row + 1] >= 0 &&
        routing_tile_of(tensors, row + 1) == routing_tile_of(tensors, row))
        return false;
    while (first > 0 && r->row_expert[first - 1] >= 0 &&
           routing_tile_of(tensors, first - 1) == routing_tile_of(tensors, row))
        first--;
    return row > first && row - first + 1 < block_m;
}
static int64_t row_before(const struct twin *t, int64_t row)
{
    int64_t arow = t->q->routing.row_a[row];

    return is_last_of_partial(t, row) ? arow - 1 : arow;
}
static int64_t own_row(const struct twin *t, int64_t row)
{
    return t->q->routing.row_a[row];
}
/* Variant 1: its input scales, too. */
static void last_row(struct twin *t)
{
    t->none = t->q->routing.type == HUM_GEMM_INDEXED;
    t->a_row = row_before;
    t->scale_row = t->variant ? row_before : own_row;
}

static int64_t id_mod_m(const struct twin *t, int64_t row)
{
    return row % t->ref.m;
}
/* Variant 1: the input scale, too. */
static void id_not_divided(struct twin *t)
{
    t->a_row = id_mod_m;
    t->scale_row = t->variant ? id_mod_m : own_row;
}
static void input_scale_of_id(struct twin *t)
{
    t->scale_row = id_mod_m;
}

/* Is the row before in the same tile? */
static bool has_row_before(const struct twin *t, int64_t row)
{
    const struct routing *r = &t->q->routing;

    if (row == 0 || r->row_expert[row - 1] < 0)
        return false;
    if (r->type == HUM_GEMM_DENSE)
        return row % t->g->tuning.block_m != 0;
    return routing_tile_of(&t->g->routing, row - 1) == routing_tile_of(&t->g->routing, row);
}
/* NaN where the row before is not finite: its inputs; variant 1: its sum. */
static double leak(const struct twin *t, int64_t row, int64_t col, int slice)
{
    const float *a;

    if (!has_row_before(t, row))
        return 0.0;
    if (t->variant)
        return isfinite(twin_sum(t, row - 1, col, slice)) ? 0.0 : (double)NAN;
    a = t->a + t->q->routing.row_a[row - 1] * t->ref.k;
    for (int64_t l = 0; l < t->ref.k; l++)
        if (!isfinite(a[l]))
            return (double)NAN;
    return 0.0;
}
static void row_leaks(struct twin *t)
{
    t->carry = leak;
}

/* ---- columns and places ---------------------------------------------------------------------- */

/* The first of two neighbours that are wrong. */
static int64_t two_columns(const struct probes *all, int64_t out[HYPOTHESIS_VARIANTS])
{
    int64_t columns[2];

    if (gemm_wrong_columns(all, columns, 2) != 2)
        return 0;
    out[0] = columns[0];
    return 1;
}
static bool swap_place(const struct twin *t, int64_t *row, int64_t *col)
{
    int64_t a = t->variant, b = a + 1;

    (void)row;
    *col = *col == a ? b : *col == b ? a : *col;
    return true;
}
static void columns_swapped(struct twin *t)
{
    t->none = t->variant + 1 >= t->ref.n;
    t->place = swap_place;
}
static void swap_detail(const struct hypothesis *h, const struct probe *p, int64_t variant,
                        char buf[HYPOTHESIS_DETAIL])
{
    (void)h;
    (void)p;
    (void)snprintf(buf, HYPOTHESIS_DETAIL, "%" PRId64 " and %" PRId64, variant, variant + 1);
}

static bool is_large(const struct probe *p)
{
    return p->count > 1 << 16;
}
/* Outputs are written in ascending order (variant 1: descending). */
static bool place_16_bits(const struct twin *t, int64_t *row, int64_t *col)
{
    int64_t e = *row * t->ref.n + *col, count = t->g->rows * t->ref.n;

    if (e >= 1 << 16)
        return false;
    while (!t->variant && e + (1 << 16) < count)
        e += 1 << 16;
    *row = e / t->ref.n;
    *col = e % t->ref.n;
    return true;
}
static void index_16_bits(struct twin *t)
{
    t->place = place_16_bits;
}

/* ---- read off the outputs -------------------------------------------------------------------- */

static bool any_unwritten(const struct probe *p)
{
    return gemm_of(p)->unwritten != NULL;
}
static bool written_place(const struct twin *t, int64_t *row, int64_t *col)
{
    return !t->g->unwritten || !t->g->unwritten[*row * t->ref.n + *col];
}
static void not_written(struct twin *t)
{
    t->place = written_place;
}

/* The expert of each output row, as far as its codes tell: `map` of the twin. */
static int64_t mapped(const struct twin *t, int64_t row)
{
    return t->map[row];
}
static int64_t only(const struct twin *t, int64_t row)
{
    (void)row;
    return t->variant;
}

/* Does the row hold what expert e would make of it? Some columns tell; all are compared later. */
static bool looks_like(struct twin *t, int64_t row, int64_t e)
{
    enum { LOOKS = 12 };
    const struct probe *p = t->probe;
    int64_t n = t->ref.n, step = n / LOOKS + 1;

    t->variant = e;
    for (int64_t col = 0; col < n; col += step)
        if (!probe_same(&p->parts[0], twin_output(t, row, col), p->got[row * n + col]))
            return false;
    return true;
}
/* Wrong elements are in ascending order. */
static bool is_wrong_row(const struct twin *t, int64_t row)
{
    const struct probe *p = t->probe;
    int64_t low = 0, high = p->wrong_count;

    while (low < high) {
        int64_t middle = (low + high) / 2;

        if (p->wrong[middle] < row * t->ref.n)
            low = middle + 1;
        else
            high = middle;
    }
    return low < p->wrong_count && p->wrong[low] / t->ref.n == row;
}

/* False: a wrong row is no expert's; `beyond`: there are wrong rows that no expert should have. */
static bool map_rows(struct twin *t, bool *beyond, bool *exchanged)
{
    const struct routing *r = &t->q->routing;
    int64_t *map = arena_alloc(t->arena, (size_t)r->rows, sizeof *map);

    *beyond = *exchanged = false;
    if (!map || !twin_complete(t))
        return false;
    t->expert = only;
    for (int64_t row = 0; row < r->rows; row++) {
        int64_t e = 0;

        map[row] = r->row_expert[row];
        if (!is_wrong_row(t, row))
            continue;
        while (e < r->experts && !looks_like(t, row, e))
            e++;
        if (e == r->experts)
            return false;
        *(map[row] < 0 ? beyond : exchanged) = true;
        map[row] = e;
    }
    t->map = map;
    t->expert = mapped;
    return true;
}
static void wrong_expert(struct twin *t)
{
    bool beyond, exchanged;

    t->none = !map_rows(t, &beyond, &exchanged) || beyond;
}
static void rows_beyond(struct twin *t)
{
    bool beyond, exchanged;

    t->none = !map_rows(t, &beyond, &exchanged) || (exchanged && !beyond);
}

/* Blocks of expert -1 as if they were the first expert's. */
static bool is_indexed(const struct probe *p)
{
    return is_moe(p) && !is_grouped(p);
}
static int64_t row_of_id(const struct twin *t, int64_t row)
{
    return row / t->q->routing.top_k;
}
/* Ids that stand in a block of expert -1 get the first expert; other rows keep theirs, or none. */
static void minus_1_not_skipped(struct twin *t)
{
    const struct routing_tensors *r = &t->g->routing;
    const int32_t *ids = r->sorted_ids.data, *experts = r->expert_ids.data;
    int64_t rows = t->q->routing.rows, block_m = t->g->tuning.block_m;
    int64_t *map = arena_alloc(t->arena, (size_t)rows, sizeof *map);

    t->none = !map;
    for (int64_t row = 0; map && row < rows; row++)
        map[row] = t->q->routing.row_expert[row];
    for (int64_t i = 0; map && i < r->sorted_ids.shape[0]; i++)
        if (ids[i] >= 0 && ids[i] < rows && experts[i / block_m] < 0)
            map[ids[i]] = 0;
    t->map = map;
    t->expert = mapped;
    t->a_row = row_of_id;
}

/* ---- 64-bit layouts -------------------------------------------------------------------------- */

static bool has_layout_64(const struct probe *p)
{
    return is_grouped(p) && gemm_of(p)->routing.expert_layout.dtype == HUM_INT64;
}
/* The layout as 32-bit numbers: the low and the high half of each. */
static int64_t half(const struct routing *r, int64_t i)
{
    int64_t offset = 0;

    if (i % 2)
        return 0;
    if (r->type == HUM_GEMM_GROUPED_MASKED)
        return r->counts[i / 2];
    for (int64_t e = 0; e < i / 2; e++)
        offset += r->counts[e];
    return offset;
}
/* The last expert that has the row. */
static int64_t by_halves(const struct twin *t, int64_t row)
{
    const struct routing *r = &t->q->routing;

    if (r->type == HUM_GEMM_GROUPED_MASKED)
        return row % r->max_tokens < half(r, row / r->max_tokens) ? row / r->max_tokens : -1;
    for (int64_t e = r->experts - 1; e >= 0; e--)
        if (row >= half(r, e) && row < half(r, e + 1))
            return e;
    return -1;
}
static void layout_halves(struct twin *t)
{
    t->expert = by_halves;
}

/* clang-format off */
static const struct hypothesis rows[] = {
    {.name = "last-row-reads-row-before",
     .sentence = "in a partial tile the last row reads A at the row before it",
     .variants = gemm_variants_2, GEMM_TWIST(last_row)},
    {.name = "neighbour-row-leaks",
     .sentence = "a row becomes NaN where the row before it in its tile is not finite",
     .variants = gemm_variants_2, GEMM_TWIST(row_leaks)},
    {.name = "columns-swapped", .sentence = "two columns are swapped", .variants = two_columns,
     .detail = swap_detail, GEMM_TWIST(columns_swapped)},
    {.name = "index-16-bits", .sentence = "the index of an output is formed in 16 bits",
     .applies = is_large, .variants = gemm_variants_2, GEMM_TWIST(index_16_bits)},
    {.name = "id-not-divided", .sentence = "A is read at id mod m instead of id / top_k",
     .applies = has_top_k, .variants = gemm_variants_2, GEMM_TWIST(id_not_divided)},
    {.name = "input-scale-of-id",
     .sentence = "the input scale is read at id mod m instead of id / top_k",
     .applies = has_scaled_top_k, GEMM_TWIST(input_scale_of_id)},
    {.name = "layout-int64-as-int32",
     .sentence = "the halves of 64-bit offsets and counts are read as two numbers",
     .applies = has_layout_64, GEMM_TWIST(layout_halves)},
    {.name = "minus-1-not-skipped",
     .sentence = "rows of expert -1 are multiplied with the first expert's weights",
     .applies = is_indexed, GEMM_TWIST(minus_1_not_skipped)},
    {.name = "not-written", .sentence = "outputs are not written", .rank = 1,
     .applies = any_unwritten, GEMM_TWIST(not_written)},
    {.name = "wrong-expert", .sentence = "rows are multiplied with another expert's weights",
     .rank = 1, .applies = is_moe, GEMM_TWIST(wrong_expert)},
    {.name = "rows-beyond-written",
     .sentence = "rows that no expert has are written", .rank = 1, .applies = is_moe,
     GEMM_TWIST(rows_beyond)},
};
/* clang-format on */

GEMM_TABLE(gemm_rows_hypotheses, rows);
