/* graph.h - the check `graph`: a launch recorded once (a CUDA graph) and replayed.
 *
 * What a serving engine does: it records its kernels with some inputs and replays them, for each
 * batch, with other inputs in the same places. A kernel that kept anything but addresses from the
 * launch that was recorded (a copy of inputs, counts that it read on the host, a lock that it left)
 * is then wrong, and only then.
 *
 * Assumed: exact data (fill E2), so that the only right codes are known. Compared: the launch as it
 * is with those codes; then three replays of a launch that was recorded with other inputs - with
 * the case's inputs, with the others over those outputs, and with the case's again - each bit for
 * bit with a plain launch of the same inputs, and with the case's outputs where a row has the same
 * expert. The others are the rows of A in another order, with their scales, and for other experts.
 */
#ifndef HARNESS_KERNEL_GRAPH_H
#define HARNESS_KERNEL_GRAPH_H

#include "harness/kernel/checks.h"

void check_graph(const struct check_in *in, struct finding *f);

#endif
