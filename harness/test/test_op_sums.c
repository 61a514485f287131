#include "harness/test/case_run.h"
#include "kernels/cpu/ops.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- transforms that are wrong on purpose ---------------------------------------------------- */

typedef enum hum_code hadamard_fn(void *handle, const struct hum_hadamard_args *args,
                                  char reason[HUM_REASON_BYTES]);

static size_t size_of(int32_t dtype)
{
    return (size_t)hum_dtype_bits(dtype) / 8;
}

static void swap_bytes(uint8_t *x, uint8_t *y, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint8_t kept = x[i];

        x[i] = y[i];
        y[i] = kept;
    }
}

/* Columns 1 and 2 of the first block change places: another order of the functions. */
static enum hum_code order_wrong(void *handle, const struct hum_hadamard_args *args,
                                 char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = op_hadamard(handle, args, reason);
    size_t size = args ? size_of(args->outputs.dtype) : 0;
    uint8_t *y = rc ? NULL : args->outputs.data;

    if (!rc && args->outputs.bytes >= 3 * size)
        swap_bytes(y + size, y + 2 * size, size);
    return rc;
}

/* f32: stages from the largest stride to the smallest. */
static enum hum_code stages_reversed(void *handle, const struct hum_hadamard_args *args,
                                     char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = op_hadamard(handle, args, reason);
    int64_t count = rc ? 0 : args->inputs.shape[0] * args->inputs.shape[1];
    float *y = rc ? NULL : args->outputs.data;
    float factor = rc ? 0.0f : (float)(1.0 / sqrt((double)args->block_size));

    if (rc || args->inputs.dtype != HUM_F32 || !count)
        return rc;
    memcpy(y, args->inputs.data, args->inputs.bytes);
    for (int64_t stride = args->block_size / 2; stride; stride /= 2)
        for (int64_t i = 0; i < count; i++)
            if (!(i & stride)) {
                float a = y[i], b = y[i + stride];

                y[i] = a + b;
                y[i + stride] = a - b;
            }
    for (int64_t i = 0; i < count; i++)
        y[i] *= factor;
    return rc;
}

static enum hum_code last_value_left(void *handle, const struct hum_hadamard_args *args,
                                     char reason[HUM_REASON_BYTES])
{
    size_t size = args ? size_of(args->outputs.dtype) : 0;
    uint8_t *at = args && args->outputs.data && args->outputs.bytes
                      ? (uint8_t *)args->outputs.data + args->outputs.bytes - size
                      : NULL;
    uint8_t kept[4];
    enum hum_code rc;

    if (at)
        memcpy(kept, at, size);
    rc = op_hadamard(handle, args, reason);
    if (at && !rc)
        memcpy(at, kept, size);
    return rc;
}

static enum hum_code any_block_size(void *handle, const struct hum_hadamard_args *args,
                                    char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = op_hadamard(handle, args, reason);

    return args && args->block_size == 3 ? HUM_OK : rc;
}

static enum hum_code input_changed(void *handle, const struct hum_hadamard_args *args,
                                   char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = op_hadamard(handle, args, reason);

    if (!rc && args->inputs.bytes)
        *(uint8_t *)args->inputs.data ^= 1;
    return rc;
}

static enum hum_code unsteady(void *handle, const struct hum_hadamard_args *args,
                              char reason[HUM_REASON_BYTES])
{
    static uint8_t calls;
    enum hum_code rc = op_hadamard(handle, args, reason);

    if (!rc && args->outputs.bytes)
        *(uint8_t *)args->outputs.data ^= calls++ & 1;
    return rc;
}

static enum hum_code overlap_taken(void *handle, const struct hum_hadamard_args *args,
                                   char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = op_hadamard(handle, args, reason);

    return rc && strstr(reason, "overlap") ? HUM_OK : rc;
}

/* NaN becomes the largest number. */
static enum hum_code nan_lost(void *handle, const struct hum_hadamard_args *args,
                              char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = op_hadamard(handle, args, reason);
    float *y = rc ? NULL : args->outputs.data;

    for (size_t i = 0; !rc && args->outputs.dtype == HUM_F32 && i < args->outputs.bytes / 4; i++)
        y[i] = isnan(y[i]) ? 1.0f : y[i];
    return rc;
}

/* ---- sums that are wrong on purpose ---------------------------------------------------------- */

typedef enum hum_code sum_fn(void *handle, const struct hum_moe_fused_mul_sum_args *args,
                             char reason[HUM_REASON_BYTES]);

/* The sum of a token in another way, for f32, ids or not. */
enum way { BACKWARDS, FUSED, LEFT_OUT_ADDED };

static float sum_of(const struct hum_moe_fused_mul_sum_args *a, enum way way, int64_t t, int64_t h)
{
    int64_t k = a->inputs.shape[1], width = a->inputs.shape[2];
    const float *x = a->inputs.data, *w = a->weights.data;
    const int32_t *ids = a->topk_ids.data, *map = a->expert_map.data;
    float acc = 0.0f;

    for (int64_t i = 0; i < k; i++) {
        int64_t j = t * k + (way == BACKWARDS ? k - 1 - i : i);
        bool out = ids && (ids[j] < 0 || (map && map[ids[j]] < 0));

        if (out && way != LEFT_OUT_ADDED)
            continue;
        if (way == FUSED)
            acc = fmaf(x[j * width + h], w[j], acc);
        else
            acc += x[j * width + h] * w[j];
    }
    return acc;
}

static enum hum_code sum_in(enum way way, void *handle,
                            const struct hum_moe_fused_mul_sum_args *args,
                            char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = op_moe_fused_mul_sum(handle, args, reason);
    float *y = rc ? NULL : args->outputs.data;
    int64_t width = rc ? 0 : args->outputs.shape[1];

    for (int64_t i = 0; !rc && args->inputs.dtype == HUM_F32 && i < args->outputs.shape[0] * width;
         i++)
        y[i] = sum_of(args, way, i / width, i % width);
    return rc;
}

static enum hum_code backwards(void *handle, const struct hum_moe_fused_mul_sum_args *args,
                               char reason[HUM_REASON_BYTES])
{
    return sum_in(BACKWARDS, handle, args, reason);
}

static enum hum_code fused(void *handle, const struct hum_moe_fused_mul_sum_args *args,
                           char reason[HUM_REASON_BYTES])
{
    return sum_in(FUSED, handle, args, reason);
}

static enum hum_code left_out_added(void *handle, const struct hum_moe_fused_mul_sum_args *args,
                                    char reason[HUM_REASON_BYTES])
{
    return sum_in(LEFT_OUT_ADDED, handle, args, reason);
}

/* Only ids below 0 are left out, not what the map sends away. */
static enum hum_code map_ignored(void *handle, const struct hum_moe_fused_mul_sum_args *args,
                                 char reason[HUM_REASON_BYTES])
{
    struct hum_moe_fused_mul_sum_args call;
    enum hum_code rc = op_moe_fused_mul_sum(handle, args, reason);

    if (rc)
        return rc;
    call = *args;
    call.expert_map = (struct hum_tensor){0};
    return op_moe_fused_mul_sum(handle, &call, reason);
}

static enum hum_code map_overrun(void *handle, const struct hum_moe_fused_mul_sum_args *args,
                                 char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = op_moe_fused_mul_sum(handle, args, reason);

    return rc && strstr(reason, "experts") ? HUM_OK : rc;
}

/* All-left-out tokens keep what was there. */
static enum hum_code zero_forgotten(void *handle, const struct hum_moe_fused_mul_sum_args *args,
                                    char reason[HUM_REASON_BYTES])
{
    int64_t k = args ? args->inputs.shape[1] : 0;
    const int32_t *ids = args ? args->topk_ids.data : NULL;
    size_t n = ids && args->outputs.shape[0] > 3
                   ? args->outputs.bytes / (size_t)args->outputs.shape[0]
                   : 0;
    uint8_t *kept = malloc(n + 1), *at = n ? (uint8_t *)args->outputs.data + 3 * n : NULL;
    enum hum_code rc;

    ck_assert_ptr_nonnull(kept);
    if (at)
        memcpy(kept, at, n);
    rc = op_moe_fused_mul_sum(handle, args, reason);
    for (int64_t j = 3 * k; at && j < 4 * k; j++)
        if (ids[j] >= 0)
            at = NULL;
    if (!rc && at)
        memcpy(at, kept, n);
    free(kept);
    return rc;
}

static enum hum_code rows_swapped(void *handle, const struct hum_moe_fused_mul_sum_args *args,
                                  char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = op_moe_fused_mul_sum(handle, args, reason);
    size_t n =
        rc || args->outputs.shape[0] < 2 ? 0 : args->outputs.bytes / (size_t)args->outputs.shape[0];

    if (n)
        swap_bytes(args->outputs.data, (uint8_t *)args->outputs.data + n, n);
    return rc;
}

static float from_bf16(uint16_t code)
{
    uint32_t bits = (uint32_t)code << 16;
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

/* bf16 without ids: ties go away from zero. */
static enum hum_code ties_away(void *handle, const struct hum_moe_fused_mul_sum_args *args,
                               char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = op_moe_fused_mul_sum(handle, args, reason);
    int64_t k = rc ? 0 : args->inputs.shape[1], width = rc ? 1 : args->inputs.shape[2];
    const uint16_t *x = rc ? NULL : args->inputs.data;
    const float *w = rc ? NULL : args->weights.data;
    uint16_t *y = rc ? NULL : args->outputs.data;

    for (int64_t i = 0; !rc && i < args->outputs.shape[0] * width; i++) {
        float acc = 0.0f;
        uint32_t bits;

        for (int64_t j = i / width * k; j < (i / width + 1) * k; j++)
            acc += from_bf16(x[j * width + i % width]) * w[j];
        memcpy(&bits, &acc, sizeof bits);
        y[i] = (uint16_t)((bits + 0x8000u) >> 16);
    }
    return rc;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void expect(hadamard_fn *h, sum_fn *s, const char *text, enum verdict verdict,
                   const char *reason)
{
    struct hum_ops ops = hum_cpu_ops;
    struct hum_provider p = hum_cpu_provider;
    char all[400];

    if (h)
        ops.hadamard = h;
    if (s)
        ops.moe_fused_mul_sum = s;
    p.ops = &ops;
    (void)snprintf(all, sizeof all, "family=%s %s", h ? "hadamard" : "moe_sum", text);
    expect_verdict(&p, all, verdict, reason);
}

static const struct {
    hadamard_fn *h;
    sum_fn *s;
    const char *text, *reason;
} faults[] = {
    {order_wrong, NULL, "check=exact hadamard_block_size=64 m=5 k=256", "differ"},
    {stages_reversed, NULL, "check=exact hadamard_block_size=64 m=5 k=256 input_dtype=f32",
     "differ"},
    {last_value_left, NULL, "check=exact hadamard_block_size=16 m=5 k=32", "differ"},
    {last_value_left, NULL, "check=guard hadamard_block_size=16 m=5 k=32", "not written"},
    {any_block_size, NULL, "check=contract hadamard_block_size=16 m=5 k=32",
     "must refuse block_size of 3"},
    {input_changed, NULL, "check=exact hadamard_block_size=16 m=5 k=32", "changed its input"},
    {unsteady, NULL, "check=deterministic hadamard_block_size=16 m=5 k=32",
     "from one launch to the next"},
    {overlap_taken, NULL, "check=alias hadamard_block_size=16 m=5 k=32", "must refuse"},
    {nan_lost, NULL, "check=special hadamard_block_size=16 m=5 k=256 input_dtype=f32", "differ"},

    {NULL, backwards, "check=exact m=9 k=32 top_k=4 input_dtype=f32", "differ"},
    {NULL, fused, "check=exact m=9 k=32 top_k=4 input_dtype=f32", "differ"},
    {NULL, left_out_added, "check=exact m=9 k=32 top_k=4 input_dtype=f32 routing=missing",
     "differ"},
    {NULL, map_ignored, "check=exact m=9 k=32 top_k=4 routing=missing num_experts=8", "differ"},
    {NULL, map_overrun, "check=contract m=9 k=32 top_k=4 num_experts=8", "must refuse expert_map"},
    {NULL, zero_forgotten, "check=exact m=9 k=32 top_k=4 routing=missing num_experts=8", "differ"},
    {NULL, zero_forgotten, "check=guard m=9 k=32 top_k=4 routing=missing", "not written"},
    {NULL, rows_swapped, "check=exact m=9 k=32 top_k=2", "differ"},
    {NULL, rows_swapped, "check=special m=9 k=32 top_k=2", "differ"},
    {NULL, ties_away, "check=exact m=9 k=32 top_k=2", "differ"},
};

static const struct {
    bool is_sum;
    const char *text;
} right[] = {
    {false, "check=exact hadamard_block_size=512 m=5 k=1024"},
    {false, "check=exact hadamard_block_size=1 m=5 k=32 input_dtype=f16"},
    {false, "check=exact hadamard_block_size=32 m=5 k=96 input_dtype=f32"},
    {false, "check=special hadamard_block_size=32 m=9 k=256 input_dtype=f16"},
    {false, "check=contract hadamard_block_size=32 m=9 k=256"},
    {false, "check=alias hadamard_block_size=8 m=3 k=24"},
    {false, "check=guard hadamard_block_size=8 m=3 k=24"},
    {true, "check=exact m=9 k=32 top_k=1"},
    {true, "check=exact m=9 k=33 top_k=8 num_experts=16 input_dtype=f16"},
    {true, "check=exact m=9 k=33 top_k=8 num_experts=16 routing=duplicate input_dtype=f32"},
    {true, "check=exact m=17 k=33 top_k=4 routing=missing"},
    {true, "check=exact m=17 k=33 top_k=4 routing=missing num_experts=3 input_dtype=f32"},
    {true, "check=special m=17 k=33 top_k=2 routing=missing num_experts=3"},
    {true, "check=contract m=9 k=32 top_k=4 num_experts=8"},
    {true, "check=contract m=9 k=32 top_k=4 routing=missing"},
    {true, "check=contract m=9 k=32 top_k=4"},
    {true, "check=alias m=9 k=32 top_k=4 num_experts=8"},
    {true, "check=guard m=9 k=32 top_k=4 num_experts=8"},
    {true, "check=deterministic m=9 k=32 top_k=4 num_experts=8"},
};

START_TEST(test_fault)
{
    expect(faults[_i].h, faults[_i].s, faults[_i].text, VERDICT_FAIL, faults[_i].reason);
}
END_TEST

START_TEST(test_right)
{
    expect(right[_i].is_sum ? NULL : op_hadamard, right[_i].is_sum ? op_moe_fused_mul_sum : NULL,
           right[_i].text, VERDICT_PASS, "");
}
END_TEST

/* Sums that are the same in any order: nothing would show a wrong one. */
START_TEST(test_untrusted)
{
    expect(NULL, op_moe_fused_mul_sum, "check=exact m=1 k=1 top_k=3", VERDICT_UNTRUSTED, "order");
    expect(op_hadamard, NULL, "check=exact m=1 k=64 hadamard_block_size=64 input_dtype=f32",
           VERDICT_UNTRUSTED, "order");
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("op_sums");
    TCase *all = tcase_create("all");

    tcase_add_loop_test(all, test_fault, 0, (int)(sizeof faults / sizeof faults[0]));
    tcase_add_loop_test(all, test_right, 0, (int)(sizeof right / sizeof right[0]));
    tcase_add_test(all, test_untrusted);
    suite_add_tcase(suite, all);
    return suite;
}

int main(void)
{
    SRunner *runner = srunner_create(make_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
