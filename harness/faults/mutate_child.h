/* mutate_child.h - a child process whose standard output is read line by line.
 *
 * Children are this program again, or test programs. What they write on standard error is kept up
 * to its last words. */
#ifndef HARNESS_FAULTS_MUTATE_CHILD_H
#define HARNESS_FAULTS_MUTATE_CHILD_H

#include "harness/core/proc.h"
#include "harness/kernel/pool_tail.h"

#include <poll.h>

enum { CHILD_LINE = 1 << 16, CHILD_FDS = 2 };

/* Lines longer than CHILD_LINE are dropped: no program of ours writes them. */
struct child {
    struct proc proc;
    char *line; /* CHILD_LINE bytes, of the owner */
    size_t used;
    bool too_long;
    struct tail tail;
    double started, heard; /* when it started, and when a line came last (proc_now) */
    double silence;        /* seconds without a line after which it counts as hung */
    void (*on_line)(void *context, const char *line);
    void *context;
};

/* How a child ended. */
struct child_end {
    bool hung;  /* and was killed */
    int status; /* of waitpid */
    double seconds;
    char words[TAIL_WORDS]; /* "": it was silent */
};

/* `c` has line, silence, on_line (NULL: lines are not looked at) and context. */
MUST_USE enum err_code child_start(struct child *c, const char *path, char *const *argv,
                                   char *const *env, struct errs *errs);

/* What to wait for. */
void child_watch(const struct child *c, struct pollfd fds[CHILD_FDS]);

/* Reads what is there and hands on whole lines. True: the child is over, `end` says how, and its
 * process is gone. */
bool child_read(struct child *c, struct child_end *end);

/* Ends it at once. */
void child_stop(struct child *c);

/* "exit code 3: no memory for a worker", "nothing heard of it for 60 s"; `buf` is returned. */
const char *child_describe(const struct child *c, const struct child_end *end, char *buf,
                           size_t size);

#endif
