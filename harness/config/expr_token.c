#include "harness/config/expr_code.h"

#include "harness/core/utf8.h"

#include <stdio.h>
#include <string.h>

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The sign at s, of n bytes: its length; 0: none. */
static size_t sign_length(const char *s, size_t n)
{
    static const char *const two[] = {"==", "!=", "<=", ">="};

    for (size_t i = 0; i < sizeof two / sizeof two[0]; i++)
        if (n >= 2 && !memcmp(s, two[i], 2))
            return 2;
    return strchr("<>+-*/%()[],", *s) ? 1 : 0;
}

struct token expr_token(const char *text, size_t size, size_t from)
{
    size_t i = from + strspn(text + from, " \t\n");
    const char *s = text + i;
    struct token t = {.kind = T_END, .start = i};
    uint32_t c;

    if (i < size && (is_letter(*s) || is_digit(*s))) {
        t.kind = is_digit(*s) ? T_NUMBER : T_NAME;
        while (is_letter(s[t.length]) || is_digit(s[t.length]))
            t.length++;
    } else if (i < size) {
        t.length = sign_length(s, size - i);
        t.kind = t.length ? T_SIGN : T_BAD;
        if (!t.length)
            t.length = utf8_next(s, size - i, &c);
        if (!t.length)
            t.length = 1;
    }
    (void)snprintf(t.word, sizeof t.word, "%.*s", t.length < EXPR_WORD ? (int)t.length : EXPR_WORD,
                   s);
    return t;
}
