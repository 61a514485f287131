/* diagnose.h - an explanation in a process of its own, which a kernel that crashes or hangs takes
 * along.
 *
 * The process is this program, started afresh with the hidden subcommand "diagnose", which says a
 * line for each thing it finds out: the number of its topic (explain.h), a blank, and the text with
 * \v for a new line.
 */
#ifndef HARNESS_CLI_DIAGNOSE_H
#define HARNESS_CLI_DIAGNOSE_H

#include "harness/cli/options.h"
#include "harness/explain/explain.h"

#include <signal.h>

struct diagnose_how {
    const struct options *plan; /* suites, provider, filter, shard, seed: one case */
    double seconds;
    double grace_seconds; /* for the launch that goes on when they are over; then it is ended */
    bool shrink;
    char *const *env; /* of the process; NULL: ours */
    const volatile sig_atomic_t *interrupted;
};

/* Runs it and hands on what it says. `end` ("" if it ended well) is a sentence about a crash, a
 * hang or an interrupt. An error: it cannot be started, or it could not make the plan; *exit_code
 * is what it ended with. */
MUST_USE enum err_code diagnose_run(const struct diagnose_how *how, const struct explain_sink *sink,
                                    struct arena *arena, char end[EXPLAIN_TEXT], int *exit_code,
                                    struct errs *errs);

/* The diagnoses of a run's failing cases. Starts as {.seconds_left = ...}. */
struct diagnoses {
    double seconds_left;
    int done;
};

/* Fills r->diagnosis, if the record has a wrong element, the case is one of the first such, and
 * seconds are left: where it is wrong and
 * which mistake gives the same bits. Whatever happens there, the record stays what it is. */
void diagnose_record(struct diagnoses *d, const struct options *run,
                     const volatile sig_atomic_t *interrupted, struct record *r);

#endif
