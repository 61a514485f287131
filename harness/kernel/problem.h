/* problem.h - one problem's data: inputs as codes, operands as values, standard tensors, expected results.
 *
 * Made once, shared by all cases of the problem; everything lives in the arena given. Rows are those of the largest m; a smaller m is a
 * prefix. Where the product is too large to compute whole, only a sample of columns is looked at (`cols`).
 */
#ifndef HARNESS_KERNEL_PROBLEM_H
#define HARNESS_KERNEL_PROBLEM_H

#include "harness/core/arena.h"
#include "harness/kernel/layer.h"
#include "reference/exact.h"

struct problem {
    const int64_t *v; /* axes of its first case */
    struct ref_gemm ref;
    struct ref_fill_spec fill;
    struct ref_inputs in;

    int64_t *cols; /* looked at, ascending; all of them: 0, 1, ... */
    int64_t cols_count;
    float *a;       /* m x k operand values */
    float *w;       /* cols_count x k operand values */
    int32_t *s_int; /* integer weight scales, n x groups; NULL without */
    float int_factor;
    struct ref_epilogue epilogue;

    uint16_t *want; /* m x cols_count codes; NULL for fill R */
    double *acc; /* m x cols_count exact accumulators behind `want`; NULL where want is not a sum */
    float *a_eff, *w_eff; /* operands with the scales that act on accumulators folded in */
    const char *
        inexact; /* NULL, or why `want` is not the only right answer: the verdict is then untrusted */
    double p;    /* the largest P, in units (exact.h) */
    struct ref_chunks chunks;

    double fill_us, reference_us;
};

/* NULL, or a sentence: memory is out (the arena's limit). `threads` for the BLAS. */
const char *problem_make(const int64_t v[AX_COUNT], int64_t m, int threads, struct arena *arena,
                         struct problem *out);

/* want.c: the expected codes of every fill but R. */
const char *problem_want(struct problem *q, int threads, struct arena *arena);

/* The factor that the weight scale of (col, l) has on accumulators: block, group or integer scale; 1 where it acts elsewhere. */
double problem_c_scale(const struct problem *q, int64_t col, int64_t l);

/* Standard tensors (humming.h) in host memory. */
struct problem_tensors {
    struct hum_layer_config layer;
    struct hum_weights standard;
    struct hum_tensor inputs, input_scale; /* of the largest m */
};
const char *problem_tensors_make(const struct problem *q, struct arena *arena,
                                 struct problem_tensors *out);

/* The first m rows of an inputs or input_scale tensor. */
struct hum_tensor tensor_rows(struct hum_tensor t, int64_t m);

#endif
