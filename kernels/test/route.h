/* route.h - routings for tests of products with experts: the tensors, and what they mean row by
 * row.
 *
 * Written from docs/semantics.md section 10 alone. Fails the running Check test when memory is out.
 */
#ifndef KERNELS_TEST_ROUTE_H
#define KERNELS_TEST_ROUTE_H

#include "kernels/test/sample.h"

enum route_kind {
    ROUTE_PLAIN,     /* every row has an expert */
    ROUTE_EMPTY,     /* no row has one */
    ROUTE_SINGLE,    /* one expert has all rows */
    ROUTE_DUPLICATE, /* indexed: all slots of a token have one expert */
    ROUTE_MISSING,   /* rows without experts: in blocks of -1, or nowhere; experts without rows */
    ROUTE_SPARE,     /* garbage behind the end; rows of A that nobody owns */
    ROUTE_KINDS
};

/* An output row. */
struct route_row {
    int64_t expert;                   /* -1: nothing is written */
    int64_t in;                       /* row of A */
    int64_t before, of_segment, tile; /* row tiles of the segments before, of its own; its tile */
};

struct route {
    struct route_row *rows; /* one an output row */
    int64_t row_tiles;      /* of all segments */
};

/* Sets the routing tensors of a sample whose configuration, m and top_k are final (grouped_masked:
 * m is a multiple of num_experts), and exactly as many locks as there are tiles; expert_layout is
 * int64 if `wide`. */
void route_make(struct sample *s, enum route_kind kind, bool wide, uint64_t *state,
                struct route *out);
void route_free(struct route *r);

/* The tile of output (row, col): its number (section 10), as a place of the dense product of as
 * many tiles, `row_tiles` times block_m rows and shape_n columns. */
void route_dense_place(const struct route *r, const struct sample *s, int64_t row, int64_t col,
                       int64_t *dense_row, int64_t *dense_col);

#endif
