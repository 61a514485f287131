#include "harness/derive/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { FIRST = 16384 };

static bool grow(struct text *t, size_t needed)
{
    size_t room = t->room ? t->room : FIRST;
    char *bytes;

    while (room < needed)
        room *= 2;
    if (room == t->room)
        return true;
    bytes = arena_alloc(t->arena, room, 1);
    if (!bytes)
        return false;
    if (t->size)
        memcpy(bytes, t->bytes, t->size);
    t->bytes = bytes;
    t->room = room;
    return true;
}

static void put(struct text *t, const char *fmt, va_list args)
    __attribute__((format(printf, 2, 0)));

static void put(struct text *t, const char *fmt, va_list args)
{
    va_list again;
    int length;

    va_copy(again, args);
    length = vsnprintf(NULL, 0, fmt, args);
    if (length < 0 || !grow(t, t->size + (size_t)length + 2)) {
        t->lost = true;
    } else {
        (void)vsnprintf(t->bytes + t->size, t->room - t->size, fmt, again);
        t->size += (size_t)length;
    }
    va_end(again);
}

void text_part(struct text *t, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    put(t, fmt, args);
    va_end(args);
}

void text_line(struct text *t, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    put(t, fmt, args);
    va_end(args);
    text_part(t, "\n");
}

const char *text_end(struct text *t, size_t *size)
{
    if (t->lost || !grow(t, t->size + 1))
        return NULL;
    t->bytes[t->size] = '\0';
    *size = t->size;
    return t->bytes;
}
