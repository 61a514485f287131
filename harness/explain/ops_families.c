#include "harness/explain/ops_families.h"

#include "harness/explain/locate.h"
#include "harness/explain/ops_buffers.h"
#include "harness/explain/ops_table.h"
#include "harness/kernel/words.h"

#include <stdio.h>
#include <string.h>

static const char no_memory[] = "the explanation needs more memory than the limit";

/* ---- a probe of what was seen ---------------------------------------------------------------- */

/* "outputs", of several calls "outputs of call 2 (process_input)". */
static const char *part_name(const struct ops_recorder *r, int call, int out, struct arena *arena)
{
    const struct ops_seen *s = &r->calls[call].seen;

    if (r->count == 1)
        return s->out[out].name;
    return arena_printf(arena, "%s of call %d (%s)", s->out[out].name, call + 1, s->op->name);
}

/* False: there is no room, or memory is out. */
static bool add_call(const struct ops_recorder *r, int call, struct probe *out, struct arena *arena)
{
    const struct ops_seen *s = &r->calls[call].seen;

    if (out->part_count + s->outs > PROBE_PARTS)
        return false;
    for (int i = 0; i < s->outs; i++) {
        const char *name = part_name(r, call, i, arena);

        if (!name || !probe_add(out, name, s->out[i].count, s->out[i].width, s->out[i].type))
            return false;
    }
    return true;
}

/* The NaN whose bits are PROBE_ANY becomes another NaN. */
static uint32_t want_code(const struct ops_output *out, uint64_t want)
{
    if (want == OPS_OPEN)
        return PROBE_ANY;
    return want == PROBE_ANY && out->type ? 0x7fffffffu : (uint32_t)want;
}

static void copy_calls(const struct ops_probe *own, struct probe *out)
{
    int64_t at = 0;

    for (int i = 0; i < own->count; i++) {
        const struct ops_call *c = &own->calls[i];

        for (int j = 0; j < c->seen.outs; j++) {
            const size_t count = (size_t)c->seen.out[j].count;

            memcpy(out->got + at, c->seen.out[j].got, count * sizeof *out->got);
            for (size_t k = 0; k < count; k++)
                out->want[at + (int64_t)k] = want_code(&c->seen.out[j], c->want[j][k]);
            at += (int64_t)count;
        }
    }
}

static bool add_buffers(struct ops_probe *own, struct probe *out)
{
    own->buffers_at = -1;
    if (!own->buffers.there || out->part_count == PROBE_PARTS)
        return true;
    own->buffers.config.gate_up = &own->buffers.gate_up;
    own->buffers.config.down = &own->buffers.down;
    own->buffers_at = out->count;
    return probe_add(out, "buffer_metas", OPS_BUFFER_COUNT, OPS_BUFFER_FIELDS, NULL);
}

/* False: memory is out. */
static bool make_probe(struct ops_recorder *r, struct probe *out, struct arena *arena)
{
    struct ops_probe *own = ARENA_NEW(arena, 1, struct ops_probe);

    if (!own)
        return false;
    own->calls = r->calls;
    own->buffers = r->buffers;
    while (own->count < r->count && add_call(r, own->count, out, arena))
        own->count++;
    if (!add_buffers(own, out))
        return false;
    out->got = arena_alloc(arena, (size_t)out->count + 1, sizeof *out->got);
    out->want = arena_alloc(arena, (size_t)out->count + 1, sizeof *out->want);
    out->own = own;
    if (!out->got || !out->want)
        return false;
    copy_calls(own, out);
    if (own->buffers_at < 0)
        return true;
    ops_buffers_elements(own->buffers.got, out->got + own->buffers_at);
    return ops_buffers_answer(&own->buffers, BUFFERS_RIGHT, 0, out->want + own->buffers_at);
}

/* Runs the case as it is checked, but for `contract`, whose calls are wrong on purpose. */
static void run_recorded(struct explain *x, const int64_t v[AX_COUNT], struct ops_recorder *r)
{
    const struct hum_provider *real = x->runner->provider;
    void *handle = x->runner->handle;
    int64_t w[AX_COUNT];

    memcpy(w, v, sizeof w);
    if (w[AX_CHECK] == CHECK_CONTRACT)
        w[AX_CHECK] = CHECK_EXACT;
    r->by_ulp = w[AX_CHECK] == CHECK_ULP;
    x->runner->provider = &r->provider;
    x->runner->handle = r;
    explain_rerun(x, w);
    x->runner->provider = real;
    x->runner->handle = handle;
}

/* Does a pipeline fail in one of its two products? */
static bool is_of_product(const struct explain *x, const int64_t v[AX_COUNT],
                          const struct ops_recorder *r)
{
    return v[AX_FAMILY] == FAMILY_EXPERTS && v[AX_CHECK] == CHECK_EXACT && !r->wrong &&
           !r->buffers.wrong && x->last.verdict == VERDICT_FAIL;
}

bool ops_run(struct explain *x, const int64_t v[AX_COUNT], struct probe *out,
             char why[EXPLAIN_TEXT])
{
    struct ops_recorder *r = ARENA_NEW(&x->probes, 1, struct ops_recorder);

    (void)snprintf(why, EXPLAIN_TEXT, "%s", no_memory);
    if (!r)
        return false;
    arena_reset(&x->scratch);
    ops_recorder_init(r, x->runner->provider, x->runner->handle, &x->probes, &x->scratch);
    r->rules = x->rules;
    run_recorded(x, v, r);
    memcpy(out->v, v, sizeof out->v);
    if (!make_probe(r, out, &x->probes))
        return false;
    if (is_of_product(x, v, r)) {
        (void)snprintf(why, EXPLAIN_TEXT,
                       "a product is wrong, no operation beside it (%.200s); its layer can be "
                       "explained as a case of the family gemm",
                       x->last.reason);
        return false;
    }
    if (out->count)
        return true;
    if (r->full)
        return false;
    (void)snprintf(why, EXPLAIN_TEXT, "%s",
                   x->last.reason[0] ? x->last.reason : "no call was accepted");
    return false;
}

/* ---- other data ------------------------------------------------------------------------------ */

/* Elements of a case that need no more of them. */
enum { ENOUGH = 1 << 20 };

/* The other data of the checks of values: usual ones, and NaN, infinities, zeros, limits. */
static int64_t other_check(int64_t check)
{
    return check == CHECK_SPECIAL ? CHECK_EXACT : CHECK_SPECIAL;
}

bool ops_vary(const int64_t v[AX_COUNT], int turn, int64_t out[AX_COUNT], char what[PROBE_WHAT])
{
    static const struct {
        enum axis_id axis;
        int64_t times, plus;
    } sizes[] = {{AX_M, 1, 3}, {AX_K, 2, 0}, {AX_K, 1, 12},
                 {AX_M, 2, 1}, {AX_K, 3, 0}, {AX_K, 8, 0}};

    if (turn == 0) {
        out[AX_CHECK] = other_check(v[AX_CHECK]);
        (void)snprintf(what, PROBE_WHAT, "data of the check %s",
                       axes[AX_CHECK].words[out[AX_CHECK]]);
        return true;
    }
    turn--;
    if (v[AX_M] * v[AX_K] > ENOUGH || turn >= (int)(sizeof sizes / sizeof sizes[0]))
        return false;
    out[sizes[turn].axis] = v[sizes[turn].axis] * sizes[turn].times + sizes[turn].plus;
    out[AX_SEED] = v[AX_SEED] + 101 + turn;
    if (out[AX_CHECK] == CHECK_EXHAUSTIVE) /* its sizes are what they are */
        out[AX_CHECK] = CHECK_EXACT;
    (void)snprintf(what, PROBE_WHAT, "%s %lld", axes[sizes[turn].axis].key,
                   (long long)out[sizes[turn].axis]);
    return true;
}

/* ---- places ---------------------------------------------------------------------------------- */

void ops_locate(struct explain *x, const struct probes *all)
{
    const struct probe *p = all->items;
    struct period columns[3];
    struct periods periods = {.columns = columns};

    while (p->wrong_count == 0)
        p++;
    if (p->v[AX_FAMILY] == FAMILY_PROCESS_INPUT && p->v[AX_QUANT_GROUP] > 1)
        columns[periods.column_count++] = (struct period){p->v[AX_QUANT_GROUP], "quant_group_size"};
    if (p->v[AX_HADAMARD] > 1)
        columns[periods.column_count++] = (struct period){p->v[AX_HADAMARD], "Hadamard block"};
    if (p->v[AX_FAMILY] == FAMILY_QUANT_WEIGHT && p->v[AX_GROUP] > 1)
        columns[periods.column_count++] = (struct period){p->v[AX_GROUP], "group size"};
    locate_probe(x, p, &periods);
}

/* ---- predictions ----------------------------------------------------------------------------- */

bool ops_probe_has(const struct probe *p, const struct ops_operation *op)
{
    const struct ops_probe *own = p->own;

    for (int i = 0; i < own->count; i++)
        if (own->calls[i].seen.op == op)
            return true;
    return false;
}

/* Does the twist say of some wrong element what it becomes? */
static bool says_something(const struct ops_call *c, const struct ops_answer *a)
{
    for (int i = 0; i < c->seen.outs; i++)
        for (int64_t j = 0; j < c->seen.out[i].count; j++)
            if (a->codes[i][j] != OPS_OPEN &&
                !ops_holds(&c->seen.out[i], (uint32_t)a->codes[i][j], c->want[i][j]))
                return true;
    return !c->wrong;
}

/* Which rows of a call the places lie in, whose elements begin at `first`. NULL: it must be looked
 * at whole, or memory is out. */
static const bool *rows_of(const struct ops_call *c, int64_t first, const struct probe *p,
                           const struct places *at, struct arena *scratch)
{
    bool *rows;

    if (!c->seen.op->by_rows || at->count * 4 > p->count)
        return NULL;
    rows = arena_zalloc(scratch, (size_t)c->seen.out[0].count + 1, sizeof *rows);
    for (int i = 0; rows && i < c->seen.outs; i++) {
        const struct ops_output *out = &c->seen.out[i];

        for (int64_t j = 0; j < at->count; j++)
            if (at->at[j] >= first && at->at[j] < first + out->count)
                rows[(at->at[j] - first) / out->width] = true;
        first += out->count;
    }
    return rows;
}

/* Codes of one call behind each other; what the twist leaves open is what came. */
static bool predict_call(const struct ops_call *c, const struct ops_row *row, const bool *rows,
                         struct arena *scratch, uint32_t *codes)
{
    struct ops_answer a;

    if (!ops_answer(&c->seen, &row->twist, rows, scratch, &a))
        return false;
    if (!rows && !says_something(c, &a))
        return false;
    for (int i = 0; i < c->seen.outs; i++)
        for (int64_t j = 0; j < c->seen.out[i].count; j++)
            *codes++ = a.codes[i][j] == OPS_OPEN ? c->seen.out[i].got[j] : (uint32_t)a.codes[i][j];
    return true;
}

bool ops_row_predict(const struct hypothesis *h, const struct probe *p, int64_t variant,
                     const struct places *at, uint32_t *codes, struct arena *scratch)
{
    const struct ops_row *row = h->own;
    const struct ops_probe *own = p->own;
    uint32_t *all = arena_alloc(scratch, (size_t)p->count + 1, sizeof *all);
    int64_t first = 0;

    (void)variant;
    if (!all || !ops_probe_has(p, row->op))
        return false;
    memcpy(all, p->want, (size_t)p->count * sizeof *all);
    for (int i = 0; i < own->count; i++) {
        const struct ops_call *c = &own->calls[i];
        const size_t mark = scratch->used;
        const bool *rows = rows_of(c, first, p, at, scratch);

        if (c->seen.op == row->op && !predict_call(c, row, rows, scratch, all + first))
            return false;
        scratch->used = mark;
        for (int j = 0; j < c->seen.outs; j++)
            first += c->seen.out[j].count;
    }
    for (int64_t i = 0; i < at->count; i++)
        codes[i] = all[at->at[i]];
    return true;
}
