#include "harness/eval/protocol.h"

#include "harness/eval/protocol_lm_eval.h"
#include "harness/eval/protocol_vllm.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const struct protocol *const protocols[] = {&protocol_vllm, &protocol_lm_eval, &protocol_sglang};
const int protocol_count = sizeof protocols / sizeof protocols[0];

const char *endpoint_path(enum endpoint e)
{
    return e == ENDPOINT_CHAT ? "/v1/chat/completions" : "/v1/completions";
}

const struct protocol *protocol_find(const char *name)
{
    for (int i = 0; i < protocol_count; i++)
        if (!strcmp(protocols[i]->name, name))
            return protocols[i];
    return NULL;
}

/* Names in the request, and the size of a number's text. */
/* clang-format off */
static const char *const field_names[FIELD_COUNT] = {
    [FIELD_PROMPT]               = "prompt",
    [FIELD_MESSAGES]             = "messages",
    [FIELD_MODEL]                = "model",
    [FIELD_MAX_TOKENS]           = "max_tokens",
    [FIELD_TEMPERATURE]          = "temperature",
    [FIELD_STOP]                 = "stop",
    [FIELD_SEED]                 = "seed",
    [FIELD_TOP_P]                = "top_p",
    [FIELD_TOP_K]                = "top_k",
    [FIELD_REASONING_EFFORT]     = "reasoning_effort",
    [FIELD_CHAT_TEMPLATE_KWARGS] = "chat_template_kwargs",
};
/* clang-format on */
enum { NUMBER_TEXT = 32 };

/* Does the endpoint send this field? */
static bool has_field(const struct protocol *p, enum endpoint e, enum request_field field)
{
    const enum request_field *f = p->fields[e];

    while (*f != FIELD_END && *f != field)
        f++;
    return *f == field;
}

static bool is_object(const char *json)
{
    cJSON *value = cJSON_ParseWithOpts(json, NULL, true);
    bool object = cJSON_IsObject(value);

    cJSON_Delete(value);
    return object;
}

static void wrong(struct errs *errs, enum err_code *rc, const struct protocol *p, const char *what)
{
    *rc = errs_add(errs, ERR_CONFIG, NOWHERE, "protocol %s %s", p->name, what);
}

/* Has the field a value? */
static bool is_given(const struct protocol_options *o, enum request_field field)
{
    switch (field) {
    case FIELD_PROMPT:
    case FIELD_MESSAGES:
    case FIELD_MAX_TOKENS:
    case FIELD_STOP:
        return true;
    case FIELD_MODEL:
        return o->model != NULL;
    case FIELD_TEMPERATURE:
        return o->temperature.set;
    case FIELD_SEED:
        return o->seed.set;
    case FIELD_TOP_P:
        return o->top_p.set;
    case FIELD_TOP_K:
        return o->top_k.set;
    case FIELD_REASONING_EFFORT:
        return o->reasoning_effort != NULL;
    case FIELD_CHAT_TEMPLATE_KWARGS:
        return o->chat_template_kwargs != NULL;
    case FIELD_END:
    case FIELD_COUNT:
        break;
    }
    return false;
}

/* Fields that would be left out in silence. (A model name may: vLLM serves only one.) */
static void check_fields(const struct protocol *p, const struct protocol_options *o,
                         struct errs *errs, enum err_code *rc)
{
    for (int i = FIELD_TEMPERATURE; i < FIELD_COUNT; i++) {
        enum request_field field = (enum request_field)i;

        if (is_given(o, field) && !has_field(p, o->endpoint, field))
            *rc = errs_add(errs, ERR_CONFIG, NOWHERE, "protocol %s sends no %s to %s", p->name,
                           field_names[field], endpoint_path(o->endpoint));
    }
}

static bool in_range(struct maybe_real x, double low, double high)
{
    return !x.set || (x.value >= low && x.value <= high);
}

/* Ranges of the OpenAI interface that both servers keep: temperature from 0, top_p in (0, 1], top_k
 * from -1 (all), at least one token. */
static void check_values(const struct protocol *p, const struct protocol_options *o,
                         struct errs *errs, enum err_code *rc)
{
    if (p->needs_model && !o->model)
        wrong(errs, rc, p, "needs the name of the model");
    if (!o->gen_prefix || (*o->gen_prefix && !p->takes_gen_prefix))
        wrong(errs, rc, p, "has no gen_prefix");
    if (o->max_tokens < 1)
        wrong(errs, rc, p, "needs max_tokens of at least 1");
    if (!in_range(o->temperature, 0.0, 100.0))
        wrong(errs, rc, p, "needs a temperature from 0 to 100");
    if (!in_range(o->top_p, 0x1p-20, 1.0))
        wrong(errs, rc, p, "needs top_p above 0 and at most 1");
    if (o->top_k.set && o->top_k.value < -1)
        wrong(errs, rc, p, "needs top_k of at least -1");
    if (o->chat_template_kwargs && !is_object(o->chat_template_kwargs))
        wrong(errs, rc, p, "needs chat_template_kwargs to be an object of JSON");
}

/* How many questions and examples there are. */
static void check_counts(const struct prompts *s, size_t pool, struct errs *errs, enum err_code *rc)
{
    size_t rows = s->data->test.count, shots = s->options.shots;
    size_t most = rows > s->first ? rows - s->first : 0;

    if (shots > pool || shots > PROTOCOL_SHOTS_MAX)
        *rc = errs_add(errs, ERR_CONFIG, NOWHERE,
                       "%zu examples before a question: there are %zu rows, and %d are the limit",
                       shots, pool, PROTOCOL_SHOTS_MAX);
    else if (!s->count || s->count > most)
        *rc = errs_add(errs, ERR_CONFIG, NOWHERE,
                       "%zu questions: protocol %s can ask 1 to %zu of these data", s->count,
                       s->protocol->name, most);
}

static enum err_code check(const struct prompts *s, size_t pool, struct errs *errs)
{
    const struct protocol *p = s->protocol;
    enum err_code rc = ERR_NONE;

    if (s->options.endpoint != ENDPOINT_COMPLETIONS && s->options.endpoint != ENDPOINT_CHAT)
        return errs_add(errs, ERR_CONFIG, NOWHERE, "there is no such endpoint");
    if (p->fields[s->options.endpoint][0] == FIELD_END)
        return errs_add(errs, ERR_CONFIG, NOWHERE, "protocol %s does not use %s", p->name,
                        endpoint_path(s->options.endpoint));
    check_fields(p, &s->options, errs, &rc);
    check_values(p, &s->options, errs, &rc);
    check_counts(s, pool, errs, &rc);
    return rc;
}

enum err_code prompts_init(struct prompts *p, const struct protocol *protocol,
                           const struct dataset *data, const struct protocol_options *options,
                           size_t questions, struct arena *arena, struct errs *errs)
{
    size_t pool = protocol->shots_from_test ? data->test.count : data->train.count;
    uint32_t *rows;

    *p = (struct prompts){.protocol = protocol,
                          .data = data,
                          .options = *options,
                          .count = questions,
                          .first = protocol->shots_from_test ? options->shots : 0};
    TRY(check(p, pool, errs));
    rows = arena_alloc(arena, questions * options->shots, sizeof *rows);
    if (!rows)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "the prompts do not fit in their memory");
    protocol->choose(pool, questions, options->shots, rows);
    p->rows = rows;
    return ERR_NONE;
}

const struct dataset_row *prompts_row(const struct prompts *p, size_t i)
{
    return &p->data->test.row[p->first + i];
}

/* Example k before question i. */
static const struct dataset_row *shot(const struct prompts *p, size_t i, size_t k)
{
    const struct dataset_rows *pool =
        p->protocol->shots_from_test ? &p->data->test : &p->data->train;

    return &pool->row[p->rows[i * p->options.shots + k]];
}

/* Puts text and its NUL behind the n bytes of `out`, if that is not NULL. Returns the length,
 * NUL not counted. */
static size_t put(char *out, size_t n, const char *text)
{
    size_t size = strlen(text);

    if (out)
        memcpy(out + n, text, size + 1);
    return n + size;
}

static size_t put_question(char *out, size_t n, const char *question, const char *gen_prefix)
{
    n = put(out, n, "Question: ");
    n = put(out, n, question);
    n = put(out, n, "\nAnswer:");
    return put(out, n, gen_prefix);
}

static size_t put_prompt(char *out, const struct prompts *p, size_t i)
{
    size_t n = 0;

    for (size_t k = 0; k < p->options.shots; k++) {
        const struct dataset_row *example = shot(p, i, k);

        n = put_question(out, n, example->question, p->options.gen_prefix);
        n = put(out, n, " ");
        n = put(out, n, example->answer);
        n = put(out, n, "\n\n");
    }
    return put_question(out, n, prompts_row(p, i)->question, p->options.gen_prefix);
}

struct span prompts_text(const struct prompts *p, size_t i, struct arena *arena)
{
    size_t size = put_prompt(NULL, p, i);
    char *text = arena_alloc(arena, size + 1, 1);

    if (!text)
        return (struct span){NULL, 0};
    (void)put_prompt(text, p, i);
    return (struct span){text, size};
}

static cJSON *messages(const struct protocol *p, const char *prompt)
{
    cJSON *array = cJSON_CreateArray(), *message = cJSON_CreateObject();
    bool ok = cJSON_AddStringToObject(message, "role", "user") &&
              cJSON_AddStringToObject(message, "content", prompt) &&
              (!p->typed_messages || cJSON_AddStringToObject(message, "type", "text"));

    if (ok && cJSON_AddItemToArray(array, message))
        return array;
    cJSON_Delete(message);
    cJSON_Delete(array);
    return NULL;
}

/* Whole numbers are raw text: a number of cJSON is a double, and a seed may need 64 bits. */
static cJSON *whole(int64_t x)
{
    char text[NUMBER_TEXT];

    (void)snprintf(text, sizeof text, "%" PRId64, x);
    return cJSON_CreateRaw(text);
}

static int count_stops(const struct protocol *p)
{
    int n = 0;

    while (p->stops[n])
        n++;
    return n;
}

/* The value of a field that is given; NULL: no memory. */
static cJSON *value_of(const struct prompts *p, enum request_field field, const char *prompt)
{
    const struct protocol_options *o = &p->options;

    switch (field) {
    case FIELD_PROMPT:
        return cJSON_CreateString(prompt);
    case FIELD_MESSAGES:
        return messages(p->protocol, prompt);
    case FIELD_MODEL:
        return cJSON_CreateString(o->model);
    case FIELD_MAX_TOKENS:
        return whole(o->max_tokens);
    case FIELD_STOP:
        return cJSON_CreateStringArray(p->protocol->stops, count_stops(p->protocol));
    case FIELD_TEMPERATURE:
        return cJSON_CreateNumber(o->temperature.value);
    case FIELD_SEED:
        return whole(o->seed.value);
    case FIELD_TOP_P:
        return cJSON_CreateNumber(o->top_p.value);
    case FIELD_TOP_K:
        return whole(o->top_k.value);
    case FIELD_REASONING_EFFORT:
        return cJSON_CreateString(o->reasoning_effort);
    case FIELD_CHAT_TEMPLATE_KWARGS:
        return cJSON_Parse(o->chat_template_kwargs);
    case FIELD_END:
    case FIELD_COUNT:
        break;
    }
    return NULL;
}

static bool add_field(cJSON *body, const struct prompts *p, enum request_field field,
                      const char *prompt)
{
    cJSON *value = value_of(p, field, prompt);

    if (value && cJSON_AddItemToObject(body, field_names[field], value))
        return true;
    cJSON_Delete(value);
    return false;
}

const char *prompts_request(const struct prompts *p, const char *prompt, struct arena *arena)
{
    cJSON *body = cJSON_CreateObject();
    bool ok = body != NULL;
    char *json;
    const char *copy;

    for (const enum request_field *f = p->protocol->fields[p->options.endpoint]; *f; f++)
        if (ok && is_given(&p->options, *f))
            ok = add_field(body, p, *f, prompt);
    json = ok ? cJSON_PrintUnformatted(body) : NULL;
    copy = json ? arena_strdup(arena, json) : NULL;
    cJSON_free(json);
    cJSON_Delete(body);
    return copy;
}
