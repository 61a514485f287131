/* risk.h - in which order the problems of a plan are worth running when time may run out.
 *
 * Three levels, one after the other (risk_levels): problems with a case that failed before, those
 * that a change can break, and the rest. Within the first the most recent failure comes first,
 * then the plan's order. Within the others, greedily, the problem that adds most pairs of axis
 * values not yet seen for a second of its time; the problems chosen before, of all levels, count as
 * seen. When no pair is left, most cases a second. Equal ones stand as planned, so equal input
 * gives an equal order.
 *
 * A pair is (value of one axis, value of another) in one case; axes with one value in the whole
 * plan say nothing and are left out, as is the seed. Of an axis with more than 64 values only the
 * magnitude counts (the number of bits of the value).
 */
#ifndef HARNESS_KERNEL_RISK_H
#define HARNESS_KERNEL_RISK_H

#include "harness/kernel/plan.h"
#include "harness/kernel/touches.h"

enum risk_level { RISK_PAST, RISK_TOUCHED, RISK_COVERAGE, RISK_COUNT };

struct risk_level_info {
    const char *word, *help;
};
extern const struct risk_level_info risk_levels[RISK_COUNT];

/* What earlier runs say of a case. */
struct risk_past {
    size_t failed;  /* 0: never; 1: in the most recent run, 2: in the one before, ... */
    double seconds; /* that it took; 0: unknown */
};

struct risk_in {
    const struct plan *plan;
    const struct risk_past *past;  /* by case; NULL: nothing is known */
    const struct touched *touched; /* NULL: nothing was changed */
};

struct risk_order {
    size_t *problems; /* of the plan, each once */
    size_t counts[RISK_COUNT];
    double seconds; /* estimated, of all, on one worker */
};

/* `out` lives in `arena`. Seconds of cases that were never timed are taken from m n k, at the speed
 * of those that were. ERR_NOMEM. */
MUST_USE enum err_code risk_make(const struct risk_in *in, struct arena *arena,
                                 struct risk_order *out, struct errs *errs);

#endif
