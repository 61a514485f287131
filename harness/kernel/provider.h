/* provider.h - finds a provider: built in ("cpu"), a shared library ("./libmine.so"), a worker
 * program ("worker:./mine") or upstream's package ("humming:PATH").
 *
 * "worker:PROGRAM" speaks the protocol of docs/worker-protocol.md; "humming:PATH" is the worker
 * kernels/humming/worker.py (looked for in the folder `humming` beside the program, then where the
 * program was built) with PATH, which holds the package `humming`, or is its version
 * ("humming:0.1.12"; a folder of that name comes first): then it lies in the cache (cache.h), in
 * wheels/humming-kernels-VERSION, where ci/wheels --cache puts it. Otherwise a name with a '/' or
 * ending in ".so" is a file (without a '/': of the current folder); everything else is the name of
 * a built-in one.
 */
#ifndef HARNESS_KERNEL_PROVIDER_H
#define HARNESS_KERNEL_PROVIDER_H

#include "harness/core/err.h"
#include "kernels/abi/humming.h"

#include <stdbool.h>

extern const struct hum_provider *const builtin_providers[];
extern const int builtin_provider_count;

/* NULL: `errs` has a sentence (ERR_INFRA): the name is unknown (and which are known), the file
 * cannot be loaded, the symbol is missing, the ABI version differs, a required function is NULL. A
 * library stays loaded for the life of the process. */
const struct hum_provider *provider_find(const char *name, struct errs *errs);

/* "worker:PROGRAM" or "humming:PATH": its kernels run in processes of their own. */
bool provider_is_worker(const char *name);

/* The rules (semantics.h) of "humming:PATH" where none are named: the file semantics.yaml beside
 * the worker. NULL: there is none, or another kind of provider, which has the contract alone. */
enum { PROVIDER_PATH = 4096 };
const char *provider_semantics(const char *name, char path[PROVIDER_PATH]);

#endif
