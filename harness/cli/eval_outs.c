/* Files of `humcheck eval`: JSON for programs, JUnit for CI systems, Markdown for people. */
#include "harness/cli/eval_show.h"
#include "harness/core/build_info.h"
#include "harness/report/escape.h"
#include "harness/report/sink_file.h"
#include "harness/report/sinks.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { TEXT = 4096, NUMBER = 40, JSON_VERSION = 1 };

/* ---- JSON ---- */

static void add_text(cJSON *to, const char *name, const char *text)
{
    char clean[TEXT];

    (void)cJSON_AddStringToObject(to, name, escape_json(text ? text : "", clean, sizeof clean));
}

/* Raw text: cJSON's own printing of a double loses bits, and it has no 64-bit integers. */
static void add_real(cJSON *to, const char *name, double x)
{
    char text[NUMBER];

    (void)snprintf(text, sizeof text, isfinite(x) ? "%.17g" : "null", x);
    (void)cJSON_AddRawToObject(to, name, text);
}

static void add_count(cJSON *to, const char *name, uint64_t n)
{
    char text[NUMBER];

    (void)snprintf(text, sizeof text, "%" PRIu64, n);
    (void)cJSON_AddRawToObject(to, name, text);
}

static void add_share(cJSON *to, size_t correct, size_t answered)
{
    struct interval i = score_wilson(correct, answered);

    add_real(to, "accuracy", answered ? (double)correct / (double)answered : (double)NAN);
    add_real(to, "ci_low", i.low);
    add_real(to, "ci_high", i.high);
}

static void add_extractors(cJSON *to, const struct tally *t)
{
    cJSON *list = cJSON_AddObjectToObject(to, "extractors");

    for (int i = 0; i < EXTRACTOR_COUNT; i++) {
        cJSON *e = cJSON_AddObjectToObject(list, extractors[i].name);

        add_count(e, "correct", t->correct[i]);
        add_count(e, "valid", t->valid[i]);
        add_share(e, t->correct[i], tally_answered(t));
    }
}

static void add_result(cJSON *to, const struct eval_result *r)
{
    const struct tally *t = &r->tally;

    add_text(to, "protocol", r->protocol);
    add_text(to, "endpoint", r->endpoint);
    add_text(to, "gating", r->gating);
    add_text(to, "served_model", r->model);
    add_text(to, "server", r->server);
    add_text(to, "gpu", r->gpu);
    add_real(to, "threshold", (double)r->pass.threshold / EVAL_BILLION);
    add_real(to, "tolerance", (double)r->pass.tolerance / EVAL_BILLION);
    add_count(to, "needed", (uint64_t)r->pass.needed);
    add_count(to, "questions", t->questions);
    for (int o = 0; o < OUTCOME_COUNT; o++)
        add_count(to, outcome_name((enum outcome)o), t->count[o]);
    add_count(to, "not_asked", tally_missing(t));
    add_count(to, "truncated", t->truncated);
    add_share(to, t->count[OUTCOME_CORRECT], tally_answered(t));
    add_count(to, "prompt_tokens", t->prompt_tokens);
    add_count(to, "completion_tokens", t->completion_tokens);
    add_count(to, "attempts", t->attempts);
    add_real(to, "acceptance_length", r->acceptance_length);
    add_extractors(to, t);
}

static void add_row(cJSON *list, const struct eval_row *row)
{
    cJSON *to = cJSON_CreateObject();

    (void)cJSON_AddItemToArray(list, to);
    add_text(to, "config", row->result.config->name);
    add_text(to, "path", row->result.config->path);
    add_text(to, "model", row->result.config->model_name.text);
    add_text(to, "verdict", eval_row_verdict(row));
    add_text(to, "why", row->failed ? row->failed : row->result.why);
    add_real(to, "server_start_s", row->start_s);
    add_real(to, "ask_s", row->ask_s);
    if (!row->failed)
        add_result(to, &row->result);
}

static enum err_code write_json(const char *target, const struct eval_row *rows, size_t count,
                                struct errs *errs)
{
    cJSON *root = cJSON_CreateObject(), *list;
    struct sink_file f;
    char *text;
    enum err_code rc = sink_file_open(&f, target, errs);

    if (rc) {
        cJSON_Delete(root);
        return rc;
    }
    add_count(root, "version", JSON_VERSION);
    add_text(root, "program", build_program);
    list = cJSON_AddArrayToObject(root, "runs");
    for (size_t i = 0; i < count; i++)
        add_row(list, &rows[i]);
    text = cJSON_Print(root);
    if (text)
        (void)fprintf(f.stream, "%s\n", text);
    else
        rc = errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the output '%s'", target);
    cJSON_free(text);
    cJSON_Delete(root);
    return sink_file_close(&f, !rc, errs) ? ERR_IO : rc;
}

/* ---- JUnit: one test case a gate ---- */

static enum verdict junit_verdict(const struct eval_row *row)
{
    if (row->failed || row->interrupted)
        return VERDICT_INFRA;
    switch (row->result.verdict) {
    case SCORE_PASS:
        return VERDICT_PASS;
    case SCORE_FAIL:
        return VERDICT_FAIL;
    case SCORE_INCONCLUSIVE:
        break;
    }
    return VERDICT_INFRA;
}

static void fill_record(const struct eval_row *row, struct record *out)
{
    const char *name = row->result.config->name;

    *out = (struct record){.verdict = junit_verdict(row), .at_row = -1, .at_col = -1};
    out->kernel_us = 1e6 * (row->start_s + row->ask_s);
    (void)snprintf(out->suite, sizeof out->suite, "%s", name);
    (void)snprintf(out->id, sizeof out->id, "%s floor", name);
    (void)snprintf(out->family, sizeof out->family, "gsm8k");
    (void)snprintf(out->check, sizeof out->check, "floor");
    (void)snprintf(out->reason, sizeof out->reason, "%s: %s", eval_row_verdict(row),
                   row->failed ? row->failed : row->result.why);
    (void)snprintf(out->repro, sizeof out->repro, "humcheck eval %s", row->result.config->path);
}

static enum err_code write_junit(const char *target, const struct eval_row *rows, size_t count,
                                 struct errs *errs)
{
    const struct report_options how = {0};
    const struct run_info run = {.program = build_program, .provider = "eval", .cases = count};
    struct record record;
    enum err_code rc, closed;
    void *self;

    TRY(sink_junit.open(target, &how, &run, &self, errs));
    rc = ERR_NONE;
    for (size_t i = 0; !rc && i < count; i++) {
        fill_record(&rows[i], &record);
        rc = sink_junit.row(self, &record, errs);
    }
    closed = sink_junit.close(self, VERDICT_PASS, !rc, errs);
    return rc ? rc : closed;
}

/* ---- Markdown ---- */

/* A cell: nothing in it may end the cell or start markup. */
static const char *cell(const char *text, char *buf, size_t size)
{
    static const char markup[] = "\\`*_{}[]<>()#+!|~&$@";
    char clean[TEXT];
    size_t n = 0;

    (void)escape_terminal(text, clean, sizeof clean);
    for (const char *c = clean; *c && n + 3 < size; c++) {
        if (strchr(markup, *c))
            buf[n++] = '\\';
        buf[n++] = *c;
    }
    buf[n] = '\0';
    return buf;
}

static void write_line(FILE *f, const struct eval_row *row)
{
    const struct eval_result *r = &row->result;
    char name[TEXT], model[TEXT], why[TEXT], share[NUMBER];

    (void)fprintf(f, "| %s | %s | %s |", cell(r->config->name, name, sizeof name),
                  cell(r->config->model_name.text, model, sizeof model), eval_row_verdict(row));
    if (row->failed)
        (void)fprintf(f, " | | | | %s |\n", cell(row->failed, why, sizeof why));
    else
        (void)fprintf(f, " %zu of %zu | %" PRId64 " | %s | %zu | %s |\n",
                      r->tally.count[OUTCOME_CORRECT], r->tally.questions, r->pass.needed,
                      eval_share(r->tally.count[OUTCOME_CORRECT], tally_answered(&r->tally), share,
                                 sizeof share),
                      r->tally.count[OUTCOME_ERROR], cell(r->why, why, sizeof why));
}

static enum err_code write_markdown(const char *target, const struct eval_row *rows, size_t count,
                                    struct errs *errs)
{
    struct sink_file f;

    TRY(sink_file_open(&f, target, errs));
    (void)fprintf(f.stream,
                  "## GSM8K\n\n| config | model | verdict | correct | needed | accuracy (95 %%) | "
                  "errors | why |\n|---|---|---|---:|---:|---|---:|---|\n");
    for (size_t i = 0; i < count; i++)
        write_line(f.stream, &rows[i]);
    (void)fprintf(f.stream, "\n%s\n", build_program);
    return sink_file_close(&f, true, errs);
}

/* ---- the table ---- */

static const struct {
    const char *kind;
    enum err_code (*write)(const char *target, const struct eval_row *rows, size_t count,
                           struct errs *errs);
} kinds[] = {{"json", write_json}, {"junit", write_junit}, {"markdown", write_markdown}};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* The row of kinds[] that `out` names, and its target; KINDS: none. */
static int kind_of(const char *out, const char **target)
{
    int i = 0;

    for (; i < KINDS; i++) {
        size_t n = strlen(kinds[i].kind);

        if (!strncmp(out, kinds[i].kind, n) && out[n] == ':' && out[n + 1]) {
            *target = out + n + 1;
            break;
        }
    }
    return i;
}

enum err_code eval_outs_check(const struct options *o, struct errs *errs)
{
    enum err_code rc = ERR_NONE;
    const char *target = NULL, *other = NULL;

    for (size_t i = 0; i < o->out_count; i++) {
        if (kind_of(o->outs[i], &target) == KINDS) {
            rc = errs_add(errs, ERR_USAGE, NOWHERE,
                          "--out needs json:FILE, junit:FILE or markdown:FILE, got '%s'",
                          o->outs[i]);
            continue;
        }
        for (size_t k = 0; k < i; k++)
            if (kind_of(o->outs[k], &other) < KINDS && !strcmp(target, other))
                rc = errs_add(errs, ERR_USAGE, NOWHERE, "two outputs go to '%s'", target);
        if (sink_file_check(target, errs))
            rc = ERR_USAGE;
    }
    return rc;
}

enum err_code eval_outs_write(const struct options *o, const struct eval_row *rows, size_t count,
                              struct errs *errs)
{
    enum err_code first = ERR_NONE;
    const char *target = NULL;

    for (size_t i = 0; i < o->out_count; i++) {
        int kind = kind_of(o->outs[i], &target);
        enum err_code rc = kind < KINDS ? kinds[kind].write(target, rows, count, errs) : ERR_USAGE;

        first = first ? first : rc;
    }
    return first;
}
