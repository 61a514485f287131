#include "kernels/test/fault_calls.h"

/* ---- process_input --------------------------------------------------------------------------- */

#define DISABLED  HUM_QUANT_DISABLED
#define STATIC    HUM_QUANT_STATIC_TENSOR
#define TOKEN     HUM_QUANT_DYNAMIC_TOKEN
#define GROUPS    HUM_QUANT_DYNAMIC_GROUP
#define BOTH      HUM_QUANT_DYNAMIC_GROUP_TOKEN
#define ROW_MAJOR HUM_SCALES_ROW_MAJOR
#define MX        HUM_SCALES_MX_PACKED
#define NORMAL    HUM_LAYOUT_NORMAL

/* clang-format off */
static const struct input_row {
    enum hum_fault fault;
    enum hum_input_quant_mode mode;
    int32_t dtype, scale_dtype;
    enum hum_scale_layout scale_layout;
    enum hum_input_layout layout;
    enum hum_activation activation;
    int64_t cols, group;
    enum data data;
} inputs[] = {
    {F(INPUT_TIES_TOWARD_ZERO),      STATIC, HUM_E2M1, 0, ROW_MAJOR, NORMAL, 0, 64, 0, STEPS},
    {F(INPUT_TRUNCATES),             TOKEN,  HUM_INT8, 0, ROW_MAJOR, NORMAL, 0, 64, 0, RANDOM},
    {F(INPUT_ROWS_BEYOND_NOT_ZEROED),TOKEN,  HUM_INT8, 0, ROW_MAJOR, HUM_LAYOUT_GROUPED_PADDED, 0, 64, 0, RANDOM},
    {F(INPUT_ABSMAX_OF_FULL_GROUP),  GROUPS, HUM_E4M3, HUM_F32, ROW_MAJOR, NORMAL, 0, 72, 64, RANDOM},
    {F(INPUT_ABSMAX_SKIPS_LAST),     GROUPS, HUM_E4M3, HUM_F32, ROW_MAJOR, NORMAL, 0, 64, 16, RANDOM},
    {F(INPUT_HALVES_SWAPPED),        DISABLED, 0, 0, ROW_MAJOR, NORMAL, HUM_ACT_SILU, 64, 0, RANDOM},
    {F(INPUT_LIMIT_AFTER_ACTIVATION),DISABLED, 0, 0, ROW_MAJOR, NORMAL, HUM_ACT_SWIGLU, 64, 0, STEPS},
    {F(INPUT_GELU_BY_TANH),          DISABLED, 0, 0, ROW_MAJOR, NORMAL, HUM_ACT_GELU, 64, 0, RANDOM},
    {F(INPUT_INT8_MINUS_128),        STATIC, HUM_INT8, 0, ROW_MAJOR, NORMAL, 0, 64, 0, TIED},
    {F(INPUT_INT8_WRAPS),            STATIC, HUM_INT8, 0, ROW_MAJOR, NORMAL, 0, 64, 0, TIED},
    {F(INPUT_SCALE_OF_INPUT_ROW),    TOKEN,  HUM_INT8, 0, ROW_MAJOR, HUM_LAYOUT_PERMUTE, 0, 64, 0, RANDOM},
    {F(INPUT_NAN_IGNORED),           GROUPS, HUM_E4M3, HUM_F32, ROW_MAJOR, NORMAL, 0, 64, 32, WITH_NAN},
    {F(INPUT_E8M0_ROUNDS_DOWN),      GROUPS, HUM_E4M3, HUM_E8M0, ROW_MAJOR, NORMAL, 0, 64, 32, RANDOM},
    {F(INPUT_DIVIDES),               TOKEN,  HUM_INT8, 0, ROW_MAJOR, NORMAL, 0, 64, 0, TIED},
    {F(INPUT_TOKEN_SCALE_STRICT),    BOTH,   HUM_E4M3, HUM_E4M3, ROW_MAJOR, NORMAL, 0, 64, 32, TIED},
    {F(INPUT_M3_TRUNCATES),          BOTH,   HUM_E4M3, HUM_E4M3, ROW_MAJOR, NORMAL, 0, 64, 32, RANDOM},
    {F(INPUT_NIBBLE_ORDER),          GROUPS, HUM_E2M1, HUM_E4M3, ROW_MAJOR, NORMAL, 0, 64, 32, RANDOM},
    {F(INPUT_SCALES_ROW_MAJOR),      GROUPS, HUM_E2M1, HUM_E4M3, MX, NORMAL, 0, 256, 32, RANDOM},
    {F(INPUT_GROUP_INDEX_MINUS_1),   GROUPS, HUM_INT8, HUM_F32, ROW_MAJOR, NORMAL, 0, 64, 32, RANDOM},
    {F(INPUT_ZERO_SCALE_INF),        GROUPS, HUM_E2M1, HUM_E4M3, ROW_MAJOR, NORMAL, 0, 64, 32, TINY},
    {F(INPUT_LAST_EXPERT_LOST),      TOKEN,  HUM_INT8, 0, ROW_MAJOR, HUM_LAYOUT_GROUPED, 0, 64, 0, RANDOM},
    {F(INPUT_EMPTY_EXPERT_OFFSET),   TOKEN,  HUM_INT8, 0, ROW_MAJOR, HUM_LAYOUT_GROUPED_PADDED, 0, 64, 0, RANDOM},
    {F(INPUT_NEGATIVE_INDEX_IS_0),   TOKEN,  HUM_INT8, 0, ROW_MAJOR, HUM_LAYOUT_SCATTER, 0, 64, 0, RANDOM},
};
/* clang-format on */

enum { EXPERTS = 3, MAX_TOKENS = 6, WIDTH = 2 };

static char reason[HUM_REASON_BYTES];

static void put_layout(struct hum_process_input_args *a)
{
    static const int32_t offsets[EXPERTS + 1] = {0, 4, 4, 9}, counts[EXPERTS] = {4, 0, 5};
    int64_t *to;

    switch (a->layout) {
    case HUM_LAYOUT_NORMAL:
        return;
    case HUM_LAYOUT_GROUPED:
        a->expert_layout = tensor_make(HUM_INT32, 1, EXPERTS + 1, 0, 0);
        memcpy(a->expert_layout.data, offsets, sizeof offsets);
        return;
    case HUM_LAYOUT_GROUPED_PADDED:
        a->expert_layout = tensor_make(HUM_INT32, 1, EXPERTS, 0, 0);
        memcpy(a->expert_layout.data, counts, sizeof counts);
        a->max_tokens = MAX_TOKENS;
        a->zero_invalid = true;
        return;
    case HUM_LAYOUT_PERMUTE:
        a->indices = tensor_make(HUM_INT64, 1, ROWS, 0, 0);
        to = a->indices.data;
        for (int i = 0; i < ROWS; i++)
            to[i] = ROWS - 1 - i;
        return;
    case HUM_LAYOUT_SCATTER: /* every row twice, but for row 0 of outputs and the second of row 5 */
        a->indices = tensor_make(HUM_INT64, 2, ROWS, WIDTH, 0);
        to = a->indices.data;
        for (int i = 0; i < ROWS * WIDTH; i++)
            to[i] = i == 0 || i == 11 ? -1 : i;
        return;
    }
}

static struct hum_tensor group_scales_of(const struct input_row *row, int64_t rows)
{
    const int64_t groups = (row->cols + row->group - 1) / row->group;

    if (row->scale_layout == MX)
        return tensor_make(row->scale_dtype, 3, (groups + 3) / 4, (rows + 3) / 4 * 4, 4);
    return tensor_make(row->scale_dtype, 2, rows,
                       row->scale_dtype == HUM_F32 ? groups : (groups + 3) / 4 * 4, 0);
}

void fault_input_run(int i, struct bytes *out)
{
    const struct input_row *row = &inputs[i];
    const bool binary = row->activation == HUM_ACT_SILU || row->activation == HUM_ACT_SWIGLU;
    const bool four = hum_dtype_bits(row->dtype) == 4;
    const int64_t rows = row->layout == HUM_LAYOUT_GROUPED_PADDED ? EXPERTS * MAX_TOKENS
                         : row->layout == HUM_LAYOUT_SCATTER      ? ROWS * WIDTH
                                                                  : ROWS;
    struct hum_process_input_args a = {.activation = row->activation,
                                       .form = binary ? HUM_ACT_BINARY_SPLIT : HUM_ACT_UNARY,
                                       .alpha = 1.5f,
                                       .beta = 1.0f,
                                       .limit = 1.0f,
                                       .quant_mode = row->mode,
                                       .quant_dtype = row->dtype,
                                       .quant_group_size = row->group,
                                       .group_scale_dtype = row->scale_dtype,
                                       .scale_layout = row->scale_layout,
                                       .layout = row->layout,
                                       .precise = true};

    out->count = 0;
    a.inputs = inputs_of(row->data, HUM_F32, ROWS, binary ? 2 * row->cols : row->cols);
    a.outputs = tensor_make(row->mode == DISABLED ? HUM_F32
                            : four                ? HUM_UINT(8)
                                                  : row->dtype,
                            2, rows, four ? row->cols / 2 : row->cols, 0);
    if (row->mode == STATIC) {
        a.static_scales = tensor_make(HUM_F32, 1, 1, 0, 0);
        *(float *)a.static_scales.data = row->data == TIED ? -1.0f : 1.0f;
    }
    if (row->group)
        a.group_scales = group_scales_of(row, rows);
    if (row->mode == TOKEN || row->mode == BOTH)
        a.token_scales = tensor_make(HUM_F32, 1, rows, 0, 0);
    put_layout(&a);
    ck_assert_msg(hum_cpu_ops.process_input(NULL, &a, reason) == HUM_OK, "%s", reason);
    keep(out, &a.outputs);
    keep(out, &a.group_scales);
    keep(out, &a.token_scales);
    free(a.inputs.data);
    free(a.static_scales.data);
    free(a.expert_layout.data);
    free(a.indices.data);
}

const int fault_input_count = COUNT(inputs);

enum hum_fault fault_input_fault(int i)
{
    return inputs[i].fault;
}
