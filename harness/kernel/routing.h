/* routing.h - which expert and which row of A each output row has, and the tensors that tell a
 * kernel so.
 *
 * The rows are part of the problem; the tensors of an indexed product depend on block_m, so they
 * are made for each launch. Dense products have a routing, too: every row its own, expert 0, no
 * tensors.
 */
#ifndef HARNESS_KERNEL_ROUTING_H
#define HARNESS_KERNEL_ROUTING_H

#include "harness/config/axes.h"
#include "harness/core/arena.h"
#include "kernels/abi/humming.h"

struct routing {
    enum hum_gemm_type type;
    int64_t m;                 /* rows of A */
    int64_t experts;           /* at least 1 */
    int64_t top_k, max_tokens; /* 1 and 0 where the type has none */
    bool has_spare;            /* indexed: capacity behind the last block */
    int64_t rows;              /* of the output */
    const int32_t *row_a;      /* rows: the row of A, -1: this row is never written */
    const int32_t *row_expert; /* rows: -1: likewise */
    const int32_t *ids;        /* indexed: m x top_k (reference/routing.h), else NULL */
    const int64_t *counts;     /* grouped: experts, else NULL */
};

/* The routing of a case with m rows. False: memory is out. */
bool routing_make(const int64_t v[AX_COUNT], int64_t m, struct arena *arena, struct routing *out);

/* Where an output row is computed: row tile `index` of the `of_segment` row tiles of its
 * segment, behind `before` row tiles of the segments before it (semantics.md section 10). */
struct routing_tile {
    int32_t before, of_segment, index;
};

/* Host tensors for one launch; those that the type has not are absent. */
struct routing_tensors {
    struct hum_tensor sorted_ids, expert_ids, num_tokens_padded, expert_layout;
    int64_t row_tiles;                /* of all segments */
    const struct routing_tile *tiles; /* an output row; meaningless for rows that are not written */
};

/* layout_dtype: HUM_INT32 or HUM_INT64, of expert_layout. Everything lives in `arena`. False:
 * memory is out. */
bool routing_tensors_make(const struct routing *r, int64_t block_m, int32_t layout_dtype,
                          struct arena *arena, struct routing_tensors *out);

/* The row tile, of all segments, of an output row that is written. */
static inline int64_t routing_tile_of(const struct routing_tensors *t, int64_t row)
{
    return t->tiles[row].before + t->tiles[row].index;
}

/* A dense product of the same number of tiles: element (row, col) of m rows lies in the tile
 * that has the number of the tile of output (at_row, at_col), so that `accumulation` of a dense
 * layer without padding of n tells the order of its sums. */
struct routing_place {
    int64_t m, row, col;
};
struct routing_place routing_place_of(const struct routing_tensors *t,
                                      const struct hum_layer_config *layer,
                                      const struct hum_tuning_config *tuning, int64_t at_row,
                                      int64_t at_col);

#endif
