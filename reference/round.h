/* round.h - single operations with one rounding into f32, f16 or bf16.
 *
 * Everything rests on two facts: a product of two f32 (hence of two f16 or bf16) numbers is
 * exact in double, barring underflow below 2^-1074, which f32 operands cannot reach; and
 * rounding to odd in double (53 bits) followed by rounding to nearest in p <= 51 bits is one
 * correct rounding (source: Boldo and Melquiond, Emulation of FMA and correctly rounded sums:
 * proved algorithms using rounding to odd, IEEE Trans. Comp. 57(4), 2008).
 */
#ifndef REFERENCE_ROUND_H
#define REFERENCE_ROUND_H

#include "reference/dtype.h"

#include <math.h>
#include <string.h>

/* The sum of two doubles, rounded to odd: truncated, last bit set if anything was lost. */
static inline double round_odd_sum(double a, double b)
{
    double s = a + b;
    double bb = s - a;
    double lost = (a - (s - bb)) + (b - bb); /* Knuth's TwoSum: a + b = s + lost exactly */
    uint64_t bits;

    if (!isfinite(s) || lost == 0.0)
        return s;
    memcpy(&bits, &s, sizeof bits);
    if (!(bits & 1u)) /* step toward the side on which the lost part lies */
        bits += (lost > 0.0) == (s > 0.0) ? 1u : -(uint64_t)1u;
    memcpy(&s, &bits, sizeof s);
    return s;
}

/* x rounded to t (f32, f16, bf16; ties to even, overflow to infinity), as a value. */
static inline double round_to(const struct dtype *t, double x)
{
    return dtype_decode(t, dtype_encode(t, x, DTYPE_TO_TOP));
}

/* RN_t(a*b + c) with one rounding; a, b, c are f32, f16 or bf16 numbers. */
static inline double round_fma(const struct dtype *t, double a, double b, double c)
{
    return round_to(t, round_odd_sum(a * b, c));
}

#endif
