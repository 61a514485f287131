/* ops_sum.h - what a weighted sum may do wrong.
 *
 * Private to ops_sum.c and ops_rows.c. */
#ifndef HARNESS_EXPLAIN_OPS_SUM_H
#define HARNESS_EXPLAIN_OPS_SUM_H

/* clang-format off */
enum ops_sum_kind {
    SUM_TRUNCATE = 1,   /* the result is cut off */
    SUM_WEIGHT_TIMES,   /* the weight is applied n times; 2: RN(RN(x w) w) */
    SUM_WEIGHT_SQUARED, /* RN(x RN(w w)) */
    SUM_WEIGHT_ROUNDED, /* the weight is rounded to the output format first */
    SUM_WEIGHT_OF_SLOT, /* the weight of slot j + n, of the same token (cyclic) */
    SUM_WEIGHT_OF_TOKEN, /* the weights of token t + n, where there is one */
    SUM_LOST,           /* slot n is left out; -1: the last one */
    SUM_LOST_COUNTED,   /* the last (-1) or first (0) slot that is counted is left out */
    SUM_NARROW,         /* every partial sum is rounded: to T (n 0), bf16 (1), f16 (2) */
    SUM_NARROW_PRODUCT, /* products are rounded, likewise */
    SUM_FUSED,          /* RN(acc + x w) */
    SUM_WIDE,           /* sums and products in binary64, rounded to f32 once */
    SUM_REVERSED,
    SUM_PAIRWISE,       /* even slots and odd slots apart, then together */
    SUM_COUNTED,        /* negative ids count */
    SUM_COUNTED_AS_0,   /* negative ids count as expert 0 of the map */
    SUM_MAP_IGNORED,    /* a negative index of the map counts */
    SUM_IDS_IGNORED,    /* everything counts */
    SUM_GLOBAL,         /* an expert whose index in the map is not its id is left out */
    SUM_ZERO_LEFT_OUT,  /* id 0 is left out, too */
    SUM_EMPTY_KEPT,     /* a token without entries is not written */
    SUM_TAIL_KEPT,      /* columns behind the last multiple of n are not written */
    SUM_ROW_BEFORE      /* rows after the first hold the results of the row before */
};
/* clang-format on */

#endif
