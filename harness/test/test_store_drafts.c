/* Counts of speculative decoding over the sessions of a run that is opened again and again. */
#include "harness/eval/store.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define COUNT(a) (int)(sizeof(a) / sizeof(a)[0])

static char folder[64], path[80];
static struct errs errs;

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
    char lock[sizeof path + 8];

    (void)snprintf(lock, sizeof lock, "%s.lock", path);
    (void)unlink(path);
    (void)unlink(lock);
    ck_assert_int_eq(rmdir(folder), 0);
    errs_free(&errs);
}

static struct store *open_store(void)
{
    struct store_run run = {.name = "a", .config = "", .gating = "x", .questions = 4};
    struct store *s;

    for (int i = 0; i < STORE_PARTS; i++)
        run.part[i] = store_parts[i].later ? NULL : "";
    ck_assert_int_eq(store_open(path, &run, false, &s, &errs), ERR_NONE);
    return s;
}

static enum err_code put_error(struct store *s, size_t i)
{
    const struct store_answer a = {.question = i,
                                   .prompt_sha256 = "abc",
                                   .outcome = OUTCOME_ERROR,
                                   .finish_reason = "",
                                   .error = "HTTP 500",
                                   .attempts = 2};

    return store_put(s, &a, &errs);
}

static enum err_code put(struct store *s, size_t i)
{
    const struct store_answer a = {.question = i,
                                   .prompt_sha256 = "abc",
                                   .outcome = OUTCOME_CORRECT,
                                   .response = span_of("7"),
                                   .finish_reason = "stop",
                                   .error = "",
                                   .attempts = 2,
                                   .http_status = 200};

    return store_put(s, &a, &errs);
}

static void check_drafts(struct store *s, uint64_t drafts, uint64_t accepted, size_t lost)
{
    struct store_drafts d;

    ck_assert_int_eq(store_get_drafts(s, &d, &errs), ERR_NONE);
    ck_assert_uint_eq(d.drafts, drafts);
    ck_assert_uint_eq(d.accepted, accepted);
    ck_assert_uint_eq(d.lost, lost);
}

START_TEST(drafts_add_up)
{
    struct store *s = open_store();

    check_drafts(s, 0, 0, 0);
    ck_assert_int_eq(store_add_drafts(s, (struct store_drafts){10, 4, 0}, &errs), ERR_NONE);
    ck_assert_int_eq(store_add_drafts(s, (struct store_drafts){1, 1, 2}, &errs), ERR_NONE);
    store_close(s);
    s = open_store();
    check_drafts(s, 11, 5, 2);
    store_close(s);
}
END_TEST

/* Two sessions, of which the first answers `answers` questions and then ends or is cut off. */
/* clang-format off */
static const struct {
    const char *server[2];
    bool known[2];           /* could the counters be read at its beginning? */
    uint64_t from[2], to[2]; /* drafts; twice as many are accepted. to[0] 0: cut off */
    size_t answers, lost;
    uint64_t drafts;
} sessions[] = {
    {{"a", "a"},   {true, true},  {5, 9},  {9, 20},  1, 0, 15},
    {{"a", "b"},   {true, true},  {5, 1},  {9, 20},  1, 0, 23},
    {{NULL, NULL}, {true, true},  {5, 9},  {9, 20},  1, 0, 15},
    {{"a", "a"},   {true, true},  {5, 9},  {0, 20},  1, 0, 15}, /* goes on where it began */
    {{"a", "b"},   {true, true},  {5, 9},  {0, 20},  1, 1, 11},
    {{NULL, NULL}, {true, true},  {5, 9},  {0, 20},  1, 1, 11}, /* may be another one */
    {{"a", "b"},   {true, true},  {5, 9},  {0, 20},  0, 0, 11}, /* nothing was lost */
    {{"a", "b"},   {true, true},  {5, 9},  {4, 20},  1, 1, 11}, /* lower: not the same counters */
    {{"a", "a"},   {false, true}, {0, 9},  {12, 20}, 1, 1, 11},
    {{"a", "a"},   {true, false}, {5, 0},  {9, 20},  1, 1, 4},
};
/* clang-format on */

START_TEST(drafts_of_sessions)
{
    struct store *s = open_store();

    for (int i = 0; i < 2; i++) {
        const struct store_drafts from = {sessions[_i].from[i], 2 * sessions[_i].from[i], 0};
        const struct store_drafts to = {sessions[_i].to[i], 2 * sessions[_i].to[i], 0};

        ck_assert_int_eq(store_begin_drafts(s, sessions[_i].known[i] ? &from : NULL,
                                            sessions[_i].server[i], &errs),
                         ERR_NONE);
        if (i || sessions[_i].answers)
            ck_assert_int_eq(put(s, (size_t)i), ERR_NONE);
        else
            ck_assert_int_eq(put_error(s, (size_t)i), ERR_NONE); /* counts for nothing */
        if (to.drafts)
            ck_assert_int_eq(store_end_drafts(s, &to, &errs), ERR_NONE);
        store_close(s);
        s = open_store();
    }
    check_drafts(s, sessions[_i].drafts, 2 * sessions[_i].drafts, sessions[_i].lost);
    store_close(s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_drafts");
    TCase *tc = tcase_create("all");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, drafts_add_up);
    tcase_add_loop_test(tc, drafts_of_sessions, 0, COUNT(sessions));
    suite_add_tcase(suite, tc);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
