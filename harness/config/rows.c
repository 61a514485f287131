#include "harness/config/rows.h"

#include "harness/config/near.h"
#include "harness/config/source.h"

#include <stdio.h>
#include <string.h>

enum { NAMES = 256 };

/* "provider, where and reason" */
static const char *key_names(const struct rows_form *form, char buf[NAMES])
{
    size_t used = 0;

    for (int i = 0; i < form->key_count && used < NAMES; i++)
        used += (size_t)snprintf(buf + used, NAMES - used, "%s%s",
                                 i == 0                     ? ""
                                 : i + 1 == form->key_count ? " and "
                                                            : ", ",
                                 form->keys[i].name);
    return buf;
}

static void check_key(const struct doc_node *n, const struct rows_form *form, struct errs *errs)
{
    struct near near = near_to(n->key);
    char hint[128], names[NAMES];

    for (int i = 0; i < form->key_count; i++) {
        if (!strcmp(form->keys[i].name, n->key))
            return;
        near_offer(&near, form->keys[i].name);
    }
    (void)errs_add(errs, ERR_CONFIG, n->key_at, "unknown key '%s': a row has %s%s", n->key,
                   key_names(form, names), near_hint(&near, hint, sizeof hint));
}

static void check_row(const struct doc_node *row, const struct rows_form *form, struct errs *errs)
{
    char names[NAMES];

    if (row->kind != DOC_MAP) {
        if (row->kind != DOC_REFUSED)
            (void)errs_add(errs, ERR_CONFIG, row->at, "expected a map of %s",
                           key_names(form, names));
        return;
    }
    for (const struct doc_node *n = row->child; n; n = n->next)
        check_key(n, form, errs);
    for (int i = 0; i < form->key_count; i++) {
        const struct doc_node *n = doc_find(row, form->keys[i].name);

        if (n ? n->kind != DOC_REFUSED && (n->kind != DOC_TEXT || !n->text[0])
              : form->keys[i].required)
            (void)errs_add(errs, ERR_CONFIG, n ? n->at : row->at, "%s: expected a text",
                           form->keys[i].name);
    }
}

enum err_code rows_load(const char *path, const struct rows_form *form, struct arena *arena,
                        const struct doc_node **rows, size_t *count, struct errs *errs)
{
    const struct doc_node *root, *list;
    const char *text, *why;
    enum err_code code = ERR_IO;
    size_t size, before = errs->count;

    *rows = NULL;
    *count = 0;
    why = source_read(path, arena, &text, &size, &code);
    if (why)
        return errs_add(errs, code, place_at(path, 0, 0), "%s cannot be read: %s", form->what, why);
    TRY(doc_parse(path, text, size, arena, &root, errs));
    list = root && root->kind == DOC_MAP ? doc_find(root, form->list) : NULL;
    if (!list || list->kind != DOC_LIST || root->count != 1)
        return errs_add(errs, ERR_CONFIG, place_at(path, 1, 1),
                        "expected one key, '%s', with a list of rows", form->list);
    for (const struct doc_node *n = list->child; n; n = n->next)
        check_row(n, form, errs);
    *rows = list->child;
    *count = list->count;
    return errs->count > before ? ERR_CONFIG : ERR_NONE;
}

static const struct doc_node *find_text(const struct doc_node *row, const char *key)
{
    const struct doc_node *n = row->kind == DOC_MAP ? doc_find(row, key) : NULL;

    return n && n->kind == DOC_TEXT && n->text[0] ? n : NULL;
}

const char *rows_text(const struct doc_node *row, const char *key)
{
    const struct doc_node *n = find_text(row, key);

    return n ? n->text : NULL;
}

const struct expr *rows_expr(const struct doc_node *row, const char *key, struct arena *arena,
                             struct errs *errs)
{
    const struct doc_node *n = find_text(row, key);

    return n ? expr_parse(n->text, n->text_at, arena, errs) : NULL;
}

struct place rows_place(const struct doc_node *row, const char *key)
{
    const struct doc_node *n = find_text(row, key);

    return n ? n->text_at : row->at;
}
