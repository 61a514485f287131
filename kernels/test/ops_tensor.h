/* ops_tensor.h - tensors for tests of operations, with guards behind them.
 *
 * A tensor is filled with POISON, and so are the GUARD bytes behind it: what was not written can be
 * seen. Fails the running Check test when memory is out.
 */
#ifndef KERNELS_TEST_OPS_TENSOR_H
#define KERNELS_TEST_OPS_TENSOR_H

#include "kernels/abi/humming.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { POISON = 0xa5, GUARD = 64 };

/* Check notes every assertion on disk; millions of them are noted only when they fail. */
#define REQUIRE(condition, ...)        \
    do {                               \
        if (!(condition))              \
            ck_abort_msg(__VA_ARGS__); \
    } while (0)

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

/* `size` counts bytes for 4-bit formats, which are packed. Freed with free(data). */
static inline struct hum_tensor tensor_make(int32_t dtype, int32_t rank, int64_t size0,
                                            int64_t size1, int64_t size2)
{
    struct hum_tensor t = {.dtype = dtype, .rank = rank, .shape = {size0, size1, size2}};
    const int bits = hum_dtype_bits(dtype);
    size_t room;

    t.bytes = bits < 8 ? 1 : (size_t)bits / 8;
    for (int32_t i = 0; i < rank; i++)
        t.bytes *= (size_t)t.shape[i];
    room = (t.bytes + GUARD + 63) / 64 * 64;
    t.data = aligned_alloc(64, room);
    ck_assert_ptr_nonnull(t.data);
    memset(t.data, POISON, room);
    return t;
}

static inline bool tensor_guard_intact(const struct hum_tensor *t)
{
    const unsigned char *bytes = t->data;

    for (size_t i = 0; bytes && i < GUARD; i++)
        if (bytes[t->bytes + i] != POISON)
            return false;
    return true;
}

static inline bool tensor_untouched(const struct hum_tensor *t)
{
    const unsigned char *bytes = t->data;

    for (size_t i = 0; i < t->bytes; i++)
        if (bytes[i] != POISON)
            return false;
    return true;
}

static inline struct hum_tensor tensor_copy(const struct hum_tensor *t)
{
    struct hum_tensor copy = *t;
    const size_t room = (t->bytes + GUARD + 63) / 64 * 64;

    copy.data = aligned_alloc(64, room);
    ck_assert_ptr_nonnull(copy.data);
    memcpy(copy.data, t->data, t->bytes + GUARD);
    return copy;
}

static inline bool tensor_equal(const struct hum_tensor *x, const struct hum_tensor *y)
{
    return memcmp(x->data, y->data, x->bytes) == 0;
}

/* splitmix64 (Vigna) */
static inline uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* A number in [-1, 1), of 24 bits. */
static inline float random_unit(uint64_t *state)
{
    return (float)((int32_t)(next_random(state) >> 39) - (1 << 24)) * 0x1p-24f;
}

#endif
