/* Rows of faults: written, read again, and not taken where they belong to another run. */
#include "harness/report/mutation.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 3, TEXT = 8192 };

static const struct mutation_run the_run = {.suite = "a.yaml b.yaml",
                                            .plan = "0123",
                                            .program = "humcheck 1",
                                            .build = "beef",
                                            .full = true,
                                            .explain = true};

static char folder[] = "/tmp/test_mutation.XXXXXX", path[64];

static void set_up(void)
{
    (void)snprintf(folder, sizeof folder, "/tmp/test_mutation.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/rows.json", folder);
}

static void tear_down(void)
{
    (void)unlink(path);
    (void)rmdir(folder);
}

/* As the catalogue has them: nothing is done. */
static void name_rows(struct mutation rows[ROWS])
{
    static const char *const names[ROWS] = {"one", "two", "three"};

    memset(rows, 0, ROWS * sizeof *rows);
    for (int i = 0; i < ROWS; i++) {
        rows[i].name = names[i];
        rows[i].place = "kernel";
        rows[i].class = i ? "scale" : "layout";
        rows[i].origin = "numerics 1";
    }
}

/* The first is detected, the second not, the third not done. */
static void fill_rows(struct mutation rows[ROWS])
{
    struct mutation *m = &rows[0];

    name_rows(rows);
    rows[0].done = rows[1].done = true;
    m->detected = m->usual_ran = m->simulated = true;
    (void)snprintf(m->verdict, sizeof m->verdict, "untrusted");
    (void)snprintf(m->check, sizeof m->check, "exact");
    (void)snprintf(m->family, sizeof m->family, "gemm");
    (void)snprintf(m->id, sizeof m->id, "s/e/a=\"1\"");
    (void)snprintf(m->reason, sizeof m->reason, "one\\two\n|three\x01");
    (void)snprintf(m->repro, sizeof m->repro, "humcheck kernels 'x'");
    (void)snprintf(m->usual_id, sizeof m->usual_id, "s/e");
    (void)snprintf(m->explained, sizeof m->explained, "nibble-order");
    m->cases = 41;
    m->seconds = 1.25;
    m->seen_count = 2;
    (void)snprintf(m->seen[0].name, sizeof m->seen[0].name, "exact");
    (void)snprintf(m->seen[1].name, sizeof m->seen[1].name, "bound");
    m->seen[0].cases = 7;
    m->seen[1].cases = 1;
    for (int i = 0; i < USUAL_CHECKS; i++) {
        m->usual_runs[i] = i;
        m->usual_alarms[i] = i == 2 ? 3 : 0;
    }
    rows[1].cases = 358;
    (void)snprintf(rows[1].usual_reason, sizeof rows[1].usual_reason, "no such operation");
}

static void write_rows(const struct mutation rows[ROWS])
{
    struct errs errs = {0};

    ck_assert_int_eq(mutation_write_json(path, &the_run, rows, ROWS, &errs), ERR_NONE);
    ck_assert_uint_eq(errs.count, 0);
    errs_free(&errs);
}

static char *read_file(const char *name)
{
    static char text[TEXT];
    FILE *f = fopen(name, "r");
    size_t n;

    ck_assert_ptr_nonnull(f);
    n = fread(text, 1, sizeof text - 1, f);
    (void)fclose(f);
    text[n] = '\0';
    return text;
}

START_TEST(rows_come_back)
{
    struct mutation rows[ROWS], again[ROWS];
    char why[160];

    fill_rows(rows);
    write_rows(rows);
    name_rows(again);
    again[0].simulated = true; /* the catalogue's */
    ck_assert_uint_eq(mutation_read_json(path, &the_run, again, ROWS, why, sizeof why), 2);
    ck_assert_str_eq(why, "");
    ck_assert(again[0].reused && again[1].reused && !again[2].done);
    again[0].reused = again[1].reused = false;
    ck_assert_str_eq(again[0].reason, rows[0].reason);
    for (int i = 0; i < ROWS; i++)
        ck_assert_mem_eq(&again[i], &rows[i], sizeof rows[i]);
}
END_TEST

START_TEST(json_has_what_readers_look_for)
{
    struct mutation rows[ROWS];
    const char *text;

    fill_rows(rows);
    write_rows(rows);
    text = read_file(path);
    ck_assert_ptr_nonnull(strstr(text, "\"rtol_05_atol_1\":\tfalse"));
    ck_assert_ptr_nonnull(strstr(text, "\"nmse_5e_4\":\ttrue"));
    ck_assert_ptr_nonnull(strstr(text, "\"check\":\t\"exact\""));
    ck_assert_ptr_nonnull(strstr(text, "\"check\":\tnull"));
    ck_assert_ptr_nonnull(strstr(text, "\"cases\":\t41"));
    ck_assert_ptr_null(strstr(text, "three\",\n\t\t\t\"place"));
}
END_TEST

/* Each differs in one thing. */
static const struct {
    struct mutation_run run;
    const char *why;
} others[] = {
    {{"c.yaml", "0123", "humcheck 1", "beef", true, true}, "another suite"},
    {{"a.yaml b.yaml", "0124", "humcheck 1", "beef", true, true}, "another suite"},
    {{"a.yaml b.yaml", "0123", "humcheck 2", "beef", true, true}, "another build"},
    {{"a.yaml b.yaml", "0123", "humcheck 1", "dead", true, true}, "another build"},
    {{"a.yaml b.yaml", "0123", "humcheck 1", "beef", false, true}, "with --full"},
    {{"a.yaml b.yaml", "0123", "humcheck 1", "beef", true, false}, "with --explain"},
};

START_TEST(another_run_takes_nothing)
{
    struct mutation rows[ROWS];
    char why[160];

    fill_rows(rows);
    write_rows(rows);
    name_rows(rows);
    ck_assert_uint_eq(mutation_read_json(path, &others[_i].run, rows, ROWS, why, sizeof why), 0);
    ck_assert_msg(strstr(why, others[_i].why) != NULL, "%s", why);
    ck_assert(!rows[0].done);
}
END_TEST

static const char *const broken[] = {
    "", "{", "[]", "null", "{\"suite\":3}", "{\"suite\":\"a.yaml b.yaml\",\"plan\":\"0123\"}",
};

START_TEST(broken_files_take_nothing)
{
    struct mutation rows[ROWS];
    FILE *f = fopen(path, "w");
    char why[160];

    ck_assert_ptr_nonnull(f);
    (void)fputs(broken[_i], f);
    (void)fclose(f);
    name_rows(rows);
    ck_assert_uint_eq(mutation_read_json(path, &the_run, rows, ROWS, why, sizeof why), 0);
    ck_assert_str_ne(why, "");
}
END_TEST

START_TEST(no_file_is_no_mistake)
{
    struct mutation rows[ROWS];
    char why[160];

    name_rows(rows);
    ck_assert_uint_eq(mutation_read_json(path, &the_run, rows, ROWS, why, sizeof why), 0);
    ck_assert_str_eq(why, "");
}
END_TEST

/* Numbers of a file that somebody changed stay numbers of ours. */
START_TEST(odd_numbers)
{
    struct mutation rows[ROWS];
    FILE *f = fopen(path, "w");
    char why[160];

    ck_assert_ptr_nonnull(f);
    (void)fputs("{\"suite\":\"a.yaml b.yaml\",\"plan\":\"0123\",\"program\":\"humcheck 1\","
                "\"build\":\"beef\",\"full\":true,\"explain\":true,\"faults\":[{\"name\":\"two\","
                "\"cases\":-3,"
                "\"seconds\":1e400,\"usual_runs\":{\"tol_1e_2\":7,\"cosine_99\":2}}, 5, "
                "{\"name\":\"none\"}]}",
                f);
    (void)fclose(f);
    name_rows(rows);
    ck_assert_uint_eq(mutation_read_json(path, &the_run, rows, ROWS, why, sizeof why), 1);
    ck_assert(rows[1].done && !rows[1].detected && rows[1].cases == 0);
    ck_assert(rows[1].seconds == 0.0);
    ck_assert_int_eq(rows[1].usual_runs[2], 0);
    ck_assert_int_eq(rows[1].usual_runs[3], 2);
}
END_TEST

/* Nothing was explained: the columns are not there. */
START_TEST(markdown_plain)
{
    struct mutation_run run = the_run;
    struct mutation rows[ROWS];
    struct errs errs = {0};
    const char *text;

    run.explain = false;
    fill_rows(rows);
    ck_assert_int_eq(mutation_write_markdown(path, &run, rows, ROWS, &errs), ERR_NONE);
    text = read_file(path);
    ck_assert_ptr_nonnull(strstr(text, "| 3/6 | 4/6 | 5/6 |\n"));
    ck_assert_ptr_nonnull(strstr(text, "| all | 2 | 1 | 0 | 1 | 1 | 1 | 1 | 1 |\n"));
    ck_assert_ptr_null(strstr(text, "explained"));
    errs_free(&errs);
}
END_TEST

START_TEST(markdown)
{
    struct mutation rows[ROWS];
    struct errs errs = {0};
    const char *text;

    fill_rows(rows);
    ck_assert_int_eq(mutation_write_markdown(path, &the_run, rows, ROWS, &errs), ERR_NONE);
    text = read_file(path);
    ck_assert_ptr_nonnull(strstr(text, "1 of 2 injected faults are detected by a.yaml b.yaml"));
    ck_assert_ptr_nonnull(strstr(text, "| one (simulated) | layout | numerics 1 | exact "
                                       "(untrusted) | 41 | 1.2 | 0/6 | 1/6 | 2/3 | 3/6 | 4/6 | 5/6 "
                                       "| wrong: nibble-order |\n"));
    ck_assert_ptr_nonnull(strstr(text, "| two | scale | numerics 1 | - | 358 | 0.0 |"));
    ck_assert_ptr_null(strstr(text, "| three"));
    ck_assert_ptr_nonnull(strstr(text, "| all | 2 | 1 | 0 | 1 | 1 | 1 | 1 | 1 | 0 | 1 | 0 |\n"));
    ck_assert_ptr_nonnull(strstr(text, "\n| layout | 1 | 1 |"));
    ck_assert_ptr_nonnull(strstr(text, "\n| known mistakes of such kernels | 2 | 1 |"));
    ck_assert_ptr_nonnull(strstr(text, "| class | faults | detected | .05/.1 | .01/.05 | .01/.01 "
                                       "| cos | diff | nmse | explained | wrongly | not |\n"
                                       "|---|---|---|---|---|---|---|---|---|---|---|---|\n"));
    errs_free(&errs);
}
END_TEST

/* ---- lines ----------------------------------------------------------------------------------- */

START_TEST(lines_of_usual)
{
    struct usual_outcome u = {.run = 4, .ran = true, .compared = 99}, again;
    FILE *f = fopen(path, "w");
    char *text;

    u.failed[1] = u.failed[5] = true;
    (void)snprintf(u.reason, sizeof u.reason, "so \"it\" is");
    ck_assert_ptr_nonnull(f);
    ck_assert(mutation_print_usual(&u, "s/e", f));
    (void)fclose(f);
    text = read_file(path);
    ck_assert_uint_eq(strcspn(text, "\n"), strlen(text) - 1);
    ck_assert(mutation_read_usual(text, &again));
    ck_assert_int_eq(again.run, 4);
    ck_assert(again.ran && again.compared == 99);
    ck_assert_str_eq(again.reason, u.reason);
    ck_assert_mem_eq(again.failed, u.failed, sizeof u.failed);
    ck_assert(!mutation_read_usual("{\"run\":7}", &again));
    ck_assert(!mutation_read_usual("hello", &again));
}
END_TEST

START_TEST(lines_of_cases)
{
    struct record r;

    ck_assert(mutation_read_record("{\"index\":12,\"case\":\"a/b\",\"family\":\"gemm\",\"check\":"
                                   "\"bound\",\"verdict\":\"untrusted\",\"reason\":\"x\"}",
                                   &r));
    ck_assert_uint_eq(r.index, 12);
    ck_assert_int_eq(r.verdict, VERDICT_UNTRUSTED);
    ck_assert_str_eq(r.id, "a/b");
    ck_assert_str_eq(r.check, "bound");
    ck_assert(!mutation_read_record("{\"verdict\":\"great\"}", &r));
    ck_assert(!mutation_read_record("", &r));
    ck_assert(!mutation_read_record("[1]", &r));
}
END_TEST

/* ---- who caught it --------------------------------------------------------------------------- */

static const struct {
    bool detected;
    const char *verdict, *check, *text;
} caught[] = {
    {false, "", "", "-"},
    {true, "fail", "exact", "exact"},
    {true, "untrusted", "bound", "bound (untrusted)"},
    {true, "infra", "bound", "bound (infra)"},
    {true, "refused", "start", "start (refused)"},
    {true, "test", "test_checks", "test_checks"},
};

START_TEST(caught_by)
{
    struct mutation m = {.detected = caught[_i].detected};
    char buf[64];

    (void)snprintf(m.verdict, sizeof m.verdict, "%s", caught[_i].verdict);
    (void)snprintf(m.check, sizeof m.check, "%s", caught[_i].check);
    ck_assert_str_eq(mutation_caught_by(&m, buf, sizeof buf), caught[_i].text);
}
END_TEST

static const struct {
    const char *repro, *cause, *explained, *how;
} explained[] = {
    {"again", "a", "a", "right"},  {"again", "a", "b", "wrong"}, {"again", "a", "", "none"},
    {"again", NULL, "b", "wrong"}, {"again", NULL, "", ""},      {"", "a", "", ""},
};

START_TEST(explanations)
{
    struct mutation m = {.cause = explained[_i].cause};

    (void)snprintf(m.repro, sizeof m.repro, "%s", explained[_i].repro);
    (void)snprintf(m.explained, sizeof m.explained, "%s", explained[_i].explained);
    ck_assert_str_eq(mutation_explained(&m), explained[_i].how);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("mutation");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, rows_come_back);
    tcase_add_test(tc, json_has_what_readers_look_for);
    tcase_add_loop_test(tc, another_run_takes_nothing, 0, (int)(sizeof others / sizeof others[0]));
    tcase_add_loop_test(tc, broken_files_take_nothing, 0, (int)(sizeof broken / sizeof broken[0]));
    tcase_add_test(tc, no_file_is_no_mistake);
    tcase_add_test(tc, odd_numbers);
    tcase_add_test(tc, markdown);
    tcase_add_test(tc, markdown_plain);
    tcase_add_test(tc, lines_of_usual);
    tcase_add_test(tc, lines_of_cases);
    tcase_add_loop_test(tc, caught_by, 0, (int)(sizeof caught / sizeof caught[0]));
    tcase_add_loop_test(tc, explanations, 0, (int)(sizeof explained / sizeof explained[0]));
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
