/* invariance.h - the check `invariant`: a row's bits do not depend on what else is in the batch.
 *
 * The case's output (m rows) is compared, byte by byte, with the same rows in other launches: fewer
 * rows, permuted rows, NaN rows beside them, zero and NaN rows behind them; with experts also other
 * routings, in which the row has its expert while others lose or change theirs. An output counts as
 * the same row where it has the same row of A and the same expert. Required is equality
 *   - without Stream-K: always;
 *   - with Stream-K: where the provider states the same ordered slices for both places (m and the
 *     place, with experts all tiles, decide how a tile's k is divided, so nothing holds in
 *     general). A provider without `accumulation` answers for the same place of launches of the
 *     same m only. What is left out counts as vacuous.
 * With use_batch_invariant also other tiles of the class (mma type, warp_k, block_k), and the tile
 * that the provider's heuristics choose for fewer rows, must give the same bits. Without it, other
 * tiles are tried and reported in `note`.
 */
#ifndef HARNESS_KERNEL_INVARIANCE_H
#define HARNESS_KERNEL_INVARIANCE_H

#include "harness/kernel/checks.h"

void check_invariant(const struct check_in *in, struct finding *f);

#endif
