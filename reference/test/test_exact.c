#include "reference/exact.h"
#include "reference/rng.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(x) ((int)(sizeof(x) / sizeof(x)[0]))

static uint64_t word(uint64_t i)
{
    return rng_word(11, RNG_TEST, i);
}

/* ---- norms ---------------------------------------------------------------------------------- */

/* x as an odd whole number times 2^e, by its fields; zero gives 0. */
static uint32_t odd_part(float x, int *e)
{
    uint32_t bits, man;
    int field;

    memcpy(&bits, &x, sizeof bits);
    field = (int)(bits >> 23 & 255);
    man = (bits & 0x7fffff) | (field ? 1u << 23 : 0);
    *e = (field ? field : 1) - 150;
    while (man && !(man & 1)) {
        man >>= 1;
        ++*e;
    }
    return man;
}

static bool not_a_number(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return (bits & 0x7f800000u) == 0x7f800000u;
}

/* In whole numbers; slow. */
static struct ref_norm slow_norm(const float *x, int64_t k)
{
    const struct ref_norm none = {HUGE_VAL, HUGE_VAL, 0};
    int low = 1000, high = -1000, e;
    uint64_t sum = 0, max = 0;

    for (int64_t l = 0; l < k; l++) {
        uint32_t man = odd_part(x[l], &e);
        int bits = 0;

        if (not_a_number(x[l]))
            return none;
        if (!man)
            continue;
        while (man >> bits)
            bits++;
        low = e < low ? e : low;
        high = e + bits > high ? e + bits : high;
    }
    if (low == 1000)
        return (struct ref_norm){0};
    if (high - low > 24)
        return none;
    for (int64_t l = 0; l < k; l++) {
        uint64_t q = odd_part(x[l], &e);

        q = q ? q << (e - low) : 0;
        sum += q;
        max = q > max ? q : max;
    }
    return (struct ref_norm){(double)sum, (double)max, low};
}

static void expect_norm(const float *x, int64_t k)
{
    struct ref_norm got, want = slow_norm(x, k);

    ref_norms(x, 1, k, &got);
    ck_assert_msg(got.sum == want.sum && got.max == want.max && got.unit == want.unit,
                  "k %d, x[0] %a: got %a %a 2^%d, want %a %a 2^%d", (int)k, (double)x[0], got.sum,
                  got.max, got.unit, want.sum, want.max, want.unit);
}

enum { KMAX = 1100 };

/* Whole numbers of 1 to 24 bits at every place of the exponent range, subnormals included. */
START_TEST(norms_of_integers)
{
    static const int64_t ks[] = {1, 7, 128, 129, KMAX};
    float x[KMAX];

    for (int bits = 1; bits <= 24; bits++)
        for (int e = -149; e + bits <= 128; e += 3) {
            int64_t k = ks[(bits + e + 149) % COUNT(ks)];

            for (int64_t l = 0; l < k; l++) {
                uint64_t r = word((uint64_t)(l + bits * 4096));
                float q = (float)(r >> 20 & ((1u << bits) - 1));

                x[l] = ldexpf(r & 1 ? -q : q, e);
            }
            expect_norm(x, k);
        }
}
END_TEST

/* Any patterns: mostly more than 24 bits apart, with infinities and NaN. */
START_TEST(norms_of_patterns)
{
    for (uint64_t t = 0; t < 20000; t++) {
        float x[4];
        int64_t k = 1 + (int64_t)(t % 4);

        for (int i = 0; i < 4; i++) {
            uint32_t bits = (uint32_t)word(4 * t + (uint64_t)i);

            if (t % 3) /* short numbers of nearby exponents */
                bits = (bits & 0x81f00000u) | 0x40000000u;
            memcpy(&x[i], &bits, sizeof bits);
        }
        expect_norm(x, k);
    }
}
END_TEST

static const float corners[][3] = {
    {0.0f, -0.0f, 0.0f},
    {0x1p-149f, 0.0f, -0x1p-149f},
    {0x1p-126f, 0x1p-149f, 0.0f},      /* 24 bits */
    {0x1p-125f, 0x1p-149f, 0.0f},      /* 25 */
    {0x1.fffffep127f, 0x1p104f, 0.0f}, /* the largest, and one unit in its last place */
    {0x1.fffffep127f, 0x1p103f, 0.0f}, /* half a unit */
    {0x1p127f, 0x1p-149f, 0.0f},       /* scaled to the largest, this is 0 in f32 */
    {0x1p127f, 0x1p-100f, 0x1p-126f},  /* likewise */
    {1.0f, 0x1p-24f, 0.0f},            /* 25 bits */
    {1.0f, 0x1p-23f, 0.0f},            /* 24 */
    {HUGE_VALF, 1.0f, 0.0f},
    {1.0f, -HUGE_VALF, 0.0f},
    {1.0f, 2.0f, NAN},
};

START_TEST(norms_of_corners)
{
    expect_norm(corners[_i], 3);
}
END_TEST

START_TEST(norms_of_rows)
{
    const float x[] = {1.0f, -3.0f, 0.5f, 4.0f, 0.0f, 0.0f};
    struct ref_norm n[3];

    ref_norms(x, 3, 2, n);
    ck_assert(n[0].sum == 4.0 && n[0].max == 3.0 && n[0].unit == 0);
    ck_assert(n[1].sum == 9.0 && n[1].max == 8.0 && n[1].unit == -1);
    ck_assert(n[2].sum == 0.0 && n[2].max == 0.0 && n[2].unit == 0);
}
END_TEST

/* ---- P and chunks ---------------------------------------------------------------------------- */

struct product {
    int64_t m, n, k;
    float a[40 * 50], w[9 * 50];
    int64_t ai[40 * 50], wi[9 * 50]; /* the same as whole numbers */
    struct ref_norm na[40], nw[9];
};

/* Rows of whole numbers up to `top`, each with a power of two of its own; the last element is 1, so
 * that this power is the unit. */
static void make_side(uint64_t seed, int64_t rows, int64_t k, uint32_t top, int spread, float *x,
                      int64_t *xi)
{
    for (int64_t i = 0; i < rows; i++) {
        int e = (int)(word(seed + 977 * (uint64_t)i) >> 40) % (spread + 1) - spread / 2;

        for (int64_t l = 0; l < k; l++) {
            uint64_t r = word(seed + 10007 + (uint64_t)(i * k + l));
            int64_t q = l == k - 1 ? 1 : (int64_t)rng_below(r, top + 1);

            xi[i * k + l] = r & 1 ? -q : q;
            x[i * k + l] = ldexpf((float)xi[i * k + l], e);
        }
    }
}

static void make_product(struct product *p, uint64_t t, uint32_t top)
{
    p->m = 1 + (int64_t)(word(t) % 40);
    p->n = 1 + (int64_t)(word(t) >> 20) % 9;
    p->k = 1 + (int64_t)(word(t) >> 40) % 50;
    make_side(t * 100000, p->m, p->k, top, 200, p->a, p->ai);
    make_side(t * 100000 + 50000, p->n, p->k, top, 220, p->w, p->wi);
    ref_norms(p->a, p->m, p->k, p->na);
    ref_norms(p->w, p->n, p->k, p->nw);
}

/* The largest sum of |products|, and the largest that norms allow. */
static void brute_p(const struct product *p, double *sum, double *by_norms)
{
    *sum = *by_norms = 0.0;
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            int64_t s = 0, sa = 0, sw = 0, ma = 0, mw = 0;

            for (int64_t l = 0; l < p->k; l++) {
                int64_t a = llabs(p->ai[i * p->k + l]), w = llabs(p->wi[j * p->k + l]);

                s += a * w;
                sa += a;
                sw += w;
                ma = a > ma ? a : ma;
                mw = w > mw ? w : mw;
            }
            *sum = fmax(*sum, (double)s);
            *by_norms = fmax(*by_norms, fmin((double)(sa * mw), (double)(ma * sw)));
        }
}

START_TEST(p_bounds_all_sums)
{
    static struct product p;

    for (uint64_t t = 0; t < 300; t++) {
        double got, sum, by_norms;

        make_product(&p, t, t % 2 ? 7 : 4000);
        got = ref_exact_p(p.na, p.m, p.nw, p.n);
        brute_p(&p, &sum, &by_norms);
        ck_assert_msg(got >= sum, "%a is less than the sum %a", got, sum);
        ck_assert_msg(got == by_norms, "got %a, want %a", got, by_norms);
    }
}
END_TEST

START_TEST(p_of_rows_without_unit)
{
    const struct ref_norm good[] = {{3, 2, 0}, {0, 0, 0}};
    const struct ref_norm bad[] = {{3, 2, 0}, {HUGE_VAL, HUGE_VAL, 0}};

    ck_assert(ref_exact_p(good, 2, good, 2) == 6.0);
    ck_assert(ref_exact_p(good + 1, 1, good, 2) == 0.0);
    ck_assert(ref_exact_p(good, 2, bad, 2) == HUGE_VAL);
    ck_assert(ref_exact_p(bad, 2, good, 2) == HUGE_VAL);
    ck_assert(ref_exact_p(bad, 2, good + 1, 1) == HUGE_VAL); /* NaN times 0 is not 0 */
}
END_TEST

static struct ref_chunks brute_chunks(const struct product *p)
{
    struct ref_chunks top = {0};

    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            int64_t prefix = 0, lo = 0, hi = 0, total = 0;

            for (int64_t l = 0; l < p->k; l += 8) {
                int64_t t = 0;

                for (int64_t q = l; q < l + 8 && q < p->k; q++)
                    t += p->ai[i * p->k + q] * p->wi[j * p->k + q];
                prefix += t;
                total += llabs(t);
                lo = prefix < lo ? prefix : lo;
                hi = prefix > hi ? prefix : hi;
            }
            top.sum = fmax(top.sum, (double)total);
            top.range = fmax(top.range, (double)(hi - lo));
        }
    return top;
}

START_TEST(chunks_by_brute_force)
{
    static struct product p;
    static float work[16 * 50 + 64];
    int finite = 0;

    for (uint64_t t = 0; t < 300; t++) {
        struct ref_chunks got, want;

        make_product(&p, t, t % 3 ? 100 : 2000);
        got = ref_exact_chunks(&(struct ref_rows){p.a, p.na, p.m},
                               &(struct ref_rows){p.w, p.nw, p.n}, p.k, work, NULL);
        want = brute_chunks(&p);
        if (!(ref_exact_p(p.na, p.m, p.nw, p.n) < 0x1p24)) /* f32 does not hold the sums */
            want.sum = want.range = HUGE_VAL;
        else
            finite++;
        ck_assert_msg(got.sum == want.sum && got.range == want.range, "%d: %a %a, want %a %a",
                      (int)t, got.sum, got.range, want.sum, want.range);
    }
    ck_assert_int_ge(finite, 200);
    ck_assert_int_lt(finite, 300);
}
END_TEST

/* Pairs that cancel inside a chunk count nothing, across chunks they count. */
START_TEST(chunks_of_pairs)
{
    float a[16], w[16] = {0}, work[16 * 16 + 64];
    struct ref_norm na, nw;
    const struct ref_rows rows = {a, &na, 1}, columns = {w, &nw, 1};
    struct ref_chunks got;

    for (int l = 0; l < 16; l++)
        a[l] = 3.0f;
    w[0] = 5.0f;
    w[7] = -4.0f;
    ref_norms(a, 1, 16, &na);
    ref_norms(w, 1, 16, &nw);
    got = ref_exact_chunks(&rows, &columns, 16, work, NULL);
    ck_assert(got.sum == 3.0 && got.range == 3.0);
    w[8] = -5.0f;
    w[7] = 0.0f;
    ref_norms(w, 1, 16, &nw);
    got = ref_exact_chunks(&rows, &columns, 16, work, NULL);
    ck_assert(nw.unit == 0 && got.sum == 30.0 && got.range == 15.0);
}
END_TEST

static void keep_chunks(void *context, int64_t row, int64_t col, struct ref_chunks of)
{
    struct ref_chunks(*kept)[2] = context;

    kept[row][col] = of;
}

/* Those who watch get numbers: 3 2^4 against 5 2^-6, and 3 2^4 against -4 and 5. */
START_TEST(chunks_as_numbers)
{
    float a[16] = {0}, w[32] = {0}, work[16 * 16 + 64];
    struct ref_norm na, nw[2];
    const struct ref_rows rows = {a, &na, 1}, columns = {w, nw, 2};
    struct ref_chunks kept[1][2] = {{{0}}};
    const struct ref_chunk_watch watch = {keep_chunks, kept};

    a[0] = a[8] = 0x1.8p5f;
    w[0] = 0x1.4p-4f;
    w[16] = -4.0f;
    w[24] = 5.0f;
    ref_norms(a, 1, 16, &na);
    ref_norms(w, 2, 16, nw);
    (void)ref_exact_chunks(&rows, &columns, 16, work, &watch);
    ck_assert(kept[0][0].sum == 3.75 && kept[0][0].range == 3.75);
    ck_assert(kept[0][1].sum == 432.0 && kept[0][1].range == 240.0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("exact");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_test(tc, norms_of_integers);
    tcase_add_test(tc, norms_of_patterns);
    tcase_add_loop_test(tc, norms_of_corners, 0, COUNT(corners));
    tcase_add_test(tc, norms_of_rows);
    tcase_add_test(tc, p_bounds_all_sums);
    tcase_add_test(tc, p_of_rows_without_unit);
    tcase_add_test(tc, chunks_by_brute_force);
    tcase_add_test(tc, chunks_of_pairs);
    tcase_add_test(tc, chunks_as_numbers);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
