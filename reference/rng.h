/* rng.h - random bits as a pure function of (seed, tensor, index).
 *
 * There is no generator state: any element can be made again alone, in any order, on any thread. Source of the mixing function: the
 * finalizer of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
 */
#ifndef REFERENCE_RNG_H
#define REFERENCE_RNG_H

#include <stdint.h>

/* Which input a stream belongs to. The numbers are part of the reproduction contract: never reuse one. */
enum rng_tensor {
    RNG_A = 1,    /* activations: one byte an element, see rng_byte */
    RNG_B = 2,    /* weights: likewise */
    RNG_BS = 3,   /* weight scales */
    RNG_ZERO = 4, /* zero points */
    RNG_INPUT_SCALE = 5,
    RNG_SCALE_2 = 6,
    RNG_BIAS = 7,
    RNG_ROW = 8,      /* one word a row of A */
    RNG_COLUMN = 9,   /* one word a column of C */
    RNG_PAIR = 10,    /* one word a chunk of 8 k: the matching of fill E2 */
    RNG_SAMPLE = 11,  /* which elements are looked at */
    RNG_SPECIAL = 12, /* where fill X puts special values */
    RNG_A_WIDE = 13,  /* activations of fill R: one word an element */
    RNG_TEST = 14,
    RNG_REMAINDER = 15 /* one word a chunk of a column: which pairs of fill E2 leave a remainder */
};

/* 64 well-mixed bits. */
static inline uint64_t rng_word(uint64_t seed, uint32_t tensor, uint64_t index)
{
    uint64_t z = seed ^ ((uint64_t)tensor << 56);

    z += (index + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* One byte an element of a matrix: eight neighbours in a row share a word, little end first. `stride` is
 * rng_stride(columns). */
static inline uint64_t rng_stride(int64_t columns)
{
    return (uint64_t)(columns + 7) / 8;
}
static inline uint8_t rng_byte(uint64_t seed, uint32_t tensor, uint64_t stride, int64_t row,
                               int64_t col)
{
    uint64_t word = rng_word(seed, tensor, (uint64_t)row * stride + (uint64_t)col / 8);

    return (uint8_t)(word >> (col % 8 * 8));
}

/* A whole number in [0, n), n at most 2^32. */
static inline uint32_t rng_below(uint64_t word, uint32_t n)
{
    return (uint32_t)((word >> 32) * n >> 32);
}

#endif
