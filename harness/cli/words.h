/* words.h - a line as words, the way a POSIX shell splits it: quotes and backslashes, no more. */
#ifndef HARNESS_CLI_WORDS_H
#define HARNESS_CLI_WORDS_H

#include "harness/core/arena.h"

/* The words, ended by NULL, in `arena`. NULL: a quote does not end, or memory is out. */
char **words_split(const char *line, struct arena *arena, int *count);

#endif
