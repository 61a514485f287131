/* trial_slab.h - the tensors of one launch in one piece of device memory, and what a launch did to
 * it.
 *
 * Private to trial.c and trial_graph.c.
 */
#ifndef HARNESS_KERNEL_TRIAL_SLAB_H
#define HARNESS_KERNEL_TRIAL_SLAB_H

#include "harness/kernel/trial.h"

struct slab {
    enum trial_part order[PART_COUNT];
    int count;
    size_t at[PART_COUNT], size[PART_COUNT]; /* by part */
    size_t bytes;
    uint8_t *image; /* what lies there before the launch */
    uint8_t *base;  /* on the device */
    const uint8_t *got;
};

/* Lays out and fills the slab, and puts the addresses into the call's tensors. False: the reason is
 * in the device. */
bool slab_make(struct trial *t, const struct trial_options *o, struct trial_call *call,
               struct slab *s);

/* Other contents for a slab that is there, whose tensors have the sizes of this call. With `keep`
 * the outputs stay what the last launch left. */
bool slab_refill(struct trial *t, const struct trial_options *o, struct trial_call *call, bool keep,
                 struct slab *s);

/* After the launch: codes and damage of `out`, whose code is set. False: the reason is in the
 * device. */
bool slab_look(struct trial *t, struct slab *s, struct trial_out *out);

/* trial.c: the routing tensors and the descriptors of a call; the slab gives it its data. False:
 * the reason is in the device. */
bool trial_make_call(struct trial *t, const struct trial_options *o, struct trial_call *call);

/* trial.c: memory of the launch before. */
void trial_forget_launch(struct trial *t);

/* trial.c: tells the hooks; all that a provider's code does counts as STAGE_LAUNCH. */
void trial_enter(const struct trial *t, enum stage stage);

#endif
