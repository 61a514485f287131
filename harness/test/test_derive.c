/* Kernel suites of configurations. The expected sizes are worked out by hand from the models'
 * config.json, not from the model files. */
#include "harness/eval/config_list.h"
#include "harness/kernel/plan.h"
#include "harness/kernel/runner.h"
#include "harness/test/derive_world.h"
#include "kernels/cpu/cpu.h"

/* The suite of a configuration file of CONFIGS, at true sizes or cut. */
static const struct suite *suite_of(const char *name, bool full)
{
    const struct derive_options how = {.full = full};
    struct suite *suite = ARENA_NEW(&arena, 1, struct suite);
    struct eval_config config;
    struct model model;
    struct derived derived;

    load_config(name, &config);
    if (derive_model(&config, NULL, &arena, &model, &errs) ||
        derive_suite(&model, &config, &how, &arena, &derived, &errs) ||
        suite_load_text(name, derived.text, derived.size, &arena, suite, &errs))
        fail_with_errors(name);
    return suite;
}

/* ---- sizes and formats ----------------------------------------------------------------------- */

/* clang-format off */
static const struct {
    const char *config, *entry, *axis, *values;
} at_true_size[] = {
    /* 2 x 2880 columns, gate and up interleaved, from 2880; four of 32 experts */
    {"gpt-oss-20b-humming", "experts.gate_up", "n", "5760"},
    {"gpt-oss-20b-humming", "experts.gate_up", "k", "2880"},
    {"gpt-oss-20b-humming", "experts.gate_up", "num_experts", "32"},
    {"gpt-oss-20b-humming", "experts.gate_up", "top_k", "4"},
    {"gpt-oss-20b-humming", "experts.gate_up", "gemm_type", "indexed"},
    {"gpt-oss-20b-humming", "experts.gate_up", "a_dtype", "bf16"},
    {"gpt-oss-20b-humming", "experts.gate_up", "b_dtype", "e2m1"},
    {"gpt-oss-20b-humming", "experts.gate_up", "bs_dtype", "e8m0"},
    {"gpt-oss-20b-humming", "experts.gate_up", "weight_scale_group_size", "32"},
    {"gpt-oss-20b-humming", "experts.gate_up", "has_bias", "true"},
    {"gpt-oss-20b-humming", "experts.gate_up", "m", "1,8,64,512,2048"},
    /* to multiples of 256 and 128 */
    {"gpt-oss-20b-humming", "experts.gate_up", "pad_shape_n", "128"},
    {"gpt-oss-20b-humming", "experts.gate_up", "pad_shape_k", "64"},
    /* a row an expert of each token */
    {"gpt-oss-20b-humming", "experts.down", "n", "2880"},
    {"gpt-oss-20b-humming", "experts.down", "m", "4,32,256,2048,8192"},
    {"gpt-oss-20b-humming", "experts.down", "top_k", "1"},
    {"gpt-oss-20b-humming", "experts.activation", "activation", "swiglu"},
    {"gpt-oss-20b-humming", "experts.activation", "activation_form", "interleaved"},
    {"gpt-oss-20b-humming", "experts.activation", "swiglu", "gpt_oss"},
    {"gpt-oss-20b-humming", "experts.activation", "input_quant_mode", "disabled"},
    {"gpt-oss-20b-humming", "experts.activation", "k", "2880"},
    {"gpt-oss-20b-humming-act-fp8", "experts.gate_up", "a_dtype", "e4m3"},
    {"gpt-oss-20b-humming-act-fp8", "experts.gate_up", "c_dtype", "bf16"},
    {"gpt-oss-20b-humming-act-fp8", "experts.gate_up", "input_scale_group_size", "0"},
    {"gpt-oss-20b-humming-act-fp8", "experts.activation", "input_quant_mode", "dynamic_token"},
    {"gpt-oss-20b-humming-act-fp8", "experts.activation", "quant_dtype", "e4m3"},
    {"gpt-oss-20b-humming-act-fp8", "input", "k", "2880"},
    /* (32 + 2 x 4) heads of 128 from 2048 */
    {"Qwen3-30B-A3B-MXFP4A16-humming", "attn.qkv", "n", "5120"},
    {"Qwen3-30B-A3B-MXFP4A16-humming", "attn.qkv", "k", "2048"},
    {"Qwen3-30B-A3B-MXFP4A16-humming", "attn.o", "n", "2048"},
    {"Qwen3-30B-A3B-MXFP4A16-humming", "attn.o", "k", "4096"},
    {"Qwen3-30B-A3B-MXFP4A16-humming", "attn.o", "has_bias", "false"},
    {"Qwen3-30B-A3B-MXFP4A16-humming", "experts.gate_up", "n", "1536"},
    {"Qwen3-30B-A3B-MXFP4A16-humming", "experts.down", "k", "768"},
    {"Qwen3-30B-A3B-MXFP4A16-humming", "experts.pipeline", "num_experts", "128"},
    {"Qwen3-30B-A3B-MXFP4A16-humming", "experts.sum", "k", "2048"},
    {"Qwen3-30B-A3B-MXFP4A16-humming-act-fp8-block", "attn.o", "input_scale_group_size", "128"},
    {"Qwen3-30B-A3B-MXFP4A16-humming-act-fp8-block", "input", "input_quant_mode", "dynamic_group"},
    {"Qwen3-30B-A3B-MXFP4A16-humming-act-fp8-block", "input", "quant_group_size", "128"},
    {"Qwen3-30B-A3B-MXFP4A16-humming-act-fp8-block", "weights.fuse", "a_dtype", "e4m3"},
    {"Qwen3-30B-A3B-FP8-block-humming", "experts.down", "weight_scale_type", "block"},
    {"Qwen3-30B-A3B-FP8-block-humming", "experts.down", "weight_scale_group_size", "128"},
    {"Qwen3-30B-A3B-FP8-block-humming", "experts.down", "weight_scale_group_size_n", "128"},
    /* two GPUs, each with half of the experts; rows of all experts one after the other */
    {"Qwen3-30B-A3B-FP8-block-humming-deepep-ht-grouped", "experts.gate_up", "num_experts", "64"},
    {"Qwen3-30B-A3B-FP8-block-humming-deepep-ht-grouped", "experts.gate_up", "n", "1536"},
    {"Qwen3-30B-A3B-FP8-block-humming-deepep-ht-grouped", "experts.gate_up", "m",
     "8,64,512,4096,16384"},
    {"Qwen3-30B-A3B-FP8-block-humming-deepep-ht-grouped", "experts.gate_up", "gemm_type",
     "grouped_contiguous"},
    {"Qwen3-30B-A3B-FP8-block-humming-deepep-ht-grouped", "experts.sum", "num_experts", "128"},
    {"Qwen3-30B-A3B-FP8-block-humming-deepep-ht-grouped", "experts.sum", "routing", "missing"},
    {"Qwen3-30B-A3B-online-int3-zp-g32-humming", "mlp.gate_up", NULL, NULL},
    {"Qwen3-30B-A3B-online-int3-zp-g32-humming", "experts.down", "b_dtype", "uint3"},
    {"Qwen3-30B-A3B-online-int3-zp-g32-humming", "experts.down", "zero_point", "int"},
    {"Qwen3-30B-A3B-online-int3-zp-g32-humming", "weights.quantize", "weight_scale_group_size",
     "32"},
    {"Qwen3-30B-A3B-online-int3-zp-g32-humming", "weights.quantize", "zero_point", "int"},
    {"Qwen3-30B-A3B-online-float7e3m3-humming", "attn.qkv", "b_dtype", "float7e3m3"},
    /* the largest power of two in 2048, up to 512; and in 768 */
    {"Qwen3-30B-A3B-online-int4-w4a4-hadamard-humming", "input", "hadamard_block_size", "512"},
    {"Qwen3-30B-A3B-online-int4-w4a4-hadamard-humming", "experts.activation",
     "hadamard_block_size", "256"},
    {"Qwen3-30B-A3B-online-int4-w4a4-hadamard-humming", "attn.o", "a_dtype", "int4"},
    {"Qwen3-30B-A3B-online-int4-w4a4-hadamard-humming", "attn.o", "b_dtype", "int4"},
    /* no gate: one matrix of 1856 columns, six of 128 experts */
    {"NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4-humming", "experts.up", "n", "1856"},
    {"NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4-humming", "experts.up", "k", "2688"},
    {"NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4-humming", "experts.up", "top_k", "6"},
    {"NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4-humming", "experts.up", "weight_scale_2_type", "tensor"},
    {"NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4-humming", "experts.up", "weight_scale_group_size", "16"},
    {"NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4-humming", "experts.activation", "activation", "relu2"},
    {"NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4-humming", "experts.activation", "activation_form",
     "unary"},
    {"NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4-humming", "mamba.in", NULL, NULL},
    {"Qwen1.5-32B-Chat-AWQ-humming-act-int8", "attn.qkv", "n", "7168"},
    {"Qwen1.5-32B-Chat-AWQ-humming-act-int8", "attn.qkv", "has_bias", "true"},
    {"Qwen1.5-32B-Chat-AWQ-humming-act-int8", "attn.o", "has_bias", "false"},
    {"Qwen1.5-32B-Chat-AWQ-humming-act-int8", "mlp.gate_up", "n", "54784"},
    {"Qwen1.5-32B-Chat-AWQ-humming-act-int8", "mlp.down", "k", "27392"},
    {"Qwen1.5-32B-Chat-AWQ-humming-act-int8", "mlp.down", "b_dtype", "uint4"},
    {"Qwen1.5-32B-Chat-AWQ-humming-act-int8", "mlp.down", "c_dtype", "f16"},
    {"Qwen2.5-VL-3B-Instruct-quantized.w8a8-humming", "mlp.down", "b_dtype", "uint8"},
    {"Qwen2.5-VL-3B-Instruct-quantized.w8a8-humming-act-int8", "mlp.down", "b_dtype", "int8"},
    /* the checkpoint's 16 bits are not known */
    {"Qwen3-30B-A3B-GPTQ-Int4-humming", "attn.o", "a_dtype", "f16,bf16"},
    {"Qwen3-30B-A3B-AWQ-humming", "attn.o", "a_dtype", "bf16"},
    /* query and gate and 2 x 2 heads of 256: (2 x 16 + 4) x 256; keys 2 x 2048, values and z 2 x 4096 */
    {"Qwen3.5-35B-A3B-int6wc-hadamard-humming", "attn.qkv", "n", "9216"},
    {"Qwen3.5-35B-A3B-int6wc-hadamard-humming", "attn.o", "k", "4096"},
    {"Qwen3.5-35B-A3B-int6wc-hadamard-humming", "linear_attn.in", "n", "12288"},
    {"Qwen3.5-35B-A3B-int6wc-hadamard-humming", "linear_attn.ba", "n", "64"},
    {"Qwen3.5-35B-A3B-int6wc-hadamard-humming", "linear_attn.out", "k", "4096"},
    {"Qwen3.5-35B-A3B-int6wc-hadamard-humming", "shared.gate_up", "n", "1024"},
    {"Qwen3.5-35B-A3B-experts-int8-humming", "experts.down", "b_dtype", "uint8"},
    {"Qwen3.5-35B-A3B-experts-int8-humming", "experts.down", "weight_scale_type", "channel"},
    {"Qwen3.5-35B-A3B-experts-int8-humming", "attn.qkv", NULL, NULL},
    {"Qwen3.5-35B-A3B-experts-int8-humming-act-int8", "experts.down", "b_dtype", "int8"},
};
/* clang-format on */

START_TEST(true_sizes_and_formats)
{
    const char *config = at_true_size[_i].config, *name = at_true_size[_i].entry;
    const char *axis = at_true_size[_i].axis;
    const struct entry *e = entry_of(suite_of(config, true), name);
    const char *got;

    if (!axis) {
        ck_assert_msg(!e, "%s has %s", config, name);
        return;
    }
    ck_assert_msg(e != NULL, "%s has no %s", config, name);
    got = values_of(e, axis);
    ck_assert_msg(!strcmp(got, at_true_size[_i].values), "%s %s: %s is %s, not %s", config, name,
                  axis, got, at_true_size[_i].values);
}
END_TEST

/* ---- every configuration --------------------------------------------------------------------- */

/* What nobody here has read. */
static const char *const unknown_weights[] = {"Qwen2-1.5B-Instruct-FP8W8-humming-act-fp8",
                                              "Qwen2-1.5B-Instruct-FP8W8-humming",
                                              "Qwen3-30B-A3B-Fp8-v1-humming",
                                              "Qwen3-4B-mixed-quant-RTN-humming",
                                              "Qwen3-4B-mixed-quant-RTN-no-w4a4-humming",
                                              "Qwen3.5-4B-quantized.w4a16-humming",
                                              "Qwen3.6-35B-A3B-AWQ-humming"};

static bool is_unknown(const char *name)
{
    for (int i = 0; i < COUNT(unknown_weights); i++)
        if (!strcmp(unknown_weights[i], name))
            return true;
    return false;
}

static void no_stage(void *context, size_t index, enum stage stage)
{
    (void)context;
    (void)index;
    (void)stage;
}

/* Verdicts are counted. */
static void take_record(void *context, const struct record *r)
{
    unsigned long *counts = context;

    counts[r->verdict]++;
}

/* One bit of one output is wrong. */
static enum hum_code forward_wrong(void *handle, const struct hum_gemm_args *args,
                                   char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = hum_cpu_provider.forward(handle, args, reason);
    uint16_t *outputs = args->outputs.data;

    outputs[0] ^= 1;
    return rc;
}

static int64_t cost_of(const struct plan *p, const struct plan_problem *problem)
{
    const int64_t *v = p->cases[problem->first].v;
    int64_t experts = v[AX_EXPERTS] > 0 ? v[AX_EXPERTS] : 1;

    return problem->m * v[AX_K] * (v[AX_N] ? v[AX_N] : 1) * experts;
}

/* The first case of the cheapest exact product comes to `verdict`. */
static void run_cheapest(const char *name, const struct plan *p,
                         const struct hum_provider *provider, enum verdict verdict)
{
    unsigned long counts[VERDICT_COUNT] = {0};
    const struct runner_hooks hooks = {no_stage, take_record, counts, NULL};
    struct runner *r = runner_open(provider, 1, (size_t)1 << 30, &errs);
    const struct plan_problem *best = NULL;
    size_t index = 0;

    for (size_t i = 0; i < p->problem_count; i++) {
        const int64_t *v = p->cases[p->problems[i].first].v;

        if (v[AX_FAMILY] || v[AX_CHECK] ||
            (best && cost_of(p, &p->problems[i]) >= cost_of(p, best)))
            continue;
        best = &p->problems[i];
        index = i;
    }
    ck_assert(r && best);
    runner_problem(r, p, index, best->first, best->first + 1, &hooks);
    runner_close(r);
    ck_assert_msg(counts[verdict] == 1, "%s: %s is not %s", name, p->cases[best->first].id,
                  verdict_name(verdict));
}

START_TEST(every_configuration_has_a_suite)
{
    static const char *const everywhere[] = {CONFIGS};
    const struct plan_options plain = {.shard = 1, .shards = 1};
    const struct derive_options cut = {0};
    struct hum_provider wrong = hum_cpu_provider;
    struct config_set set;
    size_t known = 0;

    wrong.forward = forward_wrong;
    ck_assert_int_eq(config_set_load(everywhere, 1, &arena, &set, &warnings, &errs), ERR_NONE);
    for (size_t i = 0; i < set.count; i++) {
        const struct eval_config *c = &set.items[i].config;
        struct model model;
        struct derived d;
        struct suite suite;
        struct plan plan;
        enum err_code rc = derive_model(c, NULL, &arena, &model, &errs);

        rc = rc ? rc : derive_suite(&model, c, &cut, &arena, &d, &errs);
        if (is_unknown(c->name)) {
            ck_assert_int_eq(rc, ERR_CONFIG);
            ck_assert_ptr_nonnull(strstr(errs.items[errs.count - 1].text, "are not known"));
            continue;
        }
        if (rc || suite_load_text(c->name, d.text, d.size, &arena, &suite, &errs) ||
            plan_make(&suite, 1, &plain, &arena, &plan, &errs))
            fail_with_errors(c->name);
        ck_assert_uint_eq(plan.illegal + plan.excluded, 0);
        ck_assert_uint_ge(plan.count, 40);
        if (i % 8 == 0)
            run_cheapest(c->name, &plan, &hum_cpu_provider, VERDICT_PASS);
        if (i % 16 == 0)
            run_cheapest(c->name, &plan, &wrong, VERDICT_FAIL);
        known++;
    }
    ck_assert_uint_eq(known + COUNT(unknown_weights), set.count);
    ck_assert_uint_ge(known, 39);
}
END_TEST

/* Cut sizes leave paddings and remainders as they are. */
START_TEST(cuts_keep_remainders)
{
    static const enum axis_id same[] = {AX_PAD_N, AX_PAD_K, AX_GROUP, AX_TOP_K, AX_A, AX_B};
    const struct suite *full = suite_of("gpt-oss-20b-humming-act-fp8", true);
    const struct suite *cut = suite_of("gpt-oss-20b-humming-act-fp8", false);

    ck_assert_uint_eq(full->count, cut->count);
    for (size_t i = 0; i < full->count; i++) {
        const struct entry *f = &full->entries[i], *c = &cut->entries[i];
        int64_t n = f->axes[AX_N].values[0], small = c->axes[AX_N].values[0];
        int64_t k = f->axes[AX_K].values[0], short_k = c->axes[AX_K].values[0];

        ck_assert_str_eq(f->name, c->name);
        if (strncmp(f->name, "experts.gate_up", 15) != 0 &&
            strncmp(f->name, "experts.down", 12) != 0)
            continue;
        ck_assert(small < n && small % 256 == n % 256 && small >= 256);
        ck_assert(short_k < k && short_k % 256 == k % 256 && short_k >= 1024);
        for (int x = 0; x < COUNT(same); x++)
            ck_assert_int_eq(f->axes[same[x]].values[0], c->axes[same[x]].values[0]);
    }
}
END_TEST

/* ---- division among GPUs --------------------------------------------------------------------- */

/* clang-format off */
static const struct {
    const char *args, *entry, *axis, *values;
} divided[] = {
    {"", "attn.qkv", "n", "768"},
    {"--tensor-parallel-size 2", "attn.qkv", "k", "512"},
    {"--tensor-parallel-size 2", "attn.qkv", "n", "384"},
    /* more GPUs than key heads: each has one */
    {"--tensor-parallel-size=4", "attn.qkv", "n", "256"},
    {"--tensor-parallel-size 2", "attn.o", "k", "256"},
    {"--tensor-parallel-size 2", "attn.o", "n", "512"},
    {"--tensor-parallel-size 2", "mlp.gate_up", "n", "512"},
    {"--tensor-parallel-size 2", "mlp.down", "k", "256"},
    {"--tensor-parallel-size 2", "experts.gate_up", "n", "256"},
    {"--tensor-parallel-size 2", "experts.gate_up", "num_experts", "4"},
    {"--tensor-parallel-size 2", "experts.down", "k", "128"},
    {"--tensor-parallel-size 2 --enable-expert-parallel", "experts.gate_up", "num_experts", "2"},
    {"--tensor-parallel-size 2 --enable-expert-parallel", "experts.down", "k", "256"},
    /* experts of all ranks are one row; attention is whole on each */
    {"--data-parallel-size 2", "experts.down", "k", "128"},
    {"--data-parallel-size 2", "attn.o", "k", "512"},
};
/* clang-format on */

START_TEST(matrices_are_divided)
{
    const char *text = arena_printf(&arena,
                                    "model_name: \"a/b\"\naccuracy_threshold: 0.86\n"
                                    "num_questions: 1319\nnum_fewshot: 5\n"
                                    "server_args: --quantization humming %s\n",
                                    divided[_i].args);
    const struct derive_options full = {.full = true};
    const struct entry *e;
    struct suite suite;

    if (derive_texts(SMALL_MODEL, text, &full, &suite))
        fail_with_errors(divided[_i].args);
    e = entry_of(&suite, divided[_i].entry);
    ck_assert_ptr_nonnull(e);
    ck_assert_str_eq(values_of(e, divided[_i].axis), divided[_i].values);
}
END_TEST

static Suite *suite_derive(void)
{
    Suite *s = suite_create("derive");
    TCase *t = tcase_create("derive");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, true_sizes_and_formats, 0, COUNT(at_true_size));
    tcase_add_test(t, every_configuration_has_a_suite);
    tcase_add_test(t, cuts_keep_remainders);
    tcase_add_loop_test(t, matrices_are_divided, 0, COUNT(divided));
    suite_add_tcase(s, t);
    return s;
}

int main(void)
{
    SRunner *runner = srunner_create(suite_derive());
    int failed;

    if (!make_folder())
        return EXIT_FAILURE;
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    remove_folder();
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
