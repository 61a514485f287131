/* risk_pairs.h - which pairs of axis values each problem has. Private to risk.c.
 */
#ifndef HARNESS_KERNEL_RISK_PAIRS_H
#define HARNESS_KERNEL_RISK_PAIRS_H

#include "harness/kernel/plan.h"

/* A problem's pairs that were not seen when last looked: indices of bits. */
struct risk_list {
    uint32_t *pairs;
    size_t count;
};

struct risk_pairs {
    uint64_t *seen;          /* a bit a pair */
    struct risk_list *lists; /* by problem */
};

/* false: no memory. */
bool risk_pairs_init(struct risk_pairs *p, const struct plan *plan, struct arena *arena);

/* How many pairs the problem would add. What was seen leaves its list. */
size_t risk_pairs_gain(struct risk_pairs *p, size_t problem);

/* All its pairs are seen from now on. */
void risk_pairs_take(struct risk_pairs *p, size_t problem);

#endif
