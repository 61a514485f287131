/* ops_record.h - a provider that stands before another and notes the operations it accepts.
 *
 * Calls go through unchanged. Those that end with HUM_OK are kept as they were asked and answered,
 * compared with what is right: wrong ones first, for a case may make thousands.
 */
#ifndef HARNESS_EXPLAIN_OPS_RECORD_H
#define HARNESS_EXPLAIN_OPS_RECORD_H

#include "harness/explain/ops_seen.h"

enum { OPS_CALLS = 8 };

struct ops_call {
    struct ops_seen seen;
    uint64_t *want[OPS_OUTPUTS]; /* as ops_answer.codes */
    bool wrong;
};

struct ops_recorder {
    const struct hum_provider *real;
    void *handle;                 /* of `real` */
    struct hum_provider provider; /* to be called with the recorder as its handle */
    struct hum_ops ops;
    struct arena *arena;   /* of calls */
    struct arena *scratch; /* of single answers */
    struct ops_call calls[OPS_CALLS];
    int count, wrong;
    /* buffer_metas: the first call that differs from what is right, else the first. */
    struct ops_buffers {
        bool there, wrong;
        struct hum_experts_config config; /* its layers live as long as the case */
        struct hum_layer_config gate_up, down;
        struct hum_buffer_meta before[HUM_BUFFER_COUNT], got[HUM_BUFFER_COUNT];
    } buffers;
    uint32_t rules; /* of the provider */
    bool by_ulp;    /* results of elementary functions are judged one by one, not followed */
    bool full;      /* memory was out, or more calls were wrong than are kept */
};

/* Is `seen` the activation alone, f32 to f32, of the values that s begins with? */
bool ops_input_is_activation_of(const struct ops_seen *seen, const struct ops_seen *s);

/* Everything given is borrowed. */
void ops_recorder_init(struct ops_recorder *r, const struct hum_provider *real, void *handle,
                       struct arena *arena, struct arena *scratch);

#endif
