#include "harness/report/left.h"
#include "harness/report/report.h"
#include "harness/report/sink_file.h"
#include "harness/report/sinks.h"

#include <cjson/cJSON.h>
#include <stdlib.h>

struct left_sink {
    struct sink_file file;
    const struct run_info *run;
};

static enum err_code left_open(const char *target, const struct report_options *o,
                               const struct run_info *run, void **self, struct errs *errs)
{
    struct left_sink *s;
    enum err_code rc;

    (void)o;
    if (!run->left)
        return errs_add(errs, ERR_USAGE, NOWHERE,
                        "--out left:%s says what a budget left out: it needs --budget", target);
    s = calloc(1, sizeof *s);
    if (!s)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the output '%s'", target);
    s->run = run;
    rc = sink_file_open(&s->file, target, errs);
    if (rc)
        free(s);
    else
        *self = s;
    return rc;
}

static enum err_code left_row(void *self, const struct record *r, struct errs *errs)
{
    (void)self;
    (void)r;
    (void)errs;
    return ERR_NONE;
}

static bool add_count(cJSON *to, const char *key, size_t n)
{
    return cJSON_AddNumberToObject(to, key, (double)n) != NULL;
}

static bool add_groups(cJSON *to, const struct left *l)
{
    cJSON *list = cJSON_AddArrayToObject(to, "groups");
    bool ok = list != NULL;

    for (size_t i = 0; ok && i < l->group_count; i++) {
        cJSON *group = cJSON_CreateObject();

        ok = cJSON_AddItemToArray(list, group) &&
             cJSON_AddStringToObject(group, "family", l->groups[i].family) &&
             cJSON_AddStringToObject(group, "check", l->groups[i].check) &&
             add_count(group, "left_out", l->groups[i].cases);
    }
    return ok;
}

static bool add_axes(cJSON *to, const struct left *l)
{
    cJSON *axes = cJSON_AddObjectToObject(to, "never_run");
    bool ok = axes != NULL;

    for (size_t i = 0; ok && i < l->axis_count; i++) {
        cJSON *values = cJSON_AddArrayToObject(axes, l->axes[i].key);

        ok = values != NULL;
        for (size_t j = 0; ok && j < l->axes[i].count; j++)
            ok = cJSON_AddItemToArray(values, cJSON_CreateString(l->axes[i].values[j]));
    }
    return ok;
}

static char *left_text(const struct left *l)
{
    cJSON *root = cJSON_CreateObject();
    bool ok = root && cJSON_AddNumberToObject(root, "budget_seconds", l->budget_seconds) &&
              cJSON_AddStringToObject(root, "why", l->why) && add_count(root, "cases", l->of) &&
              add_count(root, "left_out", l->cases) &&
              add_count(root, "problems_left_out", l->problems) && add_groups(root, l) &&
              add_axes(root, l);
    char *text = ok ? cJSON_Print(root) : NULL;

    cJSON_Delete(root);
    return text;
}

static enum err_code left_close(void *self, enum verdict run, bool complete, struct errs *errs)
{
    struct left_sink *s = self;
    char *text = left_text(s->run->left);
    enum err_code rc = ERR_NONE, closed;

    (void)run;
    if (!text)
        rc = errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the output '%s'", s->file.target);
    else if (fprintf(s->file.stream, "%s\n", text) < 0)
        rc = sink_file_failed(&s->file, errs);
    closed = sink_file_close(&s->file, complete && !rc, errs);
    cJSON_free(text);
    free(s);
    return rc ? rc : closed;
}

const struct sink sink_left = {"left", left_open, left_row, left_close,
                               "what --budget left out, one JSON object"};
