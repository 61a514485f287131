#include "harness/faults/catalogue.h"

#include <stddef.h>

/* clang-format off */
const struct fault faults_ops[] = {
    {"pack-signed-wraps", FAULT_KERNEL, "layout", "ours", NULL, NULL, false,
     "packing keeps the sign bits of a negative code"},
};
/* clang-format on */

const int faults_ops_count = sizeof faults_ops / sizeof faults_ops[0];
