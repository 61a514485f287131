/* Every fault of the operations (HUM_FAULTS_OPS) changes what some legal call gives; without it the
 * same call gives the same again. Builds with HUMCHECK_FAULTS only. */
#include "kernels/test/fault_calls.h"

static char reason[HUM_REASON_BYTES];

typedef void run_fn(const void *how, struct bytes *out);

static void expect_change(enum hum_fault fault, run_fn *run, const void *how)
{
    static struct bytes right, wrong, again;

    hum_fault_now = HUM_FAULT_NONE;
    run(how, &right);
    hum_fault_now = fault;
    run(how, &wrong);
    hum_fault_now = HUM_FAULT_NONE;
    run(how, &again);
    ck_assert_uint_eq(right.count, again.count);
    ck_assert(memcmp(right.at, again.at, right.count) == 0);
    ck_assert_msg(right.count != wrong.count || memcmp(right.at, wrong.at, right.count) != 0,
                  "%s changes nothing", hum_fault_name((int)fault));
}

/* ---- quant_weight ---------------------------------------------------------------------------- */

#define OLD HUM_QUANT_RULE_2026_05
#define NEW HUM_QUANT_RULE_2026_08

/* clang-format off */
static const struct quant_row {
    enum hum_fault fault;
    int32_t target;
    bool scale, e8m0, zero, fp_zero;
    enum hum_quant_rule rule;
    int64_t group;
    enum data data;
} quants[] = {
    {F(QUANT_TIES_TO_EVEN),             HUM_E2M1,    false, false, false, false, NEW, 8, STEPS},
    {F(QUANT_INT_TIES_TOWARD_ZERO),     HUM_UINT(5), false, false, false, false, NEW, 8, STEPS},
    {F(QUANT_TRUNCATES),                HUM_UINT(4), true,  false, false, false, NEW, 8, RANDOM},
    {F(QUANT_CODE_WRAPS),               HUM_E2M1,    false, false, false, false, NEW, 8, STEPS},
    {F(QUANT_CODE_WRAPS),               HUM_UINT(4), false, false, false, false, NEW, 8, STEPS},
    {F(QUANT_CLAMP_BEFORE_ZERO_POINT),  HUM_UINT(4), true,  false, true,  false, NEW, 8, RANDOM},
    {F(QUANT_ZERO_POINT_AFTER_ROUNDING),HUM_UINT(4), true,  false, true,  true,  NEW, 8, RANDOM},
    {F(QUANT_MINUS_ZERO_LOST),          HUM_E2M1,    true,  false, false, false, OLD, 8, MINUS_ZERO},
    {F(QUANT_ABSMAX_SKIPS_LAST),        HUM_UINT(4), true,  false, false, false, NEW, 8, RANDOM},
    {F(QUANT_GROUP_INDEX_MINUS_1),      HUM_E4M3,    true,  false, false, false, NEW, 8, RANDOM},
    {F(QUANT_DIVIDES),                  HUM_INT(8),  true,  false, false, false, NEW, 0, TIED},
    {F(QUANT_NAN_POISONS_SCALE),        HUM_UINT(4), true,  false, false, false, NEW, 8, WITH_NAN},
    {F(QUANT_E8M0_ROUNDS_DOWN),         HUM_UINT(4), true,  true,  false, false, NEW, 8, RANDOM},
    {F(QUANT_SCALE_FLOOR_LOST),         HUM_UINT(4), true,  false, false, false, NEW, 8, MINUS_ZERO},
    {F(QUANT_DIVISORS_ALIKE),           HUM_UINT(4), true,  false, false, false, NEW, 8, RANDOM},
};
/* clang-format on */

static void run_quant(const void *how, struct bytes *out)
{
    const struct quant_row *q = how;
    const int64_t groups = q->group ? COLS / q->group : 1;
    struct hum_quant_weight_args a = {.target_dtype = q->target,
                                      .group_size = q->group,
                                      .has_scale = q->scale,
                                      .use_e8m0_scale = q->e8m0,
                                      .has_zero_point = q->zero,
                                      .is_fp_zero_point = q->fp_zero,
                                      .rule = q->rule};

    out->count = 0;
    a.inputs = inputs_of(q->data, HUM_F32, ROWS, COLS);
    a.codes = tensor_make(HUM_INT32, 2, ROWS, COLS, 0);
    if (q->scale)
        a.scale = tensor_make(q->e8m0 ? HUM_E8M0 : HUM_F32, 2, ROWS, groups, 0);
    if (q->zero)
        a.zero_point = tensor_make(HUM_F32, 2, ROWS, groups, 0);
    ck_assert_msg(hum_cpu_ops.quant_weight(NULL, &a, reason) == HUM_OK, "%s", reason);
    keep(out, &a.codes);
    keep(out, &a.scale);
    keep(out, &a.zero_point);
    free(a.inputs.data);
}

START_TEST(quant_weight)
{
    expect_change(quants[_i].fault, run_quant, &quants[_i]);
}
END_TEST

/* ---- dequant_weight, pack, unpack, process_mxfp4 --------------------------------------------- */

static struct hum_tensor random_words(int64_t rows, int64_t cols)
{
    struct hum_tensor t = tensor_make(HUM_INT32, 2, rows, cols, 0);
    uint32_t *to = t.data;
    uint64_t state = 5;

    for (int64_t i = 0; i < rows * cols; i++)
        to[i] = (uint32_t)next_random(&state);
    return t;
}

static const struct code_row {
    enum hum_fault fault;
    int32_t bits;
} dequants[] = {{F(DEQUANT_TOP_IS_NAN), 8},
                {F(DEQUANT_SUBNORMALS_FLUSHED), 8},
                {F(DEQUANT_MINUS_ZERO_LOST), 8}},
  packs[] = {{F(PACK_SIGNED_WRAPS), 4},
             {F(PACK_NIBBLE_ORDER), 4},
             {F(PACK_TAIL_WORD_LOST), 4},
             {F(PACK_STRADDLING_BITS_LOST), 3}},
  unpacks[] = {{F(UNPACK_NIBBLE_ORDER), 4}, {F(UNPACK_SIGN_EXTENDS), 5}};

static void run_dequant(const void *how, struct bytes *out)
{
    struct hum_dequant_weight_args a = {.source_dtype = HUM_E4M3};
    int32_t *codes;

    (void)how;
    a.codes = tensor_make(HUM_INT32, 1, 256, 0, 0);
    a.outputs = tensor_make(HUM_F32, 1, 256, 0, 0);
    codes = a.codes.data;
    for (int i = 0; i < 256; i++)
        codes[i] = i;
    ck_assert_msg(hum_cpu_ops.dequant_weight(NULL, &a, reason) == HUM_OK, "%s", reason);
    out->count = 0;
    keep(out, &a.outputs);
    free(a.codes.data);
}

static void run_pack(const void *how, struct bytes *out)
{
    const struct code_row *row = how;
    struct hum_pack_args a = {.bits = row->bits};

    a.codes = random_words(3, 64);
    a.packed = tensor_make(HUM_INT32, 2, 3, 2 * row->bits, 0);
    ck_assert_msg(hum_cpu_ops.pack(NULL, &a, reason) == HUM_OK, "%s", reason);
    out->count = 0;
    keep(out, &a.packed);
    free(a.codes.data);
}

static void run_unpack(const void *how, struct bytes *out)
{
    const struct code_row *row = how;
    struct hum_pack_args a = {.bits = row->bits};

    a.codes = tensor_make(HUM_INT32, 2, 3, 64, 0);
    a.packed = random_words(3, 2 * row->bits);
    ck_assert_msg(hum_cpu_ops.unpack(NULL, &a, reason) == HUM_OK, "%s", reason);
    out->count = 0;
    keep(out, &a.codes);
    free(a.packed.data);
}

START_TEST(dequant_weight)
{
    expect_change(dequants[_i].fault, run_dequant, &dequants[_i]);
}
END_TEST

START_TEST(pack)
{
    expect_change(packs[_i].fault, run_pack, &packs[_i]);
}
END_TEST

START_TEST(unpack)
{
    expect_change(unpacks[_i].fault, run_unpack, &unpacks[_i]);
}
END_TEST

static const struct mxfp4_row {
    enum hum_fault fault;
    int32_t a_dtype;
    bool per_row;
} mxfp4s[] = {
    {F(MXFP4_TIES_TO_EVEN), HUM_E4M3, false},  {F(MXFP4_MINUS_ZERO_KEPT), HUM_E4M3, false},
    {F(MXFP4_RANGE_OF_E4M3), HUM_INT8, false}, {F(MXFP4_BASE_OF_TENSOR), HUM_E4M3, true},
    {F(MXFP4_BIAS_128), HUM_E4M3, false},      {F(MXFP4_OFFSET_WRAPS), HUM_INT8, true},
};

static void run_mxfp4(const void *how, struct bytes *out)
{
    const struct mxfp4_row *row = how;
    struct hum_process_mxfp4_args a = {.a_dtype = row->a_dtype, .per_row = row->per_row};
    unsigned char *scales;

    a.weight = random_words(ROWS, 16);
    a.scale = tensor_make(HUM_E8M0, 2, ROWS, 4, 0);
    a.factor = tensor_make(HUM_F32, 1, row->per_row ? ROWS : 1, 0, 0);
    scales = a.scale.data;
    for (int i = 0; i < 4 * ROWS; i++)
        scales[i] = (unsigned char)(110 + i * 7 % 15);
    ck_assert_msg(hum_cpu_ops.process_mxfp4(NULL, &a, reason) == HUM_OK, "%s", reason);
    out->count = 0;
    keep(out, &a.weight);
    keep(out, &a.scale);
    keep(out, &a.factor);
}

START_TEST(process_mxfp4)
{
    expect_change(mxfp4s[_i].fault, run_mxfp4, &mxfp4s[_i]);
}
END_TEST

/* ---- process_input --------------------------------------------------------------------------- */

static void run_input(const void *how, struct bytes *out)
{
    fault_input_run(*(const int *)how, out);
}

START_TEST(process_input)
{
    expect_change(fault_input_fault(_i), run_input, &_i);
}
END_TEST

/* ---- hadamard, moe_fused_mul_sum ------------------------------------------------------------- */

static const enum hum_fault hadamards[] = {F(HADAMARD_UNNORMALIZED), F(HADAMARD_SIGN),
                                           F(HADAMARD_BLOCK_OF_32), F(HADAMARD_ROUNDS_STAGES)};

static void run_hadamard(const void *how, struct bytes *out)
{
    struct hum_hadamard_args a = {.block_size = 64};

    (void)how;
    a.inputs = inputs_of(RANDOM, HUM_F32, 2, 128);
    a.outputs = tensor_make(HUM_F32, 2, 2, 128, 0);
    ck_assert_msg(hum_cpu_ops.hadamard(NULL, &a, reason) == HUM_OK, "%s", reason);
    out->count = 0;
    keep(out, &a.outputs);
    free(a.inputs.data);
}

START_TEST(hadamard)
{
    expect_change(hadamards[_i], run_hadamard, NULL);
}
END_TEST

enum { TOKENS = 6, TOP_K = 4, HIDDEN = 20, MAPPED = 8 };

static const struct sum_row {
    enum hum_fault fault;
    int32_t dtype;
} sums[] = {
    {F(SUM_WEIGHT_TWICE), HUM_F32},     {F(SUM_LAST_LOST), HUM_F32},
    {F(SUM_IN_16_BITS), HUM_BF16},      {F(SUM_FUSED), HUM_F32},
    {F(SUM_REVERSED), HUM_F32},         {F(SUM_MINUS_1_COUNTED), HUM_F32},
    {F(SUM_MAP_IGNORED), HUM_F32},      {F(SUM_EMPTY_NOT_WRITTEN), HUM_F32},
    {F(SUM_TAIL_NOT_WRITTEN), HUM_F32},
};

/* bfloat16: the upper halves of the same numbers. Token 2 has no entry. */
static void run_sum(const void *how, struct bytes *out)
{
    const struct sum_row *row = how;
    struct hum_tensor x = inputs_of(RANDOM, HUM_F32, TOKENS * TOP_K, HIDDEN);
    struct hum_moe_fused_mul_sum_args a = {.weights = inputs_of(RANDOM, HUM_F32, TOKENS, TOP_K)};
    const uint16_t *halves = x.data;
    int32_t *ids, *map;

    a.inputs = tensor_make(row->dtype, 3, TOKENS, TOP_K, HIDDEN);
    a.outputs = tensor_make(row->dtype, 2, TOKENS, HIDDEN, 0);
    a.topk_ids = tensor_make(HUM_INT32, 2, TOKENS, TOP_K, 0);
    a.expert_map = tensor_make(HUM_INT32, 1, MAPPED, 0, 0);
    ids = a.topk_ids.data;
    map = a.expert_map.data;
    for (int i = 0; i < TOKENS * TOP_K * HIDDEN; i++)
        if (row->dtype == HUM_BF16)
            ((uint16_t *)a.inputs.data)[i] = halves[2 * i + 1];
        else
            ((uint32_t *)a.inputs.data)[i] = ((const uint32_t *)x.data)[i];
    for (int i = 0; i < MAPPED; i++)
        map[i] = i % 5 == 4 ? -1 : i;
    for (int i = 0; i < TOKENS * TOP_K; i++)
        ids[i] = i / TOP_K == 2 || i % 7 == 3 ? -1 : i % MAPPED;
    ck_assert_msg(hum_cpu_ops.moe_fused_mul_sum(NULL, &a, reason) == HUM_OK, "%s", reason);
    out->count = 0;
    keep(out, &a.outputs);
    free(x.data);
    free(a.inputs.data);
    free(a.weights.data);
    free(a.topk_ids.data);
    free(a.expert_map.data);
}

START_TEST(moe_fused_mul_sum)
{
    expect_change(sums[_i].fault, run_sum, &sums[_i]);
}
END_TEST

/* ---- buffer_metas ---------------------------------------------------------------------------- */

static const struct buffer_row {
    enum hum_fault fault;
    enum hum_gemm_type type;
    int32_t a_dtype;
} buffers[] = {
    {F(BUFFER_TOO_SMALL), HUM_GEMM_INDEXED, HUM_E4M3},
    {F(BUFFER_WORKSPACE_SHARED), HUM_GEMM_INDEXED, HUM_E4M3},
    {F(BUFFER_STALE), HUM_GEMM_INDEXED, HUM_BF16},
    {F(BUFFER_PADDED_COLUMNS), HUM_GEMM_INDEXED, HUM_E4M3},
    {F(BUFFER_DISPATCHERS_IGNORED), HUM_GEMM_GROUPED_MASKED, HUM_E4M3},
};

static void run_buffers(const void *how, struct bytes *out)
{
    const struct buffer_row *row = how;
    const struct hum_layer_config gate_up = {.shape_n = 512,
                                             .shape_k = 256,
                                             .pad_shape_n = 128,
                                             .pad_shape_k = 64,
                                             .num_experts = 4,
                                             .a_dtype = row->a_dtype,
                                             .c_dtype = HUM_BF16};
    const struct hum_layer_config down = {.shape_n = 256,
                                          .shape_k = 256,
                                          .pad_shape_n = 64,
                                          .pad_shape_k = 64,
                                          .num_experts = 4,
                                          .a_dtype = row->a_dtype,
                                          .c_dtype = HUM_BF16};
    const struct hum_experts_config config = {.gate_up = &gate_up,
                                              .down = &down,
                                              .gemm_type = row->type,
                                              .activation = HUM_ACT_SILU,
                                              .form = HUM_ACT_BINARY_SPLIT,
                                              .m = 5,
                                              .top_k = 2,
                                              .max_tokens = 7,
                                              .dispatchers = 3};
    struct hum_buffer_meta metas[HUM_BUFFER_COUNT];

    memset(metas, POISON, sizeof metas);
    ck_assert_msg(hum_cpu_ops.buffer_metas(NULL, &config, metas, reason) == HUM_OK, "%s", reason);
    out->count = sizeof metas;
    memcpy(out->at, metas, sizeof metas);
}

START_TEST(buffer_metas)
{
    expect_change(buffers[_i].fault, run_buffers, &buffers[_i]);
}
END_TEST

/* ---- all of them ----------------------------------------------------------------------------- */

/* Rows of a table begin with their fault. */
static void mark(bool *here, const void *rows, size_t size, int count)
{
    const char *row = rows;

    for (int i = 0; i < count; i++, row += size) {
        enum hum_fault fault;

        memcpy(&fault, row, sizeof fault);
        here[fault] = true;
    }
}

#define MARK(rows) mark(here, rows, sizeof *(rows), COUNT(rows))

START_TEST(every_fault_is_here)
{
#define IDENTIFIER(id) HUM_FAULT_##id,
    static const enum hum_fault all[] = {HUM_FAULTS_OPS(IDENTIFIER)};
#undef IDENTIFIER
    bool here[HUM_FAULT_COUNT] = {false};

    MARK(quants);
    MARK(dequants);
    MARK(packs);
    MARK(unpacks);
    MARK(mxfp4s);
    MARK(hadamards);
    MARK(sums);
    MARK(buffers);
    for (int i = 0; i < fault_input_count; i++)
        here[fault_input_fault(i)] = true;
    for (int i = 0; i < COUNT(all); i++)
        ck_assert_msg(here[all[i]], "no call shows %s", hum_fault_name((int)all[i]));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("faults_ops");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_loop_test(tc, quant_weight, 0, COUNT(quants));
    tcase_add_loop_test(tc, dequant_weight, 0, COUNT(dequants));
    tcase_add_loop_test(tc, pack, 0, COUNT(packs));
    tcase_add_loop_test(tc, unpack, 0, COUNT(unpacks));
    tcase_add_loop_test(tc, process_mxfp4, 0, COUNT(mxfp4s));
    tcase_add_loop_test(tc, process_input, 0, fault_input_count);
    tcase_add_loop_test(tc, hadamard, 0, COUNT(hadamards));
    tcase_add_loop_test(tc, moe_fused_mul_sum, 0, COUNT(sums));
    tcase_add_loop_test(tc, buffer_metas, 0, COUNT(buffers));
    tcase_add_test(tc, every_fault_is_here);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
