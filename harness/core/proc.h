/* proc.h - child processes: start with pipes, wait with a limit, kill with all their children.
 *
 * A child is started by posix_spawn (never a bare fork: a program with threads or a GPU must not be
 * copied) as the leader of its own process group, so that a signal to the group reaches whatever it
 * started, and a Ctrl-C at the terminal does not reach it. The caller owns a started struct proc
 * and must end it with proc_kill; until then the child's number stays reserved, alive or not, so no
 * signal can hit a stranger. Nothing here prints. Not for use while other threads start processes.
 */
#ifndef HARNESS_CORE_PROC_H
#define HARNESS_CORE_PROC_H

#include "harness/core/arena.h"
#include "harness/core/err.h"

#include <stdbool.h>
#include <sys/types.h>

/* Which standard streams of the child are pipes to us; the others are inherited. */
enum { PROC_IN = 1, PROC_OUT = 2, PROC_ERR = 4 };

struct proc {
    pid_t pid;        /* also the number of its process group; 0: none */
    int in, out, err; /* our ends of its standard streams, owned; -1: none */
};

#define PROC_NONE ((struct proc){.pid = 0, .in = -1, .out = -1, .err = -1})

struct proc_options {
    const char *path;  /* the file to run; PATH is not searched */
    char *const *argv; /* ended by NULL */
    char *const *env;  /* "NAME=value" texts, ended by NULL; NULL: the caller's environment */
    unsigned pipes;    /* PROC_IN | PROC_OUT | PROC_ERR */
};

/* The caller's environment for a child, without the variable `name` and, unless `value` is NULL,
 * with name=value. NULL: no memory. */
char *const *proc_environment(struct arena *arena, const char *name, const char *value);

/* Start a child; signals have their default actions there and none is blocked. Our ends of `out`
 * and `err` do not block; no end of ours is inherited by any other child. On failure `errs` has the
 * sentence (ERR_INFRA) and *p is PROC_NONE. */
MUST_USE enum err_code proc_spawn(struct proc *p, const struct proc_options *o, struct errs *errs);

/* Wait up to `seconds` for the child to end by itself. true: it has ended; it is not reaped yet. */
bool proc_wait(const struct proc *p, double seconds);

/* Kill the child's process group, reap the child and close our ends; *p becomes PROC_NONE.
 * Returns the status of waitpid(2): of its own end if it had ended before. -1: it could not be
 * killed within 5 s (a driver holds it), or there was none. */
int proc_kill(struct proc *p);

/* Close one of our ends (&p->in), so that the child sees the end of its input. */
void proc_close(int *fd);

/* "signal 11 (Segmentation fault)", "exit code 3"; `buf` is returned. */
const char *proc_describe(int status, char *buf, size_t size);

/* Seconds of a clock that only goes forward. */
double proc_now(void);

#endif
