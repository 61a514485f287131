#include "kernels/cpu/tensors.h"

#include "kernels/cpu/config.h"
#include "kernels/cpu/fault.h"
#include "kernels/cpu/format.h"
#include "kernels/cpu/layout.h"

#include <inttypes.h>
#include <stdio.h>

static enum hum_code bad(char reason[HUM_REASON_BYTES], const char *name, const char *what)
{
    (void)snprintf(reason, HUM_REASON_BYTES, "%s %s", name, what);
    return HUM_INVALID;
}

static bool is_absent(const struct hum_tensor *t)
{
    return !t->data && t->bytes == 0;
}

enum hum_code tensor_check(const char *name, const struct hum_tensor *got,
                           const struct hum_tensor *want, char reason[HUM_REASON_BYTES])
{
    if (want->rank == 0)
        return is_absent(got) || FAULT(EXTRA_TENSOR_ACCEPTED)
                   ? HUM_OK
                   : bad(reason, name, "must be absent with this configuration");
    if (got->dtype != want->dtype) {
        (void)snprintf(reason, HUM_REASON_BYTES, "%s must have format %" PRId32 ", not %" PRId32,
                       name, want->dtype, got->dtype);
        return HUM_INVALID;
    }
    if (got->rank != want->rank) {
        (void)snprintf(reason, HUM_REASON_BYTES, "%s must have rank %" PRId32 ", not %" PRId32,
                       name, want->rank, got->rank);
        return HUM_INVALID;
    }
    for (int32_t i = 0; i < want->rank; i++)
        if (got->shape[i] != want->shape[i]) {
            (void)snprintf(reason, HUM_REASON_BYTES,
                           "size %" PRId32 " of %s must be %" PRId64 ", not %" PRId64, i, name,
                           want->shape[i], got->shape[i]);
            return HUM_INVALID;
        }
    if (got->bytes != want->bytes)
        return bad(reason, name, "has a number of bytes that contradicts its shape");
    if (!got->data && got->bytes)
        return bad(reason, name, "has no data");
    if ((uintptr_t)got->data % 64 != 0)
        return bad(reason, name, "must be aligned to 64 bytes");
    return HUM_OK;
}

enum hum_code tensors_check_weights(const struct hum_weights *got, const struct hum_weights *want,
                                    char reason[HUM_REASON_BYTES])
{
    const struct {
        const char *name;
        const struct hum_tensor *got, *want;
    } all[] = {
        {"weight", &got->weight, &want->weight},
        {"weight_scale", &got->weight_scale, &want->weight_scale},
        {"zero_point", &got->zero_point, &want->zero_point},
        {"weight_scale_2", &got->weight_scale_2, &want->weight_scale_2},
        {"bias", &got->bias, &want->bias},
    };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (tensor_check(all[i].name, all[i].got, all[i].want, reason))
            return HUM_INVALID;
    return HUM_OK;
}

static struct hum_tensor matrix(int32_t dtype, int64_t rows, int64_t columns)
{
    return (struct hum_tensor){
        .dtype = dtype,
        .rank = 2,
        .shape = {rows, columns},
        .bytes = format_bytes(dtype, rows * columns),
    };
}

/* Activations; two 4-bit ones a byte, whose format may be stated as that of bytes. */
static enum hum_code check_inputs(const struct hum_layer_config *l, const struct facts *f,
                                  const struct hum_tensor *in, char reason[HUM_REASON_BYTES])
{
    const int64_t m = in->shape[0], limit = INT64_C(1) << 31;
    struct hum_tensor want;

    if (in->rank != 2 || m < 0 || m > limit)
        return bad(reason, "inputs", "must have rank 2 and 0 to 2^31 rows");
    if (f->bits_a >= 8) {
        want = matrix(l->a_dtype, m, f->k);
    } else {
        want = matrix(HUM_UINT(8), m, f->k / 2);
        if (in->dtype == l->a_dtype)
            want.dtype = l->a_dtype;
    }
    return tensor_check("inputs", in, &want, reason);
}

static struct hum_tensor vector(int32_t dtype, int64_t count)
{
    return (struct hum_tensor){
        .dtype = dtype, .rank = 1, .shape = {count}, .bytes = format_bytes(dtype, count)};
}

enum hum_code tensors_check_locks(const struct hum_gemm_args *args, int64_t tiles,
                                  char reason[HUM_REASON_BYTES])
{
    const struct hum_tensor *locks = &args->locks;
    const int64_t limit = INT64_C(1) << 48;
    const int32_t *values = locks->data;
    struct hum_tensor want;

    if (!args->tuning->use_stream_k || tiles == 0)
        return HUM_OK;
    if (locks->rank != 1 || (locks->shape[0] < tiles && !FAULT(SMALL_LOCKS_ACCEPTED)) ||
        locks->shape[0] > limit)
        return bad(reason, "locks", "must have one element a tile, in one dimension");
    want = vector(HUM_INT32, locks->shape[0]);
    if (tensor_check("locks", locks, &want, reason))
        return HUM_INVALID;
    for (int64_t i = 0; i < locks->shape[0]; i++)
        if (values[i] != 0 && !FAULT(LOCKS_UNCHECKED))
            return bad(reason, "locks", "must be zero at entry");
    return HUM_OK;
}

/* m x top_k must be a padding id. */
static enum hum_code check_numbers(const struct hum_gemm_args *args, char reason[HUM_REASON_BYTES])
{
    const enum hum_gemm_type type = args->compute->gemm_type;
    const int64_t m = args->inputs.shape[0], experts = args->layer->num_experts;

    if (type != HUM_GEMM_INDEXED && args->top_k != 1)
        return bad(reason, "top_k", "must be 1 but for indexed products");
    if (type == HUM_GEMM_INDEXED && (args->top_k < 1 || m * args->top_k > INT32_MAX))
        return bad(reason, "top_k", "must be at least 1, and at most (2^31 - 1) / m");
    if (type == HUM_GEMM_GROUPED_MASKED && m % experts != 0)
        return bad(reason, "inputs", "must have a multiple of num_experts rows");
    if (args->valid_shape_m < 0)
        return bad(reason, "valid_shape_m", "must not be negative");
    return HUM_OK;
}

/* The length of expert_ids is the caller's choice; sorted_ids has block_m ids for each of them. */
static enum hum_code check_blocks(const struct hum_gemm_args *args, char reason[HUM_REASON_BYTES])
{
    const struct hum_tensor *ids = &args->sorted_ids, *experts = &args->expert_ids;
    const int64_t block_m = args->tuning->block_m, blocks = experts->shape[0];

    if (experts->rank != 1 || blocks < 0 || blocks > INT32_MAX / block_m)
        return bad(reason, "expert_ids",
                   "must have rank 1 and a length of 0 to (2^31 - 1) / block_m");
    if (ids->rank != 1 || ids->shape[0] != blocks * block_m)
        return bad(reason, "sorted_ids",
                   "must have block_m of the tuning places for each of expert_ids");
    return HUM_OK;
}

static enum hum_code check_routing(const struct hum_gemm_args *args, char reason[HUM_REASON_BYTES])
{
    const struct hum_tensor *layout = &args->expert_layout;
    const int32_t layout_dtype = layout->dtype == HUM_INT64 ? HUM_INT64 : HUM_INT32;
    const int64_t experts = args->layer->num_experts;
    struct {
        const char *name;
        const struct hum_tensor *got;
        struct hum_tensor want;
    } all[] = {
        {"sorted_ids", &args->sorted_ids, {0}},
        {"expert_ids", &args->expert_ids, {0}},
        {"num_tokens_padded", &args->num_tokens_padded, {0}},
        {"expert_layout", layout, {0}},
    };

    switch (args->compute->gemm_type) {
    case HUM_GEMM_DENSE:
        break;
    case HUM_GEMM_INDEXED:
        if (check_blocks(args, reason))
            return HUM_INVALID;
        all[0].want = vector(HUM_INT32, args->sorted_ids.shape[0]);
        all[1].want = vector(HUM_INT32, args->expert_ids.shape[0]);
        all[2].want = vector(HUM_INT32, 1);
        break;
    case HUM_GEMM_GROUPED_CONTIGUOUS:
        all[3].want = vector(layout_dtype, experts + 1);
        break;
    case HUM_GEMM_GROUPED_MASKED:
        all[3].want = vector(layout_dtype, experts);
        break;
    }
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (tensor_check(all[i].name, all[i].got, &all[i].want, reason))
            return HUM_INVALID;
    return HUM_OK;
}

static bool overlap(const struct hum_tensor *a, const struct hum_tensor *b)
{
    const uintptr_t x = (uintptr_t)a->data, y = (uintptr_t)b->data;

    return a->bytes && b->bytes && x < y + b->bytes && y < x + a->bytes;
}

static enum hum_code check_overlap(const struct hum_gemm_args *args, char reason[HUM_REASON_BYTES])
{
    const struct {
        const char *name;
        const struct hum_tensor *t;
    } all[] = {
        {"inputs", &args->inputs},
        {"input_scale", &args->input_scale},
        {"weight", &args->weights->weight},
        {"weight_scale", &args->weights->weight_scale},
        {"zero_point", &args->weights->zero_point},
        {"weight_scale_2", &args->weights->weight_scale_2},
        {"bias", &args->weights->bias},
        {"sorted_ids", &args->sorted_ids},
        {"expert_ids", &args->expert_ids},
        {"num_tokens_padded", &args->num_tokens_padded},
        {"expert_layout", &args->expert_layout},
        {"locks", &args->locks},
    };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (overlap(&args->outputs, all[i].t) && !FAULT(ALIAS_ACCEPTED)) {
            (void)snprintf(reason, HUM_REASON_BYTES, "outputs must not overlap %s", all[i].name);
            return HUM_INVALID;
        }
    return HUM_OK;
}

static struct hum_tensor want_input_scale(const struct hum_gemm_args *args, const struct facts *f)
{
    const int64_t m = args->inputs.shape[0];

    if (!f->input_groups)
        return (struct hum_tensor){0};
    if (args->compute->use_m_major_input_scale)
        return matrix(HUM_F32, f->input_groups, (m + 3) / 4 * 4);
    return matrix(HUM_F32, m, f->input_groups);
}

enum hum_code tensors_check_args(const struct hum_gemm_args *args, char reason[HUM_REASON_BYTES])
{
    const struct hum_layer_config *l = args->layer;
    const struct facts f = config_facts(l);
    const struct hum_weights weights = layout_kernel(l);
    struct hum_tensor scale, outputs;

    if (check_inputs(l, &f, &args->inputs, reason) || check_numbers(args, reason))
        return HUM_INVALID;
    scale = want_input_scale(args, &f);
    if (tensor_check("input_scale", &args->input_scale, &scale, reason))
        return HUM_INVALID;
    outputs = matrix(l->c_dtype, args->inputs.shape[0] * args->top_k, f.n);
    if (tensor_check("outputs", &args->outputs, &outputs, reason))
        return HUM_INVALID;
    if (!args->weights)
        return bad(reason, "weights", "are missing");
    if (tensors_check_weights(args->weights, &weights, reason) || check_routing(args, reason))
        return HUM_INVALID;
    return check_overlap(args, reason);
}
