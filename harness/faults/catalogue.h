/* catalogue.h - what a build with HUMCHECK_FAULTS can do wrong on purpose: the proof that the
 * checks see it.
 *
 * One fault at a time, by the environment variable HUMCHECK_FAULT. The identifiers stand in
 * kernels/cpu/fault_list.h (faults of the kernels) and reference/fault_list.h (faults of the
 * oracle, its fills and its comparators); test_faults compares them with these rows. */
#ifndef HARNESS_FAULTS_CATALOGUE_H
#define HARNESS_FAULTS_CATALOGUE_H

#include <stdbool.h>

enum fault_place { FAULT_KERNEL, FAULT_ORACLE };

struct fault {
    const char *name; /* "group-index-minus-1" */
    enum fault_place place;
    const char *class;  /* one word: "scale", "rounding", "tail", "routing", "race", ... */
    const char *origin; /* where it comes from: "numerics 8" (row of the list of faults), a public
                           report ("sglang#25519"), or "ours" */
    const char *cause;  /* the hypothesis of `humcheck explain` that is the truth; NULL: none is */
    const char *tests;  /* of an oracle's fault: the test programs that must fail, separated by
                           spaces; NULL: verdicts of a suite show it */
    bool simulated;     /* a race or a device's fault, imitated by sequential code */
    const char *sentence;
};

/* In order: GEMM and experts, other kernels, the oracle. */
extern const struct fault faults_gemm[], faults_ops[], faults_oracle[];
extern const int faults_gemm_count, faults_ops_count, faults_oracle_count;

int fault_count(void);
const struct fault *fault_at(int index);          /* 0 to fault_count() - 1 */
const struct fault *fault_find(const char *name); /* NULL: there is none */

#endif
