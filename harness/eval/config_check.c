/* What can be said only of several values together, and what is done with them. */
#include "harness/eval/arith.h"
#include "harness/eval/config_load.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { ARENA = 1 << 22 };

/* The data that the file asks of, without their texts: how many rows there are. */
static struct dataset sizes(const struct eval_config *c)
{
    struct dataset d = {0};

    if (c->data.value == EVAL_ARITH) {
        d.train.count = (size_t)c->num_fewshot.value;
        d.test.count = ARITH_ROWS_MAX - d.train.count;
    } else {
        d.train.count = dataset_files[DATASET_TRAIN].rows;
        d.test.count = dataset_files[DATASET_TEST].rows;
    }
    return d;
}

/* What the protocol says against the options, as errors at `at`. */
static void probe(struct config_loader *l, const struct protocol_options *o, size_t questions,
                  struct place at)
{
    const struct dataset data = sizes(l->out);
    struct errs errs = {0};
    struct arena arena;
    struct prompts p;

    if (!arena_init(&arena, ARENA)) {
        config_no_memory(l);
        return;
    }
    if (prompts_init(&p, l->out->protocol, &data, o, questions, &arena, &errs))
        for (size_t i = 0; i < errs.count; i++)
            BAD(l, at, "%s", errs.items[i].text);
    errs_free(&errs);
    arena_free(&arena);
}

/* The options as the protocol has them, for the endpoint and model of the file. */
static struct protocol_options plain_options(const struct eval_config *c)
{
    struct protocol_options o = c->protocol->defaults;
    const char *served = eval_config_flag(c, "--served-model-name");

    o.endpoint = (enum endpoint)c->endpoint.value;
    if (c->protocol->needs_model)
        o.model = served && *served ? served : c->model_name.text;
    o.shots = (size_t)c->num_fewshot.value;
    return o;
}

static void set_int(struct maybe_int *to, const struct eval_int *from)
{
    if (from->at.line)
        *to = (struct maybe_int){from->set, from->value};
}

static void set_real(struct maybe_real *to, const struct eval_real *from)
{
    if (from->at.line)
        *to = (struct maybe_real){from->set, from->value};
}

static void set_text(const char **to, const struct eval_text *from)
{
    if (from->at.line)
        *to = from->text;
}

void eval_config_options(const struct eval_config *c, struct protocol_options *out)
{
    *out = plain_options(c);
    if (c->max_tokens.at.line)
        out->max_tokens = c->max_tokens.value;
    set_real(&out->temperature, &c->temperature);
    set_real(&out->top_p, &c->top_p);
    set_int(&out->seed, &c->seed);
    set_int(&out->top_k, &c->top_k);
    set_text(&out->gen_prefix, &c->gen_prefix);
    set_text(&out->reasoning_effort, &c->reasoning_effort);
    set_text(&out->chat_template_kwargs, &c->chat_template_kwargs);
}

/* Each stated option alone, so that what the protocol says has the option's place. */
static void probe_options(struct config_loader *l)
{
    const struct eval_config *c = l->out;
    const struct {
        size_t offset, size;
        struct place at;
    } stated[] = {
#define OPTION(member)                                                                        \
    {offsetof(struct protocol_options, member), sizeof((struct protocol_options *)0)->member, \
     c->member.at}
        OPTION(max_tokens),
        OPTION(temperature),
        OPTION(top_p),
        OPTION(seed),
        OPTION(top_k),
        OPTION(gen_prefix),
        OPTION(reasoning_effort),
        OPTION(chat_template_kwargs),
#undef OPTION
    };
    struct protocol_options all, one;

    eval_config_options(c, &all);
    for (size_t i = 0; i < sizeof stated / sizeof stated[0]; i++) {
        if (!stated[i].at.line)
            continue;
        one = plain_options(c);
        one.shots = 0;
        memcpy((char *)&one + stated[i].offset, (const char *)&all + stated[i].offset,
               stated[i].size);
        probe(l, &one, 1, stated[i].at);
    }
}

static void check_protocol(struct config_loader *l)
{
    const struct eval_config *c = l->out;
    struct protocol_options o = plain_options(c);
    bool endpoint_wrong = c->protocol->fields[o.endpoint][0] == FIELD_END;

    o.shots = 0;
    if (endpoint_wrong) {
        probe(l, &o, 1, c->endpoint.at.line ? c->endpoint.at : c->protocol_at);
        return;
    }
    probe_options(l);
    o.shots = (size_t)c->num_fewshot.value;
    if (c->num_questions.at.line && c->num_fewshot.at.line && c->model_name.at.line)
        probe(l, &o, (size_t)c->num_questions.value, c->num_questions.at);
}

/* The protocol's values where the file states none. */
static void complete(struct eval_config *c)
{
    const struct protocol_options *d = &c->protocol->defaults;

    if (!c->max_tokens.at.line)
        c->max_tokens = (struct eval_int){.set = true, .value = d->max_tokens};
    if (!c->seed.at.line)
        c->seed = (struct eval_int){.set = d->seed.set, .value = d->seed.value};
    if (!c->temperature.at.line)
        c->temperature = (struct eval_real){.set = d->temperature.set,
                                            .value = d->temperature.value,
                                            .billionths = (int64_t)(d->temperature.value * 1e9)};
    if (!c->gen_prefix.at.line)
        c->gen_prefix.text = d->gen_prefix;
}

/* A healthy model may miss the floor by chance: the tolerance is not two standard errors. */
static void warn_noise(struct config_loader *l)
{
    const struct eval_config *c = l->out;
    double p = c->accuracy_threshold.value, n = (double)c->num_questions.value;
    double noise = sqrt(p * (1.0 - p) / n);

    if (c->accuracy_threshold.at.line && n > 0.0 && !(c->tolerance.value >= 2.0 * noise))
        WARN(l, c->num_questions.at,
             "%.0f questions: one standard error is %.3f, the tolerance %.9g is less than two", n,
             noise, c->tolerance.value);
}

static void warn(struct config_loader *l)
{
    const struct eval_config *c = l->out;
    const char *tokens = eval_config_flag(c, "--speculative-config");

    warn_noise(l);
    if (c->min_acceptance_length.set && !tokens &&
        !strstr(c->server_args.text, "--speculative_config") &&
        !strstr(c->server_args.text, "--speculative-config"))
        WARN(l, c->min_acceptance_length.at,
             "min_acceptance_length without --speculative-config: there will be no drafts, which "
             "fails");
    if (c->startup_max_wait_seconds.value < 60)
        WARN(l, c->startup_max_wait_seconds.at, "no model loads in %" PRId64 " s",
             c->startup_max_wait_seconds.value);
}

void config_complete(struct config_loader *l)
{
    enum err_code before = l->rc;

    config_check_floor(l);
    check_protocol(l);
    complete(l->out);
    if (!before && !l->rc)
        warn(l);
}

/* clang-format off */
/* vLLM's test adds --trust-remote-code, too. Code that comes with a model is only run where the
 * configuration says so. */
static const struct eval_added added[EVAL_ADDED] = {
    {{"--disable-uvicorn-access-log", NULL}, false, false, "no line for each request"},
    {{"--seed", "0"}, false, false, "the server's own seed"},
    {{"VLLM_WORKER_MULTIPROC_METHOD=spawn", NULL}, true, false, "workers start afresh"},
    {{NULL, NULL}, true, false, "startup_max_wait_seconds, for the server itself"},
};
/* clang-format on */

static bool is_in_env(const struct eval_config *c, const char *pair)
{
    size_t n = strcspn(pair, "=");

    for (size_t i = 0; i < c->env_count; i++)
        if (strlen(c->env[i].name) == n && !strncmp(c->env[i].name, pair, n))
            return true;
    return false;
}

bool eval_config_added(const struct eval_config *c, struct arena *arena,
                       struct eval_added out[EVAL_ADDED])
{
    const char *wait = arena_printf(arena, "VLLM_ENGINE_READY_TIMEOUT_S=%" PRId64,
                                    c->startup_max_wait_seconds.value);

    if (!wait)
        return false;
    for (int i = 0; i < EVAL_ADDED; i++) {
        out[i] = added[i];
        if (!out[i].words[0])
            out[i].words[0] = wait;
        out[i].stated = out[i].is_env ? is_in_env(c, out[i].words[0])
                                      : eval_config_flag(c, out[i].words[0]) != NULL;
    }
    return true;
}
