#include "harness/kernel/input_case.h"
#include "harness/test/case_run.h"
#include "harness/test/wrong_inputs.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct hum_ops ops_with(input_fn *f)
{
    struct hum_ops ops = hum_cpu_ops;

    ops.process_input = f;
    return ops;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void expect(input_fn *f, const char *text, enum verdict verdict, const char *reason)
{
    const struct hum_ops ops = ops_with(f);
    struct hum_provider p = hum_cpu_provider;
    char all[400];

    p.ops = &ops;
    (void)snprintf(all, sizeof all, "family=process_input %s", text);
    expect_verdict(&p, all, verdict, reason);
}

static const struct {
    input_fn *f;
    const char *text, *reason;
} faults[] = {
    {rows_swapped, "check=exact m=9 k=64", "differ"},
    {rows_swapped, "check=exact m=9 k=64 layout=scatter", "outputs"},
    {rows_swapped, "check=ulp m=9 k=64 input_quant_mode=disabled activation=silu", "differ"},
    {groups_swapped, "check=exact m=9 k=256 input_quant_mode=dynamic_group quant_group_size=32",
     "differ"},
    {groups_swapped,
     "check=exact m=9 k=256 input_quant_mode=dynamic_group quant_group_size=32 activation=gelu",
     "differ"},
    {groups_swapped,
     "check=exact m=9 k=256 input_quant_mode=dynamic_group quant_group_size=32 "
     "scale_layout=mx_packed group_scale_dtype=e8m0",
     "differ"},
    {group_index_lost,
     "check=exact m=9 k=256 input_quant_mode=dynamic_group quant_group_size=32 "
     "group_scale_dtype=e4m3 quant_dtype=e2m1",
     "differ"},
    {token_scale_stale, "check=exact m=9 k=64", "differ"},
    {token_scale_stale,
     "check=exact m=9 k=64 input_quant_mode=dynamic_group_token quant_group_size=16 "
     "quant_dtype=e2m1",
     "differ"},
    {e8m0_floored,
     "check=exact m=9 k=256 input_quant_mode=dynamic_group quant_group_size=32 "
     "group_scale_dtype=e8m0",
     "differ"},
    {zero_sign_lost, "check=exact m=17 k=256 input_quant_mode=dynamic_group quant_group_size=32",
     "differ"},
    {zero_sign_lost, "check=exhaustive m=256 k=256 input_quant_mode=static_tensor", "differ"},
    {not_saturated, "check=exact m=17 k=256 input_quant_mode=static_tensor", "differ"},
    {not_saturated, "check=special m=17 k=256 input_quant_mode=static_tensor", "differ"},
    {ties_away, "check=exact m=17 k=256 input_quant_mode=static_tensor input_dtype=f32", "differ"},
    {ties_away,
     "check=exact m=17 k=256 input_quant_mode=static_tensor input_dtype=f32 quant_dtype=int8",
     "differ"},
    {odd_column_low, "check=exact m=9 k=64 quant_dtype=int4", "differ"},
    {without_hadamard, "check=exact m=9 k=64 hadamard_block_size=32", "differ"},
    {last_row_left, "check=guard m=9 k=64", "not written"},
    {last_row_left, "check=exact m=9 k=64", "differ"},
    {last_row_written, "check=exact m=9 k=64 layout=grouped num_experts=3 routing=spare",
     "not to be written"},
    {last_row_written, "check=guard m=9 k=64 layout=grouped num_experts=3 routing=spare",
     "not to be written"},
    {activation_rough,
     "check=ulp m=9 k=64 input_dtype=f32 input_quant_mode=disabled activation=silu", "differ"},
    {activation_rough, "check=exact m=9 k=64 activation=gelu_tanh", "differ"},
    {unsteady, "check=deterministic m=9 k=64", "from one launch to the next"},
    {writes_first, "check=contract m=9 k=64", "although it refused"},
    {takes_any_mode, "check=contract m=9 k=64", "it was accepted"},
    {writes_behind, "check=guard m=9 k=64", "wrote"},
    {wrong_when_close, "check=alias m=9 k=64", "beside"},
    {overlap_taken, "check=alias m=9 k=64", "must refuse"},
};

START_TEST(test_fault)
{
    expect(faults[_i].f, faults[_i].text, VERDICT_FAIL, faults[_i].reason);
}
END_TEST

static const char *const right[] = {
    "check=exact m=9 k=64",
    "check=exact m=9 k=64 layout=permute expert_layout_dtype=int64",
    "check=exact m=9 k=64 layout=scatter input_quant_mode=dynamic_group_token quant_group_size=16 "
    "quant_dtype=e2m1 scale_layout=mx_packed",
    "check=exact m=33 k=96 layout=grouped_padded num_experts=5 zero_invalid=true "
    "input_quant_mode=dynamic_group quant_group_size=40 group_scale_dtype=e4m3",
    "check=exact m=33 k=96 layout=grouped num_experts=5 routing=missing input_dtype=f16 "
    "quant_dtype=e5m2",
    "check=exact m=17 k=64 activation=swiglu activation_form=interleaved swiglu=gpt_oss",
    "check=exact m=17 k=64 activation=relu2 activation_form=split quant_dtype=int8",
    "check=exact m=17 k=512 hadamard_block_size=512 activation=silu input_quant_mode=disabled "
    "input_dtype=f16",
    "check=ulp m=17 k=64 activation=gelu input_quant_mode=disabled input_dtype=f16 layout=permute",
    "check=ulp m=17 k=64 activation=gelu_tanh activation_form=split input_quant_mode=disabled "
    "input_dtype=f32",
    "check=special m=17 k=64 input_quant_mode=dynamic_group quant_group_size=16 "
    "group_scale_dtype=e8m0",
    "check=special m=17 k=64 activation=relu2 input_quant_mode=static_tensor_dynamic_group "
    "quant_group_size=16",
    "check=exhaustive m=256 k=256 input_dtype=f16 input_quant_mode=static_tensor quant_dtype=e3m4",
    "check=exhaustive m=256 k=256 input_dtype=bf16 input_quant_mode=static_tensor quant_dtype=int8",
    "check=exhaustive m=256 k=256 input_dtype=f16 input_quant_mode=disabled activation=silu",
    "check=guard m=9 k=64 layout=scatter",
    "check=alias m=9 k=64",
    "check=deterministic m=9 k=64",
    "check=contract m=9 k=64 layout=grouped_padded num_experts=2",
    "check=contract m=9 k=64 layout=permute activation=swiglu activation_form=split",
    "check=contract m=9 k=64 layout=grouped num_experts=2 input_quant_mode=dynamic_group_token "
    "quant_group_size=16",
};

START_TEST(test_right)
{
    expect(op_process_input, right[_i], VERDICT_PASS, "");
}
END_TEST

START_TEST(test_within_the_bound)
{
    expect(activation_fair,
           "check=ulp m=9 k=64 input_dtype=f32 input_quant_mode=disabled activation=silu",
           VERDICT_PASS, "");
}
END_TEST

/* All rows and groups alike, or no ties: the data must not be believed. */
START_TEST(test_untrusted)
{
    expect(op_process_input, "check=exact m=1 k=1 quant_dtype=e4m3", VERDICT_UNTRUSTED,
           "in the middle of two codes");
}
END_TEST

START_TEST(test_without_operation)
{
    struct hum_provider p = hum_cpu_provider;

    p.ops = NULL;
    expect_verdict(&p, "family=process_input check=exact m=9 k=64", VERDICT_SKIP,
                   "has no process_input");
}
END_TEST

/* The words of axes are cast to the enums of reference/inputs.h and reference/activation.h. */
START_TEST(test_words)
{
    static const struct {
        enum axis_id axis;
        int value;
        const char *word;
    } words[] = {
        {AX_QUANT_MODE, REF_INPUT_DISABLED, "disabled"},
        {AX_QUANT_MODE, REF_INPUT_STATIC_TENSOR, "static_tensor"},
        {AX_QUANT_MODE, REF_INPUT_DYNAMIC_TOKEN, "dynamic_token"},
        {AX_QUANT_MODE, REF_INPUT_DYNAMIC_GROUP, "dynamic_group"},
        {AX_QUANT_MODE, REF_INPUT_STATIC_TENSOR_DYNAMIC_GROUP, "static_tensor_dynamic_group"},
        {AX_QUANT_MODE, REF_INPUT_DYNAMIC_GROUP_TOKEN, "dynamic_group_token"},
        {AX_SCALE_LAYOUT, REF_SCALES_ROW_MAJOR, "row_major"},
        {AX_SCALE_LAYOUT, REF_SCALES_M_MAJOR, "m_major"},
        {AX_SCALE_LAYOUT, REF_SCALES_MX_PACKED, "mx_packed"},
        {AX_LAYOUT, REF_LAYOUT_NORMAL, "normal"},
        {AX_LAYOUT, REF_LAYOUT_GROUPED, "grouped"},
        {AX_LAYOUT, REF_LAYOUT_PERMUTE, "permute"},
        {AX_LAYOUT, REF_LAYOUT_GROUPED_PADDED, "grouped_padded"},
        {AX_LAYOUT, REF_LAYOUT_SCATTER, "scatter"},
        {AX_ACTIVATION, REF_ACTIVATION_NONE, "none"},
        {AX_ACTIVATION, REF_ACTIVATION_SILU, "silu"},
        {AX_ACTIVATION, REF_ACTIVATION_GELU, "gelu"},
        {AX_ACTIVATION, REF_ACTIVATION_GELU_TANH, "gelu_tanh"},
        {AX_ACTIVATION, REF_ACTIVATION_RELU2, "relu2"},
        {AX_ACTIVATION, REF_ACTIVATION_SWIGLU, "swiglu"},
        {AX_FORM, REF_ACTIVATION_UNARY, "unary"},
        {AX_FORM, REF_ACTIVATION_SPLIT, "split"},
        {AX_FORM, REF_ACTIVATION_INTERLEAVED, "interleaved"},
    };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        ck_assert_str_eq(axes[words[i].axis].words[words[i].value], words[i].word);
}
END_TEST

/* Every code of a 16-bit format is among the inputs, once. */
START_TEST(test_all_codes)
{
    static unsigned char seen[1 << 16];
    struct input_case c;
    struct arena arena;
    int64_t v[AX_COUNT];

    ck_assert(arena_init(&arena, (size_t)64 << 20));
    make_case("family=process_input check=exhaustive m=256 k=256 input_quant_mode=static_tensor",
              v);
    ck_assert_ptr_null(input_case_make(v, &arena, &c));
    for (size_t i = 0; i < sizeof seen; i++)
        seen[c.inputs[2 * i] | c.inputs[2 * i + 1] << 8]++;
    for (size_t i = 0; i < sizeof seen; i++)
        ck_assert_msg(seen[i] == 1, "code %zu occurs %d times", i, seen[i]);
    arena_free(&arena);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("op_inputs");
    TCase *values = tcase_create("all");

    tcase_add_loop_test(values, test_fault, 0, (int)(sizeof faults / sizeof faults[0]));
    tcase_add_loop_test(values, test_right, 0, (int)(sizeof right / sizeof right[0]));
    tcase_add_test(values, test_within_the_bound);
    tcase_add_test(values, test_untrusted);
    tcase_add_test(values, test_without_operation);
    tcase_add_test(values, test_words);
    tcase_add_test(values, test_all_codes);
    suite_add_tcase(suite, values);
    return suite;
}

int main(void)
{
    SRunner *runner = srunner_create(make_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
