#include "harness/eval/number.h"

#include "harness/core/utf8.h"
#include "harness/eval/extract_parts.h"
#include "harness/eval/extract_unicode.h"

#include <inttypes.h>
#include <string.h>

/* clang-format off */
static const struct {
    const char *text;
    bool negative;
} signs[] = {
    {"-", true}, {"+", false},
    {"\xe2\x88\x92", true},  /* U+2212 minus sign */
    {"\xef\xb9\xa3", true},  /* U+FE63 small hyphen-minus */
    {"\xef\xbc\x8d", true},  /* U+FF0D fullwidth hyphen-minus */
    {"\xef\xbc\x8b", false}, /* U+FF0B fullwidth plus sign */
};

static const char *const currencies[] = {
    "\\$", "$",
    "\xe2\x82\xac", /* U+20AC euro */
    "\xc2\xa3",     /* U+00A3 pound */
    "\xc2\xa5",     /* U+00A5 yen */
    "\xe2\x82\xb9", /* U+20B9 rupee */
};

/* Longer ones before those they begin with. */
static const char *const separators[] = {
    ",\\!", ",", "{,}", "\\,", "'",
    "\xe2\x80\x99", /* U+2019 right single quotation mark */
    "\xc2\xa0",     /* U+00A0 no-break space */
    "\xe2\x80\x87", /* U+2007 figure space */
    "\xe2\x80\x89", /* U+2009 thin space */
    "\xe2\x80\xaf", /* U+202F narrow no-break space */
};

static const char *const percents[] = {"%", "\\%"};
/* clang-format on */

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* The first of the words that stands at i, or NULL. */
static const char *word_at(struct span s, size_t i, const char *const *words, size_t count)
{
    for (size_t w = 0; w < count; w++)
        if (span_has(s, i, words[w]))
            return words[w];
    return NULL;
}

/* Length in bytes of the sign at i; 0: none. */
static size_t sign_at(struct span s, size_t i, bool *negative)
{
    for (size_t k = 0; k < COUNT(signs); k++)
        if (span_has(s, i, signs[k].text)) {
            *negative = signs[k].negative;
            return strlen(signs[k].text);
        }
    return 0;
}

/* Length in bytes of the digit at i, and its value; 0: none. */
static size_t digit_at(struct span s, size_t i, int *value)
{
    uint32_t c;
    size_t len;

    if (i >= s.size)
        return 0;
    len = span_char(s, i, &c);
    *value = unicode_digit(c);
    return *value < 0 ? 0 : len;
}

/* The end of the digits at i, at most `most` of them; *count of them. */
static size_t skip_digits(struct span s, size_t i, size_t most, size_t *count)
{
    int value;

    for (*count = 0; *count < most; (*count)++) {
        size_t len = digit_at(s, i, &value);

        if (!len)
            break;
        i += len;
    }
    return i;
}

/* The end of the whole part at i (`whole` of the grammar); i: no digit there. */
static size_t whole_end(struct span s, size_t i)
{
    size_t count, end = skip_digits(s, i, SIZE_MAX, &count);
    const char *separator = word_at(s, end, separators, COUNT(separators));

    if (!count || count > 3 || !separator)
        return end;
    while (span_has(s, end, separator)) {
        size_t next = skip_digits(s, end + strlen(separator), SIZE_MAX, &count);

        if (count != 3)
            break;
        end = next;
    }
    return end;
}

static size_t read_exponent(struct span s, size_t i, int *exponent)
{
    bool negative = false;
    size_t count, begin, end;
    int digit = 0, value = 0;
    uint32_t c = ' ';

    if (!span_has(s, i, "e") && !span_has(s, i, "E"))
        return i;
    begin = i + 1;
    if (span_has(s, begin, "-") || span_has(s, begin, "+"))
        begin += sign_at(s, begin, &negative);
    end = skip_digits(s, begin, SIZE_MAX, &count);
    if (end < s.size)
        (void)span_char(s, end, &c);
    if (!count || count > 2 || unicode_is_word(c))
        return i;
    for (size_t k = begin; k < end;) {
        k += digit_at(s, k, &digit);
        value = 10 * value + digit;
    }
    *exponent = negative ? -value : value;
    return end;
}

/* `("." digits)? exponent?` or `("/" digits)+` behind the whole part that ends at i. */
static size_t read_tail(struct span s, size_t i, struct number *n)
{
    size_t count, end;

    while (span_has(s, i, "/")) {
        end = skip_digits(s, i + 1, SIZE_MAX, &count);
        if (!count)
            break;
        n->denominator = span_cut(s, i + 1, end);
        n->slashes++;
        i = end;
    }
    if (n->slashes)
        return i;
    if (span_has(s, i, ".")) {
        end = skip_digits(s, i + 1, SIZE_MAX, &count);
        if (count) {
            n->fraction = span_cut(s, i + 1, end);
            i = end;
        }
    }
    if (n->whole.size || n->fraction.size)
        i = read_exponent(s, i, &n->exponent);
    return i;
}

static size_t skip_blanks(struct span s, size_t i)
{
    while (span_has(s, i, " ") || span_has(s, i, "\t"))
        i++;
    return i;
}

bool number_at(struct span text, size_t at, bool apart, struct number *n)
{
    struct number read = {.begin = at};
    size_t i = at, sign, end;
    const char *word;

    sign = sign_at(text, i, &read.negative);
    i += sign;
    if (sign && apart)
        i = skip_blanks(text, i);
    word = word_at(text, i, currencies, COUNT(currencies));
    i += word ? strlen(word) : 0;
    if (word && !sign)
        i += sign_at(text, i, &read.negative);
    end = whole_end(text, i);
    read.whole = span_cut(text, i, end);
    end = read_tail(text, end, &read);
    if (!read.whole.size && !read.fraction.size)
        return false;
    word = word_at(text, end, percents, COUNT(percents));
    read.end = end + (word ? strlen(word) : 0);
    *n = read;
    return true;
}

static bool is_closing(unsigned char c)
{
    return c == ')' || c == ']' || c == '}' || c == '%';
}

/* What stands before byte i, given the character that ends there (0: nothing does). */
static bool sign_counts(struct span s, size_t i, uint32_t before)
{
    size_t k = i;
    int c;

    if (unicode_is_word(before) || (before < 0x80 && is_closing((unsigned char)before)))
        return false;
    while (k && s.at[k - 1] == ' ')
        k--;
    c = k && k < i ? (unsigned char)s.at[k - 1] : '\n';
    return !is_closing((unsigned char)c) && !(c >= '0' && c <= '9');
}

/* May a number begin at i? Not with a sign that does not count, nor with the point of "1.2.3".
 * (Letters and blanks are only a short cut.) */
static bool may_begin(struct span s, size_t i, uint32_t before)
{
    bool negative;
    char c = s.at[i];

    if (c == ' ' || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'))
        return false;
    if (sign_at(s, i, &negative))
        return sign_counts(s, i, before);
    return !(c == '.' && before < 0x110000 && unicode_digit(before) >= 0);
}

bool number_last(struct span text, struct number *n)
{
    uint32_t before = 0;
    bool found = false;

    for (size_t i = 0; i < text.size;) {
        struct number here;

        if (may_begin(text, i, before) && number_at(text, i, false, &here)) {
            *n = here;
            found = true;
            i = here.end;
            before = text.at[i - 1] == '%' ? '%' : '0';
        } else
            i += span_char(text, i, &before);
    }
    return found;
}

/* The digits of s as ASCII, to out; returns their number. Separators have none. */
static size_t put_digits(struct span s, char *out)
{
    size_t n = 0;
    uint32_t c;

    for (size_t i = 0; i < s.size;) {
        int value;

        i += span_char(s, i, &c);
        value = unicode_digit(c);
        if (value >= 0)
            out[n++] = (char)('0' + value);
    }
    return n;
}

/* digits[0..count) with the point behind `point` of them, canonical: at most point + 2
 * characters more than count, or count - point + 3, are written to out. */
static void put_decimal(const char *digits, size_t count, int64_t point, bool negative, char *out)
{
    int64_t first = 0, last = (int64_t)count;

    while (first < last && digits[first] == '0')
        first++;
    while (last > first && digits[last - 1] == '0')
        last--;
    if (negative && first < last)
        *out++ = '-';
    if (first == last || point <= first)
        *out++ = '0';
    if (first == last)
        point = first = last = 0;
    for (int64_t i = first; i < point; i++)
        *out++ = (char)(i < last ? digits[i] : '0');
    if (last > point)
        *out++ = '.';
    for (int64_t i = point; i < last; i++)
        *out++ = (char)(i < first ? '0' : digits[i]);
    *out = '\0';
}

enum { QUOTIENT_DIGITS = 18 }; /* fit int64_t */

static int64_t value_of(const char *digits, size_t count)
{
    int64_t v = 0;

    for (size_t i = 0; i < count; i++)
        v = 10 * v + (digits[i] - '0');
    return v;
}

/* A fraction; `room` holds its digits. */
static const char *fraction_text(struct span text, const struct number *n, char *room,
                                 struct arena *a)
{
    size_t size, over = put_digits(n->whole, room);
    int64_t numerator = over > QUOTIENT_DIGITS ? 0 : value_of(room, over);
    size_t under = put_digits(n->denominator, room);
    int64_t denominator = under > QUOTIENT_DIGITS ? 0 : value_of(room, under);

    if (over > QUOTIENT_DIGITS || n->slashes > 1 || !denominator || numerator % denominator)
        return span_copy(span_cut(text, n->begin, n->end), "", a, &size);
    numerator /= denominator;
    return arena_printf(a, "%s%" PRId64, n->negative && numerator ? "-" : "", numerator);
}

const char *number_text(struct span text, const struct number *n, struct arena *a)
{
    size_t most = n->whole.size + n->fraction.size + n->denominator.size;
    char *digits = arena_alloc(a, most + 1, 1);
    char *out = arena_alloc(a, most + 128, 1); /* two digits of exponent: 99 zeros */
    size_t whole, count;

    if (!digits || !out)
        return NULL;
    if (n->slashes)
        return fraction_text(text, n, digits, a);
    whole = put_digits(n->whole, digits);
    count = whole + put_digits(n->fraction, digits + whole);
    put_decimal(digits, count, (int64_t)whole + n->exponent, n->negative, out);
    return out;
}
