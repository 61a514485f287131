/* fault_list.h - the faults that a build with HUMCHECK_FAULTS can switch on in this provider.
 *
 * HUM_FAULTS(X) applies X to the identifier of each. Its name is the identifier in small letters
 * with '-' for '_'; what it is and where it comes from stands in the catalogue (harness/faults). */
#ifndef KERNELS_CPU_FAULT_LIST_H
#define KERNELS_CPU_FAULT_LIST_H

/* clang-format off */
#define HUM_FAULTS_GEMM(X) \
    X(GROUP_INDEX_MINUS_1)

#define HUM_FAULTS_OPS(X) \
    X(PACK_SIGNED_WRAPS)

#define HUM_FAULTS(X) HUM_FAULTS_GEMM(X) HUM_FAULTS_OPS(X)
/* clang-format on */

#endif
