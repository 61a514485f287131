/* order.h - asks a provider how it sums, and hands the answer to the oracle after checking it. */
#ifndef HARNESS_KERNEL_ORDER_H
#define HARNESS_KERNEL_ORDER_H

#include "kernels/abi/humming.h"
#include "reference/accum.h"

/* One launch: provider, configuration and size. All borrowed. */
struct launch {
    const struct hum_provider *provider;
    void *handle;
    const struct hum_layer_config *layer;
    const struct hum_compute_config *compute;
    const struct hum_tuning_config *tuning;
    int64_t m;
};

struct order {
    struct ref_accum accum;
    int64_t row_begin, row_end, col_begin, col_end; /* where it holds */
};

/* NULL, or why the order of output (row, col) is not known: `reason` (HUM_REASON_BYTES) may hold the text. */
const char *order_of(const struct launch *l, int64_t row, int64_t col, struct order *out,
                     char *reason);

#endif
