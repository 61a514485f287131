#include "harness/cli/eval_show.h"

#include "harness/core/proc.h"
#include "harness/eval/progress.h"
#include "harness/eval/recorded.h"
#include "harness/report/escape.h"
#include "harness/report/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CLEAN = 4096, LINE = 160, SMALL = 64 };

static const double terminal_s = 0.1, log_s = 10.0;

const char *eval_share(size_t correct, size_t answered, char *buf, size_t size)
{
    struct interval i = score_wilson(correct, answered);

    if (answered)
        (void)snprintf(buf, size, "%.4f [%.4f, %.4f]", (double)correct / (double)answered, i.low,
                       i.high);
    else
        (void)snprintf(buf, size, "none");
    return buf;
}

const char *eval_row_verdict(const struct eval_row *r)
{
    if (r->interrupted)
        return "interrupted";
    return r->failed ? "infra" : score_verdict_name(r->result.verdict);
}

static void print_floor(const struct eval_pass *p)
{
    (void)printf("floor: %" PRId64 " of %" PRId64 " correct (%.9g", p->needed, p->questions,
                 (double)p->threshold / EVAL_BILLION);
    if (p->tolerance)
        (void)printf(" - %.9g", (double)p->tolerance / EVAL_BILLION);
    (void)printf("%s%s)", p->gpu ? ", of GPU " : "", p->gpu ? p->gpu : "");
}

void eval_show_head(const struct eval *e)
{
    const struct eval_config *c = e->config;
    char name[CLEAN], model[CLEAN];

    (void)printf("%s: %s, protocol %s, %s, %" PRId64 " shot%s, ",
                 escape_terminal(c->name, name, sizeof name),
                 escape_terminal(c->model_name.text, model, sizeof model),
                 e->prompts.protocol->name, endpoint_path(e->prompts.options.endpoint),
                 c->num_fewshot.value, c->num_fewshot.value == 1 ? "" : "s");
    print_floor(&e->pass);
    if (e->pending_count < e->prompts.count)
        (void)printf("; resumed: %zu of %zu answers are there", e->prompts.count - e->pending_count,
                     e->prompts.count);
    (void)putchar('\n');
    (void)fflush(stdout);
}

void eval_show_command(const struct eval_config *c, char *const *argv)
{
    struct eval_added added[EVAL_ADDED];
    unsigned char memory[CLEAN];
    struct arena arena = {.base = memory, .limit = sizeof memory};
    char clean[CLEAN];
    const char *before = "  added as vLLM's test does: ";

    (void)printf("  server:");
    for (size_t i = 0; argv[i]; i++)
        (void)printf(" %s", escape_terminal(argv[i], clean, sizeof clean));
    (void)putchar('\n');
    if (!eval_config_added(c, &arena, added))
        return;
    for (int i = 0; i < EVAL_ADDED; i++) {
        if (added[i].stated || (!added[i].is_env && server_command_is_whole(c)))
            continue;
        (void)printf("%s%s%s%s", before, added[i].words[0], added[i].words[1] ? " " : "",
                     added[i].words[1] ? added[i].words[1] : "");
        before = ", ";
    }
    (void)puts(before[0] == ',' ? "" : "  nothing is added");
    (void)fflush(stdout);
}

static bool is_due(struct eval_line *l, double now)
{
    double pause = isatty(STDERR_FILENO) == 1 ? terminal_s : log_s;

    if (l->drawn_s > 0 && now - l->drawn_s < pause)
        return false;
    l->drawn_s = now;
    return true;
}

void eval_show_clear(struct eval_line *l)
{
    if (l->shown)
        (void)fputs("\r\033[K", stderr);
    l->shown = false;
}

static void draw(struct eval_line *l, const char *line)
{
    bool terminal = isatty(STDERR_FILENO) == 1;

    eval_show_clear(l);
    (void)fprintf(stderr, "%s%s", line, terminal ? "" : "\n");
    l->shown = terminal;
}

void eval_show_progress(struct eval_line *l, const struct eval_progress *p)
{
    char line[LINE];

    if (is_due(l, proc_now()))
        draw(l, progress_text(p, line, sizeof line));
}

void eval_show_waiting(struct eval_line *l, double waited_s)
{
    char line[LINE];

    if (!is_due(l, proc_now()))
        return;
    (void)snprintf(line, sizeof line, "waiting for the server: %.0f s", waited_s);
    draw(l, line);
}

static const char *number(struct arena *arena, size_t n)
{
    const char *text = arena_printf(arena, "%zu", n);

    return text ? text : "?";
}

static void print_extractors(const struct eval_result *r, struct arena *arena)
{
    static const char *const head[] = {"extractor", "correct", "share of answered",
                                       "no answer found", ""};
    struct table t = {.arena = arena, .aligns = "lrlrl"};
    size_t answered = tally_answered(&r->tally);

    (void)table_add(&t, head);
    for (int i = 0; i < EXTRACTOR_COUNT; i++) {
        char share[SMALL];
        bool gates = !strcmp(extractors[i].name, r->gating);
        const char *cells[] = {extractors[i].name, number(arena, r->tally.correct[i]),
                               eval_share(r->tally.correct[i], answered, share, sizeof share),
                               number(arena, answered - r->tally.valid[i]), gates ? "gates" : ""};

        (void)table_add(&t, cells);
    }
    table_print(&t, stdout);
}

static void print_outcomes(const struct eval_row *row)
{
    const struct tally *t = &row->result.tally;

    for (int o = 0; o < OUTCOME_COUNT; o++)
        (void)printf("%s%zu %s", o ? ", " : "", t->count[o], outcome_name((enum outcome)o));
    if (tally_missing(t))
        (void)printf(", %zu not asked", tally_missing(t));
    (void)printf("; %zu truncated; %" PRIu64 " prompt and %" PRIu64 " completion tokens",
                 t->truncated, t->prompt_tokens, t->completion_tokens);
    if (row->start_s > 0)
        (void)printf("; server ready after %.1f s", row->start_s);
    (void)printf("; asked for %.1f s\n", row->ask_s);
}

void eval_show_result(const struct eval_row *row, struct arena *arena)
{
    const struct eval_result *r = &row->result;
    char name[CLEAN], model[CLEAN], server[CLEAN], gpu[CLEAN];

    if (row->failed) {
        (void)printf("%s: %s: %s\n", eval_row_verdict(row),
                     escape_terminal(r->config->name, name, sizeof name),
                     escape_terminal(row->failed, model, sizeof model));
        return;
    }
    print_extractors(r, arena);
    print_outcomes(row);
    (void)printf("model %s, server %s, GPU %s\n",
                 escape_terminal(r->model[0] ? r->model : "unknown", model, sizeof model),
                 escape_terminal(r->server[0] ? r->server : "unknown", server, sizeof server),
                 escape_terminal(r->gpu[0] ? r->gpu : "unknown", gpu, sizeof gpu));
    if (!isnan(r->acceptance_length))
        (void)printf("acceptance length %.4f\n", r->acceptance_length);
    (void)printf("%s: %s: %s\n", eval_row_verdict(row),
                 escape_terminal(r->config->name, name, sizeof name), r->why);
    (void)fflush(stdout);
}

void eval_show_table(const struct eval_row *rows, size_t count, struct arena *arena)
{
    static const char *const head[] = {"config", "verdict", "correct", "needed",
                                       "of",     "errors",  "accuracy"};
    struct table t = {.arena = arena, .aligns = "llrrrrl"};

    (void)table_add(&t, head);
    for (size_t i = 0; i < count; i++) {
        const struct eval_result *r = &rows[i].result;
        char share[SMALL];
        bool has = !rows[i].failed;
        const char *cells[] = {r->config->name,
                               eval_row_verdict(&rows[i]),
                               has ? number(arena, r->tally.count[OUTCOME_CORRECT]) : "",
                               has ? number(arena, (size_t)r->pass.needed) : "",
                               has ? number(arena, r->tally.questions) : "",
                               has ? number(arena, r->tally.count[OUTCOME_ERROR]) : "",
                               has ? eval_share(r->tally.count[OUTCOME_CORRECT],
                                                tally_answered(&r->tally), share, sizeof share)
                                   : ""};

        (void)table_add(&t, cells);
    }
    table_print(&t, stdout);
}

void eval_show_recorded(const struct recorded *r, struct arena *arena)
{
    static const char *const head[] = {"model",     "answers", "graded correct",
                                       "extractor", "correct", "judged otherwise"};
    struct table t = {.arena = arena, .aligns = "lrrlrr"};

    (void)table_add(&t, head);
    for (size_t m = 0; m < r->models; m++)
        for (int e = 0; e < EXTRACTOR_COUNT; e++) {
            const struct recorded_model *model = &r->model[m];
            const char *cells[] = {e ? "" : model->name,
                                   e ? "" : number(arena, model->answers),
                                   e ? "" : number(arena, model->graded_correct),
                                   extractors[e].name,
                                   number(arena, model->correct[e]),
                                   number(arena, model->differs[e])};

            (void)table_add(&t, cells);
        }
    table_print(&t, stdout);
}
