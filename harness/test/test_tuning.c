/* Is all of the tuning space in suites/upstream-tuning.yaml? Every value of its lists that is
 * legal, and every two values that can stand together, occur; what `where` leaves out is in the
 * table `apart`, with the reason. Without its `where` the suite says what is legal: the search
 * behind `combine: pairwise` finds a case for each pair or proves that there is none. */
#include "harness/test/plan_pairs.h"

#include <stdlib.h>

#define REGISTERS "two such thread blocks need more registers than an SM has"
#define INVARIANT "invariant is for batch-invariant kernels, and they for it"
#define NO_BIAS   "there is no bias to copy"
#define K_WARPS   "its warps divide k: such kernels are not batch-invariant"

/* clang-format off */
static const struct {
    enum axis_id x, y;
    const char *x_value, *y_value, *why;
} apart[] = {
    {AX_TMA, AX_BIAS, "bias", "false", NO_BIAS},
    {AX_WARP, AX_CTAS, "16x16x64", "2", REGISTERS},
    {AX_WARP, AX_CTAS, "32x64x64", "2", REGISTERS},
    {AX_BLOCK, AX_CTAS, "128x128x64", "2", REGISTERS},
};

/* What has to be there at least. */
static const struct {
    enum axis_id axis;
    const char *values[16];
} wanted[] = {
    {AX_GEMM_TYPE,  {"dense", "indexed", "grouped_contiguous", "grouped_masked"}},
    {AX_A,          {"f16", "bf16", "e4m3", "int8"}},
    {AX_B,          {"uint4", "e2m1", "uint8", "float8e4m3", "int8"}},
    {AX_MMA,        {"mma", "wgmma"}},
    {AX_STAGES,     {"2", "3", "4", "6", "8"}},
    {AX_WARP_SPEC,  {"false", "true"}},
    {AX_TMA,        {"false", "true", "plain", "mbarrier", "a", "b", "a_b", "c", "scales", "bias",
                     "as", "multicast_a", "multicast_b"}},
    {AX_STREAM_K,   {"false", "true"}},
    {AX_NUM_SMS,    {"0", "6"}},
    {AX_CTAS,       {"1", "2"}},
    {AX_RASTER,     {"1", "2", "5"}},
    {AX_WRITE_SPLITS, {"1", "2"}},
    {AX_CHECK,      {"exact", "model", "invariant"}},
};
/* clang-format on */
enum { APART = sizeof apart / sizeof apart[0], WANTED = sizeof wanted / sizeof wanted[0] };

/* What follows from other axes. */
static const uint64_t not_crossed = AXIS_BIT(AX_SEED) | AXIS_BIT(AX_FILL) | AXIS_BIT(AX_INT_SCALE);

static struct world tuning, legal; /* made once; `legal` is the suite without `where` */

static char *file_text(const char *path)
{
    FILE *f = fopen(path, "r");
    char *text = arena_zalloc(&legal.arena, 1 << 16, 1);

    ck_assert(f && text);
    ck_assert_uint_lt(fread(text, 1, 1 << 16, f), 1 << 16);
    (void)fclose(f);
    return text;
}

/* Conditions end with ']' or in their line. */
static void remove_conditions(char *text)
{
    char *at;

    while ((at = strstr(text, "    where:")) != NULL) {
        const char *end = strchr(at, '\n');

        if (strstr(at, "where: [") == at + 4)
            end = strchr(strstr(at, "\"]"), '\n');
        memmove(at, end + 1, strlen(end + 1) + 1);
    }
}

static void open_worlds(void)
{
    char *text;

    world_open(&tuning);
    world_plan(&tuning, suite_load(SUITES "/upstream-tuning.yaml", &tuning.arena, &tuning.suite,
                                   &tuning.errs));
    world_open(&legal);
    text = file_text(SUITES "/upstream-tuning.yaml");
    remove_conditions(text);
    world_plan(&legal, suite_load_text("legal.yaml", text, strlen(text), &legal.arena, &legal.suite,
                                       &legal.errs));
}

static void close_worlds(void)
{
    world_close(&legal);
    world_close(&tuning);
}

static int apart_row(const struct pairs *p, int i, int j)
{
    for (int row = 0; row < APART; row++)
        if ((pairs_is(p, i, apart[row].x, apart[row].x_value) &&
             pairs_is(p, j, apart[row].y, apart[row].y_value)) ||
            (pairs_is(p, j, apart[row].x, apart[row].x_value) &&
             pairs_is(p, i, apart[row].y, apart[row].y_value)))
            return row;
    return -1;
}

/* Pairs of `p` that `q` lacks and `apart` does not name; used[row] counts those that it names. */
static int missing(const struct pairs *p, const struct pairs *q, int used[APART])
{
    int count = 0;

    for (int i = 0; i < p->count; i++)
        for (int j = 0; j <= i; j++) {
            const int row = i == j ? -1 : apart_row(p, i, j);

            if (!p->together[i][j] || q->together[i][j])
                continue;
            if (row < 0) {
                count++;
                pairs_say(p, "upstream-tuning", i, j);
            } else {
                used[row]++;
            }
        }
    return count;
}

START_TEST(every_legal_pair_occurs)
{
    static struct pairs p, q; /* p legal, q in the suite; numbers are p's */
    int used[APART] = {0};

    ck_assert_uint_eq(legal.plan.gaps, 0);
    ck_assert_uint_eq(tuning.plan.gaps, 0);
    pairs_add(&p, &legal.plan, 0, not_crossed);
    q = p;
    memset(q.together, 0, sizeof q.together);
    pairs_add(&q, &tuning.plan, 0, not_crossed);
    ck_assert_int_eq(missing(&p, &q, used), 0);
    for (int row = 0; row < APART; row++)
        ck_assert_msg(used[row], "nothing needs the exception %s with %s: %s",
                      axes[apart[row].x].key, axes[apart[row].y].key, apart[row].why);
}
END_TEST

START_TEST(values_are_there)
{
    const enum axis_id x = wanted[_i].axis;

    for (int i = 0; i < 16 && wanted[_i].values[i]; i++) {
        bool found = false;

        for (size_t c = 0; c < tuning.plan.count && !found; c++)
            found = pairs_value_is(x, tuning.plan.cases[c].v[x], wanted[_i].values[i]);
        ck_assert_msg(found, "%s=%s", axes[x].key, wanted[_i].values[i]);
    }
}
END_TEST

/* A kernel is compiled for each: no two cases have the same one, but for the number of rows and the
 * check. */
START_TEST(kernels_are_not_compiled_twice)
{
    const struct plan *plan = &tuning.plan;
    size_t same = 0;

    for (size_t a = 0; a < plan->count; a++)
        for (size_t b = 0; b < a; b++) {
            bool differs = false;

            for (int x = 0; x < AX_COUNT && !differs; x++)
                differs = x != AX_M && x != AX_CHECK && x != AX_FILL && x != AX_MAX_TOKENS &&
                          plan->cases[a].v[x] != plan->cases[b].v[x];
            same += !differs;
        }
    ck_assert_uint_ge(plan->count, 250);
    ck_assert_uint_le(plan->count, 350);
    ck_assert_uint_eq(same, 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("tuning");
    TCase *tc = tcase_create("tuning");
    SRunner *r = srunner_create(s);
    int failed;

    suite_add_tcase(s, tc);
    tcase_set_timeout(tc, 60);
    tcase_add_unchecked_fixture(tc, open_worlds, close_worlds);
    tcase_add_test(tc, every_legal_pair_occurs);
    tcase_add_loop_test(tc, values_are_there, 0, WANTED);
    tcase_add_test(tc, kernels_are_not_compiled_twice);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
