/* order.h - who sums what: tiles, and their slices by the Stream-K rule of docs/semantics.md
 * section 6.
 *
 * Tiles are numbered with m fastest, inside a segment of rows (routing.h). Shared tiles are the
 * last ones; their K blocks, numbered through, are dealt out in runs. Slices of a tile count
 * backwards: 0 holds the last K block.
 */
#ifndef KERNELS_CPU_ORDER_H
#define KERNELS_CPU_ORDER_H

#include "kernels/abi/humming.h"

struct order {
    int64_t tiles;
    int64_t whole;  /* tiles before the shared ones */
    int64_t run;    /* K blocks of one worker; 0: nothing is shared */
    int64_t blocks; /* K blocks of a tile */
};

/* `layer` and `tuning` are checked; row_tiles of all segments, at least 0. */
struct order order_make(const struct hum_layer_config *layer,
                        const struct hum_tuning_config *tuning, int64_t row_tiles);

/* The slice that holds K block `block` of a tile, and how many there are. */
int64_t order_slice(const struct order *o, int64_t tile, int64_t block);
int64_t order_slices(const struct order *o, int64_t tile);

/* Most slices of any tile. */
int64_t order_most_slices(const struct order *o);

#endif
