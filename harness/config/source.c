#include "harness/config/source.h"

#include "harness/core/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum fault { NUL_BYTE, NOT_UTF8, CONTROL, LONE_CR, LINE_BREAK, MARK, TAB, FAULT_COUNT };

/* "BEFORE" and, with digits, the character's number and "AFTER". */
/* clang-format off */
static const struct {
    const char *before;
    int digits;
    const char *after;
} sentences[FAULT_COUNT] = {
    [NUL_BYTE]   = {"a NUL byte: this is not a text file", 0, ""},
    [NOT_UTF8]   = {"invalid UTF-8 (byte 0x", 2, "): save the file as UTF-8"},
    [CONTROL]    = {"the control character U+", 4, " is not allowed"},
    [LONE_CR]    = {"a carriage return without a line feed: end lines with LF or CR LF", 0, ""},
    [LINE_BREAK] = {"the line break U+", 4, " is not allowed: end lines with LF or CR LF"},
    [MARK]       = {"a byte order mark is allowed at the start of the file only", 0, ""},
    [TAB]        = {"tabs may not indent YAML: use spaces", 0, ""},
};
/* clang-format on */

struct scan {
    struct place at[FAULT_COUNT]; /* of the first of each fault */
    uint32_t c[FAULT_COUNT];      /* its character, or byte */
    size_t count[FAULT_COUNT];
};

static void note(struct scan *s, enum fault f, struct place at, uint32_t c)
{
    if (!s->count[f]++) {
        s->at[f] = at;
        s->c[f] = c;
    }
}

/* Which fault character c is, followed by the bytes `rest`; FAULT_COUNT: none. */
static enum fault fault_of(uint32_t c, const char *rest, size_t left, bool indent)
{
    if (c == '\t')
        return indent ? TAB : FAULT_COUNT;
    if (c == '\n')
        return FAULT_COUNT;
    if (c == '\r')
        return left && *rest == '\n' ? FAULT_COUNT : LONE_CR;
    if (!c)
        return NUL_BYTE;
    if (c == 0x85 || c == 0x2028 || c == 0x2029)
        return LINE_BREAK;
    if (c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xfffe || c == 0xffff)
        return CONTROL;
    return c == 0xfeff ? MARK : FAULT_COUNT;
}

static void scan_text(const struct source *src, struct scan *s)
{
    struct place at = place_at(src->name, 1, 1);
    bool indent = true;

    for (size_t i = 0; i < src->size;) {
        uint32_t c = 0;
        size_t len = utf8_next(src->text + i, src->size - i, &c);
        enum fault f;

        if (len)
            f = fault_of(c, src->text + i + len, src->size - i - len, indent);
        else
            f = NOT_UTF8;
        if (f != FAULT_COUNT)
            note(s, f, at, len ? c : (unsigned char)src->text[i]);
        i += len ? len : 1;
        indent = c == '\n' || (indent && (c == ' ' || c == '\t'));
        at.column++;
        if (c == '\n')
            at = place_at(src->name, at.line + 1, 1);
    }
}

static enum err_code report(const struct scan *s, struct errs *errs)
{
    enum err_code rc = ERR_NONE;

    for (int f = 0; f < FAULT_COUNT; f++) {
        char number[16] = "", more[48] = "";

        if (!s->count[f])
            continue;
        if (sentences[f].digits)
            (void)snprintf(number, sizeof number, "%0*X", sentences[f].digits, (unsigned)s->c[f]);
        if (s->count[f] > 1)
            (void)snprintf(more, sizeof more, " (and %zu more like it)", s->count[f] - 1);
        rc = errs_add(errs, ERR_CONFIG, s->at[f], "%s%s%s%s", sentences[f].before, number,
                      sentences[f].after, more);
    }
    return rc;
}

static bool find_lines(struct source *s, struct arena *arena)
{
    size_t *lines, count = 1;

    for (size_t i = 0; i < s->size; i++)
        count += s->text[i] == '\n';
    lines = arena_alloc(arena, count, sizeof *lines);
    if (!lines)
        return false;
    lines[0] = 0;
    s->line_count = 1;
    for (size_t i = 0; i < s->size; i++)
        if (s->text[i] == '\n')
            lines[s->line_count++] = i + 1;
    s->lines = lines;
    return true;
}

enum err_code source_check(const char *name, const char *text, size_t size, struct arena *arena,
                           struct source *out, struct errs *errs)
{
    struct scan scan = {0};
    size_t mark = size >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0;

    *out = (struct source){.name = name, .text = text + mark, .size = size - mark};
    if (size > SOURCE_LIMIT)
        return errs_add(errs, ERR_CONFIG, place_at(name, 0, 0), "the file is larger than 1 MiB");
    scan_text(out, &scan);
    TRY(report(&scan, errs));
    if (!find_lines(out, arena))
        return errs_add(errs, ERR_NOMEM, place_at(name, 0, 0), "no memory for the file's lines");
    return ERR_NONE;
}

const char *source_at(struct source *s, size_t line, size_t column, size_t *left)
{
    if (line != s->last.line || column < s->last.column) {
        s->last.line = line;
        s->last.column = 0;
        s->last.offset = line < s->line_count ? s->lines[line] : s->size;
    }
    while (s->last.column < column && s->last.offset < s->size) {
        uint32_t c;

        s->last.offset += utf8_next(s->text + s->last.offset, s->size - s->last.offset, &c);
        s->last.column++;
    }
    *left = s->size - s->last.offset;
    return s->text + s->last.offset;
}

/* Bytes read into buf, of `size` at most; -1: errno. */
static ssize_t read_all(int fd, char *buf, size_t size)
{
    size_t used = 0;

    while (used < size) {
        ssize_t got = read(fd, buf + used, size - used);

        if (got < 0 && errno != EINTR)
            return -1;
        if (!got)
            break;
        used += got > 0 ? (size_t)got : 0;
    }
    return (ssize_t)used;
}

static const char *read_fd(int fd, struct arena *arena, const char **text, size_t *size,
                           enum err_code *code)
{
    struct stat st;
    char *buf;
    ssize_t got;

    *code = ERR_CONFIG;
    if (!fstat(fd, &st) && !S_ISREG(st.st_mode))
        return "it is not a regular file";
    *code = ERR_NOMEM;
    buf = arena_alloc(arena, SOURCE_LIMIT + 1, 1);
    if (!buf)
        return "there is no memory for it";
    *code = ERR_IO;
    got = read_all(fd, buf, SOURCE_LIMIT + 1);
    if (got < 0)
        return strerror(errno);
    *code = ERR_CONFIG;
    if (got > SOURCE_LIMIT)
        return "it is larger than 1 MiB";
    *code = ERR_NONE;
    *text = buf;
    *size = (size_t)got;
    return NULL;
}

/* O_NONBLOCK: a FIFO without a writer must not hang the program before fstat has refused it. */
const char *source_read(const char *path, struct arena *arena, const char **text, size_t *size,
                        enum err_code *code)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const char *problem;

    *code = ERR_CONFIG;
    if (fd < 0)
        return strerror(errno);
    problem = read_fd(fd, arena, text, size, code);
    (void)close(fd);
    return problem;
}
