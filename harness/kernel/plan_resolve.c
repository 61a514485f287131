#include "harness/kernel/plan_resolve.h"

#include "harness/kernel/legal.h"
#include "harness/kernel/legal_parts.h"
#include "harness/kernel/words.h"
#include "reference/inputs.h"

#include <string.h>

/* Below so many rows, bf16 outputs leave fill E1 too little room. */
enum { E1_MIN_M = 16 };

static int64_t row_of(const char *name)
{
    return dtype_find(name) - dtypes;
}

static int64_t up_to(int64_t size, int64_t multiple)
{
    return (multiple - size % multiple) % multiple;
}

static int64_t resolve_routing(const int64_t *v)
{
    return v[AX_GEMM_TYPE] == GEMM_DENSE ? ROUTING_NONE : ROUTING_UNIFORM;
}

static int64_t resolve_max_tokens(const int64_t *v)
{
    bool masked = v[AX_GEMM_TYPE] == GEMM_GROUPED_MASKED && v[AX_EXPERTS] > 0;

    return masked ? v[AX_M] / v[AX_EXPERTS] : 0;
}

static int64_t resolve_input_routing(const int64_t *v)
{
    bool grouped = v[AX_LAYOUT] == REF_LAYOUT_GROUPED || v[AX_LAYOUT] == REF_LAYOUT_GROUPED_PADDED;

    return grouped ? ROUTING_UNIFORM : ROUTING_NONE;
}

/* Twice an expert's share, so that some rows are beyond a count. */
static int64_t resolve_input_max_tokens(const int64_t *v)
{
    bool padded = v[AX_LAYOUT] == REF_LAYOUT_GROUPED_PADDED && v[AX_EXPERTS] > 0;

    return padded ? 2 * v[AX_M] / v[AX_EXPERTS] + 1 : 0;
}

static int64_t resolve_sum_routing(const int64_t *v)
{
    return v[AX_EXPERTS] ? ROUTING_UNIFORM : ROUTING_NONE;
}

static int64_t resolve_quant_group(const int64_t *v)
{
    return ref_input_has_groups((enum ref_input_mode)v[AX_QUANT_MODE]) ? 128 : 0;
}

static int64_t resolve_group_scale(const int64_t *v)
{
    return row_of(v[AX_QUANT_MODE] == REF_INPUT_DYNAMIC_GROUP_TOKEN ? "e4m3" : "f32");
}

static int64_t resolve_c(const int64_t *v)
{
    return legal_type(v, AX_A)->bits == 16 ? v[AX_A] : row_of("bf16");
}

static int64_t resolve_bs(const int64_t *v)
{
    return v[AX_SCALE] == SCALE_BLOCK || v[AX_SCALE] == SCALE_TENSOR ? row_of("f32") : v[AX_C];
}

static int64_t resolve_pad_n(const int64_t *v)
{
    return up_to(v[AX_N], 64);
}

static int64_t resolve_pad_k(const int64_t *v)
{
    return up_to(v[AX_K], 512 / legal_type(v, AX_A)->bits);
}

static int64_t resolve_group(const int64_t *v)
{
    return v[AX_SCALE] == SCALE_GROUP || v[AX_SCALE] == SCALE_BLOCK ? 128 : 0;
}

static int64_t resolve_group_n(const int64_t *v)
{
    return v[AX_SCALE] == SCALE_BLOCK ? 128 : 0;
}

static int64_t resolve_fused(const int64_t *v)
{
    const struct dtype *a = legal_type(v, AX_A);
    bool int8_or_e4m3 = a->bits == 8 && (legal_is_int(a) || legal_is_float(a, 4, 3));

    return int8_or_e4m3 && legal_is_float(legal_type(v, AX_B), 2, 1) &&
           legal_is_scale_float(legal_type(v, AX_BS), 8, 0) && v[AX_SCALE] == SCALE_GROUP;
}

static int64_t resolve_int_scale(const int64_t *v)
{
    return legal_is_int(legal_type(v, AX_A)) && v[AX_SCALE] == SCALE_GROUP &&
           v[AX_INPUT_GROUP] == 0 && v[AX_SCALE_2] != SCALE_2_CHANNEL && v[AX_GROUP_N] <= 1 &&
           !v[AX_FUSED];
}

/* Fill E1 wants outputs that one rounding makes; where an output is rounded more than once (f16
 * accumulators, sums of Stream-K slices), E2 is exact. So it is where the sums of E1 would hide a
 * wrong weight: few rows with bf16 outputs or with wide weights, whose steps are small beside the
 * sums, and both together whatever the rows. An expert may have few rows whatever m is. */
static int64_t resolve_fill(const int64_t *v)
{
    bool bf16 = legal_is_float(legal_type(v, AX_C), 8, 7);
    bool wide = legal_type(v, AX_B)->bits >= 6;
    bool few = v[AX_M] < E1_MIN_M || v[AX_GEMM_TYPE] != GEMM_DENSE;
    bool provider = v[AX_TUNING] == TUNING_PROVIDER; /* may choose Stream-K */
    bool hidden = (bf16 && wide) || (few && (bf16 || wide));

    switch ((enum word_check)v[AX_CHECK]) {
    case CHECK_EXACT:
        return v[AX_F16_ACCUM] || v[AX_STREAM_K] || hidden || provider ? FILL_E2 : FILL_E1;
    case CHECK_READOUT:
    case CHECK_EXHAUSTIVE:
        return FILL_P;
    case CHECK_BOUND:
    case CHECK_ULP:
    case CHECK_MODEL:
    case CHECK_INVARIANT:
    case CHECK_DETERMINISTIC:
        return FILL_R;
    case CHECK_ALIAS: /* of sums in any order only exact ones repeat */
        return v[AX_STREAM_K] || provider ? FILL_E2 : FILL_R;
    case CHECK_GUARD:
    case CHECK_LOCKS:
    case CHECK_GRAPH:
        return FILL_E2;
    case CHECK_SPECIAL:
        return FILL_X;
    case CHECK_CONTRACT:
        return FILL_E1;
    }
    return FILL_R;
}

/* A group is a row unless it is stated. */
static int64_t resolve_no_group(const int64_t *v)
{
    (void)v;
    return 0;
}

/* OCP MX. */
static int64_t resolve_mx_group(const int64_t *v)
{
    (void)v;
    return 32;
}

static int64_t resolve_range(const int64_t *v)
{
    return legal_type(v, AX_A)->is_float ? 11 : 3;
}

#define BIT     AXIS_BIT
#define F(name) AXIS_FAMILY_BIT(FAMILY_##name)
#define PRODUCT (F(GEMM) | F(EXPERTS))

/* A rule stands below those whose result it reads. c, bs, int scale and fused are upstream
 * Humming's own (its layer configuration's defaults); the others are this harness'. */
/* clang-format off */
static const struct {
    unsigned families;
    enum axis_id axis;
    uint64_t reads; /* beside the family */
    int64_t (*value)(const int64_t *v);
} rules[] = {
    {PRODUCT, AX_ROUTING,    BIT(AX_GEMM_TYPE),                              resolve_routing},
    {PRODUCT, AX_MAX_TOKENS, BIT(AX_GEMM_TYPE) | BIT(AX_EXPERTS) | BIT(AX_M), resolve_max_tokens},
    {PRODUCT, AX_C,          BIT(AX_A),                                      resolve_c},
    {PRODUCT, AX_BS,         BIT(AX_SCALE) | BIT(AX_C),                      resolve_bs},
    {PRODUCT, AX_PAD_N,      BIT(AX_N),                                      resolve_pad_n},
    {PRODUCT, AX_PAD_K,      BIT(AX_K) | BIT(AX_A),                          resolve_pad_k},
    {PRODUCT, AX_GROUP,      BIT(AX_SCALE),                                  resolve_group},
    {PRODUCT, AX_GROUP_N,    BIT(AX_SCALE),                                  resolve_group_n},
    {PRODUCT, AX_FUSED,      BIT(AX_A) | BIT(AX_B) | BIT(AX_BS) | BIT(AX_SCALE), resolve_fused},
    {PRODUCT, AX_INT_SCALE,  BIT(AX_A) | BIT(AX_SCALE) | BIT(AX_INPUT_GROUP) | BIT(AX_SCALE_2) |
                             BIT(AX_GROUP_N) | BIT(AX_FUSED),                resolve_int_scale},
    {PRODUCT, AX_FILL,       BIT(AX_CHECK) | BIT(AX_F16_ACCUM) | BIT(AX_STREAM_K) | BIT(AX_C) |
                             BIT(AX_B) | BIT(AX_M) | BIT(AX_GEMM_TYPE) | BIT(AX_TUNING), resolve_fill},
    {F(QUANT_WEIGHT),  AX_GROUP, 0,                                          resolve_no_group},
    {F(PROCESS_MXFP4), AX_GROUP, 0,                                          resolve_mx_group},
    {F(PROCESS_MXFP4), AX_RANGE, BIT(AX_A),                                  resolve_range},
    {F(PROCESS_INPUT), AX_ROUTING,     BIT(AX_LAYOUT),                       resolve_input_routing},
    {F(PROCESS_INPUT), AX_MAX_TOKENS,  BIT(AX_LAYOUT) | BIT(AX_EXPERTS) | BIT(AX_M),
                                                                       resolve_input_max_tokens},
    {F(PROCESS_INPUT), AX_QUANT_GROUP, BIT(AX_QUANT_MODE),                   resolve_quant_group},
    {F(PROCESS_INPUT), AX_GROUP_SCALE, BIT(AX_QUANT_MODE),                   resolve_group_scale},
    {F(MOE_SUM),       AX_ROUTING,     BIT(AX_EXPERTS),                      resolve_sum_routing},
};
/* clang-format on */

/* An axis that the family does not have gets a value that nothing looks at. Others may stay auto,
 * which is the family's doing, too. */
static void resolve_foreign(int64_t v[AX_COUNT], uint64_t known, uint64_t decided_by[AX_COUNT])
{
    const unsigned family = AXIS_FAMILY_BIT(v[AX_FAMILY]);

    for (int x = 0; x < AX_COUNT; x++) {
        if (x == AX_SEED || !(known & AXIS_BIT(x)) || v[x] != AXIS_AUTO)
            continue;
        decided_by[x] |= AXIS_BIT(AX_FAMILY);
        if (!axis_is_of_families(&axes[x], family))
            v[x] = 0;
    }
}

/* What may depend on the family is not known before it. */
static uint64_t without_auto(const int64_t v[AX_COUNT], uint64_t known)
{
    for (int x = 0; x < AX_COUNT; x++)
        if (x != AX_SEED && known & AXIS_BIT(x) && v[x] == AXIS_AUTO)
            known &= ~AXIS_BIT(x);
    return known;
}

static uint64_t resolve_rules(int64_t v[AX_COUNT], uint64_t known, uint64_t decided_by[AX_COUNT])
{
    const unsigned family = AXIS_FAMILY_BIT(v[AX_FAMILY]);

    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        enum axis_id x = rules[i].axis;

        if (!(rules[i].families & family) || !(known & AXIS_BIT(x)) || v[x] != AXIS_AUTO)
            continue;
        if (rules[i].reads & ~known) {
            known &= ~AXIS_BIT(x);
            continue;
        }
        v[x] = rules[i].value(v);
        for (uint64_t reads = rules[i].reads | AXIS_BIT(AX_FAMILY); reads; reads &= reads - 1)
            decided_by[x] |= decided_by[__builtin_ctzll(reads)];
    }
    return known;
}

uint64_t plan_resolve(int64_t v[AX_COUNT], uint64_t known, uint64_t seed,
                      uint64_t decided_by[AX_COUNT])
{
    for (int x = 0; x < AX_COUNT; x++)
        decided_by[x] = AXIS_BIT(x);
    if (known & AXIS_BIT(AX_FAMILY)) {
        resolve_foreign(v, known, decided_by);
        known = resolve_rules(v, known, decided_by);
    } else {
        known = without_auto(v, known);
    }
    if (known & AXIS_BIT(AX_SEED) && v[AX_SEED] == AXIS_AUTO)
        memcpy(&v[AX_SEED], &seed, sizeof seed);
    return known;
}
