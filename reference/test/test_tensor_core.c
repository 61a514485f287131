/* The table of units against what the sources state, measured on tc_run; a second implementation of
 * the rules in tensor_core.h; and properties. */
#include "reference/tensor_core.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define INF  HUGE_VAL
#define FMAX (0x1p128 - 0x1p104) /* the largest f32 */

enum { MAX_K = 64 };

static bool same(double x, double y)
{
    return x == y || (isnan(x) && isnan(y));
}

/* ---- b and T of every row, measured on tc_run as a probe would on a device ---- */

/* What the sources state. An emulated unit splits k, so that its first distance is 2. */
/* clang-format off */
static const struct {
    int sm;
    enum tc_instruction instruction;
    const char *format;
    bool f16;
    int b, t;
} stated[] = {
    { 70, TC_MMA, "f16",  false, 4, 23},      { 70, TC_MMA, "f16",  true,  4, 23},
    { 75, TC_MMA, "f16",  false, 8, 24},      { 75, TC_MMA, "f16",  true,  8, 24},
    { 80, TC_MMA, "f16",  false, 8, 24},      { 80, TC_MMA, "f16",  true,  8, 24},
    { 80, TC_MMA, "bf16", false, 8, 24},      { 80, TC_MMA, "tf32", false, 4, 24},
    { 86, TC_MMA, "f16",  false, 8, 24},      { 86, TC_MMA, "f16",  true,  8, 24},
    { 86, TC_MMA, "bf16", false, 8, 24},      { 86, TC_MMA, "tf32", false, 4, 24},
    { 89, TC_MMA, "f16",  false, 8, 24},      { 89, TC_MMA, "f16",  true,  8, 24},
    { 89, TC_MMA, "bf16", false, 8, 24},      { 89, TC_MMA, "tf32", false, 4, 24},
    { 89, TC_MMA, "e4m3", false, 16, 13},     { 89, TC_MMA, "e5m2", true, 16, 13},
    { 90, TC_MMA, "f16",  false, 16, 25},     { 90, TC_MMA, "f16",  true, 16, 25},
    { 90, TC_MMA, "bf16", false, 16, 25},     { 90, TC_MMA, "tf32", false, 8, 25},
    { 90, TC_MMA, "e4m3", false, 2, 25},      { 90, TC_MMA, "e5m2", true, 2, 25},
    { 90, TC_WGMMA, "f16",  false, 16, 25},   { 90, TC_WGMMA, "f16",  true, 16, 25},
    { 90, TC_WGMMA, "e4m3", false, 32, 13},   { 90, TC_WGMMA, "e5m2", true, 32, 13},
    {100, TC_MMA, "bf16", false, 16, 25},     {100, TC_MMA, "f16",  true, 16, 25},
    {100, TC_MMA, "tf32", false, 8, 25},
    {100, TC_MMA, "e4m3", false, 2, 25},      {100, TC_MMA, "e5m2", true, 2, 25},
    {100, TC_TCGEN05, "bf16", false, 16, 25}, {100, TC_TCGEN05, "f16", true, 16, 25},
    {100, TC_TCGEN05, "e4m3", false, 32, 25}, {100, TC_TCGEN05, "e5m2", true, 32, 25},
    {120, TC_MMA, "e4m3", false, 32, 25},
};
/* clang-format on */

static const struct dtype tf32 = {
    "tf32", NULL, 19, 8, 10, true, true, 127, DTYPE_TOP_INF_NAN, "PTX ISA, alternate formats"};

/* 2^8 - 2^8 at places 0 and `minus`, and 2^(8 - j) at `at`. */
static double pair_and(const struct tc_row *row, const struct dtype *t, int minus, int at, int j)
{
    float a[MAX_K] = {[0] = 16.0f}, b[MAX_K] = {[0] = 16.0f};

    a[minus] = -16.0f;
    b[minus] = 16.0f;
    a[at] = ldexpf(1.0f, (8 - j) / 2);
    b[at] = ldexpf(1.0f, 8 - j - (8 - j) / 2);
    return tc_run(row, t, a, t, b, MAX_K, 0.0);
}

START_TEST(probe)
{
    bool is_tf32 = !strcmp(stated[_i].format, "tf32");
    const struct dtype *t = is_tf32 ? &tf32 : dtype_find(stated[_i].format);
    const struct tc_row *row = tc_find(stated[_i].sm, stated[_i].instruction, t, stated[_i].f16);
    int b = 2, j = 1;

    ck_assert_ptr_nonnull(row);
    while (b < MAX_K && pair_and(row, t, 1, b, 26) == 0.0)
        b++;
    ck_assert_int_eq(b, stated[_i].b);
    while (j < 26 && pair_and(row, t, row->emulated ? 4 : 2, 1, j + 1) != 0.0)
        j++;
    ck_assert_int_eq(j, stated[_i].t);
}
END_TEST

/* ---- a second implementation: frexp, ldexp and trunc, one rule after the other ---- */

static int exponent_of(double x, int least)
{
    int e;

    (void)frexp(x, &e);
    return e - 1 > least ? e - 1 : least;
}

static double finish(const struct tc_row *row, double sum)
{
    int e;

    if (sum == 0.0)
        return 0.0;
    if (row->f16_accum) {
        e = exponent_of(sum, -14) - 10;
        sum = ldexp(nearbyint(ldexp(sum, -e)), e);
        return fabs(sum) > 65504.0 ? copysign(INF, sum) : sum;
    }
    e = exponent_of(sum, -126) - row->significant + 1;
    sum = ldexp(trunc(ldexp(sum, -e)), e);
    return fabs(sum) > FMAX ? copysign(INF, sum) : sum;
}

static double plain_block(const struct tc_row *row, int least_e, const float *a, const float *b,
                          int n, double c)
{
    int e = c != 0.0 ? exponent_of(c, row->f16_accum ? -14 : -126) : -10000;
    double sum;

    for (int i = 0; i < n; i++)
        if (a[i] * b[i] != 0.0f || (a[i] != 0.0f && b[i] != 0.0f)) {
            int both = exponent_of((double)a[i], least_e) + exponent_of((double)b[i], least_e);

            e = both > e ? both : e;
        }
    if (e == -10000)
        return 0.0;
    e = e > row->least_e ? e : row->least_e;
    sum = trunc(ldexp(c, row->fraction - e));
    for (int i = 0; i < n; i++)
        sum += trunc(ldexp((double)a[i] * (double)b[i], row->fraction - e));
    return finish(row, ldexp(sum, e - row->fraction));
}

static double plain_chain(const struct tc_row *row, const struct dtype *t, const float *a,
                          const float *b, int k, double c)
{
    for (int l = 0; l < k; l += row->block)
        c = isfinite(c) ? plain_block(row, dtype_min_exponent(t), a + l, b + l,
                                      k - l < row->block ? k - l : row->block, c)
                        : c;
    return c;
}

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

/* A code whose exponent field is one of `span` about the middle of the format; subnormals now
 * and then. */
static float random_number(const struct dtype *t, int span, uint64_t *state)
{
    uint32_t r = next_random(state), middle = (1u << t->exp_bits) / 2u;
    uint32_t exponent = middle - (uint32_t)span / 2u + r % (uint32_t)span;
    uint32_t code = next_random(state) & ((1u << t->man_bits) - 1u);

    if (r >> 16 & 15)
        code |= exponent << t->man_bits;
    if (r >> 20 & 1)
        code |= 1u << (t->bits - 1);
    return (float)dtype_decode(t, code);
}

/* Random operands and, in every second vector, a c of their size. */
static double random_vector(const struct tc_row *row, const struct dtype *t, int span,
                            uint64_t *state, float *a, float *b)
{
    const struct dtype *acc = dtype_find(row->f16_accum ? "f16" : "f32");
    double c;

    for (int i = 0; i < MAX_K; i++) {
        a[i] = random_number(t, span, state);
        b[i] = random_number(t, span, state);
    }
    c = (double)a[0] * (double)b[1] * (1.0 + (double)next_random(state) * 0x1p-31);
    c = dtype_decode(acc, dtype_encode(acc, c, DTYPE_TO_TOP));
    return next_random(state) & 1 && isfinite(c) ? c : 0.0;
}

START_TEST(second_implementation)
{
    static const int spans[] = {2, 5, 14};
    const struct tc_row *row = &tc_rows[_i];
    uint64_t state = 1;

    for (int f = 0; f < TC_MAX_FORMATS && row->formats[f] && !row->emulated; f++) {
        const struct dtype *t = dtype_find(row->formats[f]);

        for (int i = 0; t && i < 3000; i++) {
            float a[MAX_K], b[MAX_K];
            int span = spans[i % 3] < 1 << t->exp_bits ? spans[i % 3] : 1 << t->exp_bits;
            double c = random_vector(row, t, span, &state, a, b);
            double got = tc_run(row, t, a, t, b, MAX_K - i % 3, c);
            double want = plain_chain(row, t, a, b, MAX_K - i % 3, c);

            ck_assert_msg(same(got, want), "row %d %s: got %a, want %a", _i, t->name, got, want);
        }
    }
}
END_TEST

/* Emulated rows: the parts, gathered here by hand, through the f16 row of the same unit. */
START_TEST(emulation)
{
    const struct tc_row *row = &tc_rows[_i];
    const struct dtype *f16 = dtype_find("f16"), *t = dtype_find("e4m3");
    const struct tc_row *unit = tc_find(row->sm, TC_MMA, f16, row->f16_accum);
    uint64_t state = 2;

    for (int i = 0; i < 3000 && row->emulated; i++) {
        float a[MAX_K], b[MAX_K], pa[MAX_K / 2], pb[MAX_K / 2];
        double c = random_vector(row, t, 6, &state, a, b), h;

        for (int j = 0; j < 32; j++) { /* 0 1 4 5 8 9 ... then 2 3 6 7 10 11 ... */
            int k = j / 16 * 2 + j % 16 / 2 * 4 + j % 2;

            pa[j] = a[k];
            pb[j] = b[k];
        }
        h = plain_chain(unit, f16, pa, pb, 32, 0.0);
        if (row->f16_accum)
            h = dtype_decode(f16, dtype_encode(f16, h + c, DTYPE_TO_TOP));
        else
            h = (double)((float)h + (float)c);
        ck_assert_double_eq(tc_run(row, t, a, t, b, 32, c), h);
    }
}
END_TEST

/* ---- properties ---- */

static void swap(float *x, int i, int j)
{
    float t = x[i];

    x[i] = x[j];
    x[j] = t;
}

/* Bits do not depend on the order within a block; they do on the order of blocks. */
START_TEST(permutation)
{
    const struct tc_row *row = &tc_rows[_i];
    const struct dtype *t = dtype_find(row->formats[0]);
    uint64_t state = 3;
    int differ = 0;

    for (int i = 0; t && i < 500 && !row->emulated; i++) {
        float a[MAX_K], b[MAX_K];
        double c = random_vector(row, t, 4, &state, a, b);
        double want = tc_run(row, t, a, t, b, MAX_K, c);

        for (int j = 0; j < MAX_K; j++) {
            int first = j / row->block * row->block;
            int other = first + (int)(next_random(&state) % (uint32_t)row->block);

            swap(a, j, other);
            swap(b, j, other);
        }
        ck_assert(same(tc_run(row, t, a, t, b, MAX_K, c), want));
        for (int j = 0; j < row->block; j++) {
            swap(a, j, MAX_K - row->block + j);
            swap(b, j, MAX_K - row->block + j);
        }
        differ += !same(tc_run(row, t, a, t, b, MAX_K, c), want);
    }
    ck_assert(row->emulated || !t || differ > 0);
}
END_TEST

/* With terms of one sign, f32 results never exceed the exact sum (here exact in double), and
 * lose at most what the alignment of each term and the truncation can. */
START_TEST(toward_zero)
{
    const struct tc_row *row = &tc_rows[_i];
    const struct dtype *t = dtype_find(row->formats[0]);
    uint64_t state = 4;
    int below = 0;

    for (int i = 0; t && i < 500 && !row->f16_accum && !row->emulated; i++) {
        float a[MAX_K], b[MAX_K];
        double sum = fabs(random_vector(row, t, 6, &state, a, b)), got, lost;

        for (int j = 0; j < MAX_K; j++) {
            a[j] = fabsf(a[j]);
            b[j] = fabsf(b[j]);
        }
        got = tc_run(row, t, a, t, b, MAX_K, sum);
        for (int j = 0; j < MAX_K; j++)
            sum += (double)a[j] * (double)b[j];
        lost = sum * 3 * MAX_K * ldexp(1.0, 1 - row->significant);
        ck_assert(got <= sum && !(sum - got > lost));
        below += got < sum;
    }
    ck_assert(!t || row->f16_accum || row->emulated || below > 0);
}
END_TEST

/* ---- the table ---- */

/* Names of formats lead back to their row. */
static void check_formats(const struct tc_row *row)
{
    for (int f = 0; f < TC_MAX_FORMATS && row->formats[f]; f++) {
        const struct dtype key = {.name = row->formats[f]};

        ck_assert_ptr_eq(tc_find(row->sm, row->instruction, &key, row->f16_accum), row);
    }
}

START_TEST(table)
{
    const struct tc_row *row = &tc_rows[_i];

    ck_assert(row->block >= 4 && row->block <= TC_MAX_BLOCK && MAX_K % row->block == 0);
    ck_assert_int_le(row->fraction, 25); /* int32 terms: fraction + 2 bits */
    ck_assert(row->f16_accum == (row->significant == 0));
    ck_assert(row->source && strlen(tc_instruction_name(row->instruction)) > 0);
    ck_assert(strlen(tc_status_name(row->status)) > 0);
    check_formats(row);
}
END_TEST

START_TEST(unknown)
{
    ck_assert_ptr_null(tc_find(90, TC_MMA, dtype_find("int8"), false));
    ck_assert_ptr_null(tc_find(90, TC_WGMMA, dtype_find("bf16"), true));
    ck_assert_ptr_null(tc_find(80, TC_WGMMA, dtype_find("f16"), false));
    ck_assert_ptr_null(tc_find(80, TC_MMA, dtype_find("e4m3"), false));
    ck_assert_ptr_null(tc_find(61, TC_MMA, dtype_find("f16"), false));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("tensor_core");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_loop_test(tc, probe, 0, (int)(sizeof stated / sizeof stated[0]));
    tcase_add_loop_test(tc, second_implementation, 0, tc_row_count);
    tcase_add_loop_test(tc, emulation, 0, tc_row_count);
    tcase_add_loop_test(tc, permutation, 0, tc_row_count);
    tcase_add_loop_test(tc, toward_zero, 0, tc_row_count);
    tcase_add_loop_test(tc, table, 0, tc_row_count);
    tcase_add_test(tc, unknown);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
