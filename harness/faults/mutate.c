#include "harness/faults/mutate.h"

#include "harness/faults/mutate_job.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum { POLL_MS = 50, TEXT = 400 };

#define TICK_SECONDS 0.25

/* Address space for command lines and what the usual checks say of cases. */
static const size_t arena_bytes = (size_t)1 << 30;

void mutate_row(const struct fault *f, struct mutation *out)
{
    memset(out, 0, sizeof *out);
    out->name = f->name;
    out->place = f->place == FAULT_KERNEL ? "kernel" : "oracle";
    out->class = f->class;
    out->origin = f->origin;
    out->simulated = f->simulated;
    out->cause = f->cause;
}

static bool interrupted(const struct mutate_options *o)
{
    return o->interrupted && *o->interrupted; /* NOLINT(clang-analyzer-core.NullDereference) */
}

static enum err_code no_memory(struct errs *errs)
{
    return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory to run faults");
}

static bool open_jobs(struct jobs *s, const struct mutate_options *o, struct arena *arena)
{
    if (!arena_init(arena, arena_bytes))
        return false;
    *s = (struct jobs){.o = o, .arena = arena};
    s->plain_env = proc_environment(arena, "HUMCHECK_FAULT", NULL);
    return s->plain_env != NULL;
}

/* ---- without a fault ------------------------------------------------------------------------- */

struct baseline {
    struct jobs shared;
    struct child child;
    uint64_t cases;
    char first[RECORD_ID + 16]; /* the first case that is not as it should be */
};

static void on_case(void *context, const char *line)
{
    struct baseline *b = context;
    struct record r;

    if (!mutation_read_record(line, &r))
        return;
    b->cases++;
    if (r.verdict != VERDICT_PASS && r.verdict != VERDICT_SKIP && !b->first[0])
        (void)snprintf(b->first, sizeof b->first, "%s %s", verdict_name(r.verdict), r.id);
}

/* Runs one child to its end. */
static enum err_code run_alone(struct baseline *b, const char *path, char *const *argv,
                               struct child_end *end, struct errs *errs)
{
    struct pollfd fds[CHILD_FDS];

    if (!argv)
        return no_memory(errs);
    TRY(child_start(&b->child, path, argv, b->shared.plain_env, errs));
    while (!child_read(&b->child, end)) {
        if (interrupted(b->shared.o)) {
            child_stop(&b->child);
            return ERR_NONE;
        }
        child_watch(&b->child, fds);
        (void)poll(fds, CHILD_FDS, POLL_MS);
    }
    return ERR_NONE;
}

static bool ended_well(const struct child_end *end)
{
    return !end->hung && end->status != -1 && WIFEXITED(end->status) &&
           WEXITSTATUS(end->status) == 0;
}

static enum err_code check_suite(struct baseline *b, struct errs *errs)
{
    struct child_end end = {.hung = false};
    char how[TEXT];

    b->child.on_line = on_case;
    b->child.silence = job_silence(b->shared.o, 4.0);
    TRY(run_alone(b, "/proc/self/exe", job_suite_argv(&b->shared, "--max-fail=1"), &end, errs));
    if (interrupted(b->shared.o) || (ended_well(&end) && b->cases))
        return ERR_NONE;
    if (b->first[0])
        return errs_add(errs, ERR_INFRA, NOWHERE,
                        "without a fault the suite must pass, and this case does not: %s",
                        b->first);
    return errs_add(errs, ERR_INFRA, NOWHERE, "without a fault the suite does not run: %s",
                    child_describe(&b->child, &end, how, sizeof how));
}

static enum err_code look_for_test(struct baseline *b, const char *name, struct errs *errs)
{
    char path[JOB_PATH];

    if (job_find_test(b->shared.o, name, path))
        return ERR_NONE;
    return errs_add(errs, ERR_USAGE, NOWHERE,
                    "the test %s, by which a fault is to be seen, is not in '%s'", name,
                    b->shared.o->tests);
}

static enum err_code run_test(struct baseline *b, const char *name, struct errs *errs)
{
    struct child_end end = {.hung = false};
    char path[JOB_PATH], how[TEXT];
    char *argv[] = {path, NULL};

    if (!job_find_test(b->shared.o, name, path))
        return look_for_test(b, name, errs);
    b->child.on_line = NULL;
    b->child.silence = JOB_TEST_SECONDS;
    TRY(run_alone(b, path, argv, &end, errs));
    if (interrupted(b->shared.o) || ended_well(&end))
        return ERR_NONE;
    return errs_add(errs, ERR_INFRA, NOWHERE, "without a fault the test %s must pass: %s", name,
                    child_describe(&b->child, &end, how, sizeof how));
}

/* Does a fault before this one name the test? */
static bool named_before(const struct fault *const *faults, size_t i, const char *name)
{
    char other[MUTATION_NAME];

    for (size_t j = 0; j < i; j++) {
        const char *list = faults[j]->tests;

        while (job_next_test(&list, other))
            if (!strcmp(other, name))
                return true;
    }
    return false;
}

/* `each` for every test that is named, once. */
static enum err_code for_tests(struct baseline *b, const struct fault *const *faults, size_t count,
                               enum err_code (*each)(struct baseline *b, const char *name,
                                                     struct errs *errs),
                               struct errs *errs)
{
    enum err_code first = ERR_NONE;
    char name[MUTATION_NAME];

    for (size_t i = 0; i < count; i++) {
        const char *list = faults[i]->tests;

        while (job_next_test(&list, name) && !interrupted(b->shared.o)) {
            enum err_code rc = ERR_NONE;

            if (!named_before(faults, i, name))
                rc = each(b, name, errs);
            first = first ? first : rc;
        }
    }
    return first;
}

enum err_code mutate_baseline(const struct mutate_options *o, const struct fault *const *faults,
                              size_t count, uint64_t *cases, struct errs *errs)
{
    struct baseline b = {.cases = 0};
    struct arena arena = {0};
    enum err_code rc = ERR_NONE, tests;

    b.child.proc = PROC_NONE;
    if (open_jobs(&b.shared, o, &arena))
        b.child.line = arena_alloc(&arena, CHILD_LINE, 1);
    if (!b.child.line)
        rc = no_memory(errs);
    b.child.context = &b;
    rc = rc ? rc : for_tests(&b, faults, count, look_for_test, errs);
    if (!rc) {
        rc = check_suite(&b, errs);
        tests = for_tests(&b, faults, count, run_test, errs);
        rc = rc ? rc : tests;
    }
    *cases = b.cases;
    if (arena.base)
        arena_free(&arena);
    return rc;
}

/* ---- with faults ----------------------------------------------------------------------------- */

struct running {
    struct jobs shared;
    const struct fault *const *faults;
    struct mutation *rows;
    size_t count, next; /* rows; the first that was not begun */
    struct job *jobs;
    struct pollfd *fds;
    size_t job_count;
    const struct mutate_hooks *hooks;
    double ticked;
    struct errs *errs;
    enum err_code rc;
};

static bool is_busy(const struct job *j)
{
    return j->fault && j->step != JOB_DONE;
}

static bool make_jobs(struct running *r, struct arena *arena)
{
    size_t wanted = r->shared.o->jobs < 1 ? 1 : (size_t)r->shared.o->jobs;

    r->job_count = wanted < r->count ? wanted : r->count;
    r->jobs = ARENA_NEW(arena, r->job_count, struct job);
    r->fds = ARENA_NEW(arena, r->job_count * CHILD_FDS, struct pollfd);
    for (size_t i = 0; r->jobs && i < r->job_count; i++) {
        r->jobs[i].child.proc = PROC_NONE;
        r->jobs[i].child.line = arena_alloc(arena, CHILD_LINE, 1);
        if (!r->jobs[i].child.line)
            return false;
    }
    return r->jobs && r->fds;
}

static void begin_faults(struct running *r)
{
    for (size_t i = 0; i < r->job_count && !r->rc; i++) {
        while (r->next < r->count && r->rows[r->next].done)
            r->next++;
        if (is_busy(&r->jobs[i]) || r->next == r->count)
            continue;
        r->rc = job_start(&r->jobs[i], &r->shared, r->faults[r->next], &r->rows[r->next], r->errs);
        r->next++;
    }
}

static void read_job(struct running *r, struct job *j)
{
    struct child_end end;

    if (!is_busy(j) || !child_read(&j->child, &end))
        return;
    r->rc = job_next(j, &end, r->errs);
    if (!r->rc && j->step == JOB_DONE)
        r->rc = r->hooks->done(r->hooks->context, (size_t)(j->row - r->rows), r->errs);
}

static void wait_for_jobs(struct running *r)
{
    for (size_t i = 0; i < r->job_count; i++)
        child_watch(&r->jobs[i].child, r->fds + i * CHILD_FDS);
    (void)poll(r->fds, r->job_count * CHILD_FDS, POLL_MS);
    for (size_t i = 0; i < r->job_count && !r->rc; i++)
        read_job(r, &r->jobs[i]);
}

static void tick(struct running *r)
{
    char doing[TEXT] = "";
    size_t used = 0;

    if (!r->hooks->tick || proc_now() - r->ticked < TICK_SECONDS)
        return;
    r->ticked = proc_now();
    for (size_t i = 0; i < r->job_count && used < sizeof doing; i++)
        if (is_busy(&r->jobs[i]))
            used += (size_t)snprintf(doing + used, sizeof doing - used, "%s%s", used ? ", " : "",
                                     r->jobs[i].fault->name);
    r->hooks->tick(r->hooks->context, doing);
}

static bool is_idle(const struct running *r)
{
    for (size_t i = 0; i < r->job_count; i++)
        if (is_busy(&r->jobs[i]))
            return false;
    return true;
}

enum err_code mutate_run(const struct mutate_options *o, const struct fault *const *faults,
                         struct mutation *rows, size_t count, const struct mutate_hooks *hooks,
                         bool *complete, struct errs *errs)
{
    struct running r = {
        .faults = faults, .rows = rows, .count = count, .hooks = hooks, .errs = errs};
    struct arena arena = {0};

    *complete = false;
    if (!open_jobs(&r.shared, o, &arena) || !make_jobs(&r, &arena))
        r.rc = no_memory(errs);
    if (!r.rc)
        begin_faults(&r);
    while (!r.rc && !interrupted(o) && !is_idle(&r)) {
        wait_for_jobs(&r);
        tick(&r);
        if (!r.rc)
            begin_faults(&r);
    }
    *complete = !r.rc;
    for (size_t i = 0; i < count; i++)
        *complete = *complete && rows[i].done;
    for (size_t i = 0; r.jobs && i < r.job_count; i++)
        child_stop(&r.jobs[i].child);
    if (arena.base)
        arena_free(&arena);
    return r.rc;
}
