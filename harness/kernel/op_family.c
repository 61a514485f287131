#include "harness/kernel/op_family.h"

#include "harness/core/clock.h"
#include "harness/kernel/op_trust.h"
#include "harness/kernel/output_hash.h"
#include "harness/kernel/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Outputs of all calls, and what was called. */
static void describe(const struct op_problem *p, const struct finding *f, struct record *r)
{
    int64_t outputs = 0;

    for (int i = 0; i < p->count; i++)
        for (int j = 0; j < p->calls[i].count; j++)
            if (op_part_is_written(&p->calls[i].parts[j]))
                outputs += op_part_count(&p->calls[i].parts[j]);
    r->outputs = (uint64_t)outputs;
    (void)snprintf(r->kernel, sizeof r->kernel, "%s, %d call%s%s%s", p->calls[0].name, p->count,
                   p->count == 1 ? "" : "s", f->note[0] ? "; " : "", f->note);
}

static void judge(const struct op_family *family, const struct op_problem *p, struct op_trial *t,
                  struct finding *f, struct record *r)
{
    char text[HUM_REASON_BYTES];
    const char *why;

    op_check(family, p, t, f, &r->kernel_us);
    if (f->verdict != VERDICT_PASS || p->v[AX_CHECK] == CHECK_CONTRACT)
        return;
    why = op_trust_refuses(family, p, f, text, sizeof text);
    if (why)
        finding_give(f, VERDICT_UNTRUSTED, "%s", why);
}

static void run_case(const struct op_family *family, struct runner *r, struct op_trial *t,
                     const struct op_problem *p, struct record *out)
{
    struct finding f = {.at_row = -1, .at_col = -1};
    double start = clock_us();

    op_trial_open(t);
    if (r->hook)
        r->hook->op(r->hook->context, family, p, t, &f);
    else
        judge(family, p, t, &f, out);
    op_trial_close(t);
    output_hash_text(t->hash, out->output_hash);
    out->compare_us = clock_us() - start - out->kernel_us;
    out->memory_bytes = r->problem.peak + r->scratch.peak;
    describe(p, &f, out);
    runner_take(out, &f);
}

/* Checks that need data of their own; cases that agree in this and in m share a problem. */
static int64_t data_of(const int64_t *v)
{
    return v[AX_CHECK] == CHECK_SPECIAL || v[AX_CHECK] == CHECK_EXHAUSTIVE ? v[AX_CHECK] : -1;
}

static bool same_data(const int64_t *v, const int64_t *w)
{
    return v[AX_M] == w[AX_M] && data_of(v) == data_of(w);
}

void op_family_run(const struct op_family *family, struct runner *r, const struct plan *plan,
                   size_t begin, size_t end, const struct runner_hooks *hooks)
{
    struct op_problem p = {0};
    const char *why = NULL;

    for (size_t i = begin; i < end && runner_goes_on(hooks); i++) {
        const int64_t *v = plan->cases[i].v;
        struct op_trial t = {.provider = r->provider,
                             .handle = r->handle,
                             .arena = &r->scratch,
                             .hooks = hooks,
                             .index = i};
        double start = clock_us();
        struct record rec;

        hooks->stage(hooks->context, i, STAGE_PREPARE);
        arena_reset(&r->scratch);
        r->scratch.peak = 0;
        runner_record(plan, i, r->provider, &rec);
        if (i == begin || !same_data(v, plan->cases[i - 1].v)) {
            arena_reset(&r->problem);
            r->problem.peak = 0;
            why = family->make(v, plan->rules, &r->problem, &p);
            rec.reference_us = clock_us() - start;
        }
        p.v = v;
        p.rules = plan->rules;
        if (why) {
            rec.verdict = VERDICT_INFRA;
            (void)snprintf(rec.reason, sizeof rec.reason, "%s", why);
        } else {
            run_case(family, r, &t, &p, &rec);
        }
        hooks->record(hooks->context, &rec);
    }
}
