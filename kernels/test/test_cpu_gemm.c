#include "kernels/cpu/cpu.h"
#include "kernels/cpu/forward.h"
#include "kernels/test/oracle.h"
#include "kernels/test/sample.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONFIGS = 600, ELEMENTS = 12, VARIANTS = 60 };

static const struct hum_provider *const cpu = &hum_cpu_provider;

static bool draw(struct sample *s, void *handle, uint64_t *state)
{
    char reason[HUM_REASON_BYTES];

    for (int i = 0; i < 1000; i++) {
        sample_random_config(s, state);
        if (cpu->supports(handle, &s->layer, &s->compute, &s->tuning, reason) == HUM_OK)
            return true;
    }
    return false;
}

static void describe(const struct sample *s, char *out, size_t size)
{
    const struct hum_layer_config *l = &s->layer;
    const struct hum_tuning_config *t = &s->tuning;

    (void)snprintf(
        out, size,
        "a %d b %d c %d bs %d type %d g %d gn %d ig %d ws2 %d zp %d%d bias %d int %d "
        "fused %d f16 %d mm %d m %d n %d-%d k %d-%d block %dx%dx%d warp_k %d sk %d sms %d",
        l->a_dtype, l->b_dtype, l->c_dtype, l->bs_dtype, (int)l->weight_scale_type,
        (int)l->weight_scale_group_size, (int)l->weight_scale_group_size_n,
        (int)l->input_scale_group_size, (int)l->weight_scale_2_type, l->has_zero_point,
        l->is_fp_zero_point, l->has_bias, l->use_int_weight_scale, l->use_fused_e8m0_scale,
        s->compute.use_f16_accum, s->compute.use_m_major_input_scale, (int)s->m, (int)l->shape_n,
        (int)l->pad_shape_n, (int)l->shape_k, (int)l->pad_shape_k, t->block_m, t->block_n,
        t->block_k, t->warp_k, t->use_stream_k, t->num_sms);
}

static void check_element(const struct sample *s, void *handle, int64_t row, int64_t col)
{
    const struct oracle_problem p = {.layer = &s->layer,
                                     .compute = &s->compute,
                                     .standard = &s->standard,
                                     .inputs = &s->inputs,
                                     .input_scale = &s->input_scale,
                                     .m = s->m};
    const int64_t n = s->layer.shape_n - s->layer.pad_shape_n;
    const uint16_t got = ((const uint16_t *)s->outputs.data)[row * n + col];
    struct hum_accumulation order;
    char reason[HUM_REASON_BYTES], text[512];
    double want, value;

    ck_assert_int_eq(cpu->accumulation(handle, &s->layer, &s->compute, &s->tuning, s->m, row, col,
                                       &order, reason),
                     HUM_OK);
    want = oracle_element(&p, &order, row, col);
    value = oracle_decode(s->layer.c_dtype, got, false);
    describe(s, text, sizeof text);
    ck_assert_msg(want != want ? value != value : value == want,
                  "(%d, %d): got %a, want %a, %d slices: %s", (int)row, (int)col, value, want,
                  (int)order.slices, text);
}

/* Every branch of the semantics, compared with the scalar reading of it. */
START_TEST(matches_semantics)
{
    uint64_t state = (uint64_t)_i * 1000003u + 17u;
    void *handle = sample_open(cpu, 1 + _i % 2);
    struct sample s;

    ck_assert(draw(&s, handle, &state));
    sample_fill(&s, cpu, handle, state, _i % 4 == 3 ? SAMPLE_WILD : SAMPLE_TAME);
    sample_run(&s, cpu, handle);
    for (int e = 0; e < ELEMENTS; e++) {
        const int64_t n = s.layer.shape_n - s.layer.pad_shape_n;
        int64_t row = (int64_t)(sample_random(&state) % (uint64_t)s.m);
        int64_t col = (int64_t)(sample_random(&state) % (uint64_t)n);

        if (e == 0) {
            row = s.m - 1;
            col = n - 1;
        }
        check_element(&s, handle, row, col);
    }
    sample_free(&s);
    cpu->close(handle);
}
END_TEST

/* What the random configurations reach; each count is a branch that the test above has seen. */
START_TEST(configurations_cover_branches)
{
    uint64_t state;
    void *handle = sample_open(cpu, 1);
    struct sample s;
    int seen[16] = {0};

    for (int i = 0; i < CONFIGS; i++) {
        const struct hum_layer_config *l = &s.layer;

        state = (uint64_t)i * 1000003u + 17u;
        ck_assert(draw(&s, handle, &state));
        seen[0] += l->use_fused_e8m0_scale && l->a_dtype == HUM_INT8;
        seen[1] += l->use_fused_e8m0_scale && l->a_dtype == HUM_E4M3;
        seen[2] += l->use_int_weight_scale;
        seen[3] += l->is_fp_zero_point;
        seen[4] += l->has_zero_point && !l->is_fp_zero_point;
        seen[5] += s.compute.use_f16_accum && l->a_dtype == HUM_F16;
        seen[6] += s.compute.use_f16_accum && l->a_dtype == HUM_E4M3 && l->weight_scale_group_size;
        seen[7] += l->weight_scale_type == HUM_SCALE_BLOCK && hum_dtype_bits(l->a_dtype) == 16;
        seen[8] += l->weight_scale_type == HUM_SCALE_BLOCK && l->input_scale_group_size > 0;
        seen[9] += l->weight_scale_type == HUM_SCALE_CHANNEL && l->input_scale_group_size > 0;
        seen[10] += l->weight_scale_2_type == HUM_SCALE_2_CHANNEL && l->has_bias;
        seen[11] += l->weight_scale_type == HUM_SCALE_TENSOR;
        seen[12] += s.tuning.use_stream_k && s.tuning.block_k > s.tuning.warp_k;
        seen[13] += l->pad_shape_k > 0 && l->pad_shape_n > 0;
        seen[14] += l->a_dtype == HUM_INT4;
        seen[15] += l->a_dtype == HUM_E0M3;
    }
    for (int i = 0; i < 16; i++)
        ck_assert_msg(seen[i] >= 3, "branch %d: %d", i, seen[i]);
    cpu->close(handle);
}
END_TEST

/* Bits do not depend on the instruction set or the number of threads. */
START_TEST(invariant_to_sets_and_threads)
{
    uint64_t state = (uint64_t)_i * 7919u + 5u;
    void *handle = sample_open(cpu, 1);
    struct cpu *inside = handle;
    struct sample s;
    char *first;

    ck_assert(draw(&s, handle, &state));
    s.m = s.m * 11;
    sample_fill(&s, cpu, handle, state, SAMPLE_TAME);
    inside->ops = vector_ops_get(0);
    sample_run(&s, cpu, handle);
    first = malloc(s.outputs.bytes);
    ck_assert_ptr_nonnull(first);
    memcpy(first, s.outputs.data, s.outputs.bytes);
    for (int set = 0; vector_ops_get(set); set++)
        for (int threads = 1; threads <= 3; threads++) {
            memset(s.outputs.data, 0xff, s.outputs.bytes);
            inside->ops = vector_ops_get(set);
            inside->threads = threads;
            sample_run(&s, cpu, handle);
            ck_assert_mem_eq(s.outputs.data, first, s.outputs.bytes);
        }
    free(first);
    sample_free(&s);
    cpu->close(handle);
}
END_TEST

/* Without Stream-K a row's bits do not depend on how many rows follow. */
START_TEST(invariant_to_m)
{
    uint64_t state = (uint64_t)_i * 104729u + 3u;
    void *handle = sample_open(cpu, 2);
    struct sample s;
    char *all;
    int64_t row_bytes;

    do
        ck_assert(draw(&s, handle, &state));
    while (s.tuning.use_stream_k || s.compute.use_m_major_input_scale);
    s.m = 40;
    sample_fill(&s, cpu, handle, state, SAMPLE_TAME);
    sample_run(&s, cpu, handle);
    row_bytes = (int64_t)s.outputs.bytes / s.m;
    all = malloc(s.outputs.bytes);
    ck_assert_ptr_nonnull(all);
    memcpy(all, s.outputs.data, s.outputs.bytes);
    for (int64_t m = 1; m < 40; m += 1 + m / 2) {
        struct sample part = s;

        part.m = part.inputs.shape[0] = part.outputs.shape[0] = m;
        part.inputs.bytes = s.inputs.bytes / 40 * (size_t)m;
        part.outputs.bytes = (size_t)(row_bytes * m);
        part.input_scale.shape[0] = s.layer.as_dtype ? m : 0;
        part.input_scale.bytes = s.input_scale.bytes / 40 * (size_t)m;
        memset(s.outputs.data, 0xa5, s.outputs.bytes);
        sample_run(&part, cpu, handle);
        ck_assert_mem_eq(s.outputs.data, all, part.outputs.bytes);
    }
    free(all);
    sample_free(&s);
    cpu->close(handle);
}
END_TEST

/* More rows than one chunk, and a chunk border inside a tile. */
START_TEST(many_rows)
{
    void *handle = sample_open(cpu, 1);
    struct sample s = {.layer = {.shape_n = 64,
                                 .shape_k = 64,
                                 .a_dtype = HUM_BF16,
                                 .b_dtype = HUM_UINT(4),
                                 .c_dtype = HUM_BF16,
                                 .bs_dtype = HUM_BF16},
                       .tuning = {.block_m = 32,
                                  .block_n = 64,
                                  .block_k = 32,
                                  .warp_m = 32,
                                  .warp_n = 64,
                                  .warp_k = 32,
                                  .use_stream_k = true,
                                  .num_sms = 7,
                                  .num_ctas_per_sm = 1},
                       .m = 1003};

    sample_fill(&s, cpu, handle, 4, SAMPLE_TAME);
    sample_run(&s, cpu, handle);
    for (int64_t row = 0; row < s.m; row += 9)
        check_element(&s, handle, row, row % 64);
    sample_free(&s);
    cpu->close(handle);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cpu_gemm");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_loop_test(tc, matches_semantics, 0, CONFIGS);
    tcase_add_test(tc, configurations_cover_branches);
    tcase_add_loop_test(tc, invariant_to_sets_and_threads, 0, VARIANTS);
    tcase_add_loop_test(tc, invariant_to_m, 0, VARIANTS);
    tcase_add_test(tc, many_rows);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
