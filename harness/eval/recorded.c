#include "harness/eval/recorded.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t scratch_bytes = (size_t)16 << 20;

struct reader {
    const char *path;
    const struct dataset_rows *test;
    struct arena *arena, scratch;
    struct recorded *out;
    struct errs *errs;
    size_t line; /* from 1 */
};

static enum err_code bad(const struct reader *r, const char *what)
{
    return errs_add(r->errs, ERR_CONFIG, place_at(r->path, (int)r->line, 1), "%s", what);
}

/* With its last line "A: N" as "#### N". at NULL: no memory. */
static struct span solution(const char *text, struct arena *scratch)
{
    const char *line = NULL;

    for (const char *at = strstr(text, "\nA: "); at; at = strstr(at + 1, "\nA: "))
        line = at + 1;
    if (line)
        text = arena_printf(scratch, "%.*s#### %s", (int)(line - text), text, line + 3);
    return text ? span_of(text) : (struct span){NULL, 0};
}

static struct recorded_model *model_of(const struct reader *r, const char *name)
{
    struct recorded *out = r->out;
    size_t i = 0;

    while (i < out->models && strcmp(out->model[i].name, name) != 0)
        i++;
    if (i == out->models && i < RECORDED_MODELS) {
        out->model[i].name = arena_strdup(r->arena, name);
        out->models += out->model[i].name != NULL;
    }
    return i < out->models ? &out->model[i] : NULL;
}

static enum err_code score_model(struct reader *r, const cJSON *object)
{
    struct recorded_model *m = model_of(r, object->string);
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "solution"));
    const cJSON *grade = cJSON_GetObjectItemCaseSensitive(object, "is_correct");
    struct span gold = span_of(r->test->row[r->line - 1].answer), read;
    struct answer answers[EXTRACTOR_COUNT];

    if (!text || !cJSON_IsBool(grade))
        return bad(r, "a model needs \"solution\", a text, and \"is_correct\", true or false");
    arena_reset(&r->scratch);
    read = solution(text, &r->scratch);
    if (!m || !read.at || !extract_all(read, gold, &r->scratch, answers))
        return errs_add(r->errs, ERR_NOMEM, NOWHERE, "no memory for %zu models", r->out->models);
    m->answers++;
    m->graded_correct += cJSON_IsTrue(grade) != 0;
    for (int e = 0; e < EXTRACTOR_COUNT; e++) {
        m->correct[e] += answers[e].correct;
        m->differs[e] += answers[e].correct != (cJSON_IsTrue(grade) != 0);
    }
    return ERR_NONE;
}

static enum err_code score_line(struct reader *r, const char *text)
{
    cJSON *line = cJSON_ParseWithOpts(text, NULL, false);
    const char *question = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, "question"));
    enum err_code rc = ERR_NONE;
    const cJSON *item;

    if (!cJSON_IsObject(line))
        rc = bad(r, "this line is no object of JSON");
    else if (r->line > r->test->count)
        rc = bad(r, "there are more lines than questions of the test split");
    else if (!question || strcmp(question, r->test->row[r->line - 1].question) != 0)
        rc = bad(r, "this is not the question of that line of the test split");
    if (!rc) {
        cJSON_ArrayForEach(item, line)
        {
            if (cJSON_IsObject(item) && !rc)
                rc = score_model(r, item);
        }
    }
    cJSON_Delete(line);
    return rc;
}

static enum err_code score_file(struct reader *r, FILE *f)
{
    enum err_code rc = ERR_NONE;
    char *text = NULL;
    size_t size = 0;

    while (!rc && getline(&text, &size, f) >= 0) {
        r->line++;
        rc = score_line(r, text);
    }
    if (!rc && (ferror(f) || !r->line))
        rc = errs_add(r->errs, ERR_IO, NOWHERE, "cannot read '%s'%s", r->path,
                      ferror(f) ? "" : ": it is empty");
    r->out->questions = r->line;
    free(text);
    return rc;
}

enum err_code recorded_score(const char *path, const struct dataset_rows *test, struct arena *arena,
                             struct recorded *out, struct errs *errs)
{
    struct reader r = {.path = path, .test = test, .arena = arena, .out = out, .errs = errs};
    FILE *f = fopen(path, "r");
    enum err_code rc;

    *out = (struct recorded){.models = 0};
    if (!f)
        return errs_add(errs, ERR_IO, NOWHERE, "cannot read '%s': %s", path, strerror(errno));
    if (arena_init(&r.scratch, scratch_bytes))
        rc = score_file(&r, f);
    else
        rc = errs_add(errs, ERR_NOMEM, NOWHERE, "no memory to read '%s'", path);
    arena_free(&r.scratch);
    (void)fclose(f);
    return rc;
}
