/* op_contract.h - what an operation must refuse: a legal call changed in one way at a time.
 *
 * Each tensor's format, rank, sizes, bytes, pointer, presence; each field that the family's table
 * names; no arguments at all. Every such call contradicts humming_ops.h, so that the only right
 * answers are HUM_INVALID and HUM_UNSUPPORTED, with a sentence and nothing written. */
#ifndef HARNESS_KERNEL_OP_CONTRACT_H
#define HARNESS_KERNEL_OP_CONTRACT_H

#include "harness/kernel/op_trial.h"

/* False: `f` says what was not refused. */
bool op_contract_holds(struct op_trial *t, const struct op_call *call, struct finding *f);

#endif
