#include "harness/eval/store.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* SQLite itself, called directly, is the second reader of what a store wrote. */

#define COUNT(a) (int)(sizeof(a) / sizeof(a)[0])

enum { QUESTIONS = 400, PATH = 256 };

static char folder[PATH], path[2 * PATH];
static struct errs errs;

/* In memory where that is possible: SQLite waits for the disk. */
static void setup(void)
{
    (void)snprintf(folder, sizeof folder, "%s/test_store.XXXXXX",
                   access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/a.sqlite", folder);
    errs = (struct errs){0};
}

static void teardown(void)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal", ".lock"};
    char name[3 * PATH];

    for (int i = 0; i < COUNT(suffixes); i++) {
        (void)snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        (void)unlink(name);
    }
    ck_assert_int_eq(rmdir(folder), 0); /* and nothing else was left there */
    errs_free(&errs);
}

static struct store_run a_run(void)
{
    return (struct store_run){.name = "a",
                              .config = "model_name: m\n",
                              .gating = extractors[0].name,
                              .part = {[STORE_CONFIG] = "c0",
                                       [STORE_PROTOCOL] = "vllm",
                                       [STORE_PROMPTS] = "p0",
                                       [STORE_DATA] = "d0",
                                       [STORE_SAMPLING] = "s0",
                                       [STORE_CONCURRENCY] = "16",
                                       [STORE_GPU] = "",
                                       [STORE_TOOL] = "1"},
                              .questions = QUESTIONS,
                              .started = 1700000000};
}

static struct store *open_store(void)
{
    struct store_run run = a_run();
    struct store *s;

    ck_assert_int_eq(store_open(path, &run, false, &s, &errs), ERR_NONE);
    return s;
}

/* What question i answers: a text of its own, outcomes in turn. */
static enum err_code put(struct store *s, size_t i, enum outcome outcome)
{
    struct answer extracted[EXTRACTOR_COUNT];
    char text[64];
    struct store_answer a = {.question = i,
                             .prompt_sha256 = "abc",
                             .outcome = outcome,
                             .truncated = i % 5 == 0,
                             .finish_reason = "stop",
                             .error = outcome == OUTCOME_ERROR ? "HTTP 500" : "",
                             .prompt_tokens = 100,
                             .completion_tokens = (int64_t)i,
                             .latency_s = 0.5,
                             .total_s = 1.5,
                             .attempts = 2,
                             .http_status = 200};

    for (int e = 0; e < EXTRACTOR_COUNT; e++)
        extracted[e] = (struct answer){"7", outcome != OUTCOME_UNPARSABLE,
                                       outcome == OUTCOME_CORRECT && e != EXTRACT_ROBUST};
    (void)snprintf(text, sizeof text, "text of %zu\n#### 7 \xff'\"", i);
    if (outcome != OUTCOME_ERROR) {
        a.response = span_of(text);
        a.extracted = extracted;
    }
    return store_put(s, &a, &errs);
}

static int64_t number(const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *st;
    int64_t n;

    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(st), SQLITE_ROW);
    n = sqlite3_column_int64(st, 0);
    (void)sqlite3_finalize(st);
    (void)sqlite3_close(db);
    return n;
}

static void check_sentence(const char *part)
{
    ck_assert_uint_ge(errs.count, 1);
    ck_assert_msg(strstr(errs.items[errs.count - 1].text, part) != NULL, "'%s' is not in '%s'",
                  part, errs.items[errs.count - 1].text);
}

START_TEST(rows_add_up_and_come_back)
{
    struct store *s = open_store();
    struct tally t;

    for (size_t i = 0; i < 40; i++)
        ck_assert_int_eq(put(s, i, (enum outcome)(i % OUTCOME_COUNT)), ERR_NONE);
    store_close(s);
    ck_assert_int_eq(number("SELECT count(*) FROM answer"), 40);
    ck_assert_int_eq(number("SELECT count(*) FROM extraction"), 30 * EXTRACTOR_COUNT);
    ck_assert_int_eq(number("SELECT count(*) FROM answer WHERE latency_us = 500000"), 40);
    s = open_store();
    ck_assert_int_eq(store_tally(s, &t, &errs), ERR_NONE);
    for (int o = 0; o < OUTCOME_COUNT; o++)
        ck_assert_uint_eq(t.count[o], 10);
    ck_assert_uint_eq(t.questions, QUESTIONS);
    ck_assert_uint_eq(t.truncated, 8);
    ck_assert_uint_eq(t.correct[0], 10);
    ck_assert_uint_eq(t.correct[EXTRACT_ROBUST], 0);
    ck_assert_uint_eq(t.valid[EXTRACT_ROBUST], 20);
    ck_assert_uint_eq(t.prompt_tokens, 4000);
    ck_assert_uint_eq(t.attempts, 80);
    store_close(s);
}
END_TEST

static bool check_row(void *ctx, const struct store_answer *a)
{
    size_t *next = ctx;
    char text[64];

    (void)snprintf(text, sizeof text, "text of %zu\n#### 7 \xff'\"", *next);
    ck_assert_uint_eq(a->question, *next);
    ck_assert_int_eq((int)a->outcome, (int)(*next % OUTCOME_COUNT));
    if (a->outcome == OUTCOME_ERROR)
        ck_assert_ptr_null(a->response.at);
    else
        ck_assert_str_eq(a->response.at, text);
    ck_assert_str_eq(a->error, a->outcome == OUTCOME_ERROR ? "HTTP 500" : "");
    ck_assert_int_eq(a->completion_tokens, (int64_t)*next);
    ck_assert_double_eq(a->total_s, 1.5);
    ck_assert_int_eq(a->http_status, 200);
    return ++*next < 25;
}

START_TEST(a_view_reads_every_byte_and_writes_none)
{
    struct store *s = open_store();
    size_t next = 0;

    for (size_t i = 0; i < 30; i++)
        ck_assert_int_eq(put(s, i, (enum outcome)(i % OUTCOME_COUNT)), ERR_NONE);
    store_close(s);
    ck_assert_int_eq(store_view(path, &s, &errs), ERR_NONE);
    ck_assert_uint_eq(store_questions(s), QUESTIONS);
    ck_assert_str_eq(store_part(s, STORE_PROMPTS), "p0");
    ck_assert_ptr_null(store_part(s, STORE_SERVER));
    ck_assert_int_eq(store_each(s, check_row, &next, &errs), ERR_NONE);
    ck_assert_uint_eq(next, 25);
    ck_assert_int_eq(put(s, 31, OUTCOME_WRONG), ERR_IO);
    check_sentence("for reading only");
    ck_assert_int_eq(store_settle(s, STORE_SERVER, "x", &errs), ERR_IO);
    store_close(s);
}
END_TEST

/* From each outcome to each other one: only an error gives way. */
START_TEST(an_answer_is_final_an_error_is_not)
{
    enum outcome first = (enum outcome)(_i / OUTCOME_COUNT),
                 then = (enum outcome)(_i % OUTCOME_COUNT);
    struct store *s = open_store();
    struct tally t;

    ck_assert_int_eq(put(s, 3, first), ERR_NONE);
    ck_assert_int_eq(put(s, 3, then), first == OUTCOME_ERROR ? ERR_NONE : ERR_IO);
    if (first != OUTCOME_ERROR)
        check_sentence("question 3 has an answer already");
    ck_assert_int_eq(put(s, 4, OUTCOME_CORRECT), ERR_NONE); /* the store goes on */
    ck_assert_int_eq(store_tally(s, &t, &errs), ERR_NONE);
    ck_assert_uint_ge(t.count[first == OUTCOME_ERROR ? then : first], 1);
    ck_assert_uint_eq(tally_missing(&t), QUESTIONS - 2);
    store_close(s);
    ck_assert_int_eq(number("SELECT count(*) FROM answer"), 2);
    ck_assert_int_eq(number("SELECT attempts FROM answer WHERE question = 3"),
                     first == OUTCOME_ERROR ? 4 : 2);
}
END_TEST

START_TEST(questions_that_are_none_are_refused)
{
    struct store *s = open_store();

    ck_assert_int_eq(put(s, QUESTIONS, OUTCOME_WRONG), ERR_IO);
    check_sentence("not one of the run's 400");
    store_close(s);
}
END_TEST

START_TEST(each_part_of_the_fingerprint_is_compared)
{
    enum store_part part = (enum store_part)_i;
    struct store_run run = a_run();
    struct store *s = open_store();
    enum err_code rc;

    ck_assert_int_eq(store_settle(s, STORE_MODEL, "m0", &errs), ERR_NONE);
    ck_assert_int_eq(store_settle(s, STORE_SERVER, "v0", &errs), ERR_NONE);
    ck_assert_int_eq(put(s, 0, OUTCOME_CORRECT), ERR_NONE);
    store_close(s);
    if (store_parts[part].later) {
        s = open_store();
        rc = store_settle(s, part, "other", &errs);
        store_close(s);
    } else {
        run.part[part] = "other";
        rc = store_open(path, &run, false, &s, &errs);
        ck_assert_ptr_null(s);
    }
    ck_assert_int_eq(rc, ERR_USAGE);
    ck_assert_uint_eq(errs.count, 1);
    check_sentence(store_parts[part].what);
    check_sentence("now 'other'");
    ck_assert_int_eq(number("SELECT count(*) FROM answer"), 1);
    if (!store_parts[part].later) {
        ck_assert_int_eq(store_open(path, &run, true, &s, &errs), ERR_NONE);
        store_close(s);
        ck_assert_int_eq(number("SELECT count(*) FROM answer"), 0);
    }
}
END_TEST

START_TEST(all_differences_are_named_at_once)
{
    struct store_run run = a_run();
    struct store *s = open_store();

    store_close(s);
    run.part[STORE_CONFIG] = "c1";
    run.part[STORE_DATA] = "d1";
    ck_assert_int_eq(store_open(path, &run, false, &s, &errs), ERR_USAGE);
    ck_assert_uint_eq(errs.count, 2);
    ck_assert_ptr_nonnull(strstr(errs.items[0].text, "there 'c0', now 'c1'"));
    ck_assert_ptr_nonnull(strstr(errs.items[1].text, "there 'd0', now 'd1'"));
    run = a_run();
    run.questions = 7;
    ck_assert_int_eq(store_open(path, &run, false, &s, &errs), ERR_USAGE);
    check_sentence("of 400 questions, now 7");
}
END_TEST

static void write_file(const char *text)
{
    FILE *f = fopen(path, "w");

    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

START_TEST(what_is_no_store_is_refused_and_kept)
{
    struct store_run run = a_run();
    struct store *s;

    write_file("this is a text, and more than a hundred bytes of it, because SQLite reads that "
               "much before it says that a file is no database of its own\n");
    ck_assert_int_eq(store_open(path, &run, false, &s, &errs), ERR_IO);
    check_sentence("not a database");
    ck_assert_int_eq(store_view(path, &s, &errs), ERR_IO);
    ck_assert_int_eq(store_open(path, &run, true, &s, &errs), ERR_NONE);
    store_close(s);
}
END_TEST

static const struct {
    const char *sql, *says;
} damages[] = {{"PRAGMA user_version = 99", "its schema is 99, not 2"},
               {"DELETE FROM run", "it holds no run"}};

START_TEST(a_damaged_store_is_refused)
{
    struct store_run run = a_run();
    struct store *s = open_store();
    sqlite3 *db;

    store_close(s);
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, damages[_i].sql, NULL, NULL, NULL), SQLITE_OK);
    (void)sqlite3_close(db);
    ck_assert_int_eq(store_open(path, &run, false, &s, &errs), ERR_IO);
    check_sentence(damages[_i].says);
    ck_assert_int_eq(store_view(path, &s, &errs), ERR_IO);
}
END_TEST

START_TEST(a_missing_store_or_folder_has_a_sentence)
{
    struct store_run run = a_run();
    struct store *s;

    ck_assert_int_eq(store_view(path, &s, &errs), ERR_IO);
    check_sentence("unable to open");
    ck_assert_int_eq(store_open("/nowhere/at/all.sqlite", &run, false, &s, &errs), ERR_IO);
    check_sentence("No such file");
}
END_TEST

/* Runs `child` in a process of its own, which gets the writing end of a pipe. */
static pid_t start(void (*child)(int out), int *in)
{
    int ends[2];
    pid_t pid;

    ck_assert_int_eq(pipe(ends), 0);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (!pid) {
        (void)close(ends[0]);
        child(ends[1]);
        _exit(0);
    }
    (void)close(ends[1]);
    *in = ends[0];
    return pid;
}

static void hold(int out)
{
    struct store_run run = a_run();
    struct store *s;
    char done = (char)('0' + store_open(path, &run, false, &s, &errs));

    (void)!write(out, &done, 1);
    (void)pause();
}

START_TEST(one_run_at_a_time)
{
    struct store_run run = a_run();
    struct store *s;
    char byte = 0;
    int in;
    pid_t pid = start(hold, &in);

    ck_assert_int_eq((int)read(in, &byte, 1), 1);
    ck_assert_int_eq(byte, '0');
    ck_assert_int_eq(store_open(path, &run, true, &s, &errs), ERR_IO);
    check_sentence("in use by another run");
    ck_assert_int_eq(store_view(path, &s, &errs), ERR_NONE);
    store_close(s);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    (void)close(in);
    store_close(open_store()); /* a dead process holds nothing */
}
END_TEST

/* Puts all questions that are missing, and says each one on the pipe when it is there. */
static void put_all(int out)
{
    struct store_run run = a_run();
    struct store *s;
    struct tally t;

    if (store_open(path, &run, false, &s, &errs) || store_tally(s, &t, &errs))
        return;
    for (size_t i = QUESTIONS - tally_missing(&t); i < QUESTIONS; i++)
        if (put(s, i, OUTCOME_CORRECT) || write(out, "+", 1) != 1)
            return;
    store_close(s);
}

static size_t count_bytes(int in)
{
    char bytes[QUESTIONS];
    size_t sum = 0;
    ssize_t n;

    while ((n = read(in, bytes, sizeof bytes)) > 0)
        sum += (size_t)n;
    (void)close(in);
    return sum;
}

/* A writer is killed after ever longer times and started again: what it reported is there, whole,
 * and at most one row more. */
START_TEST(a_kill_loses_no_answer)
{
    size_t reported = 0;
    int64_t there = 0;

    for (long round = 1; there < QUESTIONS && round < 400; round++) {
        struct timespec wait = {0, 1000000 + round * 731000 % 9000000};
        int in;
        pid_t pid = start(put_all, &in);

        (void)nanosleep(&wait, NULL);
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
        reported += count_bytes(in);
        if (access(path, R_OK))
            continue;
        store_close(open_store());
        there = number("SELECT count(*) FROM answer");
        ck_assert_int_ge(there, (int64_t)reported);
        ck_assert_int_le(there, (int64_t)reported + 1);
        reported = (size_t)there;
        ck_assert_int_eq(number("SELECT count(*) FROM extraction"), there * EXTRACTOR_COUNT);
        ck_assert_int_eq(number("SELECT count(DISTINCT question) FROM answer"), there);
    }
    ck_assert_int_eq(there, QUESTIONS);
}
END_TEST

/* Without a path nothing is written. */
START_TEST(a_store_in_memory)
{
    struct store_run run = a_run();
    struct store *s;
    struct tally t;

    ck_assert_int_eq(store_open(NULL, &run, false, &s, &errs), ERR_NONE);
    ck_assert_int_eq(put(s, 1, OUTCOME_UNPARSABLE), ERR_NONE);
    ck_assert_int_eq(store_tally(s, &t, &errs), ERR_NONE);
    ck_assert_uint_eq(t.count[OUTCOME_UNPARSABLE], 1);
    store_close(s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store");
    TCase *tc = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, rows_add_up_and_come_back);
    tcase_add_test(tc, a_view_reads_every_byte_and_writes_none);
    tcase_add_loop_test(tc, an_answer_is_final_an_error_is_not, 0, OUTCOME_COUNT * OUTCOME_COUNT);
    tcase_add_test(tc, questions_that_are_none_are_refused);
    tcase_add_loop_test(tc, each_part_of_the_fingerprint_is_compared, 0, STORE_PARTS);
    tcase_add_test(tc, all_differences_are_named_at_once);
    tcase_add_test(tc, what_is_no_store_is_refused_and_kept);
    tcase_add_loop_test(tc, a_damaged_store_is_refused, 0, 2);
    tcase_add_test(tc, a_missing_store_or_folder_has_a_sentence);
    tcase_add_test(tc, one_run_at_a_time);
    tcase_add_test(tc, a_kill_loses_no_answer);
    tcase_add_test(tc, a_store_in_memory);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
