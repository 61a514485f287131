#include "harness/kernel/invariance.h"

#include "harness/kernel/legal.h"
#include "harness/kernel/trial.h"
#include "reference/fault.h"

#include <stdio.h>
#include <string.h>

/* Rows put behind those of the case: more than any residue of 16, less than a tile. */
enum { PADDING = 17 };

/* What every variation of the case shares. */
struct variations {
    const struct check_in *in;
    struct finding *f;
    struct launch own;    /* the case, with a routing that outlives other launches */
    const int32_t *index; /* of its outputs (routing.h) */
    struct mix all;       /* its rows */
    struct mix now;       /* those of the variation in hand: room for PADDING more */
};

/* ---- comparing ------------------------------------------------------------------------------- */

/* Columns [col, end) of one row of the case (`row`) and of a variation (`at`). */
static void compare_run(const struct variations *v, const uint16_t *got, int64_t row, int64_t at,
                        int64_t col, int64_t end)
{
    const struct problem *q = v->in->q;
    const uint16_t *want = v->in->got + row * q->ref.n;
    const uint16_t *have = REF_FAULT(INVARIANCE_WITH_ITSELF) ? want : got + at * q->ref.n;

    v->f->compared += (uint64_t)(end - col);
    if (memcmp(want + col, have + col, (size_t)(end - col) * sizeof *want) == 0)
        return;
    for (; col < end; col++)
        if (want[col] != have[col])
            finding_code(v->f, q->ref.c, row, col, have[col], want[col]);
}

static void compare_row(const struct variations *v, const struct launch *other, const uint16_t *got,
                        int64_t row, int64_t at)
{
    int64_t n = v->in->q->ref.n, end = n;

    for (int64_t col = 0; col < n; col = end) {
        bool same = true;

        if (other->tuning->use_stream_k)
            same = order_same(&v->own, row, other, at, col, &end);
        if (same)
            compare_run(v, got, row, at, col, end);
        else
            v->f->vacuous += (uint64_t)(end - col);
    }
}

/* The output row of the case that has the row of A and the expert of output row `at`; -1: none. */
static int64_t row_of(const struct variations *v, const struct mix_launch *l, int64_t at)
{
    const struct routing *r = &l->routing;
    int64_t row = r->row_expert[at] < 0 ? -1 : l->rows[r->row_a[at]];

    return row < 0 ? -1 : v->index[row * r->experts + r->row_expert[at]];
}

/* Launches v->now; all outputs that the case has too must be the same. */
static bool launch_and_compare(const struct variations *v, const struct hum_tuning_config *tuning)
{
    struct trial *t = v->in->trial;
    struct trial_options o;
    struct mix_launch l;
    struct launch other;
    struct trial_out out;

    if (!trial_mix(t, &v->now, v->in->scratch, &l, &o, v->f))
        return false;
    o.tuning = tuning;
    o.poison = 0x5a; /* not the case's: what is not written differs */
    if (!trial_run(t, &o, &out, v->f))
        return false;
    other = trial_describe(t, tuning, l.m);
    for (int64_t i = 0; i < l.routing.rows; i++)
        if (row_of(v, &l, i) >= 0)
            compare_row(v, &other, out.codes, row_of(v, &l, i), i);
    return true;
}

/* False: `f` has the verdict. */
static bool vary(const struct variations *v, const struct hum_tuning_config *tuning,
                 const char *what)
{
    size_t mark = v->in->scratch->used;
    bool launched = launch_and_compare(v, tuning);

    v->in->scratch->used = mark;
    if (!launched || v->f->wrong == 0)
        return launched;
    finding_give(v->f, VERDICT_FAIL, "%llu outputs depend on %s", (unsigned long long)v->f->wrong,
                 what);
    return false;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static size_t top_k(const struct variations *v)
{
    return (size_t)v->in->q->routing.top_k;
}

/* Row `to` of the variation is row `from` of the case, with its experts. */
static void take(struct variations *v, int64_t to, int64_t from)
{
    size_t k = top_k(v);

    v->now.rows[to] = v->all.rows[from];
    memcpy(v->now.experts + (size_t)to * k, v->all.experts + (size_t)from * k,
           k * sizeof *v->now.experts);
}

static void identity(struct variations *v, int64_t m)
{
    v->now.count = m;
    for (int64_t i = 0; i < m; i++)
        take(v, i, i);
}

/* Fewer rows, by the case's tile; in batch-invariant mode also by the one chosen for so many. */
static bool prefixes(struct variations *v)
{
    const int64_t m = v->all.count;
    const int64_t sizes[] = {1, 2, 15, 16, 17, m / 2, m - 1};
    struct trial *t = v->in->trial;
    char what[80];

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct hum_tuning_config own;

        if (sizes[i] < 1 || sizes[i] >= m || (i > 4 && sizes[i] <= 17))
            continue;
        identity(v, sizes[i]);
        (void)snprintf(what, sizeof what, "how many rows there are (%lld instead of %lld)",
                       (long long)sizes[i], (long long)m);
        if (!vary(v, &t->tuning, what))
            return false;
        if (!t->compute.use_batch_invariant)
            continue;
        if (!trial_tuning(t, sizes[i], &own, v->f) || !vary(v, &own, what))
            return false;
    }
    return true;
}

/* Backwards, and by half a turn and one: no row keeps its place in a tile. */
static bool permutations(struct variations *v)
{
    const int64_t m = v->all.count;

    v->now.count = m;
    for (int64_t i = 0; i < m; i++)
        take(v, i, m - 1 - i);
    if (!vary(v, &v->in->trial->tuning, "the place of the row"))
        return false;
    for (int64_t i = 0; i < m; i++)
        take(v, i, (i + m / 2 + 1) % m);
    return vary(v, &v->in->trial->tuning, "the place of the row");
}

/* Neighbours in the mix have different experts where rows stand in turn (mix_make), those
 * that are `experts` apart have the same one. */
static bool is_chosen(const struct variations *v, int64_t i, int way)
{
    int64_t stride = way < 2 ? 1 : v->in->q->routing.experts;

    return i / stride % 2 == way % 2;
}

static int ways(const struct variations *v)
{
    return v->in->q->routing.experts > 1 ? 4 : 2;
}

/* Every other row NaN: the even ones, then the odd ones. */
static bool neighbours(struct variations *v)
{
    const int64_t m = v->all.count;

    for (int way = 0; way < ways(v) && way < m; way++) {
        identity(v, m);
        for (int64_t i = 0; i < m; i++)
            if (!is_chosen(v, i, way))
                v->now.rows[i] = ROW_NAN;
        if (!vary(v, &v->in->trial->tuning, "a NaN in another row"))
            return false;
    }
    return true;
}

/* Behind the case's rows, with experts behind those of each. */
static bool padding(struct variations *v)
{
    static const int64_t kinds[] = {ROW_ZERO, ROW_NAN};
    const int64_t m = v->all.count;

    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        identity(v, m);
        v->now.count = m + PADDING;
        for (int64_t i = m; i < m + PADDING; i++) {
            take(v, i, i % m);
            v->now.rows[i] = kinds[k];
        }
        if (!vary(v, &v->in->trial->tuning, "padding rows behind it"))
            return false;
    }
    return true;
}

/* ---- experts --------------------------------------------------------------------------------- */

/* A new expert for place i of the mix's experts. */
typedef int32_t reroute_fn(const struct variations *v, int64_t i, int way);

/* Every other place is nobody's. */
static int32_t leave_out(const struct variations *v, int64_t i, int way)
{
    return is_chosen(v, i, way) ? v->all.experts[i] : -1;
}

/* Every other place goes to the next expert. */
static int32_t move(const struct variations *v, int64_t i, int way)
{
    int32_t e = v->all.experts[i];

    return is_chosen(v, i, way) || e < 0 ? e : (int32_t)((e + 1) % v->in->q->routing.experts);
}

/* One expert alone has rows. */
static int32_t keep_one(const struct variations *v, int64_t i, int way)
{
    int64_t only = way * (v->in->q->routing.experts - 1) / 3;

    return v->all.experts[i] == only ? v->all.experts[i] : -1;
}

/* The same rows, fewer or others of which have the same expert. */
static bool routings(struct variations *v)
{
    static const struct {
        reroute_fn *reroute;
        const char *what;
    } others[] = {
        {leave_out, "which other rows have an expert"},
        {move, "which experts other rows have"},
        {keep_one, "whether other experts have rows"},
    };
    int64_t places = v->all.count * (int64_t)top_k(v);

    if (v->in->q->routing.type == HUM_GEMM_DENSE)
        return true;
    for (size_t k = 0; k < sizeof others / sizeof others[0]; k++)
        for (int way = 0; way < ways(v); way++) {
            identity(v, v->all.count);
            for (int64_t i = 0; i < places; i++)
                v->now.experts[i] = others[k].reroute(v, i, way);
            if (!vary(v, &v->in->trial->tuning, others[k].what))
                return false;
        }
    return true;
}

/* ---- tiles ----------------------------------------------------------------------------------- */

/* Shapes of thread block and warp; along k both are the case's, or (`k_parts`) divided. */
/* clang-format off */
static const struct {
    int32_t block_m, block_n, warp_m, warp_n;
    int32_t k_parts; /* block_k and warp_k of the case divided by so much: another class */
} tiles[] = {
    { 16,  64, 16, 32, 1},
    { 16, 128, 16, 64, 1},
    { 32,  64, 32, 32, 1},
    { 32, 128, 16, 32, 1},
    { 64,  64, 64, 32, 1},
    { 64, 128, 32, 64, 1},
    { 64, 256, 64, 64, 1},
    {128,  64, 64, 32, 1},
    {128, 128, 64, 64, 1},
    { 64,  64, 64, 32, 2},
    { 32, 128, 32, 32, 4},
};
/* clang-format on */

static bool is_legal(const struct trial *t, const struct hum_tuning_config *x)
{
    char reason[HUM_REASON_BYTES];
    int64_t v[AX_COUNT];

    memcpy(v, t->v, sizeof v);
    v[AX_BLOCK] = axis_tile(x->block_m, x->block_n, x->block_k);
    v[AX_WARP] = axis_tile(x->warp_m, x->warp_n, x->warp_k);
    return !legal_broken(v) &&
           trial_supports(t, &t->shared->tensors.layer, &t->compute, x, reason) == HUM_OK;
}

static bool make_tile(const struct trial *t, size_t i, struct hum_tuning_config *out)
{
    const struct hum_tuning_config *own = &t->tuning;

    *out = *own;
    out->block_m = tiles[i].block_m;
    out->block_n = tiles[i].block_n;
    out->warp_m = tiles[i].warp_m;
    out->warp_n = tiles[i].warp_n;
    out->block_k /= tiles[i].k_parts;
    out->warp_k /= tiles[i].k_parts;
    return (tiles[i].k_parts > 1 || out->block_m != own->block_m || out->block_n != own->block_n ||
            out->warp_m != own->warp_m || out->warp_n != own->warp_n) &&
           is_legal(t, out);
}

/* Other bits from this tile are counted, not judged; damage is judged. */
static bool try_tile(const struct variations *v, const struct hum_tuning_config *tile, int *differ)
{
    struct finding apart = {.at_row = -1};
    struct variations other = *v;
    bool same;

    other.f = &apart;
    same = vary(&other, tile, "the tile");

    if (!same && apart.wrong == 0) {
        *v->f = apart;
        return false;
    }
    *differ += !same;
    return true;
}

static bool tile_shapes(struct variations *v)
{
    struct trial *t = v->in->trial;
    int tried = 0, differ = 0;

    identity(v, v->all.count);
    for (size_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++) {
        bool judged = t->compute.use_batch_invariant && tiles[i].k_parts == 1;
        struct hum_tuning_config tile;
        char what[80];

        if (!make_tile(t, i, &tile))
            continue;
        (void)snprintf(what, sizeof what, "the tile (block %dx%dx%d warp %dx%dx%d)", tile.block_m,
                       tile.block_n, tile.block_k, tile.warp_m, tile.warp_n, tile.warp_k);
        if (judged ? !vary(v, &tile, what) : !try_tile(v, &tile, &differ))
            return false;
        tried += !judged;
    }
    if (tried)
        (void)snprintf(v->f->note, sizeof v->f->note, "%d of %d other tiles give other bits",
                       differ, tried);
    return true;
}

/* What outlives the launches. False: memory is out. */
static bool prepare(struct variations *v)
{
    const struct check_in *in = v->in;
    const struct routing *r = &in->q->routing;
    struct routing_tensors *kept = arena_alloc(in->scratch, 1, sizeof *kept);

    v->own = *in->launch;
    v->index = routing_index(r, in->scratch);
    if (!kept || !v->index || !mix_make(r, in->launch->m, 0, in->scratch, &v->all) ||
        !mix_make(r, in->launch->m, PADDING, in->scratch, &v->now))
        return false;
    if (!v->own.routing)
        return true;
    v->own.routing = kept;
    return routing_tensors_make(r, v->own.tuning->block_m, layer_layout_dtype(in->trial->v),
                                in->scratch, kept);
}

void check_invariant(const struct check_in *in, struct finding *f)
{
    struct variations v = {.in = in, .f = f};

    if (!prepare(&v)) {
        finding_give(f, VERDICT_INFRA, "the check needs more memory than the limit of a worker");
        return;
    }
    (void)(prefixes(&v) && permutations(&v) && neighbours(&v) && padding(&v) && routings(&v) &&
           tile_shapes(&v));
}
