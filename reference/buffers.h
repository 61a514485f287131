/* buffers.h - sizes and places of the buffers of the experts pipeline.
 *
 * The oracle of `buffer_metas` (docs/semantics-ops.md section 10): quantize, GEMM (gate_up),
 * activation, quantize, GEMM (down), weighted sum. Formats and columns are those of the layer
 * that the table names; all sizes are valid ones. */
#ifndef REFERENCE_BUFFERS_H
#define REFERENCE_BUFFERS_H

#include "reference/dtype.h"

#include <stddef.h>

/* In the order of the pipeline. */
enum {
    REF_BUFFER_QUANTED_GATE_UP_INPUT,
    REF_BUFFER_GATE_UP_OUTPUT,
    REF_BUFFER_ACTIVATION_OUTPUT,
    REF_BUFFER_QUANTED_DOWN_INPUT,
    REF_BUFFER_DOWN_OUTPUT,
    REF_BUFFER_OUTPUT, /* not of the batched form */
    REF_BUFFER_COUNT
};

enum ref_experts_form { REF_EXPERTS_INDEXED, REF_EXPERTS_GROUPED, REF_EXPERTS_BATCHED };

struct ref_experts {
    enum ref_experts_form form;
    bool gated; /* a binary activation: halves the columns */
    int64_t m, top_k;
    int64_t experts, max_tokens, dispatchers; /* of the batched form; else ignored */
    struct ref_experts_layer {
        const struct dtype *a, *c;
        int64_t n, k; /* without padding */
    } gate_up, down;
};

struct ref_buffer {
    int64_t rows, cols;    /* cols counts bytes where t has 4 bits */
    const struct dtype *t; /* NULL: the pipeline does not need this buffer, everything else is 0 */
    size_t bytes;
    int workspace; /* 1 or 2 */
};

/* NULL and out is written, or what is wrong (out is then unspecified): sizes below 0, layers that
 * do not fit each other, an odd number of 4-bit columns, more bytes than size_t holds. Whether a
 * buffer is needed follows from formats and form alone, so m = 0 gives empty buffers in the same
 * places. */
const char *ref_buffers(const struct ref_experts *e, struct ref_buffer out[REF_BUFFER_COUNT]);

/* Bytes of workspace 1 and 2: of the largest buffer of each. */
void ref_workspaces(const struct ref_buffer buffers[REF_BUFFER_COUNT], size_t bytes[2]);

#endif
