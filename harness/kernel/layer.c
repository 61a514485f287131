#include "harness/kernel/layer.h"

#include "harness/kernel/words.h"
#include "reference/dtype.h"

const struct dtype *layer_format(int64_t value)
{
    return &dtypes[value];
}

void layer_reference(const int64_t v[AX_COUNT], int64_t m, struct ref_gemm *out)
{
    static const enum ref_scale scales[] = {REF_SCALE_CHANNEL, REF_SCALE_GROUP, REF_SCALE_BLOCK,
                                            REF_SCALE_TENSOR};
    static const enum ref_scale_2 scales_2[] = {REF_SCALE_2_NONE, REF_SCALE_2_TENSOR,
                                                REF_SCALE_2_CHANNEL};
    static const enum ref_zero zeros[] = {REF_ZERO_NONE, REF_ZERO_INT, REF_ZERO_FLOAT};

    *out = (struct ref_gemm){
        .a = layer_format(v[AX_A]),
        .b = layer_format(v[AX_B]),
        .c = layer_format(v[AX_C]),
        .bs = layer_format(v[AX_BS]),
        .m = m,
        .experts = v[AX_EXPERTS] ? v[AX_EXPERTS] : 1,
        .n = v[AX_N],
        .k = v[AX_K],
        .scale = scales[v[AX_SCALE]],
        .scale_2 = scales_2[v[AX_SCALE_2]],
        .zero = zeros[v[AX_ZERO]],
        .group = v[AX_GROUP],
        .group_n = v[AX_GROUP_N] > 1 ? v[AX_GROUP_N] : 1,
        .input_group = v[AX_INPUT_GROUP],
        .has_bias = v[AX_BIAS] != 0,
        .f16_accum = v[AX_F16_ACCUM] != 0,
        .int_scale = v[AX_INT_SCALE] != 0,
        .fused_e8m0 = v[AX_FUSED] != 0,
    };
    out->fused_range = out->a->is_float ? 11 : 3;
}

void layer_fill(const int64_t v[AX_COUNT], struct ref_fill_spec *out)
{
    *out = (struct ref_fill_spec){.kind = (enum ref_fill)v[AX_FILL],
                                  .data = (enum ref_data)v[AX_DATA],
                                  .all_scales = v[AX_SCALES] != 0,
                                  .seed = (uint64_t)v[AX_SEED]};
}

static enum hum_mma_type mma_type(int64_t value)
{
    static const enum hum_mma_type types[] = {HUM_MMA_MMA, HUM_MMA_WGMMA, HUM_MMA_UMMA,
                                              HUM_MMA_MXMMA};

    return value == AXIS_AUTO ? HUM_MMA_AUTO : types[value];
}

void layer_config(const int64_t v[AX_COUNT], struct hum_layer_config *out)
{
    static const enum hum_scale_type scales[] = {HUM_SCALE_CHANNEL, HUM_SCALE_GROUP,
                                                 HUM_SCALE_BLOCK, HUM_SCALE_TENSOR};
    static const enum hum_scale_2_type scales_2[] = {HUM_SCALE_2_NONE, HUM_SCALE_2_TENSOR,
                                                     HUM_SCALE_2_CHANNEL};
    bool wide = layer_format(v[AX_A])->bits == 16;

    *out = (struct hum_layer_config){
        .shape_n = v[AX_N] + v[AX_PAD_N],
        .shape_k = v[AX_K] + v[AX_PAD_K],
        .pad_shape_n = v[AX_PAD_N],
        .pad_shape_k = v[AX_PAD_K],
        .num_experts = v[AX_EXPERTS],
        .a_dtype = dtype_id(layer_format(v[AX_A])),
        .b_dtype = dtype_id(layer_format(v[AX_B])),
        .c_dtype = dtype_id(layer_format(v[AX_C])),
        .bs_dtype = dtype_id(layer_format(v[AX_BS])),
        .as_dtype = wide ? HUM_NONE : HUM_F32,
        .input_scale_group_size = v[AX_INPUT_GROUP],
        .weight_scale_group_size = v[AX_GROUP],
        .weight_scale_group_size_n = v[AX_GROUP_N],
        .weight_scale_type = scales[v[AX_SCALE]],
        .weight_scale_2_type = scales_2[v[AX_SCALE_2]],
        .use_int_weight_scale = v[AX_INT_SCALE] != 0,
        .use_fused_e8m0_scale = v[AX_FUSED] != 0,
        .has_zero_point = v[AX_ZERO] != 0,
        .is_fp_zero_point = v[AX_ZERO] == 2,
        .has_bias = v[AX_BIAS] != 0,
        .mma_type = mma_type(v[AX_MMA]),
    };
    out->input_quant_mode = wide                ? HUM_QUANT_DISABLED
                            : v[AX_INPUT_GROUP] ? HUM_QUANT_DYNAMIC_GROUP
                                                : HUM_QUANT_DYNAMIC_TOKEN;
}

void layer_compute(const int64_t v[AX_COUNT], struct hum_compute_config *out)
{
    static const enum hum_gemm_type types[] = {
        HUM_GEMM_DENSE, HUM_GEMM_INDEXED, HUM_GEMM_GROUPED_CONTIGUOUS, HUM_GEMM_GROUPED_MASKED};

    *out = (struct hum_compute_config){.gemm_type = types[v[AX_GEMM_TYPE]],
                                       .use_f16_accum = v[AX_F16_ACCUM] != 0,
                                       .use_batch_invariant = v[AX_BATCH_INVARIANT] != 0,
                                       .use_m_major_input_scale =
                                           v[AX_SCALE_LAYOUT] == SCALES_M_MAJOR};
}

int32_t layer_layout_dtype(const int64_t v[AX_COUNT])
{
    return v[AX_LAYOUT_DTYPE] ? HUM_INT64 : HUM_INT32;
}

bool layer_states_tile(const int64_t v[AX_COUNT])
{
    return v[AX_BLOCK] != AXIS_AUTO && v[AX_WARP] != AXIS_AUTO;
}

/* clang-format off */
static const struct layer_copies copies[] = { /* by word of use_tma */
    /*                    cp_async mbarrier a b c scales bias as cast_a cast_b */
    [COPY_ASYNC]       = {true,  false, false, false, false, false, false, false, 1, 1},
    [COPY_TMA]         = {true,  true,  true,  true,  true,  true,  true,  false, 1, 1},
    [COPY_PLAIN]       = {false, false, false, false, false, false, false, false, 1, 1},
    [COPY_MBARRIER]    = {true,  true,  false, false, false, false, false, false, 1, 1},
    [COPY_TMA_A]       = {true,  true,  true,  false, false, false, false, false, 1, 1},
    [COPY_TMA_B]       = {true,  true,  false, true,  false, false, false, false, 1, 1},
    [COPY_TMA_A_B]     = {true,  true,  true,  true,  false, false, false, false, 1, 1},
    [COPY_TMA_C]       = {true,  true,  false, false, true,  false, false, false, 1, 1},
    [COPY_TMA_SCALES]  = {true,  true,  false, false, false, true,  false, false, 1, 1},
    [COPY_TMA_BIAS]    = {true,  true,  false, false, false, false, true,  false, 1, 1},
    [COPY_TMA_AS]      = {true,  true,  false, false, false, false, false, true,  1, 1},
    [COPY_MULTICAST_A] = {true,  true,  true,  true,  true,  true,  true,  false, 2, 1},
    [COPY_MULTICAST_B] = {true,  true,  true,  true,  true,  true,  true,  false, 1, 2},
};
/* clang-format on */

const struct layer_copies *layer_copies(const int64_t v[AX_COUNT])
{
    return &copies[v[AX_TMA]];
}

static void tuning_copies(const struct layer_copies *c, struct hum_tuning_config *out)
{
    out->use_cp_async = c->cp_async;
    out->use_mbarrier = c->mbarrier || out->use_warp_spec;
    out->use_tma_a = c->a;
    out->use_tma_b = c->b;
    out->use_tma_c = c->c;
    out->use_tma_bs = out->use_tma_bs2 = out->use_tma_bzp = c->scales;
    out->use_tma_bias = c->bias;
    out->use_tma_as = c->as;
    out->use_tma_as2 = false; /* of block-scaled instructions only */
    out->multi_cast_size_a = c->cast_a;
    out->multi_cast_size_b = c->cast_b;
}

void layer_tuning(const int64_t v[AX_COUNT], const struct hum_tuning_config *base,
                  struct hum_tuning_config *out)
{
    *out = *base;
    if (v[AX_TUNING] == TUNING_PROVIDER)
        return;
    out->use_pdl = false;
    if (v[AX_BLOCK] != AXIS_AUTO) {
        out->block_m = (int32_t)axis_tile_m(v[AX_BLOCK]);
        out->block_n = (int32_t)axis_tile_n(v[AX_BLOCK]);
        out->block_k = (int32_t)axis_tile_k(v[AX_BLOCK]);
    }
    if (v[AX_WARP] != AXIS_AUTO) {
        out->warp_m = (int32_t)axis_tile_m(v[AX_WARP]);
        out->warp_n = (int32_t)axis_tile_n(v[AX_WARP]);
        out->warp_k = (int32_t)axis_tile_k(v[AX_WARP]);
    }
    if (v[AX_STAGES] != AXIS_AUTO)
        out->num_stages = (int32_t)v[AX_STAGES];
    out->use_stream_k = v[AX_STREAM_K] != 0;
    out->num_sms = (int32_t)v[AX_NUM_SMS];
    out->num_ctas_per_sm = (int32_t)v[AX_CTAS];
    out->use_warp_spec = v[AX_WARP_SPEC] != 0;
    out->num_write_splits = (int32_t)v[AX_WRITE_SPLITS];
    out->raster_group_m = (int32_t)v[AX_RASTER];
    tuning_copies(layer_copies(v), out);
}
