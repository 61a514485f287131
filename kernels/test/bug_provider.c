/* bug_provider.c - the cpu provider as a shared library, wrong in the way of one public bug report.
 *
 * HUMCHECK_BUG names the report (the table below); unset or anything else: it computes correctly.
 * tests/bugs shows that a suite finds each of them.
 */
#include "kernels/test/bug.h"

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

hum_provider_fn humcheck_provider;

/* clang-format off */
static const struct bug bugs[] = {
    {.id = "A01", .after = bug_narrow_index},
    {.id = "A02", .inputs = bug_drop_half_tile},
    {.id = "A04", .sum = bug_id_minus_one},
    {.id = "A05", .after = bug_other_buffer},
    {.id = "A07", .kernel = bug_zero_of_expert_0},
    {.id = "A08", .kernel = bug_zero_minus_one},
    {.id = "A10", .change = bug_epilogue_without_scale, .after = bug_scale_last},
    {.id = "A11", .kernel = bug_scale_unsigned},
    {.id = "A13", .process = bug_tiny_nan},
    {.id = "A14", .quant = bug_zero_block},
    {.id = "A16", .kernel = bug_e8m0_shifted},
    {.id = "A17", .kernel = bug_scale_128},
    {.id = "A19", .process = bug_overflow_nan},
    {.id = "A20", .process = bug_ties_away},
    {.id = "A22", .process = bug_scale_padding},
    {.id = "A23", .after = bug_rows_behind},
    {.id = "A25", .after = bug_nan_behind},
    {.id = "A26", .after = bug_masked_rows},
    {.id = "A28", .after = bug_locks_overrun},
    {.id = "A29", .after = bug_locks_dirty},
    {.id = "A31", .after = bug_replay_stale},
    {.id = "A32", .after = bug_patch},
    {.id = "A34", .inputs = bug_drop_late_slice},
    {.id = "A35", .change = bug_other_workers},
    {.id = "A37", .kernel = bug_scale_of_expert_0, .process = bug_shared_scale},
    {.id = "A38", .change = bug_k_warps_by_m},
    {.id = "A40", .after = bug_tile},
    {.id = "A41", .process = bug_zero_scales},
    {.id = "A44", .after = bug_next_row},
    {.id = "A46", .kernel = bug_scale_pitch},
    {.id = "A47", .inputs = bug_scale_behind},
    {.id = "A49", .process = bug_block_tail},
    {.id = "A50", .change = bug_other_format},
    {.id = "A52", .after = bug_grid_limit},
    {.id = "A53", .sum = bug_weight_twice},
    {.id = "A55", .change = bug_any_pitch},
    {.id = "A56", .lacks = bug_lacks_odd_n},
    {.id = "A59", .after = bug_bias_again},
    {.id = "A61", .buffers = bug_always_gated},
    {.id = "A62", .process = bug_not_quantized},
    {.id = "A64", .sum = bug_global_ids},
    {.id = "A65", .kernel = bug_scale_first},
    {.id = "A67", .after = bug_replay_nothing},
    {.id = "A70", .pack = bug_sign_extension},
    {.id = "A71", .inputs = bug_minus_zero},
    {.id = "A73", .change = bug_no_zero_of_one_row},
    {.id = "A76", .quant = bug_early_clamp},
    {.id = "A77", .kernel = bug_zero_raw},
};
/* clang-format on */

static const struct bug none;

static const struct bug *chosen(void)
{
    const char *id = getenv("HUMCHECK_BUG");

    for (size_t i = 0; id && i < sizeof bugs / sizeof bugs[0]; i++)
        if (strcmp(bugs[i].id, id) == 0)
            return &bugs[i];
    return &none;
}

static enum hum_code out_of_memory(char reason[HUM_REASON_BYTES])
{
    (void)snprintf(reason, HUM_REASON_BYTES, "there is no memory for a copy");
    return HUM_NO_MEMORY;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct open_bug {
    void *cpu;
    unsigned launches;
};

static enum hum_code bug_open(int threads, void **handle, char reason[HUM_REASON_BYTES])
{
    struct open_bug *b = calloc(1, sizeof *b);
    enum hum_code rc;

    if (!b)
        return out_of_memory(reason);
    rc = hum_cpu_provider.open(threads, &b->cpu, reason);
    if (rc)
        free(b);
    else
        *handle = b;
    return rc;
}

static void bug_close(void *handle)
{
    struct open_bug *b = handle;

    hum_cpu_provider.close(b->cpu);
    free(b);
}

/* ---- products -------------------------------------------------------------------------------- */

static bool lacks(const struct hum_layer_config *layer, char reason[HUM_REASON_BYTES])
{
    const struct bug *bug = chosen();

    if (!layer || !bug->lacks || !bug->lacks(layer))
        return false;
    (void)snprintf(reason, HUM_REASON_BYTES, "the shape is no multiple of a tile");
    return true;
}

static enum hum_code bug_supports(void *handle, const struct hum_layer_config *layer,
                                  const struct hum_compute_config *compute,
                                  const struct hum_tuning_config *tuning,
                                  char reason[HUM_REASON_BYTES])
{
    const struct open_bug *b = handle;

    if (lacks(layer, reason))
        return HUM_UNSUPPORTED;
    return hum_cpu_provider.supports(b->cpu, layer, compute, tuning, reason);
}

static enum hum_code bug_heuristics(void *handle, const struct hum_layer_config *layer,
                                    const struct hum_compute_config *compute, int64_t m,
                                    struct hum_tuning_config *out, char reason[HUM_REASON_BYTES])
{
    const struct open_bug *b = handle;

    if (lacks(layer, reason))
        return HUM_UNSUPPORTED;
    return hum_cpu_provider.heuristics(b->cpu, layer, compute, m, out, reason);
}

static enum hum_code bug_transform_shapes(void *handle, const struct hum_layer_config *layer,
                                          struct hum_weights *out, char reason[HUM_REASON_BYTES])
{
    const struct open_bug *b = handle;

    return hum_cpu_provider.transform_shapes(b->cpu, layer, out, reason);
}

static enum hum_code bug_transform(void *handle, const struct hum_layer_config *layer,
                                   const struct hum_weights *standard, struct hum_weights *out,
                                   char reason[HUM_REASON_BYTES])
{
    const struct open_bug *b = handle;
    const struct bug *bug = chosen();
    const enum hum_code rc = hum_cpu_provider.transform(b->cpu, layer, standard, out, reason);

    if (!rc && bug->kernel)
        bug->kernel(layer, out);
    return rc;
}

static bool copy(struct hum_tensor *t)
{
    void *data;

    if (!t->data || !t->bytes)
        return true;
    data = aligned_alloc(64, t->bytes / 64 * 64 + 64);
    if (data)
        memcpy(data, t->data, t->bytes);
    t->data = data;
    return data;
}

static enum hum_code forward_changed(void *cpu, const struct hum_gemm_args *args, unsigned launch,
                                     char reason[HUM_REASON_BYTES])
{
    struct bug_call call = {*args->layer,   *args->compute, *args->tuning,
                            *args->weights, *args,          aligned_alloc(64, BUG_OWN_BYTES)};
    enum hum_code rc;

    if (!call.own)
        return out_of_memory(reason);
    memset(call.own, 0, BUG_OWN_BYTES);
    call.args.layer = &call.layer;
    call.args.compute = &call.compute;
    call.args.tuning = &call.tuning;
    call.args.weights = &call.weights;
    chosen()->change(&call, launch);
    rc = hum_cpu_provider.forward(cpu, &call.args, reason);
    free(call.own);
    return rc;
}

static enum hum_code forward_inputs(void *cpu, const struct hum_gemm_args *args, unsigned launch,
                                    char reason[HUM_REASON_BYTES])
{
    struct hum_gemm_args changed = *args;
    enum hum_code rc = HUM_NO_MEMORY;

    if (!copy(&changed.inputs))
        return out_of_memory(reason);
    if (copy(&changed.input_scale)) {
        if (changed.inputs.bytes)
            chosen()->inputs(&changed, launch);
        rc = hum_cpu_provider.forward(cpu, &changed, reason);
        if (changed.input_scale.data != args->input_scale.data)
            free(changed.input_scale.data);
    } else {
        (void)out_of_memory(reason);
    }
    if (changed.inputs.data != args->inputs.data)
        free(changed.inputs.data);
    return rc;
}

static enum hum_code forward_going_in(void *cpu, const struct hum_gemm_args *args, unsigned launch,
                                      char reason[HUM_REASON_BYTES])
{
    const struct bug *bug = chosen();

    if (bug->change)
        return forward_changed(cpu, args, launch, reason);
    if (bug->inputs)
        return forward_inputs(cpu, args, launch, reason);
    return hum_cpu_provider.forward(cpu, args, reason);
}

/* A call that lacks something goes on as it is, to be refused. */
static bool is_whole(const struct hum_gemm_args *args)
{
    return args && args->layer && args->compute && args->tuning && args->weights &&
           args->inputs.data && args->outputs.data;
}

static enum hum_code bug_forward(void *handle, const struct hum_gemm_args *args,
                                 char reason[HUM_REASON_BYTES])
{
    struct open_bug *b = handle;
    const unsigned launch = b->launches++;
    struct hum_tensor before;
    enum hum_code rc;

    if (!is_whole(args))
        return hum_cpu_provider.forward(b->cpu, args, reason);
    before = args->outputs;
    if (!copy(&before))
        return out_of_memory(reason);
    rc = forward_going_in(b->cpu, args, launch, reason);
    if (!rc && chosen()->after && args->outputs.bytes)
        chosen()->after(args, before.data, launch);
    if (before.data != args->outputs.data)
        free(before.data);
    return rc;
}

/* NOLINTNEXTLINE(readability-function-size): the contract has nine parameters */
static enum hum_code bug_accumulation(void *handle, const struct hum_layer_config *layer,
                                      const struct hum_compute_config *compute,
                                      const struct hum_tuning_config *tuning, int64_t m,
                                      int64_t row, int64_t col, struct hum_accumulation *out,
                                      char reason[HUM_REASON_BYTES])
{
    const struct open_bug *b = handle;

    return hum_cpu_provider.accumulation(b->cpu, layer, compute, tuning, m, row, col, out, reason);
}

/* ---- the other operations -------------------------------------------------------------------- */

static enum hum_code ops_quant_weight(void *handle, const struct hum_quant_weight_args *args,
                                      char reason[HUM_REASON_BYTES])
{
    const struct bug *bug = chosen();

    (void)handle;
    return bug->quant ? bug->quant(args, reason) : op_quant_weight(NULL, args, reason);
}

static enum hum_code ops_pack(void *handle, const struct hum_pack_args *args,
                              char reason[HUM_REASON_BYTES])
{
    const struct bug *bug = chosen();

    (void)handle;
    return bug->pack ? bug->pack(args, reason) : op_pack(NULL, args, reason);
}

static enum hum_code ops_process_input(void *handle, const struct hum_process_input_args *args,
                                       char reason[HUM_REASON_BYTES])
{
    const struct bug *bug = chosen();

    (void)handle;
    return bug->process ? bug->process(args, reason) : op_process_input(NULL, args, reason);
}

static enum hum_code ops_sum(void *handle, const struct hum_moe_fused_mul_sum_args *args,
                             char reason[HUM_REASON_BYTES])
{
    const struct bug *bug = chosen();

    (void)handle;
    return bug->sum ? bug->sum(args, reason) : op_moe_fused_mul_sum(NULL, args, reason);
}

static enum hum_code ops_buffers(void *handle, const struct hum_experts_config *config,
                                 struct hum_buffer_meta out[HUM_BUFFER_COUNT],
                                 char reason[HUM_REASON_BYTES])
{
    const struct bug *bug = chosen();

    (void)handle;
    return bug->buffers ? bug->buffers(config, out, reason)
                        : op_buffer_metas(NULL, config, out, reason);
}

static const struct hum_ops ops = {
    .quant_weight = ops_quant_weight,
    .dequant_weight = op_dequant_weight,
    .pack = ops_pack,
    .unpack = op_unpack,
    .process_mxfp4 = op_process_mxfp4,
    .process_input = ops_process_input,
    .hadamard = op_hadamard,
    .moe_fused_mul_sum = ops_sum,
    .buffer_metas = ops_buffers,
};

static const char *const inert_tuning[] = {"num_stages", NULL};

static const struct hum_provider provider = {
    .abi_version = HUM_ABI_VERSION,
    .name = "bug",
    .version = "1",
    .device = "cpu",
    .open = bug_open,
    .close = bug_close,
    .supports = bug_supports,
    .heuristics = bug_heuristics,
    .transform_shapes = bug_transform_shapes,
    .transform = bug_transform,
    .forward = bug_forward,
    .accumulation = bug_accumulation,
    .ops = &ops,
    .inert_tuning = inert_tuning,
};

const struct hum_provider *humcheck_provider(void)
{
    return &provider;
}
