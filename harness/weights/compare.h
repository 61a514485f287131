/* compare.h - two checkpoints, layer by layer in standard form and tensor by tensor elsewhere.
 *
 * Two files of different schemas that mean the same codes and scales are the same. Layers are
 * compared exact (SCHEMA_EXACT), all other tensors byte by byte.
 */
#ifndef HARNESS_WEIGHTS_COMPARE_H
#define HARNESS_WEIGHTS_COMPARE_H

#include "harness/report/table.h"
#include "harness/weights/checkpoint.h"

struct comparison {
    struct table differences; /* layer or tensor, what, sentence; no heading */
    size_t layers, tensors;   /* compared: in both files */
    size_t different;         /* names with a difference, or in one file only */
};

/* ERR_CONFIG: a layer could not be converted; it counts as different. ERR_NOMEM. */
MUST_USE enum err_code compare_checkpoints(const struct checkpoint *a, const struct checkpoint *b,
                                           struct arena *arena, struct comparison *out,
                                           struct errs *errs);

#endif
