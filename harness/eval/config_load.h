/* config_load.h - what the files config*.c share while one file is loaded; no interface of the
 * module.
 */
#ifndef HARNESS_EVAL_CONFIG_LOAD_H
#define HARNESS_EVAL_CONFIG_LOAD_H

#include "harness/config/near.h"
#include "harness/config/source.h"
#include "harness/config/yaml_doc.h"
#include "harness/eval/config.h"

enum {
    CONFIG_TEXT = 16384, /* bytes of one value */
    CONFIG_WORDS = 512,  /* of a command line */
    CONFIG_ENV = 64,
    CONFIG_SHOWN = 160
};

struct config_loader {
    const char *path;
    struct source src; /* its text, to find places in */
    struct arena *arena;
    struct errs *errs, *warnings;
    enum err_code rc; /* of the first error */
    struct eval_config *out;
};

void config_failed(struct config_loader *l, enum err_code code);
void config_no_memory(struct config_loader *l);

#define BAD(l, at, ...)  config_failed((l), errs_add((l)->errs, ERR_CONFIG, (at), __VA_ARGS__))
#define WARN(l, at, ...) (void)errs_add((l)->warnings, ERR_CONFIG, (at), __VA_ARGS__)

/* One key of one of the maps. `load` reads the value `n` into `member`, which starts with its
 * place (struct eval_text and so on). */
struct config_key {
    const char *key;
    bool required;
    size_t offset; /* of the member in the struct that the map is read into */
    void (*load)(struct config_loader *l, const struct config_key *k, const struct doc_node *n,
                 void *member);
    int64_t low, high;        /* whole numbers; real ones in billionths; both included */
    const char *const *words; /* of config_word; the value is the index */
    const char *help;
};

/* Read a map by a table. What `unknown` names beside the keys is offered as near words too; NULL:
 * nothing. `where` ends the sentence about unknown keys: "", " in x-humcheck". */
void config_map(struct config_loader *l, const struct config_key *table, size_t count,
                const struct doc_node *map, void *out, const char *where,
                bool (*unknown)(struct config_loader *l, const struct doc_node *n));

/* Readers of values, for the tables. An error leaves the member as it was. */
void config_text(struct config_loader *l, const struct config_key *k, const struct doc_node *n,
                 void *member); /* struct eval_text, not empty */
void config_any_text(struct config_loader *l, const struct config_key *k, const struct doc_node *n,
                     void *member); /* struct eval_text */
void config_int(struct config_loader *l, const struct config_key *k, const struct doc_node *n,
                void *member); /* struct eval_int */
void config_int_or_null(struct config_loader *l, const struct config_key *k,
                        const struct doc_node *n, void *member);
void config_real(struct config_loader *l, const struct config_key *k, const struct doc_node *n,
                 void *member); /* struct eval_real */
void config_real_or_null(struct config_loader *l, const struct config_key *k,
                         const struct doc_node *n, void *member);
void config_bool(struct config_loader *l, const struct config_key *k, const struct doc_node *n,
                 void *member); /* struct eval_int, 0 or 1 */
void config_word(struct config_loader *l, const struct config_key *k, const struct doc_node *n,
                 void *member); /* struct eval_int */
void config_json(struct config_loader *l, const struct config_key *k, const struct doc_node *n,
                 void *member); /* struct eval_text, an object of JSON */
void config_words(struct config_loader *l, const struct config_key *k, const struct doc_node *n,
                  void *member); /* struct eval_words */
void config_server_args(struct config_loader *l, const struct config_key *k,
                        const struct doc_node *n, void *member); /* struct eval_words */
void config_env(struct config_loader *l, const struct config_key *k, const struct doc_node *n,
                void *member); /* of the loader's config */
void config_floors(struct config_loader *l, const struct config_key *k, const struct doc_node *n,
                   void *member); /* of the loader's config */

/* A text of at most CONFIG_TEXT bytes that YAML itself takes for a text; NULL after an error. */
const char *config_string(struct config_loader *l, const char *key, const struct doc_node *n);

/* Refuse `text` (`name` in sentences) if it begins like an object of JSON and is none. */
void config_check_json(struct config_loader *l, const char *name, struct place at,
                       const char *text);

/* A place for each byte of the text of `n` and for its end; all the start of the value if the file
 * spells it in a way that cannot be followed. NULL: no memory. */
const struct place *config_places(struct config_loader *l, const struct doc_node *n);

/* accuracy_threshold - tolerance is above 0. */
void config_check_floor(struct config_loader *l);

/* Whatever needs more than one value: ranges between them, what the protocol sends, warnings. */
void config_complete(struct config_loader *l);

#endif
