#include "harness/kernel/checks.h"

#include "reference/bound.h"
#include "reference/codec16.h"
#include "reference/model.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void finding_give(struct finding *f, enum verdict v, const char *fmt, ...)
{
    va_list ap;

    f->verdict = v;
    va_start(ap, fmt);
    (void)vsnprintf(f->reason, sizeof f->reason, fmt, ap);
    va_end(ap);
}

static void judge(struct finding *f, const char *what)
{
    f->verdict = VERDICT_PASS;
    if (f->wrong)
        finding_give(f, VERDICT_FAIL, "%llu of %llu outputs %s", (unsigned long long)f->wrong,
                     (unsigned long long)f->compared, what);
}

/* Codes as whole numbers in the order of their values, so that neighbours differ by 1. */
static int32_t ordered(uint16_t code)
{
    return code & 0x8000 ? -(int32_t)(code & 0x7fff) : (int32_t)code;
}

static bool same_code(const struct dtype *c, uint16_t got, uint16_t want)
{
    size_t first, bitwise;

    return got == want || codec16_differ(c, &got, &want, 1, &first, &bitwise) == 0;
}

/* One wrong element of a comparison of codes; the first one stays. */
static void note_code(struct finding *f, const struct dtype *c, int64_t row, int64_t col,
                      uint16_t got, uint16_t want)
{
    f->wrong++;
    if (f->at_row >= 0)
        return;
    f->at_row = row;
    f->at_col = col;
    f->got_code = got;
    f->want_code = want;
    f->got = dtype_decode(c, got);
    f->want = dtype_decode(c, want);
    f->error = isnan(f->got) || isnan(f->want) ? (double)NAN
                                               : fabs((double)ordered(got) - (double)ordered(want));
}

/* ---- exact, readout ------------------------------------------------------------------------------------ */

static void compare_row(const struct check_in *in, int64_t row, struct finding *f)
{
    const struct problem *q = in->q;
    const uint16_t *got = in->got + row * q->ref.n, *want = q->want + row * q->cols_count;
    size_t first, bitwise;

    if (q->cols_count == q->ref.n &&
        codec16_differ(q->ref.c, got, want, (size_t)q->ref.n, &first, &bitwise) == 0)
        return;
    for (int64_t j = 0; j < q->cols_count; j++)
        if (!same_code(q->ref.c, got[q->cols[j]], want[j]))
            note_code(f, q->ref.c, row, q->cols[j], got[q->cols[j]], want[j]);
}

static void check_exact(const struct check_in *in, struct finding *f)
{
    f->compared = (uint64_t)(in->launch->m * in->q->cols_count);
    for (int64_t i = 0; i < in->launch->m; i++)
        compare_row(in, i, f);
    judge(f, "differ from the only right code");
}

/* ---- walking the tiles of a column --------------------------------------------------------------------------- */

struct column {
    const struct check_in *in;
    int64_t j;     /* index into problem.cols */
    int64_t *rows; /* 0, 1, ... */
    double *lo, *hi, *exact;
    uint16_t *codes;
};

typedef const char *tile_fn(const struct column *c, const struct order *o, int64_t row,
                            int64_t count, struct finding *f);

/* Calls `each` for the runs of rows of one column that are summed alike. */
static const char *walk_column(const struct column *c, tile_fn *each, struct finding *f,
                               char *reason)
{
    int64_t m = c->in->launch->m;

    for (int64_t row = 0; row < m;) {
        struct order o;
        const char *why = order_of(c->in->launch, row, c->in->q->cols[c->j], &o, reason);
        int64_t end = !why && o.row_end < m ? o.row_end : m;

        if (why)
            return why;
        why = each(c, &o, row, end - row, f);
        if (why)
            return why;
        row = end;
    }
    return NULL;
}

static bool column_init(struct column *c, const struct check_in *in)
{
    size_t m = (size_t)in->launch->m;

    *c = (struct column){.in = in,
                         .rows = arena_alloc(in->scratch, m, sizeof(int64_t)),
                         .lo = arena_alloc(in->scratch, m, sizeof(double)),
                         .hi = arena_alloc(in->scratch, m, sizeof(double)),
                         .exact = arena_alloc(in->scratch, m, sizeof(double)),
                         .codes = arena_alloc(in->scratch, m, sizeof(uint16_t))};
    if (!c->rows || !c->lo || !c->hi || !c->exact || !c->codes)
        return false;
    for (size_t i = 0; i < m; i++)
        c->rows[i] = (int64_t)i;
    return true;
}

/* Columns that a budget of multiply-adds allows, spread over all: every `step`th, the last one included. */
static int64_t column_step(const struct check_in *in, double budget)
{
    double each = (double)in->launch->m * (double)in->q->ref.k;
    int64_t count = (int64_t)fmax(8.0, budget / each);

    return count >= in->q->cols_count ? 1 : (in->q->cols_count + count - 1) / count | 1;
}

static void walk(const struct check_in *in, double budget, tile_fn *each, struct finding *f,
                 const char *what)
{
    int64_t step = column_step(in, budget), n = in->q->cols_count;
    char reason[HUM_REASON_BYTES];
    const char *why = NULL;
    struct column c;

    if (!column_init(&c, in)) {
        finding_give(f, VERDICT_INFRA, "the check needs more memory than the limit of a worker");
        return;
    }
    for (c.j = (n - 1) % step; c.j < n && !why; c.j += step)
        why = walk_column(&c, each, f, reason);
    if (why)
        finding_give(f, VERDICT_SKIP, "%s", why);
    else
        judge(f, what);
}

/* ---- bound -------------------------------------------------------------------------------------------------------- */

/* Outside [lo, hi]: how far, in half widths from the middle; 1 is the limit. */
static void note_bound(const struct column *c, int64_t row, uint16_t code, double y, int64_t i,
                       struct finding *f)
{
    double middle = 0.5 * (c->lo[i] + c->hi[i]), half = 0.5 * (c->hi[i] - c->lo[i]);
    double error = fabs(y - middle) / (half > 0.0 ? half : 0x1p-1074);

    f->wrong++;
    if (f->at_row >= 0 && error <= f->error)
        return;
    f->at_row = row;
    f->at_col = c->in->q->cols[c->j];
    f->got_code = code;
    f->want_code = dtype_encode(c->in->q->ref.c, c->exact[i], DTYPE_TO_TOP);
    f->got = y;
    f->want = c->exact[i];
    f->error = error;
}

static const char *bound_tile(const struct column *c, const struct order *o, int64_t row,
                              int64_t count, struct finding *f)
{
    const struct problem *q = c->in->q;
    struct ref_bound b = {.p = &q->ref,
                          .s = &o->accum,
                          .a = q->a,
                          .rows = c->rows + row,
                          .row_count = count,
                          .s_int = q->s_int,
                          .int_factor = q->int_factor};
    int64_t col = q->cols[c->j];

    ref_bound_column(&b, col, q->w + c->j * q->ref.k, c->lo, c->hi, c->exact);
    f->compared += (uint64_t)count;
    for (int64_t i = 0; i < count; i++) {
        uint16_t code = c->in->got[(row + i) * q->ref.n + col];
        double y = dtype_decode(q->ref.c, code);

        f->vacuous += isinf(c->lo[i]) && isinf(c->hi[i]) && c->lo[i] < c->hi[i];
        if (!ref_bound_holds(c->lo[i], c->hi[i], y))
            note_bound(c, row + i, code, y, i, f);
    }
    return NULL;
}

static void check_bound(const struct check_in *in, struct finding *f)
{
    f->limit = 1.0;
    walk(in, 0x1p28, bound_tile, f, "lie outside the interval of the error bound");
}

/* ---- model -------------------------------------------------------------------------------------------------------- */

static const char *model_tile(const struct column *c, const struct order *o, int64_t row,
                              int64_t count, struct finding *f)
{
    const struct problem *q = c->in->q;
    struct ref_model model = {
        .epilogue = &q->epilogue, .accum = &o->accum, .s_int = q->s_int, .a = q->a};
    const char *why = ref_model_refuses(&model);
    int64_t col = q->cols[c->j];

    if (why)
        return why;
    if (!ref_model_column(&model, q->w + c->j * q->ref.k, col, c->rows + row, count, c->codes))
        return "the model gives no prediction";
    f->compared += (uint64_t)count;
    for (int64_t i = 0; i < count; i++) {
        uint16_t got = c->in->got[(row + i) * q->ref.n + col];

        if (!same_code(q->ref.c, got, c->codes[i]))
            note_code(f, q->ref.c, row + i, col, got, c->codes[i]);
    }
    return NULL;
}

static void check_model(const struct check_in *in, struct finding *f)
{
    walk(in, 0x1p25, model_tile, f, "differ from the predicted code");
}

/* No GEMM reaches this: the legality table refuses the combination before anything runs. */
static void check_ulp(const struct check_in *in, struct finding *f)
{
    (void)in;
    finding_give(f, VERDICT_INFRA, "the check ulp has no reference for a GEMM");
}

/* clang-format off */
static const struct check checks[] = { /* in the order of the axis' words */
    {"exact",   "codes",  check_exact},
    {"readout", "codes",  check_exact},
    {"bound",   "bounds", check_bound},
    {"ulp",     "ulp",    check_ulp},
    {"model",   "codes",  check_model},
};
/* clang-format on */

const struct check *check_of(int64_t value)
{
    return &checks[value];
}
