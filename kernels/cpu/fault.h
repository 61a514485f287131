/* fault.h - faults on purpose: the proof that the checks see them.
 *
 * FAULT(ID) is false, and costs nothing, unless the build defines HUMCHECK_FAULTS; there it is true
 * while the environment variable HUMCHECK_FAULT holds the fault's name when the program starts. */
#ifndef KERNELS_CPU_FAULT_H
#define KERNELS_CPU_FAULT_H

#include <stdbool.h>

#ifdef HUMCHECK_FAULTS

#include "kernels/cpu/fault_list.h"

#define HUM_FAULT_ID(id) HUM_FAULT_##id,
enum hum_fault { HUM_FAULT_NONE, HUM_FAULTS(HUM_FAULT_ID) HUM_FAULT_COUNT };
#undef HUM_FAULT_ID

extern enum hum_fault hum_fault_now; /* set once, before main */

/* Of 1 to HUM_FAULT_COUNT - 1; NULL beyond. */
const char *hum_fault_name(int index);

#define FAULT(id) (hum_fault_now == HUM_FAULT_##id)

#else

/* A function, so that what only a fault reads does not look unused. */
static inline bool hum_no_fault(void)
{
    return false;
}

#define FAULT(id) hum_no_fault()

#endif
#endif
