#include "kernels/cpu/ops.h"
#include "kernels/test/ops_tensor.h"
#include "kernels/test/oracle.h"

#include <math.h>

static char reason[HUM_REASON_BYTES];

/* ---- pack and unpack ------------------------------------------------------------------------- */

/* Bit b of the stream of a row, as the format defines it. */
static unsigned stream_bit(const uint32_t *words, int64_t b)
{
    return words[b / 32] >> b % 32 & 1u;
}

START_TEST(packs_and_unpacks)
{
    const int bits = _i;
    uint64_t state = (uint64_t)bits;

    for (int64_t cols = 32; cols <= 1024; cols += 32) {
        struct hum_tensor codes = tensor_make(HUM_INT32, 2, 3, cols, 0);
        struct hum_tensor packed = tensor_make(HUM_INT32, 2, 3, cols * bits / 32, 0);
        struct hum_tensor back = tensor_make(HUM_INT32, 2, 3, cols, 0);
        struct hum_pack_args pack = {bits, codes, packed}, unpack = {bits, back, packed};
        uint32_t *c = codes.data, *words = packed.data, *b = back.data;

        for (int64_t i = 0; i < 3 * cols; i++) /* with upper bits that do not count */
            c[i] = (uint32_t)next_random(&state);
        ck_assert_int_eq(hum_cpu_ops.pack(NULL, &pack, reason), HUM_OK);
        ck_assert_int_eq(hum_cpu_ops.unpack(NULL, &unpack, reason), HUM_OK);
        for (int64_t i = 0; i < 3 * cols; i++)
            for (int j = 0; j < 32; j++) {
                const int64_t at = i % cols * bits + j;
                const unsigned want = j < bits ? c[i] >> j & 1u : 0;

                REQUIRE((b[i] >> j & 1u) == want, "unpacked code %d bit %d", (int)i, j);
                REQUIRE(j >= bits || stream_bit(words + i / cols * (cols * bits / 32), at) == want,
                        "packed code %d bit %d", (int)i, j);
            }
        ck_assert(tensor_guard_intact(&packed) && tensor_guard_intact(&back));
        free(codes.data);
        free(packed.data);
        free(back.data);
    }
}
END_TEST

START_TEST(refuses_to_pack)
{
    struct hum_tensor codes = tensor_make(HUM_INT32, 2, 2, 64, 0);
    struct hum_tensor packed = tensor_make(HUM_INT32, 2, 2, 8, 0);
    const struct hum_pack_args good = {4, codes, packed};
    struct hum_pack_args bad[10];

    for (int i = 0; i < COUNT(bad); i++)
        bad[i] = good;
    bad[0].bits = 0;
    bad[1].bits = 9;
    bad[2].packed.shape[1] = 7;
    bad[3].codes.dtype = HUM_INT64;
    bad[4].codes.shape[1] = 63;
    bad[5].packed.bytes -= 4;
    bad[6].packed.data = (char *)packed.data + 4;
    bad[7].packed.data = codes.data;
    bad[8].codes.shape[0] = -1;
    bad[9].codes.shape[0] = INT64_MAX;
    for (int i = 0; i < COUNT(bad); i++) {
        reason[0] = 0;
        ck_assert_int_eq(hum_cpu_ops.pack(NULL, &bad[i], reason), HUM_INVALID);
        ck_assert_int_ne(reason[0], 0);
        ck_assert_int_eq(hum_cpu_ops.unpack(NULL, &bad[i], reason), HUM_INVALID);
        ck_assert(tensor_untouched(&packed) && tensor_untouched(&codes));
    }
    ck_assert_int_eq(hum_cpu_ops.pack(NULL, NULL, reason), HUM_INVALID);
    ck_assert_int_eq(hum_cpu_ops.pack(NULL, &good, reason), HUM_OK);
    free(codes.data);
    free(packed.data);
}
END_TEST

/* ---- dequant_weight -------------------------------------------------------------------------- */

/* Every code of every format, by the scaling that the page states. */
START_TEST(dequantizes_every_code)
{
    for (int bits = 2; bits <= 8; bits++)
        for (int x = 1; x < bits; x++) {
            const int y = bits - 1 - x, count = 1 << bits;
            const int32_t dtype = HUM_FLOAT(bits, x, y);
            struct hum_tensor codes = tensor_make(HUM_INT32, 1, count, 0, 0);
            struct hum_tensor out = tensor_make(HUM_F32, 1, count, 0, 0);
            const struct hum_dequant_weight_args a = {codes, dtype, out};
            const float *got = out.data;

            for (int c = 0; c < count; c++)
                ((int32_t *)codes.data)[c] = c;
            ck_assert_int_eq(hum_cpu_ops.dequant_weight(NULL, &a, reason), HUM_OK);
            for (int c = 0; c < count; c++) {
                const uint32_t u = (uint32_t)(c & (count / 2 - 1)) << (23 - y);
                const bool negative = c >= count / 2;
                float pattern;

                memcpy(&pattern, &u, sizeof u);
                ck_assert(got[c] == (negative ? -1 : 1) * ldexpf(pattern, 128 - (1 << (x - 1))));
                ck_assert((signbit(got[c]) != 0) == negative);
            }
            ck_assert(tensor_guard_intact(&out));
            free(codes.data);
            free(out.data);
        }
}
END_TEST

/* OCP 8-bit and MX specifications; float4e1m2, float8e4m3's all-ones code: upstream's generic
 * floats. */
static const struct {
    int32_t dtype;
    int code;
    float value;
} published[] = {
    {HUM_E4M3, 0x7e, 448.0f},
    {HUM_E4M3, 0x7f, 480.0f},
    {HUM_E4M3, 0x01, 0x1p-9f},
    {HUM_E5M2, 0x7b, 57344.0f},
    {HUM_E2M1, 0x7, 6.0f},
    {HUM_E2M1, 0x9, -0.5f},
    {HUM_FLOAT(6, 3, 2), 0x1f, 28.0f},
    {HUM_FLOAT(6, 2, 3), 0x1f, 7.5f},
    {HUM_FLOAT(4, 1, 2), 0x7, 3.5f},
    {HUM_FLOAT(4, 3, 0), 0x7, 16.0f},
};

START_TEST(dequantizes_published_values)
{
    struct hum_tensor codes = tensor_make(HUM_INT32, 1, 1, 0, 0);
    struct hum_tensor out = tensor_make(HUM_F32, 1, 1, 0, 0);
    const struct hum_dequant_weight_args a = {codes, published[_i].dtype, out};

    *(int32_t *)codes.data = published[_i].code;
    ck_assert_int_eq(hum_cpu_ops.dequant_weight(NULL, &a, reason), HUM_OK);
    ck_assert(*(float *)out.data == published[_i].value);
    free(codes.data);
    free(out.data);
}
END_TEST

START_TEST(refuses_to_dequantize)
{
    static const int32_t formats[] = {HUM_E8M0, HUM_E5M3, HUM_E0M3, HUM_F16,           HUM_INT8,
                                      0,        -1,       12345,    HUM_FLOAT(8, 4, 4)};
    struct hum_tensor codes = tensor_make(HUM_INT32, 1, 8, 0, 0);
    struct hum_tensor out = tensor_make(HUM_F32, 1, 8, 0, 0);
    struct hum_dequant_weight_args a = {codes, HUM_E4M3, out};

    for (int i = 0; i < COUNT(formats); i++) {
        a.source_dtype = formats[i];
        ck_assert_int_eq(hum_cpu_ops.dequant_weight(NULL, &a, reason), HUM_INVALID);
    }
    a.source_dtype = HUM_E4M3;
    a.outputs.shape[0] = 7;
    ck_assert_int_eq(hum_cpu_ops.dequant_weight(NULL, &a, reason), HUM_INVALID);
    ck_assert_int_eq(hum_cpu_ops.dequant_weight(NULL, NULL, reason), HUM_INVALID);
    ck_assert(tensor_untouched(&out));
    free(codes.data);
    free(out.data);
}
END_TEST

/* ---- process_mxfp4 --------------------------------------------------------------------------- */

/* docs/semantics-ops.md section 4, as printed there. */
static const int requantized[4][8] = {
    {0, 1, 2, 3, 4, 5, 6, 7},
    {0, 1, 1, 2, 2, 3, 4, 5},
    {0, 0, 1, 1, 1, 2, 2, 3},
    {0, 0, 0, 0, 1, 1, 1, 2},
};

/* Nearest e2m1 of value x 2^-delta, ties away from zero, by search from the largest down. */
static int nearest_e2m1(int magnitude, int delta)
{
    const double x = ldexp(oracle_decode(HUM_E2M1, (uint32_t)magnitude, true), -delta);
    int best = 7;

    for (int c = 6; c >= 0; c--)
        if (fabs(oracle_decode(HUM_E2M1, (uint32_t)c, true) - x) <
            fabs(oracle_decode(HUM_E2M1, (uint32_t)best, true) - x))
            best = c;
    return best;
}

START_TEST(mxfp4_tables)
{
    for (int delta = 0; delta < 4; delta++)
        for (int c = 0; c < 8; c++)
            ck_assert_int_eq(nearest_e2m1(c, delta), requantized[delta][c]);
}
END_TEST

struct mxfp4_shape {
    int32_t a_dtype, range;
    bool per_row;
    int64_t rows, groups, size;
};

static const struct mxfp4_shape mxfp4_shapes[] = {
    {HUM_E4M3, 0, false, 8, 8, 32}, {HUM_E4M3, 0, true, 8, 8, 32},  {HUM_INT8, 0, false, 8, 4, 32},
    {HUM_INT8, 0, true, 8, 4, 32},  {HUM_E4M3, 1, true, 3, 6, 16},  {HUM_INT8, 255, true, 2, 3, 24},
    {HUM_E4M3, 12, false, 1, 1, 8}, {HUM_INT8, 2, false, 2, 16, 4},
};

static int base_of(const uint8_t *s, int64_t count, int range)
{
    int high = 0, low = 255;

    for (int64_t i = 0; i < count; i++) {
        high = s[i] > high ? s[i] : high;
        low = s[i] < low ? s[i] : low;
    }
    return low > high - range ? low : high - range;
}

static void check_mxfp4(const struct mxfp4_shape *s, int spread, uint64_t seed)
{
    const int64_t k = s->groups * s->size;
    struct hum_tensor w = tensor_make(HUM_INT32, 2, s->rows, k / 8, 0);
    struct hum_tensor scale = tensor_make(HUM_E8M0, 2, s->rows, s->groups, 0);
    struct hum_tensor factor = tensor_make(HUM_F32, 1, s->per_row ? s->rows : 1, 0, 0);
    const struct hum_process_mxfp4_args a = {s->a_dtype, s->range, s->per_row, w, scale, factor};
    uint8_t *scales = scale.data, *words = w.data;
    struct hum_tensor old_w, old_s;
    const int range = s->range ? s->range : s->a_dtype == HUM_INT8 ? 3 : 11;

    for (size_t i = 0; i < w.bytes; i++)
        words[i] = (uint8_t)next_random(&seed);
    for (size_t i = 0; i < scale.bytes; i++)
        scales[i] = (uint8_t)(100 + (int)(next_random(&seed) % (uint64_t)(spread + 1)));
    old_w = tensor_copy(&w);
    old_s = tensor_copy(&scale);
    ck_assert_int_eq(hum_cpu_ops.process_mxfp4(NULL, &a, reason), HUM_OK);
    for (int64_t n = 0; n < s->rows; n++) {
        const uint8_t *old = (const uint8_t *)old_s.data + (s->per_row ? n * s->groups : 0);
        const int base = base_of(old, s->groups * (s->per_row ? 1 : s->rows), range);

        ck_assert(((float *)factor.data)[s->per_row ? n : 0] == ldexpf(1.0f, base - 127));
        for (int64_t i = 0; i < k; i++) {
            const int64_t at = n * s->groups + i / s->size, e = n * k + i;
            const int was = ((const uint8_t *)old_s.data)[at];
            const int code = ((const uint8_t *)old_w.data)[e / 2] >> e % 2 * 4 & 15;
            const int got = words[e / 2] >> e % 2 * 4 & 15;
            const int want = nearest_e2m1(code & 7, was < base ? base - was : 0);

            REQUIRE(got == (want ? want | (code & 8) : 0), "code %d scale %d: %d", code, was, got);
            REQUIRE(scales[at] == (was < base ? 0 : was - base), "scale %d", was);
        }
    }
    ck_assert(tensor_guard_intact(&w) && tensor_guard_intact(&scale) &&
              tensor_guard_intact(&factor));
    free(w.data);
    free(scale.data);
    free(factor.data);
    free(old_w.data);
    free(old_s.data);
}

START_TEST(mxfp4_follows_the_page)
{
    static const int spreads[] = {0, 1, 3, 4, 5, 11, 12, 14, 17, 40, 155};

    for (int i = 0; i < COUNT(spreads); i++)
        check_mxfp4(&mxfp4_shapes[_i], spreads[i], (uint64_t)_i * 100 + (uint64_t)i);
}
END_TEST

START_TEST(refuses_mxfp4)
{
    struct hum_tensor w = tensor_make(HUM_INT32, 2, 2, 8, 0);
    struct hum_tensor scale = tensor_make(HUM_E8M0, 2, 2, 2, 0);
    struct hum_tensor factor = tensor_make(HUM_F32, 1, 1, 0, 0);
    const struct hum_process_mxfp4_args good = {HUM_E4M3, 0, false, w, scale, factor};
    struct hum_process_mxfp4_args bad[7];

    for (int i = 0; i < COUNT(bad); i++)
        bad[i] = good;
    bad[0].a_dtype = HUM_E5M2;
    bad[1].range = -1;
    bad[2].per_row = true;
    bad[3].scale.shape[1] = 3;
    bad[4].scale.dtype = HUM_E4M3;
    bad[5].factor.data = scale.data;
    bad[6].weight.rank = 3;
    for (int i = 0; i < COUNT(bad); i++) {
        ck_assert_int_eq(hum_cpu_ops.process_mxfp4(NULL, &bad[i], reason), HUM_INVALID);
        ck_assert(tensor_untouched(&w) && tensor_untouched(&scale) && tensor_untouched(&factor));
    }
    ck_assert_int_eq(hum_cpu_ops.process_mxfp4(NULL, NULL, reason), HUM_INVALID);
    ck_assert_int_eq(hum_cpu_ops.process_mxfp4(NULL, &good, reason), HUM_OK);
    free(w.data);
    free(scale.data);
    free(factor.data);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cpu_ops_weights");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, packs_and_unpacks, 1, 9);
    tcase_add_test(tc, refuses_to_pack);
    tcase_add_test(tc, dequantizes_every_code);
    tcase_add_loop_test(tc, dequantizes_published_values, 0, COUNT(published));
    tcase_add_test(tc, refuses_to_dequantize);
    tcase_add_test(tc, mxfp4_tables);
    tcase_add_loop_test(tc, mxfp4_follows_the_page, 0, COUNT(mxfp4_shapes));
    tcase_add_test(tc, refuses_mxfp4);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
