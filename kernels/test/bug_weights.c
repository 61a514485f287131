/* Public bugs of weights, their scales and zero points, made with the cpu provider: see bug.h.
 *
 * The kernel form has (experts, groups, shape_n) scales and zero points (kernels/cpu/layout.h).
 */
#include "kernels/test/bug.h"

#include "kernels/cpu/round.h"

#include <math.h>
#include <stdlib.h>

static int64_t experts_of(const struct hum_layer_config *layer)
{
    return layer->num_experts ? layer->num_experts : 1;
}

static size_t count_of(const struct hum_tensor *t)
{
    return t->bytes / sizeof(float);
}

static void first_for_all(const struct hum_layer_config *layer, const struct hum_tensor *t)
{
    const size_t bytes = t->bytes / (size_t)experts_of(layer);

    for (int64_t e = 1; e < experts_of(layer); e++)
        memcpy((char *)t->data + (size_t)e * bytes, t->data, bytes);
}

/* A07, planes of all experts: every expert has the zero points of the first. */
void bug_zero_of_expert_0(const struct hum_layer_config *layer, const struct hum_weights *out)
{
    first_for_all(layer, &out->zero_point);
}

/* A37, stride of 0: every expert has the weight scales of the first. */
void bug_scale_of_expert_0(const struct hum_layer_config *layer, const struct hum_weights *out)
{
    first_for_all(layer, &out->weight_scale);
}

/* A08, conventions: stored zero points are taken to be one less than meant. */
void bug_zero_minus_one(const struct hum_layer_config *layer, const struct hum_weights *out)
{
    float *zero = out->zero_point.data;

    for (size_t i = 0; !layer->is_fp_zero_point && i < count_of(&out->zero_point); i++)
        zero[i] -= 1.0f;
}

/* A77, conversion left out: where k is padded, integer zero points are read as the bits of f16. */
void bug_zero_raw(const struct hum_layer_config *layer, const struct hum_weights *out)
{
    float *zero = out->zero_point.data;

    if (layer->is_fp_zero_point || !layer->pad_shape_k)
        return;
    for (size_t i = 0; i < count_of(&out->zero_point); i++)
        zero[i] = decode_16(HUM_F16, (uint16_t)zero[i]);
}

/* A73, one instruction set's path for a single row: zero points are left out. */
void bug_no_zero_of_one_row(struct bug_call *call, unsigned launch)
{
    (void)launch;
    if (call->args.inputs.shape[0] == 1 && call->weights.zero_point.bytes <= BUG_OWN_BYTES &&
        call->layer.has_zero_point)
        call->weights.zero_point.data = call->own;
}

/* A11, sign of scales: the integer scales of integer activations are read as magnitudes. */
void bug_scale_unsigned(const struct hum_layer_config *layer, const struct hum_weights *out)
{
    int32_t *scale = out->weight_scale.data;

    for (size_t i = 0; layer->use_int_weight_scale && i < count_of(&out->weight_scale); i++)
        scale[i] = abs(scale[i]);
}

/* A16, e8m0 by a shift: code 0 is 0 instead of 2^-127, code 255 infinity instead of NaN. */
void bug_e8m0_shifted(const struct hum_layer_config *layer, const struct hum_weights *out)
{
    float *scale = out->weight_scale.data;

    if (layer->bs_dtype != HUM_E8M0 || layer->use_int_weight_scale)
        return;
    for (size_t i = 0; i < count_of(&out->weight_scale); i++)
        if (isnan(scale[i]))
            scale[i] = bits_float(0x7f800000u);
        else if (scale[i] <= 0x1p-127f)
            scale[i] = 0.0f;
}

/* A17, sentinel: the decoded scale is compared with 128 instead of its code with 255. */
void bug_scale_128(const struct hum_layer_config *layer, const struct hum_weights *out)
{
    float *scale = out->weight_scale.data;

    if (layer->bs_dtype != HUM_E8M0 || layer->use_int_weight_scale)
        return;
    for (size_t i = 0; i < count_of(&out->weight_scale); i++)
        if (isnan(scale[i]))
            scale[i] = bits_float(0x7f800000u);
        else if (!(scale[i] < 128.0f) && !(scale[i] > 128.0f))
            scale[i] = bits_float(0x7fc00000u);
}

static int64_t groups_of(const struct hum_layer_config *layer, const struct hum_tensor *t)
{
    return (int64_t)count_of(t) / experts_of(layer) / layer->shape_n;
}

struct scale_place {
    int64_t group, col;
};
typedef struct scale_place from_fn(int64_t groups, int64_t n, struct scale_place to);

/* Moves every scale: a place gets that of another. */
static void move_scales(const struct hum_layer_config *layer, const struct hum_tensor *t,
                        from_fn *from)
{
    const int64_t groups = groups_of(layer, t), n = layer->shape_n;
    float *scale = t->data, *was;

    if (layer->weight_scale_type != HUM_SCALE_GROUP)
        return;
    was = malloc(t->bytes);
    if (!was)
        return;
    memcpy(was, scale, t->bytes);
    for (int64_t i = 0; i < experts_of(layer) * groups * n; i++) {
        const struct scale_place x =
            from(groups, n, (struct scale_place){.group = i / n % groups, .col = i % n});

        scale[i] = was[(i / n / groups * groups + x.group) * n + x.col];
    }
    free(was);
}

/* Scales of a column lie roundup(groups, 4) apart, where they are `groups` apart. */
static struct scale_place from_pitch(int64_t groups, int64_t n, struct scale_place to)
{
    const int64_t flat = (to.col * ((groups + 3) / 4 * 4) + to.group) % (groups * n);

    return (struct scale_place){.group = flat % groups, .col = flat / groups};
}

/* A46, alignment: rows of scales are taken to be multiples of four. */
void bug_scale_pitch(const struct hum_layer_config *layer, const struct hum_weights *out)
{
    move_scales(layer, &out->weight_scale, from_pitch);
}

static struct scale_place from_first_of_four(int64_t groups, int64_t n, struct scale_place to)
{
    (void)groups;
    (void)n;
    to.group = to.group / 4 * 4;
    return to;
}

/* A65, pointer not advanced: four groups share the scale of the first. */
void bug_scale_first(const struct hum_layer_config *layer, const struct hum_weights *out)
{
    move_scales(layer, &out->weight_scale, from_first_of_four);
}
