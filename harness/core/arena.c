#define _DEFAULT_SOURCE /* NOLINT: MAP_ANONYMOUS and MAP_NORESERVE are not in POSIX.1-2008 */

#include "harness/core/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGN = 64 };

bool arena_init(struct arena *a, size_t limit)
{
    void *p;

    *a = (struct arena){.limit = limit};
    if (!limit)
        return true;
    p = mmap(NULL, limit, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
             0);
    if (p == MAP_FAILED) {
        a->limit = 0;
        return false;
    }
    a->base = p;
    return true;
}

void arena_free(struct arena *a)
{
    if (a->base)
        (void)munmap(a->base, a->limit);
    *a = (struct arena){0};
}

void arena_reset(struct arena *a)
{
    a->used = 0;
}

void *arena_alloc(struct arena *a, size_t n, size_t size)
{
    size_t bytes;
    void *p;

    if (__builtin_mul_overflow(n, size, &bytes) || bytes > SIZE_MAX - ALIGN)
        return NULL;
    if (!bytes)
        bytes = 1; /* NULL means failure only, and two results are never the same */
    if (bytes > a->limit - a->used)
        return NULL;
    p = a->base + a->used;
    bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    a->used = bytes > a->limit - a->used ? a->limit : a->used + bytes;
    if (a->used > a->peak)
        a->peak = a->used;
    return p;
}

void *arena_zalloc(struct arena *a, size_t n, size_t size)
{
    void *p = arena_alloc(a, n, size);

    return p ? memset(p, 0, n * size) : NULL;
}

char *arena_strdup(struct arena *a, const char *s)
{
    size_t n = strlen(s) + 1;
    char *p = arena_alloc(a, n, 1);

    return p ? memcpy(p, s, n) : NULL;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list ap;
    char *p;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    p = n < 0 ? NULL : arena_alloc(a, (size_t)n + 1, 1);
    if (!p)
        return NULL;
    va_start(ap, fmt);
    (void)vsnprintf(p, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return p;
}
