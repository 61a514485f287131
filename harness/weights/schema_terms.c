#include "harness/weights/schema_terms.h"

#include "harness/weights/schema_parts.h"

static const struct schema *find_schema(const struct json *config)
{
    for (int i = 0; i < schema_count; i++)
        if (schemas[i].detect(config))
            return &schemas[i];
    return NULL;
}

enum err_code schema_read_terms(const struct json *config, const char *file, struct arena *arena,
                                struct schema_terms *out, struct errs *errs)
{
    static const char *const any[] = {""};
    const struct schema_request request = {
        .config = config, .config_file = file, .form = SCHEMA_EXACT, .layers = any, .count = 1};
    struct standard standard = {.group_n = 1};
    struct work w = {.schema = find_schema(config),
                     .r = &request,
                     .arena = arena,
                     .out = &standard,
                     .errs = errs,
                     .stored_group_n = 1};

    if (!w.schema)
        return errs_add(errs, ERR_CONFIG, place_at(file, 0, 0),
                        "the quantization config is of a method that is not known: %s",
                        schema_method(config, arena));
    TRY(w.schema->settings(&w));
    *out = (struct schema_terms){.schema = w.schema,
                                 .b = standard.b,
                                 .bs = standard.bs,
                                 .scale = standard.scale,
                                 .group = standard.group,
                                 .group_n = standard.group_n,
                                 .zeros = w.zeros,
                                 .scale_2 = w.factor == FACTOR_SCALE_2};
    return ERR_NONE;
}
