#include "harness/kernel/input_case.h"

#include "harness/kernel/input_values.h"
#include "harness/kernel/layer.h"
#include "harness/kernel/routing.h"
#include "harness/kernel/words.h"
#include "reference/hadamard.h"
#include "reference/rng.h"
#include "reference/routing.h"

#include <math.h>
#include <string.h>

enum { SCATTER_WIDTH = 3 };

static const char no_memory[] = "the case needs more memory than the limit of a worker";

/* ---- what is asked --------------------------------------------------------------------------- */

/* gpt-oss: numerics of its published model configuration; plain is silu(a) b. */
static const struct {
    float alpha, beta, limit;
} swiglus[] = {{1.0f, 0.0f, 0.0f}, {1.702f, 1.0f, 7.0f}};

static enum input_data data_of(const int64_t v[AX_COUNT])
{
    return v[AX_CHECK] == CHECK_SPECIAL      ? INPUT_DATA_SPECIAL
           : v[AX_CHECK] == CHECK_EXHAUSTIVE ? INPUT_DATA_ALL
                                             : INPUT_DATA_PLAIN;
}

/* A power of two from 1/4 to 4; for f32 inputs any number beside it. */
static float static_scale(const struct input_case *c)
{
    uint64_t word = rng_word(c->seed, RNG_INPUT_STATIC, 0);
    double power = ldexp(1.0, (int)rng_below(word, 5) - 2);

    if (c->data == INPUT_DATA_ALL)
        return 1.0f;
    return (float)(c->in->bits == 16 ? power : power * (1.0 + (double)(word & 0xfffff) * 0x1p-20));
}

static void choose(const int64_t v[AX_COUNT], struct input_case *c)
{
    enum ref_input_mode mode = (enum ref_input_mode)v[AX_QUANT_MODE];
    bool groups = ref_input_has_groups(mode);

    *c = (struct input_case){.in = layer_format(v[AX_INPUT]),
                             .data = data_of(v),
                             .seed = (uint64_t)v[AX_SEED],
                             .hadamard = v[AX_HADAMARD]};
    c->activation = (struct ref_activation){.kind = (enum ref_activation_kind)v[AX_ACTIVATION],
                                            .form = (enum ref_activation_form)v[AX_FORM],
                                            .alpha = swiglus[v[AX_SWIGLU]].alpha,
                                            .beta = swiglus[v[AX_SWIGLU]].beta,
                                            .limit = swiglus[v[AX_SWIGLU]].limit};
    c->width_in = c->activation.form == REF_ACTIVATION_UNARY ? v[AX_K] : 2 * v[AX_K];
    c->quant =
        (struct ref_input){.mode = mode,
                           .t = mode == REF_INPUT_DISABLED ? c->in : layer_format(v[AX_QUANT]),
                           .group_scale = groups ? layer_format(v[AX_GROUP_SCALE]) : NULL,
                           .rows = v[AX_M],
                           .width = v[AX_K],
                           .group = groups ? v[AX_QUANT_GROUP] : 0,
                           .static_scale = static_scale(c)};
}

/* ---- rows ------------------------------------------------------------------------------------ */

static struct ref_routing route_of(const int64_t v[AX_COUNT])
{
    return (struct ref_routing){.kind = routing_kind(v[AX_ROUTING]),
                                .seed = (uint64_t)v[AX_SEED],
                                .m = v[AX_M],
                                .experts = v[AX_EXPERTS],
                                .top_k = 1};
}

/* Counts in layout[0..experts); with `grouped` offsets, one more. */
static void fill_experts(const int64_t v[AX_COUNT], const struct ref_layout *l, int64_t *layout)
{
    struct ref_routing route = route_of(v);
    int64_t end = 0;

    ref_route_counts(&route, layout);
    for (int64_t e = 0; e < l->experts; e++) {
        int64_t count = layout[e];

        if (l->kind == REF_LAYOUT_GROUPED_PADDED)
            layout[e] = count < l->max_tokens ? count : l->max_tokens;
        else
            layout[e] = end;
        end += count;
    }
    if (l->kind == REF_LAYOUT_GROUPED)
        layout[l->experts] = end;
}

/* Distinct places in random order; those from out_rows on are too large, and every seventh from the
 * fourth on is negative. */
static void fill_indices(const struct input_case *c, int64_t count, int64_t *places)
{
    for (int64_t i = 0; i < count; i++)
        places[i] = i;
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t j = rng_below(rng_word(c->seed, RNG_INPUT_PLACE, (uint64_t)i), (uint32_t)i + 1);
        int64_t kept = places[i];

        places[i] = places[j];
        places[j] = kept;
    }
    for (int64_t i = 3; i < count; i += 7)
        places[i] = -1 - i;
}

static bool make_layout(const int64_t v[AX_COUNT], struct input_case *c, struct arena *arena)
{
    struct ref_layout *l = &c->layout;
    int64_t m = v[AX_M], count = m;
    int64_t *array;

    *l = (struct ref_layout){.kind = (enum ref_layout_kind)v[AX_LAYOUT],
                             .zero_invalid = v[AX_ZERO_INVALID] != 0,
                             .in_rows = m,
                             .out_rows = m,
                             .experts = v[AX_EXPERTS],
                             .max_tokens = v[AX_MAX_TOKENS],
                             .index_width = SCATTER_WIDTH};
    if (l->kind == REF_LAYOUT_GROUPED || l->kind == REF_LAYOUT_GROUPED_PADDED)
        count = l->experts + 1;
    if (l->kind == REF_LAYOUT_SCATTER)
        count = m * SCATTER_WIDTH;
    array = arena_zalloc(arena, (size_t)count, sizeof *array);
    if (!array)
        return false;
    switch (l->kind) {
    case REF_LAYOUT_NORMAL:
        return true;
    case REF_LAYOUT_GROUPED:
    case REF_LAYOUT_GROUPED_PADDED:
        fill_experts(v, l, array);
        l->expert_layout = array;
        l->out_rows = l->kind == REF_LAYOUT_GROUPED ? m : l->experts * l->max_tokens;
        return true;
    case REF_LAYOUT_PERMUTE: /* some rows have no place */
        l->out_rows = m - m / 8;
        break;
    case REF_LAYOUT_SCATTER:
        l->out_rows = 2 * m;
        break;
    }
    fill_indices(c, count, array);
    l->indices = array;
    return true;
}

static const char *place_rows(struct input_case *c, struct arena *arena)
{
    int64_t *source = arena_alloc(arena, (size_t)c->layout.out_rows, sizeof *source);
    const char *why = source ? ref_layout_sources(&c->layout, source) : no_memory;

    c->source = source;
    c->scales =
        (struct ref_scale_places){.rows = c->layout.out_rows,
                                  .groups = ref_input_scale_groups(&c->quant),
                                  .bits = c->quant.group_scale ? c->quant.group_scale->bits : 32};
    return why;
}

const char *input_case_make(const int64_t v[AX_COUNT], struct arena *arena, struct input_case *out)
{
    const char *why;
    size_t count;

    choose(v, out);
    count = (size_t)(v[AX_M] * out->width_in);
    out->inputs = arena_alloc(arena, count, out->in->bits / 8);
    out->x = arena_alloc(arena, count, sizeof *out->x);
    if (!out->inputs || !out->x || !make_layout(v, out, arena))
        return no_memory;
    why = place_rows(out, arena);
    out->scales.layout = (enum ref_scale_layout)v[AX_SCALE_LAYOUT];
    if (!why)
        why = ref_input_valid(&out->quant);
    if (!why)
        why = ref_activation_valid(&out->activation, out->width_in);
    if (!why)
        input_values_fill(out);
    return why;
}

/* ---- what is right --------------------------------------------------------------------------- */

bool input_case_is_exact(const struct input_case *c)
{
    return c->activation.kind == REF_ACTIVATION_NONE ||
           (c->activation.kind == REF_ACTIVATION_RELU2 && c->data == INPUT_DATA_PLAIN);
}

float *input_case_activate(const struct input_case *c, struct arena *arena)
{
    int64_t rows = c->quant.rows, width = c->quant.width;
    float *out = arena_alloc(arena, (size_t)(rows * width), sizeof *out);
    struct ref_near *near = arena_alloc(arena, (size_t)width, sizeof *near);

    if (!out || !near)
        return NULL;
    for (int64_t row = 0; row < rows; row++) {
        ref_activation_row(&c->activation, c->x + row * c->width_in, c->width_in, near);
        for (int64_t i = 0; i < width; i++)
            out[row * width + i] = (float)near[i].value;
    }
    return out;
}

static bool static_on_scale(const struct ref_input *q)
{
    return q->static_on_scale && q->mode == REF_INPUT_STATIC_TENSOR_DYNAMIC_GROUP;
}

/* The number that a row's group is multiplied by after `first`, from the scales expected. */
static float inverse_of(const struct ref_input *q, const float *v, int64_t n, uint32_t group_scale,
                        float token)
{
    float scale = 1.0f, rest = static_on_scale(q) ? q->static_scale : 1.0f;

    if (q->mode == REF_INPUT_DYNAMIC_TOKEN)
        scale = token;
    else if (q->mode == REF_INPUT_DYNAMIC_GROUP_TOKEN)
        scale = ref_input_m3(q, ref_input_raw(q, v, n, 1.0f));
    else if (ref_input_has_groups(q->mode))
        scale = ref_group_scale_decode(q->group_scale, group_scale) * rest;
    return scale > 0.0f ? 1.0f / scale : 0.0f;
}

/* Codes a hair to either side differ: y lies in the middle of two codes. */
static bool is_tie(const struct dtype *t, double y)
{
    return isfinite(y) && fabs(y) < dtype_max(t) &&
           dtype_encode(t, y * (1.0 - 0x1p-50), DTYPE_SATURATE) !=
               dtype_encode(t, y * (1.0 + 0x1p-50), DTYPE_SATURATE);
}

static uint64_t count_ties(const struct ref_input *q, const uint32_t *group_scales,
                           const uint32_t *token_scales)
{
    int64_t groups = ref_input_scale_groups(q), length = q->group ? q->group : q->width;
    bool times = ref_input_is_static(q->mode) && !static_on_scale(q);
    float first = times ? 1.0f / q->static_scale : 1.0f;
    uint64_t ties = 0;

    for (int64_t u = 0; u < q->rows * groups; u++) {
        int64_t row = u / groups, at = u % groups * length;
        int64_t n = q->width - at < length ? q->width - at : length;
        const float *v = q->values + row * q->width + at;
        float token = 1.0f, inverse;

        memcpy(&token, &token_scales[row], sizeof token);
        inverse = inverse_of(q, v, n, group_scales[u], token);
        for (int64_t i = 0; i < n; i++) {
            float x = v[i] * first;

            ties += is_tie(q->t, (double)(x * inverse));
        }
    }
    return ties;
}

/* The results of the input rows. */
struct row_codes {
    uint32_t *codes, *group_scales, *token_scales;
};

static bool row_codes_make(const struct input_case *c, struct arena *arena, struct row_codes *r)
{
    size_t rows = (size_t)c->quant.rows, groups = (size_t)ref_input_scale_groups(&c->quant);

    r->codes = arena_alloc(arena, rows * (size_t)c->quant.width, sizeof *r->codes);
    r->group_scales = arena_zalloc(arena, rows * groups, sizeof *r->group_scales);
    r->token_scales = arena_zalloc(arena, rows, sizeof *r->token_scales);
    return r->codes && r->group_scales && r->token_scales;
}

/* Into arrays of OP_KEPT. */
static void place(const struct input_case *c, const struct row_codes *r, struct input_want *out)
{
    const struct ref_scale_places tokens = {REF_SCALES_ROW_MAJOR, c->layout.out_rows, 1, 32};

    ref_rows_place(c->source, c->layout.out_rows, c->quant.width, r->codes, out->codes);
    if (out->group_scales)
        ref_scales_place(&c->scales, c->source, r->group_scales, out->group_scales);
    if (out->token_scales)
        ref_scales_place(&tokens, c->source, r->token_scales, out->token_scales);
}

static void fill(uint32_t *codes, int64_t count, uint32_t code)
{
    for (int64_t i = 0; i < count; i++)
        codes[i] = code;
}

static uint32_t *kept(int64_t count, struct arena *arena)
{
    uint32_t *codes = arena_alloc(arena, (size_t)count, sizeof *codes);

    if (codes)
        fill(codes, count, OP_KEPT);
    return codes;
}

bool input_want_make(const struct input_case *c, struct arena *arena, struct input_want *out)
{
    const int64_t rows = c->quant.rows, out_rows = c->layout.out_rows;
    const bool groups = ref_input_has_groups(c->quant.mode);
    const bool tokens = ref_input_has_tokens(c->quant.mode);
    struct row_codes r;

    *out = (struct input_want){.codes = kept(out_rows * c->quant.width, arena)};
    if (groups)
        out->group_scales = kept(ref_scale_count(&c->scales), arena);
    if (tokens)
        out->token_scales = kept(out_rows, arena);
    if (!out->codes || (groups && !out->group_scales) || (tokens && !out->token_scales) ||
        !row_codes_make(c, arena, &r))
        return false;
    fill(r.codes, rows * c->quant.width, REF_CODE_ANY);
    fill(r.group_scales, rows * ref_input_scale_groups(&c->quant), REF_CODE_ANY);
    fill(r.token_scales, rows, REF_CODE_ANY);
    place(c, &r, out);
    return true;
}

bool input_want_fill(const struct input_case *c, float *values, struct arena *arena,
                     struct input_want *out)
{
    struct ref_input q = c->quant;
    struct row_codes r;

    if (!row_codes_make(c, arena, &r))
        return false;
    if (c->hadamard)
        ref_hadamard(values, q.rows, q.width, c->hadamard);
    q.values = values;
    ref_input_quantize(&q, r.codes, r.group_scales, r.token_scales);
    out->ties = count_ties(&q, r.group_scales, r.token_scales);
    place(c, &r, out);
    return true;
}
