#include "harness/kernel/experts_slab.h"

#include <stdio.h>
#include <string.h>

enum { ALIGN = 64, GAP = 256 }; /* GAP: bytes of poison before, between and behind the places */

static const char *const weight_names[] = {"weight", "weight_scale", "zero_point", "weight_scale_2",
                                           "bias"};
static const char *const buffer_names[] = {"quanted_gate_up_input", "gate_up_output",
                                           "activation_output",     "quanted_down_input",
                                           "down_output",           "output"};

static const char *name_of(int place)
{
    static const char *const names[SLAB_COUNT] = {
        [SLAB_INPUTS] = "the tokens",
        [SLAB_SCATTER] = "indices",
        [SLAB_BACK] = "indices",
        [SLAB_EXPERT_LAYOUT] = "expert_layout",
        [SLAB_TOPK_IDS] = "topk_ids",
        [SLAB_TOPK_WEIGHTS] = "the routing weights",
        [SLAB_SORTED_IDS] = "sorted_ids",
        [SLAB_SORTED_IDS + 1] = "sorted_ids",
        [SLAB_EXPERT_IDS] = "expert_ids",
        [SLAB_EXPERT_IDS + 1] = "expert_ids",
        [SLAB_NUM_TOKENS_PADDED] = "num_tokens_padded",
        [SLAB_NUM_TOKENS_PADDED + 1] = "num_tokens_padded",
        [SLAB_TOKEN_SCALES] = "the token scales of gate_up",
        [SLAB_TOKEN_SCALES + 1] = "the token scales of down",
        [SLAB_ENTERED] = "the gathered rows",
        [SLAB_ORDERED] = "the rows in order",
        [SLAB_RESULT] = "the result",
        [SLAB_WORKSPACE] = "workspace1",
        [SLAB_WORKSPACE + 1] = "workspace2",
    };

    if (place >= SLAB_KERNEL_FORM && place < SLAB_TOKEN_SCALES)
        return weight_names[(place - SLAB_KERNEL_FORM) % 5];
    if (place >= SLAB_BUFFER && place < SLAB_WORKSPACE)
        return buffer_names[place - SLAB_BUFFER];
    return names[place];
}

void run_slab_put(struct run_slab *s, int place, const void *contents, size_t bytes)
{
    s->place[place].contents = contents;
    s->place[place].bytes = bytes;
}

void run_slab_put_tensor(struct run_slab *s, int place, const struct hum_tensor *host)
{
    run_slab_put(s, place, host->data, host->bytes);
}

bool run_slab_make(struct run_slab *s, struct device *d, uint8_t poison)
{
    void *on;

    s->bytes = GAP;
    for (int i = 0; i < SLAB_COUNT; i++) {
        s->place[i].at = s->bytes;
        if (s->place[i].bytes)
            s->bytes += (s->place[i].bytes + ALIGN - 1) / ALIGN * ALIGN + GAP;
    }
    s->image = device_host(d, s->bytes);
    s->may = (bool *)device_host(d, s->bytes * sizeof *s->may);
    if (!s->image || !s->may)
        return false;
    memset(s->image, poison, s->bytes);
    memset(s->may, 0, s->bytes * sizeof *s->may);
    for (int i = 0; i < SLAB_COUNT; i++)
        if (s->place[i].contents && s->place[i].bytes)
            memcpy(s->image + s->place[i].at, s->place[i].contents, s->place[i].bytes);
    if (!device_copy(d, s->image, s->bytes, &on))
        return false;
    s->device = on;
    return true;
}

bool run_slab_poison(struct run_slab *s, struct device *d, size_t at, size_t bytes, uint8_t poison)
{
    memset(s->image + at, poison, bytes);
    return bytes == 0 || device_write(d, s->device + at, s->image + at, bytes);
}

void run_slab_allow(struct run_slab *s, size_t at, int64_t rows, size_t row_bytes, const bool *mask)
{
    for (int64_t i = 0; i < rows; i++)
        if (!mask || mask[i])
            memset(s->may + at + (size_t)i * row_bytes, 1, row_bytes);
}

static const char *where(const struct run_slab *s, size_t at, char *buf, size_t size)
{
    for (int i = 0; i < SLAB_COUNT; i++)
        if (at >= s->place[i].at && at < s->place[i].at + s->place[i].bytes) {
            (void)snprintf(buf, size, "byte %zu of %s changed, which it does not write",
                           at - s->place[i].at, name_of(i));
            return buf;
        }
    (void)snprintf(buf, size, "memory outside of all tensors changed");
    return buf;
}

const char *run_slab_look(struct run_slab *s, struct device *d, char *buf, size_t size, bool *lost)
{
    const uint8_t *now = device_look(d, s->device, s->bytes);
    const char *damage = NULL;

    *lost = !now;
    if (!now)
        return NULL;
    for (size_t i = 0; i < s->bytes && !damage; i++)
        if (!s->may[i] && now[i] != s->image[i])
            damage = where(s, i, buf, size);
    memcpy(s->image, now, s->bytes);
    memset(s->may, 0, s->bytes * sizeof *s->may);
    return damage;
}
