/* input_values.h - the contents of inputs of process_input (input_case.h says what kinds of units
 * there are).
 */
#ifndef HARNESS_KERNEL_INPUT_VALUES_H
#define HARNESS_KERNEL_INPUT_VALUES_H

#include "harness/kernel/input_case.h"

/* Fills c->inputs and c->x, which are allocated. */
void input_values_fill(struct input_case *c);

#endif
