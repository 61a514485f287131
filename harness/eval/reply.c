#include "harness/eval/reply.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

/* Words that are no JSON, but are written for numbers; cJSON would refuse the whole reply. */
static const char *const no_numbers[] = {"-Infinity", "Infinity", "-NaN", "NaN"};
enum { NO_NUMBERS = sizeof no_numbers / sizeof no_numbers[0] };

/* How many bytes such a word has at `s`; 0: none is there. */
static size_t no_number(const char *s)
{
    for (int i = 0; i < NO_NUMBERS; i++)
        if (!strncmp(s, no_numbers[i], strlen(no_numbers[i])))
            return strlen(no_numbers[i]);
    return 0;
}

/* A copy in which such words are `0` and blanks, and an escaped NUL is U+FFFD: cJSON ends a text
 * at a NUL. The length stays. NULL: no memory. */
static const char *readable(const char *body, size_t bytes, struct arena *arena)
{
    char *copy = arena_alloc(arena, bytes + 1, 1);
    bool in_text = false;

    if (!copy)
        return NULL;
    memcpy(copy, body, bytes);
    copy[bytes] = '\0';
    for (size_t i = 0; i < bytes; i++) {
        size_t word = in_text ? 0 : no_number(copy + i);

        if (in_text && copy[i] == '\\') {
            if (!strncmp(copy + i, "\\u0000", 6))
                memcpy(copy + i, "\\ufffd", 6);
            i++;
        } else if (copy[i] == '"') {
            in_text = !in_text;
        } else if (word) {
            memset(copy + i, ' ', word);
            copy[i] = '0';
        }
    }
    return copy;
}

static cJSON *parse(const char *body, size_t bytes, struct arena *arena)
{
    const char *text = readable(body, bytes, arena);

    return text ? cJSON_ParseWithOpts(text, NULL, true) : NULL;
}

static int64_t count_of(const cJSON *usage, const char *name)
{
    const cJSON *n = cJSON_GetObjectItemCaseSensitive(usage, name);

    return cJSON_IsNumber(n) && n->valuedouble >= 0 && n->valuedouble < 0x1p53
               ? (int64_t)n->valuedouble
               : -1;
}

/* The item that holds the text, which is a string or null; NULL: the reply is no completion. */
static const cJSON *content_of(const cJSON *root, enum endpoint endpoint, char why[REPLY_WHY])
{
    const cJSON *choices = cJSON_GetObjectItemCaseSensitive(root, "choices");
    const cJSON *choice = cJSON_GetArrayItem(choices, 0), *holder = choice, *content;
    const char *name = endpoint == ENDPOINT_CHAT ? "content" : "text";

    if (!cJSON_IsArray(choices) || !cJSON_IsObject(choice)) {
        (void)snprintf(why, REPLY_WHY, "the reply has no choices");
        return NULL;
    }
    if (endpoint == ENDPOINT_CHAT)
        holder = cJSON_GetObjectItemCaseSensitive(choice, "message");
    if (!cJSON_IsObject(holder)) {
        (void)snprintf(why, REPLY_WHY, "the reply's choice has no message");
        return NULL;
    }
    content = cJSON_GetObjectItemCaseSensitive(holder, name);
    if (cJSON_IsString(content) || cJSON_IsNull(content))
        return content;
    (void)snprintf(why, REPLY_WHY, "the reply's choice has no %s", name);
    return NULL;
}

/* NULL items are empty texts. NULL: no memory. */
static const char *text_of(const cJSON *item, struct arena *arena)
{
    const char *text = cJSON_GetStringValue(item);

    return arena_strdup(arena, text ? text : "");
}

enum reply_kind reply_parse(const char *body, size_t bytes, enum endpoint endpoint,
                            struct arena *arena, struct reply *out, char why[REPLY_WHY])
{
    cJSON *root = parse(body, bytes, arena);
    const cJSON *content, *usage, *finish;
    enum reply_kind kind = REPLY_BAD;

    if (!root) {
        (void)snprintf(why, REPLY_WHY, "the reply is not JSON");
        return REPLY_BAD;
    }
    content = content_of(root, endpoint, why);
    if (content) {
        usage = cJSON_GetObjectItemCaseSensitive(root, "usage");
        finish = cJSON_GetObjectItemCaseSensitive(
            cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(root, "choices"), 0),
            "finish_reason");
        out->text.at = text_of(content, arena);
        out->finish_reason = text_of(finish, arena);
        out->text.size = out->text.at ? strlen(out->text.at) : 0;
        out->prompt_tokens = count_of(usage, "prompt_tokens");
        out->completion_tokens = count_of(usage, "completion_tokens");
        kind = out->text.at && out->finish_reason ? REPLY_OK : REPLY_NOMEM;
    }
    cJSON_Delete(root);
    return kind;
}

bool reply_truncated(const char *finish_reason)
{
    return !strcmp(finish_reason, "length");
}

/* Adds the member's text to ids. */
static void add_id(const cJSON *model, const char *member, struct arena *arena, const char **ids,
                   size_t *n)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(model, member));
    const char *copy = text ? arena_strdup(arena, text) : NULL;

    if (copy)
        ids[(*n)++] = copy;
}

size_t reply_models(const char *body, size_t bytes, struct arena *arena, const char **ids,
                    size_t most)
{
    cJSON *root = parse(body, bytes, arena);
    const cJSON *model, *data = cJSON_GetObjectItemCaseSensitive(root, "data");
    size_t n = 0;

    cJSON_ArrayForEach(model, data)
    {
        if (n < most)
            add_id(model, "id", arena, ids, &n);
        if (n < most)
            add_id(model, "root", arena, ids, &n);
    }
    cJSON_Delete(root);
    return n;
}

const char *reply_member(const char *body, size_t bytes, const char *member, struct arena *arena)
{
    cJSON *root = parse(body, bytes, arena);
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(root, member));
    const char *copy = text ? arena_strdup(arena, text) : NULL;

    cJSON_Delete(root);
    return copy;
}
