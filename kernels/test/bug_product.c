/* Public bugs of products, made with the cpu provider: see bug.h. */
#include "kernels/test/bug.h"

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/round.h"

#include <math.h>

static int64_t rows_of(const struct hum_gemm_args *args)
{
    return args->outputs.shape[0];
}

static int64_t cols_of(const struct hum_gemm_args *args)
{
    return args->outputs.shape[1];
}

static int64_t count_of(const struct hum_gemm_args *args)
{
    return rows_of(args) * cols_of(args);
}

static int64_t k_of(const struct hum_layer_config *layer)
{
    return layer->shape_k - layer->pad_shape_k;
}

/* A format of a bit count that divides 8 or is a multiple of it. */
static size_t row_bytes(const struct hum_gemm_args *args)
{
    return (size_t)(k_of(args->layer) * hum_dtype_bits(args->layer->a_dtype) / 8);
}

static void restore(const struct hum_gemm_args *args, const uint16_t *before, int64_t first)
{
    uint16_t *out = args->outputs.data;

    for (int64_t i = first; i < count_of(args); i++)
        out[i] = before[i];
}

static int64_t layout_at(const struct hum_gemm_args *args, int64_t index)
{
    const struct hum_tensor *t = &args->expert_layout;

    return t->dtype == HUM_INT64 ? ((const int64_t *)t->data)[index]
                                 : ((const int32_t *)t->data)[index];
}

static void clear_rows(const struct hum_gemm_args *args, int64_t begin, int64_t end)
{
    uint16_t *out = args->outputs.data;

    for (int64_t i = begin * cols_of(args); i < end * cols_of(args); i++)
        out[i] = 0;
}

/* ---- what goes in ---- */

/* A56, shards: columns that are no multiple of a tile are not supported. */
bool bug_lacks_odd_n(const struct hum_layer_config *layer)
{
    return layer->pad_shape_n > 0;
}

/* A10, scale overflow: sums are narrowed to the output format before the tensor scale;
 * bug_scale_last multiplies afterwards. */
void bug_epilogue_without_scale(struct bug_call *call, unsigned launch)
{
    float *one = call->own;

    (void)launch;
    if (call->layer.weight_scale_type != HUM_SCALE_TENSOR || call->layer.num_experts)
        return;
    *one = 1.0f;
    call->weights.weight_scale.data = one;
}

void bug_scale_last(const struct hum_gemm_args *args, const uint16_t *before, unsigned launch)
{
    const int32_t c = args->layer->c_dtype;
    const float *t = args->weights->weight_scale.data;
    uint16_t *out = args->outputs.data;

    (void)before;
    (void)launch;
    if (args->layer->weight_scale_type != HUM_SCALE_TENSOR || args->layer->num_experts)
        return;
    for (int64_t i = 0; i < count_of(args); i++)
        out[i] = encode_16(c, round_16(c, decode_16(c, out[i]) * *t));
}

/* A38, dispatch: another kernel, which sums in another order, from 17 rows on; also where batch
 * invariance was asked for. */
void bug_k_warps_by_m(struct bug_call *call, unsigned launch)
{
    struct hum_tuning_config *t = &call->tuning;

    (void)launch;
    if (call->args.inputs.shape[0] <= 16 || !call->compute.use_batch_invariant)
        return;
    call->compute.use_batch_invariant = false;
    t->block_k *= 2;
    if (call->layer.shape_k % t->block_k == 0)
        return;
    t->block_k /= 2;
}

/* A35, order of reduction: every other launch divides the tiles among another number of workers, so
 * that the rounded slices are others. */
void bug_other_workers(struct bug_call *call, unsigned launch)
{
    struct hum_tuning_config *t = &call->tuning;

    if (launch % 2 && t->use_stream_k)
        t->num_sms = (t->num_sms ? t->num_sms : CPU_SMS) + 2;
}

/* A50, dispatch parameter: groups of 128 are decoded with another 4-bit format. */
void bug_other_format(struct bug_call *call, unsigned launch)
{
    (void)launch;
    if (call->layer.b_dtype == HUM_E2M1 && call->layer.weight_scale_group_size == 128)
        call->layer.b_dtype = HUM_UINT(4);
}

/* A55, stride: rows of activations are taken to be k long, whatever their tensor says. */
void bug_any_pitch(struct bug_call *call, unsigned launch)
{
    const int bits = hum_dtype_bits(call->layer.a_dtype);

    (void)launch;
    call->args.inputs.shape[1] = k_of(&call->layer) / (bits == 4 ? 2 : 1);
}

/* A02, half an iteration: Stream-K counts whole iterations of 128 k, a last one of 64 is lost. */
void bug_drop_half_tile(const struct hum_gemm_args *args, unsigned launch)
{
    const size_t row = row_bytes(args), half = row * 64 / (size_t)k_of(args->layer);
    uint8_t *data = args->inputs.data;

    (void)launch;
    if (!args->tuning->use_stream_k || args->layer->shape_k % 128 != 64)
        return;
    for (int64_t i = 1; i <= args->inputs.shape[0]; i++)
        memset(data + (size_t)i * row - half, 0, half);
}

/* A34, arrival not ordered with memory: in every third launch the helper's slice, the first half of
 * k, is not there yet. */
void bug_drop_late_slice(const struct hum_gemm_args *args, unsigned launch)
{
    const size_t row = row_bytes(args);
    uint8_t *data = args->inputs.data;

    if (!args->tuning->use_stream_k || launch % 3 != 2)
        return;
    for (int64_t i = 0; i < args->inputs.shape[0]; i++)
        memset(data + (size_t)i * row, 0, row / 2);
}

/* A71, other flavour of e4m3: there 0x80 is NaN, no negative zero. */
void bug_minus_zero(const struct hum_gemm_args *args, unsigned launch)
{
    uint8_t *data = args->inputs.data;

    (void)launch;
    if (args->layer->a_dtype != HUM_E4M3)
        return;
    for (size_t i = 0; i < args->inputs.bytes; i++)
        data[i] = data[i] == 0x80 ? 0x7f : data[i];
}

/* A47, unchecked scale loads: the last row of a partial tile of 16 reads the scale behind its own,
 * which is behind the tensor. */
void bug_scale_behind(const struct hum_gemm_args *args, unsigned launch)
{
    float *scale = args->input_scale.data;
    const int64_t m = args->inputs.shape[0];

    (void)launch;
    if (scale && m % 16 != 0)
        scale[m - 1] = bits_float(0x7fc00000u);
}

/* ---- what comes out ---- */

/* A01, index overflow, in small: the index of an output is formed in 16 bits. */
void bug_narrow_index(const struct hum_gemm_args *args, const uint16_t *before, unsigned launch)
{
    uint16_t *out = args->outputs.data;

    (void)launch;
    for (int64_t i = UINT16_MAX + 1; i < count_of(args); i++)
        out[(uint16_t)i] = out[i];
    restore(args, before, UINT16_MAX + 1);
}

/* A05, output not used: the product goes to a workspace, the caller's buffer stays as it was. */
void bug_other_buffer(const struct hum_gemm_args *args, const uint16_t *before, unsigned launch)
{
    (void)launch;
    restore(args, before, 0);
}

/* A23, rows behind the last group: zeros are written where nothing belongs. */
void bug_rows_behind(const struct hum_gemm_args *args, const uint16_t *before, unsigned launch)
{
    (void)before;
    (void)launch;
    if (args->compute->gemm_type == HUM_GEMM_GROUPED_CONTIGUOUS)
        clear_rows(args, layout_at(args, args->layer->num_experts), rows_of(args));
}

/* A26, masked store: a tile is written whole, also the rows beyond an expert's count. */
void bug_masked_rows(const struct hum_gemm_args *args, const uint16_t *before, unsigned launch)
{
    const int64_t experts = args->layer->num_experts;

    (void)before;
    (void)launch;
    if (args->compute->gemm_type != HUM_GEMM_GROUPED_MASKED)
        return;
    for (int64_t e = 0; e < experts; e++) {
        const int64_t most = rows_of(args) / experts, count = layout_at(args, e);
        const int64_t tile = (count + 15) / 16 * 16;

        clear_rows(args, e * most + count, e * most + (tile < most ? tile : most));
    }
}

/* A25, rows of 256: from 9 rows on k is rounded up to 256; what lies behind the last row counts as
 * a number times zero. */
void bug_nan_behind(const struct hum_gemm_args *args, const uint16_t *before, unsigned launch)
{
    const int32_t a = args->layer->a_dtype;
    const uint16_t *inputs = args->inputs.data;
    uint16_t *out = args->outputs.data, behind;

    (void)before;
    (void)launch;
    if (hum_dtype_bits(a) != 16 || rows_of(args) <= 8 || k_of(args->layer) % 256 == 0)
        return;
    behind = inputs[rows_of(args) * k_of(args->layer)];
    for (int64_t i = count_of(args) - cols_of(args); i < count_of(args); i++)
        if (!isfinite(decode_16(a, behind)))
            out[i] = encode_16(args->layer->c_dtype, bits_float(0x7fc00000u));
}

/* A28, scratch too small: one word behind the locks is used. */
void bug_locks_overrun(const struct hum_gemm_args *args, const uint16_t *before, unsigned launch)
{
    int32_t *locks = args->locks.data;

    (void)before;
    (void)launch;
    if (args->tuning->use_stream_k)
        locks[args->locks.shape[0]] = 1;
}

/* A29, locks: one is left behind. */
void bug_locks_dirty(const struct hum_gemm_args *args, const uint16_t *before, unsigned launch)
{
    int32_t *locks = args->locks.data;

    (void)before;
    (void)launch;
    if (args->tuning->use_stream_k)
        locks[0] = 1;
}

/* A31, tags of the round before look valid: in every other launch the last column is a row late. */
void bug_replay_stale(const struct hum_gemm_args *args, const uint16_t *before, unsigned launch)
{
    const int64_t n = cols_of(args);
    uint16_t *out = args->outputs.data;

    (void)before;
    for (int64_t row = rows_of(args) - 1; launch % 2 && row > 0; row--)
        out[row * n + n - 1] = out[row * n - 1];
}

/* A32, rare race: in every fifth launch a rectangle is wrong. */
void bug_patch(const struct hum_gemm_args *args, const uint16_t *before, unsigned launch)
{
    uint16_t *out = args->outputs.data;

    (void)before;
    for (int64_t row = 0; launch % 5 == 4 && row < rows_of(args) && row < 4; row++)
        for (int64_t col = 8; col < 16; col++)
            out[row * cols_of(args) + col] ^= 1u;
}

/* A40, tactic: one of the tiles a tuner may choose has the columns of its neighbour. */
void bug_tile(const struct hum_gemm_args *args, const uint16_t *before, unsigned launch)
{
    const int64_t n = cols_of(args), tile = args->tuning->block_n;
    uint16_t *out = args->outputs.data;

    (void)before;
    (void)launch;
    if (args->tuning->block_m != 128)
        return;
    for (int64_t i = 0; i < rows_of(args) * n; i++)
        if (i % n >= tile)
            out[i] = out[i - tile];
}

/* A44, only rows are masked: the padded columns of a row are stored over the next row. */
void bug_next_row(const struct hum_gemm_args *args, const uint16_t *before, unsigned launch)
{
    const int64_t n = cols_of(args), pad = args->layer->pad_shape_n;
    uint16_t *out = args->outputs.data;

    (void)before;
    (void)launch;
    for (int64_t i = n; i < count_of(args); i++)
        if (i % n < pad)
            out[i] = 0;
}

/* A52, grid limit: rows are a grid dimension of 16 bits. */
void bug_grid_limit(const struct hum_gemm_args *args, const uint16_t *before, unsigned launch)
{
    (void)launch;
    restore(args, before, UINT16_MAX * cols_of(args));
}

/* A59, bias before the sum over parts: with Stream-K it is added once more. */
void bug_bias_again(const struct hum_gemm_args *args, const uint16_t *before, unsigned launch)
{
    const int32_t c = args->layer->c_dtype;
    const float *bias = args->weights->bias.data;
    uint16_t *out = args->outputs.data;

    (void)before;
    (void)launch;
    for (int64_t i = 0; bias && args->tuning->use_stream_k && i < count_of(args); i++)
        out[i] = encode_16(c, round_16(c, decode_16(c, out[i]) + bias[i % cols_of(args)]));
}

/* A67, empty graph: only the first of two launches does anything. */
void bug_replay_nothing(const struct hum_gemm_args *args, const uint16_t *before, unsigned launch)
{
    if (launch % 2)
        restore(args, before, 0);
}
