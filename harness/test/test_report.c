#include "harness/report/report.h"

#include <check.h>
#include <cjson/cJSON.h>
#include <fcntl.h>
#include <libxml/parser.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH = 256, TEXT = 1 << 22, CASES = 5 };

/* ---- a folder for results, and silence: a report always has text on standard output -------- */

static char folder[PATH], target[PATH], part[PATH], out[PATH + 16];
static struct errs errs;
static int saved_stdout;

static void set_up(void)
{
    int nothing = open("/dev/null", O_WRONLY);

    (void)snprintf(folder, sizeof folder, "/tmp/test_report.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(target, sizeof target, "%.200s/result", folder);
    (void)snprintf(part, sizeof part, "%.200s/result.part", folder);
    errs = (struct errs){0};
    (void)fflush(stdout);
    saved_stdout = dup(STDOUT_FILENO);
    ck_assert(nothing >= 0 && saved_stdout >= 0 && dup2(nothing, STDOUT_FILENO) >= 0);
    (void)close(nothing);
}

static void tear_down(void)
{
    (void)fflush(stdout);
    (void)dup2(saved_stdout, STDOUT_FILENO);
    (void)close(saved_stdout);
    (void)unlink(target);
    (void)unlink(part);
    (void)rmdir(folder);
    errs_free(&errs);
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* The file's text; the caller frees it. */
static char *slurp(const char *path)
{
    FILE *f = fopen(path, "r");
    char *text = calloc(1, TEXT);

    ck_assert_msg(f && text, "%s", path);
    text[fread(text, 1, TEXT - 1, f)] = '\0';
    (void)fclose(f);
    return text;
}

/* ---- records ------------------------------------------------------------------------------- */

static const struct run_info run = {
    .program = "humcheck 0.1.0", .provider = "cpu 0.1.0 on cpu", .cases = CASES, .problems = 1};

static struct record record_of(int i, enum verdict v)
{
    struct record r = {.index = (uint64_t)i, .seed = 0xfedcba9876543210u, .verdict = v};

    (void)snprintf(r.suite, sizeof r.suite, "smoke");
    (void)snprintf(r.id, sizeof r.id, "smoke/e/m=%d", i);
    (void)snprintf(r.family, sizeof r.family, "gemm");
    (void)snprintf(r.check, sizeof r.check, "exact");
    (void)snprintf(r.repro, sizeof r.repro, "humcheck kernels a.yaml --filter 'smoke/e/m=%d'", i);
    if (v != VERDICT_PASS)
        (void)snprintf(r.reason, sizeof r.reason, "a reason for %s", verdict_name(v));
    r.at_row = r.at_col = -1;
    r.kernel_us = 2000;
    return r;
}

/* Opens --out KIND:target, adds n records and closes. */
static enum verdict report_of(const char *kind, bool no_timing, bool complete,
                              const struct record *records, size_t n)
{
    const char *outs[] = {out};
    const struct report_options o = {.outs = outs, .out_count = 1, .no_timing = no_timing};
    struct report *rep = NULL;
    enum verdict v = VERDICT_COUNT;

    (void)snprintf(out, sizeof out, "%s:%s", kind, target);
    ck_assert_int_eq(report_open(&rep, &o, &run, &errs), ERR_NONE);
    for (size_t i = 0; i < n; i++)
        ck_assert_int_eq(report_add(rep, &records[i], &errs), ERR_NONE);
    ck_assert(exists(part)); /* and `target` as it was */
    ck_assert_int_eq(report_close(rep, complete, &v, &errs), ERR_NONE);
    return v;
}

static void one_of_each(struct record r[VERDICT_COUNT])
{
    for (int v = 0; v < VERDICT_COUNT; v++)
        r[v] = record_of(v, (enum verdict)v);
}

/* ---- JSON lines ---------------------------------------------------------------------------- */

static uint64_t bits_of(double x)
{
    uint64_t b;

    memcpy(&b, &x, sizeof b);
    return b;
}

static double number(const cJSON *row, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(row, key);

    ck_assert_msg(cJSON_IsNumber(item), "%s", key);
    return item->valuedouble;
}

static void same_bits(const cJSON *row, const char *key, double want)
{
    double x = number(row, key);

    ck_assert_msg(bits_of(x) == bits_of(want), "%s: %a, not %a", key, x, want);
}

static void same_word(const cJSON *row, const char *key, const char *want)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(row, key);

    ck_assert_msg(cJSON_IsString(item) && !strcmp(item->valuestring, want), "%s is not '%s'", key,
                  want);
}

/* All finite doubles come back with the same bits: random patterns (Knuth's MMIX generator), and
 * neighbours of short decimals. */
START_TEST(doubles_come_back)
{
    enum { ROWS = 2000 };
    struct record *r = calloc(ROWS, sizeof *r);
    uint64_t state = 1;
    char *text, *line;
    int i = 0;

    ck_assert_ptr_nonnull(r);
    for (; i < ROWS; i++) {
        state = 6364136223846793005u * state + 1442695040888963407u;
        r[i] = record_of(i, VERDICT_FAIL);
        memcpy(&r[i].got, &state, sizeof state);
        if (!isfinite(r[i].got))
            r[i].got = -0.0;
        r[i].want = nextafter((double)i / 10, HUGE_VAL);
        r[i].error = -r[i].want;
        r[i].limit = 0x1p-1074 * (double)i;
    }
    (void)report_of("jsonl", false, true, r, ROWS);
    text = slurp(target);
    line = text;
    for (i = 0; *line; i++) {
        char *end = strchr(line, '\n');
        cJSON *row = cJSON_ParseWithLength(line, (size_t)(end - line));

        ck_assert_ptr_nonnull(row);
        same_bits(row, "got", r[i].got);
        same_bits(row, "want", r[i].want);
        same_bits(row, "error", r[i].error);
        same_bits(row, "limit", r[i].limit);
        cJSON_Delete(row);
        line = end + 1;
    }
    ck_assert_int_eq(i, ROWS);
    free(text);
    free(r);
}
END_TEST

START_TEST(jsonl_has_every_column)
{
    struct record r = record_of(3, VERDICT_FAIL);
    char *text;
    cJSON *row;

    r.got = (double)NAN;
    r.want = HUGE_VAL;
    r.error = -HUGE_VAL;
    r.got_code = 0x7e00;
    r.want_code = 0x12345678;
    r.outputs = UINT64_MAX;
    r.at_row = INT64_MIN;
    (void)snprintf(r.reason, sizeof r.reason, "\"quoted\"\n\xff");
    (void)report_of("jsonl", false, true, &r, 1);
    text = slurp(target);
    row = cJSON_Parse(text);
    ck_assert_ptr_nonnull(row);
    for (int i = 0; i < record_column_count; i++)
        ck_assert_msg(cJSON_HasObjectItem(row, record_columns[i].name), "%s",
                      record_columns[i].name);
    same_word(row, "got", "nan");
    same_word(row, "want", "inf");
    same_word(row, "error", "-inf");
    same_word(row, "seed", "0xfedcba9876543210");
    same_word(row, "got_code", "0x7e00");
    same_word(row, "want_code", "0x12345678");
    same_word(row, "verdict", "fail");
    same_word(row, "reason", "\"quoted\"\n\xef\xbf\xbd");
    ck_assert_ptr_nonnull(strstr(text, "\"outputs\":18446744073709551615,"));
    ck_assert_ptr_nonnull(strstr(text, "\"at_row\":-9223372036854775808,"));
    ck_assert(text[strlen(text) - 1] == '\n' && strchr(text, '\n') == text + strlen(text) - 1);
    cJSON_Delete(row);
    free(text);
}
END_TEST

START_TEST(no_timing_leaves_timing_out)
{
    struct record r = record_of(0, VERDICT_PASS);
    char *text;

    (void)report_of("jsonl", true, true, &r, 1);
    text = slurp(target);
    for (int i = 0; i < record_column_count; i++) {
        char key[64];

        (void)snprintf(key, sizeof key, "\"%s\":", record_columns[i].name);
        ck_assert_msg((strstr(text, key) == NULL) == record_columns[i].timing, "%s", key);
    }
    free(text);
}
END_TEST

/* ---- files --------------------------------------------------------------------------------- */

static const char *const kinds[] = {"jsonl", "junit"};

START_TEST(file_appears_when_whole)
{
    struct record r[VERDICT_COUNT];

    one_of_each(r);
    ck_assert_int_eq(report_of(kinds[_i], false, true, r, VERDICT_COUNT), VERDICT_FAIL);
    ck_assert(exists(target) && !exists(part));
}
END_TEST

START_TEST(interrupted_keeps_a_usable_part)
{
    struct record r = record_of(0, VERDICT_PASS);
    char *text;

    ck_assert_int_eq(report_of(kinds[_i], false, false, &r, 1), VERDICT_PASS);
    ck_assert(!exists(target) && exists(part));
    text = slurp(part);
    if (!strcmp(kinds[_i], "jsonl")) {
        cJSON *row = cJSON_Parse(text);

        ck_assert_ptr_nonnull(row);
        cJSON_Delete(row);
    } else {
        xmlDocPtr doc = xmlReadMemory(text, (int)strlen(text), "x", NULL, 0);

        ck_assert_ptr_nonnull(doc);
        xmlFreeDoc(doc);
    }
    free(text);
}
END_TEST

/* The older result is there until the new one is whole. */
START_TEST(older_result_survives_an_interrupt)
{
    struct record r = record_of(0, VERDICT_PASS);
    char *before, *after;

    (void)report_of("jsonl", true, true, &r, 1);
    before = slurp(target);
    ck_assert_int_eq(report_of("jsonl", true, false, NULL, 0), VERDICT_INFRA); /* nothing ran */
    after = slurp(target);
    ck_assert_str_eq(before, after);
    free(before);
    free(after);
}
END_TEST

static const struct {
    const char *outs[3];
    enum err_code code;
    size_t errors;
    const char *sentence;
} bad_outs[] = {
    {{"jsonl"}, ERR_USAGE, 1, "KIND:TARGET"},
    {{"jsonl:"}, ERR_USAGE, 1, "KIND:TARGET"},
    {{""}, ERR_USAGE, 1, "KIND:TARGET"},
    {{"xml:f"}, ERR_USAGE, 1, "the kinds are jsonl, junit"},
    {{"jsonl:/tmp/f", "junit:/tmp/f"}, ERR_USAGE, 1, "two --out"},
    {{"a:b", "c:d", "jsonl"}, ERR_USAGE, 3, "'a'"},
    {{"jsonl:/no/such/folder/f"}, ERR_IO, 1, "No such file"},
};

START_TEST(bad_out_is_refused)
{
    struct report_options o = {.outs = bad_outs[_i].outs};
    struct report *rep = NULL;

    while (o.out_count < 3 && bad_outs[_i].outs[o.out_count])
        o.out_count++;
    ck_assert_int_eq(report_open(&rep, &o, &run, &errs), bad_outs[_i].code);
    ck_assert_ptr_null(rep);
    ck_assert_uint_eq(errs.count, bad_outs[_i].errors);
    ck_assert_msg(strstr(errs.items[0].text, bad_outs[_i].sentence) != NULL, "%s",
                  errs.items[0].text);
}
END_TEST

/* A run that cannot begin leaves nothing of the outputs that could be opened. */
START_TEST(refused_run_leaves_no_part)
{
    const char *outs[] = {out, "junit:/no/such/folder/f"};
    const struct report_options o = {.outs = outs, .out_count = 2};
    struct report *rep = NULL;

    (void)snprintf(out, sizeof out, "jsonl:%s", target);
    ck_assert_int_eq(report_open(&rep, &o, &run, &errs), ERR_IO);
    ck_assert(!exists(target) && !exists(part));
}
END_TEST

/* /dev/full takes no byte: one sentence, and no file that looks whole. */
START_TEST(full_disk_is_an_error)
{
    const char *outs[] = {out};
    const struct report_options o = {.outs = outs, .out_count = 1};
    struct record r = record_of(0, VERDICT_PASS);
    struct report *rep = NULL;
    enum err_code first = ERR_NONE, closed;
    enum verdict v;

    (void)snprintf(out, sizeof out, "%s:%s", kinds[_i], target);
    ck_assert_int_eq(symlink("/dev/full", part), 0);
    ck_assert_int_eq(report_open(&rep, &o, &run, &errs), ERR_NONE);
    first = report_add(rep, &r, &errs);
    closed = report_close(rep, true, &v, &errs);
    ck_assert_int_eq(first ? first : closed, ERR_IO);
    ck_assert_uint_eq(errs.count, 1);
    ck_assert_int_eq(errs.items[0].code, ERR_IO);
    ck_assert(!exists(target));
}
END_TEST

/* ---- JUnit --------------------------------------------------------------------------------- */

static int count_elements(const xmlNode *node, const char *name)
{
    int n = 0;

    for (; node; node = node->next)
        n += (node->type == XML_ELEMENT_NODE && !strcmp((const char *)node->name, name)) +
             count_elements(node->children, name);
    return n;
}

static int attribute(xmlNode *node, const char *name)
{
    xmlChar *text = xmlGetProp(node, (const xmlChar *)name);
    int n = text ? (int)strtol((const char *)text, NULL, 10) : -1;

    xmlFree(text);
    return n;
}

/* The attributes of `node`, and the elements of the document: it has one suite. */
static void has_counts(xmlNode *root, xmlNode *node, const int counts[4])
{
    static const char *const names[4][2] = {{"tests", "testcase"},
                                            {"failures", "failure"},
                                            {"errors", "error"},
                                            {"skipped", "skipped"}};

    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(attribute(node, names[i][0]), counts[i]);
        ck_assert_int_eq(count_elements(root, names[i][1]), counts[i]);
    }
}

START_TEST(junit_counts)
{
    static const int counts[4] = {VERDICT_COUNT, 2, 1, 1}; /* failures: fail and untrusted */
    struct record r[VERDICT_COUNT];
    xmlDocPtr doc;
    xmlNode *root;

    one_of_each(r);
    (void)report_of("junit", false, true, r, VERDICT_COUNT);
    doc = xmlReadFile(target, NULL, 0);
    root = xmlDocGetRootElement(doc);
    ck_assert_str_eq((const char *)root->name, "testsuites");
    ck_assert_int_eq(count_elements(root, "testsuite"), 1);
    has_counts(root, root, counts);
    has_counts(root, xmlFirstElementChild(root), counts);
    xmlFreeDoc(doc);
}
END_TEST

/* Texts that would break XML if they were written as they are. */
START_TEST(junit_is_well_formed)
{
    struct record r = record_of(0, VERDICT_FAIL);
    xmlNode *testcase;
    xmlChar *message;
    xmlDocPtr doc;

    (void)snprintf(r.reason, sizeof r.reason, "]]><&>\"'\n\x01\xff\xef\xbf\xbe");
    (void)snprintf(r.id, sizeof r.id, "%s", r.reason);
    (void)snprintf(r.repro, sizeof r.repro, "%s", r.reason);
    (void)report_of("junit", false, true, &r, 1);
    doc = xmlReadFile(target, NULL, 0);
    ck_assert_ptr_nonnull(doc);
    testcase = xmlLastElementChild(xmlFirstElementChild(xmlDocGetRootElement(doc)));
    message = xmlGetProp(xmlFirstElementChild(testcase), (const xmlChar *)"message");
    ck_assert_str_eq((const char *)message, "]]><&>\"'\n\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    xmlFree(message);
    xmlFreeDoc(doc);
}
END_TEST

/* Cases of several suites, mixed: one element a suite, with its own counts. */
START_TEST(junit_sorts_by_suite)
{
    struct record r[4];
    xmlDocPtr doc;
    xmlNode *first;

    for (int i = 0; i < 4; i++) {
        r[i] = record_of(i, i == 3 ? VERDICT_FAIL : VERDICT_PASS);
        (void)snprintf(r[i].suite, sizeof r[i].suite, "s%d", i % 2);
    }
    (void)report_of("junit", true, true, r, 4);
    doc = xmlReadFile(target, NULL, 0);
    first = xmlFirstElementChild(xmlDocGetRootElement(doc));
    ck_assert_int_eq(attribute(first, "tests"), 2);
    ck_assert_int_eq(attribute(first, "failures"), 0);
    ck_assert_int_eq(attribute(xmlNextElementSibling(first), "failures"), 1);
    ck_assert_int_eq(attribute(first, "time"), -1); /* no timing */
    xmlFreeDoc(doc);
}
END_TEST

/* ---- a damaged record ---------------------------------------------------------------------- */

START_TEST(damaged_record_is_infra)
{
    struct record r;
    enum verdict v;

    memset(&r, 0xaa, sizeof r);
    v = report_of(kinds[_i], false, true, &r, 1);
    ck_assert_int_eq(v, VERDICT_INFRA);
    record_make_safe(&r);
    ck_assert_int_eq(r.verdict, VERDICT_INFRA);
    ck_assert_uint_eq(strlen(r.repro), sizeof r.repro - 1);
    ck_assert_ptr_nonnull(strstr(r.reason, "a verdict that does not exist"));
}
END_TEST

int main(void)
{
    const int kind_count = sizeof kinds / sizeof kinds[0];
    Suite *s = suite_create("report");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, doubles_come_back);
    tcase_add_test(tc, jsonl_has_every_column);
    tcase_add_test(tc, no_timing_leaves_timing_out);
    tcase_add_loop_test(tc, file_appears_when_whole, 0, kind_count);
    tcase_add_loop_test(tc, interrupted_keeps_a_usable_part, 0, kind_count);
    tcase_add_test(tc, older_result_survives_an_interrupt);
    tcase_add_loop_test(tc, bad_out_is_refused, 0, (int)(sizeof bad_outs / sizeof bad_outs[0]));
    tcase_add_test(tc, refused_run_leaves_no_part);
    tcase_add_loop_test(tc, full_disk_is_an_error, 0, kind_count);
    tcase_add_test(tc, junit_counts);
    tcase_add_test(tc, junit_is_well_formed);
    tcase_add_test(tc, junit_sorts_by_suite);
    tcase_add_loop_test(tc, damaged_record_is_infra, 0, kind_count);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
