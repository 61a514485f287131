/* family_inputs.h - the families of activations: process_input, hadamard, moe_sum. */
#ifndef HARNESS_KERNEL_FAMILY_INPUTS_H
#define HARNESS_KERNEL_FAMILY_INPUTS_H

#include "harness/kernel/family.h"

void family_process_input(struct runner *r, const struct plan *plan, size_t problem, size_t begin,
                          size_t end, const struct runner_hooks *hooks);
void family_hadamard(struct runner *r, const struct plan *plan, size_t problem, size_t begin,
                     size_t end, const struct runner_hooks *hooks);
void family_moe_sum(struct runner *r, const struct plan *plan, size_t problem, size_t begin,
                    size_t end, const struct runner_hooks *hooks);

#endif
