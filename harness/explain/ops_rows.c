/* The hypotheses about process_input, moe_fused_mul_sum and buffer_metas: two families have a table
 * each, the experts pipeline all of them. */
#include "harness/explain/ops_buffers.h"
#include "harness/explain/ops_families.h"
#include "harness/explain/ops_hadamard.h"
#include "harness/explain/ops_input.h"
#include "harness/explain/ops_sum.h"
#include "harness/explain/ops_table.h"

struct buffers_row {
    enum ops_buffers_kind kind;
    int n;
};

static bool has_buffers(const struct probe *p)
{
    const struct ops_probe *own = p->own;

    return own->buffers_at >= 0;
}

/* All calls are right but buffer_metas, which has this mistake. */
static bool predict_buffers(const struct hypothesis *h, const struct probe *p, int64_t variant,
                            const struct places *at, uint32_t *codes, struct arena *scratch)
{
    const struct ops_probe *own = p->own;
    const struct buffers_row *row = h->own;
    uint32_t fields[OPS_BUFFER_COUNT];

    (void)variant;
    (void)scratch;
    if (!has_buffers(p) || !ops_buffers_answer(&own->buffers, row->kind, row->n, fields))
        return false;
    for (int64_t i = 0; i < at->count; i++)
        codes[i] =
            at->at[i] >= own->buffers_at ? fields[at->at[i] - own->buffers_at] : p->want[at->at[i]];
    return true;
}

#define BUFFERS(name_, kind_, n_, sentence_)                              \
    {                                                                     \
        .name = (name_), .sentence = (sentence_), .applies = has_buffers, \
        .predict = predict_buffers, .own = &(const struct buffers_row)    \
        {                                                                 \
            (kind_), (n_)                                                 \
        }                                                                 \
    }

static bool has_input(const struct probe *p)
{
    return ops_probe_has(p, &ops_process_input);
}

static bool has_sum(const struct probe *p)
{
    return ops_probe_has(p, &ops_moe_sum);
}

#define INPUT(name, kind, n, sentence) \
    OPS_ROW_IF(has_input, name, ops_process_input, kind, 0, n, sentence)
#define ROUNDED(name, kind, rounding, n, sentence) \
    OPS_ROW_IF(has_input, name, ops_process_input, kind, rounding, n, sentence)
#define TRANSFORM(name, kind, n, sentence) \
    OPS_ROW_IF(has_input, name, ops_process_input, INPUT_HADAMARD, 0, (kind) + 16 * (n), sentence)
#define SUM(name, kind, n, sentence) OPS_ROW_IF(has_sum, name, ops_moe_sum, kind, 0, n, sentence)

/* clang-format off */
static const struct hypothesis input_rows[] = {
    INPUT("halves-swapped", INPUT_HALVES, 0, "gate and second half are exchanged"),
    INPUT("other-form", INPUT_OTHER_FORM, 0,
        "halves are read as interleaved columns, or interleaved columns as halves"),
    INPUT("gelu-by-tanh", INPUT_OTHER_GELU, 0, "gelu is computed in the tanh form"),
    INPUT("gelu-by-erf", INPUT_OTHER_GELU, 1, "gelu_tanh is computed in the erf form"),
    INPUT("limit-missing", INPUT_NO_LIMIT, 0, "swiglu limits nothing"),
    INPUT("limit-after-activation", INPUT_LIMIT_AFTER, 0,
        "swiglu limits what it has computed instead of what it computes from"),
    INPUT("limit-of-gate-only", INPUT_LIMIT_A_ONLY, 0, "swiglu does not limit the second half"),
    INPUT("limit-of-second-only", INPUT_LIMIT_B_ONLY, 0, "swiglu does not limit the gate"),
    INPUT("limit-of-gate-from-below", INPUT_LIMIT_A_BOTH, 0,
        "swiglu limits the gate from below, too"),
    INPUT("limit-from-above-only", INPUT_LIMIT_B_ABOVE, 0,
        "swiglu does not limit the second half from below"),
    INPUT("beta-missing", INPUT_NO_BETA, 0, "swiglu does not add beta"),
    INPUT("alpha-missing", INPUT_NO_ALPHA, 0, "swiglu has an alpha of 1"),
    INPUT("activation-missing", INPUT_NO_ACTIVATION, 0, "the activation is left out"),
    INPUT("product-missing", INPUT_NO_PRODUCT, 0, "the second half takes no part"),
    INPUT("relu-not-squared", INPUT_NOT_SQUARED, 0, "relu2 does not square"),
    TRANSFORM("unnormalized", HADAMARD_UNNORMALIZED, 0,
              "the Hadamard transform is not divided by the root of its size"),
    TRANSFORM("normalized-twice", HADAMARD_TWICE, 1,
              "the Hadamard transform is divided by the root of its size twice"),
    TRANSFORM("hadamard-sign", HADAMARD_SIGN, 1,
              "the last butterfly of the Hadamard transform has its difference the other way round"),
    TRANSFORM("half-block", HADAMARD_BLOCK, 2, "blocks of the Hadamard transform are half as large"),
    TRANSFORM("hadamard-block-of-32", HADAMARD_LIMIT, 32,
              "stages of more than 32 columns are left out"),
    TRANSFORM("reversed-stages", HADAMARD_REVERSED, 0,
              "stages go from the largest stride to the smallest"),
    TRANSFORM("rounded-stages", HADAMARD_ROUNDED, 1,
              "every stage of the Hadamard transform is rounded to bfloat16"),
    TRANSFORM("rounded-stages-f16", HADAMARD_ROUNDED, 2,
              "every stage of the Hadamard transform is rounded to float16"),
    INPUT("hadamard-missing", INPUT_NO_HADAMARD, 0, "the Hadamard transform is left out"),
    INPUT("absmax-skips-last", INPUT_SKIP, -1,
        "the largest magnitude leaves out the last element of a group or row"),
    INPUT("absmax-skips-first", INPUT_SKIP, 0,
        "the largest magnitude leaves out the first element of a group or row"),
    INPUT("absmax-of-last-full-group", INPUT_FULL_GROUP, 0,
        "the scale of a short last group comes from the last columns, as many as a whole one has"),
    INPUT("nan-ignored", INPUT_NAN_IGNORED, 0, "a NaN takes no part in the largest magnitude"),
    INPUT("absmax-without-sign", INPUT_SIGNED_MAX, 0,
        "the scale comes from the largest value instead of the largest magnitude"),
    INPUT("scale-of-row", INPUT_ROW_MAX, 0, "all groups have the scale of the row"),
    INPUT("scale-of-tensor", INPUT_SHARED_MAX, 0, "all rows have the largest scale of any"),
    INPUT("scale-floor-lost", INPUT_FLOOR_LOST, 0, "a scale may be 0: the floor of 1e-30 is missing"),
    INPUT("target-128", INPUT_TARGET, 128, "scales map the largest magnitude to 128"),
    INPUT("target-127", INPUT_TARGET, 127, "scales map the largest magnitude to 127"),
    INPUT("target-8", INPUT_TARGET, 8, "scales map the largest magnitude to 8"),
    INPUT("target-240", INPUT_TARGET, 240, "scales map the largest magnitude to 240"),
    INPUT("target-480", INPUT_TARGET, 480, "scales map the largest magnitude to 480"),
    INPUT("target-448", INPUT_TARGET, 448, "scales map the largest magnitude to 448"),
    INPUT("target-31", INPUT_TARGET, 31, "scales map the largest magnitude to 31"),
    INPUT("reciprocal-of-top", INPUT_RECIPROCAL, 0,
        "the largest magnitude is multiplied by a rounded reciprocal instead of divided"),
    ROUNDED("e8m0-rounds-down", INPUT_E8M0, OPS_DOWN, 0, "e8m0 scales are cut off"),
    ROUNDED("e8m0-rounds-nearest", INPUT_E8M0, OPS_TIES_AWAY, 0,
            "e8m0 scales are rounded to the nearest power of two"),
    ROUNDED("e4m3-scale-truncated", INPUT_SCALE_ROUND, OPS_TRUNCATED, 0, "e4m3 scales are cut off"),
    ROUNDED("e4m3-scale-rounds-up", INPUT_SCALE_ROUND, OPS_UP, 0, "e4m3 scales are rounded up"),
    ROUNDED("truncation", INPUT_M3_ROUND, OPS_TRUNCATED, 0,
            "group scales relative to the token's are cut to 3 mantissa bits instead of rounded"),
    ROUNDED("m3-rounds-up", INPUT_M3_ROUND, OPS_UP, 0,
            "group scales relative to the token's are rounded up to 3 mantissa bits"),
    INPUT("token-scale-strict", INPUT_TOKEN_STRICT, 0,
        "the token scale is doubled where the largest group scale is 448 of it"),
    INPUT("stored-token-scale-0", INPUT_STORE_ONE, 0, "token scales are stored as 0"),
    INPUT("stored-token-scale-1", INPUT_STORE_ONE, 1, "token scales are stored as 1"),
    INPUT("not-scaled", INPUT_ONE, 1, "rows are converted with a scale of 1"),
    INPUT("group-index-minus-1", INPUT_GROUP, -1,
        "groups but the first are encoded with the scale of the group before"),
    INPUT("group-index-plus-1", INPUT_GROUP, 1,
        "groups but the last are encoded with the scale of the next group"),
    INPUT("stored-scale-index-minus-1", INPUT_STORED_GROUP, -1,
        "the scale of the group before is stored"),
    INPUT("stored-scale-index-plus-1", INPUT_STORED_GROUP, 1, "the scale of the next group is stored"),
    INPUT("scale-of-row-before", INPUT_ROW, -1,
        "rows but the first are encoded with the scales of the row before"),
    INPUT("scale-of-next-row", INPUT_ROW, 1,
        "rows but the last are encoded with the scales of the next row"),
    INPUT("unrounded-scale", INPUT_UNROUNDED, 0,
        "data are divided by the scale as it was before it was encoded"),
    INPUT("zero-scale-inf", INPUT_ZERO_INF, 0,
        "the reciprocal of a scale that decodes to 0 is infinity instead of 0"),
    INPUT("least-scale-nan", INPUT_LEAST_NAN, 0,
          "data of a group with the least scale that there may be become NaN"),
    INPUT("division-for-reciprocal", INPUT_DIVIDE, 0,
        "data are divided by the scale instead of multiplied by its rounded reciprocal"),
    INPUT("static-scale-multiplied", INPUT_STATIC_TIMES, 0,
        "data are multiplied by the static scale instead of divided"),
    INPUT("static-scale-missing", INPUT_NO_STATIC, 0, "the static scale is not used"),
    ROUNDED("ties-toward-zero", INPUT_ROUND, OPS_TIES_TO_ZERO, 0,
            "a tie between two float codes goes toward zero"),
    ROUNDED("ties-away-from-zero", INPUT_ROUND, OPS_TIES_AWAY, 0,
            "a tie between two float codes goes away from zero"),
    ROUNDED("truncation", INPUT_ROUND, OPS_TRUNCATED, 0, "float codes are cut off toward zero"),
    ROUNDED("ties-toward-zero", INPUT_ROUND, OPS_TIES_TO_ZERO, 1,
            "a tie between two integers goes toward zero"),
    ROUNDED("ties-away-from-zero", INPUT_ROUND, OPS_TIES_AWAY, 1,
            "a tie between two integers goes away from zero"),
    ROUNDED("ties-up", INPUT_ROUND, OPS_TIES_UP, 1,
            "a tie between two integers goes up: floor(x + 1/2)"),
    ROUNDED("truncation", INPUT_ROUND, OPS_TRUNCATED, 1, "integers are cut off toward zero"),
    ROUNDED("rounds-down", INPUT_ROUND, OPS_DOWN, 1, "integers are rounded down: floor(x)"),
    INPUT("code-wraps", INPUT_WRAP, 0, "codes beyond the largest wrap instead of saturating"),
    INPUT("overflow-special", INPUT_SPECIAL, 0,
        "numbers beyond the largest become infinity or NaN instead of saturating"),
    INPUT("narrow-range", INPUT_NARROW, 0, "integers are limited to the same magnitude on both sides"),
    INPUT("minus-zero-lost", INPUT_ZERO_LOST, 0, "-0 becomes the code of +0"),
    INPUT("subnormals-flushed", INPUT_FLUSH, 0, "subnormal codes become 0"),
    INPUT("subnormals-flushed-to-signed-zero", INPUT_FLUSH, 1, "subnormal codes become 0 of their sign"),
    INPUT("nibble-order", INPUT_NIBBLES, 0, "the odd column of a pair lies in the low half of a byte"),
    INPUT("rows-beyond-not-zeroed", INPUT_BEYOND_KEPT, 0,
        "rows beyond an expert's count are left as they were"),
    INPUT("scale-padding-not-written", INPUT_PAD_KEPT, 0,
        "the scales that pad a row to a multiple of 4 are not written"),
    INPUT("scales-row-major", INPUT_SCALES_ROW, 0, "scales are written as if each row's stood together"),
    INPUT("scale-pitch-not-padded", INPUT_PITCH, 0,
        "scales are written as if their rows were not padded to a multiple of 4"),
    INPUT("scale-of-input-row", INPUT_SCALE_SOURCE, 0,
        "scales go to the row of the input instead of the row of the output"),
    INPUT("last-expert-lost", INPUT_LAST_EXPERT, 0, "the layout ends where the last expert begins"),
    INPUT("empty-expert-offset", INPUT_EMPTY_EXPERT, 0,
        "an expert without rows counts as one row of the inputs"),
    INPUT("negative-index-is-0", INPUT_NEGATIVE_0, 0, "a negative index names row 0 instead of none"),
    INPUT("gathered", INPUT_GATHER, 0, "an output row i gets the input row indices[i]"),
    INPUT("index-plus-1", INPUT_INDEX, 1, "rows go to the row behind the one that their index names"),
    INPUT("index-minus-1", INPUT_INDEX, -1, "rows go to the row before the one that their index names"),
    INPUT("first-copy-only", INPUT_COPIES, 0, "a row goes to the first of its places only"),
    INPUT("last-copy-lost", INPUT_COPIES, -1, "a row does not go to the last of its places"),
    INPUT("row-minus-1", INPUT_ROW_BEFORE, 0, "rows after the first hold the results of the row before"),

};

static const struct hypothesis sum_rows[] = {
    SUM("truncation", SUM_TRUNCATE, 0, "sums are cut off to the output format"),
    SUM("weight-twice", SUM_WEIGHT_TIMES, 2, "products are multiplied by the weight twice"),
    SUM("weight-squared", SUM_WEIGHT_SQUARED, 0, "rows are multiplied by the square of their weight"),
    SUM("weight-missing", SUM_WEIGHT_TIMES, 0, "rows are added without their weight"),
    SUM("weight-rounded", SUM_WEIGHT_ROUNDED, 0, "weights are rounded to the output format first"),
    SUM("weight-rounded-to-bf16", SUM_WEIGHT_ROUNDED, 1, "weights are rounded to bfloat16 first"),
    SUM("weight-of-next-slot", SUM_WEIGHT_OF_SLOT, 1, "rows have the weight of the next slot"),
    SUM("weight-of-slot-before", SUM_WEIGHT_OF_SLOT, -1, "rows have the weight of the slot before"),
    SUM("weight-of-token-before", SUM_WEIGHT_OF_TOKEN, -1, "rows have the weights of the token before"),
    SUM("weight-of-next-token", SUM_WEIGHT_OF_TOKEN, 1, "rows have the weights of the next token"),
    SUM("last-of-top-k-lost", SUM_LOST, -1, "the last slot of a token is left out"),
    SUM("first-of-top-k-lost", SUM_LOST, 0, "the first slot of a token is left out"),
    SUM("second-of-top-k-lost", SUM_LOST, 1, "the second slot of a token is left out"),
    SUM("last-counted-lost", SUM_LOST_COUNTED, -1,
        "the last slot of a token that is counted is left out"),
    SUM("first-counted-lost", SUM_LOST_COUNTED, 0,
        "the first slot of a token that is counted is left out"),
    SUM("sum-in-16-bits", SUM_NARROW, 0, "every partial sum is rounded to the output format"),
    SUM("sum-in-bf16", SUM_NARROW, 1, "every partial sum is rounded to bfloat16"),
    SUM("sum-in-f16", SUM_NARROW, 2, "every partial sum is rounded to float16"),
    SUM("products-in-16-bits", SUM_NARROW_PRODUCT, 0, "products are rounded to the output format"),
    SUM("products-in-bf16", SUM_NARROW_PRODUCT, 1, "products are rounded to bfloat16"),
    SUM("fused-sum", SUM_FUSED, 0, "product and addition are rounded once"),
    SUM("wide-sum", SUM_WIDE, 0, "sums are kept in binary64"),
    SUM("reversed-order", SUM_REVERSED, 0, "slots are added from the last to the first"),
    SUM("pairwise-order", SUM_PAIRWISE, 0, "even slots and odd slots are added apart, then together"),
    SUM("minus-1-counted", SUM_COUNTED, 0, "entries whose id is negative are counted"),
    SUM("minus-1-as-expert-0", SUM_COUNTED_AS_0, 0,
        "entries whose id is negative are those of expert 0"),
    SUM("map-ignored", SUM_MAP_IGNORED, 0, "entries of experts that live elsewhere are counted"),
    SUM("ids-ignored", SUM_IDS_IGNORED, 0, "all entries are counted whatever their ids"),
    SUM("global-ids", SUM_GLOBAL, 0, "an expert whose local index is another number is left out"),
    SUM("expert-0-left-out", SUM_ZERO_LEFT_OUT, 0, "entries of expert 0 are left out"),
    SUM("empty-token-not-written", SUM_EMPTY_KEPT, 0, "a token without entries is not written"),
    SUM("column-tail-of-8-not-written", SUM_TAIL_KEPT, 8,
        "columns behind the last multiple of 8 are not written"),
    SUM("column-tail-of-16-not-written", SUM_TAIL_KEPT, 16,
        "columns behind the last multiple of 16 are not written"),
    SUM("column-tail-of-32-not-written", SUM_TAIL_KEPT, 32,
        "columns behind the last multiple of 32 are not written"),
    SUM("row-minus-1", SUM_ROW_BEFORE, 0, "rows after the first hold the results of the row before"),
};

static const struct hypothesis buffers_rows[] = {
    BUFFERS("always-gated", BUFFERS_GATED, 0,
            "the first product is taken to have two halves, also where the activation has none"),
    BUFFERS("buffer-too-small", BUFFERS_PER_TOKEN, 0,
            "the output of the down layer has a row a token instead of one an entry"),
    BUFFERS("top-k-missing", BUFFERS_TOP_K, 0,
            "all buffers have a row a token instead of one an entry"),
    BUFFERS("workspace-shared", BUFFERS_WORKSPACE, 1, "all buffers lie in workspace 1"),
    BUFFERS("workspace-2-shared", BUFFERS_WORKSPACE, 2, "all buffers lie in workspace 2"),
    BUFFERS("workspaces-exchanged", BUFFERS_EXCHANGED, 0, "workspaces 1 and 2 are exchanged"),
    BUFFERS("buffer-stale", BUFFERS_STALE, 1,
            "buffers that are not needed keep what stood in their place and take a workspace"),
    BUFFERS("unused-buffers-not-cleared", BUFFERS_STALE, 0,
            "buffers that are not needed keep what stood in their place"),
    BUFFERS("buffer-padded-columns", BUFFERS_PADDED, 0,
            "buffers have the columns of the padded layers"),
    BUFFERS("dispatchers-ignored", BUFFERS_DISPATCHERS, 0,
            "buffers of the batched form have room for one dispatcher only"),
    BUFFERS("4-bit-columns-as-bytes", BUFFERS_BITS, 0,
            "columns of 4-bit formats are counted as one a byte"),
};
/* clang-format on */

static const struct hypotheses of_input = {input_rows, sizeof input_rows / sizeof input_rows[0]};
static const struct hypotheses of_sum = {sum_rows, sizeof sum_rows / sizeof sum_rows[0]};
static const struct hypotheses of_buffers = {buffers_rows,
                                             sizeof buffers_rows / sizeof buffers_rows[0]};
static const struct hypotheses *const for_input[] = {&of_input, NULL};
static const struct hypotheses *const for_sum[] = {&of_sum, NULL};
static const struct hypotheses *const for_experts[] = {&of_input, &of_sum, &of_buffers, NULL};

const struct explain_family explain_process_input = {
    .run = ops_run, .vary = ops_vary, .locate = ops_locate, .hypotheses = for_input};
const struct explain_family explain_moe_sum = {
    .run = ops_run, .vary = ops_vary, .locate = ops_locate, .hypotheses = for_sum};
const struct explain_family explain_experts = {
    .run = ops_run, .vary = ops_vary, .locate = ops_locate, .hypotheses = for_experts};
