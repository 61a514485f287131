/* json_doc.h - a JSON text as a tree in an arena, strictly.
 *
 * The only file of weights/ that knows cJSON is json_doc.c. Strict means RFC 8259 and more:
 * valid UTF-8, no NUL inside texts, no unpaired surrogates, no key twice in one object, at most
 * JSON_DEPTH levels. cJSON alone accepts more (numbers such as 01 or +1, raw control
 * characters), cuts texts at a NUL and turns large integers into others.
 */
#ifndef HARNESS_WEIGHTS_JSON_DOC_H
#define HARNESS_WEIGHTS_JSON_DOC_H

#include "harness/core/arena.h"
#include "harness/core/err.h"

#include <stdint.h>

enum { JSON_DEPTH = 64 };

enum json_kind { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_TEXT, JSON_LIST, JSON_OBJECT };

struct json {
    enum json_kind kind;
    const char *key;  /* in an object; else NULL */
    const char *text; /* JSON_TEXT; else NULL */
    double number;    /* JSON_NUMBER; JSON_BOOL: 0 or 1 */
    const struct json *first, *next;
    size_t count; /* of members */
};

/* What json_parse reads. */
struct json_source {
    const char *file; /* for sentences; borrowed as long as errors live */
    const char *text; /* `size` bytes, need not end with NUL */
    size_t size;
    uint64_t at;  /* the byte of the file at which the text starts, for sentences */
    bool natural; /* every number must be a whole one from 0 to 2^53 - 1, written in digits only */
};

/* The tree, which lives in `arena` and borrows nothing. Errors are ERR_CONFIG and name the byte
 * (or the key); ERR_NOMEM. */
MUST_USE enum err_code json_parse(const struct json_source *src, struct arena *arena,
                                  const struct json **out, struct errs *errs);

/* The member of that key; NULL: no such key, no object, or j is NULL. */
const struct json *json_get(const struct json *j, const char *key);

/* The text of j; NULL: j is no text, or NULL. */
const char *json_text(const struct json *j);

/* A whole number of magnitude below 2^53; false: j is NULL or none, and *out is not written. */
bool json_integer(const struct json *j, int64_t *out);

#endif
