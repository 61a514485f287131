#include "harness/eval/protocol.h"

#include <check.h>
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (int)(sizeof(a) / sizeof(a)[0])

/* The real data: the folder of train.jsonl, test.jsonl and example_model_solutions.jsonl of
 * openai/grade-school-math (commit 3101c7d5), named by HUMCHECK_GSM8K. Digests and row numbers were
 * computed in Python from the tools' own code and these files. */

enum { SCRATCH = 1 << 22, SKIPPED = 77, TRAIN = 7473, TEST = 1319 };

static struct arena arena, scratch;
static struct dataset data;

static struct prompts begin(const char *name, size_t questions)
{
    const struct protocol *protocol = protocol_find(name);
    struct protocol_options o = protocol->defaults;
    struct errs errs = {0};
    struct prompts p;

    o.model = "m";
    ck_assert_int_eq(prompts_init(&p, protocol, &data, &o, questions, &arena, &errs), ERR_NONE);
    return p;
}

START_TEST(rows_are_gsm8k_s)
{
    ck_assert_uint_eq(data.train.count, TRAIN);
    ck_assert_uint_eq(data.test.count, TEST);
    ck_assert_str_eq(data.test.sha256, dataset_files[DATASET_TEST].sha256);
    ck_assert_str_eq(data.test.row[0].label, "18");
}
END_TEST

/* Of the labels, test: 2 negative, 14 with a comma; train: 3 and 79. */
static void count_labels(const struct dataset_rows *rows, int negative, int commas)
{
    for (size_t i = 0; i < rows->count; i++) {
        negative -= rows->row[i].label[0] == '-';
        commas -= strchr(rows->row[i].label, ',') != NULL;
        ck_assert_uint_eq(strspn(rows->row[i].label, "-,0123456789"), strlen(rows->row[i].label));
    }
    ck_assert_int_eq(negative, 0);
    ck_assert_int_eq(commas, 0);
}

START_TEST(labels_are_whole_numbers)
{
    count_labels(&data.test, 2, 14);
    count_labels(&data.train, 3, 79);
}
END_TEST

static void check_golds(const struct dataset_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        struct span gold = span_of(rows->row[i].answer);
        struct answer out[EXTRACTOR_COUNT];

        arena_reset(&scratch);
        ck_assert(extract_all(gold, gold, &scratch, out));
        for (int e = 0; e < EXTRACTOR_COUNT; e++)
            ck_assert_msg(out[e].valid && out[e].correct, "row %zu, %s: %s", i, extractors[e].name,
                          out[e].text);
    }
}

START_TEST(every_gold_is_correct_by_every_rule)
{
    check_golds(&data.test);
    check_golds(&data.train);
}
END_TEST

/* Prompts by protocol and question. */
/* clang-format off */
static const struct {
    const char *protocol;
    size_t question, bytes;
    const char *sha256;
} prompts[] = {
    {"vllm", 0, 2160, "ea821015b5b035b5699391cb903e1dc2ba0bfff20e99caa72f169af47609249e"},
    {"lm-eval", 0, 3189, "32680f263ba83280e98a8a24ceefed10a722a4cdcd9f4d78e93c45d43143ca66"},
    {"lm-eval", 1, 0, "e6b9a0195411932e5323ed20ad05e965b08b979103bbb26594a5bdf123d27990"},
    {"lm-eval", 1318, 0, "c9c63955e0cf2185cb505fbc69b80561f7bad5c30a5daee94cc851b31107f4cb"},
};
/* clang-format on */

START_TEST(prompts_are_equal_byte_for_byte)
{
    struct prompts p = begin(prompts[_i].protocol, TEST);
    struct span text = prompts_text(&p, prompts[_i].question, &arena);
    char hex[SHA256_HEX];

    ck_assert_str_eq(sha256_hex(text.at, text.size, hex), prompts[_i].sha256);
    if (prompts[_i].bytes)
        ck_assert_uint_eq(text.size, prompts[_i].bytes);
}
END_TEST

/* What stands before the question is the same for all: its length and digest. */
/* clang-format off */
static const struct {
    const char *protocol;
    size_t bytes, first;
    const char *sha256;
} prefixes[] = {
    {"vllm", 1860, 0, "62941520cef227038328430a362e8294ae9d80441faf04ccaa869145e26d5609"},
    {"sglang", 2216, 5, "8d2a7823e8b2157917ae88db830fedc5e2a984e5ecabf4ae39380756d23f48b2"},
};
/* clang-format on */

START_TEST(prefixes_are_constant)
{
    size_t most = TEST - prefixes[_i].first;
    struct prompts p = begin(prefixes[_i].protocol, most);
    char hex[SHA256_HEX];

    for (size_t i = 0; i < most; i++) {
        struct span text;

        arena_reset(&scratch);
        text = prompts_text(&p, i, &scratch);
        ck_assert_str_eq(sha256_hex(text.at, prefixes[_i].bytes, hex), prefixes[_i].sha256);
        ck_assert(!strncmp(text.at + prefixes[_i].bytes, "Question: ", 10));
        ck_assert_ptr_eq(prompts_row(&p, i), &data.test.row[prefixes[_i].first + i]);
    }
}
END_TEST

/* clang-format off */
static const struct {
    size_t question;
    uint32_t rows[5];
} draws[] = {
    {0, {6374, 3610, 957, 61, 742}},
    {1, {7462, 6610, 4769, 286, 5501}},
    {2, {5677, 687, 806, 6279, 2905}},
    {3, {1939, 142, 252, 6461, 129}},
    {1318, {220, 4179, 6064, 5599, 5541}},
};
/* clang-format on */

START_TEST(lm_eval_draws_its_rows)
{
    struct prompts p = begin("lm-eval", TEST);

    for (int d = 0; d < COUNT(draws); d++)
        for (size_t k = 0; k < 5; k++)
            ck_assert_uint_eq(p.rows[5 * draws[d].question + k], draws[d].rows[k]);
}
END_TEST

/* All 1319 prompts of lm-eval, joined by NUL; and a limit changes none of them. */
START_TEST(all_prompts_of_lm_eval)
{
    struct prompts p = begin("lm-eval", TEST), few = begin("lm-eval", 7);
    struct sha256 hash;
    char hex[SHA256_HEX];

    sha256_init(&hash);
    for (size_t i = 0; i < TEST; i++) {
        struct span text;

        arena_reset(&scratch);
        text = prompts_text(&p, i, &scratch);
        sha256_add(&hash, text.at, text.size + (i + 1 < TEST));
        if (i < few.count)
            ck_assert_str_eq(text.at, prompts_text(&few, i, &scratch).at);
    }
    ck_assert_str_eq(sha256_end(&hash, hex),
                     "84119a05b6c77e92415182c7963444e153dd2df04e05e238744f26b105c0a8b6");
}
END_TEST

/* A request's prompt comes back from the JSON as it went in. */
START_TEST(requests_carry_the_prompt)
{
    struct prompts p = begin("lm-eval", TEST);

    for (size_t i = 0; i < TEST; i += 10) {
        struct span text;
        cJSON *body;

        arena_reset(&scratch);
        text = prompts_text(&p, i, &scratch);
        body = cJSON_Parse(prompts_request(&p, text.at, &scratch));
        ck_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItem(body, "prompt")), text.at);
        cJSON_Delete(body);
    }
}
END_TEST

/* Real outputs: four models of OpenAI on all of test, graded by OpenAI (`right`). vLLM's rule
 * scores `last_int` of them as right, because it reads "3.5" as 5 and "-20" as 20; every other
 * rule agrees with OpenAI's on each single one. */
static const struct {
    const char *name;
    int right, last_int;
} models[] = {
    {"6b_finetuning", 286, 296},
    {"6b_verification", 515, 515},
    {"175b_finetuning", 458, 467},
    {"175b_verification", 742, 742},
};

/* The solution with its last line, "A: N", as "#### N". */
static struct span solution_of(const cJSON *model)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(model, "solution"));
    const char *line = NULL;

    ck_assert_ptr_nonnull(text);
    for (const char *at = strstr(text, "\nA: "); at; at = strstr(at + 1, "\nA: "))
        line = at + 1;
    if (line)
        text = arena_printf(&scratch, "%.*s#### %s", (int)(line - text), text, line + 3);
    ck_assert_ptr_nonnull(text);
    return span_of(text);
}

static void grade(const cJSON *model, size_t row, int right[EXTRACTOR_COUNT], int *graded)
{
    int is_correct = cJSON_IsTrue(cJSON_GetObjectItem(model, "is_correct"));
    struct answer out[EXTRACTOR_COUNT];

    ck_assert(extract_all(solution_of(model), span_of(data.test.row[row].answer), &scratch, out));
    *graded += is_correct;
    for (int e = 0; e < EXTRACTOR_COUNT; e++) {
        right[e] += out[e].correct;
        ck_assert_msg(e == EXTRACT_LAST_INT || out[e].correct == is_correct, "row %zu, %s: '%s'",
                      row, extractors[e].name, out[e].text);
    }
}

static char *read_all(const char *path)
{
    FILE *f = fopen(path, "r");
    char *text = NULL;
    size_t size = 0;

    ck_assert_ptr_nonnull(f);
    ck_assert_int_gt((int)getdelim(&text, &size, '\0', f), 0);
    (void)fclose(f);
    return text;
}

START_TEST(real_outputs_agree)
{
    const char *path =
        arena_printf(&arena, "%s/example_model_solutions.jsonl", getenv("HUMCHECK_GSM8K"));
    int right[COUNT(models)][EXTRACTOR_COUNT] = {{0}}, graded[COUNT(models)] = {0};
    char *text = read_all(path);
    const char *line = text;
    size_t row = 0;

    for (; *line; row++) {
        cJSON *object = cJSON_ParseWithOpts(line, &line, false);

        ck_assert_uint_lt(row, TEST);
        for (int m = 0; m < COUNT(models); m++) {
            arena_reset(&scratch);
            grade(cJSON_GetObjectItem(object, models[m].name), row, right[m], &graded[m]);
        }
        cJSON_Delete(object);
        line += strspn(line, "\n");
    }
    free(text);
    ck_assert_uint_eq(row, TEST);
    for (int m = 0; m < COUNT(models); m++) {
        ck_assert_int_eq(graded[m], models[m].right);
        ck_assert_int_eq(right[m][EXTRACT_LAST_INT], models[m].last_int);
        ck_assert_int_eq(right[m][EXTRACT_ROBUST], models[m].right);
    }
}
END_TEST

/* The data once, for all tests. */
static int load(void)
{
    const char *folder = getenv("HUMCHECK_GSM8K");
    struct errs errs = {0};
    char text[ERR_TEXT];

    if (!folder || !*folder) {
        (void)puts("HUMCHECK_GSM8K does not name a folder with GSM8K: skipped");
        return SKIPPED;
    }
    if (!arena_init(&arena, DATASET_ARENA) || !arena_init(&scratch, SCRATCH))
        return EXIT_FAILURE;
    if (dataset_load(folder, &arena, &data, &errs)) {
        (void)puts(err_format(&errs.items[0], text, sizeof text));
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

int main(void)
{
    Suite *s;
    TCase *tc;
    SRunner *r;
    int failed = load();

    if (failed)
        return failed;
    s = suite_create("GSM8K");
    tc = tcase_create("all");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, rows_are_gsm8k_s);
    tcase_add_test(tc, labels_are_whole_numbers);
    tcase_add_test(tc, every_gold_is_correct_by_every_rule);
    tcase_add_loop_test(tc, prompts_are_equal_byte_for_byte, 0, COUNT(prompts));
    tcase_add_loop_test(tc, prefixes_are_constant, 0, COUNT(prefixes));
    tcase_add_test(tc, lm_eval_draws_its_rows);
    tcase_add_test(tc, all_prompts_of_lm_eval);
    tcase_add_test(tc, requests_carry_the_prompt);
    tcase_add_test(tc, real_outputs_agree);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    arena_free(&arena);
    arena_free(&scratch);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
