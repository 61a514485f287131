#include "harness/cli/options.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
static const struct cli_option table[] = {
    {"filter",  OPT_TEXT,    OPTION_AT(filter),       "GLOB", NULL, 0,    "which"},
    {"out",     OPT_OUTS,    0,                       "KIND:TARGET", NULL, 0, "where"},
    {"jobs",    OPT_COUNT,   OPTION_AT(jobs),         "N",    "7",  1024, "how many"},
    {"seconds", OPT_SECONDS, OPTION_AT(case_seconds), "S",    NULL, 3600, "how long"},
    {"seed",    OPT_SEED,    0,                       "0x..", NULL, 0,    "seed"},
    {"shard",   OPT_SHARD,   0,                       "I/N",  NULL, 100,  "part"},
    {"quiet",   OPT_FLAG,    OPTION_AT(quiet),        "",     NULL, 0,    "less"},
    {"changed", OPT_LIST,    OPTION_AT(changed),      "FILE", NULL, 0,    "what"},
    {"budget",  OPT_TIME,    OPTION_AT(budget_seconds), "TIME", NULL, 7200, "how long in all"},
};
/* clang-format on */

static const struct command command = {.name = "try",
                                       .operands = "FILE...",
                                       .min_operands = 1,
                                       .max_operands = 2,
                                       .options = table,
                                       .option_count = sizeof table / sizeof table[0],
                                       .help = "try things"};

static struct arena arena;
static struct errs errs;
static struct options got;

static void set_up(void)
{
    ck_assert(arena_init(&arena, (size_t)1 << 20));
    errs = (struct errs){0};
}

static void tear_down(void)
{
    errs_free(&errs);
    arena_free(&arena);
}

enum { WORDS = 16 };

/* Splits `line` at spaces: no argument of these tests holds one. */
static enum err_code parse(const char *line)
{
    char *argv[WORDS];
    int argc = 0;

    while (*line && argc < WORDS) {
        size_t n = strcspn(line, " ");

        argv[argc++] = arena_printf(&arena, "%.*s", (int)n, line);
        line += n + (line[n] == ' ');
    }
    return options_parse(&command, argc, argv, &arena, &got, &errs);
}

START_TEST(both_spellings)
{
    ck_assert_int_eq(parse("a --filter=x=y --jobs 3 --out jsonl:f b --quiet --out=junit:g"), 0);
    ck_assert_str_eq(got.filter, "x=y");
    ck_assert_int_eq(got.jobs, 3);
    ck_assert(got.quiet);
    ck_assert_uint_eq(got.operand_count, 2);
    ck_assert_str_eq(got.operands[0], "a");
    ck_assert_str_eq(got.operands[1], "b");
    ck_assert_uint_eq(got.out_count, 2);
    ck_assert_str_eq(got.outs[0], "jsonl:f");
    ck_assert_str_eq(got.outs[1], "junit:g");
}
END_TEST

START_TEST(lists_grow)
{
    ck_assert_int_eq(parse("a --changed=b --changed c --changed=b"), 0);
    ck_assert_uint_eq(got.changed.count, 3);
    ck_assert_str_eq(got.changed.items[0], "b");
    ck_assert_str_eq(got.changed.items[1], "c");
    ck_assert_str_eq(got.changed.items[2], "b");
}
END_TEST

static const struct {
    const char *line;
    double seconds;
} times[] = {{"a --budget 90s", 90},
             {"a --budget=10m", 600},
             {"a --budget 1.5h", 5400},
             {"a --budget 0.25s", 0.25},
             {"a --budget 2h", 7200}};

START_TEST(good_times)
{
    ck_assert_int_eq(parse(times[_i].line), 0);
    ck_assert_double_eq_tol(got.budget_seconds, times[_i].seconds, 1e-9);
}
END_TEST

START_TEST(fallbacks)
{
    ck_assert_int_eq(parse("a"), 0);
    ck_assert_int_eq(got.jobs, 7);
    ck_assert(!got.quiet && !got.has_seed && !got.filter && !got.out_count && !got.shards);
}
END_TEST

START_TEST(two_dashes_end_options)
{
    ck_assert_int_eq(parse("-- --quiet -x"), 0);
    ck_assert(!got.quiet);
    ck_assert_uint_eq(got.operand_count, 2);
    ck_assert_str_eq(got.operands[0], "--quiet");
    ck_assert_str_eq(got.operands[1], "-x");
}
END_TEST

START_TEST(value_may_look_like_an_option)
{
    ck_assert_int_eq(parse("a --filter --quiet"), 0);
    ck_assert_str_eq(got.filter, "--quiet");
    ck_assert(!got.quiet);
}
END_TEST

static const struct {
    const char *text;
    uint64_t value;
} seeds[] = {{"0", 0},
             {"0x1", 1},
             {"0XfF", 255},
             {"18446744073709551615", UINT64_MAX},
             {"0xffffffffffffffff", UINT64_MAX},
             {"010", 10}};

START_TEST(good_seeds)
{
    ck_assert_int_eq(parse(arena_printf(&arena, "a --seed %s", seeds[_i].text)), 0);
    ck_assert(got.has_seed);
    ck_assert(got.seed == seeds[_i].value);
}
END_TEST

START_TEST(good_shard_and_seconds)
{
    ck_assert_int_eq(parse("a --shard 3/100 --seconds 0.25"), 0);
    ck_assert_int_eq(got.shard, 3);
    ck_assert_int_eq(got.shards, 100);
    ck_assert_double_eq(got.case_seconds, 0.25);
}
END_TEST

/* One wrong line, and a word of the sentence that it must give. */
static const struct {
    const char *line, *sentence;
} wrong[] = {
    {"", "try needs FILE..."},
    {"a b c", "try takes no 'c'"},
    {"a --", NULL},
    {"a --filtr x", "unknown option '--filtr'; did you mean '--filter'?"},
    {"a --hlep", "did you mean '--help'?"},
    {"a --zzzzzzzz", "unknown option '--zzzzzzzz'"},
    {"a -q", "unknown option '-q'"},
    {"a --filter", "--filter needs a value"},
    {"a --filter=", "--filter needs a text that is not empty"},
    {"a --quiet=1", "--quiet takes no value"},
    {"a --changed=", "--changed needs a text that is not empty"},
    {"a --budget 10", "--budget needs a time such as 90s, 10m or 1.5h, up to 2h, got '10'"},
    {"a --budget 0s", "got '0s'"},
    {"a --budget -1s", "got '-1s'"},
    {"a --budget m", "got 'm'"},
    {"a --budget 1ms", "got '1ms'"},
    {"a --budget 1d", "got '1d'"},
    {"a --budget 1.2.3s", "got '1.2.3s'"},
    {"a --budget 121m", "got '121m'"},
    {"a --budget infs", "got 'infs'"},
    {"a --budget 000000000000000000000000000000000001s", "--budget needs a time"},
    {"a --budget 1s --budget 1s", "--budget is given twice"},
    {"a --jobs 0", "--jobs needs a whole number from 1 to 1024, got '0'"},
    {"a --jobs 1025", "got '1025'"},
    {"a --jobs -1", "got '-1'"},
    {"a --jobs +1", "got '+1'"},
    {"a --jobs 1x", "got '1x'"},
    {"a --jobs 0x1", "got '0x1'"},
    {"a --jobs 99999999999999999999", "got '99999999999999999999'"},
    {"a --jobs 1 --jobs 1", "--jobs is given twice"},
    {"a --seconds 0", "--seconds needs seconds above 0"},
    {"a --seconds nan", "got 'nan'"},
    {"a --seconds inf", "got 'inf'"},
    {"a --seconds -1", "got '-1'"},
    {"a --seconds 1.2.3", "got '1.2.3'"},
    {"a --seconds .", "got '.'"},
    {"a --seconds 3601", "got '3601'"},
    {"a --seed 18446744073709551616", "--seed needs a 64-bit number"},
    {"a --seed 0x10000000000000000", "got '0x10000000000000000'"},
    {"a --seed 0x", "got '0x'"},
    {"a --seed -1", "got '-1'"},
    {"a --seed 1z", "got '1z'"},
    {"a --shard 0/2", "--shard needs I/N"},
    {"a --shard 3/2", "got '3/2'"},
    {"a --shard 1/101", "got '1/101'"},
    {"a --shard 1", "got '1'"},
    {"a --shard 1/", "got '1/'"},
    {"a --shard /2", "got '/2'"},
    {"a --shard 1/2/3", "got '1/2/3'"},
};

START_TEST(wrong_lines)
{
    enum err_code rc = parse(wrong[_i].line);

    if (!wrong[_i].sentence) {
        ck_assert_int_eq(rc, ERR_NONE);
        return;
    }
    ck_assert_int_eq(rc, ERR_USAGE);
    ck_assert_uint_eq(errs.count, 1);
    ck_assert_msg(strstr(errs.items[0].text, wrong[_i].sentence) != NULL, "'%s' gave: %s",
                  wrong[_i].line, errs.items[0].text);
}
END_TEST

START_TEST(all_mistakes_at_once)
{
    ck_assert_int_eq(parse("--jobs 0 --nothing --shard x --quiet=2"), ERR_USAGE);
    ck_assert_uint_eq(errs.count, 5); /* and the operand is missing */
}
END_TEST

START_TEST(help_wins)
{
    ck_assert_int_eq(parse("--jobs 0 --help --nothing"), ERR_NONE);
    ck_assert(got.help);
    ck_assert_uint_eq(errs.count, 0);
}
END_TEST

START_TEST(control_characters_are_escaped)
{
    ck_assert_int_eq(parse("a --\033[31m"), ERR_USAGE);
    ck_assert(strchr(errs.items[0].text, '\033') == NULL);
}
END_TEST

static void has(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "no '%s' in: %s", part, text);
}

START_TEST(help_names_every_option)
{
    char text[4096] = "";
    FILE *f = fmemopen(text, sizeof text, "w");

    ck_assert_ptr_nonnull(f);
    options_help(&command, &arena, f);
    ck_assert_int_eq(fclose(f), 0);
    for (int i = 0; i < command.option_count; i++) {
        has(text, arena_printf(&arena, "--%s", table[i].name));
        has(text, table[i].help);
    }
    has(text, "usage: humcheck try [options] FILE...");
    has(text, "(default: 7)");
    has(text, "--help");
    has(text, "exit codes:");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("options");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, both_spellings);
    tcase_add_test(tc, lists_grow);
    tcase_add_loop_test(tc, good_times, 0, (int)(sizeof times / sizeof times[0]));
    tcase_add_test(tc, fallbacks);
    tcase_add_test(tc, two_dashes_end_options);
    tcase_add_test(tc, value_may_look_like_an_option);
    tcase_add_loop_test(tc, good_seeds, 0, (int)(sizeof seeds / sizeof seeds[0]));
    tcase_add_test(tc, good_shard_and_seconds);
    tcase_add_loop_test(tc, wrong_lines, 0, (int)(sizeof wrong / sizeof wrong[0]));
    tcase_add_test(tc, all_mistakes_at_once);
    tcase_add_test(tc, help_wins);
    tcase_add_test(tc, control_characters_are_escaped);
    tcase_add_test(tc, help_names_every_option);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
