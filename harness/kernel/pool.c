#include "harness/kernel/pool.h"

#include "harness/core/proc.h"
#include "harness/kernel/pool_order.h"
#include "harness/kernel/pool_tail.h"
#include "harness/kernel/pool_wire.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    QUEUE = 2,        /* problems a worker has at once: one running, one ready */
    BARREN_LIVES = 3, /* a start and two restarts without a record */
    WINDOW = 4096,    /* cases that may be handed out before the oldest one is delivered */
    DRAIN_READS = 256,
    HOW_BYTES = 96
};

#define TICK_SECONDS  0.25
#define START_SECONDS 60.0
#define END_SECONDS   5.0  /* for a worker to close its provider */
#define DEATH_SECONDS 0.25 /* between the end of its pipe and its own */

struct range {
    size_t problem, next, end; /* cases [next, end) of the problem are still to come */
};

struct worker {
    struct proc proc;
    bool ready;                /* said hello */
    struct range queue[QUEUE]; /* the first is running */
    int queued;
    bool begun; /* case queue[0].next has reached `stage` */
    enum stage stage;
    bool launched; /* and has reached STAGE_LAUNCH before */
    double since;  /* when the clock of its limit started */
    bool fruitful; /* this life brought a record */
    int barren;    /* lives in a row that brought none */
    char said[ERR_TEXT];
    struct tail tail;
    struct wire_buffer received;
};

struct pool {
    const struct plan *plan;
    const struct hum_provider *provider;
    const struct pool_options *o;
    const struct pool_sink *sink;
    struct errs *errs;
    struct arena arena; /* everything below lives here */
    struct worker *workers;
    struct pollfd *fds; /* two a worker: its answers, its standard error */
    size_t count;
    size_t next_problem; /* how many were handed out */
    size_t handed;       /* and how many cases they have */
    struct order order;
    double ticked;
    uint64_t hash;
    enum err_code rc; /* not ERR_NONE: stop */
};

/* How a worker was lost, and what that means at each stage. */
enum loss { LOSS_ENDED, LOSS_LATE, LOSS_GARBLED, LOSS_COUNT };

/* clang-format off */
static const struct {
    enum verdict verdict;
    const char *text[LOSS_COUNT];
} losses[] = {
    [STAGE_PREPARE] = {VERDICT_INFRA, {
        [LOSS_ENDED]   = "the worker died before the launch: ",
        [LOSS_LATE]    = "operands and reference were not made within ",
        [LOSS_GARBLED] = "the worker broke before the launch: "}},
    [STAGE_LAUNCH] = {VERDICT_FAIL, {
        [LOSS_ENDED]   = "the launch crashed: ",
        [LOSS_LATE]    = "the launch did not return within ",
        [LOSS_GARBLED] = "the launch broke its process: "}},
    [STAGE_JUDGE] = {VERDICT_INFRA, {
        [LOSS_ENDED]   = "the worker died after the launch: ",
        [LOSS_LATE]    = "the result was not judged within ",
        [LOSS_GARBLED] = "the worker broke after the launch: "}},
};
/* clang-format on */

/* The first error stops the run. */
static void keep(struct pool *p, enum err_code rc)
{
    if (!p->rc)
        p->rc = rc;
}

/* ---- work out, answers in ----------------------------------------------------------------- */

static void send_range(const struct worker *w, const struct range *r)
{
    struct wire_message m = {
        .type = WIRE_PROBLEM, .problem = r->problem, .begin = r->next, .end = r->end};

    (void)wire_send(w->proc.in, &m); /* a worker that is gone shows at its other end */
}

/* Problems that may still be started. */
static size_t problems_left(const struct pool *p)
{
    if (p->o->deadline > 0 && !(proc_now() < p->o->deadline))
        return 0;
    return p->plan->problem_count - p->next_problem;
}

static void hand_to(struct pool *p, struct worker *w)
{
    size_t problem = p->o->order ? p->o->order[p->next_problem] : p->next_problem;
    const struct plan_problem *next = &p->plan->problems[problem];

    if (w->queued == 0)
        w->since = proc_now();
    w->queue[w->queued] = (struct range){problem, next->first, next->first + next->count};
    send_range(w, &w->queue[w->queued++]);
    p->next_problem++;
    p->handed += next->count;
}

/* Idle workers first; then one problem in advance each, while enough are left to share. With a
 * deadline none is ready in advance: it would be started after it. */
static void hand_out(struct pool *p)
{
    const int depths = p->o->deadline > 0 ? 1 : QUEUE;

    for (int depth = 0; depth < depths; depth++)
        for (size_t i = 0; i < p->count; i++) {
            struct worker *w = &p->workers[i];
            size_t left = problems_left(p);

            if (left == 0 || (depth > 0 && left <= p->count) ||
                p->handed >= p->order.delivered + WINDOW)
                return;
            if (w->ready && w->queued <= depth)
                hand_to(p, w);
        }
}

static void finish_range(struct worker *w)
{
    w->queued--;
    w->queue[0] = w->queue[1];
    w->since = proc_now();
}

/* Case queue[0].next is over, with its own record or with one that was made for it. */
static void finish_case(struct worker *w)
{
    w->queue[0].next++;
    w->begun = w->launched = false;
    w->since = proc_now();
    w->fruitful = true;
    w->barren = 0;
}

static void on_hello(struct pool *p, struct worker *w, uint64_t hash)
{
    w->ready = true;
    w->since = proc_now();
    if (hash != p->hash)
        p->rc = errs_add(p->errs, ERR_INFRA, NOWHERE,
                         "a worker made another plan than this program: was a suite changed?");
    for (int i = 0; i < w->queued && !p->rc; i++)
        send_range(w, &w->queue[i]);
}

static void on_stage(struct worker *w, enum stage stage)
{
    bool first_launch = stage == STAGE_LAUNCH && !w->launched;

    if (!w->begun || first_launch)
        w->since = proc_now();
    w->begun = true;
    w->stage = stage;
    w->launched = w->launched || first_launch;
}

/* false: it makes no sense here. */
static bool on_message(struct pool *p, struct worker *w, const struct wire_message *m)
{
    bool running = w->ready && w->queued > 0;
    const struct range *r = &w->queue[0];

    switch (m->type) {
    case WIRE_HELLO:
        if (w->ready)
            return false;
        on_hello(p, w, m->hash);
        return true;
    case WIRE_STAGE:
        if (!running || r->next >= r->end || m->begin != r->next)
            return false;
        on_stage(w, m->stage);
        return true;
    case WIRE_RECORD:
        if (!running || r->next >= r->end || m->record.index != r->next)
            return false;
        finish_case(w);
        keep(p, order_add(&p->order, &m->record, p->errs));
        return true;
    case WIRE_DONE:
        if (!running || r->next != r->end || m->problem != r->problem)
            return false;
        finish_range(w);
        return true;
    case WIRE_ERROR:
        (void)snprintf(w->said, sizeof w->said, "%s", m->text);
        return true;
    case WIRE_PROBLEM:
    case WIRE_COUNT:
        return false;
    }
    return false;
}

/* ---- what a worker writes on standard error ------------------------------------------------ */

/* false: nothing more at present. */
static bool read_tail(struct worker *w)
{
    char text[TAIL_BYTES];
    ssize_t n = w->proc.err < 0 ? -1 : read(w->proc.err, text, sizeof text);

    if (n > 0)
        tail_keep(&w->tail, text, (size_t)n);
    else if (n == 0)
        proc_close(&w->proc.err);
    return n > 0;
}

/* ---- losing and replacing a worker -------------------------------------------------------- */

static void start(struct pool *p, struct worker *w)
{
    const struct proc_options o = {
        .path = "/proc/self/exe", .argv = p->o->argv, .pipes = PROC_IN | PROC_OUT | PROC_ERR};

    w->ready = w->begun = w->launched = w->fruitful = false;
    w->tail.used = w->received.used = 0;
    w->said[0] = '\0';
    w->since = proc_now();
    if (!p->o->early || !pool_early_take(p->o->early, &w->proc))
        keep(p, proc_spawn(&w->proc, &o, p->errs));
}

/* The record of the case that took its worker along. Words of a worker that went on after its
 * answers broke may be about a later case, and are left out. */
static void charge(struct pool *p, struct worker *w, enum loss loss, const char *how)
{
    struct record r;
    char buf[TAIL_WORDS];
    const char *words = loss == LOSS_GARBLED ? "" : tail_words(&w->tail, buf);

    memset(&r, 0, sizeof r);
    r.at_row = r.at_col = -1;
    runner_record(p->plan, w->queue[0].next, p->provider, &r);
    r.index = w->queue[0].next;
    r.verdict = losses[w->stage].verdict;
    (void)snprintf(r.reason, sizeof r.reason, "%s%s%s%s", losses[w->stage].text[loss], how,
                   *words ? "; its last words: " : "", words);
    finish_case(w);
    keep(p, order_add(&p->order, &r, p->errs));
}

/* The sentence for a worker that cannot be brought to work. */
static void despair(struct pool *p, const struct worker *w, enum loss loss, const char *how)
{
    char buf[TAIL_WORDS];
    const char *words = w->said[0] ? w->said : tail_words(&w->tail, buf);

    p->rc = errs_add(p->errs, ERR_INFRA, NOWHERE,
                     "a worker was lost %d times in a row without a record: %s%s%s%s", BARREN_LIVES,
                     loss == LOSS_LATE ? "no answer within " : "", how, *words ? ": " : "", words);
}

static double start_seconds(const struct pool *p)
{
    return p->o->start_seconds > 0 ? p->o->start_seconds : START_SECONDS;
}

/* Kill it if it lives, read what it wrote before, and say what happened. */
static enum loss bury(const struct pool *p, struct worker *w, enum loss loss, char how[HOW_BYTES])
{
    double limit = w->ready ? p->o->case_seconds : start_seconds(p);
    int status, err = w->proc.err;
    bool died = loss != LOSS_ENDED || proc_wait(&w->proc, DEATH_SECONDS);

    w->proc.err = -1; /* stays open over proc_kill */
    status = proc_kill(&w->proc);
    w->proc.err = err;
    if (!died && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        loss = LOSS_GARBLED; /* it closed its pipe and lived on */
    for (int i = 0; i < DRAIN_READS && read_tail(w); i++)
        ;
    proc_close(&w->proc.err);
    if (loss == LOSS_ENDED)
        (void)proc_describe(status, how, HOW_BYTES);
    else if (loss == LOSS_LATE)
        (void)snprintf(how, HOW_BYTES, "%g s", limit);
    else
        (void)snprintf(how, HOW_BYTES, "its answers make no sense");
    return loss;
}

static void lose(struct pool *p, struct worker *w, enum loss loss)
{
    char how[HOW_BYTES];

    loss = bury(p, w, loss, how);
    if (w->begun)
        charge(p, w, loss, how);
    if (!w->fruitful && ++w->barren >= BARREN_LIVES && !p->rc)
        despair(p, w, loss, how);
    if (w->queued > 0 && w->queue[0].next == w->queue[0].end)
        finish_range(w);
    if (!p->rc && (w->queued > 0 || problems_left(p)))
        start(p, w);
}

/* ---- the loop ----------------------------------------------------------------------------- */

static void read_answers(struct pool *p, struct worker *w)
{
    struct wire_message m;
    enum wire_status status = wire_read(&w->received, w->proc.out);

    if (status == WIRE_END) {
        lose(p, w, LOSS_ENDED);
        return;
    }
    while (!p->rc && (status = wire_take(&w->received, &m)) == WIRE_OK)
        if (!on_message(p, w, &m)) {
            status = WIRE_BAD;
            break;
        }
    if (!p->rc && status == WIRE_BAD)
        lose(p, w, LOSS_GARBLED);
}

/* When the worker's time is up; < 0: it has nothing to do. */
static double limit_of(const struct pool *p, const struct worker *w)
{
    if (w->proc.pid <= 0 || (w->ready && w->queued == 0))
        return -1.0;
    if (!w->ready)
        return w->since + start_seconds(p);
    return w->since + p->o->case_seconds;
}

static int poll_ms(const struct pool *p, double now)
{
    double wait = p->ticked + TICK_SECONDS - now;

    for (size_t i = 0; i < p->count; i++) {
        double limit = limit_of(p, &p->workers[i]);

        if (limit >= 0 && limit - now < wait)
            wait = limit - now;
    }
    return wait > 0 ? (int)(wait * 1000.0) + 1 : 0;
}

static void watch(struct pool *p)
{
    for (size_t i = 0; i < p->count; i++) {
        p->fds[2 * i] = (struct pollfd){.fd = p->workers[i].proc.out, .events = POLLIN};
        p->fds[2 * i + 1] = (struct pollfd){.fd = p->workers[i].proc.err, .events = POLLIN};
    }
    if (poll(p->fds, 2 * p->count, poll_ms(p, proc_now())) < 0)
        return; /* a signal: nothing is known of the descriptors, and nobody is late by it */
    for (size_t i = 0; i < p->count && !p->rc; i++) {
        struct worker *w = &p->workers[i];
        double limit;

        if (p->fds[2 * i + 1].revents)
            (void)read_tail(w);
        if (p->fds[2 * i].revents)
            read_answers(p, w);
        limit = limit_of(p, w);
        if (!p->rc && limit >= 0 && !(proc_now() < limit))
            lose(p, w, LOSS_LATE);
    }
}

static void tick(struct pool *p)
{
    double now = proc_now();

    if (now - p->ticked < TICK_SECONDS)
        return;
    p->ticked = now;
    if (p->sink->tick)
        p->sink->tick(p->sink->context);
}

static bool interrupted(const struct pool *p)
{
    return p->o->interrupted && *p->o->interrupted;
}

static void work(struct pool *p)
{
    for (size_t i = 0; i < p->count && !p->rc; i++)
        start(p, &p->workers[i]);
    while (!p->rc && !interrupted(p) && (p->order.delivered < p->handed || problems_left(p))) {
        hand_out(p);
        watch(p);
        tick(p);
    }
}

/* Workers that finished close their provider and end by themselves; others are killed. */
static void end_workers(struct pool *p, bool gently)
{
    double limit = proc_now() + (gently ? END_SECONDS : 0.0);

    for (size_t i = 0; i < p->count; i++)
        proc_close(&p->workers[i].proc.in);
    for (size_t i = 0; i < p->count; i++) {
        struct proc *proc = &p->workers[i].proc;
        double left = limit - proc_now();

        if (gently)
            (void)proc_wait(proc, left > 0 ? left : 0);
        (void)proc_kill(proc);
    }
}

/* The turn of every case, from the order of the problems. */
static bool set_turns(struct pool *p)
{
    size_t *turns = ARENA_NEW(&p->arena, p->plan->count, size_t), turn = 0;

    for (size_t i = 0; turns && i < p->plan->problem_count; i++) {
        const struct plan_problem *q = &p->plan->problems[p->o->order[i]];

        for (size_t j = 0; j < q->count; j++)
            turns[q->first + j] = turn++;
    }
    p->order.turns = turns;
    return turns;
}

static bool allocate(struct pool *p)
{
    size_t count = p->count;
    size_t bytes = count * (sizeof(struct worker) + 2 * sizeof(struct pollfd)) + 128;

    bytes += p->o->order ? p->plan->count * sizeof(size_t) + 64 : 0;
    if (!arena_init(&p->arena, bytes + order_bytes(p->plan->count)))
        return false;
    p->workers = ARENA_NEW(&p->arena, count, struct worker);
    p->fds = ARENA_NEW(&p->arena, 2 * count, struct pollfd);
    if (!p->workers || !p->fds || !order_init(&p->order, p->sink, p->plan->count, &p->arena) ||
        (p->o->order && !set_turns(p))) {
        arena_free(&p->arena);
        return false;
    }
    for (size_t i = 0; i < p->count; i++)
        p->workers[i].proc = PROC_NONE;
    return true;
}

enum err_code pool_run(const struct plan *plan, const struct hum_provider *provider,
                       const struct pool_options *o, const struct pool_sink *sink, bool *complete,
                       struct errs *errs)
{
    struct pool p = {.plan = plan, .provider = provider, .o = o, .sink = sink, .errs = errs};
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    size_t jobs = o->jobs < 1 ? 1 : (size_t)o->jobs;

    *complete = plan->count == 0;
    if (plan->count == 0)
        return ERR_NONE;
    p.count = jobs < plan->problem_count ? jobs : plan->problem_count;
    p.hash = pool_plan_hash(plan);
    if (!allocate(&p))
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for %zu workers", p.count);
    (void)sigaction(SIGPIPE, &ignore, &before);
    work(&p);
    *complete = !p.rc && p.order.delivered == p.handed && !problems_left(&p);
    if (!p.rc)
        p.rc = order_end(&p.order, errs); /* of an interrupted run */
    end_workers(&p, *complete);
    (void)sigaction(SIGPIPE, &before, NULL);
    arena_free(&p.arena);
    return p.rc;
}
