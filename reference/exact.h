/* exact.h - is this problem exact in a kernel's accumulators? Measured on the actual data, never
 * assumed.
 *
 * All values of a row of A and of a column of W are whole multiples of a unit (a power of two); in
 * units, P(i, j) = sum over l of |a w| bounds every partial sum in every order. Conditions
 * (docs/fills.md derives them):
 *   C1  P < 2^24: every f32 accumulator, any order, any fusion, is exact
 *   C2  f16 accumulators, and C8 16-bit partial results of slices: sums over chunks of 8 k, t_j:
 *       either the sum of |t_j| or (k taken in one ascending run) the range of the prefix sums is
 *       at most 2^11 (f16) or 2^8 (bf16). That no partial result leaves the range of its format is
 *       for the caller to see, who knows the scales that it has met
 */
#ifndef REFERENCE_EXACT_H
#define REFERENCE_EXACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One row or column in units of 2^unit. */
struct ref_norm {
    double sum, max; /* of |x| in units; infinity: the values have no common unit within 24 bits */
    int unit;
};

/* x: count rows of k values each; out: count norms. All-zero rows: sum = max = 0, unit 0. */
void ref_norms(const float *x, int64_t count, int64_t k, struct ref_norm *out);

/* The largest P that these norms allow: min(||a||_1 max|w|, max|a| ||w||_1), over all pairs. */
double ref_exact_p(const struct ref_norm *a, int64_t m, const struct ref_norm *w, int64_t n);

/* Rows of k values each, with their norms. */
struct ref_rows {
    const float *x;
    const struct ref_norm *norms;
    int64_t count;
};

struct ref_chunks {
    double sum, range;
};

/* Is given the chunks of every row of A with every column of W, as numbers: units counted in. */
struct ref_chunk_watch {
    void (*see)(void *context, int64_t row, int64_t col, struct ref_chunks of);
    void *context;
};

/* C2 and C8: the largest sum of |t_j| and the largest prefix range over all rows of A and columns
 * of W, in units. work: 16 * k + 64 floats. watch: NULL, or called unless P is not below 2^24. */
struct ref_chunks ref_exact_chunks(const struct ref_rows *a, const struct ref_rows *w, int64_t k,
                                   float *work, const struct ref_chunk_watch *watch);

#endif
