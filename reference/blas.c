#include "reference/blas.h"

#include <cblas.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void openblas_sgemm(int m, int n, int k, const float *a, const float *w, float *c, int ldc)
{
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, 1.0f, a, k, w, k, 0.0f, c, ldc);
}

static void openblas_dgemm(int m, int n, int k, const double *a, const double *w, double *c,
                           int ldc)
{
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, 1.0, a, k, w, k, 0.0, c, ldc);
}

const struct ref_blas ref_blas_default = {openblas_sgemm, openblas_dgemm};

void ref_blas_init(void)
{
    openblas_set_num_threads(1);
}

void ref_blas_version(char *text, size_t size)
{
    (void)snprintf(text, size, "%s, core %s", openblas_get_config(), openblas_get_corename());
}

/* A block that is cut: its whole result. */
enum { CUT_BYTES = REF_BLAS_ROWS_MAX * REF_BLAS_COLS * (int)sizeof(double) };

/* One product while its threads run; only `next` changes. */
struct product {
    const struct ref_blas *blas;
    bool is_double, exact;
    size_t size; /* of an element */
    int64_t m, n, k, row_blocks;
    const char *a, *w;
    const char *last_a; /* the last row block with zero rows appended; NULL: m ends on a border */
    char *c;
    atomic_llong next; /* block to be taken next */
    long long blocks;
};

static int64_t slab_cols(bool exact)
{
    return exact ? REF_BLAS_COLS_EXACT : REF_BLAS_COLS;
}

/* First row of row block b (blas.h): 0, 64, 128, 256, 512, ..., or, of exact data, tall ones. */
static int64_t block_row(int64_t b, bool exact)
{
    return exact    ? b * REF_BLAS_ROWS_EXACT
           : b < 2  ? b * REF_BLAS_ROWS_MIN
           : b == 2 ? INT64_C(2) * REF_BLAS_ROWS_MIN
                    : (b - 2) * REF_BLAS_ROWS_MAX;
}

static int64_t count_row_blocks(int64_t m, bool exact)
{
    int64_t b = m <= REF_BLAS_ROWS_MAX ? 0 : m / REF_BLAS_ROWS_MAX + 1;

    if (exact)
        return (m + REF_BLAS_ROWS_EXACT - 1) / REF_BLAS_ROWS_EXACT;
    while (block_row(b, exact) < m)
        b++;
    return b;
}

static void multiply(const struct product *p, int64_t rows, int64_t cols, const void *a,
                     const void *w, void *c, int64_t ldc)
{
    if (p->is_double)
        p->blas->dgemm((int)rows, (int)cols, (int)p->k, a, w, c, (int)ldc);
    else
        p->blas->sgemm((int)rows, (int)cols, (int)p->k, a, w, c, (int)ldc);
}

/* One block; `cut` has room for REF_BLAS_ROWS_MAX x REF_BLAS_COLS elements if the last block is not
 * whole. */
static void multiply_block(const struct product *p, long long block, char *cut)
{
    const int64_t slab = slab_cols(p->exact);
    const int64_t b = block % p->row_blocks, col = block / p->row_blocks * slab;
    const int64_t cols = p->n - col < slab ? p->n - col : slab;
    const int64_t row = block_row(b, p->exact), whole = block_row(b + 1, p->exact) - row;
    const int64_t rows = p->exact && p->m - row < whole ? p->m - row : whole;
    const size_t size = p->size;
    const char *w = p->w + (size_t)(col * p->k) * size;
    char *c = p->c + (size_t)(row * p->n + col) * size;

    if (row + rows <= p->m) {
        multiply(p, rows, cols, p->a + (size_t)(row * p->k) * size, w, c, p->n);
        return;
    }
    multiply(p, rows, cols, p->last_a, w, cut, cols);
    for (int64_t i = 0; i < p->m - row; i++)
        memcpy(c + (size_t)(i * p->n) * size, cut + (size_t)(i * cols) * size, (size_t)cols * size);
}

/* What a thread needs of its own. */
struct hand {
    struct product *product;
    char *cut;
    pthread_t id;
};

static void *work(void *arg)
{
    const struct hand *h = arg;
    long long block;

    while ((block = atomic_fetch_add(&h->product->next, 1)) < h->product->blocks)
        multiply_block(h->product, block, h->cut);
    return NULL;
}

/* Runs hands[0] here and the others in threads; a thread that cannot be had is done without. */
static void work_all(struct hand *hands, int count)
{
    int started = 1;

    while (started < count && pthread_create(&hands[started].id, NULL, work, &hands[started]) == 0)
        started++;
    work(&hands[0]);
    for (int i = 1; i < started; i++)
        pthread_join(hands[i].id, NULL);
}

/* Space for cut blocks, one a thread, and behind it the last row block with its zero rows: none if
 * m ends on a border. False: no memory. */
static bool make_space(struct product *p, int threads, char **space)
{
    const size_t cuts = (size_t)threads * CUT_BYTES;
    const int64_t row = block_row(p->row_blocks - 1, p->exact);
    const int64_t rows = block_row(p->row_blocks, p->exact) - row;

    *space = NULL;
    if (p->exact || row + rows == p->m)
        return true;
    *space = calloc(cuts + (size_t)(rows * p->k) * p->size, 1);
    if (!*space)
        return false;
    memcpy(*space + cuts, p->a + (size_t)(row * p->k) * p->size,
           (size_t)((p->m - row) * p->k) * p->size);
    p->last_a = *space + cuts;
    return true;
}

bool ref_blas_multiply(const struct ref_blas *blas, const struct ref_blas_product *x, int threads)
{
    struct product p = {.blas = blas, .is_double = x->is_double, .exact = x->exact};
    struct hand hands[REF_BLAS_THREADS_MAX];
    char *space;

    if (!(x->m >= 1 && x->n >= 1 && x->k >= 1 && x->m <= INT_MAX && x->n <= INT_MAX &&
          x->k <= INT_MAX))
        return false;
    p.m = x->m;
    p.n = x->n;
    p.k = x->k;
    p.size = x->is_double ? sizeof(double) : sizeof(float);
    p.a = x->a;
    p.w = x->w;
    p.c = x->c;
    p.row_blocks = count_row_blocks(x->m, x->exact);
    p.blocks = (x->n + slab_cols(x->exact) - 1) / slab_cols(x->exact) * p.row_blocks;
    threads = threads > REF_BLAS_THREADS_MAX ? REF_BLAS_THREADS_MAX : threads;
    threads = threads > p.blocks ? (int)p.blocks : threads;
    threads = threads < 1 ? 1 : threads;
    if (!make_space(&p, threads, &space))
        return false;
    for (int i = 0; i < threads; i++) {
        hands[i].product = &p;
        hands[i].cut = space ? space + (size_t)i * CUT_BYTES : NULL;
    }
    work_all(hands, threads);
    free(space);
    return true;
}

static bool multiply_by_default(struct ref_blas_product x, void *c, int threads)
{
    x.c = c;
    return ref_blas_multiply(&ref_blas_default, &x, threads);
}

bool ref_blas_f32(int64_t m, int64_t n, int64_t k, const float *a, const float *w, float *c,
                  int threads)
{
    const struct ref_blas_product x = {false, false, m, n, k, a, w, NULL};

    return multiply_by_default(x, c, threads);
}

bool ref_blas_f64(int64_t m, int64_t n, int64_t k, const double *a, const double *w, double *c,
                  int threads)
{
    const struct ref_blas_product x = {true, false, m, n, k, a, w, NULL};

    return multiply_by_default(x, c, threads);
}

bool ref_blas_exact_f32(int64_t m, int64_t n, int64_t k, const float *a, const float *w, float *c,
                        int threads)
{
    const struct ref_blas_product x = {false, true, m, n, k, a, w, NULL};

    return multiply_by_default(x, c, threads);
}

bool ref_blas_exact_f64(int64_t m, int64_t n, int64_t k, const double *a, const double *w,
                        double *c, int threads)
{
    const struct ref_blas_product x = {true, true, m, n, k, a, w, NULL};

    return multiply_by_default(x, c, threads);
}

/* ---- self test ---- */

/* One row; a second, odd slab; tails of every tile height and width; K beside the library's own
 * borders; a block of 256 rows. */
static const struct {
    int m, n, k;
} test_shapes[] = {{1, 1, 1},    {1, 513, 77},  {2, 9, 16},    {7, 31, 255},
                   {65, 17, 33}, {129, 24, 48}, {13, 67, 1000}};

enum { TEST_A = 13 * 1000, TEST_W = 67 * 1000, TEST_C = 129 * 24 }; /* the largest of each */

/* Operands as integers, and as numbers of the precision under test. */
struct test_data {
    int32_t a[TEST_A], w[TEST_W];
    double da[TEST_A], dw[TEST_W], dc[TEST_C];
    float sa[TEST_A], sw[TEST_W], sc[TEST_C];
};

/* Integers in (-range, range), no two neighbours alike (a linear congruential generator, Knuth's
 * MMIX constants). */
static void test_fill(int32_t *v, float *s, double *d, int count, int32_t range, uint64_t state)
{
    for (int i = 0; i < count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        v[i] = (int32_t)(state >> 33) % range;
        v[i] = state >> 63 ? -v[i] : v[i];
        s[i] = (float)v[i];
        d[i] = v[i];
    }
}

static bool test_shape(const struct ref_blas *blas, struct test_data *t, int way, char *reason,
                       size_t size)
{
    const bool is_double = way & 1, exact = way & 2; /* four ways to multiply a shape */
    const int shape = way / 4;
    const int m = test_shapes[shape].m, n = test_shapes[shape].n, k = test_shapes[shape].k;
    const char *name = is_double ? "dgemm" : "sgemm";
    /* 2^7 x 2^7 x 1000 < 2^24 and 2^20 x 2^20 x 1000 < 2^51: every partial sum is exact. */
    const int32_t range = is_double ? 1 << 20 : 1 << 7;
    struct ref_blas_product x = {false, exact, m, n, k, t->sa, t->sw, t->sc};

    test_fill(t->a, t->sa, t->da, m * k, range, 1);
    test_fill(t->w, t->sw, t->dw, n * k, range, 2);
    if (is_double)
        x = (struct ref_blas_product){true, exact, m, n, k, t->da, t->dw, t->dc};
    if (!ref_blas_multiply(blas, &x, 1)) {
        (void)snprintf(reason, size, "no memory to test OpenBLAS");
        return false;
    }
    for (int i = 0; i < m * n; i++) {
        const int32_t *a = t->a + (size_t)(i / n) * (size_t)k;
        const int32_t *w = t->w + (size_t)(i % n) * (size_t)k;
        const double got = is_double ? t->dc[i] : (double)t->sc[i];
        int64_t want = 0;

        for (int l = 0; l < k; l++)
            want += (int64_t)a[l] * w[l];
        if (!(got == (double)want)) {
            (void)snprintf(
                reason, size,
                "OpenBLAS (core %s) computes %s wrongly: m=%d n=%d k=%d gives %.17g in row %d, "
                "column %d instead of %lld",
                openblas_get_corename(), name, m, n, k, got, i / n, i % n, (long long)want);
            return false;
        }
    }
    return true;
}

bool ref_blas_self_test_with(const struct ref_blas *blas, char *reason, size_t size)
{
    struct test_data *t = malloc(sizeof *t);
    bool ok = t != NULL;

    if (!t)
        (void)snprintf(reason, size, "no memory to test OpenBLAS");
    for (int way = 0; ok && way < 4 * (int)(sizeof test_shapes / sizeof test_shapes[0]); way++)
        ok = test_shape(blas, t, way, reason, size);
    free(t);
    return ok;
}

bool ref_blas_self_test(char *reason, size_t size)
{
    return ref_blas_self_test_with(&ref_blas_default, reason, size);
}
