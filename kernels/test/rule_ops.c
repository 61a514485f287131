/* The operations of rule_provider.h, from the document: codes are looked for among all of them. */
#include "kernels/cpu/op_number.h"
#include "kernels/test/rule_provider.h"

#include <math.h>

enum { ROW = 4096 }; /* columns at most */

/* ---- formats ---- */

/* A code's magnitude by its bits. */
static double magnitude(int32_t dtype, uint32_t code)
{
    const int m = hum_dtype_mantissa_bits(dtype), e = hum_dtype_exponent_bits(dtype);
    const int bias = (1 << (e - 1)) - 1;
    const uint32_t exponent = code >> m, mantissa = code & ((1u << m) - 1u);

    if (exponent == 0)
        return ldexp((double)mantissa, 1 - bias - m);
    return ldexp((double)mantissa + ldexp(1.0, m), (int)exponent - bias - m);
}

/* The code of the largest number: of two formats OCP's. */
static uint32_t top_code(int32_t dtype)
{
    const uint32_t all = (1u << (hum_dtype_bits(dtype) - 1)) - 1u;

    return dtype == HUM_E4M3 ? 0x7eu : dtype == HUM_E5M2 ? 0x7bu : all;
}

/* The nearest magnitude; a tie to zero, or to the even code. */
static uint32_t nearest(int32_t dtype, double y, bool to_even)
{
    const uint32_t sign = signbit(y) ? 1u << (hum_dtype_bits(dtype) - 1) : 0u;
    uint32_t best = 0;

    for (uint32_t c = 1; c <= top_code(dtype); c++) {
        const double now = fabs(magnitude(dtype, c) - fabs(y));
        const double before = fabs(magnitude(dtype, best) - fabs(y));

        if (now < before || (to_even && now == before && c % 2 == 0))
            best = c;
    }
    return best | sign;
}

/* ---- quant_weight ---- */

struct group {
    float high, low, scale, zero, least;
};

static struct group group_of(const struct hum_quant_weight_args *a, const float *v, int64_t n)
{
    struct group g = {1e-30f, -1e-30f, 1.0f, 0.0f, 0.0f};

    for (int64_t i = 0; a->has_scale && i < n; i++) {
        g.high = v[i] > g.high ? v[i] : g.high;
        g.low = v[i] < g.low ? v[i] : g.low;
    }
    return g;
}

/* The scale of integers without zero point, whose larger side has the larger divisor. */
static float by_size(const struct hum_quant_weight_args *a, const struct group *g)
{
    const int bits = hum_dtype_bits(a->target_dtype);
    const double whole = (double)(1 << (bits - 1)), more = bits == 1 ? 1.499 : whole;
    const double less = bits == 1 ? 0.499 : whole - 1.0;
    const bool up = g->high > -g->low;
    const float first = (float)((double)(up ? g->high : -g->low) / more);
    const float second = (float)((double)(up ? -g->low : g->high) / less);
    const float scale = first > second ? first : second;

    return a->allow_negative_scale && !a->use_e8m0_scale && up ? -scale : scale;
}

static void code_group(const struct hum_quant_weight_args *a, const struct group *g, const float *v,
                       int64_t n, uint32_t *codes)
{
    const int bits = hum_dtype_bits(a->target_dtype), e = hum_dtype_exponent_bits(a->target_dtype);
    const float inverse = 1.0f / g->scale, last = (float)((1 << bits) - 1);
    const int32_t half = 1 << (bits - 1);

    for (int64_t i = 0; i < n; i++) {
        const float below = v[i] - g->least, y = v[i] * inverse;
        const float apart = (float)ldexp((double)y, (1 << (e > 0 ? e - 1 : 0)) - 128);

        if (y != y)
            continue;
        if (a->has_zero_point && rule_is_on("zero-on-minimum"))
            codes[i] = (uint32_t)op_clamp_round(below * inverse, 0.0f, last);
        else if (e && rule_is_on("scaled-quotient"))
            codes[i] = nearest(a->target_dtype, ldexp((double)apart, 128 - (1 << (e - 1))), false);
        else if (!e && !a->has_zero_point)
            codes[i] = (uint32_t)(op_clamp_round(y, (float)-half, (float)(half - 1)) + half);
        if (!e && !a->has_zero_point && hum_dtype_is_signed(a->target_dtype) &&
            rule_is_on("twos-complement"))
            codes[i] -= (uint32_t)half;
    }
}

static void group_by_rule(const struct hum_quant_weight_args *a, const float *v, int64_t n,
                          int64_t at, uint32_t *codes)
{
    const bool symmetric = !a->has_zero_point && !hum_dtype_is_float(a->target_dtype);
    struct group g = group_of(a, v, n);
    uint8_t *exponents = a->scale.data;
    float *scales = a->scale.data;

    if (a->has_scale && symmetric && rule_is_on("sides-by-size")) {
        g.scale = by_size(a, &g);
        if (a->use_e8m0_scale)
            exponents[at] = (uint8_t)(float_bits(op_power_of_two_up(g.scale)) >> 23 & 255u);
        else
            scales[at] = g.scale;
    }
    if (a->has_scale)
        g.scale = a->use_e8m0_scale ? ldexpf(1.0f, exponents[at] - 127) : scales[at];
    if (a->has_zero_point) {
        g.zero = ((const float *)a->zero_point.data)[at];
        g.least = a->is_fp_zero_point ? g.low : g.zero * -g.scale;
    }
    code_group(a, &g, v, n, codes);
}

void rule_quant_weight(const struct hum_quant_weight_args *args)
{
    const int64_t rows = args->inputs.shape[0], cols = args->inputs.shape[1];
    const int64_t n = args->group_size ? args->group_size : cols, groups = cols / n;
    const size_t size = (size_t)hum_dtype_bits(args->inputs.dtype) / 8;
    float v[ROW];

    for (int64_t row = 0; cols <= ROW && row < rows; row++) {
        op_load(args->inputs.dtype, (char *)args->inputs.data + (size_t)(row * cols) * size, cols,
                v);
        for (int64_t g = 0; g < groups; g++)
            group_by_rule(args, v + g * n, n, row * groups + g,
                          (uint32_t *)args->codes.data + row * cols + g * n);
    }
}

/* ---- process_input ---- */

static float limit_of(int32_t dtype)
{
    if (dtype == HUM_INT8)
        return 127.0f;
    return dtype == HUM_INT4 ? 7.0f : (float)magnitude(dtype, top_code(dtype));
}

static float part_of(float extreme, float limit)
{
    if (rule_is_on("reciprocal-limit")) {
        const float inverse = 1.0f / limit;

        return extreme * inverse;
    }
    return extreme / limit;
}

static float input_scale(int32_t dtype, const float *v, int64_t n)
{
    const bool sides = rule_is_on("extremes-by-side");
    const float limit = limit_of(dtype);
    float up = sides ? 1e-30f : 0.0f, down = up, a, b;

    for (int64_t i = 0; i < n; i++) {
        up = v[i] > up ? v[i] : up;
        down = -v[i] > down ? -v[i] : down;
    }
    a = part_of(up, limit);
    b = part_of(down, sides && !hum_dtype_is_float(dtype) ? limit + 1.0f : limit);
    a = a > b ? a : b;
    return sides || a >= 1e-30f ? a : 1e-30f;
}

static void put_code(int32_t dtype, uint8_t *bytes, int64_t at, float y)
{
    const int shift = at % 2 ? 4 : 0;
    const int low =
        rule_is_on("int4-saturates") ? op_clamp_round(y, -8.0f, 7.0f) : (int)op_low_bits(y, 15);

    if (dtype == HUM_INT8)
        bytes[at] = (uint8_t)op_clamp_round(y, -128.0f, 127.0f);
    else if (dtype == HUM_INT4)
        bytes[at / 2] = (uint8_t)((bytes[at / 2] & (0xf0 >> shift)) | (low & 15) << shift);
    else
        bytes[at] = (uint8_t)nearest(dtype, (double)y, true);
}

/* e4m3: the nearest code, or the one above; and what it stands for. */
static uint32_t scale_code(float scale, float *decoded)
{
    uint32_t code = nearest(HUM_E4M3, (double)scale, true);

    if (rule_is_on("scales-round-up") && magnitude(HUM_E4M3, code) < (double)scale && code < 0x7e)
        code++;
    *decoded = (float)magnitude(HUM_E4M3, code);
    return code;
}

/* Stores the scale of a group; returns what data are divided by. */
static float put_scale(const struct hum_process_input_args *a, float scale, int64_t row, int64_t g,
                       int64_t groups)
{
    const bool narrow = a->group_scale_dtype == HUM_E4M3;
    const int64_t length = narrow ? (groups + 3) / 4 * 4 : groups;
    const int64_t at = a->scale_layout == HUM_SCALES_M_MAJOR ? g * a->group_scales.shape[1] + row
                                                             : row * length + g;

    if (narrow)
        ((uint8_t *)a->group_scales.data)[at] = (uint8_t)scale_code(scale, &scale);
    else
        ((float *)a->group_scales.data)[at] = scale;
    return scale;
}

/* n values of a group, or of a row. */
static void quantize(const struct hum_process_input_args *a, const float *v, int64_t n, int64_t row,
                     int64_t at)
{
    const int64_t cols = a->inputs.shape[1], size = a->quant_group_size;
    const float fixed = a->static_scales.bytes ? *(const float *)a->static_scales.data : 1.0f;
    const bool grouped = a->quant_mode >= HUM_QUANT_DYNAMIC_GROUP;
    const float rest = grouped && rule_is_on("static-on-scale") ? fixed : 1.0f;
    const float first = rest == fixed ? 1.0f : 1.0f / fixed;
    float x[ROW], scale = 1.0f;

    for (int64_t i = 0; i < n; i++)
        x[i] = v[i] * first;
    if (a->quant_mode != HUM_QUANT_STATIC_TENSOR)
        scale = input_scale(a->quant_dtype, x, n) / rest;
    if (a->quant_mode == HUM_QUANT_DYNAMIC_TOKEN)
        ((float *)a->token_scales.data)[row] = scale;
    if (grouped)
        scale = put_scale(a, scale, row, at / size, (cols + size - 1) / size) * rest;
    scale = scale > 0.0f ? 1.0f / scale : 0.0f;
    for (int64_t i = 0; i < n; i++)
        put_code(a->quant_dtype, a->outputs.data, row * cols + at + i, x[i] * scale);
}

bool rule_input_is_plain(const struct hum_process_input_args *args)
{
    const enum hum_input_quant_mode mode = args->quant_mode;

    return args->inputs.shape[1] <= ROW && !args->activation && !args->hadamard_block_size &&
           !args->layout && args->group_scale_dtype != HUM_E8M0 && mode != HUM_QUANT_DISABLED &&
           mode != HUM_QUANT_DYNAMIC_GROUP_TOKEN;
}

void rule_process_input(const struct hum_process_input_args *args)
{
    const int64_t rows = args->inputs.shape[0], cols = args->inputs.shape[1];
    const bool grouped = args->quant_mode >= HUM_QUANT_DYNAMIC_GROUP;
    const int64_t n = grouped ? args->quant_group_size : cols;
    const size_t size = (size_t)hum_dtype_bits(args->inputs.dtype) / 8;
    float v[ROW];

    for (int64_t row = 0; row < rows; row++) {
        op_load(args->inputs.dtype, (char *)args->inputs.data + (size_t)(row * cols) * size, cols,
                v);
        for (int64_t at = 0; at < cols; at += n)
            quantize(args, v + at, at + n < cols ? n : cols - at, row, at);
    }
}

/* ---- moe_fused_mul_sum ---- */

static bool counts(const struct hum_moe_fused_mul_sum_args *a, int64_t entry)
{
    const int32_t *ids = a->topk_ids.data, *map = a->expert_map.data;

    return !ids || (ids[entry] >= 0 && (!map || map[ids[entry]] >= 0));
}

void rule_sum(const struct hum_moe_fused_mul_sum_args *args)
{
    const int64_t k = args->inputs.shape[1], h = args->inputs.shape[2];
    const size_t size = (size_t)hum_dtype_bits(args->inputs.dtype) / 8;
    const float *weights = args->weights.data;
    char *in = args->inputs.data, *out = args->outputs.data;

    for (int64_t i = 0; i < args->inputs.shape[0] * h; i++) {
        float acc = 0.0f;

        for (int64_t j = 0; j < k; j++) {
            const int64_t entry = i / h * k + j;
            float x;

            op_load(args->inputs.dtype, in + (size_t)(entry * h + i % h) * size, 1, &x);
            acc = fmaf(counts(args, entry) ? x : 0.0f, weights[entry], acc);
        }
        op_store(args->inputs.dtype, &acc, 1, out + (size_t)i * size);
    }
}
