#include "harness/cli/against.h"
#include "harness/cli/budget.h"
#include "harness/cli/commands.h"
#include "harness/cli/diagnose.h"
#include "harness/cli/interrupt.h"
#include "harness/cli/known_run.h"
#include "harness/cli/machine.h"
#include "harness/core/build_info.h"
#include "harness/core/proc.h"
#include "harness/kernel/pool.h"
#include "harness/kernel/provider.h"
#include "harness/kernel/semantics.h"
#include "harness/kernel/support.h"
#include "harness/report/report.h"

#include <inttypes.h>
#include <time.h>

enum { EXIT_INCONCLUSIVE = 4, EXIT_INTERRUPTED = 130, WORKER_ARGUMENTS = 16, NOTES = 64 };

/* clang-format off */
static const struct cli_option options[] = {
    COMMANDS_PLAN_OPTIONS,
    {"out", OPT_OUTS, 0, "KIND:TARGET", NULL, 0,
     "write results too: jsonl:FILE, junit:FILE or left:FILE; - is standard output"},
    {"support", OPT_TEXT, OPTION_AT(support), "FILE", NULL, 0,
     "the skips to expect; a skip that it does not list is a fail"},
    {"known", OPT_TEXT, OPTION_AT(known), "FILE", NULL, 0,
     "faults that are known, as suites/known.yaml (left out: none): fails, but not red alone"},
    {"budget", OPT_TIME, OPTION_AT(budget_seconds), "TIME", NULL, 360000,
     "start problems by risk while there is time (90s, 10m, 1h), and say what was left out"},
    {"history", OPT_LIST, OPTION_AT(history), "FILE", NULL, 0,
     "with --budget: records (jsonl) of an earlier run, the most recent one first; what failed "
     "comes first"},
    {"changed", OPT_LIST, OPTION_AT(changed), "FILE", NULL, 0,
     "with --budget: a source file that changed, or @LIST of them; what it can break comes next"},
    {"touches", OPT_TEXT, OPTION_AT(touches), "FILE", NULL, 0,
     "which cases a changed file can break; left out: suites/touches.yaml"},
    {"against", OPT_TEXT, OPTION_AT(against), "NAME", NULL, 0,
     "list the cases whose bits or verdict are others with this provider, or in the records "
     "jsonl:FILE"},
    {"fail-on-change", OPT_FLAG, OPTION_AT(fail_on_change), "", NULL, 0,
     "with --against: exit code 1 for a pass with other bits or another verdict"},
    {"list", OPT_FLAG, OPTION_AT(list), "", NULL, 0, "print the ids of the cases and stop"},
    {"jobs", OPT_COUNT, OPTION_AT(jobs), "N", NULL, 1024,
     "worker processes; left out: one a core, or one if the provider has a device"},
    {"case-seconds", OPT_SECONDS, OPTION_AT(case_seconds), "S", "60", 86400, "limit of one case"},
    {"max-fail", OPT_COUNT, OPTION_AT(max_fail), "N", NULL, 1000000000,
     "stop after N cases that neither pass nor are skipped"},
    {"in-process", OPT_FLAG, OPTION_AT(in_process), "", NULL, 0,
     "no workers, for debuggers: a crash ends the run"},
    {"diagnose-seconds", OPT_SECONDS, OPTION_AT(diagnose_seconds), "S", "5", 86400,
     "seconds of the run for saying why its first failing cases fail"},
    {"no-diagnosis", OPT_FLAG, OPTION_AT(no_diagnosis), "", NULL, 0, "do not say why"},
    {"no-timing", OPT_FLAG, OPTION_AT(no_timing), "", NULL, 0,
     "leave out what differs between equal runs"},
    {"quiet", OPT_FLAG, OPTION_AT(quiet), "", NULL, 0, "print the summary only"},
    {"verbose", OPT_FLAG, OPTION_AT(verbose), "", NULL, 0, "print passes and skips too"},
};
/* clang-format on */

static int list_cases(const struct plan *plan, const struct budget *budget)
{
    for (size_t i = 0; i < plan->problem_count; i++) {
        size_t at = budget->order.problems ? budget->order.problems[i] : i;
        const struct plan_problem *p = &plan->problems[at];

        for (size_t j = p->first; j < p->first + p->count; j++)
            (void)printf("%s\n", plan->cases[j].id);
    }
    for (size_t i = 0; i < budget->note_count; i++)
        (void)fprintf(stderr, "%s\n", budget->notes[i]);
    (void)fprintf(stderr, "cases: %zu, problems: %zu, left out as illegal: %zu, by where: %zu\n",
                  plan->count, plan->problem_count, plan->illegal, plan->excluded);
    return 0;
}

struct kernels_run {
    const struct options *o;
    const struct plan *plan;
    const struct hum_provider *provider;
    struct arena *arena;
    struct support support;
    struct known_run known;
    struct budget budget;
    const char *notes[NOTES]; /* for the summary */
    struct report *rep;
    struct errs *errs;
    enum err_code rc; /* of the report, while in process */
    int jobs;
    int64_t failed; /* cases that neither passed nor were skipped, known faults apart */
    size_t taken;   /* records */
    struct diagnoses diagnoses;
    struct against against; /* without --against: no cases */
    struct pool_early early;
    bool enough; /* as many as --max-fail; what comes after is left */
    bool complete;
};

/* Everything that reaches a report goes through here: a skip must be an expected one, and a fail
 * that is known is marked. */
static enum err_code take_record(void *context, const struct record *r, struct errs *errs)
{
    struct kernels_run *k = context;
    struct record judged = *r;

    if (k->enough)
        return ERR_NONE;
    support_apply(&k->support, k->plan->cases[r->index].v, &judged);
    known_run_mark(&k->known, &judged, k->arena);
    k->taken++;
    if (k->budget.ran)
        k->budget.ran[r->index] = true;
    k->failed += judged.verdict != VERDICT_PASS && judged.verdict != VERDICT_SKIP &&
                 !record_known_fails(&judged);
    if (judged.verdict == VERDICT_FAIL && !judged.known[0] && !k->o->no_diagnosis &&
        !k->o->no_timing && !k->o->in_process)
        diagnose_record(&k->diagnoses, k->o, &interrupted, &judged);
    if (k->against.cases)
        against_judge(&k->against.cases[r->index], &judged, &k->against.run.counts);
    if (k->o->max_fail && k->failed >= k->o->max_fail) {
        k->enough = true;
        interrupted = 1; /* ends workers and loops like a signal */
    }
    return report_add(k->rep, &judged, errs);
}

static void pool_tick(void *context)
{
    report_tick(((struct kernels_run *)context)->rep);
}

/* "humcheck worker ..." with everything that decides the plan; NULL: no memory. */
static char *const *worker_argv(const struct kernels_run *k)
{
    const struct options *o = k->o;
    char **argv = ARENA_NEW(k->arena, WORKER_ARGUMENTS + o->operand_count, char *);
    size_t n = 0;
    bool ok = argv != NULL;

#define PUSH(...) (ok = ok && (argv[n++] = arena_printf(k->arena, __VA_ARGS__)) != NULL)
    PUSH("humcheck");
    PUSH("worker");
    PUSH("--provider=%s", o->provider);
    PUSH("--memory-mib=%zu", commands_memory(k->jobs) >> 20);
    if (o->filter)
        PUSH("--filter=%s", o->filter);
    if (o->semantics)
        PUSH("--semantics=%s", o->semantics);
    if (o->shards)
        PUSH("--shard=%" PRId64 "/%" PRId64, o->shard, o->shards);
    if (o->has_seed)
        PUSH("--seed=0x%" PRIx64, o->seed);
    PUSH("--");
    for (size_t i = 0; i < o->operand_count; i++)
        PUSH("%s", o->operands[i]);
#undef PUSH
    return ok ? argv : NULL;
}

static enum err_code run_pool(struct kernels_run *k)
{
    const struct pool_sink sink = {take_record, pool_tick, k};
    struct pool_options how = {.jobs = k->jobs,
                               .case_seconds = k->o->case_seconds,
                               .argv = worker_argv(k),
                               .early = &k->early,
                               .interrupted = &interrupted,
                               .order = k->budget.order.problems,
                               .deadline = k->budget.deadline};

    if (!how.argv)
        return errs_add(k->errs, ERR_NOMEM, NOWHERE, "no memory to start workers");
    return pool_run(k->plan, k->provider, &how, &sink, &k->complete, k->errs);
}

static void direct_stage(void *context, size_t case_index, enum stage stage)
{
    (void)context;
    (void)case_index;
    (void)stage;
}

static void direct_record(void *context, const struct record *r)
{
    struct kernels_run *k = context;
    enum err_code rc = take_record(k, r, k->errs);

    k->rc = k->rc ? k->rc : rc;
}

static bool has_time(const struct kernels_run *k)
{
    return !(k->budget.deadline > 0) || proc_now() < k->budget.deadline;
}

static enum err_code run_in_process(struct kernels_run *k)
{
    const struct runner_hooks hooks = {direct_stage, direct_record, k, &interrupted};
    struct runner *r = runner_open(k->provider, k->jobs, commands_memory(1), k->errs);
    const size_t *order = k->budget.order.problems;
    size_t i = 0;

    if (!r)
        return ERR_INFRA;
    for (; i < k->plan->problem_count && has_time(k) && !interrupted && !k->rc; i++) {
        size_t problem = order ? order[i] : i;
        const struct plan_problem *p = &k->plan->problems[problem];

        runner_problem(r, k->plan, problem, p->first, p->first + p->count, &hooks);
    }
    runner_close(r);
    k->complete = (i == k->plan->problem_count || !has_time(k)) && !interrupted && !k->rc;
    return k->rc;
}

/* A comparison that had nothing to compare is no proof that nothing changed. */
static int exit_code(const struct kernels_run *k, enum verdict verdict)
{
    const struct against_counts *c = &k->against.run.counts;
    const int code = verdict_exit_code(verdict);

    if (code || !k->o->fail_on_change)
        return code;
    if (c->compared == 0) {
        (void)errs_add(k->errs, ERR_INFRA, NOWHERE, "--fail-on-change: no case could be compared");
        return commands_failed(k->errs);
    }
    return c->changed || c->verdicts ? verdict_exit_code(VERDICT_FAIL) : code;
}

/* What is to be said at the end that no record says. */
static enum err_code close_info(struct kernels_run *k, struct run_info *info)
{
    const struct hum_provider *p = k->provider;
    const char *name = arena_printf(k->arena, "%s %s", p->name, p->version);
    const char *why = k->enough ? "after --max-fail" : "for lack of time";

    info->notes = k->notes;
    for (size_t i = 0; i < k->budget.note_count; i++)
        k->notes[info->note_count++] = k->budget.notes[i];
    if (name)
        info->note_count += known_run_notes(&k->known, k->plan, name, p->device, k->arena,
                                            k->notes + info->note_count);
    return k->budget.ran
               ? budget_close(&k->budget, k->complete ? why : "because the run was stopped",
                              k->arena, k->errs)
               : ERR_NONE;
}

static int run_reported(struct kernels_run *k, struct run_info *info)
{
    const struct options *o = k->o;
    const struct report_options how = {.outs = o->outs,
                                       .out_count = o->out_count,
                                       .no_timing = o->no_timing,
                                       .quiet = o->quiet,
                                       .verbose = o->verbose};
    enum verdict verdict;
    enum err_code rc, said, closed;
    bool too_short;

    if (report_open(&k->rep, &how, info, k->errs))
        return commands_failed(k->errs);
    rc = o->in_process ? run_in_process(k) : run_pool(k);
    k->complete = k->complete || (k->enough && !rc); /* stopped as asked: what is there is whole */
    too_short = k->complete && k->budget.ran && !k->taken;
    said = close_info(k, info);
    closed = report_close(k->rep, k->complete && !too_short, &verdict, k->errs);
    if (interrupted && !k->complete)
        return EXIT_INTERRUPTED;
    if (rc || said || closed || !k->complete)
        return commands_failed(k->errs);
    if (too_short) {
        (void)errs_add(k->errs, ERR_INFRA, NOWHERE,
                       "the budget of %g s was over before the first case could be started",
                       o->budget_seconds);
        return EXIT_INCONCLUSIVE;
    }
    return exit_code(k, verdict);
}

/* Name, version, device, and by which rules it is judged; NULL: memory is out. */
static const char *provider_text(const struct kernels_run *k)
{
    const struct hum_provider *p = k->provider;
    char rules[SEMANTICS_NAMES];

    (void)semantics_names(k->plan->rules, NULL, rules, sizeof rules);
    return arena_printf(k->arena, "%s %s on %s%s%s", p->name, p->version, p->device,
                        rules[0] ? " by the rules " : "", rules);
}

/* The files beside the suites. All mistakes are collected before the first failure is returned. */
static enum err_code load_files(struct kernels_run *k, double started)
{
    enum err_code rc[] = {
        support_load(k->o->support, k->arena, &k->support, k->errs),
        known_load(k->o->known, k->arena, &k->known.table, k->errs),
        budget_make(k->o, k->plan, started, k->arena, &k->budget, k->errs),
    };

    return rc[0] ? rc[0] : rc[1] ? rc[1] : rc[2];
}

static enum err_code find_known(struct kernels_run *k)
{
    const struct hum_provider *p = k->provider;
    const char *name = arena_printf(k->arena, "%s %s", p->name, p->version);

    if (!name)
        return errs_add(k->errs, ERR_NOMEM, NOWHERE, "no memory for the known faults");
    return known_run_open(&k->known, k->plan, name, p->device, k->arena, k->errs);
}

/* Workers of a provider in another process load while this process asks who it is. Not beside
 * --against, whose run comes first. */
static void start_early(struct kernels_run *k)
{
    const struct options *o = k->o;
    const size_t jobs = (size_t)(o->jobs > 1 ? o->jobs : 0), problems = k->plan->problem_count;
    const size_t count = jobs < problems ? jobs : problems;
    char *const *argv;

    if (!count || o->in_process || o->against || !provider_is_worker(o->provider))
        return;
    k->jobs = (int)o->jobs;
    argv = worker_argv(k);
    k->early.procs = ARENA_NEW(k->arena, count, struct proc);
    if (argv && k->early.procs)
        pool_early_start(&k->early, argv, count);
}

static int run_planned(struct kernels_run *k, struct run_info *info, struct plan *plan)
{
    const struct options *o = k->o;
    struct arena *arena = k->arena;
    struct errs *errs = k->errs;

    k->provider = commands_provider(o, arena, plan, errs);
    if (!k->provider)
        return commands_failed(errs);
    info->provider = provider_text(k);
    if (find_known(k))
        return commands_failed(errs);
    info->left = k->budget.ran ? &k->budget.left : NULL;
    if (!info->provider) {
        (void)errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the report");
        return commands_failed(errs);
    }
    info->suite_count = o->operand_count;
    info->cases = plan->count;
    info->problems = plan->problem_count;
    info->illegal = plan->illegal;
    info->excluded = plan->excluded;
    info->started = (uint64_t)time(NULL);
    k->diagnoses.seconds_left = o->diagnose_seconds;
    k->jobs = o->jobs ? (int)o->jobs : k->provider->alloc ? 1 : machine_cores();
    interrupt_catch();
    interrupt_ignore_pipe();
    if (o->against) {
        if (report_check(o->outs, o->out_count, errs) ||
            against_load(o, plan, &interrupted, arena, &k->against, errs))
            return interrupted ? EXIT_INTERRUPTED : commands_failed(errs);
        info->against = &k->against.run;
        info->started = (uint64_t)time(NULL);
    }
    return run_reported(k, info);
}

static int run_kernels(const struct options *o, struct arena *arena, struct errs *errs)
{
    const double started = proc_now();
    struct plan plan;
    struct kernels_run k = {.o = o, .plan = &plan, .arena = arena, .errs = errs};
    struct run_info info = {.program = build_program, .suites = o->operands};
    int code;

    if (against_check(o, errs) || budget_check(o, errs) || commands_plan(o, arena, &plan, errs) ||
        load_files(&k, started))
        return commands_failed(errs);
    if (o->list)
        return list_cases(&plan, &k.budget);
    start_early(&k);
    code = run_planned(&k, &info, &plan);
    pool_early_end(&k.early);
    return code;
}

const struct command command_kernels = {
    .name = "kernels",
    .operands = "SUITE...",
    .min_operands = 1,
    .max_operands = -1,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run_kernels,
    .help = "run the kernel cases of suites (YAML files) and say which compute the right bits",
    .about = "Every failing case prints the command that reruns it alone. Options choose which "
             "cases run\n"
             "and where results go; what a case is stands in the suite only. --out files appear "
             "when the\n"
             "run is complete; until then, and after an interrupt, they are FILE.part.\n",
};
