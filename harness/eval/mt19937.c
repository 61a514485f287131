#include "harness/eval/mt19937.h"

enum { N = MT_WORDS, M = 397 };

static void init(struct mt19937 *m, uint32_t seed)
{
    m->state[0] = seed;
    for (uint32_t i = 1; i < N; i++) {
        uint32_t before = m->state[i - 1];

        m->state[i] = 1812433253u * (before ^ before >> 30) + i;
    }
    m->next = N;
}

/* One step of either pass of init_by_array: word i from the one before it. */
static uint32_t stir(const uint32_t *s, size_t i, uint32_t factor)
{
    return s[i] ^ ((s[i - 1] ^ s[i - 1] >> 30) * factor);
}

static size_t advance(uint32_t *s, size_t i)
{
    if (i + 1 < N)
        return i + 1;
    s[0] = s[N - 1];
    return 1;
}

void mt_init_by_array(struct mt19937 *m, const uint32_t *key, size_t n)
{
    size_t i = 1;

    init(m, 19650218u);
    for (size_t step = 0; step < (n > N ? n : N); step++) {
        m->state[i] = stir(m->state, i, 1664525u) + key[step % n] + (uint32_t)(step % n);
        i = advance(m->state, i);
    }
    for (int step = 1; step < N; step++) {
        m->state[i] = stir(m->state, i, 1566083941u) - (uint32_t)i;
        i = advance(m->state, i);
    }
    m->state[0] = 0x80000000u;
}

void mt_seed(struct mt19937 *m, uint64_t seed)
{
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};

    mt_init_by_array(m, key, key[1] ? 2 : 1);
}

static void refill(struct mt19937 *m)
{
    uint32_t *s = m->state;

    for (int i = 0; i < N; i++) {
        uint32_t y = (s[i] & 0x80000000u) | (s[(i + 1) % N] & 0x7fffffffu);

        s[i] = s[(i + M) % N] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
    }
    m->next = 0;
}

uint32_t mt_next(struct mt19937 *m)
{
    uint32_t y;

    if (m->next == N)
        refill(m);
    y = m->state[m->next++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

/* getrandbits(bits of n) until it is below n. */
uint32_t mt_below(struct mt19937 *m, uint32_t n)
{
    int bits = 0;
    uint32_t r;

    while (bits < 32 && n >> bits)
        bits++;
    do
        r = mt_next(m) >> (32 - bits);
    while (r >= n);
    return r;
}

static bool chosen(const uint32_t *rows, size_t count, uint32_t row)
{
    for (size_t i = 0; i < count; i++)
        if (rows[i] == row)
            return true;
    return false;
}

/* Sizes up to which Python copies the population instead of remembering what it chose:
 * 21, and for k > 5 another 4^ceil(log4(3 k)). */
enum { SETSIZE = 21, POOL_MAX = SETSIZE + 256 };
_Static_assert(MT_SAMPLE_MAX * 3 <= 256, "4^ceil(log4(3 k)) is at most 256");

static uint32_t pool_limit(size_t k)
{
    uint32_t power = 1;

    if (k <= 5)
        return SETSIZE;
    while (power < 3 * k)
        power *= 4;
    return SETSIZE + power;
}

static void sample_pool(struct mt19937 *m, uint32_t n, size_t k, uint32_t *rows)
{
    uint32_t pool[POOL_MAX];

    for (uint32_t i = 0; i < n; i++)
        pool[i] = i;
    for (size_t i = 0; i < k; i++) {
        uint32_t left = n - (uint32_t)i;
        uint32_t j = mt_below(m, left);

        rows[i] = pool[j];
        pool[j] = pool[left - 1];
    }
}

bool mt_sample(struct mt19937 *m, uint32_t n, size_t k, uint32_t *rows)
{
    if (k > n || k > MT_SAMPLE_MAX)
        return false;
    if (n <= pool_limit(k)) {
        sample_pool(m, n, k, rows);
        return true;
    }
    for (size_t i = 0; i < k; i++) {
        do
            rows[i] = mt_below(m, n);
        while (chosen(rows, i, rows[i]));
    }
    return true;
}
