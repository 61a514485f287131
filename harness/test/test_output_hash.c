/* The column output_hash: its formula, that every bit that is required counts and no other one
 * does, and that every family and check has it, the same each time. */
#include "harness/kernel/op_trial.h"
#include "harness/kernel/output_hash.h"
#include "harness/test/case_run.h"
#include "kernels/cpu/ops.h"

#include <stdlib.h>

/* ---- the formula ----------------------------------------------------------------------------- */

/* By a program in another language with integers of any size. */
static const struct {
    const char *bytes;
    size_t count;
    uint64_t hash;
} known[] = {
    {"", 0, OUTPUT_HASH_NONE},
    {"", 1, UINT64_C(0xf8bb92c91b3f5cc0)},
    {"a", 1, UINT64_C(0x217350406cfa84d4)},
    {"abcdefgh", 8, UINT64_C(0xcd0cf5a85793bf3c)},
    {"abcdefghi", 9, UINT64_C(0x4fa0bf4876fd62b1)},
};

START_TEST(as_documented)
{
    char text[OUTPUT_HASH_TEXT], want[OUTPUT_HASH_TEXT] = "";

    ck_assert_uint_eq(output_hash_bytes(OUTPUT_HASH_NONE, known[_i].bytes, known[_i].count),
                      known[_i].hash);
    output_hash_text(known[_i].hash, text);
    if (known[_i].count)
        (void)snprintf(want, sizeof want, "%016llx", (unsigned long long)known[_i].hash);
    ck_assert_str_eq(text, want);
}
END_TEST

/* Each bit of 40 bytes, at every length. */
START_TEST(every_bit_counts)
{
    uint8_t bytes[40];

    for (size_t count = 1; count <= sizeof bytes; count++) {
        uint64_t before;

        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (uint8_t)(37 * i + count);
        before = output_hash_bytes(OUTPUT_HASH_NONE, bytes, count);
        for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
            bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
            ck_assert_int_eq(output_hash_bytes(OUTPUT_HASH_NONE, bytes, count) != before,
                             bit < 8 * count);
            bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
    }
}
END_TEST

/* ---- a call ---------------------------------------------------------------------------------- */

enum { ELEMENTS = 24 };

/* An input, an output of which some elements are open, an absent one, and one that is required. */
struct call {
    struct op_call call;
    uint8_t in[ELEMENTS], first[ELEMENTS], second[ELEMENTS];
    uint32_t want[2 * ELEMENTS]; /* of 4 bits */
    struct op_out out;
};

static void make_call(struct call *c, int bits)
{
    int64_t args[64] = {0};
    struct op_part *part;

    memset(c, 0, sizeof *c);
    op_call_init(&c->call, "call", args, sizeof args);
    (void)op_call_add(&c->call, "in", 0, OP_IN, op_tensor_1(HUM_UINT(8), ELEMENTS, c->in), 8);
    part =
        op_call_add(&c->call, "first", 64, OP_OUT, op_tensor_1(HUM_UINT(8), ELEMENTS, NULL), bits);
    part->want = c->want;
    (void)op_call_add(&c->call, "none", 128, OP_OUT, op_absent(), 8);
    (void)op_call_add(&c->call, "second", 192, OP_INOUT,
                      op_tensor_1(HUM_UINT(8), ELEMENTS, c->second), 8);
    c->out.got[0] = c->in;
    c->out.got[1] = c->first;
    c->out.got[3] = c->second;
}

static uint64_t hash_of(const struct call *c)
{
    struct op_trial t = {.hash = OUTPUT_HASH_NONE};

    op_hash(&t, &c->call, &c->out);
    return t.hash;
}

/* Without open elements: the bytes of one output after those of the other. */
START_TEST(outputs_in_order)
{
    uint8_t both[2 * ELEMENTS];
    struct call c;

    make_call(&c, 8);
    for (int i = 0; i < ELEMENTS; i++) {
        both[i] = c.first[i] = (uint8_t)(3 * i + 1);
        both[ELEMENTS + i] = c.second[i] = (uint8_t)(200 - i);
    }
    ck_assert_uint_eq(hash_of(&c), output_hash_bytes(OUTPUT_HASH_NONE, both, sizeof both));
    c.in[5] ^= 1;
    ck_assert_uint_eq(hash_of(&c), output_hash_bytes(OUTPUT_HASH_NONE, both, sizeof both));
}
END_TEST

static const int widths[] = {4, 8, 16, 32};

START_TEST(open_elements_do_not_count)
{
    uint8_t both[2 * ELEMENTS];
    const int bits = widths[_i], count = ELEMENTS * 8 / bits;
    struct call c;
    uint64_t before;

    make_call(&c, bits);
    for (int i = 1; i < count; i += 3)
        c.want[i] = i % 2 ? OP_KEPT : REF_CODE_ANY;
    before = hash_of(&c);
    for (int bit = 0; bit < 8 * ELEMENTS; bit++) {
        c.first[bit / 8] ^= (uint8_t)(1u << bit % 8);
        ck_assert_msg((hash_of(&c) == before) == (bit / bits % 3 == 1), "bit %d", bit);
        c.first[bit / 8] ^= (uint8_t)(1u << bit % 8);
        c.second[bit / 8] ^= (uint8_t)(1u << bit % 8);
        ck_assert_uint_ne(hash_of(&c), before);
        c.second[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    memset(both, 0, sizeof both);
    for (int bit = 0; bit < 8 * ELEMENTS; bit++) {
        c.first[bit / 8] |= (uint8_t)(1u << bit % 8);
        if (bit / bits % 3 != 1)
            both[bit / 8] |= (uint8_t)(1u << bit % 8);
    }
    ck_assert_uint_eq(hash_of(&c), output_hash_bytes(OUTPUT_HASH_NONE, both, sizeof both));
}
END_TEST

/* ---- cases ----------------------------------------------------------------------------------- */

#define EXPERTS                                                                            \
    "family=experts num_experts=4 n=128 k=64 m=24 a_dtype=e4m3 weight_scale_type=channel " \
    "activation=swiglu activation_form=split "

/* The checks of a row have the same data, so the same outputs. */
static const struct {
    const char *text;
    const char *checks[4];
} cases[] = {
    {"fill=E2", {"exact", "alias", "guard", NULL}},
    {"fill=R", {"bound", "model", "deterministic", NULL}},
    {"fill=E2 gemm_type=indexed num_experts=4 top_k=2 routing=missing",
     {"exact", "guard", "alias", NULL}},
    {"fill=E2 gemm_type=grouped_masked num_experts=4 max_tokens=8 m=32",
     {"exact", "alias", NULL, NULL}},
    {"family=quant_weight m=16 k=256", {"exact", "alias", "guard", "deterministic"}},
    {"family=dequant_weight b_dtype=e4m3 m=300", {"exact", "guard", NULL, NULL}},
    {"family=pack bits=3 m=16 k=96", {"exact", "contract", NULL, NULL}},
    {"family=process_mxfp4 a_dtype=e4m3 m=16 k=1024", {"exact", "alias", NULL, NULL}},
    {"family=process_input m=17 k=96 input_dtype=f32", {"exact", "guard", "alias", NULL}},
    {"family=hadamard m=9 k=512 input_dtype=f32 hadamard_block_size=256",
     {"exact", "deterministic", NULL, NULL}},
    {"family=moe_sum m=24 k=44 top_k=4 input_dtype=f16", {"exact", "guard", NULL, NULL}},
    {EXPERTS "gemm_type=indexed top_k=2", {"exact", "alias", "guard", "invariant"}},
    {EXPERTS "gemm_type=grouped_masked", {"exact", "deterministic", NULL, NULL}},
};

START_TEST(the_same_each_time)
{
    struct record first, r;
    char text[400];

    for (int i = 0; i < 4 && cases[_i].checks[i]; i++) {
        (void)snprintf(text, sizeof text, "%s check=%s", cases[_i].text, cases[_i].checks[i]);
        r = run_case_text(&hum_cpu_provider, text);
        ck_assert_msg(r.verdict == VERDICT_PASS, "%s: %s", text, r.reason);
        ck_assert_uint_eq(strlen(r.output_hash), 16);
        if (!i)
            first = r;
        ck_assert_msg(!strcmp(r.output_hash, first.output_hash), "%s", text);
    }
}
END_TEST

/* ---- other bits ------------------------------------------------------------------------------ */

static enum hum_code last_bit(void *handle, const struct hum_gemm_args *args,
                              char reason[HUM_REASON_BYTES])
{
    const enum hum_code rc = hum_cpu_provider.forward(handle, args, reason);

    if (!rc && args->outputs.bytes)
        outputs_of(args)[rows_of(args) * columns_of(args) - 1] ^= 1;
    return rc;
}

static enum hum_code sum_bit(void *handle, const struct hum_moe_fused_mul_sum_args *args,
                             char reason[HUM_REASON_BYTES])
{
    const enum hum_code rc = hum_cpu_provider.ops->moe_fused_mul_sum(handle, args, reason);

    if (!rc && args->outputs.bytes)
        *(uint8_t *)args->outputs.data ^= 1;
    return rc;
}

static enum hum_code refuses(void *handle, const struct hum_gemm_args *args,
                             char reason[HUM_REASON_BYTES])
{
    (void)handle;
    (void)args;
    (void)snprintf(reason, HUM_REASON_BYTES, "it does not want to");
    return HUM_INVALID;
}

START_TEST(one_bit_is_seen)
{
    const struct hum_provider gemm = provider_with(last_bit);
    struct hum_ops ops = *hum_cpu_provider.ops;
    struct hum_provider sums = hum_cpu_provider;
    const struct {
        const struct hum_provider *provider;
        const char *text;
    } rows[] = {{&gemm, "check=exact"},
                {&gemm, "check=deterministic"},
                {&gemm, EXPERTS "gemm_type=indexed top_k=2 check=deterministic"},
                {&sums, EXPERTS "gemm_type=indexed top_k=2 check=alias"},
                {&sums, "family=moe_sum m=24 k=44 top_k=4 input_dtype=f16 check=exact"}};

    ops.moe_fused_mul_sum = sum_bit;
    sums.ops = &ops;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct record right = run_case_text(&hum_cpu_provider, rows[i].text);
        struct record other = run_case_text(rows[i].provider, rows[i].text);

        ck_assert_uint_eq(strlen(other.output_hash), 16);
        ck_assert_msg(strcmp(right.output_hash, other.output_hash) != 0, "%s", rows[i].text);
    }
}
END_TEST

START_TEST(no_launch_no_hash)
{
    const struct hum_provider p = provider_with(refuses);

    ck_assert_str_eq(run_case_text(&p, "check=exact").output_hash, "");
    ck_assert_str_eq(
        run_case_text(&hum_cpu_provider, EXPERTS "gemm_type=indexed check=contract").output_hash,
        "");
}
END_TEST

static Suite *output_hash_suite(void)
{
    Suite *s = suite_create("output_hash");
    TCase *tc = tcase_create("all");

    tcase_set_timeout(tc, 30);
    tcase_add_loop_test(tc, as_documented, 0, sizeof known / sizeof known[0]);
    tcase_add_test(tc, every_bit_counts);
    tcase_add_test(tc, outputs_in_order);
    tcase_add_loop_test(tc, open_elements_do_not_count, 0, sizeof widths / sizeof widths[0]);
    tcase_add_loop_test(tc, the_same_each_time, 0, sizeof cases / sizeof cases[0]);
    tcase_add_test(tc, one_bit_is_seen);
    tcase_add_test(tc, no_launch_no_hash);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    SRunner *r = srunner_create(output_hash_suite());
    int failed;

    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
