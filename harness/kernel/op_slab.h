/* op_slab.h - the tensors of one call of an operation in one piece of device memory, and what the
 * call did to it.
 *
 * Private to op_trial.c and op_graph.c.
 */
#ifndef HARNESS_KERNEL_OP_SLAB_H
#define HARNESS_KERNEL_OP_SLAB_H

#include "harness/kernel/op_trial.h"

struct op_slab {
    int order[OP_PARTS]; /* numbers of parts that have bytes */
    int count;
    size_t at[OP_PARTS], size[OP_PARTS]; /* by number of the part */
    size_t bytes;
    uint8_t *image; /* what lies there before the launch */
    uint8_t *base;  /* on the device */
    const uint8_t *got;
};

/* Lays out and fills the slab, and puts the addresses into the call's arguments. False: the reason
 * is in the device. */
bool op_slab_make(struct op_trial *t, struct op_call *c, const struct op_options *o,
                  struct op_slab *s);

/* Other contents for a slab that is there, whose tensors have the sizes of this call's. With `keep`
 * the outputs stay what the last call left. */
bool op_slab_refill(struct op_trial *t, const struct op_call *c, const struct op_options *o,
                    bool keep, struct op_slab *s);

/* After the call: what it left, and damage; out->code is set. False: the reason is in the
 * device. */
bool op_slab_look(struct op_trial *t, const struct op_call *c, struct op_slab *s,
                  struct op_out *out);

/* op_trial.c: memory of the call before. */
void op_forget_launch(struct op_trial *t);

#endif
