#include "harness/kernel/trust.h"

#include "reference/fault.h"
#include "reference/rng.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Limits. A fault that only shows in values that are all alike would be missed beyond these. */
static const double most_alike = 0.5; /* share of outputs with the commonest code, of at least 16 */
/* of fills with one or two live k, each output its own weight */
static const double most_alike_read = 0.9;
static const double most_not_finite = 0.3; /* share of infinities and NaN, but for fill X and O */
static const double least_sensitive =
    0.9;                                /* share of one-step weight errors that change an output */
static const double most_vacuous = 0.1; /* share of outputs of which nothing was required */

enum { PROBES = 64, PROBE_ROWS = 64 };

/* ---- what the outputs look like -------------------------------------------------------------- */

struct outlook {
    uint64_t count, alike, not_finite, zero, tiny;
};

/* The code that occurs in more than half of n, if one does: a vote (Boyer and Moore), carried on
 * over rows. */
struct vote {
    uint64_t votes;
    uint16_t leader;
};

static void vote(struct vote *v, const uint16_t *codes, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (v->votes == 0)
            v->leader = codes[i];
        v->votes += codes[i] == v->leader ? 1 : (uint64_t)-1;
    }
}

static void look_at(const struct dtype *c, const struct vote *v, const uint16_t *codes, int64_t n,
                    struct outlook *o)
{
    for (int64_t i = 0; i < n; i++) {
        double y = dtype_decode(c, codes[i]);

        o->alike += codes[i] == v->leader;
        o->not_finite += isfinite(y) ? 0 : 1;
        o->zero += y == 0.0;
        o->tiny += y != 0.0 && fabs(y) < ldexp(1.0, dtype_min_exponent(c));
    }
    o->count += (uint64_t)n;
}

/* codes: the rows of the output, `width` a row; those that are not written do not count. */
static struct outlook look(const struct check_in *in, const uint16_t *codes, int64_t width)
{
    const struct problem *q = in->q;
    int64_t rows = problem_rows(q, in->launch->m);
    struct outlook o = {0};
    struct vote v = {0};

    for (int64_t i = 0; i < rows; i++)
        if (problem_writes(q, i))
            vote(&v, codes + i * width, width);
    for (int64_t i = 0; i < rows; i++)
        if (problem_writes(q, i))
            look_at(q->ref.c, &v, codes + i * width, width, &o);
    return o;
}

/* ---- would a wrong weight show? -------------------------------------------------------------- */

/* The change of column j's accumulators, in the expert of output row `row`, per unit of
 * activation if the code at l were its neighbour. */
static double one_step(const struct problem *q, int64_t row, int64_t j, int64_t l)
{
    const struct ref_gemm *p = &q->ref;
    int64_t col = problem_col(q, row, j);
    uint32_t code = p->b_codes[col * p->k + l] ^ 1u;

    return (ref_weight(p, col, l, code) - (double)q->w[problem_w_at(q, row, j) + l]) *
           problem_c_scale(q, col, l);
}

/* In one of the rows of that expert. */
static bool shows(const struct check_in *in, int64_t row, int64_t j, int64_t l, double step)
{
    const struct problem *q = in->q;
    const struct routing *r = &q->routing;
    int64_t n = q->cols_count, rows = problem_rows(q, in->launch->m);

    for (int64_t i = 0, probed = 0; i < rows && probed < PROBE_ROWS; i++) {
        double x, y;

        if (r->row_expert[i] != r->row_expert[row])
            continue;
        x = q->acc[i * n + j] + (double)q->a_eff[r->row_a[i] * q->ref.k + l] * step;
        y = ref_epilogue_one(&q->epilogue, r->row_a[i], problem_col(q, i, j), x, true);
        if (!(y == dtype_decode(q->ref.c, q->want[i * n + j])))
            return true;
        probed++;
    }
    return false;
}

/* An output row that is written, at random: its expert's weights are the ones that count. */
static int64_t any_row(const struct check_in *in, int i)
{
    int64_t rows = problem_rows(in->q, in->launch->m);
    uint64_t r = rng_word(in->q->fill.seed, RNG_SAMPLE, 4 * (uint64_t)PROBES + 1 + (uint64_t)i);
    int64_t row = (int64_t)rng_below(r, (uint32_t)rows);

    for (int64_t tried = 0; tried < rows && !problem_writes(in->q, row); tried++)
        row = (row + 1) % rows;
    return row;
}

/* Share of one-step errors of single weights, at random places, that change at least one
 * looked-at output. */
static double sensitivity(const struct check_in *in)
{
    const struct problem *q = in->q;
    int seen = 0, tried = 0;

    for (int i = 0; i < 4 * PROBES && tried < PROBES; i++) {
        uint64_t r = rng_word(q->fill.seed, RNG_SAMPLE, (uint64_t)i + 1);
        int64_t j = (int64_t)rng_below(r, (uint32_t)q->cols_count);
        int64_t l = (int64_t)rng_below(r << 32, (uint32_t)q->ref.k);
        int64_t row = any_row(in, i);
        double step = one_step(q, row, j, l);

        if (step == 0.0) /* the neighbour has the same value (+0 and -0, a rounded-off bit) */
            continue;
        tried++;
        seen += shows(in, row, j, l, step);
    }
    return tried ? (double)seen / tried : 0.0;
}

/* ---- by kind of fill ------------------------------------------------------------------------- */

/* Fills with one or two live k: no sum of theirs is rounded on the way. */
static bool one_term(const struct problem *q)
{
    return q->fill.kind == REF_FILL_P || q->fill.kind == REF_FILL_O || q->fill.kind == REF_FILL_C;
}

/* Do so many of the outputs have the same code that one who knows it could pass? */
static bool is_alike(const struct outlook *o, double most)
{
    return o->count >= 16 && !((double)o->alike <= most * (double)o->count) &&
           !REF_FAULT(TRUST_ALIKE_OFF);
}

static bool has_slices(const struct check_in *in)
{
    return in->launch->tuning->use_stream_k;
}

static bool fits(double units, double limit, bool overflows)
{
    return units <= limit && (!overflows || REF_FAULT(TRUST_OVERFLOW_OFF));
}

/* Partial results of slices are rounded to c: exact if every partial sum fits its significand.
 * Slices are contiguous in k, so the prefix range is enough when they are added in order. A single
 * term is rounded once, but for the step h x s + bias: only slice 0 has it, with one rounding. */
static const char *slices_round(const struct check_in *in, char *buf, size_t size)
{
    const struct problem *q = in->q;
    double limit = ldexp(1.0, q->ref.c->man_bits + 1);

    if (!has_slices(in))
        return NULL;
    if (one_term(q))
        return q->ref.has_bias && q->epilogue.has_channel && !q->ref.f16_accum
                   ? "slices round a product before a bias is added to it"
                   : NULL;
    if (q->fill.kind != REF_FILL_E2)
        return "slices round partial sums to 16 bits: only fill E2 is exact then";
    if (fits(q->chunks.sum, limit, q->sum_overflows) ||
        fits(q->chunks.range, limit, q->range_overflows))
        return NULL;
    if (q->range_overflows)
        return "slices may overflow: chunk sums reach beyond the largest number of f16";
    (void)snprintf(buf, size, "slices may round: chunk sums reach %.0f units, %s holds %.0f",
                   fmin(q->chunks.sum, q->chunks.range), q->ref.c->name, limit);
    return buf;
}

/* At least 16 of something, all the same: a kernel that takes its neighbour's could pass. */
static bool all_equal(const void *x, size_t count, size_t size)
{
    const unsigned char *bytes = x;

    return x && count >= 16 && memcmp(bytes, bytes + size, (count - 1) * size) == 0;
}

static const char *factors_refuse(const struct ref_gemm *p)
{
    const struct ref_input_sizes sizes = ref_input_sizes(p);

    if (all_equal(p->zero_codes, sizes.zero, sizeof *p->zero_codes))
        return "all zero points are alike: a kernel that takes another column's could pass";
    if (all_equal(p->input_scale, sizes.input_scale, sizeof *p->input_scale))
        return "all input scales are alike: a kernel that takes another row's or group's could "
               "pass";
    if (all_equal(p->bs_codes, sizes.bs, sizeof *p->bs_codes))
        return "all weight scales are alike: a kernel that takes another column's could pass";
    return NULL;
}

static const char *dense_refuses(const struct check_in *in, char *buf, size_t size)
{
    const struct problem *q = in->q;
    double share;

    if (q->fill.kind == REF_FILL_E1 && q->ref.c->man_bits == 7 && in->launch->m < 16)
        return "fill E1 with bf16 outputs needs at least 16 rows: fewer hide one-step weight "
               "errors";
    if (factors_refuse(&q->ref))
        return factors_refuse(&q->ref);
    share = sensitivity(in);
    if (share >= least_sensitive || REF_FAULT(TRUST_SENSITIVITY_OFF))
        return NULL;
    (void)snprintf(buf, size, "only %.0f %% of one-step weight errors would change an output",
                   100.0 * share);
    return buf;
}

static const char *kind_refuses(const struct check_in *in, const struct outlook *o, char *buf,
                                size_t size)
{
    const struct problem *q = in->q;

    switch (q->fill.kind) {
    case REF_FILL_E1:
    case REF_FILL_E2:
        return dense_refuses(in, buf, size);
    case REF_FILL_W:
        return q->p >= 0x1p15 ? NULL : "the sums are too small to show a narrow accumulator";
    case REF_FILL_S:
        return o->zero * 2 < o->count ? NULL : "most expected outputs are zero";
    case REF_FILL_X:
        return o->not_finite > 0 && o->not_finite < o->count
                   ? NULL
                   : "special values reach no output, or all of them";
    case REF_FILL_P:
    case REF_FILL_O:
    case REF_FILL_C:
    case REF_FILL_R:
        return NULL;
    }
    return NULL;
}

static const char *vacuous_refuses(const struct finding *f, char *buf, size_t size)
{
    double share = f->compared ? (double)f->vacuous / (double)f->compared : 1.0;

    if (share <= most_vacuous)
        return NULL;
    (void)snprintf(buf, size, "nothing is required of %.0f %% of the outputs", 100.0 * share);
    return buf;
}

/* A kernel compared with itself: what it wrote must be able to differ. */
static const char *itself_refuses(const struct check_in *in)
{
    struct outlook o = look(in, in->got, in->q->ref.n);

    if (is_alike(&o, most_alike))
        return "most outputs are alike: a kernel that ignores its inputs could pass";
    return NULL;
}

/* Fill X has special values only where the activations' format has any, and from its second row
 * on. */
static const char *special_refuses(const struct check_in *in, const struct finding *f, char *buf,
                                   size_t size)
{
    const struct problem *q = in->q;
    struct outlook o = look(in, q->want, q->cols_count);

    if (o.not_finite == o.count)
        return "special values reach all outputs";
    if (o.not_finite == 0 && q->ref.a->top != DTYPE_TOP_FINITE && in->launch->m > 1)
        return "special values reach no output";
    return vacuous_refuses(f, buf, size);
}

static const char *expected_refuses(const struct check_in *in, const struct finding *f, char *buf,
                                    size_t size)
{
    const struct problem *q = in->q;
    bool specials =
        q->fill.kind == REF_FILL_X || q->fill.kind == REF_FILL_O || q->fill.kind == REF_FILL_P;
    struct outlook o;
    const char *why;

    why = vacuous_refuses(f, buf, size);
    if (why || q->fill.kind == REF_FILL_R)
        return why;
    o = look(in, q->want, q->cols_count);
    if (is_alike(&o, one_term(q) ? most_alike_read : most_alike))
        return "most expected outputs are alike: a broken kernel could pass";
    if (!specials && !((double)o.not_finite <= most_not_finite * (double)o.count))
        return "most expected outputs are not finite: a broken kernel could pass";
    return kind_refuses(in, &o, buf, size);
}

const char *trust_ambiguous(const struct check_in *in, enum check_basis basis, char *buf,
                            size_t size)
{
    if (REF_FAULT(TRUST_AMBIGUITY_OFF))
        return NULL;
    switch (basis) {
    case BASIS_EXPECTED:
        if (in->q->fill.kind == REF_FILL_R)
            return NULL;
        return in->q->inexact ? in->q->inexact : slices_round(in, buf, size);
    case BASIS_SPECIAL:
        if (!in->q->inexact && has_slices(in))
            return "slices round partial sums to 16 bits: fill X is not exact then";
        return in->q->inexact;
    case BASIS_ITSELF:
    case BASIS_REFUSALS:
        return NULL;
    }
    return NULL;
}

const char *trust_refuses(const struct check_in *in, enum check_basis basis,
                          const struct finding *f, char *buf, size_t size)
{
    const char *why = trust_ambiguous(in, basis, buf, size);

    if (f->compared == 0 && !REF_FAULT(COMPARE_EMPTY_PASSES))
        return "nothing was compared";
    if (why)
        return why;
    switch (basis) {
    case BASIS_EXPECTED:
        return expected_refuses(in, f, buf, size);
    case BASIS_SPECIAL:
        return special_refuses(in, f, buf, size);
    case BASIS_ITSELF:
        return itself_refuses(in);
    case BASIS_REFUSALS:
        return NULL;
    }
    return NULL;
}
