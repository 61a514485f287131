#include "harness/explain/ops_input.h"

#include <stddef.h>
#include <string.h>

static bool is(const struct ops_input *j, enum ops_input_kind kind)
{
    return ops_input_is(j, kind);
}

static int64_t index_at(const struct hum_tensor *t, int64_t i)
{
    int64_t wide;
    int32_t narrow;

    if (t->dtype == HUM_INT64) {
        memcpy(&wide, (const uint8_t *)t->data + 8 * i, sizeof wide);
        return wide;
    }
    memcpy(&narrow, (const uint8_t *)t->data + 4 * i, sizeof narrow);
    return narrow;
}

/* ---- which input row an output row gets ------------------------------------------------------ */

static void send(const struct ops_input *j, int64_t *source, int64_t from, int64_t to)
{
    if (to < 0 && is(j, INPUT_NEGATIVE_0))
        to = 0;
    else if (is(j, INPUT_INDEX) && to >= 0)
        to += j->twist->n;
    if (to < 0 || to >= j->out_rows)
        return;
    /* Two input rows for one place are open; a mistake that sends them there takes the last. */
    source[to] = source[to] == REF_ROW_KEPT || j->twist->kind ? from : REF_ROW_ANY;
}

static void send_padded(const struct ops_input *j, int64_t *source)
{
    const struct hum_tensor *counts = &j->a->expert_layout;
    int64_t next = 0;

    for (int64_t e = 0; e < counts->shape[0]; e++) {
        const int64_t count = index_at(counts, e), at = e * j->a->max_tokens;

        if (count == 0 && is(j, INPUT_EMPTY_EXPERT))
            next++;
        for (int64_t i = 0; i < j->a->max_tokens; i++)
            if (i < count && next + i < j->rows)
                source[at + i] = next + i;
            else if (i >= count && j->a->zero_invalid && !is(j, INPUT_BEYOND_KEPT))
                source[at + i] = REF_ROW_ZERO;
        next += count;
    }
}

static void send_indexed(const struct ops_input *j, int64_t *source)
{
    const int64_t copies = j->a->indices.rank == 2 ? j->a->indices.shape[1] : 1;
    const int64_t used = !is(j, INPUT_COPIES) ? copies : j->twist->n < 0 ? copies - 1 : 1;

    for (int64_t i = 0; i < j->rows; i++)
        for (int64_t k = 0; k < used; k++)
            send(j, source, i, index_at(&j->a->indices, i * copies + k));
}

static void gather(const struct ops_input *j, int64_t *source)
{
    for (int64_t i = 0; i < j->out_rows && i < j->rows; i++) {
        const int64_t from = index_at(&j->a->indices, i);

        if (from >= 0 && from < j->rows)
            source[i] = from;
    }
}

static void send_in_order(const struct ops_input *j, int64_t *source)
{
    const struct hum_tensor *layout = &j->a->expert_layout;
    const int64_t last = layout->bytes ? layout->shape[0] - 1 : 0;
    int64_t end = j->rows;

    if (j->a->layout == HUM_LAYOUT_GROUPED)
        end = index_at(layout, is(j, INPUT_LAST_EXPERT) && last ? last - 1 : last);
    for (int64_t i = 0; i < end && i < j->out_rows; i++)
        source[i] = i;
}

static void find_sources(const struct ops_input *j, int64_t *source)
{
    for (int64_t i = 0; i < j->out_rows; i++)
        source[i] = REF_ROW_KEPT;
    switch (j->a->layout) {
    case HUM_LAYOUT_NORMAL:
    case HUM_LAYOUT_GROUPED:
        send_in_order(j, source);
        break;
    case HUM_LAYOUT_GROUPED_PADDED:
        send_padded(j, source);
        break;
    case HUM_LAYOUT_PERMUTE:
    case HUM_LAYOUT_SCATTER:
        if (is(j, INPUT_GATHER))
            gather(j, source);
        else
            send_indexed(j, source);
        break;
    }
    for (int64_t i = j->out_rows - 1; i > 0 && is(j, INPUT_ROW_BEFORE); i--)
        if (source[i] >= 0 && source[i - 1] >= 0)
            source[i] = source[i - 1];
}

/* ---- codes and scales ------------------------------------------------------------------------ */

static void place_codes(const struct ops_input *j, const int64_t *source, uint64_t *out)
{
    for (int64_t i = 0; i < j->out_rows * j->width; i++) {
        const int64_t from = source[i / j->width], col = i % j->width;

        if (from == REF_ROW_ZERO)
            out[i] = 0;
        if (from == REF_ROW_ANY)
            out[i] = OPS_OPEN;
        if (from >= 0)
            out[i] = ops_code(j->codes[from * j->width + (is(j, INPUT_NIBBLES) ? col ^ 1 : col)]);
    }
}

static int64_t round_up_4(int64_t n)
{
    return (n + 3) / 4 * 4;
}

static int64_t scale_index(const struct ops_input *j, int64_t row, int64_t g)
{
    const int64_t rows = is(j, INPUT_PITCH) ? j->out_rows : round_up_4(j->out_rows);
    const int64_t padded = j->scale->bits == 8 ? round_up_4(j->groups) : j->groups;

    switch (j->a->scale_layout) {
    case HUM_SCALES_ROW_MAJOR:
        break;
    case HUM_SCALES_M_MAJOR:
        return is(j, INPUT_SCALES_ROW) ? row * j->groups + g : g * rows + row;
    case HUM_SCALES_MX_PACKED:
        if (!is(j, INPUT_SCALES_ROW))
            return (g / 4 * rows + row) * 4 + g % 4;
        break;
    }
    return row * padded + g;
}

/* Where the scales of output row i go, which has input row `from`. */
static int64_t row_of_scales(const struct ops_input *j, int64_t i, int64_t from)
{
    return is(j, INPUT_SCALE_SOURCE) && from >= 0 && from < j->out_rows ? from : i;
}

static void place_groups_of(const struct ops_input *j, int64_t row, int64_t from, int64_t count,
                            uint64_t *out)
{
    const bool pads =
        j->a->scale_layout == HUM_SCALES_ROW_MAJOR && j->scale->bits == 8 && !is(j, INPUT_PAD_KEPT);

    for (int64_t g = 0; g < (pads ? round_up_4(j->groups) : j->groups); g++) {
        const int64_t at = scale_index(j, row, g);

        if (at >= count)
            continue;
        if (g < j->groups && from == REF_ROW_ANY)
            out[at] = OPS_OPEN;
        else
            out[at] = g < j->groups ? ops_code(j->group_scales[from * j->groups + g]) : 0u;
    }
}

/* Of a tensor of scales: `groups` or one a row. In the order of the input rows, as far as two of
 * them may have one place: those that have none of their own come last. */
static void place_scales(const struct ops_input *j, const int64_t *source, bool groups,
                         int64_t count, uint64_t *out)
{
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < j->out_rows; i++) {
            const int64_t from = source[i], row = row_of_scales(j, i, from);

            if (from == REF_ROW_KEPT || from == REF_ROW_ZERO ||
                (from >= j->out_rows) != (pass == 1))
                continue;
            if (groups)
                place_groups_of(j, row, from, count, out);
            else
                out[row] = from == REF_ROW_ANY ? OPS_OPEN : ops_code(j->token_scales[from]);
        }
}

bool ops_input_place(const struct ops_input *j, const struct ops_seen *s, struct ops_answer *out)
{
    int64_t *source = arena_alloc(out->arena, (size_t)j->out_rows + 1, sizeof *source);

    if (!source)
        return false;
    find_sources(j, source);
    for (int i = 0; i < s->outs; i++) {
        if (!strcmp(s->out[i].name, "outputs"))
            place_codes(j, source, out->codes[i]);
        else if (!strcmp(s->out[i].name, "group_scales"))
            place_scales(j, source, true, s->out[i].count, out->codes[i]);
        else
            place_scales(j, source, false, s->out[i].count, out->codes[i]);
    }
    return true;
}
