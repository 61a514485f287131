/* The experts pipeline: the right provider passes every check in every form; wrong ones do not. */
#include "harness/kernel/experts_run.h"
#include "harness/test/case_run.h"
#include "harness/test/wrong_buffers.h"
#include "kernels/cpu/ops.h"

#include <stdlib.h>

#define BASE                                                                               \
    "family=experts num_experts=4 n=128 k=64 m=24 a_dtype=e4m3 weight_scale_type=channel " \
    "activation=swiglu activation_form=split "

/* ---- the right provider ---------------------------------------------------------------------- */

static const char *const forms[] = {
    "gemm_type=indexed top_k=2",
    "gemm_type=indexed top_k=3 routing=duplicate a_dtype=f16",
    "gemm_type=indexed top_k=2 routing=missing output_place=workspace1",
    "gemm_type=grouped_contiguous top_k=2 routing=missing",
    "gemm_type=grouped_contiguous top_k=1 a_dtype=bf16 expert_layout_dtype=int64",
    "gemm_type=grouped_masked",
    "gemm_type=grouped_masked a_dtype=f16 output_place=workspace1",
    "gemm_type=indexed top_k=2 a_dtype=int8 activation=relu2 activation_form=unary",
    "gemm_type=indexed top_k=2 a_dtype=e2m1 b_dtype=e2m1 activation=none",
    "gemm_type=grouped_contiguous a_dtype=int4 b_dtype=uint3 activation=silu",
};
static const char *const checks[] = {"exact",         "alias",     "guard",
                                     "deterministic", "invariant", "contract"};
enum { FORMS = sizeof forms / sizeof forms[0], CHECKS = sizeof checks / sizeof checks[0] };

static const char *text_of(char *buf, size_t size, const char *form, const char *check)
{
    (void)snprintf(buf, size, BASE "%s check=%s", form, check);
    return buf;
}

START_TEST(right_provider)
{
    char buf[400];

    for (int i = 0; i < CHECKS; i++)
        expect_verdict(&hum_cpu_provider, text_of(buf, sizeof buf, forms[_i], checks[i]),
                       VERDICT_PASS, "");
}
END_TEST

/* Data that stay exact are compared from end to end. */
START_TEST(exact_to_the_end)
{
    static const char *const texts[] = {
        BASE "gemm_type=indexed top_k=2 activation=none check=exact",
        BASE "gemm_type=indexed a_dtype=int8 activation=relu2 activation_form=unary check=exact",
        BASE "gemm_type=grouped_contiguous top_k=2 a_dtype=f16 activation=none "
             "activation_form=unary check=exact",
        BASE "gemm_type=grouped_masked a_dtype=bf16 activation=none check=exact",
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct record r = run_case_text(&hum_cpu_provider, texts[i]);

        ck_assert_msg(strstr(r.kernel, "exact end to end") != NULL, "%s: %s", texts[i], r.kernel);
    }
}
END_TEST

/* ---- wrong on purpose: process_input --------------------------------------------------------- */

static uint8_t *bytes(const struct hum_tensor *t)
{
    return t->data;
}

static size_t row_bytes(const struct hum_tensor *t)
{
    return t->bytes / (size_t)t->shape[0];
}

static enum hum_code scale_doubled(void *h, const struct hum_process_input_args *a, char *reason)
{
    enum hum_code rc = op_process_input(h, a, reason);

    if (!rc && a->token_scales.bytes)
        ((float *)a->token_scales.data)[0] *= 2.0f;
    return rc;
}

static enum hum_code code_off(void *h, const struct hum_process_input_args *a, char *reason)
{
    enum hum_code rc = op_process_input(h, a, reason);

    if (!rc && a->outputs.bytes)
        bytes(&a->outputs)[0] ^= 1;
    return rc;
}

/* As an activation that rectifies its input in place. */
static enum hum_code writes_inputs(void *h, const struct hum_process_input_args *a, char *reason)
{
    enum hum_code rc = op_process_input(h, a, reason);

    if (!rc && a->activation != HUM_ACT_NONE)
        bytes(&a->inputs)[1] ^= 0x80;
    return rc;
}

static enum hum_code writes_behind(void *h, const struct hum_process_input_args *a, char *reason)
{
    enum hum_code rc = op_process_input(h, a, reason);

    if (!rc && a->outputs.bytes)
        bytes(&a->outputs)[a->outputs.bytes] ^= 0x11;
    return rc;
}

/* The first row is what it was before. */
static enum hum_code stale_row(void *h, const struct hum_process_input_args *a, char *reason)
{
    uint8_t before[1024] = {0};
    size_t n = a->outputs.bytes ? row_bytes(&a->outputs) : 0;
    enum hum_code rc;

    memcpy(before, a->outputs.data, n);
    rc = op_process_input(h, a, reason);
    memcpy(a->outputs.data, before, n);
    return rc;
}

/* Right only where outputs lie behind inputs: so they do while every buffer has its own place. */
static enum hum_code order_matters(void *h, const struct hum_process_input_args *a, char *reason)
{
    enum hum_code rc = op_process_input(h, a, reason);

    if (!rc && bytes(&a->outputs) < bytes(&a->inputs))
        bytes(&a->outputs)[0] ^= 1;
    return rc;
}

static enum hum_code no_rows_refused(void *h, const struct hum_process_input_args *a, char *reason)
{
    if (a->inputs.shape[0] == 0) {
        memcpy(reason, "no rows", 8);
        return HUM_INVALID;
    }
    return op_process_input(h, a, reason);
}

/* ---- GEMM ------------------------------------------------------------------------------------ */

static enum hum_code rows_swapped(void *h, const struct hum_gemm_args *a, char *reason)
{
    enum hum_code rc = hum_cpu_provider.forward(h, a, reason);
    size_t n = a->outputs.shape[0] > 1 ? row_bytes(&a->outputs) : 0;
    uint8_t kept[1024];

    memcpy(kept, a->outputs.data, n);
    memmove(a->outputs.data, bytes(&a->outputs) + n, n);
    memcpy(bytes(&a->outputs) + n, kept, n);
    return rc;
}

/* A row that no expert has. */
static enum hum_code last_row_written(void *h, const struct hum_gemm_args *a, char *reason)
{
    enum hum_code rc = hum_cpu_provider.forward(h, a, reason);

    if (!rc && a->outputs.bytes)
        bytes(&a->outputs)[a->outputs.bytes - 1] ^= 0x22;
    return rc;
}

static int launches;

static enum hum_code changes_its_mind(void *h, const struct hum_gemm_args *a, char *reason)
{
    enum hum_code rc = hum_cpu_provider.forward(h, a, reason);

    bytes(&a->outputs)[0] ^= ++launches > 4;
    return rc;
}

/* Bits that depend on how many rows there are. */
static enum hum_code counts_rows(void *h, const struct hum_gemm_args *a, char *reason)
{
    enum hum_code rc = hum_cpu_provider.forward(h, a, reason);

    if (!rc && a->inputs.shape[0] && a->inputs.shape[0] < 24)
        for (int64_t i = 0; i < a->outputs.shape[0]; i++)
            bytes(&a->outputs)[(size_t)i * row_bytes(&a->outputs)] ^= 1;
    return rc;
}

/* ---- the sum --------------------------------------------------------------------------------- */

static enum hum_code no_sum(void *h, const struct hum_moe_fused_mul_sum_args *a, char *reason)
{
    (void)h;
    (void)a;
    reason[0] = '\0';
    return HUM_OK;
}

static enum hum_code ids_ignored(void *h, const struct hum_moe_fused_mul_sum_args *a, char *reason)
{
    struct hum_moe_fused_mul_sum_args all = *a;

    all.topk_ids = (struct hum_tensor){0};
    return op_moe_fused_mul_sum(h, &all, reason);
}

static enum hum_code wrong_weight(void *h, const struct hum_moe_fused_mul_sum_args *a, char *reason)
{
    struct hum_moe_fused_mul_sum_args other = *a;
    float weights[64] __attribute__((aligned(64)));

    memcpy(weights, a->weights.data, a->weights.bytes);
    if (a->weights.bytes > sizeof(float)) {
        weights[0] = weights[1];
        other.weights.data = weights;
    }
    return op_moe_fused_mul_sum(h, &other, reason);
}

/* ---- all of them ----------------------------------------------------------------------------- */

#define INDEXED "gemm_type=indexed top_k=2 "
#define GROUPED "gemm_type=grouped_contiguous top_k=2 "
#define BATCHED "gemm_type=grouped_masked "

/* clang-format off */
static const struct {
    const char *text, *reason;
    forward_fn *forward;
    struct hum_ops ops; /* functions other than the provider's own */
} faults[] = {
    {INDEXED "check=exact", "enter: ", NULL, {.process_input = scale_doubled}},
    {INDEXED "check=exact a_dtype=f16", "activate: ", NULL, {.process_input = code_off}},
    {INDEXED "check=exact activation=none", "enter: ", NULL, {.process_input = code_off}},
    {GROUPED "check=exact a_dtype=bf16", "enter: ", NULL, {.process_input = code_off}},
    {INDEXED "check=exact", "activate: byte 1 of works", NULL, {.process_input = writes_inputs}},
    {BATCHED "check=alias", "which it does not write", NULL, {.process_input = writes_inputs}},
    {INDEXED "check=guard", "which it does not write", NULL, {.process_input = writes_inputs}},
    {INDEXED "check=exact m=32", "changed", NULL, {.process_input = writes_behind}},
    {INDEXED "check=guard", "enter: ", NULL, {.process_input = stale_row}},
    {BATCHED "check=guard", "enter: ", NULL, {.process_input = stale_row}},
    {INDEXED "check=exact", "enter: ", NULL, {.process_input = stale_row}},
    {INDEXED "check=alias", "where every buffer has a", NULL, {.process_input = order_matters}},
    {INDEXED "check=guard", "no rows", NULL, {.process_input = no_rows_refused}},
    {INDEXED "check=exact", "gate_up: ", rows_swapped, {0}},
    {GROUPED "check=exact", "gate_up: ", rows_swapped, {0}},
    {GROUPED "check=guard routing=missing", "gate_up: ", last_row_written, {0}},
    {BATCHED "check=deterministic", "gate_up: ", last_row_written, {0}},
    {INDEXED "check=deterministic", "from one run to the next", changes_its_mind, {0}},
    {INDEXED "check=invariant", "every third token", counts_rows, {0}},
    {INDEXED "check=exact", "sum: ", NULL, {.moe_fused_mul_sum = no_sum}},
    {INDEXED "check=guard output_place=workspace1", "sum: ", NULL, {.moe_fused_mul_sum = no_sum}},
    {INDEXED "check=exact routing=missing", "sum: ", NULL, {.moe_fused_mul_sum = ids_ignored}},
    {GROUPED "check=exact routing=missing", "sum: ", NULL, {.moe_fused_mul_sum = ids_ignored}},
    {INDEXED "check=exact", "sum: ", NULL, {.moe_fused_mul_sum = wrong_weight}},
    {INDEXED "check=exact", "workspace of down_output", NULL, {.buffer_metas = other_workspace}},
    {INDEXED "check=alias", "bytes of activation_output", NULL, {.buffer_metas = few_bytes}},
    {BATCHED "check=contract", "bytes of gate_up_output", NULL, {.buffer_metas = one_dispatcher}},
    {INDEXED "check=contract", "does not refuse", NULL, {.buffer_metas = takes_all}},
    {BATCHED "check=contract", "writes to its result", NULL, {.buffer_metas = writes_anyway}},
    {INDEXED "check=contract", "without one sentence", NULL, {.buffer_metas = says_nothing}},
};
/* clang-format on */
enum { FAULTS = sizeof faults / sizeof faults[0] };

START_TEST(wrong_provider)
{
    struct hum_ops ops = hum_cpu_ops;
    struct hum_provider p = hum_cpu_provider;
    char buf[400];

    if (faults[_i].forward)
        p.forward = faults[_i].forward;
    if (faults[_i].ops.process_input)
        ops.process_input = faults[_i].ops.process_input;
    if (faults[_i].ops.moe_fused_mul_sum)
        ops.moe_fused_mul_sum = faults[_i].ops.moe_fused_mul_sum;
    if (faults[_i].ops.buffer_metas)
        ops.buffer_metas = faults[_i].ops.buffer_metas;
    p.ops = &ops;
    (void)snprintf(buf, sizeof buf, BASE "%s", faults[_i].text);
    expect_verdict(&p, buf, VERDICT_FAIL, faults[_i].reason);
}
END_TEST

/* ---- what is missing ------------------------------------------------------------------------- */

START_TEST(missing_functions_are_skipped)
{
    struct hum_provider p = hum_cpu_provider;
    struct hum_ops ops = hum_cpu_ops;

    p.ops = NULL;
    expect_verdict(&p, BASE INDEXED "check=exact", VERDICT_SKIP, "no buffer_metas");
    p.ops = &ops;
    ops.moe_fused_mul_sum = NULL;
    expect_verdict(&p, BASE INDEXED "check=exact", VERDICT_SKIP, "no moe_fused_mul_sum");
    expect_verdict(&p, BASE BATCHED "check=exact", VERDICT_PASS, ""); /* has no sum */
    ops.process_input = NULL;
    expect_verdict(&p, BASE BATCHED "check=exact", VERDICT_SKIP, "no process_input");
}
END_TEST

/* Sums that round in an order that nobody knows. */
START_TEST(unknown_order_is_not_trusted)
{
    struct hum_provider p = hum_cpu_provider;

    p.accumulation = NULL;
    expect_verdict(&p, BASE INDEXED "a_dtype=f16 activation=silu check=exact", VERDICT_UNTRUSTED,
                   "down: sums round");
    expect_verdict(&p, BASE INDEXED "activation=none check=exact", VERDICT_PASS, "");
}
END_TEST

/* ---- batches --------------------------------------------------------------------------------- */

/* Every live row belongs to one slot, its expert is the slot's, and its row of A the token's. */
static void rows_fit(const struct experts *x, const struct batch *b)
{
    bool seen[256] = {false};

    ck_assert_int_le(b->rows, 256);
    for (int64_t i = 0; i < b->m * x->top_k; i++) {
        int64_t row = b->row_of[i];

        ck_assert_int_eq(row >= 0, b->ids[i] >= 0);
        if (row < 0)
            continue;
        ck_assert(!seen[row] && b->live[row]);
        seen[row] = true;
        for (int layer = 0; layer < LAYER_COUNT; layer++)
            ck_assert_int_eq(b->routing[layer].row_expert[row], b->ids[i]);
        ck_assert_int_eq(b->routing[LAYER_GATE_UP].row_a[row],
                         x->type == HUM_GEMM_INDEXED ? i / x->top_k : row);
        if (x->type == HUM_GEMM_GROUPED_CONTIGUOUS)
            ck_assert(row >= b->offsets[b->ids[i]] && row < b->offsets[b->ids[i] + 1]);
        if (experts_batched(x))
            ck_assert(row / x->max_tokens == b->ids[i] &&
                      row % x->max_tokens < b->offsets[b->ids[i]]);
    }
    for (int64_t row = 0; row < b->rows; row++)
        ck_assert_int_eq(seen[row], b->live[row]);
}

static const char *const routings[] = {INDEXED,
                                       INDEXED "routing=missing",
                                       GROUPED "routing=skewed",
                                       GROUPED "routing=missing",
                                       BATCHED "routing=empty",
                                       BATCHED "routing=spare",
                                       INDEXED "routing=duplicate"};

START_TEST(batches)
{
    static const int64_t chosen[] = {5, TOKEN_NAN(2), 0, 7};
    struct arena arena;
    int64_t v[AX_COUNT];
    struct experts x;
    struct batch b;
    char buf[400];

    ck_assert(arena_init(&arena, (size_t)1 << 26));
    (void)snprintf(buf, sizeof buf, BASE "%s check=exact", routings[_i]);
    make_case(buf, v);
    ck_assert_ptr_null(experts_make(v, v[AX_M], &arena, &x));
    ck_assert_int_ge(x.tokens, 8);
    for (int64_t m = x.tokens; m >= 0; m -= x.tokens) {
        ck_assert(batch_make(&x, NULL, m, &arena, &b));
        ck_assert_int_eq(b.m, m);
        rows_fit(&x, &b);
    }
    ck_assert(batch_make(&x, chosen, 4, &arena, &b));
    rows_fit(&x, &b);
    for (int64_t i = 0; i < 4; i++) {
        int64_t token = b.token[i] < 0 ? TOKEN_NAN(b.token[i]) : b.token[i];
        bool same = !memcmp(b.inputs + i * x.hidden, x.inputs + token * x.hidden,
                            (size_t)x.hidden * sizeof *b.inputs);

        ck_assert_int_eq(same, b.token[i] >= 0);
        ck_assert(experts_batched(&x) || b.token[i] == chosen[i]);
        ck_assert_int_eq(
            memcmp(b.ids + i * x.top_k, x.ids + token * x.top_k, (size_t)x.top_k * sizeof *b.ids),
            0);
    }
    arena_free(&arena);
}
END_TEST

/* ---- legality -------------------------------------------------------------------------------- */

static const struct {
    const char *text, *rule;
} illegal[] = {
    {"gemm_type=dense num_experts=0 routing=none", "pipeline-type"},
    {"gemm_type=indexed top_k=5", "pipeline-top-k"},
    {"gemm_type=grouped_masked top_k=2", "pipeline-top-k"},
    {"gemm_type=indexed routing=none", "pipeline-routing"},
    {"gemm_type=indexed routing=duplicate", "pipeline-routing"},
    {"gemm_type=grouped_masked m=23", "pipeline-max-tokens"},
    {"gemm_type=indexed expert_layout_dtype=int64", "pipeline-layout-dtype"},
    {"gemm_type=indexed activation_form=unary", "pipeline-swiglu"},
    {"gemm_type=indexed activation=silu swiglu=gpt_oss", "pipeline-swiglu"},
    {"gemm_type=indexed n=129 pad_shape_n=63 activation=none", "pad-n"},
    {"gemm_type=indexed b_dtype=uint6", "b-uint-width"},
    {"gemm_type=indexed n=136 pad_shape_n=56 b_dtype=uint3", "pipeline-down"},
    {"gemm_type=indexed check=model", "op-check"},
};

START_TEST(illegal_pipelines)
{
    uint64_t decided_by[AX_COUNT];
    const struct legal_rule *broken;
    int64_t v[AX_COUNT];
    char text[400];

    case_defaults(v);
    (void)snprintf(text, sizeof text, BASE "%s", illegal[_i].text);
    case_set(v, text);
    (void)plan_resolve(v, AXIS_ALL, 7, decided_by);
    broken = legal_broken(v);
    ck_assert_msg(broken && !strcmp(broken->name, illegal[_i].rule), "%s: %s, expected %s",
                  illegal[_i].text, broken ? broken->name : "legal", illegal[_i].rule);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("op_experts");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, right_provider, 0, FORMS);
    tcase_add_test(tc, exact_to_the_end);
    tcase_add_loop_test(tc, wrong_provider, 0, FAULTS);
    tcase_add_test(tc, missing_functions_are_skipped);
    tcase_add_test(tc, unknown_order_is_not_trusted);
    tcase_add_loop_test(tc, batches, 0, sizeof routings / sizeof routings[0]);
    tcase_add_loop_test(tc, illegal_pipelines, 0, sizeof illegal / sizeof illegal[0]);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
