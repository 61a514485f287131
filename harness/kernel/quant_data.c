#include "harness/kernel/quant_data.h"

#include "reference/rng.h"

#include <string.h>

enum kind { RANDOM, RANDOM_TOO, GRID, TIES, NEAR_TIES, BORDER, ONE_SIDE, EDGES, KINDS };

/* One group being made. In units of the scale that it is to have, 2^exponent. */
struct group {
    const struct quant_data *d;
    const struct ref_quant *q;
    enum kind kind;
    uint64_t word;
    int64_t size, begin; /* elements; number of the first */
    int exponent;
    double low, high; /* of units that the codes reach */
};

static int log2_of(double x)
{
    int e;

    (void)frexp(x, &e);
    return e - 1;
}

/* The largest quotient that does not saturate (docs/semantics-ops.md section 3: top). */
static double top_of(const struct dtype *t)
{
    if (t->bits == 8 && t->exp_bits == 4)
        return 448.0;
    return t->bits == 8 && t->exp_bits == 5 ? 57344.0 : dtype_max(t);
}

static void find_range(struct group *g)
{
    const struct dtype *t = g->q->target;
    const double codes = ldexp(1.0, t->bits), half = codes / 2.0;

    if (t->is_float) {
        g->high = top_of(t);
        g->low = -g->high;
    } else if (g->q->has_zero_point) { /* the zero point is somewhere, also at the ends */
        g->low = -(double)rng_below(g->word << 24, (uint32_t)codes);
        g->high = g->low + codes - 1.0;
    } else {
        g->low = -half;
        g->high = half > 1.0 ? half - 1.0 : 0.0;
    }
}

/* The scale's exponent: so that neither the largest values overflow nor the smallest are lost. */
static int choose_exponent(const struct group *g)
{
    const double reach = g->high > -g->low ? g->high : -g->low;
    const int most = log2_of(dtype_max(g->d->input)) - log2_of(reach) - 3;
    const int high = most < 12 ? most : 12;
    const int floor16 = -6 - log2_of(reach); /* f16: well above its subnormals */
    const int floor32 = high - 40;
    const int low = g->d->input->exp_bits == 5 && floor16 < high ? floor16 : floor32;

    if (!g->q->has_scale)
        return 0;
    return low + (int)rng_below(g->word << 8, (uint32_t)(high - low + 1));
}

static struct group group_at(const struct quant_data *d, const struct ref_quant *q, int64_t number)
{
    const int64_t groups = ref_quant_groups(q);
    struct group g = {.d = d, .q = q, .size = q->cols / groups};

    g.begin = number * g.size;
    g.word = rng_word(d->seed, RNG_QUANT_GROUP, (uint64_t)number);
    g.kind = (enum kind)((uint64_t)(number + number / 8) % KINDS); /* rows shift the kinds */
    find_range(&g);
    g.exponent = choose_exponent(&g);
    return g;
}

/* ---- elements, in units ---------------------------------------------------------------------- */

static double uniform(uint64_t word)
{
    return (double)(word >> 11) * 0x1p-53;
}

static double signed_by(uint64_t word, double x)
{
    return word & 1 ? -x : x;
}

/* Floats: of any binade that the target has; integers: anywhere in the range. */
static double random_unit(const struct group *g, uint64_t word)
{
    const int of_target = 3 + (g->q->target->exp_bits ? 1 << (g->q->target->exp_bits - 1) : 0);
    const int binades = of_target < 40 ? of_target : 40;

    if (g->q->target->is_float)
        return signed_by(word, ldexp(g->high * (0.5 + 0.5 * uniform(word)),
                                     -(int)rng_below(word << 20, (uint32_t)binades)));
    return g->low + (g->high - g->low) * uniform(word);
}

/* A number of the target, or (`between`) the middle of it and the next larger magnitude. */
static double grid_unit(const struct group *g, uint64_t word, bool between)
{
    const struct dtype *t = g->q->target;
    const double span = g->high - g->low;
    uint32_t code;
    double x, next;

    if (!t->is_float && (!between || span < 1.0))
        return g->low + (double)rng_below(word, (uint32_t)span + 1u);
    if (!t->is_float)
        return g->low + (double)rng_below(word, (uint32_t)span) + 0.5;
    code = rng_below(word, 1u << (t->bits - 1));
    x = dtype_decode(t, code);
    next = dtype_decode(t, code + 1u);
    if (!(x <= g->high))
        x = g->high;
    if (between && code + 1u < 1u << (t->bits - 1) && next <= g->high)
        x = 0.5 * (x + next);
    return signed_by(word, x);
}

/* One step of the input's format away. */
static double beside(const struct group *g, uint64_t word, double x)
{
    return x * (1.0 + signed_by(word >> 3, ldexp(1.0, -g->d->input->man_bits)));
}

/* Largest and smallest elements give exact groups their scale: integers without zero point have
 * one side with one code more, which a negative scale exchanges. */
static double extreme(const struct group *g, bool first)
{
    const struct ref_quant *q = g->q;
    const bool turned = q->allow_negative_scale && !q->use_e8m0_scale && g->word & 2;

    if (q->target->is_float)
        return first && g->word & 2 ? g->low : g->high;
    if (q->has_zero_point)
        return first ? g->low : g->high;
    return first && turned ? -g->low : first ? g->low : g->high * 0.5;
}

static double unit_of(const struct group *g, uint64_t word)
{
    switch (g->kind) {
    case RANDOM:
    case RANDOM_TOO:
    case KINDS:
        return random_unit(g, word);
    case GRID:
        return grid_unit(g, word, false);
    case TIES:
        return grid_unit(g, word, true);
    case NEAR_TIES:
        return beside(g, word, grid_unit(g, word, true));
    case BORDER:
        return random_unit(g, word) * 0.125;
    case ONE_SIDE:
        return (g->word & 2 ? -1.0 : 1.0) * fabs(random_unit(g, word));
    case EDGES:
        return 0.0;
    }
    return 0.0;
}

/* Where the first and the second extreme are. */
static int64_t place_of(const struct group *g, bool first)
{
    const int64_t at = (int64_t)rng_below(g->word << 40, (uint32_t)g->size);

    if (g->kind == BORDER)
        return first == ((g->word & 4) != 0) ? 0 : g->size - 1;
    return first ? at : (at + 1 + g->size / 2) % g->size;
}

static bool has_extremes(const struct group *g)
{
    return g->q->has_scale && g->kind != RANDOM && g->kind != RANDOM_TOO && g->kind != ONE_SIDE &&
           g->kind != EDGES;
}

/* Zeros of both signs, subnormals, or the largest values of the input's format. */
static double edge_value(const struct group *g, uint64_t word)
{
    const struct dtype *t = g->d->input;

    switch (g->word >> 32 & 3) {
    case 0:
        return signed_by(word, 0.0);
    case 1:
        return signed_by(word, ldexp(uniform(word), dtype_min_exponent(t)));
    case 2: /* half of it, so that largest and smallest still have a difference */
        return signed_by(word, dtype_max(t) * 0.5 * (1.0 - 0.5 * uniform(word) * uniform(word)));
    default:
        return signed_by(word, ldexp(1.0 + uniform(word), dtype_min_exponent(t)));
    }
}

static double value_at(const struct group *g, int64_t i)
{
    const uint64_t word = rng_word(g->d->seed, RNG_QUANT_VALUE, (uint64_t)(g->begin + i));

    if (g->kind == EDGES && g->q->has_scale)
        return edge_value(g, word);
    if (has_extremes(g) && i == place_of(g, true))
        return ldexp(extreme(g, true), g->exponent);
    if (has_extremes(g) && i == place_of(g, false))
        return ldexp(extreme(g, false), g->exponent);
    if (!g->q->has_scale && word % 16 == 5) /* beyond the last code */
        return 4.0 * random_unit(g, word);
    return ldexp(unit_of(g, word), g->exponent);
}

/* ---- special values -------------------------------------------------------------------------- */

/* In every other group one element is special. */
static bool is_special(const struct group *g, int64_t i)
{
    const uint64_t word = rng_word(g->d->seed, RNG_QUANT_SPECIAL, (uint64_t)(g->begin / g->size));

    return g->d->special == QUANT_SPECIAL && word & 1 &&
           i == (int64_t)rng_below(word, (uint32_t)g->size);
}

static double special_value(const struct group *g)
{
    const double largest = dtype_max(g->d->input);
    const double values[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, -0.0,
                             largest,     -largest,         ldexp(1.0, -126),  0.0};

    return values[rng_word(g->d->seed, RNG_QUANT_SPECIAL, (uint64_t)g->begin) >> 61];
}

/* ---- all ------------------------------------------------------------------------------------- */

static void store(const struct dtype *t, uint32_t code, int64_t at, float *values, void *codes)
{
    const uint16_t narrow = (uint16_t)code;

    values[at] = (float)dtype_decode(t, code);
    if (t->bits == 16)
        memcpy((uint8_t *)codes + at * 2, &narrow, sizeof narrow);
    else
        memcpy((uint8_t *)codes + at * 4, &code, sizeof code);
}

/* Every code once, neighbours far apart: an odd factor permutes the numbers below 2^16. */
static void fill_all(const struct quant_data *d, const struct ref_quant *q, float *values,
                     void *codes)
{
    for (int64_t i = 0; i < q->rows * q->cols; i++)
        store(d->input, (uint32_t)(i * 40503) & 0xffffu, i, values, codes);
}

void quant_data_fill(const struct quant_data *d, const struct ref_quant *q, float *values,
                     void *codes)
{
    const int64_t groups = q->rows * ref_quant_groups(q);

    if (d->special == QUANT_EXHAUSTIVE) {
        fill_all(d, q, values, codes);
        return;
    }
    for (int64_t number = 0; number < groups; number++) {
        const struct group g = group_at(d, q, number);

        for (int64_t i = 0; i < g.size; i++) {
            const double x = is_special(&g, i) ? special_value(&g) : value_at(&g, i);

            store(d->input, dtype_encode(d->input, x, isinf(x) ? DTYPE_TO_TOP : DTYPE_SATURATE),
                  g.begin + i, values, codes);
        }
    }
}

/* ---- ties ------------------------------------------------------------------------------------ */

static bool is_tie(const struct dtype *t, double y)
{
    const double x = fabs(y);
    double steps;
    int e;

    if (!isfinite(x) || x > top_of(t))
        return false;
    e = !t->is_float || x == 0.0 ? 0 : log2_of(x);
    if (t->is_float && t->exp_bits && e < dtype_min_exponent(t))
        e = dtype_min_exponent(t);
    steps = t->is_float ? ldexp(x, t->man_bits - e) : x;
    return steps - floor(steps) == 0.5;
}

static float stored_scale(const struct ref_quant *q, const uint32_t *scale, int64_t number)
{
    float value = 1.0f;

    if (q->use_e8m0_scale)
        return ldexpf(1.0f, (int)scale[number] - 127);
    if (q->has_scale)
        memcpy(&value, &scale[number], sizeof value);
    return value;
}

int64_t quant_data_ties(const struct ref_quant *q, const uint32_t *scale)
{
    const int64_t groups = ref_quant_groups(q), size = q->cols / groups;
    int64_t ties = 0;

    for (int64_t i = 0; i < q->rows * q->cols; i++) {
        const float inverse = 1.0f / stored_scale(q, scale, i / size);

        ties += is_tie(q->target, (double)(q->inputs[i] * inverse));
    }
    return ties;
}

/* Integers by rule 2026_05 have odd divisors, so that a tie is a matter of luck; e8m0 scales of
 * that rule are not those of the data. Wide integers have ties that 8 significant bits cannot
 * tell. */
bool quant_data_can_tie(const struct ref_quant *q, const struct dtype *input)
{
    const bool newest = q->rule == REF_QUANT_RULE_2026_08;

    if (!q->has_scale)
        return q->target->bits > 1;
    if (q->use_e8m0_scale && !newest)
        return false;
    return q->target->bits > 1 && q->target->bits < 8 + (input->man_bits > 7) &&
           (q->target->is_float || q->has_zero_point || newest);
}
