/* The experts pipeline: tokens and layers -> runs -> check -> trust = record. */
#include "harness/kernel/family.h"

#include "harness/core/clock.h"
#include "harness/kernel/experts_checks.h"
#include "harness/kernel/output_hash.h"

#include <stdio.h>
#include <string.h>

static void describe(const struct experts_trial *t, const struct finding *f, struct record *r)
{
    const struct hum_tuning_config *g = &t->tuning[LAYER_GATE_UP], *d = &t->tuning[LAYER_DOWN];

    (void)snprintf(r->kernel, sizeof r->kernel, "block %dx%dx%d, %dx%dx%d%s%s", g->block_m,
                   g->block_n, g->block_k, d->block_m, d->block_n, d->block_k,
                   f->note[0] ? "; " : "", f->note);
}

static void run_case(struct runner *run, struct experts_trial *t, const char *why, struct record *r)
{
    struct finding f = {.at_row = -1, .at_col = -1};
    double start = clock_us();

    if (why) {
        finding_give(&f, VERDICT_INFRA, "%s", why);
    } else if (experts_open(t, &run->scratch, &f)) {
        r->outputs = (uint64_t)(t->x->tokens * t->x->hidden);
        if (run->hook)
            run->hook->experts(run->hook->context, t, run->threads, &f);
        else
            experts_check(t, run->threads, &f);
        describe(t, &f, r);
    }
    output_hash_text(t->hash, r->output_hash);
    r->kernel_us = t->kernel_us;
    r->compare_us = clock_us() - start - t->kernel_us;
    runner_take(r, &f);
}

void family_experts(struct runner *r, const struct plan *plan, size_t problem, size_t begin,
                    size_t end, const struct runner_hooks *hooks)
{
    const struct plan_problem *pp = &plan->problems[problem];
    struct experts x;
    const char *why;
    double start, made;

    hooks->stage(hooks->context, begin, STAGE_PREPARE);
    arena_reset(&r->problem);
    r->problem.peak = 0;
    start = clock_us();
    why = experts_make(plan->cases[pp->first].v, pp->m, &r->problem, &x);
    made = clock_us() - start;
    for (size_t i = begin; i < end && runner_goes_on(hooks); i++) {
        struct experts_trial t = {.x = &x,
                                  .provider = r->provider,
                                  .handle = r->handle,
                                  .arena = &r->scratch,
                                  .hooks = hooks,
                                  .index = i,
                                  .rules = plan->rules,
                                  .hash = OUTPUT_HASH_NONE};
        struct record rec;

        if (i > begin)
            hooks->stage(hooks->context, i, STAGE_PREPARE);
        arena_reset(&r->scratch);
        r->scratch.peak = 0;
        runner_record(plan, i, r->provider, &rec);
        x.v = plan->cases[i].v; /* the cases of a problem have one set of data */
        run_case(r, &t, why, &rec);
        rec.fill_us = i == begin ? made : 0.0;
        rec.memory_bytes = r->problem.peak + r->scratch.peak;
        hooks->record(hooks->context, &rec);
    }
}
