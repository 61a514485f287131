/* Routing faults: each wrong provider does one thing that kernels with experts get wrong; the
 * right one passes on the same case. */
#include "harness/test/case_run.h"

#include <stdlib.h>

enum { MOST_IDS = 4096 };

/* The arguments of one launch with routing tensors that may be spoiled. */
struct spoiled {
    struct hum_gemm_args args;
    _Alignas(64) int32_t ids[MOST_IDS];
    _Alignas(64) int32_t experts[MOST_IDS];
    _Alignas(64) int32_t layout[MOST_IDS];
};

static void copy_tensor(struct hum_tensor *t, int32_t *to)
{
    if (!t->data)
        return;
    ck_assert_uint_le(t->bytes, MOST_IDS * sizeof *to);
    memcpy(to, t->data, t->bytes);
    t->data = to;
}

static struct spoiled copy;

static struct spoiled *spoil(const struct hum_gemm_args *args)
{
    copy.args = *args;
    copy_tensor(&copy.args.sorted_ids, copy.ids);
    copy_tensor(&copy.args.expert_ids, copy.experts);
    copy_tensor(&copy.args.expert_layout, copy.layout);
    return &copy;
}

static int32_t experts_of(const struct hum_gemm_args *args)
{
    return (int32_t)args->layer->num_experts;
}

/* Weights of the next expert for the first block, or for the first row of expert 1. */
static enum hum_code wrong_expert(void *handle, const struct hum_gemm_args *args,
                                  char reason[HUM_REASON_BYTES])
{
    struct spoiled *s = spoil(args);

    s->experts[0] = (s->experts[0] + 1) % experts_of(args);
    s->layout[1]++;
    return hum_cpu_provider.forward(handle, &s->args, reason);
}

/* Rows behind the last expert's are computed as if they were its. */
static enum hum_code last_offset_ignored(void *handle, const struct hum_gemm_args *args,
                                         char reason[HUM_REASON_BYTES])
{
    struct spoiled *s = spoil(args);

    s->layout[experts_of(args)] = (int32_t)args->inputs.shape[0];
    return hum_cpu_provider.forward(handle, &s->args, reason);
}

static enum hum_code last_row_dropped(void *handle, const struct hum_gemm_args *args,
                                      char reason[HUM_REASON_BYTES])
{
    struct spoiled *s = spoil(args);
    int32_t e = experts_of(args);

    if (args->compute->gemm_type == HUM_GEMM_GROUPED_MASKED)
        e--;
    s->layout[e]--;
    return hum_cpu_provider.forward(handle, &s->args, reason);
}

/* Padding has the id m * top_k: the row behind the output. */
static enum hum_code padding_written(void *handle, const struct hum_gemm_args *args,
                                     char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = hum_cpu_provider.forward(handle, args, reason);

    if (rc == HUM_OK)
        outputs_of(args)[rows_of(args) * columns_of(args)] = 0x3c00;
    return rc;
}

/* Blocks of another rank's experts are computed with expert 0. */
static enum hum_code missing_computed(void *handle, const struct hum_gemm_args *args,
                                      char reason[HUM_REASON_BYTES])
{
    struct spoiled *s = spoil(args);

    for (int64_t b = 0; b < args->expert_ids.shape[0]; b++)
        s->experts[b] = s->experts[b] < 0 ? 0 : s->experts[b];
    return hum_cpu_provider.forward(handle, &s->args, reason);
}

/* Two counts of 32 bits read as one of 64, then cut to what is possible. */
static enum hum_code layout_as_int64(void *handle, const struct hum_gemm_args *args,
                                     char reason[HUM_REASON_BYTES])
{
    struct spoiled *s = spoil(args);
    int32_t most = (int32_t)(args->inputs.shape[0] / experts_of(args));

    for (int32_t e = 0; e < experts_of(args); e++) {
        int32_t low = 2 * e < experts_of(args) ? copy.layout[2 * e] : 0;
        int32_t high = 2 * e + 1 < experts_of(args) ? copy.layout[2 * e + 1] : 0;

        s->ids[e] = high ? most : low;
    }
    memcpy(s->layout, s->ids, (size_t)experts_of(args) * sizeof *s->ids);
    return hum_cpu_provider.forward(handle, &s->args, reason);
}

/* A row id % m instead of id / top_k. */
static enum hum_code slot_first(void *handle, const struct hum_gemm_args *args,
                                char reason[HUM_REASON_BYTES])
{
    static _Alignas(64) uint8_t rows[1 << 20];
    struct spoiled *s = spoil(args);
    int64_t m = args->inputs.shape[0], ids = m * args->top_k;
    size_t bytes = args->inputs.bytes / (size_t)m;

    ck_assert_uint_le((size_t)ids * bytes, sizeof rows);
    for (int64_t i = 0; i < ids; i++)
        memcpy(rows + (size_t)i * bytes,
               (const uint8_t *)args->inputs.data + (size_t)(i % m) * bytes, bytes);
    s->args.top_k = 1;
    s->args.inputs.data = rows;
    s->args.inputs.shape[0] = ids;
    s->args.inputs.bytes = (size_t)ids * bytes;
    return hum_cpu_provider.forward(handle, &s->args, reason);
}

/* Behind an expert without rows all others are taken for the one before. */
static enum hum_code empty_not_counted(void *handle, const struct hum_gemm_args *args,
                                       char reason[HUM_REASON_BYTES])
{
    struct spoiled *s = spoil(args);
    int32_t e = 0;

    while (e < experts_of(args) && s->layout[e + 1] > s->layout[e])
        e++;
    for (; e < experts_of(args); e++)
        s->layout[e] = s->layout[e + 1];
    return hum_cpu_provider.forward(handle, &s->args, reason);
}

/* Padding is taken for the end of the block's expert: its last id is not computed. */
static enum hum_code last_id_dropped(void *handle, const struct hum_gemm_args *args,
                                     char reason[HUM_REASON_BYTES])
{
    struct spoiled *s = spoil(args);
    int32_t padding = (int32_t)rows_of(args);
    int64_t i = 0;

    while (i + 1 < args->sorted_ids.shape[0] && s->ids[i + 1] < padding)
        i++;
    s->ids[i] = padding;
    return hum_cpu_provider.forward(handle, &s->args, reason);
}

/* Only the first 8 rows of each block are computed. */
static enum hum_code block_cut(void *handle, const struct hum_gemm_args *args,
                               char reason[HUM_REASON_BYTES])
{
    struct spoiled *s = spoil(args);

    for (int64_t i = 0; i < args->sorted_ids.shape[0]; i++)
        if (i % args->tuning->block_m >= 8)
            s->ids[i] = (int32_t)rows_of(args);
    return hum_cpu_provider.forward(handle, &s->args, reason);
}

/* clang-format off */
static const struct {
    forward_fn *forward;
    const char *text, *reason;
} faults[] = {
    {wrong_expert, "gemm_type=indexed num_experts=4 top_k=2", "differ"},
    {wrong_expert, "gemm_type=indexed num_experts=4 top_k=2 check=bound", "outside the interval"},
    {wrong_expert, "gemm_type=indexed num_experts=4 top_k=2 check=model", "differ"},
    {wrong_expert, "gemm_type=indexed num_experts=4 top_k=2 check=readout m=64", "differ"},
    {wrong_expert, "gemm_type=indexed num_experts=2 routing=single", "differ"},
    {wrong_expert, "gemm_type=grouped_contiguous num_experts=4", "differ"},
    {wrong_expert, "gemm_type=grouped_contiguous num_experts=4 a_dtype=bf16 use_stream_k=true", "differ"},
    {last_offset_ignored, "gemm_type=grouped_contiguous num_experts=4 routing=spare", "which no expert has"},
    {last_offset_ignored, "gemm_type=grouped_contiguous num_experts=4 routing=spare check=model", "which no expert has"},
    {last_row_dropped, "gemm_type=grouped_contiguous num_experts=4 routing=uniform", "differ"},
    {last_row_dropped, "gemm_type=grouped_contiguous num_experts=4 routing=uniform check=bound", "outside the interval"},
    {last_row_dropped, "gemm_type=grouped_masked num_experts=4 m=32", "differ"},
    {padding_written, "gemm_type=indexed num_experts=4 top_k=2", "outside its output"},
    {missing_computed, "gemm_type=indexed num_experts=4 top_k=2 routing=missing", "which no expert has"},
    {missing_computed, "gemm_type=indexed num_experts=4 top_k=2 routing=missing check=bound", "which no expert has"},
    {layout_as_int64, "gemm_type=grouped_masked num_experts=4 m=32", ""},
    {slot_first, "gemm_type=indexed num_experts=4 top_k=2", "differ"},
    {slot_first, "gemm_type=indexed num_experts=4 top_k=2 check=readout", "differ"},
    {empty_not_counted, "gemm_type=grouped_contiguous num_experts=4 routing=empty", "differ"},
    {last_id_dropped, "gemm_type=indexed num_experts=4 top_k=2", "differ"},
    {block_cut, "gemm_type=indexed num_experts=2 block_shape=16x64x64 warp_shape=16x32x64", "differ"},
};
/* clang-format on */
enum { FAULTS = sizeof faults / sizeof faults[0] };

START_TEST(fault_is_found)
{
    struct hum_provider wrong = provider_with(faults[_i].forward);

    expect_verdict(&hum_cpu_provider, faults[_i].text, VERDICT_PASS, "");
    expect_verdict(&wrong, faults[_i].text, VERDICT_FAIL, faults[_i].reason);
}
END_TEST

/* ---- expert 0 for all ------------------------------------------------------------------------ */

static size_t part_at; /* of struct hum_weights; set by the test that uses it */

/* One of the weight tensors has the values of expert 0 in every expert. */
static enum hum_code first_for_all(void *handle, const struct hum_layer_config *layer,
                                   const struct hum_weights *standard, struct hum_weights *out,
                                   char reason[HUM_REASON_BYTES])
{
    struct hum_weights changed = *standard;
    struct hum_tensor *t = (struct hum_tensor *)(void *)((char *)&changed + part_at);
    size_t each = t->bytes / (size_t)layer->num_experts;
    void *data = aligned_alloc(64, (t->bytes + 63) / 64 * 64);
    enum hum_code rc;

    ck_assert(data && t->bytes > 0);
    for (int64_t e = 0; e < layer->num_experts; e++)
        memcpy((char *)data + (size_t)e * each, t->data, each);
    t->data = data;
    rc = hum_cpu_provider.transform(handle, layer, &changed, out, reason);
    free(data);
    return rc;
}

#define GROUPED    "gemm_type=grouped_contiguous num_experts=4 m=64"
#define AT(member) offsetof(struct hum_weights, member)

/* clang-format off */
static const struct {
    size_t at;
    const char *text;
} parts[] = {
    {AT(weight),         GROUPED},
    {AT(weight),         GROUPED " check=readout"},
    {AT(weight_scale),   GROUPED},
    {AT(weight_scale),   GROUPED " check=bound"},
    {AT(weight_scale),   GROUPED " weight_scale_type=channel"},
    {AT(weight_scale),   GROUPED " weight_scale_type=channel check=readout"},
    {AT(weight_scale),   GROUPED " weight_scale_type=tensor"},
    {AT(weight_scale),   GROUPED " weight_scale_type=tensor fill=E2"},
    {AT(weight_scale),   GROUPED " weight_scale_type=block weight_scale_group_size_n=64 a_dtype=e4m3 c_dtype=f16"},
    {AT(weight_scale),   GROUPED " a_dtype=e4m3 b_dtype=e2m1 bs_dtype=e8m0 weight_scale_group_size=32 check=readout"},
    {AT(zero_point),     GROUPED " zero_point=int"},
    {AT(zero_point),     GROUPED " zero_point=float check=readout"},
    {AT(weight_scale_2), GROUPED " weight_scale_2_type=tensor"},
    {AT(weight_scale_2), GROUPED " weight_scale_2_type=tensor fill=E2"},
    {AT(weight_scale_2), GROUPED " weight_scale_2_type=channel"},
    {AT(bias),           GROUPED " has_bias=true"},
    {AT(bias),           GROUPED " has_bias=true fill=E2"},
    {AT(bias),           "gemm_type=indexed num_experts=4 top_k=2 has_bias=true check=model"},
};
/* clang-format on */
enum { PARTS = sizeof parts / sizeof parts[0] };

START_TEST(expert_0_for_all_is_found)
{
    struct hum_provider wrong = hum_cpu_provider;

    part_at = parts[_i].at;
    wrong.transform = first_for_all;
    expect_verdict(&hum_cpu_provider, parts[_i].text, VERDICT_PASS, "");
    expect_verdict(&wrong, parts[_i].text, VERDICT_FAIL, "");
}
END_TEST

/* ---- what cannot be trusted ------------------------------------------------------------------ */

/* Where no row has an expert, nothing was compared. */
START_TEST(nothing_routed_is_untrusted)
{
    expect_verdict(&hum_cpu_provider, "gemm_type=grouped_masked num_experts=2 routing=spare m=2",
                   VERDICT_UNTRUSTED, "nothing was compared");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("moe_faults");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_loop_test(tc, fault_is_found, 0, FAULTS);
    tcase_add_loop_test(tc, expert_0_for_all_is_found, 0, PARTS);
    tcase_add_test(tc, nothing_routed_is_untrusted);
    tcase_set_timeout(tc, 30);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
