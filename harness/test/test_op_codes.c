/* dequant_weight, pack, unpack and process_mxfp4: the right provider passes each check; one that is
 * wrong in one way gets `fail`; data that could not show a fault get `untrusted`. */
#include "harness/test/op_faults.h"

#include <math.h>
#include <stdlib.h>

#define DEQUANT "family=dequant_weight b_dtype=e4m3 m=300 "
#define PACK    "family=pack bits=3 m=16 k=96 "
#define BYTES   "family=pack bits=8 m=256 k=32 "
#define MX      "family=process_mxfp4 a_dtype=e4m3 m=16 k=1024 "
#define MX_ROWS MX "per_row=true "
#define MX_INT8 "family=process_mxfp4 a_dtype=int8 m=16 k=1024 weight_scale_group_size=128 "
#define MX_ALL  "family=process_mxfp4 a_dtype=int8 m=32640 k=64 per_row=true check=exhaustive"
#define MX_RUNS "family=process_mxfp4 a_dtype=e4m3 m=255 k=32 check=exhaustive"

/* ---- dequant_weight -------------------------------------------------------------------------- */

static size_t dequant_weight_bytes(const struct hum_dequant_weight_args *a)
{
    return a->outputs.bytes;
}

static float *numbers_of(const struct hum_dequant_weight_args *a)
{
    return tensor_data(&a->outputs);
}

static void flush_subnormals(const struct hum_dequant_weight_args *a)
{
    for (int64_t i = 0; i < a->outputs.shape[0]; i++)
        if (fabsf(numbers_of(a)[i]) < 0x1p-6f)
            numbers_of(a)[i] = 0.0f;
}
OP_AFTER(no_subnormals, dequant_weight, flush_subnormals)

static void lose_minus(const struct hum_dequant_weight_args *a)
{
    for (int64_t i = 0; i < a->outputs.shape[0]; i++)
        if (numbers_of(a)[i] == 0.0f)
            memset(&numbers_of(a)[i], 0, sizeof(float));
}
OP_AFTER(no_minus_zero, dequant_weight, lose_minus)

static void make_nan(const struct hum_dequant_weight_args *a)
{
    for (int64_t i = 0; i < a->outputs.shape[0]; i++)
        if (numbers_of(a)[i] == 480.0f)
            numbers_of(a)[i] = (float)NAN;
}
OP_AFTER(has_nan, dequant_weight, make_nan)

static enum hum_code leaves_last(void *handle, const struct hum_dequant_weight_args *args,
                                 char reason[HUM_REASON_BYTES])
{
    const int64_t at = args ? args->outputs.shape[0] - 1 : -1;
    float before = at >= 0 && args->outputs.data ? numbers_of(args)[at] : 0.0f;
    enum hum_code rc = hum_cpu_provider.ops->dequant_weight(handle, args, reason);

    if (rc == HUM_OK && at >= 0)
        numbers_of(args)[at] = before;
    return rc;
}

static enum hum_code accepts_all(void *handle, const struct hum_dequant_weight_args *args,
                                 char reason[HUM_REASON_BYTES])
{
    (void)hum_cpu_provider.ops->dequant_weight(handle, args, reason);
    return HUM_OK;
}

/* clang-format off */
static const struct {
    enum hum_code (*dequant)(void *, const struct hum_dequant_weight_args *, char *);
    const char *text;
    const char *reason;
} dequant_faults[] = {
    {no_subnormals, DEQUANT "check=exhaustive", "differ"},
    {no_minus_zero, DEQUANT "check=exhaustive", "differ"},
    {has_nan,       DEQUANT "check=exact",      "differ"},
    {leaves_last,   DEQUANT "check=guard",      "not written"},
    {leaves_last,   DEQUANT "check=special",    "differ"},
    {accepts_all,   DEQUANT "check=alias",      "that overlaps"},
    {accepts_all,   DEQUANT "check=contract",   "must refuse"},
};
/* clang-format on */

START_TEST(dequant_faults_are_found)
{
    struct hum_ops ops = *hum_cpu_provider.ops;

    ops.dequant_weight = dequant_faults[_i].dequant;
    expect_ops(&ops, dequant_faults[_i].text, VERDICT_FAIL, dequant_faults[_i].reason);
}
END_TEST

/* ---- pack and unpack ------------------------------------------------------------------------- */

static size_t pack_bytes(const struct hum_pack_args *a)
{
    return a->packed.bytes;
}

static size_t unpack_bytes(const struct hum_pack_args *a)
{
    return a->codes.bytes;
}

#define hum_unpack_args hum_pack_args /* one struct for both */

static uint32_t *words_of(const struct hum_pack_args *a)
{
    return tensor_data(&a->packed);
}

static uint32_t *pack_codes_of(const struct hum_pack_args *a)
{
    return tensor_data(&a->codes);
}

/* A code of 3 bits that straddles the first two words loses its upper bits. */
static void lose_straddling(const struct hum_pack_args *a)
{
    words_of(a)[1] &= ~1u;
    words_of(a)[4] &= ~1u;
    words_of(a)[7] &= ~1u;
}
OP_AFTER(straddling_lost, pack, lose_straddling)

static void swap_words(const struct hum_pack_args *a)
{
    const uint32_t first = words_of(a)[0];

    words_of(a)[0] = words_of(a)[1];
    words_of(a)[1] = first;
}
OP_AFTER(big_end_first, pack, swap_words)

/* All 32 bits of a code are put in. */
static void leak_bits(const struct hum_pack_args *a)
{
    words_of(a)[0] |= pack_codes_of(a)[0] << 0;
}
OP_AFTER(upper_bits_leak, pack, leak_bits)

static void keep_bits(const struct hum_pack_args *a)
{
    pack_codes_of(a)[5] |= 0x100;
}
OP_AFTER(upper_bits_left, unpack, keep_bits)

static void spoil_one_code(const struct hum_pack_args *a)
{
    for (int64_t i = 0; i < a->codes.shape[0]; i++)
        if (pack_codes_of(a)[i * 32 + 31] == 0xff)
            pack_codes_of(a)[i * 32 + 31] = 0xfe;
}
OP_AFTER(one_code_wrong, unpack, spoil_one_code)

static void write_a_row_more(const struct hum_pack_args *a)
{
    words_of(a)[a->packed.bytes / 4] = 7;
}
OP_AFTER(row_more, pack, write_a_row_more)

/* clang-format off */
static const struct {
    /* NULL: right */
    enum hum_code (*pack)(void *, const struct hum_pack_args *, char *);
    enum hum_code (*unpack)(void *, const struct hum_pack_args *, char *);
    const char *text;
    const char *reason;
} pack_faults[] = {
    {straddling_lost, NULL, PACK "check=exact",       "outputs of pack differ"},
    {big_end_first,   NULL, PACK "check=exact",       "outputs of pack differ"},
    {upper_bits_leak, NULL, PACK "check=exact",       "outputs of pack differ"},
    {NULL, upper_bits_left, PACK "check=exact",       "outputs of unpack differ"},
    {NULL, one_code_wrong,  BYTES "check=exhaustive", "1 of"},
    {row_more,        NULL, PACK "check=guard",       "wrote behind packed"},
    {row_more,        NULL, PACK "check=deterministic", "wrote behind packed"},
};
/* clang-format on */

START_TEST(pack_faults_are_found)
{
    struct hum_ops ops = *hum_cpu_provider.ops;

    ops.pack = pack_faults[_i].pack ? pack_faults[_i].pack : ops.pack;
    ops.unpack = pack_faults[_i].unpack ? pack_faults[_i].unpack : ops.unpack;
    expect_ops(&ops, pack_faults[_i].text, VERDICT_FAIL, pack_faults[_i].reason);
}
END_TEST

START_TEST(half_a_provider_skips)
{
    struct hum_ops ops = *hum_cpu_provider.ops;

    ops.unpack = NULL;
    expect_ops(&ops, PACK "check=exact", VERDICT_SKIP, "has no unpack");
}
END_TEST

/* ---- process_mxfp4 --------------------------------------------------------------------------- */

static size_t process_mxfp4_bytes(const struct hum_process_mxfp4_args *a)
{
    return a->scale.bytes;
}

static uint8_t *scales_of(const struct hum_process_mxfp4_args *a)
{
    return tensor_data(&a->scale);
}

static uint8_t *nibbles_of(const struct hum_process_mxfp4_args *a)
{
    return tensor_data(&a->weight);
}

static void halve_factor(const struct hum_process_mxfp4_args *a)
{
    *(float *)tensor_data(&a->factor) *= 0.5f;
}
OP_AFTER(factor_halved, process_mxfp4, halve_factor)

static void leave_minus_zero(const struct hum_process_mxfp4_args *a)
{
    for (size_t i = 0; i < a->weight.bytes; i += 97)
        if (!(nibbles_of(a)[i] & 15))
            nibbles_of(a)[i] |= 8;
}
OP_AFTER(minus_zero_left, process_mxfp4, leave_minus_zero)

static void other_range(struct hum_process_mxfp4_args *a)
{
    a->range = 10;
}
OP_INSTEAD(narrow_range, process_mxfp4, other_range)

static void other_format(struct hum_process_mxfp4_args *a)
{
    if (a->a_dtype == HUM_INT8)
        a->a_dtype = HUM_E4M3;
    else if (a->a_dtype == HUM_E4M3)
        a->a_dtype = HUM_INT8;
}
OP_INSTEAD(range_of_other_format, process_mxfp4, other_format)

/* A row of two groups that are as far apart as can be. */
static void spoil_widest_row(const struct hum_process_mxfp4_args *a)
{
    const int64_t row = a->scale.shape[0] - 255; /* largest 254, smallest 0 */

    if (row > 0)
        nibbles_of(a)[row * a->weight.shape[1] * 4] ^= 1;
}
OP_AFTER(wrong_at_one_pair, process_mxfp4, spoil_widest_row)

/* Every row by the extremes of the first. */
static enum hum_code base_of_tensor(void *handle, const struct hum_process_mxfp4_args *args,
                                    char reason[HUM_REASON_BYTES])
{
    struct hum_process_mxfp4_args other;

    if (!args || !args->per_row)
        return hum_cpu_provider.ops->process_mxfp4(handle, args, reason);
    other = *args;
    other.per_row = false;
    other.factor.shape[0] = 1;
    other.factor.bytes = 4;
    return hum_cpu_provider.ops->process_mxfp4(handle, &other, reason);
}

static void spoil_zero_scale(const struct hum_process_mxfp4_args *a)
{
    uint8_t largest = 0;

    for (size_t i = 0; i < a->scale.bytes; i++)
        largest = scales_of(a)[i] > largest ? scales_of(a)[i] : largest;
    scales_of(a)[0] ^= largest == 0;
}
OP_AFTER(wrong_at_equal_scales, process_mxfp4, spoil_zero_scale)

static enum hum_code quiet_no(void *handle, const struct hum_process_mxfp4_args *args,
                              char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = hum_cpu_provider.ops->process_mxfp4(handle, args, reason);

    return rc == HUM_INVALID ? HUM_OK : rc;
}

/* clang-format off */
static const struct {
    enum hum_code (*process)(void *, const struct hum_process_mxfp4_args *, char *);
    const char *text;
    enum verdict verdict;
    const char *reason;
} mxfp4_faults[] = {
    {factor_halved,         MX "check=exact",      VERDICT_FAIL, "differ"},
    {minus_zero_left,       MX "check=exact",      VERDICT_FAIL, "differ"},
    {narrow_range,          MX "check=exact",      VERDICT_FAIL, "differ"},
    {range_of_other_format, MX_INT8 "check=exact", VERDICT_FAIL, "differ"},
    {base_of_tensor,        MX_ROWS "check=exact", VERDICT_FAIL, "differ"},
    {base_of_tensor,        MX_ROWS "check=guard", VERDICT_FAIL, "not written"},
    {wrong_at_equal_scales, MX "check=special",    VERDICT_FAIL, "differ"},
    {wrong_at_one_pair,     MX_ALL,                VERDICT_FAIL, "1 of"},
    {narrow_range,          MX_RUNS,               VERDICT_FAIL, "differ"},
    {quiet_no,              MX "check=contract",   VERDICT_FAIL, "it was accepted"},
    {quiet_no,              MX "check=alias",      VERDICT_FAIL, "that overlaps"},
    /* nothing is wrong, but nothing is shown either */
    {NULL, MX "range=254 check=exact", VERDICT_UNTRUSTED, "no group is requantized"},
    {NULL, "family=process_mxfp4 a_dtype=e4m3 m=16 k=32 per_row=true check=exact",
     VERDICT_UNTRUSTED, "expected scale of process_mxfp4 are alike"},
};
/* clang-format on */

START_TEST(mxfp4_faults_are_found)
{
    struct hum_ops ops = *hum_cpu_provider.ops;

    ops.process_mxfp4 = mxfp4_faults[_i].process ? mxfp4_faults[_i].process : ops.process_mxfp4;
    expect_ops(&ops, mxfp4_faults[_i].text, mxfp4_faults[_i].verdict, mxfp4_faults[_i].reason);
}
END_TEST

/* ---- the right provider ---------------------------------------------------------------------- */

static const char *const shapes[] = {DEQUANT,
                                     "family=dequant_weight b_dtype=float3e1m1 m=17 ",
                                     PACK,
                                     "family=pack bits=8 m=17 k=160 ",
                                     "family=pack bits=1 m=9 k=256 ",
                                     MX,
                                     MX_ROWS,
                                     MX_INT8,
                                     MX_INT8 "per_row=true range=20 m=5 "};
static const char *const words[] = {"exact", "special",       "guard",
                                    "alias", "deterministic", "contract"};
enum { SHAPES = sizeof shapes / sizeof shapes[0], WORDS = sizeof words / sizeof words[0] };

START_TEST(right_ones_pass)
{
    char text[400];

    (void)snprintf(text, sizeof text, "%scheck=%s", shapes[_i / WORDS], words[_i % WORDS]);
    expect_verdict(&hum_cpu_provider, text, VERDICT_PASS, "");
}
END_TEST

static const char *const exhaustive[] = {DEQUANT "check=exhaustive",
                                         "family=dequant_weight b_dtype=float8e7m0 m=256 "
                                         "check=exhaustive",
                                         BYTES "check=exhaustive",
                                         "family=pack bits=5 m=32 k=64 check=exhaustive",
                                         MX_ALL,
                                         MX_RUNS};

START_TEST(all_there_is_passes)
{
    expect_verdict(&hum_cpu_provider, exhaustive[_i], VERDICT_PASS, "");
}
END_TEST

#define COUNT(a) (int)(sizeof(a) / sizeof(a)[0])

int main(void)
{
    Suite *s = suite_create("op_codes");
    TCase *tc = tcase_create("all");
    SRunner *sr = srunner_create(s);
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, dequant_faults_are_found, 0, COUNT(dequant_faults));
    tcase_add_loop_test(tc, pack_faults_are_found, 0, COUNT(pack_faults));
    tcase_add_test(tc, half_a_provider_skips);
    tcase_add_loop_test(tc, mxfp4_faults_are_found, 0, COUNT(mxfp4_faults));
    tcase_add_loop_test(tc, right_ones_pass, 0, SHAPES * WORDS);
    tcase_add_loop_test(tc, all_there_is_passes, 0, COUNT(exhaustive));
    suite_add_tcase(s, tc);
    srunner_run_all(sr, CK_ENV);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
