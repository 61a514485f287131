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
    worst *= fill_mean_abs(s->sigma, s->sigmas) * (is_grouped(p) ? 1.5 : 1.0);
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
    s->active = ldexp(0.4, s->unit_bits) / (pairs * fill_mean_abs(s->alpha[0], s->alphas) * step);
    s->active = fmin(s->active, 0.75);
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
    fill_scale_range(s);
    if (f->kind == REF_FILL_W)
        choose_wide(s);
    else if (fill_is_paired(s))
        choose_paired(s);
    else
        choose_dense(s);
    fill_choose_row_exponent(s);
}

/* Never k ^ (power of two), so that no layout swap maps a pair to itself, and never a direct
 * neighbour. */
int fill_matching(const struct fill_plan *s, int64_t chunk)
{
    const bool five = rng_word(s->f.seed, RNG_PAIR, (uint64_t)chunk) & 1;

    return REF_FAULT(FILL_PAIRS_XOR_1) ? 1 : five ? 5 : 6;
}
