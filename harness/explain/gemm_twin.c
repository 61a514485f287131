#include "harness/explain/gemm_twin.h"

#include "reference/round.h"

#include <math.h>
#include <string.h>

enum { MOST_WARPS = 64 };

/* ---- pieces ---------------------------------------------------------------------------------- */

void *twin_copy(struct twin *t, const void *array, size_t count, size_t size)
{
    void *copy = arena_alloc(t->arena, count, size);

    if (copy)
        memcpy(copy, array, count * size);
    else
        t->none = true;
    return copy;
}

/* ---- chains ---------------------------------------------------------------------------------- */

/* Of one K-warp: since the last flush, and flushed. Integers are whole numbers of 32 bits. */
struct chain {
    double c0, c1;
};

static double to_int32(const struct twin *t, double x)
{
    if (t->saturate_int)
        return x > 0x1p31 - 1.0 ? 0x1p31 - 1.0 : x < -0x1p31 ? -0x1p31 : x;
    return (double)(int32_t)(uint32_t)(int64_t)x;
}

/* Where and how the sums of output (row, col) are formed; one slice and one chain where it is not
 * stated. */
static const struct ref_accum *order_at(struct twin *t, int64_t row, int64_t col)
{
    const struct ref_gemm *p = &t->ref;
    struct order *o = &t->order;
    int64_t k = t->g->layer.shape_k;
    char reason[HUM_REASON_BYTES];

    if (t->has_order && row >= o->row_begin && row < o->row_end && col >= o->col_begin &&
        col < o->col_end && !t->g->launch.routing)
        return &o->accum;
    t->has_order = true;
    if (!order_of(&t->g->launch, row, col, o, reason))
        return &o->accum;
    *o = (struct order){
        .accum = {.instruction_k = 16, .block_k = k, .warp_k = k, .slices = 1, .ordered = true}};
    o->accum.slice[0].k_end = k;
    if (ref_scales_on_c(p))
        o->accum.flush_k = p->group;
    if (p->input_group && (!o->accum.flush_k || p->input_group < o->accum.flush_k))
        o->accum.flush_k = p->input_group;
    return &o->accum;
}

/* One output, or one slice of it. */
struct step {
    const struct twin *t;
    const struct ref_accum *s;
    int64_t row, col, arow, gcol;
    int64_t flush_k, warp_k;
    bool f16;   /* accumulators */
    bool ints;  /* what comes out of a chain is an integer */
    bool plain; /* nothing but a x w is done to f32 accumulators */
    const float *a, *w;
};

static void flush(const struct step *x, int64_t l, struct chain *c)
{
    const struct twin *t = x->t;
    const struct ref_gemm *p = &t->ref;

    if (p->int_scale) {
        int64_t gcol = x->gcol, at = l;

        if (t->scale_at)
            t->scale_at(t, &gcol, &at);
        c->c1 = to_int32(t, c->c1 + (double)t->s_int[gcol * ref_groups(p) + twin_group_of(t, at)] *
                                        to_int32(t, c->c0));
    } else {
        double f = twin_flush_factor(t, x->arow, x->gcol, l);

        c->c0 = p->a->is_float ? c->c0 : (double)(float)to_int32(t, c->c0);
        if (t->flush_apart)
            c->c1 = round_to(x->f16 ? t->f16 : t->f32,
                             round_to(x->f16 ? t->f16 : t->f32, f * c->c0) + c->c1);
        else
            c->c1 = round_fma(x->f16 ? t->f16 : t->f32, f, c->c0, c->c1);
    }
    c->c0 = 0.0;
}

static double add(const struct twin *t, double sum, float a, float w)
{
    if (!t->ref.a->is_float)
        return sum + (double)a * (double)w;
    if (t->opposite_is_zero && isinf(sum) && isinf(a * w) && (sum > 0.0) != (a * w > 0.0f))
        return 0.0;
    return (double)((float)sum + a * w);
}

/* The usual chain, four values of k a turn; a zero that meets four finite weights adds nothing. */
static void advance_plain(const struct step *x, int64_t begin, int64_t end, struct chain *c)
{
    const float *a = x->a, *w = x->w;
    float sum = (float)c->c0;
    int64_t l = begin;

    for (; l + 4 <= end; l += 4) {
        bool none = a[l] == 0.0f && a[l + 1] == 0.0f && a[l + 2] == 0.0f && a[l + 3] == 0.0f;

        if (none && (w[l] + w[l + 1] + w[l + 2] + w[l + 3]) * 0.0f == 0.0f)
            continue;
        sum += a[l] * w[l];
        sum += a[l + 1] * w[l + 1];
        sum += a[l + 2] * w[l + 2];
        sum += a[l + 3] * w[l + 3];
    }
    for (; l < end; l++)
        sum += a[l] * w[l];
    c->c0 = (double)sum;
}

/* NOLINTNEXTLINE(readability-function-cognitive-complexity): one line an order of sums */
static void advance(const struct step *x, int64_t begin, int64_t end, struct chain *c)
{
    const struct twin *t = x->t;
    int64_t run = x->s->instruction_k;
    bool down = t->reversed && t->reversed(t, x->row);

    for (int64_t at = begin; at < end; at += run) {
        int64_t to = at + run < end ? at + run : end;

        for (int64_t i = at; i < to; i++) {
            int64_t l = down ? at + to - 1 - i : i;
            int times = t->times ? t->times(t, x->row, x->col, l) : 1;

            for (; times > 0; times--)
                c->c0 = add(t, c->c0, x->a[l], x->w[l]);
            if (t->narrow && !t->narrow_instruction)
                c->c0 = t->narrow(t, c->c0);
        }
        if (x->f16)
            c->c0 = round_to(t->f16, c->c0);
        if (t->narrow && t->narrow_instruction)
            c->c0 = t->narrow(t, c->c0);
    }
}

/* Is `to` the end of a period? `end`: of the warp's part of a K block, `next`: where its next part
 * begins. */
static bool flushes_at(const struct step *x, int64_t to, int64_t end, int64_t next,
                       int64_t slice_end)
{
    if (to < end || x->flush_k <= x->warp_k)
        return to == end || to % x->flush_k == 0;
    return next >= slice_end || next / x->flush_k != (to - 1) / x->flush_k;
}

static struct chain run_warp(const struct step *x, int slice, int64_t warp)
{
    const struct ref_accum *s = x->s;
    int64_t k = x->t->ref.k, slice_end = s->slice[slice].k_end < k ? s->slice[slice].k_end : k;
    int64_t step = x->flush_k && x->flush_k < x->warp_k ? x->flush_k : x->warp_k;
    struct chain c = {0.0, 0.0};

    for (int64_t at = s->slice[slice].k_begin; at < slice_end; at += s->block_k) {
        int64_t begin = at + warp * x->warp_k;
        int64_t end = begin + x->warp_k < slice_end ? begin + x->warp_k : slice_end;

        for (int64_t l = begin; l < end; l += step) {
            int64_t to = l + step < end ? l + step : end;

            if (x->plain)
                advance_plain(x, l, to, &c);
            else
                advance(x, l, to, &c);
            if (x->flush_k && flushes_at(x, to, end, begin + s->block_k, slice_end))
                flush(x, to - 1, &c);
        }
    }
    if (!x->flush_k)
        c.c1 = c.c0;
    return c;
}

static double add_warps(const struct step *x, double a, double b)
{
    return x->ints  ? to_int32(x->t, a + b)
           : x->f16 ? round_to(x->t->f16, a + b)
                    : (double)((float)a + (float)b);
}

static double run_slice(const struct step *x, int slice)
{
    int64_t warps = x->s->block_k / x->warp_k;
    bool in_line = x->t->warps_in_line || x->s->warps_in_order;
    double c[MOST_WARPS] = {0.0};

    warps = warps < 1 ? 1 : warps < MOST_WARPS ? warps : MOST_WARPS;
    for (int64_t w = 0; w < warps; w++) {
        bool lost = x->t->loses_warp && x->t->loses_warp(x->t, w, warps);

        c[w] = lost ? 0.0 : run_warp(x, slice, w).c1;
        c[w] = x->ints ? to_int32(x->t, c[w]) : c[w];
    }
    for (int64_t w = 1; w < warps && in_line; w++)
        c[0] = add_warps(x, c[0], c[w]);
    for (int64_t half = warps / 2; half > 0 && !in_line; half /= 2)
        for (int64_t w = 0; w < half; w++)
            c[w] = add_warps(x, c[w], c[w + half]);
    return x->ints ? (double)(float)c[0] : c[0];
}

/* ---- one output ------------------------------------------------------------------------------ */

/* Of each expert the weights of the column that was asked for last; and a row of A. */
struct cache {
    int64_t *col; /* experts */
    float *w, *a; /* experts x k; k */
};

static bool cache_make(const struct twin *t, struct cache *cache)
{
    int64_t experts = ref_experts(&t->ref);

    cache->col = arena_alloc(t->arena, (size_t)experts, sizeof *cache->col);
    cache->w = arena_alloc(t->arena, (size_t)(experts * t->ref.k), sizeof *cache->w);
    cache->a = arena_alloc(t->arena, (size_t)t->ref.k, sizeof *cache->a);
    for (int64_t e = 0; cache->col && e < experts; e++)
        cache->col[e] = -1;
    return cache->col && cache->w && cache->a;
}

static int64_t expert_of(const struct twin *t, int64_t row)
{
    return t->expert ? t->expert(t, row) : t->q->routing.row_expert[row];
}

/* Rows that no expert has lie in A where they lie in the output. */
static int64_t a_row_of(const struct twin *t, int64_t row)
{
    int64_t arow = t->q->routing.row_a[row];

    if (t->a_row)
        return t->a_row(t, row);
    return arow < 0 ? row : arow;
}

static const float *weights_of(const struct twin *t, int64_t gcol, struct cache *cache)
{
    int64_t e = gcol / t->ref.n;
    float *w = cache->w + e * t->ref.k;

    if (cache->col[e] != gcol)
        twin_weights(t, gcol, w);
    cache->col[e] = gcol;
    return w;
}

static const float *activations_of(const struct twin *t, int64_t arow, struct cache *cache)
{
    const float *a = t->a + arow * t->ref.k;

    if (!t->activations)
        return a;
    memcpy(cache->a, a, (size_t)t->ref.k * sizeof *a);
    t->activations(t, arow, cache->a);
    return cache->a;
}

static int64_t scale_row_of(const struct twin *t, int64_t row)
{
    return t->scale_row ? t->scale_row(t, row) : a_row_of(t, row);
}

/* The twin changes its memory of the order only. */
static double sum_with(struct twin *t, int64_t row, int64_t col, int slice, struct cache *cache)
{
    struct step x = {.t = t, .row = row, .col = col, .arow = scale_row_of(t, row)};

    x.gcol = expert_of(t, row) * t->ref.n + col;
    x.s = order_at(t, row, col);
    x.warp_k = t->warp_k && x.s->block_k % t->warp_k == 0 ? t->warp_k : x.s->warp_k;
    x.flush_k = x.s->flush_k && t->flush_k ? t->flush_k : x.s->flush_k;
    if (t->warp_k && x.flush_k > x.warp_k)
        x.flush_k = x.warp_k;
    x.f16 = t->accumulator == ACCUMULATOR_F16 ||
            (t->accumulator == ACCUMULATOR_STATED && t->ref.f16_accum);
    x.ints = !t->ref.a->is_float && (t->ref.int_scale || !x.flush_k);
    x.plain = t->ref.a->is_float && !x.f16 && !t->times && !t->narrow && !t->reversed &&
              !t->opposite_is_zero;
    x.a = activations_of(t, a_row_of(t, row), cache);
    x.w = weights_of(t, x.gcol, cache);
    return slice < x.s->slices ? run_slice(&x, slice) : 0.0;
}

double twin_sum(const struct twin *t, int64_t row, int64_t col, int slice)
{
    struct twin other = *t;
    size_t mark = t->arena->used;
    struct cache cache;
    double x = 0.0;

    if (expert_of(t, row) < 0)
        return 0.0;
    other.carry = NULL;
    if (cache_make(t, &cache))
        x = sum_with(&other, row, col, slice, &cache);
    t->arena->used = mark;
    return x;
}

static double add_slices(const struct twin *t, double out, double h)
{
    return t->round ? t->round(t, ROUND_SLICES, out + h) : round_to(t->ref.c, out + h);
}

static int slice_number(const struct twin *t, int i, int slices)
{
    switch (t->slices) {
    case SLICES_STATED:
        return i;
    case SLICES_BACKWARDS:
        return slices - 1 - i;
    case SLICES_BACKWARDS_BUT_0:
        return i ? slices - i : 0;
    }
    return i;
}

static uint16_t output(struct twin *t, int64_t row, int64_t col, struct cache *cache)
{
    double out = 0.0;
    bool any = false;
    int64_t gcol;
    int slices;

    if ((t->place && !t->place(t, &row, &col)) || expert_of(t, row) < 0)
        return t->g->poison;
    gcol = expert_of(t, row) * t->ref.n + col;
    slices = order_at(t, row, col)->slices;
    for (int i = 0; i < slices; i++) {
        int slice = slice_number(t, i, slices);
        double x, h;

        if (t->loses && t->loses(t, row, col, slice))
            continue;
        x = sum_with(t, row, col, slice, cache);
        x = t->carry ? x + t->carry(t, row, col, slice) : x;
        h = twin_epilogue(t, scale_row_of(t, row), gcol, x, slice);
        out = any ? add_slices(t, out, h) : h;
        any = true;
    }
    out = t->finish ? t->finish(t, out) : out;
    return (uint16_t)dtype_encode(t->ref.c, out, DTYPE_TO_TOP);
}

uint16_t twin_output(const struct twin *t, int64_t row, int64_t col)
{
    struct twin other = *t;
    size_t mark = t->arena->used;
    struct cache cache;
    uint16_t code = t->g->poison;

    if (cache_make(t, &cache))
        code = output(&other, row, col, &cache);
    t->arena->used = mark;
    return code;
}

/* ---- everything ------------------------------------------------------------------------------ */

static void begin(struct twin *t, const struct probe *p, int64_t variant, struct arena *scratch)
{
    const struct gemm_probe *g = gemm_of(p);

    *t = (struct twin){.g = g,
                       .probe = p,
                       .q = g->q,
                       .arena = scratch,
                       .ref = g->q->ref,
                       .variant = variant,
                       .bias_times = 1,
                       .bias_type = g->q->ref.c,
                       .f16 = dtype_find("f16"),
                       .f32 = dtype_find("f32")};
}

/* What follows from the inputs as the kernel reads them. */
bool twin_complete(struct twin *t)
{
    const struct ref_gemm *p = &t->ref, *was = &t->q->ref;
    float *a = NULL;

    t->a = t->q->a;
    if (p->a_codes != was->a_codes) {
        a = arena_alloc(t->arena, (size_t)(p->m * p->k), sizeof *a);
        if (!a)
            return false;
        ref_operand_a(p, a);
        t->a = a;
    }
    t->int_factor = 1.0f;
    if (p->int_scale) {
        t->s_int = arena_alloc(t->arena, (size_t)(ref_columns(p) * ref_groups(p)), sizeof(int32_t));
        if (!t->s_int)
            return false;
        ref_int_scales(p, t->s_int, &t->int_factor);
    }
    ref_epilogue_init(p, t->int_factor, &t->epilogue);
    return true;
}

/* Places column by column, so that a column's weights are made once: next[i] is the place after
 * place i in its column. */
static bool outputs(struct twin *t, const struct places *at, uint32_t *codes)
{
    int64_t n = t->ref.n;
    int64_t *head = arena_alloc(t->arena, (size_t)n, sizeof *head);
    int64_t *next = arena_alloc(t->arena, (size_t)at->count, sizeof *next);
    struct cache cache;

    if (!head || !next || !cache_make(t, &cache))
        return false;
    for (int64_t j = 0; j < n; j++)
        head[j] = -1;
    for (int64_t i = at->count; i-- > 0;) {
        next[i] = head[at->at[i] % n];
        head[at->at[i] % n] = i;
    }
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = head[j]; i >= 0; i = next[i])
            codes[i] = output(t, at->at[i] / n, j, &cache);
    return true;
}

bool twin_predict(const struct hypothesis *h, const struct probe *p, int64_t variant,
                  const struct places *at, uint32_t *codes, struct arena *scratch)
{
    const struct twist *twist = h->own;
    struct twin t;

    begin(&t, p, variant, scratch);
    twist->make(&t);
    return !t.none && twin_complete(&t) && outputs(&t, at, codes);
}

bool twin_right(const struct probe *p, uint32_t *codes, struct arena *scratch)
{
    int64_t *all = arena_alloc(scratch, (size_t)p->count, sizeof *all);
    struct places at = {all, p->count};
    struct twin t;

    if (!all)
        return false;
    for (int64_t i = 0; i < p->count; i++)
        all[i] = i;
    begin(&t, p, 0, scratch);
    return twin_complete(&t) && outputs(&t, &at, codes);
}
