/* vector.h - the inner loops, compiled for several instruction sets with the same bits.
 *
 * A panel is PANEL columns of n. Dequantized weights of a step of k are (panels, STEP_K, PANEL)
 * f32, of which the first k_count values of k are in use. A tile of accumulators is (rows, stride)
 * f32. Weights and accumulators are aligned to 64 bytes.
 */
#ifndef KERNELS_CPU_VECTOR_H
#define KERNELS_CPU_VECTOR_H

#include "kernels/abi/humming.h"

enum { PANEL = 16, STEP_K = 256 };

/* w = RN(RN(lut[code] - zero) x scale) for k_count rows of PANEL codes with common zero points and
 * scales. Both roundings are to `round` (HUM_F16 or HUM_BF16; HUM_NONE: the f32 result is exact).
 * Each f32 operation is exact or followed by a rounding that it cannot disturb:
 *   - lut - zero: integers; or q - zp with zp of 16 bits. If |zp| is at least 2^-13 times q's
 *     leading bit, the difference fits 24 bits; below, it is far from any tie of a 16-bit format.
 *   - v x s: at most 22 bits, within f32's range for f16; for bf16 16 bits, inexact only below
 *     2^-134, where the result is 0 either way. */
struct dequantize {
    const uint8_t *codes; /* (k_count, PANEL) */
    const float *lut;     /* 256 */
    const float *zero;    /* PANEL, or NULL */
    const float *scale;   /* PANEL, or NULL */
    int32_t round;
    bool zero_rounds;
    int64_t k_count;
    float *out; /* (k_count, PANEL) */
};

/* c[row][col] = RN_f32(c + RN_f32(a[row][k] x w[k][col])) for k ascending; with round_k > 0 c is
 * rounded RN_f16 after every round_k values of k and after the last. */
struct multiply {
    const float *a; /* (rows, a_stride) */
    const float *w; /* (panels, STEP_K, PANEL) */
    float *c;       /* (rows, c_stride) */
    int64_t a_stride, c_stride, rows, panels, k_count, round_k;
};

/* c1 = RN(f x c0 + c1), one rounding, then c0 = 0; f = RN(row x col), or the one that is there.
 * flush_f16 rounds row and col to f16 first. */
struct flush {
    float *c0, *c1;   /* (rows, stride) */
    const float *row; /* a factor a row, or NULL */
    const float *col; /* `columns` factors, or NULL */
    int64_t rows, columns, stride;
};

struct vector_ops {
    const char *name;
    void (*dequantize)(const struct dequantize *d);
    void (*multiply)(const struct multiply *t);
    void (*flush_f32)(const struct flush *f);
    void (*flush_f16)(const struct flush *f);
};

/* Instruction sets that this processor has, the best last. */
const struct vector_ops *vector_ops_get(int index); /* NULL: no such index */

#endif
