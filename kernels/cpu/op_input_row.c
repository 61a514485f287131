#include "kernels/cpu/op_input.h"

#include "kernels/cpu/format.h"
#include "kernels/cpu/op_hadamard.h"

enum { NAN_8 = 0x7f }; /* the canonical NaN of e4m3, e5m2 and e3m4 */

static void multiply(float *v, int64_t n, float factor)
{
    for (int64_t i = 0; i < n; i++)
        v[i] *= factor;
}

/* The largest magnitude; as bits, where a NaN is larger than any number. */
static float absolute_max(const float *v, int64_t n)
{
    uint32_t most = 0;

    for (int64_t i = 0; i < n; i++) {
        const uint32_t u = float_bits(v[i]) & 0x7fffffffu;

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

    return x == x ? bits_float((u + 0x7ffffu + (u >> 20 & 1u)) & 0xfff00000u) : x;
}

/* The smallest power of two whose 448-fold, 1.75 x 2^8, reaches x; infinity and NaN stay. x is at
 * least about 1e-30. */
static float token_scale(float x)
{
    const uint32_t u = float_bits(x), exponent = u & 0x7f800000u;
    const uint32_t down = (u & 0x7fffffu) > 0x600000u ? 7u : 8u;

    return exponent == 0x7f800000u ? x : bits_float(exponent - (down << 23));
}

static void encode_group_scales(const struct input_job *j, struct input_row *r)
{
    for (int64_t g = 0; g < j->groups; g++) {
        const float raw = r->scale[g];

        if (j->args->group_scale_dtype == HUM_F32) {
            r->coded[g] = float_bits(raw);
        } else if (j->args->group_scale_dtype == HUM_E8M0) {
            r->scale[g] = op_power_of_two_up(raw);
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

static void encode_data(const struct input_job *j, const float *v, int64_t n, float factor,
                        uint8_t *bytes)
{
    const struct op_format f = j->format;

    if (j->out_dtype == HUM_INT8) {
        for (int64_t i = 0; i < n; i++)
            bytes[i] = (uint8_t)op_clamp_round(v[i] * factor, -128.0f, 127.0f);
    } else if (j->out_dtype == HUM_INT4) {
        for (int64_t i = 0; i < n; i++)
            bytes[i] = (uint8_t)op_low_bits(v[i] * factor, 15u);
    } else {
        const uint32_t nan = j->bits == 8 ? NAN_8 : f.top;

        for (int64_t i = 0; i < n; i++) {
            const float y = v[i] * factor;
            const uint32_t code = op_encode(&f, y, false);

            bytes[i] = (uint8_t)(y == y ? code : nan);
        }
    }
}

static void quantize_row(const struct input_job *j, struct input_row *r)
{
    const enum hum_input_quant_mode mode = j->args->quant_mode;
    const float *fixed = j->args->static_scales.data;
    float factor = 1.0f;

    if (j->has_static)
        factor = 1.0f / fixed[0];
    if (mode == HUM_QUANT_DYNAMIC_TOKEN) {
        r->token = raw_scale(j, r->v, j->width);
        factor = 1.0f / r->token;
    }
    if (!j->group) {
        encode_data(j, r->v, j->width, factor, r->bytes);
        return;
    }
    if (j->has_static)
        multiply(r->v, j->width, factor);
    for (int64_t g = 0; g < j->groups; g++) {
        const int64_t at = g * j->group, left = j->width - at;

        r->scale[g] = raw_scale(j, r->v + at, left < j->group ? left : j->group);
    }
    if (mode == HUM_QUANT_DYNAMIC_GROUP_TOKEN)
        encode_token_scales(r, j->groups);
    else
        encode_group_scales(j, r);
    for (int64_t g = 0; g < j->groups; g++) {
        const int64_t at = g * j->group, left = j->width - at;

        factor = r->scale[g] == 0.0f ? 0.0f : 1.0f / r->scale[g];
        encode_data(j, r->v + at, left < j->group ? left : j->group, factor, r->bytes + at);
    }
}

static void pack_row(const struct input_job *j, struct input_row *r)
{
    if (j->bits == 8 && j->width)
        memcpy(r->out, r->bytes, (size_t)j->width);
    if (j->bits == 4)
        for (int64_t i = 0; i < j->width / 2; i++)
            r->out[i] = (uint8_t)(r->bytes[2 * i] | r->bytes[2 * i + 1] << 4);
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
