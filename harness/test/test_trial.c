/* Each check of several launches: the right provider passes, on the host and with the memory of a
 * device; and what counts as a refusal. */
#include "harness/kernel/checks.h"
#include "harness/test/case_run.h"

#include <stdlib.h>

#define STREAM_K " block_shape=16x64x64 warp_shape=16x32x64 use_stream_k=true num_sms=5"
#define M_MAJOR  " a_dtype=e4m3 input_scale_group_size=64 scale_layout=m_major"

/* ---- the right provider ---------------------------------------------------------------------- */

static const char *const rights[] = {
    "check=invariant",
    "check=invariant a_dtype=e4m3",
    "check=invariant a_dtype=int8 m=5",
    "check=invariant a_dtype=e2m1 b_dtype=e2m1",
    "check=invariant use_batch_invariant=true a_dtype=e4m3",
    ("check=invariant m=65" STREAM_K),
    "check=deterministic a_dtype=bf16",
    ("check=deterministic m=17" STREAM_K),
    "check=alias a_dtype=e4m3 has_bias=true",
    "check=alias zero_point=int m=1",
    ("check=alias weight_scale_2_type=tensor m=17" STREAM_K),
    "check=guard",
    "check=guard a_dtype=int8 m=1 n=72",
    ("check=guard a_dtype=e4m3 m=17" STREAM_K),
    "check=guard a_dtype=e2m1 b_dtype=e2m1",
    "check=locks",
    ("check=locks m=17" STREAM_K),
    "check=special",
    "check=special a_dtype=e5m2 b_dtype=uint3 m=1",
    "check=special a_dtype=int8",
    "check=special weight_scale_type=channel k=288",
    "check=special weight_scale_type=tensor",
    "check=special has_bias=true bs_dtype=e5m2",
    "check=special use_f16_accum=true", /* the largest value: sums that round as the order has it */
    "check=special a_dtype=bf16 b_dtype=uint7 weight_scale_type=block n=128 k=256 m=64",
    "check=contract",
    "check=contract a_dtype=e4m3 has_bias=true m=1",
    "check=contract zero_point=float",
    "check=contract a_dtype=int4 b_dtype=uint3 weight_scale_type=channel",
    ("check=contract m=17" STREAM_K),
    ("check=exact" M_MAJOR),
    ("check=invariant" M_MAJOR),
    ("check=alias" M_MAJOR),
    ("check=guard m=1" M_MAJOR),
    ("check=special" M_MAJOR),
    ("check=contract" M_MAJOR),
    "check=special bs_dtype=e8m0 a_dtype=int8 use_int_weight_scale=false", /* NaN scales */
    "check=special bs_dtype=e4m3 a_dtype=bf16",
};

START_TEST(right_provider_passes)
{
    expect_verdict(&hum_cpu_provider, rights[_i], VERDICT_PASS, "");
}
END_TEST

/* ---- memory of a device ---------------------------------------------------------------------- */

static int buffers; /* that the device has handed out and not got back */

static enum hum_code device_take(void *handle, size_t bytes, void **out,
                                 char reason[HUM_REASON_BYTES])
{
    (void)handle;
    reason[0] = '\0';
    *out = aligned_alloc(64, bytes / 64 * 64 + 64);
    buffers += *out != NULL;
    return *out ? HUM_OK : HUM_NO_MEMORY;
}

static void device_give_back(void *handle, void *data)
{
    (void)handle;
    buffers--;
    free(data);
}

static enum hum_code device_put(void *handle, void *device, const void *host, size_t bytes,
                                char reason[HUM_REASON_BYTES])
{
    (void)handle;
    reason[0] = '\0';
    memcpy(device, host, bytes);
    return HUM_OK;
}

static enum hum_code device_get(void *handle, void *host, const void *device, size_t bytes,
                                char reason[HUM_REASON_BYTES])
{
    return device_put(handle, host, device, bytes, reason);
}

/* Dirty locks are called done. */
static enum hum_code accepts_locks(void *handle, const struct hum_gemm_args *args,
                                   char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = hum_cpu_provider.forward(handle, args, reason);

    return rc && args->locks.data && strstr(reason, "zero at entry") ? HUM_OK : rc;
}

static enum hum_code changes_weight(void *handle, const struct hum_gemm_args *args,
                                    char reason[HUM_REASON_BYTES])
{
    enum hum_code rc = hum_cpu_provider.forward(handle, args, reason);

    if (rc == HUM_OK)
        ((uint8_t *)args->weights->weight.data)[5] ^= 1;
    return rc;
}

static struct hum_provider on_a_device(forward_fn *forward)
{
    struct hum_provider p = provider_with(forward);

    p.alloc = device_take;
    p.release = device_give_back;
    p.upload = device_put;
    p.download = device_get;
    return p;
}

START_TEST(right_provider_passes_on_a_device)
{
    struct hum_provider p = on_a_device(hum_cpu_provider.forward);

    expect_verdict(&p, rights[_i], VERDICT_PASS, "");
    ck_assert_int_eq(buffers, 0);
}
END_TEST

/* What dirty locks do there is undefined: they are not tried. */
START_TEST(damage_on_a_device)
{
    struct hum_provider dirty = on_a_device(accepts_locks), weight = on_a_device(changes_weight);

    expect_verdict(&dirty, "check=locks m=17" STREAM_K, VERDICT_PASS, "");
    expect_verdict(&weight, "check=guard", VERDICT_FAIL, "wrote outside its output: weight");
    ck_assert_int_eq(buffers, 0);
}
END_TEST

/* ---- refusals -------------------------------------------------------------------------------- */

static const struct {
    enum hum_code code;
    const char *reason;
    bool unsupported;
    const char *fault; /* a part of it; NULL: it is a refusal */
} refusals[] = {
    {HUM_INVALID, "m is negative", false, NULL},
    {HUM_INVALID, "m is negative", true, NULL},
    {HUM_UNSUPPORTED, "no such kernel", true, NULL},
    {HUM_UNSUPPORTED, "no such kernel", false, "not HUM_INVALID"},
    {HUM_NO_MEMORY, "no memory", true, "not HUM_INVALID"},
    {HUM_DEVICE_LOST, "lost", false, "not HUM_INVALID"},
    {HUM_INVALID, "", false, "no reason"},
    {HUM_INVALID, "m is\nnegative", false, "more than one line"},
    {HUM_INVALID, NULL, false, "does not end"},
};

START_TEST(refusals_are_judged)
{
    char reason[HUM_REASON_BYTES];
    const char *why;

    memset(reason, 'x', sizeof reason);
    if (refusals[_i].reason)
        (void)snprintf(reason, sizeof reason, "%s", refusals[_i].reason);
    why = refusal_fault(refusals[_i].code, reason, refusals[_i].unsupported);
    if (!refusals[_i].fault)
        ck_assert_ptr_null(why);
    else
        ck_assert(why && strstr(why, refusals[_i].fault));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("trial");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_loop_test(tc, right_provider_passes, 0, (int)(sizeof rights / sizeof rights[0]));
    tcase_add_loop_test(tc, right_provider_passes_on_a_device, 0,
                        (int)(sizeof rights / sizeof rights[0]));
    tcase_add_test(tc, damage_on_a_device);
    tcase_add_loop_test(tc, refusals_are_judged, 0, (int)(sizeof refusals / sizeof refusals[0]));
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
