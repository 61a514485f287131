/* Some tokens of the pipeline, and the rows they get. */
#include "harness/kernel/experts.h"

#include "harness/kernel/words.h"

#include <string.h>

/* Working copies, writable, of what struct batch borrows. */
struct rows {
    int64_t *token, *row_of, *offsets, *counts;
    uint16_t *inputs;
    int32_t *ids, *row_a[LAYER_COUNT], *row_expert;
    float *weights;
    bool *entered_live, *live;
};

static bool alloc_rows(const struct experts *x, const struct batch *b, struct arena *arena,
                       struct rows *r)
{
    size_t m = (size_t)b->m, slots = m * (size_t)x->top_k, rows = (size_t)b->rows;

    r->token = arena_alloc(arena, m, sizeof *r->token);
    r->inputs = arena_alloc(arena, m * (size_t)x->hidden, sizeof *r->inputs);
    r->ids = arena_alloc(arena, slots, sizeof *r->ids);
    r->weights = arena_alloc(arena, slots, sizeof *r->weights);
    r->row_of = arena_alloc(arena, slots, sizeof *r->row_of);
    r->offsets = arena_zalloc(arena, (size_t)x->experts + 1, sizeof *r->offsets);
    r->counts = arena_zalloc(arena, (size_t)x->experts, sizeof *r->counts);
    r->row_a[0] = arena_alloc(arena, rows, sizeof(int32_t));
    r->row_a[1] = arena_alloc(arena, rows, sizeof(int32_t));
    r->row_expert = arena_alloc(arena, rows, sizeof(int32_t));
    r->entered_live = arena_zalloc(arena, (size_t)b->entered, sizeof(bool));
    r->live = arena_zalloc(arena, rows, sizeof(bool));
    return r->token && r->inputs && r->ids && r->weights && r->row_of && r->offsets && r->counts &&
           r->row_a[0] && r->row_a[1] && r->row_expert && r->entered_live && r->live;
}

static int64_t number_of(int64_t token)
{
    return token < 0 ? TOKEN_NAN(token) : token;
}

/* Tokens in order; batched: those of expert 0 first, and so on. */
static void order_tokens(const struct experts *x, const int64_t *tokens, int64_t m, int64_t *out)
{
    int64_t count = 0;

    for (int64_t e = 0; e < (experts_batched(x) ? x->experts : 1); e++)
        for (int64_t i = 0; i < m; i++) {
            int64_t token = tokens ? tokens[i] : i;

            if (!experts_batched(x) || x->ids[number_of(token)] == e)
                out[count++] = token;
        }
}

static void gather(const struct experts *x, int64_t m, struct rows *r)
{
    size_t width = (size_t)x->hidden, k = (size_t)x->top_k;

    for (int64_t i = 0; i < m; i++) {
        int64_t token = number_of(r->token[i]);
        uint16_t *to = r->inputs + (size_t)i * width;

        if (r->token[i] < 0)
            memset(to, 0xff, width * sizeof *to); /* a NaN of f16 and bf16 */
        else
            memcpy(to, x->inputs + (size_t)token * width, width * sizeof *to);
        memcpy(r->ids + (size_t)i * k, x->ids + (size_t)token * k, k * sizeof *r->ids);
        memcpy(r->weights + (size_t)i * k, x->weights + (size_t)token * k, k * sizeof *r->weights);
    }
}

/* counts, and offsets: where the rows of each expert begin. */
static void count_rows(const struct experts *x, int64_t slots, struct rows *r)
{
    for (int64_t i = 0; i < slots; i++)
        if (r->ids[i] >= 0)
            r->counts[r->ids[i]]++;
    for (int64_t e = 0; e < x->experts; e++)
        r->offsets[e + 1] = r->offsets[e] + r->counts[e];
}

static void place_slots(const struct experts *x, int64_t slots, struct rows *r)
{
    for (int64_t i = 0; i < slots; i++)
        r->row_of[i] = -1;
    for (int64_t e = 0; e < x->experts; e++) {
        int64_t next = experts_batched(x) ? e * x->max_tokens : r->offsets[e];

        for (int64_t i = 0; i < slots; i++)
            if (r->ids[i] == e)
                r->row_of[i] = x->type == HUM_GEMM_INDEXED ? i : next++;
    }
}

static void mark_rows(const struct experts *x, const struct batch *b, struct rows *r)
{
    bool indexed = x->type == HUM_GEMM_INDEXED;

    for (int64_t i = 0; i < b->rows; i++)
        r->row_a[0][i] = r->row_a[1][i] = r->row_expert[i] = -1;
    for (int64_t i = 0; i < b->m * x->top_k; i++) {
        int64_t row = r->row_of[i];

        if (row < 0)
            continue;
        r->live[row] = true;
        r->row_expert[row] = r->ids[i];
        r->row_a[LAYER_GATE_UP][row] = (int32_t)(indexed ? i / x->top_k : row);
        r->row_a[LAYER_DOWN][row] = (int32_t)row;
    }
    for (int64_t i = 0; i < b->entered; i++)
        r->entered_live[i] = indexed || r->live[i];
}

static void make_routing(const struct experts *x, const struct rows *r, struct batch *b)
{
    bool indexed = x->type == HUM_GEMM_INDEXED;

    for (int layer = 0; layer < LAYER_COUNT; layer++)
        b->routing[layer] =
            (struct routing){.type = x->type,
                             .m = layer == LAYER_GATE_UP ? b->entered : b->rows,
                             .experts = x->experts,
                             .top_k = indexed && layer == LAYER_GATE_UP ? x->top_k : 1,
                             .max_tokens = x->max_tokens,
                             .has_spare = x->layer[layer].v[AX_ROUTING] == ROUTING_SPARE,
                             .rows = b->rows,
                             .row_a = r->row_a[layer],
                             .row_expert = r->row_expert,
                             .ids = indexed ? r->ids : NULL,
                             .counts = indexed ? NULL : r->counts};
}

bool batch_make(const struct experts *x, const int64_t *tokens, int64_t m, struct arena *arena,
                struct batch *out)
{
    int64_t slots = m * x->top_k;
    struct rows r;

    memset(out, 0, sizeof *out);
    out->m = m;
    out->rows = experts_batched(x) ? x->capacity : slots;
    out->entered = x->type == HUM_GEMM_INDEXED ? m : out->rows;
    if (!alloc_rows(x, out, arena, &r))
        return false;
    order_tokens(x, tokens, m, r.token);
    gather(x, m, &r);
    count_rows(x, slots, &r);
    place_slots(x, slots, &r);
    mark_rows(x, out, &r);
    out->token = r.token;
    out->inputs = r.inputs;
    out->ids = r.ids;
    out->weights = r.weights;
    out->row_of = r.row_of;
    out->entered_live = r.entered_live;
    out->live = r.live;
    out->offsets = experts_batched(x) ? r.counts : r.offsets;
    make_routing(x, &r, out);
    return true;
}
