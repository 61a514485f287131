#include "harness/kernel/support.h"

#include "harness/config/rows.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

static const struct rows_key keys[] = {{"provider", true}, {"where", true}, {"reason", true}};
static const struct rows_form form = {"support", "the support table", keys,
                                      sizeof keys / sizeof keys[0]};

enum err_code support_load(const char *path, struct arena *arena, struct support *out,
                           struct errs *errs)
{
    const struct doc_node *node;
    struct support_row *rows;
    size_t before = errs->count, count;
    enum err_code rc;

    *out = (struct support){0};
    if (!path)
        return ERR_NONE;
    rc = rows_load(path, &form, arena, &node, &count, errs);
    rows = ARENA_NEW(arena, count + 1, struct support_row);
    if (!rows)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the support table");
    *out = (struct support){rows, count};
    for (; node; node = node->next)
        *rows++ = (struct support_row){.provider = rows_text(node, "provider"),
                                       .reason = rows_text(node, "reason"),
                                       .where = rows_expr(node, "where", arena, errs)};
    return rc ? rc : errs->count > before ? ERR_CONFIG : ERR_NONE;
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
