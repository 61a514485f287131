/* op_trust.h - may a pass of an operation be believed?
 *
 * Looks at the expected codes only: data whose right outputs are all alike, or whose rows repeat,
 * could not have caught a wrong row, a wrong group, or a kernel that ignores its inputs. */
#ifndef HARNESS_KERNEL_OP_TRUST_H
#define HARNESS_KERNEL_OP_TRUST_H

#include "harness/kernel/op_family.h"

/* NULL: yes. Else a sentence, which may lie in `buf`. */
const char *op_trust_refuses(const struct op_family *family, const struct op_problem *p,
                             const struct finding *f, char *buf, size_t size);

#endif
