/* The pool, with the runner of pool_fake.h; this program starts itself again as the worker. */
#include "harness/core/proc.h"
#include "harness/test/pool_fake.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- the pool's side ---------------------------------------------------------------------- */

struct seen {
    struct record records[MAX_CASES];
    size_t count, fail_at, stop_at;
    const size_t *indices; /* in which they must come; NULL: 0, 1, ... */
    int ticks, stop;
};

static enum err_code take(void *context, const struct record *r, struct errs *errs)
{
    struct seen *s = context;

    if (s->stop) /* what waited for others comes over the gaps */
        ck_assert_uint_gt(r->index, s->records[s->count - 1].index);
    else
        ck_assert_msg(r->index == (s->indices ? s->indices[s->count] : s->count),
                      "record %d came as number %zu", (int)r->index, s->count);
    if (s->fail_at && s->count + 1 == s->fail_at)
        return errs_add(errs, ERR_IO, NOWHERE, "disk full");
    s->records[s->count++] = *r;
    if (s->stop_at && s->count >= s->stop_at)
        s->stop = 1;
    return ERR_NONE;
}

static void count_tick(void *context)
{
    ((struct seen *)context)->ticks++;
}

struct trial {
    const char *plan, *mode, *fifo;
    int jobs;
    double case_seconds, start_seconds, budget; /* 0: no deadline */
    const size_t *order;
    size_t early; /* workers that are started before */
    enum err_code rc;
    bool complete;
    struct errs errs;
};

static struct seen seen;
static struct fake_plan fake;

static void run_trial(struct trial *t)
{
    char program[] = "test_pool", worker[] = "worker", plan[2048], mode[64], path[256];
    char *const argv[] = {program, worker, plan, mode, path, NULL};
    struct proc procs[MAX_CASES];
    struct pool_early early = {.procs = procs};
    const struct pool_options o = {.jobs = t->jobs,
                                   .early = &early,
                                   .case_seconds = t->case_seconds > 0 ? t->case_seconds : 20,
                                   .start_seconds = t->start_seconds,
                                   .argv = argv,
                                   .order = t->order,
                                   .deadline = t->budget > 0 ? proc_now() + t->budget : 0,
                                   .interrupted = &seen.stop};
    const struct pool_sink sink = {.record = take, .tick = count_tick, .context = &seen};

    (void)snprintf(plan, sizeof plan, "%s", t->plan);
    (void)snprintf(mode, sizeof mode, "%s", t->mode ? t->mode : "serve");
    (void)snprintf(path, sizeof path, "%s", t->fifo ? t->fifo : "");
    t->errs = (struct errs){0};
    pool_early_start(&early, argv, t->early);
    t->rc =
        pool_run(pool_fake_plan(&fake, t->plan), &fake_provider, &o, &sink, &t->complete, &t->errs);
    pool_early_end(&early);
}

static int open_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;

    ck_assert_ptr_nonnull(d);
    while (readdir(d))
        n++;
    (void)closedir(d);
    return n;
}

static void assert_no_children(void)
{
    int status;

    ck_assert_int_eq(waitpid(-1, &status, WNOHANG), -1);
    ck_assert_int_eq(errno, ECHILD);
}

static void assert_verdict(size_t i, enum verdict v, const char *reason)
{
    const struct record *r = &seen.records[i];

    ck_assert_msg(r->verdict == v, "case %zu %s: %s (%s)", i, r->id, verdict_name(r->verdict),
                  r->reason);
    ck_assert_msg(!strcmp(r->reason, reason), "case %zu %s: '%s', not '%s'", i, r->id, r->reason,
                  reason);
    ck_assert_str_eq(r->id, fake.cases[i].id);
    ck_assert_str_eq(r->provider, "fake");
    ck_assert_int_eq((int)r->at_row, -1);
}

#define CRASH "the launch crashed: "
#define BROKE "the launch broke its process: its answers make no sense"
#define EARLY "the worker died before the launch: "
#define LATER "the worker died after the launch: "
#define SEGV  "signal 11 (Segmentation fault)"

/* clang-format off */
static const struct {
    const char *id;
    enum verdict verdict;
    const char *reason;
    double case_seconds;
} bad_cases[] = {
    {"segv@prepare",    VERDICT_INFRA, EARLY SEGV, 0},
    {"segv@launch",     VERDICT_FAIL,  CRASH SEGV, 0},
    {"segv@judge",      VERDICT_INFRA, LATER SEGV, 0},
    {"segv@between",    VERDICT_PASS,  "", 0},
    {"kill@launch",     VERDICT_FAIL,  CRASH "signal 9 (Killed)", 0},
    {"exit@prepare",    VERDICT_INFRA, EARLY "exit code 7", 0},
    {"exit@launch",     VERDICT_FAIL,  CRASH "exit code 7", 0},
    {"exit@judge",      VERDICT_INFRA, LATER "exit code 7", 0},
    {"exit@between",    VERDICT_PASS,  "", 0},
    {"half@launch",     VERDICT_FAIL,  CRASH "exit code 0", 0},
    {"garbage@prepare", VERDICT_INFRA, "the worker broke before the launch: its answers make no sense", 0},
    {"garbage@launch",  VERDICT_FAIL,  BROKE, 0},
    {"garbage@judge",   VERDICT_INFRA, "the worker broke after the launch: its answers make no sense", 0},
    {"garbage@between", VERDICT_PASS,  "", 0},
    {"wrong-case",      VERDICT_FAIL,  BROKE, 0},
    {"wrong-index",     VERDICT_INFRA, "the worker broke after the launch: its answers make no sense", 0},
    {"endless-text",    VERDICT_INFRA, "the worker broke after the launch: its answers make no sense", 0},
    {"wrong-verdict",   VERDICT_INFRA, "the worker broke after the launch: its answers make no sense", 0},
    {"flood@prepare",   VERDICT_PASS,  "", 0},
    {"flood@launch",    VERDICT_PASS,  "", 0},
    {"flood@judge",     VERDICT_PASS,  "", 0},
    {"print@launch",    VERDICT_PASS,  "", 0},
    {"words@launch",    VERDICT_FAIL,  CRASH "signal 6 (Aborted); its last words: first line CUDA error: [31mmisaligned address", 0},
    {"hang@prepare",    VERDICT_INFRA, "operands and reference were not made within 0.2 s", 0.2},
    {"hang@launch",     VERDICT_FAIL,  "the launch did not return within 0.2 s", 0.2},
    {"hang@judge",      VERDICT_INFRA, "the result was not judged within 0.2 s", 0.2},
    {"hang@between",    VERDICT_PASS,  "", 0.2},
    {"rest@both",       VERDICT_PASS,  "", 0.2}, /* the launch has a clock of its own */
    {"close@launch",    VERDICT_FAIL,  BROKE, 0},
};
/* clang-format on */
enum { BAD_CASES = sizeof bad_cases / sizeof bad_cases[0] };

/* First, in the middle and last of a problem; the words of the case before are not its own. */
START_TEST(one_bad_case_costs_one_case)
{
    static const struct {
        const char *before, *after;
        size_t at;
    } shapes[] = {{"ok|", " flood@launch|ok ok", 1},
                  {"ok|flood@launch ", " ok|ok", 2},
                  {"ok|flood@judge ", "|ok ok", 2}};
    size_t shape = (size_t)_i % 3;
    char plan[256];
    struct trial t = {.plan = plan, .jobs = 1 + _i % 2, .case_seconds = bad_cases[_i].case_seconds};
    int fds = open_fds();

    (void)snprintf(plan, sizeof plan, "%s%s%s", shapes[shape].before, bad_cases[_i].id,
                   shapes[shape].after);
    run_trial(&t);
    ck_assert_int_eq(t.rc, ERR_NONE);
    ck_assert(t.complete);
    ck_assert_uint_eq(seen.count, 5);
    for (size_t i = 0; i < seen.count; i++)
        if (i == shapes[shape].at)
            assert_verdict(i, bad_cases[_i].verdict, bad_cases[_i].reason);
        else
            assert_verdict(i, VERDICT_PASS, "");
    assert_no_children();
    ck_assert_int_eq(open_fds(), fds);
}
END_TEST

#define MIXED                                                                                  \
    "ok slow|ok segv@launch ok ok|slow slow slow|exit@prepare|exit@launch|words@launch slow|"  \
    "ok|ok|ok|ok|flood@judge half@launch|ok|slow|ok|garbage@launch ok|hang@launch ok|ok slow|" \
    "ok|ok|exit@between|exit@between ok|ok|ok|print@launch"

/* Records of one job are those of two, three and four, byte for byte; also with workers started
 * before, none, as many and more. */
START_TEST(jobs_do_not_show)
{
    static struct record first[MAX_CASES];
    size_t count = 0;

    for (int jobs = 1; jobs <= 4; jobs++) {
        struct trial t = {
            .plan = MIXED, .jobs = jobs, .early = (size_t)jobs * 2 - 2, .case_seconds = 0.2};

        memset(&seen, 0, sizeof seen);
        run_trial(&t);
        ck_assert_int_eq(t.rc, ERR_NONE);
        ck_assert(t.complete);
        ck_assert_uint_eq(seen.count, fake.plan.count);
        if (jobs == 1)
            memcpy(first, seen.records, sizeof first);
        count = seen.count;
        ck_assert_msg(!memcmp(first, seen.records, count * sizeof first[0]), "%d jobs", jobs);
        assert_no_children();
    }
    ck_assert_uint_gt(count, 30);
}
END_TEST

/* clang-format off */
static const struct {
    const char *plan;
    size_t order[4], indices[8], count; /* of problems; of the cases that come, and how many */
    double budget;
} orders[] = {
    {"ok slow|segv@launch ok|slow ok|ok exit@judge", {3, 0, 2, 1}, {6, 7, 0, 1, 4, 5, 2, 3}, 8, 0},
    /* the deadline lies in the second problem, however slowly workers start: it is finished */
    {"ok|rest@both rest@both rest@both ok|ok", {2, 1, 0}, {5, 1, 2, 3, 4}, 5, 0.6},
    {"ok|ok", {1, 0}, {0}, 0, 1e-9},
};
/* clang-format on */

/* Records come in the order of the problems, whatever the jobs, crashes included; after the
 * deadline none is started. */
START_TEST(another_order)
{
    struct trial t = {.plan = orders[_i].plan,
                      .jobs = orders[_i].budget > 0 ? 1 : 3,
                      .order = orders[_i].order,
                      .budget = orders[_i].budget};

    seen.indices = orders[_i].indices;
    run_trial(&t);
    ck_assert_int_eq(t.rc, ERR_NONE);
    ck_assert(t.complete);
    ck_assert_uint_eq(seen.count, orders[_i].count);
    for (size_t i = 0; i < seen.count; i++)
        ck_assert_int_eq(seen.records[i].verdict == VERDICT_FAIL,
                         !strncmp(fake.cases[orders[_i].indices[i]].id, "segv", 4));
    assert_no_children();
}
END_TEST

/* A worker that crashes at every case is the kernel's fault each time, never the pool's. */
START_TEST(always_crashing)
{
    struct trial t = {.plan = "segv@launch segv@launch segv@launch segv@launch|segv@launch",
                      .jobs = 1};

    run_trial(&t);
    ck_assert_int_eq(t.rc, ERR_NONE);
    ck_assert(t.complete);
    for (size_t i = 0; i < 5; i++)
        assert_verdict(i, VERDICT_FAIL, CRASH SEGV);
}
END_TEST

#define THRICE "a worker was lost 3 times in a row without a record: "

static const struct {
    const char *mode, *text;
} no_workers[] = {
    {"exit", THRICE "exit code 5"},
    {"talk", THRICE "exit code 5: cannot open the device"},
    {"deaf", THRICE "no answer within 0.15 s"},
    {"garbage", THRICE "its answers make no sense"},
    {"refuse", THRICE "exit code 3: provider fake does not open"},
    {"other-plan", "a worker made another plan than this program: was a suite changed?"},
};

START_TEST(workers_that_never_work)
{
    struct trial t = {.plan = "ok|ok", .mode = no_workers[_i].mode, .jobs = 1, .start_seconds = 10};
    int fds = open_fds();

    if (!strcmp(t.mode, "deaf"))
        t.start_seconds = 0.15;
    run_trial(&t);
    ck_assert_int_eq(t.rc, ERR_INFRA);
    ck_assert(!t.complete);
    ck_assert_uint_eq(seen.count, 0);
    ck_assert_uint_eq(t.errs.count, 1);
    ck_assert_str_eq(t.errs.items[0].text, no_workers[_i].text);
    errs_free(&t.errs);
    assert_no_children();
    ck_assert_int_eq(open_fds(), fds);
}
END_TEST

START_TEST(interrupt_keeps_what_is_there)
{
    struct trial t = {.plan = "ok slow slow slow slow|slow slow slow slow|hang@launch|ok|ok|ok",
                      .jobs = 1 + _i};
    double before = proc_now();

    seen.stop_at = 3;
    run_trial(&t);
    ck_assert_int_eq(t.rc, ERR_NONE);
    ck_assert(!t.complete);
    ck_assert_uint_ge(seen.count, 3);
    ck_assert_uint_lt(seen.count, fake.plan.count);
    ck_assert(proc_now() - before < 3);
    assert_no_children();
}
END_TEST

START_TEST(ticks_while_nothing_comes)
{
    struct trial t = {.plan = "hang@launch", .jobs = 1, .case_seconds = 0.7};

    run_trial(&t);
    ck_assert(t.complete);
    ck_assert_int_ge(seen.ticks, 2);
    ck_assert_int_le(seen.ticks, 6);
}
END_TEST

START_TEST(error_of_the_sink_stops)
{
    struct trial t = {.plan = "ok ok ok ok|ok ok", .jobs = 2};

    seen.fail_at = 3;
    run_trial(&t);
    ck_assert_int_eq(t.rc, ERR_IO);
    ck_assert(!t.complete);
    ck_assert_uint_eq(seen.count, 2);
    ck_assert_str_eq(t.errs.items[0].text, "disk full");
    errs_free(&t.errs);
    assert_no_children();
}
END_TEST

START_TEST(nothing_to_do)
{
    struct trial t = {.plan = "", .jobs = 4};

    run_trial(&t);
    ck_assert_int_eq(t.rc, ERR_NONE);
    ck_assert(t.complete);
    ck_assert_uint_eq(seen.count, 0);
}
END_TEST

START_TEST(plans_have_their_own_hash)
{
    static const char *const plans[] = {"ok ok|ok", "ok|ok ok", "ok ok|okk", "ok ok", "ok ok ok"};
    uint64_t hashes[5];

    for (int i = 0; i < 5; i++) {
        hashes[i] = pool_plan_hash(pool_fake_plan(&fake, plans[i]));
        ck_assert(hashes[i] == pool_plan_hash(pool_fake_plan(&fake, plans[i])));
        for (int j = 0; j < i; j++)
            ck_assert(hashes[i] != hashes[j]);
    }
    (void)pool_fake_plan(&fake, plans[0]);
    fake.cases[1].v[AX_N] = 64;
    ck_assert(hashes[0] != pool_plan_hash(&fake.plan));
}
END_TEST

/* ---- nobody is left behind ---------------------------------------------------------------- */

static char folder[] = "/tmp/test_pool.XXXXXX";
static char fifo_path[sizeof folder + 8];

static int make_fifo(void)
{
    int fd;

    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(fifo_path, sizeof fifo_path, "%s/fifo", folder);
    ck_assert_int_eq(mkfifo(fifo_path, 0600), 0);
    fd = open(fifo_path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    return fd;
}

static void remove_fifo(int fd)
{
    (void)close(fd);
    (void)unlink(fifo_path);
    (void)rmdir(folder);
}

/* Up to 3 s for `want` bytes and then, when `end`, for the last writer to go. */
static bool fifo_shows(int fd, int want, bool end)
{
    int got = 0;

    for (int i = 0; i < 300; i++, (void)nanosleep(&(struct timespec){0, 10000000}, NULL)) {
        char c;
        ssize_t n = read(fd, &c, 1);

        got += n > 0;
        if (got >= want && (!end || n == 0))
            return true;
    }
    return false;
}

/* A process that a hanging launch has started dies with its worker. */
START_TEST(children_of_a_worker_die)
{
    int fd = make_fifo();
    struct trial t = {.plan = "child@launch", .jobs = 1, .case_seconds = 0.3, .fifo = fifo_path};

    run_trial(&t);
    ck_assert(t.complete);
    assert_verdict(0, VERDICT_FAIL, "the launch did not return within 0.3 s");
    ck_assert(fifo_shows(fd, 1, true));
    remove_fifo(fd);
}
END_TEST

/* The pool is killed while a launch hangs. */
START_TEST(workers_die_with_the_pool)
{
    int fd = make_fifo();
    char program[] = "test_pool", role[] = "pool";
    char *const argv[] = {program, role, fifo_path, NULL};
    const struct proc_options o = {.path = "/proc/self/exe", .argv = argv};
    struct proc pool;
    struct errs errs = {0};

    ck_assert_int_eq(proc_spawn(&pool, &o, &errs), ERR_NONE);
    ck_assert(fifo_shows(fd, 1, false));
    (void)proc_kill(&pool);
    ck_assert(fifo_shows(fd, 0, true));
    remove_fifo(fd);
}
END_TEST

/* ---- roles of this program ---------------------------------------------------------------- */

static int be_pool(const char *path)
{
    struct trial t = {.plan = "fifo@launch", .jobs = 1, .fifo = path};

    run_trial(&t);
    return t.rc ? EXIT_FAILURE : EXIT_SUCCESS;
}

static Suite *pool_suite(void)
{
    Suite *s = suite_create("pool");
    TCase *tc = tcase_create("all");

    tcase_set_timeout(tc, 30);
    tcase_add_loop_test(tc, one_bad_case_costs_one_case, 0, BAD_CASES);
    tcase_add_test(tc, jobs_do_not_show);
    tcase_add_loop_test(tc, another_order, 0, (int)(sizeof orders / sizeof orders[0]));
    tcase_add_test(tc, always_crashing);
    tcase_add_loop_test(tc, workers_that_never_work, 0,
                        (int)(sizeof no_workers / sizeof no_workers[0]));
    tcase_add_loop_test(tc, interrupt_keeps_what_is_there, 0, 3);
    tcase_add_test(tc, ticks_while_nothing_comes);
    tcase_add_test(tc, error_of_the_sink_stops);
    tcase_add_test(tc, nothing_to_do);
    tcase_add_test(tc, plans_have_their_own_hash);
    tcase_add_test(tc, children_of_a_worker_die);
    tcase_add_test(tc, workers_die_with_the_pool);
    suite_add_tcase(s, tc);
    return s;
}

int main(int argc, char **argv)
{
    SRunner *r;
    int failed;

    if (argc == 5 && !strcmp(argv[1], "worker"))
        return pool_fake_worker(argv);
    if (argc == 3 && !strcmp(argv[1], "pool"))
        return be_pool(argv[2]);
    r = srunner_create(pool_suite());
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
