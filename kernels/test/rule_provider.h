/* rule_provider.h - a provider that computes by rules of docs/semantics-rules.md: the tests' proof
 * that a rule is another formula, and not a wider check.
 *
 * HUMCHECK_RULES names them, with commas; unset, it is the cpu provider. Written from the document;
 * of process_input it has the plain calls alone (a group or a token, rows in their places).
 */
#ifndef KERNELS_TEST_RULE_PROVIDER_H
#define KERNELS_TEST_RULE_PROVIDER_H

#include "kernels/abi/humming.h"

extern const struct hum_provider rule_provider; /* "ruled", version "1" */

/* Is the rule named? */
bool rule_is_on(const char *name);

/* rule_ops.c: over what the cpu provider made of an accepted call. */
void rule_quant_weight(const struct hum_quant_weight_args *args);
bool rule_input_is_plain(const struct hum_process_input_args *args);
void rule_process_input(const struct hum_process_input_args *args);
void rule_sum(const struct hum_moe_fused_mul_sum_args *args);

#endif
