/* bug.h - kernels that are wrong in the way of one public bug report: what a row of the table may
 * do.
 *
 * The provider is kernels/cpu. A bug changes private copies of what goes into a call, or what comes
 * out of it; everything that it leaves NULL is computed correctly. Bugs of products are in
 * bug_product.c and bug_weights.c, of the other operations in bug_input.c and bug_ops.c; the table
 * is in bug_provider.c, the meaning of the ids in suites/README.md.
 */
#ifndef KERNELS_TEST_BUG_H
#define KERNELS_TEST_BUG_H

#include "kernels/abi/humming.h"

/* Private copies of the arguments of a product; `args` points at the others. */
struct bug_call {
    struct hum_layer_config layer;
    struct hum_compute_config compute;
    struct hum_tuning_config tuning;
    struct hum_weights weights;
    struct hum_gemm_args args;
    void *own; /* one more buffer, of BUG_OWN_BYTES zeros */
};
enum { BUG_OWN_BYTES = 1 << 20 };

/* `launch` counts the products of a handle from 0; `before` are the outputs as they were before the
 * launch. Of `inputs` and `input_scale` the data are private copies. Weights are in kernel form
 * (kernels/cpu/layout.h). */
typedef void bug_kernel_fn(const struct hum_layer_config *layer, const struct hum_weights *out);
typedef void bug_change_fn(struct bug_call *call, unsigned launch);
typedef void bug_inputs_fn(const struct hum_gemm_args *args, unsigned launch);
typedef void bug_after_fn(const struct hum_gemm_args *args, const uint16_t *before,
                          unsigned launch);

/* Each calls hum_cpu_ops itself. */
typedef enum hum_code bug_quant_fn(const struct hum_quant_weight_args *args,
                                   char reason[HUM_REASON_BYTES]);
typedef enum hum_code bug_pack_fn(const struct hum_pack_args *args, char reason[HUM_REASON_BYTES]);
typedef enum hum_code bug_process_fn(const struct hum_process_input_args *args,
                                     char reason[HUM_REASON_BYTES]);
typedef enum hum_code bug_sum_fn(const struct hum_moe_fused_mul_sum_args *args,
                                 char reason[HUM_REASON_BYTES]);
typedef enum hum_code bug_buffers_fn(const struct hum_experts_config *config,
                                     struct hum_buffer_meta out[HUM_BUFFER_COUNT],
                                     char reason[HUM_REASON_BYTES]);

struct bug {
    const char *id;
    bool (*lacks)(const struct hum_layer_config *layer); /* layers that it does not support */
    bug_kernel_fn *kernel;                               /* the weights, transformed */
    bug_change_fn *change;                               /* the arguments of a product */
    bug_inputs_fn *inputs;                               /* its activations and their scales */
    bug_after_fn *after;                                 /* what it leaves behind */
    bug_quant_fn *quant;
    bug_pack_fn *pack;
    bug_process_fn *process;
    bug_sum_fn *sum;
    bug_buffers_fn *buffers;
};

/* bug_product.c */
bool bug_lacks_odd_n(const struct hum_layer_config *layer);
bug_change_fn bug_epilogue_without_scale, bug_k_warps_by_m, bug_other_workers, bug_other_format,
    bug_any_pitch;
bug_inputs_fn bug_drop_half_tile, bug_drop_late_slice, bug_minus_zero, bug_scale_behind;
bug_after_fn bug_narrow_index, bug_other_buffer, bug_scale_last, bug_rows_behind, bug_nan_behind,
    bug_masked_rows, bug_locks_overrun, bug_locks_dirty, bug_replay_stale, bug_patch, bug_tile,
    bug_next_row, bug_grid_limit, bug_bias_again, bug_replay_nothing;

/* bug_weights.c */
bug_kernel_fn bug_zero_of_expert_0, bug_zero_minus_one, bug_zero_raw, bug_scale_unsigned,
    bug_e8m0_shifted, bug_scale_128, bug_scale_of_expert_0, bug_scale_pitch, bug_scale_first;
bug_change_fn bug_no_zero_of_one_row;

/* bug_input.c */
bug_process_fn bug_tiny_nan, bug_overflow_nan, bug_ties_away, bug_scale_padding, bug_shared_scale,
    bug_zero_scales, bug_block_tail, bug_not_quantized;

/* bug_ops.c */
bug_quant_fn bug_zero_block, bug_early_clamp;
bug_pack_fn bug_sign_extension;
bug_sum_fn bug_id_minus_one, bug_weight_twice, bug_global_ids;
bug_buffers_fn bug_always_gated;

#endif
