#include "harness/kernel/legal.h"
#include "harness/kernel/plan_resolve.h"
#include "harness/kernel/words.h"
#include "harness/test/case_text.h"
#include "reference/dtype.h"

#include <stdlib.h>

static const uint64_t all_axes = AXIS_ALL;

/* Any seed: it decides nothing about legality. */
static void resolve(int64_t v[AX_COUNT])
{
    uint64_t decided_by[AX_COUNT];

    ck_assert(plan_resolve(v, all_axes, 1, decided_by) == all_axes);
}

static const char *broken_name(const int64_t v[AX_COUNT])
{
    const struct legal_rule *rule = legal_broken(v);

    return rule ? rule->name : "legal";
}

static const struct {
    enum axis_id axis;
    int value;
    const char *word;
} words[] = {
    {AX_GEMM_TYPE, GEMM_DENSE, "dense"},
    {AX_GEMM_TYPE, GEMM_GROUPED_MASKED, "grouped_masked"},
    {AX_SCALE_LAYOUT, SCALES_ROW_MAJOR, "row_major"},
    {AX_SCALE_LAYOUT, SCALES_M_MAJOR, "m_major"},
    {AX_SCALE_LAYOUT, SCALES_MX_PACKED, "mx_packed"},
    {AX_ROUTING, ROUTING_NONE, "none"},
    {AX_ROUTING, ROUTING_UNIFORM, "uniform"},
    {AX_ROUTING, ROUTING_SKEWED, "skewed"},
    {AX_ROUTING, ROUTING_EMPTY, "empty"},
    {AX_ROUTING, ROUTING_SINGLE, "single"},
    {AX_ROUTING, ROUTING_DUPLICATE, "duplicate"},
    {AX_ROUTING, ROUTING_MISSING, "missing"},
    {AX_ROUTING, ROUTING_SPARE, "spare"},
    {AX_LAYOUT_DTYPE, LAYOUT_INT32, "int32"},
    {AX_LAYOUT_DTYPE, LAYOUT_INT64, "int64"},
    {AX_SCALE, SCALE_CHANNEL, "channel"},
    {AX_SCALE, SCALE_GROUP, "group"},
    {AX_SCALE, SCALE_BLOCK, "block"},
    {AX_SCALE, SCALE_TENSOR, "tensor"},
    {AX_SCALE_2, SCALE_2_NONE, "none"},
    {AX_SCALE_2, SCALE_2_TENSOR, "tensor"},
    {AX_SCALE_2, SCALE_2_CHANNEL, "channel"},
    {AX_ZERO, ZERO_NONE, "none"},
    {AX_ZERO, ZERO_INT, "int"},
    {AX_ZERO, ZERO_FLOAT, "float"},
    {AX_MMA, MMA_MMA, "mma"},
    {AX_MMA, MMA_WGMMA, "wgmma"},
    {AX_MMA, MMA_UMMA, "umma"},
    {AX_MMA, MMA_MXMMA, "mxmma"},
    {AX_TMA, COPY_ASYNC, "false"},
    {AX_TMA, COPY_TMA, "true"},
    {AX_TMA, COPY_PLAIN, "plain"},
    {AX_TMA, COPY_MBARRIER, "mbarrier"},
    {AX_TMA, COPY_TMA_A, "a"},
    {AX_TMA, COPY_TMA_B, "b"},
    {AX_TMA, COPY_TMA_A_B, "a_b"},
    {AX_TMA, COPY_TMA_C, "c"},
    {AX_TMA, COPY_TMA_SCALES, "scales"},
    {AX_TMA, COPY_TMA_BIAS, "bias"},
    {AX_TMA, COPY_TMA_AS, "as"},
    {AX_TMA, COPY_MULTICAST_A, "multicast_a"},
    {AX_TMA, COPY_MULTICAST_B, "multicast_b"},
    {AX_TUNING, TUNING_AXES, "axes"},
    {AX_TUNING, TUNING_PROVIDER, "provider"},
    {AX_CHECK, CHECK_EXACT, "exact"},
    {AX_CHECK, CHECK_READOUT, "readout"},
    {AX_CHECK, CHECK_BOUND, "bound"},
    {AX_CHECK, CHECK_ULP, "ulp"},
    {AX_CHECK, CHECK_MODEL, "model"},
    {AX_CHECK, CHECK_INVARIANT, "invariant"},
    {AX_CHECK, CHECK_DETERMINISTIC, "deterministic"},
    {AX_CHECK, CHECK_ALIAS, "alias"},
    {AX_CHECK, CHECK_GUARD, "guard"},
    {AX_CHECK, CHECK_LOCKS, "locks"},
    {AX_CHECK, CHECK_SPECIAL, "special"},
    {AX_CHECK, CHECK_CONTRACT, "contract"},
    {AX_CHECK, CHECK_EXHAUSTIVE, "exhaustive"},
    {AX_FILL, FILL_E1, "E1"},
    {AX_FILL, FILL_E2, "E2"},
    {AX_FILL, FILL_P, "P"},
    {AX_FILL, FILL_W, "W"},
    {AX_FILL, FILL_S, "S"},
    {AX_FILL, FILL_O, "O"},
    {AX_FILL, FILL_C, "C"},
    {AX_FILL, FILL_X, "X"},
    {AX_FILL, FILL_R, "R"},
    {AX_DATA, DATA_NORMAL, "normal"},
    {AX_DATA, DATA_POSITIVE, "positive"},
};

START_TEST(words_match_axes)
{
    ck_assert_str_eq(axes[words[_i].axis].words[words[_i].value], words[_i].word);
}
END_TEST

/* Upstream's table of valid combinations, transcribed: the widest uintN without and with zero
 * point, the largest E and M of a float weight (least E: 1 unless the activations have none), and
 * the one signed integer. */
/* clang-format off */
static const struct combination {
    const char *a;
    int uint, uint_zero;
    int least_e, most_e, most_m; /* most_e < least_e: no float */
    const char *same;            /* signed integer weight, "" for none */
} combinations[] = {
    {"f16",  8, 8, 1,  5, 10, ""},
    {"bf16", 8, 8, 1,  8,  7, ""},
    {"e4m3", 5, 4, 1,  4,  3, ""},
    {"e5m2", 4, 3, 1,  5,  2, ""},
    {"e3m4", 6, 5, 1,  3,  4, ""},
    {"e2m1", 3, 2, 1,  2,  1, ""},
    {"e0m3", 0, 0, 0,  0,  3, ""},
    {"int8", 7, 7, 1, -1, -1, "int8"},
    {"int4", 3, 3, 1, -1, -1, "int4"},
};
/* clang-format on */

static const char *upstream_name(const struct dtype *t)
{
    return t->alias ? t->alias : t->name;
}

/* Is weight b with this kind of zero point in the table? Reads b's name only. */
static bool in_table(const struct combination *c, const struct dtype *b, enum word_zero zero)
{
    bool is_16_bit = strstr(c->a, "16") != NULL;
    int bits, e, m, end = 0;
    const char *name = upstream_name(b);

    if (sscanf(name, "uint%d%n", &bits, &end) == 1 && !name[end]) {
        if (zero == ZERO_FLOAT && !is_16_bit)
            return false;
        return bits <= (zero == ZERO_NONE ? c->uint : c->uint_zero);
    }
    if (zero != ZERO_NONE)
        return false;
    if (sscanf(name, "float%de%dm%d%n", &bits, &e, &m, &end) == 3 && !name[end])
        return bits <= 8 && bits == 1 + e + m && e >= c->least_e && e <= c->most_e &&
               m <= c->most_m;
    return !strcmp(name, c->same);
}

START_TEST(formats_match_table)
{
    const struct combination *c = &combinations[_i];
    int legal = 0;

    for (int b = 0; b < dtype_count; b++)
        for (int zero = ZERO_NONE; zero <= ZERO_FLOAT; zero++) {
            int64_t v[AX_COUNT];

            if (dtype_find_weight(dtypes[b].name) != &dtypes[b])
                continue;
            case_defaults(v);
            v[AX_A] = case_value(AX_A, c->a);
            v[AX_B] = b;
            v[AX_ZERO] = zero;
            resolve(v);
            legal += !legal_broken(v);
            ck_assert_msg(!legal_broken(v) == in_table(c, &dtypes[b], (enum word_zero)zero),
                          "a=%s b=%s zero=%d: %s", c->a, dtypes[b].name, zero, broken_name(v));
        }
    ck_assert_int_ge(legal, 2);
}
END_TEST

/* No other format is an activation, also not the weight form of one. */
START_TEST(activations)
{
    int found = 0;

    for (int a = 0; a < dtype_count; a++) {
        int64_t v[AX_COUNT];
        bool listed = false;

        for (size_t i = 0; i < sizeof combinations / sizeof combinations[0]; i++)
            listed |= dtype_find(combinations[i].a) == &dtypes[a];
        found += listed;
        case_defaults(v);
        v[AX_A] = a;
        resolve(v);
        ck_assert_msg(listed == (strcmp(broken_name(v), "a-format") != 0), "%s", dtypes[a].name);
    }
    ck_assert_int_eq(found, 9);
}
END_TEST

/* A change of the defaults, and the first rule that it breaks. */
/* clang-format off */
static const struct {
    const char *change, *rule;
} examples[] = {
    {"", "legal"},
    /* left out by upstream's tests only */
    {"a_dtype=f16 bs_dtype=e8m0 weight_scale_type=group", "legal"},
    {"a_dtype=e5m2 c_dtype=f16 b_dtype=uint3", "legal"}, /* the same */
    {"a_dtype=bf16 weight_scale_type=block", "legal"},
    {"a_dtype=e4m3 weight_scale_type=block input_scale_group_size=128", "legal"},
    /* block scales are rounded up */
    {"a_dtype=e4m3 weight_scale_type=block k=1088 pad_shape_k=64", "legal"},
    {"a_dtype=e4m3 weight_scale_type=group weight_scale_group_size=64 input_scale_group_size=32",
     "legal"},
    {"a_dtype=int8 b_dtype=e2m1 bs_dtype=e8m0 weight_scale_type=group weight_scale_group_size=32",
     "legal"},
    {"a_dtype=e4m3 b_dtype=e2m1 bs_dtype=e8m0 weight_scale_type=group input_scale_group_size=64",
     "legal"},
    {"a_dtype=e4m3 b_dtype=e2m1 bs_dtype=e8m0 weight_scale_type=group use_fused_e8m0_scale=false",
     "legal"},
    {"a_dtype=int4 b_dtype=int4 weight_scale_type=group use_int_weight_scale=false", "legal"},
    {"a_dtype=e4m3 c_dtype=f16 use_f16_accum=true", "legal"},
    {"n=1000 k=1000 b_dtype=uint8", "legal"},
    {"n=1000 pad_shape_n=88", "legal"},
    {"block_shape=64x256x64 warp_shape=64x64x64 mma_type=wgmma", "legal"},
    {"block_shape=64x128x64 warp_shape=64x32x64 use_warp_spec=true num_stages=3 mma_type=wgmma",
     "legal"},
    {"a_dtype=int8 block_shape=8x64x64 warp_shape=8x16x64 mma_type=mma", "legal"},
    {"a_dtype=f32", "a-format"},
    {"a_dtype=float8e4m3", "a-format"},
    {"a_dtype=e2m1 b_dtype=uint5", "b-bits"},
    {"b_dtype=e8m0", "b-kind"},
    {"b_dtype=int4", "b-signed"},
    {"a_dtype=int8 b_dtype=uint8", "b-uint-width"},
    {"a_dtype=e4m3 b_dtype=uint6", "b-uint-width"},
    {"a_dtype=e4m3 b_dtype=float8e5m2", "b-float-fields"},
    {"b_dtype=float4e0m3", "b-float-fields"},
    {"a_dtype=int8 b_dtype=e2m1", "b-float-under-int"},
    {"a_dtype=e4m3 c_dtype=f32", "c-format"},
    {"c_dtype=bf16", "c-as-a"},
    {"bs_dtype=int8", "bs-format"},
    {"bs_dtype=float8e4m3", "bs-format"},
    {"bs_dtype=bf16", "bs-as-c"},
    {"bs_dtype=f32", "bs-f32"},
    {"weight_scale_type=tensor bs_dtype=f16", "bs-f32"},
    {"b_dtype=float6e3m2 zero_point=int", "zero-point-kind"},
    {"a_dtype=int8 b_dtype=int8 zero_point=int", "zero-point-kind"},
    {"a_dtype=e4m3 b_dtype=uint5 zero_point=int", "zero-point-width"},
    {"a_dtype=e4m3 zero_point=float", "zero-point-float"},
    {"weight_scale_type=block zero_point=int", "zero-point-block"},
    {"weight_scale_group_size=128", "group-presence"},
    {"weight_scale_type=group weight_scale_group_size=0", "group-presence"},
    {"weight_scale_type=group weight_scale_group_size=8", "group-size"},
    {"a_dtype=e4m3 weight_scale_type=group weight_scale_group_size=16", "group-size"},
    {"weight_scale_type=group weight_scale_group_size=96 k=1536", "group-size"},
    {"weight_scale_type=group weight_scale_group_size_n=64", "group-n"},
    {"weight_scale_type=block weight_scale_group_size_n=32", "group-n"},
    {"weight_scale_2_type=tensor", "scale-2"},
    {"input_scale_group_size=128", "input-group-bits"},
    {"a_dtype=e4m3 input_scale_group_size=16", "input-group-size"},
    {"a_dtype=e4m3 weight_scale_type=block input_scale_group_size=64", "input-group-block"},
    {"use_int_weight_scale=true", "int-scale"},
    {"a_dtype=int8 weight_scale_type=group weight_scale_2_type=channel use_int_weight_scale=true",
     "int-scale"},
    {"a_dtype=e4m3 b_dtype=e2m1 weight_scale_type=group use_fused_e8m0_scale=true", "fused"},
    {"a_dtype=bf16 use_f16_accum=true", "f16-accum"},
    {"a_dtype=e4m3 use_f16_accum=true", "f16-accum"},
    {"a_dtype=int8 c_dtype=f16 use_f16_accum=true", "f16-accum"},
    {"n=1000 pad_shape_n=0", "shape-n"},
    {"k=1000 pad_shape_k=0", "shape-k"},
    {"a_dtype=int4 b_dtype=int4 k=1088 pad_shape_k=0", "shape-k"},
    {"n=1001", "pad-n"},
    {"k=1004", "pad-k"},
    {"k=1000 b_dtype=uint3", "row-words"},
    {"n=1000 b_dtype=uint3 zero_point=int", "zero-point-words"},
    {"weight_scale_type=group k=1088", "k-groups"},
    {"weight_scale_type=group k=1088 pad_shape_k=64", "k-groups"},
    {"a_dtype=e4m3 weight_scale_type=block k=1088", "k-groups"},
    {"a_dtype=e4m3 input_scale_group_size=128 k=1088", "k-input-groups"},
    {"a_dtype=e4m3 input_scale_group_size=128 k=1088 pad_shape_k=64", "k-input-groups"},
    {"block_shape=64x64x64", "tiles-together"},
    {"block_shape=512x64x64 warp_shape=64x32x64", "block-size"},
    {"block_shape=64x96x64 warp_shape=64x32x64", "block-size"},
    {"n=64 block_shape=64x128x64 warp_shape=64x32x64", "block-n"},
    {"k=64 block_shape=64x64x128 warp_shape=64x32x64", "block-k"},
    {"block_shape=64x128x64 warp_shape=64x16x64", "warp-n"},
    {"block_shape=64x128x64 warp_shape=64x128x64", "warp-n"},
    {"a_dtype=int8 block_shape=64x128x64 warp_shape=64x32x32", "warp-k"},
    {"block_shape=64x128x64 warp_shape=8x32x64 mma_type=mma", "warp-m"},
    {"block_shape=36x128x64 warp_shape=36x32x64", "warp-m"},
    {"a_dtype=int8 block_shape=40x128x64 warp_shape=40x32x64 mma_type=wgmma", "warp-m"},
    {"block_shape=96x128x64 warp_shape=32x32x64", "tile-ratio"},
    {"block_shape=256x256x128 warp_shape=16x32x64", "threads"},
    {"block_shape=256x256x64 warp_shape=64x32x64 use_warp_spec=true num_stages=3 mma_type=mma",
     "threads"},
    {"block_shape=64x64x64 warp_shape=64x32x64 use_warp_spec=true", "warp-spec"},
    {"tuning=provider use_stream_k=true", "tuning"},
    {"use_batch_invariant=true use_stream_k=true", "invariant-stream-k"},
    {"use_batch_invariant=true block_shape=64x64x64 warp_shape=64x32x32", "invariant-k-warps"},
    {"a_dtype=int4 b_dtype=int4 mma_type=wgmma", "wgmma-format"},
    {"block_shape=64x64x64 warp_shape=64x32x64 mma_type=wgmma", "wgmma-warps"},
    {"mma_type=wgmma num_stages=2", "wgmma-stages"},
    {"mma_type=wgmma num_stages=3", "legal"},
    {"block_shape=64x256x128 warp_shape=64x64x128 mma_type=wgmma num_stages=3", "wgmma-warp-k"},
    {"a_dtype=e4m3 block_shape=64x128x128 warp_shape=64x32x128 mma_type=wgmma num_stages=3", "legal"},
    {"a_dtype=e4m3 weight_scale_type=group block_shape=64x64x128 warp_shape=64x16x128 mma_type=wgmma "
     "num_stages=3", "wgmma-packed-k"},
    {"a_dtype=int8 weight_scale_type=group block_shape=64x128x64 warp_shape=64x32x64 mma_type=wgmma "
     "num_stages=3", "wgmma-packed-k"},
    {"a_dtype=int8 weight_scale_type=group weight_scale_group_size=64 block_shape=64x128x64 "
     "warp_shape=64x32x64 mma_type=wgmma num_stages=3", "legal"},
    {"a_dtype=int8 b_dtype=uint5 weight_scale_type=group block_shape=64x128x64 warp_shape=64x32x64 "
     "mma_type=wgmma num_stages=3", "legal"},
    {"a_dtype=e4m3 weight_scale_type=group block_shape=64x32x128 warp_shape=64x32x128 mma_type=mma",
     "mma-group-n"},
    {"a_dtype=e4m3 block_shape=64x32x128 warp_shape=64x32x128 mma_type=mma", "legal"},
    {"mma_type=mxmma use_f16_accum=true", "mxmma-f16-accum"},
    {"mma_type=mxmma use_stream_k=true zero_point=int", "mxmma-zero-point"},
    {"num_write_splits=2 use_tma=true", "write-splits-tma"},
    {"num_write_splits=2 use_tma=c", "write-splits-tma"},
    {"num_write_splits=2 use_tma=a_b", "legal"},
    {"num_write_splits=2 block_shape=64x64x64 warp_shape=32x32x64", "write-splits-m"},
    {"gemm_type=indexed", "experts"},
    {"num_experts=4", "experts"},
    {"top_k=2", "top-k"},
    {"gemm_type=grouped_contiguous num_experts=4 top_k=2", "top-k"},
    {"gemm_type=indexed num_experts=4 top_k=8", "top-k"},
    {"routing=uniform", "routing"},
    {"gemm_type=indexed num_experts=4 routing=none", "routing"},
    {"gemm_type=indexed num_experts=4 routing=duplicate", "routing-duplicate"},
    {"gemm_type=grouped_masked num_experts=3", "max-tokens"},
    {"max_tokens=8", "max-tokens"},
    {"gemm_type=indexed num_experts=4 max_tokens=8", "max-tokens"},
    {"expert_layout_dtype=int64", "layout-dtype"},
    {"gemm_type=indexed num_experts=4 expert_layout_dtype=int64", "layout-dtype"},
    {"zero_point=float n=512 block_shape=64x512x64 warp_shape=64x64x64 use_tma=scales",
     "tma-zero-point"},
    {"zero_point=float n=512 block_shape=64x512x64 warp_shape=64x64x64 use_tma=b", "legal"},
    {"zero_point=int n=512 block_shape=64x512x64 warp_shape=64x64x64 use_tma=scales", "legal"},
    {"a_dtype=e4m3 use_tma=as", "tma-as"},
    {"a_dtype=e4m3 scale_layout=m_major use_tma=as", "legal"},
    {"gemm_type=grouped_contiguous num_experts=4 use_tma=multicast_a use_warp_spec=true",
     "multicast-dense"},
    {"use_tma=multicast_a", "multicast-warp-spec"},
    {"use_tma=multicast_b use_warp_spec=true", "legal"},
    {"n=640 block_shape=64x128x64 warp_shape=64x32x64 use_tma=multicast_a use_warp_spec=true",
     "multicast-n"},
    {"n=640 block_shape=64x128x64 warp_shape=64x32x64 use_tma=multicast_b use_warp_spec=true",
     "legal"},
    {"tuning=provider raster_group_m=2", "tuning"},
    {"gemm_type=indexed num_experts=4 use_tma=true", "indexed-tma"},
    {"gemm_type=indexed num_experts=4 use_tma=a", "indexed-tma"},
    {"gemm_type=indexed num_experts=4 use_tma=c", "indexed-tma"},
    {"gemm_type=indexed num_experts=4 use_tma=b", "legal"},
    {"gemm_type=indexed num_experts=4 use_tma=scales", "legal"},
    {"scale_layout=m_major", "m-major"},
    {"a_dtype=e4m3 scale_layout=m_major", "legal"},
    {"a_dtype=int4 b_dtype=int4 input_scale_group_size=128 scale_layout=m_major", "legal"},
    {"a_dtype=e4m3 scale_layout=mx_packed", "m-major"},
    {"a_dtype=e4m3 gemm_type=indexed num_experts=4 scale_layout=m_major", "m-major"},
    {"a_dtype=e4m3 gemm_type=grouped_contiguous num_experts=4 scale_layout=m_major", "legal"},
    {"gemm_type=indexed num_experts=4 check=ulp", "check-ulp"},
    {"gemm_type=indexed num_experts=4 check=invariant", "legal"},
    {"gemm_type=grouped_contiguous num_experts=4 check=special", "legal"},
    {"gemm_type=grouped_masked num_experts=4 check=contract", "legal"},
    {"gemm_type=indexed num_experts=4 top_k=2 routing=duplicate", "legal"},
    {"gemm_type=grouped_contiguous num_experts=1 expert_layout_dtype=int64 use_tma=true", "legal"},
    {"gemm_type=grouped_masked num_experts=4 max_tokens=8 routing=spare", "legal"},
    {"check=ulp", "check-ulp"},
    {"check=exact fill=R", "check-fill"},
    {"check=readout fill=E1", "check-fill"},
    {"check=model fill=E1", "check-fill"},
    {"check=invariant fill=E1", "check-fill"},
    {"check=deterministic fill=X", "check-fill"},
    {"check=alias fill=E1", "check-fill"},
    {"check=guard fill=E1", "check-fill"},
    {"check=locks fill=R", "check-fill"},
    {"check=special fill=E1", "check-fill"},
    {"check=contract fill=X", "check-fill"},
    {"check=exhaustive fill=E1 scales=all", "check-fill"},
    {"check=exhaustive", "check-scales"},
    {"check=exhaustive scales=all", "legal"},
    {"check=exact fill=C weight_scale_type=channel", "fill-conversion"},
    {"check=exact fill=W use_f16_accum=true", "fill-wide"},
    {"data=outliers", "data-fill"},
};
/* clang-format on */
static const int example_count = sizeof examples / sizeof examples[0];

START_TEST(first_broken_rule)
{
    int64_t v[AX_COUNT];

    case_defaults(v);
    case_set(v, examples[_i].change);
    resolve(v);
    ck_assert_msg(!strcmp(broken_name(v), examples[_i].rule), "'%s': %s, expected %s",
                  examples[_i].change, broken_name(v), examples[_i].rule);
}
END_TEST

/* Every rule has an example that nothing before it refuses: none is dead. */
START_TEST(every_rule_can_break)
{
    bool found = false;

    for (int i = 0; i < example_count; i++)
        found |= !strcmp(examples[i].rule, legal_rules[_i].name);
    ck_assert_msg(found, "%s", legal_rules[_i].name);
    ck_assert_int_le((int)strlen(legal_rules[_i].sentence), 200);
}
END_TEST

START_TEST(no_two_have_one_name)
{
    for (int i = 0; i < _i; i++)
        ck_assert_str_ne(legal_rules[i].name, legal_rules[_i].name);
}
END_TEST

/* A rule reads no axis that it does not declare. */
START_TEST(rules_read_what_they_declare)
{
    uint64_t state = (uint64_t)_i;
    int broken = 0, differing = 0;

    for (int round = 0; round < 2000; round++) {
        int64_t v[AX_COUNT], w[AX_COUNT];

        for (int x = 0; x < AX_COUNT; x++) {
            v[x] = case_random_value((enum axis_id)x, &state);
            w[x] = legal_rules[_i].axes & AXIS_BIT(x) ? v[x]
                                                      : case_random_value((enum axis_id)x, &state);
        }
        broken += !legal_rules[_i].holds(v);
        differing += legal_rules[_i].holds(v) != legal_rules[_i].holds(w);
    }
    ck_assert_int_eq(differing, 0);
    ck_assert_msg(broken > 0 && broken < 2000, "%s: %d", legal_rules[_i].name, broken);
}
END_TEST

#define COUNT(table) ((int)(sizeof(table) / sizeof(table)[0]))

int main(void)
{
    Suite *s = suite_create("legal");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_loop_test(tc, words_match_axes, 0, COUNT(words));
    tcase_add_loop_test(tc, formats_match_table, 0, COUNT(combinations));
    tcase_add_test(tc, activations);
    tcase_add_loop_test(tc, first_broken_rule, 0, example_count);
    tcase_add_loop_test(tc, every_rule_can_break, 0, legal_rule_count);
    tcase_add_loop_test(tc, no_two_have_one_name, 0, legal_rule_count);
    tcase_add_loop_test(tc, rules_read_what_they_declare, 0, legal_rule_count);
    tcase_set_timeout(tc, 60);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
