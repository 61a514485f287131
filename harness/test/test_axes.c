#include "harness/config/axes.h"
#include "harness/config/near.h"

#include "reference/dtype.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

enum { TEXT = 160 };

/* Value to text and back. */
static void round_trip(const struct axis *x, int64_t value)
{
    char text[TEXT], buf[TEXT];
    int64_t back = ~value;
    const char *s = axis_format(x, value, text, sizeof text);
    const char *expected = axis_parse(x, s, &back, buf, sizeof buf);

    ck_assert_msg(!expected && back == value, "%s: %" PRId64 " is '%s' is %" PRId64, x->key, value,
                  s, back);
}

static bool parses(const struct axis *x, const char *text, int64_t *out)
{
    char buf[TEXT];

    return !axis_parse(x, text, out, buf, sizeof buf);
}

static void check_key(int axis)
{
    ck_assert_int_eq(axis_find(axes[axis].key), axis);
    ck_assert_int_eq(axis_find(""), -1);
    ck_assert_int_eq(axis_find("weight_scale"), -1);
    ck_assert_int_eq(axis_find("M"), -1);
}

START_TEST(keys_are_unique_and_found)
{
    for (int i = 0; i < AX_COUNT; i++)
        check_key(i);
}
END_TEST

static void check_default(int axis)
{
    const struct axis *x = &axes[axis];
    int64_t v;

    if (!x->fallback)
        return;
    ck_assert_msg(parses(x, x->fallback, &v), "%s: '%s'", x->key, x->fallback);
    round_trip(x, v);
}

START_TEST(defaults_are_values)
{
    for (int i = 0; i < AX_COUNT; i++)
        check_default(i);
}
END_TEST

/* What no axis takes, and auto, which is taken where the table says. The whole expectation fits
 * the buffer. */
static void check_nonsense(int axis)
{
    static const char *const nonsense[] = {"",    " ",   "~",  "null", "yes",  "True",
                                           "nan", "0.5", "1 ", " 1",   "Auto", "?"};
    const struct axis *x = &axes[axis];
    int64_t v = 77;

    for (size_t i = 0; i < COUNT(nonsense); i++) {
        char buf[TEXT];
        const char *expected = axis_parse(x, nonsense[i], &v, buf, sizeof buf);

        ck_assert_msg(expected && strlen(expected) > 3, "%s takes '%s'", x->key, nonsense[i]);
        ck_assert_uint_lt(strlen(expected), TEXT - 1);
        ck_assert_int_eq(!strncmp(expected, "auto", 4), x->may_be_auto);
    }
    ck_assert_int_eq(v, 77);
    ck_assert_int_eq(parses(x, "auto", &v), x->may_be_auto);
    if (x->may_be_auto)
        ck_assert_int_eq(v, AXIS_AUTO);
}

START_TEST(nonsense_is_refused_with_an_expectation)
{
    for (int i = 0; i < AX_COUNT; i++)
        check_nonsense(i);
}
END_TEST

/* Every number near and in the range of small ones, the ends of large ones. */
static void check_range(int axis)
{
    const struct axis *x = &axes[axis];
    int64_t step = x->max - x->min > 5000 ? 997 : 1;

    if (x->kind != AXIS_INT)
        return;
    for (int64_t n = x->min - 3; n <= x->max + 3;
         n += n > x->min + 3 && n < x->max - 1000 ? step : 1) {
        char text[TEXT];
        int64_t v = -77;

        (void)snprintf(text, sizeof text, "%" PRId64, n);
        ck_assert_msg(parses(x, text, &v) == (n >= x->min && n <= x->max), "%s: %s", x->key, text);
        if (n < x->min || n > x->max)
            continue;
        ck_assert_int_eq(v, n);
        round_trip(x, n);
        (void)snprintf(text, sizeof text, "0x%" PRIX64, (uint64_t)n);
        ck_assert(parses(x, text, &v) && v == n);
    }
}

START_TEST(numbers_are_taken_in_their_range)
{
    for (int i = 0; i < AX_COUNT; i++)
        check_range(i);
}
END_TEST

/* clang-format off */
static const struct {
    const char *text;
    bool good;
    int64_t value;
} numbers[] = {
    {"0", true, 0}, {"9", true, 9}, {"10", true, 10}, {"-1", true, -1},
    {"-9223372036854775807", true, -INT64_MAX},
    {"9223372036854775807", true, INT64_MAX}, {"0x7fffffffffffffff", true, INT64_MAX},
    {"0xAb", true, 0xab},
    {"0x0000000000000000000000000001", true, 1}, {"-0x10", true, -16},
    {"9223372036854775808", false, 0}, {"-9223372036854775808", false, 0},
    {"18446744073709551616", false, 0},
    {"18446744073709551617", false, 0}, {"0x8000000000000000", false, 0},
    {"0x10000000000000001", false, 0},
    {"99999999999999999999999999999999999999", false, 0},
    {"00", false, 0}, {"010", false, 0}, {"-0", false, 0}, {"-010", false, 0}, {"--1", false, 0},
    {"+1", false, 0}, {"-", false, 0},
    {"0x", false, 0}, {"-0x", false, 0}, {"0X10", false, 0}, {"x10", false, 0}, {"0xg", false, 0},
    {"1e3", false, 0}, {"1.0", false, 0}, {"1_000", false, 0},
    {"1,000", false, 0}, {"0b1", false, 0}, {"0o7", false, 0}, {"1h", false, 0}, {"a", false, 0},
    {"1 2", false, 0},
    {"\xd9\xa1", false, 0}, {"1\n", false, 0},
};
/* clang-format on */

static void check_number(int row)
{
    const struct axis any = {.key = "any", .kind = AXIS_INT, .min = INT64_MIN, .max = INT64_MAX};
    int64_t v = 77;

    ck_assert_msg(parses(&any, numbers[row].text, &v) == numbers[row].good, "'%s'",
                  numbers[row].text);
    ck_assert_int_eq(v, numbers[row].good ? numbers[row].value : 77);
}

START_TEST(numbers_are_read_strictly)
{
    for (int i = 0; i < (int)COUNT(numbers); i++)
        check_number(i);
}
END_TEST

static void check_words(int axis)
{
    const struct axis *x = &axes[axis];

    for (int i = 0; x->words && x->words[i]; i++) {
        char text[TEXT];
        int64_t v;

        ck_assert(parses(x, x->words[i], &v));
        ck_assert_int_eq(v, i);
        round_trip(x, i);
        (void)snprintf(text, sizeof text, "%sx", x->words[i]);
        ck_assert(!parses(x, text, &v));
    }
    if (x->kind == AXIS_BOOL) {
        round_trip(x, 0);
        round_trip(x, 1);
    }
}

START_TEST(words_are_taken_exactly)
{
    for (int i = 0; i < AX_COUNT; i++)
        check_words(i);
}
END_TEST

/* Every format under both its names; as a weight, the row that dtype_find_weight gives, which
 * is a weight itself. */
static void check_format(int row)
{
    const struct dtype *t = &dtypes[row], *weight = dtype_find_weight(t->name);
    int64_t v = -1;

    round_trip(&axes[AX_A], row);
    if (t->alias)
        ck_assert(parses(&axes[AX_A], t->alias, &v) && v == row);
    ck_assert_int_eq(parses(&axes[AX_B], t->name, &v), weight != NULL);
    if (weight) {
        ck_assert_ptr_eq(&dtypes[v], weight);
        round_trip(&axes[AX_B], v);
    }
}

START_TEST(formats_are_taken_by_both_names)
{
    for (int i = 0; i < dtype_count; i++)
        check_format(i);
}
END_TEST

START_TEST(tiles_round_trip)
{
    static const int64_t sizes[] = {1, 2, 9, 10, 64, 255, 256, 4096, 65534, 65535};

    for (size_t i = 0; i < COUNT(sizes); i++)
        for (size_t j = 0; j < COUNT(sizes); j++)
            for (size_t l = 0; l < COUNT(sizes); l++) {
                int64_t t = axis_tile(sizes[i], sizes[j], sizes[l]), v;
                char text[TEXT];

                ck_assert_int_eq(axis_tile_m(t), sizes[i]);
                ck_assert_int_eq(axis_tile_n(t), sizes[j]);
                ck_assert_int_eq(axis_tile_k(t), sizes[l]);
                (void)snprintf(text, sizeof text, "%dx%dx%d", (int)sizes[i], (int)sizes[j],
                               (int)sizes[l]);
                ck_assert(parses(&axes[AX_BLOCK], text, &v) && v == t);
                round_trip(&axes[AX_BLOCK], t);
            }
}
END_TEST

START_TEST(broken_tiles_are_refused)
{
    static const char *const broken[] = {
        "64",      "64x64",    "64x64x",    "64x64x64x", "64x64x64x64", "x64x64",
        "0x64x64", "64x0x64",  "064x64x64", "65536x1x1", "1x1x65536",   "99999999999999999999x1x1",
        "-1x1x1",  "64X64X64", "64x 64x64", "64*64*64",  "0x10x1x1",    "64x64x64 ",
        "axbxc",
    };
    int64_t v;

    for (size_t i = 0; i < COUNT(broken); i++)
        ck_assert_msg(!parses(&axes[AX_WARP], broken[i], &v), "'%s'", broken[i]);
}
END_TEST

START_TEST(seeds_have_64_bits)
{
    const struct axis *x = &axes[AX_SEED];
    uint64_t seed = 1;
    int64_t v;

    for (int i = 0; i < 10000; i++) {
        round_trip(x, (int64_t)(seed == UINT64_C(1) << 63 ? 0 : seed));
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    }
    ck_assert(parses(x, "18446744073709551615", &v) && v == -1);
    ck_assert(parses(x, "0xffffffffffffffff", &v) && v == -1);
    ck_assert(parses(x, "0x8000000000000001", &v) && v == INT64_MIN + 1);
    ck_assert(!parses(x, "0x8000000000000000", &v));
    ck_assert(!parses(x, "9223372036854775808", &v));
    ck_assert(!parses(x, "18446744073709551616", &v));
    ck_assert(!parses(x, "-1", &v));
}
END_TEST

/* clang-format off */
static const struct {
    const char *text, *best; /* of the list below; "": none */
} slips[] = {
    {"wieght_scale_type", "weight_scale_type"}, {"weight_scale_typ", "weight_scale_type"},
    {"weight_scale_tipes", "weight_scale_type"},
    {"weight_scale_tixxx", ""}, {"unit8", "uint8"}, {"Uint8", "uint8"}, {"FILL", "fill"},
    {"fil", "fill"}, {"fi", ""}, {"M", "m"}, {"x", ""}, {"", ""},
    {"uint9", ""}, /* as near to uint8 as to uint7 and uint6 */
    {"fool", ""}, {"fll", "fill"},
};
/* clang-format on */

static void check_slip(int row)
{
    static const char *const words[] = {
        "weight_scale_type", "uint8", "uint7", "uint6", "fill", "m", NULL};
    struct near near = near_to(slips[row].text);
    char hint[96], want[96] = "";

    near_offer_all(&near, words);
    if (*slips[row].best)
        (void)snprintf(want, sizeof want, "; did you mean '%s'?", slips[row].best);
    ck_assert_str_eq(near_hint(&near, hint, sizeof hint), want);
}

START_TEST(near_misses_are_recognised)
{
    for (int i = 0; i < (int)COUNT(slips); i++)
        check_slip(i);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("axes");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_test(tc, keys_are_unique_and_found);
    tcase_add_test(tc, defaults_are_values);
    tcase_add_test(tc, nonsense_is_refused_with_an_expectation);
    tcase_add_test(tc, numbers_are_taken_in_their_range);
    tcase_add_test(tc, numbers_are_read_strictly);
    tcase_add_test(tc, words_are_taken_exactly);
    tcase_add_test(tc, formats_are_taken_by_both_names);
    tcase_add_test(tc, tiles_round_trip);
    tcase_add_test(tc, broken_tiles_are_refused);
    tcase_add_test(tc, seeds_have_64_bits);
    tcase_add_test(tc, near_misses_are_recognised);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
