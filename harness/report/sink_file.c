#include "harness/report/sink_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* `s` followed by `suffix`; the caller frees it. */
static char *joined(const char *s, const char *suffix)
{
    size_t n = strlen(s) + strlen(suffix) + 1;
    char *out = malloc(n);

    if (out)
        (void)snprintf(out, n, "%s%s", s, suffix);
    return out;
}

static void release(struct sink_file *f)
{
    free(f->target);
    free(f->part);
    *f = (struct sink_file){0};
}

enum err_code sink_file_open(struct sink_file *f, const char *target, struct errs *errs)
{
    bool is_stdout = !strcmp(target, "-");
    enum err_code rc;

    *f = (struct sink_file){.stream = is_stdout ? stdout : NULL};
    f->target = joined(target, "");
    f->part = is_stdout ? NULL : joined(target, ".part");
    if (f->target && f->part)
        f->stream = fopen(f->part, "w");
    if (f->stream)
        return ERR_NONE;
    if (!f->target || !f->part)
        rc = errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the output '%s'", target);
    else
        rc = errs_add(errs, ERR_IO, NOWHERE, "cannot write '%s': %s", f->part, strerror(errno));
    release(f);
    return rc;
}

enum err_code sink_file_failed(const struct sink_file *f, struct errs *errs)
{
    if (!f->part)
        return errs_add(errs, ERR_IO, NOWHERE, "cannot write to standard output: %s",
                        strerror(errno));
    return errs_add(errs, ERR_IO, NOWHERE, "cannot write '%s': %s", f->part, strerror(errno));
}

enum err_code sink_file_close(struct sink_file *f, bool complete, struct errs *errs)
{
    enum err_code rc = ERR_NONE;
    bool bad = ferror(f->stream) != 0;

    errno = bad ? EIO : 0; /* an earlier failure's own number is gone */
    if (!f->part)
        bad = fflush(f->stream) || bad;
    else
        bad = fclose(f->stream) || bad;
    if (bad)
        rc = sink_file_failed(f, errs);
    else if (f->part && complete && rename(f->part, f->target))
        rc = errs_add(errs, ERR_IO, NOWHERE, "cannot rename '%s' to '%s': %s", f->part, f->target,
                      strerror(errno));
    release(f);
    return rc;
}
