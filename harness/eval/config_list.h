/* config_list.h - sets of configurations: files, lists of files, and folders of both.
 *
 * A list (.txt) is vLLM's: one configuration a line, relative to the list's folder; blank lines and
 * lines that begin with # are skipped. There, a name without a file is dropped and an empty list is
 * a test that is skipped: a slip turns a gate off without a sign. Here both are errors, and so is a
 * configuration of a folder that no list of it names.
 *
 * Source: vllm-project/vllm tests/evals/gsm8k/conftest.py 10efe946.
 */
#ifndef HARNESS_EVAL_CONFIG_LIST_H
#define HARNESS_EVAL_CONFIG_LIST_H

#include "harness/eval/config.h"

#include <sys/types.h>

enum { CONFIG_SET_MAX = 1000, CONFIG_SET_DEPTH = 8 };

struct config_item {
    struct eval_config config;
    enum err_code rc; /* of its load */
    dev_t device;     /* with the inode: the file, whatever its path */
    ino_t inode;
    size_t lists; /* number of the last list that names it, from 1; 0: none does */
};

struct config_set {
    struct config_item *items; /* each configuration once, in the order met */
    size_t count, lists;
};

/* What the operands stand for: a folder (everything in it, at most CONFIG_SET_DEPTH deep), a list
 * (a name that ends ".txt") or a configuration. All mistakes of all files are added. */
MUST_USE enum err_code config_set_load(const char *const *operands, size_t count,
                                       struct arena *arena, struct config_set *out,
                                       struct errs *warnings, struct errs *errs);

#endif
