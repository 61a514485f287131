#include "harness/kernel/touches.h"

#include "harness/config/rows.h"

#include <fnmatch.h>
#include <string.h>

static const struct rows_key keys[] = {{"file", true}, {"where", true}, {"reason", true}};
static const struct rows_form form = {"touches", "the table of what source files touch", keys,
                                      sizeof keys / sizeof keys[0]};

static struct touches_row row_of(const struct doc_node *node, struct arena *arena,
                                 struct errs *errs)
{
    struct touches_row row = {.file = rows_text(node, "file"), .reason = rows_text(node, "reason")};
    const char *where = rows_text(node, "where");

    row.all = where && !strcmp(where, "all");
    if (where && !row.all && strcmp(where, "none") != 0)
        row.where = rows_expr(node, "where", arena, errs);
    return row;
}

enum err_code touches_load(const char *path, struct arena *arena, struct touches *out,
                           struct errs *errs)
{
    size_t before = errs->count, count;
    const struct doc_node *node;
    struct touches_row *rows;
    enum err_code rc = rows_load(path, &form, arena, &node, &count, errs);

    *out = (struct touches){0};
    rows = ARENA_NEW(arena, count + 1, struct touches_row);
    if (!rows)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for %s", form.what);
    for (size_t i = 0; node; node = node->next)
        rows[i++] = row_of(node, arena, errs);
    out->rows = rows;
    out->count = count;
    return rc ? rc : errs->count > before ? ERR_CONFIG : ERR_NONE;
}

static bool names(const char *glob, const char *file)
{
    for (; file; file = strchr(file, '/')) {
        file += *file == '/';
        if (fnmatch(glob, file, 0) == 0)
            return true;
    }
    return false;
}

static bool is_among(const struct touches_row *row, const struct touches_row *const *rows,
                     size_t count)
{
    size_t i = 0;

    while (i < count && rows[i] != row)
        i++;
    return i < count;
}

static const struct touches_row *row_naming(const struct touches *t, const char *file)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->rows[i].file && names(t->rows[i].file, file))
            return &t->rows[i];
    return NULL;
}

enum err_code touches_pick(const struct touches *t, const char *const *files, size_t count,
                           struct arena *arena, struct touched *out, struct errs *errs)
{
    const struct touches_row **rows = ARENA_NEW(arena, count + 1, const struct touches_row *);
    const char **unnamed = ARENA_NEW(arena, count + 1, const char *);

    *out = (struct touched){.rows = rows, .unnamed = unnamed};
    if (!rows || !unnamed)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for %zu changed files", count);
    for (size_t j = 0; j < count; j++) {
        const struct touches_row *row = row_naming(t, files[j]);

        if (row && !is_among(row, rows, out->count))
            rows[out->count++] = row;
        if (!row)
            unnamed[out->unnamed_count++] = files[j];
    }
    out->all = out->unnamed_count > 0;
    return ERR_NONE;
}

bool touches_case(const struct touched *t, const int64_t v[AX_COUNT])
{
    if (t->all)
        return true;
    for (size_t i = 0; i < t->count; i++)
        if (t->rows[i]->all || (t->rows[i]->where && expr_eval(t->rows[i]->where, v)))
            return true;
    return false;
}
