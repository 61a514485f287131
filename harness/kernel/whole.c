#include "harness/kernel/whole.h"

#include "reference/exact.h"
#include "reference/fault.h"
#include "reference/freivalds.h"

#include <math.h>
#include <string.h>

/* Columns at a time: their operands take CHUNK x k floats and integers. */
enum { CHUNK = 256 };

/* Elements that may be computed one by one, a row and a column of 4096 each. */
enum { MOST_SINGLES = 1 << 13 };

struct whole {
    const struct check_in *in;
    struct finding *f;
    struct ref_norm *rows, *cols; /* m, CHUNK */
    int32_t *alpha, *omega;       /* m x k, CHUNK x k: operands in their units */
    float *w;                     /* CHUNK x k */
    int64_t *y;                   /* m x CHUNK */
    uint64_t *work;
    bool *row_wrong, *col_wrong;
    int64_t begin, count; /* the columns in hand */
    int64_t singles;
};

/* ---- operands -------------------------------------------------------------------------------- */

/* Whole multiples of 2^unit of each row. */
static void to_integers(const float *x, const struct ref_norm *norms, int64_t rows, int64_t k,
                        int32_t *out)
{
    for (int64_t i = 0; i < rows; i++) {
        double inverse = ldexp(1.0, -norms[i].unit);

        for (int64_t l = 0; l < k; l++)
            out[i * k + l] = (int32_t)((double)x[i * k + l] * inverse);
    }
}

static bool scale_run(float *w, int64_t count, double s)
{
    for (int64_t i = 0; i < count; i++) {
        double x = (double)w[i] * s;

        w[i] = (float)x;
        if ((double)w[i] != x)
            return false;
    }
    return true;
}

/* The weights of the columns in hand, with the scales that act on accumulators; false where
 * these do not fit f32. */
static bool make_columns(struct whole *h)
{
    const struct problem *q = h->in->q;
    const struct ref_gemm *p = &q->ref;
    int64_t run = ref_scales_on_c(p) ? p->group : p->k;

    ref_operand_w(p, h->begin, h->begin + h->count, h->w);
    for (int64_t j = 0; j < h->count; j++)
        for (int64_t l = 0; l < p->k; l += run)
            if (!scale_run(h->w + j * p->k + l, l + run < p->k ? run : p->k - l,
                           problem_c_scale(q, h->begin + j, l)))
                return false;
    ref_norms(h->w, h->count, p->k, h->cols);
    return ref_exact_p(h->rows, p->m, h->cols, h->count) < 0x1p24;
}

/* ---- outputs --------------------------------------------------------------------------------- */

/* The exact sum of one output, in units. Products and sums stay below 2^53. */
static double sum_of(const struct whole *h, int64_t i, int64_t j)
{
    int64_t k = h->in->q->ref.k, sum = 0;

    for (int64_t l = 0; l < k; l++)
        sum += (int64_t)h->alpha[i * k + l] * h->omega[j * k + l];
    return (double)sum;
}

static double unit_of(const struct whole *h, int64_t i, int64_t j)
{
    return ldexp(1.0, h->rows[i].unit + h->cols[j].unit);
}

static double output_of(const struct whole *h, int64_t i, int64_t j, double sum)
{
    return ref_epilogue_one(&h->in->q->epilogue, i, h->begin + j, sum * unit_of(h, i, j), true);
}

/* One by one: compares the code, and gives the exact sum. */
static double single(struct whole *h, int64_t i, int64_t j)
{
    const struct problem *q = h->in->q;
    int64_t col = h->begin + j;
    uint16_t got = h->in->got[i * q->ref.n + col];
    double sum = sum_of(h, i, j);
    uint16_t want = (uint16_t)dtype_encode(q->ref.c, output_of(h, i, j, sum), DTYPE_TO_TOP);

    h->singles++;
    if (!finding_same(q->ref.c, got, want))
        finding_code(h->f, q->ref.c, i, col, got, want);
    return sum;
}

/* The odd whole number that x is a power of two times of. */
static double odd_part(double x)
{
    int e;

    x = fabs(frexp(x, &e));
    while (x != 0.0 && x != floor(x))
        x *= 2.0;
    return x;
}

/* The sum, in units, of which the output is the right code. While it, times the odd part of the
 * output of 1, fits the significand of c, no rounding hides it; elsewhere, and where the output
 * is no such number, the exact sum. */
static int64_t sum_behind(struct whole *h, int64_t i, int64_t j, double one, double odd)
{
    const struct problem *q = h->in->q;
    double got = dtype_decode(q->ref.c, h->in->got[i * q->ref.n + h->begin + j]);
    double sum = got / one, most = ldexp(1.0, q->ref.c->man_bits + 1);

    if (!isfinite(sum) || sum != floor(sum) || !(fabs(sum) * odd <= most) ||
        output_of(h, i, j, sum) != got)
        sum = single(h, i, j);
    return (int64_t)sum;
}

static void read_outputs(struct whole *h)
{
    int64_t m = h->in->launch->m;

    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < h->count && h->singles <= MOST_SINGLES; j++) {
            double one = output_of(h, i, j, 1.0);
            double odd = isfinite(one) && one != 0.0 ? odd_part(one) : HUGE_VAL;

            h->y[i * h->count + j] = sum_behind(h, i, j, one, odd);
        }
}

/* ---- one chunk of columns -------------------------------------------------------------------- */

/* Where wrong rows meet wrong columns. */
static void look_closer(struct whole *h)
{
    for (int64_t i = 0; i < h->in->launch->m; i++)
        for (int64_t j = 0; h->row_wrong[i] && j < h->count && h->singles <= MOST_SINGLES; j++)
            if (h->col_wrong[j])
                (void)single(h, i, j);
}

static void check_chunk(struct whole *h)
{
    const struct problem *q = h->in->q;
    struct ref_freivalds product = {.m = h->in->launch->m,
                                    .n = h->count,
                                    .k = q->ref.k,
                                    .alpha = h->alpha,
                                    .omega = h->omega,
                                    .y = h->y,
                                    .seed = q->fill.seed};
    struct ref_freivalds_found found;

    if (!make_columns(h)) {
        finding_give(h->f, VERDICT_UNTRUSTED,
                     "columns outside of the sample are not exact: accumulators may round");
        return;
    }
    to_integers(h->w, h->cols, h->count, q->ref.k, h->omega);
    read_outputs(h);
    if (h->singles <= MOST_SINGLES && h->f->wrong == 0 &&
        !ref_freivalds_check(&product, h->work, h->row_wrong, h->col_wrong, &found)) {
        look_closer(h);
        if (h->f->wrong == 0)
            finding_give(h->f, VERDICT_UNTRUSTED,
                         "the product is wrong in %lld rows, but none of the outputs looked at is",
                         (long long)found.rows);
    }
    if (h->singles > MOST_SINGLES && h->f->wrong == 0)
        finding_give(h->f, VERDICT_UNTRUSTED,
                     "too many outputs are larger than the format holds exactly");
    h->f->compared += (uint64_t)(product.m * h->count);
}

static bool alloc(struct whole *h)
{
    struct arena *a = h->in->scratch;
    size_t m = (size_t)h->in->q->ref.m, k = (size_t)h->in->q->ref.k;

    h->rows = arena_alloc(a, m, sizeof *h->rows);
    h->cols = arena_alloc(a, CHUNK, sizeof *h->cols);
    h->alpha = arena_alloc(a, m * k, sizeof *h->alpha);
    h->omega = arena_alloc(a, CHUNK * k, sizeof *h->omega);
    h->w = arena_alloc(a, CHUNK * k, sizeof *h->w);
    h->y = arena_alloc(a, m * CHUNK, sizeof *h->y);
    h->work = arena_alloc(a, ref_freivalds_words((int64_t)m, CHUNK, (int64_t)k), sizeof *h->work);
    h->row_wrong = arena_alloc(a, m, sizeof *h->row_wrong);
    h->col_wrong = arena_alloc(a, CHUNK, sizeof *h->col_wrong);
    return h->rows && h->cols && h->alpha && h->omega && h->w && h->y && h->work && h->row_wrong &&
           h->col_wrong;
}

void whole_check(const struct check_in *in, struct finding *f)
{
    const struct problem *q = in->q;
    struct whole h = {.in = in, .f = f};

    if (REF_FAULT(WHOLE_SKIPPED))
        return;
    if (q->cols_count == q->ref.n || q->fill.kind != REF_FILL_E2 || q->ref.has_bias ||
        q->routing.type != HUM_GEMM_DENSE)
        return;
    if (!alloc(&h)) {
        finding_give(f, VERDICT_INFRA, "the check needs more memory than the limit of a worker");
        return;
    }
    ref_norms(q->a_eff, q->ref.m, q->ref.k, h.rows);
    to_integers(q->a_eff, h.rows, q->ref.m, q->ref.k, h.alpha);
    for (; h.begin < q->ref.n && f->wrong == 0 && f->verdict == VERDICT_PASS; h.begin += h.count) {
        h.count = q->ref.n - h.begin < CHUNK ? q->ref.n - h.begin : CHUNK;
        check_chunk(&h);
    }
}
