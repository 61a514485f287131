#include "kernels/cpu/fused.h"

#include "kernels/cpu/fault.h"
#include "kernels/cpu/fault_effects.h"
#include "kernels/cpu/vector.h"

#include <math.h>

/* The steps of k between the smallest and the largest scale that an operand can hold. */
enum { RANGE_E4M3 = 11, RANGE_INT8 = 3 };

/* Twice the float4e2m1 magnitudes, by code. */
static const int twice[8] = {0, 1, 2, 3, 4, 6, 8, 12};

/* The code of value(code) x 2^-delta: nearest, ties away from zero, -0 becomes +0. Magnitudes are
 * compared as integers 2^(delta + 2) value; from delta 6 on the largest, 6, is below half the
 * smallest step. */
static uint8_t requantize(uint8_t code, int delta)
{
    const int magnitude = code & 7;
    int best = magnitude;

    if (FAULT(FUSED_DELTA_MINUS_1) && delta > 0)
        delta--;
    if (FAULT(FUSED_NOT_REQUANTIZED))
        delta = 0;
    if (FAULT(FUSED_TIES_TO_EVEN))
        return fault_requantize(code, delta, twice);
    if (delta > 0)
        best = 0;
    if (delta > 0 && delta < 6)
        for (int c = 1; c < 8; c++)
            if (2 * twice[magnitude] >= (twice[c - 1] + twice[c]) << delta)
                best = c;
    return (uint8_t)(best ? (code & 8) | best : 0);
}

/* base of section 8 over `count` scale codes. */
static int scale_base(const uint8_t *codes, int64_t count, int range)
{
    int high = codes[0], low = codes[0];

    for (int64_t i = 1; i < count; i++) {
        high = codes[i] > high ? codes[i] : high;
        low = codes[i] < low ? codes[i] : low;
    }
    return high - (high - low < range ? high - low : range);
}

static void requantize_group(const struct hum_layer_config *l, const struct facts *f, int64_t n,
                             int64_t g, int delta, uint8_t *codes)
{
    uint8_t *column = codes + n / PANEL * l->shape_k * PANEL + n % PANEL;
    const int64_t end = (g + 1) * f->group_k < f->k ? (g + 1) * f->group_k : f->k;

    for (int64_t k = g * f->group_k; k < end; k++)
        column[k * PANEL] = requantize(column[k * PANEL], delta);
}

/* Row n with its base: requantizes, and fills the row's factors; true: a scale is NaN. */
static bool transform_row(const struct hum_layer_config *l, const struct facts *f, int64_t n,
                          const uint8_t *row, int base, const struct hum_weights *out)
{
    float *factors = out->weight_scale.data;
    bool nan = false;

    for (int64_t g = 0; g < f->groups; g++) {
        const int s = row[g] < base ? base : row[g];
        float power = s == 255 ? NAN : ldexpf(1.0f, s - 127);

        (void)FAULT_EFFECT(fault_e8m0(s, &power));
        requantize_group(l, f, n, g, s - row[g], out->weight.data);
        factors[g * l->shape_n + n] = f->is_int ? ldexpf(1.0f, s - base) : power;
        nan = nan || s == 255;
    }
    return nan;
}

void fused_transform(const struct hum_layer_config *layer, const struct facts *f,
                     const struct hum_tensor *scale, const struct hum_weights *out)
{
    const uint8_t *codes = scale->data;
    const bool per_row = layer->weight_scale_2_type == HUM_SCALE_2_CHANNEL;
    const int range = f->is_int ? RANGE_INT8 : RANGE_E4M3;
    float *factors = out->weight_scale.data;
    const int64_t count = out->weight_scale.shape[0] * layer->shape_n;
    int base = scale_base(codes, f->n * f->groups, range);

    for (int64_t i = 0; i < count; i++)
        factors[i] = 1.0f;
    for (int64_t n = 0; n < f->n; n++) {
        const uint8_t *row = codes + n * f->groups;
        bool nan;

        if (per_row)
            base = scale_base(row, f->groups, range);
        nan = transform_row(layer, f, n, row, base, out);
        if (f->is_int)
            factors[f->padded_groups * layer->shape_n + n] =
                nan ? NAN : ldexpf(FAULT(E8M0_BIAS_128) ? 0.5f : 1.0f, base - 128);
    }
}
