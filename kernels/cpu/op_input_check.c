#include "kernels/cpu/op_input.h"

#include "kernels/cpu/config.h"
#include "kernels/cpu/format.h"
#include "kernels/cpu/op_check.h"
#include "kernels/cpu/op_hadamard.h"

/* Largest values of the targets: OCP 8-bit (e4m3, e5m2) and MX (e2m1); integers symmetric. */
static const struct {
    int32_t dtype;
    float target_max;
} targets[] = {
    {HUM_E4M3, 448.0f}, {HUM_E5M2, 57344.0f}, {HUM_E3M4, 30.0f}, {HUM_E2M1, 6.0f},
    {HUM_E0M3, 7.0f},   {HUM_INT8, 127.0f},   {HUM_INT4, 7.0f},
};

static const struct {
    bool has_groups, has_tokens, has_static;
} modes[] = {
    [HUM_QUANT_DISABLED] = {false, false, false},
    [HUM_QUANT_STATIC_TENSOR] = {false, false, true},
    [HUM_QUANT_DYNAMIC_TOKEN] = {false, true, false},
    [HUM_QUANT_DYNAMIC_GROUP] = {true, false, false},
    [HUM_QUANT_STATIC_TENSOR_DYNAMIC_GROUP] = {true, false, true},
    [HUM_QUANT_DYNAMIC_GROUP_TOKEN] = {true, true, false},
};

#define CHECK_RULES(rules, reason) \
    op_check_rules((rules), sizeof(rules) / sizeof *(rules), (reason))

static float find_target_max(int32_t dtype)
{
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++)
        if (targets[i].dtype == dtype)
            return targets[i].target_max;
    return 0.0f;
}

static enum hum_code check_choices(const struct hum_process_input_args *a,
                                   char reason[HUM_REASON_BYTES])
{
    const bool disabled = a->quant_mode == HUM_QUANT_DISABLED;
    const struct op_rule rules[] = {
        {a->quant_mode < HUM_QUANT_DISABLED || a->quant_mode > HUM_QUANT_DYNAMIC_GROUP_TOKEN,
         "quant_mode is out of range"},
        {a->scale_layout < HUM_SCALES_ROW_MAJOR || a->scale_layout > HUM_SCALES_MX_PACKED,
         "scale_layout is out of range"},
        {a->layout < HUM_LAYOUT_NORMAL || a->layout > HUM_LAYOUT_SCATTER, "layout is out of range"},
        {disabled && a->quant_dtype != HUM_NONE,
         "quant_dtype must be none where quant_mode is disabled"},
        {!disabled && !(find_target_max(a->quant_dtype) > 0.0f),
         "quant_dtype must be float8e4m3, float8e5m2, float8e3m4, float4e2m1, float4e0m3, int8 or "
         "int4"},
        {a->zero_invalid && a->layout != HUM_LAYOUT_GROUPED_PADDED,
         "zero_invalid belongs to the layout grouped_padded"},
        {a->max_tokens < 0, "max_tokens must not be negative"},
    };

    return CHECK_RULES(rules, reason);
}

static enum hum_code check_groups(const struct hum_process_input_args *a,
                                  char reason[HUM_REASON_BYTES])
{
    const bool groups = modes[a->quant_mode].has_groups;
    const int32_t t = a->group_scale_dtype;
    const struct op_rule rules[] = {
        {!groups && a->quant_group_size != 0, "this quant_mode has no quant_group_size"},
        {groups && a->quant_group_size <= 0, "this quant_mode needs a positive quant_group_size"},
        {groups && t != HUM_F32 && t != HUM_E8M0 && t != HUM_E4M3,
         "group_scale_dtype must be float32, e8m0 or float8e4m3"},
        {a->quant_mode == HUM_QUANT_DYNAMIC_GROUP_TOKEN && t != HUM_E4M3,
         "dynamic_group_token needs group scales of float8e4m3"},
        {groups && a->scale_layout == HUM_SCALES_MX_PACKED && t == HUM_F32,
         "mx-packed scales must have 8 bits"},
    };

    return CHECK_RULES(rules, reason);
}

static enum hum_code check_sizes(const struct hum_process_input_args *a,
                                 char reason[HUM_REASON_BYTES])
{
    const bool sane = op_shape_is_sane(&a->inputs, 2), binary = a->form != HUM_ACT_UNARY;
    const int64_t in_width = sane ? a->inputs.shape[1] : 0;
    const int64_t width = binary ? in_width / 2 : in_width, h = a->hadamard_block_size;
    const struct op_rule rules[] = {
        {!op_is_real(a->inputs.dtype), "inputs must be float16, bfloat16 or float32"},
        {!sane, "inputs must have rank 2, sizes up to 2^31 and at most 2^40 elements"},
        {binary && in_width % 2 != 0, "a binary activation needs an even number of columns"},
        {h != 0 && !hadamard_is_size(h),
         "hadamard_block_size must be 0 or a power of two up to 512"},
        {h != 0 && hadamard_is_size(h) && width % h != 0,
         "hadamard_block_size must divide the columns after the activation"},
        {a->quant_mode != HUM_QUANT_DISABLED && hum_dtype_bits(a->quant_dtype) == 4 &&
             width % 2 != 0,
         "a 4-bit quant_dtype needs an even number of columns"},
        {a->outputs.rank != 2 || !op_shape_is_sane(&a->outputs, 2),
         "outputs must have rank 2, sizes up to 2^31 and at most 2^40 elements"},
    };

    return CHECK_RULES(rules, reason);
}

/* The job of a call whose choices and sizes passed. */
static struct input_job make_job(const struct hum_process_input_args *a)
{
    const int64_t in_width = a->inputs.shape[1];
    const bool disabled = a->quant_mode == HUM_QUANT_DISABLED;
    struct input_job j = {
        .args = a,
        .activation = {a->activation, a->form, a->alpha, a->beta, a->limit},
        .rows = a->inputs.shape[0],
        .in_width = in_width,
        .width = a->form == HUM_ACT_UNARY ? in_width : in_width / 2,
        .out_rows = a->outputs.shape[0],
        .has_static = modes[a->quant_mode].has_static,
        .has_tokens = modes[a->quant_mode].has_tokens,
        .out_dtype = disabled ? a->inputs.dtype : a->quant_dtype,
        .target_max = find_target_max(a->quant_dtype),
    };

    j.bits = hum_dtype_bits(j.out_dtype);
    j.row_bytes = (size_t)j.width * (size_t)j.bits / 8;
    if (!disabled && hum_dtype_is_float(j.out_dtype))
        j.format = op_format(j.out_dtype, true);
    if (modes[a->quant_mode].has_groups) {
        j.group = a->quant_group_size < j.width ? a->quant_group_size : j.width;
        j.groups = j.width ? (j.width + j.group - 1) / j.group : 0;
    }
    return j;
}

static int64_t round_up_4(int64_t n)
{
    return (n + 3) / 4 * 4;
}

static struct hum_tensor want_group_scales(const struct input_job *j)
{
    const int32_t t = j->args->group_scale_dtype;
    const int64_t rows = round_up_4(j->out_rows);

    switch (j->args->scale_layout) {
    case HUM_SCALES_ROW_MAJOR:
        return op_want(t, 2, j->out_rows, t == HUM_F32 ? j->groups : round_up_4(j->groups), 0);
    case HUM_SCALES_M_MAJOR:
        return op_want(t, 2, j->groups, rows, 0);
    case HUM_SCALES_MX_PACKED:
        return op_want(t, 3, (j->groups + 3) / 4, rows, 4);
    }
    return (struct hum_tensor){0};
}

/* Two 4-bit numbers a byte, whose format may be stated as that of bytes. */
static struct hum_tensor want_outputs(const struct input_job *j)
{
    struct hum_tensor want;

    if (j->bits >= 8)
        return op_want(j->out_dtype, 2, j->out_rows, j->width, 0);
    want = op_want(HUM_UINT(8), 2, j->out_rows, j->width / 2, 0);
    if (j->args->outputs.dtype == j->out_dtype)
        want.dtype = j->out_dtype;
    return want;
}

/* The tensors that say where rows go, by layout. */
static void want_routing(const struct input_job *j, struct hum_tensor *expert_layout,
                         struct hum_tensor *indices)
{
    const struct hum_process_input_args *a = j->args;
    const int32_t e = a->expert_layout.dtype == HUM_INT64 ? HUM_INT64 : HUM_INT32;
    const int32_t i = a->indices.dtype == HUM_INT64 ? HUM_INT64 : HUM_INT32;

    *expert_layout = *indices = (struct hum_tensor){0};
    switch (a->layout) {
    case HUM_LAYOUT_NORMAL:
        return;
    case HUM_LAYOUT_GROUPED:
    case HUM_LAYOUT_GROUPED_PADDED:
        *expert_layout = op_want(e, 1, a->expert_layout.shape[0], 0, 0);
        return;
    case HUM_LAYOUT_PERMUTE:
        *indices = op_want(i, 1, j->rows, 0, 0);
        return;
    case HUM_LAYOUT_SCATTER:
        *indices = op_want(HUM_INT64, 2, j->rows, a->indices.shape[1], 0);
        return;
    }
}

static enum hum_code check_routing_shapes(const struct input_job *j, char reason[HUM_REASON_BYTES])
{
    const struct hum_process_input_args *a = j->args;
    const struct hum_tensor *layout = &a->expert_layout;
    const bool grouped = a->layout == HUM_LAYOUT_GROUPED;
    const bool padded = a->layout == HUM_LAYOUT_GROUPED_PADDED;
    const bool scatter = a->layout == HUM_LAYOUT_SCATTER;
    const bool sane = op_shape_is_sane(layout, 1);
    const struct op_rule rules[] = {
        {(grouped || padded) && !sane, "expert_layout must have rank 1"},
        {grouped && sane && layout->shape[0] < 1, "expert_layout must have an offset at least"},
        {padded && sane &&
             (a->max_tokens > INT64_C(1) << 31 || j->out_rows != layout->shape[0] * a->max_tokens),
         "outputs must have max_tokens rows for each expert"},
        {scatter && !op_shape_is_sane(&a->indices, 2), "indices must have rank 2"},
        {(grouped || a->layout == HUM_LAYOUT_NORMAL) && j->out_rows != j->rows,
         "outputs must have as many rows as inputs"},
    };

    return CHECK_RULES(rules, reason);
}

static enum hum_code check_tensors(const struct input_job *j, char reason[HUM_REASON_BYTES])
{
    const struct hum_process_input_args *a = j->args;
    const struct hum_tensor absent = {0};
    struct hum_tensor expert_layout, indices;

    want_routing(j, &expert_layout, &indices);
    {
        const struct op_tensor all[] = {
            {"inputs", &a->inputs, op_want(a->inputs.dtype, 2, j->rows, j->in_width, 0), false},
            {"static_scales", &a->static_scales,
             j->has_static ? op_want(HUM_F32, 1, 1, 0, 0) : absent, false},
            {"expert_layout", &a->expert_layout, expert_layout, false},
            {"indices", &a->indices, indices, false},
            {"outputs", &a->outputs, want_outputs(j), true},
            {"group_scales", &a->group_scales,
             modes[a->quant_mode].has_groups ? want_group_scales(j) : absent, true},
            {"token_scales", &a->token_scales,
             j->has_tokens ? op_want(HUM_F32, 1, j->out_rows, 0, 0) : absent, true},
        };

        return op_check_tensors(all, sizeof all / sizeof all[0], reason);
    }
}

/* Offsets ascend from 0 and end within the rows; counts fit max_tokens and the rows. */
static enum hum_code check_experts(const struct input_job *j, char reason[HUM_REASON_BYTES])
{
    const struct hum_process_input_args *a = j->args;
    const bool grouped = a->layout == HUM_LAYOUT_GROUPED;
    int64_t end = 0;

    if (!grouped && a->layout != HUM_LAYOUT_GROUPED_PADDED)
        return HUM_OK;
    if (grouped && op_index(&a->expert_layout, 0) != 0)
        return refuse(reason, HUM_INVALID, "the first offset of expert_layout must be 0");
    for (int64_t e = 0; e < a->expert_layout.shape[0]; e++) {
        const int64_t x = op_index(&a->expert_layout, e);

        if (grouped && x < end)
            return refuse(reason, HUM_INVALID, "the offsets of expert_layout must not descend");
        if (!grouped && (x < 0 || x > a->max_tokens))
            return refuse(reason, HUM_INVALID, "a count of expert_layout is not 0 to max_tokens");
        end = grouped ? x : end + x;
        if (end > j->rows)
            return refuse(reason, HUM_INVALID, "expert_layout has more rows than inputs");
    }
    return HUM_OK;
}

enum hum_code input_check(const struct hum_process_input_args *args, struct input_job *job,
                          char reason[HUM_REASON_BYTES])
{
    const struct op_activation activation = {args->activation, args->form, args->alpha, args->beta,
                                             args->limit};

    if (op_activation_check(&activation, reason) || check_choices(args, reason) ||
        check_groups(args, reason) || check_sizes(args, reason))
        return HUM_INVALID;
    *job = make_job(args);
    if (check_routing_shapes(job, reason) || check_tensors(job, reason) ||
        check_experts(job, reason))
        return HUM_INVALID;
    return HUM_OK;
}
