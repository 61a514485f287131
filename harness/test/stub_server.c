#include "harness/test/stub_server.h"

#include "harness/core/proc.h"
#include "harness/test/stub_server_parts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENTS = 128, READ_BYTES = 65536, BACKLOG = 4096, STOP_MS = 5 };

const struct stub_options stub_defaults = {.tokens = 100,
                                           .chaos_permille = 1000,
                                           .max_chaos = 2,
                                           .retry_after_s = 1,
                                           .refuse_ms = 30,
                                           .trickle_ms = 2,
                                           .huge_bytes = 8 << 20};

/* Where a connection waits. The delay of each list is the same for all in it, so the first is due
 * first. */
enum list { LIST_REST, LIST_LATENCY, LIST_TRICKLE, LIST_COUNT };

struct conn {
    struct conn *next, *prev;
    double due_s;
    int fd;
    enum { READING, ANSWERING, STALLED } state;
    bool is_completion, wants_out;
    struct stub_text in;
    struct stub_reply reply;
    size_t sent;
};

/* What is known of a prompt. */
struct prompt {
    uint64_t hash; /* 0: free */
    int times;
    double not_before_s; /* by Retry-After */
};

struct stub_server {
    struct stub_options o;
    struct stub_answers *answers;
    int epoll, listener, port;
    double started_s;              /* on proc_now's clock */
    double listen_s;               /* the listener opens again; listener < 0 */
    struct conn lists[LIST_COUNT]; /* heads of rings */
    struct prompt *prompts;
    size_t prompt_count, prompt_capacity;
    struct stub_stats stats;
    char spaces[65536];
};

/* ---- rings ---- */

static void unlink_conn(struct conn *c)
{
    c->prev->next = c->next;
    c->next->prev = c->prev;
}

static void put_last(struct stub_server *s, struct conn *c, enum list which, double due_s)
{
    struct conn *head = &s->lists[which];

    c->due_s = due_s;
    c->next = head;
    c->prev = head->prev;
    head->prev->next = c;
    head->prev = c;
}

static void move_to(struct stub_server *s, struct conn *c, enum list which, double due_s)
{
    unlink_conn(c);
    put_last(s, c, which, due_s);
}

/* ---- prompts ---- */

static struct prompt *prompt_slot(struct prompt *table, size_t capacity, uint64_t hash)
{
    size_t i = (size_t)hash & (capacity - 1);

    while (table[i].hash && table[i].hash != hash)
        i = (i + 1) & (capacity - 1);
    return &table[i];
}

static struct prompt *prompt_of(struct stub_server *s, uint64_t hash)
{
    struct prompt *p;

    hash += !hash;
    if (2 * (s->prompt_count + 1) > s->prompt_capacity) {
        size_t capacity = s->prompt_capacity ? 2 * s->prompt_capacity : 4096;
        struct prompt *more = stub_grow(NULL, capacity * sizeof *more);

        memset(more, 0, capacity * sizeof *more);
        for (size_t i = 0; i < s->prompt_capacity; i++)
            if (s->prompts[i].hash)
                *prompt_slot(more, capacity, s->prompts[i].hash) = s->prompts[i];
        free(s->prompts);
        s->prompts = more;
        s->prompt_capacity = capacity;
    }
    p = prompt_slot(s->prompts, s->prompt_capacity, hash);
    s->prompt_count += !p->hash;
    p->hash = hash;
    return p;
}

/* ---- sockets ---- */

static bool set_nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    return flags >= 0 && !fcntl(fd, F_SETFL, flags | O_NONBLOCK) && !fcntl(fd, F_SETFD, FD_CLOEXEC);
}

static bool watch(const struct stub_server *s, int op, int fd, uint32_t events, void *p)
{
    struct epoll_event e = {.events = events, .data.ptr = p};

    return !epoll_ctl(s->epoll, op, fd, &e);
}

static bool listen_again(struct stub_server *s)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)s->port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) ||
        bind(fd, (struct sockaddr *)&a, sizeof a) || listen(fd, BACKLOG) || !set_nonblocking(fd) ||
        getsockname(fd, (struct sockaddr *)&a, &size) ||
        !watch(s, EPOLL_CTL_ADD, fd, EPOLLIN, NULL)) {
        if (fd >= 0)
            (void)close(fd);
        return false;
    }
    s->port = ntohs(a.sin_port);
    s->listener = fd;
    return true;
}

static void conn_close(struct stub_server *s, struct conn *c, bool reset)
{
    struct linger now = {.l_onoff = 1};

    if (reset)
        (void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    (void)close(c->fd);
    if (c->state != READING && c->is_completion)
        s->stats.in_flight--;
    s->stats.connections_now--;
    unlink_conn(c);
    text_free(&c->in);
    text_free(&c->reply.text);
    free(c);
}

static void accept_all(struct stub_server *s)
{
    int fd, on = 1;

    while ((fd = accept(s->listener, NULL, NULL)) >= 0) {
        struct conn *c = memset(stub_grow(NULL, sizeof *c), 0, sizeof *c);

        c->fd = fd;
        put_last(s, c, LIST_REST, 0);
        s->stats.connections++;
        if (++s->stats.connections_now > s->stats.connections_most)
            s->stats.connections_most = s->stats.connections_now;
        if (!set_nonblocking(fd) || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) ||
            !watch(s, EPOLL_CTL_ADD, fd, EPOLLIN, c))
            conn_close(s, c, true);
    }
}

/* ---- sending ---- */

static void next_request(struct stub_server *s, struct conn *c);

/* What comes at offset `at` of a reply with spaces in it. */
static const char *part(const struct stub_server *s, const struct stub_reply *r, size_t at,
                        size_t *n)
{
    if (at < r->fill_at || !r->fill) {
        *n = (r->fill ? r->fill_at : r->text.bytes) - at;
        return r->text.at + at;
    }
    at -= r->fill_at;
    if (at < r->fill) {
        *n = r->fill - at < sizeof s->spaces ? r->fill - at : sizeof s->spaces;
        return s->spaces;
    }
    at -= r->fill;
    *n = r->text.bytes - r->fill_at - at;
    return r->text.at + r->fill_at + at;
}

static void sent_all(struct stub_server *s, struct conn *c)
{
    if (c->reply.then == STUB_THEN_STALL) {
        c->state = STALLED;
        return;
    }
    if (c->reply.then != STUB_KEEP) {
        conn_close(s, c, c->reply.then == STUB_THEN_RESET);
        return;
    }
    s->stats.in_flight -= c->is_completion;
    c->state = READING;
    if (c->in.bytes)
        next_request(s, c);
}

static void want_out(struct stub_server *s, struct conn *c, bool wanted)
{
    if (c->wants_out != wanted)
        (void)watch(s, EPOLL_CTL_MOD, c->fd, wanted ? EPOLLIN | EPOLLOUT : EPOLLIN, c);
    c->wants_out = wanted;
}

static void send_more(struct stub_server *s, struct conn *c)
{
    size_t all = c->reply.text.bytes + c->reply.fill, until = all;

    if (c->reply.piece && c->sent + c->reply.piece < all)
        until = c->sent + c->reply.piece;
    while (c->sent < until) {
        size_t n;
        const char *p = part(s, &c->reply, c->sent, &n);
        ssize_t done = send(c->fd, p, n < until - c->sent ? n : until - c->sent, MSG_NOSIGNAL);

        if (done < 0 && errno != EAGAIN) {
            conn_close(s, c, false);
            return;
        }
        if (done < 0) {
            want_out(s, c, true);
            return;
        }
        c->sent += (size_t)done;
    }
    want_out(s, c, false);
    if (until < all)
        move_to(s, c, LIST_TRICKLE, proc_now() + s->o.trickle_ms * 1e-3);
    else
        sent_all(s, c);
}

static void begin_answer(struct stub_server *s, struct conn *c)
{
    move_to(s, c, LIST_REST, 0);
    if (c->reply.refuse && s->listener >= 0) {
        (void)close(s->listener);
        s->listener = -1;
        s->listen_s = proc_now() + s->o.refuse_ms * 1e-3;
    }
    send_more(s, c);
}

/* ---- requests ---- */

static void reply_completion(struct stub_server *s, struct conn *c, const char *text, bool is_chat)
{
    struct prompt *p = prompt_of(s, stub_hash(text, strlen(text)));
    enum stub_chaos chaos = stub_chaos_pick(&s->o, p->hash, p->times++);
    struct stub_text answer = {0};
    double now = proc_now();

    if (p->not_before_s - now > s->stats.retry_early_s)
        s->stats.retry_early_s = p->not_before_s - now;
    s->stats.chaos[chaos]++;
    stub_answer(&answer, &s->o, s->answers, text);
    stub_reply_completion(&c->reply, &s->o, chaos, is_chat, &answer);
    text_free(&answer);
    p->not_before_s = c->reply.retry_in_s > 0 ? now + c->reply.retry_in_s : 0;
}

static void reply_other(const struct stub_server *s, struct stub_reply *r, const char *path)
{
    if (!strcmp(path, "/health"))
        stub_reply_status(r, 200, "text/plain", "");
    else if (!strcmp(path, "/v1/models"))
        stub_reply_status(r, 200, "application/json",
                          "{\"object\":\"list\",\"data\":[{\"id\":\"stub\",\"object\":\"model\","
                          "\"max_model_len\":8192}]}");
    else if (!strcmp(path, "/metrics"))
        stub_reply_metrics(r, &s->o, &s->stats, s->started_s);
    else
        stub_reply_status(r, 404, "application/json", "{\"error\":{\"message\":\"no such path\"}}");
}

static void make_reply(struct stub_server *s, struct conn *c, const struct stub_request *q)
{
    bool is_chat = !strcmp(q->path, "/v1/chat/completions");
    char *text = NULL;

    c->reply = (struct stub_reply){.text = c->reply.text};
    c->reply.text.bytes = 0;
    c->sent = 0;
    c->is_completion = q->is_post && (is_chat || !strcmp(q->path, "/v1/completions"));
    s->stats.keyed += q->has_key;
    if (!c->is_completion) {
        s->stats.others++;
        reply_other(s, &c->reply, q->path);
        return;
    }
    s->stats.requests++;
    if (++s->stats.in_flight > s->stats.in_flight_most)
        s->stats.in_flight_most = s->stats.in_flight;
    text = stub_prompt(q->body, q->body_bytes, is_chat);
    if (text)
        reply_completion(s, c, text, is_chat);
    else
        stub_reply_status(&c->reply, 400, "application/json",
                          "{\"error\":{\"message\":\"no prompt\"}}");
    free(text);
}

static void next_request(struct stub_server *s, struct conn *c)
{
    struct stub_request q;
    long n = stub_parse(c->in.at, c->in.bytes, &q);

    if (n < 0) {
        conn_close(s, c, true);
        return;
    }
    if (n == 0)
        return;
    c->state = ANSWERING;
    make_reply(s, c, &q);
    c->in.bytes -= (size_t)n;
    memmove(c->in.at, c->in.at + n, c->in.bytes);
    if (c->is_completion && s->o.latency_ms > 0)
        move_to(s, c, LIST_LATENCY, proc_now() + s->o.latency_ms * 1e-3);
    else
        begin_answer(s, c);
}

static void on_readable(struct stub_server *s, struct conn *c)
{
    char buf[READ_BYTES];
    ssize_t n = recv(c->fd, buf, sizeof buf, 0);

    if (n == 0 || (n < 0 && errno != EAGAIN)) {
        conn_close(s, c, false);
        return;
    }
    if (n < 0)
        return;
    text_add(&c->in, buf, (size_t)n);
    if (c->state == READING)
        next_request(s, c);
}

/* ---- the loop ---- */

static int wait_ms(const struct stub_server *s)
{
    double now = proc_now(), least = STOP_MS * 1e-3;

    for (int i = LIST_LATENCY; i < LIST_COUNT; i++) {
        const struct conn *head = &s->lists[i];

        if (head->next != head && head->next->due_s - now < least)
            least = head->next->due_s - now;
    }
    return least <= 0 ? 0 : (int)(least * 1e3) + 1;
}

static void on_time(struct stub_server *s)
{
    double now = proc_now();

    for (int i = LIST_LATENCY; i < LIST_COUNT; i++) {
        struct conn *head = &s->lists[i];

        while (head->next != head && head->next->due_s <= now) {
            struct conn *c = head->next;

            if (i == LIST_LATENCY) {
                begin_answer(s, c);
            } else {
                move_to(s, c, LIST_REST, 0);
                send_more(s, c);
            }
        }
    }
    if (s->listener < 0 && now >= s->listen_s && !listen_again(s))
        s->listen_s = now + STOP_MS * 1e-3;
}

void stub_run(struct stub_server *s, const volatile sig_atomic_t *stop)
{
    while (!*stop) {
        struct epoll_event events[EVENTS];
        int n = epoll_wait(s->epoll, events, EVENTS, wait_ms(s));

        for (int i = 0; i < n; i++) {
            struct conn *c = events[i].data.ptr;

            if (!c)
                accept_all(s);
            else if (events[i].events & EPOLLOUT)
                send_more(s, c);
            else
                on_readable(s, c);
        }
        on_time(s);
    }
}

struct stub_server *stub_open(const struct stub_options *o, char *why, size_t size)
{
    struct stub_server *s = memset(stub_grow(NULL, sizeof *s), 0, sizeof *s);

    s->o = *o;
    s->port = o->port;
    s->started_s = proc_now();
    s->listener = -1;
    memset(s->spaces, ' ', sizeof s->spaces);
    for (int i = 0; i < LIST_COUNT; i++)
        s->lists[i].next = s->lists[i].prev = &s->lists[i];
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (o->answers) {
        s->answers = stub_answers_load(o->answers, why, size);
        if (!s->answers) {
            stub_close(s);
            return NULL;
        }
    }
    if (s->epoll < 0 || !listen_again(s)) {
        (void)snprintf(why, size, "port %d: %s", o->port, strerror(errno));
        stub_close(s);
        return NULL;
    }
    return s;
}

int stub_port(const struct stub_server *s)
{
    return s->port;
}

const struct stub_stats *stub_stats(const struct stub_server *s)
{
    return &s->stats;
}

void stub_close(struct stub_server *s)
{
    for (int i = 0; i < LIST_COUNT; i++)
        while (s->lists[i].next != &s->lists[i])
            conn_close(s, s->lists[i].next, false);
    if (s->listener >= 0)
        (void)close(s->listener);
    if (s->epoll >= 0)
        (void)close(s->epoll);
    stub_answers_free(s->answers);
    free(s->prompts);
    free(s);
}
