#include "reference/buffers.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* 64 tokens to 4 of 8 experts; hidden size 256, intermediate 512. */
/* clang-format off */
static const struct {
    enum ref_experts_form form;
    bool gated;
    const char *a; /* both layers */
    int64_t n;     /* gate_up */
    struct { int64_t rows, cols; size_t bytes; int workspace; } want[REF_BUFFER_COUNT];
    size_t workspaces[2];
} cases[] = {
    {REF_EXPERTS_INDEXED, true, "e4m3", 1024,
     {{64, 256, 16384, 2}, {256, 1024, 524288, 1}, {256, 512, 262144, 2}, {256, 512, 131072, 1},
      {256, 256, 131072, 2}, {64, 256, 32768, 1}}, {524288, 262144}},
    {REF_EXPERTS_GROUPED, true, "int4", 1024,
     {{256, 128, 32768, 2}, {256, 1024, 524288, 1}, {256, 512, 262144, 2}, {256, 256, 65536, 1},
      {256, 256, 131072, 2}, {64, 256, 32768, 1}}, {524288, 262144}},
    {REF_EXPERTS_INDEXED, false, "bf16", 512,
     {{0, 0, 0, 0}, {256, 512, 262144, 2}, {256, 512, 262144, 1}, {0, 0, 0, 0},
      {256, 256, 131072, 2}, {64, 256, 32768, 1}}, {262144, 262144}},
    /* 16 rows an expert from each of 2 dispatchers */
    {REF_EXPERTS_BATCHED, true, "int8", 1024,
     {{128, 256, 32768, 1}, {256, 1024, 524288, 2}, {256, 512, 262144, 1}, {256, 512, 131072, 2},
      {256, 256, 131072, 1}, {0, 0, 0, 0}}, {262144, 524288}},
    {REF_EXPERTS_BATCHED, false, "f16", 512,
     {{0, 0, 0, 0}, {256, 512, 262144, 1}, {256, 512, 262144, 2}, {0, 0, 0, 0},
      {256, 256, 131072, 1}, {0, 0, 0, 0}}, {262144, 262144}},
};
/* clang-format on */

static struct ref_experts experts(enum ref_experts_form form, bool gated, const char *a, int64_t n)
{
    const struct dtype *t = dtype_find(a), *c = dtype_find("bf16");

    return (struct ref_experts){.form = form,
                                .gated = gated,
                                .m = 64,
                                .top_k = 4,
                                .experts = 8,
                                .max_tokens = 16,
                                .dispatchers = 2,
                                .gate_up = {t, c, n, 256},
                                .down = {t, c, 256, 512}};
}

START_TEST(by_hand)
{
    struct ref_experts e = experts(cases[_i].form, cases[_i].gated, cases[_i].a, cases[_i].n);
    struct ref_buffer got[REF_BUFFER_COUNT];
    size_t bytes[2];

    ck_assert_ptr_null(ref_buffers(&e, got));
    for (int i = 0; i < REF_BUFFER_COUNT; i++) {
        bool quanted = i == REF_BUFFER_QUANTED_GATE_UP_INPUT || i == REF_BUFFER_QUANTED_DOWN_INPUT;

        ck_assert_int_eq(got[i].rows, cases[_i].want[i].rows);
        ck_assert_int_eq(got[i].cols, cases[_i].want[i].cols);
        ck_assert_uint_eq(got[i].bytes, cases[_i].want[i].bytes);
        ck_assert_int_eq(got[i].workspace, cases[_i].want[i].workspace);
        if (!got[i].bytes)
            ck_assert_ptr_null(got[i].t);
        else
            ck_assert_str_eq(got[i].t->name, quanted ? cases[_i].a : "bf16");
    }
    ref_workspaces(got, bytes);
    ck_assert_mem_eq(bytes, cases[_i].workspaces, sizeof bytes);
}
END_TEST

/* Neighbours never share a workspace, the last lies in the first. */
START_TEST(neighbours)
{
    struct ref_experts e = experts(cases[_i].form, cases[_i].gated, cases[_i].a, cases[_i].n);
    struct ref_buffer got[REF_BUFFER_COUNT];
    int before = 0;

    for (e.m = 0; e.m < 3; e.m++) {
        before = 0;
        ck_assert_ptr_null(ref_buffers(&e, got));
        for (int i = 0; i < REF_BUFFER_COUNT; i++) {
            if (!got[i].t)
                continue;
            ck_assert_int_ne(got[i].workspace, before);
            before = got[i].workspace;
        }
        ck_assert_int_eq(before, 1);
    }
}
END_TEST

START_TEST(formats_differ)
{
    struct ref_experts e = experts(REF_EXPERTS_INDEXED, true, "bf16", 1024);
    struct ref_buffer got[REF_BUFFER_COUNT];

    e.down.a = dtype_find("e2m1");
    ck_assert_ptr_null(ref_buffers(&e, got));
    ck_assert_ptr_null(got[REF_BUFFER_QUANTED_GATE_UP_INPUT].t);
    ck_assert_uint_eq(got[REF_BUFFER_QUANTED_DOWN_INPUT].bytes, 256 * 256);
    ck_assert_int_eq(got[REF_BUFFER_GATE_UP_OUTPUT].workspace, 1);
}
END_TEST

START_TEST(sentences)
{
    struct ref_experts good = experts(REF_EXPERTS_BATCHED, true, "int4", 1024), e;
    struct ref_buffer got[REF_BUFFER_COUNT];

    ck_assert_ptr_null(ref_buffers(&good, got));
    e = good, e.down.k = 1024; /* gated: half */
    ck_assert_ptr_nonnull(ref_buffers(&e, got));
    e = good, e.gated = false;
    ck_assert_ptr_nonnull(ref_buffers(&e, got));
    e = good, e.down.n = 255;
    ck_assert_ptr_nonnull(ref_buffers(&e, got));
    e = good, e.gate_up.k = e.down.n = 255; /* 4-bit columns */
    ck_assert_ptr_nonnull(ref_buffers(&e, got));
    e.gate_up.a = dtype_find("int8");
    ck_assert_ptr_null(ref_buffers(&e, got));
    e = good, e.gate_up.n = 1025;
    ck_assert_ptr_nonnull(ref_buffers(&e, got));
    e = good, e.m = -1;
    ck_assert_ptr_nonnull(ref_buffers(&e, got));
    e = good, e.experts = 0;
    ck_assert_ptr_nonnull(ref_buffers(&e, got));
    e = good, e.max_tokens = INT64_MAX / 2;
    ck_assert_ptr_nonnull(ref_buffers(&e, got));
    e = good, e.max_tokens = INT64_MAX / 8 / 2048; /* rows fit, bytes do not */
    ck_assert_ptr_nonnull(ref_buffers(&e, got));
    e = good, e.form = REF_EXPERTS_GROUPED, e.m = INT64_MAX / 2;
    ck_assert_ptr_nonnull(ref_buffers(&e, got));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("buffers");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_loop_test(tc, by_hand, 0, (int)(sizeof cases / sizeof cases[0]));
    tcase_add_loop_test(tc, neighbours, 0, (int)(sizeof cases / sizeof cases[0]));
    tcase_add_test(tc, formats_differ);
    tcase_add_test(tc, sentences);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
