/* fault_effects.h - the longer faults of the GEMM, and those that need to remember something.
 *
 * In a build without HUMCHECK_FAULTS nothing here exists: calls stand behind FAULT() or inside
 * FAULT_EFFECT(). A function that returns bool and is not described otherwise returns true when a
 * fault that is switched on has done the step in its way, so that the right one is left out. */
#ifndef KERNELS_CPU_FAULT_EFFECTS_H
#define KERNELS_CPU_FAULT_EFFECTS_H

#include "kernels/abi/humming.h"

#ifdef HUMCHECK_FAULTS
#define FAULT_EFFECT(call) (call)
#define FAULT_ROOM(args)   fault_room(args)
#else
#define FAULT_EFFECT(call) false
#define FAULT_ROOM(args)   0
#endif

struct dequantize;
struct flush;
struct job;
struct multiply;
struct routed_row;
struct routing;
struct run;
struct segment;

/* ---- weights ---- */

bool fault_e8m0(int code, float *value);
int64_t fault_interleaved(int64_t n); /* the place in the order 0 2 4 6 1 3 5 7 of each eight */
bool fault_zero_points(const struct hum_tensor *t); /* HUM_F32, changed in place */
bool fault_bias(const struct hum_layer_config *layer, int64_t n, const struct hum_tensor *in,
                float *out);
uint8_t fault_requantize(uint8_t code, int delta, const int twice[8]); /* ties to even */
bool fault_tables(const struct hum_layer_config *layer, float lut[256], float a_lut[256]);
bool fault_dequantize(const struct job *job, const struct dequantize *d);

/* ---- sums ---- */

int64_t fault_end_k(const struct job *job, int64_t row); /* where a row of A ends that runs on */
bool fault_multiply(const struct job *job, const struct multiply *t);
void fault_multiply_start(const struct job *job, const struct multiply *t, int64_t k_count);
void fault_flush(const struct flush *f, bool f16);         /* two roundings */
bool fault_flush_waits(const struct job *job, int64_t k1); /* k1 ends no group */
int32_t fault_saturate(int64_t sum);
void fault_reduce(const struct job *job, float *acc, int64_t tile, int64_t count); /* in order */
void fault_leak(float *x, int64_t rows, int64_t columns); /* 0 x the row before */

/* ---- what is written ---- */

float fault_truncate(int32_t c, float x);
void fault_bias_before_scale(int32_t c, const float *channel, const float *bias, int64_t count,
                             float *x);
bool fault_slice_lost(const struct job *job, int64_t tile);
bool fault_row_skipped(const struct job *job, const struct segment *segment,
                       const struct routed_row *row);

/* `columns` columns of the slices at h, h + tile, ...; `at` is the place in the outputs. */
bool fault_write_row(const struct job *job, float *h, int64_t tile, int64_t slices, int64_t at,
                     int64_t columns);

/* ---- calls ---- */

/* The number of the launch, from 0 on; `next`: another one begins. */
int64_t fault_launch(bool next);
bool fault_first_has_bias(const struct hum_layer_config *layer); /* of the first like it */
bool fault_after(const struct hum_gemm_args *args);              /* a product that has been done */

/* ---- experts ---- */

size_t fault_room(const struct hum_gemm_args *args); /* rows of a routing beyond the outputs' */
bool fault_run(const struct hum_gemm_args *args, int64_t i, bool last, struct run *run);
bool fault_has_token(const struct routing *r, int64_t token); /* in the segment in hand? */
bool fault_weights(const struct hum_gemm_args *args, struct hum_weights *weights);

#endif
