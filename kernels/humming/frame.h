/* frame.h - a worker process and the frames that pass between it and the program.
 *
 * A frame is a head of 16 bytes, little-endian (u32 bytes of JSON; u32 code; u64 bytes of payload),
 * the JSON text and the payload (docs/worker-protocol.md). The code of a request is 0, that of a
 * reply is an enum hum_code.
 */
#ifndef KERNELS_HUMMING_FRAME_H
#define KERNELS_HUMMING_FRAME_H

#include "kernels/abi/humming.h"

#include <stdio.h>
#include <sys/types.h>

struct cJSON;

struct worker {
    pid_t pid; /* 0: none */
    int socket;
    bool lost; /* the socket broke: nothing more is asked */
    FILE *log; /* what the worker prints, in a file without a name */
};

/* argv[0] is a program, found along PATH if it has no '/'. The worker finds its end of the socket
 * as descriptor 3 and dies with this process. False: `reason` has a sentence. */
bool worker_start(struct worker *w, const char *const argv[], char reason[HUM_REASON_BYTES]);
void worker_stop(struct worker *w);

/* What is sent and received beside the JSON; `in` has room for in_bytes, exactly as many must
 * come. */
struct frame_payload {
    const void *out;
    size_t out_bytes;
    void *in;
    size_t in_bytes;
};

/* Sends `request` (owned and deleted here; NULL: no memory) and waits for the reply. HUM_OK: *reply
 * (may be NULL) belongs to the caller. Else `reason` has the worker's sentence, or why there is
 * none (HUM_DEVICE_LOST: the worker is gone). */
enum hum_code worker_call(struct worker *w, struct cJSON *request, const struct frame_payload *p,
                          struct cJSON **reply, char reason[HUM_REASON_BYTES]);

#endif
