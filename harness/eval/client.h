/* client.h - sends many JSON requests to one HTTP server and hands back each reply once.
 *
 * One thread, many connections that are kept open (HTTP/1.1). A failed attempt is repeated as the
 * table in client_retry.c says; what is left is an error with its kind, never an empty answer. The
 * client knows nothing of prompts or models: bodies go out and come back as bytes. A job that waits
 * for its next attempt keeps its place among the `concurrency` jobs in progress, so a struggling
 * server sees fewer requests, and memory does not grow with the number of jobs.
 *
 * Not here: parsing of replies, storage, printing. Not for use by two threads at once.
 */
#ifndef HARNESS_EVAL_CLIENT_H
#define HARNESS_EVAL_CLIENT_H

#include "harness/core/arena.h"
#include "harness/core/err.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest wait that a server's Retry-After can ask for; more is cut to this. */
enum { CLIENT_ERROR_TEXT = 200, CLIENT_RETRY_AFTER_MAX_S = 120, CLIENT_CONCURRENCY_MAX = 16384 };

/* All texts are borrowed for the call. */
struct client_options {
    const char *url; /* of the endpoint, http or https: "http://127.0.0.1:8000/v1/completions" */
    const char
        *api_key;     /* sent as a bearer token; NULL: none. Overwritten with '*' in all replies */
    int concurrency;  /* jobs in progress at once, 1 to CLIENT_CONCURRENCY_MAX */
    double timeout_s; /* one attempt, from its start (not from when it queued) to its last byte */
    double connect_timeout_s; /* part of timeout_s */
    int max_attempts;         /* at least 1 */
    double backoff_base_s;    /* attempt n is followed by a wait, drawn evenly from */
    double backoff_cap_s;     /* [0, min(cap, base 2^(n-1))): "full jitter" */
    uint64_t seed;            /* of the draws; a wait depends on (seed, index, n) only */
    size_t max_body_bytes;    /* a longer reply is refused, as a transport error */
    const volatile sig_atomic_t *interrupted; /* non-zero: stop; NULL: never */
};

enum client_outcome {
    CLIENT_OK,         /* HTTP 200, complete, and accepted by `judge` */
    CLIENT_HTTP,       /* another status, final or after the last attempt */
    CLIENT_TRANSPORT,  /* no complete reply, or a complete 200 that `judge` refused (status 200) */
    CLIENT_INTERRUPTED /* was in progress when the run was stopped */
};

/* Valid until the function that was given it returns. */
struct client_reply {
    size_t index; /* of the job */
    enum client_outcome outcome;
    int attempts;
    long status;      /* HTTP status of the last attempt; 0: no complete reply */
    const char *body; /* of the last attempt, as far as it came; body[bytes] is 0; never NULL */
    size_t bytes;
    double started_s;              /* first attempt, in seconds since client_run began */
    double latency_s;              /* last attempt alone */
    double total_s;                /* from the first attempt's start, waits included */
    char error[CLIENT_ERROR_TEXT]; /* one sentence, control characters escaped; "" if CLIENT_OK */
};

enum client_judgement { CLIENT_ACCEPT, CLIENT_RETRY };

struct client_stats {
    size_t jobs;        /* in all */
    size_t in_flight;   /* attempts under way */
    size_t waiting;     /* jobs between two attempts */
    size_t done;        /* jobs reported by `done`, of which: */
    size_t ok, failed;  /* CLIENT_OK; CLIENT_HTTP or CLIENT_TRANSPORT */
    size_t attempts;    /* started */
    size_t retries;     /* of those, beyond the first of a job */
    size_t connections; /* opened */
    double elapsed_s;
};

/* The callbacks run in the caller's thread and must not call the client. */
struct client_jobs {
    size_t count;
    /* A job's request, asked for at each attempt: the same bytes, valid until its `done`. */
    const char *(*body)(void *ctx, size_t index, size_t *bytes);
    /* Of a complete 200 reply: is it worth taking? NULL: all are. */
    enum client_judgement (*judge)(void *ctx, const struct client_reply *r);
    /* Exactly once for each job, in the order in which they end. An error stops the run. */
    enum err_code (*done)(void *ctx, const struct client_reply *r, struct errs *errs);
    /* About ten times a second and once at the end; NULL: not. */
    void (*tick)(void *ctx, const struct client_stats *s);
    void *ctx;
};

/* Run all jobs, in order of index. Jobs that failed are not an error of the run.
 *
 * Interrupted (noticed within 0.1 s): no attempt is started any more, those under way are cut off;
 * the jobs in progress are given to `done` as CLIENT_INTERRUPTED, the ones never started not at
 * all, and the result is ERR_NONE. If `done` returns an error, the run stops without further calls
 * and returns it.
 *
 * Redirects are not followed (a 3xx is CLIENT_HTTP), TLS certificates are verified, loopback is
 * never reached through a proxy. The soft limit on open files is raised for the time of the call
 * if need be.
 *
 * Errors: ERR_USAGE: options out of range, the URL not http or https, a key that would go over
 * plain http to a machine other than this one; ERR_INFRA: too few files may be opened, or libcurl
 * lacks something; ERR_NOMEM. */
MUST_USE enum err_code client_run(const struct client_options *o, const struct client_jobs *jobs,
                                  struct errs *errs);

/* The part of client_run's checks that needs no server: of the URL and the key, ERR_USAGE. */
MUST_USE enum err_code client_check(const struct client_options *o, struct errs *errs);

struct client_page {
    long status;                   /* 0: no complete reply */
    const char *body;              /* in the arena; body[bytes] is 0 */
    size_t bytes;                  /* at most CLIENT_PAGE_MAX */
    char error[CLIENT_ERROR_TEXT]; /* why there is no reply; else "" */
};

enum { CLIENT_PAGE_MAX = 4 << 20 };

/* One GET without retries: /health, /v1/models, /metrics. true: a complete reply, of whatever
 * status. `api_key` NULL: none; the same rules as above hold for it. timeout_s in all. */
bool client_get(const char *url, const char *api_key, double timeout_s, struct arena *arena,
                struct client_page *page);

#endif
