/* trial_slab.h - the tensors of one launch in one piece of device memory, and what a launch did to
 * it.
 *
 * Private to trial.c.
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

/* After the launch: codes and damage of `out`, whose code is set. False: the reason is in the
 * device. */
bool slab_look(struct trial *t, struct slab *s, struct trial_out *out);

#endif
