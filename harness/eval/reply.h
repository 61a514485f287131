/* reply.h - the text and the counts in a server's reply to a completion request.
 *
 * Two forms are known: choices[0].text of /v1/completions and choices[0].message.content of
 * /v1/chat/completions. A content that is null is an empty text (a reasoning model that spent all
 * its tokens on thoughts); a missing choice or message is no completion at all, and worth another
 * attempt. NaN and Infinity, which some servers write for log-probabilities, are read as null.
 */
#ifndef HARNESS_EVAL_REPLY_H
#define HARNESS_EVAL_REPLY_H

#include "harness/eval/protocol.h"

enum { REPLY_WHY = 120 };

struct reply {
    struct span text;                         /* any bytes but NUL, in the arena, NUL behind it */
    const char *finish_reason;                /* in the arena; "" if not told */
    int64_t prompt_tokens, completion_tokens; /* -1: not told */
};

enum reply_kind {
    REPLY_OK,
    REPLY_BAD,   /* `why` says what is wrong with the body */
    REPLY_NOMEM, /* the arena is full */
};

/* body[bytes] must be 0. */
enum reply_kind reply_parse(const char *body, size_t bytes, enum endpoint endpoint,
                            struct arena *arena, struct reply *out, char why[REPLY_WHY]);

/* Did the answer end for lack of tokens? */
bool reply_truncated(const char *finish_reason);

/* The ids (and roots) of the models that a reply of /v1/models lists, at most `most`, in the arena;
 * how many. 0: none, or no such reply. */
size_t reply_models(const char *body, size_t bytes, struct arena *arena, const char **ids,
                    size_t most);

/* The text of a member of the object that `body` is, in the arena; NULL: none. */
const char *reply_member(const char *body, size_t bytes, const char *member, struct arena *arena);

#endif
