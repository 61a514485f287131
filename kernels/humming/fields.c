#include "kernels/humming/fields.h"

#include <cjson/cJSON.h>
#include <string.h>

#define TABLE(name, rows) const struct fields name = {rows, sizeof(rows) / sizeof(rows)[0]}

/* clang-format off */

#define F(name, type) {#name, FIELD_##type, offsetof(struct hum_layer_config, name)}
static const struct field layer_rows[] = {
    F(shape_n, INT64), F(shape_k, INT64), F(pad_shape_n, INT64), F(pad_shape_k, INT64),
    F(num_experts, INT64), F(a_dtype, INT32), F(b_dtype, INT32), F(c_dtype, INT32),
    F(bs_dtype, INT32), F(as_dtype, INT32), F(input_quant_mode, ENUM),
    F(input_scale_group_size, INT64), F(weight_scale_group_size, INT64),
    F(weight_scale_group_size_n, INT64), F(weight_scale_type, ENUM), F(weight_scale_2_type, ENUM),
    F(use_int_weight_scale, BOOL), F(use_fused_e8m0_scale, BOOL), F(has_zero_point, BOOL),
    F(is_fp_zero_point, BOOL), F(has_bias, BOOL), F(mma_type, ENUM),
};
#undef F

#define F(name, type) {#name, FIELD_##type, offsetof(struct hum_compute_config, name)}
static const struct field compute_rows[] = {
    F(gemm_type, ENUM), F(use_f16_accum, BOOL), F(use_batch_invariant, BOOL),
    F(use_m_major_input_scale, BOOL),
};
#undef F

#define F(name, type) {#name, FIELD_##type, offsetof(struct hum_tuning_config, name)}
static const struct field tuning_rows[] = {
    F(block_m, INT32), F(block_n, INT32), F(block_k, INT32), F(warp_m, INT32), F(warp_n, INT32),
    F(warp_k, INT32), F(use_stream_k, BOOL), F(num_stages, INT32), F(num_ctas_per_sm, INT32),
    F(num_sms, INT32), F(use_warp_spec, BOOL), F(use_mbarrier, BOOL), F(use_cp_async, BOOL),
    F(use_tma_a, BOOL), F(use_tma_b, BOOL), F(use_tma_c, BOOL), F(use_tma_bs, BOOL),
    F(use_tma_bs2, BOOL), F(use_tma_bzp, BOOL), F(use_tma_bias, BOOL), F(use_tma_as, BOOL),
    F(use_tma_as2, BOOL), F(num_write_splits, INT32), F(multi_cast_size_a, INT32),
    F(multi_cast_size_b, INT32), F(raster_group_m, INT32), F(use_pdl, BOOL),
};
#undef F

#define F(name, type) {#name, FIELD_##type, offsetof(struct hum_accumulation, name)}
static const struct field accumulation_rows[] = {
    F(mma_type, ENUM), F(sm, INT32), F(instruction_k, INT32), F(block_k, INT64), F(warp_k, INT64),
    F(flush_k, INT64), F(row_begin, INT64), F(row_end, INT64), F(col_begin, INT64),
    F(col_end, INT64),
};
static const struct field shift_rows[] = {
    F(warps_in_order, BOOL), F(operand_shift, INT32), F(flush_shift, INT32),
    F(output_shift, INT32),
};
#undef F

#define F(name, type) {#name, FIELD_##type, offsetof(struct hum_quant_weight_args, name)}
static const struct field quant_weight_rows[] = {
    F(target_dtype, INT32), F(group_size, INT64), F(has_scale, BOOL), F(use_e8m0_scale, BOOL),
    F(has_zero_point, BOOL), F(is_fp_zero_point, BOOL), F(allow_negative_scale, BOOL),
    F(rule, ENUM),
};
#undef F

#define F(name, type) {#name, FIELD_##type, offsetof(struct hum_process_mxfp4_args, name)}
static const struct field mxfp4_rows[] = {
    F(a_dtype, INT32), F(range, INT32), F(per_row, BOOL),
};
#undef F

#define F(name, type) {#name, FIELD_##type, offsetof(struct hum_process_input_args, name)}
static const struct field input_rows[] = {
    F(activation, ENUM), F(form, ENUM), F(alpha, FLOAT), F(beta, FLOAT), F(limit, FLOAT),
    F(hadamard_block_size, INT64), F(quant_mode, ENUM), F(quant_dtype, INT32),
    F(quant_group_size, INT64), F(group_scale_dtype, INT32), F(scale_layout, ENUM), F(layout, ENUM),
    F(zero_invalid, BOOL), F(precise, BOOL), F(max_tokens, INT64),
};
#undef F
/* clang-format on */

TABLE(layer_fields, layer_rows);
TABLE(compute_fields, compute_rows);
TABLE(tuning_fields, tuning_rows);
TABLE(accumulation_fields, accumulation_rows);
TABLE(shift_fields, shift_rows);
TABLE(quant_weight_fields, quant_weight_rows);
TABLE(mxfp4_fields, mxfp4_rows);
TABLE(input_fields, input_rows);

/* ---- to JSON ---- */

static double value_of(const struct field *f, const void *data)
{
    const char *p = (const char *)data + f->offset;
    int32_t i32;
    int64_t i64;
    float real;
    bool flag;

    switch (f->type) {
    case FIELD_INT32:
    case FIELD_ENUM:
        memcpy(&i32, p, sizeof i32);
        return i32;
    case FIELD_INT64:
        memcpy(&i64, p, sizeof i64);
        return (double)i64;
    case FIELD_BOOL:
        memcpy(&flag, p, sizeof flag);
        return flag;
    case FIELD_FLOAT:
        memcpy(&real, p, sizeof real);
        return (double)real;
    }
    return 0.0;
}

bool fields_add(cJSON *object, const struct fields *f, const void *data)
{
    bool ok = object;

    for (int i = 0; ok && i < f->count; i++)
        ok = cJSON_AddNumberToObject(object, f->field[i].name, value_of(&f->field[i], data));
    return ok;
}

bool fields_add_object(cJSON *parent, const char *name, const struct fields *f, const void *data)
{
    return fields_add(cJSON_AddObjectToObject(parent, name), f, data);
}

bool tensor_add(cJSON *object, const char *name, const struct hum_tensor *t)
{
    cJSON *list;
    bool ok;

    if (!t->data && t->rank == 0)
        return cJSON_AddNullToObject(object, name);
    list = cJSON_AddArrayToObject(object, name);
    ok = list &&
         cJSON_AddItemToArray(
             list, cJSON_CreateNumber((double)((uintptr_t)t->data & TENSOR_ADDRESS_MASK))) &&
         cJSON_AddItemToArray(list, cJSON_CreateNumber(t->dtype)) &&
         cJSON_AddItemToArray(list, cJSON_CreateNumber((double)t->bytes));
    for (int i = 0; ok && i < t->rank; i++)
        ok = cJSON_AddItemToArray(list, cJSON_CreateNumber((double)t->shape[i]));
    return ok;
}

/* ---- from JSON ---- */

static void set_value(const struct field *f, double value, void *data)
{
    char *p = (char *)data + f->offset;
    const int32_t i32 = (int32_t)value;
    const int64_t i64 = (int64_t)value;
    const float real = (float)value;
    const bool flag = value != 0.0;

    switch (f->type) {
    case FIELD_INT32:
    case FIELD_ENUM:
        memcpy(p, &i32, sizeof i32);
        return;
    case FIELD_INT64:
        memcpy(p, &i64, sizeof i64);
        return;
    case FIELD_BOOL:
        memcpy(p, &flag, sizeof flag);
        return;
    case FIELD_FLOAT:
        memcpy(p, &real, sizeof real);
        return;
    }
}

bool fields_read(const cJSON *object, const struct fields *f, void *data)
{
    for (int i = 0; i < f->count; i++) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, f->field[i].name);
        const double largest = f->field[i].type == FIELD_INT64 ? 0x1p53 : 0x1p31 - 1.0;

        if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0.0 && item->valuedouble <= largest))
            return false;
        set_value(&f->field[i], item->valuedouble, data);
    }
    return true;
}
