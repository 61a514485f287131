#include "harness/cli/json_lines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

static enum err_code read_lines(FILE *f, const struct json_lines *in, struct errs *errs)
{
    struct json_source src = {.file = in->path};
    enum err_code rc = ERR_NONE;
    char *line = NULL;
    size_t room = 0;
    ssize_t size;
    int number = 0;

    errno = 0;
    while (!rc && (size = getline(&line, &room, f)) > 0) {
        const struct json *value = NULL;

        src.text = line;
        src.size = (size_t)size;
        rc = json_parse(&src, in->arena, &value, errs);
        rc = rc ? rc : in->line(in->context, value, place_at(in->path, ++number, 1), errs);
        src.at += (uint64_t)size;
    }
    free(line);
    if (!rc && ferror(f))
        rc = errs_add(errs, ERR_IO, place_at(in->path, 0, 0), "the records cannot be read: %s",
                      strerror(errno ? errno : EIO));
    return rc;
}

enum err_code json_lines_read(const struct json_lines *in, struct errs *errs)
{
    FILE *f = fopen(in->path, "re");
    enum err_code rc;

    if (!f)
        return errs_add(errs, ERR_IO, place_at(in->path, 0, 0), "the records cannot be read: %s",
                        strerror(errno));
    rc = read_lines(f, in, errs);
    (void)fclose(f);
    return rc;
}
