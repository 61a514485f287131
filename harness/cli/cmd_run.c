/* One configuration file drives both layers: its kernels, then its evaluation, then one report. */
#include "harness/cli/commands.h"
#include "harness/cli/run_result.h"
#include "harness/derive/derive.h"
#include "harness/eval/client.h"
#include "harness/eval/config_list.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum { EXIT_INTERRUPTED = 130 };

#define FOLDER "humcheck-runs"

/* clang-format off */
static const struct cli_option options[] = {
    COMMANDS_PLAN_OPTIONS,
    {"kernels-only", OPT_FLAG, OPTION_AT(kernels_only), "", NULL, 0, "no evaluation"},
    {"eval-only", OPT_FLAG, OPTION_AT(eval_only), "", NULL, 0, "no kernels"},
    {"model-config", OPT_TEXT, OPTION_AT(model_config), "FILE", NULL, 0,
     "the model's config.json, as for humcheck derive"},
    {"full", OPT_FLAG, OPTION_AT(full), "", NULL, 0, "kernels at true sizes, as for humcheck derive"},
    {"gpu", OPT_TEXT, OPTION_AT(gpu), "NAME", NULL, 0,
     "whose formats kernels have and whose floor holds, as for humcheck derive and eval"},
    {"support", OPT_TEXT, OPTION_AT(support), "FILE", NULL, 0, "as for humcheck kernels"},
    {"jobs", OPT_COUNT, OPTION_AT(jobs), "N", NULL, 1024, "as for humcheck kernels"},
    {"case-seconds", OPT_SECONDS, OPTION_AT(case_seconds), "S", "60", 86400,
     "as for humcheck kernels"},
    {"max-fail", OPT_COUNT, OPTION_AT(max_fail), "N", NULL, 1000000000, "as for humcheck kernels"},
    {"diagnose-seconds", OPT_SECONDS, OPTION_AT(diagnose_seconds), "S", "5", 86400,
     "as for humcheck kernels"},
    {"no-diagnosis", OPT_FLAG, OPTION_AT(no_diagnosis), "", NULL, 0, "as for humcheck kernels"},
    {"server", OPT_TEXT, OPTION_AT(server), "URL", NULL, 0, "as for humcheck eval"},
    {"data", OPT_TEXT, OPTION_AT(data), "FOLDER", NULL, 0, "as for humcheck eval"},
    {"fresh", OPT_FLAG, OPTION_AT(fresh), "", NULL, 0, "as for humcheck eval"},
    {"limit", OPT_COUNT, OPTION_AT(limit), "N", NULL, 1000000, "as for humcheck eval"},
    {"concurrency", OPT_COUNT, OPTION_AT(concurrency), "N", NULL, CLIENT_CONCURRENCY_MAX, "as for humcheck eval"},
    {"replay", OPT_TEXT, OPTION_AT(replay), "RUN", NULL, 0, "as for humcheck eval"},
    {"api-key-env", OPT_TEXT, OPTION_AT(api_key_env), "NAME", NULL, 0, "as for humcheck eval"},
    {"run", OPT_TEXT, OPTION_AT(run_folder), "FOLDER", FOLDER, 0,
     "where suites, records, answers and report.md are kept"},
};
/* clang-format on */

struct both {
    const struct options *o;
    struct arena *arena;
    struct errs *errs;
    struct config_set set;
    struct run_row *rows;
    const char **suites; /* paths of the derived suites */
};

static void print_warnings(const struct errs *warnings)
{
    char text[3 * ERR_TEXT];

    for (size_t i = 0; i < warnings->count; i++)
        (void)fprintf(stderr, "%s (warning)\n", err_format(&warnings->items[i], text, sizeof text));
}

/* FOLDER/NAME; NULL after an error. */
static const char *in_folder(const struct both *b, const char *name)
{
    const char *path = arena_printf(b->arena, "%s/%s", b->o->run_folder, name);

    if (!path)
        (void)errs_add(b->errs, ERR_NOMEM, NOWHERE, "no memory for the run");
    return path;
}

/* "KIND:FOLDER/NAME" for --out. */
static const char *out_of(const struct both *b, const char *kind, const char *name)
{
    const char *path = in_folder(b, name);

    return path ? arena_printf(b->arena, "%s:%s", kind, path) : NULL;
}

/* ---- before anything runs -------------------------------------------------------------------- */

static enum err_code check_options(const struct options *o, struct errs *errs)
{
    enum err_code rc = ERR_NONE;

    if (o->kernels_only && o->eval_only)
        rc =
            errs_add(errs, ERR_USAGE, NOWHERE, "--kernels-only and --eval-only exclude each other");
    if (!o->kernels_only && commands_eval_check(o, errs))
        rc = ERR_USAGE;
    return rc;
}

static enum err_code load_configs(struct both *b)
{
    struct errs warnings = {0};
    enum err_code rc =
        config_set_load(b->o->operands, b->o->operand_count, b->arena, &b->set, &warnings, b->errs);

    if (b->o->kernels_only) /* else the evaluation prints them */
        print_warnings(&warnings);
    errs_free(&warnings);
    if (!rc && b->o->model_config && b->set.count > 1)
        rc = errs_add(b->errs, ERR_USAGE, NOWHERE, "--model-config is of one configuration alone");
    if (rc)
        return rc;
    b->rows = ARENA_NEW(b->arena, b->set.count, struct run_row);
    b->suites = ARENA_NEW(b->arena, b->set.count, const char *);
    if (!b->rows || !b->suites)
        return errs_add(b->errs, ERR_NOMEM, NOWHERE, "no memory for the run");
    for (size_t i = 0; i < b->set.count; i++) {
        b->rows[i].config = b->set.items[i].config.name;
        b->rows[i].model = b->set.items[i].config.model_name.text;
    }
    return ERR_NONE;
}

static enum err_code make_folder(const struct both *b)
{
    if (!mkdir(b->o->run_folder, 0777) || errno == EEXIST)
        return ERR_NONE;
    return errs_add(b->errs, ERR_IO, NOWHERE, "cannot make the folder '%s': %s", b->o->run_folder,
                    strerror(errno));
}

/* Kernels may take minutes: what the evaluation would refuse is said before them. */
static enum err_code check_eval(const struct both *b)
{
    struct options o = *b->o;

    o.run_folder = o.replay ? NULL : o.run_folder;
    return commands_eval_ready(&o, &b->set, b->arena, b->errs);
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* A file, so that a failing case can be rerun from its printed line. */
static enum err_code write_suite(const struct both *b, size_t i, const struct derived *d)
{
    const char *name = arena_printf(b->arena, "%s.kernels.yaml", b->rows[i].config);
    FILE *f;
    bool whole;

    b->suites[i] = name ? in_folder(b, name) : NULL;
    if (!b->suites[i])
        return ERR_NOMEM;
    f = fopen(b->suites[i], "we");
    whole = f && fwrite(d->text, 1, d->size, f) == d->size;
    if (f && fclose(f) != 0)
        whole = false;
    if (!whole)
        return errs_add(b->errs, ERR_IO, NOWHERE, "cannot write '%s': %s", b->suites[i],
                        strerror(errno));
    return ERR_NONE;
}

static enum err_code derive_all(struct both *b)
{
    const struct derive_options how = {.gpu = b->o->gpu, .full = b->o->full};
    struct derived *suites = ARENA_NEW(b->arena, b->set.count, struct derived);
    enum err_code first = ERR_NONE;

    if (!suites)
        return errs_add(b->errs, ERR_NOMEM, NOWHERE, "no memory for suites");
    for (size_t i = 0; i < b->set.count; i++) {
        const struct eval_config *c = &b->set.items[i].config;
        struct model model;
        enum err_code rc = derive_model(c, b->o->model_config, b->arena, &model, b->errs);

        rc = rc ? rc : derive_suite(&model, c, &how, b->arena, &suites[i], b->errs);
        b->rows[i].suite = suites[i].name;
        first = first ? first : rc;
    }
    if (first)
        return first;
    TRY(make_folder(b));
    for (size_t i = 0; i < b->set.count; i++)
        TRY(write_suite(b, i, &suites[i]));
    return ERR_NONE;
}

/* What another command left in `from` goes to the caller's list. */
static void move_errors(struct errs *from, struct errs *to)
{
    for (size_t i = 0; i < from->count; i++)
        (void)errs_add(to, from->items[i].code, from->items[i].at, "%s", from->items[i].text);
    errs_free(from);
}

static int run_kernels(struct both *b)
{
    const char *records = in_folder(b, "kernels.jsonl");
    const char *outs[] = {out_of(b, "jsonl", "kernels.jsonl"),
                          out_of(b, "junit", "kernels.junit.xml")};
    struct options o = *b->o;
    struct errs errs = {0};
    int code;

    if (!records || !outs[0] || !outs[1])
        return commands_failed(b->errs);
    o.operands = b->suites;
    o.operand_count = b->set.count;
    o.outs = outs;
    o.out_count = 2;
    code = command_kernels.run(&o, b->arena, &errs);
    if (!errs.count && code != EXIT_INTERRUPTED &&
        run_read_kernels(records, b->rows, b->set.count, b->arena, &errs))
        code = commands_failed(&errs);
    move_errors(&errs, b->errs);
    return code;
}

/* ---- evaluation ------------------------------------------------------------------------------ */

static int run_eval(struct both *b)
{
    const char *results = in_folder(b, "eval.json");
    const char *outs[] = {out_of(b, "json", "eval.json"), out_of(b, "junit", "eval.junit.xml"),
                          out_of(b, "markdown", "eval.md")};
    struct options o = *b->o;
    struct errs errs = {0};
    int code;

    if (!results || !outs[0] || !outs[1] || !outs[2])
        return commands_failed(b->errs);
    o.outs = outs;
    o.out_count = 3;
    o.run_folder = o.replay ? NULL : o.run_folder; /* answers that exist are not kept again */
    code = command_eval.run(&o, b->arena, &errs);
    if (!errs.count && run_read_eval(results, b->rows, b->set.count, b->arena, &errs))
        code = commands_failed(&errs);
    move_errors(&errs, b->errs);
    return code;
}

/* ---- both ------------------------------------------------------------------------------------ */

/* The code that says more of two: interrupted, configuration, fail, infrastructure, inconclusive,
 * pass. */
static int worse(int a, int b)
{
    static const int order[] = {EXIT_INTERRUPTED, 2, 1, 3, 4};

    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        if (a == order[i] || b == order[i])
            return order[i];
    return 0;
}

/* Exit code 1 is of two verdicts. */
static const char *word_of(const struct both *b, int code)
{
    static const char *const words[] = {"pass", NULL, "configuration", "infrastructure",
                                        "inconclusive"};

    if (code == EXIT_INTERRUPTED)
        return "interrupted";
    if (code != 1)
        return words[code];
    for (size_t i = 0; i < b->set.count; i++)
        if (b->rows[i].counts[VERDICT_FAIL] ||
            (b->rows[i].eval && !strcmp(b->rows[i].eval, "fail")))
            return "fail";
    return "untrusted";
}

static int run_both(struct both *b)
{
    int kernels = b->o->eval_only ? 0 : run_kernels(b);
    bool stop = b->o->kernels_only || kernels == EXIT_INTERRUPTED;
    int eval = stop ? 0 : run_eval(b), code = worse(kernels, eval);
    const char *report = in_folder(b, "report.md");

    run_show(b->rows, b->set.count, b->arena);
    if (!report || run_write(report, b->rows, b->set.count, b->errs))
        code = worse(code, commands_failed(b->errs));
    (void)printf("\n%s: configurations: %zu, report: %s\n", word_of(b, code), b->set.count,
                 report ? report : "none");
    return code;
}

static int run_run(const struct options *o, struct arena *arena, struct errs *errs)
{
    struct both b = {.o = o, .arena = arena, .errs = errs};
    enum err_code rc = check_options(o, errs), loaded = load_configs(&b);

    rc = rc ? rc : loaded;
    if (o->gpu && eval_gpu_check(o->gpu, errs))
        return commands_failed(errs);
    if (!rc && !o->kernels_only)
        rc = check_eval(&b);
    if (!loaded && !o->eval_only) {
        enum err_code derived = derive_all(&b);

        rc = rc ? rc : derived;
    }
    if (rc || make_folder(&b))
        return commands_failed(errs);
    return run_both(&b);
}

const struct command command_run = {
    .name = "run",
    .operands = "CONFIG...",
    .min_operands = 1,
    .max_operands = -1,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run_run,
    .help =
        "check the kernels that a configuration uses, then evaluate it: one report, one verdict",
    .about =
        "CONFIG is a file, a list of files (.txt) or a folder, as for humcheck eval. The suite "
        "of each model\n"
        "is derived (humcheck derive), run (humcheck kernels) and followed by the evaluation "
        "(humcheck\n"
        "eval), whatever the kernels gave. The exit code is the worse of the two; where a "
        "model answers\n"
        "wrong, the report names the kernel entries that cover it.\n",
};
