#include "reference/routing.h"

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_IDS = 4096, MOST_EXPERTS = 64 };

static const struct ref_routing shapes[] = {
    {.m = 1, .experts = 1, .top_k = 1},   {.m = 7, .experts = 2, .top_k = 2},
    {.m = 33, .experts = 4, .top_k = 2},  {.m = 64, .experts = 8, .top_k = 4},
    {.m = 100, .experts = 5, .top_k = 1}, {.m = 17, .experts = 64, .top_k = 8},
    {.m = 3, .experts = 16, .top_k = 16},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0], KINDS = REF_ROUTING_SPARE + 1 };

/* Loop index: kind fastest, then shape. */
static struct ref_routing routing_at(int i, uint64_t seed)
{
    struct ref_routing r = shapes[i / KINDS];

    r.kind = (enum ref_routing_kind)(i % KINDS);
    r.seed = seed;
    return r;
}

static int64_t expert_of(int32_t id)
{
    return id >= 0 ? id : REF_ELSEWHERE(id);
}

static bool is_allowed(int64_t e, int64_t experts)
{
    return experts == 1 || e % 4 == 1 || e % 4 == 2;
}

/* How many experts a token can choose from. */
static int64_t choices(const struct ref_routing *r)
{
    int64_t n = 0;

    for (int64_t e = 0; e < r->experts; e++)
        n += r->kind != REF_ROUTING_EMPTY || is_allowed(e, r->experts);
    return n;
}

static int repeated(const int32_t *ids, int64_t count)
{
    int n = 0;

    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < i; j++)
            n += ids[i] == ids[j] && ids[i] != REF_NOWHERE;
    return n;
}

START_TEST(ids_keep_their_promise)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct ref_routing r = routing_at(_i, seed);
        int32_t ids[MOST_IDS];

        ref_route_tokens(&r, ids);
        for (int64_t t = 0; t < r.m; t++) {
            const int32_t *own = ids + t * r.top_k;
            bool twice = r.kind == REF_ROUTING_DUPLICATE && r.top_k > 1 && t % 2 == 0;
            bool distinct = r.kind != REF_ROUTING_SINGLE && r.top_k <= choices(&r);

            for (int64_t s = 0; s < r.top_k; s++) {
                ck_assert(own[s] == REF_NOWHERE ||
                          (expert_of(own[s]) >= 0 && expert_of(own[s]) < r.experts));
                if (r.kind != REF_ROUTING_MISSING)
                    ck_assert_int_ge(own[s], 0);
                else if (own[s] != REF_NOWHERE)
                    ck_assert_int_eq(own[s] < 0, expert_of(own[s]) % 3 == 2);
                if (r.kind == REF_ROUTING_EMPTY)
                    ck_assert(is_allowed(own[s], r.experts));
                if (r.kind == REF_ROUTING_SINGLE)
                    ck_assert_int_eq(own[s], ids[0]);
            }
            if (twice)
                ck_assert_int_eq(own[0], own[1]);
            if (distinct)
                ck_assert_int_eq(repeated(own, r.top_k), twice);
        }
    }
}
END_TEST

/* Each kind shows what it is for. */
START_TEST(kinds_differ)
{
    struct ref_routing r = {.m = 1000, .experts = 8, .top_k = 2, .seed = 5};
    int64_t count[KINDS][8] = {{0}}, lost = 0, elsewhere = 0;
    int32_t ids[2000];

    for (int kind = 0; kind < KINDS; kind++) {
        r.kind = (enum ref_routing_kind)kind;
        ref_route_tokens(&r, ids);
        for (int i = 0; i < 2000; i++) {
            if (ids[i] >= 0)
                count[kind][ids[i]]++;
            lost += kind == REF_ROUTING_MISSING && ids[i] == REF_NOWHERE;
            elsewhere += kind == REF_ROUTING_MISSING && ids[i] < REF_NOWHERE;
        }
    }
    for (int e = 0; e < 8; e++) {
        ck_assert(count[REF_ROUTING_UNIFORM][e] > 180 && count[REF_ROUTING_UNIFORM][e] < 320);
        ck_assert_int_eq(count[REF_ROUTING_EMPTY][e] > 0, is_allowed(e, 8));
        ck_assert_int_eq(count[REF_ROUTING_MISSING][e] > 0, e % 3 != 2);
    }
    ck_assert_int_gt(count[REF_ROUTING_SKEWED][0], 3 * count[REF_ROUTING_SKEWED][7]);
    ck_assert(lost > 420 && lost < 580);
    ck_assert(elsewhere > 200 && elsewhere < 600);
}
END_TEST

/* A token's experts depend on nothing but seed, kind, token and the number of experts. */
START_TEST(tokens_are_independent)
{
    struct ref_routing r = routing_at(_i, 9), less = r, other = r;
    int32_t ids[MOST_IDS], fewer[MOST_IDS], others[MOST_IDS];

    less.m = r.m / 2;
    other.seed = 10;
    ref_route_tokens(&r, ids);
    ref_route_tokens(&less, fewer);
    ref_route_tokens(&other, others);
    ck_assert_mem_eq(ids, fewer, (size_t)(less.m * r.top_k) * sizeof *ids);
    if (r.experts > 1 && r.m > 1 && r.kind != REF_ROUTING_SINGLE && choices(&r) > r.top_k)
        ck_assert_mem_ne(ids, others, (size_t)(r.m * r.top_k) * sizeof *ids);
}
END_TEST

static int64_t occurrences(const int32_t *x, int64_t count, int32_t value)
{
    int64_t n = 0;

    for (int64_t i = 0; i < count; i++)
        n += x[i] == value;
    return n;
}

/* Every id stands once, in a block of its expert (-1 for those of other ranks); blocks of an
 * expert are as few as can be. */
START_TEST(sorting_is_complete)
{
    static const int64_t blocks[] = {1, 8, 16, 64};

    for (size_t b = 0; b < sizeof blocks / sizeof blocks[0]; b++) {
        struct ref_routing r = routing_at(_i, 3);
        int64_t block = blocks[b], count = r.m * r.top_k, padded, want = 0;
        int32_t ids[MOST_IDS], *sorted, *experts;

        ref_route_tokens(&r, ids);
        padded = ref_sort_ids(ids, count, r.experts, block, NULL, NULL);
        for (int32_t e = 0; e < r.experts; e++) {
            want += (occurrences(ids, count, e) + block - 1) / block * block;
            want += (occurrences(ids, count, REF_ELSEWHERE(e)) + block - 1) / block * block;
        }
        ck_assert_int_eq(padded, want);
        sorted = calloc((size_t)padded + 1, sizeof *sorted);
        experts = calloc((size_t)(padded / block) + 1, sizeof *experts);
        ck_assert(sorted && experts);
        sorted[padded] = experts[padded / block] = 12345;
        ck_assert_int_eq(ref_sort_ids(ids, count, r.experts, block, sorted, experts), padded);
        ck_assert_int_eq(sorted[padded], 12345);
        ck_assert_int_eq(experts[padded / block], 12345);
        for (int32_t i = 0; i < count; i++)
            ck_assert_int_eq(occurrences(sorted, padded, i), ids[i] != REF_NOWHERE);
        for (int64_t i = 0; i < padded; i++) {
            ck_assert_int_le(sorted[i], count);
            if (sorted[i] < count)
                ck_assert_int_eq(experts[i / block], ids[sorted[i]] < 0 ? -1 : ids[sorted[i]]);
        }
        for (int64_t i = 0; i < padded; i += block) /* no block is only padding */
            ck_assert_int_lt(sorted[i], count);
        free(sorted);
        free(experts);
    }
}
END_TEST

START_TEST(counts_fit)
{
    for (int masked = 0; masked < 2; masked++) {
        struct ref_routing r = routing_at(_i, 11);
        int64_t counts[MOST_EXPERTS], sum = 0, used = 0, most;
        bool loses = r.kind == REF_ROUTING_MISSING || r.kind == REF_ROUTING_SPARE;

        r.top_k = 1;
        r.m *= masked ? r.experts : 1;
        r.max_tokens = masked ? r.m / r.experts : 0;
        most = loses && !masked ? r.m - r.m / 4 : r.m;
        ref_route_counts(&r, counts);
        for (int64_t e = 0; e < r.experts; e++) {
            ck_assert_int_ge(counts[e], 0);
            ck_assert(!masked || counts[e] <= r.max_tokens);
            if (r.kind == REF_ROUTING_EMPTY && !is_allowed(e, r.experts))
                ck_assert_int_eq(counts[e], 0);
            sum += counts[e];
            used += counts[e] > 0;
        }
        ck_assert_int_le(sum, most);
        if (!masked && r.kind != REF_ROUTING_MISSING)
            ck_assert_int_eq(sum, most);
        if (r.kind == REF_ROUTING_SINGLE)
            ck_assert_int_eq(used, 1);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("routing");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_loop_test(tc, ids_keep_their_promise, 0, SHAPES * KINDS);
    tcase_add_test(tc, kinds_differ);
    tcase_add_loop_test(tc, tokens_are_independent, 0, SHAPES * KINDS);
    tcase_add_loop_test(tc, sorting_is_complete, 0, SHAPES * KINDS);
    tcase_add_loop_test(tc, counts_fit, 0, SHAPES * KINDS);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
