/* worker_call.h - a request that the worker of the tests is answering, and its recordings. */
#ifndef KERNELS_TEST_WORKER_CALL_H
#define KERNELS_TEST_WORKER_CALL_H

#include "kernels/abi/humming.h"

struct cJSON;
struct call;

typedef enum hum_code call_answer(struct call *c);

/* What `capture` began: the arguments of one launch, which `replay` computes again. */
struct recording {
    bool awaited;
    struct cJSON *request; /* NULL: nothing is recorded */
    call_answer *answer;
    struct hum_tensor inputs; /* of the request, */
    void *then;               /* and what they were when it was recorded */
};

struct call {
    void *cpu;
    const struct cJSON *request;
    const void *payload;
    size_t payload_bytes;
    struct cJSON *reply;
    const void *out;
    size_t out_bytes;
    char reason[HUM_REASON_BYTES];
    struct recording *recording;
};

/* HUM_INVALID, with the sentence as reason. */
enum hum_code call_refuse(struct call *c, const char *sentence);

/* A tensor of the wire; all zero: absent. */
struct hum_tensor call_tensor(const struct cJSON *object, const char *name);

/* `answer` to a launch, which is recorded if one is awaited. */
enum hum_code recording_launch(struct call *c, call_answer *answer);

call_answer recording_capture, recording_replay, recording_drop;

#endif
