/* sink_file.h - a result file that exists only when it is whole.
 *
 * Results go to TARGET.part, which is renamed to TARGET when the run is complete and every byte
 * was written; else it stays as it is. TARGET "-" is standard output, which is neither renamed
 * nor closed. A device or a pipe is written as it is: a rename would put a file in its place. */
#ifndef HARNESS_REPORT_SINK_FILE_H
#define HARNESS_REPORT_SINK_FILE_H

#include "harness/core/err.h"

#include <stdbool.h>
#include <stdio.h>

struct sink_file {
    FILE *stream;
    char *target; /* for sentences and rename; owned */
    char *part;   /* TARGET.part; NULL: there is none */
};

/* Is there a TARGET.part? Not for standard output and what is no regular file. */
bool sink_file_has_part(const char *target);

/* Could TARGET be written? For commands that work for long before they open it. No file is made. */
MUST_USE enum err_code sink_file_check(const char *target, struct errs *errs);

/* Fails with one sentence (no such folder, no permission); nothing is left open then. */
MUST_USE enum err_code sink_file_open(struct sink_file *f, const char *target, struct errs *errs);

/* Close, and rename when `complete`. A write that failed at any time before is reported here;
 * the part stays then. */
MUST_USE enum err_code sink_file_close(struct sink_file *f, bool complete, struct errs *errs);

/* One sentence about a failed write to f. */
enum err_code sink_file_failed(const struct sink_file *f, struct errs *errs);

#endif
