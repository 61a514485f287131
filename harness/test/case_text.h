/* case_text.h - for tests: configurations written as "key=value key=value", and random ones.
 */
#ifndef HARNESS_TEST_CASE_TEXT_H
#define HARNESS_TEST_CASE_TEXT_H

#include "harness/config/axes.h"
#include "reference/dtype.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

/* A value of an axis, "auto" included; a text that is none fails the test. */
static inline int64_t case_value(enum axis_id x, const char *text)
{
    int64_t value = 0;
    char buf[200];
    const char *expected;

    if (!strcmp(text, "auto"))
        return AXIS_AUTO;
    if (axes[x].kind == AXIS_WEIGHT && !dtype_find_weight(text) && dtype_find(text))
        return dtype_find(text) - dtypes; /* what no suite can say, the rules must refuse */
    expected = axis_parse(&axes[x], text, &value, buf, sizeof buf);
    ck_assert_msg(!expected, "%s=%s: expected %s", axes[x].key, text, expected);
    return value;
}

/* All defaults, and for the axes without one a product that is legal. */
static inline void case_defaults(int64_t v[AX_COUNT])
{
    for (int x = 0; x < AX_COUNT; x++)
        if (axes[x].fallback)
            v[x] = case_value((enum axis_id)x, axes[x].fallback);
    v[AX_A] = case_value(AX_A, "f16");
    v[AX_B] = case_value(AX_B, "uint4");
    v[AX_M] = 32;
    v[AX_N] = v[AX_K] = 1024;
    v[AX_CHECK] = case_value(AX_CHECK, "exact");
}

/* Changes the axes that `text` names. */
static inline void case_set(int64_t v[AX_COUNT], const char *text)
{
    char key[64], value[64];
    int used = 0;

    for (; sscanf(text, " %63[^= ]=%63s%n", key, value, &used) == 2; text += used) {
        int x = axis_find(key);

        ck_assert_msg(x >= 0, "no axis '%s'", key);
        v[x] = case_value((enum axis_id)x, value);
    }
    ck_assert_msg(!*text, "cannot read '%s'", text);
}

/* A linear congruential generator (Knuth, MMIX): 31 bits. */
static inline uint64_t case_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* Values that rules look at, in any combination: sizes and tiles near their limits, every word,
 * every format. */
static inline int64_t case_random_value(enum axis_id x, uint64_t *state)
{
    static const int64_t sizes[] = {0, 1, 2, 8, 16, 32, 64, 96, 128, 256, 1000, 1024, 4096};
    const int n = sizeof sizes / sizeof sizes[0];
    const struct axis *axis = &axes[x];
    uint64_t r = case_random(state);
    int64_t words_of = 1; /* every list has one */

    switch (axis->kind) {
    case AXIS_INT:
        r = (uint64_t)sizes[r % (uint64_t)n];
        return (int64_t)r < axis->min ? axis->min : (int64_t)r > axis->max ? axis->max : (int64_t)r;
    case AXIS_BOOL:
        return (int64_t)(r & 1);
    case AXIS_WORD:
        while (axis->words[words_of])
            words_of++;
        return (int64_t)r % words_of;
    case AXIS_FORMAT:
    case AXIS_WEIGHT:
        return (int64_t)r % dtype_count;
    case AXIS_TILE:
        if (r % 4 == 3)
            return AXIS_AUTO;
        return axis_tile(sizes[1 + r % 12], sizes[1 + r / 16 % 12], sizes[1 + r / 256 % 12]);
    case AXIS_SEED:
        return (int64_t)r;
    }
    return 0;
}

#endif
