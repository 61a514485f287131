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
#include "reference/routing.h"

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

/* How tokens are drawn for a value of AX_ROUTING; without a routing they are uniform. */
enum ref_routing_kind routing_kind(int64_t word);

/* The routing of a case with m rows. False: memory is out. */
bool routing_make(const int64_t v[AX_COUNT], int64_t m, struct arena *arena, struct routing *out);

/* For each row of A and each expert (m x experts): an output row that has both, -1: none has. NULL:
 * memory is out. */
int32_t *routing_index(const struct routing *r, struct arena *arena);

/* ---- other rows for the experts of a routing ------------------------------------------------- */

/* Rows of A, each with its experts: what another launch of the same kind is made from. */
struct mix {
    int64_t count;
    int64_t *rows;    /* count numbers that mean something to the caller */
    int32_t *experts; /* count x top_k; below 0: none, as in reference/routing.h. Dense: all 0 */
};

/* The first m rows of A of a routing (all of them but in a dense product) with their experts, and
 * places for `more` behind. Rows of grouped types stand in turn: the first of every expert, the
 * second of every expert, and so on; then those that no expert has. False: memory is out. */
bool mix_make(const struct routing *r, int64_t m, int64_t more, struct arena *arena,
              struct mix *out);

/* A mix as a launch. */
struct mix_launch {
    int64_t m;     /* rows of A */
    int64_t *rows; /* m: numbers of the mix, or the filler */
    struct routing routing;
};

/* Grouped types: rows expert by expert, in the order in which they stand; rows without expert
 * come last, or nowhere with grouped_masked, where all experts have room for one row more than the
 * longest and the room is left to `filler` rows (m is 0 if the mix is empty). `r` says which kind
 * of routing. False: memory is out. */
bool mix_to_launch(const struct routing *r, const struct mix *b, int64_t filler,
                   struct arena *arena, struct mix_launch *out);

/* ---- tiles and tensors ----------------------------------------------------------------------- */

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
