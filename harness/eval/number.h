/* number.h - numbers as people write them, found in text and made canonical.
 *
 * Grammar (characters of UTF-8):
 *
 *   number    = sign? currency? sign? decimal percent?           one sign at most
 *   decimal   = (whole ("." digits)? | "." digits) exponent? | whole ("/" digits)+
 *   whole     = digits | 1 to 3 digits (separator 3 digits)+     one separator throughout
 *   sign      = - + and U+2212 U+FE63 U+FF0D U+FF0B
 *   currency  = \$ $ and the euro, pound, yen, rupee signs
 *   separator = , {,} ,\! \, ' U+2019 and the spaces U+00A0 U+2007 U+2009 U+202F
 *   exponent  = (e|E) (+|-)? 1 or 2 digits, not followed by a letter or digit
 *   percent   = % \%                                             50% is 50
 *   digits    = characters of general category Nd, of any script
 *
 * A plain space never separates thousands ("on day 1 234 people"), and 1.234 is a decimal. A
 * fraction of whole numbers is its quotient if that is whole; any other fraction equals nothing but
 * itself.
 */
#ifndef HARNESS_EVAL_NUMBER_H
#define HARNESS_EVAL_NUMBER_H

#include "harness/eval/extract.h"

struct number {
    size_t begin, end; /* bytes of the text, sign, currency and percent included */
    bool negative;
    struct span whole;    /* digits and separators; may be empty */
    struct span fraction; /* digits behind the point; may be empty */
    int exponent;
    size_t slashes;
    struct span denominator; /* behind the last slash */
};

/* The number that begins exactly at byte `at`. `apart`: blanks may stand between sign and digits.
 * false: none begins there, and *n is not written. */
bool number_at(struct span text, size_t at, bool apart, struct number *n);

/* The last number of the text, read from left to right. Before it a sign counts only if it
 * cannot be an operator or a hyphen: not behind a letter, digit or closing bracket ("10-3",
 * "COVID-19"), nor behind blanks that follow a digit or bracket ("20 -18"). */
bool number_last(struct span text, struct number *n);

/* Its canonical text: equal numbers, and only they, have equal texts. "-" unless positive or zero,
 * digits without leading zeros, "." and decimals only as far as needed ("18.00" and "1.8e1" are
 * "18"). A fraction that is not whole is its bytes. NULL: the arena is full. */
const char *number_text(struct span text, const struct number *n, struct arena *a);

#endif
