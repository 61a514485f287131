/* worker_cpu.c - the kernels of kernels/cpu behind the worker protocol: a worker program of its own
 * for the tests, so that every suite can run through the wire.
 *
 * HUMCHECK_WORKER makes it misbehave: "die" ends at the first product, "garbage" answers it with a
 * broken frame, "wrong-size" with a payload that nobody asked for; worker_recording.c has more.
 */
#include "kernels/cpu/cpu.h"
#include "kernels/humming/fields.h"
#include "kernels/test/worker_call.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHANNEL = 3, HEAD_BYTES = 16 };

enum hum_code call_refuse(struct call *c, const char *sentence)
{
    (void)snprintf(c->reason, sizeof c->reason, "%s", sentence);
    return HUM_INVALID;
}

static const cJSON *get(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static int64_t number(const cJSON *object, const char *name)
{
    const cJSON *item = get(object, name);

    return cJSON_IsNumber(item) ? (int64_t)item->valuedouble : 0;
}

struct hum_tensor call_tensor(const cJSON *object, const char *name)
{
    const cJSON *list = get(object, name);
    const int size = cJSON_GetArraySize(list);
    struct hum_tensor t = {0};

    if (size < 3 || size > 3 + HUM_MAX_RANK)
        return t;
    /* NOLINTNEXTLINE(performance-no-int-to-ptr) */
    t.data = (void *)(uintptr_t)cJSON_GetArrayItem(list, 0)->valuedouble;
    t.dtype = (int32_t)cJSON_GetArrayItem(list, 1)->valuedouble;
    t.bytes = (size_t)cJSON_GetArrayItem(list, 2)->valuedouble;
    t.rank = size - 3;
    for (int i = 0; i < t.rank; i++)
        t.shape[i] = (int64_t)cJSON_GetArrayItem(list, 3 + i)->valuedouble;
    return t;
}

static struct hum_weights weights(const cJSON *request, const char *name)
{
    const cJSON *w = get(request, name);

    return (struct hum_weights){call_tensor(w, "weight"), call_tensor(w, "weight_scale"),
                                call_tensor(w, "zero_point"), call_tensor(w, "weight_scale_2"),
                                call_tensor(w, "bias")};
}

/* The configurations of a request; `compute` and `tuning` may be left out of it. */
struct configs {
    struct hum_layer_config layer;
    struct hum_compute_config compute;
    struct hum_tuning_config tuning;
};

static bool configs_read(const cJSON *request, struct configs *c)
{
    const cJSON *compute = get(request, "compute"), *tuning = get(request, "tuning");

    memset(c, 0, sizeof *c);
    return fields_read(get(request, "layer"), &layer_fields, &c->layer) &&
           (!compute || fields_read(compute, &compute_fields, &c->compute)) &&
           (!tuning || fields_read(tuning, &tuning_fields, &c->tuning));
}

/* ---- the calls ---- */

static enum hum_code hello(struct call *c)
{
    cJSON *ops = cJSON_AddArrayToObject(c->reply, "ops");

    (void)cJSON_AddStringToObject(c->reply, "name", "worker_cpu");
    (void)cJSON_AddStringToObject(c->reply, "version", hum_cpu_provider.version);
    (void)cJSON_AddStringToObject(c->reply, "device", "cpu behind a worker");
    (void)cJSON_AddItemToArray(ops, cJSON_CreateString("pack"));
    (void)cJSON_AddItemToArray(ops, cJSON_CreateString("unpack"));
    (void)cJSON_AddItemToArray(ops, cJSON_CreateString("hadamard"));
    (void)cJSON_AddItemToArray(ops, cJSON_CreateString("capture"));
    return HUM_OK;
}

static enum hum_code alloc(struct call *c)
{
    const size_t bytes = ((size_t)number(c->request, "bytes") + 319) / 64 * 64;
    void *data = aligned_alloc(64, bytes);

    if (!data) {
        (void)call_refuse(c, "no memory");
        return HUM_NO_MEMORY;
    }
    (void)cJSON_AddNumberToObject(c->reply, "data", (double)(uintptr_t)data);
    return HUM_OK;
}

static void *place(const struct call *c)
{
    /* NOLINTNEXTLINE(performance-no-int-to-ptr) */
    return (void *)(uintptr_t)number(c->request, "data");
}

static enum hum_code release(struct call *c)
{
    free(place(c));
    return HUM_OK;
}

static enum hum_code upload(struct call *c)
{
    memcpy(place(c), c->payload, c->payload_bytes);
    return HUM_OK;
}

static enum hum_code download(struct call *c)
{
    c->out = place(c);
    c->out_bytes = (size_t)number(c->request, "bytes");
    return HUM_OK;
}

static enum hum_code supports(struct call *c)
{
    struct configs x;

    if (!configs_read(c->request, &x))
        return call_refuse(c, "a configuration cannot be read");
    return hum_cpu_provider.supports(c->cpu, &x.layer, &x.compute, &x.tuning, c->reason);
}

static enum hum_code heuristics(struct call *c)
{
    struct hum_tuning_config out;
    struct configs x;
    enum hum_code rc;

    if (!configs_read(c->request, &x))
        return call_refuse(c, "a configuration cannot be read");
    rc = hum_cpu_provider.heuristics(c->cpu, &x.layer, &x.compute, number(c->request, "m"), &out,
                                     c->reason);
    if (!rc)
        (void)fields_add_object(c->reply, "tuning", &tuning_fields, &out);
    return rc;
}

static void add_bytes(cJSON *object, const char *name, const struct hum_tensor *t)
{
    cJSON *list = t->bytes ? cJSON_AddArrayToObject(object, name) : NULL;

    if (!list)
        return;
    (void)cJSON_AddItemToArray(list, cJSON_CreateNull());
    (void)cJSON_AddItemToArray(list, cJSON_CreateNumber((double)t->bytes));
}

static enum hum_code transform_shapes(struct call *c)
{
    struct hum_weights w = {0};
    struct configs x;
    enum hum_code rc;
    cJSON *object;

    if (!configs_read(c->request, &x))
        return call_refuse(c, "a configuration cannot be read");
    rc = hum_cpu_provider.transform_shapes(c->cpu, &x.layer, &w, c->reason);
    if (rc)
        return rc;
    object = cJSON_AddObjectToObject(c->reply, "weights");
    add_bytes(object, "weight", &w.weight);
    add_bytes(object, "weight_scale", &w.weight_scale);
    add_bytes(object, "zero_point", &w.zero_point);
    add_bytes(object, "weight_scale_2", &w.weight_scale_2);
    add_bytes(object, "bias", &w.bias);
    return HUM_OK;
}

static bool are_bytes(const struct hum_tensor *t)
{
    return t->rank == 0 ||
           (t->dtype == HUM_INT8 && t->rank == 1 && (size_t)t->shape[0] == t->bytes);
}

/* The wire carries the kernel form as bytes: this provider wants its own shapes again. */
static enum hum_code shaped(struct call *c, const struct hum_layer_config *layer,
                            struct hum_weights *w)
{
    const struct hum_weights from = *w;
    enum hum_code rc;

    if (!are_bytes(&from.weight) || !are_bytes(&from.weight_scale) ||
        !are_bytes(&from.zero_point) || !are_bytes(&from.weight_scale_2) || !are_bytes(&from.bias))
        return call_refuse(c, "the kernel form of weights is bytes");
    rc = hum_cpu_provider.transform_shapes(c->cpu, layer, w, c->reason);
    w->weight.data = from.weight.data;
    w->weight_scale.data = from.weight_scale.data;
    w->zero_point.data = from.zero_point.data;
    w->weight_scale_2.data = from.weight_scale_2.data;
    w->bias.data = from.bias.data;
    return rc;
}

static enum hum_code transform(struct call *c)
{
    const struct hum_weights standard = weights(c->request, "standard");
    struct hum_weights out = weights(c->request, "out");
    struct configs x;
    enum hum_code rc;

    if (!configs_read(c->request, &x))
        return call_refuse(c, "a configuration cannot be read");
    rc = shaped(c, &x.layer, &out);
    return rc ? rc : hum_cpu_provider.transform(c->cpu, &x.layer, &standard, &out, c->reason);
}

static enum hum_code forward(struct call *c)
{
    const cJSON *t = get(c->request, "tensors");
    struct hum_weights w = weights(c->request, "weights");
    struct configs x;
    enum hum_code rc;
    struct hum_gemm_args args = {.layer = &x.layer,
                                 .compute = &x.compute,
                                 .tuning = &x.tuning,
                                 .inputs = call_tensor(t, "inputs"),
                                 .input_scale = call_tensor(t, "input_scale"),
                                 .weights = &w,
                                 .outputs = call_tensor(t, "outputs"),
                                 .sorted_ids = call_tensor(t, "sorted_ids"),
                                 .expert_ids = call_tensor(t, "expert_ids"),
                                 .num_tokens_padded = call_tensor(t, "num_tokens_padded"),
                                 .expert_layout = call_tensor(t, "expert_layout"),
                                 .locks = call_tensor(t, "locks"),
                                 .top_k = (int32_t)number(c->request, "top_k"),
                                 .valid_shape_m = number(c->request, "valid_shape_m")};

    if (!configs_read(c->request, &x))
        return call_refuse(c, "a configuration cannot be read");
    rc = shaped(c, &x.layer, &w);
    return rc ? rc : hum_cpu_provider.forward(c->cpu, &args, c->reason);
}

static enum hum_code accumulation(struct call *c)
{
    struct hum_accumulation out;
    struct configs x;
    enum hum_code rc;
    cJSON *list;

    if (!configs_read(c->request, &x))
        return call_refuse(c, "a configuration cannot be read");
    rc = hum_cpu_provider.accumulation(c->cpu, &x.layer, &x.compute, &x.tuning,
                                       number(c->request, "m"), number(c->request, "row"),
                                       number(c->request, "col"), &out, c->reason);
    if (rc)
        return rc;
    (void)fields_add(c->reply, &accumulation_fields, &out);
    (void)fields_add(c->reply, &shift_fields, &out);
    list = cJSON_AddArrayToObject(c->reply, "slices");
    for (int i = 0; i < out.slices; i++) {
        const double ends[] = {(double)out.slice[i].k_begin, (double)out.slice[i].k_end};

        (void)cJSON_AddItemToArray(list, cJSON_CreateDoubleArray(ends, 2));
    }
    return HUM_OK;
}

static enum hum_code pack(struct call *c)
{
    const cJSON *t = get(c->request, "tensors");
    const struct hum_pack_args args = {(int32_t)number(c->request, "bits"), call_tensor(t, "codes"),
                                       call_tensor(t, "packed")};

    return hum_cpu_provider.ops->pack(c->cpu, &args, c->reason);
}

static enum hum_code unpack(struct call *c)
{
    const cJSON *t = get(c->request, "tensors");
    const struct hum_pack_args args = {(int32_t)number(c->request, "bits"), call_tensor(t, "codes"),
                                       call_tensor(t, "packed")};

    return hum_cpu_provider.ops->unpack(c->cpu, &args, c->reason);
}

static enum hum_code hadamard(struct call *c)
{
    const cJSON *t = get(c->request, "tensors");
    const struct hum_hadamard_args args = {call_tensor(t, "inputs"), call_tensor(t, "outputs"),
                                           number(c->request, "block_size")};

    return hum_cpu_provider.ops->hadamard(c->cpu, &args, c->reason);
}

static const struct {
    const char *name;
    call_answer *answer;
    bool is_launch;
} calls[] = {
    {"hello", hello, false},
    {"alloc", alloc, false},
    {"release", release, false},
    {"upload", upload, false},
    {"download", download, false},
    {"supports", supports, false},
    {"heuristics", heuristics, false},
    {"transform_shapes", transform_shapes, false},
    {"transform", transform, false},
    {"forward", forward, true},
    {"accumulation", accumulation, false},
    {"pack", pack, true},
    {"unpack", unpack, true},
    {"hadamard", hadamard, true},
    {"capture", recording_capture, false},
    {"replay", recording_replay, false},
    {"drop", recording_drop, false},
};

static enum hum_code answer(struct call *c)
{
    const cJSON *op = get(c->request, "op");

    for (size_t i = 0; cJSON_IsString(op) && i < sizeof calls / sizeof calls[0]; i++)
        if (!strcmp(calls[i].name, op->valuestring))
            return calls[i].is_launch ? recording_launch(c, calls[i].answer) : calls[i].answer(c);
    (void)call_refuse(c, "the worker has no such operation");
    return HUM_UNSUPPORTED;
}

/* ---- the wire ---- */

static void receive(void *data, size_t bytes)
{
    char *p = data;

    while (bytes > 0) {
        const ssize_t n = read(CHANNEL, p, bytes);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            exit(0);
        p += n;
        bytes -= (size_t)n;
    }
}

static void deliver(const void *data, size_t bytes)
{
    const char *p = data;

    while (bytes > 0) {
        const ssize_t n = write(CHANNEL, p, bytes);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            exit(0);
        p += n;
        bytes -= (size_t)n;
    }
}

static void misbehave(const struct call *c)
{
    const char *how = getenv("HUMCHECK_WORKER");
    const cJSON *op = get(c->request, "op");
    const unsigned char garbage[HEAD_BYTES] = {255, 255, 255, 255};
    const unsigned char wrong[HEAD_BYTES + 10] = {2, 0, 0, 0, 0, 0, 0, 0,   8,
                                                  0, 0, 0, 0, 0, 0, 0, '{', '}'};

    if (!how || !*how || !strncmp(how, "stale", 5) || !cJSON_IsString(op) ||
        strcmp(op->valuestring, "forward") != 0)
        return;
    if (!strcmp(how, "garbage"))
        deliver(garbage, sizeof garbage);
    if (!strcmp(how, "wrong-size"))
        deliver(wrong, sizeof wrong);
    (void)fprintf(stderr, "the worker was told to %s\n", how);
    exit(1);
}

static void serve(void *cpu, struct recording *recording)
{
    uint8_t head[HEAD_BYTES];
    uint32_t text, code;
    uint64_t bytes;
    struct call c = {.cpu = cpu, .recording = recording};
    char *json, *payload, *reply;

    receive(head, sizeof head);
    memcpy(&text, head, sizeof text); /* both ends are on one little-endian machine */
    memcpy(&bytes, head + 8, sizeof bytes);
    json = malloc((size_t)text + 1);
    payload = malloc((size_t)bytes + 1);
    if (!json || !payload)
        exit(2);
    receive(json, text);
    receive(payload, (size_t)bytes);
    c.request = cJSON_ParseWithLength(json, text);
    c.payload = payload;
    c.payload_bytes = (size_t)bytes;
    c.reply = cJSON_CreateObject();
    misbehave(&c);
    code = (uint32_t)answer(&c);
    if (code)
        (void)cJSON_AddStringToObject(c.reply, "reason", c.reason);
    reply = cJSON_PrintUnformatted(c.reply);
    text = (uint32_t)strlen(reply);
    bytes = code ? 0 : c.out_bytes;
    memcpy(head, &text, sizeof text);
    memcpy(head + 4, &code, sizeof code);
    memcpy(head + 8, &bytes, sizeof bytes);
    deliver(head, sizeof head);
    deliver(reply, text);
    deliver(c.out, (size_t)bytes);
    cJSON_free(reply);
    cJSON_Delete(c.reply);
    /* NOLINTNEXTLINE(performance-no-int-to-ptr) */
    cJSON_Delete((cJSON *)(uintptr_t)c.request);
    free(payload);
    free(json);
}

int main(void)
{
    struct recording recording = {0};
    char reason[HUM_REASON_BYTES];
    void *cpu;

    if (hum_cpu_provider.open(1, &cpu, reason)) {
        (void)fprintf(stderr, "%s\n", reason);
        return 2;
    }
    for (;;)
        serve(cpu, &recording);
}
