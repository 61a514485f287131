#include "harness/kernel/experts.h"

#include "harness/kernel/layer.h"
#include "harness/kernel/words.h"
#include "reference/rng.h"
#include "reference/routing.h"

#include <math.h>
#include <string.h>

static const char memory_out[] = "the pipeline needs more memory than the limit of a worker";

enum { LIVE_INPUTS = 8 }; /* numbers a row of inputs has, about; the others are zero */

/* ---- axes ------------------------------------------------------------------------------------ */

static int64_t inter_of(const int64_t v[AX_COUNT])
{
    return v[AX_FORM] ? v[AX_N] / 2 : v[AX_N];
}

static int64_t up_to(int64_t size, int64_t multiple)
{
    return (multiple - size % multiple) % multiple;
}

void experts_layer_axes(const int64_t v[AX_COUNT], int layer, int64_t out[AX_COUNT])
{
    bool indexed = v[AX_GEMM_TYPE] == GEMM_INDEXED;
    bool spreads = indexed && layer == LAYER_GATE_UP; /* a row of A has top_k rows of the output */

    memcpy(out, v, AX_COUNT * sizeof *v);
    out[AX_FAMILY] = FAMILY_GEMM;
    out[AX_CHECK] = CHECK_EXACT;
    out[AX_FILL] = FILL_E1;
    out[AX_GROUP_N] = v[AX_SCALE] == SCALE_BLOCK ? 128 : 0;
    out[AX_MMA] = out[AX_BLOCK] = out[AX_WARP] = out[AX_STAGES] = AXIS_AUTO; /* the provider's */
    out[AX_ROUTING] = v[AX_ROUTING] == ROUTING_SPARE ? ROUTING_SPARE : ROUTING_UNIFORM;
    out[AX_TOP_K] = spreads ? v[AX_TOP_K] : 1;
    out[AX_M] = spreads ? v[AX_M] : v[AX_M] * v[AX_TOP_K];
    if (layer == LAYER_GATE_UP)
        return;
    out[AX_N] = v[AX_K];
    out[AX_K] = inter_of(v);
    out[AX_PAD_N] = up_to(out[AX_N], 64);
    out[AX_PAD_K] = up_to(out[AX_K], 512 / layer_format(v[AX_A])->bits);
}

static void activation_of(const int64_t v[AX_COUNT], struct ref_activation *out)
{
    static const enum ref_activation_kind kinds[] = {REF_ACTIVATION_NONE,  REF_ACTIVATION_SILU,
                                                     REF_ACTIVATION_GELU,  REF_ACTIVATION_GELU_TANH,
                                                     REF_ACTIVATION_RELU2, REF_ACTIVATION_SWIGLU};
    static const enum ref_activation_form forms[] = {REF_ACTIVATION_UNARY, REF_ACTIVATION_SPLIT,
                                                     REF_ACTIVATION_INTERLEAVED};
    bool gpt_oss = v[AX_SWIGLU] != 0;

    *out = (struct ref_activation){.kind = kinds[v[AX_ACTIVATION]],
                                   .form = forms[v[AX_FORM]],
                                   .alpha = gpt_oss ? 1.702f : 1.0f,
                                   .beta = gpt_oss ? 1.0f : 0.0f,
                                   .limit = gpt_oss ? 7.0f : 0.0f};
}

void experts_config(const struct experts *x, int64_t m, struct hum_experts_config *config)
{
    static const enum hum_activation functions[] = {
        HUM_ACT_NONE, HUM_ACT_SILU, HUM_ACT_GELU, HUM_ACT_GELU_TANH, HUM_ACT_RELU2, HUM_ACT_SWIGLU};
    static const enum hum_activation_form forms[] = {HUM_ACT_UNARY, HUM_ACT_BINARY_SPLIT,
                                                     HUM_ACT_BINARY_INTERLEAVED};

    *config = (struct hum_experts_config){.gate_up = &x->layer[LAYER_GATE_UP].config,
                                          .down = &x->layer[LAYER_DOWN].config,
                                          .gemm_type = x->type,
                                          .activation = functions[x->activation.kind],
                                          .form = forms[x->activation.form],
                                          .m = m,
                                          .top_k = x->top_k,
                                          .max_tokens = x->max_tokens,
                                          .dispatchers = 1};
}

void experts_reference(const struct experts *x, int64_t m, struct ref_experts *out)
{
    static const enum ref_experts_form forms[] = {[HUM_GEMM_INDEXED] = REF_EXPERTS_INDEXED,
                                                  [HUM_GEMM_GROUPED_CONTIGUOUS] =
                                                      REF_EXPERTS_GROUPED,
                                                  [HUM_GEMM_GROUPED_MASKED] = REF_EXPERTS_BATCHED};

    *out = (struct ref_experts){.form = forms[x->type],
                                .gated = x->activation.form != REF_ACTIVATION_UNARY,
                                .m = m,
                                .top_k = x->top_k,
                                .experts = x->experts,
                                .max_tokens = x->max_tokens,
                                .dispatchers = 1,
                                .gate_up = {x->a, x->c, x->width, x->hidden},
                                .down = {x->a, x->c, x->hidden, x->inter}};
}

/* ---- weights --------------------------------------------------------------------------------- */

/* One word an element of a layer's tensor. */
static uint64_t word(const struct experts *x, int layer, uint32_t tensor, size_t i)
{
    return rng_word((uint64_t)x->v[AX_SEED], tensor, i * LAYER_COUNT + (uint64_t)layer);
}

/* 1/4, 1/2 or 1. */
static double power(const struct experts *x, int layer, uint32_t tensor, size_t i)
{
    return ldexp(1.0, -(int)rng_below(word(x, layer, tensor, i), 3));
}

/* Near the middle of the codes. */
static double zero_point(const struct experts *x, int layer, size_t i, int bits)
{
    double middle = ldexp(1.0, bits - 1), spread = bits > 2 ? 5.0 : 2.0;
    uint32_t step = rng_below(word(x, layer, RNG_EXPERTS_ZERO, i), (uint32_t)spread);

    return middle - floor(spread / 2.0) + step;
}

static bool alloc_weights(struct ref_gemm *p, struct ref_input_sizes z, struct ref_inputs *in,
                          struct arena *arena)
{
    in->a = arena_zalloc(arena, z.a, sizeof *in->a);
    in->b = arena_alloc(arena, z.b, sizeof *in->b);
    in->bs = arena_alloc(arena, z.bs, sizeof *in->bs);
    in->input_scale = arena_zalloc(arena, z.input_scale, sizeof *in->input_scale);
    in->zero = arena_alloc(arena, z.zero, sizeof *in->zero);
    in->scale_2 = arena_alloc(arena, z.scale_2, sizeof *in->scale_2);
    in->bias = arena_alloc(arena, z.bias, sizeof *in->bias);
    p->a_codes = in->a;
    p->b_codes = in->b;
    p->bs_codes = in->bs;
    p->input_scale = z.input_scale ? in->input_scale : NULL;
    p->zero_codes = z.zero ? in->zero : NULL;
    p->scale_2_codes = z.scale_2 ? in->scale_2 : NULL;
    p->bias_codes = z.bias ? in->bias : NULL;
    return in->a && in->b && in->bs && in->input_scale && in->zero && in->scale_2 && in->bias;
}

static void fill_weights(const struct experts *x, int layer, struct ref_input_sizes z,
                         const struct ref_gemm *p, const struct ref_inputs *in)
{
    const struct dtype *f32 = dtype_find("f32");
    const struct dtype *of_2 = p->scale_2 == REF_SCALE_2_TENSOR ? f32 : p->c;

    for (size_t i = 0; i < z.b; i++)
        in->b[i] = (uint8_t)(word(x, layer, RNG_EXPERTS_WEIGHT, i) >> (64 - p->b->bits));
    for (size_t i = 0; i < z.bs; i++)
        in->bs[i] = dtype_encode(p->bs, power(x, layer, RNG_EXPERTS_SCALE, i), DTYPE_SATURATE);
    for (size_t i = 0; i < z.zero; i++) {
        double zero = zero_point(x, layer, i, p->b->bits);

        in->zero[i] =
            (uint16_t)(p->zero == REF_ZERO_INT ? (uint32_t)zero
                                               : dtype_encode(p->a, zero, DTYPE_SATURATE));
    }
    for (size_t i = 0; i < z.scale_2; i++)
        in->scale_2[i] =
            dtype_encode(of_2, power(x, layer, RNG_EXPERTS_SCALE_2, i), DTYPE_SATURATE);
    for (size_t i = 0; i < z.bias; i++)
        in->bias[i] = (uint16_t)dtype_encode(
            p->c, (double)rng_below(word(x, layer, RNG_EXPERTS_BIAS, i), 9) / 4.0 - 1.0,
            DTYPE_SATURATE);
}

static const char *make_layer(struct experts *x, int layer, struct arena *arena)
{
    struct experts_layer *l = &x->layer[layer];
    struct problem_tensors tensors;
    struct problem q = {.v = l->v};
    struct ref_input_sizes z;
    const char *why;

    experts_layer_axes(x->v, layer, l->v);
    layer_reference(l->v, 1, &l->ref);
    layer_config(l->v, &l->config);
    z = ref_input_sizes(&l->ref);
    if (!alloc_weights(&l->ref, z, &l->in, arena))
        return memory_out;
    fill_weights(x, layer, z, &l->ref, &l->in);
    q.ref = l->ref;
    q.in = l->in;
    q.routing = (struct routing){.type = x->type, .experts = x->experts};
    why = problem_tensors_make(&q, arena, &tensors);
    l->standard = tensors.standard;
    return why;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static bool route(struct experts *x, struct arena *arena)
{
    struct ref_routing spec = {.kind = routing_kind(x->v[AX_ROUTING]),
                               .seed = (uint64_t)x->v[AX_SEED],
                               .m = x->capacity,
                               .experts = x->experts,
                               .top_k = x->top_k,
                               .max_tokens = x->max_tokens};
    int32_t *ids = arena_alloc(arena, (size_t)(x->capacity * x->top_k), sizeof *ids);
    int64_t *counts = arena_alloc(arena, (size_t)x->experts, sizeof *counts);

    x->ids = ids;
    x->tokens = experts_batched(x) ? 0 : x->capacity;
    if (!ids || !counts)
        return false;
    if (!experts_batched(x)) {
        ref_route_tokens(&spec, ids);
        return true;
    }
    ref_route_counts(&spec, counts);
    for (int64_t e = 0; e < x->experts; e++)
        for (int64_t i = 0; i < counts[e]; i++)
            ids[x->tokens++] = (int32_t)e;
    return true;
}

/* How many binades a sum of LIVE_INPUTS terms lies above 1, about: inputs are made smaller by it,
 * so that activations get arguments at which they bend. */
static int binades(const struct dtype *b)
{
    double middle = b->is_float || b->is_signed ? 0.0 : ldexp(1.0, b->bits - 1), sum = 0.0;
    uint32_t codes = 1u << b->bits;

    for (uint32_t code = 0; code < codes; code++) {
        double w = dtype_decode(b, code) - middle;

        sum += w * w;
    }
    return (int)lrint(log2(sqrt(sum / codes * LIVE_INPUTS)));
}

/* Whole numbers of -4 to 4, most of them 0, times a power of two that belongs to the row. */
static double input_value(const struct experts *x, int64_t token, int64_t col, int down)
{
    uint64_t r =
        rng_word((uint64_t)x->v[AX_SEED], RNG_EXPERTS_INPUT, (uint64_t)(token * x->hidden + col));
    double value = (double)(1 + (r & 3));

    if (rng_below(r, (uint32_t)x->hidden) >= LIVE_INPUTS)
        return 0.0;
    return ldexp(r & 4 ? -value : value, -down - (int)(token % 3));
}

static bool make_tokens(struct experts *x, struct arena *arena)
{
    uint16_t *inputs = arena_alloc(arena, (size_t)(x->tokens * x->hidden), sizeof *inputs);
    float *weights = arena_alloc(arena, (size_t)(x->tokens * x->top_k), sizeof *weights);
    int down = binades(x->layer[LAYER_GATE_UP].ref.b);

    x->inputs = inputs;
    x->weights = weights;
    if (!inputs || !weights)
        return false;
    for (int64_t i = 0; i < x->tokens * x->hidden; i++)
        inputs[i] = (uint16_t)dtype_encode(x->c, input_value(x, i / x->hidden, i % x->hidden, down),
                                           DTYPE_SATURATE);
    for (int64_t i = 0; i < x->tokens * x->top_k; i++) {
        uint64_t r = rng_word((uint64_t)x->v[AX_SEED], RNG_EXPERTS_TOPK_WEIGHT, (uint64_t)i);

        weights[i] = ldexpf((float)((r >> 41) | 1u << 23), -24); /* 24 bits: products round */
    }
    return true;
}

const char *experts_make(const int64_t v[AX_COUNT], int64_t m, struct arena *arena,
                         struct experts *out)
{
    static const enum hum_gemm_type types[] = {
        HUM_GEMM_DENSE, HUM_GEMM_INDEXED, HUM_GEMM_GROUPED_CONTIGUOUS, HUM_GEMM_GROUPED_MASKED};
    const char *why = NULL;

    *out = (struct experts){.v = v,
                            .type = types[v[AX_GEMM_TYPE]],
                            .capacity = m,
                            .top_k = v[AX_TOP_K],
                            .experts = v[AX_EXPERTS],
                            .max_tokens = v[AX_MAX_TOKENS],
                            .hidden = v[AX_K],
                            .width = v[AX_N],
                            .inter = inter_of(v),
                            .a = layer_format(v[AX_A]),
                            .c = layer_format(v[AX_C])};
    activation_of(v, &out->activation);
    for (int i = 0; i < LAYER_COUNT && !why; i++)
        why = make_layer(out, i, arena);
    if (why)
        return why;
    return route(out, arena) && make_tokens(out, arena) ? NULL : memory_out;
}
