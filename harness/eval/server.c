#include "harness/eval/server.h"

#include "harness/core/proc.h"
#include "harness/eval/supervise.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* How long the supervisor may take beyond the grace time: it kills for up to 20 s. */
static const double supervisor_s = 30.0;

struct server {
    struct proc supervisor;
    double grace_s;
    char ended[SERVER_ENDED_TEXT]; /* the line of the supervisor, as far as it came */
    size_t ended_bytes;
    bool over;
};

/* ---- the command ---- */

/* `word` with {port} and {model} filled in; what was filled in is not read again. NULL: no
 * memory. */
static char *filled(const char *word, const struct eval_config *c, int port, struct arena *arena)
{
    char *out = arena_strdup(arena, "");

    while (out && *word) {
        const char *at = strchr(word + 1, '{');
        int plain = at ? (int)(at - word) : (int)strlen(word);

        if (!strncmp(word, "{port}", 6)) {
            out = arena_printf(arena, "%s%d", out, port);
            word += 6;
        } else if (!strncmp(word, "{model}", 7)) {
            out = arena_printf(arena, "%s%s", out, c->model_name.text);
            word += 7;
        } else {
            out = arena_printf(arena, "%s%.*s", out, plain, word);
            word += plain;
        }
    }
    return out;
}

bool server_command_is_whole(const struct eval_config *c)
{
    for (size_t i = 0; i < c->server_command.count; i++)
        if (strstr(c->server_command.argv[i], "{port}"))
            return true;
    return false;
}

static bool fill_all(const struct eval_config *c, int port, struct arena *arena, char **argv)
{
    for (size_t i = 0; i < c->server_command.count; i++) {
        argv[i] = filled(c->server_command.argv[i], c, port, arena);
        if (!argv[i])
            return false;
    }
    return true;
}

static bool add_added(const struct eval_config *c, struct arena *arena, char **argv, size_t *n)
{
    struct eval_added added[EVAL_ADDED];

    if (!eval_config_added(c, arena, added))
        return false;
    for (int i = 0; i < EVAL_ADDED; i++)
        for (int w = 0; w < 2 && !added[i].is_env && !added[i].stated && added[i].words[w]; w++)
            argv[(*n)++] = arena_strdup(arena, added[i].words[w]);
    return true;
}

char *const *server_command(const struct eval_config *c, int port, struct arena *arena)
{
    static const char *const usual[] = {"vllm", "serve"};
    size_t n = 0, given = c->server_command.count;
    size_t most = given + c->server_args.count + 2 * (size_t)EVAL_ADDED + 8;
    char **argv = ARENA_NEW(arena, most, char *);

    if (!argv)
        return NULL;
    if (server_command_is_whole(c))
        return fill_all(c, port, arena, argv) ? argv : NULL;
    for (size_t i = 0; i < (given ? given : 2); i++)
        argv[n++] = arena_strdup(arena, given ? c->server_command.argv[i] : usual[i]);
    argv[n++] = arena_strdup(arena, c->model_name.text);
    for (size_t i = 0; i < c->server_args.count; i++)
        argv[n++] = arena_strdup(arena, c->server_args.argv[i]);
    if (!add_added(c, arena, argv, &n))
        return NULL;
    argv[n++] = arena_strdup(arena, "--port");
    argv[n++] = arena_printf(arena, "%d", port);
    for (size_t i = 0; i < n; i++)
        if (!argv[i])
            return NULL;
    return argv;
}

enum err_code server_free_port(int *port, struct errs *errs)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool ok = fd >= 0 && !bind(fd, (const struct sockaddr *)&at, size) &&
              !getsockname(fd, (struct sockaddr *)&at, &size);

    if (!ok)
        (void)errs_add(errs, ERR_INFRA, NOWHERE, "no free port for a server: %s", strerror(errno));
    if (fd >= 0)
        (void)close(fd);
    *port = ntohs(at.sin_port);
    return ok ? ERR_NONE : ERR_INFRA;
}

/* ---- its life ---- */

enum err_code server_run(const struct server_start *o, struct server **out, struct errs *errs)
{
    struct server *s = ARENA_NEW(o->arena, 1, struct server);
    struct proc_options how = {
        .path = "/proc/self/exe", .env = o->env, .pipes = PROC_IN | PROC_OUT};
    size_t words = 0, n = 0;
    char **argv;

    *out = NULL;
    while (o->argv[words])
        words++;
    argv = ARENA_NEW(o->arena, words + 6, char *);
    if (!s || !argv)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory to start a server");
    argv[n++] = arena_strdup(o->arena, "humcheck");
    argv[n++] = arena_strdup(o->arena, "supervise");
    argv[n++] = arena_strdup(o->arena, "--");
    argv[n++] = arena_strdup(o->arena, o->log);
    argv[n++] = arena_printf(o->arena, "%g", o->grace_s);
    for (size_t i = 0; i < n; i++)
        if (!argv[i])
            return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory to start a server");
    memcpy(argv + n, o->argv, words * sizeof *argv);
    how.argv = argv;
    s->grace_s = o->grace_s;
    TRY(proc_spawn(&s->supervisor, &how, errs));
    *out = s;
    return ERR_NONE;
}

/* Takes what the supervisor has written; its line ends with a newline. */
static void listen_to(struct server *s)
{
    ssize_t n = 1;

    while (n > 0 && s->ended_bytes + 1 < sizeof s->ended) {
        n = read(s->supervisor.out, s->ended + s->ended_bytes,
                 sizeof s->ended - 1 - s->ended_bytes);
        if (n > 0)
            s->ended_bytes += (size_t)n;
    }
    s->over = s->over || n == 0 || memchr(s->ended, '\n', s->ended_bytes) != NULL;
    s->ended[s->ended_bytes] = '\0';
}

bool server_alive(struct server *s, char why[SERVER_ENDED_TEXT])
{
    listen_to(s);
    if (s->over)
        (void)snprintf(why, SERVER_ENDED_TEXT, "%.*s", (int)strcspn(s->ended, "\n"),
                       s->ended_bytes ? s->ended : "its supervisor was killed");
    return !s->over;
}

enum err_code server_stop(struct server *s, struct errs *errs)
{
    bool gone;

    if (!s)
        return ERR_NONE;
    proc_close(&s->supervisor.in);
    gone = proc_wait(&s->supervisor, s->grace_s + supervisor_s);
    (void)proc_kill(&s->supervisor);
    if (gone)
        return ERR_NONE;
    return errs_add(errs, ERR_INFRA, NOWHERE,
                    "the server or a process that it started cannot be killed; it may hold memory "
                    "of the GPU");
}
