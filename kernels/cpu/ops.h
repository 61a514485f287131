/* ops.h - the operations of the provider "cpu" that are not a GEMM, by docs/semantics-ops.md.
 *
 * Every bit is fixed by that page; one thread, no state, `handle` is not used. Nothing but the
 * stated output elements is written. Tensors that are written must not overlap any other tensor of
 * the call (HUM_INVALID). Where the page leaves a choice:
 *
 * quant_weight
 *   - infinities follow IEEE (the scale is infinite, its reciprocal 0); a quotient or zero point
 *     that is NaN counts as +0 wherever it becomes an integer or a code; a floating zero point may
 *     be stored as NaN
 *   - an e8m0 scale of any target follows the rule's own rounding: up (2026_08), exponent field
 *     alone (2026_05)
 *   - a float code that wraps (2026_05) is (magnitude code + sign bit) modulo 2^N
 *   - an integer that is masked (2026_05) is the exact one, modulo 2^b; infinity counts as 0
 *   - allow_negative_scale is a permission: without use for floats, zero points and e8m0
 * dequant_weight: bits of a code above the format's are ignored, as by pack
 * process_mxfp4: a factor 2^(255 - 127) is infinity in f32
 * activations: max, min and clamp pass NaN on; relu2 times b is two roundings, the others one
 * hadamard: the scaled f32 is rounded RN to the format of outputs
 * process_input
 *   - the last group of a row may be shorter
 *   - int4 and int8 of NaN are 0; e2m1 and e0m3 of NaN are the largest number
 *   - a NaN scale is e8m0 255, e4m3 0x7F; an infinite e8m0 scale is 255, a NaN, too
 *   - dynamic_group_token: if max(m3) is infinite or NaN, so is the token scale
 *   - the padding of a row of row-major 8-bit scales is written as 0 together with the row
 *   - scales of rows that are zeroed by zero_invalid are not written; `rows` of scales are rows of
 *     outputs
 *   - a permutation with repeated rows is carried out in order of the input rows; its indices may
 *     be int32 or int64
 * moe_fused_mul_sum: an id beyond expert_map is HUM_INVALID
 */
#ifndef KERNELS_CPU_OPS_H
#define KERNELS_CPU_OPS_H

#include "kernels/abi/humming.h"

extern const struct hum_ops hum_cpu_ops;

enum hum_code op_quant_weight(void *handle, const struct hum_quant_weight_args *args,
                              char reason[HUM_REASON_BYTES]);
enum hum_code op_dequant_weight(void *handle, const struct hum_dequant_weight_args *args,
                                char reason[HUM_REASON_BYTES]);
enum hum_code op_pack(void *handle, const struct hum_pack_args *args,
                      char reason[HUM_REASON_BYTES]);
enum hum_code op_unpack(void *handle, const struct hum_pack_args *args,
                        char reason[HUM_REASON_BYTES]);
enum hum_code op_process_mxfp4(void *handle, const struct hum_process_mxfp4_args *args,
                               char reason[HUM_REASON_BYTES]);
enum hum_code op_process_input(void *handle, const struct hum_process_input_args *args,
                               char reason[HUM_REASON_BYTES]);
enum hum_code op_hadamard(void *handle, const struct hum_hadamard_args *args,
                          char reason[HUM_REASON_BYTES]);
enum hum_code op_moe_fused_mul_sum(void *handle, const struct hum_moe_fused_mul_sum_args *args,
                                   char reason[HUM_REASON_BYTES]);
enum hum_code op_buffer_metas(void *handle, const struct hum_experts_config *config,
                              struct hum_buffer_meta out[HUM_BUFFER_COUNT],
                              char reason[HUM_REASON_BYTES]);

#endif
