/* wrong_routing.h - for tests: providers that are wrong with experts in one way each, in what they
 * write or in what they accept.
 *
 * Each is the cpu provider and one fault more.
 */
#ifndef HARNESS_TEST_WRONG_ROUTING_H
#define HARNESS_TEST_WRONG_ROUTING_H

#include "harness/test/case_run.h"

/* ---- who has which row ---- */

static int64_t layout_at(const struct hum_gemm_args *args, int64_t i)
{
    const struct hum_tensor *t = &args->expert_layout;

    return t->dtype == HUM_INT64 ? ((const int64_t *)t->data)[i] : ((const int32_t *)t->data)[i];
}

static int64_t experts_of(const struct hum_gemm_args *args)
{
    return args->layer->num_experts;
}

static int64_t padded_of(const struct hum_gemm_args *args)
{
    return *(const int32_t *)args->num_tokens_padded.data;
}

static bool is_indexed(const struct hum_gemm_args *args)
{
    return args->compute->gemm_type == HUM_GEMM_INDEXED;
}

/* The place of an output row among the sorted ids; -1: it has none. */
static int64_t place_of(const struct hum_gemm_args *args, int64_t row)
{
    const int32_t *ids = args->sorted_ids.data, *experts = args->expert_ids.data;

    for (int64_t i = 0; i < padded_of(args); i++)
        if (ids[i] == row && experts[i / args->tuning->block_m] >= 0)
            return i;
    return -1;
}

/* The expert of an output row; -1: none. */
static int64_t expert_of(const struct hum_gemm_args *args, int64_t row)
{
    int64_t experts = experts_of(args), each = args->inputs.shape[0] / experts;

    if (is_indexed(args)) {
        int64_t at = place_of(args, row);

        return at < 0 ? -1 : ((const int32_t *)args->expert_ids.data)[at / args->tuning->block_m];
    }
    if (args->compute->gemm_type == HUM_GEMM_GROUPED_MASKED)
        return row % each < layout_at(args, row / each) ? row / each : -1;
    for (int64_t e = 0; e < experts; e++)
        if (row < layout_at(args, e + 1))
            return e;
    return -1;
}

/* The first row from `from` on that an expert has, or (`had` false) that none has; -1: none. */
static int64_t next_row(const struct hum_gemm_args *args, int64_t from, bool had)
{
    for (int64_t i = from; i < rows_of(args); i++)
        if ((expert_of(args, i) >= 0) == had)
            return i;
    return -1;
}

static int64_t rows_with(const struct hum_gemm_args *args, int64_t e)
{
    int64_t count = 0;

    for (int64_t i = 0; i < rows_of(args); i++)
        count += expert_of(args, i) == e;
    return count;
}

static uint16_t *row_at(const struct hum_gemm_args *args, int64_t row)
{
    return outputs_of(args) + row * columns_of(args);
}

static bool is_nan_row(const struct hum_gemm_args *args, int64_t row)
{
    return (row_at(args, row)[0] & 0x7fff) > 0x7c00;
}

/* ---- providers that are wrong ---- */

/* Right, then one fault. `fault` sees only calls that were accepted and have rows. */
#define WRONG(name, fault)                                                    \
    static enum hum_code name(void *handle, const struct hum_gemm_args *args, \
                              char reason[HUM_REASON_BYTES])                  \
    {                                                                         \
        enum hum_code rc = hum_cpu_provider.forward(handle, args, reason);    \
                                                                              \
        if (rc == HUM_OK && rows_of(args))                                    \
            fault(args);                                                      \
        return rc;                                                            \
    }

static void write_untouched(const struct hum_gemm_args *args)
{
    int64_t row = next_row(args, 0, false);

    if (row >= 0)
        row_at(args, row)[3] = 0x3c00;
}
WRONG(writes_untouched, write_untouched)

static void write_poison(const struct hum_gemm_args *args) /* the first poison hides it */
{
    int64_t row = next_row(args, 0, false);

    if (row >= 0)
        row_at(args, row)[3] = 0xffff;
}
WRONG(writes_poison, write_poison)

/* A NaN in the next row of the same expert, or (`same` false) in a row of another one. */
static void flip_beside_nan(const struct hum_gemm_args *args, bool same)
{
    for (int64_t i = 0; i < rows_of(args); i++) {
        int64_t e = expert_of(args, i);

        if (e < 0 || is_nan_row(args, i))
            continue;
        for (int64_t j = i + 1; j < rows_of(args); j++)
            if (expert_of(args, j) >= 0 && (expert_of(args, j) == e) == same &&
                is_nan_row(args, j)) {
                row_at(args, i)[1] ^= 1;
                break;
            }
    }
}

static void flip_beside_own(const struct hum_gemm_args *args)
{
    flip_beside_nan(args, true);
}
WRONG(reads_neighbour, flip_beside_own)

static void flip_beside_others(const struct hum_gemm_args *args)
{
    flip_beside_nan(args, false);
}
WRONG(reads_other_expert, flip_beside_others)

/* 0 x NaN of the row of A behind an expert's last. */
static void read_behind_expert(const struct hum_gemm_args *args)
{
    const uint16_t *a = args->inputs.data;
    int64_t m = args->inputs.shape[0], k = args->inputs.shape[1];

    for (int64_t i = 0; i + 1 < m; i++)
        if (expert_of(args, i) >= 0 && expert_of(args, i + 1) < 0 &&
            (a[(i + 1) * k] & 0x7fff) > 0x7c00)
            row_at(args, i)[4] ^= 1;
}
WRONG(reads_behind_expert, read_behind_expert)

/* An expert's tile is another one where it has few rows. */
static void flip_few(const struct hum_gemm_args *args)
{
    int64_t row = next_row(args, 0, true);

    if (row >= 0 && rows_with(args, expert_of(args, row)) < 4)
        row_at(args, row)[5] ^= 1;
}
WRONG(depends_on_count, flip_few)

/* Rows of expert e > 0 depend on whether e - 1 has any. */
static void flip_behind_empty(const struct hum_gemm_args *args)
{
    for (int64_t e = 1; e < experts_of(args); e++)
        for (int64_t i = 0; rows_with(args, e - 1) == 0 && i < rows_of(args); i++)
            if (expert_of(args, i) == e)
                row_at(args, i)[6] ^= 1;
}
WRONG(depends_on_empty, flip_behind_empty)

/* The second half of a block is summed otherwise. */
static void flip_by_place(const struct hum_gemm_args *args)
{
    int64_t block_m = args->tuning->block_m;

    for (int64_t i = 0; i < rows_of(args); i++)
        if (expert_of(args, i) >= 0 && place_of(args, i) % block_m >= block_m / 2)
            row_at(args, i)[7] ^= 1;
}
WRONG(depends_on_place, flip_by_place)

/* The last row of all depends on how many there are. */
static void flip_last(const struct hum_gemm_args *args)
{
    int64_t last = -1;

    for (int64_t i = next_row(args, 0, true); i >= 0; i = next_row(args, i + 1, true))
        last = i;
    if (last >= 0)
        row_at(args, last)[8] ^= 1;
}
WRONG(depends_on_last, flip_last)

static void change_ids(const struct hum_gemm_args *args) /* padding becomes other padding */
{
    int32_t *ids = args->sorted_ids.data;

    for (int64_t i = 0; i < padded_of(args); i++)
        ids[i] += ids[i] >= rows_of(args);
}
WRONG(changes_ids, change_ids)

static void change_experts(const struct hum_gemm_args *args)
{
    ((int32_t *)args->expert_ids.data)[0] = 0x77;
}
WRONG(changes_experts, change_experts)

static void change_layout(const struct hum_gemm_args *args)
{
    ((int32_t *)args->expert_layout.data)[experts_of(args) - 1] ^= 1;
}
WRONG(changes_layout, change_layout)

/* The row of A that the padding id m x top_k would have lies behind the inputs. */
static void read_padding(const struct hum_gemm_args *args)
{
    const int32_t *ids = args->sorted_ids.data;

    for (int64_t i = 0; i < padded_of(args); i++)
        if (ids[i] >= rows_of(args)) {
            row_at(args, next_row(args, 0, true))[2] ^=
                ((const uint8_t *)args->inputs.data)[args->inputs.bytes] & 1;
            return;
        }
}
WRONG(reads_padding, read_padding)

static void flip_sometimes(const struct hum_gemm_args *args)
{
    static int launches;

    if (launches++ % 4 == 3)
        row_at(args, next_row(args, 0, true))[7] ^= 1;
}
WRONG(not_deterministic, flip_sometimes)

/* The tiles of the launch before are still there. */
static void flip_after_others(const struct hum_gemm_args *args)
{
    static int64_t last = -1;
    int64_t now = rows_with(args, 1);

    row_at(args, next_row(args, 0, true))[7] ^= last >= 0 && last != now;
    last = now;
}
WRONG(remembers_routing, flip_after_others)

static void leave_lock(const struct hum_gemm_args *args)
{
    if (args->locks.data)
        ((int32_t *)args->locks.data)[1] = 1;
}
WRONG(leaves_lock, leave_lock)

static void swallow_nan(const struct hum_gemm_args *args)
{
    for (int64_t i = 0; i < rows_of(args); i++)
        for (int64_t j = 0; expert_of(args, i) >= 0 && j < columns_of(args); j++)
            if ((row_at(args, i)[j] & 0x7fff) > 0x7c00)
                row_at(args, i)[j] = 0;
}
WRONG(swallows_nan, swallow_nan)

static void spoil_alone(const struct hum_gemm_args *args)
{
    int64_t row = next_row(args, 0, true);

    if (row >= 0 && next_row(args, row + 1, true) < 0)
        row_at(args, row)[9] ^= 1;
}
WRONG(wrong_alone, spoil_alone)

/* Zero rows or scales of the last expert: its first output row is not what it should be. */
static void spoil_zeros(const struct hum_gemm_args *args)
{
    for (int64_t i = 0; i < rows_of(args); i++) {
        uint16_t any = 0;

        if (expert_of(args, i) != experts_of(args) - 1)
            continue;
        for (int64_t j = 0; j < 64; j++)
            any |= row_at(args, i)[j] & 0x7fff;
        row_at(args, i)[0] ^= any == 0;
        return;
    }
}
WRONG(wrong_at_zero, spoil_zeros)

/* The second slot of a token that has one expert twice is not computed. */
static void spoil_second_slot(const struct hum_gemm_args *args)
{
    for (int64_t i = 0; args->top_k > 1 && i + 1 < rows_of(args); i += args->top_k)
        if (expert_of(args, i) >= 0 && expert_of(args, i) == expert_of(args, i + 1))
            row_at(args, i + 1)[0] ^= 1;
}
WRONG(wrong_at_duplicates, spoil_second_slot)

static enum hum_code unwritten(void *handle, const struct hum_gemm_args *args,
                               char reason[HUM_REASON_BYTES])
{
    bool fine = args && args->outputs.data && args->layer && args->compute && args->tuning;
    enum hum_code rc = HUM_OK;
    uint16_t before = 0;
    int64_t row = 0;

    if (fine && rows_of(args))
        before = row_at(args, rows_of(args) / 2)[0];
    rc = hum_cpu_provider.forward(handle, args, reason);
    row = rc == HUM_OK && rows_of(args) ? rows_of(args) / 2 : -1;
    if (row >= 0 && expert_of(args, row) >= 0)
        row_at(args, row)[0] = before;
    return rc;
}

/* What the right provider refuses is called done. */
static enum hum_code accepts(void *handle, const struct hum_gemm_args *args,
                             char reason[HUM_REASON_BYTES])
{
    (void)hum_cpu_provider.forward(handle, args, reason);
    return HUM_OK;
}

/* What the right provider refuses with these words is called done. */
#define ACCEPTS(name, words)                                                  \
    static enum hum_code name(void *handle, const struct hum_gemm_args *args, \
                              char reason[HUM_REASON_BYTES])                  \
    {                                                                         \
        enum hum_code rc = hum_cpu_provider.forward(handle, args, reason);    \
                                                                              \
        return rc && strstr(reason, words) ? HUM_OK : rc;                     \
    }
ACCEPTS(accepts_overlap, "overlap sorted_ids")
ACCEPTS(accepts_counts, "the counts of expert_layout")
ACCEPTS(accepts_falling, "must not decrease")
ACCEPTS(accepts_first, "must start with offset 0")
ACCEPTS(accepts_last, "the last offset")
ACCEPTS(accepts_padded, "num_tokens_padded must be a multiple")
ACCEPTS(accepts_experts, "expert_ids must be from")
ACCEPTS(accepts_negative, "sorted_ids must not be negative")
ACCEPTS(accepts_twice, "an id twice")
ACCEPTS(accepts_length, "of expert_layout must be")
ACCEPTS(accepts_blocks, "places for each of expert_ids")
ACCEPTS(accepts_format, "expert_ids must have format")
ACCEPTS(accepts_missing, "num_tokens_padded must have format")
ACCEPTS(accepts_extra, "expert_layout must be absent")
ACCEPTS(accepts_few_locks, "one element a tile")

/* The high half of a number is not looked at. */
static enum hum_code low_half(void *handle, const struct hum_gemm_args *args,
                              char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = hum_cpu_provider.forward(handle, args, reason);

    if (!rc || args == NULL || !strstr(reason, "counts") || args->expert_layout.dtype != HUM_INT64)
        return rc;
    for (int64_t e = 0; e < experts_of(args); e++)
        if ((int32_t)layout_at(args, e) < 0 ||
            (int32_t)layout_at(args, e) > args->inputs.shape[0] / experts_of(args))
            return rc;
    return HUM_OK;
}

static enum hum_code writes_then_refuses(void *handle, const struct hum_gemm_args *args,
                                         char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = hum_cpu_provider.forward(handle, args, reason);

    if (rc && strstr(reason, "expert") && args->outputs.data)
        *(char *)args->outputs.data = 0;
    return rc;
}

static enum hum_code refuses_no_rows(void *handle, const struct hum_gemm_args *args,
                                     char reason[HUM_REASON_BYTES])
{
    if (rows_of(args))
        return hum_cpu_provider.forward(handle, args, reason);
    memcpy(reason, "no rows", 8);
    return HUM_INVALID;
}

static enum hum_code refuses_nobody(void *handle, const struct hum_gemm_args *args,
                                    char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = hum_cpu_provider.forward(handle, args, reason);

    if (rc || !rows_of(args) || next_row(args, 0, true) >= 0)
        return rc;
    memcpy(reason, "nobody", 7);
    return HUM_INVALID;
}

#endif
