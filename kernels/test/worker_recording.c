/* Recordings of a provider on the host: the arguments are remembered.
 *
 * HUMCHECK_WORKER makes replays wrong: "stale" computes with the inputs of the capture,
 * "stale-tile" leaves the first row tile of the outputs as it was.
 */
#include "kernels/test/worker_call.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

static bool is_told(const char *what)
{
    const char *how = getenv("HUMCHECK_WORKER");

    return how && !strcmp(how, what);
}

static void forget(struct recording *r)
{
    cJSON_Delete(r->request);
    free(r->then);
    *r = (struct recording){0};
}

enum hum_code recording_capture(struct call *c)
{
    forget(c->recording);
    c->recording->awaited = true;
    return HUM_OK;
}

enum hum_code recording_drop(struct call *c)
{
    forget(c->recording);
    return HUM_OK;
}

/* The activations of a product, or what an operation has instead. */
static struct hum_tensor inputs_of(const cJSON *request)
{
    const cJSON *tensors = cJSON_GetObjectItemCaseSensitive(request, "tensors");
    const bool has_inputs = cJSON_HasObjectItem(tensors, "inputs");

    return call_tensor(tensors, has_inputs ? "inputs" : "codes");
}

enum hum_code recording_launch(struct call *c, call_answer *answer)
{
    struct recording *r = c->recording;
    const enum hum_code rc = answer(c);

    if (!r->awaited)
        return rc;
    r->awaited = false;
    if (rc)
        return rc;
    r->answer = answer;
    r->inputs = inputs_of(c->request);
    r->request = cJSON_Duplicate(c->request, true);
    r->then = malloc(r->inputs.bytes + 1);
    if (!r->request || !r->then) {
        forget(r);
        return HUM_NO_MEMORY;
    }
    memcpy(r->then, r->inputs.data, r->inputs.bytes);
    return HUM_OK;
}

/* ---- replays --------------------------------------------------------------------------------- */

static void swap(uint8_t *a, uint8_t *b, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        const uint8_t at = a[i];

        a[i] = b[i];
        b[i] = at;
    }
}

static enum hum_code replay_stale(struct call *c, struct recording *r)
{
    enum hum_code rc;

    swap(r->inputs.data, r->then, r->inputs.bytes);
    rc = r->answer(c);
    swap(r->inputs.data, r->then, r->inputs.bytes);
    return rc;
}

/* Of a product; an operation has no tiles, and loses its first quarter. */
static size_t tile_bytes(const cJSON *request, const struct hum_tensor *outputs)
{
    const cJSON *tuning = cJSON_GetObjectItemCaseSensitive(request, "tuning");
    const cJSON *block_m = cJSON_GetObjectItemCaseSensitive(tuning, "block_m");
    size_t tile = outputs->bytes / 4;

    if (cJSON_IsNumber(block_m) && outputs->shape[0] > 0)
        tile = outputs->bytes / (size_t)outputs->shape[0] * (size_t)block_m->valuedouble;
    return tile < outputs->bytes ? tile : outputs->bytes;
}

static enum hum_code replay_but_a_tile(struct call *c, const struct recording *r)
{
    const cJSON *tensors = cJSON_GetObjectItemCaseSensitive(r->request, "tensors");
    const bool has_outputs = cJSON_HasObjectItem(tensors, "outputs");
    const struct hum_tensor outputs = call_tensor(tensors, has_outputs ? "outputs" : "packed");
    const size_t bytes = tile_bytes(r->request, &outputs);
    void *before = malloc(bytes + 1);
    enum hum_code rc;

    if (!before)
        return HUM_NO_MEMORY;
    memcpy(before, outputs.data, bytes);
    rc = r->answer(c);
    memcpy(outputs.data, before, bytes);
    free(before);
    return rc;
}

enum hum_code recording_replay(struct call *c)
{
    struct recording *r = c->recording;
    struct call again = *c;
    enum hum_code rc;

    if (!r->request)
        return call_refuse(c, "nothing is recorded");
    again.request = r->request;
    if (is_told("stale"))
        rc = replay_stale(&again, r);
    else if (is_told("stale-tile"))
        rc = replay_but_a_tile(&again, r);
    else
        rc = r->answer(&again);
    memcpy(c->reason, again.reason, sizeof c->reason);
    return rc;
}
