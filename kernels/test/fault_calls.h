/* fault_calls.h - calls whose results a fault of the operations changes, for test_faults_ops.
 *
 * The process_input part of them; and what all calls share: their data and what they wrote. */
#ifndef KERNELS_TEST_FAULT_CALLS_H
#define KERNELS_TEST_FAULT_CALLS_H

#include "kernels/cpu/fault.h"
#include "kernels/cpu/ops.h"
#include "kernels/test/ops_tensor.h"

#include <math.h>

#define F(id) HUM_FAULT_##id

/* All that a call wrote, one tensor behind the other. */
struct bytes {
    unsigned char at[1 << 16];
    size_t count;
};

static inline void keep(struct bytes *b, const struct hum_tensor *t)
{
    if (!t->bytes)
        return;
    ck_assert(tensor_guard_intact(t));
    ck_assert_uint_le(b->count + t->bytes, sizeof b->at);
    memcpy(b->at + b->count, t->data, t->bytes);
    b->count += t->bytes;
    free(t->data);
}

/* ---- data ------------------------------------------------------------------------------------ */

enum { ROWS = 12, COLS = 64, GROUP = 8 };
enum data { RANDOM, STEPS, MINUS_ZERO, WITH_NAN, TIED, TINY };

/* STEPS: quarters from -8 to 8. TIED: a row has the scale 2 row + 3, as the largest value is 127
 * times that and the others lie between two multiples. */
static inline float value_of(enum data data, int64_t row, int64_t col, uint64_t *state)
{
    const float x = random_unit(state), scale = (float)(2 * row + 3);

    switch (data) {
    case RANDOM:
        return x;
    case STEPS:
        return 0.25f * (float)(col % 65 - 32);
    case MINUS_ZERO:
        return -0.0f;
    case WITH_NAN:
        return col % GROUP == 3 ? (float)NAN : x;
    case TIED:
        return col == 0 ? 127 * scale : ((float)col + 0.5f) * scale;
    case TINY:
        return x * 0x1p-20f;
    }
    return x;
}

static inline struct hum_tensor inputs_of(enum data data, int32_t dtype, int64_t rows, int64_t cols)
{
    struct hum_tensor t = tensor_make(dtype, 2, rows, cols, 0);
    float *to = t.data;
    uint64_t state = 3;

    for (int64_t i = 0; i < rows * cols; i++)
        to[i] = value_of(data, i / cols, i % cols, &state);
    return t;
}

/* The calls of process_input; 0 <= i < fault_input_count. */
extern const int fault_input_count;
enum hum_fault fault_input_fault(int i);
void fault_input_run(int i, struct bytes *out);

#endif
