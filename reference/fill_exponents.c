/* Powers of two of scales, rows and outputs of a fill. */
#include "reference/fill_plan.h"

#include "reference/fault.h"

#include <math.h>

/* A scale is sigma 2^f with sigma up to 7 and two more binades of jitter: f must leave room for
 * them. */
void fill_scale_range(struct fill_plan *s)
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
    double k = (double)s->p->k, alpha = fill_mean_abs(s->alpha[0], s->alphas);

    if (fill_is_sparse(s))
        return log2(w->size);
    if (fill_is_paired(s))
        return (double)w->unit + 0.5 * log2(fmax(1.0, k * s->active));
    if (s->f.kind == REF_FILL_R)
        return log2(w->size * sqrt(k) * random_size(s));
    return log2(w->size * alpha * (s->f.kind == REF_FILL_W ? k : sqrt(k)) *
                fill_mean_abs(s->sigma, s->sigmas));
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

/* The exponents of scales whose products with weights an f16 operand holds: finite, and normal
 * where the windows are narrow enough. A shared scale meets all windows. */
static void operand_room(const struct fill_plan *s, int64_t col, bool shared, int *lo, int *hi)
{
    int top = fill_window(s, col)->top, unit = fill_window(s, col)->unit;

    for (int i = 0; shared && i < s->windows; i++) {
        top = s->window[i].top > top ? s->window[i].top : top;
        unit = s->window[i].unit < unit ? s->window[i].unit : unit;
    }
    *hi = clamp(15 - top - 4, *lo, *hi);
    *lo = clamp(-14 - unit, *lo, *hi);
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
    else if (ref_scales_operand(s->p) && s->p->a->exp_bits == 5)
        operand_room(s, col, shared, &lo, &hi);
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

/* E2: the largest unit, log2, that sums of a window meet before a channel or tensor scale. The
 * scale of a block follows its first column, whatever windows its other columns have. */
static int largest_unit(const struct fill_plan *s)
{
    const struct ref_gemm *p = s->p;
    int top = -1000, shared = -1000;

    for (int64_t e = 0; p->scale == REF_SCALE_BLOCK && e < ref_experts(p); e++)
        for (int64_t j = 0; j < p->n; j += p->group_n) {
            int f = fill_scale_exponent(s, e * p->n + j);

            shared = f > shared ? f : shared;
        }
    for (int64_t j = 0; j < s->windows; j++) {
        int unit = fill_window(s, j)->unit;

        if (!scales_after(p))
            unit += p->scale == REF_SCALE_BLOCK ? shared : fill_scale_exponent(s, j);
        top = unit > top ? unit : top;
    }
    return top;
}

/* Activations (or input scales) take what the weight scales leave, so that f16 results neither
 * overflow nor vanish. Of E2 no partial sum may either: chunk sums are expected at 0.4 of
 * 2^unit_bits units, and at most 2^(unit_bits - 1). */
void fill_choose_row_exponent(struct fill_plan *s)
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
    if (s->p->c->exp_bits == 5 && fill_is_paired(s) && !REF_FAULT(FILL_SUMS_OVERFLOW)) {
        int most = 15 - (s->unit_bits - 1) - largest_unit(s);

        s->row_exponent = s->row_exponent < most ? s->row_exponent : most;
    }
    if (s->p->a->exp_bits == 5 && s->p->a->bits == 16)
        s->row_exponent = clamp(s->row_exponent, -12, 8);
    if (fill_is_sparse(s))
        s->row_exponent = 0;
}
