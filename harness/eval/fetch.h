/* fetch.h - gets GSM8K's two files from their public address, complete and unchanged.
 *
 * A file is written beside its place under another name while it comes, and renamed only when its
 * size and SHA-256 are those of dataset_files[]: a cut download, an error page or another data set
 * never lies where dataset_load looks. No redirects are followed, certificates are checked, and a
 * server that sends more than the file's size is cut off.
 */
#ifndef HARNESS_EVAL_FETCH_H
#define HARNESS_EVAL_FETCH_H

#include "harness/core/arena.h"
#include "harness/core/err.h"
#include "harness/eval/dataset.h"

#include <signal.h>
#include <stdbool.h>

/* The folder of the files in openai/grade-school-math, commit 3101c7d5. */
extern const char fetch_base[];

struct fetch_options {
    const char *base;                 /* "https://host/path", or http; the files' names follow */
    const char *folder;               /* where the files go; made if missing */
    const struct dataset_file *files; /* NULL: dataset_files[] */
    size_t file_count;
    const volatile sig_atomic_t *interrupted; /* non-zero: stop; NULL: never */
    /* Called now and then with the bytes of the file that have come; `done` once at its end, when
     * it is in its place. NULL: not called. */
    void (*progress)(void *ctx, const struct dataset_file *file, size_t bytes, bool done);
    void *ctx;
};

/* All files that are not in the folder yet, or differ there. Each file that fails has its error:
 * ERR_INFRA if it did not come, ERR_CONFIG if something else came (with both hashes) or the address
 * is none, ERR_IO. What was in the folder stays if a file fails. The paths of errors live in
 * `arena`. */
MUST_USE enum err_code fetch_gsm8k(const struct fetch_options *o, struct arena *arena,
                                   struct errs *errs);

/* Is the file of the folder complete and unchanged? */
bool fetch_is_there(const char *folder, const struct dataset_file *file);

/* Where GSM8K is kept: $XDG_CACHE_HOME/humcheck/gsm8k, or ~/.cache/humcheck/gsm8k. NULL after an
 * error: neither is an absolute path (XDG Base Directory Specification 0.8), or no memory. */
const char *fetch_cache(struct arena *arena, struct errs *errs);

#endif
