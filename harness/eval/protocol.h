/* protocol.h - how a tool asks GSM8K: prompts byte for byte, requests field for field.
 *
 * A protocol is one row of protocols[]. It says which worked examples stand before a question,
 * which fields a request has and in which order, the stops, the values of the tool, and which
 * extractors score it. Nothing here talks to a server.
 *
 *   prompt = for each example "Question: {q}\nAnswer:{gen_prefix} {a}\n\n", then
 *            "Question: {q}\nAnswer:{gen_prefix}"
 *
 * All three tools have this template; they differ in the examples. Thresholds hold for one
 * protocol, endpoint, number of examples and number of questions, never across them.
 */
#ifndef HARNESS_EVAL_PROTOCOL_H
#define HARNESS_EVAL_PROTOCOL_H

#include "harness/eval/dataset.h"
#include "harness/eval/extract.h"

#include <stdbool.h>
#include <stdint.h>

enum endpoint { ENDPOINT_COMPLETIONS, ENDPOINT_CHAT, ENDPOINT_COUNT };

/* "/v1/completions", "/v1/chat/completions". */
const char *endpoint_path(enum endpoint e);

/* A number that may be left out of the request, so that the server's own holds. */
struct maybe_int {
    bool set;
    int64_t value;
};
struct maybe_real {
    bool set;
    double value;
};

/* Texts are borrowed. Start from the protocol's `defaults`. */
struct protocol_options {
    enum endpoint endpoint;
    const char *model; /* NULL: not sent */
    size_t shots;
    int64_t max_tokens;
    struct maybe_real temperature, top_p;
    struct maybe_int seed, top_k;
    const char *gen_prefix;           /* "": none */
    const char *reasoning_effort;     /* NULL: not sent */
    const char *chat_template_kwargs; /* an object of JSON, as text; NULL: not sent */
};

/* The fields of a request. Those without a value in the options are left out. */
enum request_field {
    FIELD_END,
    FIELD_PROMPT,
    FIELD_MESSAGES,
    FIELD_MODEL,
    FIELD_MAX_TOKENS,
    FIELD_STOP,
    FIELD_TEMPERATURE, /* from here on: only if the options have it */
    FIELD_SEED,
    FIELD_TOP_P,
    FIELD_TOP_K,
    FIELD_REASONING_EFFORT,
    FIELD_CHAT_TEMPLATE_KWARGS,
    FIELD_COUNT
};

enum { PROTOCOL_STOPS = 4, PROTOCOL_EXTRACTORS = 4, PROTOCOL_SHOTS_MAX = 64 };

struct protocol {
    const char *name;
    const char *source;
    struct protocol_options defaults;
    /* In the tool's order, ended by FIELD_END; an endpoint that begins with it is not offered. */
    enum request_field fields[ENDPOINT_COUNT][FIELD_COUNT];
    const char *stops[PROTOCOL_STOPS + 1]; /* ended by NULL */
    bool needs_model;
    bool typed_messages; /* a message also has "type": "text" */
    bool takes_gen_prefix;
    bool shots_from_test; /* examples are rows of test, and those rows are not asked */
    /* rows[doc * shots + i] is the row of example i before question `doc`, out of `pool` rows;
     * shots <= pool and shots <= PROTOCOL_SHOTS_MAX. */
    void (*choose)(size_t pool, size_t docs, size_t shots, uint32_t *rows);
    /* The tool's own columns; the first is its metric. */
    enum extractor_id extractors[PROTOCOL_EXTRACTORS];
    int extractor_count;
    const char *metric; /* what it calls the share of correct answers */
};

extern const struct protocol *const protocols[];
extern const int protocol_count;

const struct protocol *protocol_find(const char *name); /* NULL: none */

/* The prompts of one run. Everything is borrowed or in the arena of prompts_init. */
struct prompts {
    const struct protocol *protocol;
    const struct dataset *data;
    struct protocol_options options;
    size_t count;         /* of questions */
    size_t first;         /* row of test that is question 0 */
    const uint32_t *rows; /* count x options.shots, row-major */
};

/* The first `questions` of the data set under the options. ERR_CONFIG, with one sentence for
 * each thing that is wrong: an endpoint, model, prefix or field the protocol does not have, more
 * examples or questions than rows, values out of range. ERR_NOMEM. */
MUST_USE enum err_code prompts_init(struct prompts *p, const struct protocol *protocol,
                                    const struct dataset *data,
                                    const struct protocol_options *options, size_t questions,
                                    struct arena *arena, struct errs *errs);

/* The row that question i asks; i < count. */
const struct dataset_row *prompts_row(const struct prompts *p, size_t i);

/* The prompt of question i, in the arena, NUL behind it. at NULL: the arena is full. */
struct span prompts_text(const struct prompts *p, size_t i, struct arena *arena);

/* The body of the request for a prompt (text that ends with NUL): one object of JSON without
 * blanks, in the arena. NULL: no memory. */
const char *prompts_request(const struct prompts *p, const char *prompt, struct arena *arena);

#endif
