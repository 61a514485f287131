/* op_activation.h - activation expressions on a row of f32 (docs/semantics-ops.md section 5). */
#ifndef KERNELS_CPU_OP_ACTIVATION_H
#define KERNELS_CPU_OP_ACTIVATION_H

#include "kernels/abi/humming.h"

struct op_activation {
    enum hum_activation function;
    enum hum_activation_form form;
    float alpha, beta, limit;
};

/* HUM_OK, or HUM_INVALID: out of range, swiglu that is unary, parameters that are not finite, a
 * negative limit. */
enum hum_code op_activation_check(const struct op_activation *s, char reason[HUM_REASON_BYTES]);

/* width values from `in`, which has width of them or, in the binary forms, twice as many.
 * Expressions with an elementary function are evaluated in double and rounded once; the others are
 * f32 operations. in == out is allowed in the unary form. */
void op_activate(const struct op_activation *s, const float *in, int64_t width, float *out);

#endif
