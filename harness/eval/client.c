#include "harness/eval/client.h"

#include "harness/core/proc.h"
#include "harness/eval/client_http.h"
#include "harness/eval/client_loop.h"
#include "harness/eval/client_retry.h"
#include "harness/report/escape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum {
    FILES_SPARE = 64, /* open files beside one a connection */
    EXCERPT = 108     /* bytes of a refused reply in its sentence */
};

#define TICK_S      0.1
#define TIME_MOST_S 86400.0
#define STATUS_OK   200L

/* One of the jobs in progress: under way, or waiting for its next attempt. */
struct slot {
    struct client_exchange exchange;
    enum { SLOT_FREE, SLOT_RUNNING, SLOT_WAITING } state;
    size_t index;
    int attempts;
    double first_s, attempt_s; /* when the first and the last attempt began */
    double due_s;              /* SLOT_WAITING: when the next one does */
};

struct run {
    const struct client_options *o;
    const struct client_jobs *jobs;
    struct errs *errs;
    struct client_target target;
    struct client_loop loop;
    struct slot *slots;
    size_t slot_count, next; /* the next job to start */
    bool is_spread;          /* all slots have been started */
    double start_s, tick_s;
    double due_s; /* no waiting slot is due before; HUGE for none */
    struct client_stats stats;
    enum err_code rc;
};

#define NEVER_S 1e300

/* ---- what a reply says ---- */

static size_t slot_number(const struct run *r, const struct slot *s)
{
    return (size_t)(s - r->slots);
}

static void reply_start(const struct run *r, const struct slot *s, struct client_reply *reply)
{
    double now = proc_now();

    reply->index = s->index;
    reply->outcome = CLIENT_INTERRUPTED;
    reply->attempts = s->attempts;
    reply->status = 0;
    reply->body = s->exchange.body.data;
    reply->bytes = s->exchange.body.bytes;
    reply->started_s = s->first_s - r->start_s;
    reply->latency_s = now - s->attempt_s;
    reply->total_s = now - s->first_s;
    reply->error[0] = '\0';
}

/* "HTTP 503: what the body begins with (6 attempts)" */
static void explain_status(struct client_reply *reply)
{
    const char *what = reply->status == STATUS_OK ? " with a body of the wrong kind" : "";
    char begin[EXCERPT + 1], shown[EXCERPT + 1], tries[24] = "";

    if (reply->attempts > 1)
        (void)snprintf(tries, sizeof tries, " (%d attempts)", reply->attempts);
    (void)snprintf(begin, sizeof begin, "%s", reply->body);
    (void)escape_terminal(begin, shown, sizeof shown);
    (void)snprintf(reply->error, sizeof reply->error, "HTTP %ld%s%s%s%s", reply->status, what,
                   shown[0] ? ": " : "", shown, tries);
}

static void explain_transport(const struct slot *s, CURLcode code, struct client_reply *reply)
{
    char why[sizeof reply->error - 40];

    client_exchange_explain(&s->exchange, code, why, sizeof why);
    if (reply->attempts > 1)
        (void)snprintf(reply->error, sizeof reply->error, "%s (%d attempts)", why, reply->attempts);
    else
        (void)snprintf(reply->error, sizeof reply->error, "%s", why);
}

/* Fill in the outcome of an attempt as if it were the last; what should follow otherwise? */
static enum client_next judge(const struct run *r, const struct slot *s, CURLcode code,
                              struct client_reply *reply)
{
    (void)curl_easy_getinfo(s->exchange.easy, CURLINFO_RESPONSE_CODE, &reply->status);
    client_redact(s->exchange.body.data, s->exchange.body.bytes, r->o->api_key);
    if (code) { /* the head may have come, and said 200 */
        reply->status = 0;
        reply->outcome = CLIENT_TRANSPORT;
        return client_after_transport((int)code);
    }
    if (reply->status != STATUS_OK) {
        reply->outcome = CLIENT_HTTP;
        return client_after_status(reply->status);
    }
    reply->outcome = CLIENT_OK;
    if (!r->jobs->judge || r->jobs->judge(r->jobs->ctx, reply) == CLIENT_ACCEPT)
        return CLIENT_FINAL;
    reply->outcome = CLIENT_TRANSPORT;
    return CLIENT_AGAIN;
}

/* ---- one job after the other ---- */

static bool is_interrupted(const struct run *r)
{
    return r->o->interrupted && *r->o->interrupted;
}

static void start_attempt(struct run *r, struct slot *s)
{
    CURL *e = s->exchange.easy;
    size_t bytes = 0;
    const char *body = r->jobs->body(r->jobs->ctx, s->index, &bytes);

    client_exchange_reset(&s->exchange);
    s->attempt_s = proc_now();
    if (!s->attempts)
        s->first_s = s->attempt_s;
    s->attempts++;
    s->state = SLOT_RUNNING;
    r->stats.attempts++;
    r->stats.in_flight++;
    r->stats.retries += s->attempts > 1;
    if (curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)bytes) ||
        curl_easy_setopt(e, CURLOPT_POSTFIELDS, body) || !loop_add(&r->loop, slot_number(r, s), e))
        r->loop.failed = true;
}

static void start_job(struct run *r, struct slot *s)
{
    s->state = SLOT_FREE;
    if (r->next == r->jobs->count || is_interrupted(r))
        return;
    s->index = r->next++;
    s->attempts = 0;
    start_attempt(r, s);
}

static void wait_for(struct run *r, struct slot *s, enum client_next next)
{
    curl_off_t retry_after = 0;

    if (next == CLIENT_AGAIN_LATER) /* may be negative: a date that has passed */
        (void)curl_easy_getinfo(s->exchange.easy, CURLINFO_RETRY_AFTER, &retry_after);
    s->state = SLOT_WAITING;
    s->due_s = proc_now() + client_backoff_s(r->o, s->index, s->attempts, (double)retry_after);
    if (s->due_s < r->due_s)
        r->due_s = s->due_s;
    r->stats.waiting++;
}

static void report(struct run *r, const struct client_reply *reply)
{
    r->stats.done++;
    r->stats.ok += reply->outcome == CLIENT_OK;
    r->stats.failed += reply->outcome == CLIENT_HTTP || reply->outcome == CLIENT_TRANSPORT;
    r->rc = r->jobs->done(r->jobs->ctx, reply, r->errs);
}

static void leave(struct run *r, struct slot *s)
{
    long opened = 0;

    loop_remove(&r->loop, slot_number(r, s), s->exchange.easy);
    (void)curl_easy_getinfo(s->exchange.easy, CURLINFO_NUM_CONNECTS, &opened);
    r->stats.connections += (size_t)opened;
    r->stats.in_flight--;
}

static void attempt_ended(struct run *r, struct slot *s, CURLcode code)
{
    struct client_reply reply;
    enum client_next next;

    leave(r, s);
    reply_start(r, s, &reply);
    next = judge(r, s, code, &reply);
    if (next != CLIENT_FINAL && s->attempts < r->o->max_attempts) {
        wait_for(r, s, next);
        return;
    }
    if (code)
        explain_transport(s, code, &reply);
    else if (reply.outcome != CLIENT_OK)
        explain_status(&reply);
    report(r, &reply);
    if (!r->rc)
        start_job(r, s);
}

/* Start what is due; find out when the next one is. */
static void start_due(struct run *r)
{
    double now = proc_now();

    if (r->due_s > now || is_interrupted(r))
        return;
    r->due_s = NEVER_S;
    for (struct slot *s = r->slots; s < r->slots + r->slot_count; s++) {
        if (s->state != SLOT_WAITING)
            continue;
        if (s->due_s <= now) {
            r->stats.waiting--;
            start_attempt(r, s);
        } else if (s->due_s < r->due_s) {
            r->due_s = s->due_s;
        }
    }
}

static void tick(struct run *r)
{
    r->stats.elapsed_s = proc_now() - r->start_s;
    if (r->jobs->tick)
        r->jobs->tick(r->jobs->ctx, &r->stats);
}

/* The first attempt runs alone until it has an address to connect to, or has ended: names are
 * looked up by threads, and so there is one of them and not one a connection. */
static void spread(struct run *r)
{
    if (r->is_spread || !(r->loop.has_opened || r->stats.in_flight == 0 || r->stats.attempts > 1))
        return;
    r->is_spread = true;
    for (size_t i = 1; i < r->slot_count; i++)
        start_job(r, &r->slots[i]);
}

static void run_all(struct run *r)
{
    if (r->slot_count)
        start_job(r, &r->slots[0]);
    while (r->stats.done < r->jobs->count && !r->rc && !r->loop.failed && !is_interrupted(r)) {
        double now = proc_now(), until = r->due_s < r->tick_s ? r->due_s : r->tick_s;
        CURLcode code;
        CURL *e;

        loop_wait(&r->loop, until - now);
        spread(r);
        while (!r->rc && (e = loop_ended(&r->loop, &code))) {
            char *slot = NULL;

            (void)curl_easy_getinfo(e, CURLINFO_PRIVATE, &slot);
            attempt_ended(r, (struct slot *)(void *)slot, code);
        }
        start_due(r);
        if (proc_now() >= r->tick_s) {
            tick(r);
            r->tick_s = proc_now() + TICK_S;
        }
    }
}

/* Nothing may be under way when the handles are closed. */
static void stop(struct run *r)
{
    for (struct slot *s = r->slots; s < r->slots + r->slot_count; s++) {
        struct client_reply reply;

        if (s->state == SLOT_FREE)
            continue;
        if (s->state == SLOT_RUNNING)
            leave(r, s);
        else
            r->stats.waiting--;
        s->state = SLOT_FREE;
        if (r->rc || r->loop.failed)
            continue;
        reply_start(r, s, &reply);
        (void)snprintf(reply.error, sizeof reply.error, "interrupted");
        report(r, &reply);
    }
}

/* ---- before and after ---- */

static bool in_range(double s)
{
    return s > 0 && s <= TIME_MOST_S;
}

enum err_code client_check(const struct client_options *o, struct errs *errs)
{
    struct client_target t = {.url = o->url, .api_key = o->api_key};

    return client_target_check(&t, errs);
}

static enum err_code check_options(const struct client_options *o, struct errs *errs)
{
    /* clang-format off */
    const struct {
        bool is_good;
        const char *must;
    } rules[] = {
        {o->concurrency >= 1 && o->concurrency <= CLIENT_CONCURRENCY_MAX,
         "concurrency must be from 1 to 16384"},
        {in_range(o->timeout_s), "the time limit of an attempt must be above 0 and at most a day"},
        {in_range(o->connect_timeout_s), "the time limit of connecting must be above 0 and at most a day"},
        {o->max_attempts >= 1 && o->max_attempts <= 1000, "attempts must be from 1 to 1000"},
        {in_range(o->backoff_base_s) && in_range(o->backoff_cap_s),
         "waits between attempts must be above 0 and at most a day"},
        {o->max_body_bytes >= 1 && o->max_body_bytes <= (size_t)1 << 32,
         "the limit of a reply must be from 1 byte to 4 GiB"},
    };
    /* clang-format on */
    enum err_code rc = ERR_NONE;

    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (!rules[i].is_good)
            rc = errs_add(errs, ERR_USAGE, NOWHERE, "%s", rules[i].must);
    return rc;
}

/* Room for `count` connections; *before is what to go back to. */
static enum err_code allow_files(size_t count, struct rlimit *before, struct errs *errs)
{
    struct rlimit wanted;

    if (getrlimit(RLIMIT_NOFILE, before))
        return errs_add(errs, ERR_INFRA, NOWHERE, "the limit of open files cannot be read");
    wanted = *before;
    if (wanted.rlim_cur >= count + FILES_SPARE)
        return ERR_NONE;
    wanted.rlim_cur = count + FILES_SPARE;
    if (wanted.rlim_cur > wanted.rlim_max || setrlimit(RLIMIT_NOFILE, &wanted))
        return errs_add(errs, ERR_INFRA, NOWHERE,
                        "%zu connections need more open files than the %llu that are allowed "
                        "(ulimit -n); use a lower concurrency",
                        count, (unsigned long long)before->rlim_max);
    return ERR_NONE;
}

static enum err_code open_slots(struct run *r)
{
    r->slots = calloc(r->slot_count ? r->slot_count : 1, sizeof *r->slots);
    if (!r->slots)
        return errs_add(r->errs, ERR_NOMEM, NOWHERE, "no memory for %zu connections",
                        r->slot_count);
    for (size_t i = 0; i < r->slot_count; i++) {
        struct client_exchange *x = &r->slots[i].exchange;

        if (!client_exchange_open(x, &r->target) || !loop_prepare(&r->loop, x->easy) ||
            curl_easy_setopt(x->easy, CURLOPT_POST, 1L) ||
            curl_easy_setopt(x->easy, CURLOPT_PRIVATE, (void *)&r->slots[i]))
            return errs_add(r->errs, ERR_NOMEM, NOWHERE, "no memory for %zu connections",
                            r->slot_count);
    }
    return ERR_NONE;
}

static enum err_code open_run(struct run *r)
{
    TRY(client_target_open(&r->target, r->errs));
    TRY(loop_open(&r->loop, r->slot_count, r->errs));
    return open_slots(r);
}

/* Connections belong to the loop, and close through it; so the handles go first. */
static void close_run(struct run *r)
{
    for (size_t i = 0; r->slots && i < r->slot_count; i++)
        client_exchange_close(&r->slots[i].exchange);
    free(r->slots);
    loop_close(&r->loop);
    client_target_close(&r->target);
}

static enum err_code run_and_close(struct run *r)
{
    enum err_code rc = open_run(r);

    if (!rc) {
        r->start_s = proc_now();
        r->tick_s = r->start_s + TICK_S;
        run_all(r);
        stop(r);
        tick(r);
        rc = r->rc;
        if (!rc && r->loop.failed)
            rc = errs_add(r->errs, ERR_INFRA, NOWHERE, "libcurl or epoll refused to go on");
    }
    close_run(r);
    return rc;
}

enum err_code client_run(const struct client_options *o, const struct client_jobs *jobs,
                         struct errs *errs)
{
    struct run r = {.o = o,
                    .jobs = jobs,
                    .errs = errs,
                    .target = {.url = o->url,
                               .api_key = o->api_key,
                               .timeout_s = o->timeout_s,
                               .connect_timeout_s = o->connect_timeout_s,
                               .max_body_bytes = o->max_body_bytes},
                    .loop = {.epoll = -1},
                    .due_s = NEVER_S,
                    .stats = {.jobs = jobs->count}};
    struct rlimit before;
    enum err_code rc = check_options(o, errs), bad_target = client_target_check(&r.target, errs);

    if (rc || bad_target)
        return rc ? rc : bad_target;
    r.slot_count = (size_t)o->concurrency < jobs->count ? (size_t)o->concurrency : jobs->count;
    TRY(allow_files(r.slot_count, &before, errs));
    rc = run_and_close(&r);
    (void)setrlimit(RLIMIT_NOFILE, &before);
    return rc;
}
