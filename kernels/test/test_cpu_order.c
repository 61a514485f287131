#include "kernels/cpu/cpu.h"
#include "kernels/test/sample.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const struct hum_provider *const cpu = &hum_cpu_provider;

/* ---- layout ---------------------------------------------------------------------------------- */

/* Each element's index, low byte first, is sent through the transform as its 8-bit code: every
 * position of the kernel form holds one element or padding, no two the same, and not in the
 * standard order. */
START_TEST(transform_is_a_bijection)
{
    enum { N = 120, K = 248, PADDED = 128 * 256 };
    void *handle = sample_open(cpu, 1);
    struct sample s = {.layer = {.shape_n = 128,
                                 .shape_k = 256,
                                 .pad_shape_n = 8,
                                 .pad_shape_k = 8,
                                 .a_dtype = HUM_BF16,
                                 .b_dtype = HUM_UINT(8),
                                 .c_dtype = HUM_BF16,
                                 .bs_dtype = HUM_BF16},
                       .tuning = sample_legal().tuning,
                       .m = 1};
    static uint32_t index[PADDED];
    static uint8_t seen[N * K + 1];
    char reason[HUM_REASON_BYTES];
    int64_t moved = 0;

    sample_fill(&s, cpu, handle, 1, SAMPLE_TAME);
    ck_assert_uint_eq(s.kernel.weight.bytes, PADDED);
    for (int byte = 0; byte < 2; byte++) {
        for (uint32_t i = 0; i < N * K; i++)
            ((uint8_t *)s.standard.weight.data)[i] = (uint8_t)((i + 1) >> 8 * byte);
        ck_assert_int_eq(cpu->transform(handle, &s.layer, &s.standard, &s.kernel, reason), HUM_OK);
        for (int i = 0; i < PADDED; i++)
            index[i] |= (uint32_t)((const uint8_t *)s.kernel.weight.data)[i] << 8 * byte;
    }
    for (uint32_t i = 0; i < PADDED; i++) {
        if (index[i] > N * K || (index[i] && seen[index[i]]++))
            ck_abort_msg("position %u holds %u", i, index[i]);
        moved += index[i] && index[i] != i + 1;
    }
    for (uint32_t i = 1; i <= N * K; i++)
        if (!seen[i])
            ck_abort_msg("element %u is lost", i);
    ck_assert_int_gt(moved, N * K * 9 / 10);
    sample_free(&s);
    cpu->close(handle);
}
END_TEST

/* ---- order ----------------------------------------------------------------------------------- */

static void get_order(const struct sample *s, int64_t row, int64_t col, struct hum_accumulation *o)
{
    char reason[HUM_REASON_BYTES];

    ck_assert_int_eq(
        cpu->accumulation(NULL, &s->layer, &s->compute, &s->tuning, s->m, row, col, o, reason),
        HUM_OK);
}

/* 2 x 2 tiles of 4 K blocks, 5 workers: P < G, so 16 blocks in runs of ceil(16 / 5) = 4: no tile is
 * cut. With 3 workers r = 1 tile is shared, the last, in runs of ceil(4 / 3) = 2: two slices. With
 * 2 workers r = 0. */
START_TEST(slices_by_hand)
{
    struct sample s = sample_legal();
    struct hum_accumulation o;

    get_order(&s, 17, 70, &o);
    ck_assert_int_eq(o.slices, 1);
    ck_assert_int_eq(o.row_begin, 16);
    ck_assert_int_eq(o.row_end, 20);
    ck_assert_int_eq(o.col_begin, 64);
    ck_assert_int_eq(o.col_end, 128);
    ck_assert_int_eq(o.instruction_k, 32);
    ck_assert_int_eq(o.flush_k, 64);
    s.tuning.num_sms = 3;
    get_order(&s, 0, 64, &o);
    ck_assert_int_eq(o.slices, 1);
    get_order(&s, 16, 64, &o);
    ck_assert_int_eq(o.slices, 2);
    ck_assert_int_eq(o.slice[0].k_begin, 128);
    ck_assert_int_eq(o.slice[0].k_end, 256);
    ck_assert_int_eq(o.slice[1].k_begin, 0);
    ck_assert_int_eq(o.slice[1].k_end, 128);
    s.tuning.num_sms = 2;
    get_order(&s, 16, 64, &o);
    ck_assert_int_eq(o.slices, 1);
    /* 3 workers, group 256 of block_k 64: runs are multiples of 4 blocks */
    s.tuning.num_sms = 3;
    s.layer.weight_scale_group_size = 256;
    get_order(&s, 16, 64, &o);
    ck_assert_int_eq(o.slices, 1);
    /* 11 tiles, 10 workers: r = 1 is at most 10 / 10, so all 11 are shared, 44 blocks in runs of
     * 5 */
    s = sample_legal();
    s.m = 11 * 16;
    s.layer.shape_n = 64;
    s.tuning.num_sms = 10;
    get_order(&s, 0, 0, &o);
    ck_assert_int_eq(o.slices, 1);
    get_order(&s, 16, 0, &o);
    ck_assert_int_eq(o.slices, 2);
    ck_assert_int_eq(o.slice[1].k_end, 64);
}
END_TEST

/* The slices of any tile follow each other backwards and cover all of k. */
START_TEST(slices_cover_k)
{
    uint64_t state = (uint64_t)_i;
    struct sample s;
    struct hum_accumulation o;
    char reason[HUM_REASON_BYTES];
    int64_t end;

    do
        sample_random_config(&s, &state);
    while (cpu->supports(NULL, &s.layer, &s.compute, &s.tuning, reason));
    s.m *= 1 + _i % 9;
    for (int64_t row = 0; row < s.m; row += s.tuning.block_m) {
        get_order(&s, row, 0, &o);
        end = s.layer.shape_k;
        for (int32_t i = 0; i < o.slices; i++) {
            ck_assert_int_eq(o.slice[i].k_end, end);
            ck_assert_int_lt(o.slice[i].k_begin, end);
            ck_assert_int_eq(o.slice[i].k_begin % s.tuning.block_k, 0);
            end = o.slice[i].k_begin;
        }
        ck_assert_int_eq(end, 0);
    }
}
END_TEST

START_TEST(heuristics_are_supported)
{
    uint64_t state = (uint64_t)_i;
    struct sample s;
    char reason[HUM_REASON_BYTES] = "";

    do
        sample_random_config(&s, &state);
    while (cpu->supports(NULL, &s.layer, &s.compute, &s.tuning, reason));
    s.compute.use_batch_invariant = true;
    for (int64_t m = 0; m < 1000; m += 1 + m / 2) {
        ck_assert_int_eq(cpu->heuristics(NULL, &s.layer, &s.compute, m, &s.tuning, reason), HUM_OK);
        ck_assert_int_eq(cpu->supports(NULL, &s.layer, &s.compute, &s.tuning, reason), HUM_OK);
    }
}
END_TEST

/* Tuning fields that the provider calls inert change neither the order nor the bits. */
START_TEST(inert_tuning_is_inert)
{
    void *handle = sample_open(cpu, 1);
    struct sample s = sample_legal();
    struct hum_accumulation first, o;
    uint16_t want[20 * 128];

    sample_fill(&s, cpu, handle, 9, SAMPLE_TAME);
    sample_run(&s, cpu, handle);
    memcpy(want, s.outputs.data, sizeof want);
    get_order(&s, 3, 5, &first);
    s.tuning.warp_m = 8;
    s.tuning.warp_n = 16;
    s.tuning.num_stages = 4;
    s.tuning.num_write_splits = 2;
    s.tuning.multi_cast_size_a = 2;
    s.tuning.multi_cast_size_b = 2;
    s.tuning.raster_group_m = 4;
    s.tuning.use_warp_spec = s.tuning.use_mbarrier = s.tuning.use_cp_async = true;
    s.tuning.use_tma_a = s.tuning.use_tma_b = s.tuning.use_tma_c = s.tuning.use_tma_bs = true;
    s.tuning.use_tma_bs2 = s.tuning.use_tma_bzp = s.tuning.use_tma_bias = true;
    s.tuning.use_tma_as = s.tuning.use_tma_as2 = s.tuning.use_pdl = true;
    memset(s.outputs.data, 0, s.outputs.bytes);
    sample_run(&s, cpu, handle);
    get_order(&s, 3, 5, &o);
    ck_assert_mem_eq(s.outputs.data, want, sizeof want);
    ck_assert_int_eq(o.slices, first.slices);
    ck_assert_mem_eq(o.slice, first.slice, sizeof o.slice);
    sample_free(&s);
    cpu->close(handle);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cpu_order");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_test(tc, transform_is_a_bijection);
    tcase_add_test(tc, slices_by_hand);
    tcase_add_loop_test(tc, slices_cover_k, 0, 40);
    tcase_add_loop_test(tc, heuristics_are_supported, 0, 40);
    tcase_add_test(tc, inert_tuning_is_inert);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
