/* trial_graph.h - one launch recorded at a provider (humming.h, capture), and replayed with other
 * contents of the same tensors.
 *
 * The slab of the recording (trial.h) stays where it is; a replay overwrites what lies in it, and
 * is looked at afterwards like any launch.
 */
#ifndef HARNESS_KERNEL_TRIAL_GRAPH_H
#define HARNESS_KERNEL_TRIAL_GRAPH_H

#include "harness/kernel/trial_slab.h"

struct trial_recording {
    struct trial_call call;
    struct slab slab;
};

/* Records the launch of `o`. No other launch of the trial may be made before trial_drop, which
 * follows in any case. False: `f` says what happened (skip: it cannot be recorded). */
bool trial_capture(struct trial *t, const struct trial_options *o, struct trial_recording *r,
                   struct finding *f);

/* Replays it with the contents of `o`, whose tensors have the same sizes; with `keep` over the
 * outputs of the replay before. Requires HUM_OK without damage; false: `f` says what happened. */
bool trial_replay(struct trial *t, const struct trial_options *o, bool keep,
                  struct trial_recording *r, struct trial_out *out, struct finding *f);

void trial_drop(struct trial *t);

#endif
