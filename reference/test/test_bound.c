#include "reference/bound.h"
#include "reference/bound_chain.h"
#include "reference/rng.h"
#include "reference/round.h"
#include "reference/test/simulated_kernel.h"

#include <check.h>
#include <stdlib.h>

/* No correct kernel is ever accused, and the interval holds the exact result. */
START_TEST(no_false_alarm)
{
    for (uint64_t seed = 0; seed < 3; seed++) {
        struct problem *q = problem_make(&setups[_i], seed);
        const struct ref_bound b = problem_bound(q, true);
        double lo[M], hi[M], exact[M];
        int alarms = 0, outside = 0, anything = 0;

        for (int64_t col = 0; col < N; col++) {
            ref_bound_column(&b, col, q->w + col * q->p.k, lo, hi, exact);
            for (int64_t row = 0; row < M; row++) {
                const struct kernel x = kernel_of(q, row, col);
                const double y = kernel_output(&x, seed * 100 + (uint64_t)row);

                alarms += !ref_bound_holds(lo[row], hi[row], y);
                outside += !(lo[row] <= exact[row] && exact[row] <= hi[row]);
                anything += lo[row] == -HUGE_VAL && hi[row] == HUGE_VAL;
            }
        }
        ck_assert_msg(alarms == 0, "%s: %d", setups[_i].name, alarms);
        ck_assert_msg(outside == 0 && anything == 0, "%s", setups[_i].name);
        free(q);
    }
}
END_TEST

/* ---- without an order ---- */

static float shuffled_sum(const float *a, const float *w, int64_t k, uint64_t seed)
{
    float p[K_MAX], sum = 0.0f;

    for (int64_t l = 0; l < k; l++)
        p[l] = a[l] * w[l];
    for (int64_t l = k; l > 0; l--) { /* takes one of the l that are left */
        const uint32_t j = rng_below(rng_word(seed, RNG_TEST, (uint64_t)l), (uint32_t)l);

        sum += p[j];
        p[j] = p[l - 1];
    }
    return sum;
}

static float pairwise_sum(const float *a, const float *w, int64_t k)
{
    if (k == 1)
        return a[0] * w[0];
    return pairwise_sum(a, w, k / 2) + pairwise_sum(a + k / 2, w + k / 2, k - k / 2);
}

/* Random and pairwise orders in f32, and whatever the setup does, when nothing is known. */
START_TEST(any_order)
{
    struct problem *q = problem_make(&setups[_i], 7);
    const struct ref_bound known = problem_bound(q, true), any = problem_bound(q, false);
    const bool sums = !q->s.flush_k && !q->p.f16_accum && q->p.a->is_float;
    double lo[M], hi[M], exact[M], narrow_lo[M], narrow_hi[M];
    int alarms = 0, narrower = 0;

    if (q->s.slices > 1)
        q->s.slices = 1;
    q->s.slice[0].k_begin = 0;
    for (int64_t col = 0; col < N; col++) {
        const float *w = q->w + col * q->p.k;

        ref_bound_column(&known, col, w, narrow_lo, narrow_hi, exact);
        ref_bound_column(&any, col, w, lo, hi, exact);
        for (int64_t row = 0; row < M; row++) {
            const float *a = q->a + row * q->p.k;
            const struct kernel x = kernel_of(q, row, col);
            const double y = kernel_output(&x, 1);

            alarms += !ref_bound_holds(lo[row], hi[row], y);
            narrower += lo[row] > narrow_lo[row] || hi[row] < narrow_hi[row];
            if (!sums)
                continue;
            alarms += !ref_bound_holds(
                lo[row], hi[row],
                ref_epilogue(&q->p, row, col, (double)shuffled_sum(a, w, q->p.k, 3), true));
            alarms += !ref_bound_holds(
                lo[row], hi[row],
                ref_epilogue(&q->p, row, col, (double)pairwise_sum(a, w, q->p.k), true));
        }
    }
    ck_assert_msg(alarms == 0, "%s: %d", setups[_i].name, alarms);
    ck_assert_msg(narrower == 0, "%s: %d", setups[_i].name, narrower);
    free(q);
}
END_TEST

/* ---- how tight: the bound of a chain over the largest error that a chain shows ---- */

static const struct {
    const char *setup;
    enum look look;
    double at_most; /* bound / largest error seen among 32 x 6: about twice what is measured */
} tight[] = {
    {"cpu f32", NORMAL, 60},      {"cpu f32", POSITIVE, 60},   {"hopper f16", NORMAL, 40},
    {"hopper f16", POSITIVE, 40}, {"wgmma e4m3", NORMAL, 400}, {"cpu f16 accum", NORMAL, 20},
};

/* Bound and error of the chain over all k of row r and column col. */
static void chain_errors(const struct problem *q, int r, int64_t col, double *bound, double *error)
{
    const struct bound_unit unit = bound_unit_of(&q->p, &q->s);
    const struct kernel x = kernel_of(q, r, col);
    struct bound_operands o = {.rows = 1};
    struct bound_chain c = {0};
    struct bound_tile t;
    struct bound_error e;

    for (int i = 0; i < BOUND_ROWS; i++)
        o.a[i] = x.a;
    bound_tile_init(&t, &unit);
    bound_operands_column(&o, &q->p, x.w);
    bound_operands_rows(&o, q->p.k);
    bound_chain_extend(&c, &unit, &o, 0, q->p.k, &t);
    e = bound_chain_error(&c, &unit);
    *bound = e.growth * bound_chain_reach(&c, &unit, &o, 0) + e.floor;
    *error = fabs(kernel_warp(&x, 0, 0) - c.sum[0]);
}

START_TEST(tightness)
{
    struct setup u = setup_named(tight[_i].setup);
    double most = 0.0;
    struct problem *q;

    u.look = tight[_i].look;
    q = problem_make(&u, 5);
    for (int64_t col = 0; col < N; col++)
        for (int r = 0; r < BOUND_ROWS; r++) {
            double bound, error;

            chain_errors(q, r, col, &bound, &error);
            ck_assert(isfinite(bound) && error <= bound);
            most = error / bound > most ? error / bound : most;
        }
    ck_assert_msg(1.0 / most <= tight[_i].at_most, "%s: %g", u.name, 1.0 / most);
    free(q);
}
END_TEST

/* Data that make every step lose as much as it can: 1, then products just too small to count beside
 * it. The errors come close to the bound, so a bound with a constant too small fails here. */
static const struct {
    const char *setup;
    double a, w;  /* after the first */
    double least; /* error / bound */
} worst[] = {
    {"cpu f32", 0x1.ffcp-13, 0x1p-12, 0.99}, /* below 2^-24 */
    {"hopper f16", 0x1.ffcp-14, 0x1p-12,
     0.7}, /* below 2^-25: 16 2^-25 of 2^-23 + 16 2^-25 a block */
    {"ampere f16", 0x1.ffcp-13, 0x1p-12, 0.7}, /* below 2^-24 */
    {"wgmma e4m3", 0x1.ep-7, 0x1p-7, 0.75},    /* below 2^-13 */
    {"wgmma subnormal", 0x1.ep-7, 0x1p-7,
     0.1}, /* the subnormal rule cannot know how weights are stored */
    {"cpu f16 accum", 0x1.ffcp-9, 0x1p-7, 0.3},   /* 16 products make just less than 2^-11 */
    {"volta f16 accum", 0x1.ffcp-9, 0x1p-5, 0.3}, /* 4 products, likewise */
};

START_TEST(worst_case)
{
    const struct setup u = setup_named(worst[_i].setup);
    struct problem *q = problem_make(&u, 1);
    double bound, error;

    for (int64_t l = 0; l < q->p.k; l++) {
        q->a[l] = l ? (float)worst[_i].a : 1.0f;
        q->w[l] = l ? (float)worst[_i].w : 1.0f;
    }
    q->taken_out = 0;
    chain_errors(q, 0, 0, &bound, &error);
    ck_assert_msg(error <= bound, "%s: %g of %g", u.name, error, bound);
    ck_assert_msg(error >= worst[_i].least * bound, "%s: %g of %g", u.name, error, bound);
    free(q);
}
END_TEST

/* A weight 1 stored as the subnormal 2^-9 of e4m3 has the exponent of 8: a product 8 x 1 then
 * swallows what lies below 2^(6 - 13), though every partial sum is at most 8. */
START_TEST(subnormal_weights)
{
    const struct setup u = setup_named("wgmma subnormal");
    struct problem *q = problem_make(&u, 1);
    double bound, error;

    for (int64_t l = 0; l < q->p.k; l++) {
        q->w[l] = 1.0f;
        q->a[l] = l % 64 == 0 ? 8.0f : l % 64 == 32 ? -8.0f : 0x1.8p-8f;
    }
    chain_errors(q, 0, 0, &bound, &error);
    ck_assert(error >= 0.3 * bound && error <= bound);
    free(q);
}
END_TEST

/* Emulated FP8: the k with bit 1 clear are summed first, so sums of +2 +2 -2 -2 ... reach 30 before
 * they return to 0. */
START_TEST(order_of_the_emulation)
{
    struct setup u = setup_named("mma e5m2 f16");
    struct problem *q;
    double bound, error;

    u.scale = REF_SCALE_CHANNEL;
    u.group = 0;
    u.flush_k = 0;
    q = problem_make(&u, 1);
    for (int64_t l = 0; l < q->p.k; l++) {
        q->w[l] = l % 32 == 29 ? 0x1.cp-8f : l % 32 == 31 ? 0.0f : l & 2 ? -2.0f : 2.0f;
        q->a[l] = 1.0f;
    }
    chain_errors(q, 0, 0, &bound, &error);
    ck_assert(error >= 0.1 * bound && error <= bound);
    free(q);
}
END_TEST

/* c1 = 1 + 2^-11 exactly, then twice + 2^-24, half a unit in its last place: both flushes lose it,
 * and 1 + 2^-11 rounds to 1 in f16 where the exact sum rounds to 1 + 2^-10. */
START_TEST(rounding_of_a_flush)
{
    struct setup u = setup_named("int8");
    double lo[M], hi[M], exact[M];
    struct problem *q;
    struct ref_bound b;

    u.c = u.bs = "f16";
    u.k = 384;
    u.warp_k = u.flush_k = 128;
    q = problem_make(&u, 1);
    b = problem_bound(q, true);
    q->p.has_bias = false;
    q->input_scale[0] = 1.0f;
    q->bs_codes[0] = dtype_encode(q->p.bs, 0x1p-11, DTYPE_TO_TOP);
    q->bs_codes[1] = q->bs_codes[2] = dtype_encode(q->p.bs, 0x1p-24, DTYPE_TO_TOP);
    for (int64_t l = 0; l < 384; l++) { /* groups with 2049, 1, 1 */
        q->a[l] = l == 0 ? 17.0f : l < 128 ? 16.0f : (float)(l % 128 == 0);
        q->w[l] = 1.0f;
    }
    ref_bound_column(&b, 0, q->w, lo, hi, exact);
    ck_assert(exact[0] == 1.0 + 0x1p-10 && lo[0] == 1.0 && hi[0] == exact[0]);
    free(q);
}
END_TEST

/* Slices 256, 1, 1 in bf16: 256 if 256 comes first or second, 258 if it comes last. */
START_TEST(orders_of_slices)
{
    struct setup u = setup_named("int8");
    double lo[M], hi[M], exact[M];
    struct problem *q;
    struct ref_bound b;

    u.scale = REF_SCALE_CHANNEL;
    u.k = 384;
    u.group = 0;
    u.flush_k = 0;
    u.slices = 3;
    for (int ordered = 0; ordered < 2; ordered++) {
        u.ordered = ordered;
        q = problem_make(&u, 1);
        b = problem_bound(q, true);
        q->p.has_bias = false;
        q->input_scale[0] = 1.0f;
        q->bs_codes[0] = dtype_encode(q->p.bs, 1.0, DTYPE_TO_TOP);
        for (int64_t l = 0; l < 384; l++) {
            q->a[l] = l < 256 ? (float)(l % 128 == 0) : 2.0f;
            q->w[l] = 1.0f;
        }
        ref_bound_column(&b, 0, q->w, lo, hi, exact);
        ck_assert(lo[0] == 256.0 && hi[0] == (ordered ? 256.0 : 258.0) && exact[0] == 256.0);
        free(q);
    }
}
END_TEST

/* ---- what must be caught ---- */

enum fault { DROPPED_K, SCALE_ULP, TRUNCATED, F16_ACCUM, FAULTS };

/* Smallest share of outputs of a faulty column that must lie outside, and in how many of the N
 * columns. */
static const struct {
    double share;
    int columns;
} caught[FAULTS] = {
    [DROPPED_K] = {0.9, N},
    [SCALE_ULP] = {0.5, N},
    [TRUNCATED] = {0.1, N - 1},
    [F16_ACCUM] = {0.5, N},
};

static double truncate_f16(double x)
{
    const struct dtype *t = dtype_find("f16");
    const uint32_t code = dtype_encode(t, x, DTYPE_TO_TOP);
    const double y = dtype_decode(t, code);

    return fabs(y) > fabs(x) ? dtype_decode(t, code - 1) : y;
}

static double faulty(struct problem *q, enum fault fault, int64_t row, int64_t col)
{
    const struct kernel x = kernel_of(q, row, col);
    double y;

    switch (fault) {
    case DROPPED_K:
        return round_to(q->p.c, kernel_chain(&x, 0, q->p.k - 1, 0.0));
    case SCALE_ULP:
        return round_to(q->p.c, kernel_chain(&x, 0, q->p.k, 0.0));
    case TRUNCATED:
        return truncate_f16(kernel_chain(&x, 0, q->p.k, 0.0));
    case F16_ACCUM:
        q->p.f16_accum = true;
        y = kernel_chain(&x, 0, q->p.k, 0.0);
        q->p.f16_accum = false;
        return y;
    case FAULTS:
        break;
    }
    return 0.0;
}

START_TEST(faults_are_caught)
{
    struct problem *q;
    struct ref_bound b;
    struct setup u = setup_named("cpu f32");
    double lo[N][M], hi[N][M], exact[M];
    int columns = 0;

    u.k = K_MAX;
    q = problem_make(&u, 11);
    q->p.has_bias = false;
    b = problem_bound(q, true);
    for (int64_t col = 0; col < N; col++)
        ref_bound_column(&b, col, q->w + col * q->p.k, lo[col], hi[col], exact);
    for (int64_t i = 0; _i == SCALE_ULP && i < N * ref_groups(&q->p); i++)
        q->bs_codes[i]++;
    ref_operand_w(&q->p, 0, N, q->w);
    for (int64_t col = 0; col < N; col++) {
        int outside = 0;

        for (int64_t row = 0; row < M; row++)
            outside +=
                !ref_bound_holds(lo[col][row], hi[col][row], faulty(q, (enum fault)_i, row, col));
        columns += outside >= caught[_i].share * M;
    }
    ck_assert_int_ge(columns, caught[_i].columns);
    free(q);
}
END_TEST

/* ---- special values ---- */

START_TEST(special_values)
{
    struct setup u = setup_named(_i ? "hopper f16 accum" : "hopper f16");
    struct problem *q;
    struct ref_bound b;
    double lo[M], hi[M], exact[M];
    const double inf = HUGE_VAL, nan = (double)NAN;

    u.slices = 1;
    q = problem_make(&u, 1);
    b = problem_bound(q, _i != 2);
    for (int64_t l = 0; l < q->p.k; l++)
        q->w[l] = 1.0f;
    q->a[0 * q->p.k + 5] = NAN;
    q->a[1 * q->p.k + 6] = INFINITY;
    q->a[2 * q->p.k + 7] = INFINITY;
    q->a[2 * q->p.k + 300] = -INFINITY;
    for (int64_t l = 0; l < q->p.k; l++)
        q->a[3 * q->p.k + l] = 60000.0f; /* beyond f16: in the accumulator, or at its end */
    ref_bound_column(&b, 0, q->w, lo, hi, exact);
    ck_assert(isnan(lo[0]) && isnan(hi[0]) && isnan(exact[0]));
    ck_assert(lo[1] == inf && hi[1] == inf && exact[1] == inf);
    ck_assert(isnan(lo[2]) && isnan(hi[2]));
    ck_assert(hi[3] == inf && lo[3] == (_i ? -inf : inf));
    ck_assert(isfinite(lo[4]) && isfinite(hi[4]));
    ck_assert(ref_bound_holds(lo[0], hi[0], nan) && !ref_bound_holds(lo[0], hi[0], 1.0));
    ck_assert(ref_bound_holds(lo[1], hi[1], inf) && !ref_bound_holds(lo[1], hi[1], nan));
    ck_assert(!ref_bound_holds(lo[1], hi[1], 65504.0) && !ref_bound_holds(lo[4], hi[4], nan));
    ck_assert(ref_bound_holds(lo[3], hi[3], nan) == (_i != 0));
    free(q);
}
END_TEST

/* A sum at the border: 65504 and infinity are both possible, what lies below is not. */
START_TEST(overflow_of_one_end)
{
    struct setup u = setup_named("cpu f32");
    struct problem *q;
    struct ref_bound b;
    double lo[M], hi[M], exact[M];

    q = problem_make(&u, 1);
    q->p.has_bias = false;
    b = problem_bound(q, true);
    for (int64_t l = 0; l < q->p.k; l++) {
        q->w[l] = 1.0f;
        q->a[l] = l == 0   ? 65504.0f
                  : l == 1 ? 16.0f
                           : 0.0f; /* 65520 rounds to infinity, less to 65504 */
    }
    ref_bound_column(&b, 0, q->w, lo, hi, exact);
    ck_assert(lo[0] == 65504.0 && hi[0] == HUGE_VAL && exact[0] == HUGE_VAL);
    free(q);
}
END_TEST

/* Rows by number: the same answer as all rows. */
START_TEST(chosen_rows)
{
    struct problem *q = problem_make(&setups[0], 2);
    const int64_t rows[] = {39, 0, 7, 7};
    struct ref_bound b = problem_bound(q, true);
    double lo[M], hi[M], exact[M], lo4[4], hi4[4], exact4[4];

    ref_bound_column(&b, 1, q->w + q->p.k, lo, hi, exact);
    b.rows = rows;
    b.row_count = 4;
    ref_bound_column(&b, 1, q->w + q->p.k, lo4, hi4, exact4);
    for (int i = 0; i < 4; i++)
        ck_assert(lo4[i] == lo[rows[i]] && hi4[i] == hi[rows[i]] && exact4[i] == exact[rows[i]]);
    free(q);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("bound");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_loop_test(tc, no_false_alarm, 0, setup_count);
    tcase_add_loop_test(tc, any_order, 0, setup_count);
    tcase_add_loop_test(tc, tightness, 0, (int)(sizeof tight / sizeof tight[0]));
    tcase_add_loop_test(tc, worst_case, 0, (int)(sizeof worst / sizeof worst[0]));
    tcase_add_test(tc, subnormal_weights);
    tcase_add_test(tc, order_of_the_emulation);
    tcase_add_test(tc, rounding_of_a_flush);
    tcase_add_test(tc, orders_of_slices);
    tcase_add_loop_test(tc, faults_are_caught, 0, FAULTS);
    tcase_add_loop_test(tc, special_values, 0, 3);
    tcase_add_test(tc, overflow_of_one_end);
    tcase_add_test(tc, chosen_rows);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
