/* near.h - which known word was probably meant by an unknown one.
 *
 * Distance: optimal string alignment (insertions, deletions, substitutions and swaps of
 * neighbours, one each), so that the usual slip of the finger is 1. Words of 3 or 4 characters may
 * differ by 1, longer ones by 2; a difference in case only is always near.
 */
#ifndef HARNESS_CONFIG_NEAR_H
#define HARNESS_CONFIG_NEAR_H

#include <stddef.h>

struct near {
    const char *text; /* borrowed */
    const char *best; /* the nearest word offered so far, borrowed; NULL: none is near */
    size_t distance;  /* of best, or the first that is too far */
    size_t ties;      /* words at that distance; of more than two, none is likely */
};

struct near near_to(const char *text);

void near_offer(struct near *n, const char *word);
void near_offer_all(struct near *n, const char *const *words); /* ended by NULL; NULL: none */

/* "; did you mean 'weight_scale_type'?", or "" if none is near. */
const char *near_hint(const struct near *n, char *buf, size_t size);

#endif
