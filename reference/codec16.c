#include "reference/codec16.h"

#include "reference/fault.h"

#include <float.h>
#include <string.h>

_Static_assert(FLT_EVAL_METHOD == 0, "a float addition rounds to float");

/* Every function exists twice, for any machine and for AVX2: one body, inlined into both. */
#if defined(__x86_64__) && defined(__GNUC__)
#define AVX2     __attribute__((target("avx2")))
#define INLINE   static inline __attribute__((always_inline))
#define HAS_AVX2 (__builtin_cpu_supports("avx2"))
#else
#define AVX2
#define INLINE   static inline
#define HAS_AVX2 false
#endif

/* Elements of an inner loop; that their number is constant lets compilers vectorize at -O2 too. A
 * lane of codec16_differ counts one block in 16 bits, so it must be below 65,536. */
enum { BLOCK = 64 };

/* x >> drop, to nearest, ties to even. */
INLINE uint32_t shift_even(uint32_t x, int drop)
{
    return (x + ((1u << (drop - 1)) - 1u) + (x >> drop & 1u)) >> drop;
}

/* `yes` where `condition`, else `no`: as bits, so that no compiler makes a branch of it. */
INLINE uint32_t choose(bool condition, uint32_t yes, uint32_t no)
{
    uint32_t all = 0u - (uint32_t)condition;

    return (yes & all) | (no & ~all);
}

/* The magnitude of a code, from a magnitude with `frac` stored fraction bits and exponent bias
 * `bias`, whose last bit may be sticky (rounded to odd); the code has `man` mantissa bits and
 * bias `out`. All arguments but `mag` are constants.
 *
 * Normal numbers: subtract the biases' difference from the exponent field and round the fraction
 * off; a carry lands in the exponent, and everything beyond the largest number is infinity.
 *
 * Subnormal numbers: 2^LIFT |x| as f32 plus a power of two whose last place is 2^LIFT times the
 * format's quantum 2^(1 - out - man): the one addition rounds, and its low bits are the code.
 * The lift keeps operands normal. What lies below the least lifted number, or is misread by the
 * lift (an f32 subnormal on its way to f16), is far under half a quantum and becomes 0. With
 * equal biases the first rule serves both. */
INLINE uint32_t narrow(uint32_t mag, int frac, int bias, int man, int out)
{
    enum { LIFT = 64 };
    const uint32_t rebias = (uint32_t)(bias - out) << frac;
    const uint32_t inf = (2u * (uint32_t)out + 1u) << man;
    const int under = bias - 127 - LIFT; /* what the lift takes off the exponent field */
    const uint32_t magic = (uint32_t)(127 + 1 - out - man + 23 + LIFT) << 23;
    uint32_t normal = shift_even(mag - rebias, frac - man);
    uint32_t lifted = mag, tiny, code;
    float f, one;

    normal = normal > inf ? inf : normal;
    if (under >= 0 && lifted < (uint32_t)(under + 1) << frac)
        lifted = (uint32_t)(under + 1) << frac;
    lifted = (lifted - ((uint32_t)under << frac)) << (23 - frac);
    memcpy(&f, &lifted, sizeof f);
    memcpy(&one, &magic, sizeof one);
    f += one;
    memcpy(&tiny, &f, sizeof tiny);
    code = choose(rebias && mag < rebias + (1u << frac), tiny - magic, normal);
    return choose(mag > (2u * (uint32_t)bias + 1u) << frac, inf | 1u << (man - 1), code);
}

INLINE uint16_t from_f32(float x, int man, int out)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)((bits >> 16 & 0x8000u) | narrow(bits & INT32_MAX, 23, 127, man, out));
}

/* A double's upper half is sign, 11 exponent bits and 20 fraction bits: with a sticky last bit for
 * the lower half it is x rounded to odd, and rounding that to man <= 18 bits is one rounding
 * (round.h names the proof). */
INLINE uint16_t from_f64(double x, int man, int out)
{
    uint64_t bits;
    uint32_t high;

    memcpy(&bits, &x, sizeof bits);
    high = (uint32_t)(bits >> 32) | (uint32_t)((uint32_t)bits != 0);
    return (uint16_t)((high >> 16 & 0x8000u) | narrow(high & INT32_MAX, 20, 1023, man, out));
}

/* Exact. The fields move to their places; normal exponents gain the biases' difference; a subnormal
 * is read as the normal number 2^e_min (1 + fraction), less 2^e_min. NaNs lose their payload, as in
 * dtype_decode. */
INLINE float to_f32(uint16_t code, int man, int bias)
{
    const uint32_t rebias = (uint32_t)(127 - bias) << 23;
    const uint32_t least = rebias + (1u << 23);
    uint32_t inf = (2u * (uint32_t)bias + 1u) << man;
    uint32_t mag = code & INT16_MAX;
    uint32_t bits = mag << (23 - man);
    uint32_t lifted = bits + least, tiny;
    float x, one;

    memcpy(&x, &lifted, sizeof x);
    memcpy(&one, &least, sizeof one);
    x -= one;
    memcpy(&tiny, &x, sizeof tiny);
    bits = choose(rebias && mag < 1u << man, tiny, bits + rebias);
    bits = choose(mag >= inf, 0x7f800000u | (uint32_t)(mag > inf) << 22, bits);
    bits |= (uint32_t)(code & 0x8000u) << 16;
    memcpy(&x, &bits, sizeof x);
    return x;
}

INLINE double to_f64(uint16_t code, int man, int bias)
{
    return (double)to_f32(code, man, bias);
}

INLINE bool is_f16(const struct dtype *t)
{
    return t->man_bits == 10;
}

/* name_plain and name_avx2(t, in, out, n): out[i] = f(in[i], mantissa bits and bias of t). */
#define DEFINE_ROW(name, from, to, f)                                                             \
    INLINE void name##_as(const from in[restrict], to out[restrict], size_t n, int man, int bias) \
    {                                                                                             \
        size_t i = 0;                                                                             \
                                                                                                  \
        for (; i + BLOCK <= n; i += BLOCK)                                                        \
            for (size_t j = 0; j < BLOCK; j++)                                                    \
                out[i + j] = f(in[i + j], man, bias);                                             \
        for (; i < n; i++)                                                                        \
            out[i] = f(in[i], man, bias);                                                         \
    }                                                                                             \
                                                                                                  \
    INLINE void name##_any(const struct dtype *t, const from in[], to out[], size_t n)            \
    {                                                                                             \
        if (is_f16(t))                                                                            \
            name##_as(in, out, n, 10, 15);                                                        \
        else                                                                                      \
            name##_as(in, out, n, 7, 127);                                                        \
    }                                                                                             \
                                                                                                  \
    static void name##_plain(const struct dtype *t, const from in[], to out[], size_t n)          \
    {                                                                                             \
        name##_any(t, in, out, n);                                                                \
    }                                                                                             \
                                                                                                  \
    AVX2 static void name##_avx2(const struct dtype *t, const from in[], to out[], size_t n)      \
    {                                                                                             \
        name##_any(t, in, out, n);                                                                \
    }

DEFINE_ROW(encode_f32, float, uint16_t, from_f32)
DEFINE_ROW(encode_f64, double, uint16_t, from_f64)
DEFINE_ROW(decode_f32, uint16_t, float, to_f32)
DEFINE_ROW(decode_f64, uint16_t, double, to_f64)

void codec16_encode_f32(const struct dtype *t, const float *x, uint16_t *codes, size_t n)
{
    (HAS_AVX2 ? encode_f32_avx2 : encode_f32_plain)(t, x, codes, n);
}

void codec16_encode_f64(const struct dtype *t, const double *x, uint16_t *codes, size_t n)
{
    (HAS_AVX2 ? encode_f64_avx2 : encode_f64_plain)(t, x, codes, n);
}

void codec16_decode_f32(const struct dtype *t, const uint16_t *codes, float *x, size_t n)
{
    (HAS_AVX2 ? decode_f32_avx2 : decode_f32_plain)(t, codes, x, n);
}

void codec16_decode_f64(const struct dtype *t, const uint16_t *codes, double *x, size_t n)
{
    (HAS_AVX2 ? decode_f64_avx2 : decode_f64_plain)(t, codes, x, n);
}

/* By way of a block of codes: its loops are those of the rows. */
void codec16_round_f32(const struct dtype *t, float *x, size_t n)
{
    uint16_t codes[16 * BLOCK];
    const size_t most = sizeof codes / sizeof codes[0];

    for (size_t i = 0; i < n; i += most) {
        size_t count = n - i < most ? n - i : most;

        codec16_encode_f32(t, x + i, codes, count);
        codec16_decode_f32(t, codes, x + i, count);
    }
}

/* Neither the same bits, nor zeros, nor NaNs, both of them. */
INLINE bool is_wrong(uint16_t got, uint16_t want, uint16_t inf)
{
    uint16_t g = got & INT16_MAX;
    uint16_t w = want & INT16_MAX;
    bool excused =
        (REF_FAULT(COMPARE_NAN_PASSES) & (g > inf)) || (REF_FAULT(COMPARE_ZERO_MATCHES) & (w == 0));

    return (got != want) & ((g | w) != 0) & !((g > inf) & (w > inf)) & !excused;
}

struct tally {
    size_t wrong, different;
};

/* Of at most BLOCK codes. */
INLINE struct tally tally_block(const uint16_t *got, const uint16_t *want, size_t n, uint16_t inf)
{
    uint16_t wrong = 0, different = 0;

    for (size_t i = 0; i < n; i++) {
        wrong = (uint16_t)(wrong + is_wrong(got[i], want[i], inf));
        different = (uint16_t)(different + (got[i] != want[i]));
    }
    return (struct tally){wrong, different};
}

INLINE struct tally tally_any(const uint16_t *got, const uint16_t *want, size_t n, uint16_t inf)
{
    struct tally sum = {0, 0};

    for (size_t i = 0; i < n; i += BLOCK) {
        struct tally b = n - i >= BLOCK ? tally_block(got + i, want + i, BLOCK, inf)
                                        : tally_block(got + i, want + i, n - i, inf);

        sum.wrong += b.wrong;
        sum.different += b.different;
    }
    return sum;
}

AVX2 static struct tally tally_avx2(const uint16_t *got, const uint16_t *want, size_t n,
                                    uint16_t inf)
{
    return tally_any(got, want, n, inf);
}

size_t codec16_differ(const struct dtype *t, const uint16_t *got, const uint16_t *want, size_t n,
                      size_t *first, size_t *bitwise)
{
    const uint16_t inf = is_f16(t) ? 0x7c00 : 0x7f80;
    const size_t end = REF_FAULT(COMPARE_STOPS_EARLY) && n > BLOCK ? BLOCK : n;
    struct tally sum = HAS_AVX2 ? tally_avx2(got, want, end, inf) : tally_any(got, want, end, inf);
    size_t i = sum.wrong ? 0 : n;

    while (i < n && !is_wrong(got[i], want[i], inf))
        i++;
    *first = i;
    *bitwise = sum.different;
    return sum.wrong;
}
