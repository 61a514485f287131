/* hypothesis.h - what a kernel with one mistake would have returned; named only if it is exactly
 * that.
 *
 * A hypothesis predicts codes for a probe's inputs through the oracle's pieces. It holds if it
 * gives every element of every probe that the kernel gave, and at least two probes are wrong. So a
 * wrong hypothesis would have to agree with the kernel on all data that were tried; where several
 * do, none is named.
 */
#ifndef HARNESS_EXPLAIN_HYPOTHESIS_H
#define HARNESS_EXPLAIN_HYPOTHESIS_H

#include "harness/explain/probe.h"

enum { HYPOTHESIS_VARIANTS = 512, HYPOTHESIS_DETAIL = 160 };

/* Elements of a probe that are asked for, ascending. */
struct places {
    const int64_t *at;
    int64_t count;
};

struct probes {
    struct probe *items;
    int count; /* at least 1: the first is the failing case */
};

struct hypothesis {
    const char *name;     /* "group-index-minus-1": the cause in the catalogue of faults */
    const char *sentence; /* what the kernel does; a clause without the final period */
    /* 0: one certain mistake. 1: a description that several mistakes would fit; looked at only if
     * none of rank 0 holds. */
    int rank;
    /* Has this configuration the thing that the mistake is about? NULL: always. */
    bool (*applies)(const struct probe *p);
    /* The variants to try: numbers that mean the same in every probe (a column, how many k). They
     * may be read off the probes. Returns how many were written, at most HYPOTHESIS_VARIANTS.
     * NULL: one, of number 0. */
    int64_t (*variants)(const struct probes *all, int64_t out[HYPOTHESIS_VARIANTS]);
    /* codes[i] of element at->at[i], i < at->count. False: it says nothing about this probe (memory
     * is out, sizes too small); then it does not hold. Memory: the rest of `scratch`. */
    bool (*predict)(const struct hypothesis *h, const struct probe *p, int64_t variant,
                    const struct places *at, uint32_t *codes, struct arena *scratch);
    /* A clause about a variant, "the last 32 of 416 k"; NULL: none. */
    void (*detail)(const struct hypothesis *h, const struct probe *p, int64_t variant,
                   char buf[HYPOTHESIS_DETAIL]);
    const void *own; /* of the row, for the functions above */
};

struct hypotheses {
    const struct hypothesis *rows;
    int count;
};

enum hypothesis_fate {
    HYPOTHESIS_ABSENT,  /* does not apply */
    HYPOTHESIS_REFUTED, /* some element of some probe is another */
    HYPOTHESIS_OPEN,    /* time was up */
    HYPOTHESIS_HOLDS
};

struct hypothesis_result {
    enum hypothesis_fate fate;
    int64_t variant;       /* the first that holds */
    int64_t variants_held; /* how many do */
};

/* Tries all variants. Gives up at `deadline` (clock_us); 0: never. `scratch` is reset. */
struct hypothesis_result hypothesis_test(const struct hypothesis *h, const struct probes *probes,
                                         struct arena *scratch, double deadline);

#endif
