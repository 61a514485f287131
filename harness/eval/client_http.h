/* client_http.h - one HTTP exchange by libcurl: its handle, its reply, its sentence; only for the
 * client.
 */
#ifndef HARNESS_EVAL_CLIENT_HTTP_H
#define HARNESS_EVAL_CLIENT_HTTP_H

#include "harness/eval/client.h"

#include <curl/curl.h>

/* A body as it arrives. `data` is never NULL once opened and always ended by 0. */
struct client_body {
    char *data; /* owned */
    size_t bytes, capacity, limit;
    bool over;      /* the reply was longer than `limit` */
    bool no_memory; /* there was no room for it */
};

/* A handle that is used for one exchange after the other, and keeps its buffers. */
struct client_exchange {
    CURL *easy;
    struct client_body body;
    char curl_error[CURL_ERROR_SIZE]; /* libcurl's own sentence; "" if it had none */
};

/* What all exchanges of a run have in common. */
struct client_target {
    const char *url, *api_key;
    double timeout_s, connect_timeout_s;
    size_t max_body_bytes;
    bool is_loopback;           /* of url */
    CURLU *parts;               /* of url: taken apart once, not for each request; owned */
    struct curl_slist *headers; /* owned */
    CURLSH *share;              /* names and TLS sessions; owned */
};

/* Does the URL name http or https, a host, and no user or password? Is the key safe to send?
 * `t` is filled but for what it owns. ERR_USAGE with a sentence for each "no". */
MUST_USE enum err_code client_target_check(struct client_target *t, struct errs *errs);

/* libcurl's part of a target that was checked. ERR_NOMEM, ERR_INFRA. Close in either case. */
MUST_USE enum err_code client_target_open(struct client_target *t, struct errs *errs);
void client_target_close(struct client_target *t);

/* false: no memory. Close in either case. The exchange may not move while it is open. */
bool client_exchange_open(struct client_exchange *x, const struct client_target *t);
void client_exchange_close(struct client_exchange *x);

/* Forget the last reply: before each use. */
void client_exchange_reset(struct client_exchange *x);

/* Why there was no complete reply, in one sentence; the key does not appear. */
void client_exchange_explain(const struct client_exchange *x, CURLcode code, char *buf,
                             size_t size);

/* Overwrite each `secret` in s with as many '*'. NULL or "": nothing. */
void client_redact(char *s, size_t bytes, const char *secret);

#endif
