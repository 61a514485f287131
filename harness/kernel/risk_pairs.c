#include "harness/kernel/risk_pairs.h"

#include <string.h>

enum { FEW = 64 }; /* values of an axis that are told apart; more are told apart by magnitude */

/* The axes with several values, and their values in one row of numbers. */
struct numbers {
    enum axis_id axes[AX_COUNT];
    int axis_count;
    uint32_t base[AX_COUNT]; /* number of the first value of axes[i] */
    uint32_t total;
    int64_t values[AX_COUNT][FEW];
    int counts[AX_COUNT]; /* by axis; above FEW: too many */
};

static int find_value(const int64_t *values, int count, int64_t value)
{
    int i = 0;

    while (i < count && values[i] != value)
        i++;
    return i;
}

static void collect(struct numbers *n, const struct plan *plan)
{
    for (int x = 0; x < AX_COUNT; x++)
        for (size_t c = 0; x != AX_SEED && c < plan->count && n->counts[x] <= FEW; c++) {
            int64_t value = plan->cases[c].v[x];

            if (find_value(n->values[x], n->counts[x], value) < n->counts[x])
                continue;
            if (n->counts[x] < FEW)
                n->values[x][n->counts[x]] = value;
            n->counts[x]++;
        }
    for (int x = 0; x < AX_COUNT; x++) {
        if (n->counts[x] < 2)
            continue;
        n->base[n->axis_count] = n->total;
        n->axes[n->axis_count++] = (enum axis_id)x;
        n->total += n->counts[x] > FEW ? FEW + 1 : (uint32_t)n->counts[x];
    }
}

/* 0 for 0 and less, else how many bits the number has. */
static uint32_t magnitude(int64_t value)
{
    return value > 0 ? 64 - (uint32_t)__builtin_clzll((uint64_t)value) : 0;
}

static void number_case(const struct numbers *n, const int64_t *v, uint32_t *out)
{
    for (int i = 0; i < n->axis_count; i++) {
        enum axis_id x = n->axes[i];

        out[i] = n->base[i] + (n->counts[x] > FEW
                                   ? magnitude(v[x])
                                   : (uint32_t)find_value(n->values[x], n->counts[x], v[x]));
    }
}

static bool bit_of(const uint64_t *bits, uint32_t i)
{
    return bits[i / 64] >> i % 64 & 1;
}

/* The pairs of one case that are not among `bits` yet go to `list` and `bits`. Numbers ascend with
 * the axes, so each pair has one index. */
static size_t add_case(const struct numbers *n, const uint32_t *number, uint64_t *bits,
                       uint32_t *list, size_t count)
{
    for (int i = 0; i < n->axis_count; i++)
        for (int j = i + 1; j < n->axis_count; j++) {
            uint32_t pair = number[i] * n->total + number[j];

            if (bit_of(bits, pair))
                continue;
            bits[pair / 64] |= UINT64_C(1) << pair % 64;
            list[count++] = pair;
        }
    return count;
}

static bool list_problem(struct risk_pairs *p, const struct numbers *n, const struct plan *plan,
                         size_t problem, uint32_t *list, struct arena *arena)
{
    const struct plan_problem *q = &plan->problems[problem];
    uint32_t number[AX_COUNT];
    size_t count = 0;

    for (size_t c = q->first; c < q->first + q->count; c++) {
        number_case(n, plan->cases[c].v, number);
        count = add_case(n, number, p->seen, list, count);
    }
    for (size_t i = 0; i < count; i++) /* only borrowed */
        p->seen[list[i] / 64] &= ~(UINT64_C(1) << list[i] % 64);
    p->lists[problem].pairs = arena_alloc(arena, count + 1, sizeof *list);
    if (!p->lists[problem].pairs)
        return false;
    memcpy(p->lists[problem].pairs, list, count * sizeof *list);
    p->lists[problem].count = count;
    return true;
}

bool risk_pairs_init(struct risk_pairs *p, const struct plan *plan, struct arena *arena)
{
    struct numbers *n = ARENA_NEW(arena, 1, struct numbers);
    uint32_t *list;
    size_t pairs;

    if (!n)
        return false;
    collect(n, plan);
    pairs = (size_t)n->total * n->total;
    p->seen = ARENA_NEW(arena, pairs / 64 + 1, uint64_t);
    p->lists = ARENA_NEW(arena, plan->problem_count, struct risk_list);
    list = arena_alloc(arena, pairs + 1, sizeof *list);
    if (!p->seen || !p->lists || !list)
        return false;
    for (size_t i = 0; i < plan->problem_count; i++)
        if (!list_problem(p, n, plan, i, list, arena))
            return false;
    return true;
}

size_t risk_pairs_gain(struct risk_pairs *p, size_t problem)
{
    struct risk_list *l = &p->lists[problem];
    size_t kept = 0;

    for (size_t i = 0; i < l->count; i++)
        if (!bit_of(p->seen, l->pairs[i]))
            l->pairs[kept++] = l->pairs[i];
    l->count = kept;
    return kept;
}

void risk_pairs_take(struct risk_pairs *p, size_t problem)
{
    const struct risk_list *l = &p->lists[problem];

    for (size_t i = 0; i < l->count; i++)
        p->seen[l->pairs[i] / 64] |= UINT64_C(1) << l->pairs[i] % 64;
}
