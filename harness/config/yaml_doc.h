/* yaml_doc.h - a YAML text becomes a tree of texts, lists and maps with places; the only file with
 * yaml.h.
 *
 * A small YAML: one document; texts, lists and maps, at most 8 deep; keys are single texts and
 * unique. Anchors, aliases, merge keys, tags and directives are refused, since what a file says
 * must be readable in it. Scalars are texts whatever they look like: what `0x10`, `yes` or `~`
 * mean is decided by who reads the node. Nodes, texts and all live in the arena; places borrow the
 * file's name.
 */
#ifndef HARNESS_CONFIG_YAML_DOC_H
#define HARNESS_CONFIG_YAML_DOC_H

#include "harness/core/arena.h"
#include "harness/core/err.h"

#include <stdbool.h>

enum {
    DOC_DEPTH = 8,      /* lists and maps in each other */
    DOC_NODES = 100000, /* of a file */
    DOC_KEYS = 1000     /* of a map */
};

enum doc_kind {
    DOC_TEXT,
    DOC_LIST,
    DOC_MAP,
    DOC_REFUSED /* something (an alias) that has been reported already: say no more about it */
};

struct doc_node {
    enum doc_kind kind;
    struct place at;
    const char *text; /* DOC_TEXT: never NULL */
    bool quoted;      /* DOC_TEXT: in quotes, or a block (| and >) */
    bool verbatim;    /* DOC_TEXT: its characters stand in the file, unchanged, from text_at on */
    struct place text_at;
    const char *key; /* of a value in a map; else NULL */
    struct place key_at;
    struct doc_node *child; /* first of a list or map, in the order written */
    struct doc_node *next;  /* in the same list or map */
    size_t count;           /* of children */
};

/* The tree of `size` bytes of text. *root is NULL if there is none: the text breaks off
 * (ERR_CONFIG, after whatever was found before) or is empty. Otherwise the tree is whole even
 * when errors were added, and may be checked further: keys given twice are in it once, as first
 * given. */
MUST_USE enum err_code doc_parse(const char *name, const char *text, size_t size,
                                 struct arena *arena, const struct doc_node **root,
                                 struct errs *errs);

/* The value of `key` in a map; NULL: absent. */
const struct doc_node *doc_find(const struct doc_node *map, const char *key);

/* For messages: "'fp9'" (cut after 40 characters), "'64' in quotes", "a list", "a map",
 * "nothing". */
const char *doc_show(const struct doc_node *n, char *buf, size_t size);

#endif
