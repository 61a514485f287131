#include "reference/mxfp4.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

int ref_mxfp4_range(const struct dtype *a)
{
    if (!strcmp(a->name, "e4m3"))
        return 11;
    return !strcmp(a->name, "int8") ? 3 : -1;
}

uint8_t ref_mxfp4_requantize(uint8_t code, int delta)
{
    /* Twice the magnitudes of OCP MX 1.0, and twice the midpoints above each: both whole or
     * halves, so exact. */
    static const double between[] = {0.5, 1.5, 2.5, 3.5, 5.0, 7.0, 10.0};
    static const double doubled[] = {0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0};
    double x = ldexp(doubled[code & 7], -delta);
    uint8_t magnitude = 0;

    while (magnitude < 7 && x >= between[magnitude])
        magnitude++;
    return magnitude ? (uint8_t)(magnitude | (code & 8)) : 0;
}

static int base_of(const uint8_t *scales, int64_t n, int range)
{
    int hi = scales[0], lo = scales[0];

    for (int64_t i = 1; i < n; i++) {
        hi = scales[i] > hi ? scales[i] : hi;
        lo = scales[i] < lo ? scales[i] : lo;
    }
    return hi - (hi - lo < range ? hi - lo : range);
}

static void process_rows(const struct ref_mxfp4 *p, int64_t row, int64_t rows, float *factor)
{
    uint8_t *scales = p->scales + row * p->groups;
    uint8_t *codes = p->codes + row * p->groups * p->group;
    int base = base_of(scales, rows * p->groups, p->range);

    *factor = (float)ldexp(1.0, base - 127);
    for (int64_t g = 0; g < rows * p->groups; g++) {
        int delta = scales[g] < base ? base - scales[g] : 0;

        for (int64_t i = g * p->group; i < (g + 1) * p->group; i++)
            codes[i] = ref_mxfp4_requantize(codes[i], delta);
        scales[g] = (uint8_t)(scales[g] + delta - base);
    }
}

void ref_process_mxfp4(const struct ref_mxfp4 *p)
{
    if (!p->per_row) {
        process_rows(p, 0, p->n, p->factor);
        return;
    }
    for (int64_t row = 0; row < p->n; row++)
        process_rows(p, row, 1, p->factor + row);
}
