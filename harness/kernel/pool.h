/* pool.h - worker processes: each runs problems of the plan, and losing one costs one case.
 *
 * A worker is this program started afresh (posix_spawn of /proc/self/exe with the hidden subcommand
 * "worker"), which loads the same suites with the same options and therefore has the same plan
 * (checked by a hash); it is told problem numbers over a pipe and answers with stages and records
 * (pool_wire.h). Inputs are a function of the seed, so a restarted worker makes them again: nothing
 * is shared but the pipe, and a kernel that scribbles over memory cannot touch other workers or the
 * report.
 *
 * A case whose worker dies or exceeds its limit after STAGE_LAUNCH and before STAGE_JUDGE is `fail`
 * (signal or limit in the reason); at another stage it is `infra`. The worker is restarted with the
 * case after. A worker lost between two cases costs none. Records are handed on in plan order, or
 * in that of pool_options.
 */
#ifndef HARNESS_KERNEL_POOL_H
#define HARNESS_KERNEL_POOL_H

#include "harness/kernel/pool_early.h"
#include "harness/kernel/runner.h"

struct pool_options {
    int jobs; /* workers, at least 1 */
    /* Limit of one case, reference included for the first of a problem. The clock starts with the
     * case's first stage and again with its first launch, so that a slow reference is never taken
     * for a launch that hangs. */
    double case_seconds;
    double start_seconds;            /* limit of a worker's start; 0: 60 */
    char *const *argv;               /* worker command line: "PROGRAM worker ...", ended by NULL */
    struct pool_early *early;        /* workers that run already, with argv; NULL: none */
    volatile const int *interrupted; /* set by SIGINT / SIGTERM: stop at once, keep what is there */
    const size_t *order; /* every problem once, as they are to be started; NULL: as planned */
    double deadline;     /* of proc_now(): no problem is started after it; 0: none. What was
                          * started is finished. */
};

struct pool_sink {
    enum err_code (*record)(void *context, const struct record *r, struct errs *errs);
    void (*tick)(void *context); /* about four times a second; may be NULL */
    void *context;
};

/* Run the plan. The sink gets the records of all problems that were started, in the order in which
 * they were, without a gap: all of them when *complete is true; it is false after an interrupt and
 * after an error. An error of the sink stops the run and is returned. ERR_INFRA: workers cannot be
 * started at all, or one worker was restarted twice in a row without bringing a record (what it
 * said is in the sentence). On return no worker is left. SIGPIPE is ignored meanwhile. */
MUST_USE enum err_code pool_run(const struct plan *plan, const struct hum_provider *provider,
                                const struct pool_options *o, const struct pool_sink *sink,
                                bool *complete, struct errs *errs);

/* The worker's side. */

/* To be called first in a worker, before a provider library is loaded: moves the pipe to other
 * descriptors, so that what a library prints on standard output lands on standard error and what it
 * reads is empty. The arguments go in as 0 and 1 and come out as what pool_serve wants. */
void pool_protect(int *in_fd, int *out_fd);

/* Serve until the pool closes in_fd. Returns the exit code. Calls pool_protect itself if that was
 * not done. */
int pool_serve(const struct plan *plan, const struct hum_provider *provider, int threads,
               size_t memory_limit, int in_fd, int out_fd);

/* FNV-1a over every id, axis value and problem of the plan. */
uint64_t pool_plan_hash(const struct plan *plan);

#endif
