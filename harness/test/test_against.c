/* What changed between two runs: each pair of outputs and verdicts, records of earlier runs, and
 * lines that are none. */
#include "harness/cli/against.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* Memory and mistakes of one test. */
static struct {
    struct arena arena;
    struct errs errs;
} now;

static void begin(void)
{
    memset(&now, 0, sizeof now);
    ck_assert(arena_init(&now.arena, (size_t)1 << 20));
}

static void end(void)
{
    errs_free(&now.errs);
    arena_free(&now.arena);
}

/* ---- a case ---------------------------------------------------------------------------------- */

#define A "00000000000000aa"
#define B "00000000000000bb"

enum { THERE = 1, HASHED = 2 };

/* clang-format off */
static const struct {
    int flags;
    enum verdict before;
    const char *before_hash;
    enum verdict now;
    const char *now_hash, *kernel;
    const char *bits, *line;
    struct against_counts counts;
} pairs[] = {
    {THERE | HASHED, VERDICT_PASS, A, VERDICT_PASS, A, "", "same", "", {.compared = 1}},
    {THERE | HASHED, VERDICT_FAIL, A, VERDICT_FAIL, A, "", "same", "", {.compared = 1}},
    {THERE | HASHED, VERDICT_PASS, A, VERDICT_PASS, B, "block 1", "changed",
     "changed s/e: pass -> pass, bits " A " -> " B,
     {.compared = 1, .changed = 1, .changed_passing = 1}},
    {THERE | HASHED, VERDICT_PASS, A, VERDICT_PASS, B, "block 1 stream-k", "changed",
     "changed s/e: pass -> pass, bits " A " -> " B "; stream-k: equal launches may differ too",
     {.compared = 1, .changed = 1, .changed_passing = 1}},
    {THERE | HASHED, VERDICT_FAIL, A, VERDICT_FAIL, B, "", "changed",
     "changed s/e: fail -> fail, bits " A " -> " B, {.compared = 1, .changed = 1}},
    {THERE | HASHED, VERDICT_FAIL, A, VERDICT_PASS, B, "", "changed",
     "changed s/e: fail -> pass, bits " A " -> " B,
     {.compared = 1, .changed = 1, .verdicts = 1}},
    {THERE | HASHED, VERDICT_PASS, A, VERDICT_UNTRUSTED, A, "", "same",
     "changed s/e: pass -> untrusted, the same bits", {.compared = 1, .verdicts = 1}},
    {THERE | HASHED, VERDICT_PASS, A, VERDICT_FAIL, "", "", "one_side",
     "changed s/e: pass -> fail, outputs only before", {.one_side = 1, .verdicts = 1}},
    {THERE | HASHED, VERDICT_SKIP, "", VERDICT_PASS, A, "", "one_side",
     "changed s/e: skip -> pass, outputs only now", {.one_side = 1, .verdicts = 1}},
    {THERE | HASHED, VERDICT_FAIL, "", VERDICT_FAIL, A, "", "one_side", "", {.one_side = 1}},
    {THERE | HASHED, VERDICT_SKIP, "", VERDICT_SKIP, "", "", "", "", {.neither = 1}},
    {THERE | HASHED, VERDICT_SKIP, "", VERDICT_INFRA, "", "", "",
     "changed s/e: skip -> infra, no bits to compare", {.neither = 1, .verdicts = 1}},
    {THERE, VERDICT_PASS, "", VERDICT_PASS, A, "", "", "", {.unknown = 1}},
    {THERE, VERDICT_PASS, "", VERDICT_FAIL, A, "", "",
     "changed s/e: pass -> fail, no bits to compare", {.unknown = 1, .verdicts = 1}},
    {0, VERDICT_PASS, "", VERDICT_PASS, A, "", "one_side", "", {.one_side = 1}},
    {0, VERDICT_PASS, "", VERDICT_FAIL, "", "", "one_side", "", {.one_side = 1}},
};
/* clang-format on */

START_TEST(pairs_of_outputs)
{
    struct against_case before = {.there = pairs[_i].flags & THERE,
                                  .hashed = pairs[_i].flags & HASHED,
                                  .verdict = pairs[_i].before};
    struct record r = {.id = "s/e", .verdict = pairs[_i].now};
    struct against_counts counts = {0};
    char line[AGAINST_LINE];

    (void)snprintf(before.hash, sizeof before.hash, "%s", pairs[_i].before_hash);
    (void)snprintf(r.output_hash, sizeof r.output_hash, "%s", pairs[_i].now_hash);
    (void)snprintf(r.kernel, sizeof r.kernel, "%s", pairs[_i].kernel);
    against_judge(&before, &r, &counts);
    ck_assert_str_eq(r.bits, pairs[_i].bits);
    ck_assert_str_eq(r.against_hash, pairs[_i].before_hash);
    ck_assert_str_eq(r.against_verdict, before.there ? verdict_name(before.verdict) : "");
    ck_assert_str_eq(against_line(&r, line, sizeof line), pairs[_i].line);
    ck_assert_mem_eq(&counts, &pairs[_i].counts, sizeof counts);
}
END_TEST

/* A run without another one has nothing to say. */
START_TEST(nothing_asked_for)
{
    struct record r = {.id = "s/e", .verdict = VERDICT_FAIL, .output_hash = A};
    char line[AGAINST_LINE];

    ck_assert_str_eq(against_line(&r, line, sizeof line), "");
}
END_TEST

START_TEST(summaries)
{
    struct against_run run = {
        "humming 0.1.12",
        {.compared = 230, .changed = 12, .changed_passing = 3, .verdicts = 2, .one_side = 4}};
    char text[AGAINST_SUMMARY];

    ck_assert_str_eq(against_summary(&run, text, sizeof text),
                     "against humming 0.1.12: 230 cases compared, 12 with other bits (3 of them "
                     "pass on both sides), 2 verdicts changed, 4 only on one side");
    run.counts = (struct against_counts){.compared = 1, .verdicts = 1, .neither = 5, .unknown = 7};
    ck_assert_str_eq(against_summary(&run, text, sizeof text),
                     "against humming 0.1.12: 1 case compared, 0 with other bits (0 of them pass "
                     "on both sides), 1 verdict changed, 0 only on one side, 5 without outputs on "
                     "either side, 7 whose earlier record has no output_hash");
}
END_TEST

/* ---- records of an earlier run --------------------------------------------------------------- */

#define ROW(id, seed, verdict, more)                                           \
    "{\"index\":3,\"case\":\"" id "\",\"provider\":\"old 7\",\"seed\":\"" seed \
    "\",\"verdict\":\"" verdict "\"" more "}\n"
#define HASH(h) ",\"output_hash\":\"" h "\""

static struct plan_case plan_cases[] = {{.id = "s/b"}, {.id = "s/c"}, {.id = "s/a"}};

static enum err_code take(const char *text, struct against *out)
{
    struct plan plan = {.cases = plan_cases, .count = 3};
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): it is only read */
    FILE *in = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    enum err_code rc;

    ck_assert_ptr_nonnull(in);
    for (int i = 0; i < 3; i++)
        plan_cases[i].v[AX_SEED] = 0x5eed;
    rc = against_take(in, "old.jsonl", &plan, &now.arena, out, &now.errs);
    (void)fclose(in);
    return rc;
}

START_TEST(records_are_found_by_id_and_seed)
{
    struct against a;

    ck_assert_int_eq(take(ROW("s/a", "0x0000000000005eed", "fail", HASH(A))
                              ROW("s/b", "0x0000000000005eee", "pass", HASH(B)) /* other data */
                          ROW("s/z", "0x0000000000005eed", "pass", HASH(B))     /* no such case */
                          ROW("s/c", "0x5eed", "skip", ""),                     /* an old record */
                          &a),
                     ERR_NONE);
    ck_assert_str_eq(a.run.name, "old 7");
    ck_assert(!a.cases[0].there);
    ck_assert(a.cases[1].there && !a.cases[1].hashed && a.cases[1].verdict == VERDICT_SKIP);
    ck_assert(a.cases[2].there && a.cases[2].hashed && a.cases[2].verdict == VERDICT_FAIL);
    ck_assert_str_eq(a.cases[2].hash, A);
}
END_TEST

#define GOOD ROW("s/a", "0x5eed", "pass", HASH(A))

/* clang-format off */
static const struct {
    const char *text;
    int line;
    const char *sentence;
} bad[] = {
    {"not json\n",                                        1, "is no record"},
    {GOOD "\n",                                           2, "is no record"},
    {GOOD "[]\n",                                         2, "is no record"},
    {GOOD "{\"case\":\"s/b\"}\n",                         2, "is no record"},
    {GOOD "{\"index\":1,\"case\":\"s/b\",\"prov",         2, "is no record"}, /* cut off */
    {ROW("s/a", "0x5eed", "great", HASH(A)),              1, "is no record"},
    {ROW("s/a", "5eed", "pass", HASH(A)),                 1, "is no record"},
    {ROW("s/a", "0x5eeg", "pass", HASH(A)),               1, "is no record"},
    {ROW("s/a", "0x", "pass", HASH(A)),                   1, "is no record"},
    {ROW("s/a", "0x5eed", "pass", HASH(A "0")),           1, "is no record"},
    {ROW("s/a", "0x5eed", "pass", ",\"output_hash\":7"),  1, "is no record"},
    {GOOD GOOD,                                           2, "'s/a' stands here twice"},
    {ROW("s/z", "0x5eed", "pass", HASH(A)),               0, "nothing to compare"},
    {ROW("s/a", "0x5eee", "pass", HASH(A)),               0, "nothing to compare"},
    {" \n",                                               1, "is no record"},
};
/* clang-format on */

START_TEST(lines_that_are_none)
{
    struct against a;

    ck_assert_int_eq(take(bad[_i].text, &a), ERR_CONFIG);
    ck_assert_uint_eq(now.errs.count, 1);
    ck_assert_str_eq(now.errs.items[0].at.file, "old.jsonl");
    ck_assert_int_eq(now.errs.items[0].at.line, bad[_i].line);
    ck_assert_msg(strstr(now.errs.items[0].text, bad[_i].sentence) != NULL, "%s",
                  now.errs.items[0].text);
}
END_TEST

/* ---- options --------------------------------------------------------------------------------- */

START_TEST(options_that_do_not_fit)
{
    struct options o = {.against = "jsonl:x", .fail_on_change = true};

    ck_assert_int_eq(against_check(&o, &now.errs), ERR_NONE);
    o.against = "jsonl:";
    ck_assert_int_eq(against_check(&o, &now.errs), ERR_USAGE);
    o.against = NULL;
    ck_assert_int_eq(against_check(&o, &now.errs), ERR_USAGE);
    o.fail_on_change = false;
    ck_assert_int_eq(against_check(&o, &now.errs), ERR_NONE);
    ck_assert_uint_eq(now.errs.count, 2);
}
END_TEST

static Suite *against_suite(void)
{
    Suite *s = suite_create("against");
    TCase *tc = tcase_create("all");

    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_loop_test(tc, pairs_of_outputs, 0, sizeof pairs / sizeof pairs[0]);
    tcase_add_test(tc, nothing_asked_for);
    tcase_add_test(tc, summaries);
    tcase_add_test(tc, records_are_found_by_id_and_seed);
    tcase_add_loop_test(tc, lines_that_are_none, 0, sizeof bad / sizeof bad[0]);
    tcase_add_test(tc, options_that_do_not_fit);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    SRunner *r = srunner_create(against_suite());
    int failed;

    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
