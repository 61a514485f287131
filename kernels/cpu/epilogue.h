/* epilogue.h - docs/semantics.md section 5: from the sums of one slice to numbers of format c. */
#ifndef KERNELS_CPU_EPILOGUE_H
#define KERNELS_CPU_EPILOGUE_H

#include "kernels/abi/humming.h"

struct epilogue {
    int32_t c_dtype;
    bool f16_accum;
    const float *power;       /* a power of two a column (fused int8 weights), or NULL */
    const float *input_scale; /* as, one a row of A, or NULL */
    const float *tensor;      /* t, or NULL */
    const float *channel;     /* s, one a column, or NULL */
    const float *bias;        /* one a column, or NULL */
};

/* `weights`: kernel form, without a dimension of experts (layout.h). */
struct epilogue epilogue_make(const struct hum_gemm_args *args, const struct hum_weights *weights);

/* Columns [col, col + count) of one row, whose row of A is `row`: x, numbers of the
 * accumulator, become h, numbers of c. */
void epilogue_row(const struct epilogue *e, int64_t row, int64_t col, int64_t count, bool with_bias,
                  float *x);

#endif
