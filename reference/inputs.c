#include "reference/inputs.h"

#include <stddef.h>
#include <string.h>

/* ---- formats --------------------------------------------------------------------------------- */

/* What a format is good for. */
/* clang-format off */
static const struct {
    const char *name;
    float target_max; /* 0: without quantization only */
} formats[] = {
    {"f16", 0.0f},      {"bf16", 0.0f}, {"f32", 0.0f},
    {"e4m3", 448.0f},   /* OFP8 1.0 */
    {"e5m2", 57344.0f}, /* OFP8 1.0 */
    {"e3m4", 30.0f},    {"e2m1", 6.0f}, {"e0m3", 7.0f},
    {"int8", 127.0f},   {"int4", 7.0f}, /* symmetric */
};
/* clang-format on */

enum { FORMATS = sizeof formats / sizeof formats[0] };

static int format_of(const struct dtype *t)
{
    int i = 0;

    while (i < FORMATS && strcmp(formats[i].name, t->name) != 0)
        i++;
    return i;
}

static bool named(const struct dtype *t, const char *name)
{
    return t && !strcmp(t->name, name);
}

float ref_input_target_max(const struct dtype *t)
{
    int i = format_of(t);

    return i < FORMATS ? formats[i].target_max : 0.0f;
}

const char *ref_input_valid(const struct ref_input *q)
{
    bool disabled = q->mode == REF_INPUT_DISABLED;
    bool f32 = named(q->group_scale, "f32"), e8m0 = named(q->group_scale, "e8m0");
    bool e4m3 = named(q->group_scale, "e4m3");

    if (q->rows < 0 || q->width < 1)
        return "rows must be at least 0 and width at least 1";
    if (format_of(q->t) == FORMATS || disabled != (ref_input_target_max(q->t) <= 0.0f))
        return disabled ? "the output format must be f16, bf16 or f32"
                        : "the output format must be one of 4 or 8 bits";
    if (q->t->bits == 4 && q->width % 2)
        return "4-bit results need an even number of columns";
    if (ref_input_is_static(q->mode) && !isfinite(1.0f / q->static_scale))
        return "the static scale must be a number other than 0";
    if (!ref_input_has_groups(q->mode))
        return NULL;
    if (q->group < 1)
        return "the group must be at least 1";
    if (q->mode == REF_INPUT_DYNAMIC_GROUP_TOKEN)
        return e4m3 ? NULL : "dynamic_group_token needs e4m3 group scales";
    return f32 || e8m0 || e4m3 ? NULL : "the group scales must be f32, e8m0 or e4m3";
}

/* ---- single scales and codes ----------------------------------------------------------------- */

static uint32_t bits_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

float ref_absmax(const float *x, int64_t n)
{
    float largest = 0.0f;

    for (int64_t i = 0; i < n; i++)
        if (!(fabsf(x[i]) <= largest) && !isnan(largest))
            largest = fabsf(x[i]);
    return largest;
}

float ref_input_raw_scale(const struct dtype *t, float absmax)
{
    float scale = absmax / ref_input_target_max(t);

    return scale < 1e-30f ? 1e-30f : scale;
}

uint32_t ref_group_scale_encode(const struct dtype *format, float raw)
{
    if (named(format, "e8m0")) /* 255 is NaN: OCP MX 1.0 */
        return isfinite(raw) ? ref_e8m0_code(ref_e8m0_round_up(raw)) : 255;
    return dtype_encode(format, (double)raw, named(format, "f32") ? DTYPE_TO_TOP : DTYPE_SATURATE);
}

float ref_group_scale_decode(const struct dtype *format, uint32_t code)
{
    return (float)dtype_decode(format, code);
}

float ref_round_to_3_bits(float x)
{
    int e;
    double fraction;

    if (!isfinite(x))
        return x;
    fraction = frexp((double)x, &e); /* in [1/2, 1): 4 significant bits are whole sixteenths */
    return (float)ldexp(rint(ldexp(fraction, 4)), e - 4);
}

float ref_token_scale(float largest)
{
    int e;
    double fraction = frexp((double)largest, &e);

    return (float)ldexp(1.0, fraction <= 448.0 / 512.0 ? e - 9 : e - 8);
}

/* rint(y) mod 16, of integers that fit 32 bits. */
static uint32_t convert_int4(float y)
{
    double whole = rint((double)y);

    if (!(whole >= -2147483648.0 && whole < 2147483648.0))
        return REF_CODE_ANY;
    return (uint32_t)(int64_t)whole & 15u;
}

uint32_t ref_input_convert(const struct dtype *t, float y)
{
    if (t->bits >= 16)
        return dtype_encode(t, (double)y, DTYPE_TO_TOP);
    if (isnan(y) && t->top == DTYPE_TOP_FINITE)
        return REF_CODE_ANY;
    if (named(t, "int4"))
        return convert_int4(y);
    return dtype_encode(t, (double)y, DTYPE_SATURATE);
}

void ref_unpack_nibbles(const uint8_t *bytes, int64_t n, uint32_t *codes)
{
    for (int64_t i = 0; i < n; i++)
        codes[i] = (uint32_t)bytes[i / 2] >> (i % 2 ? 4 : 0) & 15u;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* A decoded scale of 0 multiplies by 0. */
static float inverse_of(float scale)
{
    return scale <= 0.0f && scale >= 0.0f ? 0.0f : 1.0f / scale;
}

/* v RN, then times `inverse`, RN, to codes. first: the static scale's reciprocal, 1 without. */
static void convert(const struct ref_input *q, const float *v, int64_t n, float first,
                    float inverse, uint32_t *codes)
{
    bool limited = q->int4_saturates && named(q->t, "int4");

    for (int64_t i = 0; i < n; i++) {
        float x = v[i] * first, y = x * inverse;

        if (limited && !isnan(y))
            y = fminf(fmaxf(y, -8.0f), 7.0f);
        codes[i] = ref_input_convert(q->t, y);
    }
}

static uint32_t encode_scale(const struct ref_input *q, float raw)
{
    uint32_t code = ref_group_scale_encode(q->group_scale, raw);

    if (q->scales_up && named(q->group_scale, "e4m3") && code < 0x7E &&
        ref_group_scale_decode(q->group_scale, code) < raw)
        code++;
    return code;
}

float ref_input_m3(const struct ref_input *q, float raw)
{
    float m3 = ref_round_to_3_bits(raw);
    int e;

    if (!q->scales_up || !(m3 < raw))
        return m3;
    (void)frexp((double)m3, &e);
    return m3 + ldexpf(1.0f, e - 4);
}

static float over_limit(const struct ref_input *q, float extreme, float limit)
{
    float inverse = 1.0f / limit;

    return q->reciprocal_limit ? extreme * inverse : extreme / limit;
}

/* The rules by_side and reciprocal_limit. A NaN is neither above nor below anything. */
static float raw_by_rule(const struct ref_input *q, const float *v, int64_t n, float first)
{
    float limit = ref_input_target_max(q->t), floor = q->by_side ? 1e-30f : 0.0f;
    float below = limit + (q->by_side && !q->t->is_float ? 1.0f : 0.0f);
    float hi = floor, lo = floor, scale;

    for (int64_t i = 0; i < n; i++) {
        float x = v[i] * first;

        hi = fmaxf(hi, x);
        lo = fmaxf(lo, -x);
    }
    scale = fmaxf(over_limit(q, hi, limit), over_limit(q, lo, below));
    return q->by_side || scale >= 1e-30f ? scale : 1e-30f;
}

float ref_input_raw(const struct ref_input *q, const float *v, int64_t n, float first)
{
    float largest =
        ref_absmax(v, n); /* RN is monotone: the largest product is that of the largest */

    if (q->by_side || q->reciprocal_limit)
        return raw_by_rule(q, v, n, first);
    return ref_input_raw_scale(q->t, fabsf(largest * first));
}

static void quantize_token(const struct ref_input *q, int64_t row, uint32_t *codes,
                           uint32_t *token_scales)
{
    const float *v = q->values + row * q->width;
    float scale = ref_input_raw(q, v, q->width, 1.0f);

    token_scales[row] = bits_of(scale);
    if (q->given_token)
        memcpy(&scale, &q->given_token[row], sizeof scale);
    convert(q, v, q->width, 1.0f, 1.0f / scale, codes);
}

static int64_t group_length(const struct ref_input *q, int64_t g)
{
    int64_t rest = q->width - g * q->group;

    return rest < q->group ? rest : q->group;
}

/* fixed: the static scale, 1 without. */
static void quantize_groups(const struct ref_input *q, int64_t row, float fixed, uint32_t *codes,
                            uint32_t *scales)
{
    const float *v = q->values + row * q->width;
    const float first = q->static_on_scale ? 1.0f : 1.0f / fixed;
    const float rest = q->static_on_scale ? fixed : 1.0f; /* that is left to the scales */
    int64_t groups = ref_input_scale_groups(q);

    for (int64_t g = 0; g < groups; g++) {
        int64_t at = g * q->group, n = group_length(q, g);
        uint32_t code = encode_scale(q, ref_input_raw(q, v + at, n, first) / rest);
        float divisor;

        scales[row * groups + g] = code;
        if (q->given_group)
            code = q->given_group[row * groups + g];
        divisor = ref_group_scale_decode(q->group_scale, code) * rest;
        convert(q, v + at, n, first, inverse_of(divisor), codes + at);
    }
}

/* The scales hold m3's pattern until the row's largest is known. */
static void quantize_groups_token(const struct ref_input *q, int64_t row, uint32_t *codes,
                                  uint32_t *scales, uint32_t *token_scales)
{
    const float *v = q->values + row * q->width;
    int64_t groups = ref_input_scale_groups(q);
    float largest = 0.0f, token;

    scales += row * groups;
    for (int64_t g = 0; g < groups; g++) {
        int64_t at = g * q->group, n = group_length(q, g);
        float m3 = ref_input_m3(q, ref_input_raw(q, v + at, n, 1.0f));

        if (!(m3 <= largest) && !isnan(largest))
            largest = m3;
        scales[g] = bits_of(m3);
        convert(q, v + at, n, 1.0f, 1.0f / m3, codes + at);
    }
    token = isfinite(largest) ? ref_token_scale(largest) : 0.0f;
    token_scales[row] = isfinite(largest) ? bits_of(token) : REF_CODE_ANY;
    for (int64_t g = 0; g < groups; g++) {
        float m3;

        memcpy(&m3, &scales[g], sizeof m3);
        scales[g] = isfinite(largest) ? encode_scale(q, m3 / token) : REF_CODE_ANY;
    }
}

void ref_input_quantize(const struct ref_input *q, uint32_t *codes, uint32_t *group_scales,
                        uint32_t *token_scales)
{
    float first = 1.0f / q->static_scale;

    for (int64_t row = 0; row < q->rows; row++, codes += q->width) {
        switch (q->mode) {
        case REF_INPUT_DISABLED:
            convert(q, q->values + row * q->width, q->width, 1.0f, 1.0f, codes);
            break;
        case REF_INPUT_STATIC_TENSOR:
            convert(q, q->values + row * q->width, q->width, first, 1.0f, codes);
            break;
        case REF_INPUT_DYNAMIC_TOKEN:
            quantize_token(q, row, codes, token_scales);
            break;
        case REF_INPUT_DYNAMIC_GROUP:
            quantize_groups(q, row, 1.0f, codes, group_scales);
            break;
        case REF_INPUT_STATIC_TENSOR_DYNAMIC_GROUP:
            quantize_groups(q, row, q->static_scale, codes, group_scales);
            break;
        case REF_INPUT_DYNAMIC_GROUP_TOKEN:
            quantize_groups_token(q, row, codes, group_scales, token_scales);
            break;
        }
    }
}

/* ---- layouts --------------------------------------------------------------------------------- */

static void send(const struct ref_layout *l, int64_t *source, int64_t from, int64_t to)
{
    if (to < 0 || to >= l->out_rows)
        return;
    source[to] = source[to] == REF_ROW_KEPT ? from : REF_ROW_ANY;
}

static const char *send_in_order(const struct ref_layout *l, int64_t *source)
{
    int64_t end = l->in_rows;

    if (l->kind == REF_LAYOUT_GROUPED) {
        end = l->expert_layout[l->experts];
        for (int64_t e = 0; e < l->experts; e++)
            if (l->expert_layout[e] < 0 || l->expert_layout[e] > l->expert_layout[e + 1])
                return "expert_layout must ascend from 0";
    }
    if (end < 0 || end > l->in_rows || end > l->out_rows)
        return "there are fewer rows than the layout counts";
    for (int64_t i = 0; i < end; i++)
        source[i] = i;
    return NULL;
}

static const char *send_padded(const struct ref_layout *l, int64_t *source)
{
    int64_t next = 0;

    if (l->max_tokens < 0 || (l->max_tokens && l->experts > l->out_rows / l->max_tokens))
        return "there are fewer output rows than max_tokens for each expert";
    for (int64_t e = 0; e < l->experts; e++) {
        int64_t count = l->expert_layout[e];

        if (count < 0 || count > l->max_tokens || count > l->in_rows - next)
            return "a count is negative, above max_tokens, or beyond the input rows";
        for (int64_t j = 0; j < l->max_tokens; j++)
            if (j < count)
                source[e * l->max_tokens + j] = next + j;
            else if (l->zero_invalid)
                source[e * l->max_tokens + j] = REF_ROW_ZERO;
        next += count;
    }
    return NULL;
}

static const char *send_by_index(const struct ref_layout *l, int64_t *source)
{
    int64_t width = l->kind == REF_LAYOUT_SCATTER ? l->index_width : 1;

    for (int64_t i = 0; i < l->in_rows; i++)
        for (int64_t j = 0; j < width; j++)
            send(l, source, i, l->indices[i * width + j]);
    return NULL;
}

const char *ref_layout_sources(const struct ref_layout *l, int64_t *source)
{
    for (int64_t i = 0; i < l->out_rows; i++)
        source[i] = REF_ROW_KEPT;
    switch (l->kind) {
    case REF_LAYOUT_NORMAL:
    case REF_LAYOUT_GROUPED:
        return send_in_order(l, source);
    case REF_LAYOUT_PERMUTE:
    case REF_LAYOUT_SCATTER:
        return send_by_index(l, source);
    case REF_LAYOUT_GROUPED_PADDED:
        break;
    }
    return send_padded(l, source);
}

static uint32_t code_of(int64_t source, const uint32_t *in, int64_t width, int64_t col)
{
    if (source == REF_ROW_ZERO)
        return 0;
    return source == REF_ROW_ANY ? REF_CODE_ANY : in[source * width + col];
}

void ref_rows_place(const int64_t *source, int64_t out_rows, int64_t width, const uint32_t *in,
                    uint32_t *out)
{
    for (int64_t i = 0; i < out_rows; i++)
        for (int64_t j = 0; j < width && source[i] != REF_ROW_KEPT; j++)
            out[i * width + j] = code_of(source[i], in, width, j);
}

static int64_t round_up_4(int64_t n)
{
    return (n + 3) / 4 * 4;
}

/* Groups of a row with what pads them. */
static int64_t padded_groups(const struct ref_scale_places *p)
{
    return p->bits == 8 ? round_up_4(p->groups) : p->groups;
}

int64_t ref_scale_count(const struct ref_scale_places *p)
{
    switch (p->layout) {
    case REF_SCALES_ROW_MAJOR:
        return p->rows * padded_groups(p);
    case REF_SCALES_M_MAJOR:
        return p->groups * round_up_4(p->rows);
    case REF_SCALES_MX_PACKED:
        break;
    }
    return round_up_4(p->groups) * round_up_4(p->rows);
}

int64_t ref_scale_index(const struct ref_scale_places *p, int64_t row, int64_t group)
{
    switch (p->layout) {
    case REF_SCALES_ROW_MAJOR:
        return row * padded_groups(p) + group;
    case REF_SCALES_M_MAJOR:
        return group * round_up_4(p->rows) + row;
    case REF_SCALES_MX_PACKED:
        break;
    }
    return (group / 4 * round_up_4(p->rows) + row) * 4 + group % 4;
}

/* The scale of a written row; behind the last group the zero that pads it. */
static uint32_t scale_of(const struct ref_scale_places *p, int64_t source, const uint32_t *scales,
                         int64_t group)
{
    if (group >= p->groups)
        return 0;
    return source == REF_ROW_ANY ? REF_CODE_ANY : scales[source * p->groups + group];
}

void ref_scales_place(const struct ref_scale_places *p, const int64_t *source,
                      const uint32_t *scales, uint32_t *out)
{
    int64_t written = p->layout == REF_SCALES_ROW_MAJOR ? padded_groups(p) : p->groups;

    for (int64_t i = 0; i < p->rows; i++)
        for (int64_t g = 0; g < written; g++)
            if (source[i] != REF_ROW_KEPT && source[i] != REF_ROW_ZERO)
                out[ref_scale_index(p, i, g)] = scale_of(p, source[i], scales, g);
}
