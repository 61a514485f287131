#include "kernels/cpu/cpu.h"
#include "kernels/test/sample.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const struct hum_provider *const cpu = &hum_cpu_provider;

static void check_reason(const char reason[HUM_REASON_BYTES])
{
    ck_assert_uint_gt(strnlen(reason, HUM_REASON_BYTES), 10);
    ck_assert_uint_lt(strnlen(reason, HUM_REASON_BYTES), HUM_REASON_BYTES);
    ck_assert_ptr_null(strchr(reason, '\n'));
}

/* ---- configurations ---- */

/* Weights that an activation's format takes: uint1 to uint_most (with integer zero points
 * zero_most), floats with e_least to e_most and up to m_most bits. Source: upstream's rules for its
 * data types. */
static const struct {
    int32_t a;
    int uint_most, zero_most, e_least, e_most, m_most;
    int32_t same; /* the integer as wide as a */
} weights_of[] = {
    {HUM_F16, 8, 8, 1, 5, 10, HUM_NONE}, {HUM_BF16, 8, 8, 1, 8, 7, HUM_NONE},
    {HUM_E4M3, 5, 4, 1, 4, 3, HUM_NONE}, {HUM_E5M2, 4, 3, 1, 5, 2, HUM_NONE},
    {HUM_E3M4, 6, 5, 1, 3, 4, HUM_NONE}, {HUM_E2M1, 3, 2, 1, 2, 1, HUM_NONE},
    {HUM_E0M3, 0, 0, 0, 0, 3, HUM_NONE}, {HUM_INT8, 7, 7, 9, 0, 0, HUM_INT8},
    {HUM_INT4, 3, 3, 9, 0, 0, HUM_INT4},
};

static bool takes(struct hum_layer_config layer, int32_t b, bool zero)
{
    struct hum_weights w;
    char reason[HUM_REASON_BYTES] = "";
    enum hum_code rc;

    layer.b_dtype = b;
    layer.has_zero_point = zero;
    rc = cpu->transform_shapes(NULL, &layer, &w, reason);
    if (rc)
        check_reason(reason);
    ck_assert(rc == HUM_OK || rc == HUM_INVALID);
    return rc == HUM_OK;
}

START_TEST(takes_exactly_the_legal_weights)
{
    const int32_t a = weights_of[_i].a;
    const int bits_a = hum_dtype_bits(a);
    struct hum_layer_config layer = sample_legal().layer;

    layer.a_dtype = a;
    layer.weight_scale_group_size = 128;
    if (bits_a == 16) {
        layer.c_dtype = layer.bs_dtype = a;
        layer.as_dtype = HUM_NONE;
    }
    for (int bits = 1; bits <= 10; bits++) {
        ck_assert_int_eq(takes(layer, HUM_UINT(bits), false), bits <= weights_of[_i].uint_most);
        ck_assert_int_eq(takes(layer, HUM_UINT(bits), true), bits <= weights_of[_i].zero_most);
        ck_assert_int_eq(takes(layer, HUM_INT(bits), false), HUM_INT(bits) == weights_of[_i].same);
    }
    for (int e = 0; e <= 8; e++)
        for (int m = 0; m <= 8; m++) {
            const bool legal = e >= weights_of[_i].e_least && e <= weights_of[_i].e_most &&
                               m <= weights_of[_i].m_most && 1 + e + m <= 8 &&
                               1 + e + m <= bits_a && e + m > 0;

            if (e + m > 0)
                ck_assert_int_eq(takes(layer, HUM_FLOAT(1 + e + m, e, m), false), legal);
        }
}
END_TEST

/* One member of a configuration is changed; MEMBER is its place. */
#define LAYER(member) \
    offsetof(struct sample, layer.member), sizeof(((struct sample *)0)->layer.member)
#define COMPUTE(member) \
    offsetof(struct sample, compute.member), sizeof(((struct sample *)0)->compute.member)
#define TUNING(member) \
    offsetof(struct sample, tuning.member), sizeof(((struct sample *)0)->tuning.member)

/* clang-format off */
static const struct {
    size_t at, size;
    int64_t value;
    enum hum_code code;
} changes[] = {
    {LAYER(shape_n), 0, HUM_INVALID},
    {LAYER(shape_n), 96, HUM_INVALID},
    {LAYER(shape_n), INT64_MAX / 64 * 64, HUM_INVALID},
    {LAYER(shape_k), 224, HUM_INVALID},
    {LAYER(shape_k), -256, HUM_INVALID},
    {LAYER(pad_shape_n), 4, HUM_INVALID},
    {LAYER(pad_shape_n), 128, HUM_INVALID},
    {LAYER(pad_shape_k), 8, HUM_INVALID},
    {LAYER(pad_shape_k), -16, HUM_INVALID},
    {LAYER(num_experts), 2, HUM_INVALID},
    {LAYER(num_experts), -1, HUM_INVALID},
    {LAYER(num_experts), 16385, HUM_INVALID},
    {LAYER(a_dtype), 0, HUM_INVALID},
    {LAYER(a_dtype), HUM_UINT(8), HUM_INVALID},
    {LAYER(b_dtype), HUM_UINT(4) + 7, HUM_INVALID},
    {LAYER(b_dtype), -1, HUM_INVALID},
    {LAYER(b_dtype), HUM_E5M3, HUM_INVALID},
    {LAYER(c_dtype), HUM_F32, HUM_INVALID},
    {LAYER(bs_dtype), HUM_F32, HUM_INVALID},
    {LAYER(bs_dtype), HUM_F16, HUM_INVALID},
    {LAYER(bs_dtype), HUM_E3M4, HUM_INVALID},
    {LAYER(as_dtype), HUM_NONE, HUM_INVALID},
    {LAYER(as_dtype), HUM_E4M3, HUM_INVALID},
    {LAYER(input_quant_mode), HUM_QUANT_DYNAMIC_GROUP, HUM_INVALID},
    {LAYER(input_quant_mode), 17, HUM_INVALID},
    {LAYER(input_quant_mode), HUM_QUANT_DYNAMIC_GROUP_TOKEN, HUM_UNSUPPORTED},
    {LAYER(input_scale_group_size), 48, HUM_INVALID},
    {LAYER(input_scale_group_size), -32, HUM_INVALID},
    {LAYER(weight_scale_group_size), 16, HUM_INVALID},
    {LAYER(weight_scale_group_size), 96, HUM_INVALID},
    {LAYER(weight_scale_group_size), 0, HUM_INVALID},
    {LAYER(weight_scale_group_size), 512, HUM_INVALID},
    {LAYER(weight_scale_group_size_n), 64, HUM_INVALID},
    {LAYER(weight_scale_type), HUM_SCALE_CHANNEL, HUM_INVALID},
    {LAYER(weight_scale_type), HUM_SCALE_BLOCK, HUM_INVALID},
    {LAYER(weight_scale_type), 4, HUM_INVALID},
    {LAYER(weight_scale_2_type), 3, HUM_INVALID},
    {LAYER(use_int_weight_scale), true, HUM_INVALID},
    {LAYER(use_fused_e8m0_scale), true, HUM_INVALID},
    {LAYER(is_fp_zero_point), true, HUM_INVALID},
    {LAYER(mma_type), 5, HUM_INVALID},
    {COMPUTE(gemm_type), HUM_GEMM_INDEXED, HUM_INVALID},
    {COMPUTE(gemm_type), HUM_GEMM_GROUPED_CONTIGUOUS, HUM_INVALID},
    {COMPUTE(gemm_type), HUM_GEMM_GROUPED_MASKED, HUM_INVALID},
    {COMPUTE(gemm_type), 4, HUM_INVALID},
    {COMPUTE(use_f16_accum), true, HUM_INVALID},
    {COMPUTE(use_batch_invariant), true, HUM_INVALID},
    {TUNING(block_m), 0, HUM_INVALID},
    {TUNING(block_m), 48, HUM_INVALID},
    {TUNING(block_n), 256, HUM_INVALID},
    {TUNING(block_n), -64, HUM_INVALID},
    {TUNING(block_k), 512, HUM_INVALID},
    {TUNING(block_k), 32, HUM_INVALID},
    {TUNING(block_k), 192, HUM_INVALID},
    {TUNING(warp_m), 32, HUM_INVALID},
    {TUNING(warp_n), 8, HUM_INVALID},
    {TUNING(warp_k), 16, HUM_INVALID},
    {TUNING(warp_k), 0, HUM_INVALID},
    {TUNING(num_sms), -1, HUM_INVALID},
    {TUNING(num_ctas_per_sm), 0, HUM_INVALID},
    {TUNING(num_stages), -1, HUM_INVALID},
};
/* clang-format on */

/* Sets `size` bytes, at most those of the value, the rest zero (little endian). */
static void set(void *at, size_t size, int64_t value)
{
    memset(at, 0, size);
    memcpy(at, &value, size < sizeof value ? size : sizeof value);
}

static void check_unwritten(const struct sample *s)
{
    for (size_t i = 0; i < s->outputs.bytes; i++)
        ck_assert_int_eq(((const uint8_t *)s->outputs.data)[i], 0xff);
}

START_TEST(refuses_configurations)
{
    void *handle = sample_open(cpu, 1);
    struct sample s = sample_legal();
    struct hum_gemm_args args;
    char reason[HUM_REASON_BYTES] = "";

    ck_assert_int_eq(cpu->supports(handle, &s.layer, &s.compute, &s.tuning, reason), HUM_OK);
    sample_fill(&s, cpu, handle, 1, SAMPLE_TAME);
    set((char *)&s + changes[_i].at, changes[_i].size, changes[_i].value);
    ck_assert_int_eq(cpu->supports(handle, &s.layer, &s.compute, &s.tuning, reason),
                     changes[_i].code);
    check_reason(reason);
    memset(reason, 0, sizeof reason);
    args = sample_args(&s);
    ck_assert_int_eq(cpu->forward(handle, &args, reason), changes[_i].code);
    check_reason(reason);
    check_unwritten(&s);
    sample_free(&s);
    cpu->close(handle);
}
END_TEST

START_TEST(refuses_too_many_slices)
{
    void *handle = sample_open(cpu, 1);
    struct sample s = sample_legal();
    char reason[HUM_REASON_BYTES] = "";

    s.layer.shape_k = 64 * 65;
    s.tuning.num_sms = 65;
    ck_assert_int_eq(cpu->supports(handle, &s.layer, &s.compute, &s.tuning, reason),
                     HUM_UNSUPPORTED);
    check_reason(reason);
    s.tuning.num_sms = 64;
    ck_assert_int_eq(cpu->supports(handle, &s.layer, &s.compute, &s.tuning, reason), HUM_OK);
    cpu->close(handle);
}
END_TEST

/* ---- tensors ---- */

struct call {
    struct hum_gemm_args args;
    struct hum_weights weights;
};

#define ARGS(member)    offsetof(struct call, args.member), sizeof(((struct call *)0)->args.member)
#define POINTER(member) offsetof(struct call, args.member), sizeof(void *)
#define WEIGHTS(member) \
    offsetof(struct call, weights.member), sizeof(((struct call *)0)->weights.member)

/* clang-format off */
static const struct {
    size_t at, size;
    int64_t value;
} spoils[] = {
    {POINTER(layer), 0},
    {POINTER(compute), 0},
    {POINTER(tuning), 0},
    {POINTER(weights), 0},
    {ARGS(inputs.dtype), HUM_E5M2},
    {ARGS(inputs.rank), 3},
    {ARGS(inputs.shape[0]), -1},
    {ARGS(inputs.shape[0]), INT64_MAX},
    {ARGS(inputs.shape[0]), 21},
    {ARGS(inputs.shape[1]), 240},
    {ARGS(inputs.bytes), 5119},
    {ARGS(inputs.data), 0},
    {ARGS(inputs.data), 2},
    {ARGS(input_scale), 0},
    {ARGS(input_scale.shape[1]), 2},
    {ARGS(outputs.data), 0},
    {ARGS(outputs.dtype), HUM_F16},
    {ARGS(outputs.shape[0]), 19},
    {ARGS(outputs.shape[1]), 127},
    {ARGS(outputs.bytes), 0},
    {WEIGHTS(weight.shape[1]), 128},
    {WEIGHTS(weight.data), 0},
    {WEIGHTS(weight_scale.dtype), HUM_BF16},
    {WEIGHTS(zero_point.bytes), 64},
    {WEIGHTS(weight_scale_2.bytes), 4},
    {WEIGHTS(bias.bytes), 512},
    {ARGS(top_k), 2},
    {ARGS(valid_shape_m), -1},
    {ARGS(sorted_ids.bytes), 4},
    {ARGS(expert_ids.bytes), 4},
    {ARGS(num_tokens_padded.bytes), 4},
    {ARGS(expert_layout.bytes), 4},
    {ARGS(locks.data), 0},
    {ARGS(locks.shape[0]), 3},
    {ARGS(locks.shape[0]), INT64_MAX},
    {ARGS(locks.bytes), 12},
    {ARGS(locks.dtype), HUM_INT64},
};
/* clang-format on */

START_TEST(refuses_tensors)
{
    void *handle = sample_open(cpu, 1);
    struct sample s = sample_legal();
    struct call call;
    char reason[HUM_REASON_BYTES] = "";

    sample_fill(&s, cpu, handle, 1, SAMPLE_TAME);
    call.args = sample_args(&s);
    call.weights = s.kernel;
    call.args.weights = &call.weights;
    set((char *)&call + spoils[_i].at, spoils[_i].size, spoils[_i].value);
    ck_assert_int_eq(cpu->forward(handle, &call.args, reason), HUM_INVALID);
    check_reason(reason);
    check_unwritten(&s);
    sample_free(&s);
    cpu->close(handle);
}
END_TEST

/* A tensor that shares its last byte with the outputs, or holds them; those right behind each other
 * share none. */
static const struct {
    size_t at;
    int64_t offset;
    enum hum_code code;
} places[] = {
    {offsetof(struct call, args.inputs), 0, HUM_INVALID},
    {offsetof(struct call, args.inputs), -64, HUM_INVALID},
    {offsetof(struct call, args.inputs), 64, HUM_INVALID},
    {offsetof(struct call, args.input_scale), 1024, HUM_INVALID},
    {offsetof(struct call, args.locks), 5056, HUM_INVALID},
    {offsetof(struct call, args.locks), 5120, HUM_OK},
    {offsetof(struct call, weights.weight), -4096, HUM_INVALID},
    {offsetof(struct call, weights.weight_scale), -64, HUM_INVALID},
};

START_TEST(refuses_overlap)
{
    enum { BEFORE = 32768, AFTER = 65536 };
    void *handle = sample_open(cpu, 1);
    struct sample s = sample_legal();
    struct call call;
    struct hum_tensor *moved = (struct hum_tensor *)((char *)&call + places[_i].at);
    char reason[HUM_REASON_BYTES] = "";
    char *memory = aligned_alloc(64, BEFORE + AFTER);

    ck_assert_ptr_nonnull(memory);
    memset(memory, 0, BEFORE + AFTER);
    sample_fill(&s, cpu, handle, 1, SAMPLE_TAME);
    ck_assert_int_eq(cpu->transform(handle, &s.layer, &s.standard, &s.kernel, reason), HUM_OK);
    call.args = sample_args(&s);
    call.weights = s.kernel;
    call.args.weights = &call.weights;
    ck_assert_uint_eq(s.outputs.bytes, 5120);
    call.args.outputs.data = memory + BEFORE;
    moved->data = memory + BEFORE + places[_i].offset;
    ck_assert_int_eq(cpu->forward(handle, &call.args, reason), places[_i].code);
    if (places[_i].code)
        check_reason(reason);
    for (int i = 0; places[_i].code && i < BEFORE + AFTER; i++)
        ck_assert_int_eq(memory[i], 0);
    free(memory);
    sample_free(&s);
    cpu->close(handle);
}
END_TEST

/* Only Stream-K has a use for locks. */
START_TEST(refuses_locks_in_use)
{
    void *handle = sample_open(cpu, 1);
    struct sample s = sample_legal();
    struct hum_gemm_args args;
    char reason[HUM_REASON_BYTES] = "";

    sample_fill(&s, cpu, handle, 1, SAMPLE_TAME);
    ck_assert_int_eq(cpu->transform(handle, &s.layer, &s.standard, &s.kernel, reason), HUM_OK);
    args = sample_args(&s);
    ((int32_t *)s.locks.data)[3] = 1;
    ck_assert_int_eq(cpu->forward(handle, &args, reason), HUM_INVALID);
    check_reason(reason);
    check_unwritten(&s);
    s.tuning.use_stream_k = false;
    ck_assert_int_eq(cpu->forward(handle, &args, reason), HUM_OK);
    sample_free(&s);
    cpu->close(handle);
}
END_TEST

START_TEST(refuses_bad_calls)
{
    void *handle = NULL;
    struct sample s = sample_legal();
    struct hum_accumulation order;
    struct hum_tuning_config tuning;
    char reason[HUM_REASON_BYTES] = "";

    ck_assert_int_eq(cpu->open(0, &handle, reason), HUM_INVALID);
    ck_assert_ptr_null(handle);
    ck_assert_int_eq(cpu->forward(NULL, NULL, reason), HUM_INVALID);
    ck_assert_int_eq(cpu->transform(NULL, &s.layer, NULL, NULL, reason), HUM_INVALID);
    ck_assert_int_eq(cpu->transform_shapes(NULL, NULL, &s.kernel, reason), HUM_INVALID);
    ck_assert_int_eq(cpu->heuristics(NULL, &s.layer, &s.compute, -1, &tuning, reason), HUM_INVALID);
    ck_assert_int_eq(
        cpu->accumulation(NULL, &s.layer, &s.compute, &s.tuning, 4, 4, 0, &order, reason),
        HUM_INVALID);
    ck_assert_int_eq(
        cpu->accumulation(NULL, &s.layer, &s.compute, &s.tuning, 4, 0, 128, &order, reason),
        HUM_INVALID);
    check_reason(reason);
    cpu->close(NULL);
}
END_TEST

/* A standard tensor of another shape: nothing of the kernel form is written. */
START_TEST(transform_refuses)
{
    void *handle = sample_open(cpu, 1);
    struct sample s = sample_legal();
    char reason[HUM_REASON_BYTES] = "";

    sample_fill(&s, cpu, handle, 1, SAMPLE_TAME);
    s.standard.weight_scale.shape[1]++;
    ck_assert_int_eq(cpu->transform(handle, &s.layer, &s.standard, &s.kernel, reason), HUM_INVALID);
    check_reason(reason);
    for (size_t i = 0; i < s.kernel.weight.bytes; i++)
        ck_assert_int_eq(((const uint8_t *)s.kernel.weight.data)[i], 0xff);
    sample_free(&s);
    cpu->close(handle);
}
END_TEST

START_TEST(no_rows)
{
    void *handle = sample_open(cpu, 1);
    struct sample s = sample_legal();

    s.m = 0;
    sample_fill(&s, cpu, handle, 1, SAMPLE_TAME);
    sample_run(&s, cpu, handle);
    sample_free(&s);
    cpu->close(handle);
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

int main(void)
{
    Suite *s = suite_create("cpu_refusals");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_loop_test(tc, takes_exactly_the_legal_weights, 0, COUNT(weights_of));
    tcase_add_loop_test(tc, refuses_configurations, 0, COUNT(changes));
    tcase_add_test(tc, refuses_too_many_slices);
    tcase_add_loop_test(tc, refuses_tensors, 0, COUNT(spoils));
    tcase_add_loop_test(tc, refuses_overlap, 0, COUNT(places));
    tcase_add_test(tc, refuses_locks_in_use);
    tcase_add_test(tc, refuses_bad_calls);
    tcase_add_test(tc, transform_refuses);
    tcase_add_test(tc, no_rows);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
