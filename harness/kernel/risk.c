#include "harness/kernel/risk.h"

#include "harness/kernel/risk_pairs.h"

#include <stdlib.h>

/* clang-format off */
const struct risk_level_info risk_levels[RISK_COUNT] = {
    [RISK_PAST]     = {"failed before",  "a case failed, was untrusted or did not get to run in an earlier run; the most recent one first"},
    [RISK_TOUCHED]  = {"can be broken by what changed", "the table of source files says so"},
    [RISK_COVERAGE] = {"by coverage", "most pairs of axis values not yet seen for a second"},
};
/* clang-format on */

/* A launch costs something whatever its size: as much as this many multiply-adds. */
static const double launch_work = 1e6;
/* One worker on a processor core, where nothing was timed. */
static const double usual_seconds = 1e-9;

/* What is known of a problem. */
struct item {
    size_t problem, cases;
    enum risk_level level;
    size_t failed; /* the most recent failure of its cases, as in struct risk_past; 0: none */
    double seconds;
    double score; /* pairs a second, or more: they were counted when `round` problems were taken */
    size_t round;
};

struct ranking {
    const struct risk_in *in;
    struct risk_pairs pairs;
    struct item *items;
    size_t count;
    size_t taken; /* problems */
    struct risk_order *out;
};

/* ---- what is known of each problem ----------------------------------------------------------- */

static double work_of(const struct plan_case *c)
{
    return launch_work + (double)c->v[AX_M] * (double)c->v[AX_N] * (double)c->v[AX_K];
}

/* Seconds for a multiply-add, from the cases that were timed. */
static double pace(const struct risk_in *in)
{
    double seconds = 0, work = 0;

    for (size_t i = 0; in->past && i < in->plan->count; i++)
        if (in->past[i].seconds > 0) {
            seconds += in->past[i].seconds;
            work += work_of(&in->plan->cases[i]);
        }
    return work > 0 ? seconds / work : usual_seconds;
}

static struct item look(const struct risk_in *in, size_t problem, double unit)
{
    const struct plan_problem *p = &in->plan->problems[problem];
    struct item item = {.problem = problem, .cases = p->count, .level = RISK_COVERAGE};

    for (size_t i = p->first; i < p->first + p->count; i++) {
        const struct plan_case *c = &in->plan->cases[i];
        const struct risk_past past = in->past ? in->past[i] : (struct risk_past){0};

        item.seconds += past.seconds > 0 ? past.seconds : work_of(c) * unit;
        if (past.failed && (!item.failed || past.failed < item.failed))
            item.failed = past.failed;
        if (item.level == RISK_COVERAGE && in->touched && touches_case(in->touched, c->v))
            item.level = RISK_TOUCHED;
    }
    if (item.failed)
        item.level = RISK_PAST;
    return item;
}

static int by_level(const void *left, const void *right)
{
    const struct item *a = left, *b = right;

    if (a->level != b->level)
        return a->level < b->level ? -1 : 1;
    if (a->failed != b->failed)
        return a->failed < b->failed ? -1 : 1;
    return (a->problem > b->problem) - (a->problem < b->problem);
}

/* ---- the greedy choice: a heap of items, the best one first ---------------------------------- */

static bool is_before(const struct item *a, const struct item *b)
{
    double pace_a = (double)a->cases / a->seconds, pace_b = (double)b->cases / b->seconds;

    if (a->score > b->score || a->score < b->score)
        return a->score > b->score;
    if (pace_a > pace_b || pace_a < pace_b)
        return pace_a > pace_b;
    return a->problem < b->problem;
}

static void sink_down(struct item *heap, size_t count, size_t at)
{
    for (size_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        struct item moved = heap[at];

        if (child + 1 < count && is_before(&heap[child + 1], &heap[child]))
            child++;
        if (!is_before(&heap[child], &moved))
            return;
        heap[at] = heap[child];
        heap[child] = moved;
        at = child;
    }
}

static void weigh(struct ranking *r, struct item *item)
{
    item->score = (double)risk_pairs_gain(&r->pairs, item->problem) / item->seconds;
    item->round = r->taken;
}

static void take(struct ranking *r, const struct item *item)
{
    risk_pairs_take(&r->pairs, item->problem);
    r->out->problems[r->taken++] = item->problem;
    r->out->counts[item->level]++;
    r->out->seconds += item->seconds;
}

/* The more was seen, the less a problem adds: so a gain that was counted earlier is at least the
 * present one, and an item that stays in front after it was weighed anew is the best. */
static void choose(struct ranking *r, struct item *heap, size_t count)
{
    for (size_t i = 0; i < count; i++)
        weigh(r, &heap[i]);
    for (size_t i = count / 2; i-- > 0;)
        sink_down(heap, count, i);
    while (count) {
        if (heap[0].round != r->taken && heap[0].score > 0) {
            weigh(r, &heap[0]);
        } else {
            take(r, &heap[0]);
            heap[0] = heap[--count];
        }
        sink_down(heap, count, 0);
    }
}

static void rank(struct ranking *r)
{
    size_t at = 0, end;

    for (; at < r->count && r->items[at].level == RISK_PAST; at++)
        take(r, &r->items[at]);
    for (end = at; at < r->count; at = end) {
        while (end < r->count && r->items[end].level == r->items[at].level)
            end++;
        choose(r, r->items + at, end - at);
    }
}

/* Address space, not memory: pages count when they are touched. */
static const size_t scratch_limit = (size_t)1 << 32;

enum err_code risk_make(const struct risk_in *in, struct arena *arena, struct risk_order *out,
                        struct errs *errs)
{
    struct ranking r = {.in = in, .count = in->plan->problem_count, .out = out};
    struct arena scratch;
    bool ok = arena_init(&scratch, scratch_limit);
    double unit = pace(in);

    *out = (struct risk_order){.problems = ARENA_NEW(arena, r.count, size_t)};
    r.items = ok ? ARENA_NEW(&scratch, r.count, struct item) : NULL;
    ok = r.items && out->problems && risk_pairs_init(&r.pairs, in->plan, &scratch);
    for (size_t i = 0; ok && i < r.count; i++)
        r.items[i] = look(in, i, unit);
    if (ok) {
        qsort(r.items, r.count, sizeof *r.items, by_level);
        rank(&r);
    }
    arena_free(&scratch);
    return ok ? ERR_NONE
              : errs_add(errs, ERR_NOMEM, NOWHERE, "no memory to put %zu problems in order",
                         r.count);
}
