#include "reference/model.h"

#include "reference/codec16.h"
#include "reference/round.h"
#include "reference/tensor_core.h"

/* LANES rows advance together: a chain is serial by nature, so that only other chains can fill
 * the pipeline. CHUNK values of a shifted column are made at a time; every block and instruction
 * ends where a chunk ends. */
enum { LANES = 8, CHUNK = MODEL_MAX_INSTRUCTION_K };

/* The chains of one K-warp: c0 restarts at each flush, c1 is what the flushes add up. Integers
 * as unsigned: they wrap. */
struct chains {
    float c0[LANES], c1[LANES];
    uint32_t i0[LANES], i1[LANES];
};

struct group;
typedef void (*advance_fn)(const struct group *g, const float *w, int64_t l, int64_t n,
                           struct chains *x);

/* Up to LANES outputs of one column. Unused lanes repeat lane 0. */
struct group {
    const struct ref_model *model;
    const struct ref_gemm *p;
    const struct ref_accum *s;
    const struct dtype *f16;
    const float *w; /* the column */
    int64_t col, row[LANES];
    const float *a[LANES]; /* the rows */
    int lanes;
    int shift;            /* w 2^-shift is what the instruction is fed */
    double unshift;       /* 2^-shift */
    bool is_int;          /* what comes out of a chain is an int32 */
    advance_fn advance;   /* n more values of k from l on; w is already shifted */
    int64_t most_at_once; /* of n */
};

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- chains: n values of k from l on --------------------------------------------------------- */

/* c0 = RN_f32(c0 + RN_f32(a w)) in eight chains; each is kept in a variable of its own so that
 * it stays in a register. */
static void advance_f32(const struct group *g, const float *w, int64_t l, int64_t n,
                        struct chains *x)
{
    const float *a0 = g->a[0] + l, *a1 = g->a[1] + l, *a2 = g->a[2] + l, *a3 = g->a[3] + l;
    const float *a4 = g->a[4] + l, *a5 = g->a[5] + l, *a6 = g->a[6] + l, *a7 = g->a[7] + l;
    float c0 = x->c0[0], c1 = x->c0[1], c2 = x->c0[2], c3 = x->c0[3];
    float c4 = x->c0[4], c5 = x->c0[5], c6 = x->c0[6], c7 = x->c0[7];

    for (int64_t i = 0; i < n; i++) {
        float v = w[i];

        c0 += a0[i] * v;
        c1 += a1[i] * v;
        c2 += a2[i] * v;
        c3 += a3[i] * v;
        c4 += a4[i] * v;
        c5 += a5[i] * v;
        c6 += a6[i] * v;
        c7 += a7[i] * v;
    }
    memcpy(x->c0, (const float[LANES]){c0, c1, c2, c3, c4, c5, c6, c7}, sizeof x->c0);
}

/* n is at most one instruction: what it adds up in f32 is then rounded. */
static void advance_f16(const struct group *g, const float *w, int64_t l, int64_t n,
                        struct chains *x)
{
    advance_f32(g, w, l, n, x);
    codec16_round_f32(g->f16, x->c0, LANES);
}

static void advance_tensor_core(const struct group *g, const float *w, int64_t l, int64_t n,
                                struct chains *x)
{
    const struct dtype *t = g->p->a;

    for (int i = 0; i < g->lanes; i++)
        x->c0[i] = (float)tc_run(g->s->tensor_core, t, g->a[i] + l, t, w, n, (double)x->c0[i]);
}

/* Products of two integers of at most 9 bits are exact in f32; the order of additions modulo
 * 2^32 is free. */
static void advance_int(const struct group *g, const float *w, int64_t l, int64_t n,
                        struct chains *x)
{
    enum { SIDE = 16 };

    for (int i = 0; i < g->lanes; i++) {
        const float *a = g->a[i] + l;
        uint32_t side[SIDE] = {0};
        int64_t j = 0;

        for (; j + SIDE <= n; j += SIDE)
            for (int64_t s = 0; s < SIDE; s++)
                side[s] += (uint32_t)(int32_t)(a[j + s] * w[j + s]);
        for (; j < n; j++)
            side[0] += (uint32_t)(int32_t)(a[j] * w[j]);
        for (int s = 0; s < SIDE; s++)
            x->i0[i] += side[s];
    }
}

/* Values begin <= l < end of k. */
static void advance(const struct group *g, int64_t begin, int64_t end, struct chains *x)
{
    float shifted[CHUNK];
    int64_t n;

    for (int64_t l = begin; l < end; l += n) {
        n = smaller(g->most_at_once, end - l);
        for (int64_t i = 0; i < n && g->shift; i++)
            shifted[i] = (float)((double)g->w[l + i] * g->unshift);
        g->advance(g, g->shift ? shifted : g->w + l, l, n, x);
    }
}

/* The end of an interval that began at l: c1 takes c0, which restarts. */
static void flush(const struct group *g, int64_t l, struct chains *x)
{
    const struct ref_gemm *p = g->p;

    for (int i = 0; i < g->lanes; i++) {
        float c0 = p->a->is_float ? x->c0[i] : (float)(int32_t)x->i0[i];

        if (p->int_scale) {
            int32_t s = g->model->s_int[g->col * ref_groups(p) + (p->group ? l / p->group : 0)];

            x->i1[i] += (uint32_t)s * x->i0[i];
        } else {
            double f = ref_flush_factor(p, g->row[i], g->col, l);

            f = ldexp(f, g->s->flush_shift);
            x->c1[i] = p->f16_accum ? (float)round_fma(g->f16, f, (double)c0, (double)x->c1[i])
                                    : fmaf((float)f, c0, x->c1[i]);
        }
        x->c0[i] = 0.0f;
        x->i0[i] = 0;
    }
}

/* Warp `warp` of one slice; the result is in c1 or i1. */
static void run_warp(const struct group *g, int slice, int64_t warp, struct chains *x)
{
    const struct ref_accum *s = g->s;
    int64_t slice_end = smaller(s->slice[slice].k_end, g->p->k);
    int64_t step = s->flush_k ? smaller(s->flush_k, s->warp_k) : s->warp_k;

    *x = (struct chains){.i0 = {0}};
    for (int64_t k = s->slice[slice].k_begin; k < slice_end; k += s->block_k) {
        int64_t begin = k + warp * s->warp_k, end = smaller(begin + s->warp_k, slice_end);

        for (int64_t l = begin; l < end; l += step) {
            advance(g, l, smaller(l + step, end), x);
            if (s->flush_k)
                flush(g, l, x);
        }
    }
    if (!s->flush_k) {
        memcpy(x->c1, x->c0, sizeof x->c1);
        memcpy(x->i1, x->i0, sizeof x->i1);
    }
}

/* ---- from chains to codes -------------------------------------------------------------------- */

static void add_warp(const struct group *g, const struct chains *from, struct chains *to)
{
    for (int i = 0; i < LANES; i++) {
        to->c1[i] += from->c1[i];
        to->i1[i] += from->i1[i];
    }
    if (g->p->f16_accum) /* through f32 first, harmless: 24 >= 2 x 11 + 2 bits */
        codec16_round_f32(g->f16, to->c1, LANES);
}

/* The chain's result of one slice for each lane. */
static void run_slice(const struct group *g, int slice, double *out)
{
    struct chains x[MODEL_MAX_WARPS] = {{.c0 = {0.0f}}};
    int64_t warps = g->s->block_k / g->s->warp_k;

    for (int64_t w = 0; w < warps; w++)
        run_warp(g, slice, w, &x[w]);
    for (int64_t w = 1; g->s->warps_in_order && w < warps; w++)
        add_warp(g, &x[w], &x[0]);
    for (int64_t half = warps / 2; !g->s->warps_in_order && half > 0; half /= 2)
        for (int64_t w = 0; w < half; w++)
            add_warp(g, &x[w + half], &x[w]);
    for (int i = 0; i < g->lanes; i++) {
        float c = g->is_int ? (float)(int32_t)x[0].i1[i] : x[0].c1[i];

        out[i] = ldexp((double)c, g->shift - (g->s->flush_k ? g->s->flush_shift : 0));
    }
}

/* Slices are added through double, harmless: 53 >= 2 x 11 + 2 bits. */
static void run_group(const struct group *g, uint16_t *codes)
{
    const struct dtype *c = g->p->c;
    struct ref_epilogue epilogue = *g->model->epilogue;
    double x[LANES] = {0.0}, out[LANES] = {0.0};

    epilogue.output_shift = g->s->output_shift;
    for (int slice = 0; slice < g->s->slices; slice++) {
        run_slice(g, slice, x);
        for (int i = 0; i < g->lanes; i++) {
            double h = ref_epilogue_one(&epilogue, g->row[i], g->col, x[i], slice == 0);

            out[i] = slice == 0 ? h : round_to(c, out[i] + h);
        }
    }
    for (int i = 0; i < g->lanes; i++)
        codes[i] = (uint16_t)dtype_encode(c, out[i], DTYPE_TO_TOP);
}

/* ---- setting up ------------------------------------------------------------------------------ */

/* Fused e8m0 (semantics.md section 8): base = hi - min(hi - lo, R) over the expert's tensor, or
 * over the column with channel scales. A group of code `base` is fed v as the bits of b in
 * format a, v 2^(bias_b - bias_a), or 2 v as an integer. */
static int fused_shift(const struct ref_gemm *p, int64_t col)
{
    bool own = p->scale_2 == REF_SCALE_2_CHANNEL;
    int64_t groups = ref_groups(p);
    int64_t begin = (own ? col : col / p->n * p->n) * groups;
    int64_t end = begin + (own ? 1 : p->n) * groups;
    int hi = 0, lo = 255, range;

    for (int64_t i = begin; i < end; i++) {
        int s = (int)p->bs_codes[i];

        hi = s > hi ? s : hi;
        lo = s < lo ? s : lo;
    }
    range = hi - lo < p->fused_range ? hi - lo : p->fused_range;
    return hi - range - 127 + (p->a->is_float ? p->a->bias - p->b->bias : -1);
}

static struct group make_group(const struct ref_model *model, const float *w_col, int64_t col)
{
    const struct ref_gemm *p = model->epilogue->p;
    struct group g = {.model = model, .p = p, .s = model->accum, .w = w_col, .col = col};

    g.f16 = dtype_find("f16");
    g.is_int = !p->a->is_float && (p->int_scale || !g.s->flush_k);
    g.shift = g.s->operand_shift + (p->fused_e8m0 ? fused_shift(p, col) : 0);
    g.unshift = ldexp(1.0, -g.shift);
    g.most_at_once = CHUNK;
    if (!p->a->is_float) {
        g.advance = advance_int;
    } else if (g.s->tensor_core) {
        g.advance = advance_tensor_core;
    } else if (p->f16_accum) {
        g.advance = advance_f16;
        g.most_at_once = g.s->instruction_k;
    } else {
        g.advance = advance_f32;
    }
    return g;
}

const char *ref_model_refuses(const struct ref_model *model)
{
    const struct ref_gemm *p = model->epilogue->p;
    const struct ref_accum *s = model->accum;
    const char *problem = ref_accum_valid(s, s->slice[0].k_end);

    if (problem)
        return problem;
    if (s->slice[0].k_end < p->k)
        return "the slices do not reach the end of k";
    if (s->slices > 1 && !s->ordered)
        return "the order in which slices are added is not known";
    if (s->block_k / s->warp_k > MODEL_MAX_WARPS)
        return "more than 64 K-warps";
    if (CHUNK % s->instruction_k != 0)
        return "instruction_k does not divide 512";
    if (s->tensor_core && p->a->is_float && s->tensor_core->f16_accum != p->f16_accum)
        return "the tensor core's accumulator is not that of the problem";
    if (p->int_scale && (!model->s_int || !s->flush_k))
        return "integer scales need their values and a flush";
    return NULL;
}

bool ref_model_column(const struct ref_model *model, const float *w_col, int64_t col,
                      const int64_t *rows, int64_t row_count, uint16_t *codes)
{
    struct group g;

    if (ref_model_refuses(model))
        return false;
    g = make_group(model, w_col, col);
    for (int64_t i = 0; i < row_count; i += LANES) {
        g.lanes = (int)smaller(LANES, row_count - i);
        for (int lane = 0; lane < LANES; lane++) {
            g.row[lane] = rows[lane < g.lanes ? i + lane : i];
            g.a[lane] = model->a + g.row[lane] * g.p->k;
        }
        run_group(&g, codes + i);
    }
    return true;
}
