/* pool_order.h - records come in as workers finish and go out in the order of their turns.
 *
 * Memory is taken from an arena as records wait and is used again, so it is bounded by how far the
 * pool lets workers run ahead.
 */
#ifndef HARNESS_KERNEL_POOL_ORDER_H
#define HARNESS_KERNEL_POOL_ORDER_H

#include "harness/core/arena.h"
#include "harness/kernel/pool.h"

struct held;

struct order {
    const struct pool_sink *sink;
    struct arena *arena;
    const size_t *turns; /* by case, each number below count once; NULL: the plan's order */
    struct held **held;  /* by turn; NULL: not here, or delivered */
    struct held *spare;
    size_t count, delivered; /* cases of the plan; records that the sink has */
};

/* Bytes of arena for `count` records, all of them waiting. */
size_t order_bytes(size_t count);

/* false: no memory. The turns are the plan's order until o->turns is set. */
bool order_init(struct order *o, const struct pool_sink *sink, size_t count, struct arena *arena);

/* Deliver `r` and all that waited for it, or keep it. r->index is below count and comes once.
 * An error of the sink is returned and ends the delivery. */
MUST_USE enum err_code order_add(struct order *o, const struct record *r, struct errs *errs);

/* No more will come: deliver what still waits, in the order of turns, over the gaps. */
MUST_USE enum err_code order_end(struct order *o, struct errs *errs);

#endif
