#include "reference/freivalds.h"

#include "reference/fault.h"
#include "reference/rng.h"
#include "reference/target.h"

#include <string.h>

/* Streams of rng.h for the two random vectors. */
enum { STREAM_COLUMNS = 0xf0, STREAM_ROWS = 0xf1 };

enum { LANES = 16 }; /* fixed length of inner loops, for the vectorizer */

/* A signed value modulo 2^64. */
static inline uint64_t word(int64_t x)
{
    return (uint64_t)x;
}

/* sum[i] += x[i] f */
TARGET_CLONES static void add_scaled(uint64_t *restrict sum, const int32_t *restrict x, uint64_t f,
                                     int64_t count)
{
    int64_t i = 0;

    for (; i + LANES <= count; i += LANES)
        for (int j = 0; j < LANES; j++)
            sum[i + j] += word(x[i + j]) * f;
    for (; i < count; i++)
        sum[i] += word(x[i]) * f;
}

/* The same for y, which also gives sum of y[i] r[i]. */
TARGET_CLONES static uint64_t add_scaled_and_dot(uint64_t *restrict sum, const int64_t *restrict y,
                                                 uint64_t f, const uint64_t *restrict r,
                                                 int64_t count)
{
    uint64_t dot[LANES] = {0};
    int64_t i = 0;

    for (; i + LANES <= count; i += LANES)
        for (int j = 0; j < LANES; j++) {
            sum[i + j] += word(y[i + j]) * f;
            dot[j] += word(y[i + j]) * r[i + j];
        }
    for (; i < count; i++) {
        sum[i] += word(y[i]) * f;
        dot[0] += word(y[i]) * r[i];
    }
    for (int j = 1; j < LANES; j++)
        dot[0] += dot[j];
    return dot[0];
}

TARGET_CLONES static uint64_t dot(const int32_t *restrict x, const uint64_t *restrict v,
                                  int64_t count)
{
    uint64_t sum[LANES] = {0};
    int64_t i = 0;

    for (; i + LANES <= count; i += LANES)
        for (int j = 0; j < LANES; j++)
            sum[j] += word(x[i + j]) * v[i + j];
    for (; i < count; i++)
        sum[0] += word(x[i]) * v[i];
    for (int j = 1; j < LANES; j++)
        sum[0] += sum[j];
    return sum[0];
}

size_t ref_freivalds_words(int64_t m, int64_t n, int64_t k)
{
    return (size_t)(m + 2 * n + 2 * k);
}

static void count_wrong(const bool *wrong, int64_t count, int64_t *total, int64_t *first)
{
    *total = 0;
    *first = count;
    for (int64_t i = 0; i < count; i++) {
        *total += wrong[i];
        if (wrong[i] && *first == count)
            *first = i;
    }
}

static uint64_t random_word(uint64_t seed, uint32_t stream, int64_t index)
{
    return REF_FAULT(FREIVALDS_ZERO_VECTOR) ? 0 : rng_word(seed, stream, (uint64_t)index);
}

bool ref_freivalds_check(const struct ref_freivalds *f, uint64_t *work, bool *row_wrong,
                         bool *col_wrong, struct ref_freivalds_found *found)
{
    const int64_t m = f->m, n = f->n, k = f->k;
    uint64_t *y_row = work;                  /* sum_j y[i][j] r[j] */
    uint64_t *r = y_row + m;                 /* of the columns */
    uint64_t *y_col = r + n;                 /* sum_i y[i][j] s[i] */
    uint64_t *t = y_col + n, *t_col = t + k; /* sum_j omega[j][l] r[j], sum_i alpha[i][l] s[i] */

    memset(work, 0, ref_freivalds_words(m, n, k) * sizeof *work);
    for (int64_t j = 0; j < n; j++)
        r[j] = random_word(f->seed, STREAM_COLUMNS, j);
    for (int64_t i = 0; i < m; i++) {
        const uint64_t s = random_word(f->seed, STREAM_ROWS, i);

        add_scaled(t_col, f->alpha + i * k, s, k);
        y_row[i] = add_scaled_and_dot(y_col, f->y + i * n, s, r, n);
    }
    for (int64_t j = 0; j < n; j++) {
        add_scaled(t, f->omega + j * k, r[j], k);
        col_wrong[j] = dot(f->omega + j * k, t_col, k) != y_col[j];
    }
    for (int64_t i = 0; i < m; i++)
        row_wrong[i] = dot(f->alpha + i * k, t, k) != y_row[i];
    count_wrong(row_wrong, m, &found->rows, &found->first_row);
    count_wrong(col_wrong, n, &found->cols, &found->first_col);
    return found->rows == 0 && found->cols == 0;
}
