/* Mutation runs against a program that only pretends: this one, started again as "kernels" or
 * "usual", which does what the name of the fault says. */
#include "harness/faults/mutate.h"

#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CASES = 5, NAME = 32, EXIT_INFRA = 3 };

static const char *const no_suites[] = {"small.yaml"};

/* ---- the program that pretends --------------------------------------------------------------- */

/* Verdicts of the five cases: p, s, f, u, i; where they end, so does the program: with its code, or
 * by a signal, or never. */
static const struct pretence {
    const char *fault, *verdicts;
    int code;
    enum { ENDS, CRASHES, HANGS } how;
    /* Of the usual checks: which fail; and the run in which the process is lost. */
    const char *usual;
    int lost_run;
} pretences[] = {
    {"", "pspps", 0, ENDS, "000000", 0},
    {"third-fails", "ppfpf", 1, ENDS, "110001", 0},
    {"all-untrusted", "uuuuu", 1, ENDS, "000000", 0},
    {"first-infra", "ipppp", 3, ENDS, "000000", 0},
    {"does-not-start", "", 3, ENDS, "111111", 0},
    {"crashes", "pp", 0, CRASHES, "000000", 0},
    {"hangs", "p", 0, HANGS, "000000", 0},
    {"unseen", "ppppp", 0, ENDS, "000100", 0},
    {"seen-by-test", "ppppp", 0, ENDS, "000000", 0},
    {"loses-run-3", "fpppp", 1, ENDS, "000000", 3},
    {"loses-run-6", "fpppp", 1, ENDS, "000000", 6},
};

static const struct pretence *pretence_of(const char *fault)
{
    for (size_t i = 0; i < sizeof pretences / sizeof pretences[0]; i++)
        if (!strcmp(pretences[i].fault, fault ? fault : ""))
            return &pretences[i];
    return NULL;
}

static int lose_process(const struct pretence *p)
{
    (void)fflush(stdout);
    if (p->how == CRASHES || p->lost_run) {
        (void)signal(SIGSEGV, SIG_DFL);
        (void)raise(SIGSEGV);
    }
    while (p->how == HANGS)
        (void)pause();
    return p->code;
}

static int be_kernels(const struct pretence *p, bool one_is_enough)
{
    static const char letters[] = "psuif";
    static const char *const checks[CASES] = {"readout", "exact", "bound", "model", "exact"};
    static const enum verdict verdicts[] = {VERDICT_PASS, VERDICT_SKIP, VERDICT_UNTRUSTED,
                                            VERDICT_INFRA, VERDICT_FAIL};
    bool enough = false;

    for (int i = 0; p->verdicts[i] && !enough; i++) {
        enum verdict v = verdicts[strchr(letters, p->verdicts[i]) - letters];

        (void)printf("{\"index\":%d,\"case\":\"s/c%d\",\"family\":\"gemm\",\"check\":\"%s\","
                     "\"verdict\":\"%s\",\"reason\":\"because\",\"repro\":\"again\"}\n",
                     i, i, checks[i], verdict_name(v));
        enough = one_is_enough && v != VERDICT_PASS && v != VERDICT_SKIP;
    }
    if (!p->verdicts[0])
        (void)fputs("no provider\n", stderr);
    return enough ? p->code : lose_process(p);
}

static int be_usual(const struct pretence *p, int first)
{
    for (int run = first; run <= USUAL_RUNS; run++) {
        struct usual_outcome u = {.run = run, .ran = true, .compared = 1};

        if (run == p->lost_run)
            return lose_process(p);
        for (int i = 0; i < USUAL_CHECKS; i++)
            u.failed[i] = p->usual[i] == '1' || (i == 5 && run == 1); /* an alarm in run 1 */
        if (!mutation_print_usual(&u, NULL, stdout))
            return EXIT_FAILURE;
    }
    return 0;
}

static int be_explain(const char *repro)
{
    (void)printf("where      everywhere\ncause      %s\n",
                 strcmp(repro, "again") != 0 ? "bad-repro: it is" : "by-mistake-2: yes; so it is");
    (void)printf("cause      not known: no\nbecause    other: x\n");
    return 1;
}

/* ---- runs ------------------------------------------------------------------------------------ */

static char folder[] = "/tmp/test_mutate.XXXXXX";

/* A program that fails with one fault. */
static void write_test(const char *name, const char *fault)
{
    char path[256];
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/harness/%s", folder, name);
    f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    (void)fprintf(f, "#!/bin/sh\necho some words >&2\n[ \"${HUMCHECK_FAULT:-}\" != %s ]\n", fault);
    ck_assert_int_eq(fchmod(fileno(f), 0700), 0);
    (void)fclose(f);
}

static void set_up(void)
{
    char path[256];

    (void)snprintf(folder, sizeof folder, "/tmp/test_mutate.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/harness", folder);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    write_test("test_a", "never");
    write_test("test_b", "seen-by-test");
}

static void tear_down(void)
{
    static const char *const names[] = {"/harness/test_a", "/harness/test_b", "/harness", ""};
    char path[256];

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)snprintf(path, sizeof path, "%s%s", folder, names[i]);
        (void)remove(path);
    }
}

static struct mutate_options usual_options(void)
{
    return (struct mutate_options){.suites = no_suites,
                                   .suite_count = 1,
                                   .provider = "cpu",
                                   .tests = folder,
                                   .first_case = "s/first",
                                   .case_seconds = 0.05,
                                   .idle_seconds = 20,
                                   .jobs = 2};
}

static const struct fault faults[] = {
    {"third-fails", FAULT_KERNEL, "a", "ours", NULL, NULL, false, "x"},
    {"all-untrusted", FAULT_ORACLE, "a", "ours", NULL, "test_a", false, "x"},
    {"first-infra", FAULT_KERNEL, "a", "ours", NULL, NULL, false, "x"},
    {"does-not-start", FAULT_ORACLE, "a", "ours", NULL, NULL, false, "x"},
    {"crashes", FAULT_KERNEL, "b", "ours", NULL, NULL, true, "x"},
    {"unseen", FAULT_ORACLE, "b", "ours", NULL, "test_a", false, "x"},
    {"seen-by-test", FAULT_ORACLE, "b", "ours", NULL, "test_a test_b", false, "x"},
    {"loses-run-3", FAULT_KERNEL, "b", "ours", NULL, NULL, false, "x"},
    {"loses-run-6", FAULT_KERNEL, "b", "ours", NULL, NULL, false, "x"},
};
enum { FAULTS = sizeof faults / sizeof faults[0] };

/* Beside it: what must come of each. */
static const struct {
    bool detected;
    const char *verdict, *check, *id;
    uint64_t cases;
    const char *reason; /* part of it */
    const char *usual;  /* runs of six, without the one alarm of the last check */
} expected[FAULTS] = {
    {true, "fail", "bound", "s/c2", 3, "because", "660005"},
    {true, "untrusted", "readout", "s/c0", 1, "because", "000000"},
    {true, "infra", "readout", "s/c0", 1, "because", "000000"},
    {true, "refused", "start", "", 0, "exit code 3: no provider", "666665"},
    {true, "refused", "start", "", 2, "signal 11", "000000"},
    {false, "", "", "", 5, "", "000600"},
    {true, "test", "test_b", "", 5, "exit code 1: some words", "000000"},
    {true, "fail", "readout", "s/c0", 1, "because", "111111"},
    {true, "fail", "readout", "s/c0", 1, "because", "111111"},
};

struct seen {
    int order[FAULTS], count;
    volatile int stop;
    int stop_after;
};

static enum err_code on_done(void *context, size_t index, struct errs *errs)
{
    struct seen *s = context;

    (void)errs;
    s->order[s->count++] = (int)index;
    s->stop = s->stop_after && s->count >= s->stop_after;
    return ERR_NONE;
}

static void run_all(const struct mutate_options *o, struct mutation rows[FAULTS], struct seen *seen,
                    bool *complete)
{
    const struct mutate_hooks hooks = {.done = on_done, .context = seen};
    const struct fault *list[FAULTS];
    struct errs errs = {0};
    enum err_code rc;

    for (int i = 0; i < FAULTS; i++) {
        list[i] = &faults[i];
        if (!rows[i].done)
            mutate_row(&faults[i], &rows[i]);
    }
    rc = mutate_run(o, list, rows, FAULTS, &hooks, complete, &errs);
    ck_assert_msg(rc == ERR_NONE, "%s", errs.count ? errs.items[0].text : "?");
    errs_free(&errs);
}

static void assert_row(const struct mutation *m, int i)
{
    ck_assert_msg(m->done, "%s is not done", m->name);
    ck_assert_msg(m->detected == expected[i].detected, "%s", m->name);
    ck_assert_str_eq(m->verdict, expected[i].verdict);
    ck_assert_str_eq(m->check, expected[i].check);
    ck_assert_str_eq(m->id, expected[i].id);
    ck_assert_msg(m->cases == expected[i].cases, "%s: %d cases", m->name, (int)m->cases);
    ck_assert_msg(strstr(m->reason, expected[i].reason) != NULL, "%s: %s", m->name, m->reason);
    ck_assert_str_eq(m->usual_id, *expected[i].id ? expected[i].id : "s/first");
    ck_assert(m->usual_ran);
    for (int c = 0; c < USUAL_CHECKS; c++) {
        int want = expected[i].usual[c] - '0';

        ck_assert_msg(m->usual_runs[c] == want, "%s: check %d: %d", m->name, c, m->usual_runs[c]);
        ck_assert_int_eq(m->usual_alarms[c], c == 5);
    }
}

/* The rows do not depend on how many run at once. */
START_TEST(each_fault)
{
    struct mutate_options o = usual_options();
    struct mutation rows[FAULTS] = {{.done = false}};
    struct seen seen = {.count = 0};
    bool complete;

    o.jobs = _i;
    run_all(&o, rows, &seen, &complete);
    ck_assert(complete);
    ck_assert_int_eq(seen.count, FAULTS);
    for (int i = 0; i < FAULTS; i++)
        assert_row(&rows[i], i);
}
END_TEST

START_TEST(full_runs_count_checks)
{
    struct mutate_options o = usual_options();
    struct mutation rows[FAULTS] = {{.done = false}};
    struct seen seen = {.count = 0};
    bool complete;

    o.full = true;
    run_all(&o, rows, &seen, &complete);
    assert_row(&rows[0], 0);
    ck_assert_int_eq(rows[0].seen_count, 2);
    ck_assert_str_eq(rows[0].seen[0].name, "bound");
    ck_assert_str_eq(rows[0].seen[1].name, "exact");
    ck_assert_int_eq(rows[1].seen_count, 4); /* readout, exact twice, bound, model */
    ck_assert_uint_eq(rows[1].seen[1].cases, 2);
}
END_TEST

START_TEST(explained_cases)
{
    struct mutate_options o = usual_options();
    struct mutation rows[FAULTS] = {{.done = false}};
    struct seen seen = {.count = 0};
    bool complete;

    o.explain = true;
    run_all(&o, rows, &seen, &complete);
    for (int i = 0; i < FAULTS; i++) {
        assert_row(&rows[i], i);
        ck_assert_str_eq(rows[i].explained, *rows[i].repro ? "by-mistake-2" : "");
    }
}
END_TEST

START_TEST(rows_that_are_done_stay)
{
    struct mutate_options o = usual_options();
    struct mutation rows[FAULTS] = {{.done = false}};
    struct seen seen = {.count = 0};
    bool complete;

    for (int i = 0; i < FAULTS; i++) {
        mutate_row(&faults[i], &rows[i]);
        rows[i].done = i != 2;
    }
    run_all(&o, rows, &seen, &complete);
    ck_assert(complete);
    ck_assert_int_eq(seen.count, 1);
    ck_assert_int_eq(seen.order[0], 2);
    assert_row(&rows[2], 2);
    ck_assert_str_eq(rows[0].check, "");
}
END_TEST

/* What is done is whole, what is not is not called done. */
START_TEST(interrupts)
{
    struct mutate_options o = usual_options();
    struct mutation rows[FAULTS] = {{.done = false}};
    struct seen seen = {.stop_after = 2};
    bool complete;

    o.jobs = 1;
    o.interrupted = &seen.stop;
    run_all(&o, rows, &seen, &complete);
    ck_assert(!complete);
    ck_assert_int_eq(seen.count, 2);
    for (int i = 0; i < FAULTS; i++)
        ck_assert(rows[i].done == (i < 2));
}
END_TEST

/* Nobody waits for a program that says nothing. */
START_TEST(hangs)
{
    static const struct fault fault = {"hangs", FAULT_KERNEL, "b", "ours", NULL, NULL, false, "x"};
    const struct mutate_hooks hooks = {.done = on_done, .context = &(struct seen){.count = 0}};
    const struct fault *list = &fault;
    struct mutate_options o = usual_options();
    struct errs errs = {0};
    struct mutation row;
    bool complete;

    o.idle_seconds = 1.5;
    mutate_row(&fault, &row);
    ck_assert_int_eq(mutate_run(&o, &list, &row, 1, &hooks, &complete, &errs), ERR_NONE);
    ck_assert(complete && row.detected);
    ck_assert_str_eq(row.check, "start");
    ck_assert_uint_eq(row.cases, 1);
    ck_assert_msg(strstr(row.reason, "nothing was heard of it") == row.reason, "%s", row.reason);
    errs_free(&errs);
}
END_TEST

/* ---- without a fault ------------------------------------------------------------------------- */

static enum err_code baseline(const struct fault *f, uint64_t *cases, char text[ERR_TEXT])
{
    const struct mutate_options o = usual_options();
    struct errs errs = {0};
    enum err_code rc = mutate_baseline(&o, &f, 1, cases, &errs);

    (void)snprintf(text, ERR_TEXT, "%s", errs.count ? errs.items[0].text : "");
    ck_assert(!rc == !errs.count);
    errs_free(&errs);
    return rc;
}

START_TEST(baseline_passes)
{
    char text[ERR_TEXT];
    uint64_t cases;

    ck_assert_int_eq(baseline(&faults[6], &cases, text), ERR_NONE);
    ck_assert_uint_eq(cases, CASES);
}
END_TEST

START_TEST(baseline_wants_every_test)
{
    const struct fault f = {"x", FAULT_ORACLE, "a", "ours", NULL, "test_none", false, "x"};
    char text[ERR_TEXT];
    uint64_t cases;

    ck_assert_int_eq(baseline(&f, &cases, text), ERR_USAGE);
    ck_assert_msg(strstr(text, "the test test_none") == text, "%s", text);
    ck_assert_uint_eq(cases, 0); /* said before anything runs */
}
END_TEST

/* A test that fails by itself shows no fault. */
START_TEST(baseline_runs_tests)
{
    char text[ERR_TEXT];
    uint64_t cases;

    write_test("test_b", "");
    ck_assert_int_eq(baseline(&faults[6], &cases, text), ERR_INFRA);
    ck_assert_msg(strstr(text, "without a fault the test test_b must pass") == text, "%s", text);
}
END_TEST

static int run_tests(void)
{
    Suite *s = suite_create("mutate");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_set_timeout(tc, 30);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, each_fault, 1, 4);
    tcase_add_test(tc, hangs);
    tcase_add_test(tc, full_runs_count_checks);
    tcase_add_test(tc, explained_cases);
    tcase_add_test(tc, rows_that_are_done_stay);
    tcase_add_test(tc, interrupts);
    tcase_add_test(tc, baseline_passes);
    tcase_add_test(tc, baseline_wants_every_test);
    tcase_add_test(tc, baseline_runs_tests);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    const struct pretence *p = pretence_of(getenv("HUMCHECK_FAULT"));

    if (argc > 2 && !strcmp(argv[1], "kernels"))
        return p ? be_kernels(p, strstr(argv[argc - 4], "max-fail") ||
                                     strstr(argv[argc - 3], "max-fail"))
                 : EXIT_FAILURE;
    if (argc > 2 && !strcmp(argv[1], "usual"))
        return p ? be_usual(p, argv[2][strlen("--run=")] - '0') : EXIT_FAILURE;
    if (argc > 2 && !strcmp(argv[1], "explain"))
        return be_explain(argv[2]);
    return run_tests();
}
