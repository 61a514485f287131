/* plan_resolve.h - what "auto" means: one table of rules, applied before anything looks at a case.
 *
 * Only axes that decide operands or reference (and the fill) are resolved here; auto tiles and
 * other tuning stay, they are the provider's heuristics. Rules may be applied while a combination
 * is still being built: a rule runs once all it reads is known.
 */
#ifndef HARNESS_KERNEL_PLAN_RESOLVE_H
#define HARNESS_KERNEL_PLAN_RESOLVE_H

#include "harness/config/axes.h"

/* Replaces AXIS_AUTO in v by the rule's value wherever the axes that the rule reads are in `known`
 * (AXIS_BIT, legal.h). Returns `known` without the axes that could not be resolved yet.
 * decided_by[x], for each x of the result: the axes whose values *as written* decide v[x]. An auto
 * seed becomes `seed`, an auto axis without a rule stays auto. */
uint64_t plan_resolve(int64_t v[AX_COUNT], uint64_t known, uint64_t seed,
                      uint64_t decided_by[AX_COUNT]);

#endif
