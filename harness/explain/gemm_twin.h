/* gemm_twin.h - a second, small kernel in which one step can be done wrong.
 *
 * Computes outputs of a GEMM one by one, in the order that the provider states (semantics.md
 * sections 4 to 6, IEEE operations), from operands that the oracle makes. A mistake changes the
 * inputs that the kernel believes to have, or one of the steps below; without one, the outputs are
 * those of kernels that sum in IEEE arithmetic, and of all kernels where sums are exact.
 *
 * Columns called `gcol` are numbered through all experts, `col` is a column of the output.
 */
#ifndef HARNESS_EXPLAIN_GEMM_TWIN_H
#define HARNESS_EXPLAIN_GEMM_TWIN_H

#include "harness/explain/hypothesis.h"
#include "harness/kernel/order.h"
#include "harness/kernel/problem.h"

/* What a probe of a GEMM was: all of it lives as long as the explanation. */
struct gemm_probe {
    const struct problem *q;
    struct hum_layer_config layer;
    struct hum_compute_config compute;
    struct hum_tuning_config tuning;
    struct routing_tensors routing;
    struct launch launch;  /* points at the members above */
    int64_t rows;          /* of the output */
    uint16_t poison;       /* of outputs before the launch */
    const bool *unwritten; /* rows x n: kept what was there, under two poisons; NULL: none did */
};

static inline const struct gemm_probe *gemm_of(const struct probe *p)
{
    return p->own;
}

/* Where a rounding to the output format takes place. */
enum twin_rounding {
    ROUND_SUM,   /* of the accumulator times its factor */
    ROUND_FINAL, /* of the channel scale and the bias */
    ROUND_SLICES /* of the sum of slices */
};

/* h s + bias; with two roundings (h + bias) s, one rounding of that, or h s + RN(bias s). */
enum twin_bias { BIAS_STATED, BIAS_SCALED, BIAS_SCALED_ONCE, BIAS_SCALED_APART };

/* Slices are added 0, 1, 2, ...; or n - 1, ..., 0; or 0, n - 1, ..., 1. */
enum twin_slices { SLICES_STATED, SLICES_BACKWARDS, SLICES_BACKWARDS_BUT_0 };

enum twin_accumulator { ACCUMULATOR_STATED, ACCUMULATOR_F16, ACCUMULATOR_F32 };

/* In the order of a product. NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding) */
struct twin {
    const struct gemm_probe *g;
    const struct probe *probe;
    const struct problem *q;
    struct arena *arena;
    struct ref_gemm ref; /* what the kernel reads. Arrays that change are copies in `arena` */
    int64_t variant;
    bool none;          /* the mistake has no meaning here */
    const int64_t *map; /* the mistake's own: a number an output row */

    /* ---- steps; NULL: as they should be ---- */

    /* Places: whose result lands in (*row, *col) of the output (false: nothing does); the expert
     * of an output row (below 0: it is not written); its row of A and of the input scales. */
    bool (*place)(const struct twin *t, int64_t *row, int64_t *col);
    int64_t (*expert)(const struct twin *t, int64_t row);
    int64_t (*a_row)(const struct twin *t, int64_t row);
    int64_t (*scale_row)(const struct twin *t, int64_t row);

    /* Operands: whose scale and zero point weight (*gcol, *l) has; the operand as a function of
     * code, zero point and scale (of format a, or 1 where it acts elsewhere); the k operands of a
     * column as a whole, and the activations of a row, both copies. */
    void (*scale_at)(const struct twin *t, int64_t *gcol, int64_t *l);
    void (*zero_at)(const struct twin *t, int64_t *gcol, int64_t *l);
    double (*weight)(const struct twin *t, uint32_t code, double zero, double scale);
    void (*weights)(const struct twin *t, int64_t gcol, float *w);
    void (*activations)(const struct twin *t, int64_t arow, float *a);
    double (*scale_value)(const struct twin *t, int64_t gcol, double scale); /* as it was decoded */

    /* Sums. */
    int (*times)(const struct twin *t, int64_t row, int64_t col, int64_t l); /* k is added */
    double (*narrow)(const struct twin *t, double sum);  /* after each addition, */
    bool narrow_instruction;                             /* or after each instruction */
    bool (*reversed)(const struct twin *t, int64_t row); /* k falls inside an instruction */
    bool (*loses_warp)(const struct twin *t, int64_t warp, int64_t warps);
    bool (*loses)(const struct twin *t, int64_t row, int64_t col, int slice);
    double (*carry)(const struct twin *t, int64_t row, int64_t col, int slice); /* more to add */
    int64_t flush_k, warp_k;                                                    /* 0: as stated */
    enum twin_accumulator accumulator;
    bool flush_apart, saturate_int, warps_in_line, opposite_is_zero;
    enum twin_slices slices;

    /* The epilogue. */
    double (*sum)(const struct twin *t, double x); /* of a slice, before its factor */
    double (*round)(const struct twin *t, enum twin_rounding where, double x); /* to c */
    double (*finish)(const struct twin *t, double x);                          /* the output */
    int64_t (*second_at)(const struct twin *t, int64_t gcol); /* whose weight_scale_2 */
    int64_t (*bias_at)(const struct twin *t, int64_t gcol);
    bool (*has_bias)(const struct twin *t, int64_t col, int slice);
    const struct dtype *bias_type; /* as its bits are read */
    int bias_times;
    enum twin_bias bias_order;
    bool no_second, no_channel, no_input_scale;

    /* ---- made from the above by twin_predict ---- */
    struct ref_epilogue epilogue;
    int32_t *s_int;
    float int_factor;
    const float *a;
    const struct dtype *f16, *f32;
    struct order order; /* of the place asked for last */
    bool has_order;
};

/* The mistake: changes a twin that is right. */
struct twist {
    void (*make)(struct twin *t);
};

/* hypothesis.predict of rows whose `own` is a struct twist. */
bool twin_predict(const struct hypothesis *h, const struct probe *p, int64_t variant,
                  const struct places *at, uint32_t *codes, struct arena *scratch);

/* The right outputs of all places; false: memory is out. */
bool twin_right(const struct probe *p, uint32_t *codes, struct arena *scratch);

/* For mistakes that are read off the outputs: after it, twin_output of an output that is right but
 * for what the twin has been told. False: memory is out. */
bool twin_complete(struct twin *t);
uint16_t twin_output(const struct twin *t, int64_t row, int64_t col);

/* The accumulator of one slice of output (row, col), before its epilogue. */
double twin_sum(const struct twin *t, int64_t row, int64_t col, int slice);

/* A writable copy of an array of `ref`; sets t->none where memory is out (and returns NULL). */
void *twin_copy(struct twin *t, const void *array, size_t count, size_t size);

/* ---- gemm_operand.c: pieces ------------------------------------------------------------------ */

static inline int64_t twin_group_of(const struct twin *t, int64_t l)
{
    return t->ref.group ? l / t->ref.group : 0;
}
static inline uint32_t twin_code(const struct twin *t, int64_t gcol, int64_t l)
{
    return t->ref.b_codes[gcol * t->ref.k + l] & ((1u << t->ref.b->bits) - 1);
}
/* Is the weight scale multiplied into the operand? */
static inline bool twin_scales_operand(const struct ref_gemm *p)
{
    return ref_scales_operand(p);
}

/* The weight scale as stored, and the zero point (2^(bits - 1), of floats 0, where there is none),
 * that weight (gcol, l) is given. */
double twin_scale(const struct twin *t, int64_t gcol, int64_t l);
double twin_zero(const struct twin *t, int64_t gcol, int64_t l);
/* The value of a weight code before zero point and scale (q of integers). */
double twin_raw(const struct twin *t, uint32_t code);
/* RN_a where the operand has 16 bits, else the number itself. */
double twin_to_a(const struct twin *t, double x);

/* The k operands of a column. */
void twin_weights(const struct twin *t, int64_t gcol, float *w);

/* What a flush multiplies by, and section 5's factor, channel scale and bias. */
double twin_flush_factor(const struct twin *t, int64_t arow, int64_t gcol, int64_t l);
double twin_epilogue(const struct twin *t, int64_t arow, int64_t gcol, double x, int slice);

/* Fused e8m0: the base of a column; the scale code of (gcol, l). */
int twin_fused_base(const struct twin *t, int64_t gcol);
int twin_fused_code(const struct twin *t, int64_t gcol, int64_t l);

#endif
