/* Known faults: what the table refuses, what a row marks, and that suites/known.yaml explains the
 * fails of the records in results/h200 and nothing else. */
#include "harness/cli/json_lines.h"
#include "harness/cli/known_run.h"
#include "harness/kernel/support.h"
#include "harness/test/case_text.h"
#include "harness/test/made_table.h"
#include "harness/test/run_suite.h"

#include <check.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROW                                                                              \
    "known:\n  - provider: \"p 1\"\n    case: s/*\n    finding: https://example.org/1\n" \
    "    first_seen: 2024-02-29\n    last_seen: 2024-02-29\n    reason: r\n"

static struct arena arena;
static struct errs errs;

static void set_up(void)
{
    ck_assert(arena_init(&arena, (size_t)1 << 30));
    errs = (struct errs){0};
}

static void tear_down(void)
{
    (void)unlink(made_path);
    errs_free(&errs);
    arena_free(&arena);
}

/* ---- loading --------------------------------------------------------------------------------- */

/* clang-format off */
static const struct {
    const char *text, *errors;
} wrong[] = {
    {"", "0:0: the file is empty\n"},
    {"support: []\n", "1:1: expected one key, 'known', with a list of rows\n"},
    {"known: {}\n", "1:1: expected one key, 'known', with a list of rows\n"},
    {"known: []\nmore: 1\n", "1:1: expected one key, 'known', with a list of rows\n"},
    {"known: [1]\n",
     "1:9: expected a map of provider, device, case, where, says, verdict, finding, first_seen, last_seen and reason\n"},
    {ROW "    prvider: x\n",
     "8:5: unknown key 'prvider': a row has provider, device, case, where, says, verdict, finding, first_seen, last_seen and reason; did you mean 'provider'?\n"},
    {ROW "    verdict: fial\n", "8:14: verdict: expected fail or varies, got 'fial'; did you mean 'fail'?\n"},
    {ROW "    verdict: pass\n", "8:14: verdict: expected fail or varies, got 'pass'\n"},
    {ROW "    where: chek == exact\n", "8:12: where: unknown axis 'chek'; did you mean 'check'?\n"},
    {ROW "    device: []\n", "8:13: device: expected a text\n"},
    {"known:\n  - provider: p\n    finding: https://x\n    first_seen: 2026-11-30\n    last_seen: 2026-11-30\n    reason: r\n",
     "2:5: a row needs case, where or both, or it would be about every case\n"},
    {"known:\n  - case: c\n",
     "2:5: provider: expected a text\n2:5: finding: expected a text\n2:5: first_seen: expected a text\n"
     "2:5: last_seen: expected a text\n2:5: reason: expected a text\n"},
    {"known:\n  - provider: p\n    case: c\n    finding: nowhere.md\n    first_seen: 2026-02-29\n    last_seen: yesterday\n    reason: r\n",
     "5:17: first_seen: expected a day as 2026-11-30, got '2026-02-29'\n"
     "6:16: last_seen: expected a day as 2026-11-30, got 'yesterday'\n"
     "4:14: finding: there is no file 'nowhere.md'\n"},
    {"known:\n  - provider: p\n    case: c\n    finding: https://x\n    first_seen: 2026-12-01\n    last_seen: 2026-11-30\n    reason: r\n",
     "6:16: last_seen is before first_seen\n"},
    {"known:\n  - provider: p\n    case: c\n    finding: \"https://x/0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123\"\n"
     "    first_seen: 2026-11-30\n    last_seen: 2026-11-30\n    reason: r\n",
     "4:15: finding: expected at most 127 bytes\n"},
};

static const struct {
    const char *date;
    bool good;
} dates[] = {
    {"2026-11-30", true},  {"2024-02-29", true},  {"2000-02-29", true},  {"1900-02-29", false},
    {"2023-02-29", false}, {"2026-13-01", false}, {"2026-00-01", false}, {"2026-01-00", false},
    {"2026-04-31", false}, {"2026-01-31", true},  {"2026-1-1", false},   {"2026-01-011", false},
    {"2026/01/01", false}, {"20260101", false},   {"2026-01-3x", false},
};
/* clang-format on */

START_TEST(wrong_tables)
{
    struct known known;
    char text[2000];

    made_table(wrong[_i].text);
    ck_assert_int_eq((int)known_load(made_path, &arena, &known, &errs), (int)ERR_CONFIG);
    ck_assert_str_eq(made_errors(&errs, text, sizeof text), wrong[_i].errors);
}
END_TEST

START_TEST(days)
{
    struct known known;

    made_table(arena_printf(&arena,
                            "known:\n  - {provider: p, case: c, finding: \"https://x\", "
                            "first_seen: \"%s\", last_seen: \"9999-12-31\", reason: r}\n",
                            dates[_i].date));
    ck_assert_int_eq(known_load(made_path, &arena, &known, &errs) == ERR_NONE, dates[_i].good);
}
END_TEST

START_TEST(files)
{
    struct known known;

    ck_assert_int_eq((int)known_load(NULL, &arena, &known, &errs), (int)ERR_NONE);
    ck_assert_uint_eq(known.count, 0);
    ck_assert_int_eq((int)known_load("no-such.yaml", &arena, &known, &errs), (int)ERR_CONFIG);
    ck_assert_str_eq(errs.items[0].text,
                     "the table of known faults cannot be read: No such file or directory");
}
END_TEST

/* ---- marking --------------------------------------------------------------------------------- */

/* clang-format off */
static const struct {
    const char *row; /* what it has beside ROW */
    const char *provider, *device, *id, *axes, *reason;
    enum verdict verdict;
    bool marked;
} marks[] = {
    {"", "p 1", "d", "s/e", "", "x", VERDICT_FAIL, true},
    {"", "p 1", "d", "s/e", "", "", VERDICT_PASS, true},
    {"", "p 1", "d", "s/e", "", "x", VERDICT_SKIP, false},
    {"", "p 1", "d", "s/e", "", "x", VERDICT_INFRA, false},
    {"", "p 1", "d", "s/e", "", "x", VERDICT_UNTRUSTED, false},
    {"", "p 10", "d", "s/e", "", "x", VERDICT_FAIL, false},
    {"", "p 1", "d", "t/e", "", "x", VERDICT_FAIL, false},
    {"    device: \"*H200*\"\n", "p 1", "NVIDIA H200", "s/e", "", "x", VERDICT_FAIL, true},
    {"    device: \"*H200*\"\n", "p 1", "NVIDIA H100", "s/e", "", "x", VERDICT_FAIL, false},
    {"    where: m == 7\n", "p 1", "d", "s/e", "m=7", "x", VERDICT_FAIL, true},
    {"    where: m == 7\n", "p 1", "d", "s/e", "m=8", "x", VERDICT_FAIL, false},
    {"    where: m == 7\n", "p 1", "d", "s/e", "m=8", "", VERDICT_PASS, false},
    {"    says: \"*crashed*\"\n", "p 1", "d", "s/e", "", "it crashed again", VERDICT_FAIL, true},
    {"    says: \"*crashed*\"\n", "p 1", "d", "s/e", "", "wrong bits", VERDICT_FAIL, false},
    {"    says: \"*crashed*\"\n", "p 1", "d", "s/e", "", "", VERDICT_PASS, true},
    {"    verdict: varies\n", "p 1", "d", "s/e", "", "x", VERDICT_FAIL, true},
    {"    verdict: varies\n", "p 1", "d", "s/e", "", "", VERDICT_PASS, false},
};
/* clang-format on */

static struct known load_made(const char *text)
{
    struct known known;

    made_table(text);
    ck_assert_int_eq((int)known_load(made_path, &arena, &known, &errs), (int)ERR_NONE);
    return known;
}

START_TEST(what_is_marked)
{
    struct known known = load_made(arena_printf(&arena, "%s%s", ROW, marks[_i].row));
    struct record r = {.verdict = marks[_i].verdict};
    int64_t v[AX_COUNT];

    case_defaults(v);
    case_set(v, marks[_i].axes);
    (void)snprintf(r.reason, sizeof r.reason, "%s", marks[_i].reason);
    known_mark(known_find(&known, marks[_i].provider, marks[_i].device, marks[_i].id, v), &r);
    ck_assert_str_eq(r.known, marks[_i].marked ? "https://example.org/1" : "");
    ck_assert_int_eq((int)r.verdict, (int)marks[_i].verdict);
}
END_TEST

START_TEST(first_row_counts)
{
    struct known known = load_made(arena_printf(&arena, "%s%s", ROW, strchr(ROW, '\n') + 1));
    int64_t v[AX_COUNT];

    case_defaults(v);
    ck_assert_uint_eq(known.count, 2);
    ck_assert_ptr_eq(known_find(&known, "p 1", "d", "s/e", v), &known.rows[0]);
    ck_assert_int_eq(known.rows[1].line, 8);
    ck_assert_ptr_null(known_find(&known, "p 2", "d", "s/e", v));
}
END_TEST

/* ---- the records in results/h200 ------------------------------------------------------------- */

/* Fails that are no faults of these versions, as results/h200/README.md says. */
static const struct {
    const char *provider, *id, *says, *why;
} differences[] = {
    {"humming 0.1.*", "upstream/block-scales/a_dtype=bf16,check=bound", "*",
     "block scales are rounded to 16 bits"},
    {"humming 0.1.*", "upstream-ops/quantize/*zero_point=none*use_e8m0_scale=true,check=exact", "*",
     "quantizers of weights: reciprocals"},
    {"humming 0.1.*", "upstream-ops/quantize/*use_e8m0_scale=false,check=exact", "*",
     "quantizers of weights: reciprocals"},
    {"humming 0.1.*", "upstream-ops/quantize-every-input/b_dtype=int[48],*", "*",
     "integers without scale are two's complement"},
    {"humming 0.1.12", "upstream-ops/inputs/*check=exact", "*differ from what is right",
     "quantizers of activations: reciprocals"},
    {"humming 0.1.12", "upstream-ops/sums/*", "*differ from what is right",
     "sums by fused multiply-add"},
    {"humming 0.1.*", "upstream/w4a8/*check=model", "*differ from the predicted code",
     "the prediction of that day lacked the late power of two of small f16 outputs"},
    {"humming 0.1.*", "upstream/f16-accumulation/*check=model", "*differ from the predicted code",
     "the same, and the order in which four K-warps are added"},
    {"humming 0.1.19", "upstream/*check=locks", "*the code is not HUM_INVALID",
     "refused, under a code that the worker of that day took for unsupported"},
    {"humming 0.1.12", "upstream-ops/sums/top_k=8,m=1,*", "*PythonDispatcher*",
     "refused before it was computed; what is left of the sentence does not say why"},
};
enum { DIFFERENCES = sizeof differences / sizeof differences[0] };

static const char *const versions[] = {"0.1.12", "0.1.19"};
static const char *const suites[] = {"upstream",           "upstream-ops",   "upstream-tuning",
                                     "upstream-matrix",    "upstream-model", "upstream-semantics",
                                     "upstream-candidates"};
enum { SUITES_COUNT = sizeof suites / sizeof suites[0] };

struct replay {
    struct plan plan;
    struct known_run known;
    struct support support;
    size_t row_uses[64], difference_uses[DIFFERENCES];
    size_t records, missing, unexplained, passing;
    char last[RECORD_ID + RECORD_TEXT + 16]; /* of the two before */
    const char *device;
};

static bool is_difference(struct replay *p, const struct record *r)
{
    for (size_t i = 0; i < DIFFERENCES; i++)
        if (!fnmatch(differences[i].provider, r->provider, 0) &&
            !fnmatch(differences[i].id, r->id, 0) && !fnmatch(differences[i].says, r->reason, 0)) {
            p->difference_uses[i]++;
            return true;
        }
    return false;
}

static const struct plan_case *case_of(const struct plan *plan, const char *id)
{
    for (size_t i = 0; i < plan->count; i++)
        if (!strcmp(plan->cases[i].id, id))
            return &plan->cases[i];
    return NULL;
}

static void text_into(char *to, size_t size, const struct json *record, const char *key)
{
    const char *text = json_text(json_get(record, key));

    ck_assert_msg(text && strlen(text) < size, "%s", key);
    (void)snprintf(to, size, "%s", text);
}

/* A fail for a skip that no table listed then may be listed now. */
static void judge_skip(struct replay *p, const int64_t *v, struct record *r)
{
    static const char unlisted[] = "a skip that the support table does not list: ";

    if (strncmp(r->reason, unlisted, sizeof unlisted - 1) != 0)
        return;
    memmove(r->reason, r->reason + sizeof unlisted - 1, strlen(r->reason) + 2 - sizeof unlisted);
    r->verdict = VERDICT_SKIP;
    support_apply(&p->support, v, r);
}

static enum err_code replay_line(void *context, const struct json *json, struct place at,
                                 struct errs *e)
{
    struct replay *p = context;
    struct record r = {.verdict = VERDICT_COUNT};
    const struct plan_case *c;
    const struct known_row *row;

    (void)at;
    (void)e;
    text_into(r.id, sizeof r.id, json, "case");
    text_into(r.provider, sizeof r.provider, json, "provider");
    text_into(r.reason, sizeof r.reason, json, "reason");
    for (int i = 0; i < VERDICT_COUNT; i++)
        if (!strcmp(json_text(json_get(json, "verdict")), verdict_name((enum verdict)i)))
            r.verdict = (enum verdict)i;
    p->records++;
    c = case_of(&p->plan, r.id);
    if (!c) { /* the suite has changed since */
        p->missing++;
        return ERR_NONE;
    }
    judge_skip(p, c->v, &r);
    row = known_find(&p->known.table, r.provider, p->device, r.id, c->v);
    known_mark(row, &r);
    p->passing += record_known_passes(&r);
    if (record_known_fails(&r)) {
        p->row_uses[row - p->known.table.rows]++;
    } else if (r.verdict == VERDICT_FAIL && !is_difference(p, &r)) {
        p->unexplained++;
        (void)snprintf(p->last, sizeof p->last, "%s: %s", r.id, r.reason);
    } else if (record_known_passes(&r)) {
        (void)snprintf(p->last, sizeof p->last, "%s: passes", r.id);
    }
    return ERR_NONE;
}

static void replay_suite(struct replay *p, const char *suite)
{
    const struct plan_options how = {.shard = 1, .shards = 1};
    struct suite *loaded = ARENA_NEW(&arena, 1, struct suite);

    ck_assert_int_eq(
        (int)suite_load(arena_printf(&arena, SUITES "/%s.yaml", suite), &arena, loaded, &errs),
        (int)ERR_NONE);
    ck_assert_int_eq((int)plan_make(loaded, 1, &how, &arena, &p->plan, &errs), (int)ERR_NONE);
    for (size_t i = 0; i < 2; i++) {
        const struct json_lines lines = {
            arena_printf(&arena, RECORDS "/%s-%s.jsonl", suite, versions[i]), &arena, replay_line,
            p};

        ck_assert_int_eq((int)json_lines_read(&lines, &errs), (int)ERR_NONE);
    }
}

static void replay_all(struct replay *p, const char *device)
{
    *p = (struct replay){.device = device};
    ck_assert_int_eq((int)known_load(SUITES "/known.yaml", &arena, &p->known.table, &errs),
                     (int)ERR_NONE);
    ck_assert_int_eq((int)support_load(SUITES "/upstream-support.yaml", &arena, &p->support, &errs),
                     (int)ERR_NONE);
    for (size_t i = 0; i < SUITES_COUNT; i++)
        replay_suite(p, suites[i]);
}

/* Every fail has its row or its difference, every row and every difference has its fail, and no
 * row is about a case that passes. */
START_TEST(records_are_explained)
{
    static struct replay p;

    replay_all(&p, "NVIDIA H200");
    ck_assert_uint_ge(p.records, 900);
    ck_assert_uint_le(p.missing, p.records / 10);
    ck_assert_msg(!p.unexplained && !p.passing, "%s", p.last);
    for (size_t i = 0; i < p.known.table.count; i++)
        ck_assert_msg(p.row_uses[i] > 0, "line %d explains nothing", p.known.table.rows[i].line);
    for (size_t i = 0; i < DIFFERENCES; i++)
        ck_assert_msg(p.difference_uses[i] > 0, "no fail for: %s", differences[i].why);
}
END_TEST

/* The same records of another device: rows of this one explain nothing there. */
START_TEST(another_device_is_not_explained)
{
    static struct replay p;

    replay_all(&p, "NVIDIA B200");
    ck_assert_uint_gt(p.unexplained, 20);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("all");

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, wrong_tables, 0, (int)(sizeof wrong / sizeof wrong[0]));
    tcase_add_loop_test(tc, days, 0, (int)(sizeof dates / sizeof dates[0]));
    tcase_add_test(tc, files);
    tcase_add_loop_test(tc, what_is_marked, 0, (int)(sizeof marks / sizeof marks[0]));
    tcase_add_test(tc, first_row_counts);
    tcase_add_test(tc, records_are_explained);
    tcase_add_test(tc, another_device_is_not_explained);
    return run_suite("known", tc);
}
