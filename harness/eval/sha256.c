#include "harness/eval/sha256.h"

#include <string.h>

/* FIPS 180-4, 4.2.2: the first 32 bits of the fractional parts of the cube roots of the first 64
 * primes. */
/* clang-format off */
static const uint32_t k[SHA256_BLOCK] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

/* 5.3.3: the same of the square roots of the first eight primes. */
static const uint32_t start[8] = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};
/* clang-format on */

static uint32_t rotr(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

/* 6.2.2, step 1: the message schedule of the block. */
static void schedule(const unsigned char *block, uint32_t w[SHA256_BLOCK])
{
    for (size_t t = 0; t < 16; t++)
        w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 |
               (uint32_t)block[4 * t + 2] << 8 | block[4 * t + 3];
    for (size_t t = 16; t < SHA256_BLOCK; t++) {
        uint32_t x = w[t - 15], y = w[t - 2];

        w[t] = w[t - 16] + w[t - 7] + (rotr(x, 7) ^ rotr(x, 18) ^ x >> 3) +
               (rotr(y, 17) ^ rotr(y, 19) ^ y >> 10);
    }
}

/* 6.2.2, steps 2 to 4. v is a..h of the standard, rotated by one place a round. */
static void absorb(struct sha256 *s, const unsigned char *block)
{
    uint32_t w[SHA256_BLOCK], v[8];

    schedule(block, w);
    memcpy(v, s->h, sizeof v);
    for (int t = 0; t < SHA256_BLOCK; t++) {
        uint32_t choose = (v[4] & v[5]) ^ (~v[4] & v[6]);
        uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        uint32_t t1 =
            v[7] + (rotr(v[4], 6) ^ rotr(v[4], 11) ^ rotr(v[4], 25)) + choose + k[t] + w[t];
        uint32_t t2 = (rotr(v[0], 2) ^ rotr(v[0], 13) ^ rotr(v[0], 22)) + majority;

        memmove(v + 1, v, 7 * sizeof v[0]);
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++)
        s->h[i] += v[i];
}

void sha256_init(struct sha256 *s)
{
    *s = (struct sha256){.bytes = 0};
    memcpy(s->h, start, sizeof start);
}

void sha256_add(struct sha256 *s, const void *data, size_t size)
{
    const unsigned char *p = data;

    while (size) {
        size_t used = s->bytes % SHA256_BLOCK;
        size_t n = SHA256_BLOCK - used < size ? SHA256_BLOCK - used : size;

        memcpy(s->block + used, p, n);
        s->bytes += n;
        p += n;
        size -= n;
        if (used + n == SHA256_BLOCK)
            absorb(s, s->block);
    }
}

/* 5.1.1: a one bit, zeros, and the length in bits in the last eight bytes of a block. */
const char *sha256_end(struct sha256 *s, char hex[SHA256_HEX])
{
    static const char digits[] = "0123456789abcdef";
    static const unsigned char pad[SHA256_BLOCK] = {0x80};
    uint64_t bits = s->bytes * 8;
    unsigned char length[8];

    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)(bits >> (56 - 8 * i));
    sha256_add(s, pad, 1 + (2u * SHA256_BLOCK - 9 - s->bytes % SHA256_BLOCK) % SHA256_BLOCK);
    sha256_add(s, length, sizeof length);
    for (int i = 0; i < 2 * SHA256_BYTES; i++)
        hex[i] = digits[s->h[i / 8] >> (28 - i % 8 * 4) & 15];
    hex[SHA256_HEX - 1] = '\0';
    return hex;
}

const char *sha256_hex(const void *data, size_t size, char hex[SHA256_HEX])
{
    struct sha256 s;

    sha256_init(&s);
    sha256_add(&s, data, size);
    return sha256_end(&s, hex);
}
