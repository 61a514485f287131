#include "harness/report/escape.h"
#include "harness/report/sink_text.h"
#include "harness/report/table.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 1 << 14 };

static struct arena arena;
static struct errs errs;
static char text[TEXT]; /* what was written */
static FILE *stream;

static void set_up(void)
{
    ck_assert(arena_init(&arena, (size_t)1 << 22));
    errs = (struct errs){0};
    memset(text, 0, sizeof text);
    stream = fmemopen(text, sizeof text, "w");
    ck_assert_ptr_nonnull(stream);
}

static void tear_down(void)
{
    (void)fclose(stream);
    errs_free(&errs);
    arena_free(&arena);
}

/* ---- escaping ------------------------------------------------------------------------------ */

static const struct {
    const char *in, *terminal, *json, *xml;
} escapes[] = {
    {"plain 'text' <&>", "plain 'text' <&>", "plain 'text' <&>", "plain 'text' <&>"},
    {"", "", "", ""},
    {"\033[31m", "\\x1b[31m", "\033[31m", "\xef\xbf\xbd[31m"},
    {"a\nb\tc\rd", "a\\x0ab\\x09c\\x0dd", "a\nb\tc\rd", "a\nb\tc\rd"},
    {"\x7f", "\\x7f", "\x7f", "\x7f"},
    {"\xc2\x85", "\\u0085", "\xc2\x85", "\xc2\x85"},
    {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
     "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
    {"\xff", "\\xff", "\xef\xbf\xbd", "\xef\xbf\xbd"},
    {"\xc3", "\\xc3", "\xef\xbf\xbd", "\xef\xbf\xbd"}, /* cut off */
    {"\xc0\x80", "\\xc0\\x80", "\xef\xbf\xbd\xef\xbf\xbd",
     "\xef\xbf\xbd\xef\xbf\xbd"},                                     /* overlong */
    {"\xef\xbf\xbe", "\xef\xbf\xbe", "\xef\xbf\xbe", "\xef\xbf\xbd"}, /* U+FFFE: not in XML */
};

START_TEST(escaping)
{
    char buf[128];

    ck_assert_str_eq(escape_terminal(escapes[_i].in, buf, sizeof buf), escapes[_i].terminal);
    ck_assert_str_eq(escape_json(escapes[_i].in, buf, sizeof buf), escapes[_i].json);
    ck_assert_str_eq(escape_xml(escapes[_i].in, buf, sizeof buf), escapes[_i].xml);
}
END_TEST

/* Every single byte, and the promise about the size of the buffer. */
START_TEST(escaping_never_outgrows)
{
    for (int byte = 1; byte < 256; byte++) {
        char in[] = {(char)byte, (char)byte, '\0'}, buf[ESCAPE_GROWTH * 2 + 1];

        (void)escape_terminal(in, buf, sizeof buf);
        for (const char *p = buf; *p; p++)
            ck_assert_msg((unsigned char)*p >= 0x20 && (unsigned char)*p < 0x7f, "%d", byte);
        ck_assert(strlen(escape_json(in, buf, sizeof buf)) >= 2);
        ck_assert(strlen(escape_xml(in, buf, sizeof buf)) >= 2);
    }
}
END_TEST

/* What reorders or hides the text around it: U+202A to U+202E, U+2066 to U+2069 and others, all
 * of three bytes. */
static const uint32_t hidden[] = {0x200b, 0x200f, 0x2028, 0x202a, 0x202e, 0x2066, 0x2069, 0xfeff};

START_TEST(hidden_characters)
{
    uint32_t c = hidden[_i];
    char in[] = {(char)(0xe0 | c >> 12), (char)(0x80 | (c >> 6 & 0x3f)), (char)(0x80 | (c & 0x3f)),
                 '\0'};
    char buf[32], want[16];

    (void)snprintf(want, sizeof want, "\\u%04x", (unsigned)c);
    ck_assert_str_eq(escape_terminal(in, buf, sizeof buf), want);
    ck_assert_str_eq(escape_json(in, buf, sizeof buf), in);
}
END_TEST

/* A buffer that is too small cuts between characters. */
START_TEST(escaping_cuts_whole)
{
    char buf[8];

    ck_assert_str_eq(escape_json("abcdef\xc3\xa9", buf, sizeof buf), "abcdef");
    ck_assert_str_eq(escape_terminal("abcde\033", buf, sizeof buf), "abcde");
    ck_assert_str_eq(escape_terminal("\xe2\x82\xac", buf, 3), "");
}
END_TEST

/* ---- tables -------------------------------------------------------------------------------- */

START_TEST(columns_are_aligned)
{
    struct table t = {.arena = &arena, .aligns = "lrl"};
    static const char *const rows[][3] = {{"name", "count", "note"},
                                          {"\xc3\xa9", "7", ""},
                                          {"longer", "12345678", "a\nb"},
                                          {"", "1", "x"}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        ck_assert(table_add(&t, rows[i]));
    table_print(&t, stream);
    (void)fflush(stream);
    ck_assert_str_eq(text, "name       count  note\n"
                           "\xc3\xa9              7\n"
                           "longer  12345678  a\\x0ab\n"
                           "               1  x\n");
}
END_TEST

/* ---- progress ------------------------------------------------------------------------------ */

static const struct {
    struct text_progress p;
    const char *line;
} progress[] = {
    {{0, 0, 0, 0.0}, "[----------------] 0/0   0%  0 fail"},
    {{0, 10, 0, 5.0}, "[----------------] 0/10   0%  0 fail"},
    {{5, 10, 1, 0.5}, "[########--------] 5/10  50%  1 fail"},
    {{5, 10, 1, 60.0}, "[########--------] 5/10  50%  1 fail  5 cases/min  1:00 left"},
    {{10, 10, 0, 2.0}, "[################] 10/10 100%  0 fail  300 cases/min  0:00 left"},
    {{1, 1000000, 0, 1e9}, "[----------------] 1/1000000   0%  0 fail  0 cases/min  5999:59 left"},
};

START_TEST(progress_line)
{
    char buf[128], small[24];

    ck_assert_str_eq(text_progress(&progress[_i].p, buf, sizeof buf), progress[_i].line);
    ck_assert_uint_eq(strlen(text_progress(&progress[_i].p, small, sizeof small)), 23);
}
END_TEST

/* ---- a whole report ------------------------------------------------------------------------ */

static const struct run_info run = {.program = "humcheck 0.1.0",
                                    .provider = "cpu 0.1.0 on cpu",
                                    .cases = 5,
                                    .problems = 1,
                                    .illegal = 2};

static struct record record_of(enum verdict v)
{
    struct record r = {.verdict = v, .seed = 0x1f, .at_row = -1, .at_col = -1};

    (void)snprintf(r.id, sizeof r.id, "s/e/m=%d", (int)v);
    (void)snprintf(r.family, sizeof r.family, "gemm");
    (void)snprintf(r.check, sizeof r.check, v == VERDICT_PASS ? "bound" : "exact");
    (void)snprintf(r.repro, sizeof r.repro, "humcheck kernels a.yaml --filter 's/e/m=%d'", (int)v);
    if (v != VERDICT_PASS)
        (void)snprintf(r.reason, sizeof r.reason, "because of \033[31m%s", verdict_name(v));
    if (v == VERDICT_FAIL) {
        r.at_row = 0;
        r.at_col = 3;
        r.got = 0.1;
        r.want = 1.25;
        r.got_code = 0x2e66;
        r.want_code = 0x3d00;
        r.error = 256;
        r.wrong = 3;
        r.compared = 64;
        (void)snprintf(r.unit, sizeof r.unit, "codes");
    }
    return r;
}

static void write_report(const struct text_options *how, const struct report_options *o,
                         bool complete)
{
    struct text *t = text_open(how, o, &run, &arena);

    ck_assert_ptr_nonnull(t);
    for (int v = 0; v < VERDICT_COUNT; v++) {
        struct record r = record_of((enum verdict)v);

        text_row(t, &r);
    }
    text_tick(t);
    ck_assert_int_eq(text_close(t, VERDICT_FAIL, complete, &errs), ERR_NONE);
}

#define HEAD                                                                                      \
    "humcheck 0.1.0: 5 cases in 1 problem, provider cpu 0.1.0 on cpu (left out: 2 illegal, 0 by " \
    "where)\n"
#define TABLE                                                    \
    "family  check  cases  pass  fail  untrusted  skip  infra\n" \
    "gemm    bound      1     1     0          0     0      0\n" \
    "gemm    exact      4     0     1          1     1      1\n" \
    "total              5     1     1          1     1      1\n" \
    "skipped 1: because of \\x1b[31mskip\n"
#define COUNTS                                                                                  \
    ": 5 cases, 1 pass, 1 fail, 1 untrusted, 1 skip, 1 infra, provider cpu 0.1.0 on cpu, seed " \
    "0x1f\n"
#define REPRO "  repro: humcheck kernels a.yaml --filter 's/e/m="
#define TROUBLE                                                                           \
    "untrusted s/e/m=2: because of \\x1b[31muntrusted\n" REPRO "2'\n"                     \
    "infra s/e/m=3: because of \\x1b[31minfra\n" REPRO "3'\n"                             \
    "fail s/e/m=4: because of \\x1b[31mfail\n"                                            \
    "  row 0, column 3: got 0.10000000000000001 (0x2e66), want 1.25 (0x3d00); error 256 " \
    "codes, limit 0; 3 of 64 compared are wrong\n" REPRO "4'\n"

static const struct {
    struct report_options o;
    bool complete;
    const char *want;
} reports[] = {
    {{.no_timing = true}, true, HEAD TROUBLE TABLE "fail" COUNTS},
    {{.no_timing = true, .quiet = true}, true, TABLE "fail" COUNTS},
    {{.no_timing = true, .verbose = true},
     true,
     HEAD "pass s/e/m=0\nskip s/e/m=1: because of \\x1b[31mskip\n" TROUBLE TABLE "fail" COUNTS},
    {{.no_timing = true, .quiet = true},
     false,
     "stopped after 5 of 5 cases\n" TABLE "incomplete" COUNTS},
};

START_TEST(whole_report)
{
    const struct text_options how = {.stream = stream};

    write_report(&how, &reports[_i].o, reports[_i].complete);
    ck_assert_str_eq(text, reports[_i].want);
}
END_TEST

/* Changes since another run follow their cases; how many there are stands before the end. */
START_TEST(changes_are_told)
{
    const struct text_options how = {.stream = stream};
    const struct report_options o = {.no_timing = true, .quiet = _i};
    const struct against_run against = {"old 7", {.compared = 1, .changed = 1}};
    const char *change = "changed s/e/m=0: fail -> pass, bits 1 -> 2\n";
    struct record r = record_of(VERDICT_PASS);
    struct run_info changed = run;
    struct text *t;

    changed.against = &against;
    changed.cases = 1;
    (void)snprintf(r.against_verdict, sizeof r.against_verdict, "fail");
    (void)snprintf(r.against_hash, sizeof r.against_hash, "1");
    (void)snprintf(r.output_hash, sizeof r.output_hash, "2");
    (void)snprintf(r.bits, sizeof r.bits, "changed");
    t = text_open(&how, &o, &changed, &arena);
    ck_assert_ptr_nonnull(t);
    text_row(t, &r);
    ck_assert_int_eq(text_close(t, VERDICT_PASS, true, &errs), ERR_NONE);
    ck_assert((strstr(text, change) != NULL) == !_i);
    ck_assert_ptr_nonnull(strstr(text, "against old 7: 1 case compared, 1 with other bits (0 of "
                                       "them pass on both sides), 0 verdicts changed, 0 only on "
                                       "one side\npass: 1 case, "));
}
END_TEST

START_TEST(colour_only_of_verdicts)
{
    const struct text_options how = {.stream = stream, .colour = true};
    const struct report_options o = {.no_timing = true};

    write_report(&how, &o, true);
    ck_assert_ptr_nonnull(strstr(text, "\033[31mfail\033[0m s/e/m=4"));
    ck_assert_ptr_nonnull(strstr(text, "\033[33muntrusted\033[0m s/e/m=2"));
    ck_assert_ptr_nonnull(strstr(text, TABLE "\033[31mfail\033[0m" COUNTS));
}
END_TEST

START_TEST(timing_is_told)
{
    const struct text_options how = {.stream = stream};
    const struct report_options o = {.quiet = true};

    write_report(&how, &o, true);
    ck_assert_ptr_nonnull(strstr(text, " cases/min, provider"));
}
END_TEST

/* More different reasons than are told apart: all are still counted. */
START_TEST(reasons_are_bounded)
{
    const struct text_options how = {.stream = stream};
    const struct report_options o = {.no_timing = true, .quiet = true};
    struct text *t = text_open(&how, &o, &run, &arena);
    unsigned long total = 0;
    int lines = 0;

    for (int i = 0; i < 300; i++) {
        struct record r = record_of(VERDICT_SKIP);

        (void)snprintf(r.reason, sizeof r.reason, "reason %d", i % 150);
        text_row(t, &r);
    }
    ck_assert_int_eq(text_close(t, VERDICT_INFRA, true, &errs), ERR_NONE);
    for (const char *p = strstr(text, "skipped "); p; p = strstr(p + 1, "skipped ")) {
        total += strtoul(p + 8, NULL, 10);
        lines++;
    }
    ck_assert_uint_eq(total, 300);
    ck_assert_int_eq(lines, 64);
    ck_assert_ptr_nonnull(strstr(text, ": other reasons\n"));
}
END_TEST

START_TEST(failed_write_is_an_error)
{
    FILE *full = fopen("/dev/full", "w");
    const struct text_options how = {.stream = full};
    const struct report_options o = {.no_timing = true};
    struct text *t;

    ck_assert_ptr_nonnull(full);
    t = text_open(&how, &o, &run, &arena);
    ck_assert_int_eq(text_close(t, VERDICT_PASS, true, &errs), ERR_IO);
    ck_assert_uint_eq(errs.count, 1);
    (void)fclose(full);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("text");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, escaping, 0, (int)(sizeof escapes / sizeof escapes[0]));
    tcase_add_loop_test(tc, hidden_characters, 0, (int)(sizeof hidden / sizeof hidden[0]));
    tcase_add_test(tc, escaping_never_outgrows);
    tcase_add_test(tc, escaping_cuts_whole);
    tcase_add_test(tc, columns_are_aligned);
    tcase_add_loop_test(tc, progress_line, 0, (int)(sizeof progress / sizeof progress[0]));
    tcase_add_loop_test(tc, whole_report, 0, (int)(sizeof reports / sizeof reports[0]));
    tcase_add_loop_test(tc, changes_are_told, 0, 2);
    tcase_add_test(tc, colour_only_of_verdicts);
    tcase_add_test(tc, timing_is_told);
    tcase_add_test(tc, reasons_are_bounded);
    tcase_add_test(tc, failed_write_is_an_error);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
