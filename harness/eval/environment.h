/* environment.h - which variables a model server gets, and where programs are found.
 *
 * A server sees what it needs of ours (a table of names and families), and what its configuration
 * says; nothing else of the machine it happens to run on can change a score.
 */
#ifndef HARNESS_EVAL_ENVIRONMENT_H
#define HARNESS_EVAL_ENVIRONMENT_H

#include "harness/core/arena.h"
#include "harness/eval/config.h"

#include <stdbool.h>
#include <stddef.h>

/* The environment for a server of this configuration, ended by NULL, in the arena. NULL: no
 * memory. A variable of the configuration replaces ours. */
char *const *environment_make(const struct eval_config *c, struct arena *arena);

/* The file that `program` names: itself if it has a slash, else the first executable file of that
 * name in the folders of PATH. false: there is none, or its path does not fit. */
bool environment_search(const char *program, char *path, size_t size);

/* The value of a variable of ours, for keys: they must not be arguments. NULL: not set, or
 * empty. */
const char *environment_value(const char *name);

#endif
