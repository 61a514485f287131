/* quant_weight: weights to codes, scales and zero points. */
#include "harness/kernel/op_family.h"

#include "harness/kernel/layer.h"
#include "harness/kernel/quant_data.h"
#include "harness/kernel/semantics.h"
#include "harness/kernel/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char no_memory[] = "the problem needs more memory than the limit of a worker";

/* Fewer ties than these could all be lucky. */
enum { LEAST_TIES = 4 };

static enum hum_code run(const struct hum_ops *ops, void *handle, const void *args,
                         char reason[HUM_REASON_BYTES])
{
    return ops->quant_weight(handle, args, reason);
}

static bool is_there(const struct hum_ops *ops)
{
    return ops->quant_weight != NULL;
}

#define AT(field) offsetof(struct hum_quant_weight_args, field)

/* clang-format off */
static const struct op_change changes[] = {
    {"target_dtype of 0",          AT(target_dtype),   OP_INT32, OP_SET, 0,        NULL},
    {"an unknown target_dtype",    AT(target_dtype),   OP_INT32, OP_SET, 99,       NULL},
    {"target_dtype float16",       AT(target_dtype),   OP_INT32, OP_SET, HUM_F16,  NULL},
    {"target_dtype float8e8m0",    AT(target_dtype),   OP_INT32, OP_SET, HUM_E8M0, NULL},
    {"target_dtype float4e0m3",    AT(target_dtype),   OP_INT32, OP_SET, HUM_E0M3, NULL},
    {"a negative group_size",      AT(group_size),     OP_INT64, OP_SET, -8,       NULL},
    {"group_size of 12",           AT(group_size),     OP_INT64, OP_SET, 12,       NULL},
    {"group_size above a row",     AT(group_size),     OP_INT64, OP_SET, 1 << 20,  NULL},
    {"the other has_scale",        AT(has_scale),      OP_BOOL,  OP_ADD, 0,        NULL},
    {"the other use_e8m0_scale",   AT(use_e8m0_scale), OP_BOOL,  OP_ADD, 0,        NULL},
    {"the other has_zero_point",   AT(has_zero_point), OP_BOOL,  OP_ADD, 0,        NULL},
    {"a rule of 2",                AT(rule),           OP_INT32, OP_SET, 2,        NULL},
    {"a rule of -1",               AT(rule),           OP_INT32, OP_SET, -1,       NULL},
};
/* clang-format on */

struct quant {
    struct ref_quant ref;
    const struct dtype *input;
    float *values;
    void *inputs; /* the same as codes */
    uint32_t *codes, *scale, *zero;
    float *zero_values;
};

static void describe(const int64_t *v, uint32_t rules, struct quant *q)
{
    q->input = layer_format(v[AX_INPUT]);
    q->ref = (struct ref_quant){
        .target = layer_format(v[AX_B]),
        .rows = v[AX_M],
        .cols = v[AX_K],
        .group = v[AX_GROUP],
        .has_scale = v[AX_HAS_SCALE] != 0,
        .use_e8m0_scale = v[AX_E8M0] != 0,
        .has_zero_point = v[AX_ZERO] != ZERO_NONE,
        .is_fp_zero_point = v[AX_ZERO] == ZERO_FLOAT,
        .allow_negative_scale = v[AX_NEGATIVE] != 0,
        .rule = v[AX_RULE] == RULE_2026_05 ? REF_QUANT_RULE_2026_05 : REF_QUANT_RULE_2026_08,
        .zero_on_minimum = semantics_has(rules, SEMANTICS_ZERO_ON_MINIMUM),
        .sides_by_size = semantics_has(rules, SEMANTICS_SIDES_BY_SIZE),
        .scaled_quotient = semantics_has(rules, SEMANTICS_SCALED_QUOTIENT),
        .twos_complement = semantics_has(rules, SEMANTICS_TWOS_COMPLEMENT),
    };
}

static bool get_arrays(struct quant *q, struct arena *arena)
{
    const size_t count = (size_t)(q->ref.rows * q->ref.cols) + 1;
    const size_t groups = (size_t)(q->ref.rows * ref_quant_groups(&q->ref)) + 1;

    q->values = arena_alloc(arena, count, sizeof *q->values);
    q->inputs = arena_alloc(arena, count, q->input->bits / 8);
    q->codes = arena_alloc(arena, count, sizeof *q->codes);
    q->scale = arena_alloc(arena, groups, sizeof *q->scale);
    q->zero = arena_alloc(arena, groups, sizeof *q->zero);
    q->zero_values = arena_alloc(arena, groups, sizeof *q->zero_values);
    q->ref.inputs = q->values;
    return q->values && q->inputs && q->codes && q->scale && q->zero && q->zero_values;
}

static void make_want(struct quant *q)
{
    const bool has_scale = q->ref.has_scale, has_zero = q->ref.has_zero_point;
    const int64_t groups = q->ref.rows * ref_quant_groups(&q->ref);

    ref_quant_weight(&q->ref, q->codes, has_scale ? q->scale : NULL,
                     has_zero ? q->zero_values : NULL);
    for (int64_t i = 0; has_zero && i < groups; i++) {
        memcpy(&q->zero[i], &q->zero_values[i], sizeof q->zero[i]);
        if (isnan(q->zero_values[i]) && !q->ref.is_fp_zero_point)
            q->zero[i] = REF_CODE_ANY;
    }
}

static void add_outputs(const struct quant *q, struct op_call *call)
{
    const struct ref_quant *r = &q->ref;
    const int64_t groups = ref_quant_groups(r);
    const int32_t scale = r->use_e8m0_scale ? HUM_E8M0 : HUM_F32;
    struct op_part *part;

    part = op_call_add(call, "codes", AT(codes), OP_OUT,
                       op_tensor_2(HUM_INT32, r->rows, r->cols, NULL), 32);
    part->type = r->target->is_float ? r->target : NULL;
    part->width = r->cols;
    part->want = q->codes;
    part = op_call_add(call, "scale", AT(scale), OP_OUT,
                       r->has_scale ? op_tensor_2(scale, r->rows, groups, NULL) : op_absent(),
                       r->use_e8m0_scale ? 8 : 32);
    part->type = dtype_find(r->use_e8m0_scale ? "e8m0" : "f32");
    part->width = groups;
    part->want = q->scale;
    part = op_call_add(
        call, "zero_point", AT(zero_point), OP_OUT,
        r->has_zero_point ? op_tensor_2(HUM_F32, r->rows, groups, NULL) : op_absent(), 32);
    part->type = dtype_find("f32");
    part->width = groups;
    part->want = q->zero;
}

static void make_call(const struct quant *q, struct op_call *call)
{
    const struct ref_quant *r = &q->ref;
    const struct hum_quant_weight_args args = {
        .target_dtype = dtype_id(r->target),
        .group_size = r->group,
        .has_scale = r->has_scale,
        .use_e8m0_scale = r->use_e8m0_scale,
        .has_zero_point = r->has_zero_point,
        .is_fp_zero_point = r->is_fp_zero_point,
        .allow_negative_scale = r->allow_negative_scale,
        .rule = r->rule == REF_QUANT_RULE_2026_05 ? HUM_QUANT_RULE_2026_05 : HUM_QUANT_RULE_2026_08,
    };

    op_call_init(call, "quant_weight", &args, sizeof args);
    call->run = run;
    call->is_there = is_there;
    call->changes = changes;
    call->change_count = sizeof changes / sizeof changes[0];
    (void)op_call_add(call, "inputs", AT(inputs), OP_IN,
                      op_tensor_2(dtype_id(q->input), r->rows, r->cols, q->inputs), q->input->bits);
    add_outputs(q, call);
}

static enum quant_special special_of(int64_t check)
{
    return check == CHECK_SPECIAL      ? QUANT_SPECIAL
           : check == CHECK_EXHAUSTIVE ? QUANT_EXHAUSTIVE
                                       : QUANT_USUAL;
}

static const char *make(const int64_t v[AX_COUNT], uint32_t rules, struct arena *arena,
                        struct op_problem *out)
{
    struct quant *q = ARENA_NEW(arena, 1, struct quant);
    struct op_call *call = ARENA_NEW(arena, 1, struct op_call);
    struct quant_data data = {.special = special_of(v[AX_CHECK]), .seed = (uint64_t)v[AX_SEED]};

    if (!q || !call)
        return no_memory;
    describe(v, rules, q);
    if (!get_arrays(q, arena))
        return no_memory;
    data.input = q->input;
    quant_data_fill(&data, &q->ref, q->values, q->inputs);
    make_want(q);
    make_call(q, call);
    *out = (struct op_problem){.v = v, .calls = call, .count = 1, .own = q};
    return NULL;
}

/* ---- trust ----------------------------------------------------------------------------------- */

static bool scales_differ(const struct quant *q)
{
    const int64_t groups = q->ref.rows * ref_quant_groups(&q->ref);
    int64_t alike = 0;

    for (int64_t i = 1; i < groups; i++)
        alike += q->scale[i] == q->scale[i - 1];
    return groups < 2 || alike * 2 <= groups;
}

/* Is every 16-bit input there? */
static const char *every_input(const struct quant *q)
{
    const int64_t count = q->ref.rows * q->ref.cols;
    uint64_t seen[1 << 10] = {0};
    uint64_t all = ~UINT64_C(0);
    uint16_t code;

    for (int64_t i = 0; i < count; i++) {
        memcpy(&code, (const uint8_t *)q->inputs + 2 * i, sizeof code);
        seen[code / 64] |= UINT64_C(1) << code % 64;
    }
    for (int i = 0; i < 1 << 10; i++)
        all &= seen[i];
    return ~all ? "not every input occurs" : NULL;
}

static const char *trust(const struct op_problem *p, char *buf, size_t size)
{
    const struct quant *q = p->own;
    int64_t ties;

    if (p->v[AX_CHECK] == CHECK_EXHAUSTIVE)
        return every_input(q);
    if (q->ref.has_scale && !scales_differ(q))
        return "most scales are alike: the scale of another group could pass";
    if (p->v[AX_CHECK] != CHECK_EXACT || !quant_data_can_tie(&q->ref, q->input))
        return NULL;
    ties = quant_data_ties(&q->ref, q->scale);
    if (ties >= LEAST_TIES)
        return NULL;
    (void)snprintf(buf, size,
                   "only %" PRId64 " quotients lie between two codes: rounding of ties "
                   "is not tested",
                   ties);
    return buf;
}

void family_quant_weight(struct runner *r, const struct plan *plan, size_t problem, size_t begin,
                         size_t end, const struct runner_hooks *hooks)
{
    static const struct op_family family = {
        .name = "quant_weight", .make = make, .trust = trust, .empty = true};

    (void)problem;
    op_family_run(&family, r, plan, begin, end, hooks);
}
