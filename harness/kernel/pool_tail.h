/* pool_tail.h - the last words of a worker: the end of what a case wrote on standard error.
 *
 * A worker writes WIRE_CASE_MARK when a case begins, so that words of earlier cases (whose number
 * depends on how problems were dealt out) never get into a reason.
 */
#ifndef HARNESS_KERNEL_POOL_TAIL_H
#define HARNESS_KERNEL_POOL_TAIL_H

#include <stddef.h>

enum { TAIL_BYTES = 4096, TAIL_WORDS = 240 };

/* Starts as {0}. */
struct tail {
    size_t used;
    char bytes[TAIL_BYTES];
};

/* Keep the last of `n` bytes of any content. n is at most TAIL_BYTES. */
void tail_keep(struct tail *t, const char *text, size_t n);

/* The end of it as one line: printable ASCII, everything else one space; "" for none. */
const char *tail_words(const struct tail *t, char buf[TAIL_WORDS]);

#endif
