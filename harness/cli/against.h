/* against.h - the other run of `humcheck kernels --against`: of another provider, or an earlier
 * one's records.
 *
 * SPEC is "jsonl:FILE", records of an earlier run, or a provider as for --provider. That one is run
 * first, by this program in a process of its own (a process has one worker provider, and a device
 * is used by one at a time), with the same plan, workers and support table; what it reports is read
 * as a file's records are. Its summary goes to standard error.
 *
 * A record belongs to the case of the same id and the same seed: with other data bits mean nothing.
 */
#ifndef HARNESS_CLI_AGAINST_H
#define HARNESS_CLI_AGAINST_H

#include "harness/cli/options.h"
#include "harness/kernel/plan.h"
#include "harness/report/against.h"

#include <signal.h>

/* The other run's cases, in the order of the plan, and its provider's name. */
struct against {
    struct against_case *cases;
    struct against_run run;
};

/* Are the options in order? Before anything starts: ERR_USAGE. */
MUST_USE enum err_code against_check(const struct options *o, struct errs *errs);

/* Reads the records in `in`; `path` is how errors name it. Everything lives in `arena`. ERR_CONFIG:
 * a line is no record, a case stands there twice, or none is of the plan. */
MUST_USE enum err_code against_take(FILE *in, const char *path, const struct plan *plan,
                                    struct arena *arena, struct against *out, struct errs *errs);

/* Runs, or reads, o->against. ERR_INFRA also where *interrupted says so. */
MUST_USE enum err_code against_load(const struct options *o, const struct plan *plan,
                                    const volatile sig_atomic_t *interrupted, struct arena *arena,
                                    struct against *out, struct errs *errs);

#endif
