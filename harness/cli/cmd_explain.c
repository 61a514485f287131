#include "harness/cli/commands.h"
#include "harness/cli/diagnose.h"
#include "harness/cli/interrupt.h"
#include "harness/cli/words.h"

#include "harness/core/proc.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_INTERRUPTED = 130 };

/* clang-format off */
static const struct cli_option options[] = {
    COMMANDS_PLAN_OPTIONS,
    {"seconds", OPT_SECONDS, OPTION_AT(seconds), "S", "30", 86400, "limit of the explanation"},
    {"out", OPT_OUTS, 0, "yaml:FILE", NULL, 0, "write the smallest failing case as a suite"},
};
/* clang-format on */

/* ---- the repro ------------------------------------------------------------------------------- */

/* NAME=value before the program's name. */
static bool is_assignment(const char *word)
{
    size_t n = strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");

    return n > 0 && word[n] == '=';
}

static bool is_program(const char *word)
{
    const char *slash = strrchr(word, '/');

    return !strcmp(slash ? slash + 1 : word, "humcheck");
}

/* A word that stands where a suite does and names no file was not meant as one, unless it looks
 * like one or stands in the line of a repro. */
static enum err_code check_suites(const struct options *o, bool repro, struct errs *errs)
{
    for (size_t i = 0; i < o->operand_count && !repro; i++) {
        const char *word = o->operands[i], *dot = strrchr(word, '.');

        if (access(word, F_OK) == 0 || (dot && (!strcmp(dot, ".yaml") || !strcmp(dot, ".yml"))))
            continue;
        return errs_add(errs, ERR_USAGE, NOWHERE,
                        "'%.100s' is neither the line of a repro (humcheck kernels SUITE "
                        "--provider NAME --filter 'CASE' --seed 0x..) nor a suite's file",
                        word);
    }
    return ERR_NONE;
}

/* Takes "repro:", assignments, the program and "kernels" off the operands, and leaves the suites.
 * One assignment is handed on to the process of the kernel. */
static enum err_code take_repro(struct options *o, struct arena *arena, char *const **env,
                                struct errs *errs)
{
    bool repro = false;

    if (o->operand_count && !strcmp(o->operands[0], "repro:")) {
        o->operands++;
        o->operand_count--;
    }
    for (; o->operand_count && is_assignment(o->operands[0]); o->operands++, o->operand_count--) {
        const char *word = o->operands[0], *equals = strchr(word, '=');
        const char *name = arena_printf(arena, "%.*s", (int)(equals - word), word);

        if (*env)
            return errs_add(errs, ERR_USAGE, NOWHERE,
                            "one variable may stand before the program, not '%s' too", word);
        *env = name ? proc_environment(arena, name, equals + 1) : NULL;
        if (!*env)
            return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the environment");
    }
    if (o->operand_count > 1 && is_program(o->operands[0]) && !strcmp(o->operands[1], "kernels")) {
        repro = true;
        o->operands += 2;
        o->operand_count -= 2;
    }
    if (o->operand_count)
        return check_suites(o, repro, errs);
    return errs_add(errs, ERR_USAGE, NOWHERE, "explain needs a suite, or the line of a repro");
}

/* A repro in one argument is read as a shell would read it. Options beside it stay. */
static enum err_code split_repro(struct options *o, struct arena *arena, struct errs *errs)
{
    struct options inner;
    char **words;
    int count;

    if (o->operand_count != 1 || !strchr(o->operands[0], ' '))
        return ERR_NONE;
    words = words_split(o->operands[0], arena, &count);
    if (!words)
        return errs_add(errs, ERR_USAGE, NOWHERE, "the repro has a quote that does not end");
    TRY(options_parse(&command_explain, count, words, arena, &inner, errs));
    inner.seconds = o->seconds;
    inner.outs = o->outs;
    inner.out_count = o->out_count;
    *o = inner;
    return ERR_NONE;
}

/* ---- what is said ---------------------------------------------------------------------------- */

struct told {
    const char *path; /* of the suite; NULL: it is printed */
    const char *provider;
    struct errs *errs;
};

static void save_suite(const struct told *t, const char *text)
{
    FILE *f = fopen(t->path, "w");
    bool fine = f && fputs(text, f) >= 0;

    fine = f && fclose(f) == 0 && fine;
    if (!fine)
        (void)errs_add(t->errs, ERR_IO, NOWHERE, "cannot write %s: %s", t->path, strerror(errno));
    else
        (void)printf("%-9s  humcheck kernels %s --provider %s\n", "repro", t->path, t->provider);
}

static void print(void *context, enum explain_topic topic, const char *text)
{
    const struct told *t = context;

    if (topic != EXPLAIN_SUITE)
        (void)printf("%-9s  %s\n", explain_topic_name(topic), text);
    else if (t->path)
        save_suite(t, text);
    else
        (void)printf("%-9s  as a suite:\n%s", explain_topic_name(topic), text);
    (void)fflush(stdout);
}

static enum err_code read_out(const struct options *o, const char **path, struct errs *errs)
{
    const char prefix[] = "yaml:";
    size_t n = sizeof prefix - 1;

    *path = NULL;
    if (o->out_count > 1)
        return errs_add(errs, ERR_USAGE, NOWHERE, "one --out is enough");
    if (!o->out_count)
        return ERR_NONE;
    if (strncmp(o->outs[0], prefix, n) != 0 || !o->outs[0][n])
        return errs_add(errs, ERR_USAGE, NOWHERE, "--out needs yaml:FILE, got '%s'", o->outs[0]);
    *path = o->outs[0] + n;
    return ERR_NONE;
}

static int run_explain(const struct options *given, struct arena *arena, struct errs *errs)
{
    struct diagnose_how how = {.grace_seconds = 60.0, .shrink = true, .interrupted = &interrupted};
    struct options o = *given;
    struct told told = {.errs = errs};
    const struct explain_sink sink = {print, &told};
    char end[EXPLAIN_TEXT];
    int code;

    if (split_repro(&o, arena, errs) || take_repro(&o, arena, &how.env, errs) ||
        read_out(&o, &told.path, errs))
        return commands_failed(errs);
    how.plan = &o;
    how.seconds = o.seconds;
    told.provider = o.provider;
    interrupt_catch();
    if (diagnose_run(&how, &sink, arena, end, &code, errs))
        return commands_failed(errs);
    if (end[0])
        (void)printf("%-9s  %s\n", "note", end);
    if (errs->count)
        return commands_failed(errs);
    return interrupted ? EXIT_INTERRUPTED : end[0] ? verdict_exit_code(VERDICT_FAIL) : code;
}

const struct command command_explain = {
    .name = "explain",
    .operands = "REPRO|SUITE...",
    .min_operands = 1,
    .max_operands = -1,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run_explain,
    .help = "say why a case fails: its smallest form, where it is wrong, which mistake gives the "
            "same bits",
    .about = "REPRO is the line that a failing case prints, in quotes or without; a suite with "
             "--filter and\n"
             "--seed does as well. The case is run again, shrunk, located and compared with a "
             "table of mistakes.\n"
             "A mistake is named only if it gives every bit that the kernel gave, with several "
             "kinds of data.\n",
};
