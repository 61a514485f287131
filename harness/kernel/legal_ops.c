/* Rules of the families that are not a GEMM, and the dispatch: a table of rules binds some
 * families. */
#include "harness/kernel/legal.h"

#include "harness/kernel/legal_parts.h"
#include "harness/kernel/words.h"

#include <string.h>

/* ---- checks ---------------------------------------------------------------------------------- */

#define CHECK(word) (1u << CHECK_##word)
#define HYGIENE     (CHECK(GUARD) | CHECK(ALIAS) | CHECK(DETERMINISTIC) | CHECK(CONTRACT))
#define ALONE       (HYGIENE | CHECK(GRAPH))

/* clang-format off */
static const unsigned checks_of[] = {
    [FAMILY_GEMM]           = ~0u,
    [FAMILY_QUANT_WEIGHT]   = CHECK(EXACT) | CHECK(SPECIAL) | CHECK(EXHAUSTIVE) | ALONE,
    [FAMILY_DEQUANT_WEIGHT] = CHECK(EXACT) | CHECK(SPECIAL) | CHECK(EXHAUSTIVE) | ALONE,
    [FAMILY_PACK]           = CHECK(EXACT) | CHECK(SPECIAL) | CHECK(EXHAUSTIVE) | ALONE,
    [FAMILY_PROCESS_MXFP4]  = CHECK(EXACT) | CHECK(SPECIAL) | CHECK(EXHAUSTIVE) | ALONE,
    [FAMILY_PROCESS_INPUT]  = CHECK(EXACT) | CHECK(ULP) | CHECK(SPECIAL) | CHECK(EXHAUSTIVE) |
                              ALONE,
    [FAMILY_HADAMARD]       = CHECK(EXACT) | CHECK(SPECIAL) | ALONE,
    [FAMILY_MOE_SUM]        = CHECK(EXACT) | CHECK(SPECIAL) | ALONE,
    [FAMILY_EXPERTS]        = CHECK(EXACT) | CHECK(INVARIANT) | HYGIENE,
};
/* clang-format on */

static bool op_check(const int64_t *v)
{
    return checks_of[v[AX_FAMILY]] >> v[AX_CHECK] & 1u;
}

bool legal_has_check(int64_t family, int64_t gemm_type, int64_t check)
{
    int64_t v[AX_COUNT] = {0};

    v[AX_FAMILY] = family;
    v[AX_GEMM_TYPE] = gemm_type;
    v[AX_CHECK] = check;
    if (family != FAMILY_GEMM)
        return op_check(v);
    return check != CHECK_ULP;
}

static bool input_format(const int64_t *v)
{
    const struct dtype *t = legal_type(v, AX_INPUT);

    return legal_is_f16_or_bf16(t) || legal_is_float(t, 8, 23);
}

/* ---- quant_weight, dequant_weight ------------------------------------------------------------ */

static bool is_weight_float(const struct dtype *t)
{
    return t->is_float && t->is_signed && t->exp_bits >= 1 && t->bits <= 8 &&
           t->top == DTYPE_TOP_FINITE;
}

static bool quant_target(const int64_t *v)
{
    const struct dtype *b = legal_type(v, AX_B);

    return (!b->is_float && b->bits <= 8) || is_weight_float(b);
}

static bool quant_group(const int64_t *v)
{
    const int64_t group = v[AX_GROUP];

    return group == 0 || (group % 8 == 0 && v[AX_K] % group == 0);
}

static bool quant_scale(const int64_t *v)
{
    return v[AX_HAS_SCALE] || (!v[AX_E8M0] && v[AX_ZERO] == ZERO_NONE);
}

static bool quant_zero(const int64_t *v)
{
    return v[AX_ZERO] == ZERO_NONE || !legal_type(v, AX_B)->is_float;
}

static bool quant_exhaustive(const int64_t *v)
{
    return v[AX_CHECK] != CHECK_EXHAUSTIVE ||
           (!v[AX_HAS_SCALE] && legal_type(v, AX_INPUT)->bits == 16 &&
            v[AX_M] * v[AX_K] == 1 << 16);
}

static bool dequant_source(const int64_t *v)
{
    return is_weight_float(legal_type(v, AX_B));
}

static bool dequant_exhaustive(const int64_t *v)
{
    return v[AX_CHECK] != CHECK_EXHAUSTIVE || v[AX_M] >= INT64_C(1) << legal_type(v, AX_B)->bits;
}

/* ---- pack ------------------------------------------------------------------------------------ */

static bool pack_words(const int64_t *v)
{
    return v[AX_K] % 32 == 0;
}

static bool pack_exhaustive(const int64_t *v)
{
    return v[AX_CHECK] != CHECK_EXHAUSTIVE || v[AX_M] >= INT64_C(1) << v[AX_BITS];
}

/* ---- process_mxfp4 --------------------------------------------------------------------------- */

static bool mxfp4_a(const int64_t *v)
{
    const struct dtype *a = legal_type(v, AX_A);

    return (legal_is_float(a, 4, 3) && a->top != DTYPE_TOP_FINITE) ||
           (legal_is_int(a) && a->bits == 8);
}

static bool mxfp4_group(const int64_t *v)
{
    return v[AX_GROUP] > 0 && v[AX_K] % v[AX_GROUP] == 0 && v[AX_K] % 8 == 0;
}

/* All pairs of a largest and a smallest scale code are 255 x 256 / 2; a row has one of each. All
 * scale codes are 255. Each group has all 16 weight codes. */
static bool mxfp4_exhaustive(const int64_t *v)
{
    const int64_t rows = v[AX_PER_ROW] ? 32640 : 255, groups = v[AX_PER_ROW] ? 2 : 1;

    return v[AX_CHECK] != CHECK_EXHAUSTIVE ||
           (v[AX_M] == rows && v[AX_K] == groups * v[AX_GROUP] && v[AX_GROUP] % 16 == 0);
}

/* ---- the tables ------------------------------------------------------------------------------ */

#define BIT       AXIS_BIT
#define CONTRACT  "kernels/abi/humming_ops.h"
#define SEMANTICS "docs/semantics-ops.md"
#define AXES      "harness/config/axes.c"

/* clang-format off */
static const struct legal_rule op_rules[] = {
    {"op-check", AXES, BIT(AX_CHECK), op_check,
     "the family has no such check: readout, bound, model, invariant and locks are of GEMM; ulp "
     "is of process_input; exhaustive of weights and process_input"},
};

static const struct legal_rule input_rules[] = {
    {"input-format", CONTRACT, BIT(AX_INPUT), input_format,
     "input_dtype must be f16, bf16 or f32"},
};

static const struct legal_rule quant_rules[] = {
    {"quant-target", SEMANTICS, BIT(AX_B), quant_target,
     "quant_weight makes integers of at most 8 bits and signed floats with exponent bits"},
    {"quant-group", CONTRACT, BIT(AX_GROUP) | BIT(AX_K), quant_group,
     "weight_scale_group_size must be 0 or a multiple of 8 that divides k"},
    {"quant-scale", CONTRACT, BIT(AX_HAS_SCALE) | BIT(AX_E8M0) | BIT(AX_ZERO), quant_scale,
     "without scale there are no e8m0 scales and no zero points"},
    {"quant-zero-point", CONTRACT, BIT(AX_B) | BIT(AX_ZERO), quant_zero,
     "zero points belong to integers"},
    {"quant-exhaustive", AXES, BIT(AX_CHECK) | BIT(AX_HAS_SCALE) | BIT(AX_INPUT) | BIT(AX_M) |
     BIT(AX_K), quant_exhaustive,
     "exhaustive takes every 16-bit input without scale: m k is 65536"},
};

static const struct legal_rule dequant_rules[] = {
    {"dequant-source", CONTRACT, BIT(AX_B), dequant_source,
     "dequant_weight reads signed floats with exponent bits"},
    {"dequant-exhaustive", AXES, BIT(AX_CHECK) | BIT(AX_B) | BIT(AX_M), dequant_exhaustive,
     "exhaustive needs an m of at least the codes of b_dtype"},
};

static const struct legal_rule pack_rules[] = {
    {"pack-words", CONTRACT, BIT(AX_K), pack_words,
     "k must be a multiple of 32: a row is whole words"},
    {"pack-exhaustive", AXES, BIT(AX_CHECK) | BIT(AX_BITS) | BIT(AX_M), pack_exhaustive,
     "exhaustive needs an m of at least 2^bits"},
};

static const struct legal_rule mxfp4_rules[] = {
    {"mxfp4-a", CONTRACT, BIT(AX_A), mxfp4_a,
     "process_mxfp4 is for e4m3 and int8 activations"},
    {"mxfp4-group", CONTRACT, BIT(AX_GROUP) | BIT(AX_K), mxfp4_group,
     "weight_scale_group_size must divide k, and 8 must"},
    {"mxfp4-exhaustive", AXES, BIT(AX_CHECK) | BIT(AX_PER_ROW) | BIT(AX_GROUP) | BIT(AX_M) |
     BIT(AX_K), mxfp4_exhaustive,
     "exhaustive needs groups of a multiple of 16, and m 32640 and k two groups with per_row, "
     "else m 255 and k one group"},
};

static const struct legal_rule process_input_rules[] = {
    {"input-quant", SEMANTICS, BIT(AX_QUANT_MODE) | BIT(AX_QUANT), legal_input_quant,
     "quant_dtype must be e4m3, e5m2, e3m4, e2m1, e0m3, int8 or int4"},
    {"input-even", CONTRACT, BIT(AX_QUANT_MODE) | BIT(AX_QUANT) | BIT(AX_K), legal_input_even,
     "a 4-bit quant_dtype needs an even k"},
    {"input-group", CONTRACT, BIT(AX_QUANT_MODE) | BIT(AX_QUANT_GROUP), legal_input_group,
     "modes with groups need a quant_group_size, the others have none"},
    {"input-group-scale", CONTRACT, BIT(AX_QUANT_MODE) | BIT(AX_GROUP_SCALE),
     legal_input_group_scale,
     "group_scale_dtype must be f32, e8m0 or e4m3; e4m3 with dynamic_group_token, f32 without "
     "groups"},
    {"input-scale-layout", CONTRACT, BIT(AX_QUANT_MODE) | BIT(AX_GROUP_SCALE) |
     BIT(AX_SCALE_LAYOUT), legal_input_scale_layout,
     "scale_layout is row_major without groups; mx_packed needs group scales of 8 bits"},
    {"input-experts", CONTRACT, BIT(AX_LAYOUT) | BIT(AX_EXPERTS), legal_input_experts,
     "layouts grouped and grouped_padded need num_experts, the others have none"},
    {"input-routing", AXES, BIT(AX_LAYOUT) | BIT(AX_ROUTING), legal_input_routing,
     "routing is none but for layouts grouped and grouped_padded; rows are not duplicated"},
    {"input-max-tokens", CONTRACT, BIT(AX_LAYOUT) | BIT(AX_MAX_TOKENS), legal_input_max_tokens,
     "layout grouped_padded needs max_tokens, the others have none"},
    {"input-layout-dtype", CONTRACT, BIT(AX_LAYOUT) | BIT(AX_LAYOUT_DTYPE),
     legal_input_layout_dtype,
     "expert_layout_dtype int64 needs layout grouped, grouped_padded or permute (scatter always "
     "has int64)"},
    {"input-zero-invalid", CONTRACT, BIT(AX_LAYOUT) | BIT(AX_ZERO_INVALID),
     legal_input_zero_invalid,
     "zero_invalid needs layout grouped_padded"},
    {"input-swiglu", CONTRACT, BIT(AX_ACTIVATION) | BIT(AX_FORM) | BIT(AX_SWIGLU),
     legal_input_swiglu,
     "swiglu has a binary form; its parameters belong to no other activation"},
    {"input-hadamard", CONTRACT, BIT(AX_HADAMARD) | BIT(AX_K), legal_input_hadamard,
     "hadamard_block_size must be 0 or a power of two up to 512 that divides k"},
    {"input-ulp", AXES, BIT(AX_CHECK) | BIT(AX_QUANT_MODE) | BIT(AX_ACTIVATION) |
     BIT(AX_HADAMARD), legal_input_ulp,
     "ulp, not exact, is for an elementary activation alone: input_quant_mode disabled, no "
     "transform"},
    {"input-exhaustive", AXES, BIT(AX_CHECK) | BIT(AX_INPUT) | BIT(AX_M) | BIT(AX_K) |
     BIT(AX_HADAMARD) | BIT(AX_FORM) | BIT(AX_QUANT_MODE), legal_input_exhaustive,
     "exhaustive takes every 16-bit input: m k is at least 65536, input_quant_mode static_tensor "
     "or disabled, no transform, a unary form"},
};

static const struct legal_rule hadamard_rules[] = {
    {"hadamard-block", CONTRACT, BIT(AX_HADAMARD) | BIT(AX_K), legal_hadamard_block,
     "hadamard_block_size must be a power of two up to 512 that divides k"},
};

static const struct legal_rule sum_rules[] = {
    {"sum-map", CONTRACT, BIT(AX_EXPERTS) | BIT(AX_ROUTING), legal_sum_map,
     "num_experts is the size of the expert map, which needs topk_ids: routing other than none"},
    {"sum-routing", AXES, BIT(AX_ROUTING) | BIT(AX_TOP_K), legal_sum_routing,
     "sums have no spare rows; routing duplicate needs top_k above 1"},
};

/* What a layer is made of: rules of GEMM that read nothing else bind the layer gate_up. */
#define LAYER_AXES \
    (BIT(AX_A) | BIT(AX_B) | BIT(AX_C) | BIT(AX_BS) | BIT(AX_N) | BIT(AX_K) | BIT(AX_PAD_N) | \
     BIT(AX_PAD_K) | BIT(AX_SCALE) | BIT(AX_GROUP) | BIT(AX_SCALE_2) | BIT(AX_ZERO) | \
     BIT(AX_BIAS) | BIT(AX_INT_SCALE) | BIT(AX_FUSED))

static const struct legal_rule pipeline_rules[] = {
    {"pipeline-type", SEMANTICS, BIT(AX_GEMM_TYPE) | BIT(AX_EXPERTS), legal_pipeline_type,
     "the experts pipeline needs experts: num_experts of at least 1 and a gemm_type other than "
     "dense"},
    {"pipeline-top-k", SEMANTICS, BIT(AX_GEMM_TYPE) | BIT(AX_EXPERTS) | BIT(AX_TOP_K),
     legal_pipeline_top_k,
     "top_k is at most num_experts, and 1 with gemm_type grouped_masked"},
    {"pipeline-routing", AXES, BIT(AX_ROUTING) | BIT(AX_TOP_K), legal_pipeline_routing,
     "routing is not none; duplicate needs top_k above 1"},
    {"pipeline-max-tokens", CONTRACT, BIT(AX_GEMM_TYPE) | BIT(AX_EXPERTS) | BIT(AX_MAX_TOKENS) |
     BIT(AX_M), legal_max_tokens,
     "with gemm_type grouped_masked m is num_experts times max_tokens; the others have no "
     "max_tokens"},
    {"pipeline-layout-dtype", CONTRACT, BIT(AX_GEMM_TYPE) | BIT(AX_LAYOUT_DTYPE),
     legal_layout_dtype,
     "expert_layout_dtype int64 needs a grouped gemm_type"},
    {"pipeline-swiglu", CONTRACT, BIT(AX_ACTIVATION) | BIT(AX_FORM) | BIT(AX_SWIGLU),
     legal_input_swiglu,
     "swiglu has a binary form; its parameters belong to no other activation"},
    {"pipeline-columns", SEMANTICS, BIT(AX_FORM) | BIT(AX_N), legal_pipeline_columns,
     "a binary activation_form needs an even n"},
    {"pipeline-gate-up", SEMANTICS, LAYER_AXES | BIT(AX_GEMM_TYPE) | BIT(AX_EXPERTS) |
     BIT(AX_TOP_K) | BIT(AX_MAX_TOKENS) | BIT(AX_M) | BIT(AX_ROUTING), legal_pipeline_gate_up,
     "the layer gate_up (n, k) must be a legal product"},
    {"pipeline-down", SEMANTICS, LAYER_AXES | BIT(AX_GEMM_TYPE) | BIT(AX_EXPERTS) |
     BIT(AX_TOP_K) | BIT(AX_MAX_TOKENS) | BIT(AX_M) | BIT(AX_ROUTING) | BIT(AX_FORM),
     legal_pipeline_down,
     "the layer down (its n is k; its k is n, halved by a binary activation_form) must be a legal "
     "product"},
};

#define F(name)     AXIS_FAMILY_BIT(FAMILY_##name)
#define RULES(list) (list), sizeof(list) / sizeof(list)[0]

/* After those of GEMM. */
static const struct {
    const struct legal_rule *rules;
    int count;
    unsigned families;
} tables[] = {
    {RULES(op_rules),      ~F(GEMM)},
    {RULES(input_rules),   F(QUANT_WEIGHT) | F(PROCESS_INPUT) | F(HADAMARD) | F(MOE_SUM)},
    {RULES(quant_rules),   F(QUANT_WEIGHT)},
    {RULES(dequant_rules), F(DEQUANT_WEIGHT)},
    {RULES(pack_rules),    F(PACK)},
    {RULES(mxfp4_rules),   F(PROCESS_MXFP4)},
    {RULES(process_input_rules), F(PROCESS_INPUT)},
    {RULES(hadamard_rules), F(HADAMARD)},
    {RULES(sum_rules),     F(MOE_SUM)},
    {RULES(pipeline_rules), F(EXPERTS)},
};
/* clang-format on */
enum { TABLES = sizeof tables / sizeof tables[0] };

/* ---- dispatch -------------------------------------------------------------------------------- */

int legal_count(void)
{
    int count = legal_rule_count;

    for (int i = 0; i < TABLES; i++)
        count += tables[i].count;
    return count;
}

const struct legal_rule *legal_rule(int i)
{
    const struct legal_rule *rules = legal_rules;
    int count = legal_rule_count;

    for (int table = 0; i >= count && table < TABLES; table++) {
        i -= count;
        rules = tables[table].rules;
        count = tables[table].count;
    }
    return &rules[i];
}

static int find_in(const struct legal_rule *rules, int count, const int64_t *v, uint64_t known,
                   uint64_t touched)
{
    for (int i = 0; i < count; i++) {
        const uint64_t reads = rules[i].axes | AXIS_BIT(AX_FAMILY);

        if ((reads & touched) && !(reads & ~known) && !rules[i].holds(v))
            return i;
    }
    return -1;
}

/* The rules of GEMM about a layer alone. */
static int find_of_layer(const int64_t *v, uint64_t known, uint64_t touched)
{
    for (int i = 0; i < legal_rule_count; i++)
        if (!(legal_rules[i].axes & ~(uint64_t)LAYER_AXES) &&
            find_in(&legal_rules[i], 1, v, known, touched) == 0)
            return i;
    return -1;
}

int legal_find(const int64_t v[AX_COUNT], uint64_t known, uint64_t touched)
{
    int before = legal_rule_count, found = -1;

    if (!(known & AXIS_BIT(AX_FAMILY)))
        return -1;
    if (v[AX_FAMILY] == FAMILY_GEMM)
        return find_in(legal_rules, legal_rule_count, v, known, touched);
    if (v[AX_FAMILY] == FAMILY_EXPERTS)
        found = find_of_layer(v, known, touched);
    if (found >= 0)
        return found;
    for (int i = 0; i < TABLES; i++) {
        if (tables[i].families & AXIS_FAMILY_BIT(v[AX_FAMILY]))
            found = find_in(tables[i].rules, tables[i].count, v, known, touched);
        if (found >= 0)
            return before + found;
        before += tables[i].count;
    }
    return -1;
}

const struct legal_rule *legal_broken(const int64_t v[AX_COUNT])
{
    const int broken = legal_find(v, ~UINT64_C(0), ~UINT64_C(0));

    return broken < 0 ? NULL : legal_rule(broken);
}
