/* experts.h - one problem of the experts pipeline: two layers with their weights, tokens, and where
 * each token goes.
 *
 * The axes of a case describe the layer gate_up (k: hidden size, n: its columns); the layer down
 * follows from it: n = hidden size, k = n of gate_up, halved by the binary activations; same
 * formats and scales, padded like gate_up where it must be. Forms (semantics-ops.md section 10):
 *
 *   indexed             m tokens, top_k slots; routed row token * top_k + slot
 *   grouped_contiguous  m tokens, top_k slots; routed rows sorted by expert, then by slot
 *   grouped_masked      batched: m = num_experts * max_tokens routed rows; a token is a row that
 *                       an expert has, top_k is 1
 *
 * Inputs and weights are small whole numbers and scales powers of two, so that sums are exact as
 * far as that is possible; routing weights are any numbers in [1/2, 1). Everything is a function of
 * (seed, tensor, index) and lives in the arena given.
 */
#ifndef HARNESS_KERNEL_EXPERTS_H
#define HARNESS_KERNEL_EXPERTS_H

#include "harness/kernel/problem.h"
#include "reference/activation.h"
#include "reference/buffers.h"

enum { LAYER_GATE_UP, LAYER_DOWN, LAYER_COUNT };

struct experts_layer {
    int64_t v[AX_COUNT]; /* the layer as a case of the family gemm */
    struct ref_gemm ref; /* m 1; nothing of the activations */
    struct ref_inputs in;
    struct hum_layer_config config;
    struct hum_weights standard; /* host memory */
};

/* Tokens as they are routed. `capacity` is m of the axes: of the batched form the routed rows. */
struct experts {
    const int64_t *v;
    enum hum_gemm_type type;
    int64_t tokens, top_k, experts, max_tokens, capacity;
    int64_t hidden, width, inter; /* k and n of gate_up; k of down */
    const struct dtype *a, *c;
    struct ref_activation activation;
    struct experts_layer layer[LAYER_COUNT];
    const uint16_t *inputs; /* tokens x hidden codes of c */
    const int32_t *ids;     /* tokens x top_k, below 0: no expert here */
    const float *weights;   /* tokens x top_k */
};

/* Do activations have scales, and the buffers that hold them quantized? */
static inline bool experts_quantizes(const struct experts *x)
{
    return x->a->bits < 16;
}
static inline bool experts_batched(const struct experts *x)
{
    return x->type == HUM_GEMM_GROUPED_MASKED;
}

/* NULL, or a sentence: memory is out. v must outlive `out`. */
const char *experts_make(const int64_t v[AX_COUNT], int64_t m, struct arena *arena,
                         struct experts *out);

/* Axes of a layer of that case; what `layer` a case has follows from v alone. */
void experts_layer_axes(const int64_t v[AX_COUNT], int layer, int64_t out[AX_COUNT]);

/* What the provider's and the oracle's buffer_metas are asked, for m tokens. `config` points into
 * x. */
void experts_config(const struct experts *x, int64_t m, struct hum_experts_config *config);
void experts_reference(const struct experts *x, int64_t m, struct ref_experts *out);

/* ---- batches --------------------------------------------------------------------------------- */

/* Some of the tokens in some order (batched: sorted by expert, stably), and the rows they get. */
struct batch {
    int64_t m;              /* tokens */
    int64_t entered, rows;  /* rows of A of gate_up; routed rows: outputs of gate_up, and all after
                             * it up to the weighted sum */
    const int64_t *token;   /* m: its number in the problem */
    const uint16_t *inputs; /* m x hidden */
    const int32_t *ids;     /* m x top_k */
    const float *weights;   /* m x top_k */
    const int64_t *row_of;  /* m x top_k: the routed row of a slot, -1: none */
    const bool *entered_live, *live; /* rows that mean something */
    const int64_t *offsets;          /* grouped: experts + 1 offsets; batched: experts counts */
    struct routing routing[LAYER_COUNT];
};

/* A token whose inputs are replaced by NaN. */
#define TOKEN_NAN(token) (-1 - (token))

/* tokens: m numbers, or TOKEN_NAN of them; NULL: 0, 1, ... False: memory is out. */
bool batch_make(const struct experts *x, const int64_t *tokens, int64_t m, struct arena *arena,
                struct batch *out);

#endif
