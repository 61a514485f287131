#include "reference/gemm.h"
#include "reference/rng.h"
#include "reference/test/expect.h"
#include "reference/test/slow_gemm.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(x) ((int)(sizeof(x) / sizeof(x)[0]))

static uint64_t word(uint64_t i)
{
    return rng_word(5, RNG_TEST, i);
}

/* ---- problems -------------------------------------------------------------------------------- */

enum { M = 3, N = 5, K = 70, INPUTS = 8 };

struct problem {
    struct ref_gemm p;
    uint16_t a[M * K], zero[N * INPUTS], bias[N];
    uint8_t b[N * K];
    float input_scale[M * INPUTS];
    uint32_t bs[N * INPUTS], scale_2[N];
};

static void make(struct problem *q, const struct ref_gemm *p, uint64_t seed, bool special)
{
    uint64_t i = seed << 20;

    q->p = *p;
    for (int j = 0; j < M * K; j++)
        q->a[j] = (uint16_t)any_code(p->a, word(i++), special);
    for (int j = 0; j < N * K; j++)
        q->b[j] = (uint8_t)(word(i++) >> 13 & ((1u << p->b->bits) - 1));
    for (int j = 0; j < N * INPUTS; j++) {
        q->bs[j] = any_code(p->bs, word(i++), special);
        q->zero[j] = (uint16_t)(p->zero == REF_ZERO_INT ? word(i++) >> 20 & ((1u << p->b->bits) - 1)
                                                        : any_code(p->a, word(i++), special));
        if (p->zero == REF_ZERO_FLOAT && j % 2) /* of the size of a code */
            q->zero[j] =
                (uint16_t)dtype_encode(p->a, (double)(word(i++) >> 50) / 64.0, DTYPE_TO_TOP);
    }
    for (int j = 0; j < M * INPUTS; j++)
        q->input_scale[j] = any_f32(word(i++), special);
    for (int j = 0; j < N; j++) {
        q->scale_2[j] = any_code(p->scale_2 == REF_SCALE_2_TENSOR ? dtype_find("f32") : p->c,
                                 word(i++), special);
        q->bias[j] = (uint16_t)any_code(p->c, word(i++), special);
    }
    q->p.a_codes = q->a;
    q->p.b_codes = q->b;
    q->p.input_scale = p->a->bits == 16 ? NULL : q->input_scale;
    q->p.bs_codes = q->bs;
    q->p.zero_codes = p->zero == REF_ZERO_NONE ? NULL : q->zero;
    q->p.scale_2_codes = q->scale_2;
    q->p.bias_codes = q->bias;
}

static void check_operands(const struct problem *q)
{
    const struct ref_gemm *p = &q->p;
    float a[M * K], w[N * K], alone[2 * K];

    ref_operand_a(p, a);
    for (int i = 0; i < M * K; i++)
        EXPECT(same((double)a[i], (double)field_value(p->a, q->a[i])), "%s 0x%x gives %a",
               p->a->name, q->a[i], (double)a[i]);
    ref_operand_w(p, 0, N, w);
    for (int j = 0; j < N; j++)
        for (int l = 0; l < K; l++) {
            double got = (double)w[j * K + l], want = slow_weight(p, j, l, q->b[j * K + l]);

            EXPECT(same(got, want),
                   "%s x %s, scale %s %d, zero %d, group %d, at %d, %d, code 0x%x: %a, want %a",
                   p->a->name, p->b->name, p->bs->name, (int)p->scale, (int)p->zero, (int)p->group,
                   j, l, q->b[j * K + l], got, want);
        }
    ref_operand_w(p, 2, 4, alone);
    ck_assert(memcmp(alone, w + 2 * K, sizeof alone) == 0);
    for (int j = 0; j < N; j++)
        for (int l = 0; l < K; l += 9) {
            uint32_t code =
                (uint32_t)word((uint64_t)j * K + (uint64_t)l) & ((1u << p->b->bits) - 1);
            double got = ref_weight(p, j, l, code), want = slow_weight(p, j, l, code);

            EXPECT(same(got, want), "code 0x%x would read as %a, not %a", code, got, want);
        }
}

static void check_flush(const struct problem *q)
{
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++)
            for (int l = 0; l < K; l += 3) {
                double got = ref_flush_factor(&q->p, i, j, l), want = slow_flush(&q->p, i, j, l);

                EXPECT(same(got, want), "flush factor at %d, %d, %d: %a, want %a", i, j, l, got,
                       want);
            }
}

/* Section 7, over n x groups scales. */
static double slow_int_scales(const struct ref_gemm *p, int count, int32_t *s_int)
{
    double top = 0.0, f;

    for (int i = 0; i < count; i++)
        top = fmax(top, fabs(to_16(p->c, bs_value(p, p->bs_codes[i]), 0)));
    f = to_f32((long double)top / 1024.0L);
    for (int i = 0; i < count; i++) {
        double s = to_16(p->c, bs_value(p, p->bs_codes[i]), 0);

        s_int[i] = f > 0.0 ? (int32_t)nearbyint(to_f32((long double)s / (long double)f)) : 0;
    }
    return f;
}

static double check_int_scales(const struct problem *q)
{
    int32_t got[N * INPUTS], want[N * INPUTS];
    int count = (int)(N * ref_groups(&q->p));
    double factor = slow_int_scales(&q->p, count, want);
    float got_factor;

    ref_int_scales(&q->p, got, &got_factor);
    EXPECT((double)got_factor == factor, "factor %a, want %a", (double)got_factor, factor);
    for (int i = 0; i < count; i++)
        ck_assert_int_eq(got[i], want[i]);
    return factor;
}

static double any_sum(const struct ref_gemm *p, uint64_t r)
{
    if (!p->a->is_float)
        return (double)(int32_t)(r >> 32);
    if (p->f16_accum)
        return (double)field_value(dtype_find("f16"), any_code(dtype_find("f16"), r, true));
    return (double)any_f32(r, true);
}

static void check_epilogue(const struct problem *q, double factor)
{
    static const int64_t cols[] = {4, 0, 3};
    const struct ref_gemm *p = &q->p;
    struct ref_epilogue e;
    double x[M * N], work[3 * N], sub[M * 3];
    uint16_t rows[M * N], some[M * 3];

    ref_epilogue_init(p, (float)factor, &e);
    for (int i = 0; i < M * N; i++)
        x[i] = any_sum(p, word((uint64_t)i + 77777 * (uint64_t)q->b[0]));
    for (int i = 0; i < M * 3; i++)
        sub[i] = x[i / 3 * N + cols[i % 3]];
    ref_epilogue_rows(&e, &(struct ref_block){0, M, NULL, N}, x, work, rows);
    ref_epilogue_rows(&e, &(struct ref_block){1, M, cols, 3}, sub + 3, work, some);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double want = slow_epilogue(p, i, j, x[i * N + j], factor, true);
            double got = ref_epilogue_one(&e, i, j, x[i * N + j], true);
            double plain = ref_epilogue_one(&e, i, j, x[i * N + j], false);
            double row = (double)field_value(p->c, rows[i * N + j]);

            EXPECT(same(got, want), "%s to %s, sum %a: %a, want %a", p->a->name, p->c->name,
                   x[i * N + j], got, want);
            EXPECT(same(plain, slow_epilogue(p, i, j, x[i * N + j], factor, false)),
                   "without bias: %a", plain);
            EXPECT(same(row, got), "a row has %a, one output %a", row, got);
            if (!p->int_scale)
                EXPECT(same(ref_epilogue(p, i, j, x[i * N + j], true), got), "in one call: not %a",
                       got);
        }
    for (int i = 3; i < M * 3; i++)
        EXPECT(same((double)field_value(p->c, some[i - 3]),
                    (double)field_value(p->c, rows[i / 3 * N + cols[i % 3]])),
               "columns in another order");
}

/* ---- tests: everything that is legal for one activation format ------------------------------- */

static const char *const activations[] = {"f16",  "bf16", "e4m3", "e5m2", "e3m4",
                                          "e2m1", "e0m3", "int8", "int4"};
static const char *const scale_types[] = {"f16", "bf16", "e4m3", "e5m2", "e8m0", "e5m3", "f32"};

static bool is_weight(const struct dtype *a, const struct dtype *b)
{
    bool integer = !b->is_float && b->bits <= 8 && (!b->is_signed || a == b);
    bool number = b->is_float && b->is_signed && b->top == DTYPE_TOP_FINITE && b->bits <= 8;

    return b->bits <= a->bits && (integer || (number && a->is_float));
}

static void vary(struct ref_gemm *p, uint64_t r)
{
    p->has_bias = r & 1;
    p->group = r >> 1 & 1 ? 16 : 32; /* the last group is shorter: 70 = 4 16 + 6 */
    if (p->scale == REF_SCALE_CHANNEL || p->scale == REF_SCALE_TENSOR)
        p->group = 0;
    if (p->scale == REF_SCALE_BLOCK)
        p->group_n = 2;
    if (p->scale == REF_SCALE_GROUP)
        p->scale_2 = (enum ref_scale_2)((r >> 2) % 3);
    if (p->a->bits < 16 && r >> 5 & 1)
        p->input_group = p->scale == REF_SCALE_BLOCK ? p->group : 16;
    if (!p->a->is_float && p->scale == REF_SCALE_GROUP && !p->input_group)
        p->int_scale = p->scale_2 != REF_SCALE_2_CHANNEL;
    p->f16_accum =
        r >> 6 & 1 && p->c == dtype_find("f16") && (p->a == p->c || p->a == dtype_find("e4m3"));
}

static void check_family(const struct ref_gemm *p, uint64_t seed)
{
    static struct problem q;
    bool special = seed % 3 == 0 && !p->int_scale;
    double factor = 1.0;

    make(&q, p, seed, special);
    check_operands(&q);
    if (!p->int_scale)
        check_flush(&q);
    else
        factor = check_int_scales(&q);
    check_epilogue(&q, factor);
}

START_TEST(interpreter)
{
    const struct dtype *a = dtype_find(activations[_i]);
    uint64_t seed = (uint64_t)_i * 100000;
    int families = 0;

    for (int bi = 0; bi < dtype_count; bi++)
        for (int si = 0; si < COUNT(scale_types); si++)
            for (int z = 0; z < 3; z++)
                for (int scale = 0; scale < 4; scale++) {
                    struct ref_gemm p = {
                        .a = a, .b = &dtypes[bi], .m = M, .n = N, .k = K, .group_n = 1};
                    bool wide = scale == REF_SCALE_BLOCK || scale == REF_SCALE_TENSOR;

                    p.bs = dtype_find(scale_types[si]);
                    p.scale = (enum ref_scale)scale;
                    p.zero = (enum ref_zero)z;
                    p.c = a->bits == 16 ? a : dtype_find(seed % 2 ? "f16" : "bf16");
                    if (!is_weight(a, p.b) || wide != (p.bs->bits == 32) ||
                        (p.bs->bits == 16 && p.bs != p.c) ||
                        (z && (p.b->is_float || p.b->is_signed || scale == REF_SCALE_BLOCK)) ||
                        (z == REF_ZERO_FLOAT && a->bits != 16))
                        continue;
                    seed++;
                    vary(&p, word(seed));
                    check_family(&p, seed);
                    families++;
                }
    ck_assert_int_ge(families, 10);
}
END_TEST

/* Every weight code under every scale code of 8 bits, or 2,048 of 16, and both 16-bit activations.
 * */
START_TEST(all_products)
{
    const struct dtype *a = dtype_find(_i % 2 ? "bf16" : "f16");
    const struct dtype *bs = dtype_find(scale_types[_i / 2 == 0 ? _i % 2 : _i / 2 + 1]);
    static const char *const weights[] = {"uint8", "float8e4m3", "float8e5m2", "float4e2m1"};
    uint32_t step = bs->bits == 16 ? 97 : 1;

    for (uint32_t s = 0; s < 1u << bs->bits; s += step) {
        const struct dtype *b = dtype_find(weights[s / step % 4]);
        uint32_t codes = 1u << b->bits;
        struct ref_gemm p = {.a = a,
                             .b = b,
                             .c = a,
                             .bs = bs,
                             .m = 1,
                             .n = 1,
                             .k = 512,
                             .scale = REF_SCALE_GROUP,
                             .group = 512,
                             .group_n = 1,
                             .bs_codes = &s};
        uint8_t code[512];
        float w[512];

        for (uint32_t l = 0; l < 512; l++)
            code[l] = (uint8_t)(l % codes);
        p.b_codes = code;
        ref_operand_w(&p, 0, 1, w);
        for (uint32_t l = 0; l < codes; l++) {
            double want = slow_weight(&p, 0, l, code[l]);

            EXPECT(same((double)w[l], want), "%s 0x%x times %s 0x%x in %s: %a, want %a", b->name,
                   code[l], bs->name, s, a->name, (double)w[l], want);
        }
    }
}
END_TEST

/* ---- fused e8m0 ------------------------------------------------------------------------------ */

/* Upstream's requantization, delta 1 to 3: code of |v| 2^-delta (docs/semantics.md section 8; codes
 * 8 to 15 mirror). */
static const uint8_t requantized_code[3][8] = {
    {0, 1, 1, 2, 2, 3, 4, 5}, {0, 0, 1, 1, 1, 2, 2, 3}, {0, 0, 0, 0, 1, 1, 1, 2}};

static void fused_problem(struct ref_gemm *p, const char *a, int range)
{
    *p = (struct ref_gemm){.a = dtype_find(a),
                           .b = dtype_find("e2m1"),
                           .c = dtype_find("bf16"),
                           .bs = dtype_find("e8m0"),
                           .m = 1,
                           .n = 2,
                           .k = 64,
                           .scale = REF_SCALE_GROUP,
                           .group = 32,
                           .group_n = 1,
                           .fused_e8m0 = true,
                           .fused_range = range};
}

START_TEST(requantization)
{
    int delta = _i % 3 + 1, range = _i < 3 ? 11 : 3;
    uint32_t scales[4] = {130, 130, (uint32_t)(130 - range - delta), 130};
    uint8_t codes[128];
    struct ref_gemm p;
    float w[128];

    fused_problem(&p, _i < 3 ? "e4m3" : "int8", range);
    for (int l = 0; l < 128; l++)
        codes[l] = (uint8_t)(l % 16);
    p.b_codes = codes;
    p.bs_codes = scales;
    ref_operand_w(&p, 0, 2, w);
    for (uint32_t c = 0; c < 16; c++) {
        double kept = dtype_decode(p.b, c) * 8.0 + 0.0;
        double v = dtype_decode(p.b, requantized_code[delta - 1][c & 7]);
        double want = ldexp(c & 8 ? -v : v, 3 - range) + 0.0;

        ck_assert(same((double)w[c], kept) && same((double)w[96 + c], kept));
        ck_assert_msg(same((double)w[64 + c], want), "delta %d code %u: %a, want %a", delta, c,
                      (double)w[64 + c], want);
        ck_assert(same(ref_weight(&p, 1, 0, c), want) && same(ref_weight(&p, 0, 0, c), kept));
    }
}
END_TEST

/* A spread within the range loses nothing; the range is the tensor's, or the row's with channel
 * weight_scale_2. */
START_TEST(fused_range)
{
    static const uint32_t scales[4] = {100, 97, 120, 119};
    uint8_t codes[128];
    struct ref_gemm p;
    float w[128];

    fused_problem(&p, "int8", 3);
    memset(codes, 1, sizeof codes); /* 0.5 */
    p.b_codes = codes;
    p.bs_codes = scales;
    p.scale_2 = REF_SCALE_2_CHANNEL;
    ref_operand_w(&p, 0, 2, w);
    ck_assert(w[0] == 0x1p-28f && w[32] == 0x1p-31f && w[64] == 0x1p-8f && w[96] == 0x1p-9f);
    p.scale_2 = REF_SCALE_2_TENSOR;
    ref_operand_w(&p, 0, 2, w);
    ck_assert(w[0] == 0.0f && w[32] == 0.0f && w[64] == 0x1p-8f && w[96] == 0x1p-9f);
}
END_TEST

/* All pairs of scale codes in a row, NaN (255) included, against the interpreter. */
START_TEST(fused_pairs)
{
    uint8_t codes[128];
    struct ref_gemm p;
    float w[128];

    fused_problem(&p, _i ? "int8" : "e4m3", _i ? 3 : 11);
    p.n = 1;
    for (int l = 0; l < 128; l++)
        codes[l] = (uint8_t)(l % 16);
    p.b_codes = codes;
    for (uint32_t s = 0; s < 65536; s += 3) {
        uint32_t scales[2] = {s & 255, s >> 8};

        p.bs_codes = scales;
        ref_operand_w(&p, 0, 1, w);
        for (int l = 0; l < 64; l += 5)
            EXPECT(same((double)w[l], (double)(float)fused_weight(&p, 0, l, codes[l])),
                   "scales %u, %u, code %d: %a", scales[0], scales[1], codes[l], (double)w[l]);
    }
}
END_TEST

/* ---- integer scales -------------------------------------------------------------------------- */

static void int_problem(struct ref_gemm *p, const char *bs, const char *c, const uint32_t *codes)
{
    *p = (struct ref_gemm){.a = dtype_find("int8"),
                           .b = dtype_find("uint4"),
                           .c = dtype_find(c),
                           .bs = dtype_find(bs),
                           .m = 1,
                           .n = 2,
                           .k = 64,
                           .scale = REF_SCALE_GROUP,
                           .group = 32,
                           .group_n = 1,
                           .int_scale = true,
                           .bs_codes = codes};
}

START_TEST(int_scales)
{
    /* f16: 1, -0.5, 1.5 / 1024 (halfway: the even 2), 0 */
    static const uint32_t f16[] = {0x3c00, 0xb800, 0x1600, 0}, none[4] = {0};
    static const uint32_t tiny[] = {1, 2, 0x8001, 0};    /* bf16 subnormals */
    static const uint32_t nan[] = {127, 255, 120, 127};  /* e8m0 NaN counts nothing */
    static const uint32_t huge[] = {254, 127, 254, 127}; /* e8m0 beyond f16: infinity */
    struct ref_gemm p;
    int32_t s[4];
    float f;

    int_problem(&p, "f16", "f16", f16);
    ref_int_scales(&p, s, &f);
    ck_assert(f == 0x1p-10f && s[0] == 1024 && s[1] == -512 && s[3] == 0);
    ck_assert_int_eq(s[2], 2);
    int_problem(&p, "f16", "f16", none);
    ref_int_scales(&p, s, &f);
    ck_assert(f == 0.0f && s[0] == 0 && s[1] == 0 && s[2] == 0 && s[3] == 0);
    int_problem(&p, "bf16", "bf16", tiny);
    ref_int_scales(&p, s, &f);
    ck_assert(f == 0x1p-142f && s[0] == 512 && s[1] == 1024 && s[2] == -512 && s[3] == 0);
    int_problem(&p, "e8m0", "bf16", nan);
    ref_int_scales(&p, s, &f);
    ck_assert(f == 0x1p-10f && s[0] == 1024 && s[1] == 0 && s[2] == 8 && s[3] == 1024);
    int_problem(&p, "e8m0", "f16", huge);
    ref_int_scales(&p, s, &f);
    ck_assert(isinf(f) && s[0] == 0 && s[1] == 0);
}
END_TEST

/* Codes with bits above those of the format read as the code below them. */
START_TEST(stray_bits)
{
    static const uint8_t b[] = {0x13, 0xf3, 0x03, 0xf3};
    static const uint16_t a[] = {0x12, 0xf2, 0x02, 0xff02};
    const uint32_t bs[] = {0x3f80};
    struct ref_gemm p = {.a = dtype_find("int4"),
                         .b = dtype_find("uint3"),
                         .c = dtype_find("bf16"),
                         .bs = dtype_find("bf16"),
                         .m = 1,
                         .n = 1,
                         .k = 4,
                         .group_n = 1,
                         .a_codes = a,
                         .b_codes = b,
                         .bs_codes = bs};
    float x[4], w[4];

    ref_operand_a(&p, x);
    ref_operand_w(&p, 0, 1, w);
    for (int i = 0; i < 4; i++)
        ck_assert(x[i] == 2.0f && w[i] == -1.0f && ref_weight(&p, 0, i, b[i]) == -1.0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("gemm");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_loop_test(tc, interpreter, 0, COUNT(activations));
    tcase_add_loop_test(tc, all_products, 0, 2 * 5);
    tcase_add_loop_test(tc, requantization, 0, 6);
    tcase_add_test(tc, fused_range);
    tcase_add_loop_test(tc, fused_pairs, 0, 2);
    tcase_add_test(tc, int_scales);
    tcase_add_test(tc, stray_bits);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
