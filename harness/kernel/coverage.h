/* coverage.h - did every pair of a weight code and a scale (or zero point) code really occur? For
 * the check `exhaustive`.
 */
#ifndef HARNESS_KERNEL_COVERAGE_H
#define HARNESS_KERNEL_COVERAGE_H

#include "harness/kernel/checks.h"

/* Counts pairs over what fill P read out (the rows launched, the columns looked at). A pass
 * whose data lack a pair becomes untrusted. Scale codes of NaN and infinity are not of this
 * fill, zero points of float formats likewise. */
void coverage_check(const struct check_in *in, struct finding *f);

#endif
