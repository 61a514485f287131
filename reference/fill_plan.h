/* fill_plan.h - what all elements of a fill share: windows of codes, sizes of the factors,
 * exponents. Private to the fill. */
#ifndef REFERENCE_FILL_PLAN_H
#define REFERENCE_FILL_PLAN_H

#include "reference/fill.h"
#include "reference/rng.h"

#include <stdlib.h>

enum { FILL_WINDOWS = 64, FILL_ALPHAS = 8, FILL_SIGMAS = 4 };

/* A set of weight codes that one column draws from. Wide float formats get a window of a few
 * binades for each column, so that all codes occur in the matrix while one column keeps a common
 * unit (docs/fills.md, "Exponent windows"). */
struct fill_window {
    uint8_t code[256]; /* random byte to code */
    int low;           /* smallest magnitude field: nothing below it may be used */
    double size;       /* typical |w|: root mean square, of W the mean */
    int top, unit;     /* exponents: |w| < 2^top, and the unit all its values are multiples of */
};

struct fill_plan {
    struct ref_fill_spec f;
    const struct ref_gemm *p;
    int64_t groups, input_groups;
    uint64_t a_stride, b_stride;

    int alpha[2][FILL_ALPHAS]; /* integer activations by parity of k */
    int alphas;
    int sigma[FILL_SIGMAS]; /* odd significands of group scales */
    int sigmas;

    int row_exponent;        /* of activations (16 bits) or input scales (8 and 4 bits) */
    int scale_lo, scale_hi;  /* exponents a scale of this format may have */
    int64_t repeats;         /* all_scales: groups that share a scale code, for all weight codes */
    double active;           /* E2: share of pairs that do not cancel */
    int unit_bits;           /* E2: bits of the accumulator that must hold every partial sum */
    uint8_t pair[3][256][2]; /* E2: by remainder + 1 and code: the codes of leader and partner */

    /* floats: the largest code, sign apart, whose value the activations' format holds */
    int top_code;
    int windows;
    struct fill_window window[FILL_WINDOWS];
};

void fill_plan_init(struct fill_plan *s, const struct ref_fill_spec *f, const struct ref_gemm *p);

static inline const struct fill_window *fill_window(const struct fill_plan *s, int64_t col)
{
    return &s->window[col % s->windows];
}

/* Exponent of the weight scale of a column (block scales: of the block that starts there; tensor:
 * of the only one), and of the outputs' typical size. */
int fill_scale_exponent(const struct fill_plan *s, int64_t col);
int fill_output_exponent(const struct fill_plan *s, int64_t col);

/* Parts of fill_plan_init: the range of scale exponents, and, once the factors are chosen, the
 * exponent of the rows. */
void fill_scale_range(struct fill_plan *s);
void fill_choose_row_exponent(struct fill_plan *s);

static inline double fill_mean_abs(const int *x, int n)
{
    double sum = 0.0;

    for (int i = 0; i < n; i++)
        sum += abs(x[i]);
    return sum / n;
}

/* Standard deviation of the activations of fill R. */
double fill_random_scale(const struct dtype *a);

/* E2: the partner of k in its chunk of 8 is k ^ fill_matching: 5 or 6, so that 0 to 3 lead. k
 * itself in an incomplete last chunk. */
int fill_matching(const struct fill_plan *s, int64_t chunk);

/* The first of the pair that place i of a complete chunk belongs to. */
static inline int64_t fill_lead(int64_t i, int matching)
{
    return (i ^ matching) < i ? i ^ matching : i;
}

/* all_scales: the place of scale (col, g) among those with the same code, and that code's number.
 * */
static inline uint64_t fill_turn(const struct fill_plan *s, uint64_t index)
{
    return index / (uint64_t)s->repeats;
}

/* Fills with one or two live k a row. */
static inline bool fill_is_sparse(const struct fill_plan *s)
{
    return s->f.kind == REF_FILL_P || s->f.kind == REF_FILL_O || s->f.kind == REF_FILL_C;
}

/* A weight code that the activations' format holds: a larger one loses binades until it fits (65536
 * in f16, 480 in e4m3 are
 * numbers of the weight format that no operand register can hold). */
static inline uint8_t fill_held(const struct fill_plan *s, uint32_t code)
{
    uint32_t half = 1u << (s->p->b->bits - 1);

    while (s->p->b->is_float && (int)(code & (half - 1)) > s->top_code)
        code -= 1u << s->p->b->man_bits;
    return (uint8_t)code;
}

/* Fills made of cancelling pairs. */
static inline bool fill_is_paired(const struct fill_plan *s)
{
    return s->f.kind == REF_FILL_E2 || (s->f.kind == REF_FILL_X && s->p->f16_accum);
}

/* fill_scales.c */

/* The whole part of zero point number `index`: columns, then groups. Of problems that have any. */
uint32_t fill_whole_zero(const struct fill_plan *s, uint64_t index);

void fill_all_scales(const struct fill_plan *s, const struct ref_inputs *out);

#endif
