/* trust.h - may a pass be believed? Looks only at inputs and expected results, never at what the kernel returned. */
#ifndef HARNESS_KERNEL_TRUST_H
#define HARNESS_KERNEL_TRUST_H

#include "harness/kernel/checks.h"

/* NULL: yes. Else a sentence: why this data could not have caught a fault, or why the expected codes are not the only right ones. `tuning`
 * decides what the data must survive (slices); text may lie in `buf`. */
const char *trust_refuses(const struct check_in *in, const struct finding *f, char *buf,
                          size_t size);

#endif
