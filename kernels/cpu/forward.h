/* forward.h - one product: columns in blocks, k in steps, chains as `accumulation` states them. */
#ifndef KERNELS_CPU_FORWARD_H
#define KERNELS_CPU_FORWARD_H

#include "kernels/cpu/vector.h"

/* Memory that is kept from one product to the next. */
struct buffer {
    void *data;
    size_t bytes;
};

/* What `open` returns. */
struct cpu {
    int threads;
    const struct vector_ops *ops;
    struct buffer routing, work;
};

/* `args` are checked as far as tensors_check_args does. HUM_INVALID for values of routing tensors
 * and locks, and HUM_NO_MEMORY, come with nothing written. */
enum hum_code forward_run(struct cpu *cpu, const struct hum_gemm_args *args,
                          char reason[HUM_REASON_BYTES]);

#endif
