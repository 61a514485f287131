#include "reference/fill.h"
#include "reference/test/expect.h"
#include "reference/test/fill_families.h"

#include <check.h>
#include <math.h>

/* ---- a function of (seed, tensor, index) ----------------------------------------------------- */

/* Can an operand register of the activations' format hold this weight? */
static bool held(const struct ref_gemm *p, uint32_t code)
{
    return !p->b->is_float || !p->a->is_float || fabs(dtype_decode(p->b, code)) <= dtype_max(p->a);
}

/* A smaller problem of the same fill is a part of a larger one, whatever arrays are asked for. */
START_TEST(prefixes)
{
    static const char *const sides[][3] = {
        {"bf16", "uint4", "bf16"}, {"f16", "float8e4m3", "f16"}, {"e4m3", "float4e2m1", "e8m0"}};
    struct ref_fill_spec spec = {.kind = (enum ref_fill)(_i / 3), .seed = 12345};
    struct ref_gemm p, small;
    struct ref_inputs only = {0};
    struct filled f, g, h;
    uint8_t *b;

    family_base(&p, sides[_i % 3][0], sides[_i % 3][1], sides[_i % 3][2]);
    filled_make(&f, &p, &spec);
    if (f.why) { /* fill C, 8-bit activations */
        ck_assert(spec.kind == REF_FILL_C && p.a->bits == 8);
        filled_free(&f);
        return;
    }
    small = p;
    small.m = 2;
    small.n = 17;
    filled_make(&g, &small, &spec);
    ck_assert(memcmp(f.in.a, g.in.a, (size_t)(2 * p.k) * sizeof *f.in.a) == 0);
    ck_assert(memcmp(f.in.b, g.in.b, (size_t)(17 * p.k)) == 0);
    ck_assert(memcmp(f.in.bs, g.in.bs, (size_t)(17 * ref_groups(&p)) * sizeof *f.in.bs) == 0);
    b = calloc((size_t)(p.n * p.k), 1);
    only.b = b;
    ck_assert(ref_fill(&spec, &p, &only) == NULL);
    ck_assert(memcmp(b, f.in.b, (size_t)(p.n * p.k)) == 0);
    spec.seed++;
    filled_make(&h, &p, &spec);
    if (spec.kind != REF_FILL_C && spec.kind != REF_FILL_P)
        ck_assert(memcmp(f.in.a, h.in.a, (size_t)(p.m * p.k) * sizeof *f.in.a) != 0);
    ck_assert(memcmp(f.in.b, h.in.b, (size_t)(p.n * p.k)) != 0);
    filled_free(&f);
    filled_free(&g);
    filled_free(&h);
    free(b);
}
END_TEST

/* ---- codes ----------------------------------------------------------------------------------- */

static bool is_weight(const struct dtype *b)
{
    return b->bits <= 8 &&
           (b->is_float ? b->is_signed && b->top == DTYPE_TOP_FINITE : !b->is_signed);
}

/* E1: neighbours along k differ, in A and (2 bits or more) in W; all codes occur over all columns.
 * */
START_TEST(dense_codes)
{
    const struct dtype *b = &dtypes[_i];
    struct ref_fill_spec spec = {.kind = REF_FILL_E1, .seed = 1};
    struct ref_gemm p;
    struct filled f;
    bool seen[256] = {0};

    if (!is_weight(b))
        return;
    family_base(&p, "bf16", b->name, "bf16");
    p.n = 512;
    filled_make(&f, &p, &spec);
    for (int64_t i = 0; i < p.n * p.k; i++) {
        EXPECT(f.in.b[i] < 1u << b->bits, "code 0x%x of %s", f.in.b[i], b->name);
        seen[f.in.b[i]] = true;
        if (i % p.k && b->bits > 1)
            EXPECT(f.in.b[i] != f.in.b[i - 1], "equal neighbours in %s", b->name);
    }
    for (int64_t i = 0; i < p.m * p.k; i++)
        EXPECT(f.in.a[i] && (i % p.k == 0 || f.in.a[i] != f.in.a[i - 1]), "equal neighbours in A");
    for (int code = 0; code < 1 << b->bits; code++)
        EXPECT(seen[code], "%s never has code 0x%x", b->name, code);
    filled_free(&f);
}
END_TEST

/* E2 in wide formats: the exponent fields of a column are those of its window and one above;
 * subnormals count as the lowest. */
static void check_window(const struct ref_gemm *p, const uint8_t *column)
{
    int lo = 1 << p->b->exp_bits, hi = 0;

    for (int64_t l = 0; l < p->k; l++) {
        int field = column[l] >> p->b->man_bits & ((1 << p->b->exp_bits) - 1);

        field = field ? field : 1;
        lo = field < lo ? field : lo;
        hi = field > hi ? field : hi;
    }
    EXPECT(hi - lo <= 2, "a column of %s has fields %d to %d", p->b->name, lo, hi);
}

/* E2: all codes but those without a counterpart; every chunk of 8 is four pairs that nearly cancel,
 * matched by 5 or by 6. */
START_TEST(paired_codes)
{
    const struct dtype *b = &dtypes[_i];
    struct ref_fill_spec spec = {.kind = REF_FILL_E2, .seed = 1};
    struct ref_gemm p;
    struct filled f;
    bool seen[256] = {0};
    int by_five = 0;

    if (!is_weight(b) || b->bits == 1)
        return;
    family_base(&p, "bf16", b->name, "bf16");
    p.m = 64;
    p.n = 1024;
    filled_make(&f, &p, &spec);
    for (int64_t i = 0; i < p.n * p.k; i++)
        seen[f.in.b[i]] = true;
    for (int code = b->is_float ? 0 : 1; code < 1 << b->bits; code++)
        EXPECT(seen[code], "%s never has code 0x%x", b->name, code);
    for (int64_t j = 0; j < p.n && b->is_float && b->exp_bits >= 3; j++)
        check_window(&p, f.in.b + j * p.k);
    for (int64_t l = 0; l < p.k; l += 8) {
        bool five = true, six = true;

        for (int64_t i = 0; i < p.m; i++)
            for (int64_t q = 0; q < 8; q++) {
                const uint16_t *a = f.in.a + i * p.k + l;

                five = five && a[q] == a[q ^ 5];
                six = six && a[q] == a[q ^ 6];
            }
        EXPECT(five != six, "chunk %d is matched by neither or both", (int)l / 8);
        by_five += five;
    }
    ck_assert(by_five > 0 && by_five < p.k / 8);
    filled_free(&f);
}
END_TEST

/* ---- fills with one or two live k ------------------------------------------------------------ */

/* P: one 1 a row, and k rows see every k. */
START_TEST(readout_rows)
{
    static const int64_t ks[] = {1, 2, 5, 7, 31, 61, 64, 96, 127, 128, 3 * 127 * 16, 1024};
    struct ref_fill_spec spec = {.kind = REF_FILL_P, .seed = 4};
    struct ref_gemm p;
    struct filled f;
    bool *seen;

    family_base(&p, "e4m3", "uint4", "bf16");
    p.scale = REF_SCALE_CHANNEL;
    p.group = 0;
    p.m = p.k = ks[_i];
    p.n = 1;
    filled_make(&f, &p, &spec);
    seen = calloc((size_t)p.k, sizeof *seen);
    for (int64_t i = 0; i < p.m; i++) {
        int64_t live = ref_fill_live_k(&spec, &p, i);

        ck_assert(live >= 0 && live < p.k && !seen[live]);
        seen[live] = true;
        for (int64_t l = 0; l < p.k; l++)
            EXPECT(dtype_decode(p.a, f.in.a[i * p.k + l]) == (l == live ? 1.0 : 0.0),
                   "row %d, k %d", (int)i, (int)l);
    }
    free(seen);
    filled_free(&f);
}
END_TEST

/* all_scales: every weight code under every scale code that is finite, and under every zero point.
 * */
static const struct {
    const char *a, *b, *bs;
    int64_t n, k, group;
    enum ref_zero zero;
} readouts[] = {
    {"f16", "uint4", "f16", 2048, 1024, 32, REF_ZERO_NONE},
    {"bf16", "uint8", "e4m3", 64, 1024, 32, REF_ZERO_NONE},
    {"bf16", "uint8", "bf16", 4096, 4096, 128, REF_ZERO_NONE},
    {"f16", "float8e5m2", "e8m0", 256, 1024, 128, REF_ZERO_NONE},
    {"bf16", "e2m1", "e8m0", 256, 1024, 128, REF_ZERO_NONE},
    {"e4m3", "e2m1", "e8m0", 64, 512, 64, REF_ZERO_NONE},
    {"bf16", "uint8", "bf16", 128, 4096, 64, REF_ZERO_INT},
    {"f16", "uint4", "f16", 2048, 1024, 32, REF_ZERO_FLOAT},
    {"bf16", "uint3", "e5m2", 256, 0, 64, REF_ZERO_NONE}, /* channel: one scale a column */
};

START_TEST(readout_pairs)
{
    struct ref_fill_spec spec = {.kind = REF_FILL_P, .all_scales = true, .seed = 4};
    struct ref_gemm p;
    struct filled f;
    uint8_t *seen;
    uint32_t weights, partners;
    const struct dtype *t;
    double largest = HUGE_VAL; /* a power of two under which an operand is infinite is left out */

    family_base(&p, readouts[_i].a, readouts[_i].b, readouts[_i].bs);
    p.m = 1;
    p.n = readouts[_i].n;
    p.k = readouts[_i].k ? readouts[_i].k : 64;
    p.group = readouts[_i].k ? readouts[_i].group : 0;
    p.scale = p.group ? REF_SCALE_GROUP : REF_SCALE_CHANNEL;
    p.zero = readouts[_i].zero;
    filled_make(&f, &p, &spec);
    weights = 1u << p.b->bits;
    t = p.zero == REF_ZERO_INT ? p.b : p.zero == REF_ZERO_FLOAT ? p.a : p.bs;
    partners = 1u << t->bits;
    seen = calloc((size_t)weights * partners, 1);
    if (t == p.bs && t->man_bits == 0 && p.a->bits == 16)
        largest = dtype_max(p.a) / fmin(dtype_max(p.a), dtype_max(p.b));
    for (int64_t i = 0; t->man_bits == 0 && i < p.n * ref_groups(&p); i++)
        EXPECT(!(dtype_decode(t, f.in.bs[i]) > largest), "scale 0x%x", f.in.bs[i]);
    for (int64_t i = 0; i < p.n * p.k; i++) {
        int64_t at = i / p.k * ref_groups(&p) + (p.group ? i % p.k / p.group : 0);
        uint32_t partner = p.zero ? f.in.zero[at] : f.in.bs[at];

        EXPECT(partner < partners && f.in.b[i] < weights, "codes 0x%x, 0x%x", f.in.b[i], partner);
        seen[partner * weights + f.in.b[i]] = 1;
    }
    for (uint32_t x = 0; x < weights * partners; x++)
        EXPECT(seen[x] || !isfinite(dtype_decode(t, x / weights)) || !held(&p, x % weights) ||
                   dtype_decode(t, x / weights) > largest,
               "%s 0x%x never meets %s 0x%x", p.b->name, x % weights, t->name, x / weights);
    free(seen);
    filled_free(&f);
}
END_TEST

/* Fused e8m0 with two groups: all pairs of scale codes but those with NaN. */
START_TEST(readout_fused_pairs)
{
    struct ref_fill_spec spec = {.kind = REF_FILL_P, .all_scales = true, .seed = 4};
    struct ref_gemm p;
    struct filled f;
    bool *seen = calloc(65536, sizeof *seen);

    family_base(&p, "e4m3", "e2m1", "e8m0");
    p.m = 1;
    p.n = 65536;
    p.k = 64;
    p.fused_e8m0 = true;
    p.fused_range = 11;
    p.scale_2 = REF_SCALE_2_CHANNEL;
    filled_make(&f, &p, &spec);
    for (int64_t j = 0; j < p.n; j++)
        seen[f.in.bs[2 * j] << 8 | f.in.bs[2 * j + 1]] = true;
    for (int x = 0; x < 65536; x++)
        EXPECT(seen[x] || x >> 8 > 250 || (x & 255) > 250, "no row has %d and %d", x >> 8, x & 255);
    free(seen);
    filled_free(&f);
}
END_TEST

static const char *const outer[][2] = {{"e4m3", "float8e4m3"}, {"e5m2", "float8e5m2"},
                                       {"int8", "int8"},       {"int8", "uint7"},
                                       {"e2m1", "e2m1"},       {"int4", "uint3"}};

/* O: one live k, at which every pair of codes meets; NaN and infinity of the activations are left
 * out. */
START_TEST(outer_pairs)
{
    struct ref_fill_spec spec = {.kind = REF_FILL_O, .seed = 6};
    struct ref_gemm p;
    struct filled f;
    bool seen[2][256] = {{0}};
    int64_t live;

    family_base(&p, outer[_i][0], outer[_i][1], "bf16");
    p.m = p.n = 256;
    filled_make(&f, &p, &spec);
    live = ref_fill_live_k(&spec, &p, 0);
    for (int64_t i = 0; i < 256; i++) {
        seen[0][f.in.a[i * p.k + live]] = true;
        seen[1][f.in.b[i * p.k + live]] = true;
        for (int64_t l = 0; l < p.k; l++)
            EXPECT(l == live || f.in.a[i * p.k + l] == 0, "row %d, k %d is not 0", (int)i, (int)l);
    }
    for (uint32_t c = 0; c < 1u << p.a->bits; c++)
        EXPECT(seen[0][c] || !isfinite(dtype_decode(p.a, c)), "no activation 0x%x", c);
    for (uint32_t c = 0; c < 1u << p.b->bits; c++)
        EXPECT(seen[1][c] || !held(&p, c), "no weight 0x%x", c);
    filled_free(&f);
}
END_TEST

/* Which side of the middle between two neighbouring output codes a sum lies on. */
struct sides {
    int exact, tie_even, tie_odd, below, above, infinite;
};

static void judge_sum(const struct dtype *c, double sum, struct sides *s)
{
    int e = sum == 0.0 ? -2000 : ilogb(sum), low = dtype_min_exponent(c);
    double u = ldexp(1.0, (e < low ? low : e) - c->man_bits);
    double q = fabs(sum) / u, rest = q - floor(q);

    s->exact += rest == 0.0;
    s->tie_even += rest == 0.5 && fmod(floor(q), 2.0) == 0.0;
    s->tie_odd += rest == 0.5 && fmod(floor(q), 2.0) == 1.0;
    s->below += rest < 0.5 && rest > 0.49;
    s->above += rest > 0.5 && rest < 0.51;
    s->infinite += isfinite(dtype_decode(c, dtype_encode(c, sum, DTYPE_TO_TOP))) ? 0 : 1;
}

/* Neither bias nor scales stand between the sum and its rounding. */
static bool same_in_epilogue(const struct ref_gemm *p, int64_t row, int64_t col, double sum)
{
    return ref_epilogue(p, row, col, sum, true) ==
           dtype_decode(p->c, dtype_encode(p->c, sum, DTYPE_TO_TOP));
}

/* C: every finite output code is an exact result, and stands beside every way of rounding. */
START_TEST(conversions)
{
    static const char *const formats[] = {"f16", "bf16"};
    struct ref_fill_spec spec = {.kind = REF_FILL_C, .seed = 8};
    struct sides s = {0};
    bool *seen = calloc(65536, sizeof *seen);
    struct ref_gemm p;
    struct filled f;
    float *a, w[8 * 64];

    family_base(&p, formats[_i % 2], _i / 2 ? "float4e2m1" : "uint4", formats[_i % 2]);
    p.m = 65536;
    p.n = 8;
    p.k = 64;
    p.has_bias = true;
    p.scale_2 = REF_SCALE_2_TENSOR;
    filled_make(&f, &p, &spec);
    ck_assert(!f.why);
    a = calloc((size_t)(p.m * p.k), sizeof *a);
    ref_operand_a(&f.p, a);
    ref_operand_w(&f.p, 0, p.n, w);
    for (int64_t i = 0; i < p.m; i++)
        for (int64_t j = 0; j < p.n; j++) {
            double sum = 0.0;

            for (int64_t l = 0; l < p.k; l++)
                sum += (double)a[i * p.k + l] * (double)w[j * p.k + l];
            EXPECT((double)(float)sum == sum || fabs(sum) == 0x1p128, "f32 does not hold %a", sum);
            EXPECT(same_in_epilogue(&f.p, i, j, sum), "the epilogue changes %a", sum);
            judge_sum(p.c, sum, &s);
            if (j == 0)
                seen[dtype_encode(p.c, sum, DTYPE_TO_TOP)] = true;
        }
    for (uint32_t c = 0; c < 65536; c++)
        EXPECT(seen[c] || c == 0x8000 || !isfinite(dtype_decode(p.c, c)), "no row gives 0x%x", c);
    ck_assert_int_gt(s.exact, 65536);
    ck_assert_int_gt(s.tie_even, 20000);
    ck_assert_int_gt(s.tie_odd, 20000);
    ck_assert_int_gt(s.below, 30000);
    ck_assert_int_gt(s.above, 30000);
    ck_assert_int_gt(s.infinite, 4);
    free(seen);
    free(a);
    filled_free(&f);
}
END_TEST

START_TEST(conversion_refusals)
{
    static const char *const sides[][3] = {
        {"e4m3", "uint4", "bf16"}, {"bf16", "uint1", "bf16"}, {"bf16", "uint4", "e4m3"}};
    struct ref_fill_spec spec = {.kind = REF_FILL_C, .seed = 8};
    struct ref_gemm p;

    for (int i = 0; i < 3; i++) {
        uint16_t a[9 * 136];
        struct ref_inputs in = {.a = a};

        family_base(&p, sides[i][0], sides[i][1], sides[i][2]);
        memset(a, 0x5a, sizeof a);
        ck_assert(ref_fill(&spec, &p, &in) != NULL);
        for (int j = 0; j < 9 * 136; j++)
            ck_assert_int_eq(a[j], 0x5a5a);
    }
    family_base(&p, "bf16", "uint4", "bf16");
    p.k = 32;
    ck_assert(ref_fill(&spec, &p, &(struct ref_inputs){0}) != NULL);
}
END_TEST

/* X: special values in odd rows, one or two each, and nothing else differs from the dense fill. */
START_TEST(special_rows)
{
    struct ref_fill_spec spec = {.kind = REF_FILL_X, .seed = 9},
                         dense = {.kind = REF_FILL_E1, .seed = 9};
    struct ref_gemm p;
    struct filled f, g;
    int nan = 0, infinite = 0, minus_zero = 0;

    family_base(&p, _i ? "e4m3" : "bf16", "uint4", "bf16");
    p.m = 48;
    filled_make(&f, &p, &spec);
    filled_make(&g, &p, &dense);
    for (int64_t i = 0; i < p.m; i++) {
        int changed = 0;

        for (int64_t l = 0; l < p.k; l++) {
            double x = dtype_decode(p.a, f.in.a[i * p.k + l]);

            changed += f.in.a[i * p.k + l] != g.in.a[i * p.k + l];
            nan += isnan(x) ? 1 : 0;
            infinite += isinf(x) ? 1 : 0;
            minus_zero += x == 0.0 && signbit(x);
        }
        if (i % 12 != 11) /* the largest stands alone in its row */
            ck_assert_int_le(changed, i % 2 ? 2 : 0);
    }
    ck_assert_int_eq(nan, 4);
    ck_assert_int_eq(infinite, _i ? 0 : 16);
    ck_assert_int_eq(minus_zero, 4);
    filled_free(&f);
    filled_free(&g);
}
END_TEST

static const struct {
    const char *a, *bs;
    bool nan, infinite; /* does X have such scales? */
} scale_kinds[] = {
    {"bf16", "e8m0", true, false}, {"e4m3", "e8m0", true, false},  {"e4m3", "e4m3", true, false},
    {"bf16", "e5m2", false, true}, {"e4m3", "e5m2", false, false}, {"f16", "f16", false, true},
};

/* X: one scale in 61 is no number, the others are the dense fill's. */
START_TEST(special_scales)
{
    struct ref_fill_spec spec = {.kind = REF_FILL_X}, dense = {.kind = REF_FILL_E1};
    struct filled f, g;
    struct ref_gemm p;
    int nan = 0, infinite = 0;

    family_base(&p, scale_kinds[_i].a, "uint4", scale_kinds[_i].bs);
    p.n = 512;
    filled_make(&f, &p, &spec);
    filled_make(&g, &p, &dense);
    for (int i = 0; i < 512 * 5; i++) { /* columns, groups */
        const double s = dtype_decode(p.bs, f.in.bs[i]);

        nan += isnan(s) != 0;
        infinite += isinf(s) != 0;
        ck_assert(!isfinite(s) || f.in.bs[i] == g.in.bs[i]);
    }
    ck_assert((nan > 0) == scale_kinds[_i].nan && nan + infinite < 80);
    ck_assert((infinite > 0) == scale_kinds[_i].infinite);
    filled_free(&f);
    filled_free(&g);
}
END_TEST

#define COUNT(x) ((int)(sizeof(x) / sizeof(x)[0]))

int main(void)
{
    Suite *s = suite_create("fill_codes");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, prefixes, 0, 9 * 3);
    tcase_add_loop_test(tc, dense_codes, 0, dtype_count);
    tcase_add_loop_test(tc, paired_codes, 0, dtype_count);
    tcase_add_loop_test(tc, readout_rows, 0, 12);
    tcase_add_loop_test(tc, readout_pairs, 0, COUNT(readouts));
    tcase_add_test(tc, readout_fused_pairs);
    tcase_add_loop_test(tc, outer_pairs, 0, COUNT(outer));
    tcase_add_loop_test(tc, conversions, 0, 4);
    tcase_add_test(tc, conversion_refusals);
    tcase_add_loop_test(tc, special_rows, 0, 2);
    tcase_add_loop_test(tc, special_scales, 0, COUNT(scale_kinds));
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
