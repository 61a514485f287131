/* freivalds.h - is Y = A W^T in integers? Answered for every row and every column without
 * multiplying the matrices.
 *
 * Modulo 2^64, with r uniform over the 64-bit words: row i is right only if
 *     sum_l alpha[i][l] t[l] = sum_j y[i][j] r[j],   t[l] = sum_j omega[j][l] r[j],
 * and column j likewise with random words for the rows. A correct row always passes. If row i has
 * an error d (a vector, not zero modulo 2^64), the difference of the sides is sum_j d[j] r[j],
 * uniform over the multiples of 2^v, 2^v being the largest power of two that divides all of d: it
 * passes with probability 2^(v-64), that is at most 2^-40 when every |d[j]| < 2^25. Source:
 * Freivalds, Probabilistic machines can use less running time, IFIP 1977, in Z/2^64.
 *
 * Wrong rows crossed with wrong columns localise the errors. Cost 2 (MK + 2 NK + MN)
 * multiplications, one pass over each matrix. The products must be exact: rounded outputs are not
 * linear. If column j has a unit of its own, 2^f_j, the caller gives y as multiples of that unit.
 */
#ifndef REFERENCE_FREIVALDS_H
#define REFERENCE_FREIVALDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All row-major and borrowed; sizes at least 1. Sums beyond 2^63 wrap, on both sides alike. */
struct ref_freivalds {
    int64_t m, n, k;
    const int32_t *alpha; /* m x k */
    const int32_t *omega; /* n x k */
    const int64_t *y;     /* m x n */
    uint64_t seed;        /* of r */
};

struct ref_freivalds_found {
    int64_t rows, cols;           /* how many are wrong */
    int64_t first_row, first_col; /* the first of them; m, n: none */
};

/* Words of scratch that a check needs. */
size_t ref_freivalds_words(int64_t m, int64_t n, int64_t k);

/* work: ref_freivalds_words. row_wrong[m] and col_wrong[n] are written; no one else's memory is.
 * True: all is right. */
bool ref_freivalds_check(const struct ref_freivalds *f, uint64_t *work, bool *row_wrong,
                         bool *col_wrong, struct ref_freivalds_found *found);

#endif
