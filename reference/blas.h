/* blas.h - matrix products of the reference through OpenBLAS, with bits that do not depend on
 * threads or M.
 *
 * C = A W^T is cut into fixed blocks: slabs of REF_BLAS_COLS columns, and rows [0, 64), [64, 128),
 * [128, 256), [256, 512) and from there on 256 each. A block that reaches beyond the last row is
 * computed whole, on zero rows, and cut. Each block is one BLAS call in one thread, so the shape of
 * the call and the place of a row in it follow from the row's number, n and k alone. Hence, with
 * one library on one machine:
 *
 *   - the same bits whatever `threads` is;
 *   - row i has the same bits for every m > i (a smaller M is a prefix of a larger one).
 *
 * Nothing is claimed between libraries, machines, or different n (the last slab is narrower): there
 * only exact products agree. A call for m rows costs as much as the blocks that it touches, at
 * least 64 rows. (Blocks of equal height would either waste more on small M or pack W once for
 * every few rows: OpenBLAS copies a slab for every call.)
 *
 * Exact data need no such blocks. Where every operand is a multiple of a unit u_a or u_w and
 * sum |a||w| <= 2^24 u_a u_w (2^53 in f64), every partial sum in any order is representable, so
 * every order, fused or not, gives the same bits (exact.h measures it). The `exact` calls say that
 * this holds: their slabs and row blocks are larger and nothing is padded, so that less is copied;
 * their bits are those of the calls above. On other data they claim only that threads do not
 * matter.
 *
 * A is m x k, W n x k, C m x n; all row-major, borrowed, C apart from A and W. m, n, k from 1 to
 * 2^31 - 1.
 */
#ifndef REFERENCE_BLAS_H
#define REFERENCE_BLAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    REF_BLAS_COLS = 512,     /* columns of a slab */
    REF_BLAS_ROWS_MIN = 64,  /* rows of the smallest block */
    REF_BLAS_ROWS_MAX = 256, /* and of the largest */
    REF_BLAS_COLS_EXACT = 1024,
    REF_BLAS_ROWS_EXACT = 1024, /* of a block of exact data */
    REF_BLAS_THREADS_MAX = 64
};

/* The library below: one block, C (leading dimension ldc) = A W^T, A and W with leading dimension
 * k. A test may put a wrong one here. */
struct ref_blas {
    void (*sgemm)(int m, int n, int k, const float *a, const float *w, float *c, int ldc);
    void (*dgemm)(int m, int n, int k, const double *a, const double *w, double *c, int ldc);
};

extern const struct ref_blas ref_blas_default; /* OpenBLAS */

/* Tells OpenBLAS to compute each call in the calling thread. The library keeps this setting for the
 * whole process (it is the one global state that this module touches): call once, before any
 * product and any thread. */
void ref_blas_init(void);

/* The product, in `threads` threads (clamped to 1..REF_BLAS_THREADS_MAX; fewer where the system
 * refuses them). False: no memory, or a size out of range; C is then unspecified. */
bool ref_blas_f32(int64_t m, int64_t n, int64_t k, const float *a, const float *w, float *c,
                  int threads);
bool ref_blas_f64(int64_t m, int64_t n, int64_t k, const double *a, const double *w, double *c,
                  int threads);

/* The same, of data that the caller has shown to be exact. */
bool ref_blas_exact_f32(int64_t m, int64_t n, int64_t k, const float *a, const float *w, float *c,
                        int threads);
bool ref_blas_exact_f64(int64_t m, int64_t n, int64_t k, const double *a, const double *w,
                        double *c, int threads);

/* All four, with another library. a, w and c point to double or float. */
struct ref_blas_product {
    bool is_double, exact;
    int64_t m, n, k;
    const void *a, *w;
    void *c;
};
bool ref_blas_multiply(const struct ref_blas *blas, const struct ref_blas_product *x, int threads);

/* Multiplies integers of several shapes, in both precisions and both kinds of blocks, and compares
 * every element with an int64 product. The values use the full width (f32: sums up to 2^24; f64: up
 * to 2^51), so that a product of too little precision is seen. True: all equal. False: `reason`
 * holds one sentence that names the core type of the library, the product and the shape. Under 30
 * ms. */
bool ref_blas_self_test(char *reason, size_t size);
bool ref_blas_self_test_with(const struct ref_blas *blas, char *reason, size_t size);

/* Name, version, build options and core type of the library, for people; cut to size. */
void ref_blas_version(char *text, size_t size);

#endif
