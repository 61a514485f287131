#include "harness/kernel/input_values.h"

#include "reference/rng.h"

#include <math.h>
#include <string.h>

/* ---- units ----------------------------------------------------------------------------------- */

enum kind { KIND_TIES, KIND_RANDOM, KIND_POSITIVE, KIND_ZEROS, KIND_TINY, KIND_HUGE };

/* A unit of columns that share a scale, or 32 of them. */
struct unit {
    enum kind kind;
    int64_t number, first, count; /* columns */
    int64_t largest_at;           /* column of the largest value */
    int exponent;                 /* of the scale, of kind ties; else of the values */
    int row_exponent;             /* of kind huge */
};

static const enum kind kinds[] = {
    KIND_TIES,   KIND_TIES,   KIND_TIES,   KIND_TIES,     KIND_TIES,   KIND_TIES,
    KIND_RANDOM, KIND_RANDOM, KIND_RANDOM, KIND_RANDOM,   KIND_RANDOM, KIND_POSITIVE,
    KIND_ZEROS,  KIND_TINY,   KIND_HUGE,   KIND_POSITIVE,
};
enum { KINDS = sizeof kinds / sizeof kinds[0], GIVEN_UNIT = 32 };

static int64_t unit_columns(const struct input_case *c)
{
    const struct ref_input *q = &c->quant;

    if (ref_input_has_groups(q->mode))
        return q->group;
    return ref_input_has_tokens(q->mode) ? q->width : GIVEN_UNIT;
}

/* Does the quantizer see the inputs themselves? */
static bool is_direct(const struct input_case *c)
{
    return c->activation.kind == REF_ACTIVATION_NONE && !c->hadamard;
}

/* Behind an activation or a transform, kinds that would leave the range are random. Of two rows
 * below each other at most one is all zero. */
static enum kind kind_of(const struct input_case *c, int64_t row, int64_t number, uint64_t word)
{
    enum kind kind = number ? kinds[word % KINDS] : KIND_TIES;
    bool direct_only = kind == KIND_TIES || kind == KIND_TINY || kind == KIND_HUGE;
    bool zero = kind == KIND_ZEROS || kind == KIND_TINY;

    return (direct_only && !is_direct(c)) || (zero && row % 2) ? KIND_RANDOM : kind;
}

/* Token scales of rows with many groups would be alike. */
static int exponent_of_row(const struct input_case *c, int64_t row)
{
    return c->quant.mode == REF_INPUT_DYNAMIC_GROUP_TOKEN ? -(int)(row % 4) : 0;
}

/* Scales from 2^-5 to 2^6; f16 has not the range of targets with large values. Behind an activation
 * numbers from 2^-6 to 2^3, where sigmoids bend. */
static int exponent_of(const struct input_case *c, uint64_t word)
{
    bool narrow = c->in->exp_bits == 5 && ref_input_target_max(c->quant.t) > 1000.0f;

    if (!is_direct(c))
        return (int)rng_below(word, 10) - 6;
    return (int)rng_below(word, 12) - (narrow ? 12 : 5);
}

static struct unit unit_of(const struct input_case *c, int64_t row, int64_t col)
{
    int64_t columns = unit_columns(c), width = c->quant.width;
    int64_t units = (width + columns - 1) / columns;
    struct unit u = {.number = row * units + col / columns, .first = col / columns * columns};
    uint64_t word = rng_word(c->seed, RNG_INPUT_UNIT, (uint64_t)u.number);
    uint32_t place = (uint32_t)(word >> 8 & 3);

    u.count = width - u.first < columns ? width - u.first : columns;
    u.kind = kind_of(c, row, u.number, word);
    u.row_exponent = exponent_of_row(c, row);
    u.exponent = exponent_of(c, word) + u.row_exponent;
    u.largest_at =
        u.first + (place == 0   ? 0
                   : place == 1 ? u.count - 1
                                : (int64_t)((word >> 16 & 0xffff) * (uint64_t)u.count >> 16));
    if (ref_input_is_static(c->quant.mode) && u.kind == KIND_TIES &&
        !ref_input_has_groups(c->quant.mode))
        u.exponent = 0;
    return u;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Magnitudes of a target in ascending order. */
static double magnitude(const struct dtype *t, uint32_t number)
{
    return t->is_float ? dtype_decode(t, number) : (double)number;
}

/* The number of the target's largest magnitude. */
static uint32_t largest_number(const struct dtype *t)
{
    float most = ref_input_target_max(t);

    return t->is_float ? dtype_encode(t, (double)most, DTYPE_SATURATE) : (uint32_t)most;
}

static double sign_of(uint64_t word)
{
    return word >> 63 ? -1.0 : 1.0;
}

/* A magnitude, or the middle of two, under the scale 2^exponent. */
static double tie_value(const struct input_case *c, const struct unit *u, uint64_t word,
                        int64_t col)
{
    const struct dtype *t = c->quant.t;
    uint32_t top = largest_number(t), number = rng_below(word, top);
    double low = magnitude(t, number), high = magnitude(t, number + 1);

    if (col == u->largest_at)
        low = high = magnitude(t, top);
    return sign_of(word << 43) * ldexp(word & 3 ? (low + high) / 2 : low, u->exponent);
}

/* The sum of four uniform numbers of [-1, 1), of more bits than f32 has. */
static double random_value(uint64_t word)
{
    double sum = 0.0;

    for (int i = 0; i < 4; i++)
        sum += (double)(word >> 16 * i & 0xffff) * 0x1p-15 - 1.0;
    return sum * (1.0 + (double)(word & 0xffffff) * 0x1p-26);
}

/* The largest number that is used: int4 of 2^31 and more is open, and scales may be as small as 1/4
 * or saturate at 448. */
static double huge(const struct input_case *c)
{
    const struct dtype *t = c->quant.t;

    return !t->is_float && t->bits == 4 ? fmin(dtype_max(c->in), 0x1p28) : dtype_max(c->in);
}

/* What the quantizer is to see, in units of a scale that is given. */
static double wanted(const struct input_case *c, const struct unit *u, uint64_t word, int64_t col)
{
    double quantum = ldexp(1.0, dtype_min_exponent(c->in) - c->in->man_bits);

    switch (u->kind) {
    case KIND_TIES:
        if (c->quant.t->bits <= 8)
            return tie_value(c, u, word, col);
        break;
    case KIND_RANDOM:
        break;
    case KIND_POSITIVE:
        return ldexp(fabs(random_value(word)), u->exponent) * (col == u->largest_at ? 4.0 : 1.0);
    case KIND_ZEROS:
        return copysign(0.0, sign_of(word));
    case KIND_TINY:
        return sign_of(word) * quantum * (double)(word & 63);
    case KIND_HUGE:
        return sign_of(word) * ldexp(huge(c) * (word & 1 ? 1.0 : 0.75), u->row_exponent);
    }
    return ldexp(random_value(word), u->exponent) * (col == u->largest_at ? 4.0 : 1.0);
}

/* The f32 x near `want` s with RN(x first) = want, if there is one within a few ulp. */
static double undo(double want, float s)
{
    float first = 1.0f / s, start = (float)(want * (double)s), x = start;

    for (int i = 0; i < 8 && (double)(x * first) < want; i++)
        x = nextafterf(x, INFINITY);
    for (int i = 0; i < 8 && (double)(x * first) > want; i++)
        x = nextafterf(x, -INFINITY);
    return (double)(x * first) < want || (double)(x * first) > want ? (double)start : (double)x;
}

/* One more than the neighbour for near ties, which the encoding of `in` then holds. */
static uint32_t stepped(const struct dtype *in, uint32_t code, uint64_t word)
{
    uint32_t magnitude_bits = (1u << (in->bits - 1)) - 1u;

    if (!(code & magnitude_bits))
        return code;
    return word & 4 ? code + 1 : code - 1;
}

static uint32_t plain_code(const struct input_case *c, int64_t row, int64_t col)
{
    struct unit u = unit_of(c, row, col);
    uint64_t word = rng_word(c->seed, RNG_INPUT_VALUE, (uint64_t)(row * c->quant.width + col));
    double value = wanted(c, &u, word, col);
    bool given = is_direct(c) && ref_input_is_static(c->quant.mode) &&
                 (u.kind == KIND_TIES || u.kind == KIND_RANDOM);
    uint32_t code;

    if (given)
        value = c->in->bits == 32 ? undo(value, c->quant.static_scale)
                                  : value * (double)c->quant.static_scale;
    code = dtype_encode(c->in, value, DTYPE_SATURATE);
    return u.kind == KIND_TIES && (word & 3) == 3 && col != u.largest_at
               ? stepped(c->in, code, word)
               : code;
}

/* The second operand of a binary activation; where there is no other activation, exact factors. */
static uint32_t other_code(const struct input_case *c, int64_t row, int64_t col)
{
    static const double factors[] = {1.0, -1.0};
    uint64_t word = rng_word(c->seed, RNG_INPUT_OTHER, (uint64_t)(row * c->quant.width + col));
    double value =
        c->activation.kind == REF_ACTIVATION_NONE ? factors[word & 1] : 4.0 * random_value(word);

    return dtype_encode(c->in, value, DTYPE_SATURATE);
}

/* ---- special values -------------------------------------------------------------------------- */

/* Each unit has one kind of them, at a few places, or everywhere. */
static uint32_t special_code(const struct input_case *c, int64_t row, int64_t col, uint32_t plain)
{
    struct unit u = unit_of(c, row, col);
    uint64_t unit = rng_word(c->seed, RNG_INPUT_SPECIAL, (uint64_t)u.number);
    uint64_t word = rng_word(c->seed, RNG_INPUT_SPECIAL, ~(uint64_t)(row * c->quant.width + col));
    bool few = word % 8 == 0 || col == u.largest_at;
    double quantum = ldexp(1.0, dtype_min_exponent(c->in) - c->in->man_bits);
    double values[] = {(double)NAN,
                       HUGE_VAL,
                       -HUGE_VAL,
                       -0.0,
                       sign_of(word) * quantum * (double)(word >> 8 & 127),
                       sign_of(word) * dtype_max(c->in)};
    uint32_t which = rng_below(unit, 12);

    if (which >= sizeof values / sizeof values[0])
        return plain;
    return few || which >= 3 ? dtype_encode(c->in, values[which], DTYPE_TO_TOP) : plain;
}

static uint32_t code_of(const struct input_case *c, int64_t row, int64_t col, bool is_other)
{
    uint32_t code;

    if (c->data == INPUT_DATA_ALL && !is_other)
        return (uint32_t)((row * c->quant.width + col) & 0xffff);
    code = is_other ? other_code(c, row, col) : plain_code(c, row, col);
    return c->data == INPUT_DATA_SPECIAL && !is_other ? special_code(c, row, col, code) : code;
}

void input_values_fill(struct input_case *c)
{
    const int64_t width = c->quant.width, size = c->in->bits / 8;
    const bool interleaved = c->activation.form == REF_ACTIVATION_INTERLEAVED;

    for (int64_t row = 0; row < c->quant.rows; row++)
        for (int64_t i = 0; i < c->width_in; i++) {
            bool is_other = interleaved ? i % 2 == 1 : i >= width;
            int64_t col = interleaved ? i / 2 : i % width, at = row * c->width_in + i;
            uint32_t code = code_of(c, row, col, is_other);

            memcpy(c->inputs + at * size, &code, (size_t)size); /* little end first */
            c->x[at] = (float)dtype_decode(c->in, code);
        }
}
