#include "kernels/cpu/op_input.h"

#include "kernels/cpu/fault.h"
#include "kernels/cpu/format.h"
#include "kernels/cpu/op_hadamard.h"

#include <math.h>

enum { NAN_8 = 0x7f }; /* the canonical NaN of e4m3, e5m2 and e3m4 */

static void multiply(float *v, int64_t n, float factor)
{
    for (int64_t i = 0; i < n; i++)
        v[i] *= factor;
}

/* The largest magnitude; as bits, where a NaN is larger than any number. */
static float absolute_max(const float *v, int64_t n)
{
    const int64_t end = FAULT(INPUT_ABSMAX_SKIPS_LAST) ? n - 1 : n;
    uint32_t most = 0;

    for (int64_t i = 0; i < end; i++) {
        const uint32_t u = float_bits(v[i]) & 0x7fffffffu;

        if (FAULT(INPUT_NAN_IGNORED) && u > 0x7f800000u)
            continue;
        most = u > most ? u : most;
    }
    return bits_float(most);
}

/* max(RN(absmax / target_max), 1e-30f), NaN staying NaN */
static float raw_scale(const struct input_job *j, const float *v, int64_t n)
{
    const float raw = absolute_max(v, n) / j->target_max;

    return raw < 1e-30f ? 1e-30f : raw;
}

static uint32_t encode_e4m3(float x)
{
    const struct op_format e4m3 = op_format(HUM_E4M3, true);

    return x == x ? op_encode(&e4m3, x, false) : NAN_8;
}

/* RN to 3 mantissa bits. */
static float round_m3(float x)
{
    const uint32_t u = float_bits(x);
    const uint32_t half = FAULT(INPUT_M3_TRUNCATES) ? 0u : 0x7ffffu + (u >> 20 & 1u);

    return x == x ? bits_float((u + half) & 0xfff00000u) : x;
}

/* The smallest power of two whose 448-fold, 1.75 x 2^8, reaches x; infinity and NaN stay. x is at
 * least about 1e-30. */
static float token_scale(float x)
{
    const uint32_t u = float_bits(x), exponent = u & 0x7f800000u;
    const uint32_t most = FAULT(INPUT_TOKEN_SCALE_STRICT) ? 0x5fffffu : 0x600000u;
    const uint32_t down = (u & 0x7fffffu) > most ? 7u : 8u;

    return exponent == 0x7f800000u ? x : bits_float(exponent - (down << 23));
}

static void encode_group_scales(const struct input_job *j, struct input_row *r)
{
    for (int64_t g = 0; g < j->groups; g++) {
        const float raw = r->scale[g];

        if (j->args->group_scale_dtype == HUM_F32) {
            r->coded[g] = float_bits(raw);
        } else if (j->args->group_scale_dtype == HUM_E8M0) {
            r->scale[g] = FAULT(INPUT_E8M0_ROUNDS_DOWN) && raw == raw
                              ? bits_float(float_bits(raw) & 0x7f800000u)
                              : op_power_of_two_up(raw);
            r->coded[g] = float_bits(r->scale[g]) >> 23 & 255u;
            r->scale[g] = r->coded[g] == 255u ? bits_float(0x7fc00000u) : r->scale[g];
        } else {
            r->coded[g] = encode_e4m3(raw);
            r->scale[g] = format_decode(HUM_E4M3, r->coded[g], FORMAT_NUMBER);
        }
    }
}

/* Group scales relative to the row's: both get exponents that e4m3 can hold. */
static void encode_token_scales(struct input_row *r, int64_t groups)
{
    float most = 0.0f;

    for (int64_t g = 0; g < groups; g++)
        r->scale[g] = round_m3(r->scale[g]);
    for (int64_t g = 0; g < groups; g++)
        most = r->scale[g] <= most ? most : most == most ? r->scale[g] : most;
    r->token = groups ? token_scale(most) : token_scale(1e-30f);
    for (int64_t g = 0; g < groups; g++)
        r->coded[g] = encode_e4m3(r->scale[g] / r->token);
}

/* What data are divided by, and what they are multiplied by for that. */
struct divisor {
    float scale, factor;
};

static float divide(float v, struct divisor d)
{
    return FAULT(INPUT_DIVIDES) && d.factor != 0.0f ? v / d.scale : v * d.factor;
}

static void encode_integers(const struct input_job *j, const float *v, int64_t n, struct divisor d,
                            uint8_t *bytes)
{
    const float low = FAULT(INPUT_INT8_MINUS_128) ? -127.0f : -128.0f;

    for (int64_t i = 0; i < n; i++) {
        const float y = divide(v[i], d), x = FAULT(INPUT_TRUNCATES) ? truncf(y) : y;

        if (j->out_dtype == HUM_INT4)
            bytes[i] = (uint8_t)op_low_bits(x, 15u);
        else
            bytes[i] = (uint8_t)(FAULT(INPUT_INT8_WRAPS) ? (int32_t)op_low_bits(x, 255u)
                                                         : op_clamp_round(x, low, 127.0f));
    }
}

static void encode_data(const struct input_job *j, const float *v, int64_t n, struct divisor d,
                        uint8_t *bytes)
{
    const struct op_format f = j->format;

    if (j->out_dtype == HUM_INT8 || j->out_dtype == HUM_INT4) {
        encode_integers(j, v, n, d, bytes);
    } else {
        const uint32_t nan = j->bits == 8 ? NAN_8 : f.top;

        for (int64_t i = 0; i < n; i++) {
            const float y = divide(v[i], d);
            const uint32_t code = op_encode(&f, y, FAULT(INPUT_TIES_TOWARD_ZERO));

            bytes[i] = (uint8_t)(y == y ? code : nan);
        }
    }
}

/* Of the group that begins at value `at`. */
static float group_scale(const struct input_job *j, const float *v, int64_t at)
{
    const int64_t left = j->width - at;

    if (FAULT(INPUT_ABSMAX_OF_FULL_GROUP) && left < j->group && j->group <= j->width)
        return raw_scale(j, v + j->width - j->group, j->group);
    return raw_scale(j, v + at, left < j->group ? left : j->group);
}

static void quantize_row(const struct input_job *j, struct input_row *r)
{
    const enum hum_input_quant_mode mode = j->args->quant_mode;
    const float *fixed = j->args->static_scales.data;
    struct divisor d = {1.0f, 1.0f};

    if (j->has_static)
        d = (struct divisor){fixed[0], 1.0f / fixed[0]};
    if (mode == HUM_QUANT_DYNAMIC_TOKEN) {
        r->token = raw_scale(j, r->v, j->width);
        d = (struct divisor){r->token, 1.0f / r->token};
    }
    if (!j->group) {
        encode_data(j, r->v, j->width, d, r->bytes);
        return;
    }
    if (j->has_static)
        multiply(r->v, j->width, d.factor);
    for (int64_t g = 0; g < j->groups; g++)
        r->scale[g] = group_scale(j, r->v, g * j->group);
    if (mode == HUM_QUANT_DYNAMIC_GROUP_TOKEN)
        encode_token_scales(r, j->groups);
    else
        encode_group_scales(j, r);
    for (int64_t g = 0; g < j->groups; g++) {
        const int64_t at = g * j->group, left = j->width - at;

        const float scale = r->scale[FAULT(INPUT_GROUP_INDEX_MINUS_1) && g > 0 ? g - 1 : g];
        const bool is_zero = scale == 0.0f && !FAULT(INPUT_ZERO_SCALE_INF);

        d = (struct divisor){scale, is_zero ? 0.0f : 1.0f / scale};
        encode_data(j, r->v + at, left < j->group ? left : j->group, d, r->bytes + at);
    }
}

static void pack_row(const struct input_job *j, struct input_row *r)
{
    if (j->bits == 8 && j->width)
        memcpy(r->out, r->bytes, (size_t)j->width);
    if (j->bits == 4)
        for (int64_t i = 0; i < j->width / 2; i++) {
            const int64_t low = FAULT(INPUT_NIBBLE_ORDER) ? 2 * i + 1 : 2 * i;

            r->out[i] = (uint8_t)(r->bytes[low] | r->bytes[low ^ 1] << 4);
        }
}

void input_compute_row(const struct input_job *job, int64_t row, struct input_row *r)
{
    const struct hum_process_input_args *a = job->args;
    const char *inputs = a->inputs.data;
    const bool active = a->activation != HUM_ACT_NONE || a->form != HUM_ACT_UNARY;

    op_load(a->inputs.dtype, inputs + format_bytes(a->inputs.dtype, row * job->in_width),
            job->in_width, active ? r->in : r->v);
    if (active)
        op_activate(&job->activation, r->in, job->width, r->v);
    if (a->hadamard_block_size)
        hadamard_row(r->v, job->width, a->hadamard_block_size);
    if (a->quant_mode == HUM_QUANT_DISABLED) {
        op_store(job->out_dtype, r->v, job->width, r->out);
    } else {
        quantize_row(job, r);
        pack_row(job, r);
    }
}
