/* order.h - asks a provider how it sums, and hands the answer to the oracle after checking it. */
#ifndef HARNESS_KERNEL_ORDER_H
#define HARNESS_KERNEL_ORDER_H

#include "harness/kernel/routing.h"
#include "reference/accum.h"

/* One launch: provider, configuration and size. All borrowed. */
struct launch {
    const struct hum_provider *provider;
    void *handle;
    const struct hum_layer_config *layer;
    const struct hum_compute_config *compute;
    const struct hum_tuning_config *tuning;
    int64_t m;
    const struct routing_tensors *routing; /* with experts, else NULL */
};

struct order {
    struct ref_accum accum;
    int64_t row_begin, row_end, col_begin, col_end; /* where it holds */
};

/* Row and col count in the output. With experts the provider is asked about a dense product of
 * as many tiles (semantics.md section 10), or about the row tile if tiles_n_fastest; the answer
 * holds for neighbouring rows of one row tile. NULL, or why the order of output (row, col) is not
 * known: `reason` (HUM_REASON_BYTES) may hold the text. */
const char *order_of(const struct launch *l, int64_t row, int64_t col, struct order *out,
                     char *reason);

/* The statement itself, unjudged but for covering the output. False: there is none. */
bool order_stated(const struct launch *l, int64_t row, int64_t col, struct hum_accumulation *out);

/* "mma", "wgmma", "umma": the instruction by which row `row` is summed, as the provider states; ""
 * without a statement, or without tensor cores. */
const char *order_instruction(const struct launch *l, int64_t row);

/* Is output (row_a, col) of launch a summed in the same order as output (row_b, col) of launch
 * b, so that the same inputs must give the same bits? The provider's word is taken; without it,
 * only for the same place of the same launch, with experts for the tile of the same number of
 * equally many. The answer holds for columns [col, *col_end). */
bool order_same(const struct launch *a, int64_t row_a, const struct launch *b, int64_t row_b,
                int64_t col, int64_t *col_end);

#endif
