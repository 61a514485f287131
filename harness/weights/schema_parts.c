#include "harness/weights/schema_parts.h"

#include "reference/pack.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 64 };

enum err_code parts_no_memory(struct work *w)
{
    return errs_add(w->errs, ERR_NOMEM, NOWHERE, "no memory for layer '%s'", w->r->layers[0]);
}

enum err_code config_integer(struct work *w, const struct json *config, const char *key,
                             int64_t low, int64_t high, int64_t *out)
{
    const struct json *j = json_get(config, key);

    if (!j)
        return CONFIG_BAD(w, "%s: the quantization config has no %s", w->schema->name, key);
    if (!json_integer(j, out) || *out < low || *out > high)
        return CONFIG_BAD(
            w, "%s: %s of the quantization config is no whole number from %" PRId64 " to %" PRId64,
            w->schema->name, key, low, high);
    return ERR_NONE;
}

enum err_code config_flag(struct work *w, const struct json *config, const char *key, bool *out)
{
    const struct json *j = json_get(config, key);

    if (!j || j->kind != JSON_BOOL)
        return CONFIG_BAD(w, "%s: %s of the quantization config is not true or false",
                          w->schema->name, key);
    *out = j->number != 0.0;
    return ERR_NONE;
}

bool config_says(const struct json *config, const char *key, const char *word)
{
    const char *text = json_text(json_get(config, key));

    return text && !strcmp(text, word);
}

bool config_true(const struct json *config, const char *key)
{
    const struct json *j = json_get(config, key);

    return j && (j->kind == JSON_BOOL || j->kind == JSON_NUMBER) && j->number != 0.0;
}

enum err_code config_group(struct work *w, const struct json *config, const char *key)
{
    int64_t group = 0;

    TRY(config_integer(w, config, key, -1, INT32_MAX, &group));
    if (!group)
        return CONFIG_BAD(w, "%s: %s is 0; one group for all of k is written -1", w->schema->name,
                          key);
    w->out->scale = group < 0 ? REF_SCALE_CHANNEL : REF_SCALE_GROUP;
    w->out->group = group < 0 ? 0 : group;
    return ERR_NONE;
}

enum err_code config_blocks(struct work *w, const struct json *config, const char *key)
{
    const struct json *size = json_get(config, key);
    int64_t n, k;

    if (!size || size->kind != JSON_LIST || size->count != 2 || !json_integer(size->first, &n) ||
        !json_integer(size->first->next, &k) || n < 1 || k < 1 || n > INT32_MAX || k > INT32_MAX)
        return CONFIG_BAD(w, "%s: %s is no list of two sizes above 0", w->schema->name, key);
    w->out->group = k;
    w->stored_group_n = n;
    w->blocks_repeated = w->r->form == SCHEMA_UPSTREAM || n == 1;
    w->out->group_n = w->blocks_repeated ? 1 : n;
    w->out->scale = w->blocks_repeated ? REF_SCALE_GROUP : REF_SCALE_BLOCK;
    w->out->bs = w->blocks_repeated ? NULL : dtype_find("f32");
    return ERR_NONE;
}

bool tensor_is(const struct tensor *t, const char *formats)
{
    char word[NAME_BYTES];
    int n = snprintf(word, sizeof word, " %s ", t->format->name);

    return n > 0 && n < NAME_BYTES && strstr(formats, word);
}

enum err_code part_tensor(struct work *w, const struct part *p, const char *suffix,
                          const char *formats, bool must, const struct tensor **out)
{
    const char *name = arena_printf(w->arena, "%s%s", p->name, suffix);
    char text[160];

    if (!name)
        return parts_no_memory(w);
    *out = safetensors_find(w->r->from, name);
    if (!*out && must)
        return errs_add(w->errs, ERR_CONFIG, place_at(p->main ? p->main->file : NULL, 0, 0),
                        "%s: tensor '%s' is missing", w->schema->name, name);
    if (*out && !tensor_is(*out, formats))
        return errs_add(w->errs, ERR_CONFIG, place_at((*out)->file, 0, 0),
                        "%s: tensor '%s' is %s; its format must be one of%s", w->schema->name, name,
                        tensor_describe(*out, text, sizeof text), formats);
    return ERR_NONE;
}

enum err_code part_matrix(struct work *w, const struct part *p, const struct tensor *t,
                          int64_t rows, int64_t cols)
{
    char text[160];

    if (!t || (t->rank == 2 && t->shape[0] == rows && t->shape[1] == cols))
        return ERR_NONE;
    return PART_BAD(w, p, "%s: tensor '%s' is %s, not %" PRId64 "x%" PRId64, w->schema->name,
                    t->name, tensor_describe(t, text, sizeof text), rows, cols);
}

enum err_code part_scale_format(struct work *w, const struct part *p)
{
    const struct dtype *stored = dtype_find(p->scale->format->dtype);
    const struct dtype *bs = w->r->param ? w->r->param : stored;

    if (bs->bits == 32)
        return PART_BAD(w, p,
                        "tensor '%s': F32 scales must be rounded to the parameters' format, but "
                        "the model's torch_dtype is not known (float16 or bfloat16)",
                        p->scale->name);
    if (w->out->bs && w->out->bs != bs)
        return PART_BAD(w, p, "tensor '%s' is %s, but other parts of the layer have %s scales",
                        p->scale->name, bs->name, w->out->bs->name);
    w->out->bs = bs;
    return ERR_NONE;
}

enum err_code part_factor(struct work *w, struct part *p, const struct tensor *t)
{
    char text[160];

    if (t->elements != 1)
        return PART_BAD(w, p, "%s: tensor '%s' is %s, not one number for one matrix",
                        w->schema->name, t->name, tensor_describe(t, text, sizeof text));
    p->factor = tensor_value(t, 0);
    if (w->inverse) {
        float inverse = (float)(1.0 / p->factor);

        w->out->rounded += (double)inverse * p->factor != 1.0;
        p->factor = (double)inverse;
    }
    return ERR_NONE;
}

/* One scale: element i of p->scale to scales[at] (a copy where the formats are the same). */
static void put_scale(struct work *w, const struct part *p, int64_t i, int64_t at)
{
    const struct dtype *to = w->out->bs;
    uint32_t code = tensor_code(p->scale, i);
    const struct dtype *from = dtype_find(p->scale->format->dtype);
    double value;

    if (from == to || !from->is_float) { /* U8 holds bits of e8m0 */
        w->out->scales[at] = code;
        return;
    }
    value = dtype_decode(from, code);
    w->out->scales[at] = dtype_encode(to, value, DTYPE_TO_TOP);
    w->out->rounded += !isnan(value) && dtype_decode(to, w->out->scales[at]) != value;
}

/* Rows of the file's scales per matrix of the part. */
void put_scales(struct work *w, const struct part *p)
{
    const struct standard *out = w->out;
    int64_t groups = standard_groups(out), rows = p->n * standard_matrices(out);
    int64_t stored = w->stored_group_n, step = w->blocks_repeated ? 1 : stored;

    for (int64_t row = 0; row < rows; row += step)
        for (int64_t g = 0; g < groups; g++)
            put_scale(w, p, row / stored * groups + g, (p->row + row) / step * groups + g);
}

void put_scales_transposed(struct work *w, const struct part *p)
{
    int64_t groups = standard_groups(w->out);

    for (int64_t g = 0; g < groups; g++)
        for (int64_t row = 0; row < p->n; row++)
            put_scale(w, p, g * p->n + row, (p->row + row) * groups + g);
}

void put_zero(struct work *w, const struct part *p, int64_t row, int64_t g, int stored)
{
    int zero = stored + w->zero_plus;

    if (!w->zeros) { /* a symmetric layer may store them all the same */
        w->out->zeros_odd += zero != 1 << (w->bits - 1);
        return;
    }
    w->out->zeros_outside += zero < 0 || zero >= 1 << w->bits;
    w->out->zeros[(p->row + row) * standard_groups(w->out) + g] = (uint16_t)zero;
}

void put_signed(struct work *w, const struct part *p, int64_t row, int64_t l, int value)
{
    int code = value + (1 << (w->bits - 1)), mask = (1 << w->bits) - 1;

    w->out->out_of_range += code < 0 || code > mask;
    w->out->codes[(p->row + row) * p->k + l] = (uint8_t)(code & mask);
}

int64_t words_of(int64_t n, int bits, bool dense)
{
    int64_t per_word = 32 / bits;

    return dense ? (int64_t)pack_words((size_t)n, bits) : (n + per_word - 1) / per_word;
}

static void unpack_loose(const struct work *w, int64_t n, uint8_t *out)
{
    int per_word = 32 / w->bits;
    uint32_t mask = (1u << w->bits) - 1u;

    for (int64_t i = 0; i < n; i++)
        out[i] = (uint8_t)(w->words[i / per_word] >> (int)(i % per_word) * w->bits & mask);
}

void get_codes(struct work *w, const struct words *from, int64_t n, bool dense, uint8_t *out)
{
    for (int64_t i = 0; i < from->count; i++)
        w->words[i] = tensor_code(from->t, from->first + i * from->step);
    if (dense)
        unpack_row(w->words, (size_t)n, w->bits, out);
    else
        unpack_loose(w, n, out);
}

void put_codes(struct work *w, const struct part *p)
{
    int64_t count = p->n * standard_matrices(w->out) * p->k;
    uint8_t *codes = w->out->codes + p->row * p->k;

    if (w->out->b->bits == 8) {
        memcpy(codes, p->main->data, (size_t)count);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        codes[i] = p->main->data[i / 2] >> (int)(i % 2) * 4 & 15;
}
