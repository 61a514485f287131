#include "harness/eval/extract_parts.h"
#include "harness/eval/extract_unicode.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* vLLM and SGLang find digits with a regular expression and hand them to ast.literal_eval: a Python
 * literal, or nothing (INVALID). Sources: vLLM tests/evals/gsm8k/gsm8k_eval.py, SGLang
 * test/simple_eval_mixed_prefix_gsm8k.py, both get_answer_value.
 */

static const char nothing[] = "INVALID";

/* Decimal digits of an int literal that CPython 3.11 accepts
 * (sys.int_info.default_max_str_digits). */
enum { INT_DIGITS_MAX = 4300 };

/* A Python number. valid false: a syntax error, or no digits at all. */
struct literal {
    bool valid, is_float;
    const char *text; /* its repr() */
    double value;     /* of a float */
};

static size_t skip_digits(struct span s, size_t i)
{
    uint32_t c;

    while (i < s.size) {
        size_t len = span_char(s, i, &c);

        if (unicode_digit(c) < 0)
            break;
        i += len;
    }
    return i;
}

/* The end of a match of \d+, or of -?\d+\.?\d* if `decimal`, that begins at i; i: none does. */
static size_t match_end(struct span s, size_t i, bool decimal)
{
    size_t begin = i + (decimal && span_has(s, i, "-"));
    size_t end = skip_digits(s, begin);

    if (end == begin)
        return i;
    if (decimal && span_has(s, end, "."))
        end = skip_digits(s, end + 1);
    return end;
}

static struct span last_match(struct span s, bool decimal)
{
    struct span found = {NULL, 0};
    uint32_t c;

    for (size_t i = 0; i < s.size;) {
        size_t end = match_end(s, i, decimal);

        if (end > i)
            found = span_cut(s, i, end);
        i = end > i ? end : i + span_char(s, i, &c);
    }
    return found;
}

/* repr() of a float: the shortest digits that read back as x; exponents below -4 and from 16 on are
 * written with e. x >= 0 or x < 0, never NaN: it was read from digits. */
static const char *repr_float(double x, struct arena *a)
{
    char digits[32];
    int precision = 0, exponent;

    if (isinf(x))
        return arena_strdup(a, x > 0 ? "inf" : "-inf");
    do
        (void)snprintf(digits, sizeof digits, "%.*e", precision, x);
    while (strtod(digits, NULL) != x && ++precision < 17);
    exponent = (int)strtol(strchr(digits, 'e') + 1, NULL, 10);
    if (exponent < -4 || exponent >= 16)
        return arena_strdup(a, digits);
    return arena_printf(a, "%.*f", precision > exponent ? precision - exponent : 1, x);
}

/* Zeros may lead only other zeros. (A float may have them: 007.5.) */
static bool leading_zero(const char *digits)
{
    return digits[0] == '0' && digits[strspn(digits, "0")] != '\0';
}

/* The literal that the n bytes of the NUL-terminated t spell: -?\d+\.?\d*, digits of any script. */
static bool read_literal(const char *t, size_t n, struct arena *a, struct literal *out)
{
    const char *digits = t + (t[0] == '-');

    *out = (struct literal){.valid = false, .text = nothing};
    if (strspn(digits, "0123456789.") != strlen(digits))
        return true; /* Python's numbers are ASCII */
    if (memchr(t, '.', n)) {
        double x = strtod(t, NULL);

        *out = (struct literal){true, true, repr_float(x, a), x};
        return out->text != NULL;
    }
    if (leading_zero(digits) || (digits[0] != '0' && strlen(digits) > INT_DIGITS_MAX))
        return true;
    *out = (struct literal){true, false, digits[0] == '0' ? "0" : t, 0.0};
    return true;
}

/* get_answer_value(s). false: the arena is full. */
static bool answer_value(struct span s, bool decimal, struct arena *a, struct literal *out)
{
    struct span plain, found;
    size_t n;

    plain.at = span_copy(s, ",", a, &plain.size);
    if (!plain.at)
        return false;
    *out = (struct literal){.valid = false, .text = nothing};
    found = last_match(plain, decimal);
    if (!found.at)
        return true;
    found.at = span_copy(found, "", a, &n);
    return found.at && read_literal(found.at, n, a, out);
}

/* An int equals a float if the float is that whole number exactly. */
static bool int_equals_float(const char *digits, double x)
{
    char exact[512]; /* 1.8e308 has 309 digits */

    if (!isfinite(x) || x != floor(x))
        return false;
    (void)snprintf(exact, sizeof exact, "%.0f", x == 0.0 ? 0.0 : x);
    return !strcmp(digits, exact);
}

static bool literal_equal(const struct literal *x, const struct literal *y)
{
    if (!x->valid || !y->valid)
        return false;
    if (x->is_float && y->is_float)
        return x->value == y->value;
    if (x->is_float)
        return int_equals_float(y->text, x->value);
    if (y->is_float)
        return int_equals_float(x->text, y->value);
    return !strcmp(x->text, y->text);
}

static bool finish(struct span text, struct span gold, bool decimal, struct arena *a,
                   struct answer *out)
{
    struct literal got, want;

    if (!answer_value(text, decimal, a, &got) || !answer_value(gold, decimal, a, &want))
        return false;
    *out = (struct answer){got.text, got.valid, literal_equal(&got, &want)};
    return true;
}

bool extract_last_int(struct span text, struct span gold, struct arena *a, struct answer *out)
{
    return finish(text, gold, false, a, out);
}

bool extract_last_number(struct span text, struct span gold, struct arena *a, struct answer *out)
{
    return finish(text, gold, true, a, out);
}

/* The group of the match of "####[ \t]*([-+]?\d[\d,]*(?:\.\d+)?)(?![\w,./])" that begins at i.
 * at NULL: none does. Greedy is enough: a shorter repetition would be followed by a digit, a
 * comma or a point, which the end forbids. */
static struct span marked_at(struct span s, size_t i)
{
    const struct span none = {NULL, 0};
    size_t begin, end, next;
    uint32_t c;

    if (!span_has(s, i, "####"))
        return none;
    for (begin = i + 4; begin < s.size && (s.at[begin] == ' ' || s.at[begin] == '\t');)
        begin++;
    end = begin + (span_has(s, begin, "-") || span_has(s, begin, "+"));
    next = skip_digits(s, end);
    if (next == end)
        return none;
    for (end = next; span_has(s, end, ",");)
        end = skip_digits(s, end + 1);
    next = span_has(s, end, ".") ? skip_digits(s, end + 1) : 0;
    if (next > end + 1)
        end = next;
    if (end < s.size) {
        (void)span_char(s, end, &c);
        if (unicode_is_word(c) || c == ',' || c == '.' || c == '/')
            return none;
    }
    return span_cut(s, begin, end);
}

bool extract_last_explicit(struct span text, struct span gold, struct arena *a, struct answer *out)
{
    struct span read = text;

    for (size_t i = 0; i < text.size; i++) {
        struct span found = marked_at(text, i);

        if (found.at) {
            read = found;
            i = (size_t)(found.at - text.at) + found.size - 1;
        }
    }
    return finish(read, gold, true, a, out);
}
