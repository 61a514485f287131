#include "harness/report/escape.h"

#include "harness/core/utf8.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { REPLACED_MAX = 12 };

#define INVALID UINT32_MAX /* stands for a byte that is not UTF-8 */

/* Writes what stands in `out` for the character of `n` bytes at s. */
typedef void replace_fn(const char *s, size_t n, uint32_t cp, char out[REPLACED_MAX]);

static const char *escape(const char *s, replace_fn *replace, char *buf, size_t size)
{
    size_t used = 0, left = strlen(s);

    while (left) {
        char out[REPLACED_MAX] = "";
        uint32_t cp = INVALID;
        size_t n = utf8_next(s, left, &cp), length;

        n = n ? n : 1;
        memcpy(out, s, n);
        replace(s, n, cp, out);
        length = strlen(out);
        if (used + length >= size)
            break;
        memcpy(buf + used, out, length);
        used += length;
        s += n;
        left -= n;
    }
    buf[used] = '\0';
    return buf;
}

static bool hides_or_reorders(uint32_t cp)
{
    return (cp >= 0x200b && cp <= 0x200f) || (cp >= 0x2028 && cp <= 0x202e) ||
           (cp >= 0x2066 && cp <= 0x2069) || cp == 0xfeff;
}

static void replace_terminal(const char *s, size_t n, uint32_t cp, char out[REPLACED_MAX])
{
    if (cp == INVALID || (n == 1 && (cp < 0x20 || cp == 0x7f)))
        (void)snprintf(out, REPLACED_MAX, "\\x%02x", (unsigned)(unsigned char)s[0]);
    else if ((cp >= 0x80 && cp <= 0x9f) || hides_or_reorders(cp))
        (void)snprintf(out, REPLACED_MAX, "\\u%04" PRIx32, cp);
}

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

static void replace_json(const char *s, size_t n, uint32_t cp, char out[REPLACED_MAX])
{
    (void)s;
    (void)n;
    if (cp == INVALID)
        memcpy(out, replacement, sizeof replacement);
}

/* Extensible Markup Language 1.0, fifth edition, production [2]. */
static bool xml_char(uint32_t cp)
{
    return cp == 0x9 || cp == 0xa || cp == 0xd || (cp >= 0x20 && cp <= 0xd7ff) ||
           (cp >= 0xe000 && cp <= 0xfffd) || (cp >= 0x10000 && cp <= 0x10ffff);
}

static void replace_xml(const char *s, size_t n, uint32_t cp, char out[REPLACED_MAX])
{
    (void)s;
    (void)n;
    if (!xml_char(cp))
        memcpy(out, replacement, sizeof replacement);
}

const char *escape_terminal(const char *s, char *buf, size_t size)
{
    return escape(s, replace_terminal, buf, size);
}

const char *escape_json(const char *s, char *buf, size_t size)
{
    return escape(s, replace_json, buf, size);
}

const char *escape_xml(const char *s, char *buf, size_t size)
{
    return escape(s, replace_xml, buf, size);
}
