/* wrong_inputs.h - for tests: process_input as it must not be, one fault a function.
 */
#ifndef HARNESS_TEST_WRONG_INPUTS_H
#define HARNESS_TEST_WRONG_INPUTS_H

#include "kernels/cpu/ops.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

typedef enum hum_code input_fn(void *handle, const struct hum_process_input_args *args,
                               char reason[HUM_REASON_BYTES]);

static inline uint8_t *bytes_of(const struct hum_tensor *t)
{
    return t->data;
}

static inline size_t row_bytes(const struct hum_tensor *t)
{
    return t->shape[0] ? t->bytes / (size_t)t->shape[0] : 0;
}

static inline void swap_bytes(uint8_t *x, uint8_t *y, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint8_t kept = x[i];

        x[i] = y[i];
        y[i] = kept;
    }
}

static inline enum hum_code rows_swapped(void *handle, const struct hum_process_input_args *args,
                                         char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = op_process_input(handle, args, reason);
    size_t n = rc ? 0 : row_bytes(&args->outputs);

    if (n && args->outputs.shape[0] > 1)
        swap_bytes(bytes_of(&args->outputs), bytes_of(&args->outputs) + n, n);
    return rc;
}

/* The scales of the first two groups change places. */
static inline enum hum_code groups_swapped(void *handle, const struct hum_process_input_args *args,
                                           char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = op_process_input(handle, args, reason);
    size_t size = args && args->group_scale_dtype == HUM_F32 ? 4 : 1;

    if (!rc && args->group_scales.bytes >= 2 * size)
        swap_bytes(bytes_of(&args->group_scales), bytes_of(&args->group_scales) + size, size);
    return rc;
}

/* Group 0's scale for all groups of a row. */
static inline enum hum_code group_index_lost(void *handle,
                                             const struct hum_process_input_args *args,
                                             char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = op_process_input(handle, args, reason);
    size_t n = rc ? 0 : row_bytes(&args->group_scales);

    for (size_t at = 0; n && at < args->group_scales.bytes; at += n)
        memset(bytes_of(&args->group_scales) + at, bytes_of(&args->group_scales)[at], n);
    return rc;
}

static inline enum hum_code token_scale_stale(void *handle,
                                              const struct hum_process_input_args *args,
                                              char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = op_process_input(handle, args, reason);

    if (!rc && args->token_scales.bytes >= 8)
        memcpy(bytes_of(&args->token_scales) + 4, bytes_of(&args->token_scales), 4);
    return rc;
}

/* The exponent is cut off instead of rounded up: 1 less where the raw scale is no power of two. */
static inline enum hum_code e8m0_floored(void *handle, const struct hum_process_input_args *args,
                                         char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = op_process_input(handle, args, reason);

    for (size_t i = 1; !rc && i < args->group_scales.bytes; i += 2)
        bytes_of(&args->group_scales)[i]--;
    return rc;
}

static inline enum hum_code zero_sign_lost(void *handle, const struct hum_process_input_args *args,
                                           char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = op_process_input(handle, args, reason);

    for (size_t i = 0; !rc && i < args->outputs.bytes; i++)
        if (bytes_of(&args->outputs)[i] == 0x80)
            bytes_of(&args->outputs)[i] = 0;
    return rc;
}

/* What would have been saturated becomes NaN. */
static inline enum hum_code not_saturated(void *handle, const struct hum_process_input_args *args,
                                          char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = op_process_input(handle, args, reason);

    for (size_t i = 0; !rc && i < args->outputs.bytes; i++)
        if ((bytes_of(&args->outputs)[i] & 0x7f) == 0x7e)
            bytes_of(&args->outputs)[i] |= 1;
    return rc;
}

/* With a given scale, ties of f32 inputs that are a hair larger go away from zero. */
static inline enum hum_code ties_away(void *handle, const struct hum_process_input_args *args,
                                      char reason[HUM_REASON_BYTES])
{
    struct hum_process_input_args call;
    enum hum_code rc;
    float *x;

    if (!args || args->inputs.dtype != HUM_F32 || !args->inputs.data)
        return op_process_input(handle, args, reason);
    call = *args;
    x = aligned_alloc(64, (args->inputs.bytes + 63) / 64 * 64);
    ck_assert_ptr_nonnull(x);
    memcpy(x, args->inputs.data, args->inputs.bytes);
    for (size_t i = 0; i < args->inputs.bytes / 4; i++)
        x[i] *= 1.0f + 0x1p-21f;
    call.inputs.data = x;
    rc = op_process_input(handle, &call, reason);
    free(x);
    return rc;
}

/* Nibbles change places. */
static inline enum hum_code odd_column_low(void *handle, const struct hum_process_input_args *args,
                                           char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = op_process_input(handle, args, reason);

    for (size_t i = 0; !rc && i < args->outputs.bytes; i++) {
        uint8_t *byte = bytes_of(&args->outputs) + i;

        *byte = (uint8_t)(*byte << 4 | *byte >> 4);
    }
    return rc;
}

static inline enum hum_code without_hadamard(void *handle,
                                             const struct hum_process_input_args *args,
                                             char reason[HUM_REASON_BYTES])
{
    struct hum_process_input_args call;

    if (!args)
        return op_process_input(handle, args, reason);
    call = *args;
    call.hadamard_block_size = 0;
    return op_process_input(handle, &call, reason);
}

/* The output's last row keeps what was there. */
static inline enum hum_code last_row_left(void *handle, const struct hum_process_input_args *args,
                                          char reason[HUM_REASON_BYTES])
{
    size_t n = args ? row_bytes(&args->outputs) : 0, at = n ? args->outputs.bytes - n : 0;
    uint8_t *kept = malloc(n + 1);
    enum hum_code rc;

    ck_assert_ptr_nonnull(kept);
    if (n && args->outputs.data)
        memcpy(kept, bytes_of(&args->outputs) + at, n);
    rc = op_process_input(handle, args, reason);
    if (!rc && n)
        memcpy(bytes_of(&args->outputs) + at, kept, n);
    free(kept);
    return rc;
}

static inline enum hum_code last_row_written(void *handle,
                                             const struct hum_process_input_args *args,
                                             char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = op_process_input(handle, args, reason);
    size_t n = rc ? 0 : row_bytes(&args->outputs);

    if (n)
        memset(bytes_of(&args->outputs) + args->outputs.bytes - n, 0, n);
    return rc;
}

/* Results of the activation alone that are 2^-19 too large. */
static inline enum hum_code activation_rough(void *handle,
                                             const struct hum_process_input_args *args,
                                             char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = op_process_input(handle, args, reason);
    float *y = rc ? NULL : args->outputs.data;

    for (size_t i = 0; !rc && args->outputs.dtype == HUM_F32 && i < args->outputs.bytes / 4; i++)
        y[i] *= 1.0f + 0x1p-19f;
    return rc;
}

/* One step of f32: within the bound. */
static inline enum hum_code activation_fair(void *handle, const struct hum_process_input_args *args,
                                            char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = op_process_input(handle, args, reason);
    uint32_t *y = rc ? NULL : args->outputs.data;

    for (size_t i = 0; !rc && args->outputs.dtype == HUM_F32 && i < args->outputs.bytes / 4; i++)
        y[i] += (y[i] & 0x7fffffff) != 0;
    return rc;
}

/* Another byte in every call. */
static inline enum hum_code unsteady(void *handle, const struct hum_process_input_args *args,
                                     char reason[HUM_REASON_BYTES])
{
    static uint8_t calls;
    enum hum_code rc = op_process_input(handle, args, reason);

    if (!rc && args->outputs.bytes)
        bytes_of(&args->outputs)[0] ^= calls++ & 1;
    return rc;
}

/* Writes before it refuses. */
static inline enum hum_code writes_first(void *handle, const struct hum_process_input_args *args,
                                         char reason[HUM_REASON_BYTES])
{
    if (args && args->outputs.data && args->outputs.bytes)
        bytes_of(&args->outputs)[0] = 0;
    return op_process_input(handle, args, reason);
}

static inline enum hum_code takes_any_mode(void *handle, const struct hum_process_input_args *args,
                                           char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = op_process_input(handle, args, reason);

    return args && (int)args->quant_mode == 6 ? HUM_OK : rc;
}

/* One byte behind the outputs. */
static inline enum hum_code writes_behind(void *handle, const struct hum_process_input_args *args,
                                          char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = op_process_input(handle, args, reason);

    if (!rc && args->outputs.bytes)
        bytes_of(&args->outputs)[args->outputs.bytes + 100] = 1;
    return rc;
}

/* Outputs directly behind the inputs come out wrong. */
static inline enum hum_code wrong_when_close(void *handle,
                                             const struct hum_process_input_args *args,
                                             char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = op_process_input(handle, args, reason);
    ptrdiff_t between =
        rc ? -1 : bytes_of(&args->outputs) - (bytes_of(&args->inputs) + args->inputs.bytes);

    if (between >= 0 && between < 64)
        bytes_of(&args->outputs)[0] ^= 1;
    return rc;
}

static inline enum hum_code overlap_taken(void *handle, const struct hum_process_input_args *args,
                                          char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = op_process_input(handle, args, reason);

    return rc && strstr(reason, "overlap") ? HUM_OK : rc;
}

#endif
