#include "kernels/cpu/tensors.h"

#include "kernels/cpu/config.h"
#include "kernels/cpu/format.h"
#include "kernels/cpu/layout.h"
#include "kernels/cpu/order.h"

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
        return is_absent(got) ? HUM_OK
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

static enum hum_code check_locks(const struct hum_gemm_args *args, char reason[HUM_REASON_BYTES])
{
    const struct order o = order_make(args->layer, args->tuning, args->inputs.shape[0]);
    const struct hum_tensor *locks = &args->locks;
    const int32_t *values = locks->data;
    struct hum_tensor want = {.dtype = HUM_INT32, .rank = 1};

    if (!args->tuning->use_stream_k || o.tiles == 0)
        return HUM_OK;
    if (locks->rank != 1 || locks->shape[0] < o.tiles)
        return bad(reason, "locks", "must have one element a tile, in one dimension");
    want.shape[0] = locks->shape[0];
    want.bytes = format_bytes(HUM_INT32, want.shape[0]);
    if (tensor_check("locks", locks, &want, reason))
        return HUM_INVALID;
    for (int64_t i = 0; i < locks->shape[0]; i++)
        if (values[i] != 0)
            return bad(reason, "locks", "must be zero at entry");
    return HUM_OK;
}

static enum hum_code check_routing(const struct hum_gemm_args *args, char reason[HUM_REASON_BYTES])
{
    const struct hum_tensor absent = {0};
    const struct {
        const char *name;
        const struct hum_tensor *got;
    } all[] = {
        {"sorted_ids", &args->sorted_ids},
        {"expert_ids", &args->expert_ids},
        {"num_tokens_padded", &args->num_tokens_padded},
        {"expert_layout", &args->expert_layout},
    };

    if (args->top_k != 1)
        return bad(reason, "top_k", "must be 1 for a dense product");
    if (args->valid_shape_m < 0)
        return bad(reason, "valid_shape_m", "must not be negative");
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (tensor_check(all[i].name, all[i].got, &absent, reason))
            return HUM_INVALID;
    return HUM_OK;
}

enum hum_code tensors_check_args(const struct hum_gemm_args *args, char reason[HUM_REASON_BYTES])
{
    const struct hum_layer_config *l = args->layer;
    const struct facts f = config_facts(l);
    const struct hum_weights weights = layout_kernel(l);
    const int64_t m = args->inputs.shape[0];
    struct hum_tensor scale = {0}, outputs;

    if (check_inputs(l, &f, &args->inputs, reason))
        return HUM_INVALID;
    if (f.input_groups && args->compute->use_m_major_input_scale)
        scale = matrix(HUM_F32, f.input_groups, (m + 3) / 4 * 4);
    else if (f.input_groups)
        scale = matrix(HUM_F32, m, f.input_groups);
    if (tensor_check("input_scale", &args->input_scale, &scale, reason))
        return HUM_INVALID;
    outputs = matrix(l->c_dtype, m, f.n);
    if (tensor_check("outputs", &args->outputs, &outputs, reason))
        return HUM_INVALID;
    if (!args->weights)
        return bad(reason, "weights", "are missing");
    if (tensors_check_weights(args->weights, &weights, reason))
        return HUM_INVALID;
    if (check_routing(args, reason))
        return HUM_INVALID;
    return check_locks(args, reason);
}
