#include "harness/core/err.h"

#include "harness/core/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct place NOWHERE = {0};

/* clang-format off */
static const int exit_codes[] = {
    [ERR_NONE]   = 0,
    [ERR_USAGE]  = 2,
    [ERR_CONFIG] = 2,
    [ERR_IO]     = 3,
    [ERR_NOMEM]  = 3,
    [ERR_INFRA]  = 3,
};

/* Characters that would change a line of text instead of standing in it: controls (C0, DEL, C1),
 * zero width and direction marks, line and paragraph separators, direction overrides and isolates,
 * the byte order mark. */
static const struct {
    uint32_t first, last;
} invisible[] = {
    {0x0, 0x1f},      {0x7f, 0x9f},     {0x200b, 0x200f},
    {0x2028, 0x202e}, {0x2066, 0x2069}, {0xfeff, 0xfeff},
};
/* clang-format on */
_Static_assert(sizeof exit_codes / sizeof exit_codes[0] == ERR_COUNT, "one row a code");

enum { PIECE = 16 };

static int is_invisible(uint32_t c)
{
    for (size_t i = 0; i < sizeof invisible / sizeof invisible[0]; i++)
        if (c >= invisible[i].first && c <= invisible[i].last)
            return 1;
    return 0;
}

/* One character of s (n bytes left) as it is shown, into `piece`; returns how many bytes it
 * took. */
static size_t show(const char *s, size_t n, char piece[PIECE])
{
    uint32_t c = 0;
    size_t len = utf8_next(s, n, &c);

    if (!len)
        (void)snprintf(piece, PIECE, "\\x%02x", (unsigned)(unsigned char)*s);
    else if (c == '\n')
        (void)snprintf(piece, PIECE, "\\n");
    else if (c == '\r')
        (void)snprintf(piece, PIECE, "\\r");
    else if (c == '\t')
        (void)snprintf(piece, PIECE, "\\t");
    else if (is_invisible(c))
        (void)snprintf(piece, PIECE, c < 0x80 ? "\\x%02x" : "\\u%04x", (unsigned)c);
    else
        (void)snprintf(piece, PIECE, "%.*s", (int)len, s);
    return len ? len : 1;
}

/* s on one line, in at most size - 1 bytes; what does not fit ends in "...", between characters. */
static void escape(char *out, size_t size, const char *s)
{
    size_t n = strlen(s), used = 0, cut = 0;

    while (n) {
        char piece[PIECE];
        size_t took = show(s, n, piece), len = strlen(piece);

        if (used + len >= size) {
            (void)snprintf(out + cut, size - cut, "...");
            return;
        }
        memcpy(out + used, piece, len);
        used += len;
        if (used + sizeof "..." <= size)
            cut = used;
        s += took;
        n -= took;
    }
    out[used] = '\0';
}

/* Room for one more; NULL if there is none, and then the error is only counted. */
static struct err *grow(struct errs *e)
{
    if (e->count == ERRS_MAX)
        return NULL;
    if (e->count == e->capacity) {
        size_t capacity = e->capacity ? 2 * e->capacity : 8;
        struct err *items = realloc(e->items, capacity * sizeof *items);

        if (!items)
            return NULL;
        e->items = items;
        e->capacity = capacity;
    }
    return &e->items[e->count++];
}

enum err_code errs_add(struct errs *e, enum err_code code, struct place at, const char *fmt, ...)
{
    char text[4 * ERR_TEXT]; /* longer than what is kept, so that a cut is seen */
    struct err *item = grow(e);
    va_list ap;

    if (!item) {
        e->dropped++;
        return code;
    }
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    item->code = code;
    item->at = at;
    escape(item->text, sizeof item->text, text);
    return code;
}

void errs_free(struct errs *e)
{
    free(e->items);
    *e = (struct errs){0};
}

const char *err_format(const struct err *e, char *buf, size_t size)
{
    char file[ERR_TEXT];

    escape(file, sizeof file, e->at.file ? e->at.file : "");
    if (e->at.file && e->at.line)
        (void)snprintf(buf, size, "%s:%d:%d: %s", file, e->at.line, e->at.column, e->text);
    else if (e->at.file)
        (void)snprintf(buf, size, "%s: %s", file, e->text);
    else
        (void)snprintf(buf, size, "%s", e->text);
    return buf;
}

int err_exit_code(enum err_code code)
{
    return exit_codes[code];
}
