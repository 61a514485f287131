/* dataset.h - GSM8K, complete and unchanged, or a sentence saying why not.
 *
 * The files are openai/grade-school-math's train.jsonl and test.jsonl (commit 3101c7d5), given by
 * the folder they lie in (fetch.h gets them). A file of another size or SHA-256 is refused: a cut
 * download would otherwise be a smaller evaluation that nobody asked for.
 *
 * A file has one JSON object a line, with the strings "question" and "answer"; lines that begin
 * with # are skipped. Only LF ends a line (train has U+2028 in a question). An answer is a worked
 * solution that ends "#### N".
 */
#ifndef HARNESS_EVAL_DATASET_H
#define HARNESS_EVAL_DATASET_H

#include "harness/core/arena.h"
#include "harness/core/err.h"
#include "harness/eval/sha256.h"

#include <stddef.h>

/* Texts are UTF-8, end with NUL, have no other NUL, and live in the arena of the data set. */
struct dataset_row {
    const char *question;
    const char *answer; /* with its <<...>> marks and "#### N" */
    const char *label;  /* N: what follows the last "#### ", a place in `answer` */
};

struct dataset_rows {
    struct dataset_row *row;
    size_t count;
    char sha256[SHA256_HEX]; /* of the file, or of what it would have been */
};

struct dataset {
    struct dataset_rows train; /* where few-shot examples come from */
    struct dataset_rows test;  /* what is asked */
};

/* A file that is known. */
struct dataset_file {
    const char *name;
    size_t bytes, rows;
    const char *sha256;
};

enum { DATASET_TRAIN, DATASET_TEST, DATASET_FILES };
extern const struct dataset_file dataset_files[DATASET_FILES];

/* Address space that both files and their rows fit in. */
#define DATASET_ARENA ((size_t)64 << 20)

/* Both files of `folder`. Every file that is wrong has its error (ERR_CONFIG, or ERR_IO). */
MUST_USE enum err_code dataset_load(const char *folder, struct arena *arena, struct dataset *out,
                                    struct errs *errs);

/* The rows of `size` bytes of JSON lines; places in errors are lines of `name` (borrowed). The
 * first line that is wrong ends it. out->sha256 is that of the bytes. */
MUST_USE enum err_code dataset_parse(const char *name, const char *text, size_t size,
                                     struct arena *arena, struct dataset_rows *out,
                                     struct errs *errs);

/* The row as a line of such a file, without its end, in the arena. NULL: no memory. */
const char *dataset_line(const struct dataset_row *row, struct arena *arena);

/* Where N of "#### N" begins in a worked solution: behind the last "#### ". NULL: it has none, or
 * nothing follows. */
const char *dataset_label(const char *answer);

#endif
