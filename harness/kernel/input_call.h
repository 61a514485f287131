/* input_call.h - a process_input case as a call of the provider: arguments, tensors, contract. */
#ifndef HARNESS_KERNEL_INPUT_CALL_H
#define HARNESS_KERNEL_INPUT_CALL_H

#include "harness/kernel/input_case.h"

struct input_own {
    struct input_case c;
    struct arena *arena;
    bool staged;   /* calls[0] is the activation alone */
    float *values; /* staged: rows x k, from calls[0] */
    struct input_want *want;
};

/* The activation alone: f32 to f32, rows in order. */
void input_call_activation(const struct input_own *own, struct op_call *call);
/* The call of the case. False: memory is out. */
bool input_call_case(const struct input_own *own, const int64_t v[AX_COUNT], struct op_call *call);

#endif
