#include "harness/kernel/input_call.h"

#include "harness/kernel/layer.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define PART(name) offsetof(struct hum_process_input_args, name)

static enum hum_code run(const struct hum_ops *ops, void *handle, const void *args,
                         char reason[HUM_REASON_BYTES])
{
    return ops->process_input(handle, args, reason);
}

static bool is_there(const struct hum_ops *ops)
{
    return ops->process_input != NULL;
}

static const struct hum_process_input_args *as_args(const void *args)
{
    return args;
}

static bool is_disabled(const void *args)
{
    return as_args(args)->quant_mode == HUM_QUANT_DISABLED;
}

static bool has_groups(const void *args)
{
    return as_args(args)->quant_mode >= HUM_QUANT_DYNAMIC_GROUP;
}

static bool has_no_groups(const void *args)
{
    return !has_groups(args);
}

static bool is_unary(const void *args)
{
    return as_args(args)->form == HUM_ACT_UNARY;
}

static bool is_binary(const void *args)
{
    return !is_unary(args);
}

static bool is_not_padded(const void *args)
{
    return as_args(args)->layout != HUM_LAYOUT_GROUPED_PADDED;
}

static bool is_not_swiglu(const void *args)
{
    return as_args(args)->activation != HUM_ACT_SWIGLU;
}

static const struct op_change changes[] = {
    {"quant_mode of 6", PART(quant_mode), OP_INT32, OP_SET, 6, NULL},
    {"quant_mode of -1", PART(quant_mode), OP_INT32, OP_SET, -1, NULL},
    {"scale_layout of 3", PART(scale_layout), OP_INT32, OP_SET, 3, NULL},
    {"layout of 5", PART(layout), OP_INT32, OP_SET, 5, NULL},
    {"activation of 6", PART(activation), OP_INT32, OP_SET, 6, NULL},
    {"form of 3", PART(form), OP_INT32, OP_SET, 3, NULL},
    {"a unary form for twice the columns", PART(form), OP_INT32, OP_SET, HUM_ACT_UNARY, is_unary},
    {"a binary form for as many columns", PART(form), OP_INT32, OP_SET, HUM_ACT_BINARY_SPLIT,
     is_binary},
    {"alpha of infinity", PART(alpha), OP_F32, OP_SET, HUGE_VAL, is_not_swiglu},
    {"hadamard_block_size of 3", PART(hadamard_block_size), OP_INT64, OP_SET, 3, NULL},
    {"hadamard_block_size of 1024", PART(hadamard_block_size), OP_INT64, OP_SET, 1024, NULL},
    {"hadamard_block_size of -2", PART(hadamard_block_size), OP_INT64, OP_SET, -2, NULL},
    {"quant_dtype of f16", PART(quant_dtype), OP_INT32, OP_SET, HUM_F16, NULL},
    {"no quant_dtype", PART(quant_dtype), OP_INT32, OP_SET, HUM_NONE, is_disabled},
    {"quant_group_size of -1", PART(quant_group_size), OP_INT64, OP_SET, -1, NULL},
    {"no quant_group_size", PART(quant_group_size), OP_INT64, OP_SET, 0, has_no_groups},
    {"quant_group_size without groups", PART(quant_group_size), OP_INT64, OP_SET, 32, has_groups},
    {"group_scale_dtype of f16", PART(group_scale_dtype), OP_INT32, OP_SET, HUM_F16, has_no_groups},
    {"one more of max_tokens", PART(max_tokens), OP_INT64, OP_ADD, 1, is_not_padded},
    {"max_tokens of -1", PART(max_tokens), OP_INT64, OP_SET, -1, is_not_padded},
};

/* Choices that do not depend on which of the two calls it is. */
static struct hum_process_input_args args_of(const struct input_case *c)
{
    const struct ref_activation *f = &c->activation;

    return (struct hum_process_input_args){.activation = (enum hum_activation)f->kind,
                                           .form = (enum hum_activation_form)f->form,
                                           .alpha = f->alpha,
                                           .beta = f->beta,
                                           .limit = f->limit,
                                           .precise = true};
}

static void begin(struct op_call *call, const struct hum_process_input_args *args)
{
    op_call_init(call, "process_input", args, sizeof *args);
    call->run = run;
    call->is_there = is_there;
    call->changes = changes;
    call->change_count = sizeof changes / sizeof changes[0];
}

static void add_inputs(struct op_call *call, const struct input_case *c, const struct dtype *t,
                       void *data)
{
    op_call_add(call, "inputs", PART(inputs), OP_IN,
                op_tensor_2(dtype_id(t), c->quant.rows, c->width_in, data), t->bits)
        ->free_rows = c->layout.kind == REF_LAYOUT_GROUPED_PADDED; /* as many as are counted */
}

void input_call_activation(const struct input_own *own, struct op_call *call)
{
    const struct dtype *f32 = dtype_find("f32");
    const struct input_case *c = &own->c;
    struct hum_process_input_args args = args_of(c);
    struct op_part *outputs;

    begin(call, &args);
    add_inputs(call, c, f32, c->x);
    outputs = op_call_add(call, "outputs", PART(outputs), OP_OUT,
                          op_tensor_2(HUM_F32, c->quant.rows, c->quant.width, NULL), 32);
    outputs->type = f32;
    outputs->width = c->quant.width;
}

static struct hum_tensor indices_of(const struct input_case *c, int32_t dtype, void *data)
{
    if (c->layout.kind == REF_LAYOUT_SCATTER)
        return op_tensor_2(dtype, c->quant.rows, c->layout.index_width, data);
    return op_tensor_1(dtype, c->quant.rows, data);
}

/* count 64-bit numbers, or their low halves. NULL: memory is out. */
static void *narrowed(const int64_t *from, int64_t count, int32_t dtype, struct arena *arena)
{
    const size_t size = dtype == HUM_INT64 ? 8 : 4;
    uint8_t *to = arena_alloc(arena, (size_t)count, size);

    for (int64_t i = 0; to && i < count; i++)
        memcpy(to + (size_t)i * size, &from[i], size); /* little end first */
    return to;
}

/* The tensors that say where rows go. */
static bool add_routing(const struct input_own *own, const int64_t v[AX_COUNT],
                        struct op_call *call)
{
    const struct ref_layout *l = &own->c.layout;
    const int32_t dtype = l->kind == REF_LAYOUT_SCATTER ? HUM_INT64 : layer_layout_dtype(v);
    struct hum_tensor expert_layout = op_absent(), indices = op_absent();
    int64_t count = 0;

    if (l->expert_layout) {
        count = l->experts + (l->kind == REF_LAYOUT_GROUPED);
        expert_layout =
            op_tensor_1(dtype, count, narrowed(l->expert_layout, count, dtype, own->arena));
        if (!expert_layout.data)
            return false;
    }
    if (l->indices) {
        count = own->c.quant.rows * (l->kind == REF_LAYOUT_SCATTER ? l->index_width : 1);
        indices = indices_of(&own->c, dtype, narrowed(l->indices, count, dtype, own->arena));
        if (!indices.data)
            return false;
    }
    op_call_add(call, "expert_layout", PART(expert_layout), OP_IN, expert_layout,
                hum_dtype_bits(dtype))
        ->free_rows = l->kind == REF_LAYOUT_GROUPED; /* experts without rows may be left out */
    (void)op_call_add(call, "indices", PART(indices), OP_IN, indices, hum_dtype_bits(dtype));
    return true;
}

static void add_outputs(const struct input_own *own, struct op_call *call)
{
    const struct ref_input *q = &own->c.quant;
    const int64_t rows = own->c.layout.out_rows;
    const bool packed = q->t->bits == 4;
    struct op_part *outputs =
        op_call_add(call, "outputs", PART(outputs), OP_OUT,
                    packed ? op_tensor_2(HUM_UINT(8), rows, q->width / 2, NULL)
                           : op_tensor_2(dtype_id(q->t), rows, q->width, NULL),
                    q->t->bits);

    outputs->type = q->t;
    outputs->want = own->want->codes;
    outputs->free_rows = own->c.layout.indices != NULL; /* places beyond them are skipped */
    outputs->width = q->width;
}

static int64_t round_up_4(int64_t n)
{
    return (n + 3) / 4 * 4;
}

static struct hum_tensor scales_tensor(const struct ref_scale_places *p, int32_t dtype)
{
    switch (p->layout) {
    case REF_SCALES_ROW_MAJOR:
        return op_tensor_2(dtype, p->rows, p->bits == 8 ? round_up_4(p->groups) : p->groups, NULL);
    case REF_SCALES_M_MAJOR:
        return op_tensor_2(dtype, p->groups, round_up_4(p->rows), NULL);
    case REF_SCALES_MX_PACKED:
        break;
    }
    return op_tensor_3(dtype, (p->groups + 3) / 4, round_up_4(p->rows), 4, NULL);
}

static void add_scales(const struct input_own *own, struct op_call *call)
{
    const struct input_case *c = &own->c;
    const struct dtype *t = c->quant.group_scale;
    struct hum_tensor groups = op_absent(), tokens = op_absent();
    struct op_part *part;

    if (own->want->group_scales)
        groups = scales_tensor(&c->scales, dtype_id(t));
    if (own->want->token_scales)
        tokens = op_tensor_1(HUM_F32, c->layout.out_rows, NULL);
    part = op_call_add(call, "group_scales", PART(group_scales), OP_OUT, groups, c->scales.bits);
    part->type = t;
    part->want = own->want->group_scales;
    part->width = groups.rank ? groups.shape[groups.rank - 1] : 0;
    part = op_call_add(call, "token_scales", PART(token_scales), OP_OUT, tokens, 32);
    part->type = dtype_find("f32");
    part->want = own->want->token_scales;
    part->width = 1;
}

bool input_call_case(const struct input_own *own, const int64_t v[AX_COUNT], struct op_call *call)
{
    const struct input_case *c = &own->c;
    const struct ref_input *q = &c->quant;
    struct hum_process_input_args args = args_of(c);
    struct hum_tensor given = op_absent();
    float *scale = arena_alloc(own->arena, 1, sizeof *scale);

    if (!scale)
        return false;
    *scale = q->static_scale;
    args.hadamard_block_size = c->hadamard;
    args.quant_mode = (enum hum_input_quant_mode)q->mode;
    args.quant_dtype = q->mode == REF_INPUT_DISABLED ? HUM_NONE : dtype_id(q->t);
    args.quant_group_size = q->group;
    args.group_scale_dtype = q->group_scale ? dtype_id(q->group_scale) : HUM_NONE;
    args.scale_layout = (enum hum_scale_layout)c->scales.layout;
    args.layout = (enum hum_input_layout)c->layout.kind;
    args.zero_invalid = c->layout.zero_invalid;
    args.max_tokens = c->layout.max_tokens;
    begin(call, &args);
    add_inputs(call, c, c->in, c->inputs);
    if (ref_input_is_static(q->mode))
        given = op_tensor_1(HUM_F32, 1, scale);
    (void)op_call_add(call, "static_scales", PART(static_scales), OP_IN, given, 32);
    if (!add_routing(own, v, call))
        return false;
    add_outputs(own, call);
    add_scales(own, call);
    return true;
}
