/* The order of risk: what earlier runs, changed files and coverage put first; and the table of
 * what source files touch. */
#include "harness/cli/history.h"
#include "harness/kernel/risk.h"
#include "harness/test/made_table.h"
#include "harness/test/plan_world.h"
#include "harness/test/run_suite.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct world w;

static void set_up(void)
{
    world_open(&w);
}

static void tear_down(void)
{
    (void)unlink(made_path);
    (void)unlink("old.jsonl");
    (void)unlink("new.jsonl");
    world_close(&w);
}

static void plan_of(const char *entry)
{
    struct suite *s = add_suite(&w, "s");

    (void)add_entry(&w, s, "e", entry);
    must_make(&w);
}

static struct risk_order order_of(const struct risk_past *past, const struct touched *touched)
{
    const struct risk_in in = {&w.plan, past, touched};
    struct risk_order out;

    ck_assert_int_eq((int)risk_make(&in, &w.arena, &out, &w.errs), (int)ERR_NONE);
    return out;
}

static const int64_t *first_case(const struct risk_order *o, size_t i)
{
    return w.plan.cases[w.plan.problems[o->problems[i]].first].v;
}

static void must_be_permutation(const struct risk_order *o)
{
    bool *there = ARENA_NEW(&w.arena, w.plan.problem_count, bool);
    size_t sum = 0;

    for (size_t i = 0; i < w.plan.problem_count; i++) {
        ck_assert_uint_lt(o->problems[i], w.plan.problem_count);
        ck_assert(!there[o->problems[i]]);
        there[o->problems[i]] = true;
    }
    for (int i = 0; i < RISK_COUNT; i++)
        sum += o->counts[i];
    ck_assert_uint_eq(sum, w.plan.problem_count);
}

/* ---- coverage -------------------------------------------------------------------------------- */

static bool varies(int x)
{
    bool found = false;

    for (size_t i = 1; i < w.plan.count && !found; i++)
        found = w.plan.cases[i].v[x] != w.plan.cases[0].v[x];
    return found && x != AX_SEED;
}

/* Has a problem that ran, or an earlier case of this one, the pair? By plain search. */
static bool is_seen(const bool *ran, const struct plan_problem *p, size_t c, int x, int y)
{
    const int64_t *v = w.plan.cases[c].v;
    bool seen = false;

    for (size_t i = 0; i < w.plan.count && !seen; i++) {
        const int64_t *u = w.plan.cases[i].v;
        bool earlier = i >= p->first && i < c;

        seen = u[x] == v[x] && u[y] == v[y] && (ran[w.plan.cases[i].problem] || earlier);
    }
    return seen;
}

/* An oracle for the numbers of risk_pairs.c. */
static size_t new_pairs(const bool *ran, const struct plan_problem *p)
{
    size_t fresh = 0;

    for (int x = 0; x < AX_COUNT; x++)
        for (int y = x + 1; y < AX_COUNT && varies(x); y++)
            for (size_t c = p->first; c < p->first + p->count && varies(y); c++)
                fresh += !is_seen(ran, p, c, x, y);
    return fresh;
}

static double score_of(const bool *ran, size_t problem)
{
    const struct plan_problem *p = &w.plan.problems[problem];
    double work = 0;

    for (size_t c = p->first; c < p->first + p->count; c++)
        work += 1e6 + (double)w.plan.cases[c].v[AX_M] * (double)w.plan.cases[c].v[AX_N] *
                          (double)w.plan.cases[c].v[AX_K];
    return (double)new_pairs(ran, p) / work;
}

/* Each choice is as good as any that was left: pairs for a second, at the pace of m n k. */
START_TEST(greedy_choice_is_the_best)
{
    struct risk_order o;
    bool *ran;

    plan_of("a_dtype=f16|bf16 b_dtype=uint4|e2m1 k=512|2048 has_bias=false|true "
            "weight_scale_type=channel|group m=1|16 n=64|128");
    o = order_of(NULL, NULL);
    must_be_permutation(&o);
    ran = ARENA_NEW(&w.arena, w.plan.problem_count, bool);
    for (size_t i = 0; i < 12; i++) {
        double best = 0, chosen = score_of(ran, o.problems[i]);

        for (size_t q = 0; q < w.plan.problem_count; q++)
            best = fmax(best, ran[q] ? 0 : score_of(ran, q));
        ck_assert_msg(chosen >= best * (1 - 1e-12), "choice %zu: %g, best %g", i, chosen, best);
        ran[o.problems[i]] = true;
    }
}
END_TEST

START_TEST(equal_input_equal_order)
{
    struct risk_order a, b;

    plan_of("a_dtype=f16|bf16 b_dtype=uint4|e2m1|uint8|uint3|uint5 k=512|1024|2048 "
            "has_bias=false|true weight_scale_type=channel|group n=64|128|192 "
            "m=1|2|3|4|5|6|7|8|9|10");
    a = order_of(NULL, NULL);
    b = order_of(NULL, NULL);
    must_be_permutation(&a);
    ck_assert(!memcmp(a.problems, b.problems, w.plan.problem_count * sizeof *a.problems));
    ck_assert_uint_eq(a.counts[RISK_COVERAGE], w.plan.problem_count);
    ck_assert(a.seconds > 0);
}
END_TEST

/* More than 64 values of m: only their magnitude counts, and nothing breaks. */
START_TEST(many_values)
{
    char m[4096] = "a_dtype=f16|bf16 b_dtype=uint4 gemm_type=indexed num_experts=4 k=512 n=64 m=1";
    struct risk_order o;
    size_t used = strlen(m);

    for (int i = 2; i <= 200; i++)
        used += (size_t)snprintf(m + used, sizeof m - used, "|%d", i);
    plan_of(m);
    o = order_of(NULL, NULL);
    must_be_permutation(&o);
    ck_assert_uint_eq(w.plan.problem_count, 400);
}
END_TEST

/* ---- what failed, what was changed ----------------------------------------------------------- */

START_TEST(past_failures_come_first)
{
    struct risk_past *past;
    struct risk_order o;
    size_t last;

    plan_of("k=512|1024|1536|2048|2560|3072");
    ck_assert_uint_eq(w.plan.problem_count, 6);
    past = ARENA_NEW(&w.arena, w.plan.count, struct risk_past);
    past[5].failed = 1;
    past[4].failed = 2;
    past[2].failed = 2;
    o = order_of(past, NULL);
    must_be_permutation(&o);
    ck_assert_uint_eq(o.problems[0], 5);
    ck_assert_uint_eq(o.problems[1], 2);
    ck_assert_uint_eq(o.problems[2], 4);
    ck_assert_uint_eq(o.counts[RISK_PAST], 3);
    last = o.problems[5];
    ck_assert_uint_eq(last, 3); /* of those without a past, the dearest adds as many pairs */
}
END_TEST

/* A problem that is timed counts with its seconds, the others at the same pace. */
START_TEST(timings_decide_what_is_cheap)
{
    struct risk_past *past;
    struct risk_order o;

    plan_of("k=512|1024|1536");
    o = order_of(NULL, NULL);
    ck_assert_int_eq((int)first_case(&o, 0)[AX_K], 512);
    past = ARENA_NEW(&w.arena, w.plan.count, struct risk_past);
    past[0].seconds = 3;
    past[1].seconds = 1e-3;
    o = order_of(past, NULL);
    ck_assert_int_eq((int)first_case(&o, 0)[AX_K], 1024);
    ck_assert_int_eq((int)first_case(&o, 1)[AX_K], 1536);
    ck_assert(o.seconds > 3.001 && o.seconds < 6);
}
END_TEST

static const char touches_text[] = "touches:\n"
                                   "  - {file: src/none.c, where: none, reason: r}\n"
                                   "  - {file: \"src/b*.c\", where: b_dtype == uint8, reason: r}\n"
                                   "  - {file: \"src/*\", where: all, reason: r}\n";

/* clang-format off */
static const struct {
    const char *files[3];
    bool uint4, uint8;
    size_t unnamed;
} changes[] = {
    {{"src/none.c"}, false, false, 0},
    {{"src/b1.c"}, false, true, 0},
    {{"/home/me/src/b1.c"}, false, true, 0},
    {{"mysrc/b1.c"}, true, true, 1},
    {{"src/deep/x.c"}, true, true, 0},
    {{"other/x.c"}, true, true, 1},
    {{"src/none.c", "src/b2.c"}, false, true, 0},
    {{"src/none.c", "src/b2.c", "README"}, true, true, 1},
    {{NULL}, false, false, 0},
};
/* clang-format on */

static struct touched touched_by(const char *table, const char *const *files, size_t count)
{
    struct touches rows;
    struct touched touched = {0};

    ck_assert_int_eq((int)touches_load(table, &w.arena, &rows, &w.errs), (int)ERR_NONE);
    ck_assert_int_eq((int)touches_pick(&rows, files, count, &w.arena, &touched, &w.errs),
                     (int)ERR_NONE);
    return touched;
}

START_TEST(what_a_change_touches)
{
    struct touched touched;
    int64_t v[AX_COUNT];
    size_t count = 0;

    made_table(touches_text);
    while (count < 3 && changes[_i].files[count])
        count++;
    touched = touched_by(made_path, changes[_i].files, count);
    case_defaults(v);
    case_set(v, "b_dtype=uint4");
    ck_assert_int_eq(touches_case(&touched, v), changes[_i].uint4);
    case_set(v, "b_dtype=uint8");
    ck_assert_int_eq(touches_case(&touched, v), changes[_i].uint8);
    ck_assert_uint_eq(touched.unnamed_count, changes[_i].unnamed);
}
END_TEST

START_TEST(touched_come_before_coverage)
{
    static const char *const files[] = {"src/b.c"};
    const int64_t uint8 = case_value(AX_B, "uint8");
    struct risk_past *past;
    struct touched touched;
    struct risk_order o;

    made_table(touches_text);
    touched = touched_by(made_path, files, 1);
    plan_of("k=512|1024|2048 b_dtype=uint4|uint8|e2m1");
    past = ARENA_NEW(&w.arena, w.plan.count, struct risk_past);
    past[w.plan.count - 1].failed = 1;
    o = order_of(past, &touched);
    must_be_permutation(&o);
    ck_assert_uint_eq(o.counts[RISK_PAST], 1);
    ck_assert_uint_eq(o.counts[RISK_TOUCHED], 3);
    ck_assert_uint_eq(o.problems[0], w.plan.count - 1);
    for (size_t i = 1; i < 9; i++)
        ck_assert_int_eq(first_case(&o, i)[AX_B] == uint8, i < 4);
}
END_TEST

/* clang-format off */
static const struct {
    const char *text, *errors;
} wrong[] = {
    {"", "0:0: the file is empty\n"},
    {"touches:\n  - {file: f, where: all}\n", "2:5: reason: expected a text\n"},
    {"touches:\n  - {fiel: f, where: all, reason: r}\n",
     "2:6: unknown key 'fiel': a row has file, where and reason; did you mean 'file'?\n2:5: file: expected a text\n"},
    {"touches:\n  - {file: f, where: al, reason: r}\n", "2:22: where: unknown axis 'al'\n"},
    {"touches:\n  - {file: f, where: m <, reason: r}\n  - {file: f, where: famly == pack, reason: r}\n",
     "2:25: where: expected an axis or a number, but the condition ends\n3:22: where: unknown axis 'famly'; did you mean 'family'?\n"},
    {"touches:\n  - {file: f, where: m < 3, reason: r, file: g}\n",
     "2:40: 'file' is given twice; first at line 2\n"},
};
/* clang-format on */

START_TEST(wrong_tables)
{
    struct touches table;
    char text[1000];

    made_table(wrong[_i].text);
    ck_assert_int_eq((int)touches_load(made_path, &w.arena, &table, &w.errs), (int)ERR_CONFIG);
    ck_assert_str_eq(made_errors(&w.errs, text, sizeof text), wrong[_i].errors);
}
END_TEST

/* The table of this repository. */
static const char own[] = SUITES "/touches.yaml";

static const struct {
    const char *file, *axes;
    bool touched;
} own_rows[] = {
    {"kernels/cpu/op_pack.c", "family=pack", true},
    {"kernels/cpu/op_pack.c", "family=gemm", false},
    {"kernels/cpu/forward.c", "family=pack", false},
    {"kernels/cpu/forward.c", "family=gemm", true},
    {"kernels/cpu/routing.c", "gemm_type=dense", false},
    {"kernels/cpu/routing.c", "gemm_type=indexed", true},
    {"h19/humming/include/humming/kernel/quant_weight.cuh", "family=quant_weight", true},
    {"h19/humming/include/humming/kernel/quant_weight.cuh", "family=hadamard", false},
    {"humming/include/humming/mma/wgmma.cuh", "mma_type=wgmma", true},
    {"humming/include/humming/mma/wgmma.cuh", "mma_type=mma", false},
    {"humming/include/humming/utils/base.cuh", "family=pack", true},
    {"humming/tune/sm90.py", "tuning=axes", false},
    {"humming/tune/sm90.py", "tuning=provider", true},
    {"humming/tune/__init__.py", "tuning=provider", false}};

START_TEST(own_table)
{
    struct touched touched = touched_by(own, &own_rows[_i].file, 1);
    int64_t v[AX_COUNT];

    ck_assert_uint_eq(touched.unnamed_count, 0);
    case_defaults(v);
    case_set(v, own_rows[_i].axes);
    ck_assert_int_eq(touches_case(&touched, v), own_rows[_i].touched);
}
END_TEST

static const char *const folders[] = {"kernels/cpu", "kernels/humming", "kernels/abi"};

/* Each source file of a provider has a row. */
START_TEST(own_files_are_named)
{
    DIR *d = opendir(arena_printf(&w.arena, SUITES "/../%s", folders[_i]));
    const struct dirent *e;
    size_t seen = 0;

    ck_assert_ptr_nonnull(d);
    while ((e = readdir(d)) != NULL) {
        const char *file = arena_printf(&w.arena, "%s/%s", folders[_i], e->d_name);

        if (e->d_name[0] == '.' || e->d_name[0] == '_')
            continue;
        ck_assert_msg(!touched_by(own, &file, 1).unnamed_count, "%s", file);
        seen++;
    }
    (void)closedir(d);
    ck_assert_uint_ge(seen, 2);
}
END_TEST

/* ---- history --------------------------------------------------------------------------------- */

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

START_TEST(records_of_two_runs)
{
    const char *names[] = {"new.jsonl", "old.jsonl"};
    const struct option_list files = {names, 2};
    const struct risk_past *past;

    plan_of("k=512|1024|1536|2048|2560");
    write_file("new.jsonl", "{\"case\":\"s/e/k=512\",\"verdict\":\"pass\",\"fill_us\":1e6,"
                            "\"kernel_us\":5e5}\n"
                            "{\"case\":\"s/e/k=1024\",\"verdict\":\"fail\"}\n"
                            "{\"case\":\"t/other\",\"verdict\":\"fail\"}\n"
                            "{\"case\":\"s/e/k=2560\",\"verdict\":\"skip\"}\n");
    write_file("old.jsonl", "{\"case\":\"s/e/k=512\",\"verdict\":\"infra\",\"fill_us\":9e6}\n"
                            "{\"case\":\"s/e/k=1024\",\"verdict\":\"untrusted\",\"fill_us\":2e6}\n"
                            "{\"case\":\"s/e/k=1536\",\"verdict\":\"untrusted\"}\n");
    ck_assert_int_eq((int)history_read(&files, &w.plan, &w.arena, &past, &w.errs), (int)ERR_NONE);
    ck_assert_uint_eq(past[0].failed, 2);
    ck_assert_uint_eq(past[1].failed, 1);
    ck_assert_uint_eq(past[2].failed, 2);
    ck_assert_uint_eq(past[3].failed, 0);
    ck_assert_uint_eq(past[4].failed, 0);
    ck_assert_double_eq_tol(past[0].seconds, 1.5, 1e-12);
    ck_assert_double_eq_tol(past[1].seconds, 2, 1e-12);
    ck_assert(!(past[2].seconds > 0));
}
END_TEST

/* clang-format off */
static const char *const no_records[] = {
    "{\"case\":\"s/e/k=512\"}\n", "{\"verdict\":\"pass\"}\n", "[]\n", "\n", "x\n",
    "{\"case\":\"s/e/k=512\",\"verdict\":\"passed\"}\n", "{\"case\":1,\"verdict\":\"pass\"}\n",
    "{\"case\":\"s/e/k=512\",\"verdict\":\"pass\"}\n{\"case\":\"s/e",
};
/* clang-format on */

START_TEST(lines_that_are_no_records)
{
    const char *names[] = {"new.jsonl"};
    const struct option_list files = {names, 1};
    const struct risk_past *past;

    plan_of("k=512|1024");
    write_file("new.jsonl", no_records[_i]);
    ck_assert_int_eq((int)history_read(&files, &w.plan, &w.arena, &past, &w.errs), (int)ERR_CONFIG);
    ck_assert_uint_eq(w.errs.count, 1);
}
END_TEST

START_TEST(files_that_are_not_there)
{
    const char *names[] = {"no-such.jsonl"};
    const struct option_list files = {names, 1}, none = {0};
    const struct risk_past *past;

    plan_of("k=512|1024");
    ck_assert_int_eq((int)history_read(&none, &w.plan, &w.arena, &past, &w.errs), (int)ERR_NONE);
    ck_assert_ptr_null(past);
    ck_assert_int_eq((int)history_read(&files, &w.plan, &w.arena, &past, &w.errs), (int)ERR_IO);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("all");

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, greedy_choice_is_the_best);
    tcase_add_test(tc, equal_input_equal_order);
    tcase_add_test(tc, many_values);
    tcase_add_test(tc, past_failures_come_first);
    tcase_add_test(tc, timings_decide_what_is_cheap);
    tcase_add_loop_test(tc, what_a_change_touches, 0, (int)(sizeof changes / sizeof changes[0]));
    tcase_add_test(tc, touched_come_before_coverage);
    tcase_add_loop_test(tc, wrong_tables, 0, (int)(sizeof wrong / sizeof wrong[0]));
    tcase_add_loop_test(tc, own_table, 0, (int)(sizeof own_rows / sizeof own_rows[0]));
    tcase_add_loop_test(tc, own_files_are_named, 0, 3);
    tcase_add_test(tc, records_of_two_runs);
    tcase_add_loop_test(tc, lines_that_are_no_records, 0,
                        (int)(sizeof no_records / sizeof no_records[0]));
    tcase_add_test(tc, files_that_are_not_there);
    return run_suite("risk", tc);
}
