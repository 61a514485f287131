#include "reference/dtype.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOT_A_NUMBER ((double)NAN)
#define COUNT(a)     ((int)(sizeof(a) / sizeof(a)[0]))

/* ck_assert_msg writes a mark each time it succeeds: too slow for loops over all codes. */
#define REQUIRE(condition, ...)        \
    do {                               \
        if (!(condition))              \
            ck_abort_msg(__VA_ARGS__); \
    } while (0)

/* Codes of a format, without looking at dtype.c. */
static uint32_t last_code(const struct dtype *t)
{
    return (uint32_t)((UINT64_C(1) << t->bits) - 1u);
}

static bool is_twos(const struct dtype *t)
{
    return t->is_signed && !t->is_float;
}

static double float_of(uint32_t bits)
{
    float f;

    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

static uint32_t bits_of(float f)
{
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static bool same(double a, double b)
{
    return isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b);
}

/* A fixed sequence; every seed but 0 will do. */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Largest, least normal, subnormal and special codes, from IEEE 754, OFP8 1.0 and MX 1.0. */
/* clang-format off */
static const struct {
    const char *name;
    uint32_t code;
    double value;
} published[] = {
    {"f32", 0x7F7FFFFF, 0x1.fffffep127},    {"f32", 0x00800000, 0x1p-126},
    {"f32", 0x00000001, 0x1p-149},          {"f32", 0x7F800000, HUGE_VAL},
    {"f32", 0x7FC00000, NOT_A_NUMBER},      {"f32", 0xFF7FFFFF, -0x1.fffffep127},
    {"f16", 0x7BFF, 65504.0},       {"f16", 0x0400, 0x1p-14},       {"f16", 0x0001, 0x1p-24},
    {"f16", 0x7C00, HUGE_VAL},      {"f16", 0xFC00, -HUGE_VAL},     {"f16", 0x7E00, NOT_A_NUMBER},
    {"f16", 0x3C00, 1.0},           {"f16", 0x3555, 0x1.554p-2},    {"bf16", 0x7F7F, 0x1.fep127},
    {"bf16", 0x0080, 0x1p-126},     {"bf16", 0x0001, 0x1p-133},     {"bf16", 0x7F80, HUGE_VAL},
    {"bf16", 0x7FC0, NOT_A_NUMBER}, {"bf16", 0x4049, 3.140625},     {"e4m3", 0x7E, 448.0},
    {"e4m3", 0x7F, NOT_A_NUMBER},   {"e4m3", 0xFF, NOT_A_NUMBER},   {"e4m3", 0x08, 0x1p-6},
    {"e4m3", 0x07, 0.875 * 0x1p-6}, {"e4m3", 0x01, 0x1p-9},         {"e4m3", 0x80, -0.0},
    {"e4m3", 0xFE, -448.0},         {"e5m2", 0x7B, 57344.0},        {"e5m2", 0x7C, HUGE_VAL},
    {"e5m2", 0x7D, NOT_A_NUMBER},   {"e5m2", 0x7E, NOT_A_NUMBER},   {"e5m2", 0x7F, NOT_A_NUMBER},
    {"e5m2", 0xFC, -HUGE_VAL},      {"e5m2", 0x04, 0x1p-14},        {"e5m2", 0x03, 0.75 * 0x1p-14},
    {"e5m2", 0x01, 0x1p-16},        {"e5m2", 0x80, -0.0},           {"e3m2", 0x1F, 28.0},
    {"e3m2", 0x04, 0.25},           {"e3m2", 0x03, 0.1875},         {"e3m2", 0x01, 0.0625},
    {"e2m3", 0x1F, 7.5},            {"e2m3", 0x08, 1.0},            {"e2m3", 0x07, 0.875},
    {"e2m3", 0x01, 0.125},          {"e2m1", 0x7, 6.0},             {"e2m1", 0x2, 1.0},
    {"e2m1", 0x1, 0.5},             {"e2m1", 0xF, -6.0},            {"e8m0", 0x00, 0x1p-127},
    {"e8m0", 0x7F, 1.0},            {"e8m0", 0xFE, 0x1p127},        {"e8m0", 0xFF, NOT_A_NUMBER},
    /* Humming's own */
    {"e5m3", 0xFE, 114688.0},       {"e5m3", 0xFF, NOT_A_NUMBER},   {"e5m3", 0x00, 0.0},
    {"e5m3", 0x01, 0x1p-17},        {"e3m4", 0x7E, 30.0},           {"e3m4", 0x7F, NOT_A_NUMBER},
    {"e0m3", 0x7, 7.0},             {"e0m3", 0xF, -7.0},            {"e0m3", 0x8, -0.0},
    {"float8e4m3", 0x7F, 480.0},    {"float8e3m4", 0x7F, 31.0},     {"float8e5m2", 0x7F, 114688.0},
    {"float4e1m2", 0x7, 3.5},       {"float4e1m2", 0x1, 0.5},       {"float4e3m0", 0x7, 16.0},
    {"float4e3m0", 0x1, 0.25},      {"float4e3m0", 0x0, 0.0},       {"float2e1m0", 0x3, -2.0},
    {"float2e0m1", 0x3, -1.0},      {"float8e0m7", 0xFF, -127.0},   {"int1", 0x0, 0.0},
    {"int1", 0x1, -1.0},            {"int4", 0x8, -8.0},            {"int4", 0x7, 7.0},
    {"int8", 0x80, -128.0},         {"int8", 0xFF, -1.0},           {"uint1", 0x1, 1.0},
    {"uint8", 0xFF, 255.0},
    {"int32", 0x80000000, -0x1p31},         {"int32", 0x7FFFFFFF, 0x1p31 - 1.0},
};
/* clang-format on */

START_TEST(constants)
{
    const struct dtype *t = dtype_find(published[_i].name);
    double x = published[_i].value;

    ck_assert_ptr_nonnull(t);
    ck_assert_msg(same(dtype_decode(t, published[_i].code), x), "%s 0x%x gives %a", t->name,
                  published[_i].code, dtype_decode(t, published[_i].code));
    if (t->bits < 32)
        ck_assert(same(dtype_decode(t, published[_i].code | 1u << t->bits), x));
}
END_TEST

/* Every code of at most 16 bits; of wider ones, a prime step through all of them. */
START_TEST(roundtrip)
{
    const struct dtype *t = &dtypes[_i];
    uint64_t step = t->bits > 16 ? 9973 : 1;

    for (uint64_t i = 0; i <= last_code(t); i += step) {
        uint32_t code = (uint32_t)i;
        double x = dtype_decode(t, code);
        uint32_t back = dtype_encode(t, x, DTYPE_TO_TOP);

        if (isnan(x)) { /* to the canonical one, which returns as itself */
            REQUIRE(isnan(dtype_decode(t, back)), "%s 0x%x", t->name, code);
            REQUIRE(dtype_encode(t, dtype_decode(t, back), DTYPE_SATURATE) == back, "%s 0x%x",
                    t->name, back);
            REQUIRE((back ^ code) >> (t->bits - 1) == 0, "%s 0x%x: sign", t->name, code);
        } else {
            REQUIRE(back == code, "%s 0x%x -> %a -> 0x%x", t->name, code, x, back);
        }
    }
}
END_TEST

/* The code that stands k places above the lowest number of the sign; -1: no number. */
static int64_t magnitude_code(const struct dtype *t, uint32_t k, bool negative)
{
    uint32_t code = k;

    if (is_twos(t))
        code = negative ? 0u - k : k;
    else if (negative)
        code |= 1u << (t->bits - 1);
    code &= last_code(t);
    return isfinite(dtype_decode(t, code)) ? (int64_t)code : -1;
}

/* Neighbours ascend; what lies between two goes to the nearer, the midpoint to the even code. */
static void check_between(const struct dtype *t, uint32_t k, bool negative)
{
    int64_t near = magnitude_code(t, k, negative);
    int64_t far = magnitude_code(t, k + 1, negative);
    double lo, hi, mid;

    if (near < 0 || far < 0)
        return;
    lo = dtype_decode(t, (uint32_t)near);
    hi = dtype_decode(t, (uint32_t)far);
    mid = (lo + hi) / 2.0;
    REQUIRE(fabs(lo) < fabs(hi), "%s 0x%x", t->name, k);
    REQUIRE(dtype_encode(t, mid, DTYPE_TO_TOP) == (k & 1u ? far : near), "%s 0x%x: %a", t->name, k,
            mid);
    REQUIRE(dtype_encode(t, nextafter(mid, lo), DTYPE_TO_TOP) == near, "%s 0x%x below %a", t->name,
            k, mid);
    REQUIRE(dtype_encode(t, nextafter(mid, hi), DTYPE_TO_TOP) == far, "%s 0x%x above %a", t->name,
            k, mid);
}

START_TEST(order_and_ties)
{
    const struct dtype *t = &dtypes[_i];
    uint32_t magnitudes = t->is_signed ? last_code(t) >> 1 : last_code(t);
    uint32_t step = t->bits > 16 ? 99991 : 1;
    uint32_t negatives = is_twos(t) ? magnitudes + 1u : t->is_signed ? magnitudes : 0u;

    for (uint32_t k = 0; k + step <= magnitudes; k += step)
        check_between(t, k, false);
    for (uint32_t k = 0; k + step <= negatives; k += step)
        check_between(t, k, true);
}
END_TEST

/* How far the nearest finite number of a table is from x. */
static double least_gap(const double *table, uint32_t last, double x)
{
    double least = HUGE_VAL;

    for (uint32_t code = 0; code <= last; code++)
        if (isfinite(table[code]))
            least = fmin(least, fabs(table[code] - x));
    return least;
}

START_TEST(nearest_by_search)
{
    const struct dtype *t = &dtypes[_i];
    uint64_t state = 7;
    double table[256];

    if (t->bits > 8)
        return;
    dtype_table(t, table);
    for (int i = 0; i < 2000; i++) {
        double scale = ldexp(1.25 * dtype_max(t) + 1.0, -(i % 24));
        double x = scale * (double)(next_random(&state) >> 11) * 0x1p-53;
        double value;

        x = next_random(&state) & 1u ? -x : x;
        value = dtype_decode(t, dtype_encode(t, x, DTYPE_SATURATE));
        REQUIRE(fabs(value - x) == least_gap(table, last_code(t), x), "%s %a -> %a", t->name, x,
                value);
    }
}
END_TEST

/* clang-format off */
static const struct {
    const char *name;
    double x;
    uint32_t saturated, to_top;
} overflows[] = {
    {"f16", 65519.0, 0x7BFF, 0x7BFF},               {"f16", 65520.0, 0x7BFF, 0x7C00},
    {"f16", -HUGE_VAL, 0xFBFF, 0xFC00},             {"f16", 1e300, 0x7BFF, 0x7C00},
    {"bf16", 0x1.fefffp127, 0x7F7F, 0x7F7F},        {"bf16", 0x1.ffp127, 0x7F7F, 0x7F80},
    {"f32", 0x1.fffffefp127, 0x7F7FFFFF, 0x7F7FFFFF},
    {"f32", 0x1.ffffffp127, 0x7F7FFFFF, 0x7F800000},
    {"f32", -1e308, 0xFF7FFFFF, 0xFF800000},        {"e4m3", 464.0, 0x7E, 0x7E},
    {"e4m3", 464.1, 0x7E, 0x7F},                    {"e4m3", -1e9, 0xFE, 0xFF},
    {"e4m3", HUGE_VAL, 0x7E, 0x7F},                 {"e5m2", 61439.0, 0x7B, 0x7B},
    {"e5m2", 61440.0, 0x7B, 0x7C},                  {"e5m2", -HUGE_VAL, 0xFB, 0xFC},
    {"e3m4", 30.5, 0x7E, 0x7E},                     {"e3m4", 30.6, 0x7E, 0x7F},
    {"e3m4", -99.0, 0xFE, 0xFF},                    {"e2m1", 1e9, 0x7, 0x7},
    {"e2m1", -HUGE_VAL, 0xF, 0xF},                  {"e2m3", 7.76, 0x1F, 0x1F},
    {"e3m2", -1e30, 0x3F, 0x3F},                    {"e0m3", -7.5, 0xF, 0xF},
    {"e0m3", 1e300, 0x7, 0x7},                      {"e5m3", 1e9, 0xFE, 0xFF},
    {"e5m3", -1.0, 0x00, 0x00},                     {"e8m0", 0x1.8p127, 0xFE, 0xFE},
    {"e8m0", 0x1.81p127, 0xFE, 0xFF},               {"e8m0", 0.0, 0x00, 0x00},
    {"e8m0", 0x1p-1074, 0x00, 0x00},                {"e8m0", 0x1.8p-127, 0x00, 0x00},
    {"e8m0", 0x1.8p-126, 0x02, 0x02},               {"e8m0", 3.0, 0x80, 0x80},
    {"e8m0", 6.0, 0x82, 0x82},                      {"e8m0", -2.0, 0x00, 0x00},
    {"e8m0", HUGE_VAL, 0xFE, 0xFF},                 {"float8e4m3", 1e9, 0x7F, 0x7F},
    {"float8e7m0", -1e30, 0xFF, 0xFF},              {"int8", 127.5, 0x7F, 0x7F},
    {"int8", -128.5, 0x80, 0x80},                   {"int8", -1e300, 0x80, 0x80},
    {"int8", HUGE_VAL, 0x7F, 0x7F},                 {"int1", -5.0, 0x1, 0x1},
    {"int1", 5.0, 0x0, 0x0},                        {"int4", -9.0, 0x8, 0x8},
    {"uint4", -1.0, 0x0, 0x0},                      {"uint4", 15.7, 0xF, 0xF},
    {"uint1", 1e9, 0x1, 0x1},                       {"int32", 3e9, 0x7FFFFFFF, 0x7FFFFFFF},
    {"int32", -HUGE_VAL, 0x80000000, 0x80000000},   {"f32", NOT_A_NUMBER, 0x7FC00000, 0x7FC00000},
    {"f32", -NOT_A_NUMBER, 0xFFC00000, 0xFFC00000}, {"f16", NOT_A_NUMBER, 0x7E00, 0x7E00},
    {"f16", -NOT_A_NUMBER, 0xFE00, 0xFE00},         {"bf16", NOT_A_NUMBER, 0x7FC0, 0x7FC0},
    {"bf16", -NOT_A_NUMBER, 0xFFC0, 0xFFC0},        {"e5m2", NOT_A_NUMBER, 0x7E, 0x7E},
    {"e5m2", -NOT_A_NUMBER, 0xFE, 0xFE},            {"e4m3", NOT_A_NUMBER, 0x7F, 0x7F},
    {"e4m3", -NOT_A_NUMBER, 0xFF, 0xFF},            {"e3m4", NOT_A_NUMBER, 0x7F, 0x7F},
    {"e8m0", -NOT_A_NUMBER, 0xFF, 0xFF},            {"e5m3", -NOT_A_NUMBER, 0xFF, 0xFF},
    {"e2m1", -NOT_A_NUMBER, 0x0, 0x0},              {"int8", NOT_A_NUMBER, 0x00, 0x00},
    {"uint4", NOT_A_NUMBER, 0x0, 0x0},              {"int32", -NOT_A_NUMBER, 0, 0},
    {"float8e4m3", NOT_A_NUMBER, 0, 0},
};
/* clang-format on */

START_TEST(overflow)
{
    const struct dtype *t = dtype_find(overflows[_i].name);
    double x = overflows[_i].x;

    ck_assert_uint_eq(dtype_encode(t, x, DTYPE_SATURATE), overflows[_i].saturated);
    ck_assert_uint_eq(dtype_encode(t, x, DTYPE_TO_TOP), overflows[_i].to_top);
}
END_TEST

/* bf16 is the upper half of f32, and the compiler knows f32. */
START_TEST(f32_and_bf16_match_compiler)
{
    const struct dtype *f32 = dtype_find("f32"), *bf16 = dtype_find("bf16");
    uint64_t state = 1;

    for (uint32_t code = 0; code < 0x10000; code++)
        REQUIRE(same(dtype_decode(bf16, code), float_of(code << 16)), "0x%x", code);
    for (int i = 0; i < 1000000; i++) {
        uint64_t r = next_random(&state);
        uint64_t bits = (r & ~(UINT64_C(0x7FF) << 52)) | (860 + (r >> 20) % 300) << 52;
        double x;

        if (i & 1) /* close to a midpoint between two floats */
            bits = (bits & ~UINT64_C(0x1FFFFFFF)) + 0x10000000 + (r >> 40) % 3 - 1;
        memcpy(&x, &bits, sizeof x);
        REQUIRE(dtype_encode(f32, x, DTYPE_TO_TOP) == bits_of((float)x), "%a", x);
        REQUIRE(same(dtype_decode(f32, (uint32_t)r), float_of((uint32_t)r)), "0x%x", (uint32_t)r);
    }
}
END_TEST

#ifdef __FLT16_MANT_DIG__ /* the compiler has binary16: an oracle of its own */
__extension__ typedef _Float16 half;

static uint32_t half_bits(double x)
{
    half h = (half)x;
    uint16_t bits;

    memcpy(&bits, &h, sizeof bits);
    return bits;
}

START_TEST(f16_matches_compiler)
{
    const struct dtype *t = dtype_find("f16");
    uint64_t state = 5;

    for (uint32_t code = 0; code < 0x10000; code++) {
        uint16_t bits = (uint16_t)code;
        half h;

        memcpy(&h, &bits, sizeof h);
        REQUIRE(same(dtype_decode(t, code), (double)h), "0x%x", code);
    }
    for (int i = 0; i < 500000; i++) { /* 2^-28 to 2^18, every other one near a midpoint */
        uint64_t r = next_random(&state);
        uint64_t bits = (r & ~(UINT64_C(0x7FF) << 52)) | (995 + (r >> 20) % 46) << 52;
        double x;

        if (i & 1)
            bits = (bits & ~((UINT64_C(1) << 42) - 1)) + (UINT64_C(1) << 41) + (r >> 40) % 3 - 1;
        memcpy(&x, &bits, sizeof x);
        REQUIRE(dtype_encode(t, x, DTYPE_TO_TOP) == half_bits(x), "%a", x);
    }
}
END_TEST
#endif

START_TEST(limits)
{
    const struct dtype *t = &dtypes[_i];
    double e_min = dtype_min_exponent(t), table[256];

    if (t->bits > 8)
        return;
    dtype_table(t, table);
    for (uint32_t code = 0; code <= last_code(t); code++) {
        double magnitude = fabs(table[code]);
        int e;

        REQUIRE(same(table[code], dtype_decode(t, code)), "%s 0x%x", t->name, code);
        if (!isfinite(table[code]) || table[code] == 0.0)
            continue;
        REQUIRE(table[code] <= dtype_max(t), "%s 0x%x", t->name, code);
        frexp(magnitude, &e); /* a multiple of its quantum */
        magnitude /= ldexp(1.0, (int)fmax(e - 1, e_min) - t->man_bits);
        REQUIRE(magnitude == floor(magnitude), "%s 0x%x", t->name, code);
    }
}
END_TEST

/* floatNeXmY for every N and X, with upstream's formula for the maximum, by hand. */
START_TEST(weight_formats)
{
    int n = _i;

    for (int e = 0; e < n; e++) {
        int m = n - 1 - e;
        double max = e ? (2.0 - ldexp(1.0, -m)) * ldexp(1.0, (1 << e) - (1 << (e - 1)))
                       : ldexp(1.0, m) - 1.0;
        const struct dtype *t;
        char name[32];

        (void)snprintf(name, sizeof name, "float%de%dm%d", n, e, m);
        t = dtype_find_weight(name);
        ck_assert_msg(t && t == dtype_find(name), "%s", name);
        ck_assert(t->top == DTYPE_TOP_FINITE && t->is_float && t->is_signed);
        ck_assert(t->bits == n && t->exp_bits == e && t->man_bits == m);
        ck_assert_msg(dtype_max(t) == max, "%s: %a, not %a", name, dtype_max(t), max);
    }
}
END_TEST

START_TEST(integer_formats)
{
    char name[8];
    const struct dtype *t;

    (void)snprintf(name, sizeof name, "int%d", _i);
    t = dtype_find_weight(name);
    ck_assert(t && t->bits == _i && t->is_signed && !t->is_float);
    ck_assert(dtype_max(t) == ldexp(1.0, _i - 1) - 1.0);
    (void)snprintf(name, sizeof name, "uint%d", _i);
    t = dtype_find_weight(name);
    ck_assert(t && t->bits == _i && !t->is_signed && !t->is_float);
    ck_assert(dtype_max(t) == ldexp(1.0, _i) - 1.0);
}
END_TEST

START_TEST(names_unique)
{
    for (int i = 0; i < dtype_count; i++) {
        const struct dtype *t = &dtypes[i];

        ck_assert_ptr_eq(dtype_find(t->name), t);
        if (t->alias)
            ck_assert_ptr_eq(dtype_find(t->alias), t);
        ck_assert(t->source && t->source[0]);
        ck_assert_int_eq(t->bits, t->is_signed + t->exp_bits + t->man_bits);
    }
    ck_assert_ptr_null(dtype_find(""));
    ck_assert_ptr_null(dtype_find("e4m3 "));
    ck_assert_ptr_null(dtype_find("int9"));
    ck_assert_ptr_null(dtype_find("float4e4m0"));
    ck_assert_ptr_null(dtype_find_weight("nothing"));
}
END_TEST

/* clang-format off */
static const struct {
    const char *name, *weight; /* NULL: none */
    int32_t id;
} roles[] = {
    {"uint8", "uint8", 10080000},     {"int8",  "int8",       11080000},
    {"e2m1",  "e2m1",  21040201},     {"e4m3",  "float8e4m3", 21080403},
    {"e5m2",  "float8e5m2", 21080502}, {"e3m4", "float8e3m4", 21080304},
    {"e8m0",  NULL,    20080800},     {"f16",   NULL,         21160510},
    {"bf16",  NULL,    21160807},     {"f32",   NULL,         21320823},
    {"e5m3",  NULL,    20080503},     {"e0m3",  "e0m3",       21040003},
    {"int4",  "int4",  11040000},     {"uint1", "uint1",      10010000},
    {"float4e2m1", "e2m1", 21040201}, {"float8e4m3", "float8e4m3", 21080403},
};
/* clang-format on */

START_TEST(ids_and_roles)
{
    const struct dtype *t = dtype_find(roles[_i].name);
    const struct dtype *w = dtype_find_weight(roles[_i].name);

    ck_assert_int_eq(dtype_id(t), roles[_i].id);
    ck_assert_ptr_eq(dtype_find_id(roles[_i].id, true), w);
    if (roles[_i].weight)
        ck_assert_ptr_eq(w, dtype_find(roles[_i].weight));
    else
        ck_assert_ptr_null(w);
}
END_TEST

/* Two rows with one id: the first not finite, the second finite; never three. */
START_TEST(ids_unique)
{
    for (int i = 0; i < dtype_count; i++) {
        const struct dtype *t = &dtypes[i];
        int finite = 0, other = 0;

        for (int j = 0; j < dtype_count; j++) {
            if (dtype_id(&dtypes[j]) != dtype_id(t))
                continue;
            if (dtypes[j].top == DTYPE_TOP_FINITE)
                finite++;
            else
                other++;
        }
        ck_assert_msg(finite <= 1 && other <= 1, "%s", t->name);
        ck_assert_ptr_eq(dtype_find_id(dtype_id(t), other == 0 || t->top == DTYPE_TOP_FINITE), t);
    }
    ck_assert_ptr_null(dtype_find_id(0, false));
    ck_assert_ptr_null(dtype_find_id(21090403, false));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("dtype");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_loop_test(tc, constants, 0, COUNT(published));
    tcase_add_loop_test(tc, roundtrip, 0, dtype_count);
    tcase_add_loop_test(tc, order_and_ties, 0, dtype_count);
    tcase_add_loop_test(tc, nearest_by_search, 0, dtype_count);
    tcase_add_loop_test(tc, overflow, 0, COUNT(overflows));
    tcase_add_test(tc, f32_and_bf16_match_compiler);
#ifdef __FLT16_MANT_DIG__
    tcase_add_test(tc, f16_matches_compiler);
#endif
    tcase_add_loop_test(tc, limits, 0, dtype_count);
    tcase_add_loop_test(tc, weight_formats, 2, 9);
    tcase_add_loop_test(tc, integer_formats, 1, 9);
    tcase_add_test(tc, names_unique);
    tcase_add_loop_test(tc, ids_and_roles, 0, COUNT(roles));
    tcase_add_test(tc, ids_unique);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
