#include "harness/kernel/plan.h"

#include "harness/kernel/legal.h"
#include "harness/kernel/plan_resolve.h"
#include "harness/kernel/words.h"
#include "harness/test/plan_world.h"

#include <stdlib.h>
#include <time.h>

START_TEST(ids_and_order)
{
    /* m differs within a problem; the second entry returns to the first problem, so that its case
     * moves forward. */
    static const char *const want[] = {
        "one/shapes/m=16,n=64",   "one/shapes/m=32,n=64",  "one/again",
        "one/shapes/m=16,n=128",  "one/shapes/m=32,n=128", "two/shapes/c_dtype=auto",
        "two/shapes/c_dtype=f16",
    };
    static const size_t problems[] = {0, 0, 0, 1, 1, 2, 3};
    struct world w;
    struct suite *s;

    world_open(&w);
    s = add_suite(&w, "one");
    (void)add_entry(&w, s, "shapes", "m=16|32 n=64|128");
    (void)add_entry(&w, s, "again", "m=64 n=64 num_stages=4");
    s = add_suite(&w, "two");
    (void)add_entry(&w, s, "shapes", "a_dtype=e4m3 c_dtype=auto|f16");
    must_make(&w);
    check_plan(&w.plan);
    ck_assert_uint_eq(w.plan.count, 7);
    for (size_t i = 0; i < 7; i++) {
        ck_assert_str_eq(w.plan.cases[i].id, want[i]);
        ck_assert_uint_eq(w.plan.cases[i].problem, problems[i]);
    }
    ck_assert_int_eq(w.plan.problems[0].m, 64);
    ck_assert_ptr_eq(w.plan.cases[2].entry, &w.suites[0].entries[1]);
    ck_assert_ptr_eq(w.plan.cases[5].suite, &w.suites[1]);
    world_close(&w);
}
END_TEST

/* fill is of the problem and follows m and stream-K under "auto": resolved first, grouped then. */
START_TEST(resolved_before_grouped)
{
    struct world w;

    world_open(&w);
    (void)add_entry(&w, add_suite(&w, "s"), "e",
                    "a_dtype=bf16 m=1|8|16|32 use_stream_k=false|true");
    must_make(&w);
    check_plan(&w.plan);
    ck_assert_uint_eq(w.plan.count, 8);
    ck_assert_uint_eq(w.plan.problem_count, 2);
    ck_assert_uint_eq(w.plan.problems[0].count, 6); /* E2: few rows or stream-K */
    ck_assert_int_eq(w.plan.cases[0].v[AX_FILL], FILL_E2);
    ck_assert_int_eq(w.plan.cases[7].v[AX_FILL], FILL_E1);
    ck_assert_int_eq(w.plan.cases[0].v[AX_BLOCK], AXIS_AUTO);
    world_close(&w);
}
END_TEST

static struct entry *mixed_entry(struct world *w, struct suite *s, const char *name)
{
    return add_entry(
        w, s, name,
        "a_dtype=f16|bf16|e4m3|int8 b_dtype=uint4|uint8|e2m1|int8 m=33|1 n=64|1001|1000 "
        "k=128|4096 weight_scale_type=channel|group|block zero_point=none|int "
        "check=exact|bound|readout");
}

/* Legal combinations of an entry, one by one. */
static size_t brute_force(const struct entry *e, size_t *product)
{
    size_t at[AX_COUNT] = {0}, legal = 0;
    uint64_t decided_by[AX_COUNT];
    int x = 0;

    for (*product = 0; x < AX_COUNT; ++*product) {
        int64_t v[AX_COUNT];

        for (x = 0; x < AX_COUNT; x++)
            v[x] = e->axes[x].values[at[x]];
        (void)plan_resolve(v, ~UINT64_C(0), 1, decided_by);
        legal += !legal_broken(v);
        for (x = 0; x < AX_COUNT && ++at[x] == e->axes[x].count; x++)
            at[x] = 0;
    }
    return legal;
}

/* full: cases, illegal and excluded are the whole product, whatever rule cut where. where sees
 * resolved values. */
START_TEST(counts_add_up)
{
    struct world w;
    size_t product, legal;
    struct entry *e;

    world_open(&w);
    e = mixed_entry(&w, add_suite(&w, "s"), "e");
    legal = brute_force(e, &product);
    must_make(&w);
    check_plan(&w.plan);
    ck_assert_uint_eq(w.plan.count, legal);
    ck_assert_uint_eq(w.plan.excluded, 0);
    ck_assert_uint_eq(w.plan.illegal, product - legal);

    add_where(&w, e, "pad_shape_n == 0 and c_dtype == f16");
    must_make(&w);
    check_plan(&w.plan);
    ck_assert_uint_gt(w.plan.count, 10);
    ck_assert_uint_lt(w.plan.count, legal);
    ck_assert_uint_eq(w.plan.illegal + w.plan.excluded, product - w.plan.count);
    for (size_t i = 0; i < w.plan.count; i++)
        ck_assert(w.plan.cases[i].v[AX_N] == 64 &&
                  w.plan.cases[i].v[AX_C] == w.plan.cases[0].v[AX_C]);
    world_close(&w);
}
END_TEST

/* The pairs of the resolved full product and of the pairwise plan are the same; a random plan has
 * the size asked for. */
START_TEST(pairwise_and_random)
{
    struct world w;
    struct plan full;
    struct entry *e;
    int missing = 0;

    world_open(&w);
    e = mixed_entry(&w, add_suite(&w, "s"), "e");
    must_make(&w);
    full = w.plan;
    e->combine = COMBINE_PAIRWISE;
    must_make(&w);
    check_plan(&w.plan);
    ck_assert_uint_eq(w.plan.gaps, 0);
    ck_assert_uint_eq(w.plan.illegal, 0); /* a search drops nothing */
    ck_assert_uint_lt(w.plan.count, full.count / 3);
    for (size_t i = 0; i < full.count; i++)
        for (int x = 0; x < AX_COUNT; x++)
            for (int y = 0; y < x; y++) {
                bool found = e->axes[x].count < 2 || e->axes[y].count < 2;

                for (size_t j = 0; j < w.plan.count && !found; j++)
                    found = w.plan.cases[j].v[x] == full.cases[i].v[x] &&
                            w.plan.cases[j].v[y] == full.cases[i].v[y];
                missing += !found;
            }
    ck_assert_int_eq(missing, 0);

    e->combine = COMBINE_RANDOM;
    e->random_count = 50;
    must_make(&w);
    check_plan(&w.plan);
    ck_assert_uint_eq(w.plan.count, 50);
    world_close(&w);
}
END_TEST

/* Each case of the whole plan lies in exactly one shard, a problem undivided, and costs are even.
 */
START_TEST(shards_partition)
{
    struct world w;
    struct plan whole;
    size_t seen = 0;
    double cost[7] = {0}, total = 0;

    world_open(&w);
    (void)mixed_entry(&w, add_suite(&w, "s"), "e");
    must_make(&w);
    whole = w.plan;
    for (w.options.shard = 1, w.options.shards = 7; w.options.shard <= 7; w.options.shard++) {
        size_t at = 0;

        must_make(&w);
        check_plan(&w.plan);
        seen += w.plan.count;
        for (size_t i = 0; i < w.plan.count; i++) {
            const struct plan_case *c = &w.plan.cases[i];

            while (at < whole.count && strcmp(whole.cases[at].id, c->id) != 0)
                at++;
            cost[w.options.shard - 1] += (double)(c->v[AX_M] * c->v[AX_N] * c->v[AX_K]);
        }
        ck_assert_uint_lt(at, whole.count); /* in the order of the whole */
        for (size_t i = 0; i < w.plan.problem_count; i++) {
            const struct plan_problem *p = &w.plan.problems[i];
            size_t j = 0;

            while (strcmp(whole.cases[j].id, w.plan.cases[p->first].id) != 0)
                j++;
            ck_assert_uint_eq(whole.problems[whole.cases[j].problem].count, p->count);
        }
        total += cost[w.options.shard - 1];
    }
    ck_assert_uint_eq(seen, whole.count);
    for (int i = 0; i < 7; i++)
        ck_assert(cost[i] > total / 7 * 0.95 && cost[i] < total / 7 * 1.05);
    world_close(&w);
}
END_TEST

/* The dearest problem fills a shard, the two others the second. */
START_TEST(dear_problem_alone)
{
    struct world w;

    world_open(&w);
    (void)add_entry(&w, add_suite(&w, "s"), "e", "n=64|128|1280");
    w.options.shards = 2;
    must_make(&w);
    ck_assert_uint_eq(w.plan.count, 1);
    ck_assert_str_eq(w.plan.cases[0].id, "s/e/n=1280");
    w.options.shard = 2;
    must_make(&w);
    ck_assert_uint_eq(w.plan.count, 2);
    ck_assert_str_eq(w.plan.cases[0].id, "s/e/n=64");
    world_close(&w);
}
END_TEST

static const struct {
    const char *filter;
    size_t count;
} filters[] = {
    {"*", 8},        {"s/e/m=1,n=64,has_bias=true", 1}, {"s/e/m=1,*", 4}, {"*has_bias=false", 4},
    {"*n=[16]*", 8}, {"?/?/m=3[23]*,n=128,*", 2},
};

START_TEST(filter_is_a_glob)
{
    struct world w;

    world_open(&w);
    (void)add_entry(&w, add_suite(&w, "s"), "e", "m=1|32 n=64|128 has_bias=false|true");
    w.options.filter = filters[_i].filter;
    must_make(&w);
    check_plan(&w.plan);
    ck_assert_uint_eq(w.plan.count, filters[_i].count);
    world_close(&w);
}
END_TEST

START_TEST(filter_without_match)
{
    struct world w;

    world_open(&w);
    (void)add_entry(&w, add_suite(&w, "smoke"), "small", "m=1|32 n=64|128");
    w.options.filter = "smoke/small/m=32,n=129";
    must_fail(&w, ERR_USAGE, 0,
              "no case matches 'smoke/small/m=32,n=129'; near it is 'smoke/small/m=32,n=128'");
    world_close(&w);
}
END_TEST

static const struct {
    int shard, shards;
    const char *text;
} shards[] = {
    {0, 2, "shard 0/2: the first number must be from 1 to the second"},
    {3, 2, "shard 3/2: the first number must be from 1 to the second"},
    {-1, -1, "shard -1/-1: the first number must be from 1 to the second"},
    {3, 3, "shard 3/3 has no problem: the plan has only 2"},
};

START_TEST(bad_shards)
{
    struct world w;

    world_open(&w);
    (void)add_entry(&w, add_suite(&w, "s"), "e", "m=1|32 n=64|128");
    w.options.shard = shards[_i].shard;
    w.options.shards = shards[_i].shards;
    must_fail(&w, ERR_USAGE, 0, shards[_i].text);
    world_close(&w);
}
END_TEST

START_TEST(nothing_legal)
{
    struct world w;
    struct suite *s;

    world_open(&w);
    s = add_suite(&w, "s");
    (void)add_entry(&w, s, "fine", "m=1");
    (void)add_entry(&w, s, "ulp", "check=ulp m=1|2|3");
    add_entry(&w, s, "wide", "a_dtype=e4m3 b_dtype=uint6|uint7 m=1|2")->combine = COMBINE_PAIRWISE;
    add_where(&w, add_entry(&w, s, "never", "m=1|2"), "m > 2");
    must_fail(&w, ERR_CONFIG, 20,
              "entry 'ulp': no legal combination of its axes: ulp is for elementary functions; a "
              "GEMM has none");
    ck_assert_uint_eq(w.errs.count, 3);
    ck_assert_ptr_nonnull(strstr(w.errs.items[1].text, "entry 'wide': no legal combination"));
    ck_assert_str_eq(w.errs.items[2].text,
                     "entry 'never': where leaves no combination of its axes");
    ck_assert_int_eq(w.errs.items[2].at.line, 40);
    world_close(&w);
}
END_TEST

START_TEST(suites_of_one_name)
{
    struct world w;

    world_open(&w);
    (void)add_entry(&w, add_suite(&w, "s"), "e", "");
    (void)add_entry(&w, add_suite(&w, "s"), "f", "");
    must_fail(&w, ERR_CONFIG, 0, "suite 's' has the name of the suite in suites/s.yaml");
    world_close(&w);
}
END_TEST

START_TEST(small_arena)
{
    struct world w;

    world_open(&w);
    (void)add_entry(&w, add_suite(&w, "s"), "e", "m=1|2|3|4|5|6|7|8");
    w.arena.limit = w.arena.used + 1000;
    ck_assert_int_eq((int)make(&w), ERR_NOMEM);
    w.arena.limit = (size_t)1 << 30;
    world_close(&w);
}
END_TEST

/* The same plan from the same input; --seed replaces the suite's seed, not one that an entry
 * states. */
START_TEST(seeds)
{
    struct world w;
    struct suite *s;
    struct plan first;

    world_open(&w);
    s = add_suite(&w, "s");
    mixed_entry(&w, s, "e")->combine = COMBINE_PAIRWISE;
    (void)add_entry(&w, s, "own", "seed=0x123");
    must_make(&w);
    first = w.plan;
    must_make(&w);
    ck_assert_uint_eq(w.plan.count, first.count);
    for (size_t i = 0; i < first.count; i++)
        ck_assert(!strcmp(first.cases[i].id, w.plan.cases[i].id) &&
                  !memcmp(first.cases[i].v, w.plan.cases[i].v, sizeof first.cases[i].v));
    ck_assert_int_eq(first.cases[0].v[AX_SEED], 1);
    w.options.has_seed = true;
    w.options.seed = UINT64_C(0xfedcba9876543210);
    must_make(&w);
    ck_assert_uint_eq((uint64_t)w.plan.cases[0].v[AX_SEED], w.options.seed);
    ck_assert_int_eq(w.plan.cases[w.plan.count - 1].v[AX_SEED], 0x123);
    world_close(&w);
}
END_TEST

/* Of the processor: others may share the machine. */
static double milliseconds(struct world *w)
{
    struct timespec from, to;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    must_make(w);
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    return (double)(to.tv_sec - from.tv_sec) * 1e3 + (double)(to.tv_nsec - from.tv_nsec) * 1e-6;
}

static void give_range(struct world *w, struct entry *e, enum axis_id x, size_t count, int64_t step)
{
    e->axes[x].values = ARENA_NEW(&w->arena, count, int64_t);
    e->axes[x].count = count;
    for (size_t i = 0; i < count; i++)
        e->axes[x].values[i] = (int64_t)(i + 1) * step;
}

START_TEST(big_full_plan)
{
    struct world w;
    struct entry *e;
    double ms;

    world_open(&w);
    e = add_entry(&w, add_suite(&w, "s"), "e",
                  "a_dtype=f16|bf16|e4m3|int8 b_dtype=uint1|uint2|uint3|uint4|uint8|e2m1 "
                  "has_bias=false|true weight_scale_type=channel|group");
    give_range(&w, e, AX_M, 10, 1);
    give_range(&w, e, AX_N, 25, 64);
    give_range(&w, e, AX_K, 8, 256);
    add_where(&w, e, "m <= 8 or n < 1024");
    ms = milliseconds(&w);
    printf("full: %zu cases of %zu problems, %zu illegal, %zu excluded, %.0f ms of CPU\n",
           w.plan.count, w.plan.problem_count, w.plan.illegal, w.plan.excluded, ms);
    ck_assert_uint_ge(w.plan.count, 100000);
    ck_assert_uint_eq(w.plan.count + w.plan.illegal + w.plan.excluded,
                      (size_t)4 * 6 * 2 * 2 * 10 * 25 * 8);
    world_close(&w);
}
END_TEST

/* 20 axes, most combinations illegal: still complete, and quick. */
START_TEST(big_pairwise_plan)
{
    struct world w;
    struct entry *e;
    double ms;

    world_open(&w);
    e = add_entry(
        &w, add_suite(&w, "s"), "e",
        "a_dtype=f16|bf16|e4m3|e5m2|int8|int4 "
        "b_dtype=uint1|uint2|uint3|uint4|uint5|uint6|uint7|uint8|int8|int4|e2m1|float6e3m2|"
        "float8e4m3|float8e5m2|float4e1m2 c_dtype=auto|f16|bf16 bs_dtype=auto|f16|e4m3|e5m2|e8m0 "
        "pad_shape_n=auto|64|8|72 pad_shape_k=auto|64|512 "
        "weight_scale_type=channel|group|block|tensor "
        "weight_scale_group_size=auto|16|32|64|128|256 weight_scale_group_size_n=auto|64|128 "
        "weight_scale_2_type=none|tensor|channel zero_point=none|int|float has_bias=false|true "
        "input_scale_group_size=0|32|64|128 use_f16_accum=false|true use_stream_k=false|true "
        "use_batch_invariant=false|true check=exact|readout|bound|model|ulp "
        "block_shape=auto|64x64x64|64x128x128|16x256x64|128x128x256 "
        "warp_shape=auto|16x32x64|64x32x64|64x64x128 mma_type=auto|mma|wgmma "
        "use_warp_spec=false|true num_stages=auto|2|3|4 num_write_splits=1|2 use_tma=false|true");
    e->combine = COMBINE_PAIRWISE;
    give_range(&w, e, AX_M, 60, 1);
    give_range(&w, e, AX_N, 40, 56);
    give_range(&w, e, AX_K, 60, 64);
    add_where(&w, e, "m <= 32 or n < 1024");
    ms = milliseconds(&w);
    printf("pairwise: %zu cases, %zu gaps, %.0f ms of CPU\n", w.plan.count, w.plan.gaps, ms);
    (void)fflush(stdout);
    ck_assert_uint_eq(w.plan.gaps, 0);
    ck_assert_uint_gt(w.plan.count, 1000);
    world_close(&w);
}
END_TEST

#define COUNT(table) ((int)(sizeof(table) / sizeof(table)[0]))

int main(void)
{
    Suite *s = suite_create("plan");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_test(tc, ids_and_order);
    tcase_add_test(tc, resolved_before_grouped);
    tcase_add_test(tc, counts_add_up);
    tcase_add_test(tc, pairwise_and_random);
    tcase_add_test(tc, shards_partition);
    tcase_add_test(tc, dear_problem_alone);
    tcase_add_loop_test(tc, filter_is_a_glob, 0, COUNT(filters));
    tcase_add_test(tc, filter_without_match);
    tcase_add_loop_test(tc, bad_shards, 0, COUNT(shards));
    tcase_add_test(tc, nothing_legal);
    tcase_add_test(tc, suites_of_one_name);
    tcase_add_test(tc, small_arena);
    tcase_add_test(tc, seeds);
    tcase_add_test(tc, big_full_plan);
    tcase_add_test(tc, big_pairwise_plan);
    tcase_set_timeout(tc, 60);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
