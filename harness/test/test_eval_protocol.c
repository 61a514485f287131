#include "harness/eval/protocol.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (int)(sizeof(a) / sizeof(a)[0])

enum { ARENA = 1 << 22, ROWS = 12 };

static struct arena arena;
static struct errs errs;
static struct dataset data;

/* Rows named by their place: question "a3", answer "train 3\n#### 3". */
static struct dataset_row *rows_of(const char *split)
{
    struct dataset_row *rows = arena_alloc(&arena, ROWS, sizeof *rows);

    for (int i = 0; i < ROWS; i++) {
        rows[i].question = arena_printf(&arena, "%s %d?", split, i);
        rows[i].answer = arena_printf(&arena, "It is.\n#### %d", i);
        rows[i].label = dataset_label(rows[i].answer);
    }
    return rows;
}

static void setup(void)
{
    ck_assert(arena_init(&arena, ARENA));
    data.train = (struct dataset_rows){.row = rows_of("train"), .count = ROWS};
    data.test = (struct dataset_rows){.row = rows_of("test"), .count = ROWS};
}

static void teardown(void)
{
    errs_free(&errs);
    arena_free(&arena);
}

static struct protocol_options defaults(const char *name)
{
    struct protocol_options o = protocol_find(name)->defaults;

    o.shots = 1;
    o.model = "m/m";
    return o;
}

static struct prompts begin(const char *name, const struct protocol_options *o, size_t questions)
{
    struct prompts p;

    ck_assert_int_eq(prompts_init(&p, protocol_find(name), &data, o, questions, &arena, &errs),
                     ERR_NONE);
    return p;
}

START_TEST(vllm_shows_the_first_rows_of_train)
{
    struct protocol_options o = defaults("vllm");
    struct prompts p;
    struct span text;

    o.shots = 2;
    p = begin("vllm", &o, ROWS);
    text = prompts_text(&p, 3, &arena);
    ck_assert_str_eq(text.at, "Question: train 0?\nAnswer: It is.\n#### 0\n\n"
                              "Question: train 1?\nAnswer: It is.\n#### 1\n\n"
                              "Question: test 3?\nAnswer:");
    ck_assert_uint_eq(text.size, strlen(text.at));
    ck_assert_ptr_eq(prompts_row(&p, 3), &data.test.row[3]);
    o.shots = 0;
    p = begin("vllm", &o, 1);
    ck_assert_str_eq(prompts_text(&p, 0, &arena).at, "Question: test 0?\nAnswer:");
}
END_TEST

START_TEST(gen_prefix_stands_in_examples_and_question)
{
    struct protocol_options o = defaults("vllm");
    struct prompts p;

    o.gen_prefix = " <think>\n\n</think>\n";
    p = begin("vllm", &o, ROWS);
    ck_assert_str_eq(prompts_text(&p, 0, &arena).at,
                     "Question: train 0?\nAnswer: <think>\n\n</think>\n It is.\n#### 0\n\n"
                     "Question: test 0?\nAnswer: <think>\n\n</think>\n");
}
END_TEST

/* random.Random(1234); then sample(range(12), 2) four times, CPython 3.11. */
START_TEST(lm_eval_draws_for_each_question)
{
    static const uint32_t want[4][2] = {{7, 1}, {0, 1}, {9, 0}, {10, 1}};
    struct protocol_options o = defaults("lm-eval");
    struct prompts p;

    o.shots = 2;
    p = begin("lm-eval", &o, 4);
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 2; k++)
            ck_assert_uint_eq(p.rows[2 * i + k], want[i][k]);
}
END_TEST

START_TEST(sglang_asks_only_what_it_does_not_show)
{
    struct protocol_options o = defaults("sglang");
    struct prompts p;

    o.shots = 2;
    p = begin("sglang", &o, ROWS - 2);
    ck_assert_str_eq(prompts_text(&p, 1, &arena).at, "Question: test 0?\nAnswer: It is.\n#### 0\n\n"
                                                     "Question: test 1?\nAnswer: It is.\n#### 1\n\n"
                                                     "Question: test 3?\nAnswer:");
    ck_assert_ptr_eq(prompts_row(&p, 1), &data.test.row[3]);
}
END_TEST

static void plain(struct protocol_options *o)
{
    o->shots = 1;
}

static void without_optional(struct protocol_options *o)
{
    o->seed.set = false;
    o->temperature.set = false;
    o->model = NULL;
}

static void everything(struct protocol_options *o)
{
    o->endpoint = ENDPOINT_CHAT;
    o->max_tokens = 4096;
    o->temperature = (struct maybe_real){true, 0.6};
    o->seed = (struct maybe_int){true, INT64_MAX};
    o->top_p = (struct maybe_real){true, 0.95};
    o->top_k = (struct maybe_int){true, -1};
    o->reasoning_effort = "low";
    o->chat_template_kwargs = " {\"enable_thinking\": false, \"n\": [1, \"\xc3\xa9\"]} ";
}

static void chat(struct protocol_options *o)
{
    o->endpoint = ENDPOINT_CHAT;
}

static void chat_without_model(struct protocol_options *o)
{
    o->endpoint = ENDPOINT_CHAT;
    o->model = NULL;
}

#define PROMPT    "\"a \\\"b\\\"\\n\xe2\x80\xa8\""
#define VLLM_STOP "\"stop\":[\"Question\",\"Assistant:\",\"<|separator|>\"]"
#define LM_STOP   "\"stop\":[\"Question:\",\"</s>\",\"<|im_end|>\"]"
#define VLLM_CHAT "{\"messages\":[{\"role\":\"user\",\"content\":" PROMPT "}],"
#define LM_CHAT   "{\"messages\":[{\"role\":\"user\",\"content\":" PROMPT ",\"type\":\"text\"}],"

/* The whole body: names, order and values as in the sources of the three tools. */
/* clang-format off */
static const struct {
    const char *protocol;
    void (*change)(struct protocol_options *o);
    const char *body;
} requests[] = {
    {"vllm", plain, "{\"prompt\":" PROMPT ",\"max_tokens\":256," VLLM_STOP
                    ",\"temperature\":0,\"seed\":42}"},
    {"vllm", without_optional, "{\"prompt\":" PROMPT ",\"max_tokens\":256," VLLM_STOP "}"},
    {"vllm", everything, VLLM_CHAT "\"max_tokens\":4096," VLLM_STOP ",\"model\":\"m/m\","
                         "\"temperature\":0.6,\"seed\":9223372036854775807,\"top_p\":0.95,"
                         "\"top_k\":-1,\"reasoning_effort\":\"low\",\"chat_template_kwargs\":"
                         "{\"enable_thinking\":false,\"n\":[1,\"\xc3\xa9\"]}}"},
    {"vllm", chat_without_model, VLLM_CHAT "\"max_tokens\":256," VLLM_STOP
                                 ",\"temperature\":0,\"seed\":42}"},
    {"lm-eval", plain, "{\"prompt\":" PROMPT ",\"model\":\"m/m\",\"max_tokens\":256,"
                       "\"temperature\":0," LM_STOP ",\"seed\":1234}"},
    {"lm-eval", chat, LM_CHAT "\"model\":\"m/m\",\"max_tokens\":256,\"temperature\":0,"
                      LM_STOP ",\"seed\":1234}"},
    {"sglang", plain, "{\"model\":\"m/m\",\"prompt\":" PROMPT ",\"max_tokens\":2048," VLLM_STOP
                      ",\"temperature\":0,\"top_p\":1}"},
};
/* clang-format on */

START_TEST(requests_are_the_tool_s)
{
    struct protocol_options o = defaults(requests[_i].protocol);
    struct prompts p;

    requests[_i].change(&o);
    p = begin(requests[_i].protocol, &o, 1);
    ck_assert_str_eq(prompts_request(&p, "a \"b\"\n\xe2\x80\xa8", &arena), requests[_i].body);
}
END_TEST

static void no_tokens(struct protocol_options *o)
{
    o->max_tokens = 0;
}

static void no_model(struct protocol_options *o)
{
    o->model = NULL;
}

static void prefix(struct protocol_options *o)
{
    o->gen_prefix = " ";
}

static void effort(struct protocol_options *o)
{
    o->reasoning_effort = "low";
}

static void kwargs(struct protocol_options *o)
{
    o->endpoint = ENDPOINT_CHAT;
    o->chat_template_kwargs = "[1]";
}

static void cut_kwargs(struct protocol_options *o)
{
    o->endpoint = ENDPOINT_CHAT;
    o->chat_template_kwargs = "{} x";
}

static void cold(struct protocol_options *o)
{
    o->temperature.value = -0.5;
}

static void not_a_temperature(struct protocol_options *o)
{
    o->temperature.value = (double)NAN;
}

static void top_p(struct protocol_options *o)
{
    o->top_p = (struct maybe_real){true, 0.0};
}

static void top_k(struct protocol_options *o)
{
    o->top_k = (struct maybe_int){true, -2};
}

static void seed(struct protocol_options *o)
{
    o->seed.set = true;
}

static void many_shots(struct protocol_options *o)
{
    o->shots = ROWS + 1;
}

static void all_shots(struct protocol_options *o)
{
    o->shots = ROWS;
}

static void other_endpoint(struct protocol_options *o)
{
    o->endpoint = ENDPOINT_COUNT;
}

/* clang-format off */
static const struct {
    const char *protocol;
    void (*change)(struct protocol_options *o);
    size_t questions;
    const char *error;
} refusals[] = {
    {"vllm", plain, 0, "0 questions: protocol vllm can ask 1 to 12 of these data"},
    {"vllm", plain, ROWS + 1, "13 questions: protocol vllm can ask 1 to 12 of these data"},
    {"vllm", plain, SIZE_MAX,
     "18446744073709551615 questions: protocol vllm can ask 1 to 12 of these data"},
    {"sglang", plain, ROWS, "12 questions: protocol sglang can ask 1 to 11 of these data"},
    {"sglang", all_shots, 1, "1 questions: protocol sglang can ask 1 to 0 of these data"},
    {"vllm", many_shots, 1,
     "13 examples before a question: there are 12 rows, and 64 are the limit"},
    {"vllm", no_tokens, 1, "protocol vllm needs max_tokens of at least 1"},
    {"vllm", cold, 1, "protocol vllm needs a temperature from 0 to 100"},
    {"vllm", not_a_temperature, 1, "protocol vllm needs a temperature from 0 to 100"},
    {"vllm", top_p, 1, "protocol vllm needs top_p above 0 and at most 1"},
    {"vllm", top_k, 1, "protocol vllm needs top_k of at least -1"},
    {"vllm", effort, 1, "protocol vllm sends no reasoning_effort to /v1/completions"},
    {"vllm", kwargs, 1, "protocol vllm needs chat_template_kwargs to be an object of JSON"},
    {"vllm", cut_kwargs, 1, "protocol vllm needs chat_template_kwargs to be an object of JSON"},
    {"vllm", other_endpoint, 1, "there is no such endpoint"},
    {"lm-eval", no_model, 1, "protocol lm-eval needs the name of the model"},
    {"lm-eval", prefix, 1, "protocol lm-eval has no gen_prefix"},
    {"lm-eval", top_p, 1, "protocol lm-eval sends no top_p to /v1/completions"},
    {"sglang", chat, 1, "protocol sglang does not use /v1/chat/completions"},
    {"sglang", seed, 1, "protocol sglang sends no seed to /v1/completions"},
};
/* clang-format on */

START_TEST(wrong_options_are_refused)
{
    struct protocol_options o = defaults(refusals[_i].protocol);
    const struct protocol *protocol = protocol_find(refusals[_i].protocol);
    struct prompts p;

    refusals[_i].change(&o);
    ck_assert_int_eq(prompts_init(&p, protocol, &data, &o, refusals[_i].questions, &arena, &errs),
                     ERR_CONFIG);
    ck_assert_uint_ge(errs.count, 1);
    ck_assert_str_eq(errs.items[0].text, refusals[_i].error);
}
END_TEST

START_TEST(all_mistakes_at_once)
{
    struct protocol_options o = defaults("lm-eval");
    struct prompts p;

    no_model(&o);
    no_tokens(&o);
    effort(&o);
    ck_assert_int_eq(prompts_init(&p, protocol_find("lm-eval"), &data, &o, 0, &arena, &errs),
                     ERR_CONFIG);
    ck_assert_uint_eq(errs.count, 4);
}
END_TEST

START_TEST(memory_runs_out_with_a_sentence)
{
    struct protocol_options o = defaults("vllm");
    struct prompts p = begin("vllm", &o, 1);
    struct arena none;

    ck_assert(arena_init(&none, 0));
    ck_assert_ptr_null(prompts_text(&p, 0, &none).at);
    ck_assert_ptr_null(prompts_request(&p, "x", &none));
    ck_assert_int_eq(prompts_init(&p, protocol_find("vllm"), &data, &o, 1, &none, &errs),
                     ERR_NOMEM);
}
END_TEST

START_TEST(rows_of_the_table_are_complete)
{
    for (int i = 0; i < protocol_count; i++) {
        const struct protocol *p = protocols[i];

        ck_assert_ptr_eq(protocol_find(p->name), p);
        ck_assert_int_ge(p->extractor_count, 1);
        ck_assert_int_le(p->extractor_count, PROTOCOL_EXTRACTORS);
        ck_assert_int_ne(p->fields[ENDPOINT_COMPLETIONS][0], FIELD_END);
        ck_assert_ptr_nonnull(p->stops[0]);
        ck_assert(p->source && p->metric && p->defaults.gen_prefix);
    }
    ck_assert_ptr_null(protocol_find("vLLM"));
    ck_assert_str_eq(endpoint_path(ENDPOINT_COMPLETIONS), "/v1/completions");
    ck_assert_str_eq(endpoint_path(ENDPOINT_CHAT), "/v1/chat/completions");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("protocol");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, vllm_shows_the_first_rows_of_train);
    tcase_add_test(tc, gen_prefix_stands_in_examples_and_question);
    tcase_add_test(tc, lm_eval_draws_for_each_question);
    tcase_add_test(tc, sglang_asks_only_what_it_does_not_show);
    tcase_add_loop_test(tc, requests_are_the_tool_s, 0, COUNT(requests));
    tcase_add_loop_test(tc, wrong_options_are_refused, 0, COUNT(refusals));
    tcase_add_test(tc, all_mistakes_at_once);
    tcase_add_test(tc, memory_runs_out_with_a_sentence);
    tcase_add_test(tc, rows_of_the_table_are_complete);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
