#include "harness/weights/safetensors.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = 8, HEADER_MAX = 100000000 };

/* Source: the reference implementation's list of dtypes. */
/* clang-format off */
const struct safetensors_format safetensors_formats[] = {
    {"F64",         64, NULL},
    {"F32",         32, "f32"},
    {"F16",         16, "f16"},
    {"BF16",        16, "bf16"},
    {"F8_E4M3",      8, "e4m3"},
    {"F8_E5M2",      8, "e5m2"},
    {"F8_E8M0",      8, "e8m0"},
    {"F8_E4M3FNUZ",  8, NULL},
    {"F8_E5M2FNUZ",  8, NULL},
    {"F6_E2M3",      6, NULL},
    {"F6_E3M2",      6, NULL},
    {"F4",           4, "e2m1"},
    {"I64",         64, NULL},
    {"I32",         32, "int32"},
    {"I16",         16, NULL},
    {"I8",           8, "int8"},
    {"U64",         64, NULL},
    {"U32",         32, NULL},
    {"U16",         16, NULL},
    {"U8",           8, "uint8"},
    {"BOOL",         8, NULL},
    {"C64",         64, NULL},
};
/* clang-format on */
const int safetensors_format_count = sizeof safetensors_formats / sizeof safetensors_formats[0];

struct reader {
    const char *file;
    const unsigned char *data; /* what follows the header */
    uint64_t data_at, data_bytes;
    struct arena *arena;
    struct errs *errs;
};

static struct place here(const struct reader *r)
{
    return place_at(r->file, 0, 0);
}

static enum err_code no_memory(const struct reader *r)
{
    return errs_add(r->errs, ERR_NOMEM, here(r), "no memory for the header");
}

static const struct safetensors_format *format_find(const char *name)
{
    for (int i = 0; name && i < safetensors_format_count; i++)
        if (!strcmp(safetensors_formats[i].name, name))
            return &safetensors_formats[i];
    return NULL;
}

static enum err_code read_shape(const struct reader *r, const struct json *j, struct tensor *t)
{
    int64_t *shape;

    if (!j || j->kind != JSON_LIST)
        return errs_add(r->errs, ERR_CONFIG, here(r), "tensor '%s' has no shape, a list of sizes",
                        t->name);
    shape = arena_alloc(r->arena, j->count, sizeof *shape);
    if (!shape)
        return no_memory(r);
    t->shape = shape;
    t->elements = 1;
    for (const struct json *m = j->first; m; m = m->next) {
        if (!json_integer(m, &shape[t->rank]))
            return errs_add(r->errs, ERR_CONFIG, here(r),
                            "tensor '%s': a size of its shape is no whole number", t->name);
        if (__builtin_mul_overflow(t->elements, shape[t->rank++], &t->elements))
            return errs_add(r->errs, ERR_CONFIG, here(r),
                            "tensor '%s': the product of its sizes overflows 63 bits", t->name);
    }
    return ERR_NONE;
}

/* data_offsets: [begin, end) in the data. */
static enum err_code read_offsets(const struct reader *r, const struct json *j, struct tensor *t)
{
    int64_t begin, end;

    if (!j || j->kind != JSON_LIST || j->count != 2 || !json_integer(j->first, &begin) ||
        !json_integer(j->first->next, &end))
        return errs_add(r->errs, ERR_CONFIG, here(r),
                        "tensor '%s' has no data_offsets, a list of begin and end", t->name);
    if (begin > end)
        return errs_add(r->errs, ERR_CONFIG, here(r),
                        "tensor '%s': data_offsets begin (%" PRId64 ") behind their end (%" PRId64
                        ")",
                        t->name, begin, end);
    if ((uint64_t)end > r->data_bytes)
        return errs_add(r->errs, ERR_CONFIG, here(r),
                        "tensor '%s' ends at byte %" PRIu64 ", but the file has %" PRIu64 " bytes",
                        t->name, r->data_at + (uint64_t)end, r->data_at + r->data_bytes);
    t->data = r->data + begin;
    t->bytes = (uint64_t)(end - begin);
    t->at = r->data_at + (uint64_t)begin;
    return ERR_NONE;
}

static enum err_code check_size(const struct reader *r, const struct tensor *t)
{
    int64_t bits;

    if (__builtin_mul_overflow(t->elements, t->format->bits, &bits))
        return errs_add(r->errs, ERR_CONFIG, here(r), "tensor '%s' has more than 2^63 bits",
                        t->name);
    if (bits % 8)
        return errs_add(r->errs, ERR_CONFIG, here(r),
                        "tensor '%s': %" PRId64 " elements of %d bits do not fill whole bytes",
                        t->name, t->elements, t->format->bits);
    if ((uint64_t)bits / 8 != t->bytes)
        return errs_add(r->errs, ERR_CONFIG, here(r),
                        "tensor '%s' has %" PRIu64 " bytes at byte %" PRIu64
                        ", but %s and its shape need %" PRIu64,
                        t->name, t->bytes, t->at, t->format->name, (uint64_t)bits / 8);
    return ERR_NONE;
}

static enum err_code check_keys(const struct reader *r, const struct json *j, const char *name)
{
    for (const struct json *m = j->first; m; m = m->next)
        if (strcmp(m->key, "dtype") != 0 && strcmp(m->key, "shape") != 0 &&
            strcmp(m->key, "data_offsets") != 0)
            return errs_add(r->errs, ERR_CONFIG, here(r),
                            "tensor '%s' has a key '%s' that the format does not know", name,
                            m->key);
    return ERR_NONE;
}

static enum err_code read_tensor(const struct reader *r, const struct json *j, struct tensor *t)
{
    const char *dtype = json_text(json_get(j, "dtype"));

    *t = (struct tensor){.name = j->key, .file = r->file, .format = format_find(dtype)};
    if (j->kind != JSON_OBJECT)
        return errs_add(r->errs, ERR_CONFIG, here(r), "tensor '%s' is no JSON object", t->name);
    TRY(check_keys(r, j, t->name));
    if (!t->format)
        return errs_add(r->errs, ERR_CONFIG, here(r), "tensor '%s' has %s%s%s", t->name,
                        dtype ? "the unknown dtype '" : "no dtype", dtype ? dtype : "",
                        dtype ? "'" : "");
    TRY(read_shape(r, json_get(j, "shape"), t));
    TRY(read_offsets(r, json_get(j, "data_offsets"), t));
    return check_size(r, t);
}

static enum err_code check_metadata(const struct reader *r, const struct json *j)
{
    if (j->kind != JSON_OBJECT)
        return errs_add(r->errs, ERR_CONFIG, here(r), "__metadata__ is no JSON object");
    for (const struct json *m = j->first; m; m = m->next)
        if (m->kind != JSON_TEXT)
            return errs_add(r->errs, ERR_CONFIG, here(r),
                            "__metadata__: the value of '%s' is no text", m->key);
    return ERR_NONE;
}

static int compare_begin(const void *a, const void *b)
{
    const struct tensor *x = a, *y = b;

    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes); /* empty ones first */
}

int tensor_compare(const void *a, const void *b)
{
    const struct tensor *x = a, *y = b;

    return strcmp(x->name, y->name);
}

/* Sorted by begin, each tensor must start where the one before ended, and the last one must end
 * with the file. */
static enum err_code check_cover(const struct reader *r, struct tensor *t, size_t n)
{
    uint64_t next = r->data_at, end = r->data_at + r->data_bytes;
    enum err_code rc = ERR_NONE;

    qsort(t, n, sizeof *t, compare_begin);
    for (size_t i = 0; i < n; i++) {
        if (t[i].at > next)
            rc = errs_add(r->errs, ERR_CONFIG, here(r),
                          "bytes %" PRIu64 " to %" PRIu64 " before tensor '%s' belong to no tensor",
                          next, t[i].at - 1, t[i].name);
        else if (t[i].at < next)
            rc = errs_add(r->errs, ERR_CONFIG, here(r),
                          "tensor '%s' starts at byte %" PRIu64 " inside tensor '%s'", t[i].name,
                          t[i].at, t[i - 1].name);
        if (t[i].at + t[i].bytes > next)
            next = t[i].at + t[i].bytes;
    }
    if (next < end)
        rc = errs_add(r->errs, ERR_CONFIG, here(r),
                      "bytes %" PRIu64 " to %" PRIu64 " at the end belong to no tensor", next,
                      end - 1);
    return rc;
}

static enum err_code read_tensors(const struct reader *r, const struct json *root,
                                  struct safetensors *out)
{
    struct tensor *tensors = arena_alloc(r->arena, root->count, sizeof *tensors);
    enum err_code rc = ERR_NONE;
    size_t n = 0;

    if (!tensors)
        return no_memory(r);
    for (const struct json *m = root->first; m; m = m->next) {
        bool metadata = !strcmp(m->key, "__metadata__");
        enum err_code got = metadata ? check_metadata(r, m) : read_tensor(r, m, &tensors[n++]);

        rc = rc ? rc : got;
        if (metadata)
            out->metadata = m;
    }
    TRY(rc);
    TRY(check_cover(r, tensors, n));
    qsort(tensors, n, sizeof *tensors, tensor_compare);
    out->tensors = tensors;
    out->count = n;
    return ERR_NONE;
}

static uint64_t little_endian(const unsigned char *p, int bytes)
{
    uint64_t x = 0;

    for (int i = bytes; i-- > 0;)
        x = x << 8 | p[i];
    return x;
}

enum err_code safetensors_parse(const char *file, const void *bytes, size_t size,
                                struct arena *arena, struct safetensors *out, struct errs *errs)
{
    const unsigned char *p = bytes;
    struct place at = place_at(file, 0, 0);
    struct reader r = {.file = file, .arena = arena, .errs = errs};
    struct json_source src = {.file = file, .at = LENGTH_BYTES, .natural = true};
    const struct json *root;
    uint64_t length;

    *out = (struct safetensors){0};
    if (size < LENGTH_BYTES)
        return errs_add(errs, ERR_CONFIG, at, "%zu bytes are no safetensors file", size);
    length = little_endian(p, LENGTH_BYTES);
    if (length > HEADER_MAX)
        return errs_add(errs, ERR_CONFIG, at,
                        "a header of %" PRIu64 " bytes is above the format's limit of %d", length,
                        (int)HEADER_MAX);
    if (length > size - LENGTH_BYTES)
        return errs_add(errs, ERR_CONFIG, at,
                        "the header of %" PRIu64 " bytes does not fit in a file of %zu bytes",
                        length, size);
    if (!length || p[LENGTH_BYTES] != '{')
        return errs_add(errs, ERR_CONFIG, at, "byte 8: the header does not start with '{'");
    src.text = (const char *)p + LENGTH_BYTES;
    src.size = (size_t)length;
    TRY(json_parse(&src, arena, &root, errs));
    r.data_at = LENGTH_BYTES + length;
    r.data = p + r.data_at;
    r.data_bytes = size - r.data_at;
    return read_tensors(&r, root, out);
}

const struct tensor *safetensors_find(const struct safetensors *s, const char *name)
{
    const struct tensor key = {.name = name};

    return s->count ? bsearch(&key, s->tensors, s->count, sizeof key, tensor_compare) : NULL;
}

uint32_t tensor_code(const struct tensor *t, int64_t i)
{
    size_t at = (size_t)i;

    if (t->format->bits == 4)
        return (uint32_t)t->data[at / 2] >> at % 2 * 4 & 15u;
    return (uint32_t)little_endian(t->data + at * (size_t)(t->format->bits / 8),
                                   t->format->bits / 8);
}

double tensor_value(const struct tensor *t, int64_t i)
{
    const struct dtype *d = t->format->dtype ? dtype_find(t->format->dtype) : NULL;

    return d ? dtype_decode(d, tensor_code(t, i)) : (double)NAN;
}

int64_t tensor_integer(const struct tensor *t, int64_t i)
{
    int bytes = t->format->bits / 8;
    uint64_t x = little_endian(t->data + (size_t)i * (size_t)bytes, bytes);

    return bytes == 4 ? (int32_t)(uint32_t)x : (int64_t)x;
}

const char *tensor_describe(const struct tensor *t, char *buf, size_t size)
{
    int used = snprintf(buf, size, "%s%s", t->format->name, t->rank ? "" : " scalar");

    for (int i = 0; i < t->rank && used >= 0 && (size_t)used < size; i++)
        used += snprintf(buf + used, size - (size_t)used, "%c%" PRId64, i ? 'x' : ' ', t->shape[i]);
    return buf;
}
