/* gemm_variants.h - which variants of a mistake are worth trying: read off the wrong outputs.
 *
 * A variant that is a place is a number k * (n + 1) + column + 1, or with column + 1 = 0 the same
 * place of all columns; n is that of one expert, and a place is the same in all experts.
 */
#ifndef HARNESS_EXPLAIN_GEMM_VARIANTS_H
#define HARNESS_EXPLAIN_GEMM_VARIANTS_H

#include "harness/explain/gemm_twin.h"

/* 0, 1, ..., count - 1. */
int64_t gemm_count_up(int64_t count, int64_t out[HYPOTHESIS_VARIANTS]);

/* The columns that are wrong somewhere, ascending: the first `most`. Returns how many they are, or
 * most + 1 if there are more. */
int64_t gemm_wrong_columns(const struct probes *all, int64_t *out, int64_t most);

/* The k that read-outs get wrong, ascending; without a wrong read-out every k. */
int64_t gemm_wrong_k(const struct probes *all, int64_t *out, int64_t most);

/* The only k that read-outs of a column get wrong; -1: none, or several. */
int64_t gemm_wrong_k_of(const struct probes *all, int64_t col);

/* Places at those k (and, with `before`, the k before each), in the one column that is wrong, or
 * in all. */
int64_t gemm_places(const struct probes *all, bool before, int64_t out[HYPOTHESIS_VARIANTS]);

int64_t gemm_variants_2(const struct probes *all, int64_t out[HYPOTHESIS_VARIANTS]);
int64_t gemm_variants_3(const struct probes *all, int64_t out[HYPOTHESIS_VARIANTS]);
int64_t gemm_variants_4(const struct probes *all, int64_t out[HYPOTHESIS_VARIANTS]);
int64_t gemm_variants_5(const struct probes *all, int64_t out[HYPOTHESIS_VARIANTS]);

static inline int64_t place_k(const struct twin *t)
{
    return t->variant / (t->ref.n + 1);
}
/* Is a column (of all experts) in the place? */
static inline bool place_has(const struct twin *t, int64_t gcol)
{
    int64_t col = t->variant % (t->ref.n + 1) - 1;

    return col < 0 || gcol % t->ref.n == col;
}

/* "at k = 12 of column 5". */
void gemm_place_detail(const struct hypothesis *h, const struct probe *p, int64_t variant,
                       char buf[HYPOTHESIS_DETAIL]);

/* "column 5". */
void gemm_column_detail(const struct hypothesis *h, const struct probe *p, int64_t variant,
                        char buf[HYPOTHESIS_DETAIL]);

#endif
