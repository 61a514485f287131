/* hadamard.h - the Walsh-Hadamard transform of blocks of a row, butterfly by butterfly in f32.
 *
 * The oracle of the Hadamard stage and operation (docs/semantics-ops.md section 6): natural
 * (Sylvester) order, y[i] = sum_j (-1)^popcount(i & j) x[j], stages of stride 1, 2, 4, ...: (x,
 * y) -> (RN(x + y), RN(x - y)); then times RN(1 / sqrt(H)), one rounding. One right answer, bit
 * for bit. */
#ifndef REFERENCE_HADAMARD_H
#define REFERENCE_HADAMARD_H

#include <stdbool.h>
#include <stdint.h>

enum { REF_HADAMARD_MAX = 512 };

/* A power of two up to REF_HADAMARD_MAX that divides width. */
bool ref_hadamard_valid(int64_t block, int64_t width);

/* x, rows x width, in place; block and width are valid. The operation alone then rounds RN to its
 * format (codec16.h). */
void ref_hadamard(float *x, int64_t rows, int64_t width, int64_t block);

/* RN(1 / sqrt(block)). */
float ref_hadamard_factor(int64_t block);

#endif
