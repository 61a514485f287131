#include "harness/explain/ops_input.h"

#include "harness/kernel/semantics.h"

#include <math.h>
#include <string.h>

static bool is(const struct ops_input *j, enum ops_input_kind kind)
{
    return ops_input_is(j, kind);
}

static uint32_t bits_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* ---- scales ---------------------------------------------------------------------------------- */

static float absmax(const struct ops_input *j, const float *v, int64_t n)
{
    const int64_t skipped = !is(j, INPUT_SKIP) ? n : j->twist->n < 0 ? n - 1 : 0;
    float most = 0.0f;

    for (int64_t i = 0; i < n; i++) {
        const float x = is(j, INPUT_SIGNED_MAX) ? v[i] : fabsf(v[i]);

        if (i == skipped || isnan(most) || (isnan(x) && is(j, INPUT_NAN_IGNORED)))
            continue;
        if (!(x <= most))
            most = x;
    }
    return most;
}

/* By the rules of a provider; a twist of the extremes is none here. */
static float raw_by_rule(const struct ops_input *j, const float *v, int64_t n, float first)
{
    const bool sides = semantics_has(j->rules, SEMANTICS_EXTREMES_BY_SIDE);
    const bool times = semantics_has(j->rules, SEMANTICS_RECIPROCAL_LIMIT);
    const float target = is(j, INPUT_TARGET) ? (float)j->twist->n : ref_input_target_max(j->t);
    const float limits[2] = {target, sides && !j->t->is_float ? target + 1.0f : target};
    float most[2] = {sides ? 1e-30f : 0.0f, sides ? 1e-30f : 0.0f}, raw;

    for (int64_t i = 0; i < n; i++) {
        most[0] = fmaxf(most[0], v[i] * first);
        most[1] = fmaxf(most[1], -v[i] * first);
    }
    for (int side = 0; side < 2; side++)
        most[side] = times ? most[side] * (1.0f / limits[side]) : most[side] / limits[side];
    raw = fmaxf(most[0], most[1]);
    return sides || raw >= 1e-30f ? raw : 1e-30f;
}

static bool has_rule(const struct ops_input *j)
{
    return semantics_has(j->rules, SEMANTICS_EXTREMES_BY_SIDE) ||
           semantics_has(j->rules, SEMANTICS_RECIPROCAL_LIMIT);
}

static bool is_of_extremes(const struct ops_input *j)
{
    return is(j, INPUT_SKIP) || is(j, INPUT_SIGNED_MAX) || is(j, INPUT_NAN_IGNORED) ||
           is(j, INPUT_RECIPROCAL) || is(j, INPUT_FLOOR_LOST);
}

static float raw_scale(const struct ops_input *j, const float *v, int64_t n, float first)
{
    const float target = is(j, INPUT_TARGET) ? (float)j->twist->n : ref_input_target_max(j->t);
    const float most = fabsf(absmax(j, v, n) * first);
    const float raw = is(j, INPUT_RECIPROCAL) ? most * (1.0f / target) : most / target;

    if (has_rule(j) && !is_of_extremes(j))
        return raw_by_rule(j, v, n, first);
    return raw < 1e-30f && !is(j, INPUT_FLOOR_LOST) ? 1e-30f : raw;
}

/* The absmax of unit u of a row: what it is taken over. */
static float raw_of(const struct ops_input *j, const float *row, int64_t u, float first)
{
    const int64_t size = j->groups ? j->group : j->width, at = u * size;
    const int64_t n = j->width - at < size ? j->width - at : size;

    if (is(j, INPUT_ROW_MAX))
        return raw_scale(j, row, j->width, first);
    if (is(j, INPUT_FULL_GROUP) && n < size && size <= j->width)
        return raw_scale(j, row + j->width - size, size, first);
    return raw_scale(j, row + at, n, first);
}

static float power_of_two(const struct ops_input *j, float raw)
{
    const uint32_t bits = bits_of(raw);
    const uint32_t up = j->twist->rounding == OPS_UP          ? 0x7fffffu
                        : j->twist->rounding == OPS_TIES_AWAY ? 0x400000u
                                                              : 0u;
    const uint32_t power = (bits + up) & 0x7f800000u;
    float x;

    memcpy(&x, &power, sizeof x);
    return x;
}

static uint32_t encode_scale(const struct ops_input *j, float raw)
{
    uint32_t code;

    if (is(j, INPUT_E8M0) && isfinite(raw) && !strcmp(j->scale->name, "e8m0"))
        return ref_e8m0_code(power_of_two(j, raw));
    if (is(j, INPUT_SCALE_ROUND) && !strcmp(j->scale->name, "e4m3"))
        return ops_encode(j->scale, (double)raw, j->twist->rounding, OPS_SATURATES);
    code = ref_group_scale_encode(j->scale, raw);
    if (semantics_has(j->rules, SEMANTICS_SCALES_ROUND_UP) && !strcmp(j->scale->name, "e4m3") &&
        ref_group_scale_decode(j->scale, code) < raw && code < 0x7eu)
        code++;
    return code;
}

/* To 3 mantissa bits. */
static float m3_of(const struct ops_input *j, float x)
{
    const bool up = semantics_has(j->rules, SEMANTICS_SCALES_ROUND_UP);
    int e;
    double fraction;

    if (!isfinite(x) || !(is(j, INPUT_M3_ROUND) || up))
        return ref_round_to_3_bits(x);
    fraction = ldexp(frexp((double)x, &e), 4);
    fraction = is(j, INPUT_M3_ROUND) ? ops_round(fraction, j->twist->rounding) : ceil(fraction);
    return (float)ldexp(fraction, e - 4);
}

static float token_of(const struct ops_input *j, float largest)
{
    const float token = ref_token_scale(largest);

    return is(j, INPUT_TOKEN_STRICT) && !(largest / token < 448.0f) ? 2.0f * token : token;
}

/* Rule static-on-scale. */
static float left_to_scales(const struct ops_input *j)
{
    const float *given = j->a->static_scales.data;
    const bool on = j->static_scale && j->groups && !is(j, INPUT_NO_STATIC) &&
                    semantics_has(j->rules, SEMANTICS_STATIC_ON_SCALE);

    return on ? given[0] : 1.0f;
}

static void group_token_scales(const struct ops_input *j, int64_t row)
{
    uint32_t *scales = j->group_scales + row * j->groups;
    float *divisors = j->divisors + row * j->groups, largest = 0.0f, token;

    for (int64_t g = 0; g < j->groups; g++) {
        divisors[g] = m3_of(j, j->raw[row * j->groups + g]);
        if (!(divisors[g] <= largest) && !isnan(largest))
            largest = divisors[g];
    }
    token = isfinite(largest) ? token_of(j, largest) : 0.0f;
    j->token_scales[row] = isfinite(largest) ? bits_of(token) : REF_CODE_ANY;
    for (int64_t g = 0; g < j->groups; g++)
        scales[g] = isfinite(largest) ? encode_scale(j, divisors[g] / token) : REF_CODE_ANY;
}

static void scales_of_row(const struct ops_input *j, int64_t row)
{
    if (j->tokens && j->groups) {
        group_token_scales(j, row);
        return;
    }
    for (int64_t g = 0; g < j->groups; g++) {
        const int64_t i = row * j->groups + g;

        j->raw[i] /= left_to_scales(j);
        j->group_scales[i] = encode_scale(j, j->raw[i]);
        j->divisors[i] = ref_group_scale_decode(j->scale, j->group_scales[i]) * left_to_scales(j);
    }
    if (!j->tokens)
        return;
    j->divisors[row] = is(j, INPUT_ONE) ? (float)j->twist->n : j->raw[row];
    j->token_scales[row] = bits_of(is(j, INPUT_STORE_ONE) ? (float)j->twist->n : j->divisors[row]);
}

/* All rows have the largest raw scale of any. */
static void share(const struct ops_input *j, int64_t count)
{
    float most = 0.0f;

    for (int64_t i = 0; i < count; i++)
        most = j->raw[i] > most ? j->raw[i] : most;
    for (int64_t i = 0; i < count; i++)
        j->raw[i] = most;
}

/* The stored scales of group g + n instead of g. */
static void shift_stored(const struct ops_input *j, int64_t row)
{
    uint32_t *scales = j->group_scales + row * j->groups;
    const int64_t count = j->groups;

    if (j->twist->n < 0)
        memmove(scales + 1, scales, (size_t)(count - 1) * sizeof *scales);
    else
        memmove(scales, scales + 1, (size_t)(count - 1) * sizeof *scales);
}

/* ---- data ------------------------------------------------------------------------------------ */

static bool is_integer(const struct dtype *t)
{
    return !t->is_float;
}

static enum ops_rounding rounding(const struct ops_input *j)
{
    if (is(j, INPUT_ROUND) && is_integer(j->t) == (j->twist->n != 0))
        return j->twist->rounding;
    return OPS_TIES_TO_EVEN;
}

static enum ops_overflow overflow(const struct ops_input *j)
{
    if (j->t->bits >= 16 || is(j, INPUT_SPECIAL))
        return OPS_TO_SPECIAL;
    if (is(j, INPUT_WRAP) || (is_integer(j->t) && j->t->bits == 4 && !is(j, INPUT_NARROW) &&
                              !semantics_has(j->rules, SEMANTICS_INT4_SATURATES)))
        return OPS_WRAPS;
    return is(j, INPUT_NARROW) ? OPS_SATURATES_NARROW : OPS_SATURATES;
}

static bool is_subnormal(const struct dtype *t, uint32_t code)
{
    return t->exp_bits && !(code >> t->man_bits & ((1u << t->exp_bits) - 1u));
}

static uint32_t convert(const struct ops_input *j, float y)
{
    const uint32_t code = ops_encode(j->t, (double)y, rounding(j), overflow(j));
    const uint32_t sign = j->t->is_float ? 1u << (j->t->bits - 1) : 0u;

    if (code == REF_CODE_ANY)
        return code;
    if (is(j, INPUT_ZERO_LOST) && code == sign)
        return 0;
    if (is(j, INPUT_FLUSH) && is_subnormal(j->t, code))
        return j->twist->n ? code & sign : 0u;
    return code;
}

/* What data are multiplied by first: the reciprocal of the static scale. */
static float first_factor(const struct ops_input *j)
{
    const float *given = j->a->static_scales.data;

    if (!j->static_scale || is(j, INPUT_NO_STATIC) ||
        (j->groups && semantics_has(j->rules, SEMANTICS_STATIC_ON_SCALE)))
        return 1.0f;
    return is(j, INPUT_STATIC_TIMES) ? given[0] : 1.0f / given[0];
}

static float quotient(const struct ops_input *j, float x, float divisor)
{
    const bool zero = divisor <= 0.0f && divisor >= 0.0f;
    const float inverse = zero && !is(j, INPUT_ZERO_INF) ? 0.0f : 1.0f / divisor;

    if (is(j, INPUT_LEAST_NAN) && divisor <= 0x1p-99f)
        return (float)NAN;
    return is(j, INPUT_DIVIDE) && inverse > 0.0f ? x / divisor : x * inverse;
}

/* The scale that element `col` of a row is divided by. */
static float divisor_of(const struct ops_input *j, int64_t row, int64_t col)
{
    const int64_t units = j->groups ? j->groups : 1;
    int64_t g = j->groups ? col / j->group : 0;

    if (!j->groups && !j->tokens)
        return 1.0f;
    if (is(j, INPUT_GROUP) && g + j->twist->n >= 0 && g + j->twist->n < units)
        g += j->twist->n;
    if (is(j, INPUT_ROW) && row + j->twist->n >= 0 && row + j->twist->n < j->rows)
        row += j->twist->n;
    return is(j, INPUT_UNROUNDED) ? j->raw[row * units + g] : j->divisors[row * units + g];
}

static void convert_row(const struct ops_input *j, int64_t row)
{
    const bool fixed = j->static_scale && !j->groups;
    const float *given = j->a->static_scales.data, first = first_factor(j);

    for (int64_t i = 0; i < j->width; i++) {
        const float v = j->v[row * j->width + i];
        const float x = fixed && is(j, INPUT_DIVIDE) ? v / given[0] : v * first;

        j->codes[row * j->width + i] = convert(j, quotient(j, x, divisor_of(j, row, i)));
    }
}

void ops_input_quantize(const struct ops_input *j)
{
    const int64_t units = j->groups ? j->groups : 1;
    const float first = first_factor(j);

    for (int64_t i = 0; i < j->rows * units; i++)
        j->raw[i] = raw_of(j, j->v + i / units * j->width, i % units, first);
    if (is(j, INPUT_SHARED_MAX))
        share(j, j->rows * units);
    for (int64_t row = 0; row < j->rows; row++)
        scales_of_row(j, row);
    for (int64_t row = 0; row < j->rows; row++) {
        convert_row(j, row);
        if (j->groups && is(j, INPUT_STORED_GROUP))
            shift_stored(j, row);
    }
}
