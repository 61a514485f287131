#include "harness/cli/commands.h"
#include "harness/explain/explain.h"
#include "harness/kernel/pool.h"

#include <unistd.h>

/* clang-format off */
static const struct cli_option options[] = {
    COMMANDS_PLAN_OPTIONS,
    {"seconds", OPT_SECONDS, OPTION_AT(seconds), "S", "30", 86400, "limit of the explanation"},
    {"shrink", OPT_FLAG, OPTION_AT(shrink), "", NULL, 0, "look for the smallest failing case"},
};
/* clang-format on */

/* A line of diagnose.h, at once: a crash may follow. */
static void say(void *context, enum explain_topic topic, const char *text)
{
    FILE *f = context;

    (void)fprintf(f, "%d ", (int)topic);
    for (; *text; text++)
        (void)fputc(*text == '\n' ? '\v' : *text, f);
    (void)fputc('\n', f);
    (void)fflush(f);
}

static int explain(const struct options *o, const struct plan *plan,
                   const struct hum_provider *provider, FILE *f, struct errs *errs)
{
    const struct explain_how how = {.shrink = o->shrink, .seconds = o->seconds};
    struct explain x = {.sink = {say, f}};
    int code = err_exit_code(ERR_INFRA);

    if (explain_open(&x, provider, 1, commands_memory(4), errs)) {
        explain_case(&x, plan, 0, &how);
        code = verdict_exit_code(x.last.verdict);
    }
    explain_close(&x);
    return errs->count ? commands_failed(errs) : code;
}

static int run_diagnose(const struct options *o, struct arena *arena, struct errs *errs)
{
    int in = STDIN_FILENO, out = STDOUT_FILENO, code;
    const struct hum_provider *provider;
    struct plan plan;
    FILE *f;

    pool_protect(&in, &out);
    if (commands_plan(o, arena, &plan, errs))
        return commands_failed(errs);
    if (plan.count != 1) {
        (void)errs_add(errs, ERR_USAGE, NOWHERE,
                       "the filter matches %zu cases; one is explained at a time", plan.count);
        return commands_failed(errs);
    }
    provider = commands_provider(o, arena, &plan, errs);
    f = fdopen(out, "w");
    if (provider && !f)
        (void)errs_add(errs, ERR_IO, NOWHERE, "the pipe for the explanation cannot be opened");
    if (!provider || !f)
        return commands_failed(errs);
    code = explain(o, &plan, provider, f, errs);
    (void)fclose(f);
    return code;
}

const struct command command_diagnose = {
    .name = "diagnose",
    .operands = "SUITE...",
    .min_operands = 1,
    .max_operands = -1,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run_diagnose,
    .help = "explain one case, a line for each finding; started by humcheck itself",
    .hidden = true,
};
