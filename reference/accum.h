/* accum.h - in which order and arithmetic a kernel sums one output (semantics.md section 4), as
 * plain data.
 *
 * `bound` and `model` are computed from it. It is filled from what a provider states about itself;
 * the oracle trusts none of
 * its ranges (ref_accum_valid).
 */
#ifndef REFERENCE_ACCUM_H
#define REFERENCE_ACCUM_H

#include <stdbool.h>
#include <stdint.h>

struct tc_row; /* tensor_core.h */

enum { REF_MAX_SLICES = 64, REF_MAX_SHIFT = 32 };

struct ref_accum {
    const struct tc_row *tensor_core; /* NULL: IEEE operations, one k at a time */
    int32_t instruction_k;            /* f16 accumulators are rounded after each run of so many k */
    int64_t block_k, warp_k;
    int64_t flush_k; /* Q; 0: no flush */
    int32_t slices;  /* at least 1 */
    bool ordered;    /* slices are added in the order 0, 1, 2, ... */
    struct {
        int64_t k_begin, k_end; /* padded k; operands beyond the valid k are 0 */
    } slice[REF_MAX_SLICES];

    /* K-warps one after the other, ((w0 + w1) + w2) + w3; else by halves. */
    bool warps_in_order;

    /* Powers of two that are put back on the way (semantics.md section 11). The instruction is fed
     * w 2^-operand_shift, a number of format a; a flush multiplies by 2^flush_shift; the epilogue
     * rounds to c what is 2^-output_shift of the result, and then puts that back (with f16
     * accumulation before the bias; at once where a tensor scale takes it). What remains is put
     * back behind the chain, exactly. It shows where w becomes subnormal (its exponent is then
     * e_min: tensor_core.h), and where f16 accumulators or the first rounding do. */
    int32_t operand_shift, flush_shift, output_shift;
};

/* NULL, or what is wrong: slices must tile [0, k_padded), descending, on block_k borders; warp_k
 * divides block_k, the quotient is a power of two; flush_k divides or is divided by warp_k,
 * instruction_k divides both; shifts are 0 to REF_MAX_SHIFT, and operand_shift is at least the
 * other two. */
const char *ref_accum_valid(const struct ref_accum *s, int64_t k_padded);

#endif
