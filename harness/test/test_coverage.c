/* Is everything in suites/nightly.yaml? For each family the axis table is turned into a suite of
 * pairwise entries that state every value of every axis, without `where`. What its plan holds is
 * what the legality rules allow: the search behind `combine: pairwise` finds a case for each pair
 * of values or proves that none is legal (plan.gaps counts what it could not decide: none). The
 * nightly plan must hold the same values and the same pairs.
 *
 * Not in the suite: the check graph, which needs a provider that records launches
 * (suites/upstream.yaml), and how single tensors are copied, multicast and raster_group_m, which
 * only such a provider's kernels know (suites/upstream-tuning.yaml, test_tuning.c).
 *
 * Not crossed: family (one at a time), m, n, k, padding, max_tokens and seed, which have no list of
 * values (sizes are chosen so that data can show faults); block_shape and warp_shape, whose legal
 * values follow from each other and the sizes (suites/dense.yaml and moe.yaml walk through them);
 * and what the table `apart` lists.
 */
#include "harness/config/suite.h"
#include "harness/kernel/words.h"
#include "harness/test/plan_pairs.h"
#include "reference/dtype.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define F(name) AXIS_FAMILY_BIT(FAMILY_##name)
#define PRODUCT (F(GEMM) | F(EXPERTS))

/* ---- the values ------------------------------------------------------------------------------ */

/* Why pairs are left out (`apart`). */
#define EVERY_CODE                                                                         \
    "scale and zero point codes in turn are for readout and exhaustive; every other fill " \
    "chooses scales that keep its sums exact"
#define WIDE_SCALES "the largest scales overflow f16 accumulators, and slices round their sums"
#define SLICES      "every slice is rounded to the output format: only fill E2 is exact then"
#define NARROW      "these fills need more bits than f16 accumulators have"
#define FEW_WEIGHTS "sums of so few different weights do not fill an accumulator"
#define ALL_PAIRS                                                                                  \
    "exhaustive is of weights x channel or group scales of 8 bits, all pairs of which have to "    \
    "occur in 512 x 512 and to be read out: f16 accumulators overflow, the pairs of fused scales " \
    "are nightly/fused-range"

/* Two options of products, and fill C, are legal only with few values of other axes. They are
 * entries of their own: the search cannot decide many of their pairs otherwise. */
#define NOT_C "E1, E2, W, S, P, O, X, R"
enum part { ALL, FUSED, INTEGER, CONVERSION, ENTRIES };
static const char *const part_names[ENTRIES] = {"all", "fused", "integer", "conversion"};

/* clang-format off */
static const struct {
    enum part entry;
    enum axis_id axis;
    const char *values;
} narrow[] = { /* products only; goes before the next table */
    {FUSED,   AX_FUSED,       "true"},
    {FUSED,   AX_INT_SCALE,   "false"},
    {FUSED,   AX_A,           "e4m3, int8"},
    {FUSED,   AX_B,           "e2m1"},
    {FUSED,   AX_BS,          "e8m0"},
    {FUSED,   AX_SCALE,       "group"},
    {FUSED,   AX_GROUP,       "32, 64, 128"},
    {FUSED,   AX_GROUP_N,     "0"},
    {INTEGER, AX_INT_SCALE,   "true"},
    {INTEGER, AX_FUSED,       "false"},
    {INTEGER, AX_A,           "int8, int4"},
    {INTEGER, AX_SCALE,       "group"},
    {INTEGER, AX_GROUP,       "32, 64, 128"},
    {INTEGER, AX_GROUP_N,     "0"},
    {INTEGER, AX_INPUT_GROUP, "0"},
    {INTEGER, AX_SCALE_2,     "none, tensor"},
    {CONVERSION, AX_FILL,      "C"},
    {CONVERSION, AX_CHECK,     "exact"},
    {CONVERSION, AX_DATA,      "normal"},
    {CONVERSION, AX_INT_SCALE, "false"},
    {CONVERSION, AX_FUSED,     "false"},
    {CONVERSION, AX_A,         "f16, bf16"},
    {CONVERSION, AX_BS,        "f16, bf16"},
    {CONVERSION, AX_SCALE,     "group"},
    {CONVERSION, AX_GROUP_N,   "0"},
    {CONVERSION, AX_INPUT_GROUP, "0"},
    {CONVERSION, AX_ZERO,      "none"},
    {CONVERSION, AX_K,         "256"},
    {ALL,     AX_FILL,        NOT_C},
    {FUSED,   AX_FILL,        NOT_C},
    {INTEGER, AX_FILL,        NOT_C},
    {ALL,     AX_INT_SCALE,   "auto, false"},
    {ALL,     AX_FUSED,       "auto, false"},
};

/* Whole numbers, which the axis table gives as a range, and formats that only count in some
 * modes. */
static const struct {
    unsigned families;
    enum axis_id axis;
    const char *values;
} stated[] = {
    {F(GEMM),           AX_EXPERTS,      "0, 1, 3, 8"},
    {F(EXPERTS),        AX_EXPERTS,      "1, 4, 8"},
    {F(PROCESS_INPUT),  AX_EXPERTS,      "0, 3, 8"},
    {F(MOE_SUM),        AX_EXPERTS,      "0, 3, 16"},
    {F(GEMM),           AX_TOP_K,        "1, 2"},
    {F(EXPERTS),        AX_TOP_K,        "1, 2, 4"},
    {F(MOE_SUM),        AX_TOP_K,        "1, 2, 4, 8"},
    {F(GEMM),           AX_GROUP,        "0, 16, 32, 64, 128"},
    {F(EXPERTS),        AX_GROUP,        "0, 32, 64, 128"},
    {F(QUANT_WEIGHT),   AX_GROUP,        "0, 8, 32, 128"},
    {F(PROCESS_MXFP4),  AX_GROUP,        "16, 32, 128"},
    {F(GEMM),           AX_GROUP_N,      "0, 64, 128"},
    {F(GEMM),           AX_INPUT_GROUP,  "0, 32, 64, 128"},
    {F(GEMM),           AX_NUM_SMS,      "0, 5"},
    {F(GEMM),           AX_CTAS,         "1, 2"},
    {F(GEMM),           AX_STAGES,       "auto, 2, 3, 4"},
    {F(GEMM),           AX_TMA,          "false, true"},
    {F(GEMM),           AX_WRITE_SPLITS, "1, 2"},
    {F(PACK),           AX_BITS,         "1, 2, 3, 4, 5, 6, 7, 8"},
    {F(PROCESS_MXFP4),  AX_RANGE,        "1, 5, 11, 30"},
    {F(PROCESS_INPUT),  AX_QUANT,        "e4m3, e5m2, e3m4, e2m1, e0m3, int8, int4"},
    {F(PROCESS_INPUT),  AX_GROUP_SCALE,  "f32, e8m0, e4m3"},
    {F(PROCESS_INPUT),  AX_QUANT_GROUP,  "0, 16, 32, 128"},
    {F(PROCESS_INPUT),  AX_HADAMARD,     "0, 2, 32, 512"},
    {F(HADAMARD),       AX_HADAMARD,     "1, 2, 4, 8, 16, 32, 64, 128, 256, 512"},
    {F(GEMM),           AX_M,            "24"},
    {F(GEMM),           AX_N,            "128"},
    {F(EXPERTS),        AX_N,            "256"},
    {F(GEMM),           AX_K,            "128"},
    {F(EXPERTS),        AX_M,            "8"},
    {F(EXPERTS),        AX_K,            "128"},
    {F(QUANT_WEIGHT),   AX_M,            "16, 256"},
    {F(QUANT_WEIGHT),   AX_K,            "256"},
    {F(DEQUANT_WEIGHT), AX_M,            "256"},
    {F(PACK),           AX_M,            "256"},
    {F(PACK),           AX_K,            "96"},
    {F(PROCESS_MXFP4),  AX_M,            "16, 255, 32640"},
    {F(PROCESS_MXFP4),  AX_K,            "16, 32, 64, 128, 256, 1024"},
    {F(PROCESS_INPUT),  AX_M,            "24, 256"},
    {F(PROCESS_INPUT),  AX_K,            "256, 512"},
    {F(HADAMARD),       AX_M,            "9"},
    {F(HADAMARD),       AX_K,            "512"},
    {F(MOE_SUM),        AX_M,            "9"},
    {F(MOE_SUM),        AX_K,            "65"},
};

/* Crossed with nothing: what else is then to be had. */
static const uint64_t not_crossed =
    AXIS_BIT(AX_FAMILY) | AXIS_BIT(AX_M) | AXIS_BIT(AX_N) | AXIS_BIT(AX_K) | AXIS_BIT(AX_PAD_N) |
    AXIS_BIT(AX_PAD_K) | AXIS_BIT(AX_MAX_TOKENS) | AXIS_BIT(AX_SEED) | AXIS_BIT(AX_BLOCK) |
    AXIS_BIT(AX_WARP) | AXIS_BIT(AX_TUNING);

/* Pairs that are legal and yet nowhere in the suite. A value is as in YAML, NULL: any. */
static const struct apart {
    unsigned families;
    enum axis_id x;
    const char *x_value;
    enum axis_id y;
    const char *y_value;
    const char *why;
} apart[] = {
    {F(GEMM), AX_SCALES, "all", AX_FILL,  NULL, EVERY_CODE},
    {F(GEMM), AX_SCALES, "all", AX_CHECK, NULL, EVERY_CODE},
    {F(GEMM), AX_SCALES, "all", AX_DATA,  NULL, EVERY_CODE},
    {F(GEMM), AX_SCALES, "all", AX_F16_ACCUM, "true", WIDE_SCALES},
    {F(GEMM), AX_SCALES, "all", AX_STREAM_K,  "true", WIDE_SCALES},
    {F(GEMM), AX_STREAM_K, "true", AX_FILL,  "W", SLICES},
    {F(GEMM), AX_STREAM_K, "true", AX_FILL,  "S", SLICES},
    {F(GEMM), AX_STREAM_K, "true", AX_FILL,  "O", SLICES},
    {F(GEMM), AX_STREAM_K, "true", AX_FILL,  "C", SLICES},
    {F(GEMM), AX_STREAM_K, "true", AX_FILL,  "X", SLICES},
    {F(GEMM), AX_STREAM_K, "true", AX_CHECK, "special", SLICES},
    {F(GEMM), AX_STREAM_K, "true", AX_CHECK, "exhaustive", SLICES},
    {F(GEMM), AX_F16_ACCUM, "true", AX_FILL, "S", NARROW},
    {F(GEMM), AX_F16_ACCUM, "true", AX_FILL, "C", NARROW},
    {F(GEMM), AX_FILL, "W", AX_B, "uint1",      FEW_WEIGHTS},
    {F(GEMM), AX_FILL, "W", AX_B, "uint2",      FEW_WEIGHTS},
    {F(GEMM), AX_FILL, "W", AX_B, "float2e0m1", FEW_WEIGHTS},
    {F(GEMM), AX_FILL, "W", AX_B, "float2e1m0", FEW_WEIGHTS},
    {F(GEMM), AX_CHECK, "exhaustive", AX_BS, NULL, ALL_PAIRS},
    {F(GEMM), AX_CHECK, "exhaustive", AX_SCALE, NULL, ALL_PAIRS},
    {F(GEMM), AX_CHECK, "exhaustive", AX_GROUP_N, NULL, ALL_PAIRS},
    {F(GEMM), AX_CHECK, "exhaustive", AX_ZERO, "float", ALL_PAIRS},
    {F(GEMM), AX_CHECK, "exhaustive", AX_F16_ACCUM, "true", ALL_PAIRS},
    {F(GEMM), AX_CHECK, "exhaustive", AX_FUSED, "true", ALL_PAIRS},
};
/* clang-format on */

static const char *const family_names[] = {
    "gemm",          "quant_weight", "dequant_weight", "pack",    "process_mxfp4",
    "process_input", "hadamard",     "moe_sum",        "experts",
};
enum { FAMILIES = sizeof family_names / sizeof family_names[0] };

static const char *stated_of(enum axis_id x, int family, enum part entry)
{
    const bool product = (PRODUCT & AXIS_FAMILY_BIT(family)) != 0;

    for (size_t i = 0; product && i < sizeof narrow / sizeof narrow[0]; i++)
        if (narrow[i].axis == x && narrow[i].entry == entry)
            return narrow[i].values;
    for (size_t i = 0; i < sizeof stated / sizeof stated[0]; i++)
        if (stated[i].axis == x && stated[i].families & AXIS_FAMILY_BIT(family))
            return stated[i].values;
    return NULL;
}

/* Does a rule that reads nothing else refuse the value? */
static bool is_refused(enum axis_id x, int family, int64_t value)
{
    const uint64_t known = AXIS_BIT(AX_FAMILY) | AXIS_BIT(x);
    int64_t v[AX_COUNT] = {0};

    v[AX_FAMILY] = family;
    v[x] = value;
    return legal_find(v, known, known) >= 0;
}

static const char *formats_of(struct arena *arena, enum axis_id x, int family)
{
    char buf[64], other[64];
    const char *list = "";
    int64_t back;

    for (int64_t i = 0; i < dtype_count; i++) {
        const char *name = axis_format(&axes[x], i, buf, sizeof buf);
        const char *expected = axis_parse(&axes[x], name, &back, other, sizeof other);

        if (!expected && back == i && !is_refused(x, family, i))
            list = arena_printf(arena, "%s%s\"%s\"", list, *list ? ", " : "", name);
    }
    return list;
}

static const char *words_of(struct arena *arena, enum axis_id x)
{
    const char *list = axes[x].may_be_auto && x == AX_MMA ? "auto" : "";

    for (int i = 0; axes[x].words[i]; i++)
        if (x != AX_CHECK || i != CHECK_GRAPH)
            list = arena_printf(arena, "%s%s\"%s\"", list, *list ? ", " : "", axes[x].words[i]);
    return list;
}

/* The list of an axis, without brackets; NULL: its default. */
static const char *values_of(struct arena *arena, enum axis_id x, int family, enum part entry)
{
    const char *stated_values = stated_of(x, family, entry);

    if (stated_values)
        return stated_values;
    switch (axes[x].kind) {
    case AXIS_WORD:
        return words_of(arena, x);
    case AXIS_BOOL:
        return "false, true";
    case AXIS_FORMAT:
    case AXIS_WEIGHT:
        return formats_of(arena, x, family);
    case AXIS_INT:
    case AXIS_TILE:
    case AXIS_SEED:
        return NULL;
    }
    return NULL;
}

/* ---- plans ---------------------------------------------------------------------------------- */

/* Made once, for all tests. */
static struct world nightly;

static void open_nightly(void)
{
    struct world *w = &nightly;

    world_open(w);
    world_plan(w, suite_load(SUITES "/nightly.yaml", &w->arena, &w->suite, &w->errs));
}

static void close_nightly(void)
{
    world_close(&nightly);
}

static const char *entry_text(struct world *w, int family, enum part entry)
{
    const char *text = arena_printf(&w->arena, "  - name: %s\n    family: %s\n", part_names[entry],
                                    family_names[family]);

    for (enum axis_id x = 0; x < AX_COUNT; x++) {
        const char *values =
            x == AX_FAMILY || !pairs_has(x, family) ? NULL : values_of(&w->arena, x, family, entry);

        if (values)
            text = arena_printf(&w->arena, "%s    %s: [%s]\n", text, axes[x].key, values);
    }
    return arena_printf(&w->arena, "%s    combine: pairwise\n", text);
}

/* All that is legal of a family, as far as pairs go. */
static void open_legal(struct world *w, int family)
{
    const int entries = family == FAMILY_GEMM ? ENTRIES : family == FAMILY_EXPERTS ? CONVERSION : 1;
    const char *text = "suite: legal\nentries:\n";

    world_open(w);
    for (int e = 0; e < entries; e++)
        text = arena_printf(&w->arena, "%s%s", text, entry_text(w, family, (enum part)e));
    world_plan(w,
               suite_load_text("legal.yaml", text, strlen(text), &w->arena, &w->suite, &w->errs));
    ck_assert_uint_eq(w->plan.gaps, 0);
}

/* ---- pairs ----------------------------------------------------------------------------------- */

static int apart_row(const struct pairs *p, int family, int i, int j)
{
    for (int row = 0; row < (int)(sizeof apart / sizeof apart[0]); row++) {
        const struct apart *a = &apart[row];

        if (a->families & AXIS_FAMILY_BIT(family) &&
            ((pairs_is(p, i, a->x, a->x_value) && pairs_is(p, j, a->y, a->y_value)) ||
             (pairs_is(p, j, a->x, a->x_value) && pairs_is(p, i, a->y, a->y_value))))
            return row;
    }
    return -1;
}

/* Pairs of legal cases that the suite has not and `apart` does not name; used[row] counts those
 * that it names. i == j is a value. */
static int missing(int family, int *used, bool say)
{
    static struct pairs p, q; /* p legal, q in the suite; numbers are p's */
    struct world legal;
    int count = 0;

    open_legal(&legal, family);
    p.count = 0;
    memset(p.together, 0, sizeof p.together);
    pairs_add(&p, &legal.plan, family, not_crossed);
    q = p;
    memset(q.together, 0, sizeof q.together);
    pairs_add(&q, &nightly.plan, family, not_crossed);
    for (int i = 0; i < p.count; i++)
        for (int j = 0; j <= i; j++) {
            int row;

            if (!p.together[i][j] || q.together[i][j])
                continue;
            row = i == j ? -1 : apart_row(&p, family, i, j);
            if (row >= 0) {
                used[row]++;
                continue;
            }
            count++;
            if (say)
                pairs_say(&p, family_names[family], i, j);
        }
    world_close(&legal);
    return count;
}

START_TEST(every_legal_pair_occurs)
{
    int used[sizeof apart / sizeof apart[0]] = {0};

    ck_assert_int_eq(missing(_i, used, true), 0);
    for (size_t i = 0; i < sizeof apart / sizeof apart[0]; i++)
        ck_assert_msg(used[i] || !(apart[i].families & AXIS_FAMILY_BIT(_i)),
                      "nothing needs the exception %s with %s: %s", axes[apart[i].x].key,
                      axes[apart[i].y].key, apart[i].why);
}
END_TEST

/* The search is no better than its question: take a value out of the suite, and it is missed. */
START_TEST(a_gap_is_seen)
{
    int used[sizeof apart / sizeof apart[0]] = {0};

    for (size_t i = 0; i < nightly.plan.count; i++)
        if (nightly.plan.cases[i].v[AX_FAMILY] == FAMILY_PACK &&
            nightly.plan.cases[i].v[AX_BITS] == 5)
            nightly.plan.cases[i].v[AX_BITS] = 4;
    ck_assert_int_gt(missing(FAMILY_PACK, used, false), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("coverage");
    TCase *tc = tcase_create("coverage");
    SRunner *r = srunner_create(s);
    int failed;

    suite_add_tcase(s, tc);
    tcase_set_timeout(tc, 60);
    tcase_add_unchecked_fixture(tc, open_nightly, close_nightly);
    tcase_add_loop_test(tc, every_legal_pair_occurs, 0, FAMILIES);
    tcase_add_test(tc, a_gap_is_seen);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
