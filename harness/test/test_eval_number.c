#include "harness/eval/mt19937.h"
#include "harness/eval/number.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (int)(sizeof(a) / sizeof(a)[0])

enum { ARENA = 1 << 24 };

/* The last number of a text, canonical; NULL: there is none. */
/* clang-format off */
static const struct {
    const char *text, *want;
} lasts[] = {
    {"", NULL}, {"-", NULL}, {"$", NULL}, {".", NULL}, {"%", NULL}, {"one", NULL}, {"1.2.3", "3"},
    {"0", "0"}, {"-0", "0"}, {"000", "0"}, {"-0.00", "0"}, {"007", "7"}, {"0.50", "0.5"},
    {".5", "0.5"}, {"-.5", "-0.5"}, {"$.75", "0.75"}, {"5.", "5"}, {"5..", "5"}, {"100", "100"},
    {"1,000", "1000"}, {"1,00", "0"}, {"1,0000", "0"}, {"1234,567", "567"}, {"1,234,56", "56"},
    {"1,234,567.890", "1234567.89"}, {"1{,}234", "1234"}, {"1,\\!234", "1234"}, {"1\\,234", "1234"},
    {"1'234'567", "1234567"}, {"1\xe2\x80\x99""234", "1234"}, {"1\xc2\xa0""234", "1234"},
    {"1\xe2\x80\x87""234", "1234"}, {"1\xe2\x80\x89""234", "1234"}, {"1\xe2\x80\xaf""234", "1234"},
    {"1 234", "234"}, {"1,234'567", "567"}, {"1_234", "234"},
    {"-$5", "-5"}, {"$-5", "-5"}, {"-\\$5", "-5"}, {"\xe2\x88\x92\xe2\x82\xac""5", "-5"},
    {"\xc2\xa3""5", "5"}, {"\xc2\xa5""5", "5"}, {"\xe2\x82\xb9""5", "5"}, {"+5", "5"}, {"--5", "-5"},
    {"\xef\xb9\xa3""5", "-5"}, {"\xef\xbc\x8d""5", "-5"}, {"\xef\xbc\x8b""5", "5"},
    {"a-5", "5"}, {"5-7", "7"}, {"5 -7", "7"}, {"5 - 7", "7"}, {"= -7", "-7"}, {"\n-7", "-7"},
    {"5\n-7", "-7"}, {")-7", "7"}, {"(-7)", "-7"}, {"\xc3\xa9-7", "7"}, {"5% -7", "7"},
    {"50%", "50"}, {"50\\%", "50"}, {"50 %", "50"}, {"-50%", "-50"},
    {"1e3", "1000"}, {"1.5E+3", "1500"}, {"25e-1", "2.5"}, {"1e-3", "0.001"}, {"-1e2", "-100"},
    {"1e100", "100"}, {"1e3x", "3"}, {"1e", "1"}, {"0e9", "0"},
    {"6/2", "3"}, {"-6/2", "-3"}, {"1/2", "1/2"}, {"0/5", "0"}, {"-0/5", "0"}, {"5/0", "5/0"},
    {"1/1/2", "1/1/2"}, {"1,000/10", "100"}, {"$1/2", "$1/2"}, {"1/", "1"}, {"/2", "2"},
    {"1/1000000000000000000000", "1/1000000000000000000000"},
    {"\xd9\xa1\xd9\xa8", "18"}, {"\xef\xbc\x91\xef\xbc\x98", "18"}, {"\xf0\x9d\x9f\x99", "1"},
    {"8\xc2\xb2", "8"}, {"\xff""5\xff", "5"}, {"5\xe2\x80", "5"},
};
/* clang-format on */

static void check_last(const char *text, const char *want)
{
    struct arena a;
    struct number n;
    const char *got = NULL;

    ck_assert(arena_init(&a, ARENA));
    if (number_last(span_of(text), &n))
        got = number_text(span_of(text), &n, &a);
    ck_assert_msg(want ? got && !strcmp(got, want) : !got, "'%s' is '%s', not '%s'", text,
                  got ? got : "nothing", want ? want : "nothing");
    arena_free(&a);
}

START_TEST(last_numbers)
{
    check_last(lasts[_i].text, lasts[_i].want);
}
END_TEST

/* A number of any size and scale, written in every way that means the same. */
START_TEST(ways_of_writing_are_equal)
{
    struct mt19937 m;
    char want[64], text[128];

    mt_seed(&m, 3);
    for (int i = 0; i < 2000; i++) {
        int64_t x = (int64_t)(mt_next(&m) >> mt_below(&m, 31)) * 10 + 1 + mt_below(&m, 9);
        int decimals = (int)mt_below(&m, 12);

        (void)snprintf(want, sizeof want, "%" PRId64, x);
        check_last(want, want);
        (void)snprintf(text, sizeof text, "00%" PRId64 ".%0*d", x, decimals + 1, 0);
        check_last(text, want);
        (void)snprintf(text, sizeof text, "$%" PRId64 "%0*de-%d", x, decimals + 1, 0, decimals + 1);
        check_last(text, want);
        (void)snprintf(text, sizeof text, "x = %" PRId64 "%%.", x);
        check_last(text, want);
        (void)snprintf(text, sizeof text, "%" PRId64 "/%d", x * 7, 7);
        check_last(text, want);
    }
}
END_TEST

/* Blanks between sign and digits only where the caller allows them. */
START_TEST(signs_apart)
{
    struct span s = span_of("- 10 $5");
    struct number n;

    ck_assert(!number_at(s, 0, false, &n));
    ck_assert(number_at(s, 0, true, &n));
    ck_assert(n.negative && n.begin == 0 && n.end == 4);
    ck_assert(!number_at(s, 1, true, &n));
    ck_assert(number_at(s, 2, false, &n) && !n.negative);
    ck_assert(number_at(s, 5, false, &n) && n.end == 7);
    ck_assert(!number_at(s, 7, true, &n));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("number");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_loop_test(tc, last_numbers, 0, COUNT(lasts));
    tcase_add_test(tc, ways_of_writing_are_equal);
    tcase_add_test(tc, signs_apart);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
