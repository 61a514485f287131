/* GEMM: fill -> operands -> reference -> for each case: launch -> check -> trust = record. */
#include "harness/kernel/family.h"

#include "harness/core/clock.h"
#include "harness/kernel/output_hash.h"
#include "harness/kernel/trial.h"
#include "harness/kernel/trust.h"

#include <stdio.h>
#include <string.h>

static void describe(const struct hum_tuning_config *t, const char *instruction,
                     const struct finding *f, struct record *r)
{
    (void)snprintf(r->kernel, sizeof r->kernel, "block %dx%dx%d warp %dx%dx%d%s%s%s%s%s",
                   t->block_m, t->block_n, t->block_k, t->warp_m, t->warp_n, t->warp_k,
                   t->use_stream_k ? " stream-k" : "", instruction[0] ? " " : "", instruction,
                   f->note[0] ? "; " : "", f->note);
}

/* The tensor core's instruction, if the provider says so of the first row that is written. */
static const char *instruction_of(const struct problem *q, const struct launch *l)
{
    int64_t row = 0, rows = problem_rows(q, l->m);

    while (row < rows && !problem_writes(q, row))
        row++;
    return row < rows ? order_instruction(l, row) : "";
}

/* The outputs of the first launch, out of reach of later ones. */
static const uint16_t *keep_outputs(struct arena *scratch, const uint16_t *codes, int64_t count)
{
    uint16_t *out = arena_alloc(scratch, (size_t)count, sizeof *out);

    if (out)
        memcpy(out, codes, (size_t)count * sizeof *out);
    return out;
}

/* Rows that no expert has are not written. */
static void hash_outputs(const struct routing *routed, const uint16_t *codes, int64_t rows,
                         int64_t n, char text[OUTPUT_HASH_TEXT])
{
    uint64_t h = OUTPUT_HASH_NONE;

    for (int64_t row = 0; row < rows; row++)
        if (routed->type == HUM_GEMM_DENSE || routed->row_expert[row] >= 0)
            h = output_hash_bytes(h, codes + row * n, (size_t)n * sizeof *codes);
    output_hash_text(h, text);
}

static void judge(const struct check_in *in, const struct check *check, struct finding *f)
{
    char text[HUM_REASON_BYTES];
    const char *why;

    check->run(in, f);
    if (f->verdict == VERDICT_FAIL && check->basis == BASIS_EXPECTED) {
        why = trust_ambiguous(in, check->basis, text, sizeof text);
        if (why)
            finding_give(f, VERDICT_UNTRUSTED, "%s", why);
    }
    if (f->verdict != VERDICT_PASS)
        return;
    why = trust_refuses(in, check->basis, f, text, sizeof text);
    if (why)
        finding_give(f, VERDICT_UNTRUSTED, "%s", why);
}

static void launch_and_judge(struct runner *run, struct trial *t, struct record *r,
                             struct finding *f, const char **instruction)
{
    const struct trial_options plain = trial_plain(t->v[AX_M]);
    const struct launch l = trial_describe(t, &t->tuning, t->v[AX_M]);
    struct check_in in = {t->shared->q, &l, NULL, &run->scratch, t};
    struct trial_out out;
    bool fine = trial_run(t, &plain, &out, f);
    double start = clock_us();
    int64_t rows;

    r->kernel_us = out.kernel_us;
    if (!fine)
        return;
    *instruction = instruction_of(in.q, &l);
    rows = problem_rows(in.q, l.m);
    hash_outputs(t->routed, out.codes, rows, in.q->ref.n, r->output_hash);
    in.got = keep_outputs(&run->scratch, out.codes, rows * in.q->ref.n);
    if (in.got)
        judge(&in, check_of(t->v[AX_CHECK]), f);
    else
        finding_give(f, VERDICT_INFRA, "the check needs more memory than the limit of a worker");
    r->compare_us = clock_us() - start;
}

static void run_case(struct runner *run, struct trial *t, const char *why, struct record *r)
{
    struct finding f = {.at_row = -1, .at_col = -1};
    const char *instruction = "";

    r->outputs = (uint64_t)(t->v[AX_M] * t->v[AX_TOP_K] * t->v[AX_N]);
    if (why) {
        finding_give(&f, VERDICT_INFRA, "%s", why);
    } else {
        if (trial_open(t, &f)) {
            if (run->hook)
                run->hook->gemm(run->hook->context, t, &run->scratch, &f);
            else
                launch_and_judge(run, t, r, &f, &instruction);
            describe(&t->tuning, instruction, &f, r);
        }
        trial_close(t);
    }
    runner_take(r, &f);
}

static const char *prepare(struct runner *run, const struct plan *plan, size_t problem,
                           struct problem *q, struct trial_problem *p)
{
    const struct plan_problem *pp = &plan->problems[problem];
    const char *why;

    arena_reset(&run->problem);
    run->problem.peak = 0;
    memset(p, 0, sizeof *p);
    why =
        problem_make(plan->cases[pp->first].v, plan->rules, pp->m, run->threads, &run->problem, q);
    return why ? why : trial_prepare(p, q, &run->problem, run->provider, run->handle);
}

void family_gemm(struct runner *r, const struct plan *plan, size_t problem, size_t begin,
                 size_t end, const struct runner_hooks *hooks)
{
    struct trial_problem p;
    struct problem q;
    const char *why;

    hooks->stage(hooks->context, begin, STAGE_PREPARE);
    why = prepare(r, plan, problem, &q, &p);
    for (size_t i = begin; i < end && runner_goes_on(hooks); i++) {
        struct trial t = {.shared = &p,
                          .provider = r->provider,
                          .handle = r->handle,
                          .v = plan->cases[i].v,
                          .hooks = hooks,
                          .index = i};
        struct record rec;

        if (i > begin)
            hooks->stage(hooks->context, i, STAGE_PREPARE);
        arena_reset(&r->scratch);
        r->scratch.peak = 0;
        runner_record(plan, i, r->provider, &rec);
        run_case(r, &t, why, &rec);
        rec.fill_us = i == begin ? q.fill_us : 0.0;
        rec.reference_us = i == begin ? q.reference_us : 0.0;
        rec.memory_bytes = r->problem.peak + r->scratch.peak;
        hooks->record(hooks->context, &rec);
    }
    trial_forget(&p);
}
