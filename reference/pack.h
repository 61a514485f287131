/* pack.h - Humming's standard packing of sub-byte codes: a bit stream, least significant bit first.
 *
 * Element i of a row lies at bits [i*bits, (i+1)*bits) of the row's stream of little-endian 32-bit
 * words and may straddle words (source: upstream's standard weight format).
 */
#ifndef REFERENCE_PACK_H
#define REFERENCE_PACK_H

#include <stddef.h>
#include <stdint.h>

/* Words of one row of n elements: ceil(n*bits / 32). */
size_t pack_words(size_t n, int bits);

/* One row: n codes (upper bits ignored) to pack_words(n, bits) words, unused top bits 0; and back.
 * bits 1 to 8. */
void pack_row(const uint8_t *codes, size_t n, int bits, uint32_t *words);
void unpack_row(const uint32_t *words, size_t n, int bits, uint8_t *codes);

#endif
