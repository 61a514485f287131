#include "kernels/cpu/op_activation.h"

#include "kernels/cpu/fault.h"
#include "kernels/cpu/op_check.h"

#include <math.h>

enum hum_code op_activation_check(const struct op_activation *s, char reason[HUM_REASON_BYTES])
{
    const bool swiglu = s->function == HUM_ACT_SWIGLU;
    const struct op_rule rules[] = {
        {s->function < HUM_ACT_NONE || s->function > HUM_ACT_SWIGLU, "activation is out of range"},
        {s->form < HUM_ACT_UNARY || s->form > HUM_ACT_BINARY_INTERLEAVED,
         "the form of the activation is out of range"},
        {swiglu && s->form == HUM_ACT_UNARY, "swiglu needs a binary form"},
        {swiglu && !(isfinite(s->alpha) && isfinite(s->beta) && isfinite(s->limit)),
         "alpha, beta and limit of swiglu must be finite"},
        {swiglu && s->limit < 0.0f, "limit of swiglu must not be negative"},
    };

    return op_check_rules(rules, sizeof rules / sizeof rules[0], reason);
}

/* a sigmoid(x) = a / (1 + exp(-x)): for x to either side the quotient loses nothing. */
static double times_sigmoid(double a, double x)
{
    return a / (1.0 + exp(-x));
}

/* a/2 (1 + tanh(u)) = a sigmoid(2u), without the cancellation of 1 + tanh(u) for negative u. */
static double gelu_tanh(double a)
{
    const double sqrt_2_over_pi = 0.79788456080286535588;

    return times_sigmoid(a, 2.0 * sqrt_2_over_pi * (a + 0.044715 * a * a * a));
}

/* a Phi(a) = a/2 erfc(-a / sqrt(2)) */
static double gelu(double a)
{
    return 0.5 * a * erfc(-a * 0.70710678118654752440);
}

static double swiglu(const struct op_activation *s, float a, float b)
{
    const float l = s->limit;
    float g = a, u = b;

    if (FAULT(INPUT_LIMIT_AFTER_ACTIVATION) && l > 0.0f)
        return fmin(times_sigmoid((double)a, (double)s->alpha * (double)a), (double)l) *
               fmax(fmin((double)b + (double)s->beta, (double)l), -(double)l);
    if (l > 0.0f) {
        g = a > l ? l : a;
        u = b > l ? l : b;
        u = u < -l ? -l : u;
    }
    return times_sigmoid((double)g, (double)s->alpha * (double)g) * ((double)u + (double)s->beta);
}

static float activate(const struct op_activation *s, float a, float b)
{
    const bool unary = s->form == HUM_ACT_UNARY;
    const double other = unary ? 1.0 : (double)b;
    const float positive = a < 0.0f ? 0.0f : a;

    switch (s->function) {
    case HUM_ACT_NONE:
        return unary ? a : a * b;
    case HUM_ACT_RELU2:
        return unary ? positive * positive : positive * positive * b;
    case HUM_ACT_SILU:
        return (float)(times_sigmoid((double)a, (double)a) * other);
    case HUM_ACT_GELU:
        return (float)((FAULT(INPUT_GELU_BY_TANH) ? gelu_tanh((double)a) : gelu((double)a)) *
                       other);
    case HUM_ACT_GELU_TANH:
        return (float)(gelu_tanh((double)a) * other);
    case HUM_ACT_SWIGLU:
        return (float)swiglu(s, a, b);
    }
    return a;
}

void op_activate(const struct op_activation *s, const float *in, int64_t width, float *out)
{
    const int64_t step = s->form == HUM_ACT_BINARY_INTERLEAVED ? 2 : 1;
    const int64_t other = s->form == HUM_ACT_BINARY_INTERLEAVED ? 1
                          : s->form == HUM_ACT_BINARY_SPLIT     ? width
                                                                : 0;

    const int64_t gate = FAULT(INPUT_HALVES_SWAPPED) ? other : 0;

    for (int64_t i = 0; i < width; i++)
        out[i] = activate(s, in[step * i + gate], in[step * i + other - gate]);
}
