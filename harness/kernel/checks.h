/* checks.h - the table of checks: each a function from a launch's output to a finding.
 *
 * A check neither prints nor remembers. One criterion decides a case. Comparisons are written so that NaN cannot pass.
 */
#ifndef HARNESS_KERNEL_CHECKS_H
#define HARNESS_KERNEL_CHECKS_H

#include "harness/core/verdict.h"
#include "harness/kernel/order.h"
#include "harness/kernel/problem.h"

struct finding {
    enum verdict verdict;
    char reason[400]; /* why not a pass */
    uint64_t compared, wrong;
    int64_t at_row, at_col; /* of the worst or first wrong element; -1: none */
    uint32_t got_code, want_code;
    double got, want, error, limit;
    uint64_t vacuous; /* elements about which the check could require nothing */
};

struct check_in {
    const struct problem *q;
    const struct launch *launch;
    const uint16_t *got; /* m x n codes of format c */
    struct arena *scratch;
};

struct check {
    const char *name; /* the word of the axis */
    const char *unit; /* of error and limit */
    void (*run)(const struct check_in *in, struct finding *f);
};

/* By value of the axis `check`. */
const struct check *check_of(int64_t value);

/* Give up on a case that cannot be judged: skip, infra or untrusted with a sentence. */
void finding_give(struct finding *f, enum verdict v, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
