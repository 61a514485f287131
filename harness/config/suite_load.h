/* suite_load.h - what suite.c and suite_values.c share while a suite is loaded; no interface of
 * the module.
 */
#ifndef HARNESS_CONFIG_SUITE_LOAD_H
#define HARNESS_CONFIG_SUITE_LOAD_H

#include "harness/config/near.h"
#include "harness/config/suite.h"
#include "harness/config/yaml_doc.h"

enum { SUITE_INCLUDES = 16, SUITE_VALUES = 4096, SUITE_ENTRIES = 1000, SUITE_NAME = 64 };

/* `name: [..]` of an include file. Values are read when an axis asks for them, once an axis. */
struct named_list {
    const char *name;
    const struct doc_node *node;
    struct axis_values
        *parsed[AX_COUNT]; /* NULL: not asked for yet; count 0: wrong, and reported */
    struct named_list *next;
};

struct loader {
    const char *path; /* of the suite */
    struct arena *arena;
    struct errs *errs;
    enum err_code rc; /* of the first error */
    struct named_list *lists;
    const char *includes[SUITE_INCLUDES]; /* as opened: the files of places */
    size_t include_count;
    bool lists_incomplete; /* an include is wrong: an unknown name may be its fault */
    struct axis_values defaults[AX_COUNT];  /* of `defaults:`; count 0 and not stated: absent */
    struct axis_values fallbacks[AX_COUNT]; /* of the table of axes; count 0: required */
};

/* Remember a failure that has been added to the list of errors. */
void suite_failed(struct loader *l, enum err_code code);

#define BAD(l, at, ...) suite_failed((l), errs_add((l)->errs, ERR_CONFIG, (at), __VA_ARGS__))
void suite_no_memory(struct loader *l);

/* The values that `n` states for an axis: one, a list, a range or a named list. out->count is 0
 * after an error. */
void suite_values(struct loader *l, int axis, const struct doc_node *n, struct axis_values *out);
void suite_fallbacks(struct loader *l); /* fills l->fallbacks */

/* One whole number from 1 to max, as `random:` takes; 0 after an error. */
int64_t suite_count(struct loader *l, const struct doc_node *n, int64_t max);

/* The files of `include:` become l->lists. */
void suite_includes(struct loader *l, const struct doc_node *n);

#endif
