/* The check `graph`: right where replays are, and each way in which they can be wrong is seen. */
#include "harness/test/case_run.h"
#include "harness/test/recorder.h"

#include <stdlib.h>

#define TILE     " block_shape=16x64x64 warp_shape=16x32x64"
#define STREAM_K TILE " use_stream_k=true num_sms=5"
#define INDEXED  " gemm_type=indexed num_experts=4 m=32"
#define OFFSETS  " gemm_type=grouped_contiguous num_experts=4 m=32"
#define COUNTS   " gemm_type=grouped_masked num_experts=4 m=32"
#define OP       "check=graph family="

/* clang-format off */
static const struct {
    enum recorder_fault fault;
    enum verdict verdict;
    const char *text, *reason;
} cases[] = {
    {RECORDER_RIGHT, VERDICT_PASS, "", ""},
    {RECORDER_RIGHT, VERDICT_PASS, " m=1", ""},
    {RECORDER_RIGHT, VERDICT_PASS, " m=17 has_bias=true" STREAM_K, ""},
    {RECORDER_RIGHT, VERDICT_PASS, " a_dtype=e4m3 input_scale_group_size=128 scale_layout=m_major", ""},
    {RECORDER_RIGHT, VERDICT_PASS, INDEXED " top_k=2", ""},
    {RECORDER_RIGHT, VERDICT_PASS, INDEXED " routing=duplicate top_k=2", ""},
    {RECORDER_RIGHT, VERDICT_PASS, INDEXED " routing=missing", ""},
    {RECORDER_RIGHT, VERDICT_PASS, INDEXED " routing=single m=1", ""},
    {RECORDER_RIGHT, VERDICT_PASS, OFFSETS " routing=skewed", ""},
    {RECORDER_RIGHT, VERDICT_PASS, OFFSETS " routing=empty expert_layout_dtype=int64", ""},
    {RECORDER_RIGHT, VERDICT_PASS, COUNTS " routing=spare", ""},
    {RECORDER_RIGHT, VERDICT_PASS, COUNTS " num_experts=1 routing=single", ""},
    {RECORDER_STALE_INPUTS, VERDICT_FAIL, "", "in a replay with other inputs"},
    {RECORDER_STALE_INPUTS, VERDICT_FAIL, " m=1", "in a replay with other inputs"},
    {RECORDER_STALE_INPUTS, VERDICT_FAIL, " m=17" STREAM_K, "in a replay with other inputs"},
    {RECORDER_STALE_INPUTS, VERDICT_FAIL, INDEXED, "in a replay with other inputs"},
    {RECORDER_STALE_INPUTS, VERDICT_FAIL, OFFSETS, "in a replay with other inputs"},
    {RECORDER_STALE_INPUTS, VERDICT_FAIL, OFFSETS " routing=single", "in a replay with other inputs"},
    {RECORDER_STALE_INPUTS, VERDICT_FAIL, COUNTS, "in a replay with other inputs"},
    {RECORDER_STALE_SCALES, VERDICT_FAIL, " a_dtype=e4m3 input_scale_group_size=128", "in a replay"},
    {RECORDER_STALE_ROUTING, VERDICT_FAIL, INDEXED, "in a replay with other inputs"},
    {RECORDER_STALE_ROUTING, VERDICT_FAIL, INDEXED " routing=single", "in a replay with other inputs"},
    {RECORDER_STALE_ROUTING, VERDICT_FAIL, OFFSETS, "in a replay"},
    {RECORDER_STALE_ROUTING, VERDICT_FAIL, COUNTS " routing=skewed", "a replay"},
    {RECORDER_STALE_ROUTING, VERDICT_PASS, "", ""}, /* there is none */
    {RECORDER_OLD_TILE, VERDICT_FAIL, TILE, "in a replay with other inputs"},
    {RECORDER_OLD_TILE, VERDICT_FAIL, INDEXED TILE, "in a replay with other inputs"},
    {RECORDER_NOTHING, VERDICT_FAIL, "", "in a replay with other inputs"},
    {RECORDER_ONCE, VERDICT_FAIL, "", "in the second replay"},
    {RECORDER_LOCK, VERDICT_FAIL, " m=17" STREAM_K, "a replay: the kernel wrote outside its output: locks"},
    {RECORDER_BESIDE, VERDICT_FAIL, "", "a replay: the kernel wrote outside its output: behind outputs"},
    {RECORDER_REFUSES, VERDICT_FAIL, "", "replay: nothing is recorded"},
    {RECORDER_UNABLE, VERDICT_SKIP, "", "capture: this launch cannot be recorded"},
};

/* Of operations. */
static const char *const operations[] = {
    OP "quant_weight weight_scale_group_size=32 m=16",
    OP "dequant_weight b_dtype=e2m1 m=256",
    OP "pack bits=3 m=16",
    OP "process_input input_quant_mode=dynamic_token m=9",
    OP "process_input input_quant_mode=dynamic_group scale_layout=m_major m=9",
    OP "process_input input_quant_mode=dynamic_token activation=silu activation_form=split m=9",
    OP "process_input input_quant_mode=disabled activation=gelu m=9",
    OP "process_input layout=grouped_padded num_experts=3 m=24",
    OP "process_input layout=permute m=9",
    OP "hadamard hadamard_block_size=32 m=3",
    OP "moe_sum top_k=2 m=5",
    OP "moe_sum top_k=2 m=5 routing=uniform num_experts=8",
    OP "process_mxfp4 a_dtype=e4m3 m=16",
};
/* clang-format on */

#define COUNT(table) ((int)(sizeof(table) / sizeof(table)[0]))

START_TEST(products)
{
    char text[400];

    (void)snprintf(text, sizeof text, "check=graph%s", cases[_i].text);
    expect_verdict(recorder_provider(cases[_i].fault), text, cases[_i].verdict, cases[_i].reason);
}
END_TEST

START_TEST(a_provider_that_records_nothing)
{
    expect_verdict(&hum_cpu_provider, "check=graph", VERDICT_SKIP, "cpu cannot record launches");
    expect_verdict(&hum_cpu_provider, OP "hadamard hadamard_block_size=32", VERDICT_SKIP,
                   "cpu cannot record launches");
}
END_TEST

START_TEST(right_operations)
{
    expect_verdict(recorder_provider(RECORDER_RIGHT), operations[_i], VERDICT_PASS, "");
}
END_TEST

START_TEST(wrong_operations)
{
    const bool in_place = strstr(operations[_i], "mxfp4") != NULL;

    if (!in_place) /* what it reads is what it writes: there is no copy to take instead */
        expect_verdict(recorder_provider(RECORDER_STALE_INPUTS), operations[_i], VERDICT_FAIL,
                       "in a replay with other inputs");
    expect_verdict(recorder_provider(RECORDER_NOTHING), operations[_i], VERDICT_FAIL,
                   "in a replay with other inputs");
    expect_verdict(recorder_provider(RECORDER_ONCE), operations[_i], VERDICT_FAIL,
                   "in the second replay");
    expect_verdict(recorder_provider(RECORDER_UNABLE), operations[_i], VERDICT_SKIP, "recorded");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("graph");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_loop_test(tc, products, 0, COUNT(cases));
    tcase_add_test(tc, a_provider_that_records_nothing);
    tcase_add_loop_test(tc, right_operations, 0, COUNT(operations));
    tcase_add_loop_test(tc, wrong_operations, 0, COUNT(operations));
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
