#include "harness/eval/supervise.h"

#include "harness/core/proc.h"
#include "harness/eval/environment.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TICK_MS = 20, ABOVE_STANDARD = 3, ROOM_FIRST = 1024, PATH_TEXT = 4096 };

/* A process that SIGKILL does not end is held by a driver; waiting longer helps nobody. */
static const double kill_seconds = 20.0;

struct supervision {
    pid_t pid;           /* of the command, and of its group */
    int control, status; /* our ends of the pipes to humcheck */
    bool ended;          /* the command itself */
    bool alone;          /* no descendant is left */
};

static void say(const struct supervision *s, const char *text)
{
    char line[256];
    int n = snprintf(line, sizeof line, "%s\n", text);

    if (n > 0)
        (void)!write(s->status, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

/* Reap whatever has ended. The number of a group is safe to signal as long as its leader is not
 * reaped: when that one ended, the rest of its group is told first. */
static void reap(struct supervision *s)
{
    siginfo_t info = {0};
    char text[128];
    int status = 0, rc;

    while (!(rc = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT)) && info.si_pid > 0) {
        if (info.si_pid == s->pid)
            (void)kill(-s->pid, SIGTERM);
        if (waitpid(info.si_pid, &status, 0) == s->pid) {
            s->ended = true;
            say(s, proc_describe(status, text, sizeof text));
        }
        info.si_pid = 0;
    }
    s->alone = rc && errno == ECHILD;
}

/* Waits one tick. true: humcheck wants an end, or has none itself any more. */
static bool told_to_stop(const struct supervision *s)
{
    struct pollfd p = {.fd = s->control, .events = POLLIN};
    char byte;

    if (poll(&p, 1, TICK_MS) <= 0 || !p.revents)
        return false;
    return read(s->control, &byte, 1) <= 0;
}

static void wait_tick(void)
{
    (void)poll(NULL, 0, TICK_MS);
}

struct process {
    pid_t pid, parent;
};

/* The parent in the text of /proc/PID/stat, "PID (NAME) S PARENT ..."; NAME may hold anything. */
static pid_t parent_in(const char *stat)
{
    const char *behind = strrchr(stat, ')');

    if (!behind || strlen(behind) < 4)
        return 0;
    return (pid_t)strtol(behind + 4, NULL, 10);
}

static pid_t parent_of(const char *pid)
{
    char path[64], text[512];
    ssize_t n;
    int fd;

    (void)snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    n = read(fd, text, sizeof text - 1);
    (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    return parent_in(text);
}

struct process_list {
    struct process *at; /* free */
    size_t count, room;
};

/* false: no memory; what is there stays. */
static bool add_process(struct process_list *l, const char *pid)
{
    if (l->count == l->room) {
        size_t room = l->room ? 2 * l->room : ROOM_FIRST;
        struct process *grown = realloc(l->at, room * sizeof *grown);

        if (!grown)
            return false;
        l->at = grown;
        l->room = room;
    }
    l->at[l->count].pid = (pid_t)strtol(pid, NULL, 10);
    l->at[l->count++].parent = parent_of(pid);
    return true;
}

/* All of them: a machine with many cores has thousands of the kernel's own before the first of
 * ours. */
static struct process_list list_processes(void)
{
    struct process_list l = {0};
    DIR *proc = opendir("/proc");
    const struct dirent *entry;
    bool room = true;

    while (proc && room && (entry = readdir(proc)) != NULL)
        if (isdigit((unsigned char)entry->d_name[0]))
            room = add_process(&l, entry->d_name);
    if (proc)
        (void)closedir(proc);
    return l;
}

/* Is `pid` below us? Follows parents, of which a chain has at most as many as there are. */
static bool is_descendant(const struct process *list, size_t count, pid_t pid)
{
    for (size_t steps = 0; pid > 1 && steps < count; steps++) {
        size_t i = 0;

        while (i < count && list[i].pid != pid)
            i++;
        if (i == count)
            return false;
        pid = list[i].parent;
        if (pid == getpid())
            return true;
    }
    return false;
}

static void kill_descendants(void)
{
    struct process_list l = list_processes();

    for (size_t i = 0; i < l.count; i++)
        if (is_descendant(l.at, l.count, l.at[i].pid))
            (void)kill(l.at[i].pid, SIGKILL);
    free(l.at);
}

/* Politely first, so that a server can give back what it holds. */
static void end_all(struct supervision *s, double grace_s)
{
    double limit = proc_now() + grace_s;

    if (!s->ended)
        (void)kill(-s->pid, SIGTERM);
    while (!s->alone && proc_now() < limit) {
        wait_tick();
        reap(s);
    }
    limit = proc_now() + kill_seconds;
    while (!s->alone && proc_now() < limit) {
        kill_descendants();
        wait_tick();
        reap(s);
    }
}

/* Standard input and output become /dev/null and the log; the pipes move out of the command's
 * reach. */
static enum err_code redirect(struct supervision *s, const char *path, struct errs *errs)
{
    int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

    if (log < 0)
        return errs_add(errs, ERR_IO, NOWHERE, "cannot write '%s': %s", path, strerror(errno));
    s->control = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, ABOVE_STANDARD);
    s->status = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, ABOVE_STANDARD);
    if (s->control < 0 || s->status < 0 || nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 ||
        dup2(log, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0)
        return errs_add(errs, ERR_IO, NOWHERE, "cannot redirect streams: %s", strerror(errno));
    (void)close(log);
    (void)close(nothing);
    return ERR_NONE;
}

static void ignore_signals(void)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGPIPE};
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    (void)sigemptyset(&ignore.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        (void)sigaction(signals[i], &ignore, NULL);
}

/* proc_spawn promises its child default signals and a group of its own. */
static enum err_code start(struct supervision *s, const char *const *command, size_t count,
                           struct errs *errs)
{
    char **argv = calloc(count + 1, sizeof *argv);
    char path[PATH_TEXT];
    struct proc_options how = {.path = path, .argv = argv};
    struct proc proc;
    enum err_code rc = ERR_NOMEM;

    if (!argv)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory to start %s", command[0]);
    for (size_t i = 0; i < count; i++)
        argv[i] = strdup(command[i]);
    if (environment_search(command[0], path, sizeof path)) {
        rc = proc_spawn(&proc, &how, errs);
        s->pid = proc.pid;
    } else {
        rc = errs_add(errs, ERR_INFRA, NOWHERE, "cannot start %s: no such program", command[0]);
    }
    for (size_t i = 0; i < count; i++)
        free(argv[i]);
    free(argv);
    return rc;
}

enum err_code supervise(const char *const *words, size_t count, struct errs *errs)
{
    struct supervision s = {.control = -1, .status = -1};
    char *end = NULL, text[2 * ERR_TEXT];
    double grace_s = count >= SUPERVISE_WORDS ? strtod(words[1], &end) : 0;
    enum err_code rc;

    if (!end || *end || !(grace_s >= 0 && grace_s < 1e6))
        return errs_add(errs, ERR_USAGE, NOWHERE, "supervise needs LOG SECONDS COMMAND");
    ignore_signals();
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    TRY(redirect(&s, words[0], errs));
    rc = start(&s, words + 2, count - 2, errs);
    if (rc) {
        say(&s, err_format(&errs->items[errs->count - 1], text, sizeof text));
        return rc;
    }
    while (!s.ended && !told_to_stop(&s))
        reap(&s);
    end_all(&s, grace_s);
    return ERR_NONE;
}
