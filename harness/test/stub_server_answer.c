#include "harness/test/stub_server_parts.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { HEAD_MOST = 16384, BODY_MOST = 64 << 20, SUM_DIGITS = 15 };

void *stub_grow(void *p, size_t bytes)
{
    p = realloc(p, bytes ? bytes : 1);
    if (!p) {
        (void)fputs("stub_server: out of memory\n", stderr);
        abort();
    }
    return p;
}

void text_add(struct stub_text *t, const char *s, size_t n)
{
    if (t->bytes + n + 1 > t->capacity) {
        t->capacity = 2 * (t->bytes + n + 1);
        t->at = stub_grow(t->at, t->capacity);
    }
    if (n)
        memcpy(t->at + t->bytes, s, n);
    t->bytes += n;
    t->at[t->bytes] = '\0';
}

void text_printf(struct stub_text *t, const char *fmt, ...)
{
    char buf[512];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(buf, sizeof buf, fmt, ap);
    va_end(ap);
    text_add(t, buf, strlen(buf));
}

void text_free(struct stub_text *t)
{
    free(t->at);
    *t = (struct stub_text){0};
}

uint64_t stub_hash(const char *s, size_t n)
{
    uint64_t h = 0xcbf29ce484222325;

    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)s[i]) * 0x100000001b3;
    return h;
}

uint64_t stub_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

/* ---- requests ---- */

/* The value of a header in [head, end), and its length; NULL: there is none. */
static const char *header(const char *head, const char *end, const char *name, size_t *n)
{
    size_t length = strlen(name);

    for (const char *line = head; line < end;) {
        const char *next = memchr(line, '\n', (size_t)(end - line));

        if (!next)
            return NULL;
        if ((size_t)(next - line) > length && line[length] == ':' &&
            !strncasecmp(line, name, length)) {
            const char *value = line + length + 1;

            while (*value == ' ')
                value++;
            *n = (size_t)(next - value) - (next[-1] == '\r');
            return value;
        }
        line = next + 1;
    }
    return NULL;
}

static const char *end_of_head(const char *data, size_t n)
{
    for (const char *p = data; (p = memchr(p, '\r', n - (size_t)(p - data))); p++)
        if (n - (size_t)(p - data) >= 4 && !memcmp(p, "\r\n\r\n", 4))
            return p + 4;
    return NULL;
}

long stub_parse(const char *data, size_t n, struct stub_request *r)
{
    const char *end = end_of_head(data, n), *value;
    char method[8];
    size_t length, bytes = 0;

    *r = (struct stub_request){0};
    if (!end)
        return n > HEAD_MOST ? -1 : 0;
    if (sscanf(data, "%7s %63s", method, r->path) != 2)
        return -1;
    r->is_post = !strcmp(method, "POST");
    value = header(data, end, "content-length", &length);
    if (value)
        bytes = strtoul(value, NULL, 10);
    if (bytes > BODY_MOST || header(data, end, "transfer-encoding", &length))
        return -1;
    value = header(data, end, "authorization", &length);
    r->has_key = value && length > 7 && !strncasecmp(value, "bearer ", 7);
    r->body = end;
    r->body_bytes = bytes;
    return n - (size_t)(end - data) >= bytes ? end - data + (long)bytes : 0;
}

/* ---- prompts ---- */

char *stub_prompt(const char *body, size_t n, bool is_chat)
{
    cJSON *doc = cJSON_ParseWithLength(body, n);
    const cJSON *text = cJSON_GetObjectItemCaseSensitive(doc, is_chat ? "messages" : "prompt");
    char *prompt = NULL;

    if (is_chat)
        text = cJSON_GetObjectItemCaseSensitive(
            cJSON_GetArrayItem(text, cJSON_GetArraySize(text) - 1), "content");
    if (cJSON_IsArray(text))
        text = cJSON_GetArrayItem(text, 0);
    if (cJSON_IsString(text)) {
        size_t bytes = strlen(text->valuestring) + 1;

        prompt = memcpy(stub_grow(NULL, bytes), text->valuestring, bytes);
    }
    cJSON_Delete(doc);
    return prompt;
}

/* The last question of a prompt: what follows the last "Question: ", up to "\nAnswer:"; the whole
 * prompt if it has none. */
static const char *last_question(const char *prompt, size_t *n)
{
    const char *at = prompt, *next = prompt, *end;

    while ((next = strstr(next, "Question: "))) {
        next += strlen("Question: ");
        at = next;
    }
    end = strstr(at, "\nAnswer:");
    *n = end ? (size_t)(end - at) : strlen(at);
    return at;
}

uint64_t stub_sum(const char *prompt)
{
    size_t n;
    const char *at = last_question(prompt, &n);
    uint64_t sum = 0, number = 0, most = 1000000000000000;

    for (size_t i = 0; i <= n; i++) {
        bool is_digit = i < n && at[i] >= '0' && at[i] <= '9';

        number = is_digit ? (number * 10 + (uint64_t)(at[i] - '0')) % most : number;
        if (!is_digit) {
            sum = (sum + number) % most;
            number = 0;
        }
    }
    return sum;
}

/* ---- the file of answers ---- */

struct entry {
    uint64_t hash; /* of the question; 0: free */
    char *text;
};

struct stub_answers {
    struct entry *entries;
    size_t count, capacity; /* a power of two, at least twice the count */
};

static struct entry *entry_of(const struct stub_answers *a, uint64_t hash)
{
    size_t i = (size_t)hash & (a->capacity - 1);

    while (a->entries[i].hash && a->entries[i].hash != hash)
        i = (i + 1) & (a->capacity - 1);
    return &a->entries[i];
}

static void put(struct stub_answers *a, const char *question, const char *answer)
{
    uint64_t hash = stub_hash(question, strlen(question));
    size_t n = strlen(answer) + 1;
    struct entry *e;

    if (2 * (a->count + 1) > a->capacity) {
        struct stub_answers more = {.capacity = a->capacity ? 2 * a->capacity : 4096};

        more.entries = memset(stub_grow(NULL, more.capacity * sizeof *more.entries), 0,
                              more.capacity * sizeof *more.entries);
        more.count = a->count;
        for (size_t i = 0; i < a->capacity; i++)
            if (a->entries[i].hash)
                *entry_of(&more, a->entries[i].hash) = a->entries[i];
        free(a->entries);
        *a = more;
    }
    e = entry_of(a, hash);
    a->count += !e->hash;
    free(e->text);
    e->hash = hash;
    e->text = memcpy(stub_grow(NULL, n), answer, n);
}

static bool put_line(struct stub_answers *a, const char *line)
{
    cJSON *doc = cJSON_Parse(line);
    const cJSON *question = cJSON_GetObjectItemCaseSensitive(doc, "question");
    const cJSON *answer = cJSON_GetObjectItemCaseSensitive(doc, "answer");
    bool good = cJSON_IsString(question) && cJSON_IsString(answer);

    if (good)
        put(a, question->valuestring, answer->valuestring);
    cJSON_Delete(doc);
    return good;
}

struct stub_answers *stub_answers_load(const char *path, char *why, size_t size)
{
    struct stub_answers *a = memset(stub_grow(NULL, sizeof *a), 0, sizeof *a);
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t capacity = 0, number = 0;
    bool good = f != NULL;

    (void)snprintf(why, size, "%s: %s", path, f ? "" : strerror(errno));
    while (good && getline(&line, &capacity, f) > 0) {
        number++;
        good = put_line(a, line);
        if (!good)
            (void)snprintf(why, size, "%s:%zu: no \"question\" and \"answer\"", path, number);
    }
    free(line);
    if (f)
        (void)fclose(f);
    if (good && a->count)
        return a;
    if (good)
        (void)snprintf(why, size, "%s: no answers", path);
    stub_answers_free(a);
    return NULL;
}

void stub_answers_free(struct stub_answers *a)
{
    if (!a)
        return;
    for (size_t i = 0; i < a->capacity; i++)
        free(a->entries[i].text);
    free(a->entries);
    free(a);
}

/* ---- answers ---- */

/* A text whose last number is one more: what a wrong answer to the question looks like. */
static void add_wrong(struct stub_text *t, const char *text)
{
    const char *mark = strstr(text, "####");
    unsigned long long value = mark ? strtoull(mark + 4, NULL, 10) : 0;

    text_printf(t, "so it is\n#### %llu", value + 1);
}

void stub_answer(struct stub_text *t, const struct stub_options *o, const struct stub_answers *a,
                 const char *prompt)
{
    size_t n;
    const char *question = last_question(prompt, &n);
    uint64_t hash = stub_hash(question, n);
    const char *text = a ? entry_of(a, hash)->text : NULL;
    char sum[64];

    (void)snprintf(sum, sizeof sum, "#### %llu", (unsigned long long)stub_sum(prompt));
    if (!text)
        text = sum;
    for (int i = 2; i < o->tokens && !a; i++)
        text_add(t, " so", 3);
    text_add(t, " ", 1);
    if ((int)(stub_mix(o->seed ^ stub_mix(hash)) % 1000) < o->wrong_permille)
        add_wrong(t, text);
    else
        text_add(t, text, strlen(text));
}
