/* eval.h - one configuration, asked question by question into a store, and judged.
 *
 *     eval_prepare   prompts, requests, fingerprint         no server, no files
 *     eval_open      the store: resumed, or refused
 *     eval_identify  what the server says it is, against the fingerprint
 *     eval_ask       the questions that have no answer yet, of a server; or
 *     eval_replay    of another run's store
 *     eval_judge     sums and verdict, from what the store holds
 *
 * A reply takes the same way wherever it comes from: text, all extractors, outcome, store.
 */
#ifndef HARNESS_EVAL_EVAL_H
#define HARNESS_EVAL_EVAL_H

#include "harness/eval/arith.h"
#include "harness/eval/config.h"
#include "harness/eval/score.h"
#include "harness/eval/server.h"
#include "harness/eval/store.h"

#include <signal.h>

/* What is told while questions are asked. Counts are of the whole run, rates of this session. */
struct eval_progress {
    size_t questions, done; /* done: with an outcome */
    size_t correct, errors;
    size_t in_flight, retries;
    double seconds;          /* of this session */
    size_t session;          /* done in this session */
    uint64_t session_tokens; /* of completions, in this session */
};

struct eval_options {
    const struct dataset *data; /* of the configuration's kind */
    const char *gpu;            /* product name; NULL: unknown */
    size_t limit;               /* the first questions only; 0: all of the configuration */
    int concurrency;            /* 0: the configuration's */
    const char *api_key;        /* NULL: none */
    const volatile sig_atomic_t *interrupted;
    void (*progress)(void *ctx, const struct eval_progress *p); /* NULL: not */
    void *ctx;
};

/* A question as it is asked. */
struct eval_question {
    const char *prompt, *body; /* NUL-terminated */
    size_t body_bytes;
    char sha256[SHA256_HEX]; /* of the prompt */
    enum outcome outcome;    /* OUTCOME_COUNT: not asked yet */
};

struct eval {
    const struct eval_config *config;
    const struct eval_options *o;
    struct arena *arena;  /* the caller's: results, addresses */
    struct arena own;     /* until eval_close: prompts and requests, 4.5 KB a question */
    struct arena scratch; /* of one reply */
    struct prompts prompts;
    struct eval_question *questions; /* prompts.count of them */
    enum extractor_id gating;        /* the protocol's own metric */
    struct eval_pass pass;
    struct store_run run;
    struct store *store;
    size_t *pending; /* questions without an answer, in order */
    size_t pending_count;
    struct eval_progress progress;
    char stopped[ERR_TEXT];     /* why eval_ask ended early; "" */
    volatile sig_atomic_t stop; /* tells the client to end */
    size_t in_a_row;       /* requests that used up their attempts, since the last that did not */
    size_t seen_done;      /* by the watch over hung servers, */
    double changed_s;      /* which last saw a request end then */
    struct server *server; /* watched while asking; NULL: somebody else's */
};

enum {
    EVAL_ARITH_SEED = 1,
    EVAL_ARITH_TRAIN = PROTOCOL_SHOTS_MAX,
    EVAL_ARITH_QUESTIONS = ARITH_ROWS_MAX - 2 * PROTOCOL_SHOTS_MAX /* the most there are */
};

/* Problems made on the spot: train is the first EVAL_ARITH_TRAIN of one list (that of `humcheck
 * data arith --seed 1`), test what follows. */
MUST_USE enum err_code eval_arith(size_t questions, struct arena *arena, struct dataset *out,
                                  struct errs *errs);

/* All is borrowed until eval_close, which is needed in any case. The arena outlives results.
 * ERR_CONFIG, ERR_IO, ERR_NOMEM. */
MUST_USE enum err_code eval_prepare(struct eval *e, const struct eval_config *c,
                                    const struct eval_options *o, struct arena *arena,
                                    struct errs *errs);

/* store_open for this run; finds what is pending. path NULL: in memory. */
MUST_USE enum err_code eval_open(struct eval *e, const char *path, bool fresh, struct errs *errs);

/* A request of one token, for server_wait: the first question. NULL: no memory. */
const char *eval_probe(struct eval *e);

/* The server must serve the model that the configuration names (ERR_INFRA), and be the one that
 * gave the answers so far (ERR_USAGE). */
MUST_USE enum err_code eval_identify(struct eval *e, const char *url,
                                     const struct server_info *info, struct errs *errs);

/* Ask what is pending. ERR_INFRA: the server died, hangs, or refuses all of it; what was answered
 * is in the store, as it is after an interrupt, which is no error. */
MUST_USE enum err_code eval_ask(struct eval *e, const char *url, struct errs *errs);

/* Take what is pending from the answers to the same prompts in `from`. */
MUST_USE enum err_code eval_replay(struct eval *e, struct store *from, struct errs *errs);

struct eval_result {
    const struct eval_config *config;
    const char *protocol, *endpoint, *gating; /* borrowed */
    const char *gpu, *model, *server;         /* in the arena of eval_prepare; "" if unknown */
    struct eval_pass pass;
    struct tally tally;
    struct store_drafts drafts;
    double
        acceptance_length; /* tokens a step; NaN if it is not asked for, or there were no drafts */
    enum score_verdict verdict;
    char why[2 * SCORE_WHY];
};

MUST_USE enum err_code eval_judge(struct eval *e, struct eval_result *out, struct errs *errs);

/* Also of one that is {0} or closed. */
void eval_close(struct eval *e);

#endif
