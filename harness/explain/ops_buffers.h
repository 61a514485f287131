/* ops_buffers.h - buffer_metas of the experts pipeline, right and with one mistake.
 */
#ifndef HARNESS_EXPLAIN_OPS_BUFFERS_H
#define HARNESS_EXPLAIN_OPS_BUFFERS_H

#include "harness/explain/ops_record.h"
#include "reference/buffers.h"

/* A buffer as elements of a probe: rows, columns, bytes (low, high), format, workspace. Rows and
 * columns are below 2^31 in every case of a suite. */
enum { OPS_BUFFER_FIELDS = 6, OPS_BUFFER_COUNT = HUM_BUFFER_COUNT * OPS_BUFFER_FIELDS };

/* What was asked, into b, and whether what came is wrong. False: the layers do not fit. */
bool ops_buffers_note(const struct hum_experts_config *config, struct ops_buffers *b);

void ops_buffers_elements(const struct hum_buffer_meta metas[HUM_BUFFER_COUNT],
                          uint32_t out[OPS_BUFFER_COUNT]);

enum ops_buffers_kind {
    BUFFERS_RIGHT,
    BUFFERS_GATED,       /* the first product has two halves, also without a binary activation */
    BUFFERS_PER_TOKEN,   /* down_output has a row a token */
    BUFFERS_WORKSPACE,   /* all lie in workspace n */
    BUFFERS_EXCHANGED,   /* workspaces 1 and 2 are exchanged */
    BUFFERS_STALE,       /* what is not needed keeps what stood there; n 1: and takes a place */
    BUFFERS_PADDED,      /* columns are those of the padded layers */
    BUFFERS_DISPATCHERS, /* batched: one dispatcher */
    BUFFERS_TOP_K,       /* all have a row a token */
    BUFFERS_BITS         /* 4-bit columns are counted as 8-bit ones */
};

/* False: this mistake means nothing here. */
bool ops_buffers_answer(const struct ops_buffers *b, enum ops_buffers_kind kind, int n,
                        uint32_t out[OPS_BUFFER_COUNT]);

#endif
