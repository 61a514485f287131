/* What lands where it does not belong: codes, scales, zero points, activations. */
#include "harness/explain/gemm.h"
#include "harness/explain/gemm_variants.h"

#include <inttypes.h>
#include <stdio.h>

static bool has_4_bits(const struct probe *p)
{
    return gemm_of(p)->q->ref.b->bits == 4;
}

static uint8_t *codes_of(struct twin *t)
{
    uint8_t *codes = twin_copy(t, t->ref.b_codes, (size_t)(ref_columns(&t->ref) * t->ref.k), 1);

    if (codes)
        t->ref.b_codes = codes;
    return codes;
}

/* Code l of a column, 0 behind the end. */
static uint8_t code_at(const struct twin *t, int64_t gcol, int64_t l)
{
    return l < t->ref.k ? t->q->ref.b_codes[gcol * t->ref.k + l] : 0;
}

static void nibble_order(struct twin *t)
{
    uint8_t *codes = codes_of(t);

    for (int64_t j = 0; codes && j < ref_columns(&t->ref); j++)
        for (int64_t l = 0; l < t->ref.k; l++)
            codes[j * t->ref.k + l] = code_at(t, j, l ^ 1);
}

/* Codes l and l + 1 of the place. */
static void k_pair_swapped(struct twin *t)
{
    uint8_t *codes = codes_of(t);
    int64_t l = place_k(t);

    t->none = t->none || l + 1 >= t->ref.k;
    for (int64_t j = 0; !t->none && j < ref_columns(&t->ref); j++)
        if (place_has(t, j)) {
            codes[j * t->ref.k + l] = code_at(t, j, l + 1);
            codes[j * t->ref.k + l + 1] = code_at(t, j, l);
        }
}

static int64_t pairs(const struct probes *all, int64_t out[HYPOTHESIS_VARIANTS])
{
    return gemm_places(all, true, out);
}

static void weight_lsb_flipped(struct twin *t)
{
    uint8_t *codes = codes_of(t);
    int64_t l = place_k(t);

    for (int64_t j = 0; codes && j < ref_columns(&t->ref); j++)
        if (place_has(t, j))
            codes[j * t->ref.k + l] ^= 1;
}

/* One weight a column, at k = (c0 + c1 column) mod k: c0 k + c1, read off the first two columns. */
static int64_t slanted_places(const struct probes *all, int64_t out[HYPOTHESIS_VARIANTS])
{
    int64_t k = gemm_of(&all->items[0])->q->ref.k;
    int64_t a = gemm_wrong_k_of(all, 0), b = gemm_wrong_k_of(all, 1);

    if (a < 0 || b < 0 || a == b)
        return 0;
    out[0] = a * k + (b - a + k) % k;
    return 1;
}
static void slanted_lsb_flipped(struct twin *t)
{
    uint8_t *codes = codes_of(t);
    int64_t k = t->ref.k;

    for (int64_t j = 0; codes && j < ref_columns(&t->ref); j++)
        codes[j * k + (t->variant / k + t->variant % k * (j % t->ref.n)) % k] ^= 1;
}
static void slanted_detail(const struct hypothesis *h, const struct probe *p, int64_t variant,
                           char buf[HYPOTHESIS_DETAIL])
{
    int64_t k = gemm_of(p)->q->ref.k;

    (void)h;
    (void)snprintf(buf, HYPOTHESIS_DETAIL,
                   "in every column, at k = (%" PRId64 " + %" PRId64 " column) mod %" PRId64,
                   variant / k, variant % k, k);
}

static int64_t places(const struct probes *all, int64_t out[HYPOTHESIS_VARIANTS])
{
    return gemm_places(all, false, out);
}

static bool straddles(const struct probe *p)
{
    int bits = gemm_of(p)->q->ref.b->bits;

    return 32 % bits != 0;
}

/* Code l lies in bits [l B, (l + 1) B) of its row: 32-bit words, little end first. */
static void straddle_bits_lost(struct twin *t)
{
    uint8_t *codes = codes_of(t);
    int bits = t->ref.b->bits;

    for (int64_t j = 0; codes && j < ref_columns(&t->ref); j++)
        for (int64_t l = 0; l < t->ref.k; l++) {
            int64_t room = 32 - l * bits % 32;

            if (room < bits && room < 8)
                codes[j * t->ref.k + l] &= (uint8_t)((1u << room) - 1);
        }
}

/* ---- scales and zero points ------------------------------------------------------------------ */

static bool has_groups(const struct probe *p)
{
    const struct ref_gemm *r = &gemm_of(p)->q->ref;

    return (r->scale == REF_SCALE_GROUP || r->scale == REF_SCALE_BLOCK) && ref_groups(r) > 1;
}

/* An expert's scales, (n, groups), are read at g n + column (variant 1: (groups, n) at
 * column groups + g). */
static void transposed_at(const struct twin *t, int64_t *gcol, int64_t *l)
{
    int64_t n = t->ref.n, groups = ref_groups(&t->ref), size = 1, at;
    int64_t e = *gcol / n, col = *gcol % n, g = twin_group_of(t, *l);

    if (t->ref.scale == REF_SCALE_BLOCK) {
        size = t->ref.group_n;
        n = (n + size - 1) / size;
        col /= size;
    }
    at = t->variant ? col * groups + g : g * n + col;
    col = t->variant ? at % n : at / groups;
    g = t->variant ? at / n : at % groups;
    *gcol = e * t->ref.n + col * size;
    *l = g * t->ref.group;
}

static void scales_transposed(struct twin *t)
{
    t->scale_at = transposed_at;
}

static bool has_m_major(const struct probe *p)
{
    return gemm_of(p)->compute.use_m_major_input_scale && gemm_of(p)->q->ref.input_group;
}

/* In memory (groups, m rounded up to 4), read as (m, groups). */
static void input_scale_transposed(struct twin *t)
{
    int64_t groups = ref_input_groups(&t->ref), m = t->ref.m, stride = (m + 3) / 4 * 4;
    float *scales = twin_copy(t, t->ref.input_scale, (size_t)(m * groups), sizeof *scales);

    for (int64_t i = 0; scales && i < m * groups; i++)
        scales[i] = i % stride < m ? t->q->ref.input_scale[i % stride * groups + i / stride] : 0.0f;
    t->ref.input_scale = scales;
}

static bool has_4_bit_zeros(const struct probe *p)
{
    return has_4_bits(p) && gemm_of(p)->q->ref.zero == REF_ZERO_INT;
}

/* Eight zero points a word, along n. */
static void zero_point_order(struct twin *t)
{
    static const int order[2][8] = {{0, 2, 4, 6, 1, 3, 5, 7}, {0, 4, 1, 5, 2, 6, 3, 7}};
    int64_t groups = ref_groups(&t->ref), n = t->ref.n;
    uint16_t *zero =
        twin_copy(t, t->ref.zero_codes, (size_t)(ref_columns(&t->ref) * groups), sizeof *zero);

    for (int64_t j = 0; zero && j < ref_columns(&t->ref); j++)
        for (int64_t g = 0; g < groups; g++) {
            int64_t col = j % n / 8 * 8 + order[t->variant][j % n % 8];

            zero[j * groups + g] =
                col < n ? t->q->ref.zero_codes[(j / n * n + col) * groups + g] : 0;
        }
    t->ref.zero_codes = zero;
}

/* ---- activations ----------------------------------------------------------------------------- */

static bool has_padded_k(const struct probe *p)
{
    return gemm_of(p)->layer.shape_k > gemm_of(p)->q->ref.k;
}

/* The operand of a padded weight, code 0, with the scales of its group (of a padded group: 0). */
static double padded_weight(const struct twin *t, int64_t arow, int64_t gcol, int64_t l)
{
    const struct ref_gemm *p = &t->ref;
    int64_t in = l < ref_groups(p) * p->group || !p->group ? p->k - 1 : -1;
    double zero = in < 0 ? 0.0 : twin_zero(t, gcol, in), v = twin_raw(t, 0) - zero;

    if (p->zero == REF_ZERO_NONE && !p->b->is_float)
        v = twin_raw(t, 0) - twin_zero(t, gcol, 0);
    if (in < 0)
        return 0.0;
    if (twin_scales_operand(p))
        return twin_to_a(t, v * twin_to_a(t, twin_scale(t, gcol, in)));
    if (p->int_scale)
        return v * t->s_int[gcol * ref_groups(p) + twin_group_of(t, in)];
    return ref_scales_on_c(p) || p->input_group ? v * twin_flush_factor(t, arow, gcol, in) : v;
}

/* The last K block is that of slice 0. */
static double runs_on(const struct twin *t, int64_t row, int64_t col, int slice)
{
    int64_t arow = t->q->routing.row_a[row], k = t->ref.k;
    int64_t gcol = t->q->routing.row_expert[row] * t->ref.n + col;
    double sum = 0.0;

    for (int64_t l = k; l < t->g->layer.shape_k && slice == 0; l++)
        if (arow * k + l < t->ref.m * k)
            sum += (double)t->a[arow * k + l] * padded_weight(t, arow, gcol, l);
    return sum;
}

static void padded_k_contributes(struct twin *t)
{
    t->none = t->ref.fused_e8m0;
    t->carry = runs_on;
}

static void from_next(const struct twin *t, int64_t arow, float *a)
{
    (void)arow;
    a[t->variant] = a[t->variant + 1];
}

static void activation_k_plus_1(struct twin *t)
{
    t->none = t->variant + 1 >= t->ref.k;
    t->activations = from_next;
}

static int64_t every_k(const struct probes *all, int64_t out[HYPOTHESIS_VARIANTS])
{
    return gemm_wrong_k(all, out, HYPOTHESIS_VARIANTS / 2);
}

/* clang-format off */
static const struct hypothesis rows[] = {
    {.name = "nibble-order", .sentence = "the two 4-bit codes of every byte are swapped",
     .applies = has_4_bits, GEMM_TWIST(nibble_order)},
    {.name = "k-pair-swapped", .sentence = "the weights of two neighbours along k are swapped",
     .variants = pairs, .detail = gemm_place_detail, GEMM_TWIST(k_pair_swapped)},
    {.name = "weight-lsb-flipped", .sentence = "the lowest bit of a weight is flipped",
     .variants = places, .detail = gemm_place_detail, GEMM_TWIST(weight_lsb_flipped)},
    {.name = "weight-lsb-flipped", .sentence = "the lowest bit of a weight is flipped",
     .variants = slanted_places, .detail = slanted_detail, GEMM_TWIST(slanted_lsb_flipped)},
    {.name = "straddle-bits-lost",
     .sentence = "a code that straddles two words keeps the bits of the first word alone",
     .applies = straddles, GEMM_TWIST(straddle_bits_lost)},
    {.name = "scales-transposed",
     .sentence = "scales of groups and blocks are read as if groups came before columns",
     .applies = has_groups, .variants = gemm_variants_2, GEMM_TWIST(scales_transposed)},
    {.name = "input-scale-transposed",
     .sentence = "M-major input scales are read as if rows came first",
     .applies = has_m_major, GEMM_TWIST(input_scale_transposed)},
    {.name = "zero-point-order", .sentence = "4-bit zero points are unpacked in an interleaved order",
     .applies = has_4_bit_zeros, .variants = gemm_variants_2, GEMM_TWIST(zero_point_order)},
    {.name = "padded-k-contributes",
     .sentence = "along a padded k the row runs on into the next row of A",
     .applies = has_padded_k, GEMM_TWIST(padded_k_contributes)},
    {.name = "activation-k-plus-1", .sentence = "the activation at one k is read from the next",
     .variants = every_k, GEMM_TWIST(activation_k_plus_1)},
};
/* clang-format on */

GEMM_TABLE(gemm_layout_hypotheses, rows);
