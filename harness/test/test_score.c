#include "harness/eval/score.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (int)(sizeof(a) / sizeof(a)[0])

/* Computed with statsmodels' proportion_confint(k, n, method="wilson"). */
/* clang-format off */
static const struct {
    size_t k, n;
    double low, high;
} intervals[] = {
    {1134, 1319, 0.839955, 0.877440}, {1260, 1319, 0.942730, 0.965165},
    {660,  1319, 0.473434, 0.527322}, {1,    1319, 0.000134, 0.004282},
    {0,    1319, 0.0,      0.002904}, {1319, 1319, 0.997096, 1.0},
    {172,  200,  0.805101, 0.901330}, {0,    0,    0.0,      1.0},
};
/* clang-format on */

START_TEST(wilson)
{
    struct interval i = score_wilson(intervals[_i].k, intervals[_i].n);

    ck_assert_double_le(fabs(i.low - intervals[_i].low), 6e-7);
    ck_assert_double_le(fabs(i.high - intervals[_i].high), 6e-7);
}
END_TEST

/* clang-format off */
static const struct {
    size_t questions, correct, wrong, unparsable, errors, needed;
    double rate;
    enum score_verdict verdict;
    const char *why;
} verdicts[] = {
    {100, 80, 20, 0,  0,  80, 0.005, SCORE_PASS,         "80 of 100 correct, 80 needed"},
    {100, 79, 20, 1,  0,  80, 0.005, SCORE_FAIL,         "79 of 100 correct, 80 needed"},
    {100, 79, 20, 0,  1,  80, 0.01,  SCORE_INCONCLUSIVE, "79 of 100 correct, 80 needed, 1 without"},
    {100, 80, 19, 0,  1,  80, 0.01,  SCORE_PASS,         "1 without a usable reply"},
    {100, 78, 21, 0,  1,  80, 0.01,  SCORE_FAIL,         "78 of 100"},
    {100, 95, 3,  0,  2,  80, 0.01,  SCORE_INCONCLUSIVE, "2 without a usable reply"},
    {100, 95, 3,  0,  2,  80, 0.02,  SCORE_PASS,         ""},
    {100, 95, 4,  0,  0,  80, 0.005, SCORE_INCONCLUSIVE, "1 not asked"},
    {100, 0,  0,  0,  100, 0, 1.0,   SCORE_INCONCLUSIVE, "100 without"},
    {100, 0,  0,  100, 0, 1,  0.005, SCORE_FAIL,         "0 of 100 correct, 1 needed"},
    {100, 99, 0,  0,  1,  50, (double)NAN, SCORE_INCONCLUSIVE, ""},
};
/* clang-format on */

START_TEST(judgement)
{
    struct tally t = {.questions = verdicts[_i].questions,
                      .count = {verdicts[_i].correct, verdicts[_i].wrong, verdicts[_i].unparsable,
                                verdicts[_i].errors}};
    char why[SCORE_WHY];

    ck_assert_int_eq(score_judge(&t, verdicts[_i].needed, verdicts[_i].rate, why),
                     verdicts[_i].verdict);
    ck_assert_msg(strstr(why, verdicts[_i].why) != NULL, "%s", why);
}
END_TEST

/* Whatever the missing replies would have been, a verdict would have been the same: all counts of
 * 12 questions, against the verdicts of both extremes. */
START_TEST(errors_never_decide)
{
    char why[SCORE_WHY];

    for (size_t errors = 0; errors <= 12; errors++)
        for (size_t correct = 0; correct + errors < 12; correct++)
            for (size_t needed = 1; needed <= 12; needed++) {
                struct tally t = {.questions = 12};
                enum score_verdict v;

                t.count[OUTCOME_CORRECT] = correct;
                t.count[OUTCOME_WRONG] = 12 - correct - errors;
                t.count[OUTCOME_ERROR] = errors;
                v = score_judge(&t, needed, 1.0, why);
                if (correct >= needed)
                    ck_assert_int_eq(v, SCORE_PASS);
                else if (correct + errors >= needed)
                    ck_assert_int_eq(v, SCORE_INCONCLUSIVE);
                else
                    ck_assert_int_eq(v, SCORE_FAIL);
            }
}
END_TEST

START_TEST(outcomes)
{
    static const struct answer none = {"", false, false}, bad = {"1", true, false},
                               good = {"2", true, true};

    ck_assert_int_eq(outcome_of(&none), OUTCOME_UNPARSABLE);
    ck_assert_int_eq(outcome_of(&bad), OUTCOME_WRONG);
    ck_assert_int_eq(outcome_of(&good), OUTCOME_CORRECT);
    for (int o = 0; o < OUTCOME_COUNT; o++)
        ck_assert_int_eq((int)outcome_find(outcome_name((enum outcome)o)), o);
    ck_assert_int_eq(outcome_find("Correct"), OUTCOME_COUNT);
    ck_assert_int_eq(outcome_find(NULL), OUTCOME_COUNT);
}
END_TEST

START_TEST(accuracy_is_of_what_was_answered)
{
    struct tally t = {.questions = 10, .count = {3, 1, 2, 4}};

    ck_assert_double_eq(tally_accuracy(&t), 0.5);
    ck_assert_uint_eq(tally_missing(&t), 0);
    t = (struct tally){.questions = 10};
    ck_assert(isnan(tally_accuracy(&t)));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("score");
    TCase *tc = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_loop_test(tc, wilson, 0, COUNT(intervals));
    tcase_add_loop_test(tc, judgement, 0, COUNT(verdicts));
    tcase_add_test(tc, errors_never_decide);
    tcase_add_test(tc, outcomes);
    tcase_add_test(tc, accuracy_is_of_what_was_answered);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
