/* text.h - a text that grows line by line.
 *
 * Private to harness/derive.
 */
#ifndef HARNESS_DERIVE_TEXT_H
#define HARNESS_DERIVE_TEXT_H

#include "harness/core/arena.h"

#include <stdbool.h>

/* Starts as {.arena = a}. What does not fit is remembered until text_end. */
struct text {
    struct arena *arena;
    char *bytes; /* ended by NUL */
    size_t size, room;
    bool lost;
};

void text_part(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void text_line(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* All of it, in the arena; NULL: no memory. */
const char *text_end(struct text *t, size_t *size);

#endif
