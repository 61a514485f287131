/* activation.h - activation expressions: the true value with an error bound, and how far a kernel
 * is from it.
 *
 * The oracle of docs/semantics-ops.md section 5. A kernel's result is f32 and is checked within
 * some ulp of the correctly rounded result, so the oracle gives the real number that the
 * expression has at f32 arguments (alpha, beta, limit are f32 numbers too; 0.044715 and sqrt(2 /
 * pi) are the real constants), known to far below half an ulp.
 *
 *   silu       a / (1 + e^-a)
 *   gelu       a/2 erfc(-a / sqrt 2)
 *   gelu_tanh  a / (1 + e^-2z), z = sqrt(2/pi) (a + 0.044715 a^3)
 *   swiglu     g / (1 + e^(-alpha g)) (u + beta), g = min(a, limit), u = clamp(b, -limit, limit)
 *
 * These equal a Phi(a) and a/2 (1 + tanh z), but do not cancel for a < 0.
 *
 * Accuracy: computed in long double with a 64-bit significand at least. The library's expl and
 * erfcl are within 5 of its ulp (source: GNU C library manual, "Known Maximum Errors in Math
 * Functions", x86_64, ldouble: expl 1 or 2, erfcl 5); an argument x > 0 of e^x that is wrong by d
 * relatively makes the result wrong by x d, one of erfc(-a / sqrt 2) by at most (a^2 + 2) d for a
 * < 0 and 2 d above. So the relative error is below 2^-51 + 2^-60 (x or a^2 + 2), the rounding to
 * double included; where the value is not below f32's range, x < 110 and a^2 < 220: less than
 * 2^-50, and half an ulp of f32 is 2^-25.
 *
 * none and relu2 are exact operations, RN in f32 each: relu2 = RN(max(a, 0)^2), times b RN again;
 * their error is 0. */
#ifndef REFERENCE_ACTIVATION_H
#define REFERENCE_ACTIVATION_H

#include "reference/dtype.h"

enum ref_activation_kind {
    REF_ACTIVATION_NONE,
    REF_ACTIVATION_SILU,
    REF_ACTIVATION_GELU,
    REF_ACTIVATION_GELU_TANH,
    REF_ACTIVATION_RELU2,
    REF_ACTIVATION_SWIGLU
};

enum ref_activation_form {
    REF_ACTIVATION_UNARY,
    REF_ACTIVATION_SPLIT,      /* columns [0, width / 2) are a, the others b */
    REF_ACTIVATION_INTERLEAVED /* even columns are a, odd ones b */
};

struct ref_activation {
    enum ref_activation_kind kind;
    enum ref_activation_form form; /* swiglu: not unary */
    float alpha, beta, limit;      /* of swiglu; limit 0: none, else positive */
};

/* The true value lies within error of value. error 0: value is the one right f32 result (a NaN:
 * any NaN). error infinite: nothing is required (an infinite argument of an elementary function;
 * relu2 or a clamp of NaN). */
struct ref_near {
    double value, error;
};

/* NULL, or what is wrong for rows of width_in columns. */
const char *ref_activation_valid(const struct ref_activation *f, int64_t width_in);

static inline int64_t ref_activation_width(const struct ref_activation *f, int64_t width_in)
{
    return f->form == REF_ACTIVATION_UNARY ? width_in : width_in / 2;
}

/* True for none and relu2: every error is 0 but where nothing is required. */
bool ref_activation_exact(const struct ref_activation *f);

/* One result; b is ignored by unary forms. */
struct ref_near ref_activation_at(const struct ref_activation *f, float a, float b);

/* One row: width_in exact input values to ref_activation_width results. f is valid. */
void ref_activation_row(const struct ref_activation *f, const float *in, int64_t width_in,
                        struct ref_near *out);

/* May a kernel whose f32 result is within `ulp` (>= 0) of the correctly rounded one, then rounded
 * RN to t (f32, f16, bf16), write `got`? The correctly rounded f32 result is one of those between
 * value - error and value + error. The sign of a zero counts only where error is 0. */
bool ref_near_holds(const struct ref_near *r, const struct dtype *t, int64_t ulp, uint32_t got);

/* How many steps between neighbouring numbers of t lie between `got` and the correctly rounded
 * result; subnormals and infinity take part. 0 where nothing is required; INT64_MAX for NaN
 * against a number. */
int64_t ref_near_ulps(const struct ref_near *r, const struct dtype *t, uint32_t got);

#endif
