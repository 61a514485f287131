#include "harness/faults/catalogue.h"

#include <stddef.h>

/* clang-format off */
const struct fault faults_gemm[] = {
    {"group-index-minus-1", FAULT_KERNEL, "scale", "numerics 8", "group-index-minus-1", NULL, false,
     "every group but the first uses the scale of the group before it"},
};
/* clang-format on */

const int faults_gemm_count = sizeof faults_gemm / sizeof faults_gemm[0];
