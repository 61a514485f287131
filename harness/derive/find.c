/* Which file describes the model of a configuration. */
#include "harness/derive/derive.h"

#include <string.h>
#include <unistd.h>

/* "a/b/c.yaml": "a/b"; "c.yaml": ".". */
static const char *folder_of(const char *path, struct arena *arena)
{
    const char *slash = strrchr(path, '/');

    return slash ? arena_printf(arena, "%.*s", (int)(slash - path), path) : ".";
}

/* The folder beside `folder` that is called models. */
static const char *models_beside(const char *folder, struct arena *arena)
{
    const char *slash = strrchr(folder, '/'), *last = slash ? slash + 1 : folder;
    int before = (int)(last - folder);

    if (!strcmp(folder, "."))
        return "../models";
    if (last[0] == '.' || !*last)
        return arena_printf(arena, "%s/../models", folder);
    return arena_printf(arena, "%.*smodels", before, folder);
}

static enum err_code no_memory(struct errs *errs)
{
    return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the model");
}

static enum err_code load_dims(const struct eval_config *c, const char *folder, struct arena *arena,
                               struct model *out, struct errs *errs)
{
    const char *path = arena_printf(arena, "%s/%s", folder, c->dims.text);

    if (!path)
        return no_memory(errs);
    if (access(path, R_OK) != 0)
        return errs_add(errs, ERR_CONFIG, c->dims.at, "dims: there is no file '%s'", path);
    return model_load(path, folder_of(path, arena), arena, out, errs);
}

enum err_code derive_model(const struct eval_config *c, const char *json, struct arena *arena,
                           struct model *out, struct errs *errs)
{
    const char *beside = folder_of(c->path, arena), *folder, *path;

    if (json)
        return model_load_json(json, arena, out, errs);
    if (!beside)
        return no_memory(errs);
    if (c->dims.text)
        return load_dims(c, beside, arena, out, errs);
    folder = models_beside(beside, arena);
    if (!folder)
        return no_memory(errs);
    path = model_path(folder, c->model_name.text, arena);
    if (!path || access(path, R_OK) != 0)
        return errs_add(errs, ERR_CONFIG, c->model_name.at,
                        "the layers of the model '%.80s' are not known: there is no file '%s/"
                        "%.80s.yaml'; --model-config takes the model's config.json",
                        c->model_name.text, folder, c->model_name.text);
    TRY(model_load(path, folder, arena, out, errs));
    if (strcmp(out->name, c->model_name.text) != 0)
        return errs_add(errs, ERR_CONFIG, out->name_at, "this file is of the model '%.80s'",
                        out->name);
    return ERR_NONE;
}
