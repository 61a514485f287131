#include "harness/cli/eval_run.h"

#include "harness/core/proc.h"
#include "harness/eval/environment.h"
#include "harness/eval/gpu_memory.h"
#include "harness/report/escape.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

enum { LOG_CLEAN = 8192 };

/* Between SIGTERM and SIGKILL: engines give back GPU memory and shared memory. */
static const double grace_s = 30.0;

/* A driver takes a moment to clear what a server held. */
static const double memory_s = 10.0;

/* Nobody waits for long for a server that somebody else has started. */
static const double attached_s = 60.0;

const char *eval_store_path(const char *place, const char *name, struct arena *arena)
{
    struct stat st;

    if (!stat(place, &st) && S_ISREG(st.st_mode))
        return arena_strdup(arena, place);
    return arena_printf(arena, "%s/%s.sqlite", place, name);
}

static void waiting(void *ctx, double waited_s)
{
    eval_show_waiting(&((struct eval_run *)ctx)->line, waited_s);
}

/* Wait for the server and ask it. */
static enum err_code ask(struct eval_run *run, struct eval *e, const char *url, double seconds,
                         struct eval_row *row, struct errs *errs)
{
    const struct server_wait w = {.url = url,
                                  .api_key = run->how->api_key,
                                  .server = e->server,
                                  .endpoint = e->prompts.options.endpoint,
                                  .probe = eval_probe(e),
                                  .seconds = seconds,
                                  .arena = run->arena,
                                  .interrupted = run->how->interrupted,
                                  .tick = waiting,
                                  .ctx = run};
    double before = proc_now();
    struct server_info info;
    enum err_code rc;

    if (!w.probe)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for a request");
    rc = server_wait(&w, &info, errs);

    eval_show_clear(&run->line);
    if (e->server)
        row->start_s = proc_now() - before;
    if (!rc)
        rc = eval_identify(e, url, &info, errs);
    before = proc_now();
    if (!rc)
        rc = eval_ask(e, url, errs);
    row->ask_s = proc_now() - before;
    eval_show_clear(&run->line);
    return rc;
}

/* Its last lines, as they are but for what could fool a terminal or a CI system's log. */
static void print_log(const char *path, struct arena *arena)
{
    const char *tail = server_log_tail(path, arena);
    char line[LOG_CLEAN / 4], clean[LOG_CLEAN];

    if (*tail)
        (void)fprintf(stderr, "the last lines of %s:\n", path);
    while (*tail) {
        size_t n = strcspn(tail, "\n");

        (void)snprintf(line, sizeof line, "%.*s", (int)(n < sizeof line ? n : sizeof line - 1),
                       tail);
        (void)fprintf(stderr, "  | %s\n", escape_terminal(line, clean, sizeof clean));
        tail += n + (tail[n] == '\n');
    }
}

/* The answers are there by now and lose nothing, so it is no error of this run. */
static void tell_memory(const struct eval_run *run, const struct eval *e,
                        const struct gpu_memory *before)
{
    char text[GPU_MEMORY_TEXT];

    if (*gpu_memory_wait(before, memory_s, run->how->interrupted, text))
        (void)fprintf(stderr, "%s: %s (warning)\n", e->config->name, text);
}

static enum err_code run_server(struct eval_run *run, struct eval *e, struct eval_row *row,
                                struct errs *errs)
{
    struct server_start how = {.grace_s = grace_s, .arena = run->arena};
    const char *url;
    enum err_code rc, stopped;
    struct gpu_memory before;

    TRY(server_free_port(&how.port, errs));
    how.argv = server_command(e->config, how.port, run->arena);
    how.env = environment_make(e->config, run->arena);
    how.log = arena_printf(run->arena, "%s/%s.log", run->folder, e->config->name);
    url = arena_printf(run->arena, "http://127.0.0.1:%d", how.port);
    if (!how.argv || !how.env || !how.log || !url)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory to start a server");
    eval_show_command(e->config, how.argv);
    gpu_memory_read(&before);
    TRY(server_run(&how, &e->server, errs));
    rc = ask(run, e, url, (double)e->config->startup_max_wait_seconds.value, row, errs);
    stopped = server_stop(e->server, errs);
    e->server = NULL;
    tell_memory(run, e, &before);
    if (rc == ERR_INFRA && !*run->how->interrupted)
        print_log(how.log, run->arena);
    return rc ? rc : stopped;
}

static enum err_code replay(struct eval_run *run, struct eval *e, struct errs *errs)
{
    const char *path = eval_store_path(run->o->replay, e->config->name, run->arena);
    struct store *from;
    enum err_code rc;

    if (!path)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for a path");
    TRY(store_view(path, &from, errs));
    rc = eval_replay(e, from, errs);
    store_close(from);
    return rc;
}

static enum err_code get_answers(struct eval_run *run, struct eval *e, struct eval_row *row,
                                 struct errs *errs)
{
    if (!e->pending_count)
        return ERR_NONE;
    if (run->o->replay)
        return replay(run, e, errs);
    if (run->o->server)
        return ask(run, e, run->o->server, attached_s, row, errs);
    return run_server(run, e, row, errs);
}

/* The first sentence stands for the configuration in tables; all are printed now. */
static void keep_errors(struct eval_run *run, struct eval_row *row, const struct errs *errs)
{
    char text[3 * ERR_TEXT];

    for (size_t i = 0; i < errs->count; i++)
        (void)fprintf(stderr, "%s%s\n", errs->items[i].at.file ? "" : "humcheck: ",
                      err_format(&errs->items[i], text, sizeof text));
    row->failed = errs->count ? arena_strdup(run->arena, errs->items[0].text) : NULL;
    if (!row->failed)
        row->failed = "it could not be run";
}

static void move_errors(struct errs *to, const struct errs *from)
{
    for (size_t i = 0; i < from->count; i++)
        (void)errs_add(to, from->items[i].code, from->items[i].at, "%s", from->items[i].text);
}

enum err_code eval_run_one(struct eval_run *run, struct eval *e, struct eval_row *row,
                           struct errs *errs)
{
    const char *path =
        run->folder ? arena_printf(run->arena, "%s/%s.sqlite", run->folder, e->config->name) : NULL;
    struct errs own = {0};
    enum err_code rc;

    row->result.config = e->config;
    rc = eval_open(e, path, run->o->fresh, &own);
    if (!rc) {
        eval_show_head(e);
        rc = get_answers(run, e, row, &own);
        row->interrupted = *run->how->interrupted != 0;
    }
    if (!rc || row->interrupted)
        rc = eval_judge(e, &row->result, &own);
    if (rc == ERR_USAGE)
        move_errors(errs, &own);
    else if (rc)
        keep_errors(run, row, &own);
    if (rc != ERR_USAGE)
        eval_show_result(row, run->arena);
    errs_free(&own);
    return rc == ERR_USAGE ? rc : ERR_NONE;
}
