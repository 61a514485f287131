/* bound_chain.h - chains of bound.h: prefix ranges of many rows at once, and how far a kernel's
 * chain may err.
 *
 * Private to bound.c. Formulas and sources: bound.h.
 */
#ifndef REFERENCE_BOUND_CHAIN_H
#define REFERENCE_BOUND_CHAIN_H

#include "reference/accum.h"
#include "reference/gemm.h"

enum {
    BOUND_ROWS = 32, /* rows that are computed together: the vectorized direction */
    BOUND_TILE = 64  /* k of one transposed tile */
};

/* The arithmetic of a chain. */
struct bound_unit {
    bool exact; /* integers */
    bool any_order;
    bool emulated;              /* k in the order of the emulation */
    bool subnormals;            /* e_min of the operands can raise the alignment exponent */
    int64_t block;              /* k of a step that costs per_block */
    double per_term, per_block; /* log(1 + d) */
    double tiny;                /* absolute error of a block, and of an addition, by underflow */
    double u;                   /* roundoff of an addition of accumulators */
    double largest;             /* finite accumulator */
};

struct bound_unit bound_unit_of(const struct ref_gemm *p, const struct ref_accum *s);

/* Operands of one column and BOUND_ROWS rows. */
struct bound_operands {
    const float *w;
    double w_max;          /* largest |w| */
    double a_norm, w_norm; /* below these an operand may be subnormal; w_norm 0: no weight is */
    int rows;
    const float *a[BOUND_ROWS]; /* all are set: those behind `rows` repeat one */
    double raised[BOUND_ROWS];  /* 2^E is at most this where a subnormal operand takes part */
};

/* Fills all but rows, a and raised; then, rows and a being set, raised. */
void bound_operands_column(struct bound_operands *o, const struct ref_gemm *p, const float *w);
void bound_operands_rows(struct bound_operands *o, int64_t k);

/* A tile of A, transposed, and of w; zero where there is nothing. */
struct bound_tile {
    float a[BOUND_TILE * BOUND_ROWS], w[BOUND_TILE];
    int place[BOUND_TILE]; /* where k lies in the tile */
    int len;               /* a multiple of 4 */
};

void bound_tile_init(struct bound_tile *t, const struct bound_unit *u);

/* All zero: an empty chain. */
struct bound_chain {
    double sum[BOUND_ROWS];
    double low[BOUND_ROWS], high[BOUND_ROWS]; /* of the prefix sums; in any order: 0, and A */
    int64_t terms, blocks;
};

/* k [begin, end) more. */
void bound_chain_extend(struct bound_chain *chain, const struct bound_unit *u,
                        const struct bound_operands *o, int64_t begin, int64_t end,
                        struct bound_tile *t);

/* What bounds a partial sum or 2^E of row r: R (or A), and what subnormal operands can do. */
double bound_chain_reach(const struct bound_chain *chain, const struct bound_unit *u,
                         const struct bound_operands *o, int r);

/* The error at the end is at most growth * reach + floor: the kernel's, and that of our own sum in
 * double. */
struct bound_error {
    double growth, floor;
};
struct bound_error bound_chain_error(const struct bound_chain *chain, const struct bound_unit *u);

#endif
