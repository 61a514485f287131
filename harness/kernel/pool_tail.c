#include "harness/kernel/pool_tail.h"

#include "harness/kernel/pool_wire.h"

#include <string.h>

/* How many of the bytes lie before the case that is running: up to the last mark. */
static size_t stale(const char *text, size_t n)
{
    while (n > 0 && text[n - 1] != WIRE_CASE_MARK)
        n--;
    return n;
}

void tail_keep(struct tail *t, const char *text, size_t n)
{
    size_t skip = stale(text, n);

    if (skip > 0)
        t->used = 0;
    text += skip;
    n -= skip;
    if (t->used + n > TAIL_BYTES) {
        size_t drop = t->used + n - TAIL_BYTES;

        t->used -= drop;
        memmove(t->bytes, t->bytes + drop, t->used);
    }
    memcpy(t->bytes + t->used, text, n);
    t->used += n;
}

const char *tail_words(const struct tail *t, char buf[TAIL_WORDS])
{
    size_t at = TAIL_WORDS - 1;

    buf[at] = '\0';
    for (size_t i = t->used; i > 0 && at > 0; i--) {
        char c = t->bytes[i - 1];

        if (c > ' ' && c <= '~')
            buf[--at] = c;
        else if (buf[at] != '\0' && buf[at] != ' ')
            buf[--at] = ' ';
    }
    return buf + at + (buf[at] == ' ');
}
