/* process_input (docs/semantics-ops.md sections 5 to 8), right and with one mistake. */
#include "harness/explain/ops_input.h"

#include "harness/explain/ops_hadamard.h"
#include "harness/explain/ops_record.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* Steps of f32 that an elementary function may lie from the correctly rounded result: what the
 * checks allow. */
enum { ACTIVATION_ULP = 2 };

static bool is(const struct ops_input *j, enum ops_input_kind kind)
{
    return ops_input_is(j, kind);
}

/* ---- activation ------------------------------------------------------------------------------ */

static struct ref_activation activation_of(const struct hum_process_input_args *a)
{
    return (struct ref_activation){.kind = (enum ref_activation_kind)a->activation,
                                   .form = (enum ref_activation_form)a->form,
                                   .alpha = a->alpha,
                                   .beta = a->beta,
                                   .limit = a->limit};
}

static float limited(float x, float low, float high)
{
    return x < low ? low : x > high ? high : x;
}

/* Both factors, then the limits. */
static struct ref_near limit_after(const struct ref_activation *f, float a, float b)
{
    const struct ref_activation gate = {REF_ACTIVATION_SWIGLU, f->form, f->alpha, 0.0f, 0.0f};
    const double l = (double)f->limit, u = (double)b + (double)f->beta;
    struct ref_near near = ref_activation_at(&gate, a, 1.0f);
    const double factor = fmax(fmin(u, l), -l);

    near.value = fmin(near.value, l) * factor;
    near.error *= fabs(factor);
    return near;
}

/* The limits of swiglu with some of them left out or added. */
static void change_limits(const struct ops_input *j, struct ref_activation *f, float *a, float *b)
{
    const float l = f->limit;

    if (f->kind != REF_ACTIVATION_SWIGLU || !(l > 0.0f))
        return;
    if (is(j, INPUT_LIMIT_A_ONLY) || is(j, INPUT_LIMIT_B_ABOVE))
        *a = limited(*a, -HUGE_VALF, l);
    if (is(j, INPUT_LIMIT_A_BOTH))
        *a = limited(*a, -l, l);
    if (is(j, INPUT_LIMIT_B_ONLY) || is(j, INPUT_LIMIT_A_BOTH))
        *b = limited(*b, -l, l);
    if (is(j, INPUT_LIMIT_B_ABOVE))
        *b = limited(*b, -HUGE_VALF, l);
    f->limit = 0.0f;
}

static void drop_product(struct ref_activation *f, float *b)
{
    *b = 1.0f;
    f->beta = 0.0f;
}

static struct ref_near activate(const struct ops_input *j, float a, float b)
{
    struct ref_activation f = activation_of(j->a);

    switch (j->twist->kind) {
    case INPUT_OTHER_GELU:
        if (f.kind == (j->twist->n ? REF_ACTIVATION_GELU_TANH : REF_ACTIVATION_GELU))
            f.kind = j->twist->n ? REF_ACTIVATION_GELU : REF_ACTIVATION_GELU_TANH;
        break;
    case INPUT_LIMIT_AFTER:
        if (f.kind == REF_ACTIVATION_SWIGLU && f.limit > 0.0f)
            return limit_after(&f, a, b);
        break;
    case INPUT_NO_LIMIT:
    case INPUT_LIMIT_A_ONLY:
    case INPUT_LIMIT_B_ONLY:
    case INPUT_LIMIT_A_BOTH:
    case INPUT_LIMIT_B_ABOVE:
        change_limits(j, &f, &a, &b);
        break;
    case INPUT_NO_BETA:
        f.beta = 0.0f;
        break;
    case INPUT_NO_ALPHA:
        f.alpha = 1.0f;
        break;
    case INPUT_NO_ACTIVATION:
        f.kind = REF_ACTIVATION_NONE;
        break;
    case INPUT_NO_PRODUCT:
        drop_product(&f, &b);
        break;
    case INPUT_NOT_SQUARED:
        if (f.kind == REF_ACTIVATION_RELU2)
            return (struct ref_near){
                (double)((a > 0.0f ? a : 0.0f) * (f.form == REF_ACTIVATION_UNARY ? 1.0f : b)), 0.0};
        break;
    }
    return ref_activation_at(&f, a, b);
}

/* Rows x width. */
static void activate_all(const struct ops_input *j, const float *x, struct ref_near *out)
{
    const bool split = (j->a->form == HUM_ACT_BINARY_SPLIT) != is(j, INPUT_OTHER_FORM);
    const int64_t step = split ? 1 : 2, second = split ? j->width : 1;

    for (int64_t i = 0; i < j->rows * j->width; i++) {
        const float *row = x + i / j->width * j->width_in;
        const int64_t col = i % j->width;

        if (j->a->form == HUM_ACT_UNARY)
            out[i] = activate(j, row[col], 0.0f);
        else if (is(j, INPUT_HALVES))
            out[i] = activate(j, row[step * col + second], row[step * col]);
        else
            out[i] = activate(j, row[step * col], row[step * col + second]);
    }
}

static bool is_exact(const struct ref_near *near, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!(near[i].error <= 0.0))
            return false;
    return true;
}

static bool same_activation(const struct hum_process_input_args *a,
                            const struct hum_process_input_args *b)
{
    return a->activation == b->activation && a->form == b->form && a->alpha == b->alpha &&
           a->beta == b->beta && a->limit == b->limit && a->inputs.shape[0] == b->inputs.shape[0] &&
           a->inputs.shape[1] == b->inputs.shape[1];
}

bool ops_input_is_activation_of(const struct ops_seen *seen, const struct ops_seen *s)
{
    const struct hum_process_input_args *a = seen->args, *b = s->args;
    const struct dtype *t = dtype_find_id(b->inputs.dtype, false);
    const int64_t count = b->inputs.shape[0] * b->inputs.shape[1];

    if (seen->op != &ops_process_input || a->quant_mode != HUM_QUANT_DISABLED ||
        a->hadamard_block_size || a->layout != HUM_LAYOUT_NORMAL || a->inputs.dtype != HUM_F32 ||
        a->outputs.dtype != HUM_F32 || !same_activation(a, b) || !seen->outs)
        return false;
    for (int64_t i = 0; i < count; i++) {
        const float x = ((const float *)a->inputs.data)[i];
        const float y = (float)dtype_decode(t, ops_element(b->inputs.data, t->bits, i));

        if (!(x >= y && x <= y) && !(isnan(x) && isnan(y)))
            return false;
    }
    return true;
}

/* ---- the call -------------------------------------------------------------------------------- */

/* Codes of results that may lie ACTIVATION_ULP away: what came where that is right. `places` holds
 * the number of a result, plus 1, at its place in the outputs. */
static void settle(const struct ops_input *j, const struct ref_near *near,
                   const struct ops_output *out, uint64_t *places)
{
    for (int64_t i = 0; i < out->count; i++) {
        const bool one = places[i] && places[i] != OPS_OPEN;
        const struct ref_near *r = one ? &near[places[i] - 1] : NULL;

        if (!r)
            places[i] = places[i] == OPS_OPEN ? OPS_OPEN : out->before[i];
        else if (ref_near_holds(r, j->t, ACTIVATION_ULP, out->got[i]))
            places[i] = out->got[i];
        else
            places[i] = dtype_encode(j->t, r->value, DTYPE_TO_TOP);
    }
}

/* Outputs of an elementary function, which are not known bit for bit. */
static bool answer_near(struct ops_input *j, const struct ops_seen *s, const struct ref_near *near,
                        struct ops_answer *out)
{
    if (j->a->quant_mode != HUM_QUANT_DISABLED || j->a->hadamard_block_size || s->outs != 1)
        return false;
    for (int64_t i = 0; i < j->rows * j->width; i++)
        j->codes[i] = (uint32_t)i + 1;
    memset(out->codes[0], 0, (size_t)s->out[0].count * sizeof *out->codes[0]);
    if (!ops_input_place(j, s, out))
        return false;
    settle(j, near, &s->out[0], out->codes[0]);
    return true;
}

static void transform(const struct ops_input *j, float *v)
{
    const int64_t block = j->a->hadamard_block_size;

    if (!block || is(j, INPUT_NO_HADAMARD))
        return;
    if (is(j, INPUT_HADAMARD))
        ops_hadamard_rows(v, j->rows, j->width, block, j->twist->n % 16, j->twist->n / 16);
    else
        ops_hadamard_rows(v, j->rows, j->width, block, HADAMARD_RIGHT, 0);
}

static void describe(const struct ops_seen *s, const struct ops_twist *twist, struct ops_input *j)
{
    const struct hum_process_input_args *a = s->args;

    *j = (struct ops_input){.a = a,
                            .twist = twist,
                            .rules = s->rules,
                            .rows = a->inputs.shape[0],
                            .width_in = a->inputs.shape[1],
                            .out_rows = a->outputs.shape[0],
                            .static_scale = a->static_scales.bytes > 0,
                            .tokens = a->quant_mode == HUM_QUANT_DYNAMIC_TOKEN ||
                                      a->quant_mode == HUM_QUANT_DYNAMIC_GROUP_TOKEN};
    j->width = a->form == HUM_ACT_UNARY ? j->width_in : j->width_in / 2;
    j->t = dtype_find_id(a->quant_mode == HUM_QUANT_DISABLED ? a->outputs.dtype : a->quant_dtype,
                         false);
    if (a->quant_mode < HUM_QUANT_DYNAMIC_GROUP)
        return;
    j->scale = dtype_find_id(a->group_scale_dtype, false);
    j->group = a->quant_group_size;
    j->groups = (j->width + j->group - 1) / j->group;
}

static bool get_arrays(struct ops_input *j, struct arena *arena)
{
    const size_t rows = (size_t)j->rows + 1, units = j->groups ? (size_t)j->groups : 1;

    j->codes = arena_alloc(arena, rows * (size_t)j->width, sizeof *j->codes);
    j->group_scales = arena_zalloc(arena, rows * units, sizeof *j->group_scales);
    j->token_scales = arena_zalloc(arena, rows, sizeof *j->token_scales);
    j->divisors = arena_zalloc(arena, rows * units, sizeof *j->divisors);
    j->raw = arena_zalloc(arena, rows * units, sizeof *j->raw);
    return j->codes && j->group_scales && j->token_scales && j->divisors && j->raw;
}

static bool answer(const struct ops_seen *s, const struct ops_twist *twist, struct ops_answer *out)
{
    const bool of_activation = twist->kind >= INPUT_HALVES && twist->kind <= INPUT_NOT_SQUARED;
    struct ops_input j;
    struct ref_near *near;
    float *x, *v;
    int64_t count;
    bool exact;

    describe(s, twist, &j);
    count = j.rows * j.width;
    x = ops_values(&j.a->inputs, out->arena);
    v = arena_alloc(out->arena, (size_t)count + 1, sizeof *v);
    near = arena_alloc(out->arena, (size_t)count + 1, sizeof *near);
    if (!x || !v || !near || !get_arrays(&j, out->arena))
        return false;
    activate_all(&j, x, near);
    exact = is_exact(near, count);
    if (!exact && (!s->activated || of_activation))
        return answer_near(&j, s, near, out);
    for (int64_t i = 0; i < count; i++)
        v[i] = exact ? (float)near[i].value : s->activated[i];
    transform(&j, v);
    j.v = v;
    ops_input_quantize(&j);
    return ops_input_place(&j, s, out);
}

/* Two 4-bit codes a byte; everything has the format that the arguments name. */
static void shape(const void *args, struct ops_output *out)
{
    const struct hum_process_input_args *a = args;

    if (strcmp(out->name, "outputs") != 0 || a->quant_mode == HUM_QUANT_DISABLED)
        return;
    out->bits = hum_dtype_bits(a->quant_dtype);
    out->type = dtype_find_id(a->quant_dtype, false);
    if (out->bits == 4)
        out->width *= 2;
}

static enum hum_code run(const struct hum_ops *ops, void *handle, const void *args,
                         char reason[HUM_REASON_BYTES])
{
    return ops->process_input(handle, args, reason);
}

#define AT(field) offsetof(struct hum_process_input_args, field)

static const struct ops_tensor tensors[] = {
    {"inputs", AT(inputs), OPS_READ},
    {"static_scales", AT(static_scales), OPS_READ},
    {"expert_layout", AT(expert_layout), OPS_READ},
    {"indices", AT(indices), OPS_READ},
    {"outputs", AT(outputs), OPS_WRITE},
    {"group_scales", AT(group_scales), OPS_WRITE},
    {"token_scales", AT(token_scales), OPS_WRITE},
};

const struct ops_operation ops_process_input = {.name = "process_input",
                                                .args_size = sizeof(struct hum_process_input_args),
                                                .tensors = tensors,
                                                .tensor_count = 7,
                                                .run = run,
                                                .shape = shape,
                                                .answer = answer};
