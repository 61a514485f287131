/* The environment of the server. A configuration may come from a stranger's pull request: names are
 * taken from families that only tune the server, and secrets have no place in a file. */
#include "harness/eval/config_load.h"
#include "harness/weights/json_doc.h"

#include <string.h>

/* clang-format off */
static const char *const families[] = {
    "VLLM_", "HUMMING_", "CUDA_", "NCCL_", "GLOO_", "UCX_", "NVSHMEM_", "FLASHINFER_", "DG_",
    "TORCH_", "TORCHINDUCTOR_", "PYTORCH_", "TRITON_", "TRTLLM_", "RAY_", "OMP_", "MKL_", "HF_",
    "TRANSFORMERS_", "TOKENIZERS_", "SAFETENSORS_", "SGLANG_", "SGL_", NULL,
};

/* A word between underscores that makes a name unfit whatever its family: a secret, or code that is
 * loaded into the server. */
static const struct {
    const char *word, *why;
} unfit[] = {
    {"TOKEN",       "secrets do not belong into configurations"},
    {"KEY",         "secrets do not belong into configurations"},
    {"SECRET",      "secrets do not belong into configurations"},
    {"PASSWORD",    "secrets do not belong into configurations"},
    {"PLUGIN",      "it loads code into the server"},
    {"PLUGINS",     "it loads code into the server"},
    {"PRELOAD",     "it loads code into the server"},
    {"INJECTION32", "it loads code into the server"},
    {"INJECTION64", "it loads code into the server"},
};

/* What vLLM reads of Humming's own, and the keys of its two objects (vllm/envs.py and
 * quantization/humming.py after vllm-project/vllm#49610). Another word there has no effect and no
 * sign: the gate would pass on a model that is not quantized as meant. */
#define HUMMING "VLLM_HUMMING_"
static const char *const humming_names[] = {
    HUMMING "INPUT_QUANT_CONFIG", HUMMING "ONLINE_QUANT_CONFIG", HUMMING "USE_F16_ACCUM",
    HUMMING "MOE_GEMM_TYPE", NULL,
};
static const char *const quant_keys[] = {
    "dtype", "group_size", "has_zero_point", "hadamard_block_size", "ignored_layers", "ignore",
    "modules_to_not_convert", "dynamic", NULL,
};
/* clang-format on */

enum { HINT = 96 };

static bool is_name(const char *name)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

    return strspn(name, letters) == strlen(name) && strchr("0123456789", name[0]) == NULL;
}

static bool has_word(const char *name, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = strstr(name, word); at; at = strstr(at + 1, word))
        if ((at == name || at[-1] == '_') && (!at[length] || at[length] == '_'))
            return true;
    return false;
}

static bool check_name(struct config_loader *l, const struct doc_node *n)
{
    int family = 0;

    if (!is_name(n->key)) {
        BAD(l, n->key_at, "env: '%.60s' is no name of a variable: A-Z, 0-9 and _", n->key);
        return false;
    }
    for (size_t i = 0; i < sizeof unfit / sizeof unfit[0]; i++)
        if (has_word(n->key, unfit[i].word)) {
            BAD(l, n->key_at, "env: %.60s may not be set: %s", n->key, unfit[i].why);
            return false;
        }
    while (families[family] && strncmp(n->key, families[family], strlen(families[family])) != 0)
        family++;
    if (!families[family])
        BAD(l, n->key_at,
            "env: %.60s may not be set: names start with VLLM_, HUMMING_, CUDA_, NCCL_, TORCH_ "
            "and the like",
            n->key);
    return families[family] != NULL;
}

static void warn_unknown(struct config_loader *l, struct place at, const char *const *known,
                         const char *word, const char *what)
{
    struct near near = near_to(word);
    char hint[HINT];

    for (int i = 0; known[i]; i++)
        if (!strcmp(known[i], word))
            return;
    near_offer_all(&near, known);
    WARN(l, at, "%s '%.60s' is not known to be read by vLLM%s", what, word,
         near_hint(&near, hint, sizeof hint));
}

static void warn_humming(struct config_loader *l, const struct doc_node *n, const char *value)
{
    struct json_source src = {.text = value, .size = strlen(value)};
    const struct json *json = NULL;
    struct errs errs = {0};

    if (strncmp(n->key, HUMMING, strlen(HUMMING)) != 0)
        return;
    warn_unknown(l, n->key_at, humming_names, n->key, "env:");
    if (value[0] == '{' && !json_parse(&src, l->arena, &json, &errs))
        for (const struct json *j = json->first; j; j = j->next)
            warn_unknown(l, n->at, quant_keys, j->key, "env: key");
    errs_free(&errs);
}

static void load_variable(struct config_loader *l, const struct doc_node *n, struct eval_env *out,
                          size_t *count)
{
    bool named = check_name(l, n);
    const char *value;

    /* A plain {"dtype":"int8"} is a map to YAML, and a plain 1 a number: neither can be put into an
     * environment. */
    value = config_string(l, n->key, n);
    if (!named || !value)
        return;
    config_check_json(l, n->key, n->at, value);
    warn_humming(l, n, value);
    out[(*count)++] = (struct eval_env){.name = n->key, .value = value, .at = n->key_at};
}

void config_env(struct config_loader *l, const struct config_key *k, const struct doc_node *n,
                void *member)
{
    struct eval_env *env;
    char shown[CONFIG_SHOWN];

    (void)member;
    if (n->kind != DOC_MAP || n->count > CONFIG_ENV) {
        BAD(l, n->at, "%s: expected a map of at most %d names and texts, found %s", k->key,
            CONFIG_ENV, n->kind == DOC_MAP ? "more" : doc_show(n, shown, sizeof shown));
        return;
    }
    env = ARENA_NEW(l->arena, n->count + 1, struct eval_env);
    if (!env) {
        config_no_memory(l);
        return;
    }
    l->out->env = env;
    for (const struct doc_node *v = n->child; v; v = v->next)
        load_variable(l, v, env, &l->out->env_count);
}
