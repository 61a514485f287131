/* op_faults.h - for tests: providers whose operations are wrong in one way each. */
#ifndef HARNESS_TEST_OP_FAULTS_H
#define HARNESS_TEST_OP_FAULTS_H

#include "harness/test/case_run.h"

/* Right, then `fault`, which sees only calls that were accepted and have something to write. */
#define OP_AFTER(name, op, fault)                                               \
    static enum hum_code name(void *handle, const struct hum_##op##_args *args, \
                              char reason[HUM_REASON_BYTES])                    \
    {                                                                           \
        enum hum_code rc = hum_cpu_provider.ops->op(handle, args, reason);      \
                                                                                \
        if (rc == HUM_OK && op##_bytes(args))                                   \
            fault(args);                                                        \
        return rc;                                                              \
    }

/* The right operation with arguments that `change` has changed. */
#define OP_INSTEAD(name, op, change)                                            \
    static enum hum_code name(void *handle, const struct hum_##op##_args *args, \
                              char reason[HUM_REASON_BYTES])                    \
    {                                                                           \
        struct hum_##op##_args other;                                           \
                                                                                \
        if (!args)                                                              \
            return hum_cpu_provider.ops->op(handle, args, reason);              \
        other = *args;                                                          \
        change(&other);                                                         \
        return hum_cpu_provider.ops->op(handle, &other, reason);                \
    }

static inline void *tensor_data(const struct hum_tensor *t)
{
    return t->data;
}

/* What the case comes to at the cpu provider with these operations. */
static inline void expect_ops(const struct hum_ops *ops, const char *text, enum verdict verdict,
                              const char *reason)
{
    struct hum_provider p = hum_cpu_provider;

    p.ops = ops;
    expect_verdict(&p, text, verdict, reason);
}

#endif
