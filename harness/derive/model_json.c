/* A model from the config.json of its checkpoint. Keys are those of Hugging Face's Transformers;
 * where families spell one thing differently, the first that is there counts. */
#include "harness/derive/model.h"

#include "harness/config/source.h"
#include "harness/weights/schema_terms.h"

#include <ctype.h>
#include <string.h>

struct reader {
    const char *path;
    struct arena *arena;
    struct model *out;
    struct errs *errs;
    const struct json *root, *text; /* text: its text_config; NULL: none */
    enum err_code rc;
};

#define BAD(r, ...) \
    failed((r), errs_add((r)->errs, ERR_CONFIG, place_at((r)->path, 0, 0), __VA_ARGS__))

static void failed(struct reader *r, enum err_code rc)
{
    r->rc = r->rc ? r->rc : rc;
}

/* A member that is there and not null; the language model's own wins. */
static const struct json *member(const struct reader *r, const char *key)
{
    const struct json *of[] = {json_get(r->text, key), json_get(r->root, key)};

    for (int i = 0; i < 2; i++)
        if (of[i] && of[i]->kind != JSON_NULL)
            return of[i];
    return NULL;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

enum { NAMES = 3, SIZE_LIMIT = 1 << 20 };

/* clang-format off */
static const struct {
    size_t offset; /* in struct model */
    bool required;
    const char *names[NAMES];
} sizes[] = {
#define AT(member) offsetof(struct model, member)
    {AT(hidden_size),           true,  {"hidden_size"}},
    {AT(num_hidden_layers),     true,  {"num_hidden_layers"}},
    {AT(num_attention_heads),   true,  {"num_attention_heads"}},
    {AT(num_key_value_heads),   false, {"num_key_value_heads"}},
    {AT(head_dim),              false, {"head_dim", "attention_head_dim"}},
    {AT(intermediate_size),     false, {"intermediate_size"}},
    {AT(num_experts),           false, {"num_experts", "num_local_experts", "n_routed_experts"}},
    {AT(num_experts_per_tok),   false, {"num_experts_per_tok", "experts_per_token"}},
    {AT(moe_intermediate_size), false, {"moe_intermediate_size"}},
    {AT(shared_expert_intermediate_size), false, {"shared_expert_intermediate_size",
                                                  "moe_shared_expert_intermediate_size"}},
    {AT(linear_num_key_heads),   false, {"linear_num_key_heads"}},
    {AT(linear_num_value_heads), false, {"linear_num_value_heads"}},
    {AT(linear_key_head_dim),    false, {"linear_key_head_dim"}},
    {AT(linear_value_head_dim),  false, {"linear_value_head_dim"}},
    {AT(mamba_num_heads),        false, {"mamba_num_heads"}},
    {AT(mamba_head_dim),         false, {"mamba_head_dim"}},
    {AT(n_groups),               false, {"n_groups"}},
    {AT(ssm_state_size),         false, {"ssm_state_size"}},
};
/* clang-format on */

static void read_size(struct reader *r, size_t row)
{
    int64_t *out = (int64_t *)(void *)((char *)r->out + sizes[row].offset);
    int least = sizes[row].required ? 1 : 0; /* 0: the model has none */

    for (int i = 0; i < NAMES && sizes[row].names[i]; i++) {
        const struct json *found = member(r, sizes[row].names[i]);

        if (!found)
            continue;
        if (!json_integer(found, out) || *out < least || *out > SIZE_LIMIT) {
            BAD(r, "%s must be a whole number from %d to %d", sizes[row].names[i], least,
                SIZE_LIMIT);
            *out = 0;
        }
        return;
    }
    if (sizes[row].required)
        BAD(r, "key '%s' is missing", sizes[row].names[0]);
}

static bool is_true(const struct reader *r, const char *key)
{
    const struct json *found = member(r, key);

    return found && found->kind == JSON_BOOL && found->number != 0;
}

/* With experts, a matrix without them exists only in the layers that are named as dense. */
static bool has_dense_layers(const struct reader *r)
{
    const struct json *only = member(r, "mlp_only_layers");
    int64_t first = 0, step = 1;

    (void)json_integer(member(r, "first_k_dense_replace"), &first);
    (void)json_integer(member(r, "decoder_sparse_step"), &step);
    return first > 0 || step > 1 || (only && only->count > 0);
}

static void complete_sizes(struct reader *r)
{
    struct model *m = r->out;
    int64_t shared = 0;

    if (!m->num_key_value_heads)
        m->num_key_value_heads = m->num_attention_heads;
    if (!m->head_dim && m->num_attention_heads)
        m->head_dim = m->hidden_size / m->num_attention_heads;
    if (!m->num_experts) {
        m->num_experts_per_tok = m->moe_intermediate_size = 0;
        return;
    }
    if (!m->moe_intermediate_size)
        m->moe_intermediate_size = m->intermediate_size;
    if (!has_dense_layers(r))
        m->intermediate_size = 0;
    if (!m->shared_expert_intermediate_size && json_integer(member(r, "n_shared_experts"), &shared))
        m->shared_expert_intermediate_size = shared * m->moe_intermediate_size;
}

/* ---- words ----------------------------------------------------------------------------------- */

/* clang-format off */
static const struct {
    const char *word, *activation, *form;
} activations[] = {
    {"silu",              "silu",      "split"},
    {"swish",             "silu",      "split"},
    {"gelu",              "gelu",      "split"},
    {"gelu_pytorch_tanh", "gelu_tanh", "split"},
    {"relu2",             "relu2",     "unary"},
};
/* clang-format on */
enum { ACTIVATIONS = sizeof activations / sizeof activations[0] };

/* Nemotron-H names the activation of its matrices mlp_hidden_act. gpt-oss says silu, and by
 * swiglu_limit that it is its own form. */
static void read_activation(struct reader *r)
{
    const struct json *limit = member(r, "swiglu_limit"), *act = member(r, "mlp_hidden_act");
    const char *word = json_text(act ? act : member(r, "hidden_act"));
    int i = 0;

    word = word ? word : json_text(member(r, "hidden_activation"));
    while (word && i < ACTIVATIONS && strcmp(activations[i].word, word) != 0)
        i++;
    if (!word || i == ACTIVATIONS) {
        BAD(r, word ? "hidden_act '%.40s' is not known" : "key 'hidden_act' is missing%.0s",
            word ? word : "");
        i = 0;
    }
    r->out->activation = activations[i].activation;
    r->out->activation_form = activations[i].form;
    if (!limit)
        return;
    r->out->activation = "swiglu";
    r->out->activation_form = "interleaved";
    if (!json_integer(limit, &r->out->swiglu_limit))
        BAD(r, "swiglu_limit must be 7");
}

static void read_dtype(struct reader *r)
{
    const struct json *found = member(r, "torch_dtype");
    const char *word = json_text(found ? found : member(r, "dtype"));

    if (word && !strcmp(word, "bfloat16"))
        r->out->dtype = "bf16";
    if (word && !strcmp(word, "float16"))
        r->out->dtype = "f16";
}

/* The Qwen2 family has biases that no key tells. */
static void read_biases(struct reader *r)
{
    const char *type = json_text(json_get(r->root, "model_type"));
    bool qwen2 = type && !strncmp(type, "qwen2", 5);
    bool gpt_oss = type && !strcmp(type, "gpt_oss");

    r->out->attention_bias = qwen2 || is_true(r, "attention_bias");
    r->out->attention_output_bias = !qwen2 && is_true(r, "attention_bias");
    r->out->attn_output_gate = is_true(r, "attn_output_gate");
    r->out->expert_bias = gpt_oss;
}

/* ---- quantization ---------------------------------------------------------------------------- */

/* Words in the name of a module that say which part it is of. */
/* clang-format off */
static const struct {
    const char *word;
    enum model_part part;
} modules[] = {
    {"linear_attn",   PART_LINEAR_ATTENTION},
    {"self_attn",     PART_ATTENTION},
    {"mamba",         PART_MAMBA},
    {"shared_expert", PART_SHARED},
    {".experts",      PART_EXPERTS},
};
/* clang-format on */
enum { MODULES = sizeof modules / sizeof modules[0] };

/* A pattern that names one layer of many leaves the part quantized elsewhere. */
static bool names_one_layer(const char *pattern)
{
    const char *at = strstr(pattern, "layers.");

    return at && isdigit((unsigned char)at[7]);
}

static void leave_out(struct reader *r, const struct json *patterns)
{
    for (const struct json *p = patterns ? patterns->first : NULL; p; p = p->next) {
        const char *text = json_text(p);
        int i = 0;

        while (text && i < MODULES && !strstr(text, modules[i].word))
            i++;
        if (text && i < MODULES && !names_one_layer(text))
            r->out->quantized &= ~(1u << modules[i].part);
    }
}

static void set_parts(struct reader *r, const struct json *config)
{
    static const char *const lists[] = {"ignore", "modules_to_not_convert", "ignored_layers",
                                        "exclude_modules"};

    for (unsigned p = 0; p < PART_COUNT; p++)
        if (model_has(r->out, (enum model_part)p))
            r->out->quantized |= 1u << p;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        leave_out(r, json_get(config, lists[i]));
}

static void read_quantization(struct reader *r)
{
    static const char *const scales[] = {"channel", "group", "block", "tensor"};
    const struct json *config = member(r, "quantization_config");
    struct schema_terms t;
    enum err_code rc;

    config = config ? config : member(r, "compression_config");
    if (!config) {
        r->out->state = WEIGHTS_PLAIN;
        return;
    }
    rc = schema_read_terms(config, r->path, r->arena, &t, r->errs);
    failed(r, rc);
    if (rc)
        return;
    r->out->state = WEIGHTS_QUANTIZED;
    r->out->weights = (struct model_weights){.at = place_at(r->path, 0, 0),
                                             .b = t.b->name,
                                             .scale = scales[t.scale],
                                             .bs = t.bs && t.bs->bits < 32 ? t.bs->name : NULL,
                                             .group = t.group,
                                             .group_n = t.scale == REF_SCALE_BLOCK ? t.group_n : 0,
                                             .scale_2 = t.scale_2,
                                             .zero_point = t.zeros};
    set_parts(r, config);
}

/* ---- the file -------------------------------------------------------------------------------- */

static enum err_code parse(struct reader *r)
{
    struct json_source src = {.file = r->path};
    const char *problem;
    enum err_code code;

    problem = source_read(r->path, r->arena, &src.text, &src.size, &code);
    if (problem)
        return errs_add(r->errs, code, place_at(r->path, 0, 0),
                        "the model's config cannot be read: %s", problem);
    TRY(json_parse(&src, r->arena, &r->root, r->errs));
    if (r->root->kind != JSON_OBJECT)
        return errs_add(r->errs, ERR_CONFIG, place_at(r->path, 0, 0),
                        "a model's config is an object of JSON");
    r->text = json_get(r->root, "text_config");
    return ERR_NONE;
}

enum err_code model_load_json(const char *path, struct arena *arena, struct model *out,
                              struct errs *errs)
{
    struct reader r = {.path = arena_strdup(arena, path), .arena = arena, .out = out, .errs = errs};

    *out = (struct model){.path = r.path, .name = r.path, .name_at = place_at(r.path, 0, 0)};
    if (!r.path)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the model");
    TRY(parse(&r));
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        read_size(&r, i);
    complete_sizes(&r);
    read_activation(&r);
    read_dtype(&r);
    read_biases(&r);
    if (!r.rc)
        read_quantization(&r);
    return r.rc ? r.rc : model_check(out, errs);
}
