#include "harness/core/utf8.h"

/* Lead bytes of each length, and the smallest character that needs it (smaller ones are
 * overlong). */
/* clang-format off */
static const struct {
    unsigned char mask, lead;
    uint32_t first;
} forms[] = {
    {0x80, 0x00, 0x0},
    {0xe0, 0xc0, 0x80},
    {0xf0, 0xe0, 0x800},
    {0xf8, 0xf0, 0x10000},
};
/* clang-format on */
enum { FORM_COUNT = sizeof forms / sizeof forms[0] };

size_t utf8_next(const char *s, size_t n, uint32_t *c)
{
    const unsigned char *u = (const unsigned char *)s;
    size_t len = 0;
    uint32_t v;

    if (!n)
        return 0;
    while (len < FORM_COUNT && (u[0] & forms[len].mask) != forms[len].lead)
        len++;
    if (len == FORM_COUNT || len >= n)
        return 0;
    v = u[0] & (unsigned char)~forms[len].mask;
    for (size_t i = 1; i <= len; i++) {
        if ((u[i] & 0xc0) != 0x80)
            return 0;
        v = v << 6 | (u[i] & 0x3fu);
    }
    if (v < forms[len].first || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff))
        return 0;
    *c = v;
    return len + 1;
}

size_t utf8_count(const char *s, size_t n)
{
    size_t count = 0;

    for (size_t i = 0; i < n; count++) {
        uint32_t c;
        size_t len = utf8_next(s + i, n - i, &c);

        i += len ? len : 1;
    }
    return count;
}
