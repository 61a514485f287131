#include "kernels/cpu/forward.h"

#include "kernels/cpu/format.h"
#include "kernels/cpu/job.h"

#include <pthread.h>
#include <stdlib.h>

enum {
    BLOCK_N = 64,
    MAX_ROWS = 480,           /* a multiple of the rows that registers hold */
    CHUNK_FLOATS = 2 << 20,   /* decoded activations and accumulators of one thread, about */
    MIN_THREAD_WORK = 1 << 22 /* multiply-adds worth a thread */
};

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Weights: twice the value when fused with int8 (layout.h); integers are offset binary unless zero points
 * are subtracted. */
static void fill_tables(const struct hum_layer_config *l, const struct facts *f, struct job *job)
{
    const bool is_float = hum_dtype_is_float(l->b_dtype);
    const int offset = l->has_zero_point ? 0 : 1 << (f->bits_b - 1);

    for (int code = 0; code < 1 << f->bits_b; code++) {
        if (!is_float)
            job->lut[code] = (float)(code - offset);
        else
            job->lut[code] = format_decode(l->b_dtype, (uint32_t)code, FORMAT_WEIGHT) *
                             (f->fused && f->is_int ? 2.0f : 1.0f);
    }
    if (f->bits_a <= 8)
        for (int code = 0; code < 1 << f->bits_a; code++)
            job->a_lut[code] = format_decode(l->a_dtype, (uint32_t)code, FORMAT_NUMBER);
}

static struct epilogue make_epilogue(const struct hum_gemm_args *args, const struct facts *f)
{
    const struct hum_layer_config *l = args->layer;
    const struct hum_weights *w = args->weights;
    const float *scale = w->weight_scale.data, *scale_2 = w->weight_scale_2.data;
    const bool channel_2 = l->weight_scale_2_type == HUM_SCALE_2_CHANNEL;
    struct epilogue e = {.c_dtype = l->c_dtype, .f16_accum = args->compute->use_f16_accum};

    if (f->fused && f->is_int)
        e.power = scale + f->padded_groups * l->shape_n;
    if (f->input_scale_epilogue)
        e.input_scale = args->input_scale.data;
    if (f->has_tensor_factor)
        e.tensor = l->weight_scale_type == HUM_SCALE_TENSOR ? scale
                   : channel_2                              ? scale_2 + l->shape_n
                                                            : scale_2;
    if (f->has_channel_factor)
        e.channel = l->weight_scale_type == HUM_SCALE_CHANNEL ? scale : scale_2;
    e.bias = w->bias.data;
    return e;
}

/* Rows that keep the activations, and all accumulators, near CHUNK_FLOATS. */
static int64_t chunk_rows(const struct job *job)
{
    const int64_t a_row = job->a_stride, acc_row = (3 * job->warps + job->slices) * job->block_n;
    const int64_t rows = smaller(MAX_ROWS, CHUNK_FLOATS / (a_row > acc_row ? a_row : acc_row));

    return smaller(job->m, rows < 12 ? 12 : rows / 6 * 6);
}

static void fill_steps(const struct hum_tuning_config *t, struct job *job)
{
    int64_t step = job->flush_k ? job->flush_k : t->warp_k;

    job->warps = t->block_k / t->warp_k;
    if (!job->flush_k && job->warps == 1 && job->slices == 1)
        step = STEP_K;
    job->step_k = smaller(step, STEP_K);
}

static void fill_job(const struct cpu *cpu, const struct hum_gemm_args *args, struct job *job)
{
    const struct hum_layer_config *l = args->layer;
    const int64_t m = args->inputs.shape[0];

    *job = (struct job){.args = args, .ops = cpu->ops, .facts = config_facts(l), .m = m};
    job->order = order_make(l, args->tuning, m);
    job->epilogue = make_epilogue(args, &job->facts);
    job->f16_accum = args->compute->use_f16_accum;
    job->block_n = smaller(BLOCK_N, args->tuning->block_n);
    job->flush_k = config_flush_k(l, args->tuning->warp_k);
    job->slices = order_most_slices(&job->order);
    fill_steps(args->tuning, job);
    job->input_scale = args->input_scale.data;
    job->scale_row_stride = job->facts.input_groups;
    job->scale_group_stride = 1;
    if (args->compute->use_m_major_input_scale) {
        job->scale_row_stride = 1;
        job->scale_group_stride = (m + 3) / 4 * 4;
    }
    /* Not a multiple of a page: rows of one column of k would share a set of the cache. */
    job->a_stride = (job->facts.k + 15) / 16 * 16 + 16;
    job->chunk = chunk_rows(job);
    fill_tables(l, &job->facts, job);
}

/* One thread's columns. */
struct slab {
    const struct job *job;
    struct work work;
    int64_t begin, end;
    pthread_t thread;
    bool started;
};

static void run_slab(const struct slab *s)
{
    for (int64_t row = 0; row < s->job->m; row += s->job->chunk)
        job_chunk(s->job, &s->work, row, smaller(s->job->chunk, s->job->m - row), s->begin, s->end);
}

static void *thread_main(void *slab)
{
    run_slab(slab);
    return NULL;
}

static bool reserve(struct cpu *cpu, size_t bytes)
{
    if (bytes <= cpu->memory_bytes)
        return true;
    free(cpu->memory);
    cpu->memory = aligned_alloc(64, bytes);
    cpu->memory_bytes = cpu->memory ? bytes : 0;
    return cpu->memory;
}

/* Slab 0 runs here, as does one whose thread cannot be started. */
static void run_slabs(struct slab *slabs, int64_t count)
{
    for (int64_t i = 1; i < count; i++)
        slabs[i].started = pthread_create(&slabs[i].thread, NULL, thread_main, &slabs[i]) == 0;
    for (int64_t i = 0; i < count; i++)
        if (!slabs[i].started)
            run_slab(&slabs[i]);
    for (int64_t i = 1; i < count; i++)
        if (slabs[i].started)
            (void)pthread_join(slabs[i].thread, NULL);
}

/* No more threads than blocks, and enough work for each. */
static int64_t thread_count(const struct cpu *cpu, const struct job *job, int64_t blocks)
{
    const double work = (double)job->m * (double)job->facts.n * (double)job->facts.k;
    const double worth = 1.0 + work / MIN_THREAD_WORK;
    const int64_t most = smaller(blocks, cpu->threads);

    return worth < (double)most ? (int64_t)worth : most;
}

/* The slabs and their work lie in the handle's memory. */
enum hum_code forward_run(struct cpu *cpu, const struct hum_gemm_args *args,
                          char reason[HUM_REASON_BYTES])
{
    struct job job;
    struct work unused;
    int64_t count, blocks;
    size_t slab_bytes, each;
    struct slab *slabs;

    if (args->inputs.shape[0] == 0)
        return HUM_OK;
    fill_job(cpu, args, &job);
    blocks = args->layer->shape_n / job.block_n;
    count = thread_count(cpu, &job, blocks);
    each = work_layout(&job, NULL, &unused);
    slab_bytes = ((size_t)count * sizeof *slabs + 63) / 64 * 64;
    if (!reserve(cpu, slab_bytes + (size_t)count * each))
        return refuse(reason, HUM_NO_MEMORY, "there is no memory for decoded operands");
    slabs = cpu->memory;
    for (int64_t i = 0; i < count; i++) {
        slabs[i] = (struct slab){.job = &job,
                                 .begin = i * blocks / count * job.block_n,
                                 .end = (i + 1) * blocks / count * job.block_n};
        (void)work_layout(&job, (char *)cpu->memory + slab_bytes + (size_t)i * each,
                          &slabs[i].work);
    }
    run_slabs(slabs, count);
    return HUM_OK;
}
