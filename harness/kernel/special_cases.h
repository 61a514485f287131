/* special_cases.h - the check `special`: NaN, infinities, zeros of either sign, largest values,
 * zero scales, one row, none.
 *
 * On fill X (fill.h). Besides the case itself: single rows; all-zero and all -0 activations; all
 * weight scales zero, where their format has a zero; with experts all rows (and slots) at one of
 * them, and at none; and no rows at all (humming.h, forward).
 */
#ifndef HARNESS_KERNEL_SPECIAL_CASES_H
#define HARNESS_KERNEL_SPECIAL_CASES_H

#include "harness/kernel/checks.h"

void check_special(const struct check_in *in, struct finding *f);

#endif
