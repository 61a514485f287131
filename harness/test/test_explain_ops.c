/* Hypotheses about operations: the twisted operation without a twist is the right one, every
 * hypothesis can be told from it and from all others, mistakes that this file makes are named, and
 * others are not. */
#include "harness/explain/ops_families.h"
#include "harness/kernel/words.h"
#include "harness/test/op_faults.h"

#include <math.h>

/* ---- a case explained ------------------------------------------------------------------------ */

struct told {
    char cause[1024]; /* the line about the cause */
};

static void hear(void *context, enum explain_topic topic, const char *text)
{
    struct told *told = context;

    if (topic == EXPLAIN_CAUSE)
        (void)snprintf(told->cause, sizeof told->cause, "%s", text);
}

static void open_explain(struct explain *x, const struct hum_provider *provider, struct told *told)
{
    struct errs errs = {0};

    *told = (struct told){""};
    *x = (struct explain){.sink = {hear, told}};
    ck_assert_msg(explain_open(x, provider, 1, (size_t)1 << 30, &errs), "%s",
                  errs.count ? errs.items[0].text : "?");
    errs_free(&errs);
}

/* What is said about the cause of a case of the cpu provider with these operations. */
static void explain_ops(const struct hum_ops *ops, const char *text, struct told *told)
{
    static const struct suite suite = {.path = "x.yaml", .name = "x"};
    const struct explain_how how = {.shrink = false, .seconds = 30.0};
    struct plan_case c = {.suite = &suite, .id = "x/y"};
    struct plan_problem problem = {.first = 0, .count = 1};
    struct plan plan = {.cases = &c, .count = 1, .problems = &problem, .problem_count = 1};
    struct hum_provider p = hum_cpu_provider;
    struct explain x;

    p.ops = ops;
    open_explain(&x, &p, told);
    make_case(text, c.v);
    problem.m = c.v[AX_M];
    explain_case(&x, &plan, 0, &how);
    explain_close(&x);
}

/* ---- cases ----------------------------------------------------------------------------------- */

#define QUANT  "family=quant_weight m=16 k=256 "
#define INPUT  "family=process_input m=17 k=96 input_dtype=f32 check=exact "
#define PLAIN  "input_quant_mode=disabled "
#define GROUPS "input_quant_mode=dynamic_group quant_group_size=32 "
#define SUM    "family=moe_sum k=44 m=24 "

/* By family; between them every hypothesis has something to be about. */
static const char *const cases[] = {
    QUANT "b_dtype=int4 weight_scale_group_size=32 check=exact",
    QUANT "b_dtype=int4 weight_scale_group_size=32 check=special",
    QUANT "b_dtype=int4 weight_scale_group_size=32 allow_negative_scale=true check=exact",
    QUANT "b_dtype=int4 has_scale=false check=special",
    QUANT "b_dtype=int4 has_scale=false quant_rule=2026_05 check=special",
    QUANT "b_dtype=uint4 weight_scale_group_size=32 zero_point=int check=exact",
    QUANT "b_dtype=uint4 weight_scale_group_size=32 zero_point=int use_e8m0_scale=true check=exact",
    QUANT "b_dtype=uint8 weight_scale_group_size=32 zero_point=float check=exact",
    QUANT "b_dtype=uint4 weight_scale_group_size=32 zero_point=int check=special",
    QUANT "b_dtype=uint2 weight_scale_group_size=8 zero_point=int check=exact",
    QUANT "b_dtype=e4m3 weight_scale_group_size=32 use_e8m0_scale=true check=exact",
    QUANT "b_dtype=e2m1 weight_scale_group_size=32 use_e8m0_scale=true quant_rule=2026_05 "
          "check=exact",
    QUANT "b_dtype=e2m1 weight_scale_group_size=32 check=exact",
    QUANT "b_dtype=e4m3 check=special",
    "family=dequant_weight b_dtype=e4m3 m=300 check=exact",
    "family=pack bits=3 m=8 k=96 check=exact",
    "family=pack bits=4 m=8 k=96 check=exact",
    "family=process_mxfp4 a_dtype=int8 m=16 k=1024 per_row=true check=exact",
    "family=process_mxfp4 a_dtype=e4m3 m=16 k=1024 check=exact",
    "family=process_mxfp4 a_dtype=e4m3 m=16 k=64 check=special",
    "family=process_mxfp4 a_dtype=e4m3 m=64 k=64 per_row=true check=exact",
    INPUT "input_quant_mode=dynamic_token quant_dtype=int8",
    INPUT "input_quant_mode=dynamic_token quant_dtype=e4m3",
    INPUT "input_quant_mode=dynamic_token quant_dtype=e3m4",
    INPUT "input_quant_mode=dynamic_token quant_dtype=int4",
    INPUT "input_quant_mode=static_tensor quant_dtype=int8",
    INPUT "input_quant_mode=static_tensor quant_dtype=e4m3",
    INPUT GROUPS "quant_dtype=int8 group_scale_dtype=f32",
    INPUT GROUPS "quant_dtype=e4m3 group_scale_dtype=e8m0",
    INPUT GROUPS "quant_dtype=e4m3 group_scale_dtype=e8m0 scale_layout=mx_packed",
    INPUT "input_quant_mode=dynamic_group quant_group_size=40 quant_dtype=e4m3 "
          "group_scale_dtype=e4m3",
    INPUT "input_quant_mode=dynamic_group_token quant_group_size=32 quant_dtype=e2m1 "
          "group_scale_dtype=e4m3",
    "family=process_input m=17 k=96 input_dtype=f16 input_quant_mode=dynamic_token "
    "quant_dtype=e4m3 check=special",
    INPUT "input_quant_mode=disabled layout=permute",
    INPUT "input_quant_mode=dynamic_token quant_dtype=int8 layout=scatter",
    INPUT "input_quant_mode=dynamic_token quant_dtype=int8 layout=grouped num_experts=5 "
          "routing=uniform",
    INPUT "input_quant_mode=dynamic_token quant_dtype=int8 layout=grouped_padded num_experts=5 "
          "max_tokens=16 routing=empty zero_invalid=true",
    INPUT PLAIN "activation=swiglu activation_form=split swiglu=gpt_oss check=ulp",
    INPUT PLAIN "activation=gelu activation_form=interleaved check=ulp",
    INPUT PLAIN "activation=gelu_tanh check=ulp",
    INPUT PLAIN "activation=relu2",
    INPUT PLAIN "hadamard_block_size=32",
    "family=process_input m=33 k=96 input_dtype=f16 input_quant_mode=dynamic_group_token "
    "quant_group_size=128 quant_dtype=e2m1 group_scale_dtype=e4m3 scale_layout=m_major check=exact",
    "family=process_input m=41 k=512 input_dtype=f32 input_quant_mode=dynamic_group_token "
    "quant_group_size=32 quant_dtype=e2m1 group_scale_dtype=e4m3 scale_layout=mx_packed "
    "check=exact",
    "family=process_input m=5 k=256 input_dtype=f32 check=exact hadamard_block_size=128",
    "family=hadamard m=9 k=512 input_dtype=f32 hadamard_block_size=256 check=exact",
    "family=hadamard m=9 k=512 input_dtype=f32 hadamard_block_size=128 check=exact",
    "family=hadamard m=9 k=256 input_dtype=f16 hadamard_block_size=64 check=exact",
    SUM "top_k=4 input_dtype=f32 routing=missing check=exact",
    SUM "top_k=4 input_dtype=f16 routing=missing num_experts=6 check=exact",
    SUM "top_k=4 input_dtype=bf16 routing=missing num_experts=7 seed=9 check=exact",
    "family=moe_sum k=52 m=24 top_k=4 input_dtype=f16 routing=missing check=exact",
    SUM "top_k=3 input_dtype=f16 routing=none check=exact",
};
enum { CASES = sizeof cases / sizeof cases[0] };

static bool run_probe(struct explain *x, const char *text, struct probe *p)
{
    char why[EXPLAIN_TEXT] = "";
    int64_t v[AX_COUNT];
    bool fine;

    make_case(text, v);
    *p = (struct probe){.count = 0};
    fine = ops_run(x, v, p, why) && probe_judge(p, &x->probes);
    ck_assert_msg(fine, "%s: %s", text, why);
    ck_assert_msg(x->last.verdict == VERDICT_PASS, "%s: %s", text, x->last.reason);
    return fine;
}

/* An implementation of its own, another one and the checks: all three agree. */
START_TEST(without_a_twist_it_is_right)
{
    struct explain x;
    struct probe p;
    struct told told;

    open_explain(&x, &hum_cpu_provider, &told);
    (void)run_probe(&x, cases[_i], &p);
    ck_assert_msg(p.compared > 0 && p.wrong_count == 0, "%s: %d wrong", cases[_i],
                  (int)p.wrong_count);
    explain_close(&x);
}
END_TEST

/* ---- hypotheses ------------------------------------------------------------------------------ */

static const struct {
    int64_t family;
    const struct explain_family *how;
} families[] = {
    {FAMILY_QUANT_WEIGHT, &explain_quant_weight},
    {FAMILY_DEQUANT_WEIGHT, &explain_dequant_weight},
    {FAMILY_PACK, &explain_pack},
    {FAMILY_PROCESS_MXFP4, &explain_process_mxfp4},
    {FAMILY_PROCESS_INPUT, &explain_process_input},
    {FAMILY_HADAMARD, &explain_hadamard},
    {FAMILY_MOE_SUM, &explain_moe_sum},
};

enum { ROWS_MAX = 128 };

/* FNV-1a over what a row predicts for one probe. */
static void mix_in(const struct hypothesis *h, const struct probe *p, struct arena *scratch,
                   uint64_t *hash)
{
    struct places at = {.count = p->count};
    uint32_t *codes;
    int64_t *list;

    arena_reset(scratch);
    codes = arena_zalloc(scratch, (size_t)p->count + 1, sizeof *codes);
    list = arena_alloc(scratch, (size_t)p->count + 1, sizeof *list);
    ck_assert(codes && list);
    for (int64_t i = 0; i < p->count; i++)
        list[i] = i;
    at.at = list;
    if (h && !h->predict(h, p, 0, &at, codes, scratch))
        memset(codes, 0x11, (size_t)p->count * sizeof *codes);
    for (int64_t i = 0; i < p->count; i++) {
        const bool same = !h || probe_same(probe_part_of(p, i), codes[i], p->want[i]);

        if (p->want[i] != PROBE_ANY)
            *hash = (*hash ^ (same ? p->want[i] : codes[i])) * UINT64_C(0x100000001b3);
    }
}

static void expect_distinct(const struct hypotheses *t, const uint64_t *hashes, uint64_t right)
{
    for (int i = 0; i < t->count; i++) {
        ck_assert_msg(hashes[i] != right, "%s cannot be told from what is right", t->rows[i].name);
        for (int j = 0; j < i; j++)
            ck_assert_msg(hashes[i] != hashes[j], "%s and %s (%s) cannot be told apart",
                          t->rows[i].name, t->rows[j].name, t->rows[j].sentence);
    }
}

/* Over all cases of a family: no row is the right operation, no two are the same mistake. */
START_TEST(hypotheses_differ)
{
    const struct hypotheses *t = families[_i].how->hypotheses[0];
    uint64_t hashes[ROWS_MAX] = {0}, right = 0;
    struct explain x;
    struct told told;

    ck_assert_int_le(t->count, ROWS_MAX);
    open_explain(&x, &hum_cpu_provider, &told);
    for (int i = 0; i < CASES; i++) {
        int64_t v[AX_COUNT];
        struct probe p;

        make_case(cases[i], v);
        if (v[AX_FAMILY] != families[_i].family || !run_probe(&x, cases[i], &p))
            continue;
        mix_in(NULL, &p, &x.scratch, &right);
        for (int j = 0; j < t->count; j++)
            mix_in(&t->rows[j], &p, &x.scratch, &hashes[j]);
        arena_reset(&x.probes);
    }
    expect_distinct(t, hashes, right);
    explain_close(&x);
}
END_TEST

/* ---- mistakes of this file ------------------------------------------------------------------- */

static size_t pack_bytes(const struct hum_pack_args *a)
{
    return a->packed.bytes;
}

static size_t moe_fused_mul_sum_bytes(const struct hum_moe_fused_mul_sum_args *a)
{
    return a->outputs.bytes;
}

static size_t process_input_bytes(const struct hum_process_input_args *a)
{
    return a->outputs.bytes;
}

static void swap_nibbles(const struct hum_pack_args *a)
{
    uint8_t *bytes = tensor_data(&a->packed);

    for (size_t i = 0; i < a->packed.bytes; i++)
        bytes[i] = (uint8_t)(bytes[i] << 4 | bytes[i] >> 4);
}
OP_AFTER(pack_swapped, pack, swap_nibbles)

static void rotate(const struct hum_pack_args *a)
{
    uint32_t *words = tensor_data(&a->packed);

    for (size_t i = 0; i < a->packed.bytes / sizeof *words; i++)
        words[i] = words[i] << 1 | words[i] >> 31;
}
OP_AFTER(pack_rotated, pack, rotate)

static void spoil_one(const struct hum_pack_args *a)
{
    uint32_t *words = tensor_data(&a->packed);

    words[0] ^= 1u;
}
OP_AFTER(pack_one_bit, pack, spoil_one)

static void without_ids(struct hum_moe_fused_mul_sum_args *a)
{
    a->expert_map = a->topk_ids = (struct hum_tensor){0};
}
OP_INSTEAD(sum_without_ids, moe_fused_mul_sum, without_ids)

static void without_map(struct hum_moe_fused_mul_sum_args *a)
{
    a->expert_map = (struct hum_tensor){0};
}
OP_INSTEAD(sum_without_map, moe_fused_mul_sum, without_map)

static void clear_signs(const struct hum_moe_fused_mul_sum_args *a)
{
    uint16_t *codes = tensor_data(&a->outputs);

    for (size_t i = 0; i < a->outputs.bytes / sizeof *codes; i++)
        codes[i] &= 0x7fffu;
}
OP_AFTER(sum_unsigned, moe_fused_mul_sum, clear_signs)

static void larger_block(struct hum_hadamard_args *a)
{
    a->block_size /= 2;
}
OP_INSTEAD(hadamard_half, hadamard, larger_block)

static void other_gelu(struct hum_process_input_args *a)
{
    a->activation = a->activation == HUM_ACT_GELU ? HUM_ACT_GELU_TANH : a->activation;
}
OP_INSTEAD(input_gelu, process_input, other_gelu)

static void not_zeroed(struct hum_process_input_args *a)
{
    a->zero_invalid = false;
}
OP_INSTEAD(input_not_zeroed, process_input, not_zeroed)

static void limit_int8(const struct hum_process_input_args *a)
{
    int8_t *codes = tensor_data(&a->outputs);

    for (size_t i = 0; a->quant_dtype == HUM_INT8 && i < a->outputs.bytes; i++)
        if (codes[i] == -128)
            codes[i] = -127;
}
OP_AFTER(input_narrow, process_input, limit_int8)

static void as_e4m3(struct hum_process_mxfp4_args *a)
{
    a->range = 11;
}
OP_INSTEAD(mxfp4_e4m3, process_mxfp4, as_e4m3)

static void whole_tensor_rule(struct hum_quant_weight_args *a)
{
    a->allow_negative_scale = false;
}
OP_INSTEAD(quant_positive, quant_weight, whole_tensor_rule)

/* clang-format off */
static const struct {
    struct hum_ops ops; /* what is not the cpu provider's */
    const char *text;
    const char *cause;  /* the beginning of the line */
} mistakes[] = {
    {{.pack = pack_swapped}, "family=pack bits=4 m=8 k=96 check=exact", "nibble-order:"},
    {{.pack = pack_rotated}, "family=pack bits=4 m=8 k=96 check=exact", "not known: no hypothesis"},
    {{.pack = pack_one_bit}, "family=pack bits=4 m=8 k=96 check=exact", "not known: no hypothesis"},
    {{.moe_fused_mul_sum = sum_without_ids},
     SUM "top_k=4 input_dtype=f16 routing=missing check=exact", "minus-1-counted:"},
    {{.moe_fused_mul_sum = sum_without_ids},
     SUM "top_k=4 input_dtype=f16 routing=missing num_experts=6 check=exact", "ids-ignored:"},
    {{.moe_fused_mul_sum = sum_without_map},
     SUM "top_k=4 input_dtype=f16 routing=missing num_experts=6 check=exact", "map-ignored:"},
    {{.moe_fused_mul_sum = sum_unsigned},
     SUM "top_k=4 input_dtype=f16 routing=missing check=exact", "not known: no hypothesis"},
    {{.hadamard = hadamard_half},
     "family=hadamard m=9 k=256 input_dtype=f16 hadamard_block_size=64 check=exact", "half-block:"},
    {{.process_input = input_gelu}, INPUT "activation=gelu", "gelu-by-tanh:"},
    {{.process_input = input_not_zeroed},
     INPUT "layout=grouped_padded num_experts=5 max_tokens=16 routing=uniform zero_invalid=true "
     "input_quant_mode=dynamic_token quant_dtype=int8", "rows-beyond-not-zeroed:"},
    {{.process_input = input_narrow},
     INPUT "input_quant_mode=static_tensor quant_dtype=int8", "narrow-range:"},
    {{.process_mxfp4 = mxfp4_e4m3},
     "family=process_mxfp4 a_dtype=int8 m=16 k=1024 per_row=true check=exact", "range-of-e4m3:"},
    {{.quant_weight = quant_positive},
     QUANT "b_dtype=int4 weight_scale_group_size=32 allow_negative_scale=true check=exact",
     "negative-scale-ignored:"},
    {{.process_input = input_gelu},
     "family=experts num_experts=4 n=128 k=64 m=24 a_dtype=bf16 weight_scale_type=channel "
     "gemm_type=indexed top_k=2 activation=gelu activation_form=split routing=uniform check=exact",
     "gelu-by-tanh:"},
};
/* clang-format on */

static struct hum_ops ops_with(const struct hum_ops *other)
{
    struct hum_ops ops = *hum_cpu_provider.ops;

    ops.quant_weight = other->quant_weight ? other->quant_weight : ops.quant_weight;
    ops.pack = other->pack ? other->pack : ops.pack;
    ops.process_mxfp4 = other->process_mxfp4 ? other->process_mxfp4 : ops.process_mxfp4;
    ops.process_input = other->process_input ? other->process_input : ops.process_input;
    ops.hadamard = other->hadamard ? other->hadamard : ops.hadamard;
    if (other->moe_fused_mul_sum)
        ops.moe_fused_mul_sum = other->moe_fused_mul_sum;
    return ops;
}

START_TEST(mistakes_are_named)
{
    const struct hum_ops ops = ops_with(&mistakes[_i].ops);
    struct told told;

    explain_ops(&ops, mistakes[_i].text, &told);
    ck_assert_msg(!strncmp(told.cause, mistakes[_i].cause, strlen(mistakes[_i].cause)),
                  "%s: %s, expected %s", mistakes[_i].text, told.cause, mistakes[_i].cause);
}
END_TEST

/* ---- numbers --------------------------------------------------------------------------------- */

/* Every code, every midpoint, and a hair to either side, against the oracle's one rounding. */
START_TEST(rounding_to_nearest_is_the_oracles)
{
    static const char *const names[] = {"e4m3", "e5m2", "e3m4", "e2m1", "e0m3", "int8"};
    const struct dtype *t = dtype_find(names[_i]);
    const uint32_t count = 1u << t->bits;

    for (uint32_t code = 0; code < count; code++) {
        const double x = dtype_decode(t, code), next = dtype_decode(t, (code + 1) % count);
        const double middle = (x + next) / 2.0;
        const double numbers[] = {x, middle, middle * (1.0 + 0x1p-40), middle * (1.0 - 0x1p-40),
                                  1.5 * x};

        for (int i = 0; i < 5; i++)
            if (isfinite(numbers[i]))
                ck_assert_uint_eq(ops_encode(t, numbers[i], OPS_TIES_TO_EVEN, OPS_SATURATES),
                                  dtype_encode(t, numbers[i], DTYPE_SATURATE));
    }
}
END_TEST

/* clang-format off */
static const struct {
    double x;
    double to[OPS_UP + 1]; /* in the order of enum ops_rounding */
} roundings[] = { /*    as even  0  away up  cut down up */
    { 2.5, { 2,  2,  2,  3,  3,  2,  2,  3}},
    {-2.5, {-2, -2, -2, -3, -2, -2, -3, -2}},
    { 3.5, { 4,  4,  3,  4,  4,  3,  3,  4}},
    { 0.5, { 0,  0,  0,  1,  1,  0,  0,  1}},
    {-0.5, { 0,  0,  0, -1,  0,  0, -1,  0}},
    { 2.4, { 2,  2,  2,  2,  2,  2,  2,  3}},
    {-2.6, {-3, -3, -3, -3, -3, -2, -3, -2}},
    { 7.0, { 7,  7,  7,  7,  7,  7,  7,  7}},
};
/* clang-format on */

START_TEST(other_roundings_are_what_they_say)
{
    for (int how = 0; how <= OPS_UP; how++) {
        const double x = roundings[_i].x, got = ops_round(x, (enum ops_rounding)how);

        ck_assert_msg(fabs(got - roundings[_i].to[how]) < 0.25 && !signbit(got) == !signbit(x),
                      "%g in way %d: %g", x, how, got);
    }
}
END_TEST

static Suite *explain_ops_suite(void)
{
    Suite *s = suite_create("explain_ops");
    TCase *tc = tcase_create("ops");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, without_a_twist_it_is_right, 0, CASES);
    tcase_add_loop_test(tc, hypotheses_differ, 0, sizeof families / sizeof families[0]);
    tcase_add_loop_test(tc, mistakes_are_named, 0, sizeof mistakes / sizeof mistakes[0]);
    tcase_add_loop_test(tc, rounding_to_nearest_is_the_oracles, 0, 6);
    tcase_add_loop_test(tc, other_roundings_are_what_they_say, 0,
                        sizeof roundings / sizeof roundings[0]);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    SRunner *sr = srunner_create(explain_ops_suite());
    int failed;

    srunner_run_all(sr, CK_NORMAL);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed ? 1 : 0;
}
