/* op_check.h - what the operations ask of their arguments before anything is written. */
#ifndef KERNELS_CPU_OP_CHECK_H
#define KERNELS_CPU_OP_CHECK_H

#include "kernels/abi/humming.h"

/* A rule of the contract, already evaluated. */
struct op_rule {
    bool broken;
    const char *sentence;
};

/* HUM_OK, or HUM_INVALID with the sentence of the first broken rule. */
enum hum_code op_check_rules(const struct op_rule *rules, size_t count,
                             char reason[HUM_REASON_BYTES]);

/* Has the tensor `rank` sizes, each from 0 to 2^31, and at most 2^40 elements? Shapes that passed
 * may be multiplied with each other's formats without overflow. */
bool op_shape_is_sane(const struct hum_tensor *t, int32_t rank);

/* Every field of a dense tensor but its data; sizes beyond the rank are not used. */
struct hum_tensor op_want(int32_t dtype, int32_t rank, int64_t size0, int64_t size1, int64_t size2);

struct op_tensor {
    const char *name;
    const struct hum_tensor *got;
    struct hum_tensor want; /* rank 0: must be absent */
    bool is_output;
};

/* HUM_OK if each tensor is as wanted and no output overlaps another tensor. */
enum hum_code op_check_tensors(const struct op_tensor *all, size_t count,
                               char reason[HUM_REASON_BYTES]);

/* HUM_F16, HUM_BF16 or HUM_F32? */
bool op_is_real(int32_t dtype);

#endif
