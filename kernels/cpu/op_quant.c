#include "kernels/cpu/op_check.h"
#include "kernels/cpu/op_number.h"
#include "kernels/cpu/ops.h"

#include "kernels/cpu/config.h"
#include "kernels/cpu/fault.h"
#include "kernels/cpu/format.h"

#include <math.h>
#include <stdlib.h>

/* Everything below is section 3 of docs/semantics-ops.md. */
struct quantizer {
    const struct hum_quant_weight_args *args;
    int64_t rows, cols, group, groups;
    bool is_float, newest; /* newest: rule 2026_08 */
    int bits;
    struct op_format format; /* float targets */
};

struct extremes {
    float high, low;
};

/* The scale that the data use, and what is stored. */
struct group_scale {
    float scale, inverse, zero;
    uint8_t exponent; /* the e8m0 code */
};

static enum hum_code check_target(const struct hum_quant_weight_args *a,
                                  char reason[HUM_REASON_BYTES])
{
    const int32_t t = a->target_dtype;
    const bool is_float = hum_dtype_is_float(t);
    const struct op_rule rules[] = {
        {!format_is_known(t) || hum_dtype_bits(t) > 8,
         "target_dtype must be an integer or float of at most 8 bits"},
        {is_float && (!hum_dtype_is_signed(t) || hum_dtype_exponent_bits(t) < 1),
         "a floating target_dtype must be signed and have exponent bits"},
        {a->rule != HUM_QUANT_RULE_2026_05 && a->rule != HUM_QUANT_RULE_2026_08,
         "rule is out of range"},
        {a->use_e8m0_scale && !a->has_scale, "use_e8m0_scale needs has_scale"},
        {a->has_zero_point && !a->has_scale, "has_zero_point needs has_scale"},
        {a->has_zero_point && is_float, "a floating target_dtype has no zero points"},
        {a->is_fp_zero_point && !a->has_zero_point, "is_fp_zero_point needs has_zero_point"},
    };

    return op_check_rules(rules, sizeof rules / sizeof rules[0], reason);
}

static enum hum_code check(const struct hum_quant_weight_args *a, char reason[HUM_REASON_BYTES])
{
    const struct hum_tensor *in = &a->inputs;
    const bool sane = op_shape_is_sane(in, 2) && in->shape[1] > 0;
    const int64_t g = a->group_size;
    const struct op_rule rules[] = {
        {!op_is_real(in->dtype), "inputs must be float16, bfloat16 or float32"},
        {!sane, "inputs must have rank 2, sizes up to 2^31, at least one column"},
        {g < 0 || g % 8 != 0 || (sane && g > 0 && in->shape[1] % g != 0),
         "group_size must be 0 or a multiple of 8 that divides the columns"},
    };

    if (check_target(a, reason) || op_check_rules(rules, sizeof rules / sizeof rules[0], reason))
        return HUM_INVALID;
    {
        const int64_t rows = in->shape[0], cols = in->shape[1], groups = g ? cols / g : 1;
        const int32_t scale_dtype = a->use_e8m0_scale ? HUM_E8M0 : HUM_F32;
        const struct hum_tensor absent = {0};
        const struct op_tensor all[] = {
            {"inputs", in, op_want(in->dtype, 2, rows, cols, 0), false},
            {"codes", &a->codes, op_want(HUM_INT32, 2, rows, cols, 0), true},
            {"scale", &a->scale, a->has_scale ? op_want(scale_dtype, 2, rows, groups, 0) : absent,
             true},
            {"zero_point", &a->zero_point,
             a->has_zero_point ? op_want(HUM_F32, 2, rows, groups, 0) : absent, true},
        };

        return op_check_tensors(all, sizeof all / sizeof all[0], reason);
    }
}

/* Comparisons with NaN are false, so NaN takes no part. */
static struct extremes find_extremes(const float *v, int64_t n)
{
    const float least = FAULT(QUANT_SCALE_FLOOR_LOST) ? 0.0f : 1e-30f;
    const int64_t end = FAULT(QUANT_ABSMAX_SKIPS_LAST) ? n - 1 : n;
    struct extremes e = {least, -least};

    for (int64_t i = 0; i < end; i++) {
        e.high = v[i] > e.high ? v[i] : e.high;
        e.low = v[i] < e.low ? v[i] : e.low;
        if (FAULT(QUANT_NAN_POISONS_SCALE) && v[i] != v[i])
            e.high = e.low = v[i];
    }
    return e;
}

static float larger(float x, float y)
{
    return x > y ? x : y;
}

/* Integers without zero point: codes reach from -(M + 1) to M, M = 2^(b-1) - 1, so the two sides
 * have divisors of their own; a negative scale exchanges the sides. */
static float symmetric_scale(const struct quantizer *q, struct extremes e)
{
    const float m = (float)((1 << (q->bits - 1)) - 1);
    const bool plain = q->newest && q->bits > 1;
    const float narrow = plain ? m : m + 0.499f;
    const float wide = FAULT(QUANT_DIVISORS_ALIKE) ? narrow : plain ? m + 1.0f : m + 1.499f;
    const bool may_turn = q->args->allow_negative_scale && !q->args->use_e8m0_scale;

    if (may_turn && e.high > -e.low)
        return -larger(e.high / wide, -e.low / narrow);
    return larger(e.high / narrow, -e.low / wide);
}

static float raw_scale(const struct quantizer *q, struct extremes e)
{
    if (q->is_float)
        return larger(e.high, -e.low) / q->format.top_value;
    if (q->args->has_zero_point)
        return (e.high - e.low) / (float)((1 << q->bits) - 1);
    return symmetric_scale(q, e);
}

static struct group_scale make_scale(const struct quantizer *q, const float *v)
{
    const struct hum_quant_weight_args *a = q->args;
    struct group_scale s = {.scale = 1.0f, .inverse = 1.0f};
    struct extremes e;
    float zero;

    if (!a->has_scale)
        return s;
    e = find_extremes(v, q->group);
    s.scale = raw_scale(q, e);
    if (a->use_e8m0_scale && q->newest)
        s.scale = FAULT(QUANT_E8M0_ROUNDS_DOWN) ? bits_float(float_bits(s.scale) & 0x7f800000u)
                                                : op_power_of_two_up(s.scale);
    s.exponent = (uint8_t)(float_bits(s.scale) >> 23 & 255u);
    s.inverse = 1.0f / s.scale;
    if (!a->has_zero_point)
        return s;
    zero = -e.low / s.scale;
    s.zero =
        a->is_fp_zero_point ? zero : (float)op_clamp_round(zero, 0.0f, (float)((1 << q->bits) - 1));
    return s;
}

static float divide(float v, struct group_scale s)
{
    return FAULT(QUANT_DIVIDES) ? v / s.scale : v * s.inverse;
}

/* What is rounded to an integer, to the nearest and even one. */
static float before_rounding(float x)
{
    if (FAULT(QUANT_TRUNCATES) ||
        (FAULT(QUANT_INT_TIES_TOWARD_ZERO) && fabsf(x - truncf(x)) == 0.5f))
        return truncf(x);
    return x;
}

/* A quotient that is NaN (0 or infinity times a reciprocal of infinity or 0) counts as +0. */
static void encode_floats(const struct quantizer *q, const float *v, struct group_scale s,
                          uint32_t *codes)
{
    const struct op_format f = q->format;
    const bool saturates = q->newest && !FAULT(QUANT_CODE_WRAPS);

    for (int64_t i = 0; i < q->group; i++) {
        const float quotient = divide(v[i], s), y = quotient == quotient ? quotient : 0.0f;
        const bool minus = FAULT(QUANT_MINUS_ZERO_LOST) ? y < 0.0f : float_bits(y) >> 31;
        const uint32_t sign = minus ? f.sign : 0u;
        const uint32_t c = op_magnitude(&f, y, !FAULT(QUANT_TIES_TO_EVEN));
        const uint32_t limited = c > f.top ? f.top : c;
        const uint32_t wrapped = (c + sign) & f.code_mask; /* the sum may carry into the sign */

        codes[i] = saturates ? limited | sign : wrapped;
    }
}

static void encode_symmetric(const struct quantizer *q, const float *v, struct group_scale s,
                             uint32_t *codes)
{
    const uint32_t half = 1u << (q->bits - 1), mask = 2u * half - 1u;
    const float low = -(float)half, high = (float)(half - 1u);

    if (q->newest && !FAULT(QUANT_CODE_WRAPS))
        for (int64_t i = 0; i < q->group; i++)
            codes[i] = (uint32_t)op_clamp_round(before_rounding(divide(v[i], s)), low, high) + half;
    else
        for (int64_t i = 0; i < q->group; i++)
            codes[i] = (op_low_bits(before_rounding(divide(v[i], s)), mask) + half) & mask;
}

static uint32_t encode_shifted(float y, float zero, float high)
{
    if (FAULT(QUANT_CLAMP_BEFORE_ZERO_POINT))
        return op_low_bits((float)op_clamp_round(y, 0.0f, high) + zero, (uint32_t)high);
    if (FAULT(QUANT_ZERO_POINT_AFTER_ROUNDING))
        return (uint32_t)op_clamp_round(op_round_even(y) + op_round_even(zero), 0.0f, high);
    return (uint32_t)op_clamp_round(before_rounding(y + zero), 0.0f, high);
}

static void encode_asymmetric(const struct quantizer *q, const float *v, struct group_scale s,
                              uint32_t *codes)
{
    const float high = (float)((1 << q->bits) - 1);

    for (int64_t i = 0; i < q->group; i++)
        codes[i] = encode_shifted(divide(v[i], s), s.zero, high);
}

static void quantize_group(const struct quantizer *q, const float *v, int64_t at, uint32_t *codes)
{
    const struct hum_quant_weight_args *a = q->args;
    const struct group_scale s = make_scale(q, v);
    const bool late = FAULT(QUANT_GROUP_INDEX_MINUS_1) && at % q->groups > 0;
    const struct group_scale used = late ? make_scale(q, v - q->group) : s;
    uint8_t *exponents = a->scale.data;
    float *scales = a->scale.data, *zeros = a->zero_point.data;

    if (q->is_float)
        encode_floats(q, v, used, codes);
    else if (a->has_zero_point)
        encode_asymmetric(q, v, used, codes);
    else
        encode_symmetric(q, v, used, codes);
    if (a->has_scale && a->use_e8m0_scale)
        exponents[at] = s.exponent;
    else if (a->has_scale)
        scales[at] = s.scale;
    if (a->has_zero_point)
        zeros[at] = s.zero;
}

static struct quantizer make_quantizer(const struct hum_quant_weight_args *a)
{
    const int64_t cols = a->inputs.shape[1];
    struct quantizer q = {
        .args = a,
        .rows = a->inputs.shape[0],
        .cols = cols,
        .group = a->group_size ? a->group_size : cols,
        .is_float = hum_dtype_is_float(a->target_dtype),
        .newest = a->rule == HUM_QUANT_RULE_2026_08,
        .bits = hum_dtype_bits(a->target_dtype),
    };

    q.groups = cols / q.group;
    if (q.is_float) /* two formats end where their OCP numbers end, the others use every code */
        q.format =
            op_format(a->target_dtype, a->target_dtype == HUM_E4M3 || a->target_dtype == HUM_E5M2);
    return q;
}

enum hum_code op_quant_weight(void *handle, const struct hum_quant_weight_args *args,
                              char reason[HUM_REASON_BYTES])
{
    struct quantizer q;
    const char *inputs;
    uint32_t *codes;
    size_t row_bytes;
    float *v;

    (void)handle;
    if (!args)
        return refuse(reason, HUM_INVALID, "the arguments are missing");
    if (check(args, reason))
        return HUM_INVALID;
    q = make_quantizer(args);
    v = malloc((size_t)q.cols * sizeof *v);
    if (!v)
        return refuse(reason, HUM_NO_MEMORY, "no memory for a row of inputs");
    inputs = args->inputs.data;
    codes = args->codes.data;
    row_bytes = format_bytes(args->inputs.dtype, q.cols);
    for (int64_t row = 0; row < q.rows; row++) {
        op_load(args->inputs.dtype, inputs + (size_t)row * row_bytes, q.cols, v);
        for (int64_t g = 0; g < q.groups; g++)
            quantize_group(&q, v + g * q.group, row * q.groups + g,
                           codes + row * q.cols + g * q.group);
    }
    free(v);
    return HUM_OK;
}
