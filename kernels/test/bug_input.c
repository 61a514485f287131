/* Public bugs of the quantization of activations, made with the cpu provider: see bug.h. */
#include "kernels/test/bug.h"

#include "kernels/cpu/format.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/round.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static enum hum_code run(const struct hum_process_input_args *args, char reason[HUM_REASON_BYTES])
{
    return hum_cpu_ops.process_input(NULL, args, reason);
}

static enum hum_code no_memory(char reason[HUM_REASON_BYTES])
{
    (void)snprintf(reason, HUM_REASON_BYTES, "there is no memory for a copy");
    return HUM_NO_MEMORY;
}

/* Are the values that are quantized the inputs, row by row? */
static bool is_plain(const struct hum_process_input_args *args)
{
    return args && args->activation == HUM_ACT_NONE && args->hadamard_block_size == 0 &&
           args->layout == HUM_LAYOUT_NORMAL && args->inputs.bytes;
}

static int64_t count_of(const struct hum_process_input_args *args)
{
    return args->inputs.shape[0] * args->inputs.shape[1];
}

static float input_at(const struct hum_tensor *t, int64_t i)
{
    if (t->dtype == HUM_F32)
        return ((const float *)t->data)[i];
    return decode_16(t->dtype, ((const uint16_t *)t->data)[i]);
}

/* Runs with inputs that `change` has been at, in f32. */
static enum hum_code run_changed(const struct hum_process_input_args *args,
                                 float (*change)(const struct hum_process_input_args *args,
                                                 int64_t index, float value),
                                 char reason[HUM_REASON_BYTES])
{
    struct hum_process_input_args changed = *args;
    const size_t bytes = (size_t)count_of(args) * sizeof(float);
    float *values = aligned_alloc(64, bytes / 64 * 64 + 64);
    enum hum_code rc;

    if (!values)
        return no_memory(reason);
    for (int64_t i = 0; i < count_of(args); i++)
        values[i] = change(args, i, input_at(&args->inputs, i));
    changed.inputs.dtype = HUM_F32;
    changed.inputs.data = values;
    changed.inputs.bytes = bytes;
    rc = run(&changed, reason);
    free(values);
    return rc;
}

/* Runs a dynamic_token call as static_tensor with this scale, which all rows get. */
static enum hum_code run_with_scale(const struct hum_process_input_args *args, float scale,
                                    char reason[HUM_REASON_BYTES])
{
    struct hum_process_input_args changed = *args;
    float *tokens = args->token_scales.data;
    _Alignas(64) float one[16] = {scale};
    enum hum_code rc;

    changed.quant_mode = HUM_QUANT_STATIC_TENSOR;
    changed.token_scales = (struct hum_tensor){0};
    changed.static_scales = (struct hum_tensor){one, HUM_F32, 1, {1}, sizeof one[0]};
    rc = run(&changed, reason);
    for (int64_t i = 0; !rc && i < args->token_scales.shape[0]; i++)
        tokens[i] = scale;
    return rc;
}

/* The scale of a group is at least 1e-30 (docs/semantics-ops.md section 7), as e8m0 2^-99. */
enum { LEAST_E8M0 = 127 - 99 };

/* A13, smallest scales: the reciprocal of the least scale is infinite, data times it are NaN. */
enum hum_code bug_tiny_nan(const struct hum_process_input_args *args, char reason[HUM_REASON_BYTES])
{
    const enum hum_code rc = run(args, reason);
    const uint8_t *scales;
    uint8_t *out;

    if (rc || !is_plain(args) || args->quant_mode != HUM_QUANT_DYNAMIC_GROUP ||
        args->group_scale_dtype != HUM_E8M0 || args->quant_dtype != HUM_E4M3 ||
        args->scale_layout != HUM_SCALES_ROW_MAJOR)
        return rc;
    scales = args->group_scales.data;
    out = args->outputs.data;
    for (int64_t i = 0; i < count_of(args); i++) {
        const int64_t width = args->inputs.shape[1], pitch = args->group_scales.shape[1];

        if (scales[i / width * pitch + i % width / args->quant_group_size] <= LEAST_E8M0)
            out[i] = 0x7f;
    }
    return rc;
}

/* A19, overflow policy: beyond 464, where 448 is no longer the nearest, e4m3 is NaN. */
enum hum_code bug_overflow_nan(const struct hum_process_input_args *args,
                               char reason[HUM_REASON_BYTES])
{
    const enum hum_code rc = run(args, reason);
    uint8_t *out;
    float inverse;

    if (rc || !is_plain(args) || args->quant_mode != HUM_QUANT_STATIC_TENSOR ||
        args->quant_dtype != HUM_E4M3)
        return rc;
    out = args->outputs.data;
    inverse = 1.0f / *(const float *)args->static_scales.data;
    for (int64_t i = 0; i < count_of(args); i++)
        if (fabsf(input_at(&args->inputs, i) * inverse) > 464.0f)
            out[i] = 0x7f;
    return rc;
}

static float nudge(const struct hum_process_input_args *args, int64_t index, float value)
{
    (void)args;
    (void)index;
    return isfinite(value) && fpclassify(value) == FP_NORMAL ? bits_float(float_bits(value) + 1)
                                                             : value;
}

/* A20, ties: exact midpoints of e2m1 go away from zero. */
enum hum_code bug_ties_away(const struct hum_process_input_args *args,
                            char reason[HUM_REASON_BYTES])
{
    if (!is_plain(args) || args->quant_mode != HUM_QUANT_STATIC_TENSOR ||
        args->quant_dtype != HUM_E2M1)
        return run(args, reason);
    return run_changed(args, nudge, reason);
}

/* A22, padding of scales: 8-bit scales are padded to four a row, only the real ones are written. */
enum hum_code bug_scale_padding(const struct hum_process_input_args *args,
                                char reason[HUM_REASON_BYTES])
{
    const struct hum_tensor *t = args ? &args->group_scales : NULL;
    uint8_t *scales, *before;
    int64_t groups;
    enum hum_code rc;

    if (!is_plain(args) || args->quant_group_size <= 0 || t->bytes == 0 ||
        args->scale_layout != HUM_SCALES_ROW_MAJOR || hum_dtype_bits(args->group_scale_dtype) != 8)
        return run(args, reason);
    groups = (args->inputs.shape[1] + args->quant_group_size - 1) / args->quant_group_size;
    scales = t->data;
    before = malloc(t->bytes);
    if (!before)
        return no_memory(reason);
    memcpy(before, scales, t->bytes);
    rc = run(args, reason);
    for (size_t i = 0; !rc && i < t->bytes; i++)
        if ((int64_t)i % t->shape[1] >= groups)
            scales[i] = before[i];
    free(before);
    return rc;
}

static bool is_token(const struct hum_process_input_args *args)
{
    return args && args->quant_mode == HUM_QUANT_DYNAMIC_TOKEN && args->token_scales.bytes &&
           args->layout == HUM_LAYOUT_NORMAL;
}

/* A37, one scale for all: a row's codes depend on the largest value of any row. */
enum hum_code bug_shared_scale(const struct hum_process_input_args *args,
                               char reason[HUM_REASON_BYTES])
{
    const enum hum_code rc = run(args, reason);
    const float *tokens;
    float most = 0.0f;

    if (rc || !is_token(args))
        return rc;
    tokens = args->token_scales.data;
    for (int64_t i = 0; i < args->token_scales.shape[0]; i++)
        most = fmaxf(most, tokens[i]);
    return run_with_scale(args, most, reason);
}

/* A41, quantizer: from 9 rows on all scales are zero. */
enum hum_code bug_zero_scales(const struct hum_process_input_args *args,
                              char reason[HUM_REASON_BYTES])
{
    const enum hum_code rc = run(args, reason);

    if (!rc && is_token(args) && args->token_scales.shape[0] > 8)
        memset(args->token_scales.data, 0, args->token_scales.bytes);
    return rc;
}

static float huge_at_the_end(const struct hum_process_input_args *args, int64_t index, float value)
{
    return (index + 1) % args->inputs.shape[1] == 0 ? 1e30f : value;
}

/* A49, last block: the largest value of a short group at the end of a row includes what follows. */
enum hum_code bug_block_tail(const struct hum_process_input_args *args,
                             char reason[HUM_REASON_BYTES])
{
    if (!is_plain(args) || args->quant_mode != HUM_QUANT_DYNAMIC_GROUP ||
        args->inputs.shape[1] % args->quant_group_size == 0)
        return run(args, reason);
    return run_changed(args, huge_at_the_end, reason);
}

/* A62, path not taken: what should be quantized by row is only converted. */
enum hum_code bug_not_quantized(const struct hum_process_input_args *args,
                                char reason[HUM_REASON_BYTES])
{
    return is_token(args) ? run_with_scale(args, 1.0f, reason) : run(args, reason);
}
