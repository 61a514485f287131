/* Command lines, split as Python's shlex.split (POSIX mode, no comments) splits them, since that is
 * what vLLM does with server_args:
 *
 *   blanks (space, tab, line breaks) end a word
 *   '...'   stands for itself
 *   "..."   stands for itself but \" and \\
 *   \c      is c outside of quotes
 */
#include "harness/eval/config_load.h"

#include <string.h>

/* Characters that a shell would act on when they stand outside of quotes. */
#define SHELL_CHARS "$`|;&<>*?~#"

struct splitter {
    struct config_loader *l;
    const char *key;
    const struct place *at; /* of each byte */
    const char *text;
    size_t i;   /* next byte of text */
    char *to;   /* where the word in progress is written */
    size_t odd; /* a byte of the word that a shell would act on, and 1 */
};

/* Follows the text of a value through its spelling in the file. */
struct walker {
    const char *raw;
    size_t left;
    struct place at;
    int indent;  /* of a block: blanks that are no content; -1: all are none */
    char quote;  /* ' or ", or 0 */
    bool broken; /* right behind line breaks: further ones of the text are spelled already */
};

static void step(struct walker *w, size_t n)
{
    for (; n && w->left; n--, w->left--, w->raw++) {
        bool continues = ((unsigned char)w->raw[0] & 0xc0U) == 0x80;

        if (w->raw[0] == '\n')
            w->at = place_at(w->at.file, w->at.line + 1, 1);
        else if (!continues)
            w->at.column++;
    }
}

static char raw_at(const struct walker *w, size_t i)
{
    char c = '\0';

    if (i < w->left)
        c = w->raw[i];
    return c;
}

/* Over line breaks and the indentation behind them. */
static void skip_breaks(struct walker *w)
{
    while (raw_at(w, 0) == '\n' || (raw_at(w, 0) == '\r' && raw_at(w, 1) == '\n')) {
        step(w, raw_at(w, 0) == '\r' ? 2 : 1);
        for (int i = 0; i != w->indent && raw_at(w, 0) == ' '; i++)
            step(w, 1);
    }
    w->broken = true;
}

/* At the first character of the text. */
static void start_walk(struct walker *w)
{
    char c = raw_at(w, 0);

    w->indent = -1;
    if (c == '\'' || c == '"') {
        w->quote = c;
        step(w, 1);
        return;
    }
    if (c != '>' && c != '|')
        return;
    while (w->left && raw_at(w, 0) != '\n')
        step(w, 1);
    skip_breaks(w);
    w->indent = w->at.column - 1;
}

/* Over what spells the character c in the file; false: something else stands there. */
static bool follow(struct walker *w, char c)
{
    bool breaks = raw_at(w, 0) == '\n' || (raw_at(w, 0) == '\r' && raw_at(w, 1) == '\n');
    size_t n = 1;

    if (breaks && (c == ' ' || c == '\n')) {
        skip_breaks(w);
        return true;
    }
    if (c == '\n' && w->broken)
        return true;
    w->broken = false;
    if (w->quote == '"' && raw_at(w, 0) == '\\' && strchr("\"\\/", raw_at(w, 1)))
        step(w, 1);
    else if (w->quote == '\'' && raw_at(w, 0) == '\'')
        n = 2;
    if (raw_at(w, 0) != c)
        return false;
    step(w, n);
    return true;
}

const struct place *config_places(struct config_loader *l, const struct doc_node *n)
{
    size_t length = strlen(n->text), i = 0;
    struct place *places = arena_alloc(l->arena, length + 1, sizeof *places);
    struct walker w = {.at = n->at};

    if (!places) {
        config_no_memory(l);
        return NULL;
    }
    w.raw = source_at(&l->src, (size_t)n->at.line - 1, (size_t)n->at.column - 1, &w.left);
    start_walk(&w);
    for (; i < length; i++) {
        places[i] = w.at;
        if (!follow(&w, n->text[i]))
            break;
    }
    places[length] = w.at;
    for (size_t k = 0; i < length && k <= length; k++)
        places[k] = n->at;
    return places;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* To the closing quote; false: there is none. */
static bool take_quoted(struct splitter *s, char quote)
{
    size_t open = s->i++;

    for (; s->text[s->i] && s->text[s->i] != quote; s->i++) {
        bool escape = quote == '"' && s->text[s->i] == '\\' && s->text[s->i + 1] &&
                      strchr("\"\\", s->text[s->i + 1]);

        if (escape)
            s->i++;
        *s->to++ = s->text[s->i];
    }
    if (!s->text[s->i]) {
        BAD(s->l, s->at[open], "%s: this %c quote is never closed", s->key, quote);
        return false;
    }
    s->i++;
    return true;
}

/* One word from its first character on; false after an error. */
static bool take_word(struct splitter *s)
{
    while (s->text[s->i] && !is_blank(s->text[s->i])) {
        char c = s->text[s->i];

        if (c == '\'' || c == '"') {
            if (!take_quoted(s, c))
                return false;
            continue;
        }
        if (c == '\\' && !s->text[++s->i]) {
            BAD(s->l, s->at[s->i - 1], "%s: nothing follows this backslash", s->key);
            return false;
        }
        if (c != '\\' && strchr(SHELL_CHARS, c) && !s->odd)
            s->odd = s->i + 1;
        *s->to++ = s->text[s->i++];
    }
    *s->to++ = '\0';
    return true;
}

/* The words; count 0 after an error. */
static void split(struct splitter *s, struct eval_word *words, size_t *count)
{
    *count = 0;
    for (;;) {
        struct eval_word word = {.text = s->to};

        while (is_blank(s->text[s->i]))
            s->i++;
        if (!s->text[s->i])
            return;
        word.at = s->at[s->i];
        if (*count == CONFIG_WORDS) {
            BAD(s->l, word.at, "%s: more than %d words", s->key, CONFIG_WORDS);
            *count = 0;
            return;
        }
        if (!take_word(s)) {
            *count = 0;
            return;
        }
        words[(*count)++] = word;
    }
}

static bool keep_words(struct config_loader *l, const struct eval_word *words, size_t count,
                       struct eval_words *out)
{
    struct eval_word *kept = arena_alloc(l->arena, count + 1, sizeof *kept);
    const char **argv = ARENA_NEW(l->arena, count + 1, const char *);

    if (!kept || !argv) {
        config_no_memory(l);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        kept[i] = words[i];
        argv[i] = words[i].text;
    }
    out->words = kept;
    out->argv = argv;
    out->count = count;
    return true;
}

void config_words(struct config_loader *l, const struct config_key *k, const struct doc_node *n,
                  void *member)
{
    struct eval_words *out = member;
    struct eval_word words[CONFIG_WORDS];
    struct splitter s = {.l = l, .key = k->key};
    size_t count;

    s.text = config_string(l, k->key, n);
    if (!s.text)
        return;
    s.at = config_places(l, n);
    s.to = arena_alloc(l->arena, strlen(s.text) + 2, 1);
    if (!s.at || !s.to) {
        config_no_memory(l);
        return;
    }
    split(&s, words, &count);
    if (!keep_words(l, words, count, out))
        return;
    out->at = n->at;
    out->text = n->text;
    if (s.odd && count)
        WARN(l, s.at[s.odd - 1], "%s: '%c' reaches the server as it is: there is no shell", k->key,
             s.text[s.odd - 1]);
}

/* clang-format off */
/* Flags that whoever starts the server decides. */
static const struct {
    const char *flag, *why;
} taken[] = {
    {"--port",      "humcheck picks a free port"},
    {"-p",          "humcheck picks a free port"},
    {"--host",      "humcheck listens on this machine only"},
    {"--uds",       "humcheck asks over a port"},
    {"--seed",      "--seed 0 is added, as vLLM's test does"},
    {"--api-key",   "keys do not belong into configurations"},
    {"--hf-token",  "keys do not belong into configurations"},
};
/* clang-format on */

/* Is `word` this flag, alone or as flag=value? '_' and '-' are the same. */
static bool is_flag(const char *word, const char *flag)
{
    for (; *flag; word++, flag++)
        if (*word != *flag && !(*flag == '-' && *word == '_'))
            return false;
    return !*word || *word == '=';
}

static void check_flag(struct config_loader *l, const struct eval_word *w)
{
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        if (is_flag(w->text, taken[i].flag))
            BAD(l, w->at, "server_args: %s may not be set: %s", taken[i].flag, taken[i].why);
}

/* A word that is no flag and follows no flag would be a second model to `vllm serve`. */
void config_server_args(struct config_loader *l, const struct config_key *k,
                        const struct doc_node *n, void *member)
{
    const struct eval_words *args = member;

    config_words(l, k, n, member);
    if (args->count && args->words[0].text[0] != '-')
        BAD(l, args->words[0].at, "server_args: expected a flag, found '%.40s'",
            args->words[0].text);
    for (size_t i = 0; i < args->count; i++) {
        const char *value = strchr(args->words[i].text, '=');

        if (args->words[i].text[0] == '-')
            check_flag(l, &args->words[i]);
        config_check_json(l, "server_args: this word", args->words[i].at, args->words[i].text);
        if (value && args->words[i].text[0] == '-')
            config_check_json(l, "server_args: this value", args->words[i].at, value + 1);
    }
}

const char *eval_config_flag(const struct eval_config *c, const char *flag)
{
    const struct eval_words *args = &c->server_args;
    const char *value = NULL;

    for (size_t i = 0; i < args->count; i++) {
        const char *word = args->argv[i], *equals = strchr(word, '=');
        const char *next = i + 1 < args->count ? args->argv[i + 1] : "-";
        bool has_value = *next != '-' || (next[1] >= '0' && next[1] <= '9');

        if (word[0] == '-' && is_flag(word, flag))
            value = equals ? equals + 1 : has_value ? next : "";
    }
    return value;
}
