/* op_hadamard.h - the Walsh-Hadamard transform of blocks of a row (docs/semantics-ops.md section
 * 6). */
#ifndef KERNELS_CPU_OP_HADAMARD_H
#define KERNELS_CPU_OP_HADAMARD_H

#include <stdbool.h>
#include <stdint.h>

enum { HADAMARD_MAX = 512 };

/* A power of two up to HADAMARD_MAX? */
bool hadamard_is_size(int64_t block);

/* In place, in natural order, times RN(1 / sqrt(block)); block divides width. */
void hadamard_row(float *v, int64_t width, int64_t block);

#endif
