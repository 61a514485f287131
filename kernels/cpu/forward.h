/* forward.h - one product: columns in blocks, k in steps, chains as `accumulation` states them. */
#ifndef KERNELS_CPU_FORWARD_H
#define KERNELS_CPU_FORWARD_H

#include "kernels/cpu/vector.h"

/* What `open` returns. Work memory is kept from one product to the next. */
struct cpu {
    int threads;
    const struct vector_ops *ops;
    void *memory;
    size_t memory_bytes;
};

/* `args` are checked. HUM_NO_MEMORY, with nothing written, is the only failure. */
enum hum_code forward_run(struct cpu *cpu, const struct hum_gemm_args *args,
                          char reason[HUM_REASON_BYTES]);

#endif
