#include "harness/test/pool_fake.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_FD = 64, LAST_FD = 80, FLOOD_BYTES = 300000 };

const struct plan *pool_fake_plan(struct fake_plan *f, const char *text)
{
    char *at = f->text;

    memset(f, 0, sizeof *f);
    f->plan.cases = f->cases;
    f->plan.problems = f->problems;
    (void)snprintf(f->text, sizeof f->text, "%s", text);
    while (*at) {
        size_t n = strcspn(at, " |");
        char stop = at[n];
        struct plan_problem *p = &f->problems[f->plan.problem_count];

        f->cases[f->plan.count] = (struct plan_case){.id = at, .problem = f->plan.problem_count};
        if (p->count++ == 0)
            p->first = f->plan.count;
        f->plan.count++;
        at[n] = '\0';
        at += n + (stop != '\0');
        if (stop != ' ')
            f->plan.problem_count++;
    }
    return &f->plan;
}

const struct hum_provider fake_provider = {
    .abi_version = HUM_ABI_VERSION, .name = "fake", .version = "1", .device = "none"};

/* ---- the worker's runner ------------------------------------------------------------------ */

struct runner {
    int dummy;
};

static struct runner the_runner;
static const char *fifo; /* of the worker: held open while it lives */

struct runner *runner_open(const struct hum_provider *provider, int threads, size_t memory_limit,
                           struct errs *errs)
{
    (void)memory_limit;
    if (threads == 99) {
        (void)errs_add(errs, ERR_INFRA, NOWHERE, "provider %s does not open", provider->name);
        return NULL;
    }
    return &the_runner;
}

void runner_close(struct runner *r)
{
    (void)r;
}

void runner_record(const struct plan *plan, size_t case_index, const struct hum_provider *provider,
                   struct record *out)
{
    memset(out, 0, sizeof *out);
    out->index = case_index;
    out->at_row = out->at_col = -1;
    (void)snprintf(out->id, sizeof out->id, "%s", plan->cases[case_index].id);
    (void)snprintf(out->provider, sizeof out->provider, "%s", provider->name);
    (void)snprintf(out->repro, sizeof out->repro, "case %zu", case_index);
}

static void die_of(int number)
{
    (void)signal(number, SIG_DFL); /* a sanitizer has its own action */
    (void)raise(number);
}

static void sleep_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};

    (void)nanosleep(&t, NULL);
}

static void hang(void)
{
    for (;;)
        (void)pause();
}

/* To whatever lies where the worker keeps its pipe. */
static void write_high(const void *data, size_t size)
{
    for (int fd = FIRST_FD; fd < LAST_FD; fd++)
        if (write(fd, data, size) < 0 && errno != EBADF)
            return;
}

static void do_nothing(void)
{
}
static void do_segv(void)
{
    die_of(SIGSEGV);
}
static void do_kill(void)
{
    die_of(SIGKILL);
}
static void do_exit(void)
{
    _exit(7);
}
static void do_garbage(void)
{
    char junk[5000];

    memset(junk, 'x', sizeof junk);
    write_high(junk, sizeof junk);
    hang();
}
/* The first words of a frame, then the end. */
static void do_half(void)
{
    const uint32_t head[2] = {0x6d756831u, 3};

    write_high(head, sizeof head);
    _exit(0);
}
static void do_close(void)
{
    for (int fd = FIRST_FD; fd < LAST_FD; fd++)
        (void)close(fd);
    hang();
}
static void do_flood(void)
{
    char text[1000];

    memset(text, 'y', sizeof text);
    for (int i = 0; i < FLOOD_BYTES / (int)sizeof text; i++)
        if (write(STDERR_FILENO, text, sizeof text) < 0)
            return;
}
static void do_words(void)
{
    (void)fprintf(stderr, "first line\n\tCUDA error: \x1b[31mmisaligned\xff address\n");
    die_of(SIGABRT);
}
static void do_print(void)
{
    char c;

    (void)printf("a library that talks\n");
    (void)fflush(stdout);
    if (read(STDIN_FILENO, &c, 1) != 0)
        _exit(9); /* it must not get at the pool's orders */
}
static void do_slow(void)
{
    sleep_ms(20);
}
static void do_rest(void)
{
    sleep_ms(150);
}
static void do_hello(void)
{
    if (!fifo)
        return;
    if (write(open(fifo, O_WRONLY | O_CLOEXEC), "!", 1) != 1)
        _exit(8);
}
static void do_fifo(void)
{
    do_hello();
    hang();
}
/* A child of the worker that outlives it, unless the group is killed. */
static void do_child(void)
{
    if (fork() == 0)
        do_fifo();
    hang();
}

static const struct {
    const char *name;
    void (*act)(void);
} acts[] = {
    {"ok", do_nothing},      {"segv", do_segv},   {"kill", do_kill},   {"exit", do_exit},
    {"garbage", do_garbage}, {"half", do_half},   {"close", do_close}, {"flood", do_flood},
    {"words", do_words},     {"print", do_print}, {"slow", do_slow},   {"hang", hang},
    {"fifo", do_fifo},       {"child", do_child},
};

static const char *const stage_names[] = {"prepare", "launch", "judge", "between"};
enum { BETWEEN = 3 };

static void act(const char *id, int stage)
{
    size_t n = strcspn(id, "@");

    if (!strcmp(id, "rest@both") && stage <= STAGE_LAUNCH)
        do_rest();
    if (id[n] == '\0' ? stage != 0 : strcmp(id + n + 1, stage_names[stage]) != 0)
        return;
    for (size_t i = 0; i < sizeof acts / sizeof acts[0]; i++)
        if (strlen(acts[i].name) == n && !strncmp(acts[i].name, id, n))
            acts[i].act();
}

/* Records that a sane worker cannot send. */
static void spoil(struct record *r)
{
    if (!strcmp(r->id, "wrong-index"))
        r->index += 1;
    if (!strcmp(r->id, "endless-text"))
        memset(r->kernel, 'z', sizeof r->kernel);
    if (!strcmp(r->id, "wrong-verdict"))
        memset(&r->verdict, 0x7f, sizeof r->verdict);
}

void runner_problem(struct runner *r, const struct plan *plan, size_t problem, size_t begin,
                    size_t end, const struct runner_hooks *hooks)
{
    (void)r;
    (void)problem;
    for (size_t i = begin; i < end; i++) {
        const char *id = plan->cases[i].id;
        struct record rec;

        for (int s = STAGE_PREPARE; s <= STAGE_JUDGE; s++) {
            hooks->stage(hooks->context, i, (enum stage)s);
            if (!strcmp(id, "wrong-case") && s == STAGE_LAUNCH)
                hooks->stage(hooks->context, i + 1, STAGE_LAUNCH);
            act(id, s);
        }
        runner_record(plan, i, &fake_provider, &rec);
        spoil(&rec);
        hooks->record(hooks->context, &rec);
        act(id, BETWEEN);
    }
}

int pool_fake_worker(char *const *argv)
{
    const char *mode = argv[3];
    const char *plan = argv[2];
    static struct fake_plan own;
    int threads = 1;

    fifo = argv[4][0] ? argv[4] : NULL;
    if (!strcmp(mode, "talk"))
        (void)fprintf(stderr, "cannot open the device\n");
    if (!strcmp(mode, "exit") || !strcmp(mode, "talk"))
        return 5;
    if (!strcmp(mode, "deaf"))
        hang();
    if (!strcmp(mode, "garbage"))
        (void)puts("hello, I am not a worker");
    if (!strcmp(mode, "refuse"))
        threads = 99;
    if (!strcmp(mode, "other-plan"))
        plan = "ok|ok ok";
    (void)fflush(stdout);
    return pool_serve(pool_fake_plan(&own, plan), &fake_provider, threads, 1 << 20, STDIN_FILENO,
                      STDOUT_FILENO);
}
