#include "kernels/test/rule_provider.h"

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/op_number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

hum_provider_fn humcheck_provider;

bool rule_is_on(const char *name)
{
    const char *at = getenv("HUMCHECK_RULES");
    const size_t n = strlen(name);

    for (; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == n && !strncmp(at, name, n))
            return true;
    return false;
}

/* ---- block-scale-on-operand: group scales, each block's number in all of its rows ------------ */

static struct hum_layer_config as_groups(const struct hum_layer_config *layer)
{
    struct hum_layer_config l = *layer;

    if (!rule_is_on("block-scale-on-operand") || l.weight_scale_type != HUM_SCALE_BLOCK ||
        hum_dtype_bits(l.a_dtype) != 16)
        return l;
    l.weight_scale_type = HUM_SCALE_GROUP;
    l.weight_scale_group_size_n = 0;
    l.bs_dtype = l.a_dtype;
    return l;
}

static enum hum_code supports(void *handle, const struct hum_layer_config *layer,
                              const struct hum_compute_config *compute,
                              const struct hum_tuning_config *tuning, char reason[HUM_REASON_BYTES])
{
    const struct hum_layer_config l = as_groups(layer);

    return hum_cpu_provider.supports(handle, &l, compute, tuning, reason);
}

static enum hum_code heuristics(void *handle, const struct hum_layer_config *layer,
                                const struct hum_compute_config *compute, int64_t m,
                                struct hum_tuning_config *out, char reason[HUM_REASON_BYTES])
{
    const struct hum_layer_config l = as_groups(layer);

    return hum_cpu_provider.heuristics(handle, &l, compute, m, out, reason);
}

static enum hum_code transform_shapes(void *handle, const struct hum_layer_config *layer,
                                      struct hum_weights *out, char reason[HUM_REASON_BYTES])
{
    const struct hum_layer_config l = as_groups(layer);

    return hum_cpu_provider.transform_shapes(handle, &l, out, reason);
}

/* (blocks, groups) f32 to (n, groups) numbers of a, rounded to nearest. NULL: memory is out. */
static void *spread(const struct hum_layer_config *layer, const struct hum_tensor *blocks,
                    struct hum_tensor *out)
{
    const int64_t n = layer->shape_n - layer->pad_shape_n, groups = blocks->shape[1];
    const float *scale = blocks->data;
    const size_t bytes = (size_t)(n * groups) * sizeof(uint16_t);
    uint16_t *codes = aligned_alloc(64, bytes / 64 * 64 + 64);

    for (int64_t col = 0; codes && col < n; col++)
        op_store(layer->a_dtype, scale + col / layer->weight_scale_group_size_n * groups, groups,
                 codes + col * groups);
    *out = (struct hum_tensor){
        .data = codes, .dtype = layer->a_dtype, .rank = 2, .shape = {n, groups}, .bytes = bytes};
    return codes;
}

static enum hum_code transform(void *handle, const struct hum_layer_config *layer,
                               const struct hum_weights *standard, struct hum_weights *out,
                               char reason[HUM_REASON_BYTES])
{
    const struct hum_layer_config l = as_groups(layer);
    struct hum_weights w = *standard;
    enum hum_code rc;
    void *codes;

    if (l.weight_scale_type == layer->weight_scale_type)
        return hum_cpu_provider.transform(handle, layer, standard, out, reason);
    codes = spread(layer, &standard->weight_scale, &w.weight_scale);
    if (!codes) {
        (void)snprintf(reason, HUM_REASON_BYTES, "there is no memory for the scales");
        return HUM_NO_MEMORY;
    }
    rc = hum_cpu_provider.transform(handle, &l, &w, out, reason);
    free(codes);
    return rc;
}

static enum hum_code forward(void *handle, const struct hum_gemm_args *args,
                             char reason[HUM_REASON_BYTES])
{
    const struct hum_layer_config l = as_groups(args->layer);
    struct hum_gemm_args changed = *args;

    changed.layer = &l;
    return hum_cpu_provider.forward(handle, &changed, reason);
}

/* NOLINTNEXTLINE(readability-function-size): the contract has nine parameters */
static enum hum_code accumulation(void *handle, const struct hum_layer_config *layer,
                                  const struct hum_compute_config *compute,
                                  const struct hum_tuning_config *tuning, int64_t m, int64_t row,
                                  int64_t col, struct hum_accumulation *out,
                                  char reason[HUM_REASON_BYTES])
{
    const struct hum_layer_config l = as_groups(layer);

    return hum_cpu_provider.accumulation(handle, &l, compute, tuning, m, row, col, out, reason);
}

/* ---- operations ---- */

static enum hum_code quant_weight(void *handle, const struct hum_quant_weight_args *args,
                                  char reason[HUM_REASON_BYTES])
{
    const enum hum_code rc = hum_cpu_provider.ops->quant_weight(handle, args, reason);

    if (!rc)
        rule_quant_weight(args);
    return rc;
}

static enum hum_code process_input(void *handle, const struct hum_process_input_args *args,
                                   char reason[HUM_REASON_BYTES])
{
    static const char *const rules[] = {"extremes-by-side", "reciprocal-limit", "scales-round-up",
                                        "static-on-scale", "int4-saturates"};
    enum hum_code rc;
    bool any = false;

    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        any = any || rule_is_on(rules[i]);
    if (any && args && !rule_input_is_plain(args)) {
        (void)snprintf(reason, HUM_REASON_BYTES, "the rules of inputs are for plain calls only");
        return HUM_UNSUPPORTED;
    }
    rc = hum_cpu_provider.ops->process_input(handle, args, reason);
    if (!rc && any)
        rule_process_input(args);
    return rc;
}

static enum hum_code sum(void *handle, const struct hum_moe_fused_mul_sum_args *args,
                         char reason[HUM_REASON_BYTES])
{
    const enum hum_code rc = hum_cpu_provider.ops->moe_fused_mul_sum(handle, args, reason);

    if (!rc && rule_is_on("fused-sum"))
        rule_sum(args);
    return rc;
}

static const struct hum_ops operations = {
    .quant_weight = quant_weight, .process_input = process_input, .moe_fused_mul_sum = sum};

/* ---- the provider ---- */

static enum hum_code open_cpu(int threads, void **handle, char reason[HUM_REASON_BYTES])
{
    return hum_cpu_provider.open(threads, handle, reason);
}

static void close_cpu(void *handle)
{
    hum_cpu_provider.close(handle);
}

const struct hum_provider rule_provider = {.abi_version = HUM_ABI_VERSION,
                                           .name = "ruled",
                                           .version = "1",
                                           .device = "cpu",
                                           .open = open_cpu,
                                           .close = close_cpu,
                                           .supports = supports,
                                           .heuristics = heuristics,
                                           .transform_shapes = transform_shapes,
                                           .transform = transform,
                                           .forward = forward,
                                           .accumulation = accumulation,
                                           .ops = &operations};

const struct hum_provider *humcheck_provider(void)
{
    return &rule_provider;
}
