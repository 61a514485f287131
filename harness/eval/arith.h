/* arith.h - word problems of grade school made on the spot, in the shape of GSM8K.
 *
 * For smoke tests and the harness's own tests, where the real data set is not at hand: the same
 * rows (question, worked answer with <<...>> marks, "#### N"), several kinds of problem, some with
 * negative or large answers, thousands separators, or decimals on the way. A pure function of the
 * seed; scores on it say nothing about scores on GSM8K.
 */
#ifndef HARNESS_EVAL_ARITH_H
#define HARNESS_EVAL_ARITH_H

#include "harness/eval/dataset.h"

#include <stdint.h>

enum { ARITH_ROWS_MAX = 10000 }; /* train and test together */
enum { ARITH_KINDS = 8 };

/* `train` and `test` rows, no question twice. Row i of a split depends on the seed and the rows
 * before it only; train comes first. The kinds take turns, so that about every ARITH_KINDS rows
 * have all of them. Errors: ERR_CONFIG for too many rows, ERR_NOMEM. */
MUST_USE enum err_code arith_make(uint64_t seed, size_t train, size_t test, struct arena *arena,
                                  struct dataset *out, struct errs *errs);

#endif
