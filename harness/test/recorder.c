#include "harness/test/recorder.h"

#include "kernels/cpu/cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARGS_BYTES = 1024, LEFT_OUT = 6 };

/* Tensors of a product that may be stale, each with a copy. */
static const struct {
    size_t at;
    enum recorder_fault fault;
} stale[LEFT_OUT] = {
    {offsetof(struct hum_gemm_args, inputs), RECORDER_STALE_INPUTS},
    {offsetof(struct hum_gemm_args, input_scale), RECORDER_STALE_SCALES},
    {offsetof(struct hum_gemm_args, sorted_ids), RECORDER_STALE_ROUTING},
    {offsetof(struct hum_gemm_args, expert_ids), RECORDER_STALE_ROUTING},
    {offsetof(struct hum_gemm_args, num_tokens_padded), RECORDER_STALE_ROUTING},
    {offsetof(struct hum_gemm_args, expert_layout), RECORDER_STALE_ROUTING},
};

static struct {
    enum recorder_fault fault;
    bool awaited;
    int replays;
    enum hum_code (*run)(void *handle, char *reason);
    unsigned char args[ARGS_BYTES] __attribute__((aligned(16))); /* of an operation */
    size_t inputs_at; /* in them, of the tensor that may be stale */
    struct hum_gemm_args gemm;
    struct hum_layer_config layer;
    struct hum_compute_config compute;
    struct hum_tuning_config tuning;
    struct hum_weights weights;
    void *then[LEFT_OUT]; /* bytes of tensors when they were recorded */
    struct hum_provider provider;
} self;

static void *bytes_of(const struct hum_tensor *t)
{
    void *copy = aligned_alloc(64, t->bytes / 64 * 64 + 64);

    if (copy && t->bytes)
        memcpy(copy, t->data, t->bytes);
    return copy;
}

static void drop(void *handle)
{
    (void)handle;
    for (int i = 0; i < LEFT_OUT; i++) {
        free(self.then[i]);
        self.then[i] = NULL;
    }
    self.awaited = false;
    self.run = NULL;
}

static enum hum_code capture(void *handle, char reason[HUM_REASON_BYTES])
{
    drop(handle);
    if (self.fault == RECORDER_UNABLE) {
        (void)snprintf(reason, HUM_REASON_BYTES, "this launch cannot be recorded");
        return HUM_UNSUPPORTED;
    }
    self.awaited = true;
    self.replays = 0;
    return HUM_OK;
}

/* ---- products -------------------------------------------------------------------------------- */

static enum hum_code run_gemm(void *handle, char *reason)
{
    struct hum_gemm_args args = self.gemm;

    for (int i = 0; i < LEFT_OUT; i++) {
        struct hum_tensor *t = (struct hum_tensor *)(void *)((char *)&args + stale[i].at);

        if (stale[i].fault == self.fault && t->bytes)
            t->data = self.then[i];
    }
    return hum_cpu_provider.forward(handle, &args, reason);
}

static enum hum_code forward(void *handle, const struct hum_gemm_args *args,
                             char reason[HUM_REASON_BYTES])
{
    const enum hum_code rc = hum_cpu_provider.forward(handle, args, reason);

    if (!self.awaited || rc)
        return rc;
    self.awaited = false;
    self.gemm = *args;
    self.layer = *args->layer;
    self.compute = *args->compute;
    self.tuning = *args->tuning;
    self.weights = *args->weights;
    self.gemm.layer = &self.layer;
    self.gemm.compute = &self.compute;
    self.gemm.tuning = &self.tuning;
    self.gemm.weights = &self.weights;
    for (int i = 0; i < LEFT_OUT; i++)
        self.then[i] = bytes_of((const void *)((const char *)args + stale[i].at));
    self.run = run_gemm;
    return rc;
}

static enum hum_code run_wrongly(void *handle, char *reason)
{
    const struct hum_tensor *outputs = &self.gemm.outputs;
    const size_t tile = outputs->bytes / (size_t)outputs->shape[0] * (size_t)self.tuning.block_m;
    const size_t kept = tile < outputs->bytes ? tile : outputs->bytes;
    void *before = bytes_of(outputs);
    const enum hum_code rc = self.run(handle, reason);

    if (self.fault == RECORDER_OLD_TILE && before)
        memcpy(outputs->data, before, kept);
    if (self.fault == RECORDER_LOCK)
        *(int32_t *)self.gemm.locks.data = 1;
    if (self.fault == RECORDER_BESIDE)
        ((uint8_t *)outputs->data)[outputs->bytes] ^= 1;
    free(before);
    return rc;
}

/* ---- operations ------------------------------------------------------------------------------ */

static void record(const void *args, size_t size, size_t inputs_at,
                   enum hum_code (*run)(void *handle, char *reason))
{
    self.awaited = false;
    memcpy(self.args, args, size);
    self.inputs_at = inputs_at;
    self.then[0] = bytes_of((const void *)(self.args + inputs_at));
    self.run = run;
}

/* The arguments, with stale inputs if the fault is that. */
static const void *args_now(unsigned char args[ARGS_BYTES])
{
    struct hum_tensor t;

    memcpy(args, self.args, ARGS_BYTES);
    memcpy(&t, args + self.inputs_at, sizeof t);
    if (self.fault == RECORDER_STALE_INPUTS)
        t.data = self.then[0];
    memcpy(args + self.inputs_at, &t, sizeof t);
    return args;
}

#define OP(op, type, inputs)                                                                  \
    static enum hum_code run_##op(void *handle, char *reason)                                 \
    {                                                                                         \
        unsigned char args[ARGS_BYTES] __attribute__((aligned(16)));                          \
                                                                                              \
        return hum_cpu_provider.ops->op(handle, args_now(args), reason);                      \
    }                                                                                         \
    static enum hum_code op(void *handle, const struct hum_##type##_args *args,               \
                            char reason[HUM_REASON_BYTES])                                    \
    {                                                                                         \
        const enum hum_code rc = hum_cpu_provider.ops->op(handle, args, reason);              \
                                                                                              \
        if (self.awaited && !rc)                                                              \
            record(args, sizeof *args, offsetof(struct hum_##type##_args, inputs), run_##op); \
        return rc;                                                                            \
    }

OP(quant_weight, quant_weight, inputs)
OP(dequant_weight, dequant_weight, codes)
OP(pack, pack, codes)
OP(unpack, pack, packed)
OP(process_mxfp4, process_mxfp4, weight)
OP(process_input, process_input, inputs)
OP(hadamard, hadamard, inputs)
OP(moe_fused_mul_sum, moe_fused_mul_sum, inputs)

static const struct hum_ops ops = {
    .quant_weight = quant_weight,
    .dequant_weight = dequant_weight,
    .pack = pack,
    .unpack = unpack,
    .process_mxfp4 = process_mxfp4,
    .process_input = process_input,
    .hadamard = hadamard,
    .moe_fused_mul_sum = moe_fused_mul_sum,
};

/* ---- the provider ---------------------------------------------------------------------------- */

static enum hum_code replay(void *handle, char reason[HUM_REASON_BYTES])
{
    const bool wrongly = self.fault == RECORDER_OLD_TILE || self.fault == RECORDER_LOCK ||
                         self.fault == RECORDER_BESIDE;

    self.replays++;
    if (!self.run || self.fault == RECORDER_REFUSES) {
        (void)snprintf(reason, HUM_REASON_BYTES, "nothing is recorded");
        return HUM_INVALID;
    }
    if (self.fault == RECORDER_NOTHING || (self.fault == RECORDER_ONCE && self.replays > 1))
        return HUM_OK;
    return wrongly ? run_wrongly(handle, reason) : self.run(handle, reason);
}

const struct hum_provider *recorder_provider(enum recorder_fault fault)
{
    drop(NULL);
    self.fault = fault;
    self.provider = hum_cpu_provider;
    self.provider.name = "recorder";
    self.provider.forward = forward;
    self.provider.ops = &ops;
    self.provider.capture = capture;
    self.provider.replay = replay;
    self.provider.drop = drop;
    return &self.provider;
}
