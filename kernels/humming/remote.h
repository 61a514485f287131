/* remote.h - a provider whose kernels run in a worker process of another language
 * (docs/worker-protocol.md). */
#ifndef KERNELS_HUMMING_REMOTE_H
#define KERNELS_HUMMING_REMOTE_H

#include "kernels/humming/frame.h"

/* What `open` returns: the other files of this folder call the worker through it.
 *
 * A worker that lost its device is replaced at the next allocation. Device addresses have 48 bits;
 * the harness gets them with the number of the worker above, so that memory of a lost one is told
 * from memory of the present one. */
struct remote {
    struct worker worker;
    unsigned life; /* number of the worker: 0, 1, ... */
};

enum { REMOTE_ADDRESS_BITS = 48, REMOTE_LIVES = 32 };

/* False: the memory belonged to a worker that is gone; `reason` says so. The caller returns
 * HUM_NO_MEMORY: it is not this call's fault. */
bool remote_alive(const struct remote *r, const void *data, char reason[HUM_REASON_BYTES]);

/* The provider behind argv (a program and its arguments, ended by NULL, copied; at most
 * REMOTE_ARGUMENTS). Starts a worker once to ask its name, version, device and operations. The
 * contract's open() takes no argument, so a process has one such provider: another argv is refused.
 * The table lives as long as the process. NULL: `reason` has a sentence. */
enum { REMOTE_ARGUMENTS = 4 };
const struct hum_provider *remote_provider(const char *const argv[], char reason[HUM_REASON_BYTES]);

/* remote_ops.c: the operations; remote.c leaves out those that the worker does not name. */
extern const struct hum_ops remote_ops;

/* remote_gemm.c: the functions of struct hum_provider of the same names. */
enum hum_code remote_supports(void *handle, const struct hum_layer_config *layer,
                              const struct hum_compute_config *compute,
                              const struct hum_tuning_config *tuning,
                              char reason[HUM_REASON_BYTES]);
enum hum_code remote_heuristics(void *handle, const struct hum_layer_config *layer,
                                const struct hum_compute_config *compute, int64_t m,
                                struct hum_tuning_config *out, char reason[HUM_REASON_BYTES]);
enum hum_code remote_transform_shapes(void *handle, const struct hum_layer_config *layer,
                                      struct hum_weights *out, char reason[HUM_REASON_BYTES]);
enum hum_code remote_transform(void *handle, const struct hum_layer_config *layer,
                               const struct hum_weights *standard, struct hum_weights *out,
                               char reason[HUM_REASON_BYTES]);
enum hum_code remote_forward(void *handle, const struct hum_gemm_args *args,
                             char reason[HUM_REASON_BYTES]);
enum hum_code remote_accumulation(void *handle, const struct hum_layer_config *layer,
                                  const struct hum_compute_config *compute,
                                  const struct hum_tuning_config *tuning, int64_t m, int64_t row,
                                  int64_t col, struct hum_accumulation *out,
                                  char reason[HUM_REASON_BYTES]);

/* One call that names no memory, so that any worker will do: a lost one is replaced first.
 * `request` is deleted; `reply` as worker_call's. */
enum hum_code remote_ask(struct remote *r, struct cJSON *request, struct cJSON **reply,
                         char reason[HUM_REASON_BYTES]);

/* A reply lacks what the protocol wants: HUM_DEVICE_LOST with a sentence. */
enum hum_code remote_broken(char reason[HUM_REASON_BYTES]);

/* `request`, or NULL (and it is deleted) unless `ok`. */
struct cJSON *remote_checked(struct cJSON *request, bool ok);

/* One call without a payload and without a reply of interest. */
enum hum_code remote_call(struct remote *r, struct cJSON *request, char reason[HUM_REASON_BYTES]);

/* {"op": name}, for more members; NULL: no memory. */
struct cJSON *remote_request(const char *name);

#endif
