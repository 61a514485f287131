#include "kernels/cpu/op_input.h"

#include "kernels/cpu/config.h"
#include "kernels/cpu/fault.h"
#include "kernels/cpu/ops.h"

#include <stdlib.h>

/* Allocated as one block that starts at `in`. */
static bool row_make(const struct input_job *j, struct input_row *r)
{
    const size_t in_width = (size_t)j->in_width, width = (size_t)j->width;
    const size_t groups = (size_t)j->groups;
    char *at = malloc((in_width + width + 2 * groups + 1) * sizeof(float) + width + j->row_bytes);

    if (!at)
        return false;
    *r = (struct input_row){0};
    r->in = (float *)(void *)at;
    r->v = r->in + in_width;
    r->scale = r->v + width;
    r->coded = (uint32_t *)(void *)(r->scale + groups);
    r->out = (uint8_t *)(r->coded + groups);
    r->bytes = r->out + j->row_bytes;
    return true;
}

/* Where the scale of a group of an output row lies, in elements. */
static int64_t scale_index(const struct input_job *j, int64_t row, int64_t g)
{
    const int64_t rows = (j->out_rows + 3) / 4 * 4;
    const bool padded = j->args->group_scale_dtype != HUM_F32;

    switch (j->args->scale_layout) {
    case HUM_SCALES_ROW_MAJOR:
        return row * (padded ? (j->groups + 3) / 4 * 4 : j->groups) + g;
    case HUM_SCALES_M_MAJOR:
        return g * rows + row;
    case HUM_SCALES_MX_PACKED:
        return FAULT(INPUT_SCALES_ROW_MAJOR) ? row * ((j->groups + 3) / 4 * 4) + g
                                             : (g / 4 * rows + row) * 4 + g % 4;
    }
    return 0;
}

static void put_scales(const struct input_job *j, const struct input_row *r, int64_t row)
{
    const bool wide = j->args->group_scale_dtype == HUM_F32;
    const bool pads = j->args->scale_layout == HUM_SCALES_ROW_MAJOR && !wide;
    float *numbers = j->args->group_scales.data, *tokens = j->args->token_scales.data;
    uint8_t *codes = j->args->group_scales.data;

    for (int64_t g = 0; g < j->groups; g++)
        if (wide)
            numbers[scale_index(j, row, g)] = bits_float(r->coded[g]);
        else
            codes[scale_index(j, row, g)] = (uint8_t)r->coded[g];
    for (int64_t g = j->groups; pads && g % 4 != 0; g++)
        codes[scale_index(j, row, g)] = 0;
    if (j->has_tokens)
        tokens[row] = r->token;
}

/* Row `from` of inputs to row `row` of outputs. */
static void put_row(const struct input_job *j, const struct input_row *r, int64_t from, int64_t row)
{
    char *outputs = j->args->outputs.data;

    if (FAULT(INPUT_NEGATIVE_INDEX_IS_0) && row < 0)
        row = 0;
    if (row < 0 || row >= j->out_rows)
        return;
    if (j->row_bytes)
        memcpy(outputs + (size_t)row * j->row_bytes, r->out, j->row_bytes);
    if (FAULT(INPUT_SCALE_OF_INPUT_ROW) && from < j->out_rows)
        row = from;
    put_scales(j, r, row);
}

/* Rows of experts, each in its own block of max_tokens rows. */
static void run_padded(const struct input_job *j, struct input_row *r)
{
    const int64_t experts = j->args->expert_layout.shape[0], most = j->args->max_tokens;
    char *outputs = j->args->outputs.data;
    int64_t in = 0;

    for (int64_t e = 0; e < experts; e++) {
        const int64_t count = op_index(&j->args->expert_layout, e);
        const size_t at = (size_t)(e * most + count) * j->row_bytes;
        const size_t rest = (size_t)(most - count) * j->row_bytes;

        if (FAULT(INPUT_EMPTY_EXPERT_OFFSET) && count == 0)
            in++;
        for (int64_t t = 0; t < count && in < j->rows; t++, in++) {
            input_compute_row(j, in, r);
            put_row(j, r, in, e * most + t);
        }
        if (j->args->zero_invalid && rest && !FAULT(INPUT_ROWS_BEYOND_NOT_ZEROED))
            memset(outputs + at, 0, rest);
    }
}

/* Row by row; `indices` names the output rows of a row where there are any. */
static void run_rows(const struct input_job *j, struct input_row *r)
{
    const struct hum_process_input_args *a = j->args;
    const bool scatter = a->layout == HUM_LAYOUT_SCATTER;
    const bool indexed = scatter || a->layout == HUM_LAYOUT_PERMUTE;
    const int64_t copies = scatter ? a->indices.shape[1] : 1;
    const int64_t experts = a->expert_layout.shape[0] - 1;
    const int64_t last = FAULT(INPUT_LAST_EXPERT_LOST) && experts > 0 ? experts - 1 : experts;
    int64_t rows = j->rows;

    if (a->layout == HUM_LAYOUT_GROUPED)
        rows = op_index(&a->expert_layout, last);
    for (int64_t row = 0; row < rows; row++) {
        input_compute_row(j, row, r);
        for (int64_t i = 0; i < copies; i++)
            put_row(j, r, row, indexed ? op_index(&a->indices, row * copies + i) : row);
    }
}

enum hum_code op_process_input(void *handle, const struct hum_process_input_args *args,
                               char reason[HUM_REASON_BYTES])
{
    struct input_job job;
    struct input_row row;

    (void)handle;
    if (!args)
        return refuse(reason, HUM_INVALID, "the arguments are missing");
    if (input_check(args, &job, reason))
        return HUM_INVALID;
    if (!row_make(&job, &row))
        return refuse(reason, HUM_NO_MEMORY, "no memory for a row of inputs");
    if (args->layout == HUM_LAYOUT_GROUPED_PADDED)
        run_padded(&job, &row);
    else
        run_rows(&job, &row);
    free(row.in);
    return HUM_OK;
}
