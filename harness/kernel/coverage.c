#include "harness/kernel/coverage.h"

#include "reference/fault.h"

#include <math.h>

/* Pairs of a weight code with codes of one kind, as bits. */
struct pairs {
    const char *what;
    const struct dtype *type; /* of the second code; NULL: as many as weight codes, all finite */
    int bits;                 /* of the second code */
    uint8_t *seen;
    bool is_scale; /* a weight scale; else a zero point */
};

static uint32_t weight_codes(const struct check_in *in)
{
    return 1u << in->q->ref.b->bits;
}

static void see(const struct check_in *in, struct pairs *p, uint32_t weight, uint32_t code)
{
    uint64_t bit = (uint64_t)code * weight_codes(in) + weight;

    p->seen[bit / 8] |= (uint8_t)(1u << bit % 8);
}

static uint64_t missing(const struct check_in *in, const struct pairs *p)
{
    uint64_t lost = 0;

    for (uint32_t code = 0; code < 1u << p->bits; code++) {
        if (p->type && !(p->is_scale ? ref_fill_takes(&in->q->ref, code)
                                     : isfinite(dtype_decode(p->type, code))))
            continue;
        for (uint32_t weight = 0; weight < weight_codes(in); weight++) {
            uint64_t bit = (uint64_t)code * weight_codes(in) + weight;

            lost += !(p->seen[bit / 8] >> bit % 8 & 1);
        }
    }
    return lost;
}

/* col: among the columns of all experts; blocks do not reach across experts. */
static int64_t scale_index(const struct ref_gemm *p, int64_t col, int64_t k)
{
    int64_t group = p->group ? k / p->group : 0, expert = col / p->n, row = col;

    if (p->scale == REF_SCALE_TENSOR)
        return expert;
    if (p->scale == REF_SCALE_BLOCK)
        row = expert * ((p->n + p->group_n - 1) / p->group_n) + col % p->n / p->group_n;
    return row * ref_groups(p) + group;
}

static void walk(const struct check_in *in, struct pairs *scales, struct pairs *zeros)
{
    const struct problem *q = in->q;
    const struct ref_gemm *p = &q->ref;

    for (int64_t i = 0; i < problem_rows(q, in->launch->m); i++) {
        int64_t k;

        if (!problem_writes(q, i))
            continue;
        k = ref_fill_live_k(&q->fill, p, q->routing.row_a[i]);
        for (int64_t j = 0; j < q->cols_count; j++) {
            int64_t col = problem_col(q, i, j);
            uint32_t weight = p->b_codes[col * p->k + k];

            if (scales->seen)
                see(in, scales, weight, p->bs_codes[scale_index(p, col, k)]);
            if (zeros->seen)
                see(in, zeros, weight,
                    p->zero_codes[col * ref_groups(p) + (p->group ? k / p->group : 0)]);
        }
    }
}

static bool give(const struct check_in *in, struct pairs *p, struct finding *f)
{
    uint64_t all = (uint64_t)weight_codes(in) << p->bits;

    p->seen = arena_zalloc(in->scratch, all / 8 + 1, 1);
    if (!p->seen)
        finding_give(f, VERDICT_INFRA, "the check needs more memory than the limit of a worker");
    return p->seen;
}

static void require(const struct check_in *in, const struct pairs *p, struct finding *f)
{
    uint64_t lost = p->seen && f->verdict == VERDICT_PASS ? missing(in, p) : 0;

    if (lost)
        finding_give(f, VERDICT_UNTRUSTED,
                     "%llu pairs of a weight code and a %s code do not occur: more rows, columns "
                     "or groups are needed",
                     (unsigned long long)lost, p->what);
}

void coverage_check(const struct check_in *in, struct finding *f)
{
    const struct ref_gemm *p = &in->q->ref;
    struct pairs scales = {"scale", p->bs, p->bs->bits, NULL, true};
    struct pairs zeros = {"zero point", p->zero == REF_ZERO_FLOAT ? p->a : NULL,
                          p->zero == REF_ZERO_FLOAT ? p->a->bits : p->b->bits, NULL, false};

    if (REF_FAULT(COVERAGE_OFF))
        return;
    if (!in->q->fill.all_scales || p->bs->bits > 16) {
        finding_give(f, VERDICT_UNTRUSTED,
                     "not all scale codes are used: exhaustive needs scales of at most 16 bits, "
                     "all in turn");
        return;
    }
    if (!give(in, &scales, f) || (p->zero != REF_ZERO_NONE && !give(in, &zeros, f)))
        return;
    walk(in, &scales, &zeros);
    require(in, &scales, f);
    require(in, &zeros, f);
}
