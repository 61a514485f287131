/* device.h - memory of a provider's device.
 *
 * A provider on the host leaves its memory operations NULL: then device memory is the arena's.
 * Buffers are released in the reverse order of their making.
 */
#ifndef HARNESS_KERNEL_DEVICE_H
#define HARNESS_KERNEL_DEVICE_H

#include "harness/core/arena.h"
#include "kernels/abi/humming.h"

enum { DEVICE_BUFFERS = 32 };

struct device {
    const struct hum_provider *provider;
    void *handle;
    struct arena *arena; /* host memory, and device memory of host providers */
    void *held[DEVICE_BUFFERS];
    int held_count;
    char reason[HUM_REASON_BYTES]; /* of the last failure */
};

/* All return false or NULL with `reason` set on failure. */

/* Device memory for t->bytes; t->data is set. */
bool device_alloc(struct device *d, struct hum_tensor *t);

/* `out` becomes a device copy of host tensor `t` (absent stays absent). On the host: the tensor
 * itself. */
bool device_upload(struct device *d, const struct hum_tensor *t, struct hum_tensor *out);

/* Host memory of the arena. */
uint8_t *device_host(struct device *d, size_t bytes);

/* A device copy of host bytes, on the host too. */
bool device_copy(struct device *d, const void *host, size_t bytes, void **out);

/* Host bytes to memory of the device. */
bool device_write(struct device *d, void *device, const void *host, size_t bytes);

/* Device bytes to the host. */
bool device_read(struct device *d, void *host, const void *device, size_t bytes);

/* Device bytes as host memory: on the host the bytes themselves, else a copy. */
const uint8_t *device_look(struct device *d, const void *device, size_t bytes);

/* Releases what was allocated through d, but the first `keep` buffers. */
void device_release(struct device *d, int keep);

#endif
