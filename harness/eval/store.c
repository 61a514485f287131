#include "harness/eval/store.h"

#include "harness/eval/store_db.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
const struct store_part_info store_parts[STORE_PARTS] = {
    [STORE_CONFIG]      = {"config_sha256",  "configuration (SHA-256)",false},
    [STORE_PROTOCOL]    = {"protocol",       "protocol",               false},
    [STORE_PROMPTS]     = {"prompts_sha256", "prompts (SHA-256)",      false},
    [STORE_DATA]        = {"data",           "data set",               false},
    [STORE_SAMPLING]    = {"sampling",       "sampling",               false},
    [STORE_CONCURRENCY] = {"concurrency",    "concurrency",            false},
    [STORE_GPU]         = {"gpu",            "GPU",                    false},
    [STORE_TOOL]        = {"tool",           "humcheck version",       false},
    [STORE_MODEL]       = {"model",          "served model",           true},
    [STORE_SERVER]      = {"server",         "server",                 true},
};
/* clang-format on */

enum { LONG_TEXT = 40, BEFORE_DIFFERENCE = 16 };

static const char schema[] =
    "CREATE TABLE run("
    " id INTEGER PRIMARY KEY CHECK (id = 1),"
    " name TEXT NOT NULL, config TEXT NOT NULL, gating TEXT NOT NULL,"
    " questions INTEGER NOT NULL CHECK (questions > 0),"
    " started INTEGER NOT NULL," /* seconds since 1970 */
    " config_sha256 TEXT NOT NULL, protocol TEXT NOT NULL, prompts_sha256 TEXT NOT NULL,"
    " data TEXT NOT NULL, sampling TEXT NOT NULL, concurrency TEXT NOT NULL,"
    " gpu TEXT NOT NULL, tool TEXT NOT NULL, model TEXT, server TEXT) STRICT;"
    "CREATE TABLE answer("
    " question INTEGER PRIMARY KEY CHECK (question >= 0),"
    " prompt_sha256 TEXT NOT NULL,"
    " outcome TEXT NOT NULL CHECK (outcome IN ('correct', 'wrong', 'unparsable', 'error')),"
    " truncated INTEGER NOT NULL CHECK (truncated IN (0, 1)),"
    " response TEXT, finish_reason TEXT NOT NULL, error TEXT NOT NULL,"
    " prompt_tokens INTEGER, completion_tokens INTEGER,"
    " latency_us INTEGER NOT NULL, total_us INTEGER NOT NULL,"
    " attempts INTEGER NOT NULL, http_status INTEGER NOT NULL,"
    " CHECK ((outcome = 'error') = (response IS NULL))) STRICT;"
    "CREATE INDEX answer_prompt ON answer(prompt_sha256);"
    "CREATE TABLE extraction("
    " question INTEGER NOT NULL REFERENCES answer(question),"
    " extractor TEXT NOT NULL, text TEXT NOT NULL,"
    " valid INTEGER NOT NULL CHECK (valid IN (0, 1)),"
    " correct INTEGER NOT NULL CHECK (correct IN (0, 1)),"
    " PRIMARY KEY (question, extractor)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE session("
    " id INTEGER PRIMARY KEY,"
    " answers INTEGER NOT NULL," /* there were so many when it began; -1: another run's */
    " server TEXT, drafts_before INTEGER, accepted_before INTEGER,"
    " drafts INTEGER, accepted INTEGER," /* NULL until it has ended */
    " CHECK ((drafts IS NULL) = (accepted IS NULL))) STRICT;";

/* A row with an answer is final: then nothing is changed, which sqlite3_changes() tells. */
static const char *const put_sql[PUTS] = {
    [PUT_BEGIN] = "BEGIN IMMEDIATE",
    [PUT_ROW] = "INSERT INTO answer VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13)"
                " ON CONFLICT(question) DO UPDATE SET prompt_sha256 = excluded.prompt_sha256,"
                " outcome = excluded.outcome, truncated = excluded.truncated,"
                " response = excluded.response, finish_reason = excluded.finish_reason,"
                " error = excluded.error, prompt_tokens = excluded.prompt_tokens,"
                " completion_tokens = excluded.completion_tokens,"
                " latency_us = excluded.latency_us, total_us = excluded.total_us,"
                " attempts = answer.attempts + excluded.attempts,"
                " http_status = excluded.http_status WHERE answer.outcome = 'error'",
    [PUT_CLEAR] = "DELETE FROM extraction WHERE question = ?1",
    [PUT_EXTRACTION] = "INSERT INTO extraction VALUES(?1,?2,?3,?4,?5)",
    [PUT_COMMIT] = "COMMIT",
};

const char *store_name(const struct store *s)
{
    return s->path ? s->path : "the store";
}

/* The store's own columns, then the parts, both in the order of the schema. */
static enum err_code insert_run(struct store *s, const struct store_run *run, struct errs *errs)
{
    sqlite3_stmt *st = store_db_prepare(
        &s->db,
        "INSERT INTO run(id, name, config, gating, questions, started, config_sha256, protocol,"
        " prompts_sha256, data, sampling, concurrency, gpu, tool, model, server)"
        " VALUES(1,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        errs);
    enum err_code rc;

    if (!st)
        return ERR_IO;
    store_db_bind_text(st, 1, run->name);
    store_db_bind_text(st, 2, run->config);
    store_db_bind_text(st, 3, run->gating);
    store_db_bind_count(st, 4, (int64_t)run->questions);
    store_db_bind_count(st, 5, (int64_t)run->started);
    for (int i = 0; i < STORE_PARTS; i++)
        store_db_bind_text(st, 6 + i, run->part[i]);
    rc = store_db_run(&s->db, st, errs);
    (void)sqlite3_finalize(st);
    return rc;
}

/* Tables, version and the run's row appear in one transaction: a store without its run does not
 * exist. */
static enum err_code create(struct store *s, const struct store_run *run, struct errs *errs)
{
    char version[48];
    enum err_code rc;

    (void)snprintf(version, sizeof version, "PRAGMA user_version = %d", STORE_SCHEMA);
    TRY(store_db_exec(&s->db, "BEGIN IMMEDIATE", errs));
    rc = store_db_exec(&s->db, schema, errs);
    if (!rc)
        rc = store_db_exec(&s->db, version, errs);
    if (!rc)
        rc = insert_run(s, run, errs);
    if (!rc)
        return store_db_exec(&s->db, "COMMIT", errs);
    (void)sqlite3_exec(s->db.db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}

const char *store_part(struct store *s, enum store_part part)
{
    char sql[96];
    sqlite3_stmt *st = NULL;
    const char *text;

    free(s->part);
    s->part = NULL;
    (void)snprintf(sql, sizeof sql, "SELECT %s FROM run", store_parts[part].column);
    if (!sqlite3_prepare_v2(s->db.db, sql, -1, &st, NULL) && sqlite3_step(st) == SQLITE_ROW) {
        text = (const char *)sqlite3_column_text(st, 0);
        s->part = text ? strdup(text) : NULL;
    }
    (void)sqlite3_finalize(st);
    return s->part;
}

/* Of two long texts that begin alike, only what follows is worth a sentence. */
static size_t shown_from(const char *a, const char *b)
{
    size_t n = 0;

    while (a[n] && a[n] == b[n])
        n++;
    return n > LONG_TEXT ? n - BEFORE_DIFFERENCE : 0;
}

static enum err_code differs(struct store *s, enum store_part part, const char *value,
                             struct errs *errs)
{
    const char *stored = store_part(s, part), *cut;
    size_t from;

    stored = stored ? stored : "";
    if (!strcmp(stored, value))
        return ERR_NONE;
    from = shown_from(stored, value);
    cut = from ? "..." : "";
    return errs_add(errs, ERR_USAGE, NOWHERE,
                    "'%s' holds another run, with other %s: there '%s%.64s', now '%s%.64s'; "
                    "--fresh starts anew",
                    store_name(s), store_parts[part].what, cut, stored + from, cut, value + from);
}

static enum err_code compare(struct store *s, const struct store_run *run, struct errs *errs)
{
    enum err_code first = ERR_NONE;

    for (int i = 0; i < STORE_PARTS; i++) {
        enum err_code rc =
            run->part[i] ? differs(s, (enum store_part)i, run->part[i], errs) : ERR_NONE;

        first = first ? first : rc;
    }
    if (!first && s->questions != run->questions)
        first = errs_add(errs, ERR_USAGE, NOWHERE,
                         "'%s' holds another run: of %zu questions, now %zu; --fresh starts anew",
                         store_name(s), s->questions, run->questions);
    return first;
}

/* Is it a store of this version? Sets s->questions. */
static enum err_code check_schema(struct store *s, int64_t version, struct errs *errs)
{
    int64_t questions = 0;

    if (version != STORE_SCHEMA)
        return errs_add(errs, ERR_IO, NOWHERE,
                        "'%s' is no store of this version of humcheck (its schema is %" PRId64
                        ", not %d)",
                        s->path, version, STORE_SCHEMA);
    TRY(store_db_number(&s->db, "SELECT questions FROM run", &questions, errs));
    s->questions = (size_t)questions;
    return ERR_NONE;
}

static enum err_code prepare_puts(struct store *s, struct errs *errs)
{
    for (int i = 0; i < PUTS; i++) {
        s->put[i] = store_db_prepare(&s->db, put_sql[i], errs);
        if (!s->put[i])
            return ERR_IO;
    }
    return ERR_NONE;
}

/* A new file gets its tables; what is there must be this run. */
static enum err_code enter(struct store *s, const struct store_run *run, struct errs *errs)
{
    int64_t version = 0, tables = 0;

    TRY(store_db_number(&s->db, "PRAGMA user_version", &version, errs));
    TRY(store_db_number(&s->db, "SELECT count(*) FROM sqlite_schema", &tables, errs));
    if (!version && !tables)
        return create(s, run, errs);
    TRY(check_schema(s, version, errs));
    return compare(s, run, errs);
}

static enum err_code open_run(struct store *s, const struct store_run *run, bool fresh,
                              struct errs *errs)
{
    s->questions = run->questions;
    TRY(store_db_open(&s->db, fresh, errs));
    TRY(enter(s, run, errs));
    return prepare_puts(s, errs);
}

static struct store *make(const char *path)
{
    struct store *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->db.lock = -1;
    s->path = path ? strdup(path) : NULL;
    s->db.path = s->path;
    if (!path || s->path)
        return s;
    free(s);
    return NULL;
}

enum err_code store_open(const char *path, const struct store_run *run, bool fresh,
                         struct store **out, struct errs *errs)
{
    struct store *s = make(path);
    enum err_code rc;

    *out = NULL;
    if (!s)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for a store");
    s->writable = true;
    rc = open_run(s, run, fresh, errs);
    if (rc)
        store_close(s);
    else
        *out = s;
    return rc;
}

static enum err_code view(struct store *s, struct errs *errs)
{
    int64_t version = 0;

    TRY(store_db_view(&s->db, errs));
    TRY(store_db_number(&s->db, "PRAGMA user_version", &version, errs));
    return check_schema(s, version, errs);
}

enum err_code store_view(const char *path, struct store **out, struct errs *errs)
{
    struct store *s = make(path);
    enum err_code rc;

    *out = NULL;
    if (!s)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for a store");
    rc = view(s, errs);
    if (rc)
        store_close(s);
    else
        *out = s;
    return rc;
}

void store_close(struct store *s)
{
    if (!s)
        return;
    for (int i = 0; i < PUTS; i++)
        (void)sqlite3_finalize(s->put[i]);
    store_db_close(&s->db);
    free(s->path);
    free(s->part);
    free(s);
}

size_t store_questions(const struct store *s)
{
    return s->questions;
}

enum err_code store_writable(const struct store *s, struct errs *errs)
{
    return s->writable ? ERR_NONE
                       : errs_add(errs, ERR_IO, NOWHERE, "'%s' is open for reading only", s->path);
}

enum err_code store_settle(struct store *s, enum store_part part, const char *value,
                           struct errs *errs)
{
    char sql[96];
    sqlite3_stmt *st;
    enum err_code rc;

    TRY(store_writable(s, errs));
    if (store_part(s, part))
        return differs(s, part, value, errs);
    (void)snprintf(sql, sizeof sql, "UPDATE run SET %s = ?1", store_parts[part].column);
    st = store_db_prepare(&s->db, sql, errs);
    if (!st)
        return ERR_IO;
    store_db_bind_text(st, 1, value);
    rc = store_db_run(&s->db, st, errs);
    (void)sqlite3_finalize(st);
    return rc;
}

static int64_t microseconds(double seconds)
{
    return seconds > 0 && seconds < 1e12 ? (int64_t)(seconds * 1e6) : 0;
}

static void bind_answer(sqlite3_stmt *st, const struct store_answer *a)
{
    store_db_bind_count(st, 1, (int64_t)a->question);
    store_db_bind_text(st, 2, a->prompt_sha256);
    store_db_bind_text(st, 3, outcome_name(a->outcome));
    store_db_bind_count(st, 4, a->truncated);
    store_db_bind_span(st, 5, a->response);
    store_db_bind_text(st, 6, a->finish_reason);
    store_db_bind_text(st, 7, a->error);
    store_db_bind_count(st, 8, a->prompt_tokens);
    store_db_bind_count(st, 9, a->completion_tokens);
    store_db_bind_count(st, 10, microseconds(a->latency_s));
    store_db_bind_count(st, 11, microseconds(a->total_s));
    store_db_bind_count(st, 12, a->attempts);
    store_db_bind_count(st, 13, a->http_status);
}

static enum err_code put_extractions(struct store *s, const struct store_answer *a,
                                     struct errs *errs)
{
    sqlite3_stmt *st = s->put[PUT_EXTRACTION];

    store_db_bind_count(s->put[PUT_CLEAR], 1, (int64_t)a->question);
    TRY(store_db_run(&s->db, s->put[PUT_CLEAR], errs));
    for (int e = 0; a->extracted && e < EXTRACTOR_COUNT; e++) {
        store_db_bind_count(st, 1, (int64_t)a->question);
        store_db_bind_text(st, 2, extractors[e].name);
        store_db_bind_text(st, 3, a->extracted[e].text);
        store_db_bind_count(st, 4, a->extracted[e].valid);
        store_db_bind_count(st, 5, a->extracted[e].correct);
        TRY(store_db_run(&s->db, st, errs));
    }
    return ERR_NONE;
}

static enum err_code put_row(struct store *s, const struct store_answer *a, struct errs *errs)
{
    bind_answer(s->put[PUT_ROW], a);
    TRY(store_db_run(&s->db, s->put[PUT_ROW], errs));
    if (sqlite3_changes(s->db.db) != 1)
        return errs_add(errs, ERR_IO, NOWHERE, "question %zu has an answer already in '%s'",
                        a->question, store_name(s));
    TRY(put_extractions(s, a, errs));
    return store_db_run(&s->db, s->put[PUT_COMMIT], errs);
}

enum err_code store_put(struct store *s, const struct store_answer *a, struct errs *errs)
{
    enum err_code rc;

    TRY(store_writable(s, errs));
    if (a->question >= s->questions)
        return errs_add(errs, ERR_IO, NOWHERE, "question %zu is not one of the run's %zu",
                        a->question, s->questions);
    TRY(store_db_run(&s->db, s->put[PUT_BEGIN], errs));
    rc = put_row(s, a, errs);
    if (rc)
        (void)sqlite3_exec(s->db.db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}
