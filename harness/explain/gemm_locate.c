/* Which k a product gets wrong, read off one-hot activations. */
#include "harness/explain/gemm.h"
#include "harness/explain/locate.h"

#include "harness/kernel/words.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { CLAUSE = 200 };

static const struct probe *first_wrong(const struct probes *all, int64_t fill, bool any)
{
    for (int i = 0; i < all->count; i++)
        if (all->items[i].wrong_count && (any || all->items[i].v[AX_FILL] == fill))
            return &all->items[i];
    return NULL;
}

static void where(struct explain *x, const struct probe *p)
{
    const struct gemm_probe *g = gemm_of(p);
    const struct hum_tuning_config *t = &g->tuning;
    const struct period rows[] = {
        {t->block_m, "block_m"}, {t->warp_m, "warp_m"}, {p->v[AX_MAX_TOKENS], "max_tokens"}};
    const struct period columns[] = {
        {t->block_n, "block_n"}, {t->warp_n, "warp_n"}, {p->v[AX_GROUP_N], "block scale"}};

    locate_probe(x, p, &(struct periods){rows, columns, 3, 3});
}

/* ---- experts --------------------------------------------------------------------------------- */

static void which_experts(struct explain *x, const struct probe *p)
{
    const struct routing *r = &gemm_of(p)->q->routing;
    struct axis_set s = {.one = "expert", .many = "experts", .count = r->experts};
    bool *wrong = ARENA_NEW(&x->scratch, r->experts, bool);
    bool *seen = ARENA_NEW(&x->scratch, r->experts, bool);
    char text[CLAUSE];

    if (r->type == HUM_GEMM_DENSE || !wrong || !seen)
        return;
    for (int64_t i = 0; i < r->rows; i++)
        if (r->row_expert[i] >= 0)
            seen[r->row_expert[i]] = true;
    for (int64_t i = 0; i < p->wrong_count; i++) {
        int32_t e = r->row_expert[p->wrong[i] / gemm_of(p)->q->ref.n];

        if (e >= 0)
            wrong[e] = true;
        else
            s.one = "expert (and rows that no expert has)";
    }
    s.wrong = wrong;
    s.seen = seen;
    explain_say(x, EXPLAIN_WHERE, "%s: %s", p->what, locate_axis(&s, text, sizeof text));
}

/* ---- k --------------------------------------------------------------------------------------- */

/* The common quotient of got and want; NaN: there is none. */
static double common_factor(const struct probe *p)
{
    double factor = 0.0;

    for (int64_t i = 0; i < p->wrong_count; i++) {
        const struct dtype *c = p->parts[0].type;
        double got = dtype_decode(c, p->got[p->wrong[i]]);
        double want = dtype_decode(c, p->want[p->wrong[i]]);

        if (i > 0 && !(got == factor * want))
            return (double)NAN;
        factor = got / want;
    }
    return factor;
}

static void which_k(struct explain *x, const struct probe *p)
{
    const struct problem *q = gemm_of(p)->q;
    int64_t k = q->ref.k, groups = ref_groups(&q->ref);
    bool *wrong = ARENA_NEW(&x->scratch, k, bool), *seen = ARENA_NEW(&x->scratch, k, bool);
    bool *wrong_group = ARENA_NEW(&x->scratch, groups, bool);
    bool *seen_group = ARENA_NEW(&x->scratch, groups, bool);
    const struct period periods[] = {{q->ref.group, "group"},
                                     {gemm_of(p)->tuning.block_k, "block_k"},
                                     {gemm_of(p)->tuning.warp_k, "warp_k"}};
    struct axis_set s = {"k", "k", k, wrong, seen, periods, 3};
    struct axis_set g = {"group", "groups", groups, wrong_group, seen_group, NULL, 0};
    char text[CLAUSE], group_text[CLAUSE];
    double factor = common_factor(p);

    if (!wrong)
        return;
    for (int64_t row = 0; row < q->routing.rows; row++)
        if (problem_writes(q, row)) {
            int64_t l = ref_fill_live_k(&q->fill, &q->ref, q->routing.row_a[row]);

            seen[l] = seen_group[q->ref.group ? l / q->ref.group : 0] = true;
        }
    for (int64_t i = 0; i < p->wrong_count; i++) {
        int64_t row = p->wrong[i] / q->ref.n, l;

        if (!problem_writes(q, row))
            continue;
        l = ref_fill_live_k(&q->fill, &q->ref, q->routing.row_a[row]);
        wrong[l] = wrong_group[q->ref.group ? l / q->ref.group : 0] = true;
    }
    explain_say(x, EXPLAIN_WHERE, "read-outs of one k at a time: wrong at %s%s%s",
                locate_axis(&s, text, sizeof text), groups > 1 ? ", in " : "",
                groups > 1 ? locate_axis(&g, group_text, sizeof group_text) : "");
    if (isfinite(factor))
        explain_say(x, EXPLAIN_WHERE, "read-outs of one k at a time: all by the factor %.9g",
                    factor);
}

void gemm_locate(struct explain *x, const struct probes *all)
{
    const struct probe *p = first_wrong(all, 0, true);
    const struct probe *readout = first_wrong(all, FILL_P, false);

    where(x, p);
    which_experts(x, p);
    if (readout)
        which_k(x, readout);
}
