#include "harness/cli/budget.h"

#include "harness/cli/history.h"
#include "harness/config/source.h"

#include <stdlib.h>
#include <string.h>

enum { NOTES = 16 };

static const char usual_touches[] = "suites/touches.yaml";

enum err_code budget_check(const struct options *o, struct errs *errs)
{
    const struct {
        const char *name;
        bool given;
    } needs[] = {{"history", o->history.count > 0},
                 {"changed", o->changed.count > 0},
                 {"touches", o->touches != NULL}};
    enum err_code rc = ERR_NONE;

    if (o->budget_seconds > 0 && o->against && strncmp(o->against, "jsonl:", 6) != 0)
        rc = errs_add(errs, ERR_USAGE, NOWHERE,
                      "--budget needs the time that --against would take for the other provider; "
                      "compare with records: --against jsonl:FILE");
    if (o->touches && !o->changed.count)
        rc = errs_add(errs, ERR_USAGE, NOWHERE, "--touches says what --changed means: give both");
    for (size_t i = 0; i < sizeof needs / sizeof needs[0] && !(o->budget_seconds > 0); i++)
        if (needs[i].given)
            rc = errs_add(errs, ERR_USAGE, NOWHERE,
                          "--%s decides what comes first in a run with --budget: give one",
                          needs[i].name);
    return rc;
}

/* ---- changed files --------------------------------------------------------------------------- */

/* Lines of a text file that are not empty; `files` has room. */
static enum err_code read_list(const char *path, struct arena *arena, struct option_list *files,
                               struct errs *errs)
{
    enum err_code code = ERR_IO;
    const char *text, *why;
    size_t size;

    why = source_read(path, arena, &text, &size, &code);
    if (why)
        return errs_add(errs, code, place_at(path, 0, 0), "the list of changed files: %s", why);
    files->items = ARENA_NEW(arena, size + 1, const char *);
    if (!files->items)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the list of changed files");
    for (size_t at = 0; at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t length = end ? (size_t)(end - (text + at)) : size - at;
        size_t shown = length && text[at + length - 1] == '\r' ? length - 1 : length;

        if (shown &&
            !(files->items[files->count++] = arena_printf(arena, "%.*s", (int)shown, text + at)))
            return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the list of changed files");
        at += length + 1;
    }
    return ERR_NONE;
}

/* What --changed names, lists opened. */
static enum err_code changed_files(const struct option_list *changed, struct arena *arena,
                                   struct option_list *out, struct errs *errs)
{
    for (size_t i = 0; i < changed->count; i++) {
        const char *name = changed->items[i];
        struct option_list more = {&name, 1}, both = {0};

        if (name[0] == '@') {
            more = (struct option_list){0};
            TRY(read_list(name + 1, arena, &more, errs));
        }
        both.items = ARENA_NEW(arena, out->count + more.count + 1, const char *);
        if (!both.items)
            return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the list of changed files");
        for (size_t j = 0; j < out->count; j++)
            both.items[both.count++] = out->items[j];
        for (size_t j = 0; j < more.count; j++)
            both.items[both.count++] = more.items[j];
        *out = both;
    }
    return ERR_NONE;
}

static enum err_code pick_touched(const struct options *o, struct arena *arena, struct touched *out,
                                  struct errs *errs)
{
    struct option_list files = {0};
    struct touches table;

    TRY(touches_load(o->touches ? o->touches : usual_touches, arena, &table, errs));
    TRY(changed_files(&o->changed, arena, &files, errs));
    return touches_pick(&table, files.items, files.count, arena, out, errs);
}

/* ---- the order ------------------------------------------------------------------------------- */

static void note(struct budget *b, const char *text)
{
    if (text && b->note_count < NOTES)
        b->notes[b->note_count++] = text;
}

static void note_order(struct budget *b, const struct options *o, const struct touched *touched,
                       struct arena *arena)
{
    const char *table = o->touches ? o->touches : usual_touches;
    const char *line = "order: ", *separator = "";

    for (int i = 0; i < RISK_COUNT && line; i++)
        if (b->order.counts[i]) {
            line = arena_printf(arena, "%s%s%zu problem%s %s", line, separator, b->order.counts[i],
                                b->order.counts[i] == 1 ? "" : "s", risk_levels[i].word);
            separator = ", ";
        }
    note(b, line);
    for (size_t i = 0; i < touched->unnamed_count && i + 2 < NOTES; i++)
        note(b, arena_printf(arena, "changed file %s: no row of %s names it, so any case may break",
                             touched->unnamed[i], table));
}

enum err_code budget_make(const struct options *o, const struct plan *plan, double started,
                          struct arena *arena, struct budget *out, struct errs *errs)
{
    struct touched touched = {0};
    struct risk_in in = {.plan = plan};
    enum err_code read, picked = ERR_NONE;

    *out = (struct budget){.plan = plan};
    if (!(o->budget_seconds > 0))
        return ERR_NONE;
    out->deadline = started + o->budget_seconds;
    out->left.budget_seconds = o->budget_seconds;
    out->ran = ARENA_NEW(arena, plan->count + 1, bool);
    out->notes = ARENA_NEW(arena, NOTES, const char *);
    if (!out->ran || !out->notes)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for a run with a budget");
    read = history_read(&o->history, plan, arena, &in.past, errs);
    if (o->changed.count) {
        picked = pick_touched(o, arena, &touched, errs);
        in.touched = &touched;
    }
    if (read || picked)
        return read ? read : picked;
    TRY(risk_make(&in, arena, &out->order, errs));
    note_order(out, o, &touched, arena);
    return ERR_NONE;
}

/* ---- what was left out ----------------------------------------------------------------------- */

static size_t word_count(enum axis_id x)
{
    size_t n = 0;

    while (axes[x].words[n])
        n++;
    return n;
}

static bool count_groups(struct budget *b, struct arena *arena)
{
    const size_t families = word_count(AX_FAMILY), checks = word_count(AX_CHECK);
    size_t *cases = ARENA_NEW(arena, families * checks, size_t);
    struct left *l = &b->left;

    l->groups = ARENA_NEW(arena, families * checks, struct left_group);
    if (!cases || !l->groups)
        return false;
    for (size_t i = 0; i < b->plan->count; i++) {
        const int64_t *v = b->plan->cases[i].v;

        cases[(size_t)v[AX_FAMILY] * checks + (size_t)v[AX_CHECK]] += !b->ran[i];
    }
    for (size_t i = 0; i < families * checks; i++)
        if (cases[i])
            l->groups[l->group_count++] =
                (struct left_group){.family = axes[AX_FAMILY].words[i / checks],
                                    .check = axes[AX_CHECK].words[i % checks],
                                    .cases = cases[i]};
    return true;
}

struct value {
    int64_t value;
    bool ran;
};

static int by_value(const void *left, const void *right)
{
    const struct value *a = left, *b = right;

    if (a->value != b->value)
        return a->value < b->value ? -1 : 1;
    return (a->ran < b->ran) - (a->ran > b->ran);
}

/* The value of each case whose family has the axis. Sorted, the cases that ran stand before the
 * others of their value. */
static size_t sort_values(const struct budget *b, enum axis_id x, struct value *values)
{
    size_t count = 0;

    for (size_t i = 0; i < b->plan->count; i++) {
        const int64_t *v = b->plan->cases[i].v;

        if (axis_is_of_families(&axes[x], AXIS_FAMILY_BIT(v[AX_FAMILY])))
            values[count++] = (struct value){v[x], b->ran[i]};
    }
    qsort(values, count, sizeof *values, by_value);
    return count;
}

/* An axis of one value says nothing: the family that has it does. */
static bool never_run(struct budget *b, enum axis_id x, struct value *values, struct left_axis *out,
                      struct arena *arena)
{
    size_t count = sort_values(b, x, values);
    const char **texts = NULL;
    char text[64];

    *out = (struct left_axis){.key = axes[x].key};
    if (!count || values[0].value == values[count - 1].value)
        return true;
    for (size_t i = 0; i < count; i++) {
        if (values[i].ran || (i && values[i - 1].value == values[i].value))
            continue;
        if (!texts)
            out->values = texts = ARENA_NEW(arena, count - i, const char *);
        if (!texts)
            return false;
        texts[out->count] =
            arena_strdup(arena, axis_format(&axes[x], values[i].value, text, sizeof text));
        if (!texts[out->count++])
            return false;
    }
    return true;
}

static bool find_axes(struct budget *b, struct arena *arena)
{
    struct value *values = ARENA_NEW(arena, b->plan->count + 1, struct value);
    struct left *l = &b->left;

    l->axes = ARENA_NEW(arena, AX_COUNT, struct left_axis);
    if (!values || !l->axes)
        return false;
    for (int x = 0; x < AX_COUNT; x++) {
        if (x == AX_SEED)
            continue;
        if (!never_run(b, (enum axis_id)x, values, &l->axes[l->axis_count], arena))
            return false;
        l->axis_count += l->axes[l->axis_count].count > 0;
    }
    return true;
}

enum err_code budget_close(struct budget *b, const char *why, struct arena *arena,
                           struct errs *errs)
{
    struct left *l = &b->left;

    l->why = why;
    l->of = b->plan->count;
    for (size_t i = 0; i < b->plan->problem_count; i++) {
        const struct plan_problem *p = &b->plan->problems[i];
        size_t before = l->cases;

        for (size_t j = p->first; j < p->first + p->count; j++)
            l->cases += !b->ran[j];
        l->problems += l->cases > before;
    }
    if (l->cases && (!count_groups(b, arena) || !find_axes(b, arena)))
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory to say what was left out");
    return ERR_NONE;
}
