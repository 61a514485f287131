/* Checkpoints made by hand, one for each schema: bytes and values are worked out in the comments,
 * and beside each value stands what the classic mistake would give. */
#include "harness/test/made_layer.h"

#include <stdlib.h>

/* ---- the bytes ---- */

#define X8(x)  x, x, x, x, x, x, x, x
#define X32(x) X8(x), X8(x), X8(x), X8(x)

/* GPTQ, n = 8, k = 8: code of (n, k) is n + k, k = 0 in the low nibble of column n's word.
 * Stored zero points: 7 for all rows but row 1, which has 3. Scales: 1, 0.5, 2, 1 ... */
static const uint32_t gptq_weight[8] = {0x76543210, 0x87654321, 0x98765432, 0xa9876543,
                                        0xba987654, 0xcba98765, 0xdcba9876, 0xedcba987};
static const uint16_t gptq_scales[8] = {0x3c00, 0x3800, 0x4000, 0x3c00,
                                        0x3c00, 0x3c00, 0x3c00, 0x3c00};
static const uint32_t gptq_zeros[1] = {0x77777737};
static const uint32_t gptq_order[8] = {0};

static const struct made_tensor gptq[] = {
    MADE("a.qweight", "I32", "[1,8]", gptq_weight),
    MADE("a.scales", "F16", "[1,8]", gptq_scales),
    MADE("a.qzeros", "I32", "[1,1]", gptq_zeros),
    MADE("a.g_idx", "I32", "[8]", gptq_order),
};

/* GPTQ of 3 bits, n = 32, k = 32: code of (n, k) is k % 8. Eight codes are the 24 bits 0xfac688
 * (octal 76543210), four times that the three words of a column. k = 10 and k = 21 straddle. */
static const uint32_t gptq3_weight[96] = {X32(0x88fac688), X32(0xc688fac6), X32(0xfac688fa)};
static const uint16_t gptq3_scales[32] = {X32(0x3c00)};

static const struct made_tensor gptq3[] = {
    MADE("a.qweight", "I32", "[3,32]", gptq3_weight),
    MADE("a.scales", "F16", "[1,32]", gptq3_scales),
};

/* AWQ, n = 8, k = 2: nibbles of a word hold columns 0 2 4 6 1 3 5 7. Code of (n, 0) is n, of (n, 1)
 * n + 8; zero point of n is 7 - n; scale 1, of row 3 0.25. */
static const uint32_t awq_weight[2] = {0x75316420, 0xfdb9eca8};
static const uint32_t awq_zeros[1] = {0x02461357};
static const uint16_t awq_scales[8] = {0x3c00, 0x3c00, 0x3c00, 0x3400,
                                       0x3c00, 0x3c00, 0x3c00, 0x3c00};

static const struct made_tensor awq[] = {
    MADE("a.qweight", "I32", "[2,1]", awq_weight),
    MADE("a.scales", "F16", "[1,8]", awq_scales),
    MADE("a.qzeros", "I32", "[1,1]", awq_zeros),
};

/* e4m3: 0x38 is 1, 0x40 is 2, 0xb8 is -1, 0x01 is 2^-9, 0x7e is 448, 0x30 is 0.5. */
static const uint8_t fp8_weight[8] = {0x38, 0x40, 0xb8, 0x01, 0x7e, 0x00, 0x80, 0x30};
static const float quarter[1] = {0.25f}, two[1] = {2.0f}, one[1] = {1.0f};

static const struct made_tensor fp8[] = {
    MADE("a.weight", "F8_E4M3", "[2,4]", fp8_weight),
    MADE("a.weight_scale", "F32", "[]", quarter),
};

/* A fused layer: rows of the same codes 1, 2 with scales 0.25, 2 and 1. */
static const uint8_t fp8_row[2] = {0x38, 0x40};

static const struct made_tensor fp8_qkv[] = {
    MADE("q.weight", "F8_E4M3", "[1,2]", fp8_row), MADE("q.weight_scale", "F32", "[1]", quarter),
    MADE("k.weight", "F8_E4M3", "[1,2]", fp8_row), MADE("k.weight_scale", "F32", "[1]", two),
    MADE("v.weight", "F8_E4M3", "[1,2]", fp8_row), MADE("v.weight_scale", "F32", "[1]", one),
};

/* Blocks of 2 x 3 over 3 x 4 ones; the last scale, 1 + 2^-8, is halfway between bf16's 1 and
 * 1 + 2^-7. */
static const uint8_t fp8_ones[12] = {X8(0x38), 0x38, 0x38, 0x38, 0x38};
static const float fp8_scales[4] = {1.0f, 2.0f, 4.0f, 1.00390625f};

static const struct made_tensor fp8_block[] = {
    MADE("a.weight", "F8_E4M3", "[3,4]", fp8_ones),
    MADE("a.weight_scale_inv", "F32", "[2,2]", fp8_scales),
};

/* e2m1: 1 is 0.5, 2 is 1, 7 is 6, f is -6, 3 is 1.5. The first byte 0x21 is code 1 at k = 0 and
 * code 2 at k = 1. */
static const uint8_t fp4_16[16] = {0x21, 0x7f, 0x30};
static const uint8_t e8m0_two[1] = {128};

static const struct made_tensor mxfp4[] = {
    MADE("a.weight", "U8", "[1,16]", fp4_16),
    MADE("a.weight_scale", "U8", "[1,1]", e8m0_two),
};

static const struct made_tensor mxfp4_native[] = {
    MADE("a.weight", "F4", "[1,32]", fp4_16),
    MADE("a.weight_scale", "F8_E8M0", "[1,1]", e8m0_two),
};

/* Two experts of one row. */
static const uint8_t oss_blocks[32] = {0x21, 0x7f, 0x30, 0, X8(0), 0, 0, 0, 0, 0x12};
static const uint8_t oss_scales[2] = {127, 130};

static const struct made_tensor gpt_oss[] = {
    MADE("a_blocks", "U8", "[2,1,1,16]", oss_blocks),
    MADE("a_scales", "U8", "[2,1,1]", oss_scales),
};

static const int8_t ct_int8[4] = {-128, 127, 0, -1}, ct_zero8[2] = {-128, 5};
static const float ct_scale2[2] = {0.5f, 2.0f};

static const struct made_tensor ct_int[] = {
    MADE("a.weight", "I8", "[2,2]", ct_int8),
    MADE("a.weight_scale", "F32", "[2,1]", ct_scale2),
    MADE("a.weight_zero_point", "I8", "[2,1]", ct_zero8),
};

static const struct made_tensor ct_float[] = {
    MADE("a.weight", "F8_E4M3", "[2,4]", fp8_weight),
    MADE("a.weight_scale", "F32", "[2,1]", ct_scale2),
};

/* 4 bits: rows 0 1 2 ... 7 and 8 9 ... f; zero points 8 (row 0) and 3 (row 1) in one word along
 * n. */
static const uint32_t ct_words4[2] = {0x76543210, 0xfedcba98}, ct_zeros4[1] = {0x38};
static const uint16_t bf16_ones[2] = {0x3f80, 0x3f80};
static const int64_t shape_2x8[2] = {2, 8}, shape_1x32[2] = {1, 32};

static const struct made_tensor ct_pack[] = {
    MADE("a.weight_packed", "I32", "[2,1]", ct_words4),
    MADE("a.weight_shape", "I64", "[2]", shape_2x8),
    MADE("a.weight_scale", "BF16", "[2,1]", bf16_ones),
    MADE("a.weight_zero_point", "I32", "[1,1]", ct_zeros4),
};

/* 5 bits, code of k is k: 160 bits in a row, or six codes a word and two bits unused. */
static const uint32_t ct_dense5[5] = {0x8a418820, 0xc5a92839, 0xca307b9a, 0x38bdab49, 0xffbbcdeb};
static const uint32_t ct_loose5[6] = {0xa418820,  0x16a4a0e6, 0x2307b9ac,
                                      0x2f6ad272, 0x3bcdeb38, 0x3fe};
static const uint16_t bf16_one[1] = {0x3f80};

static const struct made_tensor ct_pack5[] = {
    MADE("a.weight_packed", "I32", "[1,5]", ct_dense5),
    MADE("a.weight_shape", "I64", "[2]", shape_1x32),
    MADE("a.weight_scale", "BF16", "[1,1]", bf16_one),
};
static const struct made_tensor ct_pack5_old[] = {
    MADE("a.weight_packed", "I32", "[1,6]", ct_loose5),
    MADE("a.weight_shape", "I64", "[2]", shape_1x32),
    MADE("a.weight_scale", "BF16", "[1,1]", bf16_one),
};

/* NVFP4: group scale 0x40 is 2; a global scale of 4 (compressed-tensors, divides) is a
 * weight_scale_2 of 0.25 (ModelOpt, multiplies). */
static const uint8_t fp4_8[8] = {0x21, 0x7f, 0x30}, e4m3_two[1] = {0x40};
static const float four[1] = {4.0f}, eight[1] = {8.0f};

static const struct made_tensor ct_nvfp4[] = {
    MADE("a.weight_packed", "U8", "[1,8]", fp4_8),
    MADE("a.weight_scale", "F8_E4M3", "[1,1]", e4m3_two),
    MADE("a.weight_global_scale", "F32", "[1]", four),
};
static const struct made_tensor ct_nvfp4_pair[] = {
    MADE("gate.weight_packed", "U8", "[1,8]", fp4_8),
    MADE("gate.weight_scale", "F8_E4M3", "[1,1]", e4m3_two),
    MADE("gate.weight_global_scale", "F32", "[1]", four),
    MADE("up.weight_packed", "U8", "[1,8]", fp4_8),
    MADE("up.weight_scale", "F8_E4M3", "[1,1]", e4m3_two),
    MADE("up.weight_global_scale", "F32", "[1]", eight),
};
static const struct made_tensor ct_mxfp4[] = {
    MADE("a.weight_packed", "U8", "[1,16]", fp4_16),
    MADE("a.weight_scale", "U8", "[1,1]", e8m0_two),
};
static const struct made_tensor modelopt_nvfp4[] = {
    MADE("a.weight", "U8", "[1,8]", fp4_8),
    MADE("a.weight_scale", "F8_E4M3", "[1,1]", e4m3_two),
    MADE("a.weight_scale_2", "F32", "[]", quarter),
};

static const uint8_t mxfp8_weight[32] = {0x38, 0x7e, 0xb8}, e8m0_half[1] = {126};

static const struct made_tensor mxfp8[] = {
    MADE("a.weight", "F8_E4M3", "[1,32]", mxfp8_weight),
    MADE("a.weight_scale", "U8", "[1,1]", e8m0_half),
};

/* BitNet, n = 8, k = 1: rows 0, 2, 4, 6 are the bit pairs of byte 0x92 (2, 0, 1, 2), rows 1, 3,
 * 5, 7 those of 0x06 (2, 1, 0, 0); stored 0, 1, 2 mean -1, 0, 1, divided by 4. */
static const uint8_t bitnet_weight[2] = {0x92, 0x06};
static const uint16_t bf16_four[1] = {0x4080};

static const struct made_tensor bitnet[] = {
    MADE("a.weight", "U8", "[2,1]", bitnet_weight),
    MADE("a.weight_scale", "BF16", "[1]", bf16_four),
};

#define TENSORS_OF(array) array, COUNT(array)

enum { VALUES = 8 };

struct value {
    int64_t row, l;
    double right, mistaken;
};

/* clang-format off */
static const struct {
    struct made_layer layer;
    const char *mistake;
    int64_t n, k;
    struct value values[VALUES]; /* ended by right == mistaken == 0 */
} cases[] = {
    /* (n + k - z) s, z = 8, of row 1 4. */
    {{"gptq", GPTQ(4, 8, "false", ""), TENSORS_OF(gptq), {0}, NULL, SCHEMA_EXACT},
     "v1 zero points without + 1", 8, 8,
     {{0, 0, -8, -7}, {0, 7, -1, 0}, {1, 0, -1.5, -1}, {1, 7, 2, 2.5}, {2, 0, -12, -10}, {7, 7, 6, 7}}},
    {{"gptq", GPTQ(4, 8, "false", ",\"checkpoint_format\":\"gptq_v2\""), TENSORS_OF(gptq), {0}, NULL,
      SCHEMA_EXACT},
     "v2 zero points with + 1", 8, 8, {{0, 0, -7, -8}, {1, 0, -1, -1.5}, {1, 7, 2.5, 2}, {7, 7, 7, 6}}},
    {{"gptq", GPTQ(4, -1, "true", ""), TENSORS_OF(gptq), {0}, NULL, SCHEMA_EXACT},
     "stored zero points of a symmetric layer", 8, 8, {{1, 0, -3.5, -1.5}, {1, 7, 0.0, 2}}},
    /* Ten codes a word, two bits lost, would read 6 and 7 there. */
    {{"gptq", GPTQ(3, -1, "true", ""), TENSORS_OF(gptq3), {0}, NULL, SCHEMA_EXACT},
     "3-bit codes that do not straddle words", 32, 32, {{5, 10, -2, 2}, {31, 21, 1, 3}}},
    {{"awq", AWQ("true", ""), TENSORS_OF(awq), {0}, NULL, SCHEMA_EXACT},
     "nibbles in order", 8, 2, {{1, 0, -5, -3}, {3, 0, -0.25, 1.25}, {4, 1, 9, 3}, {6, 0, 5, 3}}},
    {{"awq", "{\"w_bit\":4,\"q_group_size\":2,\"zero_point\":true,\"version\":\"GEMM\"}",
      TENSORS_OF(awq), {0}, NULL, SCHEMA_EXACT},
     "zero points in order", 8, 2, {{1, 0, -5, -4}, {3, 0, -0.25, 0.5}}},
    {{"awq", AWQ("true", ""), TENSORS_OF(awq), {0}, NULL, SCHEMA_EXACT},
     "zero points less one, as in GPTQ v1", 8, 2, {{1, 0, -5, -6}, {6, 0, 5, 4}}},
    {{"autoround gptq", ROUND("auto_gptq", 8, ""), TENSORS_OF(gptq), {0}, NULL, SCHEMA_EXACT},
     "zero points without + 1", 8, 8, {{0, 0, -8, -7}, {1, 7, 2, 2.5}}},
    {{"autoround gptq", ROUND("auto_gptq", 8, ",\"extra_config\":{\"a\":{\"sym\":true}}"),
      TENSORS_OF(gptq), {0}, NULL, SCHEMA_EXACT},
     "settings of the layer ignored", 8, 8, {{1, 0, -3.5, -1.5}}},
    {{"autoround awq", ROUND("auto_awq", 2, ""), TENSORS_OF(awq), {0}, NULL, SCHEMA_EXACT},
     "nibbles in order", 8, 2, {{1, 0, -5, -3}, {4, 1, 9, 3}}},
    {{"fp8", FP8, TENSORS_OF(fp8), {0}, NULL, SCHEMA_EXACT},
     "the scale's reciprocal", 2, 4, {{0, 0, 0.25, 4}, {0, 2, -0.25, -4}, {0, 3, 0x1p-11, 0x1p-7}, {1, 0, 112, 1792}}},
    {{"fp8", FP8, TENSORS_OF(fp8_qkv), {"q", "k", "v"}, "bf16", SCHEMA_EXACT},
     "the first part's scale for all", 3, 2, {{0, 1, 0.5, 0}, {1, 0, 2, 0.25}, {1, 1, 4, 0.5}, {2, 1, 2, 0.5}}},
    {{"fp8", FP8_BLOCK, TENSORS_OF(fp8_block), {0}, NULL, SCHEMA_EXACT},
     "the inverse, as the name says", 3, 4, {{0, 3, 2, 0.5}, {1, 3, 2, 0.5}, {2, 0, 4, 0.25}, {2, 2, 4, 0.25}}},
    {{"fp8", FP8_BLOCK, TENSORS_OF(fp8_block), {0}, NULL, SCHEMA_EXACT},
     "scales rounded to bf16", 3, 4, {{2, 3, 1.00390625, 1}}},
    {{"fp8", FP8_BLOCK, TENSORS_OF(fp8_block), {0}, "bf16", SCHEMA_UPSTREAM},
     "scales kept in f32, though upstream rounds", 3, 4, {{2, 3, 1, 1.00390625}, {1, 3, 2, 4}, {2, 0, 4, 2}}},
    {{"mxfp4", MXFP4, TENSORS_OF(mxfp4), {0}, NULL, SCHEMA_EXACT},
     "the high nibble first", 1, 32, {{0, 0, 1, 2}, {0, 1, 2, 1}, {0, 2, -12, 12}, {0, 5, 3, 0}}},
    {{"mxfp4", MXFP4, TENSORS_OF(mxfp4_native), {0}, NULL, SCHEMA_EXACT},
     "an F4 element for a byte", 1, 32, {{0, 0, 1, 2}, {0, 1, 2, 1}}},
    /* Row 1 is expert 1: code 2 and 1 by 2^3. */
    {{"gpt-oss mxfp4", MXFP4, TENSORS_OF(gpt_oss), {0}, NULL, SCHEMA_EXACT},
     "the first expert's scale", 1, 32, {{0, 0, 0.5, 1}, {0, 2, -6, 6}, {1, 0, 8, 1}, {1, 1, 4, 0.5}}},
    {{"int-quantized", CT("int-quantized", CT_INT(8, "false", "channel")), TENSORS_OF(ct_int), {0}, "bf16",
      SCHEMA_EXACT},
     "no zero points", 2, 2, {{0, 0, 0.0, -64}, {0, 1, 127.5, 63.5}, {1, 0, -10, 0}, {1, 1, -12, -2}}},
    {{"int-quantized", CT("int-quantized", CT_INT(8, "true", "channel")), TENSORS_OF(ct_int), {0}, "bf16",
      SCHEMA_EXACT},
     "bytes read as unsigned", 2, 2, {{0, 0, -64, 64}, {1, 1, -2, 510}}},
    {{"float-quantized", CT("float-quantized", "\"type\":\"float\",\"num_bits\":8,\"strategy\":\"channel\""),
      TENSORS_OF(ct_float), {0}, "f16", SCHEMA_EXACT},
     "scales along k", 2, 4, {{0, 1, 1, 4}, {1, 0, 896, 224}}},
    {{"float-quantized", CT("naive-quantized", "\"type\":\"float\",\"num_bits\":8,\"strategy\":\"tensor\""),
      TENSORS_OF(fp8_qkv), {"q", "k", "v"}, "bf16", SCHEMA_EXACT},
     "the first part's scale for all", 3, 2, {{1, 0, 2, 0.25}, {2, 1, 2, 0.5}}},
    {{"pack-quantized", CT("pack-quantized", CT_INT(4, "false", "group") ",\"group_size\":8"),
      TENSORS_OF(ct_pack), {0}, NULL, SCHEMA_EXACT},
     "zero points with + 1, as in GPTQ v1", 2, 8, {{0, 0, -8, -9}, {0, 7, -1, -2}, {1, 0, 5, 4}, {1, 7, 12, 11}}},
    {{"pack-quantized", CT("pack-quantized", CT_INT(5, "true", "channel")), TENSORS_OF(ct_pack5), {0}, NULL,
      SCHEMA_EXACT},
     "six codes a word", 1, 32, {{0, 0, -16, 0}, {0, 6, -10, -9}, {0, 31, 15, 0}}},
    {{"pack-quantized", CT("pack-quantized", CT_INT(5, "true", "channel")), TENSORS_OF(ct_pack5_old), {0}, NULL,
      SCHEMA_EXACT},
     "a dense stream", 1, 32, {{0, 6, -10, -16}, {0, 7, -9, -7}, {0, 31, 15, 0}}},
    {{"nvfp4-pack-quantized", CT("nvfp4-pack-quantized", CT_FP4(16)), TENSORS_OF(ct_nvfp4), {0}, NULL,
      SCHEMA_EXACT},
     "multiplied by the global scale", 1, 16, {{0, 0, 0.25, 4}, {0, 1, 0.5, 8}, {0, 2, -3, -48}}},
    {{"nvfp4-pack-quantized", CT("nvfp4-pack-quantized", CT_FP4(16)), TENSORS_OF(ct_nvfp4_pair),
      {"gate", "up"}, "bf16", SCHEMA_EXACT},
     "the first part's global scale for all", 2, 16, {{0, 1, 0.5, 0}, {1, 0, 0.125, 0.25}, {1, 2, -1.5, -3}}},
    {{"mxfp4-pack-quantized", CT("mxfp4-pack-quantized", CT_FP4(32)), TENSORS_OF(ct_mxfp4), {0}, NULL,
      SCHEMA_EXACT},
     "the high nibble first", 1, 32, {{0, 0, 1, 2}, {0, 1, 2, 1}}},
    {{"modelopt nvfp4", "{\"quant_algo\":\"NVFP4\",\"group_size\":16}", TENSORS_OF(modelopt_nvfp4), {0}, NULL,
      SCHEMA_EXACT},
     "divided by weight_scale_2", 1, 16, {{0, 0, 0.25, 4}, {0, 1, 0.5, 8}, {0, 2, -3, -48}}},
    {{"modelopt mxfp8", "{\"quant_method\":\"modelopt\",\"quant_algo\":\"MXFP8\"}", TENSORS_OF(mxfp8), {0},
      NULL, SCHEMA_EXACT},
     "bytes of scales as numbers", 1, 32, {{0, 0, 0.5, 126}, {0, 1, 224, 56448}, {0, 2, -0.5, -126}}},
    {{"bitnet", "{\"quant_method\":\"bitnet\"}", TENSORS_OF(bitnet), {0}, NULL, SCHEMA_EXACT},
     "multiplied by weight_scale", 8, 1, {{0, 0, 0.25, 4}, {2, 0, -0.25, -4}, {6, 0, 0.25, 4}}},
    {{"bitnet", "{\"quant_method\":\"bitnet\"}", TENSORS_OF(bitnet), {0}, NULL, SCHEMA_EXACT},
     "four neighbouring rows a byte", 8, 1, {{1, 0, 0.25, -0.25}, {2, 0, -0.25, 0}, {4, 0, 0.0, 0.25}, {7, 0, -0.25, -0.25 + 1}}},
};
/* clang-format on */

START_TEST(by_hand)
{
    struct standard s;
    enum err_code rc = made_convert(&cases[_i].layer, &s);
    int checked = 0;

    ck_assert_msg(!rc, "%s", rc ? made_errs.items[0].text : "");
    ck_assert_int_eq(s.n, cases[_i].n);
    ck_assert_int_eq(s.k, cases[_i].k);
    for (const struct value *v = cases[_i].values; v < cases[_i].values + VALUES; v++) {
        double got;

        if (v->right == 0.0 && v->mistaken == 0.0)
            break;
        got = standard_value(&s, v->row, v->l);
        ck_assert_msg(got == v->right, "(%d, %d) is %a, not %a", (int)v->row, (int)v->l, got,
                      v->right);
        ck_assert_msg(got != v->mistaken, "%s: the same value", cases[_i].mistake);
        checked++;
    }
    ck_assert_int_gt(checked, 0);
}
END_TEST

/* ---- what the standard form looks like ---- */

START_TEST(forms)
{
    struct made_layer m = {"fp8", FP8, TENSORS_OF(fp8_qkv), {"q", NULL}, NULL, SCHEMA_EXACT};
    struct standard s;

    ck_assert(!made_convert(&m, &s)); /* one part: its scale as it is */
    ck_assert(s.scale == REF_SCALE_TENSOR && !strcmp(s.bs->name, "f32"));
    m.form = SCHEMA_UPSTREAM;
    m.param = "f16";
    ck_assert(!made_convert(&m, &s));
    ck_assert(s.scale == REF_SCALE_CHANNEL && !strcmp(s.bs->name, "f16"));
    m = (struct made_layer){"fp8", FP8_BLOCK, TENSORS_OF(fp8_block), {0}, NULL, SCHEMA_EXACT};
    ck_assert(!made_convert(&m, &s));
    ck_assert(s.scale == REF_SCALE_BLOCK && s.group == 3 && s.group_n == 2);
    m.form = SCHEMA_UPSTREAM;
    m.param = "bf16";
    ck_assert(!made_convert(&m, &s));
    ck_assert(s.scale == REF_SCALE_GROUP && s.group == 3 && s.group_n == 1);
    ck_assert_int_eq(s.rounded, 1);
    m = (struct made_layer){.schema = "nvfp4-pack-quantized",
                            .config = CT("nvfp4-pack-quantized", CT_FP4(16)),
                            .tensors = ct_nvfp4_pair,
                            .count = COUNT(ct_nvfp4_pair),
                            .parts = {"gate", "up"},
                            .param = "bf16"};
    ck_assert(!made_convert(&m, &s)); /* folded */
    ck_assert(s.scale_2 == REF_SCALE_2_NONE && !strcmp(s.bs->name, "bf16"));
    m.parts[1] = NULL;
    ck_assert(!made_convert(&m, &s));
    ck_assert(s.scale_2 == REF_SCALE_2_TENSOR && !strcmp(s.bs->name, "e4m3"));
}
END_TEST

START_TEST(experts)
{
    struct made_layer m = {
        .schema = "gpt-oss mxfp4", .config = MXFP4, .tensors = gpt_oss, .count = COUNT(gpt_oss)};
    struct standard s;

    ck_assert(!made_convert(&m, &s));
    ck_assert_int_eq(s.experts, 2);
    ck_assert_int_eq(standard_scale_count(&s), 2);
}
END_TEST

/* ---- what is counted ---- */

static const uint8_t odd_weight[4] = {0x7f, 0xff, 0x00, 0x00};
static const uint16_t odd_scales[2] = {0x7fc0, 0xbf80}; /* NaN, -1 */
static const struct made_tensor odd_fp8[] = {
    MADE("a.weight", "F8_E4M3", "[2,2]", odd_weight),
    MADE("a.weight_scale", "BF16", "[2,1]", odd_scales),
};
static const int8_t wide_weight[4] = {-8, 7, 8, -9};
static const struct made_tensor wide_int4[] = {
    MADE("a.weight", "I8", "[2,2]", wide_weight),
    MADE("a.weight_scale", "BF16", "[2,1]", bf16_ones),
};
static const uint32_t full_zeros[1] = {0xffffffff};
static const struct made_tensor full_gptq[] = {
    MADE("a.qweight", "I32", "[1,8]", gptq_weight),
    MADE("a.scales", "F16", "[1,8]", gptq_scales),
    MADE("a.qzeros", "I32", "[1,1]", full_zeros),
};

START_TEST(counted)
{
    struct made_layer m = {.schema = "fp8", .config = FP8, .tensors = odd_fp8, .count = 2};
    struct standard_stats t;
    struct standard s;

    ck_assert(!made_convert(&m, &s));
    standard_measure(&s, &t);
    ck_assert_int_eq(t.nan_codes, 2);
    ck_assert_int_eq(t.scale_nan, 1);
    ck_assert_int_eq(t.scale_negative, 1);
    ck_assert(t.scale_min == -1.0 && t.scale_max == -1.0);
    ck_assert_int_eq(t.constant, 1);
    ck_assert_int_eq(t.all_zero, 1);
    ck_assert(standard_suspicious(&s, &t));
    m = (struct made_layer){.schema = "int-quantized",
                            .config = CT("int-quantized", CT_INT(4, "true", "channel")),
                            .tensors = wide_int4,
                            .count = 2};
    ck_assert(!made_convert(&m, &s));
    standard_measure(&s, &t);
    ck_assert_int_eq(s.out_of_range, 2);
    ck_assert(standard_value(&s, 0, 0) == -8.0 && standard_value(&s, 0, 1) == 7.0);
    ck_assert(standard_suspicious(&s, &t));
    m = (struct made_layer){.schema = "gptq",
                            .config = GPTQ(4, 8, "false", ""),
                            .tensors = full_gptq,
                            .count = 3}; /* 15 + 1 is no zero point of 4 bits */
    ck_assert(!made_convert(&m, &s));
    standard_measure(&s, &t);
    ck_assert_int_eq(s.zeros_outside, 8);
    ck_assert(t.zero_min == 16 && standard_suspicious(&s, &t));
    m = (struct made_layer){.schema = "gptq",
                            .config = GPTQ(4, 8, "true", ""),
                            .tensors = gptq,
                            .count = COUNT(gptq)}; /* row 1 stores 3, not 7 */
    ck_assert(!made_convert(&m, &s));
    standard_measure(&s, &t);
    ck_assert_int_eq(s.zeros_odd, 1);
    ck_assert(standard_suspicious(&s, &t));
    m.config = GPTQ(4, 8, "false", "");
    ck_assert(!made_convert(&m, &s));
    standard_measure(&s, &t);
    ck_assert(!standard_suspicious(&s, &t));
    ck_assert(t.zero_min == 4 && t.zero_max == 8 && t.scale_min == 0.5 && t.scale_max == 2.0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("schemas");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_checked_fixture(tc, made_setup, made_teardown);
    tcase_add_loop_test(tc, by_hand, 0, COUNT(cases));
    tcase_add_test(tc, forms);
    tcase_add_test(tc, experts);
    tcase_add_test(tc, counted);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
