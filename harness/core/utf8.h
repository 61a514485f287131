/* utf8.h - one character of UTF-8 at a time, strictly.
 *
 * Strict means RFC 3629, section 3: no overlong forms, no surrogates, nothing above U+10FFFF.
 */
#ifndef HARNESS_CORE_UTF8_H
#define HARNESS_CORE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* The character that starts at s, of n bytes left. Returns its length in bytes (1 to 4), or 0:
 * not UTF-8, cut off, or n is 0; then *c is not written. */
size_t utf8_next(const char *s, size_t n, uint32_t *c);

/* How many characters n bytes hold; a byte that is not UTF-8 counts as one. */
size_t utf8_count(const char *s, size_t n);

#endif
