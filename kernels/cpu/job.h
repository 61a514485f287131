/* job.h - one product as all threads see it, and the work memory of one of them. */
#ifndef KERNELS_CPU_JOB_H
#define KERNELS_CPU_JOB_H

#include "kernels/cpu/config.h"
#include "kernels/cpu/order.h"
#include "kernels/cpu/routing.h"
#include "kernels/cpu/vector.h"

/* Constant while threads run. */
struct job {
    const struct hum_gemm_args *args;
    const struct vector_ops *ops;
    struct facts facts;
    struct order order;
    struct routing routing;
    const float *input_scale; /* (m, groups) or (groups, m), see strides */
    int64_t scale_row_stride, scale_group_stride;
    int64_t block_n; /* columns taken together: at most 64, within one tile */
    int64_t
        step_k; /* k taken together: at most STEP_K, within one warp's part and one flush period */
    int64_t flush_k; /* Q; 0: none */
    int64_t warp_k, warps;
    int64_t slices; /* most of any tile */
    int64_t chunk;  /* most rows taken together */
    int64_t a_stride;
    bool f16_accum;
    float lut[256];   /* weights by code, before zero points */
    float a_lut[256]; /* 8- and 4-bit activations by code */
};

/* One thread's. Tiles are (rows, block_n); every array is aligned to 64 bytes. */
struct work {
    float *a;       /* (chunk, a_stride): decoded activations */
    float *w;       /* (block_n / PANEL, STEP_K, PANEL) */
    float *factors; /* (chunk): input scales of one group */
    float *c0;      /* (warps) tiles: sums since the last flush; integers: since the last step */
    float *c1;      /* (warps) tiles: flushed sums */
    int32_t *i0;    /* (warps) tiles: integer sums since the last flush */
    int32_t *i1;    /* (warps) tiles: flushed integer sums */
    float *h;       /* (slices) tiles: finished slices, numbers of c */
};

/* Bytes of one thread's memory; with `memory` (aligned to 64) also deals it out. */
size_t work_layout(const struct job *job, void *memory, struct work *out);

/* Rows [row, row + rows) of a segment, of all columns [begin, end), whole blocks. */
void job_chunk(const struct job *job, const struct work *work, const struct segment *segment,
               int64_t row, int64_t rows, int64_t begin, int64_t end);

#endif
