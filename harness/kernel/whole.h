/* whole.h - all outputs of a big exact product, although only a sample of columns has expected
 * codes.
 *
 * Fill E2 without bias: outputs are small whole multiples of a unit, so that Y = A W^T can be
 * checked in integers (reference/freivalds.h). A wrong element in any column is found, but for the
 * probability stated there. Where a product is wrong, the elements in question are computed one by
 * one and compared as codes: only these make a failure.
 */
#ifndef HARNESS_KERNEL_WHOLE_H
#define HARNESS_KERNEL_WHOLE_H

#include "harness/kernel/checks.h"

/* Does nothing where every column has been compared, the fill is another, or there are experts.
 * Adds to compared and wrong; untrusted when the sums are too large for it. */
void whole_check(const struct check_in *in, struct finding *f);

#endif
