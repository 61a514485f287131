#include "harness/test/client_world.h"

#include "harness/core/utf8.h"

#include <check.h>
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

unsigned long long right_sum(size_t i)
{
    return 8 * i + 3;
}

void make_jobs(struct job_world *j, size_t count)
{
    memset(j, 0, sizeof *j);
    j->count = count;
    for (size_t i = 0; i < count; i++)
        (void)snprintf(j->jobs[i].body, sizeof j->jobs[i].body,
                       "{\"prompt\":\"Question: 1 + 1?\\nAnswer: #### 2\\n\\nQuestion: Ann has %zu "
                       "pears and %zu figs.\\nAnswer:\",\"max_tokens\":256,\"temperature\":0}",
                       i, 7 * i + 3);
}

static const char *give_body(void *ctx, size_t index, size_t *bytes)
{
    const struct job_world *j = ctx;

    *bytes = strlen(j->jobs[index].body);
    return j->jobs[index].body;
}

static bool is_utf8(const char *s, size_t n)
{
    while (n) {
        uint32_t c;
        size_t length = utf8_next(s, n, &c);

        if (!length)
            return false;
        s += length;
        n -= length;
    }
    return true;
}

/* As an evaluation does: a reply that is no completion is asked for again. */
static enum client_judgement take_json(void *ctx, const struct client_reply *r)
{
    cJSON *doc = is_utf8(r->body, r->bytes) ? cJSON_ParseWithLength(r->body, r->bytes) : NULL;
    const cJSON *choices = cJSON_GetObjectItemCaseSensitive(doc, "choices");
    bool good = cJSON_GetArraySize(choices) == 1;

    (void)ctx;
    cJSON_Delete(doc);
    return good ? CLIENT_ACCEPT : CLIENT_RETRY;
}

static enum err_code note(void *ctx, const struct client_reply *r, struct errs *errs)
{
    struct job_world *j = ctx;
    struct got *g = &j->jobs[r->index];
    const char *mark = strstr(r->body, "####");

    ck_assert_uint_eq(strlen(r->body) <= r->bytes, true);
    g->times++;
    g->outcome = r->outcome;
    g->attempts = r->attempts;
    g->status = r->status;
    g->started_s = r->started_s;
    g->latency_s = r->latency_s;
    g->total_s = r->total_s;
    g->number = r->outcome == CLIENT_OK && mark ? strtoull(mark + 4, NULL, 10) : 0;
    (void)snprintf(g->error, sizeof g->error, "%s", r->error);
    if (++j->done == j->fail_at)
        return errs_add(errs, ERR_IO, NOWHERE, "the disk is full");
    return ERR_NONE;
}

static void on_tick(void *ctx, const struct client_stats *s)
{
    struct job_world *j = ctx;

    j->last = *s;
    if (++j->ticks == j->interrupt_at_tick)
        j->interrupted = 1;
}

struct client_options options_for(const struct stub_thread *t, int concurrency)
{
    return (struct client_options){.url = t->url,
                                   .concurrency = concurrency,
                                   .timeout_s = 5,
                                   .connect_timeout_s = 2,
                                   .max_attempts = 8,
                                   .backoff_base_s = 0.005,
                                   .backoff_cap_s = 0.05,
                                   .seed = 7,
                                   .max_body_bytes = SMALL_BODY};
}

enum err_code run(const struct client_options *o, struct job_world *j, struct errs *errs)
{
    const struct client_jobs jobs = {.count = j->count,
                                     .body = give_body,
                                     .judge = take_json,
                                     .done = note,
                                     .tick = on_tick,
                                     .ctx = j};
    struct client_options with = *o;

    with.interrupted = &j->interrupted;
    return client_run(&with, &jobs, errs);
}

void run_good(const struct client_options *o, struct job_world *j)
{
    struct errs errs = {0};
    enum err_code rc = run(o, j, &errs);

    ck_assert_msg(rc == ERR_NONE, "%s", errs.count ? errs.items[0].text : "");
    ck_assert_uint_eq(errs.count, 0);
    ck_assert_uint_eq(j->last.done, j->count);
    ck_assert_uint_eq(j->last.in_flight + j->last.waiting, 0);
    ck_assert_uint_eq(j->last.attempts, j->count + j->last.retries);
    for (size_t i = 0; i < j->count; i++)
        ck_assert_int_eq(j->jobs[i].times, 1);
}

void assert_all_right(const struct job_world *j)
{
    for (size_t i = 0; i < j->count; i++) {
        const struct got *g = &j->jobs[i];

        ck_assert_msg(g->outcome == CLIENT_OK, "job %zu: %s", i, g->error);
        ck_assert_uint_eq(g->number, right_sum(i));
        ck_assert_str_eq(g->error, "");
        ck_assert_int_eq((int)g->status, 200);
        ck_assert(g->started_s >= 0 && g->latency_s > 0 && g->latency_s <= g->total_s);
    }
    ck_assert_uint_eq(j->last.ok, j->count);
}
