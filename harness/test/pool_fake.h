/* pool_fake.h - the other side of test_pool: plans made from a text and a runner that misbehaves.
 *
 * A case's id says what its worker does and where: "segv@launch". The runner's functions of
 * runner.h are defined beside it, in place of the real ones.
 */
#ifndef HARNESS_TEST_POOL_FAKE_H
#define HARNESS_TEST_POOL_FAKE_H

#include "harness/kernel/pool.h"

enum { MAX_CASES = 64 };

/* "ok segv@launch|ok": cases apart by spaces, problems by bars. */
struct fake_plan {
    struct plan plan;
    struct plan_case cases[MAX_CASES];
    struct plan_problem problems[MAX_CASES];
    char text[2048];
};

/* Fill and return f->plan. */
const struct plan *pool_fake_plan(struct fake_plan *f, const char *text);

extern const struct hum_provider fake_provider;

/* The worker: argv is {program, "worker", plan, mode, fifo or ""}. Returns the exit code. */
int pool_fake_worker(char *const *argv);

#endif
