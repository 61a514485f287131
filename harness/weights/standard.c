#include "harness/weights/standard.h"

#include <math.h>
#include <string.h>

int64_t standard_scale_count(const struct standard *s)
{
    int64_t rows = s->n * standard_matrices(s);

    switch (s->scale) {
    case REF_SCALE_CHANNEL:
        return rows;
    case REF_SCALE_GROUP:
        return rows * standard_groups(s);
    case REF_SCALE_BLOCK:
        return (rows + s->group_n - 1) / s->group_n * standard_groups(s);
    case REF_SCALE_TENSOR:
        break;
    }
    return standard_matrices(s);
}

/* Where in `scales` the scale of weight (row, l) stands. */
static int64_t scale_at(const struct standard *s, int64_t row, int64_t l)
{
    int64_t g = s->group ? l / s->group : 0;

    switch (s->scale) {
    case REF_SCALE_CHANNEL:
        return row;
    case REF_SCALE_GROUP:
        return row * standard_groups(s) + g;
    case REF_SCALE_BLOCK:
        return row / s->group_n * standard_groups(s) + g;
    case REF_SCALE_TENSOR:
        break;
    }
    return row / s->n;
}

static double f32_value(uint32_t code)
{
    float f;

    memcpy(&f, &code, sizeof f);
    return (double)f;
}

/* Without zero points an unsigned code stands for q - 2^(bits-1). */
static int zero_of(const struct standard *s, int64_t row, int64_t l)
{
    if (s->zero == REF_ZERO_NONE)
        return 1 << (s->b->bits - 1);
    return s->zeros[row * standard_groups(s) + (s->group ? l / s->group : 0)];
}

static double code_value(const struct standard *s, int64_t row, int64_t l)
{
    uint8_t q = s->codes[row * s->k + l];

    return s->b->is_float ? dtype_decode(s->b, q) : (double)(q - zero_of(s, row, l));
}

double standard_value(const struct standard *s, int64_t row, int64_t l)
{
    double v = code_value(s, row, l) * dtype_decode(s->bs, s->scales[scale_at(s, row, l)]);

    return s->scale_2 == REF_SCALE_2_NONE ? v : v * f32_value(s->scale_2_code);
}

static void measure_scale(const struct dtype *t, uint32_t code, struct standard_stats *m,
                          int64_t *finite)
{
    double x = dtype_decode(t, code);
    double least = ldexp(1.0, dtype_min_exponent(t));

    m->scales++;
    m->scale_nan += isnan(x);
    m->scale_infinite += isinf(x);
    if (!isfinite(x))
        return;
    m->scale_zero += x == 0.0;
    m->scale_negative += x < 0.0;
    m->scale_subnormal += x != 0.0 && fabs(x) < least;
    if (!(*finite)++)
        m->scale_min = m->scale_max = x;
    m->scale_min = x < m->scale_min ? x : m->scale_min;
    m->scale_max = x > m->scale_max ? x : m->scale_max;
}

/* e4m3 in a checkpoint has a NaN where the weight format of the same fields has 480. */
static void measure_nan_codes(const struct standard *s, struct standard_stats *m)
{
    int64_t n = s->n * standard_matrices(s) * s->k;

    if (s->b->bits != 8 || s->b->exp_bits != 4)
        return;
    for (int64_t i = 0; i < n; i++)
        m->nan_codes += (s->codes[i] & 0x7f) == 0x7f;
}

static void measure_group(const struct standard *s, int64_t row, int64_t l, int64_t n,
                          struct standard_stats *m)
{
    const uint8_t *q = s->codes + row * s->k + l;
    bool same = true, zero = true;

    for (int64_t i = 0; i < n && (same || zero); i++) {
        same = same && q[i] == q[0];
        zero = zero && code_value(s, row, l + i) == 0.0;
    }
    m->groups++;
    m->constant += same;
    m->all_zero += zero;
}

static void measure_zeros(const struct standard *s, struct standard_stats *m)
{
    int64_t n = s->n * standard_matrices(s) * standard_groups(s);

    m->zero_min = m->zero_max = s->b->is_float ? 0 : 1 << (s->b->bits - 1);
    if (s->zero == REF_ZERO_NONE)
        return;
    m->zero_min = m->zero_max = s->zeros[0];
    for (int64_t i = 1; i < n; i++) {
        m->zero_min = s->zeros[i] < m->zero_min ? s->zeros[i] : m->zero_min;
        m->zero_max = s->zeros[i] > m->zero_max ? s->zeros[i] : m->zero_max;
    }
}

void standard_measure(const struct standard *s, struct standard_stats *out)
{
    int64_t count = standard_scale_count(s), finite = 0, rows = s->n * standard_matrices(s);
    int64_t step = s->group ? s->group : s->k;

    *out = (struct standard_stats){.scale_2 = 1.0};
    for (int64_t i = 0; i < count; i++)
        measure_scale(s->bs, s->scales[i], out, &finite);
    if (s->scale_2 != REF_SCALE_2_NONE)
        out->scale_2 = f32_value(s->scale_2_code);
    measure_nan_codes(s, out);
    for (int64_t row = 0; row < rows; row++)
        for (int64_t l = 0; l < s->k; l += step)
            measure_group(s, row, l, s->k - l < step ? s->k - l : step, out);
    measure_zeros(s, out);
}

bool standard_suspicious(const struct standard *s, const struct standard_stats *m)
{
    return m->scale_nan || m->scale_infinite || m->nan_codes || !isfinite(m->scale_2) ||
           s->out_of_range || s->zeros_outside || s->zeros_odd;
}
