/* Explanations of products: the twin is right, mistakes are named, what is no known mistake is
 * not. */
#include "harness/explain/explain.h"
#include "harness/explain/gemm_twin.h"
#include "harness/test/case_run.h"
#include "kernels/cpu/layout.h"

#include <stdlib.h>

/* ---- wrong kernels --------------------------------------------------------------------------- */

enum { COPY_BYTES = 1 << 22 };

/* A copy of a tensor's data, which a mistake changes; one a launch. */
static void *changed(struct hum_tensor *t)
{
    static _Alignas(64) unsigned char copy[COPY_BYTES];

    ck_assert(t->bytes <= COPY_BYTES);
    memcpy(copy, t->data, t->bytes);
    t->data = copy;
    return copy;
}

/* The right product of changed arguments. */
struct call {
    struct hum_weights weights;
    struct hum_gemm_args args;
};
static void begin(struct call *c, const struct hum_gemm_args *args)
{
    c->args = *args;
    c->weights = *args->weights;
    c->args.weights = &c->weights;
}
static enum hum_code finish(const struct call *c, void *handle, char reason[HUM_REASON_BYTES])
{
    return hum_cpu_provider.forward(handle, &c->args, reason);
}

#define WRONG(name)                                                           \
    static enum hum_code name(void *handle, const struct hum_gemm_args *args, \
                              char reason[HUM_REASON_BYTES])

static int64_t padded_n(const struct hum_gemm_args *args)
{
    return args->layer->shape_n;
}

WRONG(tail_dropped)
{
    int64_t m = args->inputs.shape[0], k = args->inputs.shape[1];
    struct call c;
    uint16_t *a;

    begin(&c, args);
    a = changed(&c.args.inputs);
    for (int64_t i = 0; i < m; i++)
        memset(a + i * k + k - 8, 0, 8 * sizeof *a);
    return finish(&c, handle, reason);
}

WRONG(group_before)
{
    int64_t n = padded_n(args);
    struct call c;
    float *s;

    begin(&c, args);
    s = changed(&c.weights.weight_scale);
    memmove(s + n, s, c.weights.weight_scale.bytes - (size_t)n * sizeof *s);
    return finish(&c, handle, reason);
}

/* Column 5 uses the scales of column 4. */
WRONG(neighbour)
{
    int64_t n = padded_n(args);
    struct call c;
    float *s;

    begin(&c, args);
    s = changed(&c.weights.weight_scale);
    for (size_t g = 0; g < c.weights.weight_scale.bytes / (size_t)n / sizeof *s; g++)
        s[(int64_t)g * n + 5] = s[(int64_t)g * n + 4];
    return finish(&c, handle, reason);
}

WRONG(zero_plus_1)
{
    struct call c;
    float *z;

    begin(&c, args);
    z = changed(&c.weights.zero_point);
    for (size_t i = 0; i < c.weights.zero_point.bytes / sizeof *z; i++)
        z[i] += 1.0f;
    return finish(&c, handle, reason);
}

WRONG(no_bias)
{
    struct call c;

    begin(&c, args);
    memset(changed(&c.weights.bias), 0, c.weights.bias.bytes);
    return finish(&c, handle, reason);
}

/* Panels of 16 columns, k inside: weight 100 of column 3. */
WRONG(lsb)
{
    struct call c;

    begin(&c, args);
    ((uint8_t *)changed(&c.weights.weight))[100 * 16 + 3] ^= 1;
    return finish(&c, handle, reason);
}

WRONG(nibbles)
{
    struct call c;
    uint8_t *w;

    begin(&c, args);
    w = changed(&c.weights.weight);
    for (size_t i = 0; i + 32 <= c.weights.weight.bytes; i += 32)
        for (size_t j = 0; j < 16; j++) {
            uint8_t code = w[i + j];

            w[i + j] = w[i + 16 + j];
            w[i + 16 + j] = code;
        }
    return finish(&c, handle, reason);
}

WRONG(columns)
{
    enum hum_code rc = hum_cpu_provider.forward(handle, args, reason);
    int64_t n = columns_of(args);
    uint16_t *out = outputs_of(args);

    for (int64_t i = 0; rc == HUM_OK && i < rows_of(args); i++) {
        uint16_t code = out[i * n + n - 1];

        out[i * n + n - 1] = out[i * n + n - 2];
        out[i * n + n - 2] = code;
    }
    return rc;
}

WRONG(no_last_row)
{
    size_t row = (size_t)columns_of(args) * sizeof(uint16_t);
    uint16_t *last = outputs_of(args) + (rows_of(args) - 1) * columns_of(args);
    void *before = malloc(row);
    enum hum_code rc;

    memcpy(before, last, row);
    rc = hum_cpu_provider.forward(handle, args, reason);
    memcpy(last, before, row);
    free(before);
    return rc;
}

/* Outputs are changed in a way that no table knows. */
WRONG(unknown)
{
    enum hum_code rc = hum_cpu_provider.forward(handle, args, reason);
    int64_t count = rows_of(args) * columns_of(args);

    for (int64_t i = 0; rc == HUM_OK && i < count; i++)
        if (i * 7 % 31 == 3)
            outputs_of(args)[i] ^= 1;
    return rc;
}

/* Another output is wrong in every launch. */
WRONG(restless)
{
    static unsigned launch;
    enum hum_code rc = hum_cpu_provider.forward(handle, args, reason);

    outputs_of(args)[launch++ % (unsigned)columns_of(args)] ^= 1;
    return rc;
}

/* Only where there are two tiles of columns. */
WRONG(second_tile)
{
    enum hum_code rc = hum_cpu_provider.forward(handle, args, reason);

    if (rc == HUM_OK && columns_of(args) > 64)
        outputs_of(args)[64] ^= 1;
    return rc;
}

WRONG(right)
{
    return hum_cpu_provider.forward(handle, args, reason);
}

/* ---- an explanation -------------------------------------------------------------------------- */

struct heard {
    char text[EXPLAIN_TOPICS][2048]; /* the first of each topic */
};

static void hear(void *context, enum explain_topic topic, const char *text)
{
    struct heard *h = context;

    if (!h->text[topic][0])
        (void)snprintf(h->text[topic], sizeof h->text[topic], "%s", text);
}

static void explain_text(forward_fn *forward, const char *text, bool shrink, struct heard *h)
{
    static const struct suite suite = {.path = "x.yaml", .name = "x"};
    const struct explain_how how = {.shrink = shrink, .seconds = 60.0};
    struct hum_provider provider = provider_with(forward);
    struct plan_case c = {.suite = &suite, .id = "x/y"};
    struct plan_problem problem = {.first = 0, .count = 1};
    struct plan plan = {.cases = &c, .count = 1, .problems = &problem, .problem_count = 1};
    struct explain x = {.sink = {hear, h}};
    struct errs errs = {0};

    memset(h, 0, sizeof *h);
    make_case(text, c.v);
    problem.m = c.v[AX_M];
    ck_assert(explain_open(&x, &provider, 1, (size_t)1 << 30, &errs));
    explain_case(&x, &plan, 0, &how);
    explain_close(&x);
    errs_free(&errs);
}

/* clang-format off */
static const struct {
    forward_fn *forward;
    const char *text, *cause; /* how the cause begins */
} rows[] = {
    {tail_dropped, "", "k-tail-dropped: the last k take no part (the last 8 of 256)"},
    {group_before, "k=512", "group-index-minus-1:"},
    {neighbour,    "", "scale-of-neighbour-column:"},
    {zero_plus_1,  "zero_point=int", "zero-point-plus-1:"},
    {no_bias,      "has_bias=true", "bias-missing:"},
    {lsb,          "", "weight-lsb-flipped: the lowest bit of a weight is flipped (k = 100, column 3)"},
    {nibbles,      "", "nibble-order:"},
    {columns,      "", "columns-swapped: two columns are swapped (190 and 191)"},
    {no_last_row,  "", "not-written:"},
    {unknown,      "", "not known: no hypothesis gives these bits"},
    {restless,     "", "not deterministic:"},
    {tail_dropped, "a_dtype=bf16 b_dtype=e2m1 check=model", "k-tail-dropped:"},
    {no_bias,      "num_experts=4 gemm_type=indexed top_k=2 has_bias=true", "bias-missing:"},
};
/* clang-format on */

START_TEST(mistakes_are_named)
{
    struct heard h;

    explain_text(rows[_i].forward, rows[_i].text, false, &h);
    ck_assert_msg(!strncmp(h.text[EXPLAIN_CAUSE], rows[_i].cause, strlen(rows[_i].cause)),
                  "row %d: %s; %s; %s; %s", _i, h.text[EXPLAIN_RERUN], h.text[EXPLAIN_NOTE],
                  h.text[EXPLAIN_WHERE], h.text[EXPLAIN_CAUSE]);
}
END_TEST

START_TEST(a_right_kernel_needs_no_cause)
{
    struct heard h;

    explain_text(right, "", true, &h);
    ck_assert_str_eq(h.text[EXPLAIN_RERUN], "pass");
    ck_assert_str_eq(h.text[EXPLAIN_CAUSE], "");
}
END_TEST

START_TEST(cases_are_shrunk)
{
    struct heard h;

    explain_text(second_tile, "has_bias=true", true, &h);
    ck_assert_msg(strstr(h.text[EXPLAIN_SMALL], " m=1 ") && strstr(h.text[EXPLAIN_SMALL], " n=72 "),
                  "%s", h.text[EXPLAIN_SMALL]);
    ck_assert(!strstr(h.text[EXPLAIN_SMALL], "has_bias"));
    ck_assert(strstr(h.text[EXPLAIN_SUITE], "    n: 72\n"));
    ck_assert(strstr(h.text[EXPLAIN_WHERE], "column 64 of 192"));
}
END_TEST

/* ---- the twin -------------------------------------------------------------------------------- */

static const char *const configurations[] = {
    "",
    "a_dtype=bf16 b_dtype=e2m1 has_bias=true m=17",
    "zero_point=int fill=P check=readout m=64",
    "zero_point=float a_dtype=bf16",
    "b_dtype=uint8 weight_scale_type=channel has_bias=true",
    "a_dtype=e4m3 c_dtype=bf16 b_dtype=uint4 weight_scale_type=group check=model",
    "a_dtype=int8 b_dtype=uint4 c_dtype=f16 weight_scale_type=group check=model",
    "a_dtype=int8 b_dtype=uint7 c_dtype=bf16 weight_scale_type=channel",
    /* NOLINTNEXTLINE(bugprone-suspicious-missing-comma): one text in two lines */
    "a_dtype=e4m3 b_dtype=e4m3 c_dtype=bf16 weight_scale_type=block input_scale_group_size=128 "
    "check=model",
    "a_dtype=e4m3 b_dtype=e2m1 bs_dtype=e8m0 c_dtype=bf16 weight_scale_type=group "
    "weight_scale_group_size=32 check=model",
    "use_f16_accum=true fill=E2",
    "fill=C m=96",
    "fill=X",
    "fill=S a_dtype=bf16",
    "check=model use_stream_k=true block_shape=32x64x64 warp_shape=32x64x32 num_sms=7",
    "weight_scale_type=tensor b_dtype=e4m3 a_dtype=e4m3 c_dtype=bf16",
    "bs_dtype=e4m3 weight_scale_2_type=tensor b_dtype=e2m1 weight_scale_group_size=16",
    "num_experts=4 gemm_type=indexed top_k=2 has_bias=true check=model",
    "num_experts=3 gemm_type=grouped_contiguous",
    "num_experts=3 gemm_type=grouped_masked max_tokens=16 m=48",
};

/* Without a mistake it gives the bits of the kernel, which are right. */
START_TEST(the_twin_is_right)
{
    struct hum_provider provider = provider_with(right);
    int64_t v[AX_COUNT];
    char why[EXPLAIN_TEXT] = "";
    struct heard h = {{{0}}};
    struct explain x = {.sink = {hear, &h}};
    struct probe p = {.count = 0};
    struct errs errs = {0};
    uint32_t *codes;

    make_case(configurations[_i], v);
    ck_assert(explain_open(&x, &provider, 1, (size_t)1 << 30, &errs));
    ck_assert_msg(explain_gemm.run(&x, v, &p, why), "%s: %s", configurations[_i], why);
    ck_assert(probe_judge(&p, &x.probes));
    ck_assert_msg(p.wrong_count == 0 && p.compared > 1000, "%s", configurations[_i]);
    codes = arena_alloc(&x.probes, (size_t)p.count, sizeof *codes);
    arena_reset(&x.scratch);
    ck_assert(twin_right(&p, codes, &x.scratch));
    for (int64_t i = 0; i < p.count; i++)
        ck_assert_msg(probe_same(&p.parts[0], codes[i], p.got[i]), "%s: element %d: %x, not %x",
                      configurations[_i], (int)i, codes[i], p.got[i]);
    explain_close(&x);
    errs_free(&errs);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("explain_gemm");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, the_twin_is_right, 0,
                        (int)(sizeof configurations / sizeof configurations[0]));
    tcase_add_loop_test(tc, mistakes_are_named, 0, (int)(sizeof rows / sizeof rows[0]));
    tcase_add_test(tc, a_right_kernel_needs_no_cause);
    tcase_add_test(tc, cases_are_shrunk);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
