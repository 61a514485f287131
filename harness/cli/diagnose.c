#include "harness/cli/diagnose.h"

#include "harness/core/proc.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGUMENTS = 16, LINE = 16384, POLL_MS = 250 };

static char *const *make_argv(const struct diagnose_how *how, struct arena *arena)
{
    const struct options *o = how->plan;
    char **argv = ARENA_NEW(arena, ARGUMENTS + o->operand_count, char *);
    size_t n = 0;
    bool ok = argv != NULL;

#define PUSH(...) (ok = ok && (argv[n++] = arena_printf(arena, __VA_ARGS__)) != NULL)
    PUSH("humcheck");
    PUSH("diagnose");
    PUSH("--provider=%s", o->provider);
    PUSH("--seconds=%.3f", how->seconds);
    if (how->shrink)
        PUSH("--shrink");
    if (o->filter)
        PUSH("--filter=%s", o->filter);
    if (o->semantics)
        PUSH("--semantics=%s", o->semantics);
    if (o->shards)
        PUSH("--shard=%" PRId64 "/%" PRId64, o->shard, o->shards);
    if (o->has_seed)
        PUSH("--seed=0x%" PRIx64, o->seed);
    PUSH("--");
    for (size_t i = 0; i < o->operand_count; i++)
        PUSH("%s", o->operands[i]);
#undef PUSH
    return ok ? argv : NULL;
}

/* What has come and is not a whole line yet. */
struct reader {
    const struct explain_sink *sink;
    char text[LINE];
    size_t used;
    char doing[EXPLAIN_TEXT]; /* what was launched last */
};

/* A line that is none of ours is a library's chatter. */
static void take_line(struct reader *r, char *line)
{
    char *rest;
    long topic = strtol(line, &rest, 10);

    if (rest == line || *rest != ' ' || topic < 0 || topic >= EXPLAIN_TOPICS)
        return;
    for (char *c = ++rest; *c; c++)
        if (*c == '\v')
            *c = '\n';
    if (topic == EXPLAIN_DOING)
        (void)snprintf(r->doing, sizeof r->doing, "%s", rest);
    else
        r->sink->say(r->sink->context, (enum explain_topic)topic, rest);
}

/* One read; false: the other side is gone. */
static bool take(struct reader *r, int fd)
{
    ssize_t n = read(fd, r->text + r->used, sizeof r->text - 1 - r->used);
    char *line = r->text, *newline;

    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    if (n == 0)
        return false;
    r->used += (size_t)n;
    r->text[r->used] = '\0';
    while ((newline = strchr(line, '\n'))) {
        *newline = '\0';
        take_line(r, line);
        line = newline + 1;
    }
    r->used -= (size_t)(line - r->text);
    memmove(r->text, line, r->used);
    if (r->used == sizeof r->text - 1) /* too long to be a line of ours */
        r->used = 0;
    return true;
}

/* NULL: it closed its pipe; else why it is not waited for any longer. */
static const char *listen(const struct diagnose_how *how, struct proc *p, struct reader *r)
{
    double end = proc_now() + how->seconds + how->grace_seconds;

    for (;;) {
        struct pollfd in = {.fd = p->out, .events = POLLIN};

        if (how->interrupted && *how->interrupted)
            return "it was interrupted";
        if (proc_now() > end)
            return "it hung";
        if (poll(&in, 1, POLL_MS) > 0 && !take(r, p->out))
            return NULL;
    }
}

enum err_code diagnose_run(const struct diagnose_how *how, const struct explain_sink *sink,
                           struct arena *arena, char end[EXPLAIN_TEXT], int *exit_code,
                           struct errs *errs)
{
    struct proc_options o = {.path = "/proc/self/exe", .env = how->env, .pipes = PROC_OUT};
    struct reader *r = ARENA_NEW(arena, 1, struct reader);
    struct proc p = PROC_NONE;
    const char *why;
    char buf[128];
    int status;

    end[0] = '\0';
    *exit_code = err_exit_code(ERR_INFRA);
    o.argv = make_argv(how, arena);
    if (!r || !o.argv)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for an explanation");
    r->sink = sink;
    TRY(proc_spawn(&p, &o, errs));
    why = listen(how, &p, r);
    if (!why)
        (void)proc_wait(&p, 5.0);
    status = proc_kill(&p);
    if (why || status < 0 || !WIFEXITED(status))
        (void)snprintf(end, EXPLAIN_TEXT, "the explanation ended early: %s, in: %.200s",
                       why          ? why
                       : status < 0 ? "it could not be stopped"
                                    : proc_describe(status, buf, sizeof buf),
                       r->doing);
    else
        *exit_code = WEXITSTATUS(status);
    return ERR_NONE;
}

/* ---- of a run -------------------------------------------------------------------------------- */

enum { MOST_DIAGNOSES = 3 };

static const size_t diagnosis_bytes = (size_t)1 << 20;

/* The first sentence of either topic. */
struct heard {
    char where[EXPLAIN_TEXT], cause[EXPLAIN_TEXT];
};

static void hear(void *context, enum explain_topic topic, const char *text)
{
    struct heard *h = context;
    char *to = topic == EXPLAIN_WHERE ? h->where : topic == EXPLAIN_CAUSE ? h->cause : NULL;

    if (to && !to[0])
        (void)snprintf(to, EXPLAIN_TEXT, "%s", text);
}

void diagnose_record(struct diagnoses *d, const struct options *run,
                     const volatile sig_atomic_t *interrupted, struct record *r)
{
    struct options one = *run;
    struct diagnose_how how = {.plan = &one, .interrupted = interrupted};
    struct heard heard = {"", ""};
    const struct explain_sink sink = {hear, &heard};
    double start = proc_now();
    char end[EXPLAIN_TEXT];
    struct errs errs = {0};
    struct arena arena;
    int code;

    if (r->at_row < 0 || d->done == MOST_DIAGNOSES || d->seconds_left <= 0.0 ||
        !arena_init(&arena, diagnosis_bytes))
        return;
    d->done++;
    one.filter = r->id;
    one.shard = one.shards = 0;
    how.seconds = 0.8 * d->seconds_left;
    how.grace_seconds = 0.2 * d->seconds_left;
    if (diagnose_run(&how, &sink, &arena, end, &code, &errs) == ERR_NONE)
        (void)snprintf(r->diagnosis, sizeof r->diagnosis, "%.180s%s%.200s", heard.cause,
                       heard.cause[0] && heard.where[0] ? "; " : "", heard.where);
    errs_free(&errs);
    arena_free(&arena);
    d->seconds_left -= proc_now() - start;
}
