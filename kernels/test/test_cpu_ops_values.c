#include "kernels/cpu/ops.h"
#include "kernels/test/ops_tensor.h"
#include "kernels/test/oracle.h"

#include <math.h>

static char reason[HUM_REASON_BYTES];

/* ---- activations ----------------------------------------------------------------------------- */

struct shape {
    enum hum_activation activation;
    enum hum_activation_form form;
    float alpha, beta, limit;
};

static const struct shape shapes[] = {
    {HUM_ACT_SILU, HUM_ACT_UNARY, 0, 0, 0},
    {HUM_ACT_SILU, HUM_ACT_BINARY_SPLIT, 0, 0, 0},
    {HUM_ACT_SILU, HUM_ACT_BINARY_INTERLEAVED, 0, 0, 0},
    {HUM_ACT_GELU, HUM_ACT_UNARY, 0, 0, 0},
    {HUM_ACT_GELU, HUM_ACT_BINARY_SPLIT, 0, 0, 0},
    {HUM_ACT_GELU, HUM_ACT_BINARY_INTERLEAVED, 0, 0, 0},
    {HUM_ACT_GELU_TANH, HUM_ACT_UNARY, 0, 0, 0},
    {HUM_ACT_GELU_TANH, HUM_ACT_BINARY_SPLIT, 0, 0, 0},
    {HUM_ACT_GELU_TANH, HUM_ACT_BINARY_INTERLEAVED, 0, 0, 0},
    {HUM_ACT_SWIGLU, HUM_ACT_BINARY_SPLIT, 1.702f, 1.0f, 7.0f}, /* of a published model */
    {HUM_ACT_SWIGLU, HUM_ACT_BINARY_INTERLEAVED, 1.702f, 1.0f, 7.0f},
    {HUM_ACT_SWIGLU, HUM_ACT_BINARY_SPLIT, 1.0f, 0.0f, 0.0f}, /* silu */
    {HUM_ACT_SWIGLU, HUM_ACT_BINARY_INTERLEAVED, 0.5f, -0.25f, 2.5f},
    {HUM_ACT_RELU2, HUM_ACT_UNARY, 0, 0, 0},
    {HUM_ACT_NONE, HUM_ACT_BINARY_SPLIT, 0, 0, 0},
};

static long double sigmoid(long double x)
{
    return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x));
}

/* With more than double's precision where the platform has it. */
static long double oracle(const struct shape *s, long double a, long double b)
{
    const long double root = 0.797884560802865355879892119868763737L, l = (long double)s->limit;
    const long double u = root * (a + 0.044715L * a * a * a);

    switch (s->activation) {
    case HUM_ACT_NONE:
        return a * b;
    case HUM_ACT_RELU2:
        return a > 0 ? a * a * b : 0;
    case HUM_ACT_SILU:
        return a * sigmoid(a) * b;
    case HUM_ACT_GELU:
        return a / 2 * erfcl(-a * sqrtl(0.5L)) * b;
    case HUM_ACT_GELU_TANH: /* 1 + tanh(u) = 2 / (1 + exp(-2u)) */
        return (u > 0 ? a / 2 * (1 + tanhl(u)) : a * expl(2 * u) / (1 + expl(2 * u))) * b;
    case HUM_ACT_SWIGLU:
        if (s->limit > 0) {
            a = fminl(a, l);
            b = fmaxl(fminl(b, l), -l);
        }
        return a * sigmoid((long double)s->alpha * a) * (b + (long double)s->beta);
    }
    return 0;
}

/* Within 0.5000x ulp of the exact result: correctly rounded but next to a tie. */
static bool is_near(float got, long double want)
{
    const int e = want == 0 ? -126 : (int)fmaxl(logbl(want), -126);

    if (fabsl(want) >= 0x1.ffffffp127L)
        return isinf(got) && (got > 0) == (want > 0);
    return fabsl((long double)got - want) <= 0.50001L * ldexpl(1, e - 23);
}

static struct hum_process_input_args call_make(const struct shape *s, int64_t rows, int64_t width)
{
    struct hum_process_input_args a = {.activation = s->activation,
                                       .form = s->form,
                                       .alpha = s->alpha,
                                       .beta = s->beta,
                                       .limit = s->limit};

    a.inputs = tensor_make(HUM_F32, 2, rows, s->form == HUM_ACT_UNARY ? width : 2 * width, 0);
    a.outputs = tensor_make(HUM_F32, 2, rows, width, 0);
    return a;
}

/* Places of gate and other of output i in a row of 2 width (or width) values. */
static int64_t gate_at(const struct shape *s, int64_t i)
{
    return s->form == HUM_ACT_BINARY_INTERLEAVED ? 2 * i : i;
}

static int64_t other_at(const struct shape *s, int64_t i, int64_t width)
{
    return s->form == HUM_ACT_BINARY_INTERLEAVED ? 2 * i + 1 : width + i;
}

/* Gates: every finite number of bf16. */
START_TEST(activates_within_half_an_ulp)
{
    enum { WIDTH = 1 << 16 };
    const struct shape *s = &shapes[_i];
    struct hum_process_input_args a = call_make(s, 1, WIDTH);
    float *in = a.inputs.data, *out = a.outputs.data;
    uint64_t state = 1;

    for (int64_t i = 0; i < WIDTH; i++) {
        const float x = (float)oracle_decode(HUM_BF16, (uint32_t)i, false);

        in[gate_at(s, i)] = isfinite(x) ? x : 0.0f;
        if (s->form != HUM_ACT_UNARY)
            in[other_at(s, i, WIDTH)] = 12 * random_unit(&state);
    }
    ck_assert_int_eq(hum_cpu_ops.process_input(NULL, &a, reason), HUM_OK);
    for (int64_t i = 0; i < WIDTH; i++) {
        const float x = in[gate_at(s, i)];
        const float y = s->form == HUM_ACT_UNARY ? 1.0f : in[other_at(s, i, WIDTH)];
        const long double want = oracle(s, (long double)x, (long double)y);

        REQUIRE(is_near(out[i], want), "f(%a, %a) = %a, not %La", (double)x, (double)y,
                (double)out[i], want);
    }
    ck_assert(tensor_guard_intact(&a.outputs));
    free(a.inputs.data);
    free(a.outputs.data);
}
END_TEST

/* relu2 and none are f32 operations of one rounding each. */
START_TEST(exact_activations)
{
    for (int form = HUM_ACT_UNARY; form <= HUM_ACT_BINARY_INTERLEAVED; form++)
        for (int relu = 0; relu < 2; relu++) {
            enum { WIDTH = 256 };
            const struct shape s = {relu ? HUM_ACT_RELU2 : HUM_ACT_NONE,
                                    (enum hum_activation_form)form, 0, 0, 0};
            struct hum_process_input_args a = call_make(&s, 3, WIDTH);
            float *in = a.inputs.data, *out = a.outputs.data;
            const int64_t in_width = a.inputs.shape[1];
            uint64_t state = 7;

            for (int64_t i = 0; i < 3 * in_width; i++)
                in[i] = random_unit(&state);
            ck_assert_int_eq(hum_cpu_ops.process_input(NULL, &a, reason), HUM_OK);
            for (int64_t i = 0; i < 3 * WIDTH; i++) {
                const float *row = in + i / WIDTH * in_width;
                float want = row[gate_at(&s, i % WIDTH)];

                if (relu)
                    want = want > 0.0f ? want * want : 0.0f;
                if (form != HUM_ACT_UNARY)
                    want *= row[other_at(&s, i % WIDTH, WIDTH)];
                ck_assert(out[i] == want);
            }
            free(a.inputs.data);
            free(a.outputs.data);
        }
}
END_TEST

START_TEST(passes_nan_on)
{
    for (int i = 0; i < COUNT(shapes); i++) {
        struct hum_process_input_args a = call_make(&shapes[i], 1, 2);
        float *in = a.inputs.data, *out = a.outputs.data;

        for (int64_t j = 0; j < a.inputs.shape[1]; j++)
            in[j] = 1.0f;
        in[gate_at(&shapes[i], 0)] = NAN;
        if (shapes[i].form != HUM_ACT_UNARY)
            in[other_at(&shapes[i], 1, 2)] = NAN;
        ck_assert_int_eq(hum_cpu_ops.process_input(NULL, &a, reason), HUM_OK);
        ck_assert(isnan(out[0]) && isnan(out[1]) == (shapes[i].form != HUM_ACT_UNARY));
        free(a.inputs.data);
        free(a.outputs.data);
    }
}
END_TEST

/* ---- Hadamard -------------------------------------------------------------------------------- */

static void run_hadamard(const struct hum_tensor *in, const struct hum_tensor *out, int64_t block)
{
    const struct hum_hadamard_args a = {*in, *out, block};
    const struct hum_tensor before = tensor_copy(in);
    const enum hum_code rc = hum_cpu_ops.hadamard(NULL, &a, reason);

    ck_assert_msg(rc == HUM_OK, "%s", reason);
    ck_assert(tensor_equal(in, &before) && tensor_guard_intact(out));
    free(before.data);
}

static int parity(int64_t x)
{
    int p = 0;

    for (; x; x &= x - 1)
        p ^= 1;
    return p;
}

/* Small integers: every sum is exact, whatever its order. */
START_TEST(hadamard_matches_sylvester)
{
    const int64_t h = INT64_C(1) << _i, width = h * 3;
    struct hum_tensor in = tensor_make(HUM_F32, 2, 2, width, 0);
    struct hum_tensor out = tensor_make(HUM_F32, 2, 2, width, 0);
    float *x = in.data, *y = out.data;
    uint64_t state = (uint64_t)_i;

    for (int64_t i = 0; i < 2 * width; i++)
        x[i] = (float)((int)(next_random(&state) % 201) - 100);
    run_hadamard(&in, &out, h);
    for (int64_t i = 0; i < 2 * width; i++) {
        const float *block = x + i / h * h;
        float sum = 0;

        for (int64_t j = 0; j < h; j++)
            sum += parity(i % h & j) ? -block[j] : block[j];
        ck_assert(y[i] == sum * (float)sqrt(1.0 / (double)h));
    }
    free(in.data);
    free(out.data);
}
END_TEST

/* Stages of stride 1, 2, 4, ...: both halves first, then the two together. */
static void recursive(float *v, int64_t n)
{
    if (n == 1)
        return;
    recursive(v, n / 2);
    recursive(v + n / 2, n / 2);
    for (int64_t i = 0; i < n / 2; i++) {
        const float x = v[i], y = v[n / 2 + i];

        v[i] = x + y;
        v[n / 2 + i] = x - y;
    }
}

START_TEST(hadamard_rounds_in_order)
{
    static const int32_t formats[] = {HUM_F32, HUM_BF16, HUM_F16};

    for (int f = 0; f < 3; f++)
        for (int64_t h = 1; h <= 512; h *= 2) {
            struct hum_tensor in = tensor_make(formats[f], 2, 2, h, 0);
            struct hum_tensor out = tensor_make(formats[f], 2, 2, h, 0);
            uint64_t state = (uint64_t)h;
            float v[2 * 512];

            for (int64_t i = 0; i < 2 * h; i++) {
                v[i] = ldexpf(random_unit(&state), (int)(next_random(&state) % 20) - 10);
                if (f == 0)
                    ((float *)in.data)[i] = v[i];
                else
                    ((uint16_t *)in.data)[i] = (uint16_t)(next_random(&state) & 0xb7ffu);
                if (f != 0)
                    v[i] = (float)oracle_decode(formats[f], ((uint16_t *)in.data)[i], false);
            }
            run_hadamard(&in, &out, h);
            for (int64_t i = 0; i < 2 * h; i++) {
                float want;

                if (i % h == 0)
                    recursive(v + i, h);
                want = v[i] * (float)sqrt(1.0 / (double)h);
                if (f == 0)
                    ck_assert(((float *)out.data)[i] == want);
                else
                    ck_assert(oracle_decode(formats[f], ((uint16_t *)out.data)[i], false) ==
                              oracle_round(formats[f], (double)want, 0));
            }
            free(in.data);
            free(out.data);
        }
}
END_TEST

/* Sizes whose factor is a power of two: twice is the identity, bit for bit, and scaling by 2^k
 * passes through. */
START_TEST(hadamard_twice_is_identity)
{
    for (int64_t h = 1; h <= 256; h *= 4) {
        struct hum_tensor in = tensor_make(HUM_BF16, 2, 3, 256, 0);
        struct hum_tensor once = tensor_make(HUM_BF16, 2, 3, 256, 0);
        struct hum_tensor twice = tensor_make(HUM_BF16, 2, 3, 256, 0);

        for (int64_t i = 0; i < 3 * 256; i++) /* one number a block; +-1, +-2 */
            ((uint16_t *)in.data)[i] = (uint16_t)(i % h == i / 256 % h ? 0x3f80 + i % 2 * 0x80 : 0);
        run_hadamard(&in, &once, h);
        run_hadamard(&once, &twice, h);
        ck_assert(tensor_equal(&in, &twice));
        ck_assert(h == 1 || !tensor_equal(&in, &once));
        free(in.data);
        free(once.data);
        free(twice.data);
    }
}
END_TEST

/* Activation, then Hadamard, then the rounding of outputs: as the operations one after the other.
 * */
START_TEST(stages_compose)
{
    const struct shape s = {HUM_ACT_SILU, HUM_ACT_BINARY_SPLIT, 0, 0, 0};
    struct hum_process_input_args a = call_make(&s, 2, 128);
    struct hum_tensor after = tensor_make(HUM_F32, 2, 2, 128, 0);
    struct hum_tensor both = tensor_make(HUM_F32, 2, 2, 128, 0);
    uint64_t state = 3;

    for (int64_t i = 0; i < 2 * 256; i++)
        ((float *)a.inputs.data)[i] = random_unit(&state);
    ck_assert_int_eq(hum_cpu_ops.process_input(NULL, &a, reason), HUM_OK);
    run_hadamard(&a.outputs, &after, 32);
    free(a.outputs.data);
    a.outputs = both;
    a.hadamard_block_size = 32;
    ck_assert_int_eq(hum_cpu_ops.process_input(NULL, &a, reason), HUM_OK);
    ck_assert(tensor_equal(&after, &both));
    free(a.inputs.data);
    free(after.data);
    free(both.data);
}
END_TEST

/* ---- process_input without quantization ------------------------------------------------------ */

START_TEST(disabled_copies_every_code)
{
    static const int32_t formats[] = {HUM_F16, HUM_BF16};
    struct hum_process_input_args a = {0};
    uint16_t *in, *out;

    a.inputs = tensor_make(formats[_i], 2, 256, 256, 0);
    a.outputs = tensor_make(formats[_i], 2, 256, 256, 0);
    in = a.inputs.data;
    out = a.outputs.data;
    for (int i = 0; i < 1 << 16; i++)
        in[i] = (uint16_t)i;
    ck_assert_int_eq(hum_cpu_ops.process_input(NULL, &a, reason), HUM_OK);
    for (int i = 0; i < 1 << 16; i++)
        if (isnan(oracle_decode(formats[_i], in[i], false)))
            ck_assert(isnan(oracle_decode(formats[_i], out[i], false)));
        else
            REQUIRE(out[i] == in[i], "code %x", (unsigned)i);
    free(a.inputs.data);
    free(a.outputs.data);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cpu_ops_values");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, activates_within_half_an_ulp, 0, COUNT(shapes));
    tcase_add_test(tc, exact_activations);
    tcase_add_test(tc, passes_nan_on);
    tcase_add_loop_test(tc, hadamard_matches_sylvester, 0, 10);
    tcase_add_test(tc, hadamard_rounds_in_order);
    tcase_add_test(tc, hadamard_twice_is_identity);
    tcase_add_test(tc, stages_compose);
    tcase_add_loop_test(tc, disabled_copies_every_code, 0, 2);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
