/* mxfp4.h - e2m1 weights whose e8m0 scales are folded into few bits: groups far below the largest
 * scale are requantized.
 *
 * The oracle of `process_mxfp4` (docs/semantics-ops.md section 4, the source of every formula
 * here; the same arithmetic as section 8 of semantics.md). Arrays are row-major, borrowed, and
 * changed in place. */
#ifndef REFERENCE_MXFP4_H
#define REFERENCE_MXFP4_H

#include "reference/dtype.h"

struct ref_mxfp4 {
    int64_t n, groups; /* rows, scales a row; at least 1 */
    int64_t group;     /* codes a scale */
    int range;         /* R, at least 0; resolved: ref_mxfp4_range */
    bool per_row;
    uint8_t *codes;  /* n x (groups * group), one e2m1 code each; out: never 8 */
    uint8_t *scales; /* n x groups: e8m0 codes but 255 (NaN); out: s - base, at least 0 */
    float *factor;   /* out, 1 or (per_row) n: 2^(base - 127), exact */
};

/* R of an activation format: 11 for e4m3, 3 for int8; -1: no other has one. */
int ref_mxfp4_range(const struct dtype *a);

void ref_process_mxfp4(const struct ref_mxfp4 *p);

/* |x| 2^-delta to the nearest e2m1, ties away from zero, zero becoming code 0; code and result 0
 * to 15, delta >= 0. */
uint8_t ref_mxfp4_requantize(uint8_t code, int delta);

#endif
