#include "harness/config/suite.h"

#include "harness/config/expr.h"
#include "harness/config/source.h"
#include "harness/config/suite_load.h"
#include "harness/core/utf8.h"

#include <stdio.h>
#include <string.h>

#define SUITE_CHARS "abcdefghijklmnopqrstuvwxyz0123456789_-"
#define ENTRY_CHARS SUITE_CHARS "."

enum { HINT = 96, TEXT = 160, DESCRIPTION = 200, RANDOM_MAX = 1000000 };

void suite_failed(struct loader *l, enum err_code code)
{
    if (!l->rc)
        l->rc = code;
}

void suite_no_memory(struct loader *l)
{
    if (l->rc != ERR_NOMEM)
        (void)errs_add(l->errs, ERR_NOMEM, place_at(l->path, 0, 0), "no memory for the suite");
    l->rc = ERR_NOMEM;
}

/* The text of a scalar; NULL, after an error, if it is something else. */
static const char *text_of(struct loader *l, const struct doc_node *n, const char *expected)
{
    if (n->kind == DOC_TEXT)
        return n->text;
    if (n->kind != DOC_REFUSED)
        BAD(l, n->at, "%s: expected %s, found %s", n->key, expected, doc_show(n, NULL, 0));
    return NULL;
}

/* A name of 1 to SUITE_NAME of `chars`; "" after an error. */
static const char *name_of(struct loader *l, const struct doc_node *n, const char *chars,
                           const char *expected)
{
    const char *text = text_of(l, n, expected);
    size_t length = text ? strlen(text) : 0;
    char shown[TEXT];

    if (!text)
        return "";
    if (length && length <= SUITE_NAME && strspn(text, chars) == length)
        return text;
    BAD(l, n->at, "%s: expected %s, found %s", n->key, expected, doc_show(n, shown, sizeof shown));
    return "";
}

static void load_name(struct loader *l, struct suite *s, const struct doc_node *n)
{
    s->name = name_of(l, n, SUITE_CHARS, "a name of 1 to 64 characters of a-z, 0-9, _ and -");
}

static void load_description(struct loader *l, struct suite *s, const struct doc_node *n)
{
    static const char expected[] = "one line of 1 to 200 characters";
    const char *text = text_of(l, n, expected);
    size_t length = text ? strlen(text) : 0;
    char shown[TEXT];

    if (!text)
        return;
    if (!length || strchr(text, '\n') || utf8_count(text, length) > DESCRIPTION)
        BAD(l, n->at, "%s: expected %s, found %s", n->key, expected,
            doc_show(n, shown, sizeof shown));
    s->description = text;
}

/* A list of seeds makes no sense here: a suite has one. */
static void load_seed(struct loader *l, struct suite *s, const struct doc_node *n)
{
    struct axis seed = axes[AX_SEED];
    const char *text = text_of(l, n, "one seed");
    char buf[TEXT], shown[TEXT];
    const char *expected;
    int64_t v = 0;

    if (!text)
        return;
    seed.may_be_auto = false;
    expected = axis_parse(&seed, text, &v, buf, sizeof buf);
    if (!expected && n->quoted)
        expected = "a number without quotes";
    if (expected)
        BAD(l, n->at, "seed: expected %s, found %s", expected, doc_show(n, shown, sizeof shown));
    s->seed = (uint64_t)v;
}

static void load_include(struct loader *l, struct suite *s, const struct doc_node *n)
{
    (void)s;
    suite_includes(l, n);
}

static bool is_map(struct loader *l, const struct doc_node *n, const char *what)
{
    char shown[TEXT];

    if (n->kind == DOC_TEXT || n->kind == DOC_LIST)
        BAD(l, n->at, "%s, found %s", what, doc_show(n, shown, sizeof shown));
    return n->kind == DOC_MAP;
}

static void load_defaults(struct loader *l, struct suite *s, const struct doc_node *map)
{
    (void)s;
    if (!is_map(l, map, "defaults: expected a map of axes, such as {a_dtype: f16}"))
        return;
    for (const struct doc_node *n = map->child; n; n = n->next) {
        int axis = axis_find(n->key);
        struct near near = near_to(n->key);
        char hint[HINT];

        if (axis >= 0) {
            suite_values(l, axis, n, &l->defaults[axis]);
            continue;
        }
        for (int i = 0; i < AX_COUNT; i++)
            near_offer(&near, axes[i].key);
        BAD(l, n->key_at, "unknown key '%.40s' in defaults%s", n->key,
            near_hint(&near, hint, sizeof hint));
    }
}

static void load_combine(struct loader *l, struct entry *e, const struct doc_node *n)
{
    static const char expected[] = "full, pairwise or {random: COUNT}";
    const struct doc_node *only = n->kind == DOC_MAP && n->count == 1 ? n->child : NULL;
    bool is_text = n->kind == DOC_TEXT;
    char shown[TEXT], hint[HINT];
    struct near near = near_to(is_text ? n->text : only ? only->key : "");

    near_offer_all(&near, (const char *const[]){"full", "pairwise", "random", NULL});
    if (n->kind == DOC_REFUSED)
        return;
    if (only && !strcmp(only->key, "random")) {
        e->combine = COMBINE_RANDOM;
        e->random_count = (size_t)suite_count(l, only, RANDOM_MAX);
    } else if (is_text && !strcmp(n->text, "pairwise")) {
        e->combine = COMBINE_PAIRWISE;
    } else if (is_text && !strcmp(n->text, "random")) {
        BAD(l, n->at, "combine: random needs a count: write {random: 40}");
    } else if (only && (!strcmp(only->key, "pairwise") || !strcmp(only->key, "full"))) {
        BAD(l, n->at, "combine: %s takes no argument: write 'combine: %s'", only->key, only->key);
    } else if (!is_text || strcmp(n->text, "full") != 0) {
        BAD(l, n->at, "combine: expected %s, found %s%s", expected,
            doc_show(n, shown, sizeof shown), near_hint(&near, hint, sizeof hint));
    }
}

/* Errors point into the text where it stands in the file as it is, else to its start. */
static const struct expr *load_condition(struct loader *l, const struct doc_node *n)
{
    const struct expr *e = NULL;
    size_t before = l->errs->count;

    if (n->kind == DOC_REFUSED)
        return NULL;
    if (n->kind != DOC_TEXT) {
        BAD(l, n->at, "where: expected a condition such as 'k %% 64 == 0', found %s",
            doc_show(n, NULL, 0));
        return NULL;
    }
    e = expr_parse(n->text, n->text_at, l->arena, l->errs);
    if (!e)
        suite_failed(l, l->errs->count > before ? l->errs->items[before].code : ERR_CONFIG);
    for (size_t i = before; i < l->errs->count && !n->verbatim; i++)
        l->errs->items[i].at = n->at;
    return e;
}

static void load_where(struct loader *l, struct entry *e, const struct doc_node *n)
{
    bool is_list = n->kind == DOC_LIST;
    size_t count = is_list ? n->count : 1;
    const struct doc_node *item = is_list ? n->child : n;

    e->where = ARENA_NEW(l->arena, count, const struct expr *);
    if (!e->where) {
        suite_no_memory(l);
        return;
    }
    for (; e->where_count < count; item = item->next)
        e->where[e->where_count++] = load_condition(l, item);
}

static void load_entry_name(struct loader *l, struct entry *e, const struct doc_node *n)
{
    e->name = name_of(l, n, ENTRY_CHARS, "a name of 1 to 64 characters of a-z, 0-9, _, . and -");
}

/* clang-format off */
static const struct {
    const char *key;
    void (*load)(struct loader *l, struct entry *e, const struct doc_node *n);
    bool required;
} entry_fields[] = {
    {"name",    load_entry_name, true},
    {"combine", load_combine,    false},
    {"where",   load_where,      false},
};
/* clang-format on */
enum { ENTRY_FIELDS = sizeof entry_fields / sizeof entry_fields[0] };

static void unknown_entry_key(struct loader *l, const struct doc_node *n)
{
    struct near near = near_to(n->key);
    char hint[HINT];

    for (int i = 0; i < ENTRY_FIELDS; i++)
        near_offer(&near, entry_fields[i].key);
    for (int i = 0; i < AX_COUNT; i++)
        near_offer(&near, axes[i].key);
    BAD(l, n->key_at, "unknown key '%.40s'%s", n->key, near_hint(&near, hint, sizeof hint));
}

static void load_entry_key(struct loader *l, struct entry *e, const struct doc_node *n)
{
    int axis = axis_find(n->key);

    for (int i = 0; i < ENTRY_FIELDS; i++)
        if (!strcmp(entry_fields[i].key, n->key)) {
            entry_fields[i].load(l, e, n);
            return;
        }
    if (axis >= 0)
        suite_values(l, axis, n, &e->axes[axis]);
    else
        unknown_entry_key(l, n);
}

/* Bits (axes.h) of the families that the entry is for; none after an error. */
static unsigned families_of(const struct entry *e)
{
    const struct axis_values *v = &e->axes[AX_FAMILY];
    unsigned families = 0;

    for (size_t i = 0; i < v->count; i++)
        families |= AXIS_FAMILY_BIT(v->values[i]);
    return families;
}

/* An axis that the entry's families do not have may not be stated; it gets a value that nothing
 * looks at. */
static void foreign_axis(struct loader *l, struct axis_values *v, int axis,
                         const struct axis_values *family)
{
    if (v->stated)
        BAD(l, v->at, "%s: family %s has no such axis", axes[axis].key,
            axes[AX_FAMILY].words[family->values[0]]);
    *v = l->fallbacks[axis];
    if (!v->count && (v->values = ARENA_NEW(l->arena, 1, int64_t)))
        v->count = 1;
    if (!v->count)
        suite_no_memory(l);
}

/* What the entry does not state: the suite's defaults, then the axis' own. The family comes
 * first: it decides which axes there are. */
static void complete_entry(struct loader *l, struct entry *e, const struct doc_node *map)
{
    for (int i = 0; i < ENTRY_FIELDS; i++)
        if (entry_fields[i].required && !doc_find(map, entry_fields[i].key))
            BAD(l, e->at, "key '%s' is missing", entry_fields[i].key);
    for (int i = 0; i < AX_COUNT; i++) {
        if (!axis_is_of_families(&axes[i], families_of(e))) {
            foreign_axis(l, &e->axes[i], i, &e->axes[AX_FAMILY]);
            continue;
        }
        if (e->axes[i].stated)
            continue;
        e->axes[i] = l->defaults[i].stated ? l->defaults[i] : l->fallbacks[i];
        if (!e->axes[i].stated && !e->axes[i].count)
            BAD(l, e->at, "key '%s' is missing", axes[i].key);
        if (!e->axes[i].stated)
            e->axes[i].at = e->at;
    }
}

static void check_unique(struct loader *l, const struct suite *s, const struct entry *e)
{
    for (const struct entry *old = s->entries; old < e; old++)
        if (*e->name && !strcmp(old->name, e->name)) {
            BAD(l, e->at, "the name '%s' is taken by the entry at line %d", e->name, old->at.line);
            return;
        }
}

static void load_entry(struct loader *l, struct suite *s, const struct doc_node *map)
{
    struct entry *e = &s->entries[s->count++];

    *e = (struct entry){.name = "", .at = map->at};
    if (!is_map(l, map, "an entry is a map of keys, such as '- name: small'"))
        return;
    for (const struct doc_node *n = map->child; n; n = n->next)
        load_entry_key(l, e, n);
    complete_entry(l, e, map);
    check_unique(l, s, e);
}

static void load_entries(struct loader *l, struct suite *s, const struct doc_node *list)
{
    char shown[TEXT];

    if (list->kind == DOC_REFUSED)
        return;
    if (list->kind == DOC_LIST)
        (void)snprintf(shown, sizeof shown, "%zu", list->count);
    if (list->kind != DOC_LIST || !list->count || list->count > SUITE_ENTRIES) {
        BAD(l, list->at, "entries: expected a list of 1 to %d entries, found %s", SUITE_ENTRIES,
            list->kind == DOC_LIST ? shown : doc_show(list, shown, sizeof shown));
        return;
    }
    s->entries = ARENA_NEW(l->arena, list->count, struct entry);
    if (!s->entries) {
        suite_no_memory(l);
        return;
    }
    for (const struct doc_node *n = list->child; n; n = n->next)
        load_entry(l, s, n);
}

/* In the order in which they are read, whatever the file's: lists before defaults before
 * entries. */
/* clang-format off */
static const struct {
    const char *key;
    void (*load)(struct loader *l, struct suite *s, const struct doc_node *n);
    bool required;
} fields[] = {
    {"suite",       load_name,        true},
    {"description", load_description, false},
    {"seed",        load_seed,        false},
    {"include",     load_include,     false},
    {"defaults",    load_defaults,    false},
    {"entries",     load_entries,     true},
};
/* clang-format on */
enum { FIELD_COUNT = sizeof fields / sizeof fields[0] };

static void check_key(struct loader *l, const struct doc_node *n)
{
    struct near near = near_to(n->key);
    char hint[HINT];

    for (int i = 0; i < FIELD_COUNT; i++) {
        if (!strcmp(fields[i].key, n->key))
            return;
        near_offer(&near, fields[i].key);
    }
    if (axis_find(n->key) >= 0)
        BAD(l, n->key_at, "'%s' is an axis: it belongs into defaults or into an entry", n->key);
    else
        BAD(l, n->key_at, "unknown key '%.40s'%s", n->key, near_hint(&near, hint, sizeof hint));
}

static void load_root(struct loader *l, struct suite *s, const struct doc_node *root)
{
    if (!is_map(l, root, "a suite is a map with the keys suite and entries"))
        return;
    for (const struct doc_node *n = root->child; n; n = n->next)
        check_key(l, n);
    for (int i = 0; i < FIELD_COUNT; i++) {
        const struct doc_node *n = doc_find(root, fields[i].key);

        if (n)
            fields[i].load(l, s, n);
        else if (fields[i].required)
            BAD(l, root->at, "key '%s' is missing", fields[i].key);
    }
}

/* The suite's own mistakes first, then those of each include in the order opened; no file last. */
static size_t rank(const struct loader *l, const struct err *e)
{
    size_t i = 0;

    if (e->at.file == l->path)
        return 0;
    while (i < l->include_count && l->includes[i] != e->at.file)
        i++;
    return i + 1;
}

static bool comes_before(const struct loader *l, const struct err *a, const struct err *b)
{
    size_t ra = rank(l, a), rb = rank(l, b);

    if (ra != rb)
        return ra < rb;
    if (a->at.line != b->at.line)
        return a->at.line < b->at.line;
    return a->at.column < b->at.column;
}

/* By insertion: stable, and there are at most ERRS_MAX. */
static void sort_errors(const struct loader *l, size_t first)
{
    struct err *items = l->errs->items;

    for (size_t i = first + 1; i < l->errs->count; i++) {
        struct err moving = items[i];
        size_t to = i;

        for (; to > first && comes_before(l, &moving, &items[to - 1]); to--)
            items[to] = items[to - 1];
        items[to] = moving;
    }
}

enum err_code suite_load_text(const char *name, const char *text, size_t size, struct arena *arena,
                              struct suite *out, struct errs *errs)
{
    struct loader l = {.path = name, .arena = arena, .errs = errs};
    const struct doc_node *root;
    size_t before = errs->count;

    *out = (struct suite){.path = name, .name = "", .seed = 1};
    l.rc = doc_parse(name, text, size, arena, &root, errs);
    suite_fallbacks(&l);
    if (root)
        load_root(&l, out, root);
    sort_errors(&l, before);
    return l.rc;
}

enum err_code suite_load(const char *path, struct arena *arena, struct suite *out,
                         struct errs *errs)
{
    const char *text = "";
    size_t size = 0;
    enum err_code code;
    const char *problem = source_read(path, arena, &text, &size, &code);

    *out = (struct suite){.path = path, .name = "", .seed = 1};
    if (problem)
        return errs_add(errs, code, place_at(path, 0, 0), "the suite cannot be read: %s", problem);
    return suite_load_text(path, text, size, arena, out, errs);
}
