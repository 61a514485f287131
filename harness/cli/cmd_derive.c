#include "harness/cli/commands.h"
#include "harness/derive/derive.h"

/* clang-format off */
static const struct cli_option options[] = {
    {"model-config", OPT_TEXT, OPTION_AT(model_config), "FILE", NULL, 0,
     "the model's config.json; left out: what x-humcheck: dims names, or MODEL_NAME.yaml in "
     "../models beside CONFIG"},
    {"gpu", OPT_TEXT, OPTION_AT(gpu), "NAME", NULL, 0,
     "refuse activations that this GPU does not have (h100, a100, ...)"},
    {"full", OPT_FLAG, OPTION_AT(full), "", NULL, 0,
     "true sizes; left out: n, k and experts are cut so that it runs in seconds"},
};
/* clang-format on */

static void print_warnings(const struct errs *warnings)
{
    char text[3 * ERR_TEXT];

    for (size_t i = 0; i < warnings->count; i++)
        (void)fprintf(stderr, "%s (warning)\n", err_format(&warnings->items[i], text, sizeof text));
}

static int run_derive(const struct options *o, struct arena *arena, struct errs *errs)
{
    const struct derive_options how = {.gpu = o->gpu, .full = o->full};
    struct errs warnings = {0};
    struct eval_config config;
    struct model model;
    struct derived suite;
    enum err_code rc = eval_config_load(o->operands[0], arena, &config, &warnings, errs);

    print_warnings(&warnings);
    errs_free(&warnings);
    if (rc || derive_model(&config, o->model_config, arena, &model, errs) ||
        derive_suite(&model, &config, &how, arena, &suite, errs))
        return commands_failed(errs);
    (void)fwrite(suite.text, 1, suite.size, stdout);
    return 0;
}

const struct command command_derive = {
    .name = "derive",
    .operands = "CONFIG",
    .min_operands = 1,
    .max_operands = 1,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run_derive,
    .help = "print the kernel suite of a configuration: what its model launches, at its sizes",
    .about = "CONFIG is a GSM8K configuration. Which matrices Humming serves is read from "
             "server_args, formats\n"
             "from the checkpoint and the environment, sizes from the model and its parallel "
             "sizes. The suite\n"
             "is for humcheck kernels; humcheck run does both and the evaluation.\n",
};
