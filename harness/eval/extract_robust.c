#include "harness/eval/extract_parts.h"
#include "harness/eval/number.h"

#include <string.h>

/* Our rule, in words. Only what follows the last </think> is read, and nothing if a <think> is
 * still open: a cut chain of thought holds no answer. Then the first of these that exists, always
 * the last of its kind:
 *
 *   1. #### N           exactly four, N on the same line, not a heading ("#### 2. Add")
 *   2. \boxed{N}        or \boxed{... = N}
 *   3. answer is N      any case, also "answer:" and "answer ="
 *   4. the last number
 *
 * N may be decorated (bold, maths, brackets). Numbers are those of number.h, compared as exact
 * decimals, so 18, 18.00, $18 and 1.8e1 are one answer, and -18 is another.
 */

/* What may stand between a marker and its number. */
/* clang-format off */
static const char *const decorations[] = {
    " ", "\t", "*", "_", "`", "$", ":", "=", "~", "(", "[", "{", "\\(", "\\[", "\\,", "\\ ", "\\;",
    "\\boxed{", "\\text{", "\\textbf{", "\\mathbf{", "\\mathrm{",
    "\xe2\x89\x88", /* U+2248 almost equal to */
    "\xc2\xa0",     /* U+00A0 no-break space */
};

/* Ranks are tried in turn. */
static const struct marker {
    const char *text; /* lower case */
    int rank;
    bool lines; /* the number may be on a later line */
} markers[] = {
    {"####", 1, false},
    {"\\boxed{", 2, true},
    {"answer is", 3, true},
    {"answer:", 3, true},
    {"answer =", 3, true},
};
/* clang-format on */
enum { MARKER_COUNT = sizeof markers / sizeof markers[0], RANKS = 3 };
enum { DECORATION_COUNT = sizeof decorations / sizeof decorations[0] };
enum { DECORATION_BYTES = 64, BOX_BYTES = 256 }; /* longer ones are neither; keeps time linear */

static size_t decoration_at(struct span s, size_t i)
{
    for (int d = 0; d < DECORATION_COUNT; d++)
        if (span_has(s, i, decorations[d]))
            return strlen(decorations[d]);
    return 0;
}

/* Behind a number that ends at i: ")" or "." or ":", a blank, and more of the line? Then it
 * counts a step of a list. */
static bool is_heading(struct span s, size_t i)
{
    if (!span_has(s, i, ".") && !span_has(s, i, ":") && !span_has(s, i, ")"))
        return false;
    if (!span_has(s, ++i, " "))
        return false;
    while (span_has(s, i, " "))
        i++;
    return i < s.size && s.at[i] != '\n' && s.at[i] != '\r';
}

/* The number behind the decorations at i. */
static bool decorated(struct span s, size_t i, const struct marker *m, struct number *n)
{
    size_t start = i;
    bool line_ended = false, bracket = false;

    while (i - start <= DECORATION_BYTES) {
        size_t len = decoration_at(s, i);

        if (number_at(s, i, true, n))
            return bracket || !(m->rank == 1 || line_ended) || !is_heading(s, n->end);
        if (!len && m->lines && (span_has(s, i, "\n") || span_has(s, i, "\r"))) {
            line_ended = true;
            len = 1;
        }
        if (!len)
            return false;
        bracket = bracket || s.at[i] == '(';
        i += len;
    }
    return false;
}

/* \boxed{x = N}: N behind the last "=" before the brace that closes the one before i. */
static bool boxed(struct span s, size_t i, const struct marker *m, struct number *n)
{
    size_t equals = 0, end = s.size - i > BOX_BYTES ? i + BOX_BYTES : s.size;

    for (int depth = 1; i < end && depth; i++) {
        if (s.at[i] == '{')
            depth++;
        if (s.at[i] == '}')
            depth--;
        if (s.at[i] == '=')
            equals = i + 1;
    }
    return equals && decorated(s, equals, m, n);
}

static char lower(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (char)(c + ('a' - 'A'));
    return c;
}

static bool marker_at(struct span s, size_t i, const struct marker *m)
{
    size_t k = 0;

    while (m->text[k] && i + k < s.size && lower(s.at[i + k]) == m->text[k])
        k++;
    if (m->text[k])
        return false;
    return m->rank != 1 || ((!i || s.at[i - 1] != '#') && !span_has(s, i + k, "#"));
}

static bool number_of_marker(struct span s, size_t i, const struct marker *m, struct number *n)
{
    size_t behind;

    if (!marker_at(s, i, m))
        return false;
    behind = i + strlen(m->text);
    return decorated(s, behind, m, n) || (m->rank == 2 && boxed(s, behind, m, n));
}

/* The last well-formed marker of this rank. */
static bool find_rank(struct span s, int rank, struct number *n)
{
    for (size_t i = s.size; i-- > 0;)
        for (int m = 0; m < MARKER_COUNT; m++)
            if (markers[m].rank == rank && number_of_marker(s, i, &markers[m], n))
                return true;
    return false;
}

/* Without the chain of thought; empty if that has no end. */
static struct span visible(struct span s)
{
    static const char open[] = "<think>", close[] = "</think>";

    for (size_t i = s.size; i-- > 0;) {
        if (span_has(s, i, close))
            return span_cut(s, i + sizeof close - 1, s.size);
        if (span_has(s, i, open))
            return span_cut(s, s.size, s.size);
    }
    return s;
}

/* The canonical number; *text NULL: none. false: the arena is full. */
static bool read_answer(struct span s, struct arena *a, const char **text)
{
    struct span seen = visible(s);
    struct number n;
    bool found = false;

    *text = NULL;
    for (int rank = 1; rank <= RANKS && !found; rank++)
        found = find_rank(seen, rank, &n);
    if (!found && !number_last(seen, &n))
        return true;
    *text = number_text(seen, &n, a);
    return *text != NULL;
}

bool extract_robust(struct span text, struct span gold, struct arena *a, struct answer *out)
{
    const char *got, *want;

    if (!read_answer(text, a, &got) || !read_answer(gold, a, &want))
        return false;
    *out = (struct answer){got ? got : "none", got != NULL, got && want && !strcmp(got, want)};
    return true;
}
