#include "reference/bound.h"

#include "reference/bound_chain.h"
#include "reference/round.h"

enum {
    ROWS = BOUND_ROWS,
    WARPS_MAX = 32, /* a thread block has at most 1024 threads */
    ORDERS_MAX = 8  /* slices whose orders are all tried */
};

/* The kernel's value lies within b of x; b infinite: anything. */
struct value {
    double x[ROWS], b[ROWS];
    double size[ROWS]; /* any order: sum of the magnitudes of all terms */
};

/* Everything about a column that stays, and the block of rows at hand. */
struct column {
    const struct ref_bound *b;
    struct ref_epilogue epilogue;
    const struct dtype *f16;
    struct bound_unit unit;
    struct bound_operands operands;
    int64_t col;
    int64_t flush; /* Q; 0: no flush */
    int64_t row[ROWS];
    int rows;
};

/* ---- from chains to the result of a slice
 * ------------------------------------------------------------- */

/* v += t with one rounding of the kernel's accumulator; e: what is known of t's error. */
static void add_rounded(const struct bound_unit *u, struct value *v, int r, double t, double e)
{
    const double x = v->x[r] + t, b = v->b[r] + e;
    const double ours = 0x1p-52 * (fabs(t) + fabs(x));

    v->x[r] = x;
    v->b[r] = (b + u->u * (fabs(x) + b) + u->tiny + ours) * (1.0 + 0x1p-40);
    if (!isfinite(x))
        v->b[r] = v->b[r] == HUGE_VAL ? HUGE_VAL : 0.0;
    else if (!(fabs(x) + v->b[r] <= u->largest))
        v->b[r] = HUGE_VAL;
}

/* Error of a chain's end c0; infinite if it may have overflowed on the way. */
static double end_error(const struct column *c, const struct bound_chain *chain,
                        struct bound_error error, int r)
{
    const struct bound_unit *u = &c->unit;
    const double e = error.growth * bound_chain_reach(chain, u, &c->operands, r) + error.floor;

    if (!isfinite(chain->sum[r]) || u->exact || u->any_order)
        return 0.0;
    return fmax(-chain->low[r], chain->high[r]) + e <= u->largest ? e : HUGE_VAL;
}

static double factor_of(const struct column *c, int r, int64_t l)
{
    const struct ref_gemm *p = c->b->p;

    if (p->int_scale)
        return (double)c->b->s_int[c->col * ref_groups(p) + (p->group ? l / p->group : 0)];
    return ref_flush_factor(p, c->row[r], c->col, l);
}

/* c1 += f c0 with the factor at l, and c0 = 0 (semantics.md section 4). */
static void flush_chain(const struct column *c, int64_t l, struct bound_chain *chain,
                        struct value *v)
{
    const struct ref_gemm *p = c->b->p;
    const struct bound_error error = bound_chain_error(chain, &c->unit);
    double f = 0.0;

    for (int r = 0; r < c->rows; r++) {
        double t = chain->sum[r], e = end_error(c, chain, error, r);

        f = r == 0 || p->input_group ? factor_of(c, r, l) : f;
        if (c->unit.any_order) {
            v->x[r] += f * t;
            v->size[r] += fabs(f) * bound_chain_reach(chain, &c->unit, &c->operands, r);
        } else if (p->int_scale) {
            v->x[r] += f * t;
        } else {
            e += c->unit.exact && fabs(t) > 0x1p24 ? 0x1p-24 * fabs(t) : 0.0; /* int32 to f32 */
            add_rounded(&c->unit, v, r, f * t, e == HUGE_VAL ? e : fabs(f) * e);
        }
    }
    memset(chain, 0, sizeof *chain);
}

/* The end of a chain without flush. */
static void take_chain(const struct column *c, const struct bound_chain *chain, struct value *v)
{
    const struct bound_error error = bound_chain_error(chain, &c->unit);

    for (int r = 0; r < c->rows; r++) {
        v->x[r] = chain->sum[r];
        v->b[r] = end_error(c, chain, error, r);
        v->size[r] = c->unit.any_order ? bound_chain_reach(chain, &c->unit, &c->operands, r) : 0.0;
    }
}

/* The chain of warp w over K blocks [begin, end). */
static void run_warp(const struct column *c, const int64_t range[2], int64_t w,
                     struct bound_tile *t, struct value *v)
{
    const struct ref_accum *s = c->b->s;
    const int64_t k = c->b->p->k, block_k = s ? s->block_k : k, warp_k = s ? s->warp_k : k;
    struct bound_chain chain = {0};
    int64_t last = -1; /* k before this piece */

    memset(v, 0, sizeof *v);
    for (int64_t block = range[0]; block < range[1]; block += block_k) {
        const int64_t begin = block + w * warp_k;
        const int64_t end = begin + warp_k < k ? begin + warp_k : k;

        for (int64_t l = begin, next; l < end; l = next) {
            next = c->flush ? (l / c->flush + 1) * c->flush : end;
            next = next < end ? next : end;
            if (c->flush && last >= 0 && last / c->flush != l / c->flush)
                flush_chain(c, last, &chain, v);
            bound_chain_extend(&chain, &c->unit, &c->operands, l, next, t);
            last = next - 1;
        }
    }
    if (!c->flush)
        take_chain(c, &chain, v);
    else if (last >= 0)
        flush_chain(c, last, &chain, v);
}

static double wrap_int32(double x)
{
    return (double)(int32_t)(uint32_t)(uint64_t)(int64_t)x;
}

/* The error in any order, once all terms are known. */
static void finish_any_order(const struct column *c, struct value *v)
{
    const struct bound_unit *u = &c->unit;
    const double k = (double)c->b->p->k, growth = expm1(k * u->per_term);
    const bool exact = u->exact && (!c->flush || c->b->p->int_scale);

    for (int r = 0; r < c->rows; r++) {
        v->b[r] = growth * v->size[r] + k * u->tiny * (1.0 + growth) + k * 0x1p-52 * v->size[r];
        if (exact || !isfinite(v->x[r]))
            v->b[r] = 0.0;
        else if (!(v->size[r] + v->b[r] <= u->largest))
            v->b[r] = HUGE_VAL;
    }
}

static void add_warp(const struct column *c, const struct value *from, struct value *to)
{
    for (int r = 0; r < c->rows; r++)
        if (c->unit.exact && (!c->flush || c->b->p->int_scale))
            to->x[r] += from->x[r];
        else
            add_rounded(&c->unit, to, r, from->x[r], from->b[r]);
}

/* K blocks [range[0], range[1]): all warps and their sum. warps[0] is the result. */
static void run_slice(const struct column *c, const int64_t range[2], struct bound_tile *t,
                      struct value *warps)
{
    const struct ref_accum *s = c->b->s;
    const int64_t count = s ? s->block_k / s->warp_k : 1;

    for (int64_t w = 0; w < count; w++)
        run_warp(c, range, w, t, &warps[w]);
    for (int64_t w = 1; s && s->warps_in_order && w < count; w++)
        add_warp(c, &warps[w], &warps[0]);
    for (int64_t half = s && s->warps_in_order ? 0 : count / 2; half > 0; half /= 2)
        for (int64_t w = 0; w < half; w++)
            add_warp(c, &warps[w + half], &warps[w]);
    if (c->unit.any_order)
        finish_any_order(c, &warps[0]);
    if (c->b->p->int_scale)
        for (int r = 0; r < c->rows; r++)
            warps[0].x[r] = wrap_int32(warps[0].x[r]);
}

/* ---- epilogue and slices
 * -------------------------------------------------------------------------------- */

struct interval {
    double lo, hi, exact; /* numbers of format c, as in bound.h */
};

static const struct interval anything = {-HUGE_VAL, HUGE_VAL, 0.0};

static bool is_anything(struct interval h)
{
    return h.lo == -HUGE_VAL && h.hi == HUGE_VAL;
}

static struct interval close_interval(double y0, double y1, double exact)
{
    if (isnan(exact) && isnan(y0) && isnan(y1))
        return (struct interval){exact, exact, exact};
    if (isnan(exact) || isnan(y0) || isnan(y1))
        return (struct interval){anything.lo, anything.hi, exact};
    return (struct interval){y0 < y1 ? y0 : y1, y0 < y1 ? y1 : y0, exact};
}

/* [x - b, x + b] through the epilogue of slice i, whose operations are all monotone. */
static struct interval epilogue_of(const struct column *c, const struct value *v, int r, int slice)
{
    const struct ref_epilogue *e = &c->epilogue;
    const bool bias = slice == 0, f16 = c->b->p->f16_accum;
    double ends[3] = {v->x[r], v->x[r], v->x[r]}, y[3];

    if (v->b[r] > 0.0 && !isnan(v->x[r])) {
        const double b = v->b[r] * (1.0 + 0x1p-40) + 0x1p-52 * fabs(v->x[r]);

        ends[0] -= b;
        ends[1] += b;
    }
    for (int i = 0; i < 3; i++) {
        const double x = f16 ? round_to(c->f16, ends[i]) : ends[i];

        y[i] = ref_epilogue_one(e, c->row[r], c->col, x, bias);
    }
    if (v->b[r] == HUGE_VAL && !isnan(v->x[r]))
        return (struct interval){anything.lo, anything.hi, y[2]};
    return close_interval(y[0], y[1], y[2]);
}

static double add_c(const struct column *c, double a, double b)
{
    return round_fma(c->b->p->c, a, 1.0, b);
}

/* Lowest and highest sum over all orders: rounding is monotone, so the best order of a set ends
 * with some slice after the best order of the others. */
static void add_all_orders(const struct column *c, const struct interval *h, int slices, double *lo,
                           double *hi)
{
    double low[1 << ORDERS_MAX] = {0.0}, high[1 << ORDERS_MAX] = {0.0};

    for (unsigned set = 1; set < 1u << slices; set++) {
        low[set] = HUGE_VAL;
        high[set] = -HUGE_VAL;
        for (int i = 0; i < slices; i++) {
            const unsigned rest = set & ~(1u << i);
            double l, u;

            if (rest == set)
                continue;
            l = rest ? add_c(c, low[rest], h[i].lo) : h[i].lo;
            u = rest ? add_c(c, high[rest], h[i].hi) : h[i].hi;
            low[set] = l >= low[set] ? low[set] : l; /* NaN stays visible */
            high[set] = u <= high[set] ? high[set] : u;
        }
    }
    *lo = low[(1u << slices) - 1];
    *hi = high[(1u << slices) - 1];
}

/* Any order of many: every partial sum is at most the sum of magnitudes, each addition errs by u of
 * it (additions of subnormals are exact). */
static void add_any_order(const struct column *c, const struct interval *h, int slices, double *lo,
                          double *hi)
{
    const double u = ldexp(1.0, -1 - c->b->p->c->man_bits);
    double size = 0.0, low = 0.0, high = 0.0, error;

    for (int i = 0; i < slices; i++) {
        size += fmax(fabs(h[i].lo), fabs(h[i].hi));
        low += h[i].lo;
        high += h[i].hi;
    }
    error = expm1((slices - 1) * log1p(u)) * size * (1.0 + 0x1p-40);
    *lo = round_to(c->b->p->c, low - error);
    *hi = round_to(c->b->p->c, high + error);
}

static struct interval add_slices(const struct column *c, const struct interval *h, int slices)
{
    struct interval sum = h[0];

    for (int i = 1; i < slices; i++) {
        sum.lo = add_c(c, sum.lo, h[i].lo);
        sum.hi = add_c(c, sum.hi, h[i].hi);
        sum.exact = add_c(c, sum.exact, h[i].exact);
    }
    for (int i = 0; i < slices; i++)
        if (isnan(h[i].lo))
            return h[i];
    for (int i = 0; i < slices; i++)
        if (is_anything(h[i]))
            return (struct interval){anything.lo, anything.hi, sum.exact};
    if (slices > 1 && !c->b->s->ordered && slices <= ORDERS_MAX)
        add_all_orders(c, h, slices, &sum.lo, &sum.hi);
    else if (slices > 1 && !c->b->s->ordered)
        add_any_order(c, h, slices, &sum.lo, &sum.hi);
    return close_interval(sum.lo, sum.hi, sum.exact);
}

/* ---- the column
 * ------------------------------------------------------------------------------------------ */

/* The flush interval: the kernel's, or where factors change. */
static int64_t flush_of(const struct ref_gemm *p, const struct ref_accum *s)
{
    int64_t q = ref_scales_on_c(p) ? (p->group ? p->group : p->k) : 0;

    if (p->input_group && (!q || p->input_group < q))
        q = p->input_group;
    if (s && s->flush_k && (!q || s->flush_k < q))
        q = s->flush_k;
    return q;
}

static void open_rows(struct column *c, int64_t first)
{
    const struct ref_bound *b = c->b;

    c->rows = (int)(b->row_count - first < ROWS ? b->row_count - first : ROWS);
    c->operands.rows = c->rows;
    for (int r = 0; r < c->rows; r++) {
        c->row[r] = b->rows ? b->rows[first + r] : first + r;
        c->operands.a[r] = b->a + c->row[r] * b->p->k;
    }
    for (int r = c->rows; r < ROWS; r++)
        c->operands.a[r] = c->operands.a[0];
    if (c->unit.subnormals)
        bound_operands_rows(&c->operands, b->p->k);
}

static void bound_rows(const struct column *c, struct bound_tile *t, struct interval *out)
{
    const struct ref_accum *s = c->b->s;
    const int slices = s ? s->slices : 1;
    struct interval h[ROWS][REF_MAX_SLICES] = {0};
    struct value warps[WARPS_MAX] = {0};

    for (int i = 0; i < slices; i++) {
        const int64_t range[2] = {s ? s->slice[i].k_begin : 0, s ? s->slice[i].k_end : c->b->p->k};

        run_slice(c, range, t, warps);
        for (int r = 0; r < c->rows; r++)
            h[r][i] = epilogue_of(c, &warps[0], r, i);
    }
    for (int r = 0; r < c->rows; r++)
        out[r] = add_slices(c, h[r], slices);
}

void ref_bound_column(const struct ref_bound *b, int64_t col, const float *w_col, double *lo,
                      double *hi, double *exact)
{
    struct column c = {.b = b, .col = col};
    const bool known = !b->s || b->s->block_k / b->s->warp_k <= WARPS_MAX;
    struct bound_tile t;
    struct interval out[ROWS] = {0};

    ref_epilogue_init(b->p, b->int_factor, &c.epilogue);
    c.unit = bound_unit_of(b->p, b->s);
    c.flush = flush_of(b->p, b->s);
    c.f16 = dtype_find("f16");
    bound_operands_column(&c.operands, b->p, w_col);
    bound_tile_init(&t, &c.unit);
    for (int64_t first = 0; first < b->row_count; first += ROWS) {
        open_rows(&c, first);
        if (known)
            bound_rows(&c, &t, out);
        for (int r = 0; r < c.rows; r++) {
            lo[first + r] = known ? out[r].lo : anything.lo;
            hi[first + r] = known ? out[r].hi : anything.hi;
            exact[first + r] = known ? out[r].exact : anything.exact;
        }
    }
}
