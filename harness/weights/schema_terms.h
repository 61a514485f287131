/* schema_terms.h - what a quantization config says of every layer, without any tensor.
 */
#ifndef HARNESS_WEIGHTS_SCHEMA_TERMS_H
#define HARNESS_WEIGHTS_SCHEMA_TERMS_H

#include "harness/weights/schema.h"

struct schema_terms {
    const struct schema *schema;
    const struct dtype *b;
    const struct dtype *bs; /* NULL: the format of the model's parameters */
    enum ref_scale scale;
    int64_t group, group_n; /* group_n: of block scales, else 1 */
    bool zeros;             /* integer zero points */
    bool scale_2;           /* a factor of the tensor beside group scales */
};

/* By the first schema that knows `config`; `file` (of it) stands in sentences. A config of several
 * groups of layers, and what has no standard form, is refused. ERR_CONFIG, ERR_NOMEM. */
MUST_USE enum err_code schema_read_terms(const struct json *config, const char *file,
                                         struct arena *arena, struct schema_terms *out,
                                         struct errs *errs);

#endif
