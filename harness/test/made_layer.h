/* made_layer.h - layers of checkpoints made in memory by tests; for one program each. */
#ifndef HARNESS_TEST_MADE_LAYER_H
#define HARNESS_TEST_MADE_LAYER_H

#include "harness/test/made_file.h"
#include "harness/weights/schema.h"

/* Of the test at hand. */
static struct arena made_arena;
static struct errs made_errs;

static inline void made_setup(void)
{
    ck_assert(arena_init(&made_arena, (size_t)1 << 28));
}

static inline void made_teardown(void)
{
    errs_free(&made_errs);
    arena_free(&made_arena);
}

enum { PARTS = 3 };

struct made_layer {
    const char *schema, *config;
    const struct made_tensor *tensors;
    int count;
    const char *parts[PARTS]; /* NULL: "a" alone */
    const char *param;
    enum schema_form form;
};

static inline const struct json *made_json(const char *text)
{
    struct json_source src = {.file = "config.json", .text = text, .size = strlen(text)};
    const struct json *j;

    ck_assert_msg(!json_parse(&src, &made_arena, &j, &made_errs), "%s", text);
    return j;
}

/* The schema that takes tensor `PART SUFFIX` for the main one of part "a". */
static inline const struct schema *made_schema(const struct json *config,
                                               const struct safetensors *s, const char *part)
{
    for (size_t i = 0; i < s->count; i++) {
        size_t length = 0;
        const struct schema *found = schema_of(config, &s->tensors[i], &length);

        if (found && length == strlen(part) && !strncmp(s->tensors[i].name, part, length))
            return found;
    }
    return NULL;
}

static inline enum err_code made_convert(const struct made_layer *m, struct standard *out)
{
    static const char *const one[] = {"a", NULL};
    struct made_file f = made_tensors(&made_arena, m->tensors, m->count);
    struct schema_request r = {.layers = m->parts[0] ? m->parts : one, .form = m->form};
    struct safetensors s;
    const struct schema *schema;

    ck_assert_msg(!safetensors_parse("f", f.bytes, f.size, &made_arena, &s, &made_errs), "%s",
                  made_errs.count ? made_errs.items[0].text : "");
    r.from = &s;
    r.config = made_json(m->config);
    r.param = m->param ? dtype_find(m->param) : NULL;
    while (r.count < PARTS && r.layers[r.count])
        r.count++;
    schema = made_schema(r.config, &s, r.layers[0]);
    ck_assert_msg(schema != NULL, "no schema takes %s", m->config);
    ck_assert_str_eq(schema->name, m->schema);
    return schema_convert(schema, &r, &made_arena, out, &made_errs);
}

/* ---- configs ---- */

#define GPTQ(bits, group, sym, more) \
    "{\"quant_method\":\"gptq\",\"bits\":" #bits ",\"group_size\":" #group ",\"sym\":" sym more "}"
#define AWQ(zero, more) \
    "{\"quant_method\":\"awq\",\"bits\":4,\"group_size\":2,\"zero_point\":" zero more "}"
#define ROUND(packing, group, more)                                             \
    "{\"quant_method\":\"auto-round\",\"packing_format\":\"auto_round:" packing \
    "\",\"bits\":4,\"group_size\":" #group ",\"sym\":false,\"data_type\":\"int\"" more "}"
#define CT(format, weights)                                         \
    "{\"quant_method\":\"compressed-tensors\",\"format\":\"" format \
    "\",\"config_groups\":{\"group_0\":{\"targets\":[\"Linear\"],\"weights\":{" weights "}}}}"
#define CT_INT(bits, sym, strategy) \
    "\"type\":\"int\",\"num_bits\":" #bits ",\"symmetric\":" sym ",\"strategy\":\"" strategy "\""
#define CT_FP4(group) "\"type\":\"float\",\"num_bits\":4,\"group_size\":" #group
#define FP8           "{\"quant_method\":\"fp8\"}"
#define FP8_BLOCK     "{\"quant_method\":\"fp8\",\"weight_block_size\":[2,3]}"
#define MXFP4         "{\"quant_method\":\"mxfp4\"}"

#endif
