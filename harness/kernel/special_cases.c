#include "harness/kernel/special_cases.h"

#include "harness/kernel/trial.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ZERO_ROWS = 5 };

/* The expected code of output (row, index j into the columns looked at). */
typedef uint16_t expect_fn(const struct check_in *in, const void *context, int64_t row, int64_t j);

static uint16_t expect_want(const struct check_in *in, const void *context, int64_t row, int64_t j)
{
    (void)context;
    return in->q->want[row * in->q->cols_count + j];
}

/* Row i of a launch is row rows[i] of the problem. False: `f` has the verdict. */
static bool compare(const struct check_in *in, const uint16_t *got, const int64_t *rows, int64_t m,
                    expect_fn *expect, const void *context, const char *what, struct finding *f)
{
    const struct problem *q = in->q;

    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < q->cols_count; j++) {
            uint16_t have = got[i * q->ref.n + q->cols[j]];
            uint16_t want = expect(in, context, rows[i], j);

            f->compared++;
            if (!finding_same(q->ref.c, have, want))
                finding_code(f, q->ref.c, rows[i] < 0 ? i : rows[i], q->cols[j], have, want);
        }
    if (f->wrong)
        finding_give(f, VERDICT_FAIL, "%llu outputs of %s differ from the only right code",
                     (unsigned long long)f->wrong, what);
    return f->wrong == 0;
}

static bool launch_rows(const struct check_in *in, const int64_t *rows, int64_t m,
                        const struct hum_weights *weights, struct trial_out *out, struct finding *f)
{
    struct trial_options o = trial_plain(m);

    o.rows = rows;
    o.weights = weights;
    return trial_run(in->trial, &o, out, f);
}

/* ---- the case, and rows of it ---------------------------------------------------------------- */

static bool whole_case(const struct check_in *in, int64_t *rows, struct finding *f)
{
    for (int64_t i = 0; i < in->launch->m; i++)
        rows[i] = i;
    return compare(in, in->got, rows, in->launch->m, expect_want, NULL, "the case", f);
}

/* One row at a time: of fill X, 1 has a NaN, 3 and 5 infinities, 7 both. */
static bool single_rows(const struct check_in *in, struct finding *f)
{
    static const int64_t chosen[] = {0, 1, 3, 5, 7};
    struct trial_out out;

    for (size_t i = 0; i < sizeof chosen / sizeof chosen[0] && chosen[i] < in->launch->m; i++)
        if (!launch_rows(in, &chosen[i], 1, NULL, &out, f) ||
            !compare(in, out.codes, &chosen[i], 1, expect_want, NULL, "a single row", f))
            return false;
    return true;
}

/* ---- zeros ----------------------------------------------------------------------------------- */

static uint16_t encode(const struct check_in *in, double y)
{
    return (uint16_t)dtype_encode(in->q->ref.c, y, DTYPE_TO_TOP);
}

/* Zero times anything finite is zero; times the rest it is NaN. Special rows have the scales of
 * row 0. */
static uint16_t expect_zero_row(const struct check_in *in, const void *context, int64_t row,
                                int64_t j)
{
    const struct problem *q = in->q;
    double x = 0.0;

    (void)context;
    (void)row;
    for (int64_t l = 0; l < q->ref.k; l++)
        if (!isfinite(q->w_eff[j * q->ref.k + l]))
            x = (double)NAN;
    return encode(in, ref_epilogue_one(&q->epilogue, 0, q->cols[j], x, true));
}

static bool zero_rows(const struct check_in *in, struct finding *f)
{
    static const int64_t zeros[ZERO_ROWS] = {ROW_ZERO, ROW_ZERO, ROW_ZERO, ROW_ZERO, ROW_ZERO};
    static const int64_t minus[ZERO_ROWS] = {ROW_MINUS_ZERO, ROW_ZERO, ROW_MINUS_ZERO,
                                             ROW_MINUS_ZERO, ROW_MINUS_ZERO};
    struct trial_out out;

    return launch_rows(in, zeros, ZERO_ROWS, NULL, &out, f) &&
           compare(in, out.codes, zeros, ZERO_ROWS, expect_zero_row, NULL, "all-zero rows", f) &&
           launch_rows(in, minus, ZERO_ROWS, NULL, &out, f) &&
           compare(in, out.codes, minus, ZERO_ROWS, expect_zero_row, NULL, "rows of -0", f);
}

/* ---- zero scales ----------------------------------------------------------------------------- */

/* Scales that act on operands or accumulators leave sums of zero; those of the epilogue meet the
 * sums as they are. */
static uint16_t expect_zero_scale(const struct check_in *in, const void *context, int64_t row,
                                  int64_t j)
{
    const struct problem *q = in->q;
    const struct ref_epilogue *e = context;
    bool late = q->ref.scale == REF_SCALE_CHANNEL || q->ref.scale == REF_SCALE_TENSOR;
    double x = late ? q->acc[row * q->cols_count + j] : 0.0;

    return encode(in, ref_epilogue_one(e, row, q->cols[j], x, true));
}

/* Even rows: the odd ones of fill X are special, and zero times infinity says nothing about
 * scales. */
static bool zero_scales(const struct check_in *in, int64_t *rows, struct finding *f)
{
    const struct problem *q = in->q;
    struct hum_weights standard = in->trial->shared->tensors.standard, weights;
    struct ref_gemm changed = q->ref;
    struct ref_epilogue e;
    struct trial_out out;
    int64_t m = (in->launch->m + 1) / 2;

    if (dtype_decode(q->ref.bs, 0) != 0.0)
        return true;
    changed.bs_codes = arena_zalloc(in->scratch, ref_input_sizes(&q->ref).bs, sizeof(uint32_t));
    standard.weight_scale.data = arena_zalloc(in->scratch, standard.weight_scale.bytes, 1);
    if (!changed.bs_codes || !standard.weight_scale.data) {
        finding_give(f, VERDICT_INFRA, "the check needs more memory than the limit of a worker");
        return false;
    }
    for (int64_t i = 0; i < m; i++)
        rows[i] = 2 * i;
    ref_epilogue_init(&changed, 0.0f, &e);
    return trial_transform(in->trial, &standard, &weights, f) &&
           launch_rows(in, rows, m, &weights, &out, f) &&
           compare(in, out.codes, rows, m, expect_zero_scale, &e, "a product of zero scales", f);
}

/* ---- no rows --------------------------------------------------------------------------------- */

static bool no_rows(const struct check_in *in, struct finding *f)
{
    struct trial_options o = trial_plain(0);
    struct trial_out out;

    f->compared++;
    return trial_run(in->trial, &o, &out, f);
}

void check_special(const struct check_in *in, struct finding *f)
{
    int64_t *rows = arena_alloc(in->scratch, (size_t)in->launch->m, sizeof *rows);

    if (!rows) {
        finding_give(f, VERDICT_INFRA, "the check needs more memory than the limit of a worker");
        return;
    }
    (void)(whole_case(in, rows, f) && single_rows(in, f) && zero_rows(in, f) &&
           zero_scales(in, rows, f) && no_rows(in, f));
}
