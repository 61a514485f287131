/* Expected codes: one exact sum and the documented epilogue, by the kind of fill. */
#include "harness/kernel/problem.h"

#include "reference/blas.h"
#include "reference/codec16.h"
#include "reference/round.h"

#include <math.h>
#include <string.h>

static const char memory_out[] = "the reference needs more memory than the limit of a worker";

/* ---- scales on accumulators, folded into the operands ------------------------------------------------- */

/* a x input group scale: exact in f32 for fills E1, E2, W, S, X (short significands), checked by the caller through the norms. */
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

double problem_c_scale(const struct problem *q, int64_t col, int64_t l)
{
    const struct ref_gemm *p = &q->ref;
    struct ref_gemm alone = *p;

    if (!ref_scales_on_c(p))
        return 1.0;
    if (p->int_scale)
        return q->s_int[col * ref_groups(p) + l / p->group];
    alone.input_group = 0; /* without the input scale: that one is folded into a */
    alone.f16_accum = false;
    return ref_flush_factor(&alone, 0, col, l);
}

static bool fold_w(struct problem *q, struct arena *arena)
{
    const struct ref_gemm *p = &q->ref;

    q->w_eff = q->w;
    if (!ref_scales_on_c(p))
        return true;
    q->w_eff = arena_alloc(arena, (size_t)(q->cols_count * p->k), sizeof *q->w_eff);
    for (int64_t j = 0; q->w_eff && j < q->cols_count; j++)
        for (int64_t g = 0; g * p->group < p->k; g++) {
            int64_t end = (g + 1) * p->group < p->k ? (g + 1) * p->group : p->k;
            double s = problem_c_scale(q, q->cols[j], g * p->group);

            for (int64_t l = g * p->group; l < end; l++) {
                double x = (double)q->w[j * p->k + l] * s;

                q->w_eff[j * p->k + l] = (float)x;
                if ((double)(float)x != x)
                    q->inexact =
                        "a weight times its scale has more than 24 bits: accumulators round";
            }
        }
    return q->w_eff != NULL;
}

/* ---- conditions ------------------------------------------------------------------------------------------ */

/* What holds every partial sum: 24 bits of f32; int32 where nothing is flushed through f32. */
static const char *accumulator_holds(const struct problem *q)
{
    const struct ref_gemm *p = &q->ref;
    bool integer = !p->a->is_float && (p->int_scale || (!ref_scales_on_c(p) && !p->input_group));

    if (integer)
        return q->p < 0x1p31 ? NULL : "sums may leave int32: P is not below 2^31";
    return q->p < 0x1p24 ? NULL : "accumulators may round: P is not below 2^24 units";
}

static const char *measure(struct problem *q, struct arena *arena)
{
    const struct ref_gemm *p = &q->ref;
    struct ref_norm *na = arena_alloc(arena, (size_t)p->m, sizeof *na);
    struct ref_norm *nw = arena_alloc(arena, (size_t)q->cols_count, sizeof *nw);
    float *work = arena_alloc(arena, (size_t)(16 * p->k + 64), sizeof *work);

    if (!na || !nw || !work)
        return memory_out;
    ref_norms(q->a_eff, p->m, p->k, na);
    ref_norms(q->w_eff, q->cols_count, p->k, nw);
    q->p = ref_exact_p(na, p->m, nw, q->cols_count);
    if (!q->inexact)
        q->inexact = accumulator_holds(q);
    q->chunks = (struct ref_chunks){q->p, q->p};
    if (q->fill.kind == REF_FILL_E2 && isfinite(q->p))
        q->chunks = ref_exact_chunks(q->a_eff, na, p->m, q->w_eff, nw, q->cols_count, p->k, work);
    if (p->f16_accum && !q->inexact && !(q->chunks.sum <= 0x1p11))
        q->inexact = "f16 accumulators may round: the chunk sums exceed 2^11 units";
    return NULL;
}

/* ---- products --------------------------------------------------------------------------------------------- */

static void widen(const float *x, double *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (double)x[i];
}

/* sgemm where P < 2^24 makes it exact; dgemm holds 2^53. */
static const char *product(struct problem *q, int threads, struct arena *arena)
{
    const struct ref_gemm *p = &q->ref;
    int64_t m = p->m, n = q->cols_count, k = p->k;
    size_t mark;
    bool ok;

    q->acc = arena_alloc(arena, (size_t)(m * n), sizeof *q->acc);
    mark = arena->used;
    if (!q->acc)
        return memory_out;
    if (q->p < 0x1p24) {
        float *c = arena_alloc(arena, (size_t)(m * n), sizeof *c);

        ok = c && ref_blas_f32(m, n, k, q->a_eff, q->w_eff, c, threads);
        if (ok)
            widen(c, q->acc, (size_t)(m * n));
    } else {
        double *a = arena_alloc(arena, (size_t)(m * k), sizeof *a);
        double *w = arena_alloc(arena, (size_t)(n * k), sizeof *w);

        ok = a && w;
        if (ok) {
            widen(q->a_eff, a, (size_t)(m * k));
            widen(q->w_eff, w, (size_t)(n * k));
            ok = ref_blas_f64(m, n, k, a, w, q->acc, threads);
        }
    }
    arena->used = mark;
    return ok ? NULL : memory_out;
}

/* Fill X: plain loops, since a BLAS promises nothing about NaN and infinity. */
static const char *special_product(struct problem *q, struct arena *arena)
{
    const struct ref_gemm *p = &q->ref;

    q->acc = arena_alloc(arena, (size_t)(p->m * q->cols_count), sizeof *q->acc);
    if (!q->acc)
        return memory_out;
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < q->cols_count; j++) {
            const float *a = q->a_eff + i * p->k, *w = q->w_eff + j * p->k;
            double sum = 0.0;

            for (int64_t l = 0; l < p->k; l++)
                sum += (double)a[l] * (double)w[l];
            q->acc[i * q->cols_count + j] = sum;
        }
    return NULL;
}

/* ---- one or two products an output: fills P, O and C ------------------------------------------------------------------- */

/* The chain's result where all activations but the one at `live` are zero: the product, through one flush if there is one. */
static double single(const struct problem *q, int64_t row, int64_t j, int64_t live)
{
    const struct ref_gemm *p = &q->ref;
    double c0 = (double)q->a[row * p->k + live] * (double)q->w[j * p->k + live];
    double f;

    if (q->fill.kind == REF_FILL_C) /* two terms, of at most 24 bits together */
        c0 += (double)q->a[row * p->k + live + p->group] * (double)q->w[j * p->k + live + p->group];
    if (p->f16_accum)
        c0 = round_to(dtype_find("f16"), (double)(float)c0);
    if (p->int_scale)
        return c0 * q->s_int[q->cols[j] * ref_groups(p) + live / p->group];
    if (!ref_scales_on_c(p) && !p->input_group)
        return c0;
    f = ref_flush_factor(p, row, q->cols[j], live);
    return p->f16_accum ? round_to(dtype_find("f16"), f * c0)
                        : (double)(float)(f * (double)(float)c0);
}

/* Zero times infinity: a column with an infinite or NaN weight reads NaN in every row whose live k is another. */
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

static const char *single_products(struct problem *q, struct arena *arena)
{
    const struct ref_gemm *p = &q->ref;

    q->acc = arena_alloc(arena, (size_t)(p->m * q->cols_count), sizeof *q->acc);
    if (!q->acc)
        return memory_out;
    for (int64_t j = 0; j < q->cols_count; j++) {
        int64_t at = -1, bad = not_finite(q->w + j * p->k, p->k, &at);

        for (int64_t i = 0; i < p->m; i++) {
            int64_t live = ref_fill_live_k(&q->fill, p, i);
            bool lost = bad > 1 || (bad == 1 && at != live);

            q->acc[i * q->cols_count + j] = lost ? (double)NAN : single(q, i, j, live);
        }
    }
    return NULL;
}

/* ---- everything ------------------------------------------------------------------------------------------------ */

static const char *sums(struct problem *q, int threads, struct arena *arena)
{
    const char *why;

    if (!fold_a(q, arena) || !fold_w(q, arena))
        return memory_out;
    if (q->fill.kind == REF_FILL_X)
        return special_product(q, arena);
    why = measure(q, arena);
    return why ? why : product(q, threads, arena);
}

const char *problem_want(struct problem *q, int threads, struct arena *arena)
{
    const struct ref_gemm *p = &q->ref;
    bool single_product =
        q->fill.kind == REF_FILL_P || q->fill.kind == REF_FILL_O || q->fill.kind == REF_FILL_C;
    const char *why = single_product ? single_products(q, arena) : sums(q, threads, arena);
    double *work = arena_alloc(arena, (size_t)(3 * q->cols_count), sizeof *work);

    if (why)
        return why;
    q->want = arena_alloc(arena, (size_t)(p->m * q->cols_count), sizeof *q->want);
    if (!work || !q->want)
        return memory_out;
    ref_epilogue_rows(&q->epilogue, 0, p->m, q->cols_count == p->n ? NULL : q->cols, q->cols_count,
                      q->acc, work, q->want);
    return NULL;
}
