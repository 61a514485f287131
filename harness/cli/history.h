/* history.h - what records of earlier runs (JSON lines) say of the cases of a plan.
 */
#ifndef HARNESS_CLI_HISTORY_H
#define HARNESS_CLI_HISTORY_H

#include "harness/cli/options.h"
#include "harness/kernel/risk.h"

/* By case of the plan, in `arena`: in how recent a file it failed, was untrusted or did not get to
 * run, and how long it took when last timed. The first file is the most recent run. Records belong
 * to the case of their id; those of other cases say nothing. Without files *out is NULL.
 * ERR_CONFIG: a line is no record. */
MUST_USE enum err_code history_read(const struct option_list *files, const struct plan *plan,
                                    struct arena *arena, const struct risk_past **out,
                                    struct errs *errs);

#endif
