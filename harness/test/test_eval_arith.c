#include "harness/eval/arith.h"
#include "harness/eval/extract.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ARENA = 1 << 26, TRAIN = 200, TEST = 1319 };

static struct arena arena;
static struct errs errs;
static struct dataset data;

static void setup(void)
{
    ck_assert(arena_init(&arena, ARENA));
    ck_assert_int_eq(arith_make(1, TRAIN, TEST, &arena, &data, &errs), ERR_NONE);
    ck_assert_uint_eq(data.train.count, TRAIN);
    ck_assert_uint_eq(data.test.count, TEST);
}

static void teardown(void)
{
    errs_free(&errs);
    arena_free(&arena);
}

/* Every solution is right by every extractor, as in GSM8K. */
START_TEST(golds_are_correct)
{
    struct arena scratch;

    ck_assert(arena_init(&scratch, 1 << 20));
    for (size_t i = 0; i < TEST; i++) {
        struct span gold = span_of(data.test.row[i].answer);
        struct answer out[EXTRACTOR_COUNT];

        arena_reset(&scratch);
        ck_assert(extract_all(gold, gold, &scratch, out));
        for (int e = 0; e < EXTRACTOR_COUNT; e++)
            ck_assert_msg(out[e].correct, "%s: %s", extractors[e].name, gold.at);
        ck_assert_ptr_eq(data.test.row[i].label, dataset_label(gold.at));
    }
    arena_free(&scratch);
}
END_TEST

/* What the expression of a mark is worth: numbers joined by one or more of * + - /, from left to
 * right (no mark mixes them). */
static double worth(const char *at, const char *end)
{
    char *rest;
    double x = strtod(at, &rest);

    while (rest < end) {
        char op = *rest;
        double y = strtod(rest + 1, &rest);

        x = op == '*' ? x * y : op == '+' ? x + y : op == '-' ? x - y : x / y;
    }
    return x;
}

/* Every <<expression=result>> holds, is followed by its result, and the last result is the
 * label. */
static void check_marks(const struct dataset_row *r)
{
    char plain[64];
    double last = (double)NAN;
    size_t n = 0;

    for (const char *at = strstr(r->answer, "<<"); at; at = strstr(at + 2, "<<")) {
        const char *equals = strchr(at, '=');

        ck_assert_ptr_nonnull(equals);
        last = strtod(equals + 1, NULL);
        ck_assert_msg(fabs(worth(at + 2, equals) - last) < 1e-6, "%s", r->answer);
    }
    for (const char *c = r->label; *c && n + 1 < sizeof plain; c++)
        if (*c != ',')
            plain[n++] = *c;
    plain[n] = '\0';
    ck_assert_msg(strtod(plain, NULL) == last, "%s", r->answer);
}

START_TEST(working_holds)
{
    for (size_t i = 0; i < TRAIN; i++)
        check_marks(&data.train.row[i]);
    for (size_t i = 0; i < TEST; i++)
        check_marks(&data.test.row[i]);
}
END_TEST

START_TEST(questions_differ)
{
    const struct dataset_row *row = data.train.row; /* both splits lie in one array */

    for (size_t i = 0; i < TRAIN + TEST; i++)
        for (size_t k = 0; k < i; k++)
            ck_assert_str_ne(row[i].question, row[k].question);
}
END_TEST

/* Negative and large answers, thousands separators, decimals in the working, and percentages. */
START_TEST(kinds_are_all_there)
{
    size_t negative = 0, grouped = 0, decimal = 0, percent = 0;

    for (size_t i = 0; i < TEST; i++) {
        const struct dataset_row *r = &data.test.row[i];

        negative += r->label[0] == '-';
        grouped += strchr(r->label, ',') != NULL;
        decimal += strstr(r->answer, ".5") || strstr(r->answer, ".25") || strstr(r->answer, ".75");
        percent += strchr(r->question, '%') != NULL;
    }
    ck_assert_uint_gt(negative, TEST / ARITH_KINDS);
    ck_assert_uint_gt(grouped, TEST / ARITH_KINDS);
    ck_assert_uint_gt(decimal, TEST / ARITH_KINDS);
    ck_assert_uint_gt(percent, TEST / ARITH_KINDS / 2);
}
END_TEST

START_TEST(seeds_decide)
{
    struct dataset again, other, shorter;

    ck_assert_int_eq(arith_make(1, TRAIN, TEST, &arena, &again, &errs), ERR_NONE);
    ck_assert_int_eq(arith_make(2, TRAIN, TEST, &arena, &other, &errs), ERR_NONE);
    ck_assert_int_eq(arith_make(1, TRAIN, 10, &arena, &shorter, &errs), ERR_NONE);
    ck_assert_str_eq(data.test.sha256, again.test.sha256);
    ck_assert_str_ne(data.test.sha256, other.test.sha256);
    for (size_t i = 0; i < 10; i++)
        ck_assert_str_eq(shorter.test.row[i].answer, data.test.row[i].answer);
}
END_TEST

/* The same rows on every machine, today and later. */
START_TEST(rows_do_not_change)
{
    ck_assert_str_eq(data.test.sha256,
                     "7933425d9063fc435d34dc0a3ca68d0aae07783e010b30b00939099177153d09");
}
END_TEST

START_TEST(too_much_is_refused)
{
    struct dataset out;
    struct arena small;

    ck_assert_int_eq(arith_make(1, ARITH_ROWS_MAX, 1, &arena, &out, &errs), ERR_CONFIG);
    ck_assert_int_eq(arith_make(1, SIZE_MAX, 2, &arena, &out, &errs), ERR_CONFIG);
    ck_assert(arena_init(&small, 4096));
    ck_assert_int_eq(arith_make(1, 10, 10, &small, &out, &errs), ERR_NOMEM);
    arena_free(&small);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("arith");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, golds_are_correct);
    tcase_add_test(tc, working_holds);
    tcase_add_test(tc, questions_differ);
    tcase_add_test(tc, kinds_are_all_there);
    tcase_add_test(tc, seeds_decide);
    tcase_add_test(tc, rows_do_not_change);
    tcase_add_test(tc, too_much_is_refused);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
