#include "kernels/test/fault_samples.h"

#include <stdlib.h>
#include <string.h>

/* f16 x uint4: groups of 32, zero points, channel scale, bias, padded columns, Stream-K, a partial
 * tile of rows. */
const struct sample fault_sample_start = {
    .layer = {.shape_n = 128,
              .shape_k = 256,
              .pad_shape_n = 8,
              .a_dtype = HUM_F16,
              .b_dtype = HUM_UINT(4),
              .c_dtype = HUM_F16,
              .bs_dtype = HUM_F16,
              .weight_scale_type = HUM_SCALE_GROUP,
              .weight_scale_group_size = 32,
              .weight_scale_2_type = HUM_SCALE_2_CHANNEL,
              .has_zero_point = true,
              .has_bias = true},
    .tuning = {.block_m = 16,
               .block_n = 64,
               .block_k = 64,
               .warp_m = 16,
               .warp_n = 32,
               .warp_k = 64,
               .use_stream_k = true,
               .num_stages = 2,
               .num_ctas_per_sm = 1,
               .num_sms = 7,
               .num_write_splits = 1},
    .m = 20,
};

/* ---- configurations -------------------------------------------------------------------------- */

static void plain(struct sample *s)
{
    (void)s;
}

static void one_slice(struct sample *s)
{
    s->tuning.use_stream_k = false;
}

static void four_slices(struct sample *s)
{
    s->tuning.num_sms = 16;
}

static void f16_accum(struct sample *s)
{
    s->compute.use_f16_accum = true;
}

static void fp_zero_point(struct sample *s)
{
    s->layer.is_fp_zero_point = true;
}

static void symmetric(struct sample *s)
{
    s->layer.has_zero_point = false;
}

static void bits_3(struct sample *s)
{
    s->layer.b_dtype = HUM_UINT(3);
}

static void padded_k(struct sample *s)
{
    s->layer.pad_shape_k = 40;
}

static void tensor_scale(struct sample *s)
{
    one_slice(s);
    s->layer.weight_scale_2_type = HUM_SCALE_2_TENSOR;
}

static void many_rows(struct sample *s)
{
    one_slice(s);
    s->m = 550;
}

static void warps_4(struct sample *s)
{
    s->tuning.warp_k = 16;
    s->compute.use_f16_accum = true;
}

static void bf16_e8m0(struct sample *s)
{
    symmetric(s);
    one_slice(s);
    s->layer.a_dtype = s->layer.c_dtype = HUM_BF16;
    s->layer.bs_dtype = HUM_E8M0;
    s->layer.weight_scale_2_type = HUM_SCALE_2_NONE;
    s->layer.has_bias = false;
}

static void few_columns(struct sample *s)
{
    s->layer.shape_n = 64;
    s->layer.pad_shape_n = 56;
    s->layer.bs_dtype = HUM_E4M3;
}

/* 8-bit activations with input groups, M-major scales and two warps along k. */
static void e4m3(struct sample *s)
{
    s->layer.a_dtype = HUM_E4M3;
    s->layer.as_dtype = HUM_F32;
    s->layer.has_zero_point = false;
    s->layer.weight_scale_group_size = 128;
    s->layer.input_scale_group_size = 64;
    s->compute.use_m_major_input_scale = true;
    s->tuning.block_k = 128;
}

static void e4m3_f16(struct sample *s)
{
    e4m3(s);
    f16_accum(s);
}

/* Warps end inside groups. */
static void e4m3_late(struct sample *s)
{
    e4m3(s);
    one_slice(s);
    s->layer.input_scale_group_size = 0;
    s->tuning.block_k = 64;
}

static void e4m3_late_f16(struct sample *s)
{
    e4m3_late(s);
    f16_accum(s);
}

static void int8(struct sample *s)
{
    e4m3_late(s);
    s->layer.a_dtype = HUM_INT8;
    s->layer.b_dtype = HUM_INT8;
}

static void int_scale(struct sample *s)
{
    int8(s);
    s->layer.shape_k = 1024;
    s->layer.use_int_weight_scale = true;
}

static void fused(struct sample *s)
{
    int8(s);
    s->layer.b_dtype = HUM_E2M1;
    s->layer.bs_dtype = HUM_E8M0;
    s->layer.weight_scale_group_size = 32;
    s->layer.use_fused_e8m0_scale = true;
}

static void experts(struct sample *s, enum hum_gemm_type type)
{
    one_slice(s);
    s->layer.num_experts = 4;
    s->layer.weight_scale_2_type = HUM_SCALE_2_TENSOR;
    s->compute.gemm_type = type;
    s->m = 40;
}

static void indexed(struct sample *s)
{
    experts(s, HUM_GEMM_INDEXED);
    s->m = 10;
    s->top_k = 2;
}

static void indexed_e4m3(struct sample *s)
{
    e4m3_late(s);
    s->compute.use_m_major_input_scale = false;
    indexed(s);
}

static void contiguous(struct sample *s)
{
    experts(s, HUM_GEMM_GROUPED_CONTIGUOUS);
}

static void masked(struct sample *s)
{
    experts(s, HUM_GEMM_GROUPED_MASKED);
}

/* ---- operands -------------------------------------------------------------------------------- */

static void scale_code(struct sample *s, int code)
{
    memset(s->standard.weight_scale.data, code, s->standard.weight_scale.bytes);
}

static void scales_0(struct sample *s)
{
    scale_code(s, 0);
}

static void scales_128(struct sample *s)
{
    scale_code(s, 134);
}

/* Infinity and positive numbers. */
static void scales_inf(struct sample *s)
{
    scale_code(s, 255);
    memset(s->standard.weight.data, 255, s->standard.weight.bytes);
    memset(s->inputs.data, 0x3f, s->inputs.bytes);
}

/* All numbers of A are the largest int8, all weights too, all scales alike: 2^10. */
static void largest(struct sample *s)
{
    memset(s->inputs.data, 127, s->inputs.bytes);
    memset(s->standard.weight.data, 255, s->standard.weight.bytes);
    for (size_t i = 0; i < s->standard.weight_scale.bytes / sizeof(uint16_t); i++)
        ((uint16_t *)s->standard.weight_scale.data)[i] = 0x3c00;
}

static void activation(struct sample *s, int64_t row, int64_t k, uint16_t code)
{
    ((uint16_t *)s->inputs.data)[row * s->layer.shape_k + k] = code;
}

static void nan_in_row_1(struct sample *s)
{
    activation(s, 1, 3, 0x7e00);
}

static void large(struct sample *s)
{
    for (int64_t k = 0; k < s->layer.shape_k; k++)
        activation(s, 2, k, 0x7bff);
}

/* Infinities of both signs under all weights but those of value 0. */
static void infinities(struct sample *s)
{
    memset(s->standard.weight.data, 0x11, s->standard.weight.bytes);
    memset(s->standard.zero_point.data, 0, s->standard.zero_point.bytes);
    activation(s, 0, 3, 0x7c00);
    activation(s, 0, 4, 0xfc00);
}

static void nan_code(struct sample *s)
{
    *(uint8_t *)s->inputs.data = 0x7f;
}

static void lock_set(struct sample *s)
{
    *(int32_t *)s->locks.data = 1;
}

static void one_lock(struct sample *s)
{
    s->locks.shape[0] = 1;
    s->locks.bytes = sizeof(int32_t);
}

static void bad_group(struct sample *s)
{
    s->layer.weight_scale_group_size = 24;
}

/* The caller frees these once. */
static void alias(struct sample *s)
{
    free(s->outputs.data);
    s->outputs = (struct hum_tensor){
        .dtype = HUM_F16, .rank = 2, .shape = {s->m, 120}, .bytes = (size_t)s->m * 120 * 2};
    s->outputs.data = s->inputs.data;
}

/* `count` values to a tensor of routing. */
static struct hum_tensor routing(int32_t dtype, const int32_t *values, int64_t count)
{
    const struct hum_tensor t = sample_tensor(dtype, count, 0, 1);

    for (int64_t i = 0; i < count; i++)
        if (dtype == HUM_INT64)
            ((int64_t *)t.data)[i] = values[i];
        else
            ((int32_t *)t.data)[i] = values[i];
    return t;
}

/* Blocks of experts 1, 2, none and 3; token 0 has expert 1 twice; padding is 20. */
static void route_indexed(struct sample *s)
{
    static const int32_t ids[64] = {0,  2,  1,  4,  6,  20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20,
                                    3,  8,  5,  7,  20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20,
                                    16, 17, 18, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20,
                                    9,  10, 11, 12, 13, 14, 15, 20, 20, 20, 20, 20, 20, 20, 20, 20};
    static const int32_t of[4] = {1, 2, -1, 3}, padded = 64;

    s->sorted_ids = routing(HUM_INT32, ids, 64);
    s->expert_ids = routing(HUM_INT32, of, 4);
    s->num_tokens_padded = routing(HUM_INT32, &padded, 1);
}

static void route_contiguous(struct sample *s)
{
    static const int32_t offsets[5] = {0, 5, 11, 21, 37};

    s->expert_layout = routing(HUM_INT32, offsets, 5);
}

static void route_masked(struct sample *s)
{
    static const int32_t counts[4] = {3, 0, 10, 9};

    s->expert_layout = routing(HUM_INT32, counts, 4);
}

static void route_wide(struct sample *s)
{
    static const int32_t counts[4] = {3, 0, 10, 9};

    s->expert_layout = routing(HUM_INT64, counts, 4);
}

/* ---- after the transform --------------------------------------------------------------------- */

/* A bias that the layer does not have. */
static void extra_bias(struct sample *s)
{
    s->kernel.bias = sample_tensor(HUM_F32, s->layer.shape_n, 0, 1);
    for (int64_t i = 0; i < s->layer.shape_n; i++)
        ((float *)s->kernel.bias.data)[i] = 100.0f;
}

static void no_bias(struct sample *s)
{
    s->layer.has_bias = false;
}

/* ---- table ----------------------------------------------------------------------------------- */

#define F(id) HUM_FAULT_##id

/* clang-format off */
const struct fault_sample fault_samples[] = {
    {F(NIBBLE_ORDER), plain, NULL, NULL},
    {F(NIBBLE_ORDER_ONE_BYTE), plain, NULL, NULL},
    {F(K_PAIR_SWAPPED), plain, NULL, NULL},
    {F(STRADDLE_BITS_LOST), bits_3, NULL, NULL},
    {F(SCALES_TRANSPOSED), plain, NULL, NULL},
    {F(M_MAJOR_IGNORED), e4m3, NULL, NULL},
    {F(ZERO_POINT_ORDER), plain, NULL, NULL},
    {F(PADDED_K_CONTRIBUTES), padded_k, NULL, NULL},
    {F(ZERO_POINT_PLUS_1), plain, NULL, NULL},
    {F(ZERO_POINT_PLUS_1_ONCE), plain, NULL, NULL},
    {F(ZERO_POINT_ADDED), plain, NULL, NULL},
    {F(ZERO_POINT_MISSING), plain, NULL, NULL},
    {F(ZERO_POINT_TWICE), plain, NULL, NULL},
    {F(ZERO_POINT_AFTER_SCALE), plain, NULL, NULL},
    {F(ZERO_POINT_WRAPS), plain, NULL, NULL},
    {F(ZERO_POINT_GROUP_0), plain, NULL, NULL},
    {F(FP_ZERO_POINT_FUSED), fp_zero_point, NULL, NULL},
    {F(FP_ZERO_POINT_SCALED), fp_zero_point, NULL, NULL},
    {F(CODE_15_AS_14), plain, NULL, NULL},
    {F(CODE_0_AS_8), plain, NULL, NULL},
    {F(TWOS_COMPLEMENT), symmetric, NULL, NULL},
    {F(WEIGHT_LSB_FLIPPED), plain, NULL, NULL},
    {F(INT8_MIN_AS_MINUS_127), int8, NULL, NULL},
    {F(E4M3_NAN_IS_480), e4m3, nan_code, NULL},
    {F(SUBNORMAL_WEIGHTS_FLUSHED), bf16_e8m0, scales_0, NULL},
    {F(WEIGHT_TRUNCATED), plain, NULL, NULL},
    {F(FUSED_DELTA_MINUS_1), fused, NULL, NULL},
    {F(FUSED_NOT_REQUANTIZED), fused, NULL, NULL},
    {F(FUSED_TIES_TO_EVEN), fused, NULL, NULL},
    {F(GROUP_INDEX_MINUS_1), plain, NULL, NULL},
    {F(GROUP_START_LATE), plain, NULL, NULL},
    {F(LAST_GROUP_PREVIOUS_SCALE), plain, NULL, NULL},
    {F(GROUP_SIZE_HALVED), plain, NULL, NULL},
    {F(GROUP_SIZE_DOUBLED), plain, NULL, NULL},
    {F(SCALE_POINTER_STUCK), plain, NULL, NULL},
    {F(SCALE_OF_NEIGHBOUR_COLUMN), plain, NULL, NULL},
    {F(SCALE_ONE_ULP), plain, NULL, NULL},
    {F(SCALE_MANTISSA_3_BITS), plain, NULL, NULL},
    {F(E8M0_BIAS_128), fused, NULL, NULL},
    {F(E8M0_FF_IS_INF), bf16_e8m0, scales_inf, NULL},
    {F(E8M0_00_IS_ZERO), bf16_e8m0, scales_0, NULL},
    {F(SCALE_128_IS_NAN), bf16_e8m0, scales_128, NULL},
    {F(RAW_SCALE_BYTE), few_columns, NULL, NULL},
    {F(SECOND_SCALE_MISSING), plain, NULL, NULL},
    {F(INPUT_SCALE_ROW_MINUS_1), e4m3, NULL, NULL},
    {F(INPUT_SCALE_GROUP_0), e4m3, NULL, NULL},
    {F(INPUT_SCALE_MISSING), e4m3_late, NULL, NULL},
    {F(K_LAST_DROPPED), plain, NULL, NULL},
    {F(K_LAST_8_DROPPED), plain, NULL, NULL},
    {F(K_LAST_32_DROPPED), plain, NULL, NULL},
    {F(K_BLOCK_TWICE), plain, NULL, NULL},
    {F(ACTIVATION_K_PLUS_1), plain, NULL, NULL},
    {F(K_ORDER_REVERSED), many_rows, NULL, NULL},
    {F(F16_ACCUMULATOR), plain, NULL, NULL},
    {F(F32_ACCUMULATOR), f16_accum, NULL, NULL},
    {F(ACCUMULATOR_13_BITS), plain, NULL, NULL},
    {F(INF_MINUS_INF_IS_0), plain, infinities, NULL},
    {F(FLUSH_AT_GROUP_END), e4m3_late_f16, NULL, NULL},
    {F(FLUSH_EACH_INSTRUCTION), e4m3_f16, NULL, NULL},
    {F(FLUSH_TWO_ROUNDINGS), e4m3_f16, NULL, NULL},
    {F(INT32_SATURATES), int_scale, largest, NULL},
    {F(K_WARPS_IN_ORDER), warps_4, NULL, NULL},
    {F(K_WARP_LOST), warps_4, NULL, NULL},
    {F(ACCUMULATOR_NOT_CLEARED), plain, NULL, NULL},
    {F(SLICES_IN_BF16), plain, NULL, NULL},
    {F(SLICE_ORDER_REVERSED), four_slices, NULL, NULL},
    {F(SLICE_LOST), plain, NULL, NULL},
    {F(OUTPUT_TRUNCATED), plain, NULL, NULL},
    {F(DOUBLE_ROUNDING), plain, NULL, NULL},
    {F(PREMATURE_ROUNDING), tensor_scale, NULL, NULL},
    {F(F32_SUBNORMALS_FLUSHED), bf16_e8m0, scales_0, NULL},
    {F(OVERFLOW_SATURATES), plain, large, NULL},
    {F(NAN_SWALLOWED), plain, nan_in_row_1, NULL},
    {F(BIAS_PER_SLICE), plain, NULL, NULL},
    {F(BIAS_MISSING_LAST_TILE), plain, NULL, NULL},
    {F(BIAS_INDEX_PLUS_1), plain, NULL, NULL},
    {F(BIAS_OTHER_FORMAT), plain, NULL, NULL},
    {F(BIAS_BEFORE_SCALE), plain, NULL, NULL},
    {F(LAST_ROW_READS_ROW_BEFORE), plain, NULL, NULL},
    {F(TAIL_ROW_NOT_WRITTEN), plain, NULL, NULL},
    {F(LAST_8_COLUMNS_NOT_WRITTEN), plain, NULL, NULL},
    {F(PARTIAL_TILE_NOT_WRITTEN), plain, NULL, NULL},
    {F(COLUMNS_SWAPPED), plain, NULL, NULL},
    {F(INDEX_16_BITS), many_rows, NULL, NULL},
    {F(WRITES_BEYOND_M), plain, NULL, NULL},
    {F(WRITES_BEYOND_N), plain, NULL, NULL},
    {F(TILE_DEPENDS_ON_M), many_rows, NULL, NULL},
    {F(ROW_DEPENDS_ON_PLACE), many_rows, NULL, NULL},
    {F(NEIGHBOUR_NAN_LEAKS), plain, nan_in_row_1, NULL},
    {F(RUN_TO_RUN_ORDER), four_slices, NULL, NULL},
    {F(STALE_STAGE), plain, NULL, NULL},
    {F(LATE_SLICE), plain, NULL, NULL},
    {F(WORKSPACE_NOT_CLEARED), plain, NULL, NULL},
    {F(LOCKS_OVERRUN), plain, NULL, NULL},
    {F(LOCKS_LEFT_SET), plain, NULL, NULL},
    {F(LOCKS_UNCHECKED), plain, lock_set, NULL},
    {F(INPUT_MODIFIED), plain, NULL, NULL},
    {F(BIAS_MODIFIED), plain, NULL, NULL},
    {F(GROUP_SIZE_ACCEPTED), plain, bad_group, NULL},
    {F(SMALL_LOCKS_ACCEPTED), plain, one_lock, NULL},
    {F(ALIAS_ACCEPTED), plain, alias, NULL},
    {F(EXTRA_TENSOR_ACCEPTED), no_bias, NULL, extra_bias},
    {F(LAUNCH_ERROR_LOST), no_bias, NULL, extra_bias},
    {F(KERNEL_OF_OTHER_CONFIG), plain, NULL, NULL},
    {F(HEURISTICS_IGNORE_N), few_columns, NULL, NULL},
    {F(ACCUMULATION_OF_TILE_0), plain, NULL, NULL},
    {F(WRONG_EXPERT_ONE_ROW), contiguous, route_contiguous, NULL},
    {F(WRONG_EXPERT_LAST_BLOCK), indexed, route_indexed, NULL},
    {F(TILE_CROSSES_EXPERTS), contiguous, route_contiguous, NULL},
    {F(LAST_EXPERT_TAIL_DROPPED), masked, route_masked, NULL},
    {F(LAST_EXPERT_TO_END), contiguous, route_contiguous, NULL},
    {F(BIAS_OF_EXPERT_0), indexed, route_indexed, NULL},
    {F(SCALE_OF_EXPERT_0), indexed, route_indexed, NULL},
    {F(ZERO_POINT_OF_EXPERT_0), indexed, route_indexed, NULL},
    {F(GLOBAL_SCALE_OF_EXPERT_0), indexed, route_indexed, NULL},
    {F(PADDED_ID_CLAMPED), indexed, route_indexed, NULL},
    {F(EMPTY_EXPERT_WRITES), masked, route_masked, NULL},
    {F(DUPLICATE_EXPERT_DROPPED), indexed, route_indexed, NULL},
    {F(MINUS_1_NOT_SKIPPED), indexed, route_indexed, NULL},
    {F(ROWS_BEYOND_COUNT), masked, route_masked, NULL},
    {F(LAYOUT_INT64_AS_INT32), masked, route_wide, NULL},
    {F(ID_NOT_DIVIDED), indexed, route_indexed, NULL},
    {F(INPUT_SCALE_OF_ID), indexed_e4m3, route_indexed, NULL},
};
/* clang-format on */

const int fault_samples_count = sizeof fault_samples / sizeof fault_samples[0];
