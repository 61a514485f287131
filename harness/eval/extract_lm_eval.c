#include "harness/eval/extract_parts.h"

#include <string.h>

/* Sources: lm-evaluation-harness, tasks/gsm8k/gsm8k.yaml (version 3.0), filters/extraction.py
 * (RegexFilter) and the metric exact_match; openai/grade-school-math, dataset.py. Their classes are
 * ASCII, so bytes are enough.
 */

static const char marker[] = "#### ";
enum { MARKER = sizeof marker - 1 };
static const char nothing[] = "[invalid]";

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_number_char(char c) /* [0-9.,] */
{
    return is_digit(c) || c == '.' || c == ',';
}

/* The group of the first match of "#### (-?[0-9.,]+)". at NULL: no match. */
static struct span first_marked(struct span s)
{
    for (size_t i = 0; i < s.size; i++) {
        size_t begin = i + MARKER, end;

        if (!span_has(s, i, marker))
            continue;
        end = begin + span_has(s, begin, "-");
        if (end == s.size || !is_number_char(s.at[end]))
            continue;
        while (end < s.size && is_number_char(s.at[end]))
            end++;
        return span_cut(s, begin, end);
    }
    return (struct span){NULL, 0};
}

/* The end of the match of "(-?[$0-9.,]{2,})|(-?[0-9]+)" that begins at i; i: none does. A run of
 * two or more is taken by the first alternative, a single digit by the second. */
static size_t flexible_end(struct span s, size_t i)
{
    size_t begin = i + span_has(s, i, "-");
    size_t end = begin;

    while (end < s.size && (is_number_char(s.at[end]) || s.at[end] == '$'))
        end++;
    if (end - begin >= 2 || (end - begin == 1 && is_digit(s.at[begin])))
        return end;
    return i;
}

/* The last of its matches, found from left to right without overlap. */
static struct span last_flexible(struct span s)
{
    struct span found = {NULL, 0};

    for (size_t i = 0; i < s.size;) {
        size_t end = flexible_end(s, i);

        if (end > i)
            found = span_cut(s, i, end);
        i = end > i ? end : i + 1;
    }
    return found;
}

/* exact_match with regexes_to_ignore: delete in this order ",", "$", everything up to the last
 * "#### ", and a "." at the end ("$" of a Python regex also stands before a last newline). The
 * lower-casing that follows cannot change a comparison: what a filter yields has no letters but
 * those of [invalid]. NULL: the arena is full. */
static const char *normalised(struct span s, struct arena *a)
{
    size_t n, begin = 0;
    char *t = span_copy(s, ",$", a, &n);

    if (!t)
        return NULL;
    for (size_t i = 0; i + MARKER <= n; i++)
        if (!memcmp(t + i, marker, MARKER))
            begin = i + MARKER;
    if (n > begin && t[n - 1] == '.')
        t[n - 1] = '\0';
    else if (n > begin + 1 && t[n - 2] == '.' && t[n - 1] == '\n')
        memcpy(t + n - 2, "\n", 2);
    return t + begin;
}

static bool finish(struct span found, struct span gold, struct arena *a, struct answer *out)
{
    struct span read = found.at ? found : span_of(nothing);
    size_t size;
    const char *text = span_copy(read, "", a, &size);
    const char *got = normalised(read, a), *want = normalised(gold, a);

    if (!text || !got || !want)
        return false;
    *out = (struct answer){text, found.at != NULL, found.at && !strcmp(got, want)};
    return true;
}

bool extract_strict_match(struct span text, struct span gold, struct arena *a, struct answer *out)
{
    return finish(first_marked(text), gold, a, out);
}

bool extract_flexible(struct span text, struct span gold, struct arena *a, struct answer *out)
{
    return finish(last_flexible(text), gold, a, out);
}

/* dataset.py: the same pattern on both sides, commas removed, compared as strings. */
bool extract_openai(struct span text, struct span gold, struct arena *a, struct answer *out)
{
    struct span found = first_marked(text), right = first_marked(gold);
    size_t size;
    const char *got = span_copy(found.at ? found : span_of(nothing), ",", a, &size);
    const char *want = right.at ? span_copy(right, ",", a, &size) : "";

    if (!got || !want)
        return false;
    *out = (struct answer){got, found.at != NULL, found.at && right.at && !strcmp(got, want)};
    return true;
}
