#include "kernels/cpu/forward.h"

#include "kernels/cpu/fault.h"
#include "kernels/cpu/fault_effects.h"
#include "kernels/cpu/format.h"
#include "kernels/cpu/job.h"
#include "kernels/cpu/tensors.h"

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

/* Weights: twice the value when fused with int8 (layout.h); integers are offset binary unless zero
 * points are subtracted. */
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
    (void)FAULT_EFFECT(fault_tables(l, job->lut, job->a_lut));
}

/* Rows that keep the activations, and all accumulators, near CHUNK_FLOATS. */
static int64_t chunk_rows(const struct job *job)
{
    const int64_t a_row = job->a_stride, acc_row = (3 * job->warps + job->slices) * job->block_n;
    const int64_t rows = smaller(MAX_ROWS, CHUNK_FLOATS / (a_row > acc_row ? a_row : acc_row));

    return smaller(job->routing.most_rows, rows < 12 ? 12 : rows / 6 * 6);
}

static void fill_steps(const struct hum_tuning_config *t, struct job *job)
{
    int64_t step;

    job->warp_k = t->warp_k;
    if (FAULT(TILE_DEPENDS_ON_M) && job->args->inputs.shape[0] > 16 && !job->flush_k &&
        t->warp_k == t->block_k && t->warp_k / 2 % job->facts.instruction_k == 0)
        job->warp_k /= 2;
    if (FAULT(FLUSH_EACH_INSTRUCTION) && job->flush_k % job->facts.instruction_k == 0)
        job->flush_k = job->flush_k ? job->facts.instruction_k : 0;
    step = job->flush_k ? job->flush_k : job->warp_k;
    job->warps = t->block_k / job->warp_k;
    if (!job->flush_k && job->warps == 1 && job->slices == 1)
        step = STEP_K;
    job->step_k = smaller(step, STEP_K);
}

static void fill_job(const struct cpu *cpu, const struct hum_gemm_args *args,
                     const struct routing *routing, struct job *job)
{
    const struct hum_layer_config *l = args->layer;
    const int64_t m = args->inputs.shape[0];
    int64_t k;

    *job =
        (struct job){.args = args, .ops = cpu->ops, .facts = config_facts(l), .routing = *routing};
    job->order = order_make(l, args->tuning, routing->row_tiles);
    job->f16_accum = args->compute->use_f16_accum && !FAULT(F32_ACCUMULATOR);
    job->block_n = smaller(BLOCK_N, args->tuning->block_n);
    job->flush_k = config_flush_k(l, args->tuning->warp_k);
    job->slices = order_most_slices(&job->order);
    fill_steps(args->tuning, job);
    job->input_scale = args->input_scale.data;
    job->scale_row_stride = job->facts.input_groups;
    job->scale_group_stride = 1;
    if (args->compute->use_m_major_input_scale && !FAULT(M_MAJOR_IGNORED)) {
        job->scale_row_stride = 1;
        job->scale_group_stride = (m + 3) / 4 * 4;
    }
    /* Not a multiple of a page: rows of one column of k would share a set of the cache. */
    k = FAULT(PADDED_K_CONTRIBUTES) ? l->shape_k : job->facts.k;
    job->a_stride = (k + 15) / 16 * 16 + 16;
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
    const struct job *job = s->job;

    for (int64_t i = 0; i < job->routing.segments; i++) {
        const struct segment *segment = &job->routing.segment[i];

        for (int64_t row = 0; row < segment->rows; row += job->chunk)
            job_chunk(job, &s->work, segment, row, smaller(job->chunk, segment->rows - row),
                      s->begin, s->end);
    }
}

static void *thread_main(void *slab)
{
    run_slab(slab);
    return NULL;
}

static bool reserve(struct buffer *buffer, size_t bytes)
{
    if (bytes <= buffer->bytes)
        return true;
    free(buffer->data);
    buffer->data = aligned_alloc(64, (bytes + 63) / 64 * 64);
    buffer->bytes = buffer->data ? bytes : 0;
    return buffer->data;
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
    const double work = (double)job->routing.rows * (double)job->facts.n * (double)job->facts.k;
    const double worth = 1.0 + work / MIN_THREAD_WORK;
    const int64_t most = smaller(blocks, cpu->threads);

    return worth < (double)most ? (int64_t)worth : most;
}

/* The slabs and their work lie in the handle's memory. */
static enum hum_code run_job(struct cpu *cpu, const struct job *job, char reason[HUM_REASON_BYTES])
{
    const int64_t blocks = job->args->layer->shape_n / job->block_n;
    const int64_t count = thread_count(cpu, job, blocks);
    struct work unused;
    const size_t each = work_layout(job, NULL, &unused);
    const size_t slab_bytes = ((size_t)count * sizeof(struct slab) + 63) / 64 * 64;
    struct slab *slabs;

    if (!reserve(&cpu->work, slab_bytes + (size_t)count * each))
        return refuse(reason, HUM_NO_MEMORY, "there is no memory for decoded operands");
    slabs = cpu->work.data;
    for (int64_t i = 0; i < count; i++) {
        slabs[i] = (struct slab){.job = job,
                                 .begin = i * blocks / count * job->block_n,
                                 .end = (i + 1) * blocks / count * job->block_n};
        (void)work_layout(job, (char *)cpu->work.data + slab_bytes + (size_t)i * each,
                          &slabs[i].work);
    }
    run_slabs(slabs, count);
    return HUM_OK;
}

enum hum_code forward_run(struct cpu *cpu, const struct hum_gemm_args *args,
                          char reason[HUM_REASON_BYTES])
{
    struct job job;
    struct routing routing;
    enum hum_code rc;

    if (args->inputs.shape[0] == 0)
        return HUM_OK;
    rc = routing_check(args, reason);
    if (rc)
        return rc;
    if (!reserve(&cpu->routing, routing_layout(args, NULL, &routing)))
        return refuse(reason, HUM_NO_MEMORY, "there is no memory for the routing of rows");
    (void)routing_layout(args, cpu->routing.data, &routing);
    rc = routing_fill(args, &routing, reason);
    if (rc)
        return rc;
    fill_job(cpu, args, &routing, &job);
    rc = tensors_check_locks(args, job.order.tiles, reason);
    if (rc || routing.rows == 0)
        return rc;
    (void)FAULT_EFFECT(fault_launch(true));
    rc = run_job(cpu, &job, reason);
    if (!rc)
        (void)FAULT_EFFECT(fault_after(args));
    return rc;
}
