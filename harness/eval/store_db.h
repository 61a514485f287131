/* store_db.h - SQLite for store.c and store_read.c: opening, statements, failures as sentences.
 */
#ifndef HARNESS_EVAL_STORE_DB_H
#define HARNESS_EVAL_STORE_DB_H

#include "harness/core/err.h"
#include "harness/eval/store.h"

#include <sqlite3.h>
#include <stdbool.h>

/* Starts as {.path = ...}. */
struct store_db {
    sqlite3 *db;
    const char *path; /* for sentences; borrowed. NULL: in memory */
    int lock;         /* descriptor of FILE.lock; -1: none */
};

/* Takes the lock and opens the file for writing, in WAL mode; `fresh` deletes it first. */
MUST_USE enum err_code store_db_open(struct store_db *d, bool fresh, struct errs *errs);

/* Opens a file that must be there, for reading. */
MUST_USE enum err_code store_db_view(struct store_db *d, struct errs *errs);

void store_db_close(struct store_db *d);

/* "cannot write 'x.sqlite': database or disk is full", ERR_IO. */
enum err_code store_db_failed(const struct store_db *d, const char *verb, struct errs *errs);

/* Statements without results, and one of a single number. */
MUST_USE enum err_code store_db_exec(const struct store_db *d, const char *sql, struct errs *errs);
MUST_USE enum err_code store_db_number(const struct store_db *d, const char *sql, int64_t *out,
                                       struct errs *errs);

/* NULL: `errs` has the sentence. */
sqlite3_stmt *store_db_prepare(const struct store_db *d, const char *sql, struct errs *errs);

/* A statement that returns no row: run it and make it ready for the next time. */
MUST_USE enum err_code store_db_run(const struct store_db *d, sqlite3_stmt *st, struct errs *errs);

/* Parameters count from 1. A NULL text, and a number below 0, is NULL. */
void store_db_bind_text(sqlite3_stmt *st, int at, const char *text);
void store_db_bind_span(sqlite3_stmt *st, int at, struct span text);
void store_db_bind_count(sqlite3_stmt *st, int at, int64_t n);

/* Statements that each answer runs. */
enum { PUT_BEGIN, PUT_ROW, PUT_CLEAR, PUT_EXTRACTION, PUT_COMMIT, PUTS };

struct store {
    struct store_db db;
    char *path; /* owned; NULL: in memory */
    bool writable;
    size_t questions;
    char *part; /* what store_part returned; owned */
    sqlite3_stmt *put[PUTS];
    int64_t session; /* whose drafts are being counted */
};

/* The path, or words for it. */
const char *store_name(const struct store *s);

/* A store that was opened by store_view: ERR_IO. */
MUST_USE enum err_code store_writable(const struct store *s, struct errs *errs);

#endif
