/* contract_cases.h - the check `contract`: what must be refused is refused with a sentence, and
 * nothing is written.
 *
 * A legal call is changed in one way at a time: each tensor's format, rank, sizes, bytes, pointer,
 * presence; each field of the configurations; arguments left out. Every such call contradicts
 * humming.h for every configuration that it is tried with, so that the only right answers are
 * HUM_INVALID and HUM_UNSUPPORTED. Afterwards the legal call still gives its bytes.
 */
#ifndef HARNESS_KERNEL_CONTRACT_CASES_H
#define HARNESS_KERNEL_CONTRACT_CASES_H

#include "harness/kernel/checks.h"

void check_contract(const struct check_in *in, struct finding *f);

#endif
