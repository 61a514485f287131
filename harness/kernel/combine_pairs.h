/* combine_pairs.h - the two memories of combine.c: which pairs are still to be covered, which rows
 * were taken.
 */
#ifndef HARNESS_KERNEL_COMBINE_PAIRS_H
#define HARNESS_KERNEL_COMBINE_PAIRS_H

#include "harness/config/suite.h"
#include "harness/kernel/legal.h"

/* The values of all axes with several of them are numbered in one row, axis by axis; bit (i, j) of
 * a symmetric matrix says that the pair of values i and j is wanted. Pairs within an axis never
 * are. */
struct combine_pairs {
    uint64_t *wanted;
    size_t values;             /* rows and columns */
    size_t words;              /* 64-bit words of a row */
    size_t next;               /* no row before this one has a wanted pair */
    size_t base[AX_COUNT + 1]; /* number of an axis' first value; base[AX_COUNT] is `values` */
    uint32_t chosen[AX_COUNT]; /* the row being built: indices of values */
};

struct combine_pair {
    enum axis_id x, y;
    uint32_t x_value, y_value; /* indices of values */
};

/* All pairs of the `variable` axes are wanted. false: no memory. */
bool pairs_init(struct combine_pairs *p, const struct axis_values *lists, uint64_t variable,
                struct arena *arena);
/* The first wanted pair; false: none. */
bool pairs_next(struct combine_pairs *p, struct combine_pair *out);
/* How many wanted pairs `value` of x makes with the chosen values of the axes in `with`. */
uint32_t pairs_gain(const struct combine_pairs *p, enum axis_id x, uint32_t value, uint64_t with);
/* No longer wanted: all pairs of the chosen values of `variable` axes; one pair; all with one
 * value. */
void pairs_cover(struct combine_pairs *p, uint64_t variable);
void pairs_clear(struct combine_pairs *p, const struct combine_pair *pair);
void pairs_clear_value(struct combine_pairs *p, enum axis_id x, uint32_t value);

/* A set of at most `rows` rows of value indices. */
struct combine_seen {
    uint32_t (*rows)[AX_COUNT];
    size_t *slots; /* open addressing: 0 is empty, else 1 + index into rows */
    size_t slot_count, count, limit;
};

bool seen_init(struct combine_seen *s, const struct axis_values *lists, size_t rows,
               struct arena *arena);
/* false: was there before, or the set is full. */
bool seen_add(struct combine_seen *s, const uint32_t row[AX_COUNT]);

#endif
