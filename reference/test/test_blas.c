#include "reference/blas.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Full-mantissa operands in [-1, 1): any change of order shows in the bits. */
static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)*state * 0x1p-63;
}

static void fill(float *s, double *d, int64_t count, uint64_t seed)
{
    for (int64_t i = 0; i < count; i++) {
        d[i] = uniform(&seed);
        s[i] = (float)d[i];
    }
}

struct operands {
    int64_t m, n, k;
    float *sa, *sw, *sc, *sd;
    double *da, *dw, *dc, *dd;
};

static struct operands make(int64_t m, int64_t n, int64_t k)
{
    struct operands o = {.m = m, .n = n, .k = k};

    o.sa = malloc((size_t)(m * k) * sizeof(float));
    o.sw = malloc((size_t)(n * k) * sizeof(float));
    o.sc = malloc((size_t)(m * n) * sizeof(float));
    o.sd = malloc((size_t)(m * n) * sizeof(float));
    o.da = malloc((size_t)(m * k) * sizeof(double));
    o.dw = malloc((size_t)(n * k) * sizeof(double));
    o.dc = malloc((size_t)(m * n) * sizeof(double));
    o.dd = malloc((size_t)(m * n) * sizeof(double));
    ck_assert(o.sa && o.sw && o.sc && o.sd && o.da && o.dw && o.dc && o.dd);
    fill(o.sa, o.da, m * k, 1);
    fill(o.sw, o.dw, n * k, 2);
    return o;
}

static void unmake(struct operands *o)
{
    free(o->sa);
    free(o->sw);
    free(o->sc);
    free(o->sd);
    free(o->da);
    free(o->dw);
    free(o->dc);
    free(o->dd);
}

static const struct {
    int64_t n, k;
} widths[] = {{1, 1}, {16, 16}, {33, 383}, {100, 16}, {130, 768}, {512, 100}, {600, 65}, {1100, 7}};

enum { M_MAX = 520 };

static const int64_t heights[] = {1,  2,   3,   5,   16,  31,  63,  64,
                                  65, 127, 128, 129, 255, 257, 512, 513};

/* The claims of blas.h: rows of a smaller M are those of a larger one, for any number of threads.
 * */
START_TEST(bits_independent_of_m_and_threads)
{
    struct operands o = make(M_MAX, widths[_i].n, widths[_i].k);

    ck_assert(ref_blas_f32(o.m, o.n, o.k, o.sa, o.sw, o.sc, 1));
    ck_assert(ref_blas_f64(o.m, o.n, o.k, o.da, o.dw, o.dc, 1));
    for (size_t h = 0; h < sizeof heights / sizeof heights[0]; h++) {
        const int64_t m = heights[h];
        const size_t count = (size_t)(m * o.n);
        size_t written = 0;

        memset(o.sd, 0xff, (size_t)(o.m * o.n) * sizeof(float));
        memset(o.dd, 0xff, (size_t)(o.m * o.n) * sizeof(double));
        ck_assert(ref_blas_f32(m, o.n, o.k, o.sa, o.sw, o.sd, (int)(h % 3) + 1));
        ck_assert(ref_blas_f64(m, o.n, o.k, o.da, o.dw, o.dd, (int)(h % 3) + 1));
        ck_assert_msg(!memcmp(o.sc, o.sd, count * sizeof(float)), "f32, m=%d", (int)m);
        ck_assert_msg(!memcmp(o.dc, o.dd, count * sizeof(double)), "f64, m=%d", (int)m);
        for (size_t i = count; i < (size_t)(o.m * o.n); i++) /* nothing behind row m is written */
            written += o.sd[i] == o.sd[i] || o.dd[i] == o.dd[i];
        ck_assert(written == 0);
    }
    unmake(&o);
}
END_TEST

/* Exact data: the calls for them return what the others do, for any m and number of threads. Sums
 * of k <= 768 products of 2^7 x 2^7 and 2^20 x 2^20 are exact. */
START_TEST(exact_data_any_blocks)
{
    struct operands o = make(2 * REF_BLAS_ROWS_EXACT + 5, widths[_i].n, widths[_i].k);

    for (int64_t i = 0; i < o.m * o.k; i++)
        o.sa[i] = rintf(o.sa[i] * 0x1p7f), o.da[i] = rint(o.da[i] * 0x1p20);
    for (int64_t i = 0; i < o.n * o.k; i++)
        o.sw[i] = rintf(o.sw[i] * 0x1p7f), o.dw[i] = rint(o.dw[i] * 0x1p20);
    ck_assert(ref_blas_f32(o.m, o.n, o.k, o.sa, o.sw, o.sc, 1));
    ck_assert(ref_blas_f64(o.m, o.n, o.k, o.da, o.dw, o.dc, 1));
    for (int h = 0; h < 6; h++) {
        const int64_t m = h < 3 ? heights[5 * h] : h * REF_BLAS_ROWS_EXACT / 3 + 5 * h % 2;
        const size_t count = (size_t)(m * o.n);

        ck_assert(ref_blas_exact_f32(m, o.n, o.k, o.sa, o.sw, o.sd, h % 3 + 1));
        ck_assert(ref_blas_exact_f64(m, o.n, o.k, o.da, o.dw, o.dd, h % 3 + 1));
        ck_assert_msg(!memcmp(o.sc, o.sd, count * sizeof(float)), "f32, m=%d", (int)m);
        ck_assert_msg(!memcmp(o.dc, o.dd, count * sizeof(double)), "f64, m=%d", (int)m);
    }
    unmake(&o);
}
END_TEST

/* Against a plain sum in the order of k: |difference| <= 2 gamma_k sum |a||w| (Higham, Accuracy and
 * Stability, 3.1). */
START_TEST(product_is_right)
{
    struct operands o = make(67, widths[_i].n, widths[_i].k);
    const double k = (double)o.k;
    int bad = 0;

    ck_assert(ref_blas_f32(o.m, o.n, o.k, o.sa, o.sw, o.sc, 2));
    ck_assert(ref_blas_f64(o.m, o.n, o.k, o.da, o.dw, o.dc, 2));
    for (int64_t i = 0; i < o.m * o.n; i++) {
        const double *a = o.da + i / o.n * o.k, *w = o.dw + i % o.n * o.k;
        double sum = 0.0, size = 0.0;

        for (int64_t l = 0; l < o.k; l++) {
            sum += a[l] * w[l];
            size += fabs(a[l] * w[l]);
        }
        bad += !(fabs(o.dc[i] - sum) <= 2.01 * k * 0x1p-53 * size);
        bad +=
            !(fabs((double)o.sc[i] - sum) <= (k + 3.0) * 0x1p-23 * size); /* operands rounded too */
    }
    ck_assert_int_eq(bad, 0);
    unmake(&o);
}
END_TEST

START_TEST(refuses_bad_sizes)
{
    const float a = 1.0f, w = 2.0f;
    float c = 7.0f;

    ck_assert(!ref_blas_f32(0, 1, 1, &a, &w, &c, 1));
    ck_assert(!ref_blas_f32(1, -1, 1, &a, &w, &c, 1));
    ck_assert(!ref_blas_f32(1, 1, INT64_C(1) << 31, &a, &w, &c, 1));
    ck_assert(c == 7.0f);
    ck_assert(ref_blas_f32(1, 1, 1, &a, &w, &c, -3));
    ck_assert(c == 2.0f);
}
END_TEST

/* ---- wrong libraries ---- */

static void last_column_short(int m, int n, int k, const float *a, const float *w, float *c,
                              int ldc)
{
    ref_blas_default.sgemm(m, n, k, a, w, c, ldc);
    if (n % 8 == 1 && k > 1) /* the last k is dropped in the last column of a tail */
        for (int i = 0; i < m; i++)
            c[(size_t)i * (size_t)ldc + (size_t)n - 1] -=
                a[(size_t)i * (size_t)k + (size_t)k - 1] *
                w[(size_t)(n - 1) * (size_t)k + (size_t)k - 1];
}

static void nan_in_row_0(int m, int n, int k, const float *a, const float *w, float *c, int ldc)
{
    ref_blas_default.sgemm(m, n, k, a, w, c, ldc);
    c[0] /= 0.0f * c[0];
}

static void in_single(int m, int n, int k, const double *a, const double *w, double *c, int ldc)
{
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            float sum = 0.0f;

            for (int l = 0; l < k; l++)
                sum += (float)a[i * k + l] * (float)w[j * k + l];
            c[i * ldc + j] = (double)sum;
        }
}

static const struct {
    struct ref_blas blas;
    const char *word;
} wrong[] = {
    {{last_column_short, NULL}, "sgemm"},
    {{nan_in_row_0, NULL}, "sgemm"},
    {{NULL, in_single}, "dgemm"},
};

START_TEST(self_test_sees_wrong_libraries)
{
    struct ref_blas blas = wrong[_i].blas;
    char reason[300] = "";

    blas.sgemm = blas.sgemm ? blas.sgemm : ref_blas_default.sgemm;
    blas.dgemm = blas.dgemm ? blas.dgemm : ref_blas_default.dgemm;
    ck_assert(!ref_blas_self_test_with(&blas, reason, sizeof reason));
    ck_assert_msg(strstr(reason, wrong[_i].word) != NULL, "%s", reason);
    ck_assert_msg(strstr(reason, "core ") != NULL, "%s", reason);
    ck_assert(strchr(reason, '\n') == NULL);
}
END_TEST

START_TEST(self_test_passes)
{
    char reason[300] = "", version[200] = "";

    ck_assert_msg(ref_blas_self_test(reason, sizeof reason), "%s", reason);
    ref_blas_version(version, sizeof version);
    ck_assert(strstr(version, "OpenBLAS") && strstr(version, ", core "));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("blas");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    ref_blas_init();
    tcase_add_loop_test(tc, bits_independent_of_m_and_threads, 0,
                        (int)(sizeof widths / sizeof widths[0]));
    tcase_add_loop_test(tc, exact_data_any_blocks, 0, (int)(sizeof widths / sizeof widths[0]));
    tcase_add_loop_test(tc, product_is_right, 0, (int)(sizeof widths / sizeof widths[0]));
    tcase_add_test(tc, refuses_bad_sizes);
    tcase_add_loop_test(tc, self_test_sees_wrong_libraries, 0,
                        (int)(sizeof wrong / sizeof wrong[0]));
    tcase_add_test(tc, self_test_passes);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
