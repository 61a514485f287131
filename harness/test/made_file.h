/* made_file.h - safetensors files made in memory by tests; for one program each. */
#ifndef HARNESS_TEST_MADE_FILE_H
#define HARNESS_TEST_MADE_FILE_H

#include "harness/core/arena.h"
#include "harness/weights/safetensors.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof(a)[0]))

struct made_tensor {
    const char *name, *dtype, *shape; /* shape as in the header: "[2,3]" */
    const void *data;
    size_t bytes;
};

/* A row for data in an array. */
#define MADE(name, dtype, shape, array)          \
    {                                            \
        name, dtype, shape, array, sizeof(array) \
    }

struct made_file {
    unsigned char *bytes;
    size_t size;
};

/* Header text and data to a file, whatever they say. */
static inline struct made_file made_raw(struct arena *a, const char *header, const void *data,
                                        size_t bytes)
{
    size_t length = strlen(header);
    struct made_file f = {.size = 8 + length + bytes};

    f.bytes = arena_alloc(a, f.size + 1, 1);
    ck_assert_ptr_nonnull(f.bytes);
    for (int i = 0; i < 8; i++)
        f.bytes[i] = (unsigned char)((uint64_t)length >> 8 * i);
    memcpy(f.bytes + 8, header, length);
    if (bytes)
        memcpy(f.bytes + 8 + length, data, bytes);
    return f;
}

static inline struct made_file made_tensors(struct arena *a, const struct made_tensor *t, int count)
{
    const char *header = "{";
    unsigned char *data;
    size_t at = 0, total = 0;

    for (int i = 0; i < count; i++)
        total += t[i].bytes;
    data = arena_alloc(a, total + 1, 1);
    ck_assert_ptr_nonnull(data);
    for (int i = 0; i < count; i++) {
        header = arena_printf(
            a, "%s%s\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}", header,
            i ? "," : "", t[i].name, t[i].dtype, t[i].shape, at, at + t[i].bytes);
        ck_assert_ptr_nonnull(header);
        memcpy(data + at, t[i].data, t[i].bytes);
        at += t[i].bytes;
    }
    header = arena_printf(a, "%s}", header);
    ck_assert_ptr_nonnull(header);
    return made_raw(a, header, data, total);
}

#endif
