#include "reference/fill_plan.h"

#include "reference/fault.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- windows of weight codes ----------------------------------------------------------------- */

static bool is_wide(const struct dtype *b)
{
    return b->is_float && b->exp_bits >= 3;
}

static uint8_t window_code(const struct dtype *b, int first, int binades, int byte)
{
    int mask = (1 << b->bits) - 1;
    int exponent = first + (byte >> b->man_bits) % binades;

    if (!is_wide(b))
        return (uint8_t)(byte & mask);
    return (uint8_t)((byte >> 7 << (b->bits - 1) | exponent << b->man_bits |
                      (byte & ((1 << b->man_bits) - 1))) &
                     mask);
}

static int top_held(const struct ref_gemm *p)
{
    int code = (1 << (p->b->bits - 1)) - 1;

    while (p->b->is_float && p->a->is_float && code > 0 &&
           dtype_decode(p->b, (uint32_t)code) > dtype_max(p->a))
        code--;
    return code;
}

static double value_of(const struct ref_gemm *p, uint32_t code)
{
    return p->b->is_float ? dtype_decode(p->b, code) : (double)code - ldexp(1.0, p->b->bits - 1);
}

/* W draws from one sign only: positive, or negative where a format has nothing positive (uint1 is
 * -1 or 0). */
static void one_sign(const struct ref_gemm *p, struct fill_window *w)
{
    double want = p->b->bits == 1 ? -1.0 : 1.0;
    uint8_t last = 0;
    bool found = false;

    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < 256; i++)
            if (value_of(p, w->code[i]) * want > 0.0) {
                last = w->code[i];
                found = true;
            } else if (found) {
                w->code[i] = last;
            }
}

static void measure(const struct fill_plan *s, struct fill_window *w)
{
    const struct ref_gemm *p = s->p;
    bool shifts = p->zero != REF_ZERO_NONE && !fill_is_paired(s) && p->b->bits > 1;
    bool wide = s->f.kind == REF_FILL_W;
    double half = ldexp(1.0, p->b->bits - 1);
    double sum = 0.0, top = 0.0;

    for (int i = 0; i < 256; i++) {
        double v = fabs(value_of(p, w->code[i]));

        sum += wide ? v : v * v;
        top = fmax(top, v);
    }
    w->size = wide ? sum / 256 : sqrt(sum / 256);
    if (shifts) /* by half - z: of W at most half, of the others as widely as codes */
        w->size = wide ? w->size + half : sqrt(2.0) * w->size;
    w->size = fmax(w->size, 0x1p-140);
    w->top = ilogb(fmax(top, 0x1p-140)) + 1;
}

/* Exponent fields [lo, hi] at which windows may start. f16 outputs hold only so many binades; S
 * looks at the smallest weights where a scale can still be subnormal beside them, and R at the
 * middle. */
static void window_starts(const struct fill_plan *s, int binades, int *lo, int *hi)
{
    const struct dtype *b = s->p->b;
    int last = (1 << b->exp_bits) - binades;

    *lo = 0;
    *hi = last;
    if (s->f.kind == REF_FILL_R) {
        *lo = *hi = b->bias > 3 ? b->bias - 3 : 0;
    } else if (s->f.kind == REF_FILL_S) {
        *lo = *hi = b->exp_bits <= 5 && s->p->c->exp_bits == 8 ? 0 : b->bias;
    } else if (s->p->c->exp_bits == 5) {
        *lo = b->bias > 7 ? b->bias - 6 : 0;
        *hi = b->bias + 6 < last ? b->bias + 6 : last;
    }
}

/* The window of `binades` binades from exponent field `first` on. */
static void make_window(const struct fill_plan *s, int first, int binades, struct fill_window *w)
{
    const struct dtype *b = s->p->b;
    bool shifted = is_wide(b) && first > 1;

    for (int r = 0; r < 256; r++)
        w->code[r] = fill_held(s, window_code(b, first, binades, r));
    w->unit = b->is_float ? (shifted ? first : 1) - b->bias - b->man_bits : 0;
    if (b->exp_bits == 0)
        w->unit = 0; /* magnitudes are whole */
    w->low = shifted ? first << b->man_bits : 0;
    if (s->f.kind == REF_FILL_W || REF_FAULT(FILL_ONE_SIGN))
        one_sign(s->p, w);
    measure(s, w);
}

/* Without mantissa bits the low bit of a code, which alternates along k, belongs to the exponent:
 * windows are then pairs of binades. */
static void make_windows(struct fill_plan *s)
{
    const struct dtype *b = s->p->b;
    int fields = 1 << b->exp_bits, lo = 0, hi = 0;
    int binades = s->f.kind == REF_FILL_R ? 6 : fill_is_paired(s) ? 2 : b->man_bits ? 3 : 4;

    if (binades > fields || fill_is_sparse(s))
        binades = fields;
    else
        window_starts(s, binades, &lo, &hi);
    s->windows = 1;
    if (is_wide(b) && hi > lo)
        s->windows = hi - lo + 1 < FILL_WINDOWS ? hi - lo + 1 : FILL_WINDOWS;
    for (int i = 0; i < s->windows; i++) {
        int first = s->windows > 1 ? lo + i * (hi - lo) / (s->windows - 1) : lo;

        make_window(s, b->man_bits ? first : first - first % 2, binades, &s->window[i]);
    }
}

/* ---- factors --------------------------------------------------------------------------------- */

static void set_alphas(struct fill_plan *s, const int *even, int count)
{
    s->alphas = count;
    for (int i = 0; i < count; i++) {
        s->alpha[0][i] = even[i];
        s->alpha[1][i] = -even[i];
    }
}

static double mean_abs(const int *x, int n)
{
    double sum = 0.0;

    for (int i = 0; i < n; i++)
        sum += abs(x[i]);
    return sum / n;
}

static double max_abs(const int *x, int n)
{
    double top = 0.0;

    for (int i = 0; i < n; i++)
        top = fmax(top, abs(x[i]));
    return top;
}

static bool is_grouped(const struct ref_gemm *p)
{
    return p->scale == REF_SCALE_GROUP || p->scale == REF_SCALE_BLOCK;
}

/* What ref_exact_p will find: K times the largest activation times the mean |weight|, all in units.
 * Of W the largest scale counts. In the others factors of 2 are mixed into group scales (1.5 on
 * average), 2 and 3 into input group scales, and floating zero points halve the unit. Integer
 * scales are at most 1024, but int32 holds 2^31: 768 of 2^31 is 6 of 2^24. */
static double expected_p(const struct fill_plan *s)
{
    const struct ref_gemm *p = s->p;
    double worst = 0.0;

    for (int i = 0; i < s->windows; i++)
        worst = fmax(worst, ldexp(s->window[i].size, -s->window[i].unit));
    worst *= (double)p->k * fmax(max_abs(s->alpha[0], s->alphas), max_abs(s->alpha[1], s->alphas));
    if (p->int_scale)
        return worst * 6.0;
    if (s->f.kind == REF_FILL_W)
        return worst * s->sigma[0];
    worst *= mean_abs(s->sigma, s->sigmas) * (is_grouped(p) ? 1.5 : 1.0);
    return worst * (p->input_group ? 3.0 : 1.0) * (p->zero == REF_ZERO_FLOAT ? 2.0 : 1.0);
}

static bool scale_takes_odd(const struct ref_gemm *p)
{
    return is_grouped(p) && p->bs->man_bits >= 2;
}

static void choose_dense(struct fill_plan *s)
{
    static const int alphas[] = {1, -2, 3}, sigmas[] = {1, 3, 5, 7};
    static const struct {
        int alphas, sigmas;
    } levels[] = {{3, 4}, {3, 2}, {2, 2}, {2, 1}, {1, 1}};

    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        set_alphas(s, alphas, levels[i].alphas);
        s->sigmas = scale_takes_odd(s->p) ? levels[i].sigmas : 1;
        memcpy(s->sigma, sigmas, sizeof sigmas);
        if (expected_p(s) <= 0x1p23)
            return;
    }
}

/* Whole numbers up to this are numbers of format a. */
static int largest_whole(const struct dtype *a)
{
    int top = a->is_float && a->exp_bits ? 2 << a->man_bits : (1 << a->man_bits) - 1;

    return dtype_max(a) < top ? (int)dtype_max(a) : top;
}

/* Positive numbers up to `top`: neighbours along k are odd and even in turn. */
static void set_wide(struct fill_plan *s, int top)
{
    s->alphas = top / 2 < FILL_ALPHAS ? top / 2 : FILL_ALPHAS;
    for (int i = 0; i < s->alphas; i++) {
        s->alpha[0][i] = top - 2 * i;
        s->alpha[1][i] = top - 2 * i - 1;
    }
}

/* The largest whose sum of products stays below 2^24 with a margin; scales of 5 and 7 where that
 * alone stays far below. */
static void choose_wide(struct fill_plan *s)
{
    int most = largest_whole(s->p->a);

    s->sigma[0] = 1;
    s->sigma[1] = 5;
    s->sigmas = 1;
    set_wide(s, most);
    if (scale_takes_odd(s->p) && expected_p(s) < 0x1p21) {
        s->sigma[0] = 7;
        s->sigmas = 2;
    }
    for (int top = most; top >= 2; top = top * 7 / 8) {
        set_wide(s, top);
        if (expected_p(s) * 1.15 < 0x1p24)
            return;
    }
}

/* E2: chunk sums must fit `unit_bits`; the share of pairs with a remainder follows from K. */
static void choose_paired(struct fill_plan *s)
{
    static const int wide[] = {1, -2, 3}, narrow[] = {1};
    double pairs = ceil((double)s->p->k / 2.0), step = is_wide(s->p->b) ? 1.5 : 1.0;

    s->unit_bits = s->p->c->man_bits + 1;
    if (s->unit_bits > 8)
        set_alphas(s, wide, 3);
    else
        set_alphas(s, narrow, 1);
    s->sigmas = 1;
    s->sigma[0] = 1;
    if (s->p->b->is_float && s->p->b->exp_bits == 2)
        step = 2.0; /* e2m1 steps are 1, 2 or 4 units */
    step *= (s->p->bs->is_signed ? 1.0 : 1.5) * (s->p->input_group ? 1.5 : 1.0);
    s->active = ldexp(0.4, s->unit_bits) / (pairs * mean_abs(s->alpha[0], s->alphas) * step);
    s->active = fmin(s->active, 0.75);
}

/* ---- exponents ------------------------------------------------------------------------------- */

/* A scale is sigma 2^f with sigma up to 7 and two more binades of jitter: f must leave room for
 * them. */
static void scale_range(struct fill_plan *s)
{
    const struct ref_gemm *p = s->p;
    bool on_operand = ref_scales_operand(p);
    const struct dtype *hold = on_operand && p->a->exp_bits < p->bs->exp_bits ? p->a : p->bs;

    if (p->scale == REF_SCALE_CHANNEL && p->c->exp_bits < p->bs->exp_bits)
        hold = p->c;
    s->scale_lo = dtype_min_exponent(hold);
    s->scale_hi = ilogb(dtype_max(hold)) - 4;
    if (p->int_scale) { /* one common factor max / 1024 for the whole tensor: stay near it */
        s->scale_lo = s->scale_lo > -6 ? s->scale_lo : -6;
        s->scale_hi = s->scale_lo + 2;
    }
    if (hold->bits == 32 || hold->exp_bits == 8) {
        s->scale_lo = s->scale_lo > -100 ? s->scale_lo : -100;
        s->scale_hi = s->scale_hi < 90 ? s->scale_hi : 90;
    }
    if (p->fused_e8m0)
        s->scale_hi = s->scale_lo = -6;
}

static int column_jitter(const struct fill_plan *s, int64_t col)
{
    uint64_t r = rng_word(s->f.seed, RNG_COLUMN, (uint64_t)col) >> 16;
    bool sweep = s->p->bs->exp_bits == 8 && s->p->bs->man_bits == 0 && s->p->c->exp_bits == 8;

    if (s->p->int_scale || s->f.kind == REF_FILL_R)
        return (int)(r % 2);
    return sweep ? (int)(r % 121) - 60 : (int)(r % 6);
}

/* Typical activation of fill R, in the units of random_row: root mean square; of positive ones the
 * sums grow with K, not with its root (weights of one column need not have mean 0), of which half
 * is taken. */
static double random_size(const struct fill_plan *s)
{
    double k = (double)s->p->k, size = fill_random_scale(s->p->a);

    switch (s->f.data) {
    case REF_DATA_NORMAL:
        return size;
    case REF_DATA_LOGNORMAL:
        return 6.0 * size;
    case REF_DATA_OUTLIERS:
        return 2.0 * size;
    case REF_DATA_POSITIVE:
        return 0.5 * sqrt(k) * size;
    }
    return size;
}

/* log2 of the typical |sum| before scales. */
static double chain_size(const struct fill_plan *s, const struct fill_window *w)
{
    double k = (double)s->p->k, alpha = mean_abs(s->alpha[0], s->alphas);

    if (fill_is_sparse(s))
        return log2(w->size);
    if (fill_is_paired(s))
        return (double)w->unit + 0.5 * log2(fmax(1.0, k * s->active));
    if (s->f.kind == REF_FILL_R)
        return log2(w->size * sqrt(k) * random_size(s));
    return log2(w->size * alpha * (s->f.kind == REF_FILL_W ? k : sqrt(k)) *
                mean_abs(s->sigma, s->sigmas));
}

double fill_random_scale(const struct dtype *a)
{
    if (!a->is_float || !a->exp_bits)
        return dtype_max(a) / 3.0;
    return a->bits == 4 ? 2.0 : 1.0;
}

static bool scales_after(const struct ref_gemm *p) /* RN_c comes before the weight scale */
{
    return p->scale == REF_SCALE_CHANNEL || p->scale == REF_SCALE_TENSOR;
}

static int clamp(int x, int lo, int hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

/* S: f16 activations cannot bring a subnormal f32 scale back: there they are subnormal instead. */
static bool tiny_activations(const struct fill_plan *s)
{
    return s->f.kind == REF_FILL_S && s->p->bs->bits == 32 && s->p->a->exp_bits == 5 &&
           s->p->a->bits == 16;
}

/* S: one unit in the last place of the smallest scales. What holds the product of weight and scale
 * must still see it: the operand, or f32, whose unit is 2^-149. */
static int tiny_scale(const struct fill_plan *s, const struct fill_window *w)
{
    const struct ref_gemm *p = s->p;
    bool on_operand = ref_scales_operand(p) && p->a->bits == 16;
    int e = dtype_min_exponent(p->bs) - p->bs->man_bits, low = -149;

    if (p->bs->bits ==
        32) /* up to 8 units of 2^-130: subnormal, and large enough to be brought back */
        e = -130;
    if (p->f16_accum) /* all factors are f16 */
        e = e > -24 ? e : -24;
    if (on_operand)
        low = dtype_min_exponent(p->a) - p->a->man_bits;
    if (scales_after(p) && p->scale == REF_SCALE_CHANNEL)
        return e > dtype_min_exponent(p->c) - p->c->man_bits
                   ? e
                   : dtype_min_exponent(p->c) - p->c->man_bits;
    return e > low - w->unit ? e : low - w->unit;
}

int fill_scale_exponent(const struct fill_plan *s, int64_t col)
{
    bool shared = s->p->scale == REF_SCALE_BLOCK || s->p->scale == REF_SCALE_TENSOR;
    const struct fill_window *w = shared ? &s->window[s->windows / 2] : fill_window(s, col);
    int want = 4 + column_jitter(s, col) - (int)lround(chain_size(s, w));
    int lo = s->scale_lo, hi = s->scale_hi;

    if (s->f.kind == REF_FILL_S && !tiny_activations(s))
        return tiny_scale(s, w);
    if (s->p->scale == REF_SCALE_TENSOR)
        return tiny_activations(s) ? clamp(want - s->row_exponent, -90, s->p->f16_accum ? 11 : 90)
                                   : 0;
    if (scales_after(s->p) || tiny_activations(s))
        want -= s->row_exponent;
    else if (ref_scales_operand(s->p) && s->p->a->exp_bits == 5) {
        hi = clamp(15 - w->top - 4, lo, hi); /* the operand stays finite in f16, */
        lo = clamp(-14 - w->unit, lo, hi);   /* and normal where its window is narrow enough */
    }
    return clamp(want, lo, hi);
}

int fill_output_exponent(const struct fill_plan *s, int64_t col)
{
    return (int)lround(chain_size(s, fill_window(s, col))) + s->row_exponent +
           fill_scale_exponent(s, col);
}

/* S: results of about 2^4; where c is reached before the scale is applied, what c holds then. */
static int tiny_row_exponent(const struct fill_plan *s)
{
    const struct fill_window *w = fill_window(s, 0);
    int size = (int)lround(chain_size(s, w)), most = s->p->a->bits == 16 ? 100 : 120;
    int e = 4 - size - tiny_scale(s, w) - 2;

    if (tiny_activations(s))
        return -24;
    if (s->p->f16_accum || (s->p->a->bits == 16 && s->p->a->exp_bits == 5))
        most = 8;
    if (scales_after(s->p) && s->p->scale == REF_SCALE_CHANNEL)
        e = clamp(e, -100, (s->p->c->exp_bits == 5 ? 12 : 100) - size);
    if (s->p->scale == REF_SCALE_TENSOR && s->p->input_group)
        e = clamp(e, -100, 120 - size); /* sums carry the input scales before they meet this one */
    return clamp(e, -100, most);
}

/* Activations (or input scales) take what the weight scales leave, so that f16 results neither
 * overflow nor vanish. */
static void choose_row_exponent(struct fill_plan *s)
{
    double top = -1e9;

    if (s->f.kind == REF_FILL_S) {
        s->row_exponent = tiny_row_exponent(s);
        return;
    }
    s->row_exponent = 0;
    for (int64_t j = 0; j < s->windows; j++) {
        double size = chain_size(s, fill_window(s, j));

        top = fmax(top, scales_after(s->p) ? size : size + fill_scale_exponent(s, j));
    }
    if (s->p->c->exp_bits == 5 && !(top <= 11.0 && top >= 2.0))
        s->row_exponent = (int)floor(top > 11.0 ? 11.0 - top : 4.0 - top);
    if (s->p->a->exp_bits == 5 && s->p->a->bits == 16)
        s->row_exponent = clamp(s->row_exponent, -12, 8);
    if (fill_is_sparse(s))
        s->row_exponent = 0;
}

void fill_plan_init(struct fill_plan *s, const struct ref_fill_spec *f, const struct ref_gemm *p)
{
    memset(s, 0, sizeof *s);
    s->f = *f;
    s->p = p;
    s->groups = ref_groups(p);
    s->input_groups = ref_input_groups(p);
    s->a_stride = rng_stride(p->k);
    s->b_stride = rng_stride(p->k);
    s->repeats = ((int64_t)1 << p->b->bits) / (p->group ? p->group : p->k);
    s->repeats = s->repeats > 1 ? s->repeats : 1;
    s->top_code = top_held(p);
    make_windows(s);
    scale_range(s);
    if (f->kind == REF_FILL_W)
        choose_wide(s);
    else if (fill_is_paired(s))
        choose_paired(s);
    else
        choose_dense(s);
    choose_row_exponent(s);
}

/* Never k ^ (power of two), so that no layout swap maps a pair to itself, and never a direct
 * neighbour. */
int fill_matching(const struct fill_plan *s, int64_t chunk)
{
    const bool five = rng_word(s->f.seed, RNG_PAIR, (uint64_t)chunk) & 1;

    return REF_FAULT(FILL_PAIRS_XOR_1) ? 1 : five ? 5 : 6;
}
