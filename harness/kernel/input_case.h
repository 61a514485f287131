/* input_case.h - one call of process_input for the oracle: what is asked, the values, the rows.
 *
 * Rows of inputs are m, columns of outputs k (inputs of a binary activation have 2 k). Values come
 * from the streams of reference/rng.h and are made so that roundings show: columns fall into units
 * that share a scale (a group, a row; 32 columns where the scale is given), each unit of one kind:
 *
 *   ties      the largest value is a power of two times the target's largest, so that the scale is
 *             a power of two; the others are codes, midpoints of codes, and midpoints +-1 code of
 *             the input format, under that scale
 *   random    sums of four uniform numbers, of one size a unit; the largest may stand at the border
 *   positive  the same, of one sign
 *   zeros     of either sign
 *   tiny      subnormal numbers of the input format
 *   huge      its largest numbers
 *
 * With an activation or a transform before the quantization only random, positive and zeros are
 * used. A given scale is a power of two for 16-bit inputs, any number for f32 (where a value with
 * the wanted product is looked for).
 */
#ifndef HARNESS_KERNEL_INPUT_CASE_H
#define HARNESS_KERNEL_INPUT_CASE_H

#include "harness/config/axes.h"
#include "harness/core/arena.h"
#include "harness/kernel/op_trial.h"
#include "reference/activation.h"
#include "reference/inputs.h"

/* What the values are for. */
enum input_data {
    INPUT_DATA_PLAIN,   /* as above */
    INPUT_DATA_SPECIAL, /* NaN, infinities, -0, subnormal and largest numbers among them */
    INPUT_DATA_ALL      /* every code of a 16-bit input format in turn; a given scale is 1 */
};

struct input_case {
    const struct dtype *in; /* of inputs */
    enum input_data data;
    uint64_t seed;
    struct ref_activation activation;
    int64_t width_in;         /* columns of inputs */
    int64_t hadamard;         /* block; 0: none */
    struct ref_input quant;   /* `values` NULL */
    struct ref_layout layout; /* with its arrays */
    struct ref_scale_places scales;
    const int64_t *source; /* out_rows: ref_layout_sources */
    uint8_t *inputs;       /* rows x width_in codes of `in`, as bytes in memory */
    float *x;              /* the same, as numbers */
};

/* Everything lives in `arena`. NULL, or a sentence: memory is out (the arena's limit). */
const char *input_case_make(const int64_t v[AX_COUNT], struct arena *arena, struct input_case *out);

/* Are values after the activation known from the inputs alone, bit for bit? Not for elementary
 * functions, nor where relu2 may meet a NaN. */
bool input_case_is_exact(const struct input_case *c);

/* rows x k values after an activation that is exact; NULL: memory is out. */
float *input_case_activate(const struct input_case *c, struct arena *arena);

/* What a call must leave in its outputs: a code an element, OP_KEPT where it is not written
 * (op_trial.h). Absent parts are NULL. */
struct input_want {
    uint32_t *codes;        /* out_rows x k */
    uint32_t *group_scales; /* ref_scale_count */
    uint32_t *token_scales; /* out_rows */
    uint64_t ties;          /* numbers that lie in the middle of two codes, over the input rows */
};

/* Arrays for it in which everything that is written is open. False: memory is out. */
bool input_want_make(const struct input_case *c, struct arena *arena, struct input_want *out);

/* values: rows x k after the activation; the transform is done on them, in place. `out` was made.
 * False: memory is out. */
bool input_want_fill(const struct input_case *c, float *values, struct arena *arena,
                     struct input_want *out);

#endif
