#include "harness/kernel/check_info.h"

/* clang-format off */
const struct check_info check_infos[] = {
    {"exact", "codes", "E1 E2 W S O C X",
     "data with exact results, whatever the order: the only right code, but for signs of zeros and "
     "NaN payloads"},
    {"readout", "codes", "P",
     "one-hot activations: every dequantized weight bit for bit, at every position"},
    {"bound", "bounds", "R", "random data: inside the interval of the a-priori error bound"},
    {"ulp", "ulp", "none",
     "elementary functions and divisions: within so many ulp of the correctly rounded result"},
    {"model", "codes", "R",
     "random data, known order of summation: the bits that the model of the arithmetic predicts"},
    {"invariant", "codes", "R",
     "a row's bits do not depend on batch size, place, neighbours or padding; batch-invariant: nor "
     "on the tile"},
    {"deterministic", "codes", "R",
     "repeated launches, other data in between: the same bytes"},
    {"alias", "codes", "R E2",
     "outputs right beside other tensors give the same bytes; overlapping ones are refused"},
    {"guard", "codes", "E2",
     "two poisons compared: all outputs are written, nothing else is, nothing outside is read"},
    {"locks", "codes", "E2",
     "Stream-K locks are zero after each launch; too few or dirty ones are refused"},
    {"special", "codes", "X",
     "NaN, infinities, zeros, zero scales, one row and none: the only right code"},
    {"contract", "calls", "E1",
     "what must be refused is refused with a sentence, and nothing is written"},
    {"exhaustive", "codes", "P",
     "every weight code under every scale and zero point code (with scales: all); of an operation, "
     "every code or 16-bit input"},
    {"graph", "codes", "E2",
     "a recorded launch (CUDA graph), replayed with other inputs in place: the bits of a plain one"},
};
/* clang-format on */
const int check_info_count = sizeof check_infos / sizeof check_infos[0];
