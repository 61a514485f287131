/* Speculative decoding: what servers counted in the sessions of a run. */
#include "harness/eval/store_db.h"

#include <inttypes.h>
#include <stdio.h>

/* Nothing was answered in it, so nothing was lost with its end. */
static const char forget_empty[] =
    "DELETE FROM session WHERE drafts IS NULL AND"
    " answers = (SELECT count(*) FROM answer WHERE outcome <> 'error')";

/* NULL is equal to nothing. */
static const char find_open[] =
    "SELECT id FROM session WHERE drafts IS NULL AND drafts_before IS NOT NULL AND server = ?1";

static const char add_open[] =
    "INSERT INTO session(answers, server, drafts_before, accepted_before)"
    " VALUES((SELECT count(*) FROM answer WHERE outcome <> 'error'), ?1, ?2, ?3)";

/* Counters that are lower than before belong to another server. */
static const char end_one[] =
    "UPDATE session SET drafts = ?2 - drafts_before, accepted = ?3 - accepted_before"
    " WHERE id = ?1 AND ?2 >= drafts_before AND ?3 >= accepted_before";

/* Runs a statement whose parameters 2 and 3 are drafts, and ends it. */
static enum err_code run_with(struct store *s, sqlite3_stmt *st, const struct store_drafts *d,
                              struct errs *errs)
{
    enum err_code rc;

    if (d) {
        store_db_bind_count(st, 2, (int64_t)d->drafts);
        store_db_bind_count(st, 3, (int64_t)d->accepted);
    }
    rc = store_db_run(&s->db, st, errs);
    (void)sqlite3_finalize(st);
    return rc;
}

/* The session of this server that was cut off; -1: none, -2: it cannot be read. */
static int64_t cut_off(struct store *s, const char *server, struct errs *errs)
{
    sqlite3_stmt *st = store_db_prepare(&s->db, find_open, errs);
    int64_t id = -1;
    int step;

    if (!st)
        return -2;
    store_db_bind_text(st, 1, server);
    step = sqlite3_step(st);
    if (step == SQLITE_ROW)
        id = sqlite3_column_int64(st, 0);
    else if (step != SQLITE_DONE && store_db_failed(&s->db, "read", errs))
        id = -2;
    (void)sqlite3_finalize(st);
    return id;
}

enum err_code store_begin_drafts(struct store *s, const struct store_drafts *now,
                                 const char *server, struct errs *errs)
{
    sqlite3_stmt *st;

    TRY(store_writable(s, errs));
    TRY(store_db_exec(&s->db, forget_empty, errs));
    s->session = now && server ? cut_off(s, server, errs) : -1;
    if (s->session >= 0)
        return ERR_NONE;
    if (s->session < -1)
        return ERR_IO;
    st = store_db_prepare(&s->db, add_open, errs);
    if (!st)
        return ERR_IO;
    store_db_bind_text(st, 1, server);
    TRY(run_with(s, st, now, errs));
    s->session = sqlite3_last_insert_rowid(s->db.db);
    return ERR_NONE;
}

enum err_code store_end_drafts(struct store *s, const struct store_drafts *now, struct errs *errs)
{
    sqlite3_stmt *st;

    TRY(store_writable(s, errs));
    st = store_db_prepare(&s->db, end_one, errs);
    if (!st)
        return ERR_IO;
    store_db_bind_count(st, 1, s->session);
    return run_with(s, st, now, errs);
}

enum err_code store_add_drafts(struct store *s, struct store_drafts d, struct errs *errs)
{
    char sql[160];

    TRY(store_writable(s, errs));
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO session(answers, drafts, accepted) VALUES(-1, %" PRIu64 ", %" PRIu64
                   ")",
                   d.drafts, d.accepted);
    TRY(store_db_exec(&s->db, sql, errs));
    for (size_t i = 0; i < d.lost; i++)
        TRY(store_db_exec(&s->db, "INSERT INTO session(answers) VALUES(-1)", errs));
    return ERR_NONE;
}

enum err_code store_get_drafts(struct store *s, struct store_drafts *out, struct errs *errs)
{
    int64_t drafts = 0, accepted = 0, lost = 0;

    TRY(store_db_number(&s->db, "SELECT coalesce(sum(drafts), 0) FROM session", &drafts, errs));
    TRY(store_db_number(&s->db, "SELECT coalesce(sum(accepted), 0) FROM session", &accepted, errs));
    TRY(store_db_number(&s->db, "SELECT count(*) - count(drafts) FROM session", &lost, errs));
    *out = (struct store_drafts){(uint64_t)drafts, (uint64_t)accepted, (size_t)lost};
    return ERR_NONE;
}
