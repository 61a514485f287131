/* oracle.h - docs/semantics.md for one output element, one scalar step after the other.
 *
 * Written from that page alone, in double and by searching the tables of all 16-bit numbers, so
 * that it shares neither code nor method with kernels/cpu. Slow on purpose.
 */
#ifndef KERNELS_TEST_ORACLE_H
#define KERNELS_TEST_ORACLE_H

#include "kernels/abi/humming.h"

/* The value of a code; `is_weight`: generic float, every code finite. */
double oracle_decode(int32_t dtype, uint32_t code, bool is_weight);

/* RN to f16, bf16 or f32 of value + rest, |rest| less than half an ulp of value. */
double oracle_round(int32_t dtype, double value, double rest);

/* RN(x y + z), one rounding, of numbers whose product is exact in double. */
double oracle_fma(int32_t dtype, double x, double y, double z);

/* Two c codes are the same number: all NaNs are equal, and so are +0 and -0. */
bool oracle_same(int32_t c_dtype, uint16_t x, uint16_t y);

struct oracle_problem {
    const struct hum_layer_config *layer;
    const struct hum_compute_config *compute;
    const struct hum_weights *standard;
    const struct hum_tensor *inputs, *input_scale;
    int64_t m;
    int64_t expert; /* 0 without experts */
};

/* The output of A row `row` in column `col`, in the order that `order` states, as a number of c. */
double oracle_element(const struct oracle_problem *p, const struct hum_accumulation *order,
                      int64_t row, int64_t col);

#endif
