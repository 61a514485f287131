#include "harness/core/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { READ_END, WRITE_END, STREAMS = 3 };

#define KILL_SECONDS 5.0

double proc_now(void)
{
    struct timespec t = {0};

    if (clock_gettime(CLOCK_MONOTONIC, &t))
        return 0.0;
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void proc_close(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

/* Move *fd above the standard streams, closed on exec: a program that was itself started with a
 * closed standard stream would else get a pipe there, which the child's redirection overwrites. */
static bool lift(int *fd)
{
    int high = fcntl(*fd, F_DUPFD_CLOEXEC, STREAMS);

    proc_close(fd);
    *fd = high;
    return high >= 0;
}

static bool make_pipe(int ends[2])
{
    bool lifted;

    if (pipe(ends))
        return false;
    lifted = lift(&ends[READ_END]);
    return lift(&ends[WRITE_END]) && lifted; /* both in any case */
}

static bool unblock(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

char *const *proc_environment(struct arena *arena, const char *name, const char *value)
{
    size_t count = 0, length = strlen(name), n = 0;
    char **env;

    while (environ[count])
        count++;
    env = ARENA_NEW(arena, count + 2, char *);
    for (size_t i = 0; env && i < count; i++)
        if (strncmp(environ[i], name, length) != 0 || environ[i][length] != '=')
            env[n++] = environ[i];
    if (!env || !value)
        return env;
    env[n] = arena_printf(arena, "%s=%s", name, value);
    return env[n] ? env : NULL;
}

/* One pipe for each stream asked for. In theirs[] the child's end, in ours[] the other; both -1
 * where there is none. */
static bool make_pipes(unsigned pipes, int theirs[STREAMS], int ours[STREAMS])
{
    for (int i = 0; i < STREAMS; i++) {
        bool input = i == STDIN_FILENO;
        int ends[2] = {-1, -1};
        bool made;

        if (!(pipes & 1u << i))
            continue;
        made = make_pipe(ends);
        theirs[i] = ends[input ? READ_END : WRITE_END];
        ours[i] = ends[input ? WRITE_END : READ_END];
        if (!made || (!input && !unblock(ours[i])))
            return false;
    }
    return true;
}

/* Returns an error number, 0 for success. */
static int spawn(pid_t *pid, const struct proc_options *o, const int theirs[STREAMS])
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t all, none;
    int rc = posix_spawn_file_actions_init(&actions);

    if (rc)
        return rc;
    rc = posix_spawnattr_init(&attr);
    if (rc)
        goto destroy_actions;
    (void)sigfillset(&all);
    (void)sigemptyset(&none);
    rc = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF |
                                             POSIX_SPAWN_SETSIGMASK);
    if (!rc)
        rc = posix_spawnattr_setpgroup(&attr, 0);
    if (!rc)
        rc = posix_spawnattr_setsigdefault(&attr, &all);
    if (!rc)
        rc = posix_spawnattr_setsigmask(&attr, &none);
    for (int i = 0; i < STREAMS && !rc; i++)
        if (theirs[i] >= 0)
            rc = posix_spawn_file_actions_adddup2(&actions, theirs[i], i);
    if (!rc)
        rc = posix_spawn(pid, o->path, &actions, &attr, o->argv, o->env ? o->env : environ);
    (void)posix_spawnattr_destroy(&attr);
destroy_actions:
    (void)posix_spawn_file_actions_destroy(&actions);
    return rc;
}

enum err_code proc_spawn(struct proc *p, const struct proc_options *o, struct errs *errs)
{
    int theirs[STREAMS] = {-1, -1, -1}, ours[STREAMS] = {-1, -1, -1};
    pid_t pid = 0;
    int rc = 0;

    *p = PROC_NONE;
    if (!make_pipes(o->pipes, theirs, ours))
        rc = errno ? errno : EMFILE;
    if (!rc)
        rc = spawn(&pid, o, theirs);
    for (int i = 0; i < STREAMS; i++) {
        proc_close(&theirs[i]);
        if (rc)
            proc_close(&ours[i]);
    }
    if (rc)
        return errs_add(errs, ERR_INFRA, NOWHERE, "cannot start %s: %s", o->path, strerror(rc));
    *p = (struct proc){.pid = pid,
                       .in = ours[STDIN_FILENO],
                       .out = ours[STDOUT_FILENO],
                       .err = ours[STDERR_FILENO]};
    return ERR_NONE;
}

/* Looks without reaping: until it is reaped its number and its group's belong to nobody else. */
static bool ended(const struct proc *p)
{
    siginfo_t info = {0};
    int rc;

    do {
        rc = waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT);
    } while (rc && errno == EINTR);
    return rc || info.si_pid == p->pid;
}

bool proc_wait(const struct proc *p, double seconds)
{
    double limit = proc_now() + seconds;
    struct timespec pause = {0, 500000}; /* 0.5 ms, doubled up to 16 ms */

    if (p->pid <= 0)
        return true;
    while (!ended(p)) {
        if (!(proc_now() < limit))
            return false;
        (void)nanosleep(&pause, NULL);
        if (pause.tv_nsec < 16000000)
            pause.tv_nsec *= 2;
    }
    return true;
}

int proc_kill(struct proc *p)
{
    int status = -1;

    proc_close(&p->in);
    proc_close(&p->out);
    proc_close(&p->err);
    if (p->pid > 0) {
        (void)kill(-p->pid, SIGKILL);
        if (!proc_wait(p, KILL_SECONDS) || waitpid(p->pid, &status, WNOHANG) != p->pid)
            status = -1;
    }
    *p = PROC_NONE;
    return status;
}

const char *proc_describe(int status, char *buf, size_t size)
{
    if (status == -1)
        (void)snprintf(buf, size, "it could not be killed");
    else if (WIFSIGNALED(status))
        (void)snprintf(buf, size, "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        (void)snprintf(buf, size, "exit code %d", WEXITSTATUS(status));
    return buf;
}
