#include "kernels/humming/frame.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

enum { HEAD_BYTES = 16, WORKER_SOCKET = 3, JSON_MAX = 1 << 20 };

static bool say(char reason[HUM_REASON_BYTES], const char *sentence)
{
    (void)snprintf(reason, HUM_REASON_BYTES, "%s", sentence);
    return false;
}

/* ---- life ---- */

static void become_worker(const char *const argv[], int socket, int log)
{
    /* execvp writes to none of them. NOLINTNEXTLINE(performance-no-int-to-ptr) */
    char **arguments = (char **)(uintptr_t)argv;

#ifdef __linux__
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    if (dup2(log, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0 ||
        (socket != WORKER_SOCKET && dup2(socket, WORKER_SOCKET) < 0))
        _exit(127);
    for (int fd = WORKER_SOCKET + 1; fd < 256; fd++)
        (void)close(fd);
    (void)execvp(argv[0], arguments);
    _exit(127);
}

bool worker_start(struct worker *w, const char *const argv[], char reason[HUM_REASON_BYTES])
{
    int pair[2];

    *w = (struct worker){.log = tmpfile()};
    if (!w->log)
        return say(reason, "no temporary file for the output of a worker process");
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) {
        (void)fclose(w->log);
        return say(reason, "no socket for a worker process");
    }
    w->pid = fork();
    if (w->pid == 0)
        become_worker(argv, pair[1], fileno(w->log));
    (void)close(pair[1]);
    w->socket = pair[0];
    (void)fcntl(w->socket, F_SETFD, FD_CLOEXEC); /* no other child holds it open */
    (void)fcntl(fileno(w->log), F_SETFD, FD_CLOEXEC);
    if (w->pid > 0)
        return true;
    (void)close(pair[0]);
    (void)fclose(w->log);
    w->pid = 0;
    return say(reason, "no worker process could be started");
}

void worker_stop(struct worker *w)
{
    int status;

    if (w->pid <= 0)
        return;
    (void)close(w->socket); /* the end of its input tells the worker to leave */
    if (w->lost)
        (void)kill(w->pid, SIGKILL);
    while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
        ;
    (void)fclose(w->log);
    w->pid = 0;
}

/* ---- bytes ---- */

static bool send_all(int fd, const void *data, size_t bytes)
{
    const char *p = data;

    while (bytes > 0) {
        const ssize_t n = send(fd, p, bytes, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        p += n;
        bytes -= (size_t)n;
    }
    return true;
}

static bool receive_all(int fd, void *data, size_t bytes)
{
    char *p = data;

    while (bytes > 0) {
        const ssize_t n = recv(fd, p, bytes, 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        p += n;
        bytes -= (size_t)n;
    }
    return true;
}

static void put_number(uint8_t *p, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        p[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get_number(const uint8_t *p, int bytes)
{
    uint64_t value = 0;

    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)p[i] << (8 * i);
    return value;
}

static bool send_frame(int fd, const char *json, const struct frame_payload *p)
{
    uint8_t head[HEAD_BYTES] = {0};
    const size_t bytes = p ? p->out_bytes : 0;

    put_number(head, strlen(json), 4);
    put_number(head + 8, bytes, 8);
    return send_all(fd, head, sizeof head) && send_all(fd, json, strlen(json)) &&
           (bytes == 0 || send_all(fd, p->out, bytes));
}

/* The reply's code and JSON; a payload of another size than expected is a worker that cannot be
 * trusted. False: the connection is broken. */
static bool receive_frame(int fd, const struct frame_payload *p, uint32_t *code, cJSON **json)
{
    uint8_t head[HEAD_BYTES];
    const size_t room = p ? p->in_bytes : 0;
    uint64_t text, bytes;
    char *buffer;
    bool ok;

    if (!receive_all(fd, head, sizeof head))
        return false;
    text = get_number(head, 4);
    *code = (uint32_t)get_number(head + 4, 4);
    bytes = get_number(head + 8, 8);
    if (text > JSON_MAX || bytes != (*code == HUM_OK ? room : 0))
        return false;
    buffer = malloc((size_t)text + 1);
    ok = buffer && receive_all(fd, buffer, (size_t)text) &&
         (bytes == 0 || receive_all(fd, p->in, (size_t)bytes));
    *json = ok ? cJSON_ParseWithLength(buffer, (size_t)text) : NULL;
    free(buffer);
    return *json;
}

/* ---- calls ---- */

/* The last line that the worker printed; "" if there is none. */
static void last_line(FILE *log, char *line, int size)
{
    char text[HUM_REASON_BYTES];

    *line = '\0';
    rewind(log);
    while (fgets(text, sizeof text, log))
        if (*text != '\n')
            (void)snprintf(line, (size_t)size, "%.*s", (int)strcspn(text, "\n"), text);
}

static enum hum_code lost(struct worker *w, char reason[HUM_REASON_BYTES])
{
    char line[HUM_REASON_BYTES / 2];

    w->lost = true;
    last_line(w->log, line, sizeof line);
    (void)snprintf(reason, HUM_REASON_BYTES, "the worker process ended, or broke the protocol%s%s",
                   *line ? "; it printed last: " : "", line);
    return HUM_DEVICE_LOST;
}

static enum hum_code refused(uint32_t code, const cJSON *reply, char reason[HUM_REASON_BYTES])
{
    const cJSON *text = cJSON_GetObjectItemCaseSensitive(reply, "reason");

    (void)say(reason, cJSON_IsString(text) && *text->valuestring ? text->valuestring
                                                                 : "the worker gave no reason");
    for (char *p = reason; *p; p++)
        if (*p == '\n' || *p == '\r')
            *p = ' ';
    return code <= HUM_NO_MEMORY ? (enum hum_code)code : HUM_DEVICE_LOST;
}

enum hum_code worker_call(struct worker *w, struct cJSON *request, const struct frame_payload *p,
                          struct cJSON **reply, char reason[HUM_REASON_BYTES])
{
    char *text = request ? cJSON_PrintUnformatted(request) : NULL;
    cJSON *json = NULL;
    uint32_t code = HUM_OK;
    bool ok;

    cJSON_Delete(request);
    if (!text) {
        (void)say(reason, "no memory for a call of the worker");
        return HUM_NO_MEMORY;
    }
    ok = !w->lost && send_frame(w->socket, text, p) && receive_frame(w->socket, p, &code, &json);
    cJSON_free(text);
    if (!ok)
        return lost(w, reason);
    if (code == HUM_OK && reply) {
        *reply = json;
        return HUM_OK;
    }
    if (code != HUM_OK)
        code = refused(code, json, reason);
    w->lost =
        code == HUM_DEVICE_LOST; /* a process keeps the error for good: it is not asked again */
    cJSON_Delete(json);
    return (enum hum_code)code;
}
