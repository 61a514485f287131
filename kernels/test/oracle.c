#include "kernels/test/oracle.h"

#include <math.h>
#include <string.h>

enum { MAX_WARPS = 64 };

double oracle_decode(int32_t dtype, uint32_t code, bool is_weight)
{
    const int bits = hum_dtype_bits(dtype), e_bits = hum_dtype_exponent_bits(dtype);
    const int m_bits = hum_dtype_mantissa_bits(dtype);
    const int bias = e_bits ? (1 << (e_bits - 1)) - 1 : 0;
    const double sign = hum_dtype_is_signed(dtype) && code >> (bits - 1) ? -1.0 : 1.0;
    const int e = (int)(code >> m_bits) & ((1 << e_bits) - 1);
    const int m = (int)code & ((1 << m_bits) - 1);

    if (!hum_dtype_is_float(dtype))
        return sign < 0 ? (double)code - (double)(1 << bits) : (double)code;
    if (e_bits == 0)
        return sign * m;
    if (dtype == HUM_E8M0)
        return code == 255 ? (double)NAN : ldexp(1.0, (int)code - 127);
    if (!is_weight && (dtype == HUM_F16 || dtype == HUM_BF16 || dtype == HUM_E5M2) &&
        e == (1 << e_bits) - 1)
        return m ? (double)NAN : sign * (double)INFINITY;
    if (!is_weight && (dtype == HUM_E4M3 || dtype == HUM_E3M4) && (code & 127u) == 127u)
        return (double)NAN;
    if (dtype == HUM_E5M3 && code == 255)
        return (double)NAN;
    if (e == 0)
        return sign * ldexp(m, 1 - bias - m_bits);
    return sign * ldexp(m + (1 << m_bits), e - bias - m_bits);
}

/* The finite numbers of a 16-bit format are codes 0 to infinity's less one; infinity's code stands
 * for the number that would follow, 2^(emax + 1). */
static double positive(int32_t dtype, uint32_t code)
{
    const uint32_t infinity = dtype == HUM_F16 ? 0x7c00u : 0x7f80u;

    return code < infinity ? oracle_decode(dtype, code, false)
                           : ldexp(1.0, dtype == HUM_F16 ? 16 : 128);
}

static double round_by_search(int32_t dtype, double value, double rest)
{
    uint32_t low = 0, high = dtype == HUM_F16 ? 0x7c00u : 0x7f80u;
    const uint32_t infinity = high;
    double middle;

    if (value >= positive(dtype, infinity))
        return (double)INFINITY;
    while (high - low > 1) {
        const uint32_t half = (low + high) / 2;

        if (positive(dtype, half) <= value)
            low = half;
        else
            high = half;
    }
    if (value == positive(dtype, low))
        return value; /* the rest is less than half an ulp of the double */
    middle = (positive(dtype, low) + positive(dtype, high)) / 2;
    if (value > middle || (value == middle && (rest > 0 || (rest == 0 && low % 2 == 1))))
        low = high;
    return low == infinity ? (double)INFINITY : positive(dtype, low);
}

double oracle_round(int32_t dtype, double value, double rest)
{
    if (isnan(value) || isinf(value) || value == 0)
        return value;
    if (dtype == HUM_F32)
        return (double)(float)value;
    if (value < 0)
        return -round_by_search(dtype, -value, -rest);
    return round_by_search(dtype, value, rest);
}

double oracle_fma(int32_t dtype, double x, double y, double z)
{
    const double p = x * y, s = p + z;
    const double big = fabs(p) > fabs(z) ? p : z, small = fabs(p) > fabs(z) ? z : p;

    if (dtype == HUM_F32)
        return (double)fmaf((float)x, (float)y, (float)z);
    return oracle_round(dtype, s, isfinite(s) ? small - (s - big) : 0.0);
}

bool oracle_same(int32_t c_dtype, uint16_t x, uint16_t y)
{
    const double a = oracle_decode(c_dtype, x, false), b = oracle_decode(c_dtype, y, false);

    return isnan(a) ? isnan(b) : a == b;
}

static double element_of(const struct hum_tensor *t, int64_t i)
{
    if (t->dtype == HUM_F32)
        return (double)((const float *)t->data)[i];
    if (hum_dtype_bits(t->dtype) == 16)
        return oracle_decode(t->dtype, ((const uint16_t *)t->data)[i], false);
    return oracle_decode(t->dtype, ((const uint8_t *)t->data)[i], false);
}

/* Bit by bit: element `index` of a stream of words that are `stride` apart. */
static uint32_t stream_element(const struct hum_tensor *t, int64_t first, int64_t stride,
                               int64_t index, int bits)
{
    const uint32_t *words = t->data;
    uint32_t code = 0;

    for (int b = 0; b < bits; b++) {
        const int64_t at = index * bits + b;

        code |= (words[first + at / 32 * stride] >> at % 32 & 1u) << b;
    }
    return code;
}

static int64_t up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

struct shape {
    int64_t n, k, groups, group_k;
    bool a16, is_int, f16, scale_on_c;
    int base;      /* of section 8 */
    double factor; /* f of section 7 */
};

/* Section 7: f of the whole tensor, all experts. */
static double int_factor(const struct oracle_problem *p, const struct shape *s)
{
    const int64_t experts = p->layer->num_experts ? p->layer->num_experts : 1;
    double most = 0;

    for (int64_t i = 0; i < s->n * s->groups * experts; i++)
        most = fmax(most, fabs(oracle_round(p->layer->c_dtype,
                                            element_of(&p->standard->weight_scale, i), 0)));
    return oracle_round(HUM_F32, most / 1024, 0);
}

/* Section 8: over the tensor, or over row n. */
static int fused_base(const struct oracle_problem *p, const struct shape *s, int64_t n)
{
    const uint8_t *codes = p->standard->weight_scale.data;
    const bool per_row = p->layer->weight_scale_2_type == HUM_SCALE_2_CHANNEL;
    const int64_t from = per_row ? n * s->groups : 0;
    const int64_t to = per_row ? from + s->groups : s->n * s->groups;
    const int range = s->is_int ? 3 : 11;
    int high = 0, low = 255;

    for (int64_t i = from; i < to; i++) {
        high = codes[i] > high ? codes[i] : high;
        low = codes[i] < low ? codes[i] : low;
    }
    return high - (high - low < range ? high - low : range);
}

static struct shape shape_of(const struct oracle_problem *p, int64_t col)
{
    const struct hum_layer_config *l = p->layer;
    struct shape s = {.n = l->shape_n - l->pad_shape_n, .k = l->shape_k - l->pad_shape_k};

    s.group_k = l->weight_scale_group_size ? l->weight_scale_group_size : l->shape_k;
    s.groups = up(s.k, s.group_k);
    s.a16 = hum_dtype_bits(l->a_dtype) == 16;
    s.is_int = !hum_dtype_is_float(l->a_dtype);
    s.f16 = p->compute->use_f16_accum;
    s.scale_on_c = l->weight_scale_type == HUM_SCALE_BLOCK ||
                   (l->weight_scale_type == HUM_SCALE_GROUP && !s.a16 && !l->use_fused_e8m0_scale);
    if (l->use_fused_e8m0_scale)
        s.base = fused_base(p, &s, col);
    return s;
}

static double activation(const struct oracle_problem *p, const struct shape *s, int64_t row,
                         int64_t k)
{
    const int32_t dtype = p->layer->a_dtype;
    const uint8_t *bytes = p->inputs->data;

    if (hum_dtype_bits(dtype) == 16)
        return oracle_decode(dtype, ((const uint16_t *)p->inputs->data)[row * s->k + k], false);
    if (hum_dtype_bits(dtype) == 8)
        return oracle_decode(dtype, bytes[row * s->k + k], false);
    return oracle_decode(dtype, bytes[(row * s->k + k) / 2] >> 4 * (k % 2) & 15, false);
}

/* Section 2. */
static double weight_value(const struct oracle_problem *p, const struct shape *s, int64_t n,
                           int64_t k)
{
    const struct hum_layer_config *l = p->layer;
    const int bits = hum_dtype_bits(l->b_dtype);
    const uint32_t q = stream_element(&p->standard->weight, n * s->k * bits / 32, 1, k, bits);
    const int64_t g = k / s->group_k;

    if (hum_dtype_is_float(l->b_dtype))
        return oracle_decode(l->b_dtype, q, true);
    if (l->is_fp_zero_point)
        return oracle_fma(l->a_dtype, -1.0, element_of(&p->standard->zero_point, n * s->groups + g),
                          q);
    if (l->has_zero_point)
        return (double)q - stream_element(&p->standard->zero_point, g, s->groups, n, bits);
    return (double)q - (1 << (bits - 1));
}

/* Section 8: what the weight is after requantization. */
static double fused_value(const struct oracle_problem *p, const struct shape *s, int64_t n,
                          int64_t k)
{
    const uint8_t *codes = p->standard->weight_scale.data;
    const int code = codes[n * s->groups + k / s->group_k];
    const double v = weight_value(p, s, n, k), scaled = fabs(v) * ldexp(1.0, code - s->base);
    double best = 0;

    if (code == 255 || s->base == 255)
        return (double)NAN;
    if (code >= s->base)
        return v * ldexp(1.0, code - 127);
    for (uint32_t c = 1; c < 8; c++) {
        const double candidate = oracle_decode(HUM_E2M1, c, true);

        if (candidate - scaled <= scaled - best)
            best = candidate;
    }
    return copysign(best, v) * ldexp(1.0, s->base - 127);
}

/* Section 3. */
static double operand(const struct oracle_problem *p, const struct shape *s, int64_t n, int64_t k)
{
    const struct hum_layer_config *l = p->layer;
    double v, scale;

    if (l->use_fused_e8m0_scale)
        return fused_value(p, s, n, k);
    v = weight_value(p, s, n, k);
    if (!s->a16 || l->weight_scale_type != HUM_SCALE_GROUP)
        return v;
    scale = element_of(&p->standard->weight_scale, n * s->groups + k / s->group_k);
    return oracle_round(l->a_dtype, v * oracle_round(l->a_dtype, scale, 0), 0);
}

static double input_scale(const struct oracle_problem *p, const struct shape *s, int64_t row,
                          int64_t k)
{
    const int64_t group = p->layer->input_scale_group_size;
    const int64_t groups = group ? up(s->k, group) : 1, g = group ? k / group : 0;

    if (p->compute->use_m_major_input_scale)
        return element_of(p->input_scale, g * up(p->m, 4) * 4 + row);
    return element_of(p->input_scale, row * groups + g);
}

static int32_t int_scale(const struct oracle_problem *p, const struct shape *s, int64_t n,
                         int64_t k)
{
    const double scale =
        oracle_round(p->layer->c_dtype,
                     element_of(&p->standard->weight_scale, n * s->groups + k / s->group_k), 0);
    const double f = s->factor;

    return f > 0 ? (int32_t)lrint(oracle_round(HUM_F32, scale / f, 0)) : 0;
}

/* One chain: c0 and c1, or their integer twins (doubles hold int32). */
struct chain {
    double c0, c1;
};

static double wrap(double x)
{
    const int64_t i = (int64_t)x;
    const uint32_t u = (uint32_t)i;

    return u < 0x80000000u ? (double)u : (double)u - 0x1p32;
}

static void flush_chain(const struct oracle_problem *p, const struct shape *s, int64_t row,
                        int64_t col, int64_t k, struct chain *c)
{
    const struct hum_layer_config *l = p->layer;
    const bool has_as = l->input_scale_group_size > 0;
    const int32_t t = s->f16 ? HUM_F16 : HUM_F32;
    const int64_t column =
        l->weight_scale_type == HUM_SCALE_BLOCK ? col / l->weight_scale_group_size_n : col;
    double as = 1, bs = 1, f;

    if (l->use_int_weight_scale) {
        c->c1 = wrap(c->c1 + wrap((double)int_scale(p, s, col, k) * c->c0));
        c->c0 = 0;
        return;
    }
    if (has_as)
        as = oracle_round(t, input_scale(p, s, row, k), 0);
    if (s->scale_on_c)
        bs = oracle_round(
            t, element_of(&p->standard->weight_scale, column * s->groups + k / s->group_k), 0);
    f = oracle_round(t, as * bs, 0);
    c->c1 = oracle_fma(t, f, s->is_int ? oracle_round(HUM_F32, c->c0, 0) : c->c0, c->c1);
    c->c0 = 0;
}

/* Section 4: k of [k0, k1), one warp's part of a K block. */
static void run_chain(const struct oracle_problem *p, const struct shape *s,
                      const struct hum_accumulation *o, int64_t row, int64_t col, int64_t k0,
                      int64_t k1, struct chain *c)
{
    for (int64_t k = k0; k < k1 && k < s->k; k++) {
        const double a = activation(p, s, row, k), w = operand(p, s, col, k);

        if (s->is_int)
            c->c0 += a * w;
        else
            c->c0 = oracle_round(HUM_F32, c->c0 + oracle_round(HUM_F32, a * w, 0), 0);
        if (s->f16 && ((k + 1) % o->instruction_k == 0 || k + 1 == s->k))
            c->c0 = oracle_round(HUM_F16, c->c0, 0);
        if (o->flush_k && ((k + 1) % o->flush_k == 0 || k + 1 == s->k))
            flush_chain(p, s, row, col, k, c);
    }
}

static double run_slice(const struct oracle_problem *p, const struct shape *s,
                        const struct hum_accumulation *o, int64_t row, int64_t col, int64_t slice)
{
    const int64_t warps = o->block_k / o->warp_k;
    struct chain chains[MAX_WARPS] = {{0, 0}};
    double sum[MAX_WARPS] = {0};

    for (int64_t b = o->slice[slice].k_begin; b < o->slice[slice].k_end; b += o->block_k)
        for (int64_t w = 0; w < warps; w++)
            run_chain(p, s, o, row, col, b + w * o->warp_k, b + (w + 1) * o->warp_k, &chains[w]);
    for (int64_t w = 0; w < warps; w++)
        sum[w] = o->flush_k ? chains[w].c1 : chains[w].c0;
    for (int64_t count = warps / 2; count > 0; count /= 2)
        for (int64_t w = 0; w < count; w++) {
            sum[w] += sum[w + count];
            if (s->is_int && p->layer->use_fused_e8m0_scale && !o->flush_k)
                continue; /* integers times a power of two, exact */
            if (s->is_int && (!o->flush_k || p->layer->use_int_weight_scale))
                sum[w] = wrap(sum[w]);
            else
                sum[w] = oracle_round(s->f16 ? HUM_F16 : HUM_F32, sum[w], 0);
        }
    return sum[0];
}

/* t of section 5; false: there is none. */
static bool tensor_factor(const struct oracle_problem *p, const struct shape *s, double *t)
{
    const struct hum_layer_config *l = p->layer;
    const bool two = l->weight_scale_2_type == HUM_SCALE_2_TENSOR;

    *t = 1;
    if (l->weight_scale_type == HUM_SCALE_TENSOR)
        *t = element_of(&p->standard->weight_scale, 0);
    else if (two)
        *t = element_of(&p->standard->weight_scale_2, 0);
    if (l->use_int_weight_scale)
        *t = oracle_round(HUM_F32, *t * s->factor, 0);
    return l->weight_scale_type == HUM_SCALE_TENSOR || two || l->use_int_weight_scale;
}

/* s of section 5, in c; false: there is none. */
static bool channel_factor(const struct oracle_problem *p, int64_t col, double *out)
{
    const struct hum_layer_config *l = p->layer;

    if (l->weight_scale_type == HUM_SCALE_CHANNEL)
        *out = oracle_round(l->c_dtype, element_of(&p->standard->weight_scale, col), 0);
    else if (l->weight_scale_2_type == HUM_SCALE_2_CHANNEL)
        *out = element_of(&p->standard->weight_scale_2, col);
    else
        return false;
    return true;
}

static double epilogue(const struct oracle_problem *p, const struct shape *s, int64_t row,
                       int64_t col, double x, bool with_bias)
{
    const int32_t c = p->layer->c_dtype, t32 = s->f16 ? HUM_F16 : HUM_F32;
    const bool has_as = !s->a16 && p->layer->input_scale_group_size == 0;
    const bool has_bias = with_bias && p->layer->has_bias;
    const double bias = has_bias ? element_of(&p->standard->bias, col) : 0;
    double as = 1, t, scale = 1, h;
    const bool has_t = tensor_factor(p, s, &t), has_s = channel_factor(p, col, &scale);

    x = oracle_round(HUM_F32, x, 0);
    if (has_as)
        as = oracle_round(t32, input_scale(p, s, row, 0), 0);
    t = oracle_round(t32, t, 0);
    if (has_as || has_t)
        x = oracle_round(t32, x * oracle_round(t32, as * t, 0), 0);
    h = oracle_round(c, x, 0);
    if (has_s && has_bias && !s->f16)
        return oracle_fma(c, h, scale, bias);
    if (has_s)
        h = oracle_round(c, h * scale, 0);
    return has_bias ? oracle_fma(c, 1.0, h, bias) : h;
}

/* Where the numbers of one expert begin. */
static struct hum_tensor at_expert(const struct hum_tensor *t, int64_t expert)
{
    struct hum_tensor moved = *t;
    int64_t bytes = hum_dtype_bits(t->dtype) / 8;

    for (int32_t i = 1; i < t->rank; i++)
        bytes *= t->shape[i];
    if (t->data)
        moved.data = (char *)t->data + expert * bytes;
    return moved;
}

static double sum_slices(const struct oracle_problem *p, const struct shape *s,
                         const struct hum_accumulation *order, int64_t row, int64_t col)
{
    double out = 0;

    for (int64_t i = 0; i < order->slices; i++) {
        const double x = run_slice(p, s, order, row, col, i);
        const double h = epilogue(p, s, row, col, x, i == 0);

        out = i == 0 ? h : oracle_fma(p->layer->c_dtype, 1.0, out, h);
    }
    return out;
}

double oracle_element(const struct oracle_problem *p, const struct hum_accumulation *order,
                      int64_t row, int64_t col)
{
    const struct hum_weights *all = p->standard;
    const struct hum_weights own = {.weight = at_expert(&all->weight, p->expert),
                                    .weight_scale = at_expert(&all->weight_scale, p->expert),
                                    .zero_point = at_expert(&all->zero_point, p->expert),
                                    .weight_scale_2 = at_expert(&all->weight_scale_2, p->expert),
                                    .bias = at_expert(&all->bias, p->expert)};
    struct oracle_problem one = *p;
    struct shape s;

    one.standard = &own;
    s = shape_of(&one, col);
    if (p->layer->use_int_weight_scale)
        s.factor = int_factor(p, &s);
    return sum_slices(&one, &s, order, row, col);
}
