#include "reference/sample.h"

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    int64_t size, tile, group, count;
} cases[] = {{1, 0, 0, 64},        {63, 16, 8, 10},       {96, 32, 0, 1},
             {97, 32, 16, 1},      {512, 128, 128, 64},   {513, 128, 128, 128},
             {8192, 256, 128, 64}, {8191, 64, 64, 500},   {151936, 128, 0, 256},
             {1000, 0, 0, 999},    {100, 2048, 4096, 97}, {INT64_C(4294967295), 256, 128, 200}};

static bool holds(const int64_t *v, int64_t count, int64_t x)
{
    for (int64_t i = 0; i < count; i++)
        if (v[i] == x)
            return true;
    return false;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

START_TEST(sample_holds_what_it_promises)
{
    const int64_t size = cases[_i].size, tile = cases[_i].tile, group = cases[_i].group;
    const int64_t room = larger(cases[_i].count, REF_SAMPLE_MIN);

    for (uint64_t seed = 0; seed < 20; seed++) {
        const struct ref_sample s = {REF_SAMPLE_COLUMNS, size, tile, group, seed};
        int64_t out[1001], count;
        bool residue[REF_SAMPLE_PERIOD] = {false};

        out[room] = -7;
        count = ref_sample_make(&s, cases[_i].count, out);
        ck_assert(out[room] == -7 && count <= room && count <= size);
        ck_assert(size <= room ? count == size : count >= cases[_i].count);
        for (int64_t i = 0; i < count; i++) {
            ck_assert(out[i] >= 0 && out[i] < size && (i == 0 || out[i - 1] < out[i]));
            residue[out[i] % REF_SAMPLE_PERIOD] = true;
        }
        for (int64_t i = 0; i < REF_SAMPLE_PERIOD && i < size; i++)
            ck_assert(residue[i]);
        ck_assert(out[0] == 0 && out[count - 1] == size - 1);
        if (tile > 0 && tile < size) {
            ck_assert(holds(out, count, tile - 1) && holds(out, count, tile));
            ck_assert(holds(out, count, size / tile * tile - 1));
            ck_assert(holds(out, count, size / tile * tile - tile));
            ck_assert(size % tile == 0 || holds(out, count, size / tile * tile));
        }
        if (group > 0 && group < size) {
            ck_assert(holds(out, count, group - 1) && holds(out, count, group));
            ck_assert(holds(out, count, (size - 1) / group * group));
            ck_assert(holds(out, count, (size - 1) / group * group - 1));
        }
    }
}
END_TEST

START_TEST(sample_is_a_function_of_seed_and_axis)
{
    struct ref_sample s = {REF_SAMPLE_COLUMNS, 8192, 128, 128, 1};
    int64_t a[200], b[200];

    ck_assert(ref_sample_make(&s, 200, a) == 200 && ref_sample_make(&s, 200, b) == 200);
    ck_assert(!memcmp(a, b, sizeof a));
    s.axis = REF_SAMPLE_ROWS;
    ck_assert(ref_sample_make(&s, 200, b) == 200 && memcmp(a, b, sizeof a) != 0);
    s.axis = REF_SAMPLE_COLUMNS;
    s.seed = 2;
    ck_assert(ref_sample_make(&s, 200, b) == 200 && memcmp(a, b, sizeof a) != 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sample");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_loop_test(tc, sample_holds_what_it_promises, 0,
                        (int)(sizeof cases / sizeof cases[0]));
    tcase_add_test(tc, sample_is_a_function_of_seed_and_axis);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
