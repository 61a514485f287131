/* tensor_core.h - what a tensor core adds up, bit for bit: a table of units, and a chain on one of
 * them.
 *
 * A unit adds `block` exact products and the accumulator c at once. Write x = s 2^e with |s| in
 * [1,2), or e = e_min of the format of x and |s| < 1 for a subnormal x: significands of products
 * lie in [0,4) and are not normalized.
 *   1. E = the largest exponent e_a + e_b of a product that is not zero, or e_c if c is not zero;
 *      at least `least_e`.
 *   2. Each term becomes the integer trunc(s 2^(fraction + e - E)), toward zero. c too: a c with
 *      more bits is chopped.
 *   3. The integers are added exactly, so the order within a block does not matter.
 *   4. The sum is truncated to `significant` bits (accumulator f32), or rounded to f16 to nearest,
 *      ties to even. Subnormal results are kept; overflow gives infinity.
 * A longer chain is one block after the other, c being the result of the block before.
 *
 * Special values: a NaN, infinity times 0, and infinities of both signs give the canonical NaN
 * (sign 0, all bits one); infinities of one sign give that infinity. A sum of zero is +0, whatever
 * the signs of its terms (kernels/cuda/probe_zeros.cu, on sm_90).
 *
 * Sources: Fasi, Higham, Mikaitis, Pranesh, Numerical behavior of NVIDIA tensor cores, PeerJ CS
 * 7:e330, 2021; Khattak and Mikaitis, arXiv 2512.07004; MMA-Sim, arXiv 2511.10909. test_dumps
 * compares the table with what hardware returned.
 */
#ifndef REFERENCE_TENSOR_CORE_H
#define REFERENCE_TENSOR_CORE_H

#include "reference/dtype.h"

enum tc_instruction { TC_MMA, TC_WGMMA, TC_TCGEN05 };

enum tc_status {
    TC_CERTAIN,   /* equal to hardware, output by output: published recordings or our probe */
    TC_PUBLISHED, /* stated by a published model; no recording at hand */
    TC_UNVERIFIED /* a parameter that neither recordings nor two publications settle */
};

enum { TC_MAX_BLOCK = 32, TC_MAX_FORMATS = 3 };

struct tc_row {
    int sm; /* compute capability x 10 */
    enum tc_instruction instruction;
    const char *formats[TC_MAX_FORMATS]; /* names of dtypes of both operands; NULL: no more */
    int block;                           /* products that are added at once, at most TC_MAX_BLOCK */
    int fraction;                        /* T: bits that alignment keeps below 2^E */
    int significant;                     /* bits of an f32 result, truncated; 0: round to f16 */
    int least_e;                         /* E is at least this; TC_NO_LEAST_E: no bound is known */
    bool f16_accum;
    bool emulated; /* f16 instructions and one IEEE addition stand for an FP8 instruction: tc_run */
    enum tc_status status;
    const char *source;
};

enum { TC_NO_LEAST_E = -1000 }; /* below every sum of two exponents */

extern const struct tc_row tc_rows[];
extern const int tc_row_count;

/* The row of that unit for operands of `format`; NULL: no model. */
const struct tc_row *tc_find(int sm, enum tc_instruction instruction, const struct dtype *format,
                             bool f16_accum);

/* "mma.sync", "wgmma", "tcgen05"; "certain", "published", "unverified". */
const char *tc_instruction_name(enum tc_instruction instruction);
const char *tc_status_name(enum tc_status status);

/* The accumulator after a chain of k products that starts from c; k may be any number from 0,
 * and operands that an instruction reads beyond k are taken as 0, which changes nothing.
 *
 *   a, b   k values, numbers of the formats ta, tb (at most 11 significant bits), which give the
 *          exponents of subnormals; both formats are among row->formats
 *   c      a number of the accumulator's format (f32, or f16 with row->f16_accum), as is the
 *          result
 *
 * Emulated rows: per instruction of 32 values of k, with P = {k : bit 1 of k is 0} and Q the
 * others, h = f16 unit(Q, f16 unit(P, 0)), then RN(h + c) in the accumulator's format. Source:
 * NVIDIA in CUTLASS issue 1986 (that it is emulated); the split from recordings of H100, H200
 * and B200. */
double tc_run(const struct tc_row *row, const struct dtype *ta, const float *a,
              const struct dtype *tb, const float *b, int64_t k, double c);

#endif
