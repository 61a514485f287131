#include "harness/core/proc.h"
#include "harness/test/client_world.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* ---- stopping ---- */

START_TEST(interrupt)
{
    static struct job_world j;
    struct stub_options so = stub_defaults;
    struct client_options o;
    struct errs errs = {0};
    double before = proc_now();
    struct stub_thread w;

    so.latency_ms = 60000;
    stub_start(&w, &so);
    o = options_for(&w, 8);
    make_jobs(&j, 100);
    j.interrupt_at_tick = 1;
    ck_assert_int_eq(run(&o, &j, &errs), ERR_NONE);
    ck_assert(proc_now() - before < 1);
    (void)stub_stop(&w);
    ck_assert_uint_eq(j.last.done, 8);
    ck_assert_uint_eq(j.last.ok + j.last.failed + j.last.in_flight + j.last.waiting, 0);
    for (size_t i = 0; i < j.count; i++) {
        ck_assert_int_eq(j.jobs[i].times, i < 8);
        if (i < 8) {
            ck_assert_int_eq(j.jobs[i].outcome, CLIENT_INTERRUPTED);
            ck_assert_str_eq(j.jobs[i].error, "interrupted");
        }
    }
    stub_close(w.server);
}
END_TEST

/* The wait between two attempts is interrupted as well. */
START_TEST(interrupt_waiting)
{
    static struct job_world j;
    struct stub_options so = stub_defaults;
    struct client_options o;
    struct errs errs = {0};
    struct stub_thread w;

    so.chaos = 1u << STUB_503_SECONDS;
    so.retry_after_s = 100;
    stub_start(&w, &so);
    o = options_for(&w, 4);
    make_jobs(&j, 10);
    j.interrupt_at_tick = 2;
    ck_assert_int_eq(run(&o, &j, &errs), ERR_NONE);
    (void)stub_stop(&w);
    ck_assert_uint_eq(j.done, 4);
    ck_assert(j.last.elapsed_s < 1);
    stub_close(w.server);
}
END_TEST

START_TEST(interrupted_before)
{
    static struct job_world j;
    struct client_options o;
    struct errs errs = {0};
    struct stub_thread w;

    stub_start(&w, &stub_defaults);
    o = options_for(&w, 4);
    make_jobs(&j, 10);
    j.interrupted = 1;
    ck_assert_int_eq(run(&o, &j, &errs), ERR_NONE);
    ck_assert_uint_eq(j.done, 0);
    ck_assert_uint_eq(stub_stop(&w)->requests, 0);
    stub_close(w.server);
}
END_TEST

START_TEST(done_fails)
{
    static struct job_world j;
    struct client_options o;
    struct errs errs = {0};
    struct stub_thread w;

    stub_start(&w, &stub_defaults);
    o = options_for(&w, 4);
    make_jobs(&j, 100);
    j.fail_at = 10;
    ck_assert_int_eq(run(&o, &j, &errs), ERR_IO);
    ck_assert_uint_eq(j.done, 10);
    ck_assert_str_eq(errs.items[0].text, "the disk is full");
    (void)stub_stop(&w);
    stub_close(w.server);
    errs_free(&errs);
}
END_TEST

/* ---- options ---- */

static void spoil_option(struct client_options *o, int which)
{
    const double nan = strtod("nan", NULL);

    o->concurrency = which == 0 ? 0 : which == 1 ? CLIENT_CONCURRENCY_MAX + 1 : o->concurrency;
    o->timeout_s = which == 2 ? nan : which == 3 ? 0 : o->timeout_s;
    o->connect_timeout_s = which == 4 ? -1 : o->connect_timeout_s;
    o->max_attempts = which == 5 ? 0 : o->max_attempts;
    o->backoff_base_s = which == 6 ? nan : o->backoff_base_s;
    o->backoff_cap_s = which == 7 ? 1e9 : o->backoff_cap_s;
    o->max_body_bytes = which == 8 ? 0 : o->max_body_bytes;
    o->url = which == 9 ? "gopher://127.0.0.1/" : o->url;
}

START_TEST(bad_options)
{
    static struct job_world j;
    struct stub_thread w;
    struct client_options o;
    struct errs errs = {0};

    stub_start(&w, &stub_defaults);
    o = options_for(&w, 2);
    spoil_option(&o, _i);
    make_jobs(&j, 3);
    ck_assert_int_eq(run(&o, &j, &errs), ERR_USAGE);
    ck_assert_uint_eq(errs.count, 1);
    ck_assert_uint_eq(j.done, 0);
    ck_assert_uint_eq(stub_stop(&w)->connections, 0);
    stub_close(w.server);
    errs_free(&errs);
}
END_TEST

/* A low soft limit of open files is raised for the run, and put back. */
START_TEST(open_files)
{
    static struct job_world j;
    struct stub_options so = stub_defaults;
    struct rlimit limit, after;
    struct client_options o;
    struct stub_thread w;

    so.latency_ms = 5;
    stub_start(&w, &so);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = 32;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    o = options_for(&w, 40); /* the server's ends are files of this process as well */
    make_jobs(&j, 200);
    run_good(&o, &j);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &after), 0);
    ck_assert_uint_eq(after.rlim_cur, 32);
    (void)stub_stop(&w);
    assert_all_right(&j);
    stub_close(w.server);
}
END_TEST

START_TEST(key)
{
    static struct job_world j;
    struct client_options o;
    struct stub_thread w;

    stub_start(&w, &stub_defaults);
    o = options_for(&w, 4);
    o.api_key = "sk-abc";
    make_jobs(&j, 20);
    run_good(&o, &j);
    assert_all_right(&j);
    ck_assert_uint_eq(stub_stop(&w)->keyed, 20);
    stub_close(w.server);
}
END_TEST

/* ---- GET ---- */

START_TEST(get)
{
    struct arena arena;
    struct client_page page;
    struct stub_thread w;
    char url[128];
    /* clang-format off */
    static const struct {
        const char *path;
        long status;
        const char *says;
    } pages[] = {
        {"/health", 200, ""},
        {"/v1/models", 200, "\"id\":\"stub\""},
        {"/metrics", 200, "stub:requests_total 0\n"},
        {"/none", 404, "no such path"},
    };
    /* clang-format on */

    ck_assert(arena_init(&arena, CLIENT_PAGE_MAX + 4096));
    stub_start(&w, &stub_defaults);
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
        (void)snprintf(url, sizeof url, "http://localhost:%d%s", stub_port(w.server),
                       pages[i].path);
        ck_assert_msg(client_get(url, NULL, 2, &arena, &page), "%s", page.error);
        ck_assert_int_eq((int)page.status, (int)pages[i].status);
        ck_assert_uint_eq(page.bytes, strlen(page.body));
        ck_assert_ptr_nonnull(strstr(page.body, pages[i].says));
    }
    (void)stub_stop(&w);
    stub_close(w.server);
    ck_assert(!client_get(url, NULL, 2, &arena, &page));
    ck_assert_ptr_nonnull(strstr(page.error, "onnect"));
    ck_assert_int_eq((int)page.status, 0);
    ck_assert(!client_get("file:///etc/passwd", NULL, 2, &arena, &page));
    ck_assert_ptr_nonnull(strstr(page.error, "not an http"));
    arena_free(&arena);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("client_stop");
    TCase *tc = tcase_create("client_stop");
    SRunner *sr;
    int failed;

    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, interrupt);
    tcase_add_test(tc, interrupt_waiting);
    tcase_add_test(tc, interrupted_before);
    tcase_add_test(tc, done_fails);
    tcase_add_loop_test(tc, bad_options, 0, 10);
    tcase_add_test(tc, open_files);
    tcase_add_test(tc, key);
    tcase_add_test(tc, get);
    suite_add_tcase(s, tc);
    sr = srunner_create(s);
    srunner_run_all(sr, CK_ENV);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed != 0;
}
