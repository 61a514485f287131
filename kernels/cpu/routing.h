/* routing.h - which row of A meets which expert, where the result goes, and which tiles that makes
 * (docs/semantics.md section 10).
 *
 * A dense product is one segment: expert 0, every row its own.
 */
#ifndef KERNELS_CPU_ROUTING_H
#define KERNELS_CPU_ROUTING_H

#include "kernels/abi/humming.h"

/* Consecutive places of one expert: a block of sorted ids, or rows of A. */
struct run {
    int64_t expert, first, count;
};

struct routed_row {
    int64_t in, out; /* row of A and of its input scales; row of the outputs */
    int64_t tile;    /* row tile within the segment; does not fall along a segment */
};

/* Rows of one expert that are tiled together. */
struct segment {
    int64_t expert;
    int64_t begin, rows; /* in `row` below; rows may be 0 where blocks hold padding alone */
    int64_t tiles_before, row_tiles; /* row tiles of the segments before it, and its own */
};

struct routing {
    struct routed_row *row;
    struct segment *segment;
    uint8_t *taken; /* indexed: one a row of the outputs; else NULL */
    int64_t rows, segments, row_tiles;
    int64_t most_rows; /* of any segment */
};

/* The values of the routing tensors of checked `args`: HUM_OK, or HUM_INVALID for one that the
 * contract does not allow. Ids that stand twice are routing_fill's to find. */
enum hum_code routing_check(const struct hum_gemm_args *args, char reason[HUM_REASON_BYTES]);

/* Bytes of the arrays of `out`; with `memory` (aligned to 8) also deals them out. */
size_t routing_layout(const struct hum_gemm_args *args, void *memory, struct routing *out);

/* Fills everything. HUM_INVALID: an id stands twice. */
enum hum_code routing_fill(const struct hum_gemm_args *args, struct routing *out,
                           char reason[HUM_REASON_BYTES]);

#endif
