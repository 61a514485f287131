#include "harness/kernel/plan_group.h"

#include <stdlib.h>

enum { ELSEWHERE = -1 }; /* the problem belongs to another shard */

struct group {
    size_t row;        /* its first */
    size_t count;      /* cases */
    int64_t m;         /* the largest */
    double cost;       /* sum of m n k */
    ptrdiff_t problem; /* in the plan, or ELSEWHERE */
};

struct grouping {
    struct plan_case *rows;
    size_t *slots; /* open addressing: 0 is empty, else 1 + index into groups */
    size_t slot_count;
    struct group *groups;
    size_t count;
};

/* FNV-1a (Fowler, Noll and Vo) over words, of the axes of the problem. */
static uint64_t hash_of(const int64_t *v)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (int x = 0; x < AX_COUNT; x++)
        if (axis_is_of_problem((enum axis_id)x, v))
            h = (h ^ (uint64_t)v[x]) * UINT64_C(0x100000001b3);
    return h ^ h >> 32;
}

static bool same_problem(const int64_t *v, const int64_t *w)
{
    for (int x = 0; x < AX_COUNT; x++)
        if (axis_is_of_problem((enum axis_id)x, v) && v[x] != w[x])
            return false;
    return true;
}

/* The row's group, a new one if it is the first of its problem. */
static size_t group_of(struct grouping *g, size_t row)
{
    const int64_t *v = g->rows[row].v;
    size_t i = hash_of(v) & (g->slot_count - 1);

    for (; g->slots[i]; i = (i + 1) & (g->slot_count - 1))
        if (same_problem(v, g->rows[g->groups[g->slots[i] - 1].row].v))
            return g->slots[i] - 1;
    g->groups[g->count] = (struct group){.row = row};
    g->slots[i] = ++g->count;
    return g->count - 1;
}

static bool group_rows(struct grouping *g, size_t count, struct arena *scratch)
{
    g->slot_count = 16;
    while (g->slot_count / 2 < count)
        g->slot_count *= 2;
    g->slots = ARENA_NEW(scratch, g->slot_count, size_t);
    g->groups = arena_alloc(scratch, count, sizeof *g->groups);
    if (!g->slots || !g->groups)
        return false;
    for (size_t row = 0; row < count; row++) {
        const int64_t *v = g->rows[row].v;
        struct group *group;

        g->rows[row].problem = group_of(g, row);
        group = &g->groups[g->rows[row].problem];
        group->count++;
        group->m = v[AX_M] > group->m ? v[AX_M] : group->m;
        group->cost += (double)v[AX_M] * (double)v[AX_N] * (double)v[AX_K];
    }
    return true;
}

struct price {
    double cost;
    size_t group;
};

/* Dear ones first; equal ones as written, so that the order does not depend on qsort. */
static int by_cost(const void *left, const void *right)
{
    const struct price *a = left, *b = right;

    if (a->cost > b->cost || a->cost < b->cost)
        return a->cost > b->cost ? -1 : 1;
    return (a->group > b->group) - (a->group < b->group);
}

/* Marks problems of other shards. The first round gives each shard one, so no shard is empty unless
 * problems are fewer than shards. */
static bool deal_out(struct grouping *g, const struct plan_options *o, struct arena *scratch)
{
    struct price *sorted = arena_alloc(scratch, g->count, sizeof *sorted);
    const size_t shards = (size_t)o->shards, mine = (size_t)o->shard - 1;

    if (!sorted)
        return false;
    for (size_t i = 0; i < g->count; i++)
        sorted[i] = (struct price){g->groups[i].cost, i};
    qsort(sorted, g->count, sizeof *sorted, by_cost);
    for (size_t i = 0; i < g->count; i++) {
        size_t position = i % shards;
        size_t shard = i / shards % 2 ? shards - 1 - position : position;

        if (shard != mine)
            g->groups[sorted[i].group].problem = ELSEWHERE;
    }
    return true;
}

/* Numbers the problems that stay. */
static void number(struct grouping *g, struct plan *out)
{
    for (size_t i = 0; i < g->count; i++) {
        if (g->groups[i].problem == ELSEWHERE)
            continue;
        g->groups[i].problem = (ptrdiff_t)out->problem_count++;
        out->count += g->groups[i].count;
    }
}

static bool fill_plan(const struct grouping *g, size_t rows, struct arena *arena, struct plan *out)
{
    size_t first = 0;

    out->cases = arena_alloc(arena, out->count, sizeof *out->cases);
    out->problems = arena_alloc(arena, out->problem_count, sizeof *out->problems);
    if (!out->cases || !out->problems)
        return false;
    for (size_t i = 0; i < g->count; i++) {
        const struct group *group = &g->groups[i];

        if (group->problem == ELSEWHERE)
            continue;
        out->problems[group->problem] = (struct plan_problem){.first = first, .m = group->m};
        first += group->count;
    }
    for (size_t row = 0; row < rows; row++) {
        const struct plan_case *c = &g->rows[row];
        ptrdiff_t problem = g->groups[c->problem].problem;
        struct plan_problem *p;

        if (problem == ELSEWHERE)
            continue;
        p = &out->problems[problem];
        out->cases[p->first + p->count] = *c;
        out->cases[p->first + p->count++].problem = (size_t)problem;
    }
    return true;
}

enum err_code plan_group(struct plan_case *rows, size_t count, const struct plan_options *options,
                         struct arena *arena, struct arena *scratch, struct plan *out,
                         struct errs *errs)
{
    struct grouping g = {.rows = rows};

    if (!group_rows(&g, count, scratch) || !deal_out(&g, options, scratch))
        return errs_add(errs, ERR_NOMEM, NOWHERE, "out of memory for the plan");
    number(&g, out);
    if (!out->count)
        return errs_add(errs, ERR_USAGE, NOWHERE,
                        "shard %d/%d has no problem: the plan has only %zu", options->shard,
                        options->shards, g.count);
    if (!fill_plan(&g, count, arena, out))
        return errs_add(errs, ERR_NOMEM, NOWHERE, "out of memory for the plan");
    return ERR_NONE;
}
