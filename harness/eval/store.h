/* store.h - the answers of one run on disk, each one as soon as it is there.
 *
 * A store is one SQLite file: table `run` (one row: what was asked, of whom, how), table `answer`
 * (one row a question), table `extraction` (what each extractor read in it) and table `session`
 * (what a server counted of speculative decoding, where that is asked for). It is in WAL mode
 * while it is open, and each answer is one transaction: a process killed at any moment leaves
 * every answer that store_put had returned for, whole, and nothing else. A closed store is a single
 * file again.
 *
 * The columns of `run` named in store_parts[] are the fingerprint. Answers are only ever added
 * under the same fingerprint; another one is refused, naming each part that differs with both
 * values.
 *
 * A question has at most one row. A row with an answer is final; one with an error may be
 * replaced. While a store is open for writing, FILE.lock (a lock of fcntl(2), which ends with the
 * process) keeps a second run out; readers are welcome.
 */
#ifndef HARNESS_EVAL_STORE_H
#define HARNESS_EVAL_STORE_H

#include "harness/core/err.h"
#include "harness/eval/score.h"
#include "harness/eval/sha256.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Version of the tables (PRAGMA user_version); another one is refused. */
enum { STORE_SCHEMA = 2 };

enum store_part {
    STORE_CONFIG,      /* SHA-256 of the configuration file */
    STORE_PROTOCOL,    /* "vllm /v1/completions" */
    STORE_PROMPTS,     /* SHA-256 of all prompts, joined by NUL */
    STORE_DATA,        /* SHA-256 of the file of questions, or how they were made */
    STORE_SAMPLING,    /* the fields of a request but for the prompt */
    STORE_CONCURRENCY, /* batch sizes change greedy output */
    STORE_GPU,         /* "" if unknown */
    STORE_TOOL,        /* version of humcheck, and so of the extractors */
    STORE_MODEL,       /* what the server calls its model */
    STORE_SERVER,      /* name and version of the server */
    STORE_PARTS
};

struct store_part_info {
    const char *column, *what; /* "prompts_sha256", "prompts (SHA-256)" */
    bool later;                /* known only once a server answers: store_settle */
};
extern const struct store_part_info store_parts[STORE_PARTS];

/* What a run is. Texts are borrowed for the call. */
struct store_run {
    const char *name;              /* of the configuration */
    const char *config;            /* its text, kept for the record */
    const char *gating;            /* name of the extractor that decides outcomes */
    const char *part[STORE_PARTS]; /* those that come later: NULL */
    size_t questions;
    uint64_t started; /* seconds since 1970 */
};

/* One row. Texts are borrowed. */
struct store_answer {
    size_t question; /* from 0, below the run's questions */
    const char *prompt_sha256;
    enum outcome outcome;
    bool truncated;
    struct span response;                     /* at NULL: none (an error) */
    const char *finish_reason;                /* "" if not told */
    const char *error;                        /* "" but for an error */
    int64_t prompt_tokens, completion_tokens; /* -1: not told */
    double latency_s, total_s;                /* of the last attempt; with all before it */
    int attempts;
    long http_status;
    const struct answer *extracted; /* EXTRACTOR_COUNT of them; NULL: none (an error). Not read
                                       back. */
};

struct store;

/* Open or create the store at `path` (NULL: in memory, for this process alone) for the run.
 *
 * A store of another fingerprint is refused: ERR_USAGE, one sentence a part. `fresh`: what is there
 * is deleted first. ERR_IO: no such folder, no SQLite file, another schema, a full disk, in use by
 * another run. *out is NULL then. */
MUST_USE enum err_code store_open(const char *path, const struct store_run *run, bool fresh,
                                  struct store **out, struct errs *errs);

/* Open an existing store for reading; store_put and store_settle are refused. */
MUST_USE enum err_code store_view(const char *path, struct store **out, struct errs *errs);

/* NULL is fine. Errors of closing lose nothing: each answer is there already. */
void store_close(struct store *s);

/* A part that came later: kept if the store has none, else compared (ERR_USAGE). */
MUST_USE enum err_code store_settle(struct store *s, enum store_part part, const char *value,
                                    struct errs *errs);

/* A value of the fingerprint; NULL: not known yet. Valid until the next call. */
const char *store_part(struct store *s, enum store_part part);

size_t store_questions(const struct store *s);

/* Adds the row, or replaces a row with an error, in one transaction. A question that has an answer
 * already is ERR_IO, and nothing changes: an answer never counts twice. */
MUST_USE enum err_code store_put(struct store *s, const struct store_answer *a, struct errs *errs);

/* Calls take(ctx, row) for each row in order of questions, until it returns false. */
MUST_USE enum err_code store_each(struct store *s,
                                  bool (*take)(void *ctx, const struct store_answer *a), void *ctx,
                                  struct errs *errs);

/* The same for the rows of one prompt. */
MUST_USE enum err_code store_find(struct store *s, const char *prompt_sha256,
                                  bool (*take)(void *ctx, const struct store_answer *a), void *ctx,
                                  struct errs *errs);

/* What the rows add up to. */
MUST_USE enum err_code store_tally(struct store *s, struct tally *out, struct errs *errs);

/* Counts of speculative decoding: what a server counted since it started, or the sum over the
 * sessions of a run. */
struct store_drafts {
    uint64_t drafts, accepted;
    size_t lost; /* sessions with answers whose counts are not in the sum; of a server: 0 */
};

/* A session begins: the difference between `now` (NULL: cannot be read) and what store_end_drafts
 * is given counts. If the process is killed in between it does not, unless a later session begins
 * with the same server: that one then goes on from where the killed one began. `server` is a text
 * that changes when the server is started anew; NULL: there is none. */
MUST_USE enum err_code store_begin_drafts(struct store *s, const struct store_drafts *now,
                                          const char *server, struct errs *errs);

/* Counters below those of the beginning are another server's: the session stays lost. */
MUST_USE enum err_code store_end_drafts(struct store *s, const struct store_drafts *now,
                                        struct errs *errs);

/* The sums of another run. */
MUST_USE enum err_code store_add_drafts(struct store *s, struct store_drafts d, struct errs *errs);
MUST_USE enum err_code store_get_drafts(struct store *s, struct store_drafts *out,
                                        struct errs *errs);

#endif
