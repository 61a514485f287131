#include "reference/pack.h"

size_t pack_words(size_t n, int bits)
{
    size_t b = (size_t)bits;

    return n / 32 * b + (n % 32 * b + 31) / 32; /* n * bits itself could overflow */
}

void pack_row(const uint8_t *codes, size_t n, int bits, uint32_t *words)
{
    const uint64_t mask = (UINT64_C(1) << bits) - 1u;
    uint64_t pending = 0;
    int held = 0; /* bits in `pending`, below 32 between elements */

    for (size_t i = 0; i < n; i++) {
        pending |= (codes[i] & mask) << held;
        held += bits;
        if (held < 32)
            continue;
        *words++ = (uint32_t)pending;
        pending >>= 32;
        held -= 32;
    }
    if (held)
        *words = (uint32_t)pending;
}

void unpack_row(const uint32_t *words, size_t n, int bits, uint8_t *codes)
{
    const uint64_t mask = (UINT64_C(1) << bits) - 1u;
    uint64_t pending = 0;
    int held = 0;

    for (size_t i = 0; i < n; i++) {
        if (held < bits) {
            pending |= (uint64_t)*words++ << held;
            held += 32;
        }
        codes[i] = (uint8_t)(pending & mask);
        pending >>= bits;
        held -= bits;
    }
}
