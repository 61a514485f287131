/* Finding out whether a server is ready, and what it is. */
#include "harness/eval/server.h"

#include "harness/core/proc.h"
#include "harness/eval/client.h"
#include "harness/eval/reply.h"
#include "harness/eval/store.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SEEN = 200, POLL_MS = 250, TAIL_BYTES = 64 * 1024, VERSION_TEXT = 100 };

static const double page_seconds = 5.0, probe_seconds = 60.0;

struct waiting {
    const struct server_wait *w;
    double limit;    /* of proc_now() */
    char seen[SEEN]; /* what the last try gave */
    struct server_info *info;
};

static bool get(const struct server_wait *w, const char *path, struct client_page *page)
{
    const char *url = arena_printf(w->arena, "%s%s", w->url, path);

    *page = (struct client_page){.body = ""};
    return url && client_get(url, w->api_key, page_seconds, w->arena, page);
}

/* ---- one completion ---- */

struct probe {
    const char *body;
    struct waiting *t;
    bool answered;
};

static const char *probe_body(void *ctx, size_t index, size_t *bytes)
{
    const struct probe *p = ctx;

    (void)index;
    *bytes = strlen(p->body);
    return p->body;
}

static enum err_code probe_done(void *ctx, const struct client_reply *r, struct errs *errs)
{
    struct probe *p = ctx;
    struct reply reply;
    char why[REPLY_WHY] = "";

    (void)errs;
    p->answered = r->outcome == CLIENT_OK && reply_parse(r->body, r->bytes, p->t->w->endpoint,
                                                         p->t->w->arena, &reply, why) == REPLY_OK;
    if (!p->answered)
        (void)snprintf(p->t->seen, SEEN, "a completion gave: %.150s", r->error[0] ? r->error : why);
    return ERR_NONE;
}

static bool completes(struct waiting *t, struct errs *errs)
{
    const struct server_wait *w = t->w;
    double left = t->limit - proc_now();
    const char *url = arena_printf(w->arena, "%s%s", w->url, endpoint_path(w->endpoint));
    struct probe p = {.body = w->probe, .t = t};
    struct client_options o = {.url = url,
                               .api_key = w->api_key,
                               .concurrency = 1,
                               .timeout_s = left < probe_seconds ? left : probe_seconds,
                               .connect_timeout_s = page_seconds,
                               .max_attempts = 1,
                               .backoff_base_s = 0.1,
                               .backoff_cap_s = 1.0,
                               .max_body_bytes = 1 << 20,
                               .interrupted = w->interrupted};
    const struct client_jobs jobs = {.count = 1, .body = probe_body, .done = probe_done, .ctx = &p};

    if (!url || !(left > 0))
        return false;
    return !client_run(&o, &jobs, errs) && p.answered;
}

/* ---- readiness ---- */

static bool is_healthy(struct waiting *t)
{
    struct client_page page;

    if (get(t->w, "/health", &page) && page.status == 200)
        return true;
    if (page.status)
        (void)snprintf(t->seen, SEEN, "/health gave HTTP %ld", page.status);
    else
        (void)snprintf(t->seen, SEEN, "/health gave: %.150s", page.error);
    return false;
}

static void list_models(struct waiting *t)
{
    struct client_page page;

    t->info->models = 0;
    if (get(t->w, "/v1/models", &page) && page.status == 200)
        t->info->models =
            reply_models(page.body, page.bytes, t->w->arena, t->info->model, SERVER_MODELS);
}

/* Where servers tell their versions. */
/* clang-format off */
static const struct {
    const char *path, *member, *name;
} versions[] = {
    {"/version",         "version",    "vllm"},
    {"/get_server_info", "version",    "sglang"},
    {"/props",           "build_info", "llama.cpp"},
};
/* clang-format on */
enum { VERSIONS = sizeof versions / sizeof versions[0] };

static const char *version_of(const struct server_wait *w)
{
    for (int i = 0; i < VERSIONS; i++) {
        struct client_page page;
        const char *text = NULL;

        if (get(w, versions[i].path, &page) && page.status == 200)
            text = reply_member(page.body, page.bytes, versions[i].member, w->arena);
        if (text)
            text = arena_printf(w->arena, "%s %.*s", versions[i].name, VERSION_TEXT, text);
        if (text)
            return text;
    }
    return "unknown";
}

static bool is_over(struct waiting *t, struct errs *errs)
{
    const struct server_wait *w = t->w;
    char why[SERVER_ENDED_TEXT];

    if (w->interrupted && *w->interrupted)
        (void)errs_add(errs, ERR_INFRA, NOWHERE, "interrupted while the server was starting");
    else if (w->server && !server_alive(w->server, why))
        (void)errs_add(errs, ERR_INFRA, NOWHERE, "the server ended before it was ready: %s", why);
    else if (proc_now() >= t->limit)
        (void)errs_add(errs, ERR_INFRA, NOWHERE, "the server at %s was not ready after %g s: %s",
                       w->url, w->seconds, t->seen);
    else
        return false;
    return true;
}

enum err_code server_wait(const struct server_wait *w, struct server_info *out, struct errs *errs)
{
    double started = proc_now();
    struct waiting t = {.w = w, .limit = started + w->seconds, .info = out};

    *out = (struct server_info){.version = "unknown"};
    (void)snprintf(t.seen, SEEN, "nothing was heard of it");
    while (!is_over(&t, errs)) {
        if (w->tick)
            w->tick(w->ctx, proc_now() - started);
        if (is_healthy(&t)) {
            list_models(&t);
            if (completes(&t, errs)) {
                out->version = version_of(w);
                return ERR_NONE;
            }
            if (errs->count)
                return errs->items[errs->count - 1].code;
        }
        (void)poll(NULL, 0, POLL_MS);
    }
    return ERR_INFRA;
}

/* ---- logs and metrics ---- */

const char *server_log_tail(const char *path, struct arena *arena)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), lines = 0;
    char *text = arena_alloc(arena, TAIL_BYTES + 1, 1);
    struct stat st;
    ssize_t n = 0;

    if (fd < 0 || !text || fstat(fd, &st) ||
        lseek(fd, st.st_size > TAIL_BYTES ? st.st_size - TAIL_BYTES : 0, SEEK_SET) < 0)
        n = 0;
    else
        n = read(fd, text, TAIL_BYTES);
    if (fd >= 0)
        (void)close(fd);
    if (n <= 0)
        return "";
    text[n] = '\0';
    for (ssize_t i = n - 2; i >= 0; i--)
        if (text[i] == '\n' && ++lines == SERVER_LOG_LINES)
            return text + i + 1;
    return text;
}

/* Adds the value of a line "NAME{labels} VALUE" or "NAME VALUE". */
static bool add_counter(const char *line, const char *name, uint64_t *sum)
{
    size_t n = strlen(name);
    const char *value;
    char *end;
    double x;

    if (strncmp(line, name, n) != 0 || (line[n] != '{' && line[n] != ' '))
        return false;
    value = line + n;
    while (*value != '\n' && *value && *value != '}')
        value++;
    if (*value != '}')
        value = line + n - 1;
    x = strtod(value + 1, &end);
    if (end == value + 1 || !(x >= 0 && x < 0x1p63))
        return false;
    *sum += (uint64_t)x;
    return true;
}

bool server_drafts(const char *metrics, struct store_drafts *out)
{
    bool drafts = false, accepted = false;

    *out = (struct store_drafts){0};
    for (const char *line = metrics; line && *line;) {
        if (add_counter(line, "vllm:spec_decode_num_drafts_total", &out->drafts))
            drafts = true;
        if (add_counter(line, "vllm:spec_decode_num_accepted_tokens_total", &out->accepted))
            accepted = true;
        line = strchr(line, '\n');
        line += line != NULL;
    }
    return drafts && accepted;
}

const char *server_started(const char *metrics, char buf[SERVER_STARTED_TEXT])
{
    static const char name[] = "process_start_time_seconds ";

    buf[0] = '\0';
    for (const char *line = metrics; line && *line;) {
        if (!strncmp(line, name, sizeof name - 1))
            (void)snprintf(buf, SERVER_STARTED_TEXT, "%.*s",
                           (int)strcspn(line + sizeof name - 1, "\r\n"), line + sizeof name - 1);
        line = strchr(line, '\n');
        line += line != NULL;
    }
    return buf;
}
