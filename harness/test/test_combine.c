#include "harness/kernel/combine.h"

#include "harness/kernel/legal.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_RULES = 12, MOST_ROWS = 200000 };

/* A small space: a few axes with a few values each, and forbidden tuples of values of two or three
 * axes. */
struct space {
    struct axis_values lists[AX_COUNT];
    int64_t values[AX_COUNT][64];
    struct {
        uint64_t axes;
        int64_t v[AX_COUNT]; /* values at `axes` that must not meet */
    } forbidden[MOST_RULES];
    int rule_count;
    int64_t modulus; /* 0, or: allowed only if the sum of all values is 0 modulo this */

    int64_t (*rows)[AX_COUNT]; /* emitted */
    size_t count, dropped;
    size_t stop_after; /* emit refuses then */
    struct arena arena;
};

static struct space *space_open(void)
{
    struct space *s = calloc(1, sizeof *s);

    ck_assert_ptr_nonnull(s);
    s->rows = calloc(MOST_ROWS, sizeof *s->rows);
    ck_assert_ptr_nonnull(s->rows);
    ck_assert(arena_init(&s->arena, (size_t)1 << 28));
    s->stop_after = SIZE_MAX;
    for (int x = 0; x < AX_COUNT; x++)
        s->lists[x] = (struct axis_values){.values = s->values[x], .count = 1};
    return s;
}

static void space_close(struct space *s)
{
    arena_free(&s->arena);
    free(s->rows);
    free(s);
}

static void give_values(struct space *s, int x, size_t count)
{
    s->lists[x].count = count;
    for (size_t i = 0; i < count; i++)
        s->values[x][i] = (int64_t)i;
}

static uint64_t random_bits(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static bool rule_breaks(const struct space *s, int rule, const int64_t *v)
{
    for (int x = 0; x < AX_COUNT; x++)
        if (s->forbidden[rule].axes & AXIS_BIT(x) && v[x] != s->forbidden[rule].v[x])
            return false;
    return true;
}

static bool sum_breaks(const struct space *s, const int64_t *v)
{
    int64_t sum = 0;

    for (int x = 0; x < AX_COUNT; x++)
        sum += v[x];
    return s->modulus && sum % s->modulus != 0;
}

static bool broken(const int64_t v[AX_COUNT], uint64_t known, uint64_t fresh, uint64_t *blame,
                   void *context)
{
    const struct space *s = context;

    for (int i = 0; i < s->rule_count; i++)
        if ((s->forbidden[i].axes & fresh) && !(s->forbidden[i].axes & ~known) &&
            rule_breaks(s, i, v)) {
            *blame = s->forbidden[i].axes;
            return true;
        }
    if (known != AXIS_ALL || !sum_breaks(s, v))
        return false;
    *blame = known;
    return true;
}

static bool is_allowed(const struct space *s, const int64_t *v)
{
    for (int i = 0; i < s->rule_count; i++)
        if (rule_breaks(s, i, v))
            return false;
    return !sum_breaks(s, v);
}

static void dropped(size_t combinations, void *context)
{
    struct space *s = context;

    s->dropped += combinations;
}

static bool emit(const int64_t v[AX_COUNT], void *context)
{
    struct space *s = context;

    if (s->count == MOST_ROWS)
        return false;
    memcpy(s->rows[s->count++], v, sizeof s->rows[0]);
    return s->count < s->stop_after;
}

static enum combine_end run(struct space *s, enum combine how, size_t count, uint64_t seed,
                            size_t *gaps)
{
    struct combine_in in = {.axes = s->lists,
                            .seed = seed,
                            .arena = &s->arena,
                            .context = s,
                            .broken = broken,
                            .dropped = dropped,
                            .emit = emit};

    s->count = s->dropped = 0;
    arena_reset(&s->arena);
    return combine_run(&in, how, count, gaps);
}

static void make_random(struct space *s, uint64_t *state)
{
    int used = 2 + (int)(random_bits(state) % 5);

    for (int i = 0; i < used; i++)
        give_values(s, i * 5 + 1, 1 + random_bits(state) % 4);
    s->rule_count = (int)(random_bits(state) % (MOST_RULES + 1));
    for (int i = 0; i < s->rule_count; i++)
        for (int part = 0; part < 3; part++) {
            int x = (int)(random_bits(state) % (uint64_t)used) * 5 + 1;

            s->forbidden[i].axes |= AXIS_BIT(x);
            s->forbidden[i].v[x] = (int64_t)(random_bits(state) % s->lists[x].count);
        }
    if (random_bits(state) % 4 == 0)
        s->modulus = 3;
}

/* The product in order, first axis slowest; false: that was the last. */
static bool next_row(const struct space *s, int64_t *v)
{
    for (int x = AX_COUNT; x-- > 0;) {
        if (++v[x] < (int64_t)s->lists[x].count)
            return true;
        v[x] = 0;
    }
    return false;
}

static size_t brute_force(const struct space *s, int64_t (*out)[AX_COUNT], size_t *product)
{
    int64_t v[AX_COUNT] = {0};
    size_t count = 0;

    *product = 0;
    do {
        ++*product;
        if (is_allowed(s, v))
            memcpy(out[count++], v, sizeof v);
    } while (next_row(s, v));
    return count;
}

static bool occurs(int64_t (*rows)[AX_COUNT], size_t count, const int64_t *v, int x, int y)
{
    for (size_t i = 0; i < count; i++)
        if (rows[i][x] == v[x] && rows[i][y] == v[y])
            return true;
    return false;
}

static bool is_in(int64_t (*rows)[AX_COUNT], size_t count, const int64_t *v)
{
    for (size_t i = 0; i < count; i++)
        if (!memcmp(rows[i], v, sizeof rows[i]))
            return true;
    return false;
}

/* Pairs of values of two axes in all[0..count) that no emitted row has. (No assertions in here:
 * each costs a system call.) */
static int uncovered(const struct space *s, int64_t (*all)[AX_COUNT], size_t count)
{
    int missing = 0;

    for (size_t i = 0; i < count; i++)
        for (int x = 0; x < AX_COUNT; x++)
            for (int y = 0; y < x; y++)
                if (s->lists[x].count > 1 || s->lists[y].count > 1)
                    missing += !occurs(s->rows, s->count, all[i], x, y);
    return missing;
}

/* Emitted rows that are not allowed or come twice. */
static int strangers(const struct space *s, int64_t (*all)[AX_COUNT], size_t count)
{
    int found = 0;

    for (size_t i = 0; i < s->count; i++)
        found += !is_in(all, count, s->rows[i]) || is_in(s->rows, i, s->rows[i]);
    return found;
}

/* Small spaces against enumeration: `full` gives the allowed ones in order and counts the rest;
 * `pairwise` covers each pair that occurs and emits only allowed ones; `random` gives distinct
 * allowed ones, all of them if asked for more. */
static void compare_one(uint64_t number)
{
    uint64_t state = number * 7919 + 1;
    struct space *s = space_open();
    int64_t(*all)[AX_COUNT] = calloc(4096, sizeof *all);
    size_t product, count, gaps, asked;

    ck_assert_ptr_nonnull(all);
    make_random(s, &state);
    count = brute_force(s, all, &product);

    ck_assert(run(s, COMBINE_FULL, 0, 1, NULL) == COMBINE_DONE);
    ck_assert_uint_eq(s->count, count);
    ck_assert(!count || !memcmp(s->rows, all, count * sizeof *all));
    ck_assert_uint_eq(s->dropped, product - count);

    ck_assert(run(s, COMBINE_PAIRWISE, 0, state, &gaps) == COMBINE_DONE);
    ck_assert_uint_eq(gaps, 0);
    ck_assert_int_eq(strangers(s, all, count), 0);
    ck_assert_int_eq(uncovered(s, all, count), 0);

    asked = count ? random_bits(&state) % (count + 3) : 5;
    ck_assert(run(s, COMBINE_RANDOM, asked, state, NULL) == COMBINE_DONE);
    ck_assert_uint_eq(s->count, asked < count ? asked : count);
    ck_assert_int_eq(strangers(s, all, count), 0);
    free(all);
    space_close(s);
}

START_TEST(against_brute_force)
{
    for (uint64_t i = 0; i < 30; i++)
        compare_one((uint64_t)_i * 30 + i);
}
END_TEST

START_TEST(same_input_same_rows)
{
    uint64_t state = 5;
    struct space *s = space_open();
    int64_t(*kept)[AX_COUNT] = calloc(MOST_ROWS, sizeof *kept);

    ck_assert_ptr_nonnull(kept);
    make_random(s, &state);
    for (int x = 2; x < 6; x++)
        give_values(s, x, 4);
    for (int how = COMBINE_FULL; how <= COMBINE_RANDOM; how++) {
        size_t count;

        ck_assert(run(s, (enum combine)how, 20, 1, NULL) == COMBINE_DONE);
        count = s->count;
        memcpy(kept, s->rows, count * sizeof *kept);
        ck_assert(run(s, (enum combine)how, 20, 1, NULL) == COMBINE_DONE);
        ck_assert(s->count == count && !memcmp(kept, s->rows, count * sizeof *kept));
        ck_assert(run(s, (enum combine)how, 20, 2, NULL) == COMBINE_DONE);
        ck_assert((how == COMBINE_FULL) == !memcmp(kept, s->rows, count * sizeof *kept));
    }
    free(kept);
    space_close(s);
}
END_TEST

/* Without constraints a covering array has at least the product of the two longest lists. Published
 * sizes of 3^4, 3^13, 10^20 by a greedy tool: 9, 15 and 180 rows (AETG, Cohen et al. 1997). */
/* clang-format off */
static const struct {
    struct { int axes; size_t values; } part[3];
    size_t most;
} arrays[] = {
    {{{4, 3}},                    13},
    {{{13, 3}},                   24},
    {{{29, 4}, {8, 2}},           60},
    {{{1, 4}, {36, 2}},           20},
    {{{20, 10}},                 260},
    {{{2, 60}, {10, 10}, {8, 3}}, 3700},
};
/* clang-format on */

START_TEST(covering_array_sizes)
{
    struct space *s = space_open();
    struct timespec from, to;
    size_t least = 1, gaps;
    double ms;
    int x = 0;

    for (int part = 0; part < 3; part++)
        for (int i = 0; i < arrays[_i].part[part].axes; i++)
            give_values(s, x++, arrays[_i].part[part].values);
    least = s->lists[0].count * s->lists[1].count;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    ck_assert(run(s, COMBINE_PAIRWISE, 0, 1, &gaps) == COMBINE_DONE);
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    ms = (double)(to.tv_sec - from.tv_sec) * 1e3 + (double)(to.tv_nsec - from.tv_nsec) * 1e-6;
    printf("array %d: %zu rows, %.1f ms of CPU\n", _i, s->count, ms);
    ck_assert_uint_eq(gaps, 0);
    ck_assert_uint_ge(s->count, least);
    ck_assert_uint_le(s->count, arrays[_i].most);
    space_close(s);
}
END_TEST

/* Two axes far apart in the order exclude each other wholly: each pair with the bad value must be
 * proved impossible at once, not by trying the 10^18 values in between. */
START_TEST(impossible_pairs_are_proved)
{
    struct space *s = space_open();
    size_t gaps;

    for (int x = 0; x < 20; x++)
        give_values(s, x, 10);
    for (int i = 0; i < 10; i++) {
        s->forbidden[i].axes = AXIS_BIT(0) | AXIS_BIT(19);
        s->forbidden[i].v[0] = 3;
        s->forbidden[i].v[19] = i;
    }
    s->rule_count = 10;
    ck_assert(run(s, COMBINE_PAIRWISE, 0, 1, &gaps) == COMBINE_DONE);
    ck_assert_uint_eq(gaps, 0);
    ck_assert_uint_ge(s->count, 100);
    for (size_t i = 0; i < s->count; i++)
        ck_assert_int_ne(s->rows[i][0], 3);
    space_close(s);
}
END_TEST

START_TEST(nothing_allowed)
{
    struct space *s = space_open();
    size_t gaps;

    for (int x = 0; x < AX_COUNT; x++)
        give_values(s, x, 9);
    for (int i = 0; i < 9; i++) {
        s->forbidden[i].axes = AXIS_BIT(AX_COUNT - 1);
        s->forbidden[i].v[AX_COUNT - 1] = i;
    }
    s->rule_count = 9;
    for (int how = COMBINE_FULL; how <= COMBINE_RANDOM; how++) {
        ck_assert(run(s, (enum combine)how, 10, 1, &gaps) == COMBINE_DONE);
        ck_assert_uint_eq(s->count, 0);
        ck_assert_uint_eq(gaps, 0);
    }
    space_close(s);
}
END_TEST

START_TEST(emit_stops)
{
    struct space *s = space_open();

    give_values(s, 0, 9);
    give_values(s, 1, 9);
    s->stop_after = 4;
    for (int how = COMBINE_FULL; how <= COMBINE_RANDOM; how++) {
        ck_assert(run(s, (enum combine)how, 10, 1, NULL) == COMBINE_STOPPED);
        ck_assert_uint_eq(s->count, 4);
    }
    space_close(s);
}
END_TEST

START_TEST(small_arena)
{
    struct space *s = space_open();

    give_values(s, 0, 60);
    give_values(s, 1, 60);
    arena_free(&s->arena);
    ck_assert(arena_init(&s->arena, 7000));
    ck_assert(run(s, COMBINE_PAIRWISE, 0, 1, NULL) == COMBINE_NO_MEMORY);
    ck_assert(run(s, COMBINE_RANDOM, 3000, 1, NULL) == COMBINE_NO_MEMORY);
    space_close(s);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("combine");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_loop_test(tc, against_brute_force, 0, 10);
    tcase_add_test(tc, same_input_same_rows);
    tcase_add_loop_test(tc, covering_array_sizes, 0, (int)(sizeof arrays / sizeof arrays[0]));
    tcase_add_test(tc, impossible_pairs_are_proved);
    tcase_add_test(tc, nothing_allowed);
    tcase_add_test(tc, emit_stops);
    tcase_add_test(tc, small_arena);
    tcase_set_timeout(tc, 60);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
