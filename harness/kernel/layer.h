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

/* What the case states replaces what `base` (the provider's heuristics, or defaults) says. */
void layer_tuning(const int64_t v[AX_COUNT], const struct hum_tuning_config *base,
                  struct hum_tuning_config *out);

/* Does the case state a complete tile, so that no heuristics are needed? */
bool layer_states_tile(const int64_t v[AX_COUNT]);

#endif
