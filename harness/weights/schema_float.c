/* FP8, MXFP4 (plain and gpt-oss), and ModelOpt's NVFP4 and MXFP8. */
#include "harness/weights/schema_parts.h"

#include <inttypes.h>
#include <string.h>

enum { MX_GROUP = 32, NVFP4_GROUP = 16 };

/* Codes as they are stored, group or block scales as they are stored. */
enum err_code float_fill(struct work *w, const struct part *p)
{
    put_codes(w, p);
    if (p->scale)
        put_scales(w, p);
    return ERR_NONE;
}

/* ---- FP8: weight (n, k); weight_scale of the tensor or (n) or (n, 1), or weight_scale_inv of
 * blocks (which is the scale, not its inverse, whatever its name says) ---- */

bool fp8_detect(const struct json *c)
{
    return config_says(c, "quant_method", "fp8");
}

enum err_code fp8_settings(struct work *w)
{
    const struct json *size = json_get(w->r->config, "weight_block_size");

    w->out->b = dtype_find("float8e4m3");
    w->out->bs = dtype_find("f32");
    w->out->scale = REF_SCALE_TENSOR;
    if (!size || size->kind == JSON_NULL)
        return ERR_NONE;
    return config_blocks(w, w->r->config, "weight_block_size");
}

static enum err_code fp8_blocks(struct work *w, struct part *p)
{
    int64_t rows = (p->n + w->stored_group_n - 1) / w->stored_group_n;

    TRY(part_tensor(w, p, ".weight_scale_inv", " F32 F16 BF16 ", false, &p->scale));
    if (!p->scale)
        TRY(part_tensor(w, p, ".weight_scale", " F32 F16 BF16 ", true, &p->scale));
    TRY(part_matrix(w, p, p->scale, rows, (p->k + w->out->group - 1) / w->out->group));
    return w->blocks_repeated ? part_scale_format(w, p) : ERR_NONE;
}

/* One scale a row, or one a part: all parts must agree. */
static enum err_code fp8_rows(struct work *w, struct part *p)
{
    bool first = p == w->parts;
    bool tensor;

    TRY(part_tensor(w, p, ".weight_scale", " F32 F16 BF16 ", true, &p->scale));
    tensor = p->scale->elements == 1;
    if (!first && tensor != (w->factor == FACTOR_SCALE))
        return PART_BAD(w, p, "fp8: some parts of the layer have one scale a row, some have one");
    if (tensor) {
        w->factor = FACTOR_SCALE;
        TRY(part_factor(w, p, p->scale));
        p->scale = NULL;
        return ERR_NONE;
    }
    if (p->scale->rank != 1 || p->scale->elements != p->n)
        TRY(part_matrix(w, p, p->scale, p->n, 1));
    w->out->scale = REF_SCALE_CHANNEL;
    w->out->bs = first ? NULL : w->out->bs;
    return part_scale_format(w, p);
}

enum err_code fp8_shape(struct work *w, struct part *p)
{
    if (p->main->rank != 2)
        return PART_BAD(w, p, "%s: tensor '%s' is no matrix", w->schema->name, p->main->name);
    p->n = p->main->shape[0];
    p->k = p->main->shape[1];
    return w->out->group ? fp8_blocks(w, p) : fp8_rows(w, p);
}

/* ---- four-bit floats: (n, k / 2) bytes, or (n, k) of F4, and one scale a group ---- */

enum err_code fp4_shape(struct work *w, struct part *p, const char *scale_formats, int64_t group)
{
    int64_t per_element = tensor_is(p->main, " F4 ") ? 1 : 2;

    if (p->main->rank != 2 || __builtin_mul_overflow(p->main->shape[1], per_element, &p->k) ||
        p->k % group)
        return PART_BAD(w, p, "%s: tensor '%s' is no matrix of whole groups of %" PRId64,
                        w->schema->name, p->main->name, group);
    p->n = p->main->shape[0];
    TRY(part_tensor(w, p, ".weight_scale", scale_formats, true, &p->scale));
    return part_matrix(w, p, p->scale, p->n, p->k / group);
}

static enum err_code set_groups(struct work *w, const char *b, const char *bs, int64_t group)
{
    w->out->b = dtype_find(b);
    w->out->bs = dtype_find(bs);
    w->out->scale = REF_SCALE_GROUP;
    w->out->group = group;
    return ERR_NONE;
}

bool mxfp4_detect(const struct json *c)
{
    return config_says(c, "quant_method", "mxfp4");
}

enum err_code mxfp4_settings(struct work *w)
{
    return set_groups(w, "float4e2m1", "e8m0", MX_GROUP);
}

enum err_code mxfp4_shape(struct work *w, struct part *p)
{
    return fp4_shape(w, p, " U8 F8_E8M0 ", MX_GROUP);
}

/* gpt-oss: NAME_blocks (experts, n, k / 32, 16) and NAME_scales (experts, n, k / 32). */
enum err_code gpt_oss_shape(struct work *w, struct part *p)
{
    const int64_t *s = p->main->shape, *t;

    if (p->main->rank != 4 || s[3] != MX_GROUP / 2 || s[0] < 1 ||
        __builtin_mul_overflow(s[2], MX_GROUP, &p->k))
        return PART_BAD(w, p, "%s: tensor '%s' is not (experts, n, k / 32, 16)", w->schema->name,
                        p->main->name);
    p->n = s[1];
    w->out->experts = s[0];
    TRY(part_tensor(w, p, "_scales", " U8 F8_E8M0 ", true, &p->scale));
    t = p->scale->shape;
    if (p->scale->rank != 3 || t[0] != s[0] || t[1] != s[1] || t[2] != s[2])
        return PART_BAD(w, p, "%s: tensor '%s' has not one scale for each block of '%s'",
                        w->schema->name, p->scale->name, p->main->name);
    return ERR_NONE;
}

/* ---- ModelOpt ---- */

static bool modelopt_says(const struct json *c, const char *algorithm)
{
    const char *method = json_text(json_get(c, "quant_method"));

    return (!method || !strncmp(method, "modelopt", 8)) && config_says(c, "quant_algo", algorithm);
}

bool modelopt_nvfp4_detect(const struct json *c)
{
    return modelopt_says(c, "NVFP4");
}

bool modelopt_mxfp8_detect(const struct json *c)
{
    return modelopt_says(c, "MXFP8");
}

/* value = fp4 x weight_scale x weight_scale_2. */
enum err_code modelopt_nvfp4_settings(struct work *w)
{
    int64_t group;

    if (json_get(w->r->config, "group_size"))
        TRY(config_integer(w, w->r->config, "group_size", NVFP4_GROUP, NVFP4_GROUP, &group));
    w->factor = FACTOR_SCALE_2;
    return set_groups(w, "float4e2m1", "e4m3", NVFP4_GROUP);
}

enum err_code modelopt_nvfp4_shape(struct work *w, struct part *p)
{
    const struct tensor *factor;

    TRY(fp4_shape(w, p, " F8_E4M3 ", NVFP4_GROUP));
    TRY(part_tensor(w, p, ".weight_scale_2", " F32 ", true, &factor));
    return part_factor(w, p, factor);
}

enum err_code modelopt_mxfp8_settings(struct work *w)
{
    return set_groups(w, "float8e4m3", "e8m0", MX_GROUP);
}

enum err_code modelopt_mxfp8_shape(struct work *w, struct part *p)
{
    if (p->main->rank != 2 || p->main->shape[1] % MX_GROUP)
        return PART_BAD(w, p, "%s: tensor '%s' is no matrix of whole groups of %d", w->schema->name,
                        p->main->name, (int)MX_GROUP);
    p->n = p->main->shape[0];
    p->k = p->main->shape[1];
    TRY(part_tensor(w, p, ".weight_scale", " U8 F8_E8M0 ", true, &p->scale));
    return part_matrix(w, p, p->scale, p->n, p->k / MX_GROUP);
}
