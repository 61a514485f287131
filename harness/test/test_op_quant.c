/* quant_weight: the right provider passes each check; a quantizer that is wrong in one way gets
 * `fail`; data that could not show a fault get `untrusted`. */
#include "harness/kernel/quant_data.h"
#include "harness/test/op_faults.h"

#include <math.h>
#include <stdlib.h>

#define SMALL  "family=quant_weight m=16 k=256 "
#define INT4   SMALL "b_dtype=int4 weight_scale_group_size=32 "
#define UINT4Z SMALL "b_dtype=uint4 weight_scale_group_size=32 zero_point=int "
#define FP4    SMALL "b_dtype=e2m1 weight_scale_group_size=32 "
#define FP8    SMALL "b_dtype=e4m3 "
#define PLAIN  SMALL "has_scale=false "

static size_t quant_weight_bytes(const struct hum_quant_weight_args *a)
{
    return a->codes.bytes;
}

static uint32_t *codes_of(const struct hum_quant_weight_args *a)
{
    return tensor_data(&a->codes);
}

static float *scales_of(const struct hum_quant_weight_args *a)
{
    return tensor_data(&a->scale);
}

static int64_t columns(const struct hum_quant_weight_args *a)
{
    return a->codes.shape[1];
}

static int64_t count_of(const struct hum_quant_weight_args *a)
{
    return a->codes.shape[0] * a->codes.shape[1];
}

static float input_at(const struct hum_quant_weight_args *a, int64_t i)
{
    const struct dtype *t = dtype_find_id(a->inputs.dtype, false);
    uint32_t code = 0;

    memcpy(&code, (const char *)tensor_data(&a->inputs) + i * (t->bits / 8), t->bits / 8);
    return (float)dtype_decode(t, code);
}

/* ---- faults ---------------------------------------------------------------------------------- */

static void swap_scales(const struct hum_quant_weight_args *a)
{
    const float first = scales_of(a)[0];

    scales_of(a)[0] = scales_of(a)[1];
    scales_of(a)[1] = first;
}
OP_AFTER(scale_of_other_group, quant_weight, swap_scales)

/* Integers without zero point, f32 scales. */
static void round_away(const struct hum_quant_weight_args *a)
{
    const float half = (float)(1 << (hum_dtype_bits(a->target_dtype) - 1));
    const int64_t group = a->group_size;

    for (int64_t i = 0; i < count_of(a); i++) {
        const float y = roundf(input_at(a, i) * (1.0f / scales_of(a)[i / group]));

        codes_of(a)[i] = (uint32_t)(fminf(fmaxf(y, -half), half - 1.0f) + half);
    }
}
OP_AFTER(ties_away, quant_weight, round_away)

/* e2m1: the code above, where a quotient lies exactly between two. */
static void round_up_floats(const struct hum_quant_weight_args *a)
{
    static const float middle[7] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};

    for (int64_t i = 0; i < count_of(a); i++)
        for (uint32_t code = 0; code < 7; code++)
            if (fabsf(input_at(a, i) * (1.0f / scales_of(a)[i / a->group_size])) == middle[code])
                codes_of(a)[i] += 1;
}
OP_AFTER(float_ties_up, quant_weight, round_up_floats)

static void move_zero(const struct hum_quant_weight_args *a)
{
    float *zero = tensor_data(&a->zero_point);

    zero[3] += zero[3] > 1.0f ? -1.0f : 1.0f;
}
OP_AFTER(zero_off_by_one, quant_weight, move_zero)

static void lose_sign_of_zero(const struct hum_quant_weight_args *a)
{
    const uint32_t minus = 1u << (hum_dtype_bits(a->target_dtype) - 1);

    for (int64_t i = 0; i < count_of(a); i++)
        if (codes_of(a)[i] == minus)
            codes_of(a)[i] = 0;
}
OP_AFTER(no_minus_zero, quant_weight, lose_sign_of_zero)

static void swap_rows(const struct hum_quant_weight_args *a)
{
    for (int64_t i = 0; i < columns(a); i++) {
        const uint32_t code = codes_of(a)[i];

        codes_of(a)[i] = codes_of(a)[columns(a) + i];
        codes_of(a)[columns(a) + i] = code;
    }
}
OP_AFTER(rows_swapped, quant_weight, swap_rows)

static void floor_exponents(struct hum_quant_weight_args *a)
{
    a->rule = HUM_QUANT_RULE_2026_05;
}
OP_INSTEAD(e8m0_floored, quant_weight, floor_exponents)
OP_INSTEAD(wraps, quant_weight, floor_exponents)

static void forbid_negative(struct hum_quant_weight_args *a)
{
    a->allow_negative_scale = false;
}
OP_INSTEAD(never_negative, quant_weight, forbid_negative)

static void write_behind_codes(const struct hum_quant_weight_args *a)
{
    codes_of(a)[count_of(a)] = 0;
}
OP_AFTER(writes_behind, quant_weight, write_behind_codes)

static void write_before_scale(const struct hum_quant_weight_args *a)
{
    scales_of(a)[-1] = 0.0f;
}
OP_AFTER(writes_before, quant_weight, write_before_scale)

static void change_inputs(const struct hum_quant_weight_args *a)
{
    *(uint16_t *)tensor_data(&a->inputs) ^= 1;
}
OP_AFTER(changes_input, quant_weight, change_inputs)

static void flip_sometimes(const struct hum_quant_weight_args *a)
{
    static int calls;

    codes_of(a)[7] ^= calls++ % 4 == 3;
}
OP_AFTER(not_deterministic, quant_weight, flip_sometimes)

static void flip_after_others(const struct hum_quant_weight_args *a)
{
    static float last;
    const float first = input_at(a, 0) + input_at(a, 1);

    codes_of(a)[7] ^= last != 0.0f && last != first;
    last = first;
}
OP_AFTER(remembers, quant_weight, flip_after_others)

static void read_behind_inputs(const struct hum_quant_weight_args *a)
{
    codes_of(a)[2] ^= ((const uint8_t *)tensor_data(&a->inputs))[a->inputs.bytes] & 1;
}
OP_AFTER(reads_behind, quant_weight, read_behind_inputs)

static void spoil_last_input(const struct hum_quant_weight_args *a) /* f16 code 0xbeef */
{
    for (int64_t i = 0; i < count_of(a); i++)
        codes_of(a)[i] ^= ((const uint16_t *)tensor_data(&a->inputs))[i] == 0xbeef;
}
OP_AFTER(wrong_at_one_input, quant_weight, spoil_last_input)

static void spoil_beside_nan(const struct hum_quant_weight_args *a)
{
    for (int64_t i = 1; i < count_of(a); i++)
        if (isnan(input_at(a, i)))
            codes_of(a)[i - 1] ^= 1;
}
OP_AFTER(disturbed_by_nan, quant_weight, spoil_beside_nan)

static enum hum_code stale_row(void *handle, const struct hum_quant_weight_args *args,
                               char reason[HUM_REASON_BYTES])
{
    uint32_t last = args && args->codes.data ? codes_of(args)[count_of(args) - 1] : 0;
    enum hum_code rc = hum_cpu_provider.ops->quant_weight(handle, args, reason);

    if (rc == HUM_OK && args->codes.bytes)
        codes_of(args)[count_of(args) - 1] = last;
    return rc;
}

static enum hum_code accepts(void *handle, const struct hum_quant_weight_args *args,
                             char reason[HUM_REASON_BYTES])
{
    (void)hum_cpu_provider.ops->quant_weight(handle, args, reason);
    reason[0] = '\0';
    return HUM_OK;
}

static enum hum_code silent(void *handle, const struct hum_quant_weight_args *args,
                            char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = hum_cpu_provider.ops->quant_weight(handle, args, reason);

    reason[0] = '\0';
    return rc;
}

static enum hum_code refuses_empty(void *handle, const struct hum_quant_weight_args *args,
                                   char reason[HUM_REASON_BYTES])
{
    if (args && args->inputs.rank == 2 && args->inputs.shape[0] == 0) {
        (void)snprintf(reason, HUM_REASON_BYTES, "no rows");
        return HUM_INVALID;
    }
    return hum_cpu_provider.ops->quant_weight(handle, args, reason);
}

static enum hum_code unsupported(void *handle, const struct hum_quant_weight_args *args,
                                 char reason[HUM_REASON_BYTES])
{
    (void)handle;
    (void)args;
    (void)snprintf(reason, HUM_REASON_BYTES, "this device has no quantizer");
    return HUM_UNSUPPORTED;
}

static enum hum_code right(void *handle, const struct hum_quant_weight_args *args,
                           char reason[HUM_REASON_BYTES])
{
    return hum_cpu_provider.ops->quant_weight(handle, args, reason);
}

/* clang-format off */
static const struct {
    enum hum_code (*quant)(void *, const struct hum_quant_weight_args *, char *);
    const char *text;
    enum verdict verdict;
    const char *reason;
} faults[] = {
    {scale_of_other_group, INT4 "check=exact",              VERDICT_FAIL, "differ"},
    {ties_away,            INT4 "check=exact",              VERDICT_FAIL, "differ"},
    {float_ties_up,        FP4 "check=exact",               VERDICT_FAIL, "differ"},
    {zero_off_by_one,      UINT4Z "check=exact",            VERDICT_FAIL, "differ"},
    {no_minus_zero,        FP8 "check=exact",               VERDICT_FAIL, "differ"},
    {rows_swapped,         FP8 "check=exact",               VERDICT_FAIL, "differ"},
    {e8m0_floored,         FP8 "use_e8m0_scale=true check=exact", VERDICT_FAIL, "differ"},
    {wraps,                PLAIN "b_dtype=int4 check=exact", VERDICT_FAIL, "differ"},
    {wraps,                PLAIN "b_dtype=e4m3 check=exact", VERDICT_FAIL, "differ"},
    {never_negative,       INT4 "check=exact",              VERDICT_FAIL, "differ"},
    {stale_row,            INT4 "check=exact",              VERDICT_FAIL, "differ"},
    {stale_row,            INT4 "check=guard",              VERDICT_FAIL, "not written"},
    {writes_behind,        INT4 "check=exact",              VERDICT_FAIL, "wrote behind codes"},
    {writes_before,        INT4 "check=guard",              VERDICT_FAIL, "wrote behind codes"},
    {changes_input,        INT4 "check=exact",              VERDICT_FAIL, "changed its input"},
    {reads_behind,         INT4 "check=guard",              VERDICT_FAIL, "what lay there before"},
    {not_deterministic,    INT4 "check=deterministic",      VERDICT_FAIL, "from one launch"},
    {remembers,            INT4 "check=deterministic",      VERDICT_FAIL, "from one launch"},
    {writes_behind,        INT4 "check=alias",              VERDICT_FAIL, ""},
    {accepts,              INT4 "check=alias",              VERDICT_FAIL, "that overlaps"},
    {accepts,              INT4 "check=contract",           VERDICT_FAIL, "it was accepted"},
    {silent,               INT4 "check=contract",           VERDICT_FAIL, "no reason was given"},
    {disturbed_by_nan,     INT4 "check=special",            VERDICT_FAIL, "differ"},
    {refuses_empty,        INT4 "check=special",            VERDICT_FAIL, "no rows"},
    {wrong_at_one_input,   "family=quant_weight m=256 k=256 b_dtype=int8 input_dtype=f16 "
                           "has_scale=false check=exhaustive", VERDICT_FAIL, "1 of"},
    {right, "family=quant_weight m=1 k=8 b_dtype=int4 check=exact",
     VERDICT_UNTRUSTED, "only 0 quotients"},
    {right, "family=quant_weight m=1 k=64 weight_scale_group_size=8 b_dtype=float8e7m0 check=exact",
     VERDICT_UNTRUSTED, "nothing is required of 11 %"},
    {unsupported,          INT4 "check=exact",              VERDICT_SKIP, "no quantizer"},
    {NULL,                 INT4 "check=exact",              VERDICT_SKIP, "has no quant_weight"},
};
/* clang-format on */
enum { FAULTS = sizeof faults / sizeof faults[0] };

START_TEST(faults_are_found)
{
    struct hum_ops ops = *hum_cpu_provider.ops;

    ops.quant_weight = faults[_i].quant;
    expect_ops(&ops, faults[_i].text, faults[_i].verdict, faults[_i].reason);
}
END_TEST

START_TEST(a_provider_without_operations_skips)
{
    expect_ops(NULL, INT4 "check=exact", VERDICT_SKIP, "has no quant_weight");
}
END_TEST

/* ---- the right provider ---------------------------------------------------------------------- */

static const char *const shapes[] = {
    INT4,
    UINT4Z,
    FP4,
    FP8,
    INT4 "use_e8m0_scale=true quant_rule=2026_05 ",
    UINT4Z "zero_point=float input_dtype=f32 ",
    SMALL "b_dtype=int8 input_dtype=f16 weight_scale_group_size=8 quant_rule=2026_05 ",
    SMALL "b_dtype=uint1 input_dtype=f32 allow_negative_scale=false weight_scale_group_size=64 ",
    SMALL "b_dtype=float8e7m0 input_dtype=bf16 weight_scale_group_size=64 ",
    PLAIN "b_dtype=int4 quant_rule=2026_05 ",
    PLAIN "b_dtype=float6e3m2 input_dtype=f32 "};
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

/* ---- data ------------------------------------------------------------------------------------ */

static const char *const inputs[] = {"f16", "bf16", "f32"};
static const char *const targets[] = {"uint4", "int8", "e2m1", "e4m3", "e5m2", "float6e3m2"};
enum { TARGETS = sizeof targets / sizeof targets[0], COLS = 256, ROWS = 16, GROUP = 32 };

static struct ref_quant quant_of(const char *target, const float *values)
{
    return (struct ref_quant){.target = dtype_find_weight(target),
                              .rows = ROWS,
                              .cols = COLS,
                              .group = GROUP,
                              .has_scale = true,
                              .allow_negative_scale = true,
                              .rule = REF_QUANT_RULE_2026_08,
                              .inputs = values};
}

/* Groups without any value, with subnormals, one-sided, with an extreme at either end. */
START_TEST(groups_are_of_all_kinds)
{
    static float values[ROWS * COLS];
    static uint32_t codes[ROWS * COLS];
    struct ref_quant q = quant_of(targets[_i % TARGETS], values);
    struct quant_data d = {.input = dtype_find(inputs[_i / TARGETS]), .seed = 11};
    int zero = 0, one_sided = 0, first = 0, last = 0;

    quant_data_fill(&d, &q, values, codes);
    for (int64_t g = 0; g < ROWS * COLS / GROUP; g++) {
        const float *v = values + g * GROUP;
        int below = 0, above = 0;
        float top = 0.0f;

        for (int i = 0; i < GROUP; i++) {
            ck_assert(isfinite(v[i]));
            below += v[i] < 0.0f;
            above += v[i] > 0.0f;
            top = fmaxf(top, fabsf(v[i]));
        }
        zero += top == 0.0f;
        one_sided += (below == 0) != (above == 0);
        first += top > 0.0f && fabsf(v[0]) == top;
        last += top > 0.0f && fabsf(v[GROUP - 1]) == top;
    }
    ck_assert_int_gt(zero, 0);
    ck_assert_int_gt(one_sided, 2);
    ck_assert_int_gt(first, 4);
    ck_assert_int_gt(last, 4);
}
END_TEST

/* The count of ties is not blind: it falls when the values are shifted a little. */
START_TEST(ties_are_counted)
{
    static float values[ROWS * COLS];
    static uint32_t codes[ROWS * COLS], got[ROWS * COLS], scale[ROWS * COLS / GROUP];
    struct ref_quant q = quant_of(targets[_i % TARGETS], values);
    struct quant_data d = {.input = dtype_find(inputs[_i / TARGETS]), .seed = 12};
    int64_t ties;

    quant_data_fill(&d, &q, values, codes);
    ref_quant_weight(&q, got, scale, NULL);
    ties = quant_data_ties(&q, scale);
    if (quant_data_can_tie(&q, d.input))
        ck_assert_int_ge(ties, 16);
    for (int i = 0; i < ROWS * COLS; i++)
        values[i] *= 1.01f;
    ck_assert_int_lt(quant_data_ties(&q, scale), ties / 8 + 2);
}
END_TEST

/* Any value can be made alone: a smaller tensor is a prefix; another seed has other values. */
START_TEST(values_are_a_function_of_their_place)
{
    static float values[ROWS * COLS], fewer[ROWS * COLS];
    static uint32_t codes[ROWS * COLS];
    struct ref_quant q = quant_of("uint4", values);
    struct quant_data d = {.input = dtype_find("f32"), .seed = 13};

    quant_data_fill(&d, &q, values, codes);
    q.rows = 3;
    quant_data_fill(&d, &q, fewer, codes);
    ck_assert_int_eq(memcmp(values, fewer, 3 * COLS * sizeof *values), 0);
    d.seed = 14;
    quant_data_fill(&d, &q, fewer, codes);
    ck_assert_int_ne(memcmp(values, fewer, 3 * COLS * sizeof *values), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("op_quant");
    TCase *tc = tcase_create("all");
    SRunner *sr = srunner_create(s);
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, faults_are_found, 0, FAULTS);
    tcase_add_test(tc, a_provider_without_operations_skips);
    tcase_add_loop_test(tc, right_ones_pass, 0, SHAPES * WORDS);
    tcase_add_loop_test(tc, groups_are_of_all_kinds, 0, 3 * TARGETS);
    tcase_add_loop_test(tc, ties_are_counted, 0, 3 * TARGETS);
    tcase_add_test(tc, values_are_a_function_of_their_place);
    suite_add_tcase(s, tc);
    srunner_run_all(sr, CK_ENV);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
