/* moe_sum: the weighted sum of a token's expert rows (docs/semantics-ops.md section 9).
 *
 * topk_ids are there unless routing is none, expert_map if num_experts is not 0. Every second token
 * has weights of 1; its columns 0, 4, ... end in the middle of two codes of a 16-bit output, its
 * columns 1, 5, ... lose a small number between two large ones, so that the order shows. Entries
 * that are left out hold NaN, in inputs and weights; in inputs alone by the rule fused-sum, which
 * reads these weights. The last expert of a map always has an id, so that a map that is one shorter
 * is against the contract.
 */
#include "harness/kernel/family_inputs.h"
#include "harness/kernel/layer.h"
#include "harness/kernel/op_family.h"
#include "harness/kernel/routing.h"
#include "harness/kernel/semantics.h"
#include "harness/kernel/words.h"
#include "reference/rng.h"
#include "reference/routing.h"
#include "reference/weighted_sum.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char no_memory[] = "the case needs more memory than the limit of a worker";

struct sum_own {
    struct ref_weighted_sum sum;
    float *inputs, *weights;
    int32_t *ids, *map; /* NULL: none */
    uint32_t *want;
    uint64_t seed;
    bool special;
    uint64_t order_shows; /* outputs that another order would change */
};

/* ---- ids ------------------------------------------------------------------------------------- */

/* Ids of another rank are known to a map, which sends them to a negative index. */
static void use_map(struct sum_own *own)
{
    const int64_t slots = own->sum.tokens * own->sum.top_k;
    int32_t local = 0;

    for (int64_t e = 0; e < own->sum.experts; e++)
        own->map[e] = 0;
    for (int64_t i = 0; i < slots; i++)
        if (own->ids[i] < REF_NOWHERE) {
            own->ids[i] = REF_ELSEWHERE(own->ids[i]);
            own->map[own->ids[i]] = -1 - own->ids[i];
        }
    for (int64_t e = own->sum.experts - 1; e >= 0; e--)
        if (own->map[e] >= 0)
            own->map[e] = local++;
    if (slots)
        own->ids[0] = (int32_t)(own->sum.experts - 1);
}

/* Tokens 3, 11, ... have no expert at all, tokens 5, 13, ... what was drawn, the others one at
 * least: experts e with e mod 3 = 2 are another rank's. */
static void lose_token(int64_t token, int64_t top_k, int64_t experts, int32_t *ids)
{
    const int32_t e = (int32_t)(token % experts);

    for (int64_t j = 0; token % 8 == 3 && j < top_k; j++)
        ids[j] = REF_NOWHERE;
    if (token % 8 != 3 && token % 8 != 5)
        ids[token % top_k] = e % 3 == 2 ? e - 1 : e;
}

static bool make_ids(const int64_t v[AX_COUNT], struct arena *arena, struct sum_own *own)
{
    const struct ref_routing route = {.kind = routing_kind(v[AX_ROUTING]),
                                      .seed = own->seed,
                                      .m = v[AX_M],
                                      .experts = v[AX_EXPERTS] ? v[AX_EXPERTS] : 2 * v[AX_TOP_K],
                                      .top_k = v[AX_TOP_K]};
    const int64_t slots = v[AX_M] * v[AX_TOP_K];

    if (v[AX_ROUTING] == ROUTING_NONE)
        return true;
    own->ids = arena_alloc(arena, (size_t)slots, sizeof *own->ids);
    if (v[AX_EXPERTS])
        own->map = arena_alloc(arena, (size_t)v[AX_EXPERTS], sizeof *own->map);
    if (!own->ids || (v[AX_EXPERTS] && !own->map))
        return false;
    ref_route_tokens(&route, own->ids);
    for (int64_t t = 0; v[AX_ROUTING] == ROUTING_MISSING && t < v[AX_M]; t++)
        lose_token(t, v[AX_TOP_K], route.experts, own->ids + t * v[AX_TOP_K]);
    own->sum.experts = v[AX_EXPERTS];
    if (own->map)
        use_map(own);
    own->sum.topk_ids = own->ids;
    own->sum.expert_map = own->map;
    return true;
}

/* ---- contents -------------------------------------------------------------------------------- */

/* The sum of four uniform numbers of [-1, 1). */
static double random_value(uint64_t word)
{
    double sum = 0.0;

    for (int i = 0; i < 4; i++)
        sum += (double)(word >> 16 * i & 0xffff) * 0x1p-15 - 1.0;
    return sum;
}

static bool has_plain_weights(int64_t token)
{
    return token % 2 == 0;
}

/* Which slots of a token take part. */
struct slots {
    int64_t first, second, last, count;
};

static struct slots slots_of(const struct ref_weighted_sum *s, int64_t token)
{
    struct slots out = {.first = -1, .second = -1, .last = -1};

    for (int64_t j = 0; j < s->top_k; j++) {
        if (ref_weighted_sum_skips(s, token, j))
            continue;
        if (out.count == 0)
            out.first = j;
        if (out.count == 1)
            out.second = j;
        out.last = j;
        out.count++;
    }
    return out;
}

/* 1 and a code, then half a step. */
static double tie_value(const struct dtype *t, const struct slots *at, int64_t slot, uint64_t word)
{
    const uint32_t steps = 1u << t->man_bits;

    if (slot == at->first)
        return 1.0 + (double)rng_below(word, steps) / steps;
    return slot == at->second ? 0.5 / steps : 0.0;
}

/* 2^12, numbers below its last place in f32, -2^12. */
static double order_value(const struct slots *at, int64_t slot, uint64_t word)
{
    if (slot == at->first)
        return 0x1p12;
    return slot == at->last ? -0x1p12 : ldexp(random_value(word), -10);
}

static double special_value(const struct dtype *t, uint64_t word, double plain)
{
    const double sign = word >> 63 ? -1.0 : 1.0;

    switch (word % 24) {
    case 0:
        return (double)NAN;
    case 1:
        return sign * HUGE_VAL;
    case 2:
    case 3:
        return -0.0;
    case 4:
    case 5:
        return sign * dtype_max(t);
    case 6:
    case 7:
        return sign * ldexp((double)(word >> 8 & 31), dtype_min_exponent(t) - t->man_bits);
    default:
        return plain;
    }
}

static double input_at(const struct sum_own *own, const struct slots *at, int64_t token,
                       int64_t slot, int64_t h)
{
    const struct ref_weighted_sum *s = &own->sum;
    const uint64_t index = (uint64_t)((token * s->top_k + slot) * s->width + h);
    const uint64_t word = rng_word(own->seed, RNG_SUM_INPUT, index);
    double value = ldexp(random_value(word), (int)(h % 8) - 4);

    if (has_plain_weights(token) && at->count >= 2 && s->t->bits == 16 && h % 4 == 0)
        value = tie_value(s->t, at, slot, word);
    if (has_plain_weights(token) && at->count >= 3 && h % 4 == 1)
        value = order_value(at, slot, word);
    if (ref_weighted_sum_skips(s, token, slot))
        value = (double)NAN;
    return own->special ? special_value(s->t, word, value) : value;
}

static float weight_at(const struct sum_own *own, int64_t token, int64_t slot)
{
    const uint64_t word =
        rng_word(own->seed, RNG_SUM_WEIGHT, (uint64_t)(token * own->sum.top_k + slot));
    double value = has_plain_weights(token) ? 1.0 : (double)(word >> 40) * 0x1p-24;

    if (!has_plain_weights(token) && word % 8 == 0)
        value = -value;
    if (ref_weighted_sum_skips(&own->sum, token, slot) && !own->sum.fused)
        value = (double)NAN;
    return (float)(own->special ? special_value(dtype_find("f32"), word >> 3, value) : value);
}

static void fill(struct sum_own *own, uint8_t *bytes)
{
    const struct ref_weighted_sum *s = &own->sum;
    const size_t size = s->t->bits / 8;

    for (int64_t slot = 0; slot < s->tokens * s->top_k; slot++) {
        const int64_t token = slot / s->top_k, j = slot % s->top_k;
        const struct slots places = slots_of(s, token);

        own->weights[slot] = weight_at(own, token, j);
        for (int64_t h = 0; h < s->width; h++) {
            const size_t at = (size_t)(slot * s->width + h);
            const uint32_t code =
                dtype_encode(s->t, input_at(own, &places, token, j, h), DTYPE_TO_TOP);

            memcpy(bytes + at * size, &code, size); /* little end first */
            own->inputs[at] = (float)dtype_decode(s->t, code);
        }
    }
}

/* ---- what is right --------------------------------------------------------------------------- */

/* How many outputs differ when the slots are added from the last to the first. NULL, or why not. */
static const char *look_at_order(struct sum_own *own, struct arena *arena)
{
    struct ref_weighted_sum s = own->sum;
    const int64_t slots = s.tokens * s.top_k, k = s.top_k, width = s.width;
    float *inputs = arena_alloc(arena, (size_t)(slots * width), sizeof *inputs);
    float *weights = arena_alloc(arena, (size_t)slots, sizeof *weights);
    int32_t *ids = arena_alloc(arena, (size_t)slots, sizeof *ids);
    uint32_t *codes = arena_alloc(arena, (size_t)(s.tokens * width), sizeof *codes);
    const char *why;

    if (!inputs || !weights || !ids || !codes)
        return no_memory;
    for (int64_t i = 0; i < slots; i++) {
        const int64_t from = i / k * k + k - 1 - i % k;

        memcpy(inputs + i * width, own->inputs + from * width, (size_t)width * sizeof *inputs);
        weights[i] = own->weights[from];
        ids[i] = own->ids ? own->ids[from] : 0;
    }
    s.inputs = inputs;
    s.weights = weights;
    s.topk_ids = own->ids ? ids : NULL;
    why = ref_weighted_sum(&s, codes);
    for (int64_t i = 0; !why && i < s.tokens * width; i++)
        own->order_shows += !ref_code_holds(s.t, codes[i], own->want[i]);
    return why;
}

/* ---- the call -------------------------------------------------------------------------------- */

#define PART(name) offsetof(struct hum_moe_fused_mul_sum_args, name)

static enum hum_code run(const struct hum_ops *ops, void *handle, const void *args,
                         char reason[HUM_REASON_BYTES])
{
    return ops->moe_fused_mul_sum(handle, args, reason);
}

static bool is_there(const struct hum_ops *ops)
{
    return ops->moe_fused_mul_sum != NULL;
}

static void describe(const struct sum_own *own, void *bytes, struct op_call *call)
{
    const struct hum_moe_fused_mul_sum_args args = {.inputs = {0}};
    const struct ref_weighted_sum *s = &own->sum;
    const int32_t t = dtype_id(s->t);
    struct hum_tensor ids = op_absent(), map = op_absent();
    struct op_part *part;

    if (own->ids)
        ids = op_tensor_2(HUM_INT32, s->tokens, s->top_k, own->ids);
    if (own->map)
        map = op_tensor_1(HUM_INT32, s->experts, own->map);
    op_call_init(call, "moe_fused_mul_sum", &args, sizeof args);
    call->run = run;
    call->is_there = is_there;
    (void)op_call_add(call, "inputs", PART(inputs), OP_IN,
                      op_tensor_3(t, s->tokens, s->top_k, s->width, bytes), s->t->bits);
    (void)op_call_add(call, "weights", PART(weights), OP_IN,
                      op_tensor_2(HUM_F32, s->tokens, s->top_k, own->weights), 32);
    part = op_call_add(call, "topk_ids", PART(topk_ids), OP_IN, ids, 32);
    part->optional = !own->map;
    part = op_call_add(call, "expert_map", PART(expert_map), OP_IN, map, 32);
    part->optional = own->ids != NULL;
    part = op_call_add(call, "outputs", PART(outputs), OP_OUT,
                       op_tensor_2(t, s->tokens, s->width, NULL), s->t->bits);
    part->type = s->t;
    part->want = own->want;
    part->width = s->width;
}

static const char *make(const int64_t v[AX_COUNT], uint32_t rules, struct arena *arena,
                        struct op_problem *out)
{
    struct sum_own *own = ARENA_NEW(arena, 1, struct sum_own);
    struct op_call *call = ARENA_NEW(arena, 1, struct op_call);
    const int64_t slots = v[AX_M] * v[AX_TOP_K], count = slots * v[AX_K];
    const struct dtype *t = layer_format(v[AX_INPUT]);
    uint8_t *bytes = arena_alloc(arena, (size_t)count, t->bits / 8);
    const char *why;

    if (!own || !call || !bytes)
        return no_memory;
    own->sum = (struct ref_weighted_sum){.t = t,
                                         .tokens = v[AX_M],
                                         .top_k = v[AX_TOP_K],
                                         .width = v[AX_K],
                                         .fused = semantics_has(rules, SEMANTICS_FUSED_SUM)};
    own->seed = (uint64_t)v[AX_SEED];
    own->special = v[AX_CHECK] == CHECK_SPECIAL;
    own->inputs = arena_alloc(arena, (size_t)count, sizeof *own->inputs);
    own->weights = arena_alloc(arena, (size_t)slots, sizeof *own->weights);
    own->want = arena_alloc(arena, (size_t)(v[AX_M] * v[AX_K]), sizeof *own->want);
    if (!own->inputs || !own->weights || !own->want || !make_ids(v, arena, own))
        return no_memory;
    fill(own, bytes);
    own->sum.inputs = own->inputs;
    own->sum.weights = own->weights;
    why = ref_weighted_sum(&own->sum, own->want);
    if (!why)
        why = look_at_order(own, arena);
    describe(own, bytes, call);
    *out = (struct op_problem){.v = v, .calls = call, .count = 1, .own = own};
    return why;
}

static const char *trust(const struct op_problem *p, char *buf, size_t size)
{
    const struct sum_own *own = p->own;

    if (p->v[AX_CHECK] != CHECK_EXACT || own->sum.top_k < 3 || own->order_shows)
        return NULL;
    (void)snprintf(
        buf, size,
        "no sum depends on the order of the slots, so that a wrong order would not show");
    return buf;
}

void family_moe_sum(struct runner *r, const struct plan *plan, size_t problem, size_t begin,
                    size_t end, const struct runner_hooks *hooks)
{
    static const struct op_family family = {"moe_sum", make, NULL, trust, true};

    (void)problem;
    op_family_run(&family, r, plan, begin, end, hooks);
}
