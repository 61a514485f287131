/* extract.h - the number that a model's text answers, by seven rules side by side.
 *
 * The same text scores differently under each tool's rule. Each rule is one row of extractors[];
 * all run on every text, so that anyone can see which rule moved a score, and one of them gates.
 * Six copy a tool exactly, faults included; `robust` is our own. They are hand-written scanners: no
 * regular expressions, no locale, time linear in the text.
 *
 * Texts are bytes with a length, meant to be UTF-8; any bytes at all are accepted. A byte that is
 * not UTF-8 stands for itself and belongs to no class of characters.
 */
#ifndef HARNESS_EVAL_EXTRACT_H
#define HARNESS_EVAL_EXTRACT_H

#include "harness/core/arena.h"

#include <stdbool.h>
#include <stddef.h>

struct span {
    const char *at; /* borrowed; need not end with NUL */
    size_t size;
};

struct answer {
    const char *text; /* what was read, in the tool's own spelling, in the arena; its word for
                         "nothing" if not valid */
    bool valid;       /* something was found that the rule takes for an answer */
    bool correct;     /* and it equals the gold, by the rule's own comparison */
};

struct extractor {
    const char *name;
    const char *source; /* whose rule, and where it is written */
    /* Read `text`, compare with `gold`: the whole worked solution, which ends "#### N". Results
     * live in the arena. false: it is full, and *out is not written. `correct` is false whenever
     * the rule finds nothing in the gold itself. */
    bool (*run)(struct span text, struct span gold, struct arena *arena, struct answer *out);
};

enum extractor_id {
    EXTRACT_STRICT_MATCH,
    EXTRACT_FLEXIBLE_EXTRACT,
    EXTRACT_LAST_INT,
    EXTRACT_LAST_NUMBER,
    EXTRACT_LAST_EXPLICIT,
    EXTRACT_OPENAI,
    EXTRACT_ROBUST,
    EXTRACTOR_COUNT
};

extern const struct extractor extractors[EXTRACTOR_COUNT];

const struct extractor *extractor_find(const char *name); /* NULL: none */

/* All of them, out[i] by extractors[i]. false: the arena is full. */
bool extract_all(struct span text, struct span gold, struct arena *arena,
                 struct answer out[EXTRACTOR_COUNT]);

/* The bytes of a C string. */
struct span span_of(const char *s);

#endif
