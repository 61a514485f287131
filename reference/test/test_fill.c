#include "reference/exact.h"
#include "reference/fill.h"
#include "reference/test/expect.h"
#include "reference/test/fill_families.h"

#include <check.h>
#include <math.h>
#include <stdio.h>

static const char *const kinds[] = {"E1", "E2", "W", "S", "P", "O", "C", "X", "R"};

static void describe(const struct ref_gemm *p, enum ref_fill kind, char *out, size_t size)
{
    (void)snprintf(out, size,
                   "fill %s, %s x %s to %s, scale %s type %d, scale_2 %d, zero %d, group %d, input "
                   "group %d, k %d, f16 %d, int %d, fused %d",
                   kinds[kind], p->a->name, p->b->name, p->c->name, p->bs->name, (int)p->scale,
                   (int)p->scale_2, (int)p->zero, (int)p->group, (int)p->input_group, (int)p->k,
                   p->f16_accum, p->int_scale, p->fused_e8m0);
}

/* ---- what a problem is for exact.h: scales on accumulators multiplied into the operands ---- */

struct measured {
    float *a, *w; /* m x k, n x k */
    struct ref_norm *na, *nw;
    float int_factor;
    double p;
    bool short_terms; /* no product with a scale was rounded */
};

static void fold_scales(const struct ref_gemm *p, struct measured *x)
{
    struct ref_gemm alone = *p;
    int64_t groups = ref_groups(p);
    int32_t *s_int = calloc((size_t)(p->n * groups), sizeof *s_int);

    x->int_factor = 1.0f;
    if (p->int_scale)
        ref_int_scales(p, s_int, &x->int_factor);
    alone.input_group = 0;
    alone.f16_accum = false;
    for (int64_t i = 0; p->input_group && i < p->m * p->k; i++) {
        int64_t g = i / p->k * ref_input_groups(p) + i % p->k / p->input_group;
        double y = (double)x->a[i] * (double)p->input_scale[g];

        x->a[i] = (float)y;
        x->short_terms &= (double)x->a[i] == y;
    }
    for (int64_t j = 0; ref_scales_on_c(p) && j < p->n; j++)
        for (int64_t g = 0; g < groups; g++) {
            double s = p->int_scale ? (double)s_int[j * groups + g]
                                    : ref_flush_factor(&alone, 0, j, g * p->group);

            for (int64_t l = g * p->group; l < (g + 1) * p->group && l < p->k; l++) {
                double y = (double)x->w[j * p->k + l] * s;

                x->w[j * p->k + l] = (float)y;
                x->short_terms &= (double)x->w[j * p->k + l] == y;
            }
        }
    free(s_int);
}

static void measure(const struct ref_gemm *p, struct measured *x)
{
    x->a = calloc((size_t)(p->m * p->k), sizeof *x->a);
    x->w = calloc((size_t)(p->n * p->k), sizeof *x->w);
    x->na = calloc((size_t)p->m, sizeof *x->na);
    x->nw = calloc((size_t)p->n, sizeof *x->nw);
    x->short_terms = true;
    ref_operand_a(p, x->a);
    ref_operand_w(p, 0, p->n, x->w);
    fold_scales(p, x);
    ref_norms(x->a, p->m, p->k, x->na);
    ref_norms(x->w, p->n, p->k, x->nw);
    x->p = ref_exact_p(x->na, p->m, x->nw, p->n);
}

static void measured_free(struct measured *x)
{
    free(x->a);
    free(x->w);
    free(x->na);
    free(x->nw);
}

/* ---- conditions ---- */

/* P of the largest terms the formats have, three binades of a wide weight format being one window.
 * */
static double reachable_p(const struct ref_gemm *p)
{
    double a = p->a->is_float && p->a->exp_bits ? 2 << p->a->man_bits : (1 << p->a->man_bits) - 1;
    double w = ldexp(1.0, p->b->bits - 1) - 1.0;
    bool odd = (p->scale == REF_SCALE_GROUP || p->scale == REF_SCALE_BLOCK) && p->bs->man_bits >= 2;

    if (p->b->is_float)
        w = ldexp((2 << p->b->man_bits) - 1, p->b->exp_bits < 2 ? 0 : 2);
    return (double)p->k * fmin(a, dtype_max(p->a)) * fmax(w, 1.0) * (odd ? 7.0 : 1.0);
}

/* Terms that 16-bit operands and f16 accumulators hold as they are. */
static const char *operand_fault(const struct ref_gemm *p, enum ref_fill kind)
{
    size_t na = (size_t)(p->m * p->k), nw = (size_t)(p->n * p->k);
    float *a = calloc(na, sizeof *a), *w = calloc(nw, sizeof *w);
    double normal = ldexp(1.0, dtype_min_exponent(p->a));
    const char *fault = NULL;

    ref_operand_a(p, a);
    ref_operand_w(p, 0, p->n, w);
    for (size_t i = 0; i < na; i++)
        if (kind != REF_FILL_R && p->a->bits == 16 && a[i] != 0.0f && fabs((double)a[i]) < normal)
            fault = "an activation is subnormal";
    for (size_t i = 0; i < nw; i++) {
        if (!isfinite(w[i]))
            fault = "a weight is not finite";
        if (kind != REF_FILL_R && p->a->bits == 16 && w[i] != 0.0f && fabs((double)w[i]) < normal)
            fault = "a weight is subnormal";
    }
    free(a);
    free(w);
    return fault;
}

/* Partial results as numbers of the output's format, before and behind the channel scale. */
struct partial {
    struct ref_epilogue whole, without;
    int64_t seen, infinite;
};

static void see_partial(void *context, int64_t row, int64_t col, struct ref_chunks of)
{
    struct partial *p = context;

    p->seen++;
    p->infinite += !isfinite(ref_epilogue_one(&p->whole, row, col, of.sum, false)) ||
                   !isfinite(ref_epilogue_one(&p->without, row, col, of.sum, false));
}

static const char *chunk_fault(const struct ref_gemm *p, const struct measured *x)
{
    float *work = calloc((size_t)(16 * p->k + 64), sizeof *work);
    const struct ref_rows a = {x->a, x->na, p->m}, w = {x->w, x->nw, p->n};
    struct partial partial = {0};
    struct ref_chunks c;

    ref_epilogue_init(p, x->int_factor, &partial.whole);
    partial.without = partial.whole;
    partial.without.has_channel = false;
    c = ref_exact_chunks(&a, &w, p->k, work,
                         &(const struct ref_chunk_watch){see_partial, &partial});
    free(work);
    if (partial.seen != p->m * p->n)
        return "not every row met every column";
    if (partial.infinite)
        return "a partial sum is beyond the output format";
    if (!(fmin(c.sum, c.range) <= ldexp(1.0, p->c->man_bits + 1)))
        return "chunk sums do not fit the output format";
    if (!p->f16_accum)
        return NULL;
    if (!(c.sum <= 0x1p11))
        return "chunk sums do not fit f16 accumulators";
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++)
            if (x->na[i].unit + x->nw[j].unit < -24)
                return "the unit is below that of f16";
    return NULL;
}

/* W: all weights of one sign, none is 0. */
static bool one_sign(const struct ref_gemm *p, const struct measured *x)
{
    int64_t negative = 0, count = p->n * p->k;

    for (int64_t i = 0; i < count; i++) {
        if (x->w[i] == 0.0f)
            return false;
        negative += x->w[i] < 0.0f;
    }
    return negative == 0 || negative == count;
}

static const char *sum_fault(const struct ref_gemm *p, enum ref_fill kind, const struct measured *x)
{
    bool integer = !p->a->is_float && (p->int_scale || (!ref_scales_on_c(p) && !p->input_group));

    if (kind == REF_FILL_R)
        return NULL;
    if (kind == REF_FILL_W && !one_sign(p, x))
        return "the terms have both signs";
    if (!x->short_terms)
        return "a term times its scale has more than 24 bits";
    if (!(x->p < (integer ? 0x1p31 : 0x1p24)))
        return "P is too large";
    if (kind == REF_FILL_W && !(x->p >= fmin(0x1p20, reachable_p(p) / 12.0)))
        return "P is too small for a wide fill";
    return kind == REF_FILL_E2 ? chunk_fault(p, x) : NULL;
}

/* Outputs neither all infinite nor all gone; shares of all m x n. */
static const char *output_fault(const struct ref_gemm *p, const struct measured *x)
{
    struct ref_epilogue e;
    double infinite = 0.0, gone = 0.0, count = (double)(p->m * p->n);

    ref_epilogue_init(p, x->int_factor, &e);
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            double sum = 0.0, y;

            for (int64_t l = 0; l < p->k; l++)
                sum += (double)x->a[i * p->k + l] * (double)x->w[j * p->k + l];
            y = ref_epilogue_one(&e, i, j, sum, true);
            infinite += isfinite(y) ? 0.0 : 1.0;
            gone += fabs(y) < ldexp(1.0, dtype_min_exponent(p->c)) ? 1.0 : 0.0;
        }
    if (!(infinite <= 0.3 * count))
        return "over 30 % of the outputs are not finite";
    return gone <= 0.5 * count ? NULL : "most outputs are zero or subnormal";
}

static void check_family(const struct ref_gemm *p)
{
    static const enum ref_fill fills[] = {REF_FILL_E1, REF_FILL_E2, REF_FILL_W, REF_FILL_R};

    for (int i = 0; i < 4; i++) {
        struct ref_fill_spec spec = {.kind = fills[i], .seed = 7};
        struct measured x;
        struct filled f;
        char name[240];
        const char *fault;

        describe(p, spec.kind, name, sizeof name);
        filled_make(&f, p, &spec);
        if (spec.kind == REF_FILL_W && p->f16_accum) {
            EXPECT(f.why, "%s: not refused", name);
            filled_free(&f);
            continue;
        }
        EXPECT(!f.why, "%s: %s", name, f.why);
        measure(&f.p, &x);
        fault = operand_fault(&f.p, spec.kind);
        fault = fault ? fault : sum_fault(&f.p, spec.kind, &x);
        fault = fault ? fault : output_fault(&f.p, &x);
        EXPECT(!fault, "%s: %s", name, fault);
        measured_free(&x);
        filled_free(&f);
    }
}

START_TEST(families)
{
    ck_assert_int_ge(family_walk(_i, 211, check_family), 5);
}
END_TEST

/* The largest terms and long sums: here the factors have to shrink. */
static const struct {
    const char *a, *b, *bs;
    int64_t k, group, input_group;
    enum ref_zero zero;
    bool int_scale;
} heavy[] = {
    {"f16", "uint8", "f16", 16384, 64, 0, REF_ZERO_FLOAT, false},
    {"bf16", "uint8", "bf16", 4096, 128, 0, REF_ZERO_FLOAT, false},
    {"bf16", "uint8", "e4m3", 32768, 32768, 0, REF_ZERO_INT, false},
    {"bf16", "float8e7m0", "bf16", 16384, 64, 0, REF_ZERO_NONE, false},
    {"e4m3", "float8e4m3", "bf16", 16384, 128, 128, REF_ZERO_NONE, false},
    {"int8", "int8", "bf16", 16384, 128, 128, REF_ZERO_NONE, false},
    {"int8", "uint7", "f16", 16384, 64, 0, REF_ZERO_INT, true},
    {"f16", "float8e5m2", "f16", 32768, 16, 0, REF_ZERO_NONE, false},
};

START_TEST(heavy_terms)
{
    struct ref_gemm p = {.a = dtype_find(heavy[_i].a),
                         .b = dtype_find(heavy[_i].b),
                         .bs = dtype_find(heavy[_i].bs),
                         .m = 4,
                         .n = 64,
                         .k = heavy[_i].k,
                         .scale = REF_SCALE_GROUP,
                         .group = heavy[_i].group,
                         .group_n = 1,
                         .input_group = heavy[_i].input_group,
                         .zero = heavy[_i].zero,
                         .int_scale = heavy[_i].int_scale};

    p.c = p.bs->bits == 16 ? p.bs : p.a;
    check_family(&p);
}
END_TEST

/* One scale for columns of all windows of a wide format; f16 must hold every sum of them. */
START_TEST(blocks_of_wide_weights)
{
    static const char *const weights[] = {"float5e4m0", "float6e4m1", "float7e4m2",
                                          "float7e5m1", "float8e4m3", "float8e5m2"};
    static const char *const activations[] = {"f16", "e4m3", "e5m2"};
    struct ref_gemm p = {.a = dtype_find(activations[_i % 3]),
                         .b = dtype_find_weight(weights[_i / 3]),
                         .c = dtype_find("f16"),
                         .bs = dtype_find("f32"),
                         .m = 8,
                         .n = 512,
                         .k = 512,
                         .scale = REF_SCALE_BLOCK,
                         .group = 128,
                         .group_n = 32};

    ck_assert_ptr_nonnull(p.b);
    for (int rule = 0; rule < 2 && family_weight(&p); rule++) {
        p.block_on_operand = rule;
        check_family(&p);
    }
}
END_TEST

/* ---- k that is no multiple of 8, or less than 8 ---- */

START_TEST(short_k)
{
    static const int64_t ks[] = {1, 2, 7, 8, 12, 100, 1023};
    static const char *const weights[] = {"uint1", "uint4", "uint8",      "float4e2m1",
                                          "e2m3",  "e3m2",  "float8e4m3", "float8e7m0"};
    struct ref_gemm p = {.a = dtype_find("bf16"),
                         .b = dtype_find(weights[_i / 7]),
                         .c = dtype_find("bf16"),
                         .bs = dtype_find("bf16"),
                         .m = 4,
                         .n = 64,
                         .k = ks[_i % 7],
                         .group_n = 1};
    struct ref_fill_spec spec = {.seed = 3};

    p.b = p.b->top ? dtype_find_weight(p.b->name) : p.b;
    for (int kind = 0; kind < 9; kind++) {
        struct measured x;
        struct filled f;
        char name[240];

        spec.kind = (enum ref_fill)kind;
        describe(&p, spec.kind, name, sizeof name);
        filled_make(&f, &p, &spec);
        EXPECT((f.why != NULL) == (kind == REF_FILL_C), "%s: %s", name, f.why);
        if (kind == REF_FILL_E1 || kind == REF_FILL_E2 || kind == REF_FILL_W) {
            const char *fault;

            measure(&f.p, &x);
            fault = x.p < 0x1p24 ? kind == REF_FILL_E2 ? chunk_fault(&f.p, &x) : NULL : "P";
            EXPECT(!fault, "%s: %s", name, fault);
            if (kind != REF_FILL_E1 && p.k % 8 && p.b->bits > 1) /* the tail counts */
                EXPECT(x.w[p.k - 1] != 0.0f, "%s: the last weight is 0", name);
            measured_free(&x);
        }
        filled_free(&f);
    }
}
END_TEST

/* S: scales, weights or activations are subnormal, and some outputs are not zero. */
static void check_tiny(const struct ref_gemm *p)
{
    struct ref_fill_spec spec = {.kind = REF_FILL_S, .seed = 2};
    const double f32_normal = 0x1p-126;
    struct ref_input_sizes z = ref_input_sizes(p);
    struct measured x;
    struct filled f;
    bool tiny = false;
    char name[240];
    const char *fault;

    describe(p, spec.kind, name, sizeof name);
    filled_make(&f, p, &spec);
    for (size_t i = 0; i < z.bs; i++) {
        double s = p->bs->bits == 32 ? dtype_decode(dtype_find("f32"), f.in.bs[i])
                                     : dtype_decode(p->bs, f.in.bs[i]);
        double normal = p->bs->exp_bits == 8 ? f32_normal : ldexp(1.0, dtype_min_exponent(p->bs));

        if (p->scale == REF_SCALE_CHANNEL) /* it takes effect in format c */
            normal = fmax(normal, ldexp(1.0, dtype_min_exponent(p->c)));
        tiny = tiny || (s != 0.0 && fabs(s) < normal);
    }
    measure(&f.p, &x);
    for (int64_t i = 0; i < p->n * p->k && p->a->bits == 16; i++)
        tiny =
            tiny || (x.w[i] != 0.0f && fabs((double)x.w[i]) < ldexp(1.0, dtype_min_exponent(p->a)));
    for (int64_t i = 0; i < p->m * p->k && p->a->bits == 16; i++)
        tiny = tiny || fabs((double)x.a[i]) < ldexp(1.0, dtype_min_exponent(p->a));
    fault = tiny ? output_fault(&f.p, &x) : "nothing is subnormal";
    EXPECT(!fault, "%s: %s", name, fault);
    measured_free(&x);
    filled_free(&f);
}

START_TEST(tiny)
{
    ck_assert_int_ge(family_walk(_i, 397, check_tiny), 2);
}
END_TEST

/* E2: the bias of a column is a whole number of units of that column's sums and leaves them room,
 * whatever scale its block has: slices add it to sums of 16 bits. */
START_TEST(block_bias)
{
    static const char *const weights[] = {"e2m1", "uint4", "e2m3"};
    const struct dtype *a = dtype_find(_i % 2 ? "f16" : "bf16");
    struct ref_fill_spec spec = {.kind = REF_FILL_E2, .seed = 0xda9d};
    struct ref_gemm p = {.a = a,
                         .b = dtype_find(weights[_i / 2]),
                         .c = a,
                         .bs = dtype_find("f32"),
                         .m = 4,
                         .n = 150,
                         .k = 256,
                         .scale = REF_SCALE_BLOCK,
                         .group = 64,
                         .group_n = 64,
                         .has_bias = true};
    double most = ldexp(1.0, a->man_bits + 1) / 4.0;
    struct measured x;
    struct filled f;

    filled_make(&f, &p, &spec);
    measure(&f.p, &x);
    for (int64_t j = 0; j < p.n; j++) {
        double bias = dtype_decode(a, f.in.bias[j]);
        double units = ldexp(bias, -x.na[0].unit - x.nw[j].unit);

        EXPECT(bias != 0.0 && units == floor(units) && fabs(units) <= most,
               "%s x %s: the bias of column %d is %g units", a->name, p.b->name, (int)j, units);
    }
    measured_free(&x);
    filled_free(&f);
}
END_TEST

/* R with all fused scales in turn: no weight is beyond f32, as sums of infinities have no bound. */
START_TEST(fused_scales)
{
    struct ref_fill_spec spec = {.kind = REF_FILL_R, .seed = 3, .all_scales = true};
    struct ref_gemm p = {.a = dtype_find(_i ? "int8" : "e4m3"),
                         .b = dtype_find("e2m1"),
                         .c = dtype_find("bf16"),
                         .bs = dtype_find("e8m0"),
                         .m = 4,
                         .n = 128,
                         .k = 512,
                         .scale = REF_SCALE_GROUP,
                         .group = 128,
                         .group_n = 1,
                         .fused_e8m0 = true,
                         .fused_range = _i ? 3 : 11};
    struct measured x;
    struct filled f;

    filled_make(&f, &p, &spec);
    measure(&f.p, &x);
    for (int64_t i = 0; i < p.n * p.k; i++)
        EXPECT(isfinite(x.w[i]), "weight %d is %g", (int)i, (double)x.w[i]);
    measured_free(&x);
    filled_free(&f);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fill");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, families, 0, FAMILY_ACTIVATIONS);
    tcase_add_loop_test(tc, heavy_terms, 0, (int)(sizeof heavy / sizeof heavy[0]));
    tcase_add_loop_test(tc, blocks_of_wide_weights, 0, 18);
    tcase_add_loop_test(tc, short_k, 0, 7 * 8);
    tcase_add_loop_test(tc, fused_scales, 0, 2);
    tcase_add_loop_test(tc, block_bias, 0, 6);
    tcase_add_loop_test(tc, tiny, 0, FAMILY_ACTIVATIONS);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
