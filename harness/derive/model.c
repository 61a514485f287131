#include "harness/derive/model.h"

#include "harness/config/axes.h"
#include "harness/config/near.h"
#include "harness/config/source.h"
#include "harness/config/yaml_doc.h"
#include "reference/dtype.h"

#include <inttypes.h>
#include <string.h>

enum { SHOWN = 96, HINT = 96, SIZE_MAX_OF_KEY = 1 << 20 };

const char *const model_parts[] = {"attention", "linear_attention", "mamba", "mlp",
                                   "shared",    "experts",          NULL};

struct loader {
    const char *path;
    struct arena *arena;
    struct errs *errs;
    enum err_code rc; /* of the first error */
    struct model *out;
    const struct doc_node *root;
};

#define BAD(l, at, ...) failed((l), errs_add((l)->errs, ERR_CONFIG, (at), __VA_ARGS__))

static void failed(struct loader *l, enum err_code rc)
{
    l->rc = l->rc ? l->rc : rc;
}

/* ---- values ---------------------------------------------------------------------------------- */

struct key {
    const char *key;
    bool required;
    size_t offset; /* in struct model, or in struct model_weights */
    void (*load)(struct loader *l, const struct key *k, const struct doc_node *n, void *member);
    int64_t low, high;
    const char *const *words;
};

static void load_int(struct loader *l, const struct key *k, const struct doc_node *n, void *member)
{
    struct axis x = {.kind = AXIS_INT, .min = k->low, .max = k->high};
    char shown[SHOWN];

    if (n->kind != DOC_TEXT || n->quoted || axis_parse(&x, n->text, member, shown, sizeof shown))
        BAD(l, n->at, "%s: expected a whole number from %" PRId64 " to %" PRId64 ", found %s",
            k->key, k->low, k->high, doc_show(n, shown, sizeof shown));
}

static void load_bool(struct loader *l, const struct key *k, const struct doc_node *n, void *member)
{
    struct axis x = {.kind = AXIS_BOOL};
    char shown[SHOWN];

    if (n->kind != DOC_TEXT || n->quoted || axis_parse(&x, n->text, member, shown, sizeof shown))
        BAD(l, n->at, "%s: expected true or false, found %s", k->key,
            doc_show(n, shown, sizeof shown));
}

static void load_flag(struct loader *l, const struct key *k, const struct doc_node *n, void *member)
{
    int64_t value = 0;

    load_bool(l, k, n, &value);
    *(bool *)member = value != 0;
}

static void load_text(struct loader *l, const struct key *k, const struct doc_node *n, void *member)
{
    char shown[SHOWN];

    if (n->kind == DOC_TEXT && *n->text)
        *(const char **)member = n->text;
    else
        BAD(l, n->at, "%s: expected a text, found %s", k->key, doc_show(n, shown, sizeof shown));
}

static const char *word_of(const char *const *words, const char *text)
{
    for (int i = 0; words[i]; i++)
        if (!strcmp(words[i], text))
            return words[i];
    return NULL;
}

static void load_word(struct loader *l, const struct key *k, const struct doc_node *n, void *member)
{
    struct near near = near_to(n->kind == DOC_TEXT ? n->text : "");
    const char *word = n->kind == DOC_TEXT ? word_of(k->words, n->text) : NULL;
    char shown[SHOWN], hint[HINT];

    near_offer_all(&near, k->words);
    if (word)
        *(const char **)member = word;
    else
        BAD(l, n->at, "%s: unknown word %s%s", k->key, doc_show(n, shown, sizeof shown),
            near_hint(&near, hint, sizeof hint));
}

/* A format as the axis reads it. */
static void load_format(struct loader *l, const struct key *k, const struct doc_node *n,
                        void *member)
{
    const struct axis *x = &axes[k->low];
    const char *expected = "a format";
    char shown[SHOWN], buf[SHOWN];
    int64_t value = AXIS_AUTO;

    if (n->kind == DOC_TEXT)
        expected = axis_parse(x, n->text, &value, buf, sizeof buf);
    if (expected)
        BAD(l, n->at, "%s: expected %s, found %s", k->key, expected,
            doc_show(n, shown, sizeof shown));
    else
        *(const char **)member = value == AXIS_AUTO ? NULL : dtypes[value].name;
}

static void load_parts(struct loader *l, const struct key *k, const struct doc_node *n,
                       void *member)
{
    unsigned *bits = member;

    if (n->kind != DOC_LIST) {
        BAD(l, n->at, "%s: expected a list of parts of the model", k->key);
        return;
    }
    for (const struct doc_node *e = n->child; e; e = e->next) {
        const struct key of_one = {.key = k->key, .words = model_parts};
        const char *word = NULL;

        load_word(l, &of_one, e, &word);
        for (unsigned p = 0; word && p < PART_COUNT; p++)
            *bits |= word == model_parts[p] ? 1u << p : 0;
    }
}

/* ---- maps ------------------------------------------------------------------------------------ */

static const struct key *find_key(struct loader *l, const struct key *keys, size_t count,
                                  const struct doc_node *n)
{
    struct near near = near_to(n->key);
    char hint[HINT];

    for (size_t i = 0; i < count; i++) {
        if (!strcmp(keys[i].key, n->key))
            return &keys[i];
        near_offer(&near, keys[i].key);
    }
    BAD(l, n->key_at, "unknown key '%.40s'%s", n->key, near_hint(&near, hint, sizeof hint));
    return NULL;
}

static void load_map(struct loader *l, const struct key *keys, size_t count,
                     const struct doc_node *map, void *out)
{
    for (const struct doc_node *n = map->child; n; n = n->next) {
        const struct key *k = find_key(l, keys, count, n);

        if (k && n->kind != DOC_REFUSED)
            k->load(l, k, n, (char *)out + k->offset);
    }
}

/* ---- quantization ---------------------------------------------------------------------------- */

static const char *const scales[] = {"channel", "group", "block", "tensor", NULL};

/* The weights, and which parts have them. */
struct quantization {
    struct model_weights weights;
    unsigned layers, unknown;
};

#define QAT(member) offsetof(struct quantization, member)

/* clang-format off */
static const struct key quantization_keys[] = {
    {"dtype",        true,  QAT(weights.b),          load_format, AX_B,  0,       NULL},
    {"scale",        true,  QAT(weights.scale),      load_word,   0,     0,       scales},
    {"group_size",   false, QAT(weights.group),      load_int,    1,     1 << 16, NULL},
    {"group_size_n", false, QAT(weights.group_n),    load_int,    1,     1 << 16, NULL},
    {"scale_dtype",  false, QAT(weights.bs),         load_format, AX_BS, 0,       NULL},
    {"scale_2",      false, QAT(weights.scale_2),    load_flag,   0,     0,       NULL},
    {"zero_point",   false, QAT(weights.zero_point), load_flag,   0,     0,       NULL},
    {"layers",       true,  QAT(layers),             load_parts,  0,     0,       NULL},
    {"unknown",      false, QAT(unknown),            load_parts,  0,     0,       NULL},
};
/* clang-format on */
enum { QUANTIZATION_KEYS = sizeof quantization_keys / sizeof quantization_keys[0] };

static void check_groups(struct loader *l, const struct doc_node *n, const struct quantization *q)
{
    bool block = q->weights.scale == scales[2], group = q->weights.scale == scales[1];

    if (q->weights.scale && (block || group) != (q->weights.group > 0))
        BAD(l, n->at, "group_size belongs to scales of groups and blocks, and they need it");
    if (q->weights.scale && block != (q->weights.group_n > 0))
        BAD(l, n->at, "group_size_n belongs to scales of blocks, and they need it");
    if (q->layers & q->unknown)
        BAD(l, n->at, "a part stands in layers and in unknown");
}

static void load_quantization(struct loader *l, const struct key *k, const struct doc_node *n,
                              void *member)
{
    struct quantization q = {0};

    (void)member;
    if (n->kind == DOC_TEXT && !n->quoted && !strcmp(n->text, "none")) {
        l->out->state = WEIGHTS_PLAIN;
        return;
    }
    if (n->kind != DOC_MAP) {
        BAD(l, n->at, "%s: expected a map, or none for weights that are not quantized", k->key);
        return;
    }
    load_map(l, quantization_keys, QUANTIZATION_KEYS, n, &q);
    for (size_t i = 0; i < QUANTIZATION_KEYS; i++)
        if (quantization_keys[i].required && !doc_find(n, quantization_keys[i].key))
            BAD(l, n->at, "key '%s' is missing in quantization", quantization_keys[i].key);
    check_groups(l, n, &q);
    q.weights.at = n->key_at;
    l->out->state = WEIGHTS_QUANTIZED;
    l->out->weights = q.weights;
    l->out->quantized = q.layers;
    l->out->unknown = q.unknown;
}

/* ---- the file -------------------------------------------------------------------------------- */

static const char *const dtype_words[] = {"f16", "bf16", NULL};
static const char *const missing_words[] = {"dtype", "quantization", NULL};

/* Said, so that a reader knows that it was looked for; the base's value does not hold. */
static void load_missing(struct loader *l, const struct key *k, const struct doc_node *n,
                         void *member)
{
    (void)member;
    if (n->kind != DOC_LIST) {
        BAD(l, n->at, "%s: expected a list of keys", k->key);
        return;
    }
    for (const struct doc_node *e = n->child; e; e = e->next) {
        const struct key of_one = {.key = k->key, .words = missing_words};
        const char *word = NULL;

        load_word(l, &of_one, e, &word);
        if (word && doc_find(l->root, word))
            BAD(l, e->at, "%s: '%s' is stated in this file", k->key, word);
        if (word == missing_words[0])
            l->out->dtype = NULL;
    }
}

/* Read before everything else. */
static void skip_base(struct loader *l, const struct key *k, const struct doc_node *n, void *member)
{
    (void)l;
    (void)k;
    (void)n;
    (void)member;
}

#define AT(member) offsetof(struct model, member)
#define SIZE(name)                                                 \
    {                                                              \
#name, false, AT(name), load_int, 1, SIZE_MAX_OF_KEY, NULL \
    }
#define NEEDED(name)                                              \
    {                                                             \
#name, true, AT(name), load_int, 1, SIZE_MAX_OF_KEY, NULL \
    }
#define FLAG(name)                                    \
    {                                                 \
#name, false, AT(name), load_bool, 0, 0, NULL \
    }

static const struct key keys[] = {
    {"base", false, 0, skip_base, 0, 0, NULL},
    {"model_name", true, AT(name), load_text, 0, 0, NULL},
    {"dtype", false, AT(dtype), load_word, 0, 0, dtype_words},
    NEEDED(hidden_size),
    NEEDED(num_hidden_layers),
    NEEDED(num_attention_heads),
    NEEDED(num_key_value_heads),
    NEEDED(head_dim),
    SIZE(intermediate_size),
    SIZE(num_experts),
    SIZE(num_experts_per_tok),
    SIZE(moe_intermediate_size),
    SIZE(shared_expert_intermediate_size),
    SIZE(linear_num_key_heads),
    SIZE(linear_num_value_heads),
    SIZE(linear_key_head_dim),
    SIZE(linear_value_head_dim),
    SIZE(mamba_num_heads),
    SIZE(mamba_head_dim),
    SIZE(n_groups),
    SIZE(ssm_state_size),
    SIZE(swiglu_limit),
    FLAG(attention_bias),
    FLAG(attention_output_bias),
    FLAG(attn_output_gate),
    FLAG(expert_bias),
    {"activation", true, AT(activation), load_word, AX_ACTIVATION, 0, NULL},
    {"activation_form", true, AT(activation_form), load_word, AX_FORM, 0, NULL},
    {"quantization", false, 0, load_quantization, 0, 0, NULL},
    {"missing", false, 0, load_missing, 0, 0, NULL},
};
enum { KEYS = sizeof keys / sizeof keys[0] };

static bool read_doc(struct loader *l)
{
    const struct doc_node *root = NULL;
    const char *text, *problem;
    enum err_code code;
    char shown[SHOWN];
    size_t size;

    problem = source_read(l->path, l->arena, &text, &size, &code);
    if (problem) {
        failed(l, errs_add(l->errs, code, place_at(l->path, 0, 0),
                           "the model file cannot be read: %s", problem));
        return false;
    }
    failed(l, doc_parse(l->path, text, size, l->arena, &root, l->errs));
    if (root && root->kind != DOC_MAP)
        BAD(l, root->at, "a model file is a map of keys such as hidden_size, found %s",
            doc_show(root, shown, sizeof shown));
    if (!root && !l->rc)
        BAD(l, place_at(l->path, 0, 0), "the model file is empty");
    l->root = root && root->kind == DOC_MAP ? root : NULL;
    return l->root != NULL;
}

/* Axis words stand in the axis table, not in this one. */
static void load_key(struct loader *l, const struct key *k, const struct doc_node *n)
{
    struct key own = *k;

    if (k->load == load_word && !k->words)
        own.words = axes[k->low].words;
    k->load(l, &own, n, (char *)l->out + k->offset);
}

static void load_keys(struct loader *l)
{
    for (const struct doc_node *n = l->root->child; n; n = n->next) {
        const struct key *k = find_key(l, keys, KEYS, n);

        if (k && n->kind != DOC_REFUSED)
            load_key(l, k, n);
    }
}

static void load_base(struct loader *l, const char *folder)
{
    const struct doc_node *n = doc_find(l->root, "base");
    struct loader of_base = *l;

    if (!n || n->kind == DOC_REFUSED)
        return;
    of_base.path = n->kind == DOC_TEXT ? model_path(folder, n->text, l->arena) : NULL;
    if (!of_base.path) {
        BAD(l, n->at, "base: expected the name of a model, such as Qwen/Qwen3-30B-A3B");
        return;
    }
    if (read_doc(&of_base)) {
        if (doc_find(of_base.root, "base"))
            BAD(l, n->at, "base: that model has a base of its own; name that one");
        load_keys(&of_base);
    }
    failed(l, of_base.rc);
    l->out->name = NULL;
    l->out->state = WEIGHTS_UNKNOWN; /* other weights than the base's */
    l->out->quantized = l->out->unknown = 0;
}

static bool is_set(const struct model *m, const struct key *k)
{
    const char *member = (const char *)m + k->offset;

    return k->load == load_int ? *(const int64_t *)(const void *)member != 0
                               : *(const char *const *)(const void *)member != NULL;
}

enum err_code model_load(const char *path, const char *folder, struct arena *arena,
                         struct model *out, struct errs *errs)
{
    struct loader l = {.path = arena_strdup(arena, path), .arena = arena, .errs = errs, .out = out};

    *out = (struct model){.path = l.path, .name_at = place_at(l.path, 0, 0)};
    if (!l.path)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the model");
    if (!read_doc(&l))
        return l.rc;
    out->name_at = l.root->at;
    load_base(&l, folder);
    load_keys(&l);
    for (size_t i = 0; i < KEYS; i++)
        if (keys[i].required && !is_set(out, &keys[i]) && !doc_find(l.root, keys[i].key))
            BAD(&l, l.root->at, "key '%s' is missing", keys[i].key);
    return l.rc ? l.rc : model_check(out, errs);
}

static bool is_name(const char *text, size_t n)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789._-";

    return n > 0 && text[0] != '.' && strspn(text, letters) >= n;
}

const char *model_path(const char *folder, const char *name, struct arena *arena)
{
    const char *slash = strchr(name, '/');

    if (!slash || !is_name(name, (size_t)(slash - name)) || !is_name(slash + 1, strlen(slash + 1)))
        return NULL;
    return arena_printf(arena, "%s/%s.yaml", folder, name);
}
