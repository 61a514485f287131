#include "harness/cli/commands.h"

#ifdef HUMCHECK_FAULTS

#include "harness/cli/interrupt.h"
#include "harness/cli/machine.h"
#include "harness/core/build_info.h"
#include "harness/core/proc.h"
#include "harness/eval/sha256.h"
#include "harness/faults/mutate.h"
#include "harness/kernel/pool.h"
#include "harness/report/sink_file.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_UNDETECTED = 1, EXIT_INTERRUPTED = 130, PATH_BYTES = 4096 };

struct mutate {
    const struct options *o;
    struct arena *arena;
    struct errs *errs;
    const char *json, *markdown; /* files; NULL: none */
    const struct fault **faults;
    struct mutation *rows;
    size_t count, printed; /* rows; those that stand on the terminal already */
    struct mutation_run run;
    struct mutation_widths widths;
    size_t bar; /* characters of the line that says what is going on */
};

/* ---- what to do ------------------------------------------------------------------------------ */

static enum err_code read_out(struct mutate *m, const char *out)
{
    static const char json[] = "json:", markdown[] = "markdown:";
    const char **to = NULL, *path = NULL;

    if (!strncmp(out, json, sizeof json - 1)) {
        to = &m->json;
        path = out + sizeof json - 1;
    } else if (!strncmp(out, markdown, sizeof markdown - 1)) {
        to = &m->markdown;
        path = out + sizeof markdown - 1;
    }
    if (!to || !*path)
        return errs_add(m->errs, ERR_USAGE, NOWHERE,
                        "--out needs json:FILE or markdown:FILE, got '%s'", out);
    if (*to)
        return errs_add(m->errs, ERR_USAGE, NOWHERE, "--out %.*s is given twice", (int)(path - out),
                        out);
    *to = path;
    return sink_file_check(path, m->errs);
}

static bool is_chosen(const struct fault *f, const char *glob)
{
    return !glob || !fnmatch(glob, f->name, 0) || !fnmatch(glob, f->class, 0) ||
           !fnmatch(glob, f->origin, 0);
}

static void widen(int *width, const char *text)
{
    int length = (int)strlen(text);

    *width = length > *width ? length : *width;
}

static enum err_code choose_faults(struct mutate *m)
{
    m->faults = ARENA_NEW(m->arena, fault_count(), const struct fault *);
    m->rows = ARENA_NEW(m->arena, fault_count(), struct mutation);
    if (!m->faults || !m->rows)
        return errs_add(m->errs, ERR_NOMEM, NOWHERE, "no memory for the faults");
    m->widths = (struct mutation_widths){5, 5, 6, m->o->explain};
    for (int i = 0; i < fault_count(); i++) {
        const struct fault *f = fault_at(i);

        if (!is_chosen(f, m->o->fault))
            continue;
        mutate_row(f, &m->rows[m->count]);
        m->faults[m->count++] = f;
        widen(&m->widths.name, f->name);
        widen(&m->widths.class, f->class);
        widen(&m->widths.origin, f->origin);
    }
    if (m->count)
        return ERR_NONE;
    return errs_add(m->errs, ERR_USAGE, NOWHERE,
                    "no fault has '%s' as its name, class or origin; 'humcheck list faults' names "
                    "them",
                    m->o->fault);
}

/* ---- what rows belong to --------------------------------------------------------------------- */

static const char *joined_suites(const struct mutate *m)
{
    const char *text = m->o->operands[0];

    for (size_t i = 1; text && i < m->o->operand_count; i++)
        text = arena_printf(m->arena, "%s %s", text, m->o->operands[i]);
    return text;
}

/* The bytes of this program: another build may have other faults. */
static const char *hash_program(struct arena *arena)
{
    FILE *f = fopen("/proc/self/exe", "rb");
    char hex[SHA256_HEX];
    struct sha256 hash;
    char bytes[PATH_BYTES];
    size_t n;

    if (!f)
        return "unknown";
    sha256_init(&hash);
    while ((n = fread(bytes, 1, sizeof bytes, f)) > 0)
        sha256_add(&hash, bytes, n);
    (void)fclose(f);
    return arena_strdup(arena, sha256_end(&hash, hex));
}

static enum err_code identify(struct mutate *m, const struct plan *plan)
{
    m->run =
        (struct mutation_run){.suite = joined_suites(m),
                              .plan = arena_printf(m->arena, "%016" PRIx64, pool_plan_hash(plan)),
                              .program = build_program,
                              .build = hash_program(m->arena),
                              .full = m->o->full,
                              .explain = m->o->explain};
    if (m->run.suite && m->run.plan && m->run.build)
        return ERR_NONE;
    return errs_add(m->errs, ERR_NOMEM, NOWHERE, "no memory for the names of suites");
}

/* The folder of this program, where the build puts its tests. */
static const char *tests_folder(const struct mutate *m)
{
    char path[PATH_BYTES];
    ssize_t n = m->o->tests ? 0 : readlink("/proc/self/exe", path, sizeof path - 1);

    if (m->o->tests)
        return m->o->tests;
    if (n <= 0)
        return ".";
    path[n] = '\0';
    *strrchr(path, '/') = '\0';
    return arena_strdup(m->arena, path);
}

/* Rows of an earlier run that stay true. */
static void resume(struct mutate *m)
{
    char why[160] = "";
    size_t taken;

    if (!m->json || m->o->fresh)
        return;
    taken = mutation_read_json(m->json, &m->run, m->rows, m->count, why, sizeof why);
    if (taken)
        (void)printf("%zu of %zu faults are taken from %s; --fresh runs them again\n", taken,
                     m->count, m->json);
    else if (why[0])
        (void)printf("%s is not used and will be replaced: %s\n", m->json, why);
}

/* ---- while it runs --------------------------------------------------------------------------- */

static void clear_bar(struct mutate *m)
{
    if (m->bar)
        (void)printf("\r%*s\r", (int)m->bar, "");
    m->bar = 0;
}

/* In the order of the catalogue, as far as there is no gap. */
static void print_rows(struct mutate *m)
{
    clear_bar(m);
    while (m->printed < m->count && m->rows[m->printed].done)
        mutation_print_row(&m->widths, &m->rows[m->printed++], stdout);
    (void)fflush(stdout);
}

static enum err_code on_done(void *context, size_t index, struct errs *errs)
{
    struct mutate *m = context;

    (void)index;
    print_rows(m);
    return m->json ? mutation_write_json(m->json, &m->run, m->rows, m->count, errs) : ERR_NONE;
}

static void on_tick(void *context, const char *doing)
{
    struct mutate *m = context;
    size_t done = 0;

    for (size_t i = 0; i < m->count; i++)
        done += m->rows[i].done;
    clear_bar(m);
    m->bar = (size_t)printf("%zu of %zu faults; %.60s", done, m->count, doing);
    (void)fflush(stdout);
}

static void print_undetected(const struct mutate *m)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->rows[i].done && !m->rows[i].detected)
            (void)printf("not detected: %s: %s\n", m->rows[i].name, m->faults[i]->sentence);
}

static int conclude(struct mutate *m, bool complete)
{
    size_t detected = 0;

    mutation_print_summary(m->rows, m->count, stdout);
    if (m->o->explain)
        mutation_print_explained(m->rows, m->count, stdout);
    print_undetected(m);
    if (m->markdown && mutation_write_markdown(m->markdown, &m->run, m->rows, m->count, m->errs))
        return commands_failed(m->errs);
    if (!complete)
        return EXIT_INTERRUPTED;
    for (size_t i = 0; i < m->count; i++)
        detected += m->rows[i].detected;
    return detected == m->count ? 0 : EXIT_UNDETECTED;
}

static int run_faults(struct mutate *m, const struct plan *plan)
{
    const struct options *o = m->o;
    const struct mutate_options how = {.suites = o->operands,
                                       .suite_count = o->operand_count,
                                       .filter = o->filter,
                                       .provider = o->provider,
                                       .has_seed = o->has_seed,
                                       .seed = o->seed,
                                       .tests = tests_folder(m),
                                       .first_case = plan->cases[0].id,
                                       .case_seconds = o->case_seconds,
                                       .jobs = o->jobs ? (int)o->jobs : machine_cores(),
                                       .full = o->full,
                                       .explain = o->explain,
                                       .interrupted = &interrupted};
    const struct mutate_hooks hooks = {
        .done = on_done, .tick = isatty(STDOUT_FILENO) == 1 ? on_tick : NULL, .context = m};
    double started = proc_now();
    uint64_t cases;
    bool complete;

    if (mutate_baseline(&how, m->faults, m->count, &cases, m->errs))
        return commands_failed(m->errs);
    if (interrupted)
        return EXIT_INTERRUPTED;
    (void)printf("%s: %zu faults, %" PRIu64 " cases of %s pass without a fault (%.1f s)\n",
                 build_program, m->count, cases, m->run.suite, proc_now() - started);
    mutation_print_head(&m->widths, stdout);
    print_rows(m);
    if (mutate_run(&how, m->faults, m->rows, m->count, &hooks, &complete, m->errs)) {
        clear_bar(m);
        return commands_failed(m->errs);
    }
    clear_bar(m);
    return conclude(m, complete);
}

static int run_mutate(const struct options *o, struct arena *arena, struct errs *errs)
{
    struct mutate m = {.o = o, .arena = arena, .errs = errs};
    struct plan plan;

    if (build_fault())
        (void)errs_add(errs, ERR_USAGE, NOWHERE,
                       "mutate sets HUMCHECK_FAULT itself, and it is set already: '%s'",
                       build_fault());
    for (size_t i = 0; i < o->out_count; i++)
        (void)read_out(&m, o->outs[i]);
    (void)choose_faults(&m);
    if (errs->count || commands_plan(o, arena, &plan, errs) || identify(&m, &plan))
        return commands_failed(errs);
    resume(&m);
    interrupt_catch();
    return run_faults(&m, &plan);
}

#else

static int run_mutate(const struct options *o, struct arena *arena, struct errs *errs)
{
    (void)o;
    (void)arena;
    (void)errs_add(errs, ERR_USAGE, NOWHERE, "%s", commands_no_faults);
    return commands_failed(errs);
}

#endif

/* clang-format off */
static const struct cli_option options[] = {
    {"filter-fault", OPT_TEXT, OPTION_AT(fault), "GLOB", NULL, 0,
     "only faults whose name, class or origin matches (* ? [..])"},
    {"full", OPT_FLAG, OPTION_AT(full), "", NULL, 0,
     "run all cases with every fault, and count the checks that see it"},
    {"explain", OPT_FLAG, OPTION_AT(explain), "", NULL, 0,
     "explain each failing case, and compare the mistake that is named with the true one"},
    {"out", OPT_OUTS, 0, "KIND:FILE", NULL, 0, "write results too: json:FILE or markdown:FILE"},
    {"fresh", OPT_FLAG, OPTION_AT(fresh), "", NULL, 0,
     "run all faults again; else those in the json file of the same suites and build are kept"},
    {"tests", OPT_TEXT, OPTION_AT(tests), "DIR", NULL, 0,
     "where the test programs are; left out: where the build puts them"},
    {"jobs", OPT_COUNT, OPTION_AT(jobs), "N", NULL, 1024, "faults at once; left out: one a core"},
    {"case-seconds", OPT_SECONDS, OPTION_AT(case_seconds), "S", "60", 86400, "limit of one case"},
    {"provider", OPT_TEXT, OPTION_AT(provider), "NAME", "cpu", 0, "whose kernels have the faults"},
    {"filter", OPT_TEXT, OPTION_AT(filter), "GLOB", NULL, 0, "only cases whose id matches"},
    {"seed", OPT_SEED, 0, "0x..", NULL, 0, "replaces the suites' seeds"},
};
/* clang-format on */

const struct command command_mutate = {
    .name = "mutate",
    .operands = "SUITE...",
    .min_operands = 1,
    .max_operands = -1,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run_mutate,
    .help = "inject each fault of the catalogue and say which check of the suites sees it",
    .about =
        "The proof that the suites can fail. Needs a build with faults (cmake --preset faults). "
        "The suites\n"
        "must pass without a fault; then each fault runs until its first failing case, which names "
        "the check\n"
        "that saw it. The last six columns say in how many of six runs on random data the usual "
        "checks fail,\n"
        "of those that pass without the fault:\n"
        "|got - want| <= atol + rtol |want| with rtol/atol, cosine > 0.99, calc_diff < 1e-3, NMSE "
        "< 5e-4.\n"
        "Exit code 1: a fault was not detected.\n",
};
