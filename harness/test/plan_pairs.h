/* plan_pairs.h - for tests: plans of suites, and which two values of two axes they have together.
 */
#ifndef HARNESS_TEST_PLAN_PAIRS_H
#define HARNESS_TEST_PLAN_PAIRS_H

#include "harness/config/suite.h"
#include "harness/kernel/legal.h"
#include "harness/kernel/plan.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

struct world {
    struct arena arena;
    struct errs errs;
    struct suite suite;
    struct plan plan;
};

static inline void world_say_errors(const struct world *w)
{
    char text[512];

    for (size_t i = 0; i < w->errs.count; i++)
        (void)fprintf(stderr, "%s\n", err_format(&w->errs.items[i], text, sizeof text));
}

static inline void world_plan(struct world *w, enum err_code loaded)
{
    const struct plan_options options = {.shard = 1, .shards = 1};
    enum err_code planned = loaded;

    if (!loaded)
        planned = plan_make(&w->suite, 1, &options, &w->arena, &w->plan, &w->errs);
    world_say_errors(w);
    ck_assert_int_eq(planned, ERR_NONE);
}

static inline void world_open(struct world *w)
{
    *w = (struct world){0};
    ck_assert(arena_init(&w->arena, (size_t)2 << 30));
}

static inline void world_close(struct world *w)
{
    errs_free(&w->errs);
    arena_free(&w->arena);
}

static inline bool pairs_has(enum axis_id x, int family)
{
    return axis_is_of_families(&axes[x], AXIS_FAMILY_BIT(family));
}

/* Values of crossed axes get numbers as they come; bit (i, j) says that they occur together. */
enum { PAIRS_MOST = 512 };
struct pairs {
    enum axis_id axis[PAIRS_MOST];
    int64_t value[PAIRS_MOST];
    int count;
    bool together[PAIRS_MOST][PAIRS_MOST];
};

static inline int pairs_number(struct pairs *p, enum axis_id x, int64_t value)
{
    for (int i = 0; i < p->count; i++)
        if (p->axis[i] == x && p->value[i] == value)
            return i;
    ck_assert_int_lt(p->count, PAIRS_MOST);
    p->axis[p->count] = x;
    p->value[p->count] = value;
    return p->count++;
}

static inline void pairs_add(struct pairs *p, const struct plan *plan, int family,
                             uint64_t not_crossed)
{
    for (size_t c = 0; c < plan->count; c++) {
        const int64_t *v = plan->cases[c].v;
        int here[AX_COUNT], count = 0;

        if (v[AX_FAMILY] != family)
            continue;
        for (enum axis_id x = 0; x < AX_COUNT; x++)
            if (pairs_has(x, family) && !(not_crossed & AXIS_BIT(x)))
                here[count++] = pairs_number(p, x, v[x]);
        for (int i = 0; i < count; i++)
            for (int j = 0; j < count; j++)
                p->together[here[i]][here[j]] = true;
    }
}

static inline bool pairs_value_is(enum axis_id x, int64_t value, const char *text)
{
    char name[64];

    return !text || strcmp(axis_format(&axes[x], value, name, sizeof name), text) == 0;
}

static inline bool pairs_is(const struct pairs *p, int i, enum axis_id x, const char *value)
{
    return p->axis[i] == x && pairs_value_is(x, p->value[i], value);
}

static inline void pairs_say(const struct pairs *p, const char *what, int i, int j)
{
    char a[64], b[64];

    (void)fprintf(stderr, "%s: no case has %s=%s with %s=%s\n", what, axes[p->axis[i]].key,
                  axis_format(&axes[p->axis[i]], p->value[i], a, sizeof a), axes[p->axis[j]].key,
                  axis_format(&axes[p->axis[j]], p->value[j], b, sizeof b));
}

#endif
