#include "kernels/cpu/cpu.h"
#include "kernels/test/sample.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { EXPERTS = 3, BLOCK_M = 8, M = 6, TOP_K = 2, BLOCKS = 4, UNWRITTEN = 0xff };

static const struct hum_provider *const cpu = &hum_cpu_provider;

static void check_reason(const char reason[HUM_REASON_BYTES])
{
    ck_assert_uint_gt(strnlen(reason, HUM_REASON_BYTES), 10);
    ck_assert_uint_lt(strnlen(reason, HUM_REASON_BYTES), HUM_REASON_BYTES);
    ck_assert_ptr_null(strchr(reason, '\n'));
}

/* e4m3 x uint4 with group scales, no Stream-K. */
static struct sample base(enum hum_gemm_type type)
{
    return (struct sample){
        .layer = {.shape_n = 64,
                  .shape_k = 128,
                  .num_experts = EXPERTS,
                  .a_dtype = HUM_E4M3,
                  .b_dtype = HUM_UINT(4),
                  .c_dtype = HUM_BF16,
                  .bs_dtype = HUM_BF16,
                  .as_dtype = HUM_F32,
                  .weight_scale_type = HUM_SCALE_GROUP,
                  .weight_scale_group_size = 64},
        .compute = {.gemm_type = type},
        .tuning = {.block_m = BLOCK_M,
                   .block_n = 64,
                   .block_k = 64,
                   .warp_m = BLOCK_M,
                   .warp_n = 32,
                   .warp_k = 64,
                   .num_stages = 2,
                   .num_ctas_per_sm = 1},
        .m = M,
        .top_k = type == HUM_GEMM_INDEXED ? TOP_K : 1,
    };
}

/* Ids of experts 0 and 2, a block of -1 and one beyond the end. */
static const int32_t ids[BLOCKS * BLOCK_M] = {
    0,  3,  11, 12, 12, 12, 12, 12, /**/ 12, 1,  4,  12, 13, 12, 12, 7,
    -1, -1, 0,  0,  12, 12, 12, 12, /**/ -9, -9, 99, 0,  3,  11, 1,  4,
};
static const int32_t experts[BLOCKS] = {0, 2, -1, 77};
static const int32_t offsets[EXPERTS + 1] = {0, 2, 2, 5};
static const int32_t counts[EXPERTS] = {2, 0, 1};

static void put(const struct hum_tensor *t, int64_t i, int64_t value)
{
    if (t->dtype == HUM_INT64)
        ((int64_t *)t->data)[i] = value;
    else
        ((int32_t *)t->data)[i] = (int32_t)value;
}

static struct hum_tensor vector(int32_t dtype, const int32_t *values, int64_t count)
{
    const struct hum_tensor t = sample_tensor(dtype, count, 0, 1);

    for (int64_t i = 0; i < count; i++)
        put(&t, i, values[i]);
    return t;
}

/* Operands, transformed weights and the routing above. */
static void make(struct sample *s, void *handle, int32_t layout_dtype)
{
    const int32_t end = (BLOCKS - 1) * BLOCK_M;
    char reason[HUM_REASON_BYTES] = "";

    sample_fill(s, cpu, handle, 5, SAMPLE_TAME);
    switch (s->compute.gemm_type) {
    case HUM_GEMM_DENSE:
        break;
    case HUM_GEMM_INDEXED:
        s->sorted_ids = vector(HUM_INT32, ids, BLOCKS * BLOCK_M);
        s->expert_ids = vector(HUM_INT32, experts, BLOCKS);
        s->num_tokens_padded = vector(HUM_INT32, &end, 1);
        break;
    case HUM_GEMM_GROUPED_CONTIGUOUS:
        s->expert_layout = vector(layout_dtype, offsets, EXPERTS + 1);
        break;
    case HUM_GEMM_GROUPED_MASKED:
        s->expert_layout = vector(layout_dtype, counts, EXPERTS);
        break;
    }
    ck_assert_int_eq(cpu->transform(handle, &s->layer, &s->standard, &s->kernel, reason), HUM_OK);
}

static int64_t written_rows(const struct sample *s)
{
    const int64_t row_bytes = s->outputs.shape[1] * 2;
    const unsigned char *out = s->outputs.data;
    int64_t rows = 0;

    for (int64_t row = 0; row < s->outputs.shape[0]; row++) {
        bool written = false;

        for (int64_t i = 0; i < row_bytes; i++)
            written = written || out[row * row_bytes + i] != UNWRITTEN;
        rows += written;
    }
    return rows;
}

/* ---- values ---------------------------------------------------------------------------------- */

#define AT(member) offsetof(struct sample, member)

enum { INVALID = -1 };

/* One value of a routing tensor is changed: how many rows are written then, or INVALID and what the
 * sentence names. */
/* clang-format off */
static const struct {
    enum hum_gemm_type type;
    size_t at;
    int64_t index, value, rows;
    const char *named;
} values[] = {
    {HUM_GEMM_INDEXED, AT(num_tokens_padded), 0, 24, 6, ""},
    {HUM_GEMM_INDEXED, AT(num_tokens_padded), 0, 8, 3, ""},
    {HUM_GEMM_INDEXED, AT(num_tokens_padded), 0, 0, 0, ""},
    {HUM_GEMM_INDEXED, AT(num_tokens_padded), 0, -8, INVALID, "num_tokens_padded"},
    {HUM_GEMM_INDEXED, AT(num_tokens_padded), 0, 20, INVALID, "num_tokens_padded"},
    {HUM_GEMM_INDEXED, AT(num_tokens_padded), 0, 32, INVALID, "expert_ids"}, /* 77 */
    {HUM_GEMM_INDEXED, AT(num_tokens_padded), 0, 40, INVALID, "num_tokens_padded"},
    {HUM_GEMM_INDEXED, AT(expert_ids), 1, 1, 6, ""},
    {HUM_GEMM_INDEXED, AT(expert_ids), 1, -1, 3, ""},
    {HUM_GEMM_INDEXED, AT(expert_ids), 1, 3, INVALID, "expert_ids"},
    {HUM_GEMM_INDEXED, AT(expert_ids), 1, -2, INVALID, "expert_ids"},
    {HUM_GEMM_INDEXED, AT(expert_ids), 2, 0, INVALID, "sorted_ids"}, /* -1 */
    {HUM_GEMM_INDEXED, AT(sorted_ids), 3, 2, 7, ""},
    {HUM_GEMM_INDEXED, AT(sorted_ids), 0, INT32_MAX, 5, ""},
    {HUM_GEMM_INDEXED, AT(sorted_ids), 3, -1, INVALID, "sorted_ids"},
    {HUM_GEMM_INDEXED, AT(sorted_ids), 3, 11, INVALID, "sorted_ids"}, /* twice in a block */
    {HUM_GEMM_INDEXED, AT(sorted_ids), 3, 7, INVALID, "sorted_ids"},  /* in two blocks */
    {HUM_GEMM_GROUPED_CONTIGUOUS, AT(expert_layout), 0, 0, 5, ""},
    {HUM_GEMM_GROUPED_CONTIGUOUS, AT(expert_layout), 3, 2, 2, ""},
    {HUM_GEMM_GROUPED_CONTIGUOUS, AT(expert_layout), 3, 6, 6, ""},
    {HUM_GEMM_GROUPED_CONTIGUOUS, AT(expert_layout), 3, 7, INVALID, "expert_layout"},
    {HUM_GEMM_GROUPED_CONTIGUOUS, AT(expert_layout), 3, INT32_MAX, INVALID, "expert_layout"},
    {HUM_GEMM_GROUPED_CONTIGUOUS, AT(expert_layout), 0, 1, INVALID, "expert_layout"},
    {HUM_GEMM_GROUPED_CONTIGUOUS, AT(expert_layout), 0, -1, INVALID, "expert_layout"},
    {HUM_GEMM_GROUPED_CONTIGUOUS, AT(expert_layout), 1, 3, INVALID, "expert_layout"},
    {HUM_GEMM_GROUPED_CONTIGUOUS, AT(expert_layout), 2, 1, INVALID, "expert_layout"},
    {HUM_GEMM_GROUPED_CONTIGUOUS, AT(expert_layout), 2, INT32_MIN, INVALID, "expert_layout"},
    {HUM_GEMM_GROUPED_MASKED, AT(expert_layout), 0, 2, 3, ""},
    {HUM_GEMM_GROUPED_MASKED, AT(expert_layout), 2, 0, 2, ""},
    {HUM_GEMM_GROUPED_MASKED, AT(expert_layout), 0, 3, INVALID, "expert_layout"},
    {HUM_GEMM_GROUPED_MASKED, AT(expert_layout), 1, -1, INVALID, "expert_layout"},
};
/* clang-format on */

START_TEST(checks_values)
{
    const int32_t layouts[] = {HUM_INT32, HUM_INT64};

    for (int i = 0; i < 2; i++) {
        void *handle = sample_open(cpu, 1);
        struct sample s = base(values[_i].type);
        struct hum_gemm_args args;
        char reason[HUM_REASON_BYTES] = "";
        enum hum_code rc;

        make(&s, handle, layouts[i]);
        put((const struct hum_tensor *)((const char *)&s + values[_i].at), values[_i].index,
            values[_i].value);
        args = sample_args(&s);
        rc = cpu->forward(handle, &args, reason);
        ck_assert_int_eq(rc, values[_i].rows == INVALID ? HUM_INVALID : HUM_OK);
        if (rc)
            check_reason(reason);
        ck_assert_ptr_nonnull(strstr(reason, values[_i].named));
        ck_assert_int_eq(written_rows(&s), rc ? 0 : values[_i].rows);
        sample_free(&s);
        cpu->close(handle);
    }
}
END_TEST

/* ---- tensors and configurations -------------------------------------------------------------- */

struct call {
    struct hum_gemm_args args;
    struct hum_layer_config layer;
    struct hum_compute_config compute;
    struct hum_tuning_config tuning;
    struct hum_weights weights;
};

#define CALL(member) offsetof(struct call, member), sizeof(((struct call *)0)->member)
#define INDEXED      HUM_GEMM_INDEXED
#define CONTIGUOUS   HUM_GEMM_GROUPED_CONTIGUOUS
#define MASKED       HUM_GEMM_GROUPED_MASKED

/* clang-format off */
static const struct {
    enum hum_gemm_type type;
    size_t at, size;
    int64_t value;
} spoils[] = {
    {INDEXED, CALL(layer.num_experts), 0},
    {INDEXED, CALL(layer.num_experts), 2},
    {INDEXED, CALL(compute.gemm_type), HUM_GEMM_DENSE},
    {INDEXED, CALL(compute.gemm_type), CONTIGUOUS},
    {INDEXED, CALL(compute.use_m_major_input_scale), true},
    {INDEXED, CALL(tuning.use_tma_a), true},
    {INDEXED, CALL(tuning.use_tma_c), true},
    {INDEXED, CALL(tuning.use_tma_as), true},
    {INDEXED, CALL(tuning.use_tma_as2), true},
    {INDEXED, CALL(tuning.block_m), 2 * BLOCK_M},
    {INDEXED, CALL(args.top_k), 0},
    {INDEXED, CALL(args.top_k), -1},
    {INDEXED, CALL(args.top_k), 3},
    {INDEXED, CALL(args.top_k), INT32_MAX},
    {INDEXED, CALL(args.valid_shape_m), -1},
    {INDEXED, CALL(args.outputs.shape[0]), M},
    {INDEXED, CALL(args.sorted_ids.dtype), HUM_INT64},
    {INDEXED, CALL(args.sorted_ids.rank), 2},
    {INDEXED, CALL(args.sorted_ids.shape[0]), BLOCKS * BLOCK_M - 1},
    {INDEXED, CALL(args.sorted_ids.bytes), 4},
    {INDEXED, CALL(args.sorted_ids.data), 0},
    {INDEXED, CALL(args.sorted_ids.data), 4},
    {INDEXED, CALL(args.expert_ids.dtype), HUM_INT64},
    {INDEXED, CALL(args.expert_ids.rank), 0},
    {INDEXED, CALL(args.expert_ids.shape[0]), BLOCKS - 1},
    {INDEXED, CALL(args.expert_ids.shape[0]), -1},
    {INDEXED, CALL(args.expert_ids.shape[0]), INT64_MAX},
    {INDEXED, CALL(args.expert_ids.bytes), 0},
    {INDEXED, CALL(args.num_tokens_padded.shape[0]), 2},
    {INDEXED, CALL(args.num_tokens_padded), 0},
    {INDEXED, CALL(args.expert_layout.bytes), 4},
    {INDEXED, CALL(weights.weight.rank), 3},
    {INDEXED, CALL(weights.weight.shape[0]), 2},
    {INDEXED, CALL(weights.weight_scale.shape[0]), 1},
    {CONTIGUOUS, CALL(compute.gemm_type), MASKED},
    {CONTIGUOUS, CALL(args.top_k), 2},
    {CONTIGUOUS, CALL(args.expert_layout.shape[0]), EXPERTS},
    {CONTIGUOUS, CALL(args.expert_layout.dtype), HUM_F32},
    {CONTIGUOUS, CALL(args.expert_layout), 0},
    {CONTIGUOUS, CALL(args.sorted_ids.bytes), 4},
    {MASKED, CALL(layer.num_experts), 4},
    {MASKED, CALL(args.top_k), 0},
    {MASKED, CALL(args.expert_layout.shape[0]), EXPERTS + 1},
    {MASKED, CALL(args.expert_layout.bytes), 4},
    {MASKED, CALL(args.expert_ids.bytes), 4},
    {MASKED, CALL(args.num_tokens_padded.bytes), 4},
};
/* clang-format on */

static struct call call_of(const struct sample *s)
{
    return (struct call){.args = sample_args(s),
                         .layer = s->layer,
                         .compute = s->compute,
                         .tuning = s->tuning,
                         .weights = s->kernel};
}

static enum hum_code forward(void *handle, struct call *call, char reason[HUM_REASON_BYTES])
{
    call->args.layer = &call->layer;
    call->args.compute = &call->compute;
    call->args.tuning = &call->tuning;
    call->args.weights = &call->weights;
    return cpu->forward(handle, &call->args, reason);
}

/* The first `size` bytes of the value, zeros beyond (little endian). */
START_TEST(refuses_calls)
{
    void *handle = sample_open(cpu, 1);
    struct sample s = base(spoils[_i].type);
    struct call call;
    const size_t size = spoils[_i].size;
    char reason[HUM_REASON_BYTES] = "";

    make(&s, handle, HUM_INT32);
    call = call_of(&s);
    memset((char *)&call + spoils[_i].at, 0, size);
    memcpy((char *)&call + spoils[_i].at, &spoils[_i].value, size < 8 ? size : 8);
    ck_assert_int_eq(forward(handle, &call, reason), HUM_INVALID);
    check_reason(reason);
    ck_assert_int_eq(written_rows(&s), 0);
    sample_free(&s);
    cpu->close(handle);
}
END_TEST

START_TEST(refuses_overlap_with_routing)
{
    static const size_t members[] = {
        offsetof(struct call, args.sorted_ids), offsetof(struct call, args.expert_ids),
        offsetof(struct call, args.num_tokens_padded), offsetof(struct call, args.expert_layout)};
    void *handle = sample_open(cpu, 1);
    struct sample s = base(_i < 3 ? INDEXED : CONTIGUOUS);
    struct call call;
    struct hum_tensor *moved = (struct hum_tensor *)((char *)&call + members[_i]);
    char reason[HUM_REASON_BYTES] = "";

    make(&s, handle, HUM_INT32);
    call = call_of(&s);
    moved->data = (char *)s.outputs.data + 64;
    ck_assert_int_eq(forward(handle, &call, reason), HUM_INVALID);
    ck_assert_ptr_nonnull(strstr(reason, "overlap"));
    ck_assert_int_eq(written_rows(&s), 0);
    sample_free(&s);
    cpu->close(handle);
}
END_TEST

/* Two row tiles, one column tile: two locks. */
START_TEST(counts_locks)
{
    void *handle = sample_open(cpu, 1);
    struct sample s = base(INDEXED);
    struct call call;
    char reason[HUM_REASON_BYTES] = "";

    s.tuning.use_stream_k = true;
    make(&s, handle, HUM_INT32);
    free(s.locks.data);
    s.locks = sample_tensor(HUM_INT32, 2, 0, 1);
    call = call_of(&s);
    call.args.locks.shape[0] = 1;
    call.args.locks.bytes = 4;
    ck_assert_int_eq(forward(handle, &call, reason), HUM_INVALID);
    check_reason(reason);
    ck_assert_int_eq(written_rows(&s), 0);
    call.args.locks.shape[0] = 2;
    call.args.locks.bytes = 8;
    ck_assert_int_eq(forward(handle, &call, reason), HUM_OK);
    ck_assert_int_eq(written_rows(&s), 6);
    sample_free(&s);
    cpu->close(handle);
}
END_TEST

/* No row: values are not looked at, be they wrong. */
START_TEST(no_rows)
{
    static const enum hum_gemm_type types[] = {INDEXED, CONTIGUOUS, MASKED};
    void *handle = sample_open(cpu, 1);
    struct sample s = base(types[_i]);
    struct hum_gemm_args args;
    char reason[HUM_REASON_BYTES] = "";

    s.m = 0;
    s.tuning.use_stream_k = true;
    make(&s, handle, HUM_INT64);
    if (types[_i] == INDEXED)
        put(&s.num_tokens_padded, 0, -5);
    else
        put(&s.expert_layout, 0, -5);
    args = sample_args(&s);
    ck_assert_int_eq(cpu->forward(handle, &args, reason), HUM_OK);
    sample_free(&s);
    cpu->close(handle);
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

int main(void)
{
    Suite *s = suite_create("cpu_moe_refusals");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_loop_test(tc, checks_values, 0, COUNT(values));
    tcase_add_loop_test(tc, refuses_calls, 0, COUNT(spoils));
    tcase_add_loop_test(tc, refuses_overlap_with_routing, 0, 4);
    tcase_add_test(tc, counts_locks);
    tcase_add_loop_test(tc, no_rows, 0, 3);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
