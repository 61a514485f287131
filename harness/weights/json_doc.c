#include "harness/weights/json_doc.h"

#include "harness/core/utf8.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* cJSON reads numbers from a buffer of 64 bytes. */
enum { NUMBER_LENGTH = 60 };

#define WHOLE_END 0x1p53 /* below it no two whole numbers are the same double */

/* The first pass: is this JSON at all? Each reader returns whether it may go on; the first thing
 * that is wrong is remembered with its place. */
struct scan {
    const char *text;
    size_t size, at;
    bool natural;
    const char *wrong;
    size_t wrong_at;
};

static bool wrong(struct scan *s, size_t at, const char *what)
{
    if (!s->wrong) {
        s->wrong = what;
        s->wrong_at = at;
    }
    return false;
}

static int peek(const struct scan *s)
{
    return s->at < s->size ? (unsigned char)s->text[s->at] : -1;
}

static void skip_space(struct scan *s)
{
    while (peek(s) == ' ' || peek(s) == '\t' || peek(s) == '\n' || peek(s) == '\r')
        s->at++;
}

static int hex_digit(int c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Behind "\u": four hexadecimal digits; -1 if they are not there. */
static int scan_unit(struct scan *s)
{
    int unit = 0;

    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(peek(s));

        if (digit < 0)
            return -1;
        unit = unit * 16 + digit;
        s->at++;
    }
    return unit;
}

/* Behind the backslash. RFC 8259, section 7; a surrogate is allowed as half of a pair only. */
static bool scan_escape(struct scan *s)
{
    size_t start = s->at - 1;
    int c = peek(s), unit;

    if (c <= 0 || !strchr("\"\\/bfnrtu", c)) /* a NUL would be found at the end of the list */
        return wrong(s, start, "an unknown escape");
    s->at++;
    if (c != 'u')
        return true;
    unit = scan_unit(s);
    if (unit < 0)
        return wrong(s, start, "\\u without four hexadecimal digits");
    if (!unit)
        return wrong(s, start, "a NUL character in a text");
    if (unit < 0xd800 || unit > 0xdfff)
        return true;
    if (unit > 0xdbff || peek(s) != '\\' || s->at + 1 >= s->size || s->text[s->at + 1] != 'u')
        return wrong(s, start, "half of a surrogate pair");
    s->at += 2;
    unit = scan_unit(s);
    return (unit >= 0xdc00 && unit <= 0xdfff) || wrong(s, start, "half of a surrogate pair");
}

static bool scan_text(struct scan *s)
{
    size_t start = s->at;

    if (peek(s) != '"')
        return wrong(s, s->at, "a text in double quotes is expected");
    s->at++;
    while (peek(s) != '"') {
        uint32_t c = 0;
        size_t length = utf8_next(s->text + s->at, s->size - s->at, &c);

        if (s->at >= s->size)
            return wrong(s, start, "a text without an end");
        if (!length)
            return wrong(s, s->at, "a byte that is not UTF-8");
        if (c < 0x20)
            return wrong(s, s->at, "a control character in a text");
        s->at += length;
        if (c == '\\' && !scan_escape(s))
            return false;
    }
    s->at++;
    return true;
}

static size_t scan_digits(struct scan *s)
{
    size_t start = s->at;

    while (peek(s) >= '0' && peek(s) <= '9')
        s->at++;
    return s->at - start;
}

/* RFC 8259, section 6: behind the whole part. */
static bool scan_fraction(struct scan *s)
{
    if (peek(s) == '.') {
        s->at++;
        if (!scan_digits(s))
            return false;
    }
    if (peek(s) != 'e' && peek(s) != 'E')
        return true;
    s->at++;
    if (peek(s) == '+' || peek(s) == '-')
        s->at++;
    return scan_digits(s) != 0;
}

/* No sign, no fraction, no exponent, and the double of cJSON is the number itself. */
static bool is_natural(const struct scan *s, size_t start, size_t digits)
{
    double value = 0.0;

    if (s->at - start != digits)
        return false;
    for (size_t i = start; i < s->at; i++)
        value = value * 10.0 + (s->text[i] - '0');
    return value < WHOLE_END;
}

static bool scan_number(struct scan *s)
{
    size_t start = s->at, digits;

    if (peek(s) == '-')
        s->at++;
    digits = scan_digits(s);
    if (!digits || (digits > 1 && s->text[s->at - digits] == '0') || !scan_fraction(s))
        return wrong(s, start, "this is no number");
    if (s->natural && !is_natural(s, start, digits))
        return wrong(s, start, "a whole number from 0 to 2^53 - 1 is expected");
    return s->at - start <= NUMBER_LENGTH || wrong(s, start, "a number of more than 60 characters");
}

static bool scan_word(struct scan *s, const char *word)
{
    size_t n = strlen(word);

    if (s->size - s->at < n || memcmp(s->text + s->at, word, n) != 0)
        return wrong(s, s->at, "a value is expected");
    s->at += n;
    return true;
}

static bool scan_value(struct scan *s, int depth);

/* Members of a list (close ']') or an object ('}'), from the opening bracket on. */
static bool scan_members(struct scan *s, char close, int depth)
{
    size_t start = s->at++;

    if (!depth)
        return wrong(s, start, "more than 64 levels of brackets");
    skip_space(s);
    if (peek(s) == close) {
        s->at++;
        return true;
    }
    for (;;) {
        skip_space(s);
        if (close == '}') {
            if (!scan_text(s))
                return false;
            skip_space(s);
            if (peek(s) != ':')
                return wrong(s, s->at, "a colon is expected");
            s->at++;
        }
        if (!scan_value(s, depth - 1))
            return false;
        if (peek(s) == close) {
            s->at++;
            return true;
        }
        if (peek(s) != ',')
            return wrong(s, s->at, "a comma or the closing bracket is expected");
        s->at++;
    }
}

static bool scan_one(struct scan *s, int depth)
{
    switch (peek(s)) {
    case '{':
        return scan_members(s, '}', depth);
    case '[':
        return scan_members(s, ']', depth);
    case '"':
        return scan_text(s);
    case 't':
        return scan_word(s, "true");
    case 'f':
        return scan_word(s, "false");
    case 'n':
        return scan_word(s, "null");
    case -1:
        return wrong(s, s->at, "the text ends where a value is expected");
    default:
        return scan_number(s);
    }
}

static bool scan_value(struct scan *s, int depth)
{
    skip_space(s);
    if (!scan_one(s, depth))
        return false;
    skip_space(s);
    return true;
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

struct build {
    const struct json_source *src;
    struct arena *arena;
    struct errs *errs;
};

static enum err_code no_memory(struct build *b)
{
    return errs_add(b->errs, ERR_NOMEM, place_at(b->src->file, 0, 0),
                    "no memory for the JSON text");
}

/* Keys that stand twice: sorted, equal ones are neighbours. */
static enum err_code check_keys(struct build *b, const struct json *object)
{
    const char **keys = arena_alloc(b->arena, object->count, sizeof *keys);
    enum err_code rc = ERR_NONE;
    size_t n = 0;

    if (!keys)
        return no_memory(b);
    for (const struct json *m = object->first; m; m = m->next)
        keys[n++] = m->key;
    qsort(keys, n, sizeof *keys, compare_keys);
    for (size_t i = 1; i < n; i++)
        if (!strcmp(keys[i - 1], keys[i]))
            rc = errs_add(b->errs, ERR_CONFIG, place_at(b->src->file, 0, 0),
                          "the key '%s' stands twice in one object", keys[i]);
    return rc;
}

static enum json_kind kind_of(const cJSON *c)
{
    if (cJSON_IsBool(c))
        return JSON_BOOL;
    if (cJSON_IsNumber(c))
        return JSON_NUMBER;
    if (cJSON_IsString(c))
        return JSON_TEXT;
    if (cJSON_IsArray(c))
        return JSON_LIST;
    return cJSON_IsObject(c) ? JSON_OBJECT : JSON_NULL;
}

/* Recursion is bounded: the scan has counted the levels. */
static enum err_code build(struct build *b, const cJSON *c, struct json *out)
{
    const struct json **link = &out->first;
    enum err_code rc = ERR_NONE;

    out->kind = kind_of(c);
    out->number = cJSON_IsBool(c) ? cJSON_IsTrue(c) : c->valuedouble;
    out->key = c->string ? arena_strdup(b->arena, c->string) : NULL;
    out->text = out->kind == JSON_TEXT ? arena_strdup(b->arena, c->valuestring) : NULL;
    if ((c->string && !out->key) || (out->kind == JSON_TEXT && !out->text))
        return no_memory(b);
    for (const cJSON *m = c->child; m; m = m->next) {
        struct json *member = ARENA_NEW(b->arena, 1, struct json);
        enum err_code got = member ? build(b, m, member) : no_memory(b);

        rc = rc ? rc : got;
        if (!member)
            return rc;
        *link = member;
        link = &member->next;
        out->count++;
    }
    return out->kind == JSON_OBJECT && !rc ? check_keys(b, out) : rc;
}

enum err_code json_parse(const struct json_source *src, struct arena *arena,
                         const struct json **out, struct errs *errs)
{
    struct scan s = {.text = src->text, .size = src->size, .natural = src->natural};
    struct build b = {src, arena, errs};
    struct json *root = ARENA_NEW(arena, 1, struct json);
    enum err_code rc;
    cJSON *c;

    if (scan_value(&s, JSON_DEPTH) && s.at < s.size)
        (void)wrong(&s, s.at, "something follows the value");
    if (s.wrong)
        return errs_add(errs, ERR_CONFIG, place_at(src->file, 0, 0), "byte %" PRIu64 ": %s",
                        src->at + s.wrong_at, s.wrong);
    c = root ? cJSON_ParseWithLength(src->text, src->size) : NULL;
    if (!c)
        return no_memory(&b);
    rc = build(&b, c, root);
    cJSON_Delete(c);
    *out = root;
    return rc;
}

const struct json *json_get(const struct json *j, const char *key)
{
    if (!j || j->kind != JSON_OBJECT)
        return NULL;
    for (const struct json *m = j->first; m; m = m->next)
        if (!strcmp(m->key, key))
            return m;
    return NULL;
}

const char *json_text(const struct json *j)
{
    return j ? j->text : NULL;
}

bool json_integer(const struct json *j, int64_t *out)
{
    if (!j || j->kind != JSON_NUMBER || !(fabs(j->number) < WHOLE_END))
        return false;
    if (floor(j->number) != j->number)
        return false;
    *out = (int64_t)j->number;
    return true;
}
