#include "harness/kernel/device.h"

#include <stdio.h>
#include <string.h>

static bool refuse(struct device *d, const char *why)
{
    (void)snprintf(d->reason, sizeof d->reason, "%s", why);
    return false;
}

static bool on_host(const struct device *d)
{
    return !d->provider->alloc;
}

uint8_t *device_host(struct device *d, size_t bytes)
{
    uint8_t *p = arena_alloc(d->arena, bytes ? bytes : 1, 1);

    if (!p)
        (void)refuse(d, "more memory is needed than the limit of a worker");
    return p;
}

static bool get(struct device *d, size_t bytes, void **out)
{
    if (on_host(d)) {
        *out = device_host(d, bytes);
        return *out;
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

bool device_copy(struct device *d, const void *host, size_t bytes, void **out)
{
    return get(d, bytes, out) && put(d, *out, host, bytes);
}

bool device_upload(struct device *d, const struct hum_tensor *t, struct hum_tensor *out)
{
    *out = *t;
    if (!t->data || on_host(d))
        return true;
    return device_copy(d, t->data, t->bytes, &out->data);
}

bool device_write(struct device *d, void *device, const void *host, size_t bytes)
{
    return put(d, device, host, bytes);
}

bool device_read(struct device *d, void *host, const void *device, size_t bytes)
{
    if (on_host(d)) {
        memcpy(host, device, bytes);
        return true;
    }
    return d->provider->download(d->handle, host, device, bytes, d->reason) == HUM_OK;
}

const uint8_t *device_look(struct device *d, const void *device, size_t bytes)
{
    uint8_t *host;

    if (on_host(d))
        return device;
    host = device_host(d, bytes);
    return host && device_read(d, host, device, bytes) ? host : NULL;
}

void device_release(struct device *d, int keep)
{
    while (d->held_count > keep)
        d->provider->release(d->handle, d->held[--d->held_count]);
}
