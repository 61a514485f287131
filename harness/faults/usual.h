/* usual.h - the six checks that tests of quantized kernels commonly use, for comparison: what they
 * would have seen of a fault.
 *
 * They compare real numbers, got with want, over a whole tensor:
 *
 *   rtol_05_atol_1    |got - want| <= 0.1  + 0.05 |want|, every element
 *   rtol_01_atol_05   |got - want| <= 0.05 + 0.01 |want|, every element
 *   tol_1e_2          |got - want| <= 0.01 + 0.01 |want|, every element
 *   cosine_99         <got, want> / (|got| |want|) > 0.99
 *   calc_diff_1e_3    1 - 2 <got, want> / (<got, got> + <want, want>) < 0.001
 *   nmse_5e_4         |got - want|^2 / |want|^2 < 0.0005
 *
 * Equal infinities are equal elementwise; a NaN fails everything. Two tensors of zeros pass.
 *
 * Sources: the first three are the allclose of PyTorch with tolerances of upstream Humming's tests;
 * cosine: FlashInfer and others; calc_diff: DeepGEMM, deep_gemm/testing/numeric.py; NMSE:
 * llama.cpp, tests/test-backend-ops.cpp. */
#ifndef HARNESS_FAULTS_USUAL_H
#define HARNESS_FAULTS_USUAL_H

#include "harness/config/axes.h"
#include "harness/kernel/family.h"
#include "harness/report/mutation.h"

/* ---- the checks ------------------------------------------------------------------------------ */

/* Starts as {0}. */
struct usual_sums {
    uint64_t compared;
    bool failed[3]; /* the elementwise ones, in the order of usual_names */
    double got_got, got_want, want_want, error_error;
};

void usual_add(struct usual_sums *s, double got, double want);

/* Sets those of out->failed that fail, and counts; several tensors may be judged into one
 * outcome. */
void usual_judge(const struct usual_sums *s, struct usual_outcome *out);

/* ---- the data -------------------------------------------------------------------------------- */

/* Axes of run 1 to USUAL_RUNS of the configuration of `v`: fill R with normal data for products;
 * the data of the check `exact` for operations and for the experts pipeline. Every run has its own
 * seed. */
void usual_axes(const int64_t v[AX_COUNT], int run, int64_t out[AX_COUNT]);

/* That no case before this one has the same configuration: the same runs. */
bool usual_is_first(const struct plan *plan, size_t index);

/* ---- a run ----------------------------------------------------------------------------------- */

/* The hook that launches a case and judges its outputs into `out`:
 *
 *   gemm        against exact sums, rounded as the epilogue rounds them (at most 2^28
 *               multiply-adds: then evenly spread columns); both brought by a power of two to the
 *               size that normal weights and activations give, so that atol means what it was
 *               chosen for
 *   operations  every output against the oracle's, as numbers (codes of a format decoded, other
 *             codes as whole numbers)
 *   experts     the end of the pipeline, against the oracle's of the tokens alone
 *
 * A launch that is refused fails all checks; what it writes outside of its outputs, none. */
struct case_hook usual_hook(struct usual_outcome *out);

/* Run number `run` of plan->cases[index] on a runner without a hook. */
void usual_run(struct runner *r, const struct plan *plan, size_t index, int run,
               struct usual_outcome *out);

#endif
