/* format.h - the numbers that codes stand for, decoded from the fields of a format's id. */
#ifndef KERNELS_CPU_FORMAT_H
#define KERNELS_CPU_FORMAT_H

#include "kernels/abi/humming.h"

/* A weight's codes are all finite. Elsewhere (activations, scales, zero points, bias) the top code
 * of an 8-bit format is NaN, and with at least 5 exponent bits and a sign the top exponent is
 * infinity and NaN (OCP 8-bit specification, IEEE 754); 4-bit formats are finite. */
enum format_role { FORMAT_WEIGHT, FORMAT_NUMBER };

/* Is the id one of the grammar: an integer of 1 to 32 bits, or a float whose fields fill its
 * bits? */
bool format_is_known(int32_t dtype);

/* 2^(E-1) - 1 */
int format_bias(int32_t dtype);

/* The value of a code of at most 16 bits, exact in f32. Floats without exponent bits are sign and
 * magnitude; unsigned floats without mantissa (e8m0) are 2^(code - bias), also for code 0. Integers
 * are two's complement if signed. */
float format_decode(int32_t dtype, uint32_t code, enum format_role role);

/* Bytes of `count` elements of a format of 8, 16, 32 or 64 bits. */
size_t format_bytes(int32_t dtype, int64_t count);

#endif
