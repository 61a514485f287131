/* stub_server_parts.h - the parts of the stub server; only for them.
 */
#ifndef HARNESS_TEST_STUB_SERVER_PARTS_H
#define HARNESS_TEST_STUB_SERVER_PARTS_H

#include "harness/test/stub_server.h"

/* ---- text that grows; ends the program if there is no memory ---- */

struct stub_text {
    char *at; /* owned; NULL: empty */
    size_t bytes, capacity;
};

void *stub_grow(void *p, size_t bytes);
void text_add(struct stub_text *t, const char *s, size_t n);
void text_printf(struct stub_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void text_free(struct stub_text *t);

/* FNV-1a, 64 bits (Fowler, Noll, Vo), and the finalizer of SplitMix64. */
uint64_t stub_hash(const char *s, size_t n);
uint64_t stub_mix(uint64_t x);

/* ---- requests ---- */

struct stub_request {
    bool is_post, has_key;
    char path[64];
    const char *body; /* borrowed */
    size_t body_bytes;
};

/* The request at the beginning of n bytes. Returns its length, 0: more must come, -1: not one that
 * this server understands. */
long stub_parse(const char *data, size_t n, struct stub_request *r);

/* ---- answers ---- */

struct stub_answers; /* question to text */

struct stub_answers *stub_answers_load(const char *path, char *why, size_t size);
void stub_answers_free(struct stub_answers *a);

/* The prompt of a body; its text is owned by the caller (free); NULL: not a request with one. */
char *stub_prompt(const char *body, size_t n, bool is_chat);

/* The right answer to a prompt (or the wrong one, where the options say so), with filler words
 * before it. */
void stub_answer(struct stub_text *t, const struct stub_options *o, const struct stub_answers *a,
                 const char *prompt);

/* ---- replies ---- */

/* What is sent, and what happens then. */
struct stub_reply {
    struct stub_text text;
    size_t fill_at, fill; /* so many spaces go between text.at[fill_at - 1] and text.at[fill_at] */
    size_t piece;         /* bytes at a time, trickle_ms apart; 0: at once */
    enum { STUB_KEEP, STUB_THEN_CLOSE, STUB_THEN_RESET, STUB_THEN_STALL } then;
    double retry_in_s; /* what Retry-After asks for; 0: nothing */
    bool refuse;       /* close the listening socket for a while */
};

enum stub_chaos stub_chaos_pick(const struct stub_options *o, uint64_t prompt_hash, int before);

void stub_reply_completion(struct stub_reply *r, const struct stub_options *o,
                           enum stub_chaos chaos, bool is_chat, const struct stub_text *answer);
void stub_reply_status(struct stub_reply *r, int status, const char *type, const char *body);

/* /metrics, with names of vLLM's where it has them. */
void stub_reply_metrics(struct stub_reply *r, const struct stub_options *o,
                        const struct stub_stats *s, double started_s);

#endif
