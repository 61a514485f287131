#include "kernels/cpu/epilogue.h"

#include "kernels/cpu/config.h"
#include "kernels/cpu/fault.h"
#include "kernels/cpu/fault_effects.h"
#include "kernels/cpu/round.h"

struct epilogue epilogue_make(const struct hum_gemm_args *args, const struct hum_weights *weights)
{
    const struct hum_layer_config *l = args->layer;
    const struct facts f = config_facts(l);
    const float *scale = weights->weight_scale.data, *scale_2 = weights->weight_scale_2.data;
    const bool channel_2 = l->weight_scale_2_type == HUM_SCALE_2_CHANNEL;
    struct epilogue e = {.c_dtype = l->c_dtype,
                         .f16_accum = args->compute->use_f16_accum && !FAULT(F32_ACCUMULATOR)};

    if (f.fused && f.is_int)
        e.power = scale + f.padded_groups * l->shape_n;
    if (f.input_scale_epilogue && !FAULT(INPUT_SCALE_MISSING))
        e.input_scale = args->input_scale.data;
    if (f.has_tensor_factor)
        e.tensor = l->weight_scale_type == HUM_SCALE_TENSOR ? scale
                   : channel_2                              ? scale_2 + l->shape_n
                                                            : scale_2;
    if (f.has_channel_factor)
        e.channel = l->weight_scale_type == HUM_SCALE_CHANNEL ? scale : scale_2;
    e.bias = weights->bias.data;
    if (FAULT(KERNEL_OF_OTHER_CONFIG) && !fault_first_has_bias(l))
        e.bias = NULL;
    return e;
}

/* The f32 factor of a row, rounded as the accumulator is; false: there is none. */
static bool row_factor(const struct epilogue *e, int64_t row, float *out)
{
    const bool f16 = e->f16_accum;
    float as = e->input_scale ? e->input_scale[row] : 1.0f, t = e->tensor ? *e->tensor : 1.0f;

    if (f16) {
        as = round_f16(as);
        t = round_f16(t);
    }
    if (e->input_scale && e->tensor)
        *out = f16 ? round_f16(as * t) : as * t;
    else
        *out = e->input_scale ? as : t;
    return e->input_scale || e->tensor;
}

/* Every step rounds to f16; products and sums of f16 numbers in f32 are exact or round innocuously
 * (24 is at least 2 x 11 + 2; Figueroa, 1995). */
static void finish_f16(const struct epilogue *e, int64_t row, int64_t col, int64_t count,
                       const float *bias, float *x)
{
    float factor;

    if (row_factor(e, row, &factor))
        for (int64_t j = 0; j < count; j++)
            x[j] = round_f16(x[j] * factor);
    if (FAULT(BIAS_BEFORE_SCALE) && e->channel && bias) {
        fault_bias_before_scale(HUM_F16, e->channel + col, bias, count, x);
        return;
    }
    if (e->channel)
        for (int64_t j = 0; j < count; j++)
            x[j] = round_f16(x[j] * e->channel[col + j]);
    if (bias)
        for (int64_t j = 0; j < count; j++)
            x[j] = round_f16(x[j] + bias[j]);
}

/* Step 2 of section 5. */
CPU_INLINE float to_output(int32_t c, float x)
{
    if (FAULT(OUTPUT_TRUNCATED))
        return fault_truncate(c, x);
    if (FAULT(DOUBLE_ROUNDING) && c == HUM_F16)
        return round_f16(round_bf16(x));
    if (FAULT(F32_SUBNORMALS_FLUSHED) && (x < 0.0f ? -x : x) < 0x1p-126f)
        return 0.0f;
    return round_16(c, x);
}

static void finish_f32(const struct epilogue *e, int64_t row, int64_t col, int64_t count,
                       const float *bias, float *x)
{
    const int32_t c = e->c_dtype;
    float factor;

    if (FAULT(PREMATURE_ROUNDING))
        for (int64_t j = 0; j < count; j++)
            x[j] = round_16(c, x[j]);
    if (e->power)
        for (int64_t j = 0; j < count; j++)
            x[j] *= e->power[col + j];
    if (row_factor(e, row, &factor))
        for (int64_t j = 0; j < count; j++)
            x[j] *= factor;
    for (int64_t j = 0; j < count; j++)
        x[j] = to_output(c, x[j]);
    if (FAULT(BIAS_BEFORE_SCALE) && e->channel && bias)
        fault_bias_before_scale(c, e->channel + col, bias, count, x);
    else if (e->channel && bias)
        for (int64_t j = 0; j < count; j++)
            x[j] = fma_16(c, x[j], e->channel[col + j], bias[j]);
    else if (e->channel)
        for (int64_t j = 0; j < count; j++)
            x[j] = round_16(c, x[j] * e->channel[col + j]);
    else if (bias)
        for (int64_t j = 0; j < count; j++)
            x[j] = round_16(c, x[j] + bias[j]);
}

void epilogue_row(const struct epilogue *e, int64_t row, int64_t col, int64_t count, bool with_bias,
                  float *x)
{
    const float *bias = with_bias && e->bias ? e->bias + col : NULL;

    if (e->f16_accum)
        finish_f16(e, row, col, count, bias, x);
    else
        finish_f32(e, row, col, count, bias, x);
}
