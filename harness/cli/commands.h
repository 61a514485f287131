/* commands.h - the subcommands, one file each, and what several of them share. */
#ifndef HARNESS_CLI_COMMANDS_H
#define HARNESS_CLI_COMMANDS_H

#include "harness/cli/options.h"
#include "harness/kernel/plan.h"
#include "kernels/abi/humming.h"

extern const struct command command_kernels;
extern const struct command command_list;
extern const struct command command_doctor;
extern const struct command command_worker;
extern const struct command command_weights;
extern const struct command command_config;
extern const struct command command_eval;
extern const struct command command_replay_server;
extern const struct command command_supervise;
extern const struct command command_data;
extern const struct command command_derive;
extern const struct command command_run;
extern const struct command command_mutate;
extern const struct command command_explain;
extern const struct command command_diagnose;
extern const struct command command_usual;
extern const struct command command_coverage;

/* The plan of the suites that are o's operands, under its filter, shard and seed: the same for a
 * run and its workers. Mistakes of all suites are collected before the first failure is
 * returned. */
MUST_USE enum err_code commands_plan(const struct options *o, struct arena *arena, struct plan *out,
                                     struct errs *errs);

/* The provider, and in plan->rules its semantics: of the file that was named, else its own
 * (provider.h). NULL: `errs` says why. */
const struct hum_provider *commands_provider(const struct options *o, struct arena *arena,
                                             struct plan *plan, struct errs *errs);

/* clang-format off */
/* Options that decide the plan: rows of the tables of a run and of its workers. */
#define COMMANDS_PLAN_OPTIONS                                                          \
    {"provider", OPT_TEXT, OPTION_AT(provider), "NAME", "cpu", 0,                      \
     "whose kernels are run: a built-in name, PATH.so, worker:PROGRAM, humming:PATH or"  \
     " humming:VERSION"},                                                              \
    {"semantics", OPT_TEXT, OPTION_AT(semantics), "FILE", NULL, 0,                     \
     "where versions of providers differ from the contract; of humming: known already"},\
    {"filter", OPT_TEXT, OPTION_AT(filter), "GLOB", NULL, 0,                           \
     "only cases whose id matches (* ? [..])"},                                        \
    {"shard", OPT_SHARD, 0, "I/N", NULL, 100000, "the I-th of N parts"},               \
    {"seed", OPT_SEED, 0, "0x..", NULL, 0, "replaces the suites' seeds"}
/* clang-format on */

/* What is wrong with the options of an evaluation, before anything starts: ERR_USAGE. */
MUST_USE enum err_code commands_eval_check(const struct options *o, struct errs *errs);

struct config_set;

/* The same of its data, key, names and kept answers: all that an evaluation of `set` would refuse
 * before its first server starts. */
MUST_USE enum err_code commands_eval_ready(const struct options *o, const struct config_set *set,
                                           struct arena *arena, struct errs *errs);

/* What a build without faults says to those who want one. */
extern const char commands_no_faults[];

/* Bytes for each of `jobs` workers: three quarters of the machine, shared; of address space, of
 * which a problem touches what it needs. */
size_t commands_memory(int jobs);

/* Exit code for what went wrong: the first error's. */
int commands_failed(const struct errs *errs);

#endif
