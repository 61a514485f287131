/* experts_checks.h - the checks of the experts pipeline.
 *
 *   exact          every step (experts_oracle.h), buffers and result where the case puts them
 *   alias          buffers apart, in the workspaces, and the result in workspace1: the same bytes
 *   guard          two poisons: all that means something is written, nothing else is; no tokens
 *   deterministic  repeated runs: the same bytes
 *   invariant      a token's result does not depend on the order, the number and the values (NaN)
 *                  of the other tokens; tunings stay those of all tokens
 *   contract       buffer_metas refuses layers that do not fit, with a sentence and nothing written
 */
#ifndef HARNESS_KERNEL_EXPERTS_CHECKS_H
#define HARNESS_KERNEL_EXPERTS_CHECKS_H

#include "harness/kernel/experts_run.h"

/* The check of the case; trust included: data that could catch nothing are untrusted. t is open. */
void experts_check(struct experts_trial *t, int threads, struct finding *f);

#endif
