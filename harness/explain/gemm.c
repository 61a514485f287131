#include "harness/explain/gemm.h"

#include "harness/kernel/legal.h"
#include "harness/kernel/plan_resolve.h"
#include "harness/kernel/trial.h"
#include "harness/kernel/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- one launch ------------------------------------------------------------------------------ */

static bool sorry(char why[EXPLAIN_TEXT], const char *text)
{
    (void)snprintf(why, EXPLAIN_TEXT, "%s", text);
    return false;
}

/* The configuration that was launched, for later questions about its order of sums. */
static bool keep_launch(const struct trial *t, struct arena *arena, struct gemm_probe *g)
{
    bool dense = t->shared->q->routing.type == HUM_GEMM_DENSE;

    g->layer = t->shared->tensors.layer;
    g->compute = t->compute;
    g->tuning = t->tuning;
    g->launch = (struct launch){.provider = t->provider,
                                .handle = t->handle,
                                .layer = &g->layer,
                                .compute = &g->compute,
                                .tuning = &g->tuning,
                                .m = t->v[AX_M],
                                .routing = dense ? NULL : &g->routing};
    return dense || routing_tensors_make(&t->shared->q->routing, g->tuning.block_m,
                                         layer_layout_dtype(t->v), arena, &g->routing);
}

/* Which outputs keep what was there before, whatever that was? `got` has the poison 0xffff. */
static bool look_again(struct trial *t, const struct probe *p, struct arena *arena,
                       struct gemm_probe *g)
{
    struct trial_options other = trial_plain(t->v[AX_M]);
    struct trial_out got;
    bool *unwritten, any = false;

    for (int64_t i = 0; i < p->count; i++)
        any = any || p->got[i] == g->poison;
    other.poison = 0x55;
    if (!any)
        return true;
    unwritten = ARENA_NEW(arena, p->count, bool);
    if (!unwritten || !trial_launch(t, &other, &got))
        return false;
    for (int64_t i = 0; i < p->count; i++)
        unwritten[i] = p->got[i] == g->poison && got.codes[i] == 0x5555;
    g->unwritten = unwritten;
    return true;
}

static bool launch(struct trial *t, struct probe *out, struct arena *arena, struct gemm_probe *g,
                   char why[EXPLAIN_TEXT])
{
    const struct trial_options plain = trial_plain(t->v[AX_M]);
    struct finding f = {.at_row = -1, .at_col = -1};
    struct trial_out got;

    if (!trial_open(t, &f))
        return sorry(why, f.reason);
    if (!keep_launch(t, arena, g))
        return sorry(why, "memory is out");
    if (!trial_launch(t, &plain, &got))
        return sorry(why, t->shared->device.reason);
    if (got.code != HUM_OK)
        return sorry(why, got.reason);
    for (int64_t i = 0; i < out->count; i++)
        out->got[i] = got.codes[i];
    (void)snprintf(out->note, sizeof out->note, "%s", got.damage);
    return look_again(t, out, arena, g) || sorry(why, t->shared->device.reason);
}

/* ---- what is right --------------------------------------------------------------------------- */

static void want_of_problem(const struct problem *q, struct probe *out, uint16_t poison)
{
    for (int64_t row = 0; row < problem_rows(q, q->ref.m); row++)
        for (int64_t j = 0; j < q->cols_count; j++)
            out->want[row * q->ref.n + q->cols[j]] =
                problem_writes(q, row) ? q->want[row * q->cols_count + j] : poison;
}

static bool sums_like_ieee(const struct gemm_probe *g)
{
    char reason[HUM_REASON_BYTES];
    struct order order;

    return !order_of(&g->launch, 0, 0, &order, reason) && !order.accum.tensor_core &&
           (order.accum.slices == 1 || order.accum.ordered);
}

/* Random data: predicted where the provider sums in IEEE operations. */
static bool want_of_twin(struct explain *x, struct probe *out)
{
    arena_reset(&x->scratch);
    return sums_like_ieee(gemm_of(out)) && twin_right(out, out->want, &x->scratch);
}

static bool make_probe(struct explain *x, struct trial_problem *p, struct problem *q,
                       struct probe *out, char why[EXPLAIN_TEXT])
{
    struct gemm_probe *g = ARENA_NEW(&x->probes, 1, struct gemm_probe);
    struct trial t = {.shared = p,
                      .provider = x->runner->provider,
                      .handle = x->runner->handle,
                      .v = out->v,
                      .hooks = &x->hooks};
    int64_t rows = problem_rows(q, q->ref.m);
    struct probe_part *part = probe_add(out, "outputs", rows * q->ref.n, q->ref.n, q->ref.c);
    bool fine;

    out->got = arena_alloc(&x->probes, (size_t)out->count, sizeof *out->got);
    out->want = arena_alloc(&x->probes, (size_t)out->count, sizeof *out->want);
    if (!g || !out->got || !out->want)
        return sorry(why, "memory is out");
    part->zeros_alike = true;
    *g = (struct gemm_probe){.q = q, .rows = rows, .poison = 0xffff};
    out->own = g;
    fine = launch(&t, out, &x->probes, g, why);
    device_release(&p->device, 0);
    if (!fine)
        return false;
    for (int64_t i = 0; i < out->count; i++)
        out->want[i] = PROBE_ANY;
    if (q->want)
        want_of_problem(q, out, g->poison);
    else if (!want_of_twin(x, out))
        return sorry(why, "the order of the sums of random data is not known");
    return true;
}

static bool run(struct explain *x, const int64_t v[AX_COUNT], struct probe *out,
                char why[EXPLAIN_TEXT])
{
    struct problem *q = ARENA_NEW(&x->probes, 1, struct problem);
    struct trial_problem p;
    const char *text;

    memcpy(out->v, v, sizeof out->v);
    if (!q)
        return sorry(why, "memory is out");
    arena_reset(&x->scratch); /* of the launch */
    text = problem_make(out->v, x->rules, v[AX_M], x->runner->threads, &x->probes, q);
    if (!text)
        text = q->inexact;
    if (!text)
        text = trial_prepare(&p, q, &x->scratch, x->runner->provider, x->runner->handle);
    return text ? sorry(why, text) : make_probe(x, &p, q, out, why);
}

/* ---- more data ------------------------------------------------------------------------------- */

/* Fills, each with a check that goes with it. With `long_m` there are rows enough to read out every
 * k, as far as that is affordable. */
static const struct {
    int64_t fill, check;
    bool long_m;
    const char *what;
} turns[] = {
    {FILL_P, CHECK_READOUT, true, "fill P, a row for each k"},
    {FILL_E1, CHECK_EXACT, false, "fill E1"},
    {FILL_E2, CHECK_EXACT, false, "fill E2"},
    {FILL_S, CHECK_EXACT, false, "fill S"},
    {FILL_W, CHECK_EXACT, false, "fill W"},
    {FILL_C, CHECK_EXACT, false, "fill C"},
    {FILL_O, CHECK_EXACT, false, "fill O"},
    {FILL_X, CHECK_EXACT, false, "fill X"},
    {FILL_P, CHECK_READOUT, false, "fill P"},
    {FILL_R, CHECK_BOUND, false, "fill R"},
};

enum { MOST_READ_OUT = 512 };

static bool vary(const int64_t v[AX_COUNT], int turn, int64_t out[AX_COUNT], char what[PROBE_WHAT])
{
    if (turn >= (int)(sizeof turns / sizeof turns[0]))
        return false;
    (void)snprintf(what, PROBE_WHAT, "%s", turns[turn].what);
    out[AX_FILL] = turns[turn].fill;
    out[AX_CHECK] = turns[turn].check;
    out[AX_DATA] = DATA_NORMAL;
    if (turns[turn].long_m && v[AX_GEMM_TYPE] == GEMM_DENSE)
        out[AX_M] = v[AX_K] < MOST_READ_OUT ? v[AX_K] : MOST_READ_OUT;
    if (out[AX_FILL] == v[AX_FILL])
        out[AX_SEED] = v[AX_SEED] + 1;
    return true;
}

/* Longer and shorter k, m and n, in multiples of what the configuration asks for. */
static const struct {
    enum axis_id axis;
    int64_t times, over, plus;
    int64_t fill;
} sizes[] = {
    {AX_K, 2, 1, 0, FILL_E1},  {AX_K, 4, 1, 0, FILL_E1}, {AX_K, 1, 2, 0, FILL_E1},
    {AX_K, 1, 1, 32, FILL_E1}, {AX_N, 2, 1, 0, FILL_E1}, {AX_N, 1, 1, 8, FILL_E1},
    {AX_M, 1, 1, 1, FILL_E1},  {AX_M, 2, 1, 0, FILL_E1}, {AX_M, 1, 1, 17, FILL_E1},
    {AX_K, 2, 1, 0, FILL_P},   {AX_K, 2, 1, 0, FILL_R},  {AX_M, 2, 1, 1, FILL_R},
};

static bool resize(const int64_t v[AX_COUNT], int turn, int64_t out[AX_COUNT],
                   char what[PROBE_WHAT])
{
    uint64_t decided_by[AX_COUNT];
    int64_t x;

    if (turn >= (int)(sizeof sizes / sizeof sizes[0]))
        return false;
    x = sizes[turn].axis;
    out[x] = v[x] * sizes[turn].times / sizes[turn].over + sizes[turn].plus;
    out[AX_FILL] = sizes[turn].fill;
    out[AX_CHECK] = out[AX_FILL] == FILL_P   ? CHECK_READOUT
                    : out[AX_FILL] == FILL_R ? CHECK_BOUND
                                             : CHECK_EXACT;
    out[AX_DATA] = DATA_NORMAL;
    out[AX_PAD_N] = out[AX_PAD_K] = out[AX_MAX_TOKENS] = AXIS_AUTO;
    (void)plan_resolve(out, AXIS_ALL, (uint64_t)v[AX_SEED], decided_by);
    (void)snprintf(what, PROBE_WHAT, "%s = %" PRId64, axes[x].key, out[x]);
    return true;
}

static const struct hypotheses *const gemm_hypotheses[] = {
    &gemm_layout_hypotheses, &gemm_zero_hypotheses,
    &gemm_codes_hypotheses,  &gemm_scale_hypotheses,
    &gemm_sums_hypotheses,   &gemm_output_hypotheses,
    &gemm_rows_hypotheses,   NULL,
};

const struct explain_family explain_gemm = {run, vary, gemm_locate, gemm_hypotheses, resize};
