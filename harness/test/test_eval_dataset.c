#include "harness/eval/dataset.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(a) (int)(sizeof(a) / sizeof(a)[0])

enum { ARENA = 1 << 24, PATH = 256 };

static struct arena arena;
static struct errs errs;

static void setup(void)
{
    ck_assert(arena_init(&arena, ARENA));
}

static void teardown(void)
{
    errs_free(&errs);
    arena_free(&arena);
}

static enum err_code parse(const char *text, struct dataset_rows *rows)
{
    return dataset_parse("x.jsonl", text, strlen(text), &arena, rows, &errs);
}

START_TEST(lines_become_rows)
{
    static const char text[] =
        "# a comment, then a line without its end\n"
        "{\"answer\": \"1\\n#### 2\\n#### 1,234\", \"question\": \"q\xe2\x80\xa8r\"}\n"
        "{\"question\": \"\\u00e9 \\ud83d\\ude00\", \"answer\": \"#### -3\"}";
    struct dataset_rows rows;
    char hex[SHA256_HEX];

    ck_assert_int_eq(parse(text, &rows), ERR_NONE);
    ck_assert_uint_eq(rows.count, 2);
    ck_assert_str_eq(rows.row[0].question, "q\xe2\x80\xa8r");
    ck_assert_str_eq(rows.row[0].answer, "1\n#### 2\n#### 1,234");
    ck_assert_str_eq(rows.row[0].label, "1,234");
    ck_assert_str_eq(rows.row[1].question, "\xc3\xa9 \xf0\x9f\x98\x80");
    ck_assert_str_eq(rows.row[1].label, "-3");
    ck_assert_str_eq(rows.sha256, sha256_hex(text, strlen(text), hex));
}
END_TEST

START_TEST(no_lines_are_no_rows)
{
    struct dataset_rows rows;

    ck_assert_int_eq(parse("", &rows), ERR_NONE);
    ck_assert_uint_eq(rows.count, 0);
    ck_assert_int_eq(parse("#\n#", &rows), ERR_NONE);
    ck_assert_uint_eq(rows.count, 0);
}
END_TEST

#define GOOD  "{\"question\": \"q\", \"answer\": \"#### 1\"}\n"
#define SHAPE "the line is not a JSON object with the strings 'question' and 'answer'"
#define NUL   "the line is not UTF-8 text without NUL"
#define END   "the answer does not end with '#### N'"

/* Bad texts, and the error they must give. */
/* clang-format off */
static const struct {
    const char *text, *error;
} bad[] = {
    {GOOD "\n", "x.jsonl:2:1: " SHAPE},
    {"<html>429</html>", "x.jsonl:1:1: " SHAPE},
    {GOOD GOOD "{\"question\": \"q\", \"answ", "x.jsonl:3:1: " SHAPE},
    {"{\"question\": 1, \"answer\": \"#### 1\"}", "x.jsonl:1:1: " SHAPE},
    {"{\"question\": \"q\"}", "x.jsonl:1:1: " SHAPE},
    {"{\"Question\": \"q\", \"answer\": \"#### 1\"}", "x.jsonl:1:1: " SHAPE},
    {"[\"question\", \"answer\"]", "x.jsonl:1:1: " SHAPE},
    {"#\n{\"question\": \"\xff\", \"answer\": \"#### 1\"}", "x.jsonl:2:1: " NUL},
    {"{\"question\": \"a\\u0000b\", \"answer\": \"#### 1\"}", "x.jsonl:1:1: " NUL},
    {"{\"question\": \"q\", \"answer\": \"18\"}", "x.jsonl:1:1: " END},
    {"{\"question\": \"q\", \"answer\": \"#### \"}", "x.jsonl:1:1: " END},
};
/* clang-format on */

START_TEST(bad_lines_are_refused)
{
    struct dataset_rows rows;
    char text[ERR_TEXT];

    ck_assert_int_eq(parse(bad[_i].text, &rows), ERR_CONFIG);
    ck_assert_uint_eq(errs.count, 1);
    ck_assert_str_eq(err_format(&errs.items[0], text, sizeof text), bad[_i].error);
}
END_TEST

START_TEST(a_full_arena_is_said)
{
    struct arena small;
    struct dataset_rows rows;

    for (size_t limit = 0; limit < 256; limit += 64) {
        ck_assert(arena_init(&small, limit));
        ck_assert_int_eq(dataset_parse("x", GOOD, strlen(GOOD), &small, &rows, &errs),
                         limit < 192 ? ERR_NOMEM : ERR_NONE);
        arena_free(&small);
    }
}
END_TEST

START_TEST(labels)
{
    ck_assert_str_eq(dataset_label("a\n#### 5"), "5");
    ck_assert_str_eq(dataset_label("#### 4 #### 5"), "5");
    ck_assert_str_eq(dataset_label("##### 5"), "5");
    ck_assert_ptr_null(dataset_label("####5"));
    ck_assert_ptr_null(dataset_label(""));
}
END_TEST

static void write_file(const char *folder, const char *name, size_t bytes)
{
    char path[PATH];
    char *text = malloc(bytes);
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    f = fopen(path, "w");
    ck_assert(f && text);
    memset(text, '#', bytes);
    ck_assert_uint_eq(fwrite(text, 1, bytes, f), bytes);
    ck_assert_int_eq(fclose(f), 0);
    free(text);
}

static void remove_file(const char *folder, const char *name)
{
    char path[PATH];

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    (void)remove(path);
}

/* One file of the right size and other bytes, the other one byte short; both are named at once,
 * with both hashes. */
START_TEST(other_files_are_refused)
{
    char folder[] = "/tmp/test_eval_dataset.XXXXXX";
    struct dataset data;

    ck_assert_ptr_nonnull(mkdtemp(folder));
    write_file(folder, "train.jsonl", dataset_files[DATASET_TRAIN].bytes);
    write_file(folder, "test.jsonl", dataset_files[DATASET_TEST].bytes - 1);
    ck_assert_int_eq(dataset_load(folder, &arena, &data, &errs), ERR_CONFIG);
    remove_file(folder, "train.jsonl");
    remove_file(folder, "test.jsonl");
    (void)rmdir(folder);
    ck_assert_uint_eq(errs.count, 2);
    for (int i = 0; i < DATASET_FILES; i++) {
        ck_assert_ptr_nonnull(strstr(errs.items[i].text, dataset_files[i].sha256));
        ck_assert_ptr_nonnull(strstr(errs.items[i].at.file, dataset_files[i].name));
    }
    ck_assert_ptr_nonnull(strstr(errs.items[1].text, "749737 bytes"));
    ck_assert_ptr_nonnull(strstr(errs.items[1].text, "749738"));
}
END_TEST

START_TEST(missing_files_are_said)
{
    struct dataset data;

    ck_assert_int_eq(dataset_load("/nonexistent", &arena, &data, &errs), ERR_IO);
    ck_assert_uint_eq(errs.count, 2);
    ck_assert_str_eq(errs.items[0].text, "cannot be read: No such file or directory");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("data set");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, lines_become_rows);
    tcase_add_test(tc, no_lines_are_no_rows);
    tcase_add_loop_test(tc, bad_lines_are_refused, 0, COUNT(bad));
    tcase_add_test(tc, a_full_arena_is_said);
    tcase_add_test(tc, labels);
    tcase_add_test(tc, other_files_are_refused);
    tcase_add_test(tc, missing_files_are_said);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
