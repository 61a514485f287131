#include "harness/config/axes.h"
#include "harness/kernel/semantics.h"
#include "harness/test/case_run.h"
#include "kernels/test/rule_provider.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- a provider that computes by a rule: only that rule makes it right ----------------------- */

/* clang-format off */
static const struct {
    enum semantics_rule rule;
    const char *cases[4];
} shows[] = {
    {SEMANTICS_BLOCK_ON_OPERAND,
     {"a_dtype=bf16 b_dtype=uint4 weight_scale_type=block check=bound m=17 n=128",
      "a_dtype=bf16 b_dtype=uint4 weight_scale_type=block check=model m=17 n=128",
      "a_dtype=f16 b_dtype=float8e4m3 weight_scale_type=block check=bound m=17 n=128"}},
    {SEMANTICS_ZERO_ON_MINIMUM,
     {"family=quant_weight b_dtype=uint4 input_dtype=f16 zero_point=int weight_scale_group_size=32 "
      "m=64 k=512 check=exact",
      "family=quant_weight b_dtype=int8 input_dtype=f16 zero_point=float m=128 k=512 check=exact"}},
    {SEMANTICS_SIDES_BY_SIZE,
     {"family=quant_weight b_dtype=uint4 input_dtype=f32 use_e8m0_scale=true m=64 k=384 check=exact",
      "family=quant_weight b_dtype=int8 input_dtype=f32 allow_negative_scale=false m=16 k=384 "
      "check=exact",
      "family=quant_weight b_dtype=uint1 input_dtype=f32 m=64 k=384 check=exact"}},
    {SEMANTICS_SCALED_QUOTIENT,
     {"family=quant_weight b_dtype=e2m3 input_dtype=f32 use_e8m0_scale=true "
      "weight_scale_group_size=128 m=64 k=384 check=exact"}},
    {SEMANTICS_TWOS_COMPLEMENT,
     {"family=quant_weight b_dtype=int4 input_dtype=f16 has_scale=false m=256 k=256 check=exhaustive",
      "family=quant_weight b_dtype=int8 input_dtype=f32 m=16 k=256 check=exact"}},
    {SEMANTICS_EXTREMES_BY_SIDE,
     {"family=process_input input_dtype=f16 quant_dtype=int8 input_quant_mode=dynamic_token m=16 "
      "k=256 check=exact",
      "family=process_input input_dtype=bf16 quant_dtype=e4m3 input_quant_mode=dynamic_group "
      "quant_group_size=128 scale_layout=m_major m=19 k=1024 check=exact"}},
    {SEMANTICS_RECIPROCAL_LIMIT,
     {"family=process_input input_dtype=f32 quant_dtype=e4m3 input_quant_mode=dynamic_token m=40 "
      "k=256 check=exact",
      "family=process_input input_dtype=f16 quant_dtype=int4 input_quant_mode=dynamic_group "
      "quant_group_size=64 m=16 k=1024 check=exact"}},
    {SEMANTICS_SCALES_ROUND_UP,
     {"family=process_input input_dtype=f16 quant_dtype=e4m3 input_quant_mode=dynamic_group "
      "quant_group_size=64 group_scale_dtype=e4m3 m=16 k=1024 check=exact"}},
    {SEMANTICS_STATIC_ON_SCALE,
     {"family=process_input input_dtype=f32 quant_dtype=int8 "
      "input_quant_mode=static_tensor_dynamic_group quant_group_size=64 m=16 k=1024 check=exact"}},
    {SEMANTICS_INT4_SATURATES,
     {"family=process_input input_dtype=f16 quant_dtype=int4 input_quant_mode=static_tensor m=16 "
      "k=256 check=exact"}},
    {SEMANTICS_FUSED_SUM,
     {"family=moe_sum input_dtype=f32 top_k=8 m=16 k=256 check=exact",
      "family=moe_sum input_dtype=f16 top_k=2 m=65 k=1024 check=special",
      "family=moe_sum input_dtype=f32 top_k=4 num_experts=12 routing=missing m=33 k=256 "
      "check=exact"}},
};
/* clang-format on */

enum { SHOWS = sizeof shows / sizeof shows[0] };

static uint32_t only(enum semantics_rule rule)
{
    return UINT32_C(1) << rule;
}

static void expect(const char *text, uint32_t rules, enum verdict verdict)
{
    struct record r = run_case_ruled(&rule_provider, rules, text);
    char names[SEMANTICS_NAMES];

    ck_assert_msg(r.verdict == verdict, "%s, kernel by %s, judged by %s: %s (%s), expected %s",
                  text, getenv("HUMCHECK_RULES"), semantics_names(rules, NULL, names, sizeof names),
                  verdict_name(r.verdict), r.reason, verdict_name(verdict));
}

static bool of_one_family(int a, int b)
{
    return !strcmp(semantics_infos[a].family, semantics_infos[b].family);
}

START_TEST(a_rule_is_another_formula)
{
    const enum semantics_rule rule = shows[_i].rule;

    ck_assert_int_eq(rule, _i);
    for (int i = 0; i < 4 && shows[_i].cases[i]; i++) {
        const char *text = shows[_i].cases[i];

        ck_assert(setenv("HUMCHECK_RULES", semantics_infos[rule].name, 1) == 0);
        expect(text, 0, VERDICT_FAIL);
        expect(text, only(rule), VERDICT_PASS);
        for (int other = 0; i == 0 && other < SEMANTICS_COUNT; other++)
            if (other != _i && of_one_family(other, _i))
                expect(text, only((enum semantics_rule)other), VERDICT_FAIL);
        ck_assert(setenv("HUMCHECK_RULES", "", 1) == 0);
        expect(text, 0, VERDICT_PASS);
        expect(text, only(rule), VERDICT_FAIL);
    }
}
END_TEST

/* All at once, as a version has them. */
START_TEST(rules_hold_together)
{
    static const char *const cases[] = {
        "family=quant_weight b_dtype=int8 input_dtype=f32 use_e8m0_scale=true m=16 k=384 "
        "check=exact",
        "family=quant_weight b_dtype=e3m2 input_dtype=f32 m=64 k=384 check=exact",
        "family=process_input input_dtype=f16 quant_dtype=int4 input_quant_mode=dynamic_group "
        "quant_group_size=64 scale_layout=m_major m=18 k=1024 check=exact",
        "family=moe_sum input_dtype=bf16 top_k=8 m=33 k=256 check=exact"};
    uint32_t all = (UINT32_C(1) << SEMANTICS_COUNT) - 1;
    char names[SEMANTICS_NAMES];

    (void)semantics_names(all, NULL, names, sizeof names);
    for (char *p = strchr(names, ' '); p; p = strchr(p, ' '))
        memmove(p, p + 1, strlen(p));
    ck_assert(setenv("HUMCHECK_RULES", names, 1) == 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect(cases[i], all, VERDICT_PASS);
}
END_TEST

START_TEST(records_name_the_rules)
{
    struct record r;

    ck_assert(setenv("HUMCHECK_RULES", "fused-sum", 1) == 0);
    r = run_case_ruled(&rule_provider, only(SEMANTICS_FUSED_SUM) | only(SEMANTICS_SIDES_BY_SIZE),
                       shows[SEMANTICS_FUSED_SUM].cases[0]);
    ck_assert_str_eq(r.kernel, "moe_fused_mul_sum, 1 call; by fused-sum");
}
END_TEST

/* ---- names ----------------------------------------------------------------------------------- */

START_TEST(names_by_family)
{
    const uint32_t rules = only(SEMANTICS_BLOCK_ON_OPERAND) | only(SEMANTICS_RECIPROCAL_LIMIT) |
                           only(SEMANTICS_FUSED_SUM);
    char buf[SEMANTICS_NAMES], note[SEMANTICS_NOTE];

    ck_assert_str_eq(semantics_names(rules, NULL, buf, sizeof buf),
                     "block-scale-on-operand, reciprocal-limit, fused-sum");
    ck_assert_str_eq(
        semantics_names(rules | only(SEMANTICS_SIDES_BY_SIZE), "experts", buf, sizeof buf),
        "block-scale-on-operand, reciprocal-limit, fused-sum");
    ck_assert_str_eq(semantics_names(rules, "moe_sum", buf, sizeof buf), "fused-sum");
    ck_assert_str_eq(semantics_names(rules, "pack", buf, sizeof buf), "");
    ck_assert_str_eq(semantics_names(rules, NULL, buf, 8), "block-s");
    ck_assert_str_eq(semantics_note(rules, "gemm", note), "; by block-scale-on-operand");
    ck_assert_str_eq(semantics_note(rules, "pack", note), "");
}
END_TEST

static bool is_family(const char *name)
{
    const char *const *word = axes[AX_FAMILY].words;

    while (*word && strcmp(*word, name) != 0)
        word++;
    return *word;
}

/* Every rule has a name of its own, a sentence and the word of a family. */
START_TEST(the_table_is_whole)
{
    const struct semantics_info *info = &semantics_infos[_i];

    ck_assert(info->name && info->replaces && strlen(info->replaces) <= 200);
    ck_assert_msg(is_family(info->family), "%s", info->family);
    for (int j = 0; j < _i; j++)
        ck_assert_msg(strcmp(info->name, semantics_infos[j].name) != 0, "%s", info->name);
}
END_TEST

/* ---- files ----------------------------------------------------------------------------------- */

static enum err_code load(const char *text, struct arena *arena, struct semantics *out,
                          struct errs *errs)
{
    static char path[] = "/tmp/semantics-XXXXXX"; /* places in errs borrow it */
    enum err_code rc;
    int fd;

    memcpy(path + sizeof path - 7, "XXXXXX", 6);
    fd = mkstemp(path);
    ck_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && !close(fd));
    rc = semantics_load(path, arena, out, errs);
    ck_assert(unlink(path) == 0);
    return rc;
}

#define ROW(versions, family, rule)                                            \
    "  - versions: " versions "\n    family: " family "\n    rule: " rule "\n" \
    "    established: somewhere\n"

START_TEST(versions_choose)
{
    static const char text[] = "semantics:\n" ROW("\"humming 0.1.12\"", "moe_sum", "fused-sum")
        ROW("\"humming 0.1.*\"", "quant_weight", "sides-by-size")
            ROW("\"ruled [12]\"", "gemm", "block-scale-on-operand");
    struct errs errs = {0};
    struct semantics s;
    struct arena arena;

    ck_assert(arena_init(&arena, (size_t)64 << 20));
    ck_assert_int_eq(load(text, &arena, &s, &errs), ERR_NONE);
    ck_assert_uint_eq(s.count, 3);
    ck_assert_uint_eq(semantics_of(&s, "humming 0.1.12"),
                      only(SEMANTICS_FUSED_SUM) | only(SEMANTICS_SIDES_BY_SIZE));
    ck_assert_uint_eq(semantics_of(&s, "humming 0.1.19"), only(SEMANTICS_SIDES_BY_SIZE));
    ck_assert_uint_eq(semantics_of(&s, "humming 0.2.0"), 0);
    ck_assert_uint_eq(semantics_of(&s, "ruled 2"), only(SEMANTICS_BLOCK_ON_OPERAND));
    ck_assert_uint_eq(semantics_of(&s, "cpu 1"), 0);
    ck_assert_int_eq(semantics_load(NULL, &arena, &s, &errs), ERR_NONE);
    ck_assert_uint_eq(semantics_of(&s, "humming 0.1.12"), 0);
    arena_free(&arena);
}
END_TEST

/* The table that is shipped. */
START_TEST(upstream_versions)
{
    struct errs errs = {0};
    struct semantics s;
    struct arena arena;

    ck_assert(arena_init(&arena, (size_t)64 << 20));
    ck_assert_int_eq(semantics_load(SEMANTICS_FILE, &arena, &s, &errs), ERR_NONE);
    ck_assert_uint_eq(semantics_of(&s, "humming 0.1.12"), 0x47f);
    ck_assert_uint_eq(semantics_of(&s, "humming 0.1.19"), 0x39f);
    ck_assert_uint_eq(semantics_of(&s, "humming 0.1.13"), 0);
    arena_free(&arena);
}
END_TEST

/* clang-format off */
static const struct {
    const char *text;
    struct {
        int line, column;
        const char *says;
    } errs[3];
} broken[] = {
    {"rules: []\n", {{1, 1, "expected one key, 'semantics', with a list of rows"}}},
    {"semantics:\n" ROW("\"humming 1\"", "moe_sum", "fused-sums"),
     {{4, 11, "unknown rule 'fused-sums'; did you mean 'fused-sum'?"}}},
    {"semantics:\n" ROW("\"humming 1\"", "gemm", "fused-sum") ROW("humming", "gemm", "nothing"),
     {{3, 13, "rule 'fused-sum' belongs to the family moe_sum, not to 'gemm'"},
      {6, 15, "versions: expected a provider's name and version, got 'humming'"},
      {8, 11, "unknown rule 'nothing'"}}},
    {"semantics:\n" ROW("\"humming 1\"", "moe_sum", "fused-sum")
     ROW("\"humming 2\"", "moe_sum", "fused-sum") ROW("\"humming 1\"", "moe_sum", "fused-sum"),
     {{12, 11, "rule 'fused-sum' is given twice for 'humming 1'"}}},
    {"semantics:\n  - versions: \"humming 1\"\n    rule: fused-sum\n    where: x\n    established: y\n",
     {{4, 5, "unknown key 'where': a row has versions, family, rule and established"},
      {2, 5, "family: expected a text"}}},
    {"semantics:\n  - versions: \"humming 1\"\n    rule: [fused-sum]\n    family: moe_sum\n"
     "    established: \"\"\n",
     {{3, 11, "rule: expected a text"}, {5, 18, "established: expected a text"}}},
};
/* clang-format on */

static void expect_error(const struct err *e, int i, size_t number)
{
    ck_assert_uint_lt(number, 3);
    ck_assert_msg(broken[i].errs[number].says && strstr(e->text, broken[i].errs[number].says), "%s",
                  e->text);
    ck_assert_int_eq(e->at.line, broken[i].errs[number].line);
    ck_assert_int_eq(e->at.column, broken[i].errs[number].column);
}

START_TEST(broken_files)
{
    struct errs errs = {0};
    struct semantics s;
    struct arena arena;

    ck_assert(arena_init(&arena, (size_t)64 << 20));
    ck_assert_int_eq(load(broken[_i].text, &arena, &s, &errs), ERR_CONFIG);
    for (size_t i = 0; i < errs.count; i++)
        expect_error(&errs.items[i], _i, i);
    ck_assert(errs.count == 3 || !broken[_i].errs[errs.count].says);
    errs_free(&errs);
    arena_free(&arena);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("semantics");
    TCase *tests = tcase_create("all");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, a_rule_is_another_formula, 0, SHOWS);
    tcase_add_test(tests, rules_hold_together);
    tcase_add_test(tests, records_name_the_rules);
    tcase_add_test(tests, names_by_family);
    tcase_add_loop_test(tests, the_table_is_whole, 0, SEMANTICS_COUNT);
    tcase_add_test(tests, versions_choose);
    tcase_add_test(tests, upstream_versions);
    tcase_add_loop_test(tests, broken_files, 0, sizeof broken / sizeof broken[0]);
    suite_add_tcase(suite, tests);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
