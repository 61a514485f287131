/* describe.h - what a checkpoint holds, as tables: tensors, layers, what is odd there. */
#ifndef HARNESS_WEIGHTS_DESCRIBE_H
#define HARNESS_WEIGHTS_DESCRIBE_H

#include "harness/report/table.h"
#include "harness/weights/checkpoint.h"

/* Filled tables; empty ones have no row (`first` is NULL). Cells live in the arena. */
struct description {
    struct table head;     /* two columns: what, value */
    struct table tensors;  /* with a heading */
    struct table layers;   /* with a heading; empty if there are none */
    struct table findings; /* kind, layer, sentence */
    size_t suspicious;     /* layers with something that no good checkpoint has */
    size_t refused;        /* layers that cannot be converted: `errs` says why */
};

/* Layers are converted one after the other in an arena of their own. ERR_CONFIG: a layer could not
 * be converted (the tables are complete all the same); ERR_NOMEM. */
MUST_USE enum err_code describe_checkpoint(const struct checkpoint *c, const char *path,
                                           struct arena *arena, struct description *out,
                                           struct errs *errs);

#endif
