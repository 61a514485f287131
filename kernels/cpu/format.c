#include "kernels/cpu/format.h"

#include <math.h>

bool format_is_known(int32_t dtype)
{
    const int bits = hum_dtype_bits(dtype), e = hum_dtype_exponent_bits(dtype);
    const int m = hum_dtype_mantissa_bits(dtype);
    const bool is_signed = hum_dtype_is_signed(dtype);

    if (dtype <= 0 || bits < 1)
        return false;
    if (!hum_dtype_is_float(dtype))
        return dtype == (is_signed ? HUM_INT(bits) : HUM_UINT(bits));
    return dtype == HUM_FLOAT(bits, e, m) - (is_signed ? 0 : 1000000) && bits == is_signed + e + m;
}

int format_bias(int32_t dtype)
{
    const int e = hum_dtype_exponent_bits(dtype);

    return e ? (1 << (e - 1)) - 1 : 0;
}

static float decode_integer(int32_t dtype, uint32_t code)
{
    const int bits = hum_dtype_bits(dtype);
    const bool negative = hum_dtype_is_signed(dtype) && code >> (bits - 1) & 1u;

    return (float)((int32_t)code - (negative ? (int32_t)(1u << bits) : 0));
}

/* The magnitude of a payload (exponent and mantissa) of a format all of whose codes are finite. */
static float decode_finite(int32_t dtype, uint32_t payload)
{
    const int m = hum_dtype_mantissa_bits(dtype), bias = format_bias(dtype);
    const uint32_t fraction = payload & ((1u << m) - 1u);
    const int e = (int)(payload >> m);

    if (!hum_dtype_exponent_bits(dtype))
        return (float)payload;
    if (!m && !hum_dtype_is_signed(dtype))
        return ldexpf(1.0f, e - bias);
    if (!e)
        return ldexpf((float)fraction, 1 - bias - m);
    return ldexpf((float)((1u << m) + fraction), e - bias - m);
}

float format_decode(int32_t dtype, uint32_t code, enum format_role role)
{
    const int bits = hum_dtype_bits(dtype), m = hum_dtype_mantissa_bits(dtype);
    const int exponent_bits = hum_dtype_exponent_bits(dtype);
    const bool is_signed = hum_dtype_is_signed(dtype);
    const int payload_bits = bits - is_signed;
    const uint32_t payload = code & ((1u << payload_bits) - 1u);
    const bool top_code = payload == (1u << payload_bits) - 1u;
    const bool top_exponent = payload >> m == (1u << exponent_bits) - 1u;
    const bool has_infinity = is_signed && exponent_bits >= 5;
    float magnitude;

    if (!hum_dtype_is_float(dtype))
        return decode_integer(dtype, code);
    magnitude = decode_finite(dtype, payload);
    if (role == FORMAT_NUMBER && bits >= 8) {
        if (has_infinity && top_exponent)
            magnitude = payload & ((1u << m) - 1u) ? NAN : INFINITY;
        else if (top_code)
            magnitude = NAN;
    }
    return is_signed && code >> (bits - 1) & 1u ? -magnitude : magnitude;
}

size_t format_bytes(int32_t dtype, int64_t count)
{
    return (size_t)count * (size_t)(hum_dtype_bits(dtype) / 8);
}
