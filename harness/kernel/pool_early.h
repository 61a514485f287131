/* pool_early.h - workers of a pool that are started before it.
 *
 * A worker of another language takes seconds to load its libraries, and so does the process that
 * is asked which provider there is. Started before that question, they load at the same time.
 */
#ifndef HARNESS_KERNEL_POOL_EARLY_H
#define HARNESS_KERNEL_POOL_EARLY_H

#include "harness/core/proc.h"

#include <stddef.h>

struct pool_early {
    struct proc *procs; /* the caller's, as many as were asked for */
    size_t count;       /* how many of them are not taken yet */
};

/* Start up to `count` workers with the command line that pool_options will have. One that cannot
 * be started is left out without a word: the pool tries again, and says why. */
void pool_early_start(struct pool_early *e, char *const *argv, size_t count);

/* Takes one, which is the caller's then. false: none is left. */
bool pool_early_take(struct pool_early *e, struct proc *proc);

/* Kills those that nobody took. */
void pool_early_end(struct pool_early *e);

#endif
