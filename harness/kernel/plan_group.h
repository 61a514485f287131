/* plan_group.h - the second half of plan.c: rows to problems, problems to shards. Private to the
 * plan.
 */
#ifndef HARNESS_KERNEL_PLAN_GROUP_H
#define HARNESS_KERNEL_PLAN_GROUP_H

#include "harness/kernel/plan.h"

/* Groups `rows` (complete cases in the order written; `problem` is overwritten) by the axes of the
 * problem, keeps the problems of the shard that `options` names and fills cases and problems of
 * `out`, in `arena`. Problems are dealt out by cost, the sum of m n k over their cases: sorted,
 * then forth and back over the shards. ERR_USAGE: the shard has no problem. */
MUST_USE enum err_code plan_group(struct plan_case *rows, size_t count,
                                  const struct plan_options *options, struct arena *arena,
                                  struct arena *scratch, struct plan *out, struct errs *errs);

#endif
