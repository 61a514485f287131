#include "harness/eval/store_db.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BUSY_MS = 10000, PATH_TEXT = 4096 };

/* Files that SQLite keeps beside FILE, and FILE. An older file with a newer journal would be
 * repaired into nonsense, so the journals go first. */
static const char *const suffixes[] = {"-wal", "-shm", "-journal", ""};
enum { SUFFIXES = sizeof suffixes / sizeof suffixes[0] };

/* A killed process loses nothing that SQLite gave to the system, so NORMAL is enough while the
 * machine runs: only a crash of the machine may take back the last answers, whole ones. */
static const char settings[] = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;";

enum err_code store_db_failed(const struct store_db *d, const char *verb, struct errs *errs)
{
    return errs_add(errs, ERR_IO, NOWHERE, "cannot %s '%s': %s", verb,
                    d->path ? d->path : "the store in memory",
                    d->db ? sqlite3_errmsg(d->db) : "no memory");
}

static bool join(const struct store_db *d, const char *suffix, char out[PATH_TEXT])
{
    int n = snprintf(out, PATH_TEXT, "%s%s", d->path, suffix);

    return n >= 0 && n < PATH_TEXT;
}

/* The lock belongs to the process and ends with it, however it ends. */
static enum err_code take_lock(struct store_db *d, struct errs *errs)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char path[PATH_TEXT];

    if (!join(d, ".lock", path))
        return errs_add(errs, ERR_IO, NOWHERE, "the path '%.200s...' is too long", d->path);
    d->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (d->lock < 0)
        return errs_add(errs, ERR_IO, NOWHERE, "cannot write '%s': %s", path, strerror(errno));
    if (!fcntl(d->lock, F_SETLK, &whole))
        return ERR_NONE;
    if (errno == EACCES || errno == EAGAIN)
        return errs_add(errs, ERR_IO, NOWHERE, "'%s' is in use by another run", d->path);
    return errs_add(errs, ERR_IO, NOWHERE, "cannot lock '%s': %s", path, strerror(errno));
}

static enum err_code delete_files(const struct store_db *d, struct errs *errs)
{
    char path[PATH_TEXT];

    for (int i = 0; i < SUFFIXES; i++)
        if (join(d, suffixes[i], path) && unlink(path) && errno != ENOENT)
            return errs_add(errs, ERR_IO, NOWHERE, "cannot delete '%s': %s", path, strerror(errno));
    return ERR_NONE;
}

static enum err_code open_file(struct store_db *d, int flags, struct errs *errs)
{
    if (sqlite3_open_v2(d->path ? d->path : ":memory:", &d->db, flags, NULL))
        return store_db_failed(d, "open", errs);
    (void)sqlite3_busy_timeout(d->db, BUSY_MS);
    return ERR_NONE;
}

enum err_code store_db_open(struct store_db *d, bool fresh, struct errs *errs)
{
    d->lock = -1;
    if (d->path) {
        TRY(take_lock(d, errs));
        if (fresh)
            TRY(delete_files(d, errs));
    }
    TRY(open_file(d, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, errs));
    if (sqlite3_exec(d->db, settings, NULL, NULL, NULL))
        return store_db_failed(d, "open", errs);
    return ERR_NONE;
}

enum err_code store_db_view(struct store_db *d, struct errs *errs)
{
    d->lock = -1;
    return open_file(d, SQLITE_OPEN_READONLY, errs);
}

void store_db_close(struct store_db *d)
{
    if (d->db && d->lock >= 0)
        (void)sqlite3_exec(d->db, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL);
    (void)sqlite3_close(d->db);
    if (d->lock >= 0)
        (void)close(d->lock);
    d->db = NULL;
    d->lock = -1;
}

enum err_code store_db_exec(const struct store_db *d, const char *sql, struct errs *errs)
{
    return sqlite3_exec(d->db, sql, NULL, NULL, NULL) ? store_db_failed(d, "write", errs)
                                                      : ERR_NONE;
}

sqlite3_stmt *store_db_prepare(const struct store_db *d, const char *sql, struct errs *errs)
{
    sqlite3_stmt *st = NULL;

    if (sqlite3_prepare_v2(d->db, sql, -1, &st, NULL))
        (void)store_db_failed(d, "read", errs);
    return st;
}

enum err_code store_db_number(const struct store_db *d, const char *sql, int64_t *out,
                              struct errs *errs)
{
    sqlite3_stmt *st = store_db_prepare(d, sql, errs);
    enum err_code rc = ERR_NONE;
    int step;

    if (!st)
        return ERR_IO;
    step = sqlite3_step(st);
    if (step == SQLITE_ROW)
        *out = sqlite3_column_int64(st, 0);
    else if (step == SQLITE_DONE)
        rc = errs_add(errs, ERR_IO, NOWHERE, "'%s' is damaged: it holds no run",
                      d->path ? d->path : "the store in memory");
    else
        rc = store_db_failed(d, "read", errs);
    (void)sqlite3_finalize(st);
    return rc;
}

enum err_code store_db_run(const struct store_db *d, sqlite3_stmt *st, struct errs *errs)
{
    int step = sqlite3_step(st);
    enum err_code rc = step == SQLITE_DONE ? ERR_NONE : store_db_failed(d, "write", errs);

    (void)sqlite3_reset(st);
    (void)sqlite3_clear_bindings(st);
    return rc;
}

void store_db_bind_text(sqlite3_stmt *st, int at, const char *text)
{
    (void)sqlite3_bind_text(st, at, text, -1, SQLITE_TRANSIENT);
}

void store_db_bind_span(sqlite3_stmt *st, int at, struct span text)
{
    if (text.at)
        (void)sqlite3_bind_text64(st, at, text.at, text.size, SQLITE_TRANSIENT, SQLITE_UTF8);
}

void store_db_bind_count(sqlite3_stmt *st, int at, int64_t n)
{
    if (n >= 0)
        (void)sqlite3_bind_int64(st, at, n);
}
