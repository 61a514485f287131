/* rng.h - random bits as a pure function of (seed, tensor, index).
 *
 * There is no generator state: any element can be made again alone, in any order, on any thread.
 * Source of the mixing function: the finalizer of SplitMix64 (Steele, Lea, Flood: Fast splittable
 * pseudorandom number generators, OOPSLA 2014).
 */
#ifndef REFERENCE_RNG_H
#define REFERENCE_RNG_H

#include <stdint.h>

/* Which input a stream belongs to. The numbers are part of the reproduction contract: never reuse
 * one. */
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
    RNG_REMAINDER = 15, /* one word a chunk of a column: which pairs of fill E2 leave a remainder */
    RNG_ROUTING = 16,   /* which experts a token goes to: 64 words a token */
    RNG_QUANT_VALUE = 32,    /* quant_weight: one word an element */
    RNG_QUANT_GROUP = 33,    /* one word a group: its magnitude and what is in it */
    RNG_QUANT_SPECIAL = 34,  /* where special values are */
    RNG_CODES = 35,          /* dequant_weight, pack: one word a code */
    RNG_MXFP4_SCALE = 36,    /* process_mxfp4: one word a group */
    RNG_MXFP4_CODE = 37,     /* one word 16 codes */
    RNG_INPUT_STATIC = 48,   /* process_input: the scale that is given */
    RNG_INPUT_UNIT = 49,     /* one word a unit of columns that share a scale */
    RNG_INPUT_VALUE = 50,    /* one word an element of the (left) half */
    RNG_INPUT_OTHER = 51,    /* the same, of the factors of binary activations */
    RNG_INPUT_PLACE = 52,    /* places of rows */
    RNG_INPUT_SPECIAL = 53,  /* where special values are */
    RNG_HADAMARD = 54,       /* one word an element */
    RNG_SUM_INPUT = 55,      /* moe_sum: one word an element */
    RNG_SUM_WEIGHT = 56,     /* one word a slot */
    RNG_EXPERTS_INPUT = 64,  /* the experts pipeline: one word an element of the tokens */
    RNG_EXPERTS_WEIGHT = 65, /* one word an element, of the layers in turn */
    RNG_EXPERTS_SCALE = 66,  /* likewise, down to RNG_EXPERTS_BIAS */
    RNG_EXPERTS_SCALE_2 = 67,
    RNG_EXPERTS_ZERO = 68,
    RNG_EXPERTS_BIAS = 69,
    RNG_EXPERTS_TOPK_WEIGHT = 70 /* one word a slot */
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

/* One byte an element of a matrix: eight neighbours in a row share a word, little end first.
 * `stride` is rng_stride(columns). */
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
