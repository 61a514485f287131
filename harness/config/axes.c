#include "harness/config/axes.h"

#include "reference/dtype.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const family_words[] = {
    "gemm",          "quant_weight", "dequant_weight", "pack",    "process_mxfp4",
    "process_input", "hadamard",     "moe_sum",        "experts", NULL};
static const char *const gemm_words[] = {"dense", "indexed", "grouped_contiguous", "grouped_masked",
                                         NULL};
static const char *const routing_words[] = {"none",      "uniform", "skewed", "empty", "single",
                                            "duplicate", "missing", "spare",  NULL};
static const char *const layout_words[] = {"int32", "int64", NULL};
static const char *const scale_words[] = {"channel", "group", "block", "tensor", NULL};
static const char *const scale_2_words[] = {"none", "tensor", "channel", NULL};
static const char *const zero_words[] = {"none", "int", "float", NULL};
static const char *const mma_words[] = {"mma", "wgmma", "umma", "mxmma", NULL};
static const char *const check_words[] = {
    "exact",     "readout",       "bound",      "ulp",   "model",
    "invariant", "deterministic", "alias",      "guard", "locks",
    "special",   "contract",      "exhaustive", "graph", NULL};
static const char *const fill_words[] = {"E1", "E2", "W", "S", "P", "O", "C", "X", "R", NULL};
static const char *const data_words[] = {"normal", "lognormal", "outliers", "positive", NULL};
static const char *const scales_words[] = {"fill", "all", NULL};

static const char *const rule_words[] = {"2026_05", "2026_08", NULL};
static const char *const mode_words[] = {"disabled",
                                         "static_tensor",
                                         "dynamic_token",
                                         "dynamic_group",
                                         "static_tensor_dynamic_group",
                                         "dynamic_group_token",
                                         NULL};
static const char *const scale_layout_words[] = {"row_major", "m_major", "mx_packed", NULL};
static const char *const input_layout_words[] = {"normal",         "grouped", "permute",
                                                 "grouped_padded", "scatter", NULL};
static const char *const activation_words[] = {"none",  "silu",   "gelu", "gelu_tanh",
                                               "relu2", "swiglu", NULL};
static const char *const form_words[] = {"unary", "split", "interleaved", NULL};
static const char *const copy_words[] = {"false", "true",        "plain",       "mbarrier", "a",
                                         "b",     "a_b",         "c",           "scales",   "bias",
                                         "as",    "multicast_a", "multicast_b", NULL};
static const char *const tuning_words[] = {"axes", "provider", NULL};
static const char *const swiglu_words[] = {"plain", "gpt_oss", NULL};
static const char *const place_words[] = {"separate", "workspace1", NULL};

#define GEMM      AXIS_FAMILY_BIT(0)
#define QUANT     AXIS_FAMILY_BIT(1)
#define DEQUANT   AXIS_FAMILY_BIT(2)
#define PACK      AXIS_FAMILY_BIT(3)
#define MXFP4     AXIS_FAMILY_BIT(4)
#define INPUT     AXIS_FAMILY_BIT(5)
#define HADAMARD  AXIS_FAMILY_BIT(6)
#define SUM       AXIS_FAMILY_BIT(7)
#define EXPERTS   AXIS_FAMILY_BIT(8)
#define ALL       AXIS_ALL_FAMILIES
#define W(list)   0, 0, list
#define I(lo, hi) lo, hi, NULL
#define NO        0, 0, NULL

/* clang-format off */
const struct axis axes[AX_COUNT] = {
    /*                     key                          kind         auto   problem families default     range or words      help */
    [AX_FAMILY]         = {"family",                    AXIS_WORD,   false, true,  ALL,  "gemm",     W(family_words),    "kernel family"},
    [AX_GEMM_TYPE]      = {"gemm_type",                 AXIS_WORD,   false, true,  GEMM | EXPERTS, "dense",    W(gemm_words),      "how rows find their weights"},
    [AX_EXPERTS]        = {"num_experts",               AXIS_INT,    false, true,  GEMM | INPUT | SUM | EXPERTS, "0",        I(0, 1024),         "weight matrices; 0 with dense"},
    [AX_TOP_K]          = {"top_k",                     AXIS_INT,    false, true,  GEMM | SUM | EXPERTS, "1",        I(1, 64),           "experts a token (indexed)"},
    [AX_ROUTING]        = {"routing",                   AXIS_WORD,   true,  true,  GEMM | INPUT | SUM | EXPERTS, "auto",     W(routing_words),   "which rows go to which experts; auto: uniform, none with dense"},
    [AX_MAX_TOKENS]     = {"max_tokens",                AXIS_INT,    true,  true,  GEMM | INPUT | EXPERTS, "auto",     I(0, 1 << 20),      "rows reserved for an expert (grouped_masked); auto: m / num_experts, else 0"},
    [AX_LAYOUT_DTYPE]   = {"expert_layout_dtype",       AXIS_WORD,   false, false, GEMM | INPUT | EXPERTS, "int32",    W(layout_words),    "format of offsets (grouped_contiguous) and counts (grouped_masked)"},
    [AX_A]              = {"a_dtype",                   AXIS_FORMAT, false, true,  GEMM | MXFP4 | EXPERTS, NULL,       NO,                 "format of the activations"},
    [AX_B]              = {"b_dtype",                   AXIS_WEIGHT, false, true,  GEMM | QUANT | DEQUANT | EXPERTS, NULL,       NO,                 "format of the weights"},
    [AX_C]              = {"c_dtype",                   AXIS_FORMAT, true,  true,  GEMM | EXPERTS, "auto",     NO,                 "format of the output; auto: a_dtype if it has 16 bits, else bf16"},
    [AX_BS]             = {"bs_dtype",                  AXIS_FORMAT, true,  true,  GEMM | EXPERTS, "auto",     NO,                 "format of the weight scales; auto: f32 for block and tensor scales, else c_dtype"},
    [AX_M]              = {"m",                         AXIS_INT,    false, false, ALL, NULL,       I(1, 1 << 20),      "rows of A, tokens with indexed ones; of an operation: rows (of dequant_weight: codes)"},
    [AX_N]              = {"n",                         AXIS_INT,    false, true,  GEMM | EXPERTS, NULL,       I(1, 1 << 20),      "columns of C (of experts: of the layer gate_up), without padding"},
    [AX_K]              = {"k",                         AXIS_INT,    false, true,  ALL & ~DEQUANT, NULL,       I(1, 1 << 20),      "length of each dot product, without padding; of an operation: columns"},
    [AX_PAD_N]          = {"pad_shape_n",               AXIS_INT,    true,  true,  GEMM | EXPERTS, "auto",     I(0, 4096),         "padded columns; auto: up to the next multiple of 64"},
    [AX_PAD_K]          = {"pad_shape_k",               AXIS_INT,    true,  true,  GEMM | EXPERTS, "auto",     I(0, 4096),         "padded k; auto: up to the next multiple of 512 / bits of a"},
    [AX_SCALE]          = {"weight_scale_type",         AXIS_WORD,   false, true,  GEMM | EXPERTS, "channel",  W(scale_words),     "what shares a weight scale"},
    [AX_GROUP]          = {"weight_scale_group_size",   AXIS_INT,    true,  true,  GEMM | QUANT | MXFP4 | EXPERTS, "auto",     I(0, 1 << 16),      "along k; auto: 128 for group and block scales, else 0"},
    [AX_GROUP_N]        = {"weight_scale_group_size_n", AXIS_INT,    true,  true,  GEMM, "auto",     I(0, 1 << 16),      "along n; auto: 128 for block scales, else 0"},
    [AX_SCALE_2]        = {"weight_scale_2_type",       AXIS_WORD,   false, true,  GEMM | EXPERTS, "none",     W(scale_2_words),   "a second weight scale beside group scales"},
    [AX_ZERO]           = {"zero_point",                AXIS_WORD,   false, true,  GEMM | QUANT | EXPERTS, "none",     W(zero_words),      "zero points (has_zero_point, is_fp_zero_point)"},
    [AX_BIAS]           = {"has_bias",                  AXIS_BOOL,   false, true,  GEMM | EXPERTS, "false",    NO,                 "a bias of format c"},
    [AX_INPUT_GROUP]    = {"input_scale_group_size",    AXIS_INT,    false, true,  GEMM, "0",        I(0, 1 << 16),      "input scales along k; 0: one a row, none with 16-bit activations"},
    [AX_INT_SCALE]      = {"use_int_weight_scale",      AXIS_BOOL,   true,  true,  GEMM | EXPERTS, "auto",     NO,                 "int16 group scales; auto: int activations, group scales, no input groups, no channel scale_2"},
    [AX_FUSED]          = {"use_fused_e8m0_scale",      AXIS_BOOL,   true,  true,  GEMM | EXPERTS, "auto",     NO,                 "e8m0 scales folded into the operand; auto: e2m1 weights, e8m0 group scales, e4m3 or int8 activations"},
    [AX_F16_ACCUM]      = {"use_f16_accum",             AXIS_BOOL,   false, true,  GEMM, "false",    NO,                 "f16 accumulators"},
    [AX_BATCH_INVARIANT]= {"use_batch_invariant",       AXIS_BOOL,   false, false, GEMM, "false",    NO,                 "no Stream-K and no K-warps"},
    [AX_MMA]            = {"mma_type",                  AXIS_WORD,   true,  false, GEMM, "auto",     W(mma_words),       "instruction family; auto: the provider's"},
    [AX_BLOCK]          = {"block_shape",               AXIS_TILE,   true,  false, GEMM, "auto",     NO,                 "tile of a thread block, MxNxK; auto: the provider's heuristics"},
    [AX_WARP]           = {"warp_shape",                AXIS_TILE,   true,  false, GEMM, "auto",     NO,                 "tile of a warp, MxNxK"},
    [AX_STREAM_K]       = {"use_stream_k",              AXIS_BOOL,   false, false, GEMM, "false",    NO,                 "tiles may be divided along k among workers"},
    [AX_NUM_SMS]        = {"num_sms",                   AXIS_INT,    false, false, GEMM, "0",        I(0, 1024),         "limit of the grid; 0: the device's"},
    [AX_CTAS]           = {"num_ctas_per_sm",           AXIS_INT,    false, false, GEMM, "1",        I(1, 8),            "thread blocks an SM"},
    [AX_STAGES]         = {"num_stages",                AXIS_INT,    true,  false, GEMM, "auto",     I(2, 8),            "pipeline stages"},
    [AX_WARP_SPEC]      = {"use_warp_spec",             AXIS_BOOL,   false, false, GEMM, "false",    NO,                 "producer and consumer warps"},
    [AX_TMA]            = {"use_tma",                   AXIS_WORD,   false, false, GEMM, "false",    W(copy_words),      "how tensors are copied. true: bulk tensor copies (TMA) of a, b, c, scales and bias, multicast_: by pairs of blocks; a name: TMA of that alone; false, mbarrier: cp.async; plain: loads"},
    [AX_WRITE_SPLITS]   = {"num_write_splits",          AXIS_INT,    false, false, GEMM, "1",        I(1, 2),            "parts in which a tile is written"},
    [AX_RASTER]         = {"raster_group_m",            AXIS_INT,    false, false, GEMM, "1",        I(1, 64),           "rows of tiles that are walked through together"},
    [AX_TUNING]         = {"tuning",                    AXIS_WORD,   false, false, GEMM, "axes",     W(tuning_words),    "provider: its heuristics choose everything, stream-K and copies too; axes: tile and stages only, the rest is what the axes above say"},
    [AX_INPUT]          = {"input_dtype",               AXIS_FORMAT, false, true,  QUANT | INPUT | HADAMARD | SUM, "bf16", NO, "format of the values: f16, bf16 or f32"},
    [AX_BITS]           = {"bits",                      AXIS_INT,    false, true,  PACK, "4",        I(1, 8),            "width of a code"},
    [AX_RULE]           = {"quant_rule",                AXIS_WORD,   false, true,  QUANT, "2026_08", W(rule_words),      "how scales follow from extremes (docs/semantics-ops.md section 3)"},
    [AX_HAS_SCALE]      = {"has_scale",                 AXIS_BOOL,   false, true,  QUANT, "true",    NO,                 "false: codes of the values themselves"},
    [AX_E8M0]           = {"use_e8m0_scale",            AXIS_BOOL,   false, true,  QUANT, "false",   NO,                 "scales are powers of two"},
    [AX_NEGATIVE]       = {"allow_negative_scale",      AXIS_BOOL,   false, true,  QUANT, "true",    NO,                 "integers without zero point: the wider side decides the sign of the scale"},
    [AX_PER_ROW]        = {"per_row",                   AXIS_BOOL,   false, true,  MXFP4, "false",   NO,                 "the range of scales is that of a row instead of the tensor"},
    [AX_RANGE]          = {"range",                     AXIS_INT,    true,  true,  MXFP4, "auto",    I(1, 254),          "binades that scales may span; auto: 11 for e4m3, 3 for int8"},
    [AX_QUANT_MODE]     = {"input_quant_mode",          AXIS_WORD,   false, true,  INPUT, "dynamic_token", W(mode_words), "what shares a scale of the activations"},
    [AX_QUANT]          = {"quant_dtype",               AXIS_FORMAT, false, true,  INPUT, "e4m3",    NO,                 "format of the quantized activations"},
    [AX_QUANT_GROUP]    = {"quant_group_size",          AXIS_INT,    true,  true,  INPUT, "auto",    I(0, 1 << 16),      "columns of a group; auto: 128 for modes with groups, else 0"},
    [AX_GROUP_SCALE]    = {"group_scale_dtype",         AXIS_FORMAT, true,  true,  INPUT, "auto",    NO,                 "format of group scales: f32, e8m0 or e4m3; auto: e4m3 for dynamic_group_token, else f32"},
    [AX_SCALE_LAYOUT]   = {"scale_layout",              AXIS_WORD,   false, true,  GEMM | INPUT, "row_major", W(scale_layout_words), "order of the group scales of activations; m_major of products: use_m_major_input_scale"},
    [AX_LAYOUT]         = {"layout",                    AXIS_WORD,   false, true,  INPUT, "normal",  W(input_layout_words), "which output rows an input row goes to"},
    [AX_ACTIVATION]     = {"activation",                AXIS_WORD,   false, true,  INPUT | EXPERTS, "none", W(activation_words), "expression before quantization"},
    [AX_FORM]           = {"activation_form",           AXIS_WORD,   false, true,  INPUT | EXPERTS, "unary", W(form_words), "where gate and factor of the expression are"},
    [AX_SWIGLU]         = {"swiglu",                    AXIS_WORD,   false, true,  INPUT | EXPERTS, "plain", W(swiglu_words), "alpha, beta, limit: 1, 0, none; or gpt-oss's 1.702, 1, 7"},
    [AX_HADAMARD]       = {"hadamard_block_size",       AXIS_INT,    false, true,  INPUT | HADAMARD, "0", I(0, 512),     "columns of a transform, a power of two; 0: none"},
    [AX_ZERO_INVALID]   = {"zero_invalid",              AXIS_BOOL,   false, true,  INPUT, "false",   NO,                 "grouped_padded: rows beyond a count become 0"},
    [AX_OUTPUT_PLACE]   = {"output_place",              AXIS_WORD,   false, false, EXPERTS, "separate", W(place_words),  "where the pipeline's result goes"},
    [AX_CHECK]          = {"check",                     AXIS_WORD,   false, false, ALL,  NULL,       W(check_words),     "the criterion (humcheck list checks)"},
    [AX_FILL]           = {"fill",                      AXIS_WORD,   true,  true,  GEMM, "auto",     W(fill_words),      "how inputs are made; auto: by check (humcheck list checks)"},
    [AX_DATA]           = {"data",                      AXIS_WORD,   false, true,  GEMM, "normal",   W(data_words),      "distribution of fill R"},
    [AX_SCALES]         = {"scales",                    AXIS_WORD,   false, true,  GEMM, "fill",     W(scales_words),    "scale and zero point codes: those of the fill, or every code in turn"},
    [AX_SEED]           = {"seed",                      AXIS_SEED,   true,  true,  ALL,  "auto",     NO,                 "64-bit seed of the inputs; auto: the suite's"},
};
/* clang-format on */

int axis_find(const char *key)
{
    for (int i = 0; i < AX_COUNT; i++)
        if (!strcmp(axes[i].key, key))
            return i;
    return -1;
}

bool axis_is_of_problem(enum axis_id x, const int64_t v[AX_COUNT])
{
    return axes[x].of_problem || (x == AX_M && v[AX_GEMM_TYPE] != 0);
}

static const char *auto_or(const struct axis *x)
{
    return x->may_be_auto ? "auto or " : "";
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return 16;
}

/* Decimal or 0x hexadecimal, the whole text. A leading zero is refused: YAML 1.1 reads 010 as
 * eight, 1.2 as ten. */
static bool parse_magnitude(const char *s, uint64_t *out)
{
    int base = 10;
    uint64_t v = 0;

    if (s[0] == '0' && s[1] == 'x') {
        base = 16;
        s += 2;
    } else if (s[0] == '0' && s[1]) {
        return false;
    }
    if (!*s)
        return false;
    for (; *s; s++) {
        int d = digit_of(*s);

        if (d >= base || __builtin_mul_overflow(v, (uint64_t)base, &v) ||
            __builtin_add_overflow(v, (uint64_t)d, &v))
            return false;
    }
    *out = v;
    return true;
}

static bool parse_int(const struct axis *x, const char *text, int64_t *out)
{
    bool negative = *text == '-';
    uint64_t magnitude;
    int64_t v;

    if (!parse_magnitude(text + negative, &magnitude) || magnitude > INT64_MAX)
        return false;
    if (negative && !magnitude)
        return false;
    v = negative ? -(int64_t)magnitude : (int64_t)magnitude;
    if (v < x->min || v > x->max)
        return false;
    *out = v;
    return true;
}

static bool parse_bool(const char *text, int64_t *out)
{
    bool yes = !strcmp(text, "true");

    if (!yes && strcmp(text, "false") != 0)
        return false;
    *out = yes;
    return true;
}

static bool parse_word(const struct axis *x, const char *text, int64_t *out)
{
    for (int i = 0; x->words[i]; i++)
        if (!strcmp(x->words[i], text)) {
            *out = i;
            return true;
        }
    return false;
}

static bool parse_format(const struct dtype *t, int64_t *out)
{
    if (!t)
        return false;
    *out = t - dtypes;
    return true;
}

static bool parse_tile(const char *text, int64_t *out)
{
    int64_t sizes[3];

    for (int i = 0; i < 3; i++) {
        int64_t v = 0;

        if (*text < '1' || *text > '9')
            return false;
        for (; *text >= '0' && *text <= '9' && v <= UINT16_MAX; text++)
            v = 10 * v + (*text - '0');
        if (v > UINT16_MAX || *text != (i < 2 ? 'x' : '\0'))
            return false;
        text += i < 2;
        sizes[i] = v;
    }
    *out = axis_tile(sizes[0], sizes[1], sizes[2]);
    return true;
}

/* The one seed whose bits are AXIS_AUTO cannot be stated. */
static bool parse_seed(const char *text, int64_t *out)
{
    uint64_t v;

    if (!parse_magnitude(text, &v) || v == (uint64_t)AXIS_AUTO)
        return false;
    memcpy(out, &v, sizeof v);
    return true;
}

static bool parse_value(const struct axis *x, const char *text, int64_t *out)
{
    switch (x->kind) {
    case AXIS_INT:
        return parse_int(x, text, out);
    case AXIS_BOOL:
        return parse_bool(text, out);
    case AXIS_WORD:
        return parse_word(x, text, out);
    case AXIS_FORMAT:
        return parse_format(dtype_find(text), out);
    case AXIS_WEIGHT:
        return parse_format(dtype_find_weight(text), out);
    case AXIS_TILE:
        return parse_tile(text, out);
    case AXIS_SEED:
        return parse_seed(text, out);
    }
    return false;
}

static const char *expected_word(const struct axis *x, char *buf, size_t size)
{
    size_t used = (size_t)snprintf(buf, size, "%s%s", auto_or(x), x->words[1] ? "one of " : "");

    for (int i = 0; x->words[i] && used < size; i++)
        used += (size_t)snprintf(buf + used, size - used, "%s%s", i ? ", " : "", x->words[i]);
    return buf;
}

static const char *expected(const struct axis *x, char *buf, size_t size)
{
    switch (x->kind) {
    case AXIS_INT:
        (void)snprintf(buf, size, "%sa whole number from %" PRId64 " to %" PRId64, auto_or(x),
                       x->min, x->max);
        return buf;
    case AXIS_BOOL:
        return x->may_be_auto ? "auto, true or false" : "true or false";
    case AXIS_WORD:
        return expected_word(x, buf, size);
    case AXIS_FORMAT:
        (void)snprintf(buf, size, "%sa format (humcheck list formats)", auto_or(x));
        return buf;
    case AXIS_WEIGHT:
        (void)snprintf(buf, size, "%sa weight format (humcheck list formats)", auto_or(x));
        return buf;
    case AXIS_TILE:
        (void)snprintf(buf, size, "%sa tile MxNxK of sizes from 1 to 65535, such as 64x128x64",
                       auto_or(x));
        return buf;
    case AXIS_SEED:
        (void)snprintf(buf, size,
                       "%sa seed, decimal or 0x hexadecimal, of at most 64 bits and not "
                       "0x8000000000000000",
                       auto_or(x));
        return buf;
    }
    return "nothing";
}

const char *axis_parse(const struct axis *x, const char *text, int64_t *out, char *buf, size_t size)
{
    if (x->may_be_auto && !strcmp(text, "auto")) {
        *out = AXIS_AUTO;
        return NULL;
    }
    return parse_value(x, text, out) ? NULL : expected(x, buf, size);
}

static const char *word_of(const struct axis *x, int64_t value)
{
    for (int64_t i = 0; x->words[i]; i++)
        if (i == value)
            return x->words[i];
    return "?";
}

const char *axis_format(const struct axis *x, int64_t value, char *buf, size_t size)
{
    if (x->may_be_auto && value == AXIS_AUTO)
        return "auto";
    switch (x->kind) {
    case AXIS_INT:
        (void)snprintf(buf, size, "%" PRId64, value);
        return buf;
    case AXIS_BOOL:
        return value ? "true" : "false";
    case AXIS_WORD:
        return word_of(x, value);
    case AXIS_FORMAT:
    case AXIS_WEIGHT:
        return value >= 0 && value < dtype_count ? dtypes[value].name : "?";
    case AXIS_TILE:
        (void)snprintf(buf, size, "%" PRId64 "x%" PRId64 "x%" PRId64, axis_tile_m(value),
                       axis_tile_n(value), axis_tile_k(value));
        return buf;
    case AXIS_SEED:
        (void)snprintf(buf, size, "0x%" PRIx64, (uint64_t)value);
        return buf;
    }
    return "?";
}
