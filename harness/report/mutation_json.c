#include "harness/report/mutation.h"

#include "harness/report/escape.h"
#include "harness/report/sink_file.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = ESCAPE_GROWTH * RECORD_REPRO + 1 };

/* What mutate wrote itself is small; a file that is larger is another. */
static const size_t file_limit = (size_t)1 << 26;

/* ---- members --------------------------------------------------------------------------------- */

static bool put_text(cJSON *to, const char *name, const char *text)
{
    char clean[TEXT_MAX];

    return cJSON_AddStringToObject(to, name, escape_json(text, clean, sizeof clean)) != NULL;
}

/* "" is null: there is none. */
static bool put_text_or_null(cJSON *to, const char *name, const char *text)
{
    return *text ? put_text(to, name, text) : cJSON_AddNullToObject(to, name) != NULL;
}

static bool put_whole(cJSON *to, const char *name, uint64_t x)
{
    char text[24];

    (void)snprintf(text, sizeof text, "%" PRIu64, x);
    return cJSON_AddRawToObject(to, name, text) != NULL;
}

static bool put_seconds(cJSON *to, const char *name, double x)
{
    char text[32];

    (void)snprintf(text, sizeof text, "%.3f", x);
    return cJSON_AddRawToObject(to, name, text) != NULL;
}

static bool put_bool(cJSON *to, const char *name, bool x)
{
    return cJSON_AddBoolToObject(to, name, x) != NULL;
}

/* A text that is not there, or is none, is "". */
static void get_text(const cJSON *from, const char *name, char *buf, size_t size)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(from, name));

    (void)snprintf(buf, size, "%s", text ? text : "");
}

static bool same_text(const cJSON *from, const char *name, const char *want)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(from, name));

    return text && !strcmp(text, want);
}

/* A number that is not there, or is none, is 0. */
static double get_number(const cJSON *from, const char *name)
{
    double x = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(from, name));

    return isfinite(x) && x >= 0.0 && x < 0x1p53 ? x : 0.0;
}

static bool get_bool(const cJSON *from, const char *name)
{
    return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(from, name));
}

/* ---- writing --------------------------------------------------------------------------------- */

static bool put_counts(cJSON *to, const char *name, const int counts[USUAL_CHECKS])
{
    cJSON *o = cJSON_AddObjectToObject(to, name);
    bool ok = o != NULL;

    for (int i = 0; ok && i < USUAL_CHECKS; i++)
        ok = put_whole(o, usual_names[i].name, (uint64_t)counts[i]);
    return ok;
}

static bool put_seen(cJSON *to, const struct mutation *m)
{
    cJSON *list = cJSON_AddArrayToObject(to, "checks");
    bool ok = list != NULL;

    for (int i = 0; ok && i < m->seen_count; i++) {
        cJSON *o = cJSON_CreateObject();

        ok = o && cJSON_AddItemToArray(list, o) && put_text(o, "check", m->seen[i].name) &&
             put_whole(o, "cases", m->seen[i].cases);
    }
    return ok;
}

static bool put_usual(cJSON *to, const struct mutation *m)
{
    bool ok = true;

    for (int i = 0; ok && i < USUAL_CHECKS; i++)
        ok = put_bool(to, usual_names[i].name, m->usual_runs[i] > 0);
    return ok && put_bool(to, "usual_ran", m->usual_ran) &&
           put_text_or_null(to, "usual_case", m->usual_id) &&
           put_text_or_null(to, "usual_reason", m->usual_reason) &&
           put_counts(to, "usual_runs", m->usual_runs) &&
           put_counts(to, "usual_alarms", m->usual_alarms);
}

static bool put_explained(cJSON *to, const struct mutation *m)
{
    return put_text_or_null(to, "cause", m->cause ? m->cause : "") &&
           put_text_or_null(to, "explained", m->explained) &&
           put_text_or_null(to, "explained_how", mutation_explained(m));
}

static bool put_row(cJSON *to, const struct mutation *m, const struct mutation_run *run)
{
    return put_text(to, "name", m->name) && put_text(to, "place", m->place) &&
           put_text(to, "class", m->class) && put_text(to, "origin", m->origin) &&
           put_bool(to, "simulated", m->simulated) && put_bool(to, "detected", m->detected) &&
           put_text_or_null(to, "verdict", m->verdict) && put_text_or_null(to, "check", m->check) &&
           put_text_or_null(to, "family", m->family) && put_text_or_null(to, "case", m->id) &&
           put_text_or_null(to, "reason", m->reason) && put_text_or_null(to, "repro", m->repro) &&
           put_whole(to, "cases", m->cases) && put_seconds(to, "seconds", m->seconds) &&
           (!run->full || put_seen(to, m)) && put_usual(to, m) &&
           (!run->explain || put_explained(to, m));
}

static cJSON *document(const struct mutation_run *run, const struct mutation *rows, size_t count)
{
    cJSON *doc = cJSON_CreateObject(), *list;
    bool ok = doc && put_text(doc, "suite", run->suite) && put_text(doc, "plan", run->plan) &&
              put_text(doc, "program", run->program) && put_text(doc, "build", run->build) &&
              put_bool(doc, "full", run->full) && put_bool(doc, "explain", run->explain);

    list = ok ? cJSON_AddArrayToObject(doc, "faults") : NULL;
    ok = list != NULL;
    for (size_t i = 0; ok && i < count; i++) {
        cJSON *o = rows[i].done ? cJSON_CreateObject() : NULL;

        if (rows[i].done)
            ok = o && cJSON_AddItemToArray(list, o) && put_row(o, &rows[i], run);
    }
    if (ok)
        return doc;
    cJSON_Delete(doc);
    return NULL;
}

enum err_code mutation_write_json(const char *path, const struct mutation_run *run,
                                  const struct mutation *rows, size_t count, struct errs *errs)
{
    cJSON *doc = document(run, rows, count);
    char *text = doc ? cJSON_Print(doc) : NULL;
    struct sink_file file;
    enum err_code rc, closed;

    cJSON_Delete(doc);
    if (!text)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for '%s'", path);
    rc = sink_file_open(&file, path, errs);
    if (!rc) {
        bool written = fprintf(file.stream, "%s\n", text) > 0;

        rc = written ? ERR_NONE : sink_file_failed(&file, errs);
        closed = sink_file_close(&file, written, errs);
        rc = rc ? rc : closed;
    }
    cJSON_free(text);
    return rc;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void get_counts(const cJSON *from, const char *name, int counts[USUAL_CHECKS])
{
    const cJSON *o = cJSON_GetObjectItemCaseSensitive(from, name);

    for (int i = 0; i < USUAL_CHECKS; i++) {
        double x = get_number(o, usual_names[i].name);

        counts[i] = x <= USUAL_RUNS ? (int)x : 0;
    }
}

static void get_seen(const cJSON *from, struct mutation *m)
{
    const cJSON *o;

    m->seen_count = 0;
    cJSON_ArrayForEach(o, cJSON_GetObjectItemCaseSensitive(from, "checks"))
    {
        if (m->seen_count == MUTATION_CHECKS)
            return;
        get_text(o, "check", m->seen[m->seen_count].name, sizeof m->seen[0].name);
        m->seen[m->seen_count++].cases = (uint64_t)get_number(o, "cases");
    }
}

static void get_row(const cJSON *from, struct mutation *m)
{
    m->done = m->reused = true;
    m->detected = get_bool(from, "detected");
    get_text(from, "verdict", m->verdict, sizeof m->verdict);
    get_text(from, "check", m->check, sizeof m->check);
    get_text(from, "family", m->family, sizeof m->family);
    get_text(from, "case", m->id, sizeof m->id);
    get_text(from, "reason", m->reason, sizeof m->reason);
    get_text(from, "repro", m->repro, sizeof m->repro);
    m->cases = (uint64_t)get_number(from, "cases");
    m->seconds = get_number(from, "seconds");
    get_seen(from, m);
    m->usual_ran = get_bool(from, "usual_ran");
    get_text(from, "usual_case", m->usual_id, sizeof m->usual_id);
    get_text(from, "usual_reason", m->usual_reason, sizeof m->usual_reason);
    get_counts(from, "usual_runs", m->usual_runs);
    get_counts(from, "usual_alarms", m->usual_alarms);
    get_text(from, "explained", m->explained, sizeof m->explained);
}

/* The whole file; NULL: `why` says what is wrong, or is "" where there is no file. */
static char *read_all(const char *path, char *why, size_t size)
{
    FILE *f = fopen(path, "rb");
    char *text = f ? malloc(file_limit) : NULL;
    size_t n = text ? fread(text, 1, file_limit - 1, f) : 0;

    why[0] = '\0';
    if (!f)
        return NULL;
    if (text && !ferror(f) && n < file_limit - 1) {
        text[n] = '\0';
        (void)fclose(f);
        return text;
    }
    (void)snprintf(why, size, "it cannot be read");
    (void)fclose(f);
    free(text);
    return NULL;
}

static size_t get_rows(const cJSON *doc, struct mutation *rows, size_t count)
{
    const cJSON *o;
    size_t taken = 0;

    cJSON_ArrayForEach(o, cJSON_GetObjectItemCaseSensitive(doc, "faults"))
    {
        for (size_t i = 0; i < count; i++)
            if (!rows[i].done && same_text(o, "name", rows[i].name)) {
                get_row(o, &rows[i]);
                taken++;
            }
    }
    return taken;
}

size_t mutation_read_json(const char *path, const struct mutation_run *run, struct mutation *rows,
                          size_t count, char *why, size_t size)
{
    char *text = read_all(path, why, size);
    cJSON *doc = text ? cJSON_Parse(text) : NULL;
    size_t taken = 0;

    if (text && !doc)
        (void)snprintf(why, size, "it is no JSON");
    else if (doc && !(same_text(doc, "suite", run->suite) && same_text(doc, "plan", run->plan)))
        (void)snprintf(why, size, "it is of another suite");
    else if (doc &&
             !(same_text(doc, "program", run->program) && same_text(doc, "build", run->build)))
        (void)snprintf(why, size, "it is of another build of humcheck");
    else if (doc && get_bool(doc, "full") != run->full)
        (void)snprintf(why, size, "it is of a run %s --full", run->full ? "without" : "with");
    else if (doc && get_bool(doc, "explain") != run->explain)
        (void)snprintf(why, size, "it is of a run %s --explain", run->explain ? "without" : "with");
    else if (doc)
        taken = get_rows(doc, rows, count);
    cJSON_Delete(doc);
    free(text);
    return taken;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static bool get_verdict(const cJSON *from, enum verdict *out)
{
    for (int v = 0; v < VERDICT_COUNT; v++)
        if (same_text(from, "verdict", verdict_name((enum verdict)v))) {
            *out = (enum verdict)v;
            return true;
        }
    return false;
}

bool mutation_read_record(const char *line, struct record *out)
{
    cJSON *o = cJSON_Parse(line);
    bool ok;

    memset(out, 0, sizeof *out);
    ok = cJSON_IsObject(o) && get_verdict(o, &out->verdict);
    if (ok) {
        out->index = (uint64_t)get_number(o, "index");
        get_text(o, "case", out->id, sizeof out->id);
        get_text(o, "family", out->family, sizeof out->family);
        get_text(o, "check", out->check, sizeof out->check);
        get_text(o, "reason", out->reason, sizeof out->reason);
        get_text(o, "repro", out->repro, sizeof out->repro);
    }
    cJSON_Delete(o);
    return ok;
}

bool mutation_read_usual(const char *line, struct usual_outcome *out)
{
    cJSON *o = cJSON_Parse(line);
    double run = get_number(o, "run");
    bool ok = run >= 1 && run <= USUAL_RUNS;

    *out = (struct usual_outcome){.run = ok ? (int)run : 0};
    if (ok) {
        out->ran = get_bool(o, "ran");
        out->compared = (uint64_t)get_number(o, "compared");
        get_text(o, "reason", out->reason, sizeof out->reason);
        for (int i = 0; i < USUAL_CHECKS; i++)
            out->failed[i] = get_bool(o, usual_names[i].name);
    }
    cJSON_Delete(o);
    return ok;
}

bool mutation_print_usual(const struct usual_outcome *u, const char *id, FILE *f)
{
    cJSON *o = cJSON_CreateObject();
    bool ok = o && put_whole(o, "run", (uint64_t)u->run) && put_bool(o, "ran", u->ran) &&
              put_whole(o, "compared", u->compared) && put_text_or_null(o, "reason", u->reason) &&
              (!id || put_text(o, "case", id));
    char *text;

    for (int i = 0; ok && i < USUAL_CHECKS; i++)
        ok = put_bool(o, usual_names[i].name, u->failed[i]);
    text = ok ? cJSON_PrintUnformatted(o) : NULL;
    cJSON_Delete(o);
    ok = text && fprintf(f, "%s\n", text) > 0 && !fflush(f);
    cJSON_free(text);
    return ok;
}
