#include "harness/cli/words.h"

#include <string.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

/* One word from `line` to `out`; returns where it ends, NULL: in a quote. */
static const char *take_word(const char *line, char **out)
{
    char quote = '\0';

    for (; *line && (quote || !is_blank(*line)); line++) {
        if (quote ? *line == quote : *line == '\'' || *line == '"')
            quote = quote ? 0 : *line; /* NOLINT(bugprone-narrowing-conversions) */
        else if (*line == '\\' && quote != '\'' && line[1])
            *(*out)++ = *++line;
        else
            *(*out)++ = *line;
    }
    *(*out)++ = '\0';
    return quote ? NULL : line;
}

char **words_split(const char *line, struct arena *arena, int *count)
{
    size_t length = strlen(line);
    char **words = ARENA_NEW(arena, length / 2 + 2, char *);
    char *text = arena_alloc(arena, length + 2, 1);

    *count = 0;
    if (!words || !text)
        return NULL;
    for (;;) {
        while (is_blank(*line))
            line++;
        if (!*line)
            return words;
        words[(*count)++] = text;
        line = take_word(line, &text);
        if (!line)
            return NULL;
    }
}
