#include "harness/eval/gpu_memory.h"

#include "harness/core/proc.h"
#include "harness/eval/environment.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_TEXT = 4096, OUTPUT = 4096, AGAIN_MS = 500 };

static const double answer_s = 5.0;

/* A number of at most 9 digits and what follows it; NULL: none is there. */
static const char *number_at(const char *text, int64_t *out)
{
    char *end;

    *out = strtol(text, &end, 10);
    return end > text && *out >= 0 && *out < 1000000000 ? end : NULL;
}

void gpu_memory_parse(const char *text, struct gpu_memory *out)
{
    *out = (struct gpu_memory){0};
    while (*text && out->count < GPU_MEMORY_GPUS) {
        int64_t index, used;
        const char *at = number_at(text, &index);

        at = at && *at == ',' ? number_at(at + 1, &used) : NULL;
        if (at && (*at == '\n' || *at == '\r' || !*at)) {
            out->gpu[out->count].index = index;
            out->gpu[out->count++].used_mib = used;
        }
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
}

/* All that a child writes until it closes its output; false: it did not in time. */
static bool read_all(const struct proc *p, double limit, char text[OUTPUT])
{
    struct pollfd out = {.fd = p->out, .events = POLLIN};
    size_t bytes = 0;
    ssize_t n = -1;

    while (n != 0 && bytes + 1 < OUTPUT && proc_now() < limit) {
        if (poll(&out, 1, AGAIN_MS) <= 0)
            continue;
        n = read(p->out, text + bytes, OUTPUT - 1 - bytes);
        if (n > 0)
            bytes += (size_t)n;
    }
    text[bytes] = '\0';
    return n == 0;
}

void gpu_memory_read(struct gpu_memory *out)
{
    char words[3][64] = {"nvidia-smi", "--query-gpu=index,memory.used",
                         "--format=csv,noheader,nounits"};
    char *argv[] = {words[0], words[1], words[2], NULL};
    char path[PATH_TEXT], text[OUTPUT];
    struct proc_options how = {.path = path, .argv = argv, .pipes = PROC_OUT | PROC_ERR};
    double limit = proc_now() + answer_s;
    struct errs unused = {0};
    struct proc p;
    bool whole;

    *out = (struct gpu_memory){0};
    if (!environment_search(words[0], path, sizeof path))
        return;
    if (!proc_spawn(&p, &how, &unused)) {
        whole = read_all(&p, limit, text) && proc_wait(&p, limit - proc_now());
        if (proc_kill(&p) == 0 && whole)
            gpu_memory_parse(text, out);
    }
    errs_free(&unused);
}

int64_t gpu_memory_over(const struct gpu_memory *before, const struct gpu_memory *now,
                        int64_t *index)
{
    int64_t most = GPU_MEMORY_MARGIN_MIB;

    *index = -1;
    for (size_t i = 0; i < before->count; i++)
        for (size_t k = 0; k < now->count; k++) {
            int64_t more = now->gpu[k].used_mib - before->gpu[i].used_mib;

            if (now->gpu[k].index == before->gpu[i].index && more > most) {
                most = more;
                *index = before->gpu[i].index;
            }
        }
    return *index < 0 ? 0 : most;
}

const char *gpu_memory_wait(const struct gpu_memory *before, double seconds,
                            const volatile sig_atomic_t *interrupted, char buf[GPU_MEMORY_TEXT])
{
    double started = proc_now();
    struct gpu_memory now;
    int64_t index, over;

    buf[0] = '\0';
    if (!before->count)
        return buf;
    gpu_memory_read(&now);
    while (gpu_memory_over(before, &now, &index) && proc_now() - started < seconds &&
           !*interrupted) {
        (void)poll(NULL, 0, AGAIN_MS);
        gpu_memory_read(&now);
    }
    over = gpu_memory_over(before, &now, &index);
    if (!now.count)
        (void)snprintf(buf, GPU_MEMORY_TEXT,
                       "nvidia-smi does not answer any more: whether the server's memory of the "
                       "GPU is free again is not known");
    else if (over)
        (void)snprintf(buf, GPU_MEMORY_TEXT,
                       "GPU %" PRId64 " holds %" PRId64 " MiB more than before the server was "
                       "started, %.0f s after its end; the next one may find too little",
                       index, over, proc_now() - started);
    return buf;
}
