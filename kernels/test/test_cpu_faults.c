/* Every fault of the GEMM changes what at least one legal call does. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/fault.h"
#include "kernels/test/fault_samples.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { LAUNCHES = 3, EXTRA_ROWS = 17 };

static const struct hum_provider *const cpu = &hum_cpu_provider;

/* FNV-1a of what a call can change. */
static void see(uint64_t *hash, const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        *hash = (*hash ^ ((const uint8_t *)data)[i]) * 0x100000001b3u;
}

static void see_tensor(uint64_t *hash, const struct hum_tensor *t)
{
    if (t->data)
        see(hash, t->data, t->bytes + SAMPLE_GUARD);
}

/* What the provider says about a product before it runs. */
static void see_answers(uint64_t *hash, const struct sample *s, void *handle)
{
    struct hum_tuning_config tuning = {0};
    struct hum_accumulation order = {0};
    char reason[HUM_REASON_BYTES];
    enum hum_code code = cpu->heuristics(handle, &s->layer, &s->compute, s->m, &tuning, reason);

    see(hash, &code, sizeof code);
    see(hash, &tuning.block_n, sizeof tuning.block_n);
    code = cpu->accumulation(handle, &s->layer, &s->compute, &s->tuning, s->m, s->m - 1, 0, &order,
                             reason);
    see(hash, &code, sizeof code);
    see(hash, order.slice, sizeof order.slice);
}

/* Another product of the same shape, without bias and with more rows, leaves its traces in the
 * handle. */
static void run_before(const struct sample *s, void *handle)
{
    struct sample before = {
        .layer = s->layer, .compute = s->compute, .tuning = s->tuning, .m = s->m + EXTRA_ROWS};
    struct hum_gemm_args args;
    char reason[HUM_REASON_BYTES];

    if (s->layer.num_experts ||
        cpu->supports(handle, &s->layer, &s->compute, &s->tuning, reason) != HUM_OK)
        return;
    before.layer.has_bias = false;
    sample_fill(&before, cpu, handle, 3, SAMPLE_TAME);
    args = sample_args(&before);
    (void)cpu->transform(handle, &before.layer, &before.standard, &before.kernel, reason);
    (void)cpu->forward(handle, &args, reason);
    sample_free(&before);
}

static void guard(const struct hum_tensor *t)
{
    if (t->data)
        memset((char *)t->data + t->bytes, 0xa5, SAMPLE_GUARD);
}

static struct sample make(const struct fault_sample *f, void *handle)
{
    struct sample s = fault_sample_start;

    f->configure(&s);
    sample_fill(&s, cpu, handle, 7, SAMPLE_TAME);
    guard(&s.inputs);
    guard(&s.locks);
    if (f->fill)
        f->fill(&s);
    return s;
}

/* One sample's outputs lie in its inputs. */
static void release(struct sample *s)
{
    if (s->outputs.data == s->inputs.data)
        s->outputs.data = NULL;
    sample_free(s);
}

static uint64_t outcome(const struct fault_sample *f, enum hum_fault fault)
{
    void *handle = sample_open(cpu, 1);
    struct sample s = make(f, handle);
    uint64_t hash = 0xcbf29ce484222325u;
    char reason[HUM_REASON_BYTES];
    enum hum_code code;

    hum_fault_now = fault;
    see_answers(&hash, &s, handle);
    run_before(&s, handle);
    code = cpu->transform(handle, &s.layer, &s.standard, &s.kernel, reason);
    see(&hash, &code, sizeof code);
    if (f->finish)
        f->finish(&s);
    for (int i = 0; i < LAUNCHES; i++) {
        const struct hum_gemm_args args = sample_args(&s);

        code = cpu->forward(handle, &args, reason);
        see(&hash, &code, sizeof code);
        see_tensor(&hash, &s.outputs);
        see_tensor(&hash, &s.inputs);
        see_tensor(&hash, &s.locks);
        see(&hash, s.kernel.bias.data, s.kernel.bias.bytes);
        memset(s.outputs.data, 0xff, s.outputs.bytes);
    }
    hum_fault_now = HUM_FAULT_NONE;
    release(&s);
    cpu->close(handle);
    return hash;
}

/* Without a fault the same call has the same outcome twice. */
START_TEST(changes_something)
{
    const struct fault_sample *f = &fault_samples[_i];
    const uint64_t right = outcome(f, HUM_FAULT_NONE);

    ck_assert_msg(outcome(f, HUM_FAULT_NONE) == right, "%s: not reproducible",
                  hum_fault_name((int)f->fault));
    ck_assert_msg(outcome(f, f->fault) != right, "%s changes nothing",
                  hum_fault_name((int)f->fault));
}
END_TEST

START_TEST(every_fault_has_a_sample)
{
#define COUNT(id) +1
    const int count = 0 HUM_FAULTS_GEMM(COUNT);
#undef COUNT

    ck_assert_int_eq(fault_samples_count, count);
    for (int i = 0; i < count; i++) {
        int seen = 0;

        for (int j = 0; j < count; j++)
            seen += (int)fault_samples[j].fault == i + 1;
        ck_assert_msg(seen == 1, "%s: %d samples", hum_fault_name(i + 1), seen);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cpu_faults");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_loop_test(tc, changes_something, 0, fault_samples_count);
    tcase_add_test(tc, every_fault_has_a_sample);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
