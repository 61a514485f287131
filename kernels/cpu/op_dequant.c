#include "kernels/cpu/op_check.h"
#include "kernels/cpu/ops.h"

#include "kernels/cpu/config.h"
#include "kernels/cpu/fault.h"
#include "kernels/cpu/format.h"

static enum hum_code check(const struct hum_dequant_weight_args *a, char reason[HUM_REASON_BYTES])
{
    const int32_t t = a->source_dtype;

    if (!format_is_known(t) || !hum_dtype_is_float(t) || !hum_dtype_is_signed(t) ||
        hum_dtype_bits(t) > 8 || hum_dtype_exponent_bits(t) < 1)
        return refuse(reason, HUM_INVALID,
                      "source_dtype must be a signed float of 2 to 8 bits with exponent bits");
    if (!op_shape_is_sane(&a->codes, 1))
        return refuse(reason, HUM_INVALID, "codes must have rank 1 and at most 2^31 elements");
    {
        const int64_t n = a->codes.shape[0];
        const struct op_tensor all[] = {
            {"codes", &a->codes, op_want(HUM_INT32, 1, n, 0, 0), false},
            {"outputs", &a->outputs, op_want(HUM_F32, 1, n, 0, 0), true},
        };

        return op_check_tensors(all, sizeof all / sizeof all[0], reason);
    }
}

static float decode(int32_t dtype, uint32_t code)
{
    const uint32_t magnitude = code & ((1u << (hum_dtype_bits(dtype) - 1)) - 1u);
    const bool small = magnitude >> hum_dtype_mantissa_bits(dtype) == 0;

    if (FAULT(DEQUANT_TOP_IS_NAN) && dtype == HUM_E4M3)
        return format_decode(dtype, code, FORMAT_NUMBER);
    if ((FAULT(DEQUANT_SUBNORMALS_FLUSHED) && small && magnitude > 0) ||
        (FAULT(DEQUANT_MINUS_ZERO_LOST) && magnitude == 0))
        return 0.0f;
    return format_decode(dtype, code, FORMAT_WEIGHT);
}

/* The scaling by a power of two is exact, so a table of all codes is the same. */
enum hum_code op_dequant_weight(void *handle, const struct hum_dequant_weight_args *args,
                                char reason[HUM_REASON_BYTES])
{
    const uint32_t *codes;
    float *outputs, value[256];
    uint32_t count;

    (void)handle;
    if (!args)
        return refuse(reason, HUM_INVALID, "the arguments are missing");
    if (check(args, reason))
        return HUM_INVALID;
    codes = args->codes.data;
    outputs = args->outputs.data;
    count = 1u << hum_dtype_bits(args->source_dtype);
    for (uint32_t c = 0; c < count; c++)
        value[c] = decode(args->source_dtype, c);
    for (int64_t i = 0; i < args->codes.shape[0]; i++)
        outputs[i] = value[codes[i] & (count - 1u)];
    return HUM_OK;
}
