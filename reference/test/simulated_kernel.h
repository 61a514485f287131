/* simulated_kernel.h - problems with random data, and a kernel that computes them as a ref_accum
 * says: for tests of bounds.
 *
 * Written from docs/semantics.md; the arithmetic inside a chain is IEEE in plain C, or tc_run.
 * Operands, flush factors and the epilogue are those of gemm.h.
 */
#ifndef REFERENCE_TEST_SIMULATED_KERNEL_H
#define REFERENCE_TEST_SIMULATED_KERNEL_H

#include "reference/bound.h"
#include "reference/tensor_core.h"

enum { M = 40, N = 6, K_MAX = 1024 };

/* What the activations look like. */
enum look { NORMAL, POSITIVE, OUTLIERS, TINY };

/* One problem and the order in which a simulated kernel computes it. */
struct setup {
    const char *name;
    const char *a, *b, *c, *bs;
    enum ref_scale scale;
    int k, group, input_group;
    bool f16_accum, int_scale;
    int sm; /* 0: IEEE */
    enum tc_instruction instruction;
    int instruction_k;
    int64_t block_k, warp_k, flush_k;
    int slices;
    bool ordered;
    enum look look;
    int taken_out; /* weights are stored as w 2^-taken_out */
};

extern const struct setup setups[];
extern const int setup_count;

/* The setup of that name; aborts the test if there is none. */
struct setup setup_named(const char *name);

struct problem {
    struct ref_gemm p;
    struct ref_accum s;
    uint16_t a_codes[M * K_MAX], bias[N];
    uint8_t b_codes[N * K_MAX];
    uint32_t bs_codes[N * K_MAX / 32];
    float input_scale[M * K_MAX / 32];
    int32_t s_int[N * K_MAX / 32];
    float a[M * K_MAX], w[N * K_MAX];
    float int_factor;
    int taken_out;
};

/* Allocated; the caller frees it. */
struct problem *problem_make(const struct setup *u, uint64_t seed);

/* The problem as bound.h takes it, all rows; with or without its order. */
struct ref_bound problem_bound(const struct problem *q, bool order_known);

/* One output that is being computed. */
struct kernel {
    const struct problem *q;
    int64_t row, col;
    const float *a, *w;
};

struct kernel kernel_of(const struct problem *q, int64_t row, int64_t col);

/* c after the products [begin, end) in one chain; the accumulator of a warp of a slice; an output
 * (the seed chooses the order of slices that are not ordered). */
double kernel_chain(const struct kernel *x, int64_t begin, int64_t end, double c);
double kernel_warp(const struct kernel *x, int64_t w, int slice);
double kernel_output(const struct kernel *x, uint64_t seed);

#endif
