#include "harness/eval/eval.h"

#include "harness/eval/eval_take.h"
#include "harness/eval/progress.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(a) (int)(sizeof(a) / sizeof(a)[0])

/* The parts of an evaluation that need no server: fingerprint, replies, replay, verdict. */

static struct arena arena;
static struct errs errs;
static struct dataset data;
static struct eval_options how;
static struct eval_config config;
static char path[64];

enum { QUESTIONS = 20 };

static void load(const char *more)
{
    FILE *f = fopen(path, "w");
    struct errs warnings = {0};

    ck_assert_ptr_nonnull(f);
    (void)fprintf(f,
                  "model_name: m\naccuracy_threshold: 0.5\ntolerance: 0\nnum_questions: %d\n"
                  "num_fewshot: 2\n%s",
                  QUESTIONS, more);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_int_eq(eval_config_load(path, &arena, &config, &warnings, &errs), ERR_NONE);
    errs_free(&warnings);
}

static void setup(void)
{
    int fd;

    (void)snprintf(path, sizeof path, "/tmp/test_eval.XXXXXX");
    fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
    ck_assert(arena_init(&arena, (size_t)1 << 30));
    errs = (struct errs){0};
    how = (struct eval_options){.data = &data};
    ck_assert_int_eq(eval_arith(QUESTIONS, &arena, &data, &errs), ERR_NONE);
    load("");
}

static void teardown(void)
{
    (void)unlink(path);
    arena_free(&arena);
    errs_free(&errs);
}

static void open_eval(struct eval *e)
{
    ck_assert_int_eq(eval_prepare(e, &config, &how, &arena, &errs), ERR_NONE);
    ck_assert_int_eq(eval_open(e, NULL, false, &errs), ERR_NONE);
}

/* Replies to question i; the right one is the gold itself. */
static void take(struct eval *e, size_t i, const char *text, const char *finish)
{
    const struct eval_meta m = {1, 200, 0.25, 0.5};
    struct reply r = {.finish_reason = finish, .prompt_tokens = 5, .completion_tokens = 7};

    r.text = span_of(text ? text : prompts_row(&e->prompts, i)->answer);
    arena_reset(&e->scratch);
    ck_assert_int_eq(eval_take_reply(e, i, &r, &m, &errs), ERR_NONE);
}

static void take_error(struct eval *e, size_t i)
{
    const struct eval_meta m = {6, 503, 0.25, 9.5};

    ck_assert_int_eq(eval_take_error(e, i, "HTTP 503", &m, &errs), ERR_NONE);
}

START_TEST(each_reply_has_one_outcome)
{
    struct eval_result r;
    struct eval e;

    open_eval(&e);
    ck_assert_uint_eq(e.pending_count, QUESTIONS);
    for (size_t i = 0; i < QUESTIONS; i++)
        if (i % 4 == 0)
            take(&e, i, NULL, "stop");
        else if (i % 4 == 1)
            take(&e, i, "#### 123456789123", "stop");
        else if (i % 4 == 2)
            take(&e, i, "I do not know", "length");
        else
            take_error(&e, i);
    ck_assert_int_eq(eval_judge(&e, &r, &errs), ERR_NONE);
    for (int o = 0; o < OUTCOME_COUNT; o++)
        ck_assert_uint_eq(r.tally.count[o], QUESTIONS / 4);
    ck_assert_uint_eq(r.tally.truncated, QUESTIONS / 4);
    for (int x = 0; x < EXTRACTOR_COUNT; x++)
        ck_assert_uint_eq(r.tally.correct[x], QUESTIONS / 4);
    ck_assert_int_eq(r.verdict, SCORE_INCONCLUSIVE);
    ck_assert_uint_eq(e.progress.done, QUESTIONS);
    ck_assert_uint_eq(e.progress.correct, QUESTIONS / 4);
    ck_assert_uint_eq(e.progress.errors, QUESTIONS / 4);
    ck_assert_str_eq(r.gating, "last-int");
    eval_close(&e);
}
END_TEST

/* 1 + accepted / drafts against the least; without drafts it fails, as in vLLM. */
/* clang-format off */
static const struct {
    const char *least;
    uint64_t drafts, accepted;
    size_t lost;
    int right;
    enum score_verdict verdict;
    const char *why;
} gates[] = {
    {"1.5", 10, 5, 0, 20, SCORE_PASS,         "20 of 20 correct, 10 needed"},
    {"1.5", 10, 4, 0, 20, SCORE_FAIL,         "acceptance length 1.4000, 1.5 needed"},
    {"1.5", 0,  0, 0, 20, SCORE_FAIL,         "no drafts were counted, acceptance length 1.5 needed"},
    {"1.5", 10, 5, 0, 9,  SCORE_INCONCLUSIVE, "11 not asked"},
    {"1.5", 10, 0, 0, 9,  SCORE_INCONCLUSIVE, "11 not asked"},
    {"1.5", 10, 5, 1, 20, SCORE_INCONCLUSIVE, "a session that was cut off are not counted, acceptance length 1.5 needed"},
    {"1.5", 10, 4, 1, 20, SCORE_INCONCLUSIVE, "a session that was cut off are not counted, acceptance length 1.5 needed"},
    {"1.5", 0,  0, 2, 20, SCORE_INCONCLUSIVE, "a session that was cut off are not counted, acceptance length 1.5 needed"},
    {NULL,  0,  0, 0, 20, SCORE_PASS,         "20 of 20 correct"},
};
/* clang-format on */

START_TEST(acceptance_length)
{
    struct store_drafts d = {gates[_i].drafts, gates[_i].accepted, gates[_i].lost};
    struct eval_result r;
    struct eval e;

    if (gates[_i].least)
        load(arena_printf(&arena, "min_acceptance_length: %s\n", gates[_i].least));
    open_eval(&e);
    for (int i = 0; i < gates[_i].right; i++)
        take(&e, (size_t)i, NULL, "stop");
    ck_assert_int_eq(store_add_drafts(e.store, d, &errs), ERR_NONE);
    ck_assert_int_eq(eval_judge(&e, &r, &errs), ERR_NONE);
    ck_assert_int_eq(r.verdict, gates[_i].verdict);
    ck_assert_msg(strstr(r.why, gates[_i].why) != NULL, "%s", r.why);
    ck_assert_int_eq(isnan(r.acceptance_length), !gates[_i].least || !gates[_i].drafts);
    eval_close(&e);
}
END_TEST

/* What a run recorded gives another run of the same prompts the same outcomes; errors and
 * prompts that are missing are errors. */
START_TEST(a_replay_repeats)
{
    struct eval_result first, second;
    struct eval from, to;

    open_eval(&from);
    ck_assert_int_eq(store_settle(from.store, STORE_MODEL, "m", &errs), ERR_NONE);
    for (size_t i = 0; i < QUESTIONS - 2; i++)
        take(&from, i, i % 3 ? NULL : "none", "stop");
    take_error(&from, QUESTIONS - 2);
    open_eval(&to);
    ck_assert_int_eq(eval_replay(&to, from.store, &errs), ERR_NONE);
    ck_assert_int_eq(eval_judge(&from, &first, &errs), ERR_NONE);
    ck_assert_int_eq(eval_judge(&to, &second, &errs), ERR_NONE);
    ck_assert_uint_eq(second.tally.count[OUTCOME_ERROR], 2);
    ck_assert_uint_eq(tally_missing(&second.tally), 0);
    for (int o = 0; o < OUTCOME_ERROR; o++)
        ck_assert_uint_eq(first.tally.count[o], second.tally.count[o]);
    ck_assert_uint_eq(first.tally.completion_tokens, second.tally.completion_tokens);
    ck_assert_str_eq(second.model, "m");
    ck_assert_str_eq(second.server, "unknown");
    eval_close(&from);
    eval_close(&to);
}
END_TEST

/* The fingerprint depends on everything that can move a score. */
/* clang-format off */
static const struct {
    const char *more;
    int concurrency;
    const char *gpu;
    size_t limit;
    enum store_part part;
} changes[] = {
    {"max_tokens: 7\n",                        0, NULL,   0, STORE_SAMPLING},
    {"seed: null\n",                           0, NULL,   0, STORE_SAMPLING},
    {"temperature: 0.5\n",                     0, NULL,   0, STORE_SAMPLING},
    {"use_chat_completions: true\n",           0, NULL,   0, STORE_PROTOCOL},
    {"gen_prefix: \" <think>\"\n",             0, NULL,   0, STORE_PROMPTS},
    {"x-humcheck: {protocol: lm-eval}\n",      0, NULL,   0, STORE_PROMPTS},
    {"x-humcheck: {protocol: lm-eval}\n",      0, NULL,   0, STORE_PROTOCOL},
    {"# a comment\n",                          0, NULL,   0, STORE_CONFIG},
    {"",                                       7, NULL,   0, STORE_CONCURRENCY},
    {"",                                       0, "H100", 0, STORE_GPU},
    {"",                                       0, NULL,   5, STORE_PROMPTS},
};
/* clang-format on */

START_TEST(fingerprints)
{
    const char *before;
    struct eval e;

    open_eval(&e);
    before = arena_strdup(&arena, e.run.part[changes[_i].part]);
    eval_close(&e);
    load(changes[_i].more);
    how.concurrency = changes[_i].concurrency;
    how.gpu = changes[_i].gpu;
    how.limit = changes[_i].limit;
    open_eval(&e);
    ck_assert_str_ne(before, e.run.part[changes[_i].part]);
    ck_assert_str_eq(store_part(e.store, changes[_i].part), e.run.part[changes[_i].part]);
    eval_close(&e);
}
END_TEST

START_TEST(the_served_model_must_be_the_one)
{
    struct server_info info = {.version = "vllm 1", .model = {"short", "m"}, .models = 2};
    struct eval e;

    open_eval(&e);
    ck_assert_int_eq(eval_identify(&e, "http://x", &info, &errs), ERR_NONE);
    ck_assert_str_eq(store_part(e.store, STORE_MODEL), "short");
    ck_assert_str_eq(store_part(e.store, STORE_SERVER), "vllm 1");
    info.models = 1;
    ck_assert_int_eq(eval_identify(&e, "http://x", &info, &errs), ERR_INFRA);
    ck_assert_ptr_nonnull(strstr(errs.items[0].text, "serves 'short', not 'm'"));
    info.models = 2;
    info.version = "vllm 2";
    ck_assert_int_eq(eval_identify(&e, "http://x", &info, &errs), ERR_USAGE);
    eval_close(&e);
}
END_TEST

/* Questions and train come from one list, which `humcheck data arith` prints. */
START_TEST(arith_is_one_list)
{
    struct dataset list;

    ck_assert_int_eq(
        arith_make(EVAL_ARITH_SEED, 0, EVAL_ARITH_TRAIN + QUESTIONS, &arena, &list, &errs),
        ERR_NONE);
    ck_assert_str_eq(list.test.row[0].question, data.train.row[0].question);
    for (size_t i = 0; i < QUESTIONS; i++)
        ck_assert_str_eq(list.test.row[EVAL_ARITH_TRAIN + i].question, data.test.row[i].question);
}
END_TEST

/* clang-format off */
static const struct {
    struct eval_progress p;
    const char *line;
} lines[] = {
    {{.questions = 1319}, "[----------------] 0/1319   0%"},
    {{.questions = 1319, .done = 412, .correct = 355, .errors = 1, .seconds = 10, .session = 372,
      .session_tokens = 95120},
     "[####------------] 412/1319  31%  86.4 % [82.7, 89.4]  1 error  37.2/s  9512 tok/s  0:24 left"},
    {{.questions = 10, .done = 10, .errors = 10, .seconds = 0.5, .session = 10},
     "[################] 10/10 100%  10 errors"},
    {{.questions = 1000000, .done = 1, .correct = 1, .seconds = 1e6, .session = 1},
     "[----------------] 1/1000000   0%  100.0 % [20.7, 100.0]  0.0/s  0 tok/s  5999:59 left"},
};
/* clang-format on */

START_TEST(progress_lines)
{
    char buf[160];

    ck_assert_str_eq(progress_text(&lines[_i].p, buf, sizeof buf), lines[_i].line);
    ck_assert_uint_lt(strlen(progress_text(&lines[_i].p, buf, 20)), 20);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("eval");
    TCase *tc = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, each_reply_has_one_outcome);
    tcase_add_loop_test(tc, acceptance_length, 0, COUNT(gates));
    tcase_add_test(tc, a_replay_repeats);
    tcase_add_loop_test(tc, fingerprints, 0, COUNT(changes));
    tcase_add_test(tc, the_served_model_must_be_the_one);
    tcase_add_test(tc, arith_is_one_list);
    tcase_add_loop_test(tc, progress_lines, 0, COUNT(lines));
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
