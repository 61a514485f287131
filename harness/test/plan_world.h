/* plan_world.h - for tests: suites made by hand, and what holds of every plan.
 */
#ifndef HARNESS_TEST_PLAN_WORLD_H
#define HARNESS_TEST_PLAN_WORLD_H

#include "harness/config/expr.h"
#include "harness/kernel/legal.h"
#include "harness/kernel/plan.h"
#include "harness/test/case_text.h"

/* Two suites, the plan made of them, and where it all lives. */
struct world {
    struct arena arena;
    struct errs errs;
    struct suite suites[2];
    size_t suite_count;
    struct plan_options options;
    struct plan plan;
};

static inline void world_open(struct world *w)
{
    *w = (struct world){.options = {.shard = 1, .shards = 1}};
    ck_assert(arena_init(&w->arena, (size_t)1 << 30));
}

static inline void world_close(struct world *w)
{
    errs_free(&w->errs);
    arena_free(&w->arena);
}

static inline struct suite *add_suite(struct world *w, const char *name)
{
    struct suite *s = &w->suites[w->suite_count++];

    *s = (struct suite){.path = arena_printf(&w->arena, "suites/%s.yaml", name),
                        .name = name,
                        .description = "",
                        .seed = 1,
                        .entries = ARENA_NEW(&w->arena, 8, struct entry)};
    return s;
}

static inline void give_list(struct arena *arena, struct axis_values *list, enum axis_id x,
                             char *text)
{
    list->stated = true;
    list->count = 0;
    list->values = ARENA_NEW(arena, strlen(text) + 1, int64_t);
    for (char *next; text; text = next) {
        next = strchr(text, '|');
        if (next)
            *next++ = '\0';
        list->values[list->count++] = case_value(x, text);
    }
}

/* An entry of the defaults and of "key=value|value key=value ...". */
static inline struct entry *add_entry(struct world *w, struct suite *s, const char *name,
                                      const char *text)
{
    struct entry *e = &s->entries[s->count++];
    int64_t v[AX_COUNT];
    char key[64], list[2000];
    int used = 0;

    *e = (struct entry){.name = name, .at = place_at(s->path, (int)s->count * 10, 5)};
    case_defaults(v);
    for (int x = 0; x < AX_COUNT; x++) {
        e->axes[x] = (struct axis_values){.values = ARENA_NEW(&w->arena, 1, int64_t), .count = 1};
        e->axes[x].values[0] = v[x];
    }
    for (; sscanf(text, " %63[^= ]=%1999s%n", key, list, &used) == 2; text += used) {
        int x = axis_find(key);

        ck_assert_msg(x >= 0, "no axis '%s'", key);
        give_list(&w->arena, &e->axes[x], (enum axis_id)x, list);
    }
    ck_assert_msg(!*text, "cannot read '%s'", text);
    return e;
}

static inline void add_where(struct world *w, struct entry *e, const char *text)
{
    if (!e->where)
        e->where = ARENA_NEW(&w->arena, 4, const struct expr *);
    e->where[e->where_count] = expr_parse(text, NOWHERE, &w->arena, &w->errs);
    ck_assert_ptr_nonnull(e->where[e->where_count++]);
}

static inline enum err_code make(struct world *w)
{
    return plan_make(w->suites, w->suite_count, &w->options, &w->arena, &w->plan, &w->errs);
}

static inline void must_make(struct world *w)
{
    enum err_code rc = make(w);

    ck_assert_msg(!rc, "%s", w->errs.count ? w->errs.items[0].text : "?");
}

static inline void must_fail(struct world *w, enum err_code code, int line, const char *text)
{
    ck_assert_int_eq((int)make(w), (int)code);
    ck_assert_uint_ge(w->errs.count, 1);
    ck_assert_str_eq(w->errs.items[0].text, text);
    ck_assert_int_eq(w->errs.items[0].at.line, line);
}

/* What holds of every plan: problems tile the cases; cases of a problem agree in its axes and
 * differ from those of other problems; cases are complete and legal; m is the largest; ids are
 * distinct. */
static inline bool same_problem(const int64_t *v, const int64_t *w)
{
    for (int x = 0; x < AX_COUNT; x++)
        if (axes[x].of_problem && v[x] != w[x])
            return false;
    return true;
}

static inline int bad_cases(const struct plan *p, size_t problem)
{
    const struct plan_problem *q = &p->problems[problem];
    const int64_t *first = p->cases[q->first].v;
    int64_t m = 0;
    int bad = 0;

    for (size_t i = q->first; i < q->first + q->count; i++) {
        const struct plan_case *c = &p->cases[i];

        m = c->v[AX_M] > m ? c->v[AX_M] : m;
        bad += c->problem != problem || !same_problem(c->v, first) || legal_broken(c->v) != NULL;
        for (int x = 0; x < AX_COUNT; x++)
            bad += axes[x].of_problem && c->v[x] == AXIS_AUTO;
    }
    return bad + (m != q->m);
}

static inline void check_plan(const struct plan *p)
{
    size_t next = 0;
    int bad = 0;

    for (size_t i = 0; i < p->problem_count; i++) {
        ck_assert_uint_eq(p->problems[i].first, next);
        ck_assert_uint_ge(p->problems[i].count, 1);
        next += p->problems[i].count;
        bad += bad_cases(p, i);
        for (size_t j = 0; j < i; j++)
            bad += same_problem(p->cases[p->problems[i].first].v, p->cases[p->problems[j].first].v);
    }
    for (size_t i = 0; i < p->count; i++)
        for (size_t j = 0; j < i; j++)
            bad += !strcmp(p->cases[i].id, p->cases[j].id);
    ck_assert_uint_eq(next, p->count);
    ck_assert_int_eq(bad, 0);
}

#endif
