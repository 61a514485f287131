/* problem.h - one problem's data: inputs as codes, operands as values, standard tensors, expected
 * results.
 *
 * Made once, shared by all cases of the problem; everything lives in the arena given. Rows are
 * those of the largest m; a smaller m is a prefix (of a dense product; with experts all cases of a
 * problem have one m). Where the product is too large to compute whole, only a sample of columns is
 * looked at (`cols`).
 */
#ifndef HARNESS_KERNEL_PROBLEM_H
#define HARNESS_KERNEL_PROBLEM_H

#include "harness/core/arena.h"
#include "harness/kernel/layer.h"
#include "harness/kernel/routing.h"
#include "reference/exact.h"

struct problem {
    const int64_t *v; /* axes of its first case */
    struct ref_gemm ref;
    struct ref_fill_spec fill;
    struct ref_inputs in;
    struct routing routing; /* its rows are the rows of the output */

    int64_t *cols; /* looked at, ascending; all of them: 0, 1, ...; the same in every expert */
    int64_t cols_count;
    float *a;       /* m x k operand values */
    float *w;       /* experts x cols_count x k operand values */
    int32_t *s_int; /* integer weight scales, experts x n x groups; NULL without */
    float int_factor;
    struct ref_epilogue epilogue;

    uint16_t
        *want; /* rows x cols_count codes, nothing in rows that are not written; NULL for fill R */
    double *acc; /* rows x cols_count exact accumulators behind `want`, likewise */
    float *a_eff,
        *w_eff; /* shaped as a and w: operands with the scales that act on accumulators folded in */
    const char *inexact; /* NULL, or why `want` is not the only right answer: then untrusted */
    double p;            /* the largest P, in units (exact.h) */
    double ones;         /* the same, the unit being 1 */
    struct ref_chunks chunks;
    bool sum_overflows, range_overflows; /* fill E2 and f16: so large a partial result is infinite
                                            somewhere */

    double fill_us, reference_us;
};

/* Output rows of a launch with m rows of A: a prefix of the rows of a dense problem, or all. */
static inline int64_t problem_rows(const struct problem *q, int64_t m)
{
    return q->routing.type == HUM_GEMM_DENSE ? m : q->routing.rows;
}

/* Rows that no expert has are never written: a kernel must leave their bytes as they are. */
static inline bool problem_writes(const struct problem *q, int64_t row)
{
    return q->routing.row_expert[row] >= 0;
}

/* Column j of those looked at, in the expert of an output row that is written: its number among
 * the columns of all experts (gemm.h), and where its k operand values (of w or w_eff) stand. */
static inline int64_t problem_col(const struct problem *q, int64_t row, int64_t j)
{
    return q->routing.row_expert[row] * q->ref.n + q->cols[j];
}
static inline int64_t problem_w_at(const struct problem *q, int64_t row, int64_t j)
{
    return (q->routing.row_expert[row] * q->cols_count + j) * q->ref.k;
}

/* NULL, or a sentence: memory is out (the arena's limit). rules: of the provider (semantics.h);
 * `threads` for the BLAS. */
const char *problem_make(const int64_t v[AX_COUNT], uint32_t rules, int64_t m, int threads,
                         struct arena *arena, struct problem *out);

/* The same for codes that come from elsewhere: `ref` with all its arrays, and a routing. The
 * expected codes are those of sums in no particular order, exact unless out->inexact says why
 * not. `in` is empty. v: axes of a case of this layer; borrowed, as all of ref and routing. */
const char *problem_of_codes(const int64_t v[AX_COUNT], const struct ref_gemm *ref,
                             const struct routing *routing, int threads, struct arena *arena,
                             struct problem *out);

/* want.c: the expected codes of every fill but R. */
const char *problem_want(struct problem *q, int threads, struct arena *arena);

/* The factor that the weight scale of (col, l), a column of all experts, has on accumulators:
 * block, group or integer scale; 1 where it acts elsewhere. */
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
