/* What a provider is asked about the order of its sums, and what becomes of the answer. */
#include "harness/kernel/order.h"

#include "reference/tensor_core.h"

#include <check.h>
#include <stdlib.h>

enum { BLOCK_M = 16, BLOCK_N = 64, SHAPE_N = 256, SHAPE_K = 128, ROWS = 70 };

static struct arena arena;

static void open_arena(void)
{
    ck_assert(arena_init(&arena, (size_t)1 << 24));
}

static void close_arena(void)
{
    arena_free(&arena);
}

/* The last question, and the answer to the next. */
static struct {
    int64_t m, row, col, experts;
    enum hum_gemm_type type;
    struct hum_accumulation says;
} asked;

static enum hum_code answer(void *handle, const struct hum_layer_config *layer,
                            const struct hum_compute_config *compute,
                            const struct hum_tuning_config *tuning, int64_t m, int64_t row,
                            int64_t col, struct hum_accumulation *out, char *reason)
{
    (void)handle;
    (void)tuning;
    reason[0] = '\0';
    asked.m = m;
    asked.row = row;
    asked.col = col;
    asked.experts = layer->num_experts;
    asked.type = compute->gemm_type;
    *out = asked.says;
    out->row_begin = row / BLOCK_M * BLOCK_M;
    out->row_end = out->row_begin + BLOCK_M;
    out->col_begin = col / BLOCK_N * BLOCK_N;
    out->col_end = out->col_begin + BLOCK_N;
    return HUM_OK;
}

/* Experts with 20, 0, 33 and 17 rows: 2, 0, 3 and 2 row tiles of 16. */
static struct hum_provider provider = {.accumulation = answer};
static const struct hum_layer_config layer = {
    .a_dtype = HUM_E4M3, .shape_n = SHAPE_N, .shape_k = SHAPE_K, .num_experts = 4};
static const struct hum_compute_config compute = {.gemm_type = HUM_GEMM_GROUPED_CONTIGUOUS};
static const struct hum_tuning_config tuning = {.block_m = BLOCK_M, .block_n = BLOCK_N};
static const int64_t counts[] = {20, 0, 33, 17};

static struct launch grouped(struct routing_tensors *tensors)
{
    struct routing r = {.type = HUM_GEMM_GROUPED_CONTIGUOUS,
                        .m = ROWS,
                        .experts = 4,
                        .top_k = 1,
                        .rows = ROWS,
                        .counts = counts};

    ck_assert(routing_tensors_make(&r, BLOCK_M, HUM_INT32, &arena, tensors));
    ck_assert_int_eq(tensors->row_tiles, 7);
    asked.says = (struct hum_accumulation){.arithmetic = HUM_ARITHMETIC_TENSOR_CORE,
                                           .mma_type = HUM_MMA_WGMMA,
                                           .sm = 90,
                                           .instruction_k = 32,
                                           .block_k = 128,
                                           .warp_k = 32,
                                           .slices = 1,
                                           .ordered = true,
                                           .slice = {{0, SHAPE_K}}};
    return (struct launch){.provider = &provider,
                           .layer = &layer,
                           .compute = &compute,
                           .tuning = &tuning,
                           .m = ROWS,
                           .routing = tensors};
}

/* A row of the output and its row tile, counted by hand. */
static const struct {
    int64_t row, tile;
} places[] = {{0, 0},  {15, 0}, {16, 1}, {19, 1}, {20, 2}, {35, 2},
              {36, 3}, {52, 4}, {53, 5}, {68, 5}, {69, 6}};
enum { PLACES = sizeof places / sizeof places[0] };

START_TEST(n_fastest)
{
    struct routing_tensors tensors;
    struct launch l = grouped(&tensors);
    char reason[HUM_REASON_BYTES];
    struct order o;

    provider.tiles_n_fastest = true;
    for (int i = 0; i < PLACES; i++)
        for (int64_t col = 0; col < SHAPE_N; col += 40) {
            ck_assert_ptr_null(order_of(&l, places[i].row, col, &o, reason));
            ck_assert_int_eq(asked.m, INT64_C(7) * BLOCK_M);
            ck_assert_int_eq(asked.row, places[i].tile * BLOCK_M);
            ck_assert_int_eq(asked.col, col);
            ck_assert_int_eq(asked.experts, 4);
            ck_assert_int_eq(asked.type, HUM_GEMM_GROUPED_CONTIGUOUS);
            ck_assert(o.row_begin == places[i].row && o.row_end == places[i].row + 1);
            ck_assert_int_eq(o.col_end, col / BLOCK_N * BLOCK_N + BLOCK_N);
        }
}
END_TEST

/* Tiles 0 to 27: of the first segment (2 row tiles) 0 to 7, m fastest. Asked about a dense product
 * of 7 row tiles and 4 columns of tiles. */
START_TEST(m_fastest)
{
    static const int64_t first[] = {0, 0, 0, 0, 8, 8, 8, 8, 20, 20, 20};
    static const int64_t height[] = {2, 2, 2, 2, 3, 3, 3, 3, 2, 2, 2};
    static const int64_t within[] = {0, 0, 1, 1, 0, 0, 1, 2, 0, 0, 1};
    struct routing_tensors tensors;
    struct launch l = grouped(&tensors);
    char reason[HUM_REASON_BYTES];
    struct order o;

    provider.tiles_n_fastest = false;
    for (int i = 0; i < PLACES; i++)
        for (int64_t column = 0; column < 4; column++) {
            int64_t number = first[i] + column * height[i] + within[i];

            ck_assert_ptr_null(order_of(&l, places[i].row, column * BLOCK_N, &o, reason));
            ck_assert_int_eq(asked.m, INT64_C(7) * BLOCK_M);
            ck_assert_int_eq(asked.row, number % 7 * BLOCK_M);
            ck_assert_int_eq(asked.col, number / 7 * BLOCK_N);
            ck_assert_int_eq(asked.experts, 0);
            ck_assert_int_eq(asked.type, HUM_GEMM_DENSE);
        }
}
END_TEST

/* Everything that is stated reaches the oracle; what is not possible is refused. */
START_TEST(statement)
{
    struct routing_tensors tensors;
    struct launch l = grouped(&tensors);
    char reason[HUM_REASON_BYTES];
    struct order o;

    provider.tiles_n_fastest = true;
    asked.says.warps_in_order = true;
    asked.says.operand_shift = 9;
    asked.says.flush_shift = 2;
    asked.says.output_shift = 7;
    ck_assert_ptr_null(order_of(&l, 0, 0, &o, reason));
    ck_assert_ptr_eq(o.accum.tensor_core,
                     tc_find(90, TC_WGMMA, dtype_find_id(HUM_E4M3, false), false));
    ck_assert(o.accum.warps_in_order && o.accum.operand_shift == 9 && o.accum.flush_shift == 2 &&
              o.accum.output_shift == 7);
    ck_assert_str_eq(order_instruction(&l, 0), "wgmma");
    asked.says.mma_type = HUM_MMA_MMA;
    ck_assert_str_eq(order_instruction(&l, 0), "mma");
    asked.says.arithmetic = HUM_ARITHMETIC_IEEE;
    ck_assert_str_eq(order_instruction(&l, 0), "");
    asked.says.output_shift = 8;
    ck_assert_ptr_nonnull(order_of(&l, 0, 0, &o, reason));
    asked.says.output_shift = -1;
    ck_assert_ptr_nonnull(order_of(&l, 0, 0, &o, reason));
}
END_TEST

/* Row 20 is another kernel's: other words about one of the fields. */
static enum hum_code answer_by_row(void *handle, const struct hum_layer_config *layer_,
                                   const struct hum_compute_config *compute_,
                                   const struct hum_tuning_config *tuning_, int64_t m, int64_t row,
                                   int64_t col, struct hum_accumulation *out, char *reason)
{
    enum hum_code code = answer(handle, layer_, compute_, tuning_, m, row, col, out, reason);

    if (row == 0) {
        out->warps_in_order = false;
        out->operand_shift = out->flush_shift = out->output_shift = 0;
    }
    return code;
}

/* Equal inputs must give equal bits only where all of the statement is equal. */
START_TEST(same)
{
    static const int32_t other[][4] = {{1, 0, 0, 0}, {0, 9, 0, 0}, {0, 0, 2, 0}, {0, 0, 0, 7}};
    struct hum_provider by_row = {.accumulation = answer_by_row, .tiles_n_fastest = true};
    struct routing_tensors tensors;
    struct launch l = grouped(&tensors);
    int64_t end;

    l.provider = &by_row;
    ck_assert(order_same(&l, 0, &l, 20, 0, &end));
    for (int i = 0; i < 4; i++) {
        asked.says.warps_in_order = other[i][0] != 0;
        asked.says.operand_shift = other[i][1];
        asked.says.flush_shift = other[i][2];
        asked.says.output_shift = other[i][3];
        ck_assert(!order_same(&l, 0, &l, 20, 0, &end));
        ck_assert(order_same(&l, 20, &l, 36, 0, &end));
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("order");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_checked_fixture(tc, open_arena, close_arena);
    tcase_add_test(tc, n_fastest);
    tcase_add_test(tc, m_fastest);
    tcase_add_test(tc, statement);
    tcase_add_test(tc, same);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
