#include "harness/config/expr.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

enum { ARENA_BYTES = 16 << 20, TEXT = 4000 };

static struct arena arena;

static void set_up(void)
{
    ck_assert(arena_init(&arena, ARENA_BYTES));
}

static void tear_down(void)
{
    arena_free(&arena);
}

static void state(int64_t v[AX_COUNT], enum axis_id axis, const char *text)
{
    char buf[160];

    ck_assert(!axis_parse(&axes[axis], text, &v[axis], buf, sizeof buf));
}

/* The case of all tables below. */
static void make_case(int64_t v[AX_COUNT])
{
    for (int i = 0; i < AX_COUNT; i++) {
        v[i] = 0;
        if (axes[i].fallback)
            state(v, (enum axis_id)i, axes[i].fallback);
    }
    state(v, AX_A, "bf16");
    state(v, AX_B, "uint4");
    state(v, AX_C, "f16");
    state(v, AX_M, "17");
    state(v, AX_N, "64");
    state(v, AX_K, "512");
    state(v, AX_CHECK, "exact");
    state(v, AX_BIAS, "true");
    state(v, AX_BLOCK, "64x128x32");
    state(v, AX_SEED, "0xffffffffffffffff");
}

/* clang-format off */
static const struct {
    const char *text;
    bool value;
} conditions[] = {
    {"m == 17", true}, {"m != 17", false}, {"m < 17", false}, {"m <= 17", true}, {"m > 16", true},
    {"m >= 18", false},
    {"17 == m", true}, {"m==17", true}, {"  m\t==\n17  ", true}, {"m == 0x11", true},
    /* binding */
    {"1 + 2 * 3 == 7", true}, {"(1 + 2) * 3 == 9", true}, {"7 - 2 - 1 == 4", true},
    {"24 / 4 / 2 == 3", true}, {"2 * 7 % 4 == 2", true},
    {"7 / 2 == 3", true}, {"-7 / 2 == -3", true}, {"-7 % 2 == -1", true}, {"- - 1 == 1", true},
    {"-m + m == 0", true}, {"2 - -1 == 3", true},
    {"m == 1 or m == 17 and n == 64", true}, {"m == 17 or m == 1 and n == 1", true},
    {"(m == 17 or m == 1) and n == 1", false},
    {"not m == 1 and n == 64", true}, {"not (m == 1 and n == 64)", true}, {"not not m == 17", true},
    {"not m == 17 or n == 64", true},
    /* words */
    {"a_dtype == bf16", true}, {"a_dtype == bfloat16", true}, {"bf16 == a_dtype", true},
    {"a_dtype in [f16, bf16]", true},
    {"a_dtype in [f16]", false}, {"not a_dtype in [f16]", true}, {"b_dtype == uint4", true},
    {"a_dtype == c_dtype", false}, {"a_dtype != b_dtype", true},
    {"check == exact", true}, {"check in [bound, ulp, model]", false},
    {"weight_scale_type == channel", true}, {"family == gemm", true},
    {"scales == fill", true}, {"fill == scales", true}, {"scales in [fill]", true},
    {"scales != all", true}, {"zero_point == none", true},
    {"weight_scale_2_type == none and zero_point == none", true},
    {"block_shape == 64x128x32", true}, {"block_shape in [1x1x1, 64x128x32]", true},
    {"warp_shape == 1x1x1", false},
    {"seed == 0xffffffffffffffff", true}, {"seed == 18446744073709551615", true},
    {"seed in [1, 2]", false},
    /* booleans */
    {"has_bias", true}, {"not has_bias", false}, {"has_bias == true", true},
    {"has_bias == false", false}, {"false == has_bias", false},
    {"use_warp_spec", false}, {"has_bias != use_warp_spec", true},
    {"has_bias and not use_warp_spec", true}, {"use_tma == false", true}, {"use_tma != a_b", true},
    {"(has_bias)", true}, {"has_bias in [true]", true},
    {"has_bias == (m == 17)", true}, {"(m > 3) == (n > 100)", false},
    /* parts */
    {"block_m == 64", true}, {"block_n / block_k == 4", true},
    {"a_bits == 16 and b_bits == 4", true}, {"c_bits + a_bits == 32", true},
    {"k % (512 / a_bits) == 0", true},
    /* auto: equal to auto only, no order, no arithmetic */
    {"num_stages == auto", true}, {"num_stages != auto", false}, {"auto == num_stages", true},
    {"num_stages == 2", false}, {"num_stages != 2", true},
    {"num_stages < 4", false}, {"num_stages >= 4", false}, {"not num_stages < 4", true},
    {"num_stages in [2, auto]", true}, {"num_stages in [2, 3]", false},
    {"num_stages + 1 == 3", false}, {"num_stages + 1 != 3", false},
    {"not num_stages + 1 == 3", false}, {"-num_stages != 3", false},
    {"warp_shape == auto", true}, {"warp_m == 16", false}, {"warp_m != 16", true},
    {"warp_m % 16 == 0", false}, {"bs_dtype == auto", true}, {"bs_bits < 8", false},
    {"use_int_weight_scale", false}, {"not use_int_weight_scale", true},
    {"use_int_weight_scale == auto", true}, {"use_int_weight_scale != true", true},
    {"(use_int_weight_scale)", false}, {"fill == auto", true}, {"fill == W", false},
    {"block_shape == auto", false}, {"seed == auto", false},
    /* no division by zero counts; the right side is evaluated only if needed */
    {"m / 0 == 0", false}, {"m % 0 != 0", false}, {"not m / 0 == 0", false},
    {"m / num_sms == 1 or m == 17", false}, {"m == 17 or m / num_sms == 1", true},
    {"num_sms == 0 or m % num_sms == 0", true}, {"num_sms != 0 and m % num_sms == 0", false},
    {"not (num_sms != 0 and m % num_sms == 0)", true},
    /* overflow */
    {"9223372036854775807 + 1 < 0", false}, {"9223372036854775807 + 1 > 0", false},
    {"9223372036854775807 == 9223372036854775807", true},
    {"-9223372036854775807 - 1 == num_stages", false}, {"-9223372036854775807 - 1 < 0", false},
    {"4611686018427387904 * 2 != 0", false},
    {"-9223372036854775807 < 0", true}, {"m - n in [-47, 3]", true}, {"m - n in [47]", false},
};
/* clang-format on */

START_TEST(conditions_have_their_value)
{
    int64_t v[AX_COUNT];

    make_case(v);
    for (size_t i = 0; i < COUNT(conditions); i++) {
        struct errs errs = {0};
        const struct expr *e = expr_parse(conditions[i].text, NOWHERE, &arena, &errs);

        ck_assert_msg(e, "'%s': %s", conditions[i].text, errs.count ? errs.items[0].text : "");
        ck_assert_msg(expr_eval(e, v) == conditions[i].value, "'%s'", conditions[i].text);
        ck_assert_uint_eq(errs.count, 0);
    }
}
END_TEST

/* The mistake stands at `column` of the text, and the sentence says `says`. */
/* clang-format off */
static const struct {
    const char *text;
    int column;
    const char *says;
} mistakes[] = {
    {"", 1, "empty"}, {"  ", 3, "empty"}, {"m", 1, "'m' is a number"}, {"m + 1", 1, "is a number"},
    {"a_dtype", 1, "is a format"}, {"3", 1, "is a number"},
    {"mm == 3", 1, "unknown axis 'mm'"}, {"n == kk", 6, "unknown axis 'kk'"},
    {"weight_scale_tipe == group", 1, "did you mean 'weight_scale_type'"},
    {"blok_m == 3", 1, "did you mean 'block_m'"}, {"exact == check == exact", 16, "do not chain"},
    {"1 < m < 3", 7, "do not chain"}, {"m in [1] == true", 10, "do not chain"},
    {"check == exakt", 10, "did you mean 'exact'"}, {"exakt == check", 1, "did you mean 'exact'"},
    {"a_dtype in [f16, bf61]", 18, "expected a format"},
    {"a_dtype == 16", 12, "expected a format"}, {"a_dtype == m", 12, "cannot be compared"},
    {"a_dtype == check", 12, "cannot be compared"},
    {"check == fill", 10, "cannot be compared"},
    {"block_shape == block_m", 16, "cannot be compared"},
    {"has_bias == 1", 13, "expected true or false"},
    {"has_bias == m", 13, "cannot be compared"}, {"m == true", 6, "'true' must be compared"},
    {"true", 1, "must be compared"}, {"auto == auto", 1, "must be compared"},
    {"m == auto", 6, "must be compared"}, {"m in [auto]", 7, "must be compared"},
    {"m in [f16]", 7, "unknown axis"},
    {"a_dtype < f16", 1, "compares numbers"}, {"1 < has_bias", 1, "expected true or false"},
    {"has_bias > use_warp_spec", 1, "compares numbers"},
    {"num_stages > auto", 14, "auto can be compared"},
    {"a_dtype + 1 == 2", 1, "takes numbers"}, {"1 + a_dtype == 2", 5, "takes numbers"},
    {"-has_bias", 2, "takes numbers"}, {"m * has_bias == 1", 5, "takes numbers"},
    {"m and n == 1", 1, "expected a condition"}, {"n == 1 or m", 11, "expected a condition"},
    {"not m", 5, "expected a condition"}, {"(m == 1) + 1 == 2", 1, "takes numbers"},
    {"m ==", 5, "the condition ends"}, {"m == 1 and", 11, "the condition ends"},
    {"(m == 1", 8, "expected ')'"}, {"m == 1)", 7, "found ')'"}, {"m == == 1", 6, "found '=='"},
    {"m = 1", 3, "write '=='"}, {"m == 1 && n == 1", 8, "write 'and'"},
    {"m == 1 || n == 1", 8, "write 'or'"}, {"!has_bias", 1, "write 'not'"},
    {"check == 'exact'", 10, "without quotes"},
    {"m == 1 n", 8, "found 'n'"}, {"m not in [1]", 3, "before the comparison"},
    {"m in 1", 6, "expected '['"}, {"m in []", 7, "expected a value"},
    {"m in [1", 8, "expected ',' or ']'"},
    {"m in [1,]", 9, "expected a value"}, {"m in [1 + 1]", 9, "expected ',' or ']'"},
    {"m in [(1)]", 7, "expected a value"}, {"seed in [-1]", 10, "expected a value"},
    {"m == 010", 6, "not a number"}, {"m == 1x", 6, "not a number"},
    {"m == 1e3", 6, "not a number"}, {"m == 9223372036854775808", 6, "not a number"},
    {"m == 1.5", 7, "found '.'"},
    {"m == 64x64x64", 6, "not a number"}, {"block_shape == 64x64", 16, "a tile"},
    {"seed == 18446744073709551616", 9, "a seed"}, {"seed < 3", 1, "compares numbers"},
    {"m == 1 \xc2\xa7", 8, "found '\xc2\xa7'"}, {"m == \xff", 6, "expected an axis"},
    {"\xc3\xb6 == 1", 1, "expected an axis"}, {"(f16) == a_dtype", 2, "unknown axis"},
    {"a_dtype == (f16)", 13, "unknown axis"},
};
/* clang-format on */

START_TEST(mistakes_are_found_at_their_place)
{
    for (size_t i = 0; i < COUNT(mistakes); i++) {
        const char *text = mistakes[i].text;
        struct errs errs = {0};
        const struct err *e;

        ck_assert_ptr_null(expr_parse(text, place_at("f", 7, 11), &arena, &errs));
        ck_assert_uint_eq(errs.count, 1);
        e = &errs.items[0];
        ck_assert_msg(strstr(e->text, mistakes[i].says), "'%s': %s", text, e->text);
        ck_assert_msg(e->at.column == 10 + mistakes[i].column, "'%s': column %d: %s", text,
                      e->at.column - 10, e->text);
        ck_assert_int_eq(e->at.line, 7);
        ck_assert_int_eq(e->code, ERR_CONFIG);
        errs_free(&errs);
    }
}
END_TEST

/* 64 levels and 4096 bytes are the limits, whatever makes the levels. */
START_TEST(depth_and_length_are_limited)
{
    static const struct {
        const char *open, *close;
    } nests[] = {{"(", ")"}, {"not ", ""}};

    for (size_t n = 0; n < COUNT(nests); n++)
        for (int levels = 60; levels < 70; levels++) {
            char text[TEXT] = "";
            struct errs errs = {0};
            const struct expr *e;

            for (int i = 0; i < levels; i++)
                strncat(text, nests[n].open, 8);
            strncat(text, "has_bias", 16);
            for (int i = 0; i < levels; i++)
                strncat(text, nests[n].close, 8);
            e = expr_parse(text, NOWHERE, &arena, &errs);
            ck_assert_msg((e != NULL) == (levels <= 64), "%d levels of '%s'", levels,
                          nests[n].open);
            errs_free(&errs);
        }
    for (int size = 4095; size < 4098; size++) {
        char text[4100];
        struct errs errs = {0};

        (void)snprintf(text, sizeof text, "%-*s", size, "has_bias");
        ck_assert_int_eq(expr_parse(text, NOWHERE, &arena, &errs) != NULL, size <= 4096);
        errs_free(&errs);
    }
}
END_TEST

/* ---- random expressions against an evaluator that walks their construction ---- */

struct maker {
    uint64_t state;
    char text[TEXT];
    size_t used;
    const int64_t *v;
    bool none; /* an evaluated part had no number */
};

static uint64_t draw(struct maker *g, uint64_t n)
{
    g->state = g->state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (g->state >> 33) % n;
}

static void put(struct maker *g, const char *s)
{
    size_t n = strlen(s);

    if (g->used + n >= TEXT)
        ck_abort_msg("the condition is too long");
    memcpy(g->text + g->used, s, n + 1);
    g->used += n;
}

/* A fully parenthesised number and, if `live`, its value. */
static int64_t make_number(struct maker *g, int depth, bool live)
{
    static const enum axis_id ids[] = {AX_M, AX_N, AX_K, AX_NUM_SMS, AX_CTAS};
    static const char ops[] = "+-*/%";
    char op[4] = " + ";
    int64_t x, y;

    if (!depth || !draw(g, 4)) {
        char text[32];
        enum axis_id id = ids[draw(g, COUNT(ids))];

        x = (int64_t)draw(g, 100);
        (void)snprintf(text, sizeof text, "%d", (int)x);
        if (draw(g, 2)) {
            put(g, text);
            return x;
        }
        put(g, axes[id].key);
        return g->v[id];
    }
    op[1] = ops[draw(g, 5)];
    put(g, "(");
    x = make_number(g, depth - 1, live);
    put(g, op);
    y = make_number(g, depth - 1, live);
    put(g, ")");
    if (!live || g->none)
        return 0;
    if (op[1] == '+' || op[1] == '-')
        return op[1] == '+' ? x + y : x - y;
    if (op[1] == '*')
        return x * y;
    g->none |= !y;
    return g->none ? 0 : op[1] == '/' ? x / y : x % y;
}

static bool make_comparison(struct maker *g, bool live)
{
    static const char *const ops[] = {" == ", " != ", " < ", " <= ", " > ", " >= "};
    uint64_t op = draw(g, 6);
    int64_t x = make_number(g, 2, live), y;

    put(g, ops[op]);
    y = make_number(g, 2, live);
    return op == 0   ? x == y
           : op == 1 ? x != y
           : op == 2 ? x < y
           : op == 3 ? x <= y
           : op == 4 ? x > y
                     : x >= y;
}

static bool make_condition(struct maker *g, int depth, bool live)
{
    uint64_t what = depth ? draw(g, 4) : 3;
    bool x, y;

    if (what == 0) {
        put(g, "not (");
        x = !make_condition(g, depth - 1, live);
        put(g, ")");
        return x;
    }
    if (what == 3)
        return make_comparison(g, live);
    put(g, "(");
    x = make_condition(g, depth - 1, live);
    put(g, what == 1 ? ") and (" : ") or (");
    y = make_condition(g, depth - 1, live && !g->none && x == (what == 1));
    put(g, ")");
    return what == 1 ? x && y : x || y;
}

START_TEST(random_conditions_agree)
{
    int64_t v[AX_COUNT];
    struct maker g = {.state = 1, .v = v};
    int counts[2] = {0}, none = 0;

    make_case(v);
    for (int i = 0; i < 10000; i++) {
        struct errs errs = {0};
        const struct expr *e;
        bool want;

        g.used = 0;
        g.none = false;
        want = make_condition(&g, 3, true) && !g.none;
        arena_reset(&arena);
        e = expr_parse(g.text, NOWHERE, &arena, &errs);
        if (!e || expr_eval(e, v) != want)
            ck_abort_msg("%s should be %d: %s", g.text, want, e ? "" : errs.items[0].text);
        counts[want]++;
        none += g.none;
    }
    ck_assert_int_gt(counts[0], 1000);
    ck_assert_int_gt(counts[1], 1000);
    ck_assert_int_gt(none, 100);
}
END_TEST

START_TEST(mentioned_axes_are_known)
{
    struct errs errs = {0};
    const struct expr *e =
        expr_parse("scales == fill and block_m < 3 or m in [1] and a_bits == 8 and has_bias",
                   NOWHERE, &arena, &errs);

    ck_assert_ptr_nonnull(e);
    for (int i = 0; i < AX_COUNT; i++)
        ck_assert_int_eq(expr_mentions(e, (enum axis_id)i),
                         i == AX_SCALES || i == AX_BLOCK || i == AX_M || i == AX_A || i == AX_BIAS);
}
END_TEST

START_TEST(no_memory_is_an_error)
{
    struct arena tiny;
    struct errs errs = {0};

    for (size_t limit = 0; limit < 400; limit += 64) {
        ck_assert(arena_init(&tiny, limit));
        ck_assert_ptr_null(expr_parse("m == 17 and n == 64", NOWHERE, &tiny, &errs));
        ck_assert_int_eq(errs.items[errs.count - 1].code, ERR_NOMEM);
        arena_free(&tiny);
    }
    errs_free(&errs);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("expr");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, conditions_have_their_value);
    tcase_add_test(tc, mistakes_are_found_at_their_place);
    tcase_add_test(tc, depth_and_length_are_limited);
    tcase_add_test(tc, random_conditions_agree);
    tcase_add_test(tc, mentioned_axes_are_known);
    tcase_add_test(tc, no_memory_is_an_error);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
