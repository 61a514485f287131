/* case_run.h - for tests: one case, written as "key=value ...", run at a provider; and providers
 * that are wrong on purpose.
 */
#ifndef HARNESS_TEST_CASE_RUN_H
#define HARNESS_TEST_CASE_RUN_H

#include "harness/kernel/legal.h"
#include "harness/kernel/plan_resolve.h"
#include "harness/kernel/runner.h"
#include "harness/test/case_text.h"
#include "kernels/cpu/cpu.h"

typedef enum hum_code forward_fn(void *handle, const struct hum_gemm_args *args,
                                 char reason[HUM_REASON_BYTES]);

/* The case that tests change: f16 x uint4, group scales, small and quick. */
#define SMALL_CASE "a_dtype=f16 b_dtype=uint4 weight_scale_type=group n=192 k=256 m=33 seed=7"

static inline struct hum_provider provider_with(forward_fn *forward)
{
    struct hum_provider p = hum_cpu_provider;

    p.forward = forward;
    return p;
}

static inline void make_case(const char *text, int64_t v[AX_COUNT])
{
    uint64_t decided_by[AX_COUNT];
    const struct legal_rule *broken;

    case_defaults(v);
    case_set(v, SMALL_CASE);
    case_set(v, text);
    (void)plan_resolve(v, AXIS_ALL, 7, decided_by);
    broken = legal_broken(v);
    ck_assert_msg(!broken, "%s: %s", text, broken ? broken->sentence : "");
}

static inline void no_stage(void *context, size_t index, enum stage stage)
{
    (void)context;
    (void)index;
    (void)stage;
}

static inline void take_record(void *context, const struct record *r)
{
    *(struct record *)context = *r;
}

/* What the case comes to at this provider, judged by these rules (semantics.h). */
static inline struct record run_case_ruled(const struct hum_provider *provider, uint32_t rules,
                                           const char *text)
{
    static const struct suite suite = {.path = "x.yaml", .name = "x"};
    struct plan_case c = {.suite = &suite, .id = "x/y"};
    struct plan_problem problem = {.first = 0, .count = 1};
    struct plan plan = {
        .cases = &c, .count = 1, .problems = &problem, .problem_count = 1, .rules = rules};
    struct record r = {.verdict = VERDICT_COUNT};
    struct runner_hooks hooks = {no_stage, take_record, &r, NULL};
    struct errs errs = {0};
    struct runner *runner = runner_open(provider, 1, (size_t)1 << 30, &errs);

    ck_assert_msg(runner != NULL, "%s", errs.count ? errs.items[0].text : "?");
    make_case(text, c.v);
    problem.m = c.v[AX_M];
    runner_problem(runner, &plan, 0, 0, 1, &hooks);
    runner_close(runner);
    errs_free(&errs);
    return r;
}

/* The same by the contract alone. */
static inline struct record run_case_text(const struct hum_provider *provider, const char *text)
{
    return run_case_ruled(provider, 0, text);
}

static inline void expect_verdict(const struct hum_provider *provider, const char *text,
                                  enum verdict verdict, const char *reason)
{
    struct record r = run_case_text(provider, text);

    ck_assert_msg(r.verdict == verdict && strstr(r.reason, reason), "%s: %s (%s), expected %s (%s)",
                  text, verdict_name(r.verdict), r.reason, verdict_name(verdict), reason);
}

static inline uint16_t *outputs_of(const struct hum_gemm_args *args)
{
    return args->outputs.data;
}

static inline int64_t rows_of(const struct hum_gemm_args *args)
{
    return args->outputs.shape[0];
}

static inline int64_t columns_of(const struct hum_gemm_args *args)
{
    return args->outputs.shape[1];
}

#endif
