#include "reference/dtype.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define IEEE    "IEEE 754-2019"
#define OCP8    "OCP 8-bit Floating Point Specification (OFP8) 1.0"
#define OCPMX   "OCP Microscaling Formats (MX) 1.0"
#define BRAIN   "the upper half of binary32"
#define TENSOR  "tensor core (FN: as OFP8's E4M3, the top code is NaN, so the largest is 30)"
#define HUMMING "Humming: bias 2^(E-1)-1, subnormals, every code finite"
#define SIGNMAG "Humming: sign and integer magnitude"
#define QUARK   "Quark: unsigned scale, 255 is NaN"
#define TWOS    "two's complement"
#define PLAIN   "unsigned integer"

#define INF_NAN DTYPE_TOP_INF_NAN
#define ONE_NAN DTYPE_TOP_ONE_NAN
#define FINITE  DTYPE_TOP_FINITE

#define WEIGHT(n, e, m, bias)                                                                      \
    {                                                                                              \
        "float" #n "e" #e "m" #m, NULL, n, e, m, true, true, bias, FINITE, (e) ? HUMMING : SIGNMAG \
    }
#define SIGNED(n)                                                 \
    {                                                             \
        "int" #n, NULL, n, 0, (n)-1, false, true, 0, FINITE, TWOS \
    }
#define UNSIGNED(n)                                              \
    {                                                            \
        "uint" #n, NULL, n, 0, n, false, false, 0, FINITE, PLAIN \
    }

/* Where two rows share an id, the activation's stands first (dtype_find_id). */
/* clang-format off */
const struct dtype dtypes[] = {
    /* name   alias         bits exp man float  signed bias top      source */
    {"f32",   "float32",      32,  8, 23, true, true,   127, INF_NAN, IEEE},
    {"f16",   "float16",      16,  5, 10, true, true,    15, INF_NAN, IEEE},
    {"bf16",  "bfloat16",     16,  8,  7, true, true,   127, INF_NAN, BRAIN},
    {"e4m3",  NULL,            8,  4,  3, true, true,     7, ONE_NAN, OCP8},
    {"e5m2",  NULL,            8,  5,  2, true, true,    15, INF_NAN, OCP8},
    {"e3m4",  NULL,            8,  3,  4, true, true,     3, ONE_NAN, TENSOR},
    {"e8m0",  "float8e8m0",    8,  8,  0, true, false,  127, ONE_NAN, OCPMX},
    {"e5m3",  "float8e5m3",    8,  5,  3, true, false,   15, ONE_NAN, QUARK},
    {"e2m3",  "float6e2m3",    6,  2,  3, true, true,     1, FINITE,  OCPMX},
    {"e3m2",  "float6e3m2",    6,  3,  2, true, true,     3, FINITE,  OCPMX},
    {"e2m1",  "float4e2m1",    4,  2,  1, true, true,     1, FINITE,  OCPMX},
    {"e0m3",  "float4e0m3",    4,  0,  3, true, true,     0, FINITE,  SIGNMAG},

    WEIGHT(8, 0, 7, 0),  WEIGHT(8, 1, 6, 0),  WEIGHT(8, 2, 5, 1),  WEIGHT(8, 3, 4, 3),
    WEIGHT(8, 4, 3, 7),  WEIGHT(8, 5, 2, 15), WEIGHT(8, 6, 1, 31), WEIGHT(8, 7, 0, 63),
    WEIGHT(7, 0, 6, 0),  WEIGHT(7, 1, 5, 0),  WEIGHT(7, 2, 4, 1),  WEIGHT(7, 3, 3, 3),
    WEIGHT(7, 4, 2, 7),  WEIGHT(7, 5, 1, 15), WEIGHT(7, 6, 0, 31),
    WEIGHT(6, 0, 5, 0),  WEIGHT(6, 1, 4, 0),  WEIGHT(6, 4, 1, 7),  WEIGHT(6, 5, 0, 15),
    WEIGHT(5, 0, 4, 0),  WEIGHT(5, 1, 3, 0),  WEIGHT(5, 2, 2, 1),  WEIGHT(5, 3, 1, 3),
    WEIGHT(5, 4, 0, 7),
    WEIGHT(4, 1, 2, 0),  WEIGHT(4, 3, 0, 3),
    WEIGHT(3, 0, 2, 0),  WEIGHT(3, 1, 1, 0),  WEIGHT(3, 2, 0, 1),
    WEIGHT(2, 0, 1, 0),  WEIGHT(2, 1, 0, 0),

    SIGNED(1),   SIGNED(2),   SIGNED(3),   SIGNED(4),
    SIGNED(5),   SIGNED(6),   SIGNED(7),   SIGNED(8),   SIGNED(32),
    UNSIGNED(1), UNSIGNED(2), UNSIGNED(3), UNSIGNED(4),
    UNSIGNED(5), UNSIGNED(6), UNSIGNED(7), UNSIGNED(8),
};
/* clang-format on */
const int dtype_count = sizeof dtypes / sizeof dtypes[0];

const struct dtype *dtype_find(const char *name)
{
    for (int i = 0; i < dtype_count; i++)
        if (!strcmp(dtypes[i].name, name) || (dtypes[i].alias && !strcmp(dtypes[i].alias, name)))
            return &dtypes[i];
    return NULL;
}

const struct dtype *dtype_find_weight(const char *name)
{
    const struct dtype *t = dtype_find(name);

    return t ? dtype_find_id(dtype_id(t), true) : NULL;
}

int32_t dtype_id(const struct dtype *t)
{
    int32_t base = t->is_float ? 2 : 1;
    int32_t fields = t->is_float ? t->exp_bits * 100 + t->man_bits : 0;

    return base * 10000000 + t->is_signed * 1000000 + t->bits * 10000 + fields;
}

const struct dtype *dtype_find_id(int32_t id, bool weight)
{
    for (int i = 0; i < dtype_count; i++)
        if (dtype_id(&dtypes[i]) == id && (!weight || dtypes[i].top == FINITE))
            return &dtypes[i];
    return NULL;
}

static uint32_t mask(int bits)
{
    return bits == 32 ? UINT32_MAX : (1u << bits) - 1u;
}

static bool is_twos(const struct dtype *t)
{
    return t->is_signed && !t->is_float;
}

/* A scale without sign and mantissa holds powers of two and nothing else: its exponent field 0 is
 * one of them. */
static bool has_zero(const struct dtype *t)
{
    return t->is_signed || t->man_bits || !t->is_float;
}

/* Without an exponent field every code is a "subnormal" whose quantum 2^(e_min - man_bits) is 1. */
int dtype_min_exponent(const struct dtype *t)
{
    if (!t->exp_bits)
        return t->man_bits;
    return has_zero(t) ? 1 - t->bias : -t->bias;
}

/* The code of the largest finite number, without the sign bit. */
static uint32_t top_code(const struct dtype *t)
{
    uint32_t all = mask(t->exp_bits + t->man_bits);

    switch (t->top) {
    case DTYPE_TOP_INF_NAN:
        return all - mask(t->man_bits) - 1u;
    case DTYPE_TOP_ONE_NAN:
        return all - 1u;
    case DTYPE_TOP_FINITE:
        break;
    }
    return all;
}

double dtype_max(const struct dtype *t)
{
    return dtype_decode(t, top_code(t));
}

static double from_bits(uint64_t bits)
{
    double x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

/* 2^e; every power that a format needs is a normal double. */
static double power(int e)
{
    return from_bits((uint64_t)(e + 1023) << 52);
}

double dtype_decode(const struct dtype *t, uint32_t code)
{
    uint32_t all = mask(t->exp_bits + t->man_bits);
    uint32_t magnitude = code & all;
    uint32_t man = code & mask(t->man_bits);
    int field = (int)((uint64_t)magnitude >> t->man_bits);
    int first = has_zero(t) ? 1 : 0; /* the lowest exponent field of normal numbers */
    int e_min = dtype_min_exponent(t);
    bool negative = t->is_signed && code >> (t->bits - 1) & 1u;
    double x;

    if (is_twos(t))
        return (double)magnitude - (negative ? power(t->man_bits) : 0.0);
    if (t->top == DTYPE_TOP_ONE_NAN && magnitude == all)
        x = (double)NAN;
    else if (t->top == DTYPE_TOP_INF_NAN && magnitude > top_code(t))
        x = man ? (double)NAN : HUGE_VAL;
    else if (field < first)
        x = man * power(e_min - t->man_bits);
    else
        x = from_bits((uint64_t)(field - first + e_min + 1023) << 52 | (uint64_t)man
                                                                           << (52 - t->man_bits));
    return negative ? -x : x;
}

/* x >> drop, to nearest, ties to even; 1 <= drop < 64. */
static uint64_t shift_even(uint64_t x, int drop)
{
    return (x + ((UINT64_C(1) << (drop - 1)) - 1u) + (x >> drop & 1u)) >> drop;
}

/* The code of |x| as if the exponent had no upper end, given the bits of |x|. Magnitudes of a
 * format are numbered in ascending order, so a carry out of the mantissa lands in the exponent
 * as it should. */
static uint64_t encode_magnitude(const struct dtype *t, uint64_t bits)
{
    int exponent = (int)(bits >> 52) - 1023;
    int below = dtype_min_exponent(t) - exponent;
    int drop = 52 - t->man_bits;
    uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1u);
    uint64_t field;

    if (below > 0) { /* the quantum is fixed; less than half of it (drop > 53) is 0 */
        if (!has_zero(t) || drop + below > 53)
            return 0;
        return shift_even(fraction | UINT64_C(1) << 52, drop + below);
    }
    field = (uint64_t)(has_zero(t) ? 1 - below : -below);
    return shift_even(field << 52 | fraction, drop);
}

static uint32_t nan_code(const struct dtype *t, bool negative)
{
    uint32_t sign = negative && t->is_signed ? 1u << (t->bits - 1) : 0u;

    switch (t->top) {
    case DTYPE_TOP_INF_NAN:
        return sign | (top_code(t) + 1u) | (mask(t->man_bits) ^ mask(t->man_bits) >> 1);
    case DTYPE_TOP_ONE_NAN:
        return sign | mask(t->exp_bits + t->man_bits);
    case DTYPE_TOP_FINITE:
        break;
    }
    return 0;
}

uint32_t dtype_encode(const struct dtype *t, double x, enum dtype_overflow overflow)
{
    bool negative = signbit(x);
    uint32_t top = top_code(t);
    uint64_t bits, code;

    if (isnan(x))
        return nan_code(t, negative);
    if (negative && !t->is_signed)
        return 0;
    memcpy(&bits, &x, sizeof bits);
    code = encode_magnitude(t, bits & INT64_MAX);
    if (is_twos(t)) {
        top += negative; /* one more negative number than positive */
        code = code > top ? top : code;
        return (negative ? 0u - (uint32_t)code : (uint32_t)code) & mask(t->bits);
    }
    if (code > top) /* the code after the largest number is infinity, or the NaN */
        code = top + (overflow == DTYPE_TO_TOP && t->top != DTYPE_TOP_FINITE);
    return (negative ? 1u << (t->bits - 1) : 0u) | (uint32_t)code;
}

void dtype_table(const struct dtype *t, double *out)
{
    uint32_t last = mask(t->bits);

    for (uint32_t code = 0; code <= last; code++)
        out[code] = dtype_decode(t, code);
}
