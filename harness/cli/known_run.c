#include "harness/cli/known_run.h"

enum { PASSING = KNOWN_NOTES - 3 }; /* that are named one by one */

enum err_code known_run_open(struct known_run *k, const struct plan *plan, const char *provider,
                             const char *device, struct arena *arena, struct errs *errs)
{
    if (!k->table.path)
        return ERR_NONE;
    k->rows = ARENA_NEW(arena, plan->count + 1, const struct known_row *);
    k->passing = ARENA_NEW(arena, PASSING, const char *);
    if (!k->rows || !k->passing)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the known faults");
    for (size_t i = 0; i < plan->count; i++)
        k->rows[i] = known_find(&k->table, provider, device, plan->cases[i].id, plan->cases[i].v);
    return ERR_NONE;
}

void known_run_mark(struct known_run *k, struct record *r, struct arena *arena)
{
    const struct known_row *row = k->rows ? k->rows[r->index] : NULL;

    if (!row)
        return;
    known_mark(row, r);
    k->fails += record_known_fails(r);
    if (!record_known_passes(r))
        return;
    if (k->passes < PASSING)
        k->passing[k->passes] = arena_printf(
            arena,
            "known fault passes now: %s (%s): look at the finding, or remove the row at %s:%d",
            r->id, row->finding, k->table.path, row->line);
    k->passes++;
}

/* "suites/known.yaml: rows without a case in this plan, by line: 4, 20"; NULL: all have one. */
static const char *idle_rows(const struct known_run *k, const struct plan *plan,
                             const char *provider, const char *device, struct arena *arena)
{
    bool *used = ARENA_NEW(arena, k->table.count + 1, bool);
    const char *line = NULL;

    for (size_t i = 0; used && i < plan->count; i++)
        if (k->rows[i])
            used[k->rows[i] - k->table.rows] = true;
    for (size_t i = 0; used && i < k->table.count; i++) {
        const struct known_row *row = &k->table.rows[i];

        if (used[i] || !known_is_about(row, provider, device))
            continue;
        line = line ? arena_printf(arena, "%s, %d", line, row->line)
                    : arena_printf(arena, "%s: rows without a case in this plan, by line: %d",
                                   k->table.path, row->line);
        if (!line)
            return NULL;
    }
    return line;
}

size_t known_run_notes(const struct known_run *k, const struct plan *plan, const char *provider,
                       const char *device, struct arena *arena, const char *notes[KNOWN_NOTES])
{
    size_t n = 0;

    if (!k->rows)
        return 0;
    if (k->fails)
        notes[n++] =
            arena_printf(arena, "known faults: %zu fail%s stand%s in %s", k->fails,
                         k->fails == 1 ? "" : "s", k->fails == 1 ? "s" : "", k->table.path);
    for (size_t i = 0; i < k->passes && i < PASSING; i++)
        notes[n++] = k->passing[i];
    if (k->passes > PASSING)
        notes[n++] =
            arena_printf(arena, "and %zu more known faults that pass now", k->passes - PASSING);
    notes[n] = idle_rows(k, plan, provider, device, arena);
    n += notes[n] != NULL;
    for (size_t i = 0; i < n; i++)
        if (!notes[i])
            notes[i] = "no memory to say more of the known faults";
    return n;
}
