#include "kernels/cpu/job.h"

#include "kernels/cpu/epilogue.h"
#include "kernels/cpu/fault.h"
#include "kernels/cpu/fault_effects.h"
#include "kernels/cpu/layout.h"
#include "kernels/cpu/round.h"

/* The rows and columns in hand. */
struct block {
    const struct job *job;
    const struct work *work;
    const struct segment *segment;
    const struct routed_row *row;
    int64_t rows, col;
    struct hum_weights weights; /* of the expert */
    struct epilogue epilogue;
    int64_t tile; /* floats of one tile of accumulators */
};

/* The next `count` elements of 4 bytes; `bytes` are dealt out so far. */
static void *take(void *memory, int64_t count, size_t *bytes)
{
    void *out = memory && count ? (char *)memory + *bytes : NULL;

    *bytes += ((size_t)count * sizeof(float) + 63) / 64 * 64;
    return out;
}

size_t work_layout(const struct job *job, void *memory, struct work *out)
{
    const int64_t tile = job->chunk * job->block_n, all = job->warps * tile;
    const bool is_int = job->facts.is_int, int_scale = job->facts.int_scale;
    size_t bytes = 0;

    out->a = take(memory, job->chunk * job->a_stride, &bytes);
    out->w = take(memory, STEP_K * job->block_n, &bytes);
    out->factors = take(memory, job->chunk, &bytes);
    out->c0 = take(memory, all, &bytes);
    out->c1 = take(memory, job->flush_k && !int_scale ? all : 0, &bytes);
    out->i0 = take(memory, is_int ? all : 0, &bytes);
    out->i1 = take(memory, int_scale ? all : 0, &bytes);
    out->h = take(memory, job->slices * tile, &bytes);
    return bytes;
}

static void decode_row(const struct job *job, int64_t row, float *out)
{
    const int32_t dtype = job->args->layer->a_dtype;
    const int64_t k = job->facts.k, end = FAULT(PADDED_K_CONTRIBUTES) ? fault_end_k(job, row) : k;
    const void *data = job->args->inputs.data;

    if (job->facts.bits_a == 16) {
        const uint16_t *in = (const uint16_t *)data + row * k;

        for (int64_t i = 0; i < end; i++)
            out[i] = decode_16(dtype, in[i]);
    } else if (job->facts.bits_a == 8) {
        const uint8_t *in = (const uint8_t *)data + row * k;

        for (int64_t i = 0; i < end; i++)
            out[i] = job->a_lut[in[i]];
    } else {
        const uint8_t *in = (const uint8_t *)data + row * (k / 2);

        for (int64_t i = 0; i < end; i++)
            out[i] = job->a_lut[in[i / 2] >> (i % 2 * 4) & 15];
    }
    for (int64_t i = end; FAULT(PADDED_K_CONTRIBUTES) && i < job->args->layer->shape_k; i++)
        out[i] = 0.0f;
    if (FAULT(ACTIVATION_K_PLUS_1))
        out[4] = out[5];
}

/* The row of A of a routed row. */
static int64_t row_of_a(const struct job *job, const struct routed_row *row)
{
    const int64_t m = job->args->inputs.shape[0];

    if (FAULT(ID_NOT_DIVIDED))
        return row->out % m;
    if (FAULT(LAST_ROW_READS_ROW_BEFORE) && row->in == m - 1 && row->in > 0 &&
        m % job->args->tuning->block_m != 0)
        return row->in - 1;
    return row->in;
}

/* The same of its input scales. */
static int64_t row_of_scale(const struct job *job, const struct routed_row *row)
{
    if (FAULT(INPUT_SCALE_ROW_MINUS_1) && row->in > 0)
        return row->in - 1;
    if (FAULT(INPUT_SCALE_OF_ID))
        return row->out % job->args->inputs.shape[0];
    return row->in;
}

/* The group of the weight scale at k. */
static int64_t scale_group(const struct facts *f, int64_t k)
{
    const int64_t g = k / f->group_k;

    if (FAULT(SCALE_POINTER_STUCK) || (FAULT(GROUP_INDEX_MINUS_1) && g == 0))
        return 0;
    if (FAULT(GROUP_INDEX_MINUS_1) ||
        (FAULT(LAST_GROUP_PREVIOUS_SCALE) && g > 0 && g == f->groups - 1))
        return g - 1;
    if (FAULT(GROUP_SIZE_HALVED))
        return k / (f->group_k / 2) < f->groups ? k / (f->group_k / 2) : f->groups - 1;
    if (FAULT(GROUP_SIZE_DOUBLED))
        return g / 2;
    return g;
}

/* The row of scales for the run that begins at k. */
static int64_t scale_row(const struct facts *f, int64_t k)
{
    const bool late = FAULT(GROUP_START_LATE) && k / f->group_k > 0 && k % f->group_k == 0;

    return scale_group(f, k) - late;
}

/* Weights of the valid k in [k0, k1), a run of one scale group at a time. */
static void dequantize(const struct block *b, int64_t k0, int64_t k1)
{
    const struct job *job = b->job;
    const struct hum_weights *weights = &b->weights;
    const int64_t n = job->args->layer->shape_n, shape_k = job->args->layer->shape_k;
    const bool scaled = job->facts.scale_on_operand || job->facts.fused;
    int64_t run = FAULT(GROUP_START_LATE) ? 8 : job->facts.group_k, end;

    if (FAULT(GROUP_SIZE_HALVED))
        run = 8;
    for (int64_t k = k0; k < k1; k = end) {
        const int64_t g = k / job->facts.group_k, at = g * n + b->col;
        const int64_t scale_at = scale_row(&job->facts, k) * n + b->col;

        end = (k / run + 1) * run < k1 ? (k / run + 1) * run : k1;
        for (int64_t p = 0; p < job->block_n / PANEL; p++) {
            const struct dequantize d = {
                .codes = (const uint8_t *)weights->weight.data + (b->col + p * PANEL) * shape_k +
                         k * PANEL,
                .lut = job->lut,
                .zero = weights->zero_point.data
                            ? (const float *)weights->zero_point.data + at + p * PANEL
                            : NULL,
                .scale = scaled ? (const float *)weights->weight_scale.data + scale_at + p * PANEL
                                : NULL,
                .round = job->facts.fused ? HUM_NONE : job->args->layer->a_dtype,
                .zero_rounds = job->args->layer->is_fp_zero_point,
                .k_count = end - k,
                .out = b->work->w + p * STEP_K * PANEL + (k - k0) * PANEL,
            };

            if (!FAULT_EFFECT(fault_dequantize(job, &d)))
                job->ops->dequantize(&d);
        }
    }
}

/* Integers: products are at most 2^14, so STEP_K of them are exact in f32; their sum moves on to
 * int32. */
static void drain(float *c0, int32_t *i0, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        i0[i] = (int32_t)((uint32_t)i0[i] + (uint32_t)(int32_t)c0[i]);
        c0[i] = 0.0f;
    }
}

static void accumulate(const struct block *b, int64_t k0, int64_t k1, int64_t warp)
{
    const struct job *job = b->job;
    const struct multiply t = {
        .a = b->work->a + k0,
        .a_stride = job->a_stride,
        .w = b->work->w,
        .c = b->work->c0 + warp * b->tile,
        .c_stride = job->block_n,
        .rows = b->rows,
        .panels = job->block_n / PANEL,
        .k_count = k1 - k0,
        .round_k = job->f16_accum ? job->facts.instruction_k : 0,
    };

    if (!(FAULT(STALE_STAGE) && k0 == job->step_k && t.k_count == k0 &&
          fault_launch(false) % 3 == 2))
        dequantize(b, k0, k1);
    if (FAULT(K_BLOCK_TWICE) && k0 < 64)
        fault_multiply_start(job, &t, 64 - k0);
    if (!FAULT_EFFECT(fault_multiply(job, &t)))
        job->ops->multiply(&t);
    if (job->facts.is_int)
        drain(t.c, b->work->i0 + warp * b->tile, b->rows * job->block_n);
}

/* Integer weight scales: i1 += s_int x i0, wrapping. */
static void flush_int(const struct block *b, int64_t group, int64_t warp)
{
    const int64_t n = b->job->args->layer->shape_n, columns = b->job->block_n;
    const int32_t *scale = (const int32_t *)b->weights.weight_scale.data + group * n + b->col;
    int32_t *i0 = b->work->i0 + warp * b->tile, *i1 = b->work->i1 + warp * b->tile;

    for (int64_t r = 0; r < b->rows; r++, i0 += columns, i1 += columns)
        for (int64_t j = 0; j < columns; j++) {
            i1[j] = FAULT(INT32_SATURATES)
                        ? fault_saturate((int64_t)i1[j] + (int64_t)scale[j] * i0[j])
                        : (int32_t)((uint32_t)i1[j] + (uint32_t)scale[j] * (uint32_t)i0[j]);
            i0[j] = 0;
        }
}

/* The end of a flush period that began at k. */
static void flush(const struct block *b, int64_t k, int64_t warp)
{
    const struct job *job = b->job;
    const int64_t n = job->args->layer->shape_n, gi = job->args->layer->input_scale_group_size;
    const int64_t group = scale_group(&job->facts, k);
    const int64_t input_group = FAULT(INPUT_SCALE_GROUP_0) || gi == 0 ? 0 : k / gi;
    const float *scales = b->weights.weight_scale.data;
    const struct flush f = {
        .c0 = b->work->c0 + warp * b->tile,
        .c1 = b->work->c1 + warp * b->tile,
        .row = job->facts.input_scale_on_c ? b->work->factors : NULL,
        .col = job->facts.scale_on_c ? scales + group * n + b->col : NULL,
        .rows = b->rows,
        .columns = job->block_n,
        .stride = job->block_n,
    };
    int32_t *i0 = b->work->i0 + warp * b->tile;

    if (job->facts.int_scale) {
        flush_int(b, group, warp);
        return;
    }
    if (f.row)
        for (int64_t r = 0; r < b->rows; r++)
            b->work->factors[r] =
                job->input_scale[row_of_scale(job, &b->row[r]) * job->scale_row_stride +
                                 input_group * job->scale_group_stride];
    if (job->facts.is_int)
        for (int64_t i = 0; i < b->rows * job->block_n; i++) {
            f.c0[i] = (float)i0[i];
            i0[i] = 0;
        }
    if (FAULT(FLUSH_TWO_ROUNDINGS))
        fault_flush(&f, job->f16_accum);
    else if (job->f16_accum)
        job->ops->flush_f16(&f);
    else
        job->ops->flush_f32(&f);
}

/* The tree over K-warps, into warp 0, for `count` elements from `at`; all others become 0. */
static void reduce_float(const struct block *b, float *acc, int64_t at, int64_t count)
{
    if (FAULT(K_WARP_LOST) && b->job->warps > 1)
        memset(acc + (b->job->warps - 1) * b->tile + at, 0, (size_t)count * sizeof *acc);
    if (FAULT(K_WARPS_IN_ORDER))
        fault_reduce(b->job, acc + at, b->tile, count);
    for (int64_t half = b->job->warps / 2; half > 0; half /= 2)
        for (int64_t w = 0; w < half; w++) {
            float *to = acc + w * b->tile + at, *from = acc + (w + half) * b->tile + at;

            for (int64_t i = 0; i < count; i++) {
                to[i] = b->job->f16_accum ? round_f16(to[i] + from[i]) : to[i] + from[i];
                from[i] = 0.0f;
            }
        }
}

static void reduce_int(const struct block *b, int32_t *acc, int64_t at, int64_t count)
{
    if (FAULT(K_WARP_LOST) && b->job->warps > 1)
        memset(acc + (b->job->warps - 1) * b->tile + at, 0, (size_t)count * sizeof *acc);
    for (int64_t half = b->job->warps / 2; half > 0; half /= 2)
        for (int64_t w = 0; w < half; w++) {
            int32_t *to = acc + w * b->tile + at, *from = acc + (w + half) * b->tile + at;

            for (int64_t i = 0; i < count; i++) {
                to[i] = (int32_t)((uint32_t)to[i] + (uint32_t)from[i]);
                from[i] = 0;
            }
        }
}

/* Moves the chains' result of `count` elements from `at` to x, and leaves zeros. */
static void take_sums(const struct block *b, int64_t at, int64_t count, float *x)
{
    const struct job *job = b->job;
    float *sums = job->flush_k ? b->work->c1 : b->work->c0;
    int32_t *ints = job->facts.int_scale ? b->work->i1 : b->work->i0;

    if (job->facts.is_int && (job->facts.int_scale || !job->flush_k)) {
        reduce_int(b, ints, at, count);
        for (int64_t i = 0; i < count; i++) {
            x[i] = (float)ints[at + i];
            ints[at + i] = 0;
        }
    } else {
        reduce_float(b, sums, at, count);
        memcpy(x, sums + at, (size_t)count * sizeof *x);
        memset(sums + at, 0, (size_t)count * sizeof *sums);
    }
}

/* Section 6: adds the finished slices of one row in order and writes its valid columns. */
static void write_row(const struct block *b, int64_t r, int64_t slices)
{
    const struct job *job = b->job;
    const int64_t left = job->facts.n - b->col;
    const int64_t columns = left < job->block_n ? left : job->block_n;
    const int32_t c = job->args->layer->c_dtype;
    float *h = b->work->h + r * job->block_n;
    const int64_t at = b->row[r].out * job->facts.n + b->col;
    uint16_t *out = (uint16_t *)job->args->outputs.data + at;

    if (FAULT_EFFECT(fault_write_row(job, h, b->tile, slices, at, columns)))
        return;
    for (int64_t s = 1; s < slices; s++)
        for (int64_t j = 0; j < columns; j++)
            h[j] = round_16(c, h[j] + h[s * b->tile + j]);
    for (int64_t j = 0; j < columns; j++)
        out[j] = encode_16(c, h[j]);
}

/* Does a slice add the bias? */
static bool has_bias(const struct block *b, int64_t slice)
{
    const int64_t block_n = b->job->args->tuning->block_n;

    if (FAULT(BIAS_MISSING_LAST_TILE) && b->col / block_n == (b->job->facts.n - 1) / block_n)
        return false;
    return slice == 0 || FAULT(BIAS_PER_SLICE);
}

/* Puts the result of a tile back where its chains ended. */
static void leave_sums(const struct block *b, int64_t at, int64_t count, const float *x)
{
    float *sums = b->job->flush_k ? b->work->c1 : b->work->c0;

    memcpy(sums + at, x, (size_t)count * sizeof *x);
}

/* Rows [r0, r1) of the block lie in tile `tile`, one of whose slices ends with K block
 * `k_block`. */
static void finish_slice(const struct block *b, int64_t tile, int64_t k_block, int64_t r0,
                         int64_t r1)
{
    const struct job *job = b->job;
    const int64_t slice = order_slice(&job->order, tile, k_block);
    const bool bias = has_bias(b, slice);
    int64_t slices = order_slices(&job->order, tile);
    float *x = b->work->h + slice * b->tile;

    take_sums(b, r0 * job->block_n, (r1 - r0) * job->block_n, x + r0 * job->block_n);
    if (FAULT(ACCUMULATOR_NOT_CLEARED) && slice == 0 && !job->facts.is_int)
        leave_sums(b, r0 * job->block_n, (r1 - r0) * job->block_n, x + r0 * job->block_n);
    if (FAULT(NEIGHBOUR_NAN_LEAKS))
        fault_leak(x + r0 * job->block_n, r1 - r0, job->block_n);
    if (slices > 1 && FAULT_EFFECT(fault_slice_lost(job, tile)))
        slices--;
    for (int64_t r = r0; r < r1; r++) {
        epilogue_row(&b->epilogue, row_of_scale(job, &b->row[r]), b->col, job->block_n, bias,
                     x + r * job->block_n);
        if (slice == 0 && !FAULT_EFFECT(fault_row_skipped(job, b->segment, &b->row[r])))
            write_row(b, r, slices);
    }
}

/* K block `k_block` is done: finishes the slices that end with it. */
static void finish(const struct block *b, int64_t k_block)
{
    const struct job *job = b->job;
    const int64_t block_n = job->args->tuning->block_n;
    const int64_t first = b->segment->tiles_before * (job->args->layer->shape_n / block_n) +
                          b->col / block_n * b->segment->row_tiles;
    int64_t end;

    for (int64_t r = 0; r < b->rows; r = end) {
        const int64_t tile = first + b->row[r].tile;
        const bool last = k_block == job->order.blocks - 1;

        for (end = r + 1; end < b->rows && b->row[end].tile == b->row[r].tile;)
            end++;
        if (last ||
            order_slice(&job->order, tile, k_block) != order_slice(&job->order, tile, k_block + 1))
            finish_slice(b, tile, k_block, r, end);
    }
}

static void clear(const struct block *b)
{
    const size_t bytes = (size_t)(b->job->warps * b->tile) * sizeof(float);
    void *const all[] = {b->work->c0, b->work->c1, b->work->i0, b->work->i1};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i])
            memset(all[i], 0, bytes);
}

/* Where the k that takes part ends: padded k does not. */
static int64_t end_of_k(const struct job *job)
{
    const int64_t k = job->facts.k;

    if (FAULT(K_LAST_DROPPED))
        return k - 1;
    if (FAULT(K_LAST_8_DROPPED))
        return k - 8;
    if (FAULT(K_LAST_32_DROPPED))
        return k > 32 ? k - 32 : 0;
    if (FAULT(PADDED_K_CONTRIBUTES) && !job->facts.input_scale_on_c)
        return job->args->layer->shape_k;
    return k;
}

/* Padded k takes no part, but its slices still have an epilogue. */
static void run_block(const struct block *b)
{
    const struct job *job = b->job;
    const struct hum_tuning_config *t = job->args->tuning;
    const int64_t valid = end_of_k(job), shape_k = job->args->layer->shape_k;
    int64_t k1;

    for (int64_t k0 = 0; k0 < shape_k; k0 = k1) {
        const int64_t warp = job->warps > 1 ? k0 % t->block_k / job->warp_k : 0;
        const int64_t end = k0 + job->step_k < valid ? k0 + job->step_k : valid;

        k1 = k0 + job->step_k < shape_k ? k0 + job->step_k : shape_k;
        if (k0 < end)
            accumulate(b, k0, end, warp);
        if (job->flush_k && k1 % job->flush_k == 0 && k1 - job->flush_k < valid &&
            !(FAULT(FLUSH_AT_GROUP_END) && fault_flush_waits(job, k1)))
            flush(b, k1 - job->flush_k, warp);
        if (k1 % t->block_k == 0)
            finish(b, k1 / t->block_k - 1);
    }
}

void job_chunk(const struct job *job, const struct work *work, const struct segment *segment,
               int64_t row, int64_t rows, int64_t begin, int64_t end)
{
    const struct hum_gemm_args *args = job->args;
    struct block b = {.job = job,
                      .work = work,
                      .segment = segment,
                      .row = job->routing.row + segment->begin + row,
                      .rows = rows,
                      .weights = layout_expert(args->layer, args->weights, segment->expert),
                      .tile = job->chunk * job->block_n};

    (void)FAULT_EFFECT(fault_weights(args, &b.weights));
    b.epilogue = epilogue_make(args, &b.weights);
    for (int64_t r = 0; r < rows; r++)
        decode_row(job, row_of_a(job, &b.row[r]), work->a + r * job->a_stride);
    for (b.col = begin; b.col < end; b.col += job->block_n) {
        if (!FAULT(WORKSPACE_NOT_CLEARED) && !(FAULT(ACCUMULATOR_NOT_CLEARED) && b.col > begin))
            clear(&b);
        run_block(&b);
    }
}
