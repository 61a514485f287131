/* quant_data.h - values for quant_weight that show what rounding, scales and groups do.
 *
 * Every group is of one kind: random values; numbers that the target holds exactly; ties; near
 * ties; an extreme at the border of the group; one side of zero only; zeros, subnormals or the
 * largest values. Where a kind needs it, the extremes are such that the scale is a power of two and
 * no code is rounded twice. Magnitudes and places differ from group to group. A function of (seed,
 * tensor, index). */
#ifndef HARNESS_KERNEL_QUANT_DATA_H
#define HARNESS_KERNEL_QUANT_DATA_H

#include "harness/core/arena.h"
#include "reference/quantize.h"

enum quant_special { QUANT_USUAL, QUANT_SPECIAL, QUANT_EXHAUSTIVE };

struct quant_data {
    const struct dtype *input;  /* f16, bf16 or f32 */
    enum quant_special special; /* special: NaN, infinities, -0; exhaustive: code i is input i */
    uint64_t seed;
};

/* Fills values (rows x cols of q, whose other fields are set) and the same as codes of the input's
 * format, 16 or 32 bits each. */
void quant_data_fill(const struct quant_data *d, const struct ref_quant *q, float *values,
                     void *codes);

/* Elements whose quotient lies exactly between two codes, as far as the stored scale tells the
 * quotient. scale: as ref_quant_weight made it. */
int64_t quant_data_ties(const struct ref_quant *q, const uint32_t *scale);

/* Can data have ties that the stored scale shows? */
bool quant_data_can_tie(const struct ref_quant *q, const struct dtype *input);

#endif
