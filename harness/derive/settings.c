#include "harness/derive/settings.h"

#include "harness/config/axes.h"
#include "harness/weights/json_doc.h"

#include <inttypes.h>
#include <string.h>

#define ONLINE "VLLM_HUMMING_ONLINE_QUANT_CONFIG"
#define INPUT  "VLLM_HUMMING_INPUT_QUANT_CONFIG"

enum { PARALLEL_MAX = 1024, TEXT = 64 };

struct reader {
    const struct eval_config *config;
    struct arena *arena;
    struct settings *out;
    struct errs *errs;
    enum err_code rc;
};

#define BAD(r, at, ...) failed((r), errs_add((r)->errs, ERR_CONFIG, (at), __VA_ARGS__))

static void failed(struct reader *r, enum err_code rc)
{
    r->rc = r->rc ? r->rc : rc;
}

static const struct eval_env *find_env(const struct reader *r, const char *name)
{
    for (size_t i = 0; i < r->config->env_count; i++)
        if (!strcmp(r->config->env[i].name, name))
            return &r->config->env[i];
    return NULL;
}

/* ---- the JSON of the environment ------------------------------------------------------------- */

/* A key of one of the two objects. `known` ends the sentence about other keys. */
static const struct json *read_object(struct reader *r, const struct eval_env *e,
                                      const char *const *known)
{
    const struct json_source src = {
        .file = r->config->path, .text = e->value, .size = strlen(e->value)};
    const struct json *object = NULL;

    if (e->value[strspn(e->value, " ")] != '{') {
        BAD(r, e->at, "%s: write the object of JSON itself, not the name of a file with it",
            e->name);
        return NULL;
    }
    failed(r, json_parse(&src, r->arena, &object, r->errs));
    for (const struct json *m = object ? object->first : NULL; m; m = m->next) {
        int i = 0;

        while (known[i] && strcmp(known[i], m->key) != 0)
            i++;
        if (!known[i])
            BAD(r, e->at, "%s: key '%.40s' is not known here: kernels cannot be derived from it",
                e->name, m->key);
    }
    return object;
}

static int64_t read_size(struct reader *r, const struct eval_env *e, const struct json *object,
                         const char *key, int64_t low)
{
    const struct json *n = json_get(object, key);
    int64_t value = 0;

    if (n && (!json_integer(n, &value) || value < low || value > 1 << 16))
        BAD(r, e->at, "%s: %s must be a whole number from %" PRId64 " to 65536", e->name, key, low);
    return value;
}

static const char *read_dtype(struct reader *r, const struct eval_env *e, const struct json *object)
{
    const char *text = json_text(json_get(object, "dtype"));

    if (object && !text)
        BAD(r, e->at, "%s: dtype must name a format, such as int8", e->name);
    return text;
}

/* ---- activations ----------------------------------------------------------------------------- */

/* Upstream's names, the harness' own, and the least compute capability (times ten): upstream
 * Humming, valid combinations. */
/* clang-format off */
static const struct {
    const char *upstream, *a;
    int capability;
} activations[] = {
    {"float8e4m3", "e4m3", 89},
    {"float8e5m2", "e5m2", 89},
    {"int8",       "int8", 75},
    {"int4",       "int4", 80},
    {"float4e2m1", "e2m1", 100},
};

static const struct {
    const char *gpu; /* of eval_gpus[] */
    int capability;
} gpus[] = {
    {"t4", 75},   {"a100", 80}, {"a30", 80},  {"a10", 86},   {"a40", 86},   {"l4", 89},
    {"l20", 89},  {"l40", 89},  {"l40s", 89}, {"h100", 90},  {"h20", 90},   {"h200", 90},
    {"gh200", 90}, {"b200", 100}, {"gb200", 100}, {"b300", 103},
};
/* clang-format on */
enum {
    ACTIVATIONS = sizeof activations / sizeof activations[0],
    GPUS = sizeof gpus / sizeof gpus[0],
};

static void check_gpu(struct reader *r, const struct eval_env *e, int needed, const char *gpu)
{
    const char *row = gpu ? eval_gpu_of(gpu) : NULL;
    int has = 0;

    for (int i = 0; row && i < GPUS; i++)
        has = strcmp(gpus[i].gpu, row) ? has : gpus[i].capability;
    if (gpu && !has) {
        failed(r, eval_gpu_check(gpu, r->errs));
        return;
    }
    if (!e || !has)
        return;
    if (has < needed)
        BAD(r, e->at, "%s: activations of %s need compute capability %d.%d; %s has %d.%d", e->name,
            r->out->a, needed / 10, needed % 10, row, has / 10, has % 10);
    else if (!strcmp(r->out->a, "int4") && has >= 90)
        BAD(r, e->at, "%s: activations of int4 are not served on %s (vllm-project/vllm#49032)",
            e->name, row);
}

static void read_input(struct reader *r, const char *gpu)
{
    static const char *const known[] = {"dtype", "group_size", NULL};
    const struct eval_env *e = find_env(r, INPUT);
    const struct json *object = e ? read_object(r, e, known) : NULL;
    const char *text = object ? read_dtype(r, e, object) : NULL;
    int i = 0;

    while (text && i < ACTIVATIONS && strcmp(activations[i].upstream, text) != 0)
        i++;
    if (text && i == ACTIVATIONS) {
        BAD(r, e->at,
            "%s: dtype '%.40s' is no format of activations (float8e4m3, float8e5m2, "
            "int8, int4, float4e2m1)",
            e->name, text);
        text = NULL;
    }
    if (text) {
        r->out->a = activations[i].a;
        r->out->a_at = e->at;
        r->out->input_group = read_size(r, e, object, "group_size", 0);
    }
    check_gpu(r, text ? e : NULL, text ? activations[i].capability : 0, gpu);
}

/* ---- weights that the server quantizes ------------------------------------------------------- */

/* Humming's standard form has offset binary codes. */
static const char *standard_integer(struct reader *r, const char *text)
{
    return strncmp(text, "int", 3) ? text : arena_printf(r->arena, "u%s", text);
}

static void read_online(struct reader *r)
{
    static const char *const known[] = {"dtype", "group_size", "has_zero_point",
                                        "hadamard_block_size", NULL};
    const struct eval_env *e = find_env(r, ONLINE);
    const struct json *object = e ? read_object(r, e, known) : NULL, *zero;
    const char *text = object ? read_dtype(r, e, object) : NULL;
    struct settings *s = r->out;
    char buf[TEXT];
    int64_t row;

    if (!text)
        return;
    s->online = ONLINE_ALL;
    s->weights.at = e->at;
    s->weights.b = standard_integer(r, text);
    if (!s->weights.b || axis_parse(&axes[AX_B], s->weights.b, &row, buf, sizeof buf))
        BAD(r, e->at, "%s: dtype '%.40s' is no format of weights", e->name, text);
    s->weights.group = read_size(r, e, object, "group_size", 0);
    s->weights.scale = s->weights.group ? "group" : "channel";
    s->hadamard = read_size(r, e, object, "hadamard_block_size", -1);
    zero = json_get(object, "has_zero_point");
    if (zero && zero->kind != JSON_BOOL)
        BAD(r, e->at, "%s: has_zero_point must be true or false", e->name);
    s->weights.zero_point = zero && zero->number != 0;
}

/* ---- the server's arguments ------------------------------------------------------------------ */

static int64_t read_parallel(struct reader *r, const char *flag)
{
    const struct axis x = {.kind = AXIS_INT, .min = 1, .max = PARALLEL_MAX};
    const char *text = eval_config_flag(r->config, flag);
    int64_t value = 1;
    char buf[TEXT];

    if (text && axis_parse(&x, text, &value, buf, sizeof buf))
        BAD(r, r->out->server_at, "%s: expected a whole number from 1 to %d, found '%.40s'", flag,
            PARALLEL_MAX, text);
    return value;
}

static bool flag_is(const struct reader *r, const char *flag, const char *value)
{
    const char *text = eval_config_flag(r->config, flag);

    return text && !strcmp(text, value);
}

static void read_dtype_flag(struct reader *r)
{
    static const char *const words[][2] = {
        {"bfloat16", "bf16"}, {"float16", "f16"}, {"half", "f16"}, {"auto", NULL}};
    const char *text = eval_config_flag(r->config, "--dtype");
    size_t i = 0;

    while (text && i < sizeof words / sizeof words[0] && strcmp(words[i][0], text) != 0)
        i++;
    if (!text)
        return;
    if (i == sizeof words / sizeof words[0])
        BAD(r, r->out->server_at, "--dtype: Humming has float16 and bfloat16, not '%.40s'", text);
    else
        r->out->dtype = words[i][1];
}

static void read_server(struct reader *r)
{
    struct settings *s = r->out;
    bool all = flag_is(r, "--quantization", "humming");

    s->tensor = read_parallel(r, "--tensor-parallel-size");
    s->data = read_parallel(r, "--data-parallel-size");
    s->expert_parallel = eval_config_flag(r->config, "--enable-expert-parallel") != NULL;
    s->linear = all || flag_is(r, "--linear-backend", "humming");
    s->moe = all || flag_is(r, "--moe-backend", "humming");
    read_dtype_flag(r);
    if (flag_is(r, "--quantization", "experts_int8") && s->online == ONLINE_NONE) {
        s->online = ONLINE_EXPERTS;
        s->weights = (struct model_weights){
            .at = s->server_at, .b = standard_integer(r, "int8"), .scale = "channel"};
    }
}

/* ---- switches -------------------------------------------------------------------------------- */

static bool read_switch(struct reader *r, const char *name)
{
    const struct eval_env *e = find_env(r, name);

    if (e && strcmp(e->value, "0") != 0 && strcmp(e->value, "1") != 0)
        BAD(r, e->at, "%s: expected 0 or 1, found '%.40s'", name, e->value);
    return e && !strcmp(e->value, "1");
}

/* Other words mean indexed to vLLM; here they are slips. */
static void read_gemm_type(struct reader *r)
{
    const struct eval_env *e = find_env(r, "VLLM_HUMMING_MOE_GEMM_TYPE");

    if (!e || !strcmp(e->value, "indexed"))
        return;
    r->out->grouped = !strcmp(e->value, "grouped") || !strcmp(e->value, "grouped_contiguous");
    if (!r->out->grouped)
        BAD(r, e->at, "%s: expected indexed, grouped or grouped_contiguous, found '%.40s'", e->name,
            e->value);
}

enum err_code settings_read(const struct eval_config *config, const char *gpu, struct arena *arena,
                            struct settings *out, struct errs *errs)
{
    struct reader r = {.config = config, .arena = arena, .out = out, .errs = errs};

    *out = (struct settings){.server_at = config->server_args.at.line ? config->server_args.at
                                                                      : config->model_name.at};
    read_input(&r, gpu);
    read_online(&r);
    read_server(&r);
    out->f16_accum = read_switch(&r, "VLLM_HUMMING_USE_F16_ACCUM");
    out->batch_invariant = read_switch(&r, "VLLM_BATCH_INVARIANT");
    read_gemm_type(&r);
    return r.rc;
}
