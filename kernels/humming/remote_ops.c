#include "kernels/humming/fields.h"
#include "kernels/humming/remote.h"

#include <cjson/cJSON.h>

/* A tensor of an operation's arguments and its name on the wire. */
struct part {
    const char *name;
    size_t offset;
};

static const struct hum_tensor *part_of(const void *args, const struct part *p)
{
    return (const void *)((const char *)args + p->offset);
}

/* Sends {"op": name, members, "tensors": {...}}. `members` may be NULL. */
static enum hum_code operate(void *handle, const char *name, const struct fields *members,
                             const void *args, const struct part *parts, size_t count,
                             char reason[HUM_REASON_BYTES])
{
    cJSON *request, *tensors;
    bool ok;

    if (!args) {
        (void)snprintf(reason, HUM_REASON_BYTES, "the arguments are missing");
        return HUM_INVALID;
    }
    for (size_t i = 0; i < count; i++)
        if (!remote_alive(handle, part_of(args, &parts[i])->data, reason))
            return HUM_NO_MEMORY;
    request = remote_request(name);
    tensors = request ? cJSON_AddObjectToObject(request, "tensors") : NULL;
    ok = tensors && (!members || fields_add(request, members, args));

    for (size_t i = 0; ok && i < count; i++)
        ok = tensor_add(tensors, parts[i].name, part_of(args, &parts[i]));
    if (!ok) {
        cJSON_Delete(request);
        request = NULL;
    }
    return remote_call(handle, request, reason);
}

#define OPERATE(name, members, parts) \
    operate(handle, name, members, args, parts, sizeof(parts) / sizeof(parts)[0], reason)

static enum hum_code quant_weight(void *handle, const struct hum_quant_weight_args *args,
                                  char reason[HUM_REASON_BYTES])
{
    static const struct part parts[] = {
        {"inputs", offsetof(struct hum_quant_weight_args, inputs)},
        {"codes", offsetof(struct hum_quant_weight_args, codes)},
        {"scale", offsetof(struct hum_quant_weight_args, scale)},
        {"zero_point", offsetof(struct hum_quant_weight_args, zero_point)}};

    return OPERATE("quant_weight", &quant_weight_fields, parts);
}

static enum hum_code dequant_weight(void *handle, const struct hum_dequant_weight_args *args,
                                    char reason[HUM_REASON_BYTES])
{
    static const struct field row = {"source_dtype", FIELD_INT32,
                                     offsetof(struct hum_dequant_weight_args, source_dtype)};
    static const struct fields members = {&row, 1};
    static const struct part parts[] = {
        {"codes", offsetof(struct hum_dequant_weight_args, codes)},
        {"outputs", offsetof(struct hum_dequant_weight_args, outputs)}};

    return OPERATE("dequant_weight", &members, parts);
}

static const struct field pack_row = {"bits", FIELD_INT32, offsetof(struct hum_pack_args, bits)};
static const struct fields pack_members = {&pack_row, 1};

static enum hum_code pack(void *handle, const struct hum_pack_args *args,
                          char reason[HUM_REASON_BYTES])
{
    static const struct part parts[] = {{"codes", offsetof(struct hum_pack_args, codes)},
                                        {"packed", offsetof(struct hum_pack_args, packed)}};

    return OPERATE("pack", &pack_members, parts);
}

static enum hum_code unpack(void *handle, const struct hum_pack_args *args,
                            char reason[HUM_REASON_BYTES])
{
    static const struct part parts[] = {{"codes", offsetof(struct hum_pack_args, codes)},
                                        {"packed", offsetof(struct hum_pack_args, packed)}};

    return OPERATE("unpack", &pack_members, parts);
}

static enum hum_code process_mxfp4(void *handle, const struct hum_process_mxfp4_args *args,
                                   char reason[HUM_REASON_BYTES])
{
    static const struct part parts[] = {
        {"weight", offsetof(struct hum_process_mxfp4_args, weight)},
        {"scale", offsetof(struct hum_process_mxfp4_args, scale)},
        {"factor", offsetof(struct hum_process_mxfp4_args, factor)}};

    return OPERATE("process_mxfp4", &mxfp4_fields, parts);
}

static enum hum_code process_input(void *handle, const struct hum_process_input_args *args,
                                   char reason[HUM_REASON_BYTES])
{
    static const struct part parts[] = {
        {"inputs", offsetof(struct hum_process_input_args, inputs)},
        {"static_scales", offsetof(struct hum_process_input_args, static_scales)},
        {"expert_layout", offsetof(struct hum_process_input_args, expert_layout)},
        {"indices", offsetof(struct hum_process_input_args, indices)},
        {"outputs", offsetof(struct hum_process_input_args, outputs)},
        {"group_scales", offsetof(struct hum_process_input_args, group_scales)},
        {"token_scales", offsetof(struct hum_process_input_args, token_scales)}};

    return OPERATE("process_input", &input_fields, parts);
}

static enum hum_code hadamard(void *handle, const struct hum_hadamard_args *args,
                              char reason[HUM_REASON_BYTES])
{
    static const struct field row = {"block_size", FIELD_INT64,
                                     offsetof(struct hum_hadamard_args, block_size)};
    static const struct fields members = {&row, 1};
    static const struct part parts[] = {{"inputs", offsetof(struct hum_hadamard_args, inputs)},
                                        {"outputs", offsetof(struct hum_hadamard_args, outputs)}};

    return OPERATE("hadamard", &members, parts);
}

static enum hum_code moe_fused_mul_sum(void *handle, const struct hum_moe_fused_mul_sum_args *args,
                                       char reason[HUM_REASON_BYTES])
{
    static const struct part parts[] = {
        {"inputs", offsetof(struct hum_moe_fused_mul_sum_args, inputs)},
        {"weights", offsetof(struct hum_moe_fused_mul_sum_args, weights)},
        {"topk_ids", offsetof(struct hum_moe_fused_mul_sum_args, topk_ids)},
        {"expert_map", offsetof(struct hum_moe_fused_mul_sum_args, expert_map)},
        {"outputs", offsetof(struct hum_moe_fused_mul_sum_args, outputs)}};

    return OPERATE("moe_fused_mul_sum", NULL, parts);
}

const struct hum_ops remote_ops = {
    .quant_weight = quant_weight,
    .dequant_weight = dequant_weight,
    .pack = pack,
    .unpack = unpack,
    .process_mxfp4 = process_mxfp4,
    .process_input = process_input,
    .hadamard = hadamard,
    .moe_fused_mul_sum = moe_fused_mul_sum,
};
