#include "kernels/cpu/ops.h"
#include "kernels/test/ops_tensor.h"

#include <math.h>

enum { ROWS = 4, WIDTH = 64, GROUP = 16 };

static char reason[HUM_REASON_BYTES];

/* Everything that some call may need. */
struct tensors {
    struct hum_tensor inputs, outputs, packed, group_scales, mx, token_scales, static_scales;
    struct hum_tensor offsets, counts, permutation, scatter;
};

static struct tensors tensors_make(void)
{
    struct tensors t = {
        .inputs = tensor_make(HUM_F32, 2, ROWS, WIDTH, 0),
        .outputs = tensor_make(HUM_E4M3, 2, ROWS, WIDTH, 0),
        .packed = tensor_make(HUM_E2M1, 2, ROWS, WIDTH / 2, 0),
        .group_scales = tensor_make(HUM_E4M3, 2, ROWS, WIDTH / GROUP, 0),
        .mx = tensor_make(HUM_E4M3, 3, 1, ROWS, 4),
        .token_scales = tensor_make(HUM_F32, 1, ROWS, 0, 0),
        .static_scales = tensor_make(HUM_F32, 1, 1, 0, 0),
        .offsets = tensor_make(HUM_INT64, 1, 3, 0, 0),
        .counts = tensor_make(HUM_INT64, 1, 2, 0, 0),
        .permutation = tensor_make(HUM_INT32, 1, ROWS, 0, 0),
        .scatter = tensor_make(HUM_INT64, 2, ROWS, 1, 0),
    };

    for (int i = 0; i < ROWS * WIDTH; i++)
        ((float *)t.inputs.data)[i] = (float)(i % 13 - 6);
    *(float *)t.static_scales.data = 1.0f;
    memcpy(t.offsets.data, (const int64_t[]){0, 1, 4}, 24);
    memcpy(t.counts.data, (const int64_t[]){2, 1}, 16);
    memcpy(t.permutation.data, (const int32_t[]){3, 1, 0, 2}, 16);
    memcpy(t.scatter.data, (const int64_t[]){3, 1, 0, 2}, 32);
    return t;
}

static void tensors_free(struct tensors *t)
{
    free(t->inputs.data);
    free(t->outputs.data);
    free(t->packed.data);
    free(t->group_scales.data);
    free(t->mx.data);
    free(t->token_scales.data);
    free(t->static_scales.data);
    free(t->offsets.data);
    free(t->counts.data);
    free(t->permutation.data);
    free(t->scatter.data);
}

/* A call that is right. */
static struct hum_process_input_args args_make(const struct tensors *t)
{
    return (struct hum_process_input_args){
        .inputs = t->inputs,
        .quant_mode = HUM_QUANT_DYNAMIC_GROUP_TOKEN,
        .quant_dtype = HUM_E4M3,
        .quant_group_size = GROUP,
        .group_scale_dtype = HUM_E4M3,
        .outputs = t->outputs,
        .group_scales = t->group_scales,
        .token_scales = t->token_scales,
    };
}

typedef void change_fn(struct hum_process_input_args *a, const struct tensors *t);

#define CHANGE(name, code)                                                      \
    static void name(struct hum_process_input_args *a, const struct tensors *t) \
    {                                                                           \
        (void)t;                                                                \
        code;                                                                   \
    }

/* clang-format off */
CHANGE(bad_activation, a->activation = (enum hum_activation)9)
CHANGE(bad_form, a->form = (enum hum_activation_form)3)
CHANGE(unary_swiglu, a->activation = HUM_ACT_SWIGLU)
CHANGE(infinite_alpha, a->activation = HUM_ACT_SWIGLU; a->form = HUM_ACT_BINARY_SPLIT;
       a->alpha = INFINITY)
CHANGE(negative_limit, a->activation = HUM_ACT_SWIGLU; a->form = HUM_ACT_BINARY_SPLIT;
       a->limit = -1.0f)
CHANGE(halved_width, a->form = HUM_ACT_BINARY_SPLIT)
CHANGE(bad_hadamard, a->hadamard_block_size = 24)
CHANGE(large_hadamard, a->hadamard_block_size = 1024)
CHANGE(wide_hadamard, a->hadamard_block_size = 128)
CHANGE(bad_mode, a->quant_mode = (enum hum_input_quant_mode)6)
CHANGE(disabled_with_dtype, a->quant_mode = HUM_QUANT_DISABLED)
CHANGE(bad_quant_dtype, a->quant_dtype = HUM_F16)
CHANGE(no_quant_dtype, a->quant_dtype = HUM_NONE)
CHANGE(no_group, a->quant_group_size = 0)
CHANGE(negative_group, a->quant_group_size = -16)
CHANGE(other_group, a->quant_group_size = 32; a->group_scales.shape[1] = 3)
CHANGE(group_without_mode, a->quant_mode = HUM_QUANT_DYNAMIC_TOKEN)
CHANGE(e8m0_with_token, a->group_scale_dtype = HUM_E8M0)
CHANGE(bad_scale_layout, a->scale_layout = (enum hum_scale_layout)3)
CHANGE(flat_mx, a->scale_layout = HUM_SCALES_MX_PACKED)
CHANGE(wide_mx, a->quant_mode = HUM_QUANT_DYNAMIC_GROUP; a->group_scale_dtype = HUM_F32;
       a->scale_layout = HUM_SCALES_MX_PACKED)
CHANGE(bad_layout, a->layout = (enum hum_input_layout)5)
CHANGE(zero_without_padding, a->zero_invalid = true)
CHANGE(missing_offsets, a->layout = HUM_LAYOUT_GROUPED)
CHANGE(unneeded_offsets, a->expert_layout = t->offsets)
CHANGE(ascending, a->layout = HUM_LAYOUT_GROUPED; a->expert_layout = t->offsets;
       memcpy(t->offsets.data, (const int64_t[]){0, 3, 2}, 24))
CHANGE(beyond_rows, a->layout = HUM_LAYOUT_GROUPED; a->expert_layout = t->offsets;
       memcpy(t->offsets.data, (const int64_t[]){0, 3, 5}, 24))
CHANGE(late_start, a->layout = HUM_LAYOUT_GROUPED; a->expert_layout = t->offsets;
       memcpy(t->offsets.data, (const int64_t[]){1, 3, 4}, 24))
CHANGE(wrong_padding, a->layout = HUM_LAYOUT_GROUPED_PADDED; a->expert_layout = t->counts;
       a->max_tokens = 3)
CHANGE(large_count, a->layout = HUM_LAYOUT_GROUPED_PADDED; a->expert_layout = t->counts;
       a->max_tokens = 2; memcpy(t->counts.data, (const int64_t[]){3, 0}, 16))
CHANGE(negative_count, a->layout = HUM_LAYOUT_GROUPED_PADDED; a->expert_layout = t->counts;
       a->max_tokens = 2; memcpy(t->counts.data, (const int64_t[]){-1, 0}, 16))
CHANGE(large_sum, a->layout = HUM_LAYOUT_GROUPED_PADDED; a->expert_layout = t->counts;
       a->max_tokens = 2; memcpy(t->counts.data, (const int64_t[]){2, 2}, 16);
       a->inputs.shape[0] = 3; a->inputs.bytes = 3 * WIDTH * 4)
CHANGE(missing_indices, a->layout = HUM_LAYOUT_PERMUTE)
CHANGE(narrow_scatter, a->layout = HUM_LAYOUT_SCATTER; a->indices = t->permutation)
CHANGE(negative_tokens, a->max_tokens = -1)
CHANGE(missing_static, a->quant_mode = HUM_QUANT_STATIC_TENSOR_DYNAMIC_GROUP;
       a->token_scales = (struct hum_tensor){0})
CHANGE(unneeded_static, a->static_scales = t->static_scales)
CHANGE(missing_token, a->token_scales = (struct hum_tensor){0})
CHANGE(missing_scales, a->group_scales = (struct hum_tensor){0})
CHANGE(integer_inputs, a->inputs.dtype = HUM_INT32)
CHANGE(few_rows, a->outputs.shape[0] = 3)
CHANGE(wrong_bytes, a->outputs.bytes--)
CHANGE(misaligned, a->outputs.data = (char *)t->outputs.data + 1)
CHANGE(wrong_output, a->outputs.dtype = HUM_UINT(8))
CHANGE(overlapping, a->outputs.data = t->inputs.data)
CHANGE(overlapping_scales, a->group_scales.data = t->token_scales.data)
CHANGE(huge, a->inputs.shape[0] = INT64_MAX)
CHANGE(no_data, a->inputs.data = NULL)
/* clang-format on */

static change_fn *const wrong[] = {
    bad_activation,
    bad_form,
    unary_swiglu,
    infinite_alpha,
    negative_limit,
    halved_width,
    bad_hadamard,
    large_hadamard,
    wide_hadamard,
    bad_mode,
    disabled_with_dtype,
    bad_quant_dtype,
    no_quant_dtype,
    no_group,
    negative_group,
    other_group,
    group_without_mode,
    e8m0_with_token,
    bad_scale_layout,
    flat_mx,
    wide_mx,
    bad_layout,
    zero_without_padding,
    missing_offsets,
    unneeded_offsets,
    ascending,
    beyond_rows,
    late_start,
    wrong_padding,
    large_count,
    negative_count,
    large_sum,
    missing_indices,
    narrow_scatter,
    negative_tokens,
    missing_static,
    unneeded_static,
    missing_token,
    missing_scales,
    integer_inputs,
    few_rows,
    wrong_bytes,
    misaligned,
    wrong_output,
    overlapping,
    overlapping_scales,
    huge,
    no_data,
};

START_TEST(refuses_with_a_sentence)
{
    struct tensors t = tensors_make();
    struct hum_process_input_args a = args_make(&t);

    wrong[_i](&a, &t);
    reason[0] = 0;
    ck_assert_int_eq(hum_cpu_ops.process_input(NULL, &a, reason), HUM_INVALID);
    ck_assert_int_ne(reason[0], 0);
    ck_assert(!strchr(reason, '\n'));
    ck_assert(tensor_untouched(&t.outputs) && tensor_untouched(&t.group_scales) &&
              tensor_untouched(&t.token_scales));
    tensors_free(&t);
}
END_TEST

CHANGE(nothing, (void)a)
CHANGE(offsets_64, a->layout = HUM_LAYOUT_GROUPED; a->expert_layout = t->offsets)
CHANGE(counts_64, a->layout = HUM_LAYOUT_GROUPED_PADDED; a->expert_layout = t->counts;
       a->max_tokens = 2)
CHANGE(permutation_32, a->layout = HUM_LAYOUT_PERMUTE; a->indices = t->permutation)
CHANGE(scattered, a->layout = HUM_LAYOUT_SCATTER; a->indices = t->scatter)
CHANGE(mx_packed, a->scale_layout = HUM_SCALES_MX_PACKED; a->group_scales = t->mx)
CHANGE(hadamard, a->hadamard_block_size = 64)
CHANGE(four_bits, a->quant_dtype = HUM_E2M1; a->outputs = t->packed)
CHANGE(bytes_of_four_bits, a->quant_dtype = HUM_E2M1; a->outputs = t->packed;
       a->outputs.dtype = HUM_UINT(8))

static change_fn *const right[] = {
    nothing,   offsets_64, counts_64, permutation_32,     scattered,
    mx_packed, hadamard,   four_bits, bytes_of_four_bits,
};

START_TEST(accepts)
{
    struct tensors t = tensors_make();
    struct hum_process_input_args a = args_make(&t);

    right[_i](&a, &t);
    ck_assert_msg(hum_cpu_ops.process_input(NULL, &a, reason) == HUM_OK, "%s", reason);
    ck_assert(!tensor_untouched(&a.outputs) && !tensor_untouched(&a.group_scales));
    ck_assert(tensor_guard_intact(&a.outputs) && tensor_guard_intact(&a.group_scales) &&
              tensor_guard_intact(&a.token_scales));
    tensors_free(&t);
}
END_TEST

/* A 64-bit permutation and a scatter of width 1 are the same. */
START_TEST(permutation_is_a_scatter)
{
    struct tensors t = tensors_make();
    struct hum_process_input_args a = args_make(&t);
    struct hum_tensor first;

    permutation_32(&a, &t);
    ck_assert_int_eq(hum_cpu_ops.process_input(NULL, &a, reason), HUM_OK);
    first = tensor_copy(&t.outputs);
    memset(t.outputs.data, POISON, t.outputs.bytes);
    scattered(&a, &t);
    ck_assert_int_eq(hum_cpu_ops.process_input(NULL, &a, reason), HUM_OK);
    ck_assert(tensor_equal(&first, &t.outputs));
    a.layout = HUM_LAYOUT_PERMUTE;
    a.indices.rank = 1;
    memset(t.outputs.data, POISON, t.outputs.bytes);
    ck_assert_int_eq(hum_cpu_ops.process_input(NULL, &a, reason), HUM_OK);
    ck_assert(tensor_equal(&first, &t.outputs));
    free(first.data);
    tensors_free(&t);
}
END_TEST

/* Scaling a row by 2^k scales its f32 scale and leaves its codes: nothing else depends on the size.
 * */
START_TEST(scaling_by_a_power_of_two)
{
    struct tensors t = tensors_make();
    struct hum_process_input_args a = args_make(&t);
    struct hum_tensor codes;
    float before[ROWS];

    a.quant_mode = HUM_QUANT_DYNAMIC_TOKEN;
    a.quant_group_size = 0;
    a.group_scales = (struct hum_tensor){0};
    ck_assert_int_eq(hum_cpu_ops.process_input(NULL, &a, reason), HUM_OK);
    codes = tensor_copy(&t.outputs);
    memcpy(before, t.token_scales.data, sizeof before);
    for (int i = 0; i < ROWS * WIDTH; i++)
        ((float *)t.inputs.data)[i] *= ldexpf(1.0f, 10 * (i / WIDTH) - 17);
    ck_assert_int_eq(hum_cpu_ops.process_input(NULL, &a, reason), HUM_OK);
    ck_assert(tensor_equal(&codes, &t.outputs));
    for (int i = 0; i < ROWS; i++)
        ck_assert(((float *)t.token_scales.data)[i] == ldexpf(before[i], 10 * i - 17));
    free(codes.data);
    tensors_free(&t);
}
END_TEST

/* The token scale: the smallest power of two that brings the largest group scale to 448 or less. An
 * input of 448 x raw makes the raw scale of its group. */
static const struct {
    float raw, token;
    int scale, data; /* codes of e4m3 */
} tokens[] = {
    {448.0f, 1.0f, 0x7e, 0x7e},     {1.75f, 0x1p-8f, 0x7e, 0x7e},
    {1.875f, 0x1p-7f, 0x77, 0x7e},  {1.0f, 0x1p-8f, 0x78, 0x7e},
    {480.0f, 2.0f, 0x77, 0x7e},     {512.0f, 2.0f, 0x78, 0x7e},
    {0x1p90f, 0x1p82f, 0x78, 0x7e}, {0x1.cp-80f, 0x1p-88f, 0x7e, 0x7e},
    {1.0625f, 0x1p-8f, 0x78, 0x7e}, /* ties of 3 mantissa bits: to 1, and 425.6 of 1.25 */
    {1.1875f, 0x1p-8f, 0x7a, 0x7d},
};

START_TEST(token_scales)
{
    struct tensors t = tensors_make();
    struct hum_process_input_args a = args_make(&t);

    memset(t.inputs.data, 0, t.inputs.bytes);
    ((float *)t.inputs.data)[3] = tokens[_i].raw * 448.0f;
    ck_assert_int_eq(hum_cpu_ops.process_input(NULL, &a, reason), HUM_OK);
    ck_assert(((float *)t.token_scales.data)[0] == tokens[_i].token);
    ck_assert_int_eq(((uint8_t *)t.group_scales.data)[0], tokens[_i].scale);
    ck_assert_int_eq(((uint8_t *)t.outputs.data)[3], tokens[_i].data);
    tensors_free(&t);
}
END_TEST

/* Also where the groups after it are numbers; the next row is not touched by it. */
START_TEST(nan_reaches_the_token_scale)
{
    struct tensors t = tensors_make();
    struct hum_process_input_args a = args_make(&t);

    ((float *)t.inputs.data)[0] = NAN;
    ck_assert_int_eq(hum_cpu_ops.process_input(NULL, &a, reason), HUM_OK);
    ck_assert(isnan(((float *)t.token_scales.data)[0]));
    ck_assert_int_eq(((uint8_t *)t.group_scales.data)[0], 0x7f);
    ck_assert(isfinite(((float *)t.token_scales.data)[1]));
    tensors_free(&t);
}
END_TEST

START_TEST(no_rows_and_no_columns)
{
    for (int i = 0; i < 2; i++) {
        struct hum_process_input_args a = {.quant_mode = HUM_QUANT_DYNAMIC_TOKEN,
                                           .quant_dtype = HUM_INT8};
        const int64_t rows = i ? 2 : 0, cols = i ? 0 : 64;
        struct hum_hadamard_args h = {.block_size = 32};

        a.inputs = tensor_make(HUM_BF16, 2, rows, cols, 0);
        a.outputs = tensor_make(HUM_INT8, 2, rows, cols, 0);
        a.token_scales = tensor_make(HUM_F32, 1, rows, 0, 0);
        ck_assert_int_eq(hum_cpu_ops.process_input(NULL, &a, reason), HUM_OK);
        h.inputs = a.inputs;
        h.outputs = tensor_make(HUM_BF16, 2, rows, cols, 0);
        ck_assert_int_eq(hum_cpu_ops.hadamard(NULL, &h, reason), HUM_OK);
        ck_assert(tensor_guard_intact(&a.outputs) && tensor_guard_intact(&a.token_scales) &&
                  tensor_guard_intact(&h.outputs));
        for (int64_t row = 0; row < rows; row++)
            ck_assert(((float *)a.token_scales.data)[row] == 1e-30f);
        free(a.inputs.data);
        free(a.outputs.data);
        free(a.token_scales.data);
        free(h.outputs.data);
    }
}
END_TEST

START_TEST(refuses_hadamard)
{
    struct tensors t = tensors_make();
    struct hum_tensor out = tensor_make(HUM_F32, 2, ROWS, WIDTH, 0);
    const struct hum_hadamard_args good = {t.inputs, out, 64};
    struct hum_hadamard_args bad[6];

    for (int i = 0; i < COUNT(bad); i++)
        bad[i] = good;
    bad[0].block_size = 0;
    bad[1].block_size = 128;
    bad[2].block_size = 48;
    bad[3].outputs.dtype = HUM_BF16;
    bad[4].outputs.data = t.inputs.data;
    bad[5].inputs.rank = 1;
    for (int i = 0; i < COUNT(bad); i++)
        ck_assert_int_eq(hum_cpu_ops.hadamard(NULL, &bad[i], reason), HUM_INVALID);
    ck_assert_int_eq(hum_cpu_ops.hadamard(NULL, NULL, reason), HUM_INVALID);
    ck_assert_int_eq(hum_cpu_ops.process_input(NULL, NULL, reason), HUM_INVALID);
    ck_assert(tensor_untouched(&out));
    free(out.data);
    tensors_free(&t);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cpu_ops_contract");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_loop_test(tc, refuses_with_a_sentence, 0, COUNT(wrong));
    tcase_add_loop_test(tc, accepts, 0, COUNT(right));
    tcase_add_test(tc, permutation_is_a_scatter);
    tcase_add_test(tc, scaling_by_a_power_of_two);
    tcase_add_loop_test(tc, token_scales, 0, COUNT(tokens));
    tcase_add_test(tc, nan_reaches_the_token_scale);
    tcase_add_test(tc, no_rows_and_no_columns);
    tcase_add_test(tc, refuses_hadamard);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
