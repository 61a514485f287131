#include "kernels/cpu/cpu.h"
#include "kernels/cpu/forward.h"
#include "kernels/test/oracle.h"
#include "kernels/test/route.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PRODUCTS = 320, ELEMENTS = 10, DENSE_PRODUCTS = 72, THREAD_PRODUCTS = 18, UNWRITTEN = 0xff };

static const struct hum_provider *const cpu = &hum_cpu_provider;

static int64_t below(uint64_t *state, int64_t limit)
{
    return (int64_t)(sample_random(state) % (uint64_t)limit);
}

static int64_t columns_of(const struct sample *s)
{
    return s->layer.shape_n - s->layer.pad_shape_n;
}

/* Product i: the gemm types and routing kinds in turn, all else at random. */
static enum route_kind kind_of(int i)
{
    return (enum route_kind)(i / 3 % ROUTE_KINDS);
}

/* Factors of integer scales that are one for all experts, and lie behind channel scales. */
static bool has_rare_scales(const struct hum_layer_config *l)
{
    return l->use_int_weight_scale && l->weight_scale_2_type == HUM_SCALE_2_CHANNEL &&
           l->num_experts > 1;
}

static void draw(struct sample *s, void *handle, int i, bool rare, uint64_t *state)
{
    static const enum hum_gemm_type types[] = {HUM_GEMM_INDEXED, HUM_GEMM_GROUPED_CONTIGUOUS,
                                               HUM_GEMM_GROUPED_MASKED};
    char reason[HUM_REASON_BYTES];

    for (int attempt = 0; attempt < 100000; attempt++) {
        sample_random_config(s, state);
        s->compute.gemm_type = types[i % 3];
        s->layer.num_experts = 1 + below(state, 5);
        if (s->compute.gemm_type == HUM_GEMM_INDEXED)
            s->top_k = (int32_t)(1 + below(state, 3));
        if (s->tuning.use_stream_k)
            s->m *= 4; /* more tiles */
        if (s->compute.gemm_type == HUM_GEMM_GROUPED_MASKED)
            s->m *= s->layer.num_experts;
        if ((!rare || has_rare_scales(&s->layer)) &&
            cpu->supports(handle, &s->layer, &s->compute, &s->tuning, reason) == HUM_OK)
            return;
    }
    ck_abort_msg("no configuration");
}

/* Section 7 says nothing about scales that are no numbers. */
static enum sample_style style_of(const struct sample *s, int i)
{
    return i % 4 == 3 && !s->layer.use_int_weight_scale ? SAMPLE_WILD : SAMPLE_TAME;
}

static void describe(const struct sample *s, int i, char *out, size_t size)
{
    const struct hum_layer_config *l = &s->layer;

    (void)snprintf(out, size,
                   "product %d: kind %d experts %d top_k %d m %d a %d b %d bs %d type %d ws2 %d "
                   "int %d fused %d block_m %d sk %d sms %d",
                   i, (int)kind_of(i), (int)l->num_experts, s->top_k, (int)s->m, l->a_dtype,
                   l->b_dtype, l->bs_dtype, (int)l->weight_scale_type, (int)l->weight_scale_2_type,
                   l->use_int_weight_scale, l->use_fused_e8m0_scale, s->tuning.block_m,
                   s->tuning.use_stream_k, s->tuning.num_sms);
}

static void check_untouched(const struct sample *s, const struct route *route, const char *text)
{
    const int64_t row_bytes = columns_of(s) * 2;
    const unsigned char *out = s->outputs.data;

    for (int64_t row = 0; row < s->outputs.shape[0]; row++)
        for (int64_t i = 0; route->rows[row].expert < 0 && i < row_bytes; i++)
            if (out[row * row_bytes + i] != UNWRITTEN)
                ck_abort_msg("row %d is written: %s", (int)row, text);
}

/* As a dense product of the same tiles would sum (section 10); without Stream-K the provider states
 * the row itself, and the same. */
static void get_order(const struct sample *s, void *handle, const struct route *route, int64_t row,
                      int64_t col, struct hum_accumulation *out)
{
    struct hum_layer_config layer = s->layer;
    struct hum_compute_config compute = s->compute;
    struct hum_accumulation own;
    char reason[HUM_REASON_BYTES] = "";
    int64_t dense_row, dense_col;

    layer.num_experts = layer.pad_shape_n = 0;
    compute.gemm_type = HUM_GEMM_DENSE;
    route_dense_place(route, s, row, col, &dense_row, &dense_col);
    ck_assert_int_eq(cpu->accumulation(handle, &layer, &compute, &s->tuning,
                                       route->row_tiles * s->tuning.block_m, dense_row, dense_col,
                                       out, reason),
                     HUM_OK);
    if (s->tuning.use_stream_k) {
        ck_assert_int_eq(cpu->accumulation(handle, &s->layer, &s->compute, &s->tuning,
                                           s->outputs.shape[0], row, col, &own, reason),
                         HUM_UNSUPPORTED);
        ck_assert_str_ne(reason, "");
        return;
    }
    ck_assert_int_eq(cpu->accumulation(handle, &s->layer, &s->compute, &s->tuning,
                                       s->outputs.shape[0], row, col, &own, reason),
                     HUM_OK);
    ck_assert_int_eq(own.row_begin, row);
    ck_assert_int_eq(own.row_end, row + 1);
    ck_assert(own.col_begin <= col && col < own.col_end);
    ck_assert_int_eq(own.slices, 1);
    ck_assert_int_eq(out->slices, 1);
    ck_assert_int_eq(own.slice[0].k_end, s->layer.shape_k);
    ck_assert_int_eq(own.flush_k, out->flush_k);
}

static void check_element(const struct sample *s, void *handle, const struct route *route,
                          int64_t row, int64_t col, const char *text)
{
    const struct oracle_problem p = {.layer = &s->layer,
                                     .compute = &s->compute,
                                     .standard = &s->standard,
                                     .inputs = &s->inputs,
                                     .input_scale = &s->input_scale,
                                     .m = s->m,
                                     .expert = route->rows[row].expert};
    const uint16_t got = ((const uint16_t *)s->outputs.data)[row * columns_of(s) + col];
    const double value = oracle_decode(s->layer.c_dtype, got, false);
    struct hum_accumulation order;
    double want;

    get_order(s, handle, route, row, col, &order);
    want = oracle_element(&p, &order, route->rows[row].in, col);
    ck_assert_msg(want != want ? value != value : value == want,
                  "(%d, %d) of expert %d: got %a, want %a, %d slices: %s", (int)row, (int)col,
                  (int)p.expert, value, want, (int)order.slices, text);
}

START_TEST(matches_semantics)
{
    uint64_t state = (uint64_t)_i * 1000003u + 29u;
    void *handle = sample_open(cpu, 1 + _i % 2);
    struct sample s;
    struct route route;
    char text[512];

    draw(&s, handle, _i, _i % 20 == 0, &state);
    describe(&s, _i, text, sizeof text);
    sample_fill(&s, cpu, handle, state, style_of(&s, _i));
    route_make(&s, kind_of(_i), below(&state, 2), &state, &route);
    sample_run(&s, cpu, handle);
    check_untouched(&s, &route, text);
    for (int e = 0; e < ELEMENTS; e++) {
        const int64_t row = below(&state, s.outputs.shape[0]);

        if (route.rows[row].expert >= 0)
            check_element(&s, handle, &route, row, below(&state, columns_of(&s)), text);
    }
    route_free(&route);
    sample_free(&s);
    cpu->close(handle);
}
END_TEST

/* What the products above reach. */
START_TEST(products_cover_branches)
{
    void *handle = sample_open(cpu, 1);
    int seen[12] = {0};

    for (int i = 0; i < PRODUCTS; i++) {
        uint64_t state = (uint64_t)i * 1000003u + 29u;
        struct sample s;
        const struct hum_layer_config *l = &s.layer;
        const bool many = kind_of(i) != ROUTE_EMPTY;

        draw(&s, handle, i, i % 20 == 0, &state);
        seen[0] += many && l->use_fused_e8m0_scale && l->a_dtype == HUM_INT8;
        seen[1] += many && l->use_fused_e8m0_scale && l->a_dtype == HUM_E4M3;
        seen[2] += many && l->use_int_weight_scale && l->num_experts > 1;
        seen[3] += many && has_rare_scales(l);
        seen[4] += many && l->is_fp_zero_point;
        seen[5] += many && l->has_zero_point && !l->is_fp_zero_point;
        seen[6] += many && l->weight_scale_type == HUM_SCALE_TENSOR && l->num_experts > 1;
        seen[7] += many && l->weight_scale_2_type == HUM_SCALE_2_TENSOR && l->num_experts > 1;
        seen[8] += many && l->weight_scale_type == HUM_SCALE_BLOCK;
        seen[9] += many && s.compute.use_m_major_input_scale;
        seen[10] += many && s.tuning.use_stream_k && l->has_bias;
        seen[11] += many && l->num_experts == 1;
    }
    for (int i = 0; i < 12; i++)
        ck_assert_msg(seen[i] >= 3, "branch %d: %d", i, seen[i]);
    cpu->close(handle);
}
END_TEST

/* ---- experts are dense products -------------------------------------------------------------- */

/* The share of expert e of a tensor of `experts` shares, without their dimension. */
static struct hum_tensor share(const struct hum_tensor *t, int64_t experts, int64_t e)
{
    struct hum_tensor out = *t;

    if (!t->data)
        return out;
    out.bytes = t->bytes / (size_t)experts;
    out.rank = t->rank > 1 ? t->rank - 1 : 1;
    for (int i = 0; i + 1 < HUM_MAX_RANK; i++)
        out.shape[i] = t->rank > 1 ? t->shape[i + 1] : !i;
    out.data = aligned_alloc(64, (out.bytes + 63) / 64 * 64);
    ck_assert_ptr_nonnull(out.data);
    memcpy(out.data, (const char *)t->data + (size_t)e * out.bytes, out.bytes);
    return out;
}

/* All rows of A with expert e. */
static void dense_of(const struct sample *s, void *handle, int64_t e, struct sample *out)
{
    const int64_t experts = s->layer.num_experts;
    struct hum_weights *w = &out->standard;

    *out =
        (struct sample){.layer = s->layer, .compute = s->compute, .tuning = s->tuning, .m = s->m};
    out->layer.num_experts = 0;
    out->compute.gemm_type = HUM_GEMM_DENSE;
    sample_fill(out, cpu, handle, 1, SAMPLE_TAME);
    memcpy(out->inputs.data, s->inputs.data, s->inputs.bytes);
    if (s->input_scale.data)
        memcpy(out->input_scale.data, s->input_scale.data, s->input_scale.bytes);
    free(w->weight.data);
    free(w->weight_scale.data);
    free(w->zero_point.data);
    free(w->weight_scale_2.data);
    free(w->bias.data);
    *w = (struct hum_weights){.weight = share(&s->standard.weight, experts, e),
                              .weight_scale = share(&s->standard.weight_scale, experts, e),
                              .zero_point = share(&s->standard.zero_point, experts, e),
                              .weight_scale_2 = share(&s->standard.weight_scale_2, experts, e),
                              .bias = share(&s->standard.bias, experts, e)};
    sample_run(out, cpu, handle);
}

/* Bit for bit; not with Stream-K, whose slices depend on all tiles, nor with integer weight scales,
 * whose factor depends on all experts. */
START_TEST(equals_dense_products)
{
    uint64_t state = (uint64_t)_i * 7919u + 3u;
    void *handle = sample_open(cpu, 1);
    struct sample s, dense;
    struct route route;
    size_t row_bytes;

    do
        draw(&s, handle, _i, false, &state);
    while (s.tuning.use_stream_k || s.layer.use_int_weight_scale);
    sample_fill(&s, cpu, handle, state, SAMPLE_WILD);
    route_make(&s, kind_of(_i), below(&state, 2), &state, &route);
    sample_run(&s, cpu, handle);
    row_bytes = (size_t)columns_of(&s) * 2;
    for (int64_t e = 0; e < s.layer.num_experts; e++) {
        dense_of(&s, handle, e, &dense);
        for (int64_t row = 0; row < s.outputs.shape[0]; row++)
            if (route.rows[row].expert == e)
                ck_assert_mem_eq((const char *)s.outputs.data + (size_t)row * row_bytes,
                                 (const char *)dense.outputs.data +
                                     (size_t)route.rows[row].in * row_bytes,
                                 row_bytes);
        sample_free(&dense);
    }
    route_free(&route);
    sample_free(&s);
    cpu->close(handle);
}
END_TEST

/* Enough rows for several threads; all of the outputs, untouched rows too. */
START_TEST(invariant_to_sets_and_threads)
{
    uint64_t state = (uint64_t)_i * 104729u + 11u;
    void *handle = sample_open(cpu, 1);
    struct cpu *inside = handle;
    struct sample s;
    struct route route;
    char *first = NULL;

    draw(&s, handle, _i, false, &state);
    s.m *= 25;
    sample_fill(&s, cpu, handle, state, SAMPLE_TAME);
    route_make(&s, kind_of(_i), false, &state, &route);
    for (int set = 0; vector_ops_get(set); set++)
        for (int threads = 1; threads <= 3; threads += 2) {
            memset(s.outputs.data, UNWRITTEN, s.outputs.bytes);
            inside->ops = vector_ops_get(set);
            inside->threads = threads;
            sample_run(&s, cpu, handle);
            if (!first) {
                first = malloc(s.outputs.bytes);
                ck_assert_ptr_nonnull(first);
                memcpy(first, s.outputs.data, s.outputs.bytes);
            }
            ck_assert_mem_eq(s.outputs.data, first, s.outputs.bytes);
        }
    free(first);
    route_free(&route);
    sample_free(&s);
    cpu->close(handle);
}
END_TEST

START_TEST(heuristics_are_supported)
{
    uint64_t state = (uint64_t)_i;
    void *handle = sample_open(cpu, 1);
    struct sample s;
    char reason[HUM_REASON_BYTES] = "";

    draw(&s, handle, _i, false, &state);
    for (int64_t m = 0; m < 1000; m += 1 + m / 2) {
        ck_assert_int_eq(cpu->heuristics(handle, &s.layer, &s.compute, m, &s.tuning, reason),
                         HUM_OK);
        ck_assert_int_eq(cpu->supports(handle, &s.layer, &s.compute, &s.tuning, reason), HUM_OK);
    }
    cpu->close(handle);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cpu_moe");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_loop_test(tc, matches_semantics, 0, PRODUCTS);
    tcase_add_test(tc, products_cover_branches);
    tcase_add_loop_test(tc, equals_dense_products, 0, DENSE_PRODUCTS);
    tcase_add_loop_test(tc, invariant_to_sets_and_threads, 0, THREAD_PRODUCTS);
    tcase_add_loop_test(tc, heuristics_are_supported, 0, 30);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
