#include "kernels/cpu/cpu.h"
#include "kernels/test/sample.h"

#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern hum_provider_fn humcheck_provider;

static void make(struct sample *s, const struct hum_provider *p, void *handle)
{
    char reason[HUM_REASON_BYTES];

    *s = (struct sample){.layer = {.shape_n = 64,
                                   .shape_k = 64,
                                   .a_dtype = HUM_BF16,
                                   .b_dtype = HUM_UINT(4),
                                   .c_dtype = HUM_BF16,
                                   .bs_dtype = HUM_BF16,
                                   .has_bias = true},
                         .m = 5};
    ck_assert_int_eq(p->heuristics(handle, &s->layer, &s->compute, s->m, &s->tuning, reason),
                     HUM_OK);
    sample_fill(s, p, handle, 11, SAMPLE_TAME);
    ck_assert_int_eq(p->transform(handle, &s->layer, &s->standard, &s->kernel, reason), HUM_OK);
}

/* How many outputs differ from the right ones, and where the first and last of them are. */
struct difference {
    int64_t count, first, last;
    bool behind; /* the byte behind the outputs changed */
};

static struct difference run(const char *fault)
{
    const struct hum_provider *p = humcheck_provider();
    struct difference d = {0, -1, -1, false};
    struct sample s;
    uint16_t right[5 * 64];
    struct hum_gemm_args args;
    void *handle;
    char reason[HUM_REASON_BYTES];

    ck_assert_int_eq(p->open(1, &handle, reason), HUM_OK);
    make(&s, p, handle);
    args = sample_args(&s);
    ck_assert_int_eq(hum_cpu_provider.forward(handle, &args, reason), HUM_OK);
    memcpy(right, s.outputs.data, sizeof right);
    memset(s.outputs.data, 0xff, s.outputs.bytes);
    ck_assert_int_eq(setenv("HUMCHECK_WRONG", fault, 1), 0);
    ck_assert_int_eq(p->forward(handle, &args, reason), HUM_OK);
    for (int64_t i = 0; i < 5 * 64; i++)
        if (((const uint16_t *)s.outputs.data)[i] != right[i]) {
            d.first = d.count ? d.first : i;
            d.last = i;
            d.count++;
        }
    d.behind = ((const uint8_t *)s.outputs.data)[sizeof right] != 0xa5;
    sample_free(&s);
    p->close(handle);
    return d;
}

static const struct {
    const char *name;
    int64_t least, most, first, last; /* -1: anywhere */
    bool behind;
} expected[] = {
    {"", 0, 0, -1, -1, false},
    {"no such fault", 0, 0, -1, -1, false},
    {"nan", 1, 1, 160, 160, false},
    {"one_ulp", 1, 1, 160, 160, false},
    {"smallest", 1, 1, -1, -1, false},
    {"swap", 5, 10, 0, -1, false},
    {"drop_k", 100, 320, -1, -1, false},
    {"tail", 64, 64, 256, 319, false},
    {"early", 320, 320, 0, 319, false},
    {"overrun", 0, 0, -1, -1, true},
    {"bias_twice", 100, 320, -1, -1, false},
    {"no_bf16", 0, 0, -1, -1, false},
};

START_TEST(is_wrong_as_named)
{
    const struct difference d = run(expected[_i].name);

    ck_assert_msg(d.count >= expected[_i].least && d.count <= expected[_i].most, "%s: %d outputs",
                  expected[_i].name, (int)d.count);
    ck_assert(expected[_i].first < 0 || d.first == expected[_i].first);
    ck_assert(expected[_i].last < 0 || d.last == expected[_i].last);
    ck_assert_int_eq(d.behind, expected[_i].behind);
}
END_TEST

START_TEST(crashes)
{
    (void)run("crash");
}
END_TEST

START_TEST(hangs)
{
    (void)signal(SIGALRM, SIG_DFL); /* not Check's own */
    (void)alarm(1);
    (void)run("hang");
}
END_TEST

START_TEST(refuses_everything)
{
    struct hum_weights w;
    char reason[HUM_REASON_BYTES] = "";

    ck_assert_int_eq(setenv("HUMCHECK_WRONG", "unsupported", 1), 0);
    ck_assert_int_eq(humcheck_provider()->transform_shapes(NULL, NULL, &w, reason),
                     HUM_UNSUPPORTED);
    ck_assert_int_eq(humcheck_provider()->supports(NULL, NULL, NULL, NULL, reason),
                     HUM_UNSUPPORTED);
    ck_assert_str_ne(reason, "");
}
END_TEST

/* Only what is asked beforehand is refused, and only for bf16. */
START_TEST(lacks_bf16)
{
    const struct hum_provider *p = humcheck_provider();
    struct sample s;
    struct hum_tuning_config tuning;
    void *handle;
    char reason[HUM_REASON_BYTES] = "";

    ck_assert_int_eq(p->open(1, &handle, reason), HUM_OK);
    make(&s, p, handle);
    ck_assert_int_eq(p->supports(handle, &s.layer, &s.compute, &s.tuning, reason), HUM_OK);
    ck_assert_int_eq(setenv("HUMCHECK_WRONG", "no_bf16", 1), 0);
    ck_assert_int_eq(p->supports(handle, &s.layer, &s.compute, &s.tuning, reason), HUM_UNSUPPORTED);
    ck_assert_str_eq(reason, "bf16 activations are not supported");
    reason[0] = '\0';
    ck_assert_int_eq(p->heuristics(handle, &s.layer, &s.compute, s.m, &tuning, reason),
                     HUM_UNSUPPORTED);
    ck_assert_str_eq(reason, "bf16 activations are not supported");
    s.layer.a_dtype = s.layer.c_dtype = s.layer.bs_dtype = HUM_F16;
    ck_assert_int_eq(p->supports(handle, &s.layer, &s.compute, &s.tuning, reason), HUM_OK);
    ck_assert_int_eq(p->heuristics(handle, &s.layer, &s.compute, s.m, &tuning, reason), HUM_OK);
    sample_free(&s);
    p->close(handle);
}
END_TEST

START_TEST(has_another_abi)
{
    ck_assert_int_eq(humcheck_provider()->abi_version, HUM_ABI_VERSION);
    ck_assert_int_eq(setenv("HUMCHECK_WRONG", "abi", 1), 0);
    ck_assert_int_ne(humcheck_provider()->abi_version, HUM_ABI_VERSION);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("wrong_provider");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_loop_test(tc, is_wrong_as_named, 0, (int)(sizeof expected / sizeof expected[0]));
    tcase_add_test_raise_signal(tc, crashes, SIGSEGV);
    tcase_add_test_raise_signal(tc, hangs, SIGALRM);
    tcase_add_test(tc, refuses_everything);
    tcase_add_test(tc, lacks_bf16);
    tcase_add_test(tc, has_another_abi);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
