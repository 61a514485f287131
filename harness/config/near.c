#include "harness/config/near.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = 64 };

static size_t min_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

static char lower(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (char)(c - 'A' + 'a');
    return c;
}

static bool same_but_case(const char *a, const char *b)
{
    while (*a && lower(*a) == lower(*b)) {
        a++;
        b++;
    }
    return !*a && !*b;
}

/* D[i][j], the distance of the first i characters of a to the first j of b, row by row; three
 * rows are kept. */
static size_t distance(const char *a, const char *b)
{
    size_t rows[3][LONGEST + 1] = {{0}}, la = strlen(a), lb = strlen(b);

    for (size_t j = 0; j <= lb; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= la; i++) {
        size_t *now = rows[i % 3];
        const size_t *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];

        now[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            now[j] = last[j - 1] + (a[i - 1] != b[j - 1]);
            now[j] = min_of(now[j], min_of(last[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = min_of(now[j], before[j - 2] + 1);
        }
    }
    return rows[la % 3][lb];
}

struct near near_to(const char *text)
{
    size_t n = strlen(text), most = n < 3 ? 0 : n < 5 ? 1 : 2;

    return (struct near){.text = text, .distance = most + 1};
}

void near_offer(struct near *n, const char *word)
{
    size_t d;

    if (strlen(n->text) > LONGEST || strlen(word) > LONGEST)
        return;
    d = same_but_case(n->text, word) ? 0 : distance(n->text, word);
    if (n->best && d == n->distance)
        n->ties++;
    if (d >= n->distance)
        return;
    n->distance = d;
    n->best = word;
    n->ties = 1;
}

void near_offer_all(struct near *n, const char *const *words)
{
    for (; words && *words; words++)
        near_offer(n, *words);
}

const char *near_hint(const struct near *n, char *buf, size_t size)
{
    if (!n->best || n->ties > 2)
        return "";
    (void)snprintf(buf, size, "; did you mean '%s'?", n->best);
    return buf;
}
