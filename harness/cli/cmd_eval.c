#include "harness/cli/commands.h"
#include "harness/cli/eval_run.h"
#include "harness/cli/interrupt.h"
#include "harness/cli/machine.h"
#include "harness/eval/client.h"
#include "harness/eval/config_list.h"
#include "harness/eval/environment.h"
#include "harness/eval/fetch.h"
#include "harness/eval/recorded.h"
#include "harness/report/table.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXIT_FAIL = 1, EXIT_INFRA = 3, EXIT_INCONCLUSIVE = 4, EXIT_INTERRUPTED = 130 };

/* clang-format off */
static const struct cli_option options[] = {
    {"server", OPT_TEXT, OPTION_AT(server), "URL", NULL, 0,
     "ask this server, e.g. http://127.0.0.1:8000; left out: each configuration's own is started"},
    {"data", OPT_TEXT, OPTION_AT(data), "FOLDER", NULL, 0,
     "where GSM8K is kept; left out: as for humcheck data"},
    {"run", OPT_TEXT, OPTION_AT(run_folder), "FOLDER", NULL, 0,
     "where answers are kept, one file a configuration (default: humcheck-runs)"},
    {"fresh", OPT_FLAG, OPTION_AT(fresh), "", NULL, 0,
     "forget the answers that are there; else a run goes on where it ended"},
    {"limit", OPT_COUNT, OPTION_AT(limit), "N", NULL, 1000000, "the first N questions only"},
    {"concurrency", OPT_COUNT, OPTION_AT(concurrency), "N", NULL, CLIENT_CONCURRENCY_MAX,
     "requests in progress at once; left out: as configured"},
    {"replay", OPT_TEXT, OPTION_AT(replay), "RUN", NULL, 0,
     "take the answers of an earlier run (its file or folder) in place of a server's"},
    {"answers", OPT_TEXT, OPTION_AT(answers), "FILE", NULL, 0,
     "score the graded outputs of GSM8K's example_model_solutions.jsonl; no configuration"},
    {"gpu", OPT_TEXT, OPTION_AT(gpu), "NAME", NULL, 0,
     "whose floor holds (h100, a100, ...); left out: the GPU of this machine, or with --server none"},
    {"api-key-env", OPT_TEXT, OPTION_AT(api_key_env), "NAME", NULL, 0,
     "the variable of the environment that holds the server's key"},
    {"out", OPT_OUTS, 0, "KIND:FILE", NULL, 0,
     "write results too: json:FILE, junit:FILE or markdown:FILE"},
};
/* clang-format on */

static void show_progress(void *ctx, const struct eval_progress *p)
{
    eval_show_progress(&((struct eval_run *)ctx)->line, p);
}

static void print_warnings(const struct errs *warnings)
{
    char text[3 * ERR_TEXT];

    for (size_t i = 0; i < warnings->count; i++)
        (void)fprintf(stderr, "%s (warning)\n", err_format(&warnings->items[i], text, sizeof text));
}

/* Paths such as /v1/completions are put behind it. `url` is not empty. */
static enum err_code check_server(const char *url, struct errs *errs)
{
    size_t n = strlen(url);

    if (url[n - 1] == '/')
        return errs_add(errs, ERR_USAGE, NOWHERE, "--server '%s': write it without the last '/'",
                        url);
    if (n > 3 && !strcmp(url + n - 3, "/v1"))
        return errs_add(errs, ERR_USAGE, NOWHERE, "--server '%s': write it without '/v1'", url);
    if (strpbrk(url, "?#"))
        return errs_add(errs, ERR_USAGE, NOWHERE,
                        "--server '%s': write it without '?' or '#' and what follows", url);
    return ERR_NONE;
}

enum err_code commands_eval_check(const struct options *o, struct errs *errs)
{
    enum err_code rc = eval_outs_check(o, errs);

    if (!o->operand_count)
        rc = errs_add(errs, ERR_USAGE, NOWHERE,
                      "eval needs CONFIG...; 'humcheck help eval' says more");
    if (o->server && o->replay)
        rc = errs_add(errs, ERR_USAGE, NOWHERE, "--server and --replay exclude each other");
    return o->server && check_server(o->server, errs) ? ERR_USAGE : rc;
}

static enum err_code find_key(const struct options *o, struct eval_options *how, struct errs *errs)
{
    struct client_options target;

    if (o->api_key_env) {
        how->api_key = environment_value(o->api_key_env);
        if (!how->api_key)
            return errs_add(errs, ERR_USAGE, NOWHERE,
                            "--api-key-env: the environment has no variable '%s'", o->api_key_env);
    }
    if (!o->server)
        return ERR_NONE;
    target = (struct client_options){.url = o->server, .api_key = how->api_key};
    return client_check(&target, errs);
}

/* The product name of the first GPU; NULL: none is known. */
static const char *find_gpu(const struct options *o, struct arena *arena)
{
    struct machine_gpus gpus;

    if (o->gpu || o->server || o->replay)
        return o->gpu;
    machine_gpus(&gpus);
    return gpus.count ? arena_strdup(arena, gpus.gpus[0].name) : NULL;
}

/* Two files of one name would share a store. */
static enum err_code check_names(const struct config_set *set, struct errs *errs)
{
    enum err_code rc = ERR_NONE;

    for (size_t i = 0; i < set->count; i++)
        for (size_t k = 0; k < i; k++)
            if (!strcmp(set->items[i].config.name, set->items[k].config.name))
                rc = errs_add(errs, ERR_USAGE, NOWHERE,
                              "two configurations have the name '%s': '%s' and '%s'",
                              set->items[i].config.name, set->items[k].config.path,
                              set->items[i].config.path);
    return rc;
}

/* What the configurations ask of, each kind once. */
struct sources {
    struct dataset data[2];
    bool loaded[2];
    size_t most; /* questions of a configuration, for problems made on the spot */
};

static size_t most_questions(const struct config_set *set)
{
    size_t most = 1;

    for (size_t i = 0; i < set->count; i++)
        if ((size_t)set->items[i].config.num_questions.value > most)
            most = (size_t)set->items[i].config.num_questions.value;
    return most < EVAL_ARITH_QUESTIONS ? most : EVAL_ARITH_QUESTIONS;
}

static const struct dataset *find_data(struct sources *s, const struct options *o,
                                       const struct eval_config *c, struct arena *arena,
                                       struct errs *errs)
{
    bool arith = c->data.value == EVAL_ARITH;
    const char *folder;
    enum err_code rc;

    if (s->loaded[arith])
        return &s->data[arith];
    if (arith) {
        rc = eval_arith(s->most, arena, &s->data[1], errs);
    } else {
        folder = o->data ? o->data : fetch_cache(arena, errs);
        rc = folder ? dataset_load(folder, arena, &s->data[0], errs) : ERR_USAGE;
    }
    s->loaded[arith] = !rc;
    return rc ? NULL : &s->data[arith];
}

struct job {
    struct eval eval;
    struct eval_options how;
};

/* A run of another fingerprint. A store that cannot be opened is an error of its own turn. */
static enum err_code check_store(struct eval *e, const struct options *o, const char *folder,
                                 struct arena *arena, struct errs *errs)
{
    const char *path = folder ? arena_printf(arena, "%s/%s.sqlite", folder, e->config->name) : NULL;
    struct errs own = {0};
    enum err_code rc;

    if (!path || o->fresh || access(path, F_OK))
        return ERR_NONE;
    rc = eval_open(e, path, false, &own);
    for (size_t i = 0; rc == ERR_USAGE && i < own.count; i++)
        (void)errs_add(errs, rc, NOWHERE, "%s", own.items[i].text);
    errs_free(&own);
    return rc == ERR_USAGE ? rc : ERR_NONE;
}

/* Everything that can be wrong is said before the first server starts; what it takes up is given
 * back until the configuration's turn. */
static enum err_code prepare(const struct config_set *set, struct job *jobs,
                             const struct eval_options *how, const struct options *o,
                             const char *folder, struct arena *arena, struct errs *errs)
{
    struct sources *sources = ARENA_NEW(arena, 1, struct sources); /* as long as the jobs */
    enum err_code first = ERR_NONE;

    if (!sources)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for data sets");
    sources->most = most_questions(set);
    for (size_t i = 0; i < set->count; i++) {
        const struct eval_config *c = &set->items[i].config;
        enum err_code rc;

        jobs[i].how = *how;
        jobs[i].how.data = find_data(sources, o, c, arena, errs);
        if (!jobs[i].how.data)
            return errs->items[0].code;
        rc = eval_prepare(&jobs[i].eval, c, &jobs[i].how, arena, errs);
        rc = rc ? rc : check_store(&jobs[i].eval, o, folder, arena, errs);
        eval_close(&jobs[i].eval);
        first = first ? first : rc;
    }
    return first;
}

/* Where answers are kept; NULL: nowhere. */
static const char *folder_of(const struct options *o)
{
    return o->run_folder ? o->run_folder : o->replay ? NULL : "humcheck-runs";
}

/* A job for each configuration of the set; NULL after an error. */
static struct job *make_jobs(const struct config_set *set, struct eval_options *how,
                             const struct options *o, struct arena *arena, struct errs *errs)
{
    struct job *jobs = ARENA_NEW(arena, set->count, struct job);

    how->limit = (size_t)o->limit;
    how->concurrency = (int)o->concurrency;
    how->gpu = find_gpu(o, arena);
    if (!jobs)
        (void)errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for %zu configurations", set->count);
    if (!jobs || check_names(set, errs) || prepare(set, jobs, how, o, folder_of(o), arena, errs))
        return NULL;
    return jobs;
}

enum err_code commands_eval_ready(const struct options *o, const struct config_set *set,
                                  struct arena *arena, struct errs *errs)
{
    struct eval_options how = {.limit = 0};

    TRY(find_key(o, &how, errs));
    return make_jobs(set, &how, o, arena, errs) ? ERR_NONE : errs->items[0].code;
}

static int exit_code(const struct eval_row *rows, size_t count)
{
    size_t fails = 0, infra = 0, open = 0;

    for (size_t i = 0; i < count; i++) {
        fails += !rows[i].failed && rows[i].result.verdict == SCORE_FAIL;
        infra += rows[i].failed != NULL;
        open += !rows[i].failed && rows[i].result.verdict == SCORE_INCONCLUSIVE;
    }
    if (fails)
        return EXIT_FAIL;
    if (infra)
        return EXIT_INFRA;
    return open ? EXIT_INCONCLUSIVE : 0;
}

static enum err_code run_job(struct eval_run *run, struct job *job, struct eval_row *row,
                             struct errs *errs)
{
    const struct eval_config *c = job->eval.config;
    enum err_code rc;

    job->how.ctx = run;
    rc = eval_prepare(&job->eval, c, &job->how, run->arena, errs);
    rc = rc ? rc : eval_run_one(run, &job->eval, row, errs);
    eval_close(&job->eval);
    return rc;
}

static int run_all(struct eval_run *run, struct job *jobs, size_t count, struct errs *errs)
{
    struct eval_row *rows = ARENA_NEW(run->arena, count, struct eval_row);
    size_t done = 0;

    if (!rows) {
        (void)errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for results");
        return commands_failed(errs);
    }
    while (done < count && !interrupted) {
        if (run_job(run, &jobs[done], &rows[done], errs))
            break;
        done++;
    }
    if (count > 1)
        eval_show_table(rows, done, run->arena);
    if (eval_outs_write(run->o, rows, done, errs) || done < count)
        return interrupted ? EXIT_INTERRUPTED : commands_failed(errs);
    return interrupted ? EXIT_INTERRUPTED : exit_code(rows, count);
}

static enum err_code make_folder(const char *folder, struct errs *errs)
{
    if (!folder || !mkdir(folder, 0777) || errno == EEXIST)
        return ERR_NONE;
    return errs_add(errs, ERR_IO, NOWHERE, "cannot make the folder '%s': %s", folder,
                    strerror(errno));
}

static int run_configs(const struct options *o, struct arena *arena, struct errs *errs)
{
    struct eval_options how = {.interrupted = &interrupted, .progress = show_progress};
    struct eval_run run = {.o = o, .how = &how, .arena = arena};
    struct errs warnings = {0};
    struct config_set set = {0};
    struct job *jobs;
    enum err_code rc = commands_eval_check(o, errs);

    if (o->gpu && eval_gpu_check(o->gpu, errs))
        rc = ERR_USAGE;
    rc = rc ? rc : find_key(o, &how, errs);
    if (o->operand_count) {
        enum err_code loaded =
            config_set_load(o->operands, o->operand_count, arena, &set, &warnings, errs);

        rc = rc ? rc : loaded;
    }
    print_warnings(&warnings);
    errs_free(&warnings);
    if (rc)
        return commands_failed(errs);
    run.folder = folder_of(o);
    jobs = make_jobs(&set, &how, o, arena, errs);
    if (!jobs || make_folder(run.folder, errs))
        return commands_failed(errs);
    interrupt_catch();
    interrupt_ignore_pipe();
    return run_all(&run, jobs, set.count, errs);
}

static int run_answers(const struct options *o, struct arena *arena, struct errs *errs)
{
    const char *folder = o->data ? o->data : fetch_cache(arena, errs);
    struct recorded r;
    struct dataset data;

    if (o->operand_count)
        (void)errs_add(errs, ERR_USAGE, NOWHERE, "--answers takes no configurations");
    else if (folder && !dataset_load(folder, arena, &data, errs) &&
             !recorded_score(o->answers, &data.test, arena, &r, errs))
        eval_show_recorded(&r, arena);
    return errs->count ? commands_failed(errs) : 0;
}

static int run_eval(const struct options *o, struct arena *arena, struct errs *errs)
{
    return o->answers ? run_answers(o, arena, errs) : run_configs(o, arena, errs);
}

const struct command command_eval = {
    .name = "eval",
    .operands = "CONFIG...",
    .min_operands = 0,
    .max_operands = -1,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run_eval,
    .help = "ask a served model GSM8K, score it by every rule, and judge it by its floor",
    .about = "CONFIG is a file, a list of files (.txt) or a folder, as for humcheck config check. "
             "Each answer is\n"
             "kept as it arrives: the same command goes on where an interrupted or killed run "
             "ended, and asks\n"
             "again what ended in an error. Another configuration, model, server, data set, GPU "
             "or number of\n"
             "requests at once is refused (--fresh starts anew). Errors are never wrong answers: "
             "too many of\n"
             "them, or a verdict that hangs on them, is inconclusive (exit code 4).\n",
};
