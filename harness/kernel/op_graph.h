/* op_graph.h - one call of an operation recorded at a provider (humming.h, capture), and replayed
 * with other contents of the same tensors. */
#ifndef HARNESS_KERNEL_OP_GRAPH_H
#define HARNESS_KERNEL_OP_GRAPH_H

#include "harness/kernel/op_slab.h"

struct op_recording {
    struct op_call call;
    struct op_slab slab;
};

/* Records the call. No other may be launched before op_drop, which follows in any case. False: `f`
 * says what happened (skip: it cannot be recorded). */
bool op_capture(struct op_trial *t, const struct op_call *c, struct op_recording *r,
                struct finding *f);

/* Replays it with the contents of `c`, which differs from what was recorded in nothing else; with
 * `keep` over the outputs of the replay before. Requires HUM_OK without damage; false: `f` says
 * what happened. */
bool op_replay(struct op_trial *t, const struct op_call *c, const struct op_options *o, bool keep,
               struct op_recording *r, struct op_out *out, struct finding *f);

void op_drop(struct op_trial *t);

#endif
