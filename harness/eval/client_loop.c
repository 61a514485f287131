#include "harness/eval/client_loop.h"

#include "harness/core/proc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENTS = 64, WATCHES_FIRST = 64 };

/* The entry of a file descriptor; NULL: no memory for it. */
static struct loop_watch *watch_of(struct client_loop *l, int fd)
{
    if (fd >= 0 && (size_t)fd >= l->watch_count) {
        size_t count = l->watch_count ? l->watch_count : WATCHES_FIRST;
        struct loop_watch *grown;

        while (count <= (size_t)fd)
            count *= 2;
        grown = realloc(l->watches, count * sizeof *grown);
        if (!grown)
            return NULL;
        memset(grown + l->watch_count, 0, (count - l->watch_count) * sizeof *grown);
        l->watches = grown;
        l->watch_count = count;
    }
    return fd >= 0 ? &l->watches[fd] : NULL;
}

static void tell_epoll(struct client_loop *l, int fd, struct loop_watch *w, unsigned char events)
{
    struct epoll_event e = {.data.fd = fd};
    int op = !events ? EPOLL_CTL_DEL : w->known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

    if (events == w->known)
        return;
    e.events = (events & CURL_POLL_IN ? (uint32_t)EPOLLIN : 0) |
               (events & CURL_POLL_OUT ? (uint32_t)EPOLLOUT : 0);
    if (epoll_ctl(l->epoll, op, fd, &e) && events)
        l->failed = true;
    w->known = events;
}

/* A connection that becomes idle stays in epoll as it is: mostly it is used again at once, and that
 * saves two system calls a request. It leaves when it does something while idle, or is closed. */
static int on_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *unused)
{
    struct loop_group *g = ctx;
    struct client_loop *l = g->loop;
    struct loop_watch *w = watch_of(l, fd);

    (void)easy;
    (void)unused;
    if (!w) {
        l->failed = true;
        return 0;
    }
    w->group = g;
    w->is_wanted = what != CURL_POLL_REMOVE;
    if (w->is_wanted)
        tell_epoll(l, fd, w, (unsigned char)(what & CURL_POLL_INOUT));
    else if (!w->is_ours)
        tell_epoll(l, fd, w, 0);
    return 0;
}

static int on_timer(CURLM *multi, long ms, void *ctx)
{
    struct loop_group *g = ctx;

    (void)multi;
    g->due_s = ms < 0 ? -1 : ms == 0 ? 0 : proc_now() + (double)ms * 1e-3;
    return 0;
}

static curl_socket_t open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *a)
{
    struct client_loop *l = ctx;
    int fd = socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
    struct loop_watch *w = watch_of(l, fd);

    (void)purpose;
    if (fd < 0)
        return CURL_SOCKET_BAD;
    if (!w) {
        (void)close(fd);
        return CURL_SOCKET_BAD;
    }
    *w = (struct loop_watch){.is_ours = true};
    l->has_opened = true;
    return fd;
}

static int close_socket(void *ctx, curl_socket_t fd)
{
    struct client_loop *l = ctx;

    if ((size_t)fd < l->watch_count)
        l->watches[fd] = (struct loop_watch){0}; /* closing it takes it out of epoll */
    return close(fd);
}

static bool group_open(struct loop_group *g, struct client_loop *l)
{
    *g = (struct loop_group){.loop = l, .multi = curl_multi_init(), .due_s = -1};
    return g->multi && !curl_multi_setopt(g->multi, CURLMOPT_SOCKETFUNCTION, on_socket) &&
           !curl_multi_setopt(g->multi, CURLMOPT_SOCKETDATA, (void *)g) &&
           !curl_multi_setopt(g->multi, CURLMOPT_TIMERFUNCTION, on_timer) &&
           !curl_multi_setopt(g->multi, CURLMOPT_TIMERDATA, (void *)g) &&
           !curl_multi_setopt(g->multi, CURLMOPT_MAXCONNECTS, (long)LOOP_GROUP) &&
           !curl_multi_setopt(g->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
}

enum err_code loop_open(struct client_loop *l, size_t slots, struct errs *errs)
{
    size_t count = (slots + LOOP_GROUP - 1) / LOOP_GROUP;

    *l = (struct client_loop){.epoll = epoll_create1(EPOLL_CLOEXEC)};
    if (l->epoll < 0)
        return errs_add(errs, ERR_INFRA, NOWHERE, "epoll: %s", strerror(errno));
    l->groups = calloc(count, sizeof *l->groups);
    if (!l->groups)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for %zu connections", slots);
    for (; l->group_count < count; l->group_count++)
        if (!group_open(&l->groups[l->group_count], l)) {
            (void)curl_multi_cleanup(l->groups[l->group_count].multi);
            return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for %zu connections", slots);
        }
    return ERR_NONE;
}

void loop_close(struct client_loop *l)
{
    for (size_t i = 0; i < l->group_count; i++)
        (void)curl_multi_cleanup(l->groups[i].multi);
    free(l->groups);
    free(l->watches);
    if (l->epoll >= 0)
        (void)close(l->epoll);
    *l = (struct client_loop){.epoll = -1};
}

bool loop_prepare(struct client_loop *l, CURL *easy)
{
    return !curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket) &&
           !curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, (void *)l) &&
           !curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, close_socket) &&
           !curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, (void *)l);
}

static void touch(struct client_loop *l, struct loop_group *g)
{
    size_t i = (size_t)(g - l->groups);

    g->is_touched = true;
    if (i < l->touched_from)
        l->touched_from = i;
}

bool loop_add(struct client_loop *l, size_t slot, CURL *easy)
{
    return !curl_multi_add_handle(l->groups[slot / LOOP_GROUP].multi, easy);
}

void loop_remove(struct client_loop *l, size_t slot, CURL *easy)
{
    (void)curl_multi_remove_handle(l->groups[slot / LOOP_GROUP].multi, easy);
}

static void move_on(struct client_loop *l, struct loop_group *g, int fd, int events)
{
    int running;

    if (curl_multi_socket_action(g->multi, fd, events, &running))
        l->failed = true;
    touch(l, g);
}

static void on_event(struct client_loop *l, const struct epoll_event *e)
{
    int fd = e->data.fd;
    struct loop_watch *w = &l->watches[fd];

    if (!w->known)
        return; /* closed while an earlier event of this round was handled */
    if (!w->is_wanted) {
        tell_epoll(l, fd, w, 0);
        return;
    }
    move_on(l, w->group, fd,
            (e->events & (uint32_t)EPOLLIN ? CURL_CSELECT_IN : 0) |
                (e->events & (uint32_t)EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                (e->events & (uint32_t)(EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0));
}

/* Milliseconds to wait, rounded up: a timer that is woken early is only woken again. */
static int wait_ms(const struct client_loop *l, double seconds)
{
    double now = proc_now();

    for (size_t i = 0; i < l->group_count; i++)
        if (l->groups[i].due_s >= 0 && l->groups[i].due_s - now < seconds)
            seconds = l->groups[i].due_s - now;
    return seconds <= 0 ? 0 : (int)(seconds * 1e3) + 1;
}

void loop_wait(struct client_loop *l, double seconds)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(l->epoll, events, EVENTS, wait_ms(l, seconds));
    double now;

    if (n < 0 && errno != EINTR)
        l->failed = true;
    for (int i = 0; i < n; i++)
        on_event(l, &events[i]);
    now = proc_now();
    for (size_t i = 0; i < l->group_count; i++)
        if (l->groups[i].due_s >= 0 && l->groups[i].due_s <= now) {
            l->groups[i].due_s = -1;
            move_on(l, &l->groups[i], CURL_SOCKET_TIMEOUT, 0);
        }
}

CURL *loop_ended(struct client_loop *l, CURLcode *code)
{
    for (; l->touched_from < l->group_count; l->touched_from++) {
        struct loop_group *g = &l->groups[l->touched_from];
        CURLMsg *m;
        int left;

        if (!g->is_touched)
            continue;
        m = curl_multi_info_read(g->multi, &left);
        if (m) {
            *code = m->data.result;
            return m->easy_handle;
        }
        g->is_touched = false;
    }
    return NULL;
}
