#include "harness/kernel/matrix.h"

#include "harness/kernel/legal.h"
#include "harness/kernel/plan_resolve.h"
#include "harness/kernel/words.h"
#include "reference/dtype.h"

#include <stdlib.h>
#include <string.h>

enum { M = 32, N = 256, K = 512, EXPERTS = 4, FIRST_ROWS = 1024 };

const enum axis_id matrix_axes[MATRIX_AXES] = {AX_A,     AX_B,    AX_C,         AX_BS,
                                               AX_SCALE, AX_ZERO, AX_GEMM_TYPE, AX_MMA};

/* ---- what a compute capability runs ---------------------------------------------------------- */

/* clang-format off */
/* The least compute capability whose mma.sync takes the format (0: none), and which of the other
 * instructions take it. */
static const struct {
    const char *a;
    int mma;
    bool wgmma, umma, mxmma;
} formats[] = {
    {"f16",  75, true,  true,  false},
    {"bf16", 80, true,  true,  false},
    {"e4m3", 89, true,  true,  true},
    {"e5m2", 89, true,  true,  true},
    {"e3m4",  0, false, true,  true},
    {"e2m1",  0, false, true,  true},
    {"e0m3",  0, false, true,  true},
    {"int8", 75, true,  true,  false},
    {"int4", 80, false, false, false},
};
/* clang-format on */
enum { FORMAT_COUNT = sizeof formats / sizeof formats[0] };

static bool runs(int sm, int64_t a, enum word_mma mma)
{
    int i = 0;

    while (i < FORMAT_COUNT && strcmp(formats[i].a, dtypes[a].name) != 0)
        i++;
    if (i == FORMAT_COUNT)
        return false;
    switch (mma) {
    case MMA_MMA:
        return formats[i].mma && sm >= formats[i].mma;
    case MMA_WGMMA:
        return formats[i].wgmma && sm / 10 == 9;
    case MMA_UMMA:
        return formats[i].umma && (sm / 10 == 10 || sm / 10 == 11);
    case MMA_MXMMA:
        return formats[i].mxmma && sm / 10 == 12;
    }
    return false;
}

static bool runs_at_all(int sm, int64_t a)
{
    return runs(sm, a, MMA_MMA) || runs(sm, a, MMA_WGMMA) || runs(sm, a, MMA_UMMA) ||
           runs(sm, a, MMA_MXMMA);
}

/* ---- all combinations ------------------------------------------------------------------------ */

struct maker {
    struct matrix *out;
    size_t room;
    int64_t v[AX_COUNT];
};

static int64_t value_count(enum axis_id x)
{
    int64_t count = 0;

    if (axes[x].kind != AXIS_WORD)
        return dtype_count;
    while (axes[x].words[count])
        count++;
    return count;
}

static bool set_defaults(int64_t v[AX_COUNT])
{
    char buf[128];

    for (int x = 0; x < AX_COUNT; x++) {
        v[x] = 0;
        if (axes[x].fallback && axis_parse(&axes[x], axes[x].fallback, &v[x], buf, sizeof buf))
            return false;
    }
    v[AX_M] = M;
    v[AX_N] = N;
    v[AX_K] = K;
    v[AX_CHECK] = CHECK_EXACT;
    v[AX_TUNING] = TUNING_PROVIDER;
    return true;
}

/* May the first `places` values be part of a legal combination? The axes behind them are unknown,
 * and so is what depends on them. */
static bool may_be(const struct maker *k, int places)
{
    uint64_t known = UINT64_MAX >> (64 - AX_COUNT), decided_by[AX_COUNT];
    int64_t v[AX_COUNT];

    memcpy(v, k->v, sizeof v);
    for (int i = places; i < MATRIX_AXES; i++) {
        known &= ~AXIS_BIT(matrix_axes[i]);
        if (matrix_axes[i] == AX_GEMM_TYPE)
            known &= ~AXIS_BIT(AX_EXPERTS);
    }
    v[AX_EXPERTS] = v[AX_GEMM_TYPE] == GEMM_DENSE ? 0 : EXPERTS;
    known = plan_resolve(v, known, 1, decided_by);
    return legal_find(v, known, known) < 0;
}

static bool add(struct maker *k)
{
    struct matrix *m = k->out;
    struct matrix_row *rows;
    uint64_t key = 0;

    if (m->count == k->room) {
        k->room = k->room ? 2 * k->room : FIRST_ROWS;
        rows = ARENA_NEW(m->arena, k->room, struct matrix_row);
        if (!rows)
            return false;
        if (m->count)
            memcpy(rows, m->rows, m->count * sizeof *rows);
        m->rows = rows;
    }
    for (int i = 0; i < MATRIX_AXES; i++)
        key = key << 8 | (uint64_t)k->v[matrix_axes[i]];
    m->rows[m->count++] = (struct matrix_row){.key = key};
    return true;
}

/* Depth: at most MATRIX_AXES. */
static bool expand(struct maker *k, int place)
{
    enum axis_id x;

    if (place == MATRIX_AXES)
        return add(k);
    x = matrix_axes[place];
    for (int64_t value = 0; value < value_count(x); value++) {
        k->v[x] = value;
        if ((x == AX_A && !runs_at_all(k->out->sm, value)) ||
            (x == AX_MMA && !runs(k->out->sm, k->v[AX_A], (enum word_mma)value)) ||
            !may_be(k, place + 1))
            continue;
        if (!expand(k, place + 1))
            return false;
    }
    return true;
}

bool matrix_make(int sm, struct arena *arena, struct matrix *out)
{
    struct maker k = {.out = out};

    *out = (struct matrix){.sm = sm, .arena = arena};
    return set_defaults(k.v) && expand(&k, 0);
}

/* ---- coverage -------------------------------------------------------------------------------- */

static int by_key(const void *a, const void *b)
{
    const struct matrix_row *x = a, *y = b;

    return (x->key > y->key) - (x->key < y->key);
}

bool matrix_cover(struct matrix *m, const int64_t v[AX_COUNT])
{
    struct matrix_row wanted = {0}, *found;
    bool wgmma = m->sm / 10 == 9 && runs(m->sm, v[AX_A], MMA_WGMMA);

    if (v[AX_FAMILY] != FAMILY_GEMM || !m->count)
        return false;
    for (int i = 0; i < MATRIX_AXES; i++) {
        int64_t value = v[matrix_axes[i]];

        if (value == AXIS_AUTO)
            value = wgmma ? MMA_WGMMA : MMA_MMA;
        wanted.key = wanted.key << 8 | (uint64_t)value;
    }
    found = bsearch(&wanted, m->rows, m->count, sizeof wanted, by_key);
    if (found)
        found->covered = true;
    return found != NULL;
}

static uint64_t mask_of(unsigned places)
{
    uint64_t mask = 0;

    for (int i = 0; i < MATRIX_AXES; i++)
        mask = mask << 8 | (places >> i & 1 ? 255 : 0);
    return mask;
}

bool matrix_count(const struct matrix *m, unsigned places, struct matrix_share *out,
                  void (*lost)(uint64_t key, void *context), void *context)
{
    struct matrix_row *rows = ARENA_NEW(m->arena, m->count + 1, struct matrix_row);
    uint64_t mask = mask_of(places);

    *out = (struct matrix_share){0};
    if (!rows)
        return false;
    for (size_t i = 0; i < m->count; i++)
        rows[i] = (struct matrix_row){m->rows[i].key & mask, m->rows[i].covered};
    qsort(rows, m->count, sizeof *rows, by_key);
    for (size_t i = 0; i < m->count;) {
        const uint64_t key = rows[i].key;
        bool covered = false;

        for (; i < m->count && rows[i].key == key; i++)
            covered = covered || rows[i].covered;
        out->all++;
        out->covered += covered;
        if (!covered && lost)
            lost(key, context);
    }
    return true;
}
