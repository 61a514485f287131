#include "harness/cli/commands.h"
#include "harness/config/near.h"
#include "harness/core/build_info.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

static const struct command *const commands[] = {
    &command_run,    &command_kernels, &command_derive,        &command_list,      &command_weights,
    &command_config, &command_eval,    &command_replay_server, &command_supervise, &command_data,
    &command_mutate, &command_explain, &command_diagnose,      &command_doctor,    &command_worker,
    &command_usual,  &command_coverage};
enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

/* Address space for suites and plans; 100,000 cases take about 60 MB of it. */
static const size_t arena_bytes = (size_t)1 << 32;

/* What may stand in place of a command, too. */
static const char *const others[] = {"help", "--help", "--version", NULL};

static const struct command *command_find(const char *name, struct errs *errs)
{
    struct near near = near_to(name);
    char hint[128];

    near_offer_all(&near, others);
    for (int i = 0; i < COMMAND_COUNT; i++) {
        if (!strcmp(commands[i]->name, name))
            return commands[i];
        if (!commands[i]->hidden)
            near_offer(&near, commands[i]->name);
    }
    (void)errs_add(
        errs, ERR_USAGE, NOWHERE, "unknown %s '%s'%s", name[0] == '-' ? "option" : "command", name,
        near.best ? near_hint(&near, hint, sizeof hint) : "; 'humcheck --help' names them all");
    return NULL;
}

static void print_help(void)
{
    (void)printf("usage: humcheck COMMAND [options] ...\n"
                 "humcheck proves that quantized GPU kernels compute the right bits.\n\n"
                 "commands:\n");
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (!commands[i]->hidden)
            (void)printf("  %-13s %s\n", commands[i]->name, commands[i]->help);
    (void)printf("  %-13s %s\n\n", "help", "say how a command is used: humcheck help COMMAND");
    (void)printf("options:\n"
                 "  --help     print this and stop\n"
                 "  --version  print the version and stop\n\n");
    options_exit_codes(stdout);
}

static int help(int argc, char *const argv[], struct arena *arena, struct errs *errs)
{
    const struct command *c = argc ? command_find(argv[0], errs) : NULL;

    if (argc > 1)
        (void)errs_add(errs, ERR_USAGE, NOWHERE, "help takes one command, not '%s' too", argv[1]);
    if (errs->count)
        return commands_failed(errs);
    if (c)
        options_help(c, arena, stdout);
    else
        print_help();
    return 0;
}

static int run_command(int argc, char *const argv[], struct arena *arena, struct errs *errs)
{
    const struct command *c = command_find(argv[0], errs);
    struct options o;

    if (!c || options_parse(c, argc - 1, argv + 1, arena, &o, errs))
        return commands_failed(errs);
    if (o.help) {
        options_help(c, arena, stdout);
        return 0;
    }
    return c->run(&o, arena, errs);
}

static int dispatch(int argc, char *const argv[], struct arena *arena, struct errs *errs)
{
    if (!argc) {
        (void)errs_add(errs, ERR_USAGE, NOWHERE, "which command? 'humcheck --help' names them");
        return commands_failed(errs);
    }
    if (argc == 1 && !strcmp(argv[0], "--version")) {
        (void)printf("%s\n", build_program);
        return 0;
    }
    if (argc == 1 && !strcmp(argv[0], "--help"))
        return help(0, NULL, arena, errs);
    if (!strcmp(argv[0], "help"))
        return help(argc - 1, argv + 1, arena, errs);
    return run_command(argc, argv, arena, errs);
}

static void print_errors(const struct errs *errs)
{
    char line[3 * ERR_TEXT];

    for (size_t i = 0; i < errs->count; i++) {
        const struct err *e = &errs->items[i];

        (void)fprintf(stderr, "%s%s\n",
                      e->at.file ? "" : "humcheck: ", err_format(e, line, sizeof line));
    }
    if (errs->dropped)
        (void)fprintf(stderr, "humcheck: and %zu more errors\n", errs->dropped);
}

/* What was printed must have arrived: a full disk behind `> file` is an error, also of --help.
 * (With another code than 0 the user has a sentence already.) */
static int flushed(int code)
{
    errno = 0;
    if (code || (!ferror(stdout) && !fflush(stdout)))
        return code;
    (void)fprintf(stderr, "humcheck: cannot write to standard output: %s\n",
                  strerror(errno ? errno : EIO));
    return err_exit_code(ERR_IO);
}

int main(int argc, char *argv[])
{
    struct errs errs = {0};
    struct arena arena;
    int code;

    (void)signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error of its write */
    if (!arena_init(&arena, arena_bytes)) {
        (void)fputs("humcheck: no memory\n", stderr);
        return err_exit_code(ERR_NOMEM);
    }
    code = dispatch(argc - 1, argv + 1, &arena, &errs);
    print_errors(&errs);
    errs_free(&errs);
    arena_free(&arena);
    return flushed(code);
}
