#include "harness/faults/mutate_child.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { READS = 64 }; /* at one go, so that one child cannot keep the others waiting */

enum err_code child_start(struct child *c, const char *path, char *const *argv, char *const *env,
                          struct errs *errs)
{
    const struct proc_options o = {
        .path = path, .argv = argv, .env = env, .pipes = PROC_OUT | PROC_ERR};

    c->used = c->tail.used = 0;
    c->too_long = false;
    c->started = c->heard = proc_now();
    return proc_spawn(&c->proc, &o, errs);
}

void child_watch(const struct child *c, struct pollfd fds[CHILD_FDS])
{
    fds[0] = (struct pollfd){.fd = c->proc.out, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = c->proc.err, .events = POLLIN};
}

static void end_line(struct child *c)
{
    c->line[c->used] = '\0';
    if (c->on_line && !c->too_long)
        c->on_line(c->context, c->line);
    c->used = 0;
    c->too_long = false;
}

static void take(struct child *c, const char *bytes, size_t n)
{
    c->heard = proc_now();
    for (size_t i = 0; i < n; i++)
        if (bytes[i] == '\n')
            end_line(c);
        else if (c->used + 1 < CHILD_LINE)
            c->line[c->used++] = bytes[i];
        else
            c->too_long = true;
}

/* False: nothing more at present. */
static bool read_some(struct child *c, int *fd, bool out)
{
    char bytes[TAIL_BYTES];
    ssize_t n = *fd < 0 ? -1 : read(*fd, bytes, sizeof bytes);

    if (n > 0 && out)
        take(c, bytes, (size_t)n);
    else if (n > 0)
        tail_keep(&c->tail, bytes, (size_t)n);
    else if (n == 0)
        proc_close(fd);
    return n > 0;
}

static void read_all(struct child *c)
{
    for (int i = 0; i < READS && read_some(c, &c->proc.out, true); i++)
        ;
    for (int i = 0; i < READS && read_some(c, &c->proc.err, false); i++)
        ;
}

bool child_read(struct child *c, struct child_end *end)
{
    bool ended = proc_wait(&c->proc, 0.0); /* before reading: what it wrote is there then */
    char words[TAIL_WORDS];
    bool hung = !ended && !(proc_now() - c->heard < c->silence);

    read_all(c);
    if (!hung && (!ended || c->proc.out >= 0 || c->proc.err >= 0)) {
        if (!ended)
            return false;
        while (read_some(c, &c->proc.out, true) || read_some(c, &c->proc.err, false))
            ;
    }
    end->hung = hung;
    end->seconds = proc_now() - c->started;
    (void)snprintf(end->words, sizeof end->words, "%s", tail_words(&c->tail, words));
    end->status = proc_kill(&c->proc);
    return true;
}

void child_stop(struct child *c)
{
    (void)proc_kill(&c->proc);
}

const char *child_describe(const struct child *c, const struct child_end *end, char *buf,
                           size_t size)
{
    char how[96];

    if (end->hung)
        (void)snprintf(buf, size, "nothing was heard of it for %g s", c->silence);
    else
        (void)snprintf(buf, size, "%s%s%s", proc_describe(end->status, how, sizeof how),
                       end->words[0] ? ": " : "", end->words);
    return buf;
}
