/* extract_parts.h - the rules behind extractors[], and what they share; included only by them.
 */
#ifndef HARNESS_EVAL_EXTRACT_PARTS_H
#define HARNESS_EVAL_EXTRACT_PARTS_H

#include "harness/eval/extract.h"

#include <stdint.h>

/* `struct extractor`'s run, one a rule. */
bool extract_strict_match(struct span text, struct span gold, struct arena *a, struct answer *out);
bool extract_flexible(struct span text, struct span gold, struct arena *a, struct answer *out);
bool extract_openai(struct span text, struct span gold, struct arena *a, struct answer *out);
bool extract_last_int(struct span text, struct span gold, struct arena *a, struct answer *out);
bool extract_last_number(struct span text, struct span gold, struct arena *a, struct answer *out);
bool extract_last_explicit(struct span text, struct span gold, struct arena *a, struct answer *out);
bool extract_robust(struct span text, struct span gold, struct arena *a, struct answer *out);

/* The bytes [begin, end) of s. */
static inline struct span span_cut(struct span s, size_t begin, size_t end)
{
    return (struct span){s.at + begin, end - begin};
}

/* Does `word` stand at s.at[i]? */
bool span_has(struct span s, size_t i, const char *word);

/* The character at s.at[i] into *c, and its length in bytes: at least 1. A byte that is not
 * UTF-8 is one character, U+FFFD. i < s.size. */
size_t span_char(struct span s, size_t i, uint32_t *c);

/* A copy with a NUL behind it, without the bytes that `drop` holds. NULL: the arena is full. */
char *span_copy(struct span s, const char *drop, struct arena *a, size_t *size);

#endif
