#include "kernels/cpu/layout.h"

#include "kernels/cpu/fault.h"
#include "kernels/cpu/fault_effects.h"
#include "kernels/cpu/format.h"
#include "kernels/cpu/fused.h"
#include "kernels/cpu/round.h"
#include "kernels/cpu/vector.h"

#include <math.h>

static struct hum_tensor tensor(int32_t dtype, int32_t rank, int64_t d0, int64_t d1, int64_t d2)
{
    const int64_t count = d0 * (rank > 1 ? d1 : 1) * (rank > 2 ? d2 : 1);
    struct hum_tensor t = {.dtype = dtype, .rank = rank, .shape = {d0}};

    if (rank > 1)
        t.shape[1] = d1;
    if (rank > 2)
        t.shape[2] = d2;
    t.bytes = format_bytes(dtype, count);
    return t;
}

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static struct hum_tensor standard_scale(const struct hum_layer_config *l, const struct facts *f)
{
    switch (l->weight_scale_type) {
    case HUM_SCALE_CHANNEL:
    case HUM_SCALE_GROUP:
        return tensor(l->bs_dtype, 2, f->n, f->groups, 0);
    case HUM_SCALE_BLOCK:
        return tensor(HUM_F32, 2, divide_up(f->n, l->weight_scale_group_size_n), f->groups, 0);
    case HUM_SCALE_TENSOR:
        return tensor(HUM_F32, 1, 1, 0, 0);
    }
    return (struct hum_tensor){0};
}

/* Puts `experts` (0: none) in front; one number becomes one an expert. */
static void add_experts(int64_t experts, struct hum_tensor *t)
{
    if (!experts || !t->rank)
        return;
    t->bytes *= (size_t)experts;
    if (t->rank == 1 && t->shape[0] == 1) {
        t->shape[0] = experts;
        return;
    }
    memmove(t->shape + 1, t->shape, (size_t)t->rank * sizeof t->shape[0]);
    t->shape[0] = experts;
    t->rank++;
}

/* Takes the dimension away again. */
static void select_expert(int64_t experts, int64_t expert, struct hum_tensor *t)
{
    if (!experts || !t->rank)
        return;
    t->bytes /= (size_t)experts;
    t->data = (char *)t->data + (size_t)expert * t->bytes;
    if (t->rank == 1) {
        t->shape[0] = 1;
        return;
    }
    t->rank--;
    memmove(t->shape, t->shape + 1, (size_t)t->rank * sizeof t->shape[0]);
}

static struct hum_weights with_experts(const struct hum_layer_config *layer, struct hum_weights w)
{
    add_experts(layer->num_experts, &w.weight);
    add_experts(layer->num_experts, &w.weight_scale);
    add_experts(layer->num_experts, &w.zero_point);
    add_experts(layer->num_experts, &w.weight_scale_2);
    add_experts(layer->num_experts, &w.bias);
    return w;
}

struct hum_weights layout_expert(const struct hum_layer_config *layer,
                                 const struct hum_weights *weights, int64_t expert)
{
    struct hum_weights w = *weights;

    select_expert(layer->num_experts, expert, &w.weight);
    select_expert(layer->num_experts, expert, &w.weight_scale);
    select_expert(layer->num_experts, expert, &w.zero_point);
    select_expert(layer->num_experts, expert, &w.weight_scale_2);
    select_expert(layer->num_experts, expert, &w.bias);
    return w;
}

struct hum_weights layout_standard(const struct hum_layer_config *layer)
{
    const struct facts f = config_facts(layer);
    struct hum_weights w = {.weight = tensor(HUM_INT32, 2, f.n, f.k * f.bits_b / 32, 0),
                            .weight_scale = standard_scale(layer, &f)};

    if (layer->is_fp_zero_point)
        w.zero_point = tensor(layer->a_dtype, 2, f.n, f.groups, 0);
    else if (layer->has_zero_point)
        w.zero_point = tensor(HUM_INT32, 2, divide_up(f.n * f.bits_b, 32), f.groups, 0);
    if (layer->weight_scale_2_type == HUM_SCALE_2_TENSOR)
        w.weight_scale_2 = tensor(HUM_F32, 1, 1, 0, 0);
    if (layer->weight_scale_2_type == HUM_SCALE_2_CHANNEL)
        w.weight_scale_2 = tensor(layer->c_dtype, 1, f.n, 0, 0);
    if (layer->has_bias)
        w.bias = tensor(layer->c_dtype, 1, f.n, 0, 0);
    return with_experts(layer, w);
}

struct hum_weights layout_kernel(const struct hum_layer_config *layer)
{
    const struct facts f = config_facts(layer);
    const int64_t n = layer->shape_n, extra = f.fused && f.is_int;
    struct hum_weights w = {.weight = tensor(HUM_UINT(8), 3, n / PANEL, layer->shape_k, PANEL)};

    if (layer->weight_scale_type == HUM_SCALE_TENSOR)
        w.weight_scale = tensor(HUM_F32, 1, 1, 0, 0);
    else
        w.weight_scale =
            tensor(f.int_scale ? HUM_INT32 : HUM_F32, 2, f.padded_groups + extra, n, 0);
    if (layer->has_zero_point)
        w.zero_point = tensor(HUM_F32, 2, f.padded_groups, n, 0);
    if (layer->weight_scale_2_type == HUM_SCALE_2_CHANNEL)
        w.weight_scale_2 = tensor(HUM_F32, 1, n + f.int_scale, 0, 0);
    else if (layer->weight_scale_2_type == HUM_SCALE_2_TENSOR || f.int_scale)
        w.weight_scale_2 = tensor(HUM_F32, 1, 1, 0, 0);
    if (layer->has_bias)
        w.bias = tensor(HUM_F32, 1, n, 0, 0);
    return with_experts(layer, w);
}

/* `bits` bits at position `at` of a stream of 32-bit words that lie `stride` apart, low bits
 * first. */
static uint32_t stream_bits(const uint32_t *words, int64_t stride, int64_t at, int bits)
{
    const int64_t word = at / 32;
    const int shift = (int)(at % 32);
    uint64_t pair = words[word * stride];

    if (shift + bits > 32 && !FAULT(STRADDLE_BITS_LOST))
        pair |= (uint64_t)words[(word + 1) * stride] << 32;
    return (uint32_t)(pair >> shift) & ((1u << bits) - 1u);
}

/* The place along k that code k of column n is taken from. */
static int64_t source_k(const struct facts *f, int64_t n, int64_t k)
{
    if (FAULT(NIBBLE_ORDER) && f->bits_b == 4)
        return k ^ 1;
    if (FAULT(NIBBLE_ORDER_ONE_BYTE) && f->bits_b == 4 && n == f->n / 2 && k < 2)
        return k ^ 1;
    if (FAULT(K_PAIR_SWAPPED) && k / 2 == f->k / 4)
        return k ^ 1;
    return k;
}

static void transform_codes(const struct hum_layer_config *l, const struct facts *f,
                            const struct hum_weights *standard, const struct hum_weights *out)
{
    const uint32_t *words = standard->weight.data;
    const int64_t row_words = f->k * f->bits_b / 32;
    uint8_t *codes = out->weight.data;

    memset(codes, 0, out->weight.bytes);
    for (int64_t n = 0; n < f->n; n++) {
        uint8_t *column = codes + n / PANEL * l->shape_k * PANEL + n % PANEL;

        for (int64_t k = 0; k < f->k; k++)
            column[k * PANEL] = (uint8_t)stream_bits(words + n * row_words, 1,
                                                     source_k(f, n, k) * f->bits_b, f->bits_b);
        if (FAULT(WEIGHT_LSB_FLIPPED))
            column[(11 * n + 5) % f->k * PANEL] ^= 1;
    }
}

/* A number of an 8-, 16- or 32-bit float. */
static float decode(int32_t dtype, uint32_t code)
{
    float value;

    if (dtype == HUM_F32)
        return bits_float(code);
    if (hum_dtype_bits(dtype) == 16)
        return decode_16(dtype, (uint16_t)code);
    value = format_decode(dtype, code, FORMAT_NUMBER);
    if (dtype == HUM_E8M0)
        (void)FAULT_EFFECT(fault_e8m0((int)code, &value));
    return value;
}

/* Element i of a tensor of such numbers, as it lies there. */
static uint32_t element_code(const struct hum_tensor *t, int64_t i)
{
    if (t->dtype == HUM_F32)
        return ((const uint32_t *)t->data)[i];
    if (hum_dtype_bits(t->dtype) == 16)
        return ((const uint16_t *)t->data)[i];
    return ((const uint8_t *)t->data)[i];
}

static float element(const struct hum_tensor *t, int64_t i)
{
    return decode(t->dtype, element_code(t, i));
}

/* Weight scale (n, g) of groups, channels or blocks. */
static float scale_at(const struct hum_layer_config *l, const struct facts *f,
                      const struct hum_tensor *in, int64_t n, int64_t g)
{
    const int64_t columns =
        l->weight_scale_type == HUM_SCALE_BLOCK ? l->weight_scale_group_size_n : 1;
    const int64_t i = n / columns * f->groups + g;

    if (FAULT(SCALES_TRANSPOSED))
        return element(in, g * divide_up(f->n, columns) + n / columns);
    if (FAULT(SCALE_OF_NEIGHBOUR_COLUMN) && n == f->n - 1)
        return element(in, (n - 1) / columns * f->groups + g);
    if (FAULT(SCALE_ONE_ULP) && n == f->n - 1)
        return decode(in->dtype, element_code(in, i) + 1);
    if (FAULT(SCALE_MANTISSA_3_BITS))
        return bits_float(float_bits(element(in, i)) & 0xfff00000u);
    if (FAULT(RAW_SCALE_BYTE) && f->n < 16 && hum_dtype_bits(in->dtype) == 8)
        return (float)element_code(in, i);
    return element(in, i);
}

/* Channel, group and block scales: (columns, groups) becomes (padded groups, shape_n), padded with
 * 0. */
static void transform_scales(const struct hum_layer_config *l, const struct facts *f,
                             const struct hum_tensor *in, const struct hum_tensor *to)
{
    const bool rounds = f->scale_on_operand || l->weight_scale_type == HUM_SCALE_CHANNEL;
    float *out = to->data;

    memset(out, 0, to->bytes);
    for (int64_t g = 0; g < f->groups; g++)
        for (int64_t n = 0; n < f->n; n++) {
            const float s = scale_at(l, f, in, n, g);

            out[g * l->shape_n + n] = rounds ? round_16(l->c_dtype, s) : s;
        }
}

/* The larger magnitude; a NaN stays. */
static float max_magnitude(float most, float s)
{
    const float magnitude = fabsf(s);

    return !(magnitude <= most) && !isnan(most) ? magnitude : most;
}

/* f of section 7, over all experts. */
static float int_factor(const struct hum_layer_config *l, const struct hum_tensor *scale)
{
    const int64_t count = (int64_t)(scale->bytes / format_bytes(scale->dtype, 1));
    float most = 0.0f;

    for (int64_t i = 0; i < count; i++)
        most = max_magnitude(most, round_16(l->c_dtype, element(scale, i)));
    return most / 1024.0f;
}

/* Section 7. A scale without a finite quotient becomes 0: t is not finite then, or 0. */
static void transform_int_scales(const struct hum_layer_config *l, const struct facts *f,
                                 const struct hum_tensor *in, float factor,
                                 const struct hum_tensor *to)
{
    int32_t *out = to->data;

    memset(out, 0, to->bytes);
    for (int64_t g = 0; g < f->groups; g++)
        for (int64_t n = 0; n < f->n; n++) {
            const float q = round_16(l->c_dtype, scale_at(l, f, in, n, g)) / factor;

            out[g * l->shape_n + n] = fabsf(q) <= 0x1p20f ? (int32_t)nearbyintf(q) : 0;
        }
}

/* Zero point (n, g). */
static float zero_point_at(const struct hum_layer_config *l, const struct facts *f,
                           const struct hum_tensor *in, int64_t n, int64_t g)
{
    const uint32_t *words = (const uint32_t *)in->data + g;
    uint32_t z;

    if (l->is_fp_zero_point)
        return element(in, n * f->groups + g);
    if (FAULT(ZERO_POINT_ORDER) && f->bits_b == 4)
        n = fault_interleaved(n);
    z = stream_bits(words, f->groups, n * f->bits_b, f->bits_b);
    if (FAULT(ZERO_POINT_PLUS_1) ||
        (FAULT(ZERO_POINT_PLUS_1_ONCE) && n == f->n / 2 && g == f->groups - 1))
        z++;
    return (float)z;
}

static void transform_zero_points(const struct hum_layer_config *l, const struct facts *f,
                                  const struct hum_tensor *in, const struct hum_tensor *to)
{
    float *out = to->data;

    memset(out, 0, to->bytes);
    for (int64_t g = 0; g < f->groups; g++)
        for (int64_t n = 0; n < f->n; n++)
            out[g * l->shape_n + n] = zero_point_at(l, f, in, n, FAULT(ZERO_POINT_GROUP_0) ? 0 : g);
    (void)FAULT_EFFECT(fault_zero_points(to));
}

/* A vector of n numbers, padded with 0. */
static void transform_vector(int64_t n, const struct hum_tensor *in, const struct hum_tensor *to)
{
    float *out = to->data;

    memset(out, 0, to->bytes);
    for (int64_t i = 0; i < n; i++)
        out[i] = element(in, i);
}

static void transform_scale_2(const struct hum_layer_config *l, const struct facts *f,
                              const struct hum_weights *standard, const struct hum_tensor *to,
                              float factor)
{
    float *out = to->data;

    switch (l->weight_scale_2_type) {
    case HUM_SCALE_2_NONE:
        if (f->int_scale)
            out[0] = factor;
        break;
    case HUM_SCALE_2_TENSOR:
        out[0] = FAULT(SECOND_SCALE_MISSING) ? 1.0f : element(&standard->weight_scale_2, 0);
        if (f->int_scale)
            out[0] *= factor;
        break;
    case HUM_SCALE_2_CHANNEL:
        transform_vector(f->n, &standard->weight_scale_2, to);
        for (int64_t n = 0; FAULT(SECOND_SCALE_MISSING) && n < f->n; n++)
            out[n] = 1.0f;
        if (f->int_scale)
            out[l->shape_n] = factor;
        break;
    }
}

/* Both sides without a dimension of experts. */
static void transform_expert(const struct hum_layer_config *layer, const struct facts *f,
                             float factor, const struct hum_weights *standard,
                             const struct hum_weights *out)
{
    transform_codes(layer, f, standard, out);
    if (f->fused)
        fused_transform(layer, f, &standard->weight_scale, out);
    else if (f->int_scale)
        transform_int_scales(layer, f, &standard->weight_scale, factor, &out->weight_scale);
    else if (layer->weight_scale_type == HUM_SCALE_TENSOR)
        transform_vector(1, &standard->weight_scale, &out->weight_scale);
    else
        transform_scales(layer, f, &standard->weight_scale, &out->weight_scale);
    if (layer->has_zero_point)
        transform_zero_points(layer, f, &standard->zero_point, &out->zero_point);
    transform_scale_2(layer, f, standard, &out->weight_scale_2, factor);
    if (layer->has_bias)
        transform_vector(f->n, &standard->bias, &out->bias);
    if (layer->has_bias)
        (void)FAULT_EFFECT(fault_bias(layer, f->n, &standard->bias, out->bias.data));
}

void layout_transform(const struct hum_layer_config *layer, const struct hum_weights *standard,
                      const struct hum_weights *out)
{
    const struct facts f = config_facts(layer);
    const int64_t experts = layer->num_experts ? layer->num_experts : 1;
    const float factor = f.int_scale ? int_factor(layer, &standard->weight_scale) : 1.0f;

    for (int64_t e = 0; e < experts; e++) {
        const struct hum_weights from = layout_expert(layer, standard, e);
        const struct hum_weights to = layout_expert(layer, out, e);

        transform_expert(layer, &f, factor, &from, &to);
    }
}
