/* options.h - the command line as tables: parsing, help and documentation come from the same
 * rows.
 *
 * A command is a row with a table of its options. An option is `--name=value` or `--name value`;
 * `--` ends options; operands and options may be mixed. An option's fallback is parsed like a
 * value that was given. / */
#ifndef HARNESS_CLI_OPTIONS_H
#define HARNESS_CLI_OPTIONS_H

#include "harness/core/arena.h"
#include "harness/core/err.h"

#include <stdint.h>
#include <stdio.h>

struct option_list {
    const char **items; /* in the order given; NULL: none */
    size_t count;
};

/* What all commands may be told. Texts point into argv. */
struct options {
    const char *const *operands;
    size_t operand_count;
    const char *const *outs; /* each --out */
    size_t out_count;
    const char *provider, *filter, *support, *against, *semantics;
    int64_t jobs;       /* 0: not given */
    int64_t memory_mib; /* 0: not given */
    int64_t max_fail;   /* 0: not given */
    int64_t run;        /* of `usual` */
    const char *fault, *tests;
    const char *data, *url; /* of a data set: its folder, the address of its files */
    int64_t count;          /* of problems */
    const char *server, *run_folder, *replay, *answers, *gpu, *api_key_env; /* of `eval` */
    const char *model_config;                                               /* of `derive` */
    int64_t limit, concurrency, port;                                       /* 0: not given */
    double case_seconds, seconds, diagnose_seconds;
    double budget_seconds; /* 0: not given */
    struct option_list history, changed;
    const char *touches, *known;
    int64_t shard, shards; /* I of N; 0 of 0: not given */
    uint64_t seed;
    bool has_seed;
    const char *records; /* of `coverage`, as is `sm`, the compute capability: 90 for 9.0 */
    int64_t sm;
    bool shrink, no_diagnosis, list, in_process, no_timing, quiet, verbose, help, full, fresh,
        explain, kernels_only, eval_only, all_cases, fail_on_change;
};

enum option_type {
    OPT_FLAG,    /* bool */
    OPT_TEXT,    /* const char *, not empty */
    OPT_OUTS,    /* appended to outs */
    OPT_LIST,    /* struct option_list, which each appends to; not empty */
    OPT_COUNT,   /* int64_t, 1 to max */
    OPT_SECONDS, /* double, above 0 to max */
    OPT_TIME,    /* double, seconds: a number with its unit, as 90s, 10m or 1.5h, up to max */
    OPT_SEED,    /* seed and has_seed: 64 bits, 0x hexadecimal or decimal */
    OPT_SHARD    /* shard and shards: I/N, 1 <= I <= N <= max */
};

struct cli_option {
    const char *name; /* without the dashes */
    enum option_type type;
    size_t offset;        /* in struct options; OPT_OUTS, OPT_SEED and OPT_SHARD know their own */
    const char *arg;      /* how help names the value; "" for a flag */
    const char *fallback; /* NULL: none */
    int64_t max;
    const char *help;
};

#define OPTION_AT(member) offsetof(struct options, member)

struct command {
    const char *name;
    const char *operands;           /* as help shows them: "SUITE..."; "" for none */
    int min_operands, max_operands; /* max -1: any number */
    const struct cli_option *options;
    int option_count;
    /* Returns the exit code; sentences about what went wrong are left in `errs` for the caller
     * to print. */
    int (*run)(const struct options *o, struct arena *arena, struct errs *errs);
    const char *help;  /* one line */
    const char *about; /* lines for `humcheck help NAME`, each ended by a newline, or NULL */
    bool hidden;
};

/* Arguments behind the command's name. Every mistake is added to `errs` as ERR_USAGE; `--help`
 * wins over them: then only out->help is to be believed and ERR_NONE is returned. Lists live in
 * `arena`. */
MUST_USE enum err_code options_parse(const struct command *c, int argc, char *const argv[],
                                     struct arena *arena, struct options *out, struct errs *errs);

/* "usage: humcheck NAME ...", what it does, its options and the exit codes. */
void options_help(const struct command *c, struct arena *arena, FILE *f);

/* "exit codes: 0 pass, ...", with newline. */
void options_exit_codes(FILE *f);

#endif
