#include "harness/kernel/special_cases.h"

#include "harness/kernel/trial.h"
#include "harness/kernel/trust.h"
#include "reference/routing.h"

#include <math.h>
#include <string.h>

enum { ZERO_ROWS = 5 };

static const char memory_out[] = "the check needs more memory than the limit of a worker";

/* What the launches of a case share. */
struct specials {
    const struct check_in *in;
    struct finding *f;
    const int32_t *index; /* of the case's outputs (routing.h) */
    struct mix all;       /* its rows */
    struct mix now;       /* those of the launch in hand */
};

/* One row to look at. */
struct seen {
    int64_t a;   /* its row of A; ROW_ZERO, ... */
    int64_t e;   /* its expert */
    int64_t row; /* the output row of the case that has both; meaningless where a < 0 */
};

/* The expected code of that row, index j into the columns looked at. */
typedef uint16_t expect_fn(const struct check_in *in, const void *context, const struct seen *s,
                           int64_t j);

static uint16_t expect_want(const struct check_in *in, const void *context, const struct seen *s,
                            int64_t j)
{
    (void)context;
    return in->q->want[s->row * in->q->cols_count + j];
}

static void compare_row(const struct check_in *in, const uint16_t *got, expect_fn *expect,
                        const void *context, const struct seen *s, int64_t at, struct finding *f)
{
    const struct problem *q = in->q;

    for (int64_t j = 0; j < q->cols_count; j++) {
        uint16_t have = got[at * q->ref.n + q->cols[j]];
        uint16_t want = expect(in, context, s, j);

        f->compared++;
        if (!finding_same(q->ref.c, have, want))
            finding_code(f, q->ref.c, s->a < 0 ? at : s->row, q->cols[j], have, want);
    }
}

static bool judge(struct finding *f, const char *what)
{
    if (f->wrong)
        finding_give(f, VERDICT_FAIL, "%llu outputs of %s differ from the only right code",
                     (unsigned long long)f->wrong, what);
    return f->wrong == 0;
}

/* All outputs of a launch whose row of A and expert the case has together, and those of rows that
 * no problem has. */
static void compare(const struct specials *s, const struct mix_launch *l, const uint16_t *got,
                    expect_fn *expect, const void *context)
{
    const struct routing *r = &l->routing;

    for (int64_t i = 0; i < r->rows; i++) {
        struct seen seen = {.e = r->row_expert[i], .row = -1};

        if (seen.e < 0)
            continue;
        seen.a = l->rows[r->row_a[i]];
        if (seen.a >= 0)
            seen.row = s->index[seen.a * r->experts + seen.e];
        if (seen.a < 0 || seen.row >= 0)
            compare_row(s->in, got, expect, context, &seen, i, s->f);
    }
}

/* Launches s->now. False: `f` has the verdict. */
static bool launch(const struct specials *s, const struct hum_weights *weights, expect_fn *expect,
                   const void *context, const char *what)
{
    size_t mark = s->in->scratch->used;
    struct trial_options o;
    struct mix_launch l;
    struct trial_out out;
    bool fine = trial_mix(s->in->trial, &s->now, s->in->scratch, &l, &o, s->f);

    o.weights = weights;
    fine = fine && trial_run(s->in->trial, &o, &out, s->f);
    if (fine)
        compare(s, &l, out.codes, expect, context);
    s->in->scratch->used = mark;
    return fine && judge(s->f, what);
}

/* ---- the case, and rows of it ---------------------------------------------------------------- */

static bool whole_case(const struct specials *s)
{
    const struct check_in *in = s->in;
    const struct routing *r = &in->q->routing;

    for (int64_t i = 0; i < problem_rows(in->q, in->launch->m); i++) {
        struct seen seen = {.a = r->row_a[i], .e = r->row_expert[i], .row = i};

        if (seen.e >= 0)
            compare_row(in, in->got, expect_want, NULL, &seen, i, s->f);
    }
    return judge(s->f, "the case");
}

/* Puts row `from` of the case, with its experts, at the end of the launch in hand. */
static void take(struct specials *s, int64_t from)
{
    size_t k = (size_t)s->in->q->routing.top_k;

    memcpy(s->now.experts + (size_t)s->now.count * k, s->all.experts + (size_t)from * k,
           k * sizeof *s->now.experts);
    s->now.rows[s->now.count++] = s->all.rows[from];
}

/* One row at a time: of fill X, 1 has a NaN, 3 and 5 infinities, 7 both. */
static bool single_rows(struct specials *s)
{
    static const int64_t chosen[] = {0, 1, 3, 5, 7};

    for (size_t c = 0; c < sizeof chosen / sizeof chosen[0]; c++)
        for (int64_t i = 0; i < s->all.count; i++) {
            if (s->all.rows[i] != chosen[c])
                continue;
            s->now.count = 0;
            take(s, i);
            if (!launch(s, NULL, expect_want, NULL, "a single row"))
                return false;
        }
    return true;
}

/* ---- zeros ----------------------------------------------------------------------------------- */

static uint16_t encode(const struct check_in *in, double y)
{
    return (uint16_t)dtype_encode(in->q->ref.c, y, DTYPE_TO_TOP);
}

/* Zero times anything finite is zero; times the rest it is NaN. Special rows have the scales of
 * row 0. */
static uint16_t expect_zero_row(const struct check_in *in, const void *context,
                                const struct seen *s, int64_t j)
{
    const struct problem *q = in->q;
    const float *w = q->w_eff + (s->e * q->cols_count + j) * q->ref.k;
    double x = 0.0;

    (void)context;
    for (int64_t l = 0; l < q->ref.k; l++)
        if (!isfinite(w[l]))
            x = (double)NAN;
    return encode(in, ref_epilogue_one(&q->epilogue, 0, s->e * q->ref.n + q->cols[j], x, true));
}

/* With experts, all of them in turn. */
static bool zero_rows(struct specials *s)
{
    static const struct {
        int64_t rows[ZERO_ROWS];
        const char *what;
    } kinds[] = {
        {{ROW_ZERO, ROW_ZERO, ROW_ZERO, ROW_ZERO, ROW_ZERO}, "all-zero rows"},
        {{ROW_MINUS_ZERO, ROW_ZERO, ROW_MINUS_ZERO, ROW_MINUS_ZERO, ROW_MINUS_ZERO}, "rows of -0"},
    };
    const struct routing *r = &s->in->q->routing;

    s->now.count = ZERO_ROWS;
    for (int64_t i = 0; i < ZERO_ROWS * r->top_k; i++)
        s->now.experts[i] = (int32_t)(i % r->experts);
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        memcpy(s->now.rows, kinds[k].rows, sizeof kinds[k].rows);
        if (!launch(s, NULL, expect_zero_row, NULL, kinds[k].what))
            return false;
    }
    return true;
}

/* ---- zero scales ----------------------------------------------------------------------------- */

/* Scales that act on operands or accumulators leave sums of zero; those of the epilogue meet the
 * sums as they are. */
static uint16_t expect_zero_scale(const struct check_in *in, const void *context,
                                  const struct seen *s, int64_t j)
{
    const struct problem *q = in->q;
    const struct ref_epilogue *e = context;
    bool late = q->ref.scale == REF_SCALE_CHANNEL || q->ref.scale == REF_SCALE_TENSOR;
    double x = late ? q->acc[s->row * q->cols_count + j] : 0.0;

    return encode(in, ref_epilogue_one(e, s->a, s->e * q->ref.n + q->cols[j], x, true));
}

/* Even rows: the odd ones of fill X are special, and zero times infinity says nothing about
 * scales. */
static bool zero_scales(struct specials *s)
{
    const struct check_in *in = s->in;
    const struct problem *q = in->q;
    struct hum_weights standard = in->trial->shared->tensors.standard, weights;
    struct ref_gemm changed = q->ref;
    struct ref_epilogue e;

    if (dtype_decode(q->ref.bs, 0) != 0.0)
        return true;
    changed.bs_codes = arena_zalloc(in->scratch, ref_input_sizes(&q->ref).bs, sizeof(uint32_t));
    standard.weight_scale.data = arena_zalloc(in->scratch, standard.weight_scale.bytes, 1);
    if (!changed.bs_codes || !standard.weight_scale.data) {
        finding_give(s->f, VERDICT_INFRA, "%s", memory_out);
        return false;
    }
    s->now.count = 0;
    for (int64_t i = 0; i < s->all.count; i++)
        if (s->all.rows[i] % 2 == 0)
            take(s, i);
    ref_epilogue_init(&changed, 0.0f, &e);
    return trial_transform(in->trial, &standard, &weights, s->f) &&
           launch(s, &weights, expect_zero_scale, &e, "a product of zero scales");
}

/* ---- routings -------------------------------------------------------------------------------- */

/* All places of the launch in hand have this expert; below 0: none (reference/routing.h). */
static bool all_to(struct specials *s, int32_t expert, const char *what)
{
    s->now.count = 0;
    for (int64_t i = 0; i < s->all.count; i++)
        take(s, i);
    for (int64_t i = 0; i < s->now.count * s->in->q->routing.top_k; i++)
        s->now.experts[i] = expert;
    s->f->compared++; /* that nothing else is written */
    return launch(s, NULL, expect_want, NULL, what);
}

/* One expert has every row, each slot of a token included; nobody has any. */
static bool routings(struct specials *s)
{
    const struct routing *r = &s->in->q->routing;

    if (r->type == HUM_GEMM_DENSE)
        return true;
    return all_to(s, 0, "one expert") && all_to(s, (int32_t)r->experts - 1, "one expert") &&
           all_to(s, REF_NOWHERE, "nobody") && all_to(s, REF_ELSEWHERE(0), "other ranks");
}

/* ---- no rows --------------------------------------------------------------------------------- */

static bool no_rows(struct specials *s)
{
    s->now.count = 0;
    s->f->compared++;
    return launch(s, NULL, expect_want, NULL, "no rows");
}

void check_special(const struct check_in *in, struct finding *f)
{
    const struct routing *r = &in->q->routing;
    struct specials s = {.in = in, .f = f, .index = routing_index(r, in->scratch)};
    char text[HUM_REASON_BYTES];
    /* Zeros have one right result where other sums have several. */
    bool several = trust_ambiguous(in, BASIS_SPECIAL, text, sizeof text) != NULL;

    if (!s.index || !mix_make(r, in->launch->m, 0, in->scratch, &s.all) ||
        !mix_make(r, in->launch->m, ZERO_ROWS, in->scratch, &s.now)) {
        finding_give(f, VERDICT_INFRA, "%s", memory_out);
        return;
    }
    (void)((several || (whole_case(&s) && single_rows(&s))) && zero_rows(&s) && zero_scales(&s) &&
           (several || routings(&s)) && no_rows(&s));
}
