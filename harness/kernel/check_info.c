#include "harness/kernel/check_info.h"

/* clang-format off */
const struct check_info check_infos[] = {
    {"exact", "codes", "E1 E2 W S O C X",
     "sums that are exact in any order: the same code, but for signs of zeros and NaN payloads"},
    {"readout", "codes", "P",
     "one-hot activations: every dequantized weight bit for bit, at every position"},
    {"bound", "bounds", "R", "random data: inside the interval of the a-priori error bound"},
    {"ulp", "ulp", "none of a GEMM",
     "elementary functions and divisions: within so many ulp of the correctly rounded result"},
    {"model", "codes", "R",
     "random data, known order of summation: the bits that the model of the arithmetic predicts"},
};
/* clang-format on */
const int check_info_count = sizeof check_infos / sizeof check_infos[0];
