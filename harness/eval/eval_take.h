/* eval_take.h - the one way of a reply into the store; for eval_ask.c and eval_replay.c.
 */
#ifndef HARNESS_EVAL_EVAL_TAKE_H
#define HARNESS_EVAL_EVAL_TAKE_H

#include "harness/eval/eval.h"
#include "harness/eval/reply.h"

/* What came with a reply. */
struct eval_meta {
    int attempts;
    long status;
    double latency_s, total_s;
};

/* An answer: extract, decide, store. The scratch arena is in use until it returns. */
MUST_USE enum err_code eval_take_reply(struct eval *e, size_t question, const struct reply *r,
                                       const struct eval_meta *m, struct errs *errs);

/* No answer. */
MUST_USE enum err_code eval_take_error(struct eval *e, size_t question, const char *error,
                                       const struct eval_meta *m, struct errs *errs);

#endif
