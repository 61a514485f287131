/* sha256.h - SHA-256 of bytes: which data set and which prompts a number belongs to.
 *
 * Source: FIPS 180-4, sections 4.1.2, 4.2.2, 5.1.1, 5.3.3 and 6.2. Written out here because the
 * only other use of a cryptographic library would be this one function. Not for secrets.
 */
#ifndef HARNESS_EVAL_SHA256_H
#define HARNESS_EVAL_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SHA256_BLOCK = 64, SHA256_BYTES = 32, SHA256_HEX = 2 * SHA256_BYTES + 1 };

struct sha256 {
    uint32_t h[8];
    uint64_t bytes; /* added so far */
    unsigned char block[SHA256_BLOCK];
};

void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *data, size_t size);
/* The digest of what was added, as 64 lower-case hexadecimal digits and a NUL; `hex` is returned.
 * Nothing may be added afterwards. */
const char *sha256_end(struct sha256 *s, char hex[SHA256_HEX]);

/* The three in one. */
const char *sha256_hex(const void *data, size_t size, char hex[SHA256_HEX]);

#endif
