#include "harness/kernel/output_hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

uint64_t output_hash_word(uint64_t h, uint64_t word)
{
    h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 32;
}

/* memcpy: the machines that there are have the lowest byte first. */
uint64_t output_hash_bytes(uint64_t h, const void *bytes, size_t count)
{
    const uint8_t *from = bytes;
    uint64_t word;

    for (; count >= sizeof word; count -= sizeof word, from += sizeof word) {
        memcpy(&word, from, sizeof word);
        h = output_hash_word(h, word);
    }
    if (!count)
        return h;
    word = 0;
    memcpy(&word, from, count);
    return output_hash_word(h, word);
}

void output_hash_text(uint64_t h, char text[OUTPUT_HASH_TEXT])
{
    text[0] = '\0';
    if (h != OUTPUT_HASH_NONE)
        (void)snprintf(text, OUTPUT_HASH_TEXT, "%016" PRIx64, h);
}
