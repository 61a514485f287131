#include "harness/kernel/plan.h"

#include "harness/config/expr.h"
#include "harness/kernel/combine.h"
#include "harness/kernel/legal.h"
#include "harness/kernel/plan_group.h"
#include "harness/kernel/plan_resolve.h"

#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { ID_TEXT = 4096 };
enum { CHUNK = 64 }; /* rows; 64 of them are whole cache lines whatever their size */

/* Address space, not memory: pages count when they are touched. */
static const size_t rows_limit = (size_t)1 << 30, scratch_limit = (size_t)1 << 30;

struct maker {
    const struct plan_options *options;
    struct arena *arena;     /* what outlives plan_make */
    struct arena rows_arena; /* only rows, so that its chunks are one array */
    struct arena scratch;    /* of one step */
    struct plan_case *rows;  /* cases as they come: expanded, resolved, filtered */
    size_t count, unfiltered;
    char nearest[ID_TEXT]; /* id that resembles the filter most */
    size_t nearest_score;
    struct plan *out;
    struct errs *errs;
};

/* One entry on its way through `combine`. */
struct expansion {
    struct maker *m;
    const struct suite *suite;
    const struct entry *entry;
    uint64_t seed;
    uint64_t *where_axes; /* what each `where` reads */
    size_t *dropped;      /* combinations, by rule; last: by where */
    int last;             /* the rule that `broken` found */
    size_t emitted;
    enum err_code rc;
};

struct text {
    char *at;
    size_t size, used;
};

static void PRINTF_LIKE(2, 3) put(struct text *t, const char *fmt, ...)
{
    va_list args;
    int n;

    if (t->used >= t->size)
        return;
    va_start(args, fmt);
    n = vsnprintf(t->at + t->used, t->size - t->used, fmt, args);
    va_end(args);
    t->used += n < 0 ? t->size : (size_t)n;
}

/* false: it does not fit. */
static bool put_id(struct text *t, const struct expansion *x, const int64_t *v)
{
    char value[64];
    const char *separator = "/";

    put(t, "%s/%s", x->suite->name, x->entry->name);
    for (int i = 0; i < AX_COUNT; i++) {
        if (x->entry->axes[i].count < 2)
            continue;
        put(t, "%s%s=%s", separator, axes[i].key, axis_format(&axes[i], v[i], value, sizeof value));
        separator = ",";
    }
    return t->used < t->size;
}

/* How much of the filter's literal text appears in `id`, in order. */
static size_t resemblance(const char *filter, const char *id)
{
    size_t score = 0;

    for (; *filter; filter++) {
        const char *found = strchr("*?[]", *filter) ? NULL : strchr(id, *filter);

        if (found) {
            score++;
            id = found + 1;
        }
    }
    return score;
}

static bool passes(struct maker *m, const char *id)
{
    const char *filter = m->options->filter;
    size_t score;

    m->unfiltered++;
    if (!filter || fnmatch(filter, id, 0) == 0)
        return true;
    score = resemblance(filter, id);
    if (m->unfiltered == 1 || score > m->nearest_score) {
        m->nearest_score = score;
        (void)snprintf(m->nearest, sizeof m->nearest, "%s", id);
    }
    return false;
}

static bool reject(struct expansion *x, enum err_code code, const char *why)
{
    x->rc = errs_add(x->m->errs, code, x->entry->at, "entry '%s': %s", x->entry->name, why);
    return false;
}

static struct plan_case *new_row(struct maker *m)
{
    if (m->count % CHUNK == 0) {
        struct plan_case *chunk = arena_alloc(&m->rows_arena, CHUNK, sizeof *chunk);

        if (!chunk)
            return NULL;
        if (!m->rows)
            m->rows = chunk;
    }
    return &m->rows[m->count++];
}

static bool take(const int64_t v[AX_COUNT], void *context)
{
    struct expansion *x = context;
    struct maker *m = x->m;
    struct plan_case *row;
    uint64_t decided_by[AX_COUNT];
    char id[ID_TEXT];
    struct text text = {id, sizeof id, 0};

    x->emitted++;
    if (!put_id(&text, x, v))
        return reject(x, ERR_CONFIG, "the names of its cases are too long");
    if (!passes(m, id))
        return true;
    row = new_row(m);
    if (!row)
        return reject(x, ERR_CONFIG, "more cases than a plan can hold");
    *row =
        (struct plan_case){.suite = x->suite, .entry = x->entry, .id = arena_strdup(m->arena, id)};
    if (!row->id)
        return reject(x, ERR_NOMEM, "out of memory for its cases");
    memcpy(row->v, v, sizeof row->v);
    (void)plan_resolve(row->v, ~UINT64_C(0), x->seed, decided_by);
    return true;
}

static uint64_t blame_of(uint64_t axes_read, const uint64_t decided_by[AX_COUNT])
{
    uint64_t blame = 0;

    for (; axes_read; axes_read &= axes_read - 1)
        blame |= decided_by[__builtin_ctzll(axes_read)];
    return blame;
}

/* The resolved axes whose value depends on one of `fresh`. */
static uint64_t touched_by(uint64_t fresh, const uint64_t decided_by[AX_COUNT])
{
    uint64_t touched = 0;

    for (int i = 0; i < AX_COUNT; i++)
        if (decided_by[i] & fresh)
            touched |= AXIS_BIT(i);
    return touched;
}

static bool is_broken(const int64_t v[AX_COUNT], uint64_t known, uint64_t fresh, uint64_t *blame,
                      void *context)
{
    struct expansion *x = context;
    uint64_t decided_by[AX_COUNT], touched;
    int64_t resolved[AX_COUNT];
    int rule;

    memcpy(resolved, v, sizeof resolved);
    known = plan_resolve(resolved, known, x->seed, decided_by);
    touched = touched_by(fresh, decided_by);
    rule = legal_find(resolved, known, touched);
    if (rule >= 0) {
        x->last = rule;
        *blame = blame_of(legal_rule(rule)->axes | AXIS_BIT(AX_FAMILY), decided_by);
        return true;
    }
    for (size_t i = 0; i < x->entry->where_count; i++)
        if (!(x->where_axes[i] & ~known) && !expr_eval(x->entry->where[i], resolved)) {
            x->last = legal_count();
            *blame = blame_of(x->where_axes[i], decided_by);
            return true;
        }
    return false;
}

static void count_dropped(size_t combinations, void *context)
{
    struct expansion *x = context;
    size_t *sum = &x->dropped[x->last];

    if (__builtin_add_overflow(*sum, combinations, sum))
        *sum = SIZE_MAX;
}

static bool open_expansion(struct expansion *x)
{
    const struct entry *e = x->entry;
    struct arena *scratch = &x->m->scratch;

    arena_reset(scratch);
    x->dropped = ARENA_NEW(scratch, legal_count() + 1, size_t);
    x->where_axes = ARENA_NEW(scratch, e->where_count, uint64_t);
    if (!x->dropped || !x->where_axes)
        return false;
    for (size_t i = 0; i < e->where_count; i++)
        for (int a = 0; a < AX_COUNT; a++)
            if (expr_mentions(e->where[i], (enum axis_id)a))
                x->where_axes[i] |= AXIS_BIT(a);
    return true;
}

static enum err_code nothing_left(struct expansion *x)
{
    int most = 0;

    for (int i = 1; i <= legal_count(); i++)
        if (x->dropped[i] > x->dropped[most])
            most = i;
    if (most == legal_count())
        return errs_add(x->m->errs, ERR_CONFIG, x->entry->at,
                        "entry '%s': where leaves no combination of its axes", x->entry->name);
    return errs_add(x->m->errs, ERR_CONFIG, x->entry->at,
                    "entry '%s': no legal combination of its axes: %s", x->entry->name,
                    legal_rule(most)->sentence);
}

/* Only a full product counts what falls; a search passes over the same combinations many times, or
 * never. */
static void add_counts(const struct expansion *x)
{
    struct plan *out = x->m->out;

    if (x->entry->combine != COMBINE_FULL)
        return;
    for (int i = 0; i < legal_count(); i++)
        out->illegal += x->dropped[i];
    out->excluded += x->dropped[legal_count()];
}

/* Entries draw different samples. FNV-1a (Fowler, Noll and Vo) of the name. */
static uint64_t sample_seed(uint64_t seed, const char *name)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return seed ^ h;
}

static enum err_code expand(struct maker *m, const struct suite *suite, const struct entry *entry)
{
    struct expansion x = {.m = m, .suite = suite, .entry = entry};
    struct combine_in in = {.axes = entry->axes,
                            .arena = &m->scratch,
                            .context = &x,
                            .broken = is_broken,
                            .dropped = count_dropped,
                            .emit = take};
    size_t gaps = 0;

    x.seed = m->options->has_seed ? m->options->seed : suite->seed;
    in.seed = sample_seed(x.seed, entry->name);
    if (!open_expansion(&x))
        return errs_add(m->errs, ERR_NOMEM, entry->at, "out of memory for the plan");
    switch (combine_run(&in, entry->combine, entry->random_count, &gaps)) {
    case COMBINE_STOPPED:
        return x.rc;
    case COMBINE_NO_MEMORY:
        (void)reject(&x, ERR_CONFIG, "too many values to combine in this way");
        return x.rc;
    case COMBINE_TOO_MANY:
        (void)reject(&x, ERR_CONFIG, "too many combinations: use combine: pairwise or random");
        return x.rc;
    case COMBINE_DONE:
        break;
    }
    add_counts(&x);
    m->out->gaps += gaps;
    return x.emitted ? ERR_NONE : nothing_left(&x);
}

static enum err_code check_names(const struct suite *suites, size_t count, struct errs *errs)
{
    enum err_code first = ERR_NONE;

    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (!strcmp(suites[i].name, suites[j].name)) {
                enum err_code rc = errs_add(errs, ERR_CONFIG, place_at(suites[i].path, 0, 0),
                                            "suite '%s' has the name of the suite in %s",
                                            suites[i].name, suites[j].path);

                first = first ? first : rc;
                break;
            }
    return first;
}

static enum err_code make(struct maker *m, const struct suite *suites, size_t suite_count)
{
    enum err_code first = ERR_NONE;

    for (size_t i = 0; i < suite_count; i++)
        for (size_t j = 0; j < suites[i].count; j++) {
            enum err_code rc = expand(m, &suites[i], &suites[i].entries[j]);

            first = first ? first : rc;
        }
    if (first)
        return first;
    if (!m->count && m->options->filter)
        return errs_add(m->errs, ERR_USAGE, NOWHERE, "no case matches '%s'; near it is '%s'",
                        m->options->filter, m->nearest);
    arena_reset(&m->scratch);
    return plan_group(m->rows, m->count, m->options, m->arena, &m->scratch, m->out, m->errs);
}

enum err_code plan_make(const struct suite *suites, size_t suite_count,
                        const struct plan_options *options, struct arena *arena, struct plan *out,
                        struct errs *errs)
{
    struct maker m = {.options = options, .arena = arena, .out = out, .errs = errs};
    enum err_code rc;

    *out = (struct plan){.options = *options};
    if (options->shard < 1 || options->shard > options->shards)
        return errs_add(errs, ERR_USAGE, NOWHERE,
                        "shard %d/%d: the first number must be from 1 to the second",
                        options->shard, options->shards);
    TRY(check_names(suites, suite_count, errs));
    if (arena_init(&m.rows_arena, rows_limit) && arena_init(&m.scratch, scratch_limit))
        rc = make(&m, suites, suite_count);
    else
        rc = errs_add(errs, ERR_NOMEM, NOWHERE, "out of memory for the plan");
    arena_free(&m.scratch);
    arena_free(&m.rows_arena);
    return rc;
}
