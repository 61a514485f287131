/* Rank-local shapes (n = 464, k = 192) against decoders written here from the formats'
 * definitions, bit by bit; and everything that must be refused, with its sentence. */
#include "harness/test/made_layer.h"

#include <stdlib.h>

enum { N = 464, K = 192 };

/* ck_assert writes a mark each time it succeeds: too slow for loops over all weights. */
#define REQUIRE(condition, ...)        \
    do {                               \
        if (!(condition))              \
            ck_abort_msg(__VA_ARGS__); \
    } while (0)

static uint64_t random_state = 0x9e3779b97f4a7c15;

static void *random_bytes(size_t n)
{
    unsigned char *p = arena_alloc(&made_arena, n, 1);

    ck_assert_ptr_nonnull(p);
    for (size_t i = 0; i < n; i++) {
        random_state ^= random_state << 13;
        random_state ^= random_state >> 7;
        random_state ^= random_state << 17;
        p[i] = (unsigned char)(random_state >> 32);
    }
    return p;
}

/* Scales: powers of two from 2^-7 to 2^0 in f16. */
static uint16_t *random_scales(size_t n)
{
    uint16_t *p = random_bytes(n * sizeof *p);

    for (size_t i = 0; i < n; i++)
        p[i] = (uint16_t)((8 + p[i] % 8) << 10);
    return p;
}

static double power_of(uint16_t f16)
{
    double x = 1.0;

    for (int e = f16 >> 10; e < 15; e++)
        x /= 2.0;
    return x;
}

/* Bit i of a stream of little-endian words. */
static int bit_of(const void *words, size_t i)
{
    return ((const unsigned char *)words)[i / 8] >> (i % 8) & 1;
}

static int bits_at(const void *words, size_t first, int bits)
{
    int x = 0;

    for (int b = 0; b < bits; b++)
        x |= bit_of(words, first + (size_t)b) << b;
    return x;
}

static const struct standard *converted(const struct made_layer *m)
{
    static struct standard s;

    ck_assert_msg(!made_convert(m, &s), "%s", made_errs.count ? made_errs.items[0].text : "");
    ck_assert(s.n == N && s.k == K);
    return &s;
}

static void check_value(const struct standard *s, int n, int k, double want)
{
    double got = standard_value(s, n, k);

    REQUIRE(got == want, "(%d, %d) is %a, not %a", n, k, got, want);
}

/* Bit b of the code of (n, k) is bit (k % 8) * 4 + b of word (k / 8, n). */
START_TEST(gptq_sizes)
{
    enum { G = 64, GROUPS = K / G };
    uint32_t *w = random_bytes((size_t)K / 8 * N * 4),
             *z = random_bytes((size_t)GROUPS * N / 8 * 4);
    uint16_t *scales = random_scales((size_t)GROUPS * N);
    const struct made_tensor t[] = {
        {"a.qweight", "I32", "[24,464]", w, (size_t)K / 8 * N * 4},
        {"a.scales", "F16", "[3,464]", scales, (size_t)GROUPS * N * 2},
        {"a.qzeros", "I32", "[3,58]", z, (size_t)GROUPS * N / 8 * 4},
    };
    const struct made_layer m = {
        .schema = "gptq", .config = GPTQ(4, 64, "false", ""), .tensors = t, .count = COUNT(t)};
    const struct standard *s = converted(&m);

    for (int n = 0; n < N; n++)
        for (int k = 0; k < K; k++) {
            int code = (int)(w[k / 8 * N + n] >> (k % 8 * 4)) & 15;
            int zero = (int)(z[k / G * (N / 8) + n / 8] >> (n % 8 * 4)) & 15;

            check_value(s, n, k, (code - zero - 1) * power_of(scales[k / G * N + n]));
        }
}
END_TEST

/* Nibble i of a word holds column packed[i] of its eight. */
START_TEST(awq_sizes)
{
    static const int packed[8] = {0, 2, 4, 6, 1, 3, 5, 7};
    enum { G = 64, GROUPS = K / G };
    uint32_t *w = random_bytes((size_t)K * N / 8 * 4),
             *z = random_bytes((size_t)GROUPS * N / 8 * 4);
    uint16_t *scales = random_scales((size_t)GROUPS * N);
    const struct made_tensor t[] = {
        {"a.qweight", "I32", "[192,58]", w, (size_t)K * N / 8 * 4},
        {"a.scales", "F16", "[3,464]", scales, (size_t)GROUPS * N * 2},
        {"a.qzeros", "I32", "[3,58]", z, (size_t)GROUPS * N / 8 * 4},
    };
    const struct made_layer m = {
        .schema = "awq",
        .config = "{\"quant_method\":\"awq\",\"bits\":4,\"group_size\":64,\"zero_point\":true}",
        .tensors = t,
        .count = COUNT(t)};
    const struct standard *s = converted(&m);

    for (int word = 0; word < N / 8; word++)
        for (int i = 0; i < 8; i++)
            for (int k = 0; k < K; k++) {
                int n = word * 8 + packed[i];
                int code = (int)(w[k * (N / 8) + word] >> (4 * i)) & 15;
                int zero = (int)(z[k / G * (N / 8) + word] >> (4 * i)) & 15;

                check_value(s, n, k, (code - zero) * power_of(scales[k / G * N + n]));
            }
}
END_TEST

/* 5 bits: a dense stream along k, and along n for the zero points of a group. */
START_TEST(pack_sizes)
{
    enum { G = 32, GROUPS = K / G, WORDS = K * 5 / 32, ZERO_WORDS = (N * 5 + 31) / 32 };
    static const int64_t shape[2] = {N, K};
    uint32_t *w = random_bytes((size_t)N * WORDS * 4);
    uint32_t *z = random_bytes((size_t)ZERO_WORDS * GROUPS * 4), column[ZERO_WORDS];
    uint16_t *scales = random_scales((size_t)N * GROUPS);
    const struct made_tensor t[] = {
        {"a.weight_packed", "I32", "[464,30]", w, (size_t)N * WORDS * 4},
        {"a.weight_shape", "I64", "[2]", shape, sizeof shape},
        {"a.weight_scale", "F16", "[464,6]", scales, (size_t)N * GROUPS * 2},
        {"a.weight_zero_point", "I32", "[73,6]", z, (size_t)ZERO_WORDS * GROUPS * 4},
    };
    const struct made_layer m = {
        .schema = "pack-quantized",
        .config = CT("pack-quantized", CT_INT(5, "false", "group") ",\"group_size\":32"),
        .tensors = t,
        .count = COUNT(t)};
    const struct standard *s = converted(&m);

    for (int g = 0; g < GROUPS; g++) {
        for (int i = 0; i < ZERO_WORDS; i++)
            column[i] = z[i * GROUPS + g];
        for (int n = 0; n < N; n++)
            for (int k = g * G; k < (g + 1) * G; k++) {
                int code = bits_at(w + (size_t)n * WORDS, (size_t)k * 5, 5);
                int zero = bits_at(column, (size_t)n * 5, 5);

                check_value(s, n, k, (code - zero) * power_of(scales[n * GROUPS + g]));
            }
    }
}
END_TEST

static const double e2m1[16] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6};

START_TEST(mxfp4_sizes)
{
    uint8_t *w = random_bytes((size_t)N * K / 2), *e = random_bytes((size_t)N * K / 32);
    const struct made_tensor t[] = {
        {"a.weight", "U8", "[464,96]", w, (size_t)N * K / 2},
        {"a.weight_scale", "U8", "[464,6]", e, (size_t)N * K / 32},
    };
    const struct made_layer m = {.schema = "mxfp4",
                                 .config = "{\"quant_method\":\"mxfp4\"}",
                                 .tensors = t,
                                 .count = COUNT(t)};
    const struct standard *s;

    for (int i = 0; i < N * K / 32; i++)
        e[i] = (uint8_t)(112 + e[i] % 16); /* 2^-15 to 2^0 */
    s = converted(&m);
    for (int n = 0; n < N; n++)
        for (int k = 0; k < K; k++) {
            int code = w[(n * K + k) / 2] >> (k % 2 * 4) & 15;

            check_value(s, n, k,
                        e2m1[code] * power_of((uint16_t)((e[n * 6 + k / 32] - 112) << 10)));
        }
}
END_TEST

/* Blocks of 128 x 128 over 464 x 192: the last ones are cut in both directions. */
START_TEST(fp8_sizes)
{
    uint8_t *w = random_bytes((size_t)N * K);
    float scales[4 * 2];
    const struct made_tensor t[] = {
        {"a.weight", "F8_E4M3", "[464,192]", w, (size_t)N * K},
        {"a.weight_scale_inv", "F32", "[4,2]", scales, sizeof scales},
    };
    const struct made_layer m = {.schema = "fp8",
                                 .config =
                                     "{\"quant_method\":\"fp8\",\"weight_block_size\":[128,128]}",
                                 .tensors = t,
                                 .count = COUNT(t)};
    const struct standard *s;

    for (int i = 0; i < 8; i++)
        scales[i] = 1.0f + (float)i / 8.0f;
    for (int i = 0; i < N * K; i++)
        w[i] = (uint8_t)(w[i] & 1 ? 0x38 : 0xc0); /* 1 or -2 */
    s = converted(&m);
    for (int n = 0; n < N; n++)
        for (int k = 0; k < K; k++)
            check_value(s, n, k,
                        (w[n * K + k] == 0x38 ? 1.0 : -2.0) *
                            (double)scales[n / 128 * 2 + k / 128]);
}
END_TEST

/* ---- refusals ---- */

/* One tensor list for each method; a row takes the tensors of its mask. Data is all zeros. */
static const unsigned char zeros[4096];

#define Z(name, dtype, shape, bytes)     \
    {                                    \
        name, dtype, shape, zeros, bytes \
    }
static const uint32_t moved[8] = {0, 0, 0, 1, 0, 0, 0, 0};
static const int64_t shape_1x8[2] = {1, 8};

/* clang-format off */
static const struct {
    const char *schema, *config;
    struct made_tensor tensors[4];
    const char *sentence;
} refused[] = {
    {"gptq", "{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":8}",
     {Z("a.qweight", "I32", "[1,8]", 32)}, "sym of the quantization config is not true or false"},
    {"gptq", "{\"quant_method\":\"gptq\",\"group_size\":8,\"sym\":true}",
     {Z("a.qweight", "I32", "[1,8]", 32)}, "the quantization config has no bits"},
    {"gptq", GPTQ(4, 8, "true", ""), {Z("a.qweight", "I64", "[1,4]", 32)}, "tensor 'a.qweight' is I64 1x4; its format"},
    {"gptq", GPTQ(5, 8, "true", ""), {Z("a.qweight", "I32", "[5,8]", 160)}, "5 bits are not known"},
    {"gptq", GPTQ(4.5, 8, "true", ""), {Z("a.qweight", "I32", "[5,8]", 160)}, "bits of the quantization config is no whole number"},
    {"gptq", GPTQ(4, 0, "true", ""), {Z("a.qweight", "I32", "[1,8]", 32)}, "group_size is 0"},
    {"gptq", GPTQ(4, -2, "true", ""), {Z("a.qweight", "I32", "[1,8]", 32)}, "group_size of the quantization config is no"},
    {"gptq", GPTQ(4, 8, "true", ",\"desc_act\":true"), {Z("a.qweight", "I32", "[1,8]", 32)}, "activation order"},
    {"gptq", GPTQ(4, 8, "true", ",\"dynamic\":{\"+:x\":{\"bits\":8}}"), {Z("a.qweight", "I32", "[1,8]", 32)},
     "settings of single layers"},
    {"gptq", GPTQ(4, 8, "true", ",\"checkpoint_format\":\"marlin\""), {Z("a.qweight", "I32", "[1,8]", 32)},
     "the checkpoint_format is not known"},
    {"gptq", GPTQ(4, 8, "true", ""), {Z("a.qweight", "I32", "[1,8]", 32)}, "tensor 'a.scales' is missing"},
    {"gptq", GPTQ(4, 8, "false", ""), {Z("a.qweight", "I32", "[1,8]", 32), Z("a.scales", "F16", "[1,8]", 16)},
     "tensor 'a.qzeros' is missing"},
    {"gptq", GPTQ(4, 8, "true", ""), {Z("a.qweight", "I32", "[1,8]", 32), Z("a.scales", "F16", "[8,1]", 16)},
     "tensor 'a.scales' is F16 8x1, not 1x8"},
    {"gptq", GPTQ(4, 8, "true", ""), {Z("a.qweight", "I32", "[1,8]", 32), Z("a.scales", "I8", "[1,8]", 8)},
     "tensor 'a.scales' is I8 1x8; its format must be one of F16 BF16 F32"},
    {"gptq", GPTQ(4, 8, "true", ""), {Z("a.qweight", "I32", "[1,8]", 32), Z("a.scales", "F32", "[1,8]", 32)},
     "F32 scales must be rounded"},
    {"gptq", GPTQ(4, 4, "true", ""), {Z("a.qweight", "I32", "[1,8]", 32), Z("a.scales", "F16", "[2,8]", 32),
      MADE("a.g_idx", "I32", "[8]", moved)}, "tensor 'a.g_idx' puts k = 3 into group 1"},
    {"gptq", GPTQ(3, -1, "true", ""), {Z("a.qweight", "I32", "[1,8]", 32)}, "whole columns of 3 bits"},
    {"gptq", GPTQ(4, -1, "false", ""), {Z("a.qweight", "I32", "[1,4]", 16), Z("a.scales", "F16", "[1,4]", 8),
      Z("a.qzeros", "I32", "[1,1]", 4)}, "4 zero points of 4 bits do not fill whole words"},
    {"gptq", GPTQ(4, -1, "true", ""), {Z("a.qweight", "I32", "[0,4]", 0), Z("a.scales", "F16", "[1,4]", 8)}, "layer 'a' has no weights"},
    {"awq", "{\"quant_method\":\"awq\",\"bits\":8,\"group_size\":8,\"zero_point\":true}",
     {Z("a.qweight", "I32", "[8,1]", 32)}, "8 bits are not known (4)"},
    {"awq", "{\"quant_method\":\"awq\",\"bits\":4,\"group_size\":8,\"zero_point\":true,\"version\":\"gemv\"}",
     {Z("a.qweight", "I32", "[8,1]", 32)}, "the version of the packing is not known"},
    {"autoround gptq", "{\"quant_method\":\"auto-round\",\"packing_format\":\"auto_round:auto_gptq\",\"bits\":4,"
     "\"group_size\":8,\"sym\":true,\"act_bits\":8}", {Z("a.qweight", "I32", "[1,8]", 32)}, "activations of 8 bits"},
    {"autoround gptq", "{\"quant_method\":\"auto-round\",\"packing_format\":\"auto_round:auto_gptq\",\"bits\":4,"
     "\"group_size\":8,\"sym\":true,\"data_type\":\"mx_fp\"}", {Z("a.qweight", "I32", "[1,8]", 32)}, "the data_type is not known"},
    {"fp8", "{\"quant_method\":\"fp8\"}", {Z("a.weight", "F8_E4M3", "[2,2]", 4)}, "tensor 'a.weight_scale' is missing"},
    {"fp8", "{\"quant_method\":\"fp8\"}", {Z("a.weight", "F8_E4M3", "[2,2]", 4), Z("a.weight_scale", "F32", "[3]", 12)},
     "tensor 'a.weight_scale' is F32 3, not 2x1"},
    {"fp8", "{\"quant_method\":\"fp8\",\"weight_block_size\":[128]}", {Z("a.weight", "F8_E4M3", "[2,2]", 4)},
     "weight_block_size is no list of two sizes"},
    {"fp8", "{\"quant_method\":\"fp8\",\"weight_block_size\":[0,128]}", {Z("a.weight", "F8_E4M3", "[2,2]", 4)},
     "weight_block_size is no list of two sizes"},
    {"mxfp4", "{\"quant_method\":\"mxfp4\"}", {Z("a.weight", "U8", "[2,20]", 40)}, "no matrix of whole groups of 32"},
    {"gpt-oss mxfp4", "{\"quant_method\":\"mxfp4\"}", {Z("a_blocks", "U8", "[2,2,1,8]", 32)}, "is not (experts, n, k / 32, 16)"},
    {"gpt-oss mxfp4", "{\"quant_method\":\"mxfp4\"}", {Z("a_blocks", "U8", "[2,2,1,16]", 64), Z("a_scales", "U8", "[2,1,2]", 4)},
     "has not one scale for each block"},
    {"modelopt nvfp4", "{\"quant_algo\":\"NVFP4\",\"group_size\":32}", {Z("a.weight", "U8", "[1,8]", 8)}, "from 16 to 16"},
    {"modelopt nvfp4", "{\"quant_algo\":\"NVFP4\"}", {Z("a.weight", "U8", "[1,8]", 8), Z("a.weight_scale", "F8_E4M3", "[1,1]", 1),
      Z("a.weight_scale_2", "F32", "[2]", 8)}, "not one number for one matrix"},
    {"pack-quantized", CT("pack-quantized", CT_INT(4, "true", "group") ",\"group_size\":8,\"actorder\":\"group\""),
     {Z("a.weight_packed", "I32", "[1,1]", 4)}, "activation order"},
    {"pack-quantized", CT("pack-quantized", CT_INT(4, "true", "channel")),
     {Z("a.weight_packed", "I32", "[1,1]", 4), MADE("a.weight_shape", "I64", "[2]", shape_1x8), Z("a.weight_g_idx", "I32", "[8]", 32)},
     "activation order"},
    {"pack-quantized", CT("pack-quantized", CT_INT(4, "true", "channel")),
     {Z("a.weight_packed", "I32", "[1,2]", 8), MADE("a.weight_shape", "I64", "[2]", shape_1x8)}, "has 2 words for 8 codes of 4 bits, not 1"},
    {"pack-quantized", CT("pack-quantized", CT_INT(5, "true", "channel")),
     {Z("a.weight_packed", "I32", "[1,2]", 8), MADE("a.weight_shape", "I64", "[2]", shape_1x8)}, "both packings of 8 codes of 5 bits"},
    {"pack-quantized", CT("pack-quantized", CT_INT(9, "true", "channel")), {Z("a.weight_packed", "I32", "[1,1]", 4)}, "num_bits"},
    {"int-quantized", CT("int-quantized", CT_INT(8, "false", "block") ",\"block_structure\":[2,2]"), {Z("a.weight", "I8", "[2,2]", 4)},
     "zero points of blocks"},
    {"int-quantized", CT("int-quantized", CT_INT(8, "true", "token")), {Z("a.weight", "I8", "[2,2]", 4)}, "the strategy is not known"},
    {"int-quantized", "{\"quant_method\":\"compressed-tensors\",\"format\":\"int-quantized\",\"config_groups\":{\"a\":{\"weights\":{"
     CT_INT(8, "true", "channel") "}},\"b\":{}}}", {Z("a.weight", "I8", "[2,2]", 4)}, "2 config_groups"},
    {"bitnet", "{\"quant_method\":\"bitnet\"}", {Z("a.weight", "U8", "[1,2]", 2)}, "tensor 'a.weight_scale' is missing"},
};
/* clang-format on */

START_TEST(refusals)
{
    struct made_layer m = {
        .schema = refused[_i].schema, .config = refused[_i].config, .tensors = refused[_i].tensors};
    struct standard s;

    while (m.count < 4 && m.tensors[m.count].name)
        m.count++;
    ck_assert(made_convert(&m, &s) == ERR_CONFIG);
    ck_assert_uint_eq(made_errs.count, 1);
    ck_assert_msg(strstr(made_errs.items[0].text, refused[_i].sentence) != NULL,
                  "'%s' is not in '%s'", refused[_i].sentence, made_errs.items[0].text);
}
END_TEST

/* Parts that do not fit each other. */
START_TEST(stacks)
{
    const struct made_tensor blocks[] = {
        Z("p.weight", "F8_E4M3", "[3,4]", 12), Z("p.weight_scale_inv", "F32", "[2,1]", 8),
        Z("q.weight", "F8_E4M3", "[2,4]", 8),  Z("q.weight_scale_inv", "F32", "[1,1]", 4),
        Z("r.weight", "F8_E4M3", "[2,8]", 16), Z("r.weight_scale_inv", "F32", "[1,2]", 8),
    };
    struct made_layer m = {.schema = "fp8",
                           .config = "{\"quant_method\":\"fp8\",\"weight_block_size\":[2,4]}",
                           .tensors = blocks,
                           .count = COUNT(blocks),
                           .parts = {"p", "q"}};
    struct standard s;

    ck_assert(made_convert(&m, &s) == ERR_CONFIG);
    ck_assert_ptr_nonnull(strstr(made_errs.items[0].text, "starts at row 3 inside a block"));
    m.form = SCHEMA_UPSTREAM; /* repeated rows need no whole blocks */
    m.param = "bf16";
    ck_assert(!made_convert(&m, &s));
    m.parts[0] = "q";
    m.parts[1] = "r";
    ck_assert(made_convert(&m, &s) == ERR_CONFIG);
    ck_assert_ptr_nonnull(strstr(made_errs.items[1].text, "has k = 8, but 'q' has 4"));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("schema sizes");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_checked_fixture(tc, made_setup, made_teardown);
    tcase_add_test(tc, gptq_sizes);
    tcase_add_test(tc, awq_sizes);
    tcase_add_test(tc, pack_sizes);
    tcase_add_test(tc, mxfp4_sizes);
    tcase_add_test(tc, fp8_sizes);
    tcase_add_loop_test(tc, refusals, 0, COUNT(refused));
    tcase_add_test(tc, stacks);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
