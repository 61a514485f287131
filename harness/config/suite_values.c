#include "harness/config/suite_load.h"

#include "reference/dtype.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 160, HINT = 96 };

static bool is_number(const struct axis *x)
{
    return x->kind == AXIS_INT || x->kind == AXIS_SEED || x->kind == AXIS_BOOL;
}

static void offer_formats(struct near *near)
{
    for (int i = 0; i < dtype_count; i++) {
        near_offer(near, dtypes[i].name);
        if (dtypes[i].alias)
            near_offer(near, dtypes[i].alias);
    }
}

static void offer_values(const struct axis *x, struct near *near)
{
    near_offer_all(near, x->words);
    if (x->kind == AXIS_FORMAT || x->kind == AXIS_WEIGHT)
        offer_formats(near);
    if (x->may_be_auto)
        near_offer(near, "auto");
}

static bool has_leading_zero(const char *text)
{
    return text[0] == '0' && text[1] >= '0' && text[1] <= '9';
}

/* Numbers and booleans in quotes are refused, so that what looks like a text is one. */
static bool parse_node(struct loader *l, const struct axis *x, const struct doc_node *n,
                       int64_t *out)
{
    char buf[TEXT], shown[TEXT], hint[HINT];
    bool quoted_number = is_number(x) && n->quoted && strcmp(n->text, "auto") != 0;
    const char *expected = axis_parse(x, n->text, out, buf, sizeof buf);
    struct near near = near_to(n->text);

    if (!expected && quoted_number)
        expected =
            x->kind == AXIS_BOOL ? "true or false without quotes" : "a number without quotes";
    if (!expected)
        return true;
    offer_values(x, &near);
    BAD(l, n->at, "%s: expected %s, found %s%s%s", x->key, expected,
        doc_show(n, shown, sizeof shown), near_hint(&near, hint, sizeof hint),
        is_number(x) && has_leading_zero(n->text) ? "; leading zeros are ambiguous (octal?)" : "");
    return false;
}

static bool allocate(struct loader *l, struct axis_values *out, size_t count)
{
    out->values = arena_alloc(l->arena, count, sizeof *out->values);
    if (!out->values)
        suite_no_memory(l);
    return out->values;
}

static void one_value(struct loader *l, const struct axis *x, const struct doc_node *n,
                      struct axis_values *out)
{
    int64_t v;

    if (parse_node(l, x, n, &v) && allocate(l, out, 1)) {
        out->values[0] = v;
        out->count = 1;
    }
}

/* A value and where it stands, for finding duplicates. */
struct placed {
    int64_t value;
    size_t order;
    const struct doc_node *node;
};

static int by_value(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;

    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static bool duplicates(struct loader *l, const struct axis *x, struct placed *p, size_t count)
{
    bool found = false;

    qsort(p, count, sizeof *p, by_value);
    for (size_t i = 1; i < count; i++)
        if (p[i].value == p[i - 1].value) {
            char buf[TEXT];

            BAD(l, p[i].node->at, "%s: %s is listed twice; first at line %d, column %d", x->key,
                axis_format(x, p[i].value, buf, sizeof buf), p[i - 1].node->at.line,
                p[i - 1].node->at.column);
            found = true;
        }
    return found;
}

static bool list_item(struct loader *l, const struct axis *x, const struct doc_node *n, int64_t *v)
{
    if (n->kind == DOC_REFUSED)
        return false;
    if (n->kind == DOC_TEXT && *n->text == '$') {
        BAD(l, n->at, "%s: a named list stands alone, not inside a list", x->key);
        return false;
    }
    if (n->kind == DOC_TEXT)
        return parse_node(l, x, n, v);
    BAD(l, n->at, "%s: expected single values in the list, found %s", x->key,
        n->kind == DOC_LIST ? "a list" : "a map");
    return false;
}

static void list_values(struct loader *l, const struct axis *x, const struct doc_node *list,
                        struct axis_values *out)
{
    struct placed *p;
    size_t count = 0;

    if (!list->count || list->count > SUITE_VALUES) {
        BAD(l, list->at, "%s: expected 1 to %d values, found %zu", x->key, SUITE_VALUES,
            list->count);
        return;
    }
    if (!allocate(l, out, list->count))
        return;
    p = ARENA_NEW(l->arena, list->count, struct placed);
    if (!p) {
        suite_no_memory(l);
        return;
    }
    for (const struct doc_node *n = list->child; n; n = n->next)
        if (list_item(l, x, n, &out->values[count])) {
            p[count] = (struct placed){out->values[count], count, n};
            count++;
        }
    if (!duplicates(l, x, p, count) && count == list->count)
        out->count = count;
}

/* {from, to, step} */
struct range {
    const struct doc_node *from, *to, *step;
};

static bool range_keys(struct loader *l, const struct axis *x, const struct doc_node *map,
                       struct range *r)
{
    bool good = true;

    for (const struct doc_node *n = map->child; n; n = n->next) {
        if (!strcmp(n->key, "from"))
            r->from = n;
        else if (!strcmp(n->key, "to"))
            r->to = n;
        else if (!strcmp(n->key, "step"))
            r->step = n;
        else {
            BAD(l, n->key_at, "%s: a range has the keys from, to and step, not '%.40s'", x->key,
                n->key);
            good = false;
        }
    }
    if (good && (!r->from || !r->to)) {
        BAD(l, map->at, "%s: a range needs from and to: '%s' is missing", x->key,
            r->from ? "to" : "from");
        good = false;
    }
    return good;
}

/* One end of a range: a number of the axis, never auto. */
static bool range_number(struct loader *l, const struct axis *x, const struct doc_node *n,
                         int64_t min, int64_t *out)
{
    char key[TEXT];
    struct axis number = {.key = key, .kind = AXIS_INT, .min = min, .max = x->max};

    (void)snprintf(key, sizeof key, "%s.%s", x->key, n->key);
    if (n->kind == DOC_TEXT)
        return parse_node(l, &number, n, out);
    if (n->kind != DOC_REFUSED)
        BAD(l, n->at, "%s: expected a number, found %s", key,
            n->kind == DOC_LIST ? "a list" : "a map");
    return false;
}

/* Both ends belong to a range: one that steps over its end is a mistake. */
static bool range_fits(struct loader *l, const struct axis *x, const struct doc_node *map,
                       const int64_t ends[2], int64_t step)
{
    int64_t from = ends[0], to = ends[1], last = from + (to - from) / step * step;

    if (from > to)
        BAD(l, map->at, "%s: the range is empty: from %" PRId64 " is above to %" PRId64, x->key,
            from, to);
    else if ((to - from) / step >= SUITE_VALUES)
        BAD(l, map->at, "%s: expected 1 to %d values, found a range of %" PRId64, x->key,
            SUITE_VALUES, (to - from) / step + 1);
    else if (last != to)
        BAD(l, map->at,
            "%s: the range steps over its end %" PRId64 ": its last value is %" PRId64
            ", the next would be %" PRId64,
            x->key, to, last, last + step);
    else
        return true;
    return false;
}

static void range_values(struct loader *l, const struct axis *x, const struct doc_node *map,
                         struct axis_values *out)
{
    struct range r = {0};
    int64_t ends[2], step = 1;
    bool good;

    if (x->kind != AXIS_INT) {
        BAD(l, map->at, "%s: expected a value or a list of values, found a map", x->key);
        return;
    }
    if (!range_keys(l, x, map, &r))
        return;
    good = range_number(l, x, r.from, x->min, &ends[0]);
    good = range_number(l, x, r.to, x->min, &ends[1]) && good;
    if (r.step)
        good = range_number(l, x, r.step, 1, &step) && good;
    if (!good || !range_fits(l, x, map, ends, step))
        return;
    if (!allocate(l, out, (size_t)((ends[1] - ends[0]) / step + 1)))
        return;
    for (int64_t v = ends[0]; v <= ends[1]; v += step)
        out->values[out->count++] = v;
}

static struct axis_values *values_of_list(struct loader *l, int axis, struct named_list *list)
{
    if (!list->parsed[axis]) {
        list->parsed[axis] = ARENA_NEW(l->arena, 1, struct axis_values);
        if (!list->parsed[axis])
            suite_no_memory(l);
        else
            list_values(l, &axes[axis], list->node, list->parsed[axis]);
    }
    return list->parsed[axis];
}

static void named_values(struct loader *l, int axis, const struct doc_node *n,
                         struct axis_values *out)
{
    const char *name = n->text + 1;
    struct near near = near_to(name);
    char hint[HINT];

    for (struct named_list *list = l->lists; list; list = list->next) {
        const struct axis_values *v;

        near_offer(&near, list->name);
        if (strcmp(list->name, name) != 0)
            continue;
        v = values_of_list(l, axis, list);
        if (v) {
            out->values = v->values;
            out->count = v->count;
        }
        return;
    }
    if (!l->lists_incomplete)
        BAD(l, n->at, "%s: no included file has a list '%.40s'%s", axes[axis].key, name,
            near_hint(&near, hint, sizeof hint));
}

void suite_values(struct loader *l, int axis, const struct doc_node *n, struct axis_values *out)
{
    *out = (struct axis_values){.stated = true, .at = n->at};
    switch (n->kind) {
    case DOC_TEXT:
        if (*n->text == '$')
            named_values(l, axis, n, out);
        else
            one_value(l, &axes[axis], n, out);
        break;
    case DOC_LIST:
        list_values(l, &axes[axis], n, out);
        break;
    case DOC_MAP:
        range_values(l, &axes[axis], n, out);
        break;
    case DOC_REFUSED:
        break;
    }
}

void suite_fallbacks(struct loader *l)
{
    for (int i = 0; i < AX_COUNT; i++) {
        struct axis_values *v = &l->fallbacks[i];
        char buf[TEXT];

        *v = (struct axis_values){0};
        if (!axes[i].fallback || !allocate(l, v, 1))
            continue;
        if (axis_parse(&axes[i], axes[i].fallback, v->values, buf, sizeof buf))
            suite_failed(l, errs_add(l->errs, ERR_INFRA, NOWHERE,
                                     "the table of axes: bad default of %s", axes[i].key));
        v->count = 1;
    }
}

int64_t suite_count(struct loader *l, const struct doc_node *n, int64_t max)
{
    const struct axis number = {.key = n->key, .kind = AXIS_INT, .min = 1, .max = max};
    int64_t v = 0;

    if (n->kind == DOC_TEXT)
        return parse_node(l, &number, n, &v) ? v : 0;
    if (n->kind != DOC_REFUSED)
        BAD(l, n->at, "%s: expected a number, found %s", n->key,
            n->kind == DOC_LIST ? "a list" : "a map");
    return 0;
}
