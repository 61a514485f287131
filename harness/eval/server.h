/* server.h - a model server's life: started, found ready, watched, stopped with all its children.
 *
 * Ready means: the process lives, GET /health is 200, and one real completion of one token comes
 * back; /health and /v1/models alone are served by front ends whose engines may be dead or still
 * loading. Every wait has a deadline, sleeps between its tries whatever they gave, and ends when
 * the process does, with any exit code.
 *
 * A server that is started runs under `humcheck supervise` (supervise.h): it ends with humcheck,
 * also when that is killed. Nothing here prints.
 */
#ifndef HARNESS_EVAL_SERVER_H
#define HARNESS_EVAL_SERVER_H

#include "harness/core/arena.h"
#include "harness/core/err.h"
#include "harness/eval/config.h"

#include <signal.h>
#include <stdbool.h>

enum { SERVER_LOG_LINES = 80, SERVER_ENDED_TEXT = 300, SERVER_MODELS = 16 };

struct server;

/* Texts are borrowed until server_stop. */
struct server_start {
    char *const *argv; /* of the server, ended by NULL; argv[0] is searched in PATH */
    char *const *env;
    const char *log; /* file; what the server prints is added to it */
    int port;        /* which it was told to listen at, on 127.0.0.1 */
    double grace_s;  /* between SIGTERM and SIGKILL */
    struct arena *arena;
};

/* The command of a configuration: server_command or "vllm serve", then the model, server_args, what
 * vLLM's test adds, and the port. If server_command has "{port}" in it, it is the whole command,
 * with {port} and {model} filled in. NULL: no memory. */
char *const *server_command(const struct eval_config *c, int port, struct arena *arena);

/* Is server_command the whole command, to which nothing is added? */
bool server_command_is_whole(const struct eval_config *c);

/* A TCP port of 127.0.0.1 that nobody listens at now. */
MUST_USE enum err_code server_free_port(int *port, struct errs *errs);

MUST_USE enum err_code server_run(const struct server_start *o, struct server **out,
                                  struct errs *errs);

/* Does it live? If not, `why` says how it ended. */
bool server_alive(struct server *s, char why[SERVER_ENDED_TEXT]);

/* SIGTERM to its group, after the grace time SIGKILL to all it ever started; returns when nothing
 * of it is left (ERR_INFRA: something is, and the sentence says so). NULL is fine. */
enum err_code server_stop(struct server *s, struct errs *errs);

/* What a ready server says of itself, in the arena. */
struct server_info {
    const char *version;              /* "vllm 0.11.0"; "unknown" */
    const char *model[SERVER_MODELS]; /* ids and roots of /v1/models */
    size_t models;
};

struct server_wait {
    const char *url;       /* without path: "http://127.0.0.1:8000" */
    const char *api_key;   /* NULL: none */
    struct server *server; /* whose life is watched; NULL: somebody else's server */
    enum endpoint endpoint;
    const char *probe; /* the request for one completion, a small one */
    double seconds;    /* deadline */
    struct arena *arena;
    const volatile sig_atomic_t *interrupted;
    void (*tick)(void *ctx, double waited_s); /* while waiting; NULL: not */
    void *ctx;
};

/* Wait until it is ready. ERR_INFRA, with what was last seen. */
MUST_USE enum err_code server_wait(const struct server_wait *w, struct server_info *out,
                                   struct errs *errs);

/* The last SERVER_LOG_LINES lines of a file, in the arena; "" if there are none. */
const char *server_log_tail(const char *path, struct arena *arena);

/* Speculative decoding so far, from the text of /metrics: sums over all labels of the counters of
 * drafts and of accepted tokens. false: it has no such counters. */
struct store_drafts;
bool server_drafts(const char *metrics, struct store_drafts *out);

/* When the process that serves /metrics started, as it says; "" if it does not. */
enum { SERVER_STARTED_TEXT = 40 };
const char *server_started(const char *metrics, char buf[SERVER_STARTED_TEXT]);

#endif
