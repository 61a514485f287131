#include "harness/explain/ops_number.h"

#include "reference/quantize.h"

#include <math.h>

double ops_round(double x, enum ops_rounding how)
{
    const double down = floor(x), rest = x - down;

    if (!isfinite(x) || rest <= 0.0)
        return x;
    switch (how) {
    case OPS_AS_DOCUMENTED:
    case OPS_TIES_TO_EVEN:
        return rint(x);
    case OPS_TIES_TO_ZERO:
        return copysign(ceil(fabs(x) - 0.5), x);
    case OPS_TIES_AWAY:
        return copysign(floor(fabs(x) + 0.5), x);
    case OPS_TIES_UP:
        return copysign(floor(x + 0.5), x);
    case OPS_TRUNCATED:
        return trunc(x);
    case OPS_DOWN:
        return down;
    case OPS_UP:
        return copysign(down + 1.0, x);
    }
    return x;
}

/* In [2^e, 2^(e+1)) numbers are 2^(e - man_bits) apart; e is at least e_min, where subnormals have
 * the same distance. */
double ops_magnitude(const struct dtype *t, double x, enum ops_rounding how)
{
    const int e_min = dtype_min_exponent(t);
    int e;
    double steps;

    (void)frexp(x, &e);
    e = t->exp_bits && fabs(x) > 0.0 && e - 1 > e_min ? e - 1 : e_min;
    steps = ops_round(ldexp(x, t->man_bits - e), how);
    return copysign(fabs(steps) + (double)(e - e_min) * ldexp(1.0, t->man_bits), x);
}

static double limited(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* The integer modulo 2^bits; open where it does not fit 32 bits. */
static uint32_t wrapped(double x, int bits)
{
    if (!(x >= -2147483648.0 && x < 2147483648.0))
        return REF_CODE_ANY;
    return (uint32_t)(int64_t)x & (uint32_t)((UINT64_C(1) << bits) - 1u);
}

static uint32_t encode_integer(const struct dtype *t, double x, enum ops_rounding how,
                               enum ops_overflow over)
{
    const double half = ldexp(1.0, t->bits - 1);
    const double whole = ops_round(x, how);

    if (over == OPS_WRAPS)
        return wrapped(whole, t->bits);
    return wrapped(limited(whole, over == OPS_SATURATES_NARROW ? 1.0 - half : -half, half - 1.0),
                   t->bits);
}

/* The code of what lies beyond the largest number, without its sign. */
static double beyond(const struct dtype *t, enum ops_overflow over, double number, double last)
{
    switch (over) {
    case OPS_WRAPS:
        return fmod(number, ldexp(1.0, t->bits));
    case OPS_TO_SPECIAL:
        return t->top == DTYPE_TOP_FINITE ? last : last + 1.0;
    case OPS_SATURATES:
    case OPS_SATURATES_NARROW:
        break;
    }
    return last;
}

static uint32_t encode_float(const struct dtype *t, double x, enum ops_rounding how,
                             enum ops_overflow over)
{
    const double last = ops_magnitude(t, dtype_max(t), OPS_TIES_TO_EVEN);
    const uint32_t sign = signbit(x) ? (uint32_t)(UINT64_C(1) << (t->bits - 1)) : 0u;
    double number = isinf(x) ? HUGE_VAL : fabs(ops_magnitude(t, x, how));

    if (number > last)
        number = isinf(number) && over == OPS_WRAPS ? last : beyond(t, over, number, last);
    return ((uint32_t)number + sign) & (uint32_t)((UINT64_C(1) << t->bits) - 1u);
}

uint32_t ops_encode(const struct dtype *t, double x, enum ops_rounding how, enum ops_overflow over)
{
    if (isnan(x))
        return t->top == DTYPE_TOP_FINITE ? REF_CODE_ANY : dtype_encode(t, x, DTYPE_TO_TOP);
    return t->is_float ? encode_float(t, x, how, over) : encode_integer(t, x, how, over);
}
