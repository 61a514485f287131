/* client_loop.h - many transfers of libcurl driven by one epoll; only for the client.
 *
 * libcurl looks for an idle connection by walking over all that it has to the same host. So the
 * transfers are dealt to groups of at most LOOP_GROUP, each with connections of its own: a walk
 * then has a bounded length, whatever the number of connections.
 */
#ifndef HARNESS_EVAL_CLIENT_LOOP_H
#define HARNESS_EVAL_CLIENT_LOOP_H

#include "harness/core/err.h"

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>

enum { LOOP_GROUP = 16 };

struct client_loop;

struct loop_group {
    struct client_loop *loop;
    CURLM *multi;
    double due_s;    /* when libcurl wants to be called, on proc_now's clock; negative: not */
    bool is_touched; /* transfers may have ended since loop_ended last looked */
};

/* What epoll knows of a file descriptor. */
struct loop_watch {
    struct loop_group *group;
    unsigned char known; /* CURL_POLL_IN | CURL_POLL_OUT that epoll waits for; 0: not in epoll */
    bool is_wanted;      /* libcurl still asks for it */
    bool is_ours;        /* opened for a transfer, closed by loop_close_socket */
};

struct client_loop {
    int epoll;
    struct loop_group *groups; /* owned */
    size_t group_count, touched_from;
    struct loop_watch *watches; /* owned; by file descriptor */
    size_t watch_count;
    bool has_opened; /* a socket: some name has been looked up */
    bool failed;     /* an epoll or libcurl call was refused: the run cannot go on */
};

/* For transfers numbered 0 to slots - 1. ERR_NOMEM, ERR_INFRA. Close in either case, after all
 * transfers were removed. */
MUST_USE enum err_code loop_open(struct client_loop *l, size_t slots, struct errs *errs);
void loop_close(struct client_loop *l);

/* Let sockets of this handle be watched; once a handle. */
bool loop_prepare(struct client_loop *l, CURL *easy);

bool loop_add(struct client_loop *l, size_t slot, CURL *easy);
void loop_remove(struct client_loop *l, size_t slot, CURL *easy);

/* Wait at most `seconds`, or until a signal, and move the transfers on. */
void loop_wait(struct client_loop *l, double seconds);

/* A transfer that has ended, and how; NULL: none is left. It must be removed. */
CURL *loop_ended(struct client_loop *l, CURLcode *code);

#endif
