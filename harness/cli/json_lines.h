/* json_lines.h - a file of JSON lines, one value a line, read line by line.
 */
#ifndef HARNESS_CLI_JSON_LINES_H
#define HARNESS_CLI_JSON_LINES_H

#include "harness/weights/json_doc.h"

struct json_lines {
    const char *path;    /* borrowed as long as errors live */
    struct arena *arena; /* of the values; they are kept until it is reset */
    enum err_code (*line)(void *context, const struct json *value, struct place at,
                          struct errs *errs);
    void *context;
};

/* Hands each line on. ERR_IO: the file cannot be read; else the first failure ends the reading. */
MUST_USE enum err_code json_lines_read(const struct json_lines *in, struct errs *errs);

#endif
