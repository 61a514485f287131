#include "harness/faults/usual.h"

#include "harness/kernel/runner.h"
#include "harness/kernel/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
static const struct {
    double rtol, atol;
} close_rows[3] = {
    {0.05, 0.1},
    {0.01, 0.05},
    {0.01, 0.01},
};
/* clang-format on */

enum { COSINE = 3, CALC_DIFF, NMSE };

/* ---- the checks ------------------------------------------------------------------------------ */

void usual_add(struct usual_sums *s, double got, double want)
{
    double error = got == want ? 0.0 : fabs(got - want); /* of equal infinities, too */
    bool allowed = got == want || isfinite(want);        /* else anything is near an infinity */

    s->compared++;
    for (int i = 0; i < 3; i++)
        s->failed[i] = s->failed[i] || !allowed ||
                       !(error <= close_rows[i].atol + close_rows[i].rtol * fabs(want));
    s->got_got += got * got;
    s->got_want += got * want;
    s->want_want += want * want;
    s->error_error += error * error;
}

void usual_judge(const struct usual_sums *s, struct usual_outcome *out)
{
    bool zeros = s->got_got == 0.0 && s->want_want == 0.0;
    double cosine = s->got_want / (sqrt(s->got_got) * sqrt(s->want_want));
    double difference = 1.0 - 2.0 * s->got_want / (s->got_got + s->want_want);
    double nmse = s->error_error / s->want_want;

    out->compared += s->compared;
    for (int i = 0; i < 3; i++)
        out->failed[i] = out->failed[i] || s->failed[i];
    if (zeros)
        return;
    out->failed[COSINE] = out->failed[COSINE] || !(cosine > 0.99);
    out->failed[CALC_DIFF] = out->failed[CALC_DIFF] || !(difference < 1e-3);
    out->failed[NMSE] = out->failed[NMSE] || !(nmse < 5e-4);
}

/* ---- the data -------------------------------------------------------------------------------- */

void usual_axes(const int64_t v[AX_COUNT], int run, int64_t out[AX_COUNT])
{
    /* 2^64 divided by the golden ratio: multiples of it lie far apart. */
    const uint64_t step = UINT64_C(0x9e3779b97f4a7c15);

    memcpy(out, v, AX_COUNT * sizeof *out);
    out[AX_SEED] = (int64_t)((uint64_t)v[AX_SEED] ^ step * (uint64_t)run);
    out[AX_CHECK] = CHECK_EXACT;
    if (v[AX_FAMILY] != FAMILY_GEMM)
        return;
    out[AX_CHECK] = CHECK_BOUND;
    out[AX_FILL] = FILL_R;
    out[AX_DATA] = DATA_NORMAL;
    out[AX_SCALES] = 0; /* of the fill */
}

bool usual_is_first(const struct plan *plan, size_t index)
{
    int64_t mine[AX_COUNT], other[AX_COUNT];

    usual_axes(plan->cases[index].v, 1, mine);
    for (size_t i = 0; i < index; i++) {
        usual_axes(plan->cases[i].v, 1, other);
        if (!memcmp(mine, other, sizeof mine))
            return false;
    }
    return true;
}

/* ---- a run ----------------------------------------------------------------------------------- */

static void no_stage(void *context, size_t case_index, enum stage stage)
{
    (void)context;
    (void)case_index;
    (void)stage;
}

/* A case that did not get as far as its outputs. */
static void take_record(void *context, const struct record *r)
{
    struct usual_outcome *out = context;

    if (out->ran)
        return;
    (void)snprintf(out->reason, sizeof out->reason, "%s", r->reason);
    out->ran = r->verdict == VERDICT_FAIL;
    for (int i = 0; i < USUAL_CHECKS; i++)
        out->failed[i] = out->ran;
}

void usual_run(struct runner *r, const struct plan *plan, size_t index, int run,
               struct usual_outcome *out)
{
    const struct runner_hooks hooks = {.stage = no_stage, .record = take_record, .context = out};
    struct case_hook hook = usual_hook(out);
    struct plan_case only = plan->cases[index];
    struct plan_problem problem = {.first = 0, .count = 1, .m = only.v[AX_M]};
    struct plan one = *plan;

    *out = (struct usual_outcome){.run = run};
    usual_axes(plan->cases[index].v, run, only.v);
    only.problem = 0;
    one.cases = &only;
    one.problems = &problem;
    one.count = one.problem_count = 1;
    r->hook = &hook;
    runner_problem(r, &one, 0, 0, 1, &hooks);
    r->hook = NULL;
}
