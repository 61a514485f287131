/* client_retry.h - what follows a failed attempt: the table, and how long to wait; only for the
 * client.
 */
#ifndef HARNESS_EVAL_CLIENT_RETRY_H
#define HARNESS_EVAL_CLIENT_RETRY_H

#include "harness/eval/client.h"

enum client_next {
    CLIENT_FINAL,
    CLIENT_AGAIN,      /* after the drawn wait */
    CLIENT_AGAIN_LATER /* the same, but never before the server's Retry-After */
};

/* After a complete reply with a status other than 200. */
enum client_next client_after_status(long status);

/* After no complete reply; `code` is a CURLcode other than CURLE_OK. */
enum client_next client_after_transport(int code);

/* Seconds until the attempt that follows number `attempt` (from 1) of job `index`: drawn evenly
 * from [0, min(cap, base 2^(attempt-1))). Where retry_after_s > 0 that is cut to
 * CLIENT_RETRY_AFTER_MAX_S, and a draw from [0, base) comes on top, so that those who were told the
 * same time do not all come back at once.
 * Source of the rule: Brooker, Exponential Backoff And Jitter (AWS Architecture Blog, 2015). */
double client_backoff_s(const struct client_options *o, size_t index, int attempt,
                        double retry_after_s);

#endif
