/* sample.h - which columns (or rows) of a big output to look at: few, but every structured fault is
 * met.
 *
 * A sample holds
 *   - the first and the last index;
 *   - tile corners: the last of the first tile, the first of the second, the first and last of the
 *     last whole tile, the first of the last partial one (its last is the last of all);
 *   - both sides of group borders: of all if there are at most 8, else of the first, the last, and
 *     6 others;
 *   - one index of every residue modulo 64, so that a fault that repeats with a period that divides
 *     64 (lane, fragment, warp, small tile) is hit for certain;
 *   - random ones up to the number asked for. A fault in a share f of all indices is missed by c
 *     random ones with probability (1 - f)^c.
 * It is a function of the description alone.
 */
#ifndef REFERENCE_SAMPLE_H
#define REFERENCE_SAMPLE_H

#include <stdint.h>

/* Each has random numbers of its own. */
enum ref_sample_axis { REF_SAMPLE_ROWS, REF_SAMPLE_COLUMNS };

enum {
    REF_SAMPLE_PERIOD = 64,
    REF_SAMPLE_MIN = 96 /* room for everything that is not random */
};

struct ref_sample {
    enum ref_sample_axis axis;
    int64_t size;  /* indices 0 to size - 1, at least 1, below 2^32 */
    int64_t tile;  /* of the kernel; 0: not known */
    int64_t group; /* of scales along this axis; 0: none */
    uint64_t seed;
};

/* Writes a sample to out, ascending, without duplicates, and returns its length: all indices if
 * there are at most max(count, REF_SAMPLE_MIN), else between count and max(count, REF_SAMPLE_MIN).
 * out has room for max(count, REF_SAMPLE_MIN). */
int64_t ref_sample_make(const struct ref_sample *s, int64_t count, int64_t *out);

#endif
