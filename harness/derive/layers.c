#include "harness/derive/layers.h"

#include <inttypes.h>
#include <string.h>

struct division {
    const struct model *m;
    const struct settings *s;
    struct shapes *out;
    struct errs *errs;
    enum err_code rc;
};

static void failed(struct division *d, enum err_code rc)
{
    d->rc = d->rc ? d->rc : rc;
}

/* `value` of the whole model, on one of `by` GPUs. */
static int64_t divide(struct division *d, const char *what, int64_t value, int64_t by)
{
    if (value % by == 0)
        return value / by;
    failed(d,
           errs_add(d->errs, ERR_CONFIG, d->s->server_at,
                    "%s of %" PRId64 " cannot be divided among %" PRId64 " GPUs", what, value, by));
    return value;
}

/* ---- who has which weights ------------------------------------------------------------------- */

static bool served(const struct division *d, enum model_part part)
{
    return part == PART_EXPERTS ? d->s->moe : d->s->linear;
}

static bool online(const struct division *d, enum model_part part)
{
    return d->s->online == ONLINE_ALL || (d->s->online == ONLINE_EXPERTS && part == PART_EXPERTS);
}

static void set_weights(struct division *d, struct layer_shape *l)
{
    const struct model *m = d->m;
    unsigned bit = 1u << l->part;

    if (!served(d, l->part))
        l->without = "another backend serves it";
    else if (online(d, l->part))
        l->weights = &d->s->weights;
    else if (m->state == WEIGHTS_QUANTIZED && m->quantized & bit)
        l->weights = &m->weights;
    else if (m->state == WEIGHTS_QUANTIZED && m->unknown & bit)
        l->without = "it is not known whether the checkpoint has it quantized";
    else
        l->without = "the checkpoint does not have it quantized";
}

static void add(struct division *d, const char *name, enum model_part part, int64_t n, int64_t k,
                int64_t bias)
{
    struct layer_shape *l = &d->out->items[d->out->count++];

    *l = (struct layer_shape){.name = name, .part = part, .n = n, .k = k, .bias = bias != 0};
    set_weights(d, l);
}

/* ---- the matrices ---------------------------------------------------------------------------- */

/* Heads are divided; a key-value head that several GPUs need is on each of them. */
static void add_attention(struct division *d)
{
    const struct model *m = d->m;
    int64_t by = d->s->tensor, kv = m->num_key_value_heads;
    int64_t heads = divide(d, "num_attention_heads", m->num_attention_heads, by);
    int64_t kv_heads = kv >= by ? divide(d, "num_key_value_heads", kv, by) : 1;
    int64_t queries = heads * (m->attn_output_gate ? 2 : 1);

    if (kv < by && by % kv)
        failed(d,
               errs_add(d->errs, ERR_CONFIG, d->s->server_at,
                        "%" PRId64 " GPUs cannot share num_key_value_heads of %" PRId64, by, kv));
    add(d, "attn.qkv", PART_ATTENTION, (queries + 2 * kv_heads) * m->head_dim, m->hidden_size,
        m->attention_bias);
    add(d, "attn.o", PART_ATTENTION, m->hidden_size, heads * m->head_dim, m->attention_output_bias);
}

/* in: query and key, value and gate z. ba: the two numbers a value head that decide decay and
 * step; checkpoints keep it in 16 bits. */
static void add_linear_attention(struct division *d)
{
    const struct model *m = d->m;
    int64_t keys = divide(d, "linear_num_key_heads", m->linear_num_key_heads, d->s->tensor);
    int64_t values = divide(d, "linear_num_value_heads", m->linear_num_value_heads, d->s->tensor);
    int64_t width = values * m->linear_value_head_dim;

    add(d, "linear_attn.in", PART_LINEAR_ATTENTION, 2 * keys * m->linear_key_head_dim + 2 * width,
        m->hidden_size, 0);
    if (online(d, PART_LINEAR_ATTENTION))
        add(d, "linear_attn.ba", PART_LINEAR_ATTENTION, 2 * values, m->hidden_size, 0);
    add(d, "linear_attn.out", PART_LINEAR_ATTENTION, m->hidden_size, width, 0);
}

/* Mamba 2: gate and input, B and C of each group, one step a head. */
static void add_mamba(struct division *d)
{
    const struct model *m = d->m;
    int64_t heads = divide(d, "mamba_num_heads", m->mamba_num_heads, d->s->tensor);
    int64_t groups = divide(d, "n_groups", m->n_groups, d->s->tensor);
    int64_t width = heads * m->mamba_head_dim;

    add(d, "mamba.in", PART_MAMBA, 2 * width + 2 * groups * m->ssm_state_size + heads,
        m->hidden_size, 0);
    add(d, "mamba.out", PART_MAMBA, m->hidden_size, width, 0);
}

static void add_pair(struct division *d, const char *first, const char *second,
                     enum model_part part, int64_t inter)
{
    int64_t bias = part == PART_EXPERTS ? d->m->expert_bias : 0;

    add(d, first, part, (model_is_gated(d->m) ? 2 : 1) * inter, d->m->hidden_size, bias);
    add(d, second, part, d->m->hidden_size, inter, bias);
}

/* Experts are on some GPU of all whole, or on each in slices. */
static void add_experts(struct division *d)
{
    const struct model *m = d->m;
    int64_t all = d->s->tensor * d->s->data;

    d->out->experts = m->num_experts;
    d->out->inter = m->moe_intermediate_size;
    if (d->s->expert_parallel)
        d->out->experts = divide(d, "num_experts", m->num_experts, all);
    else
        d->out->inter = divide(d, "moe_intermediate_size", m->moe_intermediate_size, all);
    add_pair(d, model_is_gated(m) ? "experts.gate_up" : "experts.up", "experts.down", PART_EXPERTS,
             d->out->inter);
}

static void add_all(struct division *d)
{
    const struct model *m = d->m;
    int64_t by = d->s->tensor;

    add_attention(d);
    if (model_has(m, PART_LINEAR_ATTENTION))
        add_linear_attention(d);
    if (model_has(m, PART_MAMBA))
        add_mamba(d);
    if (model_has(m, PART_MLP))
        add_pair(d, model_is_gated(m) ? "mlp.gate_up" : "mlp.up", "mlp.down", PART_MLP,
                 divide(d, "intermediate_size", m->intermediate_size, by));
    if (model_has(m, PART_SHARED))
        add_pair(
            d, model_is_gated(m) ? "shared.gate_up" : "shared.up", "shared.down", PART_SHARED,
            divide(d, "shared_expert_intermediate_size", m->shared_expert_intermediate_size, by));
    if (model_has(m, PART_EXPERTS))
        add_experts(d);
}

/* ---- what is left ---------------------------------------------------------------------------- */

static enum err_code check_served(const struct division *d)
{
    const struct settings *s = d->s;
    bool experts_only = s->online == ONLINE_EXPERTS && !s->linear;
    size_t with = 0;

    if (!s->linear && !(s->moe && d->m->num_experts))
        return errs_add(d->errs, ERR_CONFIG, s->server_at,
                        "no kernel of this model is Humming's: the server's arguments say neither "
                        "--linear-backend humming nor%s --quantization humming",
                        d->m->num_experts ? " --moe-backend humming nor" : "");
    if (d->m->state == WEIGHTS_UNKNOWN && s->online != ONLINE_ALL && !experts_only)
        return errs_add(d->errs, ERR_CONFIG, d->m->name_at,
                        "the weights of %s are not known: 'quantization' is missing here; "
                        "--model-config takes the checkpoint's config.json",
                        d->m->name);
    for (size_t i = 0; i < d->out->count; i++)
        with += d->out->items[i].weights != NULL;
    if (!with)
        return errs_add(d->errs, ERR_CONFIG, d->m->name_at,
                        "no matrix of %s that Humming serves is known to be quantized", d->m->name);
    return ERR_NONE;
}

enum err_code layers_of(const struct model *m, const struct settings *s, struct shapes *out,
                        struct errs *errs)
{
    struct division d = {.m = m, .s = s, .out = out, .errs = errs};

    *out = (struct shapes){0};
    add_all(&d);
    failed(&d, check_served(&d));
    return d.rc;
}
