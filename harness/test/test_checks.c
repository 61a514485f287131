/* The checks of one launch, whole products, coverage, trust, and skips. */
#include "harness/kernel/support.h"
#include "harness/kernel/trust.h"
#include "harness/kernel/words.h"
#include "harness/test/case_run.h"

#include <math.h>
#include <stdlib.h>

/* ---- one launch ------------------------------------------------------------------------------ */

static int64_t wrong_row, wrong_col; /* of flips_one; set by the test that uses it */

static enum hum_code flips_one(void *handle, const struct hum_gemm_args *args,
                               char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = hum_cpu_provider.forward(handle, args, reason);

    if (rc == HUM_OK)
        outputs_of(args)[wrong_row * columns_of(args) + wrong_col] ^= 1;
    return rc;
}

static enum hum_code writes_nan(void *handle, const struct hum_gemm_args *args,
                                char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = hum_cpu_provider.forward(handle, args, reason);

    if (rc == HUM_OK)
        outputs_of(args)[5] = 0x7fff;
    return rc;
}

static enum hum_code early(void *handle, const struct hum_gemm_args *args,
                           char reason[HUM_REASON_BYTES])
{
    (void)handle;
    (void)args;
    reason[0] = '\0';
    return HUM_OK;
}

static enum hum_code refuses(void *handle, const struct hum_gemm_args *args,
                             char reason[HUM_REASON_BYTES])
{
    (void)handle;
    (void)args;
    memcpy(reason, "not today", 10);
    return HUM_UNSUPPORTED;
}

static const char *const single[] = {
    "check=exact",
    "check=readout m=256",
    "check=bound",
    "check=model",
    "check=exact fill=E2",
    "check=exact fill=X",
    "check=exact fill=W",
    "check=exhaustive scales=all bs_dtype=e4m3 weight_scale_group_size=32 n=256 k=512 m=512",
};

START_TEST(single_launch)
{
    struct hum_provider nan = provider_with(writes_nan), none = provider_with(early);
    struct hum_provider refusing = provider_with(refuses);

    expect_verdict(&hum_cpu_provider, single[_i], VERDICT_PASS, "");
    expect_verdict(&nan, single[_i], VERDICT_FAIL, "");
    expect_verdict(&none, single[_i], VERDICT_FAIL, "");
    expect_verdict(&refusing, single[_i], VERDICT_FAIL, "refused a supported configuration");
}
END_TEST

START_TEST(one_code_is_seen)
{
    static const char *const texts[] = {"check=exact", "check=readout m=256", "check=model"};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct hum_provider p = provider_with(flips_one);
        struct record r;

        wrong_row = 32;
        wrong_col = 191;
        r = run_case_text(&p, texts[i]);
        ck_assert_int_eq((int)r.verdict, VERDICT_FAIL);
        ck_assert_int_eq((int)r.at_row, 32);
        ck_assert_int_eq((int)r.at_col, 191);
        ck_assert_uint_eq(r.wrong, 1);
        ck_assert_uint_eq(r.got_code, r.want_code ^ 1);
    }
}
END_TEST

/* ---- whole products -------------------------------------------------------------------------- */

struct world {
    struct arena arena, scratch;
    int64_t v[AX_COUNT];
    struct problem q;
    struct hum_layer_config layer;
    struct hum_compute_config compute;
    struct hum_tuning_config tuning;
    struct launch launch;
    uint16_t *got;
};

static void world_close(struct world *w)
{
    arena_free(&w->arena);
    arena_free(&w->scratch);
}

/* A problem whose expected codes are all known, and outputs that are right. */
static void world_open(struct world *w, const char *text)
{
    const char *why;

    memset(w, 0, sizeof *w);
    ck_assert(arena_init(&w->arena, (size_t)1 << 28) && arena_init(&w->scratch, (size_t)1 << 28));
    make_case(text, w->v);
    why = problem_make(w->v, 0, w->v[AX_M], 1, &w->arena, &w->q);
    ck_assert_msg(!why, "%s", why);
    layer_config(w->v, &w->layer);
    layer_compute(w->v, &w->compute);
    w->launch = (struct launch){.provider = &hum_cpu_provider,
                                .layer = &w->layer,
                                .compute = &w->compute,
                                .tuning = &w->tuning,
                                .m = w->v[AX_M]};
    w->got = arena_alloc(&w->arena, (size_t)(w->q.ref.m * w->q.ref.n), sizeof *w->got);
    if (w->q.want)
        memcpy(w->got, w->q.want, (size_t)(w->q.ref.m * w->q.ref.n) * sizeof *w->got);
}

/* Only every other of the first columns is looked at from here on. */
static void forget_columns(struct world *w, int64_t count)
{
    int64_t n = w->q.ref.n, k = w->q.ref.k;

    for (int64_t i = 0; i < w->q.ref.m; i++)
        for (int64_t j = 0; j < count; j++)
            w->q.want[i * count + j] = w->q.want[i * n + 2 * j];
    for (int64_t j = 0; j < count; j++) {
        w->q.cols[j] = 2 * j;
        memmove(w->q.w + j * k, w->q.w + 2 * j * k, (size_t)k * sizeof *w->q.w);
    }
    w->q.cols_count = count;
}

static struct finding check_world(struct world *w, enum word_check check)
{
    struct check_in in = {&w->q, &w->launch, w->got, &w->scratch, NULL};
    struct finding f = {.at_row = -1, .at_col = -1};

    arena_reset(&w->scratch);
    check_of(check)->run(&in, &f);
    return f;
}

static const char *const whole[] = {
    "check=exact fill=E2 n=320",
    "check=exact fill=E2 n=320 a_dtype=bf16 weight_scale_type=channel",
    "check=exact fill=E2 n=320 a_dtype=e4m3 c_dtype=f16",
    "check=exact fill=E2 n=320 a_dtype=e4m3 b_dtype=e4m3 weight_scale_type=block",
    "check=exact fill=E2 n=320 a_dtype=int8 c_dtype=f16",
    "check=exact fill=E2 n=320 b_dtype=e2m1 weight_scale_2_type=channel",
    "check=exact fill=E2 n=320 b_dtype=float5e2m2 weight_scale_2_type=tensor",
};

START_TEST(whole_product)
{
    struct world w;
    struct finding f;

    world_open(&w, whole[_i]);
    ck_assert_ptr_null(w.q.inexact);
    forget_columns(&w, 7);
    f = check_world(&w, CHECK_EXACT);
    ck_assert_msg(f.verdict == VERDICT_PASS, "%s: %s", whole[_i], f.reason);
    ck_assert_uint_eq(f.compared, (uint64_t)(w.q.ref.m * (7 + w.q.ref.n)));
    for (int64_t col = 0; col < w.q.ref.n; col += 13)
        for (int64_t row = 0; row < w.q.ref.m; row += 8) {
            uint16_t *at = w.got + row * w.q.ref.n + col, right = *at;

            *at ^= 1;
            f = check_world(&w, CHECK_EXACT);
            *at = right;
            ck_assert_int_eq((int)f.verdict, VERDICT_FAIL);
            ck_assert_uint_eq(f.wrong, 1);
            ck_assert_int_eq((int)f.at_row, (int)row);
            ck_assert_int_eq((int)f.at_col, (int)col);
            ck_assert_uint_eq(f.want_code, right);
        }
    world_close(&w);
}
END_TEST

/* Other faults than one code: what they leave in a column without expected codes. */
START_TEST(whole_product_faults)
{
    static const uint16_t codes[] = {0x7e00, 0x7c00, 0xfc00, 0x7bff, 0xffff, 0x0001};
    struct world w;
    int64_t n;

    world_open(&w, whole[0]);
    forget_columns(&w, 7);
    n = w.q.ref.n;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        uint16_t *at = w.got + 3 * n + 301, right = *at;

        *at = codes[i];
        ck_assert_int_eq((int)check_world(&w, CHECK_EXACT).verdict, VERDICT_FAIL);
        *at = right;
    }
    for (int64_t i = 0; i < w.q.ref.m; i++) { /* two columns exchanged */
        uint16_t *row = w.got + i * n, first = row[201];

        row[201] = row[205];
        row[205] = first;
    }
    ck_assert_int_eq((int)check_world(&w, CHECK_EXACT).verdict, VERDICT_FAIL);
    world_close(&w);
}
END_TEST

/* Without the columns in question: nobody looks, so the check alone sees nothing. */
START_TEST(other_fills_are_sampled)
{
    struct world w;

    world_open(&w, "check=exact fill=E1 n=320");
    forget_columns(&w, 7);
    w.got[301] ^= 1;
    ck_assert_uint_eq(check_world(&w, CHECK_EXACT).compared, (uint64_t)(w.q.ref.m * 7));
    world_close(&w);
}
END_TEST

START_TEST(big_product)
{
    struct hum_provider p = provider_with(flips_one);
    struct record r;

    wrong_row = 77;
    wrong_col = 2301;
    r = run_case_text(&p, "check=exact fill=E2 n=4160 k=2048 m=256");
    ck_assert_int_eq((int)r.verdict, VERDICT_FAIL);
    ck_assert_int_eq((int)r.at_row, 77);
    ck_assert_int_eq((int)r.at_col, 2301);
}
END_TEST

/* ---- coverage -------------------------------------------------------------------------------- */

static const struct {
    const char *text, *reason;
} gaps[] = {
    {"check=exhaustive scales=all bs_dtype=e4m3 weight_scale_group_size=32 n=64 k=64 m=64",
     "and a scale code do not occur"},
    {"check=exhaustive scales=all bs_dtype=e4m3 weight_scale_group_size=32 n=256 k=512 m=64",
     "and a scale code do not occur"},
    {"check=exhaustive scales=all n=64 k=128 m=128", "and a scale code do not occur"},
    {"check=exhaustive scales=all b_dtype=uint8 a_dtype=f16 zero_point=int bs_dtype=e8m0 n=64 "
     "k=256 m=256",
     "do not occur"},
    {"check=exhaustive scales=all weight_scale_type=tensor n=64 k=128 m=128",
     "not all scale codes"},
    /* the kernel's sums wrap: right, and none is the only right answer */
    {"check=exact fill=W a_dtype=int8 k=4096", "sums may leave int32"},
};

START_TEST(missing_pairs_are_not_trusted)
{
    expect_verdict(&hum_cpu_provider, gaps[_i].text, VERDICT_UNTRUSTED, gaps[_i].reason);
}
END_TEST

/* ---- trust ----------------------------------------------------------------------------------- */

static const char *refusal(struct world *w, enum check_basis basis, uint64_t compared,
                           uint64_t vacuous, char *buf)
{
    struct check_in in = {&w->q, &w->launch, w->got, &w->scratch, NULL};
    struct finding f = {.compared = compared, .vacuous = vacuous};
    const char *why = trust_refuses(&in, basis, &f, buf, HUM_REASON_BYTES);

    return why ? why : "trusted";
}

START_TEST(nothing_compared)
{
    char buf[HUM_REASON_BYTES];
    struct world w;

    world_open(&w, "check=exact");
    for (int basis = BASIS_EXPECTED; basis <= BASIS_REFUSALS; basis++)
        ck_assert_str_eq(refusal(&w, (enum check_basis)basis, 0, 0, buf), "nothing was compared");
    ck_assert_str_eq(refusal(&w, BASIS_EXPECTED, 10, 0, buf), "trusted");
    ck_assert_str_eq(refusal(&w, BASIS_REFUSALS, 10, 0, buf), "trusted");
    world_close(&w);
}
END_TEST

START_TEST(alike_outputs)
{
    char buf[HUM_REASON_BYTES];
    struct world w;
    int64_t count;

    world_open(&w, "check=exact");
    count = w.q.ref.m * w.q.ref.n;
    ck_assert_str_eq(refusal(&w, BASIS_ITSELF, 10, 0, buf), "trusted");
    for (int64_t i = 0; i < count; i++)
        w.got[i] = w.q.want[i] = (uint16_t)(i % 5 < 3 ? 0x3c00 : 0x3c00 + i % 512);
    ck_assert_ptr_nonnull(strstr(refusal(&w, BASIS_EXPECTED, 10, 0, buf), "alike"));
    ck_assert_ptr_nonnull(strstr(refusal(&w, BASIS_ITSELF, 10, 0, buf), "alike"));
    for (int64_t i = 0; i < count; i++)
        w.q.want[i] = (uint16_t)((i % 5 < 2 ? 0x7c01 : 0x3c00) + i % 512);
    ck_assert_ptr_nonnull(strstr(refusal(&w, BASIS_EXPECTED, 10, 0, buf), "not finite"));
    world_close(&w);
}
END_TEST

/* What columns, rows and groups are told apart by. */
START_TEST(alike_factors)
{
    char buf[HUM_REASON_BYTES];
    struct world w;

    world_open(&w, _i ? "check=exact zero_point=int" : "check=exact a_dtype=e4m3");
    ck_assert_str_eq(refusal(&w, BASIS_EXPECTED, 10, 0, buf), "trusted");
    for (int64_t i = 0; !_i && i < w.q.ref.m; i++)
        w.q.in.input_scale[i] = 0.5f;
    for (size_t i = 0; _i && i < ref_input_sizes(&w.q.ref).zero; i++)
        w.q.in.zero[i] = 7;
    ck_assert_ptr_nonnull(strstr(refusal(&w, BASIS_EXPECTED, 10, 0, buf),
                                 _i ? "zero points are alike" : "input scales are alike"));
    world_close(&w);
}
END_TEST

/* Outputs so large that one step of a weight is far below their last place. */
START_TEST(hidden_weights)
{
    char buf[HUM_REASON_BYTES];
    struct world w;

    world_open(&w, "check=exact a_dtype=bf16");
    ck_assert_str_eq(refusal(&w, BASIS_EXPECTED, 10, 0, buf), "trusted");
    for (int64_t i = 0; i < w.q.ref.m * w.q.ref.n; i++) {
        double y;

        w.q.acc[i] = ldexp(1.0 + (double)(i % 64) / 64.0, 60 + (int)(i % 8));
        y = ref_epilogue_one(&w.q.epilogue, i / w.q.ref.n, i % w.q.ref.n, w.q.acc[i], true);
        w.q.want[i] = (uint16_t)dtype_encode(w.q.ref.c, y, DTYPE_TO_TOP);
    }
    ck_assert_str_eq(refusal(&w, BASIS_EXPECTED, 10, 0, buf),
                     "only 0 % of one-step weight errors would change an output");
    world_close(&w);
}
END_TEST

START_TEST(inexact_data)
{
    char buf[HUM_REASON_BYTES];
    struct world w;

    world_open(&w, "check=exact");
    w.q.inexact = "sums may round";
    ck_assert_str_eq(refusal(&w, BASIS_EXPECTED, 10, 0, buf), "sums may round");
    ck_assert_str_eq(refusal(&w, BASIS_SPECIAL, 10, 0, buf), "sums may round");
    w.q.inexact = NULL;
    w.tuning.use_stream_k = true;
    ck_assert_ptr_nonnull(strstr(refusal(&w, BASIS_EXPECTED, 10, 0, buf), "slices round"));
    world_close(&w);
    world_open(&w, "check=exact fill=E2 a_dtype=f16");
    w.tuning.use_stream_k = true;
    ck_assert_str_eq(refusal(&w, BASIS_EXPECTED, 10, 0, buf), "trusted");
    for (int64_t i = 0; i < w.q.ref.m * w.q.ref.k; i++)
        w.q.a[i] *= 0x1p10f;
    ck_assert(!problem_want(&w.q, 1, &w.arena) && w.q.sum_overflows && w.q.range_overflows);
    ck_assert_ptr_nonnull(strstr(refusal(&w, BASIS_EXPECTED, 10, 0, buf), "may overflow"));
    world_close(&w);
}
END_TEST

START_TEST(vacuous_bounds)
{
    char buf[HUM_REASON_BYTES];
    struct world w;

    world_open(&w, "check=bound");
    ck_assert_str_eq(refusal(&w, BASIS_EXPECTED, 100, 10, buf), "trusted");
    ck_assert_ptr_nonnull(
        strstr(refusal(&w, BASIS_EXPECTED, 100, 11, buf), "nothing is required of 11 %"));
    world_close(&w);
}
END_TEST

START_TEST(special_values_must_show)
{
    char buf[HUM_REASON_BYTES];
    struct world w;
    int64_t count;

    world_open(&w, "check=special");
    count = w.q.ref.m * w.q.ref.n;
    ck_assert_str_eq(refusal(&w, BASIS_SPECIAL, 10, 0, buf), "trusted");
    for (int64_t i = 0; i < count; i++)
        w.q.want[i] = (uint16_t)(0x3c00 + i % 512);
    ck_assert_str_eq(refusal(&w, BASIS_SPECIAL, 10, 0, buf), "special values reach no output");
    for (int64_t i = 0; i < count; i++)
        w.q.want[i] = 0x7e00;
    ck_assert_str_eq(refusal(&w, BASIS_SPECIAL, 10, 0, buf), "special values reach all outputs");
    world_close(&w);
}
END_TEST

/* ---- skips ----------------------------------------------------------------------------------- */

static enum hum_code supports_none(void *handle, const struct hum_layer_config *layer,
                                   const struct hum_compute_config *compute,
                                   const struct hum_tuning_config *tuning,
                                   char reason[HUM_REASON_BYTES])
{
    (void)handle;
    (void)layer;
    (void)compute;
    (void)tuning;
    memcpy(reason, "no such kernel", 15);
    return HUM_UNSUPPORTED;
}

START_TEST(skips_must_be_listed)
{
    struct hum_provider p = hum_cpu_provider;
    struct arena arena;
    struct errs errs = {0};
    struct support_row row = {.provider = "cpu *", .reason = "known"};
    struct support listed = {&row, 1}, none = {NULL, 0};
    unsigned long counts[VERDICT_COUNT] = {[VERDICT_PASS] = 1, [VERDICT_SKIP] = 1};
    struct record r, unlisted;
    int64_t v[AX_COUNT];

    p.supports = supports_none;
    make_case("check=exact", v);
    ck_assert(arena_init(&arena, (size_t)1 << 20));
    row.where = expr_parse("a_dtype == f16", NOWHERE, &arena, &errs);
    ck_assert_ptr_nonnull(row.where);
    unlisted = r = run_case_text(&p, "check=exact");
    ck_assert_int_eq((int)r.verdict, VERDICT_SKIP);
    ck_assert_str_eq(r.reason, "no such kernel");
    support_apply(&listed, v, &r);
    ck_assert_int_eq((int)r.verdict, VERDICT_SKIP);
    ck_assert_int_eq((int)verdict_of_run(counts), VERDICT_PASS);
    support_apply(&none, v, &unlisted);
    ck_assert_int_eq((int)unlisted.verdict, VERDICT_FAIL);
    arena_free(&arena);
    errs_free(&errs);
}
END_TEST

static TCase *cases(void)
{
    TCase *tc = tcase_create("all");

    tcase_add_loop_test(tc, single_launch, 0, (int)(sizeof single / sizeof single[0]));
    tcase_add_test(tc, one_code_is_seen);
    tcase_add_loop_test(tc, whole_product, 0, (int)(sizeof whole / sizeof whole[0]));
    tcase_add_test(tc, whole_product_faults);
    tcase_add_test(tc, other_fills_are_sampled);
    tcase_add_test(tc, big_product);
    tcase_add_loop_test(tc, missing_pairs_are_not_trusted, 0, (int)(sizeof gaps / sizeof gaps[0]));
    tcase_add_test(tc, nothing_compared);
    tcase_add_test(tc, alike_outputs);
    tcase_add_loop_test(tc, alike_factors, 0, 2);
    tcase_add_test(tc, hidden_weights);
    tcase_add_test(tc, inexact_data);
    tcase_add_test(tc, vacuous_bounds);
    tcase_add_test(tc, special_values_must_show);
    tcase_add_test(tc, skips_must_be_listed);
    tcase_set_timeout(tc, 60);
    return tc;
}

int main(void)
{
    Suite *s = suite_create("checks");
    SRunner *r;
    int failed;

    suite_add_tcase(s, cases());
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
