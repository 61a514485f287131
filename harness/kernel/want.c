/* Expected codes: one exact sum and the documented epilogue, by the kind of fill. */
#include "harness/kernel/problem.h"

#include "reference/blas.h"
#include "reference/codec16.h"
#include "reference/round.h"

#include <math.h>
#include <string.h>

static const char memory_out[] = "the reference needs more memory than the limit of a worker";

/* ---- scales on accumulators, folded into the operands ---------------------------------------- */

/* a x input group scale: exact in f32 for fills E1, E2, W, S, X (short significands), checked by
 * the caller through the norms. */
static bool fold_a(struct problem *q, struct arena *arena)
{
    const struct ref_gemm *p = &q->ref;
    int64_t groups = ref_input_groups(p);

    q->a_eff = q->a;
    if (!p->input_group)
        return true;
    q->a_eff = arena_alloc(arena, (size_t)(p->m * p->k), sizeof *q->a_eff);
    for (int64_t i = 0; q->a_eff && i < p->m; i++)
        for (int64_t l = 0; l < p->k; l++)
            q->a_eff[i * p->k + l] =
                q->a[i * p->k + l] * p->input_scale[i * groups + l / p->input_group];
    return q->a_eff != NULL;
}

/* The integer scale of weight (col, l). */
static int32_t int_scale_at(const struct problem *q, int64_t col, int64_t l)
{
    return q->s_int[col * ref_groups(&q->ref) + l / q->ref.group];
}

double problem_c_scale(const struct problem *q, int64_t col, int64_t l)
{
    const struct ref_gemm *p = &q->ref;
    struct ref_gemm alone = *p;

    if (!ref_scales_on_c(p))
        return 1.0;
    if (p->int_scale)
        return int_scale_at(q, col, l);
    alone.input_group = 0; /* without the input scale: that one is folded into a */
    alone.f16_accum = false;
    return ref_flush_factor(&alone, 0, col, l);
}

/* The column, among those of all experts, of row j of w. */
static int64_t column_of(const struct problem *q, int64_t j)
{
    return j / q->cols_count * q->ref.n + q->cols[j % q->cols_count];
}

static bool fold_w(struct problem *q, struct arena *arena)
{
    const struct ref_gemm *p = &q->ref;

    q->w_eff = q->w;
    if (!ref_scales_on_c(p))
        return true;
    q->w_eff = arena_alloc(arena, (size_t)(p->experts * q->cols_count * p->k), sizeof *q->w_eff);
    for (int64_t j = 0; q->w_eff && j < p->experts * q->cols_count; j++)
        for (int64_t g = 0; g * p->group < p->k; g++) {
            int64_t end = (g + 1) * p->group < p->k ? (g + 1) * p->group : p->k;
            double s = problem_c_scale(q, column_of(q, j), g * p->group);

            for (int64_t l = g * p->group; l < end; l++) {
                double x = (double)q->w[j * p->k + l] * s;

                q->w_eff[j * p->k + l] = (float)x;
                if ((double)(float)x != x && !isnan(x))
                    q->inexact =
                        "a weight times its scale has more than 24 bits: accumulators round";
            }
        }
    return q->w_eff != NULL;
}

/* ---- conditions ------------------------------------------------------------------------------ */

/* int32 accumulators, and nothing is flushed through f32. */
static bool sums_integers(const struct ref_gemm *p)
{
    return !p->a->is_float && (p->int_scale || (!ref_scales_on_c(p) && !p->input_group));
}

/* What holds every partial sum: 24 bits of f32; int32, which knows no unit. */
static const char *accumulator_holds(const struct problem *q)
{
    if (sums_integers(&q->ref))
        return q->ones < 0x1p31 ? NULL : "sums may leave int32: P is not below 2^31";
    return q->p < 0x1p24 ? NULL : "accumulators may round: P is not below 2^24 units";
}

/* The unit becomes 1: an int32 overflows by size, whatever its low bits. */
static void in_ones(struct ref_norm *norms, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        norms[i].sum = ldexp(norms[i].sum, norms[i].unit);
        norms[i].max = ldexp(norms[i].max, norms[i].unit);
        norms[i].unit = 0;
    }
}

/* Rows and columns that meet: `count` rows of a, which are these rows of the output (NULL: 0, 1,
 * ...), with the columns of one expert. */
struct met {
    struct problem *q;
    const int64_t *rows;
    int64_t count, expert;
};

/* Is a partial result, of sum x at most, finite in an f16 accumulator and in the output, there
 * before and behind the channel scale? */
static bool stays_finite(const struct problem *q, int64_t row, int64_t col, double x)
{
    struct ref_epilogue without = q->epilogue;

    if (q->ref.f16_accum && !(x <= dtype_max(dtype_find("f16"))))
        return false;
    without.has_channel = false;
    return isfinite(ref_epilogue_one(&q->epilogue, row, col, x, false)) &&
           isfinite(ref_epilogue_one(&without, row, col, x, false));
}

static void see_chunks(void *context, int64_t i, int64_t j, struct ref_chunks of)
{
    const struct met *met = context;
    struct problem *q = met->q;
    int64_t row = q->routing.row_a[met->rows ? met->rows[i] : i];
    int64_t col = met->expert * q->ref.n + q->cols[j];

    q->sum_overflows |= !stays_finite(q, row, col, of.sum);
    q->range_overflows |= !stays_finite(q, row, col, of.range);
}

static const char *measure(struct met *met, const float *a, const float *w, struct arena *arena)
{
    struct problem *q = met->q;
    const int64_t count = met->count;
    const struct ref_chunk_watch watch = {see_chunks, met};
    const struct ref_gemm *p = &q->ref;
    struct ref_norm *na = arena_alloc(arena, (size_t)count, sizeof *na);
    struct ref_norm *nw = arena_alloc(arena, (size_t)q->cols_count, sizeof *nw);
    float *work = arena_alloc(arena, (size_t)(16 * p->k + 64), sizeof *work);
    struct ref_chunks chunks;
    double largest;

    if (!na || !nw || !work)
        return memory_out;
    ref_norms(a, count, p->k, na);
    ref_norms(w, q->cols_count, p->k, nw);
    largest = ref_exact_p(na, count, nw, q->cols_count);
    chunks = (struct ref_chunks){largest, largest};
    if (q->fill.kind == REF_FILL_E2 && isfinite(largest))
        chunks = ref_exact_chunks(&(struct ref_rows){a, na, count},
                                  &(struct ref_rows){w, nw, q->cols_count}, p->k, work,
                                  p->c->exp_bits == 5 || p->f16_accum ? &watch : NULL);
    q->p = fmax(q->p, largest);
    in_ones(na, count);
    in_ones(nw, q->cols_count);
    q->ones = fmax(q->ones, ref_exact_p(na, count, nw, q->cols_count));
    q->chunks.sum = fmax(q->chunks.sum, chunks.sum);
    q->chunks.range = fmax(q->chunks.range, chunks.range);
    return NULL;
}

static void judge_measure(struct problem *q)
{
    if (!q->inexact)
        q->inexact = accumulator_holds(q);
    if (q->ref.f16_accum && !q->inexact && !(q->chunks.sum <= 0x1p11))
        q->inexact = "f16 accumulators may round: the chunk sums exceed 2^11 units";
    if (q->ref.f16_accum && !q->inexact && q->sum_overflows)
        q->inexact = "f16 accumulators may overflow: the chunk sums reach beyond its numbers";
}

/* ---- products -------------------------------------------------------------------------------- */

static void widen(const float *x, double *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (double)x[i];
}

/* c = a w, in double. sgemm where P < 2^24 makes it exact; dgemm holds 2^53. */
static bool multiply(const struct problem *q, const float *a, const float *w, int64_t m, double *c,
                     int threads, struct arena *arena)
{
    int64_t n = q->cols_count, k = q->ref.k;

    if (q->p < 0x1p24) {
        float *c32 = arena_alloc(arena, (size_t)(m * n), sizeof *c32);

        if (!c32 || !ref_blas_exact_f32(m, n, k, a, w, c32, threads))
            return false;
        widen(c32, c, (size_t)(m * n));
    } else {
        double *a64 = arena_alloc(arena, (size_t)(m * k), sizeof *a64);
        double *w64 = arena_alloc(arena, (size_t)(n * k), sizeof *w64);

        if (!a64 || !w64)
            return false;
        widen(a, a64, (size_t)(m * k));
        widen(w, w64, (size_t)(n * k));
        if (!(q->p <= 0x1p53)) /* judged inexact; the bits are still those of every other m */
            return ref_blas_f64(m, n, k, a64, w64, c, threads);
        return ref_blas_exact_f64(m, n, k, a64, w64, c, threads);
    }
    return true;
}

/* The output rows of one expert and their rows of A, one after the other. */
struct gathered {
    int64_t count;
    int64_t *out;
    float *a; /* count x k */
};

/* False: memory is out. */
static bool gather(const struct problem *q, int64_t e, struct arena *arena, struct gathered *g)
{
    const struct routing *r = &q->routing;
    int64_t k = q->ref.k;

    g->count = 0;
    g->out = arena_alloc(arena, (size_t)r->rows, sizeof *g->out);
    for (int64_t row = 0; g->out && row < r->rows; row++)
        if (r->row_expert[row] == e)
            g->out[g->count++] = row;
    g->a = arena_alloc(arena, (size_t)(g->count * k), sizeof *g->a);
    if (!g->out || !g->a)
        return false;
    for (int64_t i = 0; i < g->count; i++)
        memcpy(g->a + i * k, q->a_eff + r->row_a[g->out[i]] * k, (size_t)k * sizeof *g->a);
    return true;
}

/* One expert's part of the product: measured, multiplied, scattered. */
static const char *expert_product(struct problem *q, int64_t e, int threads, struct arena *arena)
{
    const float *w = q->w_eff + e * q->cols_count * q->ref.k;
    int64_t n = q->cols_count;
    struct gathered g;
    const char *why;
    double *c;

    if (!gather(q, e, arena, &g))
        return memory_out;
    if (g.count == 0)
        return NULL;
    why = measure(&(struct met){q, g.out, g.count, e}, g.a, w, arena);
    if (why)
        return why;
    c = arena_alloc(arena, (size_t)(g.count * n), sizeof *c);
    if (!c || !multiply(q, g.a, w, g.count, c, threads, arena))
        return memory_out;
    for (int64_t i = 0; i < g.count; i++)
        memcpy(q->acc + g.out[i] * n, c + i * n, (size_t)n * sizeof *c);
    return NULL;
}

static const char *dense_product(struct problem *q, int threads, struct arena *arena)
{
    const char *why = measure(&(struct met){q, NULL, q->ref.m, 0}, q->a_eff, q->w_eff, arena);

    if (why)
        return why;
    return multiply(q, q->a_eff, q->w_eff, q->ref.m, q->acc, threads, arena) ? NULL : memory_out;
}

static const char *product(struct problem *q, int threads, struct arena *arena)
{
    bool dense = q->routing.type == HUM_GEMM_DENSE;
    size_t mark = arena->used;
    const char *why = dense ? dense_product(q, threads, arena) : NULL;

    for (int64_t e = 0; !dense && !why && e < q->ref.experts; e++) {
        arena->used = mark;
        why = expert_product(q, e, threads, arena);
    }
    arena->used = mark;
    judge_measure(q);
    return why;
}

/* Fill X: plain loops, since a BLAS promises nothing about NaN and infinity. */
static void special_product(struct problem *q)
{
    const struct ref_gemm *p = &q->ref;

    for (int64_t i = 0; i < q->routing.rows; i++)
        for (int64_t j = 0; problem_writes(q, i) && j < q->cols_count; j++) {
            const float *a = q->a_eff + q->routing.row_a[i] * p->k;
            const float *w = q->w_eff + problem_w_at(q, i, j);
            double sum = 0.0;

            for (int64_t l = 0; l < p->k; l++)
                sum += (double)a[l] * (double)w[l];
            q->acc[i * q->cols_count + j] = sum;
        }
}

/* ---- one or two products an output: fills P, O and C ----------------------------------------- */

/* The chain's result where all activations of row `row` of A but the one at `live` are zero, for
 * row j of w: the product, through one flush if there is one. */
static double single(const struct problem *q, int64_t row, int64_t j, int64_t live)
{
    const struct ref_gemm *p = &q->ref;
    double c0 = (double)q->a[row * p->k + live] * (double)q->w[j * p->k + live];
    int64_t col = column_of(q, j);
    double f;

    if (q->fill.kind == REF_FILL_C) /* two terms, of at most 24 bits together */
        c0 += (double)q->a[row * p->k + live + p->group] * (double)q->w[j * p->k + live + p->group];
    if (p->f16_accum)
        c0 = round_to(dtype_find("f16"), (double)(float)c0);
    if (p->int_scale)
        return c0 * int_scale_at(q, col, live);
    if (!ref_scales_on_c(p) && !p->input_group)
        return c0;
    f = ref_flush_factor(p, row, col, live);
    return p->f16_accum ? round_to(dtype_find("f16"), f * c0)
                        : (double)(float)(f * (double)(float)c0);
}

/* Zero times infinity: a column with an infinite or NaN weight reads NaN in every row whose live
 * k is another. */
static int64_t not_finite(const float *w, int64_t k, int64_t *at)
{
    int64_t count = 0;

    for (int64_t l = 0; l < k; l++)
        if (!isfinite(w[l])) {
            count++;
            *at = l;
        }
    return count;
}

static void single_column(struct problem *q, int64_t j)
{
    const struct ref_gemm *p = &q->ref;
    int64_t at = -1, bad = not_finite(q->w + j * p->k, p->k, &at);

    for (int64_t i = 0; i < q->routing.rows; i++) {
        int64_t row = q->routing.row_a[i], live;
        bool lost;

        if (q->routing.row_expert[i] != j / q->cols_count)
            continue;
        live = ref_fill_live_k(&q->fill, p, row);
        lost = bad > 1 || (bad == 1 && at != live);
        q->acc[i * q->cols_count + j % q->cols_count] =
            lost ? (double)NAN : single(q, row, j, live);
    }
}

/* ---- everything ------------------------------------------------------------------------------ */

static const char *sums(struct problem *q, int threads, struct arena *arena)
{
    if (!fold_a(q, arena) || !fold_w(q, arena))
        return memory_out;
    if (q->fill.kind != REF_FILL_X)
        return product(q, threads, arena);
    special_product(q);
    return NULL;
}

static const char *accumulators(struct problem *q, int threads, struct arena *arena)
{
    bool single_product =
        q->fill.kind == REF_FILL_P || q->fill.kind == REF_FILL_O || q->fill.kind == REF_FILL_C;

    q->acc = arena_alloc(arena, (size_t)(q->routing.rows * q->cols_count), sizeof *q->acc);
    if (!q->acc)
        return memory_out;
    if (!single_product)
        return sums(q, threads, arena);
    for (int64_t j = 0; j < q->ref.experts * q->cols_count; j++)
        single_column(q, j);
    return NULL;
}

/* Output rows from `row` on that follow one another in A, too, and have one expert. */
static int64_t run_of(const struct routing *r, int64_t row)
{
    int64_t count = 1;

    while (row + count < r->rows && r->row_expert[row + count] == r->row_expert[row] &&
           r->row_a[row + count] == r->row_a[row] + count)
        count++;
    return count;
}

const char *problem_want(struct problem *q, int threads, struct arena *arena)
{
    const struct routing *r = &q->routing;
    const char *why = accumulators(q, threads, arena);
    int64_t n = q->cols_count;
    double *work = arena_alloc(arena, (size_t)(3 * n), sizeof *work);
    int64_t *cols = arena_alloc(arena, (size_t)n, sizeof *cols);
    struct ref_block block = {.cols = cols, .n = n};

    if (why)
        return why;
    q->want = arena_alloc(arena, (size_t)(r->rows * n), sizeof *q->want);
    if (!work || !cols || !q->want)
        return memory_out;
    for (int64_t row = 0, count; row < r->rows; row += count) {
        count = run_of(r, row);
        if (!problem_writes(q, row))
            continue;
        for (int64_t j = 0; j < n; j++)
            cols[j] = problem_col(q, row, j);
        block.row0 = r->row_a[row];
        block.row1 = block.row0 + count;
        ref_epilogue_rows(&q->epilogue, &block, q->acc + row * n, work, q->want + row * n);
    }
    return NULL;
}
