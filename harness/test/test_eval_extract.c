#include "harness/eval/extract.h"
#include "harness/eval/mt19937.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define COUNT(a) (int)(sizeof(a) / sizeof(a)[0])

enum { ARENA = 1 << 26, GOLD_TEXT = 64 };

/* One response, one rule. Sources: the reports of bugs in other harnesses that each line names, the
 * documents of the tools, or (literals) CPython 3.11 itself. */
/* clang-format off */
static const struct {
    enum extractor_id rule;
    const char *response, *gold, *text;
    int correct;
} cases[] = {
    /* lm-evaluation-harness#3214, #3254 */
    {EXTRACT_ROBUST, "$29.00.", "29", "29", 1},
    {EXTRACT_ROBUST, "29.", "29", "29", 1},
    {EXTRACT_ROBUST, "29.0", "29", "29", 1},
    {EXTRACT_ROBUST, "29.50", "29", "29.5", 0},
    {EXTRACT_ROBUST, "1,450,000", "1450000", "1450000", 1},
    {EXTRACT_ROBUST, "18%", "18", "18", 1},
    {EXTRACT_ROBUST, "1.5e3", "1500", "1500", 1},
    {EXTRACT_ROBUST, "3/4", "4", "3/4", 0},
    /* helm#4337 */
    {EXTRACT_ROBUST, "The answer is 72, in total, so the farmer earns that much.", "72", "72", 1},
    {EXTRACT_ROBUST, "72, in total, so the farmer earns that much.", "72", "72", 1},
    /* the two negative golds of GSM8K's test */
    {EXTRACT_ROBUST, "lost $-10", "-10", "-10", 1},
    {EXTRACT_ROBUST, "#### \xe2\x88\x92 10", "-10", "-10", 1},
    {EXTRACT_LAST_INT, "#### 3", "-3", "3", 1},
    /* lm-evaluation-harness#3700, #3382 */
    {EXTRACT_ROBUST, "<think>a 7\n\nb</think>\n#### 5", "5", "5", 1},
    {EXTRACT_ROBUST, "<think>a is 5, check: #### 5", "5", "none", 0},
    {EXTRACT_ROBUST, "#### 5</think> no", "5", "none", 0},
    /* sglang#29264: the stop word "Question" ends the reasoning, and what is left holds no answer */
    {EXTRACT_ROBUST, "Identify the ", "7", "none", 0},
    {EXTRACT_ROBUST, "Identify the Question asked: how many?\n#### 7", "7", "7", 1},
    /* sglang#29933: run-on text */
    {EXTRACT_ROBUST, "#### 18\n\nQuestion: 3?\nAnswer: 4\n", "18", "18", 1},
    /* headings are not answers */
    {EXTRACT_ROBUST, "#### 2. Add them\n6 + 12 = 18", "18", "18", 1},
    {EXTRACT_ROBUST, "#### 2) Add them\n6 + 12 = 18", "18", "18", 1},
    {EXTRACT_ROBUST, "#### Step 2: Add them\nThe answer is 18", "18", "18", 1},
    {EXTRACT_ROBUST, "##### 2\nThe answer is 18", "18", "18", 1},
    {EXTRACT_ROBUST, "####\n18", "18", "18", 1},
    {EXTRACT_ROBUST, "####\n18 of 20", "20", "20", 1},
    {EXTRACT_ROBUST, "Answer:\n1. Take 6.\n2. Add 12: 18", "18", "18", 1},
    {EXTRACT_ROBUST, "The answer is 18. So she has 20 left.", "18", "18", 1},
    /* boxes */
    {EXTRACT_ROBUST, "\\boxed{18} out of 20", "18", "18", 1},
    {EXTRACT_ROBUST, "\\boxed{x = 18} of 20", "18", "18", 1},
    {EXTRACT_ROBUST, "\\boxed{\\text{18 eggs}} of 20", "18", "18", 1},
    {EXTRACT_ROBUST, "\\boxed{1{,}234}", "1234", "1234", 1},
    {EXTRACT_ROBUST, "\\boxed{} of 20", "20", "20", 1},
    {EXTRACT_ROBUST, "\\boxed{6} and \\boxed{18} of 20", "18", "18", 1},
    {EXTRACT_ROBUST, "**Final Answer:**\n\n$\\boxed{18}$ of 20", "18", "18", 1},
    {EXTRACT_ROBUST, "THE ANSWER IS **18** of 20", "18", "18", 1},
    {EXTRACT_ROBUST, "The answer is: \\(18\\) of 20", "18", "18", 1},
    {EXTRACT_ROBUST, "The answer is (18) of 20", "18", "18", 1},
    /* hyphens and operators */
    {EXTRACT_ROBUST, "COVID-19", "19", "19", 1},
    {EXTRACT_ROBUST, "2-20=-18", "-18", "-18", 1},
    {EXTRACT_ROBUST, "(7)-18", "18", "18", 1},
    {EXTRACT_ROBUST, "it is -18 degrees", "-18", "-18", 1},
    {EXTRACT_ROBUST, "50% -18", "18", "18", 1},
    /* Python literals */
    {EXTRACT_LAST_NUMBER, "007.5", "7", "7.5", 0},
    {EXTRACT_LAST_NUMBER, "08.", "8", "8.0", 1},
    {EXTRACT_LAST_NUMBER, "-007", "7", "INVALID", 0},
    {EXTRACT_LAST_NUMBER, "-0", "0", "0", 1},
    {EXTRACT_LAST_NUMBER, "-0.", "0", "-0.0", 1},
    {EXTRACT_LAST_NUMBER, "00", "0", "0", 1},
    {EXTRACT_LAST_NUMBER, "v1.2.3", "3", "3", 1},
    {EXTRACT_LAST_NUMBER, "10000000000000000.", "10000000000000000", "1e+16", 1},
    {EXTRACT_LAST_NUMBER, "1000000000000000.", "1", "1000000000000000.0", 0},
    {EXTRACT_LAST_NUMBER, "0.0001", "1", "0.0001", 0},
    {EXTRACT_LAST_NUMBER, "0.00001", "1", "1e-05", 0},
    {EXTRACT_LAST_NUMBER, "0.1", "1", "0.1", 0},
    {EXTRACT_LAST_NUMBER, "123456789.123456789", "1", "123456789.12345679", 0},
    {EXTRACT_LAST_NUMBER, "9007199254740993.", "9007199254740992", "9007199254740992.0", 1},
    {EXTRACT_LAST_NUMBER, "9007199254740993.", "9007199254740993", "9007199254740992.0", 0},
    {EXTRACT_LAST_INT, "00", "0", "0", 1},
    {EXTRACT_LAST_INT, "5 \xd9\xa1", "5", "INVALID", 0},
    {EXTRACT_LAST_INT, "5 \xd9", "5", "5", 1},
    {EXTRACT_LAST_INT, "1,,8", "18", "18", 1},
    /* last_explicit: what may not follow */
    {EXTRACT_LAST_EXPLICIT, "#### 18, then 20", "18", "18", 1},
    {EXTRACT_LAST_EXPLICIT, "#### 18. then 20", "20", "20", 1},
    {EXTRACT_LAST_EXPLICIT, "#### 18/2 20", "20", "20", 1},
    {EXTRACT_LAST_EXPLICIT, "#### 18\xe5\x85\x83 20", "20", "20", 1},
    {EXTRACT_LAST_EXPLICIT, "#### 18\xe2\x82\xac 20", "18", "18", 1},
    {EXTRACT_LAST_EXPLICIT, "####\t18.5 20", "18", "18.5", 0},
    {EXTRACT_LAST_EXPLICIT, "#### 18 #### x 20", "18", "18", 1},
    {EXTRACT_LAST_EXPLICIT, "######18 20", "18", "18", 1},
    /* OpenAI: the first marker, string comparison */
    {EXTRACT_OPENAI, "#### 1,234", "1234", "1234", 1},
    {EXTRACT_OPENAI, "#### 18.", "18", "18.", 0},
    {EXTRACT_OPENAI, "#### 18\n#### 20", "20", "18", 0},
    {EXTRACT_OPENAI, "18", "18", "[invalid]", 0},
    {EXTRACT_OPENAI, "#### #### 18", "18", "18", 1},
    /* lm-eval: one point is deleted, not two */
    {EXTRACT_STRICT_MATCH, "#### 18..", "18", "18..", 0},
    {EXTRACT_STRICT_MATCH, "#### -", "18", "[invalid]", 0},
    {EXTRACT_FLEXIBLE_EXTRACT, "-", "18", "[invalid]", 0},
    {EXTRACT_FLEXIBLE_EXTRACT, "--18", "-18", "-18", 1},
    {EXTRACT_FLEXIBLE_EXTRACT, "18 $", "18", "18", 1},
};
/* clang-format on */

START_TEST(rules_decide_the_hard_cases)
{
    struct arena a;
    struct answer out;
    char gold[GOLD_TEXT];

    ck_assert(arena_init(&a, ARENA));
    (void)snprintf(gold, sizeof gold, "#### %s", cases[_i].gold);
    ck_assert(extractors[cases[_i].rule].run(span_of(cases[_i].response), span_of(gold), &a, &out));
    ck_assert_str_eq(out.text, cases[_i].text);
    ck_assert_int_eq(out.correct, cases[_i].correct);
    arena_free(&a);
}
END_TEST

/* The gold is the whole worked solution, with the calculator's marks: what follows its last "####"
 * counts (lm-evaluation-harness#1204). Every rule that finds the answer must say so. */
START_TEST(the_gold_is_a_worked_solution)
{
    static const struct {
        const char *gold, *response;
        int correct;
    } golds[] = {
        {"9 * 60 = <<9*60=540>>540 meters\n#### 540", "The answer is 540.", 1},
        {"9 * 60 = <<9*60=540>>540 meters\n#### 540", "The answer is 9.", 0},
        {"<<29*50000=1450000>>\n#### 1,450,000", "So 1450000", 1},
        {"it falls by <<2*5=10>>10\n#### -10", "So -10", 1},
    };
    static const enum extractor_id rules[] = {EXTRACT_FLEXIBLE_EXTRACT, EXTRACT_LAST_INT,
                                              EXTRACT_LAST_NUMBER, EXTRACT_LAST_EXPLICIT,
                                              EXTRACT_ROBUST};
    struct arena a;
    struct answer out[EXTRACTOR_COUNT];

    ck_assert(arena_init(&a, ARENA));
    for (int i = 0; i < COUNT(golds); i++) {
        ck_assert(extract_all(span_of(golds[i].response), span_of(golds[i].gold), &a, out));
        for (int k = 0; k < COUNT(rules); k++)
            ck_assert_msg(out[rules[k]].correct == golds[i].correct, "%s reads '%s' from '%s'",
                          extractors[rules[k]].name, out[rules[k]].text, golds[i].response);
    }
    arena_free(&a);
}
END_TEST

START_TEST(long_numbers_are_python_s)
{
    static const int digits[] = {4300, 4301};
    struct arena a;
    struct answer out;
    char text[5000];

    ck_assert(arena_init(&a, ARENA));
    for (int i = 0; i < COUNT(digits); i++) {
        struct span s = {text, (size_t)digits[i]};

        memset(text, '7', sizeof text);
        ck_assert(extractors[EXTRACT_LAST_INT].run(s, s, &a, &out));
        ck_assert_int_eq(out.valid, i == 0);
        ck_assert_int_eq(out.correct, i == 0);
    }
    memset(text, '0', sizeof text);
    ck_assert(
        extractors[EXTRACT_LAST_INT].run((struct span){text, sizeof text}, span_of("0"), &a, &out));
    ck_assert(out.correct);
    text[sizeof text - 1] = '.';
    memset(text, '9', sizeof text - 1);
    ck_assert(extractors[EXTRACT_LAST_NUMBER].run((struct span){text, sizeof text}, span_of("1"),
                                                  &a, &out));
    ck_assert_str_eq(out.text, "inf");
    ck_assert(!out.correct);
    arena_free(&a);
}
END_TEST

/* A gold in which a rule finds nothing is never matched, not even by a text in which it finds
 * nothing either; and no rule accepts nothing. */
START_TEST(nothing_equals_nothing_is_not_correct)
{
    static const char *const empty[] = {"", "none", "[invalid]", "INVALID", "####"};
    struct arena a;
    struct answer out[EXTRACTOR_COUNT];

    ck_assert(arena_init(&a, ARENA));
    for (int i = 0; i < COUNT(empty); i++)
        for (int k = 0; k < COUNT(empty); k++) {
            ck_assert(extract_all(span_of(empty[i]), span_of(empty[k]), &a, out));
            for (int e = 0; e < EXTRACTOR_COUNT; e++)
                ck_assert(!out[e].valid && !out[e].correct);
        }
    arena_free(&a);
}
END_TEST

START_TEST(names_are_found)
{
    for (int i = 0; i < EXTRACTOR_COUNT; i++) {
        ck_assert_ptr_eq(extractor_find(extractors[i].name), &extractors[i]);
        ck_assert_ptr_nonnull(extractors[i].source);
    }
    ck_assert_ptr_null(extractor_find("strict"));
    ck_assert_ptr_null(extractor_find(""));
}
END_TEST

static const char *const pieces[] = {
    "####",     "#### ",
    " ",        "-",
    "+",        "\xe2\x88\x92",
    "$",        ".",
    ",",        "0",
    "18",       "007",
    "1,234",    "\\boxed{",
    "}",        "answer is ",
    "</think>", "<think>",
    "\n",       "e",
    "/",        "%",
    "\xff",     "\xe2\x80",
    "\xd9\xa1", "\xf0\x9d\x9f\x99",
    "\xc2\xa0", "9999999999999999999999",
    "{,}",      "1e9",
    "a",        "(",
};

/* Bytes at random, and pieces of what the rules look for at random. Each text is its own
 * allocation, so that a sanitizer sees a byte read behind it. */
static size_t random_text(struct mt19937 *m, char *buf, size_t most)
{
    size_t n = 0, want = mt_below(m, (uint32_t)most - 64);

    if (mt_below(m, 4) == 0) {
        for (; n < want; n++)
            buf[n] = (char)mt_below(m, 256);
        return n;
    }
    while (n < want) {
        const char *piece = pieces[mt_below(m, COUNT(pieces))];

        memcpy(buf + n, piece, strlen(piece) + 1);
        n += strlen(piece);
    }
    return n;
}

static char *exact_copy(const char *text, size_t n)
{
    char *copy = malloc(n ? n : 1);

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, text, n);
    return copy;
}

START_TEST(any_bytes_are_accepted)
{
    struct mt19937 m;
    struct arena a;
    struct answer out[EXTRACTOR_COUNT];
    char buf[300];

    mt_seed(&m, (uint64_t)_i);
    ck_assert(arena_init(&a, ARENA));
    for (int round = 0; round < 4000; round++) {
        size_t n = random_text(&m, buf, sizeof buf);
        char *text = exact_copy(buf, n);

        arena_reset(&a);
        ck_assert(extract_all((struct span){text, n}, span_of("#### 18"), &a, out));
        for (int e = 0; e < EXTRACTOR_COUNT; e++) {
            ck_assert(out[e].valid || !out[e].correct);
            ck_assert_uint_le(strlen(out[e].text), 4 * n + 128);
        }
        ck_assert(extract_all(span_of("#### 18"), (struct span){text, n}, &a, out));
        free(text);
    }
    arena_free(&a);
}
END_TEST

/* A text is as likely to be the gold: then every rule that finds something finds it equal. (Not
 * lm-eval, whose two sides differ, nor last-explicit, whose gold is the last number.) */
START_TEST(a_text_equals_itself)
{
    static const enum extractor_id rules[] = {EXTRACT_LAST_INT, EXTRACT_LAST_NUMBER, EXTRACT_OPENAI,
                                              EXTRACT_ROBUST};
    struct mt19937 m;
    struct arena a;
    struct answer out[EXTRACTOR_COUNT];
    char buf[300] = "";

    mt_seed(&m, 99);
    ck_assert(arena_init(&a, ARENA));
    for (int round = 0; round < 3000; round++) {
        struct span s = {buf, random_text(&m, buf, sizeof buf)};

        arena_reset(&a);
        ck_assert(extract_all(s, s, &a, out));
        for (int i = 0; i < COUNT(rules); i++)
            ck_assert_int_eq(out[rules[i]].valid, out[rules[i]].correct);
    }
    arena_free(&a);
}
END_TEST

static const char *const units[] = {"\\boxed{",  "####",  "#### ", "answer is ", "- ",     "1,234,",
                                    "\\boxed{=", "1/1/1", "$.",    "####1,",     "<think>"};

/* Processor seconds for all rules on a text of `size` bytes that repeats the unit. */
static double seconds(const char *unit, size_t size)
{
    char *text = malloc(size);
    struct arena a;
    struct answer out[EXTRACTOR_COUNT];
    clock_t start = clock();

    ck_assert_ptr_nonnull(text);
    ck_assert(arena_init(&a, ARENA));
    for (size_t i = 0; i < size; i++)
        text[i] = unit[i % strlen(unit)];
    ck_assert(extract_all((struct span){text, size}, span_of("#### 18"), &a, out));
    arena_free(&a);
    free(text);
    return (double)(clock() - start) / CLOCKS_PER_SEC;
}

/* Texts that a careless scanner reads again and again: four times the length may take four times as
 * long, with room for noise, but not sixteen times. */
START_TEST(time_is_linear)
{
    enum { SIZE = 1 << 15 };
    double once = seconds(units[_i], SIZE), four = seconds(units[_i], 4 * SIZE);

    ck_assert_msg(four <= 9.0 * once + 0.05, "%s: %g s, then %g s", units[_i], once, four);
}
END_TEST

/* Any limit of the arena: a refusal, never half a result. */
START_TEST(a_full_arena_is_said)
{
    struct answer out[EXTRACTOR_COUNT];
    bool done = false;

    for (size_t limit = 0; limit < 8192; limit += 64) {
        struct arena a;

        ck_assert(arena_init(&a, limit));
        done = extract_all(span_of("so \\boxed{1,234.5}\n#### 18.0"), span_of("#### 18"), &a, out);
        arena_free(&a);
        ck_assert(limit || !done);
    }
    ck_assert(done);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("extract");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, rules_decide_the_hard_cases, 0, COUNT(cases));
    tcase_add_test(tc, the_gold_is_a_worked_solution);
    tcase_add_test(tc, long_numbers_are_python_s);
    tcase_add_test(tc, nothing_equals_nothing_is_not_correct);
    tcase_add_test(tc, names_are_found);
    tcase_add_loop_test(tc, any_bytes_are_accepted, 0, 3);
    tcase_add_test(tc, a_text_equals_itself);
    tcase_add_loop_test(tc, time_is_linear, 0, COUNT(units));
    tcase_add_test(tc, a_full_arena_is_said);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
