/* supervise.h - runs one command and sees to it that nothing which it started outlives us.
 *
 * A process of its own between humcheck and a model server (humcheck starts itself as `humcheck
 * supervise`). It adopts orphans (PR_SET_CHILD_SUBREAPER), so every descendant of the command,
 * whatever group or session it moved to, can be found and reaped. Standard input is the order to go
 * on: at its end, also when humcheck was killed, the command's group gets SIGTERM, and after the
 * grace time every descendant SIGKILL. The same happens when the command ends by itself: a model
 * server's workers hold GPU memory.
 *
 * Standard output gets one line: how the command ended, or why it could not be started.
 */
#ifndef HARNESS_EVAL_SUPERVISE_H
#define HARNESS_EVAL_SUPERVISE_H

#include "harness/core/err.h"

#include <stddef.h>

/* words = LOG SECONDS COMMAND ARGUMENT...: output of the command is added to the file LOG, SECONDS
 * is the grace time, COMMAND is searched in PATH if it has no slash. The environment is handed on.
 * Returns when no descendant is left. ERR_USAGE, ERR_IO, ERR_INFRA. */
MUST_USE enum err_code supervise(const char *const *words, size_t count, struct errs *errs);

enum { SUPERVISE_WORDS = 3 }; /* the fewest */

#endif
