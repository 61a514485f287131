#include "harness/cli/commands.h"
#include "harness/kernel/pool.h"

#include <unistd.h>

/* clang-format off */
static const struct cli_option options[] = {
    COMMANDS_PLAN_OPTIONS,
    {"memory-mib", OPT_COUNT, OPTION_AT(memory_mib), "N", "256", 1 << 30,
     "limit of the worker's memory"},
};
/* clang-format on */

/* One thread: the pool keeps the processors busy with workers. */
static int run_worker(const struct options *o, struct arena *arena, struct errs *errs)
{
    int in = STDIN_FILENO, out = STDOUT_FILENO;
    const struct hum_provider *provider;
    struct plan plan;

    pool_protect(&in, &out);
    if (commands_plan(o, arena, &plan, errs))
        return commands_failed(errs);
    provider = commands_provider(o, arena, &plan, errs);
    if (!provider)
        return commands_failed(errs);
    return pool_serve(&plan, provider, 1, (size_t)o->memory_mib << 20, in, out);
}

const struct command command_worker = {
    .name = "worker",
    .operands = "SUITE...",
    .min_operands = 1,
    .max_operands = -1,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run_worker,
    .help = "run problems for a pool on standard input and output; started by humcheck itself",
    .hidden = true,
};
