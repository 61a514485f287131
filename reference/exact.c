#include "reference/exact.h"

#include "reference/fault.h"
#include "reference/target.h"

#include <math.h>
#include <string.h>

/* The largest bit pattern without sign: magnitudes of floats are ordered like their patterns,
 * infinity and NaN on top. */
TARGET_CLONES static uint32_t largest(const float *x, int64_t k)
{
    uint32_t top = 0;

    for (int64_t l = 0; l < k; l++) {
        uint32_t bits;

        memcpy(&bits, &x[l], sizeof bits);
        bits &= 0x7fffffffu;
        top = bits > top ? bits : top;
    }
    return top;
}

/* The values as integers of 24 bits under the largest, or false if one has a bit below. scale[0]
 * scale[1] takes the largest to [2^23, 2^24); both steps are exact, or leave something below 1, or
 * (if it underflows) 0 of what was not. */
TARGET_CLONES static bool integers(const float *x, int64_t k, const float scale[2], uint32_t *bits,
                                   int64_t *sum)
{
    enum { RUN = 128 }; /* a sum of so many stays below 2^31 */
    const float s0 = scale[0], s1 = scale[1];
    uint32_t any = 0;
    int32_t lost = 0;
    int64_t total = 0;

    for (int64_t begin = 0; begin < k; begin += RUN) {
        int64_t end = begin + RUN < k ? begin + RUN : k;
        int32_t part = 0;

        for (int64_t l = begin; l < end; l++) {
            float y = fabsf(x[l]) * s0 * s1;
            int32_t q = (int32_t)y;

            lost |= ((float)q != y) | ((q == 0) & (x[l] != 0.0f));
            any |= (uint32_t)q;
            part += q;
        }
        total += part;
    }
    *bits = any;
    *sum = total;
    return !lost || REF_FAULT(EXACT_LOW_BITS_IGNORED);
}

static struct ref_norm norm_of(const float *x, int64_t k)
{
    struct ref_norm none = {HUGE_VAL, HUGE_VAL, 0};
    uint32_t pattern = largest(x, k), bits;
    int64_t sum;
    float scale[2], top;
    int e, zeros;

    if (pattern >= 0x7f800000u) /* infinity, NaN */
        return none;
    if (pattern == 0)
        return (struct ref_norm){0};
    memcpy(&top, &pattern, sizeof top);
    e = ilogbf(top);
    scale[0] = ldexpf(1.0f, (23 - e) / 2); /* 2^(23 - e) alone may be out of range */
    scale[1] = ldexpf(1.0f, 23 - e - (23 - e) / 2);
    if (!integers(x, k, scale, &bits, &sum))
        return none;
    zeros = __builtin_ctz(bits);
    return (struct ref_norm){ldexp((double)sum, -zeros), ldexp((double)top, 23 - e - zeros),
                             e - 23 + zeros};
}

void ref_norms(const float *x, int64_t count, int64_t k, struct ref_norm *out)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = norm_of(x + i * k, k);
}

double ref_exact_p(const struct ref_norm *a, int64_t m, const struct ref_norm *w, int64_t n)
{
    double top = 0.0;

    for (int64_t i = 0; i < m; i++)
        if (!isfinite(a[i].sum))
            return HUGE_VAL;
    for (int64_t j = 0; j < n; j++) {
        if (!isfinite(w[j].sum))
            return HUGE_VAL;
        for (int64_t i = 0; i < m; i++) {
            double by_a = a[i].sum * w[j].max, by_w = a[i].max * w[j].sum;
            double p = by_a < by_w ? by_a : by_w;

            if (REF_FAULT(EXACT_P_TOO_SMALL))
                p = a[i].max * w[j].max;
            top = p > top ? p : top;
        }
    }
    return top;
}

enum { PANEL = 16 };

/* Sixteen rows at once: at[l * PANEL + i] in units; w times scale[0] scale[1] is in units too. All
 * sums are whole and below 2^24, hence exact in f32. */
TARGET_CLONES static void chunk_panel(const float *at, const float *w, const float scale[2],
                                      int64_t k, float *sum, float *range)
{
    const float s0 = scale[0], s1 = scale[1];
    float prefix[PANEL] = {0}, lo[PANEL] = {0}, hi[PANEL] = {0}, total[PANEL] = {0};

    for (int64_t l = 0; l < k; l += 8) {
        int64_t end = l + 8 < k ? l + 8 : k;
        float t[PANEL] = {0};

        for (int64_t q = l; q < end; q++) {
            float wq = w[q] * s0 * s1;

            for (int i = 0; i < PANEL; i++)
                t[i] += at[q * PANEL + i] * wq;
        }
        for (int i = 0; i < PANEL; i++) {
            prefix[i] += t[i];
            total[i] += fabsf(t[i]);
            lo[i] = prefix[i] < lo[i] ? prefix[i] : lo[i];
            hi[i] = prefix[i] > hi[i] ? prefix[i] : hi[i];
        }
    }
    for (int i = 0; i < PANEL; i++) {
        sum[i] = total[i];
        range[i] = hi[i] - lo[i];
    }
}

/* 2^-unit in two factors; 2^149 alone is out of range. */
static void unit_scale(int unit, float scale[2])
{
    scale[0] = ldexpf(1.0f, -unit / 2);
    scale[1] = ldexpf(1.0f, -unit - -unit / 2);
}

struct ref_chunks ref_exact_chunks(const struct ref_rows *a, const struct ref_rows *w, int64_t k,
                                   float *work, const struct ref_chunk_watch *watch)
{
    struct ref_chunks top = {0};
    float sum[PANEL], range[PANEL], scale[2];

    if (REF_FAULT(EXACT_CHUNKS_SKIPPED))
        return top;
    if (!(ref_exact_p(a->norms, a->count, w->norms, w->count) < 0x1p24))
        return (struct ref_chunks){HUGE_VAL, HUGE_VAL};
    for (int64_t i0 = 0; i0 < a->count; i0 += PANEL) {
        int64_t rows = a->count - i0 < PANEL ? a->count - i0 : PANEL;

        memset(work, 0, (size_t)(k * PANEL) * sizeof *work);
        for (int64_t i = 0; i < rows; i++) {
            unit_scale(a->norms[i0 + i].unit, scale);
            for (int64_t l = 0; l < k; l++)
                work[l * PANEL + i] = a->x[(i0 + i) * k + l] * scale[0] * scale[1];
        }
        for (int64_t j = 0; j < w->count; j++) {
            unit_scale(w->norms[j].unit, scale);
            chunk_panel(work, w->x + j * k, scale, k, sum, range);
            for (int64_t i = 0; i < rows; i++) {
                int unit = a->norms[i0 + i].unit + w->norms[j].unit;

                top.sum = fmax(top.sum, (double)sum[i]);
                top.range = fmax(top.range, (double)range[i]);
                if (watch)
                    watch->see(watch->context, i0 + i, j,
                               (struct ref_chunks){ldexp((double)sum[i], unit),
                                                   ldexp((double)range[i], unit)});
            }
        }
    }
    return top;
}
