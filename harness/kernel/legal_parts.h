/* legal_parts.h - what the rules of legal.c are made of: predicates on formats, and the rules about
 * tiles.
 *
 * Private to the legality table and to "auto" (plan_resolve.c).
 */
#ifndef HARNESS_KERNEL_LEGAL_PARTS_H
#define HARNESS_KERNEL_LEGAL_PARTS_H

#include "harness/config/axes.h"
#include "reference/dtype.h"

/* The row of the format that axis x names. */
static inline const struct dtype *legal_type(const int64_t *v, enum axis_id x)
{
    return &dtypes[v[x]];
}

static inline bool legal_is_float(const struct dtype *t, int exponent, int mantissa)
{
    return t->is_float && t->is_signed && t->exp_bits == exponent && t->man_bits == mantissa;
}

static inline bool legal_is_scale_float(const struct dtype *t, int exponent, int mantissa)
{
    return t->is_float && !t->is_signed && t->exp_bits == exponent && t->man_bits == mantissa;
}

static inline bool legal_is_f16_or_bf16(const struct dtype *t)
{
    return legal_is_float(t, 5, 10) || legal_is_float(t, 8, 7);
}

static inline bool legal_is_int(const struct dtype *t)
{
    return !t->is_float && t->is_signed;
}

static inline bool legal_is_uint(const struct dtype *t)
{
    return !t->is_float && !t->is_signed;
}

static inline bool legal_is_power_of_two(int64_t x)
{
    return x > 0 && !(x & (x - 1));
}

static inline bool legal_has_16_bits(const int64_t *v)
{
    return legal_type(v, AX_A)->bits == 16;
}

static inline int64_t legal_shape_n(const int64_t *v)
{
    return v[AX_N] + v[AX_PAD_N];
}

static inline int64_t legal_shape_k(const int64_t *v)
{
    return v[AX_K] + v[AX_PAD_K];
}

/* legal_formats.c: rules about formats, one for each row of the table. */
bool legal_a_format(const int64_t *v);
bool legal_b_bits(const int64_t *v);
bool legal_b_kind(const int64_t *v);
bool legal_b_signed(const int64_t *v);
bool legal_b_uint_width(const int64_t *v);
bool legal_b_float_fields(const int64_t *v);
bool legal_b_float_under_int(const int64_t *v);
bool legal_c_format(const int64_t *v);
bool legal_c_as_a(const int64_t *v);
bool legal_bs_format(const int64_t *v);
bool legal_bs_as_c(const int64_t *v);
bool legal_bs_f32(const int64_t *v);

/* legal_tiles.c: rules about tuning, one for each row of the table. An auto tile holds. */
bool legal_tiles_together(const int64_t *v);
bool legal_block_size(const int64_t *v);
bool legal_block_n_fits(const int64_t *v);
bool legal_block_k_fits(const int64_t *v);
bool legal_warp_n_size(const int64_t *v);
bool legal_warp_k_size(const int64_t *v);
bool legal_warp_m_size(const int64_t *v);
bool legal_tile_ratio(const int64_t *v);
bool legal_threads(const int64_t *v);
bool legal_warp_spec_threads(const int64_t *v);
bool legal_tuning(const int64_t *v);
bool legal_invariant_stream_k(const int64_t *v);
bool legal_invariant_k_warps(const int64_t *v);
bool legal_wgmma_format(const int64_t *v);
bool legal_wgmma_warps(const int64_t *v);
bool legal_wgmma_stages(const int64_t *v);
bool legal_wgmma_warp_k(const int64_t *v);
bool legal_wgmma_packed_k(const int64_t *v);
bool legal_mma_group_n(const int64_t *v);
bool legal_mxmma_f16_accum(const int64_t *v);
bool legal_mxmma_zero(const int64_t *v);
bool legal_write_splits_tma(const int64_t *v);
bool legal_write_splits_m(const int64_t *v);
bool legal_tma_zero(const int64_t *v);
bool legal_tma_as(const int64_t *v);
bool legal_multicast_dense(const int64_t *v);
bool legal_multicast_warp_spec(const int64_t *v);
bool legal_multicast_n(const int64_t *v);

/* legal_experts.c: rules about products with experts, likewise. */
bool legal_experts(const int64_t *v);
bool legal_top_k(const int64_t *v);
bool legal_routing(const int64_t *v);
bool legal_routing_duplicate(const int64_t *v);
bool legal_max_tokens(const int64_t *v);
bool legal_layout_dtype(const int64_t *v);
bool legal_indexed_tma(const int64_t *v);
bool legal_scale_layout(const int64_t *v);

/* legal_inputs.c: rules about process_input, hadamard and moe_sum, likewise. */
bool legal_input_quant(const int64_t *v);
bool legal_input_even(const int64_t *v);
bool legal_input_group(const int64_t *v);
bool legal_input_group_scale(const int64_t *v);
bool legal_input_scale_layout(const int64_t *v);
bool legal_input_experts(const int64_t *v);
bool legal_input_routing(const int64_t *v);
bool legal_input_max_tokens(const int64_t *v);
bool legal_input_layout_dtype(const int64_t *v);
bool legal_input_zero_invalid(const int64_t *v);
bool legal_input_swiglu(const int64_t *v);
bool legal_input_hadamard(const int64_t *v);
bool legal_input_ulp(const int64_t *v);
bool legal_input_exhaustive(const int64_t *v);
bool legal_hadamard_block(const int64_t *v);
bool legal_sum_map(const int64_t *v);
bool legal_sum_routing(const int64_t *v);

/* legal_pipeline.c: rules about the experts pipeline, likewise. */
bool legal_pipeline_type(const int64_t *v);
bool legal_pipeline_top_k(const int64_t *v);
bool legal_pipeline_routing(const int64_t *v);
bool legal_pipeline_columns(const int64_t *v);
bool legal_pipeline_gate_up(const int64_t *v);
bool legal_pipeline_down(const int64_t *v);

#endif
