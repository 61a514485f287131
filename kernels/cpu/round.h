/* round.h - one-rounding arithmetic in f16 and bf16; numbers of these formats are held as f32.
 *
 * All is branch-free where compilers can make vectors of it. A 16-bit format is named by its id.
 */
#ifndef KERNELS_CPU_ROUND_H
#define KERNELS_CPU_ROUND_H

#include "kernels/abi/humming.h"

#include <string.h>

#define CPU_INLINE static inline __attribute__((always_inline))

CPU_INLINE uint32_t float_bits(float x)
{
    uint32_t u;

    memcpy(&u, &x, sizeof u);
    return u;
}

CPU_INLINE float bits_float(uint32_t u)
{
    float x;

    memcpy(&x, &u, sizeof x);
    return x;
}

CPU_INLINE uint64_t double_bits(double x)
{
    uint64_t u;

    memcpy(&u, &x, sizeof u);
    return u;
}

CPU_INLINE double bits_double(uint64_t u)
{
    double x;

    memcpy(&x, &u, sizeof x);
    return x;
}

/* RN_bf16(x): bf16 is the upper half of f32, so half an ulp (less one if the kept part is even) is
 * added to the lower half; a carry into the exponent is the right next binade, or infinity. */
CPU_INLINE float round_bf16(float x)
{
    uint32_t u = float_bits(x);
    uint32_t r = (u + 0x7fffu + (u >> 16 & 1u)) & 0xffff0000u;

    return bits_float((u & 0x7fffffffu) > 0x7f800000u ? 0x7fc00000u : r);
}

/* RN_f16(x). With 2^e <= |x| < 2^(e+1), e at least -14, the sum x + 1.5 2^(e+13) lies in a binade
 * whose ulp is 2^(e-10), that of f16; taking the constant away again is exact. From 2^16 on it is
 * infinity. e is limited to 16, where the sum is above 2^16 whatever its rounding. */
CPU_INLINE float round_f16(float x)
{
    uint32_t u = float_bits(x), e = u & 0x7f800000u;
    float magic, y;

    e = e < 113u << 23 ? 113u << 23 : e;
    e = e > 143u << 23 ? 143u << 23 : e;
    magic = bits_float((e + (13u << 23)) | 0x400000u);
    y = (x + magic) - magic;
    u &= 0x80000000u;
    e = float_bits(y) & 0x7fffffffu;
    e = e >= 0x47800000u && e < 0x7f800000u ? 0x7f800000u : e;
    return bits_float(e | u);
}

CPU_INLINE float round_16(int32_t dtype, float x)
{
    return dtype == HUM_F16 ? round_f16(x) : round_bf16(x);
}

/* RN of a double that carries at least two bits more than the format, the last of them sticky. */
CPU_INLINE float round_16_double(int32_t dtype, double x)
{
    const uint64_t mantissa = dtype == HUM_F16 ? 10 : 7;
    const uint64_t e_min = 1023 - (dtype == HUM_F16 ? 14 : 126);
    const double limit = dtype == HUM_F16 ? 0x1p16 : 0x1p128;
    uint64_t e = double_bits(x) >> 52 & 0x7ffu;
    double magic, y;

    e = e < e_min ? e_min : e;
    e = e > 1900 ? 1900 : e;
    magic = bits_double((e + 52 - mantissa) << 52 | UINT64_C(1) << 51);
    y = (x + magic) - magic;
    if (y >= limit)
        return bits_float(0x7f800000u);
    if (y <= -limit)
        return bits_float(0xff800000u);
    return bits_float(float_bits((float)y) | (uint32_t)(double_bits(x) >> 32 & 0x80000000u));
}

/* RN_c(x y + z) for numbers of format c, one rounding. The product is exact in double (at most 22
 * bits). The sum is rounded to odd: s = RN(p + z) and its exact error e (Knuth's two-sum); if there
 * is an error and s is even, the neighbour on the error's side is odd. 53 bits are more than twice
 * c's and two, so rounding that again to c is rounding once (Boldo and Melquiond, 2008). An
 * infinite or NaN s has no error that compares. */
CPU_INLINE float fma_16(int32_t c, float x, float y, float z)
{
    const double p = (double)x * (double)y, d = (double)z, s = p + d, t = s - p;
    const double e = (p - (s - t)) + (d - t);
    uint64_t u = double_bits(s);

    if ((e > 0.0 || e < 0.0) && !(u & 1u))
        u = (e > 0.0) == (s > 0.0) ? u + 1 : u - 1;
    return round_16_double(c, bits_double(u));
}

/* The same in f32 for f16 alone: the product has 22 bits and f32's range holds it. */
CPU_INLINE float fma_f16(float x, float y, float z)
{
    const float p = x * y, s = p + z, t = s - p;
    const float e = (p - (s - t)) + (z - t);
    const uint32_t u = float_bits(s);
    const uint32_t off = (uint32_t)((e > 0.0f) | (e < 0.0f)) & ~u & 1u;
    const uint32_t up = (uint32_t)((e > 0.0f) == (s > 0.0f));

    return round_f16(bits_float(u + off * (2u * up - 1u)));
}

/* The code of a number that format c holds. Every NaN has one code: processors differ in its
 * sign. */
CPU_INLINE uint16_t encode_16(int32_t c, float x)
{
    const uint32_t u = float_bits(x), magnitude = u & 0x7fffffffu, sign = u >> 16 & 0x8000u;

    if (magnitude > 0x7f800000u)
        return c == HUM_BF16 ? 0x7fc0 : 0x7e00;
    if (c == HUM_BF16)
        return (uint16_t)(u >> 16);
    if (magnitude == 0x7f800000u)
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude < 113u << 23)
        return (uint16_t)(sign | (uint32_t)(bits_float(magnitude) * 0x1p24f));
    return (uint16_t)(sign | (magnitude - (112u << 23)) >> 13);
}

/* f16: the bits moved into place are the value times 2^-112, also for subnormals; the top exponent
 * is infinity or NaN. */
CPU_INLINE float decode_16(int32_t c, uint16_t code)
{
    const uint32_t sign = (uint32_t)(code & 0x8000u) << 16, u = (uint32_t)(code & 0x7fffu) << 13;

    if (c == HUM_BF16)
        return bits_float((uint32_t)code << 16);
    if (u >= 0x0f800000u)
        return bits_float(sign | 0x7f800000u | (u & 0x7fffffu));
    return bits_float(float_bits(bits_float(u) * 0x1p112f) | sign);
}

#endif
