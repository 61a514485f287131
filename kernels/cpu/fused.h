/* fused.h - docs/semantics.md section 8: float4e2m1 weights whose e8m0 scales become part of the
 * operand. */
#ifndef KERNELS_CPU_FUSED_H
#define KERNELS_CPU_FUSED_H

#include "kernels/cpu/config.h"

/* Requantizes the codes of `out->weight` (kernel form, filled) and fills `out->weight_scale`
 * (layout.h) from the standard scales (n, groups). */
void fused_transform(const struct hum_layer_config *layer, const struct facts *f,
                     const struct hum_tensor *scale, const struct hum_weights *out);

#endif
