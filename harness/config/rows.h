/* rows.h - a YAML file that is one table: one key with a list of rows, each a map of known texts.
 *
 *     known:
 *       - where: "check == alias"
 *         reason: nobody checks for overlap
 *
 * What all such tables share is here: a key that no row has (with the one that was probably
 * meant), one that is missing, a value that is no text, an expression that is none. What a text
 * means is the table's own.
 */
#ifndef HARNESS_CONFIG_ROWS_H
#define HARNESS_CONFIG_ROWS_H

#include "harness/config/expr.h"
#include "harness/config/yaml_doc.h"

struct rows_key {
    const char *name;
    bool required;
};

struct rows_form {
    const char *list; /* the file's one key */
    const char *what; /* in messages: "the support table" */
    const struct rows_key *keys;
    int key_count;
};

/* The first row of the file, *count of them linked by `next`, and NULL for none. All mistakes of
 * form are added to errs, and rows that have one are handed out too: they may be checked further.
 * Places borrow `path`. */
MUST_USE enum err_code rows_load(const char *path, const struct rows_form *form,
                                 struct arena *arena, const struct doc_node **rows, size_t *count,
                                 struct errs *errs);

/* The text of a row's key, never empty; NULL: the row has none, or what was reported already. */
const char *rows_text(const struct doc_node *row, const char *key);

/* The same, as an expression over the axes. NULL also for a text that is none: then an error was
 * added. */
const struct expr *rows_expr(const struct doc_node *row, const char *key, struct arena *arena,
                             struct errs *errs);

/* Where the key's value stands; without one, the row. */
struct place rows_place(const struct doc_node *row, const char *key);

#endif
