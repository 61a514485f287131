#include "reference/bound_chain.h"

#include "reference/target.h"
#include "reference/tensor_core.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum {
    INSTRUCTION = 32 /* k of one emulated instruction; BOUND_TILE is a multiple */
};

static double block_step(const struct tc_row *row)
{
    const double u = row->significant ? ldexp(1.0, 1 - row->significant) : 0x1p-11;

    return log1p((u + ldexp(row->block, -row->fraction)) / (1.0 - u));
}

static void tensor_core_unit(struct bound_unit *u, const struct tc_row *row)
{
    u->block = row->emulated ? INSTRUCTION : row->block;
    u->per_block = row->emulated ? 2.0 * block_step(row) + log1p(u->u) : block_step(row);
    u->tiny *= row->emulated ? 3.0 : 1.0;
    u->emulated = row->emulated;
    u->subnormals = true;
    if (row->least_e != TC_NO_LEAST_E)
        u->tiny += ldexp(row->block, row->least_e - row->fraction);
}

/* Worst of all units: sm_70 spends (u + b 2^-T) / b = 1.25 2^-23 a term; FP8 with 13 bits and
 * blocks of 16, 17/16 2^-13; IEEE with f16 accumulation 2^-11. A flush may follow every term. */
static void any_unit(struct bound_unit *u, const struct ref_gemm *p)
{
    const double term = p->a->bits == 16 ? 0x1.4p-23 : 0x1.1p-13;

    u->any_order = true;
    u->subnormals = true;
    u->per_term = log1p(term + (p->f16_accum ? 0x1p-11 : 0.0)) + log1p(u->u);
}

struct bound_unit bound_unit_of(const struct ref_gemm *p, const struct ref_accum *s)
{
    struct bound_unit u = {.block = 1};

    u.u = p->f16_accum ? 0x1p-11 : 0x1p-24;
    u.tiny = p->f16_accum ? 0x1p-25 : 0x1p-149;
    u.largest = p->f16_accum ? 65504.0 : (double)FLT_MAX;
    u.exact = !p->a->is_float;
    if (u.exact) {
        u.any_order = !s;
        u.per_term = s ? 0.0 : log1p(u.u); /* a flush in f32 after any term */
    } else if (!s) {
        any_unit(&u, p);
    } else if (s->tensor_core) {
        tensor_core_unit(&u, s->tensor_core);
    } else {
        u.per_term = log1p(0x1p-24);
        u.block = p->f16_accum ? s->instruction_k : 1;
        u.per_block = p->f16_accum ? log1p(0x1p-11) : 0.0;
    }
    return u;
}

/* One instruction each, unlike fmin and fmax; a NaN in a is passed over. */
static inline double lower(double a, double b)
{
    return a < b ? a : b;
}
static inline double higher(double a, double b)
{
    return a > b ? a : b;
}

/* Four k at a time, so that loads and stores of the chain do not dominate. No contraction: all
 * clones give the same bits. */
TARGET_CLONES static void add_prefixes(const struct bound_tile *t, double *restrict sum,
                                       double *restrict low, double *restrict high)
{
    for (int l = 0; l < t->len; l += 4) {
        const float *a = t->a + (size_t)l * BOUND_ROWS;
        const double w0 = (double)t->w[l], w1 = (double)t->w[l + 1];
        const double w2 = (double)t->w[l + 2], w3 = (double)t->w[l + 3];

        for (int r = 0; r < BOUND_ROWS; r++) {
            const double s0 = sum[r] + (double)a[r] * w0;
            const double s1 = s0 + (double)a[r + BOUND_ROWS] * w1;
            const double s2 = s1 + (double)a[r + 2 * BOUND_ROWS] * w2;
            const double s3 = s2 + (double)a[r + 3 * BOUND_ROWS] * w3;

            sum[r] = s3;
            low[r] = lower(lower(lower(s0, s1), lower(s2, s3)), low[r]);
            high[r] = higher(higher(higher(s0, s1), higher(s2, s3)), high[r]);
        }
    }
}

TARGET_CLONES static void add_magnitudes(const struct bound_tile *t, double *restrict sum,
                                         double *restrict size)
{
    for (int l = 0; l < t->len; l++) {
        const float *a = t->a + (size_t)l * BOUND_ROWS;
        const double w = (double)t->w[l];

        for (int r = 0; r < BOUND_ROWS; r++) {
            const double p = (double)a[r] * w;

            sum[r] += p;
            size[r] += fabs(p);
        }
    }
}

/* k [begin, begin + len), len at most BOUND_TILE; four rows at a time. */
static void load_tile(const struct bound_operands *o, int64_t begin, int len, int unit,
                      struct bound_tile *t)
{
    t->len = (len + unit - 1) / unit * unit;
    if (t->len != len) {
        memset(t->a, 0, sizeof t->a);
        memset(t->w, 0, sizeof t->w);
    }
    for (int l = 0; l < len; l++)
        t->w[t->place[l]] = o->w[begin + l];
    for (int r = 0; r < o->rows; r += 4) {
        const float *a0 = o->a[r] + begin, *a1 = o->a[r + 1] + begin;
        const float *a2 = o->a[r + 2] + begin, *a3 = o->a[r + 3] + begin;

        for (int l = 0; l < len; l++) {
            float *to = t->a + (size_t)t->place[l] * BOUND_ROWS + r;

            to[0] = a0[l];
            to[1] = a1[l];
            to[2] = a2[l];
            to[3] = a3[l];
        }
    }
}

/* Emulated instructions take the k with bit 1 clear first (tensor_core.h). */
void bound_tile_init(struct bound_tile *t, const struct bound_unit *u)
{
    memset(t, 0, sizeof *t);
    for (int l = 0; l < BOUND_TILE; l++)
        t->place[l] = u->emulated ? l / 32 * 32 + (l & 2) * 8 + l % 32 / 4 * 2 + (l & 1) : l;
}

void bound_chain_extend(struct bound_chain *chain, const struct bound_unit *u,
                        const struct bound_operands *o, int64_t begin, int64_t end,
                        struct bound_tile *t)
{
    for (int64_t l = begin; l < end; l += BOUND_TILE) {
        const int len = (int)(end - l < BOUND_TILE ? end - l : BOUND_TILE);

        load_tile(o, l, len, u->emulated ? INSTRUCTION : 4, t);
        if (u->any_order)
            add_magnitudes(t, chain->sum, chain->high);
        else
            add_prefixes(t, chain->sum, chain->low, chain->high);
    }
    chain->terms += end - begin;
    chain->blocks += (end - begin + u->block - 1) / u->block;
}

double bound_chain_reach(const struct bound_chain *chain, const struct bound_unit *u,
                         const struct bound_operands *o, int r)
{
    const double range = chain->high[r] - chain->low[r];

    return u->subnormals ? fmax(range, o->raised[r]) : range;
}

struct bound_error bound_chain_error(const struct bound_chain *chain, const struct bound_unit *u)
{
    const double terms = (double)chain->terms, blocks = (double)chain->blocks;
    const double growth = expm1(terms * u->per_term + blocks * u->per_block);
    const double tiny = (terms * 0x1p-149 + blocks * u->tiny) * (1.0 + growth);

    if (u->exact)
        return (struct bound_error){0.0, 0.0};
    return (struct bound_error){(growth + terms * 0x1p-53) * (1.0 + 0x1p-40), tiny};
}

/* ---- subnormal operands ---- */

/* Largest |v| of n values, NaN apart; in eight lanes. */
TARGET_CLONES static float largest_of(const float *v, int64_t n)
{
    float max[8] = {0.0f}, m;
    int64_t l = 0;

    for (; l + 8 <= n; l += 8)
        for (int i = 0; i < 8; i++) {
            m = fabsf(v[l + i]);
            max[i] = m > max[i] ? m : max[i];
        }
    for (; l < n; l++) {
        m = fabsf(v[l]);
        max[0] = m > max[0] ? m : max[0];
    }
    for (int i = 1; i < 8; i++)
        max[0] = max[i] > max[0] ? max[i] : max[0];
    return max[0];
}

void bound_operands_column(struct bound_operands *o, const struct ref_gemm *p, const float *w)
{
    double smallest = HUGE_VAL;

    o->w = w;
    o->w_max = (double)largest_of(w, p->k);
    for (int64_t l = 0; l < p->k; l++) {
        const double size = fabs((double)w[l]);

        smallest = size > 0.0 && size < smallest ? size : smallest;
    }
    o->a_norm = ldexp(1.0, dtype_min_exponent(p->a));
    o->w_norm = p->a->bits == 16 ? o->a_norm : ldexp(smallest, p->a->man_bits);
    o->w_norm = smallest < o->w_norm ? o->w_norm : 0.0;
}

void bound_operands_rows(struct bound_operands *o, int64_t k)
{
    for (int r = 0; r < o->rows; r++) {
        o->raised[r] = o->a_norm * fmax(o->w_max, o->w_norm);
        if (o->w_norm > 0.0)
            o->raised[r] = fmax(o->raised[r], o->w_norm * (double)largest_of(o->a[r], k));
    }
}
