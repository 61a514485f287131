/* fill.h - the inputs of a GEMM problem, made so that a correct kernel has only one right answer.
 *
 * Every code is a function of (seed, tensor, index): docs/fills.md derives the constructions and
 * lists what each is blind to. Row i of A does not depend on m, so a smaller m is a prefix.
 * Exactness is not claimed here: exact.h verifies it on the actual data.
 *
 *   E1  dense: activations {1,-2,3} and {-1,2,-3} in turn along k, all weight codes with
 *       alternating low bit, odd scale significands, random zero points: exact in f32 accumulators
 *       in any order
 *   E2  cancelling pairs inside chunks of 8 k: running sums stay small, so also exact in f16
 *       accumulators and 16-bit slices
 *   W   all terms of one sign, sums just below 2^24: accumulators narrower than f32, missing
 *       promotion; not with f16 accumulators
 *   S   subnormal scales (or, where f16 could not bring them back, subnormal activations), with
 *       bf16 outputs subnormal weights too
 *   P   read-out: one-hot activations, so that every output is one dequantized weight
 *   O   outer product: one live k, all pairs of codes
 *   C   conversion: row i sums the i-th number of the output format and a fraction of its last
 *       place, so that every rounding of the output, ties and overflow included, occurs; needs
 *       16-bit activations and scales, a weight of 1 and two groups
 *   X   E1 (E2 with f16 accumulators) with NaN, infinities, -0 and largest values in chosen places
 *   R   random: for bounds and predictions
 */
#ifndef REFERENCE_FILL_H
#define REFERENCE_FILL_H

#include "reference/gemm.h"

/* In the order of the axis' words. */
enum ref_fill {
    REF_FILL_E1,
    REF_FILL_E2,
    REF_FILL_W,
    REF_FILL_S,
    REF_FILL_P,
    REF_FILL_O,
    REF_FILL_C,
    REF_FILL_X,
    REF_FILL_R
};
enum ref_data { REF_DATA_NORMAL, REF_DATA_LOGNORMAL, REF_DATA_OUTLIERS, REF_DATA_POSITIVE };

struct ref_fill_spec {
    enum ref_fill kind;
    enum ref_data data; /* of R */
    bool all_scales;    /* scale and zero point codes in turn instead of the fill's */
    uint64_t seed;
};

/* The arrays of struct ref_gemm, writable. A NULL array is skipped. Owned by the caller. */
struct ref_inputs {
    uint16_t *a;
    uint8_t *b;
    float *input_scale;
    uint32_t *bs;
    uint16_t *zero;
    uint32_t *scale_2;
    uint16_t *bias;
};

/* Elements of each array; 0: the problem has none. */
struct ref_input_sizes {
    size_t a, b, input_scale, bs, zero, scale_2, bias;
};
struct ref_input_sizes ref_input_sizes(const struct ref_gemm *p);

/* Fill all arrays of `out`. The pointers in p are not read. NULL, or a sentence why this problem
 * has no such fill. */
const char *ref_fill(const struct ref_fill_spec *f, const struct ref_gemm *p,
                     const struct ref_inputs *out);

/* Is this weight scale code among those that all_scales takes in turn? NaN and infinity are not,
 * since they would hide their column; nor is an e8m0 code, in operands of 16 bits, under which some
 * weight would be infinite there. */
bool ref_fill_takes(const struct ref_gemm *p, uint32_t code);

/* Fill P: the live k of row i. Fill O: the live k of all rows. Fill C: the first of two; the other
 * is p->group further on. */
int64_t ref_fill_live_k(const struct ref_fill_spec *f, const struct ref_gemm *p, int64_t row);

#endif
