#include "kernels/humming/remote.h"

#include "kernels/humming/fields.h"

#include <cjson/cJSON.h>

/* ---- configurations ---- */

/* A request with the configurations that are not NULL. */
static cJSON *configured(const char *op, const struct hum_layer_config *layer,
                         const struct hum_compute_config *compute,
                         const struct hum_tuning_config *tuning)
{
    cJSON *request = remote_request(op);
    bool ok = request && fields_add_object(request, "layer", &layer_fields, layer);

    ok = ok && (!compute || fields_add_object(request, "compute", &compute_fields, compute));
    ok = ok && (!tuning || fields_add_object(request, "tuning", &tuning_fields, tuning));
    return remote_checked(request, ok);
}

enum hum_code remote_supports(void *handle, const struct hum_layer_config *layer,
                              const struct hum_compute_config *compute,
                              const struct hum_tuning_config *tuning, char reason[HUM_REASON_BYTES])
{
    return remote_ask(handle, configured("supports", layer, compute, tuning), NULL, reason);
}

enum hum_code remote_heuristics(void *handle, const struct hum_layer_config *layer,
                                const struct hum_compute_config *compute, int64_t m,
                                struct hum_tuning_config *out, char reason[HUM_REASON_BYTES])
{
    struct remote *r = handle;
    cJSON *request = configured("heuristics", layer, compute, NULL), *reply;
    enum hum_code rc;

    request = remote_checked(request, request && cJSON_AddNumberToObject(request, "m", (double)m));
    rc = remote_ask(r, request, &reply, reason);
    if (rc)
        return rc;
    *out = (struct hum_tuning_config){0};
    if (!fields_read(cJSON_GetObjectItemCaseSensitive(reply, "tuning"), &tuning_fields, out))
        rc = remote_broken(reason);
    cJSON_Delete(reply);
    return rc;
}

/* ---- weights ---- */

static const struct {
    const char *name;
    size_t offset;
} weight_members[] = {
    {"weight", offsetof(struct hum_weights, weight)},
    {"weight_scale", offsetof(struct hum_weights, weight_scale)},
    {"zero_point", offsetof(struct hum_weights, zero_point)},
    {"weight_scale_2", offsetof(struct hum_weights, weight_scale_2)},
    {"bias", offsetof(struct hum_weights, bias)},
};
enum { WEIGHT_MEMBERS = sizeof weight_members / sizeof weight_members[0] };

static bool weights_add(cJSON *request, const char *name, const struct hum_weights *w)
{
    cJSON *object = cJSON_AddObjectToObject(request, name);
    bool ok = object;

    for (int i = 0; ok && i < WEIGHT_MEMBERS; i++) {
        const void *member = (const char *)w + weight_members[i].offset;

        ok = tensor_add(object, weight_members[i].name, member);
    }
    return ok;
}

/* The kernel form is bytes to everyone but the worker: a row of them. */
static bool shape_of(const cJSON *item, struct hum_tensor *t)
{
    const cJSON *bytes = cJSON_GetArrayItem(item, 1);

    *t = (struct hum_tensor){0};
    if (!item)
        return true;
    if (!cJSON_IsNumber(bytes) || !(bytes->valuedouble >= 0.0 && bytes->valuedouble <= 0x1p48))
        return false;
    t->dtype = HUM_INT8;
    t->rank = 1;
    t->bytes = (size_t)bytes->valuedouble;
    t->shape[0] = (int64_t)t->bytes;
    return true;
}

enum hum_code remote_transform_shapes(void *handle, const struct hum_layer_config *layer,
                                      struct hum_weights *out, char reason[HUM_REASON_BYTES])
{
    struct remote *r = handle;
    cJSON *request = configured("transform_shapes", layer, NULL, NULL), *reply;
    enum hum_code rc = remote_ask(r, request, &reply, reason);
    const cJSON *weights;

    if (rc)
        return rc;
    weights = cJSON_GetObjectItemCaseSensitive(reply, "weights");
    for (int i = 0; !rc && i < WEIGHT_MEMBERS; i++) {
        void *member = (char *)out + weight_members[i].offset;

        if (!weights ||
            !shape_of(cJSON_GetObjectItemCaseSensitive(weights, weight_members[i].name), member))
            rc = remote_broken(reason);
    }
    cJSON_Delete(reply);
    return rc;
}

enum hum_code remote_transform(void *handle, const struct hum_layer_config *layer,
                               const struct hum_weights *standard, struct hum_weights *out,
                               char reason[HUM_REASON_BYTES])
{
    cJSON *request = configured("transform", layer, NULL, NULL);

    request = remote_checked(request, request && weights_add(request, "standard", standard) &&
                                          weights_add(request, "out", out));
    return remote_call(handle, request, reason);
}

/* ---- products ---- */

/* All of the call's memory belongs to the present worker. */
static bool args_alive(const struct remote *r, const struct hum_gemm_args *args,
                       char reason[HUM_REASON_BYTES])
{
    const struct hum_tensor *const tensors[] = {
        &args->inputs, &args->input_scale,     &args->outputs,
        &args->locks,  &args->weights->weight, &args->weights->weight_scale};
    bool ok = true;

    for (size_t i = 0; ok && i < sizeof tensors / sizeof tensors[0]; i++)
        ok = remote_alive(r, tensors[i]->data, reason);
    return ok;
}

static const struct {
    const char *name;
    size_t offset;
} forward_tensors[] = {
    {"inputs", offsetof(struct hum_gemm_args, inputs)},
    {"input_scale", offsetof(struct hum_gemm_args, input_scale)},
    {"outputs", offsetof(struct hum_gemm_args, outputs)},
    {"sorted_ids", offsetof(struct hum_gemm_args, sorted_ids)},
    {"expert_ids", offsetof(struct hum_gemm_args, expert_ids)},
    {"num_tokens_padded", offsetof(struct hum_gemm_args, num_tokens_padded)},
    {"expert_layout", offsetof(struct hum_gemm_args, expert_layout)},
    {"locks", offsetof(struct hum_gemm_args, locks)},
};
enum { FORWARD_TENSORS = sizeof forward_tensors / sizeof forward_tensors[0] };

enum hum_code remote_forward(void *handle, const struct hum_gemm_args *args,
                             char reason[HUM_REASON_BYTES])
{
    cJSON *request, *tensors;
    bool ok;

    if (!args || !args->layer || !args->compute || !args->tuning || !args->weights) {
        (void)snprintf(reason, HUM_REASON_BYTES, "the arguments are missing");
        return HUM_INVALID;
    }
    if (!args_alive(handle, args, reason))
        return HUM_NO_MEMORY;
    request = configured("forward", args->layer, args->compute, args->tuning);
    tensors = request ? cJSON_AddObjectToObject(request, "tensors") : NULL;
    ok = tensors;

    for (int i = 0; ok && i < FORWARD_TENSORS; i++) {
        const void *member = (const char *)args + forward_tensors[i].offset;

        ok = tensor_add(tensors, forward_tensors[i].name, member);
    }
    ok = ok && weights_add(request, "weights", args->weights) &&
         cJSON_AddNumberToObject(request, "top_k", args->top_k) &&
         cJSON_AddNumberToObject(request, "valid_shape_m", (double)args->valid_shape_m);
    return remote_call(handle, remote_checked(request, ok), reason);
}

static bool slices_read(const cJSON *list, struct hum_accumulation *out)
{
    const cJSON *item;

    out->slices = 0;
    cJSON_ArrayForEach(item, list)
    {
        const cJSON *begin = cJSON_GetArrayItem(item, 0), *end = cJSON_GetArrayItem(item, 1);

        if (out->slices == HUM_MAX_SLICES || !cJSON_IsNumber(begin) || !cJSON_IsNumber(end))
            return false;
        out->slice[out->slices].k_begin = (int64_t)begin->valuedouble;
        out->slice[out->slices++].k_end = (int64_t)end->valuedouble;
    }
    return out->slices > 0;
}

/* NOLINTNEXTLINE(readability-function-size): the contract has nine parameters */
enum hum_code remote_accumulation(void *handle, const struct hum_layer_config *layer,
                                  const struct hum_compute_config *compute,
                                  const struct hum_tuning_config *tuning, int64_t m, int64_t row,
                                  int64_t col, struct hum_accumulation *out,
                                  char reason[HUM_REASON_BYTES])
{
    struct remote *r = handle;
    const cJSON *ordered;
    cJSON *request = configured("accumulation", layer, compute, tuning), *reply;
    enum hum_code rc;

    request = remote_checked(request, request && cJSON_AddNumberToObject(request, "m", (double)m) &&
                                          cJSON_AddNumberToObject(request, "row", (double)row) &&
                                          cJSON_AddNumberToObject(request, "col", (double)col));
    rc = remote_ask(r, request, &reply, reason);
    if (rc)
        return rc;
    *out = (struct hum_accumulation){0};
    ordered = cJSON_GetObjectItemCaseSensitive(reply, "ordered");
    if (!fields_read(reply, &accumulation_fields, out) ||
        (cJSON_HasObjectItem(reply, "operand_shift") && !fields_read(reply, &shift_fields, out)) ||
        !slices_read(cJSON_GetObjectItemCaseSensitive(reply, "slices"), out))
        rc = remote_broken(reason);
    out->arithmetic = out->sm ? HUM_ARITHMETIC_TENSOR_CORE : HUM_ARITHMETIC_IEEE;
    out->ordered = !cJSON_IsNumber(ordered) || ordered->valuedouble != 0.0;
    cJSON_Delete(reply);
    return rc;
}
