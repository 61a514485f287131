/* layout.h - the weights: their standard form, this provider's own form, and the way from one to
 * the other.
 *
 * With experts every tensor of either form has their dimension in front; a tensor (1) becomes (E).
 * Kernel form of one expert, N = shape_n, K = shape_k, G = scale groups along K (1 without groups),
 * everything decoded and padded, so that columns and k are read without a look at the valid sizes:
 *
 *   weight          (N/16, K, 16) 8-bit codes: panels of 16 columns, k inside; padding is code 0
 *   weight_scale    group, block, channel: (G, N) HUM_F32, decoded; with 16-bit activations rounded
 *                   to their format, channel scales to c. tensor: (1) HUM_F32.
 *                   Integer scales: (G, N) HUM_INT32, s_int of semantics.md section 7.
 *                   Fused: (G, N) 2^(s - 127); with int8 (G + 1, N): 2^(s - base), then a row
 *                   2^(base - 128), which the epilogue multiplies (the operands are twice the
 *                   float4e2m1 values, integers). NaN where the code is 255: with int8 in the last
 *                   row.
 *   zero_point      (G, N) HUM_F32
 *   weight_scale_2  tensor or integer scales: (1) HUM_F32, t of section 5; channel: (N) HUM_F32,
 *                   with integer scales (N + 1), the last of which is t
 *   bias            (N) HUM_F32
 */
#ifndef KERNELS_CPU_LAYOUT_H
#define KERNELS_CPU_LAYOUT_H

#include "kernels/cpu/config.h"

/* Every field but `data` (NULL) of the five tensors; absent ones are all zero. `layer` is
 * checked. */
struct hum_weights layout_standard(const struct hum_layer_config *layer);
struct hum_weights layout_kernel(const struct hum_layer_config *layer);

/* Expert `expert` of weights in either form, without the dimension; dense ones are as they were. */
struct hum_weights layout_expert(const struct hum_layer_config *layer,
                                 const struct hum_weights *weights, int64_t expert);

/* `standard` and `out` are checked against the two above; HUM_NO_MEMORY cannot happen. */
void layout_transform(const struct hum_layer_config *layer, const struct hum_weights *standard,
                      const struct hum_weights *out);

#endif
