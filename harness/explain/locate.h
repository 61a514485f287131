/* locate.h - where the wrong elements lie, in one sentence an axis: ends, residues, tiles. */
#ifndef HARNESS_EXPLAIN_LOCATE_H
#define HARNESS_EXPLAIN_LOCATE_H

#include "harness/explain/explain.h"

#include <stddef.h>

/* A length with which a pattern may repeat, "of every 128 columns (block_n)". */
struct period {
    int64_t length;
    const char *name; /* NULL: a power of two */
};

/* Indices of one axis. */
struct axis_set {
    const char *one, *many; /* "row", "rows" */
    int64_t count;          /* of the axis */
    const bool *wrong;      /* count */
    const bool *seen;       /* count: of which something was looked at; NULL: all */
    const struct period *periods;
    int period_count;
};

/* "all 17 rows", "the last row (16)", "columns 96 to 103 of every 128 (block_n)"; `buf` is
 * returned. */
const char *locate_axis(const struct axis_set *s, char *buf, size_t size);

struct periods {
    const struct period *rows, *columns;
    int row_count, column_count;
};

/* One sentence a part of a probe that has wrong elements (EXPLAIN_WHERE). Memory: the rest of
 * x->scratch. */
void locate_probe(struct explain *x, const struct probe *p, const struct periods *periods);

#endif
