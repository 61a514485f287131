#include "reference/inputs.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(table) ((int)(sizeof(table) / sizeof(table)[0]))

enum { KEPT = REF_ROW_KEPT, ZERO = REF_ROW_ZERO, ANY = REF_ROW_ANY, CANARY = 0x5A };

/* ---- which row goes where, by hand ----------------------------------------------------------- */

/* clang-format off */
static const struct {
    struct ref_layout layout; /* without arrays */
    int64_t experts[4], indices[8];
    bool valid;
    int64_t source[8];
} cases[] = {
    {{.kind = REF_LAYOUT_NORMAL, .in_rows = 3, .out_rows = 3}, {0}, {0}, true, {0, 1, 2}},
    {{.kind = REF_LAYOUT_NORMAL, .in_rows = 3, .out_rows = 2}, {0}, {0}, false, {0}},
    {{.kind = REF_LAYOUT_GROUPED, .in_rows = 4, .out_rows = 4, .experts = 3}, {0, 2, 2, 3}, {0}, true,
     {0, 1, 2, KEPT}},
    {{.kind = REF_LAYOUT_GROUPED, .in_rows = 4, .out_rows = 4, .experts = 3}, {0, 2, 2, 5}, {0}, false,
     {0}},
    {{.kind = REF_LAYOUT_GROUPED, .in_rows = 4, .out_rows = 4, .experts = 3}, {0, 2, 1, 3}, {0}, false,
     {0}},
    {{.kind = REF_LAYOUT_PERMUTE, .in_rows = 4, .out_rows = 5}, {0}, {4, -1, 0, 5}, true,
     {2, KEPT, KEPT, KEPT, 0}},
    {{.kind = REF_LAYOUT_PERMUTE, .in_rows = 3, .out_rows = 3}, {0}, {1, 1, 0}, true, {2, ANY, KEPT}},
    {{.kind = REF_LAYOUT_GROUPED_PADDED, .in_rows = 4, .out_rows = 7, .experts = 3, .max_tokens = 2},
     {1, 0, 2}, {0}, true, {0, KEPT, KEPT, KEPT, 1, 2, KEPT}},
    {{.kind = REF_LAYOUT_GROUPED_PADDED, .in_rows = 3, .out_rows = 6, .experts = 3, .max_tokens = 2,
      .zero_invalid = true}, {1, 0, 2}, {0}, true, {0, ZERO, ZERO, ZERO, 1, 2}},
    {{.kind = REF_LAYOUT_GROUPED_PADDED, .in_rows = 4, .out_rows = 6, .experts = 3, .max_tokens = 2},
     {1, 0, 3}, {0}, false, {0}},
    {{.kind = REF_LAYOUT_GROUPED_PADDED, .in_rows = 2, .out_rows = 6, .experts = 3, .max_tokens = 2},
     {1, 0, 2}, {0}, false, {0}},
    {{.kind = REF_LAYOUT_GROUPED_PADDED, .in_rows = 3, .out_rows = 5, .experts = 3, .max_tokens = 2},
     {1, 0, 2}, {0}, false, {0}},
    {{.kind = REF_LAYOUT_GROUPED_PADDED, .in_rows = 3, .out_rows = 6, .experts = 3, .max_tokens = 2},
     {1, -1, 2}, {0}, false, {0}},
    {{.kind = REF_LAYOUT_SCATTER, .in_rows = 3, .out_rows = 6, .index_width = 2}, {0},
     {5, 0, -1, 2, 6, 3}, true, {0, KEPT, 1, 2, KEPT, 0}},
};
/* clang-format on */

START_TEST(sources)
{
    struct ref_layout l = cases[_i].layout;
    int64_t source[8];
    const char *problem;

    for (int i = 0; i < 8; i++)
        source[i] = CANARY;
    l.expert_layout = cases[_i].experts;
    l.indices = cases[_i].indices;
    problem = ref_layout_sources(&l, source);
    ck_assert_msg(!problem == cases[_i].valid, "row %d: %s", _i, problem ? problem : "valid");
    for (int64_t i = 0; i < l.out_rows && !problem; i++)
        ck_assert_int_eq(source[i], cases[_i].source[i]);
    for (int64_t i = l.out_rows; i < 8; i++)
        ck_assert_int_eq(source[i], CANARY);
}
END_TEST

/* ---- against loops from the input's side ----------------------------------------------------- */

enum { IN = 37, WIDTH = 3, OUT = 97 };

static void check_rows(const struct ref_layout *l, const uint32_t *want)
{
    uint32_t in[IN * WIDTH], got[OUT * WIDTH];
    int64_t source[OUT];

    for (uint32_t i = 0; i < IN * WIDTH; i++)
        in[i] = 1000 + i;
    for (int i = 0; i < OUT * WIDTH; i++)
        got[i] = CANARY;
    ck_assert_ptr_null(ref_layout_sources(l, source));
    ref_rows_place(source, l->out_rows, WIDTH, in, got);
    ck_assert_mem_eq(got, want, sizeof got);
}

static void put(uint32_t *want, int64_t from, int64_t to)
{
    for (int64_t j = 0; j < WIDTH; j++)
        want[to * WIDTH + j] = (uint32_t)(1000 + from * WIDTH + j);
}

START_TEST(scattered)
{
    struct ref_layout l = {.kind = _i ? REF_LAYOUT_SCATTER : REF_LAYOUT_PERMUTE,
                           .in_rows = IN,
                           .out_rows = OUT,
                           .index_width = 2};
    int64_t indices[IN * 2];
    uint32_t want[OUT * WIDTH];

    for (int i = 0; i < OUT * WIDTH; i++)
        want[i] = CANARY;
    for (int64_t i = 0; i < IN * (_i ? 2 : 1); i++) {
        indices[i] = i * 29 % 107 - 5; /* distinct; some below 0, some at 97 and above */
        if (indices[i] >= 0 && indices[i] < OUT)
            put(want, _i ? i / 2 : i, indices[i]);
    }
    l.indices = indices;
    check_rows(&l, want);
}
END_TEST

START_TEST(padded_rows)
{
    static const int64_t counts[8] = {0, 12, 1, 5, 0, 0, 12, 6};
    struct ref_layout l = {.kind = REF_LAYOUT_GROUPED_PADDED,
                           .zero_invalid = _i,
                           .in_rows = IN,
                           .out_rows = OUT,
                           .experts = 8,
                           .max_tokens = 12,
                           .expert_layout = counts};
    uint32_t want[OUT * WIDTH];
    int64_t row = 0;

    for (int i = 0; i < OUT * WIDTH; i++)
        want[i] = _i && i < 96 * WIDTH ? 0 : CANARY;
    for (int64_t e = 0; e < 8; e++)
        for (int64_t j = 0; j < counts[e]; j++)
            put(want, row++, e * 12 + j);
    check_rows(&l, want);
}
END_TEST

/* ---- scales ---------------------------------------------------------------------------------- */

/* 6 rows, 5 groups. */
static const struct {
    enum ref_scale_layout layout;
    int bits;
    int64_t count, row_2_group_4;
} places[] = {
    {REF_SCALES_ROW_MAJOR, 32, 30, 14}, {REF_SCALES_ROW_MAJOR, 8, 48, 20},
    {REF_SCALES_M_MAJOR, 32, 40, 34},   {REF_SCALES_M_MAJOR, 8, 40, 34},
    {REF_SCALES_MX_PACKED, 8, 64, 40},
};

/* Rows 1 and 4 are kept, row 3 is zero, row 5 is sent to twice. */
START_TEST(scales)
{
    static const int64_t source[6] = {1, KEPT, 0, ZERO, KEPT, ANY};
    static const uint32_t in[10] = {10, 11, 12, 13, 14, 20, 21, 22, 23, 24};
    struct ref_scale_places p = {places[_i].layout, 6, 5, places[_i].bits};
    bool pads = p.layout == REF_SCALES_ROW_MAJOR && p.bits == 8;
    uint32_t out[64];
    int kept = 0, zero = 0;

    ck_assert_int_eq(ref_scale_count(&p), places[_i].count);
    ck_assert_int_eq(ref_scale_index(&p, 2, 4), places[_i].row_2_group_4);
    for (int i = 0; i < 64; i++)
        out[i] = CANARY;
    ref_scales_place(&p, source, in, out);
    for (int64_t g = 0; g < 5; g++) {
        ck_assert_uint_eq(out[ref_scale_index(&p, 0, g)], 20u + (uint32_t)g);
        ck_assert_uint_eq(out[ref_scale_index(&p, 2, g)], 10u + (uint32_t)g);
        ck_assert_uint_eq(out[ref_scale_index(&p, 5, g)], REF_CODE_ANY);
    }
    for (int i = 0; i < 64; i++) {
        kept += out[i] == CANARY;
        zero += out[i] == 0;
    }
    ck_assert_int_eq(zero, pads ? 9 : 0); /* 3 columns of 3 written rows */
    ck_assert_int_eq(kept, 64 - 15 - zero);
}
END_TEST

/* Every row and group has a place of its own inside the tensor; the loops of section 7. */
START_TEST(indices)
{
    for (int64_t rows = 1; rows < 10; rows++)
        for (int64_t groups = 1; groups < 10; groups++) {
            struct ref_scale_places p = {places[_i].layout, rows, groups, places[_i].bits};
            int64_t rows_4 = rows + (4 - rows % 4) % 4, groups_4 = groups + (4 - groups % 4) % 4;
            int64_t padded = p.bits == 8 ? groups_4 : groups;
            bool taken[12 * 12] = {false};

            for (int64_t i = 0; i < rows; i++)
                for (int64_t g = 0; g < groups; g++) {
                    int64_t at = ref_scale_index(&p, i, g);
                    int64_t want[] = {i * padded + g, g * rows_4 + i,
                                      (g / 4) * rows_4 * 4 + i * 4 + g % 4};

                    if (at != want[p.layout] || at >= ref_scale_count(&p) || taken[at])
                        ck_abort_msg("%d rows, %d groups: %d", (int)rows, (int)groups, (int)at);
                    taken[at] = true;
                }
        }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("input_layout");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_loop_test(tc, sources, 0, COUNT(cases));
    tcase_add_loop_test(tc, scattered, 0, 2);
    tcase_add_loop_test(tc, padded_rows, 0, 2);
    tcase_add_loop_test(tc, scales, 0, COUNT(places));
    tcase_add_loop_test(tc, indices, 0, COUNT(places));
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
