#include "harness/eval/config.h"
#include "harness/eval/config_list.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (int)(sizeof(a) / sizeof(a)[0])

enum { ARENA = 1 << 28, TEXT = 4096 };

static struct arena arena;
static struct errs errs, warnings;
static struct eval_config config;

static void setup(void)
{
    ck_assert(arena_init(&arena, ARENA));
}

static void teardown(void)
{
    errs_free(&errs);
    errs_free(&warnings);
    arena_free(&arena);
}

static enum err_code load(const char *text)
{
    return eval_config_load_text("dir/x.y.yaml", text, strlen(text), &arena, &config, &warnings,
                                 &errs);
}

static void load_good(const char *text)
{
    char line[ERR_TEXT];
    enum err_code rc = load(text);

    ck_assert_msg(!rc && !errs.count, "%s",
                  errs.count ? err_format(&errs.items[0], line, sizeof line) : "a code only");
}

#define HEAD "model_name: \"a/b\"\naccuracy_threshold: 0.86\nnum_questions: 1319\nnum_fewshot: 5\n"

/* needed is the least count whose share is at least the floor: by cross-multiplication, over all
 * thresholds of two decimals and every number of questions up to 400. */
START_TEST(the_pass_rule_is_exact)
{
    struct eval_pass pass;

    load_good(HEAD);
    for (int64_t t = 9; t <= 100; t++)
        for (int64_t n = 1; n <= 400; n++) {
            int64_t floor = t - 8;

            config.accuracy_threshold.billionths = t * 10000000;
            eval_config_pass(&config, NULL, n, &pass);
            ck_assert_int_ge(100 * pass.needed, floor * n);
            ck_assert_int_lt(100 * (pass.needed - 1), floor * n);
        }
}
END_TEST

/* 0.7 - 0.08 and 0.62 are the same floor; in doubles 0.7 - 0.08 is 0.62, but 0.9 - 0.08 is
 * 0.8200000000000001, which 41 of 50 would miss. */
/* clang-format off */
static const struct {
    const char *threshold, *tolerance;
    int64_t questions, needed;
} passes[] = {
    {"0.86",   "0.08", 1319, 1029}, /* 1028.82 */
    {"0.7",    "0.08", 1319, 818},  /* 817.78 */
    {"0.70",   "0.08", 1319, 818},
    {"0.925",  "0.1",  1319, 1089}, /* 1088.175 */
    {"0.4405", "0.08", 50,   19},   /* 18.025 */
    {"0.9",    "0.08", 50,   41},   /* 41 */
    {"0.62",   "0.02", 5,    3},    /* 3 */
    {"1",      "0",    1319, 1319},
    {"1.0",    "0.000000001", 1319, 1319},
    {"0.000000001", "0", 1319, 1},
};
/* clang-format on */

START_TEST(pass_rules)
{
    char text[TEXT];
    struct eval_pass pass;

    (void)snprintf(text, sizeof text,
                   "model_name: a\naccuracy_threshold: %s\ntolerance: %s\n"
                   "num_questions: %" PRId64 "\nnum_fewshot: 0\n",
                   passes[_i].threshold, passes[_i].tolerance, passes[_i].questions);
    load_good(text);
    eval_config_pass(&config, NULL, 0, &pass);
    ck_assert_int_eq(pass.needed, passes[_i].needed);
    ck_assert_int_eq(pass.questions, passes[_i].questions);
    ck_assert_int_eq(pass.at.line, 2);
    ck_assert_ptr_null(pass.gpu);
}
END_TEST

/* clang-format off */
static const struct {
    const char *product, *gpu;
} products[] = {
    {"NVIDIA H100 80GB HBM3", "h100"}, {"NVIDIA A100-SXM4-40GB", "a100"}, {"NVIDIA H200", "h200"},
    {"NVIDIA B200", "b200"}, {"NVIDIA GB200", "gb200"}, {"NVIDIA GH200 480GB", "gh200"},
    {"NVIDIA L40S", "l40s"}, {"NVIDIA L4", "l4"}, {"Tesla T4", "t4"}, {"NVIDIA A10", "a10"},
    {"h100", "h100"}, {"NVIDIA GeForce RTX 4090", NULL}, {"XH100", NULL}, {"H1000", NULL},
    {"", NULL}, {"AMD Instinct MI300X", NULL}, {"NVIDIA H20", "h20"},
};
/* clang-format on */

START_TEST(gpus_by_their_products_names)
{
    const char *gpu = eval_gpu_of(products[_i].product);

    ck_assert_int_eq(!gpu, !products[_i].gpu);
    if (gpu)
        ck_assert_str_eq(gpu, products[_i].gpu);
}
END_TEST

/* clang-format off */
static const struct {
    const char *product, *says; /* NULL: it is known */
} given[] = {
    {"h100", NULL}, {"NVIDIA H200", NULL}, {"Tesla T4", NULL},
    {"H2000", "the GPU 'H2000' is not known; did you mean 'h200'? (known: a10, a100, "},
    {"h2000", "the GPU 'h2000' is not known; did you mean 'h200'? (known: a10, a100, "},
    {"NVIDIA gb20O", "is not known; did you mean 'gb200'? (known: "},
    {"h 100", "the GPU 'h 100' is not known (known: "},
    {"NVIDIA GeForce RTX 4090", "the GPU 'NVIDIA GeForce RTX 4090' is not known (known: "},
    {"", "the GPU '' is not known (known: a10, a100, "},
    {"-- --", "the GPU '-- --' is not known (known: "},
};
/* clang-format on */

START_TEST(a_gpu_that_is_not_known)
{
    struct errs said = {0};

    ck_assert_int_eq(eval_gpu_check(given[_i].product, &said),
                     given[_i].says ? ERR_USAGE : ERR_NONE);
    ck_assert_uint_eq(said.count, given[_i].says != NULL);
    if (given[_i].says) {
        ck_assert_msg(strstr(said.items[0].text, given[_i].says) != NULL, "%s", said.items[0].text);
        ck_assert_msg(strstr(said.items[0].text, "l40s, t4)") != NULL, "%s", said.items[0].text);
    }
    errs_free(&said);
}
END_TEST

START_TEST(a_gpus_floor_has_no_tolerance)
{
    struct eval_pass pass;

    load_good(HEAD "x-humcheck:\n  floors:\n    h100: 0.9\n"
                   "    a100: {accuracy: 0.9, tolerance: 0.01, evidence: 'x#1'}\n");
    eval_config_pass(&config, "NVIDIA H100 80GB HBM3", 1000, &pass);
    ck_assert_int_eq(pass.needed, 900);
    ck_assert_str_eq(pass.gpu, "h100");
    ck_assert_ptr_null(pass.evidence);
    ck_assert_int_eq(pass.at.line, 7);
    eval_config_pass(&config, "NVIDIA A100-SXM4-40GB", 1000, &pass);
    ck_assert_int_eq(pass.needed, 890);
    ck_assert_str_eq(pass.evidence, "x#1");
    eval_config_pass(&config, "NVIDIA B200", 1000, &pass);
    ck_assert_int_eq(pass.needed, 780);
    ck_assert_ptr_null(pass.gpu);
    eval_config_pass(&config, NULL, 1000, &pass);
    ck_assert_int_eq(pass.needed, 780);
}
END_TEST

START_TEST(what_vllm_adds)
{
    struct eval_added added[EVAL_ADDED];

    load_good(
        HEAD
        "startup_max_wait_seconds: 1800\n"
        "server_args: --disable-uvicorn-access-log\nenv: {VLLM_WORKER_MULTIPROC_METHOD: fork}\n");
    ck_assert(eval_config_added(&config, &arena, added));
    ck_assert_str_eq(added[0].words[0], "--disable-uvicorn-access-log");
    ck_assert(added[0].stated && !added[0].is_env);
    ck_assert_str_eq(added[1].words[0], "--seed");
    ck_assert_str_eq(added[1].words[1], "0");
    ck_assert(!added[1].stated && !added[1].is_env);
    ck_assert_str_eq(added[2].words[0], "VLLM_WORKER_MULTIPROC_METHOD=spawn");
    ck_assert(added[2].stated && added[2].is_env);
    ck_assert_str_eq(added[3].words[0], "VLLM_ENGINE_READY_TIMEOUT_S=1800");
    ck_assert(!added[3].stated && added[3].is_env);
}
END_TEST

/* Every configuration that is shipped loads without a warning, and each is in a list. */
START_TEST(shipped_configurations)
{
    static const char *const folder[] = {CONFIGS};
    struct config_set set;
    char line[2 * ERR_TEXT];

    ck_assert_msg(!config_set_load(folder, 1, &arena, &set, &warnings, &errs), "%s",
                  errs.count ? err_format(&errs.items[0], line, sizeof line) : "");
    ck_assert_uint_eq(warnings.count, 0);
    ck_assert_uint_ge(set.count, 46);
    ck_assert_uint_eq(set.lists, 4);
    for (size_t i = 0; i < set.count; i++) {
        const struct eval_config *c = &set.items[i].config;
        bool int8 = strstr(c->name, "act-int8") != NULL, fp8 = strstr(c->name, "act-fp8") != NULL;
        const char *input = NULL;

        for (size_t k = 0; k < c->env_count; k++)
            if (!strcmp(c->env[k].name, "VLLM_HUMMING_INPUT_QUANT_CONFIG"))
                input = c->env[k].value;
        ck_assert_int_eq(c->num_questions.value, 1319);
        ck_assert_int_eq(c->num_fewshot.value, 5);
        ck_assert_msg(!int8 || (input && strstr(input, "\"int8\"")), "%s", c->path);
        ck_assert_msg(!fp8 || (input && strstr(input, "\"float8e4m3\"")), "%s", c->path);
        ck_assert_msg(!strstr(c->name, "Qwen3.") || *c->gen_prefix.text, "%s", c->path);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("eval_floor");
    TCase *t = tcase_create("eval_floor");
    SRunner *r = srunner_create(s);
    int failed;

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, the_pass_rule_is_exact);
    tcase_add_loop_test(t, pass_rules, 0, COUNT(passes));
    tcase_add_loop_test(t, gpus_by_their_products_names, 0, COUNT(products));
    tcase_add_loop_test(t, a_gpu_that_is_not_known, 0, COUNT(given));
    tcase_add_test(t, a_gpus_floor_has_no_tolerance);
    tcase_add_test(t, what_vllm_adds);
    tcase_add_test(t, shipped_configurations);
    suite_add_tcase(s, t);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
