/* source.h - the text of a file before YAML sees it: read whole, at most 1 MiB, and free of bytes
 * that no text has.
 *
 * libyaml's reader names no line, and editors disagree about line ends; so everything is refused
 * here that would make "line 12, column 9" mean two things: bytes that are not UTF-8, control
 * characters, carriage returns without a line feed (CR LF is accepted), the line breaks of
 * Unicode, and tabs before the first other character of a line. A byte order mark at the start is
 * skipped.
 */
#ifndef HARNESS_CONFIG_SOURCE_H
#define HARNESS_CONFIG_SOURCE_H

#include "harness/core/arena.h"
#include "harness/core/err.h"

enum { SOURCE_LIMIT = 1 << 20 }; /* bytes of a file */

struct source {
    const char *name; /* borrowed, as in messages */
    const char *text; /* borrowed, `size` bytes after the byte order mark */
    size_t size;
    const size_t *lines; /* offset of the first byte of each line */
    size_t line_count;   /* at least 1 */
    struct {
        size_t line, column, offset;
    } last; /* place that was asked for, so that a long line is walked once */
};

/* The bytes of the regular file `path`, in `arena`. Returns NULL, or why not ("No such file or
 * directory"), with *code ERR_CONFIG if another path would help, ERR_IO or ERR_NOMEM if not. */
const char *source_read(const char *path, struct arena *arena, const char **text, size_t *size,
                        enum err_code *code);

/* Check `size` bytes of `text` and find its lines. One error for each kind of bad character, at
 * the first of its kind. */
MUST_USE enum err_code source_check(const char *name, const char *text, size_t size,
                                    struct arena *arena, struct source *out, struct errs *errs);

/* The bytes from the place (line and column from 0, column in characters) to the end; "" if
 * there is no such place. *left is their number. */
const char *source_at(struct source *s, size_t line, size_t column, size_t *left);

#endif
