#include "kernels/cpu/op_number.h"

#include "kernels/cpu/format.h"

#include <math.h>

void op_load(int32_t dtype, const void *from, int64_t n, float *to)
{
    const uint16_t *codes = from;

    if (dtype == HUM_F32 && n > 0)
        memcpy(to, from, (size_t)n * sizeof *to);
    if (dtype == HUM_F16)
        for (int64_t i = 0; i < n; i++)
            to[i] = decode_16(HUM_F16, codes[i]);
    if (dtype == HUM_BF16)
        for (int64_t i = 0; i < n; i++)
            to[i] = decode_16(HUM_BF16, codes[i]);
}

void op_store(int32_t dtype, const float *from, int64_t n, void *to)
{
    uint16_t *codes = to;

    if (dtype == HUM_F32 && n > 0)
        memcpy(to, from, (size_t)n * sizeof *from);
    if (dtype == HUM_F16)
        for (int64_t i = 0; i < n; i++)
            codes[i] = encode_16(HUM_F16, round_f16(from[i]));
    if (dtype == HUM_BF16)
        for (int64_t i = 0; i < n; i++)
            codes[i] = encode_16(HUM_BF16, round_bf16(from[i]));
}

int64_t op_index(const struct hum_tensor *t, int64_t i)
{
    const int32_t *narrow = t->data;
    const int64_t *wide = t->data;

    return t->dtype == HUM_INT64 ? wide[i] : narrow[i];
}

struct op_format op_format(int32_t dtype, bool ieee)
{
    const int bits = hum_dtype_bits(dtype), m = hum_dtype_mantissa_bits(dtype);
    const int exponent_bits = hum_dtype_exponent_bits(dtype), bias = format_bias(dtype);
    const float step = exponent_bits ? ldexpf(1.0f, 1 - bias - m) : 1.0f;
    const uint32_t infinity = 0x7f800000u, all_ones = (1u << (bits - 1)) - 1u;
    struct op_format f = {
        .normal = exponent_bits ? float_bits(ldexpf(1.0f, 1 - bias)) : infinity,
        .magic = ldexpf(step, 23),
        .half_step = step / 2,
        .shift = 23 - m,
        .first = 1u << m,
        .sign = 1u << (bits - 1),
        .top = all_ones,
        .code_mask = (1u << bits) - 1u,
    };

    if (ieee && bits == 8)
        f.top = dtype == HUM_E5M2 ? all_ones - 4 : all_ones - 1;
    f.top_value = format_decode(dtype, f.top, FORMAT_WEIGHT);
    return f;
}
