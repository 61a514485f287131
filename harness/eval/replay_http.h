/* replay_http.h - the recorded answers of a run, served over HTTP for any harness.
 *
 * GET /health and /v1/models, POST /v1/completions and /v1/chat/completions on 127.0.0.1. A request
 * is answered by its prompt alone (SHA-256 of the text, or of the last message's), with the text,
 * finish_reason and token counts that were recorded, so that different harnesses can be compared on
 * the same answers. A prompt that is not recorded is 404 with a sentence.
 */
#ifndef HARNESS_EVAL_REPLAY_HTTP_H
#define HARNESS_EVAL_REPLAY_HTTP_H

#include "harness/eval/store.h"

struct replay_http;

/* `from` belongs to the server until replay_http_close. port 0: any. ERR_INFRA, ERR_NOMEM. */
MUST_USE enum err_code replay_http_open(struct store *from, int port, struct replay_http **out,
                                        struct errs *errs);

int replay_http_port(const struct replay_http *r);

/* Requests answered with 200 so far, and those whose prompt was not recorded. Only after
 * replay_http_stop. */
struct replay_http_counts {
    size_t answered, unknown;
};

/* No request is answered any more when it returns. */
struct replay_http_counts replay_http_stop(struct replay_http *r);

/* NULL is fine. */
void replay_http_close(struct replay_http *r);

#endif
