#include "reference/activation.h"

#include "reference/fault.h"

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

_Static_assert(LDBL_MANT_DIG >= 64, "the accuracy stated in activation.h needs 64 bits");

/* Abramowitz and Stegun, Handbook of Mathematical Functions, table 1.1. */
#define SQRT_HALF       0.707106781186547524400844362104849039L
#define SQRT_TWO_BY_PI  0.797884560802865355879892119868763737L
#define GELU_TANH_CUBIC 0.044715L /* Hendrycks and Gimpel, Gaussian Error Linear Units, 2016 */

static const struct ref_near nothing_required = {0.0, HUGE_VAL};

const char *ref_activation_valid(const struct ref_activation *f, int64_t width_in)
{
    bool unary = f->form == REF_ACTIVATION_UNARY;

    if (width_in < 1)
        return "the width must be at least 1";
    if (!unary && width_in % 2)
        return "a binary activation needs an even number of columns";
    if (f->kind != REF_ACTIVATION_SWIGLU)
        return NULL;
    if (unary)
        return "swiglu needs a gate and a second half";
    if (!isfinite(f->alpha) || !isfinite(f->beta))
        return "alpha and beta must be numbers";
    return f->limit >= 0.0f && isfinite(f->limit) ? NULL : "limit must be 0 or a positive number";
}

bool ref_activation_exact(const struct ref_activation *f)
{
    return f->kind == REF_ACTIVATION_NONE || f->kind == REF_ACTIVATION_RELU2;
}

/* ---- one value ------------------------------------------------------------------------------- */

static struct ref_near exactly(float x)
{
    return (struct ref_near){(double)x, 0.0};
}

/* value, computed from parts whose relative errors grow by `growth`. Two f32 factors cannot leave
 * the range of double. */
static struct ref_near near(long double value, long double growth)
{
    double x = (double)value;

    return (struct ref_near){x, fabs(x) * (0x1p-51 + (double)growth * 0x1p-60) + 0x1p-1074};
}

/* x / (1 + e^-y) times b. Above 0 the exponential is the smaller term. */
static struct ref_near logistic(long double x, long double y, long double b)
{
    return near(x / (1.0L + expl(-y)) * b, y < 0.0L ? -y : 1.0L);
}

static struct ref_near gelu(long double a, long double b)
{
    return near(0.5L * a * erfcl(-a * SQRT_HALF) * b, a < 0.0L ? a * a + 2.0L : 2.0L);
}

static struct ref_near gelu_tanh(long double a, long double b)
{
    long double z = SQRT_TWO_BY_PI * (a + GELU_TANH_CUBIC * a * a * a);

    return logistic(a, 2.0L * z, b);
}

static struct ref_near swiglu(const struct ref_activation *f, float a, float b)
{
    long double limit = (long double)f->limit;
    long double g = (long double)a, u = (long double)b;

    if (f->limit > 0.0f) {
        g = fminl(g, limit);
        u = fminl(fmaxl(u, -limit), limit);
    }
    if (isinf(g) || isinf(u))
        return nothing_required;
    return logistic(g, (long double)f->alpha * g, u + (long double)f->beta);
}

static struct ref_near relu2(const struct ref_activation *f, float a, float b)
{
    float m = a > 0.0f ? a : 0.0f;
    float square = m * m;

    if (isnan(a))
        return nothing_required;
    return exactly(f->form == REF_ACTIVATION_UNARY ? square : square * b);
}

static struct ref_near elementary(const struct ref_activation *f, float a, float b)
{
    if (isinf(a) || isinf(b))
        return nothing_required;
    if (f->kind == REF_ACTIVATION_SILU)
        return logistic((long double)a, (long double)a, (long double)b);
    if (f->kind == REF_ACTIVATION_GELU)
        return gelu((long double)a, (long double)b);
    return gelu_tanh((long double)a, (long double)b);
}

struct ref_near ref_activation_at(const struct ref_activation *f, float a, float b)
{
    bool unary = f->form == REF_ACTIVATION_UNARY;

    if (f->kind == REF_ACTIVATION_NONE)
        return exactly(unary ? a : a * b);
    if (f->kind == REF_ACTIVATION_RELU2)
        return relu2(f, a, b);
    if (isnan(a) || (!unary && isnan(b))) /* a clamp may drop it */
        return f->kind == REF_ACTIVATION_SWIGLU && f->limit > 0.0f ? nothing_required
                                                                   : exactly(a + b);
    if (f->kind == REF_ACTIVATION_SWIGLU)
        return swiglu(f, a, b);
    return elementary(f, a, unary ? 1.0f : b);
}

void ref_activation_row(const struct ref_activation *f, const float *in, int64_t width_in,
                        struct ref_near *out)
{
    int64_t width = ref_activation_width(f, width_in);
    int64_t step = f->form == REF_ACTIVATION_INTERLEAVED ? 2 : 1;
    int64_t second = f->form == REF_ACTIVATION_UNARY   ? 0
                     : f->form == REF_ACTIVATION_SPLIT ? width
                                                       : 1;

    for (int64_t i = 0; i < width; i++)
        out[i] = ref_activation_at(f, in[i * step], in[i * step + second]);
}

/* ---- comparison ------------------------------------------------------------------------------ */

/* Numbers of a float format in ascending order: both zeros are 0, the neighbours +-1, and so on
 * to infinity. */
static int64_t place_of(const struct dtype *t, uint32_t code)
{
    uint32_t sign = 1u << (t->bits - 1);

    return code & sign ? -(int64_t)(code & (sign - 1u)) : (int64_t)(code & (sign - 1u));
}

static double f32_at(const struct dtype *f32, int64_t place)
{
    int64_t infinity = 0x7F800000;

    if (place < 0)
        return -f32_at(f32, -place);
    return dtype_decode(f32, (uint32_t)(place < infinity ? place : infinity));
}

static bool is_nan_code(const struct dtype *t, uint32_t code)
{
    return isnan(dtype_decode(t, code));
}

/* RN to f32, `ulp` steps towards `direction`, RN to t. */
static int64_t end_of(const struct dtype *t, double x, int64_t ulp)
{
    const struct dtype *f32 = dtype_find("f32");
    int64_t place = place_of(f32, dtype_encode(f32, x, DTYPE_TO_TOP)) + ulp;

    return place_of(t, dtype_encode(t, f32_at(f32, place), DTYPE_TO_TOP));
}

bool ref_near_holds(const struct ref_near *r, const struct dtype *t, int64_t ulp, uint32_t got)
{
    int64_t place = place_of(t, got);

    if (isinf(r->error) || (REF_FAULT(ULP_NAN_PASSES) && is_nan_code(t, got)))
        return true;
    if (isnan(r->value) || is_nan_code(t, got))
        return isnan(r->value) && is_nan_code(t, got);
    if (r->error <= 0.0)
        return got == dtype_encode(t, r->value, DTYPE_TO_TOP);
    return end_of(t, r->value - r->error, -ulp) <= place &&
           place <= end_of(t, r->value + r->error, ulp);
}

int64_t ref_near_ulps(const struct ref_near *r, const struct dtype *t, uint32_t got)
{
    int64_t place = place_of(t, got), lo, hi;

    if (isinf(r->error))
        return 0;
    if (isnan(r->value) || is_nan_code(t, got))
        return isnan(r->value) && is_nan_code(t, got) ? 0 : INT64_MAX;
    lo = place_of(t, dtype_encode(t, r->value - r->error, DTYPE_TO_TOP));
    hi = place_of(t, dtype_encode(t, r->value + r->error, DTYPE_TO_TOP));
    return place < lo ? lo - place : place > hi ? place - hi : 0;
}
