/* left.h - what a run with a budget left out, for lack of time or because it was stopped. Cases
 * that were left out are no results: they appear here and nowhere else.
 */
#ifndef HARNESS_REPORT_LEFT_H
#define HARNESS_REPORT_LEFT_H

#include <stddef.h>

struct left_group {
    const char *family, *check;
    size_t cases; /* left out */
};

/* Values of an axis that some left-out case has and no case that ran. Axes of one value in the
 * whole plan are not listed. */
struct left_axis {
    const char *key;
    const char *const *values;
    size_t count;
};

struct left {
    const char *why; /* "for lack of time" */
    double budget_seconds;
    size_t cases, of;          /* left out, of the plan */
    size_t problems;           /* left out whole or in part */
    struct left_group *groups; /* with a case left out; those of a family are neighbours */
    size_t group_count;
    struct left_axis *axes; /* with such a value */
    size_t axis_count;
};

struct arena;

/* "left out for lack of time: 123 of 300 cases (gemm: exact 100, ...), never run: mma_type wgmma,
 * ...", of an axis at most 8 values; "" where nothing was left out; NULL: no memory. */
const char *left_line(const struct left *l, struct arena *arena);

#endif
