/* What a run says of known faults and of cases that were left out: text, JUnit, JSON, verdict. */
#include "harness/core/arena.h"
#include "harness/report/left.h"
#include "harness/report/report.h"
#include "harness/test/run_suite.h"

#include <check.h>
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const target = "test_left.out";
static struct arena arena;
static struct errs errs;
static char text[1 << 16];

static void set_up(void)
{
    ck_assert(arena_init(&arena, (size_t)1 << 20));
    errs = (struct errs){0};
}

static void tear_down(void)
{
    (void)unlink(target);
    (void)unlink("test_left.out.part");
    errs_free(&errs);
    arena_free(&arena);
}

/* ---- the line -------------------------------------------------------------------------------- */

static const char *const many[] = {"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"};
static const char *const one[] = {"wgmma"};
static struct left_group groups[] = {
    {"gemm", "exact", 100}, {"gemm", "bound", 20}, {"pack", "guard", 3}};
static struct left_axis axes_left[] = {{"mma_type", one, 1}, {"m", many, 10}};

/* clang-format off */
static const struct {
    struct left left;
    const char *line;
} lines[] = {
    {{.why = "for lack of time", .of = 300}, ""},
    {{.why = "for lack of time", .cases = 1, .of = 1, .groups = groups, .group_count = 1},
     "left out for lack of time: 1 of 1 case (gemm: exact 100)"},
    {{.why = "for lack of time", .cases = 123, .of = 300, .groups = groups, .group_count = 3,
      .axes = axes_left, .axis_count = 2},
     "left out for lack of time: 123 of 300 cases (gemm: exact 100, bound 20; pack: guard 3), never "
     "run: mma_type wgmma, m 1 2 3 4 5 6 7 8 and 2 more"},
    {{.why = "after --max-fail", .cases = 2, .of = 3, .axes = axes_left, .axis_count = 1},
     "left out after --max-fail: 2 of 3 cases, never run: mma_type wgmma"},
};
/* clang-format on */

START_TEST(the_line)
{
    ck_assert_str_eq(left_line(&lines[_i].left, &arena), lines[_i].line);
}
END_TEST

START_TEST(no_memory_for_the_line)
{
    struct arena tiny;

    ck_assert(arena_init(&tiny, 64));
    ck_assert_ptr_null(left_line(&lines[2].left, &tiny));
    arena_free(&tiny);
}
END_TEST

/* ---- reports --------------------------------------------------------------------------------- */

static const struct left whole = {.why = "for lack of time",
                                  .budget_seconds = 90,
                                  .cases = 123,
                                  .of = 300,
                                  .problems = 40,
                                  .groups = groups,
                                  .group_count = 3,
                                  .axes = axes_left,
                                  .axis_count = 2};

static struct record record_of(enum verdict v, const char *known)
{
    struct record r = {.verdict = v, .at_row = -1, .at_col = -1};

    (void)snprintf(r.suite, sizeof r.suite, "s");
    (void)snprintf(r.id, sizeof r.id, "s/%s%s", verdict_name(v), known);
    (void)snprintf(r.family, sizeof r.family, "gemm");
    (void)snprintf(r.check, sizeof r.check, "exact");
    (void)snprintf(r.known, sizeof r.known, "%s", known);
    if (v != VERDICT_PASS)
        (void)snprintf(r.reason, sizeof r.reason, "why");
    return r;
}

/* Reports n records to `kind` and reads the file into `text`. */
static enum verdict report_of(const char *kind, const struct left *left, const struct record *r,
                              size_t n)
{
    const struct run_info run = {.program = "p", .provider = "cpu", .cases = n, .left = left};
    const char *out = arena_printf(&arena, "%s:%s", kind, target);
    const struct report_options o = {.outs = &out, .out_count = 1, .quiet = true};
    enum verdict v = VERDICT_COUNT;
    struct report *rep;
    size_t used;
    FILE *f;

    ck_assert_int_eq(report_open(&rep, &o, &run, &errs), ERR_NONE);
    for (size_t i = 0; i < n; i++)
        ck_assert_int_eq(report_add(rep, &r[i], &errs), ERR_NONE);
    ck_assert_int_eq(report_close(rep, true, &v, &errs), ERR_NONE);
    f = fopen(target, "r");
    ck_assert_ptr_nonnull(f);
    used = fread(text, 1, sizeof text - 1, f);
    text[used] = '\0';
    (void)fclose(f);
    return v;
}

static double number(const cJSON *j, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(j, key);

    ck_assert_msg(cJSON_IsNumber(item), "%s", key);
    return item->valuedouble;
}

START_TEST(the_file)
{
    const struct record r = record_of(VERDICT_PASS, "");
    const cJSON *list, *never;
    cJSON *j;

    ck_assert_int_eq((int)report_of("left", &whole, &r, 1), (int)VERDICT_PASS);
    j = cJSON_Parse(text);
    ck_assert_ptr_nonnull(j);
    ck_assert_double_eq(number(j, "budget_seconds"), 90);
    ck_assert_double_eq(number(j, "cases"), 300);
    ck_assert_double_eq(number(j, "left_out"), 123);
    ck_assert_double_eq(number(j, "problems_left_out"), 40);
    list = cJSON_GetObjectItemCaseSensitive(j, "groups");
    ck_assert_int_eq(cJSON_GetArraySize(list), 3);
    ck_assert_double_eq(number(cJSON_GetArrayItem(list, 1), "left_out"), 20);
    never = cJSON_GetObjectItemCaseSensitive(j, "never_run");
    ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(never, "m")), 10);
    cJSON_Delete(j);
}
END_TEST

START_TEST(the_file_needs_a_budget)
{
    const struct run_info run = {.program = "p", .provider = "cpu"};
    const char *outs[] = {"left:x"};
    const struct report_options o = {.outs = outs, .out_count = 1, .quiet = true};
    struct report *rep;

    ck_assert_int_eq((int)report_open(&rep, &o, &run, &errs), (int)ERR_USAGE);
    ck_assert_str_eq(errs.items[0].text,
                     "--out left:x says what a budget left out: it needs --budget");
}
END_TEST

/* clang-format off */
static const struct {
    enum verdict verdicts[2];
    const char *known[2];
    size_t count;
    const char *junit[3]; /* what the file must hold */
    enum verdict run;
} runs[] = {
    {{VERDICT_FAIL, VERDICT_PASS}, {"f.md", ""}, 2,
     {"failures=\"0\"", "skipped=\"1\"", "<skipped message=\"known fault (f.md): why\"/>"}, VERDICT_PASS},
    {{VERDICT_FAIL}, {"f.md"}, 1,
     {"failures=\"0\"", "skipped=\"1\"", "tests=\"1\""}, VERDICT_PASS},
    {{VERDICT_FAIL, VERDICT_FAIL}, {"f.md", ""}, 2,
     {"failures=\"1\"", "skipped=\"1\"", "type=\"fail\""}, VERDICT_FAIL},
    {{VERDICT_FAIL, VERDICT_PASS}, {"f.md", "f.md"}, 2,
     {"failures=\"1\"", "skipped=\"1\"", "<failure message=\"known fault passes now (f.md)\">"}, VERDICT_FAIL},
    {{VERDICT_FAIL, VERDICT_UNTRUSTED}, {"f.md", ""}, 2,
     {"failures=\"1\"", "skipped=\"1\"", "tests=\"2\""}, VERDICT_UNTRUSTED},
    {{VERDICT_FAIL, VERDICT_INFRA}, {"f.md", ""}, 2,
     {"errors=\"1\"", "skipped=\"1\"", "tests=\"2\""}, VERDICT_INFRA},
    {{VERDICT_SKIP}, {""}, 1,
     {"skipped=\"1\"", "tests=\"1\"", "errors=\"0\""}, VERDICT_INFRA},
};
/* clang-format on */

START_TEST(verdict_of_a_run_with_known_faults)
{
    struct record r[2];

    for (size_t i = 0; i < runs[_i].count; i++)
        r[i] = record_of(runs[_i].verdicts[i], runs[_i].known[i]);
    ck_assert_int_eq((int)report_of("junit", NULL, r, runs[_i].count), (int)runs[_i].run);
    for (int i = 0; i < 3; i++)
        ck_assert_msg(strstr(text, runs[_i].junit[i]) != NULL, "no %s in:\n%s", runs[_i].junit[i],
                      text);
}
END_TEST

START_TEST(junit_says_what_was_left_out)
{
    const struct record r = record_of(VERDICT_PASS, "");
    static const struct left nothing = {.why = "for lack of time", .of = 300};

    (void)report_of("junit", &whole, &r, 1);
    ck_assert_ptr_nonnull(
        strstr(text, "<property name=\"left out for lack of time\" value=\"123 of 300 cases\"/>"));
    (void)report_of("junit", &nothing, &r, 1);
    ck_assert_ptr_null(strstr(text, "left out"));
}
END_TEST

/* A known fail stays a fail in the records. */
START_TEST(records_keep_the_fail)
{
    const struct record r[] = {record_of(VERDICT_FAIL, "f.md"), record_of(VERDICT_PASS, "")};

    ck_assert_int_eq((int)report_of("jsonl", NULL, r, 2), (int)VERDICT_PASS);
    ck_assert_ptr_nonnull(
        strstr(text, "\"verdict\":\"fail\",\"reason\":\"why\",\"known\":\"f.md\""));
    ck_assert_ptr_nonnull(strstr(text, "\"verdict\":\"pass\",\"reason\":\"\",\"known\":\"\""));
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("all");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, the_line, 0, (int)(sizeof lines / sizeof lines[0]));
    tcase_add_test(tc, no_memory_for_the_line);
    tcase_add_test(tc, the_file);
    tcase_add_test(tc, the_file_needs_a_budget);
    tcase_add_loop_test(tc, verdict_of_a_run_with_known_faults, 0,
                        (int)(sizeof runs / sizeof runs[0]));
    tcase_add_test(tc, junit_says_what_was_left_out);
    tcase_add_test(tc, records_keep_the_fail);
    return run_suite("left", tc);
}
