#include "harness/kernel/device.h"

#include <stdio.h>
#include <string.h>

enum { POISON = 0xff, FENCE = 0xa5 };

static bool refuse(struct device *d, const char *why)
{
    (void)snprintf(d->reason, sizeof d->reason, "%s", why);
    return false;
}

static bool on_host(const struct device *d)
{
    return !d->provider->alloc;
}

static bool get(struct device *d, size_t bytes, void **out)
{
    if (on_host(d)) {
        *out = arena_alloc(d->arena, bytes ? bytes : 1, 1);
        return *out ? true : refuse(d, "more memory is needed than the limit of a worker");
    }
    if (d->held_count == DEVICE_BUFFERS)
        return refuse(d, "a problem needs more device buffers than the harness keeps");
    if (d->provider->alloc(d->handle, bytes, out, d->reason) != HUM_OK)
        return false;
    d->held[d->held_count++] = *out;
    return true;
}

static bool put(struct device *d, void *device, const void *host, size_t bytes)
{
    if (on_host(d)) {
        memcpy(device, host, bytes);
        return true;
    }
    return d->provider->upload(d->handle, device, host, bytes, d->reason) == HUM_OK;
}

bool device_alloc(struct device *d, struct hum_tensor *t)
{
    return t->bytes == 0 || get(d, t->bytes, &t->data);
}

bool device_upload(struct device *d, const struct hum_tensor *t, struct hum_tensor *out)
{
    *out = *t;
    if (!t->data || on_host(d))
        return true;
    return get(d, t->bytes, &out->data) && put(d, out->data, t->data, t->bytes);
}

bool device_fenced(struct device *d, size_t bytes, struct fenced *out)
{
    size_t whole = bytes + 2 * (size_t)DEVICE_FENCE;
    void *base;

    memset(out, 0, sizeof *out);
    out->host = arena_alloc(d->arena, whole, 1);
    if (!out->host)
        return refuse(d, "more memory is needed than the limit of a worker");
    if (!get(d, whole, &base))
        return false;
    out->base = base;
    out->tensor.data = out->base + DEVICE_FENCE;
    out->tensor.bytes = bytes;
    return true;
}

bool device_poison(struct device *d, struct fenced *f)
{
    size_t bytes = f->tensor.bytes;

    memset(f->host, FENCE, DEVICE_FENCE);
    memset(f->host + DEVICE_FENCE, POISON, bytes);
    memset(f->host + DEVICE_FENCE + bytes, FENCE, DEVICE_FENCE);
    return put(d, f->base, f->host, bytes + 2 * (size_t)DEVICE_FENCE);
}

static bool intact(const uint8_t *fence)
{
    for (int i = 0; i < DEVICE_FENCE; i++)
        if (fence[i] != FENCE)
            return false;
    return true;
}

bool device_collect(struct device *d, struct fenced *f, bool *broken)
{
    size_t bytes = f->tensor.bytes, whole = bytes + 2 * (size_t)DEVICE_FENCE;

    if (on_host(d))
        memcpy(f->host, f->base, whole);
    else if (d->provider->download(d->handle, f->host, f->base, whole, d->reason) != HUM_OK)
        return false;
    *broken = !intact(f->host) || !intact(f->host + DEVICE_FENCE + bytes);
    return true;
}

void device_release(struct device *d, int keep)
{
    while (d->held_count > keep)
        d->provider->release(d->handle, d->held[--d->held_count]);
}
