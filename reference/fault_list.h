/* fault_list.h - the faults of the oracle, its fills and its comparators that a build with
 * HUMCHECK_FAULTS can switch on.
 *
 * REF_FAULTS(X) applies X to the identifier of each. Its name is the identifier in small letters
 * with '-' for '_'; what it is and where it comes from stands in the catalogue (harness/faults). */
#ifndef REFERENCE_FAULT_LIST_H
#define REFERENCE_FAULT_LIST_H

/* clang-format off */
#define REF_FAULTS(X) \
    X(COMPARE_NAN_PASSES)
/* clang-format on */

#endif
