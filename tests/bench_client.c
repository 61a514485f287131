/* bench_client.c - one run of the eval client against a server, measured: `ci/bench-client`.
 *
 * bench_client URL CONCURRENCY FILE TIMES: each line of FILE is the number that the right answer
 * ends with, a tab, and the body of a request; all are sent TIMES over, in one run. Each reply is
 * parsed and its answer compared. Prints one line; exit code 1 if an answer was lost, doubled or
 * wrong.
 */
#include "harness/eval/client.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

struct job {
    char *body;
    unsigned long long expected;
    size_t right; /* how often its right answer came */
};

struct bench {
    struct job *jobs;
    size_t count, capacity, times, done;
    struct client_stats last;
};

static const char *give_body(void *ctx, size_t index, size_t *bytes)
{
    const struct bench *b = ctx;

    *bytes = strlen(b->jobs[index % b->count].body);
    return b->jobs[index % b->count].body;
}

static enum err_code take(void *ctx, const struct client_reply *r, struct errs *errs)
{
    struct bench *b = ctx;
    struct job *j = &b->jobs[r->index % b->count];
    cJSON *doc = r->outcome == CLIENT_OK ? cJSON_ParseWithLength(r->body, r->bytes) : NULL;
    const cJSON *text = cJSON_GetObjectItemCaseSensitive(
        cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(doc, "choices"), 0), "text");
    const char *mark = cJSON_IsString(text) ? strstr(text->valuestring, "####") : NULL;

    (void)errs;
    b->done++;
    j->right += mark && strtoull(mark + 4, NULL, 10) == j->expected;
    cJSON_Delete(doc);
    return ERR_NONE;
}

static void note(void *ctx, const struct client_stats *s)
{
    struct bench *b = ctx;

    b->last = *s;
}

static void need(const void *p, const char *what)
{
    if (p)
        return;
    (void)fprintf(stderr, "bench_client: %s\n", what);
    exit(3);
}

static void load(struct bench *b, const char *path)
{
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t size = 0;
    ssize_t n;

    need(f, "the file of requests cannot be read");
    while ((n = getline(&line, &size, f)) > 0) {
        struct job j = {0};

        if (b->count == b->capacity) {
            b->capacity = b->capacity ? 2 * b->capacity : 1024;
            b->jobs = realloc(b->jobs, b->capacity * sizeof *b->jobs);
            need(b->jobs, "out of memory");
        }
        j.expected = strtoull(line, &j.body, 10);
        j.body++;
        line[n - 1] = '\0';
        b->jobs[b->count++] = j;
        line = NULL;
        size = 0;
    }
    free(line);
    (void)fclose(f);
}

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

static double cpu_s(struct rusage *u)
{
    (void)getrusage(RUSAGE_SELF, u);
    return seconds(u->ru_utime) + seconds(u->ru_stime);
}

static size_t print(const struct bench *b, double cpu, const struct rusage *u)
{
    size_t all = b->count * b->times, wrong = b->done != all;
    double n = (double)all;

    for (size_t i = 0; i < b->count; i++)
        wrong += b->jobs[i].right != b->times;
    (void)printf("humcheck %.0f requests/s, %.1f CPU us/request, peak %.0f MB, %zu connections, "
                 "%zu wrong\n",
                 n / b->last.elapsed_s, cpu / n * 1e6, (double)u->ru_maxrss / 1024,
                 b->last.connections, wrong);
    return wrong;
}

int main(int argc, char **argv)
{
    struct bench b = {0};
    struct client_options o = {.timeout_s = 600,
                               .connect_timeout_s = 10,
                               .max_attempts = 1,
                               .backoff_base_s = 0.5,
                               .backoff_cap_s = 30,
                               .max_body_bytes = 1 << 20};
    struct client_jobs jobs = {.body = give_body, .done = take, .tick = note, .ctx = &b};
    struct errs errs = {0};
    struct rusage u;
    double before;

    if (argc != 5) {
        (void)fputs("usage: bench_client URL CONCURRENCY FILE TIMES\n", stderr);
        return 2;
    }
    load(&b, argv[3]);
    o.url = argv[1];
    o.concurrency = (int)strtol(argv[2], NULL, 10);
    b.times = strtoul(argv[4], NULL, 10);
    jobs.count = b.count * b.times;
    before = cpu_s(&u);
    if (client_run(&o, &jobs, &errs)) {
        (void)fprintf(stderr, "bench_client: %s\n", errs.items[0].text);
        return err_exit_code(errs.items[0].code);
    }
    return print(&b, cpu_s(&u) - before, &u) ? 1 : 0;
}
