/* mt19937.h - the Mersenne Twister and the sampling of Python's `random`, bit for bit.
 *
 * lm-eval draws its few-shot examples with random.Random(1234).sample(train, 5); its prompts can be
 * reproduced only by the same draws. Not for cryptography.
 *
 * Sources: M. Matsumoto, T. Nishimura, ACM TOMACS 8(1), 1998, and their mt19937ar.c (init_genrand,
 * init_by_array, genrand_int32); CPython 3.11, Modules/_randommodule.c (random_seed, getrandbits)
 * and Lib/random.py (sample, _randbelow_with_getrandbits).
 */
#ifndef HARNESS_EVAL_MT19937_H
#define HARNESS_EVAL_MT19937_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MT_WORDS = 624, MT_SAMPLE_MAX = 64 };

struct mt19937 {
    uint32_t state[MT_WORDS];
    int next;
};

/* init_by_array(key, n) of mt19937ar.c; n >= 1. */
void mt_init_by_array(struct mt19937 *m, const uint32_t *key, size_t n);
/* random.seed(seed) for an integer >= 0: the key is its 32-bit digits, lowest first. */
void mt_seed(struct mt19937 *m, uint64_t seed);
/* 32 random bits. */
uint32_t mt_next(struct mt19937 *m);
/* random.randrange(n), n >= 1. */
uint32_t mt_below(struct mt19937 *m, uint32_t n);

/* random.sample(range(n), k) into rows[0..k). false, and nothing drawn, unless k <= n and
 * k <= MT_SAMPLE_MAX. */
bool mt_sample(struct mt19937 *m, uint32_t n, size_t k, uint32_t *rows);

#endif
