#include "reference/round.h"

#include <check.h>
#include <stdlib.h>

/* ck_assert_msg writes a mark each time it succeeds: too slow for millions. */
#define REQUIRE(condition, ...)        \
    do {                               \
        if (!(condition))              \
            ck_abort_msg(__VA_ARGS__); \
    } while (0)

__extension__ typedef __int128 wide;

/* A finite number of a format as an integer times 2^exponent, from the code's fields. */
struct scaled {
    int64_t integer;
    int exponent;
};

static struct scaled unpack(const struct dtype *t, uint32_t code)
{
    int64_t man = code & ((1u << t->man_bits) - 1u);
    int field = (int)(code >> t->man_bits & ((1u << t->exp_bits) - 1u));
    struct scaled s = {man, 1 - t->bias - t->man_bits};

    if (field) {
        s.integer += (int64_t)1 << t->man_bits;
        s.exponent += field - 1;
    }
    if (code >> (t->bits - 1) & 1u)
        s.integer = -s.integer;
    return s;
}

static int bit_length(wide x)
{
    int n = 0;

    for (; x; x >>= 1)
        n++;
    return n;
}

/* The magnitude's code of x * 2^exponent, x > 0: cut to the quantum, look at what was cut. */
static uint32_t round_exact(const struct dtype *t, wide x, int exponent)
{
    int quantum = exponent + bit_length(x) - 1 - t->man_bits;
    int least = 1 - t->bias - t->man_bits;
    uint32_t inf = ((1u << t->exp_bits) - 1u) << t->man_bits;
    int cut;
    wide q;

    quantum = quantum < least ? least : quantum;
    cut = quantum - exponent;
    if (cut > 120)
        return 0;
    if (cut <= 0) {
        q = x << -cut;
    } else {
        wide rest = x - (x >> cut << cut), half = (wide)1 << (cut - 1);

        q = x >> cut;
        if (rest > half || (rest == half && (q & 1)))
            q++;
    }
    q += ((wide)(quantum - least)) << t->man_bits; /* each binade is 2^man_bits codes */
    return q > inf ? inf : (uint32_t)q;
}

/* RN(a b + c) from codes, by integers. Beyond 90 places apart the smaller addend can only break a
 * tie: a unit far below the quantum with its sign does as well. */
static double exact_fma(const struct dtype *t, const uint32_t code[3])
{
    struct scaled a = unpack(t, code[0]), b = unpack(t, code[1]), c = unpack(t, code[2]);
    wide p = (wide)a.integer * b.integer, sum;
    int exponent = a.exponent + b.exponent, apart = exponent - c.exponent;
    uint32_t sign = 1u << (t->bits - 1), magnitude;

    if (p == 0 || c.integer == 0) {
        sum = p ? p : c.integer;
        exponent = p ? exponent : c.exponent;
    } else if (apart > 90) {
        sum = p * ((wide)1 << 60) + (c.integer > 0 ? 1 : -1);
        exponent -= 60;
    } else if (apart < -90) {
        sum = c.integer * ((wide)1 << 60) + (p > 0 ? 1 : -1);
        exponent = c.exponent - 60;
    } else if (apart >= 0) {
        sum = p * ((wide)1 << apart) + c.integer;
        exponent = c.exponent;
    } else {
        sum = p + c.integer * ((wide)1 << -apart);
    }
    if (sum == 0) /* IEEE: -0 only from two negative addends */
        return (code[0] ^ code[1]) & code[2] & sign ? -0.0 : 0.0;
    magnitude = round_exact(t, sum < 0 ? -sum : sum, exponent);
    return dtype_decode(t, magnitude | (sum < 0 ? sign : 0u));
}

/* A fixed sequence; every seed but 0 will do. */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static uint32_t finite_code(const struct dtype *t, uint64_t *state)
{
    for (;;) {
        uint32_t code = (uint32_t)(next_random(state) >> 20);

        code &= (uint32_t)((UINT64_C(1) << t->bits) - 1u);
        if (isfinite(dtype_decode(t, code)))
            return code;
    }
}

/* 2^e, clamped into the format. */
static uint32_t power_code(const struct dtype *t, int e)
{
    int field = e + t->bias, last = (1 << t->exp_bits) - 2;

    return (uint32_t)(field < 1 ? 1 : field > last ? last : field) << t->man_bits;
}

/* Three kinds of triples: any; a product with few low bits, so often halfway, and the smallest c or
 * so; c and a product of half of c's last place, or one unit of the product beside it. */
static void make_triple(const struct dtype *t, int kind, uint64_t *state, uint32_t code[3])
{
    uint64_t r = next_random(state);
    uint32_t sign = 1u << (t->bits - 1), top = 1u << (t->man_bits - 3);
    int half, e;

    for (int i = 0; i < 3; i++)
        code[i] = finite_code(t, state);
    if (kind == 1) {
        code[1] = power_code(t, (int)(r % 9) - 4) | (uint32_t)(r >> 8 & 7u) * top;
        code[2] = (uint32_t)(r >> 16 & 3u) | (r >> 20 & 1u ? sign : 0u);
    } else if (kind == 2) {
        half =
            (int)(code[2] >> t->man_bits & ((1u << t->exp_bits) - 1u)) - t->bias - t->man_bits - 1;
        e = (int)(r % (uint64_t)t->bias) - t->bias / 2;
        code[0] = power_code(t, half - e) | (r >> 20 & 1u ? sign : 0u);
        code[1] = power_code(t, e) + (uint32_t)(r >> 24) % 3u - 1u;
    }
}

/* Rounding twice must show in the triples, or they could not tell a right fma from a wrong one. */
struct seen {
    int twice, product; /* RN of the double sum; RN of the sum with the rounded product */
};

static void check_triple(const struct dtype *t, const uint32_t code[3], struct seen *seen)
{
    double a = dtype_decode(t, code[0]), b = dtype_decode(t, code[1]);
    double c = dtype_decode(t, code[2]), got = round_fma(t, a, b, c), want;

    want = t->bits == 32 ? (double)fmaf((float)a, (float)b, (float)c) : exact_fma(t, code);
    REQUIRE(got == want && signbit(got) == signbit(want), "%s: %a * %a + %a = %a, not %a", t->name,
            a, b, c, want, got);
    seen->twice += round_to(t, a * b + c) != want;
    seen->product += round_to(t, round_to(t, a * b) + c) != want;
}

static const struct {
    const char *format;
    int kind;
    bool twice; /* double has too few bits for some of the sums */
} sweeps[] = {
    {"f16", 0, false},  {"f16", 1, false}, {"f16", 2, false}, {"bf16", 0, false}, {"bf16", 1, true},
    {"bf16", 2, false}, {"f32", 0, false}, {"f32", 1, true},  {"f32", 2, false},
};

START_TEST(fma_sweep)
{
    const struct dtype *t = dtype_find(sweeps[_i].format);
    struct seen seen = {0, 0};
    uint64_t state = 88172645463325252u + (uint64_t)_i;

    for (int i = 0; i < 500000; i++) {
        uint32_t code[3];

        make_triple(t, sweeps[_i].kind, &state, code);
        check_triple(t, code, &seen);
    }
    ck_assert_int_gt(seen.product, 0);
    ck_assert(!sweeps[_i].twice || seen.twice > 0);
}
END_TEST

/* clang-format off */
static const struct {
    const char *format;
    double a, b, c, want;
} specials[] = {
    {"f16",  65504.0, 1.0,  15.0,      65504.0},   {"f16",  65504.0, 1.0,  16.0,     HUGE_VAL},
    {"f16",  -65504.0, 65504.0, 1.0,  -HUGE_VAL},  {"f16",  HUGE_VAL, 1.0, 1.0,      HUGE_VAL},
    {"f16",  HUGE_VAL, -2.0, 1.0,     -HUGE_VAL},  {"f16",  1.0, 1.0, -HUGE_VAL,    -HUGE_VAL},
    {"f16",  HUGE_VAL, 0.0, 1.0,       (double)NAN}, {"f16", HUGE_VAL, 1.0, -HUGE_VAL, (double)NAN},
    {"f16",  (double)NAN, 0.0, 0.0,    (double)NAN}, {"f16", 0.0, 0.0, (double)NAN,  (double)NAN},
    {"f16",  -0.0, 1.0, -0.0,         -0.0},       {"f16",  -0.0, 1.0, 0.0,          0.0},
    {"f16",  1.0, 1.0, -1.0,           0.0},       {"f16",  0x1p-24, -0x1p-2, 0.0,  -0.0},
    {"f16",  0x1p-24, 0.5, 0.0,        0.0},       {"f16",  0x1p-24, 0.5, 0x1p-24,   0x1p-23},
    {"bf16", 0x1.02p0, 1.5, 0x1p-133,  0x1.84p0},  {"bf16", 0x1.02p0, 1.5, -0x1p-133, 0x1.82p0},
    {"bf16", 0x1.02p0, 1.5, 0.0,       0x1.84p0},
    {"bf16", 0x1.fep127, 2.0, -0x1.fep127, 0x1.fep127},
    {"f32",  0x1.000002p0, 0x1.8p0, 0x1p-149, 0x1.800004p0},
    {"f32",  0x1.000002p0, 0x1.8p0, -0x1p-149, 0x1.800002p0},
};
/* clang-format on */

START_TEST(special_values)
{
    double want = specials[_i].want;
    double got =
        round_fma(dtype_find(specials[_i].format), specials[_i].a, specials[_i].b, specials[_i].c);

    if (isnan(want))
        ck_assert(isnan(got));
    else
        ck_assert_msg(got == want && signbit(got) == signbit(want), "%a, not %a", got, want);
}
END_TEST

/* The sum of A 2^d and B in integers: cut to 53 bits, last bit set if anything was lost. */
START_TEST(odd_sums)
{
    uint64_t state = 3;

    for (int i = 0; i < 500000; i++) {
        int64_t a = (int64_t)next_random(&state) >> 11, b = (int64_t)next_random(&state) >> 11;
        int d = (int)(next_random(&state) % 61), cut;
        wide sum = a * ((wide)1 << d) + b, magnitude = sum < 0 ? -sum : sum, kept;
        double got = round_odd_sum(ldexp((double)a, d), (double)b), want;

        cut = bit_length(magnitude) > 53 ? bit_length(magnitude) - 53 : 0;
        kept = magnitude >> cut;
        kept |= kept << cut != magnitude;
        want = ldexp((double)(sum < 0 ? -kept : kept), cut);
        REQUIRE(got == want, "%a, not %a", got, want);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("round");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_loop_test(tc, fma_sweep, 0, (int)(sizeof sweeps / sizeof sweeps[0]));
    tcase_add_loop_test(tc, special_values, 0, (int)(sizeof specials / sizeof specials[0]));
    tcase_add_test(tc, odd_sums);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
