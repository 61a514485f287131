#include "harness/eval/server.h"

#include "harness/core/proc.h"
#include "harness/eval/environment.h"
#include "harness/eval/store.h"
#include "harness/eval/supervise.h"
#include "harness/test/fake_server.h"

#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT(a) (int)(sizeof(a) / sizeof(a)[0])

/* This program is also the supervisor (as humcheck itself would be: "supervise ...") and every
 * server under test ("fake KIND PORT PIDS"), which writes the numbers of its processes to PIDS. */

enum { PATH = 256, PIDS = 16 };

static struct arena arena;
static struct errs errs;
static char folder[PATH], log_path[2 * PATH], pids_path[2 * PATH];

/* ---- the tests ---- */

static void setup(void)
{
    (void)snprintf(folder, sizeof folder, "/tmp/test_server.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(log_path, sizeof log_path, "%s/log", folder);
    (void)snprintf(pids_path, sizeof pids_path, "%s/pids", folder);
    ck_assert(arena_init(&arena, 64 << 20));
    errs = (struct errs){0};
}

static void teardown(void)
{
    (void)unlink(log_path);
    (void)unlink(pids_path);
    ck_assert_int_eq(rmdir(folder), 0);
    arena_free(&arena);
    errs_free(&errs);
}

struct started {
    struct server *server;
    int port;
    char url[64];
};

static struct started run_fake(const char *kind, double grace_s)
{
    struct started s = {.server = NULL};
    char *argv[] = {arena_strdup(&arena, "/proc/self/exe"),
                    arena_strdup(&arena, "fake"),
                    arena_strdup(&arena, kind),
                    NULL,
                    pids_path,
                    NULL};
    struct server_start how = {.argv = argv, .log = log_path, .grace_s = grace_s, .arena = &arena};

    ck_assert_int_eq(server_free_port(&s.port, &errs), ERR_NONE);
    argv[3] = arena_printf(&arena, "%d", s.port);
    how.port = s.port;
    (void)snprintf(s.url, sizeof s.url, "http://127.0.0.1:%d", s.port);
    ck_assert_int_eq(server_run(&how, &s.server, &errs), ERR_NONE);
    return s;
}

static enum err_code wait_ready(struct started *s, double seconds, struct server_info *info)
{
    struct server_wait w = {.url = s->url,
                            .server = s->server,
                            .endpoint = ENDPOINT_COMPLETIONS,
                            .probe = "{\"prompt\":\"1 + 1 =\"}",
                            .seconds = seconds,
                            .arena = &arena};

    return server_wait(&w, info, &errs);
}

static size_t read_pids(long pids[PIDS])
{
    FILE *f = fopen(pids_path, "r");
    size_t n = 0;

    while (f && n < PIDS && fscanf(f, "%ld", &pids[n]) == 1)
        n++;
    if (f)
        (void)fclose(f);
    return n;
}

/* Every process that noted itself, at least `least`, is gone: dead and reaped. */
static void check_all_gone(size_t least)
{
    long pids[PIDS];
    size_t n = read_pids(pids);

    ck_assert_uint_ge(n, least);
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(kill((pid_t)pids[i], 0) && errno == ESRCH, "process %ld is still there",
                      pids[i]);
}

static void wait_for_pids(size_t least)
{
    long pids[PIDS];

    for (int i = 0; i < 500 && read_pids(pids) < least; i++)
        fake_sleep_ms(10);
    ck_assert_uint_ge(read_pids(pids), least);
}

static void check_sentence(const char *part)
{
    ck_assert_uint_ge(errs.count, 1);
    ck_assert_msg(strstr(errs.items[0].text, part) != NULL, "'%s' is not in '%s'", part,
                  errs.items[0].text);
}

START_TEST(a_good_server_becomes_ready)
{
    struct started s = run_fake(_i ? "slow" : "good", 5);
    struct server_info info;
    char why[SERVER_ENDED_TEXT];

    ck_assert_int_eq(wait_ready(&s, 20, &info), ERR_NONE);
    ck_assert_str_eq(info.version, "vllm 0.9.9");
    ck_assert_uint_eq(info.models, 2);
    ck_assert_str_eq(info.model[0], "short");
    ck_assert_str_eq(info.model[1], "org/model");
    ck_assert(server_alive(s.server, why));
    ck_assert_int_eq(server_stop(s.server, &errs), ERR_NONE);
    check_all_gone(1);
}
END_TEST

/* Alive, but never ready: the deadline holds, whatever the pages say. */
/* clang-format off */
static const struct {
    const char *kind, *sentence;
} unready[] = {
    {"never",  "/health gave HTTP 503"},
    {"lying",  "a completion gave: "},
    {"silent", "/health gave: "},
};
/* clang-format on */

START_TEST(the_deadline_holds)
{
    struct started s = run_fake(unready[_i].kind, 5);
    double before = proc_now();
    struct server_info info;

    ck_assert_int_eq(wait_ready(&s, 1.0, &info), ERR_INFRA);
    ck_assert_double_le(proc_now() - before, 5.0);
    check_sentence("was not ready after 1 s");
    check_sentence(unready[_i].sentence);
    ck_assert_int_eq(server_stop(s.server, &errs), ERR_NONE);
    check_all_gone(1);
}
END_TEST

/* Any end before it is ready is noticed at once, exit code 0 too. */
/* clang-format off */
static const struct {
    const char *kind, *sentence;
} endings[] = {
    {"dies",    "exit code 3"},
    {"ends",    "exit code 0"},
    {"crashes", "signal 11"},
    {"orphans", "exit code 5"},
};
/* clang-format on */

START_TEST(an_end_is_noticed)
{
    struct started s = run_fake(endings[_i].kind, 0.2);
    double before = proc_now();
    struct server_info info;

    ck_assert_int_eq(wait_ready(&s, 60, &info), ERR_INFRA);
    ck_assert_double_le(proc_now() - before, 10.0);
    check_sentence("the server ended before it was ready");
    check_sentence(endings[_i].sentence);
    ck_assert_int_eq(server_stop(s.server, &errs), ERR_NONE);
    check_all_gone(1);
}
END_TEST

START_TEST(its_last_lines_are_kept)
{
    struct started s = run_fake("dies", 1);
    struct server_info info;
    const char *tail;
    int lines = 0;

    ck_assert_int_eq(wait_ready(&s, 60, &info), ERR_INFRA);
    ck_assert_int_eq(server_stop(s.server, &errs), ERR_NONE);
    tail = server_log_tail(log_path, &arena);
    for (const char *at = tail; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    ck_assert_int_eq(lines, SERVER_LOG_LINES);
    ck_assert(!strncmp(tail, "line 21\n", 8));
    ck_assert_ptr_nonnull(strstr(tail, "\nboom\n"));
    ck_assert_str_eq(server_log_tail("/nowhere", &arena), "");
}
END_TEST

START_TEST(a_missing_program_has_a_sentence)
{
    char *argv[] = {arena_strdup(&arena, "no-such-program-anywhere"), NULL};
    struct server_start how = {.argv = argv, .log = log_path, .grace_s = 1, .arena = &arena};
    struct started s = {.url = "http://127.0.0.1:1"};
    struct server_info info;

    ck_assert_int_eq(server_run(&how, &s.server, &errs), ERR_NONE);
    ck_assert_int_eq(wait_ready(&s, 30, &info), ERR_INFRA);
    check_sentence("no such program");
    ck_assert_int_eq(server_stop(s.server, &errs), ERR_NONE);
}
END_TEST

START_TEST(sigterm_may_be_ignored)
{
    struct started s = run_fake("stubborn", 0.3);
    struct server_info info;
    double before;

    ck_assert_int_eq(wait_ready(&s, 20, &info), ERR_NONE);
    before = proc_now();
    ck_assert_int_eq(server_stop(s.server, &errs), ERR_NONE);
    ck_assert_double_ge(proc_now() - before, 0.25);
    ck_assert_double_le(proc_now() - before, 10.0);
    check_all_gone(1);
}
END_TEST

/* Children in its group, and a grandchild in another session that ignores SIGTERM. */
START_TEST(the_whole_tree_goes)
{
    struct started s = run_fake("parent", 0.3);
    struct server_info info;

    ck_assert_int_eq(wait_ready(&s, 20, &info), ERR_NONE);
    wait_for_pids(4);
    ck_assert_int_eq(server_stop(s.server, &errs), ERR_NONE);
    check_all_gone(4);
}
END_TEST

/* Whoever started the server is killed without a chance to say anything. */
START_TEST(the_tree_goes_with_us)
{
    long pids[PIDS];
    size_t left = 1;
    pid_t pid = fork();

    if (!pid) {
        (void)run_fake("parent", 0.2);
        for (;;)
            fake_sleep_ms(1000);
    }
    wait_for_pids(4);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    for (int i = 0; i < 1000 && left; i++) {
        left = 0;
        fake_sleep_ms(10);
        for (size_t k = read_pids(pids); k-- > 0;)
            left += !kill((pid_t)pids[k], 0);
    }
    check_all_gone(4);
}
END_TEST

static volatile sig_atomic_t stop_now = 1;

START_TEST(a_wait_can_be_interrupted)
{
    struct started s = run_fake("silent", 1);
    struct server_wait w = {.url = s.url,
                            .server = s.server,
                            .seconds = 600,
                            .arena = &arena,
                            .interrupted = &stop_now};
    struct server_info info;

    ck_assert_int_eq(server_wait(&w, &info, &errs), ERR_INFRA);
    check_sentence("interrupted");
    ck_assert_int_eq(server_stop(s.server, &errs), ERR_NONE);
    check_all_gone(0);
}
END_TEST

/* ---- commands and environments ---- */

static const char head[] = "model_name: org/model\naccuracy_threshold: 0.5\nnum_questions: 10\n"
                           "num_fewshot: 2\n";

static struct eval_config config_of(const char *more)
{
    const char *text = arena_printf(&arena, "%s%s", head, more);
    struct errs warnings = {0};
    struct eval_config c;

    ck_assert_int_eq(
        eval_config_load_text("c.yaml", text, strlen(text), &arena, &c, &warnings, &errs),
        ERR_NONE);
    errs_free(&warnings);
    return c;
}

/* clang-format off */
static const struct {
    const char *more, *words;
} command_lines[] = {
    {"", "vllm|serve|org/model|--disable-uvicorn-access-log|--seed|0|--port|77"},
    {"server_args: \"--a 'b c' --trust-remote-code\"\n",
     "vllm|serve|org/model|--a|b c|--trust-remote-code|--disable-uvicorn-access-log|--seed|0|--port|77"},
    {"x-humcheck:\n  server_command: \"serve it\"\n",
     "serve|it|org/model|--disable-uvicorn-access-log|--seed|0|--port|77"},
    {"x-humcheck:\n  server_command: \"x -m {model} --at=127.0.0.1:{port} {other}\"\n",
     "x|-m|org/model|--at=127.0.0.1:77|{other}"},
    {"x-humcheck:\n  server_command: \"x {port}{model}{{port}{ {model}}\"\n",
     "x|77org/model{77{|org/model}"},
};
/* clang-format on */

START_TEST(commands)
{
    struct eval_config c = config_of(command_lines[_i].more);
    char *const *argv = server_command(&c, 77, &arena);
    char joined[1024] = "";
    size_t n = 0;

    ck_assert_ptr_nonnull(argv);
    for (size_t i = 0; argv[i]; i++)
        n += (size_t)snprintf(joined + n, sizeof joined - n, "%s%s", i ? "|" : "", argv[i]);
    ck_assert_str_eq(joined, command_lines[_i].words);
}
END_TEST

/* A name that looks like a place to fill in stays as it is. */
START_TEST(a_model_that_names_itself)
{
    static const char text[] = "model_name: \"m{model}{port}\"\naccuracy_threshold: 0.5\n"
                               "num_questions: 10\nnum_fewshot: 2\n"
                               "x-humcheck:\n  server_command: \"x {port}={model}.\"\n";
    struct errs warnings = {0};
    struct eval_config c;
    char *const *argv;

    ck_assert_int_eq(
        eval_config_load_text("c.yaml", text, strlen(text), &arena, &c, &warnings, &errs),
        ERR_NONE);
    errs_free(&warnings);
    argv = server_command(&c, 77, &arena);
    ck_assert_ptr_nonnull(argv);
    ck_assert_str_eq(argv[0], "x");
    ck_assert_str_eq(argv[1], "77=m{model}{port}.");
    ck_assert_ptr_null(argv[2]);
}
END_TEST

static const char *find(char *const *env, const char *name)
{
    const char *found = NULL;
    size_t n = strlen(name);

    for (size_t i = 0; env[i]; i++)
        if (!strncmp(env[i], name, n) && env[i][n] == '=') {
            ck_assert_msg(!found, "%s twice", name);
            found = env[i] + n + 1;
        }
    return found;
}

START_TEST(environments)
{
    struct eval_config c = config_of("env:\n  VLLM_X: \"stated\"\n");
    char *const *env;

    ck_assert_int_eq(setenv("VLLM_X", "ours", 1), 0);
    ck_assert_int_eq(setenv("VLLM_Y", "ours", 1), 0);
    ck_assert_int_eq(setenv("LD_PRELOAD_X", "no", 1), 0);
    ck_assert_int_eq(setenv("PYTHONPATH", "no", 1), 0);
    ck_assert_int_eq(setenv("HOMER", "no", 1), 0);
    ck_assert_int_eq(setenv("VLLM_WORKER_MULTIPROC_METHOD", "fork", 1), 0);
    env = environment_make(&c, &arena);
    ck_assert_ptr_nonnull(env);
    ck_assert_str_eq(find(env, "VLLM_X"), "stated");
    ck_assert_str_eq(find(env, "VLLM_Y"), "ours");
    ck_assert_ptr_nonnull(find(env, "PATH"));
    ck_assert_ptr_null(find(env, "LD_PRELOAD_X"));
    ck_assert_ptr_null(find(env, "PYTHONPATH"));
    ck_assert_ptr_null(find(env, "HOMER"));
    ck_assert_str_eq(find(env, "VLLM_WORKER_MULTIPROC_METHOD"), "spawn");
    ck_assert_str_eq(find(env, "VLLM_ENGINE_READY_TIMEOUT_S"), "1200");
}
END_TEST

START_TEST(programs_are_found)
{
    char path[PATH];

    ck_assert(environment_search("sh", path, sizeof path));
    ck_assert_int_eq(access(path, X_OK), 0);
    ck_assert(environment_search("/bin/sh", path, sizeof path));
    ck_assert_str_eq(path, "/bin/sh");
    ck_assert(!environment_search("/bin/no-such-thing", path, sizeof path));
    ck_assert(!environment_search("sh", path, 3));
}
END_TEST

/* clang-format off */
static const struct {
    const char *text;
    bool has;
    uint64_t drafts, accepted;
} metrics[] = {
    {"# HELP vllm:spec_decode_num_drafts_total x\n"
     "vllm:spec_decode_num_drafts_total{engine=\"0\",model_name=\"m\"} 10.0\n"
     "vllm:spec_decode_num_drafts_total{engine=\"1\",model_name=\"m\"} 5.0\n"
     "vllm:spec_decode_num_accepted_tokens_total{engine=\"0\"} 1.2e1\n", true, 15, 12},
    {"vllm:spec_decode_num_drafts_total 3\nvllm:spec_decode_num_accepted_tokens_total 4", true, 3, 4},
    {"vllm:spec_decode_num_drafts_total 3\n", false, 3, 0},
    {"vllm:spec_decode_num_accepted_tokens_per_pos_total{x=\"1\"} 4\n", false, 0, 0},
    {"vllm:spec_decode_num_drafts_total NaN\nvllm:spec_decode_num_accepted_tokens_total -1\n", false, 0, 0},
    {"", false, 0, 0},
};
/* clang-format on */

START_TEST(drafts)
{
    struct store_drafts d;

    ck_assert_int_eq(server_drafts(metrics[_i].text, &d), metrics[_i].has);
    ck_assert_uint_eq(d.drafts, metrics[_i].drafts);
    ck_assert_uint_eq(d.accepted, metrics[_i].accepted);
}
END_TEST

static int run_tests(void)
{
    Suite *suite = suite_create("server");
    TCase *tc = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, a_good_server_becomes_ready, 0, 2);
    tcase_add_loop_test(tc, the_deadline_holds, 0, COUNT(unready));
    tcase_add_loop_test(tc, an_end_is_noticed, 0, COUNT(endings));
    tcase_add_test(tc, its_last_lines_are_kept);
    tcase_add_test(tc, a_missing_program_has_a_sentence);
    tcase_add_test(tc, sigterm_may_be_ignored);
    tcase_add_test(tc, the_whole_tree_goes);
    tcase_add_test(tc, the_tree_goes_with_us);
    tcase_add_test(tc, a_wait_can_be_interrupted);
    tcase_add_loop_test(tc, commands, 0, COUNT(command_lines));
    tcase_add_test(tc, a_model_that_names_itself);
    tcase_add_test(tc, environments);
    tcase_add_test(tc, programs_are_found);
    tcase_add_loop_test(tc, drafts, 0, COUNT(metrics));
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char *argv[])
{
    const char *words[16];
    size_t n = 0;

    if (argc == 5 && !strcmp(argv[1], "fake"))
        return fake_server(argv[2], argv[3], argv[4]);
    if (argc > 3 && !strcmp(argv[1], "supervise")) {
        for (int i = 3; i < argc && n < 16; i++)
            words[n++] = argv[i];
        return supervise(words, n, &errs) ? EXIT_FAILURE : EXIT_SUCCESS;
    }
    return run_tests();
}
