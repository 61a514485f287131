/* safetensors.h - the safetensors format: bytes to tensors, every rule checked.
 *
 * A file is 8 bytes N (little endian), N bytes of JSON, and the data. The JSON object gives each
 * tensor's dtype, shape and [begin, end) in the data; "__metadata__" is a map of texts. Rules:
 * N is at most 100,000,000 (upstream's limit) and lies within the file; the JSON starts with
 * '{'; no name stands twice; end - begin is what dtype and shape say; the tensors cover the data
 * without a hole or an overlap. Source: the format's README and reference implementation
 * (huggingface/safetensors). Data need not be aligned: elements are read byte by byte.
 */
#ifndef HARNESS_WEIGHTS_SAFETENSORS_H
#define HARNESS_WEIGHTS_SAFETENSORS_H

#include "harness/core/arena.h"
#include "harness/core/err.h"
#include "harness/weights/json_doc.h"
#include "reference/dtype.h"

#include <stddef.h>
#include <stdint.h>

struct safetensors_format {
    const char *name;  /* "BF16", as files spell it */
    int bits;          /* of an element */
    const char *dtype; /* of reference/dtype.h; NULL: not a format that kernels take */
};

extern const struct safetensors_format safetensors_formats[];
extern const int safetensors_format_count;

struct tensor {
    const char *name;
    const char *file; /* the shard that holds it */
    const struct safetensors_format *format;
    int rank;
    const int64_t *shape; /* row-major; rank 0 is one number */
    int64_t elements;
    const unsigned char *data; /* `bytes` bytes, unaligned, borrowed from the file */
    uint64_t bytes;
    uint64_t at; /* byte of the file where `data` starts */
};

struct safetensors {
    const struct tensor *tensors; /* sorted by name */
    size_t count;
    const struct json *metadata; /* NULL: none */
};

/* The tensors of `size` bytes, which must outlive *out. All mistakes are collected: ERR_CONFIG
 * with sentences that name tensor and byte; ERR_NOMEM. Never reads outside of the bytes. */
MUST_USE enum err_code safetensors_parse(const char *file, const void *bytes, size_t size,
                                         struct arena *arena, struct safetensors *out,
                                         struct errs *errs);

/* NULL: there is none of that name. */
const struct tensor *safetensors_find(const struct safetensors *s, const char *name);

/* The bits of element i, for formats of 4 to 32 bits (4 bits: the low nibble of a byte is the even
 * element); and its value, for formats with a dtype (else NaN). 0 <= i < elements. */
uint32_t tensor_code(const struct tensor *t, int64_t i);
double tensor_value(const struct tensor *t, int64_t i);
/* The same for I64 and I32. */
int64_t tensor_integer(const struct tensor *t, int64_t i);

/* "F16 464x192", "F32 scalar"; `buf` is returned. */
const char *tensor_describe(const struct tensor *t, char *buf, size_t size);

/* Order of tensors by name, for qsort(3). */
int tensor_compare(const void *a, const void *b);

#endif
