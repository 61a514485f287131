#include "harness/kernel/pool.h"
#include "harness/kernel/pool_wire.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

/* Descriptors of the pipe lie here and above: code that closes or writes the low ones misses. */
enum { HIGH_FD = 64 };

struct service {
    const struct plan *plan;
    int in, out;
    size_t begun; /* the case of the last stage; SIZE_MAX: none */
    struct wire_buffer received;
};

void pool_protect(int *in_fd, int *out_fd)
{
    int in = fcntl(*in_fd, F_DUPFD_CLOEXEC, HIGH_FD);
    int out = fcntl(*out_fd, F_DUPFD_CLOEXEC, HIGH_FD);
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

    if (in >= 0 && nothing >= 0 && dup2(nothing, *in_fd) >= 0)
        *in_fd = in;
    if (out >= 0 && dup2(STDERR_FILENO, *out_fd) >= 0)
        *out_fd = out;
    if (nothing > STDERR_FILENO)
        (void)close(nothing);
}

/* FNV-1a, 64 bits. Source: draft-eastlake-fnv-17, offset basis and prime. */
static uint64_t hash_bytes(uint64_t h, const void *data, size_t size)
{
    const unsigned char *p = data;

    for (size_t i = 0; i < size; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}

static uint64_t hash_size(uint64_t h, size_t value)
{
    return hash_bytes(h, &value, sizeof value);
}

uint64_t pool_plan_hash(const struct plan *plan)
{
    uint64_t h = hash_size(hash_size(0xcbf29ce484222325u, plan->count), plan->problem_count);

    for (size_t i = 0; i < plan->count; i++) {
        const struct plan_case *c = &plan->cases[i];

        h = hash_bytes(h, c->id, strlen(c->id) + 1);
        h = hash_size(hash_bytes(h, c->v, sizeof c->v), c->problem);
    }
    h = hash_size(h, plan->rules);
    for (size_t i = 0; i < plan->problem_count; i++)
        h = hash_size(hash_size(h, plan->problems[i].first), plan->problems[i].count);
    return h;
}

/* Without a pool nobody is left to work for, and the runner cannot be stopped in the middle. */
static void tell(const struct service *s, const struct wire_message *m)
{
    if (!wire_send(s->out, m))
        _exit(err_exit_code(ERR_INFRA));
}

/* The mark on standard error lets the pool tell what this case wrote from what earlier ones did. A
 * closed standard error loses it, and the words with it. */
static bool mark_case(void)
{
    const char mark = WIRE_CASE_MARK;

    return write(STDERR_FILENO, &mark, sizeof mark) == (ssize_t)sizeof mark;
}

static void on_stage(void *context, size_t case_index, enum stage stage)
{
    struct service *s = context;
    struct wire_message m = {.type = WIRE_STAGE, .begin = case_index, .stage = stage};

    if (s->begun != case_index)
        (void)mark_case();
    s->begun = case_index;
    tell(s, &m);
}

static void on_record(void *context, const struct record *r)
{
    const struct service *s = context;
    struct wire_message m = {.type = WIRE_RECORD, .record = *r};

    tell(s, &m);
}

static bool next_order(struct service *s, struct wire_message *m)
{
    enum wire_status status = wire_take(&s->received, m);

    while (status == WIRE_WAIT) {
        if (wire_read(&s->received, s->in) == WIRE_END)
            return false;
        status = wire_take(&s->received, m);
    }
    return status == WIRE_OK;
}

static bool orderly(const struct plan *plan, const struct wire_message *m)
{
    const struct plan_problem *p;

    if (m->type != WIRE_PROBLEM || m->problem >= plan->problem_count)
        return false;
    p = &plan->problems[m->problem];
    return m->begin >= p->first && m->begin < m->end && m->end <= p->first + p->count;
}

static int give_up(const struct service *s, const char *text)
{
    struct wire_message m = {.type = WIRE_ERROR};

    (void)snprintf(m.text, sizeof m.text, "%s", text);
    tell(s, &m);
    return err_exit_code(ERR_INFRA);
}

static int serve(struct service *s, struct runner *r)
{
    const struct runner_hooks hooks = {.stage = on_stage, .record = on_record, .context = s};
    struct wire_message m = {.type = WIRE_HELLO, .hash = pool_plan_hash(s->plan)};

    tell(s, &m);
    while (next_order(s, &m)) {
        struct wire_message done = {.type = WIRE_DONE, .problem = m.problem};

        if (!orderly(s->plan, &m))
            return give_up(s, "the worker was told to run cases that its plan does not have");
        runner_problem(r, s->plan, (size_t)m.problem, (size_t)m.begin, (size_t)m.end, &hooks);
        tell(s, &done);
    }
    return 0;
}

int pool_serve(const struct plan *plan, const struct hum_provider *provider, int threads,
               size_t memory_limit, int in_fd, int out_fd)
{
    struct service s = {.plan = plan, .begun = SIZE_MAX};
    struct errs errs = {0};
    struct runner *r;
    int code;

    if (in_fd < HIGH_FD || out_fd < HIGH_FD)
        pool_protect(&in_fd, &out_fd);
    s.in = in_fd;
    s.out = out_fd;
#ifdef __linux__
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* also while a launch hangs */
#endif
    (void)signal(SIGPIPE, SIG_IGN);
    (void)setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* what a library prints before it crashes */
    r = runner_open(provider, threads, memory_limit, &errs);
    if (r)
        code = serve(&s, r);
    else
        code = give_up(&s, errs.count ? errs.items[0].text : "the runner cannot be opened");
    if (r)
        runner_close(r);
    errs_free(&errs);
    return code;
}
