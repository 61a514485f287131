#include "reference/codec16.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ck_assert_msg writes a mark each time it succeeds: too slow for loops over all codes. */
#define REQUIRE(condition, ...)        \
    do {                               \
        if (!(condition))              \
            ck_abort_msg(__VA_ARGS__); \
    } while (0)

enum { CODES = 0x10000 };

static const char *const formats[] = {"f16", "bf16"};

static double double_of(uint64_t bits)
{
    double x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

static float float_of(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint64_t double_bits(double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static uint32_t float_bits(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* A fixed sequence; every seed but 0 will do. */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Encode both ways, and compare with dtype_encode. */
static void check_f64(const struct dtype *t, const double *x, size_t n)
{
    uint16_t *codes = malloc(n * sizeof *codes);

    ck_assert_ptr_nonnull(codes);
    codec16_encode_f64(t, x, codes, n);
    for (size_t i = 0; i < n; i++)
        REQUIRE(codes[i] == dtype_encode(t, x[i], DTYPE_TO_TOP), "%s %a gives 0x%x", t->name, x[i],
                codes[i]);
    free(codes);
}

/* The same from f32, and rounding in place: the code's value, bit for bit. */
static void check_f32(const struct dtype *t, float *x, size_t n)
{
    uint16_t *codes = malloc(n * sizeof *codes);

    ck_assert_ptr_nonnull(codes);
    codec16_encode_f32(t, x, codes, n);
    for (size_t i = 0; i < n; i++)
        REQUIRE(codes[i] == dtype_encode(t, (double)x[i], DTYPE_TO_TOP), "%s %a gives 0x%x",
                t->name, (double)x[i], codes[i]);
    codec16_round_f32(t, x, n);
    for (size_t i = 0; i < n; i++)
        REQUIRE(float_bits(x[i]) == float_bits((float)dtype_decode(t, codes[i])), "%s 0x%x: %a",
                t->name, codes[i], (double)x[i]);
    free(codes);
}

START_TEST(decode_all)
{
    const struct dtype *t = dtype_find(formats[_i]);
    static uint16_t codes[CODES];
    static float x[CODES];
    static double y[CODES];

    for (size_t i = 0; i < CODES; i++)
        codes[i] = (uint16_t)i;
    codec16_decode_f32(t, codes, x, CODES);
    codec16_decode_f64(t, codes, y, CODES);
    for (size_t i = 0; i < CODES; i++) {
        double want = dtype_decode(t, (uint32_t)i);

        REQUIRE(double_bits(y[i]) == double_bits(want), "0x%zx: %a, not %a", i, y[i], want);
        REQUIRE(float_bits(x[i]) == float_bits((float)want), "0x%zx: %a", i, (double)x[i]);
    }
}
END_TEST

/* All values and all midpoints of both signs, each with its neighbours in double; the last midpoint
 * is the overflow threshold. */
START_TEST(encode_f64_all)
{
    const struct dtype *t = dtype_find(formats[_i]);
    double *x = malloc(6 * sizeof *x * CODES);
    double top = dtype_max(t), half = ldexp(0.5, ilogb(top) - t->man_bits);
    size_t n = 0;

    ck_assert_ptr_nonnull(x);
    for (uint32_t code = 0; code < CODES; code++) {
        double value = dtype_decode(t, code);
        double next = dtype_decode(t, code + 1);
        double mid = (value + next) / 2.0;

        if (fabs(value) == top)
            mid = value + copysign(half, value);
        x[n++] = value;
        x[n++] = nextafter(value, -HUGE_VAL);
        x[n++] = nextafter(value, HUGE_VAL);
        x[n++] = mid;
        x[n++] = nextafter(mid, -HUGE_VAL);
        x[n++] = nextafter(mid, HUGE_VAL);
    }
    check_f64(t, x, n);
    free(x);
}
END_TEST

START_TEST(encode_f32_all)
{
    const struct dtype *t = dtype_find(formats[_i]);
    float *x = malloc(6 * sizeof *x * CODES);
    size_t n = 0;

    ck_assert_ptr_nonnull(x);
    for (uint32_t code = 0; code < CODES; code++) {
        double value = dtype_decode(t, code);
        double next = dtype_decode(t, code + 1);
        float mid = (float)((value + next) / 2.0);

        x[n++] = (float)value;
        x[n++] = nextafterf((float)value, -HUGE_VALF);
        x[n++] = nextafterf((float)value, HUGE_VALF);
        x[n++] = mid;
        x[n++] = nextafterf(mid, -HUGE_VALF);
        x[n++] = nextafterf(mid, HUGE_VALF);
    }
    check_f32(t, x, n);
    free(x);
}
END_TEST

/* Thresholds of overflow and underflow, NaNs with low payload bits only, the ends of f64. */
static const double edges[] = {
    65519.0,
    65519.999999999993,
    65520.0,
    65520.000000000007,
    65536.0,
    1e300,
    DBL_MAX,
    HUGE_VAL,
    0x1.feffffffffffep127,
    0x1.fefffffffffffp127,
    0x1.ffp127,
    0x1.ff00000000001p127,
    0x1p128,
    0x1.fffffep127,
    0x1p-24,
    0x1p-25,
    0x1.0000000000001p-25,
    0x1.fffffffffffffp-26,
    0x1p-26,
    0x1p-133,
    0x1p-134,
    0x1.0000000000001p-134,
    0x1.fffffffffffffp-135,
    0x1p-149,
    0x1p-150,
    0x1p-190,
    0x1p-191,
    0x1p-192,
    0x1p-1022,
    0x1p-1074,
    0x0.fffffffffffffp-1022,
    0.0,
    0x1.ffcp-15,
    0x1.ffep-15,
    0x1.ffdffffffffffp-15,
    0x1.fffp-15,
    0x1.fep-127,
    0x1.ffp-127,
};
static const uint64_t nan_bits[] = {
    0x7FF8000000000000, 0x7FF0000000000001, 0x7FF00000FFFFFFFF,
    0x7FFFFFFFFFFFFFFF, 0x7FF4000000000000, 0x7FF0000100000000,
};

START_TEST(encode_edges)
{
    const struct dtype *t = dtype_find(formats[_i]);
    double x[2 * (sizeof edges / sizeof *edges + sizeof nan_bits / sizeof *nan_bits)];
    float y[sizeof x / sizeof *x];
    size_t n = 0;

    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        x[n++] = edges[i];
        x[n++] = -edges[i];
    }
    for (size_t i = 0; i < sizeof nan_bits / sizeof *nan_bits; i++) {
        x[n++] = double_of(nan_bits[i]);
        x[n++] = double_of(nan_bits[i] | UINT64_C(1) << 63);
    }
    for (size_t i = 0; i < n; i++)
        y[i] = (float)x[i];
    y[n - 1] = float_of(0xFF800001); /* NaNs that lose their payload to a shift */
    y[n - 2] = float_of(0x7F800001);
    y[n - 3] = float_of(0x7F803FFF);
    check_f64(t, x, n);
    check_f32(t, y, n);
}
END_TEST

/* Any bits; and exponents within the formats' reach, three doubles of eight close to a midpoint. */
START_TEST(encode_random)
{
    const struct dtype *t = dtype_find(formats[_i]);
    static double x[1 << 19];
    static float y[1 << 19];
    uint64_t state = 11;

    for (size_t i = 0; i < sizeof x / sizeof *x; i++) {
        uint64_t r = next_random(&state), low = UINT64_C(1) << (51 - t->man_bits);
        uint64_t bits = r;

        if (i & 1)
            bits = (r & ~(UINT64_C(0x7FF) << 52)) | (1023 - 160 + (r >> 8) % 300) << 52;
        if (i % 8 >= 5)
            bits = (bits & ~(2 * low - 1)) + low + (r >> 30) % 3 - 1;
        x[i] = double_of(bits);
        y[i] = i & 2 ? float_of((uint32_t)bits) : (float)x[i];
    }
    check_f64(t, x, sizeof x / sizeof *x);
    check_f32(t, y, sizeof y / sizeof *y);
}
END_TEST

/* Every length around a block, at every alignment; nothing before or behind is written. */
START_TEST(lengths)
{
    const struct dtype *t = dtype_find(formats[_i]);
    enum { N = 300 };
    double x[N], back[N + 2];
    float y[N], round[N + 2];
    uint64_t state = 13;

    for (size_t i = 0; i < N; i++) {
        x[i] = ldexp((double)(int64_t)next_random(&state), -60);
        y[i] = (float)x[i];
    }
    for (size_t n = 0; n <= N - 20; n += n < 140 ? 1 : 13) {
        size_t at = n % 19;
        uint16_t a[N + 2], b[N + 2];

        memset(a, 0x55, sizeof a);
        memset(b, 0x55, sizeof b);
        codec16_encode_f64(t, x + at, a + 1, n);
        codec16_encode_f32(t, y + at, b + 1, n);
        REQUIRE(a[0] == 0x5555 && a[n + 1] == 0x5555, "f64, %zu", n);
        REQUIRE(b[0] == 0x5555 && b[n + 1] == 0x5555, "f32, %zu", n);
        back[0] = back[n + 1] = 77.0;
        round[0] = round[n + 1] = 77.0f;
        codec16_decode_f64(t, a + 1, back + 1, n);
        codec16_decode_f32(t, b + 1, round + 1, n);
        codec16_round_f32(t, round + 1, n);
        REQUIRE(back[0] == 77.0 && back[n + 1] == 77.0, "to f64, %zu", n);
        REQUIRE(round[0] == 77.0f && round[n + 1] == 77.0f, "to f32, %zu", n);
        for (size_t i = 1; i <= n; i++) {
            double want = dtype_decode(t, dtype_encode(t, x[at + i - 1], DTYPE_TO_TOP));

            REQUIRE(back[i] == want, "%zu of %zu", i, n);
            want = dtype_decode(t, dtype_encode(t, (double)y[at + i - 1], DTYPE_TO_TOP));
            REQUIRE((double)round[i] == want, "%zu of %zu", i, n);
        }
    }
}
END_TEST

/* Longer than round_f32's inner row, and than its multiples. */
START_TEST(round_long)
{
    const struct dtype *t = dtype_find(formats[_i]);
    static float x[5000], y[5000];

    for (size_t i = 0; i < 5000; i++)
        x[i] = y[i] = 1.0f + (float)i * 0x1.23p-14f;
    codec16_round_f32(t, x, 4999);
    for (size_t i = 0; i < 4999; i++)
        REQUIRE((double)x[i] == dtype_decode(t, dtype_encode(t, (double)y[i], DTYPE_TO_TOP)), "%zu",
                i);
    ck_assert(x[4999] == y[4999]);
}
END_TEST

/* By values. */
static bool equal(const struct dtype *t, uint16_t a, uint16_t b)
{
    double x = dtype_decode(t, a), y = dtype_decode(t, b);

    return isnan(x) ? isnan(y) : x == y;
}

static void check_differ(const struct dtype *t, const uint16_t *got, const uint16_t *want, size_t n)
{
    size_t first = 12345678, bitwise = 12345678, wrong = 0, bits = 0, at = n, result;

    for (size_t i = n; i-- > 0;) {
        bits += got[i] != want[i];
        if (equal(t, got[i], want[i]))
            continue;
        wrong++;
        at = i;
    }
    result = codec16_differ(t, got, want, n, &first, &bitwise);
    REQUIRE(result == wrong, "%zu wrong, not %zu", result, wrong);
    REQUIRE(first == at, "first at %zu, not %zu", first, at);
    REQUIRE(bitwise == bits, "%zu bitwise, not %zu", bitwise, bits);
}

/* All codes against codes of every class, and against one bit of difference. */
START_TEST(differ_all)
{
    const struct dtype *t = dtype_find(formats[_i]);
    const uint16_t inf = (uint16_t)dtype_encode(t, HUGE_VAL, DTYPE_TO_TOP);
    const uint16_t others[] = {0,
                               0x8000,
                               1,
                               0x8001,
                               inf,
                               (uint16_t)(inf | 0x8000),
                               (uint16_t)(inf + 1),
                               0xFFFF,
                               0x7FFF,
                               (uint16_t)(inf - 1)};
    static uint16_t got[CODES], want[CODES];

    for (size_t i = 0; i < CODES; i++)
        got[i] = (uint16_t)i;
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        for (size_t i = 0; i < CODES; i++)
            want[i] = others[k];
        check_differ(t, got, want, CODES);
    }
    for (int bit = 0; bit < 16; bit++) {
        for (size_t i = 0; i < CODES; i++)
            want[i] = (uint16_t)(i ^ 1u << bit);
        check_differ(t, got, want, CODES);
    }
}
END_TEST

/* One difference at each place of rows of each length. */
START_TEST(differ_places)
{
    const struct dtype *t = dtype_find(formats[_i]);
    uint16_t got[200] = {0}, want[200] = {0};

    for (size_t n = 0; n < 200; n += n < 70 ? 1 : 9) {
        check_differ(t, got, want, n);
        for (size_t i = 0; i < n; i++) {
            got[i] = 0x3C00;
            check_differ(t, got, want, n);
            got[i] = 0x8000;
            check_differ(t, got, want, n);
            got[i] = 0;
        }
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("codec16");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_loop_test(tc, decode_all, 0, 2);
    tcase_add_loop_test(tc, encode_f64_all, 0, 2);
    tcase_add_loop_test(tc, encode_f32_all, 0, 2);
    tcase_add_loop_test(tc, encode_edges, 0, 2);
    tcase_add_loop_test(tc, encode_random, 0, 2);
    tcase_add_loop_test(tc, lengths, 0, 2);
    tcase_add_loop_test(tc, round_long, 0, 2);
    tcase_add_loop_test(tc, differ_all, 0, 2);
    tcase_add_loop_test(tc, differ_places, 0, 2);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
