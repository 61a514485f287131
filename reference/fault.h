/* fault.h - faults of the harness on purpose: the proof that its tests and trust see them.
 *
 * REF_FAULT(ID) is false, and costs nothing, unless the build defines HUMCHECK_FAULTS; there it is
 * true while the environment variable HUMCHECK_FAULT holds the fault's name when the program
 * starts. */
#ifndef REFERENCE_FAULT_H
#define REFERENCE_FAULT_H

#include <stdbool.h>

#ifdef HUMCHECK_FAULTS

#include "reference/fault_list.h"

#define REF_FAULT_ID(id) REF_FAULT_##id,
enum ref_fault { REF_FAULT_NONE, REF_FAULTS(REF_FAULT_ID) REF_FAULT_COUNT };
#undef REF_FAULT_ID

extern enum ref_fault ref_fault_now; /* set once, before main */

/* Of 1 to REF_FAULT_COUNT - 1; NULL beyond. */
const char *ref_fault_name(int index);

#define REF_FAULT(id) (ref_fault_now == REF_FAULT_##id)

#else

/* A function, so that what only a fault reads does not look unused. */
static inline bool ref_no_fault(void)
{
    return false;
}

#define REF_FAULT(id) ref_no_fault()

#endif
#endif
