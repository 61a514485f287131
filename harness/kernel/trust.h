/* trust.h - may a pass be believed?
 *
 * Looks at inputs and expected results, and at what the kernel returned only where a check compares
 * the kernel with itself.
 */
#ifndef HARNESS_KERNEL_TRUST_H
#define HARNESS_KERNEL_TRUST_H

#include "harness/kernel/checks.h"

/* NULL: every correct kernel returns the codes that the check compares with. Else a sentence: why
 * another result may be right, so that a difference is no fault. The text may lie in `buf`. */
const char *trust_ambiguous(const struct check_in *in, enum check_basis basis, char *buf,
                            size_t size);

/* NULL: yes. Else a sentence: why this data could not have caught a fault, or why the expected
 * codes are not the only right ones. The launch's tuning decides what the data must survive
 * (slices); the text may lie in `buf`. */
const char *trust_refuses(const struct check_in *in, enum check_basis basis,
                          const struct finding *f, char *buf, size_t size);

#endif
