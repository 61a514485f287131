/* codec16.h - encode, decode and compare long rows of f16 and bf16 codes.
 *
 * Same results as dtype_encode(..., DTYPE_TO_TOP) and dtype_decode bit for bit (test_codec16
 * compares them over all codes and all midpoints), at memory speed: portable C that the compiler
 * vectorizes, once for any machine and once for AVX2, chosen at each call. Arrays are the
 * caller's and may not overlap.
 */
#ifndef REFERENCE_CODEC16_H
#define REFERENCE_CODEC16_H

#include "reference/dtype.h"

#include <stddef.h>

/* t is f16 or bf16 in all of these. */
void codec16_encode_f32(const struct dtype *t, const float *x, uint16_t *codes, size_t n);
/* One rounding from double (never through f32). */
void codec16_encode_f64(const struct dtype *t, const double *x, uint16_t *codes, size_t n);
void codec16_decode_f32(const struct dtype *t, const uint16_t *codes, float *x, size_t n);
void codec16_decode_f64(const struct dtype *t, const uint16_t *codes, double *x, size_t n);

/* x[i] := the value of x[i] rounded to t; f32 in and out. */
void codec16_round_f32(const struct dtype *t, float *x, size_t n);

/* How many codes differ, where +0 equals -0 and any NaN equals any NaN; *first is the index of the
 * first of them (n if none), *bitwise counts codes whose bits differ at all. */
size_t codec16_differ(const struct dtype *t, const uint16_t *got, const uint16_t *want, size_t n,
                      size_t *first, size_t *bitwise);

#endif
