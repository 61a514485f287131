#include "harness/eval/config.h"

#include "harness/eval/client.h"
#include "harness/eval/config_load.h"

#include <string.h>

#define AT(member) offsetof(struct eval_config, member)
#define BILLION    ((int64_t)EVAL_BILLION)

enum { HINT = 96, SECONDS_MAX = 604800, QUESTIONS_MAX = 1000000 };

void config_failed(struct config_loader *l, enum err_code code)
{
    if (!l->rc)
        l->rc = code;
}

void config_no_memory(struct config_loader *l)
{
    if (l->rc != ERR_NOMEM)
        (void)errs_add(l->errs, ERR_NOMEM, place_at(l->path, 0, 0),
                       "no memory for the configuration");
    l->rc = ERR_NOMEM;
}

static const char *const endpoint_words[] = {"completions", "chat", NULL};
static const char *const data_words[] = {"gsm8k", "arith", NULL};

static void load_protocol(struct config_loader *l, const struct config_key *k,
                          const struct doc_node *n, void *member)
{
    const char *text = config_string(l, k->key, n);
    struct near near = near_to(text ? text : "");
    char shown[CONFIG_SHOWN], hint[HINT];

    (void)member;
    if (!text)
        return;
    for (int i = 0; i < protocol_count; i++)
        near_offer(&near, protocols[i]->name);
    if (protocol_find(text))
        l->out->protocol = protocol_find(text);
    else
        BAD(l, n->at, "%s: expected vllm, lm-eval or sglang, found %s%s", k->key,
            doc_show(n, shown, sizeof shown), near_hint(&near, hint, sizeof hint));
    l->out->protocol_at = n->at;
}

static void load_dead(struct config_loader *l, const struct config_key *k, const struct doc_node *n,
                      void *member)
{
    (void)member;
    WARN(l, n->key_at, "%s has no effect: %s", n->key, k->help);
}

static void load_own(struct config_loader *l, const struct config_key *k, const struct doc_node *n,
                     void *member);

/* clang-format off */
static const struct config_key keys[] = {
    {"model_name", true, AT(model_name), config_text, 0, 0, NULL,
     "the model as the server is told it"},
    {"accuracy_threshold", true, AT(accuracy_threshold), config_real, 0, BILLION, NULL,
     "share of right answers, 0 to 1, before the tolerance"},
    {"tolerance", false, AT(tolerance), config_real, 0, BILLION, NULL,
     "absolute, taken off the threshold (default 0.08)"},
    {"num_questions", true, AT(num_questions), config_int, 1, QUESTIONS_MAX, NULL,
     "the first of the test split"},
    {"num_fewshot", true, AT(num_fewshot), config_int, 0, PROTOCOL_SHOTS_MAX, NULL,
     "worked examples before each question"},
    {"server_args", false, AT(server_args), config_server_args, 0, 0, NULL,
     "arguments of the server, split like a shell without a shell"},
    {"env", false, 0, config_env, 0, 0, NULL,
     "environment of the server: names and texts"},
    {"startup_max_wait_seconds", false, AT(startup_max_wait_seconds), config_int, 1, SECONDS_MAX,
     NULL, "until the server must be ready (default 1200)"},
    {"min_acceptance_length", false, AT(min_acceptance_length), config_real, BILLION,
     1000 * BILLION, NULL, "of speculative decoding, from the server's metrics"},
    {"request_timeout_seconds", false, AT(timeout), config_real, 1, SECONDS_MAX * BILLION, NULL,
     "one attempt of a request (default 600)"},
    {"max_tokens", false, AT(max_tokens), config_int, 1, INT32_MAX, NULL,
     "of an answer (default: the protocol's)"},
    {"use_chat_completions", false, AT(endpoint), config_bool, 0, 0, NULL,
     "ask /v1/chat/completions"},
    {"temperature", false, AT(temperature), config_real_or_null, 0, 100 * BILLION, NULL,
     "null: not sent (default: the protocol's)"},
    {"seed", false, AT(seed), config_int_or_null, 0, INT64_MAX, NULL,
     "of each request; null: not sent (default: the protocol's)"},
    {"gen_prefix", false, AT(gen_prefix), config_any_text, 0, 0, NULL,
     "behind 'Answer:' in the examples and the question"},
    {"max_concurrency", false, AT(concurrency), config_int, 1, CLIENT_CONCURRENCY_MAX, NULL,
     "requests in progress at once (default 100)"},
    {"max_model_len", false, 0, load_dead, 0, 0, NULL,
     "vLLM no longer reads it; write --max-model-len into server_args"},
    {"rocm_request_timeout_seconds", false, 0, load_dead, 0, 0, NULL,
     "it is for ROCm only; request_timeout_seconds holds here"},
    {"x-humcheck", false, 0, load_own, 0, 0, NULL,
     "a map of the keys below"},
};

static const struct config_key own_keys[] = {
    {"protocol", false, 0, load_protocol, 0, 0, NULL,
     "vllm, lm-eval or sglang (default vllm)"},
    {"endpoint", false, AT(endpoint), config_word, 0, 0, endpoint_words,
     "completions or chat (default completions)"},
    {"data", false, AT(data), config_word, 0, 0, data_words,
     "gsm8k or arith, problems made on the spot (default gsm8k)"},
    {"gen_prefix", false, AT(gen_prefix), config_any_text, 0, 0, NULL, "as above"},
    {"reasoning_effort", false, AT(reasoning_effort), config_text, 0, 0, NULL,
     "sent with a chat request"},
    {"chat_template_kwargs", false, AT(chat_template_kwargs), config_json, 0, 0, NULL,
     "an object of JSON in quotes, sent with a chat request"},
    {"max_tokens", false, AT(max_tokens), config_int, 1, INT32_MAX, NULL, "as above"},
    {"seed", false, AT(seed), config_int_or_null, 0, INT64_MAX, NULL, "as above"},
    {"temperature", false, AT(temperature), config_real_or_null, 0, 100 * BILLION, NULL,
     "as above"},
    {"top_p", false, AT(top_p), config_real, 1, BILLION, NULL, "above 0, at most 1"},
    {"top_k", false, AT(top_k), config_int, -1, INT32_MAX, NULL, "-1: all"},
    {"concurrency", false, AT(concurrency), config_int, 1, CLIENT_CONCURRENCY_MAX, NULL,
     "max_concurrency, for humcheck only"},
    {"timeout_seconds", false, AT(timeout), config_real, 1, SECONDS_MAX * BILLION, NULL,
     "request_timeout_seconds, for humcheck only"},
    {"max_attempts", false, AT(max_attempts), config_int, 1, 100, NULL,
     "of one request (default 6)"},
    {"max_error_rate", false, AT(max_error_rate), config_real, 0, BILLION, NULL,
     "more errors than this share: no verdict (default 0.005)"},
    {"server_command", false, AT(server_command), config_words, 0, 0, NULL,
     "stands in place of 'vllm serve'"},
    {"floors", false, 0, config_floors, 0, 0, NULL,
     "by GPU: an accuracy, or {accuracy, tolerance, evidence}"},
    {"dims", false, AT(dims), config_text, 0, 0, NULL,
     "file of the model's layer shapes, from this file's folder"},
};
/* clang-format on */
enum {
    KEYS = sizeof keys / sizeof keys[0],
    OWN_KEYS = sizeof own_keys / sizeof own_keys[0],
};

bool eval_config_key(size_t i, struct eval_key *out)
{
    const struct config_key *k = i < KEYS ? &keys[i] : NULL;

    if (i >= KEYS && i - KEYS < OWN_KEYS)
        k = &own_keys[i - KEYS];
    if (k)
        *out = (struct eval_key){k->key, i < KEYS ? "vLLM" : "x-humcheck", k->help, k->required};
    return k != NULL;
}

/* Keys of other tools' configurations that look alike, and what is meant by them here. */
/* clang-format off */
static const struct {
    const char *key, *sentence;
} elsewhere[] = {
    {"rtol", "vLLM's GSM8K floor is absolute: write tolerance"},
    {"metric_threshold", "GSM8K configurations say accuracy_threshold"},
    {"limit", "GSM8K configurations say num_questions"},
    {"tasks", "this is an lm-eval-harness configuration, not a GSM8K one"},
    {"backend", "this is an lm-eval-harness configuration, not a GSM8K one"},
};
/* clang-format on */

static bool is_own_key(const char *key)
{
    for (size_t i = 0; i < OWN_KEYS; i++)
        if (!strcmp(own_keys[i].key, key))
            return true;
    return false;
}

/* A key that the top level does not have, but somebody else has. */
static bool explain_unknown(struct config_loader *l, const struct doc_node *n)
{
    for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++)
        if (!strcmp(elsewhere[i].key, n->key)) {
            BAD(l, n->key_at, "unknown key '%s': %s", n->key, elsewhere[i].sentence);
            return true;
        }
    if (is_own_key(n->key))
        BAD(l, n->key_at, "'%s' is humcheck's own: it belongs under x-humcheck", n->key);
    return is_own_key(n->key);
}

static bool explain_vllm(struct config_loader *l, const struct doc_node *n)
{
    for (size_t i = 0; i < KEYS; i++)
        if (!strcmp(keys[i].key, n->key)) {
            BAD(l, n->key_at, "'%s' is vLLM's: it belongs at the top", n->key);
            return true;
        }
    return false;
}

static const struct config_key *find_key(struct config_loader *l, const struct config_key *table,
                                         size_t count, const struct doc_node *n, const char *where,
                                         bool (*unknown)(struct config_loader *l,
                                                         const struct doc_node *n))
{
    struct near near = near_to(n->key);
    char hint[HINT];

    for (size_t i = 0; i < count; i++) {
        if (!strcmp(table[i].key, n->key))
            return &table[i];
        near_offer(&near, table[i].key);
    }
    if (!unknown || !unknown(l, n))
        BAD(l, n->key_at, "unknown key '%.40s'%s%s", n->key, where,
            near_hint(&near, hint, sizeof hint));
    return NULL;
}

void config_map(struct config_loader *l, const struct config_key *table, size_t count,
                const struct doc_node *map, void *out, const char *where,
                bool (*unknown)(struct config_loader *l, const struct doc_node *n))
{
    for (const struct doc_node *n = map->child; n; n = n->next) {
        const struct config_key *k = find_key(l, table, count, n, where, unknown);
        char *member = k ? (char *)out + k->offset : NULL;
        const struct place *stated = k && k->offset ? (const struct place *)(void *)member : NULL;

        if (stated && stated->line)
            BAD(l, n->key_at, "%s says again what line %d states", n->key, stated->line);
        else if (k && n->kind != DOC_REFUSED)
            k->load(l, k, n, member);
    }
    for (size_t i = 0; i < count; i++)
        if (table[i].required && !doc_find(map, table[i].key))
            BAD(l, map->at, "key '%s' is missing%s", table[i].key, where);
}

static void load_own(struct config_loader *l, const struct config_key *k, const struct doc_node *n,
                     void *member)
{
    char shown[CONFIG_SHOWN];

    (void)member;
    if (n->kind == DOC_MAP)
        config_map(l, own_keys, OWN_KEYS, n, l->out, " in x-humcheck", explain_vllm);
    else
        BAD(l, n->at, "%s: expected a map of keys, found %s", k->key,
            doc_show(n, shown, sizeof shown));
}

/* What stands where nothing is stated. The protocol's own values are set by config_complete. */
static void set_defaults(struct eval_config *c)
{
    c->protocol = protocols[0];
    c->model_name.text = "";
    c->tolerance = (struct eval_real){.set = true, .value = 0.08, .billionths = 80000000};
    c->startup_max_wait_seconds = (struct eval_int){.set = true, .value = 1200};
    c->endpoint = (struct eval_int){.set = true, .value = ENDPOINT_COMPLETIONS};
    c->concurrency = (struct eval_int){.set = true, .value = 100};
    c->timeout = (struct eval_real){.set = true, .value = 600, .billionths = 600 * BILLION};
    c->max_attempts = (struct eval_int){.set = true, .value = 6};
    c->max_error_rate = (struct eval_real){.set = true, .value = 0.005, .billionths = 5000000};
    c->data = (struct eval_int){.set = true, .value = EVAL_GSM8K};
    c->server_args.text = c->server_command.text = "";
}

static bool comes_before(const struct err *a, const struct err *b)
{
    return a->at.line != b->at.line ? a->at.line < b->at.line : a->at.column < b->at.column;
}

/* In the order of the file, by insertion: stable, and there are at most ERRS_MAX. */
static void sort_errors(struct errs *errs, size_t first)
{
    for (size_t i = first + 1; i < errs->count; i++) {
        struct err moving = errs->items[i];
        size_t to = i;

        for (; to > first && comes_before(&moving, &errs->items[to - 1]); to--)
            errs->items[to] = errs->items[to - 1];
        errs->items[to] = moving;
    }
}

static void load_root(struct config_loader *l, const struct doc_node *root)
{
    char shown[CONFIG_SHOWN];

    if (root->kind == DOC_MAP) {
        config_map(l, keys, KEYS, root, l->out, "", explain_unknown);
        config_complete(l);
    } else if (root->kind != DOC_REFUSED) {
        BAD(l, root->at, "a configuration is a map of keys such as model_name, found %s",
            doc_show(root, shown, sizeof shown));
    }
}

/* "a/b/Qwen2.5-VL.yaml": "Qwen2.5-VL"; only the last suffix goes. */
static const char *name_of(const char *path, struct arena *arena)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    size_t n = dot && dot > base ? (size_t)(dot - base) : strlen(base);

    return arena_printf(arena, "%.*s", (int)n, base);
}

enum err_code eval_config_load_text(const char *path, const char *text, size_t size,
                                    struct arena *arena, struct eval_config *out,
                                    struct errs *warnings, struct errs *errs)
{
    struct config_loader l = {
        .arena = arena, .errs = errs, .warnings = warnings, .out = out, .path = path};
    size_t before = errs->count, warned = warnings->count;
    const struct doc_node *root = NULL;

    *out = (struct eval_config){0};
    set_defaults(out);
    l.path = arena_strdup(arena, path);
    out->path = l.path;
    out->name = l.path ? name_of(l.path, arena) : NULL;
    if (!out->name)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the configuration");
    l.rc = doc_parse(l.path, text, size, arena, &root, errs);
    if (root) {
        TRY(source_check(l.path, text, size, arena, &l.src, errs));
        load_root(&l, root);
    }
    sort_errors(errs, before);
    sort_errors(warnings, warned);
    return l.rc;
}

enum err_code eval_config_load(const char *path, struct arena *arena, struct eval_config *out,
                               struct errs *warnings, struct errs *errs)
{
    const char *text, *problem, *name = arena_strdup(arena, path);
    enum err_code code;
    size_t size;

    *out = (struct eval_config){.path = name};
    if (!name)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the configuration");
    problem = source_read(name, arena, &text, &size, &code);
    if (problem)
        return errs_add(errs, code, place_at(name, 0, 0), "the configuration cannot be read: %s",
                        problem);
    return eval_config_load_text(name, text, size, arena, out, warnings, errs);
}
