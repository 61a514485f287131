/* budget.h - a run that ends when its time is up: which problems come first, and what is left out.
 */
#ifndef HARNESS_CLI_BUDGET_H
#define HARNESS_CLI_BUDGET_H

#include "harness/cli/options.h"
#include "harness/kernel/risk.h"
#include "harness/report/left.h"

struct budget {
    const struct plan *plan;
    double deadline;         /* of proc_now(); 0: there is no budget */
    struct risk_order order; /* without a budget no problems: the plan's order */
    bool *ran;               /* by case; without a budget NULL */
    struct left left;        /* what did not run, once budget_close was called */
    const char **notes;      /* how the order came about, for the summary */
    size_t note_count;
};

/* Are the options in order? Before anything starts: ERR_USAGE. */
MUST_USE enum err_code budget_check(const struct options *o, struct errs *errs);

/* The order of the problems, by o's earlier records and changed files. `started` is when the time
 * began to run. Everything lives in `arena`. ERR_CONFIG, ERR_IO: files that cannot be used. */
MUST_USE enum err_code budget_make(const struct options *o, const struct plan *plan, double started,
                                   struct arena *arena, struct budget *out, struct errs *errs);

/* Fills left. `why` is said of it: "for lack of time". */
MUST_USE enum err_code budget_close(struct budget *b, const char *why, struct arena *arena,
                                    struct errs *errs);

#endif
