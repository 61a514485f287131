#include "harness/explain/hypothesis.h"

#include "harness/core/clock.h"

/* Most hypotheses are refuted by one wrong element or two, nearly all others by a few, wrong and
 * right. */
enum { LEAST = 2, FEW = 24 };

/* Inserts x into the ascending list; twice is once. */
static int64_t insert(int64_t *list, int64_t count, int64_t x)
{
    int64_t at = count;

    while (at > 0 && list[at - 1] > x)
        at--;
    if (at > 0 && list[at - 1] == x)
        return count;
    for (int64_t i = count; i > at; i--)
        list[i] = list[i - 1];
    list[at] = x;
    return count + 1;
}

static int64_t choose_few(const struct probe *p, int64_t list[2 * FEW])
{
    int64_t count = 0, wrong = p->wrong_count < FEW ? p->wrong_count : FEW;
    int64_t all = p->count < FEW ? p->count : FEW;

    for (int64_t i = 0; i < wrong; i++)
        count = insert(list, count, p->wrong[i * p->wrong_count / wrong]);
    for (int64_t i = 0; i < all; i++) {
        int64_t e = i * p->count / all + i % 7;

        if (e < p->count)
            count = insert(list, count, e);
    }
    return count;
}

/* Does the variant give what the kernel gave in these places? */
static bool agrees(const struct hypothesis *h, const struct probe *p, int64_t variant,
                   const struct places *at, struct arena *scratch)
{
    uint32_t *codes = arena_alloc(scratch, (size_t)at->count, sizeof *codes);

    if (!codes || !h->predict(h, p, variant, at, codes, scratch))
        return false;
    for (int64_t i = 0; i < at->count; i++) {
        int64_t e = at->at[i];

        if (p->want[e] != PROBE_ANY && !probe_same(probe_part_of(p, e), codes[i], p->got[e]))
            return false;
    }
    return true;
}

static bool agrees_in_least(const struct hypothesis *h, const struct probe *p, int64_t variant,
                            struct arena *scratch)
{
    struct places at = {p->wrong, p->wrong_count < LEAST ? p->wrong_count : LEAST};

    arena_reset(scratch);
    return p->wrong_count == 0 || agrees(h, p, variant, &at, scratch);
}

static bool agrees_in_few(const struct hypothesis *h, const struct probe *p, int64_t variant,
                          struct arena *scratch)
{
    int64_t list[2 * FEW];
    struct places at = {list, choose_few(p, list)};

    arena_reset(scratch);
    return agrees(h, p, variant, &at, scratch);
}

static bool agrees_in_all(const struct hypothesis *h, const struct probe *p, int64_t variant,
                          struct arena *scratch)
{
    struct places at = {.count = 0};
    int64_t *list;

    arena_reset(scratch);
    list = arena_alloc(scratch, (size_t)p->count, sizeof *list);
    for (int64_t i = 0; list && i < p->count; i++)
        if (p->want[i] != PROBE_ANY)
            list[at.count++] = i;
    at.at = list;
    return list && agrees(h, p, variant, &at, scratch);
}

typedef bool agree_fn(const struct hypothesis *h, const struct probe *p, int64_t variant,
                      struct arena *scratch);

static bool agrees_everywhere(agree_fn *how, const struct hypothesis *h,
                              const struct probes *probes, int64_t variant, struct arena *scratch)
{
    for (int i = 0; i < probes->count; i++)
        if (!how(h, &probes->items[i], variant, scratch))
            return false;
    return true;
}

struct hypothesis_result hypothesis_test(const struct hypothesis *h, const struct probes *probes,
                                         struct arena *scratch, double deadline)
{
    struct hypothesis_result r = {.fate = HYPOTHESIS_ABSENT};
    int64_t variants[HYPOTHESIS_VARIANTS] = {0}, count = 1;

    if (h->applies && !h->applies(&probes->items[0]))
        return r;
    r.fate = HYPOTHESIS_REFUTED;
    arena_reset(scratch);
    if (h->variants)
        count = h->variants(probes, variants);
    for (int64_t i = 0; i < count; i++) {
        if (deadline > 0.0 && clock_us() > deadline) {
            r.fate = r.variants_held ? HYPOTHESIS_HOLDS : HYPOTHESIS_OPEN;
            return r;
        }
        if (!agrees_everywhere(agrees_in_least, h, probes, variants[i], scratch) ||
            !agrees_everywhere(agrees_in_few, h, probes, variants[i], scratch) ||
            !agrees_everywhere(agrees_in_all, h, probes, variants[i], scratch))
            continue;
        if (!r.variants_held++)
            r.variant = variants[i];
        r.fate = HYPOTHESIS_HOLDS;
    }
    return r;
}
