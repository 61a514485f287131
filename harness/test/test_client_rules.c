#include "harness/eval/client.h"
#include "harness/eval/client_http.h"
#include "harness/eval/client_retry.h"

#include <check.h>
#include <string.h>

START_TEST(backoff)
{
    const struct client_options o = {.backoff_base_s = 0.5, .backoff_cap_s = 30, .seed = 11};
    double sum = 0, most = 0.5;

    for (int attempt = 1; attempt <= 10; attempt++) {
        for (size_t i = 0; i < 1000; i++) {
            double s = client_backoff_s(&o, i, attempt, 0);

            ck_assert(s >= 0 && s < most);
            ck_assert(s == client_backoff_s(&o, i, attempt, -5));
            sum += s / most;
        }
        most = most * 2 < 30 ? most * 2 : 30;
    }
    /* 10,000 even draws from [0, 1): mean 1/2, standard deviation 0.0029. */
    ck_assert_double_eq_tol(sum / 10000, 0.5, 0.015);
    ck_assert(client_backoff_s(&o, 1, 1, 0) != client_backoff_s(&o, 2, 1, 0));
    for (size_t i = 0; i < 100; i++) {
        double three = client_backoff_s(&o, i, 1, 3), days = client_backoff_s(&o, i, 1, 1e6);

        ck_assert(three >= 3 && three < 3.5);
        ck_assert(days >= CLIENT_RETRY_AFTER_MAX_S && days < CLIENT_RETRY_AFTER_MAX_S + 0.5);
    }
}
END_TEST

/* Every status that there is, against the rule in words. */
START_TEST(statuses)
{
    static const long again[] = {408, 425, 429, 500, 502, 503, 504};

    for (long status = 100; status < 600; status++) {
        enum client_next expected = status >= 520 && status <= 529 ? CLIENT_AGAIN : CLIENT_FINAL;

        for (size_t i = 0; i < sizeof again / sizeof again[0]; i++)
            if (again[i] == status)
                expected = status == 429 || status == 503 ? CLIENT_AGAIN_LATER : CLIENT_AGAIN;
        ck_assert_int_eq(client_after_status(status), expected);
    }
    ck_assert_int_eq(client_after_transport(CURLE_COULDNT_CONNECT), CLIENT_AGAIN);
    ck_assert_int_eq(client_after_transport(CURLE_PARTIAL_FILE), CLIENT_AGAIN);
    ck_assert_int_eq(client_after_transport(CURLE_PEER_FAILED_VERIFICATION), CLIENT_FINAL);
}
END_TEST

static const struct {
    const char *url, *key, *says; /* NULL: good */
} targets[] = {
    {"http://127.0.0.1:8000/v1/completions", NULL, NULL},
    {"http://localhost:8000/v1/completions", "sk-1", NULL},
    {"http://[::1]:8000/v1/completions", "sk-1", NULL},
    {"http://127.1.2.3/x", "sk-1", NULL},
    {"https://example.org/v1/completions", "sk-1", NULL},
    {"http://gpu7:8000/v1/completions", NULL, NULL},
    {"http://gpu7:8000/v1/completions", "sk-1", "plain http"},
    {"http://127.0.0.1.example.org/", "sk-1", "plain http"},
    {"http://localhost.example.org/", "sk-1", "plain http"},
    {"http://me:secret@127.0.0.1/", NULL, "user or password"},
    {"http://me@127.0.0.1/", NULL, "user or password"},
    {"ftp://127.0.0.1/x", NULL, "not an http"},
    {"file:///etc/passwd", NULL, "not an http"},
    {"127.0.0.1:8000/v1", NULL, "URL"},
    {"", NULL, "URL"},
    {"http://", NULL, "URL"},
    {"http://127.0.0.1:99999/", NULL, "URL"},
    {"http://127.0.0.1/", "", "key"},
    {"http://127.0.0.1/", "a\r\nX: y", "key"},
};

START_TEST(target)
{
    const struct client_options o = {.url = targets[_i].url, .api_key = targets[_i].key};
    struct errs errs = {0};
    enum err_code rc = client_check(&o, &errs);

    ck_assert_int_eq(rc, targets[_i].says ? ERR_USAGE : ERR_NONE);
    ck_assert_uint_eq(errs.count > 0, targets[_i].says != NULL);
    if (targets[_i].says) {
        ck_assert_msg(strstr(errs.items[0].text, targets[_i].says) != NULL, "%s",
                      errs.items[0].text);
        ck_assert_ptr_null(strstr(errs.items[0].text, "secret"));
    }
    errs_free(&errs);
}
END_TEST

START_TEST(redaction)
{
    char text[] = "bad key sk-abc, not sk-abcsk-ab", same[] = "nothing";

    client_redact(text, strlen(text), "sk-abc");
    ck_assert_str_eq(text, "bad key ******, not ******sk-ab");
    client_redact(same, strlen(same), NULL);
    client_redact(same, strlen(same), "");
    ck_assert_str_eq(same, "nothing");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("client_rules");
    TCase *tc = tcase_create("client_rules");
    SRunner *sr;
    int failed;

    tcase_add_test(tc, backoff);
    tcase_add_test(tc, statuses);
    tcase_add_loop_test(tc, target, 0, sizeof targets / sizeof targets[0]);
    tcase_add_test(tc, redaction);
    suite_add_tcase(s, tc);
    sr = srunner_create(s);
    srunner_run_all(sr, CK_ENV);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed != 0;
}
