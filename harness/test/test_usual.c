/* The six usual checks, and the outputs that they are given. */
#include "harness/faults/usual.h"

#include "harness/kernel/words.h"
#include "harness/test/case_run.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

/* ---- the checks ------------------------------------------------------------------------------ */

enum { NUMBERS = 4 };

/* Which checks fail, in the order of usual_names; the thresholds are worked out by hand. */
static const struct {
    double got[NUMBERS], want[NUMBERS];
    const char *failed;
} rows[] = {
    {{1, 2, 3, 4}, {1, 2, 3, 4}, "000000"},
    {{0, 0, 0, 0}, {0, 0, 0, 0}, "000000"},
    /* An element of 100 may err by 5.1, 1.05, 1.01. */
    {{101.009, 100, 100, 100}, {100, 100, 100, 100}, "000000"},
    {{101.02, 100, 100, 100}, {100, 100, 100, 100}, "001000"},
    {{101.06, 100, 100, 100}, {100, 100, 100, 100}, "011000"},
    {{105.2, 100, 100, 100}, {100, 100, 100, 100}, "111001"},
    /* Near 0 only the absolute part counts. */
    {{0.0099, 100, 100, 100}, {0, 100, 100, 100}, "000000"},
    {{0.011, 100, 100, 100}, {0, 100, 100, 100}, "001000"},
    {{0.051, 100, 100, 100}, {0, 100, 100, 100}, "011000"},
    {{0.11, 100, 100, 100}, {0, 100, 100, 100}, "111000"},
    /* Half of everything: the angle is 0; 1 - 2 * .5 / 1.25 = .2. */
    {{0.5, 1, 1.5, 2}, {1, 2, 3, 4}, "111011"},
    /* A relative error e everywhere: e^2 of NMSE, about e^2 / 2 of calc_diff. */
    {{1.022, 1.022, 1.022, 1.022}, {1, 1, 1, 1}, "001000"},
    {{1.023, 1.023, 1.023, 1.023}, {1, 1, 1, 1}, "001001"},
    {{1.0449, 1.0449, 1.0449, 1.0449}, {1, 1, 1, 1}, "001001"},
    {{1.047, 1.047, 1.047, 1.047}, {1, 1, 1, 1}, "001011"},
    /* One of four elements of the wrong sign: cosine 1/2. */
    {{-1, 1, 1, 1}, {1, 1, 1, 1}, "111111"},
    /* cosine = 1 / sqrt(1 + e^2) > .99 up to e = .1424 */
    {{1.142, 0.858, 1.142, 0.858}, {1, 1, 1, 1}, "011011"},
    {{1.143, 0.857, 1.143, 0.857}, {1, 1, 1, 1}, "011111"},
    {{(double)NAN, 2, 3, 4}, {1, 2, 3, 4}, "111111"},
    {{1, 2, 3, 4}, {(double)NAN, 2, 3, 4}, "111111"},
    {{(double)NAN, 0, 0, 0}, {0, 0, 0, 0}, "111111"},
    {{HUGE_VAL, 2, 3, 4}, {1, 2, 3, 4}, "111111"},
    {{HUGE_VAL, 2, 3, 4}, {-HUGE_VAL, 2, 3, 4}, "111111"},
    {{0, 0, 0, 0}, {1, 2, 3, 4}, "111111"},
    {{1, 0, 0, 0}, {0, 0, 0, 0}, "111111"},
};

static const char *failures(const struct usual_outcome *u, char text[USUAL_CHECKS + 1])
{
    for (int i = 0; i < USUAL_CHECKS; i++)
        text[i] = u->failed[i] ? '1' : '0';
    text[USUAL_CHECKS] = '\0';
    return text;
}

START_TEST(thresholds)
{
    struct usual_outcome u = {.run = 1};
    struct usual_sums sums = {0};
    char text[USUAL_CHECKS + 1];

    for (int i = 0; i < NUMBERS; i++)
        usual_add(&sums, rows[_i].got[i], rows[_i].want[i]);
    usual_judge(&sums, &u);
    ck_assert_str_eq(failures(&u, text), rows[_i].failed);
    ck_assert_uint_eq(u.compared, NUMBERS);
}
END_TEST

/* Equal infinities are close, and no error; their products are no numbers. */
START_TEST(equal_infinities)
{
    struct usual_outcome u = {.run = 1};
    struct usual_sums sums = {0};
    char text[USUAL_CHECKS + 1];

    usual_add(&sums, HUGE_VAL, HUGE_VAL);
    usual_add(&sums, 1.0, 1.0);
    usual_judge(&sums, &u);
    ck_assert_str_eq(failures(&u, text), "000110");
}
END_TEST

/* One tensor that fails is enough. */
START_TEST(several_tensors)
{
    struct usual_sums good = {0}, bad = {0};
    struct usual_outcome u = {.run = 1};
    char text[USUAL_CHECKS + 1];

    usual_add(&bad, 0.5, 1.0);
    usual_add(&good, 1.0, 1.0);
    usual_judge(&bad, &u);
    usual_judge(&good, &u);
    ck_assert_str_eq(failures(&u, text), "111011");
    ck_assert_uint_eq(u.compared, 2);
}
END_TEST

/* ---- the data -------------------------------------------------------------------------------- */

START_TEST(six_different_seeds)
{
    int64_t v[AX_COUNT], out[USUAL_RUNS][AX_COUNT];

    make_case("fill=E1", v);
    for (int i = 0; i < USUAL_RUNS; i++) {
        usual_axes(v, i + 1, out[i]);
        ck_assert_int_eq(out[i][AX_FILL], FILL_R);
        ck_assert_int_eq(out[i][AX_CHECK], CHECK_BOUND);
        ck_assert_int_eq(out[i][AX_M], v[AX_M]);
        ck_assert_int_ne(out[i][AX_SEED], v[AX_SEED]);
        for (int j = 0; j < i; j++)
            ck_assert_int_ne(out[i][AX_SEED], out[j][AX_SEED]);
    }
}
END_TEST

/* Cases that differ in check, fill or data alone are one configuration. */
static const struct {
    const char *text;
    bool first;
} plan_rows[] = {
    {"fill=E1 check=exact", true},
    {"fill=R check=model", false},
    {"fill=R check=bound data=outliers", false},
    {"fill=E1 check=exact m=40", true},
    {"fill=E1 check=exact m=40 seed=0x123", true},
    {"family=pack bits=3 check=exact", true},
    {"family=pack bits=3 check=guard", false},
    {"family=pack bits=4 check=guard", true},
};

START_TEST(configurations)
{
    struct plan_case cases[sizeof plan_rows / sizeof plan_rows[0]] = {0};
    const struct plan plan = {.cases = cases, .count = sizeof cases / sizeof cases[0]};

    for (size_t i = 0; i < plan.count; i++)
        make_case(plan_rows[i].text, cases[i].v);
    for (size_t i = 0; i < plan.count; i++)
        ck_assert_msg(usual_is_first(&plan, i) == plan_rows[i].first, "%s", plan_rows[i].text);
}
END_TEST

/* ---- runs ------------------------------------------------------------------------------------ */

static void run_usual(const struct hum_provider *provider, const char *text, int run,
                      struct usual_outcome *out)
{
    static const struct suite suite = {.path = "x.yaml", .name = "x"};
    struct plan_case c = {.suite = &suite, .id = "x/y"};
    const struct plan plan = {.cases = &c, .count = 1};
    struct errs errs = {0};
    struct runner *runner = runner_open(provider, 1, (size_t)1 << 30, &errs);

    ck_assert_msg(runner != NULL, "%s", errs.count ? errs.items[0].text : "?");
    make_case(text, c.v);
    usual_run(runner, &plan, 0, run, out);
    runner_close(runner);
    errs_free(&errs);
}

static void expect(const struct hum_provider *provider, const char *text, const char *failed)
{
    struct usual_outcome u;
    char found[USUAL_CHECKS + 1];

    for (int run = 1; run <= USUAL_RUNS; run += USUAL_RUNS - 1) {
        run_usual(provider, text, run, &u);
        ck_assert_msg(u.ran, "%s: %s", text, u.reason);
        ck_assert_int_eq(u.run, run);
        ck_assert_msg(!strcmp(failures(&u, found), failed), "%s: %s, expected %s", text, found,
                      failed);
        ck_assert(!strcmp(failed, "111111") || u.compared > 0);
    }
}

/* A right kernel passes, whatever the family and the check of the case. */
static const char *const right[] = {
    "",
    "m=1",
    "check=readout fill=P m=256 scales=all",
    "check=contract",
    "a_dtype=bf16 b_dtype=e2m1 has_bias=true",
    "a_dtype=e4m3 b_dtype=float4e2m1 bs_dtype=e8m0 weight_scale_group_size=32",
    "a_dtype=int8 b_dtype=uint4 k=512",
    "zero_point=int b_dtype=uint3",
    "gemm_type=indexed num_experts=3 top_k=2",
    "gemm_type=grouped_contiguous num_experts=4 routing=empty",
    "gemm_type=grouped_masked num_experts=2 routing=spare m=32",
    "family=quant_weight b_dtype=e4m3 check=special",
    "family=dequant_weight b_dtype=e4m3 check=guard",
    "family=pack bits=3 check=exact",
    "family=process_mxfp4 a_dtype=e4m3 weight_scale_group_size=32",
    "family=process_input activation=none",
    "family=process_input activation=silu activation_form=split",
    "family=hadamard hadamard_block_size=64",
    "family=moe_sum top_k=3 num_experts=5",
    "family=experts gemm_type=indexed num_experts=4 top_k=2 activation=relu2 n=128 k=128",
    ("family=experts gemm_type=grouped_contiguous num_experts=4 top_k=2 activation=silu "
     "a_dtype=e4m3 activation_form=split n=256 k=128"),
};

START_TEST(right_kernels)
{
    expect(&hum_cpu_provider, right[_i], "000000");
}
END_TEST

/* ---- wrong kernels --------------------------------------------------------------------------- */

static enum hum_code half(void *handle, const struct hum_gemm_args *args,
                          char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = hum_cpu_provider.forward(handle, args, reason);
    const struct dtype *f16 = dtype_find("f16");

    for (int64_t i = 0; i < rows_of(args) * columns_of(args); i++)
        outputs_of(args)[i] =
            (uint16_t)dtype_encode(f16, 0.5 * dtype_decode(f16, outputs_of(args)[i]), DTYPE_TO_TOP);
    return rc;
}

static enum hum_code one_nan(void *handle, const struct hum_gemm_args *args,
                             char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = hum_cpu_provider.forward(handle, args, reason);

    outputs_of(args)[5] = 0x7e00;
    return rc;
}

/* One code up everywhere: what a truncation may do, and nothing usual sees. */
static enum hum_code one_code_up(void *handle, const struct hum_gemm_args *args,
                                 char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = hum_cpu_provider.forward(handle, args, reason);

    for (int64_t i = 0; i < rows_of(args) * columns_of(args); i++)
        outputs_of(args)[i]++;
    return rc;
}

static enum hum_code refuse(void *handle, const struct hum_gemm_args *args,
                            char reason[HUM_REASON_BYTES])
{
    (void)handle;
    (void)args;
    (void)snprintf(reason, HUM_REASON_BYTES, "not today");
    return HUM_INVALID;
}

/* Right outputs, and a byte that is not its own: no usual check looks there. */
static enum hum_code write_outside(void *handle, const struct hum_gemm_args *args,
                                   char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = hum_cpu_provider.forward(handle, args, reason);

    ((uint8_t *)args->outputs.data)[args->outputs.bytes] ^= 1;
    return rc;
}

static const struct {
    forward_fn *forward;
    const char *failed;
} wrong[] = {
    {half, "111011"},   {one_nan, "111111"},       {one_code_up, "000000"},
    {refuse, "111111"}, {write_outside, "000000"},
};

START_TEST(wrong_kernels)
{
    const struct hum_provider p = provider_with(wrong[_i].forward);

    expect(&p, "m=32", wrong[_i].failed);
}
END_TEST

static enum hum_code gelu_for_silu(void *handle, const struct hum_process_input_args *args,
                                   char reason[HUM_REASON_BYTES])
{
    struct hum_process_input_args other = *args;

    if (other.activation == HUM_ACT_SILU)
        other.activation = HUM_ACT_GELU;
    return hum_cpu_provider.ops->process_input(handle, &other, reason);
}

/* Expectations do not start from the provider's own activations. */
START_TEST(wrong_activation)
{
    struct hum_provider p = hum_cpu_provider;
    struct hum_ops ops = *p.ops;

    ops.process_input = gelu_for_silu;
    p.ops = &ops;
    expect(&p, "family=process_input activation=silu activation_form=split", "111011");
    expect(&p,
           "family=experts gemm_type=indexed num_experts=4 top_k=2 activation=silu "
           "activation_form=split n=256 k=128",
           "111011");
}
END_TEST

/* What cannot be run has nothing to compare. */
START_TEST(missing_operation)
{
    struct hum_provider p = hum_cpu_provider;
    struct hum_ops ops = *p.ops;
    struct usual_outcome u;

    ops.hadamard = NULL;
    p.ops = &ops;
    run_usual(&p, "family=hadamard hadamard_block_size=64", 1, &u);
    ck_assert(!u.ran);
    ck_assert(strstr(u.reason, "has no hadamard") != NULL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("usual");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_set_timeout(tc, 30);
    tcase_add_loop_test(tc, thresholds, 0, (int)(sizeof rows / sizeof rows[0]));
    tcase_add_test(tc, equal_infinities);
    tcase_add_test(tc, several_tensors);
    tcase_add_test(tc, six_different_seeds);
    tcase_add_test(tc, configurations);
    tcase_add_loop_test(tc, right_kernels, 0, (int)(sizeof right / sizeof right[0]));
    tcase_add_loop_test(tc, wrong_kernels, 0, (int)(sizeof wrong / sizeof wrong[0]));
    tcase_add_test(tc, wrong_activation);
    tcase_add_test(tc, missing_operation);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
