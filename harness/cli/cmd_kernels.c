#include "harness/cli/commands.h"
#include "harness/cli/diagnose.h"
#include "harness/cli/interrupt.h"
#include "harness/cli/machine.h"
#include "harness/core/build_info.h"
#include "harness/kernel/pool.h"
#include "harness/kernel/provider.h"
#include "harness/kernel/support.h"
#include "harness/report/report.h"

#include <inttypes.h>
#include <time.h>

enum { EXIT_INTERRUPTED = 130, WORKER_ARGUMENTS = 16 };

/* clang-format off */
static const struct cli_option options[] = {
    COMMANDS_PLAN_OPTIONS,
    {"out", OPT_OUTS, 0, "KIND:TARGET", NULL, 0,
     "write results too: jsonl:FILE or junit:FILE; - is standard output"},
    {"support", OPT_TEXT, OPTION_AT(support), "FILE", NULL, 0,
     "the skips to expect; a skip that it does not list is a fail"},
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

static int list_cases(const struct plan *plan)
{
    for (size_t i = 0; i < plan->count; i++)
        (void)printf("%s\n", plan->cases[i].id);
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
    struct report *rep;
    struct errs *errs;
    enum err_code rc; /* of the report, while in process */
    int jobs;
    int64_t failed; /* cases that neither passed nor were skipped */
    struct diagnoses diagnoses;
    bool enough; /* as many as --max-fail; what comes after is left */
    bool complete;
};

/* Everything that reaches a report goes through here: a skip must be an expected one. */
static enum err_code take_record(void *context, const struct record *r, struct errs *errs)
{
    struct kernels_run *k = context;
    struct record judged = *r;

    if (k->enough)
        return ERR_NONE;
    support_apply(&k->support, k->plan->cases[r->index].v, &judged);
    k->failed += judged.verdict != VERDICT_PASS && judged.verdict != VERDICT_SKIP;
    if (judged.verdict == VERDICT_FAIL && !k->o->no_diagnosis && !k->o->no_timing &&
        !k->o->in_process)
        diagnose_record(&k->diagnoses, k->o, &interrupted, &judged);
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
                               .interrupted = &interrupted};

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

static enum err_code run_in_process(struct kernels_run *k)
{
    const struct runner_hooks hooks = {direct_stage, direct_record, k, &interrupted};
    struct runner *r = runner_open(k->provider, k->jobs, commands_memory(1), k->errs);
    size_t i = 0;

    if (!r)
        return ERR_INFRA;
    for (; i < k->plan->problem_count && !interrupted && !k->rc; i++) {
        const struct plan_problem *p = &k->plan->problems[i];

        runner_problem(r, k->plan, i, p->first, p->first + p->count, &hooks);
    }
    runner_close(r);
    k->complete = i == k->plan->problem_count && !interrupted && !k->rc;
    return k->rc;
}

static int run_reported(struct kernels_run *k, const struct run_info *info)
{
    const struct options *o = k->o;
    const struct report_options how = {.outs = o->outs,
                                       .out_count = o->out_count,
                                       .no_timing = o->no_timing,
                                       .quiet = o->quiet,
                                       .verbose = o->verbose};
    enum verdict verdict;
    enum err_code rc, closed;

    if (report_open(&k->rep, &how, info, k->errs))
        return commands_failed(k->errs);
    rc = o->in_process ? run_in_process(k) : run_pool(k);
    k->complete = k->complete || (k->enough && !rc); /* stopped as asked: what is there is whole */
    closed = report_close(k->rep, k->complete, &verdict, k->errs);
    if (interrupted && !k->complete)
        return EXIT_INTERRUPTED;
    if (rc || closed || !k->complete)
        return commands_failed(k->errs);
    return verdict_exit_code(verdict);
}

static int run_kernels(const struct options *o, struct arena *arena, struct errs *errs)
{
    struct plan plan;
    struct kernels_run k = {.o = o, .plan = &plan, .arena = arena, .errs = errs};
    struct run_info info = {.program = build_program, .suites = o->operands};

    if (commands_plan(o, arena, &plan, errs) || support_load(o->support, arena, &k.support, errs))
        return commands_failed(errs);
    if (o->list)
        return list_cases(&plan);
    k.provider = provider_find(o->provider, errs);
    if (!k.provider)
        return commands_failed(errs);
    info.provider = arena_printf(arena, "%s %s on %s", k.provider->name, k.provider->version,
                                 k.provider->device);
    if (!info.provider) {
        (void)errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the report");
        return commands_failed(errs);
    }
    info.suite_count = o->operand_count;
    info.cases = plan.count;
    info.problems = plan.problem_count;
    info.illegal = plan.illegal;
    info.excluded = plan.excluded;
    info.started = (uint64_t)time(NULL);
    k.diagnoses.seconds_left = o->diagnose_seconds;
    k.jobs = o->jobs ? (int)o->jobs : k.provider->alloc ? 1 : machine_cores();
    interrupt_catch();
    interrupt_ignore_pipe();
    return run_reported(&k, &info);
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
