#include "harness/eval/reply.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (int)(sizeof(a) / sizeof(a)[0])
#define BIG      "9007199254740993"

enum { C = ENDPOINT_COMPLETIONS, H = ENDPOINT_CHAT };

static struct arena arena;

/* text NULL: no completion, and `other` is in the sentence; else `other` is the finish reason. */
/* clang-format off */
static const struct {
    int endpoint;
    const char *body, *text, *other;
    int64_t prompt, completion;
} replies[] = {
    {C, "{\"choices\":[{\"text\":\" 18\",\"finish_reason\":\"stop\"}],"
        "\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}}", " 18", "stop", 7, 3},
    {C, "{\"choices\":[{\"text\":\"\",\"finish_reason\":\"length\"}]}", "", "length", -1, -1},
    {C, "{\"choices\":[{\"text\":\"x\"},{\"text\":\"y\"}]}", "x", "", -1, -1},
    {C, "{\"choices\":[{\"text\":null,\"finish_reason\":null}]}", "", "", -1, -1},
    {C, "{\"choices\":[{\"text\":\"a\\u0000b\\\\u0000\"}]}", "a\xef\xbf\xbd" "b\\u0000", "", -1, -1},
    {C, "{\"choices\":[{\"text\":\"NaN\",\"logprobs\":[-Infinity,NaN,Infinity,-NaN]}]}", "NaN", "", -1, -1},
    {C, "{\"choices\":[{\"text\":\"\\\\\",\"x\":NaN}]}", "\\", "", -1, -1},
    {C, "{\"choices\":[{\"text\":\"\xff\xc3\"}]}", "\xff\xc3", "", -1, -1},
    {C, "{\"choices\":[{\"text\":\"a\"}],\"usage\":{\"prompt_tokens\":-1,\"completion_tokens\":" BIG "}}",
        "a", "", -1, -1},
    {H, "{\"choices\":[{\"message\":{\"content\":\"42\"},\"finish_reason\":\"stop\"}]}", "42", "stop", -1, -1},
    {H, "{\"choices\":[{\"index\":0,\"message\":{\"content\":null,\"reasoning_content\":\"long\"},"
        "\"finish_reason\":\"length\"}]}", "", "length", -1, -1},
    {H, "{\"choices\":[{\"text\":\"42\"}]}", NULL, "has no message", 0, 0},
    {H, "{\"choices\":[{\"message\":null,\"finish_reason\":\"content_filter\"}]}", NULL, "no message", 0, 0},
    {H, "{\"choices\":[{\"message\":{\"content\":5}}]}", NULL, "has no content", 0, 0},
    {H, "{\"choices\":[{\"message\":{}}]}", NULL, "has no content", 0, 0},
    {C, "{\"choices\":[{\"message\":{\"content\":\"42\"}}]}", NULL, "has no text", 0, 0},
    {C, "{\"choices\":[]}", NULL, "no choices", 0, 0},
    {C, "{\"choices\":null}", NULL, "no choices", 0, 0},
    {C, "{\"choices\":{}}", NULL, "no choices", 0, 0},
    {C, "{\"choices\":[7]}", NULL, "no choices", 0, 0},
    {C, "{}", NULL, "no choices", 0, 0},
    {C, "[]", NULL, "no choices", 0, 0},
    {C, "{\"error\":{\"message\":\"engine failed\"}}", NULL, "no choices", 0, 0},
    {C, "{\"choices\":[{\"text\":\"18\"}", NULL, "not JSON", 0, 0},
    {C, "{\"choices\":[{\"text\":\"18\"}]} x", NULL, "not JSON", 0, 0},
    {C, "<html>", NULL, "not JSON", 0, 0},
    {C, "", NULL, "not JSON", 0, 0},
};
/* clang-format on */

START_TEST(every_reply)
{
    const char *body = replies[_i].body;
    struct reply r;
    char why[REPLY_WHY] = "";
    enum reply_kind kind =
        reply_parse(body, strlen(body), (enum endpoint)replies[_i].endpoint, &arena, &r, why);

    ck_assert_int_eq(kind, replies[_i].text ? REPLY_OK : REPLY_BAD);
    if (!replies[_i].text) {
        ck_assert_msg(strstr(why, replies[_i].other) != NULL, "%s", why);
        return;
    }
    ck_assert_str_eq(r.text.at, replies[_i].text);
    ck_assert_uint_eq(r.text.size, strlen(replies[_i].text));
    ck_assert_str_eq(r.finish_reason, replies[_i].other);
    ck_assert_int_eq(r.prompt_tokens, replies[_i].prompt);
    ck_assert_int_eq(r.completion_tokens, replies[_i].completion);
}
END_TEST

/* A reply cut anywhere is no reply, and no cut crashes. */
START_TEST(cut_replies)
{
    const char *body = replies[0].body;
    char why[REPLY_WHY], cut[256] = "";
    struct reply r;

    for (size_t n = 0; n < strlen(body); n++) {
        memcpy(cut, body, n);
        cut[n] = '\0';
        ck_assert_int_eq(reply_parse(cut, n, ENDPOINT_COMPLETIONS, &arena, &r, why), REPLY_BAD);
    }
}
END_TEST

START_TEST(models_and_members)
{
    static const char list[] = "{\"object\":\"list\",\"data\":[{\"id\":\"short\",\"root\":\"a/b\"},"
                               "{\"id\":7},{\"id\":\"c\"}]}";
    const char *ids[3];

    ck_assert_uint_eq(reply_models(list, sizeof list - 1, &arena, ids, 3), 3);
    ck_assert_str_eq(ids[0], "short");
    ck_assert_str_eq(ids[1], "a/b");
    ck_assert_str_eq(ids[2], "c");
    ck_assert_uint_eq(reply_models(list, sizeof list - 1, &arena, ids, 1), 1);
    ck_assert_uint_eq(reply_models("{}", 2, &arena, ids, 3), 0);
    ck_assert_uint_eq(reply_models("no", 2, &arena, ids, 3), 0);
    ck_assert_str_eq(reply_member("{\"version\":\"0.9\"}", 17, "version", &arena), "0.9");
    ck_assert_ptr_null(reply_member("{\"version\":9}", 13, "version", &arena));
    ck_assert_ptr_null(reply_member("x", 1, "version", &arena));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reply");
    TCase *tc = tcase_create("all");
    SRunner *runner;
    int failed;

    if (!arena_init(&arena, 1 << 20))
        return EXIT_FAILURE;
    tcase_add_loop_test(tc, every_reply, 0, COUNT(replies));
    tcase_add_test(tc, cut_replies);
    tcase_add_test(tc, models_and_members);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    arena_free(&arena);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
