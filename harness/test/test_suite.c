#include "harness/config/expr.h"
#include "harness/config/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

enum { ARENA_BYTES = 256 << 20, MIB = 1 << 20, TEXT = 512 };

static struct arena arena;
static struct errs errs;
static struct suite suite;

static void set_up(void)
{
    ck_assert(arena_init(&arena, ARENA_BYTES));
    errs = (struct errs){0};
}

static void tear_down(void)
{
    errs_free(&errs);
    arena_free(&arena);
}

static enum err_code load(const char *text)
{
    return suite_load_text("/nowhere/s.yaml", text, strlen(text), &arena, &suite, &errs);
}

static void load_well(const char *text)
{
    enum err_code rc = load(text);

    ck_assert_msg(!rc, "%d:%d: %s", errs.items[0].at.line, errs.items[0].at.column,
                  errs.items[0].text);
    ck_assert_uint_eq(errs.count, 0);
}

/* The values of an axis of entry e as the text "1,2,3". */
static const char *values(size_t e, enum axis_id axis)
{
    static char text[TEXT];
    const struct axis_values *v = &suite.entries[e].axes[axis];
    size_t used = 0;

    for (size_t i = 0; i < v->count; i++) {
        char buf[160];

        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? "," : "",
                                 axis_format(&axes[axis], v->values[i], buf, sizeof buf));
    }
    return text;
}

static const char smoke[] =
    "suite: smoke\n"
    "description: größte Suite\n"
    "seed: 0xfedcba9876543210\n"
    "defaults: {a_dtype: f16, n: [64, 128], check: exact, has_bias: true}\n"
    "entries:\n"
    "  - name: f16-uint4\n"
    "    combine: pairwise\n"
    "    where: [\"k % 64 == 0\", 'm <= 64 or n < 1024']\n"
    "    b_dtype: [uint4, \"uint8\", 'e4m3']\n"
    "    m: {from: 1, to: 65, step: 16}\n"
    "    k: 0x80\n"
    "    block_shape: [64x128x64, auto]\n"
    "    num_stages: auto\n"
    "\n"
    "  # the other way\n"
    "  - {name: b.2, combine: {random: 40}, b_dtype: uint1, m: 7, k: 64, n: 1,\n"
    "     has_bias: [false, true], seed: 3, where: has_bias,\n"
    "     num_sms: {from: 3, to: 5}}\n"
    "  - name: c\n"
    "    combine: full\n"
    "    where: |\n"
    "      m == 1 or\n"
    "      n == 64\n"
    "    b_dtype: uint2\n"
    "    m: 1048576\n"
    "    k: 1\n";

START_TEST(a_suite_is_read_completely)
{
    const struct entry *e;

    load_well(smoke);
    ck_assert_str_eq(suite.name, "smoke");
    ck_assert_str_eq(suite.description, "gr\xc3\xb6\xc3\x9fte Suite");
    ck_assert(suite.seed == UINT64_C(0xfedcba9876543210));
    ck_assert_uint_eq(suite.count, 3);
    e = &suite.entries[0];
    ck_assert_str_eq(e->name, "f16-uint4");
    ck_assert_str_eq(e->at.file, "/nowhere/s.yaml");
    ck_assert_int_eq(e->at.line, 6);
    ck_assert_int_eq(e->at.column, 5);
    ck_assert_int_eq(e->combine, COMBINE_PAIRWISE);
    ck_assert_uint_eq(e->where_count, 2);
    ck_assert_str_eq(values(0, AX_B), "uint4,uint8,float8e4m3");
    ck_assert_str_eq(values(0, AX_M), "1,17,33,49,65");
    ck_assert_str_eq(values(0, AX_K), "128");
    ck_assert_str_eq(values(0, AX_BLOCK), "64x128x64,auto");
    ck_assert_str_eq(values(0, AX_STAGES), "auto");
    ck_assert_int_eq(e->axes[AX_M].at.line, 10);
    ck_assert_int_eq(e->axes[AX_M].at.column, 8);
    ck_assert_int_eq(suite.entries[1].combine, COMBINE_RANDOM);
    ck_assert_uint_eq(suite.entries[1].random_count, 40);
    ck_assert_str_eq(values(1, AX_NUM_SMS), "3,4,5");
    ck_assert_str_eq(values(1, AX_SEED), "0x3");
    ck_assert_int_eq(suite.entries[2].combine, COMBINE_FULL);
    ck_assert_str_eq(values(2, AX_M), "1048576");
}
END_TEST

START_TEST(defaults_fill_what_an_entry_leaves)
{
    load_well(smoke);
    ck_assert_str_eq(values(0, AX_A), "f16");
    ck_assert_str_eq(values(0, AX_N), "64,128");
    ck_assert_str_eq(values(0, AX_BIAS), "true");
    ck_assert(suite.entries[0].axes[AX_N].stated);
    ck_assert_int_eq(suite.entries[0].axes[AX_N].at.line, 4);
    ck_assert_str_eq(values(1, AX_N), "1");
    ck_assert_str_eq(values(1, AX_BIAS), "false,true");
    for (size_t e = 0; e < suite.count; e++)
        for (int i = 0; i < AX_COUNT; i++) {
            const struct axis_values *v = &suite.entries[e].axes[i];

            ck_assert_uint_ge(v->count, 1);
            if (!v->stated)
                ck_assert_str_eq(values(e, (enum axis_id)i), axes[i].fallback);
        }
}
END_TEST

START_TEST(conditions_are_compiled)
{
    int64_t v[AX_COUNT] = {0};

    load_well(smoke);
    v[AX_K] = 128;
    v[AX_M] = 65;
    v[AX_N] = 1023;
    ck_assert(expr_eval(suite.entries[0].where[0], v));
    ck_assert(expr_eval(suite.entries[0].where[1], v));
    v[AX_N] = 1024;
    ck_assert(!expr_eval(suite.entries[0].where[1], v));
    ck_assert(!expr_eval(suite.entries[2].where[0], v));
    v[AX_N] = 64;
    ck_assert(expr_eval(suite.entries[2].where[0], v));
}
END_TEST

/* CR LF and a byte order mark change nothing, places included. */
START_TEST(line_ends_and_mark_are_invisible)
{
    char text[2 * sizeof smoke + 3] = "\xef\xbb\xbf";
    size_t used = 3;

    for (const char *s = smoke; *s; s++) {
        if (*s == '\n')
            text[used++] = '\r';
        text[used++] = *s;
    }
    text[used] = '\0';
    load_well(text);
    ck_assert_uint_eq(suite.count, 3);
    ck_assert_str_eq(values(0, AX_M), "1,17,33,49,65");
    ck_assert_str_eq(suite.entries[2].name, "c");
    ck_assert_int_eq(suite.entries[2].at.line, 19);
    memcpy(strstr(text, "suite: "), "sUite: ", 7);
    ck_assert_int_eq(load(text), ERR_CONFIG);
    ck_assert_int_eq(errs.items[0].at.line, 1);
    ck_assert_int_eq(errs.items[0].at.column, 1);
}
END_TEST

#define HEAD                                                                       \
    "suite: s\ndefaults: {a_dtype: f16, b_dtype: uint4, m: 1, n: 1, k: 1, check: " \
    "exact}\nentries:\n"

/* Mistakes of all kinds come in the order of the file, whatever finds them. */
START_TEST(errors_come_in_order)
{
    static const char text[] = "entries:\n"
                               "  - name: a\n"
                               "    a_dtype: fp9\n"
                               "    n: 0\n"
                               "    n: 2\n"
                               "    where: m = 1\n"
                               "    m: &x 1\n"
                               "defaults: {b_dtype: uint4, k: 1e3, chek: exact}\n"
                               "sweet: s\n";
    static const int lines[] = {1, 2, 3, 4, 5, 6, 7, 8, 8, 9};

    ck_assert_int_eq(load(text), ERR_CONFIG);
    ck_assert_uint_eq(errs.count, COUNT(lines));
    for (size_t i = 0; i < errs.count; i++) {
        ck_assert_msg(errs.items[i].at.line == lines[i], "%zu: line %d: %s", i,
                      errs.items[i].at.line, errs.items[i].text);
        ck_assert_str_eq(errs.items[i].at.file, "/nowhere/s.yaml");
    }
}
END_TEST

/* Errors that were in the list before stay where they were. */
START_TEST(earlier_errors_are_left_alone)
{
    (void)errs_add(&errs, ERR_IO, place_at("z", 99, 1), "earlier");
    ck_assert_int_eq(load("suite: s\n"), ERR_CONFIG);
    ck_assert_uint_eq(errs.count, 2);
    ck_assert_str_eq(errs.items[0].text, "earlier");
    ck_assert_str_eq(errs.items[1].text, "key 'entries' is missing");
}
END_TEST

/* Each is refused with one error at (line 5, column). */
/* clang-format off */
static const struct {
    const char *line;
    int column;
} refused[] = {
    {"m: 010", 8}, {"m: 1e3", 8}, {"m: 1.5", 8}, {"m: nan", 8}, {"m: ~", 8}, {"m:", 7},
    {"m: yes", 8}, {"m: '1'", 8}, {"m: 1_0", 8}, {"m: 9223372036854775808", 8},
    {"m: [1, [2]]", 12}, {"m: [1, 1]", 12}, {"m: []", 8}, {"m: {}", 8}, {"m: {from: 1}", 8},
    {"m: {from: 2, to: 1}", 8}, {"m: {from: 1, to: 4, step: 2}", 8},
    {"m: {from: 1, to: 5, step: 0}", 31}, {"m: {from: 1, to: 4097}", 8},
    {"m: {from: 1, to: 2, by: 1}", 25}, {"m: $x", 8}, {"m: '$x'", 8},
    {"has_bias: yes", 15}, {"has_bias: 'true'", 15}, {"has_bias: TRUE", 15},
    {"use_tma: {from: 0, to: 1}", 14}, {"name: b", 5}, {"name: B!", 5}, {"where: 'k = 1'", 15},
    {"n: *x", 8}, {"n: !!int 3", 8},
    {"? [a]", 7}, {"N: 1", 5}, {"where: [m == 1, k = 1]", 23}, {"where: \"a\\x62 == 1\"", 12},
    {"where: 'm == ''1'''", 12}, {"combine: {random: 0}", 23}, {"combine: 3", 14},
};
/* clang-format on */

START_TEST(wrong_values_are_refused)
{
    char text[TEXT];

    (void)snprintf(text, sizeof text, HEAD "  - name: a\n    %s\n", refused[_i].line);
    ck_assert_int_eq(load(text), ERR_CONFIG);
    ck_assert_uint_eq(errs.count, 1);
    ck_assert_msg(errs.items[0].at.line == 5 && errs.items[0].at.column == refused[_i].column,
                  "'%s': %d:%d: %s", refused[_i].line, errs.items[0].at.line,
                  errs.items[0].at.column, errs.items[0].text);
}
END_TEST

/* ---- limits: the largest allowed passes, one more does not ---- */

static char *repeat(const char *head, const char *piece, int n, const char *tail)
{
    size_t size = strlen(head) + (size_t)n * (strlen(piece) + 8) + strlen(tail) + 1, used = 0;
    char *text = malloc(size);

    ck_assert_ptr_nonnull(text);
    used += (size_t)snprintf(text, size, "%s", head);
    for (int i = 0; i < n; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%d%s", piece, i + 1,
                                 i + 1 < n ? "," : "");
    (void)snprintf(text + used, size - used, "%s", tail);
    return text;
}

START_TEST(counts_are_limited)
{
    static const struct {
        const char *head, *piece, *tail;
        int most;
    } limits[] = {
        {HEAD "  - name: a\n    m: [", "", "]\n", 4096},
        {"suite: s\ndefaults: {a_dtype: f16, b_dtype: uint4, m: 1, n: 1, k: 1, check: "
         "exact}\nentries: [",
         "name: e", "]\n", 1000}, /* [name: e1, ..]: maps of one key */
    };

    for (int over = 0; over < 2; over++) {
        char *text =
            repeat(limits[_i].head, limits[_i].piece, limits[_i].most + over, limits[_i].tail);

        ck_assert_int_eq(load(text), over ? ERR_CONFIG : ERR_NONE);
        free(text);
    }
}
END_TEST

START_TEST(size_is_limited)
{
    char *text = malloc(MIB + 1);
    size_t n = strlen(smoke);

    ck_assert_ptr_nonnull(text);
    memset(text, '#', MIB + 1);
    for (size_t i = 0; i < n; i++)
        text[i] = smoke[i];
    ck_assert_int_eq(suite_load_text("s", text, MIB, &arena, &suite, &errs), ERR_NONE);
    ck_assert_int_eq(suite_load_text("s", text, MIB + 1, &arena, &suite, &errs), ERR_CONFIG);
    free(text);
}
END_TEST

/* ---- includes ---- */

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");

    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(text, 1, strlen(text), f), strlen(text));
    ck_assert_int_eq(fclose(f), 0);
}

START_TEST(named_lists_are_included)
{
    char folder[] = "/tmp/test_suite_XXXXXX", path[64], list[64];

    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/s.yaml", folder);
    (void)snprintf(list, sizeof list, "%s/l.yaml", folder);
    write_file(path,
               "suite: s\ninclude: [l.yaml]\n"
               "defaults: {a_dtype: f16, b_dtype: uint4, m: $small, k: $small, check: exact}\n"
               "entries: [{name: a, n: $large}, {name: b, n: $small, num_stages: $small}]\n");
    write_file(list, "small: [2, 3]\nlarge:\n  - 4096\nunused: [anything]\n");
    ck_assert_int_eq(suite_load(path, &arena, &suite, &errs), ERR_NONE);
    ck_assert_str_eq(values(0, AX_N), "4096");
    ck_assert_str_eq(values(0, AX_M), "2,3");
    ck_assert_str_eq(values(1, AX_STAGES), "2,3");
    write_file(list, "small: [2, 9]\nlarge: [x]\n");
    ck_assert_int_eq(suite_load(path, &arena, &suite, &errs), ERR_CONFIG);
    ck_assert_uint_eq(errs.count, 2);
    for (int i = 0; i < 2; i++) {
        ck_assert_str_eq(errs.items[i].at.file, list);
        ck_assert_int_eq(errs.items[i].at.line, i + 1);
    }
    ck_assert_int_eq(unlink(list), 0);
    ck_assert_int_eq(suite_load(path, &arena, &suite, &errs), ERR_CONFIG);
    ck_assert_str_eq(errs.items[2].at.file, path);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(suite_load(path, &arena, &suite, &errs), ERR_CONFIG);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

/* ---- robustness ---- */

/* Whatever memory there is, loading ends well or says that memory is missing. */
START_TEST(no_memory_is_an_error)
{
    int good = 0, bad = 0;

    for (size_t limit = 0; limit < 40000; limit += 192) {
        struct arena small;
        struct errs e = {0};
        struct suite s;
        enum err_code rc;

        ck_assert(arena_init(&small, limit));
        rc = suite_load_text("s", smoke, strlen(smoke), &small, &s, &e);
        ck_assert_msg(rc == ERR_NONE || rc == ERR_NOMEM, "limit %zu: %s", limit, e.items[0].text);
        ck_assert_int_eq(!rc, !e.count);
        good += !rc;
        bad += rc != ERR_NONE;
        errs_free(&e);
        arena_free(&small);
    }
    ck_assert_int_gt(good, 0);
    ck_assert_int_gt(bad, 20);
}
END_TEST

/* Every byte of a good suite removed, or replaced: loading ends, and what fails has an error at
 * a place in the file. */
START_TEST(damaged_suites_never_crash)
{
    static const char damage[] = {'\0', '\t', '"', ':', '{', ',', '&', '0', (char)0xc3};
    size_t n = strlen(smoke);

    for (size_t i = 0; i < n; i++)
        for (size_t d = i % 3; d <= sizeof damage; d += 3) {
            char text[sizeof smoke];
            struct errs e = {0};
            enum err_code rc;

            memcpy(text, smoke, sizeof text);
            if (d < sizeof damage)
                text[i] = damage[d];
            else
                memmove(text + i, text + i + 1, n - i);
            arena_reset(&arena);
            rc = suite_load_text("s", text, n - (d == sizeof damage), &arena, &suite, &e);
            if (!rc != !e.count || rc == ERR_NOMEM)
                ck_abort_msg("byte %zu, damage %zu: code %d, %zu errors", i, d, rc, e.count);
            for (size_t j = 0; j < e.count; j++)
                if (!e.items[j].text[0] || e.items[j].at.line > 30 || e.items[j].at.line < 0)
                    ck_abort_msg("byte %zu, damage %zu: '%s'", i, d, e.items[j].text);
            errs_free(&e);
        }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("suite");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, a_suite_is_read_completely);
    tcase_add_test(tc, defaults_fill_what_an_entry_leaves);
    tcase_add_test(tc, conditions_are_compiled);
    tcase_add_test(tc, line_ends_and_mark_are_invisible);
    tcase_add_test(tc, errors_come_in_order);
    tcase_add_test(tc, earlier_errors_are_left_alone);
    tcase_add_loop_test(tc, wrong_values_are_refused, 0, (int)COUNT(refused));
    tcase_add_loop_test(tc, counts_are_limited, 0, 2);
    tcase_add_test(tc, size_is_limited);
    tcase_add_test(tc, named_lists_are_included);
    tcase_add_test(tc, no_memory_is_an_error);
    tcase_add_test(tc, damaged_suites_never_crash);
    tcase_set_timeout(tc, 60);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
