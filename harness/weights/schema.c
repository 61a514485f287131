#include "harness/weights/schema_parts.h"

#include <inttypes.h>
#include <string.h>

#define GPTQ "AutoGPTQ and GPTQModel: v1 stores zero points less one, v2 as they are"
#define AWQ  "AutoAWQ, version gemm: the columns of a word are interleaved"
#define CT   "compressed-tensors (vLLM project)"
#define OCP  "OCP Microscaling Formats (MX) 1.0; the low nibble is the even k"

/* The first row whose config and main tensor fit counts. */
/* clang-format off */
const struct schema schemas[] = {
    {"gptq", ".qweight", " I32 ", " .scales .qzeros .g_idx ",
     gptq_detect, gptq_settings, gptq_shape, gptq_fill, GPTQ},
    {"awq", ".qweight", " I32 ", " .scales .qzeros ",
     awq_detect, awq_settings, awq_shape, awq_fill, AWQ},
    {"autoround gptq", ".qweight", " I32 ", " .scales .qzeros .g_idx ",
     autoround_gptq_detect, autoround_settings, gptq_shape, gptq_fill, "AutoRound; " GPTQ},
    {"autoround awq", ".qweight", " I32 ", " .scales .qzeros ",
     autoround_awq_detect, autoround_settings, awq_shape, awq_fill, "AutoRound; " AWQ},
    {"fp8", ".weight", " F8_E4M3 ", " .weight_scale .weight_scale_inv ",
     fp8_detect, fp8_settings, fp8_shape, float_fill, "Transformers fine-grained FP8; vLLM fp8"},
    {"mxfp4", ".weight", " U8 I8 F4 ", " .weight_scale ",
     mxfp4_detect, mxfp4_settings, mxfp4_shape, float_fill, OCP},
    {"gpt-oss mxfp4", "_blocks", " U8 ", "_scales ",
     mxfp4_detect, mxfp4_settings, gpt_oss_shape, float_fill, "gpt-oss model card; " OCP},
    {"int-quantized", ".weight", " I8 ", " .weight_scale .weight_zero_point ",
     ct_int_detect, ct_int_settings, ct_int_shape, ct_int_fill, CT},
    {"float-quantized", ".weight", " F8_E4M3 ", " .weight_scale ",
     ct_float_detect, ct_float_settings, ct_float_shape, float_fill, CT},
    {"pack-quantized", ".weight_packed", " I32 ",
     " .weight_scale .weight_zero_point .weight_shape .weight_g_idx ",
     ct_pack_detect, ct_pack_settings, ct_pack_shape, ct_pack_fill, CT},
    {"nvfp4-pack-quantized", ".weight_packed", " U8 ", " .weight_scale .weight_global_scale ",
     ct_nvfp4_detect, ct_nvfp4_settings, ct_nvfp4_shape, float_fill,
     CT ": weights are divided by the global scale"},
    {"mxfp4-pack-quantized", ".weight_packed", " U8 ", " .weight_scale ",
     ct_mxfp4_detect, ct_mxfp4_settings, mxfp4_shape, float_fill, CT "; " OCP},
    {"modelopt nvfp4", ".weight", " U8 F4 ", " .weight_scale .weight_scale_2 ",
     modelopt_nvfp4_detect, modelopt_nvfp4_settings, modelopt_nvfp4_shape, float_fill,
     "NVIDIA Model Optimizer: weights are multiplied by weight_scale_2"},
    {"modelopt mxfp8", ".weight", " F8_E4M3 ", " .weight_scale ",
     modelopt_mxfp8_detect, modelopt_mxfp8_settings, modelopt_mxfp8_shape, float_fill,
     "NVIDIA Model Optimizer; " OCP},
    {"bitnet", ".weight", " U8 ", " .weight_scale ",
     bitnet_detect, bitnet_settings, bitnet_shape, bitnet_fill,
     "Transformers BitNet: four blocks of rows share the bytes"},
};
/* clang-format on */
const int schema_count = sizeof schemas / sizeof schemas[0];

/* ".weight" is also the name of what is not quantized: there the format decides. Other names belong
 * to a schema alone: a wrong format is refused in the conversion. */
static bool is_main(const struct schema *s, const struct tensor *t)
{
    return strcmp(s->main, ".weight") != 0 || tensor_is(t, s->formats);
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);

    return n > m && !strcmp(s + n - m, end);
}

const struct schema *schema_of(const struct json *config, const struct tensor *t, size_t *length)
{
    for (int i = 0; i < schema_count; i++) {
        const struct schema *s = &schemas[i];

        if (!ends_with(t->name, s->main) || !is_main(s, t) || !s->detect(config))
            continue;
        *length = strlen(t->name) - strlen(s->main);
        return s;
    }
    return NULL;
}

bool schema_knows(const struct json *config)
{
    for (int i = 0; i < schema_count; i++)
        if (schemas[i].detect(config))
            return true;
    return false;
}

const char *schema_method(const struct json *config, struct arena *arena)
{
    const char *method = json_text(json_get(config, "quant_method"));
    const char *format = ct_format(config);
    const char *text;

    if (method && format)
        text = arena_printf(arena, "%s %s", method, format);
    else if (method)
        text = method;
    else
        text = gptq_detect(config)                                              ? "gptq"
               : awq_detect(config)                                             ? "awq"
               : modelopt_nvfp4_detect(config) || modelopt_mxfp8_detect(config) ? "modelopt"
                                                                                : "unknown method";
    return text ? text : "unknown method";
}

/* The arrays, once all sizes are known. Scales of blocks that are repeated, and factors, have their
 * final form already, or get it in finish(). */
static enum err_code allocate(struct work *w)
{
    struct standard *out = w->out;
    int64_t rows = 0, weights, zeros;
    size_t longest;

    if (__builtin_mul_overflow(out->n, standard_matrices(out), &rows) ||
        __builtin_mul_overflow(rows, out->k, &weights) ||
        __builtin_mul_overflow(rows, standard_groups(out), &zeros))
        return parts_no_memory(w);
    longest = (size_t)(out->n > out->k ? out->n : out->k);
    out->codes = arena_zalloc(w->arena, (size_t)weights, 1);
    out->scales = arena_zalloc(w->arena, (size_t)standard_scale_count(out), sizeof *out->scales);
    if (w->zeros)
        out->zeros = arena_zalloc(w->arena, (size_t)zeros, sizeof *out->zeros);
    w->words = arena_alloc(w->arena, longest + 1, sizeof *w->words);
    w->row = arena_alloc(w->arena, longest + 1, 1);
    if (!out->codes || !out->scales || (w->zeros && !out->zeros) || !w->words || !w->row)
        return parts_no_memory(w);
    return ERR_NONE;
}

static uint32_t f32_code(double x)
{
    float f = (float)x;
    uint32_t code;

    memcpy(&code, &f, sizeof code);
    return code;
}

static bool equal_factors(const struct work *w)
{
    for (size_t i = 1; i < w->r->count; i++)
        if (f32_code(w->parts[i].factor) != f32_code(w->parts[0].factor))
            return false;
    return true;
}

static uint32_t rounded(struct work *w, const struct dtype *t, double x)
{
    uint32_t code = dtype_encode(t, x, DTYPE_TO_TOP);

    w->out->rounded += dtype_decode(t, code) != x;
    return code;
}

static enum err_code need_param(struct work *w)
{
    if (w->r->param)
        return ERR_NONE;
    return CONFIG_BAD(w,
                      "layer '%s': its scales must be rounded to the parameters' format, but the "
                      "model's torch_dtype is not known (float16 or bfloat16)",
                      w->r->layers[0]);
}

/* Tensor scales: one number if all parts have the same (and the form is exact), else a channel
 * scale a row, rounded to the parameters' format. */
static enum err_code finish_scale(struct work *w)
{
    struct standard *out = w->out;

    if (equal_factors(w) && w->r->form == SCHEMA_EXACT) {
        out->scales[0] = f32_code(w->parts[0].factor);
        return ERR_NONE;
    }
    TRY(need_param(w));
    out->scale = REF_SCALE_CHANNEL;
    out->bs = w->r->param;
    out->scales = arena_alloc(w->arena, (size_t)out->n, sizeof *out->scales);
    if (!out->scales)
        return parts_no_memory(w);
    for (size_t i = 0; i < w->r->count; i++) {
        const struct part *p = &w->parts[i];

        for (int64_t row = p->row; row < p->row + p->n; row++)
            out->scales[row] = rounded(w, out->bs, p->factor);
    }
    return ERR_NONE;
}

/* Global scales: one weight_scale_2 if all parts have the same, else they are folded into the group
 * scales, which become numbers of the parameters' format: RN(scale x factor), one rounding. (The
 * product has 4 + 24 significant bits: exact in double.) */
static enum err_code finish_scale_2(struct work *w)
{
    struct standard *out = w->out;
    const struct dtype *stored = out->bs;
    int64_t groups = standard_groups(out);

    if (equal_factors(w)) {
        out->scale_2 = REF_SCALE_2_TENSOR;
        out->scale_2_code = f32_code(w->parts[0].factor);
        return ERR_NONE;
    }
    TRY(need_param(w));
    out->bs = w->r->param;
    for (size_t i = 0; i < w->r->count; i++) {
        const struct part *p = &w->parts[i];

        for (int64_t j = p->row * groups; j < (p->row + p->n) * groups; j++)
            out->scales[j] = rounded(w, out->bs, dtype_decode(stored, out->scales[j]) * p->factor);
    }
    return ERR_NONE;
}

static enum err_code finish(struct work *w)
{
    switch (w->factor) {
    case FACTOR_NONE:
        break;
    case FACTOR_SCALE:
        return finish_scale(w);
    case FACTOR_SCALE_2:
        return finish_scale_2(w);
    }
    return ERR_NONE;
}

/* A part fits below the ones before it. */
static enum err_code check_part(struct work *w, const struct part *p)
{
    const struct standard *out = w->out;
    bool first = p == w->parts;

    if (p->n < 1 || p->k < 1)
        return PART_BAD(w, p, "layer '%s' has no weights", p->name);
    if (!first && p->k != out->k)
        return PART_BAD(w, p, "layer '%s' has k = %" PRId64 ", but '%s' has %" PRId64, p->name,
                        p->k, w->parts[0].name, out->k);
    if (!first && out->experts)
        return PART_BAD(w, p, "layer '%s': experts in one tensor cannot be parts of a layer",
                        p->name);
    if (out->scale == REF_SCALE_BLOCK && p->row % out->group_n)
        return PART_BAD(w, p,
                        "layer '%s' starts at row %" PRId64 " inside a block of %" PRId64 " rows",
                        p->name, p->row, out->group_n);
    return ERR_NONE;
}

static enum err_code read_shapes(struct work *w)
{
    struct standard *out = w->out;

    for (size_t i = 0; i < w->r->count; i++) {
        struct part *p = &w->parts[i];

        *p = (struct part){.name = w->r->layers[i], .row = out->n, .dense = true, .factor = 1.0};
        TRY(part_tensor(w, p, w->schema->main, w->schema->formats, true, &p->main));
        TRY(w->schema->shape(w, p));
        TRY(check_part(w, p));
        if (__builtin_add_overflow(out->n, p->n, &out->n))
            return parts_no_memory(w);
        out->k = p->k;
    }
    return ERR_NONE;
}

enum err_code schema_convert(const struct schema *schema, const struct schema_request *r,
                             struct arena *arena, struct standard *out, struct errs *errs)
{
    struct work w = {.schema = schema, .r = r, .arena = arena, .out = out, .errs = errs};

    *out = (struct standard){.group_n = 1};
    w.stored_group_n = 1;
    w.parts = ARENA_NEW(arena, r->count, struct part);
    if (!w.parts)
        return parts_no_memory(&w);
    TRY(schema->settings(&w));
    TRY(read_shapes(&w));
    TRY(allocate(&w));
    for (size_t i = 0; i < r->count; i++)
        TRY(schema->fill(&w, &w.parts[i]));
    return finish(&w);
}
