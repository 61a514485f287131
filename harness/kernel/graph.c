#include "harness/kernel/graph.h"

#include "harness/kernel/trial_graph.h"

#include <inttypes.h>
#include <string.h>

static const uint8_t other_poison = 0x5a; /* the first launch of a case has 0xff */

/* Inputs of the recorded launch, and what a plain launch makes of them. */
struct inputs {
    struct mix_launch l;
    struct trial_options o;
    const uint16_t *codes; /* rows x n */
};

/* What all launches of the case share. */
struct graphing {
    const struct check_in *in;
    struct finding *f;
    const int32_t *index; /* of the case's outputs (routing.h) */
    struct inputs own;    /* the case's rows */
    struct inputs others;
};

static bool no_memory(struct finding *f)
{
    finding_give(f, VERDICT_INFRA, "the check needs more memory than the limit of a worker");
    return false;
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* Of launches with the same inputs every bit is the same. */
static void compare_bits(const struct graphing *g, int64_t row, const uint16_t *got,
                         const uint16_t *want)
{
    const int64_t n = g->in->q->ref.n;

    g->f->compared += (uint64_t)n;
    if (memcmp(got, want, (size_t)n * sizeof *got) == 0)
        return;
    for (int64_t j = 0; j < n; j++)
        if (got[j] != want[j])
            finding_code(g->f, g->in->q->ref.c, row, j, got[j], want[j]);
}

/* Where slices fall otherwise, a zero may get another sign. */
static void compare_codes(const struct graphing *g, int64_t row, const uint16_t *got,
                          const uint16_t *want)
{
    const int64_t n = g->in->q->ref.n;

    g->f->compared += (uint64_t)n;
    for (int64_t j = 0; j < n; j++)
        if (!finding_same(g->in->q->ref.c, got[j], want[j]))
            finding_code(g->f, g->in->q->ref.c, row, j, got[j], want[j]);
}

/* The case's output that has the row of A and the expert of output `at`; NULL: none. */
static const uint16_t *of_case(const struct graphing *g, const struct inputs *x, int64_t at)
{
    const struct routing *r = &x->l.routing;
    const int64_t row = x->l.rows[r->row_a[at]];
    const int64_t from = row < 0 ? -1 : g->index[row * r->experts + r->row_expert[at]];

    return from < 0 ? NULL : g->in->got + from * g->in->q->ref.n;
}

/* Every output that is written, against a plain launch and against the case. False: `f` says what
 * differs. */
static bool same(const struct graphing *g, const struct inputs *x, const uint16_t *got,
                 const char *what)
{
    const int64_t n = g->in->q->ref.n;

    for (int64_t i = 0; i < x->l.routing.rows; i++) {
        const bool written = x->l.routing.row_expert[i] >= 0;
        const uint16_t *want = written ? of_case(g, x, i) : NULL;

        if (written && got != x->codes)
            compare_bits(g, i, got + i * n, x->codes + i * n);
        if (want)
            compare_codes(g, i, got + i * n, want);
    }
    if (g->f->wrong == 0)
        return true;
    finding_give(g->f, VERDICT_FAIL, "%" PRIu64 " outputs are wrong %s", g->f->wrong, what);
    return false;
}

/* ---- inputs ---------------------------------------------------------------------------------- */

/* Other rows, for the next expert: hardly an output stays, and what tells a kernel the routing has
 * other values in tensors of the same sizes. (Rows of grouped types come expert by expert: the next
 * row is the next expert's, so they come from the other end.) One row is NaN, with a NaN for scale,
 * since the scales of exact data may be all alike; one that is alone has zeros. */
static void turn(const struct routing *r, const struct mix *all, struct mix *out)
{
    const int64_t m = all->count;

    for (int64_t i = 0; i < m; i++)
        out->rows[i] = all->rows[r->counts ? m - 1 - i : (i + 1) % m];
    out->rows[0] = m == 1 ? ROW_ZERO : ROW_NAN;
    for (int64_t i = 0; i < m * r->top_k; i++)
        out->experts[i] =
            all->experts[i] < 0 ? all->experts[i] : (int32_t)((all->experts[i] + 1) % r->experts);
}

/* With a plain launch of them. */
static bool make_inputs(const struct graphing *g, bool turned, struct inputs *x)
{
    const struct routing *r = &g->in->q->routing;
    const int64_t m = g->in->launch->m;
    struct arena *scratch = g->in->scratch;
    struct trial_out out;
    struct mix all, next;
    uint16_t *codes;
    size_t count;

    if (!mix_make(r, m, 0, scratch, &all) || !mix_make(r, m, 0, scratch, &next))
        return no_memory(g->f);
    turn(r, &all, &next);
    if (!trial_mix(g->in->trial, turned ? &next : &all, scratch, &x->l, &x->o, g->f) ||
        !trial_run(g->in->trial, &x->o, &out, g->f))
        return false;
    count = (size_t)(x->l.routing.rows * g->in->q->ref.n);
    codes = arena_alloc(scratch, count, sizeof *codes);
    if (!codes)
        return no_memory(g->f);
    memcpy(codes, out.codes, count * sizeof *codes);
    x->codes = codes;
    return same(g, x, codes, "with other rows in a plain launch");
}

/* Rows that come out alike whichever inputs a replay takes. */
static void judge_trust(const struct graphing *g)
{
    const int64_t n = g->in->q->ref.n;
    int64_t written = 0, alike = 0;

    for (int64_t i = 0; i < g->own.l.routing.rows; i++) {
        if (g->own.l.routing.row_expert[i] < 0)
            continue;
        written++;
        alike += memcmp(g->own.codes + i * n, g->others.codes + i * n, (size_t)n * 2) == 0;
    }
    if (2 * alike > written)
        finding_give(g->f, VERDICT_UNTRUSTED,
                     "%" PRId64 " of %" PRId64 " rows are the same with the other inputs", alike,
                     written);
}

/* ---- the check ------------------------------------------------------------------------------- */

static void replays(struct graphing *g, struct trial_recording *recording)
{
    const struct {
        struct inputs *x;
        bool keep;
        const char *what;
    } steps[] = {
        {&g->own, false, "in a replay with other inputs than those that were recorded"},
        {&g->others, true, "in the second replay"},
        {&g->own, true, "in the third replay"},
    };
    struct trial_out out;

    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        steps[i].x->o.poison = i % 2 ? 0xff : other_poison;
        if (!trial_replay(g->in->trial, &steps[i].x->o, steps[i].keep, recording, &out, g->f) ||
            !same(g, steps[i].x, out.codes, steps[i].what))
            return;
    }
    judge_trust(g);
}

void check_graph(const struct check_in *in, struct finding *f)
{
    struct graphing g = {.in = in, .f = f};
    struct trial_recording recording;

    if (!in->launch->provider->capture) {
        finding_give(f, VERDICT_SKIP, "provider %s cannot record launches",
                     in->launch->provider->name);
        return;
    }
    check_right_codes(in, f);
    if (f->verdict != VERDICT_PASS)
        return;
    g.index = routing_index(&in->q->routing, in->scratch);
    if (!g.index) {
        (void)no_memory(f);
        return;
    }
    if (!make_inputs(&g, false, &g.own) || !make_inputs(&g, true, &g.others))
        return;
    if (trial_capture(in->trial, &g.others.o, &recording, f))
        replays(&g, &recording);
    trial_drop(in->trial);
}
