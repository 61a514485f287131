/* runner.h - one problem in, one record a case out: a straight line without I/O.
 *
 * fill -> operands -> reference -> for each case: launch -> check -> trust = record. Runs in a
 * worker process (pool.h) or, for debuggers, in the program itself.
 */
#ifndef HARNESS_KERNEL_RUNNER_H
#define HARNESS_KERNEL_RUNNER_H

#include "harness/kernel/plan.h"
#include "harness/report/record.h"
#include "kernels/abi/humming.h"

/* Where a case stands, so that whoever watches can tell a lost launch (the kernel's fault) from
 * a lost worker. */
enum stage { STAGE_PREPARE, STAGE_LAUNCH, STAGE_JUDGE };

struct runner; /* provider handle, arenas: one a process, kept over problems */

struct runner_hooks {
    void (*stage)(void *context, size_t case_index, enum stage stage);
    void (*record)(void *context, const struct record *r);
    void *context;
    const volatile int
        *interrupted; /* set by a signal: the cases after this one are left; NULL: no */
};

static inline bool runner_goes_on(const struct runner_hooks *h)
{
    return !h->interrupted || !*h->interrupted;
}

/* NULL: `errs` says why (provider cannot be opened, BLAS self-test failed). */
struct runner *runner_open(const struct hum_provider *provider, int threads, size_t memory_limit,
                           struct errs *errs);
void runner_close(struct runner *r);

/* Cases [begin, end) of plan->problems[problem] (indices into plan->cases), a record each
 * through hooks->record, unless interrupted. */
void runner_problem(struct runner *r, const struct plan *plan, size_t problem, size_t begin,
                    size_t end, const struct runner_hooks *hooks);

/* The parts of a record that are known without running it (ids, seed, repro). */
void runner_record(const struct plan *plan, size_t case_index, const struct hum_provider *provider,
                   struct record *out);

#endif
