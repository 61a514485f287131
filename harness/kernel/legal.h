/* legal.h - which configurations of the family are legal: one table of rules, each with its
 * sentence and source.
 *
 * What is legal is not the provider's to say: a combination that this table allows and a provider
 * refuses is a finding, unless the expected-support table lists it. A rule is either upstream's own
 * (its code refuses or cannot express the combination) or ours (the formats, docs/semantics.md or
 * the axes leave it no meaning); its `source` says which. Combinations that only upstream's tests
 * leave out (f16 activations with e8m0 group scales, e5m2 activations with f16 output) are legal.
 */
#ifndef HARNESS_KERNEL_LEGAL_H
#define HARNESS_KERNEL_LEGAL_H

#include "harness/config/axes.h"

/* Sets of axes are 64-bit masks. */
#define AXIS_BIT(id) (UINT64_C(1) << (id))
_Static_assert(AX_COUNT <= 64, "a set of axes is a 64-bit mask");
#define AXIS_ALL (~UINT64_C(0) >> (64 - AX_COUNT))

struct legal_rule {
    const char *name;   /* "b-bits", "zero-point-width", ... */
    const char *source; /* whose rule it is */
    uint64_t axes;      /* all that `holds` reads; a search may ask as soon as these are known */
    bool (*holds)(const int64_t v[AX_COUNT]);
    const char *sentence; /* what is required, for people; a clause without the final period */
};

/* The rules of GEMM (legal.c). */
extern const struct legal_rule legal_rules[];
extern const int legal_rule_count;

/* All rules: those of GEMM, then those of the other families (legal_ops.c). A rule binds its own
 * families only; an axis that a family does not have is bound by none. */
/* Does a family (and, of GEMM and experts, a gemm type) have this check at all? All are values of
 * axes. */
bool legal_has_check(int64_t family, int64_t gemm_type, int64_t check);

int legal_count(void);
const struct legal_rule *legal_rule(int i);

/* The number of the first rule that reads one of the axes `touched`, reads known axes only, and
 * that v breaks; -1: none. The family has to be known. */
int legal_find(const int64_t v[AX_COUNT], uint64_t known, uint64_t touched);

/* The first rule that v breaks; NULL: legal. v has no AXIS_AUTO in axes of the problem
 * (plan_resolve.h); tiles and other tuning may be auto, then a rule about the size that the
 * provider will choose holds. */
const struct legal_rule *legal_broken(const int64_t v[AX_COUNT]);

#endif
