/* ops_hadamard.h - the Walsh-Hadamard transform, right and with one mistake.
 *
 * Shared by the operation and by process_input. */
#ifndef HARNESS_EXPLAIN_OPS_HADAMARD_H
#define HARNESS_EXPLAIN_OPS_HADAMARD_H

#include "harness/explain/ops_number.h"

#include <stdint.h>

/* clang-format off */
enum ops_hadamard_kind {
    HADAMARD_RIGHT,
    HADAMARD_UNNORMALIZED,
    HADAMARD_TWICE,          /* the factor is applied n times more */
    HADAMARD_SIGN,           /* (x - y) is y - x: of the last stage (n 1), of all (n 0) */
    HADAMARD_BLOCK,          /* blocks of block / n; with the factor of these */
    HADAMARD_LIMIT,          /* strides of n columns and more are left out */
    HADAMARD_REVERSED,       /* stages from the largest stride to the smallest */
    HADAMARD_FACTOR_FIRST,   /* the factor is applied before the stages */
    HADAMARD_DIVIDED,        /* divided by the rounded root instead of multiplied by 1 / root */
    HADAMARD_ROUNDED,        /* every stage is rounded to bf16 (n 1) or f16 (n 2) */
    HADAMARD_LAST_LEFT,      /* the last block of a row is left as it is */
    HADAMARD_BITS_REVERSED,  /* results in the order of reversed bits */
    HADAMARD_ORTHOGONAL,     /* every stage is multiplied by RN(1 / sqrt(2)) */
    HADAMARD_KINDS
};
/* clang-format on */

/* x: rows x width, in place; block as the contract has it. */
void ops_hadamard_rows(float *x, int64_t rows, int64_t width, int64_t block, int kind, int n);

#endif
