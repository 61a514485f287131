#include "harness/test/client_world.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* ---- one misbehaviour at a time ---- */

/* Twice for each prompt, then the right answer. libcurl itself repeats a request at once when a
 * connection that was used before is closed without a byte, so `least` may be less than 3. */
/* clang-format off */
static const struct {
    enum stub_chaos chaos;
    int least, most; /* attempts a job */
    enum client_outcome outcome;
    long status;
    const char *says; /* in the sentence of a job that was given two attempts only */
} alone[] = {
    {STUB_RIGHT,        1, 1, CLIENT_OK, 200, ""},
    {STUB_CLOSE,        1, 1, CLIENT_OK, 200, ""},
    {STUB_TWICE,        1, 1, CLIENT_OK, 200, ""},
    {STUB_TRICKLE,      1, 1, CLIENT_OK, 200, ""},
    {STUB_REFUSE,       1, 99, CLIENT_OK, 200, "attempts)"},
    {STUB_HANG_UP,      1, 3, CLIENT_OK, 200, "Empty reply from server (2 attempts)"},
    {STUB_RESET,        3, 3, CLIENT_OK, 200, "reset by peer (2 attempts)"},
    {STUB_STALL,        3, 99, CLIENT_OK, 200, "timed out after"},
    {STUB_TRUNCATED,    3, 3, CLIENT_OK, 200, "bytes remaining to read (2 attempts)"},
    {STUB_SHORT,        3, 3, CLIENT_OK, 200, "HTTP 200 with a body of the wrong kind: {"},
    {STUB_GARBAGE,      3, 3, CLIENT_OK, 200, "HTTP/0.9"},
    {STUB_429,          3, 3, CLIENT_OK, 200, "HTTP 429: {\"error\":"},
    {STUB_503,          3, 3, CLIENT_OK, 200, "HTTP 503: {\"error\":"},
    {STUB_500,          3, 3, CLIENT_OK, 200, "HTTP 500: {\"error\":"},
    {STUB_400,          1, 1, CLIENT_HTTP, 400, "HTTP 400: {\"error\":"},
    {STUB_NOT_JSON,     3, 3, CLIENT_OK, 200, "wrong kind: <html>"},
    {STUB_BAD_UTF8,     3, 3, CLIENT_OK, 200, "wrong kind: {"},
    {STUB_NULL,         1, 1, CLIENT_OK, 200, ""},
    {STUB_EMPTY,        1, 1, CLIENT_OK, 200, ""},
    {STUB_NO_CHOICES,   3, 3, CLIENT_OK, 200, "wrong kind: {"},
    {STUB_HUGE,         3, 3, CLIENT_OK, 200, "the reply is longer than 65536 bytes (2 attempts)"},
    {STUB_HUGE_UNKNOWN, 3, 3, CLIENT_OK, 200, "the reply is longer than 65536 bytes (2 attempts)"},
};
/* clang-format on */

static void run_alone(int row, int max_attempts, struct job_world *j)
{
    struct stub_options so = stub_defaults;
    struct client_options o;
    struct stub_thread w;

    so.chaos = 1u << alone[row].chaos;
    so.huge_bytes = 1 << 20;
    so.refuse_ms = 3;
    stub_start(&w, &so);
    o = options_for(&w, 20);
    o.timeout_s = alone[row].chaos == STUB_STALL ? 0.06 : 5;
    o.max_attempts = max_attempts;
    make_jobs(j, 40);
    run_good(&o, j);
    ck_assert_uint_gt(stub_stop(&w)->chaos[alone[row].chaos], 0);
    stub_close(w.server);
}

START_TEST(chaos_alone)
{
    static struct job_world j;
    bool has_text = alone[_i].chaos != STUB_NULL && alone[_i].chaos != STUB_EMPTY;

    run_alone(_i, 99, &j);
    for (size_t i = 0; i < j.count; i++) {
        const struct got *g = &j.jobs[i];

        ck_assert_msg(g->outcome == alone[_i].outcome && g->status == alone[_i].status,
                      "job %zu: %s", i, g->error);
        ck_assert_int_ge(g->attempts, alone[_i].least);
        ck_assert_int_le(g->attempts, alone[_i].most);
        if (g->outcome == CLIENT_OK)
            ck_assert_uint_eq(g->number, has_text ? right_sum(i) : 0);
    }
}
END_TEST

/* Too few attempts: an error that says what it was, never an answer. */
START_TEST(chaos_exhausted)
{
    static struct job_world j;
    size_t said = 0;

    run_alone(_i, 2, &j);
    for (size_t i = 0; i < j.count; i++) {
        const struct got *g = &j.jobs[i];

        ck_assert_int_le(g->attempts, 2);
        if (g->outcome == CLIENT_OK) {
            ck_assert_str_eq(g->error, "");
            continue;
        }
        ck_assert_int_ne(g->error[0], '\0');
        ck_assert_uint_eq(g->number, 0);
        said += strstr(g->error, alone[_i].says) != NULL;
    }
    if (alone[_i].says[0])
        ck_assert_msg(said > 0, "%s", j.jobs[0].error);
}
END_TEST

/* ---- all of them ---- */

START_TEST(chaos_mixed)
{
    static struct job_world j;
    struct stub_options so = stub_defaults;
    struct client_options o;
    const struct stub_stats *s;
    struct stub_thread w;
    size_t kinds = 0;

    so.chaos = stub_chaos_curable;
    so.chaos_permille = 700;
    so.seed = (uint64_t)_i;
    so.max_chaos = 3;
    so.retry_after_s = 0;
    so.huge_bytes = 1 << 20;
    so.refuse_ms = 3;
    stub_start(&w, &so);
    o = options_for(&w, 40);
    o.timeout_s = 0.1;
    o.max_attempts = 99;
    make_jobs(&j, 200);
    run_good(&o, &j);
    s = stub_stop(&w);
    assert_all_right(&j);
    for (int i = 0; i < STUB_CHAOS_COUNT; i++)
        kinds += s->chaos[i] > 0;
    ck_assert_uint_ge(kinds, 18);
    ck_assert_uint_gt(j.last.retries, 100);
    ck_assert_uint_le(s->in_flight_most, 40);
    stub_close(w.server);
}
END_TEST

/* ---- connections ---- */

static const struct {
    int jobs, concurrency;
    double latency_ms;
} loads[] = {{600, 1, 0}, {600, 4, 0}, {200, 8, 5}, {300, 100, 40}, {3, 100, 5}, {0, 4, 0}};

START_TEST(connections_are_kept)
{
    static struct job_world j;
    struct stub_options so = stub_defaults;
    int most = loads[_i].jobs < loads[_i].concurrency ? loads[_i].jobs : loads[_i].concurrency;
    struct client_options o;
    const struct stub_stats *s;
    struct stub_thread w;

    so.latency_ms = loads[_i].latency_ms;
    stub_start(&w, &so);
    o = options_for(&w, loads[_i].concurrency);
    make_jobs(&j, (size_t)loads[_i].jobs);
    run_good(&o, &j);
    s = stub_stop(&w);
    assert_all_right(&j);
    ck_assert_uint_eq(s->connections, (size_t)most);
    ck_assert_uint_eq(j.last.connections, (size_t)most);
    ck_assert_uint_eq(s->requests, (size_t)loads[_i].jobs);
    ck_assert_uint_le(s->in_flight_most, (size_t)most);
    if (so.latency_ms > 0)
        ck_assert_uint_gt(s->in_flight_most, (size_t)most / 2); /* all, on an idle machine */
    stub_close(w.server);
}
END_TEST

/* Twenty requests one after the other take longer than the limit of one. */
START_TEST(timeout_without_queueing)
{
    static struct job_world j;
    struct stub_options so = stub_defaults;
    struct client_options o;
    struct stub_thread w;

    so.latency_ms = 20;
    stub_start(&w, &so);
    o = options_for(&w, 1);
    o.timeout_s = 0.2;
    make_jobs(&j, 20);
    run_good(&o, &j);
    (void)stub_stop(&w);
    assert_all_right(&j);
    ck_assert(j.last.elapsed_s > o.timeout_s);
    ck_assert_uint_eq(j.last.retries, 0);
    for (size_t i = 0; i < j.count; i++)
        ck_assert(j.jobs[i].latency_s >= 0.019 && j.jobs[i].latency_s < o.timeout_s);
    stub_close(w.server);
}
END_TEST

/* Slower than the limit: every attempt is cut off, and says so. */
START_TEST(timeout_is_an_error)
{
    static struct job_world j;
    struct stub_options so = stub_defaults;
    struct client_options o;
    struct stub_thread w;

    so.latency_ms = 1000;
    stub_start(&w, &so);
    o = options_for(&w, 4);
    o.timeout_s = 0.05;
    o.max_attempts = 2;
    make_jobs(&j, 4);
    run_good(&o, &j);
    (void)stub_stop(&w);
    ck_assert_uint_eq(j.last.failed, 4);
    for (size_t i = 0; i < j.count; i++) {
        ck_assert_int_eq(j.jobs[i].outcome, CLIENT_TRANSPORT);
        ck_assert_int_eq(j.jobs[i].attempts, 2);
        ck_assert_int_eq((int)j.jobs[i].status, 0);
        ck_assert_ptr_nonnull(strstr(j.jobs[i].error, "timed out"));
    }
    stub_close(w.server);
}
END_TEST

START_TEST(nobody_listens)
{
    static struct job_world j;
    struct client_options o;
    struct stub_thread w;

    stub_start(&w, &stub_defaults);
    (void)stub_stop(&w);
    stub_close(w.server);
    o = options_for(&w, 4);
    o.max_attempts = 3;
    make_jobs(&j, 10);
    run_good(&o, &j);
    for (size_t i = 0; i < j.count; i++) {
        ck_assert_int_eq(j.jobs[i].outcome, CLIENT_TRANSPORT);
        ck_assert_int_eq(j.jobs[i].attempts, 3);
        ck_assert_ptr_nonnull(strstr(j.jobs[i].error, "onnect"));
    }
}
END_TEST

/* A proxy of the environment is for other machines (localstack#239): port 9 would refuse. */
START_TEST(no_proxy_for_this_machine)
{
    static const char *const variables[] = {"http_proxy", "all_proxy", "ALL_PROXY"};
    static struct job_world j;
    struct client_options o;
    struct stub_thread w;

    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        ck_assert_int_eq(setenv(variables[i], "http://127.0.0.1:9", 1), 0);
    stub_start(&w, &stub_defaults);
    o = options_for(&w, 4);
    make_jobs(&j, 10);
    run_good(&o, &j);
    (void)stub_stop(&w);
    stub_close(w.server);
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        ck_assert_int_eq(unsetenv(variables[i]), 0);
    assert_all_right(&j);
}
END_TEST

/* ---- Retry-After ---- */

START_TEST(retry_after)
{
    static struct job_world j;
    struct stub_options so = stub_defaults;
    struct client_options o;
    const struct stub_stats *s;
    struct stub_thread w;

    so.chaos = 1u << STUB_429_SECONDS | 1u << STUB_503_SECONDS | 1u << STUB_429_DATE;
    so.max_chaos = 1;
    stub_start(&w, &so);
    o = options_for(&w, 24);
    make_jobs(&j, 24);
    run_good(&o, &j);
    s = stub_stop(&w);
    assert_all_right(&j);
    ck_assert_uint_gt(s->chaos[STUB_429_SECONDS], 0);
    ck_assert_uint_gt(s->chaos[STUB_503_SECONDS], 0);
    ck_assert_uint_gt(s->chaos[STUB_429_DATE], 0);
    ck_assert(!(s->retry_early_s > 0));
    ck_assert(j.last.elapsed_s >= 1);
    for (size_t i = 0; i < j.count; i++) {
        ck_assert_int_eq(j.jobs[i].attempts, 2);
        ck_assert(j.jobs[i].latency_s < j.jobs[i].total_s);
    }
    stub_close(w.server);
}
END_TEST

int main(void)
{
    static const int n_alone = sizeof alone / sizeof alone[0];
    Suite *s = suite_create("client");
    TCase *tc = tcase_create("client");
    SRunner *sr;
    int failed;

    tcase_set_timeout(tc, 30);
    tcase_add_loop_test(tc, chaos_alone, 0, n_alone);
    tcase_add_loop_test(tc, chaos_exhausted, 0, n_alone);
    tcase_add_loop_test(tc, chaos_mixed, 0, 2);
    tcase_add_loop_test(tc, connections_are_kept, 0, sizeof loads / sizeof loads[0]);
    tcase_add_test(tc, timeout_without_queueing);
    tcase_add_test(tc, timeout_is_an_error);
    tcase_add_test(tc, nobody_listens);
    tcase_add_test(tc, no_proxy_for_this_machine);
    tcase_add_test(tc, retry_after);
    suite_add_tcase(s, tc);
    sr = srunner_create(s);
    srunner_run_all(sr, CK_ENV);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed != 0;
}
