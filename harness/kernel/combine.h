/* combine.h - from lists of values to combinations: all, a random sample, or enough for every pair.
 *
 * Pure: deterministic in its inputs, no I/O. What is allowed is asked while a combination is built,
 * so that whole branches are cut and impossible pairs are proved impossible instead of tried out.
 */
#ifndef HARNESS_KERNEL_COMBINE_H
#define HARNESS_KERNEL_COMBINE_H

#include "harness/config/suite.h"

struct combine_in {
    const struct axis_values *axes; /* AX_COUNT lists, of at least one value, no duplicates */
    uint64_t seed;
    struct arena *arena; /* scratch; nothing in it is needed afterwards */
    void *context;       /* of the three functions */

    /* Do the axes of the set `known` break a rule, whatever the others are? Then *blame is a subset
     * of `known` whose values alone break it (the smaller, the faster the search). With all axes
     * known, false means that v is allowed. Axes of v that are not in `known` are undefined. The
     * answer was false for `known` without `fresh`: rules that no fresh axis touches hold. */
    bool (*broken)(const int64_t v[AX_COUNT], uint64_t known, uint64_t fresh, uint64_t *blame,
                   void *context);

    /* Called after each `broken` that was true: so many combinations fall with it (saturating).
     * NULL: nobody counts. */
    void (*dropped)(size_t combinations, void *context);

    /* Takes an allowed combination, in a fixed order; false stops everything (memory). */
    bool (*emit)(const int64_t v[AX_COUNT], void *context);
};

enum combine_end {
    COMBINE_DONE,
    COMBINE_STOPPED,   /* `emit` returned false */
    COMBINE_NO_MEMORY, /* the arena is too small; some may have been emitted */
    COMBINE_TOO_MANY   /* `full` only: COMBINE_MAX_ASKED questions were not enough */
};

enum { COMBINE_MAX_ASKED = 50 * 1000 * 1000 };

/* Calls `emit` with each combination.
 *   full      the cartesian product, first axis slowest, less what is not allowed
 *   pairwise  every pair of values of every two axes that occurs in some allowed combination occurs
 *             (greedy: a small set, not the smallest); pairs that never occur are left out. The
 *             effort for one pair is bounded: *gaps counts the pairs for which it did not decide,
 *             and is 0 when coverage is complete
 *   random    `count` distinct allowed ones; fewer if there are no more
 * The product may be astronomically large for pairwise and random: neither enumerates it. `gaps`
 * may be NULL. */
MUST_USE enum combine_end combine_run(const struct combine_in *in, enum combine how, size_t count,
                                      size_t *gaps);

#endif
