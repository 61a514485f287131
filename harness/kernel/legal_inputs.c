/* Rules of process_input, hadamard and moe_sum. Words of axes are the enums of reference/inputs.h
 * and reference/activation.h. */
#include "harness/kernel/legal_parts.h"

#include "harness/kernel/words.h"
#include "reference/activation.h"
#include "reference/hadamard.h"
#include "reference/inputs.h"

static bool has_groups(const int64_t *v)
{
    return ref_input_has_groups((enum ref_input_mode)v[AX_QUANT_MODE]);
}

static bool is_disabled(const int64_t *v)
{
    return v[AX_QUANT_MODE] == REF_INPUT_DISABLED;
}

static bool is_grouped(const int64_t *v)
{
    return v[AX_LAYOUT] == REF_LAYOUT_GROUPED || v[AX_LAYOUT] == REF_LAYOUT_GROUPED_PADDED;
}

/* Of an activation that is an elementary function. */
static bool is_elementary(const int64_t *v)
{
    return v[AX_ACTIVATION] != REF_ACTIVATION_NONE && v[AX_ACTIVATION] != REF_ACTIVATION_RELU2;
}

/* ---- process_input --------------------------------------------------------------------------- */

bool legal_input_quant(const int64_t *v)
{
    const struct dtype *t = legal_type(v, AX_QUANT);

    return is_disabled(v) || (ref_input_target_max(t) > 0.0f &&
                              (t->bits != 8 || !t->is_float || t->top != DTYPE_TOP_FINITE));
}

bool legal_input_even(const int64_t *v)
{
    return is_disabled(v) || legal_type(v, AX_QUANT)->bits != 4 || v[AX_K] % 2 == 0;
}

bool legal_input_group(const int64_t *v)
{
    return has_groups(v) == (v[AX_QUANT_GROUP] > 0);
}

bool legal_input_group_scale(const int64_t *v)
{
    const struct dtype *t = legal_type(v, AX_GROUP_SCALE);
    const bool f32 = legal_is_float(t, 8, 23);
    const bool e4m3 = legal_is_float(t, 4, 3) && t->top != DTYPE_TOP_FINITE;

    if (!has_groups(v))
        return f32;
    if (v[AX_QUANT_MODE] == REF_INPUT_DYNAMIC_GROUP_TOKEN)
        return e4m3;
    return f32 || e4m3 || legal_is_scale_float(t, 8, 0);
}

bool legal_input_scale_layout(const int64_t *v)
{
    if (!has_groups(v))
        return v[AX_SCALE_LAYOUT] == REF_SCALES_ROW_MAJOR;
    return v[AX_SCALE_LAYOUT] != REF_SCALES_MX_PACKED || legal_type(v, AX_GROUP_SCALE)->bits == 8;
}

bool legal_input_experts(const int64_t *v)
{
    return is_grouped(v) == (v[AX_EXPERTS] > 0);
}

bool legal_input_routing(const int64_t *v)
{
    return is_grouped(v) == (v[AX_ROUTING] != ROUTING_NONE) && v[AX_ROUTING] != ROUTING_DUPLICATE;
}

bool legal_input_max_tokens(const int64_t *v)
{
    return (v[AX_LAYOUT] == REF_LAYOUT_GROUPED_PADDED) == (v[AX_MAX_TOKENS] > 0);
}

bool legal_input_layout_dtype(const int64_t *v)
{
    return v[AX_LAYOUT_DTYPE] == LAYOUT_INT32 || is_grouped(v) ||
           v[AX_LAYOUT] == REF_LAYOUT_PERMUTE;
}

bool legal_input_zero_invalid(const int64_t *v)
{
    return !v[AX_ZERO_INVALID] || v[AX_LAYOUT] == REF_LAYOUT_GROUPED_PADDED;
}

bool legal_input_swiglu(const int64_t *v)
{
    const bool swiglu = v[AX_ACTIVATION] == REF_ACTIVATION_SWIGLU;

    return swiglu ? v[AX_FORM] != REF_ACTIVATION_UNARY : v[AX_SWIGLU] == 0;
}

bool legal_input_hadamard(const int64_t *v)
{
    return v[AX_HADAMARD] == 0 || ref_hadamard_valid(v[AX_HADAMARD], v[AX_K]);
}

bool legal_input_ulp(const int64_t *v)
{
    const bool alone = is_disabled(v) && is_elementary(v) && v[AX_HADAMARD] == 0;

    return v[AX_CHECK] == CHECK_ULP ? alone : v[AX_CHECK] != CHECK_EXACT || !alone;
}

/* Every code of a 16-bit format, times 1. */
bool legal_input_exhaustive(const int64_t *v)
{
    return v[AX_CHECK] != CHECK_EXHAUSTIVE ||
           (legal_type(v, AX_INPUT)->bits == 16 && v[AX_M] * v[AX_K] >= 1 << 16 &&
            v[AX_HADAMARD] == 0 && v[AX_FORM] == REF_ACTIVATION_UNARY &&
            (is_disabled(v) || v[AX_QUANT_MODE] == REF_INPUT_STATIC_TENSOR));
}

/* ---- hadamard, moe_sum ----------------------------------------------------------------------- */

bool legal_hadamard_block(const int64_t *v)
{
    return ref_hadamard_valid(v[AX_HADAMARD], v[AX_K]);
}

bool legal_sum_map(const int64_t *v)
{
    return v[AX_EXPERTS] == 0 || v[AX_ROUTING] != ROUTING_NONE;
}

bool legal_sum_routing(const int64_t *v)
{
    return v[AX_ROUTING] != ROUTING_SPARE &&
           (v[AX_ROUTING] != ROUTING_DUPLICATE || v[AX_TOP_K] > 1);
}
