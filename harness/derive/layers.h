/* layers.h - the matrices of a model on one GPU: sizes after division, weights, who serves them.
 *
 * Private to harness/derive.
 */
#ifndef HARNESS_DERIVE_LAYERS_H
#define HARNESS_DERIVE_LAYERS_H

#include "harness/derive/settings.h"

enum { LAYERS_MAX = 16 };

/* A matrix of n rows and k columns: out[m][n] = sum over k of in[m][k] w[n][k]. */
struct layer_shape {
    const char *name; /* "attn.qkv", "experts.down" */
    enum model_part part;
    int64_t n, k;
    bool bias;
    const struct model_weights *weights; /* NULL: not a kernel of Humming */
    const char *without;                 /* why; NULL with weights */
};

struct shapes {
    struct layer_shape items[LAYERS_MAX];
    size_t count;
    int64_t experts; /* on one GPU; 0: none */
    int64_t inter;   /* columns between the two matrices of the experts, on one GPU */
};

/* ERR_CONFIG at the server's arguments where sizes cannot be divided, or where nothing is served by
 * Humming; at the model where its weights must be known and are not. */
MUST_USE enum err_code layers_of(const struct model *m, const struct settings *s,
                                 struct shapes *out, struct errs *errs);

#endif
