#include "harness/kernel/legal.h"

#include "harness/kernel/legal_parts.h"
#include "harness/kernel/words.h"

/* ---- zero points ----------------------------------------------------------------------------- */

static bool zero_kind(const int64_t *v)
{
    return v[AX_ZERO] == ZERO_NONE || legal_is_uint(legal_type(v, AX_B));
}

/* |q - zp| takes one bit more than with the implicit zero point: up to 2^B - 1, exact in M + 1
 * bits. */
static bool zero_width(const int64_t *v)
{
    const struct dtype *a = legal_type(v, AX_A);

    return v[AX_ZERO] == ZERO_NONE || !a->is_float || legal_type(v, AX_B)->bits <= a->man_bits + 1;
}

static bool zero_float(const int64_t *v)
{
    return v[AX_ZERO] != ZERO_FLOAT || legal_has_16_bits(v);
}

static bool zero_block(const int64_t *v)
{
    return v[AX_ZERO] == ZERO_NONE || v[AX_SCALE] != SCALE_BLOCK;
}

/* ---- scales ---------------------------------------------------------------------------------- */

static bool group_presence(const int64_t *v)
{
    bool grouped = v[AX_SCALE] == SCALE_GROUP || v[AX_SCALE] == SCALE_BLOCK;

    return grouped == (v[AX_GROUP] > 0);
}

/* One instruction multiplies 256 / bits(a) values of k; a scale cannot change inside it. Tiles are
 * powers of two, so that a flush interval min(group, warp_k) divides both only if groups are
 * powers of two too. That also makes a weight group and an input group divide one another. */
static bool is_group(int64_t group, const struct dtype *a)
{
    return group == 0 || (legal_is_power_of_two(group) && group >= 256 / a->bits);
}

static bool group_size(const int64_t *v)
{
    return is_group(v[AX_GROUP], legal_type(v, AX_A));
}

static bool group_n_size(const int64_t *v)
{
    return v[AX_SCALE] == SCALE_BLOCK ? v[AX_GROUP_N] >= 64 && legal_is_power_of_two(v[AX_GROUP_N])
                                      : v[AX_GROUP_N] <= 1;
}

static bool scale_2_groups(const int64_t *v)
{
    return v[AX_SCALE_2] == SCALE_2_NONE || v[AX_SCALE] == SCALE_GROUP;
}

static bool input_group_bits(const int64_t *v)
{
    return v[AX_INPUT_GROUP] == 0 || !legal_has_16_bits(v);
}

static bool input_group_size(const int64_t *v)
{
    return is_group(v[AX_INPUT_GROUP], legal_type(v, AX_A));
}

static bool input_group_block(const int64_t *v)
{
    return v[AX_SCALE] != SCALE_BLOCK || v[AX_INPUT_GROUP] == 0 || v[AX_INPUT_GROUP] == v[AX_GROUP];
}

static bool int_scale(const int64_t *v)
{
    return !v[AX_INT_SCALE] || (legal_is_int(legal_type(v, AX_A)) && v[AX_SCALE] == SCALE_GROUP &&
                                v[AX_INPUT_GROUP] == 0 && v[AX_SCALE_2] != SCALE_2_CHANNEL &&
                                v[AX_GROUP_N] <= 1 && !v[AX_FUSED]);
}

/* That zero points are absent and groups are multiples of 32 follows from zero_kind and
 * group_size. */
static bool fused(const int64_t *v)
{
    const struct dtype *a = legal_type(v, AX_A);

    return !v[AX_FUSED] ||
           ((legal_is_float(a, 4, 3) || (legal_is_int(a) && a->bits == 8)) &&
            legal_is_float(legal_type(v, AX_B), 2, 1) &&
            legal_is_scale_float(legal_type(v, AX_BS), 8, 0) && v[AX_SCALE] == SCALE_GROUP);
}

/* ---- accumulation and shapes ----------------------------------------------------------------- */

static bool f16_accum(const int64_t *v)
{
    const struct dtype *a = legal_type(v, AX_A);

    return !v[AX_F16_ACCUM] || legal_is_float(a, 5, 10) ||
           (legal_is_float(a, 4, 3) && legal_is_float(legal_type(v, AX_C), 5, 10));
}

static bool shape_n_tile(const int64_t *v)
{
    return legal_shape_n(v) % 64 == 0;
}

static bool shape_k_tile(const int64_t *v)
{
    return legal_shape_k(v) % (512 / legal_type(v, AX_A)->bits) == 0;
}

static bool pad_n(const int64_t *v)
{
    return v[AX_PAD_N] % 8 == 0;
}

/* With shape_k_tile this makes k of 4-bit activations even: rows are whole bytes. */
static bool pad_k(const int64_t *v)
{
    return v[AX_PAD_K] % (128 / legal_type(v, AX_A)->bits) == 0;
}

static bool row_words(const int64_t *v)
{
    return v[AX_K] * legal_type(v, AX_B)->bits % 32 == 0;
}

static bool zero_words(const int64_t *v)
{
    return v[AX_ZERO] != ZERO_INT || v[AX_N] * legal_type(v, AX_B)->bits % 32 == 0;
}

/* Block scale tensors are rounded up, so that only the padded k has to be whole groups; group
 * scales are not. */
static bool k_groups(const int64_t *v)
{
    int64_t group = v[AX_GROUP];

    return group == 0 ||
           (legal_shape_k(v) % group == 0 && (v[AX_SCALE] == SCALE_BLOCK || v[AX_K] % group == 0));
}

static bool k_input_groups(const int64_t *v)
{
    int64_t group = v[AX_INPUT_GROUP];

    return group == 0 || (legal_shape_k(v) % group == 0 && v[AX_K] % group == 0);
}

/* ---- checks ---------------------------------------------------------------------------------- */

static bool check_ulp(const int64_t *v)
{
    return v[AX_CHECK] != CHECK_ULP;
}

static bool check_fill(const int64_t *v)
{
    switch ((enum word_check)v[AX_CHECK]) {
    case CHECK_EXACT:
        return v[AX_FILL] != FILL_P && v[AX_FILL] != FILL_R;
    case CHECK_READOUT:
    case CHECK_EXHAUSTIVE:
        return v[AX_FILL] == FILL_P;
    case CHECK_BOUND:
    case CHECK_MODEL:
    case CHECK_INVARIANT:
    case CHECK_DETERMINISTIC:
        return v[AX_FILL] == FILL_R;
    case CHECK_ALIAS:
        return v[AX_FILL] == FILL_R || v[AX_FILL] == FILL_E2;
    case CHECK_GUARD:
    case CHECK_LOCKS:
    case CHECK_GRAPH:
        return v[AX_FILL] == FILL_E2;
    case CHECK_SPECIAL:
        return v[AX_FILL] == FILL_X;
    case CHECK_CONTRACT:
        return v[AX_FILL] == FILL_E1;
    case CHECK_ULP:
        return true; /* check_ulp refuses it with the better sentence */
    }
    return false;
}

static bool check_scales(const int64_t *v)
{
    return v[AX_CHECK] != CHECK_EXHAUSTIVE || v[AX_SCALES] != 0;
}

static bool data_fill(const int64_t *v)
{
    return v[AX_DATA] == DATA_NORMAL || v[AX_FILL] == FILL_R;
}

/* ---- what reference/fill.c can make ---- */

static bool has_one(const struct dtype *b)
{
    if (!b->is_float)
        return b->bits > 1;
    for (uint32_t code = 0; code < 1u << b->bits; code++)
        if (dtype_decode(b, code) == 1.0)
            return true;
    return false;
}

static bool fill_conversion(const int64_t *v)
{
    return v[AX_FILL] != FILL_C ||
           (legal_type(v, AX_A)->bits == 16 && legal_type(v, AX_BS)->bits == 16 &&
            v[AX_SCALE] == SCALE_GROUP && v[AX_K] >= 2 * v[AX_GROUP] && v[AX_ZERO] == ZERO_NONE &&
            has_one(legal_type(v, AX_B)));
}

static bool fill_wide(const int64_t *v)
{
    return v[AX_FILL] != FILL_W || !v[AX_F16_ACCUM];
}

#define BIT           AXIS_BIT
#define COMBINATIONS  "upstream Humming, valid combinations (code)"
#define CONFIGURATION "upstream Humming, configuration and tuning constraints (code)"
#define TENSORS       "upstream Humming, tensor transform (code)"
#define PARAMETERS    "upstream Humming, standard tensors: 16-bit scales have the parameter format"
#define NUMBERS       "number format"
#define CONTRACT      "kernels/abi/humming.h"
#define SEMANTICS     "docs/semantics.md section 4"
#define AXES          "harness/config/axes.c"
#define TILES         (BIT(AX_BLOCK) | BIT(AX_WARP))
#define SHAPE_N       (BIT(AX_N) | BIT(AX_PAD_N))
#define SHAPE_K       (BIT(AX_K) | BIT(AX_PAD_K))

/* clang-format off */
const struct legal_rule legal_rules[] = {
    {"a-format", COMBINATIONS, BIT(AX_A), legal_a_format,
     "a_dtype must be f16, bf16, e4m3, e5m2, e3m4, e2m1, e0m3, int8 or int4"},
    {"b-bits", COMBINATIONS, BIT(AX_A) | BIT(AX_B), legal_b_bits,
     "b_dtype has at most 8 bits and no more than a_dtype"},
    {"b-kind", COMBINATIONS, BIT(AX_B), legal_b_kind,
     "b_dtype must be an integer or a signed float of which every code is finite"},
    {"b-signed", COMBINATIONS, BIT(AX_A) | BIT(AX_B), legal_b_signed,
     "signed integer weights need activations of the same format"},
    {"b-uint-width", COMBINATIONS, BIT(AX_A) | BIT(AX_B), legal_b_uint_width,
     "uintN weights need N of at most 2 more than the mantissa bits of float activations, and "
     "less than the bits of integer ones"},
    {"b-float-fields", COMBINATIONS, BIT(AX_A) | BIT(AX_B), legal_b_float_fields,
     "float weights have at most the exponent and mantissa bits of the activations, and at least "
     "one exponent bit unless those have none"},
    {"b-float-under-int", COMBINATIONS, BIT(AX_A) | BIT(AX_B) | BIT(AX_FUSED), legal_b_float_under_int,
     "integer activations take float weights only as float4e2m1 with fused e8m0 scales"},
    {"c-format", COMBINATIONS, BIT(AX_C), legal_c_format,
     "c_dtype must be f16 or bf16"},
    {"c-as-a", CONTRACT, BIT(AX_A) | BIT(AX_C), legal_c_as_a,
     "with 16-bit activations c_dtype is a_dtype"},
    {"bs-format", COMBINATIONS, BIT(AX_BS), legal_bs_format,
     "bs_dtype must be f16, bf16, f32, e4m3, e5m2, e8m0 or e5m3"},
    {"bs-as-c", PARAMETERS, BIT(AX_BS) | BIT(AX_C), legal_bs_as_c,
     "a bs_dtype of 16 bits is c_dtype"},
    {"bs-f32", COMBINATIONS, BIT(AX_BS) | BIT(AX_SCALE), legal_bs_f32,
     "block and tensor scales are f32, channel and group scales are not"},
    {"zero-point-kind", COMBINATIONS, BIT(AX_B) | BIT(AX_ZERO), zero_kind,
     "zero points belong to uintN weights"},
    {"zero-point-width", COMBINATIONS, BIT(AX_A) | BIT(AX_B) | BIT(AX_ZERO), zero_width,
     "uintN weights with zero point need N of at most 1 more than the mantissa bits of float "
     "activations"},
    {"zero-point-float", COMBINATIONS, BIT(AX_A) | BIT(AX_ZERO), zero_float,
     "floating zero points need 16-bit activations"},
    {"zero-point-block", CONFIGURATION, BIT(AX_SCALE) | BIT(AX_ZERO), zero_block,
     "block scales have no zero points"},
    {"group-presence", CONFIGURATION, BIT(AX_SCALE) | BIT(AX_GROUP), group_presence,
     "group and block scales need a weight_scale_group_size, channel and tensor scales have none"},
    {"group-size", SEMANTICS, BIT(AX_A) | BIT(AX_GROUP), group_size,
     "weight_scale_group_size must be a power of two of at least 256 / bits of a_dtype"},
    {"group-n", CONFIGURATION, BIT(AX_SCALE) | BIT(AX_GROUP_N), group_n_size,
     "weight_scale_group_size_n must be a power of two of at least 64 with block scales, else 0 "
     "or 1"},
    {"scale-2", CONFIGURATION, BIT(AX_SCALE) | BIT(AX_SCALE_2), scale_2_groups,
     "weight_scale_2_type needs group scales"},
    {"input-group-bits", CONFIGURATION, BIT(AX_A) | BIT(AX_INPUT_GROUP), input_group_bits,
     "16-bit activations have no input scales"},
    {"input-group-size", SEMANTICS, BIT(AX_A) | BIT(AX_INPUT_GROUP), input_group_size,
     "input_scale_group_size must be a power of two of at least 256 / bits of a_dtype"},
    {"input-group-block", CONFIGURATION, BIT(AX_SCALE) | BIT(AX_GROUP) |
     BIT(AX_INPUT_GROUP), input_group_block,
     "with block scales input_scale_group_size is 0 or weight_scale_group_size"},
    {"int-scale", CONFIGURATION, BIT(AX_A) | BIT(AX_SCALE) | BIT(AX_INPUT_GROUP) |
     BIT(AX_SCALE_2) | BIT(AX_GROUP_N) | BIT(AX_FUSED) | BIT(AX_INT_SCALE), int_scale,
     "use_int_weight_scale needs integer activations and group scales, without input groups, "
     "channel scale_2 or fused scales"},
    {"fused", CONFIGURATION, BIT(AX_A) | BIT(AX_B) | BIT(AX_BS) | BIT(AX_SCALE) |
     BIT(AX_FUSED), fused,
     "use_fused_e8m0_scale needs e4m3 or int8 activations, float4e2m1 weights and e8m0 group "
     "scales"},
    {"f16-accum", COMBINATIONS, BIT(AX_A) | BIT(AX_C) | BIT(AX_F16_ACCUM), f16_accum,
     "use_f16_accum needs f16 activations, or e4m3 activations with f16 output"},
    {"shape-n", TENSORS, SHAPE_N, shape_n_tile,
     "n + pad_shape_n must be a multiple of 64"},
    {"shape-k", TENSORS, BIT(AX_A) | SHAPE_K, shape_k_tile,
     "k + pad_shape_k must be a multiple of 512 / bits of a_dtype"},
    {"pad-n", CONFIGURATION, BIT(AX_PAD_N), pad_n,
     "pad_shape_n must be a multiple of 8"},
    {"pad-k", CONFIGURATION, BIT(AX_A) | BIT(AX_PAD_K), pad_k,
     "pad_shape_k must be a multiple of 128 / bits of a_dtype"},
    {"row-words", CONTRACT, BIT(AX_B) | BIT(AX_K), row_words,
     "k times the bits of b_dtype must be a multiple of 32"},
    {"zero-point-words", CONTRACT, BIT(AX_B) | BIT(AX_ZERO) | BIT(AX_N), zero_words,
     "with integer zero points n times the bits of b_dtype must be a multiple of 32"},
    {"k-groups", CONTRACT, BIT(AX_SCALE) | BIT(AX_GROUP) | SHAPE_K, k_groups,
     "k, with and without padding, must be whole weight scale groups (with block scales only "
     "with padding)"},
    {"k-input-groups", CONTRACT, BIT(AX_INPUT_GROUP) | SHAPE_K, k_input_groups,
     "k, with and without padding, must be whole input scale groups"},
    {"tiles-together", AXES, TILES, legal_tiles_together,
     "block_shape and warp_shape are both given or both auto"},
    {"block-size", CONFIGURATION, BIT(AX_BLOCK), legal_block_size,
     "block_shape has at most 256 rows, and powers of two along n and k"},
    {"block-n", CONFIGURATION, BIT(AX_BLOCK) | SHAPE_N, legal_block_n_fits,
     "block_n must divide n + pad_shape_n"},
    {"block-k", CONFIGURATION, BIT(AX_BLOCK) | SHAPE_K, legal_block_k_fits,
     "block_k must divide k + pad_shape_k"},
    {"warp-n", CONFIGURATION, BIT(AX_A) | BIT(AX_WARP), legal_warp_n_size,
     "warp_n must be a power of two from 16 to 64, with 16-bit activations from 32"},
    {"warp-k", CONFIGURATION, BIT(AX_A) | BIT(AX_WARP), legal_warp_k_size,
     "warp_k must be a power of two of at least 512 / bits of a_dtype"},
    {"warp-m", CONFIGURATION, BIT(AX_A) | BIT(AX_MMA) | BIT(AX_WARP), legal_warp_m_size,
     "warp_m must be a multiple of 8; of 16 for float activations on mma, and beyond 32 for "
     "integer ones on wgmma"},
    {"tile-ratio", CONFIGURATION, TILES, legal_tile_ratio,
     "block_shape must be a power of two times warp_shape in m, n and k"},
    {"threads", "CUDA, threads of a block", TILES | BIT(AX_WARP_SPEC), legal_threads,
     "32 threads a warp, and 128 more with use_warp_spec, must not exceed 1024"},
    {"warp-spec", CONFIGURATION, TILES | BIT(AX_WARP_SPEC), legal_warp_spec_threads,
     "use_warp_spec needs a multiple of 4 warps"},
    {"tuning", AXES, TILES | BIT(AX_TUNING) | BIT(AX_STREAM_K) | BIT(AX_NUM_SMS) | BIT(AX_CTAS) |
     BIT(AX_STAGES) | BIT(AX_WARP_SPEC) | BIT(AX_TMA) | BIT(AX_WRITE_SPLITS) |
     BIT(AX_RASTER), legal_tuning,
     "tuning of provider leaves every axis of tiles and copies at its default"},
    {"invariant-stream-k", CONFIGURATION, BIT(AX_STREAM_K) |
     BIT(AX_BATCH_INVARIANT), legal_invariant_stream_k,
     "use_batch_invariant excludes use_stream_k"},
    {"invariant-k-warps", CONFIGURATION, TILES | BIT(AX_BATCH_INVARIANT), legal_invariant_k_warps,
     "use_batch_invariant needs warp_k equal to block_k"},
    {"wgmma-format", NUMBERS, BIT(AX_A) | BIT(AX_MMA), legal_wgmma_format,
     "wgmma multiplies f16, bf16, e4m3, e5m2 and int8 activations"},
    {"wgmma-warps", CONFIGURATION, TILES | BIT(AX_MMA), legal_wgmma_warps,
     "wgmma needs a multiple of 4 warps along n"},
    {"wgmma-stages", CONFIGURATION, BIT(AX_MMA) | BIT(AX_STAGES), legal_wgmma_stages,
     "wgmma needs at least 3 stages"},
    {"wgmma-warp-k", CONFIGURATION, BIT(AX_A) | BIT(AX_MMA) | BIT(AX_WARP), legal_wgmma_warp_k,
     "wgmma needs a warp_k of at most 1024 / bits of a_dtype"},
    {"wgmma-packed-k", CONFIGURATION, BIT(AX_A) | BIT(AX_B) | BIT(AX_MMA) | BIT(AX_GROUP) |
     BIT(AX_FUSED) | BIT(AX_WARP), legal_wgmma_packed_k,
     "wgmma of 8-bit activations, weights of 2, 4 or 6 bits and groups of 128 needs warp_n of at "
     "least 32 and warp_k of 128"},
    {"mma-group-n", CONFIGURATION, BIT(AX_A) | BIT(AX_MMA) | BIT(AX_SCALE) | BIT(AX_FUSED) |
     BIT(AX_BLOCK), legal_mma_group_n,
     "mma of activations below 16 bits with group scales needs block_n of at least 64"},
    {"mxmma-f16-accum", COMBINATIONS, BIT(AX_MMA) | BIT(AX_F16_ACCUM), legal_mxmma_f16_accum,
     "mxmma has no f16 accumulators"},
    {"mxmma-zero-point", CONFIGURATION, BIT(AX_MMA) | BIT(AX_ZERO) |
     BIT(AX_STREAM_K), legal_mxmma_zero,
     "mxmma with zero points excludes use_stream_k"},
    {"write-splits-tma", CONFIGURATION, BIT(AX_TMA) | BIT(AX_WRITE_SPLITS), legal_write_splits_tma,
     "num_write_splits of 2 excludes use_tma of c"},
    {"write-splits-m", CONFIGURATION, TILES | BIT(AX_WRITE_SPLITS), legal_write_splits_m,
     "num_write_splits of 2 needs block_m equal to warp_m and a multiple of 32"},
    {"tma-zero-point", CONFIGURATION, BIT(AX_TMA) | BIT(AX_ZERO) | BIT(AX_BLOCK), legal_tma_zero,
     "use_tma of floating zero points needs block_n of at most 256"},
    {"tma-as", CONFIGURATION, BIT(AX_TMA) | BIT(AX_SCALE_LAYOUT), legal_tma_as,
     "use_tma of as needs scale_layout m_major"},
    {"multicast-dense", CONFIGURATION, BIT(AX_TMA) | BIT(AX_GEMM_TYPE), legal_multicast_dense,
     "multicast needs gemm_type dense"},
    {"multicast-warp-spec", CONFIGURATION, BIT(AX_TMA) | BIT(AX_WARP_SPEC),
     legal_multicast_warp_spec,
     "multicast needs use_warp_spec"},
    {"multicast-n", CONFIGURATION, BIT(AX_TMA) | BIT(AX_BLOCK) | SHAPE_N, legal_multicast_n,
     "multicast_a needs n + pad_shape_n to be a multiple of 2 * block_n"},
    {"experts", CONTRACT, BIT(AX_GEMM_TYPE) | BIT(AX_EXPERTS), legal_experts,
     "num_experts is 0 with gemm_type dense, and at least 1 with the others"},
    {"top-k", CONTRACT, BIT(AX_GEMM_TYPE) | BIT(AX_EXPERTS) | BIT(AX_TOP_K), legal_top_k,
     "top_k above 1 needs gemm_type indexed and at least as many experts"},
    {"routing", AXES, BIT(AX_GEMM_TYPE) | BIT(AX_ROUTING), legal_routing,
     "routing is none with gemm_type dense, and only then"},
    {"routing-duplicate", AXES, BIT(AX_ROUTING) | BIT(AX_TOP_K), legal_routing_duplicate,
     "routing duplicate needs top_k above 1"},
    {"max-tokens", CONTRACT, BIT(AX_GEMM_TYPE) | BIT(AX_EXPERTS) | BIT(AX_MAX_TOKENS) |
     BIT(AX_M), legal_max_tokens,
     "with gemm_type grouped_masked m is num_experts times max_tokens; the others have no "
     "max_tokens"},
    {"layout-dtype", CONTRACT, BIT(AX_GEMM_TYPE) | BIT(AX_LAYOUT_DTYPE), legal_layout_dtype,
     "expert_layout_dtype int64 needs a grouped gemm_type"},
    {"indexed-tma", CONFIGURATION, BIT(AX_GEMM_TYPE) | BIT(AX_TMA), legal_indexed_tma,
     "gemm_type indexed excludes use_tma of a, c and as"},
    {"m-major", CONTRACT, BIT(AX_GEMM_TYPE) | BIT(AX_A) | BIT(AX_SCALE_LAYOUT), legal_scale_layout,
     "scale_layout of a product is row_major, or m_major where there are input scales and "
     "gemm_type is not indexed"},
    {"check-ulp", "docs/semantics.md", BIT(AX_CHECK), check_ulp,
     "ulp is for elementary functions; a GEMM has none"},
    {"check-fill", AXES, BIT(AX_CHECK) | BIT(AX_FILL), check_fill,
     "exact goes with fills E1, E2, W, S, O, C, X, readout and exhaustive with P, bound, model, "
     "invariant, deterministic with R, alias with R, E2, guard, locks, graph with E2, special "
     "with X, contract E1"},
    {"check-scales", AXES, BIT(AX_CHECK) | BIT(AX_SCALES), check_scales,
     "exhaustive needs scales: all"},
    {"fill-conversion", "docs/fills.md", BIT(AX_FILL) | BIT(AX_A) | BIT(AX_B) | BIT(AX_BS) |
     BIT(AX_SCALE) | BIT(AX_GROUP) | BIT(AX_K) | BIT(AX_ZERO), fill_conversion,
     "fill C needs 16-bit activations, group scales of 16 bits, two groups, no zero points and a "
     "weight of 1"},
    {"fill-wide", "docs/fills.md", BIT(AX_FILL) | BIT(AX_F16_ACCUM), fill_wide,
     "fill W needs f32 accumulators: its sums are beyond f16"},
    {"data-fill", AXES, BIT(AX_DATA) | BIT(AX_FILL), data_fill,
     "data is of fill R; the other fills have no distribution"},
};
/* clang-format on */
const int legal_rule_count = sizeof legal_rules / sizeof legal_rules[0];
