/* What a server's /metrics and nvidia-smi say, as texts. */
#include "harness/eval/gpu_memory.h"
#include "harness/eval/server.h"

#include <check.h>
#include <stdlib.h>

#define COUNT(table) ((int)(sizeof(table) / sizeof(table)[0]))

static const struct {
    const char *text, *started;
} starts[] = {
    {"# HELP process_start_time_seconds x\nprocess_start_time_seconds 1.75e+09\nx 1\n", "1.75e+09"},
    {"process_start_time_seconds 1764547200.25\r\n", "1764547200.25"},
    {"process_start_time_seconds 1", "1"},
    {"process_start_time_seconds_total 1\nxprocess_start_time_seconds 2\n", ""},
    {"", ""},
};

START_TEST(start_time)
{
    char text[SERVER_STARTED_TEXT];

    ck_assert_str_eq(server_started(starts[_i].text, text), starts[_i].started);
}
END_TEST

/* clang-format off */
static const struct {
    const char *text;
    size_t count;
    int64_t index, used; /* of the last */
} listings[] = {
    {"0, 1234\n1, 5\n",            2, 1, 5},
    {"0, 1234\r\n7, 81559",        2, 7, 81559},
    {"0, [N/A]\n1, 5\n",           1, 1, 5},
    {"0, 5 MiB\n",                 0, 0, 0},
    {"0, -5\n0\n,\nx, 1\n",       0, 0, 0},
    {"0, 99999999999999999999\n",  0, 0, 0},
    {"No devices were found\n",    0, 0, 0},
    {"",                           0, 0, 0},
};

static const struct {
    const char *before, *now;
    int64_t index, over;
} memories[] = {
    {"0, 100\n", "0, 100\n",                    -1, 0},
    {"0, 100\n", "0, 356\n",                    -1, 0},
    {"0, 100\n", "0, 357\n",                    0,  257},
    {"0, 9000\n", "0, 100\n",                   -1, 0},
    {"0, 1\n1, 1\n2, 1\n", "2, 501\n1, 901\n",  1,  900},
    {"0, 1\n", "1, 9000\n",                     -1, 0},
    {"", "0, 9000\n",                           -1, 0},
};
/* clang-format on */

START_TEST(memory_listings)
{
    struct gpu_memory m;

    gpu_memory_parse(listings[_i].text, &m);
    ck_assert_uint_eq(m.count, listings[_i].count);
    if (m.count) {
        ck_assert_int_eq(m.gpu[m.count - 1].index, listings[_i].index);
        ck_assert_int_eq(m.gpu[m.count - 1].used_mib, listings[_i].used);
    }
}
END_TEST

START_TEST(memory_that_is_not_back)
{
    struct gpu_memory before, now;
    int64_t index;

    gpu_memory_parse(memories[_i].before, &before);
    gpu_memory_parse(memories[_i].now, &now);
    ck_assert_int_eq(gpu_memory_over(&before, &now, &index), memories[_i].over);
    ck_assert_int_eq(index, memories[_i].index);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("eval_readings");
    TCase *tc = tcase_create("all");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_loop_test(tc, start_time, 0, COUNT(starts));
    tcase_add_loop_test(tc, memory_listings, 0, COUNT(listings));
    tcase_add_loop_test(tc, memory_that_is_not_back, 0, COUNT(memories));
    suite_add_tcase(suite, tc);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
