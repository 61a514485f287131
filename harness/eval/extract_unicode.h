/* extract_unicode.h - what \d and \w of Python's regular expressions mean beyond ASCII.
 *
 * Sources: \d is general category Nd of Unicode 17.0 (as the module `regex` 2026.5.9 has it, a
 * superset of what `re` has in any CPython); \w is str.isalnum() of CPython 3.11 (Unicode 14.0) and
 * '_'.
 */
#ifndef HARNESS_EVAL_EXTRACT_UNICODE_H
#define HARNESS_EVAL_EXTRACT_UNICODE_H

#include <stdbool.h>
#include <stdint.h>

/* 0 to 9 for a decimal digit of any script (\d), -1 for anything else. */
int unicode_digit(uint32_t c);

bool unicode_is_word(uint32_t c); /* \w */

#endif
