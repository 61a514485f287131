#include "harness/report/sink_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

bool sink_file_has_part(const char *target)
{
    struct stat st;

    return strcmp(target, "-") != 0 &&
           (stat(target, &st) != 0 || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode));
}

static bool is_folder(const char *target)
{
    struct stat st;

    return stat(target, &st) == 0 && S_ISDIR(st.st_mode);
}

enum err_code sink_file_check(const char *target, struct errs *errs)
{
    const char *slash = strrchr(target, '/');
    char *folder = joined(target, "");
    enum err_code rc = ERR_NONE;
    const char *place = folder;

    if (!folder)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the output '%s'", target);
    if (sink_file_has_part(target) && !slash)
        place = ".";
    else if (sink_file_has_part(target))
        folder[slash - target + (slash == target)] = '\0';
    if (is_folder(target))
        rc = errs_add(errs, ERR_IO, NOWHERE, "cannot write '%s': it is a folder", target);
    else if (strcmp(target, "-") != 0 && access(place, W_OK))
        rc = errs_add(errs, ERR_IO, NOWHERE, "cannot write '%s': %s", target, strerror(errno));
    free(folder);
    return rc;
}

enum err_code sink_file_open(struct sink_file *f, const char *target, struct errs *errs)
{
    bool has_part = sink_file_has_part(target);
    enum err_code rc;

    if (is_folder(target))
        return errs_add(errs, ERR_IO, NOWHERE, "cannot write '%s': it is a folder", target);
    *f = (struct sink_file){.stream = NULL};
    f->target = joined(target, "");
    f->part = has_part ? joined(target, ".part") : NULL;
    if (f->target && (f->part || !has_part))
        f->stream = !strcmp(target, "-") ? stdout : fopen(has_part ? f->part : target, "w");
    if (f->stream)
        return ERR_NONE;
    if (!f->target || (has_part && !f->part))
        rc = errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the output '%s'", target);
    else
        rc = errs_add(errs, ERR_IO, NOWHERE, "cannot write '%s': %s", has_part ? f->part : target,
                      strerror(errno));
    release(f);
    return rc;
}

enum err_code sink_file_failed(const struct sink_file *f, struct errs *errs)
{
    if (f->stream == stdout)
        return errs_add(errs, ERR_IO, NOWHERE, "cannot write to standard output: %s",
                        strerror(errno));
    return errs_add(errs, ERR_IO, NOWHERE, "cannot write '%s': %s", f->part ? f->part : f->target,
                    strerror(errno));
}

enum err_code sink_file_close(struct sink_file *f, bool complete, struct errs *errs)
{
    enum err_code rc = ERR_NONE;
    bool bad = ferror(f->stream) != 0;

    errno = bad ? EIO : 0; /* an earlier failure's own number is gone */
    if (f->stream == stdout)
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
