#include "kernels/cpu/op_check.h"
#include "kernels/cpu/op_number.h"
#include "kernels/cpu/ops.h"

#include "kernels/cpu/config.h"
#include "kernels/cpu/fault.h"
#include "kernels/cpu/format.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { CHUNK = 512 }; /* columns that are summed together */

static bool is_given(const struct hum_tensor *t)
{
    return t->data || t->bytes || t->rank;
}

/* Every id that looks into the map must lie in it, before anything is written. */
static enum hum_code check_ids(const struct hum_moe_fused_mul_sum_args *a,
                               char reason[HUM_REASON_BYTES])
{
    const int64_t count = a->inputs.shape[0] * a->inputs.shape[1];
    const int64_t experts = a->expert_map.shape[0];
    const int32_t *ids = a->topk_ids.data;

    for (int64_t i = 0; i < count; i++)
        if (ids[i] >= experts) {
            (void)snprintf(reason, HUM_REASON_BYTES,
                           "topk_ids holds %" PRId32 ", but expert_map has %" PRId64 " experts",
                           ids[i], experts);
            return HUM_INVALID;
        }
    return HUM_OK;
}

static enum hum_code check(const struct hum_moe_fused_mul_sum_args *a,
                           char reason[HUM_REASON_BYTES])
{
    const struct hum_tensor *in = &a->inputs, *map = &a->expert_map;
    const bool has_ids = is_given(&a->topk_ids), has_map = is_given(map);
    const struct op_rule rules[] = {
        {!op_is_real(in->dtype), "inputs must be float16, bfloat16 or float32"},
        {!op_shape_is_sane(in, 3),
         "inputs must have rank 3, sizes up to 2^31 and at most 2^40 elements"},
        {has_map && !has_ids, "expert_map needs topk_ids"},
        {has_map && !op_shape_is_sane(map, 1), "expert_map must have rank 1"},
    };

    if (op_check_rules(rules, sizeof rules / sizeof rules[0], reason))
        return HUM_INVALID;
    {
        const int64_t tokens = in->shape[0], k = in->shape[1], h = in->shape[2];
        const struct hum_tensor absent = {0};
        const struct op_tensor all[] = {
            {"inputs", in, op_want(in->dtype, 3, tokens, k, h), false},
            {"weights", &a->weights, op_want(HUM_F32, 2, tokens, k, 0), false},
            {"topk_ids", &a->topk_ids, has_ids ? op_want(HUM_INT32, 2, tokens, k, 0) : absent,
             false},
            {"expert_map", map, has_map ? op_want(HUM_INT32, 1, map->shape[0], 0, 0) : absent,
             false},
            {"outputs", &a->outputs, op_want(in->dtype, 2, tokens, h, 0), true},
        };

        if (op_check_tensors(all, sizeof all / sizeof all[0], reason))
            return HUM_INVALID;
    }
    return has_map ? check_ids(a, reason) : HUM_OK;
}

static bool takes_part(const struct hum_moe_fused_mul_sum_args *a, int64_t entry)
{
    const int32_t *ids = a->topk_ids.data, *map = a->expert_map.data;

    if (!ids)
        return true;
    if (ids[entry] < 0)
        return FAULT(SUM_MINUS_1_COUNTED);
    return FAULT(SUM_MAP_IGNORED) || !map || map[ids[entry]] >= 0;
}

/* One step of the sum of n columns: x times the weight is rounded, then the addition. */
static void add_entry(int32_t dtype, const float *x, float weight, int64_t n, float *acc)
{
    for (int64_t i = 0; i < n; i++) {
        const float product = FAULT(SUM_WEIGHT_TWICE) ? x[i] * weight * weight : x[i] * weight;

        acc[i] = FAULT(SUM_FUSED) ? fmaf(x[i], weight, acc[i]) : acc[i] + product;
    }
    for (int64_t i = 0; FAULT(SUM_IN_16_BITS) && dtype != HUM_F32 && i < n; i++)
        acc[i] = dtype == HUM_F16 ? round_f16(acc[i]) : round_bf16(acc[i]);
}

/* Columns [at, at + n) of one token. */
static void sum_chunk(const struct hum_moe_fused_mul_sum_args *a, int64_t token, int64_t at,
                      int64_t n)
{
    const int32_t dtype = a->inputs.dtype;
    const int64_t k = a->inputs.shape[1], h = a->inputs.shape[2];
    const char *inputs = a->inputs.data;
    char *outputs = a->outputs.data;
    const float *weights = a->weights.data;
    const int64_t count = FAULT(SUM_LAST_LOST) ? k - 1 : k;
    float x[CHUNK], acc[CHUNK] = {0};
    bool any = false;

    for (int64_t i = 0; i < count; i++) {
        const int64_t entry = token * k + (FAULT(SUM_REVERSED) ? k - 1 - i : i);

        if (!takes_part(a, entry))
            continue;
        op_load(dtype, inputs + format_bytes(dtype, entry * h + at), n, x);
        add_entry(dtype, x, weights[entry], n, acc);
        any = true;
    }
    if (FAULT(SUM_EMPTY_NOT_WRITTEN) && !any)
        return;
    op_store(dtype, acc, FAULT(SUM_TAIL_NOT_WRITTEN) ? n / 8 * 8 : n,
             outputs + format_bytes(dtype, token * h + at));
}

enum hum_code op_moe_fused_mul_sum(void *handle, const struct hum_moe_fused_mul_sum_args *args,
                                   char reason[HUM_REASON_BYTES])
{
    (void)handle;
    if (!args)
        return refuse(reason, HUM_INVALID, "the arguments are missing");
    if (check(args, reason))
        return HUM_INVALID;
    for (int64_t token = 0; token < args->inputs.shape[0]; token++)
        for (int64_t at = 0; at < args->inputs.shape[2]; at += CHUNK) {
            const int64_t left = args->inputs.shape[2] - at;

            sum_chunk(args, token, at, left < CHUNK ? left : CHUNK);
        }
    return HUM_OK;
}
