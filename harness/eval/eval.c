#include "harness/eval/eval.h"

#include "harness/core/build_info.h"
#include "harness/eval/arith.h"
#include "harness/eval/eval_take.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Address space for one reply, with its JSON and seven extractions, and for all prompts. */
static const size_t scratch_bytes = (size_t)128 << 20, own_bytes = (size_t)1 << 30;

static enum err_code no_memory(struct errs *errs)
{
    return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the questions");
}

enum err_code eval_arith(size_t questions, struct arena *arena, struct dataset *out,
                         struct errs *errs)
{
    struct dataset all;

    TRY(arith_make(EVAL_ARITH_SEED, 0, EVAL_ARITH_TRAIN + questions + PROTOCOL_SHOTS_MAX, arena,
                   &all, errs));
    *out = (struct dataset){
        .train = {all.test.row, EVAL_ARITH_TRAIN, ""},
        .test = {all.test.row + EVAL_ARITH_TRAIN, all.test.count - EVAL_ARITH_TRAIN, ""}};
    return ERR_NONE;
}

static bool make_question(struct eval *e, size_t i, struct sha256 *all)
{
    struct eval_question *q = &e->questions[i];
    struct span prompt = prompts_text(&e->prompts, i, &e->own);

    q->outcome = OUTCOME_COUNT;
    q->prompt = prompt.at;
    q->body = prompt.at ? prompts_request(&e->prompts, prompt.at, &e->own) : NULL;
    if (!q->body)
        return false;
    q->body_bytes = strlen(q->body);
    (void)sha256_hex(prompt.at, prompt.size, q->sha256);
    sha256_add(all, prompt.at, prompt.size + (i + 1 < e->prompts.count));
    return true;
}

static enum err_code make_questions(struct eval *e, const char **prompts_sha256, struct errs *errs)
{
    char *hex = arena_alloc(&e->own, SHA256_HEX, 1);
    struct sha256 all;

    e->questions = ARENA_NEW(&e->own, e->prompts.count, struct eval_question);
    e->pending = ARENA_NEW(&e->own, e->prompts.count, size_t);
    if (!hex || !e->questions || !e->pending)
        return no_memory(errs);
    sha256_init(&all);
    for (size_t i = 0; i < e->prompts.count; i++)
        if (!make_question(e, i, &all))
            return no_memory(errs);
    *prompts_sha256 = sha256_end(&all, hex);
    return ERR_NONE;
}

/* The whole text of a small file. NULL after an error. */
static const char *read_text(const char *path, struct arena *arena, struct errs *errs)
{
    FILE *f = fopen(path, "r");
    char *text = NULL, *copy = NULL;
    size_t size = 0;
    ssize_t n = f ? getdelim(&text, &size, '\0', f) : -1;

    if (n >= 0)
        copy = arena_strdup(arena, text);
    else
        (void)errs_add(errs, ERR_IO, place_at(path, 0, 0), "cannot read it");
    if (n >= 0 && !copy)
        (void)no_memory(errs);
    free(text);
    if (f)
        (void)fclose(f);
    return copy;
}

/* Everything that is known without a server. */
static enum err_code make_run(struct eval *e, const char *prompts_sha256, struct errs *errs)
{
    const struct eval_config *c = e->config;
    const struct protocol *p = e->prompts.protocol;
    const char *text = read_text(c->path, &e->own, errs);
    char *hex = arena_alloc(&e->own, SHA256_HEX, 1);
    const char **part = e->run.part;

    if (!text)
        return ERR_IO;
    e->run = (struct store_run){.name = c->name,
                                .config = text,
                                .gating = extractors[e->gating].name,
                                .questions = e->prompts.count,
                                .started = (uint64_t)time(NULL)};
    part[STORE_CONFIG] = hex ? sha256_hex(text, strlen(text), hex) : NULL;
    part[STORE_PROTOCOL] =
        arena_printf(&e->own, "%s %s", p->name, endpoint_path(e->prompts.options.endpoint));
    part[STORE_PROMPTS] = prompts_sha256;
    part[STORE_DATA] = c->data.value == EVAL_ARITH
                           ? arena_printf(&e->own, "arith, seed %d", EVAL_ARITH_SEED)
                           : e->o->data->test.sha256;
    part[STORE_SAMPLING] = prompts_request(&e->prompts, "", &e->own);
    part[STORE_CONCURRENCY] = arena_printf(
        &e->own, "%" PRId64, e->o->concurrency ? e->o->concurrency : c->concurrency.value);
    part[STORE_GPU] = e->o->gpu ? e->o->gpu : "";
    part[STORE_TOOL] = build_info.version;
    for (int i = 0; i < STORE_PARTS; i++)
        if (!part[i] && !store_parts[i].later)
            return no_memory(errs);
    return ERR_NONE;
}

enum err_code eval_prepare(struct eval *e, const struct eval_config *c,
                           const struct eval_options *o, struct arena *arena, struct errs *errs)
{
    size_t questions = (size_t)c->num_questions.value;
    const char *prompts_sha256 = NULL;
    struct protocol_options how;

    *e = (struct eval){.config = c, .o = o, .arena = arena};
    if (o->limit && o->limit < questions)
        questions = o->limit;
    if (!arena_init(&e->scratch, scratch_bytes) || !arena_init(&e->own, own_bytes))
        return no_memory(errs);
    eval_config_options(c, &how);
    TRY(prompts_init(&e->prompts, c->protocol, o->data, &how, questions, &e->own, errs));
    TRY(make_questions(e, &prompts_sha256, errs));
    e->gating = c->protocol->extractors[0];
    eval_config_pass(c, o->gpu, (int64_t)questions, &e->pass);
    e->progress.questions = questions;
    return make_run(e, prompts_sha256, errs);
}

static bool note_row(void *ctx, const struct store_answer *a)
{
    struct eval *e = ctx;

    e->questions[a->question].outcome = a->outcome;
    return true;
}

enum err_code eval_open(struct eval *e, const char *path, bool fresh, struct errs *errs)
{
    TRY(store_open(path, &e->run, fresh, &e->store, errs));
    TRY(store_each(e->store, note_row, e, errs));
    for (size_t i = 0; i < e->prompts.count; i++) {
        enum outcome o = e->questions[i].outcome;

        if (o == OUTCOME_COUNT || o == OUTCOME_ERROR)
            e->pending[e->pending_count++] = i;
        e->progress.correct += o == OUTCOME_CORRECT;
    }
    e->progress.done = e->prompts.count - e->pending_count;
    return ERR_NONE;
}

const char *eval_probe(struct eval *e)
{
    struct prompts one = e->prompts;

    one.options.max_tokens = 1;
    return prompts_request(&one, e->questions[0].prompt, e->arena);
}

enum err_code eval_identify(struct eval *e, const char *url, const struct server_info *info,
                            struct errs *errs)
{
    const char *wanted = e->config->model_name.text;
    bool served = !info->models;
    enum err_code rc;

    for (size_t i = 0; i < info->models; i++)
        served = served || !strcmp(info->model[i], wanted);
    if (!served)
        return errs_add(errs, ERR_INFRA, e->config->model_name.at,
                        "the server at %s serves '%.80s', not '%.80s'", url, info->model[0],
                        wanted);
    rc = store_settle(e->store, STORE_MODEL, info->models ? info->model[0] : "unknown", errs);
    TRY(store_settle(e->store, STORE_SERVER, info->version, errs));
    return rc;
}

/* The gate of speculative decoding: 1 + accepted / drafts, in tokens a step. */
static void judge_drafts(const struct eval *e, struct eval_result *out)
{
    const struct eval_real *least = &e->config->min_acceptance_length;
    size_t n = strlen(out->why);

    if (out->drafts.drafts)
        out->acceptance_length = 1.0 + (double)out->drafts.accepted / (double)out->drafts.drafts;
    if (out->verdict == SCORE_INCONCLUSIVE)
        return;
    if (out->drafts.lost) {
        if (out->verdict == SCORE_PASS)
            out->verdict = SCORE_INCONCLUSIVE;
        (void)snprintf(out->why + n, sizeof out->why - n,
                       "; the drafts of a session that was cut off are not counted, acceptance "
                       "length %g needed",
                       least->value);
        return;
    }
    if (out->acceptance_length >= least->value)
        return;
    out->verdict = SCORE_FAIL;
    if (out->drafts.drafts)
        (void)snprintf(out->why + n, sizeof out->why - n, "; acceptance length %.4f, %g needed",
                       out->acceptance_length, least->value);
    else
        (void)snprintf(out->why + n, sizeof out->why - n,
                       "; no drafts were counted, acceptance length %g needed", least->value);
}

/* In the arena; "" if it is not known. */
static const char *kept_part(struct eval *e, enum store_part part)
{
    const char *text = store_part(e->store, part);
    const char *copy = arena_strdup(e->arena, text ? text : "");

    return copy ? copy : "";
}

enum err_code eval_judge(struct eval *e, struct eval_result *out, struct errs *errs)
{
    *out = (struct eval_result){.config = e->config,
                                .protocol = e->prompts.protocol->name,
                                .endpoint = endpoint_path(e->prompts.options.endpoint),
                                .gating = extractors[e->gating].name,
                                .gpu = kept_part(e, STORE_GPU),
                                .model = kept_part(e, STORE_MODEL),
                                .server = kept_part(e, STORE_SERVER),
                                .pass = e->pass,
                                .acceptance_length = (double)NAN};
    TRY(store_tally(e->store, &out->tally, errs));
    TRY(store_get_drafts(e->store, &out->drafts, errs));
    out->verdict =
        score_judge(&out->tally, (size_t)e->pass.needed, e->config->max_error_rate.value, out->why);
    if (e->config->min_acceptance_length.set)
        judge_drafts(e, out);
    return ERR_NONE;
}

void eval_close(struct eval *e)
{
    store_close(e->store);
    arena_free(&e->scratch);
    arena_free(&e->own);
    e->store = NULL;
}
