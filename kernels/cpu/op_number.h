/* op_number.h - rows of numbers, and rounding to integers and to small floats. */
#ifndef KERNELS_CPU_OP_NUMBER_H
#define KERNELS_CPU_OP_NUMBER_H

#include "kernels/cpu/round.h"

/* n numbers of HUM_F16, HUM_BF16 or HUM_F32 to f32, exactly; and back, RN. */
void op_load(int32_t dtype, const void *from, int64_t n, float *to);
void op_store(int32_t dtype, const float *from, int64_t n, void *to);

/* Element i of a tensor of HUM_INT32 or HUM_INT64. */
int64_t op_index(const struct hum_tensor *t, int64_t i);

/* How to round to a signed float of at most 8 bits. Codes of magnitudes ascend with them. Below
 * `normal`, the smallest normal number 2^(1 - bias), the numbers are multiples of the step 2^(1 -
 * bias - M): adding `magic`, whose ulp is that step, rounds to one and leaves its number in the low
 * bits. From `normal` on, the code is the upper part of the f32's bits, the exponent rebiased.
 * Without exponent bits all numbers are multiples of the step 1. */
struct op_format {
    uint32_t normal; /* bits of f32; infinity's without exponent bits */
    float magic;     /* 2^23 steps */
    float half_step;
    int shift;          /* 23 - M */
    uint32_t first;     /* code of `normal` */
    uint32_t sign;      /* bit of codes */
    uint32_t top;       /* code of the largest number */
    float top_value;    /* that number */
    uint32_t code_mask; /* 2^N - 1 */
};

/* `ieee`: e4m3, e5m2 and e3m4 as activations, whose top codes (all ones; e5m2: the top exponent)
 * are no numbers. */
struct op_format op_format(int32_t dtype, bool ieee);

/* The code of the magnitude nearest to |y|, unbounded; ties to the even code, or to the one nearer
 * zero. Infinity has a code beyond `top`. NaN too. */
CPU_INLINE uint32_t op_magnitude(const struct op_format *f, float y, bool ties_to_zero)
{
    const uint32_t u = float_bits(y) & 0x7fffffffu;
    const float x = bits_float(u), sum = x + f->magic, back = sum - f->magic;
    const uint32_t tie = (uint32_t)ties_to_zero & (uint32_t)(back - x == f->half_step);
    const uint32_t small = float_bits(sum) - float_bits(f->magic) - tie;
    const uint32_t odd = ties_to_zero ? 0u : u >> f->shift & 1u;
    const uint32_t half = (1u << (f->shift - 1)) - 1u;
    const uint32_t large = ((u - f->normal + half + odd) >> f->shift) + f->first;

    return u < f->normal ? small : large;
}

/* RN saturating, sign kept. The caller deals with NaN. */
CPU_INLINE uint32_t op_encode(const struct op_format *f, float y, bool ties_to_zero)
{
    const uint32_t c = op_magnitude(f, y, ties_to_zero);

    return (c > f->top ? f->top : c) | (float_bits(y) >> 31 ? f->sign : 0u);
}

/* RN to an integer: from 2^23 on every f32 is one. */
CPU_INLINE float op_round_even(float x)
{
    const float magic = bits_float((float_bits(x) & 0x80000000u) | 0x4b000000u);
    const float y = (x + magic) - magic;

    return bits_float(float_bits(x) & 0x7fffffffu) < 0x1p23f ? y : x;
}

/* The low bits of the integer nearest to x, two's complement. From 2^31 on they are 0; infinity and
 * NaN count as 0. */
CPU_INLINE uint32_t op_low_bits(float x, uint32_t mask)
{
    const float y = op_round_even(x), size = bits_float(float_bits(y) & 0x7fffffffu);

    return (uint32_t)(int32_t)(size < 0x1p31f ? y : 0.0f) & mask;
}

/* The integer nearest to x, limited to [low, high]; NaN counts as 0. */
CPU_INLINE int32_t op_clamp_round(float x, float low, float high)
{
    float y = x == x ? x : 0.0f;

    y = y < low ? low : y;
    y = y > high ? high : y;
    return (int32_t)op_round_even(y);
}

/* A positive number rounded up to a power of two; its exponent field is the e8m0 code. NaN stays
 * NaN. */
CPU_INLINE float op_power_of_two_up(float x)
{
    return x == x ? bits_float((float_bits(x) + 0x7fffffu) & 0x7f800000u) : x;
}

#endif
