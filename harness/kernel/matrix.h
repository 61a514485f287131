/* matrix.h - the support matrix: every combination of formats, scales, zero points, gemm type and
 * instruction that is legal and that a compute capability can run, and which of them cases cover.
 *
 * A combination is a value for each of matrix_axes. It is legal if the legality table (legal.h)
 * allows it for a product of n 256 and k 512 whose other axes have their defaults ("auto" as in
 * plan_resolve.h), with four experts where gemm_type asks for some. Which formats an instruction
 * takes on which compute capability is upstream Humming's table.
 */
#ifndef HARNESS_KERNEL_MATRIX_H
#define HARNESS_KERNEL_MATRIX_H

#include "harness/config/axes.h"
#include "harness/core/arena.h"

enum { MATRIX_AXES = 8 };
extern const enum axis_id matrix_axes[MATRIX_AXES];

struct matrix_row {
    uint64_t key; /* values of matrix_axes, eight bits each, the first in the highest */
    bool covered;
};

struct matrix {
    int sm;                  /* compute capability: 90 for 9.0 */
    struct matrix_row *rows; /* by key */
    size_t count;
    struct arena *arena;
};

static inline int64_t matrix_value(uint64_t key, int place)
{
    return (int64_t)(key >> (56 - 8 * place) & 255);
}

/* All combinations of a compute capability, none covered; of an unknown one there are none. False:
 * no memory. */
bool matrix_make(int sm, struct arena *arena, struct matrix *out);

/* Marks the combination of a case (its axes resolved). An mma_type of "auto" is taken for wgmma
 * where there is one and for mma elsewhere, upstream's default. False: the case is of no
 * combination, being of another family or beyond this compute capability. */
bool matrix_cover(struct matrix *m, const int64_t v[AX_COUNT]);

/* Of the different values that the axes in `places` (bit i: matrix_axes[i]) take together: how many
 * there are, and how many of them occur in a covered combination. `lost`, if not NULL, is called
 * for each that does not; `key` has 0 in the other places. False: no memory. */
struct matrix_share {
    size_t covered, all;
};
bool matrix_count(const struct matrix *m, unsigned places, struct matrix_share *out,
                  void (*lost)(uint64_t key, void *context), void *context);

#endif
