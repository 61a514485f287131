#include "harness/test/fake_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define COUNT(a) (int)(sizeof(a) / sizeof(a)[0])

static void note_pid(const char *path)
{
    FILE *f = fopen(path, "a");

    if (!f)
        _exit(9);
    (void)fprintf(f, "%ld\n", (long)getpid());
    (void)fclose(f);
}

void fake_sleep_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};

    while (nanosleep(&t, &t) && errno == EINTR)
        continue;
}

static const char health[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
static const char loading[] =
    "HTTP/1.1 503 Loading\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
static const char models[] = "HTTP/1.1 200 OK\r\nContent-Length: 44\r\nConnection: close\r\n\r\n"
                             "{\"data\":[{\"id\":\"short\",\"root\":\"org/model\"}]}";
static const char version[] = "HTTP/1.1 200 OK\r\nContent-Length: 19\r\nConnection: close\r\n\r\n"
                              "{\"version\":\"0.9.9\"}";
static const char completion[] =
    "HTTP/1.1 200 OK\r\nContent-Length: 27\r\nConnection: close\r\n\r\n"
    "{\"choices\":[{\"text\":\" 2\"}]}";
static const char not_found[] = "HTTP/1.1 404 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/* What is sent for a path, by how it begins. */
struct page {
    const char *request, *reply;
    size_t bytes;
};
#define PAGE(request, reply)                  \
    {                                         \
        (request), (reply), sizeof(reply) - 1 \
    }

static const struct page good[] = {PAGE("GET /health", health), PAGE("GET /v1/models", models),
                                   PAGE("GET /version", version),
                                   PAGE("POST /v1/completions", completion)};
static const struct page lying[] = {PAGE("GET /health", health), PAGE("GET /v1/models", models)};
static const struct page never[] = {PAGE("GET /health", loading), PAGE("GET /v1/models", models)};

static int listen_at(int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;

    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, (const struct sockaddr *)&at, sizeof at) || listen(fd, 16))
        _exit(8);
    return fd;
}

static void serve(int port, const struct page *pages, int count)
{
    int fd = listen_at(port);

    for (;;) {
        char request[4096];
        int client = accept(fd, NULL, NULL);
        ssize_t n = client >= 0 ? recv(client, request, sizeof request - 1, 0) : 0;
        const char *reply = not_found;
        size_t bytes = sizeof not_found - 1;

        request[n > 0 ? n : 0] = '\0';
        for (int i = 0; i < count; i++)
            if (!strncmp(request, pages[i].request, strlen(pages[i].request))) {
                reply = pages[i].reply;
                bytes = pages[i].bytes;
            }
        (void)!write(client, reply, bytes);
        (void)shutdown(client, SHUT_WR);
        while (recv(client, request, sizeof request, 0) > 0)
            continue;
        (void)close(client);
    }
}

/* A child in a session of its own, which ignores SIGTERM, and a grandchild of it. */
static void fork_tree(const char *pids)
{
    pid_t pid = fork();

    if (pid)
        return;
    (void)setsid();
    (void)signal(SIGTERM, SIG_IGN);
    pid = fork();
    note_pid(pids);
    if (pid)
        _exit(0); /* its child is an orphan at once */
    for (;;)
        fake_sleep_ms(1000);
}

static void fork_plain(const char *pids)
{
    if (fork())
        return;
    note_pid(pids);
    for (;;)
        fake_sleep_ms(1000);
}

static void fake_good(int port, const char *pids)
{
    (void)pids;
    serve(port, good, COUNT(good));
}

static void fake_slow(int port, const char *pids)
{
    (void)pids;
    fake_sleep_ms(600);
    serve(port, good, COUNT(good));
}

static void fake_never(int port, const char *pids)
{
    (void)pids;
    serve(port, never, COUNT(never));
}

static void fake_lying(int port, const char *pids)
{
    (void)pids;
    serve(port, lying, COUNT(lying));
}

static void fake_silent(int port, const char *pids)
{
    (void)port;
    (void)pids;
    for (;;)
        fake_sleep_ms(1000);
}

static void fake_dies(int port, const char *pids)
{
    (void)port;
    (void)pids;
    for (int i = 0; i < 100; i++)
        (void)printf("line %d\n", i);
    (void)printf("boom\n");
    (void)fflush(stdout);
    exit(3);
}

static void fake_ends(int port, const char *pids)
{
    (void)port;
    (void)pids;
    exit(0);
}

static void fake_crashes(int port, const char *pids)
{
    (void)port;
    (void)pids;
    (void)signal(SIGSEGV, SIG_DFL);
    (void)raise(SIGSEGV);
}

static void fake_stubborn(int port, const char *pids)
{
    (void)pids;
    (void)signal(SIGTERM, SIG_IGN);
    serve(port, good, COUNT(good));
}

static void fake_parent(int port, const char *pids)
{
    fork_tree(pids);
    fork_plain(pids);
    serve(port, good, COUNT(good));
}

static void fake_orphans(int port, const char *pids)
{
    (void)port;
    fork_tree(pids);
    fork_plain(pids);
    fake_sleep_ms(200);
    exit(5);
}

/* clang-format off */
static const struct {
    const char *name;
    void (*run)(int port, const char *pids);
} fakes[] = {
    {"good",     fake_good},     {"slow",    fake_slow},    {"never",    fake_never},
    {"lying",    fake_lying},    {"silent",  fake_silent},  {"dies",     fake_dies},
    {"ends",     fake_ends},     {"crashes", fake_crashes}, {"stubborn", fake_stubborn},
    {"parent",   fake_parent},   {"orphans", fake_orphans},
};
/* clang-format on */

int fake_server(const char *kind, const char *port, const char *pids)
{
    note_pid(pids);
    for (int i = 0; i < COUNT(fakes); i++)
        if (!strcmp(fakes[i].name, kind))
            fakes[i].run((int)strtol(port, NULL, 10), pids);
    return 7;
}
