/* layer.h - the axes of a case as the structs that the oracle and the providers take.
 *
 * One place maps a value to its meaning on both sides; nothing else reads axes of the problem by
 * number.
 */
#ifndef HARNESS_KERNEL_LAYER_H
#define HARNESS_KERNEL_LAYER_H

#include "harness/config/axes.h"
#include "kernels/abi/humming.h"
#include "reference/fill.h"

const struct dtype *layer_format(int64_t value); /* of an AXIS_FORMAT or AXIS_WEIGHT axis */

/* Sizes, formats and switches; array pointers NULL. */
void layer_reference(const int64_t v[AX_COUNT], int64_t m, struct ref_gemm *out);
void layer_fill(const int64_t v[AX_COUNT], struct ref_fill_spec *out);

void layer_config(const int64_t v[AX_COUNT], struct hum_layer_config *out);
void layer_compute(const int64_t v[AX_COUNT], struct hum_compute_config *out);

int32_t layer_layout_dtype(const int64_t v[AX_COUNT]); /* of expert_layout */

/* How tensors are copied: what a word of the axis `use_tma` means. */
struct layer_copies {
    bool cp_async, mbarrier;        /* what is not copied by TMA; how arrivals are counted */
    bool a, b, c, scales, bias, as; /* by TMA; scales: of weights, their zero points included */
    int32_t cast_a, cast_b;         /* thread blocks that share what is copied of A, of B */
};
const struct layer_copies *layer_copies(const int64_t v[AX_COUNT]);

/* What the case states replaces what `base` (the provider's heuristics, or defaults) says. */
void layer_tuning(const int64_t v[AX_COUNT], const struct hum_tuning_config *base,
                  struct hum_tuning_config *out);

/* Does the case state a complete tile, so that no heuristics are needed? */
bool layer_states_tile(const int64_t v[AX_COUNT]);

#endif
