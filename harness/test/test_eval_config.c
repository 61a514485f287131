#include "harness/eval/config.h"

#include <check.h>
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

/* The first error's line. */
static const char *first_error(const struct errs *e, char *line, size_t size)
{
    ck_assert_uint_ge(e->count, 1);
    return err_format(&e->items[0], line, size);
}

#define HEAD "model_name: \"a/b\"\naccuracy_threshold: 0.86\nnum_questions: 1319\nnum_fewshot: 5\n"

START_TEST(defaults_are_vllms)
{
    struct protocol_options o;

    load_good(HEAD);
    ck_assert_str_eq(config.path, "dir/x.y.yaml");
    ck_assert_str_eq(config.name, "x.y");
    ck_assert_str_eq(config.model_name.text, "a/b");
    ck_assert_int_eq(config.accuracy_threshold.billionths, 860000000);
    ck_assert(config.accuracy_threshold.value == 0.86);
    ck_assert_int_eq(config.tolerance.billionths, 80000000);
    ck_assert(config.tolerance.value == 0.08);
    ck_assert_int_eq(config.tolerance.at.line, 0);
    ck_assert_int_eq(config.num_questions.at.line, 3);
    ck_assert_int_eq(config.num_questions.at.column, 16);
    ck_assert_int_eq(config.startup_max_wait_seconds.value, 1200);
    ck_assert_str_eq(config.server_args.text, "");
    ck_assert_uint_eq(config.server_args.count + config.env_count + config.floor_count, 0);
    ck_assert_int_eq(config.concurrency.value, 100);
    ck_assert(config.timeout.value == 600.0);
    ck_assert_int_eq(config.max_tokens.value, 256);
    ck_assert(config.seed.set && config.seed.value == 42);
    ck_assert(config.temperature.set && config.temperature.value == 0.0);
    ck_assert_str_eq(config.gen_prefix.text, "");
    ck_assert(!config.min_acceptance_length.set && !config.top_p.set);
    ck_assert_ptr_eq(config.protocol, protocol_find("vllm"));
    eval_config_options(&config, &o);
    ck_assert_int_eq(o.endpoint, ENDPOINT_COMPLETIONS);
    ck_assert_ptr_null(o.model);
    ck_assert(o.seed.set && o.seed.value == 42 && o.shots == 5 && o.max_tokens == 256);
    ck_assert_uint_eq(warnings.count, 0);
}
END_TEST

START_TEST(all_of_vllms_keys)
{
    struct protocol_options o;

    load_good("# comment with trailing blanks   \n" HEAD "tolerance: 0.02\n"
              "startup_max_wait_seconds: 2400\nrequest_timeout_seconds: 90.5\n"
              "max_tokens: 512\nuse_chat_completions: true\ntemperature: 1.0\nseed: null\n"
              "gen_prefix: \" <think>\\n\\n</think>\\n\"\nmax_concurrency: 2\n"
              "min_acceptance_length: 1.2 # trailing\n"
              "server_args: \"--speculative-config '{}'\"\n");
    eval_config_options(&config, &o);
    ck_assert_int_eq(config.tolerance.billionths, 20000000);
    ck_assert_int_eq(config.startup_max_wait_seconds.value, 2400);
    ck_assert(config.timeout.value == 90.5);
    ck_assert_int_eq(config.concurrency.value, 2);
    ck_assert(config.min_acceptance_length.value == 1.2);
    ck_assert(!config.seed.set && config.seed.at.line == 12);
    ck_assert_int_eq(o.endpoint, ENDPOINT_CHAT);
    ck_assert(!o.seed.set && o.temperature.set && o.temperature.value == 1.0);
    ck_assert_int_eq(o.max_tokens, 512);
    ck_assert_str_eq(o.gen_prefix, " <think>\n\n</think>\n");
    ck_assert_uint_eq(warnings.count, 0);
}
END_TEST

START_TEST(all_of_our_keys)
{
    struct protocol_options o;

    load_good(HEAD "x-humcheck:\n  protocol: vllm\n  endpoint: chat\n  data: arith\n"
                   "  gen_prefix: p\n  reasoning_effort: low\n"
                   "  chat_template_kwargs: '{\"enable_thinking\": false}'\n"
                   "  max_tokens: 9\n  seed: 7\n  temperature: null\n  top_p: 0.5\n  top_k: -1\n"
                   "  concurrency: 3\n  timeout_seconds: 4\n  max_attempts: 2\n"
                   "  max_error_rate: 0.01\n  server_command: 'python3 -m \"my server\" {port}'\n"
                   "  floors: {h100: 0.88, a100: {accuracy: 0.87, tolerance: 0.01, "
                   "evidence: 'x#1'}}\n  dims: ../models/a.yaml\n");
    eval_config_options(&config, &o);
    ck_assert_int_eq(o.endpoint, ENDPOINT_CHAT);
    ck_assert_int_eq(config.data.value, EVAL_ARITH);
    ck_assert_str_eq(o.gen_prefix, "p");
    ck_assert_str_eq(o.reasoning_effort, "low");
    ck_assert_str_eq(o.chat_template_kwargs, "{\"enable_thinking\": false}");
    ck_assert(o.max_tokens == 9 && o.seed.value == 7 && !o.temperature.set);
    ck_assert(o.top_p.set && o.top_p.value == 0.5 && o.top_k.set && o.top_k.value == -1);
    ck_assert(config.concurrency.value == 3 && config.timeout.value == 4.0);
    ck_assert(config.max_attempts.value == 2 && config.max_error_rate.billionths == 10000000);
    ck_assert_uint_eq(config.server_command.count, 4);
    ck_assert_str_eq(config.server_command.argv[2], "my server");
    ck_assert_ptr_null(config.server_command.argv[4]);
    ck_assert_uint_eq(config.floor_count, 2);
    ck_assert_str_eq(config.floors[1].evidence.text, "x#1");
    ck_assert_str_eq(config.dims.text, "../models/a.yaml");
}
END_TEST

/* A protocol that sends a model's name gets the served one. */
START_TEST(the_model_that_is_sent)
{
    struct protocol_options o;

    load_good(HEAD "x-humcheck: {protocol: lm-eval}\n");
    eval_config_options(&config, &o);
    ck_assert_str_eq(o.model, "a/b");
    ck_assert(o.seed.value == 1234);
    load_good(HEAD "server_args: --served-model-name m --enforce-eager\n"
                   "x-humcheck: {protocol: lm-eval}\n");
    eval_config_options(&config, &o);
    ck_assert_str_eq(o.model, "m");
}
END_TEST

/* What shlex.split of Python 3.11 gives for these texts. */
/* clang-format off */
static const struct {
    const char *text, *words[6];
} splits[] = {
    {"", {NULL}},
    {"   ", {NULL}},
    {"--a", {"--a"}},
    {" --a  b\t\n c ", {"--a", "b", "c"}},
    {"--a=b --c d", {"--a=b", "--c", "d"}},
    {"--a '' \"\"", {"--a", "", ""}},
    {"--a 'b c'd\"e f\"g", {"--a", "b cde fg"}},
    {"--a '\\n\"'", {"--a", "\\n\""}},
    {"--a \"b\\\"c\\\\d\\n\"", {"--a", "b\"c\\d\\n"}},
    {"--a \\'\\ b \\\\", {"--a", "' b", "\\"}},
    {"--a '{\"x\":\"y\", \"z\":-1}'", {"--a", "{\"x\":\"y\", \"z\":-1}"}},
    {"--a b#c '#d'", {"--a", "b#c", "#d"}},
    {"--a 'it'\\''s'", {"--a", "it's"}},
    {"--a.b=False --a_b.c=d", {"--a.b=False", "--a_b.c=d"}},
    {"--\xc3\xa9 \xe2\x82\xac", {"--\xc3\xa9", "\xe2\x82\xac"}},
};
/* clang-format on */

/* The text in double quotes of YAML. */
static void quote(const char *text, char *to)
{
    *to++ = '"';
    for (; *text; text++) {
        if (strchr("\n\t\"\\", *text))
            *to++ = '\\';
        *to = *text;
        if (*text == '\n' || *text == '\t')
            *to = *text == '\n' ? 'n' : 't';
        to++;
    }
    *to++ = '"';
    *to = '\0';
}

START_TEST(words_are_split_as_by_shlex)
{
    char quoted[TEXT], text[2 * TEXT];
    size_t n;

    quote(splits[_i].text, quoted);
    (void)snprintf(text, sizeof text, HEAD "server_args: %s\n", quoted);
    load_good(text);
    for (n = 0; splits[_i].words[n]; n++) {
        ck_assert_uint_lt(n, config.server_args.count);
        ck_assert_str_eq(config.server_args.argv[n], splits[_i].words[n]);
        ck_assert_ptr_eq(config.server_args.argv[n], config.server_args.words[n].text);
    }
    ck_assert_uint_eq(config.server_args.count, n);
    ck_assert_str_eq(config.server_args.text, splits[_i].text);
}
END_TEST

/* The same words in every spelling of YAML, with the place of each ("line:column"). */
/* clang-format off */
static const struct {
    const char *yaml, *places;
} spellings[] = {
    {"server_args: --a 'b c' --d", "5:14 5:18 5:24"},
    {"server_args:   \"--a 'b c' --d\"", "5:17 5:21 5:27"},
    {"server_args: \"--a \\\"b c\\\" --d\"", "5:15 5:19 5:27"},
    {"server_args: '--a \"b c\" --d'", "5:15 5:19 5:25"},
    {"server_args: '--a ''b c'' --d'", "5:15 5:19 5:27"},
    {"server_args: >-\n  --a 'b c' --d", "6:3 6:7 6:13"},
    {"server_args: >-\n    --a\n    'b\n    c'\n    --d", "6:5 7:5 9:5"},
    {"server_args: >-\r\n  --a 'b c'\r\n  --d\r\n", "6:3 6:7 7:3"},
    {"server_args: |\n  --a\n  'b c'   --d\n", "6:3 7:3 7:11"},
    {"server_args: >\n\n  --a\n\n\n  'b c'\n  --d\n\n", "7:3 10:3 11:3"},
    {"server_args: \"--a 'b\n  c' --d\"", "5:15 5:19 6:6"},
    {"server_args: --a 'b\n  c' --d", "5:14 5:18 6:6"},
    {"server_args: \"--a \\x27b c\\x27 --d\"", "5:14 5:14 5:14"}, /* not followed: its start */
};
/* clang-format on */

START_TEST(each_word_has_its_place)
{
    char text[TEXT], places[128] = "";

    (void)snprintf(text, sizeof text, HEAD "%s\n", spellings[_i].yaml);
    load_good(text);
    ck_assert_uint_eq(config.server_args.count, 3);
    ck_assert_str_eq(config.server_args.argv[0], "--a");
    ck_assert_str_eq(config.server_args.argv[1], "b c");
    ck_assert_str_eq(config.server_args.argv[2], "--d");
    for (size_t i = 0; i < 3; i++) {
        size_t n = strlen(places);

        (void)snprintf(places + n, sizeof places - n, "%s%d:%d", i ? " " : "",
                       config.server_args.words[i].at.line, config.server_args.words[i].at.column);
    }
    ck_assert_str_eq(places, spellings[_i].places);
}
END_TEST

/* JSON in single quotes over four lines of a folded block, as in vLLM's DSpark configuration. */
START_TEST(json_in_a_folded_block)
{
    load_good(HEAD "server_args: >-\n"
                   "  --kv-cache-dtype fp8\n"
                   "  --speculative-config '{\"method\":\"dspark\",\n"
                   "  \"model\":\"d/m\",\n"
                   "  \"attention_backend\":\"FLASH_ATTN\",\"num_speculative_tokens\":7,\n"
                   "  \"enable_adaptive_verification\":true}'\n"
                   "  --attention_config.indexer_kv_dtype=mxfp4\n"
                   "min_acceptance_length: 1.2\n");
    ck_assert_uint_eq(config.server_args.count, 5);
    ck_assert_str_eq(config.server_args.argv[3],
                     "{\"method\":\"dspark\", \"model\":\"d/m\", "
                     "\"attention_backend\":\"FLASH_ATTN\",\"num_speculative_tokens\":7, "
                     "\"enable_adaptive_verification\":true}");
    ck_assert_int_eq(config.server_args.words[4].at.line, 11);
    ck_assert_str_eq(eval_config_flag(&config, "--kv-cache-dtype"), "fp8");
    ck_assert_str_eq(eval_config_flag(&config, "--attention-config.indexer-kv-dtype"), "mxfp4");
    ck_assert_ptr_null(eval_config_flag(&config, "--kv-cache"));
    ck_assert_uint_eq(warnings.count, 0);
}
END_TEST

START_TEST(flags)
{
    load_good(HEAD "server_args: --a --moe_backend=x --n -1 --moe-backend humming --b\n");
    ck_assert_str_eq(eval_config_flag(&config, "--moe-backend"), "humming");
    ck_assert_str_eq(eval_config_flag(&config, "--a"), "");
    ck_assert_str_eq(eval_config_flag(&config, "--b"), "");
    ck_assert_str_eq(eval_config_flag(&config, "--n"), "-1");
    ck_assert_ptr_null(eval_config_flag(&config, "--moe"));
    ck_assert_ptr_null(eval_config_flag(&config, "humming"));
}
END_TEST

START_TEST(environment_values_are_texts)
{
    load_good(HEAD "env:\n"
                   "  VLLM_HUMMING_INPUT_QUANT_CONFIG: '{\"dtype\":\"int8\"}'\n"
                   "  VLLM_HUMMING_ONLINE_QUANT_CONFIG: "
                   "'{\"dtype\":\"int3\",\"has_zero_point\":true, \"group_size\": -1}'\n"
                   "  VLLM_HUMMING_MOE_GEMM_TYPE: \"grouped_contiguous\"\n"
                   "  VLLM_USE_V2_MODEL_RUNNER: \"1\"\n"
                   "  VLLM_LOGGING_LEVEL: DEBUG\n"
                   "  TOKENIZERS_PARALLELISM: 'false'\n");
    ck_assert_uint_eq(config.env_count, 6);
    ck_assert_str_eq(config.env[0].name, "VLLM_HUMMING_INPUT_QUANT_CONFIG");
    ck_assert_str_eq(config.env[0].value, "{\"dtype\":\"int8\"}");
    ck_assert_str_eq(config.env[3].value, "1");
    ck_assert_str_eq(config.env[4].value, "DEBUG");
    ck_assert_int_eq(config.env[5].at.line, 11);
}
END_TEST

/* clang-format off */
static const struct {
    const char *text, *warning;
} warned[] = {
    {HEAD "max_model_len: 4096\n", "dir/x.y.yaml:5:1: max_model_len has no effect: vLLM no longer "
     "reads it; write --max-model-len into server_args"},
    {HEAD "rocm_request_timeout_seconds: 3600\n", "dir/x.y.yaml:5:1: rocm_request_timeout_seconds "
     "has no effect: it is for ROCm only; request_timeout_seconds holds here"},
    {HEAD "min_acceptance_length: 1.2\n", "dir/x.y.yaml:5:24: min_acceptance_length without "
     "--speculative-config: there will be no drafts, which fails"},
    {HEAD "startup_max_wait_seconds: 5\n", "dir/x.y.yaml:5:27: no model loads in 5 s"},
    {"model_name: a\naccuracy_threshold: 0.4405\nnum_questions: 50\nnum_fewshot: 5\n",
     "dir/x.y.yaml:3:16: 50 questions: one standard error is 0.070, the tolerance 0.08 is less "
     "than two"},
    {HEAD "env: {VLLM_HUMMING_INPUT_QUANT_CONFG: '{}'}\n",
     "dir/x.y.yaml:5:7: env: 'VLLM_HUMMING_INPUT_QUANT_CONFG' is not known to be read by vLLM; did "
     "you mean 'VLLM_HUMMING_INPUT_QUANT_CONFIG'?"},
    {HEAD "env:\n  VLLM_HUMMING_INPUT_QUANT_CONFIG: '{\"dtyp\": \"int8\"}'\n",
     "dir/x.y.yaml:6:36: env: key 'dtyp' is not known to be read by vLLM; did you mean 'dtype'?"},
    {HEAD "server_args: --a $HOME\n",
     "dir/x.y.yaml:5:18: server_args: '$' reaches the server as it is: there is no shell"},
};
/* clang-format on */

START_TEST(warnings_do_not_fail)
{
    char line[2 * ERR_TEXT];

    load_good(warned[_i].text);
    ck_assert_uint_eq(warnings.count, 1);
    ck_assert_str_eq(first_error(&warnings, line, sizeof line), warned[_i].warning);
}
END_TEST

START_TEST(too_much_of_everything)
{
    static char text[1 << 16];
    char line[2 * ERR_TEXT];
    size_t n;

    n = (size_t)snprintf(text, sizeof text, HEAD "server_args: --a");
    for (int i = 0; i < 512; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, " b");
    (void)snprintf(text + n, sizeof text - n, "\n");
    ck_assert_int_eq(load(text), ERR_CONFIG);
    ck_assert_str_eq(first_error(&errs, line, sizeof line),
                     "dir/x.y.yaml:5:1040: server_args: more than 512 words");
    errs_free(&errs);
    errs = (struct errs){0};
    n = (size_t)snprintf(text, sizeof text, HEAD "gen_prefix: '");
    memset(text + n, 'x', 16385);
    (void)snprintf(text + n + 16385, sizeof text - n - 16385, "'\n");
    ck_assert_int_eq(load(text), ERR_CONFIG);
    ck_assert_str_eq(first_error(&errs, line, sizeof line),
                     "dir/x.y.yaml:5:13: gen_prefix: the text is longer than 16384 bytes");
}
END_TEST

/* Every prefix of a good file either loads or gives errors with places inside it, in order. */
START_TEST(cut_files)
{
    static const char text[] = HEAD
        "env:\n  VLLM_A: '{\"x\": [1]}'\nserver_args: >-\n  --a 'b c'\n"
        "  --d \"e\"\nx-humcheck:\n  floors: {h100: 0.9, a100: {accuracy: 0.8}}\n  seed: null\n";

    for (size_t size = 0; size < sizeof text - 1; size++) {
        enum err_code rc =
            eval_config_load_text("x", text, size, &arena, &config, &warnings, &errs);

        ck_assert_int_eq(!rc, !errs.count);
        for (size_t i = 0; i < errs.count; i++) {
            ck_assert_int_le(errs.items[i].at.line, 15);
            ck_assert(!i || errs.items[i - 1].at.line <= errs.items[i].at.line);
        }
        errs_free(&errs);
        errs = (struct errs){0};
        arena_reset(&arena);
    }
}
END_TEST

/* Without memory there is an error, whatever the allocation that fails. */
START_TEST(a_full_arena_is_said)
{
    static const char text[] = HEAD "env: {VLLM_A: 'b'}\nserver_args: --a b\n"
                                    "x-humcheck: {floors: {h100: 0.9}, "
                                    "server_command: a}\n";
    enum err_code rc = ERR_NOMEM;

    for (size_t limit = 0; limit < 1 << 16 && rc; limit += 256) {
        struct arena small;

        ck_assert(arena_init(&small, limit));
        rc = eval_config_load_text("x", text, sizeof text - 1, &small, &config, &warnings, &errs);
        ck_assert_msg(!rc || rc == ERR_NOMEM, "%zu: %s", limit, errs.items[0].text);
        errs_free(&errs);
        errs = (struct errs){0};
        arena_free(&small);
    }
    ck_assert_int_eq(rc, ERR_NONE);
}
END_TEST

/* The table of keys is the loader's: each of them is known there. */
START_TEST(every_key_of_the_table_is_known)
{
    struct eval_key k;
    size_t count = 0;
    char text[TEXT];

    for (; eval_config_key(count, &k); count++) {
        bool own = !strcmp(k.group, "x-humcheck");

        (void)snprintf(text, sizeof text, "%s%s: [[]]\n", own ? "x-humcheck:\n  " : "", k.key);
        (void)load(text);
        for (size_t i = 0; i < errs.count; i++)
            ck_assert_msg(!strstr(errs.items[i].text, "unknown key"), "%s", k.key);
        errs_free(&errs);
        errs = (struct errs){0};
    }
    ck_assert_uint_ge(count, 36);
    ck_assert(!eval_config_key(count, &k));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("eval_config");
    TCase *t = tcase_create("eval_config");
    SRunner *r = srunner_create(s);
    int failed;

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, defaults_are_vllms);
    tcase_add_test(t, all_of_vllms_keys);
    tcase_add_test(t, all_of_our_keys);
    tcase_add_test(t, the_model_that_is_sent);
    tcase_add_loop_test(t, words_are_split_as_by_shlex, 0, COUNT(splits));
    tcase_add_loop_test(t, each_word_has_its_place, 0, COUNT(spellings));
    tcase_add_test(t, json_in_a_folded_block);
    tcase_add_test(t, flags);
    tcase_add_test(t, environment_values_are_texts);
    tcase_add_loop_test(t, warnings_do_not_fail, 0, COUNT(warned));
    tcase_add_test(t, too_much_of_everything);
    tcase_add_test(t, cut_files);
    tcase_add_test(t, a_full_arena_is_said);
    tcase_add_test(t, every_key_of_the_table_is_known);
    suite_add_tcase(s, t);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
