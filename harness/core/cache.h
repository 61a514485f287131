/* cache.h - the folder of what can be had again: ~/.cache/humcheck.
 *
 * $XDG_CACHE_HOME/humcheck, where that variable holds an absolute path (XDG base directory
 * specification).
 */
#ifndef HARNESS_CORE_CACHE_H
#define HARNESS_CORE_CACHE_H

#include <stdbool.h>
#include <stddef.h>

/* "/home/me/.cache/humcheck/NAME" in buf; nothing is made. False: neither XDG_CACHE_HOME nor HOME
 * is an absolute path, or it does not fit. */
bool cache_path(const char *name, char *buf, size_t size);

#endif
