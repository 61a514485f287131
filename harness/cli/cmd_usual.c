#include "harness/cli/commands.h"
#include "harness/faults/usual.h"
#include "harness/kernel/provider.h"

/* clang-format off */
static const struct cli_option options[] = {
    COMMANDS_PLAN_OPTIONS,
    {"run", OPT_COUNT, OPTION_AT(run), "N", "1", USUAL_RUNS, "the first of the six runs"},
};
/* clang-format on */

/* A line as soon as its run is over: a launch that crashes costs the lines after it. */
static int print_runs(struct runner *r, const struct plan *plan, int first, struct errs *errs)
{
    struct usual_outcome outcome;

    for (int run = first; run <= USUAL_RUNS; run++) {
        usual_run(r, plan, 0, run, &outcome);
        if (!mutation_print_usual(&outcome, stdout)) {
            (void)errs_add(errs, ERR_IO, NOWHERE, "cannot write to standard output");
            return commands_failed(errs);
        }
    }
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
    provider = provider_find(o->provider, errs);
    r = provider ? runner_open(provider, 1, commands_memory(1), errs) : NULL;
    if (!r)
        return commands_failed(errs);
    code = print_runs(r, &plan, (int)o->run, errs);
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
