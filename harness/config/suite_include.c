#include "harness/config/source.h"
#include "harness/config/suite_load.h"

#include <string.h>

/* Files stand beside or below the suite: no absolute path and no "..", so that a suite can be
 * moved and reads nothing else. */
static const char *path_problem(const char *path)
{
    if (!*path)
        return "the name of a file is missing";
    if (*path == '/')
        return "an include is relative to the suite's folder, not absolute";
    for (const char *p = path; p; p = strchr(p, '/')) {
        p += *p == '/';
        if (!strncmp(p, "..", 2) && (p[2] == '/' || !p[2]))
            return "an include may not leave the suite's folder ('..')";
    }
    return NULL;
}

static bool is_list_name(const char *s)
{
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_");

    return n && n <= SUITE_NAME && !s[n];
}

static void add_list(struct loader *l, const struct doc_node *n)
{
    struct named_list *list;

    for (const struct named_list *old = l->lists; old; old = old->next)
        if (!strcmp(old->name, n->key)) {
            BAD(l, n->key_at, "the list '%s' is also in %s, line %d", n->key,
                old->node->key_at.file, old->node->key_at.line);
            return;
        }
    list = ARENA_NEW(l->arena, 1, struct named_list);
    if (!list) {
        suite_no_memory(l);
        return;
    }
    *list = (struct named_list){.name = n->key, .node = n, .next = l->lists};
    l->lists = list;
}

static void read_lists(struct loader *l, const struct doc_node *root)
{
    if (root->kind != DOC_MAP) {
        BAD(l, root->at,
            "an included file is a map from names to lists, such as 'small_n: [64, 128]'");
        return;
    }
    for (const struct doc_node *n = root->child; n; n = n->next) {
        char shown[160];

        if (!is_list_name(n->key))
            BAD(l, n->key_at,
                "'%.80s': the name of a list has 1 to %d characters of a-z, 0-9 and _", n->key,
                SUITE_NAME);
        else if (n->kind == DOC_LIST)
            add_list(l, n);
        else if (n->kind != DOC_REFUSED)
            BAD(l, n->at, "%s: expected a list of values, found %s", n->key,
                doc_show(n, shown, sizeof shown));
    }
}

/* The include as a path from where the program runs, in the arena. */
static const char *full_path(struct loader *l, const char *name)
{
    const char *slash = strrchr(l->path, '/');
    int folder = slash ? (int)(slash - l->path) + 1 : 0;
    const char *path = arena_printf(l->arena, "%.*s%s", folder, l->path, name);

    if (!path)
        suite_no_memory(l);
    return path;
}

static bool is_new(struct loader *l, const struct doc_node *n, const char *path)
{
    for (size_t i = 0; i < l->include_count; i++)
        if (!strcmp(l->includes[i], path)) {
            BAD(l, n->at, "include: '%.80s' is listed twice", n->text);
            return false;
        }
    return true;
}

static void include_file(struct loader *l, const struct doc_node *n)
{
    const char *path = full_path(l, n->text), *text = "", *problem;
    const struct doc_node *root;
    enum err_code code;
    size_t size = 0;

    if (!path || !is_new(l, n, path))
        return;
    problem = source_read(path, l->arena, &text, &size, &code);
    if (problem) {
        suite_failed(
            l, errs_add(l->errs, code, n->at, "include: cannot read '%.120s': %s", path, problem));
        return;
    }
    l->includes[l->include_count++] = path;
    suite_failed(l, doc_parse(path, text, size, l->arena, &root, l->errs));
    if (root)
        read_lists(l, root);
}

static void include_all(struct loader *l, const struct doc_node *n)
{
    if (n->kind == DOC_REFUSED)
        return;
    if (n->kind != DOC_LIST || n->count > SUITE_INCLUDES) {
        BAD(l, n->at, "include: expected a list of at most %d files, such as [shapes/small.yaml]",
            SUITE_INCLUDES);
        return;
    }
    for (const struct doc_node *item = n->child; item; item = item->next) {
        const char *problem = item->kind == DOC_TEXT ? path_problem(item->text) : NULL;

        if (item->kind == DOC_REFUSED)
            continue;
        if (item->kind != DOC_TEXT)
            BAD(l, item->at, "include: expected the name of a file, found %s",
                item->kind == DOC_LIST ? "a list" : "a map");
        else if (problem)
            BAD(l, item->at, "include: %s", problem);
        else
            include_file(l, item);
    }
}

void suite_includes(struct loader *l, const struct doc_node *n)
{
    size_t before = l->errs->count + l->errs->dropped;

    include_all(l, n);
    l->lists_incomplete = l->errs->count + l->errs->dropped > before || n->kind == DOC_REFUSED;
}
