/* op_contract.h - what an operation must refuse: a legal call changed in one way at a time.
 *
 * Each tensor's format, rank, sizes, bytes, pointer, presence; each field that the family's table
 * names; no arguments at all. Every such call contradicts humming_ops.h, so that the only right
 * answers are HUM_INVALID and HUM_UNSUPPORTED, with a sentence and nothing written. */
#ifndef HARNESS_KERNEL_OP_CONTRACT_H
#define HARNESS_KERNEL_OP_CONTRACT_H

#include "harness/kernel/op_trial.h"

/* What can be wrong with one tensor. */
enum fault {
    FAULT_DTYPE,
    FAULT_RANK,
    FAULT_SIZE_0,
    FAULT_SIZE_1,
    FAULT_ROWS,
    FAULT_BYTES,
    FAULT_NO_DATA,
    FAULT_MISALIGNED,
    FAULT_MISSING,
    FAULT_EXTRA,
    FAULTS
};

const char *fault_name(enum fault fault);

/* Gives the tensor t the fault; with FAULT_EXTRA it becomes `other`. FAULT_SIZE_1 needs rank 2. */
void fault_make(struct hum_tensor *t, enum fault fault, const struct hum_tensor *other);

/* False: `f` says what was not refused. */
bool op_contract_holds(struct op_trial *t, const struct op_call *call, struct finding *f);

#endif
