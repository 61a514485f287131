#include "harness/cli/commands.h"
#include "harness/cli/interrupt.h"
#include "harness/config/near.h"
#include "harness/eval/arith.h"
#include "harness/eval/fetch.h"
#include "harness/report/table.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_INTERRUPTED = 130, DEFAULT_SEED = 1 };

/* The folder that was named, or the cache. NULL after an error. */
static const char *folder_of(const struct options *o, const char *operand, struct arena *arena,
                             struct errs *errs)
{
    if (operand && o->data) {
        (void)errs_add(errs, ERR_USAGE, NOWHERE, "data: '%.100s' and --data name two folders",
                       operand);
        return NULL;
    }
    if (operand)
        return operand;
    return o->data ? o->data : fetch_cache(arena, errs);
}

/* Percent of each file on a terminal, one line a file always. */
static void show_progress(void *ctx, const struct dataset_file *file, size_t bytes, bool done)
{
    size_t *last = ctx, percent = 100 * bytes / file->bytes;
    bool terminal = isatty(STDERR_FILENO) == 1;

    if (terminal && percent != *last)
        (void)fprintf(stderr, "\r%s %zu %%", file->name, percent);
    if (done)
        (void)fprintf(stderr, "%s%s %zu bytes, SHA-256 as expected\n", terminal ? "\r" : "",
                      file->name, bytes);
    *last = done ? 0 : percent;
}

static int run_fetch(const struct options *o, struct arena *arena, struct errs *errs)
{
    size_t percent = 0;
    struct fetch_options how = {.base = o->url ? o->url : fetch_base,
                                .folder = folder_of(o, NULL, arena, errs),
                                .interrupted = &interrupted,
                                .progress = show_progress,
                                .ctx = &percent};

    if (!how.folder)
        return commands_failed(errs);
    interrupt_catch();
    if (fetch_gsm8k(&how, arena, errs)) {
        if (percent)
            (void)fputc('\n', stderr);
        return interrupted ? EXIT_INTERRUPTED : commands_failed(errs);
    }
    (void)printf("GSM8K is in %s\n", how.folder);
    return 0;
}

static int run_check(const struct options *o, struct arena *arena, struct errs *errs)
{
    const char *folder = folder_of(o, o->operand_count > 1 ? o->operands[1] : NULL, arena, errs);
    struct table t = {.arena = arena, .aligns = "lrl"};
    struct dataset d;

    if (!folder || dataset_load(folder, arena, &d, errs))
        return commands_failed(errs);
    for (int i = 0; i < DATASET_FILES; i++) {
        const char *cells[TABLE_COLUMNS] = {dataset_files[i].name,
                                            arena_printf(arena, "%zu rows", dataset_files[i].rows),
                                            dataset_files[i].sha256};

        if (!cells[1] || !table_add(&t, cells))
            (void)errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the table");
    }
    table_print(&t, stdout);
    return errs->count ? commands_failed(errs) : 0;
}

static int run_arith(const struct options *o, struct arena *arena, struct errs *errs)
{
    uint64_t seed = o->has_seed ? o->seed : DEFAULT_SEED;
    struct dataset d;

    if (arith_make(seed, 0, (size_t)o->count, arena, &d, errs))
        return commands_failed(errs);
    for (size_t i = 0; i < d.test.count; i++) {
        const char *line = dataset_line(&d.test.row[i], arena);

        if (!line) {
            (void)errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for a problem");
            return commands_failed(errs);
        }
        (void)printf("%s\n", line);
    }
    return 0;
}

static bool is_gsm8k(const char *object)
{
    return object && !strcmp(object, "gsm8k");
}

static bool is_any(const char *object)
{
    (void)object;
    return true;
}

static bool is_nothing(const char *object)
{
    return !object;
}

/* clang-format off */
static const struct {
    const char *verb;
    bool (*takes)(const char *object);
    const char *expects;
    int (*run)(const struct options *o, struct arena *arena, struct errs *errs);
} verbs[] = {
    {"fetch", is_gsm8k,   "gsm8k",              run_fetch},
    {"check", is_any,     "a folder",           run_check},
    {"arith", is_nothing, "nothing behind it",  run_arith},
};

static const struct cli_option data_options[] = {
    {"data", OPT_TEXT, OPTION_AT(data), "FOLDER", NULL, 0,
     "where GSM8K is kept; left out: humcheck/gsm8k in XDG_CACHE_HOME or ~/.cache"},
    {"url", OPT_TEXT, OPTION_AT(url), "URL", NULL, 0,
     "fetch: another folder to get train.jsonl and test.jsonl from"},
    {"count", OPT_COUNT, OPTION_AT(count), "N", "100", ARITH_ROWS_MAX, "arith: how many problems"},
    {"seed", OPT_SEED, 0, "0x..", NULL, 0, "arith: other problems (left out: 1)"},
};
/* clang-format on */
enum {
    VERBS = sizeof verbs / sizeof verbs[0],
    OPTIONS = sizeof data_options / sizeof data_options[0],
};

static int run_data(const struct options *o, struct arena *arena, struct errs *errs)
{
    struct near near = near_to(o->operands[0]);
    const char *object = o->operand_count > 1 ? o->operands[1] : NULL;
    char hint[128];

    for (int i = 0; i < VERBS; i++) {
        near_offer(&near, verbs[i].verb);
        if (strcmp(verbs[i].verb, o->operands[0]) != 0)
            continue;
        if (verbs[i].takes(object))
            return verbs[i].run(o, arena, errs);
        (void)errs_add(errs, ERR_USAGE, NOWHERE, "data %s expects %s, found %s%.100s",
                       verbs[i].verb, verbs[i].expects, object ? "" : "nothing",
                       object ? object : "");
        return commands_failed(errs);
    }
    (void)errs_add(errs, ERR_USAGE, NOWHERE, "data knows no '%s'%s", o->operands[0],
                   near.best ? near_hint(&near, hint, sizeof hint) : ": fetch, check or arith");
    return commands_failed(errs);
}

const struct command command_data = {
    .name = "data",
    .operands = "fetch gsm8k | check [FOLDER] | arith",
    .min_operands = 1,
    .max_operands = 2,
    .options = data_options,
    .option_count = OPTIONS,
    .run = run_data,
    .help = "get GSM8K, check it, or make problems of its kind",
    .about = "  fetch gsm8k  download its two files, unless they are there, and check size and "
             "SHA-256\n"
             "  check        say whether the files are complete and unchanged; no network\n"
             "  arith        print word problems made on the spot, as lines of JSON\n",
};
