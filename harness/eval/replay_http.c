#include "harness/eval/replay_http.h"

#include <arpa/inet.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BODY = 16 << 20, MAX_CONNECTIONS = 4096, IDLE_S = 600 };

/* One thread of libmicrohttpd serves all connections, and is the only user of the store. */
struct replay_http {
    struct MHD_Daemon *daemon;
    struct store *from;
    int port;
    struct replay_http_counts counts;
};

struct upload {
    char *body; /* NUL-terminated, owned */
    size_t bytes;
    bool refused; /* too long, or no memory */
};

struct reply_text {
    unsigned status;
    char *json; /* of cJSON, owned; NULL: no memory */
};

/* ---- replies ---- */

static struct reply_text error_reply(unsigned status, const char *sentence)
{
    cJSON *root = cJSON_CreateObject(), *error = cJSON_AddObjectToObject(root, "error");
    struct reply_text out = {.status = status};

    (void)cJSON_AddStringToObject(error, "message", sentence);
    (void)cJSON_AddNumberToObject(error, "code", status);
    out.json = cJSON_PrintUnformatted(root);
    cJSON_Delete(root);
    return out;
}

static struct reply_text health(struct replay_http *r, const struct upload *u)
{
    (void)r;
    (void)u;
    return (struct reply_text){MHD_HTTP_OK, cJSON_PrintUnformatted(NULL)};
}

static struct reply_text models(struct replay_http *r, const struct upload *u)
{
    const char *name = store_part(r->from, STORE_MODEL);
    cJSON *root = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(root, "data");
    cJSON *model = cJSON_CreateObject();
    struct reply_text out = {.status = MHD_HTTP_OK};

    (void)u;
    (void)cJSON_AddStringToObject(root, "object", "list");
    (void)cJSON_AddStringToObject(model, "id", name ? name : "unknown");
    (void)cJSON_AddStringToObject(model, "object", "model");
    (void)cJSON_AddItemToArray(list, model);
    out.json = cJSON_PrintUnformatted(root);
    cJSON_Delete(root);
    return out;
}

/* What is recorded for a prompt, in the form of its endpoint. */
struct recording {
    bool chat;
    cJSON *root; /* NULL: none was found */
};

static void add_usage(cJSON *root, const struct store_answer *a)
{
    cJSON *usage = cJSON_AddObjectToObject(root, "usage");

    if (a->prompt_tokens >= 0)
        (void)cJSON_AddNumberToObject(usage, "prompt_tokens", (double)a->prompt_tokens);
    if (a->completion_tokens >= 0)
        (void)cJSON_AddNumberToObject(usage, "completion_tokens", (double)a->completion_tokens);
}

static bool take(void *ctx, const struct store_answer *a)
{
    struct recording *rec = ctx;
    cJSON *choice, *holder;

    if (!a->response.at)
        return true;
    rec->root = cJSON_CreateObject();
    (void)cJSON_AddStringToObject(rec->root, "object",
                                  rec->chat ? "chat.completion" : "text_completion");
    choice = cJSON_CreateObject();
    (void)cJSON_AddItemToArray(cJSON_AddArrayToObject(rec->root, "choices"), choice);
    (void)cJSON_AddNumberToObject(choice, "index", 0);
    holder = rec->chat ? cJSON_AddObjectToObject(choice, "message") : choice;
    if (rec->chat)
        (void)cJSON_AddStringToObject(holder, "role", "assistant");
    (void)cJSON_AddStringToObject(holder, rec->chat ? "content" : "text", a->response.at);
    if (a->finish_reason[0])
        (void)cJSON_AddStringToObject(choice, "finish_reason", a->finish_reason);
    add_usage(rec->root, a);
    return false;
}

/* The text of the last message: a string, or the texts of a list of parts of which there is one. */
static const char *last_message(const cJSON *request)
{
    const cJSON *messages = cJSON_GetObjectItemCaseSensitive(request, "messages");
    const cJSON *last = cJSON_GetArrayItem(messages, cJSON_GetArraySize(messages) - 1);
    const cJSON *content = cJSON_GetObjectItemCaseSensitive(last, "content");

    if (cJSON_IsArray(content) && cJSON_GetArraySize(content) == 1)
        content = cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(content, 0), "text");
    return cJSON_GetStringValue(content);
}

static struct reply_text answer(struct replay_http *r, const char *prompt, bool chat)
{
    struct recording rec = {.chat = chat};
    struct reply_text out = {.status = MHD_HTTP_OK};
    struct errs errs = {0};
    char hex[SHA256_HEX], sentence[160];

    (void)sha256_hex(prompt, strlen(prompt), hex);
    if (store_find(r->from, hex, take, &rec, &errs)) {
        out = error_reply(MHD_HTTP_INTERNAL_SERVER_ERROR, "the recording cannot be read");
    } else if (!rec.root) {
        r->counts.unknown++;
        (void)snprintf(sentence, sizeof sentence,
                       "no answer is recorded to the prompt with SHA-256 %s", hex);
        out = error_reply(MHD_HTTP_NOT_FOUND, sentence);
    } else {
        r->counts.answered++;
        out.json = cJSON_PrintUnformatted(rec.root);
    }
    cJSON_Delete(rec.root);
    errs_free(&errs);
    return out;
}

static struct reply_text answer_body(struct replay_http *r, const struct upload *u, bool chat)
{
    cJSON *request = u->body ? cJSON_Parse(u->body) : NULL;
    const char *prompt =
        chat ? last_message(request)
             : cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(request, "prompt"));
    struct reply_text out = prompt
                                ? answer(r, prompt, chat)
                                : error_reply(MHD_HTTP_BAD_REQUEST,
                                              "the request has no prompt that is one text (tokens "
                                              "and lists of prompts are not replayed)");

    cJSON_Delete(request);
    return out;
}

static struct reply_text completions(struct replay_http *r, const struct upload *u)
{
    return answer_body(r, u, false);
}

static struct reply_text chat_completions(struct replay_http *r, const struct upload *u)
{
    return answer_body(r, u, true);
}

/* clang-format off */
static const struct {
    const char *method, *path;
    struct reply_text (*run)(struct replay_http *r, const struct upload *u);
} routes[] = {
    {"GET",  "/health",              health},
    {"GET",  "/v1/models",           models},
    {"POST", "/v1/completions",      completions},
    {"POST", "/v1/chat/completions", chat_completions},
};
/* clang-format on */
enum { ROUTES = sizeof routes / sizeof routes[0] };

static struct reply_text route(struct replay_http *r, const char *path, const char *method,
                               const struct upload *u)
{
    if (u->refused)
        return error_reply(MHD_HTTP_CONTENT_TOO_LARGE, "the request is too long");
    for (int i = 0; i < ROUTES; i++)
        if (!strcmp(routes[i].path, path) && !strcmp(routes[i].method, method))
            return routes[i].run(r, u);
    return error_reply(MHD_HTTP_NOT_FOUND, "there is no such endpoint");
}

/* ---- libmicrohttpd ---- */

static void add_bytes(struct upload *u, const char *data, size_t bytes)
{
    char *more;

    if (u->refused)
        return;
    more = bytes <= MAX_BODY - u->bytes ? realloc(u->body, u->bytes + bytes + 1) : NULL;
    if (!more) {
        u->refused = true;
        return;
    }
    memcpy(more + u->bytes, data, bytes);
    u->body = more;
    u->bytes += bytes;
    u->body[u->bytes] = '\0';
}

static enum MHD_Result send_reply(struct MHD_Connection *c, struct reply_text text)
{
    const char *json = text.json ? text.json : "";
    struct MHD_Response *response =
        MHD_create_response_from_buffer_with_free_callback(strlen(json), text.json, cJSON_free);
    enum MHD_Result rc;

    if (!response) {
        cJSON_free(text.json);
        return MHD_NO;
    }
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
    rc = MHD_queue_response(c, text.status, response);
    MHD_destroy_response(response);
    return rc;
}

/* Called with the head, with each piece of the body, and at its end. The signature is
 * libmicrohttpd's. NOLINTNEXTLINE(readability-function-size) */
static enum MHD_Result on_request(void *ctx, struct MHD_Connection *c, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *bytes, void **state)
{
    struct upload *u = *state;

    (void)version;
    if (!u) {
        *state = calloc(1, sizeof *u);
        return *state ? MHD_YES : MHD_NO;
    }
    if (*bytes) {
        add_bytes(u, data, *bytes);
        *bytes = 0;
        return MHD_YES;
    }
    return send_reply(c, route(ctx, url, method, u));
}

static void on_end(void *ctx, struct MHD_Connection *c, void **state,
                   enum MHD_RequestTerminationCode why)
{
    struct upload *u = *state;

    (void)ctx;
    (void)c;
    (void)why;
    if (u)
        free(u->body);
    free(u);
    *state = NULL;
}

static void start(struct replay_http *r, int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const union MHD_DaemonInfo *info;

    r->daemon = MHD_start_daemon(MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD, (uint16_t)port,
                                 NULL, NULL, on_request, r, MHD_OPTION_SOCK_ADDR,
                                 (struct sockaddr *)&at, MHD_OPTION_NOTIFY_COMPLETED, on_end, r,
                                 MHD_OPTION_CONNECTION_LIMIT, (unsigned)MAX_CONNECTIONS,
                                 MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S, MHD_OPTION_END);
    info = r->daemon ? MHD_get_daemon_info(r->daemon, MHD_DAEMON_INFO_BIND_PORT) : NULL;
    r->port = info ? info->port : 0;
}

enum err_code replay_http_open(struct store *from, int port, struct replay_http **out,
                               struct errs *errs)
{
    struct replay_http *r = calloc(1, sizeof *r);

    *out = NULL;
    if (!r)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for a server");
    r->from = from;
    errno = 0;
    start(r, port);
    if (!r->daemon) {
        free(r);
        return errs_add(errs, ERR_INFRA, NOWHERE, "cannot serve at port %d: %s", port,
                        errno ? strerror(errno) : "libmicrohttpd refuses");
    }
    *out = r;
    return ERR_NONE;
}

int replay_http_port(const struct replay_http *r)
{
    return r->port;
}

struct replay_http_counts replay_http_stop(struct replay_http *r)
{
    if (r->daemon)
        MHD_stop_daemon(r->daemon);
    r->daemon = NULL;
    return r->counts;
}

void replay_http_close(struct replay_http *r)
{
    if (r)
        (void)replay_http_stop(r);
    free(r);
}
