/* PROVIDER_LIBS is the folder of provider_lib_0.so, provider_lib_1.so, ...: provider_lib.c with
 * each VARIANT. */
#include "harness/kernel/provider.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIBS = 7 };

/* What the sentence about each library says; NULL: it is a provider. */
static const char *const sentences[LIBS] = {
    NULL,
    "was built for version 3 of the kernel contract, this program has 2",
    "humcheck_provider() returned no provider",
    "the provider lacks forward",
    "the provider lacks name",
    "the provider lacks one of alloc, release, upload and download, which come together",
    "is not a provider: it has no function humcheck_provider",
};

static void assert_refused(const char *name, const char *sentence)
{
    struct errs errs = {0};

    ck_assert_msg(!provider_find(name, &errs), "%s", name);
    ck_assert_uint_eq(errs.count, 1);
    ck_assert_int_eq(errs.items[0].code, ERR_INFRA);
    ck_assert_msg(strstr(errs.items[0].text, sentence) != NULL, "'%s' lacks '%s'",
                  errs.items[0].text, sentence);
    errs_free(&errs);
}

static void assert_mine(const char *name)
{
    struct errs errs = {0};
    const struct hum_provider *p = provider_find(name, &errs);

    ck_assert_msg(p != NULL, "%s", errs.count ? errs.items[0].text : "no sentence");
    ck_assert_str_eq(p->name, "mine");
    ck_assert(p->forward != NULL);
    ck_assert_uint_eq(errs.count, 0);
}

START_TEST(libraries)
{
    char path[512];

    (void)snprintf(path, sizeof path, "%s/provider_lib_%d.so", PROVIDER_LIBS, _i);
    if (sentences[_i])
        assert_refused(path, sentences[_i]);
    else
        assert_mine(path);
}
END_TEST

/* A bare file name means this folder, not the system's. */
START_TEST(library_of_this_folder)
{
    ck_assert_int_eq(chdir(PROVIDER_LIBS), 0);
    assert_mine("provider_lib_0.so");
    assert_mine("./provider_lib_0.so");
    assert_refused("libc.so", "cannot load the provider: ./libc.so");
}
END_TEST

START_TEST(names_that_are_nothing)
{
    char *endless = malloc(6000);

    ck_assert_ptr_nonnull(endless);
    memset(endless, '/', 5999);
    endless[5999] = '\0';
    assert_refused("", "unknown provider '': built in are cpu");
    assert_refused("gpu", "unknown provider 'gpu': built in are cpu");
    assert_refused("CPU", "unknown provider 'CPU'");
    assert_refused(".so", "unknown provider '.so'");
    assert_refused("cup", "humming:PATH; did you mean 'cpu'?");
    assert_refused("hummin:/tmp", "no such file, and no kind 'hummin:'");
    assert_refused("hummin:/tmp", "did you mean 'humming:'?");
    assert_refused("worke:x", "did you mean 'worker:'?");
    assert_refused("x:y", "no kind 'x:'; the kinds are worker:PROGRAM and humming:PATH");
    assert_refused("/no:/such.so", "cannot load the provider: /no:/such.so");
    assert_refused("/no/such/lib.so", "cannot load the provider: /no/such/lib.so");
    assert_refused("/proc/self/exe", "cannot load the provider");
    assert_refused("/dev/null", "cannot load the provider");
    assert_refused(endless, "the provider's file name is too long");
    free(endless);
}
END_TEST

/* A version is looked for in the cache, unless a folder has its name; a folder is not. */
START_TEST(versions)
{
    char cache[] = "/tmp/test_provider.XXXXXX", path[128];
    static const char *const folders[] = {"humcheck", "humcheck/wheels",
                                          "humcheck/wheels/humming-kernels-0.1.12",
                                          "humcheck/wheels/humming-kernels-0.1.12/humming"};
    enum { FOLDERS = sizeof folders / sizeof folders[0] };

    ck_assert_ptr_nonnull(mkdtemp(cache));
    ck_assert_int_eq(setenv("XDG_CACHE_HOME", cache, 1), 0);
    ck_assert_int_eq(setenv("PATH", "/nowhere", 1), 0); /* no python3 is started */
    assert_refused("humming:0.1.12", "ci/wheels --cache humming-kernels==0.1.12 pyelftools");
    assert_refused("humming:/tmp/none", "there is no package 'humming' in '/tmp/none'");
    assert_refused("humming:", "there is no package 'humming' in ''");
    assert_refused("humming:0.1/../..", "there is no package 'humming' in '0.1/../..'");
    for (int i = 0; i < FOLDERS; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", cache, folders[i]);
        ck_assert_int_eq(mkdir(path, 0700), 0);
    }
    assert_refused("humming:0.1.12", "cannot use the provider 'humming:0.1.12'");
    for (int i = FOLDERS; i-- > 0;) {
        (void)snprintf(path, sizeof path, "%s/%s", cache, folders[i]);
        ck_assert_int_eq(rmdir(path), 0);
    }
    ck_assert_int_eq(rmdir(cache), 0);
}
END_TEST

START_TEST(built_in)
{
    const struct hum_provider *p = builtin_providers[_i];
    struct errs errs = {0};

    ck_assert_ptr_eq(provider_find(p->name, &errs), p);
    ck_assert_int_eq(p->abi_version, HUM_ABI_VERSION);
    ck_assert(p->open && p->close && p->supports && p->transform_shapes && p->transform);
    ck_assert(p->forward && p->version && p->device);
    ck_assert_uint_eq(errs.count, 0);
}
END_TEST

static Suite *provider_suite(void)
{
    Suite *s = suite_create("provider");
    TCase *tc = tcase_create("all");

    tcase_add_loop_test(tc, libraries, 0, LIBS);
    tcase_add_test(tc, library_of_this_folder);
    tcase_add_test(tc, names_that_are_nothing);
    tcase_add_test(tc, versions);
    tcase_add_loop_test(tc, built_in, 0, builtin_provider_count);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    SRunner *r = srunner_create(provider_suite());
    int failed;

    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
