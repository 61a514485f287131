#include "harness/cli/against.h"

#include "harness/core/proc.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGUMENTS = 32, PIECE = 1 << 16, POLL_MS = 250 };

static const char records_of[] = "jsonl:";
static const double end_seconds = 5.0; /* of a run that was told to stop */

enum err_code against_check(const struct options *o, struct errs *errs)
{
    const bool file = o->against && !strncmp(o->against, records_of, sizeof records_of - 1);

    if (o->fail_on_change && !o->against)
        return errs_add(errs, ERR_USAGE, NOWHERE, "--fail-on-change needs --against");
    if (file && !o->against[sizeof records_of - 1])
        return errs_add(errs, ERR_USAGE, NOWHERE,
                        "--against jsonl: needs the file of an earlier run's records");
    return ERR_NONE;
}

/* ---- records --------------------------------------------------------------------------------- */

struct by_id {
    const char *id;
    size_t index; /* of the case in the plan */
};

static int compare_ids(const void *a, const void *b)
{
    const struct by_id *x = a, *y = b;

    return strcmp(x->id, y->id);
}

/* Cases of the plan by id. NULL: no memory. */
static const struct by_id *sort_cases(const struct plan *plan, struct arena *arena)
{
    struct by_id *sorted = ARENA_NEW(arena, plan->count + 1, struct by_id);

    if (!sorted)
        return NULL;
    for (size_t i = 0; i < plan->count; i++)
        sorted[i] = (struct by_id){plan->cases[i].id, i};
    qsort(sorted, plan->count, sizeof *sorted, compare_ids);
    return sorted;
}

struct taking {
    const struct plan *plan;
    const struct by_id *sorted;
    struct against *out;
    size_t taken;
    char provider[sizeof((const struct record *)NULL)->provider]; /* of the first taken */
};

static enum err_code take_line(struct taking *t, const char *line, struct place at,
                               struct errs *errs)
{
    struct against_case was, *to;
    const struct by_id *found;
    struct record r;

    if (!against_read(line, &r, &was))
        return errs_add(errs, ERR_CONFIG, at,
                        "this line is no record of humcheck kernels --out jsonl:FILE");
    found = bsearch(&(struct by_id){.id = r.id}, t->sorted, t->plan->count, sizeof *t->sorted,
                    compare_ids);
    if (!found || (uint64_t)t->plan->cases[found->index].v[AX_SEED] != r.seed)
        return ERR_NONE;
    to = &t->out->cases[found->index];
    if (to->there)
        return errs_add(errs, ERR_CONFIG, at, "the case '%.200s' stands here twice", r.id);
    *to = was;
    if (!t->taken++)
        memcpy(t->provider, r.provider, sizeof t->provider);
    return ERR_NONE;
}

static enum err_code take_lines(struct taking *t, FILE *in, const char *path, struct errs *errs)
{
    enum err_code rc = ERR_NONE;
    size_t capacity = 0;
    char *line = NULL;
    int number = 0;

    while (!rc && getline(&line, &capacity, in) > 0)
        rc = take_line(t, line, place_at(path, ++number, 1), errs);
    if (!rc && !feof(in))
        rc = errs_add(errs, ERR_IO, place_at(path, 0, 0), "cannot be read: %s", strerror(errno));
    free(line);
    return rc;
}

enum err_code against_take(FILE *in, const char *path, const struct plan *plan, struct arena *arena,
                           struct against *out, struct errs *errs)
{
    struct taking t = {.plan = plan, .sorted = sort_cases(plan, arena), .out = out};

    *out = (struct against){.cases = arena_zalloc(arena, plan->count + 1, sizeof *out->cases)};
    if (!t.sorted || !out->cases)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the records of another run");
    TRY(take_lines(&t, in, path, errs));
    if (!t.taken)
        return errs_add(errs, ERR_CONFIG, place_at(path, 0, 0),
                        "no record is of a case of this plan with its seed: nothing to compare");
    out->run.name = arena_strdup(arena, t.provider);
    return out->run.name ? ERR_NONE
                         : errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for a provider's name");
}

static enum err_code read_file(const char *path, const struct plan *plan, struct arena *arena,
                               struct against *out, struct errs *errs)
{
    FILE *in = fopen(path, "r");
    enum err_code rc;

    if (!in)
        return errs_add(errs, ERR_IO, place_at(path, 0, 0), "cannot be read: %s", strerror(errno));
    rc = against_take(in, path, plan, arena, out, errs);
    (void)fclose(in);
    return rc;
}

/* ---- the other provider's run ---------------------------------------------------------------- */

struct arguments {
    char **argv;
    size_t count;
    bool ok;
};

/* text NULL: no memory. */
static void push(struct arguments *a, char *text)
{
    a->ok = a->ok && text;
    if (a->ok)
        a->argv[a->count++] = text;
}

static char *const *make_argv(const struct options *o, struct arena *arena)
{
    const struct {
        const char *name, *value; /* NULL: not given */
    } texts[] = {{"provider", o->against},
                 {"support", o->support},
                 {"filter", o->filter},
                 {"semantics", o->semantics}};
    struct arguments a = {.argv = ARENA_NEW(arena, ARGUMENTS + o->operand_count, char *)};

    a.ok = a.argv != NULL;
    push(&a, arena_strdup(arena, "humcheck"));
    push(&a, arena_strdup(arena, "kernels"));
    push(&a, arena_strdup(arena, "--out=jsonl:-"));
    push(&a, arena_strdup(arena, "--quiet"));
    push(&a, arena_strdup(arena, "--no-diagnosis"));
    push(&a, arena_printf(arena, "--case-seconds=%.9f", o->case_seconds));
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i].value)
            push(&a, arena_printf(arena, "--%s=%s", texts[i].name, texts[i].value));
    if (o->shards)
        push(&a, arena_printf(arena, "--shard=%" PRId64 "/%" PRId64, o->shard, o->shards));
    if (o->has_seed)
        push(&a, arena_printf(arena, "--seed=0x%" PRIx64, o->seed));
    if (o->jobs)
        push(&a, arena_printf(arena, "--jobs=%" PRId64, o->jobs));
    if (o->in_process)
        push(&a, arena_strdup(arena, "--in-process"));
    if (o->no_timing)
        push(&a, arena_strdup(arena, "--no-timing"));
    push(&a, arena_strdup(arena, "--"));
    for (size_t i = 0; i < o->operand_count; i++)
        push(&a, arena_strdup(arena, o->operands[i]));
    return a.ok ? a.argv : NULL;
}

/* Until the other side closes its pipe. False: interrupted, or `to` cannot be written. */
static bool drain(int fd, FILE *to, const volatile sig_atomic_t *interrupted)
{
    char piece[PIECE];

    while (!*interrupted) {
        struct pollfd in = {.fd = fd, .events = POLLIN};
        ssize_t n;

        if (poll(&in, 1, POLL_MS) <= 0)
            continue;
        n = read(fd, piece, sizeof piece);
        if (n == 0)
            return !fflush(to);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return false;
        if (n > 0 && fwrite(piece, 1, (size_t)n, to) != (size_t)n)
            return false;
    }
    return false;
}

/* Ends it, with its workers. */
static int end_run(struct proc *p, bool whole)
{
    if (!whole)
        (void)kill(p->pid, SIGTERM);
    (void)proc_wait(p, end_seconds);
    return proc_kill(p);
}

static enum err_code run_other(const struct options *o, FILE *records,
                               const volatile sig_atomic_t *interrupted, struct arena *arena,
                               struct errs *errs)
{
    struct proc_options how = {
        .path = "/proc/self/exe", .argv = make_argv(o, arena), .pipes = PROC_OUT};
    struct proc p = PROC_NONE;
    char buf[128];
    bool whole;
    int status;

    if (!how.argv)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory to start the run of --against");
    TRY(proc_spawn(&p, &how, errs));
    whole = drain(p.out, records, interrupted);
    status = end_run(&p, whole);
    if (!whole)
        return errs_add(errs, ERR_INFRA, NOWHERE, "the run of --against %.100s %s", o->against,
                        *interrupted ? "was interrupted" : "could not be read");
    /* 3: nothing passed or failed; its records say so, if there are any */
    if (WIFEXITED(status) &&
        (WEXITSTATUS(status) <= 1 || (WEXITSTATUS(status) == 3 && ftell(records) > 0)))
        return ERR_NONE;
    return errs_add(errs, ERR_INFRA, NOWHERE,
                    "the run of --against %.100s ended with %s: nothing to compare with",
                    o->against, proc_describe(status, buf, sizeof buf));
}

enum err_code against_load(const struct options *o, const struct plan *plan,
                           const volatile sig_atomic_t *interrupted, struct arena *arena,
                           struct against *out, struct errs *errs)
{
    const size_t prefix = sizeof records_of - 1;
    enum err_code rc;
    FILE *records;

    if (!strncmp(o->against, records_of, prefix))
        return read_file(o->against + prefix, plan, arena, out, errs);
    records = tmpfile();
    if (!records)
        return errs_add(errs, ERR_IO, NOWHERE,
                        "a file for the records of --against cannot be made: %s", strerror(errno));
    rc = run_other(o, records, interrupted, arena, errs);
    if (!rc) {
        rewind(records);
        rc = against_take(records, "(records of --against)", plan, arena, out, errs);
    }
    (void)fclose(records);
    return rc;
}
