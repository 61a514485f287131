/* compressed-tensors: config_groups.NAME.weights says what the numbers are, "format" how they
 * lie. */
#include "harness/weights/schema_parts.h"

#include <inttypes.h>
#include <string.h>

enum { NVFP4_GROUP = 16 };

/* ---- the config ---- */

static const struct json *first_group(const struct json *c)
{
    const struct json *groups = json_get(c, "config_groups");

    return groups && groups->kind == JSON_OBJECT ? groups->first : NULL;
}

/* Of the whole config, or (mixed files) of its only group. */
const char *ct_format(const struct json *c)
{
    const char *format = json_text(json_get(first_group(c), "format"));

    return format ? format : json_text(json_get(c, "format"));
}

static bool ct_detect(const struct json *c, const char *format, const char *type)
{
    const struct json *weights = json_get(first_group(c), "weights");
    const char *found = ct_format(c);

    return config_says(c, "quant_method", "compressed-tensors") && found &&
           !strcmp(found, format) && config_says(weights, "type", type);
}

bool ct_int_detect(const struct json *c)
{
    return ct_detect(c, "int-quantized", "int") || ct_detect(c, "naive-quantized", "int");
}

bool ct_float_detect(const struct json *c)
{
    return ct_detect(c, "float-quantized", "float") || ct_detect(c, "naive-quantized", "float");
}

bool ct_pack_detect(const struct json *c)
{
    return ct_detect(c, "pack-quantized", "int");
}

bool ct_nvfp4_detect(const struct json *c)
{
    return ct_detect(c, "nvfp4-pack-quantized", "float");
}

bool ct_mxfp4_detect(const struct json *c)
{
    return ct_detect(c, "mxfp4-pack-quantized", "float");
}

/* Groups choose layers by class names and regular expressions; one group takes all. */
static enum err_code only_group(struct work *w, const struct json **weights)
{
    const struct json *groups = json_get(w->r->config, "config_groups"), *order;

    if (groups->count != 1)
        return CONFIG_BAD(w, "%s: %zu config_groups, but only one can be told to hold for a layer",
                          w->schema->name, groups->count);
    *weights = json_get(groups->first, "weights");
    order = json_get(*weights, "actorder");
    if (order && order->kind != JSON_NULL && !config_says(*weights, "actorder", "weight") &&
        !config_says(*weights, "actorder", "static"))
        return CONFIG_BAD(w, "%s: actorder: weights in activation order have no standard form",
                          w->schema->name);
    return ERR_NONE;
}

/* "strategy" to scale type and group. */
static enum err_code set_strategy(struct work *w, const struct json *weights)
{
    if (config_says(weights, "strategy", "tensor")) {
        w->out->scale = REF_SCALE_TENSOR;
        w->out->bs = dtype_find("f32");
        w->factor = FACTOR_SCALE;
        return ERR_NONE;
    }
    if (config_says(weights, "strategy", "channel")) {
        w->out->scale = REF_SCALE_CHANNEL;
        return ERR_NONE;
    }
    if (config_says(weights, "strategy", "group"))
        return config_group(w, weights, "group_size");
    if (config_says(weights, "strategy", "block"))
        return config_blocks(w, weights, "block_structure");
    return CONFIG_BAD(w, "%s: the strategy is not known (tensor, channel, group, block)",
                      w->schema->name);
}

static enum err_code integer_settings(struct work *w, const struct json *weights)
{
    char name[8] = "uint0";
    int64_t bits;
    bool sym;

    TRY(config_integer(w, weights, "num_bits", 1, 8, &bits));
    TRY(config_flag(w, weights, "symmetric", &sym));
    TRY(set_strategy(w, weights));
    if (!sym && w->out->scale == REF_SCALE_BLOCK)
        return CONFIG_BAD(w, "%s: zero points of blocks have no standard form", w->schema->name);
    name[4] = (char)('0' + bits);
    w->bits = (int)bits;
    w->zeros = !sym;
    w->out->b = dtype_find(name);
    w->out->zero = sym ? REF_ZERO_NONE : REF_ZERO_INT;
    return ERR_NONE;
}

enum err_code ct_int_settings(struct work *w)
{
    const struct json *weights = NULL;

    TRY(only_group(w, &weights));
    return integer_settings(w, weights);
}

enum err_code ct_pack_settings(struct work *w)
{
    const struct json *weights = NULL;

    TRY(only_group(w, &weights));
    return integer_settings(w, weights);
}

enum err_code ct_float_settings(struct work *w)
{
    const struct json *weights = NULL;
    int64_t bits;

    TRY(only_group(w, &weights));
    TRY(config_integer(w, weights, "num_bits", 8, 8, &bits));
    w->out->b = dtype_find("float8e4m3");
    return set_strategy(w, weights);
}

static enum err_code set_fp4(struct work *w, const char *bs, int64_t group)
{
    const struct json *weights = NULL;
    int64_t bits, stated;

    TRY(only_group(w, &weights));
    TRY(config_integer(w, weights, "num_bits", 4, 4, &bits));
    TRY(config_integer(w, weights, "group_size", group, group, &stated));
    w->out->b = dtype_find("float4e2m1");
    w->out->bs = dtype_find(bs);
    w->out->scale = REF_SCALE_GROUP;
    w->out->group = group;
    return ERR_NONE;
}

/* value = fp4 x weight_scale / weight_global_scale: the inverse of ModelOpt's number. */
enum err_code ct_nvfp4_settings(struct work *w)
{
    w->factor = FACTOR_SCALE_2;
    w->inverse = true;
    return set_fp4(w, "e4m3", NVFP4_GROUP);
}

enum err_code ct_mxfp4_settings(struct work *w)
{
    return set_fp4(w, "e8m0", 32);
}

/* ---- shapes ---- */

/* weight_scale as the strategy says: one number, (n) or (n, 1), (n, groups), (blocks, groups). */
static enum err_code scale_shape(struct work *w, struct part *p)
{
    const struct standard *out = w->out;
    int64_t groups = out->group ? (p->k + out->group - 1) / out->group : 1;
    int64_t rows = (p->n + w->stored_group_n - 1) / w->stored_group_n;

    TRY(part_tensor(w, p, ".weight_scale", " F32 F16 BF16 ", true, &p->scale));
    if (out->scale == REF_SCALE_TENSOR) {
        TRY(part_factor(w, p, p->scale));
        p->scale = NULL;
        return ERR_NONE;
    }
    if (out->scale != REF_SCALE_CHANNEL || p->scale->rank != 1 || p->scale->elements != p->n)
        TRY(part_matrix(w, p, p->scale, rows, groups));
    return out->scale == REF_SCALE_BLOCK ? ERR_NONE : part_scale_format(w, p);
}

static enum err_code matrix_shape(struct work *w, struct part *p)
{
    if (p->main->rank != 2)
        return PART_BAD(w, p, "%s: tensor '%s' is no matrix", w->schema->name, p->main->name);
    p->n = p->main->shape[0];
    p->k = p->main->shape[1];
    return ERR_NONE;
}

enum err_code ct_float_shape(struct work *w, struct part *p)
{
    TRY(matrix_shape(w, p));
    return scale_shape(w, p);
}

/* Zero points: one for the tensor, or a matrix like that of the scales. */
enum err_code ct_int_shape(struct work *w, struct part *p)
{
    int64_t groups;

    TRY(matrix_shape(w, p));
    TRY(scale_shape(w, p));
    TRY(part_tensor(w, p, ".weight_zero_point", " I8 ", w->zeros, &p->zero));
    groups = w->out->group ? (p->k + w->out->group - 1) / w->out->group : 1;
    if (!p->zero || (w->out->scale == REF_SCALE_TENSOR && p->zero->elements == 1))
        return ERR_NONE;
    if (w->out->scale == REF_SCALE_BLOCK) { /* symmetric: nothing that counts */
        p->zero = NULL;
        return ERR_NONE;
    }
    if (!w->out->group && p->zero->rank == 1 && p->zero->elements == p->n)
        return ERR_NONE;
    return part_matrix(w, p, p->zero, p->n, groups);
}

/* Older files let no code straddle words, newer ones pack densely (a difference for 3, 5, 6 and 7
 * bits): the number of words tells which. */
static enum err_code find_packing(struct work *w, const struct part *p, const struct tensor *t,
                                  int dimension, int64_t n, bool *is_dense)
{
    int64_t dense = words_of(n, w->bits, true), loose = words_of(n, w->bits, false);
    int64_t words = t->rank == 2 ? t->shape[dimension] : -1;
    bool same = 32 % w->bits == 0 || n <= 32 / w->bits;

    *is_dense = words == dense;
    if (words != dense && words != loose)
        return PART_BAD(w, p,
                        "%s: tensor '%s' has %" PRId64 " words for %" PRId64
                        " codes of %d bits, not %" PRId64,
                        w->schema->name, t->name, words, n, w->bits, dense);
    if (dense == loose && !same)
        return PART_BAD(w, p,
                        "%s: tensor '%s': both packings of %" PRId64
                        " codes of %d bits take as many words",
                        w->schema->name, t->name, n, w->bits);
    return ERR_NONE;
}

/* weight_shape holds n and k, which the words alone do not tell. */
static enum err_code stated_shape(struct work *w, struct part *p)
{
    const struct tensor *shape, *order;

    TRY(part_tensor(w, p, ".weight_shape", " I64 I32 ", true, &shape));
    TRY(part_tensor(w, p, ".weight_g_idx", " I32 I64 ", false, &order));
    if (order)
        return PART_BAD(w, p, "%s: tensor '%s': weights in activation order have no standard form",
                        w->schema->name, order->name);
    if (shape->elements != 2 || p->main->rank != 2)
        return PART_BAD(w, p, "%s: tensor '%s' is no pair of sizes, or '%s' no matrix",
                        w->schema->name, shape->name, p->main->name);
    p->n = tensor_integer(shape, 0);
    p->k = tensor_integer(shape, 1);
    if (p->n != p->main->shape[0] || p->k < 1 || p->k > INT64_C(1) << 40)
        return PART_BAD(
            w, p, "%s: tensor '%s' says %" PRId64 "x%" PRId64 ", but '%s' has %" PRId64 " rows",
            w->schema->name, shape->name, p->n, p->k, p->main->name, p->main->shape[0]);
    return ERR_NONE;
}

enum err_code ct_pack_shape(struct work *w, struct part *p)
{
    int64_t groups;

    TRY(stated_shape(w, p));
    TRY(find_packing(w, p, p->main, 1, p->k, &p->dense));
    TRY(scale_shape(w, p));
    if (!w->zeros) /* stored or not, they do not count */
        return ERR_NONE;
    TRY(part_tensor(w, p, ".weight_zero_point", " I32 ", true, &p->zero));
    TRY(find_packing(w, p, p->zero, 0, p->n, &p->zero_dense));
    groups = w->out->group ? (p->k + w->out->group - 1) / w->out->group : 1;
    return part_matrix(w, p, p->zero, p->zero->shape[0], groups);
}

enum err_code ct_nvfp4_shape(struct work *w, struct part *p)
{
    const struct tensor *factor;

    TRY(fp4_shape(w, p, " F8_E4M3 ", NVFP4_GROUP));
    TRY(part_tensor(w, p, ".weight_global_scale", " F32 ", true, &factor));
    return part_factor(w, p, factor);
}

/* ---- rows ---- */

static int signed_byte(const struct tensor *t, int64_t i)
{
    int byte = (int)tensor_code(t, i);

    return byte < 128 ? byte : byte - 256;
}

enum err_code ct_int_fill(struct work *w, const struct part *p)
{
    int64_t groups = standard_groups(w->out);
    int half = 1 << (w->bits - 1);

    for (int64_t row = 0; row < p->n; row++)
        for (int64_t l = 0; l < p->k; l++)
            put_signed(w, p, row, l, signed_byte(p->main, row * p->k + l));
    if (p->scale)
        put_scales(w, p);
    for (int64_t row = 0; p->zero && row < p->n; row++)
        for (int64_t g = 0; g < groups; g++)
            put_zero(w, p, row, g,
                     half + signed_byte(p->zero, p->zero->elements == 1 ? 0 : row * groups + g));
    return ERR_NONE;
}

/* Codes and zero points are stored offset-binary already. */
enum err_code ct_pack_fill(struct work *w, const struct part *p)
{
    int64_t groups = standard_groups(w->out), words = p->main->shape[1];

    for (int64_t row = 0; row < p->n; row++)
        get_codes(w, &(struct words){p->main, row * words, 1, words}, p->k, p->dense,
                  w->out->codes + (p->row + row) * p->k);
    if (p->scale)
        put_scales(w, p);
    for (int64_t g = 0; p->zero && g < groups; g++) {
        get_codes(w, &(struct words){p->zero, g, groups, p->zero->shape[0]}, p->n, p->zero_dense,
                  w->row);
        for (int64_t row = 0; row < p->n; row++)
            put_zero(w, p, row, g, w->row[row]);
    }
    return ERR_NONE;
}
