#include "harness/faults/catalogue.h"

#include <stddef.h>

/* clang-format off */
const struct fault faults_oracle[] = {
    {"compare-nan-passes", FAULT_ORACLE, "comparator", "numerics 90", NULL, "test_checks", false,
     "a NaN among the outputs counts as equal"},
};
/* clang-format on */

const int faults_oracle_count = sizeof faults_oracle / sizeof faults_oracle[0];
