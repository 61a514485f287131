/* experts_contract.h - what buffer_metas must refuse, and what it says for several dispatchers.
 */
#ifndef HARNESS_KERNEL_EXPERTS_CONTRACT_H
#define HARNESS_KERNEL_EXPERTS_CONTRACT_H

#include "harness/kernel/experts_run.h"

/* Layers and sizes that do not fit, one change at a time; f->compared counts calls. */
void experts_contract(const struct experts_trial *t, struct finding *f);

#endif
