/* Models and configurations that are wrong, and models from a checkpoint's config.json. */
#include "harness/test/derive_world.h"

/* ---- mistakes -------------------------------------------------------------------------------- */

#define ENV(name, value) CONFIG_OF("") "env:\n  " name ": '" value "'\n"
#define INPUT            "VLLM_HUMMING_INPUT_QUANT_CONFIG"
#define ONLINE           "VLLM_HUMMING_ONLINE_QUANT_CONFIG"

/* clang-format off */
static const struct {
    const char *config, *gpu, *error; /* its beginning, behind the folder */
} wrong_configs[] = {
    {CONFIG_OF("--tensor-parallel-size 3"), NULL, "c.yaml:5:14: num_attention_heads of 8 cannot be divided among 3"},
    {CONFIG_OF("--tensor-parallel-size two"), NULL, "c.yaml:5:14: --tensor-parallel-size: expected a whole number"},
    {CONFIG_OF("--dtype float32"), NULL, "c.yaml:5:14: --dtype: Humming has float16 and bfloat16"},
    {"model_name: \"a/b\"\naccuracy_threshold: 0.86\nnum_questions: 1319\nnum_fewshot: 5\n", NULL,
     "c.yaml:1:13: no kernel of this model is Humming's"},
    {ENV(INPUT, "{\"dtype\":\"float8e4m4\"}"), NULL, "c.yaml:8:3: " INPUT ": dtype 'float8e4m4' is no format"},
    {ENV(INPUT, "{\"dtype\":\"int8\",\"group\":1}"), NULL, "c.yaml:8:3: " INPUT ": key 'group' is not known here"},
    {ENV(INPUT, "{\"dtype\":\"int8\",\"group_size\":-1}"), NULL, "c.yaml:8:3: " INPUT ": group_size must be"},
    {ENV(INPUT, "{\"group_size\":128}"), NULL, "c.yaml:8:3: " INPUT ": dtype must name a format"},
    {ENV(INPUT, "quant.json"), NULL, "c.yaml:8:3: " INPUT ": write the object of JSON itself"},
    {ENV(INPUT, "{\"dtype\":\"float8e4m3\"}"), "a100", "c.yaml:8:3: " INPUT ": activations of e4m3 need compute capability 8.9; a100 has 8.0"},
    {ENV(INPUT, "{\"dtype\":\"int4\"}"), "NVIDIA H100 80GB HBM3", "c.yaml:8:3: " INPUT ": activations of int4 are not served on h100"},
    {CONFIG_OF(""), "h1000", "the GPU 'h1000' is not known"},
    {ENV(ONLINE, "{\"dtype\":\"int99\"}"), NULL, "c.yaml:8:3: " ONLINE ": dtype 'int99' is no format of weights"},
    {ENV(ONLINE, "{\"dtype\":\"int4\",\"has_zero_point\":1}"), NULL, "c.yaml:8:3: " ONLINE ": has_zero_point must be true or false"},
    {ENV("VLLM_HUMMING_MOE_GEMM_TYPE", "grouped_masked"), NULL, "c.yaml:8:3: VLLM_HUMMING_MOE_GEMM_TYPE: expected indexed, grouped"},
    {ENV("VLLM_BATCH_INVARIANT", "yes"), NULL, "c.yaml:8:3: VLLM_BATCH_INVARIANT: expected 0 or 1"},
    /* formats that are known and do not go together: the table of legal configurations says which */
    {ENV(ONLINE, "{\"dtype\":\"float4e0m3\"}"), NULL, "at least one exponent bit"},
};

static const struct {
    const char *from, *to, *error;
} wrong_models[] = {
    {"hidden_size: 512\n", "", "m.yaml:1:1: key 'hidden_size' is missing"},
    {"hidden_size", "hiden_size", "m.yaml:3:1: unknown key 'hiden_size'; did you mean 'hidden_size'?"},
    {"hidden_size: 512", "hidden_size: '512'", "m.yaml:3:14: hidden_size: expected a whole number"},
    {"hidden_size: 512", "hidden_size: 0", "m.yaml:3:14: hidden_size: expected a whole number from 1"},
    {"dtype: bf16", "dtype: fp32", "m.yaml:2:8: dtype: unknown word 'fp32'"},
    {"activation: silu", "activation: silo", "m.yaml:12:13: activation: unknown word 'silo'; did you mean 'silu'?"},
    {"num_experts_per_tok: 2\n", "", "m.yaml:1:1: num_experts, num_experts_per_tok, moe_intermediate_size: all of them"},
    {"num_experts_per_tok: 2", "num_experts_per_tok: 5", "m.yaml:1:1: num_experts_per_tok is above num_experts"},
    {"num_key_value_heads: 2", "num_key_value_heads: 3", "m.yaml:1:1: num_attention_heads is no multiple"},
    {"  group_size: 64\n", "", "m.yaml:15:3: group_size belongs to scales of groups"},
    {"dtype: uint4", "dtype: uint44", "m.yaml:15:10: dtype: expected a weight format"},
    {"[attention, mlp, experts]", "[attention, mamba]", "m.yaml:14:1: quantization names the part 'mamba', which the model has not"},
    {"[attention, mlp, experts]", "[atention]", "m.yaml:18:12: layers: unknown word 'atention'; did you mean 'attention'?"},
    {"activation: silu", "activation: swiglu", "m.yaml:1:1: swiglu_limit must be 7"},
    {"dtype: bf16", "missing: [dtype]\ndtype: bf16", "m.yaml:2:11: missing: 'dtype' is stated in this file"},
    {"dtype: bf16", "base: ../x", "m.yaml:2:7: base: expected the name of a model"},
    {"dtype: bf16", "base: x/y", "x/y.yaml: the model file cannot be read"},
    {"quantization:", "missing: [quantization]\nx:", "m.yaml:15:1: unknown key 'x'"},
};
/* clang-format on */

/* The text of `text` with the first `from` replaced. */
static const char *replaced(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);

    ck_assert_msg(at != NULL, "no '%s'", from);
    return arena_printf(&arena, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

START_TEST(wrong_configurations_are_refused)
{
    const struct derive_options how = {.gpu = wrong_configs[_i].gpu};
    struct suite suite;

    ck_assert_int_ne(derive_texts(SMALL_MODEL, wrong_configs[_i].config, &how, &suite), ERR_NONE);
    expect_error(wrong_configs[_i].error);
}
END_TEST

START_TEST(wrong_models_are_refused)
{
    const struct derive_options how = {0};
    struct suite suite;

    ck_assert_int_ne(derive_texts(replaced(SMALL_MODEL, wrong_models[_i].from, wrong_models[_i].to),
                                  CONFIG_OF(""), &how, &suite),
                     ERR_NONE);
    expect_error(wrong_models[_i].error);
}
END_TEST

/* The same mistake of a name cannot reach another folder. */
START_TEST(names_stay_in_their_folder)
{
    ck_assert_str_eq(model_path("f", "a/b.c", &arena), "f/a/b.c.yaml");
    ck_assert_ptr_null(model_path("f", "../b", &arena));
    ck_assert_ptr_null(model_path("f", "a/../b", &arena));
    ck_assert_ptr_null(model_path("f", "a/..", &arena));
    ck_assert_ptr_null(model_path("f", "/a", &arena));
    ck_assert_ptr_null(model_path("f", "a", &arena));
    ck_assert_ptr_null(model_path("f", "a/", &arena));
    ck_assert_ptr_null(model_path("f", "a/b c", &arena));
}
END_TEST

/* ---- config.json ----------------------------------------------------------------------------- */

#define GPT_OSS                                                                                   \
    "{\"model_type\":\"gpt_oss\",\"hidden_size\":2880,\"intermediate_size\":2880,"                \
    "\"num_hidden_layers\":24,\"num_attention_heads\":64,\"num_key_value_heads\":8,"              \
    "\"head_dim\":64,\"num_local_experts\":32,\"num_experts_per_tok\":4,\"experts_per_token\":4," \
    "\"hidden_act\":\"silu\",\"swiglu_limit\":7.0,\"attention_bias\":true,"                       \
    "\"torch_dtype\":\"bfloat16\",\"quantization_config\":{\"quant_method\":\"mxfp4\","           \
    "\"modules_to_not_convert\":[\"model.layers.*.self_attn\",\"model.layers.*.mlp.router\","     \
    "\"model.embed_tokens\",\"lm_head\"]}}"

#define QWEN3_30B                                                                             \
    "\"hidden_size\":2048,\"intermediate_size\":6144,\"moe_intermediate_size\":768,"          \
    "\"num_hidden_layers\":48,\"num_attention_heads\":32,\"num_key_value_heads\":4,"          \
    "\"head_dim\":128,\"num_experts\":128,\"num_experts_per_tok\":8,\"hidden_act\":\"silu\"," \
    "\"attention_bias\":false,\"decoder_sparse_step\":1,\"mlp_only_layers\":[],"              \
    "\"torch_dtype\":\"bfloat16\""

#define CT(format, weights)                                                                       \
    "\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"format\":\"" format "\"," \
    "\"ignore\":[\"lm_head\",\"re:.*mlp.gate$\"],\"config_groups\":{\"group_0\":{\"weights\":"    \
    "{" weights "}}}}"

/* clang-format off */
static const struct {
    const char *config, *json;
} checkpoints[] = {
    {"gpt-oss-20b-humming", GPT_OSS},
    {"gpt-oss-20b-humming-act-fp8", GPT_OSS},
    {"Qwen3-30B-A3B-online-int5-humming", "{\"model_type\":\"qwen3_moe\"," QWEN3_30B "}"},
    {"Qwen3-30B-A3B-online-int5-humming", "{\"model_type\":\"x\",\"text_config\":{" QWEN3_30B "},\"hidden_size\":7}"},
    {"Qwen3-30B-A3B-MXFP4A16-humming", "{" QWEN3_30B "," CT("mxfp4-pack-quantized",
     "\"num_bits\":4,\"type\":\"float\",\"strategy\":\"group\",\"group_size\":32,\"symmetric\":true") "}"},
    {"Qwen3-30B-A3B-FP8-block-humming", "{" QWEN3_30B "," CT("float-quantized",
     "\"num_bits\":8,\"type\":\"float\",\"strategy\":\"block\",\"block_structure\":[128,128],\"symmetric\":true") "}"},
    {"Qwen3-30B-A3B-Instruct-2507-quantized.w8a8-humming-act-int8", "{" QWEN3_30B "," CT("int-quantized",
     "\"num_bits\":8,\"type\":\"int\",\"strategy\":\"channel\",\"symmetric\":true") "}"},
    {"Qwen1.5-32B-Chat-AWQ-humming-act-int8",
     "{\"model_type\":\"qwen2\",\"hidden_size\":5120,\"intermediate_size\":27392,\"num_hidden_layers\":64,"
     "\"num_attention_heads\":40,\"num_key_value_heads\":8,\"hidden_act\":\"silu\",\"torch_dtype\":\"float16\","
     "\"quantization_config\":{\"quant_method\":\"awq\",\"bits\":4,\"group_size\":128,\"zero_point\":true,\"version\":\"gemm\"}}"},
    {"Qwen3-30B-A3B-NVFP4-humming", "{" QWEN3_30B ",\"quantization_config\":{\"quant_method\":\"modelopt\","
     "\"quant_algo\":\"NVFP4\",\"group_size\":16,\"ignore\":[\"lm_head\",\"model.layers.*.self_attn*\"]}}"},
};
/* clang-format on */

static const char *entries_of(const char *text)
{
    const char *at = strstr(text, "entries:");

    ck_assert_ptr_nonnull(at);
    return at;
}

/* A config.json, and the file that this project has of the model, give the same suite. */
START_TEST(config_json_gives_the_same_suite)
{
    const char *json = write_file("config.json", checkpoints[_i].json);
    const struct derive_options how = {0};
    struct eval_config config;
    struct model ours, theirs;
    struct derived a, b;

    load_config(checkpoints[_i].config, &config);
    if (derive_model(&config, NULL, &arena, &ours, &errs) ||
        derive_model(&config, json, &arena, &theirs, &errs) ||
        derive_suite(&ours, &config, &how, &arena, &a, &errs) ||
        derive_suite(&theirs, &config, &how, &arena, &b, &errs))
        fail_with_errors(checkpoints[_i].config);
    ck_assert_msg(!strcmp(entries_of(a.text), entries_of(b.text)), "%s", checkpoints[_i].config);
}
END_TEST

/* clang-format off */
static const struct {
    const char *json, *error;
} wrong_json[] = {
    {"[]", "config.json: a model's config is an object of JSON"},
    {"{", "config.json"},
    {"{\"num_hidden_layers\":1,\"num_attention_heads\":1,\"intermediate_size\":64,\"hidden_act\":\"silu\"}",
     "config.json: key 'hidden_size' is missing"},
    {"{\"hidden_size\":1.5,\"num_hidden_layers\":1,\"num_attention_heads\":1,\"intermediate_size\":64,\"hidden_act\":\"silu\"}",
     "config.json: hidden_size must be a whole number"},
    {"{\"hidden_size\":64,\"num_hidden_layers\":1,\"num_attention_heads\":0,\"intermediate_size\":64,\"hidden_act\":\"silu\"}",
     "config.json: num_attention_heads"},
    {"{\"hidden_size\":64,\"num_hidden_layers\":1,\"num_attention_heads\":1,\"intermediate_size\":64}",
     "config.json: key 'hidden_act' is missing"},
    {"{\"hidden_size\":64,\"num_hidden_layers\":1,\"num_attention_heads\":1,\"intermediate_size\":64,\"hidden_act\":\"selu\"}",
     "config.json: hidden_act 'selu' is not known"},
    {"{" QWEN3_30B ",\"quantization_config\":{\"quant_method\":\"exl3\"}}", "a method that is not known: exl3"},
    {"{" QWEN3_30B ",\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":128,\"sym\":true,\"desc_act\":true}}",
     "activation order"},
};
/* clang-format on */

START_TEST(wrong_config_json_is_refused)
{
    struct model model;

    ck_assert_int_ne(
        model_load_json(write_file("config.json", wrong_json[_i].json), &arena, &model, &errs),
        ERR_NONE);
    expect_error(wrong_json[_i].error);
}
END_TEST

START_TEST(missing_files_are_said)
{
    const char *text = CONFIG_OF("");
    struct eval_config config;
    struct model model;

    ck_assert_int_eq(
        eval_config_load_text("f/c.yaml", text, strlen(text), &arena, &config, &warnings, &errs),
        ERR_NONE);
    ck_assert_int_eq(derive_model(&config, NULL, &arena, &model, &errs), ERR_CONFIG);
    expect_error("f/c.yaml:1:13: the layers of the model 'a/b' are not known: there is no file "
                 "'models/a/b.yaml'");
    ck_assert_int_ne(derive_model(&config, "gone.json", &arena, &model, &errs), ERR_NONE);
    expect_error("gone.json: the model's config cannot be read");
}
END_TEST

static Suite *suite_derive_model(void)
{
    Suite *s = suite_create("derive_model");
    TCase *t = tcase_create("derive_model");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, wrong_configurations_are_refused, 0, COUNT(wrong_configs));
    tcase_add_loop_test(t, wrong_models_are_refused, 0, COUNT(wrong_models));
    tcase_add_test(t, names_stay_in_their_folder);
    tcase_add_loop_test(t, config_json_gives_the_same_suite, 0, COUNT(checkpoints));
    tcase_add_loop_test(t, wrong_config_json_is_refused, 0, COUNT(wrong_json));
    tcase_add_test(t, missing_files_are_said);
    suite_add_tcase(s, t);
    return s;
}

int main(void)
{
    SRunner *runner = srunner_create(suite_derive_model());
    int failed;

    if (!make_folder())
        return EXIT_FAILURE;
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    remove_folder();
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
