#include "reference/fill.h"

#include "reference/fault.h"
#include "reference/fill_plan.h"

#include <math.h>
#include <string.h>

/* ---- activations ----------------------------------------------------------------------------- */

static uint16_t encode_a(const struct fill_plan *s, double x)
{
    return (uint16_t)dtype_encode(s->p->a, x, DTYPE_SATURATE);
}

/* The power of two of a row of 16-bit activations; for 8 and 4 bits the input scale carries it. */
static int row_exponent(const struct fill_plan *s, int64_t row)
{
    int jitter =
        fill_is_paired(s) ? 0 : (int)(rng_word(s->f.seed, RNG_ROW, (uint64_t)row) >> 8 & 1);

    return s->p->a->bits == 16 ? s->row_exponent - jitter : 0;
}

/* E1, W, S: by parity of k + h(row), so that neighbours along k always differ. */
static void dense_row(const struct fill_plan *s, int64_t row, uint16_t *out)
{
    int h = (int)(rng_word(s->f.seed, RNG_ROW, (uint64_t)row) & 1);
    int e = row_exponent(s, row);
    uint16_t codes[2][FILL_ALPHAS];

    for (int parity = 0; parity < 2; parity++)
        for (int i = 0; i < s->alphas; i++)
            codes[parity][i] = encode_a(s, REF_FAULT(FILL_ZERO_ACTIVATIONS) && i == 0
                                               ? 0.0
                                               : ldexp(s->alpha[parity][i], e));
    for (int64_t l = 0; l < s->p->k; l++) {
        uint8_t r = rng_byte(s->f.seed, RNG_A, s->a_stride, row, l);

        out[l] = codes[(l + h) & 1][r % s->alphas];
    }
}

/* E2: both of a pair have the leader's (the smaller k's) activation, of either sign. */
static void paired_row(const struct fill_plan *s, int64_t row, uint16_t *out)
{
    int e = row_exponent(s, row);
    uint16_t codes[256];

    for (int r = 0; r < 256; r++)
        codes[r] = encode_a(s, ldexp(s->alpha[r & 1][(r >> 1) % s->alphas], e));
    for (int64_t l = 0; l < s->p->k; l += 8) {
        uint64_t word = rng_word(s->f.seed, RNG_A, (uint64_t)row * s->a_stride + (uint64_t)l / 8);
        int matching = fill_matching(s, l / 8);

        for (int64_t i = 0; i < 8 && l + i < s->p->k; i++) {
            int64_t lead = l + 8 <= s->p->k ? fill_lead(i, matching) : i;

            out[l + i] = codes[word >> (8 * lead) & 255];
        }
    }
}

int64_t ref_fill_live_k(const struct ref_fill_spec *f, const struct ref_gemm *p, int64_t row)
{
    static const int64_t steps[] = {127, 61, 31, 17, 7, 5, 3, 1};
    int64_t step = 1;

    if (f->kind == REF_FILL_C)
        return (int64_t)rng_below(rng_word(f->seed, RNG_SAMPLE, 0), (uint32_t)p->group);
    if (f->kind == REF_FILL_O)
        return (int64_t)rng_below(rng_word(f->seed, RNG_SAMPLE, 0), (uint32_t)p->k);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        if (p->k % steps[i]) { /* primes: coprime to k, so k rows visit every k */
            step = steps[i];
            break;
        }
    return (p->k - 1 + row % p->k * (step % p->k)) % p->k;
}

/* All codes of a in turn, without NaN and infinity; 16-bit ones in a scattered order and within
 * 2^+-40 (f32 products of bf16 extremes overflow or vanish). */
static uint16_t any_code(const struct fill_plan *s, int64_t row)
{
    uint32_t count = 1u << s->p->a->bits;
    uint32_t code = (uint32_t)((uint64_t)row * (s->p->a->bits == 16 ? 40503u : 1u) % count);
    double x = dtype_decode(s->p->a, code);
    bool usable = x == 0.0 || (isfinite(x) && fabs(x) < 0x1p40 && fabs(x) > 0x1p-40);

    return usable ? (uint16_t)code : encode_a(s, 1.0);
}

/* C: the value of output code `row` (scattered, so that few rows see all exponents) at the live k,
 * one unit in its last place a group further on. */
static void conversion_row(const struct fill_plan *s, int64_t row, uint16_t *out)
{
    const struct dtype *c = s->p->c;
    int64_t live = ref_fill_live_k(&s->f, s->p, row);
    double x = dtype_decode(c, (uint32_t)((uint64_t)row * 40503u & 0xffffu)), ulp;

    if (!isfinite(x))
        x = 1.0;
    ulp = ldexp(1.0,
                (x == 0.0 || ilogb(x) < dtype_min_exponent(c) ? dtype_min_exponent(c) : ilogb(x)) -
                    c->man_bits);
    memset(out, 0, (size_t)s->p->k * sizeof *out);
    out[live] = encode_a(s, x);
    out[live + s->p->group] = encode_a(s, copysign(ulp, x));
}

static void one_hot_row(const struct fill_plan *s, int64_t row, uint16_t *out)
{
    int64_t live = ref_fill_live_k(&s->f, s->p, row);

    memset(out, 0, (size_t)s->p->k * sizeof *out);
    out[live] = s->f.kind == REF_FILL_P ? encode_a(s, 1.0) : any_code(s, row);
}

/* A standard normal from 64 bits: the sum of eight uniform bytes has variance 8 (2^16 - 1) / 12;
 * light tails are made up by the outliers variant. Exact in double, the same everywhere: no
 * elementary function is involved. */
static double normal(uint64_t r)
{
    int sum = 0;

    for (int i = 0; i < 8; i++)
        sum += (int)(r >> (8 * i) & 255);
    return (sum - 1020 + ((double)(r & 0xff) - 127.5) / 256.0) / 209.0;
}

static double random_value(const struct fill_plan *s, uint64_t r)
{
    double x = normal(r);
    uint64_t r2 = r * 0xd1342543de82ef95u;

    switch (s->f.data) {
    case REF_DATA_NORMAL:
        return x;
    case REF_DATA_LOGNORMAL: /* four binades either way, uniform in the exponent */
        return ldexp(x, (int)(r2 >> 60) % 9 - 4);
    case REF_DATA_OUTLIERS: /* 1 % twenty times as large */
        return r2 >> 57 == 0 ? 20.0 * x : x;
    case REF_DATA_POSITIVE:
        return fabs(x);
    }
    return x;
}

static void random_row(const struct fill_plan *s, int64_t row, uint16_t *out)
{
    double scale = fill_random_scale(s->p->a);

    for (int64_t l = 0; l < s->p->k; l++) {
        uint64_t r =
            rng_word(s->f.seed, RNG_A_WIDE, (uint64_t)row * (uint64_t)s->p->k + (uint64_t)l);

        out[l] = encode_a(s, scale * random_value(s, r));
    }
}

/* The largest number that a row of fill X holds: the format's, but for bf16, whose products must
 * stay in f32, and for f16
 * accumulators, whose products must stay in f16. */
static double largest_special(const struct fill_plan *s)
{
    if (s->p->f16_accum)
        return 32.0;
    return s->p->a->exp_bits == 8 ? 0x1.fep60 : dtype_max(s->p->a);
}

/* X: row 1 NaN, 3 +inf, 5 -inf, 7 both infinities, 9 -0, 11 the largest, each at a place of its
 * own; what the format lacks
 * is left out. The largest stands alone in its row: beside others its sums would round as the order
 * has it. */
static void special_row(const struct fill_plan *s, int64_t row, uint16_t *out)
{
    static const double values[] = {(double)NAN, HUGE_VAL, -HUGE_VAL, HUGE_VAL, -0.0, 0.0};
    int64_t kind = row / 2 % 6;
    uint64_t r = rng_word(s->f.seed, RNG_SPECIAL, (uint64_t)row);
    int64_t at = (int64_t)rng_below(r, (uint32_t)s->p->k);
    bool has_inf = s->p->a->top == DTYPE_TOP_INF_NAN, has_nan = s->p->a->top != DTYPE_TOP_FINITE;
    double x = kind == 5 ? largest_special(s) : values[kind];

    if (row % 2 == 0 || (isnan(x) && !has_nan) || (isinf(x) && !has_inf))
        return;
    if (kind == 5)
        memset(out, 0, (size_t)s->p->k * sizeof *out);
    out[at] = (uint16_t)dtype_encode(s->p->a, x, isinf(x) ? DTYPE_TO_TOP : DTYPE_SATURATE);
    if (kind == 3)
        out[(at + 1) % s->p->k] = (uint16_t)dtype_encode(s->p->a, -x, DTYPE_TO_TOP);
}

static void fill_a_row(const struct fill_plan *s, int64_t row, uint16_t *out)
{
    switch (s->f.kind) {
    case REF_FILL_P:
    case REF_FILL_O:
        one_hot_row(s, row, out);
        return;
    case REF_FILL_C:
        conversion_row(s, row, out);
        return;
    case REF_FILL_R:
        random_row(s, row, out);
        return;
    case REF_FILL_E1:
    case REF_FILL_E2:
    case REF_FILL_W:
    case REF_FILL_S:
    case REF_FILL_X:
        if (fill_is_paired(s))
            paired_row(s, row, out);
        else
            dense_row(s, row, out);
        if (s->f.kind == REF_FILL_X)
            special_row(s, row, out);
    }
}

/* ---- weights --------------------------------------------------------------------------------- */

/* all_scales: every weight code under every scale (or zero point) code, starting elsewhere for
 * each. */
static void codes_in_turn(const struct fill_plan *s, int64_t col, uint8_t *out)
{
    int64_t run = s->p->group ? s->p->group : s->p->k;
    uint32_t mask = (1u << s->p->b->bits) - 1;

    for (int64_t l = 0; l < s->p->k; l++) {
        int64_t index = col * s->groups + (s->p->group ? l / s->p->group : 0);
        uint64_t start = fill_turn(s, (uint64_t)index) * 7;

        out[l] =
            (uint8_t)((uint32_t)(start + (uint64_t)(index % s->repeats * run + l % run)) & mask);
    }
}

/* The code of weight 1; 0 where the format has none. */
static uint32_t one_code(const struct ref_gemm *p)
{
    for (uint32_t code = 0; code < 1u << p->b->bits; code++)
        if ((p->b->is_float ? dtype_decode(p->b, code)
                            : (double)code - ldexp(1.0, p->b->bits - 1)) == 1.0)
            return code;
    return 0;
}

static void put_bytes(uint64_t word, uint8_t *out, int64_t count)
{
    if (count >= 8) { /* of constant length: one store */
        for (int i = 0; i < 8; i++)
            out[i] = (uint8_t)(word >> (8 * i));
        return;
    }
    for (int64_t i = 0; i < count; i++)
        out[i] = (uint8_t)(word >> (8 * i));
}

/* Eight bytes through the window's table. */
static uint64_t window_word(const struct fill_window *w, uint64_t word)
{
    uint64_t out = 0;

    for (int i = 0; i < 8; i++)
        out |= (uint64_t)w->code[word >> (8 * i) & 255] << (8 * i);
    return out;
}

/* Random codes of the column's window; with two or more bits the low one alternates along k, so
 * that neighbours differ. P, O, C, R and W leave it free: every code at every place. */
static void random_column(const struct fill_plan *s, int64_t col, uint8_t *out)
{
    static const uint64_t every = 0x0101010101010101u;
    const struct dtype *b = s->p->b;
    const struct fill_window *w = fill_window(s, col);
    bool by_table = s->windows > 1 || s->f.kind != REF_FILL_E1 || REF_FAULT(FILL_ONE_SIGN);
    bool free_low = fill_is_sparse(s) || s->f.kind == REF_FILL_R || s->f.kind == REF_FILL_W ||
                    b->bits == 1 || REF_FAULT(FILL_EQUAL_NEIGHBOURS);
    uint64_t mask = every * ((1u << b->bits) - 1) & ~(free_low ? 0 : every);
    uint64_t h = rng_word(s->f.seed, RNG_COLUMN, (uint64_t)col) & 1;
    uint64_t low = free_low ? 0 : 0x0100010001000100u >> (8 * h);

    for (int64_t l = 0; l < s->p->k; l += 8) {
        uint64_t word = rng_word(s->f.seed, RNG_B, (uint64_t)col * s->b_stride + (uint64_t)l / 8);

        if (by_table)
            word = window_word(w, word);
        put_bytes((word & mask) | low, out + l, s->p->k - l);
    }
}

static void dense_column(const struct fill_plan *s, int64_t col, uint8_t *out)
{
    int64_t live = fill_is_sparse(s) ? ref_fill_live_k(&s->f, s->p, 0) : 0;

    if (s->f.all_scales)
        codes_in_turn(s, col, out);
    else
        random_column(s, col, out);
    if (s->f.kind == REF_FILL_C) /* weights of 1 at both places: the scales carry the fractions */
        out[live] = out[live + s->p->group] = (uint8_t)one_code(s->p);
    if (s->f.kind == REF_FILL_O) /* all codes in turn at the live k */
        out[live] = (uint8_t)(col & ((1 << s->p->b->bits) - 1));
    if (s->p->b->is_float && s->top_code < (1 << (s->p->b->bits - 1)) - 1)
        for (int64_t l = 0; l < s->p->k; l++)
            out[l] = fill_held(s, out[l]);
}

/* The code of -value(code) + step units, step in {-1, 0, 1}, the value of whole codes counted from
 * `zero`; -1 if there is none. A unit is one code step. */
static int negated(const struct fill_plan *s, int zero, int code, int step)
{
    const struct dtype *b = s->p->b;
    int half = 1 << (b->bits - 1), top = 2 * half - 1;

    if (!b->is_float) {
        int q = 2 * zero - code + step; /* -(code - zero) + zero */

        return q >= 0 && q <= top ? q : -1;
    }
    if ((code & (half - 1)) == 0 && step < 0) /* below zero: the smallest negative */
        return half | 1;
    code ^= half;
    if (step && code & half)
        step = -step; /* magnitudes shrink when a negative number grows */
    if ((code & (half - 1)) + step < 0 || (code & (half - 1)) + step > s->top_code)
        return -1;
    return code + step;
}

/* The code of value 0 where no zero point says otherwise. */
static int middle(const struct dtype *b)
{
    return b->is_float ? 0 : 1 << (b->bits - 1);
}

/* The code itself, if it or a neighbour has a counterpart about `zero`; else another one that does.
 */
static int reachable(const struct dtype *b, int zero, int code)
{
    int top = (1 << b->bits) - 1;
    int lo = 2 * zero - top - 1, hi = 2 * zero + 1;

    lo = lo > 0 ? lo : 0;
    hi = hi < top ? hi : top;
    return b->is_float || (code >= lo && code <= hi) ? code : lo + code % (hi - lo + 1);
}

/* Codes without a counterpart take the other remainder; where that does not help either, the pair
 * is 0 and one unit. */
static void pair_about(const struct fill_plan *s, int zero, int code, int step, uint8_t pair[2])
{
    int lead = reachable(s->p->b, zero, code), other = negated(s, zero, lead, step);

    if (other < 0)
        other = negated(s, zero, lead, -step);
    if (other < 0) {
        lead = zero;
        other = negated(s, zero, zero, step) < 0 ? negated(s, zero, zero, -step)
                                                 : negated(s, zero, zero, step);
    }
    pair[0] = (uint8_t)lead;
    pair[1] = (uint8_t)other;
}

static void make_pairs(struct fill_plan *s)
{
    for (int step = -1; step <= 1; step++)
        for (int code = 0; code < 1 << s->p->b->bits; code++)
            pair_about(s, middle(s->p->b), code, step, s->pair[step + 1][code]);
}

/* The zero point of place l. */
static int zero_at(const struct fill_plan *s, int64_t col, int64_t l)
{
    int64_t g = s->p->group ? l / s->p->group : 0;

    return s->p->zero == REF_ZERO_NONE ? middle(s->p->b)
                                       : (int)fill_whole_zero(s, (uint64_t)(col * s->groups + g));
}

/* One chunk of 8: 0 to 3 lead, with 16 random bits each that say whether a remainder is left, and
 * its sign. */
static void paired_chunk(const struct fill_plan *s, const struct fill_window *w, int zero,
                         int matching, uint64_t at, uint8_t *out)
{
    const uint32_t active = (uint32_t)(s->active * 0x1p15);
    const int magnitude = (1 << (s->p->b->bits - 1)) - 1;
    const uint64_t codes = rng_word(s->f.seed, RNG_B, at);
    const uint64_t remainders = rng_word(s->f.seed, RNG_REMAINDER, at);

    for (int i = 0; i < 4; i++) {
        uint32_t r = (uint32_t)(remainders >> (16 * i)) & 0xffff;
        int step = (r & 0x7fff) < active ? (r >> 15 ? 1 : -1) : 0;
        int code = w->code[codes >> (8 * i) & 255], place;
        const uint8_t *pair = s->pair[step + 1][code];
        uint8_t about[2];

        if (zero != middle(s->p->b)) {
            pair_about(s, zero, code, step, about);
            pair = about;
        } else if ((pair[1] & magnitude) < w->low) { /* below the window steps are half as large */
            pair = s->pair[1 - step][pair[0]];
        }
        place = REF_FAULT(FILL_PAIRS_XOR_1) ? 2 * i : i;
        out[place] = pair[0];
        out[place ^ matching] = pair[1];
    }
}

/* An incomplete last chunk: the smallest weight of the window at each place, so that a dropped tail
 * shows. */
static void unit_tail(const struct dtype *b, const struct fill_window *w, int zero, uint64_t codes,
                      uint8_t *out, int64_t count)
{
    int half = 1 << (b->bits - 1), one = w->low ? w->low : 1;

    for (int64_t i = 0; i < count; i++) {
        int sign = codes >> (8 * i) & 1 ? 1 : -1;

        out[i] = (uint8_t)(b->is_float    ? one | (sign > 0 ? 0 : half)
                           : b->bits == 1 ? 1 - zero
                                          : zero + sign);
    }
}

static void paired_column(const struct fill_plan *s, int64_t col, uint8_t *out)
{
    const struct fill_window *w = fill_window(s, col);

    for (int64_t l = 0; l < s->p->k; l += 8) {
        uint64_t at = (uint64_t)col * s->b_stride + (uint64_t)l / 8;
        int zero = zero_at(s, col, l);

        if (l + 8 <= s->p->k)
            paired_chunk(s, w, zero, fill_matching(s, l / 8), at, out + l);
        else
            unit_tail(s->p->b, w, zero, rng_word(s->f.seed, RNG_B, at), out + l, s->p->k - l);
    }
}

static void fill_b_column(const struct fill_plan *s, int64_t col, uint8_t *out)
{
    if (fill_is_paired(s))
        paired_column(s, col, out);
    else
        dense_column(s, col, out);
}

/* ---- everything ------------------------------------------------------------------------------ */

struct ref_input_sizes ref_input_sizes(const struct ref_gemm *p)
{
    size_t m = (size_t)p->m, n = (size_t)ref_columns(p), k = (size_t)p->k;
    size_t experts = (size_t)ref_experts(p);
    size_t groups = (size_t)ref_groups(p), input_groups = (size_t)ref_input_groups(p);
    struct ref_input_sizes z = {.a = m * k, .b = n * k};

    z.input_scale = p->a->bits == 16 ? 0 : m * input_groups;
    z.bs = n * groups;
    if (p->scale == REF_SCALE_BLOCK)
        z.bs = experts * (size_t)((p->n + p->group_n - 1) / p->group_n) * groups;
    if (p->scale == REF_SCALE_TENSOR)
        z.bs = experts;
    z.zero = p->zero == REF_ZERO_NONE ? 0 : n * groups;
    z.scale_2 = p->scale_2 == REF_SCALE_2_NONE ? 0 : p->scale_2 == REF_SCALE_2_TENSOR ? experts : n;
    z.bias = p->has_bias ? n : 0;
    return z;
}

static const char *refuses(const struct ref_fill_spec *f, const struct ref_gemm *p)
{
    if (f->kind == REF_FILL_W && p->f16_accum)
        return "fill W needs accumulators of more than 16 bits: its sums are beyond f16";
    if (f->kind == REF_FILL_C &&
        (p->a->bits != 16 || p->scale != REF_SCALE_GROUP || p->bs->bits != 16 ||
         p->k < 2 * p->group || p->zero != REF_ZERO_NONE || one_code(p) == 0))
        return "fill C needs 16-bit activations and scales, two groups, no zero points and a "
               "weight of 1";
    return NULL;
}

const char *ref_fill(const struct ref_fill_spec *f, const struct ref_gemm *p,
                     const struct ref_inputs *out)
{
    const char *why = refuses(f, p);
    struct fill_plan s;

    if (why)
        return why;
    fill_plan_init(&s, f, p);
    if (fill_is_paired(&s))
        make_pairs(&s);
    for (int64_t i = 0; out->a && i < p->m; i++)
        fill_a_row(&s, REF_FAULT(FILL_ROWS_ALIKE) ? 0 : i, out->a + i * p->k);
    for (int64_t j = 0; out->b && j < ref_columns(p); j++)
        fill_b_column(&s, j, out->b + j * p->k);
    fill_all_scales(&s, out);
    return NULL;
}
