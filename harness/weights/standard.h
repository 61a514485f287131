/* standard.h - one layer's weights in Humming's standard form, as plain codes.
 *
 * The form is that of kernels/abi/humming.h; the arrays are those of struct ref_gemm: one code
 * an element, row-major, with the experts in front. What a checkpoint held beyond the standard
 * form is counted here, never repaired in silence.
 */
#ifndef HARNESS_WEIGHTS_STANDARD_H
#define HARNESS_WEIGHTS_STANDARD_H

#include "reference/gemm.h"

#include <stddef.h>
#include <stdint.h>

struct standard {
    int64_t experts;       /* 0: dense, no expert dimension */
    int64_t n, k;          /* valid sizes of one matrix, at least 1 */
    const struct dtype *b; /* uintN (offset binary) or a weight row in which every code is finite */
    const struct dtype *bs; /* f16, bf16, e4m3, e8m0, or f32 (block, tensor) */
    enum ref_scale scale;
    enum ref_scale_2 scale_2; /* none or tensor */
    enum ref_zero zero;       /* none or integers */
    int64_t group;            /* along k; 0: one for all of k */
    int64_t group_n;          /* block scales along n; else 1 */

    uint8_t *codes;   /* n x k */
    uint32_t *scales; /* codes of bs: group n x groups, channel n, block ceil(n/group_n) x groups,
                       * tensor 1 */
    uint16_t *zeros;  /* n x groups integers; NULL without */
    uint32_t scale_2_code; /* f32 pattern; with experts only REF_SCALE_2_NONE occurs */

    /* What the conversion saw. */
    int64_t out_of_range;  /* stored codes that `b` cannot hold (written modulo 2^bits) */
    int64_t zeros_outside; /* zero points above 2^bits - 1; kept as they are */
    int64_t zeros_odd;     /* stored zero points of a symmetric layer that are not 2^(bits-1) */
    int64_t rounded;       /* scales that the scale format cannot hold exactly */
};

static inline int64_t standard_matrices(const struct standard *s)
{
    return s->experts ? s->experts : 1;
}
/* Scales and zero points along k: 1 when s->group is 0. */
static inline int64_t standard_groups(const struct standard *s)
{
    return s->group ? (s->k + s->group - 1) / s->group : 1;
}
/* Numbers in `scales`. */
int64_t standard_scale_count(const struct standard *s);

/* The value of weight (row, l), rows counted over all experts, before any rounding: (q - z) or the
 * float, times its scale, times scale_2; semantics.md section 2 with the factors of sections 3 to
 * 5. */
double standard_value(const struct standard *s, int64_t row, int64_t l);

/* What can be said of the codes and scales of a layer. Scales are decoded; minimum and maximum are
 * of the finite ones (0 when there are none). */
struct standard_stats {
    double scale_min, scale_max;
    int64_t scales, scale_zero, scale_negative, scale_nan, scale_infinite, scale_subnormal;
    int64_t nan_codes; /* weights that are NaN in the checkpoint's format: 0x7F, 0xFF of e4m3 */
    int64_t groups;    /* runs of `group` codes that share a scale (or whole rows) */
    int64_t constant;  /* groups of one code only */
    int64_t all_zero;  /* groups in which every value is 0 */
    int zero_min, zero_max; /* zero points; 2^(bits-1) for both without, 0 for floats */
    double scale_2;         /* 1 without */
};

void standard_measure(const struct standard *s, struct standard_stats *out);

/* NaN or infinite scales or scale_2, NaN codes, codes or zero points outside of their range, zero
 * points that contradict "symmetric": a checkpoint should have none. */
bool standard_suspicious(const struct standard *s, const struct standard_stats *m);

#endif
