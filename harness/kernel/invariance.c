#include "harness/kernel/invariance.h"

#include "harness/kernel/legal.h"
#include "harness/kernel/trial.h"

#include <stdio.h>
#include <string.h>

/* Rows put behind those of the case: more than any residue of 16, less than a tile. */
enum { PADDING = 17 };

/* What every variation of the case shares. */
struct variations {
    const struct check_in *in;
    struct finding *f;
    int64_t *rows; /* of the variation in hand: m + PADDING */
};

/* ---- comparing ------------------------------------------------------------------------------- */

/* Columns [col, end) of one row of the case (`row`) and of a variation (`at`). */
static void compare_run(const struct variations *v, const uint16_t *got, int64_t row, int64_t at,
                        int64_t col, int64_t end)
{
    const struct problem *q = v->in->q;
    const uint16_t *want = v->in->got + row * q->ref.n, *have = got + at * q->ref.n;

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
            same = order_same(v->in->launch, row, other, at, col, &end);
        if (same)
            compare_run(v, got, row, at, col, end);
        else
            v->f->vacuous += (uint64_t)(end - col);
    }
}

/* Launches m rows of v->rows; all that the case has too must be the same. False: `f` has the
 * verdict. */
static bool vary(const struct variations *v, int64_t m, const struct hum_tuning_config *tuning,
                 const char *what)
{
    struct trial *t = v->in->trial;
    struct trial_options o = trial_plain(m);
    struct launch other = trial_describe(t, tuning, m);
    struct trial_out out;

    o.rows = v->rows;
    o.tuning = tuning;
    o.poison = 0x5a; /* not the case's: what is not written differs */
    if (!trial_run(t, &o, &out, v->f))
        return false;
    for (int64_t i = 0; i < m; i++)
        if (v->rows[i] >= 0)
            compare_row(v, &other, out.codes, v->rows[i], i);
    if (v->f->wrong == 0)
        return true;
    finding_give(v->f, VERDICT_FAIL, "%llu outputs depend on %s", (unsigned long long)v->f->wrong,
                 what);
    return false;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void identity(const struct variations *v, int64_t m)
{
    for (int64_t i = 0; i < m; i++)
        v->rows[i] = i;
}

/* Fewer rows, by the case's tile; in batch-invariant mode also by the one chosen for so many. */
static bool prefixes(const struct variations *v)
{
    const int64_t m = v->in->launch->m;
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
        if (!vary(v, sizes[i], &t->tuning, what))
            return false;
        if (!t->compute.use_batch_invariant)
            continue;
        if (!trial_tuning(t, sizes[i], &own, v->f) || !vary(v, sizes[i], &own, what))
            return false;
    }
    return true;
}

/* Backwards, and by half a turn and one: no row keeps its place in a tile. */
static bool permutations(const struct variations *v)
{
    const int64_t m = v->in->launch->m;

    for (int64_t i = 0; i < m; i++)
        v->rows[i] = m - 1 - i;
    if (!vary(v, m, &v->in->trial->tuning, "the place of the row"))
        return false;
    for (int64_t i = 0; i < m; i++)
        v->rows[i] = (i + m / 2 + 1) % m;
    return vary(v, m, &v->in->trial->tuning, "the place of the row");
}

/* Every other row NaN: the even ones, then the odd ones. */
static bool neighbours(const struct variations *v)
{
    const int64_t m = v->in->launch->m;

    for (int64_t odd = 0; odd < 2 && odd < m; odd++) {
        for (int64_t i = 0; i < m; i++)
            v->rows[i] = i % 2 == odd ? i : ROW_NAN;
        if (!vary(v, m, &v->in->trial->tuning, "a NaN in another row"))
            return false;
    }
    return true;
}

static bool padding(const struct variations *v)
{
    static const int64_t kinds[] = {ROW_ZERO, ROW_NAN};
    const int64_t m = v->in->launch->m;

    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        identity(v, m);
        for (int64_t i = 0; i < PADDING; i++)
            v->rows[m + i] = kinds[k];
        if (!vary(v, m + PADDING, &v->in->trial->tuning, "padding rows behind it"))
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
    struct variations other = {v->in, &apart, v->rows};
    bool same = vary(&other, v->in->launch->m, tile, "the tile");

    if (!same && apart.wrong == 0) {
        *v->f = apart;
        return false;
    }
    *differ += !same;
    return true;
}

static bool tile_shapes(const struct variations *v)
{
    struct trial *t = v->in->trial;
    int tried = 0, differ = 0;

    identity(v, v->in->launch->m);
    for (size_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++) {
        bool judged = t->compute.use_batch_invariant && tiles[i].k_parts == 1;
        struct hum_tuning_config tile;
        char what[80];

        if (!make_tile(t, i, &tile))
            continue;
        (void)snprintf(what, sizeof what, "the tile (block %dx%dx%d warp %dx%dx%d)", tile.block_m,
                       tile.block_n, tile.block_k, tile.warp_m, tile.warp_n, tile.warp_k);
        if (judged ? !vary(v, v->in->launch->m, &tile, what) : !try_tile(v, &tile, &differ))
            return false;
        tried += !judged;
    }
    if (tried)
        (void)snprintf(v->f->note, sizeof v->f->note, "%d of %d other tiles give other bits",
                       differ, tried);
    return true;
}

void check_invariant(const struct check_in *in, struct finding *f)
{
    struct variations v = {in, f, NULL};

    v.rows = arena_alloc(in->scratch, (size_t)(in->launch->m + PADDING), sizeof *v.rows);
    if (!v.rows) {
        finding_give(f, VERDICT_INFRA, "the check needs more memory than the limit of a worker");
        return;
    }
    (void)(prefixes(&v) && permutations(&v) && neighbours(&v) && padding(&v) && tile_shapes(&v));
}
