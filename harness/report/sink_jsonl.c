#include "harness/report/escape.h"
#include "harness/report/report.h"
#include "harness/report/sink_file.h"
#include "harness/report/sinks.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

struct jsonl {
    struct sink_file file;
    bool no_timing;
};

enum { TEXT_MAX = ESCAPE_GROWTH * RECORD_REPRO + 1 };

/* JSON has neither NaN nor infinity. Reals are raw texts because cJSON_CreateNumber prints 15
 * digits where they are within one epsilon, and then about one double in eight reads back
 * changed; 17 digits identify every double. */
static cJSON *real_of(double x)
{
    char text[32];

    if (isnan(x))
        return cJSON_CreateString("nan");
    if (isinf(x))
        return cJSON_CreateString(x > 0 ? "inf" : "-inf");
    (void)snprintf(text, sizeof text, "%.17g", x);
    return cJSON_CreateRaw(text);
}

/* Whole numbers are raw texts too: a cJSON number is a double. A seed has all 64 bits in use,
 * which other readers of JSON would round, so it is a text. */
static cJSON *value_of(const struct record *r, const struct column *c)
{
    const void *at = record_member(r, c);
    char text[TEXT_MAX];

    switch (c->type) {
    case COL_TEXT:
        return cJSON_CreateString(escape_json(at, text, sizeof text));
    case COL_VERDICT:
        return cJSON_CreateString(verdict_name(*(const enum verdict *)at));
    case COL_U64:
        (void)snprintf(text, sizeof text, "%" PRIu64, *(const uint64_t *)at);
        return cJSON_CreateRaw(text);
    case COL_I64:
        (void)snprintf(text, sizeof text, "%" PRId64, *(const int64_t *)at);
        return cJSON_CreateRaw(text);
    case COL_SEED:
        (void)snprintf(text, sizeof text, "0x%016" PRIx64, *(const uint64_t *)at);
        return cJSON_CreateString(text);
    case COL_HEX32:
        (void)snprintf(text, sizeof text, "0x%04" PRIx32, *(const uint32_t *)at);
        return cJSON_CreateString(text);
    case COL_REAL:
        return real_of(*(const double *)at);
    }
    return NULL;
}

static enum err_code jsonl_open(const char *target, const struct report_options *o,
                                const struct run_info *run, void **self, struct errs *errs)
{
    struct jsonl *j = calloc(1, sizeof *j);
    enum err_code rc;

    (void)run;
    if (!j)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the output '%s'", target);
    j->no_timing = o->no_timing;
    rc = sink_file_open(&j->file, target, errs);
    if (rc) {
        free(j);
        return rc;
    }
    /* A line reaches the file when its case is done, so that a run that is killed leaves all of
     * them. */
    (void)setvbuf(j->file.stream, NULL, _IOLBF, BUFSIZ);
    *self = j;
    return ERR_NONE;
}

static char *row_text(const struct jsonl *j, const struct record *r)
{
    cJSON *row = cJSON_CreateObject();
    bool ok = row != NULL;
    char *text;

    for (int i = 0; ok && i < record_column_count; i++)
        if (!record_columns[i].timing || !j->no_timing)
            ok =
                cJSON_AddItemToObject(row, record_columns[i].name, value_of(r, &record_columns[i]));
    text = ok ? cJSON_PrintUnformatted(row) : NULL;
    cJSON_Delete(row);
    return text;
}

static enum err_code jsonl_row(void *self, const struct record *r, struct errs *errs)
{
    struct jsonl *j = self;
    char *text = row_text(j, r);
    bool ok;

    if (!text)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for a row of '%s'", j->file.target);
    ok = fprintf(j->file.stream, "%s\n", text) > 0;
    cJSON_free(text);
    return ok ? ERR_NONE : sink_file_failed(&j->file, errs);
}

static enum err_code jsonl_close(void *self, enum verdict run, bool complete, struct errs *errs)
{
    struct jsonl *j = self;
    enum err_code rc = sink_file_close(&j->file, complete, errs);

    (void)run;
    free(j);
    return rc;
}

const struct sink sink_jsonl = {"jsonl", jsonl_open, jsonl_row, jsonl_close,
                                "one JSON object a case, one a line"};
