/* wrong_buffers.h - for tests: buffer_metas of the experts pipeline, wrong in one way each. */
#ifndef HARNESS_TEST_WRONG_BUFFERS_H
#define HARNESS_TEST_WRONG_BUFFERS_H

#include "kernels/cpu/ops.h"

static inline enum hum_code other_workspace(void *h, const struct hum_experts_config *c,
                                            struct hum_buffer_meta *out, char *reason)
{
    enum hum_code rc = op_buffer_metas(h, c, out, reason);

    out[HUM_BUFFER_DOWN_OUTPUT].workspace ^= 3;
    return rc;
}

static inline enum hum_code few_bytes(void *h, const struct hum_experts_config *c,
                                      struct hum_buffer_meta *out, char *reason)
{
    enum hum_code rc = op_buffer_metas(h, c, out, reason);

    if (!rc)
        out[HUM_BUFFER_ACTIVATION_OUTPUT].bytes /= 2;
    return rc;
}

/* Room for one dispatcher, and none for others. */
static inline enum hum_code one_dispatcher(void *h, const struct hum_experts_config *c,
                                           struct hum_buffer_meta *out, char *reason)
{
    struct hum_experts_config one;

    if (!c)
        return op_buffer_metas(h, c, out, reason);
    one = *c;
    one.dispatchers = 1;
    return op_buffer_metas(h, &one, out, reason);
}

/* As before padding was taken off, or the form was looked at: layers are not compared. */
static inline enum hum_code takes_all(void *h, const struct hum_experts_config *c,
                                      struct hum_buffer_meta *out, char *reason)
{
    enum hum_code rc = op_buffer_metas(h, c, out, reason);

    return rc == HUM_INVALID && c && c->gate_up && c->down ? HUM_OK : rc;
}

static inline enum hum_code writes_anyway(void *h, const struct hum_experts_config *c,
                                          struct hum_buffer_meta *out, char *reason)
{
    enum hum_code rc = op_buffer_metas(h, c, out, reason);

    if (rc)
        out[0].rows = 0;
    return rc;
}

static inline enum hum_code says_nothing(void *h, const struct hum_experts_config *c,
                                         struct hum_buffer_meta *out, char *reason)
{
    enum hum_code rc = op_buffer_metas(h, c, out, reason);

    reason[0] = '\0';
    return rc;
}

#endif
