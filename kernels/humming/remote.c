#include "kernels/humming/remote.h"

#include "kernels/humming/fields.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 64, ARGUMENT_BYTES = 4096, INERT_MAX = 32 };

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

cJSON *remote_checked(cJSON *request, bool ok)
{
    if (ok)
        return request;
    cJSON_Delete(request);
    return NULL;
}

enum hum_code remote_broken(char reason[HUM_REASON_BYTES])
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

enum hum_code remote_ask(struct remote *r, cJSON *request, cJSON **reply,
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

    request = remote_checked(request,
                             request && cJSON_AddNumberToObject(request, "bytes", (double)bytes));
    rc = remote_ask(r, request, &reply, reason);
    if (rc)
        return rc;
    data = cJSON_GetObjectItemCaseSensitive(reply, "data");
    if (cJSON_IsNumber(data))
        /* an address of the device. NOLINTNEXTLINE(performance-no-int-to-ptr) */
        *out = (void *)((uintptr_t)data->valuedouble | (uintptr_t)r->life << REMOTE_ADDRESS_BITS);
    else
        rc = remote_broken(reason);
    cJSON_Delete(reply);
    return rc;
}

/* A request about the device's memory at `data`. */
static cJSON *about(const char *op, const void *data)
{
    cJSON *request = remote_request(op);

    return remote_checked(
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
    request = remote_checked(request,
                             request && cJSON_AddNumberToObject(request, "bytes", (double)bytes));
    return worker_call(&r->worker, request, &p, NULL, reason);
}

/* ---- recordings ---------------------------------------------------------------------------- */

/* What is recorded names memory of this worker: a lost one is not replaced. */
static enum hum_code about_recording(void *handle, const char *op, char reason[HUM_REASON_BYTES])
{
    struct remote *r = handle;

    if (!r->worker.lost)
        return remote_call(r, remote_request(op), reason);
    (void)snprintf(reason, HUM_REASON_BYTES, "the worker is lost");
    return HUM_DEVICE_LOST;
}

static enum hum_code remote_capture(void *handle, char reason[HUM_REASON_BYTES])
{
    return about_recording(handle, "capture", reason);
}

static enum hum_code remote_replay(void *handle, char reason[HUM_REASON_BYTES])
{
    return about_recording(handle, "replay", reason);
}

static void remote_drop(void *handle)
{
    char reason[HUM_REASON_BYTES];

    (void)about_recording(handle, "drop", reason);
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

static const struct {
    const char *name;
    size_t offset;
} operations[] = {
    {"quant_weight", offsetof(struct hum_ops, quant_weight)},
    {"dequant_weight", offsetof(struct hum_ops, dequant_weight)},
    {"pack", offsetof(struct hum_ops, pack)},
    {"unpack", offsetof(struct hum_ops, unpack)},
    {"process_mxfp4", offsetof(struct hum_ops, process_mxfp4)},
    {"process_input", offsetof(struct hum_ops, process_input)},
    {"hadamard", offsetof(struct hum_ops, hadamard)},
    {"moe_fused_mul_sum", offsetof(struct hum_ops, moe_fused_mul_sum)},
};

/* Those that the worker names; the others stay NULL. */
static void take_ops(const cJSON *list)
{
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++)
        if (listed(list, operations[i].name))
            memcpy((char *)&self.ops + operations[i].offset,
                   (const char *)&remote_ops + operations[i].offset, sizeof remote_ops.pack);
}

static void take_hello(const cJSON *reply)
{
    const cJSON *item;
    bool records;
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
    records = listed(cJSON_GetObjectItemCaseSensitive(reply, "ops"), "capture");
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
        .tiles_n_fastest = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(reply, "tiles_n_fastest")),
        .capture = records ? remote_capture : NULL,
        .replay = records ? remote_replay : NULL,
        .drop = records ? remote_drop : NULL,
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
