#include "harness/kernel/checks.h"

#include "harness/kernel/contract_cases.h"
#include "harness/kernel/coverage.h"
#include "harness/kernel/graph.h"
#include "harness/kernel/hygiene.h"
#include "harness/kernel/invariance.h"
#include "harness/kernel/special_cases.h"
#include "harness/kernel/whole.h"
#include "reference/bound.h"
#include "reference/codec16.h"
#include "reference/fault.h"
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

void finding_judge(struct finding *f, const char *what)
{
    if (f->verdict == VERDICT_PASS && f->wrong)
        finding_give(f, VERDICT_FAIL, "%llu of %llu outputs %s", (unsigned long long)f->wrong,
                     (unsigned long long)f->compared, what);
}

bool finding_well(enum hum_code code, const char *what, const char *reason, struct finding *f)
{
    const enum verdict verdict = code == HUM_UNSUPPORTED ? VERDICT_SKIP
                                 : code == HUM_NO_MEMORY ? VERDICT_INFRA
                                                         : VERDICT_FAIL;

    if (code != HUM_OK)
        finding_give(f, verdict, "%s: %s", what, reason);
    return code == HUM_OK;
}

/* Codes as whole numbers in the order of their values, so that neighbours differ by 1. */
static int32_t ordered(uint16_t code)
{
    return code & 0x8000 ? -(int32_t)(code & 0x7fff) : (int32_t)code;
}

bool finding_same(const struct dtype *c, uint16_t got, uint16_t want)
{
    size_t first, bitwise;

    return got == want || codec16_differ(c, &got, &want, 1, &first, &bitwise) == 0;
}

void finding_code(struct finding *f, const struct dtype *c, int64_t row, int64_t col, uint16_t got,
                  uint16_t want)
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

const char *refusal_fault(enum hum_code code, const char reason[HUM_REASON_BYTES], bool unsupported)
{
    if (REF_FAULT(REFUSAL_ANY_CODE))
        return NULL;
    if (code != HUM_INVALID && !(unsupported && code == HUM_UNSUPPORTED))
        return "the code is not HUM_INVALID";
    if (!memchr(reason, '\0', HUM_REASON_BYTES))
        return "the reason does not end";
    return reason[0] == '\0'      ? "no reason was given"
           : strchr(reason, '\n') ? "the reason has more than one line"
                                  : NULL;
}

/* ---- exact, readout -------------------------------------------------------------------------- */

static void compare_row(const struct check_in *in, int64_t row, struct finding *f)
{
    const struct problem *q = in->q;
    const uint16_t *got = in->got + row * q->ref.n, *want = q->want + row * q->cols_count;
    const int64_t end = REF_FAULT(COMPARE_LAST_COLUMN_IGNORED) ? q->cols_count - 1 : q->cols_count;
    const bool whole = q->cols_count == q->ref.n;
    size_t first, bitwise;

    if (REF_FAULT(COMPARE_WANT_WITH_ITSELF) && whole)
        got = want;
    if (whole && codec16_differ(q->ref.c, got, want, (size_t)end, &first, &bitwise) == 0)
        return;
    for (int64_t j = 0; j < end; j++)
        if (!finding_same(q->ref.c, got[q->cols[j]], want[j]))
            finding_code(f, q->ref.c, row, q->cols[j], got[q->cols[j]], want[j]);
}

void check_right_codes(const struct check_in *in, struct finding *f)
{
    int64_t rows = problem_rows(in->q, in->launch->m);

    for (int64_t i = 0; i < rows; i++) {
        if (!problem_writes(in->q, i))
            continue;
        f->compared += (uint64_t)in->q->cols_count;
        compare_row(in, i, f);
    }
    if (f->wrong == 0)
        whole_check(in, f);
    finding_judge(f, "differ from the only right code");
}

static void check_exhaustive(const struct check_in *in, struct finding *f)
{
    check_right_codes(in, f);
    if (f->verdict == VERDICT_PASS)
        coverage_check(in, f);
}

/* ---- walking the tiles of a column ----------------------------------------------------------- */

struct column {
    const struct check_in *in;
    int64_t j;          /* index into problem.cols */
    struct order order; /* of the rows at hand */
    int64_t count;      /* rows of the output that are written */
    int64_t *out;       /* their numbers; those of one row tile stand together */
    int64_t *rows;      /* their rows of A */
    double *lo, *hi, *exact;
    uint16_t *codes;
};

/* Rows [at, at + count) of c->out, which are summed in c->order. */
typedef const char *tile_fn(const struct column *c, int64_t at, int64_t count, struct finding *f);

static bool summed_alike(const struct column *c, int64_t row, int64_t other)
{
    const struct routing_tensors *routing = c->in->launch->routing;

    return routing ? routing_tile_of(routing, row) == routing_tile_of(routing, other)
                   : other < c->order.row_end;
}

/* Calls `each` for the runs of rows of one column that are summed alike. Such a run has one
 * expert. */
static const char *walk_column(struct column *c, tile_fn *each, struct finding *f, char *reason)
{
    for (int64_t at = 0, end; at < c->count; at = end) {
        int64_t row = c->out[at];
        const char *why = order_of(c->in->launch, row, c->in->q->cols[c->j], &c->order, reason);

        if (why)
            return why;
        for (end = at + 1; end < c->count && summed_alike(c, row, c->out[end]);)
            end++;
        why = each(c, at, end - at, f);
        if (why)
            return why;
    }
    return NULL;
}

/* The rows that are written, in ascending order, or tile by tile where there are experts. */
static bool order_rows(struct column *c, int64_t rows)
{
    const struct check_in *in = c->in;
    const struct routing_tensors *routing = in->launch->routing;
    int64_t tiles = routing ? routing->row_tiles : 0;
    int64_t *begin = arena_zalloc(in->scratch, (size_t)tiles + 2, sizeof *begin);

    if (!begin)
        return false;
    for (int64_t i = 0; routing && i < rows; i++)
        if (problem_writes(in->q, i))
            begin[routing_tile_of(routing, i) + 1]++;
    for (int64_t t = 0; t < tiles; t++)
        begin[t + 1] += begin[t];
    for (int64_t i = 0; i < rows; i++) {
        int64_t at;

        if (!problem_writes(in->q, i))
            continue;
        at = begin[routing ? routing_tile_of(routing, i) : 0]++;
        c->out[at] = i;
        c->rows[at] = in->q->routing.row_a[i];
        c->count++;
    }
    return true;
}

static bool column_init(struct column *c, const struct check_in *in)
{
    int64_t rows = problem_rows(in->q, in->launch->m);
    size_t m = (size_t)rows;

    *c = (struct column){.in = in,
                         .out = arena_alloc(in->scratch, m, sizeof(int64_t)),
                         .rows = arena_alloc(in->scratch, m, sizeof(int64_t)),
                         .lo = arena_alloc(in->scratch, m, sizeof(double)),
                         .hi = arena_alloc(in->scratch, m, sizeof(double)),
                         .exact = arena_alloc(in->scratch, m, sizeof(double)),
                         .codes = arena_alloc(in->scratch, m, sizeof(uint16_t))};
    return c->out && c->rows && c->lo && c->hi && c->exact && c->codes && order_rows(c, rows);
}

/* Columns that a budget of multiply-adds allows, spread over all: every `step`th, the last one
 * included. */
static int64_t column_step(const struct check_in *in, double budget)
{
    double each = (double)problem_rows(in->q, in->launch->m) * (double)in->q->ref.k;
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
        finding_judge(f, what);
}

/* ---- bound ----------------------------------------------------------------------------------- */

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

static const char *bound_tile(const struct column *c, int64_t at, int64_t count, struct finding *f)
{
    const struct problem *q = c->in->q;
    struct ref_bound b = {.p = &q->ref,
                          .s = &c->order.accum,
                          .a = q->a,
                          .rows = c->rows + at,
                          .row_count = count,
                          .s_int = q->s_int,
                          .int_factor = q->int_factor};
    int64_t col = q->cols[c->j], row = c->out[at];

    ref_bound_column(&b, problem_col(q, row, c->j), q->w + problem_w_at(q, row, c->j), c->lo, c->hi,
                     c->exact);
    f->compared += (uint64_t)count;
    for (int64_t i = 0; i < count; i++) {
        uint16_t code = c->in->got[c->out[at + i] * q->ref.n + col];
        double y = dtype_decode(q->ref.c, code);

        f->vacuous += isinf(c->lo[i]) && isinf(c->hi[i]) && c->lo[i] < c->hi[i];
        if (!ref_bound_holds(c->lo[i], c->hi[i], y))
            note_bound(c, c->out[at + i], code, y, i, f);
    }
    return NULL;
}

static void check_bound(const struct check_in *in, struct finding *f)
{
    f->limit = 1.0;
    walk(in, 0x1p28, bound_tile, f, "lie outside the interval of the error bound");
}

/* ---- model ----------------------------------------------------------------------------------- */

static const char *model_tile(const struct column *c, int64_t at, int64_t count, struct finding *f)
{
    const struct problem *q = c->in->q;
    struct ref_model model = {
        .epilogue = &q->epilogue, .accum = &c->order.accum, .s_int = q->s_int, .a = q->a};
    const char *why = ref_model_refuses(&model);
    int64_t col = q->cols[c->j], row = c->out[at];

    if (why)
        return why;
    if (!ref_model_column(&model, q->w + problem_w_at(q, row, c->j), problem_col(q, row, c->j),
                          c->rows + at, count, c->codes))
        return "the model gives no prediction";
    f->compared += (uint64_t)count;
    for (int64_t i = 0; i < count; i++) {
        uint16_t got = c->in->got[c->out[at + i] * q->ref.n + col];

        if (!finding_same(q->ref.c, got, c->codes[i]))
            finding_code(f, q->ref.c, c->out[at + i], col, got, c->codes[i]);
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
    {"exact",         "codes",  BASIS_EXPECTED, check_right_codes},
    {"readout",       "codes",  BASIS_EXPECTED, check_right_codes},
    {"bound",         "bounds", BASIS_EXPECTED, check_bound},
    {"ulp",           "ulp",    BASIS_EXPECTED, check_ulp},
    {"model",         "codes",  BASIS_EXPECTED, check_model},
    {"invariant",     "codes",  BASIS_ITSELF,   check_invariant},
    {"deterministic", "codes",  BASIS_ITSELF,   check_deterministic},
    {"alias",         "codes",  BASIS_ITSELF,   check_alias},
    {"guard",         "codes",  BASIS_ITSELF,   check_guard},
    {"locks",         "codes",  BASIS_ITSELF,   check_locks},
    {"special",       "codes",  BASIS_SPECIAL,  check_special},
    {"contract",      "calls",  BASIS_REFUSALS, check_contract},
    {"exhaustive",    "codes",  BASIS_EXPECTED, check_exhaustive},
    {"graph",         "codes",  BASIS_EXPECTED, check_graph},
};
/* clang-format on */

const struct check *check_of(int64_t value)
{
    return &checks[value];
}
