#include "kernels/cpu/ops.h"
#include "kernels/test/ops_tensor.h"
#include "kernels/test/oracle.h"

#include <math.h>

static char reason[HUM_REASON_BYTES];

/* ---- moe_fused_mul_sum ----------------------------------------------------------------------- */

enum { TOKENS = 4, TOP_K = 3, HIDDEN = 600, EXPERTS = 5 };

static const int32_t ids[TOKENS * TOP_K] = {0, 4, 2, -1, 3, -7, -1, -1, -1, 1, 1, 1};
static const int32_t map[EXPERTS] = {3, -1, 0, 7, -2};

/* options: 1 ids, 2 map */
static struct hum_moe_fused_mul_sum_args sum_make(int32_t dtype, int options)
{
    struct hum_moe_fused_mul_sum_args a = {0};

    a.inputs = tensor_make(dtype, 3, TOKENS, TOP_K, HIDDEN);
    a.weights = tensor_make(HUM_F32, 2, TOKENS, TOP_K, 0);
    a.outputs = tensor_make(dtype, 2, TOKENS, HIDDEN, 0);
    if (options & 1) {
        a.topk_ids = tensor_make(HUM_INT32, 2, TOKENS, TOP_K, 0);
        memcpy(a.topk_ids.data, ids, sizeof ids);
    }
    if (options & 2) {
        a.expert_map = tensor_make(HUM_INT32, 1, EXPERTS, 0, 0);
        memcpy(a.expert_map.data, map, sizeof map);
    }
    return a;
}

static void sum_free(struct hum_moe_fused_mul_sum_args *a)
{
    free(a->inputs.data);
    free(a->weights.data);
    free(a->outputs.data);
    free(a->topk_ids.data);
    free(a->expert_map.data);
}

static bool is_left_out(int options, int entry)
{
    if (!(options & 1))
        return false;
    return ids[entry] < 0 || ((options & 2) && map[ids[entry]] < 0);
}

/* Rows that are left out are full of NaN. */
static void sum_fill(struct hum_moe_fused_mul_sum_args *a, int options)
{
    uint64_t state = 5;

    for (int i = 0; i < TOKENS * TOP_K; i++)
        ((float *)a->weights.data)[i] = random_unit(&state);
    for (int i = 0; i < TOKENS * TOP_K * HIDDEN; i++) {
        const bool out = is_left_out(options, i / HIDDEN);
        const float x = out ? NAN : ldexpf(random_unit(&state), (int)(next_random(&state) % 8));

        if (a->inputs.dtype == HUM_F32)
            ((float *)a->inputs.data)[i] = x;
        else /* 0x7fff is NaN in both; else numbers below 2 */
            ((uint16_t *)a->inputs.data)[i] =
                (uint16_t)(out ? 0x7fffu : next_random(&state) & 0xbfffu);
    }
}

static double element(const struct hum_tensor *t, int i)
{
    if (t->dtype == HUM_F32)
        return (double)((const float *)t->data)[i];
    return oracle_decode(t->dtype, ((const uint16_t *)t->data)[i], false);
}

START_TEST(sums_in_order)
{
    static const int32_t formats[] = {HUM_F32, HUM_F16, HUM_BF16};
    static const int options[] = {0, 1, 3};

    for (int o = 0; o < 3; o++) {
        struct hum_moe_fused_mul_sum_args a = sum_make(formats[_i], options[o]);
        struct hum_tensor before;

        sum_fill(&a, options[o]);
        before = tensor_copy(&a.inputs);
        ck_assert_int_eq(hum_cpu_ops.moe_fused_mul_sum(NULL, &a, reason), HUM_OK);
        for (int i = 0; i < TOKENS * HIDDEN; i++) {
            const int token = i / HIDDEN;
            double got = element(&a.outputs, i), want;
            float acc = 0;

            for (int j = token * TOP_K; j < (token + 1) * TOP_K; j++)
                if (!is_left_out(options[o], j))
                    acc = acc + (float)element(&a.inputs, j * HIDDEN + i % HIDDEN) *
                                    ((float *)a.weights.data)[j];
            want = oracle_round(formats[_i], (double)acc, 0);
            REQUIRE(got == want, "%a, not %a", got, want);
            if (options[o] && token == 2)
                REQUIRE(got == 0 && !signbit(got), "nothing left: +0");
        }
        ck_assert(tensor_guard_intact(&a.outputs) && tensor_equal(&before, &a.inputs));
        free(before.data);
        sum_free(&a);
    }
}
END_TEST

START_TEST(refuses_to_sum)
{
    struct hum_moe_fused_mul_sum_args good = sum_make(HUM_BF16, 3), bad[8];

    sum_fill(&good, 3);
    for (int i = 0; i < COUNT(bad); i++)
        bad[i] = good;
    bad[0].topk_ids = (struct hum_tensor){0};
    bad[1].weights.dtype = HUM_BF16;
    bad[2].weights.shape[1] = 2;
    bad[3].outputs.data = good.inputs.data;
    bad[4].inputs.dtype = HUM_INT8;
    bad[5].expert_map.shape[0] = 4; /* bytes contradict it */
    bad[6].expert_map.shape[0] = 4;
    bad[6].expert_map.bytes = 16; /* an id of 4 lies behind it */
    bad[7].outputs.rank = 3;
    for (int i = 0; i < COUNT(bad); i++) {
        reason[0] = 0;
        ck_assert_int_eq(hum_cpu_ops.moe_fused_mul_sum(NULL, &bad[i], reason), HUM_INVALID);
        ck_assert_int_ne(reason[0], 0);
        ck_assert(tensor_untouched(&good.outputs));
    }
    ck_assert_int_eq(hum_cpu_ops.moe_fused_mul_sum(NULL, NULL, reason), HUM_INVALID);
    ck_assert_int_eq(hum_cpu_ops.moe_fused_mul_sum(NULL, &good, reason), HUM_OK);
    sum_free(&good);
}
END_TEST

START_TEST(sums_nothing)
{
    struct hum_moe_fused_mul_sum_args a = {0};

    a.inputs = tensor_make(HUM_F32, 3, 0, 2, 8);
    a.weights = tensor_make(HUM_F32, 2, 0, 2, 0);
    a.outputs = tensor_make(HUM_F32, 2, 0, 8, 0);
    ck_assert_int_eq(hum_cpu_ops.moe_fused_mul_sum(NULL, &a, reason), HUM_OK);
    ck_assert(tensor_guard_intact(&a.outputs));
    sum_free(&a);
}
END_TEST

/* ---- buffer_metas ---------------------------------------------------------------------------- */

/* gate_up: n 2 x 96 of 256 (64 padded), k 128 of 192; down: n 128, k 96 of 128. */
static const struct hum_layer_config gate_up_fp8 = {
    .shape_n = 256,
    .shape_k = 192,
    .pad_shape_n = 64,
    .pad_shape_k = 64,
    .num_experts = 8,
    .a_dtype = HUM_E4M3,
    .c_dtype = HUM_BF16,
};
static const struct hum_layer_config down_fp8 = {
    .shape_n = 128,
    .shape_k = 128,
    .pad_shape_k = 32,
    .num_experts = 8,
    .a_dtype = HUM_E4M3,
    .c_dtype = HUM_BF16,
};

struct layers {
    struct hum_layer_config gate_up, down;
    struct hum_experts_config config;
};

static void layers_make(struct layers *l, enum hum_gemm_type type)
{
    l->gate_up = gate_up_fp8;
    l->down = down_fp8;
    l->config = (struct hum_experts_config){
        .gate_up = &l->gate_up,
        .down = &l->down,
        .gemm_type = type,
        .activation = HUM_ACT_SILU,
        .form = HUM_ACT_BINARY_SPLIT,
        .m = 10,
        .top_k = 2,
        .max_tokens = 5,
        .dispatchers = 3,
    };
}

/* By hand from the table of section 10: rows, columns, bytes, workspace. */
static const struct {
    enum hum_gemm_type type;
    int32_t a_gate_up, a_down;
    struct {
        int64_t rows, cols, bytes;
        int workspace;
    } want[HUM_BUFFER_COUNT];
} metas[] = {
    {HUM_GEMM_INDEXED,
     HUM_E4M3,
     HUM_E4M3,
     {{10, 128, 1280, 2},
      {20, 192, 7680, 1},
      {20, 96, 3840, 2},
      {20, 96, 1920, 1},
      {20, 128, 5120, 2},
      {10, 128, 2560, 1}}},
    {HUM_GEMM_GROUPED_CONTIGUOUS,
     HUM_E4M3,
     HUM_E4M3,
     {{20, 128, 2560, 2},
      {20, 192, 7680, 1},
      {20, 96, 3840, 2},
      {20, 96, 1920, 1},
      {20, 128, 5120, 2},
      {10, 128, 2560, 1}}},
    {HUM_GEMM_GROUPED_MASKED,
     HUM_E4M3,
     HUM_E4M3,
     {{40, 128, 5120, 1},
      {120, 192, 46080, 2},
      {120, 96, 23040, 1},
      {120, 96, 11520, 2},
      {120, 128, 30720, 1},
      {0, 0, 0, 0}}},
    {HUM_GEMM_INDEXED, /* 16-bit activations: no quanted buffers, the rest moves up */
     HUM_BF16,
     HUM_BF16,
     {{0, 0, 0, 0},
      {20, 192, 7680, 2},
      {20, 96, 3840, 1},
      {0, 0, 0, 0},
      {20, 128, 5120, 2},
      {10, 128, 2560, 1}}},
    {HUM_GEMM_INDEXED,
     HUM_INT4,
     HUM_E2M1,
     {{10, 64, 640, 2},
      {20, 192, 7680, 1},
      {20, 96, 3840, 2},
      {20, 48, 960, 1},
      {20, 128, 5120, 2},
      {10, 128, 2560, 1}}},
    {HUM_GEMM_INDEXED,
     HUM_BF16,
     HUM_INT8,
     {{0, 0, 0, 0},
      {20, 192, 7680, 1},
      {20, 96, 3840, 2},
      {20, 96, 1920, 1},
      {20, 128, 5120, 2},
      {10, 128, 2560, 1}}},
};

START_TEST(sizes_buffers)
{
    struct hum_buffer_meta out[HUM_BUFFER_COUNT];
    struct layers l;

    layers_make(&l, metas[_i].type);
    l.gate_up.a_dtype = metas[_i].a_gate_up;
    l.down.a_dtype = metas[_i].a_down;
    ck_assert_int_eq(hum_cpu_ops.buffer_metas(NULL, &l.config, out, reason), HUM_OK);
    for (int i = 0; i < HUM_BUFFER_COUNT; i++) {
        ck_assert_int_eq(out[i].rows, metas[_i].want[i].rows);
        ck_assert_int_eq(out[i].cols, metas[_i].want[i].cols);
        ck_assert_uint_eq(out[i].bytes, (uint64_t)metas[_i].want[i].bytes);
        ck_assert_int_eq(out[i].workspace, metas[_i].want[i].workspace);
        if (out[i].bytes)
            ck_assert_int_eq(out[i].dtype, i == HUM_BUFFER_QUANTED_GATE_UP_INPUT
                                               ? metas[_i].a_gate_up
                                           : i == HUM_BUFFER_QUANTED_DOWN_INPUT ? metas[_i].a_down
                                                                                : HUM_BF16);
    }
}
END_TEST

/* Unary activations do not halve; M = 0 is an empty result with the same places. */
START_TEST(sizes_unary_and_empty)
{
    struct hum_buffer_meta out[HUM_BUFFER_COUNT];
    struct layers l;

    layers_make(&l, HUM_GEMM_INDEXED);
    l.config.form = HUM_ACT_UNARY;
    l.config.activation = HUM_ACT_RELU2;
    l.config.m = 0;
    ck_assert_int_eq(hum_cpu_ops.buffer_metas(NULL, &l.config, out, reason), HUM_INVALID);
    l.down.shape_k = 192;
    l.down.pad_shape_k = 0;
    ck_assert_int_eq(hum_cpu_ops.buffer_metas(NULL, &l.config, out, reason), HUM_OK);
    ck_assert_int_eq(out[HUM_BUFFER_ACTIVATION_OUTPUT].cols, 192);
    for (int i = 0; i < HUM_BUFFER_COUNT; i++) {
        ck_assert_uint_eq(out[i].bytes, 0);
        ck_assert_int_eq(out[i].workspace, 1 + (HUM_BUFFER_OUTPUT - i) % 2);
    }
}
END_TEST

/* What is changed, and the numbers that the sentence must hold. */
enum change {
    DOWN_K,
    DOWN_N,
    C_DTYPE,
    NUM_EXPERTS,
    ODD_K,
    TOO_MANY_ROWS,
    DENSE,
    BAD_ACTIVATION,
    NO_LAYER,
    NEGATIVE_M,
    ZERO_TOP_K,
    UNARY_SWIGLU,
    CHANGES
};
static const char *const numbers[CHANGES][2] = {
    [DOWN_K] = {"64", "96"},    [DOWN_N] = {"64", "128"}, [C_DTYPE] = {"21160510", "21160807"},
    [NUM_EXPERTS] = {"7", "8"}, [ODD_K] = {"127", "2"},
};

static void change_layers(struct layers *l, enum change change)
{
    switch (change) {
    case DOWN_K:
        l->down.pad_shape_k = 64;
        return;
    case DOWN_N:
        l->down.pad_shape_n = 64;
        return;
    case C_DTYPE:
        l->down.c_dtype = HUM_F16;
        return;
    case NUM_EXPERTS:
        l->down.num_experts = 7;
        return;
    case ODD_K:
        l->gate_up.a_dtype = HUM_INT4;
        l->gate_up.pad_shape_k = 65;
        l->down.pad_shape_n = 1;
        return;
    case TOO_MANY_ROWS:
        l->config.m = INT64_C(1) << 31;
        l->config.top_k = 33;
        return;
    case DENSE:
        l->config.gemm_type = HUM_GEMM_DENSE;
        return;
    case BAD_ACTIVATION:
        l->config.activation = (enum hum_activation)17;
        return;
    case NO_LAYER:
        l->config.down = NULL;
        return;
    case NEGATIVE_M:
        l->config.m = -1;
        return;
    case ZERO_TOP_K:
        l->config.top_k = 0;
        return;
    case UNARY_SWIGLU:
        l->config.form = HUM_ACT_UNARY;
        l->config.activation = HUM_ACT_SWIGLU;
        return;
    case CHANGES:
        return;
    }
}

START_TEST(refuses_layers_that_do_not_fit)
{
    struct hum_buffer_meta out[HUM_BUFFER_COUNT], before[HUM_BUFFER_COUNT];
    struct layers l;

    memset(out, POISON, sizeof out);
    memcpy(before, out, sizeof out);
    layers_make(&l, HUM_GEMM_INDEXED);
    change_layers(&l, (enum change)_i);
    reason[0] = 0;
    ck_assert_int_eq(hum_cpu_ops.buffer_metas(NULL, &l.config, out, reason), HUM_INVALID);
    ck_assert(memcmp(before, out, sizeof out) == 0);
    ck_assert_int_ne(reason[0], 0);
    for (int i = 0; i < 2; i++)
        if (numbers[_i][i])
            ck_assert_msg(strstr(reason, numbers[_i][i]) != NULL, "%s", reason);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cpu_ops_experts");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_loop_test(tc, sums_in_order, 0, 3);
    tcase_add_test(tc, refuses_to_sum);
    tcase_add_test(tc, sums_nothing);
    tcase_add_loop_test(tc, sizes_buffers, 0, COUNT(metas));
    tcase_add_test(tc, sizes_unary_and_empty);
    tcase_add_loop_test(tc, refuses_layers_that_do_not_fit, 0, CHANGES);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
