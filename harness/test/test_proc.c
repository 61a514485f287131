#include "harness/core/proc.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ALL = PROC_IN | PROC_OUT | PROC_ERR };

static struct proc start(const char *script, unsigned pipes, char *const *env)
{
    char sh[] = "sh", c[] = "-c", text[512];
    char *const argv[] = {sh, c, text, NULL};
    const struct proc_options o = {.path = "/bin/sh", .argv = argv, .env = env, .pipes = pipes};
    struct errs errs = {0};
    struct proc p;

    ck_assert_uint_lt(strlen(script), sizeof text);
    memcpy(text, script, strlen(script) + 1);
    ck_assert_int_eq(proc_spawn(&p, &o, &errs), ERR_NONE);
    ck_assert_int_gt(p.pid, 0);
    return p;
}

/* Everything until the end of the stream. */
static const char *read_all(int fd, char *buf, size_t size)
{
    size_t used = 0;

    for (;;) {
        struct pollfd f = {.fd = fd, .events = POLLIN};
        ssize_t n;

        ck_assert_int_eq(poll(&f, 1, 5000), 1);
        n = read(fd, buf + used, size - 1 - used);
        ck_assert_int_ge((int)n, 0);
        used += (size_t)n;
        buf[used] = '\0';
        if (n == 0)
            return buf;
    }
}

static void assert_no_children(void)
{
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    ck_assert_int_eq(errno, ECHILD);
}

START_TEST(three_pipes)
{
    struct proc p = start("read x; echo \"got $x\"; echo bad >&2; exit 6", ALL, NULL);
    char buf[64];

    ck_assert_int_eq((int)write(p.in, "word\n", 5), 5);
    ck_assert_str_eq(read_all(p.out, buf, sizeof buf), "got word\n");
    ck_assert_str_eq(read_all(p.err, buf, sizeof buf), "bad\n");
    ck_assert(proc_wait(&p, 5));
    ck_assert_str_eq(proc_describe(proc_kill(&p), buf, sizeof buf), "exit code 6");
    ck_assert_int_eq(p.pid, 0);
    ck_assert_int_eq(p.in & p.out & p.err, -1);
    assert_no_children();
}
END_TEST

START_TEST(end_of_input)
{
    struct proc p = start("cat; echo end", PROC_IN | PROC_OUT, NULL);
    char buf[64];

    ck_assert(!proc_wait(&p, 0.02));
    ck_assert_int_eq(p.err, -1);
    proc_close(&p.in);
    ck_assert_int_eq(p.in, -1);
    ck_assert_str_eq(read_all(p.out, buf, sizeof buf), "end\n");
    ck_assert(proc_wait(&p, 5));
    ck_assert_int_eq(proc_kill(&p), 0);
}
END_TEST

START_TEST(environment_is_the_one_given)
{
    char one[] = "ONE=1";
    char *const env[] = {one, NULL};
    struct proc p = start("echo $ONE$HOME", PROC_OUT, env);
    char buf[64];

    ck_assert_str_eq(read_all(p.out, buf, sizeof buf), "1\n");
    (void)proc_kill(&p);
}
END_TEST

static const struct {
    const char *script, *end;
} ends[] = {
    {"kill -11 $$", "signal 11 (Segmentation fault)"},
    {"kill -6 $$", "signal 6 (Aborted)"},
    {"exit 0", "exit code 0"},
    {"exit 255", "exit code 255"},
};

START_TEST(how_it_ended)
{
    struct proc p = start(ends[_i].script, 0, NULL);
    char buf[64];

    ck_assert(proc_wait(&p, 5));
    ck_assert(proc_wait(&p, 0)); /* asked twice, not reaped between */
    ck_assert_str_eq(proc_describe(proc_kill(&p), buf, sizeof buf), ends[_i].end);
    assert_no_children();
}
END_TEST

/* A grandchild that ignores the polite signals holds the pipe; killing the group ends it. */
START_TEST(the_whole_group_is_killed)
{
    struct proc p = start("trap '' TERM INT HUP; sleep 60 & echo up; wait", PROC_OUT, NULL);
    int out = fcntl(p.out, F_DUPFD_CLOEXEC, 3);
    struct pollfd f = {.fd = out, .events = POLLIN};
    double before = proc_now();
    char buf[64];

    ck_assert_int_eq(poll(&f, 1, 5000), 1);
    ck_assert_int_eq((int)read(out, buf, sizeof buf), 3);
    ck_assert_int_eq(proc_kill(&p), SIGKILL);
    ck_assert_str_eq(read_all(out, buf, sizeof buf), "");
    ck_assert(proc_now() - before < 5);
    (void)close(out);
    assert_no_children();
}
END_TEST

/* How many descriptors a child with these pipes has open. */
static int fds_of_child(unsigned pipes)
{
    struct proc p = start("ls /proc/self/fd | wc -l", pipes | PROC_OUT, NULL);
    char buf[64];
    int n = (int)strtol(read_all(p.out, buf, sizeof buf), NULL, 10);

    (void)proc_kill(&p);
    return n;
}

/* A child sees neither our ends of its pipes nor anything of its siblings. */
START_TEST(nothing_is_inherited)
{
    int before = fds_of_child(0);
    struct proc sibling = start("sleep 60", ALL, NULL);

    ck_assert_int_ge(before, 4); /* 0, 1, 2 and the folder that ls reads */
    ck_assert_int_eq(fds_of_child(0), before);
    ck_assert_int_eq(fds_of_child(ALL), before);
    (void)proc_kill(&sibling);
    assert_no_children();
}
END_TEST

/* A program that was started without standard streams. */
START_TEST(closed_streams_of_our_own)
{
    int keep = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 10);
    char buf[64];
    struct proc p;

    (void)close(STDIN_FILENO);
    (void)close(STDOUT_FILENO);
    p = start("read x; echo \"got $x\"", PROC_IN | PROC_OUT, NULL);
    ck_assert_int_ge(p.in, 3);
    ck_assert_int_ge(p.out, 3);
    ck_assert_int_eq((int)write(p.in, "word\n", 5), 5);
    ck_assert_str_eq(read_all(p.out, buf, sizeof buf), "got word\n");
    (void)proc_kill(&p);
    (void)dup2(keep, STDOUT_FILENO);
}
END_TEST

START_TEST(signals_are_reset)
{
    sigset_t all;
    char buf[64];
    struct proc p;

    (void)sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    p = start("kill -PIPE $$; exit 0", 0, NULL);
    ck_assert(proc_wait(&p, 5));
    ck_assert_str_eq(proc_describe(proc_kill(&p), buf, sizeof buf), "signal 13 (Broken pipe)");
}
END_TEST

START_TEST(what_is_not_there)
{
    char name[] = "x";
    char *const argv[] = {name, NULL};
    const struct proc_options o = {.path = "/no/such/program", .argv = argv, .pipes = ALL};
    struct errs errs = {0};
    int before = fcntl(STDIN_FILENO, F_DUPFD, 3), after;
    struct proc p;

    (void)close(before);
    ck_assert_int_eq(proc_spawn(&p, &o, &errs), ERR_INFRA);
    ck_assert_str_eq(errs.items[0].text,
                     "cannot start /no/such/program: No such file or directory");
    ck_assert_int_eq(p.pid, 0);
    ck_assert_int_eq(proc_kill(&p), -1);
    ck_assert(proc_wait(&p, 1));
    after = fcntl(STDIN_FILENO, F_DUPFD, 3);
    ck_assert_int_eq(after, before);
    errs_free(&errs);
    assert_no_children();
}
END_TEST

START_TEST(the_wait_has_a_limit)
{
    struct proc p = start("sleep 60", 0, NULL);
    double before = proc_now(), spent;

    ck_assert(!proc_wait(&p, 0.1));
    spent = proc_now() - before;
    ck_assert_msg(spent >= 0.1 && spent < 1, "%g s", spent);
    ck_assert_int_eq(proc_kill(&p), SIGKILL);
}
END_TEST

static Suite *proc_suite(void)
{
    Suite *s = suite_create("proc");
    TCase *tc = tcase_create("all");

    tcase_set_timeout(tc, 20);
    tcase_add_test(tc, three_pipes);
    tcase_add_test(tc, end_of_input);
    tcase_add_test(tc, environment_is_the_one_given);
    tcase_add_loop_test(tc, how_it_ended, 0, (int)(sizeof ends / sizeof ends[0]));
    tcase_add_test(tc, the_whole_group_is_killed);
    tcase_add_test(tc, nothing_is_inherited);
    tcase_add_test(tc, closed_streams_of_our_own);
    tcase_add_test(tc, signals_are_reset);
    tcase_add_test(tc, what_is_not_there);
    tcase_add_test(tc, the_wait_has_a_limit);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    SRunner *r = srunner_create(proc_suite());
    int failed;

    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
