#include "harness/faults/mutate_job.h"

#include <inttypes.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGUMENTS = 16, SKIPPED = 77 };

#define IDLE_SECONDS 60.0

static const char program[] = "/proc/self/exe", variable[] = "HUMCHECK_FAULT";

static enum err_code no_memory(struct errs *errs)
{
    return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory to start a child");
}

double job_silence(const struct mutate_options *o, double cases)
{
    return (o->idle_seconds > 0 ? o->idle_seconds : IDLE_SECONDS) + cases * o->case_seconds;
}

/* ---- command lines --------------------------------------------------------------------------- */

/* What all commands have; `first` are their own arguments, `count` of them. */
static char *const *command_argv(const struct jobs *shared, const char *const *first, size_t count,
                                 const char *filter)
{
    const struct mutate_options *o = shared->o;
    char **argv = ARENA_NEW(shared->arena, ARGUMENTS + o->suite_count, char *);
    size_t n = 0;
    bool ok = argv != NULL;

#define PUSH(...) (ok = ok && (argv[n++] = arena_printf(shared->arena, __VA_ARGS__)) != NULL)
    PUSH("humcheck");
    for (size_t i = 0; i < count; i++)
        if (first[i])
            PUSH("%s", first[i]);
    PUSH("--provider=%s", o->provider);
    if (filter)
        PUSH("--filter=%s", filter);
    if (o->has_seed)
        PUSH("--seed=0x%" PRIx64, o->seed);
    PUSH("--");
    for (size_t i = 0; i < o->suite_count; i++)
        PUSH("%s", o->suites[i]);
#undef PUSH
    return ok ? argv : NULL;
}

char *const *job_suite_argv(const struct jobs *shared, const char *limit)
{
    const char *seconds =
        arena_printf(shared->arena, "--case-seconds=%.9g", shared->o->case_seconds);
    const char *const first[] = {"kernels",  "--out=jsonl:-", "--quiet", "--no-timing",
                                 "--jobs=1", seconds,         limit};

    return seconds ? command_argv(shared, first, sizeof first / sizeof first[0], shared->o->filter)
                   : NULL;
}

static char *const *usual_argv(const struct job *job)
{
    const struct jobs *shared = job->shared;
    const char *run = arena_printf(shared->arena, "--run=%d", job->runs + 1);
    const char *const first[] = {"usual", run};

    return run ? command_argv(shared, first, 2, job->row->usual_id) : NULL;
}

/* ---- tests ----------------------------------------------------------------------------------- */

bool job_next_test(const char **list, char name[MUTATION_NAME])
{
    size_t length;

    if (!*list)
        return false;
    *list += strspn(*list, " ");
    length = strcspn(*list, " ");
    (void)snprintf(name, MUTATION_NAME, "%.*s", (int)length, *list);
    *list += length;
    return length > 0;
}

bool job_find_test(const struct mutate_options *o, const char *name, char path[JOB_PATH])
{
    static const char *const folders[] = {"",         "/harness", "/reference",
                                          "/kernels", "/tests",   "/test"};

    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        (void)snprintf(path, JOB_PATH, "%s%s/%s", o->tests, folders[i], name);
        if (access(path, X_OK) == 0)
            return true;
    }
    return false;
}

/* ---- the steps ------------------------------------------------------------------------------- */

static void tally(struct mutation *m, const char *check)
{
    int i = 0;

    while (i < m->seen_count && strcmp(m->seen[i].name, check) != 0)
        i++;
    if (i == MUTATION_CHECKS)
        return;
    if (i == m->seen_count)
        (void)snprintf(m->seen[m->seen_count++].name, sizeof m->seen[0].name, "%s", check);
    m->seen[i].cases++;
}

static void on_case(void *context, const char *line)
{
    struct job *job = context;
    struct mutation *m = job->row;
    struct record r;

    if (!mutation_read_record(line, &r))
        return;
    if (!m->detected)
        m->cases = r.index + 1;
    if (r.verdict == VERDICT_PASS || r.verdict == VERDICT_SKIP)
        return;
    if (job->shared->o->full)
        tally(m, r.check);
    if (m->detected)
        return;
    m->detected = true;
    (void)snprintf(m->verdict, sizeof m->verdict, "%s", verdict_name(r.verdict));
    (void)snprintf(m->check, sizeof m->check, "%s", r.check);
    (void)snprintf(m->family, sizeof m->family, "%s", r.family);
    (void)snprintf(m->id, sizeof m->id, "%s", r.id);
    (void)snprintf(m->reason, sizeof m->reason, "%s", r.reason);
    (void)snprintf(m->repro, sizeof m->repro, "%s", r.repro);
}

static void on_usual(void *context, const char *line)
{
    struct job *job = context;
    struct usual_outcome u;

    if (job->runs < USUAL_RUNS && mutation_read_usual(line, &u) && u.run == job->runs + 1)
        (job->step == JOB_USUAL ? job->outcomes : job->clean)[job->runs++] = u;
}

static enum err_code start(struct job *job, const char *path, char *const *argv, char *const *env,
                           struct errs *errs)
{
    if (!argv || !env)
        return no_memory(errs);
    job->child.context = job;
    return child_start(&job->child, path, argv, env, errs);
}

static enum err_code start_usual(struct job *job, enum job_step step, struct errs *errs)
{
    job->step = step;
    job->child.silence = job_silence(job->shared->o, 1.0);
    job->child.on_line = on_usual;
    return start(job, program, usual_argv(job),
                 step == JOB_USUAL ? job->env : job->shared->plain_env, errs);
}

/* ---- what the usual checks say --------------------------------------------------------------- */

/* "cause" and blanks, a name, and a colon; where none is named, several words. */
static void on_explanation(void *context, const char *line)
{
    static const char topic[] = "cause ";
    struct job *job = context;
    const char *name = line + sizeof topic - 1;
    size_t length;

    if (strncmp(line, topic, sizeof topic - 1) != 0)
        return;
    name += strspn(name, " ");
    length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");
    if (length && name[length] == ':')
        (void)snprintf(job->row->explained, sizeof job->row->explained, "%.*s", (int)length, name);
}

static enum err_code start_explain(struct job *job, struct errs *errs)
{
    char **argv = ARENA_NEW(job->shared->arena, 4, char *);

    job->step = JOB_EXPLAIN;
    job->child.silence = job_silence(job->shared->o, 4.0);
    job->child.on_line = on_explanation;
    if (argv) {
        argv[0] = arena_strdup(job->shared->arena, "humcheck");
        argv[1] = arena_strdup(job->shared->arena, "explain");
        argv[2] = arena_strdup(job->shared->arena, job->row->repro);
    }
    return start(job, program, argv && argv[0] && argv[1] && argv[2] ? argv : NULL,
                 job->shared->plain_env, errs);
}

static void complete(struct job *job)
{
    job->row->done = true;
    job->step = JOB_DONE;
}

static enum err_code finish(struct job *job, struct errs *errs)
{
    struct mutation *m = job->row;

    for (int run = 0; run < USUAL_RUNS && m->usual_ran; run++)
        for (int i = 0; i < USUAL_CHECKS; i++) {
            m->usual_alarms[i] += job->clean[run].failed[i];
            m->usual_runs[i] += job->outcomes[run].failed[i] && !job->clean[run].failed[i];
        }
    if (job->shared->o->explain && m->repro[0])
        return start_explain(job, errs);
    complete(job);
    return ERR_NONE;
}

static const struct usual_clean *known(const struct jobs *shared, const char *id)
{
    const struct usual_clean *c = shared->clean;

    while (c && strcmp(c->id, id) != 0)
        c = c->next;
    return c;
}

static bool remember(struct jobs *shared, const struct job *job)
{
    struct usual_clean *c = ARENA_NEW(shared->arena, 1, struct usual_clean);

    if (!c)
        return false;
    c->id = arena_strdup(shared->arena, job->row->usual_id);
    memcpy(c->outcomes, job->clean, sizeof c->outcomes);
    c->next = shared->clean;
    shared->clean = c;
    return c->id != NULL;
}

/* With the fault, if there is anything to compare without it. */
static enum err_code compare_usual(struct job *job, struct errs *errs)
{
    struct mutation *m = job->row;

    for (int run = 0; run < USUAL_RUNS; run++)
        if (!job->clean[run].ran) {
            (void)snprintf(m->usual_reason, sizeof m->usual_reason, "%s", job->clean[run].reason);
            return finish(job, errs);
        }
    m->usual_ran = true;
    job->runs = 0;
    return start_usual(job, JOB_USUAL, errs);
}

static enum err_code begin_usual(struct job *job, struct errs *errs)
{
    struct mutation *m = job->row;
    const struct usual_clean *clean;

    (void)snprintf(m->usual_id, sizeof m->usual_id, "%s",
                   m->id[0] ? m->id : job->shared->o->first_case);
    clean = known(job->shared, m->usual_id);
    job->runs = 0;
    if (!clean)
        return start_usual(job, JOB_USUAL_CLEAN, errs);
    memcpy(job->clean, clean->outcomes, sizeof job->clean);
    return compare_usual(job, errs);
}

/* A launch that takes the process along is a test that fails. */
static void lose_run(struct job *job, const struct child_end *end)
{
    struct usual_outcome *u = &job->outcomes[job->runs];

    *u = (struct usual_outcome){.run = ++job->runs, .ran = true};
    (void)child_describe(&job->child, end, u->reason, sizeof u->reason);
    (void)snprintf(job->row->usual_reason, sizeof job->row->usual_reason, "%s", u->reason);
    for (int i = 0; i < USUAL_CHECKS; i++)
        u->failed[i] = true;
}

static enum err_code next_usual(struct job *job, const struct child_end *end, struct errs *errs)
{
    char how[RECORD_TEXT];

    if (job->runs < USUAL_RUNS && job->step == JOB_USUAL_CLEAN)
        return errs_add(errs, ERR_INFRA, NOWHERE, "the usual checks of '%s' ended early: %s",
                        job->row->usual_id, child_describe(&job->child, end, how, sizeof how));
    if (job->step == JOB_USUAL_CLEAN)
        return remember(job->shared, job) ? compare_usual(job, errs) : no_memory(errs);
    if (job->runs < USUAL_RUNS)
        lose_run(job, end);
    if (job->runs < USUAL_RUNS)
        return start_usual(job, JOB_USUAL, errs);
    return finish(job, errs);
}

/* ---- what the suite and the tests say -------------------------------------------------------- */

static enum err_code next_test(struct job *job, struct errs *errs)
{
    char path[JOB_PATH];
    char **argv;

    if (job->row->detected || !job_next_test(&job->test, job->test_name))
        return begin_usual(job, errs);
    if (!job_find_test(job->shared->o, job->test_name, path))
        return errs_add(errs, ERR_USAGE, NOWHERE, "the test %s of the fault %s is not in '%s'",
                        job->test_name, job->fault->name, job->shared->o->tests);
    job->step = JOB_TESTS;
    job->child.silence = JOB_TEST_SECONDS;
    job->child.on_line = NULL;
    argv = ARENA_NEW(job->shared->arena, 2, char *);
    if (argv)
        argv[0] = arena_strdup(job->shared->arena, path);
    return start(job, path, argv && argv[0] ? argv : NULL, job->env, errs);
}

static bool ended_well(const struct child_end *end)
{
    return !end->hung && end->status != -1 && WIFEXITED(end->status) &&
           WEXITSTATUS(end->status) == 0;
}

static enum err_code after_suite(struct job *job, const struct child_end *end, struct errs *errs)
{
    struct mutation *m = job->row;

    m->seconds = end->seconds;
    if (!m->detected && !ended_well(end)) {
        m->detected = true;
        (void)snprintf(m->verdict, sizeof m->verdict, "refused");
        (void)snprintf(m->check, sizeof m->check, "start");
        (void)child_describe(&job->child, end, m->reason, sizeof m->reason);
    }
    return next_test(job, errs);
}

static enum err_code after_test(struct job *job, const struct child_end *end, struct errs *errs)
{
    struct mutation *m = job->row;
    bool skipped = !end->hung && WIFEXITED(end->status) && WEXITSTATUS(end->status) == SKIPPED;

    m->seconds += end->seconds;
    if (!ended_well(end) && !skipped) {
        m->detected = true;
        (void)snprintf(m->verdict, sizeof m->verdict, "test");
        (void)snprintf(m->check, sizeof m->check, "%s", job->test_name);
        (void)child_describe(&job->child, end, m->reason, sizeof m->reason);
    }
    return next_test(job, errs);
}

/* ---- life ------------------------------------------------------------------------------------ */

enum err_code job_start(struct job *job, struct jobs *shared, const struct fault *fault,
                        struct mutation *row, struct errs *errs)
{
    job->shared = shared;
    job->fault = fault;
    job->row = row;
    job->step = JOB_SUITE;
    job->test = fault->tests;
    job->env = proc_environment(shared->arena, variable, fault->name);
    job->child.silence = job_silence(shared->o, 4.0);
    job->child.on_line = on_case;
    return start(job, program, job_suite_argv(shared, shared->o->full ? NULL : "--max-fail=1"),
                 job->env, errs);
}

enum err_code job_next(struct job *job, const struct child_end *end, struct errs *errs)
{
    switch (job->step) {
    case JOB_SUITE:
        return after_suite(job, end, errs);
    case JOB_TESTS:
        return after_test(job, end, errs);
    case JOB_USUAL_CLEAN:
    case JOB_USUAL:
        return next_usual(job, end, errs);
    case JOB_EXPLAIN: /* a fault that it cannot explain is one that it does not name */
        complete(job);
        return ERR_NONE;
    case JOB_DONE:
        break;
    }
    return ERR_NONE;
}
