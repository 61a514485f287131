#include "harness/eval/dataset.h"

#include "harness/core/utf8.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* clang-format off */
const struct dataset_file dataset_files[DATASET_FILES] = {
    [DATASET_TRAIN] = {"train.jsonl", 4166206, 7473,
        "17f347dc51477c50d4efb83959dbb7c56297aba886e5544ee2aaed3024813465"},
    [DATASET_TEST] = {"test.jsonl", 749738, 1319,
        "3730d312f6e3440559ace48831e51066acaca737f6eabec99bccb9e4b3c39d14"},
};
/* clang-format on */

enum { PIECE = 1 << 16 };

const char *dataset_label(const char *answer)
{
    static const char mark[] = "#### ";
    const char *label = NULL;

    for (const char *at = strstr(answer, mark); at; at = strstr(at + 1, mark))
        label = at + sizeof mark - 1;
    return label && *label ? label : NULL;
}

/* The string `key` of the object, copied; NULL: there is none. */
static const char *take(const cJSON *object, const char *key, struct arena *arena, bool *full)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    const char *copy;

    if (!cJSON_IsString(item) || !item->valuestring)
        return NULL;
    copy = arena_strdup(arena, item->valuestring);
    *full = *full || !copy;
    return copy;
}

static enum err_code no_room(struct place at, struct errs *errs)
{
    return errs_add(errs, ERR_NOMEM, at, "the data set does not fit in its memory");
}

/* Is it UTF-8, and free of NUL in either spelling? (A NUL would cut the text it stands in.) */
static bool is_text(const char *line, size_t size)
{
    static const char nul[] = "\\u0000";

    for (size_t i = 0; i < size;) {
        uint32_t c;
        size_t len = utf8_next(line + i, size - i, &c);

        if (!len || !c || (size - i >= sizeof nul - 1 && !memcmp(line + i, nul, sizeof nul - 1)))
            return false;
        i += len;
    }
    return true;
}

static enum err_code parse_line(struct place at, const char *line, size_t size, struct arena *arena,
                                struct dataset_row *row, struct errs *errs)
{
    cJSON *object;
    bool full = false;

    if (!is_text(line, size))
        return errs_add(errs, ERR_CONFIG, at, "the line is not UTF-8 text without NUL");
    object = cJSON_ParseWithLength(line, size);
    row->question = take(object, "question", arena, &full);
    row->answer = take(object, "answer", arena, &full);
    cJSON_Delete(object);
    if (full)
        return no_room(at, errs);
    if (!row->question || !row->answer)
        return errs_add(errs, ERR_CONFIG, at,
                        "the line is not a JSON object with the strings 'question' and 'answer'");
    row->label = dataset_label(row->answer);
    if (!row->label)
        return errs_add(errs, ERR_CONFIG, at, "the answer does not end with '#### N'");
    return ERR_NONE;
}

const char *dataset_line(const struct dataset_row *row, struct arena *arena)
{
    cJSON *object = cJSON_CreateObject();
    bool made = cJSON_AddStringToObject(object, "question", row->question) &&
                cJSON_AddStringToObject(object, "answer", row->answer);
    char *text = made ? cJSON_PrintUnformatted(object) : NULL;
    const char *line = text ? arena_strdup(arena, text) : NULL;

    cJSON_free(text);
    cJSON_Delete(object);
    return line;
}

static size_t count_lines(const char *text, size_t size)
{
    size_t n = size && text[size - 1] != '\n';

    for (size_t i = 0; i < size; i++)
        n += text[i] == '\n';
    return n;
}

enum err_code dataset_parse(const char *name, const char *text, size_t size, struct arena *arena,
                            struct dataset_rows *out, struct errs *errs)
{
    struct place at = place_at(name, 0, 1);
    const char *end = text + size;

    *out = (struct dataset_rows){
        .row = arena_alloc(arena, count_lines(text, size), sizeof(struct dataset_row))};
    if (!out->row)
        return no_room(at, errs);
    (void)sha256_hex(text, size, out->sha256);
    for (const char *line = text; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));

        stop = stop ? stop : end;
        at.line++;
        if (line == stop || *line != '#')
            TRY(parse_line(at, line, (size_t)(stop - line), arena, &out->row[out->count++], errs));
        line = stop < end ? stop + 1 : end;
    }
    return ERR_NONE;
}

/* The regular file at `path`, hashed as far as it goes; its first `want` bytes are kept. */
static enum err_code read_file(const char *path, char *text, size_t want, size_t *size,
                               char hex[SHA256_HEX], struct errs *errs)
{
    struct sha256 hash;
    struct stat st;
    char piece[PIECE];
    ssize_t n = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    sha256_init(&hash);
    *size = 0;
    if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode))
        while ((n = read(fd, piece, sizeof piece)) > 0) {
            size_t room = *size < want ? want - *size : 0;

            memcpy(text + want - room, piece, (size_t)n < room ? (size_t)n : room);
            sha256_add(&hash, piece, (size_t)n);
            *size += (size_t)n;
        }
    else if (fd >= 0)
        errno = EINVAL;
    if (n)
        (void)errs_add(errs, ERR_IO, place_at(path, 0, 0), "cannot be read: %s", strerror(errno));
    if (fd >= 0)
        (void)close(fd);
    (void)sha256_end(&hash, hex);
    return n ? ERR_IO : ERR_NONE;
}

static enum err_code load_file(const char *folder, const struct dataset_file *file,
                               struct arena *arena, struct dataset_rows *out, struct errs *errs)
{
    const char *path = arena_printf(arena, "%s/%s", folder, file->name);
    char *text = arena_alloc(arena, file->bytes, 1);
    char hex[SHA256_HEX];
    size_t size;

    if (!path || !text)
        return no_room(NOWHERE, errs);
    TRY(read_file(path, text, file->bytes, &size, hex, errs));
    if (size != file->bytes || strcmp(hex, file->sha256) != 0)
        return errs_add(errs, ERR_CONFIG, place_at(path, 0, 0),
                        "not GSM8K's: %zu bytes with SHA-256 %s, not %zu with %s", size, hex,
                        file->bytes, file->sha256);
    TRY(dataset_parse(path, text, size, arena, out, errs));
    if (out->count != file->rows)
        return errs_add(errs, ERR_CONFIG, place_at(path, 0, 0), "has %zu rows, not %zu", out->count,
                        file->rows);
    return ERR_NONE;
}

enum err_code dataset_load(const char *folder, struct arena *arena, struct dataset *out,
                           struct errs *errs)
{
    enum err_code train, test;

    *out = (struct dataset){0};
    train = load_file(folder, &dataset_files[DATASET_TRAIN], arena, &out->train, errs);
    test = load_file(folder, &dataset_files[DATASET_TEST], arena, &out->test, errs);
    return train ? train : test;
}
