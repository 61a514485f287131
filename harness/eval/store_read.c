#include "harness/eval/store.h"

#include "harness/eval/store_db.h"

static const char *column_text(sqlite3_stmt *st, int at)
{
    return (const char *)sqlite3_column_text(st, at);
}

static int64_t column_count(sqlite3_stmt *st, int at)
{
    return sqlite3_column_type(st, at) == SQLITE_NULL ? -1 : sqlite3_column_int64(st, at);
}

static struct store_answer answer_of(sqlite3_stmt *st)
{
    const char *response = column_text(st, 4);

    return (struct store_answer){.question = (size_t)sqlite3_column_int64(st, 0),
                                 .prompt_sha256 = column_text(st, 1),
                                 .outcome = outcome_find(column_text(st, 2)),
                                 .truncated = sqlite3_column_int(st, 3) != 0,
                                 .response = {response, (size_t)sqlite3_column_bytes(st, 4)},
                                 .finish_reason = column_text(st, 5),
                                 .error = column_text(st, 6),
                                 .prompt_tokens = column_count(st, 7),
                                 .completion_tokens = column_count(st, 8),
                                 .latency_s = 1e-6 * (double)sqlite3_column_int64(st, 9),
                                 .total_s = 1e-6 * (double)sqlite3_column_int64(st, 10),
                                 .attempts = sqlite3_column_int(st, 11),
                                 .http_status = (long)sqlite3_column_int64(st, 12)};
}

/* Runs the statement and ends it. */
static enum err_code take_rows(struct store *s, sqlite3_stmt *st,
                               bool (*take)(void *ctx, const struct store_answer *a), void *ctx,
                               struct errs *errs)
{
    enum err_code rc = ERR_NONE;
    int step;

    while ((step = sqlite3_step(st)) == SQLITE_ROW) {
        struct store_answer a = answer_of(st);

        if (a.question >= s->questions || a.outcome == OUTCOME_COUNT || !a.prompt_sha256)
            rc = errs_add(errs, ERR_IO, NOWHERE, "'%s' is damaged: its row %zu makes no sense",
                          store_name(s), a.question);
        if (rc || !take(ctx, &a)) {
            step = SQLITE_DONE;
            break;
        }
    }
    if (step != SQLITE_DONE)
        rc = store_db_failed(&s->db, "read", errs);
    (void)sqlite3_finalize(st);
    return rc;
}

enum err_code store_each(struct store *s, bool (*take)(void *ctx, const struct store_answer *a),
                         void *ctx, struct errs *errs)
{
    sqlite3_stmt *st = store_db_prepare(&s->db, "SELECT * FROM answer ORDER BY question", errs);

    return st ? take_rows(s, st, take, ctx, errs) : ERR_IO;
}

enum err_code store_find(struct store *s, const char *prompt_sha256,
                         bool (*take)(void *ctx, const struct store_answer *a), void *ctx,
                         struct errs *errs)
{
    sqlite3_stmt *st = store_db_prepare(
        &s->db, "SELECT * FROM answer WHERE prompt_sha256 = ?1 ORDER BY question", errs);

    if (!st)
        return ERR_IO;
    store_db_bind_text(st, 1, prompt_sha256);
    return take_rows(s, st, take, ctx, errs);
}

static bool add_row(void *ctx, const struct store_answer *a)
{
    struct tally *t = ctx;

    t->count[a->outcome]++;
    t->attempts += (uint64_t)a->attempts;
    t->truncated += a->truncated;
    if (a->prompt_tokens > 0)
        t->prompt_tokens += (uint64_t)a->prompt_tokens;
    if (a->completion_tokens > 0)
        t->completion_tokens += (uint64_t)a->completion_tokens;
    if (a->outcome != OUTCOME_ERROR)
        t->latency_s += a->latency_s;
    return true;
}

/* Adds one row of "extractor, correct, valid"; names that are not known count nothing. */
static void add_extractor(struct tally *t, sqlite3_stmt *st)
{
    const char *name = column_text(st, 0);
    const struct extractor *e = name ? extractor_find(name) : NULL;

    if (e) {
        t->correct[e - extractors] = (size_t)sqlite3_column_int64(st, 1);
        t->valid[e - extractors] = (size_t)sqlite3_column_int64(st, 2);
    }
}

enum err_code store_tally(struct store *s, struct tally *out, struct errs *errs)
{
    sqlite3_stmt *st;
    enum err_code rc;
    int step;

    *out = (struct tally){.questions = s->questions};
    TRY(store_each(s, add_row, out, errs));
    st = store_db_prepare(
        &s->db, "SELECT extractor, sum(correct), sum(valid) FROM extraction GROUP BY 1", errs);
    if (!st)
        return ERR_IO;
    while ((step = sqlite3_step(st)) == SQLITE_ROW)
        add_extractor(out, st);
    rc = step == SQLITE_DONE ? ERR_NONE : store_db_failed(&s->db, "read", errs);
    (void)sqlite3_finalize(st);
    return rc;
}
