#include "reference/freivalds.h"
#include "reference/rng.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    int64_t m, n, k;
    int bits; /* of the operands */
} shapes[] = {{1, 1, 1, 8},     {1, 100, 33, 8},   {100, 1, 16, 8}, {17, 19, 15, 31},
              {40, 70, 129, 8}, {64, 33, 500, 20}, {3, 5, 1000, 31}};

struct product {
    struct ref_freivalds f;
    int32_t *alpha, *omega;
    int64_t *y;
    uint64_t *work;
    bool *rows, *cols;
};

static int32_t operand(uint32_t tensor, int64_t i, int bits)
{
    return (int32_t)((int64_t)rng_word(7, tensor, (uint64_t)i) >> (64 - bits));
}

/* The naive product modulo 2^64 is the oracle. */
static struct product make(int64_t m, int64_t n, int64_t k, int bits)
{
    struct product p;

    p.alpha = malloc((size_t)(m * k) * sizeof *p.alpha);
    p.omega = malloc((size_t)(n * k) * sizeof *p.omega);
    p.y = malloc((size_t)(m * n) * sizeof *p.y);
    p.work = malloc(ref_freivalds_words(m, n, k) * sizeof *p.work);
    p.rows = malloc((size_t)m);
    p.cols = malloc((size_t)n);
    ck_assert(p.alpha && p.omega && p.y && p.work && p.rows && p.cols);
    for (int64_t i = 0; i < m * k; i++)
        p.alpha[i] = operand(RNG_A, i, bits);
    for (int64_t i = 0; i < n * k; i++)
        p.omega[i] = operand(RNG_B, i, bits);
    for (int64_t i = 0; i < m * n; i++) {
        uint64_t sum = 0;

        for (int64_t l = 0; l < k; l++)
            sum += (uint64_t)((int64_t)p.alpha[i / n * k + l] * p.omega[i % n * k + l]);
        memcpy(&p.y[i], &sum, sizeof sum);
    }
    p.f = (struct ref_freivalds){m, n, k, p.alpha, p.omega, p.y, 0};
    return p;
}

static void unmake(struct product *p)
{
    free(p->alpha);
    free(p->omega);
    free(p->y);
    free(p->work);
    free(p->rows);
    free(p->cols);
}

static bool check(struct product *p, uint64_t seed, struct ref_freivalds_found *found)
{
    p->f.seed = seed;
    return ref_freivalds_check(&p->f, p->work, p->rows, p->cols, found);
}

START_TEST(right_products_pass)
{
    struct product p = make(shapes[_i].m, shapes[_i].n, shapes[_i].k, shapes[_i].bits);
    struct ref_freivalds_found found;

    for (uint64_t seed = 0; seed < 50; seed++) {
        ck_assert(check(&p, seed, &found));
        ck_assert(found.rows == 0 && found.first_row == p.f.m);
        ck_assert(found.cols == 0 && found.first_col == p.f.n);
    }
    unmake(&p);
}
END_TEST

/* One bit of one element, any bit up to 2^24, any place. */
START_TEST(one_flip_is_localised)
{
    struct product p = make(shapes[_i].m, shapes[_i].n, shapes[_i].k, shapes[_i].bits);
    struct ref_freivalds_found found;
    const int64_t count = p.f.m * p.f.n;

    for (uint64_t seed = 0; seed < 200; seed++) {
        const int64_t at = rng_below(rng_word(seed, RNG_TEST, 0), (uint32_t)count);
        const int64_t flip = INT64_C(1) << (seed < 100 ? 0 : seed % 25);

        p.y[at] ^= flip;
        ck_assert(!check(&p, seed, &found));
        ck_assert(found.rows == 1 && found.first_row == at / p.f.n && p.rows[at / p.f.n]);
        ck_assert(found.cols == 1 && found.first_col == at % p.f.n && p.cols[at % p.f.n]);
        p.y[at] ^= flip;
    }
    unmake(&p);
}
END_TEST

/* A wrong operand: one k dropped for a whole row, two columns swapped, errors that cancel in a
 * plain sum. */
START_TEST(structured_errors)
{
    struct product p = make(40, 70, 129, 8);
    struct ref_freivalds_found found;

    for (int64_t j = 0; j < p.f.n; j++)
        p.y[11 * p.f.n + j] -= (int64_t)p.alpha[11 * p.f.k + 128] * p.omega[j * p.f.k + 128];
    ck_assert(!check(&p, 1, &found) && found.rows == 1 && found.first_row == 11);
    ck_assert(found.cols > 1);
    unmake(&p);

    p = make(40, 70, 129, 8);
    for (int64_t i = 0; i < p.f.m; i++) {
        const int64_t t = p.y[i * p.f.n + 3];

        p.y[i * p.f.n + 3] = p.y[i * p.f.n + 60];
        p.y[i * p.f.n + 60] = t;
    }
    ck_assert(!check(&p, 2, &found) && found.cols == 2 && found.first_col == 3 && p.cols[60]);
    unmake(&p);

    p = make(40, 70, 129, 8);
    p.y[5 * p.f.n + 5]++;
    p.y[5 * p.f.n + 6]--;
    p.y[6 * p.f.n + 5]--;
    p.y[6 * p.f.n + 6]++;
    ck_assert(!check(&p, 3, &found) && found.rows == 2 && found.cols == 2);
    ck_assert(found.first_row == 5 && found.first_col == 5 && p.rows[6] && p.cols[6]);
    unmake(&p);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("freivalds");
    TCase *tc = tcase_create("all");
    const int count = (int)(sizeof shapes / sizeof shapes[0]);
    SRunner *r;
    int failed;

    tcase_add_loop_test(tc, right_products_pass, 0, count);
    tcase_add_loop_test(tc, one_flip_is_localised, 0, count);
    tcase_add_test(tc, structured_errors);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
