/* Public bugs of quantizers, packing, the weighted sum and buffers: see bug.h. */
#include "kernels/test/bug.h"

#include "kernels/cpu/ops.h"
#include "kernels/cpu/round.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A private copy of a tensor's bytes; NULL: no memory. */
static void *copy_of(const struct hum_tensor *t)
{
    void *data = aligned_alloc(64, t->bytes / 64 * 64 + 64);

    if (data && t->bytes)
        memcpy(data, t->data, t->bytes);
    return data;
}

static enum hum_code no_memory(char reason[HUM_REASON_BYTES])
{
    (void)snprintf(reason, HUM_REASON_BYTES, "there is no memory for a copy");
    return HUM_NO_MEMORY;
}

static float input_at(const struct hum_tensor *t, int64_t i)
{
    if (t->dtype == HUM_F32)
        return ((const float *)t->data)[i];
    return decode_16(t->dtype, ((const uint16_t *)t->data)[i]);
}

/* ---- quant_weight ---------------------------------------------------------------------------- */

static int64_t group_of(const struct hum_quant_weight_args *args)
{
    return args->group_size ? args->group_size : args->inputs.shape[1];
}

static bool is_zero_group(const struct hum_quant_weight_args *args, int64_t group)
{
    for (int64_t i = 0; i < group_of(args); i++)
        if (!(fabsf(input_at(&args->inputs, group * group_of(args) + i)) <= 0.0f))
            return false;
    return true;
}

/* A14, zero blocks: their scale is NaN. */
enum hum_code bug_zero_block(const struct hum_quant_weight_args *args,
                             char reason[HUM_REASON_BYTES])
{
    const enum hum_code rc = hum_cpu_ops.quant_weight(NULL, args, reason);

    if (rc || !args->has_scale)
        return rc;
    for (int64_t g = 0; g < args->scale.shape[0] * args->scale.shape[1]; g++) {
        if (!is_zero_group(args, g))
            continue;
        if (args->use_e8m0_scale)
            ((uint8_t *)args->scale.data)[g] = 0xff;
        else
            ((float *)args->scale.data)[g] = bits_float(0x7fc00000u);
    }
    return rc;
}

/* A76, order of clamps: the quotient is clamped to signed codes before the zero point is added. */
enum hum_code bug_early_clamp(const struct hum_quant_weight_args *args,
                              char reason[HUM_REASON_BYTES])
{
    const enum hum_code rc = hum_cpu_ops.quant_weight(NULL, args, reason);
    const float *scale, *zero;
    int32_t *codes;
    float top;

    if (rc || !args->has_zero_point || args->is_fp_zero_point || args->use_e8m0_scale)
        return rc;
    scale = args->scale.data;
    zero = args->zero_point.data;
    codes = args->codes.data;
    top = (float)((1 << hum_dtype_bits(args->target_dtype)) - 1);
    for (int64_t i = 0; i < args->codes.shape[0] * args->codes.shape[1]; i++) {
        const int64_t g = i / group_of(args);
        float q = rintf(input_at(&args->inputs, i) * (1.0f / scale[g]));

        q = fminf(fmaxf(q, -(top + 1.0f) / 2.0f), (top - 1.0f) / 2.0f);
        codes[i] = (int32_t)fminf(fmaxf(q + zero[g], 0.0f), top);
    }
    return rc;
}

/* ---- pack ------------------------------------------------------------------------------------ */

/* A70, sign extension: a code with its top bit set spoils the bits of the code after it. */
enum hum_code bug_sign_extension(const struct hum_pack_args *args, char reason[HUM_REASON_BYTES])
{
    struct hum_pack_args changed;
    int32_t *codes;
    enum hum_code rc;

    if (!args || !args->codes.data || args->bits < 2 || args->bits > 8)
        return hum_cpu_ops.pack(NULL, args, reason);
    changed = *args;
    changed.codes.data = copy_of(&args->codes);
    codes = changed.codes.data;
    if (!codes)
        return no_memory(reason);
    for (size_t i = args->codes.bytes / sizeof *codes; i-- > 1;)
        if (codes[i - 1] >> (args->bits - 1) & 1)
            codes[i] = -1;
    rc = hum_cpu_ops.pack(NULL, &changed, reason);
    free(codes);
    return rc;
}

/* ---- moe_fused_mul_sum ----------------------------------------------------------------------- */

static enum hum_code sum(const struct hum_moe_fused_mul_sum_args *args,
                         char reason[HUM_REASON_BYTES])
{
    return hum_cpu_ops.moe_fused_mul_sum(NULL, args, reason);
}

/* A04, id -1: it counts as an expert. */
enum hum_code bug_id_minus_one(const struct hum_moe_fused_mul_sum_args *args,
                               char reason[HUM_REASON_BYTES])
{
    struct hum_moe_fused_mul_sum_args changed;
    int32_t *ids;
    enum hum_code rc;

    if (!args || !args->topk_ids.data)
        return sum(args, reason);
    changed = *args;
    changed.topk_ids.data = copy_of(&args->topk_ids);
    ids = changed.topk_ids.data;
    if (!ids)
        return no_memory(reason);
    for (size_t i = 0; i < args->topk_ids.bytes / sizeof *ids; i++)
        ids[i] = ids[i] < 0 ? 0 : ids[i];
    rc = sum(&changed, reason);
    free(ids);
    return rc;
}

/* A53, weight twice: inputs and sums are both multiplied by it. */
enum hum_code bug_weight_twice(const struct hum_moe_fused_mul_sum_args *args,
                               char reason[HUM_REASON_BYTES])
{
    struct hum_moe_fused_mul_sum_args changed;
    float *weights;
    enum hum_code rc;

    if (!args || !args->weights.data)
        return sum(args, reason);
    changed = *args;
    changed.weights.data = copy_of(&args->weights);
    weights = changed.weights.data;
    if (!weights)
        return no_memory(reason);
    for (size_t i = 0; i < args->weights.bytes / sizeof *weights; i++)
        weights[i] *= weights[i];
    rc = sum(&changed, reason);
    free(weights);
    return rc;
}

/* A64, global for local ids: an expert whose local number is another one is left out. */
enum hum_code bug_global_ids(const struct hum_moe_fused_mul_sum_args *args,
                             char reason[HUM_REASON_BYTES])
{
    struct hum_moe_fused_mul_sum_args changed;
    int32_t *map;
    enum hum_code rc;

    if (!args || !args->expert_map.data)
        return sum(args, reason);
    changed = *args;
    changed.expert_map.data = copy_of(&args->expert_map);
    map = changed.expert_map.data;
    if (!map)
        return no_memory(reason);
    for (int32_t i = 0; i < (int32_t)(args->expert_map.bytes / sizeof *map); i++)
        map[i] = map[i] == i ? i : -1;
    rc = sum(&changed, reason);
    free(map);
    return rc;
}

/* ---- buffer_metas ---------------------------------------------------------------------------- */

/* A61, gate: the first product is taken to have two halves, also where the activation has none. */
enum hum_code bug_always_gated(const struct hum_experts_config *config,
                               struct hum_buffer_meta out[HUM_BUFFER_COUNT],
                               char reason[HUM_REASON_BYTES])
{
    const enum hum_code rc = hum_cpu_ops.buffer_metas(NULL, config, out, reason);
    struct hum_buffer_meta *first = &out[HUM_BUFFER_GATE_UP_OUTPUT];

    if (!rc && config->form == HUM_ACT_UNARY) {
        first->cols *= 2;
        first->bytes *= 2;
    }
    return rc;
}
