#include "kernels/humming/remote.h"

#include "kernels/humming/fields.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 64, ARGUMENT_BYTES = 4096, INERT_MAX = 32, OPS_MAX = 16 };

/* What a process knows about its worker program; filled once by remote_provider. */
static struct {
    bool known;
    char argument[REMOTE_ARGUMENTS][ARGUMENT_BYTES];
    const char *argv[REMOTE_ARGUMENTS + 1];
    char name[TEXT_BYTES], version[TEXT_BYTES], device[TEXT_BYTES];
    char inert[INERT_MAX][TEXT_BYTES];
    const char *inert_tuning[INERT_MAX + 1];
    struct hum_ops ops;
    struct hum_provider table;
    struct worker spare; /* the one that said hello: for the first open() */
} self;

static const char broken_reply[] = "the worker's reply lacks what the protocol wants";

cJSON *remote_request(const char *name)
{
    cJSON *request = cJSON_CreateObject();

    if (request && cJSON_AddStringToObject(request, "op", name))
        return request;
    cJSON_Delete(request);
    return NULL;
}

enum hum_code remote_call(struct remote *r, cJSON *request, char reason[HUM_REASON_BYTES])
{
    return worker_call(&r->worker, request, NULL, NULL, reason);
}

/* `request`, or NULL (and it is gone) unless `ok`. */
static cJSON *checked(cJSON *request, bool ok)
{
    if (ok)
        return request;
    cJSON_Delete(request);
    return NULL;
}

static enum hum_code broken(char reason[HUM_REASON_BYTES])
{
    (void)snprintf(reason, HUM_REASON_BYTES, "%s", broken_reply);
    return HUM_DEVICE_LOST;
}

/* ---- life and memory ---- */

bool remote_alive(const struct remote *r, const void *data, char reason[HUM_REASON_BYTES])
{
    if (!data || (uintptr_t)data >> REMOTE_ADDRESS_BITS == r->life)
        return true;
    (void)snprintf(reason, HUM_REASON_BYTES,
                   "an earlier case lost the device, and with it what this one needs");
    return false;
}

/* Replaces a worker that lost its device. */
static enum hum_code revive(struct remote *r, char reason[HUM_REASON_BYTES])
{
    if (!r->worker.lost)
        return HUM_OK;
    if (r->life + 1 >= REMOTE_LIVES) {
        (void)snprintf(reason, HUM_REASON_BYTES, "%d workers lost the device", REMOTE_LIVES);
        return HUM_DEVICE_LOST;
    }
    worker_stop(&r->worker);
    r->life++;
    return worker_start(&r->worker, self.argv, reason) ? HUM_OK : HUM_DEVICE_LOST;
}

/* A call that names no memory, so that any worker will do. */
static enum hum_code ask(struct remote *r, cJSON *request, cJSON **reply,
                         char reason[HUM_REASON_BYTES])
{
    const enum hum_code rc = revive(r, reason);

    if (!rc)
        return worker_call(&r->worker, request, NULL, reply, reason);
    cJSON_Delete(request);
    return rc;
}

static enum hum_code remote_open(int threads, void **handle, char reason[HUM_REASON_BYTES])
{
    struct remote *r = calloc(1, sizeof *r);

    (void)threads;
    if (!r) {
        (void)snprintf(reason, HUM_REASON_BYTES, "no memory for a worker");
        return HUM_NO_MEMORY;
    }
    if (self.spare.pid > 0) {
        r->worker = self.spare;
        self.spare.pid = 0;
    } else if (!worker_start(&r->worker, self.argv, reason)) {
        free(r);
        return HUM_DEVICE_LOST;
    }
    *handle = r;
    return HUM_OK;
}

static void remote_close(void *handle)
{
    struct remote *r = handle;

    worker_stop(&r->worker);
    free(r);
}

static enum hum_code remote_alloc(void *handle, size_t bytes, void **out,
                                  char reason[HUM_REASON_BYTES])
{
    struct remote *r = handle;
    cJSON *request = remote_request("alloc"), *reply;
    const cJSON *data;
    enum hum_code rc;

    request = checked(request, request && cJSON_AddNumberToObject(request, "bytes", (double)bytes));
    rc = ask(r, request, &reply, reason);
    if (rc)
        return rc;
    data = cJSON_GetObjectItemCaseSensitive(reply, "data");
    if (cJSON_IsNumber(data))
        *out = (void *)((uintptr_t)data->valuedouble | (uintptr_t)r->life << REMOTE_ADDRESS_BITS);
    else
        rc = broken(reason);
    cJSON_Delete(reply);
    return rc;
}

/* A request about the device's memory at `data`. */
static cJSON *about(const char *op, const void *data)
{
    cJSON *request = remote_request(op);

    return checked(
        request, request && cJSON_AddNumberToObject(
                                request, "data", (double)((uintptr_t)data & TENSOR_ADDRESS_MASK)));
}

static void remote_release(void *handle, void *data)
{
    const struct remote *r = handle;
    char reason[HUM_REASON_BYTES];

    if (!r->worker.lost && remote_alive(r, data, reason))
        (void)remote_call(handle, about("release", data), reason);
}

static enum hum_code remote_upload(void *handle, void *device, const void *host, size_t bytes,
                                   char reason[HUM_REASON_BYTES])
{
    struct remote *r = handle;
    const struct frame_payload p = {.out = host, .out_bytes = bytes};

    if (!remote_alive(r, device, reason))
        return HUM_NO_MEMORY;
    return worker_call(&r->worker, about("upload", device), &p, NULL, reason);
}

static enum hum_code remote_download(void *handle, void *host, const void *device, size_t bytes,
                                     char reason[HUM_REASON_BYTES])
{
    struct remote *r = handle;
    const struct frame_payload p = {.in = host, .in_bytes = bytes};
    cJSON *request;

    if (!remote_alive(r, device, reason))
        return HUM_NO_MEMORY;
    request = about("download", device);
    request = checked(request, request && cJSON_AddNumberToObject(request, "bytes", (double)bytes));
    return worker_call(&r->worker, request, &p, NULL, reason);
}

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
    return checked(request, ok);
}

static enum hum_code remote_supports(void *handle, const struct hum_layer_config *layer,
                                     const struct hum_compute_config *compute,
                                     const struct hum_tuning_config *tuning,
                                     char reason[HUM_REASON_BYTES])
{
    return ask(handle, configured("supports", layer, compute, tuning), NULL, reason);
}

static enum hum_code remote_heuristics(void *handle, const struct hum_layer_config *layer,
                                       const struct hum_compute_config *compute, int64_t m,
                                       struct hum_tuning_config *out, char reason[HUM_REASON_BYTES])
{
    struct remote *r = handle;
    cJSON *request = configured("heuristics", layer, compute, NULL), *reply;
    enum hum_code rc;

    request = checked(request, request && cJSON_AddNumberToObject(request, "m", (double)m));
    rc = ask(r, request, &reply, reason);
    if (rc)
        return rc;
    *out = (struct hum_tuning_config){0};
    if (!fields_read(cJSON_GetObjectItemCaseSensitive(reply, "tuning"), &tuning_fields, out))
        rc = broken(reason);
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

static enum hum_code remote_transform_shapes(void *handle, const struct hum_layer_config *layer,
                                             struct hum_weights *out, char reason[HUM_REASON_BYTES])
{
    struct remote *r = handle;
    cJSON *request = configured("transform_shapes", layer, NULL, NULL), *reply;
    enum hum_code rc = ask(r, request, &reply, reason);
    const cJSON *weights;

    if (rc)
        return rc;
    weights = cJSON_GetObjectItemCaseSensitive(reply, "weights");
    for (int i = 0; !rc && i < WEIGHT_MEMBERS; i++) {
        void *member = (char *)out + weight_members[i].offset;

        if (!weights ||
            !shape_of(cJSON_GetObjectItemCaseSensitive(weights, weight_members[i].name), member))
            rc = broken(reason);
    }
    cJSON_Delete(reply);
    return rc;
}

static enum hum_code remote_transform(void *handle, const struct hum_layer_config *layer,
                                      const struct hum_weights *standard, struct hum_weights *out,
                                      char reason[HUM_REASON_BYTES])
{
    cJSON *request = configured("transform", layer, NULL, NULL);

    request = checked(request, request && weights_add(request, "standard", standard) &&
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

static enum hum_code remote_forward(void *handle, const struct hum_gemm_args *args,
                                    char reason[HUM_REASON_BYTES])
{
    const struct {
        const char *name;
        const struct hum_tensor *tensor;
    } members[] = {
        {"inputs", &args->inputs},
        {"input_scale", &args->input_scale},
        {"outputs", &args->outputs},
        {"sorted_ids", &args->sorted_ids},
        {"expert_ids", &args->expert_ids},
        {"num_tokens_padded", &args->num_tokens_padded},
        {"expert_layout", &args->expert_layout},
        {"locks", &args->locks},
    };
    cJSON *request, *tensors;
    bool ok;

    if (!args_alive(handle, args, reason))
        return HUM_NO_MEMORY;
    request = configured("forward", args->layer, args->compute, args->tuning);
    tensors = request ? cJSON_AddObjectToObject(request, "tensors") : NULL;
    ok = tensors;

    for (size_t i = 0; ok && i < sizeof members / sizeof members[0]; i++)
        ok = tensor_add(tensors, members[i].name, members[i].tensor);
    ok = ok && weights_add(request, "weights", args->weights) &&
         cJSON_AddNumberToObject(request, "top_k", args->top_k) &&
         cJSON_AddNumberToObject(request, "valid_shape_m", (double)args->valid_shape_m);
    return remote_call(handle, checked(request, ok), reason);
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

static enum hum_code remote_accumulation(void *handle, const struct hum_layer_config *layer,
                                         const struct hum_compute_config *compute,
                                         const struct hum_tuning_config *tuning, int64_t m,
                                         int64_t row, int64_t col, struct hum_accumulation *out,
                                         char reason[HUM_REASON_BYTES])
{
    struct remote *r = handle;
    const cJSON *ordered;
    cJSON *request = configured("accumulation", layer, compute, tuning), *reply;
    enum hum_code rc;

    request = checked(request, request && cJSON_AddNumberToObject(request, "m", (double)m) &&
                                   cJSON_AddNumberToObject(request, "row", (double)row) &&
                                   cJSON_AddNumberToObject(request, "col", (double)col));
    rc = ask(r, request, &reply, reason);
    if (rc)
        return rc;
    *out = (struct hum_accumulation){0};
    ordered = cJSON_GetObjectItemCaseSensitive(reply, "ordered");
    if (!fields_read(reply, &accumulation_fields, out) ||
        !slices_read(cJSON_GetObjectItemCaseSensitive(reply, "slices"), out))
        rc = broken(reason);
    out->arithmetic = out->sm ? HUM_ARITHMETIC_TENSOR_CORE : HUM_ARITHMETIC_IEEE;
    out->ordered = !cJSON_IsNumber(ordered) || ordered->valuedouble != 0.0;
    cJSON_Delete(reply);
    return rc;
}

/* ---- the table ---- */

static void text_of(const cJSON *reply, const char *name, char text[TEXT_BYTES])
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(reply, name);

    (void)snprintf(text, TEXT_BYTES, "%s", cJSON_IsString(item) ? item->valuestring : "unknown");
}

static bool listed(const cJSON *list, const char *name)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, list) if (cJSON_IsString(item) &&
                                       !strcmp(item->valuestring, name)) return true;
    return false;
}

/* The operations that the worker names: a struct of function pointers, in the order of their
 * names. */
static void take_ops(const cJSON *list)
{
    typedef void any_function(void);
    any_function *table[OPS_MAX] = {NULL};

    _Static_assert(sizeof remote_ops <= sizeof table, "one slot an operation");
    memcpy(table, &remote_ops, sizeof remote_ops);
    for (int i = 0; remote_op_names[i]; i++)
        if (!listed(list, remote_op_names[i]))
            table[i] = NULL;
    memcpy(&self.ops, table, sizeof self.ops);
}

static void take_hello(const cJSON *reply)
{
    const cJSON *item;
    int n = 0;

    text_of(reply, "name", self.name);
    text_of(reply, "version", self.version);
    text_of(reply, "device", self.device);
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(reply, "inert_tuning"))
    {
        if (n < INERT_MAX && cJSON_IsString(item)) {
            (void)snprintf(self.inert[n], TEXT_BYTES, "%s", item->valuestring);
            self.inert_tuning[n] = self.inert[n];
            n++;
        }
    }
    take_ops(cJSON_GetObjectItemCaseSensitive(reply, "ops"));
    self.table = (struct hum_provider){
        .abi_version = HUM_ABI_VERSION,
        .name = self.name,
        .version = self.version,
        .device = self.device,
        .open = remote_open,
        .close = remote_close,
        .supports = remote_supports,
        .heuristics = remote_heuristics,
        .transform_shapes = remote_transform_shapes,
        .transform = remote_transform,
        .forward = remote_forward,
        .accumulation = remote_accumulation,
        .ops = &self.ops,
        .inert_tuning = self.inert_tuning,
        .alloc = remote_alloc,
        .release = remote_release,
        .upload = remote_upload,
        .download = remote_download,
    };
}

static bool same_command(const char *const argv[])
{
    int i = 0;

    while (i < REMOTE_ARGUMENTS && argv[i] && self.argv[i] && !strcmp(argv[i], self.argv[i]))
        i++;
    return !argv[i] && !self.argv[i];
}

static bool keep_command(const char *const argv[], char reason[HUM_REASON_BYTES])
{
    for (int i = 0; argv[i]; i++) {
        if (i == REMOTE_ARGUMENTS || strlen(argv[i]) >= ARGUMENT_BYTES) {
            (void)snprintf(reason, HUM_REASON_BYTES, "the worker's command is too long");
            return false;
        }
        (void)snprintf(self.argument[i], ARGUMENT_BYTES, "%s", argv[i]);
        self.argv[i] = self.argument[i];
    }
    return true;
}

const struct hum_provider *remote_provider(const char *const argv[], char reason[HUM_REASON_BYTES])
{
    cJSON *reply = NULL;

    if (self.known && same_command(argv))
        return &self.table;
    if (self.known) {
        (void)snprintf(reason, HUM_REASON_BYTES, "a process has one worker program");
        return NULL;
    }
    if (!keep_command(argv, reason) || !worker_start(&self.spare, self.argv, reason))
        return NULL;
    if (worker_call(&self.spare, remote_request("hello"), NULL, &reply, reason)) {
        worker_stop(&self.spare);
        return NULL;
    }
    take_hello(reply);
    cJSON_Delete(reply);
    self.known = true;
    return &self.table;
}
