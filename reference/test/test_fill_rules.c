/* What a fill must not do (docs/fills.md section 4), looked for in the data themselves: each of
 * these once made a wrong kernel look right. */
#include "reference/fill.h"
#include "reference/test/expect.h"
#include "reference/test/fill_families.h"

#include <check.h>
#include <math.h>

enum { ROWS = 9, COLUMNS = 70, SIDES = 3 };

static void problem_make(struct ref_gemm *p, int side, int64_t k)
{
    static const char *const sides[SIDES][3] = {
        {"bf16", "uint4", "bf16"}, {"f16", "float8e4m3", "f16"}, {"bf16", "uint8", "bf16"}};

    *p = (struct ref_gemm){.a = dtype_find(sides[side][0]),
                           .b = dtype_find(sides[side][1]),
                           .c = dtype_find(sides[side][0]),
                           .bs = dtype_find(sides[side][2]),
                           .m = ROWS,
                           .n = COLUMNS,
                           .k = k,
                           .scale = REF_SCALE_GROUP,
                           .group = 32,
                           .group_n = 1};
}

static const enum ref_fill dense[] = {REF_FILL_E1, REF_FILL_E2, REF_FILL_W, REF_FILL_R};
enum { DENSE = sizeof dense / sizeof dense[0] };

static void dense_make(struct filled *f, int fill, int side)
{
    struct ref_fill_spec spec = {.kind = dense[fill], .seed = 77};
    struct ref_gemm p;

    problem_make(&p, side, 136);
    filled_make(f, &p, &spec);
    ck_assert_ptr_null(f->why);
}

START_TEST(rows_and_columns_differ)
{
    struct filled f;

    dense_make(&f, _i / SIDES, _i % SIDES);
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t j = 0; j < i; j++)
            EXPECT(memcmp(f.in.a + i * f.p.k, f.in.a + j * f.p.k, (size_t)f.p.k * sizeof *f.in.a) !=
                       0,
                   "rows %d and %d are alike", (int)j, (int)i);
    for (int64_t i = 0; i < COLUMNS; i++)
        for (int64_t j = 0; j < i; j++)
            EXPECT(memcmp(f.in.b + i * f.p.k, f.in.b + j * f.p.k, (size_t)f.p.k) != 0,
                   "columns %d and %d are alike", (int)j, (int)i);
    filled_free(&f);
}
END_TEST

START_TEST(no_activation_is_zero)
{
    struct filled f;

    dense_make(&f, _i / SIDES, _i % SIDES);
    for (int64_t i = 0; i < ROWS * f.p.k && dense[_i / SIDES] != REF_FILL_R; i++)
        EXPECT(dtype_decode(f.p.a, f.in.a[i]) != 0.0, "row %d, k %d", (int)(i / f.p.k),
               (int)(i % f.p.k));
    filled_free(&f);
}
END_TEST

static double weight_of(const struct ref_gemm *p, uint32_t code)
{
    return p->b->is_float ? dtype_decode(p->b, code) : (double)code - ldexp(1.0, p->b->bits - 1);
}

/* Products of both signs: all fills but W have both in the activations and in every column. */
START_TEST(both_signs_occur)
{
    struct filled f;
    int plus = 0, minus = 0;

    dense_make(&f, _i / SIDES, _i % SIDES);
    for (int64_t j = 0; j < COLUMNS && dense[_i / SIDES] != REF_FILL_W; j++) {
        int up = 0, down = 0;

        for (int64_t l = 0; l < f.p.k; l++) {
            up += weight_of(&f.p, f.in.b[j * f.p.k + l]) > 0.0;
            down += weight_of(&f.p, f.in.b[j * f.p.k + l]) < 0.0;
        }
        EXPECT(up > 16 && down > 16, "column %d has %d positive weights and %d negative ones",
               (int)j, up, down);
    }
    for (int64_t i = 0; i < ROWS * f.p.k; i++) {
        plus += dtype_decode(f.p.a, f.in.a[i]) > 0.0;
        minus += dtype_decode(f.p.a, f.in.a[i]) < 0.0;
    }
    ck_assert_int_gt(plus, 400);
    ck_assert_int_gt(minus, dense[_i / SIDES] == REF_FILL_W ? -1 : 400);
    filled_free(&f);
}
END_TEST

/* The odd whole number that x is a power of two times of. */
static int odd_part(double x)
{
    int e;

    x = fabs(frexp(x, &e));
    while (x != floor(x))
        x *= 2.0;
    return (int)x;
}

/* E1: all of 1, 3, 5, 7. P and R: significands as long as the format's, in most places. */
START_TEST(scales_are_long)
{
    static const enum ref_fill kinds[] = {REF_FILL_E1, REF_FILL_P, REF_FILL_R};
    struct ref_fill_spec spec = {.kind = kinds[_i / SIDES], .seed = 77};
    struct ref_gemm p;
    struct filled f;
    int seen[8] = {0}, full = 0;
    int64_t count;

    problem_make(&p, _i % SIDES, 136);
    count = p.n * ref_groups(&p);
    filled_make(&f, &p, &spec);
    for (int64_t i = 0; i < count; i++) {
        const int odd = odd_part(dtype_decode(p.bs, f.in.bs[i]));

        seen[odd < 8 ? odd : 0]++;
        full += odd >> p.bs->man_bits == 1;
    }
    for (int odd = 1; odd < 8 && spec.kind == REF_FILL_E1; odd += 2)
        EXPECT(seen[odd] > count / 16, "%d scales of odd part %d", seen[odd], odd);
    if (spec.kind != REF_FILL_E1)
        ck_assert_int_gt(full, (int)count / 3);
    filled_free(&f);
}
END_TEST

enum { FACTOR_KINDS = 2, WHOLE_BITS = 8, FACTOR_K = 512 };

static const enum ref_fill factor_kinds[FACTOR_KINDS] = {REF_FILL_E1, REF_FILL_E2};

static void zeros_make(struct filled *f, int bits, enum ref_fill kind)
{
    char name[] = {'u', 'i', 'n', 't', (char)('0' + bits), '\0'};
    struct ref_fill_spec spec = {.kind = kind, .seed = 77};
    struct ref_gemm p;

    problem_make(&p, 0, FACTOR_K);
    p.a = p.c = p.bs = dtype_find("f16");
    p.b = dtype_find(name);
    p.zero = REF_ZERO_INT;
    filled_make(f, &p, &spec);
    ck_assert_ptr_null(f->why);
}

/* Of columns x groups: those that have the zero point of the next column, or of the next group. */
START_TEST(zero_points_differ)
{
    const int bits = 1 + _i / FACTOR_KINDS, groups = FACTOR_K / 32;
    int column = 0, group = 0;
    struct filled f;

    zeros_make(&f, bits, factor_kinds[_i % FACTOR_KINDS]);
    for (int j = 0; j + 1 < COLUMNS; j++)
        for (int g = 0; g + 1 < groups; g++) {
            const uint16_t *z = f.in.zero + j * groups + g;

            column += z[0] == z[groups];
            group += z[0] == z[1];
        }
    /* of two codes half, of more no larger a share */
    EXPECT(column * 5 < (COLUMNS - 1) * (groups - 1) * 3, "uint%d: %d columns", bits, column);
    EXPECT(group * 5 < (COLUMNS - 1) * (groups - 1) * 3, "uint%d: %d groups", bits, group);
    filled_free(&f);
}
END_TEST

/* Pairs about a zero point have only the codes that lie on both sides of it, but all columns
 * together have all. */
START_TEST(every_code_occurs)
{
    const int bits = 1 + _i / FACTOR_KINDS;
    int seen[256] = {0};
    struct filled f;

    zeros_make(&f, bits, factor_kinds[_i % FACTOR_KINDS]);
    for (int64_t i = 0; i < COLUMNS * f.p.k; i++)
        seen[f.in.b[i]]++;
    for (int code = 0; code < 1 << bits; code++)
        EXPECT(seen[code] > 0, "uint%d: code %d does not occur", bits, code);
    filled_free(&f);
}
END_TEST

/* Neighbours among the input scales: rows, and groups of a row. */
START_TEST(input_scales_differ)
{
    const int group = _i % 2 ? 128 : 0, groups = group ? FACTOR_K / group : 1;
    struct ref_fill_spec spec = {.kind = factor_kinds[_i / 2], .seed = 77};
    struct ref_gemm p;
    struct filled f;
    int row = 0, along = 0;

    problem_make(&p, 0, FACTOR_K);
    p.a = dtype_find("float8e4m3");
    p.input_group = group;
    p.m = 64;
    filled_make(&f, &p, &spec);
    ck_assert_ptr_null(f.why);
    for (int i = 0; i + 1 < p.m; i++)
        for (int g = 0; g < groups; g++) {
            const float *s = f.in.input_scale + i * groups + g;

            row += s[0] == s[groups];
            along += g + 1 < groups && s[0] == s[1];
        }
    ck_assert_int_lt(row * 4, (int)(p.m - 1) * groups * 3);
    if (group)
        ck_assert_int_lt(along * 4, (int)(p.m - 1) * (groups - 1) * 3);
    filled_free(&f);
}
END_TEST

/* E2: pairs along k XOR a power of two are those of a layout swap. */
START_TEST(pairs_are_no_layout_swap)
{
    struct filled f;

    dense_make(&f, 1, _i);
    for (int64_t stride = 1; stride < 64; stride *= 2) {
        int equal = 0, count = 0;

        for (int64_t i = 0; i < ROWS; i++)
            for (int64_t l = 0; l < f.p.k; l++) {
                const uint16_t *row = f.in.a + i * f.p.k;

                if ((l ^ stride) >= f.p.k)
                    continue;
                equal += row[l] == row[l ^ stride];
                count++;
            }
        EXPECT(equal * 4 < count * 3, "%d of %d activations are those of k ^ %d", equal, count,
               (int)stride);
    }
    filled_free(&f);
}
END_TEST

/* The exponent of the largest power of two that all of x are whole multiples of. */
static int unit_of(const float *x, int64_t k)
{
    int unit = 1000;

    for (int64_t l = 0; l < k; l++) {
        double y = (double)x[l];
        int e = unit;

        while (y != 0.0 && e > -200 && ldexp(y, -e) != floor(ldexp(y, -e)))
            e--;
        unit = e < unit ? e : unit;
    }
    return unit;
}

/* C1 (docs/fills.md section 1) by its definition: E1 and W. */
START_TEST(sums_stay_whole)
{
    static const int64_t ks[] = {64, 512, 4096};
    struct ref_fill_spec spec = {.kind = _i % 2 ? REF_FILL_W : REF_FILL_E1, .seed = 77};
    struct ref_gemm p;
    struct filled f;
    float *a, *w;

    problem_make(&p, _i / 2 % SIDES, ks[_i / 2 / SIDES]);
    p.n = 8;
    filled_make(&f, &p, &spec);
    a = malloc((size_t)(p.m * p.k) * sizeof *a);
    w = malloc((size_t)(p.n * p.k) * sizeof *w);
    ck_assert(a && w);
    ref_operand_a(&f.p, a);
    ref_operand_w(&f.p, 0, p.n, w);
    for (int64_t j = 0; j < p.n; j++) {
        const int unit_w = unit_of(w + j * p.k, p.k);

        for (int64_t i = 0; i < p.m; i++) {
            double sum = 0.0;

            for (int64_t l = 0; l < p.k; l++)
                sum += fabs((double)a[i * p.k + l] * (double)w[j * p.k + l]);
            sum = ldexp(sum, -unit_w - unit_of(a + i * p.k, p.k));
            EXPECT(sum < 0x1p24, "row %d, column %d: terms of %.0f units", (int)i, (int)j, sum);
        }
    }
    free(a);
    free(w);
    filled_free(&f);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fill_rules");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, rows_and_columns_differ, 0, DENSE * SIDES);
    tcase_add_loop_test(tc, no_activation_is_zero, 0, DENSE * SIDES);
    tcase_add_loop_test(tc, both_signs_occur, 0, DENSE * SIDES);
    tcase_add_loop_test(tc, scales_are_long, 0, 3 * SIDES);
    tcase_add_loop_test(tc, zero_points_differ, 0, WHOLE_BITS * FACTOR_KINDS);
    tcase_add_loop_test(tc, every_code_occurs, 0, WHOLE_BITS * FACTOR_KINDS);
    tcase_add_loop_test(tc, input_scales_differ, 0, 2 * FACTOR_KINDS);
    tcase_add_loop_test(tc, pairs_are_no_layout_swap, 0, SIDES);
    tcase_add_loop_test(tc, sums_stay_whole, 0, 2 * SIDES * 3);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
