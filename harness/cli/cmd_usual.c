#include "harness/cli/commands.h"
#include "harness/faults/usual.h"

/* clang-format off */
static const struct cli_option options[] = {
    COMMANDS_PLAN_OPTIONS,
    {"run", OPT_COUNT, OPTION_AT(run), "N", "1", USUAL_RUNS, "the first of the six runs"},
    {"all-cases", OPT_FLAG, OPTION_AT(all_cases), "", NULL, 0,
     "every configuration of the cases, once, in the runs up to --run"},
};
/* clang-format on */

/* A line as soon as its run is over: a launch that crashes costs the lines after it. */
static bool print_run(struct runner *r, const struct plan *plan, size_t index, int run,
                      const char *id, struct errs *errs)
{
    struct usual_outcome outcome;

    usual_run(r, plan, index, run, &outcome);
    if (mutation_print_usual(&outcome, id, stdout))
        return true;
    (void)errs_add(errs, ERR_IO, NOWHERE, "cannot write to standard output");
    return false;
}

static int print_first(struct runner *r, const struct plan *plan, int first, struct errs *errs)
{
    for (int run = first; run <= USUAL_RUNS; run++)
        if (!print_run(r, plan, 0, run, NULL, errs))
            return commands_failed(errs);
    return 0;
}

static int print_all(struct runner *r, const struct plan *plan, int runs, struct errs *errs)
{
    for (size_t i = 0; i < plan->count; i++)
        for (int run = 1; run <= runs && usual_is_first(plan, i); run++)
            if (!print_run(r, plan, i, run, plan->cases[i].id, errs))
                return commands_failed(errs);
    return 0;
}

static int run_usual(const struct options *o, struct arena *arena, struct errs *errs)
{
    const struct hum_provider *provider;
    struct runner *r;
    struct plan plan;
    int code;

    if (commands_plan(o, arena, &plan, errs))
        return commands_failed(errs);
    provider = commands_provider(o, arena, &plan, errs);
    r = provider ? runner_open(provider, 1, commands_memory(1), errs) : NULL;
    if (!r)
        return commands_failed(errs);
    code = o->all_cases ? print_all(r, &plan, (int)o->run, errs)
                        : print_first(r, &plan, (int)o->run, errs);
    runner_close(r);
    return code;
}

const struct command command_usual = {
    .name = "usual",
    .operands = "SUITE...",
    .min_operands = 1,
    .max_operands = -1,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run_usual,
    .help = "what the usual checks say of the first case, in six runs; started by mutate",
    .hidden = true,
};
