/* layers.h - the quantized layers of a checkpoint, by its config and its tensors' names. */
#ifndef HARNESS_WEIGHTS_LAYERS_H
#define HARNESS_WEIGHTS_LAYERS_H

#include "harness/weights/checkpoint.h"
#include "harness/weights/schema.h"

struct layer {
    const char *name; /* of its tensors, without suffix */
    const struct schema *schema;
};

struct layers {
    const struct checkpoint *from;
    const struct dtype *param; /* f16 or bf16 if the model's torch_dtype is one of them */
    const struct layer *items; /* sorted by name */
    size_t count;
};

/* Without a config, or with one that no schema knows, there are none. ERR_NOMEM. */
MUST_USE enum err_code layers_find(const struct checkpoint *c, struct arena *arena,
                                   struct layers *out, struct errs *errs);

const struct layer *layers_get(const struct layers *l, const char *name);

/* True if the conversion of a layer reads this tensor. */
bool layers_own(const struct layers *l, const char *tensor);

/* One layer, exact (SCHEMA_EXACT). A sentence that equals the last one in `errs` is not
 * repeated. */
MUST_USE enum err_code layers_convert(const struct layers *l, const struct layer *layer,
                                      struct arena *arena, struct standard *out, struct errs *errs);

/* "uint4 464x192", "32 x float4e2m1 5760x2880"; "group 128 f16", "tensor f32". NULL: no memory. */
const char *layers_weights(const struct standard *s, struct arena *arena);
const char *layers_scales(const struct standard *s, struct arena *arena);

#endif
