/* bound.h - the interval in which every correct kernel's output lies, for one column of outputs on
 * any data.
 *
 * Let x be the exact result of a chain and R = max P - min P the range of its prefix sums P_0 = 0,
 * P_1, ... in the order of the kernel, so that R is at least every contiguous partial sum and every
 * |product|. A step of the kernel's arithmetic that adds a block of products errs by at most d R',
 * R' being R plus the error so far, so after a chain of steps
 *
 *     |kernel - x| <= ((1 + d_1) (1 + d_2) ... - 1) R
 *
 *     tensor core, block b, T fraction bits   d = (u + b 2^-T) / (1 - u) a block, u = 2^(1 -
 *                                             significant), or 2^-11 (f16)
 *     emulated FP8 (tensor_core.h)            the product of two such f16 blocks and one IEEE
 *                                             addition for 32 k; R in their order
 *     IEEE                                    d = 2^-24 a k; with f16 accumulation also 2^-11 for
 *                                             each instruction_k
 *     int8, int4                              exact
 *
 * (at most b of the b + 1 terms lose bits, each less than 2^(E - T), and 2^E <= R unless subnormal
 * operands raise E: for those R is replaced by what e_min allows; a weight of an 8-bit kernel may
 * be stored with a power of two taken out, so its e_min is put at 2^(mantissa bits) times the
 * smallest weight). Operands have at most 11 significant bits, so products are exact in f32;
 * underflow costs 2^-149 a step. The additions that follow (flush, K-warps: u times the sum, one by
 * one) are carried along with their own error; so is the error of this computation in double, k
 * 2^-53 R. The interval [x - B, x + B] is then pushed through the epilogue at both ends, every
 * operation of it being monotone, and through the additions of slices: in order; else over all
 * orders (up to 8 slices); else by (S - 1) u sum |slice|.
 *
 * Without an order (s NULL) R is replaced by A = sum |products|, and d is the worst of the units
 * that tensor_core.h knows and of IEEE: any order, any flush interval, one slice.
 *
 * Sources: Blanchard, Higham, Lopez, Mary, Pranesh, Mixed precision block fused multiply-add, SISC
 * 42(3), 2020 (block steps); Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., 3.1
 * and 4.2 (recursive sums).
 */
#ifndef REFERENCE_BOUND_H
#define REFERENCE_BOUND_H

#include "reference/accum.h"
#include "reference/fault.h"
#include "reference/gemm.h"

#include <math.h>

/* All arrays are borrowed. */
struct ref_bound {
    const struct ref_gemm *p;
    const struct ref_accum *s; /* valid (ref_accum_valid); NULL: any order */
    const float *a;            /* m x k, of ref_operand_a */
    const int64_t *rows;       /* the rows looked at; NULL: 0, 1, ... */
    int64_t row_count;
    const int32_t *s_int; /* with p->int_scale: both from ref_int_scales; else unused */
    float int_factor;
};

/* lo[i] <= hi[i] and exact[i] for row rows[i] of column col; w_col: the k operand values of the
 * column (ref_operand_w). All three are numbers of format c; exact is what the epilogue makes of
 * exact chains, slices added in order.
 *   lo = hi = NaN       exact is NaN: every correct kernel gives NaN
 *   lo = -inf, hi = inf nothing can be required, NaN included: an accumulator may overflow, the
 *   interval ends at
 *                       infinity times 0, or block_k / warp_k is over 32 (no thread block has more
 *                       warps)
 *   hi = inf (lo = -inf) alone: the interval reaches beyond the largest finite number */
void ref_bound_column(const struct ref_bound *b, int64_t col, const float *w_col, double *lo,
                      double *hi, double *exact);

/* May a correct kernel return y? */
static inline bool ref_bound_holds(double lo, double hi, double y)
{
    if (REF_FAULT(BOUND_NAN_PASSES))
        return !(y < lo || y > hi);
    if (isnan(lo))
        return isnan(y);
    if (lo == -HUGE_VAL && hi == HUGE_VAL)
        return true;
    return lo <= y && y <= hi;
}

#endif
