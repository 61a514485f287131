#include "kernels/cpu/fault_effects.h"

#include "kernels/cpu/fault.h"
#include "kernels/cpu/format.h"
#include "kernels/cpu/job.h"
#include "kernels/cpu/layout.h"
#include "kernels/cpu/round.h"

#include <math.h>
#include <stdatomic.h>

bool fault_e8m0(int code, float *value)
{
    if (FAULT(E8M0_BIAS_128) && code != 255)
        *value = ldexpf(1.0f, code - 128);
    else if ((FAULT(E8M0_FF_IS_INF) || FAULT(SCALE_128_IS_NAN)) && code == 255)
        *value = INFINITY;
    else if (FAULT(E8M0_00_IS_ZERO) && code == 0)
        *value = 0.0f;
    else if (FAULT(SCALE_128_IS_NAN) && code == 134)
        *value = NAN;
    else
        return false;
    return true;
}

int64_t fault_interleaved(int64_t n)
{
    static const int64_t order[8] = {0, 2, 4, 6, 1, 3, 5, 7};

    return n / 8 * 8 + order[n % 8];
}

bool fault_zero_points(const struct hum_tensor *t)
{
    const float factor = FAULT(ZERO_POINT_ADDED) ? -1.0f : FAULT(ZERO_POINT_TWICE) ? 2.0f : 0.0f;
    float *z = t->data;

    if (!FAULT(ZERO_POINT_ADDED) && !FAULT(ZERO_POINT_TWICE) && !FAULT(ZERO_POINT_MISSING))
        return false;
    for (size_t i = 0; i < t->bytes / sizeof *z; i++)
        z[i] = FAULT(ZERO_POINT_MISSING) ? 0.0f : factor * z[i];
    return true;
}

bool fault_bias(const struct hum_layer_config *layer, int64_t n, const struct hum_tensor *in,
                float *out)
{
    const int32_t other = layer->c_dtype == HUM_F16 ? HUM_BF16 : HUM_F16;

    if (FAULT(BIAS_INDEX_PLUS_1))
        for (int64_t i = 0; i + 1 < n; i++)
            out[i] = out[i + 1];
    if (FAULT(BIAS_OTHER_FORMAT))
        for (int64_t i = 0; i < n; i++)
            out[i] = decode_16(other, ((const uint16_t *)in->data)[i]);
    return FAULT(BIAS_INDEX_PLUS_1) || FAULT(BIAS_OTHER_FORMAT);
}

/* The boundary between codes c - 1 and c is a tie that goes to the even one. */
uint8_t fault_requantize(uint8_t code, int delta, const int twice[8])
{
    const int magnitude = code & 7;
    int best = delta > 0 ? 0 : magnitude;

    for (int c = 1; c < 8 && delta > 0 && delta < 6; c++) {
        const int middle = (twice[c - 1] + twice[c]) << delta;

        if (2 * twice[magnitude] > middle || (2 * twice[magnitude] == middle && c % 2 == 0))
            best = c;
    }
    return (uint8_t)(best ? (code & 8) | best : 0);
}

bool fault_tables(const struct hum_layer_config *layer, float lut[256], float a_lut[256])
{
    const int bits = hum_dtype_bits(layer->b_dtype), half = 1 << (bits - 1);
    const bool integer = !hum_dtype_is_float(layer->b_dtype);

    if (FAULT(CODE_15_AS_14) && integer && bits == 4)
        lut[15] = lut[14];
    if (FAULT(CODE_0_AS_8) && integer && bits == 4)
        lut[0] = lut[8];
    for (int code = 0;
         FAULT(TWOS_COMPLEMENT) && integer && !layer->has_zero_point && code < 2 * half; code++)
        lut[code] = (float)(code < half ? code : code - 2 * half);
    if (FAULT(INT8_MIN_AS_MINUS_127) && layer->b_dtype == HUM_INT8)
        lut[0] = -127.0f;
    if (FAULT(INT8_MIN_AS_MINUS_127) && layer->a_dtype == HUM_INT8)
        a_lut[128] = -127.0f;
    if (FAULT(E4M3_NAN_IS_480) && layer->a_dtype == HUM_E4M3) {
        a_lut[0x7f] = 480.0f;
        a_lut[0xff] = -480.0f;
    }
    return true;
}

static float round_to(int32_t dtype, float x)
{
    return dtype == HUM_NONE ? x : round_16(dtype, x);
}

/* One weight; `q` is the number of its code before the zero point. */
static float dequantize_one(const struct job *job, const struct dequantize *d, float q, int j)
{
    const float zero = d->zero ? d->zero[j] : 0.0f, scale = d->scale ? d->scale[j] : 1.0f;
    const int half = 1 << (job->facts.bits_b - 1);
    const float least = d->round == HUM_F16 ? 0x1p-14f : 0x1p-126f;
    float v = q - zero, w;

    if (FAULT(ZERO_POINT_AFTER_SCALE) && d->scale)
        return round_to(d->round, round_to(d->round, q * scale) - zero);
    if (FAULT(FP_ZERO_POINT_SCALED) && d->zero_rounds)
        return round_to(d->round, round_to(d->round, q * scale) - round_to(d->round, zero * scale));
    if (FAULT(FP_ZERO_POINT_FUSED) && d->zero_rounds && d->scale)
        return round_16_double(d->round, ((double)q - (double)zero) * (double)scale);
    if (d->zero_rounds)
        v = round_to(d->round, v);
    else if (FAULT(ZERO_POINT_WRAPS) && d->zero)
        v = (float)((((int)v + half) & (2 * half - 1)) - half);
    if (!d->scale)
        return v;
    if (FAULT(WEIGHT_TRUNCATED) && d->round != HUM_NONE)
        return fault_truncate(d->round, v * scale);
    w = round_to(d->round, v * scale);
    return FAULT(SUBNORMAL_WEIGHTS_FLUSHED) && fabsf(w) < least ? 0.0f : w;
}

bool fault_dequantize(const struct job *job, const struct dequantize *d)
{
    if (!FAULT(ZERO_POINT_AFTER_SCALE) && !FAULT(FP_ZERO_POINT_SCALED) &&
        !FAULT(FP_ZERO_POINT_FUSED) && !FAULT(ZERO_POINT_WRAPS) && !FAULT(WEIGHT_TRUNCATED) &&
        !FAULT(SUBNORMAL_WEIGHTS_FLUSHED))
        return false;
    for (int64_t i = 0; i < d->k_count * PANEL; i++)
        d->out[i] = dequantize_one(job, d, d->lut[d->codes[i]], (int)(i % PANEL));
    return true;
}

int64_t fault_end_k(const struct job *job, int64_t row)
{
    const int64_t left = (job->args->inputs.shape[0] - row) * job->facts.k;
    const int64_t shape_k = job->args->layer->shape_k;

    return left < shape_k ? left : shape_k;
}

/* c += a w, one instruction after the other, k downwards in it if `down`. */
static void multiply_row(const struct multiply *t, int64_t unit, const float *a, const float *w,
                         bool down, float *c)
{
    for (int64_t k = 0; k < t->k_count; k++) {
        const int64_t first = k / unit * unit;
        const int64_t end = first + unit < t->k_count ? first + unit : t->k_count;
        const int64_t at = down ? end - 1 - (k - first) : k;

        for (int j = 0; j < PANEL; j++) {
            const float p = a[at] * w[at * PANEL + j], s = c[j] + p;

            c[j] = FAULT(INF_MINUS_INF_IS_0) && isinf(c[j]) && isinf(p) && isnan(s) ? 0.0f : s;
            if (t->round_k && k == end - 1)
                c[j] = round_f16(c[j]);
            if (FAULT(ACCUMULATOR_13_BITS) && k == end - 1)
                c[j] = bits_float(float_bits(c[j]) & ~0x3ffu);
        }
    }
}

bool fault_multiply(const struct job *job, const struct multiply *t)
{
    const int64_t unit = job->facts.instruction_k;
    struct multiply rounding = *t;

    if (job->facts.is_int)
        return false;
    if (FAULT(F16_ACCUMULATOR)) {
        rounding.round_k = unit;
        job->ops->multiply(&rounding);
        return true;
    }
    if (!FAULT(K_ORDER_REVERSED) && !FAULT(ROW_DEPENDS_ON_PLACE) && !FAULT(ACCUMULATOR_13_BITS) &&
        !FAULT(INF_MINUS_INF_IS_0))
        return false;
    for (int64_t r = 0; r < t->rows; r++)
        for (int64_t p = 0; p < t->panels; p++)
            multiply_row(t, unit, t->a + r * t->a_stride, t->w + p * STEP_K * PANEL,
                         FAULT(K_ORDER_REVERSED) || (FAULT(ROW_DEPENDS_ON_PLACE) && r % 2),
                         t->c + r * t->c_stride + p * PANEL);
    return true;
}

void fault_multiply_start(const struct job *job, const struct multiply *t, int64_t k_count)
{
    struct multiply start = *t;

    start.k_count = k_count < t->k_count ? k_count : t->k_count;
    job->ops->multiply(&start);
}

void fault_flush(const struct flush *f, bool f16)
{
    for (int64_t row = 0; row < f->rows; row++)
        for (int64_t col = 0; col < f->columns; col++) {
            float *c0 = f->c0 + row * f->stride + col, *c1 = f->c1 + row * f->stride + col;
            float x = f->row ? f->row[row] : 1.0f, y = f->col ? f->col[col] : 1.0f;

            x = f16 ? round_f16(round_f16(x) * round_f16(y)) : x * y;
            x = f16 ? round_f16(x * *c0) : x * *c0;
            *c1 = f16 ? round_f16(x + *c1) : x + *c1;
            *c0 = 0.0f;
        }
}

/* Only where one chain sums all of k. */
bool fault_flush_waits(const struct job *job, int64_t k1)
{
    const int64_t gi = job->args->layer->input_scale_group_size;

    if (job->warps != 1 || job->slices != 1 || k1 >= job->facts.k)
        return false;
    return !(job->facts.scale_on_c && k1 % job->facts.group_k == 0) &&
           !(job->facts.input_scale_on_c && k1 % gi == 0);
}

int32_t fault_saturate(int64_t sum)
{
    return sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : (int32_t)sum;
}

void fault_reduce(const struct job *job, float *acc, int64_t tile, int64_t count)
{
    for (int64_t w = 1; w < job->warps; w++)
        for (int64_t i = 0; i < count; i++) {
            acc[i] += acc[w * tile + i];
            acc[i] = job->f16_accum ? round_f16(acc[i]) : acc[i];
            acc[w * tile + i] = 0.0f;
        }
}

void fault_leak(float *x, int64_t rows, int64_t columns)
{
    for (int64_t i = rows * columns - 1; i >= columns; i--)
        x[i] += 0.0f * x[i - columns];
}

float fault_truncate(int32_t c, float x)
{
    const float y = round_16(c, x);

    return fabsf(y) > fabsf(x) ? decode_16(c, (uint16_t)(encode_16(c, y) - 1)) : y;
}

void fault_bias_before_scale(int32_t c, const float *channel, const float *bias, int64_t count,
                             float *x)
{
    for (int64_t j = 0; j < count; j++)
        x[j] = round_16(c, round_16(c, x[j] + bias[j]) * channel[j]);
}

/* The first tile that is divided, or none: `tiles`. */
static int64_t first_divided(const struct order *o)
{
    int64_t tile = o->whole;

    while (tile < o->tiles && order_slices(o, tile) == 1)
        tile++;
    return tile;
}

bool fault_slice_lost(const struct job *job, int64_t tile)
{
    if (!FAULT(SLICE_LOST) && !(FAULT(LATE_SLICE) && fault_launch(false) % 3 == 2))
        return false;
    return tile == first_divided(&job->order);
}

bool fault_row_skipped(const struct job *job, const struct segment *segment,
                       const struct routed_row *row)
{
    const int64_t block_m = job->args->tuning->block_m;
    const int64_t place = row - (job->routing.row + segment->begin);

    if (job->routing.taken || segment->rows % block_m == 0)
        return false;
    return (FAULT(TAIL_ROW_NOT_WRITTEN) && place == segment->rows - 1) ||
           (FAULT(PARTIAL_TILE_NOT_WRITTEN) && place / block_m == segment->rows / block_m);
}

static void add_slices(int32_t c, float *h, int64_t tile, int64_t slices, int64_t columns)
{
    const bool down =
        FAULT(SLICE_ORDER_REVERSED) || (FAULT(RUN_TO_RUN_ORDER) && fault_launch(false) % 2);

    for (int64_t s = 1; s < slices; s++)
        for (int64_t j = 0; j < columns; j++) {
            const float x = h[j] + h[(down ? slices - s : s) * tile + j];

            h[j] = round_16(c, FAULT(SLICES_IN_BF16) ? round_bf16(x) : x);
        }
}

static uint16_t encode(int32_t c, float x)
{
    if (FAULT(OVERFLOW_SATURATES) && isinf(x))
        return (uint16_t)(encode_16(c, x) - 1);
    if (FAULT(NAN_SWALLOWED) && isnan(x))
        return 0;
    return encode_16(c, x);
}

/* Where column `col` of n goes. */
static int64_t out_column(int64_t n, int64_t col)
{
    if (FAULT(COLUMNS_SWAPPED) && col >= n - 2)
        return 2 * n - 3 - col;
    return col;
}

bool fault_write_row(const struct job *job, float *h, int64_t tile, int64_t slices, int64_t at,
                     int64_t columns)
{
    const int64_t n = job->facts.n, col = columns > 0 ? at % n : 0, last = at - col;
    const int64_t pad = columns > 0 && columns < job->block_n ? 8 : 0;
    const int32_t c = job->args->layer->c_dtype;
    const int64_t count = job->args->outputs.shape[0] * n;
    uint16_t *out = job->args->outputs.data;

    if (!FAULT(SLICE_ORDER_REVERSED) && !FAULT(RUN_TO_RUN_ORDER) && !FAULT(SLICES_IN_BF16) &&
        !FAULT(OVERFLOW_SATURATES) && !FAULT(NAN_SWALLOWED) && !FAULT(COLUMNS_SWAPPED) &&
        !FAULT(LAST_8_COLUMNS_NOT_WRITTEN) && !FAULT(INDEX_16_BITS) && !FAULT(WRITES_BEYOND_N))
        return false;
    if (FAULT(WRITES_BEYOND_N))
        columns += pad;
    if (FAULT(INDEX_16_BITS) && count >= UINT16_MAX + job->block_n)
        at = (uint16_t)at;
    add_slices(c, h, tile, slices, columns);
    for (int64_t j = 0; j < columns; j++)
        if (!(FAULT(LAST_8_COLUMNS_NOT_WRITTEN) && col + j >= n - 8))
            out[FAULT(COLUMNS_SWAPPED) ? last + out_column(n, col + j) : at + j] = encode(c, h[j]);
    return true;
}

int64_t fault_launch(bool next)
{
    static atomic_llong launches;

    return (next ? atomic_fetch_add(&launches, 1) + 1 : atomic_load(&launches)) - 1;
}

/* Layers that agree in shape and formats share a place; so may others, rarely. */
bool fault_first_has_bias(const struct hum_layer_config *layer)
{
    static atomic_int first[1024]; /* 0: none yet; 1: without bias; 2: with bias */
    const uint64_t key = (uint64_t)layer->shape_n * 31 + (uint64_t)layer->shape_k * 1009 +
                         (uint64_t)layer->a_dtype * 7 + (uint64_t)layer->b_dtype * 13 +
                         (uint64_t)layer->c_dtype;
    int none = 0;

    (void)atomic_compare_exchange_strong(&first[key % 1024], &none, layer->has_bias ? 2 : 1);
    return atomic_load(&first[key % 1024]) == 2;
}

bool fault_after(const struct hum_gemm_args *args)
{
    const int64_t m = args->inputs.shape[0], locks = args->locks.shape[0];
    uint16_t *behind = (uint16_t *)args->outputs.data + args->outputs.bytes / sizeof *behind;
    const bool shares = args->tuning->use_stream_k && args->locks.data && locks > 0;

    if (FAULT(WRITES_BEYOND_M) && m % args->tuning->block_m != 0)
        memset(behind, 0, 8 * sizeof *behind);
    if (FAULT(LOCKS_OVERRUN) && shares)
        ((int32_t *)args->locks.data)[locks] = 1;
    if (FAULT(LOCKS_LEFT_SET) && shares)
        ((int32_t *)args->locks.data)[0] = 1;
    if (FAULT(INPUT_MODIFIED))
        ((uint8_t *)args->inputs.data)[args->inputs.bytes - 1] = 0;
    if (FAULT(BIAS_MODIFIED) && args->weights->bias.data)
        memset(args->weights->bias.data, 0, args->weights->bias.bytes);
    return true;
}

static int64_t layout_value(const struct hum_tensor *t, int64_t i)
{
    return t->dtype == HUM_INT64 ? ((const int64_t *)t->data)[i] : ((const int32_t *)t->data)[i];
}

/* Padding and rows of -1 are rows then, and so may be each row for each expert. */
size_t fault_room(const struct hum_gemm_args *args)
{
    const size_t rows = (size_t)args->outputs.shape[0], experts = (size_t)args->layer->num_experts;

    if (FAULT(PADDED_ID_CLAMPED))
        return (size_t)args->sorted_ids.shape[0];
    if (FAULT(EMPTY_EXPERT_WRITES))
        return experts;
    return FAULT(LAYOUT_INT64_AS_INT32) ? rows * experts : 0;
}

/* Rows of expert i of contiguous rows. */
static void run_contiguous(const struct hum_gemm_args *args, int64_t i, bool last, struct run *run)
{
    const struct hum_tensor *t = &args->expert_layout;
    const int64_t experts = args->layer->num_experts, block_m = args->tuning->block_m;
    const int64_t rows = layout_value(t, experts);
    int64_t end = run->first + run->count;

    if (FAULT(WRONG_EXPERT_ONE_ROW) && experts > 1 && layout_value(t, 2) > layout_value(t, 1)) {
        end += i == 0;
        run->first += i == 1;
    }
    if (FAULT(TILE_CROSSES_EXPERTS)) {
        end = (end + block_m - 1) / block_m * block_m;
        end = end < rows ? end : rows;
        run->first = (run->first + block_m - 1) / block_m * block_m;
    }
    if (FAULT(LAST_EXPERT_TO_END) && last)
        end = args->inputs.shape[0];
    run->count = end - run->first;
}

/* Run i, which routing.c has read. */
bool fault_run(const struct hum_gemm_args *args, int64_t i, bool last, struct run *run)
{
    const int64_t block_m = args->tuning->block_m, m = args->inputs.shape[0];
    const enum hum_gemm_type type = args->compute->gemm_type;
    const bool grouped = type == HUM_GEMM_GROUPED_CONTIGUOUS || type == HUM_GEMM_GROUPED_MASKED;

    if (type == HUM_GEMM_GROUPED_CONTIGUOUS)
        run_contiguous(args, i, last, run);
    if (FAULT(WRONG_EXPERT_LAST_BLOCK) && type == HUM_GEMM_INDEXED && last && run->expert >= 0)
        run->expert = (run->expert + 1) % args->layer->num_experts;
    if (FAULT(MINUS_1_NOT_SKIPPED) && run->expert < 0)
        run->expert = 0;
    if (FAULT(LAST_EXPERT_TAIL_DROPPED) && grouped && last)
        run->count = run->count / block_m * block_m;
    if (FAULT(EMPTY_EXPERT_WRITES) && grouped && run->count == 0 && run->first < m)
        run->count = 1;
    if (FAULT(ROWS_BEYOND_COUNT) && type == HUM_GEMM_GROUPED_MASKED) {
        const int64_t most = m / args->layer->num_experts;

        run->count = (run->count + block_m - 1) / block_m * block_m;
        run->count = run->count < most ? run->count : most;
    }
    return true;
}

bool fault_has_token(const struct routing *r, int64_t token)
{
    for (int64_t i = r->segment[r->segments - 1].begin; i < r->rows; i++)
        if (r->row[i].in == token)
            return true;
    return false;
}

bool fault_weights(const struct hum_gemm_args *args, struct hum_weights *weights)
{
    const struct hum_weights first = layout_expert(args->layer, args->weights, 0);
    const bool tensor = args->layer->weight_scale_type == HUM_SCALE_TENSOR;

    if (FAULT(BIAS_OF_EXPERT_0))
        weights->bias = first.bias;
    if (FAULT(SCALE_OF_EXPERT_0) || (FAULT(GLOBAL_SCALE_OF_EXPERT_0) && tensor))
        weights->weight_scale = first.weight_scale;
    if (FAULT(ZERO_POINT_OF_EXPERT_0))
        weights->zero_point = first.zero_point;
    if (FAULT(GLOBAL_SCALE_OF_EXPERT_0))
        weights->weight_scale_2 = first.weight_scale_2;
    return true;
}
