/* What is legal for quant_weight, dequant_weight, pack and process_mxfp4; and that a rule binds its
 * own families only. */
#include "harness/kernel/legal.h"
#include "harness/kernel/plan_resolve.h"
#include "harness/test/case_text.h"
#include "reference/quantize.h"

#include <stdlib.h>

/* clang-format off */
static const struct {
    const char *text, *rule;
} examples[] = {
    {"family=quant_weight check=readout",                         "op-check"},
    {"family=pack check=locks",                                   "op-check"},
    {"family=process_mxfp4 a_dtype=e4m3 check=ulp",               "op-check"},
    {"family=quant_weight input_dtype=e4m3",                      "input-format"},
    {"family=quant_weight b_dtype=float4e0m3",                    "quant-target"},
    {"family=quant_weight weight_scale_group_size=12",            "quant-group"},
    {"family=quant_weight weight_scale_group_size=24",            "quant-group"},
    {"family=quant_weight has_scale=false use_e8m0_scale=true",   "quant-scale"},
    {"family=quant_weight has_scale=false zero_point=int",        "quant-scale"},
    {"family=quant_weight b_dtype=e2m1 zero_point=float",         "quant-zero-point"},
    {"family=quant_weight check=exhaustive",                      "quant-exhaustive"},
    {"family=quant_weight check=exhaustive has_scale=false",      "quant-exhaustive"},
    {"family=dequant_weight b_dtype=uint4",                       "dequant-source"},
    {"family=dequant_weight b_dtype=float4e0m3",                  "dequant-source"},
    {"family=dequant_weight b_dtype=e4m3 m=255 check=exhaustive", "dequant-exhaustive"},
    {"family=pack k=48",                                          "pack-words"},
    {"family=pack bits=8 m=255 check=exhaustive",                 "pack-exhaustive"},
    {"family=process_mxfp4",                                      "mxfp4-a"},
    {"family=process_mxfp4 a_dtype=e4m3 k=80",                    "mxfp4-group"},
    {"family=process_mxfp4 a_dtype=e4m3 weight_scale_group_size=0", "mxfp4-group"},
    {"family=process_mxfp4 a_dtype=e4m3 check=exhaustive",        "mxfp4-exhaustive"},
    /* rules of GEMM bind nothing here */
    {"family=quant_weight weight_scale_group_size=8 m=3 k=8",     "legal"},
    {"family=pack bits=3 m=1 k=32 n=7",                           "legal"},
    {"family=process_mxfp4 a_dtype=int8 m=1 k=40 weight_scale_group_size=20", "legal"},
};
/* clang-format on */

static const char *rule_of(const char *text, int64_t v[AX_COUNT])
{
    uint64_t decided_by[AX_COUNT];
    const struct legal_rule *broken;

    case_defaults(v);
    case_set(v, text);
    ck_assert(plan_resolve(v, AXIS_ALL, 7, decided_by) == AXIS_ALL);
    broken = legal_broken(v);
    return broken ? broken->name : "legal";
}

START_TEST(rules_of_families)
{
    int64_t v[AX_COUNT];

    ck_assert_str_eq(rule_of(examples[_i].text, v), examples[_i].rule);
    for (int x = 0; x < AX_COUNT; x++)
        ck_assert_msg(!axes[x].of_problem || v[x] != AXIS_AUTO, "%s", axes[x].key);
}
END_TEST

START_TEST(rules_have_names_of_their_own)
{
    for (int i = 0; i < legal_count(); i++) {
        ck_assert_ptr_nonnull(legal_rule(i)->sentence);
        for (int j = 0; j < i; j++)
            ck_assert_str_ne(legal_rule(i)->name, legal_rule(j)->name);
    }
}
END_TEST

START_TEST(rules_read_what_they_declare)
{
    const struct legal_rule *rule = legal_rule(legal_rule_count + _i);
    uint64_t state = (uint64_t)_i + 1;
    int differing = 0;

    for (int repeat = 0; repeat < 2000; repeat++) {
        int64_t v[AX_COUNT], w[AX_COUNT];

        for (int x = 0; x < AX_COUNT; x++) {
            v[x] = case_random_value((enum axis_id)x, &state);
            w[x] = (rule->axes | AXIS_BIT(AX_FAMILY)) & AXIS_BIT(x)
                       ? v[x]
                       : case_random_value((enum axis_id)x, &state);
        }
        differing += rule->holds(v) != rule->holds(w);
    }
    ck_assert_int_eq(differing, 0);
}
END_TEST

/* The table, the oracle and the provider agree on what quant_weight is for. */
START_TEST(legal_is_valid)
{
    int64_t v[AX_COUNT];
    uint64_t state = 5;
    int legal = 0;

    case_defaults(v);
    case_set(v, "family=quant_weight m=2 k=64");
    for (int repeat = 0; repeat < 3000; repeat++) {
        static const enum axis_id varied[] = {AX_B, AX_GROUP, AX_HAS_SCALE, AX_E8M0, AX_ZERO};
        struct ref_quant q = {.rows = 2, .cols = 64};
        bool valid;

        for (size_t i = 0; i < sizeof varied / sizeof varied[0]; i++)
            v[varied[i]] = case_random_value(varied[i], &state);
        q.target = &dtypes[v[AX_B]];
        q.group = v[AX_GROUP];
        q.has_scale = v[AX_HAS_SCALE] != 0;
        q.use_e8m0_scale = v[AX_E8M0] != 0;
        q.has_zero_point = v[AX_ZERO] != 0;
        valid = !ref_quant_valid(&q) && !(q.target->is_float && q.target->exp_bits == 0);
        ck_assert_msg(valid == !legal_broken(v), "%s", q.target->name);
        legal += valid;
    }
    ck_assert_int_gt(legal, 100);
}
END_TEST

int main(void)
{
    const int examples_count = sizeof examples / sizeof examples[0];
    Suite *s = suite_create("op_legal");
    TCase *tc = tcase_create("all");
    SRunner *sr = srunner_create(s);
    int failed;

    tcase_add_loop_test(tc, rules_of_families, 0, examples_count);
    tcase_add_test(tc, rules_have_names_of_their_own);
    tcase_add_loop_test(tc, rules_read_what_they_declare, 0, legal_count() - legal_rule_count);
    tcase_add_test(tc, legal_is_valid);
    suite_add_tcase(s, tc);
    srunner_run_all(sr, CK_ENV);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
