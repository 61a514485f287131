#include "kernels/cpu/format.h"
#include "kernels/cpu/round.h"
#include "kernels/cpu/vector.h"
#include "kernels/test/oracle.h"
#include "kernels/test/sample.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

/* Check notes every assertion on disk; millions of them are noted only when they fail. */
#define REQUIRE(condition, ...)        \
    do {                               \
        if (!(condition))              \
            ck_abort_msg(__VA_ARGS__); \
    } while (0)

static const int32_t formats_16[] = {HUM_F16, HUM_BF16};

static bool same_float(float x, float y)
{
    return isnan(x) ? isnan(y) : float_bits(x) == float_bits(y);
}

/* The number with a code, and for infinity's code the number that would follow the largest. */
static double number(int32_t dtype, uint32_t code, uint32_t infinity)
{
    return code < infinity ? oracle_decode(dtype, code, false)
                           : ldexp(1.0, dtype == HUM_F16 ? 16 : 128);
}

static void check_round(int32_t dtype, double x, uint32_t code)
{
    const float want = decode_16(dtype, (uint16_t)code);

    if ((double)(float)x == x)
        REQUIRE(same_float(round_16(dtype, (float)x), want), "f32 %a", x);
    REQUIRE(same_float(round_16_double(dtype, x), want), "double %a", x);
}

/* Every number, every tie, and both neighbours of every tie in f32 and in double. */
START_TEST(rounds_to_nearest_even)
{
    const int32_t dtype = formats_16[_i];
    const uint32_t infinity = dtype == HUM_F16 ? 0x7c00u : 0x7f80u;

    for (uint32_t code = 0; code < infinity; code++)
        for (uint32_t negative = 0; negative < 2; negative++) {
            const double s = negative ? -1 : 1, low = s * number(dtype, code, infinity);
            const double high = s * number(dtype, code + 1, infinity), tie = (low + high) / 2;
            const uint32_t down = code | negative << 15, to_high = down + 1;

            check_round(dtype, low, down);
            check_round(dtype, tie, down + (code & 1u));
            check_round(dtype, nextafter(tie, low), down);
            check_round(dtype, nextafter(tie, high), to_high);
            if (low != 0.0 || dtype == HUM_F16) {
                check_round(dtype, (double)nextafterf((float)tie, (float)low), down);
                if (fabs(high) < 0x1p128)
                    check_round(dtype, (double)nextafterf((float)tie, (float)high), to_high);
            }
        }
}
END_TEST

START_TEST(rounds_what_is_not_a_number)
{
    for (int i = 0; i < 2; i++) {
        ck_assert(isnan(round_16(formats_16[i], NAN)));
        ck_assert(isnan(round_16(formats_16[i], -NAN)));
        ck_assert(isnan(round_16(formats_16[i], bits_float(0x7f800001u))));
        ck_assert(same_float(round_16(formats_16[i], INFINITY), INFINITY));
        ck_assert(same_float(round_16(formats_16[i], -INFINITY), -INFINITY));
        ck_assert(isinf(round_16(formats_16[i], 3.4028235e38f)));
        ck_assert(isnan(round_16_double(formats_16[i], (double)NAN)));
        ck_assert(isinf(round_16_double(formats_16[i], 0x1p1000)));
    }
    ck_assert(same_float(round_f16(-0.0f), -0.0f));
    ck_assert(same_float(round_f16(65519.996f), 65504.0f));
    ck_assert(isinf(round_f16(65520.0f)));
}
END_TEST

START_TEST(codes_round_trip)
{
    const int32_t dtype = formats_16[_i];

    for (uint32_t code = 0; code < 0x10000u; code++) {
        const float x = decode_16(dtype, (uint16_t)code);
        const double want = oracle_decode(dtype, code, false);

        const uint16_t nan = dtype == HUM_F16 ? 0x7e00 : 0x7fc0;

        REQUIRE(want != want ? isnan(x) : (double)x == want && !signbit(x) == !signbit(want),
                "code %x is %a", code, (double)x);
        REQUIRE(same_float(format_decode(dtype, code, FORMAT_NUMBER), x), "code %x", code);
        REQUIRE(encode_16(dtype, x) == (isnan(x) ? nan : code), "code %x back", code);
    }
}
END_TEST

/* Every code of every weight format, and of every other format in its own role. */
START_TEST(decodes_all_formats)
{
    static const int32_t numbers[] = {HUM_E4M3, HUM_E5M2, HUM_E3M4, HUM_E2M1, HUM_E0M3,
                                      HUM_E8M0, HUM_E5M3, HUM_INT8, HUM_INT4};

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        for (uint32_t code = 0; code < 1u << hum_dtype_bits(numbers[i]); code++)
            ck_assert(same_float(format_decode(numbers[i], code, FORMAT_NUMBER),
                                 (float)oracle_decode(numbers[i], code, false)));
    for (int bits = 2; bits <= 8; bits++)
        for (int e = 0; e < bits; e++) {
            const int32_t dtype = HUM_FLOAT(bits, e, bits - 1 - e);

            ck_assert(format_is_known(dtype));
            for (uint32_t code = 0; code < 1u << bits; code++)
                ck_assert(same_float(format_decode(dtype, code, FORMAT_WEIGHT),
                                     (float)oracle_decode(dtype, code, true)));
        }
}
END_TEST

/* Published constants: OCP 8-bit and MX specifications, and generic decoding of the same codes. */
static const struct {
    int32_t dtype;
    uint32_t code;
    enum format_role role;
    float value;
} constants[] = {
    {HUM_E4M3, 0x7e, FORMAT_NUMBER, 448.0f},       {HUM_E4M3, 0x7f, FORMAT_WEIGHT, 480.0f},
    {HUM_E4M3, 0x01, FORMAT_NUMBER, 0x1p-9f},      {HUM_E5M2, 0x7b, FORMAT_NUMBER, 57344.0f},
    {HUM_E5M2, 0x7c, FORMAT_NUMBER, INFINITY},     {HUM_E5M2, 0x7c, FORMAT_WEIGHT, 65536.0f},
    {HUM_E5M2, 0x01, FORMAT_NUMBER, 0x1p-16f},     {HUM_E3M4, 0x7e, FORMAT_NUMBER, 30.0f},
    {HUM_E2M1, 0x7, FORMAT_NUMBER, 6.0f},          {HUM_E2M1, 0x9, FORMAT_NUMBER, -0.5f},
    {HUM_E0M3, 0xf, FORMAT_NUMBER, -7.0f},         {HUM_E8M0, 0x00, FORMAT_NUMBER, 0x1p-127f},
    {HUM_E8M0, 0xfe, FORMAT_NUMBER, 0x1p127f},     {HUM_E8M0, 0xff, FORMAT_NUMBER, NAN},
    {HUM_E5M3, 0xfe, FORMAT_NUMBER, 114688.0f},    {HUM_E5M3, 0xff, FORMAT_NUMBER, NAN},
    {HUM_INT8, 0x80, FORMAT_NUMBER, -128.0f},      {HUM_INT4, 0x8, FORMAT_NUMBER, -8.0f},
    {HUM_FLOAT(4, 1, 2), 7, FORMAT_WEIGHT, 3.5f},  {HUM_FLOAT(4, 3, 0), 7, FORMAT_WEIGHT, 16.0f},
    {HUM_FLOAT(6, 2, 3), 31, FORMAT_WEIGHT, 7.5f}, {HUM_FLOAT(6, 3, 2), 31, FORMAT_WEIGHT, 28.0f},
};

START_TEST(published_constants)
{
    ck_assert(same_float(format_decode(constants[_i].dtype, constants[_i].code, constants[_i].role),
                         constants[_i].value));
}
END_TEST

START_TEST(knows_the_grammar)
{
    ck_assert(format_is_known(HUM_UINT(3)));
    ck_assert(format_is_known(HUM_E8M0));
    ck_assert(!format_is_known(0));
    ck_assert(!format_is_known(-HUM_UINT(3)));
    ck_assert(!format_is_known(HUM_UINT(3) + 1));
    ck_assert(!format_is_known(HUM_FLOAT(8, 4, 4)));
    ck_assert(!format_is_known(HUM_FLOAT(8, 4, 3) + 10000000));
}
END_TEST

/* Random operands, and products on a tie that a far smaller addend decides. */
START_TEST(fma_rounds_once)
{
    const int32_t c = formats_16[_i];
    uint64_t state = 1;

    for (int i = 0; i < 60000; i++) {
        const uint64_t r = sample_random(&state);
        const float x = decode_16(c, (uint16_t)r), y = decode_16(c, (uint16_t)(r >> 16));
        float z = decode_16(c, (uint16_t)(r >> 32)), got;
        double want;

        if (i % 3 == 0) /* close to the product: cancellation and ties */
            z = round_16(c, -x * y * (1.0f + (float)(r >> 48 & 3u) * 0x1p-10f));
        got = fma_16(c, x, y, z);
        want = oracle_fma(c, (double)x, (double)y, (double)z);
        REQUIRE(want != want ? isnan(got) : (double)got == want, "%a %a %a: %a, not %a", (double)x,
                (double)y, (double)z, (double)got, want);
        if (c == HUM_F16)
            REQUIRE(same_float(fma_f16(x, y, z), got), "in f32: %a %a %a", (double)x, (double)y,
                    (double)z);
    }
    /* 7/4 x 37/32 = 259/128 lies between 129/64 and 130/64 */
    ck_assert(fma_16(HUM_BF16, 1.75f, 1.15625f, 0.0f) == 2.03125f);
    ck_assert(fma_16(HUM_BF16, 1.75f, 1.15625f, 0x1p-120f) == 2.03125f);
    ck_assert(fma_16(HUM_BF16, 1.75f, 1.15625f, -0x1p-120f) == 2.015625f);
}
END_TEST

/* RN(q - zp) through f32 is one rounding: every 8-bit q, every 16-bit zero point. */
START_TEST(floating_zero_points_round_once)
{
    const int32_t a = formats_16[_i];
    _Alignas(64) float lut[256], zero[PANEL], out[256 * PANEL];
    _Alignas(64) uint8_t codes[256 * PANEL];
    const struct dequantize d = {.codes = codes,
                                 .lut = lut,
                                 .zero = zero,
                                 .round = a,
                                 .zero_rounds = true,
                                 .k_count = 256,
                                 .out = out};
    const struct vector_ops *best = vector_ops_get(1) ? vector_ops_get(1) : vector_ops_get(0);

    for (int i = 0; i < 256 * PANEL; i++)
        codes[i] = (uint8_t)(i / PANEL);
    for (int i = 0; i < 256; i++)
        lut[i] = (float)i;
    for (uint32_t code = 0; code < 0x10000u; code += PANEL) {
        for (uint32_t j = 0; j < PANEL; j++)
            zero[j] = decode_16(a, (uint16_t)(code + j));
        best->dequantize(&d);
        for (int i = 0; i < 256 * PANEL; i++) {
            const float want = fma_16(a, -1.0f, zero[i % PANEL], lut[i / PANEL]);

            REQUIRE(isnan(want) ? isnan(out[i]) : out[i] == want, "%d - %a", i / PANEL,
                    (double)zero[i % PANEL]);
        }
    }
}
END_TEST

/* RN(v x s) likewise: every code of a format that spans bf16's range, or f16's; every fifth
 * scale. */
START_TEST(scales_round_once)
{
    const int32_t a = formats_16[_i];
    const int32_t b = a == HUM_F16 ? HUM_FLOAT(8, 5, 2) : HUM_FLOAT(8, 6, 1);
    _Alignas(64) float lut[256], scale[PANEL], out[256 * PANEL];
    _Alignas(64) uint8_t codes[256 * PANEL];
    const struct dequantize d = {
        .codes = codes, .lut = lut, .scale = scale, .round = a, .k_count = 256, .out = out};

    for (int i = 0; i < 256 * PANEL; i++)
        codes[i] = (uint8_t)(i / PANEL);
    for (uint32_t i = 0; i < 256; i++)
        lut[i] = format_decode(b, i, FORMAT_WEIGHT);
    for (uint32_t code = 0; code + 5 * PANEL < 0x10000u; code += 5 * PANEL) {
        for (uint32_t j = 0; j < PANEL; j++)
            scale[j] = decode_16(a, (uint16_t)(code + 5 * j));
        vector_ops_get(0)->dequantize(&d);
        for (int i = 0; i < 256 * PANEL; i++) {
            const float want =
                round_16_double(a, (double)lut[i / PANEL] * (double)scale[i % PANEL]);

            REQUIRE(isnan(want) ? isnan(out[i]) : out[i] == want, "%a x %a", (double)lut[i / PANEL],
                    (double)scale[i % PANEL]);
        }
    }
}
END_TEST

/* One set's multiplication against plain scalar code, all numbers of rows up to two register
 * blocks. */
static void check_multiply(const struct vector_ops *ops, int64_t rows, int64_t k_count,
                           int64_t round_k)
{
    const int64_t stride = INT64_C(2) * PANEL;
    static _Alignas(64) float a[16 * STEP_K], w[2 * STEP_K * PANEL];
    static _Alignas(64) float c[32 * PANEL], want[32 * PANEL];
    const struct multiply t = {.a = a,
                               .w = w,
                               .c = c,
                               .a_stride = STEP_K,
                               .c_stride = stride,
                               .rows = rows,
                               .panels = 2,
                               .k_count = k_count,
                               .round_k = round_k};
    uint64_t state = (uint64_t)rows;

    for (int64_t i = 0; i < (int64_t)16 * STEP_K; i++)
        a[i] = round_f16((float)(int32_t)sample_random(&state) * 0x1p-29f);
    for (int64_t i = 0; i < (int64_t)2 * STEP_K * PANEL; i++)
        w[i] = round_f16((float)(int32_t)sample_random(&state) * 0x1p-30f);
    for (int64_t i = 0; i < 16 * stride; i++)
        want[i] = c[i] = (float)(i % 7);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < stride; j++)
            for (int64_t k = 0; k < k_count; k++) {
                float *x = &want[r * stride + j];

                *x += a[r * STEP_K + k] * w[(j / PANEL * STEP_K + k) * PANEL + j % PANEL];
                if (round_k && ((k + 1) % round_k == 0 || k + 1 == k_count))
                    *x = round_f16(*x);
            }
    ops->multiply(&t);
    ck_assert_mem_eq(c, want, sizeof c);
}

START_TEST(multiplies_in_order)
{
    for (int set = 0; vector_ops_get(set); set++)
        for (int64_t rows = 1; rows <= 14; rows++) {
            check_multiply(vector_ops_get(set), rows, STEP_K, 0);
            check_multiply(vector_ops_get(set), rows, 24, 0);
            check_multiply(vector_ops_get(set), rows, STEP_K, 16);
            check_multiply(vector_ops_get(set), rows, 40, 16);
        }
}
END_TEST

/* Flushes against scalar code, with the factors that exist: bit 0 a row's, bit 1 a column's. */
START_TEST(flushes_with_one_rounding)
{
    enum { ROWS = 3 };
    _Alignas(64) float c0[ROWS * PANEL], c1[ROWS * PANEL], col[PANEL], row[ROWS];
    float want[ROWS * PANEL];
    uint64_t state = 3;

    for (int trial = 0; trial < 4000; trial++) {
        const struct vector_ops *ops =
            vector_ops_get(trial % 2) ? vector_ops_get(trial % 2) : vector_ops_get(0);
        const bool f16 = trial / 2 % 2, has_row = _i & 1, has_col = _i & 2;
        const struct flush f = {.c0 = c0,
                                .c1 = c1,
                                .row = has_row ? row : NULL,
                                .col = has_col ? col : NULL,
                                .rows = ROWS,
                                .columns = PANEL,
                                .stride = PANEL};

        for (int i = 0; i < ROWS; i++)
            row[i] = (float)(int32_t)sample_random(&state) * 0x1p-31f;
        for (int i = 0; i < PANEL; i++)
            col[i] = (float)(int32_t)sample_random(&state) * 0x1p-30f;
        for (int i = 0; i < ROWS * PANEL; i++) {
            const float r = has_row ? row[i / PANEL] : 1.0f, s = has_col ? col[i % PANEL] : 1.0f;

            c0[i] = round_f16((float)(int32_t)sample_random(&state) * 0x1p-24f);
            c1[i] = round_f16((float)(int32_t)sample_random(&state) * 0x1p-26f);
            want[i] = fmaf(r * s, c0[i], c1[i]);
            if (f16)
                want[i] = fma_16(HUM_F16, round_f16(round_f16(r) * round_f16(s)), c0[i], c1[i]);
        }
        (f16 ? ops->flush_f16 : ops->flush_f32)(&f);
        for (int i = 0; i < ROWS * PANEL; i++)
            REQUIRE(c1[i] == want[i] && c0[i] == 0.0f, "%a, not %a", (double)c1[i],
                    (double)want[i]);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cpu_numbers");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, rounds_to_nearest_even, 0, 2);
    tcase_add_test(tc, rounds_what_is_not_a_number);
    tcase_add_loop_test(tc, codes_round_trip, 0, 2);
    tcase_add_test(tc, decodes_all_formats);
    tcase_add_loop_test(tc, published_constants, 0, (int)(sizeof constants / sizeof constants[0]));
    tcase_add_test(tc, knows_the_grammar);
    tcase_add_loop_test(tc, fma_rounds_once, 0, 2);
    tcase_add_loop_test(tc, floating_zero_points_round_once, 0, 2);
    tcase_add_loop_test(tc, scales_round_once, 0, 2);
    tcase_add_test(tc, multiplies_in_order);
    tcase_add_loop_test(tc, flushes_with_one_rounding, 1, 4);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
