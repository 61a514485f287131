#include "harness/explain/gemm_variants.h"

#include "harness/kernel/words.h"

#include <inttypes.h>
#include <stdio.h>

int64_t gemm_count_up(int64_t count, int64_t out[HYPOTHESIS_VARIANTS])
{
    count = count < HYPOTHESIS_VARIANTS ? count : HYPOTHESIS_VARIANTS;
    for (int64_t i = 0; i < count; i++)
        out[i] = i;
    return count;
}

int64_t gemm_variants_2(const struct probes *all, int64_t out[HYPOTHESIS_VARIANTS])
{
    (void)all;
    return gemm_count_up(2, out);
}

int64_t gemm_variants_3(const struct probes *all, int64_t out[HYPOTHESIS_VARIANTS])
{
    (void)all;
    return gemm_count_up(3, out);
}

int64_t gemm_variants_4(const struct probes *all, int64_t out[HYPOTHESIS_VARIANTS])
{
    (void)all;
    return gemm_count_up(4, out);
}

int64_t gemm_variants_5(const struct probes *all, int64_t out[HYPOTHESIS_VARIANTS])
{
    (void)all;
    return gemm_count_up(5, out);
}

/* Puts x among the `most` smallest of an ascending list without duplicates; what falls out is
 * counted in *more. */
static int64_t keep_smallest(int64_t x, int64_t *list, int64_t count, int64_t most, int64_t *more)
{
    int64_t at = count;

    while (at > 0 && list[at - 1] > x)
        at--;
    if (at > 0 && list[at - 1] == x)
        return count;
    if (count == most)
        ++*more;
    if (at == most)
        return count;
    for (int64_t i = count < most ? count : most - 1; i > at; i--)
        list[i] = list[i - 1];
    list[at] = x;
    return count < most ? count + 1 : count;
}

int64_t gemm_wrong_columns(const struct probes *all, int64_t *out, int64_t most)
{
    int64_t count = 0, more = 0;

    for (int i = 0; i < all->count; i++) {
        const struct probe *p = &all->items[i];

        for (int64_t j = 0; j < p->wrong_count; j++)
            count = keep_smallest(p->wrong[j] % gemm_of(p)->q->ref.n, out, count, most, &more);
    }
    return count + (more > 0);
}

static const struct probe *wrong_readout(const struct probes *all)
{
    for (int i = 0; i < all->count; i++)
        if (all->items[i].v[AX_FILL] == FILL_P && all->items[i].wrong_count > 0)
            return &all->items[i];
    return NULL;
}

int64_t gemm_wrong_k(const struct probes *all, int64_t *out, int64_t most)
{
    int64_t k = gemm_of(&all->items[0])->q->ref.k, count = 0, more = 0, before = -1;
    const struct probe *p = wrong_readout(all);
    const struct problem *q = p ? gemm_of(p)->q : NULL;

    for (int64_t l = 0; !p && l < k && count < most; l++)
        out[count++] = l;
    for (int64_t i = 0; p && i < p->wrong_count; i++) {
        int64_t row = p->wrong[i] / q->ref.n;

        if (row != before && problem_writes(q, row))
            count = keep_smallest(ref_fill_live_k(&q->fill, &q->ref, q->routing.row_a[row]), out,
                                  count, most, &more);
        before = row;
    }
    return count;
}

int64_t gemm_wrong_k_of(const struct probes *all, int64_t col)
{
    const struct probe *p = wrong_readout(all);
    const struct problem *q = p ? gemm_of(p)->q : NULL;
    int64_t found = -1;

    for (int64_t i = 0; p && i < p->wrong_count; i++) {
        int64_t row = p->wrong[i] / q->ref.n, k;

        if (p->wrong[i] % q->ref.n != col || !problem_writes(q, row))
            continue;
        k = ref_fill_live_k(&q->fill, &q->ref, q->routing.row_a[row]);
        if (found >= 0 && found != k)
            return -1;
        found = k;
    }
    return found;
}

int64_t gemm_places(const struct probes *all, bool before, int64_t out[HYPOTHESIS_VARIANTS])
{
    int64_t n = gemm_of(&all->items[0])->q->ref.n, k[HYPOTHESIS_VARIANTS / 2], col = -1, used = 0;
    int64_t count = gemm_wrong_k(all, k, HYPOTHESIS_VARIANTS / 2);

    if (gemm_wrong_columns(all, &col, 1) != 1)
        col = -1;
    for (int64_t i = 0; i < count; i++) {
        if (before && k[i] > 0 && (i == 0 || k[i - 1] < k[i] - 1))
            out[used++] = (k[i] - 1) * (n + 1) + col + 1;
        out[used++] = k[i] * (n + 1) + col + 1;
    }
    return used;
}

void gemm_place_detail(const struct hypothesis *h, const struct probe *p, int64_t variant,
                       char buf[HYPOTHESIS_DETAIL])
{
    int64_t n = gemm_of(p)->q->ref.n, col = variant % (n + 1) - 1;

    (void)h;
    if (col < 0)
        (void)snprintf(buf, HYPOTHESIS_DETAIL, "k = %" PRId64 ", all columns", variant / (n + 1));
    else
        (void)snprintf(buf, HYPOTHESIS_DETAIL, "k = %" PRId64 ", column %" PRId64,
                       variant / (n + 1), col);
}

void gemm_column_detail(const struct hypothesis *h, const struct probe *p, int64_t variant,
                        char buf[HYPOTHESIS_DETAIL])
{
    int64_t n = gemm_of(p)->q->ref.n, col = variant % (n + 1) - 1;

    (void)h;
    if (col < 0)
        (void)snprintf(buf, HYPOTHESIS_DETAIL, "all columns");
    else
        (void)snprintf(buf, HYPOTHESIS_DETAIL, "column %" PRId64, col);
}
