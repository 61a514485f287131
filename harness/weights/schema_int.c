/* GPTQ, AWQ, AutoRound (which stores as one of them) and BitNet. */
#include "harness/weights/schema_parts.h"

#include <inttypes.h>
#include <string.h>

/* ---- GPTQ: qweight (k bits / 32, n) and qzeros (groups, n bits / 32), streams along k and n
 * ---- */

bool gptq_detect(const struct json *c)
{
    if (json_get(c, "quant_method"))
        return config_says(c, "quant_method", "gptq");
    return json_get(c, "desc_act") != NULL; /* quantize_config.json of older files */
}

static bool known_bits(int64_t bits)
{
    return bits == 2 || bits == 3 || bits == 4 || bits == 8;
}

static enum err_code set_integer(struct work *w, int64_t bits, bool zeros)
{
    char name[8] = "uint0";

    if (!known_bits(bits))
        return CONFIG_BAD(w, "%s: %" PRId64 " bits are not known (2, 3, 4, 8)", w->schema->name,
                          bits);
    name[4] = (char)('0' + bits);
    w->bits = (int)bits;
    w->zeros = zeros;
    w->out->b = dtype_find(name);
    w->out->zero = zeros ? REF_ZERO_INT : REF_ZERO_NONE;
    return ERR_NONE;
}

/* Keys "+:REGEX" of GPTQModel's "dynamic" give single layers other settings. */
static bool has_overrides(const struct json *config)
{
    const struct json *dynamic = json_get(config, "dynamic");

    for (const struct json *m = dynamic ? dynamic->first : NULL; m; m = m->next)
        if (!m->key || m->key[0] != '-')
            return true;
    return false;
}

enum err_code gptq_settings(struct work *w)
{
    const struct json *c = w->r->config, *format = json_get(c, "checkpoint_format");
    int64_t bits;
    bool sym;

    TRY(config_integer(w, c, "bits", 1, 32, &bits));
    TRY(config_group(w, c, "group_size"));
    TRY(config_flag(w, c, "sym", &sym));
    if (config_true(c, "desc_act"))
        return CONFIG_BAD(w, "gptq: desc_act is true: weights in activation order have no standard "
                             "form");
    if (has_overrides(c))
        return CONFIG_BAD(w, "gptq: settings of single layers (\"dynamic\") are not known");
    if (format && !config_says(c, "checkpoint_format", "gptq") &&
        !config_says(c, "checkpoint_format", "gptq_v2"))
        return CONFIG_BAD(w, "gptq: the checkpoint_format is not known (gptq, gptq_v2)");
    w->zero_plus = config_says(c, "checkpoint_format", "gptq_v2") ? 0 : 1;
    return set_integer(w, bits, !sym);
}

/* g_idx[l] is the group of column l: without activation order, l / group. */
static enum err_code check_order(struct work *w, const struct part *p)
{
    const struct tensor *t;
    int64_t group = w->out->group ? w->out->group : p->k;

    TRY(part_tensor(w, p, ".g_idx", " I32 ", false, &t));
    if (t && (t->rank != 1 || t->elements != p->k))
        return PART_BAD(w, p, "gptq: tensor '%s' has not one number for each k", t->name);
    for (int64_t l = 0; t && l < p->k; l++)
        if (tensor_code(t, l) != (uint64_t)(l / group))
            return PART_BAD(w, p,
                            "gptq: tensor '%s' puts k = %" PRId64 " into group %" PRIu32
                            ": weights in activation order have no standard form",
                            t->name, l, tensor_code(t, l));
    return ERR_NONE;
}

/* Groups along k of this part. */
static int64_t groups_of(const struct work *w, const struct part *p)
{
    return w->out->group ? (p->k + w->out->group - 1) / w->out->group : 1;
}

enum err_code gptq_shape(struct work *w, struct part *p)
{
    int64_t bits;

    if (p->main->rank != 2 || __builtin_mul_overflow(p->main->shape[0], 32, &bits) ||
        bits % w->bits)
        return PART_BAD(w, p, "gptq: tensor '%s' is no matrix of whole columns of %d bits",
                        p->main->name, w->bits);
    p->k = bits / w->bits;
    p->n = p->main->shape[1];
    TRY(part_tensor(w, p, ".scales", " F16 BF16 F32 ", true, &p->scale));
    TRY(part_matrix(w, p, p->scale, groups_of(w, p), p->n));
    TRY(part_scale_format(w, p));
    TRY(part_tensor(w, p, ".qzeros", " I32 ", w->zeros, &p->zero));
    if (p->zero && p->n % (w->bits == 3 ? 32 : 32 / w->bits))
        return PART_BAD(w, p,
                        "gptq: n = %" PRId64 " zero points of %d bits do not fill whole words",
                        p->n, w->bits);
    TRY(part_matrix(w, p, p->zero, groups_of(w, p), words_of(p->n, w->bits, true)));
    return check_order(w, p);
}

enum err_code gptq_fill(struct work *w, const struct part *p)
{
    int64_t words = p->main->shape[0];

    for (int64_t row = 0; row < p->n; row++)
        get_codes(w, &(struct words){p->main, row, p->n, words}, p->k, true,
                  w->out->codes + (p->row + row) * p->k);
    put_scales_transposed(w, p);
    words = words_of(p->n, w->bits, true);
    for (int64_t g = 0; p->zero && g < groups_of(w, p); g++) {
        get_codes(w, &(struct words){p->zero, g * words, 1, words}, p->n, true, w->row);
        for (int64_t row = 0; row < p->n; row++)
            put_zero(w, p, row, g, w->row[row]);
    }
    return ERR_NONE;
}

/* ---- AWQ: qweight (k, n / 8) and qzeros (groups, n / 8), eight columns a word, interleaved
 * ---- */

/* Column j of eight lies in nibble awq_order[j]. Source: AutoAWQ packs columns 0 2 4 6 1 3 5 7. */
static const int awq_order[8] = {0, 4, 1, 5, 2, 6, 3, 7};

bool awq_detect(const struct json *c)
{
    if (json_get(c, "quant_method"))
        return config_says(c, "quant_method", "awq");
    return json_get(c, "w_bit") != NULL; /* quant_config.json of older files */
}

static bool awq_version_known(const struct json *c)
{
    return !json_get(c, "version") || config_says(c, "version", "gemm") ||
           config_says(c, "version", "GEMM");
}

enum err_code awq_settings(struct work *w)
{
    const struct json *c = w->r->config;
    bool old = json_get(c, "w_bit") != NULL, zeros;
    int64_t bits;

    TRY(config_integer(w, c, old ? "w_bit" : "bits", 1, 32, &bits));
    TRY(config_group(w, c, old ? "q_group_size" : "group_size"));
    TRY(config_flag(w, c, "zero_point", &zeros));
    if (bits != 4)
        return CONFIG_BAD(w, "awq: %" PRId64 " bits are not known (4)", bits);
    if (!awq_version_known(c))
        return CONFIG_BAD(w, "awq: the version of the packing is not known (gemm)");
    return set_integer(w, bits, zeros);
}

enum err_code awq_shape(struct work *w, struct part *p)
{
    if (p->main->rank != 2 || __builtin_mul_overflow(p->main->shape[1], 8, &p->n))
        return PART_BAD(w, p, "awq: tensor '%s' is no matrix", p->main->name);
    p->k = p->main->shape[0];
    TRY(part_tensor(w, p, ".scales", " F16 BF16 F32 ", true, &p->scale));
    TRY(part_matrix(w, p, p->scale, groups_of(w, p), p->n));
    TRY(part_scale_format(w, p));
    TRY(part_tensor(w, p, ".qzeros", " I32 ", w->zeros, &p->zero));
    return part_matrix(w, p, p->zero, groups_of(w, p), p->main->shape[1]);
}

static int awq_code(uint32_t word, int64_t column)
{
    return (int)(word >> awq_order[column % 8] * 4 & 15u);
}

enum err_code awq_fill(struct work *w, const struct part *p)
{
    int64_t words = p->n / 8;

    for (int64_t l = 0; l < p->k; l++)
        for (int64_t row = 0; row < p->n; row++)
            w->out->codes[(p->row + row) * p->k + l] =
                (uint8_t)awq_code(tensor_code(p->main, l * words + row / 8), row);
    put_scales_transposed(w, p);
    for (int64_t g = 0; p->zero && g < groups_of(w, p); g++)
        for (int64_t row = 0; row < p->n; row++)
            put_zero(w, p, row, g, awq_code(tensor_code(p->zero, g * words + row / 8), row));
    return ERR_NONE;
}

/* ---- AutoRound: its own config, the tensors of GPTQ (v1) or AWQ ---- */

static bool autoround_packing(const struct json *c, const char *packing)
{
    bool ours = config_says(c, "quant_method", "auto-round") ||
                config_says(c, "quant_method", "auto_round");

    return ours && config_says(c, "packing_format", packing);
}

bool autoround_gptq_detect(const struct json *c)
{
    return autoround_packing(c, "auto_round:auto_gptq");
}

bool autoround_awq_detect(const struct json *c)
{
    return autoround_packing(c, "auto_round:auto_awq");
}

/* A setting of one layer: extra_config.LAYER.KEY, else that of the model. */
static const struct json *autoround_of(const struct work *w, size_t part, const char *key)
{
    const struct json *extra = json_get(w->r->config, "extra_config");

    extra = json_get(extra, w->r->layers[part]);
    return json_get(extra, key) ? extra : w->r->config;
}

static enum err_code check_autoround(struct work *w)
{
    const struct json *c = w->r->config;
    int64_t act_bits = 16;

    if (json_get(c, "data_type") && !config_says(c, "data_type", "int"))
        return CONFIG_BAD(w, "%s: the data_type is not known (int)", w->schema->name);
    if (json_get(c, "act_bits"))
        TRY(config_integer(w, c, "act_bits", 1, 64, &act_bits));
    if (act_bits < 16)
        return CONFIG_BAD(w, "%s: activations of %" PRId64 " bits are not known (16)",
                          w->schema->name, act_bits);
    return ERR_NONE;
}

struct autoround {
    int64_t bits, group;
    bool sym;
};

static enum err_code read_autoround(struct work *w, size_t part, struct autoround *out)
{
    TRY(config_integer(w, autoround_of(w, part, "bits"), "bits", 1, 32, &out->bits));
    TRY(config_group(w, autoround_of(w, part, "group_size"), "group_size"));
    TRY(config_flag(w, autoround_of(w, part, "sym"), "sym", &out->sym));
    out->group = w->out->group;
    return ERR_NONE;
}

enum err_code autoround_settings(struct work *w)
{
    bool awq = w->schema->detect == autoround_awq_detect;
    struct autoround first = {0}, other = {0};

    TRY(check_autoround(w));
    TRY(read_autoround(w, 0, &first));
    for (size_t i = 1; i < w->r->count; i++) {
        TRY(read_autoround(w, i, &other));
        if (other.bits != first.bits || other.sym != first.sym || other.group != first.group)
            return CONFIG_BAD(w, "%s: layers '%s' and '%s' have different settings",
                              w->schema->name, w->r->layers[0], w->r->layers[i]);
    }
    if (awq && first.bits != 4)
        return CONFIG_BAD(w, "%s: %" PRId64 " bits are not known (4)", w->schema->name, first.bits);
    w->zero_plus = awq ? 0 : 1;
    return set_integer(w, first.bits, !first.sym);
}

/* ---- BitNet: weight (n / 4, k) bytes, 2 bits a weight, row block i of four in bits 2 i ---- */

bool bitnet_detect(const struct json *c)
{
    return config_says(c, "quant_method", "bitnet");
}

/* Stored 0, 1, 2 mean -1, 0, 1. As uint2 (zero 2) that is stored + 1; the model divides its
 * output by weight_scale, so the scale is the inverse. */
enum err_code bitnet_settings(struct work *w)
{
    TRY(set_integer(w, 2, false));
    w->out->scale = REF_SCALE_TENSOR;
    w->out->bs = dtype_find("f32");
    w->factor = FACTOR_SCALE;
    w->inverse = true;
    return ERR_NONE;
}

enum err_code bitnet_shape(struct work *w, struct part *p)
{
    const struct tensor *scale;

    if (p->main->rank != 2 || __builtin_mul_overflow(p->main->shape[0], 4, &p->n))
        return PART_BAD(w, p, "bitnet: tensor '%s' is no matrix", p->main->name);
    p->k = p->main->shape[1];
    TRY(part_tensor(w, p, ".weight_scale", " F32 F16 BF16 ", true, &scale));
    return part_factor(w, p, scale);
}

enum err_code bitnet_fill(struct work *w, const struct part *p)
{
    int64_t rows = p->n / 4;

    for (int64_t row = 0; row < p->n; row++)
        for (int64_t l = 0; l < p->k; l++) {
            uint32_t byte = tensor_code(p->main, row % rows * p->k + l);

            put_signed(w, p, row, l, (int)(byte >> row / rows * 2 & 3u) - 1);
        }
    return ERR_NONE;
}
