/* device.h - tensors in the memory of a provider's device, and outputs between fences.
 *
 * A provider on the host leaves its memory operations NULL: then device memory is the arena's and nothing is copied but what a kernel
 * could spoil. Buffers of a problem are released together.
 */
#ifndef HARNESS_KERNEL_DEVICE_H
#define HARNESS_KERNEL_DEVICE_H

#include "harness/core/arena.h"
#include "kernels/abi/humming.h"

enum { DEVICE_BUFFERS = 32, DEVICE_FENCE = 256 };

struct device {
    const struct hum_provider *provider;
    void *handle;
    struct arena *arena; /* host memory, and device memory of host providers */
    void *held[DEVICE_BUFFERS];
    int held_count;
    char reason[HUM_REASON_BYTES]; /* of the last failure */
};

/* All return false with `reason` set on failure. */

/* Memory for t->bytes; t->data is set. */
bool device_alloc(struct device *d, struct hum_tensor *t);

/* `out` becomes a device copy of host tensor `t` (absent stays absent). On the host: the tensor itself. */
bool device_upload(struct device *d, const struct hum_tensor *t, struct hum_tensor *out);

/* An output of `bytes` bytes, poisoned with 0xff (a NaN in f16 and bf16), DEVICE_FENCE bytes of 0xa5 before and after it. */
struct fenced {
    struct hum_tensor
        tensor; /* what the kernel gets: `data` and `bytes`; shape and dtype are the caller's to set */
    uint8_t *base; /* in device memory */
    uint8_t *host; /* bytes + 2 fences; its middle is the output once downloaded */
};
bool device_fenced(struct device *d, size_t bytes, struct fenced *out);
bool device_poison(struct device *d, struct fenced *f);
/* Brings the output back; *broken tells that a fence was written. */
bool device_collect(struct device *d, struct fenced *f, bool *broken);

/* Releases what was allocated through d, but the first `keep` buffers. */
void device_release(struct device *d, int keep);

#endif
