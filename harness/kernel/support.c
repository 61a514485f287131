#include "harness/kernel/support.h"

#include "harness/config/source.h"
#include "harness/config/yaml_doc.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

static const char *text_of(const struct doc_node *row, const char *key, struct errs *errs)
{
    const struct doc_node *n = doc_find(row, key);

    if (n && n->kind == DOC_TEXT && n->text[0])
        return n->text;
    (void)errs_add(errs, ERR_CONFIG, n ? n->at : row->at, "%s: expected a text", key);
    return NULL;
}

static void refuse_unknown(const struct doc_node *row, struct errs *errs)
{
    for (const struct doc_node *n = row->child; n; n = n->next)
        if (strcmp(n->key, "provider") != 0 && strcmp(n->key, "where") != 0 &&
            strcmp(n->key, "reason") != 0)
            (void)errs_add(errs, ERR_CONFIG, n->key_at,
                           "unknown key '%s': a row has provider, where and reason", n->key);
}

static void load_row(const struct doc_node *row, struct arena *arena, struct support_row *out,
                     struct errs *errs)
{
    const struct doc_node *where;
    const char *text;

    if (row->kind != DOC_MAP) {
        (void)errs_add(errs, ERR_CONFIG, row->at, "expected a map of provider, where and reason");
        return;
    }
    refuse_unknown(row, errs);
    out->provider = text_of(row, "provider", errs);
    out->reason = text_of(row, "reason", errs);
    text = text_of(row, "where", errs);
    where = doc_find(row, "where");
    if (text)
        out->where = expr_parse(text, where->text_at, arena, errs);
}

static enum err_code load_rows(const char *path, const struct doc_node *root, struct arena *arena,
                               struct support *out, struct errs *errs)
{
    const struct doc_node *list = root && root->kind == DOC_MAP ? doc_find(root, "support") : NULL;
    struct support_row *rows;
    size_t before = errs->count;

    if (!list || list->kind != DOC_LIST || root->count != 1)
        return errs_add(errs, ERR_CONFIG, place_at(path, 1, 1),
                        "expected one key, 'support', with a list of rows");
    rows = ARENA_NEW(arena, list->count + 1, struct support_row);
    if (!rows)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the support table");
    for (const struct doc_node *n = list->child; n; n = n->next)
        load_row(n, arena, &rows[out->count++], errs);
    out->rows = rows;
    return errs->count > before ? ERR_CONFIG : ERR_NONE;
}

enum err_code support_load(const char *path, struct arena *arena, struct support *out,
                           struct errs *errs)
{
    const struct doc_node *root;
    const char *text, *why;
    enum err_code code = ERR_IO;
    size_t size;

    *out = (struct support){0};
    if (!path)
        return ERR_NONE;
    why = source_read(path, arena, &text, &size, &code);
    if (why)
        return errs_add(errs, code, place_at(path, 0, 0), "%s", why);
    TRY(doc_parse(path, text, size, arena, &root, errs));
    return load_rows(path, root, arena, out, errs);
}

static const char *expects(const struct support *s, const char *provider, const int64_t v[AX_COUNT])
{
    for (size_t i = 0; i < s->count; i++)
        if (fnmatch(s->rows[i].provider, provider, 0) == 0 && expr_eval(s->rows[i].where, v))
            return s->rows[i].reason;
    return NULL;
}

void support_apply(const struct support *s, const int64_t v[AX_COUNT], struct record *r)
{
    char reason[RECORD_TEXT];
    const char *listed;

    if (r->verdict != VERDICT_SKIP)
        return;
    listed = expects(s, r->provider, v);
    if (listed)
        return;
    r->verdict = VERDICT_FAIL;
    (void)snprintf(reason, sizeof reason, "a skip that the support table does not list: %.300s",
                   r->reason);
    (void)snprintf(r->reason, sizeof r->reason, "%s", reason);
}
