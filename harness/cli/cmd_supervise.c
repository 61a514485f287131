#include "harness/cli/commands.h"
#include "harness/eval/supervise.h"

/* Its sentence, if there is one, has gone to humcheck through the pipe. */
static int run_supervise(const struct options *o, struct arena *arena, struct errs *errs)
{
    (void)arena;
    return supervise(o->operands, o->operand_count, errs) ? commands_failed(errs) : 0;
}

const struct command command_supervise = {
    .name = "supervise",
    .operands = "LOG SECONDS COMMAND...",
    .min_operands = SUPERVISE_WORDS,
    .max_operands = -1,
    .run = run_supervise,
    .help = "run a model server and end all it started; started by humcheck itself",
    .hidden = true,
};
