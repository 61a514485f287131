/* Questions to a server. */
#include "harness/eval/client.h"
#include "harness/eval/eval_take.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_BODY = 16 << 20, BODY_SHOWN = 300, LEAST_IN_A_ROW = 8 };

static const double connect_s = 10.0, backoff_base_s = 0.5, backoff_cap_s = 30.0, page_s = 30.0;

/* In a server that works, some request ends within the time of two attempts and the longest pause
 * between them. */
static double hung_after(const struct eval *e)
{
    return 2.0 * e->config->timeout.value + backoff_cap_s + CLIENT_RETRY_AFTER_MAX_S;
}

/* Final statuses that every other question would meet, too: no key, no rights, no such model or
 * endpoint. */
static const long hopeless[] = {401, 403, 404, 405};
enum { HOPELESS = sizeof hopeless / sizeof hopeless[0] };

static const char *give_body(void *ctx, size_t index, size_t *bytes)
{
    const struct eval *e = ctx;
    const struct eval_question *q = &e->questions[e->pending[index]];

    *bytes = q->body_bytes;
    return q->body;
}

static enum reply_kind parse(struct eval *e, const struct client_reply *r, struct reply *out,
                             char why[REPLY_WHY])
{
    arena_reset(&e->scratch);
    return reply_parse(r->body, r->bytes, e->prompts.options.endpoint, &e->scratch, out, why);
}

static enum client_judgement judge(void *ctx, const struct client_reply *r)
{
    char why[REPLY_WHY];
    struct reply reply;

    return parse(ctx, r, &reply, why) == REPLY_BAD ? CLIENT_RETRY : CLIENT_ACCEPT;
}

static void stop(struct eval *e, const char *what, const char *more)
{
    if (!e->stopped[0])
        (void)snprintf(e->stopped, sizeof e->stopped, "%s: %.180s", what, more);
    e->stop = 1;
}

static int concurrency_of(const struct eval *e)
{
    return e->o->concurrency ? e->o->concurrency : (int)e->config->concurrency.value;
}

/* A server that is gone: as many requests as are in progress at once have all used up their
 * attempts, and none got through in between. */
static bool is_gone(struct eval *e, const struct client_reply *r)
{
    size_t at_once = (size_t)concurrency_of(e);

    e->in_a_row = r->outcome == CLIENT_TRANSPORT || r->status >= 500 ? e->in_a_row + 1 : 0;
    return e->in_a_row >= (at_once > LEAST_IN_A_ROW ? at_once : LEAST_IN_A_ROW);
}

static enum err_code take_failure(struct eval *e, size_t question, const struct client_reply *r,
                                  const struct eval_meta *m, struct errs *errs)
{
    const char *error = r->error, *said = r->outcome == CLIENT_HTTP ? r->body : "";
    char why[REPLY_WHY] = "", *text;
    struct reply reply;

    arena_reset(&e->scratch);
    if (r->status == 200 && reply_parse(r->body, r->bytes, e->prompts.options.endpoint, &e->scratch,
                                        &reply, why) == REPLY_BAD)
        error = why;
    if (*said)
        text = arena_printf(&e->scratch, "HTTP %ld: %.*s", r->status, BODY_SHOWN, said);
    else
        text = arena_printf(&e->scratch, "%s", error);
    for (int i = 0; i < HOPELESS; i++)
        if (r->outcome == CLIENT_HTTP && r->status == hopeless[i])
            stop(e, "the server refuses the requests", text ? text : error);
    if (is_gone(e, r))
        stop(e, "no request gets through any more", text ? text : error);
    return eval_take_error(e, question, text ? text : error, m, errs);
}

static enum err_code done(void *ctx, const struct client_reply *r, struct errs *errs)
{
    struct eval *e = ctx;
    size_t question = e->pending[r->index];
    struct eval_meta m = {r->attempts, r->status, r->latency_s, r->total_s};
    char why[REPLY_WHY];
    struct reply reply;

    if (r->outcome == CLIENT_INTERRUPTED)
        return ERR_NONE;
    if (r->outcome != CLIENT_OK)
        return take_failure(e, question, r, &m, errs);
    e->in_a_row = 0;
    switch (parse(e, r, &reply, why)) {
    case REPLY_OK:
        return eval_take_reply(e, question, &reply, &m, errs);
    case REPLY_BAD:
        return eval_take_error(e, question, why, &m, errs);
    case REPLY_NOMEM:
        break;
    }
    return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the answer to question %zu", question);
}

static void tick(void *ctx, const struct client_stats *s)
{
    struct eval *e = ctx;
    char why[SERVER_ENDED_TEXT];

    e->progress.in_flight = s->in_flight;
    e->progress.retries = s->retries;
    e->progress.seconds = s->elapsed_s;
    if (e->o->interrupted && *e->o->interrupted)
        e->stop = 1;
    if (e->server && !server_alive(e->server, why))
        stop(e, "the server ended while it was asked", why);
    if (s->done != e->seen_done) {
        e->seen_done = s->done;
        e->changed_s = s->elapsed_s;
    }
    if (!(s->elapsed_s - e->changed_s <= hung_after(e)))
        stop(e, "the server hangs", "no request has ended for longer than two may take");
    if (e->o->progress)
        e->o->progress(e->o->ctx, &e->progress);
}

/* The counters of speculative decoding. A page without them: zeros, which fail the gate. false:
 * there is no page. */
static bool read_drafts(const struct eval *e, const char *url, struct store_drafts *out,
                        char started[SERVER_STARTED_TEXT])
{
    const char *page_url = arena_printf(e->arena, "%s/metrics", url);
    struct client_page page;

    if (!page_url || !client_get(page_url, e->o->api_key, page_s, e->arena, &page) ||
        page.status >= 500)
        return false;
    if (page.status != 200 || !server_drafts(page.body, out))
        *out = (struct store_drafts){0};
    (void)server_started(page.body, started);
    return true;
}

static enum err_code begin_drafts(struct eval *e, const char *url, struct errs *errs)
{
    char started[SERVER_STARTED_TEXT] = "";
    struct store_drafts now;
    bool known = read_drafts(e, url, &now, started);

    return store_begin_drafts(e->store, known ? &now : NULL, *started ? started : NULL, errs);
}

static enum err_code end_drafts(struct eval *e, const char *url, struct errs *errs)
{
    char started[SERVER_STARTED_TEXT];
    struct store_drafts now;

    return read_drafts(e, url, &now, started) ? store_end_drafts(e->store, &now, errs) : ERR_NONE;
}

static enum err_code ask(struct eval *e, const char *url, struct errs *errs)
{
    const struct eval_config *c = e->config;
    const char *endpoint =
        arena_printf(e->arena, "%s%s", url, endpoint_path(e->prompts.options.endpoint));
    const struct client_options how = {
        .url = endpoint,
        .api_key = e->o->api_key,
        .concurrency = concurrency_of(e),
        .timeout_s = c->timeout.value,
        .connect_timeout_s = connect_s < c->timeout.value ? connect_s : c->timeout.value,
        .max_attempts = (int)c->max_attempts.value,
        .backoff_base_s = backoff_base_s,
        .backoff_cap_s = backoff_cap_s,
        .max_body_bytes = MAX_BODY,
        .interrupted = &e->stop};
    const struct client_jobs jobs = {.count = e->pending_count,
                                     .body = give_body,
                                     .judge = judge,
                                     .done = done,
                                     .tick = tick,
                                     .ctx = e};

    if (!endpoint)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for an address");
    TRY(client_run(&how, &jobs, errs));
    if (e->stopped[0])
        return errs_add(errs, ERR_INFRA, NOWHERE, "%s", e->stopped);
    return ERR_NONE;
}

enum err_code eval_ask(struct eval *e, const char *url, struct errs *errs)
{
    bool drafts = e->config->min_acceptance_length.set;
    enum err_code rc, ended = ERR_NONE;

    if (!e->pending_count)
        return ERR_NONE;
    if (drafts)
        TRY(begin_drafts(e, url, errs));
    rc = ask(e, url, errs);
    if (drafts)
        ended = end_drafts(e, url, errs);
    return rc ? rc : ended;
}
