#include "harness/eval/fetch.h"

#include "harness/core/cache.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A connection that brings less than STALL_BYTES a second for STALL_SECONDS is given up. */
enum { PATH = 4096, PIECE = 1 << 16, CONNECT_SECONDS = 20, STALL_BYTES = 1000, STALL_SECONDS = 30 };

const char fetch_base[] = "https://raw.githubusercontent.com/openai/grade-school-math/"
                          "3101c7d5072418e28b9008a6636bde82a006892c/grade_school_math/data";

/* One file on its way. */
struct transfer {
    const struct fetch_options *o;
    const struct dataset_file *file;
    const char *path; /* in an arena: errors point to it */
    char part[PATH];
    int fd;
    struct sha256 hash;
    size_t bytes;
    int write_error; /* errno */
    bool too_long;
};

const char *fetch_cache(struct arena *arena, struct errs *errs)
{
    const char *folder;
    char path[PATH];

    if (!cache_path("gsm8k", path, sizeof path)) {
        (void)errs_add(errs, ERR_CONFIG, NOWHERE,
                       "neither XDG_CACHE_HOME nor HOME is an absolute path: name a folder with "
                       "--data");
        return NULL;
    }
    folder = arena_strdup(arena, path);
    if (!folder)
        (void)errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the cache's path");
    return folder;
}

/* Write all of it. false: errno says why not. */
static bool write_all(int fd, const char *data, size_t size)
{
    while (size) {
        ssize_t n = write(fd, data, size);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        data += n;
        size -= (size_t)n;
    }
    return true;
}

static size_t on_data(char *data, size_t one, size_t size, void *ctx)
{
    struct transfer *t = ctx;

    (void)one;
    if (size > t->file->bytes - t->bytes) {
        t->too_long = true;
        return 0;
    }
    if (!write_all(t->fd, data, size)) {
        t->write_error = errno;
        return 0;
    }
    sha256_add(&t->hash, data, size);
    t->bytes += size;
    return size;
}

static int on_progress(void *ctx, curl_off_t total, curl_off_t now, curl_off_t up_total,
                       curl_off_t up_now)
{
    const struct transfer *t = ctx;

    (void)total;
    (void)now;
    (void)up_total;
    (void)up_now;
    if (t->o->progress)
        t->o->progress(t->o->ctx, t->file, t->bytes, false);
    return t->o->interrupted && *t->o->interrupted;
}

/* Of the regular file `path`: its size and hash. false: errno says why not. */
static bool hash_file(const char *path, size_t *bytes, char hex[SHA256_HEX])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct sha256 hash;
    char piece[PIECE];
    ssize_t n = -1;

    *bytes = 0;
    if (fd < 0)
        return false;
    sha256_init(&hash);
    while ((n = read(fd, piece, sizeof piece)) > 0) {
        sha256_add(&hash, piece, (size_t)n);
        *bytes += (size_t)n;
    }
    (void)close(fd);
    (void)sha256_end(&hash, hex);
    return !n;
}

bool fetch_is_there(const char *folder, const struct dataset_file *file)
{
    char path[PATH], hex[SHA256_HEX];
    size_t bytes;
    int n = snprintf(path, sizeof path, "%s/%s", folder, file->name);

    return n > 0 && n < PATH && hash_file(path, &bytes, hex) && bytes == file->bytes &&
           !strcmp(hex, file->sha256);
}

/* The folder and those it lies in. */
static enum err_code make_folder(const char *folder, struct errs *errs)
{
    char path[PATH];
    size_t length = strlen(folder);

    if (!length || length >= sizeof path)
        return errs_add(errs, ERR_CONFIG, NOWHERE, "the folder's path is empty or too long");
    memcpy(path, folder, length + 1);
    for (size_t i = 1; i <= length; i++) {
        char was = path[i];

        if (was != '/' && was != '\0')
            continue;
        path[i] = '\0';
        if (mkdir(path, 0777) && errno != EEXIST)
            return errs_add(errs, ERR_IO, place_at(folder, 0, 0), "cannot be made: %s",
                            strerror(errno));
        path[i] = was;
    }
    return ERR_NONE;
}

/* Why nothing, or not all, came. */
static enum err_code not_come(const struct transfer *t, CURLcode code, long status, const char *why,
                              struct errs *errs)
{
    struct place at = place_at(t->path, 0, 0);

    if (t->o->interrupted && *t->o->interrupted)
        return errs_add(errs, ERR_INFRA, at, "the download was interrupted");
    if (t->write_error)
        return errs_add(errs, ERR_IO, at, "cannot be written: %s", strerror(t->write_error));
    if (t->too_long || code == CURLE_FILESIZE_EXCEEDED)
        return errs_add(errs, ERR_CONFIG, at, "not GSM8K's: more than %zu bytes came",
                        t->file->bytes);
    if (code == CURLE_OK)
        return errs_add(errs, ERR_INFRA, at,
                        "%.150s/%s answers with HTTP status %ld (redirects are not followed)",
                        t->o->base, t->file->name, status);
    return errs_add(errs, ERR_INFRA, at, "%.160s/%s did not come: %.90s", t->o->base, t->file->name,
                    why[0] ? why : curl_easy_strerror(code));
}

static bool set_up(CURL *curl, struct transfer *t, const char *url, char *why)
{
    return !curl_easy_setopt(curl, CURLOPT_URL, url) &&
           !curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "https,http") &&
           !curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L) &&
           !curl_easy_setopt(curl, CURLOPT_USERAGENT, "humcheck") &&
           !curl_easy_setopt(curl, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)t->file->bytes) &&
           !curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) &&
           !curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS) &&
           !curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, (long)STALL_BYTES) &&
           !curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)STALL_SECONDS) &&
           !curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why) &&
           !curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data) &&
           !curl_easy_setopt(curl, CURLOPT_WRITEDATA, t) &&
           !curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L) &&
           !curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress) &&
           !curl_easy_setopt(curl, CURLOPT_XFERINFODATA, t);
}

static enum err_code download(CURL *curl, struct transfer *t, struct errs *errs)
{
    char url[PATH], why[CURL_ERROR_SIZE] = "";
    int n = snprintf(url, sizeof url, "%s/%s", t->o->base, t->file->name);
    long status = 0;
    CURLcode code;

    if (n < 0 || n >= (int)sizeof url)
        return errs_add(errs, ERR_CONFIG, NOWHERE, "the address is too long");
    if (!set_up(curl, t, url, why))
        return errs_add(errs, ERR_INFRA, NOWHERE, "libcurl refuses its settings");
    code = curl_easy_perform(curl);
    (void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    if (code || status != 200)
        return not_come(t, code, status, why, errs);
    return ERR_NONE;
}

/* The part is whole, on the disk and GSM8K's: put it in its place. */
static enum err_code keep(struct transfer *t, struct errs *errs)
{
    struct place at = place_at(t->path, 0, 0);
    char hex[SHA256_HEX];

    (void)sha256_end(&t->hash, hex);
    if (t->bytes != t->file->bytes || strcmp(hex, t->file->sha256) != 0)
        return errs_add(errs, ERR_CONFIG, at,
                        "not GSM8K's: %zu bytes with SHA-256 %s came, not %zu with %s", t->bytes,
                        hex, t->file->bytes, t->file->sha256);
    if (fchmod(t->fd, 0644) || fsync(t->fd) || rename(t->part, t->path))
        return errs_add(errs, ERR_IO, at, "cannot be written: %s", strerror(errno));
    if (t->o->progress)
        t->o->progress(t->o->ctx, t->file, t->bytes, true);
    return ERR_NONE;
}

static enum err_code fetch_file(CURL *curl, const struct fetch_options *o,
                                const struct dataset_file *file, struct arena *arena,
                                struct errs *errs)
{
    struct transfer t = {
        .o = o, .file = file, .path = arena_printf(arena, "%s/%s", o->folder, file->name)};
    int n = snprintf(t.part, sizeof t.part, "%s/.%s.XXXXXX", o->folder, file->name);
    enum err_code rc;

    if (!t.path)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for a download");
    if (n < 0 || n >= PATH)
        return errs_add(errs, ERR_CONFIG, NOWHERE, "the folder's path is too long");
    t.fd = mkstemp(t.part);
    if (t.fd < 0)
        return errs_add(errs, ERR_IO, NOWHERE, "a file in %.200s cannot be made: %s", o->folder,
                        strerror(errno));
    sha256_init(&t.hash);
    rc = download(curl, &t, errs);
    if (!rc)
        rc = keep(&t, errs);
    (void)close(t.fd);
    if (rc)
        (void)unlink(t.part);
    return rc;
}

static enum err_code fetch_missing(CURL *curl, const struct fetch_options *o, struct arena *arena,
                                   struct errs *errs)
{
    const struct dataset_file *files = o->files ? o->files : dataset_files;
    size_t count = o->files ? o->file_count : DATASET_FILES;
    enum err_code first = ERR_NONE;

    for (size_t i = 0; i < count; i++) {
        const struct dataset_file *file = &files[i];
        enum err_code rc;

        if (fetch_is_there(o->folder, file)) {
            if (o->progress)
                o->progress(o->ctx, file, file->bytes, true);
            continue;
        }
        rc = fetch_file(curl, o, file, arena, errs);
        first = first ? first : rc;
        if (rc && o->interrupted && *o->interrupted)
            break;
    }
    return first;
}

enum err_code fetch_gsm8k(const struct fetch_options *o, struct arena *arena, struct errs *errs)
{
    enum err_code rc;
    CURL *curl;

    if (strncmp(o->base, "https://", 8) != 0 && strncmp(o->base, "http://", 7) != 0)
        return errs_add(errs, ERR_CONFIG, NOWHERE,
                        "'%.150s' is no address that begins with https:// or http://", o->base);
    TRY(make_folder(o->folder, errs));
    if (curl_global_init(CURL_GLOBAL_DEFAULT))
        return errs_add(errs, ERR_INFRA, NOWHERE, "libcurl cannot be started");
    curl = curl_easy_init();
    if (!curl) {
        curl_global_cleanup();
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for a download");
    }
    rc = fetch_missing(curl, o, arena, errs);
    curl_easy_cleanup(curl);
    curl_global_cleanup();
    return rc;
}
