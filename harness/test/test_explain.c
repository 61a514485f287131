/* Parts of an explanation that look at no kernel: places in words, hypotheses, suites, lines. */
#include "harness/cli/words.h"
#include "harness/explain/explain.h"
#include "harness/explain/locate.h"
#include "harness/test/case_run.h"

#include <stdlib.h>

/* ---- places ---------------------------------------------------------------------------------- */

static const struct period periods[] = {{96, "block_n"}, {24, "warp_n"}};

static bool none(int64_t i)
{
    return i < 0;
}
static bool all(int64_t i)
{
    return i >= 0;
}
static bool fifth(int64_t i)
{
    return i == 5;
}
static bool last(int64_t i)
{
    return i == 191;
}
static bool tail(int64_t i)
{
    return i >= 160;
}
static bool head(int64_t i)
{
    return i < 8;
}
static bool middle(int64_t i)
{
    return i >= 8 && i <= 10;
}
static bool odd(int64_t i)
{
    return i % 2 == 1;
}
static bool tiles(int64_t i)
{
    return i % 96 >= 88;
}
static bool warps(int64_t i)
{
    return i % 24 == 23;
}
static bool most(int64_t i)
{
    return i != 7 && i != 100;
}
static bool scattered(int64_t i)
{
    return i == 1 || i == 17 || i == 60 || i == 61 || i == 100 || i == 105 || i == 190;
}

static const struct {
    bool (*wrong)(int64_t i);
    const char *text;
} places[] = {
    {none, "no column"},
    {all, "all 192 columns"},
    {fifth, "column 5 of 192"},
    {last, "the last column 191 of 192"},
    {tail, "the last 32 of 192 columns"},
    {head, "the first 8 of 192 columns"},
    {middle, "columns 8 to 10 of 192"},
    {odd, "column 1 of every 2"},
    {tiles, "columns 88 to 95 of every 96 (block_n)"},
    {warps, "column 23 of every 24 (warp_n)"},
    {most, "all 192 columns but 7 100"},
    {scattered, "7 of 192 columns: 1, 17, 60, 61, 100, 105, ..."},
};

START_TEST(places_are_told)
{
    bool wrong[192];
    const struct axis_set s = {"column", "columns", 192, wrong, NULL, periods, 2};
    char text[200];

    for (int64_t i = 0; i < s.count; i++)
        wrong[i] = places[_i].wrong(i);
    ck_assert_str_eq(locate_axis(&s, text, sizeof text), places[_i].text);
}
END_TEST

/* Only every fourth index was looked at. */
START_TEST(places_of_a_sample)
{
    bool wrong[192] = {false}, seen[192];
    const struct axis_set s = {"k", "k", 192, wrong, seen, NULL, 0};
    char text[200];

    for (int64_t i = 0; i < s.count; i++)
        seen[i] = i % 4 == 0;
    wrong[180] = wrong[184] = wrong[188] = true;
    ck_assert_str_eq(locate_axis(&s, text, sizeof text), "the last 12 of 192 k");
}
END_TEST

/* ---- hypotheses ------------------------------------------------------------------------------ */

enum { ELEMENTS = 100 };

/* A variant adds itself to every element from 50 on. */
static bool predict(const struct hypothesis *h, const struct probe *p, int64_t variant,
                    const struct places *at, uint32_t *codes, struct arena *scratch)
{
    (void)h;
    (void)scratch;
    for (int64_t i = 0; i < at->count; i++)
        codes[i] = p->want[at->at[i]] + (at->at[i] >= 50 ? (uint32_t)variant : 0);
    return true;
}
static int64_t three(const struct probes *probes, int64_t out[HYPOTHESIS_VARIANTS])
{
    (void)probes;
    for (int64_t i = 0; i < 3; i++)
        out[i] = i + 1;
    return 3;
}
static bool never(const struct probe *p)
{
    return p->count == 0;
}

static void make_probe(struct probe *p, struct arena *arena, uint32_t change)
{
    *p = (struct probe){.count = 0};
    ck_assert(probe_add(p, "outputs", ELEMENTS, 10, NULL));
    p->got = arena_alloc(arena, ELEMENTS, sizeof *p->got);
    p->want = arena_alloc(arena, ELEMENTS, sizeof *p->want);
    for (uint32_t i = 0; i < ELEMENTS; i++) {
        p->want[i] = 7 * i;
        p->got[i] = p->want[i] + (i >= 50 ? change : 0);
    }
}

static const struct {
    uint32_t change[2]; /* of two probes */
    int64_t odd;        /* an element of the second that is wrong beside; -1: none */
    bool is_open;       /* that element is not compared */
    bool absent, late;
    enum hypothesis_fate fate;
    int64_t variant;
} tests[] = {
    {{2, 2}, -1, false, false, false, HYPOTHESIS_HOLDS, 2},
    {{2, 2}, 3, false, false, false, HYPOTHESIS_REFUTED, 0},
    {{2, 2}, 77, false, false, false, HYPOTHESIS_REFUTED, 0},
    {{2, 2}, 77, true, false, false, HYPOTHESIS_HOLDS, 2},
    {{2, 3}, -1, false, false, false, HYPOTHESIS_REFUTED, 0},
    {{9, 9}, -1, false, false, false, HYPOTHESIS_REFUTED, 0},
    {{2, 0}, -1, false, false, false, HYPOTHESIS_REFUTED, 0},
    {{2, 2}, -1, false, true, false, HYPOTHESIS_ABSENT, 0},
    {{2, 2}, -1, false, false, true, HYPOTHESIS_OPEN, 0},
};

START_TEST(hypotheses_are_tested)
{
    struct hypothesis h = {.name = "x", .sentence = "y", .variants = three, .predict = predict};
    struct probe items[2];
    const struct probes probes = {items, 2};
    struct hypothesis_result r;
    struct arena arena, scratch;

    ck_assert(arena_init(&arena, 1 << 20) && arena_init(&scratch, 1 << 20));
    make_probe(&items[0], &arena, tests[_i].change[0]);
    make_probe(&items[1], &arena, tests[_i].change[1]);
    if (tests[_i].odd >= 0)
        items[1].got[tests[_i].odd] ^= 1;
    if (tests[_i].is_open)
        items[1].want[tests[_i].odd] = PROBE_ANY;
    ck_assert(probe_judge(&items[0], &arena) && probe_judge(&items[1], &arena));
    h.applies = tests[_i].absent ? never : NULL;
    r = hypothesis_test(&h, &probes, &scratch, tests[_i].late ? 1.0 : 0.0);
    ck_assert_int_eq(r.fate, tests[_i].fate);
    if (r.fate == HYPOTHESIS_HOLDS)
        ck_assert(r.variant == tests[_i].variant && r.variants_held == 1);
    arena_free(&arena);
    arena_free(&scratch);
}
END_TEST

START_TEST(codes_are_compared)
{
    const struct probe_part f16 = {.type = dtype_find("f16")};
    const struct probe_part sums = {.type = dtype_find("f16"), .zeros_alike = true};
    const struct probe_part whole = {.type = NULL};

    ck_assert(probe_same(&f16, 0x3c00, 0x3c00) && !probe_same(&f16, 0x3c00, 0x3c01));
    ck_assert(probe_same(&f16, 0x7e00, 0xfe01) && !probe_same(&f16, 0x7e00, 0x7c00));
    ck_assert(!probe_same(&f16, 0x0000, 0x8000) && probe_same(&sums, 0x0000, 0x8000));
    ck_assert(!probe_same(&whole, 0x7e00, 0xfe01));
}
END_TEST

/* ---- suites ---------------------------------------------------------------------------------- */

static const char *const cases[] = {
    "",
    "a_dtype=bf16 b_dtype=e2m1 has_bias=true m=17 weight_scale_group_size=32 check=model",
    "num_experts=3 gemm_type=grouped_masked max_tokens=16 m=48",
    "block_shape=32x64x64 warp_shape=32x64x32 use_stream_k=true num_sms=7",
};

/* A suite of a case has that case. */
START_TEST(suites_hold_their_case)
{
    struct plan_options options = {.shard = 1, .shards = 1};
    int64_t v[AX_COUNT];
    struct errs errs = {0};
    struct suite suite;
    struct arena arena;
    struct plan plan;
    const char *text;

    make_case(cases[_i], v);
    ck_assert(arena_init(&arena, (size_t)1 << 28));
    text = explain_suite(v, &arena);
    ck_assert(text && explain_axes(v, &arena));
    ck_assert_msg(!suite_load_text("x.yaml", text, strlen(text), &arena, &suite, &errs) &&
                      !plan_make(&suite, 1, &options, &arena, &plan, &errs),
                  "%s: %s", errs.count ? errs.items[0].text : "?", text);
    ck_assert_uint_eq(plan.count, 1);
    for (int i = 0; i < AX_COUNT; i++)
        if (axis_is_of_families(&axes[i], AXIS_FAMILY_BIT(v[AX_FAMILY])))
            ck_assert_msg(plan.cases[0].v[i] == v[i], "%s: %s", axes[i].key, text);
    arena_free(&arena);
}
END_TEST

/* ---- lines ----------------------------------------------------------------------------------- */

static const struct {
    const char *line;
    const char *words[5]; /* ended by NULL; all NULL: refused */
} lines[] = {
    {"a b  c", {"a", "b", "c"}},
    {" 'a b' \"c d\" ", {"a b", "c d"}},
    {"a'b'c d\\ e", {"abc", "d e"}},
    {"'it'\\''s'", {"it's"}},
    {"--filter 'x/y=*,z' --seed 0x1", {"--filter", "x/y=*,z", "--seed", "0x1"}},
    {"'' a", {"", "a"}},
    {"a 'b", {NULL}},
    {"a \"b", {NULL}},
};

START_TEST(lines_are_split)
{
    struct arena arena;
    char **words;
    int count;

    ck_assert(arena_init(&arena, 1 << 16));
    words = words_split(lines[_i].line, &arena, &count);
    if (!lines[_i].words[0]) {
        ck_assert_ptr_null(words);
    } else {
        ck_assert_ptr_nonnull(words);
        for (int i = 0; i <= count; i++)
            if (i == count)
                ck_assert(!lines[_i].words[i] && !words[i]);
            else
                ck_assert_str_eq(words[i], lines[_i].words[i]);
    }
    arena_free(&arena);
}
END_TEST

#define LOOP(test, table) \
    tcase_add_loop_test(tc, test, 0, (int)(sizeof(table) / sizeof((table)[0])))

int main(void)
{
    Suite *s = suite_create("explain");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    LOOP(places_are_told, places);
    tcase_add_test(tc, places_of_a_sample);
    LOOP(hypotheses_are_tested, tests);
    tcase_add_test(tc, codes_are_compared);
    LOOP(suites_hold_their_case, cases);
    LOOP(lines_are_split, lines);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
