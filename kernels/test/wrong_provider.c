/* wrong_provider.c - the cpu provider as a shared library, wrong on purpose.
 *
 * HUMCHECK_WRONG names the fault (the table below); unset or anything else: it computes correctly.
 * A harness that calls one of these faults a pass is broken.
 */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/round.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

hum_provider_fn humcheck_provider;

typedef enum hum_code forward_fn(void *handle, const struct hum_gemm_args *args,
                                 char reason[HUM_REASON_BYTES]);

static enum hum_code out_of_memory(char reason[HUM_REASON_BYTES])
{
    (void)snprintf(reason, HUM_REASON_BYTES, "there is no memory for a copy");
    return HUM_NO_MEMORY;
}

static int64_t outputs_count(const struct hum_gemm_args *args)
{
    return args->outputs.shape[0] * args->outputs.shape[1];
}

static enum hum_code forward_nan(void *handle, const struct hum_gemm_args *args,
                                 char reason[HUM_REASON_BYTES])
{
    const enum hum_code rc = hum_cpu_provider.forward(handle, args, reason);
    uint16_t *out = args->outputs.data;

    if (!rc && outputs_count(args))
        out[outputs_count(args) / 2] = 0x7fff; /* NaN in f16 and bf16 */
    return rc;
}

static enum hum_code forward_swap(void *handle, const struct hum_gemm_args *args,
                                  char reason[HUM_REASON_BYTES])
{
    const enum hum_code rc = hum_cpu_provider.forward(handle, args, reason);
    const int64_t n = args->outputs.shape[1];
    uint16_t *out = args->outputs.data;

    for (int64_t row = 0; !rc && row < args->outputs.shape[0]; row++) {
        const uint16_t first = out[row * n];

        out[row * n] = out[row * n + 1];
        out[row * n + 1] = first;
    }
    return rc;
}

/* The last column of the inputs is zero in a copy of them. */
static enum hum_code forward_drop_k(void *handle, const struct hum_gemm_args *args,
                                    char reason[HUM_REASON_BYTES])
{
    struct hum_gemm_args changed = *args;
    const size_t bytes = args->inputs.bytes, rows = (size_t)args->inputs.shape[0];
    const int bits = hum_dtype_bits(args->layer->a_dtype);
    enum hum_code rc;

    changed.inputs.data = aligned_alloc(64, bytes / 64 * 64 + 64);
    if (!changed.inputs.data)
        return out_of_memory(reason);
    memcpy(changed.inputs.data, args->inputs.data, bytes);
    for (size_t row = 1; row <= rows; row++) {
        uint8_t *end = (uint8_t *)changed.inputs.data + row * (bytes / rows);

        if (bits == 4)
            end[-1] &= 15;
        else
            memset(end - bits / 8, 0, (size_t)bits / 8);
    }
    rc = hum_cpu_provider.forward(handle, &changed, reason);
    free(changed.inputs.data);
    return rc;
}

static enum hum_code forward_tail(void *handle, const struct hum_gemm_args *args,
                                  char reason[HUM_REASON_BYTES])
{
    const size_t row_bytes = (size_t)args->outputs.shape[1] * sizeof(uint16_t);
    char *last = (char *)args->outputs.data + args->outputs.bytes - row_bytes;
    char *before = malloc(row_bytes);
    enum hum_code rc;

    if (!before)
        return out_of_memory(reason);
    if (args->outputs.bytes)
        memcpy(before, last, row_bytes);
    rc = hum_cpu_provider.forward(handle, args, reason);
    if (args->outputs.bytes)
        memcpy(last, before, row_bytes);
    free(before);
    return rc;
}

static enum hum_code forward_early(void *handle, const struct hum_gemm_args *args,
                                   char reason[HUM_REASON_BYTES])
{
    (void)handle;
    (void)args;
    reason[0] = '\0';
    return HUM_OK;
}

static enum hum_code forward_crash(void *handle, const struct hum_gemm_args *args,
                                   char reason[HUM_REASON_BYTES])
{
    (void)signal(SIGSEGV, SIG_DFL);
    (void)raise(SIGSEGV);
    return hum_cpu_provider.forward(handle, args, reason);
}

static enum hum_code forward_hang(void *handle, const struct hum_gemm_args *args,
                                  char reason[HUM_REASON_BYTES])
{
    (void)handle;
    (void)args;
    reason[0] = '\0';
    while (pause() != 0) /* -1 after every signal that was handled */
        continue;
    return HUM_OK;
}

static enum hum_code forward_unsupported(void *handle, const struct hum_gemm_args *args,
                                         char reason[HUM_REASON_BYTES])
{
    (void)handle;
    (void)args;
    (void)snprintf(reason, HUM_REASON_BYTES, "this provider refuses everything");
    return HUM_UNSUPPORTED;
}

static enum hum_code forward_overrun(void *handle, const struct hum_gemm_args *args,
                                     char reason[HUM_REASON_BYTES])
{
    const enum hum_code rc = hum_cpu_provider.forward(handle, args, reason);
    uint16_t *out = args->outputs.data;

    if (!rc)
        out[outputs_count(args)] ^= 0xffffu;
    return rc;
}

static enum hum_code forward_one_ulp(void *handle, const struct hum_gemm_args *args,
                                     char reason[HUM_REASON_BYTES])
{
    const enum hum_code rc = hum_cpu_provider.forward(handle, args, reason);
    uint16_t *out = args->outputs.data;

    if (!rc && outputs_count(args))
        out[outputs_count(args) / 2] ^= 1u;
    return rc;
}

/* Where a sum cancels, one code is less than what the order of summation may change. */
static enum hum_code forward_smallest(void *handle, const struct hum_gemm_args *args,
                                      char reason[HUM_REASON_BYTES])
{
    const enum hum_code rc = hum_cpu_provider.forward(handle, args, reason);
    uint16_t *out = args->outputs.data;
    int64_t smallest = -1;

    for (int64_t i = 0; !rc && i < outputs_count(args); i++)
        if (out[i] & 0x7fff && (smallest < 0 || (out[i] & 0x7fff) < (out[smallest] & 0x7fff)))
            smallest = i;
    if (smallest >= 0)
        out[smallest] ^= 1u;
    return rc;
}

static enum hum_code forward_bias_twice(void *handle, const struct hum_gemm_args *args,
                                        char reason[HUM_REASON_BYTES])
{
    const enum hum_code rc = hum_cpu_provider.forward(handle, args, reason);
    const int64_t n = args->outputs.shape[1];
    const int32_t c = args->layer->c_dtype;
    const float *bias = args->weights->bias.data;
    uint16_t *out = args->outputs.data;

    for (int64_t i = 0; !rc && bias && i < outputs_count(args); i++)
        out[i] = encode_16(c, round_16(c, decode_16(c, out[i]) + bias[i % n]));
    return rc;
}

/* "abi" is in humcheck_provider, "no_bf16" in wrong_supports and wrong_heuristics. */
static const struct {
    const char *name;
    forward_fn *forward;
} faults[] = {
    {"nan", forward_nan},                 /* one output is NaN */
    {"swap", forward_swap},               /* the first two columns are exchanged */
    {"drop_k", forward_drop_k},           /* the last valid k is left out */
    {"tail", forward_tail},               /* the last row is not written */
    {"early", forward_early},             /* nothing is computed */
    {"crash", forward_crash},             /* SIGSEGV */
    {"hang", forward_hang},               /* never returns */
    {"unsupported", forward_unsupported}, /* refuses everything */
    {"overrun", forward_overrun},         /* one element behind the outputs changes */
    {"one_ulp", forward_one_ulp},         /* one output is one code off */
    {"smallest", forward_smallest},       /* the smallest one is: inside of its interval */
    {"bias_twice", forward_bias_twice},
};

static bool is_fault(const char *name)
{
    const char *wanted = getenv("HUMCHECK_WRONG");

    return wanted && strcmp(wanted, name) == 0;
}

static enum hum_code wrong_forward(void *handle, const struct hum_gemm_args *args,
                                   char reason[HUM_REASON_BYTES])
{
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        if (is_fault(faults[i].name))
            return faults[i].forward(handle, args, reason);
    return hum_cpu_provider.forward(handle, args, reason);
}

static enum hum_code wrong_open(int threads, void **handle, char reason[HUM_REASON_BYTES])
{
    return hum_cpu_provider.open(threads, handle, reason);
}

static void wrong_close(void *handle)
{
    hum_cpu_provider.close(handle);
}

/* bf16 activations are refused, all else is right. */
static bool lacks(const struct hum_layer_config *layer)
{
    return is_fault("no_bf16") && layer && layer->a_dtype == HUM_BF16;
}

static enum hum_code refuse_bf16(char reason[HUM_REASON_BYTES])
{
    (void)snprintf(reason, HUM_REASON_BYTES, "bf16 activations are not supported");
    return HUM_UNSUPPORTED;
}

static enum hum_code wrong_supports(void *handle, const struct hum_layer_config *layer,
                                    const struct hum_compute_config *compute,
                                    const struct hum_tuning_config *tuning,
                                    char reason[HUM_REASON_BYTES])
{
    if (is_fault("unsupported"))
        return forward_unsupported(handle, NULL, reason);
    if (lacks(layer))
        return refuse_bf16(reason);
    return hum_cpu_provider.supports(handle, layer, compute, tuning, reason);
}

static enum hum_code wrong_heuristics(void *handle, const struct hum_layer_config *layer,
                                      const struct hum_compute_config *compute, int64_t m,
                                      struct hum_tuning_config *out, char reason[HUM_REASON_BYTES])
{
    if (is_fault("unsupported"))
        return forward_unsupported(handle, NULL, reason);
    if (lacks(layer))
        return refuse_bf16(reason);
    return hum_cpu_provider.heuristics(handle, layer, compute, m, out, reason);
}

static enum hum_code wrong_transform_shapes(void *handle, const struct hum_layer_config *layer,
                                            struct hum_weights *out, char reason[HUM_REASON_BYTES])
{
    if (is_fault("unsupported"))
        return forward_unsupported(handle, NULL, reason);
    return hum_cpu_provider.transform_shapes(handle, layer, out, reason);
}

static enum hum_code wrong_transform(void *handle, const struct hum_layer_config *layer,
                                     const struct hum_weights *standard, struct hum_weights *out,
                                     char reason[HUM_REASON_BYTES])
{
    if (is_fault("unsupported"))
        return forward_unsupported(handle, NULL, reason);
    return hum_cpu_provider.transform(handle, layer, standard, out, reason);
}

/* NOLINTNEXTLINE(readability-function-size): the contract has nine parameters */
static enum hum_code wrong_accumulation(void *handle, const struct hum_layer_config *layer,
                                        const struct hum_compute_config *compute,
                                        const struct hum_tuning_config *tuning, int64_t m,
                                        int64_t row, int64_t col, struct hum_accumulation *out,
                                        char reason[HUM_REASON_BYTES])
{
    if (is_fault("unsupported"))
        return forward_unsupported(handle, NULL, reason);
    return hum_cpu_provider.accumulation(handle, layer, compute, tuning, m, row, col, out, reason);
}

static const char *const inert_tuning[] = {"num_stages", NULL};

#define PROVIDER(abi)                                                               \
    {                                                                               \
        .abi_version = (abi), .name = "wrong", .version = "1", .device = "cpu",     \
        .open = wrong_open, .close = wrong_close, .supports = wrong_supports,       \
        .heuristics = wrong_heuristics, .transform_shapes = wrong_transform_shapes, \
        .transform = wrong_transform, .forward = wrong_forward,                     \
        .accumulation = wrong_accumulation, .inert_tuning = inert_tuning,           \
    }

static const struct hum_provider provider = PROVIDER(HUM_ABI_VERSION);
static const struct hum_provider other_abi = PROVIDER(HUM_ABI_VERSION + 1);

const struct hum_provider *humcheck_provider(void)
{
    return is_fault("abi") ? &other_abi : &provider;
}
