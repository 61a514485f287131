/* What a model has, and whether its parts fit together. */
#include "harness/derive/model.h"

#include <string.h>

bool model_is_gated(const struct model *m)
{
    return strcmp(m->activation_form, "unary") != 0;
}

bool model_has(const struct model *m, enum model_part part)
{
    switch (part) {
    case PART_ATTENTION:
        return true;
    case PART_LINEAR_ATTENTION:
        return m->linear_num_value_heads > 0;
    case PART_MAMBA:
        return m->mamba_num_heads > 0;
    case PART_MLP:
        return m->intermediate_size > 0;
    case PART_SHARED:
        return m->shared_expert_intermediate_size > 0;
    case PART_EXPERTS:
        return m->num_experts > 0;
    case PART_COUNT:
        break;
    }
    return false;
}

static enum err_code together(const struct model *m, const char *what, const int64_t *values,
                              size_t count, struct errs *errs)
{
    size_t set = 0;

    for (size_t i = 0; i < count; i++)
        set += values[i] > 0;
    if (set == 0 || set == count)
        return ERR_NONE;
    return errs_add(errs, ERR_CONFIG, m->name_at, "%s: all of them are needed, or none", what);
}

static enum err_code check_quantized(const struct model *m, struct errs *errs)
{
    enum err_code rc = ERR_NONE;

    for (unsigned p = 0; p < PART_COUNT; p++)
        if ((m->quantized | m->unknown) >> p & 1 && !model_has(m, (enum model_part)p))
            rc = errs_add(errs, ERR_CONFIG, m->weights.at,
                          "quantization names the part '%s', which the model has not",
                          model_parts[p]);
    return rc;
}

enum err_code model_check(const struct model *m, struct errs *errs)
{
    const int64_t experts[] = {m->num_experts, m->num_experts_per_tok, m->moe_intermediate_size};
    const int64_t linear[] = {m->linear_num_key_heads, m->linear_num_value_heads,
                              m->linear_key_head_dim, m->linear_value_head_dim};
    const int64_t mamba[] = {m->mamba_num_heads, m->mamba_head_dim, m->n_groups, m->ssm_state_size};
    bool swiglu = !strcmp(m->activation, "swiglu");
    size_t before = errs->count;

    (void)together(m, "num_experts, num_experts_per_tok, moe_intermediate_size", experts, 3, errs);
    (void)together(m,
                   "linear_num_key_heads, linear_num_value_heads, linear_key_head_dim, "
                   "linear_value_head_dim",
                   linear, 4, errs);
    (void)together(m, "mamba_num_heads, mamba_head_dim, n_groups, ssm_state_size", mamba, 4, errs);
    (void)check_quantized(m, errs);
    if (!m->num_experts && !m->intermediate_size)
        (void)errs_add(errs, ERR_CONFIG, m->name_at,
                       "intermediate_size or moe_intermediate_size is missing");
    if (m->num_experts_per_tok > m->num_experts)
        (void)errs_add(errs, ERR_CONFIG, m->name_at, "num_experts_per_tok is above num_experts");
    if (m->num_attention_heads % m->num_key_value_heads)
        (void)errs_add(errs, ERR_CONFIG, m->name_at,
                       "num_attention_heads is no multiple of num_key_value_heads");
    if (swiglu ? m->swiglu_limit != 7 : m->swiglu_limit != 0)
        (void)errs_add(errs, ERR_CONFIG, m->name_at,
                       "swiglu_limit must be 7 with activation swiglu (gpt-oss's: alpha 1.702, "
                       "beta 1), and belongs to no other");
    return errs->count > before ? ERR_CONFIG : ERR_NONE;
}
