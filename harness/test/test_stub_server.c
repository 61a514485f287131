#include "harness/test/stub_server_parts.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* clang-format off */
static const struct {
    const char *prompt;
    uint64_t sum;
} sums[] = {
    {"Question: Ann has 3 pears and 14 figs.\nAnswer:", 17},
    {"Question: 1 + 1\nAnswer: #### 2\n\nQuestion: 5 and 7?\nAnswer:", 12},
    {"no question, 1,000 and 2.5", 1 + 0 + 2 + 5},
    {"-8 apples", 8},
    {"", 0},
    {"ends with 21", 21},
};

/* What a request is: the whole of it, a part, or nonsense. */
static const struct {
    const char *text;
    long length; /* 0: more must come; -1: refused; 1: as long as the text */
} requests[] = {
    {"GET /health HTTP/1.1\r\nHost: a\r\n\r\n", 1},
    {"POST /x HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", 1},
    {"POST /x HTTP/1.1\r\nCONTENT-LENGTH:3\r\n\r\nabc", 1},
    {"POST /x HTTP/1.1\r\nContent-Length: 4\r\n\r\nabc", 0},
    {"POST /x HTTP/1.1\r\nContent-Le", 0},
    {"POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", -1},
    {"POST /x HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", -1},
    {"\r\n\r\n", -1},
    {"", 0},
};
/* clang-format on */

START_TEST(sum)
{
    ck_assert_uint_eq(stub_sum(sums[_i].prompt), sums[_i].sum);
}
END_TEST

START_TEST(request)
{
    struct stub_request r;
    const char *text = requests[_i].text;
    long expected = requests[_i].length == 1 ? (long)strlen(text) : requests[_i].length;

    ck_assert_int_eq(stub_parse(text, strlen(text), &r), expected);
    if (strstr(text, "abc") && expected > 0)
        ck_assert(r.is_post && r.body_bytes == 3 && !memcmp(r.body, "abc", 3));
}
END_TEST

/* Each beginning of a request is incomplete, never wrong. */
START_TEST(request_in_pieces)
{
    static const char text[] = "POST /v1/completions HTTP/1.1\r\nAuthorization: Bearer k\r\n"
                               "Content-Length: 2\r\n\r\n{}";
    struct stub_request r;

    for (size_t n = 0; n < sizeof text - 1; n++)
        ck_assert_int_eq(stub_parse(text, n, &r), 0);
    ck_assert_int_eq(stub_parse(text, sizeof text - 1, &r), sizeof text - 1);
    ck_assert_str_eq(r.path, "/v1/completions");
    ck_assert(r.has_key);
}
END_TEST

START_TEST(prompts)
{
    static const char completion[] = "{\"prompt\":\"a\\nb\"}",
                      chat[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"},"
                               "{\"role\":\"user\",\"content\":\"y\"}]}";
    char *text = stub_prompt(completion, strlen(completion), false);

    ck_assert_str_eq(text, "a\nb");
    free(text);
    text = stub_prompt(chat, strlen(chat), true);
    ck_assert_str_eq(text, "y");
    free(text);
    ck_assert_ptr_null(stub_prompt(chat, strlen(chat), false));
    ck_assert_ptr_null(stub_prompt(chat, strlen(chat) - 1, true));
    ck_assert_ptr_null(stub_prompt("{\"prompt\":7}", 12, false));
}
END_TEST

/* Right answers come from the file; the stated share of them is wrong, always the same ones. */
START_TEST(answers)
{
    char path[] = "/tmp/stub_answers_XXXXXX", why[256], prompt[128];
    FILE *f = fdopen(mkstemp(path), "w");
    struct stub_options o = stub_defaults;
    struct stub_answers *a;
    int wrong = 0;

    ck_assert_ptr_nonnull(f);
    for (int i = 0; i < 2000; i++)
        (void)fprintf(f, "{\"question\":\"Q%d?\",\"answer\":\"It is\\n#### %d\"}\n", i, 3 * i);
    (void)fclose(f);
    a = stub_answers_load(path, why, sizeof why);
    ck_assert_msg(a != NULL, "%s", why);
    o.wrong_permille = 100;
    for (int i = 0; i < 2000; i++) {
        struct stub_text t = {0};
        char mark[32], next[32];

        (void)snprintf(prompt, sizeof prompt,
                       "Question: Q%d?\nAnswer: no\n\nQuestion: Q%d?\nAnswer:", i + 1, i);
        (void)snprintf(mark, sizeof mark, "#### %d", 3 * i);
        (void)snprintf(next, sizeof next, "#### %d", 3 * i + 1);
        stub_answer(&t, &o, a, prompt);
        ck_assert_str_eq(strstr(t.at, "####"), strstr(t.at, "so it is") ? next : mark);
        wrong += strstr(t.at, "so it is") != NULL;
        text_free(&t);
    }
    ck_assert_int_gt(wrong, 150); /* 200 expected, standard deviation 13 */
    ck_assert_int_lt(wrong, 250);
    stub_answers_free(a);
    (void)unlink(path);
    ck_assert_ptr_null(stub_answers_load(path, why, sizeof why));
    ck_assert_ptr_nonnull(strstr(why, "No such file"));
}
END_TEST

START_TEST(chaos)
{
    struct stub_options o = stub_defaults;
    uint32_t set;
    int times[STUB_CHAOS_COUNT] = {0};

    ck_assert(stub_chaos_parse("429,reset", &set));
    ck_assert_uint_eq(set, 1u << STUB_429 | 1u << STUB_RESET);
    ck_assert(stub_chaos_parse("", &set) && set == 0);
    ck_assert(stub_chaos_parse("all,400", &set));
    ck_assert_uint_eq(set, stub_chaos_curable | 1u << STUB_400);
    ck_assert(!stub_chaos_parse("42", &set));
    ck_assert(!stub_chaos_parse("429,,reset", &set));
    o.chaos = 1u << STUB_429 | 1u << STUB_RESET;
    o.chaos_permille = 500;
    for (uint64_t h = 0; h < 4000; h++)
        times[stub_chaos_pick(&o, h, 1)]++;
    /* 2000, 1000 and 1000 expected, standard deviations 32 and 27 */
    ck_assert(times[STUB_RIGHT] > 1850 && times[STUB_RIGHT] < 2150);
    ck_assert(times[STUB_429] > 870 && times[STUB_429] < 1130);
    ck_assert_int_eq(times[STUB_RIGHT] + times[STUB_429] + times[STUB_RESET], 4000);
    for (uint64_t h = 0; h < 1000; h++)
        ck_assert_int_eq(stub_chaos_pick(&o, h, o.max_chaos), STUB_RIGHT);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("stub_server");
    TCase *tc = tcase_create("stub_server");
    SRunner *sr;
    int failed;

    tcase_add_loop_test(tc, sum, 0, sizeof sums / sizeof sums[0]);
    tcase_add_loop_test(tc, request, 0, sizeof requests / sizeof requests[0]);
    tcase_add_test(tc, request_in_pieces);
    tcase_add_test(tc, prompts);
    tcase_add_test(tc, answers);
    tcase_add_test(tc, chaos);
    suite_add_tcase(s, tc);
    sr = srunner_create(s);
    srunner_run_all(sr, CK_ENV);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed != 0;
}
