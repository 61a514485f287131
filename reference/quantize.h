/* quantize.h - weights to codes and scales, and float codes back to numbers, one f32 operation
 * after the other.
 *
 * The oracle of `quant_weight` and `dequant_weight` (docs/semantics-ops.md sections 2 and 3, the
 * source of every formula and constant here). Each arithmetic step is IEEE binary32 with one
 * rounding; so there is one right answer, bit for bit, except where the document leaves a code
 * open: those are REF_CODE_ANY. All arrays are row-major, borrowed, and do not overlap. */
#ifndef REFERENCE_QUANTIZE_H
#define REFERENCE_QUANTIZE_H

#include "reference/dtype.h"

#include <math.h>

/* In an array of expected codes: every code is right here. (No format has this as a canonical
 * code, and no small negative integer: as f32 it is one of many NaN.) */
#define REF_CODE_ANY 0xffedcba9u

/* May a kernel write `got` where `want` is expected? Any NaN equals any NaN; -0 and +0 differ. */
static inline bool ref_code_holds(const struct dtype *t, uint32_t got, uint32_t want)
{
    if (want == REF_CODE_ANY)
        return true;
    if (isnan(dtype_decode(t, want)))
        return isnan(dtype_decode(t, got));
    return got == want;
}

/* Two generations of upstream: how a scale follows from the extremes, and what lies beyond the
 * largest code. */
enum ref_quant_rule { REF_QUANT_RULE_2026_05, REF_QUANT_RULE_2026_08 };

struct ref_quant {
    const struct dtype *target; /* intN, uintN (N <= 8), or a weight row: every code finite */
    int64_t rows, cols;
    int64_t group; /* along cols; a multiple of 8 that divides cols; 0: cols */
    bool has_scale, use_e8m0_scale, has_zero_point, is_fp_zero_point, allow_negative_scale;
    enum ref_quant_rule rule;

    /* Rules of a provider (docs/semantics-rules.md), each in the place of one formula. */
    bool zero_on_minimum; /* codes count from the value of the zero point, not to it */
    bool sides_by_size;   /* D1 divides the larger extreme, whatever its sign */
    bool scaled_quotient; /* quotients to float codes pass f32's subnormal numbers */
    bool twos_complement; /* codes of signed integers without zero point, as 32 bits */

    const float *inputs; /* rows x cols; f16 and bf16 are widened, exactly (codec16.h) */
};

static inline int64_t ref_quant_groups(const struct ref_quant *q)
{
    return q->group ? q->cols / q->group : 1;
}

/* NULL, or what is wrong with everything but the inputs. */
const char *ref_quant_valid(const struct ref_quant *q);

/* q is valid.
 *   codes       rows x cols, offset binary for integers. REF_CODE_ANY where an infinity among the
 *               inputs or a NaN leaves no number to encode, or where rule 2026_05 would wrap a
 *               number of 2^31 or more
 *   scale       rows x groups: f32 patterns, or e8m0 codes; NULL without has_scale
 *   zero_point  rows x groups; NaN where infinite inputs leave an integer zero point open; NULL
 *               without has_zero_point */
void ref_quant_weight(const struct ref_quant *q, uint32_t *codes, uint32_t *scale,
                      float *zero_point);

/* True when some finite input makes a code wrap modulo 2^bits: only by rule 2026_05, without zero
 * point, and then
 *   without scale   every target: the values are not fitted to it
 *   with scale      floats whose largest value is so large that the scale of a small group leaves
 *                   the range of 1 / scale (6 exponent bits and more); integers never: |v /
 *                   scale| <= M + 1.499 rounds into the codes */
bool ref_quant_can_wrap(const struct ref_quant *q);

/* Codes of the weight row t (1 to 8 bits; bits above ignored) to f32, all exact; -0 keeps its
 * sign. */
void ref_dequant_weight(const struct dtype *t, const uint32_t *codes, int64_t n, float *out);

/* The smallest power of two that is not below x, for 0 < x <= 2^127; x below 2^-126 gives 2^-126.
 * As an operation on bits, (bits + 0x7FFFFF) & 0x7F800000, it also takes 0 to 0 and infinity (and
 * x > 2^127) to infinity. */
float ref_e8m0_round_up(float x);

/* The exponent field of x: the e8m0 code of a power of two. */
uint32_t ref_e8m0_code(float x);

#endif
