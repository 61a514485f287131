#include "reference/hadamard.h"

#include <math.h>

bool ref_hadamard_valid(int64_t block, int64_t width)
{
    return block >= 1 && block <= REF_HADAMARD_MAX && !(block & (block - 1)) && !(width % block);
}

/* Rounding the double quotient again could differ from one rounding only within 2^-53 of a
 * midpoint of two floats; 1 / sqrt(2) = 0x1.6a09e667f3bcdp-1 is far from one, and the other odd
 * powers are it times powers of two. */
float ref_hadamard_factor(int64_t block)
{
    return (float)(1.0 / sqrt((double)block));
}

static void transform(float *x, int64_t block)
{
    float factor = ref_hadamard_factor(block);

    for (int64_t stride = 1; stride < block; stride *= 2)
        for (int64_t i = 0; i < block; i++) {
            float a = x[i], b;

            if (i & stride)
                continue;
            b = x[i + stride];
            x[i] = a + b;
            x[i + stride] = a - b;
        }
    for (int64_t i = 0; i < block; i++)
        x[i] *= factor;
}

void ref_hadamard(float *x, int64_t rows, int64_t width, int64_t block)
{
    for (int64_t i = 0; i < rows * width; i += block)
        transform(x + i, block);
}
