#include "harness/kernel/trust.h"

#include "reference/rng.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Limits. A fault that only shows in values that are all alike would be missed beyond these. */
static const double most_alike = 0.5; /* share of outputs with the commonest code, of at least 16 */
static const double most_not_finite = 0.3; /* share of infinities and NaN, but for fill X and O */
static const double least_sensitive =
    0.9;                                /* share of one-step weight errors that change an output */
static const double most_vacuous = 0.1; /* share of outputs of which `bound` required nothing */

enum { PROBES = 64, PROBE_ROWS = 64 };

/* ---- what the outputs look like --------------------------------------------------------------------------- */

struct outlook {
    uint64_t count, alike, not_finite, zero, tiny;
};

/* The commonest code among outputs: a vote (Boyer and Moore), then a count. */
static struct outlook look(const struct check_in *in)
{
    const struct problem *q = in->q;
    uint64_t n = (uint64_t)(in->launch->m * q->cols_count), votes = 0;
    struct outlook o = {.count = n};
    uint16_t leader = 0;

    for (uint64_t i = 0; i < n; i++) {
        uint16_t code = q->want[i];

        if (votes == 0)
            leader = code;
        votes += code == leader ? 1 : (uint64_t)-1;
    }
    for (uint64_t i = 0; i < n; i++) {
        double y = dtype_decode(q->ref.c, q->want[i]);

        o.alike += q->want[i] == leader;
        o.not_finite += isfinite(y) ? 0 : 1;
        o.zero += y == 0.0;
        o.tiny += y != 0.0 && fabs(y) < ldexp(1.0, dtype_min_exponent(q->ref.c));
    }
    return o;
}

/* ---- would a wrong weight show? ----------------------------------------------------------------------------- */

/* The change of column j's accumulators per unit of activation if the code at l were its neighbour. */
static double one_step(const struct problem *q, int64_t j, int64_t l)
{
    const struct ref_gemm *p = &q->ref;
    int64_t col = q->cols[j];
    uint32_t code = p->b_codes[col * p->k + l] ^ 1u;

    return (ref_weight(p, col, l, code) - (double)q->w[j * p->k + l]) * problem_c_scale(q, col, l);
}

static bool shows(const struct check_in *in, int64_t j, int64_t l, double step)
{
    const struct problem *q = in->q;
    int64_t n = q->cols_count, m = in->launch->m < PROBE_ROWS ? in->launch->m : PROBE_ROWS;

    for (int64_t i = 0; i < m; i++) {
        double x = q->acc[i * n + j] + (double)q->a_eff[i * q->ref.k + l] * step;
        double y = ref_epilogue_one(&q->epilogue, i, q->cols[j], x, true);

        if (!(y == dtype_decode(q->ref.c, q->want[i * n + j])))
            return true;
    }
    return false;
}

/* Share of one-step errors of single weights, at random places, that change at least one looked-at output. */
static double sensitivity(const struct check_in *in)
{
    const struct problem *q = in->q;
    int seen = 0, tried = 0;

    for (int i = 0; i < 4 * PROBES && tried < PROBES; i++) {
        uint64_t r = rng_word(q->fill.seed, RNG_SAMPLE, (uint64_t)i + 1);
        int64_t j = (int64_t)rng_below(r, (uint32_t)q->cols_count);
        int64_t l = (int64_t)rng_below(r << 32, (uint32_t)q->ref.k);
        double step = one_step(q, j, l);

        if (step == 0.0) /* the neighbour has the same value (+0 and -0, a rounded-off bit) */
            continue;
        tried++;
        seen += shows(in, j, l, step);
    }
    return tried ? (double)seen / tried : 0.0;
}

/* ---- by kind of fill ------------------------------------------------------------------------------------------ */

/* Fills with one or two live k: no sum of theirs is rounded on the way. */
static bool one_term(const struct problem *q)
{
    return q->fill.kind == REF_FILL_P || q->fill.kind == REF_FILL_O || q->fill.kind == REF_FILL_C;
}

static bool has_slices(const struct check_in *in)
{
    return in->launch->tuning->use_stream_k;
}

/* Partial results of slices are rounded to c: exact if every partial sum fits its significand. Slices are contiguous in k, so the
 * prefix range is enough when they are added in order. */
static const char *slices_round(const struct check_in *in, char *buf, size_t size)
{
    const struct problem *q = in->q;
    double limit = ldexp(1.0, q->ref.c->man_bits + 1);

    if (!has_slices(in) || one_term(q))
        return NULL;
    if (q->fill.kind != REF_FILL_E2)
        return "slices round partial sums to 16 bits: only fill E2 is exact then";
    if (q->chunks.sum <= limit || q->chunks.range <= limit)
        return NULL;
    (void)snprintf(buf, size, "slices may round: chunk sums reach %.0f units, %s holds %.0f",
                   fmin(q->chunks.sum, q->chunks.range), q->ref.c->name, limit);
    return buf;
}

static const char *dense_refuses(const struct check_in *in, char *buf, size_t size)
{
    const struct problem *q = in->q;
    double share;

    if (q->fill.kind == REF_FILL_E1 && q->ref.c->man_bits == 7 && in->launch->m < 16)
        return "fill E1 with bf16 outputs needs at least 16 rows: fewer hide one-step weight "
               "errors";
    share = sensitivity(in);
    if (share >= least_sensitive)
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

static const char *random_refuses(const struct finding *f, char *buf, size_t size)
{
    double share = f->compared ? (double)f->vacuous / (double)f->compared : 1.0;

    if (share <= most_vacuous)
        return NULL;
    (void)snprintf(buf, size, "the bound requires nothing of %.0f %% of the outputs",
                   100.0 * share);
    return buf;
}

const char *trust_refuses(const struct check_in *in, const struct finding *f, char *buf,
                          size_t size)
{
    const struct problem *q = in->q;
    bool specials =
        q->fill.kind == REF_FILL_X || q->fill.kind == REF_FILL_O || q->fill.kind == REF_FILL_P;
    struct outlook o;
    const char *why;

    if (f->compared == 0)
        return "nothing was compared";
    if (q->fill.kind == REF_FILL_R)
        return random_refuses(f, buf, size);
    if (q->inexact)
        return q->inexact;
    why = slices_round(in, buf, size);
    if (why)
        return why;
    o = look(in);
    if (o.count >= 16 && !((double)o.alike <= most_alike * (double)o.count))
        return "most expected outputs are alike: a broken kernel could pass";
    if (!specials && !((double)o.not_finite <= most_not_finite * (double)o.count))
        return "most expected outputs are not finite: a broken kernel could pass";
    return kind_refuses(in, &o, buf, size);
}
