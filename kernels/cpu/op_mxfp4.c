#include "kernels/cpu/op_check.h"
#include "kernels/cpu/ops.h"

#include "kernels/cpu/config.h"
#include "kernels/cpu/fault.h"

#include <math.h>

/* Steps of e8m0 that an operand of the activation's format can hold (docs/semantics.md section
 * 8). */
enum { RANGE_E4M3 = 11, RANGE_INT8 = 3 };

/* From delta 5 on every magnitude, at most 6, falls below 0.25, half the smallest number: all codes
 * become 0. */
enum { DELTAS = 6 };

static enum hum_code check(const struct hum_process_mxfp4_args *a, char reason[HUM_REASON_BYTES])
{
    const struct hum_tensor *w = &a->weight, *s = &a->scale;
    const bool sane = op_shape_is_sane(w, 2) && op_shape_is_sane(s, 2) && w->shape[0] > 0 &&
                      w->shape[1] > 0 && s->shape[1] > 0;
    const struct op_rule rules[] = {
        {a->a_dtype != HUM_E4M3 && a->a_dtype != HUM_INT8, "a_dtype must be float8e4m3 or int8"},
        {a->range < 0 || a->range > 255, "range must be 0 to 255"},
        {!sane, "weight and scale must have rank 2 and at least one row, word and group"},
        {sane && w->shape[1] * 8 % s->shape[1] != 0,
         "the groups of scale must divide the 8 weights a word of a row evenly"},
    };

    if (op_check_rules(rules, sizeof rules / sizeof rules[0], reason))
        return HUM_INVALID;
    {
        const int64_t n = w->shape[0];
        const struct op_tensor all[] = {
            {"weight", w, op_want(HUM_INT32, 2, n, w->shape[1], 0), true},
            {"scale", s, op_want(HUM_E8M0, 2, n, s->shape[1], 0), true},
            {"factor", &a->factor, op_want(HUM_F32, 1, a->per_row ? n : 1, 0, 0), true},
        };

        return op_check_tensors(all, sizeof all / sizeof all[0], reason);
    }
}

/* The code of value(code) x 2^-delta: the number of codes at or above whose lower neighbour's
 * midpoint it lies. In units of 2^-(delta + 2), so that midpoints are whole; ties away from zero,
 * zero is +0. */
static uint32_t requantize(uint32_t code, int delta)
{
    static const uint32_t twice[8] = {0, 1, 2, 3, 4, 6, 8, 12}; /* OCP MX: e2m1 times 2 */
    const uint32_t value = 2 * twice[code & 7u];
    uint32_t magnitude = 0;

    if (FAULT(MXFP4_MINUS_ZERO_KEPT) && delta == 0)
        return code;
    while (magnitude < 7 && value >= ((twice[magnitude] + twice[magnitude + 1]) << delta) +
                                         (FAULT(MXFP4_TIES_TO_EVEN) && magnitude % 2 == 0))
        magnitude++;
    return magnitude ? magnitude | (code & 8u) : 0u;
}

static int scale_base(const uint8_t *codes, int64_t count, int range)
{
    int high = codes[0], low = codes[0];

    for (int64_t i = 1; i < count; i++) {
        high = codes[i] > high ? codes[i] : high;
        low = codes[i] < low ? codes[i] : low;
    }
    return high - (high - low < range ? high - low : range);
}

static float factor_of(int base)
{
    return ldexpf(1.0f, base - (FAULT(MXFP4_BIAS_128) ? 128 : 127));
}

static void process_row(uint32_t *words, uint8_t *scales, int64_t groups, int64_t size, int base,
                        uint8_t map[DELTAS][16])
{
    for (int64_t g = 0; g < groups; g++) {
        const int delta = base > scales[g] ? base - scales[g] : 0;
        const uint8_t *to = map[delta < DELTAS ? delta : DELTAS - 1];

        for (int64_t k = g * size; k < (g + 1) * size; k++) {
            const unsigned at = (unsigned)(k % 8) * 4;
            const uint32_t word = words[k / 8];

            words[k / 8] = (word & ~(15u << at)) | (uint32_t)to[word >> at & 15u] << at;
        }
        scales[g] = (uint8_t)(delta && !FAULT(MXFP4_OFFSET_WRAPS) ? 0 : scales[g] - base);
    }
}

enum hum_code op_process_mxfp4(void *handle, const struct hum_process_mxfp4_args *args,
                               char reason[HUM_REASON_BYTES])
{
    uint8_t map[DELTAS][16], *scales;
    int64_t rows, groups, words;
    float *factor;
    int range, base;

    (void)handle;
    if (!args)
        return refuse(reason, HUM_INVALID, "the arguments are missing");
    if (check(args, reason))
        return HUM_INVALID;
    for (int delta = 0; delta < DELTAS; delta++)
        for (uint32_t code = 0; code < 16; code++)
            map[delta][code] = (uint8_t)requantize(code, delta);
    rows = args->weight.shape[0];
    words = args->weight.shape[1];
    groups = args->scale.shape[1];
    scales = args->scale.data;
    factor = args->factor.data;
    range = args->a_dtype == HUM_INT8 && !FAULT(MXFP4_RANGE_OF_E4M3) ? RANGE_INT8 : RANGE_E4M3;
    if (args->range)
        range = args->range;
    base = scale_base(scales, rows * groups, range);
    factor[0] = factor_of(base);
    for (int64_t n = 0; n < rows; n++) {
        if (args->per_row) {
            if (!FAULT(MXFP4_BASE_OF_TENSOR))
                base = scale_base(scales + n * groups, groups, range);
            factor[n] = factor_of(base);
        }
        process_row((uint32_t *)args->weight.data + n * words, scales + n * groups, groups,
                    words * 8 / groups, base, map);
    }
    return HUM_OK;
}
